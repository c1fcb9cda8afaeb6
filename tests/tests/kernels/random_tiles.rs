//! Random programs of tile primitives compute what the primitives mean.
//!
//! `TIRX_RANDOM_TILES=2000` sets how many, `TIRX_RANDOM_SEED=1` the first seed. With `TIRX_TVM_PYTHON=path`, a Python
//! with TVM 0.26 must decline what is declined here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tirx_core::ir::{IRModule, Mutator, Stmt, StmtKind, TileCall};
use tirx_core::source::Span;
use tirx_core::transform::lower_tirx::{Decision, Outcome, VariantInfo, explain, variants};
use tirx_core::transform::{Lowering, Options, PassContext, Target, lower};
use tirx_tests::differential::tvm;
use tirx_tests::machine::Simulator;
use tirx_tests::{Defines, RoundTrips, build, number, stages, tiles};

#[test]
fn random_tile_programs_compute_what_they_mean() {
    let count = number("TIRX_RANDOM_TILES", 100);
    let first = number("TIRX_RANDOM_SEED", 1);
    let (next, ran) = (AtomicU64::new(first), AtomicU64::new(0));
    let (declined, failures) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || failures.lock().unwrap().len() > 3 {
                        break;
                    }
                    let program = tiles::generate(seed);
                    // On sm_100 sums and products of float32 in registers are made by pairs.
                    let any = if seed % 3 == 0 { "sm_100a" } else { "sm_90a" };
                    let arch = program.arch.unwrap_or(any);
                    match run(&program, arch, seed % 10 == 0) {
                        Ok(()) => {
                            ran.fetch_add(1, Ordering::Relaxed);
                        }
                        // Programs for engines and tensor cores are such that a variant takes each call.
                        Err(message) => match reasons(&message).filter(|_| program.arch.is_none()) {
                            Some(reasons) => {
                                declined.lock().unwrap().insert(seed, (reasons, program.text));
                            }
                            None => {
                                let failure = format!("seed {seed}: {message}\n{}", program.text);
                                failures.lock().unwrap().push(failure);
                            }
                        },
                    }
                }
            });
        }
    });
    let (ran, declined, failures) = (
        ran.into_inner(),
        declined.into_inner().unwrap(),
        failures.into_inner().unwrap(),
    );
    println!(
        "{ran} programs ran, {} were declined with reasons",
        declined.len()
    );
    let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
    for (reasons, _) in declined.values() {
        *by_reason.entry(reasons).or_default() += 1;
    }
    by_reason
        .iter()
        .for_each(|(reasons, count)| println!("{count}: {reasons}"));
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(ran * 10 > count * 6, "only {ran} of {count} programs ran");
}

/// What is known of a variant of an operation.
#[derive(Clone, Default)]
struct Known {
    /// Programs that ran with it, chosen or forced.
    programs: usize,
    /// Programs among them in which a call takes it and takes another variant as well.
    beside: usize,
    /// The plan of one of the calls.
    plan: String,
}

/// An operation and a variant of it.
type Pair = (&'static str, &'static str);

/// What is known of all of them, by how many programs each is wanted to be known, and what cannot be forced.
struct Coverage {
    wanted: usize,
    known: Mutex<BTreeMap<Pair, Known>>,
    /// Variants that only `dispatch=` selects.
    only_forced: Vec<Pair>,
}

/// The variants that no call takes which takes another one too, and why.
const ALONE: &[(&str, &str)] = &[
    ("smem", "the one for operands in shared memory"),
    ("shared", "the one for regions in shared memory"),
    ("steps", "the one for operations that are made of others"),
    (
        "ldgsts",
        "its groups are awaited by cp.async.wait_group; the other copies signal an mbarrier",
    ),
    ("dsmem", "the one with remote_cta_id"),
    ("tcgen05_ldst", "the one between registers and tensor memory"),
    ("tcgen05_cp", "the one from shared to tensor memory"),
    ("warp_xor_swizzle", "the one of permute_layout"),
    ("mma.m16n8k*", "the one of gemm"),
    ("wgmma", "the one of gemm_async on sm_90a"),
    ("tcgen05", "the one of gemm_async on sm_100a"),
];

