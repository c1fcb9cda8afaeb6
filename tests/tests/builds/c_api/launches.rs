//! Launches whose extents do not fit: they are refused, never cut or wrapped.

use std::ffi::c_void;

use super::library::{DlTensor, library_of, tensor};

/// Launches whose extents leave the 32 bits that their kernel computes in.
const WIDE: &str = r#"from tvm.script import tirx as T

@T.prim_func
def wide(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (64,), "float32")
    T.device_entry()
    bx = T.cta_id([n * n]); tx = T.thread_id([1])
    A[bx] = 7.0

@T.prim_func
def negative(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (64,), "float32")
    T.device_entry()
    bx = T.cta_id([n * 3 + 1]); tx = T.thread_id([1])
    A[bx] = 7.0

@T.prim_func
def vast(a: T.handle, g: T.int64, threads: T.int64, words: T.int64):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    columns: T.let[T.int32] = T.Cast("int32", n)
    T.device_entry()
    bx, by, bz = T.cta_id([T.ceildiv(g, 4), n - 63, columns - 63])
    tx = T.thread_id([threads])
    S = T.alloc_buffer((words,), "float32", scope="shared.dyn")
    S[tx] = 7.0
    A[tx] = S[tx]

@T.prim_func
def mapped(A: T.Buffer((64,), "float32"), n: T.int32):
    pitch: T.let = n * n * 4
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 3, A.data, 4, 2, 2, 64, pitch * n * n, 4, 2, 1, 1, 1,
                  1, 0, 0, 2, 0)
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    if tx == 0:
        A[0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32")
"#;

#[test]
fn launch_extents_do_not_wrap() {
    let (_folder, library) = library_of(&["wide", "negative", "mapped"], WIDE);
    let data = library.upload(&[0.0; 64]);
    let shape = [64];
    type Launch = unsafe extern "C" fn(*const DlTensor, i32, *mut c_void) -> i32;
    let call = |name: &str, n: i32| {
        let launch: Launch = library.get(name);
        // SAFETY: the tensor is whole.
        unsafe { launch(&tensor(data, &shape), n, std::ptr::null_mut()) }
    };
    assert_eq!(call("wide", 8), 0, "{}", library.error());
    assert_eq!(library.download(data, 64), [7.0; 64]);
    // 2^32 blocks: in 32 bits the product is 0, a launch that does nothing.
    assert_eq!(call("wide", 65536), 3);
    assert_eq!(
        library.error(),
        "kernel `wide` cannot be launched: blockIdx.x, `n * n`, would be 4294967296 (n = 65536)"
    );
    assert_eq!(call("negative", -5), 3);
    assert_eq!(
        library.error(),
        "kernel `negative` cannot be launched: blockIdx.x, `n * 3 + 1`, would be -14 (n = -5)"
    );
    assert_eq!(call("negative", i32::MAX), 3);
    assert!(
        library
            .error()
            .contains("blockIdx.x, `n * 3 + 1`, would be 6442450942 (n = 2147483647)"),
        "{}",
        library.error()
    );
    // Strides of 2^42 and 2^66 bytes: 0 in 32 and in 64 bits, which would be a stride.
    assert_eq!(call("mapped", 2), 0, "{}", library.error());
    assert_eq!(call("mapped", 1 << 10), 2);
    assert_eq!(
        library.error(),
        "kernel `mapped`: tensor map `A_map`: globalStrides[1] is 4398046511104, expected from 0 to 2^40 - 1 bytes"
    );
    assert_eq!(call("mapped", 1 << 16), 2);
    assert!(
        library
            .error()
            .contains("tensor map `A_map`: globalStrides[1] is ")
            && library.error().ends_with("expected from 0 to 2^40 - 1 bytes"),
        "{}",
        library.error()
    );
}

/// `TVMFFIAny`: an argument of a packed call.
#[repr(C)]
struct Any {
    type_index: i32,
    zero: u32,
    value: u64,
}

#[test]
fn packed_integers_are_not_cut() {
    let (_folder, library) = library_of(&["wide"], WIDE);
    let data = library.upload(&[0.0; 64]);
    type Packed = unsafe extern "C" fn(*mut c_void, *const Any, i32, *mut Any) -> i32;
    let packed: Packed = library.get("__tvm_ffi_wide");
    let call = |n: i64| {
        let shape = [64];
        let tensor = tensor(data, &shape);
        let any = |type_index, value| Any {
            type_index,
            zero: 0,
            value,
        };
        // A pointer to a `DLTensor`, and an integer.
        let args = [any(7, &raw const tensor as u64), any(1, n as u64)];
        // SAFETY: the tensor is whole.
        unsafe { packed(std::ptr::null_mut(), args.as_ptr(), 2, &mut any(0, 0)) }
    };
    assert_eq!(call(8), 0, "{}", library.error());
    for n in [(1 << 32) + 8, 1 << 31, -(1 << 32)] {
        assert_ne!(call(n), 0);
        let error = library.error();
        assert!(
            error.ends_with(&format!("is {n}, expected from -2147483648 to 2147483647")),
            "{error}"
        );
    }
}

#[test]
fn launch_extents_are_not_cut() {
    let (_folder, library) = library_of(&["vast"], WIDE);
    let data = library.upload(&[0.0; 64]);
    type Launch = unsafe extern "C" fn(*const DlTensor, i64, i64, i64, *mut c_void) -> i32;
    let launch: Launch = library.get("vast");
    let call = |rows: i64, g: i64, threads: i64, words: i64| {
        // SAFETY: the tensor is whole, or the launch is refused.
        let status = unsafe { launch(&tensor(data, &[rows]), g, threads, words, std::ptr::null_mut()) };
        (status != 0).then(|| library.error())
    };
    let half = 1 << 32;
    assert_eq!(call(64, 4, 64, 64), None);
    assert_eq!(library.download(data, 64), [7.0; 64]);
    for (refused, extent) in [
        (
            call(64, half << 20, 64, 64),
            "blockIdx.x, `(g + T.int64(3)) // T.int64(4)`, would be 1125899906842624 (g = 4503599627370496)",
        ),
        (
            call(half + 64, 4, 64, 64),
            "blockIdx.y, `n - T.int64(63)`, would be 4294967297 (n = 4294967360)",
        ),
        (call(64, 4, half + 64, 64), "threadIdx.x would be 4294967360"),
        (call(64, 4, -half, 64), "threadIdx.x would be -4294967296"),
        (
            call(64, 4, 64, half),
            "`words * T.int64(4)`, would be 17179869184 (words = 4294967296)",
        ),
    ] {
        let refused = refused.unwrap();
        assert!(refused.contains(extent), "{refused}");
    }
}
