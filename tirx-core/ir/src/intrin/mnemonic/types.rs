//! Which dtypes may a register operand have, and how does it cross the boundary of `asm`?

use crate::ir::{DType, ElementType};
use tirx_dtype::AsmRegister;

/// A class of registers that `asm` cannot bind: the value is moved to or from one that is declared within the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The class: `.pred`.
    pub class: &'static str,
    /// Fills the register `{r}` from the operand `{o}`.
    pub into: &'static str,
    /// Gives its value back.
    pub back: &'static str,
}

const INTS8: &[DType] = &[DType::UINT8, DType::INT8];
const INTS16: &[DType] = &[DType::UINT16, DType::INT16];
const INTS32: &[DType] = &[DType::UINT32, DType::INT32];
const INTS64: &[DType] = &[DType::UINT64, DType::INT64];
const INTS128: &[DType] = &[DType::uint(128), DType::int(128)];
const HALF: &[DType] = &[DType::UINT16, DType::FLOAT16];
const BRAIN: &[DType] = &[DType::UINT16, DType::BFLOAT16];
const BITS16: &[DType] = &[DType::UINT16, DType::INT16, DType::FLOAT16, DType::BFLOAT16];
const BITS32: &[DType] = &[DType::UINT32, DType::INT32, DType::FLOAT32];
const BITS64: &[DType] = &[DType::UINT64, DType::INT64, DType::FLOAT64];

/// Types of registers: the dtypes that each accepts, the one of a literal first.
const TYPES: &[(&str, &[DType])] = &[
    ("b8", INTS8),
    ("u8", &[DType::UINT8]),
    ("s8", &[DType::INT8]),
    ("b16", BITS16),
    ("u16", &[DType::UINT16]),
    ("s16", &[DType::INT16]),
    ("b32", BITS32),
    ("b32i", INTS32),
    ("u32", &[DType::UINT32]),
    ("s32", &[DType::INT32]),
    ("b64", BITS64),
    ("b64i", INTS64),
    ("u64", &[DType::UINT64]),
    ("s64", &[DType::INT64]),
    ("b128", INTS128),
    ("f16", HALF),
    ("bf16", BRAIN),
    ("f32", &[DType::FLOAT32]),
    ("f64", &[DType::FLOAT64]),
    ("tf32", &[DType::UINT32, DType::FLOAT32]),
    ("f32x2", INTS64),
    ("f16x2", INTS32),
    ("bf16x2", INTS32),
    ("u16x2", INTS32),
    ("s16x2", INTS32),
    ("u8x4", INTS32),
    ("s8x4", INTS32),
    ("e4m3x2", INTS16),
    ("e5m2x2", INTS16),
    ("e2m3x2", INTS16),
    ("e3m2x2", INTS16),
    ("ue8m0x2", INTS16),
    ("ue5m3x2", INTS16),
    ("s2f6x2", INTS16),
    ("e2m1x4", INTS16),
    ("e4m3x4", INTS32),
    ("e5m2x4", INTS32),
    ("e2m3x4", INTS32),
    ("e3m2x4", INTS32),
    ("e2m1x2", INTS8),
    ("ue8m0", INTS8),
    ("report", INTS8),
    ("byte", INTS8),
    (
        "size",
        &[
            DType::UINT8,
            DType::INT8,
            DType::UINT16,
            DType::INT16,
            DType::FLOAT16,
            DType::BFLOAT16,
        ],
    ),
    ("mask", &[DType::UINT16, DType::UINT32]),
    (
        "count64",
        &[DType::UINT64, DType::INT64, DType::UINT32, DType::INT32],
    ),
    ("pred", &[DType::BOOL]),
    ("ptr", &[DType::HANDLE]),
];

/// Every dtype that a register may have.
pub fn scalars() -> Vec<DType> {
    let mut all: Vec<DType> = Vec::new();
    for dtype in TYPES.iter().flat_map(|(_, dtypes)| *dtypes) {
        if !all.contains(dtype) {
            all.push(*dtype);
        }
    }
    all
}

/// The dtypes that a type accepts, the one of a literal first.
pub fn dtypes(ty: &str) -> &'static [DType] {
    TYPES
        .iter()
        .find(|(name, _)| *name == ty)
        .map_or(&[], |(_, dtypes)| dtypes)
}

/// Whether a register of a type may have a dtype; `wider` allows more bits than the type has.
pub fn accepts(ty: &str, dtype: DType, wider: bool) -> bool {
    if dtypes(ty).contains(&dtype) {
        return true;
    }
    let Some(first) = dtypes(ty).first() else {
        return false;
    };
    if !wider || dtype.lanes != 1 || ty == "b128" {
        return false;
    }
    // The PTX ISA: a register of a load, store or conversion may be wider than the type. Of a type of bits and of integers
    // it may be any of that width, too.
    let bits = u32::from(dtype.bits);
    let least = u32::from(first.bits);
    match ty.as_bytes().first() {
        Some(b'b') if ty != "bf16" => bits >= least && !dtype.is_bool(),
        Some(b'u' | b's') => bits >= least && dtype.is_integer(),
        _ if matches!(ty, "f16" | "bf16") => bits == 16 || dtype.is_integer() && bits > 16,
        _ => bits == least && dtype.is_float() || bits >= least && dtype.is_integer(),
    }
}

/// How a dtype is bound.
pub fn binding(dtype: DType) -> Option<AsmRegister> {
    let row = ElementType::from_dtype(dtype).filter(|_| dtype.is_scalar())?;
    row.asm
}

/// The classes of registers that `asm` cannot bind.
pub fn bridge(ty: &str, dtype: DType) -> Option<Bridge> {
    let byte = Some(Bridge {
        class: ".b8",
        into: "cvt.u8.u16 {r}, {o};",
        back: "cvt.u16.u8 {o}, {r};",
    });
    match ty {
        "pred" => Some(Bridge {
            class: ".pred",
            into: "setp.ne.b32 {r}, {o}, 0;",
            back: "selp.b32 {o}, 1, 0, {r};",
        }),
        "e2m1x2" | "ue8m0" | "report" | "byte" => byte,
        "size" if dtype.bits == 8 => byte,
        _ => None,
    }
}

/// Bits of an element of a matrix.
pub(super) fn element_bits(ty: &str) -> usize {
    match ty {
        "f64" => 64,
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "u4" | "s4" => 4,
        "b1" => 1,
        _ => 8,
    }
}
