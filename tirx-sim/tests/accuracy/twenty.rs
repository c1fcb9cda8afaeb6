//! Kernels whose errors are known: each row has a kernel, and a function that computes its result twice in plain Rust, with each step
//! rounded as the kernel's dtypes say, and without rounding.
//!
//! The inputs have 24 significant bits of magnitudes close to one another, so double precision holds the sums and products exactly, up to
//! the tolerance of the row.

use half::{bf16, f16};

use crate::{HEAD, Ran, numbers, relative, run};

/// A result, as the kernel rounds it (if Rust has the same functions) and without rounding.
struct Both {
    rounded: Option<Vec<f32>>,
    exact: Vec<f64>,
}

/// What the row of the table for the last line must say, beside its largest total error.
#[derive(Clone, Copy)]
struct Counts {
    overflows: u64,
    underflows: u64,
    /// Bits cancelled, at least.
    cancelled: u32,
}

const CLEAN: Counts = Counts {
    overflows: 0,
    underflows: 0,
    cancelled: 0,
};

struct Row {
    name: &'static str,
    /// The body, which reads `A` and writes `B`; thread 0 runs it.
    body: &'static str,
    inputs: fn() -> Vec<f32>,
    both: fn(&[f32]) -> Both,
    /// The text of the line that makes the result.
    line: &'static str,
    /// How far a shadow may be from the exact result, relatively: what the function loses in double precision.
    tolerance: f64,
    counts: Counts,
}

/// Sums and their like.
fn offset() -> Vec<f32> {
    numbers(512).iter().map(|v| v + 1.25).collect()
}

/// A large mean and a small variance.
fn far() -> Vec<f32> {
    numbers(256).iter().map(|v| v + 300.0).collect()
}

fn sum(values: &[f32]) -> f64 {
    values.iter().copied().map(f64::from).sum()
}

fn both(rounded: Vec<f32>, exact: Vec<f64>) -> Both {
    Both {
        rounded: Some(rounded),
        exact,
    }
}

fn f16_of(value: f32) -> f32 {
    f16::from_f32(value).to_f32()
}

fn bf16_of(value: f32) -> f32 {
    bf16::from_f32(value).to_f32()
}

/// The variance in exact arithmetic: inputs are whole multiples of 2^-23, and so the sums of their squares fit in 128 bits.
fn variance(values: &[f32]) -> f64 {
    let scale = f64::from(1u32 << 23);
    let whole: Vec<i128> = values.iter().map(|v| (f64::from(*v) * scale) as i128).collect();
    let n = whole.len() as i128;
    let (total, squares) = whole.iter().fold((0, 0), |(t, q), v| (t + v, q + v * v));
    (n * squares - total * total) as f64 / (n * n) as f64 / scale / scale
}

