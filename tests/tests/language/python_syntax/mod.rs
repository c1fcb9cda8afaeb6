//! The Python parser against ruff's: the same trees with the same ranges, and the same texts refused.

mod same;

use std::path::{Path, PathBuf};

use same::Same;
use tirx_python::{Limits, parse_module};
use tirx_tests::root;

const LIMITS: Limits = Limits {
    nesting: 1_000,
    levels: 20_000,
    blocks: 100,
};

/// Texts that ruff takes and we do not, on purpose: what the errors say.
const REFUSED: &[&str] = &[
    // Tables of all of Unicode.
    "escapes by name",
    "Python replaces",
    // Python 3.14.
    "template strings",
];

/// How the parsers differ about a text.
fn difference(text: &str) -> Option<String> {
    let ours = parse_module(text, LIMITS);
    let options = ruff_python_parser::ParseOptions::from(ruff_python_ast::PySourceType::Python)
        .with_target_version(ruff_python_ast::PythonVersion::PY314);
    let ruff = ruff_python_parser::parse_unchecked(text, options).try_into_module()?;
    match ours {
        Ok(mut module) if ruff.has_no_syntax_errors() => {
            let difference = module.body.same(&ruff.syntax().body).err();
            tirx_python::free(&mut module);
            difference
        }
        Ok(_) => Some(format!(
            "we accept what ruff refuses: {:?}",
            ruff.errors().first()
        )),
        Err(errors) if ruff.has_no_syntax_errors() => {
            let first = &errors[0];
            let is_known = REFUSED.iter().any(|known| first.message.contains(known))
                // ruff takes an operator after a `yield` without value, Python does not.
                || text[..first.range.to_usize().start].trim_end().ends_with("yield");
            (!is_known).then(|| format!("ruff accepts: {first} at {:?}", first.range.to_usize()))
        }
        Err(_) => None,
    }
}

/// The Python files of a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.extension().and_then(|e| e.to_str()) {
            _ if path.is_symlink() || path.ends_with("target") || path.ends_with(".git") => {}
            Some("py" | "pyi") => found.push(path),
            _ if path.is_dir() => files(&path, found),
            _ => {}
        }
    }
    found.sort();
}

fn own_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(std::fs::read(path).ok()?).ok()
}

/// Simple pseudo-random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// The starts of words, signs and white space.
fn boundaries(text: &str) -> Vec<usize> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut before = 3;
    let mut list = Vec::new();
    for (at, c) in text.char_indices() {
        let now = kind(c);
        if now != before || now == 2 {
            list.push(at);
        }
        before = now;
    }
    list.push(text.len());
    list
}

/// A text with a token taken out, doubled, or replaced by another one of it.
fn mutated(text: &str, boundaries: &[usize], random: &mut Random) -> String {
    let tokens = boundaries.len() - 1;
    let token = |at: usize| &text[boundaries[at]..boundaries[at + 1]];
    let at = random.below(tokens);
    let (start, end) = (boundaries[at], boundaries[at + 1]);
    let middle = match random.below(4) {
        0 => String::new(),
        1 => token(at).repeat(2),
        2 => token(random.below(tokens)).to_string(),
        _ => format!("{}{}", token(random.below(tokens)), token(at)),
    };
    format!("{}{middle}{}", &text[..start], &text[end..])
}

/// Compares files as they are, and each with so many mutations; the differences.
fn compare(files: &[PathBuf], mutations: usize, seed: u64) -> Vec<String> {
    let mut differences = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let Some(text) = read(path) else { continue };
        if let Some(difference) = difference(&text) {
            differences.push(format!("{}: {difference}", path.display()));
        }
        if text.is_empty() {
            continue;
        }
        let boundaries = boundaries(&text);
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(31).wrapping_add(index as u64 + 1));
        for _ in 0..mutations {
            let text = mutated(&text, &boundaries, &mut random);
            if let Some(difference) = difference(&text) {
                differences.push(format!(
                    "{}, mutated: {difference}\n{}",
                    path.display(),
                    around(&text, &difference)
                ));
            }
        }
    }
    differences
}

/// The lines around the first position that a message names.
fn around(text: &str, difference: &str) -> String {
    let digits = |c: char| !c.is_ascii_digit();
    let at = difference
        .split("range: ")
        .nth(1)
        .or(difference.split(" at ").nth(1));
    let at: usize = at
        .and_then(|rest| rest.split(digits).find(|n| !n.is_empty()))
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    let start = text.floor_char_boundary(at.saturating_sub(120));
    let end = text.floor_char_boundary((at + 60).min(text.len()));
    format!("…{}…", &text[start..end])
}

#[test]
fn files_of_the_repository() {
    let files = own_files();
    assert!(files.len() > 200);
    let differences = compare(&files, 4, 0);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Other files: `TIRX_PYTHON_FILES` names folders, `TIRX_PYTHON_MUTATIONS` mutations a file.
#[test]
#[ignore = "takes files to compare"]
fn other_files() {
    let folders = std::env::var("TIRX_PYTHON_FILES").expect("folders");
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let mut found = Vec::new();
    folders
        .split(':')
        .for_each(|folder| files(Path::new(folder), &mut found));
    let mutations = number("TIRX_PYTHON_MUTATIONS").unwrap_or(0);
    let differences = compare(&found, mutations, number("TIRX_PYTHON_SEED").unwrap_or(0) as u64);
    println!("{} files", found.len());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
