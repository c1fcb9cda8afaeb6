//! What does a `cvt` of PTX compute? Values are decomposed exactly, rounded once, and encoded.

use tirx_dtype::{DType, Element, Format, Minifloat};

/// A conversion whose operands are in registers.
#[derive(Clone, Debug)]
pub struct Cvt {
    pub to: &'static Format,
    pub from: &'static Format,
    pub rounding: Rounding,
    /// To an integer.
    pub whole: bool,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub satfinite: bool,
}

/// How a value between two representable values is rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    Nearest,
    /// Ties away from zero.
    NearestAway,
    Zero,
    Down,
    Up,
}

impl Rounding {
    /// The rounding that a PTX modifier names; round-to-nearest-even where there is none.
    pub fn from_modifier(modifier: &str) -> Result<Rounding, String> {
        Ok(match modifier {
            "rz" | "rzi" => Rounding::Zero,
            "rm" | "rmi" => Rounding::Down,
            "rp" | "rpi" => Rounding::Up,
            "rna" => Rounding::NearestAway,
            "rs" => return Err("the simulator does not round by random bits".into()),
            _ => Rounding::Nearest,
        })
    }
}

/// A number: `magnitude * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Real {
    NaN,
    Infinite {
        negative: bool,
    },
    Finite {
        negative: bool,
        magnitude: u64,
        exponent: i32,
    },
}

impl Real {
    pub const ZERO: Real = Real::Finite {
        negative: false,
        magnitude: 0,
        exponent: 0,
    };
    pub const ONE: Real = Real::Finite {
        negative: false,
        magnitude: 1,
        exponent: 0,
    };

    pub fn negative(self) -> bool {
        matches!(
            self,
            Real::Infinite { negative: true } | Real::Finite { negative: true, .. }
        )
    }
}

/// A float format with an infinity and subnormal numbers, as IEEE 754 defines them: bits of precision (the hidden bit included), and the
/// least and greatest exponent of normal numbers.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    precision: i32,
    least: i32,
    greatest: i32,
}

const HALF: Float = Float {
    precision: 11,
    least: -14,
    greatest: 15,
};
const BFLOAT: Float = Float {
    precision: 8,
    least: -126,
    greatest: 127,
};
pub const SINGLE: Float = Float {
    precision: 24,
    ..BFLOAT
};
const TF32: Float = Float {
    precision: 11,
    ..BFLOAT
};
pub const DOUBLE: Float = Float {
    precision: 53,
    least: -1022,
    greatest: 1023,
};

fn float_of(element: Element) -> Option<Float> {
    Some(match element {
        Element::Tf32 => TF32,
        Element::Of(DType::FLOAT16) => HALF,
        Element::Of(DType::BFLOAT16) => BFLOAT,
        Element::Of(DType::FLOAT32) => SINGLE,
        Element::Of(DType::FLOAT64) => DOUBLE,
        _ => return None,
    })
}

/// Rounds `magnitude * 2^exponent` to a multiple of `2^quantum`; gives the factor of `2^quantum`. `negative` is the sign of the number,
/// which the rounding modes towards an infinity need.
fn round_to_quantum(magnitude: u64, exponent: i32, quantum: i32, rounding: Rounding, negative: bool) -> u128 {
    let dropped_bits = quantum.saturating_sub(exponent);
    if dropped_bits <= 0 {
        // Exact. Callers pass a distance above 63 only with a magnitude of 0.
        return (magnitude as u128) << (-dropped_bits).min(63);
    }
    // A magnitude has 64 bits: from 65 dropped bits on the results are the same.
    let dropped_bits = dropped_bits.min(127) as u32;
    let whole = magnitude as u128 >> dropped_bits;
    let rest = magnitude as u128 & ((1 << dropped_bits) - 1);
    let half = 1u128 << (dropped_bits - 1);
    let away_from_zero = match rounding {
        Rounding::Nearest => rest > half || rest == half && whole & 1 == 1,
        Rounding::NearestAway => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => rest != 0 && negative,
        Rounding::Up => rest != 0 && !negative,
    };
    whole + away_from_zero as u128
}

impl Float {
    fn infinity(self) -> u64 {
        ((self.greatest - self.least + 2) as u64) << (self.precision - 1)
    }

    /// The bit of the sign.
    fn sign(self) -> u64 {
        (self.infinity() + (1 << (self.precision - 1))).next_power_of_two()
    }

