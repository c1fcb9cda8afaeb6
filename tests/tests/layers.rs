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
    ("tirx-kernels", &["tirx-rt"]),
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

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A path as a text names it, and the name that it has in this text: the last part, or that of `as`.
#[derive(Clone, Debug)]
struct Named {
    path: Vec<String>,
    name: String,
}

/// The paths that a tree of a `use` names: `a::{b, c::d as e}` names `a::b`, and `a::c::d` as `e`.
fn paths(tree: &str, before: &[String], out: &mut Vec<Named>) {
    let tree = tree.trim().trim_start_matches("::");
    if tree.is_empty() {
        // Behind the last comma of a list.
        return;
    }
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
    let end = tree.find(|c: char| !is_word(c)).unwrap_or(tree.len());
    let (part, rest) = tree.split_at(end);
    let mut path = before.to_vec();
    // `a::{self}` is `a`.
    path.extend((!part.is_empty() && (part != "self" || before.is_empty())).then(|| part.to_string()));
    match rest.trim_start().strip_prefix("::") {
        Some(rest) => paths(rest, &path, out),
        None => {
            let name = rest
                .trim()
                .strip_prefix("as ")
                .map(|name| name.trim().to_string());
            let last = path.last().cloned().unwrap_or_default();
            out.push(Named {
                path,
                name: name.unwrap_or(last),
            });
        }
    }
}

/// A `use` item.
struct Import {
    named: Named,
    /// Whether other modules see the name.
    public: bool,
}

/// All `use` items, and the text without them.
fn uses(text: &str) -> (Vec<Import>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut last = 0;
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].chars().next_back();
        if at < last || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(end) = text[at..].find(';') else { break };
        let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let public = text[line..at].trim_start().starts_with("pub");
        let mut all = Vec::new();
        paths(&text[at + 4..at + end], &[], &mut all);
        found.extend(all.into_iter().map(|named| Import { named, public }));
        rest += &text[last..at];
        last = at + end;
    }
    (found, rest + &text[last..])
}

/// A module that is a file.
struct Module {
    imports: Vec<Import>,
    /// The text without `use` items.
    rest: String,
}

/// The modules of a crate by their paths; the root has the empty path.
struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
}

/// The name of a module's own file among its parts.
const OWN: &str = "its own file";

type Arrows = BTreeMap<String, BTreeSet<String>>;

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

