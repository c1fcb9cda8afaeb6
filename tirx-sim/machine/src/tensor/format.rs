//! What value do the bits of an operand have?
//!
//! Every format but `f64` has values that float32 holds exactly, and products of two of them are exact in float32 too
//! (at most 11 significant bits each).

use tirx_dtype::{Minifloat, TypeCode, f16};

/// A number format of a tensor core's operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    F64,
    F32,
    /// The upper 19 bits of a float32; the rest is ignored.
    Tf32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    /// Scale factors: a power of two.
    Ue8m0,
    /// Scale factors: an `E4m3` without sign.
    Ue4m3,
    I32,
    I8,
    U8,
    I4,
    U4,
    B1,
}

/// Names in PTX and in TIRx.
const NAMES: &[(Format, &[&str])] = &[
    (Format::F64, &["f64", "fp64", "float64"]),
    (Format::F32, &["f32", "fp32", "float32"]),
    (Format::Tf32, &["tf32", "tensor_float32"]),
    (Format::F16, &["f16", "fp16", "float16"]),
    (Format::Bf16, &["bf16", "bfloat16"]),
    (
        Format::E4m3,
        &["e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3"],
    ),
    (Format::E5m2, &["e5m2", "float8_e5m2"]),
    (Format::E2m3, &["e2m3", "float6_e2m3fn"]),
    (Format::E3m2, &["e3m2", "float6_e3m2fn"]),
    (Format::E2m1, &["e2m1", "float4_e2m1fn"]),
    (Format::Ue8m0, &["ue8m0", "e8m0", "float8_e8m0fnu"]),
    (Format::Ue4m3, &["ue4m3"]),
    (Format::I32, &["s32", "int32"]),
    (Format::I8, &["s8", "int8"]),
    (Format::U8, &["u8", "uint8"]),
    (Format::I4, &["s4", "int4"]),
    (Format::U4, &["u4", "uint4"]),
    (Format::B1, &["b1", "int1", "uint1", "bit1", "bool"]),
];

impl Format {
    /// The format of a name.
    pub fn named(name: &str) -> Option<Format> {
        let name = name.trim_start_matches('.');
        NAMES
            .iter()
            .find(|(_, names)| names.contains(&name))
            .map(|(format, _)| *format)
    }

    /// Significant width of an element.
    pub fn bits(self) -> u32 {
        match self {
            Format::F64 => 64,
            Format::F32 | Format::Tf32 | Format::I32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::E4m3 | Format::E5m2 | Format::Ue8m0 | Format::Ue4m3 | Format::I8 | Format::U8 => 8,
            Format::E2m3 | Format::E3m2 => 6,
            Format::E2m1 | Format::I4 | Format::U4 => 4,
            Format::B1 => 1,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Format::I32 | Format::I8 | Format::U8 | Format::I4 | Format::U4 | Format::B1
        )
    }

    fn mini(self) -> Option<Minifloat> {
        Minifloat::from_type_code(match self {
            Format::E4m3 | Format::Ue4m3 => TypeCode::Float8_e4m3fn,
            Format::E5m2 => TypeCode::Float8_e5m2,
            Format::E2m3 => TypeCode::Float6_e2m3fn,
            Format::E3m2 => TypeCode::Float6_e3m2fn,
            Format::E2m1 => TypeCode::Float4_e2m1fn,
            Format::Ue8m0 => TypeCode::Float8_e8m0fnu,
            _ => return None,
        })
    }

    /// The value of an element's bits (of 32 at most; higher ones than the format has are ignored).
    pub fn decode(self, bits: u32) -> f32 {
        match self {
            Format::F32 | Format::F64 => f32::from_bits(bits),
            Format::Tf32 => f32::from_bits(bits & 0xffff_e000),
            Format::F16 => f16::from_bits(bits as u16).to_f32(),
            Format::Bf16 => f32::from_bits(bits << 16),
            Format::I32 => bits as i32 as f32,
            Format::I8 => (bits as i8).into(),
            Format::U8 => (bits as u8).into(),
            Format::I4 => (((bits << 4) as i8) >> 4).into(),
            Format::U4 => (bits & 0xf) as f32,
            Format::B1 => (bits & 1) as f32,
            Format::Ue4m3 => self.mini().map_or(0.0, |mini| mini.decode(bits & 0x7f)),
            _ => {
                let mask = (1u32 << self.bits()) - 1;
                self.mini().map_or(0.0, |mini| mini.decode(bits & mask))
            }
        }
    }

    /// The nearest element, ties to even.
    #[cfg(test)]
    pub fn encode(self, value: f32) -> u32 {
        match self {
            Format::F32 | Format::F64 => value.to_bits(),
            Format::Tf32 => value.to_bits() & 0xffff_e000,
            Format::F16 => f16::from_f32(value).to_bits().into(),
            Format::Bf16 => tirx_dtype::bf16::from_f32(value).to_bits().into(),
            _ if self.is_integer() => value as i32 as u32 & (((1u64 << self.bits()) - 1) as u32),
            _ => self.mini().map_or(0, |mini| mini.encode(value)),
        }
    }