fn alone(variant: &str) -> bool {
    ALONE.iter().any(|(name, _)| *name == variant)
}

impl Coverage {
    fn new(wanted: usize) -> Coverage {
        let all = variants();
        let only_forced = all.iter().filter(|v| v.only_forced);
        Coverage {
            wanted,
            only_forced: only_forced.map(|v| (v.op, v.name)).collect(),
            known: Mutex::new(all.iter().map(|v| ((v.op, v.name), Known::default())).collect()),
        }
    }

    fn known(&self) -> BTreeMap<Pair, Known> {
        self.known.lock().unwrap().clone()
    }

    /// Whether too few programs have run with a variant, or with it beside another one.
    fn lacks(&self, pair: Pair) -> bool {
        let known = self.known.lock().unwrap();
        known[&pair].programs < self.wanted || !alone(pair.1) && beside(&known, pair.1) < self.wanted
    }

    fn complete(&self) -> bool {
        !self.known().keys().any(|pair| self.lacks(*pair))
    }

    /// Whether a program calls an operation of which a variant lacks programs.
    fn may_gain(&self, program: &str) -> bool {
        let known = self.known();
        let lacking = known.keys().filter(|pair| self.lacks(**pair));
        let ops: BTreeSet<&str> = lacking.map(|(op, _)| *op).collect();
        ops.iter().any(|op| program.contains(&format!(".{op}(")))
    }

    /// A program has run with these plans.
    fn ran(&self, plans: &BTreeMap<Pair, &Decision>, beside: &BTreeSet<Pair>) {
        let mut known = self.known.lock().unwrap();
        for (pair, decision) in plans {
            let known = known.entry(*pair).or_default();
            known.programs += 1;
            known.beside += usize::from(beside.contains(pair));
            known.plan = plan(decision);
        }
    }
}

/// How many programs have a call that takes a variant and another one.
fn beside(known: &BTreeMap<Pair, Known>, variant: &str) -> usize {
    let of = known.iter().filter(|((_, name), _)| *name == variant);
    of.map(|(_, known)| known.beside).sum()
}

