//! Errors for symbols that no argument defines.
//!
//! `n = T.int32()` declares a symbol; a buffer's shape, stride or offset that is `n` alone defines it at each call. One
//! that occurs only in `n * 2` or in the kernel's body has no value: that is the user's mistake.

use rustc_hash::FxHashSet;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Buffer, Expr, ExprKind, PrimFunc, Stmt, StmtKind, Var, Visitor};
use crate::source::Span;

/// Checks the variables that the arguments' descriptions and the host's part of a function read.
pub(super) fn check(func: &PrimFunc, defined: impl Fn(&Var) -> bool) -> Result<(), Diagnostics> {
    let mut uses = Uses::default();
    for (_, buffer) in &func.buffer_map {
        uses.bound.insert(buffer.data.clone());
        uses.span = buffer.span;
        buffer.for_each_expr(|e| uses.visit_expr(e));
    }
    uses.visit_stmt(&func.body);
    let Uses { bound, read, .. } = uses;
    let errors: Vec<Diagnostic> = read
        .into_iter()
        .filter(|(var, _)| !bound.contains(var) && !defined(var))
        .map(|(var, span)| unbound(&var, span))
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Diagnostics(errors))
    }
}

fn unbound(var: &Var, span: Span) -> Diagnostic {
    let name = var.name();
    let mut error = Diagnostic::new(span, format!("`{name}` has no value: no argument determines it"));
    if var.span() != span {
        error = error.note(var.span(), format!("`{name}` is declared here"));
    }
    error.help(format!(
        "make it a parameter (`{name}: T.{}`), or the whole extent of a dimension of a buffer that is one",
        var.dtype(),
    ))
}

/// Variables in order of their first use.
#[derive(Default)]
struct Uses {
    read: Vec<(Var, Span)>,
    seen: FxHashSet<Var>,
    bound: FxHashSet<Var>,
    span: Span,
}

impl Visitor for Uses {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Var(var) = &expr.kind
            && self.seen.insert(var.clone())
        {
            self.read.push((var.clone(), expr.span.or(self.span)));
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.span = stmt.span.or(self.span);
        if let StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) = &stmt.kind {
            self.bound.insert(buffer.data.clone());
        }
        self.walk_stmt(stmt);
    }

    fn visit_var_def(&mut self, var: &Var) {
        self.bound.insert(var.clone());
    }

    /// The description of a view is not evaluated.
    fn visit_buffer_def(&mut self, _buffer: &Buffer) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::source::SourceMap;
    use crate::transform::{Lowering, Target, lower};
    use tirx_script::{KernelFile, NoImports};

    #[test]
    fn a_symbol_that_only_the_body_reads_has_no_value() {
        let text = "@T.prim_func\n\
                    def f(A: T.Buffer((4,), \"int32\")):\n\
                    \x20   w = T.int32()\n\
                    \x20   T.device_entry()\n\
                    \x20   tx = T.thread_id([4])\n\
                    \x20   A[tx] = w\n";
        let mut sources = SourceMap::new();
        let file = KernelFile::load(&mut sources, "k.py", text, &NoImports).unwrap();
        let module = file.build(None, &BTreeMap::new()).unwrap();
        let mut lowering = Lowering::new(Target::SM_90A);
        lowering.verify = false;
        let message = lower(module, &mut lowering).unwrap_err().render(&sources);
        assert!(message.contains("error: `w` has no value"), "{message}");
        assert!(message.contains("--> k.py:6:13"), "{message}");
        assert!(
            message.contains("note: `w` is declared here\n --> k.py:3:9"),
            "{message}"
        );
    }
}
