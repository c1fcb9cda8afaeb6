//! Tensor cores: what their instructions compute, independent of timing.
//!
//! Everything here is a function of registers, bytes and descriptors: no strands, no order, no faults. Shared memory is
//! named by byte addresses (those that descriptors hold) and read by the caller, so that each access can be checked.
//! What cannot be computed is an error in words, which the caller puts at the kernel's line.
//!
//! | file | question |
//! |---|---|
//! | `format` | What value do the bits of an operand have? |
//! | `matrix` | What is the product of two matrices, and what does an accumulator hold then? |
//! | `fragment` | Which element of a matrix is in which register of which lane (`mma.sync`)? |
//! | `mma` | What does `mma.sync` compute, dense and sparse? |
//! | `sparse` | What does a sparse A hold, with its zeros? |
//! | `rows` | Which bytes does `ldmatrix` or `stmatrix` move between which lanes? |
//! | `descriptor` | Which bytes of shared memory does a matrix descriptor name (`wgmma`, `tcgen05`)? |
//! | `wgmma` | What does `wgmma` compute, and which lane holds it? |
//! | `tmem` | What does tensor memory hold, and who has allocated it? |
//! | `transfer` | Which cells does `tcgen05.ld`, `.st` or `.cp` move? |
//! | `tcgen05` | What does `tcgen05.mma` compute, and in which cells? |

pub mod descriptor;
pub mod format;
pub mod fragment;
pub mod matrix;
pub mod mma;
pub mod rows;
pub mod sparse;
pub mod tcgen05;
pub mod tmem;
pub mod transfer;
pub mod wgmma;

/// A value, or the reason why there is none.
pub type Outcome<T> = Result<T, String>;
