//! Device functions that the host launches by calling them.
//!
//! A function whose target is the GPU alone and that binds threads is a kernel already: the host function that calls
//! it (`Module.k(A.data, n)`) launches it, with the extents that the kernel computes from its parameters.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::launch::LaunchParameters;
use super::{Flags, limits};
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::ir::abi::is_subroutine;
use crate::ir::at;
use crate::ir::{DType, Expr, IRModule, Mutator, Stmt, StmtKind, Var, Visitor, substitute};
use crate::transform::PassContext;

/// A kernel that is called by name.
pub(super) struct Callee {
    symbol: Arc<str>,
    params: Vec<Var>,
    /// Launch arguments, in terms of the parameters.
    launch: Vec<Expr>,
}

/// Makes kernels of the device functions that bind threads.
pub(super) fn kernels(module: &mut IRModule, context: &PassContext) -> Result<FxHashMap<Arc<str>, Callee>> {
    let mut callees = FxHashMap::default();
    for (name, func) in &mut module.functions {
        if !is_subroutine(func) {
            continue;
        }
        let mut launch = LaunchParameters::default();
        let body = launch.stmt(&func.body);
        if launch.extents.is_empty() {
            continue;
        }
        if let Some(error) = launch.failed {
            return Err(error);
        }
        limits::check(&launch, &body, &context.targets(func))?;
        let flags = Flags::of_function(&func.attrs).or(launch.flags);
        let symbol: Arc<str> = func.global_symbol().unwrap_or(name).into();
        let args = launch.describe(flags, symbol.clone(), &mut func.attrs);
        func.body = body;
        callees.insert(
            name.clone(),
            Callee {
                symbol,
                params: func.params.clone(),
                launch: args,
            },
        );
    }
    Ok(callees)
}

/// The launch for a statement of the host function that calls a kernel.
pub(super) fn launch(stmt: &Stmt, callees: &FxHashMap<Arc<str>, Callee>) -> Option<Stmt> {
    let StmtKind::Evaluate(call) = &stmt.kind else {
        return None;
    };
    let args = call.as_call(Op::CallFunction)?;
    let callee = callees.get(args[at!(CallFunction.func_name)].as_str()?)?;
    let given = &args[at!(CallFunction.args)..];
    let value = |var: &Var| {
        let position = callee.params.iter().position(|param| param == var)?;
        given.get(position).cloned()
    };
    let mut args = vec![Expr::string(callee.symbol.clone())];
    args.extend(given.iter().cloned());
    args.extend(callee.launch.iter().map(|extent| substitute(extent, &value)));
    let launch = Expr::call(Op::TvmCallPacked, DType::INT32, args).at(call.span);
    Some(Stmt::new(StmtKind::Evaluate(launch), stmt.span))
}

/// Rejects the remaining calls of kernels in a host function.
pub(super) fn refuse(body: &Stmt) -> Result<()> {
    struct Find(Option<Box<Diagnostic>>);
    impl Visitor for Find {
        fn visit_expr(&mut self, expr: &Expr) {
            if let Some(args) = expr.as_call(Op::CallFunction) {
                let name = args[at!(CallFunction.func_name)].as_str().unwrap_or_default();
                let message = format!("host code calls `{name}`, which is no kernel");
                self.0
                    .get_or_insert(Box::new(Diagnostic::new(expr.span, message).help(
                        "a kernel that is called binds threads itself and says that it runs on the GPU: \
                     T.func_attr({\"target\": T.target({\"kind\": \"cuda\", \"arch\": \"sm_90a\"})})",
                    )));
            }
            self.walk_expr(expr);
        }
    }
    let mut find = Find(None);
    find.visit_stmt(body);
    find.0.map_or(Ok(()), Err)
}
