//! Elementwise → `smem`: all regions in shared memory.
//!
//! **Idea.** The output's elements in row-major order are cut into `[rounds, threads, vector]`. In each round a thread
//! computes a vector: a vectorized loop over its elements, which becomes vector loads, the operation on each component
//! and a vector store. A barrier of the scope follows.
//!
//! **Conditions.** Scope thread, warp, warpgroup or CTA with all threads active; every region in shared memory, with a
//! layout, of constant extents that broadcast to the output's. The vector is the widest of 128, 64, 32, 16 and 8 bits
//! of the widest element that divides each thread's share and the last extent of every region; if the threads do not
//! divide the elements it is one element, and the last round is done in part.
//!
//! **Cost.** `ceil(elements / (threads * vector))` rounds and one barrier.

use super::super::build::{address, repeat};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::operands::elements;
use super::super::predicates::all_in;
use super::super::synchronization::barrier;
use super::super::variant::{Emits, Explanation, Plan, Predicate};
use super::{Elementwise, coordinate_of};
use crate::arith::fold;
use crate::ir::{BinOp, DType, Expr, ForKind, ForLoop, Stmt, Var};

pub(super) const ALL_SHARED: Predicate = Predicate {
    name: "every region in shared memory",
    holds: |call, _| {
        let plan = Elementwise::from_call(call)?;
        all_in("shared", plan.regions())
    },
};

/// Elements per vector.
fn vector(plan: &Elementwise, total: i128, threads: i128) -> i128 {
    if total % threads != 0 {
        return 1;
    }
    let share = total / threads;
    let last =
        |region: &crate::ir::BufferRegion| region.ranges.last().and_then(|(_, e)| e.as_int()).unwrap_or(1);
    let widest = plan.widest_bits().max(8);
    for bits in [128, 64, 32, 16, 8] {
        let n = bits / widest;
        if n > 0 && share % n == 0 && plan.regions().all(|r| last(r) % n == 0) {
            return n;
        }
    }
    1
}

/// The vectors of each thread.
struct Vectors {
    call: Elementwise,
    total: i128,
    threads: i128,
    vector: i128,
    rounds: i128,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let call = Elementwise::from_call(call)?;
    let threads = cx.thread_count()?;
    let total = elements(&call.dst).ok_or("the extents of the output are not constant")?;
    if total == 0 {
        return Err("the region is empty".into());
    }
    // Instructions with an explicit rounding take one element.
    let vector = match call.rounding {
        Some(_) => 1,
        None => vector(&call, total, threads),
    };
    Ok(Box::new(Vectors {
        call,
        total,
        threads,
        vector,
        rounds: (total + vector * threads - 1) / (vector * threads),
    }))
}

impl Emits for Vectors {
    fn explain(&self) -> Explanation {
        Explanation::partition(self.rounds, self.threads, self.vector)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let Vectors {
            call,
            total,
            threads,
            vector,
            rounds,
        } = &*self;
        let (total, threads, vector, rounds) = (*total, *threads, *vector, *rounds);
        let span = out.span();
        let thread = out.cx.thread_index();
        let whole = rounds * vector * threads == total;
        let one = |number: Expr| {
            let at = coordinate_of(&number, &call.dst);
            let rounded = call.rounding.is_some().then(|| {
                let values = call.values(&at, &number, span);
                call.instruction(address(&call.dst.buffer, at.clone(), span), values, false, span)
            });
            let store = match rounded.flatten() {
                Some(instruction) => instruction,
                None => {
                    let value = call.value(&at, &number);
                    Stmt::store(&call.dst.buffer, at, value, span)
                }
            };
            if whole {
                return store;
            }
            let inside = Expr::binary(BinOp::Lt, number, Expr::int32(total as i32)).at(span);
            Stmt::if_else(inside, store, None, span)
        };
        let body = repeat("s", rounds, span, |round| {
            let first = fold::add(
                fold::mul(round, Expr::int32((vector * threads) as i32)),
                fold::mul(thread.clone(), Expr::int32(vector as i32)),
            );
            if vector == 1 {
                return one(first);
            }
            let lane = Var::at("vec", DType::INT32, span);
            let body = one(fold::add(first, Expr::var(&lane)));
            let extent = Expr::int32(vector as i32);
            Stmt::new(ForLoop::new(ForKind::Vectorized, &lane, extent, body), span)
        });
        out.push(body);
        barrier(out);
    }
}
