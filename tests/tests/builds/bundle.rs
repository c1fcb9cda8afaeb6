//! Bundles beside a package that Cargo builds: a build notices when one appears, changes, goes and comes back; and a package
//! whose kernels are edited is built for the simulator where there is no nvcc.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tirx_build::{Builder, BundleAction, Environment};

use crate::throw_away::ScratchPackages;
use crate::{KERNELS, MAIN, manifest};

/// A package without nvcc, and the nvcc that makes its bundles. Packages of one name share their outputs.
fn package(name: &str) -> (ScratchPackages, PathBuf) {
    let mut place = ScratchPackages::new();
    place.package(name, &manifest(2, "\"sm_90a\""), KERNELS, MAIN, "");
    let nvcc = place.fake_nvcc();
    place.set("TIRX_NVCC", "none");
    (place, nvcc)
}

/// Makes the bundle of the package at its default place.
fn bundle(place: &ScratchPackages, package: &str, nvcc: &Path, single: bool) {
    Builder::new()
        .manifest(place.path(package).join("kernels.toml"))
        .environment(
            Environment::process()
                .with("TIRX_NVCC", nvcc)
                .with("TIRX_STORE", "none"),
        )
        .bundle(BundleAction::Write, single, "MIT")
        .unwrap();
}

/// Makes everything in a folder, or a file, as old as a file from a release.
fn age(path: &Path) {
    let old = SystemTime::now() - Duration::from_secs(30 * 24 * 60 * 60);
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            age(&entry.path());
        }
    }
    fs::File::open(path).unwrap().set_modified(old).unwrap();
}

/// Builds and runs; whether the kernel has machine code, and what Cargo said.
fn has_code(place: &ScratchPackages, package: &str) -> (bool, String) {
    let (success, out, err) = place.cargo(package, &["run"]);
    assert!(success, "{err}");
    (out.contains(" true "), err)
}

/// That a build has nothing to do.
fn is_fresh(place: &ScratchPackages, package: &str) {
    let (success, _, err) = place.cargo(package, &["build"]);
    assert!(success && !err.contains("Compiling"), "{err}");
}

fn warnings(err: &str) -> Vec<&str> {
    let ours = |line: &&str| line.starts_with("warning: ") && line.contains("tirx: ");
    err.lines().filter(ours).collect()
}

#[test]
fn a_build_notices_a_bundle_that_appears_goes_and_comes_back() {
    const NAME: &str = "appearing";
    let (place, nvcc) = package(NAME);
    let (code, err) = has_code(&place, NAME);
    assert!(!code && warnings(&err).len() == 1, "{err}");
    is_fresh(&place, NAME);
    // It appears, with files that are older than the build.
    bundle(&place, NAME, &nvcc, false);
    let folder = place.path(NAME).join("kernels.bundle");
    age(&folder);
    let (code, err) = has_code(&place, NAME);
    assert!(code && warnings(&err).is_empty(), "{err}");
    is_fresh(&place, NAME);
    // It goes, and comes back as it was.
    let aside = place.path("aside");
    fs::rename(&folder, &aside).unwrap();
    assert!(!has_code(&place, NAME).0);
    is_fresh(&place, NAME);
    fs::rename(&aside, &folder).unwrap();
    assert!(has_code(&place, NAME).0);
    is_fresh(&place, NAME);
    // A file of it changes: the build looks at the whole bundle again.
    let lock = folder.join("kernels.lock");
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replace("version = 1", "version = 9")).unwrap();
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(!success && err.contains("is of version 9"), "{err}");
    fs::write(&lock, text).unwrap();
    assert!(has_code(&place, NAME).0);
    fs::remove_file(folder.join("add-n32.tirxk")).unwrap();
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(!success && err.contains("has no file `add-n32.tirxk`"), "{err}");
    // One file serves as well as a folder.
    fs::remove_dir_all(&folder).unwrap();
    assert!(!has_code(&place, NAME).0);
    bundle(&place, NAME, &nvcc, true);
    assert!(has_code(&place, NAME).0);
    is_fresh(&place, NAME);
}

#[test]
fn an_edited_kernel_with_a_bundle_runs_on_the_simulator_where_the_project_says_so() {
    const NAME: &str = "edited";
    let (mut place, nvcc) = package(NAME);
    bundle(&place, NAME, &nvcc, false);
    assert!(has_code(&place, NAME).0);
    // By default an edit is an error without nvcc.
    place.edit("edited/kernels.py", "+ 1.0", "+ 2.0");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(!success && err.contains("is stale"), "{err}");
    // For one build: the bundle is not looked at.
    place.set("TIRX_BUNDLE", "ignore");
    let (success, out, err) = place.cargo(NAME, &["run"]);
    assert!(success && out == "43.0 false []\n", "{out}{err}");
    assert_eq!(warnings(&err).len(), 1, "{err}");
    place.set("TIRX_LOCKED", "1");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(
        !success && err.contains("TIRX_LOCKED requires the bundle"),
        "{err}"
    );
    place.unset("TIRX_LOCKED");
    place.set("TIRX_BUNDLE", "ignored");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(
        !success && err.contains("`TIRX_BUNDLE=ignore` builds without the bundle"),
        "{err}"
    );
    place.unset("TIRX_BUNDLE");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(!success && err.contains("is stale"), "{err}");
    // For every build of the package.
    place.edit(
        "edited/kernels.toml",
        "[defaults]",
        "bundle = \"optional\"\n\n[defaults]",
    );
    let (success, out, err) = place.cargo(NAME, &["run"]);
    assert!(success && out == "43.0 false []\n", "{out}{err}");
    let said = warnings(&err);
    assert_eq!(said.len(), 1, "{err}");
    for part in [
        "is stale: kernel `add::n32` has changed",
        "and 1 more kernel",
        "run on the simulator only",
    ] {
        assert!(said[0].contains(part), "{part}: {err}");
    }
    // What fits is taken from it.
    place.edit("edited/kernels.py", "+ 2.0", "+ 1.0");
    let (code, err) = has_code(&place, NAME);
    assert!(code && warnings(&err).is_empty(), "{err}");
    // A kernel that must have machine code has none.
    place.edit("edited/kernels.py", "+ 1.0", "+ 3.0");
    place.edit("edited/kernels.toml", "name = ", "require = true\nname = ");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(
        !success && err.contains("requires machine code for `add`"),
        "{err}"
    );
    // In a checkout the lock decides.
    place.edit("edited/kernels.toml", "require = true\n", "");
    place.set("TIRX_LOCKED", "1");
    let (success, _, err) = place.cargo(NAME, &["build"]);
    assert!(!success && err.contains("is stale"), "{err}");
}
