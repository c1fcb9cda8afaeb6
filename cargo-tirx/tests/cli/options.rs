//! Messages, help texts and documentation name options and subcommands that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::Folder;

/// Options of other programs, in strings of the sources.
const OTHERS: &[(&str, &str)] = &[
    ("--version", "nvcc"),
    ("--use_fast_math", "nvcc"),
    ("--maxrregcount", "nvcc"),
    ("--extra-device-vectorization", "nvcc"),
    ("--config-settings", "pip"),
    ("--target", "pip"),
    ("--requirement", "pip"),
    ("--require-hashes", "pip"),
    ("--no-deps", "pip"),
    ("--hash", "pip"),
    ("--query-gpu", "nvidia-smi"),
    ("--format", "nvidia-smi"),
    ("--tool", "compute-sanitizer"),
    ("--error-exitcode", "compute-sanitizer"),
];

/// Every subcommand (`sim`, `toolchain install`) with its options.
fn commands() -> BTreeMap<String, BTreeSet<String>> {
    let folder = Folder::new();
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(name) = open.pop() {
        let words = name.split_whitespace();
        let args: Vec<&str> = ["tirx"].into_iter().chain(words).chain(["--help"]).collect();
        let help = folder.run(&args);
        assert_eq!(help.code, Some(0), "{name}: {}", help.err);
        let mut section = "";
        let mut options = BTreeSet::new();
        for line in help.out.lines() {
            if !line.is_empty() && !line.starts_with(' ') {
                section = line;
                continue;
            }
            let words = line.split_whitespace();
            match section {
                "Commands:" if line.starts_with("  ") && !line.starts_with("   ") => {
                    let word = words.take(1).find(|word| *word != "help");
                    open.extend(word.map(|word| format!("{name} {word}").trim().to_string()));
                }
                "Options:" => options.extend(
                    words
                        .take_while(|word| word.starts_with('-'))
                        .filter_map(|word| option(word).map(String::from)),
                ),
                _ => {}
            }
        }
        assert!(options.contains("--help"), "{name}: {}", help.out);
        found.insert(name, options);
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below the repository's folders with a name that ends so, without those of tests.
fn files(folders: &[&str], end: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, end: &str, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().to_string();
            if path.is_dir() && !matches!(&*name, "tests" | "target") {
                walk(&path, end, out);
            } else if name.ends_with(end) && !name.contains("test") {
                out.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    for folder in folders {
        walk(&root().join(folder), end, &mut paths);
    }
    paths.sort();
    let text = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let tests = ["#[cfg(test)]", "#[cfg(all(test,"].map(|start| text.find(start));
        let end = tests.into_iter().flatten().min().unwrap_or(text.len());
        text[..end].to_string()
    };
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), text(path))).collect()
}

fn sources() -> Vec<(String, String)> {
    let folders = [
        "tirx-core",
        "tirx-sim",
        "tirx-build/src",
        "tirx-rt/src",
        "tirx-expect/src",
        "cargo-tirx/src",
        "xtask/src",
    ];
    files(&folders, ".rs")
}

fn documents() -> Vec<(String, String)> {
    let mut all = files(&["docs"], ".md");
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        all.push((name.to_string(), fs::read_to_string(root().join(name)).unwrap()));
    }
    all
}

/// The option at the start of a text: `--out`, `-D`.
fn option(word: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let end = word.find(|c| !is_name(c)).unwrap_or(word.len());
    let option = &word[..end];
    let name = option.trim_start_matches('-');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let short = || option.get(..2).filter(|short| short.starts_with('-'));
    match option.starts_with("--") {
        true => Some(option).filter(|_| starts),
        false => short().filter(|_| starts),
    }
}

/// What follows `program` in a text, to the end of the command: words, with those in brackets.
fn calls<'a>(text: &'a str, program: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    text.match_indices(program).map(|(at, _)| {
        let rest = &text[at + program.len()..];
        let end = rest
            .find(['`', '"', '\n', '#', ';', ')', '>', '&'])
            .unwrap_or(rest.len());
        let is_bracket = |c: char| matches!(c, '[' | ']' | '…' | ',' | ':' | '.' | '\\' | '|');
        rest[..end]
            .split_whitespace()
            .map(|word| word.trim_matches(is_bracket))
            .collect()
    })
}

#[test]
fn commands_in_messages_and_documentation_exist() {
    let known = commands();
    let mut wrong = Vec::new();
    for (file, text) in sources().into_iter().chain(documents()) {
        for words in calls(&text, "cargo tirx ") {
            let Some(first) = words
                .first()
                .filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase()))
            else {
                continue;
            };
            let second = words.get(1).map(|second| format!("{first} {second}"));
            let name = second
                .filter(|name| known.contains_key(name))
                .unwrap_or(first.to_string());
            let Some(options) = known.get(&name) else {
                // A sentence may go on after the name of the program.
                wrong.push(format!("{file}: `cargo tirx {}`", words.join(" ")));
                continue;
            };
            for option in words.iter().take_while(|w| **w != "--").filter_map(|w| option(w)) {
                if !options.contains(option) {
                    wrong.push(format!("{file}: `cargo tirx {}`: no {option}", words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such commands:\n{}", wrong.join("\n"));
}

#[test]
fn options_in_messages_exist() {
    let known = commands();
    let mut wrong = Vec::new();
    for (file, text) in sources()
        .into_iter()
        .filter(|(file, _)| !file.starts_with("xtask"))
    {
        for line in text
            .lines()
            .filter(|line| line.contains('"') || line.trim_start().starts_with("///"))
        {
            for (at, _) in line.match_indices("--") {
                let starts = line[..at].ends_with([' ', '`', '(', '"']) && line[..at].trim() != "//";
                let Some(option) = option(&line[at..]).filter(|_| starts) else {
                    continue;
                };
                let exists = known.values().any(|options| options.contains(option))
                    || OTHERS.iter().any(|(other, _)| *other == option);
                // Arguments of a program that is started are strings of their own.
                let argument = line[..at].ends_with('"') && line[at + option.len()..].starts_with('"');
                if !exists && !argument {
                    wrong.push(format!("{file}: {option}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such options:\n{}", wrong.join("\n"));
}

#[test]
fn tasks_in_documentation_exist() {
    let sources = files(&["xtask/src"], ".rs");
    let read = |what: &str| {
        sources
            .iter()
            .any(|(_, text)| text.contains(&format!("\"{what}\"")))
    };
    let mut wrong = Vec::new();
    for (file, text) in sources.iter().cloned().chain(documents()) {
        for words in calls(&text, "cargo xtask ") {
            // Arguments of `test` are Cargo's.
            if matches!(words.first(), None | Some(&"test") | Some(&"TASK")) {
                continue;
            }
            let options = words.iter().skip(1).filter_map(|word| option(word));
            for name in words.iter().take(1).copied().chain(options) {
                if !read(name) {
                    wrong.push(format!("{file}: `cargo xtask {}`: no {name}", words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such tasks:\n{}", wrong.join("\n"));
}

#[test]
fn options_are_found_and_told_apart() {
    assert_eq!(option("--out=a.npy"), Some("--out"));
    assert_eq!(option("-DN=1"), Some("-D"));
    assert_eq!(option("-1"), None);
    assert_eq!(
        calls("`cargo tirx sim k.py [--seed 3]`", "cargo tirx ")
            .next()
            .unwrap(),
        ["sim", "k.py", "--seed", "3"]
    );
    let known = commands();
    assert!(known["sim"].contains("--seed") && !known["check"].contains("--seed"));
    assert!(known.contains_key("toolchain install"));
}
