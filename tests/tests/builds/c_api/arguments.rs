//! Arguments that the functions refuse: alignment, null pointers, extents, types and strides.

use std::ffi::c_void;
use std::process::Command;

use tirx_tests::root;
use tirx_tests::tools;

use super::library::{Alloc, DlTensor, Opened, ToDevice, library_of, tensor};
use super::tensor_maps::{Map, MapOptions};
use super::{interop, run};

/// Copies of 16 bytes, none of which is a vectorized access of the text; both inputs are read by copies alone.
const IN_PARTS_OF_16: &str = r#"from tvm.script import tirx as T

@T.prim_func
def summed(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([16])
    tile = T.alloc_shared((2, 64), "float32", align=16)
    T.ptx.cp_async(tile.ptr_to([0, tx * 4]), A.ptr_to([tx * 4]), 16)
    T.ptx.cp_async(tile.ptr_to([1, tx * 4]), B.ptr_to([tx * 4]), 16)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    for i in range(4):
        C[tx * 4 + i] = tile[0, tx * 4 + i] + tile[1, tx * 4 + i]
"#;

#[test]
fn tensors_that_are_not_aligned_are_refused() {
    let (_folder, library) = library_of(&["summed"], IN_PARTS_OF_16);
    let values: Vec<f32> = (0..72).map(|i| i as f32).collect();
    let (from, to) = (library.upload(&values), library.upload(&[0.0; 72]));
    let shape = [64];
    type Three = unsafe extern "C" fn(*const DlTensor, *const DlTensor, *const DlTensor, *mut c_void) -> i32;
    let summed: Three = library.get("summed");
    let call = |bytes_in: usize| {
        let view = tensor(from.cast::<u8>().wrapping_add(bytes_in).cast(), &shape);
        // SAFETY: the allocations hold the views.
        unsafe { summed(&view, &view, &tensor(to, &shape), std::ptr::null_mut()) }
    };
    let doubled: Vec<f32> = values[4..68].iter().map(|value| 2.0 * value).collect();
    assert_eq!(call(16), 0, "{}", library.error());
    assert_eq!(library.download(to, 64), doubled);
    assert_ne!(call(4), 0);
    let error = library.error();
    assert!(
        error.starts_with("kernel `summed`, argument 0 `A`: ") && error.contains("16"),
        "{error}"
    );
    assert_eq!(library.download(to, 64), doubled, "nothing was launched");
}

#[test]
fn python_sees_alignment_and_may_read_one_tensor_twice() {
    let (folder, _library) = library_of(&["summed"], IN_PARTS_OF_16);
    let script = root().join("tests/tests/builds/c_api/arguments.py");
    let out = run(Command::new(tools::python())
        .arg(script)
        .arg(folder.path().join("api/lib/libsummed_kernels.so"))
        .env("PYTHONPATH", interop()));
    let lines: Vec<&str> = out.lines().collect();
    let [first, second, "done"] = lines.as_slice() else {
        panic!("{out}");
    };
    for (line, argument) in [(first, "argument 0 `A`: "), (second, "argument 1 `B`: ")] {
        let named = line.contains(&format!("kernel `summed`, {argument}"));
        assert!(named && line.contains("16"), "{out}");
    }
}

/// A kernel whose extent is the caller's: no check of it compares extents with a number.
const ANY_SHAPE: &str = r#"from tvm.script import tirx as T

@T.prim_func
def rowwise(a: T.handle, scale: T.float32):
    n = T.int64()
    A = T.match_buffer(a, (n, 32), "float32")
    T.device_entry()
    bx = T.cta_id([n]); tx = T.thread_id([32])
    A[bx, tx] = A[bx, tx] * scale
"#;

#[test]
fn null_pointers_and_negative_extents_are_errors() {
    let (_folder, library) = library_of(&["rowwise"], ANY_SHAPE);
    let data = library.upload(&[1.0; 128]);
    type Rowwise = unsafe extern "C" fn(*const DlTensor, f32, *mut c_void) -> i32;
    let rowwise: Rowwise = library.get("rowwise");
    let call = |tensor: *const DlTensor| {
        // SAFETY: pointers are null or whole.
        match unsafe { rowwise(tensor, 2.0, std::ptr::null_mut()) } {
            0 => "ok".to_string(),
            _ => library.error(),
        }
    };
    let place = "kernel `rowwise`, argument 0 `A`: ";
    let of = |shape: &[i64]| DlTensor {
        ndim: shape.len() as i32,
        ..tensor(data, shape)
    };
    assert_eq!(call(&of(&[4, 32])), "ok");
    assert_eq!(call(&of(&[0, 32])), "ok");
    assert_eq!(library.download(data, 128), [2.0; 128]);
    assert_eq!(
        call(&of(&[-5, 32])),
        format!("{place}shape[0] is -5, expected 0 or more")
    );
    assert_eq!(
        call(&of(&[i64::MIN, 32])),
        format!("{place}shape[0] is {}, expected 0 or more", i64::MIN)
    );
    assert_eq!(
        call(&of(&[4, -32])),
        format!("{place}shape[1] is -32, expected 0 or more")
    );
    let shape = [4, 32];
    let missing = DlTensor {
        shape: std::ptr::null(),
        ..of(&shape)
    };
    assert_eq!(
        call(&missing),
        format!("{place}shape is null, expected a pointer")
    );
    let missing = DlTensor {
        data: std::ptr::null_mut(),
        ..of(&shape)
    };
    assert_eq!(call(&missing), format!("{place}data is null, expected a pointer"));
    assert_eq!(
        call(std::ptr::null()),
        format!("{place}tensor is null, expected a pointer")
    );
    // The functions around the kernels.
    let (alloc, to_device): (Alloc, ToDevice) =
        (library.get("tirx_alloc"), library.get("tirx_copy_to_device"));
    // SAFETY: nothing is written or read.
    unsafe {
        assert_eq!(alloc(0, 4, std::ptr::null_mut()), 1);
        assert_eq!(library.error(), "tirx_alloc: address is NULL");
        assert_eq!(to_device(0, data, std::ptr::null(), 4), 1);
        assert_eq!(library.error(), "tirx_copy_to_device: source is NULL");
    }
    type Of = unsafe extern "C" fn(*const DlTensor, *const MapOptions, *mut Map) -> i32;
    let of_tensor: Of = library.get("tirx_tensor_map_of");
    let (mut map, options) = (Map([0; 16]), MapOptions::default());
    let missing = DlTensor {
        shape: std::ptr::null(),
        ..of(&shape)
    };
    // SAFETY: as above.
    assert_eq!(unsafe { of_tensor(&missing, &options, &mut map) }, 1);
    assert_eq!(library.error(), "tensor map: the shape of its tensor is NULL");
}

#[test]
fn errors_are_those_of_the_rust_launcher() {
    let library = Opened::open();
    let data = library.upload(&[0.0; 256]);
    type Two = unsafe extern "C" fn(*const DlTensor, *const DlTensor, *mut c_void) -> i32;
    let scale: Two = library.get("scale");
    let (right, short) = ([256], [128]);
    let flat = [16, 16];
    let good = tensor(data, &right);
    let call = |a: &DlTensor, b: &DlTensor| {
        // SAFETY: the tensors are whole.
        let status = unsafe { scale(a, b, std::ptr::null_mut()) };
        (status, library.error())
    };
    let case = |a: &DlTensor, b: &DlTensor, expected: &str| {
        let (status, error) = call(a, b);
        assert_eq!((status, error.as_str()), (1, expected));
    };
    case(
        &good,
        &tensor(data, &short),
        "kernel `scale`, argument 1 `B`: shape[0] is 128, expected 256",
    );
    case(
        &tensor(data, &flat),
        &good,
        "kernel `scale`, argument 0 `A`: ndim is 2, expected 1",
    );
    case(
        &tensor(std::ptr::null_mut(), &right),
        &good,
        "kernel `scale`, argument 0 `A`: data is null, expected a pointer",
    );
    let doubles = DlTensor {
        dtype: [2, 64, 1, 0],
        ..tensor(data, &right)
    };
    case(
        &doubles,
        &good,
        "kernel `scale`, argument 0 `A`: dtype is float64, expected float32",
    );
    for (dtype, name) in [
        ([0, 32, 1, 0], "int32"),
        ([1, 8, 1, 0], "uint8"),
        ([4, 16, 1, 0], "bfloat16"),
        ([2, 32, 2, 0], "float32x2"),
        ([10, 8, 1, 0], "float8_e4m3fn"),
        ([17, 4, 1, 0], "float4_e2m1fn"),
        ([99, 8, 1, 0], "DLPack's code 99 with 8 bits"),
    ] {
        let other = DlTensor {
            dtype,
            ..tensor(data, &right)
        };
        let expected = format!("kernel `scale`, argument 0 `A`: dtype is {name}, expected float32");
        case(&other, &good, &expected);
    }
    let without_shape = DlTensor {
        shape: std::ptr::null(),
        ..tensor(data, &right)
    };
    case(
        &without_shape,
        &good,
        "kernel `scale`, argument 0 `A`: shape is null, expected a pointer",
    );
    case(
        &good,
        &tensor(data, &[-5]),
        "kernel `scale`, argument 1 `B`: shape[0] is -5, expected 0 or more",
    );
    // SAFETY: nothing is read.
    let status = unsafe { scale(std::ptr::null(), &good, std::ptr::null_mut()) };
    assert_eq!(
        (status, library.error().as_str()),
        (
            1,
            "kernel `scale`, argument 0 `A`: tensor is null, expected a pointer"
        )
    );
    let on_the_host = DlTensor {
        device: [1, 0],
        ..tensor(data, &right)
    };
    assert_eq!(call(&on_the_host, &good).0, 1);
    let steps = [2i64];
    let strided = DlTensor {
        strides: steps.as_ptr(),
        ..tensor(data, &right)
    };
    case(
        &strided,
        &good,
        "kernel `scale`, argument 0 `A`: strides[0] is 2, expected 1",
    );
    let odd = tensor(data.wrapping_byte_add(2), &right);
    let (status, error) = call(&odd, &good);
    assert!(
        status == 1 && error.contains("data is 0x") && error.ends_with("expected a multiple of 4"),
        "{error}"
    );
    // A fault of the kernel is reported with its line.
    let end = tensor(data.wrapping_byte_add(512), &right);
    let (status, error) = call(&end, &good);
    assert!(status == 4 && error.contains("vector.py"), "{status}: {error}");
}
