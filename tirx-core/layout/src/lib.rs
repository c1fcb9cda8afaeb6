//! Layouts: which places the elements of a tensor have, and how layouts are taken apart and put together.
//!
//! | file | question |
//! |---|---|
//! | `tirx_ir::layout`, re-exported here | what is a layout, and which place does it give a coordinate? |
//! | [`axes`] | what does an axis count, and which axes are one together? |
//! | [`TileAlgebra`], [`LayoutAlgebra`] | how is a layout split along a shape, shortened, cut to a part? |
//! | [`Composition`] | which layout repeats one at the places of another, and which two is it made of? |
//!
//! Operations are traits: the types are nodes of the IR.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod algebra;
pub mod axes;
mod compose;

#[cfg(test)]
mod enumeration_test;

pub use algebra::{LayoutAlgebra, TileAlgebra, carved};
pub use compose::Composition;
pub use tirx_ir::layout::{Axis, Iter, Layout, Swizzle, TileLayout, apply};
