//! What each arithmetic instruction computes, for a scalar and for 32 lanes, from one table.
//!
//! The table rows are closures over raw bits; the vector forms are plain loops over arrays that the compiler
//! turns into SIMD code.

use crate::numeric::erf;

/// A register's lanes.
pub const LANES: usize = 32;
/// All lanes.
pub const FULL: u32 = u32::MAX;

/// Two operands. `S`/`U` are signed and unsigned, `F` float32 (or float64 in the 64-bit forms); `R` takes the
/// operands the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Bin {
    Add, Sub, RSub, Mul, DivS, DivU, ModS, ModU, FloorDivS, FloorModS, MinS, MinU, MaxS, MaxU,
    And, Or, Xor, Shl, ShrS, ShrU,
    Eq, Ne, LtS, LtU, LeS, LeU, GtS, GtU, GeS, GeU,
    AddF, SubF, RSubF, MulF, DivF, RDivF, MinF, MaxF, EqF, NeF, LtF, LeF, GtF, GeF,
    FloorDivF, FloorModF, Fmod, Pow, Atan2, Hypot, Copysign, Nextafter, Ldexp,
    AddChecked, SubChecked, RSubChecked, MulChecked, ShlChecked, ShrSChecked, ShrUChecked,
}

impl Bin {
    pub fn divides_integers(self) -> bool {
        use Bin::*;
        matches!(self, DivS | DivU | ModS | ModU | FloorDivS | FloorModS)
    }

    /// Whether the operation is undefined for some operands, or overflow is to be reported.
    pub fn may_trap(self) -> bool {
        self.divides_integers() || self.checks_overflow() || self.checks_shift()
    }

    fn checks_overflow(self) -> bool {
        use Bin::*;
        matches!(self, AddChecked | SubChecked | RSubChecked | MulChecked)
    }

    /// Whether it is a shift whose amount is checked.
    pub fn checks_shift(self) -> bool {
        use Bin::*;
        matches!(self, ShlChecked | ShrSChecked | ShrUChecked)
    }

    /// The same on signed integers, with overflow as an error; a shift with its amount checked.
    pub fn checked(self) -> Bin {
        match self {
            Bin::Add => Bin::AddChecked,
            Bin::Sub => Bin::SubChecked,
            Bin::RSub => Bin::RSubChecked,
            Bin::Mul => Bin::MulChecked,
            Bin::Shl => Bin::ShlChecked,
            Bin::ShrS => Bin::ShrSChecked,
            Bin::ShrU => Bin::ShrUChecked,
            other => other,
        }
    }

    /// Whether the result is outside of `int32`, or of `int64` where the operands are `wide`; of a shift, whether its amount is
    /// negative or not less than the width.
    pub fn overflows(self, a: i64, b: i64, wide: bool) -> bool {
        let result = match self {
            Bin::AddChecked => a.checked_add(b),
            Bin::SubChecked => a.checked_sub(b),
            Bin::RSubChecked => b.checked_sub(a),
            Bin::MulChecked => a.checked_mul(b),
            shift if shift.checks_shift() => return !(0..if wide { 64 } else { 32 }).contains(&b),
            _ => return false,
        };
        result.is_none_or(|r| !wide && i32::try_from(r).is_err())
    }

    /// The operator with operands swapped, where there is one.
    pub fn swapped(self) -> Option<Bin> {
        use Bin::*;
        Some(match self {
            Add | Mul | MinS | MinU | MaxS | MaxU | And | Or | Xor | Eq | Ne => self,
            AddChecked | MulChecked => self,
            SubChecked => RSubChecked,
            AddF | MulF | MinF | MaxF | EqF | NeF | Hypot => self,
            Sub => RSub,
            SubF => RSubF,
            DivF => RDivF,
            LtS => GtS,
            LtU => GtU,
            LeS => GeS,
            LeU => GeU,
            GtS => LtS,
            GtU => LtU,
            GeS => LeS,
            GeU => LeU,
            LtF => GtF,
            LeF => GeF,
            GtF => LtF,
            GeF => LeF,
            _ => return None,
        })
    }
}

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Un {
    Not, BitNot, Popcount, Clz, Ffs,
    Exp, Exp2, Exp10, Erf, Tanh, Sigmoid, Log, Log2, Log10, Log1p, Tan, Cos, Cosh, Sin, Sinh, Asin, Acos, Atan,
    Acosh, Asinh, Atanh, Sqrt, Rsqrt, Floor, Ceil, Trunc, Nearbyint, Abs, AbsS,
}

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
fn g(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// CUDA's `fminf`: a NaN operand gives way to the other, -0 is less than +0.
macro_rules! minimum {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        let less = a < b || (a == b && a.is_sign_negative()) || b.is_nan();
        if less { a } else { b }
    }};
}
macro_rules! maximum {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        let more = a > b || (a == b && !a.is_sign_negative()) || b.is_nan();
        if more { a } else { b }
    }};
}

