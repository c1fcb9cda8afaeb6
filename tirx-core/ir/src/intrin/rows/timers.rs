//! Clocks, special registers, and the timers of a profile.
//!
//! A profile is a buffer of `uint64`: its first element says how many blocks and groups there are, each group of
//! threads writes records after it: a time, an event, and the group.

use super::kinds::*;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::DType;

const WORDS: ArgKind = ArgKind::Array(DType::UINT64);
const OFFSET: ArgKind = ArgKind::Array(DType::UINT32);
const RECORD: &[Arg] = &[
    arg("event_type", I32),
    arg("profiler_buffer", WORDS),
    arg("profiler_tag", WORDS),
    arg("profiler_write_offset", OFFSET),
    arg("profiler_write_stride", I32),
    arg("leader_cond", CONDITION),
];
const FINAL: &[Arg] = &[
    arg("profiler_buffer", WORDS),
    arg("profiler_tag", WORDS),
    arg("profiler_write_offset", OFFSET),
    arg("profiler_write_stride", I32),
    arg("leader_cond", CONDITION),
];

/// Writes a time and an event, and advances to the thread's next record.
macro_rules! record {
    ($before:literal, $what:literal, $after:literal) => {
        code(concat!(
            $before,
            "if (leader_cond) {\n  unsigned int now;\n  asm volatile(\"mov.u32 %0, %%globaltimer_lo;\" : \"=r\"(now));\n  \
             profiler_buffer[profiler_write_offset[0]] = (uint64_t)now << 32 | (profiler_tag[0] | (",
            $what,
            "));\n  profiler_write_offset[0] += profiler_write_stride;\n}\n",
            $after
        ))
    };
}

rows! { $ timers {
    /// The cycle counter.
    CudaClock64 = Row::new("tirx.cuda.clock64", "cuda.clock64", expression("(uint64_t)clock64()").headers(&["cstdint"]))
        .gives(DType::UINT64).effect(ReadState).section("Time Function");
    /// Sleeps for about this many nanoseconds.
    CudaNanoSleep = Row::new("tirx.cuda.nano_sleep", "cuda.nano_sleep", function("__nanosleep"))
        .args(&[arg("time", U32)]).traits(Traits::WAIT).section("Nanosleep Function");
    /// Linear index of the thread in its block.
    CudaThreadRank = Row::new("tirx.cuda.thread_rank", "cuda.thread_rank", special()).gives(DType::INT32).effect(Pure)
        .traits(Traits::PLAIN.tells_threads_apart());
    /// A special register of PTX, of 32 or 64 bits.
    PtxFetchRegister = Row::new("tirx.ptx.fetch_register", "ptx.fetch_register", special())
        .args(&[arg("bits", ArgKind::Immediate(32, 64)), arg("reg_name", NAME)]).value(ResultRule::IntOfBits)
        .effect(ReadState).traits(Traits::PLAIN.tells_threads_apart()).section("Special Registers").also(&["cuda.mov_sreg"]);
    /// Traps unless the condition holds.
    CudaTrapWhenAssertFailed = Row::new("tirx.cuda.trap_when_assert_failed", "cuda.trap_when_assert_failed", function("tirx_trap_unless").helpers(&["tirx_trap_unless"]))
        .args(&[arg("cond", CONDITION)]).section("trap");
    /// Begins a profile of `num_groups` groups of threads a block; this thread belongs to `group_id`.
    CudaTimerInit = Row::new("tirx.timer_init_cuda", "cuda.timer_init", code(
        "const unsigned int blocks = gridDim.x * gridDim.y * gridDim.z;\n\
         const unsigned int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n\
         const unsigned int row = block * (unsigned int)num_groups + (unsigned int)group_id;\n\
         if (block == 0 && threadIdx.x == 0) {\n  \
         profiler_buffer[0] = (uint64_t)(unsigned int)num_groups << 32 | blocks;\n}\n\
         profiler_write_offset[0] = 1 + row;\nprofiler_tag[0] = (uint64_t)row << 12;"))
        .args(&[arg("profiler_buffer", WORDS), arg("profiler_tag", WORDS), arg("profiler_write_offset", OFFSET), arg("num_groups", I32), arg("group_id", I32)]);
    /// An event begins; the thread for which `leader_cond` holds writes it.
    CudaTimerStart = Row::new("tirx.timer_start_cuda", "cuda.timer_start", record!("", "(unsigned int)event_type << 2", "__threadfence_block();"))
        .args(RECORD);
    /// An event ends; the thread for which `leader_cond` holds writes it.
    CudaTimerEnd = Row::new("tirx.timer_end_cuda", "cuda.timer_end", record!("__threadfence_block();\n", "(unsigned int)event_type << 2 | 1u", ""))
        .args(RECORD);
    /// A profile ends; the thread for which `leader_cond` holds writes it.
    CudaTimerFinalize = Row::new("tirx.timer_finalize_cuda", "cuda.timer_finalize", record!("__threadfence_block();\n", "3u", ""))
        .args(FINAL);
} }