/// Every variant that accepts a call leaves the same memory. Programs are drawn until each variant of each operation has run,
/// chosen or forced at all calls of a program that it accepts; a program that shows no more of them is not run.
#[test]
fn every_variant_that_accepts_a_call_leaves_the_same_memory() {
    let coverage = Coverage::new(number("TIRX_RANDOM_TILES", 100).div_ceil(100) as usize);
    // So many are drawn at most in search of them.
    let most = 3000 * coverage.wanted as u64;
    let first = number("TIRX_RANDOM_SEED", 1);
    let (next, failures) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !coverage.complete() && failures.lock().unwrap().len() <= 3 {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + most {
                        break;
                    }
                    let program = tiles::generate_evenly(seed);
                    if !coverage.may_gain(&program.text) {
                        continue;
                    }
                    let any = if seed % 3 == 0 { "sm_100a" } else { "sm_90a" };
                    let arch = program.arch.unwrap_or(any);
                    if let Err(message) = forced_in_turn(&program, arch, &coverage) {
                        let failure = format!("seed {seed}: {message}\n{}", program.text);
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let (drawn, failures) = (next.into_inner() - first, failures.into_inner().unwrap());
    println!("{drawn} programs were drawn");
    let known = coverage.known();
    for ((op, variant), known) in &known {
        let Known {
            programs,
            beside,
            plan,
        } = known;
        println!(
            "{op}, {variant}: {programs} programs, {beside} of them beside another variant, such as {plan}"
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let never = known.iter().filter(|(_, known)| known.programs == 0);
    let never: Vec<&Pair> = never.map(|(pair, _)| pair).collect();
    assert!(never.is_empty(), "no program takes {never:?}");
    let names: BTreeSet<&str> = known.keys().map(|(_, variant)| *variant).collect();
    let wrong = |name: &&&str| alone(name) == (beside(&known, name) > 0);
    let wrong: Vec<&&str> = names.iter().filter(wrong).collect();
    assert!(
        wrong.is_empty(),
        "a call takes {wrong:?} and another variant, or none does: see ALONE"
    );
}

/// Runs a program with each variant forced in turn that its calls accept beside the chosen one, and as it is, where this shows
/// variants of which too few programs are known.
fn forced_in_turn(program: &tiles::TileProgram, arch: &str, coverage: &Coverage) -> Result<(), String> {
    let mut built = build("tiles.py", &program.text, &["program"], &Defines::new())?;
    let (_, module) = built.pop().ok_or("no kernel")?;
    let context = PassContext::new(Target::named(arch).expect("a known GPU"), &Options::default());
    let chosen = explain(&module, &context);
    let others = |decision: &Decision| -> Vec<&'static str> {
        let op = decision.call.op.name();
        let rows = decision.rows.iter();
        let later = rows.filter(|(_, outcome)| *outcome == Outcome::NotAsked);
        let only_forced = coverage.only_forced.iter().filter(|pair| pair.0 == op);
        let all = later.map(|(name, _)| *name).chain(only_forced.map(|pair| pair.1));
        all.filter(|_| decision.call.dispatch.is_none()).collect()
    };
    // The choices of calls that take another variant too.
    let mut with_others: BTreeSet<Pair> = BTreeSet::new();
    let candidates: BTreeSet<&str> = chosen
        .iter()
        .flat_map(|decision| {
            let op = decision.call.op.name();
            let choice = taken(decision).is_some_and(|name| coverage.lacks((op, name)));
            let others = others(decision).into_iter();
            others.filter(move |name| choice || coverage.lacks((op, name)))
        })
        .collect();
    for variant in candidates {
        let has = |decision: &&Decision| others(decision).contains(&variant);
        let mut calls: Vec<Span> = chosen.iter().filter(has).map(|decision| decision.span).collect();
        // The calls that the variant declines keep the choice that they had.
        let decisions = loop {
            let decisions = explain(&forced(&module, variant, &calls), &context);
            let declined = decisions.iter().filter(|decision| taken(decision).is_none());
            let declined: Vec<Span> = declined.map(|decision| decision.span).collect();
            let before = calls.len();
            calls.retain(|span| !declined.contains(span));
            if calls.len() == before {
                break decisions;
            }
        };
        let here = |decision: &&Decision| calls.contains(&decision.span);
        let plans: BTreeMap<Pair, &Decision> = decisions
            .iter()
            .filter(here)
            .map(|decision| ((decision.call.op.name(), variant), decision))
            .collect();
        let choices = chosen.iter().filter(here);
        let choices = choices.filter_map(|decision| Some((decision.call.op.name(), taken(decision)?)));
        let choices: BTreeSet<Pair> = choices.collect();
        if !plans.keys().chain(&choices).any(|pair| coverage.lacks(*pair)) {
            continue;
        }
        if runs(program, forced(&module, variant, &calls), arch).map_err(|e| format!("{variant}: {e}"))? {
            coverage.ran(&plans, &plans.keys().copied().collect());
            with_others.extend(choices);
        }
    }
    let plans: BTreeMap<Pair, &Decision> = chosen
        .iter()
        .filter_map(|decision| Some(((decision.call.op.name(), taken(decision)?), decision)))
        .collect();
    if plans.keys().any(|pair| coverage.lacks(*pair)) && runs(program, module.clone(), arch)? {
        coverage.ran(&plans, &with_others);
    }
    Ok(())
}

/// The variant that a call takes.
fn taken(decision: &Decision) -> Option<&'static str> {
    let mut rows = decision.rows.iter();
    let row = rows.find(|(_, outcome)| *outcome == Outcome::Chosen)?;
    Some(row.0)
}

/// The plan of a call, with its cost.
fn plan(decision: &Decision) -> String {
    let partition = decision.partition.map(|[rounds, threads, vector]| {
        format!("{rounds} rounds of {threads} threads with {vector} elements each")
    });
    let lines: Vec<String> = partition.into_iter().chain(decision.lines.clone()).collect();
    lines.join("; ")
}

/// Runs a program and compares the memory that it leaves; `false` where a call has no variant at all.
fn runs(program: &tiles::TileProgram, module: IRModule, arch: &str) -> Result<bool, String> {
    let sources = module.sources.clone();
    match lower(
        module,
        &mut Lowering::new(Target::named(arch).expect("a known GPU")),
    ) {
        Ok(lowered) => leaves_what_it_means(program, &lowered).map(|()| true),
        Err(error) => {
            let error = error.render(&sources);
            reasons(&error).map(|_| false).ok_or(error)
        }
    }
}

/// A module with `dispatch=variant` at the calls at these places.
fn forced(module: &IRModule, variant: &str, calls: &[Span]) -> IRModule {
    struct Force<'a>(&'a str, &'a [Span]);
    impl Mutator for Force<'_> {
        fn stmt(&mut self, stmt: &Stmt) -> Stmt {
            match &stmt.kind {
                StmtKind::Tile(call) if self.1.contains(&stmt.span) => {
                    let dispatch = Some(self.0.into());
                    let call = TileCall {
                        dispatch,
                        ..(**call).clone()
                    };
                    Stmt::new(StmtKind::Tile(Box::new(call)), stmt.span)
                }
                _ => self.walk_stmt(stmt),
            }
        }
    }
    let mut module = module.clone();
    for (_, function) in &mut module.functions {
        function.body = Force(variant, calls).stmt(&function.body);
    }
    module
}

/// Every tile primitive occurs in random programs.
#[test]
fn random_programs_call_every_primitive() {
    let texts: Vec<String> = (1..600).map(|seed| tiles::generate(seed).text).collect();
    let called = |op: &str| {
        let calls = [".", ".cta.", ".warp.", ".wg."].map(|scope| format!("Tx{scope}{op}("));
        texts
            .iter()
            .any(|text| calls.iter().any(|call| text.contains(call)))
    };
    let ops: BTreeSet<&str> = variants().into_iter().map(|variant| variant.op).collect();
    let missing: Vec<&str> = ops.into_iter().filter(|op| !called(op)).collect();
    assert!(missing.is_empty(), "no random program calls {missing:?}");
}

/// Primitives that TVM accepts and lowers wrongly: a part of our error, and of its IR.
const WRONG_IN_TVM: &[(&str, &str)] = &[
    // Rows of some threads' registers, which matrix instructions move as if they were those of all threads.
    ("begins in the middle of the axis", "T.ptx.ldmatrix("),
    ("begins in the middle of the axis", "T.ptx.stmatrix("),
];

/// TVM also rejects what is rejected here: the same programs, without running them.
#[test]
fn tvm_declines_what_is_declined_here() {
    let Some(python) = std::env::var_os("TIRX_TVM_PYTHON") else {
        return;
    };
    let count = number("TIRX_RANDOM_TILES", 100);
    let first = number("TIRX_RANDOM_SEED", 1);
    let mut declined = BTreeMap::new();
    for seed in first..first + count {
        let program = tiles::generate(seed);
        if program.arch.is_some() {
            continue;
        }
        if let Some(reasons) = lowered(&program, "sm_90a", false).err().and_then(|e| reasons(&e)) {
            // TVM's script requires this name.
            declined.insert(seed, (reasons, program.text.replace("def program(", "def k(")));
        }
    }
    let texts: Vec<(u64, String)> = declined
        .iter()
        .map(|(seed, (_, text))| (*seed, text.clone()))
        .collect();
    let scratch = tempfile::tempdir().unwrap();
    let taken = tvm::taken(python.as_ref(), scratch.path(), &texts).unwrap();
    let known = |seed: &u64, lowered: &str| {
        let reasons = &declined[seed].0;
        WRONG_IN_TVM
            .iter()
            .any(|(reason, said)| reasons.contains(reason) && lowered.contains(said))
    };
    let (wrong, taken): (Vec<_>, Vec<_>) = taken.iter().partition(|(seed, lowered)| known(seed, lowered));
    println!(
        "of {count} programs {} are declined; TVM takes {}, and {} that it makes something else of",
        texts.len(),
        taken.len(),
        wrong.len()
    );
    let shown: Vec<String> = taken
        .iter()
        .map(|(seed, _)| format!("seed {seed}: {}\n{}", declined[seed].0, declined[seed].1))
        .collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
}

/// The reasons why each variant declined, without numbers; `None` where the message is about something else.
fn reasons(message: &str) -> Option<String> {
    let (_, first) = message.split_once("no dispatch for tile primitive ")?;
    let call = first.split(':').next()?;
    let notes: Vec<&str> = message
        .lines()
        .filter_map(|l| l.split_once("note: "))
        .map(|(_, reason)| reason)
        .collect();
    if notes.is_empty() {
        return None;
    }
    let text = format!("{call}: {}", notes.join("; "));
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if plain.ends_with('N') => {}
            '0'..='9' => plain.push('N'),
            c => plain.push(c),
        }
    }
    Some(plain)
}

