//! Calls of other functions of the module, inlined.
//!
//! A kernel that calls `Module.g(x)` is compiled with the body of `g` in place of the call. A function that binds names
//! and returns an expression of them becomes that expression. Of any other the body stands before the statement that
//! calls it, as a loop of one iteration: a return leaves the value in a variable and then the loops around it.

use rustc_hash::FxHashMap;
use tirx_ir::intrin::Op;
use tirx_ir::{
    BinOp, Buffer, DType, Expr, ExprKind, IRModule, Mutator, PrimFunc, Stmt, StmtKind, Var, Visitor, at,
    substitute, substitute_stmt,
};
use tirx_source::diagnostic::{Diagnostic, Result};
use tirx_source::source::Span;

/// Deepest nesting of calls: more counts as recursion.
const DEEPEST: usize = 64;

/// The body of a function with the calls in it inlined.
pub(super) fn inlined(module: &IRModule, func: &PrimFunc) -> Result<Stmt> {
    let mut inline = Inline {
        module,
        depth: 0,
        before: Vec::new(),
        chosen: 0,
        failed: None,
    };
    let body = inline.stmt(&func.body);
    inline.failed.map_or(Ok(body), Err)
}

struct Inline<'a> {
    module: &'a IRModule,
    depth: usize,
    /// Statements that must run before the current one.
    before: Vec<Stmt>,
    /// Enclosing expressions that evaluate only some of their operands, or bind names.
    chosen: usize,
    failed: Option<Box<Diagnostic>>,
}

impl Inline<'_> {
    fn callee(&mut self, call: &Expr) -> Option<(PrimFunc, Vec<Expr>)> {
        let args = call.as_call(Op::CallFunction)?;
        let name = args
            .get(at!(CallFunction.func_name))?
            .as_str()
            .unwrap_or_default();
        let args = &args[at!(CallFunction.args)..];
        match self.module.get(name) {
            Some(func) if func.params.len() == args.len() && self.depth < DEEPEST => {
                let given = func.params.iter().zip(args);
                let converted = given.map(|(param, arg)| converted(arg, param.dtype()));
                Some((func.clone(), converted.collect()))
            }
            _ => {
                self.fail(call, &format!("the simulator cannot call `{name}`"));
                None
            }
        }
    }

    fn fail(&mut self, at: &Expr, message: &str) {
        let error = Diagnostic::new(at.span, message)
            .help("call it in a statement of its own and bind its result: x: T.let = Module.f(…)");
        self.failed.get_or_insert(Box::new(error));
    }

    /// The value of a call: an expression with the callee's names bound in it.
    fn value(&mut self, call: &Expr) -> Option<Expr> {
        let (func, args) = self.callee(call)?;
        let stmts = func.body.as_slice();
        let (last, before) = stmts.split_last()?;
        let result = match &last.kind {
            StmtKind::Evaluate(e) => e
                .as_call(Op::Ret)
                .and_then(|args| args.get(at!(Ret.value)).cloned()),
            _ => None,
        };
        let mut names: Vec<(Var, Expr)> = func.params.iter().cloned().zip(args).collect();
        for stmt in before {
            match &stmt.kind {
                StmtKind::Bind(var, value) => names.push((var.clone(), value.clone())),
                StmtKind::DeclBuffer(_) => {}
                _ => return None,
            }
        }
        // Each call gets variables of its own; the caller's variables stay as they are.
        let fresh: FxHashMap<Var, Var> = names
            .iter()
            .enumerate()
            .map(
                |(i, (var, value))| match value.as_var().filter(|_| i < func.params.len()) {
                    Some(known) => (var.clone(), known.clone()),
                    None => (var.clone(), var.renamed(var.name_arc())),
                },
            )
            .collect();
        let own = |e: &Expr| substitute(e, &|var| fresh.get(var).map(Expr::var));
        let params = func.params.len();
        let value = names.iter().enumerate().rev().fold(
            converted(&own(&result?), call.dtype),
            |body, (i, (var, value))| {
                if i < params && value.as_var().is_some() {
                    return body;
                }
                let value = if i < params { value.clone() } else { own(value) };
                Expr::let_in(&fresh[var], value, body)
            },
        );
        self.depth += 1;
        let value = self.expr(&value);
        self.depth -= 1;
        Some(value)
    }

    /// The callee's statements in place of a call, and the variable in which they leave its value.
    fn statements(&mut self, call: &Expr, span: Span) -> Option<(Stmt, Option<Buffer>)> {
        let (func, args) = self.callee(call)?;
        let mut stmts = Vec::new();
        let mut map: FxHashMap<Var, Var> = FxHashMap::default();
        for (param, arg) in func.params.iter().zip(args) {
            let var = match arg.as_var() {
                Some(var) => var.clone(),
                None => {
                    let var = param.renamed(param.name_arc());
                    stmts.push(Stmt::bind(&var, arg, span));
                    var
                }
            };
            map.insert(param.clone(), var);
        }
        let body = substitute_stmt(&func.body, &|var| map.get(var).map(Expr::var));
        let mut value = None;
        if returns(&body) {
            let local = |name: &str, dtype| Buffer::fresh(name, vec![Expr::int32(1)], dtype, "local", span);
            let mut leave = Leave {
                value: (!call.dtype.is_void()).then(|| local("value", call.dtype)),
                done: local("done", DType::INT32),
                loops: 0,
            };
            let body = leave.stmt(&body);
            let allocated = leave.value.iter().chain([&leave.done]).cloned();
            stmts.extend(allocated.map(|b| Stmt::new(StmtKind::AllocBuffer(b, Vec::new()), span)));
            stmts.push(leave.set_done(0));
            let turn = Var::new("turn", DType::INT32);
            stmts.push(Stmt::for_serial(&turn, Expr::int32(1), body, span));
            value = leave.value;
        } else {
            stmts.push(body);
        }
        stmts.iter_mut().for_each(|stmt| {
            self.depth += 1;
            *stmt = self.stmt(stmt);
            self.depth -= 1;
        });
        Some((Stmt::seq(stmts), value))
    }

    /// The value of a call whose statements stand before the one that calls.
    fn hoisted(&mut self, call: &Expr) -> Option<Expr> {
        if self.chosen > 0 {
            return None;
        }
        let (stmt, value) = self.statements(call, call.span)?;
        self.before.push(stmt);
        Some(Expr::load(&value?, vec![Expr::int32(0)]))
    }
}

