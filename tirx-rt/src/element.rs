//! Element types of tensors.

use crate::float4::Float4E2m1;
use crate::float8::{f4e2m1x2, f8e4m3, f8e5m2, f8e8m0};
use crate::{bf16, f16};

/// An element type in DLPack's encoding: code and bits; one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// DLPack's code: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2, 14 float8_e8m0fnu, 17
    /// float4_e2m1fn (of 4 bits, or of 8 for two in a byte).
    pub code: u8,
    /// Width in bits.
    pub bits: u8,
}

impl ElementType {
    /// Bytes of `count` elements in a row; `None` where that overflows.
    pub fn bytes_of(self, count: usize) -> Option<usize> {
        if self.bits >= 8 {
            return count.checked_mul(self.bits as usize / 8);
        }
        Some(count.div_ceil(self.in_a_byte()))
    }

    /// Code, bits and lanes of the type as DLPack has it: two floats of 4 bits are two lanes.
    pub(crate) fn dlpack(self) -> (u8, u8, u16) {
        match (self.code, self.bits) {
            (f4e2m1x2::CODE, 8) => (self.code, 4, 2),
            (code, bits) => (code, bits, 1),
        }
    }

    /// Number of elements that share a byte.
    pub fn in_a_byte(self) -> usize {
        (8 / self.bits.max(1) as usize).max(1)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that tensors can hold.
#[diagnostic::on_unimplemented(
    message = "tensors cannot hold elements of `{Self}`",
    label = "no element type of tensors",
    note = "`f16` and `bf16` of the crate `half` are elements if `tirx-rt` has the feature `half`, and its version of that \
            crate is the program's; `tirx_rt::f16` and `tirx_rt::bf16` are elements in any case"
)]
pub trait Element:
    sealed::Sealed + Copy + Default + Send + Sync + std::fmt::Debug + PartialEq + 'static
{
    /// Its DLPack encoding.
    const TYPE: ElementType;
    /// Its name in kernels, e.g. `float32`.
    const NAME: &'static str;

    /// Appends the little-endian bytes of `values`.
    fn write_bytes(values: &[Self], out: &mut Vec<u8>);

    /// The values behind little-endian bytes, as many as are complete.
    fn from_bytes(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($ty:ty, $code:literal, $bits:literal, $name:literal;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const TYPE: ElementType = ElementType { code: $code, bits: $bits };
            const NAME: &'static str = $name;

            fn write_bytes(values: &[Self], out: &mut Vec<u8>) {
                out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                let (chunks, _) = bytes.as_chunks::<{ $bits / 8 }>();
                chunks.iter().map(|c| <$ty>::from_le_bytes(*c)).collect()
            }
        }
    )*};
}

elements! {
    i8, 0, 8, "int8";
    i16, 0, 16, "int16";
    i32, 0, 32, "int32";
    i64, 0, 64, "int64";
    u8, 1, 8, "uint8";
    u16, 1, 16, "uint16";
    u32, 1, 32, "uint32";
    u64, 1, 64, "uint64";
    f16, 2, 16, "float16";
    f32, 2, 32, "float32";
    f64, 2, 64, "float64";
    bf16, 4, 16, "bfloat16";
}

/// An element type whose values [`Tensor::arange`](crate::Tensor::arange) counts.
pub trait CountingElement: Element {
    /// The values from `start` on, in steps of one, that are less than `end`.
    #[doc(hidden)]
    fn count(start: Self, end: Self) -> Vec<Self>;
}

macro_rules! counting {
    (integers: $($integer:ty)*; floats: $($float:ty)*;) => {
        $(impl CountingElement for $integer {
            fn count(start: Self, end: Self) -> Vec<Self> {
                (start..end).collect()
            }
        })*
        $(impl CountingElement for $float {
            fn count(start: Self, end: Self) -> Vec<Self> {
                let (start, end) = (f64::from(start), f64::from(end));
                let count = (end - start).ceil().max(0.0) as usize;
                (0..count).map(|i| rounded(start + i as f64)).collect()
            }
        })*
    };
}
counting! {
    integers: i8 i16 i32 i64 u8 u16 u32 u64;
    floats: f16 bf16 f32 f64;
}

