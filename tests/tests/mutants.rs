//! Each synchronization of each kernel with values (the filetests', those of `kernels/` that compute asynchronously, the
//! examples), taken out in turn, must be reported by the simulator or stand in `tests/mutants.txt` with the reason why it is
//! redundant. Run by `cargo xtask mutants`; `TIRX_FILTER` chooses files.

use std::collections::BTreeMap;

use tirx_tests::asynchronous::CASES;
use tirx_tests::mutants::{EXAMPLES, Mutant, Outcome, mutants, of_text, redundant};
use tirx_tests::{Case, Test, only, root};

#[test]
#[ignore = "minutes; cargo xtask mutants runs it"]
fn every_synchronization_is_needed_or_known_not_to_be() {
    let filter = std::env::var("TIRX_FILTER").unwrap_or_default();
    let list = std::fs::read_to_string(root().join("tests/mutants.txt")).expect("the list");
    let mut allowed = redundant(&list);
    let mut paths: Vec<_> = std::fs::read_dir(root().join("tests/kernels"))
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "py") && p.to_string_lossy().contains(&filter))
        .collect();
    paths.sort();
    let mut tally = Tally::default();
    for path in paths {
        let case = Case::read(&path).expect("a filetest");
        if !case.errors.is_empty() || case.tests.contains(&Test::Messages) {
            continue;
        }
        for mutant in mutants(&case) {
            let outcome = mutant.run(&case).expect("expectations");
            tally.count(&mutant, outcome, &mut allowed);
        }
    }
    for case in CASES.iter().filter(|case| case.file.contains(&filter)) {
        let text = only(case.text, case.entry).expect("the file has its kernel");
        let file = case.file.trim_end_matches(".py");
        for mutant in of_text(file, &text) {
            let outcome = mutant.run_case(case);
            tally.count(&mutant, outcome, &mut allowed);
        }
    }
    for example in EXAMPLES.iter().filter(|e| e.file.contains(&filter)) {
        let text = example.text().expect("an example kernel");
        let file = format!("kernels/{}", example.file.trim_end_matches(".py"));
        for mutant in of_text(&file, &text).iter().filter(|m| m.kernel == example.entry) {
            let outcome = mutant.run_example(example).expect("the example runs");
            tally.count(mutant, outcome, &mut allowed);
        }
    }
    let Tally {
        reported,
        known,
        not_run,
        mut failures,
    } = tally;
    println!("{reported} reported, {known} redundant as listed, {not_run} not run");
    if filter.is_empty() {
        failures.extend(
            allowed
                .keys()
                .map(|name| format!("{name}: listed, and there is no such mutant")),
        );
    }
    assert!(
        failures.is_empty(),
        "{} mutants:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What became of the mutants so far.
#[derive(Default)]
struct Tally {
    reported: usize,
    known: usize,
    not_run: usize,
    failures: Vec<String>,
}

impl Tally {
    fn count(&mut self, mutant: &Mutant, outcome: Outcome, allowed: &mut BTreeMap<String, String>) {
        let reason = allowed.remove(&mutant.name);
        match outcome {
            Outcome::Reported(_) if reason.is_some() => {
                self.failures.push(format!(
                    "{}: is reported, though the list says it is redundant",
                    mutant.name
                ));
            }
            Outcome::Reported(_) => self.reported += 1,
            Outcome::NotRun => self.not_run += 1,
            Outcome::Silent if reason.is_some() => self.known += 1,
            Outcome::Silent => self.failures.push(format!(
                "{}: nothing is reported (line {})",
                mutant.name, mutant.line
            )),
            Outcome::Wrong(what) => {
                self.failures.push(format!(
                    "{}: {what}, and no fault (line {})",
                    mutant.name, mutant.line
                ));
            }
        }
    }
}

/// An example that synchronizes is in the table.
#[test]
fn all_examples_that_synchronize_are_there() {
    let mut found = Vec::new();
    for file in ["vector.py", "reduce.py", "matrix.py", "image.py"] {
        let text = std::fs::read_to_string(root().join("kernels").join(file)).expect("an example kernel");
        found.extend(of_text(file, &text).into_iter().map(|m| m.kernel));
    }
    found.dedup();
    let table: Vec<&str> = EXAMPLES.iter().map(|e| e.entry).collect();
    assert_eq!(found, table);
}
