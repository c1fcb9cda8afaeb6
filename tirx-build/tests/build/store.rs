//! What is stored, when nvcc runs again, and what is never trusted.

use std::fs;

use tirx_build::{Environment, Report};

use crate::package::Package;

fn named(package: &Package) -> Environment {
    Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"))
}

fn counts(report: &Report) -> (usize, usize) {
    (report.compiled, report.cached)
}

#[test]
fn an_nvcc_that_writes_nothing_is_an_error_and_the_old_image_is_not_taken() {
    let package = Package::new();
    package.build(named(&package)).unwrap();
    let before = package.read("out/tirx/scale.fatbin");
    package.edit("kernels.py", "A[i, j] * s", "A[i, j] - s");
    for (more, said) in [
        ("exit 0", "nvcc ended without an error, but wrote no output"),
        (
            ": > kernel.fatbin; exit 0",
            "nvcc ended without an error, but wrote an output that is empty",
        ),
        (
            "echo text > kernel.fatbin; exit 0",
            "wrote an output that is no fat binary: its first bytes are wrong",
        ),
    ] {
        let nvcc = package.nvcc_that("13.0", more);
        let environment = Environment::empty()
            .with("TIRX_NVCC", nvcc)
            .with("NVCC_APPEND_FLAGS", "--dryrun");
        let message = package.build(environment.clone()).unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
        assert!(
            message.contains("= note: NVCC_APPEND_FLAGS is `--dryrun`"),
            "{message}"
        );
        // The failure is not kept either.
        package.build(environment).unwrap_err();
    }
    let report = package.build(named(&package)).unwrap();
    assert_eq!(counts(&report), (3, 6));
    assert!(package.read("out/tirx/scale.fatbin") != before);
}

#[test]
fn variables_that_nvcc_reads_are_part_of_the_key_and_watched() {
    let package = Package::new();
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (9, 0));
    for name in ["NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_CCBIN", "CPATH"] {
        let other = named(&package).with(name, "--use_fast_math");
        let report = package.build(other.clone()).unwrap();
        assert_eq!(counts(&report), (9, 0), "{name}");
        let line = format!("cargo::rerun-if-env-changed={name}");
        assert!(report.directives.contains(&line), "{line}");
        // Back and forth costs nothing.
        assert_eq!(counts(&package.build(named(&package)).unwrap()), (0, 9));
        assert_eq!(counts(&package.build(other).unwrap()), (0, 9));
    }
}

#[test]
fn comments_targets_and_absence_of_nvcc_compile_nothing_again() {
    let package = Package::new();
    package.build(named(&package)).unwrap();
    package.edit("kernels.py", "@T.jit", "# A comment.\n\n@T.jit");
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (0, 9));
    package.edit(
        "kernels.toml",
        "\"sm_90a\", \"sm_100a\"",
        "\"sm_90a\", \"sm_100a\", \"sm_120\"",
    );
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (3, 9));
    package.edit("kernels.toml", ", \"sm_120\"", "");
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (0, 9));
    package
        .build(Environment::empty().with("TIRX_NVCC", "none"))
        .unwrap();
    assert!(!package.path("out/tirx/scale.fatbin").exists());
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (0, 9));
    // Profiles share.
    for profile in ["release", "debug"] {
        let report = package.build(named(&package).with("PROFILE", profile)).unwrap();
        assert_eq!(counts(&report), (0, 9), "{profile}");
    }
    // Another release compiles all; the same one at another place nothing.
    let newer = Environment::empty().with("TIRX_NVCC", package.nvcc("13.1"));
    assert_eq!(counts(&package.build(newer).unwrap()), (9, 0));
    let moved = package.path("elsewhere-nvcc");
    package.nvcc("13.0");
    fs::rename(package.path("nvcc"), &moved).unwrap();
    let report = package
        .build(Environment::empty().with("TIRX_NVCC", moved))
        .unwrap();
    assert_eq!(counts(&report), (0, 9));
}

