//! Commands for several packages of a workspace.

use std::fs;

use super::{Folder, fails, nvcc};

const KERNEL: &str = "from tvm.script import tirx as T\n\n@T.prim_func\n\
    def fill(A: T.Buffer((32,), \"float32\")):\n    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([32])\n    \
    A[tx] = 1.0\n";

/// A workspace with the packages `host`, which has no kernels, `near`, and `far` in a folder of another name.
fn workspace() -> Folder {
    let folder = Folder::new();
    let write = |file: &str, text: &str| {
        let path = folder.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nmembers = [\"host\", \"near\", \"libs/distant\"]\nresolver = \"3\"\n\
         [workspace.package]\nlicense = \"BSD-2-Clause\"\n",
    );
    for (name, at) in [("host", "host"), ("near", "near"), ("far", "libs/distant")] {
        write(
            &format!("{at}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlicense.workspace = true\n"
            ),
        );
        write(&format!("{at}/src/lib.rs"), "");
    }
    for at in ["near", "libs/distant"] {
        let manifest =
            "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"fill\"\nsource = \"fill.py\"\n";
        write(&format!("{at}/kernels.toml"), manifest);
        write(&format!("{at}/fill.py"), KERNEL);
    }
    folder
}

#[test]
fn check_takes_all_packages_with_kernels_or_those_named() {
    let folder = workspace();
    let well = folder.run(&["check", "--workspace"]);
    assert_eq!((well.code, well.err.as_str()), (Some(0), ""));

    // Both packages are wrong: each is reported, under its name, and there is one exit code.
    fs::write(folder.path("near/fill.py"), KERNEL.replace("A[tx]", "A[ty]")).unwrap();
    fs::write(
        folder.path("libs/distant/fill.py"),
        KERNEL.replace("float32", "flota32"),
    )
    .unwrap();
    fails(
        &folder.run(&["check", "--workspace"]),
        1,
        &[
            "error: package `far`: ",
            "libs/distant/fill.py:4:",
            "error: package `near`: unknown name \"ty\"",
            "near/fill.py:6:7",
            "error: 2 of 2 packages failed: far, near",
        ],
    );
    let one = folder.run(&["check", "-p", "near"]);
    fails(
        &one,
        1,
        &[
            "package `near`: unknown name \"ty\"",
            "1 of 1 packages failed: near",
        ],
    );
    assert!(!one.err.contains("far"), "{}", one.err);
}

#[test]
fn packages_that_are_not_there_or_have_no_kernels_are_errors() {
    let folder = workspace();
    fails(
        &folder.run(&["check", "-p", "naer"]),
        2,
        &["has no package `naer`", "did you mean `near`?"],
    );
    fails(
        &folder.run(&["bundle", "-p", "host"]),
        1,
        &["package `host` has no kernels: there is no `host/kernels.toml`"],
    );
    fails(
        &folder.run(&["check", "k.py", "--workspace"]),
        2,
        &["`--workspace` and `-p` check manifests, not a file"],
    );
    fails(
        &folder.run(&["bundle", "--workspace", "--out", "all.bundle"]),
        2,
        &["`--out` names one bundle, and each package has its own"],
    );
    let alone = Folder::new();
    fails(
        &alone.run(&["check", "--workspace"]),
        1,
        &[
            "lists the workspace's packages, failed",
            "could not find `Cargo.toml`",
        ],
    );
}

#[test]
fn each_package_has_its_own_bundle() {
    let folder = workspace();
    // Without an nvcc: what is missing is said of each package.
    fails(
        &folder.run(&["bundle", "--workspace", "--locked"]),
        1,
        &[
            "package `far`: ",
            "libs/distant/kernels.bundle",
            "package `near`: ",
            "near/kernels.bundle",
            "2 of 2 packages failed: far, near",
        ],
    );
    let Some(nvcc) = nvcc() else { return };
    let wrote = folder.run_with(
        &["bundle", "--workspace"],
        &[("TIRX_NVCC", nvcc.as_str()), ("TIRX_STORE", "none")],
    );
    assert_eq!(wrote.code, Some(0), "{}", wrote.err);
    assert!(
        wrote.out.contains("wrote libs/distant/kernels.bundle\n")
            && wrote.out.contains("wrote near/kernels.bundle\n"),
        "{}",
        wrote.out
    );
    let notice = fs::read_to_string(folder.path("near/kernels.bundle/NOTICE.txt")).unwrap();
    assert!(notice.contains("BSD-2-Clause"), "{notice}");
    fs::write(folder.path("near/fill.py"), KERNEL.replace("1.0", "2.0")).unwrap();
    let stale = folder.run(&["bundle", "--workspace", "--locked"]);
    assert_eq!(stale.code, Some(1), "{}", stale.err);
    assert_eq!(
        stale.out.lines().next(),
        Some("up to date: libs/distant/kernels.bundle")
    );
    assert!(
        stale
            .err
            .contains("package `near`: the bundle `near/kernels.bundle` is stale: kernel `fill` has changed")
            && stale.err.contains("1 of 2 packages failed: near"),
        "{}",
        stale.err
    );
}

/// The commands find the manifest above the folder that they run in, and say which packages there are where there is none.
#[test]
fn the_manifest_is_searched_above_and_a_root_suggests_its_packages() {
    let folder = workspace();
    let described = KERNEL.replace(
        "@T.prim_func",
        "# sim: fill\n#   A: float32[32] = 0 -> 1\n@T.prim_func",
    );
    fs::write(folder.path("near/fill.py"), &described).unwrap();
    let at = |place: &str, arguments: &[&str]| {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(arguments)
            .current_dir(folder.path(place))
            .output()
            .unwrap();
        super::Outcome {
            code: run.status.code(),
            out: String::from_utf8(run.stdout).unwrap(),
            err: String::from_utf8(run.stderr).unwrap(),
        }
    };
    let checked = at("near/src", &["check"]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    let tested = at("near/src", &["test"]);
    assert_eq!(
        tested.out, "ok      ../fill.py:3 fill\n1 passed, 0 failed\n",
        "{}",
        tested.err
    );
    fails(
        &at("near/src", &["bundle", "--locked"]),
        1,
        &["../kernels.bundle"],
    );
    for arguments in [&["check"][..], &["test"], &["bundle"]] {
        fails(
            &at("host", arguments),
            1,
            &[
                "there is no kernels.toml in `",
                "`--workspace` selects the packages of the workspace with kernels: far, near; `-p NAME` selects one",
            ],
        );
    }
    let alone = Folder::new();
    fails(
        &alone.run(&["check"]),
        1,
        &["there is no kernels.toml in `", "name it with --manifest"],
    );
}

#[test]
fn tests_of_a_workspace_and_of_packages() {
    let folder = workspace();
    let described = KERNEL.replace(
        "@T.prim_func",
        "# sim: fill\n#   A: float32[32] = 0 -> 1\n@T.prim_func",
    );
    for file in ["near/fill.py", "libs/distant/fill.py"] {
        fs::write(folder.path(file), &described).unwrap();
    }
    let all = folder.run(&["test", "--workspace"]);
    assert_eq!(
        all.out, "ok      libs/distant/fill.py:3 fill\nok      near/fill.py:3 fill\n2 passed, 0 failed\n",
        "{}",
        all.err
    );
    let one = folder.run(&["test", "-p", "near"]);
    assert_eq!(
        one.out, "ok      near/fill.py:3 fill\n1 passed, 0 failed\n",
        "{}",
        one.err
    );
    fails(
        &folder.run(&["test", "-p", "naer"]),
        2,
        &["has no package `naer`"],
    );
    fails(
        &folder.run(&["test", "near/fill.py", "--workspace"]),
        2,
        &["`--workspace` and `-p` test the files of manifests"],
    );
}

/// A new package becomes a member, and builds with the workspace's lock file and profiles.
#[test]
fn a_new_package_joins_the_workspace_that_it_is_in() {
    let folder = workspace();
    let new = folder.run(&["new", "libs/made"]);
    assert_eq!(new.code, Some(0), "{}", new.err);
    assert!(
        new.err.contains("made it a member of the workspace"),
        "{}",
        new.err
    );
    let root = fs::read_to_string(folder.path("Cargo.toml")).unwrap();
    assert!(
        root.starts_with("[workspace]\nmembers = [\"host\", \"near\", \"libs/distant\", \"libs/made\"]\n")
            && root.contains("[profile.dev.package.tirx-sim-machine]\nopt-level = 2\n"),
        "{root}"
    );
    let own = fs::read_to_string(folder.path("libs/made/Cargo.toml")).unwrap();
    assert!(!own.contains("[workspace]") && !own.contains("[profile"), "{own}");
    let well = folder.run(&["check", "-p", "made"]);
    assert_eq!((well.code, well.err.as_str()), (Some(0), ""));
    // A second one adds no second profile; one that the members cover or that is excluded changes nothing.
    folder.run(&["new", "libs/other"]);
    let root = fs::read_to_string(folder.path("Cargo.toml")).unwrap();
    assert_eq!(root.matches("tirx-sim-machine").count(), 1, "{root}");
    let covered = root
        .replace("\"libs/other\"", "\"libs/*\"")
        .replace("resolver", "exclude = [\"far\"]\nresolver");
    fs::write(folder.path("Cargo.toml"), &covered).unwrap();
    folder.run(&["new", "libs/third"]);
    folder.run(&["new", "far/away"]);
    assert_eq!(fs::read_to_string(folder.path("Cargo.toml")).unwrap(), covered);
    let own = fs::read_to_string(folder.path("far/away/Cargo.toml")).unwrap();
    assert!(own.contains("[workspace]"), "{own}");
}

/// A kernel file imports from the library that its package depends on, as in a build; one that is only a dependency of the
/// build script, or names no `links`, exports nothing.
#[test]
fn kernels_of_a_dependency_are_found() {
    let folder = workspace();
    let write = |file: &str, text: &str| fs::write(folder.path(file), text).unwrap();
    let manifest = |name: &str, more: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlicense.workspace = true\n{more}"
        )
    };
    let depends = |kind: &str| {
        manifest(
            "near",
            &format!("\n[{kind}]\nfar = {{ path = \"../libs/distant\" }}\n"),
        )
    };
    write(
        "libs/distant/Cargo.toml",
        &manifest("far", "links = \"far-kernels\"\n"),
    );
    write("libs/distant/build.rs", "fn main() {}\n");
    write(
        "libs/distant/shapes.py",
        "from .numbers import ONE\nTWO = ONE + ONE\n",
    );
    write("libs/distant/numbers.py", "ONE = 1.0\n");
    write("near/Cargo.toml", &depends("dependencies"));
    let importing = KERNEL
        .replace("\n\n@", "\nfrom far_kernels.shapes import TWO\n\n@")
        .replace("= 1.0", "= TWO")
        .replace(
            "@T.prim_func",
            "# sim: fill\n#   A: float32[32] = 0 -> 2\n@T.prim_func",
        );
    write("near/fill.py", &importing);
    for command in [
        &["check", "--workspace"][..],
        &["check", "near/fill.py"],
        &["check", "--manifest", "near/kernels.toml"],
        &["test", "near"],
    ] {
        let run = folder.run(command);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{command:?}");
    }
    let cuda = folder.run(&["asm", "fill", "--cuda", "--manifest", "near/kernels.toml"]);
    assert!(cuda.out.contains("= 2.0f;"), "{}{}", cuda.out, cuda.err);

    write("libs/distant/numbers.py", "ONE = two\n");
    let name = "far_kernels/numbers.py:1:7";
    fails(
        &folder.run(&["check", "near/fill.py"]),
        1,
        &["unknown name \"two\"", name],
    );

    let missing = [
        "there is no kernel file or module \"far_kernels.shapes\"",
        "`links = \"far_kernels\"`",
    ];
    write("near/Cargo.toml", &depends("build-dependencies"));
    fails(&folder.run(&["check", "near/fill.py"]), 1, &missing);
    write("near/Cargo.toml", &depends("dependencies"));
    write("libs/distant/Cargo.toml", &manifest("far", ""));
    fails(&folder.run(&["check", "near/fill.py"]), 1, &missing);
}
