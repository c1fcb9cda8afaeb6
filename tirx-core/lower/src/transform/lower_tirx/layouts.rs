//! Flattens buffers: each access gets one index, the element offset that the layout gives its coordinate.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{
    Attr, AttrNode, Buffer, BufferStore, DType, Expr, ExprKind, ForKind, ForLoop, IterVar, Mutator, PrimFunc,
    Stmt, StmtKind, Var, View, is_pure,
};
use crate::layout::Layout;
use crate::layout::apply::{cast_index, product, row_major, strided_offset};
use crate::source::Span;

/// The function with flat accesses.
pub(super) fn lower(mut func: PrimFunc) -> Result<PrimFunc> {
    let mut apply = Apply {
        flat: FxHashMap::default(),
        described: FxHashMap::default(),
        facts: Analyzer::new(),
        simplified: FxHashMap::default(),
        failed: None,
        span: func.span,
    };
    let mut views = Vec::new();
    for (_, buffer) in &mut func.buffer_map {
        if is_flat(buffer) {
            continue;
        }
        let plain = buffer.with(|n| n.layout = None);
        let view = apply.define(buffer, Purpose::View);
        // The declared buffer stays the parameter's; the body accesses the view.
        views.push(Stmt::new(StmtKind::DeclBuffer(view), buffer.span));
        *buffer = plain;
    }
    views.reverse();
    let body = apply.stmt(&func.body);
    if let Some(error) = apply.failed {
        return Err(error);
    }
    views.push(body);
    Ok(PrimFunc {
        body: Stmt::seq(views),
        ..func
    })
}

/// The kind of a flat buffer, which determines its size.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// Storage: all elements that the layout reaches.
    Storage,
    /// A view: as many elements as the shape says.
    View,
}

struct Apply {
    flat: FxHashMap<Buffer, Buffer>,
    /// Buffers whose description reads memory, with that access flattened.
    described: FxHashMap<Buffer, Buffer>,
    facts: Analyzer,
    /// Simplified offsets, valid until a fact is learned: programs repeat them.
    simplified: FxHashMap<Expr, Expr>,
    failed: Option<Box<Diagnostic>>,
    /// The current statement.
    span: Span,
}

impl Apply {
    /// The flat buffer for a declaration.
    fn define(&mut self, buffer: &Buffer, purpose: Purpose) -> Buffer {
        let described = buffer.map_exprs(buffer.data.clone(), |e| self.expr(e));
        let size = self.size(&described, purpose);
        let view = match purpose {
            Purpose::Storage => None,
            Purpose::View => self.view(&described),
        };
        let flat = if is_flat(buffer) && view.is_none() {
            described.clone()
        } else {
            described.with(|n| {
                if !is_flat(buffer) {
                    n.shape = vec![size];
                    n.strides.clear();
                    n.layout = None;
                }
                n.view = view;
            })
        };
        if described != *buffer {
            self.described.insert(buffer.clone(), described);
        }
        self.flat.insert(buffer.clone(), flat.clone());
        flat
    }

    /// Where a declaration over shared memory has its elements. A buffer that a tile primitive declares over an operand has the
    /// operand's view already.
    fn view(&mut self, buffer: &Buffer) -> Option<Arc<View>> {
        if buffer.view.is_some() {
            return buffer.view.clone();
        }
        let offset = buffer
            .elem_offset
            .as_ref()
            .map(|offset| self.facts.simplify(offset));
        View::from_buffer(&buffer.with(|n| n.elem_offset = offset)).map(Arc::new)
    }

    fn size(&mut self, buffer: &Buffer, purpose: Purpose) -> Expr {
        let size = match (&Layout::from_buffer(buffer), purpose) {
            (Some(layout), Purpose::Storage)
                if !buffer
                    .layout
                    .as_ref()
                    .is_none_or(|l| l.is_row_major(&buffer.shape)) =>
            {
                layout.memory_span()
            }
            _ if !buffer.strides.is_empty() && honours_strides(buffer) => {
                match (buffer.strides.first(), buffer.shape.first()) {
                    (Some(stride), Some(extent)) => product(&[stride.clone(), extent.clone()]),
                    _ => Expr::int32(1),
                }
            }
            _ => product(&buffer.shape),
        };
        self.facts.simplify(&size)
    }

