//! Floats of 8 bits, and pairs of floats of 4 bits.
//!
//! The names are those of `f32` and of DLPack. Launchers take tensors of them. [`Tensor::as_bits`](crate::Tensor::as_bits)
//! sees a tensor of bytes as one of them and the reverse, without a copy.

use std::cmp::Ordering;
use std::fmt;

use tirx_dtype::{Minifloat, TypeCode, odd_f32};

use crate::float4::Float4E2m1;

macro_rules! floats {
    ($($(#[$doc:meta])* $ty:ident = $code:ident;)*) => {$(
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "it is written as `f32` is")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $ty(u8);

        impl $ty {
            /// DLPack's code.
            pub(crate) const CODE: u8 = TypeCode::$code.dlpack();

            /// The value with these bits.
            pub const fn from_bits(bits: u8) -> $ty {
                $ty(bits)
            }

            /// Its bits.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest value, ties to even. What is too large becomes the largest finite value, as CUDA converts.
            pub fn from_f32(value: f32) -> $ty {
                $ty(Minifloat::from_type_code(TypeCode::$code).map_or(0, |format| format.encode(value)) as u8)
            }

            /// As [`from_f32`](Self::from_f32), rounded once.
            pub fn from_f64(value: f64) -> $ty {
                $ty::from_f32(odd_f32(value))
            }

            /// The same value as a float32.
            pub fn to_f32(self) -> f32 {
                Minifloat::from_type_code(TypeCode::$code).map_or(f32::NAN, |format| format.decode(self.0.into()))
            }

            /// The same value as a float64.
            pub fn to_f64(self) -> f64 {
                self.to_f32().into()
            }

            /// Whether it is no number.
            pub fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        impl PartialEq for $ty {
            fn eq(&self, other: &$ty) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $ty {
            fn partial_cmp(&self, other: &$ty) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }

        impl From<$ty> for f32 {
            fn from(value: $ty) -> f32 {
                value.to_f32()
            }
        }

        impl From<$ty> for f64 {
            fn from(value: $ty) -> f64 {
                value.to_f64()
            }
        }
    )*};
}

floats! {
    /// An element of a `float8_e4m3fn` tensor: four bits of exponent, three of mantissa, up to 448, no infinity.
    ///
    /// ```
    /// use tirx_rt::f8e4m3;
    /// assert_eq!(f8e4m3::from_f32(0.3).to_f32(), 0.3125);
    /// assert_eq!(f8e4m3::from_f32(1e6).to_f32(), 448.0);
    /// ```
    f8e4m3 = Float8_e4m3fn;
    /// An element of a `float8_e5m2` tensor: five bits of exponent, two of mantissa, up to 57344, with infinities.
    f8e5m2 = Float8_e5m2;
    /// An element of a `float8_e8m0fnu` tensor, a scale: a power of two from 2⁻¹²⁷ to 2¹²⁷. Conversions round up.
    f8e8m0 = Float8_e8m0fnu;
}

/// Two floats of 4 bits in a byte: an element of a `float4_e2m1fnx2` tensor.
///
/// ```
/// use tirx_rt::f4e2m1x2;
/// let pair = f4e2m1x2::from_f32([1.5, -6.0]);
/// assert_eq!((pair.to_bits(), pair.to_f32()), (0xf3, [1.5, -6.0]));
/// ```
#[expect(non_camel_case_types, reason = "it is written as `f32` is")]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct f4e2m1x2(u8);

impl f4e2m1x2 {
    /// DLPack's code.
    pub(crate) const CODE: u8 = TypeCode::Float4_e2m1fn.dlpack();

    /// Two elements, the first one in the low half.
    pub const fn new(elements: [Float4E2m1; 2]) -> f4e2m1x2 {
        f4e2m1x2(elements[0].to_bits() | elements[1].to_bits() << 4)
    }

    /// The two elements.
    pub const fn elements(self) -> [Float4E2m1; 2] {
        [Float4E2m1::from_bits(self.0), Float4E2m1::from_bits(self.0 >> 4)]
    }

    /// The pair with these bits.
    pub const fn from_bits(bits: u8) -> f4e2m1x2 {
        f4e2m1x2(bits)
    }

    /// Its bits.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest values; see [`Float4E2m1::from_f32`].
    pub fn from_f32(values: [f32; 2]) -> f4e2m1x2 {
        f4e2m1x2::new(values.map(Float4E2m1::from_f32))
    }

    /// The two values.
    pub fn to_f32(self) -> [f32; 2] {
        self.elements().map(Float4E2m1::to_f32)
    }
}

impl PartialEq for f4e2m1x2 {
    fn eq(&self, other: &f4e2m1x2) -> bool {
        self.elements() == other.elements()
    }
}

impl fmt::Debug for f4e2m1x2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f32().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_converts_to_itself() {
        for bits in 0..=255 {
            let back = |value: f32, again: u8| assert!(value.is_nan() || again == bits, "{bits}");
            back(f8e4m3(bits).to_f32(), f8e4m3::from_f32(f8e4m3(bits).to_f32()).0);
            back(f8e8m0(bits).to_f32(), f8e8m0::from_f32(f8e8m0(bits).to_f32()).0);
            let e5m2 = f8e5m2(bits).to_f32();
            if e5m2.is_finite() {
                back(e5m2, f8e5m2::from_f32(e5m2).0);
            }
            assert_eq!(f4e2m1x2::from_f32(f4e2m1x2(bits).to_f32()).0, bits);
        }
        assert_eq!(f8e4m3::from_f32(0.3).to_f32(), 0.3125);
        assert_eq!(f8e5m2::from_f32(-1e9).to_f32(), -57344.0);
        assert_eq!(f8e8m0::from_f32(3.0).to_f32(), 4.0);
        assert!(f8e4m3(0x7f).is_nan() && f8e8m0(0xff).is_nan());
        assert!(f8e4m3::from_f32(1.0) < f8e4m3::from_f32(2.0));
        assert_eq!(
            format!("{} {:?}", f8e4m3::from_f32(1.5), f4e2m1x2(0x21)),
            "1.5 [0.5, 1.0]"
        );
    }
}
