//! Matrices in the registers of a warp: `ldmatrix`, `stmatrix` and `mma.sync`.
//!
//! The 32 lanes of a warp hold a matrix together, each some elements of it in 32-bit registers, as the PTX ISA draws it
//! for each shape and dtype. Registers are given by their addresses (`acc.ptr_to([i])`).

use super::dtypes::{bits, ptx_name, register};
use super::kinds::*;
use crate::intrin::gpu_set::GpuSet;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;

const MATRIX_DTYPE: ArgKind = ArgKind::Text(&[".b16", "b16", ".b8", "b8"]);
const LAYOUT: ArgKind = ArgKind::Text(&["row", "col"]);

/// Registers of a load: an 8x8 matrix of 16-bit elements takes one.
fn matrices(call: &Operands) -> usize {
    usize::try_from(call.int("num").unwrap_or(0)).unwrap_or(0)
}

fn ldmatrix(call: &Operands) -> Result<(), String> {
    if call.text("dtype").ends_with("b8") {
        return Err("ldmatrix of 8x8 matrices has elements of 16 bits: dtype=\".b16\"".into());
    }
    number(call)
}

fn number(call: &Operands) -> Result<(), String> {
    match call.int("num") {
        Some(1 | 2 | 4) => Ok(()),
        _ => Err("num must be 1, 2 or 4".into()),
    }
}

fn stmatrix(call: &Operands) -> Result<(), String> {
    let wide = call.text("shape") == "m16n8";
    if wide && !call.flag("trans") {
        return Err("shape m16n8 is stored transposed: trans=True".into());
    }
    if wide != call.text("dtype").ends_with("b8") {
        return Err("shape m8n8 has elements of 16 bits (.b16), m16n8 of 8 (.b8)".into());
    }
    number(call)
}

fn matrix_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let dtype = call.text("dtype").trim_start_matches('.').to_string();
    Ok(Words {
        texts: vec![("element", dtype)],
        ..Words::default()
    })
}

/// The extents of a shape such as `m16n8k16`.
fn shape(text: &str) -> Option<(u32, u32, u32)> {
    let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// Registers per lane of a matrix.
fn fragment(dtype: &str, rows: u32, columns: u32, threads: u32) -> u32 {
    let register = if ptx_name(dtype) == Some("f64") { 64 } else { 32 };
    rows * columns * bits(dtype).unwrap_or(0) / threads / register
}

/// The shapes of `mma` by the PTX names of the dtypes of A.
const SHAPES: &[(&[&str], &[&str])] = &[
    (&["f16"], &["m8n8k4", "m16n8k8", "m16n8k16"]),
    (&["bf16"], &["m16n8k8", "m16n8k16"]),
    (&["tf32"], &["m16n8k4", "m16n8k8"]),
    (&["f64"], &["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"]),
    (&["s8", "u8"], &["m8n8k16", "m16n8k16", "m16n8k32"]),
    (&["s4", "u4"], &["m8n8k32", "m16n8k32", "m16n8k64"]),
    (&["b1"], &["m8n8k128", "m16n8k128", "m16n8k256"]),
    (&["e4m3", "e5m2"], &["m16n8k16", "m16n8k32"]),
];

/// The accumulator dtypes of `mma` for a dtype.
fn sums_of(a: &str) -> &'static [&'static str] {
    match a {
        "f16" | "e4m3" | "e5m2" => &["f16", "f32"],
        "bf16" | "tf32" => &["f32"],
        "f64" => &["f64"],
        _ => &["s32"],
    }
}

