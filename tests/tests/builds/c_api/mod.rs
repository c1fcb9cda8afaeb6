//! Kernels called from C, C++, Python and through `libloading`, on the simulated device: the same bits as from Rust.
//!
//! The run time of the C interface opens the driver that `TIRX_DRIVER` names; here it is the simulator as a driver,
//! which Cargo builds beside this test. Python with `apache-tvm-ffi`, libclang for bindgen, and CMake where the machine has
//! none, are installed when they are first needed (`tests/src/tools.rs`).

mod bindings;
mod driver;

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tirx_build::{Builder, CApi, Environment};
use tirx_rt::{Device, Tensor};
use tirx_tests::root;
use tirx_tests::tools::{self, driver};

tirx_rt::include_kernels!();

/// The C interface of the example kernels, made once.
fn api() -> &'static Path {
    static API: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = API.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        Builder::new()
            .manifest(root().join("kernels.toml"))
            .out_dir(folder.path().join("out"))
            .environment(Environment::process().with("TIRX_NVCC", "none"))
            .c_api(
                CApi::new("example_kernels")
                    .shared(true)
                    .folder(folder.path().join("api")),
            )
            .build()
            .unwrap();
        folder
    });
    Box::leak(folder.path().join("api").into_boxed_path())
}

fn run(command: &mut Command) -> String {
    let output = command.env("TIRX_DRIVER", driver()).output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    out
}

fn interop() -> PathBuf {
    root().join("example-app/interop")
}

/// Compiles a program of `example-app/interop` against the static library and runs it.
fn compiled(compiler: &str, standard: &str, source: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    run(Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(api().join("include"))
        .arg(interop().join(source))
        .arg(api().join("lib/libexample_kernels.a"))
        .args(["-ldl", "-lm", "-o"])
        .arg(&program));
    run(&mut Command::new(program))
}

const WRONG_SHAPE: &str = "kernel `add::n256`, argument 1 `B`: shape[0] is 128, expected 256";

#[test]
fn a_c_program_calls_kernels() {
    let out = compiled("cc", "-std=c11", "main.c");
    assert_eq!(out, format!("{WRONG_SHAPE}\nc[255] = 255.5, on the simulator\n"));
}

#[test]
fn a_cpp_program_calls_kernels() {
    let out = compiled("c++", "-std=c++17", "main.cpp");
    assert!(out.starts_with("y[1] = 2.52441"), "{out}");
}

#[test]
fn cmake_finds_the_library() {
    let cmake = tools::cmake();
    let folder = tempfile::tempdir().unwrap();
    run(Command::new(&cmake)
        .arg("-S")
        .arg(interop())
        .arg("-B")
        .arg(folder.path())
        .arg(format!(
            "-Dexample_kernels_DIR={}",
            api().join("lib/cmake/example_kernels").display()
        )));
    run(Command::new(&cmake).arg("--build").arg(folder.path()));
    let out = run(&mut Command::new(folder.path().join("interop_c")));
    assert!(out.contains("c[255] = 255.5"), "{out}");
    let out = run(&mut Command::new(folder.path().join("interop_cpp")));
    assert!(out.starts_with("y[1] ="), "{out}");
}

#[test]
fn python_calls_kernels_through_tvm_ffi() {
    let out = run(Command::new(tools::python())
        .arg(interop().join("main.py"))
        .arg(api().join("lib/libexample_kernels.so")));
    assert_eq!(out, format!("c[255] = 255.5\n{WRONG_SHAPE}\n"));
}

#[test]
fn pkg_config_and_the_header_say_how_to_use_the_library() {
    let text = |file: &str| std::fs::read_to_string(api().join(file)).unwrap();
    let pc = text("lib/pkgconfig/example_kernels.pc");
    assert!(
        pc.contains("Cflags: -I${includedir}") && pc.contains("Libs: -L${libdir} -lexample_kernels"),
        "{pc}"
    );
    let header = text("include/example_kernels.h");
    for part in [
        "/* Kernel `add::n256`.\n * - A: tensor of float32, shape (256), read\n",
        " * - C: tensor of float32, shape (256), written\n */\n",
        "/* C = A + B, one block of N threads.\n */\n/* Kernel `add::n256`.\n",
        "TIRX_API int32_t add_n256(const DLTensor* A, const DLTensor* B, DLTensor* C, tirx_stream stream);",
    ] {
        assert!(header.contains(part), "{part}: {header}");
    }
    let folder = tempfile::tempdir().unwrap();
    // Where a program includes the CUDA runtime's header first, streams have its type.
    let program = "typedef struct CUstream_st* cudaStream_t;\n#define TIRX_USE_CUDART\n#include \"example_kernels.h\"\n\
        int call(const DLTensor* a, DLTensor* b, cudaStream_t stream) { return scale(a, b, stream); }\n\
        int main(void) { return 0; }\n";
    std::fs::write(folder.path().join("streams.c"), program).unwrap();
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg("-I")
        .arg(api().join("include"))
        .arg(folder.path().join("streams.c")));
}

