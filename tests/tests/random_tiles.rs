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
use tirx_tests::{Defines, build, number, round_trip, stages, tiles};

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

/// What forcing a variant has shown.
#[derive(Default)]
struct Forced {
    programs: usize,
    calls: usize,
    /// The plan of one of the calls.
    plan: String,
}

/// Every variant that accepts a call leaves the same memory: each is forced in turn, at all calls of a program that it accepts.
#[test]
fn every_variant_that_accepts_a_call_leaves_the_same_memory() {
    let count = number("TIRX_RANDOM_TILES", 100) / 2;
    let first = number("TIRX_RANDOM_SEED", 1);
    let (next, failures) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let found: Mutex<BTreeMap<&str, Forced>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || failures.lock().unwrap().len() > 3 {
                        break;
                    }
                    let program = tiles::generate(seed);
                    let any = if seed % 3 == 0 { "sm_100a" } else { "sm_90a" };
                    let arch = program.arch.unwrap_or(any);
                    if let Err(message) = forced_in_turn(&program, arch, &found) {
                        let failure = format!("seed {seed}: {message}\n{}", program.text);
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let (found, failures) = (found.into_inner().unwrap(), failures.into_inner().unwrap());
    for (variant, forced) in &found {
        let Forced {
            programs,
            calls,
            plan,
        } = forced;
        println!("{variant}: {calls} calls of {programs} programs, such as {plan}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let expected = ["fallback", "ragged"].iter();
    let missing: Vec<_> = expected
        .filter(|variant| !found.contains_key(**variant))
        .collect();
    assert!(
        count < 20 || missing.is_empty(),
        "no call accepts {missing:?} beside another variant"
    );
}

/// Forces each variant that the calls of a program have beside the chosen one.
fn forced_in_turn(
    program: &tiles::TileProgram,
    arch: &str,
    found: &Mutex<BTreeMap<&'static str, Forced>>,
) -> Result<(), String> {
    let mut built = build("tiles.py", &program.text, &["program"], &Defines::new())?;
    let (_, module) = built.pop().ok_or("no kernel")?;
    let context = PassContext::new(Target::cuda(arch), &Options::default());
    let chosen = explain(&module, &context);
    let others = chosen.iter().flat_map(|decision| &decision.rows);
    let others = others.filter(|(_, outcome)| *outcome != Outcome::Chosen);
    let others: BTreeSet<&str> = others.map(|(variant, _)| *variant).collect();
    for variant in others {
        let has = |decision: &&Decision| {
            let other = |(name, outcome): &(&str, Outcome)| *name == variant && *outcome != Outcome::Chosen;
            decision.call.dispatch.is_none() && decision.rows.iter().any(other)
        };
        let mut calls: Vec<Span> = chosen.iter().filter(has).map(|decision| decision.span).collect();
        // The calls that the variant declines keep the choice that they had.
        let decisions = loop {
            let decisions = explain(&forced(&module, variant, &calls), &context);
            let accepted = |decision: &Decision| decision.rows.iter().any(|(_, o)| *o == Outcome::Chosen);
            let declined: Vec<Span> = decisions
                .iter()
                .filter(|d| !accepted(d))
                .map(|d| d.span)
                .collect();
            let before = calls.len();
            calls.retain(|span| !declined.contains(span));
            if calls.len() == before {
                break decisions;
            }
        };
        if calls.is_empty() {
            continue;
        }
        let module = forced(&module, variant, &calls);
        let sources = module.sources.clone();
        let lowered = match lower(module, &mut Lowering::new(Target::cuda(arch))) {
            Ok(lowered) => lowered,
            // Another call of the program has no variant at all.
            Err(error) if reasons(&error.render(&sources)).is_some() => continue,
            Err(error) => return Err(format!("{variant}: {}", error.render(&sources))),
        };
        leaves_what_it_means(program, &lowered).map_err(|error| format!("{variant}: {error}"))?;
        let plan = decisions.iter().find(|decision| calls.contains(&decision.span));
        let plan = plan.map_or_else(String::new, |decision| {
            let partition = decision.partition.map(|[rounds, threads, vector]| {
                format!("{rounds} rounds of {threads} threads with {vector} elements each")
            });
            let lines: Vec<String> = partition.into_iter().chain(decision.lines.clone()).collect();
            format!("{}: {}", decision.call.op.name(), lines.join("; "))
        });
        let mut found = found.lock().unwrap();
        let known = found.entry(variant).or_default();
        known.programs += 1;
        known.calls += calls.len();
        known.plan = plan;
    }
    Ok(())
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
        return stages(&module, arch, &mut |_, m| round_trip(m));
    }
    let sources = module.sources.clone();
    lower(module, &mut Lowering::new(Target::cuda(arch))).map_err(|e| e.render(&sources))
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
            let context = PassContext::new(Target::cuda("sm_90a"), &Options::default());
            let found: Vec<Option<[i128; 3]>> = explain(&module, &context)
                .iter()
                .map(|decision| decision.partition)
                .collect();
            assert_eq!(found, [Some(*expected); 2], "{dtype} at scope {scope}");
        }
    }
}

/// The table of variants in the guide is that of the compiler; `UPDATE_EXPECT=1` writes it.
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
        let context = PassContext::new(Target::cuda(arch), &Options::default());
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
fn the_guide_has_the_table_of_variants() {
    const BEGIN: &str = "tests --test random_tiles variants -->\n";
    const END: &str = "<!-- end -->";
    let path = tirx_tests::root().join("docs/guide/tile-primitives.md");
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
        "| operations | variant | priority | GPUs | conditions | options | what it does | what the caller waits for |\n\
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
