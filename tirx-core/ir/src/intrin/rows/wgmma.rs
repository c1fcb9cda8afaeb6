//! Tensor cores of Hopper: `wgmma`, asynchronous matrix products of a warpgroup.
//!
//! A and B are in shared memory and given by descriptors (A may be in registers); D is in the registers of the 128 threads
//! of a warpgroup. Between `fence` and `wait_group` nothing else may touch those registers.

use super::dtypes::{bits, ptx_name};
use super::kinds::*;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::ir::{DType, Expr, ExprKind};

const TOGETHER: Traits = Traits::PLAIN.collective(Collective::Warpgroup);

fn extent(call: &Operands, name: &str) -> u32 {
    u32::try_from(call.int(name).unwrap_or(0)).unwrap_or(0)
}

/// Registers of D that each thread has.
fn accumulators(call: &Operands) -> usize {
    let elements = extent(call, "M") * extent(call, "N") / 128;
    (elements * bits(call.text("out_dtype")).unwrap_or(32) / 32) as usize
}

/// Registers of A that each thread has.
fn a_registers(call: &Operands) -> usize {
    (extent(call, "M") * extent(call, "K") / 128 * bits(call.text("in_dtype")).unwrap_or(32) / 32) as usize
}

/// The buffer whose element a pointer names, and the element's dtype; `None` where the pointer is another one.
fn element_of(pointer: &Expr) -> Option<(&str, DType)> {
    let address = pointer.as_call(crate::intrin::Op::AddressOf)?;
    match &address.get(crate::at!(AddressOf.obj))?.kind {
        ExprKind::BufferLoad { buffer, .. } => Some((&buffer.name, buffer.dtype)),
        _ => None,
    }
}

fn wgmma(call: &Operands) -> Result<(), String> {
    let dtype = ptx_name(call.text("in_dtype")).unwrap_or_default();
    let k = match dtype {
        "f16" | "bf16" => 16,
        "tf32" => 8,
        "e4m3" | "e5m2" | "s8" | "u8" => 32,
        _ => return Err(format!("in_dtype \"{}\" is none of wgmma", call.text("in_dtype"))),
    };
    let out = ptx_name(call.text("out_dtype")).unwrap_or_default();
    let integers = matches!(dtype, "s8" | "u8");
    let fits = match out {
        "f32" => !integers,
        "f16" => matches!(dtype, "f16" | "e4m3" | "e5m2"),
        "s32" => integers,
        _ => false,
    };
    if !fits {
        return Err(format!(
            "wgmma of {dtype} has no result of dtype \"{}\"",
            call.text("out_dtype")
        ));
    }
    let (m, n) = (extent(call, "M"), extent(call, "N"));
    if m != 64 || n == 0 || n > 256 || n % 8 != 0 || extent(call, "K") != k {
        return Err(format!(
            "the shape of wgmma of {dtype} is M=64, N a multiple of 8 up to 256, K={k}; found {m}x{n}x{}",
            extent(call, "K")
        ));
    }
    if integers && !matches!(n, 8 | 16 | 24 | 32) && n % 16 != 0 {
        return Err(format!(
            "N of wgmma of integers is 8, 24 or a multiple of 16, found {n}"
        ));
    }
    if (call.flag("transA") || call.flag("transB")) && !matches!(dtype, "f16" | "bf16") {
        return Err(format!(
            "wgmma of {dtype} takes matrices with K innermost: transA=False, transB=False"
        ));
    }
    for accumulator in call.list("accums") {
        let Some((name, element)) = element_of(accumulator) else {
            continue;
        };
        let fits = match out {
            "f16" => matches!(element.bits, 16 | 32),
            _ => element.bits == 32,
        };
        if !fits {
            let needed = match out {
                "f16" => "uint32, each element for two of float16",
                _ => call.text("out_dtype"),
            };
            return Err(format!(
                "the accumulators are registers of {}, and `{name}` has elements of {element}: declare `{name}` as {needed}",
                call.text("out_dtype")
            ));
        }
    }
    for name in ["scaleA", "scaleB"] {
        if !matches!(call.int(name), Some(1 | -1)) || integers && call.int(name) != Some(1) {
            return Err(format!("{name} must be 1 or (for floats) -1"));
        }
    }
    Ok(())
}

