//! NVSHMEM: memory shared by several GPUs, and signals between them.
//!
//! The functions are those of NVSHMEM's device API (`nvshmem.h`, `nvshmemx.h`); a kernel that uses them is compiled against its
//! headers and linked with its device library.

use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::ir::DType;

const HEADERS: &[&str] = &["nvshmem.h", "nvshmemx.h"];
const VOLTA: GpuSet = GpuSet::least(70);
const SIGNAL: ArgKind = ArgKind::Text(&["set", "add"]);
const MOVE: &[Arg] = &[
    arg("dst", GENERIC),
    arg("src", GENERIC),
    arg("nelems", U64),
    arg("pe", I32),
];
const MOVE_AND_SIGNAL: &[Arg] = &[
    arg("dst", GENERIC),
    arg("src", GENERIC),
    arg("nelems", U64),
    arg("sig_addr", GENERIC),
    arg("signal", U64),
    arg("sig_op", SIGNAL),
    arg("pe", I32),
];

/// Fills `$op$`: the constant of `nvshmem.h` for the text `sig_op`.
fn signal_op_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let constant = if call.text("sig_op") == "add" {
        "NVSHMEM_SIGNAL_ADD"
    } else {
        "NVSHMEM_SIGNAL_SET"
    };
    Ok(Words {
        texts: vec![("op", constant.into())],
        ..Words::default()
    })
}

/// Fills `$comparison$`: the constant of `nvshmem.h` for the text `cmp`.
fn comparison_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let constant = format!("NVSHMEM_CMP_{}", call.text("cmp").to_uppercase());
    Ok(Words {
        texts: vec![("comparison", constant)],
        ..Words::default()
    })
}

const fn moves(name: &'static str, script: &'static str, body: &'static str) -> Row {
    Row::new(name, script, code(body).headers(HEADERS))
        .args(MOVE)
        .arch(VOLTA)
        .traits(Traits::SYNC)
        .sources(&["src"])
        .destinations(&["dst"])
        .section("NVSHMEM: RMA")
}

const fn signals(name: &'static str, script: &'static str, body: &'static str) -> Row {
    Row::new(name, script, code(body).headers(HEADERS).words(signal_op_words))
        .args(MOVE_AND_SIGNAL)
        .arch(VOLTA)
        .traits(Traits::SYNC)
        .sources(&["src"])
        .destinations(&["dst"])
        .section("NVSHMEM: signals")
}

