//! The lanes of a warp: shuffles, votes, reductions.

use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::DType;

/// All lanes of the mask take part.
const LANES: Traits = Traits::SYNC
    .collective(Collective::Warp)
    .synchronizes(Synchronizes::Lanes);
/// The result is another lane's value.
const SHUFFLE: Traits = LANES.passes_on(1);
pub(super) const OPERATION: ArgKind = ArgKind::Text(&["sum", "max", "min"]);

pub(super) fn reduced(call: &Operands) -> Result<(), String> {
    if let Some(value) = call.get("value")
        && value.dtype.is_small_float()
    {
        return Err(format!(
            "{} cannot be reduced: CUDA does not compute with it\nreduce it as float32: T.cast(value, \"float32\")",
            value.dtype
        ));
    }
    match call.int("width") {
        Some(width) if width.count_ones() != 1 => {
            Err(format!("width must be 1, 2, 4, 8, 16 or 32, found {width}"))
        }
        _ => Ok(()),
    }
}

fn way(call: &Operands, _: Machine) -> Result<Words, String> {
    let way = if call.flag("inc") { "inc" } else { "dec" };
    Ok(Words {
        texts: vec![("way", way.into())],
        ..Words::default()
    })
}

fn register_count(call: &Operands) -> Result<(), String> {
    match call.int("reg_count") {
        Some(count) if count % 8 != 0 => Err(format!(
            "reg_count must be a multiple of 8 from 24 to 256, found {count}"
        )),
        _ => Ok(()),
    }
}

