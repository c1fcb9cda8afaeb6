//! Checks that `docs/reference/language.md` lists the support of every name of TVM's `T`.
//!
//! The table is made from the compiler's own tables; `UPDATE_EXPECT=1` writes it. `tvm_names.txt` are the names that
//! TVM 0.26 exports.

mod links;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tirx_core::intrin::row::CudaForm;
use tirx_core::intrin::{Op, Row};
use tirx_core::ir::DType;
use tirx_core::script::eval::{Value, language_name, limits};
use tirx_tests::files::kernel_files;
use tirx_tests::{Case, Test, root};

/// The support of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Supported(String),
    Later(String),
    Refused(String),
}

/// The names of TVM's `T`.
fn names() -> Vec<&'static str> {
    include_str!("../../tvm_names.txt").lines().collect()
}

/// The support of a dotted name: the part of it that decides, and the reason if it is not supported.
fn find(full: &str) -> Result<(String, Option<String>), String> {
    let mut path = String::from("T");
    for part in full.split('.').skip(1) {
        match language_name(&path, part) {
            Some(Value::Unavailable(why)) => return Ok((format!("{path}.{part}"), Some(why.to_string()))),
            Some(_) => path = format!("{path}.{part}"),
            None => return Err(format!("{path}.{part} is neither known nor refused")),
        }
    }
    Ok((full.to_string(), None))
}

/// The names that building the kernels of filetests and examples looks up, each with the first file that does. All these
/// kernels are lowered and compared, run or given to nvcc.
fn run_in() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in ["tests/kernels", "kernels"] {
        for path in kernel_files(&root().join(folder)).unwrap() {
            let case = Case::read(&path).unwrap();
            // Files of errors and messages show what is refused.
            if !case.errors.is_empty() || case.tests.contains(&Test::Messages) {
                continue;
            }
            let name = shown(&path);
            for used in case.names() {
                let mut add = |name_of_t: String| {
                    found.entry(name_of_t).or_insert_with(|| name.clone());
                };
                // `Tx` has the tile primitives of one thread, and the scopes that `T` has too.
                if let Some(scope) = used.strip_prefix("Tx.") {
                    add(format!("T.{scope}"));
                    add("T.thread".into());
                    add("T.tile".into());
                }
                add(used);
            }
        }
    }
    // Each row is called with each of its modifiers by itself.
    let own = |row: &Row| match row.cuda.form {
        CudaForm::Special => !row.script.starts_with("ptx."),
        form => matches!(form, CudaForm::Lowered | CudaForm::Host),
    };
    for row in Op::ALL.iter().map(|op| op.row()).filter(|row| !own(row)) {
        for script in std::iter::once(&row.script).chain(row.also) {
            found
                .entry(format!("T.{script}"))
                .or_insert_with(|| "tests/tests/language/intrinsics.rs".into());
        }
    }
    found
}

/// The texts of tests, for names that no kernel looks up as `T.name`: dtypes as strings, imported classes, annotations,
/// and names used by tests in Rust: path and text.
fn tested_in() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let kernels = |folder: &str| kernel_files(&root().join(folder)).unwrap();
    let mut paths: Vec<_> = ["tests/kernels", "kernels"]
        .into_iter()
        .flat_map(kernels)
        .collect();
    for folder in [
        "tirx-core/script/src/eval",
        "tirx-core/script/src/lang",
        "tirx-sim/tests",
        "tirx-sim/tests/kernel",
    ] {
        let mut found: Vec<_> = std::fs::read_dir(root().join(folder))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        found.sort();
        paths.extend(found);
    }
    for path in paths.into_iter().filter(|path| is_test(path)) {
        let text = std::fs::read_to_string(&path).unwrap();
        // Files of messages show what is refused, as those of errors do.
        if !text.starts_with("# test: messages") {
            files.push((shown(&path), text));
        }
    }
    files
}

