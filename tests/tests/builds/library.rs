//! Kernels that a library crate provides: its dependants call re-exported launchers, and need no manifest, no kernel file and no
//! build script; kernels of several element types; kernels that a build script makes.

use tirx_build::{Builder, BundleAction, Environment};

use super::book::command_line;
use super::throw_away::{ScratchPackages, texts};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    B[tx] = A[tx] + 1.0

@T.jit
def axpby(X: T.Buffer((N,), dtype), Y: T.Buffer((N,), dtype), a: T.float32, *, N: T.constexpr, dtype: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    Y[tx] = T.cast(a * T.cast(X[tx], "float32") + T.cast(Y[tx], "float32"), dtype)

@T.jit
def convert(X: T.Buffer((32,), source), Y: T.Buffer((32,), target), *, source: T.constexpr, target: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])
    Y[tx] = T.cast(X[tx], target)
"#;

const MANIFEST: &str = r#"[defaults]
targets = ["sm_90a"]

[[kernel]]
name = "add"
source = "kernels.py"
specialize = [{ N = 32 }]

[[kernel]]
name = "axpby"
source = "kernels.py"
specialize-grid = { N = [32, 64], dtype = ["float16", "bfloat16", "float32"] }

[[kernel]]
name = "convert"
source = "kernels.py"
specialize = [{ source = "float16", target = "float32" }, { source = "float32", target = "bfloat16" }]
"#;

const LIBRARY: &str = "//! Kernels for others.\n\ntirx_rt::include_kernels!();\n\npub use kernels::add;\n\
    /// A launcher under another name.\npub use kernels::axpby as scaled_sum;\n";

const PROGRAM: &str = r#"use provider::kernels::{axpby, convert};
use tirx_rt::{Tensor, bf16, f16};

fn main() -> tirx_rt::Result<()> {
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let a = Tensor::from_slice(&stream, &[41.0f32; 32], [32])?;
    let mut b = Tensor::zeros(&stream, [32])?;
    provider::add::n32(&stream, &a, &mut b)?;
    println!("{:?} {:?}", b.to_vec()?[31], provider::add::n32::IMAGE.fatbin.is_some());

    let x = Tensor::from_slice(&stream, &[f16::from_f32(2.0); 64], [64])?;
    let mut y = Tensor::from_slice(&stream, &[f16::from_f32(0.5); 64], [64])?;
    provider::scaled_sum::<f16>(&stream, axpby::Constexpr { N: 64 }, &x, &mut y, 3.0)?;
    println!("{:?}", y.to_vec()?[63]);
    println!("{}", axpby::launch(&stream, axpby::Constexpr { N: 65 }, &x, &mut y, 3.0).unwrap_err());

    // Two element types.
    let halves = Tensor::from_slice(&stream, &[f16::from_f32(1.5); 32], [32])?;
    let mut singles = Tensor::<f32>::zeros(&stream, [32])?;
    convert(&stream, &halves, &mut singles)?;
    let mut brains = Tensor::<bf16>::zeros(&stream, [32])?;
    convert(&stream, &singles, &mut brains)?;
    println!("{:?}", brains.to_vec()?[0]);

    // Specializations for two element types share their checks; an error names the kernel that was called.
    let mut sum = Tensor::<bf16>::zeros(&stream, [32])?;
    let error = axpby::launch(&stream, axpby::Constexpr { N: 64 }, &brains, &mut sum, 3.0).unwrap_err();
    println!("{}", error.to_string().contains("bfloat16"));
    Ok(())
}
"#;

/// The library, and a program that depends on it and on `tirx-rt` alone.
fn packages(place: &ScratchPackages, program: &str) {
    place.package("provider", MANIFEST, KERNELS, "", "");
    std::fs::remove_file(place.path("provider/src/main.rs")).unwrap();
    place.write("provider/src/lib.rs", LIBRARY);
    let dependencies =
        "[dependencies]\nprovider = { path = \"../provider\" }\ntirx-rt = { path = \"…/tirx-rt\" }\n";
    place.manifest("program", dependencies);
    place.write("program/src/main.rs", program);
}

