//! What kinds of value there are, and how each is held in a register and stored in memory.
//!
//! Every value is held in 32 or 64 bits. Narrow integers are held sign- or zero-extended to 32 bits, the narrow
//! floats (float16, bfloat16, float8, …) as the float32 of the same value: the GPU computes in float32 or wider
//! and rounds, and so does the simulator, by one rounding after each operation. For `+ - * /` and `sqrt` of
//! float16 and bfloat16 that double rounding is exact (24 bits are at least twice 11 plus 2).

use tirx_dtype::{DType, Minifloat, TypeCode, bf16, f16, odd_f32, odd_f64};

/// The kind of one lane of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    Mini(Minifloat),
    Ptr,
}

impl Kind {
    /// The kind of a dtype's elements; `None` where the simulator has no such values.
    pub fn from_dtype(dtype: DType) -> Option<Kind> {
        Some(match (dtype.code, dtype.bits) {
            (TypeCode::Bool, _) => Kind::Bool,
            (TypeCode::Int, 8) => Kind::I8,
            (TypeCode::Int, 16) => Kind::I16,
            (TypeCode::Int, 32) => Kind::I32,
            (TypeCode::Int, 64) => Kind::I64,
            (TypeCode::UInt, 1) => Kind::Bool,
            (TypeCode::UInt, 8) => Kind::U8,
            (TypeCode::UInt, 16) => Kind::U16,
            (TypeCode::UInt, 32) => Kind::U32,
            (TypeCode::UInt, 64) => Kind::U64,
            (TypeCode::Float, 16) => Kind::F16,
            (TypeCode::Float, 32) => Kind::F32,
            (TypeCode::Float, 64) => Kind::F64,
            (TypeCode::BFloat, 16) => Kind::BF16,
            (TypeCode::Handle, 64) => Kind::Ptr,
            (code, _) => Kind::Mini(Minifloat::from_type_code(code)?),
        })
    }

    /// The Rust type of a value, as a stand-in receives it.
    pub fn rust(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::I8 => "i8",
            Kind::I16 => "i16",
            Kind::I32 => "i32",
            Kind::I64 => "i64",
            Kind::U8 | Kind::Mini(_) => "u8",
            Kind::U16 => "u16",
            Kind::U32 => "u32",
            Kind::U64 | Kind::Ptr => "u64",
            Kind::F16 => "f16",
            Kind::BF16 => "bf16",
            Kind::F32 => "f32",
            Kind::F64 => "f64",
        }
    }

    /// Whether it is held in 64 bits.
    pub fn wide(self) -> bool {
        matches!(self, Kind::I64 | Kind::U64 | Kind::F64 | Kind::Ptr)
    }

    /// Bits in memory: those of [`DType::storage_bits`].
    pub fn bits(self) -> u32 {
        match self {
            Kind::Mini(mini) if mini.bits() == 4 => 4,
            _ => self.bytes() * 8,
        }
    }

    /// Whole bytes that hold a value.
    pub fn bytes(self) -> u32 {
        match self {
            Kind::Bool | Kind::I8 | Kind::U8 | Kind::Mini(_) => 1,
            Kind::I16 | Kind::U16 | Kind::F16 | Kind::BF16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            _ => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(
            self,
            Kind::F16 | Kind::BF16 | Kind::F32 | Kind::F64 | Kind::Mini(_)
        )
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64)
    }

    /// Whether a register holds the memory's bits as they are.
    pub fn is_plain(self) -> bool {
        matches!(self, Kind::I32 | Kind::U32 | Kind::F32 | Kind::U8 | Kind::U16) || self.wide()
    }

    /// From bits in memory (zero-extended) to the register.
    pub fn load(self, bits: u64) -> u64 {
        match self {
            Kind::Bool => (bits as u8 != 0) as u64,
            Kind::I8 => bits as u8 as i8 as i32 as u32 as u64,
            Kind::I16 => bits as u16 as i16 as i32 as u32 as u64,
            Kind::F16 => f16::from_bits(bits as u16).to_f32().to_bits() as u64,
            Kind::BF16 => (bits as u16 as u64) << 16,
            Kind::Mini(mini) => mini.decode(bits as u32).to_bits() as u64,
            _ => bits,
        }
    }

    /// From the register to bits in memory (zero-extended).
    pub fn store(self, value: u64) -> u64 {
        match self {
            Kind::Bool => (value as u32 != 0) as u64,
            Kind::I8 | Kind::U8 => value as u8 as u64,
            Kind::I16 | Kind::U16 => value as u16 as u64,
            Kind::F16 => f16::from_f32(f32::from_bits(value as u32)).to_bits() as u64,
            Kind::BF16 => bf16::from_f32(f32::from_bits(value as u32)).to_bits() as u64,
            Kind::Mini(mini) => mini.encode(f32::from_bits(value as u32)) as u64,
            Kind::I32 | Kind::U32 | Kind::F32 => value as u32 as u64,
            _ => value,
        }
    }

    /// The bits that belong to the kind.
    pub fn truncate(self, bits: u64) -> u64 {
        match self.bytes() {
            1 => bits as u8 as u64,
            2 => bits as u16 as u64,
            4 => bits as u32 as u64,
            _ => bits,
        }
    }

    /// Rounds (or wraps) a 32-bit register to what the kind can hold.
    #[inline(always)]
    pub fn canonical(self, value: u32) -> u32 {
        match self {
            Kind::Bool => (value != 0) as u32,
            Kind::I8 => value as i8 as i32 as u32,
            Kind::U8 => value as u8 as u32,
            Kind::I16 => value as i16 as i32 as u32,
            Kind::U16 => value as u16 as u32,
            Kind::F16 => f16::from_f32(f32::from_bits(value)).to_f32().to_bits(),
            Kind::BF16 => round_bf16(value),
            Kind::Mini(mini) => mini.decode(mini.encode(f32::from_bits(value))).to_bits(),
            _ => value,
        }
    }

    /// A floating constant as a register holds it.
    pub fn constant(self, value: f64) -> u64 {
        match self {
            Kind::F64 => value.to_bits(),
            Kind::F32 => (value as f32).to_bits() as u64,
            // Rounded once.
            _ => self.canonical(odd_f32(value).to_bits()) as u64,
        }
    }
}

