//! Which instructions does the simulator not run? `docs/reference/not-simulated.md` lists them with the reasons; `UPDATE_EXPECT=1`
//! writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use rayon::prelude::*;
use tirx_core::intrin::mnemonic::instructions;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::Program;
use tirx_tests::root;

use super::{KNOWN, Sample, TextCall, calls, gpu_of, kernel};

/// Why calls are not run: words of the mnemonic, the first that it has decides.
const REASONS: &[(&str, &str)] = &[
    ("fabric", "copies between GPUs: one is simulated"),
    (
        "multimem",
        "copies to the memory of several GPUs: one is simulated",
    ),
    ("compress", NEW),
    (
        "cvt.rs",
        "rounds by random bits, whose effect PTX does not say bit by bit",
    ),
    ("im2col", "tensors of the mode im2col"),
    ("mma.sp", "sparse matrices: the functions of TVM 0.26 are run"),
    (
        "tcgen05.mma",
        "sparse matrices, columns of zeros, buffers of operands for B",
    ),
    (
        "b6x16_p32",
        "elements of 6 and 4 bits that are unpacked on the way",
    ),
    (
        "b4x16_p64",
        "elements of 6 and 4 bits that are unpacked on the way",
    ),
    ("tcgen05", "no kernel of the public library calls it"),
];

/// Of what is newer than the toolkit of the tests.
const NEW: &str = "newer than PTX 9.0";

/// Of the rest.
const RARE: &str = "no kernel of the public library calls it";

fn reason(call: &TextCall) -> &'static str {
    if call.tokens.ptx() > KNOWN {
        return NEW;
    }
    let known = REASONS.iter().find(|(word, _)| call.mnemonic.contains(word));
    known.map_or(RARE, |(_, reason)| reason)
}

#[test]
fn what_the_simulator_does_not_run_is_listed() {
    let (calls, _) = calls(Sample::Tokens);
    // Of each line, how many calls there are, and those that are not run.
    let mut lines: BTreeMap<&str, (usize, Vec<&TextCall>)> = BTreeMap::new();
    let outcomes: Vec<_> = calls.par_iter().map(runs).collect();
    for (call, outcome) in calls.iter().zip(outcomes) {
        let line = lines.entry(&call.tokens.instruction.place).or_default();
        line.0 += 1;
        match outcome {
            Ok(true) => {}
            Ok(false) => line.1.push(call),
            Err(message) => panic!("{}: {message}", call.text),
        }
    }
    let left: Vec<_> = lines.values().filter(|(_, not)| !not.is_empty()).collect();
    let whole = left.iter().filter(|(all, not)| *all == not.len()).count();
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (all, not) in &left {
        let mut why: BTreeMap<&str, Vec<&TextCall>> = BTreeMap::new();
        for call in not {
            why.entry(reason(call)).or_default().push(call);
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
         instruction compiles, and `cargo tirx sim` names the instruction. This page shows one call of each other line. If only some calls of a line \
         are missing, brackets give their number among the sampled calls.\n",
        instructions().len(),
        instructions().len() - left.len(),
        left.len() - whole,
    );
    for (why, mnemonics) in rows {
        let mut title = why.to_string();
        title[..1].make_ascii_uppercase();
        write!(page, "\n## {title}\n\n").unwrap();
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

/// Whether the simulator runs a call.
fn runs(call: &TextCall) -> Result<bool, String> {
    let text = kernel(&[call]);
    let (_, module) = tirx_tests::build("k.py", &text, &[], &Default::default())?.remove(0);
    let mut lowering = Lowering::new(Target::named(&gpu_of(call)).expect("a known GPU"));
    lowering.verify = false;
    let lowered = lower(module, &mut lowering).map_err(|e| format!("{e:?}"))?;
    let Err(diagnostics) = Program::compile(&lowered, "k_kernel") else {
        return Ok(true);
    };
    let message = diagnostics.0.first().map_or("", |d| &*d.message);
    match message.starts_with("the simulator ") {
        true => Ok(false),
        false => Err(message.to_string()),
    }
}
