//! Which instructions does the simulator not run? `docs/reference/not-simulated.md` lists them with the reasons; `UPDATE_EXPECT=1`
//! writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use rayon::prelude::*;
use tirx_core::intrin::mnemonic::{Meaning, instructions};
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Program, simulates};
use tirx_tests::root;

use super::requirements::is_row;
use super::{KNOWN, Sample, TextCall, calls, gpu_of, kernel};

/// The result of compiling a call for the simulator.
enum Outcome {
    /// The operation of a row, which the simulator runs.
    Row,
    /// An instruction of its own, which it runs.
    Runs,
    /// Not run: the reason, and what to write in place of the call. `by_mnemonic` if no row is the same operation.
    Not { by_mnemonic: bool, why: String },
}

/// Each arm of the simulator's match says the truth about the lines of its meaning.
#[test]
fn each_meaning_is_simulated_as_its_arm_says() {
    let (calls, _) = calls(Sample::Tokens);
    let outcomes: Vec<_> = calls.par_iter().map(outcome).collect();
    for meaning in Meaning::ALL {
        // How many of the calls that no row expresses are run, and are not run.
        let (mut run, mut not_run) = (0, 0);
        for (call, outcome) in calls.iter().zip(&outcomes) {
            match outcome {
                _ if call.tokens.instruction.meaning != *meaning => {}
                Ok(Outcome::Runs) => run += 1,
                Ok(Outcome::Not {
                    by_mnemonic: true, ..
                }) => not_run += 1,
                _ => {}
            }
        }
        let is_as_the_arm_says = match simulates(*meaning) {
            Some(true) => run > 0,
            Some(false) => run == 0 && not_run > 0,
            None => run + not_run == 0,
        };
        let word = meaning.word();
        assert!(
            is_as_the_arm_says,
            "{word}: {run} calls are run, {not_run} are not"
        );
    }
}

#[test]
fn a_refusal_names_the_line_the_reason_and_what_to_do() {
    let text = "@T.prim_func\ndef k(B: T.Buffer((32,), \"uint32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
                tx = T.thread_id([32])\n    T.ptx[\"getctarank.u32\"](B[tx], B[0])\n";
    let (_, module) = tirx_tests::build("k.py", text, &[], &Default::default())
        .unwrap()
        .remove(0);
    let mut lowering = Lowering::new(Target::named("sm_90a").expect("a known GPU"));
    let lowered = lower(module, &mut lowering).unwrap_or_else(|e| panic!("{e:?}"));
    let refused = Program::compile(&lowered, "k_kernel")
        .unwrap_err()
        .render(&lowered.sources);
    for part in [
        "k.py:6:",
        "the simulator does not run getctarank.u32: addresses in the simulator do not tell",
        "use pointers of the buffers; the kernel compiles for a GPU as it is",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn what_the_simulator_does_not_run_is_listed() {
    let (calls, _) = calls(Sample::Tokens);
    // For each line: the number of its calls, and the calls that are not run, with the reason.
    type Refused<'c> = Vec<(&'c TextCall, &'c str)>;
    let mut lines: BTreeMap<&str, (usize, Refused)> = BTreeMap::new();
    let outcomes: Vec<_> = calls.par_iter().map(outcome).collect();
    for (call, outcome) in calls.iter().zip(&outcomes) {
        let line = lines.entry(&call.tokens.instruction.place).or_default();
        line.0 += 1;
        match outcome {
            Ok(Outcome::Row | Outcome::Runs) => {}
            Ok(Outcome::Not { why, .. }) => {
                let is_called_new = why.contains("newer than PTX 9.0");
                assert!(
                    !is_called_new || call.tokens.ptx() > KNOWN,
                    "{}: {why}",
                    call.text
                );
                line.1.push((call, why));
            }
            Err(message) => panic!("{}: {message}", call.text),
        }
    }
    let left: Vec<_> = lines.values().filter(|(_, not)| !not.is_empty()).collect();
    let whole = left.iter().filter(|(all, not)| *all == not.len()).count();
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (all, not) in &left {
        let mut why: BTreeMap<&str, Vec<&TextCall>> = BTreeMap::new();
        for (call, reason) in not {
            why.entry(reason).or_default().push(call);
        }
        for (why, not) in why {
            let part = match not.len() == *all {
                true => String::new(),
                false => format!(" ({} of {all})", not.len()),
            };
            let row = rows.entry(why).or_default();
            row.push(format!("`{}`{part}", not[0].mnemonic));
        }
    }
    let mut page = format!(
        "# Instructions by mnemonic that the simulator does not run\n\n\
         <!-- `tests/tests/language/mnemonics/simulated.rs` writes this page. -->\n\n\
         `T.ptx` has {} lines of syntax. The simulator runs all calls of {} of them, and some of {} more. A kernel with another \
         instruction compiles, and `cargo tirx sim` names the instruction, the reason and what to write in its place. This page shows \
         one call of each other line by these reasons. If only some calls of a line are missing, brackets give their number among the \
         sampled calls.\n",
        instructions().len(),
        instructions().len() - left.len(),
        left.len() - whole,
    );
    for (why, mnemonics) in rows {
        writeln!(page, "\n## {why}\n").unwrap();
        for mnemonic in mnemonics {
            writeln!(page, "- {mnemonic}").unwrap();
        }
    }
    let path = root().join("docs/reference/not-simulated.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        page,
        std::fs::read_to_string(&path).unwrap_or_default(),
        "UPDATE_EXPECT=1 writes the page"
    );
}

/// Compiles a call for the simulator.
fn outcome(call: &TextCall) -> Result<Outcome, String> {
    let text = kernel(&[call]);
    let (_, module) = tirx_tests::build("k.py", &text, &[], &Default::default())?.remove(0);
    let by_mnemonic = !is_row(&module);
    let mut lowering = Lowering::new(Target::named(&gpu_of(call)).expect("a known GPU"));
    lowering.verify = false;
    let lowered = lower(module, &mut lowering).map_err(|e| format!("{e:?}"))?;
    let Err(diagnostics) = Program::compile(&lowered, "k_kernel") else {
        return Ok(match by_mnemonic {
            true => Outcome::Runs,
            false => Outcome::Row,
        });
    };
    let refusal = diagnostics.0.first().expect("an error has a message");
    let Some(what) = refusal.message.strip_prefix("the simulator ") else {
        return Err(refusal.message.clone());
    };
    let named = format!("does not run {}: ", call.mnemonic);
    Ok(Outcome::Not {
        by_mnemonic,
        why: section(
            what.strip_prefix(&named).unwrap_or(&refusal.message),
            refusal.help.as_deref(),
        ),
    })
}

/// The head of a section of the page: the reason, and what to write in place of the instruction.
fn section(reason: &str, help: Option<&str>) -> String {
    let capital = |text: &str| text[..1].to_uppercase() + &text[1..];
    let help = help.unwrap_or("").split(';').next().unwrap_or("");
    match help {
        "" => capital(reason),
        help => format!("{}\n\n{}:", capital(reason), capital(help)),
    }
}