/// A value as a parameter or result of another dtype takes it in C++.
fn converted(value: &Expr, dtype: DType) -> Expr {
    let scalar = |d: DType| !d.is_handle() && !d.is_void();
    match value.dtype != dtype && scalar(value.dtype) && scalar(dtype) {
        true => value.clone().cast(dtype),
        false => value.clone(),
    }
}

/// Turns each return into a `break` out of a loop of one iteration.
struct Leave {
    value: Option<Buffer>,
    done: Buffer,
    /// The function's own loops around the statement.
    loops: usize,
}

impl Leave {
    fn set_done(&self, value: i32) -> Stmt {
        let (at, value) = (vec![Expr::int32(0)], Expr::int32(value));
        Stmt::store(&self.done, at, value, Span::NONE)
    }
}

fn leave_loop() -> Stmt {
    Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, Vec::new()))
}

impl Mutator for Leave {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Evaluate(e) => {
                let given = match &e.kind {
                    ExprKind::Call { op: Op::Ret, args } => args.get(at!(Ret.value)),
                    ExprKind::Call {
                        op: Op::ThreadReturn, ..
                    } => None,
                    _ => return stmt.clone(),
                };
                let mut stmts = Vec::new();
                if let (Some(buffer), Some(value)) = (&self.value, given) {
                    let value = value.clone().cast(buffer.dtype);
                    stmts.push(Stmt::store(buffer, vec![Expr::int32(0)], value, stmt.span));
                }
                if self.loops > 0 {
                    stmts.push(self.set_done(1));
                }
                stmts.push(leave_loop());
                Stmt::seq(stmts)
            }
            StmtKind::For(_) | StmtKind::While(..) if returns(stmt) => {
                self.loops += 1;
                let inner = self.walk_stmt(stmt);
                self.loops -= 1;
                let done = Expr::load(&self.done, vec![Expr::int32(0)]);
                let done = Expr::binary(BinOp::Ne, done, Expr::int32(0));
                Stmt::seq([inner, Stmt::if_else(done, leave_loop(), None, stmt.span)])
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

impl Mutator for Inline<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let chooses = match &expr.kind {
            ExprKind::Binary(op, ..) => op.is_logical(),
            ExprKind::Call { op, .. } => *op == Op::IfThenElse,
            ExprKind::Let(..) => true,
            _ => false,
        };
        self.chosen += chooses as usize;
        let expr = self.walk_expr(expr);
        self.chosen -= chooses as usize;
        if self.failed.is_some() || expr.as_call(Op::CallFunction).is_none() {
            return expr;
        }
        let value = self.value(&expr);
        value.or_else(|| self.hoisted(&expr)).unwrap_or_else(|| {
            self.fail(&expr, "the simulator cannot run this call");
            expr
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if self.failed.is_some() {
            return stmt.clone();
        }
        let around = std::mem::take(&mut self.before);
        let result = match &stmt.kind {
            StmtKind::Evaluate(call) if call.dtype.is_void() && call.as_call(Op::CallFunction).is_some() => {
                let call = self.walk_expr(call);
                match self.statements(&call, stmt.span) {
                    Some((stmts, _)) => stmts,
                    None => {
                        self.fail(&call, "the simulator cannot run this call");
                        stmt.clone()
                    }
                }
            }
            // The condition is evaluated in each iteration.
            StmtKind::While(condition, body) => {
                self.chosen += 1;
                let condition = self.expr(condition);
                self.chosen -= 1;
                let body = self.stmt(body);
                Stmt::new(StmtKind::While(condition, body), stmt.span)
            }
            _ => self.walk_stmt(stmt),
        };
        let mut stmts = std::mem::replace(&mut self.before, around);
        stmts.push(result);
        Stmt::seq(stmts)
    }
}

fn returns(body: &Stmt) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 |= matches!(
                expr.kind,
                ExprKind::Call {
                    op: Op::Ret | Op::ThreadReturn,
                    ..
                }
            );
            self.walk_expr(expr);
        }
    }
    let mut find = Find(false);
    find.visit_stmt(body);
    find.0
}

/// Whether a function calls another.
pub(super) fn calls(func: &PrimFunc) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 |= expr.as_call(Op::CallFunction).is_some();
            self.walk_expr(expr);
        }
    }
    let mut find = Find(false);
    find.visit_stmt(&func.body);
    find.0
}
