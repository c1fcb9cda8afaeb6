//! Variants of `sum`, `max` and `min`, and their common part: the inputs of an output, and the combination of values.

mod local;
mod shared;

use super::build::elements;
use super::context::Context;
use super::copy::{FULL_SCOPE, SCOPE};
use super::variant::{OptionKind, Predicate, TileOption, Variant, ready};
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::BinOp;
use crate::ir::typing::{self, Arithmetic};
use crate::ir::{Buffer, BufferRegion, DType, Expr, Stmt, TileArg, TileCall, TileOp};
use crate::layout::apply::binary;
use crate::source::Span;

const OPERATIONS: &[TileOp] = &[TileOp::Sum, TileOp::Max, TileOp::Min];

const THREAD_REDUCE: &[TileOption] = &[TileOption {
    name: "thread_reduce",
    kind: OptionKind::Flag,
    default: "False",
    doc: "lanes that hold parts of one output exchange their results, also where the output is spread over them",
}];

pub(super) static VARIANTS: &[Variant] = &[
    Variant {
        ops: OPERATIONS,
        name: "local",
        aliases: &[],
        priority: 10,
        only_forced: false,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            Predicate {
                name: "both regions in local memory, or anywhere that one thread reaches at scope thread",
                holds: |call, cx| Ok(local::reachable(call.tile, cx)?),
            },
        ],
        options: THREAD_REDUCE,
        plan: |call, cx| ready(call, cx, local::lower),
        doc: "each thread reduces what it holds; with thread_reduce=True, or where the output is not spread over the threads, lanes exchange their results",
        ..Variant::DEFAULT
    },
    Variant {
        ops: OPERATIONS,
        name: "shared",
        aliases: &[],
        priority: 10,
        only_forced: false,
        predicates: &[
            SCOPE,
            FULL_SCOPE,
            Predicate {
                name: "both regions in shared memory",
                holds: |call, cx| Ok(shared::both_shared(call.tile, cx)?),
            },
        ],
        options: THREAD_REDUCE,
        plan: |call, cx| ready(call, cx, shared::lower),
        doc: "each output by up to 32 threads, which exchange their results",
        ..Variant::DEFAULT
    },
];

fn operands(call: &TileCall) -> Result<(&BufferRegion, &BufferRegion), String> {
    match (call.region(0), call.region(1)) {
        (Some(dst), Some(src)) => Ok((dst, src)),
        _ => Err("a reduction is between two regions".to_string()),
    }
}

/// A call's operands.
struct Plan<'a> {
    op: TileOp,
    dst: &'a BufferRegion,
    src: &'a BufferRegion,
    /// Which dimensions of the input are reduced.
    reduced: Vec<bool>,
    /// Number of outputs.
    outputs: i128,
    /// Number of inputs per output.
    inputs: i128,
    /// Whether the output's old value is included.
    accumulates: bool,
    span: Span,
}