const OUTPUT: &str = "6.5\nkernel `axpby` was not built for N = 65 for f16; built: \
    N = 32, dtype = \"float16\"; N = 32, dtype = \"bfloat16\"; N = 32, dtype = \"float32\"; \
    N = 64, dtype = \"float16\"; N = 64, dtype = \"bfloat16\"; N = 64, dtype = \"float32\". \
    Add the specialization to kernels.toml\n1.5\ntrue\n";

/// A program that ships without the simulator: the run time and the launchers need none.
#[test]
fn launchers_are_compiled_without_the_simulator() {
    let mut place = ScratchPackages::new();
    let main = "tirx_rt::include_kernels!();\n\nfn main() -> tirx_rt::Result<()> {\n    let stream = \
                tirx_rt::Device::cuda(0)?.new_stream()?;\n    let a = tirx_rt::Tensor::full(&stream, 1.0f32, [64])?;\n    \
                let mut b = tirx_rt::Tensor::zeros(&stream, [64])?;\n    kernels::add::n64(&stream, &a, &mut b)\n}\n";
    let manifest = "[[kernel]]\nname = \"add\"\nsource = \"kernels.py\"\ntargets = [\"sm_90a\"]\nspecialize = [{ N = 64 }]\n";
    place.package("bare", manifest, KERNELS, main, "");
    place.edit(
        "bare/Cargo.toml",
        "tirx-rt\" }",
        "tirx-rt\", default-features = false }",
    );
    place.set("TIRX_NVCC", "none");
    let (success, _, err) = place.cargo("bare", &["check"]);
    assert!(success, "{err}");
}

#[test]
fn a_library_provides_kernels_to_programs() {
    let mut place = ScratchPackages::new();
    packages(&place, PROGRAM);
    place.set("TIRX_NVCC", "none");
    let (success, out, err) = place.cargo("program", &["run"]);
    assert!(success, "{err}");
    assert_eq!(out, format!("42.0 false\n{OUTPUT}"));

    // The library brings a bundle: programs have machine code, and nobody has an nvcc.
    let nvcc = place.fake_nvcc();
    Builder::new()
        .manifest(place.path("provider/kernels.toml"))
        .environment(
            Environment::process()
                .with("TIRX_NVCC", nvcc)
                .with("TIRX_STORE", "none"),
        )
        .bundle(BundleAction::Write, false, "MIT")
        .unwrap();
    place.edit("provider/src/lib.rs", "//! Kernels", "//! Finished kernels");
    place.edit(
        "provider/kernels.toml",
        "[defaults]",
        "[bundle]\npath = \"kernels.bundle\"\n\n[defaults]",
    );
    let (success, out, err) = place.cargo("program", &["run"]);
    assert!(success, "{err}");
    assert_eq!(out, format!("42.0 true\n{OUTPUT}"));

    // A type that there is no specialization for is an error of the compiler, with those that there are.
    place.edit("program/src/main.rs", "scaled_sum::<f16>", "scaled_sum::<f64>");
    let (success, _, err) = place.cargo("program", &["build"]);
    assert!(!success);
    for part in [
        "kernel `axpby` is not built for `f64`",
        "it is built for bf16, f16, f32: the manifest's `specialize` lists the values",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}

/// Functions for the kernels of other crates, in a folder of the library.
const PARTS: &str = "from tvm.script import tirx as T\nfrom .numbers import STEP\n\n@T.inline\ndef step(B, A, i):\n    B[i] = A[i] + STEP\n";

const IMPORTING: &str = "from tvm.script import tirx as T\nfrom my_parts.gpu.steps import step\n\n@T.prim_func\ndef stepped(A: \
    T.Buffer((32,), \"float32\"), B: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    tx = \
    T.thread_id([32])\n    step(B, A, tx)\n";

#[test]
fn kernels_import_functions_of_other_crates() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    place.manifest(
        "parts",
        "[package]\nname = \"parts\"\nedition = \"2024\"\nlinks = \"my-parts\"\n\n[dependencies]\ntirx-rt = { path = \
         \"…/tirx-rt\" }\n[build-dependencies]\ntirx-build = { path = \"…/tirx-build\" }\n",
    );
    place.write("parts/build.rs", crate::throw_away::BUILD);
    place.write("parts/kernels.toml", "");
    place.write("parts/src/lib.rs", "tirx_rt::include_kernels!();\n");
    place.write("parts/gpu/steps.py", PARTS);
    place.write("parts/gpu/numbers.py", "STEP = 1.5\n");
    let main = "tirx_rt::include_kernels!();\n\nfn main() -> tirx_rt::Result<()> {\n    let stream = \
                tirx_rt::Device::simulator().new_stream()?;\n    let a = tirx_rt::Tensor::full(&stream, 1.0f32, [32])?;\n    \
                let mut b = tirx_rt::Tensor::zeros(&stream, [32])?;\n    kernels::stepped(&stream, &a, &mut b)?;\n    \
                println!(\"{:?}\", b.to_vec()?[31]);\n    Ok(())\n}\n";
    let manifest = "[[kernel]]\nname = \"stepped\"\nsource = \"kernels.py\"\ntargets = [\"sm_90a\"]\n";
    place.package(
        "user",
        manifest,
        IMPORTING,
        main,
        "parts = { path = \"../parts\" }\n",
    );
    let (success, out, err) = place.cargo("user", &["run"]);
    assert!(success && out == "2.5\n", "{out}{err}");
    // What is imported is watched.
    place.edit("parts/gpu/numbers.py", "1.5", "2.5");
    let (success, out, err) = place.cargo("user", &["run"]);
    assert!(success && out == "3.5\n", "{out}{err}");
    // An error in it names its file.
    place.edit("parts/gpu/steps.py", "A[i] + STEP", "A[i] + STOP");
    let (success, _, err) = place.cargo("user", &["build"]);
    assert!(!success && err.contains("my_parts/gpu/steps.py:6"), "{err}");
}