/// A program's module, lowered; with `thorough`, it is also printed and parsed back after every pass, and verified.
fn lowered(program: &tiles::TileProgram, arch: &str, thorough: bool) -> Result<IRModule, String> {
    let mut built = build("tiles.py", &program.text, &["program"], &Defines::new())?;
    let (_, module) = built.pop().ok_or("no kernel")?;
    if thorough {
        let mut trips = RoundTrips::default();
        return stages(&module, arch, &mut |_, m| trips.check(m));
    }
    let sources = module.sources.clone();
    lower(
        module,
        &mut Lowering::new(Target::named(arch).expect("a known GPU")),
    )
    .map_err(|e| e.render(&sources))
}

fn run(program: &tiles::TileProgram, arch: &str, thorough: bool) -> Result<(), String> {
    leaves_what_it_means(program, &lowered(program, arch, thorough)?)
}

/// Runs a lowered program on the simulator and compares the memory that it leaves.
fn leaves_what_it_means(program: &tiles::TileProgram, lowered: &IRModule) -> Result<(), String> {
    program.check(&mut Simulator::with_step_limit(20_000_000), lowered)
}

/// The scope gives the threads, the dtype the widest vector: `[rounds, threads, elements of a vector]` of a tile of 32 by 32
/// elements, for copies and for elementwise operations.
#[test]
fn the_partition_follows_scope_and_dtype() {
    const PARTITIONS: &[(&str, [[i128; 3]; 4])] = &[
        ("int8", [[64, 1, 16], [2, 32, 16], [1, 128, 8], [1, 256, 4]]),
        ("float16", [[128, 1, 8], [4, 32, 8], [1, 128, 8], [1, 256, 4]]),
        ("bfloat16", [[128, 1, 8], [4, 32, 8], [1, 128, 8], [1, 256, 4]]),
        ("float32", [[256, 1, 4], [8, 32, 4], [2, 128, 4], [1, 256, 4]]),
        ("int32", [[256, 1, 4], [8, 32, 4], [2, 128, 4], [1, 256, 4]]),
        ("float64", [[512, 1, 2], [16, 32, 2], [4, 128, 2], [2, 256, 2]]),
    ];
    for (dtype, partitions) in PARTITIONS {
        for (scope, expected) in ["thread", "warp", "wg", "cta"].iter().zip(partitions) {
            let text = format!(
                "from tvm.script import tirx as T\nfrom tvm.script.tirx import tile as Tx\n\n\n@T.prim_func\n\
                 def program(A: T.Buffer((32, 32), \"{dtype}\")):\n    T.device_entry(); T.cta_id([1]); T.thread_id([256])\n    \
                 s = T.alloc_buffer((32, 32), \"{dtype}\", scope=\"shared\")\n    \
                 Tx.{scope}.copy(s, A)\n    Tx.{scope}.add(s, s, s)\n"
            );
            let mut built = build("tiles.py", &text, &["program"], &Defines::new()).unwrap();
            let (_, module) = built.pop().expect("a kernel");
            let context = PassContext::new(Target::SM_90A, &Options::default());
            let found: Vec<Option<[i128; 3]>> = explain(&module, &context)
                .iter()
                .map(|decision| decision.partition)
                .collect();
            assert_eq!(found, [Some(*expected); 2], "{dtype} at scope {scope}");
        }
    }
}

