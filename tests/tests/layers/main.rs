//! Dependencies point downwards only: the crates that each crate may use, and no circles between the modules of a crate. What
//! comes from elsewhere has a licence and a source that `deny.toml` accepts.

mod licences;
mod modules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_tests::root;

use modules::{Crate, OWN, among_parts, circles};

/// Every crate of the workspace, and the crates of the workspace that it may depend on. Those of its tests and build
/// script are free.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("tirx-source", &[]),
    ("tirx-dtype", &[]),
    ("tirx-bundle", &[]),
    ("tirx-python", &[]),
    ("tirx-ir", &["tirx-source", "tirx-dtype"]),
    ("tirx-arith", &["tirx-ir"]),
    ("tirx-layout", &["tirx-ir", "tirx-arith"]),
    (
        "tirx-script",
        &[
            "tirx-source",
            "tirx-python",
            "tirx-ir",
            "tirx-arith",
            "tirx-layout",
        ],
    ),
    (
        "tirx-lower",
        &["tirx-source", "tirx-ir", "tirx-arith", "tirx-layout"],
    ),
    ("tirx-codegen", &["tirx-source", "tirx-ir", "tirx-arith"]),
    (
        "tirx-fix",
        &["tirx-source", "tirx-python", "tirx-ir", "tirx-script"],
    ),
    (
        "tirx-core",
        &[
            "tirx-source",
            "tirx-ir",
            "tirx-arith",
            "tirx-layout",
            "tirx-script",
            "tirx-lower",
            "tirx-codegen",
        ],
    ),
    ("tirx-sim-machine", &["tirx-source", "tirx-dtype"]),
    ("tirx-sim", &["tirx-source", "tirx-ir", "tirx-sim-machine"]),
    ("tirx-sim-driver", &["tirx-ir", "tirx-sim"]),
    ("tirx-rt", &["tirx-bundle", "tirx-dtype", "tirx-ir", "tirx-sim"]),
    ("tirx-kernels-sm80", &["tirx-rt"]),
    ("tirx-kernels-sm90a", &["tirx-rt"]),
    ("tirx-kernels-sm100a", &["tirx-rt"]),
    (
        "tirx-kernels",
        &[
            "tirx-kernels-sm80",
            "tirx-kernels-sm90a",
            "tirx-kernels-sm100a",
            "tirx-rt",
        ],
    ),
    ("tirx-expect", &["tirx-core", "tirx-sim"]),
    ("tirx-services", &["tirx-core", "tirx-expect", "tirx-sim"]),
    ("tirx-build", &["tirx-bundle", "tirx-core"]),
    (
        "cargo-tirx",
        &[
            "tirx-build",
            "tirx-core",
            "tirx-expect",
            "tirx-fix",
            "tirx-rt",
            "tirx-services",
            "tirx-sim",
        ],
    ),
    ("tirx-playground", &["tirx-core", "tirx-expect", "tirx-services"]),
    ("example-app", &["tirx-rt"]),
    ("example-llm", &["tirx-kernels", "tirx-rt"]),
    ("tirx-test-tools", &["tirx-build"]),
    (
        "tirx-tests",
        &["tirx-core", "tirx-expect", "tirx-sim", "tirx-test-tools"],
    ),
    ("xtask", &["tirx-build", "tirx-core"]),
];