    /// The element offset of a coordinate, simplified.
    fn index(&mut self, buffer: &Buffer, indices: &[Expr], span: Span) -> Expr {
        if indices.len() != buffer.shape.len() && self.failed.is_none() {
            let message = format!(
                "buffer \"{}\" has {} dimensions, but {} indices are given",
                buffer.name,
                buffer.shape.len(),
                indices.len()
            );
            self.failed = Some(Box::new(Diagnostic::new(span.or(self.span), message)));
        }
        let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
        let described = self.described.get(buffer).cloned();
        let buffer = described.as_ref().unwrap_or(buffer);
        let offset = match &buffer.layout {
            _ if honours_strides(buffer) && !buffer.strides.is_empty() => {
                strided_offset(&indices, &buffer.strides)
            }
            Some(layout) => {
                if layout.has_hardware_axis() && self.failed.is_none() {
                    let message = format!(
                        "buffer \"{}\" is spread over threads, so no thread can access it by coordinate",
                        buffer.name
                    );
                    let error = Diagnostic::new(span.or(self.span), message)
                        .note(buffer.span, "its layout has a thread axis")
                        .help("take the calling thread's part with .local() and access that");
                    self.failed = Some(Box::new(error));
                }
                layout.memory_offset(&indices, &buffer.shape)
            }
            None => row_major(&indices, &buffer.shape),
        };
        if let Some(known) = self.simplified.get(&offset) {
            return known.clone().at(span);
        }
        let simple = self.facts.simplify(&offset).or_at(span);
        self.simplified.insert(offset, simple.clone());
        simple
    }

    /// A fact was learned. Clearing a table costs time proportional to its capacity, so a large one is replaced.
    fn forget_offsets(&mut self) {
        if self.simplified.capacity() > 512 {
            self.simplified = FxHashMap::default();
        }
        self.simplified.clear();
    }

    /// An immutable value replaces its variable in indices, unless it is large: chains of bindings could grow without
    /// bound.
    fn learn_value(&mut self, var: &Var, value: &Expr) {
        const LARGE: u32 = 256;
        self.forget_offsets();
        if is_pure(value) {
            let before = self.facts.scope();
            self.facts.bind_value(var, value);
            if self.facts.value_of(var).is_none_or(|v| v.size() <= LARGE) {
                return;
            }
            self.facts.leave(before);
        }
        self.facts.bind_facts_of(var, value);
    }

    fn in_span<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.span;
        self.span = span.or(outer);
        let result = f(self);
        self.span = outer;
        result
    }
}

/// Whether it is one-dimensional and contiguous already.
fn is_flat(buffer: &Buffer) -> bool {
    buffer.layout.is_none() && buffer.strides.is_empty() && buffer.shape.len() == 1
}

/// Strides apply where there is no layout or the default one.
fn honours_strides(buffer: &Buffer) -> bool {
    buffer
        .layout
        .as_ref()
        .is_none_or(|layout| layout.is_row_major(&buffer.shape))
}

