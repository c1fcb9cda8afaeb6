//! Memory barriers in shared memory that count arrivals and bytes of asynchronous copies.
//!
//! An mbarrier is a `uint64` in shared memory. Its state: the phase (a bit), how many arrivals the current phase still
//! waits for, how many it waits for in each phase, and the balance of transaction bytes. A phase completes when no
//! arrival is pending and the balance of bytes is 0; the count is then set for the next phase and the bit flips.

use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::ir::{DType, Expr};

const SEM: ArgKind = ArgKind::Text(&["", "release", "relaxed"]);
const SCOPE: ArgKind = ArgKind::Text(&["", "cta", "cluster"]);
const SPACE: ArgKind = ArgKind::Text(&["shared", "shared::cta", "shared::cluster"]);
const LOCAL_SPACE: ArgKind = ArgKind::Text(&["shared", "shared::cta"]);
const WAIT_SEM: ArgKind = ArgKind::Text(&["", "acquire", "relaxed"]);

/// TVM's text for `space=None`: the barrier of another block is in the cluster's shared memory.
fn space(given: &mut Given) -> Result<(), String> {
    if given.get("space").is_empty() {
        let remote = !given.get("remote").is_empty();
        given.set(
            "space",
            Expr::string(if remote { "shared::cluster" } else { "shared" }),
        );
    }
    Ok(())
}

fn arrival(call: &Operands) -> Result<(), String> {
    if call.text("sem").is_empty() != call.text("scope").is_empty() {
        return Err("sem and scope are given together or not at all".into());
    }
    remote(call)
}

fn remote(call: &Operands) -> Result<(), String> {
    if call.get("remote").is_some() && call.text("space") != "shared::cluster" {
        return Err("a barrier of another block (remote=) is in space=\"shared::cluster\"".into());
    }
    Ok(())
}

fn wait_order(call: &Operands) -> Result<(), String> {
    if call.text("sem").is_empty() != call.text("scope").is_empty() {
        return Err("sem and scope are given together or not at all".into());
    }
    Ok(())
}

const SM_90: GpuSet = GpuSet::least(90);