/// Modules that need each other, with the reason: the crate, the module whose parts they are, and the parts (files and folders).
const ACCEPTED: &[(&str, &str, &[&str], &str)] = &[
    (
        "cargo-tirx",
        "asm",
        &["listing", "loops"],
        "a listing finds the loops of its functions, and these are found in the listing's items",
    ),
    (
        "tirx-tests",
        "tiles",
        &["engines", "products"],
        "products are programs as those of engines are, and engines choose among products",
    ),
    (
        "tirx-kernels",
        "gemm",
        &["fused", "general", "launch"],
        "a fused product describes its call, the general kernel decides about it, and the launch reads the decision",
    ),
    (
        "tirx-build",
        "manifest",
        &["raw", "read", "values"],
        "the reader hands values to the raw tables, whose fields it reads",
    ),
    (
        "tirx-build",
        "toolchain",
        &["discover", "install"],
        "discovery looks at installed toolkits, and an installation asks discovery for the version of its nvcc",
    ),
    (
        "tirx-arith",
        "",
        &["analyzer", "const_int_bound", "modular_set", "sum"],
        "the analyzer asks each analysis, and each asks the analyzer about parts of an expression",
    ),
    (
        "tirx-codegen",
        "cuda",
        &["analysis", "defects", "helpers", "types"],
        "types ask for helpers; a helper that avoids a defect stands beside the defect, which reads the facts of a function",
    ),
    (
        "tirx-codegen",
        "cuda",
        &["asm", "emitter", "rows", "unit"],
        "a function is written into the unit, and the unit writes the functions of rows that it is asked for",
    ),
    (
        "tirx-codegen",
        "cuda",
        &["binary", "expr"],
        "an operator's operands are expressions",
    ),
    (
        "tirx-codegen",
        "rust",
        &["checked", "stmt"],
        "statements print checked integers, which fail as statements do",
    ),
    (
        "tirx-ir",
        "",
        &[
            "buffer", "expr", "fold", "func", "intrin", "layout", "mutate", "stmt", "tile", "var",
        ],
        "nodes hold each other: an expression loads from a buffer whose shape is expressions; calls name rows, and a row builds its result from expressions",
    ),
    (
        "tirx-ir",
        "intrin",
        &["convert", "memory", "mnemonic", "rows"],
        "rows have signatures that families compute, and the families' calls name their rows",
    ),
    (
        "tirx-ir",
        "intrin",
        &["operands", "row"],
        "operands are read by a row, and a row's rules read operands",
    ),
    (
        "tirx-ir",
        "intrin::mnemonic",
        &["checks", "counts", "lookup", "syntax"],
        "a line of syntax names its checks, and a check reads the tokens that were found by the line",
    ),
    (
        "tirx-script",
        "",
        &["eval", "lang", "parse", "release"],
        "evaluating Python calls functions of `T`, and these evaluate arguments and bodies: one interpreter in two folders; the release of a file is found by the names that both know",
    ),
    (
        "tirx-script",
        "eval",
        &[
            "builtins",
            "class",
            "code",
            "compare",
            "constant",
            "construct",
            "decorators",
            "dict",
            "enums",
            "expr",
            "frame",
            "functional",
            "generator",
            "generator_steps",
            "host",
            "host_values",
            "ir_modules",
            "iter",
            "iter_builtins",
            "library",
            "lints",
            "math",
            "methods",
            "modules",
            "nodes",
            "number_methods",
            "ops",
            "records",
            "scope",
            "signature",
            "stmt",
            "str_methods",
            "str_tables",
            "value",
        ],
        "one interpreter: an expression calls a function, whose body is statements of expressions, and methods call back",
    ),
    (
        "tirx-script",
        "lang",
        &[
            "access",
            "buffers",
            "call",
            "calls",
            "composites",
            "convert",
            "cuda",
            "dtypes",
            "indexers",
            "launch",
            "layout_scopes",
            "layouts",
            "loops",
            "math",
            "methods",
            "mnemonic",
            "namespace",
            "objects",
            "pool",
            "ptx",
            "rows",
            "tiles",
            "views",
            "waits",
        ],
        "functions of `T` share their conversions of arguments, and conversions know buffers, layouts and tiles",
    ),
    (
        "tirx-rt",
        "",
        &[
            "cuda",
            "device",
            "dlpack",
            "graph",
            "kernel",
            "pinned",
            "simulator",
            "storage",
            "targets",
            "tensor",
            "tensor_map",
        ],
        "a stream launches kernels, a kernel takes tensors, a tensor lies on a device: one interface with two back ends",
    ),
    (
        "tirx-sim-machine",
        "exec",
        &[
            "access",
            "atomic",
            "blame",
            "block",
            "cells",
            "cluster",
            "early",
            "engine",
            "exchange",
            "global",
            "group",
            "lanes",
            "meeting",
            "named",
            "place",
            "prior",
            "registers",
            "run",
            "schedule",
            "shadow",
            "steps",
            "tcgen05",
            "wgmma",
        ],
        "a block runs warps, and a warp's instruction may stop, meet or wake others of its block and cluster",
    ),
    (
        "tirx-sim-machine",
        "exec::order",
        &["clock", "mark"],
        "a clock is advanced by marks, and a mark has a clock's width",
    ),
    (
        "tirx-sim",
        "compile",
        &["call", "instructions", "meaning", "ptx_memory", "remote", "warp"],
        "an operation's meaning chooses the part that compiles it, and that part compiles operands as calls",
    ),
];