const GENERATING: &str = r#"use tirx_build::ir::DType;
use tirx_build::ir::builder::FuncBuilder;
use tirx_build::{Builder, ConstValue, Kernel};

const FILL: &str = "from tvm.script import tirx as T\n\n@T.jit\ndef fill(A: T.Buffer((N,), \"float32\"), *, N: T.constexpr, \
                    value: T.constexpr):\n    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])\n    A[tx] = value\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fill = Kernel::script("fill", FILL)
        .specialize([("N", ConstValue::from(32)), ("value", ConstValue::from(10.5))])
        .targets(["sm_90a"]);
    let mut f = FuncBuilder::new("rows");
    let n = f.extent("n");
    let a = f.tensor("A", [n.clone()], DType::FLOAT32);
    let factor = f.scalar("factor", DType::FLOAT32);
    f.device_entry();
    let [bx] = f.cta_id(["bx"], [n.clone().ceildiv(16)]);
    let [tx] = f.thread_id(["tx"], [16]);
    let i = f.bind("i", bx * 16 + tx);
    f.if_then(i.clone().lt(n), |f| f.store(&a, [i.clone()], f.load(&a, [i]) * factor));
    let rows = Kernel::ir("rows", f.finish()?).targets(["sm_90a"]).ptx("compute_90");
    Builder::new().kernel(fill).kernel(rows).compile()?;
    Ok(())
}
"#;

const GENERATED: &str = r#"tirx_rt::include_kernels!();

fn main() -> tirx_rt::Result<()> {
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let mut a = tirx_rt::Tensor::zeros(&stream, [32])?;
    kernels::fill::n32_value_10_5(&stream, &mut a)?;
    kernels::rows(&stream, &mut a, 4.0)?;
    println!("{:?}", a.to_vec()?[31]);
    Ok(())
}
"#;

/// The manifest of a package whose build script declares kernels beside it.
const BESIDE: &str = "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"add\"\nsource = \"kernels.py\"\n\
    specialize = [{ N = 32 }]\n";

