//! float16 and bfloat16 as Rust types: their bits, and the rounding to them.
//!
//! Each is written as the crate `half` writes its type of the same name, and has a part of its methods, so that a program
//! can take `half`'s in their place (`tirx-rt`, feature `half`). They are here because `half` brings `zerocopy` and its
//! derives, which a build script and a simulator need nothing of: a tenth of a user's clean build.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use crate::odd_f32;

/// A float of 16 bits as IEEE 754 has it (binary16): 5 bits of exponent, 10 of mantissa.
#[expect(
    non_camel_case_types,
    reason = "it is written as `f32` is, and as in the crate `half`"
)]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct f16(u16);

/// The upper half of a float32: 8 bits of exponent, 7 of mantissa.
#[expect(
    non_camel_case_types,
    reason = "it is written as `f32` is, and as in the crate `half`"
)]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct bf16(u16);

impl f16 {
    /// The bits of the largest exponent, which infinities and NaNs have.
    const EXPONENT: u16 = 0x7c00;

    /// The nearest value, ties to even; what is too large is infinite. NaNs keep their sign and the upper bits.
    #[inline]
    pub const fn from_f32(value: f32) -> f16 {
        /// 2^16 and 2^-14 as float32: the first power of two that is too large, the least normal value.
        const TOO_LARGE: u32 = (127 + 16) << 23;
        const NORMAL: u32 = (127 - 14) << 23;
        /// A number whose last bit is the least denormal of float16, so that adding it rounds there.
        const ROUNDS: u32 = (127 - 15 + 23 - 10 + 1) << 23;
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let code = if magnitude > 0x7f80_0000 {
            0x7e00 | (magnitude >> 13) as u16 & 0x3ff
        } else if magnitude >= TOO_LARGE {
            0x7c00
        } else if magnitude < NORMAL {
            let sum = f32::from_bits(magnitude) + f32::from_bits(ROUNDS);
            (sum.to_bits() - ROUNDS) as u16
        } else {
            let odd = (magnitude >> 13) & 1;
            // The exponent's bias is another; a carry out of the mantissa moves on to the next exponent.
            ((magnitude - ((127 - 15) << 23) + 0xfff + odd) >> 13) as u16
        };
        f16(sign | code)
    }

    /// The same value as a float32.
    #[inline]
    pub const fn to_f32(self) -> f32 {
        /// 2^-14, the place of the denormals once their exponent is that of the least normal value.
        const LEAST: u32 = (127 - 14) << 23;
        let sign = ((self.0 & 0x8000) as u32) << 16;
        let shifted = ((self.0 & 0x7fff) as u32) << 13;
        let magnitude = match self.0 & Self::EXPONENT {
            0 => (f32::from_bits(shifted + LEAST) - f32::from_bits(LEAST)).to_bits(),
            Self::EXPONENT if shifted & 0x007f_ffff != 0 => shifted | 0x7fc0_0000,
            Self::EXPONENT => 0x7f80_0000,
            _ => shifted + ((127 - 15) << 23),
        };
        f32::from_bits(sign | magnitude)
    }
}

impl bf16 {
    /// The bits of the largest exponent, which infinities and NaNs have.
    const EXPONENT: u16 = 0x7f80;

