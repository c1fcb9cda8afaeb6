//! Weights in the formats of GGUF, against their definition in float64. `TIRX_TEST_DEVICE=cuda` runs on the first GPU.

#![cfg(feature = "quant")]

use tirx_kernels::quant::{self, Element, Format, Int4, Layout, Weights};
use tirx_rt::{Device, Stream, Tensor, bf16, f4e2m1x2, f8e4m3, f8e8m0, f16};

fn stream() -> Stream {
    match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("a GPU").default_stream(),
        _ => Device::new_simulator().default_stream(),
    }
}

trait Number: Element + tirx_rt::Element {
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

fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    }
}

/// The 6-bit factor and minimum of part `j` of a block of Q4_K.
fn six_bits(scales: &[u8], j: usize) -> (f64, f64) {
    let (factor, minimum) = match j {
        0..4 => (scales[j] & 63, scales[j + 4] & 63),
        _ => (
            (scales[j + 4] & 15) | (scales[j - 4] >> 6 << 4),
            (scales[j + 4] >> 4) | (scales[j] >> 6 << 4),
        ),
    };
    (f64::from(factor), f64::from(minimum))
}

/// The numbers of a block.
fn numbers(format: Format, block: &[u8]) -> Vec<f64> {
    let half = |at: usize| f16::from_bits(u16::from_le_bytes([block[at], block[at + 1]])).to_f64();
    let signed = |byte: u8| f64::from(byte as i8);
    match format {
        Format::Q8_0 => block[2..].iter().map(|b| half(0) * signed(*b)).collect(),
        Format::Q4_K => (0..256)
            .map(|i| {
                let (factor, minimum) = six_bits(&block[4..16], i / 32);
                let byte = block[16 + i / 64 * 32 + i % 32];
                let q = if i / 32 % 2 == 0 { byte & 15 } else { byte >> 4 };
                half(0) * factor * f64::from(q) - half(2) * minimum
            })
            .collect(),
        _ => (0..256)
            .map(|i| {
                let (side, quarter, l) = (i / 128, i / 32 % 4, i % 32);
                let low = block[side * 64 + quarter % 2 * 32 + l];
                let low = if quarter < 2 { low & 15 } else { low >> 4 };
                let high = block[128 + side * 32 + l] >> (quarter * 2) & 3;
                let factor = signed(block[192 + side * 8 + quarter * 2 + l / 16]);
                half(208) * factor * (f64::from(low | high << 4) - 32.0)
            })
            .collect(),
    }
}

/// Random bytes, with float16 factors of a sensible size.
fn weights(format: Format, outputs: usize, columns: usize) -> (Vec<u8>, Vec<f64>) {
    let (of_block, halves): (usize, &[usize]) = match format {
        Format::Q8_0 => (34, &[0]),
        Format::Q4_K => (144, &[0, 2]),
        _ => (210, &[208]),
    };
    let mut next = random(outputs as u64 + 7);
    let mut bytes = Vec::new();
    let mut exact = Vec::new();
    while exact.len() < outputs * columns {
        let mut block: Vec<u8> = (0..of_block).map(|_| (next() >> 13) as u8).collect();
        for at in halves {
            let factor = f16::from_f64(f64::from(next() % 1000) / 1e5 - 0.002);
            block[*at..*at + 2].copy_from_slice(&factor.to_le_bytes());
        }
        exact.extend(numbers(format, &block));
        bytes.extend(block);
    }
    (bytes, exact)
}

fn check<T: Number>(format: Format, rows: usize, outputs: usize, columns: usize, gap: usize) {
    let stream = stream();
    let (bytes, exact) = weights(format, outputs, columns);
    let of_row = bytes.len() / outputs;
    let weights = Tensor::from_slice(&stream, &bytes, [outputs, of_row]).unwrap();
    check_weights::<T>(
        &stream,
        Weights::Gguf(format, &weights),
        &exact,
        [rows, outputs, columns],
        gap,
    );
}

