//! The C library bound back into Rust by bindgen: linked, and opened at run time. One package does both beside the Rust
//! launchers, the way a user would, and says whether all three give the same bits.

use std::fs;
use std::path::Path;
use std::process::Command;

use tirx_tests::root;
use tirx_tests::tools::{self, driver};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.prim_func
def mix(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 64)]); tx = T.thread_id([64])
    if bx * 64 + tx < n:
        B[bx * 64 + tx] = T.sin(A[bx * 64 + tx]) * s + T.exp(A[bx * 64 + tx])
"#;

const MANIFEST: &str = "[[kernel]]\nname = \"mix\"\nsource = \"kernels.py\"\ntargets = [\"sm_90a\"]\n";

const BUILD: &str = r#"use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let api = tirx_build::CApi::new("my_kernels").shared(true).link(true);
    tirx_build::Builder::new().c_api(api).compile()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let include = out.join("c_api/include");
    // libclang alone has no headers of its own: those of the C compiler serve.
    let headers = std::process::Command::new("cc").arg("-print-file-name=include").output()?.stdout;
    let bindings = || {
        bindgen::builder()
            .header(include.join("my_kernels.h").to_string_lossy())
            .allowlist_file(".*(my_kernels|tirx_c)\\.h")
            .clang_arg(format!("-I{}", String::from_utf8_lossy(&headers).trim()))
    };
    let linked = bindings();
    // The stream type of the CUDA runtime's bindings.
    #[cfg(feature = "cudart")]
    let linked = linked.blocklist_type("CUstream_st").raw_line("use tirx_rt::cuda_runtime_sys::CUstream_st;");
    linked.generate()?.write_to_file(out.join("linked.rs"))?;
    bindings()
        .dynamic_library_name("Kernels")
        .dynamic_link_require_all(true)
        .generate()?
        .write_to_file(out.join("opened.rs"))?;
    println!("cargo::rustc-env=KERNELS_LIBRARY={}", out.join("c_api/lib/libmy_kernels.so").display());
    Ok(())
}
"#;

const MAIN: &str = r#"#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::all)]
mod linked {
    include!(concat!(env!("OUT_DIR"), "/linked.rs"));
}
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals, clippy::all)]
mod opened {
    include!(concat!(env!("OUT_DIR"), "/opened.rs"));
}
tirx_rt::include_kernels!();

use std::ffi::{CStr, c_void};

const COUNT: usize = 1000;

