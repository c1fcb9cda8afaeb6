//! `sum` → `packed_add_sum`, `max`, `min` → `3input_maxmin`: float32 in a thread's own memory, with the instructions of
//! sm_100.
//!
//! **Idea.** A sum has eight partial sums in four pairs, to which `add.f32x2` adds four pairs of inputs in four
//! instructions; at the end the pairs are added to one another. A maximum or minimum has four partial results, to each of
//! which an instruction of three operands adds two inputs.
//!
//! **Conditions.** Scope thread, sm_100 or later; both regions float32 in local memory and not spread over threads; at
//! least eight inputs per output. Sums are rounded to the nearest, in another order than one after the other.
//!
//! **Cost.** Half an instruction per input.

use super::super::build::{address, local, repeat};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::elementwise::coordinate_of;
use super::super::emit::Emit;
use super::super::variant::{Emits, Explanation, Plan};
use super::{Reduces, Reduction};
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{Buffer, DType, ExecScope, Expr, Stmt};

/// Inputs that are combined at a time.
const CHUNK: i128 = 8;

/// Predicate: float32 in the calling thread's own memory.
pub(super) fn own_floats(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    if cx.scope != ExecScope::Thread {
        return Err(format!("the scope is {}, expected thread", cx.scope.name()).into());
    }
    let (dst, src) = call.moved()?;
    for region in [dst, src] {
        let buffer = &region.buffer;
        if buffer.scope() != "local" {
            return Err(format!("{} is in {}, not in local memory", buffer.name, buffer.scope()).into());
        }
        if buffer.dtype != DType::FLOAT32 {
            return Err(format!("{} has elements of {}, not float32", buffer.name, buffer.dtype).into());
        }
        if buffer.layout.as_ref().is_none_or(|l| l.has_hardware_axis()) {
            return Err(format!("{} is spread over threads, or has no layout", buffer.name).into());
        }
    }
    Ok(())
}

struct Packed {
    reduction: Reduction,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<Plan, Decline> {
    let reduction = Reduction::from_call(call)?;
    reduction.check_size()?;
    if reduction.inputs < CHUNK {
        return Err(format!("an output has {} inputs, fewer than {CHUNK}", reduction.inputs).into());
    }
    Ok(Box::new(Packed { reduction }))
}

impl Emits for Packed {
    fn explain(&self) -> Explanation {
        let how = match self.reduction.op {
            Reduces::Sum => "pairs of inputs are added by one instruction",
            Reduces::Max | Reduces::Min => "two inputs are compared with a partial result by one instruction",
        };
        Explanation::partition(self.reduction.outputs, 1, 2).line(how)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let plan = &self.reduction;
        let span = plan.span;
        let count = match plan.op {
            Reduces::Sum => CHUNK,
            Reduces::Max | Reduces::Min => CHUNK / 2,
        };
        let (parts, allocate) = local("acc", count, DType::FLOAT32, span);
        let partial = Partial { plan, parts: &parts };
        out.push(allocate);
        out.push(repeat("s", plan.outputs, span, |output| {
            let place = coordinate_of(&output, &plan.dst);
            let old = plan
                .accumulates
                .then(|| Expr::load(&plan.dst.buffer, place.clone()).at(span));
            let load = |input: Expr| Expr::load(&plan.src.buffer, plan.source(&output, &input)).at(span);
            let (steps, value) = match plan.op {
                Reduces::Sum => partial.sum(old, &load),
                Reduces::Max => partial.extreme(Op::PtxReduce3MaxF32, old, &load),
                Reduces::Min => partial.extreme(Op::PtxReduce3MinF32, old, &load),
            };
            Stmt::seq([steps, Stmt::store(&plan.dst.buffer, place, value, span)])
        }));
    }
}

/// Partial results in registers.
struct Partial<'a> {
    plan: &'a Reduction,
    parts: &'a Buffer,
}