#[test]
fn kernels_of_a_build_script_are_bundled() {
    let mut place = ScratchPackages::new();
    place.fake_nvcc();
    let main = GENERATED.replace(
        "    Ok(())",
        "    let images = [&kernels::add::n32::IMAGE, &kernels::fill::n32_value_10_5::IMAGE, &kernels::rows::IMAGE];\n    \
         println!(\"{:?}\", images.map(|image| image.fatbin.is_some()));\n    Ok(())",
    );
    place.package("script", BESIDE, KERNELS, &main, "");
    place.write("script/build.rs", GENERATING);
    place.set("CARGO_NET_OFFLINE", "true");
    place.set("CARGO", env!("CARGO"));
    let program = command_line();
    let tirx = |place: &ScratchPackages, arguments: &[&str]| {
        let mut command = place.prepared(std::process::Command::new(&program), "script");
        texts(command.args(["tirx", "bundle"]).args(arguments).output().unwrap())
    };
    let (success, out, err) = tirx(&place, &[]);
    assert!(success, "{err}");
    assert!(
        err.contains("the build script declares kernels: Cargo runs it"),
        "{err}"
    );
    assert!(out.starts_with("wrote kernels.bundle\n"), "{out}");
    for kernel in [
        "add::n32 ",
        "fill::n32_value_10_5",
        "rows ",
        "3 kernels by nvcc 13.0 ",
    ] {
        assert!(out.contains(kernel), "{kernel}: {out}");
    }
    // No nvcc from here on.
    place.set("TIRX_NVCC", "none");
    let (success, out, err) = place.cargo("script", &["run"]);
    assert!(success, "{err}");
    assert_eq!(out, "42.0\n[true, true, true]\n");
    let (success, out, err) = tirx(&place, &["--locked"]);
    assert!(
        success && out.starts_with("up to date: kernels.bundle\n"),
        "{out}{err}"
    );
    place.edit("script/build.rs", "* factor", "+ factor");
    for (success, _, err) in [tirx(&place, &["--locked"]), place.cargo("script", &["build"])] {
        assert!(!success);
        let said =
            "is stale: kernel `rows` has changed: its source, a specialization or a file that it imports";
        assert!(err.contains(said), "{err}");
    }
    let (_, _, err) = place.cargo("script", &["build"]);
    let note = "= note: the build script declares it: `cargo tirx bundle --build-script` has the script make the bundle";
    assert!(err.contains(note), "{err}");
    let (success, _, err) = tirx(&place, &[]);
    assert!(
        !success && err.contains("error: a bundle needs an nvcc to be made"),
        "{err}"
    );
    assert_eq!(err.matches("error").count(), 1, "{err}");
    // With one again, at another place and for other targets.
    place.unset("TIRX_NVCC");
    let (success, out, err) = tirx(
        &place,
        &["--out", "all.tirx", "--single-file", "--targets", "sm_100a"],
    );
    assert!(
        success && out.starts_with("wrote all.tirx\n") && out.contains("sm_100a ") && !out.contains("sm_90a"),
        "{out}{err}"
    );
    assert!(place.path("script/all.tirx").is_file());
    let (success, out, err) = tirx(&place, &[]);
    assert!(success && out.starts_with("wrote "), "{out}{err}");
    let (success, out, err) = tirx(&place, &["--verify"]);
    assert!(
        success && out.starts_with("verified, byte for byte: "),
        "{out}{err}"
    );
    // A Cargo that is not there, and one that answers something else.
    place.set("CARGO", "/nowhere/cargo");
    let (success, _, err) = tirx(&place, &[]);
    assert!(
        !success && err.contains("error: `/nowhere/cargo` cannot be run: "),
        "{err}"
    );
    let other = place.path("bin/other-cargo");
    std::fs::write(&other, "#!/bin/sh\necho what > \"${TIRX_BUNDLE%.toml}.answer\"\n").unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.set("CARGO", other.to_str().unwrap());
    let (success, _, err) = tirx(&place, &[]);
    assert!(
        !success && err.contains("error: the build script's answer is damaged: "),
        "{err}"
    );
    place.set("CARGO", env!("CARGO"));
    // Mistakes.
    place.edit("script/build.rs", "f.finish()?", "f.finished()?");
    let (success, _, err) = tirx(&place, &[]);
    assert!(
        !success
            && err.contains("error: the package cannot be built, which its bundle needs")
            && err.contains("no method named `finished`"),
        "{err}"
    );
    place.write("script/build.rs", "fn main() {}\n");
    place.write("script/src/main.rs", "fn main() {}\n");
    let (success, _, err) = tirx(&place, &["--build-script"]);
    assert!(
        !success
            && err.contains("error: the build script of `")
            && err.contains("` builds no `kernels.toml`"),
        "{err}"
    );
    std::fs::remove_file(place.path("script/Cargo.toml")).unwrap();
    let (success, _, err) = tirx(&place, &["--build-script"]);
    assert!(
        !success && err.contains("`--build-script`: there is no Cargo.toml beside the manifest or above"),
        "{err}"
    );
}