fn mma(call: &Operands) -> Result<(), String> {
    for name in ["d_type", "a_type", "b_type", "c_type"] {
        if ptx_name(call.text(name)).is_none() {
            return Err(format!("{name} \"{}\" is no dtype of matrices", call.text(name)));
        }
    }
    let a = ptx_name(call.text("a_type")).unwrap_or_default();
    let b = ptx_name(call.text("b_type")).unwrap_or_default();
    let Some((family, shapes)) = SHAPES.iter().find(|(names, _)| names.contains(&a)) else {
        return Err(format!("there is no mma of {a}"));
    };
    if !family.contains(&b) {
        return Err(format!("there is no mma of {a} and {b}"));
    }
    let text = call.text("shape");
    let [c, d] = ["c_type", "d_type"].map(|name| ptx_name(call.text(name)).unwrap_or_default());
    let sums = sums_of(a);
    // Only m8n8k4 may have C and D of different dtypes.
    if !sums.contains(&c) || !sums.contains(&d) || c != d && text != "m8n8k4" {
        return Err(format!(
            "mma of {a} adds {}: c_type and d_type are both one of these, found {c} and {d}",
            sums.join(" or ")
        ));
    }
    let Some((m, n, k)) = shape(text).filter(|_| shapes.contains(&text)) else {
        return Err(format!(
            "mma of {a} has the shapes {}, not {text}",
            shapes.join(", ")
        ));
    };
    let threads = if text == "m8n8k4" && a == "f16" { 8 } else { 32 };
    let wanted = [
        ("d_ptrs", fragment(call.text("d_type"), m, n, threads)),
        ("a_ptrs", fragment(call.text("a_type"), m, k, threads)),
        ("b_ptrs", fragment(call.text("b_type"), k, n, threads)),
        ("c_ptrs", fragment(call.text("c_type"), m, n, threads)),
    ];
    for (name, count) in wanted {
        let found = call.list(name).len();
        if found != count as usize && !(name == "c_ptrs" && call.flag("no_c_ptr")) {
            return Err(format!(
                "{text} takes {count} registers for {name}, found {found}"
            ));
        }
    }
    let only_row_col = !(text == "m8n8k4" && a == "f16");
    if only_row_col && (call.text("a_layout"), call.text("b_layout")) != ("row", "col") {
        return Err("a_layout must be \"row\" and b_layout \"col\"".into());
    }
    if call.flag("saturate") && !matches!(a, "s8" | "u8" | "s4" | "u4") {
        return Err("only mma of integers saturates".into());
    }
    if (a == "b1") == call.text("bit_op").is_empty() {
        return Err("bit_op is given for matrices of bits (b1), and for no others".into());
    }
    Ok(())
}

fn mma_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let name = |of: &str| ptx_name(call.text(of)).unwrap_or_default().to_string();
    let c = name("c_type");
    let zero = match c.as_str() {
        "f32" => ("f32", "0f00000000"),
        "f64" => ("f64", "0d0000000000000000"),
        _ => ("b32", "0"),
    };
    let mut texts = vec![
        ("d", name("d_type")),
        ("a", name("a_type")),
        ("b", name("b_type")),
        ("c", c),
        ("zero_type", zero.0.to_string()),
        ("zero", zero.1.to_string()),
        (
            "bits",
            match call.text("bit_op") {
                "" => String::new(),
                op => format!(".{op}.popc"),
            },
        ),
    ];
    let zeros = match (call.flag("no_c_ptr"), shape(call.text("shape"))) {
        (true, Some((m, n, _))) => {
            let threads = if call.text("shape") == "m8n8k4" && name("a_type") == "f16" {
                8
            } else {
                32
            };
            vec!["z"; fragment(call.text("c_type"), m, n, threads) as usize].join(", ")
        }
        _ => String::new(),
    };
    texts.push(("zeros", zeros));
    let ty = |of: &str| register(call.text(of));
    let types = vec![
        ("d_ptrs", ty("d_type")),
        ("a_ptrs", ty("a_type")),
        ("b_ptrs", ty("b_type")),
        ("c_ptrs", ty("c_type")),
    ];
    Ok(Words { texts, types })
}

/// The shapes of `mma.sp` by the PTX names of the dtypes of A.
const SPARSE_SHAPES: &[(&[&str], &[&str])] = &[
    (&["f16", "bf16"], &["m16n8k16", "m16n8k32"]),
    (&["tf32"], &["m16n8k8", "m16n8k16"]),
    (&["s8", "u8"], &["m16n8k32", "m16n8k64"]),
    (&["s4", "u4"], &["m16n8k64", "m16n8k128"]),
    (&["e4m3", "e5m2"], &["m16n8k64"]),
];

/// Registers of `mma.sp` that a lane has: accumulators, A (half of its elements are there), B.
///
/// # Errors
/// Forms that PTX does not have.
pub fn sparse_registers(shape_text: &str, a: &str, b: &str, c: &str) -> Result<[usize; 3], String> {
    let (pa, pb) = (ptx_name(a).unwrap_or_default(), ptx_name(b).unwrap_or_default());
    let found = SPARSE_SHAPES
        .iter()
        .find(|(names, _)| names.contains(&pa) && names.contains(&pb));
    let Some((_, shapes)) = found else {
        return Err(format!("there is no mma.sp of {a} and {b}"));
    };
    let Some((m, n, k)) = shape(shape_text).filter(|_| shapes.contains(&shape_text)) else {
        return Err(format!(
            "mma.sp of {a} has the shapes {}, not {shape_text}",
            shapes.join(", ")
        ));
    };
    let count = [
        fragment(c, m, n, 32),
        fragment(a, m, k / 2, 32),
        fragment(b, k, n, 32),
    ];
    Ok(count.map(|n| n as usize))
}