    /// A decoder for many elements.
    pub fn decoder(self) -> Decoder {
        let bits = self.bits();
        let table = if bits <= 8 {
            (0..1u32 << bits).map(|code| self.decode(code)).collect()
        } else {
            Vec::new()
        };
        Decoder { format: self, table }
    }
}

/// Rounds a float32 to what an accumulator of a format holds, as its bits.
pub fn round_f16(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

/// Values of many elements, by a table where the format is small.
pub struct Decoder {
    format: Format,
    table: Vec<f32>,
}

impl Decoder {
    #[inline]
    pub fn decode(&self, bits: u32) -> f32 {
        if self.table.is_empty() {
            self.format.decode(bits)
        } else {
            self.table[bits as usize & (self.table.len() - 1)]
        }
    }

    /// The elements of packed bytes, `pitch` bits apart, lowest first. A pitch that does not divide eight bits counts
    /// from the first byte on.
    pub fn unpack(&self, bytes: &[u8], pitch: u32, count: usize, out: &mut Vec<f32>) {
        match pitch {
            16 => out.extend(
                bytes
                    .chunks_exact(2)
                    .take(count)
                    .map(|b| self.decode(u16::from_le_bytes([b[0], b[1]]).into())),
            ),
            32 => out.extend(
                bytes
                    .chunks_exact(4)
                    .take(count)
                    .map(|b| self.decode(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
            ),
            8 => out.extend(bytes.iter().take(count).map(|b| self.decode(u32::from(*b)))),
            _ => out.extend((0..count).map(|i| {
                let at = i * pitch as usize;
                let byte = |n: usize| u32::from(bytes.get(at / 8 + n).copied().unwrap_or(0));
                let word = byte(0) | byte(1) << 8;
                let mask = (1u32 << self.format.bits()) - 1;
                self.decode(word >> (at % 8) & mask)
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ptx_and_tirx_mean_the_same() {
        assert_eq!(Format::named("bfloat16"), Some(Format::Bf16));
        assert_eq!(Format::named(".bf16"), Some(Format::Bf16));
        assert_eq!(Format::named("float8_e4m3fn"), Format::named("e4m3"));
        assert_eq!(Format::named("complex"), None);
    }

    #[test]
    fn values_of_small_formats() {
        assert_eq!(Format::E4m3.decode(0x7e), 448.0);
        assert_eq!(Format::E5m2.decode(0x7b), 57344.0);
        assert_eq!(Format::E2m3.decode(0x1f), 7.5);
        assert_eq!(Format::E3m2.decode(0x1f), 28.0);
        assert_eq!(Format::E2m1.decode(0x7), 6.0);
        assert_eq!(Format::E2m1.decode(0x9), -0.5);
        assert_eq!(Format::Ue8m0.decode(127 + 3), 8.0);
        // The sign bit of a scale factor is not one.
        assert_eq!(Format::Ue4m3.decode(0x38), 1.0);
        assert_eq!(Format::Ue4m3.decode(0xb8), 1.0);
        assert_eq!(Format::I4.decode(0xf), -1.0);
        assert_eq!(Format::U4.decode(0xf), 15.0);
        assert_eq!(Format::I8.decode(0x80), -128.0);
        assert_eq!(Format::Tf32.decode(1.0f32.to_bits() | 0x1fff), 1.0);
        assert_eq!(Format::Bf16.decode(0x3f80), 1.0);
    }

    #[test]
    fn packed_elements_come_lowest_first() {
        let unpacked = |format: Format, bytes: &[u8], pitch, count| {
            let mut out = Vec::new();
            format.decoder().unpack(bytes, pitch, count, &mut out);
            out
        };
        assert_eq!(unpacked(Format::E2m1, &[0x72, 0x01], 4, 3), [1.0, 6.0, 0.5]);
        // Four elements of six bits in three bytes: codes 1, 2, 3, 4.
        let packed = 1u32 | 2 << 6 | 3 << 12 | 4 << 18;
        let expected: Vec<f32> = (1..5).map(|c| Format::E3m2.decode(c)).collect();
        assert_eq!(unpacked(Format::E3m2, &packed.to_le_bytes(), 6, 4), expected);
        assert_eq!(unpacked(Format::F16, &[0, 0x3c, 0, 0xbc], 16, 2), [1.0, -1.0]);
    }

    #[test]
    fn elements_decode_to_what_was_encoded() {
        for format in [
            Format::E4m3,
            Format::E5m2,
            Format::E2m3,
            Format::E3m2,
            Format::E2m1,
        ] {
            for code in 0..1u32 << format.bits() {
                let value = format.decode(code);
                if value.is_finite() {
                    assert_eq!(format.decode(format.encode(value)), value, "{format:?} {code:#x}");
                }
            }
        }
    }
}
