//! BindTarget: gives every function the target that it runs on.
//!
//! A function without a `target` gets the GPU of the compilation with its host: its launches go to the GPU, the rest
//! runs on the host. A private function that has no launch of its own and that another function calls is code of the
//! GPU alone. (TVM 0.26 requires an attribute on such a function and fails without it.)
//!
//! What a kernel asks of its target is answered here too: see `target_choices`.

use crate::ir::abi::keys;
use crate::ir::at;
use rustc_hash::FxHashSet;

use super::{PassContext, Target, target_choices};
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::{
    Attr, AttrValue, Expr, ExprKind, ForKind, ForLoop, IRModule, PrimFunc, Stmt, StmtKind, Visitor,
};

/// Binds the target of the context.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    let mut called = Called::default();
    if module.functions.len() > 1 {
        module
            .functions
            .iter()
            .for_each(|(_, f)| called.visit_stmt(&f.body));
    }
    let mut module = module;
    for (name, func) in &mut module.functions {
        if let Some(body) = target_choices::resolved(func, context) {
            func.body = body;
        }
        let public = func.global_symbol().is_some();
        if let Some(target) = func.attrs.get_mut("target") {
            // A public function is called through its host part.
            if let AttrValue::Target(fields) = target
                && public
            {
                let host = || AttrValue::Dict(Target::host_fields());
                fields.entry("host".into()).or_insert_with(host);
            }
            continue;
        }
        let private = !public && called.0.contains(&**name);
        let target = match private && !has_launch(func) {
            true => context.target.device_attr(),
            false => context.target.to_attr(),
        };
        func.attrs.insert("target".into(), target);
    }
    Ok(module)
}

/// The functions that are called by name.
#[derive(Default)]
struct Called(FxHashSet<String>);

impl Visitor for Called {
    fn visit_expr(&mut self, expr: &Expr) {
        if let Some(args) = expr.as_call(Op::CallFunction) {
            let name = args[at!(CallFunction.func_name)].as_str();
            self.0.extend(name.map(String::from));
        }
        self.walk_expr(expr);
    }
}

fn has_launch(func: &PrimFunc) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= match &stmt.kind {
                StmtKind::Attr(Attr { key, .. }) => {
                    matches!(&**key, keys::THREAD_EXTENT | keys::DEVICE_ENTRY)
                }
                StmtKind::For(ForLoop { kind, .. }) => matches!(kind, ForKind::ThreadBinding),
                _ => false,
            };
            self.walk_stmt(stmt);
        }
        fn visit_expr(&mut self, expr: &Expr) {
            if !matches!(expr.kind, ExprKind::Var(_)) {
                self.walk_expr(expr);
            }
        }
    }
    let mut find = Find(false);
    find.visit_stmt(&func.body);
    find.0
}
