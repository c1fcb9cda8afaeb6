//! Messages about mistakes, and their places.

use std::fs;

use tirx_build::ir::DType;
use tirx_build::ir::builder::FuncBuilder;
use tirx_build::{Builder, Environment, Kernel, NvccOptions};

use crate::package::{Package, warnings};

/// The message about the fixture's manifest with one text replaced.
fn refused(from: &str, to: &str) -> String {
    let package = Package::new();
    package.edit("kernels.toml", from, to);
    package.refused()
}

#[test]
fn values_of_a_wrong_form_are_answered_with_an_example() {
    const TARGETS: &str = "targets = [\"sm_90a\", \"sm_100a\"]";
    for (from, to, said, help, place) in [
        (
            TARGETS,
            "targets = \"sm_90a\"",
            "`targets` is a list of strings, found the string \"sm_90a\"",
            "write it as `targets = [\"sm_90a\", \"sm_100a\"]`",
            "kernels.toml:2:11",
        ),
        (
            TARGETS,
            "targets = [90]",
            "`targets` is a list of strings, found `90`",
            "write it as `targets =",
            "kernels.toml:2:12",
        ),
        (
            "specialize = [{ N = 256 }, { N = 1024 }]",
            "specialize = { N = 256 }",
            "`specialize` is a list of tables, found a table",
            "write it as `specialize = [{ N = 256 }, { N = 1024 }]`",
            "kernels.toml:8:14",
        ),
        (
            "[defaults]",
            "[toolchain]\ncuda = 13.0\n[defaults]",
            "`cuda` is a string, found `13.0`",
            "write it as `cuda = \"13.0\"`",
            "kernels.toml:2:8",
        ),
        (
            "ptx = \"compute_90\"",
            "require = \"yes\"",
            "`require` is `true` or `false`, found the string \"yes\"",
            "write it as `require = true`",
            "kernels.toml:3:11",
        ),
        (
            "ptx = \"compute_90\"",
            "max-registers = -1",
            "`max-registers` is an integer of 0 or more, found `-1`",
            "write it as `max-registers = 64`",
            "kernels.toml:3:17",
        ),
    ] {
        let message = refused(from, to);
        assert!(
            message.contains(said) && message.contains(help) && message.contains(place),
            "{message}"
        );
        assert_eq!(message.matches("error:").count(), 1, "{message}");
    }
    let package = Package::new();
    package.write(
        "kernels.toml",
        "[kernel]\nname = \"add\"\nsource = \"kernels.py\"\n",
    );
    let message = package.refused();
    assert!(
        message.contains("`kernel` is a list of tables, found a table")
            && message.contains("write it as `[[kernel]]`")
            && message.contains("kernels.toml:1:2"),
        "{message}"
    );
}

#[test]
fn values_out_of_range_are_refused() {
    for (to, said) in [
        (
            "max-registers = 300",
            "`max-registers` is from 16 to 255, found 300",
        ),
        (
            "flags = [\"-gencode=arch=compute_80,code=sm_80\"]",
            "`-gencode` cannot be a flag of a kernel",
        ),
        (
            "flags = [\"--dryrun\"]",
            "`--dryrun` cannot be a flag of a kernel",
        ),
    ] {
        let message = refused("ptx = \"compute_90\"", to);
        assert!(
            message.contains(said) && message.contains("kernels.toml:3:"),
            "{message}"
        );
    }
}

#[test]
fn no_target_at_all_is_an_error() {
    let message = refused(
        "targets = [\"sm_90a\", \"sm_100a\"]\nptx = \"compute_90\"",
        "targets = []\nrequire = true",
    );
    assert!(
        message.contains("kernel `add` names no targets")
            && message.contains("kernel `scale` names no targets"),
        "{message}"
    );
    let package = Package::new();
    let none: [&str; 0] = [];
    let environment = Environment::empty().with("TIRX_NVCC", "none");
    let error = package
        .builder(environment)
        .targets(none)
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("Builder::targets: names no targets"), "{error}");
}

#[test]
fn extents_beyond_32_bits_are_refused_at_the_kernel_s_line() {
    // In 32 bits it is 256.
    let message = refused("{ N = 1024 }", "{ N = 4294967552 }");
    assert!(
        message.contains("4294967552") && message.contains("--> kernels.py:"),
        "{message}"
    );
}

