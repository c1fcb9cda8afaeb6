//! What values do floats of 4, 6 and 8 bits have, and how is a value rounded to one?

/// A small float format: sign, `exponent` bits, `mantissa` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Minifloat {
    exponent: u8,
    mantissa: u8,
    bias: i8,
    style: MiniStyle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MiniStyle {
    /// Infinities and NaNs as IEEE 754 has them.
    Ieee,
    /// No infinity; all ones is NaN.
    Fn,
    /// No infinity, no negative zero; the code of negative zero is NaN.
    Fnuz,
    /// Finite values alone.
    Finite,
    /// Powers of two without sign; all ones is NaN.
    PowerOfTwo,
}

impl Minifloat {
    /// A format of sign, exponent and mantissa.
    pub(crate) const fn new(exponent: u8, mantissa: u8, bias: i8, style: MiniStyle) -> Minifloat {
        Minifloat {
            exponent,
            mantissa,
            bias,
            style,
        }
    }

    /// Whether it has negative values.
    pub fn is_signed(self) -> bool {
        self.style != MiniStyle::PowerOfTwo
    }

    /// Width of a code in bits.
    pub fn bits(self) -> u32 {
        u32::from(self.exponent + self.mantissa) + u32::from(self.is_signed())
    }

    fn sign_bit(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    /// The largest code of a finite value, without sign.
    fn max_code(self) -> u32 {
        let ones = self.sign_bit() - 1;
        match self.style {
            MiniStyle::Ieee => ones - (1 << self.mantissa),
            MiniStyle::Fn => ones - 1,
            MiniStyle::Fnuz | MiniStyle::Finite => ones,
            MiniStyle::PowerOfTwo => 0xfe,
        }
    }

    /// The value of a code.
    pub fn decode(self, bits: u32) -> f32 {
        if self.style == MiniStyle::PowerOfTwo {
            return match bits & 0xff {
                0xff => f32::NAN,
                e => (e as f64 - 127.0).exp2() as f32,
            };
        }
        let sign = if bits & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        let code = bits & (self.sign_bit() - 1);
        if code > self.max_code() {
            let infinite = self.style == MiniStyle::Ieee && code == self.max_code() + 1;
            return if infinite { sign * f32::INFINITY } else { f32::NAN };
        }
        if self.style == MiniStyle::Fnuz && bits == self.sign_bit() {
            return f32::NAN;
        }
        let (e, m) = (code >> self.mantissa, code & ((1 << self.mantissa) - 1));
        let scale = |e: i32| (e as f32).exp2();
        let lowest = 1 - self.bias as i32 - self.mantissa as i32;
        sign * if e == 0 {
            m as f32 * scale(lowest)
        } else {
            (m + (1 << self.mantissa)) as f32 * scale(lowest + e as i32 - 1)
        }
    }

    /// The nearest value, as [`Minifloat::encode`] rounds.
    pub fn round(self, value: f64) -> f64 {
        self.decode(self.encode(odd_f32(value))).into()
    }

    /// The nearest code, ties to even; a value that is too large becomes the largest finite value, as CUDA's saturating
    /// conversions do.
    pub fn encode(self, value: f32) -> u32 {
        if self.style == MiniStyle::PowerOfTwo {
            if value.is_nan() || value < 0.0 {
                return 0xff;
            }
            let e = (value as f64).log2().ceil();
            return (e + 127.0).clamp(0.0, 254.0) as u32;
        }
        if value.is_nan() {
            return match self.style {
                MiniStyle::Fnuz => self.sign_bit(),
                MiniStyle::Finite => self.max_code(),
                _ => self.sign_bit() - 1,
            };
        }
        let magnitude = value.abs() as f64;
        let lowest = 1 - self.bias as i32;
        let e = if magnitude > 0.0 {
            (magnitude.log2().floor() as i32).clamp(lowest, 200)
        } else {
            lowest
        };
        let quantum = ((e - self.mantissa as i32) as f64).exp2();
        let steps = (magnitude / quantum).round_ties_even().min(1e6) as u32;
        // For a normal value `steps` holds the hidden bit, so that a carry moves on to the next exponent.
        let code = (((e - lowest) as u32) << self.mantissa)
            .saturating_add(steps)
            .min(self.max_code());
        let negative = value.is_sign_negative() && !(self.style == MiniStyle::Fnuz && code == 0);
        code | if negative { self.sign_bit() } else { 0 }
    }
}

/// A float32 that rounds to narrower floats as the number does: where it is not exact it is the neighbour with the odd
/// last bit, so that a later rounding never sees a false tie (round to odd).
pub fn odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    if value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let bits = nearest.to_bits();
    let towards_zero = bits - u32::from(f64::from(nearest).abs() > value.abs());
    f32::from_bits(towards_zero | 1)
}