fn sparse_of(call: &Operands) -> Result<[usize; 3], String> {
    sparse_registers(
        call.text("shape"),
        call.text("a_type"),
        call.text("b_type"),
        call.text("c_type"),
    )
}

fn sparse_check(call: &Operands) -> Result<(), String> {
    sparse_of(call).map(drop)
}

fn sparse_words(call: &Operands, _: Machine) -> Result<Words, String> {
    let name = |of: &str| ptx_name(call.text(of)).unwrap_or_default().to_string();
    Ok(Words {
        texts: vec![
            ("a", name("a_type")),
            ("b", name("b_type")),
            ("c", name("c_type")),
        ],
        types: vec![("acc", register(call.text("c_type")))],
    })
}

/// Without `c_ptrs` the sum starts at 0.
fn mma_complete(given: &mut Given) -> Result<(), String> {
    let none = given.get("c_ptrs").is_empty();
    given.set("no_c_ptr", crate::ir::Expr::bool(none));
    Ok(())
}

const WARP: Traits = Traits::PLAIN.collective(Collective::Warp);
const ANY_OUT: ArgKind = ArgKind::Register(Access::Out, Ty::FromWords);
const ANY_IN: ArgKind = ArgKind::Register(Access::In, Ty::FromWords);

/// Products of two 8 x 4 and 4 x 8 tiles of float16 are older than all others.
fn mma_gpus(call: &Operands) -> Option<(&'static str, GpuSet)> {
    let oldest = call.text("shape") == "m8n8k4" && ptx_name(call.text("a_type")) == Some("f16");
    (!oldest).then_some(("", GpuSet::least(80)))
}

