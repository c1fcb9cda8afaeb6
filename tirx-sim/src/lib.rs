//! Runs lowered TIRx device functions on the CPU and checks them.
//!
//! A device function, the very IR that CUDA text is printed from, is compiled once ([`Program::compile`]) to a
//! bytecode over registers of 32 lanes. A launch runs its blocks in parallel, each block's warps in lockstep of
//! 32 lanes with divergence as on a GPU. Every access is checked: bounds, alignment, initialization and order. An
//! error is a [`Fault`] with the kernel's source line, block and thread; nothing a kernel does harms the process.
//!
//! ```
//! # fn demo(module: &tirx_ir::IRModule) -> Result<(), Box<dyn std::error::Error>> {
//! use tirx_sim::{Launch, Memory, Program, StandIns};
//!
//! let program = Program::compile(module, "scale_kernel")?;
//! let memory = Memory::new();
//! let (a, b) = (memory.alloc(1024), memory.alloc(1024));
//! let launch = Launch {
//!     grid: [1, 1, 1],
//!     block: [256, 1, 1],
//!     cluster: [1, 1, 1],
//!     shared_bytes: 0,
//!     args: &[a.address(), b.address()],
//!     peers: &[],
//! };
//! let stats = program.launch(&memory, &launch, &StandIns::new())?;
//! println!("{} lane operations", stats.lane_ops);
//! # Ok(())
//! # }
//! ```
//!
//! | where | what it is |
//! |---|---|
//! | `compile` | IR to bytecode |
//! | `launch` | [`Program`], launch checks |
//! | `host` | host functions: argument checks and launches, as a launcher does them |
//! | the crate `tirx-sim-machine` | the bytecode and what runs it: memory, warps, asynchronous operations, tensor cores, faults |

#![forbid(unsafe_code)]

mod compile;
pub mod host;
mod launch;

pub use compile::{CompileOptions, simulates};
pub use launch::{ParamKind, Position, Program};
pub use tirx_sim_machine::{
    Allocation, Branch, ContinueAfter, Counts, Excusable, Exploration, Explored, Fault, FaultKind,
    FaultLocation, FaultNote, FaultReport, KINDS, Launch, LaunchOptions, LineAccuracy, LineCounts,
    LineCoverage, MAX_DIMENSIONS, Memory, Named, Observe, PRODUCTS, Phases, ShadowValue, Snapshot,
    StandInCall, StandIns, StatementAccuracy, Stats, StopAt, Symmetric, TENSOR_MAP_BYTES, TensorMap,
    TensorMapSwizzle, TensorMapType, TimelineEvent, Track, Window, Work, trace,
};
