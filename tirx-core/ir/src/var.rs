//! Variables and their types.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{DType, Expr};
use crate::source::Span;

/// What a variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A value of an element type. An untyped pointer (`T.handle`) is `Prim(DType::HANDLE)`.
    Prim(DType),
    /// A pointer to elements in a storage scope: `T.handle("float32", "shared")`.
    Pointer {
        /// What it points to.
        element: DType,
        /// The storage scope, e.g. `global`, `shared`, `shared.dyn`, `local`.
        scope: Arc<str>,
    },
    /// A CUDA tensor map (`T.handle("tensormap")`): 128 bytes that the host encodes and a kernel takes by value, as
    /// `const __grid_constant__ CUtensorMap`. A variable of it has dtype `handle`; `T.address_of` gives its generic
    /// address as `uint64`.
    TensorMap,
}

impl Type {
    /// A pointer type.
    pub fn pointer(element: DType, scope: impl Into<Arc<str>>) -> Type {
        Type::Pointer {
            element,
            scope: scope.into(),
        }
    }

    /// The dtype an expression of this type has: `handle` for pointers.
    pub fn dtype(&self) -> DType {
        match self {
            Type::Prim(dtype) => *dtype,
            Type::Pointer { .. } | Type::TensorMap => DType::HANDLE,
        }
    }

    /// Whether it is a tensor map.
    pub fn is_tensor_map(&self) -> bool {
        *self == Type::TensorMap
    }
}

impl From<DType> for Type {
    fn from(dtype: DType) -> Type {
        Type::Prim(dtype)
    }
}

#[derive(Debug)]
struct VarNode {
    id: u32,
    name: Arc<str>,
    ty: Type,
    span: Span,
}

/// An immutable variable. Equality, order and hash are by identity; the order is that of creation.
#[derive(Clone)]
pub struct Var(Arc<VarNode>);

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

impl Var {
    /// A new variable, different from every other.
    pub fn new(name: impl Into<Arc<str>>, ty: impl Into<Type>) -> Var {
        Var::at(name, ty, Span::NONE)
    }

    /// A new variable declared at `span`.
    pub fn at(name: impl Into<Arc<str>>, ty: impl Into<Type>, span: Span) -> Var {
        // Relaxed: only uniqueness matters. No output depends on the number.
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Var(Arc::new(VarNode {
            id,
            name: name.into(),
            ty: ty.into(),
            span,
        }))
    }

    /// A new variable like this one under another name.
    pub fn renamed(&self, name: impl Into<Arc<str>>) -> Var {
        Var::at(name, self.0.ty.clone(), self.0.span)
    }

    /// A new variable like this one of another type.
    pub fn retyped(&self, ty: impl Into<Type>) -> Var {
        Var::at(self.0.name.clone(), ty, self.0.span)
    }

    /// The name the user gave; not unique.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The shared name.
    pub fn name_arc(&self) -> Arc<str> {
        self.0.name.clone()
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }

    /// The dtype of an expression that reads it.
    pub fn dtype(&self) -> DType {
        self.0.ty.dtype()
    }

    /// Where it was declared.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// A number that no other living variable has. Never print or store it.
    pub fn id(&self) -> u32 {
        self.0.id
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Var {}
impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Var) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Var {
    fn cmp(&self, other: &Var) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}
impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id)
    }
}

/// What a loop variable runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// A plain loop.
    DataPar,
    /// A hardware index: `thread_tag` says which.
    ThreadIndex,
    /// A reduction axis.
    CommReduce,
}

/// A variable with its range, bound to a hardware index where `thread_tag` is not empty
/// (`blockIdx.x`, `threadIdx.y`, `clusterCtaIdx.x`, `vthread`, …).
#[derive(Clone, Debug, PartialEq)]
pub struct IterVar {
    /// The variable.
    pub var: Var,
    /// First value and count; `None` for an environment thread whose extent the attribute gives.
    pub dom: Option<(Expr, Expr)>,
    /// What it runs over.
    pub kind: IterKind,
    /// The hardware index.
    pub thread_tag: Arc<str>,
}