fn check_weights<T: Number>(
    stream: &Stream,
    weights: Weights<'_>,
    exact: &[f64],
    [rows, outputs, columns]: [usize; 3],
    gap: usize,
) {
    let mut y = Tensor::<T>::full(stream, T::round(7.0), [outputs, columns]).unwrap();
    quant::dequantize(stream, weights, &mut y).unwrap_or_else(|e| panic!("{e}"));
    for (i, y) in y.to_vec().unwrap().iter().enumerate() {
        let bound = exact[i].abs() * T::UNIT + 1e-6;
        assert!(
            (y.value() - exact[i]).abs() <= bound,
            "{weights:?}, weight {i}: {}, not {}",
            y.value(),
            exact[i]
        );
    }

    let mut next = random(3);
    let x: Vec<f64> = (0..rows * columns)
        .map(|_| f64::from(next() % 129) / 64.0 - 1.0)
        .collect();
    let mut memory = vec![T::round(9.0); rows * (columns + gap)];
    for (i, x) in x.iter().enumerate() {
        memory[i / columns * (columns + gap) + i % columns] = T::round(*x);
    }
    let memory = Tensor::from_slice(stream, &memory, [rows, columns + gap]).unwrap();
    let mut y = Tensor::<T>::full(stream, T::round(7.0), [rows, outputs + 3]).unwrap();
    let x_view = memory.slice(1, 0..columns).unwrap();
    quant::matmul(stream, &x_view, weights, &mut y.slice_mut(1, 0..outputs).unwrap())
        .unwrap_or_else(|e| panic!("{e}"));
    let y = y.to_vec().unwrap();
    for m in 0..rows {
        for n in 0..outputs {
            let products = (0..columns).map(|k| x[m * columns + k] * exact[n * columns + k]);
            let (sum, size) = products.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + f64::abs(p)));
            let found = y[m * (outputs + 3) + n].value();
            let bound = T::UNIT * f64::abs(sum) + size * 1e-5 + 1e-6;
            assert!(
                (found - sum).abs() <= bound,
                "{weights:?}, row {m}, output {n}: {found}, not {sum}"
            );
        }
        assert!(
            y[m * (outputs + 3) + outputs..][..3]
                .iter()
                .all(|x| x.value() == 7.0)
        );
    }
}

#[test]
fn four_bits_in_the_layouts_of_gptq_and_awq() {
    let stream = stream();
    for (layout, [outputs, columns, groups]) in [
        (Layout::Gptq, [8, 32, 1]),
        (Layout::Gptq, [24, 512, 4]),
        (Layout::Awq, [16, 256, 8]),
        (Layout::Awq, [8, 1152, 9]),
        (Layout::Awq, [8, 64, 4]),
        (Layout::Awq, [24, 576, 6]),
        (Layout::Gptq, [8, 768, 2]),
        (Layout::Gptq, [40, 1152, 18]),
        (Layout::Awq, [72, 2304, 9]),
    ] {
        let mut next = random(columns as u64);
        let numbers: Vec<u32> = (0..outputs * columns).map(|_| next() >> 7 & 15).collect();
        let zeros: Vec<u32> = (0..outputs * groups).map(|_| (next() >> 7 & 15).max(1)).collect();
        let scales: Vec<f16> = (0..groups * outputs)
            .map(|_| f16::from_f64(f64::from(next() % 100) / 1000.0))
            .collect();
        // As the two libraries store them: `[outputs, columns]` to words of eight numbers.
        let order = [0, 2, 4, 6, 1, 3, 5, 7];
        let word = |of: &dyn Fn(usize) -> u32| (0..8).fold(0, |word, i| word | of(i) << (4 * i)) as i32;
        let (mut qweight, mut qzeros) = (Vec::new(), Vec::new());
        match layout {
            Layout::Gptq => {
                for k in 0..columns / 8 {
                    qweight.extend((0..outputs).map(|n| word(&|i| numbers[n * columns + k * 8 + i])));
                }
                for g in 0..groups {
                    qzeros.extend((0..outputs / 8).map(|n| word(&|i| zeros[(n * 8 + i) * groups + g] - 1)));
                }
            }
            Layout::Awq => {
                for k in 0..columns {
                    qweight.extend(
                        (0..outputs / 8).map(|n| word(&|i| numbers[(n * 8 + order[i]) * columns + k])),
                    );
                }
                for g in 0..groups {
                    qzeros
                        .extend((0..outputs / 8).map(|n| word(&|i| zeros[(n * 8 + order[i]) * groups + g])));
                }
            }
        }
        let weights = Int4::from_layout(
            &stream,
            layout,
            [outputs, columns, groups],
            &qweight,
            &qzeros,
            &scales,
        )
        .unwrap();
        let exact: Vec<f64> = (0..outputs * columns)
            .map(|i| {
                let (n, g) = (i / columns, i % columns / (columns / groups));
                (f64::from(numbers[i]) - f64::from(zeros[n * groups + g])) * scales[g * outputs + n].to_f64()
            })
            .collect();
        check_weights::<bf16>(&stream, Weights::Int4(&weights), &exact, [1, outputs, columns], 0);
        check_weights::<f16>(&stream, Weights::Int4(&weights), &exact, [1, outputs, columns], 0);
        check_weights::<f16>(&stream, Weights::Int4(&weights), &exact, [5, outputs, columns], 8);
    }
    let error =
        Int4::from_layout(&stream, Layout::Awq, [8, 12, 1], &[0; 12], &[0], &[f16::ONE; 8]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("8 outputs (a multiple of 8) and 12 columns"),
        "{error}"
    );
}