rows! { $ mbarrier {
    /// Initializes the mbarrier `bar`: each phase waits for `thread_count` arrivals; the first phase is 0. One thread
    /// does it, before any other thread uses the barrier (`T.ptx.fence.mbarrier_init` or a barrier of the block makes the
    /// initialization visible).
    PtxMbarrierInit = Row::new("tirx.ptx.mbarrier_init", "ptx.mbarrier.init",
        ptx("mbarrier.init.shared.b64 [{bar}], {thread_count};"))
        .args(&[arg("bar", SHARED), arg("thread_count", U32)])
        .traits(Traits::SYNC).section("mbarrier.init");

    /// Invalidates the mbarrier `bar`: its memory can then be used for other data.
    PtxMbarrierInval = Row::new("tirx.ptx.mbarrier_inval", "ptx.mbarrier.inval",
        ptx("mbarrier.inval.shared.b64 [{bar}];"))
        .args(&[arg("bar", SHARED)])
        .section("mbarrier.inval");

    /// Arrives at the mbarrier `bar` once, or `count` times. `remote` is the cluster rank of the block whose barrier at
    /// the same address is meant; nothing happens if `pred` is 0. The default order is `release` at scope `cta`.
    PtxMbarrierArrive = Row::new("tirx.ptx.mbarrier_arrive", "ptx.mbarrier.arrive",
        ptx("{?remote:.reg .b32 there; }{?pred:.reg .pred p; setp.ne.s32 p, {pred}, 0; }\
             {?remote:{?pred:@p }mapa.shared::cluster.u32 there, {bar}, {remote}; }\
             {?pred:@p }mbarrier.arrive{.sem}{.scope}.{space}.b64 _, [{?remote:there}{!remote:{bar}}]{?count:, {count}};"))
        .signature("(bar, *, count=None, sem='', scope='', space=None, remote=None, pred=None)")
        .args(&[
            arg("bar", SHARED), optional("count", U32), optional("remote", U32), optional("pred", I32),
            arg("sem", SEM), arg("scope", SCOPE), arg("space", SPACE),
            arg("has_count", ArgKind::Has("count")), arg("has_remote", ArgKind::Has("remote")), arg("has_pred", ArgKind::Has("pred")),
        ])
        .completed(&[], space).checked(arrival)
        .needs(&[
            ("space", "shared::cluster", SM_90), ("has_count", "1", SM_90), ("scope", "cluster", SM_90), ("sem", "relaxed", SM_90),
        ])
        .traits(Traits::SYNC).section("mbarrier.arrive");

    /// Expects `byte_count` more bytes of asynchronous copies in the current phase of the mbarrier `bar`, then arrives once.
    /// `remote`, `pred` and order as in `T.ptx.mbarrier.arrive`.
    PtxMbarrierArriveExpectTx = Row::new("tirx.ptx.mbarrier_arrive_expect_tx", "ptx.mbarrier.arrive.expect_tx",
        ptx("{?remote:.reg .b32 there; }{?pred:.reg .pred p; setp.ne.s32 p, {pred}, 0; }\
             {?remote:{?pred:@p }mapa.shared::cluster.u32 there, {bar}, {remote}; }\
             {?pred:@p }mbarrier.arrive.expect_tx{.sem}{.scope}.{space}.b64 _, [{?remote:there}{!remote:{bar}}], {byte_count};"))
        .signature("(bar, byte_count, *, sem='', scope='', space=None, remote=None, pred=None)")
        .args(&[
            arg("bar", SHARED), arg("byte_count", U32), optional("remote", U32), optional("pred", I32),
            arg("sem", SEM), arg("scope", SCOPE), arg("space", SPACE),
            arg("has_remote", ArgKind::Has("remote")), arg("has_pred", ArgKind::Has("pred")),
        ])
        .completed(&[], space).checked(arrival)
        .traits(Traits::SYNC).section("mbarrier.arrive");

    /// Arrives `count` times at the mbarrier `bar`, which must not complete the phase.
    PtxMbarrierArriveNoComplete = Row::new("tirx.ptx.mbarrier_arrive_no_complete", "ptx.mbarrier.arrive.no_complete",
        ptx("{?pred:.reg .pred p; setp.ne.s32 p, {pred}, 0; @p }\
             mbarrier.arrive.noComplete.release.cta.{space}.b64 _, [{bar}], {count};"))
        .signature("(bar, count, *, space='shared', pred=None)")
        .args(&[
            arg("bar", SHARED), arg("count", U32), optional("pred", I32), arg("space", LOCAL_SPACE),
            arg("has_pred", ArgKind::Has("pred")),
        ])
        .traits(Traits::SYNC).section("mbarrier.arrive");

    /// Expects `tx_count` more bytes in the current phase of the mbarrier `bar` without arriving.
    PtxMbarrierExpectTx = Row::new("tirx.ptx.mbarrier_expect_tx", "ptx.mbarrier.expect_tx",
        ptx("mbarrier.expect_tx.relaxed.{scope}.{space}.b64 [{bar}], {tx_count};"))
        .signature("(bar, tx_count, *, scope='cta', space='shared::cta')")
        .args(&[
            arg("bar", SHARED), arg("tx_count", U32), arg("scope", ArgKind::Text(&["cta", "cluster"])),
            arg("space", ArgKind::Text(&["shared::cta", "shared::cluster"])),
        ])
        .traits(Traits::SYNC).section("mbarrier.expect_tx");

    /// Counts `tx_count` bytes of the current phase of the mbarrier `bar` as copied, without copying; `remote` and `pred` as in
    /// `T.ptx.mbarrier.arrive`.
    PtxMbarrierCompleteTx = Row::new("tirx.ptx.mbarrier_complete_tx", "ptx.mbarrier.complete_tx",
        ptx("{?remote:.reg .b32 there; }{?pred:.reg .pred p; setp.ne.s32 p, {pred}, 0; }\
             {?remote:mapa.shared::cluster.u32 there, {bar}, {remote}; }\
             {?pred:@p }mbarrier.complete_tx.{sem}.{scope}.{space}.b64 [{?remote:there}{!remote:{bar}}], {tx_count};"))
        .signature("(bar, tx_count, *, sem='relaxed', scope='cluster', space='shared::cluster', remote=None, pred=None)")
        .args(&[
            arg("bar", SHARED), arg("tx_count", U32), optional("remote", U32), optional("pred", I32),
            arg("sem", ArgKind::Text(&["relaxed"])), arg("scope", ArgKind::Text(&["cta", "cluster"])),
            arg("space", ArgKind::Text(&["shared::cta", "shared::cluster"])),
            arg("has_remote", ArgKind::Has("remote")), arg("has_pred", ArgKind::Has("pred")),
        ])
        .checked(remote)
        .traits(Traits::SYNC).section("mbarrier.complete_tx");

    /// Waits until the phase of parity `phase` (0 or 1) of the mbarrier `bar` has completed: a wait for the parity
    /// of the current phase blocks, and a wait for the other parity returns. Acquires at scope `cta`.
    PtxMbarrierTryWait = Row::new("tirx.ptx.mbarrier_try_wait", "ptx.mbarrier.try_wait",
        ptx(".reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [{bar}], {phase}, 0x989680; \
             @done bra.uni DONE; bra.uni AGAIN; DONE:"))
        .args(&[arg("bar", SHARED), arg("phase", U32)])
        .arch(SM_90).traits(Traits::WAIT).section("mbarrier.test_wait, mbarrier.try_wait").also(&["cuda.mbarrier_wait"]);

    /// As `T.ptx.mbarrier.try_wait`, acquiring at scope `cluster`.
    PtxMbarrierTryWaitAcquireCluster = Row::new("tirx.ptx.mbarrier_try_wait_acquire_cluster",
        "ptx.mbarrier.try_wait_acquire_cluster",
        ptx(".reg .pred done; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [{bar}], {phase}; \
             @done bra.uni DONE; bra.uni AGAIN; DONE:"))
        .args(&[arg("bar", SHARED), arg("phase", U32)])
        .arch(SM_90).traits(Traits::WAIT).section("mbarrier.test_wait, mbarrier.try_wait").also(&["cuda.mbarrier_wait_acquire_cluster"]);

    /// As `T.ptx.mbarrier.try_wait`, without acquiring: writes before the arrivals are visible only after a fence
    /// (`T.ptx.fence("acq_rel", scope)`). TVM 0.27.0.post1 does not have it yet.
    PtxMbarrierTryWaitRelaxed = Row::new("tirx.cuda.mbarrier_wait_relaxed", "cuda.mbarrier_wait_relaxed",
        ptx(".reg .pred done; AGAIN: mbarrier.try_wait.parity.relaxed.{scope}.shared::cta.b64 done, [{bar}], {phase}; \
             @done bra.uni DONE; bra.uni AGAIN; DONE:"))
        .signature("(bar, phase=0, *, scope='cluster')")
        .args(&[arg("bar", SHARED), arg("phase", U32), arg("scope", ArgKind::Text(&["cta", "cluster"]))])
        .arch(SM_90).traits(Traits::WAIT).section("mbarrier.test_wait, mbarrier.try_wait");

    /// 1 if the phase of parity `phase` of the mbarrier `bar` has completed, waiting at most about `ticks` nanoseconds for it
    /// (without it as long as the GPU chooses); else 0.
    PtxMbarrierTryWaitOnce = Row::new("tirx.ptx.mbarrier_try_wait_once", "ptx.mbarrier.try_wait_once",
        ptx(".reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [{bar}], {phase}{?ticks:, {ticks}}; \
             selp.u32 {result}, 1, 0, done;"))
        .signature("(bar, phase, ticks=None)")
        .args(&[arg("bar", SHARED), arg("phase", U32), optional("ticks", U32)])
        .gives(DType::UINT32)
        .traits(Traits::WAIT.memory(Memory::Reads)).section("mbarrier.test_wait, mbarrier.try_wait");

    /// 1 if the phase of parity `phase` of the mbarrier `barrier` has completed, else 0; does not wait.
    PtxMbarrierTestWaitParity = Row::new("tirx.ptx.mbarrier_test_wait_parity", "ptx.mbarrier_test_wait_parity",
        ptx(".reg .pred done; mbarrier.test_wait.parity{.sem}{.scope}.{space}.b64 done, [{barrier}], {phase}; \
             selp.u32 {result}, 1, 0, done;"))
        .also(&["ptx.mbarrier.test_wait"])
        .signature("(barrier, phase, *, sem='', scope='', space='shared::cta')")
        .args(&[
            arg("barrier", SHARED), arg("phase", U32), arg("sem", WAIT_SEM), arg("scope", SCOPE), arg("space", LOCAL_SPACE),
        ])
        .checked(wait_order)
        .gives(DType::UINT32)
        .needs(&[("scope", "cluster", SM_90), ("sem", "relaxed", SM_90)])
        .traits(Traits::SYNC).section("mbarrier.test_wait, mbarrier.try_wait");
} }
