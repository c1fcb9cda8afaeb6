//! The cases: kernels, sizes, inputs and references.

use tirx_core::ir::{DType, Minifloat, TypeCode};

use super::{Case, Row, Sizes, Tensor};

const HOPPER: &str = "sm_90a";
const BLACKWELL: &str = "sm_100a";

/// Small values whose products and sums are exact, different for each element.
fn pattern(i: usize) -> f32 {
    let mixed = (i as u32).wrapping_mul(2654435761) >> 13;
    (mixed % 7) as f32 - 3.0
}

/// The same in quarters, of another order.
fn other(i: usize) -> f32 {
    let mixed = (i as u32).wrapping_mul(2246822519).wrapping_add(374761393) >> 12;
    ((mixed % 9) as f32 - 4.0) / 4.0
}

fn zero(_: usize) -> f32 {
    0.0
}

const fn tensor(
    name: &'static str,
    dtype: DType,
    shape: fn(&Sizes) -> Vec<i64>,
    value: fn(usize) -> f32,
) -> Tensor {
    Tensor {
        name,
        dtype,
        shape,
        value,
    }
}

/// A row of A B, where B is K×N, or N×K.
fn product(s: &Sizes, values: &[Vec<f32>], row: usize, turned: bool) -> Vec<f64> {
    let (n, k) = (s["N"] as usize, s["K"] as usize);
    let a = &values[0][row * k..(row + 1) * k];
    let mut out = vec![0.0; n];
    if turned {
        for (col, out) in out.iter_mut().enumerate() {
            let b = &values[1][col * k..(col + 1) * k];
            *out = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        }
    } else {
        for (i, a) in a.iter().enumerate() {
            for (out, b) in out.iter_mut().zip(&values[1][i * n..(i + 1) * n]) {
                *out += f64::from(*a) * f64::from(*b);
            }
        }
    }
    out
}

fn product_by_rows(s: &Sizes, values: &[Vec<f32>], row: usize) -> Vec<f64> {
    product(s, values, row, false)
}

fn product_by_columns(s: &Sizes, values: &[Vec<f32>], row: usize) -> Vec<f64> {
    product(s, values, row, true)
}

fn gemm_operations(s: &Sizes) -> f64 {
    2.0 * s["M"] as f64 * s["N"] as f64 * s["K"] as f64
}

fn m_k(s: &Sizes) -> Vec<i64> {
    vec![s["M"], s["K"]]
}

fn k_n(s: &Sizes) -> Vec<i64> {
    vec![s["K"], s["N"]]
}

fn n_k(s: &Sizes) -> Vec<i64> {
    vec![s["N"], s["K"]]
}

fn m_n(s: &Sizes) -> Vec<i64> {
    vec![s["M"], s["N"]]
}

fn m_32(s: &Sizes) -> Vec<i64> {
    vec![s["M"], 32]
}

fn attention_shape(s: &Sizes) -> Vec<i64> {
    vec![s["H"] * s["S"], 128]
}

/// Queries, keys and values: eighths from -1 to 1.
fn eighths(i: usize) -> f32 {
    let mixed = (i as u32).wrapping_mul(2654435761) >> 11;
    ((mixed % 17) as f32 - 8.0) / 8.0
}

fn more_eighths(i: usize) -> f32 {
    eighths(i ^ 0x5_a5a5)
}

fn attention_row(s: &Sizes, values: &[Vec<f32>], row: usize) -> Vec<f64> {
    let length = s["S"] as usize;
    let first = row / length * length;
    let line = |tensor: usize, row: usize| &values[tensor][row * 128..(row + 1) * 128];
    let query = line(0, row);
    let scores: Vec<f64> = (0..length)
        .map(|key| {
            let dot = query
                .iter()
                .zip(line(1, first + key))
                .map(|(q, k)| f64::from(*q) * f64::from(*k));
            dot.sum::<f64>() / 128f64.sqrt()
        })
        .collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut out = vec![0.0; 128];
    for (key, weight) in weights.iter().enumerate() {
        for (out, v) in out.iter_mut().zip(line(2, first + key)) {
            *out += weight * f64::from(*v) / total;
        }
    }
    out
}

/// Scale factors: 1/2, 1 and 2.
fn power(i: usize) -> f32 {
    [0.5, 1.0, 2.0][(i as u32).wrapping_mul(2654435761) as usize % 7 % 3]
}

/// A row of A B^T where 32 elements of a row share a factor.
fn scaled_row(s: &Sizes, values: &[Vec<f32>], row: usize) -> Vec<f64> {
    let (n, k) = (s["N"] as usize, s["K"] as usize);
    let factor = |factors: &[f32], row: usize, at: usize| {
        let tile = row / 128 * (k / 128) + at / 128;
        factors[tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + at % 128 / 32]
    };
    let element = |matrix: usize, row: usize, at: usize| {
        f64::from(values[matrix][row * k + at]) * f64::from(factor(&values[matrix + 2], row, at))
    };
    let a: Vec<f64> = (0..k).map(|at| element(0, row, at)).collect();
    (0..n)
        .map(|col| (0..k).map(|at| a[at] * element(1, col, at)).sum())
        .collect()
}

