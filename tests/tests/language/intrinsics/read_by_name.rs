//! Are the operands of intrinsics read and given by the names of their rows? The sources are searched for what counts them.

use std::path::{Path, PathBuf};

use tirx_tests::root;

/// The crates that read calls of intrinsics.
const CRATES: &[&str] = &[
    "tirx-core/arith",
    "tirx-core/codegen",
    "tirx-core/fix",
    "tirx-core/ir",
    "tirx-core/layout",
    "tirx-core/lower",
    "tirx-core/script",
    "tirx-sim",
];

/// Files that read a list called `args` by position, and why.
const BY_POSITION: &[(&str, &str)] = &[
    (
        "tirx-core/arith/src/rewrite.rs",
        "folds infix operators, which have a left and a right operand",
    ),
    (
        "tirx-core/ir/src/abi/tensor_map.rs",
        "a packed function's own arguments, of which there is no row",
    ),
    (
        "tirx-core/ir/src/intrin/mod.rs",
        "rules of rows that give a result the dtype of an argument",
    ),
    (
        "tirx-core/ir/src/printer/tile.rs",
        "a rule about the first parameter of every tile primitive",
    ),
    (
        "tirx-core/ir/src/verify/call.rs",
        "rules of rows that give a result the dtype of an argument",
    ),
    (
        "tirx-core/script/src/lang/mnemonic/rows.rs",
        "asks a row whether its first argument is an address",
    ),
];

/// Folders whose `args` are those of calls in Python, of decorators and of functions of the library.
const OF_PYTHON: &[&str] = &[
    "tirx-core/fix/src/calls",
    "tirx-core/script/src/eval",
    "tirx-core/script/src/release",
];

/// Operators that tables of host languages match with their operands: infix ones, and functions of one value.
const OPERATORS: &[&str] = &["BitwiseAnd", "BitwiseOr", "BitwiseXor", "ShiftLeft", "ShiftRight"];

/// What of a text counts operands, with a part of the text.
fn counted(text: &str) -> Vec<String> {
    // Without comments and line breaks, so that the layout of a statement does not matter.
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim())
        .collect();
    let code = code.join(" ").replace(" .", ".").replace("( ", "(");
    let mut found = Vec::new();
    let mut add = |at: usize| {
        let end = code.char_indices().map(|(i, _)| i).find(|i| *i >= at + 60);
        found.push(code[at..end.unwrap_or(code.len())].to_string());
    };
    let digit = |rest: &str| {
        rest.trim_start_matches("..")
            .starts_with(|c: char| c.is_ascii_digit())
    };
    // `args[0]`, `args[1..]`, `args.get(0)`, `args.first()`.
    for (at, _) in code.match_indices("args") {
        let rest = &code[at + 4..];
        let begins = |before: &str| rest.strip_prefix(before).is_some_and(digit);
        let takes = [".first()", ".last()", ".split_first()", ".split_last()"];
        if begins("[") || begins(".get(") || takes.iter().any(|take| rest.starts_with(take)) {
            add(at);
        }
    }
    // `[a, b, ..] = args` and `[a, b] = &args[..]`.
    for (at, pattern) in patterns(&code) {
        let rest = code[at + pattern.len()..].trim_start_matches(')').trim_start();
        let Some(value) = rest.strip_prefix("= ") else {
            continue;
        };
        let value = value.trim_start_matches(['&', '*']);
        let whole = ["args else", "args {", "args &&", "args.as_slice()", "args[..]"];
        let called = value
            .split([';', '{'])
            .next()
            .unwrap_or_default()
            .contains(".as_call(");
        if whole.iter().any(|whole| value.starts_with(whole)) || called {
            add(at);
        }
    }
    // `(Op::Dp4a, [a, b, c])`.
    for (at, pattern) in patterns(&code) {
        let before = code[..at].trim_end_matches(", ");
        let named = before.rfind("Op::").map(|op| &before[op + 4..]);
        let name = named.filter(|name| name.chars().all(char::is_alphanumeric));
        if name.is_some_and(|name| !OPERATORS.contains(&name)) && code[at + pattern.len()..].starts_with(')')
        {
            add(at);
        }
    }
    found
}

/// The slice patterns of two and more names in a text, and where they begin.
fn patterns(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('[').filter_map(|(at, _)| {
        let end = at + code[at..].find(']')?;
        let names = &code[at + 1..end];
        let plain = |c: char| c.is_alphanumeric() || "_, .@&".contains(c);
        (names.contains(',') && names.chars().all(plain)).then(|| (at, &code[at..=end]))
    })
}

/// The files of Rust in a folder, without those of tests.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("test") {
            continue;
        }
        match path.is_dir() {
            true => sources(&path, into),
            false if name.ends_with(".rs") => into.push(path),
            false => {}
        }
    }
}

#[test]
fn operands_are_read_by_name() {
    let mut files = Vec::new();
    for name in CRATES {
        sources(&root().join(name).join("src"), &mut files);
    }
    let (mut wrong, mut excepted) = (Vec::new(), Vec::new());
    for path in files {
        let name = path
            .strip_prefix(root())
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/");
        if OF_PYTHON.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let found = counted(text);
        match BY_POSITION.iter().find(|(file, _)| *file == name) {
            Some((file, _)) if !found.is_empty() => excepted.push(*file),
            _ => wrong.extend(found.into_iter().map(|what| format!("{name}: {what}"))),
        }
    }
    assert!(
        wrong.is_empty(),
        "read these by at!(Op.name) or Operands: {wrong:#?}"
    );
    let listed: Vec<&str> = BY_POSITION.iter().map(|(file, _)| *file).collect();
    excepted.sort_unstable();
    assert_eq!(
        excepted, listed,
        "files that read nothing by position need no exception"
    );
}

#[test]
fn what_counts_operands_is_found() {
    for text in [
        "let x = args[0];",
        "f(&call.args[1..])",
        "match args\n    .first() {",
        "args.get(2)?",
        "let [a, b] = args else {",
        "let [data, .., shape @ ..] = &args[..] else {",
        "if let Some([a, b]) = e.as_call(Op::HandleAddByteOffset) {",
        "(Op::Dp4a, [a, b, c]) => 1,",
    ] {
        assert_eq!(counted(text).len(), 1, "{text}");
    }
    for text in [
        "args[at!(Dp4a.acc)]",
        "// args[0]",
        "let [of] = e.as_call(Op::AddressOf)?;",
        "let [a, b] = pair;",
        "(Op::BitwiseAnd, [a, b]) => 1,",
        "Expr::call(Op::PtxLop3B32, dtype, [a, b])",
    ] {
        assert_eq!(counted(text), Vec::<String>::new(), "{text}");
    }
}