fn wgmma_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let name = |of: &str| ptx_name(call.text(of)).unwrap_or_default().to_string();
    let dtype = name("in_dtype");
    let number = |of: &str| call.int(of).unwrap_or(0).to_string();
    let mut modifiers = String::new();
    if !matches!(dtype.as_str(), "s8" | "u8") {
        modifiers = format!(", {}, {}", number("scaleA"), number("scaleB"));
    }
    if matches!(dtype.as_str(), "f16" | "bf16") {
        if call.get("descA").is_some() {
            modifiers.push_str(&format!(", {}", number("transA")));
        }
        modifiers.push_str(&format!(", {}", number("transB")));
    }
    let ty = match name("out_dtype").as_str() {
        "f32" => Ty::F32,
        _ => Ty::B32,
    };
    Ok(Words {
        texts: vec![
            ("d", name("out_dtype")),
            ("ab", format!("{dtype}.{dtype}")),
            ("modifiers", modifiers),
        ],
        types: vec![("accums", ty)],
    })
}

fn register_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let float = call.get("reg").is_some_and(|e| {
        let address = e.as_call(crate::intrin::Op::AddressOf);
        let element = address.and_then(|args| args.get(crate::at!(AddressOf.obj)));
        element.is_some_and(|e| e.dtype.is_float())
    });
    Ok(Words {
        types: vec![("reg", if float { Ty::F32 } else { Ty::B32 })],
        ..Words::default()
    })
}

const DIM: ArgKind = ArgKind::Immediate(0, 256);
const SIGN: ArgKind = ArgKind::Immediate(-1, 1);
const ACCUMULATOR: ArgKind = ArgKind::Element(Access::InOut, Ty::FromWords);