#[test]
fn float8_with_factors_of_rows_and_groups() {
    let stream = stream();
    for [outputs, columns, groups] in [
        [5, 64, 1],
        [9, 1024, 8],
        [2, 264, 1],
        [21, 320, 5],
        [6, 96, 3],
        [18, 96, 3],
        [50, 2304, 1],
    ] {
        let mut next = random(columns as u64);
        let values: Vec<f8e4m3> = (0..outputs * columns)
            .map(|_| match next() as u8 {
                0x7F | 0xFF => f8e4m3::from_f32(-448.0),
                bits => f8e4m3::from_bits(bits),
            })
            .collect();
        let scales: Vec<f32> = (0..outputs * groups)
            .map(|_| (next() % 100) as f32 / 5000.0)
            .collect();
        let exact: Vec<f64> = (0..outputs * columns)
            .map(|i| {
                f64::from(values[i].to_f32())
                    * f64::from(scales[i / columns * groups + i % columns / (columns / groups)])
            })
            .collect();
        let values = Tensor::from_slice(&stream, &values, [outputs, columns]).unwrap();
        let scales = Tensor::from_slice(&stream, &scales, [outputs, groups]).unwrap();
        check_weights::<bf16>(
            &stream,
            Weights::Fp8(&values, &scales),
            &exact,
            [1, outputs, columns],
            0,
        );
        for rows in [1, 3, 11] {
            check_weights::<f16>(
                &stream,
                Weights::Fp8(&values, &scales),
                &exact,
                [rows, outputs, columns],
                0,
            );
        }
    }
}

/// The values of the eight float4 from 0 on; eight more have the other sign.
const FLOAT4: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

#[test]
fn float4_with_a_power_of_two_for_32_columns() {
    let stream = stream();
    for [outputs, columns] in [[5, 32], [9, 1024], [2, 288], [21, 320], [33, 2080], [64, 4352]] {
        let mut next = random(columns as u64);
        let bytes: Vec<u8> = (0..outputs * columns / 2).map(|_| (next() >> 9) as u8).collect();
        let powers: Vec<u8> = (0..outputs * columns / 32)
            .map(|_| 115 + (next() >> 9) as u8 % 16)
            .collect();
        let exact: Vec<f64> = (0..outputs * columns)
            .map(|i| {
                let four = bytes[i / 2] >> (i % 2 * 4) & 15;
                let sign = if four & 8 == 0 { 1.0 } else { -1.0 };
                sign * FLOAT4[usize::from(four & 7)] * f64::from(i32::from(powers[i / 32]) - 127).exp2()
            })
            .collect();
        let bytes: Vec<f4e2m1x2> = bytes.iter().map(|b| f4e2m1x2::from_bits(*b)).collect();
        let powers: Vec<f8e8m0> = powers.iter().map(|b| f8e8m0::from_bits(*b)).collect();
        let bytes = Tensor::from_slice(&stream, &bytes, [outputs, columns / 2]).unwrap();
        let powers = Tensor::from_slice(&stream, &powers, [outputs, columns / 32]).unwrap();
        let weights = Weights::Mxfp4(&bytes, &powers);
        check_weights::<bf16>(&stream, weights, &exact, [1, outputs, columns], 0);
        for rows in [1, 3, 11] {
            check_weights::<f16>(&stream, weights, &exact, [rows, outputs, columns], 8);
        }
    }
    // Powers at the ends of their range: 2^-127 is subnormal, and the last number is none.
    let four = Tensor::from_slice(&stream, &[f4e2m1x2::from_bits(0x22); 48], [1, 48]).unwrap();
    let powers = [0, 254, 255].map(f8e8m0::from_bits);
    let powers = Tensor::from_slice(&stream, &powers, [1, 3]).unwrap();
    let mut y = Tensor::<bf16>::zeros(&stream, [1, 96]).unwrap();
    quant::dequantize(&stream, Weights::Mxfp4(&four, &powers), &mut y).unwrap();
    let y = y.to_vec().unwrap();
    assert_eq!([y[0].to_f64(), y[32].to_f64()], [(-127f64).exp2(), 127f64.exp2()]);
    assert!(y[64].is_nan());

    let wrong = |columns: usize, groups: usize| {
        let bytes = Tensor::<f4e2m1x2>::zeros(&stream, [2, columns / 2]).unwrap();
        let powers = Tensor::<f8e8m0>::zeros(&stream, [2, groups]).unwrap();
        let x = Tensor::<bf16>::zeros(&stream, [1, columns]).unwrap();
        let mut y = Tensor::zeros(&stream, [1, 2]).unwrap();
        quant::matmul(&stream, &x, Weights::Mxfp4(&bytes, &powers), &mut y)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        wrong(48, 1),
        "rows of MXFP4 have a multiple of 32 weights, not 48"
    );
    assert_eq!(
        wrong(64, 1),
        "scales of MXFP4 have the shape [2, 2], one for each 32 columns; their shape is [2, 1]"
    );
}

