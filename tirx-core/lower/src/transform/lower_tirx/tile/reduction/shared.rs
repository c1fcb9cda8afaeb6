//! `sum`, `max`, `min` → `shared`: each output is reduced by a group of lanes.
//!
//! **Idea.** A group of up to 32 neighbouring threads, a power of two that is enough for the inputs of one output,
//! takes an output. Each thread of the group takes every `group`-th input; then they exchange results by `log2(group)`
//! shuffles, and the first stores. The outputs are spread over the groups. A barrier of the scope follows.
//!
//! **Conditions.** All threads of the scope active and both regions in shared memory. Constant extents; the output has
//! as many elements as the input without the reduced dimensions. With `accum=True` the output's old value takes part. A
//! dtype that no shuffle takes (float8) has groups of one thread. At scope thread it is a loop.
//!
//! **Cost.** `ceil(outputs * group / threads)` rounds of `ceil(inputs / group)` loads and `log2(group)` shuffles.

use super::super::build::{local, repeat};
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::elementwise::coordinate_of;
use super::super::emit::Emit;
use super::super::predicates::all_in;
use super::super::synchronization::barrier;
use super::super::variant::{Emits, Explanation, Plan};
use super::{Accumulator, Reduces, Reduction, can_be_exchanged, lanes};
use crate::arith::fold;
use crate::ir::{BinOp, ExecScope, Expr, Stmt};

pub(super) fn both_shared(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    let (dst, src) = call.moved()?;
    all_in("shared", [dst, src].into_iter())
}

/// Threads per output.
fn group(plan: &Reduction, threads: i128) -> i128 {
    let enough = plan.inputs.max(1) as u128;
    let most = if threads < 32 || threads % 32 != 0 {
        1 << threads.trailing_zeros()
    } else {
        32
    };
    if can_be_exchanged(plan.dtype()) {
        (enough.next_power_of_two() as i128).min(most)
    } else {
        1
    }
}

/// Groups of threads, one per output.
struct Groups {
    reduction: Reduction,
    threads: i128,
    group: i128,
    groups: i128,
    rounds: i128,
    turns: i128,
}

pub(super) fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    if cx.scope == ExecScope::Thread {
        return super::local::plan(call, cx);
    }
    let reduction = Reduction::from_call(call)?;
    reduction.check_size()?;
    let threads = cx.thread_count()?;
    let group = group(&reduction, threads);
    let groups = threads / group;
    Ok(Box::new(Groups {
        rounds: (reduction.outputs + groups - 1) / groups,
        turns: (reduction.inputs + group - 1) / group,
        reduction,
        threads,
        group,
        groups,
    }))
}

impl Emits for Groups {
    fn explain(&self) -> Explanation {
        Explanation::partition(self.rounds, self.threads, 1).line(format!(
            "{} threads and {} turns per output",
            self.group, self.turns
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let Groups {
            reduction: plan,
            threads,
            group,
            groups,
            rounds,
            turns,
        } = &*self;
        let (threads, group, groups, rounds, turns) = (*threads, *group, *groups, *rounds, *turns);
        let span = plan.span;
        let constant = |v: i128| Expr::int32(v as i32);
        let thread = out.cx.thread_index();
        let number = fold::floordiv(thread.clone(), constant(group));
        let member = fold::floormod(thread, constant(group));
        let masks: Vec<i128> = (0..group.trailing_zeros()).map(|bit| 1 << bit).collect();
        let (register, allocate) = local("acc", 1, plan.dtype(), span);
        let acc = Accumulator {
            plan,
            buffer: &register,
        };
        let zero = acc.set(plan.zero.clone());
        let partial = rounds * groups != plan.outputs;
        let less = |a: &Expr, b: i128| Expr::binary(BinOp::Lt, a.clone(), constant(b)).at(span);
        let body = repeat("s", rounds, span, |round| {
            let output = fold::add(fold::mul(round, constant(groups)), number.clone());
            let load = |input: &Expr| Expr::load(&plan.src.buffer, plan.source(&output, input)).at(span);
            // For `max` and `min` the first value is one of the thread's own inputs; a thread without inputs takes the
            // last input.
            let (first, from) = if plan.op == Reduces::Sum {
                (zero.clone(), 0)
            } else if plan.inputs >= group {
                (acc.set(plan.converted(load(&member))), 1)
            } else {
                let own = Expr::binary(BinOp::Min, member.clone(), constant(plan.inputs - 1)).at(span);
                (acc.set(plan.converted(load(&own))), 1)
            };
            let rest = if turns > from {
                repeat("r", turns - from, span, |turn| {
                    let turn = fold::add(turn, constant(from));
                    let input = fold::add(fold::mul(turn, constant(group)), member.clone());
                    let step = acc.add(load(&input));
                    if plan.inputs % group == 0 {
                        return step;
                    }
                    Stmt::if_else(less(&input, plan.inputs), step, None, span)
                })
            } else {
                Stmt::nop()
            };
            let gathered = Stmt::seq([first, rest]);
            let mut all = Vec::new();
            if partial {
                // Every lane takes part in the shuffles, whether or not it has an output.
                all.push(zero.clone());
                all.push(Stmt::if_else(less(&output, plan.outputs), gathered, None, span));
            } else {
                all.push(gathered);
            }
            all.extend(acc.exchange(&masks, lanes(threads)));
            let place = coordinate_of(&output, &plan.dst);
            let value = match plan.accumulates {
                true => {
                    let old = Expr::load(&plan.dst.buffer, place.clone()).at(span);
                    plan.combined(old, acc.value())
                }
                false => acc.value(),
            };
            let store = Stmt::store(&plan.dst.buffer, place, value, span);
            let mut condition = None;
            if group > 1 {
                condition = Some(Expr::binary(BinOp::Eq, member.clone(), constant(0)).at(span));
            }
            if partial {
                let inside = less(&output, plan.outputs);
                condition = Some(match condition {
                    Some(first) => Expr::binary(BinOp::And, first, inside),
                    None => inside,
                });
            }
            all.push(match condition {
                Some(condition) => Stmt::if_else(condition, store, None, span),
                None => store,
            });
            Stmt::seq(all)
        });
        out.push(allocate);
        out.push(body);
        barrier(out);
    }
}
