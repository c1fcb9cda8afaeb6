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
//! };
//! let stats = program.launch(&memory, &launch, &StandIns::new())?;
//! println!("{} lane operations", stats.lane_ops);
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `memory` | global memory: allocations by address |
//! | `numeric` | kinds of value, rounding, conversions |
//! | `cvt`, `rounded` | conversions and arithmetic of PTX that round as their modifiers say |
//! | `alu` | what arithmetic computes, for scalars and lanes |
//! | `bytecode` | the instructions |
//! | `compile` | IR to bytecode |
//! | `exec` | running it |
//! | `launch` | [`Program`], launch checks, blocks in parallel |
//! | `host` | host functions: argument checks and launches, as a launcher does them |
//! | `tensor` | what tensor cores compute |
//! | `stand_in` | Rust closures in place of raw CUDA functions |
//! | `timeline` | when warps ran and waited |
//! | `tensor_map` | tensor maps of the copy engine |
//! | `fault` | errors |

#![forbid(unsafe_code)]

mod alu;
mod bytecode;
mod compile;
mod cvt;
mod exec;
mod fault;
pub mod host;
mod launch;
mod memory;
mod numeric;
mod rounded;
mod stand_in;
mod tensor;
mod tensor_map;
mod timeline;
mod window;

pub use compile::CompileOptions;
pub use fault::{Fault, FaultKind, FaultLocation, FaultNote, FaultReport};
pub use launch::{Launch, LaunchOptions, MOST_SHARED, ParamKind, Position, Program, Stats};
pub use memory::{Allocation, Memory};
pub use stand_in::{StandInCall, StandIns};
pub use tensor_map::{MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap, TensorMapSwizzle, TensorMapType};
pub use timeline::{TimelineEvent, Track, trace};
pub use window::Window;