fn nextafter32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a == b {
        b
    } else if a < b {
        a.next_up()
    } else {
        a.next_down()
    }
}

fn nextafter64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == b {
        b
    } else if a < b {
        a.next_up()
    } else {
        a.next_down()
    }
}

/// `x * 2^n`, rounded once.
fn ldexp(x: f64, n: i64) -> f64 {
    // Two steps keep each factor in range; a float32's result is exact in float64 before its own rounding.
    let n = n.clamp(-2200, 2200) as i32;
    let (a, b) = (n / 2, n - n / 2);
    x * (a as f64).exp2() * (b as f64).exp2()
}

#[inline(always)]
fn floor_div32(a: i32, b: i32) -> i32 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) {
        q - 1
    } else {
        q
    }
}

#[inline(always)]
fn floor_mod32(a: i32, b: i32) -> i32 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

#[inline(always)]
fn floor_div64(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) {
        q - 1
    } else {
        q
    }
}

#[inline(always)]
fn floor_mod64(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

/// Divisors of inactive lanes may be zero; their result is never looked at.
#[inline(always)]
fn nonzero32(b: u32) -> u32 {
    if b == 0 { 1 } else { b }
}

#[inline(always)]
fn nonzero64(b: u64) -> u64 {
    if b == 0 { 1 } else { b }
}

// In each table `$run` lists the operations that the compiler turns into vector instructions, `$rare` the others: those
// are computed lane by lane through the scalar form, so that there is one copy of each.

macro_rules! bin32 {
    ($op:expr, $run:ident, $rare:ident) => {{
        use Bin::*;
        match $op {
            Add | AddChecked => $run!(|a: u32, b: u32| a.wrapping_add(b)),
            Sub | SubChecked => $run!(|a: u32, b: u32| a.wrapping_sub(b)),
            RSub | RSubChecked => $run!(|a: u32, b: u32| b.wrapping_sub(a)),
            Mul | MulChecked => $run!(|a: u32, b: u32| a.wrapping_mul(b)),
            DivS => $rare!(|a: u32, b: u32| (a as i32).wrapping_div(nonzero32(b) as i32) as u32),
            DivU => $rare!(|a: u32, b: u32| a / nonzero32(b)),
            ModS => $rare!(|a: u32, b: u32| (a as i32).wrapping_rem(nonzero32(b) as i32) as u32),
            ModU => $rare!(|a: u32, b: u32| a % nonzero32(b)),
            FloorDivS => $rare!(|a: u32, b: u32| floor_div32(a as i32, nonzero32(b) as i32) as u32),
            FloorModS => $rare!(|a: u32, b: u32| floor_mod32(a as i32, nonzero32(b) as i32) as u32),
            MinS => $run!(|a: u32, b: u32| (a as i32).min(b as i32) as u32),
            MinU => $run!(|a: u32, b: u32| a.min(b)),
            MaxS => $run!(|a: u32, b: u32| (a as i32).max(b as i32) as u32),
            MaxU => $run!(|a: u32, b: u32| a.max(b)),
            And => $run!(|a: u32, b: u32| a & b),
            Or => $run!(|a: u32, b: u32| a | b),
            Xor => $run!(|a: u32, b: u32| a ^ b),
            Shl | ShlChecked => $run!(|a: u32, b: u32| if b < 32 { a << (b & 31) } else { 0 }),
            ShrS | ShrSChecked => $run!(|a: u32, b: u32| ((a as i32) >> b.min(31)) as u32),
            ShrU | ShrUChecked => $run!(|a: u32, b: u32| if b < 32 { a >> (b & 31) } else { 0 }),
            Eq => $run!(|a: u32, b: u32| (a == b) as u32),
            Ne => $run!(|a: u32, b: u32| (a != b) as u32),
            LtS => $run!(|a: u32, b: u32| ((a as i32) < (b as i32)) as u32),
            LtU => $run!(|a: u32, b: u32| (a < b) as u32),
            LeS => $run!(|a: u32, b: u32| ((a as i32) <= (b as i32)) as u32),
            LeU => $run!(|a: u32, b: u32| (a <= b) as u32),
            GtS => $run!(|a: u32, b: u32| ((a as i32) > (b as i32)) as u32),
            GtU => $run!(|a: u32, b: u32| (a > b) as u32),
            GeS => $run!(|a: u32, b: u32| ((a as i32) >= (b as i32)) as u32),
            GeU => $run!(|a: u32, b: u32| (a >= b) as u32),
            AddF => $run!(|a: u32, b: u32| (f(a) + f(b)).to_bits()),
            SubF => $run!(|a: u32, b: u32| (f(a) - f(b)).to_bits()),
            RSubF => $run!(|a: u32, b: u32| (f(b) - f(a)).to_bits()),
            MulF => $run!(|a: u32, b: u32| (f(a) * f(b)).to_bits()),
            DivF => $run!(|a: u32, b: u32| (f(a) / f(b)).to_bits()),
            RDivF => $run!(|a: u32, b: u32| (f(b) / f(a)).to_bits()),
            MinF => $run!(|a: u32, b: u32| minimum!(f(a), f(b)).to_bits()),
            MaxF => $run!(|a: u32, b: u32| maximum!(f(a), f(b)).to_bits()),
            EqF => $run!(|a: u32, b: u32| (f(a) == f(b)) as u32),
            NeF => $run!(|a: u32, b: u32| (f(a) != f(b)) as u32),
            LtF => $run!(|a: u32, b: u32| (f(a) < f(b)) as u32),
            LeF => $run!(|a: u32, b: u32| (f(a) <= f(b)) as u32),
            GtF => $run!(|a: u32, b: u32| (f(a) > f(b)) as u32),
            GeF => $run!(|a: u32, b: u32| (f(a) >= f(b)) as u32),
            FloorDivF => $rare!(|a: u32, b: u32| (f(a) / f(b)).floor().to_bits()),
            FloorModF => $rare!(|a: u32, b: u32| (f(a) - (f(a) / f(b)).floor() * f(b)).to_bits()),
            Fmod => $rare!(|a: u32, b: u32| (f(a) % f(b)).to_bits()),
            Pow => $rare!(|a: u32, b: u32| libm::powf(f(a), f(b)).to_bits()),
            Atan2 => $rare!(|a: u32, b: u32| libm::atan2f(f(a), f(b)).to_bits()),
            Hypot => $rare!(|a: u32, b: u32| libm::hypotf(f(a), f(b)).to_bits()),
            Copysign => $run!(|a: u32, b: u32| f(a).copysign(f(b)).to_bits()),
            Nextafter => $rare!(|a: u32, b: u32| nextafter32(f(a), f(b)).to_bits()),
            Ldexp => $rare!(|a: u32, b: u32| (ldexp(f(a) as f64, b as i32 as i64) as f32).to_bits()),
        }
    }};
}

/// Comparisons appear in `cmp64`; here they do nothing useful.
macro_rules! bin64 {
    ($op:expr, $run:ident, $rare:ident) => {{
        use Bin::*;
        match $op {
            Add | AddChecked => $run!(|a: u64, b: u64| a.wrapping_add(b)),
            Sub | SubChecked => $run!(|a: u64, b: u64| a.wrapping_sub(b)),
            RSub | RSubChecked => $run!(|a: u64, b: u64| b.wrapping_sub(a)),
            Mul | MulChecked => $run!(|a: u64, b: u64| a.wrapping_mul(b)),
            DivS => $rare!(|a: u64, b: u64| (a as i64).wrapping_div(nonzero64(b) as i64) as u64),
            DivU => $rare!(|a: u64, b: u64| a / nonzero64(b)),
            ModS => $rare!(|a: u64, b: u64| (a as i64).wrapping_rem(nonzero64(b) as i64) as u64),
            ModU => $rare!(|a: u64, b: u64| a % nonzero64(b)),
            FloorDivS => $rare!(|a: u64, b: u64| floor_div64(a as i64, nonzero64(b) as i64) as u64),
            FloorModS => $rare!(|a: u64, b: u64| floor_mod64(a as i64, nonzero64(b) as i64) as u64),
            MinS => $run!(|a: u64, b: u64| (a as i64).min(b as i64) as u64),
            MinU => $run!(|a: u64, b: u64| a.min(b)),
            MaxS => $run!(|a: u64, b: u64| (a as i64).max(b as i64) as u64),
            MaxU => $run!(|a: u64, b: u64| a.max(b)),
            And => $run!(|a: u64, b: u64| a & b),
            Or => $run!(|a: u64, b: u64| a | b),
            Xor => $run!(|a: u64, b: u64| a ^ b),
            Shl | ShlChecked => $run!(|a: u64, b: u64| if b < 64 { a << (b & 63) } else { 0 }),
            ShrS | ShrSChecked => $run!(|a: u64, b: u64| ((a as i64) >> b.min(63)) as u64),
            ShrU | ShrUChecked => $run!(|a: u64, b: u64| if b < 64 { a >> (b & 63) } else { 0 }),
            AddF => $run!(|a: u64, b: u64| (g(a) + g(b)).to_bits()),
            SubF => $run!(|a: u64, b: u64| (g(a) - g(b)).to_bits()),
            RSubF => $run!(|a: u64, b: u64| (g(b) - g(a)).to_bits()),
            MulF => $run!(|a: u64, b: u64| (g(a) * g(b)).to_bits()),
            DivF => $run!(|a: u64, b: u64| (g(a) / g(b)).to_bits()),
            RDivF => $run!(|a: u64, b: u64| (g(b) / g(a)).to_bits()),
            MinF => $run!(|a: u64, b: u64| minimum!(g(a), g(b)).to_bits()),
            MaxF => $run!(|a: u64, b: u64| maximum!(g(a), g(b)).to_bits()),
            FloorDivF => $rare!(|a: u64, b: u64| (g(a) / g(b)).floor().to_bits()),
            FloorModF => $rare!(|a: u64, b: u64| (g(a) - (g(a) / g(b)).floor() * g(b)).to_bits()),
            Fmod => $rare!(|a: u64, b: u64| (g(a) % g(b)).to_bits()),
            Pow => $rare!(|a: u64, b: u64| libm::pow(g(a), g(b)).to_bits()),
            Atan2 => $rare!(|a: u64, b: u64| libm::atan2(g(a), g(b)).to_bits()),
            Hypot => $rare!(|a: u64, b: u64| libm::hypot(g(a), g(b)).to_bits()),
            Copysign => $run!(|a: u64, b: u64| g(a).copysign(g(b)).to_bits()),
            Nextafter => $rare!(|a: u64, b: u64| nextafter64(g(a), g(b)).to_bits()),
            Ldexp => $rare!(|a: u64, b: u64| ldexp(g(a), b as i64).to_bits()),
            Eq | Ne | LtS | LtU | LeS | LeU | GtS | GtU | GeS | GeU | EqF | NeF | LtF | LeF | GtF | GeF => {
                $run!(|a: u64, _b: u64| a)
            }
        }
    }};
}

macro_rules! cmp64 {
    ($op:expr, $run:ident) => {{
        use Bin::*;
        match $op {
            Eq => $run!(|a: u64, b: u64| (a == b) as u32),
            LtS => $run!(|a: u64, b: u64| ((a as i64) < (b as i64)) as u32),
            LtU => $run!(|a: u64, b: u64| (a < b) as u32),
            LeS => $run!(|a: u64, b: u64| ((a as i64) <= (b as i64)) as u32),
            LeU => $run!(|a: u64, b: u64| (a <= b) as u32),
            GtS => $run!(|a: u64, b: u64| ((a as i64) > (b as i64)) as u32),
            GtU => $run!(|a: u64, b: u64| (a > b) as u32),
            GeS => $run!(|a: u64, b: u64| ((a as i64) >= (b as i64)) as u32),
            GeU => $run!(|a: u64, b: u64| (a >= b) as u32),
            EqF => $run!(|a: u64, b: u64| (g(a) == g(b)) as u32),
            NeF => $run!(|a: u64, b: u64| (g(a) != g(b)) as u32),
            LtF => $run!(|a: u64, b: u64| (g(a) < g(b)) as u32),
            LeF => $run!(|a: u64, b: u64| (g(a) <= g(b)) as u32),
            GtF => $run!(|a: u64, b: u64| (g(a) > g(b)) as u32),
            GeF => $run!(|a: u64, b: u64| (g(a) >= g(b)) as u32),
            _ => $run!(|a: u64, b: u64| (a != b) as u32),
        }
    }};
}

macro_rules! un32 {
    ($op:expr, $run:ident, $rare:ident) => {{
        use Un::*;
        match $op {
            Not => $run!(|a: u32| (a == 0) as u32),
            BitNot => $run!(|a: u32| !a),
            Popcount => $rare!(|a: u32| a.count_ones()),
            Clz => $rare!(|a: u32| a.leading_zeros()),
            Ffs => $rare!(|a: u32| if a == 0 { 0 } else { a.trailing_zeros() + 1 }),
            Exp => $rare!(|a: u32| libm::expf(f(a)).to_bits()),
            Exp2 => $rare!(|a: u32| libm::exp2f(f(a)).to_bits()),
            Exp10 => $rare!(|a: u32| (libm::exp10(f64::from(f(a))) as f32).to_bits()),
            Erf => $rare!(|a: u32| (erf(f(a) as f64) as f32).to_bits()),
            Tanh => $rare!(|a: u32| libm::tanhf(f(a)).to_bits()),
            Sigmoid => $rare!(|a: u32| (1.0 / (1.0 + libm::expf(-f(a)))).to_bits()),
            Log => $rare!(|a: u32| libm::logf(f(a)).to_bits()),
            Log2 => $rare!(|a: u32| libm::log2f(f(a)).to_bits()),
            Log10 => $rare!(|a: u32| libm::log10f(f(a)).to_bits()),
            Log1p => $rare!(|a: u32| libm::log1pf(f(a)).to_bits()),
            Tan => $rare!(|a: u32| libm::tanf(f(a)).to_bits()),
            Cos => $rare!(|a: u32| libm::cosf(f(a)).to_bits()),
            Cosh => $rare!(|a: u32| libm::coshf(f(a)).to_bits()),
            Sin => $rare!(|a: u32| libm::sinf(f(a)).to_bits()),
            Sinh => $rare!(|a: u32| libm::sinhf(f(a)).to_bits()),
            Asin => $rare!(|a: u32| libm::asinf(f(a)).to_bits()),
            Acos => $rare!(|a: u32| libm::acosf(f(a)).to_bits()),
            Atan => $rare!(|a: u32| libm::atanf(f(a)).to_bits()),
            Acosh => $rare!(|a: u32| libm::acoshf(f(a)).to_bits()),
            Asinh => $rare!(|a: u32| libm::asinhf(f(a)).to_bits()),
            Atanh => $rare!(|a: u32| libm::atanhf(f(a)).to_bits()),
            Sqrt => $run!(|a: u32| f(a).sqrt().to_bits()),
            Rsqrt => $run!(|a: u32| ((1.0 / (f(a) as f64).sqrt()) as f32).to_bits()),
            Floor => $rare!(|a: u32| f(a).floor().to_bits()),
            Ceil => $rare!(|a: u32| f(a).ceil().to_bits()),
            Trunc => $rare!(|a: u32| f(a).trunc().to_bits()),
            Nearbyint => $rare!(|a: u32| f(a).round_ties_even().to_bits()),
            Abs => $run!(|a: u32| a & 0x7fff_ffff),
            AbsS => $run!(|a: u32| (a as i32).wrapping_abs() as u32),
        }
    }};
}

macro_rules! un64 {
    ($op:expr, $run:ident, $rare:ident) => {{
        use Un::*;
        match $op {
            Not => $run!(|a: u64| (a == 0) as u64),
            BitNot => $run!(|a: u64| !a),
            Popcount => $rare!(|a: u64| a.count_ones() as u64),
            Clz => $rare!(|a: u64| a.leading_zeros() as u64),
            Ffs => $rare!(|a: u64| if a == 0 { 0 } else { a.trailing_zeros() as u64 + 1 }),
            Exp => $rare!(|a: u64| libm::exp(g(a)).to_bits()),
            Exp2 => $rare!(|a: u64| libm::exp2(g(a)).to_bits()),
            Exp10 => $rare!(|a: u64| libm::exp10(g(a)).to_bits()),
            Erf => $rare!(|a: u64| erf(g(a)).to_bits()),
            Tanh => $rare!(|a: u64| libm::tanh(g(a)).to_bits()),
            Sigmoid => $rare!(|a: u64| (1.0 / (1.0 + libm::exp(-g(a)))).to_bits()),
            Log => $rare!(|a: u64| libm::log(g(a)).to_bits()),
            Log2 => $rare!(|a: u64| libm::log2(g(a)).to_bits()),
            Log10 => $rare!(|a: u64| libm::log10(g(a)).to_bits()),
            Log1p => $rare!(|a: u64| libm::log1p(g(a)).to_bits()),
            Tan => $rare!(|a: u64| libm::tan(g(a)).to_bits()),
            Cos => $rare!(|a: u64| libm::cos(g(a)).to_bits()),
            Cosh => $rare!(|a: u64| libm::cosh(g(a)).to_bits()),
            Sin => $rare!(|a: u64| libm::sin(g(a)).to_bits()),
            Sinh => $rare!(|a: u64| libm::sinh(g(a)).to_bits()),
            Asin => $rare!(|a: u64| libm::asin(g(a)).to_bits()),
            Acos => $rare!(|a: u64| libm::acos(g(a)).to_bits()),
            Atan => $rare!(|a: u64| libm::atan(g(a)).to_bits()),
            Acosh => $rare!(|a: u64| libm::acosh(g(a)).to_bits()),
            Asinh => $rare!(|a: u64| libm::asinh(g(a)).to_bits()),
            Atanh => $rare!(|a: u64| libm::atanh(g(a)).to_bits()),
            Sqrt => $run!(|a: u64| g(a).sqrt().to_bits()),
            Rsqrt => $run!(|a: u64| (1.0 / g(a).sqrt()).to_bits()),
            Floor => $rare!(|a: u64| g(a).floor().to_bits()),
            Ceil => $rare!(|a: u64| g(a).ceil().to_bits()),
            Trunc => $rare!(|a: u64| g(a).trunc().to_bits()),
            Nearbyint => $rare!(|a: u64| g(a).round_ties_even().to_bits()),
            Abs => $run!(|a: u64| a & (u64::MAX >> 1)),
            AbsS => $run!(|a: u64| (a as i64).wrapping_abs() as u64),
        }
    }};
}

/// Writes the lanes of `mask`.
#[inline(always)]
pub fn put<T: Copy>(d: &mut [T; LANES], value: &[T; LANES], mask: u32) {
    if mask == FULL {
        *d = *value;
    } else {
        put_some(d, value, mask);
    }
}

#[inline(never)]
fn put_some<T: Copy>(d: &mut [T; LANES], value: &[T; LANES], mask: u32) {
    for (i, (d, v)) in d.iter_mut().zip(value).enumerate() {
        *d = if mask >> i & 1 != 0 { *v } else { *d };
    }
}

/// The register's value before an operation that may not change all lanes: [`restore`] gives the inactive lanes theirs
/// back.
#[inline(always)]
fn held<T: Copy>(register: &[T; LANES], mask: u32) -> Option<[T; LANES]> {
    (mask != FULL).then_some(*register)
}

#[inline(always)]
fn restore<T: Copy>(register: &mut [T; LANES], before: Option<[T; LANES]>, mask: u32) {
    if let Some(before) = before {
        put_some(register, &before, !mask);
    }
}

#[inline(always)]
fn zip<A: Copy, D: Copy + Default>(a: &[A; LANES], b: &[A; LANES], op: impl Fn(A, A) -> D) -> [D; LANES] {
    let mut out = [D::default(); LANES];
    for i in 0..LANES {
        out[i] = op(a[i], b[i]);
    }
    out
}

#[inline(always)]
fn map<A: Copy, D: Copy + Default>(a: &[A; LANES], op: impl Fn(A) -> D) -> [D; LANES] {
    let mut out = [D::default(); LANES];
    for i in 0..LANES {
        out[i] = op(a[i]);
    }
    out
}

pub type Lanes32 = [u32; LANES];
pub type Lanes64 = [u64; LANES];

/// Defines the forms of a table of operators on two operands: on registers, on a register and a scalar, on scalars.
macro_rules! two_operands {
    ($table:ident, $lane:ty, $registers:ident, $register_scalar:ident, $scalars:ident) => {
        /// `v[d] = v[a] op v[b]` in the lanes of `mask`.
        pub fn $registers(op: Bin, v: &mut [[$lane; LANES]], d: usize, a: usize, b: usize, mask: u32) {
            macro_rules! run {
                ($f:expr) => {
                    v[d] = zip(&v[a], &v[b], $f)
                };
            }
            #[inline(never)]
            fn each(op: Bin, v: &mut [[$lane; LANES]], d: usize, a: usize, b: usize) {
                for i in 0..LANES {
                    v[d][i] = $scalars(op, v[a][i], v[b][i]);
                }
            }
            macro_rules! rare {
                ($f:expr) => {
                    each(op, v, d, a, b)
                };
            }
            let before = held(&v[d], mask);
            $table!(op, run, rare);
            restore(&mut v[d], before, mask);
        }

        /// `v[d] = v[a] op s` in the lanes of `mask`.
        pub fn $register_scalar(op: Bin, v: &mut [[$lane; LANES]], d: usize, a: usize, s: $lane, mask: u32) {
            macro_rules! run {
                ($f:expr) => {{
                    let op = $f;
                    v[d] = map(&v[a], |a| op(a, s))
                }};
            }
            #[inline(never)]
            fn each(op: Bin, v: &mut [[$lane; LANES]], d: usize, a: usize, s: $lane) {
                for i in 0..LANES {
                    v[d][i] = $scalars(op, v[a][i], s);
                }
            }
            macro_rules! rare {
                ($f:expr) => {
                    each(op, v, d, a, s)
                };
            }
            let before = held(&v[d], mask);
            $table!(op, run, rare);
            restore(&mut v[d], before, mask);
        }

        /// `a op b`.
        #[inline(never)]
        pub fn $scalars(op: Bin, a: $lane, b: $lane) -> $lane {
            macro_rules! run {
                ($f:expr) => {
                    ($f)(a, b)
                };
            }
            $table!(op, run, run)
        }
    };
}

two_operands!(bin32, u32, binary32, binary32_scalar, scalar32);
two_operands!(bin64, u64, binary64, binary64_scalar, scalar64);

pub fn compare64(op: Bin, a: &Lanes64, b: &Lanes64) -> Lanes32 {
    macro_rules! run {
        ($f:expr) => {
            zip(a, b, $f)
        };
    }
    cmp64!(op, run)
}

pub fn scalar_compare64(op: Bin, a: u64, b: u64) -> u32 {
    macro_rules! run {
        ($f:expr) => {
            ($f)(a, b)
        };
    }
    cmp64!(op, run)
}

/// Defines the forms of a table of operators on one operand: on a register, on a scalar.
macro_rules! one_operand {
    ($table:ident, $lane:ty, $register:ident, $scalar:ident) => {
        /// `v[d] = op v[a]` in the lanes of `mask`.
        pub fn $register(op: Un, v: &mut [[$lane; LANES]], d: usize, a: usize, mask: u32) {
            macro_rules! run {
                ($f:expr) => {
                    v[d] = map(&v[a], $f)
                };
            }
            #[inline(never)]
            fn each(op: Un, v: &mut [[$lane; LANES]], d: usize, a: usize) {
                for i in 0..LANES {
                    v[d][i] = $scalar(op, v[a][i]);
                }
            }
            macro_rules! rare {
                ($f:expr) => {
                    each(op, v, d, a)
                };
            }
            let before = held(&v[d], mask);
            $table!(op, run, rare);
            restore(&mut v[d], before, mask);
        }

        /// `op a`.
        #[inline(never)]
        pub fn $scalar(op: Un, a: $lane) -> $lane {
            macro_rules! run {
                ($f:expr) => {
                    ($f)(a)
                };
            }
            $table!(op, run, run)
        }
    };
}

one_operand!(un32, u32, unary32, scalar_unary32);
one_operand!(un64, u64, unary64, scalar_unary64);

/// float32 `a * b + c`, rounded after each.
#[inline(always)]
pub fn multiply_add(v: &mut [Lanes32], d: usize, a: usize, b: usize, c: usize, mask: u32) {
    // The result of a whole warp stays in registers of the CPU.
    if mask == FULL {
        v[d] = products_and_sums(&v[a], &v[b], &v[c]);
    } else {
        let out = products_and_sums(&v[a], &v[b], &v[c]);
        put_some(&mut v[d], &out, mask);
    }
}

#[inline(always)]
fn products_and_sums(a: &Lanes32, b: &Lanes32, c: &Lanes32) -> Lanes32 {
    let mut out = [0; LANES];
    for i in 0..LANES {
        out[i] = (f(a[i]) * f(b[i]) + f(c[i])).to_bits();
    }
    out
}

/// Writes what `value` gives for each lane of `mask`; it is called for the other lanes, too.
#[inline(always)]
pub fn put_each<T: Copy + Default>(d: &mut [T; LANES], mask: u32, value: impl Fn(usize) -> T) {
    if mask == FULL {
        for (i, d) in d.iter_mut().enumerate() {
            *d = value(i);
        }
    } else {
        let out = std::array::from_fn(value);
        put_some(d, &out, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_clamp_and_division_floors() {
        assert_eq!(scalar32(Bin::Shl, 1, 32), 0);
        assert_eq!(scalar32(Bin::ShrS, -8i32 as u32, 100) as i32, -1);
        assert_eq!(scalar32(Bin::ShrU, 8, 32), 0);
        assert_eq!(scalar32(Bin::FloorDivS, -7i32 as u32, 2) as i32, -4);
        assert_eq!(scalar32(Bin::FloorModS, -7i32 as u32, 2) as i32, 1);
        assert_eq!(scalar32(Bin::FloorModS, 7, -2i32 as u32) as i32, -1);
        assert_eq!(
            scalar32(Bin::DivS, i32::MIN as u32, -1i32 as u32) as i32,
            i32::MIN
        );
        assert_eq!(scalar64(Bin::FloorDivS, -7i64 as u64, 2) as i64, -4);
    }

    #[test]
    fn minimum_and_maximum_give_way_to_numbers() {
        let nan = f32::NAN.to_bits();
        let one = 1f32.to_bits();
        assert_eq!(scalar32(Bin::MinF, nan, one), one);
        assert_eq!(scalar32(Bin::MinF, one, nan), one);
        assert_eq!(scalar32(Bin::MaxF, nan, one), one);
        assert_eq!(scalar32(Bin::MaxF, one, nan), one);
        let (plus, minus) = (0f32.to_bits(), (-0f32).to_bits());
        assert_eq!(scalar32(Bin::MinF, plus, minus), minus);
        assert_eq!(scalar32(Bin::MinF, minus, plus), minus);
        assert_eq!(scalar32(Bin::MaxF, plus, minus), plus);
        assert_eq!(scalar32(Bin::MaxF, minus, plus), plus);
    }

    #[test]
    fn vector_forms_agree_with_scalar_forms_and_respect_the_mask() {
        let mut v = vec![[0u32; LANES]; 3];
        v[0] = std::array::from_fn(|i| (i as f32 * 0.5).to_bits());
        v[1] = std::array::from_fn(|i| (3.0 - i as f32).to_bits());
        v[2] = [7; LANES];
        binary32(Bin::MulF, &mut v, 2, 0, 1, 0x0000_fff0);
        let lanes = v[0].iter().zip(&v[1]).zip(&v[2]);
        for (i, ((a, b), result)) in lanes.enumerate() {
            let expected = if (4..16).contains(&i) {
                scalar32(Bin::MulF, *a, *b)
            } else {
                7
            };
            assert_eq!(*result, expected);
        }
    }
}