impl Mutator for Apply {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            // Tile primitives have used its scope condition; the predicate remains.
            ExprKind::Call { op: Op::Filter, args } => self.expr(&args[at!(Filter.pred)]),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let index = self.index(buffer, indices, expr.span);
                let predicate = predicate.as_ref().map(|p| self.expr(p));
                let buffer = self.buffer_use(buffer);
                Expr::new(
                    ExprKind::BufferLoad {
                        buffer,
                        indices: vec![index],
                        predicate,
                    },
                    expr.dtype,
                    expr.span,
                )
            }
            // The element's offset in its own buffer; the offset of a view is not counted.
            ExprKind::Call {
                op: Op::BufferOffset,
                args,
            } if let [load] = &args[..]
                && let ExprKind::BufferLoad { buffer, indices, .. } = &load.kind =>
            {
                let offset = self.index(buffer, indices, expr.span);
                cast_index(offset, expr.dtype.element())
            }
            _ => self.walk_expr(expr),
        }
    }

    fn buffer_def(&mut self, buffer: &Buffer) -> Buffer {
        self.define(buffer, Purpose::View)
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        match self.flat.get(buffer) {
            Some(flat) => flat.clone(),
            // An undeclared buffer: left for the verifier, but flattened like every other.
            None => self.define(buffer, Purpose::View),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        self.in_span(stmt.span, |this| match &stmt.kind {
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                let value = this.expr(value);
                let index = this.index(buffer, indices, stmt.span);
                let predicate = predicate.as_ref().map(|p| this.expr(p));
                let buffer = this.buffer_use(buffer);
                let new = BufferStore {
                    buffer,
                    indices: vec![index],
                    value,
                    predicate,
                };
                Stmt::new(new, stmt.span)
            }
            StmtKind::AllocBuffer(buffer, annotations) => {
                let flat = this.define(buffer, Purpose::Storage);
                Stmt::new(StmtKind::AllocBuffer(flat, annotations.clone()), stmt.span)
            }
            StmtKind::Bind(var, value) => {
                let new = this.walk_stmt(stmt);
                if var.dtype().is_integer() {
                    this.learn_value(var, value);
                }
                new
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                ..
            }) => {
                // A loop may have no iterations: facts from its body do not hold after it.
                let scope = this.facts.scope();
                if *kind != ForKind::ThreadBinding || extent.dtype == DType::INT32 {
                    this.forget_offsets();
                    this.facts.bind(var, min, extent);
                }
                let new = this.walk_stmt(stmt);
                this.forget_offsets();
                this.facts.leave(scope);
                new
            }
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(IterVar { var, .. }),
                value,
                ..
            }) => {
                this.forget_offsets();
                this.facts.bind(var, &Expr::constant(value.dtype, 0), value);
                this.walk_stmt(stmt)
            }
            _ => this.walk_stmt(stmt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attrs, Type};
    use crate::layout::{Axis, Iter, Layout, TileLayout};

    fn tile(iters: &[(i32, i32)]) -> Option<Layout> {
        let shard = iters
            .iter()
            .map(|(e, s)| Iter {
                extent: Expr::int32(*e),
                stride: Expr::int32(*s),
                axis: Axis::memory(),
            })
            .collect();
        Some(Layout::Tile(Arc::new(TileLayout {
            shard,
            ..TileLayout::default()
        })))
    }

    fn store_to(change: impl FnOnce(&mut crate::ir::BufferNode)) -> (PrimFunc, Var, Var) {
        let shape = vec![Expr::int32(4), Expr::int32(8)];
        let b = Buffer::fresh("B", shape, DType::FLOAT32, "global", Span::NONE).with(change);
        let (i, j) = (Var::new("i", DType::INT32), Var::new("j", DType::INT32));
        let body = Stmt::store(
            &b,
            vec![Expr::var(&i), Expr::var(&j)],
            Expr::float(DType::FLOAT32, 1.0),
            Span::NONE,
        );
        let param = Var::new("p", Type::from(DType::HANDLE));
        let func = PrimFunc {
            params: vec![param.clone()],
            buffer_map: vec![(param, b)],
            ret: None,
            attrs: Attrs::new(),
            body,
            span: Span::NONE,
        };
        (func, i, j)
    }

    fn index_of(func: &PrimFunc) -> Expr {
        match &func.body.as_slice()[1].kind {
            StmtKind::BufferStore(BufferStore { buffer, indices, .. }) => {
                assert_eq!(buffer.shape.len(), 1);
                indices[0].clone()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_address_forms_of_the_language_page() {
        let times = |v: &Var, k: i32| Expr::var(v) * Expr::int32(k);
        let (func, i, j) = store_to(|_| {});
        assert_eq!(index_of(&lower(func).unwrap()), times(&i, 8) + Expr::var(&j));
        let (func, i, j) = store_to(|n| n.layout = tile(&[(4, 16), (8, 1)]));
        assert_eq!(index_of(&lower(func).unwrap()), times(&i, 16) + Expr::var(&j));
        let (func, i, j) = store_to(|n| {
            n.strides = vec![Expr::int32(32), Expr::int32(1)];
        });
        assert_eq!(index_of(&lower(func).unwrap()), times(&i, 32) + Expr::var(&j));
        // The offset stays with the view until FlattenBuffer.
        let (func, i, j) = store_to(|n| n.elem_offset = Some(Expr::int32(64)));
        let lowered = lower(func).unwrap();
        assert_eq!(index_of(&lowered), times(&i, 8) + Expr::var(&j));
        let StmtKind::DeclBuffer(view) = &lowered.body.as_slice()[0].kind else {
            panic!("{:?}", lowered.body)
        };
        assert!(view.elem_offset.as_ref().is_some_and(|o| o.is_int(64)));
        assert!(view.shape[0].is_int(32) && view.layout.is_none());
        assert!(lowered.buffer_map[0].1.layout.is_none() && lowered.buffer_map[0].1.shape.len() == 2);
    }

    #[test]
    fn chains_of_bindings_stay_small() {
        // x1 = (x0 * x0) ^ x0, x2 = (x1 * x1) ^ x1, …: written out, 2^60 terms.
        let (mut func, i, _) = store_to(|_| {});
        let xor = |e: Expr| {
            let square = e.clone() * e.clone();
            Expr::call(crate::intrin::Op::BitwiseXor, DType::INT32, vec![square, e])
        };
        let mut stmts = Vec::new();
        let mut last = i.clone();
        for _ in 0..60 {
            let next = Var::new("x", DType::INT32);
            stmts.push(Stmt::bind(&next, xor(Expr::var(&last)), Span::NONE));
            last = next;
        }
        let store = crate::ir::substitute_stmt(&func.body, &|v| (*v == i).then(|| Expr::var(&last)));
        stmts.push(store);
        func.body = Stmt::seq(stmts);
        let lowered = lower(func).unwrap();
        let Some(StmtKind::BufferStore(BufferStore { indices, .. })) =
            lowered.body.as_slice().last().map(|s| &s.kind)
        else {
            panic!()
        };
        assert!(indices[0].size() < 1000);
    }

    #[test]
    fn storage_has_room_for_what_the_layout_reaches() {
        let shape = vec![Expr::int32(4), Expr::int32(8)];
        let b = Buffer::fresh("B", shape, DType::FLOAT32, "shared", Span::NONE)
            .with(|n| n.layout = tile(&[(4, 16), (8, 1)]));
        let func = PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::new(StmtKind::AllocBuffer(b, vec![]), Span::NONE),
            span: Span::NONE,
        };
        let lowered = lower(func).unwrap();
        let StmtKind::AllocBuffer(flat, _) = &lowered.body.kind else {
            panic!("{:?}", lowered.body)
        };
        assert!(flat.shape[0].is_int(56));
    }
}
