//! Runs the bytecode of a device function, and checks it: `tirx-sim` compiles to it.
//!
//! This crate knows no IR: what simulates every lane of a kernel is optimized in debug builds too, and is not built again
//! when the IR changes. What `tirx-sim` does not hand on is for it alone, and may change.
//!
//! | file | what it is |
//! |---|---|
//! | `memory` | global memory: allocations by address |
//! | `numeric` | kinds of value, rounding, conversions |
//! | `cvt`, `rounded` | conversions and arithmetic of PTX that round as their modifiers say |
//! | `alu` | what arithmetic computes, for scalars and lanes |
//! | `bytecode` | the instructions |
//! | `exec` | running them |
//! | `grid` | a launch: blocks in parallel |
//! | `turns` | in which order blocks affect one another |
//! | `tensor` | what tensor cores compute |
//! | `stand_in` | Rust closures in the place of raw CUDA functions |
//! | `timeline` | when warps ran and waited |
//! | `accuracy` | errors of float values by line |
//! | `observe` | counts by line, values at a line |
//! | `tensor_map` | tensor maps of the copy engine |
//! | `location` | lines of the kernel's text |
//! | `fault` | errors, and the statistics of a launch |
//! | `findings` | errors that a launch may go on after |

#![forbid(unsafe_code)]

mod accuracy;
#[doc(hidden)]
pub mod alu;
#[doc(hidden)]
pub mod bytecode;
mod coverage;
#[doc(hidden)]
pub mod cvt;
mod exec;
mod explore;
mod fault;
mod findings;
#[doc(hidden)]
pub mod grid;
mod location;
mod memory;
#[doc(hidden)]
pub mod numeric;
mod observe;
#[doc(hidden)]
pub mod rounded;
mod stand_in;
#[doc(hidden)]
pub mod tensor;
#[doc(hidden)]
pub mod tensor_map;
mod timeline;
mod turns;
mod window;
mod work;

pub use accuracy::{LineAccuracy, ShadowValue, StatementAccuracy};
#[doc(hidden)]
pub use bytecode::{DebugHome, DebugName};
pub use coverage::{Branch, LineCoverage, Phases};
#[doc(hidden)]
pub use exec::address;
pub use explore::{Exploration, Explored};
pub use fault::{Fault, FaultKind, FaultNote, FaultReport, Stats};
pub use findings::{ContinueAfter, Excusable};
pub use grid::{Launch, LaunchOptions};
pub use location::FaultLocation;
pub use memory::{Allocation, Memory, Symmetric};
pub use observe::{Counts, KINDS, LineCounts, Named, Observe, Snapshot, StopAt};
pub use stand_in::{StandInCall, StandIns};
pub use tensor_map::{MAX_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap, TensorMapSwizzle, TensorMapType};
pub use timeline::{TimelineEvent, Track, trace};
pub use window::Window;
pub use work::{PRODUCTS, Work};
