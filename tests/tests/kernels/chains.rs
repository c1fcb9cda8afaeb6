//! Generated kernels have expressions of thousands of operators: they compile, run on the simulator and print back.

use tirx_core::ir::abi::Target;
use tirx_core::ir::image;
use tirx_core::transform::{Lowering, lower};
use tirx_tests::differential::ARCH;
use tirx_tests::nvcc::{UNOPTIMIZED, nvcc};
use tirx_tests::{Defines, build, round_trip};

const OPERATORS: usize = 10_000;

/// A kernel that stores `value`.
fn kernel(value: &str) -> String {
    format!(
        "from tvm.script import tirx as T\n\n\ndef nested(x, n):\n    for i in range(n):\n        x = T.max(x * 0.5, T.float32(i))\n    return x\n\n\n\
         @T.prim_func\ndef k(A: T.Buffer((64,), \"float32\"), I: T.Buffer((64,), \"int32\"), B: T.Buffer((64,), \"float32\"), J: T.Buffer((64,), \"int32\")):\n    \
         T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([32])\n    {value}\n"
    )
}

/// On a thread with as much stack as Rust gives threads, as a build script's might be.
fn compiles(text: String, round_trips: bool) -> String {
    let run = move || {
        let mut built = build("chain.py", &text, &["k"], &Defines::new()).unwrap();
        let (_, module) = built.remove(0);
        if round_trips {
            round_trip(&module).unwrap();
        }
        let mut lowering = Lowering::new(Target::SM_90A);
        lowering.verify = true;
        let sources = module.sources.clone();
        let lowered = lower(module, &mut lowering)
            .map_err(|e| e.render(&sources))
            .unwrap();
        let cuda = tirx_core::codegen::cuda::emit(&lowered)
            .map_err(|e| e.render(&sources))
            .unwrap();
        let carried = image::decode(&image::encode(&lowered)).unwrap();
        tirx_sim::Program::compile(&carried, "k_kernel")
            .map_err(|e| e.render(&sources))
            .unwrap();
        cuda.text
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(run).unwrap().join().unwrap()
}

#[test]
fn chains_of_floats_compile() {
    let chain = " + A[tx]".repeat(OPERATORS);
    let cuda = compiles(kernel(&format!("B[tx] = A[tx + 1]{chain}")), true);
    assert_eq!(cuda.matches(" + A_ptr").count(), OPERATORS);
    if let Some(nvcc) = nvcc() {
        let refused = nvcc.refused(ARCH, UNOPTIMIZED, &[(0, &cuda)]).unwrap();
        assert_eq!(refused, []);
    }
}

#[test]
fn chains_of_integers_compile() {
    let chain: String = (0..OPERATORS)
        .map(|i| format!(" + I[(tx * 7 + {i}) % 64]"))
        .collect();
    // Equal loads are added up: 10,000 terms are 64.
    let cuda = compiles(kernel(&format!("J[tx] = I[tx + 1]{chain}")), true);
    assert_eq!(cuda.matches("& 63] * 15").count(), 64, "{cuda}");
}

#[test]
fn nested_calls_compile() {
    // Its text names what stands in too many brackets for Python.
    let cuda = compiles(kernel(&format!("B[tx] = nested(A[tx], {})", OPERATORS / 2)), true);
    assert_eq!(cuda.matches("max(").count(), OPERATORS / 2);
    let brackets = format!("B[tx] = {}A[tx]{}", "T.max(1.0, ".repeat(700), ")".repeat(700));
    assert_eq!(compiles(kernel(&brackets), true).matches("max(").count(), 700);
}
