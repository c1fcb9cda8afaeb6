//! Whole builds into temporary folders: outputs, toolchain, messages, and lines for Cargo.
#![cfg(unix)]

mod bundle;
mod messages;
mod package;
mod store;
mod tuning;

use std::fs;
use std::path::Path;

use package::{Package, warnings};
use tirx_build::Environment;

#[test]
fn without_nvcc_there_are_ir_images_and_one_warning() {
    let package = Package::new();
    let report = package.build(Environment::empty()).unwrap();
    assert!(report.nvcc.is_none());
    let warnings = warnings(&report);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("no nvcc was found"), "{warnings:?}");
    assert!(
        warnings[0].contains("cargo tirx toolchain install"),
        "{warnings:?}"
    );
    let generated = package.text("out/tirx_kernels.rs");
    assert!(
        generated.contains("fatbin: None") && !generated.contains("fatbin: Some"),
        "{generated}"
    );
    assert!(package.path("out/tirx/add-n256.ir").is_file());
    assert!(package.text("out/tirx/scale.cu").contains("scale_rows_kernel"));
}

#[test]
fn a_required_kernel_needs_an_nvcc() {
    let package = Package::new();
    package.edit("kernels.toml", "ptx =", "require = true\nptx =");
    let message = package.build(Environment::empty()).unwrap_err().to_string();
    assert!(
        message.contains("no nvcc was found; the manifest requires machine code for `add`, `scale`"),
        "{message}"
    );
    assert!(
        message.contains("= help: run `cargo tirx toolchain install`"),
        "{message}"
    );
    // One that the user has turned off is not one to install.
    let message = package.refused();
    assert!(
        message.contains("TIRX_NVCC is `none`; the manifest requires machine code for `add`, `scale`")
            && message.contains("= help: unset TIRX_NVCC"),
        "{message}"
    );
}

#[test]
fn ptx_is_turned_off_for_all_kernels_or_one() {
    let package = Package::new();
    let lock = |package: &Package| package.with_nvcc().compiled;
    let with = lock(&package);
    package.edit("kernels.toml", "ptx = \"compute_90\"", "ptx = \"none\"");
    fs::remove_dir_all(package.path("out")).unwrap();
    fs::create_dir(package.path("out")).unwrap();
    package.with_nvcc();
    let generated = package.text("out/tirx_kernels.rs");
    assert!(
        with == 9 && generated.contains("ptx: None") && !generated.contains("ptx: Some"),
        "{generated}"
    );
    package.edit("kernels.toml", "targets = ", "# targets = ");
    let message = package.refused();
    assert!(message.contains("names no targets"), "{message}");
}

#[test]
fn all_targets_go_into_one_fat_binary_and_nothing_is_compiled_twice() {
    let package = Package::new();
    let first = package.with_nvcc();
    // Three kernels for three targets.
    assert_eq!((first.compiled, first.cached, package.runs()), (9, 0, 9));
    assert!(warnings(&first).is_empty());
    let arguments = String::from_utf8_lossy(&package.read("out/tirx/add-n1024.fatbin")).into_owned();
    for part in [
        "-gencode arch=compute_90a,code=sm_90a",
        "-gencode arch=compute_100a,code=sm_100a",
        "-gencode arch=compute_90,code=compute_90",
        "-o kernel.fatbin kernel.cu",
    ] {
        assert!(arguments.contains(part), "{part}: {arguments}");
    }
    let second = package.with_nvcc();
    assert_eq!((second.compiled, second.cached), (0, 9));
    // One kernel changes: one is compiled.
    package.edit("kernels.py", "A[tx] + B[tx]", "A[tx] - B[tx]");
    package.edit("kernels.toml", "{ N = 256 }, ", "");
    let third = package.with_nvcc();
    assert_eq!((third.compiled, third.cached), (3, 3));
    assert!(
        !package.path("out/tirx/add-n256.fatbin").exists(),
        "a stale output stays"
    );
}

