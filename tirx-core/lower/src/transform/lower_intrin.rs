//! LowerIntrin: replaces operators that C does not have by those that it has.
//!
//! **Floor division.** CUDA's `/` and `%` truncate. With `q = a / b`, `r = a % b` (truncating):
//!
//! | what is known | `a // b` | `a % b` |
//! |---|---|---|
//! | `b` is a power of two, scalar | `a >> log2(b)` | `a & (b - 1)` |
//! | unsigned, or `a >= 0` and `b >= 0` | `q` | `r` |
//! | `a >= -c * b`, nothing overflows | `(a + c * b) / b - c` | `(a + c * b) % b` |
//! | `b >= 0`, 32 bits or more | `q + (r >> 31)` | `r + (b & (r >> 31))` |
//! | `b >= 0` | `r >= 0 ? q : q - 1` | `r >= 0 ? r : r + b` |
//! | nothing | by the signs of `b` and `r` | by the signs of `b` and `r` |
//!
//! `r >> 31` is -1 where the remainder is negative and 0 elsewhere: no branch, no compare. What is known comes from
//! the arithmetic analyzer: ranges of thread indices and loops, values of bindings, conditions around.
//!
//! **Others.** `sigmoid(x)` is `1 / (1 + exp(-x))`; the warp shuffles and the active mask of TIR are those of CUDA.
//! Fixed-point products become plain arithmetic, `print_buffer` loops of `printf`. A `tvm_access_ptr` is the address of an element. Math functions stay operators, so that the simulator computes what they mean; code generation spells them.
//!
//! Device functions are lowered, and host functions where they are finalized: a launcher is printed from a host function
//! that is not, in a language that has floor division.
//!
//! **Cost.** One walk; bounds are computed once per division.

use crate::ir::abi::keys;
use crate::ir::at;
use rustc_hash::FxHashMap;

use super::{PassContext, fixed_point, print_buffer};
use crate::arith::Analyzer;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::{is_host, runs_on_device};
use crate::ir::{
    Attr, AttrNode, BinOp, Buffer, BufferNode, DType, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc,
    Stmt, StmtKind, Var, is_pure,
};
use crate::source::Span;

/// Lowers the device functions, and the host functions where they are finalized.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| {
        let meant = runs_on_device(&func) || context.finalize_host && is_host(&func);
        if !meant {
            return func;
        }
        let mut pass = LowerIntrin {
            analyzer: Analyzer::new(),
            buffers: FxHashMap::default(),
        };
        let body = pass.stmt(&func.body);
        PrimFunc { body, ..func }
    }))
}

struct LowerIntrin {
    analyzer: Analyzer,
    /// Declared buffers by data pointer.
    buffers: FxHashMap<Var, Vec<Buffer>>,
}

impl LowerIntrin {
    /// Lowers a body in which `condition` holds.
    fn under(&mut self, condition: &Expr, body: impl FnOnce(&mut Self) -> Stmt) -> Stmt {
        let scope = self.analyzer.enter_constraint(condition);
        let result = body(self);
        self.analyzer.leave(scope);
        result
    }

    fn under_expr(&mut self, condition: &Expr, body: &Expr) -> Expr {
        // Learning a condition costs more than all else here.
        if !divides(body) {
            return self.expr(body);
        }
        let scope = self.analyzer.enter_constraint(condition);
        let result = self.expr(body);
        self.analyzer.leave(scope);
        result
    }