/// The C interface of kernels of one file, opened; the folder goes with it.
fn library_of(kernels: &[&str], text: &str) -> (tempfile::TempDir, Opened) {
    let folder = tempfile::tempdir().unwrap();
    let entry =
        |name: &&str| format!("[[kernel]]\nname = \"{name}\"\nsource = \"k.py\"\ntargets = [\"sm_90a\"]\n");
    let manifest: String = kernels.iter().map(entry).collect();
    std::fs::write(folder.path().join("kernels.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("k.py"), text).unwrap();
    let name = format!("{}_kernels", kernels[0]);
    let api = CApi::new(name.as_str())
        .shared(true)
        .folder(folder.path().join("api"));
    Builder::new()
        .manifest(folder.path().join("kernels.toml"))
        .out_dir(folder.path().join("out"))
        .environment(Environment::process().with("TIRX_NVCC", "none"))
        .c_api(api)
        .build()
        .unwrap();
    let library = Opened::open_at(&folder.path().join(format!("api/lib/lib{name}.so")));
    (folder, library)
}

/// Kernels whose names C's library has, one of them with a docstring that could end a comment.
fn named(name: &str) -> String {
    format!(
        "@T.prim_func\ndef {name}(A: T.Buffer((32,), \"float32\"), errno: T.float32):\n    \
         \"\"\"Adds `errno`: /* this */ and that.\n\n        Indented \\\\\n    \"\"\"\n    \
         T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])\n    A[tx] = A[tx] + errno\n\n"
    )
}

#[test]
fn kernels_may_have_names_that_c_has_taken() {
    let names = [
        "tanh", "floor", "exp2", "memcpy", "printf", "random", "read", "index", "stdin", "free", "co_await",
        "signal", "scale_it", "main", "errno", "linux", "memcpy2",
    ];
    let text: String = names.iter().map(|name| named(name)).collect();
    let text = format!("from tvm.script import tirx as T\n\n{text}");
    let (folder, library) = library_of(&names, &text);
    let data = library.upload(&[1.0; 32]);
    let shape = [32];
    type Named = unsafe extern "C" fn(*const DlTensor, f32, *mut c_void) -> i32;
    for (at, name) in names.iter().enumerate() {
        let function = match *name {
            "scale_it" | "memcpy2" => (*name).to_string(),
            taken => format!("k_{taken}"),
        };
        let call: Named = library.get(&function);
        // SAFETY: the tensor is whole.
        let status = unsafe { call(&tensor(data, &shape), 1.0, std::ptr::null_mut()) };
        assert_eq!(status, 0, "{name}: {}", library.error());
        assert_eq!(library.download(data, 32), [at as f32 + 2.0; 32]);
    }
    let header = folder.path().join("api/include/tanh_kernels.h");
    let text = std::fs::read_to_string(&header).unwrap();
    for part in [
        "/* Adds `errno`: / * this * / and that.\n *\n * Indented\n */\n/* Kernel `tanh`, under another name than C's own `tanh`.\n \
         * - A: tensor of float32, shape (32), read and written\n",
        "/* Kernel `scale_it`.\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The header beside all of C's, and in C++.
    let program = "#include <complex.h>\n#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        #include <math.h>\n#include <unistd.h>\n#include <signal.h>\n#include <assert.h>\n#include \"tanh_kernels.h\"\n\
        int main(void) { return 0; }\n";
    for (compiler, standard, name) in [("cc", "-std=gnu11", "all.c"), ("c++", "-std=c++20", "all.cpp")] {
        let file = folder.path().join(name);
        std::fs::write(&file, program).unwrap();
        run(Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(folder.path().join("api/include"))
            .arg(file));
    }
}

#[test]
fn a_prefix_begins_the_names_of_all_functions() {
    let folder = tempfile::tempdir().unwrap();
    let build = |prefix: &str, kernels: &[&str]| {
        let entry = |name: &&str| {
            format!("[[kernel]]\nname = \"{name}\"\nsource = \"k.py\"\ntargets = [\"sm_90a\"]\n")
        };
        let manifest: String = kernels.iter().map(entry).collect();
        std::fs::write(folder.path().join("kernels.toml"), manifest).unwrap();
        let text: String = kernels.iter().map(|name| named(name)).collect();
        std::fs::write(
            folder.path().join("k.py"),
            format!("from tvm.script import tirx as T\n\n{text}"),
        )
        .unwrap();
        let api = CApi::new("prefixed")
            .prefix(prefix)
            .shared(true)
            .folder(folder.path().join("api"));
        let built = Builder::new()
            .manifest(folder.path().join("kernels.toml"))
            .out_dir(folder.path().join("out"))
            .environment(Environment::process().with("TIRX_NVCC", "none"))
            .c_api(api)
            .build();
        built.map(|_| ()).map_err(|error| error.to_string())
    };
    build("my_", &["tanh", "scale"]).unwrap();
    let header = std::fs::read_to_string(folder.path().join("api/include/prefixed.h")).unwrap();
    for part in ["int32_t my_tanh(", "int32_t my_scale(", "/* Kernel `tanh`.\n"] {
        assert!(header.contains(part), "{part}: {header}");
    }
    let library = Opened::open_at(&folder.path().join("api/lib/libprefixed.so"));
    let data = library.upload(&[1.0; 32]);
    type Named = unsafe extern "C" fn(*const DlTensor, f32, *mut c_void) -> i32;
    let tanh: Named = library.get("my_tanh");
    // SAFETY: the tensor is whole.
    let status = unsafe { tanh(&tensor(data, &[32]), 2.0, std::ptr::null_mut()) };
    assert_eq!(status, 0, "{}", library.error());
    assert_eq!(library.download(data, 32), [3.0; 32]);
    let error = build("1 ", &["scale"]).unwrap_err();
    assert!(
        error.contains("CApi::prefix: no name of C begins with `1 `"),
        "{error}"
    );
    let error = build("", &["tanh", "k_tanh"]).unwrap_err();
    assert!(
        error.contains("kernels `tanh` and `k_tanh` would both be the C function `k_tanh`"),
        "{error}"
    );
}

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
struct MapOptions {
    box_shape: [u32; 5],
    steps: [u32; 5],
    swizzle: i32,
    l2_promotion: u32,
    interleave: u32,
    nan_fill: bool,
    data_type: u32,
}

/// `tirx_tensor_map`.
#[repr(C, align(64))]
struct Map([u64; 16]);

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

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    dtype: [u8; 4],
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The shared library, opened at run time.
struct Opened(libloading::Library);

type Alloc = unsafe extern "C" fn(i32, usize, *mut *mut c_void) -> i32;
type ToDevice = unsafe extern "C" fn(i32, *mut c_void, *const c_void, usize) -> i32;
type ToHost = unsafe extern "C" fn(i32, *mut c_void, *const c_void, usize) -> i32;

impl Opened {
    fn open() -> Opened {
        Opened::open_at(&api().join("lib/libexample_kernels.so"))
    }

    fn open_at(library: &Path) -> Opened {
        // SAFETY: nothing else in this process reads or sets variables at this time but other opens, which set the same;
        // the library's initializers are the C compiler's own.
        unsafe {
            std::env::set_var("TIRX_DRIVER", driver());
            Opened(libloading::Library::new(library).unwrap())
        }
    }

    fn get<T: Copy>(&self, name: &str) -> T {
        // SAFETY: callers name the type of the header.
        unsafe { *self.0.get::<T>(name.as_bytes()).unwrap() }
    }

    fn error(&self) -> String {
        let last: unsafe extern "C" fn() -> *const c_char = self.get("tirx_last_error");
        // SAFETY: the function gives a C string.
        unsafe { CStr::from_ptr(last()) }.to_string_lossy().into_owned()
    }

    fn upload(&self, values: &[f32]) -> *mut c_void {
        let (alloc, copy): (Alloc, ToDevice) = (self.get("tirx_alloc"), self.get("tirx_copy_to_device"));
        let mut address = std::ptr::null_mut();
        // SAFETY: the source has as many bytes.
        unsafe {
            assert_eq!(alloc(0, values.len() * 4, &mut address), 0, "{}", self.error());
            assert_eq!(
                copy(0, address, values.as_ptr().cast(), values.len() * 4),
                0,
                "{}",
                self.error()
            );
        }
        address
    }

    fn download(&self, address: *mut c_void, count: usize) -> Vec<f32> {
        let copy: ToHost = self.get("tirx_copy_to_host");
        let mut values = vec![0f32; count];
        // SAFETY: the destination has as many bytes.
        let status = unsafe { copy(0, values.as_mut_ptr().cast(), address, count * 4) };
        assert_eq!(status, 0, "{}", self.error());
        values
    }
}

fn tensor(data: *mut c_void, shape: &[i64]) -> DlTensor {
    DlTensor {
        data,
        device: [2, 0],
        ndim: shape.len() as i32,
        dtype: [2, 32, 1, 0],
        shape: shape.as_ptr(),
        strides: std::ptr::null(),
        byte_offset: 0,
    }
}

#[test]
fn a_library_that_is_opened_gives_the_bits_of_rust() {
    let library = Opened::open();
    let values: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin()).collect();
    let (a, b) = (library.upload(&values), library.upload(&vec![0.0; values.len()]));
    let shape = [values.len() as i64];
    let (ta, tb) = (tensor(a, &shape), tensor(b, &shape));
    type Two = unsafe extern "C" fn(*const DlTensor, *const DlTensor, *mut c_void) -> i32;
    let softmax: Two = library.get("scale_blocks");
    // SAFETY: the tensors are whole.
    let status = unsafe { softmax(&ta, &tb, std::ptr::null_mut()) };
    assert_eq!(status, 0, "{}", library.error());
    let from_c = library.download(b, values.len());

    let stream = Device::simulator().default_stream();
    let input = Tensor::from_slice(&stream, &values, [values.len()]).unwrap();
    let mut output = Tensor::<f32>::zeros(&stream, [values.len()]).unwrap();
    kernels::scale_blocks(&stream, &input, &mut output).unwrap();
    let from_rust = output.to_vec().unwrap();
    let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&from_c), bits(&from_rust));
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
