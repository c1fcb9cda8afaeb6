//! Numbers, and tensors with gaps between their rows.

use tirx_rt::{Device, Stream, Tensor, bf16, f16};

pub(crate) fn stream() -> Stream {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("a GPU").default_stream(),
        _ => Device::new_simulator().default_stream(),
    }
}

/// An element type, with the largest relative error of its rounding.
pub(crate) trait Number: tirx_kernels::Element + tirx_rt::Element {
    const UNIT: f64;
    fn round(x: f64) -> Self;
    fn value(self) -> f64;
}

impl Number for bf16 {
    const UNIT: f64 = 1.0 / 256.0;
    fn round(x: f64) -> bf16 {
        bf16::from_f64(x)
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Number for f16 {
    const UNIT: f64 = 1.0 / 2048.0;
    fn round(x: f64) -> f16 {
        f16::from_f64(x)
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Number for f32 {
    const UNIT: f64 = 2e-6;
    fn round(x: f64) -> f32 {
        x as f32
    }
    fn value(self) -> f64 {
        f64::from(self)
    }
}

/// A function over the three element types, run for each.
#[macro_export]
macro_rules! for_each_type {
    ($function:ident($($argument:expr),*)) => {
        $function::<tirx_rt::bf16>($($argument),*);
        $function::<tirx_rt::f16>($($argument),*);
        $function::<f32>($($argument),*);
    };
}

/// Numbers between -1 and 1 that look random, of steps that every element type has.
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

/// A tensor that holds rows with other elements before and behind each of them.
pub(crate) struct Rows<T: Number> {
    pub(crate) memory: Tensor<T>,
    shape: Vec<usize>,
    before: usize,
    behind: usize,
}

const GAP: f64 = 96.0;

impl<T: Number> Rows<T> {
    /// The values in a tensor of this shape, each row `before` elements behind the end of the last one plus `behind`.
    pub(crate) fn new(
        stream: &Stream,
        values: &[f64],
        shape: &[usize],
        [before, behind]: [usize; 2],
    ) -> Rows<T> {
        let columns = *shape.last().unwrap();
        let stride = before + columns + behind;
        let rows: usize = shape[..shape.len() - 1].iter().product();
        let mut all = vec![T::round(GAP); rows * stride];
        for (i, value) in values.iter().enumerate() {
            all[i / columns * stride + before + i % columns] = T::round(*value);
        }
        let mut outer = shape.to_vec();
        *outer.last_mut().unwrap() = stride;
        Rows {
            memory: Tensor::from_slice(stream, &all, outer).unwrap(),
            shape: shape.to_vec(),
            before,
            behind,
        }
    }

    /// The range of the last dimension that has the values.
    fn range(&self) -> std::ops::Range<usize> {
        self.before..self.before + self.shape.last().unwrap()
    }

    pub(crate) fn view(&self) -> tirx_rt::View<'_, T> {
        self.memory.slice(self.shape.len() - 1, self.range()).unwrap()
    }

    pub(crate) fn view_mut(&mut self) -> tirx_rt::ViewMut<'_, T> {
        let range = self.range();
        self.memory.slice_mut(self.shape.len() - 1, range).unwrap()
    }

    /// The values, after a check that the gaps are untouched.
    pub(crate) fn values(&self) -> Vec<f64> {
        let all = self.memory.to_vec().unwrap();
        let columns = *self.shape.last().unwrap();
        let stride = self.before + columns + self.behind;
        let mut values = Vec::new();
        for (i, x) in all.iter().enumerate() {
            match self.range().contains(&(i % stride)) {
                true => values.push(x.value()),
                false => assert_eq!(x.value(), GAP, "element {i} is between rows"),
            }
        }
        values
    }
}

/// Shapes with the elements before and behind each row: single, odd, vectors with and without a tail, several vectors, longer than the
/// registers, and misaligned.
pub(crate) const CASES: &[(&[usize], [usize; 2])] = &[
    (&[1], [0, 0]),
    (&[7], [0, 0]),
    (&[3, 1], [0, 0]),
    (&[5, 64], [0, 0]),
    (&[5, 37], [0, 3]),
    (&[3, 64], [8, 8]),
    (&[3, 72], [1, 2]),
    (&[2, 3, 128], [0, 16]),
    (&[2, 1, 3, 40], [0, 0]),
    (&[2, 1100], [0, 0]),
    (&[1, 2053], [3, 0]),
    (&[2, 17000], [0, 0]),
    (&[1, 17001], [8, 7]),
];

/// Compares values with exact ones, within `unit` of the size that is given for each.
pub(crate) fn close(found: &[f64], exact: impl Fn(usize) -> (f64, f64), unit: f64) {
    for (i, found) in found.iter().enumerate() {
        let (exact, size) = exact(i);
        let bound = unit * (exact.abs() + size) + 1e-7;
        assert!(
            (found - exact).abs() <= bound,
            "element {i}: {found}, not {exact} (bound {bound})"
        );
    }
}