#[test]
fn mistakes_of_a_build_script_name_the_kernel() {
    let package = Package::new();
    let environment = || Environment::empty().with("TIRX_NVCC", "none");
    let refused = |kernel: Kernel| {
        let builder = package.builder(environment()).kernel(kernel);
        builder.build().unwrap_err().to_string()
    };
    let text = refused(Kernel::script("more", "").targets(["sm90a"]));
    assert!(
        text.contains("kernel `more`: unknown architecture `sm90a`")
            && text.contains("= help: did you mean `sm_90a`?"),
        "{text}"
    );
    let text = refused(Kernel::script("more", "").ptx("newest"));
    assert!(
        text.contains("kernel `more`: unknown architecture `newest`")
            && text.contains("= help: write it as `compute_90`"),
        "{text}"
    );
    let options = |change: fn(&mut NvccOptions)| {
        let mut options = NvccOptions::default();
        change(&mut options);
        Kernel::script("more", "").targets(["sm_90a"]).options(options)
    };
    for (kernel, message) in [
        (
            options(|o| o.flags = vec!["-o=x".into()]),
            "`-o` cannot be a flag of a kernel",
        ),
        (
            options(|o| o.max_registers = Some(8)),
            "`max-registers` is from 16 to 255, found 8",
        ),
        (
            options(|o| o.min_occupancy = Some(101)),
            "`min-occupancy` is from 1 to 100, found 101",
        ),
        (
            Kernel::script("more", "").targets(["sm_90a"]).tvm("0.25"),
            "`0.25` is no release of TVM",
        ),
        (
            Kernel::script("more", "").targets(["sm_90a", "sm_90a"]),
            "target `sm_90a` is named twice",
        ),
        (
            Kernel::source("more", "/more.py").targets(["sm_90a"]),
            "`source` must be a path relative",
        ),
        (
            Kernel::script("more", "")
                .targets(["sm_90a"])
                .specialize([("N", 1)])
                .specialize([("N", 1)]),
            "kernel `more` has this specialization twice",
        ),
    ] {
        let text = refused(kernel);
        assert!(
            text.contains("kernel `more`") && text.contains(message),
            "{message}: {text}"
        );
    }
    std::fs::write(package.path("Cargo.toml"), "[package]\nname = \"p\"\n").unwrap();
    let text = refused(Kernel::script("more", "").targets(["sm_90a"]).feature("fp8"));
    assert!(
        text.contains("kernel `more` is of the feature `fp8`, which the package does not declare"),
        "{text}"
    );
    let mut f = FuncBuilder::new("more");
    let a = f.tensor("A", [32], DType::FLOAT32);
    f.device_entry();
    let [_] = f.cta_id(["bx"], [1]);
    let [tx] = f.thread_id(["tx"], [32]);
    f.store(&a, [tx], 1.0);
    let text = refused(Kernel::ir("more", f.finish().unwrap()).specialize([("N", 1)]));
    assert!(
        text.contains("kernel `more` is IR and has no compile-time parameters")
            && text.contains("= help: build the IR with the values, a kernel for each"),
        "{text}"
    );
    let builder = Builder::new().manifest(package.path("kernels.toml"));
    let text = builder
        .environment(environment())
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("OUT_DIR is not set")
            && text.contains("= help: call this from a build script, or give Builder::out_dir"),
        "{text}"
    );
}

#[test]
fn an_inline_script_is_shown_where_the_manifest_has_it() {
    let package = Package::new();
    let script = "from tvm.script import tirx as T\n\n@T.prim_func\ndef k(A: T.Buffer((4,), \"float32\")):\n    \
                  T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([4])\n    A[tx] = B[tx]\n";
    let manifest = |quotes: &str, script: &str| {
        format!("[[kernel]]\nname = \"k\"\ntargets = [\"sm_90a\"]\nscript = {quotes}\n{script}{quotes}\n")
    };
    for quotes in ["\"\"\"", "'''"] {
        package.write("kernels.toml", &manifest(quotes, script));
        let message = package.refused();
        assert!(message.contains("--> kernels.toml:10:13"), "{message}");
        assert!(message.contains("10 |     A[tx] = B[tx]"), "{message}");
    }
    // Two scripts in one manifest are two files.
    let good = script.replace("B[tx]", "1.0");
    let two = manifest("\"\"\"", &good)
        + &manifest("\"\"\"", &good.replace("1.0", "2.0")).replace("name = \"k\"", "name = \"l\"");
    package.write("kernels.toml", &two);
    package
        .build(Environment::empty().with("TIRX_NVCC", "none"))
        .unwrap();
    assert!(package.text("out/tirx/k.cu").contains("0x1p+0f") || package.text("out/tirx/k.cu").contains("1"));
    assert_ne!(package.text("out/tirx/k.cu"), package.text("out/tirx/l.cu"));
}

