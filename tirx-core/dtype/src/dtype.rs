//! Element types: what a value is made of, and how many lanes it has.

use std::fmt;

/// The kinds of elements in the order in which images number them, each with DLPack's number.
macro_rules! type_codes {
    ($($(#[$doc:meta])* $name:ident = $dlpack:literal,)*) => {
        /// The kind of an element; [`DType::bits`] says how wide it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(non_camel_case_types, missing_docs, reason = "the names are the dtypes' own")]
        pub enum TypeCode {
            $($(#[$doc])* $name,)*
        }

        impl TypeCode {
            /// Every kind, in the order in which images number them.
            pub const ALL: &[TypeCode] = &[$(TypeCode::$name),*];

            /// DLPack's number.
            pub const fn dlpack(self) -> u8 {
                match self {
                    $(TypeCode::$name => $dlpack,)*
                }
            }
        }
    };
}

type_codes! {
    Int = 0,
    UInt = 1,
    Float = 2,
    BFloat = 4,
    Bool = 6,
    /// An opaque pointer.
    Handle = 3,
    Float8_e3m4 = 7,
    Float8_e4m3 = 8,
    Float8_e4m3b11fnuz = 9,
    Float8_e4m3fn = 10,
    Float8_e4m3fnuz = 11,
    Float8_e5m2 = 12,
    Float8_e5m2fnuz = 13,
    Float8_e8m0fnu = 14,
    Float6_e2m3fn = 15,
    Float6_e3m2fn = 16,
    Float4_e2m1fn = 17,
}

/// An element type and a lane count.
///
/// `Display` and `FromStr` use TVM's names: `float32`, `int8x4`, `bfloat16`, `bool`, `handle`, `void`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    /// Kind of one element.
    pub code: TypeCode,
    /// Width of one element in bits. A bool is stored in 8.
    pub bits: u8,
    /// Elements; 1 for a scalar, 0 only in [`DType::VOID`].
    pub lanes: u16,
}

#[allow(missing_docs, reason = "the names say it")]
impl DType {
    pub const BOOL: DType = DType::scalar(TypeCode::Bool, 8);
    pub const INT8: DType = DType::int(8);
    pub const INT16: DType = DType::int(16);
    pub const INT32: DType = DType::int(32);
    pub const INT64: DType = DType::int(64);
    pub const UINT8: DType = DType::uint(8);
    pub const UINT16: DType = DType::uint(16);
    pub const UINT32: DType = DType::uint(32);
    pub const UINT64: DType = DType::uint(64);
    pub const FLOAT16: DType = DType::float(16);
    pub const FLOAT32: DType = DType::float(32);
    pub const FLOAT64: DType = DType::float(64);
    pub const BFLOAT16: DType = DType::scalar(TypeCode::BFloat, 16);
    pub const HANDLE: DType = DType::scalar(TypeCode::Handle, 64);
    /// The type of a call that has no value.
    pub const VOID: DType = DType {
        code: TypeCode::Handle,
        bits: 0,
        lanes: 0,
    };

    pub const fn scalar(code: TypeCode, bits: u8) -> DType {
        DType { code, bits, lanes: 1 }
    }
    pub const fn int(bits: u8) -> DType {
        DType::scalar(TypeCode::Int, bits)
    }
    pub const fn uint(bits: u8) -> DType {
        DType::scalar(TypeCode::UInt, bits)
    }
    pub const fn float(bits: u8) -> DType {
        DType::scalar(TypeCode::Float, bits)
    }
    pub const fn with_lanes(self, lanes: u16) -> DType {
        DType { lanes, ..self }
    }
    /// The type of one lane.
    pub const fn element(self) -> DType {
        if self.lanes == 0 { self } else { self.with_lanes(1) }
    }
    pub fn is_scalar(self) -> bool {
        self.lanes == 1
    }
    pub fn is_vector(self) -> bool {
        self.lanes > 1
    }
    pub fn is_void(self) -> bool {
        self.lanes == 0
    }
    pub fn is_handle(self) -> bool {
        self.code == TypeCode::Handle && !self.is_void()
    }
    pub fn is_bool(self) -> bool {
        self.code == TypeCode::Bool
    }
    pub fn is_int(self) -> bool {
        self.code == TypeCode::Int
    }
    pub fn is_uint(self) -> bool {
        self.code == TypeCode::UInt
    }
    /// A signed or unsigned integer; not bool.
    pub fn is_integer(self) -> bool {
        self.is_int() || self.is_uint()
    }
    /// Any floating-point type, bfloat16 and the narrow ones included.
    pub fn is_floating(self) -> bool {
        !matches!(
            self.code,
            TypeCode::Int | TypeCode::UInt | TypeCode::Bool | TypeCode::Handle
        )
    }
    /// IEEE float16/32/64.
    pub fn is_float(self) -> bool {
        self.code == TypeCode::Float
    }
    pub fn is_bfloat16(self) -> bool {
        self.code == TypeCode::BFloat
    }
    /// A float of 8, 6 or 4 bits: a storage format, computed with as float32.
    pub fn is_small_float(self) -> bool {
        self.is_floating() && self.bits <= 8
    }
    pub fn is_float8(self) -> bool {
        self.is_floating() && self.bits == 8
    }
    pub fn is_float6(self) -> bool {
        self.is_floating() && self.bits == 6
    }
    pub fn is_float4(self) -> bool {
        self.is_floating() && self.bits == 4
    }
}

impl DType {
    /// Bits that one element takes in memory. As CUDA has it, a float6 has a byte to itself and two float4 share one,
    /// the element with the even index in the low half.
    pub fn storage_bits(self) -> usize {
        match self.bits {
            6 => 8,
            bits => bits.into(),
        }
    }

    /// Bytes that one value takes in memory, all lanes; sub-byte elements are packed and rounded up.
    pub fn bytes(self) -> usize {
        (self.storage_bits() * self.lanes as usize).div_ceil(8)
    }

    /// Bytes that `count` values in a row take in memory; `None` where there are too many to count.
    pub fn bytes_of(self, count: usize) -> Option<usize> {
        let bits = self.storage_bits().checked_mul(self.lanes.into())?;
        Some(bits.checked_mul(count)?.div_ceil(8))
    }

    /// Smallest value of an integer type (0/1 for bool), `None` for others.
    pub fn min_int(self) -> Option<i128> {
        match self.code {
            TypeCode::Int if self.bits == 128 => Some(i128::MIN),
            TypeCode::Int => Some(-(1i128 << (self.bits - 1))),
            TypeCode::UInt | TypeCode::Bool => Some(0),
            _ => None,
        }
    }

    /// Largest value of an integer type (1 for bool), `None` for others.
    pub fn max_int(self) -> Option<i128> {
        match self.code {
            // The values of 128 bits are registers that are passed on: the compiler computes with none beyond its own integers.
            TypeCode::Int | TypeCode::UInt if self.bits == 128 => Some(i128::MAX),
            TypeCode::Int => Some((1i128 << (self.bits - 1)) - 1),
            TypeCode::UInt => Some((1i128 << self.bits) - 1),
            TypeCode::Bool => Some(1),
            _ => None,
        }
    }

    /// `value` wrapped to an integer type's range, as two's-complement hardware does.
    pub fn wrap(self, value: i128) -> i128 {
        match self.code {
            TypeCode::Int => {
                let shift = 128 - self.bits as u32;
                (value << shift) >> shift
            }
            TypeCode::UInt if self.bits == 128 => value,
            TypeCode::UInt => value & ((1i128 << self.bits) - 1),
            TypeCode::Bool => (value != 0) as i128,
            _ => value,
        }
    }
}

/// A name that is no dtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDType(pub String);

impl fmt::Display for UnknownDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown dtype \"{}\"", self.0)
    }
}