/// A float64 that rounds to narrower floats as the integer does; see [`odd_f32`].
pub fn odd_f64(value: i128) -> f64 {
    let nearest = value as f64;
    if nearest as i128 == value {
        return nearest;
    }
    let bits = nearest.to_bits();
    let towards_zero = bits - u64::from((nearest as i128).unsigned_abs() > value.unsigned_abs());
    f64::from_bits(towards_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn mini(name: &str) -> Minifloat {
        Minifloat::from_type_code(name.parse::<DType>().unwrap().code).unwrap()
    }

    #[test]
    fn small_floats_have_their_extremes_and_round_trip() {
        let cases = [
            ("float8_e4m3fn", 448.0, 0.001953125),
            ("float8_e5m2", 57344.0, 1.525_878_9e-5),
            ("float8_e4m3fnuz", 240.0, 0.0009765625),
            ("float6_e2m3fn", 7.5, 0.125),
            ("float6_e3m2fn", 28.0, 0.0625),
            ("float4_e2m1fn", 6.0, 0.5),
        ];
        for (name, largest, smallest) in cases {
            let format = mini(name);
            assert_eq!(format.decode(format.max_code()), largest, "{name}");
            assert_eq!(format.decode(1), smallest, "{name}");
            assert_eq!(format.decode(format.encode(1e9)), largest, "{name} saturates");
            for code in 0..format.sign_bit() * 2 {
                let value = format.decode(code);
                if value.is_finite() {
                    assert_eq!(format.encode(value), code, "{name} {code}");
                }
            }
        }
    }

    #[test]
    fn what_rounds_twice_rounds_as_if_once() {
        for (value, halved, brain) in [
            (1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0009765625, 1.0),
            (1.0 + 2f64.powi(-8) + 2f64.powi(-40), 1.00390625, 1.0078125),
            (1.0 + 2f64.powi(-11), 1.0, 1.0),
            (-1.0 - 2f64.powi(-8) - 2f64.powi(-50), -1.00390625, -1.0078125),
            (65519.999999, 65504.0, 65536.0),
            (1e300, f64::INFINITY, f64::INFINITY),
            (2f64.powi(-25) + 2f64.powi(-60), 2f64.powi(-24), 2f64.powi(-25)),
            (2f64.powi(-25), 0.0, 2f64.powi(-25)),
            (1e-300, 0.0, 0.0),
        ] {
            assert_eq!(half::f16::from_f32(odd_f32(value)).to_f64(), halved, "{value}");
            assert_eq!(half::bf16::from_f32(odd_f32(value)).to_f64(), brain, "{value}");
        }
        assert!(odd_f32(f64::NAN).is_nan());
        let large = (1i128 << 60) + (1 << 36) + 1;
        assert_eq!(odd_f64(large) as f32, (large as u64) as f32);
        assert_eq!(odd_f64(-large) as f32, (-large as i64) as f32);
        assert_eq!(odd_f64(i128::from(u64::MAX)) as f32, u64::MAX as f32);
        assert_eq!(odd_f64(12345), 12345.0);
    }
}