impl Partial<'_> {
    fn at(&self, i: Expr) -> Expr {
        Expr::load(self.parts, vec![i]).at(self.plan.span)
    }

    fn part(&self, i: i32) -> Expr {
        self.at(Expr::int32(i))
    }

    fn set(&self, i: Expr, value: Expr) -> Stmt {
        Stmt::store(self.parts, vec![i], value, self.plan.span)
    }

    fn pair(&self, x: Expr, y: Expr) -> Expr {
        let pair = Op::CudaMakeFloat2.call().set("x", x).set("y", y);
        pair.at(self.plan.span).build()
    }

    /// `parts[i], parts[i + 1] += x, y`.
    fn add_pair(&self, i: Expr, x: Expr, y: Expr) -> Stmt {
        let next = fold::add(i.clone(), Expr::int32(1));
        let own = self.pair(self.at(i.clone()), self.at(next));
        let call = Op::PtxAddF32x2
            .call()
            .set("d_addr", address(self.parts, vec![i], self.plan.span))
            .set("a", own)
            .set("b", self.pair(x, y))
            .set("rounding", "rn")
            .set("return_dtype", "void");
        call.at(self.plan.span).stmt()
    }

    /// The statements for whole chunks after the first, by `step(part, number of the chunk's first input for it)`, and
    /// for the inputs that are left, one at a time into the first part.
    fn rest(&self, parts: i128, load: &dyn Fn(Expr) -> Expr, step: &dyn Fn(Expr, Expr) -> Stmt) -> Stmt {
        let (plan, constant) = (self.plan, |v: i128| Expr::int32(v as i32));
        let chunks = plan.inputs / CHUNK;
        let mut all = Vec::new();
        if chunks > 1 {
            all.push(repeat("c", chunks - 1, plan.span, |chunk| {
                let first = fold::mul(fold::add(chunk, constant(1)), constant(CHUNK));
                let each = (0..parts).map(|i| {
                    let from = fold::add(first.clone(), constant(i * CHUNK / parts));
                    step(constant(i), from)
                });
                Stmt::seq(each)
            }));
        }
        let done = chunks * CHUNK;
        if plan.inputs > done {
            all.push(repeat("r", plan.inputs - done, plan.span, |turn| {
                let value = load(fold::add(turn, constant(done)));
                self.set(constant(0), plan.combined(self.part(0), value))
            }));
        }
        Stmt::seq(all)
    }

    fn sum(&self, old: Option<Expr>, load: &dyn Fn(Expr) -> Expr) -> (Stmt, Expr) {
        let mut all: Vec<Stmt> = (0..CHUNK as i32)
            .map(|i| {
                let value = load(Expr::int32(i));
                let value = match (&old, i) {
                    (Some(old), 0) => self.plan.combined(old.clone(), value),
                    _ => value,
                };
                self.set(Expr::int32(i), value)
            })
            .collect();
        all.push(self.rest(CHUNK / 2, load, &|pair, from| {
            let next = fold::add(from.clone(), Expr::int32(1));
            self.add_pair(fold::mul(pair, Expr::int32(2)), load(from), load(next))
        }));
        for (to, from) in [(0, 2), (4, 6), (0, 4)] {
            all.push(self.add_pair(Expr::int32(to), self.part(from), self.part(from + 1)));
        }
        (Stmt::seq(all), self.plan.combined(self.part(0), self.part(1)))
    }

    /// The greatest or the least, by an instruction of three operands.
    fn extreme(&self, op: Op, old: Option<Expr>, load: &dyn Fn(Expr) -> Expr) -> (Stmt, Expr) {
        let three = |a: Expr, b: Expr, c: Expr| {
            let call = op.call().set("a", a).set("b", b).set("c", c);
            call.at(self.plan.span).build()
        };
        let mut all: Vec<Stmt> = (0..CHUNK as i32 / 2)
            .map(|i| {
                let (a, b) = (load(Expr::int32(2 * i)), load(Expr::int32(2 * i + 1)));
                let value = match (&old, i) {
                    (Some(old), 0) => three(a, b, old.clone()),
                    _ => self.plan.combined(a, b),
                };
                self.set(Expr::int32(i), value)
            })
            .collect();
        all.push(self.rest(CHUNK / 2, load, &|part, from| {
            let next = fold::add(from.clone(), Expr::int32(1));
            self.set(part.clone(), three(self.at(part), load(from), load(next)))
        }));
        let first = self.plan.combined(self.part(0), self.part(1));
        (Stmt::seq(all), three(first, self.part(2), self.part(3)))
    }
}
