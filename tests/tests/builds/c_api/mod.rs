//! Kernels called from C, C++, Python and through `libloading`, on the simulated device: the same bits as from Rust.
//!
//! The run time of the C interface opens the driver that `TIRX_DRIVER` names; here it is the simulator as a driver,
//! which Cargo builds beside this test. Python with `apache-tvm-ffi`, libclang for bindgen, and CMake where the machine has
//! none, are installed when they are first needed (`tests/src/tools.rs`).

mod arguments;
mod bindings;
mod driver;
mod launches;
mod library;
mod names;
mod tensor_maps;

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tirx_build::{Builder, CApi, Environment};
use tirx_rt::{Device, Tensor};
use tirx_tests::root;
use tirx_tests::tools::{self, driver};

use library::{DlTensor, Opened, tensor};

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
