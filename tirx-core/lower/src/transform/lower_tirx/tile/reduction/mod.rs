//! Variants of `sum`, `max` and `min`, and their common part: the inputs of an output, and the combination of values.

mod local;
mod packed;
mod shared;

use super::call::PrimitiveCall;
use super::decline::Decline;
use super::digits::split;
use super::formula::Formula;
use super::operands::elements;
use super::option::{OptionKind, TileOption};
use super::predicates::{FULL_SCOPE, SCOPE};
use super::variant::{Predicate, Variant};
use crate::intrin::{GpuSet, Op};
use crate::ir::BinOp;
use crate::ir::typing::{self, Arithmetic};
use crate::ir::{Buffer, BufferRegion, DType, Expr, Stmt, TileOp};
use crate::layout::apply::binary;
use crate::source::Span;

const OPERATIONS: &[TileOp] = &[TileOp::Sum, TileOp::Max, TileOp::Min];

const THREAD_REDUCE: &[TileOption] = &[TileOption {
    name: "thread_reduce",
    kind: OptionKind::Flag,
    default: "False",
    doc: "lanes that hold parts of one output exchange their results, even if the output is spread over them",
}];

/// The variants with instructions of sm_100 for float32 in registers.
const fn packed(ops: &'static [TileOp], name: &'static str, doc: &'static str) -> Variant {
    Variant {
        ops,
        name,
        priority: 20,
        arch: GpuSet::least(100),
        predicates: &[Predicate {
            name: "scope thread, float32 in local memory",
            holds: packed::own_floats,
        }],
        options: THREAD_REDUCE,
        plan: packed::plan,
        doc,
        ..Variant::DEFAULT
    }
}

pub(super) static VARIANTS: &[Variant] = &[
    packed(
        &[TileOp::Sum],
        "packed_add_sum",
        "at least eight float32 of a thread, added in pairs",
    ),
    packed(
        &[TileOp::Max, TileOp::Min],
        "3input_maxmin",
        "at least eight float32 of a thread, compared by instructions of three operands",
    ),
    Variant {
        ops: OPERATIONS,
        name: "local",
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            Predicate {
                name: "both regions in local memory, or anywhere that one thread reaches at scope thread",
                holds: local::reachable,
            },
        ],
        options: THREAD_REDUCE,
        plan: local::plan,
        doc: "each thread reduces its own elements; with thread_reduce=True, or if the output is not spread over the threads, lanes exchange their results",
        ..Variant::DEFAULT
    },
    Variant {
        ops: OPERATIONS,
        name: "shared",
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            Predicate {
                name: "both regions in shared memory",
                holds: shared::both_shared,
            },
        ],
        options: THREAD_REDUCE,
        plan: shared::plan,
        doc: "each output by up to 32 threads, which exchange their results",
        ..Variant::DEFAULT
    },
];

/// What a reduction makes of its inputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduces {
    Sum,
    Max,
    Min,
}

/// A call's operands.
struct Reduction {
    op: Reduces,
    dst: BufferRegion,
    src: BufferRegion,
    /// Which dimensions of the input are reduced.
    reduced: Vec<bool>,
    /// Number of outputs.
    outputs: i128,
    /// Number of inputs per output.
    inputs: i128,
    /// Whether the output's old value is included.
    accumulates: bool,
    /// A value of the input's dtype, converted to the output's.
    convert: Formula,
    /// Two values of the output's dtype, combined.
    combine: Formula,
    zero: Expr,
    span: Span,
}

impl Reduction {
    fn from_call(call: &PrimitiveCall<'_>) -> Result<Reduction, Decline> {
        let (dst, src) = call.moved()?;
        let rank = src.ranges.len();
        let mut reduced = vec![false; rank];
        for axis in call.axes("axes") {
            let at = if *axis < 0 { axis + rank as i64 } else { *axis };
            match usize::try_from(at).ok().and_then(|at| reduced.get_mut(at)) {
                Some(axis) => *axis = true,
                None => {
                    return Err(Decline::mistake(
                        format!("axis {axis} of an input of {rank} dimensions"),
                        format!(
                            "axes count from 0 to {}, or from the end from -1",
                            rank.saturating_sub(1)
                        ),
                    ));
                }
            }
        }
        let extents = src
            .const_extents()
            .ok_or("the extents of the input are not constant")?;
        let product = |of: bool| -> i128 {
            let dims = extents.iter().zip(&reduced);
            dims.filter(|(_, r)| **r == of).map(|(e, _)| *e).product()
        };
        let (span, from, to) = (call.span, src.buffer.dtype, dst.buffer.dtype);
        let (reduces, op) = match call.op {
            TileOp::Sum => (Reduces::Sum, Arithmetic::Add),
            TileOp::Max => (Reduces::Max, Arithmetic::Max),
            TileOp::Min => (Reduces::Min, Arithmetic::Min),
            other => return Err(format!("{} is no reduction", other.name()).into()),
        };
        let convert = Formula::build(&[from], |v| typing::cast(v[0].clone().into(), to, span));
        let combine = Formula::build(&[to, to], |v| {
            typing::binary(op, v[0].clone().into(), v[1].clone().into(), span)
        });
        let zero = typing::cast(typing::Operand::Int(0), to, span);
        Ok(Reduction {
            op: reduces,
            dst: dst.clone(),
            src: src.clone(),
            outputs: elements(dst).ok_or("the extents of the output are not constant")?,
            inputs: product(true),
            accumulates: call.flag("accum")?,
            reduced,
            convert: convert.map_err(|error| error.message)?,
            combine: combine.map_err(|error| error.message)?,
            zero: zero.map_err(|error| error.message)?,
            span,
        })
    }