#[test]
fn a_pin_that_does_not_fit_shows_the_manifest_s_line() {
    let package = Package::new();
    package.edit(
        "kernels.toml",
        "[defaults]",
        "[toolchain]\ncuda = \"12.8\"\n\n[defaults]",
    );
    let environment = Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    let message = package.build(environment).unwrap_err().to_string();
    assert!(
        message.contains("it is CUDA 13.0, the manifest pins 12.8")
            && message.contains("--> ")
            && message.contains("kernels.toml:2:8")
            && message.contains("2 | cuda = \"12.8\""),
        "{message}"
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
}

#[test]
fn files_are_named_from_the_workspace() {
    let package = Package::new();
    package.write("Cargo.toml", "[workspace]\n");
    fs::create_dir(package.path("app")).unwrap();
    for file in ["kernels.toml", "kernels.py"] {
        fs::rename(package.path(file), package.path("app").join(file)).unwrap();
    }
    package.edit("app/kernels.py", "A[tx] + B[tx]", "A[tx] + Z[tx]");
    let environment = Environment::empty()
        .with("TIRX_NVCC", "none")
        .with("CARGO_MANIFEST_DIR", package.path("app"));
    let builder = package
        .builder(environment)
        .manifest(package.path("app/kernels.toml"));
    let message = builder.build().unwrap_err().to_string();
    assert!(message.contains("--> app/kernels.py:12:21"), "{message}");
    package.edit("app/kernels.toml", "scale_rows", "scale_row");
    package.edit("app/kernels.py", "A[tx] + Z[tx]", "A[tx] + B[tx]");
    let message = builder.build().unwrap_err().to_string();
    assert!(message.contains("--> app/kernels.toml:13:9"), "{message}");
}

#[test]
fn an_nvcc_that_hangs_is_stopped() {
    let package = Package::new();
    let nvcc = package.nvcc_that("13.0", "sleep 600");
    let environment = Environment::empty()
        .with("TIRX_NVCC", nvcc)
        .with("TIRX_NVCC_TIMEOUT", "0.2")
        .with("NUM_JOBS", "9");
    let message = package.build(environment.clone()).unwrap_err().to_string();
    assert!(
        message.contains("nvcc did not end within 0.2 s")
            && message.contains("TIRX_NVCC_TIMEOUT sets the limit")
            && message.contains("kernel `scale` for sm_90a"),
        "{message}"
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    let message = package
        .build(environment.with("TIRX_NVCC_TIMEOUT", "soon"))
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("TIRX_NVCC_TIMEOUT is `soon`, which is no number of seconds"),
        "{message}"
    );
}

#[test]
fn an_nvcc_that_does_not_say_its_version_is_stopped() {
    let package = Package::new();
    let environment = Environment::empty()
        .with("TIRX_NVCC", package.script("sleep 600"))
        .with("TIRX_NVCC_TIMEOUT", "0.2");
    let message = package.build(environment.clone()).unwrap_err().to_string();
    assert!(
        message.contains("it does not answer `--version` within 0.2 s"),
        "{message}"
    );
    // One that is only found is passed over.
    let found = Environment::empty()
        .with("PATH", package.path(""))
        .with("TIRX_NVCC_TIMEOUT", "0.2");
    let message = package.build(found).unwrap_err().to_string();
    assert!(
        message.contains("no suitable nvcc was found") && message.contains("`--version` within 0.2 s"),
        "{message}"
    );
}

#[test]
fn warnings_of_nvcc_are_at_the_kernel_s_line_and_come_back_from_the_store() {
    let package = Package::new();
    let said = "echo 'kernel.cu(4): warning #177-D: variable \"x\" was declared but never referenced'\n\
                echo \"ptxas warning : Registers are spilled to local memory in function 'k', 8 bytes spill stores, 16 bytes \
                spill loads\"";
    let nvcc = package.nvcc_that("13.0", said);
    package.edit(
        "kernels.toml",
        "entry = \"scale_rows\"",
        "entry = \"scale_rows\"\nallow-spills = true",
    );
    let environment = Environment::empty().with("TIRX_NVCC", nvcc);
    let first = package.build(environment.clone()).unwrap();
    let lines = warnings(&first);
    // Line 4 of the other kernel's text is generated.
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines[0].starts_with(
            "cargo::warning=kernels.py:12:5: nvcc: variable \"x\" was declared but never referenced (#177-D)"
        ),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("kernels.py:8:")
            && line.contains("registers are spilled to local memory: 8 bytes spill stores, 16 bytes spill loads (kernel `add::n256`, sm_90a")
            && line.contains("allow-spills = true")),
        "{lines:#?}"
    );
    let again = package.build(environment).unwrap();
    assert_eq!((again.compiled, warnings(&again)), (0, lines));
}

