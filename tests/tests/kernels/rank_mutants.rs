//! Mistakes in the kernels that several devices run together (`ranks.py` of `tirx-kernels`): a wait, a signal, a fence or a barrier is missing,
//! a scope is too narrow, a release or an acquire is relaxed. The simulator must report each of them, or `REDUNDANT` gives the reason why
//! one launch cannot show it. Run by `cargo xtask mutants`.
//!
//! `TIRX_FILTER` names a part of a mutant's name, and prints the reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tirx_core::ir::IRModule;
use tirx_core::script::{Imports, KernelFile, ModuleText};
use tirx_core::source::SourceMap;
use tirx_expect::Run;
use tirx_expect::machine::Simulator;
use tirx_sim::LaunchOptions;
use tirx_tests::{expressions, root, stages};

/// Statements that order threads or ranks, by the beginning of their calls.
const STATEMENTS: [&str; 8] = [
    "T.cuda.warp_sync(",
    "T.cuda.cta_sync(",
    "T.cuda.warpgroup_sync(",
    "T.ptx.fence.",
    "T.ptx.red_scalar(",
    "T.ptx.st_release(",
    "wait_until(",
    "tell(",
];

/// Weaker words in place of others.
const WEAKER: [(&str, &str); 7] = [
    ("scope=\"sys\"", "scope=\"gpu\""),
    ("scope=\"gpu\"", "scope=\"cta\""),
    (", \"sys\")", ", \"gpu\")"),
    (", \"gpu\")", ", \"cta\")"),
    ("sem=\"release\"", "sem=\"relaxed\""),
    ("st_release(", "st_relaxed("),
    ("ld_acquire(", "ld_relaxed("),
];

/// Mutants that a run cannot show, by their names, with the reasons. A run is one launch of all ranks, before and after which the host waits.
const REDUNDANT: &[(&str, &str)] = &[
    (
        "tell missing T.cuda.warp_sync()",
        "a later launch overwrites the rows that the other lanes have seen to be copied",
    ),
    (
        "tell st_release( is st_relaxed(: T.ptx.st_release(there.ptr_to([slot]), value, ptx_type=\"u32\", scope=\"sys\")",
        "earlier launches wrote the rows, and later ones overwrite them",
    ),
    (
        "gather missing wait_until(F.ptr_to([source]), turn, \"sys\")",
        "earlier launches wrote the rows",
    ),
    (
        "gather missing T.cuda.warp_sync()",
        "orders the lanes behind the wait for rows of earlier launches",
    ),
    (
        "gather missing wait_until(F.ptr_to([ARRIVED + T.truncmod(me + other, RANKS) * down + part]),",
        "a later launch overwrites the rows",
    ),
    (
        "gather missing wait_until(F.ptr_to([RANKS + step * 32 + lane]), turn, \"sys\")",
        "a later launch overwrites the rows",
    ),
    (
        "scatter missing wait_until(F.ptr_to([matrix]), turn, \"sys\")",
        "an earlier launch read the products",
    ),
    (
        "scatter missing T.cuda.warp_sync() 2",
        "orders the lanes behind the wait for an earlier launch",
    ),
];

/// A kernel file with one mistake.
struct Mutant {
    line: usize,
    name: String,
    text: String,
}