    /// `a // b` (or `a % b`) of lowered operands; the analyzer is asked about the original ones.
    fn floor(&mut self, modulo: bool, original: (&Expr, &Expr), a: Expr, b: Expr, span: Span) -> Expr {
        let dtype = a.dtype;
        let constant = const_value(&b);
        if let Some(b) = constant.filter(|b| *b > 0 && b & (b - 1) == 0)
            && dtype.is_scalar()
        {
            let (op, operand) = if modulo {
                (Op::BitwiseAnd, b - 1)
            } else {
                (Op::ShiftRight, b.trailing_zeros() as i128)
            };
            return Expr::call(op, dtype, vec![a, Expr::constant(dtype, operand)]);
        }
        let quotient = |a: Expr, b: Expr| Expr::binary(BinOp::Div, a, b).at(span);
        let remainder = |a: Expr, b: Expr| Expr::binary(BinOp::Mod, a, b).at(span);
        let truncating = |a: Expr, b: Expr| if modulo { remainder(a, b) } else { quotient(a, b) };
        if dtype.is_uint() {
            return truncating(a, b);
        }
        let zero = || Expr::constant(dtype, 0);
        let one = || Expr::constant(dtype, 1);
        if constant.is_some_and(|b| b > 0) || self.not_negative(original.1) {
            if self.not_negative(original.0) {
                return truncating(a, b);
            }
            if let Some(count) = constant.and_then(|b| self.shift(original.0, b))
                && dtype.is_scalar()
            {
                let moved = Expr::constant(dtype, count * constant.unwrap_or(1));
                let moved = Expr::binary(BinOp::Add, a, moved);
                return if modulo {
                    remainder(moved, b)
                } else {
                    Expr::binary(BinOp::Sub, quotient(moved, b), Expr::constant(dtype, count))
                };
            }
            // The remainder is repeated where that costs nothing; otherwise it gets a name.
            return named(&a, |a| {
                named(&b, |b| {
                    let rest = remainder(a.clone(), b.clone());
                    if dtype.bits >= 32 && dtype.is_scalar() {
                        let bits = Expr::constant(dtype, dtype.bits as i128 - 1);
                        let sign = Expr::call(Op::ShiftRight, dtype, vec![rest.clone(), bits]);
                        return if modulo {
                            let correction = Expr::call(Op::BitwiseAnd, dtype, vec![b, sign]);
                            Expr::binary(BinOp::Add, rest, correction)
                        } else {
                            Expr::binary(BinOp::Add, quotient(a, b), sign)
                        };
                    }
                    let right = Expr::binary(BinOp::Ge, rest.clone(), zero());
                    if modulo {
                        Expr::select(right, rest.clone(), Expr::binary(BinOp::Add, rest, b))
                    } else {
                        let q = quotient(a, b);
                        Expr::select(right, q.clone(), Expr::binary(BinOp::Sub, q, one()))
                    }
                })
            });
        }
        named(&a, |a| {
            named(&b, |b| {
                let rest = Var::new("rmod", dtype);
                let r = || Expr::var(&rest);
                let compare = |op: BinOp, x: Expr| Expr::binary(op, x, zero());
                // The truncated result is right where the remainder is zero or has the divisor's sign.
                let right = match constant {
                    Some(b) if b < 0 => compare(BinOp::Le, r()),
                    _ => Expr::binary(
                        BinOp::Or,
                        Expr::binary(BinOp::And, compare(BinOp::Ge, b.clone()), compare(BinOp::Ge, r())),
                        Expr::binary(BinOp::And, compare(BinOp::Lt, b.clone()), compare(BinOp::Le, r())),
                    ),
                };
                let value = remainder(a.clone(), b.clone());
                let body = if modulo {
                    Expr::select(right, r(), Expr::binary(BinOp::Add, r(), b))
                } else {
                    let result = Var::new("rdiv", dtype);
                    let q = || Expr::var(&result);
                    let choice = Expr::select(right, q(), Expr::binary(BinOp::Sub, q(), one()));
                    Expr::let_in(&result, quotient(a, b), choice)
                };
                Expr::let_in(&rest, value, body)
            })
        })
    }

    /// `address_of` the element that a `tvm_access_ptr` points to, where a buffer of the element type is declared over
    /// the pointer.
    fn access_ptr(&mut self, args: &[Expr]) -> Option<Expr> {
        let over = self.buffers.get(args[at!(TvmAccessPtr.data)].as_var()?)?;
        let element = args[at!(TvmAccessPtr.ptype)].dtype;
        let buffer = over.iter().find(|b| b.dtype == element)?.clone();
        let load = Expr::load(&buffer, vec![self.expr(&args[at!(TvmAccessPtr.offset)])]);
        Some(Expr::call(Op::AddressOf, DType::HANDLE, vec![load]))
    }

    /// `print_buffer` as loops over the elements behind the pointer.
    fn print_buffer(&mut self, call: &Expr) -> Option<Stmt> {
        let ExprKind::Call {
            op: Op::PrintBuffer,
            args,
        } = &call.kind
        else {
            return None;
        };
        // Is it a string? A scalar? The number of dimensions, and the extents.
        let [text, scalar, _, shape @ ..] = &args[at!(PrintBuffer.rest)..] else {
            return None;
        };
        let data = args[at!(PrintBuffer.buffer_var)].as_var();
        let data = data.filter(|_| text.is_int(0))?;
        let dtype: DType = args[at!(PrintBuffer.dtype)].as_str()?.parse().ok()?;
        let shape = self.exprs(shape);
        let count = (shape.iter().cloned()).reduce(|a, b| Expr::binary(BinOp::Mul, a, b));
        let count = count.unwrap_or(Expr::constant(DType::INT32, 1));
        let buffer = BufferNode::flat(data.name(), data.clone(), dtype, vec![count], call.span);
        let buffer = Buffer::new(buffer);
        let printed = print_buffer::lower(&buffer, &shape, scalar.is_int(1), call.span)?;
        Some(Stmt::seq([
            Stmt::new(StmtKind::DeclBuffer(buffer), call.span),
            printed,
        ]))
    }

