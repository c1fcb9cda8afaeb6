//! Dependencies point downwards only: the crates that each crate may use, and no cycles between the folders of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tirx_tests::root;

/// The crates of the compiler and of its run time, and the workspace crates that each may depend on.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("tirx-core/source", &[]),
    ("tirx-core/dtype", &[]),
    ("tirx-core/ir", &["tirx-source", "tirx-dtype"]),
    ("tirx-core/arith", &["tirx-source", "tirx-ir"]),
    ("tirx-core/layout", &["tirx-ir", "tirx-arith"]),
    (
        "tirx-core/script",
        &["tirx-source", "tirx-ir", "tirx-arith", "tirx-layout"],
    ),
    (
        "tirx-core/lower",
        &["tirx-source", "tirx-ir", "tirx-arith", "tirx-layout"],
    ),
    ("tirx-core/codegen", &["tirx-source", "tirx-ir", "tirx-arith"]),
    ("tirx-sim/machine", &["tirx-source", "tirx-dtype"]),
    ("tirx-sim", &["tirx-source", "tirx-ir", "tirx-sim-machine"]),
];

/// Accepted cycles, with the reason.
const ACCEPTED: &[(&str, &str, &str, &str)] = &[(
    "tirx-core/script",
    "eval",
    "lang",
    "evaluating Python calls functions of `T`, and these evaluate arguments and bodies: one interpreter in two folders",
)];

/// The dependencies of a crate, not those of its tests.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut within = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line == "[dependencies]";
        } else if within && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            found.insert(name.to_string());
        }
    }
    found
}

#[test]
fn crates_see_what_is_below_them() {
    for (krate, allowed) in MAY_SEE {
        let manifest = std::fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap();
        let found = dependencies(&manifest);
        let own = found.iter().filter(|name| name.starts_with("tirx"));
        let wrong: Vec<&String> = own.filter(|name| !allowed.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "{krate} may not depend on {wrong:?}");
    }
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The modules of the crate that a file refers to: `crate::a::…`, and `super::…` relative to it.
fn named(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut from_here = |start: usize, mut at: Vec<String>| {
        let rest: String = text[start..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':')
            .collect();
        for part in rest.split("::").filter(|part| !part.is_empty()) {
            if part == "super" {
                at.pop();
            } else {
                at.push(part.to_string());
                break;
            }
        }
        found.push(at);
    };
    for (at, _) in text.match_indices("crate::") {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            from_here(at + "crate::".len(), Vec::new());
        }
    }
    for (at, _) in text.match_indices("super::") {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            from_here(at, module.to_vec());
        }
    }
    found
}

/// The dependencies between the folders of a crate.
fn arrows(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    sources(src, &mut files);
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(src).unwrap();
        let mut module: Vec<String> = path
            .with_extension("")
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let name = module.last().cloned().unwrap_or_default();
        if name.contains("test") || module.len() < 2 {
            continue;
        }
        if name == "mod" {
            module.pop();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        // The text after a file's test module is ignored.
        let text = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        for target in named(text, &module) {
            let to = target.first().cloned().unwrap_or_default();
            if to != module[0] && src.join(&to).is_dir() {
                arrows.entry(module[0].clone()).or_default().insert(to);
            }
        }
    }
    arrows
}

/// Whether one folder depends on another, directly or not.
fn reaches(arrows: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for next in arrows.get(at).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

#[test]
fn folders_of_a_crate_make_no_circle() {
    let crates = MAY_SEE.iter().map(|(krate, _)| *krate);
    let mut wrong = Vec::new();
    for krate in crates.chain([
        "tirx-rt",
        "tirx-build",
        "tirx-bundle",
        "tirx-expect",
        "cargo-tirx",
    ]) {
        let arrows = arrows(&root().join(krate).join("src"));
        for from in arrows.keys() {
            for to in arrows.keys().filter(|to| from < *to) {
                let accepted = ACCEPTED
                    .iter()
                    .any(|(k, a, b, _)| (*k, *a, *b) == (krate, from, to));
                let circle = reaches(&arrows, from, to) && reaches(&arrows, to, from);
                if circle && !accepted {
                    wrong.push(format!("{krate}: {from} and {to}"));
                }
                assert!(
                    circle || !accepted,
                    "{krate}: {from} and {to} make no circle any more"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "folders that need each other: {wrong:#?}");
}

#[test]
fn a_circle_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a/mod.rs", "use crate::b::f;"),
        ("b/mod.rs", "mod c;"),
        ("b/c.rs", "use super::super::a;"),
    ] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arrows = arrows(dir.path());
    assert!(
        reaches(&arrows, "a", "b") && reaches(&arrows, "b", "a"),
        "{arrows:?}"
    );
}