rows! { $ wgmma {
    /// Orders accesses to registers and shared memory before the `wgmma` that follow; needed before the first
    /// `wgmma` and after each access of threads to the registers of D or A.
    PtxWgmmaFence = Row::new("tirx.ptx.wgmma_fence", "ptx.wgmma.fence", ptx("wgmma.fence.sync.aligned;"))
        .also(&["ptx.wgmma.arrive"])
        .traits(TOGETHER).section("wgmma.fence");

    /// Makes a group of this warpgroup's `wgmma` operations that are in no group yet.
    PtxWgmmaCommitGroup = Row::new("tirx.ptx.wgmma_commit_group", "ptx.wgmma.commit_group",
        ptx("wgmma.commit_group.sync.aligned;"))
        .traits(TOGETHER).section("wgmma.commit_group");

    /// Waits until at most the `n` latest groups of this warpgroup are in flight.
    PtxWgmmaWaitGroup = Row::new("tirx.ptx.wgmma_wait_group", "ptx.wgmma.wait_group",
        ptx("wgmma.wait_group.sync.aligned {n};"))
        .args(&[arg("n", ArgKind::Immediate(0, 7))])
        .traits(Traits::WAIT.collective(Collective::Warpgroup)).section("wgmma.wait_group");

    /// No instruction: keeps the compiler from moving accesses to the register `reg` across it.
    PtxWgmmaNoopBarrier = Row::new("tirx.ptx.wgmma_noop_barrier", "ptx.wgmma.noop_barrier",
        ptx("/* {reg} */").words(register_words))
        .args(&[arg("reg", ArgKind::Element(Access::InOut, Ty::FromWords))])
        .section("wgmma.fence").also(&["cuda.wgmma.noop_barrier"]);

    /// Writes the descriptor of a matrix in shared memory to `desc`: its address, the byte offsets of the leading and the strided
    /// dimension in units of 16 bytes, and the swizzle (0 none, 1 of 32 bytes, 2 of 64, 3 of 128).
    PtxWgmmaEncodeMatrixDescriptor = Row::new("tirx.ptx.wgmma_encode_matrix_descriptor", "ptx.wgmma.encode_matrix_descriptor",
        code("const unsigned long long start = ($addr$ >> 4) & 0x3fff;\n\
              const unsigned long long leading = ldo & 0x3fff, stride = sdo & 0x3fff, layout = (4 - swizzle) & 3;\n\
              $desc$ = start | leading << 16 | stride << 32 | layout << 62;"))
        .args(&[arg("desc", OUT64), arg("addr", SHARED), arg("ldo", I32), arg("sdo", I32), arg("swizzle", I32)])
        .section("Matrix Descriptor Format of wgmma").also(&["cuda.wgmma.encode_matrix_descriptor"]);

    /// `D = A * B` (`scaleD` 0) or `D = A * B + D` of a warpgroup, asynchronously: A is M x K and B is K x N, both in shared memory, of
    /// `in_dtype`; `accums` are the thread's registers of D, M * N / 128 elements of `out_dtype`. `transA` and `transB` are 1 if
    /// M or N is innermost; `scaleA` and `scaleB` are 1 or -1.
    PtxWgmmaMmaAsyncSs = Row::new("tirx.ptx.wgmma_mma_async_ss", "ptx.wgmma.mma_async.ss",
        ptx(".reg .pred p; setp.ne.b32 p, {scaleD}, 0; wgmma.mma_async.sync.aligned.m{M}n{N}k{K}.{d}.{ab} {{{accums}}}, \
             {descA}, {descB}, p{modifiers};").words(wgmma_words))
        .signature("(descA, descB, *accums, M, N, K, in_dtype, out_dtype, transA, transB, scaleA, scaleB, scaleD)")
        .args(&[
            arg("M", DIM), arg("N", DIM), arg("K", DIM), arg("in_dtype", ArgKind::DTypeName), arg("out_dtype", ArgKind::DTypeName),
            arg("transA", ArgKind::Bool), arg("transB", ArgKind::Bool), arg("scaleA", SIGN), arg("scaleB", SIGN), arg("scaleD", I32),
            arg("descA", U64), arg("descB", U64), list("accums", ACCUMULATOR, accumulators),
        ])
        .checked(wgmma)
        .traits(TOGETHER.by(Engine::Wgmma)).section("wgmma.mma_async");

    /// As `ss`, with A in registers: `a_regs` are the thread's 32-bit registers of A; the registers of D follow.
    PtxWgmmaMmaAsyncRs = Row::new("tirx.ptx.wgmma_mma_async_rs", "ptx.wgmma.mma_async.rs",
        ptx(".reg .pred p; setp.ne.b32 p, {scaleD}, 0; wgmma.mma_async.sync.aligned.m{M}n{N}k{K}.{d}.{ab} {{{accums}}}, \
             {{{a_regs}}}, {descB}, p{modifiers};").words(wgmma_words))
        .signature("(descB, *reg_list, M, N, K, in_dtype, out_dtype, transA, transB, scaleA, scaleB, scaleD)")
        .args(&[
            arg("M", DIM), arg("N", DIM), arg("K", DIM), arg("in_dtype", ArgKind::DTypeName), arg("out_dtype", ArgKind::DTypeName),
            arg("transA", ArgKind::Bool), arg("transB", ArgKind::Bool), arg("scaleA", SIGN), arg("scaleB", SIGN), arg("scaleD", I32),
            arg("descB", U64), list("a_regs", ArgKind::Element(Access::In, Ty::B32), a_registers),
            list("accums", ACCUMULATOR, accumulators),
        ])
        .completed(&[rest("reg_list", ArgKind::Element(Access::InOut, Ty::FromWords))], |given| {
            let all = given.get("reg_list").to_vec();
            given.values.push(("accums", all));
            Ok(())
        })
        .checked(wgmma)
        .traits(TOGETHER.by(Engine::Wgmma)).section("wgmma.mma_async");
} }