/// The nearest value of an element type.
fn rounded<T: Rounds>(value: f64) -> T {
    T::round(value)
}

/// Rounding to a float of an element type.
trait Rounds {
    fn round(value: f64) -> Self;
}

macro_rules! rounds {
    ($($float:ty: $value:ident => $rounded:expr;)*) => {$(
        impl Rounds for $float {
            fn round($value: f64) -> $float {
                $rounded
            }
        }
    )*};
}
rounds! {
    f16: value => f16::from_f64(value);
    bf16: value => bf16::from_f64(value);
    f32: value => value as f32;
    f64: value => value;
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const TYPE: ElementType = ElementType { code: 6, bits: 8 };
    const NAME: &'static str = "bool";

    fn write_bytes(values: &[bool], out: &mut Vec<u8>) {
        out.extend(values.iter().map(|v| *v as u8));
    }

    fn from_bytes(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().map(|b| *b != 0).collect()
    }
}

macro_rules! bytes {
    ($($ty:ty, $name:literal;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const TYPE: ElementType = ElementType { code: <$ty>::CODE, bits: 8 };
            const NAME: &'static str = $name;

            fn write_bytes(values: &[Self], out: &mut Vec<u8>) {
                out.extend(values.iter().map(|v| v.to_bits()));
            }

            fn from_bytes(bytes: &[u8]) -> Vec<Self> {
                bytes.iter().map(|bits| <$ty>::from_bits(*bits)).collect()
            }
        }
    )*};
}

bytes! {
    f8e4m3, "float8_e4m3fn";
    f8e5m2, "float8_e5m2";
    f8e8m0, "float8_e8m0fnu";
    f4e2m1x2, "float4_e2m1fnx2";
}

impl sealed::Sealed for Float4E2m1 {}
impl Element for Float4E2m1 {
    const TYPE: ElementType = ElementType { code: 17, bits: 4 };
    const NAME: &'static str = "float4_e2m1fn";

    fn write_bytes(values: &[Float4E2m1], out: &mut Vec<u8>) {
        let code = |value: Option<&Float4E2m1>| value.map_or(0, |v| v.to_bits());
        out.extend(
            values
                .chunks(2)
                .map(|pair| code(pair.first()) | code(pair.get(1)) << 4),
        );
    }

    fn from_bytes(bytes: &[u8]) -> Vec<Float4E2m1> {
        let halves = bytes.iter().flat_map(|byte| [*byte, byte >> 4]);
        halves.map(Float4E2m1::from_bits).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Element>(values: &[T]) {
        let mut bytes = Vec::new();
        T::write_bytes(values, &mut bytes);
        assert_eq!(bytes.len(), std::mem::size_of_val(values));
        assert_eq!(T::from_bytes(&bytes), values);
    }

    #[test]
    fn bytes_round_trip() {
        round_trip(&[1.5f32, -0.0, f32::MAX]);
        round_trip(&[i64::MIN, 7]);
        round_trip(&[f16::from_f32(0.1), f16::MAX]);
        round_trip(&[true, false]);
        round_trip(&[1.5, -448.0].map(f8e4m3::from_f32));
        round_trip(&[1.5, -57344.0].map(f8e5m2::from_f32));
        round_trip(&[0.25, 4.0].map(f8e8m0::from_f32));
        round_trip(&[f4e2m1x2::from_bits(0x21)]);
        assert_eq!(bool::from_bytes(&[2, 0]), [true, false]);
    }

    #[test]
    fn two_float4_share_a_byte() {
        let values = [1, 2, 15].map(Float4E2m1::from_bits);
        let mut bytes = Vec::new();
        Float4E2m1::write_bytes(&values, &mut bytes);
        assert_eq!(bytes, [0x21, 0x0f]);
        assert_eq!(Float4E2m1::from_bytes(&bytes)[..3], values);
        assert_eq!(Float4E2m1::TYPE.bytes_of(3), Some(2));
        assert_eq!(f64::TYPE.bytes_of(usize::MAX), None);
    }
}
