//! The shadows of `sim --accuracy` are the results of the same computation in double precision, for whole kernels: tensor copies, tensor
//! memory, products of every kind, attention. Each case has its reference in plain Rust.
//!
//! `TIRX_FILTER=name` runs those whose name holds the text.

use std::collections::BTreeMap;

use tirx_tests::asynchronous::{CASES, Case};
use tirx_tests::machine::{Simulator, run};
use tirx_tests::only;

/// How far shadows may be from the reference, relative to the largest element of a row: kernels of attention multiply scores by a
/// constant that is rounded to float32.
fn tolerance(case: &Case) -> f64 {
    match case.entry.ends_with("attention") {
        true => 2e-6,
        false => 1e-12,
    }
}

fn check(case: &Case) -> Result<(), String> {
    let text = only(case.text, case.entry).ok_or("no kernel")?;
    let prepared = case.prepare_for_rounding(&text)?;
    let mut machine = Simulator::default().with_accuracy();
    let contents = run(&mut machine, &prepared.module, &prepared.arguments)?;
    let (found, rows) = case.result(&prepared, &contents);
    let bytes = contents.last().map_or(0, Vec::len) / found.len().max(1);
    let shadows: BTreeMap<usize, f64> = (machine.shadows(case.tensors.len() - 1))
        .map(|(_, byte, value)| (byte as usize / bytes, f64::from_bits(value.shadow)))
        .collect();
    if shadows.is_empty() {
        return Err("no element has a shadow".into());
    }
    let cols = found.len() / rows;
    let mut rounded = 0.0f64;
    for row in (0..rows).step_by((rows / 32).max(1)).chain([rows - 1]) {
        let exact = case.exact_row(&prepared, row);
        let largest = exact.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        for (col, exact) in exact.iter().enumerate() {
            let at = row * cols + col;
            let value = f64::from(found[at]);
            let shadow = shadows.get(&at).copied().unwrap_or(value);
            if (shadow - exact).abs() > tolerance(case) * largest {
                return Err(format!(
                    "({row}, {col}): {shadow:e} is the shadow of {value:e}, which is exactly {exact:e}"
                ));
            }
            rounded = rounded.max((value - exact).abs() / largest);
        }
    }
    // A product of whole numbers, and of elements of four bits, is exact in any case.
    let is_exact = ["scale_tma", "gemm_nvfp4"].contains(&case.entry);
    match rounded > 1e-9 || is_exact {
        true => Ok(()),
        false => Err("nothing has been rounded".into()),
    }
}

#[test]
fn shadows_of_kernels_are_results_in_double_precision() {
    let mut failures = Vec::new();
    let wanted =
        |case: &&Case| std::env::var("TIRX_FILTER").map_or(true, |filter| case.entry.contains(&filter));
    for case in CASES.iter().filter(wanted) {
        if let Err(message) = check(case) {
            failures.push(format!("{}: {message}", case.entry));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
