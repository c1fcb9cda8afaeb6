//! Named barriers: 16 of a block, each for a number of threads.

use super::kinds::*;
use crate::intrin::row::*;

/// A barrier's number (0 to 15) and how many threads take part, a multiple of 32.
const BARRIER: &[Arg] = &[arg("name_bar_id", I32), arg("thread_count", I32)];
const SYNC: Traits = Traits::WAIT
    .collective(Collective::Warp)
    .synchronizes(Synchronizes::Block);

rows! { $ barrier {
    /// Waits at a barrier until `thread_count` threads have arrived.
    PtxBarSync = Row::new("tirx.ptx.bar.sync", "ptx.bar.sync", ptx("bar.sync {name_bar_id}, {thread_count};"))
        .args(BARRIER).traits(SYNC).section("bar{.cta}");
    /// Arrives at a barrier of `thread_count` threads without waiting.
    PtxBarArrive = Row::new("tirx.ptx.bar.arrive", "ptx.bar.arrive", ptx("bar.arrive {name_bar_id}, {thread_count};"))
        .args(BARRIER).traits(Traits::SYNC.collective(Collective::Warp).synchronizes(Synchronizes::Block))
        .section("bar{.cta}");
    /// Like `ptx.bar.sync`, and allowed in a diverged warp.
    PtxBarrierSync = Row::new("tirx.ptx.barrier.sync", "ptx.barrier.sync", ptx("barrier.sync {name_bar_id}, {thread_count};"))
        .args(BARRIER).traits(Traits::WAIT.synchronizes(Synchronizes::Block)).section("barrier{.cta}");
} }
