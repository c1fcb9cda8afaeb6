//! Whether IR is well-formed: what every pass may rely on and must keep.
//!
//! A function is well-formed if
//! * each variable and buffer is declared before it is used, in a scope that holds the use, and not declared again
//!   where it is already in sight;
//! * operands have the dtypes their operator wants, and each node the dtype that follows from its operands;
//! * accesses have one index a dimension, of which at most one is a vector;
//! * calls have the arguments that the table of intrinsics says, and its result;
//! * conditions are scalar bools, loop bounds have the loop variable's dtype, `break` and `continue` are in loops.
//!
//! A division by the constant zero is well-formed: unrolling makes `tx % 0` of `tx % i`, perhaps where no thread gets.
//! What is left of it when code is generated is the program's mistake, and reported there.
//!
//! A violation is a bug of the compiler (or of a hand-made module), so messages speak of IR.

use crate::ir::abi::keys;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Assert, Attr, AttrNode, BinOp, Buffer, BufferStore, DType, Expr, ExprKind, ForKind, ForLoop, IRModule,
    PrimFunc, ScopeIdDef, Stmt, StmtKind, TileArg, TileCall, Type, Var, tile::TileParam,
};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::{Effect, Op, ResultRule};
use crate::ir::{print_expr, print_stmt};
use crate::source::Span;

/// More errors than this are not collected.
const MOST: usize = 20;

/// Checks every function of a module.
pub fn verify(module: &IRModule) -> Result<(), Diagnostics> {
    let mut all = Vec::new();
    for (name, func) in &module.functions {
        if let Err(errors) = verify_func(name, func) {
            all.extend(errors.0);
        }
    }
    if all.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(all))
    }
}

/// Checks one function; `name` is for messages.
pub fn verify_func(name: &str, func: &PrimFunc) -> Result<(), Diagnostics> {
    let mut verifier = Verifier {
        function: name,
        errors: Vec::new(),
        vars: FxHashMap::default(),
        buffers: FxHashSet::default(),
        scopes: vec![Vec::new()],
        loops: 0,
        span: func.span,
    };
    verifier.function(func);
    if verifier.errors.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(verifier.errors))
    }
}

enum Declared {
    Var(Var),
    Buffer(Buffer),
}

struct Verifier<'a> {
    function: &'a str,
    errors: Vec<Diagnostic>,
    /// Variables in sight; how often each was declared there.
    vars: FxHashMap<Var, u32>,
    buffers: FxHashSet<Buffer>,
    scopes: Vec<Vec<Declared>>,
    loops: u32,
    /// Of the statement being checked, for nodes without a span.
    span: Span,
}

