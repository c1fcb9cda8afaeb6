//! The shadows of `sim --accuracy` are the results of the same computation in double precision, for whole kernels: tensor copies, tensor
//! memory, products of every kind, attention. Each case has its reference in plain Rust.
//!
//! `TIRX_FILTER=name` runs those whose name holds the text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use tirx_core::ir::{DType, bf16, f16};
use tirx_tests::asynchronous::{CASES, Case};
use tirx_tests::files::filetests;
use tirx_tests::machine::{Simulator, run};
use tirx_tests::{only, stages};

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

/// Elements of float16, bfloat16, float32 and float64.
fn numbers(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    let is_float = dtype.is_floating() && dtype.lanes == 1;
    let narrow = |b: &[u8]| match dtype.is_bfloat16() {
        true => bf16::from_le_bytes([b[0], b[1]]).to_f64(),
        false => f16::from_le_bytes([b[0], b[1]]).to_f64(),
    };
    let number: &dyn Fn(&[u8]) -> f64 = match dtype.bits {
        16 => &narrow,
        32 => &|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into(),
        64 => &|b| f64::from_le_bytes(b.try_into().unwrap_or_default()),
        _ => return None,
    };
    let size = usize::from(dtype.bits / 8);
    is_float.then(|| bytes.chunks_exact(size).map(number).collect())
}

/// The unit of an expected value, which the file rounds to the dtype.
fn unit(dtype: DType) -> f64 {
    match (dtype.bits, dtype.is_bfloat16()) {
        (16, true) => 2.0f64.powi(-8),
        (16, false) => 2.0f64.powi(-11),
        (32, _) => 2.0f64.powi(-24),
        _ => 1e-13,
    }
}

/// Runs a file. Returns the number of elements with a shadow, and a message for each element whose shadow differs from the value that the file
/// expects. An element without a shadow must be exact.
fn differences(path: &Path) -> Result<(usize, Vec<String>), String> {
    let case = tirx_tests::Case::read(path)?;
    let (mut shaded, mut found) = (0, Vec::new());
    for (name, module) in case.build_each()? {
        let Ok(module) = module else { continue };
        for run in case.runs_of(&name, &module)? {
            let arch = run.archs(&case.arch).next().unwrap_or(&case.arch).to_string();
            if run.faults() {
                continue;
            }
            let lowered = stages(&module, &arch, &mut |_, _| Ok(()))?;
            let simulator = |_| Simulator::default().with_accuracy();
            let outcome = run.outcome_by(&lowered, Some(0), 1, &simulator);
            for (number, (tensor_name, tensor)) in run.tensors().enumerate() {
                let after = tensor
                    .after
                    .as_ref()
                    .and_then(|after| numbers(tensor.dtype, after));
                let Some(expected) = after else { continue };
                let size = u64::from(tensor.dtype.bits / 8);
                let own = tensor.before.len() / run.ranks().unwrap_or(1) as usize;
                let mut values = (outcome.contents.as_ref())
                    .and_then(|contents| numbers(tensor.dtype, contents.get(number)?))
                    .unwrap_or_default();
                for (rank, byte, value) in outcome.machine.shadows(number) {
                    let at = ((rank * own) as u64 / size + byte / size) as usize;
                    if u64::from(value.bits) == size * 8 && byte % size == 0 && at < values.len() {
                        values[at] = f64::from_bits(value.shadow);
                        shaded += 1;
                    }
                }
                let mut largest: Option<(f64, String)> = None;
                for (at, (shadow, exact)) in values.iter().zip(&expected).enumerate() {
                    let error = (shadow - exact).abs() / exact.abs().max(1e-30);
                    let most = largest
                        .as_ref()
                        .map_or(2.0 * unit(tensor.dtype), |(most, _)| *most);
                    if error > most && exact.is_finite() {
                        let text =
                            format!("{name}: element {at} of {tensor_name}: {shadow:e}, expected {exact:e}");
                        largest = Some((error, text));
                    }
                }
                found.extend(largest.map(|(error, text)| format!("{text} ({error:.1e})")));
            }
        }
    }
    Ok((shaded, found))
}

/// Kernels of which the files expect rounded values: they show conversions.
const ROUNDED: [&str; 6] = [
    "tensor_copy_dims: loads_tfloat32",
    "ptx_cvt: floats",
    "ptx_memory: conversions",
    "names_of_kernels: sixes",
    "rounded_once: converted",
    "tile_tensor_copies_explicit: rounded",
];

/// The `# sim:` lines of kernels are computed in double precision, and so are shadows.
#[test]
fn shadows_are_what_files_expect() {
    let name = |path: &Path| {
        path.file_stem()
            .map_or(String::new(), |stem| stem.to_string_lossy().to_string())
    };
    let filter = std::env::var("TIRX_FILTER").ok();
    let files = filetests().expect("the files").into_iter();
    let files: Vec<_> = files
        .filter(|path| filter.as_ref().is_none_or(|filter| name(path).contains(filter)))
        .collect();
    let results: Vec<_> = files
        .par_iter()
        .filter_map(|path| Some((name(path), differences(path).ok()?)))
        .collect();
    let (mut all, mut found) = (0, Vec::new());
    let mut rounded = BTreeSet::new();
    for (name, (shaded, differences)) in results {
        all += shaded;
        for text in differences {
            let text = format!("{name}: {text}");
            match ROUNDED
                .iter()
                .find(|known| text.starts_with(&format!("{known}: ")))
            {
                Some(known) => drop(rounded.insert(known)),
                None => found.push(text),
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    if filter.is_none() {
        assert!(all > 300_000, "{all} elements with shadows");
        assert_eq!(
            rounded.len(),
            ROUNDED.len(),
            "{rounded:?} of the exceptions are needed"
        );
    }
}