#[test]
fn the_shared_store_serves_other_packages_and_can_be_turned_off() {
    let (one, two) = (Package::new(), Package::new());
    let shared = one.path("shared");
    one.build(named(&one).with("TIRX_STORE", &shared)).unwrap();
    let report = two.build(named(&two).with("TIRX_STORE", &shared)).unwrap();
    assert_eq!(counts(&report), (0, 9));
    let three = Package::new();
    let environment = named(&three).with("TIRX_STORE", &shared);
    let report = three.builder(environment).shared_store(false).build().unwrap();
    assert_eq!(counts(&report), (9, 0));
    let four = Package::new();
    assert_eq!(
        counts(&four.build(named(&four).with("TIRX_STORE", "none")).unwrap()),
        (9, 0)
    );
    // What was damaged on the disk is compiled again.
    let five = Package::new();
    for file in walk(&shared) {
        if file.extension().is_some_and(|e| e == "tirx") {
            let mut bytes = fs::read(&file).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
    }
    let report = five.build(named(&five).with("TIRX_STORE", &shared)).unwrap();
    assert_eq!(counts(&report), (9, 0));
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => walk(&path),
            path => vec![path],
        })
        .collect()
}

#[test]
fn options_of_a_kernel_reach_nvcc_and_concern_it_alone() {
    let package = Package::new();
    package.build(named(&package)).unwrap();
    let options = "entry = \"scale_rows\"\nfast-math = true\nmax-registers = 64\nlineinfo = true\ndebug = true\n\
                   flags = [\"--extra-device-vectorization\"]\n";
    package.edit("kernels.toml", "entry = \"scale_rows\"\n", options);
    assert_eq!(counts(&package.build(named(&package)).unwrap()), (3, 6));
    let runs = package.text("runs");
    let last = runs.lines().last().unwrap();
    let expected = "--use_fast_math -lineinfo --extra-device-vectorization -o kernel.fatbin kernel.cu";
    assert!(last.ends_with(expected), "{last}");
    package.build(named(&package).with("PROFILE", "debug")).unwrap();
    let runs = package.text("runs");
    let last = runs.lines().last().unwrap();
    assert!(last.contains(" -G ") && !last.contains("-lineinfo"), "{last}");
}

#[test]
fn line_directives_name_the_kernel_file() {
    let package = Package::new();
    package.edit(
        "kernels.toml",
        "entry = \"scale_rows\"\n",
        "entry = \"scale_rows\"\nlineinfo = true\n",
    );
    let texts = package.path("texts");
    let nvcc = package.nvcc_that("13.0", &format!("cat kernel.cu >> '{}'", texts.display()));
    package
        .build(Environment::empty().with("TIRX_NVCC", nvcc))
        .unwrap();
    assert!(
        package.text("texts").contains("#line 28 \"kernels.py\"\n"),
        "{}",
        package.text("texts")
    );
    // The text that is shown has none.
    assert!(!package.text("out/tirx/scale.cu").contains("#line"));
}

#[test]
fn a_wrapper_gets_nvcc_and_its_arguments() {
    let package = Package::new();
    let log = package.path("log");
    let nvcc = package.nvcc("13.0");
    let moved = package.path("real-nvcc");
    fs::rename(&nvcc, &moved).unwrap();
    let wrapper = package.script(&format!("echo \"$1\" >> '{}'; exec \"$@\"", log.display()));
    let environment = Environment::empty()
        .with("TIRX_NVCC", &moved)
        .with("TIRX_NVCC_WRAPPER", wrapper);
    assert_eq!(counts(&package.build(environment).unwrap()), (9, 0));
    let text = package.text("log");
    assert_eq!(text.lines().count(), 9);
    assert!(text.lines().all(|line| line == moved.to_string_lossy()), "{text}");
    // It is no part of the key.
    let without = Environment::empty().with("TIRX_NVCC", moved);
    assert_eq!(counts(&package.build(without).unwrap()), (0, 9));
}
