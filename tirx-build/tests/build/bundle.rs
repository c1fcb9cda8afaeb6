//! Bundles: written, used without nvcc, and refused.

use std::fs;
use std::path::PathBuf;

use tirx_build::{BundleAction, Environment};
use tirx_bundle::Kernel;

use crate::package::{Package, warnings};

/// A package with a bundle, made by an nvcc.
fn bundled() -> Package {
    let package = Package::new();
    let environment = Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    let report = package
        .builder(environment)
        .bundle(BundleAction::Write, false, "MIT")
        .unwrap();
    assert_eq!(report.kernels.len(), 3);
    assert!(report.kernels.iter().any(|kernel| kernel.name == "add::n256"));
    package
}

fn none() -> Environment {
    Environment::empty().with("TIRX_NVCC", "none")
}

fn refused(package: &Package, environment: Environment) -> String {
    package.build(environment).unwrap_err().to_string()
}

/// The file of a kernel in the package's bundle.
fn file(package: &Package, name: &str) -> PathBuf {
    package.path("kernels.bundle").join(name)
}

#[test]
fn a_build_with_a_bundle_needs_no_nvcc_and_gives_the_same_bytes() {
    let package = bundled();
    package.with_nvcc();
    let outputs = [
        "tirx_kernels.rs",
        "tirx/add-n256.fatbin",
        "tirx/scale.fatbin",
        "tirx/scale.ir",
    ];
    let all = |package: &Package| outputs.map(|name| package.read(&format!("out/{name}")));
    fs::rename(package.path("kernels.bundle"), package.path("aside")).unwrap();
    package.with_nvcc();
    let by_nvcc = all(&package);
    fs::rename(package.path("aside"), package.path("kernels.bundle")).unwrap();
    fs::remove_dir_all(package.path("out")).unwrap();
    fs::create_dir(package.path("out")).unwrap();
    let report = package.build(none()).unwrap();
    assert_eq!((report.bundled, report.compiled, report.cached), (3, 0, 0));
    assert!(warnings(&report).is_empty() && report.nvcc.is_none());
    assert!(
        all(&package) == by_nvcc,
        "the bundle's outputs differ from nvcc's"
    );
    let line = format!(
        "cargo::rerun-if-changed={}",
        package.path("kernels.bundle").display()
    );
    assert!(report.directives.contains(&line), "{:#?}", report.directives);
    let lock = package.text("kernels.bundle/kernels.lock");
    for part in [
        "version = 1\ntirx = \"0.1.0\"\nnvcc = \"13.0 V13.0.88\"",
        "name = \"add::n256\"\nfile = \"add-n256\"",
        "targets = [\"sm_90a\", \"sm_100a\", \"compute_90\"]",
    ] {
        assert!(lock.contains(part), "{lock}");
    }
    assert!(package.text("kernels.bundle/NOTICE.txt").contains("license: MIT"));
}

#[test]
fn a_bundle_of_some_targets_leaves_out_kernels_without_them() {
    let package = Package::new();
    package.edit(
        "kernels.toml",
        "entry = \"scale_rows\"",
        "entry = \"scale_rows\"\ntargets = [\"sm_80\"]\nptx = \"none\"",
    );
    let only = |environment: Environment, targets: &[&str]| {
        package.builder(environment).only_targets(targets.iter().copied())
    };
    let nvcc = || Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    let wanted = ["sm_90a", "compute_90"];
    let report = only(nvcc(), &wanted)
        .bundle(BundleAction::Write, true, "MIT")
        .unwrap();
    let targets = |image: &(String, usize)| image.0.clone();
    let kernels: Vec<(String, Vec<String>)> = report
        .kernels
        .iter()
        .map(|kernel| (kernel.name.clone(), kernel.images.iter().map(targets).collect()))
        .collect();
    let each = wanted.map(String::from).to_vec();
    assert_eq!(
        kernels,
        [("add::n1024".into(), each.clone()), ("add::n256".into(), each)]
    );
    // Without an nvcc, the kernel that was left out has a launcher and no code.
    let report = only(none(), &wanted).build().unwrap();
    assert_eq!((report.bundled, report.compiled, report.cached), (2, 0, 0));
    assert!(warnings(&report).is_empty());
    let text = package.text("out/tirx_kernels.rs");
    let scale = text.split_once("pub mod scale").unwrap().1;
    assert!(
        scale.contains("fatbin: None") && scale.contains("targets: &[]"),
        "{scale}"
    );
    assert!(!package.path("out/tirx/scale.fatbin").exists());
    only(none(), &wanted)
        .bundle(BundleAction::Locked, false, "MIT")
        .unwrap();
    let error = |targets: &[&str]| only(nvcc(), targets).build().unwrap_err().to_string();
    let text = error(&["sm_89"]);
    assert!(text.contains("no kernel has one of the targets sm_89"), "{text}");
    let text = error(&["sm80"]);
    assert!(
        text.contains("Builder::only_targets: unknown architecture `sm80`"),
        "{text}"
    );
}