impl std::error::Error for UnknownDType {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in [
            "int8",
            "uint64",
            "float16x4",
            "bfloat16",
            "bfloat16x2",
            "bool",
            "handle",
            "void",
            "float8_e4m3fn",
            "float8_e4m3b11fnuzx8",
            "float8_e8m0fnu",
            "float6_e2m3fn",
            "float4_e2m1fnx2",
            "int32x4",
        ] {
            assert_eq!(name.parse::<DType>().unwrap().to_string(), name);
        }
        for bad in ["float7", "int", "x4", "float32x", "float32x0", "int33"] {
            assert!(bad.parse::<DType>().is_err(), "{bad}");
        }
    }

    #[test]
    fn narrow_elements_lie_in_memory_as_cuda_has_them() {
        for (name, one, five) in [
            ("float4_e2m1fn", 1, 3),
            ("float4_e2m1fnx2", 1, 5),
            ("float4_e2m1fnx8", 4, 20),
            ("float6_e3m2fn", 1, 5),
            ("float6_e2m3fnx4", 4, 20),
            ("float8_e5m2x2", 2, 10),
            ("float32x4", 16, 80),
        ] {
            let dtype: DType = name.parse().unwrap();
            assert_eq!((dtype.bytes(), dtype.bytes_of(5)), (one, Some(five)), "{name}");
        }
        assert_eq!(DType::FLOAT64.bytes_of(usize::MAX), None);
    }

    #[test]
    fn integers_wrap_as_hardware_does() {
        assert_eq!(DType::INT8.wrap(200), -56);
        assert_eq!(DType::UINT8.wrap(-1), 255);
        assert_eq!(DType::INT64.wrap(1 << 63), i64::MIN as i128);
        assert_eq!(DType::UINT64.max_int(), Some(u64::MAX as i128));
    }
}
