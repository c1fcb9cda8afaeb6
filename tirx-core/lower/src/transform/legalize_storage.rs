//! The common part of the two storage legalizations: memory of a type that the target's language lacks becomes memory
//! of unsigned integers of the same width.
//!
//! **Idea.** Buffers of the type become buffers of the integers, and so do the pointers to them. A load is reinterpreted as
//! the type, a store's value as the integer. **Invariants.** A function's scalars keep their types; no bit changes.
//! **Cost.** One walk, which passes by all that has no narrow float.

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::{Buffer, BufferStore, DType, Expr, ExprKind, Mutator, PrimFunc, Stmt, StmtKind, Type, Var};

/// The integer that holds a value of a type, a narrow float; `None` for types that stay.
pub(super) type Container = fn(DType) -> Option<DType>;

/// The function with its memory retyped.
pub(super) fn legalize(mut func: PrimFunc, container: Container) -> PrimFunc {
    let mut pass = Legalize {
        container,
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
    };
    func.params = func.params.iter().map(|p| pass.var_def(p)).collect();
    for (param, buffer) in &mut func.buffer_map {
        *param = pass.var_def(param);
        *buffer = pass.buffer_use(buffer);
    }
    let body = pass.stmt(&func.body);
    PrimFunc { body, ..func }
}

struct Legalize {
    container: Container,
    vars: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
}

impl Legalize {
    fn var(&self, var: &Var) -> Var {
        self.vars.get(var).unwrap_or(var).clone()
    }
}

impl Mutator for Legalize {
    fn var_def(&mut self, var: &Var) -> Var {
        if let Type::Pointer { element, scope } = var.ty()
            && let Some(stored) = (self.container)(*element)
        {
            let retyped = self
                .vars
                .entry(var.clone())
                .or_insert_with(|| var.retyped(Type::pointer(stored, scope.clone())));
            return retyped.clone();
        }
        var.clone()
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let data = self.var_def(&buffer.data);
        let stored = (self.container)(buffer.dtype);
        let new = if data == buffer.data && stored.is_none() {
            buffer.clone()
        } else {
            buffer.with(|n| {
                n.data = data;
                n.dtype = stored.unwrap_or(n.dtype);
            })
        };
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        if !expr.has_narrow_float() {
            return expr.clone();
        }
        match &expr.kind {
            ExprKind::Var(v) => {
                let new = self.var(v);
                if new == *v {
                    expr.clone()
                } else {
                    Expr::var(&new).at(expr.span)
                }
            }
            ExprKind::BufferLoad { .. } if (self.container)(expr.dtype).is_some() => {
                let load = self.walk_expr(expr);
                Expr::call(Op::Reinterpret, expr.dtype, vec![load]).at(expr.span)
            }
            _ => self.walk_expr(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if !stmt.has_narrow_float() {
            return stmt.clone();
        }
        match &stmt.kind {
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) if (self.container)(value.dtype).is_some() => {
                let stored = (self.container)(value.dtype).unwrap_or(value.dtype);
                let value = self.expr(value);
                let value = match value.as_call(Op::Reinterpret) {
                    Some([inner]) if inner.dtype == stored => inner.clone(),
                    _ => Expr::call(Op::Reinterpret, stored, vec![value]),
                };
                let new = BufferStore {
                    buffer: self.buffer_use(buffer),
                    indices: self.exprs(indices),
                    value,
                    predicate: predicate.as_ref().map(|p| self.expr(p)),
                };
                Stmt::new(new, stmt.span)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Whether a function runs on the host: its target has none of the GPU's types.
pub(super) fn runs_on_host(func: &PrimFunc) -> bool {
    func.attr("target")
        .is_some_and(|t| super::Target::from_attr(t).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Attrs;
    use crate::source::Span;

    #[test]
    fn memory_is_retyped_and_bits_stay() {
        let a = Buffer::fresh("a", vec![Expr::int32(4)], DType::BFLOAT16, "global", Span::NONE);
        let at = |i: i32| vec![Expr::int32(i)];
        let load = Expr::load(&a, at(1));
        let sum = Expr::load(&a, at(2)) + Expr::load(&a, at(3));
        let pointer = Var::new("p", DType::HANDLE);
        let func = PrimFunc {
            params: vec![pointer.clone()],
            buffer_map: vec![(pointer, a.clone())],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::seq([
                Stmt::store(&a, at(0), load, Span::NONE),
                Stmt::store(&a, at(0), sum, Span::NONE),
            ]),
            span: Span::NONE,
        };
        let container: Container = |d| d.is_bfloat16().then(|| DType::uint(16).with_lanes(d.lanes));
        let lowered = legalize(func, container);
        let body = lowered.body.as_slice();
        let value = |s: &Stmt| match &s.kind {
            StmtKind::BufferStore(BufferStore { buffer, value, .. }) => {
                assert_eq!(buffer.dtype, DType::UINT16);
                assert_eq!(*buffer.data.ty(), Type::pointer(DType::UINT16, "global"));
                assert_eq!(value.dtype, DType::UINT16);
                value.clone()
            }
            other => panic!("{other:?}"),
        };
        assert!(matches!(value(&body[0]).kind, ExprKind::BufferLoad { .. }));
        assert!(value(&body[1]).as_call(Op::Reinterpret).is_some());
        assert_eq!(lowered.buffer_map[0].1.dtype, DType::UINT16);
    }
}