/// A tensor of float32 in the memory of device 0, as one of the two bindings has it.
macro_rules! tensor {
    ($module:ident, $data:expr, $shape:expr) => {
        $module::DLTensor {
            data: $data,
            device: $module::DLDevice { device_type: $module::DLDeviceType_kDLCUDA, device_id: 0 },
            ndim: 1,
            dtype: $module::DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: $shape,
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    };
}

fn linked(values: &[f32]) -> Vec<f32> {
    let check = |status: i32| {
        assert_eq!(status, 0, "{:?}", unsafe { CStr::from_ptr(linked::tirx_last_error()) });
    };
    let mut result = vec![0.0f32; COUNT];
    let (mut a, mut b): (*mut c_void, *mut c_void) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut shape = [COUNT as i64];
    #[cfg(feature = "cudart")]
    let stream: tirx_rt::cuda_runtime_sys::cudaStream_t = std::ptr::null_mut();
    #[cfg(not(feature = "cudart"))]
    let stream = std::ptr::null_mut();
    unsafe {
        assert!(linked::tirx_is_simulator());
        check(linked::tirx_alloc(0, COUNT * 4, &mut a));
        check(linked::tirx_alloc(0, COUNT * 4, &mut b));
        check(linked::tirx_copy_to_device(0, a, values.as_ptr().cast(), COUNT * 4));
        let ta = tensor!(linked, a, shape.as_mut_ptr());
        let mut tb = tensor!(linked, b, shape.as_mut_ptr());
        check(linked::mix(&ta, &mut tb, 2.5, stream));
        check(linked::tirx_copy_to_host(0, result.as_mut_ptr().cast(), b, COUNT * 4));
    }
    result
}

fn opened(values: &[f32]) -> Vec<f32> {
    let library = unsafe { opened::Kernels::new(env!("KERNELS_LIBRARY")) }.expect("the library opens");
    let check = |status: i32| assert_eq!(status, 0, "{:?}", unsafe { CStr::from_ptr(library.tirx_last_error()) });
    let mut result = vec![0.0f32; COUNT];
    let (mut a, mut b): (*mut c_void, *mut c_void) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut shape = [COUNT as i64];
    unsafe {
        check(library.tirx_alloc(0, COUNT * 4, &mut a));
        check(library.tirx_alloc(0, COUNT * 4, &mut b));
        check(library.tirx_copy_to_device(0, a, values.as_ptr().cast(), COUNT * 4));
        let ta = tensor!(opened, a, shape.as_mut_ptr());
        let mut tb = tensor!(opened, b, shape.as_mut_ptr());
        check(library.mix(&ta, &mut tb, 2.5, std::ptr::null_mut()));
        check(library.tirx_copy_to_host(0, result.as_mut_ptr().cast(), b, COUNT * 4));
    }
    result
}

fn launched(values: &[f32]) -> tirx_rt::Result<Vec<f32>> {
    let stream = tirx_rt::Device::simulator().default_stream();
    let a = tirx_rt::Tensor::from_slice(&stream, values, [COUNT])?;
    let mut b = tirx_rt::Tensor::zeros(&stream, [COUNT])?;
    kernels::mix(&stream, &a, &mut b, 2.5)?;
    b.to_vec()
}

fn main() -> tirx_rt::Result<()> {
    let values: Vec<f32> = (0..COUNT).map(|i| (i as f32 * 0.37).sin() * 9.0).collect();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let (rust, static_, dynamic) = (bits(launched(&values)?), bits(linked(&values)), bits(opened(&values)));
    assert!(rust.iter().any(|value| *value != rust[0]));
    println!("{} {}", rust == static_, rust == dynamic);
    Ok(())
}
"#;

fn package(folder: &Path) {
    let root_text = root().canonicalize().unwrap().display().to_string();
    let cargo = format!(
        "[package]\nname = \"bound\"\nedition = \"2024\"\n\
         [features]\ncudart = [\"tirx-rt/cudart\"]\n\
         [dependencies]\nlibloading = \"0.8\"\ntirx-rt = {{ path = \"{root_text}/tirx-rt\" }}\n\
         [build-dependencies]\nbindgen = {{ version = \"0.72\", default-features = false, features = [\"runtime\"] }}\n\
         tirx-build = {{ path = \"{root_text}/tirx-build\" }}\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n[profile.dev.package.tirx-sim-machine]\nopt-level = 2\n[workspace]\n"
    );
    fs::create_dir_all(folder.join("src")).unwrap();
    // Who has no CUDA toolkit takes the types of `cuda-runtime-sys` and links nothing.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let config = format!("[target.{target}.cudart]\nrustc-link-lib = []\n");
    fs::create_dir_all(folder.join(".cargo")).unwrap();
    for (file, text) in [
        ("Cargo.toml", cargo.as_str()),
        (".cargo/config.toml", &config),
        ("kernels.py", KERNELS),
        ("kernels.toml", MANIFEST),
        ("build.rs", BUILD),
        ("src/main.rs", MAIN),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

#[test]
fn bindgen_binds_the_library_linked_and_opened() {
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let program = std::env::current_exe().unwrap();
    let cargo = |more: &[&str]| {
        Command::new(env!("CARGO"))
            .args(["run", "--quiet"])
            .args(more)
            .current_dir(folder.path())
            .env("CARGO_TARGET_DIR", program.ancestors().nth(3).unwrap())
            .env("TIRX_NVCC", "none")
            .env("TIRX_DRIVER", driver())
            .env("LIBCLANG_PATH", tools::libclang())
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap()
    };
    let run = |features: &[&str]| {
        let mut output = cargo(&[features, &["--offline"]].concat());
        // bindgen is fetched when it is first needed.
        if String::from_utf8_lossy(&output.stderr).contains("--offline") {
            output = cargo(features);
        }
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "true true\n", "{err}");
    };
    run(&[]);
    // The same with the stream types of `cuda-runtime-sys`.
    run(&["--features", "cudart"]);
}