    pub fn decode(self, bits: u64) -> Real {
        let negative = bits & self.sign() != 0;
        let code = bits & (self.sign() - 1);
        if code >= self.infinity() {
            return if code == self.infinity() {
                Real::Infinite { negative }
            } else {
                Real::NaN
            };
        }
        let hidden = 1u64 << (self.precision - 1);
        let (field, fraction) = ((code / hidden) as i32, code % hidden);
        Real::Finite {
            negative,
            magnitude: fraction + if field > 0 { hidden } else { 0 },
            exponent: self.least - (self.precision - 1) + (field - 1).max(0),
        }
    }

    pub fn encode(self, value: Real, rounding: Rounding, satfinite: bool) -> u64 {
        let largest = self.infinity() - 1;
        let signed = |negative: bool, code: u64| code | if negative { self.sign() } else { 0 };
        match value {
            Real::NaN => self.sign() - 1,
            Real::Infinite { negative } if satfinite => signed(negative, largest),
            Real::Infinite { negative } => signed(negative, self.infinity()),
            Real::Finite {
                negative,
                magnitude: 0,
                ..
            } => signed(negative, 0),
            Real::Finite {
                negative,
                magnitude,
                exponent,
            } => {
                let top = exponent + 63 - magnitude.leading_zeros() as i32;
                let quantum = top.max(self.least) - (self.precision - 1);
                let steps = round_to_quantum(magnitude, exponent, quantum, rounding, negative);
                let field = (quantum + self.precision - 1 - self.least) as u128;
                // A carry of the steps moves on to the next exponent.
                let code = (field << (self.precision - 1)) + steps;
                if code < self.infinity() as u128 {
                    return signed(negative, code as u64);
                }
                let away = match rounding {
                    Rounding::Nearest | Rounding::NearestAway => true,
                    Rounding::Zero => false,
                    Rounding::Down => negative,
                    Rounding::Up => !negative,
                };
                let code = if away && !satfinite {
                    self.infinity()
                } else {
                    largest
                };
                signed(negative, code)
            }
        }
    }

    /// Zero of the same sign for a value below the normal ones.
    pub fn flush(self, value: Real) -> Real {
        match value {
            Real::Finite {
                negative,
                magnitude,
                exponent,
            } if magnitude == 0 || exponent + 63 - (magnitude.leading_zeros() as i32) < self.least => {
                Real::Finite {
                    negative,
                    magnitude: 0,
                    exponent: 0,
                }
            }
            other => other,
        }
    }
}

impl Cvt {
    /// The bits of the result, of the operands' bits.
    pub fn run(&self, operands: &[u64]) -> u64 {
        let pitch = self.to.pitch();
        let mut out = 0;
        for lane in 0..self.to.lanes {
            let bits = if operands.len() > 1 {
                operands[lane as usize]
            } else {
                let pitch = self.from.pitch();
                let at = (self.from.lanes - 1 - lane) * pitch;
                operands[0] >> at & (u64::MAX >> (64 - pitch))
            };
            let bits = self.convert(bits) & (u64::MAX >> (64 - pitch));
            out |= bits << ((self.to.lanes - 1 - lane) * pitch);
        }
        out
    }

    fn convert(&self, bits: u64) -> u64 {
        if let (Element::Of(from), Element::Of(to)) = (self.from.element, self.to.element)
            && from.is_integer()
            && to.is_integer()
            && !self.sat
        {
            return from.wrap(bits as i128) as u64;
        }
        let mut value = decode(self.from.element, bits);
        if self.ftz && self.from.name == "f32" {
            value = SINGLE.flush(value);
        }
        if self.relu && value.negative() {
            value = Real::ZERO;
        }
        let to_float = float_of(self.to.element);
        if let (Some(_), "f16" | "bf16" | "f32" | "f64") = (to_float, self.from.name)
            && self.from.name == self.to.name
        {
            value = self.whole(value);
        }
        if self.sat && to_float.is_some() {
            value = clamped(value);
        }
        match self.to.element {
            Element::Of(dtype) if dtype.is_integer() => self.integer(value, dtype),
            Element::Of(dtype) if to_float.is_none() => match Minifloat::from_type_code(dtype.code) {
                Some(_) if self.to.name == "ue8m0x2" => self.power(value),
                Some(mini) => mini.encode(single(value)).into(),
                None => 0,
            },
            _ => {
                let format = to_float.unwrap_or(SINGLE);
                if self.ftz && self.to.name == "f32" {
                    let rounded = format.decode(format.encode(value, self.rounding, self.satfinite));
                    value = format.flush(rounded);
                }
                let bits = format.encode(value, self.rounding, self.satfinite);
                // tf32 has the place of a float32.
                if self.to.element == Element::Tf32 {
                    let low = if value == Real::NaN { 0x1fff } else { 0 };
                    bits << 13 | low
                } else {
                    bits
                }
            }
        }
    }

