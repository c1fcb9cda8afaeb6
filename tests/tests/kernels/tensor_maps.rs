//! The rules of `cuTensorMapEncodeTiled` are checked before a launch, and the error names the argument.

use tirx_core::ir::DType;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::host;
use tirx_tests::machine::{self, Argument, Simulator};
use tirx_tests::{build, stages};

/// A map of float32 in rows of 64, with a swizzle of 128 bytes, or an interleaved one: what is a number is an argument.
const TEXT: &str = r#"from tvm.script import tirx as T


@T.prim_func
def tiled(A: T.Buffer((4096,), "float32"), first: T.int64, n0: T.int64, n1: T.int64, pitch: T.int64, b0: T.int64,
          b1: T.int64, e0: T.int64, e1: T.int64):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, T.handle_add_byte_offset(A.data, first), n0, n1,
                  pitch, b0, b1, e0, e1, 0, 3, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")


@T.prim_func
def interleaved(A: T.Buffer((4096,), "float32"), first: T.int64, pitch: T.int64):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 3, T.handle_add_byte_offset(A.data, first), 8, 4, 4,
                  pitch, 256, 8, 2, 2, 1, 1, 1, 2, 1, 0, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")


@T.prim_func
def computed(A: T.Buffer((4096,), "float32"), m: T.int32, n: T.int32):
    pitch: T.let = m * n * 4
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 3, A.data, 4, 2, 2, 64, pitch * m, 4, 2, 1, 1, 1, 1,
                  0, 0, 2, 0)
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")


@T.prim_func
def rows(A: T.Buffer((4096,), "float32"), n: T.int64, pitch: T.int64):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 64, n, pitch, 32, 8, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([n])
    tx = T.thread_id([32])
    if tx == 0:
        A[bx] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")
"#;

fn run(entry: &str, numbers: &[(&str, i64)]) -> Result<(), String> {
    let (_, module) = build("maps.py", TEXT, &[entry], &Default::default())?.remove(0);
    let module = stages(&module, "sm_90a", &mut |_, _| Ok(()))?;
    let tensor = Argument::Tensor {
        dtype: DType::FLOAT32,
        shape: vec![4096],
        bytes: vec![0; 4096 * 4],
    };
    let mut arguments = vec![("A".to_string(), tensor)];
    for (name, value) in numbers {
        let value = Argument::Scalar(host::Argument::Int(*value));
        arguments.push((name.to_string(), value));
    }
    machine::run(&mut Simulator::default(), &module, &arguments).map(|_| ())
}

#[test]
fn each_rule_names_the_argument_and_what_it_must_be() {
    const GOOD: [(&str, i64); 8] = [
        ("first", 0),
        ("n0", 64),
        ("n1", 16),
        ("pitch", 256),
        ("b0", 32),
        ("b1", 8),
        ("e0", 1),
        ("e1", 1),
    ];
    run("tiled", &GOOD).unwrap();
    for (name, value, field, rule) in [
        ("first", 8, "globalAddress", "a multiple of 16 bytes"),
        ("n0", 0, "no elements", "the launch has blocks, which need a map"),
        ("n1", (1 << 32) + 1, "globalDim[1]", "from 1 to 2^32"),
        ("n1", -4, "globalDim[1]", "from 1 to 2^32"),
        ("pitch", 264, "globalStrides[0]", "a multiple of 16 bytes"),
        ("pitch", 1 << 40, "globalStrides[0]", "from 0 to 2^40 - 1 bytes"),
        ("b0", 0, "boxDim[0]", "from 1 to 256 elements"),
        ("b1", 257, "boxDim[1]", "from 1 to 256 elements"),
        ("e0", 2, "elementStrides[0]", "1, as of every innermost dimension"),
        ("e1", 9, "elementStrides[1]", "from 1 to 8"),
        ("e1", 0, "elementStrides[1]", "from 1 to 8"),
        ("b0", 30, "the innermost box", "a multiple of 16 bytes"),
        (
            "b0",
            36,
            "the innermost box",
            "at most 128 bytes, the span of its swizzle",
        ),
    ] {
        let numbers = GOOD.map(|(n, good)| (n, if n == name { value } else { good }));
        let error = run("tiled", &numbers).expect_err(name);
        assert!(
            error.contains(field) && error.contains(rule),
            "{name} = {value}: {error}"
        );
        assert!(error.contains("A_map"), "the map is named: {error}");
    }
    // Twice as much with an interleaving by 32 bytes.
    run("interleaved", &[("first", 0), ("pitch", 64)]).unwrap();
    for (name, value, field) in [("first", 16, "globalAddress"), ("pitch", 80, "globalStrides[0]")] {
        let numbers =
            [("first", 0), ("pitch", 64)].map(|(n, good)| (n, if n == name { value } else { good }));
        let error = run("interleaved", &numbers).expect_err(name);
        assert!(
            error.contains(field) && error.contains("a multiple of 32 bytes"),
            "{error}"
        );
    }
}