rows! { $ matrix {
    /// Loads `num` 8x8 matrices of 16-bit elements from shared memory: lane `8 * i + r` gives the address of row `r` of matrix `i`,
    /// and each lane gets two elements of each matrix. `trans` transposes them.
    PtxLdmatrix = Row::new("tirx.ptx.ldmatrix", "ptx.ldmatrix",
        ptx("ldmatrix.sync.aligned.m8n8.x{num}{?trans:.trans}.shared.{element} {{{dst}}}, [{smem_ptr}];").words(matrix_words))
        .args(&[
            arg("trans", ArgKind::Bool), arg("num", ArgKind::Immediate(1, 4)), arg("dtype", MATRIX_DTYPE), arg("smem_ptr", SHARED),
            list("dst", OUT32, matrices),
        ])
        .checked(ldmatrix)
        .traits(WARP).section("ldmatrix");

    /// Stores `num` 8x8 matrices of 16-bit elements (`m8n8`) or 16x8 matrices of 8-bit elements (`m16n8`) to shared memory, as
    /// `ldmatrix` loads them.
    PtxStmatrix = Row::new("tirx.ptx.stmatrix", "ptx.stmatrix",
        ptx("stmatrix.sync.aligned.{shape}.x{num}{?trans:.trans}.{space}.{element} [{smem_ptr}], {{{src}}};").words(matrix_words))
        .signature("(trans, num, dtype, smem_ptr, *src, shape='m8n8', space='shared')")
        .args(&[
            arg("trans", ArgKind::Bool), arg("num", ArgKind::Immediate(1, 4)), arg("dtype", MATRIX_DTYPE),
            arg("shape", ArgKind::Text(&["m8n8", "m16n8"])), arg("space", ArgKind::Text(&["shared", "shared::cta"])),
            arg("smem_ptr", SHARED), list("src", IN32, matrices),
        ])
        .checked(stmatrix)
        .needs(&[("shape", "m16n8", GpuSet::families(&[100, 110, 120]))])
        .traits(WARP).section("stmatrix");

    /// `D = A * B + C` of a warp, with the matrices of `shape` in the registers that `d_ptrs`, `a_ptrs`, `b_ptrs` and `c_ptrs` point
    /// to; without `c_ptrs` C is 0. `bit_op` is `xor` or `and` for matrices of bits.
    PtxMma = Row::new("tirx.ptx.mma", "ptx.mma",
        ptx("{?zeros:.reg .{zero_type} z; mov.{zero_type} z, {zero}; }\
             mma.sync.aligned.{shape}.{a_layout}.{b_layout}{?saturate:.satfinite}.{d}.{a}.{b}.{c}{bits} \
             {{{d_ptrs}}}, {{{a_ptrs}}}, {{{b_ptrs}}}, {{{?zeros:{zeros}}{!zeros:{c_ptrs}}}};").words(mma_words))
        .signature("(shape, a_layout, b_layout, d_type, a_type, b_type, c_type, d_ptrs, a_ptrs, b_ptrs, c_ptrs=None, \
                    saturate=False, bit_op=None)")
        .args(&[
            arg("shape", ArgKind::DTypeName), arg("a_layout", LAYOUT), arg("b_layout", LAYOUT), arg("d_type", ArgKind::DTypeName),
            arg("a_type", ArgKind::DTypeName), arg("b_type", ArgKind::DTypeName), arg("c_type", ArgKind::DTypeName),
            arg("d_count", ArgKind::Count("d_ptrs")), arg("a_count", ArgKind::Count("a_ptrs")), arg("b_count", ArgKind::Count("b_ptrs")),
            arg("c_count", ArgKind::Count("c_ptrs")), arg("no_c_ptr", ArgKind::Bool),
            rest("d_ptrs", ANY_OUT), rest("a_ptrs", ANY_IN), rest("b_ptrs", ANY_IN), rest("c_ptrs", ANY_IN),
            arg("saturate", ArgKind::Bool), optional("bit_op", ArgKind::Text(&["xor", "and"])),
        ])
        .completed(&[], mma_complete).checked(mma)
        .arch(GpuSet::least(70)).needs_by(mma_gpus)
        .needs(&[
            ("a_type", "e4m3", GpuSet::least(89)), ("a_type", "e5m2", GpuSet::least(89)),
            ("a_type", "float8_e4m3fn", GpuSet::least(89)), ("a_type", "float8_e5m2", GpuSet::least(89)),
        ])
        .traits(WARP).section("mma");

    /// `D = A * B + D` of a warp with a sparse A, whose stored elements are selected by `metadata`: two of four (one of
    /// two for tf32). `acc`, `a` and `b` are pointers to registers; the lanes that give the metadata are chosen by
    /// `selector`.
    PtxMmaSp = Row::new("tirx.ptx.mma_sp", "ptx.mma_sp",
        ptx("mma.sp.sync.aligned.{shape}.row.col{?saturate:.satfinite}.{c}.{a}.{b}.{c} {{{acc}}}, {{{a_regs}}}, {{{b_regs}}}, \
             {{{acc}}}, {metadata}, {selector};").words(sparse_words))
        .args(&[
            arg("shape", ArgKind::DTypeName), arg("a_type", ArgKind::DTypeName), arg("b_type", ArgKind::DTypeName),
            arg("c_type", ArgKind::DTypeName), arg("selector", ArgKind::Immediate(0, 3)), arg("saturate", ArgKind::Bool),
            arg("metadata", IN32),
            list("acc", ArgKind::Register(Access::InOut, Ty::FromWords), |call| sparse_of(call).map_or(0, |n| n[0])),
            list("a_regs", IN32, |call| sparse_of(call).map_or(0, |n| n[1])),
            list("b_regs", IN32, |call| sparse_of(call).map_or(0, |n| n[2])),
        ])
        .checked(sparse_check)
        .arch(GpuSet::least(80))
        .needs(&[("a_type", "e4m3", GpuSet::least(89)), ("a_type", "e5m2", GpuSet::least(89))])
        .traits(WARP).section("mma.sp");
} }

/// Registers of `mma` that a lane has: C, A, B.
///
/// # Errors
/// Forms that PTX does not have.
pub fn dense_registers(text: &str, a: &str, b: &str, c: &str) -> Result<[usize; 3], String> {
    let Some((m, n, k)) = shape(text) else {
        return Err(format!("\"{text}\" is no shape such as m16n8k16"));
    };
    let threads = if text == "m8n8k4" && ptx_name(a) == Some("f16") {
        8
    } else {
        32
    };
    let count = [
        fragment(c, m, n, threads),
        fragment(a, m, k, threads),
        fragment(b, k, n, threads),
    ];
    Ok(count.map(|n| n as usize))
}

/// The dtype of a register that holds elements of a dtype.
pub fn register_dtype(name: &str) -> crate::ir::DType {
    match register(name) {
        Ty::F32 => crate::ir::DType::FLOAT32,
        Ty::F64 => crate::ir::DType::FLOAT64,
        _ => crate::ir::DType::UINT32,
    }
}
