//! Elements that share a register: how shifts, masks and moves of bytes join and part them.

use super::{MAX_PARTS, Shade, VALUE};
use crate::alu::Bin;

impl Shade {
    /// That of the low half of a register of 64 bits.
    pub(super) fn narrowed(self) -> Shade {
        let bits = self.bits & 0xffff_ffff;
        match self.width {
            32 => Shade::of_value(bits, self.values[0]),
            8 | 16 => Shade { bits, ..self },
            _ if self.bits == bits => self,
            _ => Shade::NONE,
        }
    }

    /// The width in bits and the shadow of the element that begins at a byte of a register with these bits.
    pub(super) fn element(&self, bits: u64, byte: usize) -> Option<(u8, f64)> {
        let width = match self.width {
            VALUE => 32,
            width => width,
        };
        let size = usize::from(width / 8);
        if width == 0 || self.bits != bits || !byte.is_multiple_of(size) {
            return None;
        }
        Some((width, self.values[byte / size]))
    }

    /// The shadow of a register that has these elements by their first byte: a value, or narrow ones. Narrow ones without a shadow are
    /// zeros.
    pub(super) fn of_elements(bits: u32, elements: &[Option<(u8, f64)>; MAX_PARTS]) -> Shade {
        let Some((width, value)) = elements.iter().flatten().next().copied() else {
            return Shade::NONE;
        };
        if width == 32 {
            return Shade::of_value(bits.into(), value);
        }
        let size = usize::from(width / 8);
        let mut values = [0.0; MAX_PARTS];
        for (part, slot) in values.iter_mut().enumerate().take(4 / size) {
            let own = bits >> (part as u32 * u32::from(width)) & ((1 << width) - 1);
            match elements[part * size] {
                Some((same, value)) if same == width => *slot = value,
                None if own == 0 => {}
                _ => return Shade::NONE,
            }
        }
        Shade {
            bits: bits.into(),
            width,
            values,
        }
    }
}

/// The shade of an operation on the bits of a register, of 32 or 64, that joins or parts elements.
pub(super) fn packed((op, whole): (Bin, u32), (a, a_bits): (Shade, u64), (b, b_bits): (Shade, u64)) -> Shade {
    let parts = |shade: Shade, bits: u64| {
        // A float32 that has been widened.
        let widened = shade.value(bits).filter(|_| whole == 64 && bits >> 32 == 0);
        match widened {
            Some(value) => Some(Shade {
                width: 32,
                ..Shade::of_value(bits, value)
            }),
            None => {
                let width = u32::from(shade.width);
                let fits = width < whole && (whole / width.max(1)) as usize <= MAX_PARTS;
                Some(shade).filter(|shade| fits && shade.bits == bits && matches!(width, 8 | 16 | 32))
            }
        }
    };
    let (a, a_bits, other, b_bits) = match (op, parts(a, a_bits)) {
        (Bin::Or | Bin::And, None) => (parts(b, b_bits), b_bits, None, a_bits),
        (_, a) => (a, a_bits, parts(b, b_bits), b_bits),
    };
    let Some(a) = a else { return Shade::NONE };
    let width = u32::from(a.width);
    let count = (whole / width) as usize;
    let mask = |part: usize| ((1u64 << width) - 1) << (part as u32 * width);
    let all = u64::MAX >> (64 - whole);
    let mut out = Shade {
        values: [0.0; MAX_PARTS],
        ..a
    };
    match op {
        Bin::Shl if b_bits % u64::from(width) == 0 && b_bits < u64::from(whole) => {
            let by = (b_bits / u64::from(width)) as usize;
            out.values[by..count].copy_from_slice(&a.values[..count - by]);
            out.bits = a_bits << b_bits & all;
        }
        Bin::ShrU if b_bits % u64::from(width) == 0 && b_bits < u64::from(whole) => {
            let by = (b_bits / u64::from(width)) as usize;
            out.values[..count - by].copy_from_slice(&a.values[by..count]);
            out.bits = a_bits >> b_bits;
        }
        Bin::And => {
            for part in 0..count {
                match b_bits & mask(part) {
                    0 => out.values[part] = 0.0,
                    kept if kept == mask(part) => out.values[part] = a.values[part],
                    _ => return Shade::NONE,
                }
            }
            out.bits = a_bits & b_bits;
        }
        Bin::Or if a_bits & b_bits == 0 => {
            for part in 0..count {
                let own = b_bits & mask(part);
                out.values[part] = match other.filter(|other| other.width == a.width) {
                    _ if own == 0 => a.values[part],
                    Some(other) => other.values[part],
                    // The element is exact: its number is known if it is a float32.
                    None if width == 32 => f32::from_bits((own >> (part as u32 * 32)) as u32).into(),
                    None => return Shade::NONE,
                };
            }
            out.bits = a_bits | b_bits;
        }
        _ => return Shade::NONE,
    }
    out
}