    /// The nearest value, ties to even; what is too large is infinite. NaNs keep their sign and the upper bits.
    #[inline]
    pub const fn from_f32(value: f32) -> bf16 {
        let bits = value.to_bits();
        if bits & 0x7fff_ffff > 0x7f80_0000 {
            return bf16((bits >> 16) as u16 | 0x0040);
        }
        bf16(((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16)
    }

    /// The same value as a float32.
    #[inline]
    pub const fn to_f32(self) -> f32 {
        let quiet = if self.is_nan() { 0x0040 } else { 0 };
        f32::from_bits(((self.0 | quiet) as u32) << 16)
    }
}

/// What the two types have in common. Constants are given as bits.
macro_rules! float {
    ($ty:ident: $($constant:ident = $bits:literal, $meaning:literal;)*) => {
        impl $ty {
            $(
                #[doc = $meaning]
                pub const $constant: $ty = $ty($bits);
            )*

            /// The value with these bits.
            #[inline]
            pub const fn from_bits(bits: u16) -> $ty {
                $ty(bits)
            }

            /// Its bits.
            #[inline]
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// The value with these bytes, the lower one first.
            #[inline]
            pub const fn from_le_bytes(bytes: [u8; 2]) -> $ty {
                $ty(u16::from_le_bytes(bytes))
            }

            /// Its bytes, the lower one first.
            #[inline]
            pub const fn to_le_bytes(self) -> [u8; 2] {
                self.0.to_le_bytes()
            }

            /// The nearest value, ties to even, rounded once.
            #[inline]
            pub fn from_f64(value: f64) -> $ty {
                $ty::from_f32(odd_f32(value))
            }

            /// The same value as a float64.
            #[inline]
            pub const fn to_f64(self) -> f64 {
                self.to_f32() as f64
            }

            /// Whether it is no number.
            #[inline]
            pub const fn is_nan(self) -> bool {
                self.0 & 0x7fff > Self::EXPONENT
            }

            /// Whether it is one of the infinities.
            #[inline]
            pub const fn is_infinite(self) -> bool {
                self.0 & 0x7fff == Self::EXPONENT
            }

            /// Whether it is a number and no infinity.
            #[inline]
            pub const fn is_finite(self) -> bool {
                self.0 & Self::EXPONENT != Self::EXPONENT
            }

            /// Whether its sign is set, also that of a zero or a NaN.
            #[inline]
            pub const fn is_sign_negative(self) -> bool {
                self.0 & 0x8000 != 0
            }
        }

        impl PartialEq for $ty {
            #[inline]
            fn eq(&self, other: &$ty) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $ty {
            #[inline]
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
            #[inline]
            fn from(value: $ty) -> f32 {
                value.to_f32()
            }
        }

        impl From<$ty> for f64 {
            #[inline]
            fn from(value: $ty) -> f64 {
                value.to_f64()
            }
        }

        impl From<i8> for $ty {
            #[inline]
            fn from(value: i8) -> $ty {
                $ty::from_f32(f32::from(value))
            }
        }

        impl From<u8> for $ty {
            #[inline]
            fn from(value: u8) -> $ty {
                $ty::from_f32(f32::from(value))
            }
        }

        impl Neg for $ty {
            type Output = $ty;
            #[inline]
            fn neg(self) -> $ty {
                $ty(self.0 ^ 0x8000)
            }
        }

        float!(operators $ty: Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign,
            Div div DivAssign div_assign, Rem rem RemAssign rem_assign);
    };
    // In float32 and rounded: for `+ - * /` that is exact (24 bits are at least twice 11 plus 2).
    (operators $ty:ident: $($operator:ident $method:ident $assign:ident $assigns:ident),*) => {$(
        impl $operator for $ty {
            type Output = $ty;
            #[inline]
            fn $method(self, other: $ty) -> $ty {
                $ty::from_f32(self.to_f32().$method(other.to_f32()))
            }
        }

        impl $assign for $ty {
            #[inline]
            fn $assigns(&mut self, other: $ty) {
                *self = self.$method(other);
            }
        }
    )*};
}

float! {
    f16:
    ZERO = 0, "0.0";
    ONE = 0x3c00, "1.0";
    NEG_ONE = 0xbc00, "-1.0";
    MAX = 0x7bff, "The largest finite value, 65504.";
    MIN = 0xfbff, "The least finite value, -65504.";
    MIN_POSITIVE = 0x0400, "The least positive normal value, 2^-14.";
    EPSILON = 0x1400, "The distance between 1.0 and the next value, 2^-10.";
    INFINITY = 0x7c00, "Infinity.";
    NEG_INFINITY = 0xfc00, "Negative infinity.";
    NAN = 0x7e00, "Not a number.";
}

float! {
    bf16:
    ZERO = 0, "0.0";
    ONE = 0x3f80, "1.0";
    NEG_ONE = 0xbf80, "-1.0";
    MAX = 0x7f7f, "The largest finite value, about 3.39e38.";
    MIN = 0xff7f, "The least finite value, about -3.39e38.";
    MIN_POSITIVE = 0x0080, "The least positive normal value, 2^-126.";
    EPSILON = 0x3c00, "The distance between 1.0 and the next value, 2^-7.";
    INFINITY = 0x7f80, "Infinity.";
    NEG_INFINITY = 0xff80, "Negative infinity.";
    NAN = 0x7fc0, "Not a number.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// float32 bits near every value of a type with `dropped` bits fewer: the value, what rounds to it, the ties.
    fn near(dropped: u32, value: f32) -> impl Iterator<Item = f32> {
        let half = 1u32 << (dropped - 1);
        [0, 1, half - 1, half, half + 1, 2 * half - 1]
            .into_iter()
            .map(move |more| f32::from_bits(value.to_bits().wrapping_add(more)))
    }

    #[test]
    fn every_value_is_that_of_half() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16::from_bits(bits), half::f16::from_bits(bits));
            assert_eq!(ours.to_f32().to_bits(), theirs.to_f32().to_bits(), "{bits:#x}");
            for value in near(13, ours.to_f32()) {
                let (ours, theirs) = (f16::from_f32(value), half::f16::from_f32(value));
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{:#x}", value.to_bits());
            }
            let (ours, theirs) = (bf16::from_bits(bits), half::bf16::from_bits(bits));
            assert_eq!(ours.to_f32().to_bits(), theirs.to_f32().to_bits(), "{bits:#x}");
            for value in near(16, f32::from_bits(u32::from(bits) << 16)) {
                let (ours, theirs) = (bf16::from_f32(value), half::bf16::from_f32(value));
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{:#x}", value.to_bits());
            }
        }
        // Between the denormals of float16, where the distance of two float32 is not that of two float16.
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let value = f32::from_bits((state >> 32) as u32);
            assert_eq!(
                f16::from_f32(value).to_bits(),
                half::f16::from_f32(value).to_bits(),
                "{value:e}"
            );
            let small = value % 1e-4;
            assert_eq!(
                f16::from_f32(small).to_bits(),
                half::f16::from_f32(small).to_bits(),
                "{small:e}"
            );
        }
    }

    #[test]
    fn constants_text_and_arithmetic_are_those_of_half() {
        macro_rules! same {
            ($($ty:ident: $($constant:ident)*;)*) => {$($(
                assert_eq!($ty::$constant.to_bits(), half::$ty::$constant.to_bits(), stringify!($constant));
                assert_eq!(format!("{0:?} {0}", $ty::$constant), format!("{0:?} {0}", half::$ty::$constant));
            )*)*};
        }
        same! {
            f16: ZERO ONE NEG_ONE MAX MIN MIN_POSITIVE EPSILON INFINITY NEG_INFINITY NAN;
            bf16: ZERO ONE NEG_ONE MAX MIN MIN_POSITIVE EPSILON INFINITY NEG_INFINITY NAN;
        }
        let (a, b) = (f16::from_f32(0.1), f16::from_f32(-3.25));
        let (c, d) = (half::f16::from_f32(0.1), half::f16::from_f32(-3.25));
        for (ours, theirs) in [
            (a + b, c + d),
            (a - b, c - d),
            (a * b, c * d),
            (a / b, c / d),
            (b % a, d % c),
        ] {
            assert_eq!(ours.to_bits(), theirs.to_bits());
        }
        assert_eq!((-a).to_bits(), (-c).to_bits());
        assert!(a > b && f16::NAN != f16::NAN && f16::ZERO == -f16::ZERO);
        assert_eq!(
            bf16::from_f64(1.0 + 2f64.powi(-8) + 2f64.powi(-50)).to_f64(),
            1.0078125
        );
    }
}