impl Crate {
    fn read(src: &Path) -> Crate {
        let mut files = Vec::new();
        sources(src, &mut files);
        let mut modules = BTreeMap::new();
        for file in files {
            let path = file.strip_prefix(src).unwrap().with_extension("");
            let mut path: Vec<String> = path
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if path.last().is_some_and(|name| name.contains("test")) {
                continue;
            }
            let is_root = matches!(&path[..], [name] if name == "lib" || name == "main");
            if is_root || path.last().is_some_and(|name| name == "mod") {
                path.pop();
            }
            let text = std::fs::read_to_string(&file).unwrap();
            // The text from a test module on is ignored; `mod tests;` is a file of its own.
            let tests = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
            let within = |at: &usize| text[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
            let text = bare(&text[..tests.filter(within).min().unwrap_or(text.len())]);
            let (imports, rest) = uses(&text);
            modules.insert(path, Module { imports, rest });
        }
        Crate { modules }
    }

    /// The module in which the item of a path is declared, where it is one of this crate.
    fn declared(&self, at: &[String], path: &[String], depth: usize) -> Option<Vec<String>> {
        let (first, mut rest) = path.split_first()?;
        if depth > 20 {
            return None;
        }
        let mut module = at.to_vec();
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop();
                while let Some(("super", after)) = rest.split_first().map(|(f, r)| (f.as_str(), r)) {
                    module.pop();
                    rest = after;
                }
            }
            _ => {
                // A name of this module, else of another crate.
                let own = self.child(at, first).is_some() || self.import(at, first).is_some();
                if !own {
                    return None;
                }
                rest = path;
            }
        }
        while let Some((name, after)) = rest.split_first() {
            if let Some(child) = self.child(&module, name) {
                module = child;
                rest = after;
            } else if let Some(import) = self.import(&module, name) {
                let mut path = import.named.path.clone();
                if path.first() == Some(name) {
                    // A crate: `use name;`, `use name::x`.
                    return None;
                }
                path.extend(after.iter().cloned());
                return self.declared(&module, &path, depth + 1);
            } else {
                break;
            }
        }
        Some(module)
    }

    fn child(&self, at: &[String], name: &str) -> Option<Vec<String>> {
        let mut path = at.to_vec();
        path.push(name.to_string());
        self.modules.contains_key(&path).then_some(path)
    }

    fn import(&self, at: &[String], name: &str) -> Option<&Import> {
        let module = self.modules.get(at)?;
        module.imports.iter().find(|import| import.named.name == name)
    }

    /// The modules whose items a module names.
    fn seen(&self, at: &[String]) -> BTreeSet<Vec<String>> {
        let module = &self.modules[at];
        let mut seen = BTreeSet::new();
        for import in &module.imports {
            // A name for others only.
            if import.public && !has_word(&module.rest, &import.named.name) {
                continue;
            }
            let path = &import.named.path;
            if let Some(found) = self.declared(at, path, 0) {
                seen.insert(found);
            }
        }
        for path in qualified(&module.rest) {
            if let Some(found) = self.declared(at, &path, 0) {
                seen.insert(found);
            }
        }
        seen.remove(at);
        seen
    }

    /// The uses between the parts of each module: the files and folders beside each other, and the module's own file.
    fn arrows(&self) -> BTreeMap<String, Arrows> {
        let mut all: BTreeMap<String, Arrows> = BTreeMap::new();
        for at in self.modules.keys() {
            for to in self.seen(at) {
                let common = at.iter().zip(&to).take_while(|(a, b)| a == b).count();
                let part = |path: &[String]| path.get(common).map_or(OWN, String::as_str).to_string();
                let arrows = all.entry(at[..common].join("::")).or_default();
                arrows.entry(part(at)).or_default().insert(part(&to));
            }
        }
        all
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

/// The paths of a text with several parts: `a::b::c`.
fn qualified(text: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut last = 0;
    for (at, _) in text.match_indices("::") {
        if at < last {
            continue;
        }
        let start = text[..at].rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
        let end = text[at..]
            .find(|c: char| !is_word(c) && c != ':')
            .map_or(text.len(), |end| at + end);
        last = end;
        if start == at || text[..start].ends_with(['$']) {
            continue;
        }
        let parts = text[start..end].split("::").filter(|p| !p.is_empty());
        let parts: Vec<String> = parts.map(str::to_string).collect();
        // `pub(in super::super)` uses nothing.
        if !parts
            .iter()
            .all(|part| matches!(part.as_str(), "crate" | "self" | "super"))
        {
            found.insert(parts);
        }
    }
    found
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

/// The arrows without those from and to the module's own file.
fn among_parts(arrows: &Arrows) -> Arrows {
    let parts = arrows.iter().filter(|(from, _)| *from != OWN);
    parts
        .map(|(from, to)| (from.clone(), to.iter().filter(|to| *to != OWN).cloned().collect()))
        .collect()
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
            "use crate::c::f;\nfn g() { \"crate::d\"; f() } // crate::e",
        ),
        ("b/mod.rs", "mod c;\nmod g;\nmod h;\npub use h::H;\nstruct Thing;"),
        (
            "b/c.rs",
            "use super::super::a;\nuse crate::whole::In;\nfn f() { a::g() }",
        ),
        ("b/g.rs", "use super::{H, Thing};"),
        ("b/h.rs", "fn f() { super::g::f() }"),
        ("d.rs", "use std::fmt;"),
        ("e.rs", "fn f() -> crate::d::In { crate::b::f() }"),
    ] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arrows = Crate::read(dir.path()).arrows();
    let shown: Vec<String> = arrows
        .iter()
        .flat_map(|(of, arrows)| {
            arrows
                .iter()
                .map(move |(from, to)| format!("{of}: {from} {to:?}"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ": a {\"b\"}",
            ": b {\"a\", \"d\"}",
            ": e {\"b\", \"d\"}",
            "b: g {\"h\", \"its own file\"}",
            "b: h {\"g\"}",
        ]
    );
    assert_eq!(
        circles(&among_parts(&arrows[""])),
        BTreeSet::from([vec!["a", "b"]])
    );
    assert_eq!(
        circles(&among_parts(&arrows["b"])),
        BTreeSet::from([vec!["g", "h"]])
    );
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