    /// The output must have the extents of the input's kept dimensions.
    fn check_size(&self) -> Result<(), Decline> {
        let extents = self.src.const_extents().unwrap_or_default();
        let dims = extents.iter().zip(&self.reduced);
        let left: i128 = dims.filter(|(_, r)| !**r).map(|(e, _)| *e).product();
        if left == self.outputs {
            return Ok(());
        }
        Err(format!("dst size {} != expected spatial size {left}", self.outputs).into())
    }

    fn dtype(&self) -> DType {
        self.dst.buffer.dtype
    }

    /// The input's coordinate from the number of the output and the number of the input within it.
    fn source(&self, output: &Expr, input: &Expr) -> Vec<Expr> {
        let digits = |number: &Expr, reduced: bool| {
            let dims = self.src.ranges.iter().zip(&self.reduced);
            let extents: Vec<i128> = dims
                .filter(|(_, r)| **r == reduced)
                .map(|((_, e), _)| e.as_int().unwrap_or(1))
                .collect();
            split(number, &extents).into_iter()
        };
        let (mut kept, mut reduced) = (digits(output, false), digits(input, true));
        let dims = self.src.ranges.iter().zip(&self.reduced);
        dims.filter_map(|((start, _), is_reduced)| {
            let digit = if *is_reduced { reduced.next() } else { kept.next() };
            Some(binary(BinOp::Add, digit?, start.clone()))
        })
        .collect()
    }

    /// A value of the output's dtype.
    fn converted(&self, value: Expr) -> Expr {
        self.convert.apply(&[value])
    }

    fn combined(&self, a: Expr, b: Expr) -> Expr {
        self.combine.apply(&[a, b])
    }

    /// Whether lanes can exchange partial results.
    fn check_exchange(&self) -> Result<(), Decline> {
        let dtype = self.dtype();
        match can_be_exchanged(dtype) {
            true => Ok(()),
            false => Err(format!("lanes cannot exchange values of {dtype}").into()),
        }
    }
}

/// A register that a thread reduces into.
struct Accumulator<'a> {
    plan: &'a Reduction,
    buffer: &'a Buffer,
}

impl Accumulator<'_> {
    fn value(&self) -> Expr {
        Expr::load(self.buffer, vec![Expr::int32(0)]).at(self.plan.span)
    }

    fn set(&self, value: Expr) -> Stmt {
        Stmt::store(self.buffer, vec![Expr::int32(0)], value, self.plan.span)
    }

    /// Combines one more value.
    fn add(&self, value: Expr) -> Stmt {
        let next = self.plan.converted(value);
        self.set(self.plan.combined(self.value(), next))
    }

    /// Combines the values of lanes whose numbers differ in these bits, one bit after the other; afterwards all of them
    /// hold the result. `active` is the mask of the lanes that take part.
    fn exchange(&self, masks: &[i128], active: u32) -> Vec<Stmt> {
        let exchanged = |mask: &i128| {
            let other = Op::TvmWarpShuffleXor
                .call()
                .set("mask", Expr::constant(DType::UINT32, active.into()))
                .set("value", self.value())
                .set("lane_mask", *mask as i32)
                .set("width", 32)
                .set("warp_size", 32)
                .at(self.plan.span);
            self.set(self.plan.combined(self.value(), other.build()))
        };
        masks.iter().map(exchanged).collect()
    }
}

/// Whether a shuffle supports a dtype.
fn can_be_exchanged(dtype: DType) -> bool {
    let float = [DType::FLOAT16, DType::BFLOAT16, DType::FLOAT32, DType::FLOAT64].contains(&dtype);
    dtype.lanes == 1 && (float || dtype.is_integer() && !dtype.is_bool())
}

/// The mask of the lanes of a warp in a scope of this many threads.
fn lanes(threads: i128) -> u32 {
    match threads {
        0..32 => (1 << threads) - 1,
        _ => u32::MAX,
    }
}