/// Two elements of four bits.
fn code(i: usize) -> f32 {
    ((i as u32).wrapping_mul(2654435761) >> 24) as f32
}

/// A row of A B^T of elements of four bits, two in a byte, of which 16 share a factor.
fn packed_row(s: &Sizes, values: &[Vec<f32>], row: usize) -> Vec<f64> {
    let (n, k) = (s["N"] as usize, s["K"] as usize);
    let factor = |factors: &[f32], row: usize, at: usize| {
        let tile = row / 128 * (k / 64) + at / 64;
        factors[tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + at % 64 / 16]
    };
    let element = |matrix: usize, row: usize, at: usize| {
        let byte = values[matrix][(row * k + at) / 2] as u32;
        let value = Minifloat::from_type_code(TypeCode::Float4_e2m1fn)
            .map_or(0.0, |mini| mini.decode(byte >> (at % 2 * 4) & 15));
        f64::from(value * factor(&values[matrix + 2], row, at))
    };
    let a: Vec<f64> = (0..k).map(|at| element(0, row, at)).collect();
    (0..n)
        .map(|col| (0..k).map(|at| a[at] * element(1, col, at)).sum())
        .collect()
}

const U8: DType = DType::scalar(TypeCode::UInt, 8);
const E4M3: DType = DType::scalar(TypeCode::Float8_e4m3fn, 8);
const E8M0: DType = DType::scalar(TypeCode::Float8_e8m0fnu, 8);
const BF16: DType = DType::BFLOAT16;
const F32: DType = DType::FLOAT32;

type Values = &'static [(&'static str, i64)];

/// A file of kernels.
struct Source {
    file: &'static str,
    text: &'static str,
}

macro_rules! source {
    ($file:literal) => {
        Source {
            file: $file,
            text: include_str!(concat!("../../../", $file)),
        }
    };
}

const TENSOR_CORES: Source = source!("kernels/tensor_cores.py");
const HOPPER_GEMM: Source = source!("kernels/hopper.py");
const HOPPER_TILES: Source = source!("kernels/hopper_tiles.py");
const HOPPER_ATTENTION: Source = source!("kernels/hopper_attention.py");
const ATTENTION: Source = source!("kernels/attention.py");
const BLACKWELL_GEMM: Source = source!("kernels/blackwell.py");
const BLACKWELL_ATTENTION: Source = source!("kernels/blackwell_attention.py");
const PIPELINES: Source = source!("kernels/pipelines.py");

const CUBE_1024: Values = &[("M", 1024), ("N", 1024), ("K", 1024)];
const CUBE_8192: Values = &[("M", 8192), ("N", 8192), ("K", 8192)];

/// A product of matrices.
const fn product_case(
    entry: &'static str,
    source: Source,
    arch: &'static str,
    small: Values,
    tensors: &'static [Tensor],
    row: Row,
) -> Case {
    Case {
        entry,
        file: source.file,
        text: source.text,
        arch,
        sizes: [small, CUBE_1024, CUBE_8192],
        tensors,
        scalar: None,
        row,
        tolerance: 0.0,
        operations: gemm_operations,
    }
}

/// C = A B^T in bfloat16.
const fn gemm(entry: &'static str, source: Source, arch: &'static str, small: Values) -> Case {
    const TENSORS: &[Tensor] = &[
        tensor("A", BF16, m_k, pattern),
        tensor("B", BF16, n_k, other),
        tensor("C", BF16, m_n, zero),
    ];
    product_case(entry, source, arch, small, TENSORS, product_by_columns)
}

/// Attention with heads of 128 elements.
const fn attention(entry: &'static str, source: Source, arch: &'static str, small: Values) -> Case {
    const TENSORS: &[Tensor] = &[
        tensor("Q", BF16, attention_shape, eighths),
        tensor("K", BF16, attention_shape, more_eighths),
        tensor("V", BF16, attention_shape, other),
        tensor("O", BF16, attention_shape, zero),
    ];
    Case {
        entry,
        file: source.file,
        text: source.text,
        arch,
        sizes: [small, &[("H", 4), ("S", 1024)], &[("H", 64), ("S", 8192)]],
        tensors: TENSORS,
        scalar: None,
        row: attention_row,
        tolerance: 4e-3,
        operations: |s| 4.0 * s["H"] as f64 * s["S"] as f64 * s["S"] as f64 * 128.0,
    }
}

/// A product of float32 matrices, of which B is K×N.
const FLOAT32: &[Tensor] = &[
    tensor("A", F32, m_k, pattern),
    tensor("B", F32, k_n, other),
    tensor("C", F32, m_n, zero),
];