/// A path as it is written in the page: from the root on.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let in_tests = path
        .parent()
        .is_some_and(|p| !p.ends_with("eval") && !p.ends_with("lang"));
    match path.extension().and_then(|e| e.to_str()) {
        // Files of errors show what is refused.
        Some("py") => !name.starts_with("error"),
        Some("rs") => in_tests || name.ends_with("tests"),
        _ => false,
    }
}

/// Whether a text uses a name, as `T.name` or, for a dtype, as a string.
fn uses(text: &str, full: &str) -> bool {
    let whole = |needle: &str| {
        text.match_indices(needle).any(|(at, _)| {
            let after = text[at + needle.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let name = full.strip_prefix("T.").unwrap_or(full);
    // Kernel files import classes of layouts by their own names.
    let is_class = name.starts_with(char::is_uppercase) && whole(name);
    whole(full) || is_class || is_dtype(full) && whole(&format!("\"{name}\""))
}

/// Whether a name is that of a dtype, which kernels may write as a string.
fn is_dtype(full: &str) -> bool {
    full.strip_prefix("T.")
        .is_some_and(|name| name.parse::<DType>().is_ok())
}

/// `float32` of `float32x4`.
fn scalar_of<'a>(name: &'a str, all: &[&str]) -> Option<&'a str> {
    let (scalar, lanes) = name.rsplit_once('x')?;
    (lanes.parse::<u32>().is_ok() && all.contains(&scalar)).then_some(scalar)
}

/// The rows: a name (or all names with a prefix) and its support.
fn rows() -> Vec<(String, Status)> {
    let (all, files, run) = (names(), tested_in(), run_in());
    let mut gaps = Vec::new();
    let mut rows: BTreeMap<String, (Status, usize)> = BTreeMap::new();
    for full in &all {
        let (decided, why) = match find(full) {
            Ok(found) => found,
            Err(gap) => {
                gaps.push(gap);
                continue;
            }
        };
        let status = match why {
            Some(why) if why.contains(" yet") => Status::Later(why),
            Some(why) => Status::Refused(why),
            // Vectors of a dtype are in its row.
            None if scalar_of(full, &all).is_some() => {
                if let Some(row) = rows.get_mut(scalar_of(full, &all).unwrap()) {
                    row.1 += 1;
                }
                continue;
            }
            None => {
                let elsewhere = || {
                    let found = files.iter().find(|(_, text)| uses(text, full));
                    found.map(|(path, _)| path.clone())
                };
                match (not_in_cuda(full), run.get(*full).cloned().or_else(elsewhere)) {
                    (Some(why), _) => Status::Refused(why),
                    (None, Some(path)) => Status::Supported(path),
                    (None, None) => {
                        gaps.push(format!("{full} is supported and no test runs it"));
                        continue;
                    }
                }
            }
        };
        let shown = if decided == *full {
            decided
        } else {
            format!("{decided}.*")
        };
        rows.entry(shown).or_insert((status, 0));
    }
    assert!(gaps.is_empty(), "{} gaps:\n{}", gaps.len(), gaps.join("\n"));
    rows.into_iter()
        .map(|(name, (status, vectors))| match vectors {
            0 => (format!("`{name}`"), status),
            _ => (format!("`{name}`, `{name}x2` … `{name}x64`"), status),
        })
        .collect()
}

/// The error for a kernel that stores values of a dtype that exists in the IR but not in CUDA.
fn not_in_cuda(full: &str) -> Option<String> {
    let name = full.strip_prefix("T.")?;
    if !name.starts_with("float") || name.parse::<DType>().is_err() {
        return None;
    }
    let text = format!(
        "from tvm.script import tirx as T\n\n@T.prim_func\ndef k(A: T.Buffer((32,), \"{name}\")):\n    \
         T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([32])\n    A[tx] = A[31 - tx]\n"
    );
    let message = tirx_tests::cuda_text("k.py", &text, "k", &Default::default(), "sm_90a").err()?;
    let told = message.lines().next()?.strip_prefix("error: ")?;
    Some(told.to_string())
}

/// The limits, as a table.
fn limits() -> String {
    let rows = [
        ("bytes of a file", limits::SOURCE_BYTES as u64),
        ("steps of compile-time evaluation", limits::STEPS),
        ("statements of a kernel", limits::STATEMENTS as u64),
        ("blocks within blocks of a kernel", limits::NESTING as u64),
        ("blocks within blocks of the text", limits::PYTHON.blocks.into()),
        (
            "operators in one chain: `a + b`, `a.b`",
            limits::PYTHON.levels.into(),
        ),
        (
            "expressions one within the other: brackets, `not a`, `a if b else c`",
            limits::PYTHON.nesting.into(),
        ),
        ("levels of one expression of a kernel", limits::EXPR_DEPTH.into()),
        ("nodes of one expression of a kernel", limits::EXPR_SIZE),
        ("Python calls within calls", limits::CALLS as u64),
        ("evaluations within evaluations", limits::DEPTH as u64),
        ("items of a list, tuple, dictionary or text", limits::ITEMS as u64),
        ("bits of an integer outside of kernels", limits::INTEGER_BITS),
        ("lists, functions and other objects", limits::OBJECTS as u64),
    ];
    let rows: String = rows
        .iter()
        .map(|(what, most)| format!("| {what} | {most} |\n"))
        .collect();
    format!("| limit of | value |\n|---|---|\n{rows}")
}

/// The signature of a name of the table and its description.
fn described(name: &str) -> (String, String) {
    let first = name.split(['`', ',']).nth(1).unwrap_or_default();
    let found = tirx_core::script::lang::described(first);
    found.unwrap_or_else(|| panic!("{first} has no meaning: see tirx-core/script/src/lang/meanings.rs"))
}

fn table() -> String {
    let mut text = String::new();
    let rows = rows();
    let mut section = |title: &str, columns: &str, pick: &dyn Fn(&str, &Status) -> Option<String>| {
        let picked: Vec<String> = rows
            .iter()
            .filter_map(|(name, status)| Some(format!("| {name} | {} |\n", pick(name, status)?)))
            .collect();
        text.push_str(&format!(
            "### {title}\n\n{} rows.\n\n| name | {columns} |\n|---{}|\n",
            picked.len(),
            "|---".repeat(columns.split('|').count())
        ));
        text.extend(picked);
        text.push('\n');
    };
    section("Supported", "parameters | meaning | run by", &|name, s| match s {
        Status::Supported(path) => {
            let (signature, meaning) = described(name);
            let signature = match signature.is_empty() {
                true => String::new(),
                false => format!("`{}`", signature.replace('|', "\\|")),
            };
            Some(format!(
                "{signature} | {} | `{path}` ",
                meaning.replace('|', "\\|")
            ))
        }
        _ => None,
    });
    section("Not there yet", "message", &|_, s| match s {
        Status::Later(why) => Some(why.clone()),
        _ => None,
    });
    section("Refused", "message", &|_, s| match s {
        Status::Refused(why) => Some(why.clone()),
        _ => None,
    });
    text
}

#[test]
fn the_page_is_up_to_date() {
    let path = root().join("docs/reference/language.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut new = page.clone();
    for (name, text) in [("limits", limits()), ("coverage", table())] {
        let (begin, end) = (format!("<!-- {name}: "), format!("<!-- {name} ends -->\n"));
        let at = new.find(&begin).expect("the begin mark");
        let from = at + new[at..].find('\n').unwrap() + 1;
        let to = new.find(&end).expect("the end mark");
        new.replace_range(from..to, &format!("\n{}\n", text.trim_end()));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, new).unwrap();
    } else {
        assert!(
            new == page,
            "docs/reference/language.md is out of date: run this test with UPDATE_EXPECT=1"
        );
    }
}

/// A kernel that reads a name.
fn kernel_with(name: &str) -> String {
    format!(
        "from tvm.script import tirx as T\n\n@T.prim_func\n\
         def k(A: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
         tx = T.thread_id([32])\n    T.evaluate({name}(A[tx]))\n    A[tx] = 1.0\n"
    )
}

#[test]
fn what_is_not_there_says_what_the_page_says() {
    for full in names() {
        let Ok((_, Some(why))) = find(full) else { continue };
        let Err(message) = tirx_tests::build("k.py", &kernel_with(full), &[], &Default::default()) else {
            panic!("{full} is accepted");
        };
        assert!(message.contains(&why), "{full}:\n{message}");
        assert!(message.contains("k.py:8:"), "{full}:\n{message}");
    }
}

/// The lines of tested kernels, and for each name the shortest that uses it, as `tirx-services/src/examples.txt` has it.
fn examples() -> (BTreeSet<String>, String) {
    use tirx_services::reference::names;
    let mut lines: Vec<(String, String)> = Vec::new();
    for folder in ["kernels", "tests/kernels"] {
        for path in kernel_files(&root().join(folder)).unwrap() {
            let case = Case::read(&path).unwrap();
            if !case.errors.is_empty() || case.tests.contains(&Test::Messages) || !is_test(&path) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().map(str::trim) {
                let is_code = !line.starts_with(['#', '"', '\''])
                    && !line.starts_with("from ")
                    && !line.starts_with("import ");
                let is_whole =
                    line.matches('(').count() == line.matches(')').count() && !line.ends_with(['\\', ',']);
                if is_code && is_whole && (8..=110).contains(&line.len()) {
                    lines.push((line.to_string(), text.clone()));
                }
            }
        }
    }
    lines.sort_by_key(|(line, _)| (line.len(), line.clone()));
    let found = |name: &str| {
        let (class, member) = match name.split_once('.') {
            Some((class, _)) if ["T", "Tx"].contains(&class) => ("", name.to_string()),
            Some((class, member)) => (class, format!(".{member}")),
            None => ("", name.to_string()),
        };
        // A pool, a barrier and a scheduler have methods of one name: the file makes one of this class.
        let makes = |text: &str| class.is_empty() || class == "Buffer" || text.contains(&format!("{class}("));
        let uses_it = |line: &str| {
            line.match_indices(&member).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + member.len()..].chars().next();
                let is_of_name =
                    |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
                    && (member.starts_with('.') || !is_of_name(before))
            })
        };
        lines
            .iter()
            .find(|(line, text)| uses_it(line) && makes(text))
            .map(|(line, _)| line.clone())
    };
    let rows = names()
        .into_iter()
        .filter_map(|name| Some(format!("{name}\t{}\n", found(&name)?)));
    let rows = rows.collect();
    (lines.into_iter().map(|(line, _)| line).collect(), rows)
}