    /// Rounded to an integer, where the conversion is within one float format.
    fn whole(&self, value: Real) -> Real {
        let Real::Finite {
            negative,
            magnitude,
            exponent,
        } = value
        else {
            return value;
        };
        if exponent >= 0 || !self.whole {
            return value;
        }
        Real::Finite {
            negative,
            magnitude: round_to_quantum(magnitude, exponent, 0, self.rounding, negative) as u64,
            exponent: 0,
        }
    }

    /// To an integer: the nearest one.
    fn integer(&self, value: Real, dtype: DType) -> u64 {
        let (least, greatest) = (dtype.min_int().unwrap_or(0), dtype.max_int().unwrap_or(0));
        let whole = match value {
            Real::NaN if self.from.name == "f64" || dtype.bits == 64 => return 1 << (dtype.bits - 1),
            Real::NaN => 0,
            Real::Infinite { negative: true } => least,
            Real::Infinite { negative: false } => greatest,
            Real::Finite {
                negative,
                magnitude,
                exponent,
            } => {
                let steps = if exponent >= 64 && magnitude != 0 {
                    i128::MAX
                } else {
                    round_to_quantum(magnitude, exponent, 0, self.rounding, negative).min(i128::MAX as u128)
                        as i128
                };
                if negative { -steps } else { steps }
            }
        };
        whole.clamp(least, greatest) as u64
    }

    /// The exponent of a power of two; the sign is not looked at.
    fn power(&self, value: Real) -> u64 {
        match value {
            Real::NaN => 0xff,
            Real::Infinite { .. } => 0xff - self.satfinite as u64,
            Real::Finite {
                magnitude, exponent, ..
            } => {
                if magnitude == 0 {
                    return 0;
                }
                let mut top = exponent + 63 - magnitude.leading_zeros() as i32;
                if self.rounding == Rounding::Up && !magnitude.is_power_of_two() {
                    top += 1;
                }
                (top + 127).clamp(0, 0xff - self.satfinite as i32) as u64
            }
        }
    }
}

/// To [0, 1], NaN to 0.
fn clamped(value: Real) -> Real {
    match value {
        Real::NaN => Real::ZERO,
        _ if value.negative() => Real::ZERO,
        Real::Infinite { .. } => Real::ONE,
        Real::Finite {
            magnitude, exponent, ..
        } if magnitude != 0 && exponent + 63 - (magnitude.leading_zeros() as i32) >= 0 => Real::ONE,
        _ => value,
    }
}

fn decode(element: Element, bits: u64) -> Real {
    if let Some(format) = float_of(element) {
        return format.decode(bits);
    }
    let Element::Of(dtype) = element else {
        return Real::NaN;
    };
    if let Some(mini) = Minifloat::from_type_code(dtype.code) {
        return SINGLE.decode(mini.decode(bits as u32).to_bits().into());
    }
    let value = dtype.wrap(bits.into());
    Real::Finite {
        negative: value < 0,
        magnitude: value.unsigned_abs() as u64,
        exponent: 0,
    }
}