/// One past the parenthesis that closes the call at `at`.
fn call_end(text: &str, at: usize) -> usize {
    let mut depth = 0;
    for (i, c) in text[at..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + i + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn mutants(text: &str) -> Vec<Mutant> {
    let mut out: Vec<Mutant> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut start = 0;
    let mut function = "";
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let trimmed = line.trim();
        if let Some(rest) = line.strip_prefix("def ") {
            function = rest.split('(').next().unwrap_or_default();
        }
        let mut add = |change: String, text: String| {
            let name = format!("{function} {change} {trimmed}");
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            let name = if *times > 1 {
                format!("{name} {times}")
            } else {
                name
            };
            out.push(Mutant {
                line: number + 1,
                name,
                text,
            });
        };
        let begin = start + line.len() - line.trim_start().len();
        if STATEMENTS.iter().any(|statement| trimmed.starts_with(statement)) {
            let end = call_end(text, begin);
            add(
                "missing".to_string(),
                format!("{}T.evaluate(0){}", &text[..begin], &text[end..]),
            );
        }
        for (word, weaker) in WEAKER {
            for (at, _) in line.match_indices(word).filter(|_| !trimmed.starts_with("def ")) {
                let at = start + at;
                let mutated = format!("{}{weaker}{}", &text[..at], &text[at + word.len()..]);
                add(format!("{word} is {weaker}:"), mutated);
            }
        }
        start += line.len();
    }
    out
}

/// Files beside a file.
struct Beside(PathBuf);

impl Imports for Beside {
    fn read(&self, module: &str) -> Option<ModuleText> {
        let name = format!("{module}.py");
        let text = std::fs::read_to_string(self.0.join(&name)).ok()?;
        Some(ModuleText {
            name,
            text,
            is_package: false,
        })
    }
}

/// The report of the first run that ends with one, or with other values than the file says.
fn report(imports: &Beside, runs: &[Run], text: &str) -> Result<Option<String>, String> {
    for run in runs {
        let module: IRModule = {
            let mut sources = SourceMap::new();
            let file =
                KernelFile::load(&mut sources, "ranks.py", text, imports).map_err(|e| e.render(&sources))?;
            file.build(Some(&run.kernel), &run.values)
                .map_err(|e| e.render(&sources))?
        };
        let authored = module
            .functions
            .last()
            .map(|(_, function)| function)
            .ok_or("no kernel")?;
        let run = run.bound_to(authored)?;
        let lowered = stages(&module, "sm_90a", &mut |_, _| Ok(()))?;
        for seed in 0..2 {
            let mut machine = Simulator::with_options(LaunchOptions {
                step_limit: Some(1 << 18),
                seed,
                ..LaunchOptions::default()
            });
            if let Err(message) = run.check(&mut machine, &lowered) {
                return Ok(Some(message));
            }
        }
    }
    Ok(None)
}

#[test]
#[ignore = "minutes; cargo xtask mutants runs it"]
fn mistakes_between_ranks_are_reported() {
    let filter = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut failures = Vec::new();
    let mut silent = BTreeSet::new();
    let mut reported = 0;
    for folder in ["gemm", "serving"] {
        let folder = root().join("tirx-kernels/kernels").join(folder);
        let imports = Beside(folder.clone());
        let text = std::fs::read_to_string(folder.join(Path::new("ranks.py"))).expect("the kernels");
        let runs = expressions::read_with("ranks.py", &text, &imports).expect("the runs of the file");
        assert_eq!(
            report(&imports, &runs, &text),
            Ok(None),
            "the kernels as they are"
        );
        for mutant in mutants(&text) {
            if !mutant.name.contains(&filter) {
                continue;
            }
            let found = report(&imports, &runs, &mutant.text);
            let (line, name) = (mutant.line, &mutant.name);
            let known = REDUNDANT.iter().position(|(known, _)| known == name);
            match (found, known) {
                (Ok(Some(message)), None) => {
                    reported += 1;
                    if !filter.is_empty() {
                        println!("line {line}, {name}\n  {message}");
                    }
                }
                (Ok(Some(_)), Some(_)) => failures.push(format!(
                    "line {line}, {name}: is reported, and the list has a reason"
                )),
                (Ok(None), Some(known)) => {
                    silent.insert(known);
                }
                (Ok(None), None) => failures.push(format!("line {line}, {name}: nothing is reported")),
                (Err(error), _) => failures.push(format!("line {line}, {name}: {error}")),
            }
        }
    }
    if filter.is_empty() && silent.len() < REDUNDANT.len() {
        failures.push("the list has a mutant that does not exist".to_string());
    }
    println!("{reported} reported, {} redundant as listed", silent.len());
    assert!(
        failures.is_empty(),
        "{} mutants:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
