//! Tensor maps: of the caller, and of the kernel's own tensors.

use std::ffi::c_void;
use std::process::Command;

use tirx_tests::root;
use tirx_tests::tools;

use super::library::{DlTensor, library_of, tensor};
use super::{interop, run};

/// A copy whose tensor map the caller makes, and a kernel that makes its own of a tensor that may have no rows.
const MAPS: &str = r#"from tvm.script import tirx as T

@T.prim_func
def copied(A_map: T.TensorMap(), B: T.Buffer((8, 32), "float32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([32])
    tile = T.alloc_shared((8, 32), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
        T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 8 * 32 * 4)
        T.ptx.cp_async.bulk.tensor.g2s_cluster(2, tile.ptr_to([0, 0]), full.ptr_to([0]), T.address_of(A_map), 0, 1, "", 0, 0)
    T.cuda.cta_sync()
    T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
    for i in range(8):
        B[i, tx] = tile[i, tx]

@T.prim_func
def rows(a: T.handle, blocks: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "float32")
    A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", A_map, "float32", 2, A.data, 32, n, 128, 32, 8, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 8) + blocks]); tx = T.thread_id([32])
    if tx == 0:
        A[bx, 0] = T.cast(T.address_of(A_map) % T.uint64(64), "float32") + T.float32(7)
"#;

/// `tirx_tensor_map_options`.
#[derive(Default)]
#[repr(C)]
pub(super) struct MapOptions {
    pub(super) box_shape: [u32; 5],
    pub(super) steps: [u32; 5],
    pub(super) swizzle: i32,
    pub(super) l2_promotion: u32,
    pub(super) interleave: u32,
    pub(super) nan_fill: bool,
    pub(super) data_type: u32,
}

/// `tirx_tensor_map`.
#[repr(C, align(64))]
pub(super) struct Map(pub(super) [u64; 16]);

#[test]
fn a_caller_makes_the_tensor_maps_that_kernels_take() {
    let (_folder, library) = library_of(&["copied"], MAPS);
    let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
    let (from, to) = (library.upload(&values), library.upload(&[0.0; 256]));
    type Of = unsafe extern "C" fn(*const DlTensor, *const MapOptions, *mut Map) -> i32;
    type Copied = unsafe extern "C" fn(*const Map, *const DlTensor, *mut c_void) -> i32;
    let (of, copied): (Of, Copied) = (library.get("tirx_tensor_map_of"), library.get("copied"));
    let mut map = Map([0; 16]);
    // 8 rows of 16 elements, each 32 behind the one before; what the box has beside them is zeros.
    let (shape, strides) = ([8, 16], [32, 1]);
    let rows = DlTensor {
        ndim: 2,
        strides: strides.as_ptr(),
        ..tensor(from, &shape)
    };
    let whole = MapOptions {
        box_shape: [8, 32, 0, 0, 0],
        ..MapOptions::default()
    };
    // SAFETY: the tensors and the map are whole.
    let mut encode = |tensor: &DlTensor, options: &MapOptions| unsafe { of(tensor, options, &mut map) };
    assert_eq!(encode(&rows, &whole), 0, "{}", library.error());
    for (options, part) in [
        (MapOptions::default(), "boxDim[0] is 0, expected from 1 to 256"),
        (
            MapOptions { swizzle: 2, ..whole },
            "the innermost box is 128, expected at most 64 bytes",
        ),
        (
            MapOptions { swizzle: 7, ..whole },
            "swizzle is no number of a mode",
        ),
        (
            MapOptions {
                l2_promotion: 96,
                ..whole
            },
            "l2_promotion is 96, expected 0, 64, 128 or 256",
        ),
        (
            MapOptions {
                interleave: 1,
                ..whole
            },
            "interleave is 1, expected 0, 16 or 32",
        ),
        (
            MapOptions {
                data_type: 77,
                ..whole
            },
            "unknown type",
        ),
    ] {
        assert_ne!(encode(&rows, &options), 0, "{part}");
        assert!(library.error().contains(part), "{part}: {}", library.error());
    }
    let none = [0, 16];
    let empty = DlTensor {
        shape: none.as_ptr(),
        ..tensor(from, &shape)
    };
    let empty = DlTensor { ndim: 2, ..empty };
    assert_eq!(encode(&empty, &whole), 1);
    assert_eq!(
        library.error(),
        "tensor map: shape[0] is 0: a tensor without elements has none"
    );
    let across = DlTensor {
        strides: [1i64, 8].as_ptr(),
        ..rows
    };
    assert_eq!(encode(&across, &whole), 1);
    assert_eq!(library.error(), "tensor map: strides[1] is 8, expected 1");
    assert_eq!(encode(&rows, &whole), 0);
    let target_shape = [8, 32];
    let target = DlTensor {
        ndim: 2,
        ..tensor(to, &target_shape)
    };
    // SAFETY: as above.
    let status = unsafe { copied(&map, &target, std::ptr::null_mut()) };
    assert_eq!(status, 0, "{}", library.error());
    let expected: Vec<f32> = (0..256)
        .map(|i| if i % 32 < 16 { i as f32 } else { 0.0 })
        .collect();
    assert_eq!(library.download(to, 256), expected);
    // SAFETY: as above, and the map is checked.
    let status = unsafe { copied(std::ptr::null(), &target, std::ptr::null_mut()) };
    assert_eq!(
        (status, library.error().as_str()),
        (1, "kernel `copied`: a tensor map is NULL")
    );
}

#[test]
fn a_tensor_without_rows_needs_no_map_where_nothing_is_launched() {
    let (_folder, library) = library_of(&["rows"], MAPS);
    let data = library.upload(&[0.0; 512]);
    type Rows = unsafe extern "C" fn(*const DlTensor, i32, *mut c_void) -> i32;
    let rows: Rows = library.get("rows");
    let call = |count: i64, blocks: i32| {
        let shape = [count, 32];
        let tensor = DlTensor {
            ndim: 2,
            ..tensor(data, &shape)
        };
        // SAFETY: the tensor is whole.
        unsafe { rows(&tensor, blocks, std::ptr::null_mut()) }
    };
    assert_eq!(call(0, 0), 0, "{}", library.error());
    assert_eq!(library.download(data, 512), [0.0; 512]);
    assert_eq!(call(0, 1), 2);
    assert_eq!(
        library.error(),
        "kernel `rows`: tensor map `A_map`: its tensor has no elements, and the launch has blocks, which need a map"
    );
    assert_eq!(call(16, 0), 0, "{}", library.error());
    assert_eq!(
        library.download(data, 512)[..33],
        [[7.0].as_slice(), &[0.0; 31], &[7.0]].concat()
    );
}

#[test]
fn python_makes_tensor_maps_and_passes_tensors_without_rows() {
    let (folder, _library) = library_of(&["copied", "rows"], MAPS);
    let out = run(Command::new(tools::python())
        .arg(root().join("tests/tests/builds/c_api/tensor_maps.py"))
        .arg(folder.path().join("api/lib/libcopied_kernels.so"))
        .env("PYTHONPATH", interop()));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines,
        [
            "tensor map: the box has 1 extents, its tensor 2",
            "boxDim[0] is 512, expected from 1 to 256 elements",
            "tirx_tensor_map takes an address, a tensor, 5 numbers and the extents of a box",
            "kernel `rows`: tensor map `A_map`: its tensor has no elements, and the launch has blocks, which need a map",
            "done",
        ]
    );
}
