//! Buffers, and how they are laid out.

use super::{Comparison, Outcome, Step};
use crate::ir::{Buffer, Expr, ExprKind};
use crate::layout::Layout;

impl Comparison {
    pub(super) fn buffer_use(&mut self, a: &Buffer, b: &Buffer) -> Outcome {
        match self.buffers.get(a) {
            Some(x) if x == b => Ok(()),
            Some(_) => self.differ(&*a.name, &*b.name),
            None if a == b => Ok(()),
            // Neither was declared, so their descriptions are compared.
            None => self.buffer(a, b),
        }
    }

    /// Matches two buffers where they are declared.
    pub(super) fn buffer(&mut self, a: &Buffer, b: &Buffer) -> Outcome {
        let name = Step::Name(a.name.clone());
        self.at(name, |s| {
            s.field("dtype", |s| s.same(&a.dtype, &b.dtype))?;
            s.field("data", |s| s.var_or_bind(&a.data, &b.data))?;
            s.field("shape", |s| s.definitions(&a.shape, &b.shape))?;
            s.field("strides", |s| s.definitions(&a.strides, &b.strides))?;
            s.field("elem_offset", |s| {
                let zero = |b: &Buffer| b.elem_offset.clone().unwrap_or_else(|| Expr::int32(0));
                match (zero(a), zero(b)) {
                    (x, y) if x.is_int(0) && y.is_int(0) => Ok(()),
                    (x, y) => s.definition(&x, &y),
                }
            })?;
            s.field("layout", |s| s.layout(&a.layout, &b.layout))?;
            s.field("align", |s| s.same(&a.align, &b.align))?;
            s.field("offset_factor", |s| s.same(&a.offset_factor, &b.offset_factor))?;
            s.field("allocated_addr", |s| {
                s.exprs(&a.allocated_addr, &b.allocated_addr)
            })
        })?;
        self.buffers.insert(a.clone(), b.clone());
        Ok(())
    }

    /// An expression of a declaration: a lone variable that is not bound yet is bound by it.
    pub(super) fn definitions(&mut self, a: &[Expr], b: &[Expr]) -> Outcome {
        if a.len() != b.len() {
            return self.exprs(a, b);
        }
        a.iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(i, (x, y))| self.at(Step::Index(i), |s| s.definition(x, y)))
    }

    pub(super) fn definition(&mut self, a: &Expr, b: &Expr) -> Outcome {
        struct Bind<'a>(&'a mut Comparison);
        impl Bind<'_> {
            fn walk(&mut self, a: &Expr, b: &Expr) {
                if let (ExprKind::Var(x), ExprKind::Var(y)) = (&a.kind, &b.kind) {
                    if x != y && self.0.is_free(x, y) && x.ty() == y.ty() {
                        // The types agree, so this cannot fail.
                        let _ = self.0.bind(x, y);
                    }
                    return;
                }
                for (x, y) in a.operands().zip(b.operands()) {
                    self.walk(x, y);
                }
            }
        }
        Bind(self).walk(a, b);
        self.expr(a, b)
    }

    pub(super) fn layout(&mut self, a: &Option<Layout>, b: &Option<Layout>) -> Outcome {
        let (Some(a), Some(b)) = (a, b) else {
            return self.same(&a.is_some(), &b.is_some());
        };
        self.same(&a.swizzle(), &b.swizzle())?;
        let (x, y) = (a.tile(), b.tile());
        let sizes = |t: &crate::layout::TileLayout| (t.shard.len(), t.replica.len(), t.offset.len());
        self.same(&sizes(x), &sizes(y))?;
        for (i, j) in x
            .shard
            .iter()
            .chain(&x.replica)
            .zip(y.shard.iter().chain(&y.replica))
        {
            self.expr(&i.extent, &j.extent)?;
            self.expr(&i.stride, &j.stride)?;
            self.same(&i.axis, &j.axis)?;
        }
        for ((axis, value), (other, other_value)) in x.offset.iter().zip(&y.offset) {
            self.same(axis, other)?;
            self.expr(value, other_value)?;
        }
        Ok(())
    }
}