/// A value that a float32 holds.
fn single(value: Real) -> f32 {
    f32::from_bits(SINGLE.encode(value, Rounding::Nearest, false) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    fn cvt(to: &str, from: &str, rounding: &str) -> Cvt {
        let format = |name| Format::named(name).unwrap();
        Cvt {
            to: format(to),
            from: format(from),
            rounding: Rounding::from_modifier(rounding).unwrap(),
            whole: rounding.ends_with('i'),
            ftz: false,
            sat: false,
            relu: false,
            satfinite: false,
        }
    }

    fn f(value: f32) -> u64 {
        value.to_bits().into()
    }

    #[test]
    fn floats_round_as_other_code_rounds_them() {
        let (half, bfloat, narrow) = (
            cvt("f16", "f32", "rn"),
            cvt("bf16", "f32", "rn"),
            cvt("f32", "f64", "rn"),
        );
        let mut bits = 1u64;
        for _ in 0..200_000 {
            bits = bits
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let x = f32::from_bits((bits >> 32) as u32);
            let d = f64::from_bits(bits);
            if !x.is_nan() {
                assert_eq!(half.run(&[f(x)]), f16::from_f32(x).to_bits().into(), "{x:e}");
                assert_eq!(bfloat.run(&[f(x)]), bf16::from_f32(x).to_bits().into(), "{x:e}");
                assert_eq!(cvt("f64", "f32", "").run(&[f(x)]), f64::from(x).to_bits());
            }
            if !d.is_nan() {
                assert_eq!(narrow.run(&[d.to_bits()]), f(d as f32), "{d:e}");
            }
            let i = bits as i64;
            assert_eq!(cvt("f32", "s64", "rn").run(&[bits]), f(i as f32), "{i}");
            assert_eq!(
                cvt("f64", "u64", "rn").run(&[bits]),
                (bits as f64).to_bits(),
                "{bits}"
            );
        }
    }

    #[test]
    fn roundings_differ_where_they_should() {
        for (rounding, values) in [
            ("rni", [2, -2, 4, -1]),
            ("rzi", [2, -2, 3, -1]),
            ("rmi", [2, -3, 3, -2]),
            ("rpi", [3, -2, 4, -1]),
        ] {
            let to_int = cvt("s32", "f32", rounding);
            let found = [2.5f32, -2.5, 3.5, -1.25].map(|x| to_int.run(&[f(x)]) as i32);
            assert_eq!(found, values, "{rounding}");
        }
        let third = 1.0f64 / 3.0;
        let down = f32::from_bits(cvt("f32", "f64", "rm").run(&[third.to_bits()]) as u32);
        let up = f32::from_bits(cvt("f32", "f64", "rp").run(&[third.to_bits()]) as u32);
        assert!(f64::from(down) < third && third < f64::from(up));
        assert_eq!(cvt("f16", "f32", "rz").run(&[f(1e9)]), 0x7bff);
        assert_eq!(cvt("tf32", "f32", "rna").run(&[0x3f80_1000]), 0x3f80_2000);
        assert_eq!(cvt("tf32", "f32", "rn").run(&[0x3f80_1000]), 0x3f80_0000);
    }

    #[test]
    fn integers_and_packs() {
        assert_eq!(cvt("u8", "f32", "rni").run(&[f(-3.0)]), 0);
        assert_eq!(cvt("s8", "f32", "rni").run(&[f(-300.0)]), 0x80);
        assert_eq!(cvt("s64", "f32", "rzi").run(&[f(f32::NAN)]), 1 << 63);
        assert_eq!(cvt("s32", "f32", "rzi").run(&[f(f32::NAN)]), 0);
        assert_eq!(cvt("u16", "s8", "").run(&[0xff]), 0xffff);
        assert_eq!(cvt("f32", "f32", "rmi").run(&[f(-0.0)]), f(-0.0));
        assert_eq!(cvt("f32", "f32", "rpi").run(&[f(0.25)]), f(1.0));
        let clamp = Cvt {
            sat: true,
            ..cvt("u8", "s32", "")
        };
        assert_eq!(clamp.run(&[(-5i32) as u32 as u64]), 0);
        assert_eq!(clamp.run(&[300]), 255);
        assert_eq!(cvt("f16x2", "f32", "rn").run(&[f(1.0), f(-2.0)]), 0x3c00_c000);
        let pack = Cvt {
            satfinite: true,
            ..cvt("e4m3x2", "f32", "rn")
        };
        assert_eq!(pack.run(&[f(1.0), f(1000.0)]), 0x387e);
        assert_eq!(cvt("f16x2", "e4m3x2", "rn").run(&[0x387e]), 0x3c00_5f00);
        let power = cvt("ue8m0x2", "f32", "rp");
        assert_eq!(power.run(&[f(3.0), f(-4.0)]), 129 << 8 | 129);
        assert_eq!(cvt("bf16x2", "ue8m0x2", "rn").run(&[129 << 8 | 127]), 0x4080_3f80);
    }
}