#[test]
fn blocks_agree_with_their_definition() {
    for format in [Format::Q8_0, Format::Q4_K, Format::Q6_K] {
        check::<bf16>(format, 1, 5, 256, 0);
        check::<f16>(format, 1, 1, 2816, 8);
        check::<bf16>(format, 3, 18, 512, 0);
        check::<f16>(format, 16, 7, 1024, 16);
        check::<bf16>(format, 9, 300, 256, 0);
    }
    check::<f16>(Format::Q8_0, 2, 3, 32, 0);
    // One row of X, with units of 16 outputs: whole and the last one; more columns than have place in shared memory.
    for format in [Format::Q8_0, Format::Q4_K, Format::Q6_K] {
        check::<bf16>(format, 1, 48, 4096, 0);
        check::<f16>(format, 1, 37, 2304, 8);
        check::<bf16>(format, 1, 17, 14_592, 0);
    }
    // More rows than the blocks take at a time.
    check::<f16>(Format::Q8_0, 2, 34_000, 32, 0);
    check::<bf16>(Format::Q8_0, 1, 34_000, 32, 0);
    check::<bf16>(Format::Q8_0, 1, 9, 288, 0);
}

#[test]
fn rows_of_blocks_begin_anywhere() {
    let stream = stream();
    for (format, [before, after]) in [
        (Format::Q4_K, [4, 0]),
        (Format::Q4_K, [0, 12]),
        (Format::Q4_K, [16, 32]),
        (Format::Q6_K, [2, 0]),
        (Format::Q8_0, [0, 2]),
        (Format::Q8_0, [4, 0]),
        (Format::Q6_K, [4, 0]),
        (Format::Q6_K, [0, 4]),
    ] {
        for rows in [1, 4] {
            let (bytes, exact) = weights(format, 19, 512);
            let of_row = bytes.len() / 19;
            let wide: Vec<u8> = bytes
                .chunks(of_row)
                .flat_map(|row| [&vec![255; before], row, &vec![255; after]].concat())
                .collect();
            let wide = Tensor::from_slice(&stream, &wide, [19, before + of_row + after]).unwrap();
            let view = wide.slice(1, before..before + of_row).unwrap();
            check_weights::<bf16>(&stream, Weights::Gguf(format, &view), &exact, [rows, 19, 512], 0);
        }
    }
}

#[test]
fn empty_and_wrong_shapes() {
    let stream = stream();
    let zeros = |shape: [usize; 2]| Tensor::<bf16>::zeros(&stream, shape).unwrap();
    let bytes = |shape: [usize; 2]| Tensor::<u8>::zeros(&stream, shape).unwrap();
    let run = |x: [usize; 2], w: [usize; 2], y: [usize; 2]| {
        quant::matmul(
            &stream,
            &zeros(x),
            Weights::Gguf(Format::Q4_K, &bytes(w)),
            &mut zeros(y),
        )
    };
    run([0, 256], [4, 144], [0, 4]).unwrap();
    run([2, 256], [0, 144], [2, 0]).unwrap();
    run([2, 0], [4, 0], [2, 4]).unwrap();
    let message = |x, w, y| run(x, w, y).unwrap_err().to_string();
    assert_eq!(
        message([2, 128], [4, 72], [2, 4]),
        "rows of Q4_K have a multiple of 256 weights, not 128"
    );
    assert_eq!(
        message([2, 256], [4, 143], [2, 4]),
        "4 rows of 256 weights in Q4_K have the shape [4, 144] in bytes, not [4, 143]"
    );
    assert_eq!(message([2, 256], [4, 144], [3, 4]), "X has 2 rows and Y has 3");
    for extents in [[1 << 40, 1 << 40, 1], [8, 8, usize::MAX]] {
        let layout = quant::Layout::Awq;
        let error = quant::Int4::from_layout(&stream, layout, extents, &[], &[], &[]).unwrap_err();
        assert!(error.to_string().contains("there are 0, 0 and 0"), "{error}");
    }
}