/// Rounds float32 bits to the nearest bfloat16, ties to even, keeping float32 form.
#[inline(always)]
pub fn round_bf16(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    let nan = (bits & 0xffff_0000) | 0x0040_0000;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        nan
    } else {
        rounded
    }
}

/// Converts a register of kind `from` to one of kind `to`: floats to integers truncate and saturate as PTX `cvt`
/// does (NaN gives 0, or the top bit for 64-bit sources or targets), integers wrap, floats round to nearest even.
#[inline(always)]
pub fn convert(from: Kind, to: Kind, value: u64) -> u64 {
    if from == to {
        return value;
    }
    if from.is_float() {
        let wide = from == Kind::F64;
        let x = if wide {
            f64::from_bits(value)
        } else {
            f32::from_bits(value as u32) as f64
        };
        let integer_nan = wide || to.wide();
        return match to {
            Kind::F64 => x.to_bits(),
            Kind::Bool => (x != 0.0) as u64,
            _ if to.is_float() => match (wide, to) {
                (true, _) => to.constant(x),
                (false, Kind::F32) => value,
                (false, _) => to.canonical(value as u32) as u64,
            },
            Kind::I64 | Kind::U64 | Kind::Ptr if x.is_nan() => 1 << 63,
            Kind::I64 => x as i64 as u64,
            Kind::U64 | Kind::Ptr => x as u64,
            _ if x.is_nan() => to.canonical(if integer_nan { 1 << 31 } else { 0 }) as u64,
            _ if to.is_signed() => to.canonical(x as i32 as u32) as u64,
            _ => to.canonical(x as u32) as u64,
        };
    }
    // Integers: widen to 64 bits by the source's sign.
    let wide = match from {
        Kind::I64 | Kind::U64 | Kind::Ptr => value,
        _ if from.is_signed() => value as u32 as i32 as i64 as u64,
        _ => value as u32 as u64,
    };
    match to {
        Kind::Bool => (wide != 0) as u64,
        Kind::F32 if from.is_signed() => (wide as i64 as f32).to_bits() as u64,
        Kind::F32 => (wide as f32).to_bits() as u64,
        Kind::F64 if from.is_signed() => (wide as i64 as f64).to_bits(),
        Kind::F64 => (wide as f64).to_bits(),
        _ if to.is_float() && from.is_signed() => to.constant(odd_f64((wide as i64).into())),
        _ if to.is_float() => to.constant(odd_f64(wide.into())),
        _ if to.wide() => wide,
        _ => to.canonical(wide as u32) as u64,
    }
}

/// The error function, by its series near zero and a continued fraction of its complement beyond.
pub fn erf(x: f64) -> f64 {
    let magnitude = x.abs();
    if x.is_nan() {
        return x;
    }
    let value = if magnitude < 2.5 {
        let (mut term, mut sum, mut n) = (magnitude, magnitude, 0.0);
        while term.abs() > 1e-17 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -magnitude * magnitude / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else if magnitude > 6.0 {
        1.0
    } else {
        // erfc(x) = exp(-x²)/√π · 1/(x + ½/(x + 1/(x + 3/2/(x + …)))).
        let fraction = (1..=60)
            .rev()
            .fold(magnitude, |f, k| magnitude + k as f64 / 2.0 / f);
        1.0 - libm::exp(-magnitude * magnitude) * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / fraction
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_rounds_as_the_half_crate_does() {
        let mut bits = 1u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1664525).wrapping_add(1013904223);
            let value = f32::from_bits(bits);
            let expected = bf16::from_f32(value).to_f32().to_bits();
            assert_eq!(round_bf16(bits), expected, "{bits:x}");
        }
    }

    #[test]
    fn floats_convert_to_integers_as_ptx_does() {
        let f = |x: f32| x.to_bits() as u64;
        assert_eq!(convert(Kind::F32, Kind::I32, f(-2.9)) as u32 as i32, -2);
        assert_eq!(convert(Kind::F32, Kind::I32, f(3e9)) as u32 as i32, i32::MAX);
        assert_eq!(convert(Kind::F32, Kind::U32, f(-1.0)), 0);
        assert_eq!(convert(Kind::F32, Kind::I32, f(f32::NAN)), 0);
        assert_eq!(convert(Kind::F32, Kind::I64, f(f32::NAN)), 1 << 63);
        assert_eq!(convert(Kind::I32, Kind::U8, (-1i32) as u32 as u64), 255);
        assert_eq!(convert(Kind::I64, Kind::F32, (-3i64) as u64), f(-3.0));
    }

    #[test]
    fn error_function_has_known_values() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.5204998778130465),
            (1.0, 0.8427007929497149),
            (-2.0, -0.9953222650189527),
            (3.0, 0.9999779095030014),
        ] {
            assert!((erf(x) - expected).abs() < 1e-14, "{x}");
        }
    }
}
