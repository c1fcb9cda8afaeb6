//! Instructions over 32 lanes that are more than one operation of the `alu`.

use super::Trap;
use super::run::Machine;
use crate::alu::{Bin, LANES, Lanes32, put};
use crate::bytecode::{Exact, R};
use crate::fault::FaultKind;
use crate::numeric::{Kind, convert};

impl Machine<'_, '_> {
    /// Whether an operator that may trap is defined for two registers.
    pub(super) fn operands32(&self, op: Bin, a: R, b: R, mask: u32) -> Result<(), Box<Trap>> {
        let (a, b) = (&self.warp.v32[a as usize], &self.warp.v32[b as usize]);
        if op.divides_integers() {
            return no_zero(mask & !bits(b));
        }
        no_overflow(op, mask, |l| {
            op.overflows(a[l] as i32 as i64, b[l] as i32 as i64, false)
        })
    }

    pub(super) fn operands64(&self, op: Bin, a: R, b: R, mask: u32) -> Result<(), Box<Trap>> {
        let (a, b) = (&self.warp.v64[a as usize], &self.warp.v64[b as usize]);
        if op.divides_integers() {
            let zeros = (0..LANES)
                .filter(|l| b[*l] == 0)
                .fold(0, |zeros, l| zeros | 1 << l);
            return no_zero(mask & zeros);
        }
        no_overflow(op, mask, |l| op.overflows(a[l] as i64, b[l] as i64, true))
    }

    /// Whether an operator that may trap is defined for a register and a scalar.
    pub(super) fn operand32(&self, op: Bin, a: R, b: u32, mask: u32) -> Result<(), Box<Trap>> {
        if op.divides_integers() {
            return divisor(b as u64, mask);
        }
        let a = &self.warp.v32[a as usize];
        no_overflow(op, mask, |l| {
            op.overflows(a[l] as i32 as i64, b as i32 as i64, false)
        })
    }

    pub(super) fn operand64(&self, op: Bin, a: R, b: u64, mask: u32) -> Result<(), Box<Trap>> {
        if op.divides_integers() {
            return divisor(b, mask);
        }
        let a = &self.warp.v64[a as usize];
        no_overflow(op, mask, |l| op.overflows(a[l] as i64, b as i64, true))
    }

    pub(super) fn convert(&mut self, from: Kind, to: Kind, d: usize, a: usize, mask: u32) {
        let warp = &mut *self.warp;
        match (from.wide(), to.wide()) {
            (false, false) => {
                let out = narrow_conversion(from, to, &warp.v32[a]);
                put(&mut warp.v32[d], &out, mask);
            }
            (false, true) => {
                let out = warp.v32[a].map(|x| convert(from, to, x as u64));
                put(&mut warp.v64[d], &out, mask);
            }
            (true, false) => {
                let out = warp.v64[a].map(|x| convert(from, to, x) as u32);
                put(&mut warp.v32[d], &out, mask);
            }
            (true, true) => {
                let out = warp.v64[a].map(|x| convert(from, to, x));
                put(&mut warp.v64[d], &out, mask);
            }
        }
    }

    /// An exact operation, lane by lane.
    pub(super) fn exact(&mut self, id: u16, mask: u32) {
        let inst = &self.ctx.code.exact[id as usize];
        let warp = &mut *self.warp;
        let mut operands = Vec::with_capacity(inst.operands.len());
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            operands.clear();
            operands.extend(inst.operands.iter().map(|(kind, register)| {
                if kind.wide() {
                    warp.v64[*register as usize][lane]
                } else {
                    kind.store(warp.v32[*register as usize][lane].into())
                }
            }));
            let bits = match &inst.what {
                Exact::Cvt(cvt) => cvt.run(&operands),
                Exact::Rounded(rounded) => rounded.run(&operands),
            };
            let value = inst.kind.load(bits);
            if inst.kind.wide() {
                warp.v64[inst.d as usize][lane] = value;
            } else {
                warp.v32[inst.d as usize][lane] = value as u32;
            }
        }
    }

    pub(super) fn fma(&mut self, kind: Kind, [d, a, b, c]: [u16; 4], mask: u32) {
        let [d, a, b, c] = [d, a, b, c].map(|r| r as usize);
        if kind.wide() {
            let w = &self.warp.v64;
            let out = std::array::from_fn(|i| fma(kind, w[a][i], w[b][i], w[c][i]));
            put(&mut self.warp.v64[d], &out, mask);
        } else {
            let v = &self.warp.v32;
            let out =
                std::array::from_fn(|i| fma(kind, v[a][i] as u64, v[b][i] as u64, v[c][i] as u64) as u32);
            put(&mut self.warp.v32[d], &out, mask);
        }
    }
}

/// The lanes whose bool is set.
#[inline(always)]
pub(super) fn bits(v: &Lanes32) -> u32 {
    let mut out = 0;
    for (i, lane) in v.iter().enumerate() {
        out |= ((*lane != 0) as u32) << i;
    }
    out
}

