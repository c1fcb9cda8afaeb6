//! Kernels as their authors write them: text through the whole pipeline into the simulator.

use std::collections::BTreeMap;

use tirx_core::ir::IRModule;
use tirx_core::script::{ConstValue, KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Allocation, FaultKind, Launch, LaunchOptions, Memory, Program, StandIns};

fn lowered(text: &str, entry: &str, constexprs: &[(&str, i64)]) -> IRModule {
    let mut sources = SourceMap::new();
    let file = match KernelFile::load(&mut sources, "kernel.py", text, &NoImports) {
        Ok(file) => file,
        Err(d) => panic!("{entry}: {}", d.render(&sources)),
    };
    let values: BTreeMap<String, ConstValue> = constexprs
        .iter()
        .map(|(name, value)| (name.to_string(), ConstValue::Int(i128::from(*value))))
        .collect();
    let module = match file.build(Some(entry), &values) {
        Ok(module) => module,
        Err(d) => panic!("{entry}: {}", d.render(&sources)),
    };
    let sources = module.sources.clone();
    match lower(module, &mut Lowering::new(Target::SM_90A)) {
        Ok(module) => module,
        Err(d) => panic!("{entry}: {}", d.render(&sources)),
    }
}

/// The module's device functions.
fn device_functions(module: &IRModule) -> Vec<String> {
    let is_device = |f: &tirx_core::ir::PrimFunc| f.attr("calling_conv").and_then(|v| v.as_int()) == Some(2);
    module
        .functions
        .iter()
        .filter(|(_, f)| is_device(f))
        .map(|(name, _)| name.to_string())
        .collect()
}

fn compiled(text: &str, entry: &str, constexprs: &[(&str, i64)]) -> Program {
    let module = lowered(text, entry, constexprs);
    let functions = device_functions(&module);
    assert_eq!(functions.len(), 1, "{entry}: {functions:?}");
    match Program::compile(&module, &functions[0]) {
        Ok(program) => program,
        Err(d) => panic!("{entry}: {}", d.render(&module.sources)),
    }
}

fn floats(memory: &Memory, values: impl IntoIterator<Item = f32>) -> Allocation {
    let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
    let allocation = memory.alloc(bytes.len());
    allocation.write(0, &bytes);
    allocation
}

fn read(allocation: &Allocation) -> Vec<f32> {
    let mut bytes = vec![0; allocation.len()];
    allocation.read(0, &mut bytes);
    bytes
        .chunks_exact(4)
        .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
        .collect()
}

const MATRIX: &str = include_str!("../../kernels/matrix.py");
const REDUCE: &str = include_str!("../../kernels/reduce.py");

#[test]
fn tiled_matrix_product() {
    let n = 128usize;
    let sizes = [("M", 128), ("N", 128), ("K", 128)];
    let program = compiled(MATRIX, "matmul", &sizes);
    let memory = Memory::new();
    let value = |i: usize| ((i * 37 + i / 128 * 11) % 17) as f32 - 8.0;
    let (a, b) = (
        floats(&memory, (0..n * n).map(value)),
        floats(&memory, (0..n * n).map(|i| value(i + 5))),
    );
    let c = floats(&memory, vec![0.0; n * n]);
    let launch = Launch {
        grid: [2, 2, 1],
        block: [256, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address(), b.address(), c.address()],
        peers: &[],
    };
    program
        .launch(&memory, &launch, &StandIns::new())
        .map_err(|f| f.to_string())
        .unwrap();
    let (a, b, c) = (read(&a), read(&b), read(&c));
    for i in 0..n {
        for j in 0..n {
            let expected: f32 = (0..n).map(|k| a[i * n + k] * b[k * n + j]).sum();
            assert_eq!(c[i * n + j], expected, "{i} {j}");
        }
    }
}

#[test]
fn warp_reduction_by_halving() {
    let program = compiled(REDUCE, "warp_reduce", &[]);
    let memory = Memory::new();
    let a = floats(&memory, vec![0.0; 32]);
    let launch = Launch {
        grid: [1; 3],
        block: [32, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address()],
        peers: &[],
    };
    program
        .launch(&memory, &launch, &StandIns::new())
        .map_err(|f| f.to_string())
        .unwrap();
    assert_eq!(read(&a), [496.0; 32]);
}

