//! `cargo tirx fix` on the filetests: files of 0.26 in the language of 0.27 make the same IR.
//!
//! Each call that cannot be rewritten is in `fix.left.txt`, with the reason that users read: `UPDATE_EXPECT=1` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tirx_build::compile::FileImports;
use tirx_core::ir::IRModule;
use tirx_core::script::KernelFile;
use tirx_core::source::SourceMap;
use tirx_fix::{Attempt, to_v27, without_counterpart};
use tirx_tests::files::filetests;
use tirx_tests::{Case, root};

/// The kernels of a text.
fn build(case: &Case, attempt: &Attempt) -> Result<Vec<IRModule>, String> {
    let folder = case.path.parent().unwrap_or(&case.path);
    let imports = FileImports::new(folder, "").with_release(attempt.release);
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "fixed.py", attempt.text, &imports);
    let file = file.map_err(|error| error.render(&sources))?;
    let entries = case.entry.clone().map(|entry| vec![entry]);
    let entries = entries.unwrap_or_else(|| file.entries().iter().map(|e| e.name.clone()).collect());
    file.with_trials(attempt.trials.as_ref(), |file| {
        let modules = entries.iter().map(|entry| {
            let built = file.build(Some(entry), &case.defines);
            built.map_err(|error| error.render(&sources))
        });
        modules.collect()
    })
}

/// What became of a file.
struct Outcome {
    name: String,
    replaced: usize,
    /// The calls that stay, by line.
    left: Vec<(usize, String)>,
}

fn fix(case: &Case) -> Option<Outcome> {
    let original = Attempt {
        text: &case.text,
        release: None,
        trials: None,
    };
    build(case, &original).ok()?;
    let mut wrong = Vec::new();
    let mut kernels = |attempt: &Attempt| {
        let built = build(case, attempt);
        built.map_err(|error| wrong.push(error)).ok()
    };
    let fixed = to_v27(&case.text, &mut kernels).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
    assert!(
        !fixed.differs && wrong.is_empty(),
        "{} makes another IR:\n{}\n{}",
        case.name(),
        fixed.text,
        wrong.join("\n")
    );
    Some(Outcome {
        name: case.name(),
        replaced: fixed.replaced.len(),
        left: fixed
            .left
            .iter()
            .map(|left| (left.line, format!("{}: {}", left.name, left.reason)))
            .collect(),
    })
}

/// The calls whose reason has these words.
fn calls_with(left: &BTreeMap<&str, &[(usize, String)]>, words: &str) -> Vec<String> {
    let calls = left
        .iter()
        .flat_map(|(name, calls)| calls.iter().map(move |call| (name, call)));
    let those = calls.filter(|(_, (_, why))| why.contains(words));
    those
        .map(|(name, (line, why))| format!("{name}:{line}: {why}"))
        .collect()
}

#[test]
fn filetests_of_the_older_release_are_rewritten() {
    let files = filetests().expect("the folder of the filetests is read");
    let cases = files.iter().filter_map(|path| Case::read(path).ok());
    let cases: Vec<Case> = cases
        .filter(|case| case.errors.is_empty() && case.text.contains("T.ptx."))
        .collect();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = fix(case);
                    outcomes.lock().expect("no thread panics with it").extend(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no thread panics with it");
    let whole = outcomes
        .iter()
        .filter(|o| o.left.is_empty() && o.replaced > 0)
        .count();
    let part: usize = outcomes.iter().filter(|o| !o.left.is_empty()).count();
    let replaced: usize = outcomes.iter().map(|o| o.replaced).sum();
    let left: BTreeMap<&str, &[(usize, String)]> = outcomes
        .iter()
        .filter(|o| !o.left.is_empty())
        .map(|o| (&*o.name, &*o.left))
        .collect();
    println!("{replaced} calls rewritten, {whole} files whole, {part} not");
    let calls: usize = left.values().map(|calls| calls.len()).sum();
    let mut text = format!("{calls} calls left, {part} files not whole\n");
    for (name, calls) in &left {
        writeln!(text, "\n{name}").expect("a String takes all text");
        for (line, why) in *calls {
            writeln!(text, "    {line}: {why}").expect("a String takes all text");
        }
    }
    let unjudged = calls_with(&left, "no mnemonic is known");
    assert!(
        unjudged.is_empty(),
        "calls without a reason of their own: {unjudged:?}"
    );
    let path = root().join("tests/tests/language/fix.left.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &text).expect("the list is written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, expected,
        "what is left has changed: UPDATE_EXPECT=1 writes the list"
    );
}

/// The documentation lists what has no counterpart, as the tool says it.
#[test]
fn the_documentation_lists_what_has_no_counterpart() {
    let path = root().join("docs/reference/releases.md");
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let start = text.find("<!-- begin: ").expect("the table has a place");
    let start = start + text[start..].find('\n').expect("the mark is a line") + 1;
    let end = text.find("<!-- end -->").expect("the table has an end");
    let mut table = String::from("| call of 0.26 | reason |\n|---|---|\n");
    for (call, reason) in without_counterpart() {
        writeln!(table, "| `{call}` | {reason} |").expect("a String takes all text");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let new = format!("{}{table}{}", &text[..start], &text[end..]);
        return std::fs::write(&path, new).expect("the page is written");
    }
    assert_eq!(&text[start..end], table, "UPDATE_EXPECT=1 writes the table");
}