rows! { $ warp {
    /// `value` of lane `warp_id` of the segment of `width` lanes.
    TvmWarpShuffle = Row::new("tirx.tvm_warp_shuffle", "tvm_warp_shuffle", special())
        .args(&[arg("mask", ANY), arg("value", ANY), arg("warp_id", ANY), arg("width", ANY), arg("warp_size", ANY)])
        .value(ResultRule::Arg(1)).traits(SHUFFLE).section("Warp Shuffle Functions");
    /// `value` of the lane whose number is lower by `offset`.
    TvmWarpShuffleUp = Row::new("tirx.tvm_warp_shuffle_up", "tvm_warp_shuffle_up", special())
        .args(&[arg("mask", ANY), arg("value", ANY), arg("offset", ANY), arg("width", ANY), arg("warp_size", ANY)])
        .value(ResultRule::Arg(1)).traits(SHUFFLE).section("Warp Shuffle Functions");
    /// `value` of the lane whose number is higher by `offset`.
    TvmWarpShuffleDown = Row::new("tirx.tvm_warp_shuffle_down", "tvm_warp_shuffle_down", special())
        .args(&[arg("mask", ANY), arg("value", ANY), arg("offset", ANY), arg("width", ANY), arg("warp_size", ANY)])
        .value(ResultRule::Arg(1)).traits(SHUFFLE).section("Warp Shuffle Functions");
    /// `value` of the lane whose number is this lane's exclusive-ored with `lane_mask`.
    TvmWarpShuffleXor = Row::new("tirx.tvm_warp_shuffle_xor", "tvm_warp_shuffle_xor", special())
        .args(&[arg("mask", ANY), arg("value", ANY), arg("lane_mask", ANY), arg("width", ANY), arg("warp_size", ANY)])
        .value(ResultRule::Arg(1)).traits(SHUFFLE).section("Warp Shuffle Functions");
    /// Mask of the active lanes.
    TvmWarpActivemask = Row::new("tirx.tvm_warp_activemask", "tvm_warp_activemask", function("__activemask"))
        .gives(DType::UINT32).effect(ReadState).traits(Traits::PLAIN.tells_threads_apart()).section("Warp Vote Functions");
    /// `__shfl_sync(mask, value, arg, width)`. It exchanges registers and orders no access
    /// to memory: `T.cuda.warp_sync()` does.
    CudaShflSync = Row::new("tirx.cuda.__shfl_sync", "cuda.__shfl_sync", special())
        .args(&[arg("mask", ANY), arg("var", ANY), arg("lane", ANY), arg("width", ANY)]).value(ResultRule::Arg(1))
        .traits(SHUFFLE).section("Warp Shuffle Functions").also(&["cuda._shfl_sync"]);
    /// `__shfl_up_sync(mask, value, arg, width)`. It exchanges registers and orders no access
    /// to memory: `T.cuda.warp_sync()` does.
    CudaShflUpSync = Row::new("tirx.cuda.__shfl_up_sync", "cuda.__shfl_up_sync", special())
        .args(&[arg("mask", ANY), arg("var", ANY), arg("delta", ANY), arg("width", ANY)]).value(ResultRule::Arg(1))
        .traits(SHUFFLE).section("Warp Shuffle Functions").also(&["cuda._shfl_up_sync"]);
    /// `__shfl_down_sync(mask, value, arg, width)`. It exchanges registers and orders no access
    /// to memory: `T.cuda.warp_sync()` does.
    CudaShflDownSync = Row::new("tirx.cuda.__shfl_down_sync", "cuda.__shfl_down_sync", special())
        .args(&[arg("mask", ANY), arg("var", ANY), arg("delta", ANY), arg("width", ANY)]).value(ResultRule::Arg(1))
        .traits(SHUFFLE).section("Warp Shuffle Functions").also(&["cuda._shfl_down_sync"]);
    /// `__shfl_xor_sync(mask, value, arg, width)`. It exchanges registers and orders no access
    /// to memory: `T.cuda.warp_sync()` does.
    CudaShflXorSync = Row::new("tirx.cuda.__shfl_xor_sync", "cuda.__shfl_xor_sync", special())
        .args(&[arg("mask", ANY), arg("var", ANY), arg("lane_mask", ANY), arg("width", ANY)])
        .value(ResultRule::Arg(1)).traits(SHUFFLE).section("Warp Shuffle Functions").also(&["cuda._shfl_xor_sync"]);
    /// `__activemask()`.
    CudaActivemask = Row::new("tirx.cuda.__activemask", "cuda.__activemask", function("__activemask"))
        .gives(DType::UINT32).effect(ReadState).traits(Traits::PLAIN.tells_threads_apart()).section("Warp Vote Functions").also(&["cuda._activemask"]);
    /// Mask of the lanes whose predicate holds.
    CudaBallotSync = Row::new("tirx.cuda.ballot_sync", "cuda.ballot_sync", function("__ballot_sync"))
        .args(&[arg("mask", MASK), arg("pred", CONDITION)]).gives(DType::UINT32).traits(LANES)
        .section("Warp Vote Functions");
    /// Whether the predicate holds in any lane of a mask.
    PtxAnySync = Row::new("tirx.ptx.any_sync", "ptx.any_sync", function("__any_sync"))
        .args(&[arg("mask", MASK), arg("pred", CONDITION)]).gives(DType::INT32).traits(LANES).section("vote").also(&["cuda.any_sync"]);
    /// Sum over the lanes of a mask.
    CudaReduceAddSyncU32 = Row::new("tirx.cuda.reduce_add_sync_u32", "cuda.reduce_add_sync_u32", function("__reduce_add_sync"))
        .args(&[arg("mask", MASK), arg("value", U32)]).gives(DType::UINT32).traits(LANES).arch(GpuSet::least(80))
        .section("Warp Reduce Functions");
    /// Minimum over the lanes of a mask.
    CudaReduceMinSyncU32 = Row::new("tirx.cuda.reduce_min_sync_u32", "cuda.reduce_min_sync_u32", function("__reduce_min_sync"))
        .args(&[arg("mask", MASK), arg("value", U32)]).gives(DType::UINT32).traits(LANES).arch(GpuSet::least(80))
        .section("Warp Reduce Functions");
    /// Reduces `value` over groups of `width` lanes; each lane gets the result.
    CudaWarpReduce = Row::new("tirx.cuda.warp_reduce", "cuda.warp_reduce", special())
        .args(&[arg("value", ANY), arg("op", OPERATION), arg("width", ArgKind::Immediate(1, 32))])
        .value(ResultRule::Arg(0)).traits(LANES).signature("(value, op, width=32)").checked(reduced);
    /// Reduction over threads.
    TvmThreadAllreduce = Row::new("tirx.tvm_thread_allreduce", "tvm_thread_allreduce", lowered())
        .args(&[rest("args", NODE)]).value(ResultRule::Given)
        .traits(LANES.collective(Collective::Block).synchronizes(Synchronizes::Block));
    /// 1 in one lane of the warp, 0 in the others.
    PtxElectSync = Row::new("tirx.ptx.elect_sync", "ptx.elect_sync", state_ptx(".reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 {result}, 1, 0, p;"))
        .gives(DType::UINT32).traits(LANES.tells_threads_apart()).arch(SM_90).section("elect.sync").also(&["cuda.elect_sync"]);
    /// Raises (`inc`) or lowers the number of registers per thread of the warpgroup; a raise waits until they are free.
    PtxSetmaxnreg = Row::new("tirx.ptx.setmaxnreg", "ptx.setmaxnreg", state_ptx("setmaxnreg.{way}.sync.aligned.u32 {reg_count};").words(way))
        .args(&[arg("inc", ArgKind::Bool), arg("reg_count", ArgKind::Immediate(24, 256))])
        .traits(Traits::PLAIN.collective(Collective::Warpgroup))
        .checked(register_count).arch(GpuSet::families(&[90, 100, 110, 120])).section("setmaxnreg");
} }
