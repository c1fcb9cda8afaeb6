//! Errors of float values against the same computation in double precision, which each test makes by itself.

mod moves;
mod tensor_cores;
mod twenty;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../written/mod.rs"]
mod written;

use tirx_core::ir::f16;
use tirx_core::transform::Target;
use tirx_sim::{Allocation, Launch, LaunchOptions, Memory, StandIns, StatementAccuracy, Stats};
use written::{compiled, compiled_for};

/// What a kernel has left: its statistics, and its tensors.
struct Ran {
    stats: Stats,
    tensors: Vec<Allocation>,
    text: String,
}

/// The launch of a kernel: its GPU, its blocks in one cluster, its threads, its dynamic shared memory.
#[derive(Clone, Copy, Debug)]
struct Shape {
    target: Target,
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
}

const WARP: Shape = Shape {
    target: Target::SM_90A,
    blocks: 1,
    threads: 32,
    shared_bytes: 0,
};

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Runs a kernel of one block of 32 threads on float32 tensors.
fn run(text: &str, tensors: &[Vec<f32>]) -> Ran {
    let tensors: Vec<Vec<u8>> = tensors.iter().map(|values| bytes_of(values)).collect();
    run_shaped(WARP, text, &tensors)
}

/// Runs a kernel on the bytes of its tensors.
fn run_shaped(shape: Shape, text: &str, tensors: &[Vec<u8>]) -> Ran {
    let program = compiled_for(shape.target, text);
    let memory = Memory::new();
    let tensors: Vec<Allocation> = tensors
        .iter()
        .map(|bytes| {
            let allocation = memory.alloc(bytes.len());
            allocation.write(0, bytes);
            allocation
        })
        .collect();
    let args: Vec<u64> = tensors.iter().map(Allocation::address).collect();
    let launch = Launch {
        grid: [shape.blocks, 1, 1],
        block: [shape.threads, 1, 1],
        cluster: [shape.blocks, 1, 1],
        shared_bytes: shape.shared_bytes,
        args: &args,
        peers: &[],
    };
    let options = LaunchOptions {
        accuracy: true,
        ..LaunchOptions::default()
    };
    let stats = program.launch_with(&memory, &launch, &StandIns::new(), &options);
    Ran {
        stats: stats.unwrap_or_else(|fault| panic!("{fault}")),
        tensors,
        text: text.to_string(),
    }
}

impl Ran {
    /// The errors of the line with a text.
    fn line(&self, part: &str) -> StatementAccuracy {
        let found = self.stats.accuracy.iter().find(|line| {
            let at = line.location.as_ref().expect("every statement has a line");
            at.text.contains(part)
        });
        found
            .unwrap_or_else(|| panic!("no errors of `{part}` in {}", self.text))
            .errors
    }

    fn float(&self, tensor: usize, element: usize) -> f32 {
        let mut bytes = [0; 4];
        self.tensors[tensor].read(element * 4, &mut bytes);
        f32::from_le_bytes(bytes)
    }

    /// The shadow of a float32 element, or its value if it has none.
    fn shadow(&self, tensor: usize, element: usize) -> f64 {
        let address = self.tensors[tensor].address() + element as u64 * 4;
        let value = self.stats.shadows.iter().find(|value| value.address == address);
        value.map_or(f64::from(self.float(tensor, element)), |value| {
            f64::from_bits(value.shadow)
        })
    }
}

fn relative(found: f64, exact: f64) -> f64 {
    if found == exact {
        0.0
    } else {
        ((found - exact) / exact).abs()
    }
}

#[track_caller]
fn near(found: f64, exact: f64) {
    assert!(relative(found, exact) < 1e-12, "{found:e} is not {exact:e}");
}

/// `count` numbers without a pattern, in [-1, 1).
fn numbers(count: usize) -> Vec<f32> {
    let mut state = 12345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

const HEAD: &str = "
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
";

#[test]
fn a_naive_sum_has_the_errors_of_its_steps() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((1000,), 'float32'), B: T.Buffer((1,), 'float32')):{HEAD}
    s = T.alloc_local((1,), 'float32')
    if tx == 0:
        s[0] = T.float32(0)
        for i in range(1000):
            s[0] = s[0] + A[i]
        B[0] = s[0]
"
    );
    let values: Vec<f32> = numbers(1000).iter().map(|v| v + 1.25).collect();
    let ran = run(&text, &[values.clone(), vec![0.0]]);
    let (mut rounded, mut exact) = (0.0f32, 0.0f64);
    let (mut introduced, mut total, mut carried) = (0.0f64, 0.0f64, 0.0f64);
    for v in &values {
        let step = f64::from(rounded) + f64::from(*v);
        rounded += v;
        exact += f64::from(*v);
        introduced = introduced.max(relative(rounded.into(), step));
        carried = carried.max(relative(step, exact));
        total = total.max(relative(rounded.into(), exact));
    }
    let line = ran.line("s[0] + A[i]");
    near(line.introduced(), introduced);
    near(line.carried(), carried);
    near(line.total(), total);
    assert_eq!((line.results, line.overflows, line.underflows), (1000, 0, 0));
    assert_eq!(ran.float(1, 0), rounded);
    near(ran.shadow(1, 0), exact);
    assert!(introduced <= 2.0f64.powi(-24) && total > 4.0 * introduced);
}