#[test]
fn one_run_makes_the_machine_code_and_the_ptx_of_a_gpu() {
    let package = Package::new();
    package.edit("kernels.toml", "\"sm_90a\"", "\"sm_90\"");
    let first = package.with_nvcc();
    assert_eq!((first.compiled, first.cached, package.runs()), (9, 0, 6));
    let image = package.read("out/tirx/add-n1024.fatbin");
    let arguments = String::from_utf8_lossy(&image).into_owned();
    for part in [
        "-gencode arch=compute_100a,code=sm_100a",
        "-gencode arch=compute_90,code=[sm_90,compute_90]",
    ] {
        assert!(arguments.contains(part), "{part}: {arguments}");
    }
    // The images are those of runs of their own: without PTX nothing is compiled.
    package.edit("kernels.toml", "ptx = \"compute_90\"", "ptx = \"none\"");
    let second = package.with_nvcc();
    assert_eq!((second.compiled, second.cached, package.runs()), (0, 6, 6));
}

#[test]
fn nvcc_that_fails_is_quoted_under_the_kernel() {
    let package = Package::new();
    let nvcc = package.script(
        "case $1 in --version) echo 'release 13.0, V13.0.88'; exit;; esac\n\
         echo 'kernel.cu(4): error: identifier \"foo\" is undefined' >&2; exit 2",
    );
    let message = package
        .build(Environment::empty().with("TIRX_NVCC", nvcc))
        .unwrap_err()
        .to_string();
    for part in [
        "error: nvcc: identifier \"foo\" is undefined\n  --> kernels.py:12:5",
        "nvcc 13.0, compiling kernel `add::n256` for sm_90a, sm_100a, compute_90; kernel `add::n1024` for",
        "the generated text is tirx/add-n256.cu in the build's OUT_DIR, line 4",
        "compiling kernel `scale` for sm_90a",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn nvcc_of_a_wrong_release_is_refused() {
    let package = Package::new();
    let old = Environment::empty().with("TIRX_NVCC", package.nvcc("12.4"));
    let message = package.build(old.clone()).unwrap_err().to_string();
    assert!(
        message.contains("it is CUDA 12.4, too old for sm_100a, which needs 12.8 or newer"),
        "{message}"
    );
    package.edit(
        "kernels.toml",
        "[[kernel]]",
        "[toolchain]\ncuda = \"13.0\"\n[[kernel]]",
    );
    let message = package.build(old).unwrap_err().to_string();
    assert!(
        message.contains("it is CUDA 12.4, the manifest pins 13.0"),
        "{message}"
    );
}

#[test]
fn a_failed_installation_is_part_of_the_one_warning() {
    let package = Package::new();
    let toolchain = "[toolchain]\ncuda = \"13.0\"\nauto-install = true\n[[kernel]]";
    package.edit("kernels.toml", "[[kernel]]", toolchain);
    // No python3 on PATH: as good as no network.
    let report = package.build(Environment::empty()).unwrap();
    let warnings = warnings(&report);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("cannot install nvcc 13.0: there is no python3 on PATH"),
        "{warnings:?}"
    );
    let offline = package
        .build(Environment::empty().with("CARGO_NET_OFFLINE", "true"))
        .unwrap();
    assert!(
        offline
            .directives
            .iter()
            .any(|line| line.contains("and Cargo is offline"))
    );
}

#[test]
fn cargo_is_told_what_the_build_depends_on() {
    let package = Package::new();
    package.write("helpers.py", "FACTOR = 2\n");
    package.edit("kernels.py", "from tvm", "import helpers\nfrom tvm");
    let report = package.with_nvcc();
    for file in ["kernels.toml", "kernels.py", "helpers.py", "nvcc"] {
        let line = format!("cargo::rerun-if-changed={}", package.path(file).display());
        assert!(
            report.directives.contains(&line),
            "{line}: {:#?}",
            report.directives
        );
    }
    for variable in [
        "TIRX_NVCC",
        "NVCC",
        "CUDA_HOME",
        "CUDA_PATH",
        "TIRX_DUMP",
        "NVCC_APPEND_FLAGS",
    ] {
        let line = format!("cargo::rerun-if-env-changed={variable}");
        assert!(
            report.directives.contains(&line),
            "{line}: {:#?}",
            report.directives
        );
    }
    // A file that is missing would make Cargo run the build script every time.
    for report in [report, package.build(Environment::empty()).unwrap()] {
        for line in &report.directives {
            if let Some(path) = line.strip_prefix("cargo::rerun-if-changed=") {
                assert!(Path::new(path).exists(), "{path}");
            }
        }
    }
}

#[test]
fn two_folders_give_the_same_bytes() {
    let (one, two) = (Package::new(), Package::new());
    one.with_nvcc();
    two.with_nvcc();
    for file in [
        "tirx_kernels.rs",
        "tirx/add-n256.cu",
        "tirx/add-n256.ir",
        "tirx/scale.cu",
        "tirx/scale.ir",
        "tirx/scale.fatbin",
    ] {
        let file = format!("out/{file}");
        assert!(one.read(&file) == two.read(&file), "{file} differs");
        let text = String::from_utf8_lossy(&one.read(&file)).into_owned();
        assert!(
            !text.contains(&*one.path("").to_string_lossy()),
            "{file} names the folder"
        );
    }
}

#[test]
fn mistakes_in_the_manifest_point_at_it() {
    let refused = |from: &str, to: &str| {
        let package = Package::new();
        package.edit("kernels.toml", from, to);
        package.refused()
    };
    let message = refused("source = \"kernels.py\"\nentry", "source = \"kernel.py\"\nentry");
    assert!(
        message.contains("cannot read `kernel.py`") && message.contains("kernels.toml:12:10"),
        "{message}"
    );
    let message = refused("scale_rows", "scale_row");
    assert!(
        message.contains("`kernels.py` defines no kernel `scale_row`"),
        "{message}"
    );
    assert!(
        message.contains("did you mean `scale_rows`?") && message.contains("kernels.toml:13:9"),
        "{message}"
    );
    let message = refused("entry = \"scale_rows\"\n", "");
    assert!(
        message.contains("defines several kernels, none of them `scale`"),
        "{message}"
    );
    let message = refused("{ N = 1024 }", "{ M = 1024 }");
    assert!(
        message.contains("no compile-time parameter `M`") && message.contains("kernels.toml:8:28"),
        "{message}"
    );
    let message = refused("specialize = [{ N = 256 }, { N = 1024 }]", "");
    assert!(message.contains("kernel `add` needs a value for N"), "{message}");
    let message = refused("source = \"kernels.py\"", "script = \"x = 1\"");
    assert!(message.contains("the script defines no kernel"), "{message}");
    let package = Package::new();
    fs::remove_file(package.path("kernels.toml")).unwrap();
    assert!(package.refused().contains("kernels.toml`: No such file"));
}

/// Specializations that check their arguments alike share a function that does it; others keep their own checks.
#[test]
fn specializations_with_the_same_checks_share_them() {
    let package = Package::new();
    let kernel = r#"from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def twice(a: T.handle, *, dtype: T.constexpr, THREADS: T.constexpr):
    n = T.int32()
    A = T.match_buffer(a, (n,), dtype)
    T.device_entry()
    i: T.let = T.cta_id([T.ceildiv(n, THREADS)]) * THREADS + T.thread_id([THREADS])
    if i < n:
        A[i] = A[i] + A[i]
"#;
    package.write("kernels.py", kernel);
    package.write(
        "kernels.toml",
        "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"twice\"\nsource = \"kernels.py\"\n\
         specialize = [\n{ dtype = \"float32\", THREADS = 128 },\n{ dtype = \"float32\", THREADS = 256 },\n\
         { dtype = \"int32\", THREADS = 128 },\n{ dtype = \"float16\", THREADS = 128 }]\n",
    );
    package
        .build(Environment::empty().with("TIRX_NVCC", "none"))
        .unwrap();
    let text = package.text("out/tirx_kernels.rs");
    let count = |part: &str| text.matches(part).count();
    // Tensors of float32 and int32 have the same alignment.
    assert_eq!(count("fn checked_"), 1, "{text}");
    assert_eq!(count("use super::checked_1 as checked;"), 3, "{text}");
    assert_eq!(count("\"a multiple of 4\""), 1, "{text}");
    assert_eq!(count("\"a multiple of 2\""), 1, "{text}");
}

/// A kernel with parameters that may be absent, and a manifest with these specializations of it.
fn with_optionals(specialize: &str) -> Package {
    let package = Package::new();
    let kernel = r#"from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def biased(Bias: T.Optional(T.Buffer((N,), "float32")), A: T.Buffer((N,), "float32"),
           shift: T.Optional(T.float32), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    if Bias is not None:
        A[tx] = A[tx] + Bias[tx]
    if shift is not None:
        A[tx] = A[tx] + shift
    A[tx] = A[tx] * 2.0
"#;
    package.write("kernels.py", kernel);
    let manifest = format!(
        "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"biased\"\nsource = \"kernels.py\"\n\
         specialize = [{specialize}]\n"
    );
    package.write("kernels.toml", &manifest);
    package
}

#[test]
fn absent_parameters_are_in_no_signature() {
    let without = Environment::empty().with("TIRX_NVCC", "none");
    let package =
        with_optionals(r#"{ N = 32 }, { N = 32, Bias = "None" }, { N = 64, shift = "None", Bias = "None" }"#);
    package.build(without.clone()).unwrap();
    let signatures = |package: &Package| -> Vec<String> {
        let text = package.text("out/tirx_kernels.rs");
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let parts = text.split("pub fn ").skip(1);
        let heads = parts.map(|part| part[..part.find(") ->").unwrap_or(0)].replace(", )", ")"));
        heads
            .filter(|head| head.contains("stream: &tirx_rt::Stream"))
            .map(|head| head.trim_end_matches([',', ' ']).to_string())
            .collect()
    };
    const A: &str = "a: &mut impl tirx_rt::AsTensorMut<f32>";
    assert_eq!(
        signatures(&package),
        [
            format!("n32( stream: &tirx_rt::Stream, bias: &impl tirx_rt::AsTensor<f32>, {A}, shift: f32"),
            format!("n32_bias_none( stream: &tirx_rt::Stream, {A}, shift: f32"),
            format!("n64_bias_none_shift_none( stream: &tirx_rt::Stream, {A}"),
        ]
    );
    // Where all leave the same out, there is a choice of the rest.
    let package = with_optionals(
        r#"{ N = 32, Bias = "None", shift = "None" }, { N = 64, Bias = "None", shift = "None" }"#,
    );
    package.build(without).unwrap();
    let text = package.text("out/tirx_kernels.rs");
    assert!(text.contains("pub struct Constexpr"), "{text}");
    assert!(text.contains("if constexpr == (Constexpr { N: 64 })"), "{text}");
    let last = signatures(&package).pop().unwrap();
    assert_eq!(
        last,
        format!("launch( stream: &tirx_rt::Stream, constexpr: Constexpr, {A}")
    );
    let message = with_optionals("{ N = 32, Bias = 1 }").refused();
    assert!(
        message.contains("`Bias` is a T.Optional parameter, found 1")
            && message.contains("`Bias = \"None\"`")
            && message.contains("kernels.toml:7:"),
        "{message}"
    );
}

#[test]
fn an_error_in_a_kernel_shows_its_line_once() {
    let package = Package::new();
    package.edit("kernels.py", "A[tx] + B[tx]", "A[tx] + Z[tx]");
    let message = package.refused();
    assert!(message.contains("--> kernels.py:12:21"), "{message}");
    // Two specializations, one mistake.
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    assert_eq!(
        format!("{:?}", package.build(Environment::empty()).unwrap_err()),
        message.strip_prefix("error: ").unwrap()
    );
    assert!(
        message.contains("= note: in the specializations `n256`, `n1024`"),
        "{message}"
    );
}

#[test]
fn targets_can_be_overridden() {
    let package = Package::new();
    let environment = Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    package
        .builder(environment.clone())
        .targets(["sm_80"])
        .build()
        .unwrap();
    let arguments = String::from_utf8_lossy(&package.read("out/tirx/scale.fatbin")).into_owned();
    assert!(
        arguments.contains("code=sm_80") && !arguments.contains("90"),
        "{arguments}"
    );
    let error = package
        .builder(environment)
        .targets(["sm80"])
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("unknown architecture `sm80`") && error.contains("did you mean `sm_80`?"),
        "{error}"
    );
}

#[test]
fn each_target_has_limits_of_its_own() {
    let package = Package::new();
    package.write(
        "kernels.py",
        "from tvm.script import tirx as T\n\n@T.prim_func\ndef wide(A: T.Buffer((32,), \"float32\")):\n    \
         T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([32])\n    \
         S = T.alloc_buffer((30000,), \"float32\", scope=\"shared.dyn\")\n    S[tx] = A[tx]\n    A[tx] = S[tx]\n",
    );
    let build = |targets: &str| {
        let manifest =
            format!("[[kernel]]\nname = \"wide\"\nsource = \"kernels.py\"\ntargets = [{targets}]\n");
        package.write("kernels.toml", &manifest);
        package.build(Environment::empty().with("TIRX_NVCC", "none"))
    };
    build("\"sm_90a\", \"sm_100a\"").unwrap();
    let error = build("\"sm_90a\", \"sm_100a\", \"sm_120\"")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a block has at most 101376 bytes of shared memory on sm_120, not 120000")
            && error.contains("kernels.py:8"),
        "{error}"
    );
}