impl Verifier<'_> {
    fn error(&mut self, span: Span, what: impl FnOnce() -> String) {
        if self.errors.len() < MOST {
            let message = format!("ill-formed IR in {}: {}", self.function, what());
            self.errors.push(Diagnostic::new(span.or(self.span), message));
        }
    }

    fn check(&mut self, holds: bool, span: Span, what: impl FnOnce() -> String) {
        if !holds {
            self.error(span, what);
        }
    }

    fn scope(&mut self, f: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        f(self);
        for declared in self.scopes.pop().unwrap_or_default() {
            match declared {
                Declared::Var(var) => {
                    self.vars.remove(&var);
                }
                Declared::Buffer(buffer) => {
                    self.buffers.remove(&buffer);
                }
            }
        }
    }

    fn define(&mut self, var: &Var, span: Span) {
        if self.vars.insert(var.clone(), 1).is_some() {
            self.error(span.or(var.span()), || {
                format!("variable {} is defined twice", var.name())
            });
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.push(Declared::Var(var.clone()));
        }
    }

    fn declare(&mut self, buffer: &Buffer) {
        if !self.buffers.insert(buffer.clone()) {
            self.error(buffer.span, || {
                format!("buffer {} is declared twice", buffer.name)
            });
        } else if let Some(scope) = self.scopes.last_mut() {
            scope.push(Declared::Buffer(buffer.clone()));
        }
    }

    fn function(&mut self, func: &PrimFunc) {
        for param in &func.params {
            self.define(param, param.span());
        }
        for (param, buffer) in &func.buffer_map {
            self.check(func.params.contains(param), buffer.span, || {
                format!("buffer {} belongs to no parameter", buffer.name)
            });
            self.check(param.dtype().is_handle(), buffer.span, || {
                format!(
                    "parameter {} of buffer {} is no pointer",
                    param.name(),
                    buffer.name
                )
            });
            // The signature binds what its descriptions mention: the caller's tensors give the values.
            if !self.vars.contains_key(&buffer.data) {
                self.define(&buffer.data, buffer.span);
            }
            for e in buffer.exprs() {
                self.define_free(e);
            }
            self.description(buffer);
            self.declare(buffer);
        }
        // An attribute says what its author wrote: it may name a parameter of the signature that a pass has replaced.
        for value in func.attrs.values() {
            if let super::AttrValue::Expr(e) = value {
                self.scope(|this| {
                    this.define_free(e);
                    this.expr(e);
                });
            }
        }
        self.stmt(&func.body);
    }

    fn define_free(&mut self, e: &Expr) {
        if let Some(var) = e.as_var() {
            if !self.vars.contains_key(var) {
                self.define(var, e.span);
            }
            return;
        }
        e.operands().for_each(|e| self.define_free(e));
    }

    /// The dtypes of a buffer's description.
    fn description(&mut self, buffer: &Buffer) {
        for e in buffer.exprs() {
            self.expr(e);
            let ok = e.dtype.is_integer() && e.dtype.is_scalar();
            self.check(ok, e.span.or(buffer.span), || {
                format!(
                    "`{}` in the description of buffer {} is {}",
                    print_expr(e),
                    buffer.name,
                    e.dtype
                )
            });
        }
        let dimensions = buffer.strides.is_empty() || buffer.strides.len() == buffer.shape.len();
        self.check(dimensions, buffer.span, || {
            format!(
                "buffer {} has {} strides for {} extents",
                buffer.name,
                buffer.strides.len(),
                buffer.shape.len()
            )
        });
        self.check(
            buffer.align.is_power_of_two() && buffer.offset_factor > 0,
            buffer.span,
            || {
                format!(
                    "buffer {} has alignment {} and offset factor {}",
                    buffer.name, buffer.align, buffer.offset_factor
                )
            },
        );
        let pointer = buffer.data.dtype().is_handle();
        self.check(pointer, buffer.span, || {
            format!("the data of buffer {} is {}", buffer.name, buffer.data.dtype())
        });
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|e| self.expr(e));
    }

    fn expr(&mut self, e: &Expr) {
        for operand in e.operands() {
            // The body of a `Let` sees the variable.
            if !matches!(e.kind, ExprKind::Let(..)) {
                self.expr(operand);
            }
            let value = !operand.dtype.is_void();
            self.check(value, e.span, || {
                format!("`{}` is used as a value", print_expr(operand))
            });
        }
        let dtype = e.dtype;
        match &e.kind {
            ExprKind::Var(var) => {
                self.check(self.vars.contains_key(var), e.span, || {
                    format!("variable {} is used where it is not defined", var.name())
                });
                self.follows(e, var.dtype());
            }
            ExprKind::Int(value) => {
                let range = dtype.min_int().zip(dtype.max_int());
                let ok = dtype.is_handle() || range.is_some_and(|(low, high)| (low..=high).contains(value));
                self.check(ok && dtype.is_scalar(), e.span, || {
                    format!("constant {value} of dtype {dtype}")
                });
            }
            ExprKind::Float(value) => {
                let ok = dtype.is_floating() && dtype.is_scalar();
                self.check(ok, e.span, || format!("constant {value} of dtype {dtype}"));
            }
            ExprKind::Str(_) => self.follows(e, DType::HANDLE),
            ExprKind::Cast(value) => {
                let ok = value.dtype.lanes == dtype.lanes;
                self.check(ok, e.span, || format!("cast of {} to {dtype}", value.dtype));
            }
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            ExprKind::Not(a) => {
                self.check(a.dtype.is_bool(), e.span, || format!("`not` of {}", a.dtype));
                self.follows(e, a.dtype);
            }
            ExprKind::Select(c, t, f) => {
                let lanes = c.dtype.lanes == 1 || c.dtype.lanes == t.dtype.lanes;
                self.check(c.dtype.is_bool() && lanes, e.span, || {
                    format!("Select between {} by {}", t.dtype, c.dtype)
                });
                self.check(t.dtype == f.dtype, e.span, || {
                    format!("Select of {} or {}", t.dtype, f.dtype)
                });
                self.follows(e, t.dtype);
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let place = self.access(e.span, buffer, indices, predicate.as_ref());
                self.follows(e, place);
            }
            ExprKind::Ramp { base, stride, lanes } => {
                let ok = base.dtype == stride.dtype && base.dtype.is_integer() && *lanes > 0;
                self.check(ok, e.span, || {
                    format!("Ramp of {} by {}", base.dtype, stride.dtype)
                });
                self.follows(e, base.dtype.with_lanes(base.dtype.lanes.saturating_mul(*lanes)));
            }
            ExprKind::Broadcast { value, lanes } => {
                self.follows(
                    e,
                    value.dtype.with_lanes(value.dtype.lanes.saturating_mul(*lanes)),
                );
            }
            ExprKind::Shuffle { vectors, indices } => {
                let element = vectors.first().map_or(DType::VOID, |v| v.dtype.element());
                let same = vectors.iter().all(|v| v.dtype.element() == element);
                self.check(same, e.span, || "Shuffle of vectors of several dtypes".into());
                let available: i128 = vectors.iter().map(|v| i128::from(v.dtype.lanes)).sum();
                let ok = indices
                    .iter()
                    .all(|i| i.as_int().is_some_and(|i| (0..available).contains(&i)));
                self.check(ok, e.span, || format!("Shuffle picks lanes beyond {available}"));
                self.follows(e, element.with_lanes(indices.len() as u16));
            }
            ExprKind::Call { op, args } => self.call(e, *op, args),
            ExprKind::Let(var, value, body) => {
                self.expr(value);
                self.scope(|s| {
                    s.define(var, e.span);
                    s.expr(body);
                });
                self.bound(e.span, var, value);
                self.follows(e, body.dtype);
            }
        }
    }

    /// The node's dtype is what follows from its operands.
    fn follows(&mut self, e: &Expr, expected: DType) {
        self.check(e.dtype == expected, e.span, || {
            format!(
                "`{}` has dtype {} but its operands give {expected}",
                print_expr(e),
                e.dtype
            )
        });
    }

    fn bound(&mut self, span: Span, var: &Var, value: &Expr) {
        self.check(var.dtype() == value.dtype, span, || {
            format!(
                "variable {} of dtype {} is bound to a {}",
                var.name(),
                var.dtype(),
                value.dtype
            )
        });
    }

    fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) {
        let dtype = a.dtype;
        self.check(dtype == b.dtype, e.span, || {
            format!("{op:?} of {dtype} and {} in `{}`", b.dtype, print_expr(e))
        });
        use BinOp::*;
        let ok = match op {
            And | Or => dtype.is_bool(),
            Mod | FloorDiv | FloorMod => dtype.is_integer() || dtype.is_floating(),
            Eq | Ne => true,
            Lt | Le | Gt | Ge | Add | Sub | Mul | Div | Min | Max => !dtype.is_handle(),
        };
        self.check(ok, e.span, || format!("{op:?} of {dtype} in `{}`", print_expr(e)));
        self.follows(
            e,
            if op.is_comparison() {
                DType::BOOL.with_lanes(dtype.lanes)
            } else {
                dtype
            },
        );
    }

    /// Checks an access; gives the dtype of the place.
    fn access(&mut self, span: Span, buffer: &Buffer, indices: &[Expr], predicate: Option<&Expr>) -> DType {
        self.check(self.buffers.contains(buffer), span, || {
            format!("buffer {} is used where it is not declared", buffer.name)
        });
        self.check(indices.len() == buffer.shape.len(), span, || {
            format!(
                "{} indices into the {} dimensions of buffer {}",
                indices.len(),
                buffer.shape.len(),
                buffer.name
            )
        });
        for index in indices {
            self.check(index.dtype.is_integer(), index.span.or(span), || {
                format!(
                    "index `{}` of buffer {} is {}",
                    print_expr(index),
                    buffer.name,
                    index.dtype
                )
            });
        }
        let vectors = indices.iter().filter(|i| i.dtype.is_vector()).count();
        self.check(vectors <= 1, span, || {
            format!("{vectors} vector indices into buffer {}", buffer.name)
        });
        let lanes = indices.iter().fold(1u16, |n, i| n.saturating_mul(i.dtype.lanes));
        if let Some(predicate) = predicate {
            let ok = predicate.dtype == DType::BOOL.with_lanes(lanes);
            self.check(ok, predicate.span.or(span), || {
                format!(
                    "predicate of {lanes} lanes of buffer {} is {}",
                    buffer.name, predicate.dtype
                )
            });
        }
        buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes))
    }

    fn call(&mut self, e: &Expr, op: Op, args: &[Expr]) {
        let info = op.info();
        if let Err(message) = info.row.read(args) {
            self.check(false, e.span, || format!("T.{}: {message}", info.script));
        }
        match info.row.result {
            ResultRule::Arg(n) => {
                if let Some(arg) = args.get(n as usize) {
                    self.follows(e, arg.dtype);
                }
            }
            // One value a lane, as `clz` of a vector has.
            ResultRule::Is(dtype) if dtype.is_integer() && op.effect() == Effect::Pure => {
                let lanes = args.first().map_or(1, |a| a.dtype.lanes);
                self.follows(e, dtype.with_lanes(lanes));
            }
            ResultRule::Is(dtype) => self.follows(e, dtype),
            ResultRule::BoolOfArg0 => {
                if let Some(arg) = args.first() {
                    self.follows(e, DType::BOOL.with_lanes(arg.dtype.lanes));
                }
            }
            ResultRule::IntOfBits | ResultRule::AddressOf | ResultRule::Of(_) => {
                self.follows(e, op.result(args).unwrap_or(e.dtype))
            }
            ResultRule::Said | ResultRule::SaidLast => {}
        }
        if matches!(op, Op::BreakLoop | Op::ContinueLoop) {
            self.check(self.loops > 0, e.span, || {
                format!("T.{} outside of a loop", info.script)
            });
        }
        if op == Op::IfThenElse && args.len() == 3 {
            self.check(args[0].dtype.is_bool(), e.span, || {
                format!("if_then_else by {}", args[0].dtype)
            });
            self.check(args[1].dtype == args[2].dtype, e.span, || {
                format!("if_then_else of {} or {}", args[1].dtype, args[2].dtype)
            });
        }
        if op == Op::AddressOf && args.len() == 1 {
            let ok = match &args[0].kind {
                ExprKind::BufferLoad { .. } => true,
                ExprKind::Var(var) => var.ty().is_tensor_map(),
                _ => false,
            };
            self.check(ok, e.span, || format!("address_of `{}`", print_expr(&args[0])));
        }
    }

    fn condition(&mut self, e: &Expr) {
        self.expr(e);
        self.check(e.dtype == DType::BOOL, e.span, || {
            format!("condition `{}` is {}", print_expr(e), e.dtype)
        });
    }

    fn body(&mut self, body: &Stmt) {
        self.scope(|s| s.stmt(body));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        match &stmt.kind {
            StmtKind::Bind(var, value) => {
                self.expr(value);
                self.bound(stmt.span, var, value);
                self.define(var, stmt.span);
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => self.attr(node, key, value, body),
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.expr(value);
                self.exprs(indices);
                predicate.iter().for_each(|p| self.expr(p));
                let place = self.access(stmt.span, buffer, indices, predicate.as_ref());
                self.check(value.dtype == place, stmt.span, || {
                    format!(
                        "a {} is stored to a place of {place} in `{}`",
                        value.dtype,
                        print_stmt(stmt).trim_end()
                    )
                });
            }
            StmtKind::AllocBuffer(buffer, _) => {
                self.define(&buffer.data, buffer.span);
                self.description(buffer);
                let pointer = matches!(buffer.data.ty(), Type::Pointer { .. });
                self.check(pointer, buffer.span, || {
                    format!("the data of buffer {} is no typed pointer", buffer.name)
                });
                self.declare(buffer);
            }
            StmtKind::DeclBuffer(buffer) => {
                if !self.vars.contains_key(&buffer.data) {
                    // Tensor memory has addresses instead of pointers.
                    self.check(buffer.scope() == "tmem", buffer.span, || {
                        format!(
                            "the data of buffer {} is used where it is not defined",
                            buffer.name
                        )
                    });
                    self.define(&buffer.data, buffer.span);
                }
                // Nothing computes the extent of a flat view: in a kernel it may mention what the host alone knows.
                if buffer.shape.len() == 1 {
                    buffer.shape.iter().for_each(|e| self.define_free(e));
                }
                self.description(buffer);
                self.declare(buffer);
            }
            StmtKind::ScopeId(def) => self.scope_id(def, stmt.span),
            StmtKind::Seq(stmts) => {
                for stmt in stmts {
                    self.check(!matches!(stmt.kind, StmtKind::Seq(_)), stmt.span, || {
                        "a Seq within a Seq".into()
                    });
                    self.stmt(stmt);
                }
            }
            StmtKind::Evaluate(e) => self.expr(e),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                thread,
                step,
                body,
                ..
            }) => {
                for bound in [Some(min), Some(extent), step.as_ref()].into_iter().flatten() {
                    self.expr(bound);
                    self.check(bound.dtype == var.dtype(), stmt.span, || {
                        format!(
                            "loop over {} {} is bounded by a {}",
                            var.dtype(),
                            var.name(),
                            bound.dtype
                        )
                    });
                }
                let integer = var.dtype().is_integer() && var.dtype().is_scalar();
                self.check(integer, stmt.span, || {
                    format!("loop variable {} is {}", var.name(), var.dtype())
                });
                self.check(
                    thread.is_some() == (*kind == ForKind::ThreadBinding),
                    stmt.span,
                    || {
                        format!(
                            "loop over {} is {kind:?} and its hardware index {thread:?}",
                            var.name()
                        )
                    },
                );
                self.loops += 1;
                self.scope(|s| {
                    s.define(var, stmt.span);
                    s.stmt(body);
                });
                self.loops -= 1;
            }
            StmtKind::While(condition, body) => {
                self.condition(condition);
                self.loops += 1;
                self.body(body);
                self.loops -= 1;
            }
            StmtKind::If(condition, then, otherwise) => {
                self.condition(condition);
                self.body(then);
                otherwise.iter().for_each(|s| self.body(s));
            }
            StmtKind::Assert(Assert { condition, .. }) => self.condition(condition),
            StmtKind::Tile(call) => self.tile(call, stmt.span),
        }
        self.span = outer;
    }

    /// A tile primitive has the arguments that its row says.
    fn tile(&mut self, call: &TileCall, span: Span) {
        let info = call.op.info();
        let count = info.params.len();
        self.check(call.args.len() == count, span, || {
            format!(
                "{} takes {count} arguments and has {}",
                info.name,
                call.args.len()
            )
        });
        for ((name, param), arg) in info.params.iter().zip(&call.args) {
            let fits = match arg {
                TileArg::None => matches!(
                    param,
                    TileParam::OptionalInput | TileParam::OptionalOperand | TileParam::OptionalScalar
                ),
                TileArg::Region(_) => matches!(
                    param,
                    TileParam::Output
                        | TileParam::InOut
                        | TileParam::Input
                        | TileParam::InputOrOutput
                        | TileParam::OptionalInput
                        | TileParam::Operand
                        | TileParam::OptionalOperand
                ),
                TileArg::Expr(_) => matches!(
                    param,
                    TileParam::Operand
                        | TileParam::OptionalOperand
                        | TileParam::Scalar
                        | TileParam::OptionalScalar
                        | TileParam::Flag
                ),
                TileArg::Axes(_) => *param == TileParam::Axes,
                TileArg::Operation(_) => *param == TileParam::Operation,
                TileArg::Lambda(..) => *param == TileParam::Predicate,
                TileArg::Body(_) => *param == TileParam::Body,
            };
            self.check(fits, span, || {
                format!("argument \"{name}\" of {} is {arg:?}", info.name)
            });
            match arg {
                TileArg::Region(region) => {
                    region.exprs().for_each(|e| self.expr(e));
                    self.access(span, &region.buffer, &region.starts(), None);
                }
                TileArg::Expr(e) => self.expr(e),
                TileArg::Lambda(vars, body) => self.scope(|s| {
                    vars.iter().for_each(|v| s.define(v, span));
                    s.condition(body);
                }),
                TileArg::Body(body) => self.body(body),
                TileArg::None | TileArg::Axes(_) | TileArg::Operation(_) => {}
            }
        }
        for value in call.config.values() {
            value.for_each_expr(&mut |e| self.expr(e));
        }
        for (_, buffer) in &call.workspace {
            self.check(self.buffers.contains(buffer), span, || {
                format!("buffer {} is used where it is not declared", buffer.name)
            });
        }
    }

    fn attr(&mut self, node: &AttrNode, key: &str, value: &Expr, body: &Stmt) {
        self.expr(value);
        self.scope(|s| {
            match node {
                AttrNode::IterVar(iter_var) => {
                    // A region may bind an index again that an outer region binds: it is the same hardware index.
                    if !s.vars.contains_key(&iter_var.var) {
                        s.define(&iter_var.var, iter_var.var.span());
                    }
                    let extent = value.dtype.is_integer() && value.dtype.is_scalar();
                    s.check(extent || key != keys::THREAD_EXTENT, value.span, || {
                        format!("the extent of {} is {}", iter_var.thread_tag, value.dtype)
                    });
                }
                AttrNode::Expr(e) => s.expr(e),
                AttrNode::Dict(items) => items
                    .iter()
                    .for_each(|(_, v)| v.for_each_expr(&mut |e| s.expr(e))),
                AttrNode::Buffer(_) | AttrNode::None | AttrNode::Str(_) => {}
            }
            s.stmt(body);
        });
    }

    fn scope_id(&mut self, def: &ScopeIdDef, span: Span) {
        for list in [&def.extents, &def.preferred].into_iter().flatten() {
            self.exprs(list);
            let ok = list.len() == def.vars.len() && list.iter().all(|e| e.dtype.is_integer());
            self.check(ok, span, || {
                format!(
                    "extents of T.{} do not fit its {} ids",
                    def.kind.name(),
                    def.vars.len()
                )
            });
        }
        def.vars.iter().for_each(|v| self.define(v, span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attrs;

    fn func(body: Vec<Stmt>) -> PrimFunc {
        let body = Stmt::seq(body);
        PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body,
            span: Span::NONE,
        }
    }

    fn local(name: &str) -> (Buffer, Stmt) {
        let buffer = Buffer::fresh(name, vec![Expr::int32(4)], DType::FLOAT32, "local", Span::NONE);
        let alloc = Stmt::new(StmtKind::AllocBuffer(buffer.clone(), vec![]), Span::NONE);
        (buffer, alloc)
    }

    fn errors(body: Vec<Stmt>) -> String {
        verify_func("f", &func(body)).map_or_else(|e| e.to_string(), |()| "none".into())
    }

    #[test]
    fn accepts_what_is_well_formed() {
        let (a, alloc) = local("a");
        let i = Var::new("i", DType::INT32);
        let body = Stmt::store(
            &a,
            vec![Expr::var(&i)],
            Expr::float(DType::FLOAT32, 1.0),
            Span::NONE,
        );
        let again = Stmt::for_serial(&i, Expr::int32(4), body.clone(), Span::NONE);
        assert_eq!(
            errors(vec![
                alloc,
                Stmt::for_serial(&i, Expr::int32(4), body, Span::NONE),
                again
            ]),
            "none"
        );
    }

    #[test]
    fn names_what_is_wrong() {
        let (a, alloc) = local("a");
        let x = Var::new("x", DType::INT32);
        let one = || Expr::float(DType::FLOAT32, 1.0);
        let zero = || vec![Expr::int32(0)];
        let store = |value| Stmt::store(&a, zero(), value, Span::NONE);
        let bind = || Stmt::bind(&x, Expr::int32(1), Span::NONE);
        for (body, message) in [
            (vec![store(one())], "buffer a is used where it is not declared"),
            (
                vec![Stmt::evaluate(Expr::var(&x)), bind()],
                "variable x is used where it is not defined",
            ),
            (
                vec![
                    Stmt::if_else(Expr::bool(true), bind(), None, Span::NONE),
                    Stmt::evaluate(Expr::var(&x)),
                ],
                "variable x is used where it is not defined",
            ),
            (vec![bind(), bind()], "variable x is defined twice"),
            (
                vec![alloc.clone(), store(Expr::int32(1))],
                "a int32 is stored to a place of float32 in `",
            ),
            (
                vec![alloc.clone(), Stmt::store(&a, vec![], one(), Span::NONE)],
                "0 indices into the 1 dimensions",
            ),
            (
                vec![Stmt::if_else(Expr::int32(1), bind(), None, Span::NONE)],
                "condition `1` is int32",
            ),
            (
                vec![Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, vec![]))],
                "T.break_loop outside of a loop",
            ),
            (
                vec![Stmt::evaluate(Expr::call(Op::Exp, DType::FLOAT32, vec![]))],
                "T.exp: takes 1 argument, found 0",
            ),
            (
                vec![Stmt::evaluate(Expr::call(Op::Exp, DType::FLOAT64, vec![one()]))],
                "`T.exp(T.float32(1.0))` has dtype float64 but its operands give float32",
            ),
            (
                vec![Stmt::evaluate(Expr::new(
                    ExprKind::Binary(BinOp::Add, Expr::int32(1), one()),
                    DType::INT32,
                    Span::NONE,
                ))],
                "Add of int32 and float32",
            ),
        ] {
            let found = errors(body);
            assert!(found.contains(message), "{found:?} does not say {message:?}");
        }
    }
}