#[test]
fn a_copy_by_one_thread_is_warned_about_with_reasons() {
    let package = Package::new();
    let script = "from tvm.script import tirx as T\nfrom tvm.script.tirx import tile as Tx\n\n\n@T.prim_func\n\
                  def k(A: T.Buffer((5, 7), \"float32\"), n: T.int32):\n    T.device_entry()\n    T.cta_id([1])\n    \
                  T.thread_id([64])\n    s = T.alloc_buffer((5, 7), \"float32\", scope=\"shared\")\n    \
                  Tx.cta.copy(s[0:n, :], A[0:n, :])\n";
    package.write("kernels.py", script);
    let manifest = "[defaults]\ntargets = [\"sm_90a\"]\n[[kernel]]\nname = \"k\"\nsource = \"kernels.py\"\n";
    package.write("kernels.toml", manifest);
    let report = package.with_nvcc();
    let lines = warnings(&report);
    let [line] = &lines[..] else {
        panic!("{lines:#?}");
    };
    for part in [
        "cargo::warning=kernels.py:11:5: this copy from global to shared at scope cta goes element by element in one thread",
        "gmem_smem: non-constant region extent",
        "reg: ",
        "(help: `dispatch=\"fallback\"` or `# tirx: allow(copy-by-one-thread)` on the line turns the warning off)",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("vec_128b"), "{line}");
    // Naming the variant or allowing the warning silences it.
    for known in [
        script.replace(
            "copy(s[0:n, :], A[0:n, :])",
            "copy(s[0:n, :], A[0:n, :], dispatch=\"fallback\")",
        ),
        script.replace(
            "copy(s[0:n, :], A[0:n, :])",
            "copy(s[0:n, :], A[0:n, :])  # tirx: allow(copy-by-one-thread)",
        ),
    ] {
        package.write("kernels.py", &known);
        assert!(warnings(&package.with_nvcc()).is_empty());
    }
}

#[test]
fn path_is_watched_only_where_no_nvcc_was_found() {
    let package = Package::new();
    let watches = |environment: Environment| {
        let directives = package.build(environment).unwrap().directives;
        directives.contains(&"cargo::rerun-if-env-changed=PATH".to_string())
    };
    assert!(!watches(
        Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"))
    ));
    assert!(!watches(
        Environment::empty()
            .with("TIRX_NVCC", "none")
            .with("PATH", "/nowhere")
    ));
    assert!(!watches(Environment::empty().with("PATH", package.path("."))));
    assert!(watches(Environment::empty().with("PATH", "/nowhere")));
    // Where a toolkit is announced, its place is watched, or the nearest that exists.
    let home = package.path("cuda");
    for folder in [package.path(""), home.clone(), home.join("bin")] {
        fs::create_dir_all(&folder).unwrap();
        fs::remove_file(package.path("nvcc")).ok();
        let report = package
            .build(Environment::empty().with("CUDA_HOME", &home))
            .unwrap();
        let shown = folder.to_string_lossy();
        let line = format!("cargo::rerun-if-changed={}", shown.trim_end_matches('/'));
        assert!(
            report.directives.iter().any(|d| d.trim_end_matches('/') == line),
            "{line}: {:#?}",
            report.directives
        );
    }
}

/// One manifest serves kernels that PTX for later GPUs can hold and those that it cannot.
#[test]
fn a_kernel_of_one_gpu_has_no_ptx() {
    let package = Package::new();
    package.edit("kernels.toml", "[\"sm_90a\", \"sm_100a\"]", "[\"sm_90a\"]");
    let text = package.text("kernels.py");
    let more = "\n\n@T.prim_func\ndef fenced(B: T.Buffer((128,), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
                tx = T.thread_id([128])\n    T.ptx.wgmma.fence()\n    B[tx] = T.float32(1)\n";
    package.write("kernels.py", &format!("{text}{more}"));
    let manifest = package.text("kernels.toml");
    let kernel = "\n[[kernel]]\nname = \"fenced\"\nsource = \"kernels.py\"\n";
    package.write("kernels.toml", &format!("{manifest}{kernel}"));
    let report = package.with_nvcc();
    let said: Vec<&String> = warnings(&report);
    assert!(
        said.len() == 1
            && said[0].contains("this kernel has no PTX of compute_90: `T.ptx.wgmma.fence` needs sm_90a"),
        "{said:?}"
    );
    let runs = package.text("runs");
    let ptx = |line: &&str| line.contains("code=compute_90");
    assert_eq!(runs.lines().filter(ptx).count(), 3, "{runs}");
    package.write("kernels.toml", &format!("{manifest}{kernel}ptx = \"none\"\n"));
    assert_eq!(warnings(&package.with_nvcc()), Vec::<&String>::new());
}
