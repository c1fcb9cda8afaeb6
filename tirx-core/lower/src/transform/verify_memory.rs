//! VerifyMemory: host code does not touch device memory. It also warns of loops that poll such memory (`polls.rs`).
//!
//! **Idea.** A tensor parameter points to memory of the GPU. Outside a launch the program runs on the host, where
//! dereferencing such a pointer would crash or corrupt memory. Each load and store outside of every `thread_extent`
//! region whose buffer lies in memory that came with a parameter is an error at the access.
//!
//! **Cost.** One walk of the host part.

use crate::ir::abi::keys;
use rustc_hash::FxHashMap;

use super::PassContext;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::intrin::Op;
use crate::ir::abi::runs_on_device;
use crate::ir::{
    Attr, AttrNode, Buffer, BufferStore, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, Var, Visitor,
};
use crate::source::Span;

/// Checks every function that is not a device function already.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    let mut errors = Vec::new();
    for (_, func) in &module.functions {
        super::polls::warnings(func)
            .into_iter()
            .for_each(|w| context.warn(w));
        if !runs_on_device(func) {
            check(func, &mut errors);
        }
    }
    if errors.is_empty() {
        Ok(module)
    } else {
        Err(Diagnostics(errors))
    }
}

fn check(func: &PrimFunc, errors: &mut Vec<Diagnostic>) {
    let mut visitor = Host {
        device: func
            .buffer_map
            .iter()
            .map(|(_, b)| (b.data.clone(), b.clone()))
            .collect(),
        errors,
        span: func.span,
    };
    visitor.visit_stmt(&func.body);
}

struct Host<'a> {
    /// Data pointers of the parameters, with the buffer the user declared.
    device: FxHashMap<Var, Buffer>,
    errors: &'a mut Vec<Diagnostic>,
    span: Span,
}

impl Host<'_> {
    fn access(&mut self, buffer: &Buffer, what: &str, span: Span) {
        let Some(parameter) = self.device.get(&buffer.data) else {
            return;
        };
        let message = format!("host code {what} \"{}\", which is device memory", parameter.name);
        self.errors.push(
            Diagnostic::new(span.or(self.span), message)
                .label("runs on the host")
                .note(
                    parameter.span,
                    format!("\"{}\" is a tensor on the GPU", parameter.name),
                )
                .help("put T.device_entry() and the scope ids before it"),
        );
    }
}

impl Visitor for Host<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            // Taking the address is no access; its indices are read.
            ExprKind::Call {
                op: Op::AddressOf,
                args,
            } if matches!(&args[..], [place] if matches!(place.kind, ExprKind::BufferLoad { .. })) => {
                args.iter().for_each(|place| self.walk_expr(place));
            }
            ExprKind::BufferLoad { buffer, .. } => {
                self.access(buffer, "reads", expr.span);
                self.walk_expr(expr);
            }
            _ => self.walk_expr(expr),
        }
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        match &stmt.kind {
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(_),
                key,
                value,
                ..
            }) if &**key == keys::THREAD_EXTENT => self.visit_expr(value),
            StmtKind::BufferStore(BufferStore { buffer, .. }) => {
                self.access(buffer, "writes", stmt.span);
                self.walk_stmt(stmt);
            }
            _ => self.walk_stmt(stmt),
        }
        self.span = outer;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Target};
    use super::*;
    use crate::ir::{Attrs, DType, IterKind, IterVar};
    use crate::source::SourceMap;

    #[test]
    fn a_store_outside_the_launch_is_an_error() {
        let a = Buffer::fresh("A", vec![Expr::int32(64)], DType::INT32, "global", Span::NONE);
        let param = Var::new("p", DType::HANDLE);
        let store = Stmt::store(&a, vec![Expr::int32(0)], Expr::int32(1), Span::NONE);
        let iter = IterVar {
            var: Var::new("t", DType::INT32),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: "threadIdx.x".into(),
        };
        let inside = Stmt::attr(
            AttrNode::IterVar(iter),
            "thread_extent",
            Expr::int32(1),
            store.clone(),
            Span::NONE,
        );
        let module = |body| {
            let func = PrimFunc {
                params: vec![param.clone()],
                buffer_map: vec![(param.clone(), a.clone())],
                ret: None,
                attrs: Attrs::new(),
                body,
                span: Span::NONE,
            };
            IRModule::single("main", func, SourceMap::new())
        };
        let context = PassContext::new(Target::SM_90A, &Options::default());
        assert!(run(module(inside.clone()), &context).is_ok());
        let errors = run(module(Stmt::seq([store, inside])), &context).unwrap_err();
        assert_eq!(errors.0.len(), 1);
        assert_eq!(
            errors.0[0].message,
            "host code writes \"A\", which is device memory"
        );
    }
}