    fn not_negative(&mut self, expr: &Expr) -> bool {
        self.analyzer.can_prove_at_least(expr, 0)
            || expr.dtype.is_scalar()
                && self.analyzer.can_prove(&Expr::binary(
                    BinOp::Ge,
                    expr.clone(),
                    Expr::constant(expr.dtype, 0),
                ))
    }

    /// How many times `b` must be added to `a` to make it non-negative, where that is known and cannot overflow.
    fn shift(&mut self, a: &Expr, b: i128) -> Option<i128> {
        let bound = self.analyzer.const_int_bound(a);
        let (least, most) = (a.dtype.min_int()?, a.dtype.max_int()?);
        if bound.min <= least || bound.min >= 0 {
            return None;
        }
        let count = (-bound.min + b - 1) / b;
        // The added number must be in the dtype, too.
        let added = count * b;
        (added <= most && bound.max.min(most) + added <= most).then_some(count)
    }
}

/// Whether a division is in it, whose operands' ranges are asked for.
fn divides(expr: &Expr) -> bool {
    matches!(
        &expr.kind,
        ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, ..)
    ) || expr.operands().any(divides)
}

/// The constant in all lanes.
fn const_value(expr: &Expr) -> Option<i128> {
    match &expr.kind {
        ExprKind::Broadcast { value, .. } => value.as_int(),
        _ => expr.as_int(),
    }
}

/// An operand that is used several times gets a name if it has an effect or is large: nested divisions would otherwise
/// grow without bound.
fn named(operand: &Expr, body: impl FnOnce(Expr) -> Expr) -> Expr {
    const LARGE: u32 = 32;
    if operand.size() <= LARGE && repeatable(operand) {
        return body(operand.clone());
    }
    let var = Var::new("operand", operand.dtype);
    let body = body(Expr::var(&var));
    Expr::let_in(&var, operand.clone(), body)
}

/// Whether evaluating twice gives the same value and has no further effect: reading memory is fine within one
/// expression.
fn repeatable(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::BufferLoad { indices, .. } => indices.iter().all(repeatable),
        ExprKind::Call { op, args } => {
            op.effect() <= crate::intrin::Effect::Pure && args.iter().all(repeatable)
        }
        _ => expr.operands().all(repeatable),
    }
}