/// The table of variants in the book is that of the compiler; `UPDATE_EXPECT=1` writes it.
#[test]
fn a_kernel_that_asks_for_its_target_is_explained_for_it() {
    let path = tirx_tests::root().join("tests/kernels/tiles/tile_target_choices.py");
    let module = tirx_tests::Case::read(&path)
        .unwrap()
        .build_one("product")
        .unwrap();
    for (arch, wanted) in [
        ("sm_90a", ["gmem_smem", "gmem_smem", "wgmma", "reg"].as_slice()),
        (
            "sm_100a",
            &["gmem_smem", "gmem_smem", "tcgen05", "tcgen05_ldst", "reg"],
        ),
    ] {
        let context = PassContext::new(Target::named(arch).expect("a known GPU"), &Options::default());
        let chosen: Vec<String> = explain(&module, &context)
            .iter()
            .map(|decision| {
                let mut rows = decision.rows.iter();
                let chosen = rows.find(|(_, outcome)| *outcome == Outcome::Chosen);
                chosen.map_or_else(|| "none".to_string(), |(name, _)| name.to_string())
            })
            .collect();
        assert_eq!(chosen, wanted, "{arch}");
    }
}

#[test]
fn the_book_has_the_table_of_variants() {
    const BEGIN: &str = "tests --test kernels variants -->\n";
    const END: &str = "<!-- end -->";
    let path = tirx_tests::root().join("docs/book/src/tile-primitives.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark");
    let (found, after) = rest.split_once(END).expect("the page has the end");
    let expected = table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, expected, "UPDATE_EXPECT=1 writes the table anew");
}

/// A row a variant, with all its operations.
fn table() -> String {
    let mut rows: Vec<(VariantInfo, Vec<String>)> = Vec::new();
    for variant in variants() {
        let same = rows.iter_mut().find(|(known, _)| {
            known.name == variant.name && known.doc == variant.doc && known.predicates == variant.predicates
        });
        let op = format!("`{}`", variant.op);
        match same {
            Some((_, ops)) => ops.push(op),
            None => rows.push((variant, vec![op])),
        }
    }
    let mut table = String::from(
        "| operations | variant | priority | GPUs | conditions | options | effect | wait of the caller |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (variant, ops) in rows {
        let forced = if variant.only_forced {
            "only by `dispatch=`; "
        } else {
            ""
        };
        let options: Vec<String> = variant.options.iter().map(|o| format!("`{}`", o.name)).collect();
        table += &format!(
            "| {} | `{}` | {} | {} | {forced}{} | {} | {} | {} |\n",
            ops.join(", "),
            variant.name,
            variant.priority,
            variant.arch,
            variant.predicates.join("; "),
            options.join(", "),
            variant.doc,
            variant.completion,
        );
    }
    table
}
