//! The modules of a crate, read from its sources: which uses which, and which need each other?

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
pub(crate) struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
}

/// The name of a module's own file among its parts.
pub(crate) const OWN: &str = "its own file";

pub(crate) type Arrows = BTreeMap<String, BTreeSet<String>>;

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
    pub(crate) fn read(src: &Path) -> Crate {
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
    pub(crate) fn arrows(&self) -> BTreeMap<String, Arrows> {
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
pub(crate) fn circles(arrows: &Arrows) -> BTreeSet<Vec<&str>> {
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
pub(crate) fn among_parts(arrows: &Arrows) -> Arrows {
    let parts = arrows.iter().filter(|(from, _)| *from != OWN);
    parts
        .map(|(from, to)| (from.clone(), to.iter().filter(|to| *to != OWN).cloned().collect()))
        .collect()
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