#[test]
fn a_compensated_sum_is_exact_to_the_last_bits() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((1000,), 'float32'), B: T.Buffer((1,), 'float32')):{HEAD}
    s = T.alloc_local((1,), 'float32'); c = T.alloc_local((1,), 'float32')
    y = T.alloc_local((1,), 'float32'); t = T.alloc_local((1,), 'float32')
    if tx == 0:
        s[0] = T.float32(0); c[0] = T.float32(0)
        for i in range(1000):
            y[0] = A[i] - c[0]
            t[0] = s[0] + y[0]
            c[0] = (t[0] - s[0]) - y[0]
            s[0] = t[0]
        B[0] = s[0]
"
    );
    let values: Vec<f32> = numbers(1000).iter().map(|v| v + 1.25).collect();
    let exact: f64 = values.iter().copied().map(f64::from).sum();
    let ran = run(&text, &[values, vec![0.0]]);
    near(ran.shadow(1, 0), exact);
    let error = relative(ran.float(1, 0).into(), exact);
    assert!(error < 1.3e-7, "{error:e}");
    // The low bits are all that is left of a difference.
    assert!(ran.line("(t[0] - s[0]) - y[0]").cancelled >= 20);
}

#[test]
fn conversions_round_to_the_precision_of_their_dtype() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((32,), 'float32'), B: T.Buffer((32,), 'float32'), C: T.Buffer((32,), 'float32')):{HEAD}
    h = T.alloc_local((1,), 'float16')
    h[0] = T.cast(A[tx], 'float16')
    B[tx] = T.cast(h[0], 'float32')
    C[tx] = T.cast(T.cast(A[tx] * T.float32(64), 'float8_e4m3fn'), 'float32')
"
    );
    let values = numbers(32);
    let ran = run(&text, &[values.clone(), vec![0.0; 32], vec![0.0; 32]]);
    let error = |v: &f32| relative(f16::from_f32(*v).to_f32().into(), (*v).into());
    let largest = values.iter().map(error).fold(0.0, f64::max);
    near(ran.line("T.cast(A[tx], 'float16')").introduced(), largest);
    for (i, v) in values.iter().enumerate() {
        near(ran.shadow(1, i), (*v).into());
        near(ran.shadow(2, i), f64::from(*v) * 64.0);
    }
    let eight = ran.line("float8_e4m3fn").introduced();
    assert!(eight > 0.02 && eight <= 0.0625, "{eight}");
}

#[test]
fn softmax_has_the_shadow_of_float64() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((32,), 'float32'), B: T.Buffer((32,), 'float32')):{HEAD}
    S = T.alloc_shared((32,), 'float32')
    m = T.alloc_local((1,), 'float32'); s = T.alloc_local((1,), 'float32')
    S[tx] = A[tx]
    T.cuda.cta_sync()
    m[0] = S[0]; s[0] = T.float32(0)
    for i in range(32):
        m[0] = T.max(m[0], S[i])
    for i in range(32):
        s[0] = s[0] + T.exp(S[i] - m[0])
    B[tx] = T.exp(A[tx] - m[0]) / s[0]
"
    );
    let values: Vec<f32> = numbers(32).iter().map(|v| v * 10.0).collect();
    let ran = run(&text, &[values.clone(), vec![0.0; 32]]);
    let most = values.iter().copied().map(f64::from).fold(f64::MIN, f64::max);
    let sum: f64 = values.iter().map(|v| (f64::from(*v) - most).exp()).sum();
    for (i, v) in values.iter().enumerate() {
        let exact = (f64::from(*v) - most).exp() / sum;
        near(ran.shadow(1, i), exact);
        assert!(relative(ran.float(1, i).into(), exact) < 1e-5);
    }
}

#[test]
fn cancellation_overflow_and_underflow_are_told() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((4,), 'float32'), B: T.Buffer((4,), 'float32')):{HEAD}
    if tx == 0:
        B[0] = (A[0] + A[1]) - A[0]
        B[1] = A[2] * A[2]
        B[2] = T.exp(A[3])
"
    );
    let ran = run(&text, &[vec![1e8, 1.0, 1e30, -200.0], vec![0.0; 4]]);
    let line = ran.line("(A[0] + A[1]) - A[0]");
    // The one is lost in the sum, and the difference is nothing but its error.
    assert_eq!((ran.float(1, 0), ran.shadow(1, 0)), (0.0, 1.0));
    near(line.total(), 1.0);
    assert!(line.cancelled >= 24, "{}", line.cancelled);
    assert_eq!(ran.line("A[2] * A[2]").overflows, 1);
    assert_eq!(ran.line("T.exp(A[3])").underflows, 1);
    assert_eq!(ran.line("T.exp(A[3])").introduced(), 0.0);
}