#[test]
fn documentation_needs_no_nvcc_no_gpu_and_no_bundle() {
    let package = Package::new();
    package.write(
        "kernels.toml",
        "[toolchain]\ncuda = \"13.0\"\nauto-install = true\n\n[bundle]\npath = \"nowhere.bundle\"\n\n[[kernel]]\nname = \
         \"scale_rows\"\nsource = \"kernels.py\"\nrequire = true\ntargets = [\"native\"]\n",
    );
    // No PATH: neither an nvcc nor a pip could be run.
    let report = package.build(Environment::empty().with("DOCS_RS", "1")).unwrap();
    assert_eq!(warnings(&report), Vec::<&String>::new());
    assert!(report.nvcc.is_none());
    let text = package.text("out/tirx_kernels.rs");
    assert!(
        text.contains("pub fn scale_rows(") && text.contains("fatbin: None"),
        "{text}"
    );
    let watched = "cargo::rerun-if-env-changed=DOCS_RS".to_string();
    assert!(report.directives.contains(&watched), "{:?}", report.directives);
}

#[test]
fn the_dump_has_a_file_per_pass() {
    let package = Package::new();
    let environment = Environment::empty()
        .with("TIRX_NVCC", "none")
        .with("TIRX_DUMP", package.path("dump"));
    package.build(environment).unwrap();
    assert!(package.text("dump/add-n256/00-parsed.py").contains("def main"));
    assert!(package.path("dump/scale/kernel.cu").is_file());
    let mut names: Vec<_> = fs::read_dir(package.path("dump/scale"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    names.sort();
    assert!(
        names
            .iter()
            .any(|n| n.to_string_lossy().ends_with("-LowerTIRx.py")),
        "{names:?}"
    );
}

/// The generated text against a committed copy; `UPDATE_EXPECT=1` writes it anew.
#[test]
fn generated_launchers_are_as_committed() {
    let package = Package::new();
    package
        .build(Environment::empty().with("TIRX_NVCC", "none"))
        .unwrap();
    let mut text = package.text("out/tirx_kernels.rs");
    // Hashes change with every change of the compiler.
    let hashes: Vec<String> = text
        .lines()
        .filter_map(|line| {
            let line = line.trim();
            line.strip_prefix("hash: \"")
                .or_else(|| line.strip_prefix("signature: \""))
        })
        .map(|rest| rest.trim_end_matches("\",").to_string())
        .collect();
    assert_eq!(hashes.len(), 6);
    for hash in hashes {
        assert_eq!(hash.len(), 64);
        text = text.replace(&hash, "…");
    }
    // A file for the kernel `add`, which ends with its module, and one for `scale`.
    let end = text.find("\n    }\n").unwrap() + "\n    }\n".len();
    let (add, scale) = text.split_at(end);
    for (file, text) in [("expected_add.rs", add), ("expected_scale.rs", scale)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(file);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&path, text).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == expected,
            "differs from {} (UPDATE_EXPECT=1 writes it anew):\n{text}",
            path.display()
        );
    }
}
