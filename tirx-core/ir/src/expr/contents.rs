//! What is anywhere in an expression or a statement. Each node stores it, so that a walk for something passes by what
//! has none of it.

use std::ops::BitOr;

use super::{BinOp, ExprKind};
use crate::intrin::Effect;
use crate::ir::{AttrNode, Buffer, DType, Expr, Stmt, StmtKind, Type, Var};

/// A set of the things below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents(u8);

impl Contents {
    /// A side effect.
    pub(super) const UPDATES: Contents = Contents(1);
    /// A value that depends on memory or machine state, or an update of some.
    pub(super) const READS: Contents = Contents(2);
    /// A call of an intrinsic.
    pub(crate) const CALLS: Contents = Contents(4);
    /// A type for which [`is_narrow_float`] holds, of a value, a buffer or a pointer.
    pub(crate) const NARROW_FLOATS: Contents = Contents(8);
    /// A sum of three terms.
    pub(super) const LONG_SUMS: Contents = Contents(16);

    const NOTHING: Contents = Contents(0);
    const ANYTHING: Contents = Contents(u8::MAX);

    /// Whether one of `wanted` is there.
    pub(crate) fn has(self, wanted: Contents) -> bool {
        self.0 & wanted.0 != 0
    }

    /// What is in either.
    pub(super) fn and(self, other: Contents) -> Contents {
        Contents(self.0 | other.0)
    }

    fn when(self, there: bool) -> Contents {
        if there { self } else { Contents::NOTHING }
    }

    /// What a node adds to its operands.
    pub(super) fn of_node(kind: &ExprKind, dtype: DType) -> Contents {
        let own = match kind {
            ExprKind::Var(var) | ExprKind::Let(var, ..) => Contents::of_var(var),
            ExprKind::BufferLoad { buffer, .. } => Contents::READS | Contents::of_pointer(buffer),
            ExprKind::Binary(op, a, _) => {
                let is_sum = |op: BinOp| matches!(op, BinOp::Add | BinOp::Sub);
                let of_sum = matches!(a.kind, ExprKind::Binary(inner, ..) if is_sum(inner));
                Contents::LONG_SUMS.when(is_sum(*op) && of_sum)
            }
            ExprKind::Call { op, .. } => match op.effect() {
                Effect::Annotation | Effect::Pure => Contents::CALLS,
                Effect::ReadState => Contents::CALLS | Contents::READS,
                _ => Contents::CALLS | Contents::READS | Contents::UPDATES,
            },
            _ => Contents::NOTHING,
        };
        own | Contents::of_dtype(dtype)
    }

    fn of_dtype(dtype: DType) -> Contents {
        Contents::NARROW_FLOATS.when(is_narrow_float(dtype))
    }

    fn of_var(var: &Var) -> Contents {
        match var.ty() {
            Type::Prim(dtype) | Type::Pointer { element: dtype, .. } => Contents::of_dtype(*dtype),
            Type::TensorMap => Contents::NOTHING,
        }
    }

    /// What is in a buffer apart from its description's expressions.
    fn of_pointer(buffer: &Buffer) -> Contents {
        Contents::of_var(&buffer.data) | Contents::of_dtype(buffer.dtype)
    }

    fn of_all<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Contents {
        exprs
            .into_iter()
            .fold(Contents::NOTHING, |all, e| all | e.contents)
    }

    /// What is in a statement.
    pub(crate) fn of_stmt(kind: &StmtKind) -> Contents {
        match kind {
            StmtKind::Bind(var, value) => Contents::of_var(var) | value.contents,
            StmtKind::Attr(attr) => {
                let node = match &attr.node {
                    AttrNode::None | AttrNode::Str(_) => Contents::NOTHING,
                    AttrNode::IterVar(iv) => {
                        let dom = iv.dom.iter().flat_map(|(min, extent)| [min, extent]);
                        Contents::of_var(&iv.var) | Contents::of_all(dom)
                    }
                    AttrNode::Buffer(buffer) => Contents::of_pointer(buffer),
                    AttrNode::Expr(e) => e.contents,
                    AttrNode::Dict(_) => Contents::ANYTHING,
                };
                node | attr.value.contents | attr.body.contents()
            }
            StmtKind::BufferStore(store) => {
                let operands = store.indices.iter().chain(&store.predicate);
                Contents::of_pointer(&store.buffer) | store.value.contents | Contents::of_all(operands)
            }
            StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => {
                let mut all = Contents::of_pointer(buffer);
                buffer.for_each_expr(|e| all = all | e.contents);
                all
            }
            StmtKind::Seq(stmts) => stmts.iter().fold(Contents::NOTHING, |all, s| all | s.contents()),
            StmtKind::Evaluate(e) => e.contents,
            StmtKind::For(l) => {
                let range = Contents::of_all([&l.min, &l.extent].into_iter().chain(&l.step));
                Contents::of_var(&l.var) | range | l.body.contents()
            }
            StmtKind::While(condition, body) => condition.contents | body.contents(),
            StmtKind::If(condition, then, otherwise) => {
                let otherwise = otherwise.as_ref().map_or(Contents::NOTHING, Stmt::contents);
                condition.contents | then.contents() | otherwise
            }
            StmtKind::Assert(assert) => assert.condition.contents,
            StmtKind::ScopeId(_) | StmtKind::Tile(_) => Contents::ANYTHING,
        }
    }
}

impl BitOr for Contents {
    type Output = Contents;

    fn bitor(self, other: Contents) -> Contents {
        self.and(other)
    }
}

/// Whether some targets lack a floating type.
fn is_narrow_float(dtype: DType) -> bool {
    dtype.is_bfloat16() || dtype.is_small_float()
}