#[test]
fn a_tensor_without_rows_needs_no_map_where_nothing_is_launched() {
    run("rows", &[("n", 4), ("pitch", 256)]).unwrap();
    run("rows", &[("n", 0), ("pitch", 256)]).unwrap();
    // No rule concerns what has no elements.
    run("rows", &[("n", 0), ("pitch", 8)]).unwrap();
    let error = run("rows", &[("n", 4), ("pitch", 8)]).unwrap_err();
    assert!(error.contains("globalStrides[0] is 8"), "{error}");
}

#[test]
fn strides_do_not_wrap() {
    run("computed", &[("m", 2), ("n", 2)]).unwrap();
    // 2^44 bytes are 0 in 32 bits, 2^64 are 0 in 64.
    let field = "globalStrides[1] is ";
    for (m, said) in [
        (1 << 20, "17592186044416, expected from 0"),
        (1 << 30, "expected from 0"),
    ] {
        let error = run("computed", &[("m", m), ("n", 4)]).expect_err(said);
        assert!(error.contains(field) && error.contains(said), "{error}");
    }
}

#[test]
fn a_tensor_that_a_tensor_copy_writes_is_a_mutable_argument() {
    let text = r#"from tvm.script import tirx as T


@T.prim_func
def copied(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, 64, 128, 32, 64, 1, 1, 0, 0, 2, 0)
    T.call_packed("runtime.cuTensorMapEncodeTiled", B_map, "float32", 2, B.data, 32, 64, 128, 32, 64, 1, 1, 0, 0, 2, 0)
    T.device_entry()
    tid = T.thread_id([32])
    pool = T.SMEMPool()
    tile = pool.alloc((64, 32), "float32", align=128)
    full = pool.alloc((1,), "uint64", align=8)
    pool.commit()
    if tid == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 64 * 32 * 4)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tile.ptr_to([0, 0]), full.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
        T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
        T.ptx.cp_async.bulk.tensor.s2g(2, tile.ptr_to([0, 0]), T.address_of(B_map), "", 0, 0)
        T.ptx.cp_async.bulk.commit_group()
        T.ptx.cp_async.bulk.wait_group(0, True)
"#;
    let (_, module) = build("copied.py", text, &["copied"], &Default::default())
        .unwrap()
        .remove(0);
    let lowered = lower(module.clone(), &mut Lowering::new(Target::SM_90A)).unwrap();
    let launcher = tirx_core::codegen::rust::launcher(&module.functions[0].1, &lowered).unwrap();
    let parameters = launcher.parameters();
    assert!(
        parameters.contains("a: &impl ::tirx_rt::AsTensor<f32>"),
        "{parameters}"
    );
    assert!(
        parameters.contains("b: &mut impl ::tirx_rt::AsTensorMut<f32>"),
        "{parameters}"
    );
}