const ROWS: &[Row] = &[
    Row {
        name: "pairwise sum",
        body: "
        for step in range(9):
            for i in range(256 >> step):
                W[i] = W[2 * i] + W[2 * i + 1]
        B[0] = W[0]",
        inputs: offset,
        both: |a| {
            let mut w = a.to_vec();
            while w.len() > 1 {
                w = w.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            }
            both(w, vec![sum(a)])
        },
        line: "W[2 * i] + W[2 * i + 1]",
        tolerance: 1e-15,
        counts: CLEAN,
    },
    Row {
        name: "sum in float16",
        body: "
        h[0] = T.float16(0)
        for i in range(512):
            h[0] = h[0] + T.cast(A[i], 'float16')
        B[0] = T.cast(h[0], 'float32')",
        inputs: offset,
        both: |a| {
            let rounded = a.iter().fold(0.0, |s, v| f16_of(s + f16_of(*v)));
            both(vec![rounded], vec![sum(a)])
        },
        line: "h[0] + T.cast(A[i], 'float16')",
        tolerance: 1e-15,
        counts: CLEAN,
    },
    Row {
        name: "sum in bfloat16",
        body: "
        b[0] = T.bfloat16(0)
        for i in range(512):
            b[0] = b[0] + T.cast(A[i], 'bfloat16')
        B[0] = T.cast(b[0], 'float32')",
        inputs: offset,
        both: |a| {
            let rounded = a.iter().fold(0.0, |s, v| bf16_of(s + bf16_of(*v)));
            both(vec![rounded], vec![sum(a)])
        },
        line: "b[0] + T.cast(A[i], 'bfloat16')",
        tolerance: 1e-15,
        counts: CLEAN,
    },
    Row {
        name: "dot product by fma",
        body: "
        s[0] = T.float32(0)
        for i in range(256):
            s[0] = T.fma(A[i], A[511 - i], s[0])
        B[0] = s[0]",
        inputs: offset,
        both: |a| {
            let pairs = || (0..256).map(|i| (a[i], a[511 - i]));
            let rounded = pairs().fold(0.0f32, |s, (x, y)| x.mul_add(y, s));
            let exact = pairs().map(|(x, y)| f64::from(x) * f64::from(y)).sum();
            both(vec![rounded], vec![exact])
        },
        line: "T.fma(A[i], A[511 - i], s[0])",
        tolerance: 1e-14,
        counts: CLEAN,
    },
    Row {
        name: "compensated dot product",
        body: "
        s[0] = T.float32(0); c[0] = T.float32(0)
        for i in range(256):
            p[0] = A[i] * A[511 - i]
            e[0] = T.fma(A[i], A[511 - i], T.float32(0) - p[0])
            y[0] = p[0] + (e[0] - c[0])
            t[0] = s[0] + y[0]
            c[0] = (t[0] - s[0]) - y[0]
            s[0] = t[0]
        B[0] = s[0]",
        inputs: offset,
        both: |a| {
            let (mut s, mut c) = (0.0f32, 0.0f32);
            for i in 0..256 {
                let p = a[i] * a[511 - i];
                let e = a[i].mul_add(a[511 - i], 0.0 - p);
                let y = p + (e - c);
                let t = s + y;
                c = (t - s) - y;
                s = t;
            }
            let exact = (0..256).map(|i| f64::from(a[i]) * f64::from(a[511 - i])).sum();
            both(vec![s], vec![exact])
        },
        line: "s[0] + y[0]",
        tolerance: 1e-14,
        counts: CLEAN,
    },
    Row {
        name: "variance in one pass",
        body: "
        s[0] = T.float32(0); p[0] = T.float32(0)
        for i in range(256):
            s[0] = s[0] + A[i]
            p[0] = p[0] + A[i] * A[i]
        m[0] = s[0] / T.float32(256)
        B[0] = p[0] / T.float32(256) - m[0] * m[0]",
        inputs: far,
        both: |a| {
            let s = a.iter().fold(0.0f32, |s, v| s + v);
            let p = a.iter().fold(0.0f32, |p, v| p + v * v);
            let m = s / 256.0;
            both(vec![p / 256.0 - m * m], vec![variance(a)])
        },
        line: "p[0] / T.float32(256) - m[0] * m[0]",
        tolerance: 1e-8,
        counts: Counts {
            cancelled: 16,
            ..CLEAN
        },
    },
    Row {
        name: "variance by Welford",
        body: "
        m[0] = T.float32(0); s[0] = T.float32(0)
        for i in range(256):
            y[0] = A[i] - m[0]
            m[0] = m[0] + y[0] / T.cast(i + 1, 'float32')
            s[0] = s[0] + y[0] * (A[i] - m[0])
        B[0] = s[0] / T.float32(256)",
        inputs: far,
        both: |a| {
            let (mut m, mut s) = (0.0f32, 0.0f32);
            for (i, v) in a.iter().enumerate() {
                let y = v - m;
                m += y / (i + 1) as f32;
                s += y * (v - m);
            }
            both(vec![s / 256.0], vec![variance(a)])
        },
        line: "s[0] / T.float32(256)",
        tolerance: 1e-9,
        counts: CLEAN,
    },
    Row {
        name: "softmax without its maximum",
        body: "
        s[0] = T.float32(0)
        for i in range(32):
            s[0] = s[0] + T.exp(A[i])
        for i in range(32):
            B[i] = T.exp(A[i]) / s[0]",
        inputs: || numbers(32).iter().map(|v| v * 8.0).collect(),
        both: |a| {
            let total: f64 = a.iter().map(|v| f64::from(*v).exp()).sum();
            Both {
                rounded: None,
                exact: a.iter().map(|v| f64::from(*v).exp() / total).collect(),
            }
        },
        line: "T.exp(A[i]) / s[0]",
        tolerance: 1e-13,
        counts: CLEAN,
    },
    Row {
        name: "softmax that overflows",
        body: "
        s[0] = T.float32(0)
        for i in range(32):
            s[0] = s[0] + T.exp(A[i])
        for i in range(32):
            B[i] = T.exp(A[i] - s[0])",
        inputs: || vec![89.0; 32],
        // The sum is finite in double precision, and its exponential is zero.
        both: |_| both(vec![0.0; 32], vec![0.0; 32]),
        line: "s[0] + T.exp(A[i])",
        tolerance: 0.0,
        // Of each step: the exponential, and the sum.
        counts: Counts {
            overflows: 64,
            ..CLEAN
        },
    },
    Row {
        name: "overflow of float16",
        body: "
        for i in range(4):
            h[0] = T.cast(A[i], 'float16')
            B[i] = T.cast(h[0] * h[0], 'float32')",
        inputs: || vec![100.0, 255.0, 256.0, 1000.0],
        both: |a| {
            let rounded = a.iter().map(|v| f16_of(f16_of(*v) * f16_of(*v)));
            both(
                rounded.collect(),
                a.iter().map(|v| f64::from(*v) * f64::from(*v)).collect(),
            )
        },
        line: "T.cast(h[0] * h[0], 'float32')",
        tolerance: 0.0,
        // The products of 256 and 1000.
        counts: Counts {
            overflows: 2,
            ..CLEAN
        },
    },
    Row {
        name: "gradual underflow",
        body: "
        for i in range(3):
            B[i] = A[i] * A[i + 3]",
        inputs: || vec![1.1e-20, 1.3e-30, 1.7e-10, 1.3e-19, 1.9e-30, 1.1e-10],
        both: |a| {
            let pairs = || (0..3).map(|i| (a[i], a[i + 3]));
            both(
                pairs().map(|(x, y)| x * y).collect(),
                pairs().map(|(x, y)| f64::from(x) * f64::from(y)).collect(),
            )
        },
        line: "A[i] * A[i + 3]",
        tolerance: 0.0,
        counts: Counts {
            underflows: 2,
            ..CLEAN
        },
    },
    Row {
        name: "reciprocal square root of a mean (RMSNorm)",
        body: "
        s[0] = T.float32(0)
        for i in range(256):
            s[0] = s[0] + A[i] * A[i]
        m[0] = T.float32(1) / T.sqrt(s[0] / T.float32(256) + T.float32(1e-5))
        for i in range(32):
            B[i] = A[i] * m[0]",
        inputs: || numbers(256),
        both: |a| {
            let s = a.iter().fold(0.0f32, |s, v| s + v * v);
            let m = 1.0 / (s / 256.0 + 1e-5f32).sqrt();
            let squares: f64 = a.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
            let exact = 1.0 / (squares / 256.0 + f64::from(1e-5f32)).sqrt();
            both(
                a[..32].iter().map(|v| v * m).collect(),
                a[..32].iter().map(|v| f64::from(*v) * exact).collect(),
            )
        },
        line: "A[i] * m[0]",
        tolerance: 1e-14,
        counts: CLEAN,
    },
    Row {
        name: "root of a quadratic equation",
        // x^2 - 2 b x + 1 for large b: b - sqrt(b^2 - 1) loses all bits, 1 / (b + sqrt(b^2 - 1)) none.
        body: "
        for i in range(8):
            B[i] = A[i] - T.sqrt(A[i] * A[i] - T.float32(1))",
        inputs: || (0..8).map(|i| 20.0 + 17.3 * i as f32).collect(),
        both: |a| {
            both(
                a.iter().map(|b| b - (b * b - 1.0).sqrt()).collect(),
                a.iter()
                    .map(|b| {
                        let b = f64::from(*b);
                        1.0 / (b + (b * b - 1.0).sqrt())
                    })
                    .collect(),
            )
        },
        line: "A[i] - T.sqrt(A[i] * A[i] - T.float32(1))",
        tolerance: 1e-10,
        counts: Counts {
            cancelled: 9,
            ..CLEAN
        },
    },
    Row {
        name: "polynomial by Horner",
        // The sixth power of x - 1, close to 1.
        body: "
        for i in range(16):
            y[0] = T.float32(1)
            y[0] = y[0] * A[i] - T.float32(6)
            y[0] = y[0] * A[i] + T.float32(15)
            y[0] = y[0] * A[i] - T.float32(20)
            y[0] = y[0] * A[i] + T.float32(15)
            y[0] = y[0] * A[i] - T.float32(6)
            B[i] = y[0] * A[i] + T.float32(1)",
        inputs: || (0..16).map(|i| 1.25 + i as f32 / 16.0).collect(),
        both: |a| {
            let terms = [6.0f32, -15.0, 20.0, -15.0, 6.0, -1.0];
            let rounded = a
                .iter()
                .map(|x| terms.iter().fold(1.0f32, |y, t| y * x - t))
                .collect();
            both(rounded, a.iter().map(|x| (f64::from(*x) - 1.0).powi(6)).collect())
        },
        line: "y[0] * A[i] + T.float32(1)",
        tolerance: 1e-10,
        counts: Counts {
            cancelled: 8,
            ..CLEAN
        },
    },
    Row {
        name: "conversion to bfloat16 and back",
        body: "
        for i in range(32):
            b[0] = T.cast(A[i], 'bfloat16')
            B[i] = T.cast(b[0], 'float32') * T.float32(3)",
        inputs: || numbers(32),
        both: |a| {
            both(
                a.iter().map(|v| bf16_of(*v) * 3.0).collect(),
                a.iter().map(|v| f64::from(*v) * 3.0).collect(),
            )
        },
        line: "T.cast(b[0], 'float32') * T.float32(3)",
        tolerance: 0.0,
        counts: CLEAN,
    },
    Row {
        name: "conversion to float8_e5m2 and back",
        body: "
        for i in range(32):
            B[i] = T.cast(T.cast(A[i], 'float8_e5m2'), 'float32')",
        inputs: || numbers(32).iter().map(|v| v + 2.0).collect(),
        both: |a| {
            // Two bits behind the point: 1 to 2 in steps of 1/4, 2 to 4 in steps of 1/2, ties to even.
            let rounded = a.iter().map(|v| {
                let step = if *v < 2.0 { 0.25 } else { 0.5 };
                (v / step).round_ties_even() * step
            });
            both(rounded.collect(), a.iter().copied().map(f64::from).collect())
        },
        line: "T.cast(T.cast(A[i], 'float8_e5m2'), 'float32')",
        tolerance: 0.0,
        counts: CLEAN,
    },
    Row {
        name: "mean of float64 narrowed to float32",
        body: "
        d[0] = T.float64(0)
        for i in range(512):
            d[0] = d[0] + T.cast(A[i], 'float64')
        B[0] = T.cast(d[0] / T.float64(512), 'float32')",
        inputs: offset,
        both: |a| both(vec![(sum(a) / 512.0) as f32], vec![sum(a) / 512.0]),
        line: "T.cast(d[0] / T.float64(512), 'float32')",
        tolerance: 0.0,
        counts: CLEAN,
    },
];