#[test]
fn one_file_and_another_place_serve_as_well() {
    let package = Package::new();
    package.edit(
        "kernels.toml",
        "[defaults]",
        "[bundle]\npath = \"shipped/all.tirx\"\n\n[defaults]",
    );
    let message = refused(&package, none());
    assert!(
        message.contains("there is no bundle at `") && message.contains("shipped/all.tirx"),
        "{message}"
    );
    fs::create_dir(package.path("shipped")).unwrap();
    let environment = Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    package
        .builder(environment)
        .bundle(BundleAction::Write, true, "MIT")
        .unwrap();
    assert!(package.path("shipped/all.tirx").is_file());
    assert_eq!(package.build(none()).unwrap().bundled, 3);
    let elsewhere = package.path("elsewhere");
    fs::rename(package.path("shipped/all.tirx"), &elsewhere).unwrap();
    assert_eq!(
        package
            .builder(none())
            .bundle_dir(elsewhere)
            .build()
            .unwrap()
            .bundled,
        3
    );
}

#[test]
fn a_stale_bundle_is_refused_with_the_kernel_and_the_reason() {
    for (from, to, said) in [
        (
            "specialize = [{ N = 256 }",
            "specialize = [{ N = 512 }, { N = 256 }",
            "kernel `add::n512` is not in the bundle",
        ),
        (
            "ptx =",
            "fast-math = true\nptx =",
            "kernel `scale` was compiled with other flags: ``, the manifest says `--use_fast_math`",
        ),
        (
            "\"sm_100a\"",
            "\"sm_100a\", \"sm_120\"",
            "kernel `scale` has no image for sm_120",
        ),
        (
            "[defaults]",
            "[toolchain]\ncuda = \"12.8\"\n\n[defaults]",
            "kernel `scale` was compiled by nvcc 13.0 V13.0.88, the manifest pins 12.8",
        ),
    ] {
        let package = bundled();
        package.edit("kernels.toml", from, to);
        let message = refused(&package, none());
        assert!(
            message.contains("is stale: ")
                && message.contains(said)
                && message.contains("run `cargo tirx bundle`"),
            "{message}"
        );
    }
    // A launcher of another compiler's, with the same device code.
    let package = bundled();
    let lock = package.text("kernels.bundle/kernels.lock");
    let signature = lock
        .lines()
        .rfind(|line| line.starts_with("signature = "))
        .unwrap();
    package.edit(
        "kernels.bundle/kernels.lock",
        signature,
        "signature = \"another\"",
    );
    let message = refused(&package, none());
    assert!(
        message.contains("kernel `scale` has another signature than its launcher"),
        "{message}"
    );
    let package = bundled();
    package.edit("kernels.py", "A[i, j] * s", "A[i, j] - s");
    let message = refused(&package, none());
    assert!(
        message
            .contains("kernel `scale` has changed: its source, a specialization or a file that it imports"),
        "{message}"
    );
    assert_eq!(message.matches("error:").count(), 1, "{message}");
    // With an nvcc it is compiled, with a warning.
    let report = package.with_nvcc();
    assert_eq!((report.bundled, report.compiled + report.cached), (2, 3));
    let lines = warnings(&report);
    assert!(
        lines.len() == 1
            && lines[0].contains("kernel `scale` has changed")
            && lines[0].contains("nvcc compiled it"),
        "{lines:?}"
    );
    // Locked, it is an error all the same.
    let locked = Environment::empty()
        .with("TIRX_NVCC", package.nvcc("13.0"))
        .with("TIRX_LOCKED", "1");
    assert!(refused(&package, locked).contains("is stale: kernel `scale` has changed"));
    // A comment changes no image: only locked builds mind.
    let package = bundled();
    package.edit("kernels.py", "@T.jit", "# A comment.\n@T.jit");
    assert_eq!(package.build(none()).unwrap().bundled, 3);
    assert!(refused(&package, none().with("TIRX_LOCKED", "1")).contains("has moved: lines of its file"));
    assert!(refused(&Package::new(), none().with("TIRX_LOCKED", "1")).contains("there is no bundle at"));
    assert_eq!(
        bundled().build(none().with("TIRX_LOCKED", "1")).unwrap().bundled,
        3
    );
}

