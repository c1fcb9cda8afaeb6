//! Checks that each pointer is in the state space that its instruction requires.
//!
//! An instruction on shared memory converts a generic address to one in the shared window; for a pointer to any other
//! memory the result is a meaningless address. The space of a pointer is known where it is derived from a kernel's
//! tensor or an allocation; other pointers (mapped ones, parameters of subroutines) may be anything.

use crate::diagnostic::Diagnostic;
use crate::intrin::row::{ArgKind, Space};
use crate::intrin::{Op, Operands};
use crate::ir::at;
use crate::ir::{Expr, ExprKind, PrimFunc, Stmt, Type, Var, Visitor};

/// A message for each pointer to the wrong memory, at its call.
pub(super) fn of_function(func: &PrimFunc, is_kernel: bool) -> Vec<Diagnostic> {
    let mut calls = Calls {
        tensors: if is_kernel { &func.params } else { &[] },
        errors: Vec::new(),
    };
    calls.visit_stmt(&func.body);
    calls.errors.into_iter().map(|e| e.or_span(func.span)).collect()
}

struct Calls<'a> {
    tensors: &'a [Var],
    errors: Vec<Diagnostic>,
}

impl Calls<'_> {
    /// The memory space that a pointer is known to be in, and the name of the buffer there.
    fn memory<'e>(&self, pointer: &'e Expr) -> Option<(&'static str, &'e str)> {
        let (data, name) = match &pointer.kind {
            ExprKind::Var(var) => (var, var.name()),
            ExprKind::Call {
                op: Op::AddressOf,
                args,
            } => match &args.get(at!(AddressOf.obj))?.kind {
                ExprKind::BufferLoad { buffer, .. } => (&buffer.data, &*buffer.name),
                _ => return None,
            },
            _ => return None,
        };
        let Type::Pointer { scope, .. } = data.ty() else {
            return None;
        };
        match &**scope {
            "shared" | "shared.dyn" => Some(("shared", name)),
            "local" => Some(("local", name)),
            "global" if self.tensors.contains(data) => Some(("global", name)),
            _ => None,
        }
    }
}

impl Visitor for Calls<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if stmt.has_call() {
            self.walk_stmt(stmt);
        }
    }

    fn visit_expr(&mut self, e: &Expr) {
        if !e.has_call() {
            return;
        }
        if let ExprKind::Call { op, args } = &e.kind
            && op
                .row()
                .args
                .iter()
                .any(|arg| matches!(arg.kind, ArgKind::Pointer(_)))
            && let Ok(operands) = Operands::read(op.row(), args)
        {
            for (arg, part) in operands.each() {
                let wanted = match arg.kind {
                    ArgKind::Pointer(Space::Shared) => "shared",
                    ArgKind::Pointer(Space::Global) => "global",
                    ArgKind::Pointer(Space::FromModifiers) => operands.text("space"),
                    _ => continue,
                };
                let wanted = wanted.split("::").next().unwrap_or_default();
                for pointer in part {
                    let Some((found, name)) = self.memory(pointer) else {
                        continue;
                    };
                    if wanted.is_empty() || found == wanted {
                        continue;
                    }
                    let script = op.info().script;
                    let message = format!(
                        "T.{script}: \"{}\" must point to {wanted} memory, and `{name}` is in {found} memory",
                        arg.name
                    );
                    let mut error = Diagnostic::new(e.span, message);
                    if matches!(arg.kind, ArgKind::Pointer(Space::FromModifiers)) {
                        error = error.help(format!("name its memory: space=\"{found}\""));
                    }
                    self.errors.push(error);
                }
            }
        }
        self.walk_expr(e);
    }
}
