//! 4-bit floats.

use std::fmt;

/// The magnitudes by code: two bits of exponent, one of mantissa.
const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
const SIGN: u8 = 8;

/// An element of a `float4_e2m1fn` tensor: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
///
/// Tensors of it have the kernel's shape, counted in elements. On the device two elements share a byte, the one with
/// the even place in row-major order in the low half; a tensor of `n` elements takes `n / 2` bytes, rounded up. A view
/// starts at a whole byte: at an element with an even place.
///
/// ```
/// use tirx_rt::{Device, Float4E2m1, Tensor};
/// # if cfg!(feature = "simulator") {
/// let values = [0.5f32, -3.0, 2.4].map(Float4E2m1::from_f32);
/// let tensor = Tensor::from_slice(&Device::simulator().default_stream(), &values, [3])?;
/// assert_eq!(tensor.to_vec()?.map_f32(), [0.5, -3.0, 2.0]);
/// # }
/// # trait MapF32 { fn map_f32(self) -> Vec<f32>; }
/// # impl MapF32 for Vec<Float4E2m1> {
/// #     fn map_f32(self) -> Vec<f32> { self.into_iter().map(Float4E2m1::to_f32).collect() }
/// # }
/// # Ok::<(), tirx_rt::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Float4E2m1(u8);

impl Float4E2m1 {
    /// The element with these bits: sign, two of exponent, one of mantissa. Higher bits of the byte are dropped.
    pub const fn from_bits(bits: u8) -> Float4E2m1 {
        Float4E2m1(bits & 0xf)
    }

    /// Its bits, in the low half of the byte.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// The nearest value, ties to an even mantissa. What is too large becomes 6, NaN too, as CUDA converts.
    pub fn from_f32(value: f32) -> Float4E2m1 {
        let magnitude = value.abs().min(MAGNITUDES[7]);
        let distance = |code: usize| (MAGNITUDES[code] - magnitude).abs();
        let mut best = 7;
        if !value.is_nan() {
            for code in (0..7).rev() {
                let (here, there) = (distance(code), distance(best));
                if here < there || here == there && code % 2 == 0 {
                    best = code;
                }
            }
        }
        let negative = value.is_sign_negative() && !value.is_nan();
        Float4E2m1(best as u8 | if negative { SIGN } else { 0 })
    }

    /// Its value.
    pub fn to_f32(self) -> f32 {
        let magnitude = MAGNITUDES[(self.0 & 7) as usize];
        if self.0 & SIGN != 0 { -magnitude } else { magnitude }
    }
}

impl PartialEq for Float4E2m1 {
    fn eq(&self, other: &Float4E2m1) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl fmt::Debug for Float4E2m1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f32().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_to_the_nearest() {
        for code in 0..16 {
            let value = Float4E2m1::from_bits(code);
            assert_eq!(Float4E2m1::from_f32(value.to_f32()).to_bits(), code);
        }
        for (value, rounded) in [
            (0.25, 0.0),
            (0.75, 1.0),
            (1.25, 1.0),
            (1.75, 2.0),
            (2.5, 2.0),
            (2.51, 3.0),
            (5.0, 4.0),
            (-5.1, -6.0),
            (1e9, 6.0),
            (f32::NEG_INFINITY, -6.0),
            (f32::NAN, 6.0),
        ] {
            assert_eq!(Float4E2m1::from_f32(value).to_f32(), rounded, "{value}");
        }
        assert_eq!(Float4E2m1::from_f32(-0.1).to_bits(), 8);
    }
}
