//! What does a register of PTX's `cvt` hold?

use crate::{DType, TypeCode};

/// What a register of `cvt` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Values of a dtype.
    Of(DType),
    /// float32 with ten bits of mantissa, in 32 bits.
    Tf32,
    /// A signed fixed-point number of 8 bits, 6 of them behind the point.
    S2f6,
}

impl Element {
    /// Whether it is an integer.
    pub fn is_integer(self) -> bool {
        matches!(self, Element::Of(d) if d.is_integer())
    }
}

/// A type of `cvt`: its name, the dtype that carries it, and what it packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// `e4m3x2`.
    pub name: &'static str,
    /// The dtype of an argument or of the result.
    pub carrier: DType,
    /// How many values are packed; the first is in the upper bits.
    pub lanes: u32,
    /// Format of each.
    pub element: Element,
}

impl Format {
    /// The format of this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|f| f.name == name)
    }

    /// Bits from one packed value to the next.
    pub fn pitch(&self) -> u32 {
        u32::from(self.carrier.bits) / self.lanes
    }
}

const fn one(name: &'static str, carrier: DType, element: DType) -> Format {
    packed(name, carrier, 1, element)
}

const fn packed(name: &'static str, carrier: DType, lanes: u32, element: DType) -> Format {
    Format {
        name,
        carrier,
        lanes,
        element: Element::Of(element),
    }
}

const E4M3: DType = DType::scalar(TypeCode::Float8_e4m3fn, 8);
const E5M2: DType = DType::scalar(TypeCode::Float8_e5m2, 8);
const E2M1: DType = DType::scalar(TypeCode::Float4_e2m1fn, 4);
const E2M3: DType = DType::scalar(TypeCode::Float6_e2m3fn, 6);
const E3M2: DType = DType::scalar(TypeCode::Float6_e3m2fn, 6);
const UE8M0: DType = DType::scalar(TypeCode::Float8_e8m0fnu, 8);

/// All types.
pub static FORMATS: &[Format] = &[
    one("u8", DType::UINT8, DType::UINT8),
    one("u16", DType::UINT16, DType::UINT16),
    one("u32", DType::UINT32, DType::UINT32),
    one("u64", DType::UINT64, DType::UINT64),
    one("s8", DType::INT8, DType::INT8),
    one("s16", DType::INT16, DType::INT16),
    one("s32", DType::INT32, DType::INT32),
    one("s64", DType::INT64, DType::INT64),
    one("bf16", DType::UINT16, DType::BFLOAT16),
    one("f16", DType::UINT16, DType::FLOAT16),
    one("f32", DType::FLOAT32, DType::FLOAT32),
    one("f64", DType::FLOAT64, DType::FLOAT64),
    packed("f16x2", DType::UINT32, 2, DType::FLOAT16),
    packed("bf16x2", DType::UINT32, 2, DType::BFLOAT16),
    Format {
        name: "tf32",
        carrier: DType::UINT32,
        lanes: 1,
        element: Element::Tf32,
    },
    packed("e4m3x2", DType::UINT16, 2, E4M3),
    packed("e5m2x2", DType::UINT16, 2, E5M2),
    packed("e2m1x2", DType::UINT8, 2, E2M1),
    packed("e2m3x2", DType::UINT16, 2, E2M3),
    packed("e3m2x2", DType::UINT16, 2, E3M2),
    packed("e4m3x4", DType::UINT32, 4, E4M3),
    packed("e5m2x4", DType::UINT32, 4, E5M2),
    packed("e2m1x4", DType::UINT16, 4, E2M1),
    packed("e2m3x4", DType::UINT32, 4, E2M3),
    packed("e3m2x4", DType::UINT32, 4, E3M2),
    packed("ue8m0x2", DType::UINT16, 2, UE8M0),
    Format {
        name: "s2f6x2",
        carrier: DType::UINT16,
        lanes: 2,
        element: Element::S2f6,
    },
];

/// The names of all types.
pub const FORMAT_NAMES: &[&str] = &[
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bf16", "f16", "f32", "f64", "f16x2", "bf16x2",
    "tf32", "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "e4m3x4", "e5m2x4", "e2m1x4", "e2m3x4",
    "e3m2x4", "ue8m0x2", "s2f6x2",
];
