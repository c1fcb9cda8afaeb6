//! What do `add`, `sub`, `mul`, `fma`, `div` and `sqrt` of PTX compute with the modifiers `.rz`, `.rm`, `.rp`, `.ftz` and `.sat`?
//! Sums and products are formed exactly, as an integer times a power of two, and rounded once; so are quotients and roots, with a bit
//! that says whether anything is left.

use crate::cvt::{DOUBLE, Float, Real, Rounding, SINGLE};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
}

/// An operation of float32 or float64 with its modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Rounded {
    pub operation: Operation,
    /// Of float64.
    pub double: bool,
    pub rounding: Rounding,
    /// Subnormal operands and results are zeros of their signs.
    pub ftz: bool,
    /// Results are clamped to `[0, 1]`, NaN to 0.
    pub sat: bool,
}

/// `±magnitude * 2^exponent`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

impl Term {
    fn from_real(value: Real) -> Option<Term> {
        let Real::Finite {
            negative,
            magnitude,
            exponent,
        } = value
        else {
            return None;
        };
        Some(Term {
            negative,
            magnitude: magnitude.into(),
            exponent,
        })
    }

    fn times(self, other: Term) -> Term {
        Term {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The quotient; `other` is not zero.
    fn over(self, other: Term) -> Term {
        let raise = self.magnitude.leading_zeros().saturating_sub(2);
        let dividend = if self.magnitude == 0 {
            0
        } else {
            self.magnitude << raise
        };
        let left = dividend % other.magnitude != 0;
        Term {
            negative: self.negative != other.negative,
            magnitude: (dividend / other.magnitude) << 1 | u128::from(left),
            exponent: self.exponent - raise as i32 - other.exponent - 1,
        }
    }

    /// The root of a number that is not negative, or zero of either sign.
    fn root(self) -> Term {
        if self.magnitude == 0 {
            return self;
        }
        // Half of the exponent is a whole number.
        let room = self.magnitude.leading_zeros() - 2;
        let raise = room - (self.exponent - room as i32).rem_euclid(2) as u32;
        let square = self.magnitude << raise;
        let root = square.isqrt();
        Term {
            magnitude: root << 1 | u128::from(root * root != square),
            exponent: (self.exponent - raise as i32) / 2 - 1,
            ..self
        }
    }

    /// The exponent of the highest bit.
    fn top(self) -> i32 {
        self.exponent + 127 - self.magnitude.leading_zeros() as i32
    }

    /// The sum. Bits of the smaller term below the last of 126 are collected in that last bit (a sticky bit): the
    /// result lies on the same side of every representable value and of every midpoint as the exact sum. `exact_zero`
    /// is the sign of `x - x`.
    fn plus(self, other: Term, exact_zero: bool) -> Term {
        if self.magnitude == 0 && other.magnitude == 0 && self.negative == other.negative {
            return self;
        }
        let zero = Term {
            negative: exact_zero,
            magnitude: 0,
            exponent: 0,
        };
        match (self.magnitude, other.magnitude) {
            (0, 0) => return zero,
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (mut big, mut small) = if self.top() >= other.top() {
            (self, other)
        } else {
            (other, self)
        };
        // Products have up to 106 bits: there is room.
        let raise = big.magnitude.leading_zeros() - 2;
        big.magnitude <<= raise;
        big.exponent -= raise as i32;
        small.magnitude = match big.exponent - small.exponent {
            lower if lower > 0 => gathered(small.magnitude, lower as u32),
            higher => small.magnitude << -higher,
        };
        let (negative, magnitude) = if big.negative == small.negative {
            (big.negative, big.magnitude + small.magnitude)
        } else if big.magnitude >= small.magnitude {
            (big.negative, big.magnitude - small.magnitude)
        } else {
            (small.negative, small.magnitude - big.magnitude)
        };
        if magnitude == 0 {
            return zero;
        }
        Term {
            negative,
            magnitude,
            exponent: big.exponent,
        }
    }

    fn real(self) -> Real {
        let bits = 128 - self.magnitude.leading_zeros();
        let lower = bits.saturating_sub(62);
        Real::Finite {
            negative: self.negative,
            magnitude: gathered(self.magnitude, lower) as u64,
            exponent: self.exponent + lower as i32,
        }
    }
}

/// A magnitude without its lowest bits; its last remaining bit is set if one of them was (a sticky bit).
fn gathered(magnitude: u128, lower: u32) -> u128 {
    if lower >= 128 {
        return (magnitude != 0) as u128;
    }
    let lost = magnitude & ((1 << lower) - 1);
    magnitude >> lower | (lost != 0) as u128
}

impl Rounded {
    /// The bits of the result, of the operands' bits.
    pub fn run(&self, operands: &[u64]) -> u64 {
        let format: Float = if self.double { DOUBLE } else { SINGLE };
        let read = |at: usize| {
            let value = format.decode(operands.get(at).copied().unwrap_or(0));
            if self.ftz { format.flush(value) } else { value }
        };
        let a = read(0);
        let b = match self.operation {
            Operation::Sqrt => Real::ZERO,
            _ => read(1),
        };
        let third = (self.operation == Operation::Fma).then(|| read(2));
        let finite = Term::from_real(a)
            .zip(Term::from_real(b))
            .zip(third.map_or(Some(None), |c| Term::from_real(c).map(Some)))
            .filter(|((a, b), _)| match self.operation {
                Operation::Div => b.magnitude != 0,
                Operation::Sqrt => a.magnitude == 0 || !a.negative,
                _ => true,
            });
        let exact_zero = self.rounding == Rounding::Down;
        let mut result = match finite {
            Some(((a, b), c)) => {
                let exact = match (self.operation, c) {
                    (Operation::Add, _) => a.plus(b, exact_zero),
                    (Operation::Sub, _) => a.plus(
                        Term {
                            negative: !b.negative,
                            ..b
                        },
                        exact_zero,
                    ),
                    (Operation::Div, _) => a.over(b),
                    (Operation::Sqrt, _) => a.root(),
                    (_, Some(c)) => a.times(b).plus(c, exact_zero),
                    (_, None) => a.times(b),
                };
                format.decode(format.encode(exact.real(), self.rounding, false))
            }
            None => self.of_infinities(a, b, third),
        };
        if self.ftz {
            result = format.flush(result);
        }
        if self.sat {
            result = match result {
                Real::NaN => Real::ZERO,
                below if below.negative() => Real::ZERO,
                Real::Infinite { .. } => Real::ONE,
                finite => {
                    let bits = format.encode(finite, self.rounding, false);
                    let one = format.encode(Real::ONE, self.rounding, false);
                    format.decode(bits.min(one))
                }
            };
        }
        format.encode(result, self.rounding, false)
    }

    /// Where an operand is infinite or NaN, or there is no finite result, nothing is rounded.
    fn of_infinities(&self, a: Real, b: Real, c: Option<Real>) -> Real {
        // Zeros, infinities and signs are all that matters.
        let plain = |value: Real| match value {
            Real::NaN => f64::NAN,
            Real::Infinite { negative } => f64::INFINITY.copysign(if negative { -1.0 } else { 1.0 }),
            Real::Finite {
                negative, magnitude, ..
            } => (magnitude.min(1) as f64).copysign(if negative { -1.0 } else { 1.0 }),
        };
        let (a, b) = (plain(a), plain(b));
        let value = match (self.operation, c) {
            (Operation::Add, _) => a + b,
            (Operation::Sub, _) => a - b,
            (Operation::Div, _) => a / b,
            (Operation::Sqrt, _) => a.sqrt(),
            (_, Some(c)) => a * b + plain(c),
            (_, None) => a * b,
        };
        DOUBLE.decode(value.to_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Operation; 6] = [
        Operation::Add,
        Operation::Sub,
        Operation::Mul,
        Operation::Fma,
        Operation::Div,
        Operation::Sqrt,
    ];

    fn rounded(operation: Operation, double: bool, rounding: Rounding) -> Rounded {
        Rounded {
            operation,
            double,
            rounding,
            ftz: false,
            sat: false,
        }
    }

    fn single(operation: Operation, rounding: Rounding, operands: [f32; 3]) -> f32 {
        let bits = operands.map(|x| x.to_bits().into());
        f32::from_bits(rounded(operation, false, rounding).run(&bits) as u32)
    }

    fn double(operation: Operation, rounding: Rounding, operands: [f64; 3]) -> f64 {
        f64::from_bits(rounded(operation, true, rounding).run(&operands.map(f64::to_bits)))
    }

    fn native<T>(operation: Operation, [a, b, c]: [T; 3], fma: fn(T, T, T) -> T, sqrt: fn(T) -> T) -> T
    where
        T: std::ops::Add<Output = T>
            + std::ops::Sub<Output = T>
            + std::ops::Mul<Output = T>
            + std::ops::Div<Output = T>,
    {
        match operation {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::Mul => a * b,
            Operation::Fma => fma(a, b, c),
            Operation::Div => a / b,
            Operation::Sqrt => sqrt(a),
        }
    }

    /// Bits of all exponents, with many that are near each other.
    fn numbers(count: usize) -> Vec<u64> {
        let mut state = 1u64;
        let mut out = Vec::new();
        for i in 0..count {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let bits = state ^ state >> 29;
            out.push(match i % 4 {
                // Exponents around one.
                0 | 1 => bits & 0x800f_ffff_ffff_ffff | (0x3f0 + (bits >> 52 & 0x1f)) << 52,
                2 => bits & 0xfff0_0000_0000_00ff,
                _ => bits,
            });
        }
        out
    }

    #[test]
    fn to_the_nearest_it_is_what_the_processor_computes() {
        let all = numbers(60_000);
        for three in all.chunks_exact(3) {
            let d = [0, 1, 2].map(|i| f64::from_bits(three[i]));
            let narrow = |bits: u64| {
                let f = f64::from_bits(bits) as f32;
                if f.is_finite() && f != 0.0 {
                    f
                } else {
                    f32::from_bits(bits as u32)
                }
            };
            let s = [0, 1, 2].map(|i| narrow(three[i]));
            for operation in ALL {
                let (found, expected) = (
                    double(operation, Rounding::Nearest, d),
                    native(operation, d, f64::mul_add, f64::sqrt),
                );
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{operation:?} of {d:?}: {found:e}, not {expected:e}"
                );
                let (found, expected) = (
                    single(operation, Rounding::Nearest, s),
                    native(operation, s, f32::mul_add, f32::sqrt),
                );
                assert!(
                    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
                    "{operation:?} of {s:?}: {found:e}, not {expected:e}"
                );
            }
        }
    }

    /// Down and up are neighbours around the exact result, or both the exact result.
    #[test]
    fn directed_roundings_enclose_the_exact_result() {
        let all = numbers(30_000);
        for three in all.chunks_exact(3) {
            let d = [0, 1, 2].map(|i| f64::from_bits(three[i]));
            for operation in ALL {
                let [nearest, down, up, zero] =
                    [Rounding::Nearest, Rounding::Down, Rounding::Up, Rounding::Zero]
                        .map(|rounding| double(operation, rounding, d));
                if nearest.is_nan() {
                    continue;
                }
                assert!(down <= nearest && nearest <= up, "{operation:?} of {d:?}");
                assert!(
                    down == up || down.next_up() == up,
                    "{operation:?} of {d:?}: {down:e} and {up:e}"
                );
                assert_eq!(
                    zero,
                    if nearest.is_sign_negative() { up } else { down },
                    "{operation:?} of {d:?}"
                );
            }
        }
    }

    #[test]
    fn known_results() {
        use Rounding::{Down, Up, Zero};
        let eps = f32::EPSILON;
        assert_eq!(single(Operation::Add, Zero, [1.0, eps * 0.75, 0.0]), 1.0);
        assert_eq!(
            single(Operation::Add, Up, [1.0, f32::MIN_POSITIVE, 0.0]),
            1.0 + eps
        );
        assert_eq!(
            single(Operation::Sub, Down, [1.0, f32::MIN_POSITIVE, 0.0]),
            1.0 - eps / 2.0
        );
        assert_eq!(single(Operation::Mul, Zero, [f32::MAX, 2.0, 0.0]), f32::MAX);
        assert_eq!(
            single(Operation::Mul, Down, [f32::MAX, -2.0, 0.0]),
            f32::NEG_INFINITY
        );
        assert_eq!(single(Operation::Mul, Up, [1e-40, 1e-40, 0.0]), f32::from_bits(1));
        assert_eq!(
            single(Operation::Fma, Zero, [1.0 + eps, 1.0 + eps, -1.0]),
            2.0 * eps + eps * eps
        );
        assert!(single(Operation::Sub, Down, [1.5, 1.5, 0.0]).is_sign_negative());
        assert!(single(Operation::Sub, Up, [1.5, 1.5, 0.0]).is_sign_positive());
        let flushed = Rounded {
            ftz: true,
            ..rounded(Operation::Add, false, Rounding::Nearest)
        };
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(flushed.run(&[bits(1e-40), bits(-2e-40)]), 0);
        let clamped = Rounded {
            sat: true,
            ..rounded(Operation::Add, false, Rounding::Zero)
        };
        assert_eq!(clamped.run(&[bits(1.5), bits(1.0)]), bits(1.0));
        assert_eq!(clamped.run(&[bits(0.25), bits(0.5)]), bits(0.75));
        assert_eq!(clamped.run(&[bits(f32::NAN), bits(1.0)]), 0);
    }
}
