//! Kernels that copy and compute asynchronously are right on the simulator, and their broken variants are reported.
//!
//! `TIRX_FILTER=name` runs those whose name holds the text; `TIRX_SHOW=1` shows what is said of each variant.

use tirx_core::codegen::cuda;
use tirx_tests::asynchronous::{CASES, Case, Scale, variants};
use tirx_tests::machine::Simulator;
use tirx_tests::nvcc::{self, Source};
use tirx_tests::only;

/// Branches and loop iterations of a block after which a broken kernel counts as endless.
const STEPS: u64 = 3_000_000;

fn wanted(name: &str) -> bool {
    std::env::var("TIRX_FILTER").is_ok_and(|filter| name.contains(&filter))
        || std::env::var("TIRX_FILTER").is_err()
}

/// The kernel's own text, without the others of its file.
fn text(case: &Case) -> String {
    only(case.text, case.entry).unwrap_or_else(|| panic!("{} has no {}", case.file, case.entry))
}

#[test]
fn kernels_leave_what_plain_rust_leaves() {
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|case| wanted(case.entry)) {
        let mut machine = Simulator::with_step_limit(STEPS);
        if let Err(message) = case.check(&mut machine, &text(case), Scale::Small) {
            failures.push(format!("{}: {message}", case.entry));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn broken_kernels_are_refused() {
    let show = std::env::var_os("TIRX_SHOW").is_some();
    let mut failures = Vec::new();
    for variant in variants() {
        let name = format!("{}: {}", variant.entry, variant.name);
        if !wanted(&name) {
            continue;
        }
        let case = Case::find(variant.entry).unwrap_or_else(|| panic!("no case {}", variant.entry));
        let whole = text(case);
        assert!(
            whole.contains(variant.from),
            "{name}: the text to replace is not there"
        );
        let broken = whole.replace(variant.from, variant.to);
        let mut machine = Simulator::with_step_limit(STEPS);
        match case.check(&mut machine, &broken, Scale::Small) {
            Ok(()) => failures.push(format!("{name}: nothing is said")),
            Err(message) => {
                if show {
                    println!("== {name}\n{message}\n");
                }
                let lower = message.to_lowercase();
                if !variant.says.iter().any(|part| lower.contains(part)) {
                    failures.push(format!(
                        "{name}: expected one of {:?}, found: {message}",
                        variant.says
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn kernels_become_machine_code() {
    let Some(nvcc) = nvcc::nvcc() else { return };
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|case| wanted(case.entry)) {
        let compiled = case.prepare(&text(case), Scale::Small).and_then(|prepared| {
            let source = cuda::emit(&prepared.module).map_err(|e| e.to_string())?;
            if std::env::var_os("TIRX_SHOW").is_some() {
                println!("{}", source.text);
            }
            nvcc.compile(&Source {
                arch: case.arch,
                flags: &["-O3"],
                text: &source.text,
            })
        });
        if let Err(message) = compiled {
            failures.push(format!("{}: {message}", case.entry));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
