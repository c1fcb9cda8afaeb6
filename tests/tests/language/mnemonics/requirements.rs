//! An instruction that a row describes, too: both descriptions name the same GPUs, those for which ptxas accepts the instruction.

use std::collections::BTreeMap;

use rayon::prelude::*;
use tirx_core::codegen::cuda::unsupported;
use tirx_core::intrin::Op;
use tirx_core::ir::{Expr, ExprKind, Gpu, IRModule, Visitor};

use super::{KNOWN, Sample, TextCall, calls, kernel};

/// Words that the row of their line writes in another way, which fewer or more GPUs have: `scale_vec`, and nothing.
const WRITTEN_OTHERWISE: [&str; 3] = ["block16", "block32", "cta_group::1"];

/// Whether a call became the operation of a row.
pub(super) fn is_row(module: &IRModule) -> bool {
    struct ByMnemonic(bool);
    impl Visitor for ByMnemonic {
        fn visit_expr(&mut self, e: &Expr) {
            self.0 |= matches!(
                e.kind,
                ExprKind::Call {
                    op: Op::PtxInstruction,
                    ..
                }
            );
            self.walk_expr(e);
        }
    }
    let mut found = ByMnemonic(false);
    for (_, func) in &module.functions {
        found.visit_stmt(&func.body);
    }
    !found.0
}

/// The GPUs about which the two descriptions of a call differ, each with the description that refuses the call.
fn contradictions(call: &TextCall) -> Vec<String> {
    let text = kernel(&[call]);
    let built = tirx_tests::build("k.py", &text, &[], &Default::default());
    let (_, module) = built.unwrap_or_else(|e| panic!("{}: {e}", call.text)).remove(0);
    if !is_row(&module) {
        return Vec::new();
    }
    let differs = |gpu: Gpu| {
        let (by_row, by_line) = (unsupported(&module, gpu), call.tokens.lacking(gpu));
        match (by_row, by_line) {
            (Ok(()), Some(_)) => Some(format!("{gpu} by the line")),
            (Err(_), None) => Some(format!("{gpu} by the row")),
            _ => None,
        }
    };
    Gpu::all()
        .filter(|gpu| gpu.number() >= 75)
        .filter_map(differs)
        .collect()
}

#[test]
fn rows_and_lines_name_the_same_gpus() {
    let (calls, _) = calls(Sample::Tokens);
    // Nothing that the toolkit of the tests does not know decides who is right about later releases.
    let compared = |call: &&TextCall| {
        call.tokens.ptx() <= KNOWN && !WRITTEN_OTHERWISE.iter().any(|word| call.tokens.has(word))
    };
    let differences: Vec<(String, String)> = calls
        .par_iter()
        .filter(compared)
        .filter_map(|call| {
            let found = contradictions(call);
            let text = format!("{}: refused for {}", call.mnemonic, found.join(", "));
            (!found.is_empty()).then(|| (call.tokens.instruction.place.clone(), text))
        })
        .collect();
    // A line's first call stands for all of them.
    let by_line: BTreeMap<String, String> = differences.into_iter().rev().collect();
    assert!(by_line.is_empty(), "{by_line:#?}");
}
