//! Buffers: a pointer with a shape and the way from a coordinate to an address.

mod view;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::mutate::map_exprs;
use super::{DType, Expr, Type, Var};
use crate::layout::Layout;
use crate::source::Span;

pub use view::View;

/// The description of a [`Buffer`].
#[derive(Clone, Debug)]
pub struct BufferNode {
    /// The name the user gave.
    pub name: Arc<str>,
    /// The data pointer; its [`Type::Pointer`] names the storage scope.
    pub data: Var,
    /// Element type (may be a vector type).
    pub dtype: DType,
    /// Extents, outermost first. Empty for a zero-dimensional buffer.
    pub shape: Vec<Expr>,
    /// Strides in elements, one per dimension; empty means compact row-major.
    pub strides: Vec<Expr>,
    /// Elements from `data` to the element at coordinate zero; `None` means zero.
    pub elem_offset: Option<Expr>,
    /// The mapping from coordinates to storage; `None` means plain strides (a flattened buffer, or one declared so).
    pub layout: Option<Layout>,
    /// Alignment of `data` in bytes.
    pub align: u32,
    /// `elem_offset` is a multiple of this many elements.
    pub offset_factor: u32,
    /// The column address of a buffer in tensor memory (`tmem`).
    pub allocated_addr: Vec<Expr>,
    /// Of a buffer in shared memory whose accesses are flat: where its elements are. See [`View`].
    pub view: Option<Arc<View>>,
    /// Where it was declared.
    pub span: Span,
}

/// TVM's default alignment of a buffer's data pointer, in bytes.
pub const DEFAULT_ALIGN: u32 = 64;

/// A buffer. Equality and hash are by identity: two declarations are two buffers, though they may share a pointer.
#[derive(Clone)]
pub struct Buffer(Arc<BufferNode>);

impl std::ops::Deref for Buffer {
    type Target = BufferNode;
    fn deref(&self) -> &BufferNode {
        &self.0
    }
}

impl Buffer {
    /// A buffer of this description, different from every other.
    pub fn new(node: BufferNode) -> Buffer {
        Buffer(Arc::new(node))
    }

    /// A buffer over new storage (or a parameter) in `scope`: a fresh data pointer named `name_ptr`, row-major
    /// default layout, default alignment.
    pub fn fresh(
        name: impl Into<Arc<str>>,
        shape: Vec<Expr>,
        dtype: DType,
        scope: &str,
        span: Span,
    ) -> Buffer {
        let name = name.into();
        let data = Var::at(format!("{name}_ptr"), Type::pointer(dtype, scope), span);
        let layout = Some(Layout::row_major(&shape));
        Buffer::new(BufferNode {
            shape,
            layout,
            ..BufferNode::flat(name, data, dtype, vec![], span)
        })
    }

    /// The storage scope of the data pointer.
    pub fn scope(&self) -> &str {
        match self.data.ty() {
            Type::Pointer { scope, .. } => scope,
            Type::Prim(_) | Type::TensorMap => "global",
        }
    }

    /// A new buffer with `change` applied to the description.
    pub fn with(&self, change: impl FnOnce(&mut BufferNode)) -> Buffer {
        let mut node = (*self.0).clone();
        change(&mut node);
        Buffer::new(node)
    }

    /// The buffer over `data`, with `f` applied to each expression of its description; the buffer itself if nothing
    /// changes.
    pub fn map_exprs(&self, data: Var, mut f: impl FnMut(&Expr) -> Expr) -> Buffer {
        let shape = map_exprs(&self.shape, &mut f);
        let strides = map_exprs(&self.strides, &mut f);
        let elem_offset = self.elem_offset.as_ref().map(&mut f);
        let allocated_addr = map_exprs(&self.allocated_addr, &mut f);
        let mut layout_changed = false;
        let layout = self.layout.as_ref().map(|layout| {
            layout.map_exprs(&mut |e| {
                let new = f(e);
                layout_changed |= !new.same_node(e);
                new
            })
        });
        let same_offset = elem_offset
            .iter()
            .zip(&self.elem_offset)
            .all(|(a, b)| a.same_node(b));
        let same_lists = shape.is_none() && strides.is_none() && allocated_addr.is_none();
        if data == self.data && same_lists && same_offset && !layout_changed {
            return self.clone();
        }
        self.with(|node| {
            node.data = data;
            node.shape = shape.unwrap_or_else(|| std::mem::take(&mut node.shape));
            node.strides = strides.unwrap_or_else(|| std::mem::take(&mut node.strides));
            node.elem_offset = elem_offset;
            node.allocated_addr = allocated_addr.unwrap_or_else(|| std::mem::take(&mut node.allocated_addr));
            node.layout = layout;
        })
    }

    /// A number that no other living buffer has. Never print or store it.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Product of the extents, if all are constant.
    pub fn const_size(&self) -> Option<i128> {
        self.shape.iter().map(|e| e.as_int()).product()
    }

    /// Calls `f` with every expression of the description: shape, strides, offset, address and those of the layout.
    pub fn for_each_expr<'a>(&'a self, mut f: impl FnMut(&'a Expr)) {
        self.shape.iter().chain(&self.strides).for_each(&mut f);
        self.elem_offset
            .iter()
            .chain(&self.allocated_addr)
            .for_each(&mut f);
        if let Some(layout) = &self.layout {
            layout.for_each_expr(f);
        }
    }

    /// Every expression of the description, in this order.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut all = Vec::new();
        self.for_each_expr(|e| all.push(e));
        all
    }
}

impl BufferNode {
    /// A description without layout, strides or offset.
    pub fn flat(
        name: impl Into<Arc<str>>,
        data: Var,
        dtype: DType,
        shape: Vec<Expr>,
        span: Span,
    ) -> BufferNode {
        BufferNode {
            name: name.into(),
            data,
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: None,
            layout: None,
            align: DEFAULT_ALIGN,
            offset_factor: 1,
            allocated_addr: Vec::new(),
            view: None,
            span,
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Buffer {}
impl Hash for Buffer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.scope())
    }
}
