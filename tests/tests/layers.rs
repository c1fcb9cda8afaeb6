//! Dependencies point downwards only: the crates that each crate may use, and no circles between the modules of a crate. What
//! comes from elsewhere has a licence and a source that `deny.toml` accepts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_tests::root;

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
    ("tirx-expect", &["tirx-core", "tirx-sim"]),
    ("tirx-services", &["tirx-core", "tirx-expect", "tirx-sim"]),
    ("tirx-build", &["tirx-bundle", "tirx-core"]),
    (
        "cargo-tirx",
        &[
            "tirx-build",
            "tirx-core",
            "tirx-expect",
            "tirx-rt",
            "tirx-services",
            "tirx-sim",
        ],
    ),
    ("tirx-playground", &["tirx-core", "tirx-expect", "tirx-services"]),
    ("example-app", &["tirx-rt"]),
    ("tirx-test-tools", &["tirx-build"]),
    (
        "tirx-tests",
        &["tirx-core", "tirx-expect", "tirx-sim", "tirx-test-tools"],
    ),
    ("xtask", &["tirx-build", "tirx-core"]),
];

/// Modules of a crate that need each other, with the reason. Modules are the files and folders beside `lib.rs`.
const ACCEPTED: &[(&str, &[&str], &str)] = &[
    (
        "tirx-arith",
        &["analyzer", "const_int_bound", "modular_set", "sum"],
        "the analyzer asks each analysis, and each asks the analyzer about parts of an expression",
    ),
    (
        "tirx-ir",
        &[
            "buffer", "expr", "fold", "func", "intrin", "layout", "mutate", "stmt", "tile", "var",
        ],
        "nodes hold each other: an expression loads from a buffer whose shape is expressions; calls name rows, and \
         what a row computes is built of expressions",
    ),
    (
        "tirx-script",
        &["eval", "lang", "parse", "release"],
        "evaluating Python calls functions of `T`, and these evaluate arguments and bodies: one interpreter in two folders; \
         the release of a file is found by the names that both know",
    ),
    (
        "tirx-rt",
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

/// A text without comments and the contents of strings.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("'\"'") {
            rest = &rest[3..];
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = end.map_or("", |end| &rest[end + 2..]);
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The paths that a tree of a `use` names: `a::{b, c::d}` names `a::b` and `a::c::d`; a new name (`as`) is left out.
fn paths(tree: &str, before: &[String], out: &mut Vec<Vec<String>>) {
    let tree = tree.trim().trim_start_matches("::");
    if let Some(list) = tree.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let (mut depth, mut start) = (0, 0);
        for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    paths(&list[start..at], before, out);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let end = tree
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(tree.len());
    let (part, rest) = tree.split_at(end);
    let mut path = before.to_vec();
    path.extend((!part.is_empty()).then(|| part.to_string()));
    match rest.trim_start().strip_prefix("::") {
        Some(rest) => paths(rest, &path, out),
        None => out.push(path),
    }
}

/// The trees of all `use` items, and the text without them.
fn uses(text: &str) -> (Vec<Vec<String>>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut last = 0;
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].chars().next_back();
        if at < last || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(end) = text[at..].find(';') else { break };
        paths(&text[at + 4..at + end], &[], &mut found);
        rest += &text[last..at];
        last = at + end;
    }
    (found, rest + &text[last..])
}

/// The paths that a text names: in `use` items, and those that begin with `crate` or `super` elsewhere.
fn named(text: &str) -> Vec<Vec<String>> {
    let (mut found, rest) = uses(text);
    for start in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(start) {
            let before = rest[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | ':')) {
                let path = rest[at..]
                    .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')))
                    .map_or(&rest[at..], |end| &rest[at..at + end]);
                paths(path, &[], &mut found);
            }
        }
    }
    found
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

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The dependencies between the modules of a crate.
fn arrows(src: &Path) -> Arrows {
    let mut files = Vec::new();
    sources(src, &mut files);
    let module = |file: &Path| -> Vec<String> {
        let path = file.strip_prefix(src).unwrap().with_extension("");
        path.iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect()
    };
    let is_root = |module: &[String]| matches!(module, [name] if name == "lib" || name == "main");
    let read = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        // The text from a test module on is ignored; `mod tests;` is a file of its own.
        let tests = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
        let within = |at: &usize| text[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
        bare(&text[..tests.filter(within).min().unwrap_or(text.len())])
    };
    let tops: BTreeSet<String> = files
        .iter()
        .map(|file| module(file))
        .filter(|module| !is_root(module))
        .map(|module| module[0].clone())
        .collect();
    // Names at the root that stand for something in a module, and further names of the root itself.
    let (mut exported, mut own_names): (BTreeMap<String, String>, BTreeSet<String>) = Default::default();
    for file in files.iter().filter(|file| is_root(&module(file))) {
        let text = read(file);
        for path in uses(&text).0 {
            let path: Vec<&String> = path
                .iter()
                .skip_while(|p| *p == "self" || *p == "crate")
                .collect();
            if let [top, .., name] = path[..]
                && tops.contains(top)
            {
                exported.insert(name.clone(), top.clone());
            }
        }
        let aliases = text.split("use crate as ").skip(1);
        own_names.extend(aliases.filter_map(|rest| Some(rest.split_once(';')?.0.trim().to_string())));
    }
    let mut arrows = Arrows::new();
    for file in &files {
        let mut at = module(file);
        if is_root(&at) || at.last().is_some_and(|name| name.contains("test")) {
            continue;
        }
        let top = at[0].clone();
        if at.last().is_some_and(|name| name == "mod") {
            at.pop();
        }
        for path in named(&read(file)) {
            let mut from = at.clone();
            let mut parts = path.into_iter().peekable();
            match parts.peek().map(String::as_str) {
                Some("crate") => from.clear(),
                Some("super") => {}
                _ => continue,
            }
            while let Some(part) = parts.next_if(|part| part == "crate" || part == "super") {
                if part == "super" {
                    from.pop();
                }
            }
            from.extend(parts);
            let target = from.iter().find(|part| !own_names.contains(*part));
            let target = target.and_then(|name| tops.get(name).or(exported.get(name)));
            if let Some(target) = target.filter(|target| **target != top) {
                arrows.entry(top.clone()).or_default().insert(target.clone());
            }
        }
    }
    arrows
}