#[test]
fn all_kernels_of_the_reduction_file_compile() {
    for entry in ["block_sum", "softmax", "histogram"] {
        compiled(REDUCE, entry, &[]);
    }
    compiled(REDUCE, "rmsnorm", &[("ROWS", 4), ("D", 1024)]);
    compiled(MATRIX, "transpose", &[]);
}

#[test]
fn faults_point_into_the_text() {
    let text = "from tvm.script import tirx as T\n\n\
        @T.prim_func\n\
        def shift(A: T.Buffer((64,), \"float32\")):\n\
        \x20   T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])\n\
        \x20   s = T.alloc_shared((64,), \"float32\")\n\
        \x20   s[tx] = A[tx]\n\
        \x20   A[tx] = s[63 - tx]\n";
    let program = compiled(text, "shift", &[]);
    let memory = Memory::new();
    let a = floats(&memory, vec![1.0; 64]);
    let launch = Launch {
        grid: [1; 3],
        block: [64, 1, 1],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address()],
        peers: &[],
    };
    let fault = program.launch(&memory, &launch, &StandIns::new()).unwrap_err();
    assert!(
        matches!(fault.kind, FaultKind::Race | FaultKind::Uninitialized),
        "{fault}"
    );
    let location = fault.location.as_ref().unwrap();
    assert_eq!(
        (location.file.as_str(), location.line),
        ("kernel.py", 8),
        "{fault}"
    );
    assert!(location.text.contains("s[63 - tx]"));
}

const VECTORS: &str = r#"
from tvm.script import tirx as T

@T.prim_func
def choice(A: T.Buffer((4,), "float32"), B: T.Buffer((16,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    for v in T.vectorized(4):
        B[tx * 4 + v] = T.if_then_else(tx == 1, A[tx] * 2.0, A[v])

@T.prim_func
def array(A: T.Buffer((4,), "float32"), B: T.Buffer((16,), "float32")):
    T.device_entry()
    tx = T.thread_id([4])
    packed = T.alloc_local((2,), "float32x4")
    for i in range(2):
        packed[i] = A.vload([0], dtype="float32x4") * T.broadcast(T.cast(i, "float32"), 4)
    B.vstore([tx * 4], packed[1])
"#;

#[test]
fn a_scalar_in_all_lanes_of_a_chosen_vector() {
    let run = |entry| {
        let program = compiled(VECTORS, entry, &[]);
        let memory = Memory::new();
        let (a, b) = (floats(&memory, [1.0, 2.0, 3.0, 4.0]), floats(&memory, [0.0; 16]));
        let launch = Launch {
            grid: [1, 1, 1],
            block: [4, 1, 1],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            args: &[a.address(), b.address()],
            peers: &[],
        };
        program.launch(&memory, &launch, &StandIns::new()).unwrap();
        read(&b)
    };
    let row = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(run("choice"), [row, [4.0; 4], row, row].concat());
    assert_eq!(run("array"), [row; 4].concat());
}

const ENDLESS: &str = r#"from tvm.script import tirx as T

@T.prim_func
def endless(A: T.Buffer((2,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])
    A[1] = 1.0
    while A[0] < 1.0:
        A[1] = A[1] + 1.0
"#;

#[test]
fn who_waits_for_a_launch_can_see_where_it_is() {
    let program = compiled(ENDLESS, "endless", &[]);
    let position = program.position();
    assert_eq!(position.location(), None);
    let memory = Memory::new();
    let a = floats(&memory, [0.0, 0.0]);
    let launch = Launch {
        grid: [1; 3],
        block: [1; 3],
        cluster: [1; 3],
        shared_bytes: 0,
        args: &[a.address()],
        peers: &[],
    };
    let options = LaunchOptions {
        step_limit: Some(200_000),
        ..LaunchOptions::default()
    };
    let fault = program
        .launch_with(&memory, &launch, &StandIns::default(), &options)
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::StepLimit);
    let at = position.location().unwrap();
    assert_eq!((at.file.as_str(), at.line), ("kernel.py", 7), "{at:?}");
}
