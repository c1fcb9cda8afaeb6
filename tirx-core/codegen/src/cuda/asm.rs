//! Instantiates templates of inline assembly from the modifiers of a call and its operands.
//!
//! The language of templates is described at [`crate::intrin::row::CudaForm::Ptx`].

use super::rows::{is_operand, modifier};
use crate::intrin::Operands;
use crate::intrin::row::Words;

/// The parameter of a function that is the predicate of its instruction.
pub(super) const GUARD: &str = "guard";

/// What comes before an instruction and has no effect beyond its registers.
const SETUP: &[&str] = &[".reg ", "setp.", "mov.", "mapa."];

/// An instruction under the predicate that operand `at` is; `None` where the text is more than one instruction and its setup.
pub(super) fn guarded(text: &str, at: usize) -> Option<String> {
    let inner = text
        .strip_prefix("{ ")
        .and_then(|rest| rest.strip_suffix(" }"))
        .unwrap_or(text);
    let mut statements: Vec<&str> = inner.strip_suffix(';')?.split("; ").collect();
    let instruction = statements.pop()?;
    let only_setup = statements
        .iter()
        .all(|s| SETUP.iter().any(|word| s.starts_with(word)));
    if !only_setup || instruction.starts_with(['@', '.']) || instruction.contains(": ") {
        return None;
    }
    let setup: String = statements.iter().map(|s| format!("{s}; ")).collect();
    Some(under_guard(&setup, instruction, at))
}

/// One instruction behind its setup, under the predicate that operand `at` is.
pub(super) fn under_guard(setup: &str, instruction: &str, at: usize) -> String {
    format!("{{ .reg .pred guard; setp.ne.s32 guard, %{at}, 0; {setup}@guard {instruction}; }}")
}

/// A placeholder in the text, filled by the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// An operand: the argument's name and its position in the argument's list.
    Operand(&'static str, usize),
    /// The result.
    Result,
}

/// A part of a filled template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Literal text.
    Text(String),
    /// A placeholder.
    Slot(Slot),
}

/// Substitutes modifiers and words; operands remain as slots.
///
/// # Errors
/// A name that neither the row nor the words have.
pub(super) fn fill(template: &str, operands: &Operands, words: &Words) -> Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    let mut rest = template;
    part(&mut rest, operands, words, (true, false), &mut out)?;
    // Braces make declared registers and labels local.
    let declares = out
        .iter()
        .any(|p| matches!(p, Piece::Text(t) if t.contains(".reg ")));
    if declares {
        out.insert(0, Piece::Text("{ ".into()));
        out.push(Piece::Text(" }".into()));
    }
    Ok(out)
}

/// One part up to the closing brace, or to the end of the text; whether it is included, and whether it is within a
/// condition, where braces are not doubled.
fn part(
    rest: &mut &str,
    operands: &Operands,
    words: &Words,
    (shown, within): (bool, bool),
    out: &mut Vec<Piece>,
) -> Result<(), String> {
    let mut say = |piece: Piece| match (piece, out.last_mut()) {
        _ if !shown => {}
        (Piece::Text(text), Some(Piece::Text(last))) => last.push_str(&text),
        (piece, _) => out.push(piece),
    };
    loop {
        let Some(at) = rest.find(['{', '}']) else {
            say(Piece::Text(std::mem::take(rest).to_string()));
            return Ok(());
        };
        let (text, from) = rest.split_at(at);
        say(Piece::Text(text.to_string()));
        let doubled = from.strip_prefix("{{").or(from.strip_prefix("}}"));
        if let Some(after) = doubled.filter(|_| !within) {
            say(Piece::Text(from[..1].to_string()));
            *rest = after;
        } else if let Some(after) = from.strip_prefix('}') {
            *rest = after;
            return Ok(());
        } else if let Some(after) = from.strip_prefix("{?").or(from.strip_prefix("{!")) {
            let wanted = from.starts_with("{?");
            let (name, body) = after.split_once(':').ok_or("a condition has no colon")?;
            *rest = body;
            let holds = is_set(name, operands, words)? == wanted;
            let mut inner = Vec::new();
            part(rest, operands, words, (shown && holds, true), &mut inner)?;
            inner.into_iter().for_each(&mut say);
        } else {
            let (name, after) = from[1..].split_once('}').ok_or("a brace is not closed")?;
            *rest = after;
            if !shown {
                continue;
            }
            for piece in named(name, operands, words)? {
                say(piece);
            }
        }
    }
}

fn word<'w>(name: &str, words: &'w Words) -> Option<&'w str> {
    words
        .texts
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| text.as_str())
}

/// Whether a modifier is non-empty, or an operand is present.
fn is_set(name: &str, operands: &Operands, words: &Words) -> Result<bool, String> {
    if let Some(text) = word(name, words) {
        return Ok(!text.is_empty());
    }
    let Some(arg) = operands.row.arg(name) else {
        return Err(format!("the template names {name}"));
    };
    Ok(match operands.get(name) {
        None => false,
        Some(_) if is_operand(arg) => true,
        Some(e) => !e.is_int(0) && e.as_str() != Some(""),
    })
}

/// The value of a name.
fn named(name: &str, operands: &Operands, words: &Words) -> Result<Vec<Piece>, String> {
    if name == "result" {
        return Ok(vec![Piece::Slot(Slot::Result)]);
    }
    let (dot, name) = match name.strip_prefix('.') {
        Some(name) => (".", name),
        None => ("", name),
    };
    let text = |text: &str| {
        let dot = if text.is_empty() { "" } else { dot };
        vec![Piece::Text(format!("{dot}{text}"))]
    };
    if let Some(word) = word(name, words) {
        return Ok(text(word));
    }
    let Some(arg) = operands.row.arg(name) else {
        return Err(format!("the template names {name}"));
    };
    if !is_operand(arg) {
        return Ok(text(&operands.get(name).map(modifier).unwrap_or_default()));
    }
    let mut pieces = Vec::new();
    for i in 0..operands.list(name).len() {
        if i > 0 {
            pieces.push(Piece::Text(", ".into()));
        }
        pieces.push(Piece::Slot(Slot::Operand(arg.name, i)));
    }
    Ok(pieces)
}

/// The text with placeholders numbered as in `order`; `%` before a name of PTX is doubled by the template itself.
pub(super) fn text(pieces: &[Piece], order: &[Slot]) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Slot(slot) => {
                let at = order.iter().position(|s| s == slot).unwrap_or(usize::MAX);
                out.push_str(&format!("%{at}"));
            }
        }
    }
    out
}
