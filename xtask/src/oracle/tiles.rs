//! `cargo xtask oracle tiles [COUNT] [SEED] [ARCH]`: random tile primitives through dispatch, here and in TVM.
//!
//! `tvm_tiles.py` writes kernel files with one tile primitive each, and whether TVM lowers it, by which variant and with
//! which vector. What TVM takes must be taken here, by the variant of that name and with vectors as wide, but for the
//! differences that `intended_decline` names.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tirx_core::script::{KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::lower_tirx::{Decision, Outcome, explain};
use tirx_core::transform::{Options, PassContext, Target};

use crate::process::{Result, run};

/// The outcome for a primitive here.
struct Ours {
    variant: Option<&'static str>,
    vector: i128,
    /// Why variants declined.
    reasons: String,
}

pub(crate) fn compare(root: &Path, args: &[String]) -> Result<()> {
    let mut numbers = args.iter().filter_map(|a| a.parse::<u32>().ok());
    let (count, seed) = (numbers.next().unwrap_or(500), numbers.next().unwrap_or(1));
    let arch = args.iter().find(|a| a.starts_with("sm_")).map_or("sm_90a", |a| a);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let folder = target.join("oracle-tiles");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    run(Command::new(super::python_asked_for(args)?)
        .arg(root.join("xtask/python/tvm_tiles.py"))
        .arg(&folder)
        .args([&count.to_string(), &seed.to_string()])
        .arg(arch))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for number in 0..count {
        let text = std::fs::read_to_string(folder.join(format!("{number}.py")))?;
        let theirs = std::fs::read_to_string(folder.join(format!("{number}.txt")))?;
        let words: Vec<&str> = theirs.split_whitespace().collect();
        let ours = ours(&text, arch);
        let said = match (&words[..], &ours) {
            (["accepted", variant, vector], Ok(ours)) => {
                let vector = vector.parse().unwrap_or(0);
                let unfollowed = UNFOLLOWED.iter().any(|condition| text.contains(condition));
                match judged(variant, vector, ours, unfollowed) {
                    Ok(said) => said,
                    Err(message) => {
                        failures.push(format!("{number}: {message}\n{text}"));
                        continue;
                    }
                }
            }
            (["accepted", variant, _], Err(error)) => {
                failures.push(format!(
                    "{number}: TVM's {variant}; an error here: {error}\n{text}"
                ));
                continue;
            }
            (
                _,
                Ok(Ours {
                    variant: Some(variant),
                    ..
                }),
            ) => format!("taken here alone, by {variant}"),
            _ => "declined by both".to_string(),
        };
        *counts.entry(said).or_default() += 1;
    }
    println!("| {arch} | tile primitives |\n|---|---|");
    for (said, count) in counts {
        println!("| {said} | {count} |");
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("{} differ:\n{}", failures.len(), failures.join("\n")).into())
    }
}

/// Conditions that leave out threads and that TVM does not follow.
const UNFOLLOWED: &[&str] = &["if w != 0:"];

/// The row of the table for a primitive, or the error.
fn judged(variant: &str, vector: i128, ours: &Ours, unfollowed: bool) -> std::result::Result<String, String> {
    if unfollowed && ours.reasons.contains("narrowed to") {
        let own = ours
            .variant
            .map_or("an error".to_string(), |own| format!("`{own}`"));
        return Ok(format!(
            "`{variant}` of TVM's, as if all threads were active; {own} here"
        ));
    }
    let Some(own) = ours.variant else {
        return match intended_decline(variant, ours) {
            Some(reason) => Ok(format!("`{variant}` of TVM's, declined here: {reason}")),
            None => Err(format!(
                "TVM's {variant}; every variant declines here: {}",
                ours.reasons
            )),
        };
    };
    // By instructions of sm_100 where TVM has plain ones.
    if let ("local", "packed_add_sum" | "3input_maxmin") | ("reg", "reg_packed") = (variant, own) {
        return Ok(format!("`{variant}` in TVM, `{own}` here"));
    }
    let known: &[&str] = match variant {
        // Copies by matrix instructions are tried first here.
        "vec_auto" => &["gmem_smem", "reg", "same_memory", "ldstmatrix"],
        // One thread alone reduces memory of any kind.
        "shared" => &["shared", "local"],
        other => return same(other, vector, own, ours),
    };
    if known.contains(&own) {
        let vector = if variant == "vec_auto" { vector } else { 0 };
        return same(own, vector, own, ours);
    }
    Err(format!("TVM's {variant}, here {own}"))
}

fn same(variant: &str, vector: i128, own: &str, ours: &Ours) -> std::result::Result<String, String> {
    if variant != own {
        // A copy that TVM performs by one thread may be distributed over all threads.
        if variant == "fallback" {
            return Ok(format!("`fallback` in TVM, `{own}` here"));
        }
        return Err(format!("TVM's {variant}, here {own}"));
    }
    let has_vector = ["gmem_smem", "reg", "ldgsts", "smem"].contains(&variant) && vector > 0;
    match ours.vector.cmp(&vector) {
        _ if !has_vector => Ok(format!("`{variant}` in both")),
        std::cmp::Ordering::Equal => Ok(format!("`{variant}` in both, with the same vector")),
        std::cmp::Ordering::Greater => Ok(format!("`{variant}` in both, with a wider vector here")),
        std::cmp::Ordering::Less if variant == "reg" => {
            // TVM does not check that threads begin at multiples of a vector.
            Ok(
                "`reg` in both, with a narrower vector here: TVM's is not aligned for every thread"
                    .to_string(),
            )
        }
        std::cmp::Ordering::Less => Err(format!(
            "{variant} with vectors of {vector}, here of {}",
            ours.vector
        )),
    }
}

/// The reason why tirx intentionally declines a call that TVM accepts, found by the texts with which the variants decline.
fn intended_decline(variant: &str, ours: &Ours) -> Option<&'static str> {
    let is_reduction = ["shared", "local"].contains(&variant);
    // A condition around the call leaves some threads out: "laneid narrowed to [0, 16) vs full [0, 32)".
    if is_reduction && ours.reasons.contains("narrowed to") {
        return Some("TVM's shuffles and barriers wait for inactive threads");
    }
    if ours.reasons.contains("expected spatial size") {
        return Some("TVM writes past the end of the output");
    }
    None
}

fn ours(text: &str, arch: &str) -> std::result::Result<Ours, String> {
    let mut sources = SourceMap::new();
    let shown = |error: &tirx_core::diagnostic::Diagnostics, sources: &SourceMap| error.render(sources);
    let file =
        KernelFile::load(&mut sources, "case.py", text, &NoImports).map_err(|e| shown(&e, &sources))?;
    let module = file
        .build(Some("k"), &BTreeMap::new())
        .map_err(|e| shown(&e, &sources))?;
    let context = PassContext::new(Target::named(arch).expect("a known GPU"), &Options::default());
    let decisions = explain(&module, &context);
    let decision: &Decision = decisions.last().ok_or("no tile primitive")?;
    let chosen = decision.rows.iter().find(|(_, o)| *o == Outcome::Chosen);
    let declined = decision.rows.iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Declined(reason) => Some(format!("{name}: {reason}")),
        _ => None,
    });
    Ok(Ours {
        variant: chosen.map(|(name, _)| *name),
        vector: decision.partition.map_or(0, |[_, _, vector]| vector),
        reasons: declined.collect::<Vec<_>>().join("; "),
    })
}