/// Modules whose own file is above its parts, and declares nothing for them.
const ABOVE_THEIR_PARTS: &[(&str, &str)] = &[
    ("tirx-lower", "transform::lower_tirx"),
    ("tirx-lower", "transform::lower_tirx::tile"),
];

/// What cargo knows of a package of the workspace.
struct Package {
    name: String,
    folder: PathBuf,
    /// Packages of the workspace that it depends on.
    sees: BTreeSet<String>,
}

/// The packages of the workspace, as `cargo metadata` has them.
fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let names: BTreeSet<String> = packages.iter().map(|p| text(&p["name"])).collect();
    let package = |package: &serde_json::Value| Package {
        name: text(&package["name"]),
        folder: Path::new(&text(&package["manifest_path"]))
            .parent()
            .unwrap()
            .into(),
        sees: package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            // Dependencies of tests and build scripts have a kind.
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| text(&dependency["name"]))
            .filter(|name| names.contains(name))
            .collect(),
    };
    packages.iter().map(package).collect()
}

#[test]
fn crates_see_what_is_below_them() {
    let mut wrong = Vec::new();
    for package in packages() {
        let listed = MAY_SEE.iter().find(|(name, _)| *name == package.name);
        let Some((_, allowed)) = listed else {
            wrong.push(format!("{} is not listed", package.name));
            continue;
        };
        let above = package
            .sees
            .iter()
            .filter(|name| !allowed.contains(&name.as_str()));
        wrong.extend(above.map(|name| format!("{} may not depend on {name}", package.name)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_make_no_circle() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = &package.name;
        let mut accepted: BTreeSet<(String, Vec<String>)> = ACCEPTED
            .iter()
            .filter(|(krate, ..)| *krate == package.name)
            .map(|(_, of, modules, _)| (of.to_string(), modules.iter().map(ToString::to_string).collect()))
            .collect();
        for (of, arrows) in Crate::read(&package.folder.join("src")).arrows() {
            for circle in circles(&among_parts(&arrows)) {
                let parts = circle.iter().map(ToString::to_string).collect();
                if !accepted.remove(&(of.clone(), parts)) {
                    wrong.push(format!("{name}::{of}: {circle:?} need each other"));
                }
            }
        }
        let listed = accepted.iter();
        wrong.extend(listed.map(|(of, c)| format!("{name}::{of}: {c:?} are no circle: correct the list")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A module's own file that is above its parts is used by none of them.
#[test]
fn parts_do_not_use_a_file_above_them() {
    let mut wrong = Vec::new();
    for package in packages() {
        for (of, arrows) in Crate::read(&package.folder.join("src")).arrows() {
            let above = ABOVE_THEIR_PARTS.contains(&(package.name.as_str(), of.as_str()));
            let users = arrows
                .iter()
                .filter(|(from, to)| *from != OWN && to.contains(OWN));
            let users = users.filter(|_| above);
            wrong.extend(users.map(|(from, _)| format!("{}::{of}::{from}", package.name)));
        }
    }
    assert!(wrong.is_empty(), "these use the file of their folder: {wrong:#?}");
}
