//! `cargo xtask oracle mnemonics`: the instructions that TVM 0.27 has behind `T.ptx`, here.
//!
//! `tvm_mnemonics.py` writes every combination of modifiers that TVM's table allows, with the operands of each. A line of our
//! tables must take the combination with as many registers of each operand, and every dtype that they may have. Then the other way:
//! a sample of what our tables allow that TVM's refuses is printed by family, which is no failure.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tirx_core::intrin::mnemonic::lookup::Tokens;
use tirx_core::intrin::mnemonic::{Direction, Instruction, Lookup, OperandForm, instructions, types};
use tirx_core::script::Release;

use crate::process::{Result, output};

/// Combinations of one line of our tables that are asked of TVM.
const SAMPLES: usize = 400;

pub(crate) fn compare(root: &Path) -> Result<()> {
    let python = super::python_of(Release::V27)?;
    let script = root.join("xtask/python/tvm_mnemonics.py");
    let theirs = output(Command::new(&python).arg(&script))?;
    let (mut entries, mut combinations, mut wrong) = (BTreeSet::new(), 0, BTreeMap::new());
    for line in theirs.lines() {
        let mut parts = line.split('\t');
        let (Some(entry), Some(mnemonic), Some(operands)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("tvm_mnemonics.py wrote {line:?}").into());
        };
        entries.insert(entry);
        combinations += 1;
        if let Err(why) = takes(mnemonic, operands) {
            wrong
                .entry(entry)
                .or_insert_with(Vec::new)
                .push(format!("{mnemonic}: {why}"));
        }
    }
    println!(
        "{combinations} combinations of {} entries of TVM's table",
        entries.len()
    );
    for (entry, lines) in &wrong {
        println!("  {} of {entry} are not taken here: {}", lines.len(), lines[0]);
    }
    reverse(&python, &script)?;
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{} entries differ", wrong.len()).into()),
    }
}

/// Whether a line of our tables takes the mnemonic with these operands.
fn takes(mnemonic: &str, operands: &str) -> std::result::Result<(), String> {
    let lookup = Lookup::mnemonic(mnemonic).map_err(|e| e.lines().next().unwrap_or_default().to_string())?;
    let mut why = Vec::new();
    for tokens in &lookup.candidates {
        if tokens.missing().is_some() {
            continue;
        }
        match tokens.mistake() {
            Some(mistake) => why.push(mistake),
            None => match fit(tokens, operands) {
                Ok(()) => return Ok(()),
                Err(misfit) => why.push(misfit),
            },
        }
    }
    why.dedup();
    Err(why.join("; "))
}

/// Whether the operands are those that TVM's entry has: `rw:kind:registers:dtypes` each.
fn fit(tokens: &Tokens, theirs: &str) -> std::result::Result<(), String> {
    let ours: Vec<_> = tokens.operands().collect();
    let theirs: Vec<&str> = theirs.split(' ').filter(|o| !o.is_empty()).collect();
    if ours.len() != theirs.len() {
        return Err(format!("{} operands here, {} there", ours.len(), theirs.len()));
    }
    for ((operand, count), their) in ours.iter().zip(theirs) {
        let parts: Vec<&str> = their.split(':').collect();
        let [direction, kind, registers, dtypes] = parts[..] else {
            return Err(format!("an operand {their:?}"));
        };
        let same_kind = match &operand.form {
            OperandForm::Register => matches!(kind, "reg" | "ptr"),
            OperandForm::Address(_) => kind == "addr",
            OperandForm::Immediate(_) => kind == "imm",
            OperandForm::Literal(_) => false,
        };
        let same_direction = match operand.direction {
            Direction::Read => direction == "r",
            Direction::Write => direction == "w",
            Direction::Update => direction == "rw",
        };
        if !same_kind || !same_direction || registers != count.to_string() {
            return Err(format!("{} of {count} here, {their} there", operand.name));
        }
        let ty = tokens.type_of(operand.ty);
        for dtype in dtypes.split(',').filter(|d| !d.is_empty() && kind == "reg") {
            let known = types::scalars().into_iter().find(|d| d.to_string() == dtype);
            let taken = known.is_some_and(|dtype| types::accepts(ty, dtype, operand.wider));
            if !taken && ty != "pred" {
                return Err(format!("{} of type {ty} is not {dtype} here", operand.name));
            }
        }
    }
    Ok(())
}

/// Prints what our tables allow and TVM's refuses.
fn reverse(python: &Path, script: &Path) -> Result<()> {
    let ours: Vec<(&Instruction, String)> = instructions()
        .iter()
        .flat_map(|instruction| {
            samples(instruction)
                .into_iter()
                .map(move |text| (instruction, text))
        })
        .collect();
    let mut child = Command::new(python)
        .arg(script)
        .arg("--check")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let text: String = ours.iter().map(|(_, text)| format!("{text}\n")).collect();
    let mut input = child.stdin.take().ok_or("the script has no input")?;
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let answer = child.wait_with_output()?;
    writer.join().map_err(|_| "the writer ended early")??;
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    let mut refused: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for ((instruction, text), legal) in ours.iter().zip(answer.lines()) {
        if legal == "0" {
            refused.entry(instruction.place.as_str()).or_default().push(text);
        }
    }
    let count: usize = refused.values().map(Vec::len).sum();
    println!(
        "{} samples of our {} lines, of which TVM refuses {count}",
        ours.len(),
        instructions().len()
    );
    for (place, texts) in &refused {
        println!("  {place}: {}, as {}", texts.len(), texts[0]);
    }
    Ok(())
}

/// Combinations of a line's modifiers: all, or a sample at equal distances.
fn samples(instruction: &'static Instruction) -> Vec<String> {
    let all = Tokens::combinations(instruction);
    // An odd distance meets each token of slots with two.
    let step = (all / SAMPLES).max(1) | 1;
    let legal = (0..all)
        .step_by(step)
        .filter_map(|n| Tokens::combination(instruction, n));
    legal.map(|tokens| tokens.text()).collect()
}
