//! Tile primitives become code for each thread.

use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{PrimFunc, Stmt, StmtKind, TileCall, Visitor};
use crate::source::Span;

/// The function without tile primitives.
pub(super) fn lower(func: PrimFunc) -> Result<PrimFunc> {
    struct Find(Option<(Box<TileCall>, Span)>);
    impl Visitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::Tile(call) if self.0.is_none() => self.0 = Some((call.clone(), stmt.span)),
                _ if self.0.is_none() => self.walk_stmt(stmt),
                _ => {}
            }
        }
    }
    let mut find = Find(None);
    find.visit_stmt(&func.body);
    match find.0 {
        None => Ok(func),
        Some((call, span)) => {
            let message = format!("no dispatch for tile primitive {}", call.op.name());
            Err(Box::new(Diagnostic::new(span, message)))
        }
    }
}
