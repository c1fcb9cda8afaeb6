//! Random kernels that are valid by construction, as kernel text.
//!
//! A kernel is made from a seed alone. It is well typed, in bounds, free of races (a thread writes its own elements;
//! shared memory changes hands at barriers in uniform control flow; counters are only added to), reads nothing
//! uninitialized, and computes nothing that is undefined: integers carry bounds, so that no signed one overflows, no
//! shift is too wide and no divisor is zero; floats stay finite. So each difference between two ways to run it is a
//! defect of the compiler or the simulator.
//!
//! | file | what it makes |
//! |---|---|
//! | `random` | numbers from a seed |
//! | `bounds` | what is known of values |
//! | `program` | the tree, its text, smaller trees |
//! | `expressions` | expressions of integers and truth values, casts |
//! | `floats` | floating expressions |
//! | `memory` | buffers and accesses |
//! | `views` | other names for a buffer's storage |
//! | `shared` | shared memory: buffers, pools, scalars, counters |
//! | `statements` | statements and control flow |
//! | `functions` | inline functions |
//! | `vectors` | vectorized loops, vector loads and stores |
//! | `lanes` | shuffles, votes and reductions |
//! | `threads` | blocks, threads, values computed before the launch |
//! | `launch` | parameters, results, the whole kernel |

mod bounds;
mod expressions;
mod floats;
mod functions;
mod lanes;
mod launch;
mod memory;
mod program;
pub mod random;
mod shared;
mod statements;
mod threads;
mod vectors;
mod views;

pub use bounds::Bounds;
pub use program::{Argument, Expr, Kernel, Node, Piece};
pub use random::Random;

use functions::Function;
use memory::Array;
use tirx_core::ir::{DType, TypeCode};
use vectors::Vectors;

const INTEGERS: &[DType] = &[
    DType::INT32,
    DType::INT8,
    DType::INT16,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
];

const FLOATS: &[DType] = &[DType::FLOAT32, DType::FLOAT16, DType::BFLOAT16, DType::FLOAT64];

const FLOAT8: &[DType] = &[
    DType::scalar(TypeCode::Float8_e4m3fn, 8),
    DType::scalar(TypeCode::Float8_e5m2, 8),
];

/// The kernel of a seed.
pub fn generate(seed: u64) -> Kernel {
    launch::kernel(seed, false)
}

/// A kernel with only operations that have a single correct result on every machine.
pub fn generate_exact(seed: u64) -> Kernel {
    launch::kernel(seed, true)
}

/// A name that stands for a value.
#[derive(Clone, Debug)]
struct Value {
    expr: Expr,
    /// The symbolic extent that it is known to be below.
    below: Option<String>,
}

impl Value {
    fn new(expr: Expr, below: Option<String>) -> Value {
        Value { expr, below }
    }
}

/// A scalar that can be assigned.
#[derive(Clone, Debug)]
struct Scalar {
    name: String,
    dtype: DType,
    bounds: Bounds,
}

/// An enclosing loop.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// Whether all threads of the block run the same iterations.
    uniform: bool,
}

struct Generator {
    random: Random,
    names: u32,
    values: Vec<Value>,
    scalars: Vec<Scalar>,
    arrays: Vec<Array>,
    vectors: Vec<Vectors>,
    functions: Vec<Function>,
    /// Whether only integers and bools are generated.
    plain: bool,
    /// Whether only operations that IEEE 754 rounds correctly are generated.
    exact: bool,
    /// Whether stores may go through an inline function.
    inline: bool,
    /// Whether floats in memory may be NaN.
    wild: bool,
    /// Whether there is dynamic shared memory.
    dynamic: bool,
    /// Whether only expressions that are uniform over the block are generated.
    uniform_only: bool,
    /// Nesting of loads whose index is being generated.
    loads: u32,
    /// Storage that must not be read at present.
    unreadable: Vec<String>,
    /// Whether all threads of the block execute this point together.
    together: bool,
    loops: Vec<Around>,
    /// Remaining number of statements.
    budget: u32,
    /// Product of the iterations of enclosing loops.
    turns: i64,
    /// Threads of a block.
    threads: i64,
    /// The dtypes that this kernel mostly uses.
    dtypes: Vec<DType>,
    /// A thread's number in the grid and the symbolic extent that guards it, with its dtype and the buffers behind it.
    guard: Option<(Expr, String, DType, Vec<Array>)>,
}

impl Generator {
    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn any_dtype(&mut self) -> DType {
        if self.plain {
            return *self
                .random
                .pick(&[DType::INT32, DType::INT32, DType::INT64, DType::UINT32]);
        }
        if self.random.chance(80) {
            return *self.random.pick(&self.dtypes.clone());
        }
        match self.random.below(14) {
            13 => *self.random.pick(FLOAT8),
            0 => DType::BOOL,
            n @ 1..=8 => INTEGERS[n - 1],
            n => FLOATS[n - 9],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_kernel() {
        for seed in 0..20 {
            assert_eq!(generate(seed).text(), generate(seed).text());
        }
        assert_ne!(generate(1).text(), generate(2).text());
    }

    #[test]
    fn exact_kernels_call_no_function_that_is_approximated() {
        for seed in 0..300 {
            let text = generate_exact(seed).text();
            let found = ["T.exp", "T.sin(", "T.rsqrt(", "T.pow(", "T.log"];
            assert!(!found.iter().any(|name| text.contains(name)), "{text}");
        }
        assert!((0..300).any(|seed| generate_exact(seed).text().contains("T.sqrt(")));
    }

    #[test]
    fn shrinking_keeps_what_matters() {
        let kernel = generate(3);
        let small = kernel.shrink(5000, &mut |k| k.text().contains("T.device_entry()"));
        assert!(small.text().len() < kernel.text().len());
        assert!(small.text().contains("T.device_entry()"));
    }
}
