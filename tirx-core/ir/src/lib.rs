//! What a TIRx program means.
//!
//! **Module and functions.** An [`IRModule`] maps names to [`PrimFunc`]s. A function has parameters (each a
//! [`Var`]: a scalar or a pointer), a `buffer_map` that says which pointer parameters are tensors and how they
//! are laid out, attributes and a body.
//!
//! **Expressions** ([`Expr`]) are pure trees but for calls: evaluating one reads variables and memory and has no
//! side effect, except for a [`Call`](ExprKind::Call) whose operator says otherwise
//! ([`Effect`](crate::intrin::Effect)). Operands are evaluated once each, in unspecified order; `And`, `Or` and
//! the call `if_then_else` are lazy, `Select` evaluates all three operands. Each expression has a [`DType`];
//! operands of an arithmetic node have the same one. Integers wrap (signed overflow is not used by any rewrite
//! that index arithmetic could notice).
//!
//! **Statements** ([`Stmt`]) run in order. Declarations are flat: [`Bind`](StmtKind::Bind),
//! [`AllocBuffer`](StmtKind::AllocBuffer), [`DeclBuffer`](StmtKind::DeclBuffer) and
//! [`ScopeId`](StmtKind::ScopeId) hold from where they stand to the end of the enclosing [`Seq`](StmtKind::Seq)
//! (or of the body they are the whole of). Loops run `loop_var` from `min` over `extent` values.
//! A [`Tile`](StmtKind::Tile) primitive is performed by the threads of its scope together; LowerTIRx replaces it.
//!
//! **Variables** are immutable and have identity: two variables with one name are two variables. A mutable
//! scalar is a one-element buffer in scope `local`.
//!
//! **Buffers** ([`Buffer`]) are views: a data pointer, an element type, a shape, and the way from a coordinate to
//! an address. They have identity too. The memory behind a pointer is of one storage scope
//! (`global`, `shared`, `shared.dyn`, `local`, `warp`, `tmem`), named by the pointer's [`Type`].
//!
//! **Spans.** Each node carries the span of the text it came from; passes hand it on
//! (see [`crate::source::Span`]). Spans take no part in equality.
//!
//! Nodes are reference-counted and immutable: cloning is cheap, sharing is invisible.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

// The paths under which this crate and those above refer to modules: `crate::ir`, `crate::source`.
use crate as ir;
use tirx_source::{diagnostic, source};

pub mod abi;
mod buffer;
pub mod builder;
mod changed;
mod deep;
mod equal;
mod expr;
pub mod fold;
mod func;
mod gpu;
pub mod image;
pub mod intrin;
pub mod layout;
mod mutate;
mod printer;
mod stmt;
pub mod tile;
pub mod typing;
mod var;
mod verify;
mod visit;

pub use buffer::{Buffer, BufferNode, DEFAULT_ALIGN, View};
pub use deep::{Levels, MAX_LEVELS, on_one_stack, with_stack, with_stack_for};
pub use equal::{Comparison, Mismatch, Structural, structural_equal, structural_hash};
pub use expr::{BinOp, Expr, ExprKind, ExprNode};
pub use func::{AttrValue, Attrs, IRModule, PrimFunc};
pub use gpu::{Gpu, Limits, UnknownGpu, Variant};
pub use mutate::{Mutator, substitute, substitute_stmt};
pub use printer::{print, print_expr, print_func, print_layout, print_stmt};
pub use stmt::{
    Assert, Attr, AttrNode, BufferStore, ForKind, ForLoop, HINT, HINT_MESSAGE, ScopeIdDef, ScopeIdKind, Stmt,
    StmtKind, StmtNode,
};
pub use tile::{BufferRegion, ExecScope, TileArg, TileCall, TileOp};
pub use tirx_dtype::{
    DType, ELEMENT_TYPES, ElementType, Minifloat, TypeCode, UnknownDType, bf16, f16, odd_f32, odd_f64,
};
pub use var::{IterKind, IterVar, Type, Var};
pub use verify::{verify, verify_func};
pub use visit::{Visitor, is_pure, uses_var};