fn ran(row: &Row, inputs: &[f32]) -> Ran {
    let locals: Vec<String> = "s c p e y t m"
        .split(' ')
        .map(|name| format!("    {name} = T.alloc_local((1,), 'float32')\n"))
        .collect();
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer(({n},), 'float32'), B: T.Buffer((32,), 'float32')):{HEAD}
    h = T.alloc_local((1,), 'float16'); b = T.alloc_local((1,), 'bfloat16'); d = T.alloc_local((1,), 'float64')
    W = T.alloc_shared(({n},), 'float32')
{locals}
    if tx == 0:
        for i in range({n}):
            W[i] = A[i]{body}
",
        n = inputs.len(),
        locals = locals.concat(),
        body = row.body,
    );
    run(&text, &[inputs.to_vec(), vec![0.0; 32]])
}

fn check(row: &Row) {
    let inputs = (row.inputs)();
    let Both { rounded, exact } = (row.both)(&inputs);
    let ran = ran(row, &inputs);
    let found: Vec<f32> = (0..exact.len()).map(|i| ran.float(1, i)).collect();
    if let Some(rounded) = rounded {
        assert_eq!(found, rounded, "the kernel rounds as Rust does");
    }
    let mut total = 0.0f64;
    for (i, exact) in exact.iter().enumerate() {
        let shadow = ran.shadow(1, i);
        let error = relative(shadow, *exact);
        assert!(
            error <= row.tolerance,
            "{i}: {shadow:e} is not {exact:e}: {error:e}"
        );
        if found[i].is_finite() && exact.abs() >= f64::from(f32::MIN_POSITIVE) {
            total = total.max(relative(found[i].into(), *exact));
        }
    }
    let line = ran.line(row.line);
    let Counts {
        overflows,
        underflows,
        cancelled,
    } = row.counts;
    assert_eq!((line.overflows, line.underflows), (overflows, underflows));
    assert!(line.cancelled >= cancelled, "{} bits cancelled", line.cancelled);
    // The line that stores the result makes nothing else. A line of a loop may have had larger errors before.
    let last = row
        .body
        .lines()
        .find(|text| text.contains(row.line))
        .map_or("", str::trim);
    let stores = last.starts_with("B[");
    let (found, near) = (line.total(), relative(line.total(), total) < 1e-6);
    assert!(
        if stores && total > 0.0 {
            near
        } else {
            found >= total * (1.0 - 1e-9)
        },
        "{found:e} and {total:e}"
    );
}

#[test]
fn errors_agree_with_exact_arithmetic() {
    let mut failures = Vec::new();
    for row in ROWS {
        if std::panic::catch_unwind(|| check(row)).is_err() {
            failures.push(row.name);
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

/// The textbook comparison: the same sum of the same numbers, by four methods.
#[test]
fn better_methods_have_smaller_errors() {
    let error = |name: &str| {
        let row = ROWS
            .iter()
            .find(|row| row.name == name)
            .expect("a row of the table");
        let inputs = (row.inputs)();
        let exact = (row.both)(&inputs).exact[0];
        relative(ran(row, &inputs).float(1, 0).into(), exact)
    };
    assert!(error("variance by Welford") < error("variance in one pass") / 100.0);
    assert!(error("compensated dot product") <= error("dot product by fma"));
    assert!(error("pairwise sum") < 1e-6);
    assert!(error("sum in float16") < error("sum in bfloat16"));
}