/// All cases.
pub static CASES: &[Case] = &[
    Case {
        sizes: [
            &[("M", 64), ("N", 128), ("K", 96)],
            &[("M", 512), ("N", 512), ("K", 512)],
            &[("M", 4096), ("N", 4096), ("K", 4096)],
        ],
        ..product_case(
            "matmul_cp_async",
            TENSOR_CORES,
            HOPPER,
            CUBE_1024,
            FLOAT32,
            product_by_rows,
        )
    },
    product_case(
        "matmul_mma",
        TENSOR_CORES,
        HOPPER,
        &[("M", 128), ("N", 128), ("K", 160)],
        &[
            tensor("A", BF16, m_k, pattern),
            tensor("B", BF16, n_k, other),
            tensor("C", F32, m_n, zero),
        ],
        product_by_columns,
    ),
    // Two tiles for one block: stages are reused within and across tiles.
    gemm(
        "gemm_wgmma",
        HOPPER_GEMM,
        HOPPER,
        &[("M", 256), ("N", 256), ("K", 320), ("CTAS", 1)],
    ),
    gemm(
        "gemm_tiles",
        HOPPER_TILES,
        HOPPER,
        &[("M", 256), ("N", 256), ("K", 320), ("CTAS", 1)],
    ),
    gemm(
        "gemm_clusters",
        HOPPER_GEMM,
        HOPPER,
        &[("M", 256), ("N", 512), ("K", 320), ("CLUSTERS", 1)],
    ),
    gemm(
        "gemm_tcgen05",
        BLACKWELL_GEMM,
        BLACKWELL,
        &[("M", 128), ("N", 128), ("K", 320)],
    ),
    gemm(
        "gemm_pairs",
        BLACKWELL_GEMM,
        BLACKWELL,
        &[("M", 256), ("N", 256), ("K", 320), ("STAGES", 3)],
    ),
    product_case(
        "gemm_mxfp8",
        BLACKWELL_GEMM,
        BLACKWELL,
        &[("M", 128), ("N", 128), ("K", 640), ("STAGES", 3)],
        &[
            tensor("A", E4M3, m_k, pattern),
            tensor("B", E4M3, n_k, other),
            tensor("SA", E8M0, |s| vec![s["M"] / 128 * (s["K"] / 128), 512], power),
            tensor("SB", E8M0, |s| vec![s["N"] / 128 * (s["K"] / 128), 512], power),
            tensor("C", F32, m_n, zero),
        ],
        scaled_row,
    ),
    product_case(
        "gemm_nvfp4",
        BLACKWELL_GEMM,
        BLACKWELL,
        &[("M", 128), ("N", 128), ("K", 768), ("STAGES", 2)],
        &[
            tensor("A", U8, |s| vec![s["M"], s["K"] / 2], code),
            tensor("B", U8, |s| vec![s["N"], s["K"] / 2], code),
            tensor("SA", E4M3, |s| vec![s["M"] / 128 * (s["K"] / 64), 512], power),
            tensor("SB", E4M3, |s| vec![s["N"] / 128 * (s["K"] / 64), 512], power),
            tensor("C", F32, m_n, zero),
        ],
        packed_row,
    ),
    attention("attention", ATTENTION, HOPPER, &[("H", 1), ("S", 384)]),
    attention(
        "hopper_attention",
        HOPPER_ATTENTION,
        HOPPER,
        // Four tiles of keys: each of the two slots is used again.
        &[("H", 1), ("S", 512)],
    ),
    attention(
        "blackwell_attention",
        BLACKWELL_ATTENTION,
        BLACKWELL,
        &[("H", 1), ("S", 512)],
    ),
    Case {
        entry: "scale_tma",
        file: PIPELINES.file,
        text: PIPELINES.text,
        arch: HOPPER,
        sizes: [&[("M", 1024)], &[("M", 1 << 16)], &[("M", 1 << 22)]],
        tensors: &[tensor("X", F32, m_32, pattern), tensor("Y", F32, m_32, zero)],
        scalar: Some(("alpha", 2.5)),
        row: |_, values, row| {
            let x = &values[0][row * 32..(row + 1) * 32];
            x.iter().map(|x| f64::from(*x) * 2.5).collect()
        },
        tolerance: 0.0,
        operations: |s| s["M"] as f64 * 32.0,
    },
    Case {
        entry: "sum_rows_cluster",
        file: PIPELINES.file,
        text: PIPELINES.text,
        arch: HOPPER,
        sizes: [
            &[("ROWS", 3), ("N", 1024)],
            &[("ROWS", 64), ("N", 4096)],
            &[("ROWS", 1024), ("N", 1 << 16)],
        ],
        tensors: &[
            tensor("A", F32, |s| vec![s["ROWS"], s["N"]], pattern),
            tensor("S", F32, |s| vec![s["ROWS"]], zero),
        ],
        scalar: None,
        row: |s, values, row| {
            let n = s["N"] as usize;
            vec![
                values[0][row * n..(row + 1) * n]
                    .iter()
                    .map(|v| f64::from(*v))
                    .sum(),
            ]
        },
        tolerance: 0.0,
        operations: |s| s["ROWS"] as f64 * s["N"] as f64,
    },
    Case {
        sizes: [
            &[("M", 64), ("N", 32), ("K", 256)],
            &[("M", 256), ("N", 256), ("K", 1024)],
            &[("M", 1024), ("N", 1024), ("K", 4096)],
        ],
        ..product_case(
            "matmul_split_k",
            PIPELINES,
            HOPPER,
            CUBE_1024,
            FLOAT32,
            product_by_rows,
        )
    },
];