impl Mutator for LowerIntrin {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                if expr.dtype.is_floating() {
                    // The floor of the exact quotient, and its remainder.
                    let quotient = Expr::binary(BinOp::Div, x.clone(), y.clone());
                    let floor = Expr::call(Op::Floor, expr.dtype, vec![quotient]);
                    return match op {
                        BinOp::FloorDiv => floor,
                        _ => Expr::binary(BinOp::Sub, x, Expr::binary(BinOp::Mul, floor, y)),
                    }
                    .at(span);
                }
                self.floor(*op == BinOp::FloorMod, (a, b), x, y, span).at(span)
            }
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b)
                if b.is_int(0) && a.as_binary(BinOp::FloorMod).is_some() && !a.dtype.is_floating() =>
            {
                // Whatever the signs, the truncating remainder is zero where the other is.
                let ExprKind::Binary(_, x, y) = &a.kind else {
                    return self.walk_expr(expr);
                };
                let rest = Expr::binary(BinOp::Mod, self.expr(x), self.expr(y)).at(a.span);
                Expr::binary(*op, rest, b.clone()).at(span)
            }
            ExprKind::Binary(BinOp::And, a, b) => {
                let (x, y) = (self.expr(a), self.under_expr(a, b));
                if x.same_node(a) && y.same_node(b) {
                    expr.clone()
                } else {
                    Expr::binary(BinOp::And, x, y).at(span)
                }
            }
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } => {
                let given = &args[at!(IfThenElse.cond)];
                let condition = self.expr(given);
                let then = self.under_expr(given, &args[at!(IfThenElse.t)]);
                let otherwise = Expr::logical_not(given.clone());
                let otherwise = self.under_expr(&otherwise, &args[at!(IfThenElse.f)]);
                Expr::call(Op::IfThenElse, expr.dtype, vec![condition, then, otherwise]).at(span)
            }
            ExprKind::Call {
                op: Op::Sigmoid,
                args,
            } => {
                let x = self.expr(&args[at!(Sigmoid.x)]);
                let constant = |v: f64| Expr::float(expr.dtype, v);
                let negated = Expr::binary(BinOp::Sub, constant(0.0), x);
                let exp = Expr::call(Op::Exp, expr.dtype, vec![negated]);
                let sum = Expr::binary(BinOp::Add, constant(1.0), exp);
                Expr::binary(BinOp::Div, constant(1.0), sum).at(span)
            }
            ExprKind::Call { op, args } if shuffle(*op).is_some() => {
                // CUDA's shuffles take no warp size: it is always 32.
                const WARP_SIZE: usize =
                    at!(TvmWarpShuffle | TvmWarpShuffleUp | TvmWarpShuffleDown | TvmWarpShuffleXor.warp_size);
                let args = self.exprs(&args[..WARP_SIZE]);
                let op = shuffle(*op).unwrap_or(*op);
                Expr::new(ExprKind::Call { op, args }, expr.dtype, span)
            }
            ExprKind::Call {
                op: op @ (Op::QMultiplyShift | Op::QMultiplyShiftPerAxis),
                args,
            } => {
                let lowered = self.exprs(args);
                let plain = match op {
                    Op::QMultiplyShift => fixed_point::multiply_shift(&lowered),
                    _ => fixed_point::multiply_shift_per_axis(&lowered),
                };
                plain.map_or_else(|| expr.clone(), |e| e.at(span))
            }
            ExprKind::Call {
                op: Op::TvmAccessPtr,
                args,
            } => match self.access_ptr(args) {
                Some(pointer) => pointer.at(span),
                None => self.walk_expr(expr),
            },
            ExprKind::Call {
                op: Op::TvmWarpActivemask,
                ..
            } => Expr::call(Op::CudaActivemask, DType::UINT32, vec![]).at(span),
            ExprKind::Let(var, value, _) => {
                if is_pure(value) {
                    self.analyzer.bind_facts_of(var, value);
                }
                self.walk_expr(expr)
            }
            _ => self.walk_expr(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Bind(var, value) => {
                let new = self.walk_stmt(stmt);
                if var.dtype().is_integer() {
                    self.analyzer.bind_facts_of(var, value);
                }
                new
            }
            StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => {
                self.buffers
                    .entry(buffer.data.clone())
                    .or_default()
                    .push(buffer.clone());
                stmt.clone()
            }
            StmtKind::For(ForLoop { var, min, extent, .. }) => {
                let scope = self.analyzer.scope();
                self.analyzer.bind(var, min, extent);
                let new = self.walk_stmt(stmt);
                self.analyzer.leave(scope);
                new
            }
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iter),
                key,
                value,
                ..
            }) if &**key == keys::THREAD_EXTENT => {
                // Not `bind`: an index of extent one is not replaced by zero this late.
                let zero = Expr::constant(value.dtype, 0);
                let last = self.analyzer.const_int_bound(value).max - 1;
                let bound = crate::arith::ConstIntBound::new(0, last);
                let bound = bound.intersect(crate::arith::ConstIntBound::of_dtype(zero.dtype));
                self.analyzer.set_bound(&iter.var, bound);
                self.walk_stmt(stmt)
            }
            StmtKind::If(condition, then, otherwise) => {
                let lowered = self.expr(condition);
                let then2 = self.under(condition, |this| this.stmt(then));
                let otherwise2 = otherwise.as_ref().map(|stmt| {
                    let negated = Expr::logical_not(condition.clone());
                    self.under(&negated, |this| this.stmt(stmt))
                });
                let same_else = match (otherwise, &otherwise2) {
                    (Some(a), Some(b)) => a.same_node(b),
                    _ => true,
                };
                if lowered.same_node(condition) && then2.same_node(then) && same_else {
                    return stmt.clone();
                }
                Stmt::if_else(lowered, then2, otherwise2, stmt.span)
            }
            StmtKind::Evaluate(call) => match self.print_buffer(call) {
                Some(printed) => printed,
                None => self.walk_stmt(stmt),
            },
            _ => self.walk_stmt(stmt),
        }
    }
}

