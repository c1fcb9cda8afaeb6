//! Barriers, fences, votes and registers of PTX, and the timers of a profile.

use super::super::eval::{Interpreter, Param, Value, optional, required};
use super::call::{Call, Function, function};
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{DType, Expr};

const BARRIER: &[Param] = &[required("name_bar_id"), required("thread_count")];
const TIMER: &[Param] = &[
    required("event_type"),
    required("profiler_buffer"),
    required("profiler_tag"),
    required("profiler_write_offset"),
    required("profiler_write_stride"),
    required("leader_cond"),
];
const INIT: &[Param] = &[
    required("profiler_buffer"),
    required("profiler_tag"),
    required("profiler_write_offset"),
    required("num_groups"),
    required("group_id"),
];
const FINALIZE: &[Param] = &[
    required("profiler_buffer"),
    required("profiler_tag"),
    required("profiler_write_offset"),
    required("profiler_write_stride"),
    required("leader_cond"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.ptx.bar.sync", BARRIER, |_, c| barrier(c, Op::PtxBarSync)),
    function("T.ptx.bar.arrive", BARRIER, |_, c| barrier(c, Op::PtxBarArrive)),
    function("T.ptx.barrier.sync", BARRIER, |_, c| {
        barrier(c, Op::PtxBarrierSync)
    }),
    function(
        "T.ptx.barrier.cluster.arrive",
        const { &[optional("sem"), optional("aligned")] },
        cluster_arrive,
    ),
    function(
        "T.ptx.barrier.cluster.wait",
        const { &[optional("acquire"), optional("aligned")] },
        cluster_wait,
    ),
    function(
        "T.ptx.fence",
        const { &[required("sem"), required("scope")] },
        fence,
    ),
    function(
        "T.ptx.fence.proxy_async",
        const { &[optional("space")] },
        fence_proxy_async,
    ),
    function(
        "T.ptx.setmaxnreg",
        const { &[required("inc"), required("reg_count")] },
        setmaxnreg,
    ),
    function("T.cuda.timer_init", INIT, timer_init),
    function("T.cuda.timer_start", TIMER, |_, c| timer(c, Op::CudaTimerStart)),
    function("T.cuda.timer_end", TIMER, |_, c| timer(c, Op::CudaTimerEnd)),
    function("T.cuda.timer_finalize", FINALIZE, |_, c| {
        timer(c, Op::CudaTimerFinalize)
    }),
];

fn action(call: &Call, op: Op, args: Vec<Expr>) -> Result<Value> {
    Ok(Value::Expr(Expr::call(op, DType::VOID, args).at(call.span)))
}

/// A text that must be one of some.
fn choice(call: &Call, what: &str, text: &str, known: &[&str]) -> Result<Expr> {
    if !known.contains(&text) {
        let known: Vec<&str> = known
            .iter()
            .map(|k| if k.is_empty() { "\"\"" } else { k })
            .collect();
        return call.fail(format!(
            "{what} must be one of {}, found \"{text}\"",
            known.join(", ")
        ));
    }
    Ok(Expr::string(text).at(call.span))
}

fn truth(call: &Call, name: &str, default: bool) -> Result<Expr> {
    let value = call.flag(name, default)?;
    Ok(Expr::constant(DType::BOOL, value.into()).at(call.span))
}

fn barrier(call: &mut Call, op: Op) -> Result<Value> {
    let args = vec![call.expr("name_bar_id")?, call.expr("thread_count")?];
    action(call, op, args)
}

fn cluster_arrive(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let order = call.text_or("sem", "")?;
    let args = vec![
        choice(call, "sem", &order, &["", "release", "relaxed"])?,
        truth(call, "aligned", true)?,
    ];
    action(call, Op::PtxBarrierClusterArrive, args)
}

fn cluster_wait(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let args = vec![truth(call, "acquire", false)?, truth(call, "aligned", true)?];
    action(call, Op::PtxBarrierClusterWait, args)
}

fn fence(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let (order, scope) = (call.text("sem")?, call.text("scope")?);
    let args = vec![
        choice(call, "sem", &order, &["sc", "acq_rel"])?,
        choice(call, "scope", &scope, &["cta", "cluster", "gpu", "sys"])?,
    ];
    action(call, Op::PtxFence, args)
}

fn fence_proxy_async(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let space = call.text_or("space", "")?;
    let args = vec![choice(
        call,
        "space",
        &space,
        &["", "global", "shared::cta", "shared::cluster"],
    )?];
    action(call, Op::PtxFenceProxyAsync, args)
}

fn setmaxnreg(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let count = call.int("reg_count")?;
    if !(24..=256).contains(&count) || count % 8 != 0 {
        return call.fail(format!(
            "reg_count must be a multiple of 8 from 24 to 256, found {count}"
        ));
    }
    let args = vec![
        truth(call, "inc", false)?,
        Expr::int32(count as i32).at(call.span),
    ];
    action(call, Op::PtxSetmaxnreg, args)
}

fn pointers(call: &Call) -> Result<Vec<Expr>> {
    let names = ["profiler_buffer", "profiler_tag", "profiler_write_offset"];
    let mut out = Vec::new();
    for name in names {
        let pointer = call.argument(name)?;
        if !pointer.dtype.is_handle() || pointer.as_str().is_some() {
            return call.expected(name, "a pointer such as A.data");
        }
        out.push(pointer);
    }
    Ok(out)
}

fn timer_init(_interp: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let mut args = pointers(call)?;
    args.extend([call.expr("num_groups")?, call.expr("group_id")?]);
    action(call, Op::CudaTimerInit, args)
}

fn timer(call: &mut Call, op: Op) -> Result<Value> {
    let mut args = Vec::new();
    if op != Op::CudaTimerFinalize {
        // Printed IR has the number of the member.
        let (value, span) = call.need("event_type", "a member of an enumeration")?;
        let number = match value {
            Value::Instance(member) => member.get("value").and_then(|v| v.as_int()),
            other => super::convert::const_int(other),
        };
        let Some(number) = number.and_then(|n| i32::try_from(n).ok()) else {
            return call.expected("event_type", "a member of an enumeration of integers");
        };
        args.push(Expr::int32(number).at(span));
    }
    args.extend(pointers(call)?);
    args.extend([call.expr("profiler_write_stride")?, call.expr("leader_cond")?]);
    action(call, op, args)
}
