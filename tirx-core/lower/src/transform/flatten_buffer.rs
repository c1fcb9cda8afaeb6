//! FlattenBuffer: every buffer is one-dimensional and starts at its data pointer.
//!
//! **Idea.** LowerTIRx has made the indices of laid-out buffers flat; what is left is the element offset of views, and
//! buffers of several dimensions in programs that never had layouts. An access `b[i, j]` becomes
//! `b[(i * stride0 + j * stride1) + elem_offset]`, declarations lose shape, strides and offset.
//!
//! **Invariants.** Afterwards each declared or accessed buffer has one dimension, no strides, no layout and no
//! `elem_offset`. A parameter's buffer keeps its description, since the host checks it; if the body accesses such a
//! buffer directly it does so through a flat view declared at the top.
//!
//! **Cost.** One walk; indices of buffers without offset and with one dimension are shared, not rebuilt.

use rustc_hash::FxHashMap;

use super::PassContext;
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostics, Result};
use crate::ir::{
    Attr, AttrNode, BinOp, Buffer, BufferStore, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc, Stmt,
    StmtKind,
};
use crate::layout::apply::{binary, row_major, strided_offset};

/// Flattens the buffers of every function.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(flatten))
}

fn flatten(func: PrimFunc) -> PrimFunc {
    let mut pass = Flatten {
        flat: FxHashMap::default(),
        analyzer: Analyzer::new(),
    };
    let body = pass.stmt(&func.body);
    // Views of parameters that the body accesses directly, last parameter first as in LowerTIRx.
    let mut stmts = Vec::new();
    for (_, buffer) in func.buffer_map.iter().rev() {
        if let Some(view) = pass.flat.get(buffer)
            && view != buffer
        {
            stmts.push(Stmt::new(StmtKind::DeclBuffer(view.clone()), buffer.span));
        }
    }
    stmts.push(body);
    PrimFunc {
        body: Stmt::seq(stmts),
        ..func
    }
}

struct Flatten {
    flat: FxHashMap<Buffer, Buffer>,
    analyzer: Analyzer,
}

fn is_flat(buffer: &Buffer) -> bool {
    buffer.shape.len() == 1
        && buffer.strides.is_empty()
        && buffer.layout.is_none()
        && buffer.elem_offset.as_ref().is_none_or(|o| o.is_int(0))
}

impl Flatten {
    fn index(&mut self, buffer: &Buffer, indices: &[Expr]) -> Vec<Expr> {
        let indices = self.exprs(indices);
        if is_flat(buffer) || indices.len() != buffer.shape.len() {
            return indices;
        }
        let mut offset = match &buffer.layout {
            _ if !buffer.strides.is_empty() => strided_offset(&indices, &buffer.strides),
            Some(layout) => layout.memory_offset(&indices, &buffer.shape),
            None => row_major(&indices, &buffer.shape),
        };
        if let Some(elem_offset) = &buffer.elem_offset {
            offset = binary(BinOp::Add, offset, elem_offset.clone());
        }
        vec![self.analyzer.simplify(&offset)]
    }
}

impl Mutator for Flatten {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } if !is_flat(buffer) => {
                let indices = self.index(buffer, indices);
                let predicate = predicate.as_ref().map(|p| self.expr(p));
                let buffer = self.buffer_use(buffer);
                Expr::new(
                    ExprKind::BufferLoad {
                        buffer,
                        indices,
                        predicate,
                    },
                    expr.dtype,
                    expr.span,
                )
            }
            _ => self.walk_expr(expr),
        }
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if is_flat(buffer) {
            return buffer.clone();
        }
        if let Some(flat) = self.flat.get(buffer) {
            return flat.clone();
        }
        let size = match (buffer.strides.first(), buffer.shape.first()) {
            (Some(stride), Some(extent)) => binary(BinOp::Mul, stride.clone(), extent.clone()),
            _ => buffer
                .shape
                .iter()
                .cloned()
                .reduce(|a, b| binary(BinOp::Mul, a, b))
                .unwrap_or_else(|| Expr::int32(1)),
        };
        let flat = buffer.with(|n| {
            if n.shape.len() != 1 || !n.strides.is_empty() {
                n.shape = vec![size];
            }
            n.strides.clear();
            n.elem_offset = None;
            n.layout = None;
        });
        self.flat.insert(buffer.clone(), flat.clone());
        flat
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) if !is_flat(buffer) => {
                let value = self.expr(value);
                let indices = self.index(buffer, indices);
                let predicate = predicate.as_ref().map(|p| self.expr(p));
                let buffer = self.buffer_use(buffer);
                let new = BufferStore {
                    buffer,
                    indices,
                    value,
                    predicate,
                };
                Stmt::new(new, stmt.span)
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
                value,
                ..
            }) => {
                self.analyzer
                    .bind(&iter.var, &Expr::constant(value.dtype, 0), value);
                self.walk_stmt(stmt)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attrs, DType, Var};
    use crate::source::Span;

    #[test]
    fn offsets_move_into_indices() {
        let (i, j) = (Var::new("i", DType::INT32), Var::new("j", DType::INT32));
        let shape = vec![Expr::int32(4), Expr::int32(8)];
        let parameter = Buffer::fresh("A", shape, DType::FLOAT32, "global", Span::NONE).with(|n| {
            n.layout = None;
            n.elem_offset = Some(Expr::int32(64));
        });
        let view = parameter.with(|n| n.shape = vec![Expr::int32(32)]);
        let pointer = Var::new("p", DType::HANDLE);
        let one = Expr::float(DType::FLOAT32, 1.0);
        let body = Stmt::seq([
            Stmt::new(StmtKind::DeclBuffer(view.clone()), Span::NONE),
            Stmt::store(&view, vec![Expr::var(&i)], one.clone(), Span::NONE),
            Stmt::store(&parameter, vec![Expr::var(&i), Expr::var(&j)], one, Span::NONE),
        ]);
        let func = flatten(PrimFunc {
            params: vec![pointer.clone()],
            buffer_map: vec![(pointer, parameter)],
            ret: None,
            attrs: Attrs::new(),
            body,
            span: Span::NONE,
        });
        let stmts = func.body.as_slice();
        assert_eq!(stmts.len(), 4);
        let at = |s: &Stmt| match &s.kind {
            StmtKind::BufferStore(BufferStore { buffer, indices, .. }) => (buffer.clone(), indices.clone()),
            other => panic!("{other:?}"),
        };
        let (first, index) = at(&stmts[2]);
        assert_eq!(index, [Expr::var(&i) + Expr::int32(64)]);
        assert!(first.elem_offset.is_none());
        let (direct, index) = at(&stmts[3]);
        assert_eq!(
            index,
            [Expr::var(&i) * Expr::int32(8) + Expr::var(&j) + Expr::int32(64)]
        );
        let StmtKind::DeclBuffer(declared) = &stmts[0].kind else {
            panic!()
        };
        assert_eq!(*declared, direct);
        assert!(func.buffer_map[0].1.elem_offset.is_some());
    }
}
