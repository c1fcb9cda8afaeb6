//! Mistakes in the kernels that several devices run together (`ranks.py` of `tirx-kernels`): a wait, a signal, a fence or a barrier is missing,
//! a scope is too narrow, a release or an acquire is relaxed. The simulator must report each of them in one launch or in several launches
//! without a wait of the host in between, or `REDUNDANT` gives the reason why nothing needs it. Run by `cargo xtask mutants`.
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
const STATEMENTS: [&str; 9] = [
    "T.cuda.warp_sync(",
    "T.cuda.cta_sync(",
    "T.cuda.warpgroup_sync(",
    "T.ptx.fence.",
    "T.ptx.red_scalar(",
    "T.ptx.st_release(",
    "T.ptx.cp_async.bulk.wait_group(",
    "wait_until(",
    "tell(",
];

/// Weaker words in place of others.
const WEAKER: [(&str, &str); 8] = [
    ("scope=\"sys\"", "scope=\"gpu\""),
    ("scope=\"gpu\"", "scope=\"cta\""),
    (", \"sys\")", ", \"gpu\")"),
    (", \"gpu\")", ", \"cta\")"),
    ("sem=\"release\"", "sem=\"relaxed\""),
    ("st_release(", "st_relaxed("),
    ("ld_acquire(", "ld_relaxed("),
    // Launches share the memory that they have in turns.
    ("turn % T.uint32(2)", "turn % T.uint32(1)"),
];

/// Mutants that nothing shows, by their names, with the reasons.
const REDUNDANT: &[(&str, &str)] = &[(
    "scatter missing T.cuda.warp_sync() 2",
    "`rows_of`, which comes before the stores, has a barrier of the warp",
)];

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
        if trimmed.starts_with("while ") && trimmed.contains("ld_acquire(") {
            let rest = &text[start + line.len()..];
            add(
                "missing".to_string(),
                format!("{}while T.int32(0) > 0:\n{rest}", &text[..begin]),
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

/// How many launches follow one another in [`launches`].
const LAUNCHES: usize = 3;

/// Before each launch of `gather`: a kernel of the same rank writes new rows, and the tickets of rows go on.
const BEFORE_GATHER: &str = "
        next_ticket: T.let = ticket + T.cast(again, \"uint32\") * T.cast((RANKS - 1) * M + blocks * 3, \"uint32\")
        for i in T.serial(T.truncdiv(M * K + 383, 384)):
            at: T.let = i * 384 + group * 128 + warp * 32 + lane
            if block == 0 and at < M * K:
                A[me, T.truncdiv(at, K), T.truncmod(at, K)] = T.cast(again, dtype)
        T.ptx.fence.proxy_async(\"global\")
        T.cuda.grid_sync()
        T.cuda.warp_sync()";

/// The kernels of a file, each of which does what launches of it do one after another: blocks of a rank wait for one another in between,
/// as kernels of a stream do, and no rank waits for another one.
fn launches(text: &str) -> String {
    let mut out = String::new();
    let (mut function, mut within) = ("", false);
    let end = |out: &mut String, within: &mut bool| {
        if std::mem::take(within) {
            *out += "        T.cuda.grid_sync()\n        T.cuda.warp_sync()\n\n";
        }
    };
    for line in text.lines() {
        if !line.is_empty() && !line.starts_with([' ', ')']) {
            end(&mut out, &mut within);
        }
        if let Some(rest) = line.strip_prefix("def ") {
            function = rest.split('(').next().unwrap_or_default();
        }
        let begins = ["    tile: T.int32 = block", "    here: T.let = T.cast(turn "];
        if begins.iter().any(|begin| line.starts_with(begin)) {
            within = true;
            out += &format!(
                "    for again in T.serial({LAUNCHES}):\n        now: T.let = turn + T.cast(again, \"uint32\"){}\n",
                if function == "gather" { BEFORE_GATHER } else { "" }
            );
        }
        match within && !line.is_empty() {
            true if line.trim_start().starts_with("T.ptx.setmaxnreg(") => {
                let depth = line.len() - line.trim_start().len();
                out += &format!("    {}T.evaluate(0)\n", &line[..depth]);
            }
            true => {
                out += &format!(
                    "    {}\n",
                    renamed(&renamed(line, "turn", "now"), "ticket", "next_ticket")
                )
            }
            false => out += &format!("{line}\n"),
        }
    }
    end(&mut out, &mut within);
    out
}

/// A line with another word in place of a word.
fn renamed(line: &str, word: &str, other: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        out += before;
        out += if whole { other } else { word };
        rest = after;
    }
    out + rest
}

/// The fault of several launches without a wait of the host in between. Their values are not those of the file.
fn report_of_launches(imports: &Beside, runs: &[Run], text: &str) -> Result<Option<String>, String> {
    for (run, lowered) in lowered(imports, runs, &launches(text))? {
        for seed in 0..4 {
            let simulator = |_| Simulator::with_options(options(seed));
            let outcome = run.outcome_by(&lowered, Some(seed), 1, &simulator);
            if let (None, Err(message)) = (outcome.contents, outcome.verdict) {
                return Ok(Some(message));
            }
        }
    }
    Ok(None)
}

fn options(seed: u64) -> LaunchOptions {
    LaunchOptions {
        step_limit: Some(1 << 18),
        seed,
        ..LaunchOptions::default()
    }
}

/// The runs of a file with what is lowered for each.
fn lowered(imports: &Beside, runs: &[Run], text: &str) -> Result<Vec<(Run, IRModule)>, String> {
    let mut out = Vec::new();
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
        out.push((
            run.bound_to(authored)?,
            stages(&module, "sm_90a", &mut |_, _| Ok(()))?,
        ));
    }
    Ok(out)
}

/// The report of the first run that ends with one, or with other values than the file says.
fn report(imports: &Beside, runs: &[Run], text: &str) -> Result<Option<String>, String> {
    for (run, lowered) in lowered(imports, runs, text)? {
        for seed in 0..2 {
            let mut machine = Simulator::with_options(options(seed));
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
    let (mut reported, mut reported_by_launches) = (0, 0);
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
        assert_eq!(
            report_of_launches(&imports, &runs, &text),
            Ok(None),
            "several launches of the kernels as they are"
        );
        for mutant in mutants(&text) {
            if !mutant.name.contains(&filter) {
                continue;
            }
            let mut found = report(&imports, &runs, &mutant.text);
            if found == Ok(None) {
                found = report_of_launches(&imports, &runs, &mutant.text);
                reported_by_launches += usize::from(matches!(found, Ok(Some(_))));
            }
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
    println!(
        "{reported} reported ({reported_by_launches} by several launches), {} redundant as listed",
        silent.len()
    );
    assert!(
        failures.is_empty(),
        "{} mutants:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
