//! Numbers and the device of the tests of products.

use tirx_rt::{Device, Stream, bf16, f8e4m3, f8e5m2, f16};

/// A simulator of its own, or the first GPU with `TIRX_TEST_DEVICE=cuda`.
fn device() -> Device {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("a GPU"),
        _ => Device::new_simulator(),
    }
}

/// A stream of a simulated H100, or of the first GPU with `TIRX_TEST_DEVICE=cuda`.
pub(crate) fn stream() -> Stream {
    device().default_stream()
}

/// A stream of a simulated B200, or of the first GPU with `TIRX_TEST_DEVICE=cuda`.
#[allow(dead_code, reason = "some families have no kernels for Blackwell")]
pub(crate) fn blackwell() -> Stream {
    device().simulated_arch("sm_100a").default_stream()
}

pub(crate) trait Number: tirx_rt::Element {
    /// The most by which rounding changes a number of 1.
    const UNIT: f64;
    /// Whether it is a float of 8 bits: of a sum of their products, Hopper's tensor cores keep 13 bits behind the leading one, fewer than float32.
    const SHORT_SUMS: bool = Self::UNIT > 0.0 && size_of::<Self>() == 1;
    fn round(x: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! number {
    ($($ty:ty: $unit:expr, $round:expr, $value:expr;)*) => {$(
        impl Number for $ty {
            const UNIT: f64 = $unit;
            fn round(x: f64) -> $ty {
                $round(x)
            }
            fn value(self) -> f64 {
                $value(self)
            }
        }
    )*};
}

number! {
    bf16: 1.0 / 256.0, bf16::from_f64, bf16::to_f64;
    f16: 1.0 / 2048.0, f16::from_f64, f16::to_f64;
    f32: f32::EPSILON as f64, |x| x as f32, f64::from;
    // Numbers between -1 and 1 become integers between -64 and 64.
    i8: 0.0, |x: f64| (x * 64.0) as i8, f64::from;
    i32: 0.0, |x: f64| (x * 64.0) as i32, f64::from;
    f8e4m3: 1.0 / 8.0, |x| f8e4m3::from_f32(x as f32), |x: f8e4m3| f64::from(x.to_f32());
    f8e5m2: 1.0 / 4.0, |x| f8e5m2::from_f32(x as f32), |x: f8e5m2| f64::from(x.to_f32());
}

/// The error of a sum of products per term, for a sum of magnitudes of 1. The simulator sums in float32; a tensor core rounds a sum of 32 products
/// of 8-bit floats at once.
pub(crate) fn error_of_term<T: Number>() -> f64 {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") if T::SHORT_SUMS => 2f64.powi(-13) / 32.0,
        _ => 1e-7,
    }
}

/// Numbers between -1 and 1 that look random, multiples of 1/64.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1 << 24) * 2.0 - 1.0
    };
    (0..count).map(|_| (next() * 64.0).round() / 64.0).collect()
}
