//! How does TVM 0.27 write an operation that is a function in 0.26?

use super::instructions;
use super::syntax::{Instruction, OperandForm, Slot};
use crate::intrin::Op;

/// The instructions that are an operation, with their modifiers: `T.ptx["mbarrier.init{.<space>}.b64"](addr, count)`. A modifier of
/// several tokens is given by its name.
pub fn from_op(op: Op) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for instruction in lines(op) {
        let mut text = format!("T.ptx[\"{}", instruction.family);
        for slot in &instruction.slots {
            let word = match &slot.tokens[..] {
                [one] => one.clone(),
                _ => format!("<{}>", slot.name),
            };
            text += &match slot.optional {
                true => format!("{{.{word}}}"),
                false => format!(".{word}"),
            };
        }
        let operands = instruction.operands.iter();
        let operands = operands.filter(|operand| !matches!(operand.form, OperandForm::Literal(_)));
        let names: Vec<&str> = operands.map(|operand| operand.name).collect();
        text += &format!("\"]({})", names.join(", "));
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// The words that every instruction of an operation has, where they are not the operation's name: `cp.async.bulk.shared::cta.global`.
pub fn name(op: Op) -> Option<String> {
    let words = |instruction: &'static Instruction| {
        let fixed = instruction
            .slots
            .iter()
            .filter(|slot| !slot.optional && slot.tokens.len() == 1);
        let fixed = fixed.map(|slot| slot.tokens[0].as_str());
        std::iter::once(instruction.family)
            .chain(fixed)
            .collect::<Vec<&str>>()
    };
    let mut all = lines(op).map(words);
    let first = all.next()?;
    let shared = all.fold(first, |shared, words| {
        shared.into_iter().filter(|word| words.contains(word)).collect()
    });
    let name = shared.join(".");
    let plain = |text: &str| text.replace("::", ".").replace(['_', '.'], "");
    let script = plain(op.info().script.strip_prefix("ptx.")?);
    (!plain(&name).starts_with(&script)).then_some(name)
}

fn lines(op: Op) -> impl Iterator<Item = &'static Instruction> {
    instructions().iter().filter(move |instruction| {
        let Some(row) = &instruction.row else { return false };
        let name = row.name;
        let is = |name: &str| Op::from_script(name) == Some(op);
        let filled = |slot: &Slot| {
            let place = format!("{{{}}}", slot.name);
            name.contains(&place) && slot.tokens.iter().any(|token| is(&name.replace(&place, token)))
        };
        is(name) || instruction.slots.iter().any(filled)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_the_mnemonics_of_its_lines() {
        let init = from_op(Op::PtxMbarrierInit);
        assert_eq!(
            init,
            ["T.ptx[\"mbarrier.init{.<layout>}{.<space>}.b64\"](addr, count)"]
        );
        assert_eq!(name(Op::PtxMapa), None);
        assert_eq!(name(Op::PtxLdAcquire).as_deref(), Some("ld"));
        assert_eq!(name(Op::PtxCpAsyncCommitGroup), None);
        assert!(from_op(Op::CudaCtaSync).is_empty());
    }
}