/// `cargo tirx docs` shows a line of a tested kernel for most names, and every name of the page has an entry.
#[test]
fn every_name_of_the_page_has_documentation_with_an_example() {
    let path = root().join("tirx-services/src/examples.txt");
    let (lines, new) = examples();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &new).unwrap();
    }
    // Any line of a kernel will do, so that a shorter one makes no difference.
    let table = std::fs::read_to_string(&path).unwrap();
    let table: BTreeMap<&str, &str> = table.lines().filter_map(|row| row.split_once('\t')).collect();
    let advice = "run this test with UPDATE_EXPECT=1";
    for (name, line) in &table {
        assert!(
            lines.contains(*line),
            "no kernel has the example of {name}, `{line}`: {advice}"
        );
    }
    for (name, _) in new.lines().filter_map(|row| row.split_once('\t')) {
        assert!(table.contains_key(name), "{name} has no example: {advice}");
    }
    for (name, status) in rows() {
        if !matches!(status, Status::Supported(_)) {
            continue;
        }
        let first = name.split('`').nth(1).unwrap_or_default();
        let entry = tirx_services::reference::entry(first).unwrap_or_else(|| panic!("{first} has no entry"));
        assert!(
            !entry.meaning.is_empty() && !entry.gpus.is_empty() && !entry.example.is_empty(),
            "{entry:?}"
        );
    }
}