#[test]
fn a_build_script_makes_kernels() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    place.package("made", "", "", GENERATED, "");
    std::fs::remove_file(place.path("made/kernels.toml")).unwrap();
    place.write("made/build.rs", GENERATING);
    let (success, out, err) = place.cargo("made", &["run"]);
    assert!(success, "{err}");
    assert_eq!(out, "42.0\n");

    let refused = |from: &str, to: &str, said: &str| {
        place.edit("made/build.rs", from, to);
        let (success, _, err) = place.cargo("made", &["build"]);
        assert!(!success && err.contains(said), "{said}: {err}");
        place.edit("made/build.rs", to, from);
    };
    refused(
        "Kernel::ir(\"rows\"",
        "Kernel::ir(\"fill\"",
        "kernel `fill` is declared twice",
    );
    refused(
        "Kernel::ir(\"rows\"",
        "Kernel::ir(\"my-rows\"",
        "`my-rows` cannot be a kernel's name",
    );
    refused(
        ".ptx(\"compute_90\")",
        ".ptx(\"sm_90\")",
        "kernel `rows`: unknown architecture `sm_90`",
    );
    refused(
        ".targets([\"sm_90a\"]);\n    let mut f",
        ";\n    let mut f",
        "kernel `fill` names no targets",
    );
    refused(
        "f.store(&a, [i.clone()]",
        "f.store(&a, [i.clone(), 0.into()]",
        "`A` has 1 dimensions, found 2 indices",
    );
}

#[test]
fn a_c_interface_writes_nothing_into_the_sources_of_a_dependency() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    place.package("sourced", MANIFEST, KERNELS, "", "");
    std::fs::remove_file(place.path("sourced/src/main.rs")).unwrap();
    place.write("sourced/src/lib.rs", LIBRARY);
    let manifest = std::fs::read_to_string(place.path("sourced/Cargo.toml")).unwrap();
    place.manifest(
        "sourced",
        &manifest.replace("edition", "links = \"sourced\"\nedition"),
    );
    place.write(
        "sourced/build.rs",
        "fn main() -> tirx_build::Result<()> {\n    tirx_build::Builder::new()\n        \
         .c_api(tirx_build::CApi::new(\"sourced\").folder(\"dist\")).compile()\n}\n",
    );
    let dependencies = "[dependencies]\nsourced = { path = \"../sourced\" }\n";
    place.manifest("sourcing", dependencies);
    place.write(
        "sourcing/src/main.rs",
        "fn main() {\n    println!(\"{}\", env!(\"HEADER\"));\n}\n",
    );
    place.write(
        "sourcing/build.rs",
        "fn main() {\n    let folder = std::env::var(\"DEP_SOURCED_TIRX_C_API\").unwrap();\n    \
         println!(\"cargo::rustc-env=HEADER={folder}/include/sourced.h\");\n}\n",
    );
    let (success, out, err) = place.cargo("sourcing", &["run"]);
    assert!(success, "{err}");
    assert!(
        !place.path("sourced/dist").exists(),
        "a build wrote into a dependency"
    );
    assert!(std::path::Path::new(out.trim()).is_file(), "{out}");
    // The package's own build writes there.
    let (success, _, err) = place.cargo("sourced", &["build"]);
    assert!(
        success && place.path("sourced/dist/include/sourced.h").is_file(),
        "{err}"
    );
}