/// What a module depends on, directly or not.
fn reached<'a>(arrows: &'a Arrows, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        let next = arrows.get(at).into_iter().flatten().map(String::as_str);
        open.extend(next.filter(|next| seen.insert(*next)).collect::<Vec<_>>());
    }
    seen
}

/// The largest sets of modules that all need each other.
fn circles(arrows: &Arrows) -> BTreeSet<Vec<&str>> {
    let below: BTreeMap<&str, BTreeSet<&str>> = arrows
        .keys()
        .map(|module| (module.as_str(), reached(arrows, module)))
        .collect();
    let circle = |module: &&str| -> Vec<&str> {
        let back = |other: &&&str| below.get(*other).is_some_and(|reached| reached.contains(module));
        below[module].iter().filter(back).copied().collect()
    };
    below
        .keys()
        .map(circle)
        .filter(|circle| circle.len() > 1)
        .collect()
}

#[test]
fn modules_of_a_crate_make_no_circle() {
    let mut wrong = Vec::new();
    for package in packages() {
        let arrows = arrows(&package.folder.join("src"));
        let found = circles(&arrows);
        let accepted: BTreeSet<Vec<&str>> = ACCEPTED
            .iter()
            .filter(|(krate, ..)| *krate == package.name)
            .map(|(_, modules, _)| modules.to_vec())
            .collect();
        let name = &package.name;
        wrong.extend(
            found
                .difference(&accepted)
                .map(|c| format!("{name}: {c:?} need each other")),
        );
        wrong.extend(
            accepted
                .difference(&found)
                .map(|c| format!("{name}: {c:?} are no circle: correct the list")),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_circle_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "lib.rs",
            "use crate as whole;\nmod a;\nmod b;\nmod d;\nmod e;\npub use b::{c, Thing as Other};\npub use d::In;",
        ),
        (
            "a/mod.rs",
            "use crate::{c::f, x};\nfn g() { \"crate::d\"; } // crate::e",
        ),
        ("b/mod.rs", "mod c;"),
        ("b/c.rs", "use super::super::a;\nuse crate::whole::{x::y, In};"),
        ("d.rs", "use std::fmt;"),
        ("e.rs", "fn f() -> crate::d::In { crate::b::f() }"),
    ] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arrows = arrows(dir.path());
    let shown: Vec<String> = arrows.iter().map(|(from, to)| format!("{from} {to:?}")).collect();
    assert_eq!(shown, ["a {\"b\"}", "b {\"a\", \"d\"}", "e {\"b\", \"d\"}"]);
    assert_eq!(circles(&arrows), BTreeSet::from([vec!["a", "b"]]));
}

/// Whether a licence expression holds with these licences: `A OR B`, `A AND B`, brackets, `A/B` of old manifests.
fn accepted(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    // Brackets from the inside out: each is replaced by what it comes to.
    let mut expression = format!("({expression})");
    while let Some(close) = expression.find(')') {
        let open = expression[..close].rfind('(').unwrap();
        let holds = expression[open + 1..close].split(" OR ").any(|all| {
            all.split(" AND ")
                .all(|one| one.trim() == "yes" || allowed.contains(&one.trim()))
        });
        expression.replace_range(open..=close, if holds { "yes" } else { "no" });
    }
    expression == "yes"
}

#[test]
fn dependencies_have_licences_and_sources_that_are_accepted() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = deny.parse().unwrap();
    let allowed: Vec<&str> = deny["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|licence| licence.as_str())
        .collect();
    assert!(accepted("(MIT OR Apache-2.0) AND Unicode-3.0", &allowed));
    assert!(!accepted("(GPL-3.0 OR LGPL-3.0) AND MIT", &allowed));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = Command::new("rustc").arg("-vV").output().unwrap();
    let target = String::from_utf8(target.stdout).unwrap();
    let host = target
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--offline",
            "--format-version",
            "1",
            "--filter-platform",
            host,
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut refused = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        let source = package["source"].as_str().unwrap_or("registry+ here");
        if !accepted(licence, &allowed) || !source.starts_with("registry+") {
            refused.push(format!("{}: {licence}, from {source}", package["name"]));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
