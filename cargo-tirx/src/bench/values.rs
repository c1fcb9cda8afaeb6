//! What the tensors of a measured kernel hold: pseudorandom normal values, the same in each run.

use tirx_core::ir::{DType, Minifloat};
use tirx_rt::{bf16, f16};

/// Values that are made; larger tensors repeat them.
const MADE: usize = 1 << 20;

/// Pseudorandom numbers (SplitMix64).
struct Random(u64);

impl Random {
    /// A number from 0 to 1, not 0.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ z >> 31) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A normal value, of mean 0 and variance 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.next(), self.next());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// The bits of a value in a floating-point type.
fn bits(dtype: DType, value: f64) -> Option<u64> {
    Some(match (dtype.bits, dtype.is_bfloat16()) {
        (16, true) => bf16::from_f64(value).to_bits().into(),
        (16, false) => f16::from_f64(value).to_bits().into(),
        (32, _) => (value as f32).to_bits().into(),
        (64, _) => value.to_bits(),
        _ => u64::from(Minifloat::from_type_code(dtype.code)?.encode(value as f32)),
    })
}

/// The `bytes` bytes of a tensor: normal values where it is of numbers with a fraction, else zeros, which are valid as
/// indices too. `number` tells the tensors of a kernel apart.
pub(super) fn normal(dtype: DType, bytes: usize, number: usize) -> Vec<u8> {
    let element = dtype.with_lanes(1);
    let mut random = Random(number as u64 + 1);
    let per_byte = if element.is_float4() { 2 } else { 1 };
    let size = usize::from(element.bits).div_ceil(8).max(1);
    let count = (bytes / size).min(MADE);
    if !element.is_floating() || count == 0 || bits(element, 0.0).is_none() {
        return vec![0; bytes];
    }
    let mut made = Vec::with_capacity(count * size);
    for _ in 0..count {
        let mut word = 0;
        for part in 0..per_byte {
            word |= bits(element, random.normal()).unwrap_or(0) << (4 * part);
        }
        made.extend_from_slice(&word.to_le_bytes()[..size]);
    }
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        let rest = (bytes - all.len()).min(made.len());
        all.extend_from_slice(&made[..rest]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_normal_in_each_type() {
        let read = normal("float32".parse().unwrap(), 4 * 10_000, 0);
        let values: Vec<f64> = read
            .chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        assert!(
            mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
        let half = normal("float16".parse().unwrap(), 2000, 0);
        let first = f16::from_le_bytes([half[0], half[1]]).to_f64();
        assert!((first - values[0]).abs() < 1e-2, "{first} {}", values[0]);
        assert_ne!(
            normal("float32".parse().unwrap(), 64, 0),
            normal("float32".parse().unwrap(), 64, 1)
        );
        assert_eq!(normal("int32".parse().unwrap(), 64, 0), vec![0; 64]);
        assert!(
            normal("float8_e4m3fn".parse().unwrap(), 64, 0)
                .iter()
                .any(|b| *b != 0)
        );
    }
}