/// CUDA's shuffle for TIR's.
fn shuffle(op: Op) -> Option<Op> {
    Some(match op {
        Op::TvmWarpShuffle => Op::CudaShflSync,
        Op::TvmWarpShuffleUp => Op::CudaShflUpSync,
        Op::TvmWarpShuffleDown => Op::CudaShflDownSync,
        Op::TvmWarpShuffleXor => Op::CudaShflXorSync,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::fold;
    use crate::ir::print_expr;
    use crate::ir::substitute;

    fn lower(expr: &Expr, bounds: &[(&Var, i128, i128)]) -> Expr {
        let mut pass = LowerIntrin {
            analyzer: Analyzer::new(),
            buffers: FxHashMap::default(),
        };
        for (var, min, max) in bounds {
            let bound = crate::arith::ConstIntBound::new(*min, *max);
            pass.analyzer.set_bound(var, bound);
        }
        pass.expr(expr)
    }

    fn eval(expr: &Expr) -> i128 {
        let wrap = |v: i128| expr.dtype.wrap(v);
        match &expr.kind {
            ExprKind::Int(v) => *v,
            ExprKind::Binary(op, a, b) => {
                fold::eval_int(*op, a.dtype, eval(a), eval(b)).expect("no division by zero")
            }
            ExprKind::Select(c, t, f) => match eval(c) {
                0 => eval(f),
                _ => eval(t),
            },
            ExprKind::Let(v, value, body) => {
                let value = Expr::constant(v.dtype(), eval(value));
                eval(&substitute(body, &|w| (w == v).then(|| value.clone())))
            }
            ExprKind::Call { op, args } => match op {
                Op::ShiftRight => wrap(eval(&args[0]) >> eval(&args[1])),
                Op::BitwiseAnd => wrap(eval(&args[0]) & eval(&args[1])),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Every form gives Python's results.
    #[test]
    fn floor_division_is_exact() {
        for dtype in [DType::INT8, DType::INT32, DType::INT64] {
            let (a, b) = (Var::new("a", dtype), Var::new("b", dtype));
            let values = [-128i128, -127, -17, -8, -7, -1, 0, 1, 6, 7, 8, 100, 127];
            for op in [BinOp::FloorDiv, BinOp::FloorMod] {
                for y in [-7i128, -1, 1, 2, 3, 7, 8, 64, 100] {
                    for bounds in [vec![], vec![(&a, -20, 20)], vec![(&b, 1, 127)]] {
                        let constant = Expr::binary(op, Expr::var(&a), Expr::constant(dtype, y));
                        let variable = Expr::binary(op, Expr::var(&a), Expr::var(&b));
                        let (constant, variable) = (lower(&constant, &bounds), lower(&variable, &bounds));
                        for x in values {
                            let outside = |v: &Var, value: i128| {
                                bounds
                                    .iter()
                                    .any(|(w, min, max)| *w == v && !(*min..=*max).contains(&value))
                            };
                            // -128 / -1 overflows int8.
                            if outside(&a, x) || outside(&b, y) || (dtype.bits == 8 && x == -128 && y == -1) {
                                continue;
                            }
                            let expected = fold::eval_int(op, dtype, x, y).unwrap();
                            for lowered in [&constant, &variable] {
                                let at = substitute(lowered, &|v| match v {
                                    v if *v == a => Some(Expr::constant(dtype, x)),
                                    v if *v == b => Some(Expr::constant(dtype, y)),
                                    _ => None,
                                });
                                assert_eq!(eval(&at), expected, "{x} {op:?} {y}: {}", print_expr(lowered));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_known_decides_the_form() {
        let x = Var::new("x", DType::INT32);
        let over = |b: i32| Expr::binary(BinOp::FloorDiv, Expr::var(&x), Expr::int32(b));
        assert_eq!(print_expr(&lower(&over(8), &[])), "T.shift_right(x, 3)");
        assert_eq!(print_expr(&lower(&over(7), &[(&x, 0, 63)])), "T.Div(x, 7)");
        assert_eq!(
            print_expr(&lower(&over(7), &[(&x, -5, 63)])),
            "T.Div(x + 7, 7) - 1"
        );
        // The least multiple of seven to be added is no `int32`.
        assert_eq!(
            print_expr(&lower(&over(7), &[(&x, -i128::from(i32::MAX), -1000)])),
            "T.Div(x, 7) + T.shift_right(T.truncmod(x, 7), 31)"
        );
        assert_eq!(
            print_expr(&lower(&over(7), &[])),
            "T.Div(x, 7) + T.shift_right(T.truncmod(x, 7), 31)"
        );
        let y = Var::new("y", DType::INT32);
        let difference = Expr::binary(BinOp::Sub, Expr::var(&x), Expr::var(&y));
        let rest = Expr::binary(BinOp::FloorMod, difference, Expr::int32(7));
        let less = Expr::binary(BinOp::Lt, Expr::var(&x), Expr::var(&y));
        let chosen = Expr::call(Op::IfThenElse, DType::INT32, vec![less, Expr::int32(0), rest]);
        assert_eq!(
            print_expr(&lower(&chosen, &[])),
            "T.if_then_else(x < y, 0, T.truncmod(x - y, 7))"
        );
    }
}