/// `a * b + c`, rounded once to the kind.
pub(super) fn fma(kind: Kind, a: u64, b: u64, c: u64) -> u64 {
    if kind == Kind::F64 {
        let [a, b, c] = [a, b, c].map(f64::from_bits);
        return a.mul_add(b, c).to_bits();
    }
    let [a, b, c] = [a, b, c].map(|x| f32::from_bits(x as u32));
    match kind {
        Kind::F32 => a.mul_add(b, c).to_bits() as u64,
        _ if kind.is_float() => kind.constant(odd_sum(f64::from(a) * f64::from(b), f64::from(c))),
        _ => {
            let bits = |x: f32| x.to_bits();
            let sum = bits(a).wrapping_mul(bits(b)).wrapping_add(bits(c));
            kind.canonical(sum) as u64
        }
    }
}

/// A sum that is rounded to odd: what is lost shows in the last bit, so that rounding it again to a narrower format is as rounding once.
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    // Exact where nothing overflows (Knuth's TwoSum).
    let lost = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    match lost == 0.0 || !lost.is_finite() || bits & 1 == 1 {
        true => sum,
        false if (lost > 0.0) == (sum > 0.0) => f64::from_bits(bits + 1),
        false => f64::from_bits(bits - 1),
    }
}

/// Whether an operator that may trap is defined for two scalars.
pub(super) fn scalar_operands(op: Bin, a: i64, b: i64, wide: bool, mask: u32) -> Result<(), Box<Trap>> {
    if op.divides_integers() {
        return divisor(b as u64, mask);
    }
    no_overflow(op, mask, |_| op.overflows(a, b, wide))
}

fn divisor(b: u64, mask: u32) -> Result<(), Box<Trap>> {
    no_zero(if b == 0 { mask } else { 0 })
}

/// No lane divides by zero.
fn no_zero(lanes: u32) -> Result<(), Box<Trap>> {
    if lanes == 0 {
        return Ok(());
    }
    let message = "an integer is divided by zero";
    Err(Trap::new(
        FaultKind::DivisionByZero,
        lanes.trailing_zeros(),
        message,
    ))
}

/// No lane of the mask overflows, or shifts by an amount that is out of range.
fn no_overflow(op: Bin, mask: u32, overflows: impl Fn(usize) -> bool) -> Result<(), Box<Trap>> {
    match (0..LANES).find(|l| mask >> l & 1 != 0 && overflows(*l)) {
        None => Ok(()),
        Some(lane) if op.checks_shift() => {
            let message = "an integer is shifted by a negative amount, or by its width or more, which is undefined in CUDA C++";
            Err(Trap::new(FaultKind::ShiftOutOfRange, lane as u32, message))
        }
        Some(lane) => {
            let message = "a signed integer leaves the range of its dtype, which is undefined in CUDA C++";
            Err(Trap::new(FaultKind::Overflow, lane as u32, message))
        }
    }
}

pub(super) fn canonical_lanes(kind: Kind, a: &Lanes32) -> Lanes32 {
    match kind {
        Kind::BF16 => a.map(|x| Kind::BF16.canonical(x)),
        Kind::I8 => a.map(|x| Kind::I8.canonical(x)),
        Kind::U8 => a.map(|x| Kind::U8.canonical(x)),
        Kind::I16 => a.map(|x| Kind::I16.canonical(x)),
        Kind::U16 => a.map(|x| Kind::U16.canonical(x)),
        _ => a.map(|x| kind.canonical(x)),
    }
}

/// Conversions among 32-bit registers; the frequent ones in loops of their own.
fn narrow_conversion(from: Kind, to: Kind, a: &Lanes32) -> Lanes32 {
    match (from, to) {
        (Kind::I32, Kind::F32) => a.map(|x| (x as i32 as f32).to_bits()),
        (Kind::U32 | Kind::U8 | Kind::U16, Kind::F32) => a.map(|x| (x as f32).to_bits()),
        (Kind::F32, Kind::I32) => a.map(|x| f32::from_bits(x) as i32 as u32),
        (Kind::F32, Kind::U32) => a.map(|x| f32::from_bits(x) as u32),
        (Kind::F32, Kind::F16 | Kind::BF16) => canonical_lanes(to, a),
        (Kind::I32 | Kind::U32, Kind::U8 | Kind::I8 | Kind::U16 | Kind::I16) => canonical_lanes(to, a),
        _ => a.map(|x| convert(from, to, x as u64) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_float_is_rounded_once() {
        // The product lies in the middle of two bfloat16, and the third operand just below it (seen on a GPU).
        let [a, b, c] = [0x3f98_0000, 0x7b08_0000, 0xb015_0000];
        assert_eq!(fma(Kind::BF16, a, b, c), 0x7b21_0000);
        assert_eq!(fma(Kind::BF16, a, b, c & 0x7fff_ffff), 0x7b22_0000);
        assert_eq!(fma(Kind::BF16, a, b, 0), 0x7b22_0000);
    }
}
