//! Names of C functions: kernels whose names C has taken, and a prefix.

use std::ffi::c_void;
use std::process::Command;

use tirx_build::{Builder, CApi, Environment};

use super::library::{DlTensor, Opened, library_of, tensor};
use super::run;

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
