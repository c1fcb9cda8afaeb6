//! Calls of other functions of the module, written out.
//!
//! A kernel that calls `Module.g(x)` is compiled with the body of `g` in place of the call. A function that gives a value
//! binds names and returns an expression of them; one that gives none is any sequence of statements without a return.

use rustc_hash::FxHashMap;
use tirx_core::diagnostic::{Diagnostic, Result};
use tirx_core::intrin::Op;
use tirx_core::ir::{
    Expr, ExprKind, IRModule, Mutator, PrimFunc, Stmt, StmtKind, Var, Visitor, substitute, substitute_stmt,
};

/// Calls within calls: more is taken for recursion.
const DEEPEST: usize = 64;

/// The body of a function with the calls in it written out.
pub(super) fn inlined(module: &IRModule, func: &PrimFunc) -> Result<Stmt> {
    let mut inline = Inline {
        module,
        depth: 0,
        failed: None,
    };
    let body = inline.stmt(&func.body);
    inline.failed.map_or(Ok(body), Err)
}

struct Inline<'a> {
    module: &'a IRModule,
    depth: usize,
    failed: Option<Box<Diagnostic>>,
}

impl Inline<'_> {
    fn callee(&mut self, call: &Expr) -> Option<(PrimFunc, Vec<Expr>)> {
        let (name, args) = call.as_call(Op::CallFunction)?.split_first()?;
        let name = name.as_str().unwrap_or_default();
        match self.module.get(name) {
            Some(func) if func.params.len() == args.len() && self.depth < DEEPEST => {
                Some((func.clone(), args.to_vec()))
            }
            _ => {
                self.fail(call, &format!("the simulator cannot call `{name}`"));
                None
            }
        }
    }

    fn fail(&mut self, at: &Expr, message: &str) {
        let error = Diagnostic::new(at.span, message)
            .help("it calls functions that bind names and return a value, or that return none");
        self.failed.get_or_insert(Box::new(error));
    }

    /// The value of a call: an expression with the callee's names bound in it.
    fn value(&mut self, call: &Expr) -> Option<Expr> {
        let (func, args) = self.callee(call)?;
        let stmts = func.body.as_slice();
        let (last, before) = stmts.split_last()?;
        let result = match &last.kind {
            StmtKind::Evaluate(e) => e.as_call(Op::Ret).and_then(|args| args.first()).cloned(),
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
        // Each call has variables of its own; what is a variable of the caller stays it.
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
        let value = names
            .iter()
            .enumerate()
            .rev()
            .fold(own(&result?), |body, (i, (var, value))| {
                if i < params && value.as_var().is_some() {
                    return body;
                }
                let value = if i < params { value.clone() } else { own(value) };
                Expr::let_in(&fresh[var], value, body)
            });
        self.depth += 1;
        let value = self.expr(&value);
        self.depth -= 1;
        Some(value)
    }

    fn statements(&mut self, call: &Expr, stmt: &Stmt) -> Option<Stmt> {
        let (func, args) = self.callee(call)?;
        if returns(&func.body) {
            return None;
        }
        let mut stmts = Vec::new();
        let mut map: FxHashMap<Var, Var> = FxHashMap::default();
        for (param, arg) in func.params.iter().zip(args) {
            let var = match arg.as_var() {
                Some(var) => var.clone(),
                None => {
                    let var = param.renamed(param.name_arc());
                    stmts.push(Stmt::bind(&var, arg, stmt.span));
                    var
                }
            };
            map.insert(param.clone(), var);
        }
        stmts.push(substitute_stmt(&func.body, &|var| map.get(var).map(Expr::var)));
        self.depth += 1;
        let body = self.stmt(&Stmt::seq(stmts));
        self.depth -= 1;
        Some(body)
    }
}

impl Mutator for Inline<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let expr = self.walk_expr(expr);
        if self.failed.is_some() || expr.as_call(Op::CallFunction).is_none() {
            return expr;
        }
        self.value(&expr).unwrap_or_else(|| {
            self.fail(&expr, "the simulator cannot run this call");
            expr
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            _ if self.failed.is_some() => stmt.clone(),
            StmtKind::Evaluate(call) if call.dtype.is_void() && call.as_call(Op::CallFunction).is_some() => {
                self.statements(call, stmt).unwrap_or_else(|| {
                    self.fail(call, "the simulator cannot run this call");
                    stmt.clone()
                })
            }
            _ => self.walk_stmt(stmt),
        }
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