#[test]
fn a_damaged_bundle_is_refused_whatever_else_there_is() {
    let check = |change: &dyn Fn(&Package), said: &str| {
        let package = bundled();
        change(&package);
        for environment in [
            none(),
            Environment::empty().with("TIRX_NVCC", package.nvcc("13.0")),
        ] {
            let message = refused(&package, environment);
            assert!(message.contains(said), "{said}: {message}");
        }
    };
    check(
        &|package| {
            let path = file(package, "scale.tirxk");
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        "is damaged: kernel `scale` is damaged: its content does not match its hash",
    );
    check(
        &|package| {
            let path = file(package, "scale.tirxk");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 7]).unwrap();
        },
        "is damaged: kernel `scale` is damaged",
    );
    check(
        &|package| fs::remove_file(file(package, "scale.tirxk")).unwrap(),
        "is damaged: kernel `scale` has no file `scale.tirxk`",
    );
    check(
        &|package| {
            fs::copy(file(package, "add-n256.tirxk"), file(package, "scale.tirxk")).unwrap();
        },
        "kernel `scale` is not the one that kernels.lock names",
    );
    check(
        &|package| package.edit("kernels.bundle/kernels.lock", "version = 1", "version = 9"),
        "is of version 9, this compiler reads version 1",
    );
    check(
        &|package| package.edit("kernels.bundle/kernels.lock", "tirx = ", "tir = "),
        "kernels.bundle` is damaged: unknown key `tir`",
    );
    check(
        &|package| {
            fs::remove_file(file(package, "scale.tirxk")).unwrap();
            fs::create_dir(file(package, "scale.tirxk")).unwrap();
        },
        "error: `scale.tirxk` of the bundle `",
    );
    check(
        &|package| fs::remove_file(file(package, "kernels.lock")).unwrap(),
        "has no kernels.lock",
    );
    let package = bundled();
    package.edit(
        "kernels.bundle/kernels.lock",
        "tirx = \"0.1.0\"",
        "tirx = \"0.0.9\"",
    );
    let message = refused(&package, none());
    assert!(
        message.contains("kernel `scale` was made by tirx 0.0.9, this is 0.1.0"),
        "{message}"
    );
}

#[test]
fn bundles_are_checked_and_reproducible() {
    let package = bundled();
    let first = package.read("kernels.bundle/scale.tirxk");
    let locked = package
        .builder(none())
        .bundle(BundleAction::Locked, false, "MIT")
        .unwrap();
    assert_eq!(locked.kernels.len(), 3);
    let with =
        |package: &Package| package.builder(Environment::empty().with("TIRX_NVCC", package.nvcc("13.0")));
    with(&package).bundle(BundleAction::Verify, false, "MIT").unwrap();
    let other = bundled();
    assert!(other.read("kernels.bundle/scale.tirxk") == first);
    assert_eq!(
        other.text("kernels.bundle/kernels.lock"),
        package.text("kernels.bundle/kernels.lock")
    );
    // An nvcc that makes something else.
    let nvcc = package.nvcc_that("13.0", "all=other");
    let builder = package.builder(Environment::empty().with("TIRX_NVCC", nvcc));
    let message = builder
        .bundle(BundleAction::Verify, false, "MIT")
        .unwrap_err()
        .to_string();
    assert!(
        message
            .contains("the image of kernel `scale` for sm_90a differs from the result of this compilation"),
        "{message}"
    );
    // A bundle whose contents are consistent, but not what the compiler makes now.
    let differs = |change: &dyn Fn(&Package), said: &str| {
        let package = bundled();
        change(&package);
        let result = with(&package).bundle(BundleAction::Verify, false, "MIT");
        let message = result.unwrap_err().to_string();
        assert!(message.contains(said), "{said}: {message}");
    };
    let kernel = |package: &Package, change: &dyn Fn(&mut Kernel)| {
        let path = file(package, "scale.tirxk");
        let mut kernel = Kernel::decode(&fs::read(&path).unwrap()).unwrap();
        change(&mut kernel);
        fs::write(path, kernel.encode()).unwrap();
    };
    differs(
        &|package| kernel(package, &|kernel| kernel.ir.push(0)),
        "error: kernel `scale` differs from the result of this compilation",
    );
    differs(
        &|package| kernel(package, &|kernel| kernel.name.push('2')),
        "error: kernel `scale` is not in the bundle",
    );
    differs(
        &|package| {
            package.edit(
                "kernels.bundle/kernels.lock",
                "version = 1",
                "# Mine.\nversion = 1",
            );
        },
        "error: kernels.lock differs from the one of this build",
    );
    // Locked, a bundle for more targets than the manifest names is not the one that would be made.
    let message = bundled()
        .builder(none())
        .targets(["sm_90a"])
        .bundle(BundleAction::Locked, false, "MIT")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("kernel `scale` was compiled for other targets"),
        "{message}"
    );
    package.edit(
        "kernels.toml",
        "[[kernel]]\nname = \"scale\"",
        "[[kernel]]\nname = \"scale2\"",
    );
    let message = package
        .builder(none())
        .bundle(BundleAction::Locked, false, "MIT")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("kernel `scale2` is not in the bundle")
            && message.contains("kernel `scale` is not in the manifest"),
        "{message}"
    );
    let message = Package::new()
        .builder(none())
        .bundle(BundleAction::Write, false, "MIT")
        .unwrap_err()
        .to_string();
    assert!(message.contains("a bundle needs an nvcc to be made"), "{message}");
    // Fewer targets than the manifest names: for builds that want those alone.
    let package = Package::new();
    with(&package)
        .targets(["sm_90a"])
        .bundle(BundleAction::Write, false, "MIT")
        .unwrap();
    assert!(refused(&package, none()).contains("has no image for sm_100a"));
    assert_eq!(
        package
            .builder(none())
            .targets(["sm_90a"])
            .build()
            .unwrap()
            .bundled,
        3
    );
}