rows! { $ nvshmem {
    /// The number of this GPU (processing element).
    NvshmemMyPe = Row::new("tirx.nvshmem.my_pe", "nvshmem.my_pe", function("nvshmem_my_pe").headers(HEADERS))
        .gives(DType::INT32).arch(VOLTA).section("NVSHMEM: setup");
    /// How many GPUs there are.
    NvshmemNPes = Row::new("tirx.nvshmem.n_pes", "nvshmem.n_pes", function("nvshmem_n_pes").headers(HEADERS))
        .gives(DType::INT32).arch(VOLTA).section("NVSHMEM: setup");
    /// The address of `dest`, which is in symmetric memory, on GPU `pe`: threads access it as they access their own memory. Null if
    /// the GPU cannot be reached by loads and stores.
    NvshmemPtr = Row::new("tirx.nvshmem.ptr", "nvshmem.ptr",
        code("return nvshmem_ptr(const_cast<void*>(dest), pe);").headers(HEADERS))
        .args(&[arg("dest", GENERIC), arg("pe", I32)])
        .gives(DType::HANDLE).arch(VOLTA).section("NVSHMEM: setup");
    /// The address of `ptr`, which is in symmetric memory, in the multicast window over all GPUs: for `T.ptx.multimem`. Null without
    /// multicast.
    NvshmemMcPtr = Row::new("tirx.nvshmem.mc_ptr", "nvshmem.mc_ptr",
        code("return nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, const_cast<void*>(ptr));").headers(HEADERS))
        .args(&[arg("ptr", GENERIC)])
        .gives(DType::HANDLE).arch(VOLTA).section("NVSHMEM: setup");
    /// Waits until this thread's transfers are complete.
    NvshmemQuiet = Row::new("tirx.nvshmem.quiet", "nvshmem.quiet", function("nvshmem_quiet").headers(HEADERS))
        .arch(VOLTA).traits(Traits::WAIT).section("NVSHMEM: memory ordering");
    /// Orders this thread's transfers to each GPU.
    NvshmemFence = Row::new("tirx.nvshmem.fence", "nvshmem.fence", function("nvshmem_fence").headers(HEADERS))
        .arch(VOLTA).traits(Traits::SYNC).section("NVSHMEM: memory ordering");
    /// Waits for all GPUs.
    NvshmemBarrierAll = Row::new("tirx.nvshmem.barrier_all", "nvshmem.barrier_all",
        function("nvshmem_barrier_all").headers(HEADERS))
        .arch(VOLTA).traits(Traits::WAIT).section("NVSHMEM: collectives");
    /// Copies `nelems` bytes from `src` of GPU `pe` to `dst` of this GPU; complete after `T.nvshmem.quiet`.
    NvshmemGetmemNbi = moves("tirx.nvshmem.getmem_nbi", "nvshmem.getmem_nbi",
        "nvshmem_getmem_nbi(const_cast<void*>(dst), src, nelems, pe);");
    /// The same, by the threads of a warp together.
    NvshmemGetmemNbiWarp = moves("tirx.nvshmem.getmem_nbi_warp", "nvshmem.getmem_nbi.warp",
        "nvshmemx_getmem_nbi_warp(const_cast<void*>(dst), src, nelems, pe);");
    /// The same, by the threads of a block together.
    NvshmemGetmemNbiBlock = moves("tirx.nvshmem.getmem_nbi_block", "nvshmem.getmem_nbi.block",
        "nvshmemx_getmem_nbi_block(const_cast<void*>(dst), src, nelems, pe);");
    /// Copies `nelems` bytes from `src` of this GPU to `dst` of GPU `pe`; complete after `T.nvshmem.quiet`.
    NvshmemPutmemNbi = moves("tirx.nvshmem.putmem_nbi", "nvshmem.putmem_nbi",
        "nvshmem_putmem_nbi(const_cast<void*>(dst), src, nelems, pe);");
    /// The same, by the threads of a warp together.
    NvshmemPutmemNbiWarp = moves("tirx.nvshmem.putmem_nbi_warp", "nvshmem.putmem_nbi.warp",
        "nvshmemx_putmem_nbi_warp(const_cast<void*>(dst), src, nelems, pe);");
    /// The same, by the threads of a block together.
    NvshmemPutmemNbiBlock = moves("tirx.nvshmem.putmem_nbi_block", "nvshmem.putmem_nbi.block",
        "nvshmemx_putmem_nbi_block(const_cast<void*>(dst), src, nelems, pe);");
    /// As `T.nvshmem.putmem_nbi`, then updates the signal `sig_addr` of GPU `pe` with `signal`: sets it or adds.
    NvshmemPutmemSignalNbi = signals("tirx.nvshmem.putmem_signal_nbi", "nvshmem.putmem_signal_nbi",
        "nvshmem_putmem_signal_nbi(const_cast<void*>(dst), src, nelems, (uint64_t*)sig_addr, signal, $op$, pe);");
    /// The same, by the threads of a warp together.
    NvshmemPutmemSignalNbiWarp = signals("tirx.nvshmem.putmem_signal_nbi_warp", "nvshmem.putmem_signal_nbi.warp",
        "nvshmemx_putmem_signal_nbi_warp(const_cast<void*>(dst), src, nelems, (uint64_t*)sig_addr, signal, $op$, pe);");
    /// The same, by the threads of a block together.
    NvshmemPutmemSignalNbiBlock = signals("tirx.nvshmem.putmem_signal_nbi_block", "nvshmem.putmem_signal_nbi.block",
        "nvshmemx_putmem_signal_nbi_block(const_cast<void*>(dst), src, nelems, (uint64_t*)sig_addr, signal, $op$, pe);");
    /// Updates the signal `sig_addr` of GPU `pe` with `signal`: sets it or adds.
    NvshmemSignalOp = Row::new("tirx.nvshmem.signal_op", "nvshmem.signal_op",
        code("nvshmemx_signal_op((uint64_t*)sig_addr, signal, $op$, pe);").headers(HEADERS).words(signal_op_words))
        .args(&[arg("sig_addr", GENERIC), arg("signal", U64), arg("sig_op", SIGNAL), arg("pe", I32)])
        .arch(VOLTA).traits(Traits::SYNC).section("NVSHMEM: signals");
    /// Waits until the comparison `cmp` of the variable `ivar` with `cmp_value` holds.
    NvshmemWaitUntil = Row::new("tirx.nvshmem.wait_until", "nvshmem.wait_until",
        code("nvshmem_uint64_wait_until((uint64_t*)ivar, $comparison$, cmp_value);").headers(HEADERS).words(comparison_words))
        .signature("(ivar, cmp, cmp_value, type='uint64_t')")
        .args(&[
            arg("ivar", GENERIC), arg("cmp", ArgKind::Text(&["eq", "ne", "gt", "ge", "lt", "le"])), arg("cmp_value", U64),
            arg("type", ArgKind::Text(&["uint64_t", "uint64"])),
        ])
        .arch(VOLTA).traits(Traits::WAIT).section("NVSHMEM: point-to-point synchronization");
} }