impl<'a> Plan<'a> {
    fn of(call: &'a TileCall, span: Span) -> Result<Plan<'a>, String> {
        let (dst, src) = operands(call)?;
        let rank = src.ranges.len();
        let mut reduced = vec![false; rank];
        let Some(TileArg::Axes(axes)) = call.args.get(2) else {
            return Err("no axes are given".to_string());
        };
        for axis in axes {
            let at = if *axis < 0 { axis + rank as i64 } else { *axis };
            match usize::try_from(at).ok().and_then(|at| reduced.get_mut(at)) {
                Some(axis) => *axis = true,
                None => return Err(format!("axis {axis} of an input of {rank} dimensions")),
            }
        }
        let extents = src
            .const_extents()
            .ok_or("the extents of the input are not constant")?;
        let product = |of: bool| -> i128 {
            let dims = extents.iter().zip(&reduced);
            dims.filter(|(_, r)| **r == of).map(|(e, _)| *e).product()
        };
        let accumulates = match call.args.get(3) {
            Some(TileArg::Expr(e)) => match e.as_int() {
                Some(v) => v != 0,
                None => return Err("accum is not known when the kernel is compiled".to_string()),
            },
            _ => false,
        };
        Ok(Plan {
            op: call.op,
            dst,
            src,
            outputs: elements(dst).ok_or("the extents of the output are not constant")?,
            inputs: product(true),
            accumulates,
            reduced,
            span,
        })
    }

    /// The output must have the extents of the input's kept dimensions.
    fn check_size(&self) -> Result<(), String> {
        let extents = self.src.const_extents().unwrap_or_default();
        let dims = extents.iter().zip(&self.reduced);
        let left: i128 = dims.filter(|(_, r)| !**r).map(|(e, _)| *e).product();
        if left == self.outputs {
            return Ok(());
        }
        Err(format!(
            "dst size {} != expected spatial size {left}",
            self.outputs
        ))
    }

    fn dtype(&self) -> DType {
        self.dst.buffer.dtype
    }

    /// The input's coordinate from the number of the output and the number of the input within it.
    fn source(&self, output: &Expr, input: &Expr) -> Vec<Expr> {
        let (mut left_out, mut left_in) = (output.clone(), input.clone());
        let mut at = Vec::new();
        for (dim, (start, extent)) in self.src.ranges.iter().enumerate().rev() {
            let rest = if self.reduced[dim] {
                &mut left_in
            } else {
                &mut left_out
            };
            let extent = Expr::constant(rest.dtype, extent.as_int().unwrap_or(1));
            let digit = fold::floormod(rest.clone(), extent.clone());
            *rest = fold::floordiv(rest.clone(), extent);
            at.push(binary(BinOp::Add, digit, start.clone()));
        }
        at.reverse();
        at
    }

    /// A value of the output's dtype.
    fn converted(&self, value: Expr) -> Result<Expr, String> {
        typing::cast(value.into(), self.dtype(), self.span).map_err(|error| error.message)
    }

    fn combined(&self, a: Expr, b: Expr) -> Result<Expr, String> {
        let op = match self.op {
            TileOp::Sum => Arithmetic::Add,
            TileOp::Max => Arithmetic::Max,
            _ => Arithmetic::Min,
        };
        typing::binary(op, a.into(), b.into(), self.span).map_err(|error| error.message)
    }

    fn zero(&self) -> Result<Expr, String> {
        typing::cast(typing::Operand::Int(0), self.dtype(), self.span).map_err(|error| error.message)
    }
}

/// A register that a thread reduces into.
struct Accumulator<'a> {
    plan: &'a Plan<'a>,
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
    fn add(&self, value: Expr) -> Result<Stmt, String> {
        let next = self.plan.converted(value)?;
        Ok(self.set(self.plan.combined(self.value(), next)?))
    }

    /// Combines the values of lanes whose numbers differ in these bits, one bit after the other; afterwards all of them
    /// hold the result.
    fn exchange(&self, masks: &[i128], active: u32) -> Result<Vec<Stmt>, String> {
        let dtype = self.plan.dtype();
        if !masks.is_empty() && !can_be_exchanged(dtype) {
            return Err(format!("lanes cannot exchange values of {dtype}"));
        }
        let exchanged = |mask: &i128| {
            let args = vec![
                Expr::constant(DType::UINT32, active.into()),
                self.value(),
                Expr::int32(*mask as i32),
                Expr::int32(32),
                Expr::int32(32),
            ];
            let other = Expr::call(Op::TvmWarpShuffleXor, dtype, args).at(self.plan.span);
            Ok(self.set(self.plan.combined(self.value(), other)?))
        };
        masks.iter().map(exchanged).collect()
    }
}

/// Whether a shuffle supports a dtype.
fn can_be_exchanged(dtype: DType) -> bool {
    let float = [DType::FLOAT16, DType::BFLOAT16, DType::FLOAT32, DType::FLOAT64].contains(&dtype);
    dtype.lanes == 1 && (float || dtype.is_integer() && !dtype.is_bool())
}

/// The first failure of a closure that cannot return one.
#[derive(Default)]
struct Failed(Option<String>);

impl Failed {
    fn or(&mut self, stmt: Result<Stmt, String>) -> Stmt {
        stmt.unwrap_or_else(|reason| {
            self.0.get_or_insert(reason);
            Stmt::nop()
        })
    }

    fn finish(self, stmt: Stmt) -> Result<Stmt, String> {
        match self.0 {
            Some(reason) => Err(reason),
            None => Ok(stmt),
        }
    }
}

/// Number of lanes of a warp in a scope of this many threads.
fn lanes(cx: &Context<'_>) -> Result<i128, String> {
    Ok(cx.thread_count()?.min(super::active::LANES))
}
