//! Each synchronization of each kernel with values, taken out in turn, must be reported by the simulator or stand in
//! `tests/mutants.txt` with the reason why it is redundant. Run by `cargo xtask mutants`; `TIRX_FILTER` chooses files.

use tirx_tests::mutants::{Outcome, mutants, redundant};
use tirx_tests::{Case, Test, root};

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
    let (mut reported, mut known, mut not_run) = (0, 0, 0);
    let mut failures = Vec::new();
    for path in paths {
        let case = Case::read(&path).expect("a filetest");
        if !case.errors.is_empty() || case.tests.contains(&Test::Messages) {
            continue;
        }
        for mutant in mutants(&case) {
            let outcome = mutant.run(&case).expect("expectations");
            let reason = allowed.remove(&mutant.name);
            match outcome {
                Outcome::Reported(_) if reason.is_some() => {
                    failures.push(format!(
                        "{}: is reported, though the list says it is redundant",
                        mutant.name
                    ));
                }
                Outcome::Reported(_) => reported += 1,
                Outcome::NotRun => not_run += 1,
                Outcome::Silent if reason.is_some() => known += 1,
                Outcome::Silent => failures.push(format!(
                    "{}: nothing is reported (line {})",
                    mutant.name, mutant.line
                )),
                Outcome::Wrong(what) => {
                    failures.push(format!(
                        "{}: {what}, and no fault (line {})",
                        mutant.name, mutant.line
                    ));
                }
            }
        }
    }
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