#[test]
fn shadows_go_through_shuffles_atomics_and_choices() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((32,), 'float32'), B: T.Buffer((4,), 'float32')):{HEAD}
    x = T.alloc_local((1,), 'float32')
    x[0] = A[tx] / T.float32(3)
    x[0] = x[0] + T.tvm_warp_shuffle_xor(T.uint32(0xffffffff), x[0], 16, 32, 32)
    x[0] = x[0] + T.tvm_warp_shuffle_xor(T.uint32(0xffffffff), x[0], 8, 32, 32)
    if tx < 8:
        T.evaluate(T.cuda.atomic_add(B.ptr_to([0]), x[0]))
    if tx == 0:
        B[1] = T.Select(x[0] > T.float32(0), x[0], T.float32(0) - x[0])
        B[2] = T.max(x[0], T.float32(-1000))
"
    );
    let values: Vec<f32> = numbers(32).iter().map(|v| v + 2.0).collect();
    let ran = run(&text, &[values.clone(), vec![0.0; 4]]);
    let third = |lane: usize| f64::from(values[lane]) / 3.0;
    let pair = |lane: usize| third(lane) + third(lane ^ 16);
    let four = |lane: usize| pair(lane) + pair(lane ^ 8);
    near(ran.shadow(1, 0), (0..8).map(four).sum());
    near(ran.shadow(1, 1), four(0));
    near(ran.shadow(1, 2), four(0));
    assert!(relative(ran.float(1, 0).into(), ran.shadow(1, 0)) < 1e-6);
}

#[test]
fn tensor_cores_multiply_shadows() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((16, 16), 'float32'), C: T.Buffer((16, 8), 'float32')):{HEAD}
    a = T.alloc_local((8,), 'float16'); b = T.alloc_local((4,), 'float16'); c = T.alloc_local((4,), 'float32')
    for i in range(8):
        a[i] = T.cast(A[tx // 4 + 8 * (i // 2 % 2), tx % 4 * 2 + i % 2 + 8 * (i // 4)], 'float16')
    for i in range(4):
        b[i] = T.cast(T.float32(1) / T.cast(tx % 4 * 2 + i % 2 + 8 * (i // 2) + tx // 4 + 3, 'float32'), 'float16')
    for i in range(4):
        c[i] = T.float32(0)
    T.ptx.mma('m16n8k16', 'row', 'col', 'float32', 'float16', 'float16', 'float32', [c.ptr_to([i]) for i in range(4)], [a.ptr_to([2 * i]) for i in range(4)], [b.ptr_to([2 * i]) for i in range(2)], [c.ptr_to([i]) for i in range(4)])
    for i in range(4):
        C[tx // 4 + 8 * (i // 2), tx % 4 * 2 + i % 2] = c[i]
"
    );
    let values = numbers(256);
    let ran = run(&text, &[values.clone(), vec![0.0; 128]]);
    for row in 0..16 {
        for col in 0..8 {
            let exact: f64 = (0..16)
                .map(|k| f64::from(values[row * 16 + k]) / (k + col + 3) as f64)
                .sum();
            let at = row * 8 + col;
            assert!((ran.shadow(1, at) - exact).abs() < 1e-12, "{row}, {col}");
            assert!((f64::from(ran.float(1, at)) - exact).abs() < 5e-3, "{row}, {col}");
        }
    }
    let line = ran.line("T.ptx.mma(");
    assert!(
        line.carried() > line.introduced(),
        "float16 operands are the error"
    );
}

#[test]
fn integers_and_control_flow_follow_rounded_values() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((2,), 'float32'), B: T.Buffer((3,), 'float32')):{HEAD}
    x = T.alloc_local((1,), 'float32')
    if tx == 0:
        x[0] = A[0] + A[1]
        B[0] = T.cast(T.cast(x[0], 'int32'), 'float32')
        if x[0] > A[0]:
            B[1] = T.float32(1)
        B[2] = x[0]
"
    );
    let ran = run(&text, &[vec![16_777_216.0, 1.0], vec![0.0; 3]]);
    assert_eq!((ran.float(1, 0), ran.shadow(1, 0)), (16_777_216.0, 16_777_216.0));
    assert_eq!(ran.float(1, 1), 0.0, "the rounded sum is not greater");
    assert_eq!(ran.shadow(1, 2), 16_777_217.0);
}

#[test]
fn a_run_without_the_option_has_no_table() {
    let text = format!(
        "
@T.prim_func
def kernel(A: T.Buffer((1,), 'float32')):{HEAD}
    A[0] = A[0] + T.float32(0.1) if tx == 0 else A[0]
"
    );
    let program = compiled(&text.replace(
        "A[0] = A[0] + T.float32(0.1) if tx == 0 else A[0]",
        "if tx == 0:\n        A[0] = A[0] + T.float32(0.1)",
    ));
    let memory = Memory::new();
    let a = memory.alloc(4);
    let args = [a.address()];
    let launch = Launch {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        shared_bytes: 0,
        args: &args,
        peers: &[],
    };
    let stats = program.launch(&memory, &launch, &StandIns::new()).unwrap();
    assert!(stats.accuracy.is_empty() && stats.shadows.is_empty());
}