#[test]
fn kernels_of_a_feature_are_built_with_it() {
    let package = Package::new();
    package.edit(
        "kernels.toml",
        "entry = \"scale_rows\"",
        "entry = \"scale_rows\"\nfeature = \"row-scale\"",
    );
    package.write(
        "Cargo.toml",
        "[package]\nname = \"p\"\n[features]\nrow-scales = []\n",
    );
    let error = package.refused();
    assert!(
        error.contains("kernel `scale` is of the feature `row-scale`, which the package does not declare")
            && error.contains("did you mean `row-scales`?")
            && error.contains("kernels.toml:13:9"),
        "{error}"
    );
    package.edit("Cargo.toml", "row-scales", "row-scale");
    package.build(none()).unwrap();
    assert!(!package.path("out/tirx/scale.cu").exists());
    package
        .build(none().with("CARGO_FEATURE_ROW_SCALE", "1"))
        .unwrap();
    assert!(package.path("out/tirx/scale.cu").exists());
}

#[test]
fn offline_a_fetch_is_an_error_and_a_bundle_needs_none() {
    let fetching = |package: &Package| {
        package.edit(
            "kernels.toml",
            "[defaults]",
            "[toolchain]\ncuda = \"13.0\"\nauto-install = true\n\n[defaults]",
        );
        package.script("echo >> \"$0.ran\"");
        // No programs but this Python, which would fetch.
        Environment::empty()
            .with("TIRX_OFFLINE", "1")
            .with("TIRX_PYTHON", package.path("nvcc"))
    };
    let package = Package::new();
    let message = refused(&package, fetching(&package));
    assert!(
        message.contains("no nvcc was found, and TIRX_OFFLINE forbids fetching nvcc 13.0")
            && message.contains("make a bundle on a machine with nvcc (`cargo tirx bundle`)"),
        "{message}"
    );
    let package = Package::new();
    let environment = fetching(&package);
    let old = package.path("old/bin/nvcc");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::rename(package.nvcc("12.8"), &old).unwrap();
    let message = refused(&package, environment.with("CUDA_HOME", package.path("old")));
    assert!(
        message.contains("it is CUDA 12.8, the manifest pins 13.0")
            && message.contains("= note: TIRX_OFFLINE forbids fetching nvcc 13.0"),
        "{message}"
    );
    let package = bundled();
    let environment = fetching(&package);
    assert_eq!(package.build(environment).unwrap().bundled, 3);
    assert!(!package.path("nvcc.ran").exists(), "Python was run");
}

#[test]
fn native_targets_come_from_the_machine_that_builds() {
    let package = Package::new();
    let smi = package.path("bin/nvidia-smi");
    fs::create_dir(smi.parent().unwrap()).unwrap();
    fs::rename(package.script("echo '9.0, NVIDIA H200'"), &smi).unwrap();
    let nvcc = package.nvcc("13.0");
    let environment = Environment::empty()
        .with("TIRX_NVCC", nvcc)
        .with("PATH", package.path("bin"));
    let report = package
        .builder(environment.clone())
        .targets(["native"])
        .build()
        .unwrap();
    assert!(report.compiled > 0);
    assert!(
        package
            .text("out/tirx_kernels.rs")
            .contains("targets: &[\"sm_90a\"]")
    );
    let message = package
        .builder(environment.with("PATH", ""))
        .targets(["native"])
        .build()
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("error: `native` among the targets: there is no `nvidia-smi` on PATH"),
        "{message}"
    );
}
