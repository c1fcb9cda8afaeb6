//! Which calls by mnemonic could be this call of TVM 0.26?
//!
//! A line of the tables says which row it is, and where each argument of the row comes from: an operand, a slot, a number in
//! a token. Here the arguments are given, as text, and the tokens and operands are searched. What the arguments leave open
//! gives several alternatives, the shortest mnemonics first.

use super::calls::{Argument, Literal, OldCall};
use crate::intrin::Op;
use crate::intrin::mnemonic::syntax::RowCall;
use crate::intrin::mnemonic::{
    Direction, Form, Instruction, JOINED, Lookup, Operand, instructions, lookup, types,
};
use crate::lang;

/// More alternatives than these are not tried.
const MOST: usize = 16;

/// Functions that have another name in 0.27, with the same arguments.
const RENAMED: &[(&str, &str)] = &[
    ("ptx.ldmatrix_legacy", "ptx_legacy.ldmatrix"),
    ("ptx.mma.legacy", "ptx_legacy.mma"),
    ("ptx.cp_async.legacy", "s_tir.cp_async_raw"),
];

/// Texts that may replace a call.
pub(super) struct Alternatives {
    /// Each with whether it replaces the whole statement.
    pub(super) texts: Vec<(String, bool)>,
    /// Why there is none.
    pub(super) reason: String,
}

/// Whether a word of 0.26 is a token: dtypes have names of TVM beside those of PTX.
fn is_word(word: &str, token: &str) -> bool {
    word == token
        || types::dtypes(token).iter().any(|dtype| dtype.to_string() == word) && {
            // `u32` and `b32` are registers of the same dtypes.
            let kind = match word.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "int" => "s",
                "uint" => "u",
                "float" => "f",
                "bfloat" => "bf",
                _ => return false,
            };
            token.trim_end_matches(|c: char| c.is_ascii_digit()) == kind
        }
}

/// The arguments of a row that a call gives, by name.
type Given = Vec<(&'static str, Vec<Argument>)>;

pub(super) fn alternatives(call: &OldCall) -> Alternatives {
    let script = &call.name["T.".len()..];
    let mut out = Alternatives {
        texts: Vec::new(),
        reason: "no mnemonic is known to be the same operation with these arguments".into(),
    };
    let renamed = RENAMED
        .iter()
        .filter(|(old, _)| *old == script)
        .map(|(_, new)| *new);
    let op = Op::from_script(script);
    let other = op
        .into_iter()
        .flat_map(|op| op.row().also.iter().copied().chain([op.row().script]));
    for name in renamed.chain(other.filter(|name| !name.starts_with("ptx."))) {
        out.texts.push((format!("T.{name}{}", call.arguments), false));
    }
    let Some(op) = op else { return out };
    let Some(given) = bound(op, call) else {
        out.reason = "its arguments are not written one by one".into();
        return out;
    };
    for instruction in instructions() {
        let Some(row) = &instruction.row else { continue };
        let Some(mut line) = Line::of(instruction, row, op.row().script) else {
            continue;
        };
        let solved = line.solve(row, &given);
        if solved.is_none() {
            continue;
        }
        let stores = row.result.is_some() && !given.iter().any(|(name, _)| *name == "dst");
        let statement = match (&call.statement, stores) {
            (Some(statement), true) if statement.target.is_some() => Some(statement),
            (Some(statement), false) if statement.target.is_none() => None,
            _ => {
                out.reason =
                    "its value is used within an expression: give it a variable (`x: T.uint32`) and assign it (`x = …`)"
                        .into();
                continue;
            }
        };
        if let (Some(result), Some(statement)) = (row.result, statement) {
            let target = statement.target.clone().unwrap_or_default();
            let target = Argument {
                text: target,
                literal: None,
                element: None,
                items: None,
            };
            line.operands.push((result, vec![target]));
        }
        let declaration = statement.map_or("", |statement| statement.declaration.as_str());
        for text in line.calls(&given) {
            if out.texts.len() >= MOST {
                break;
            }
            let text = format!("{declaration}{text}");
            if !out.texts.iter().any(|(known, _)| *known == text) {
                out.texts.push((text, statement.is_some()));
            }
        }
    }
    out
}

/// The arguments of a call by the names of the row's signature; `None` where they cannot be told apart.
fn bound(op: Op, call: &OldCall) -> Option<Given> {
    let (params, rest) = lang::row_parameters(op);
    let mut given: Given = Vec::new();
    let mut positional = call.positional.iter();
    for (param, default) in params.clone() {
        let by_position = match param.keyword_only {
            true => None,
            false => positional.next(),
        };
        if by_position.is_some_and(|arg| arg.text.starts_with('*')) {
            return None;
        }
        let by_name = call.keywords.iter().find(|(name, _)| name == param.name);
        let value = by_position.or(by_name.map(|(_, value)| value)).cloned();
        let value = value.or_else(|| {
            Some(match default {
                lang::RowDefault::Int(value) => Argument::of_literal(Literal::Int(value)),
                lang::RowDefault::Text(text) => Argument::of_literal(Literal::Text(text.into())),
                lang::RowDefault::None => return None,
            })
        });
        match value {
            Some(value) if value.literal == Some(Literal::None) => {}
            Some(value) => {
                let list = value.items.clone().unwrap_or_else(|| vec![value]);
                given.push((param.name, list));
            }
            None => {}
        }
    }
    let more: Vec<Argument> = positional.cloned().collect();
    match rest {
        Some(rest) if !more.is_empty() => given.push((rest, more)),
        None if !more.is_empty() => return None,
        _ => {}
    }
    let known = |name: &str| params.clone().any(|(param, _)| param.name == name);
    call.keywords.iter().all(|(name, _)| known(name)).then_some(given)
}

/// A line of the tables, with what is known of a call of it.
struct Line {
    instruction: &'static Instruction,
    /// The tokens that each slot may have; the empty one leaves the slot out.
    tokens: Vec<Vec<String>>,
    /// Whether an argument of the row depends on the slot.
    named: Vec<bool>,
    operands: Given,
}

impl Line {
    /// A line that names the row `script`.
    fn of(instruction: &'static Instruction, row: &RowCall, script: &str) -> Option<Line> {
        let name = row.name.replace("{family}", instruction.family);
        let mut line = Line {
            instruction,
            tokens: Vec::new(),
            named: vec![false; instruction.slots.len()],
            operands: Vec::new(),
        };
        for slot in &instruction.slots {
            let out = slot.optional.then(String::new);
            let mut tokens: Vec<String> = out.into_iter().chain(slot.tokens.iter().cloned()).collect();
            // Barriers and what else can be in shared memory only: TVM 0.27 does not take such a pointer where the mnemonic names no
            // space and so means a generic address.
            tokens.sort_by_key(|token| !token.starts_with("shared"));
            line.tokens.push(tokens);
        }
        for (at, slot) in instruction.slots.iter().enumerate() {
            let place = format!("{{{}}}", slot.name);
            if name.contains(&place) {
                line.tokens[at].retain(|token| name.replace(&place, token) == script);
                line.named[at] = true;
                return (!line.tokens[at].is_empty()).then_some(line);
            }
        }
        (name == script).then_some(line)
    }

    /// The slot of a name, or the one that has such a token.
    fn slot(&self, name: &str) -> Option<usize> {
        let slots = &self.instruction.slots;
        let by_name = slots.iter().position(|slot| slot.name == name);
        by_name.or_else(|| {
            slots
                .iter()
                .position(|slot| slot.tokens.iter().any(|token| token == name))
        })
    }

    /// Keeps some tokens of a slot; `None` where none is left.
    fn keep(&mut self, slot: usize, keep: impl Fn(&str) -> bool) -> Option<()> {
        self.named[slot] = true;
        self.tokens[slot].retain(|token| keep(token));
        (!self.tokens[slot].is_empty()).then_some(())
    }

    fn operand(&self, name: &str) -> Option<&'static Operand> {
        self.instruction
            .operands
            .iter()
            .find(|operand| operand.name == name)
    }

    /// Reads the row's arguments backwards; `None` where the line is another call.
    fn solve(&mut self, row: &RowCall, given: &Given) -> Option<()> {
        for (name, value) in &row.args {
            if let Some(condition) = name.strip_prefix('&') {
                if let Some(slot) = self.slot(condition) {
                    self.keep(slot, |token| !token.is_empty())?;
                }
                continue;
            }
            let values = given
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, values)| values);
            self.argument(value, values.map_or(&[], Vec::as_slice))?;
        }
        if let (Some(result), Some((_, registers))) =
            (row.result, given.iter().find(|(name, _)| *name == "dst"))
        {
            self.operands.push((result, registers.clone()));
        }
        for operand in &self.instruction.operands {
            let Some((slot, wanted)) = operand.present else {
                continue;
            };
            let is_given = self.operands.iter().any(|(name, _)| *name == operand.name);
            let slot = self.slot(slot)?;
            self.keep(slot, |token| match wanted {
                "" => token.is_empty() != is_given,
                wanted => (token == wanted) == is_given,
            })?;
        }
        Some(())
    }

    /// One argument of the row, which comes from `from` and is `given`.
    fn argument(&mut self, from: &'static str, given: &[Argument]) -> Option<()> {
        let literal = match given {
            [one] => one.literal.as_ref(),
            _ => None,
        };
        let number = match literal {
            Some(Literal::Int(value)) => Some(*value),
            _ => None,
        };
        let text = match literal {
            Some(Literal::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        if let Some(quoted) = from.strip_prefix('\'') {
            let quoted = quoted.trim_end_matches('\'');
            return text.is_none_or(|text| text == quoted).then_some(());
        }
        if let Ok(fixed) = from.parse::<i128>() {
            return number.is_none_or(|number| number == fixed).then_some(());
        }
        if let Some(slot) = from.strip_prefix('?') {
            let slot = self.slot(slot)?;
            return self.keep(slot, |token| {
                number.is_none_or(|set| (set != 0) != token.is_empty())
            });
        }
        if let Some(rest) = from.strip_prefix('#') {
            let (slot, nth) = rest.split_once('.').unwrap_or((rest, "0"));
            let (slot, nth) = (self.slot(slot)?, nth.parse::<usize>().ok()?);
            return self.keep(slot, |token| {
                let parts = token
                    .split(|c: char| !c.is_ascii_digit())
                    .filter(|part| !part.is_empty());
                let there = parts.clone().nth(nth).and_then(|part| part.parse::<i128>().ok());
                number.is_none_or(|number| there.unwrap_or(if token.is_empty() { -1 } else { 0 }) == number)
            });
        }
        if from.starts_with('@') {
            return Some(());
        }
        if let Some((slot, table)) = from.split_once('{') {
            let slot = self.slot(slot)?;
            let entries = table.trim_end_matches('}').split(',');
            return self.keep(slot, |token| {
                let value = entries.clone().find_map(|entry| {
                    let (key, value) = entry.rsplit_once(':').unwrap_or((entry, ""));
                    (key == token || key == "*").then_some(value)
                });
                value.is_some_and(|value| text.is_none_or(|text| text == value))
            });
        }
        if let Some((a, b)) = from.split_once('+') {
            // Where the first of two lists ends is not written; two values are one each.
            let [first, second] = given else { return None };
            self.operands.push((a, vec![first.clone()]));
            self.operands.push((b, vec![second.clone()]));
            return Some(());
        }
        if let Some((a, b)) = from.split_once('&') {
            for slot in [a, b] {
                let slot = self.slot(slot)?;
                self.keep(slot, |token| text.is_none_or(|text| is_word(text, token)))?;
            }
            return Some(());
        }
        if let Some((operand, default)) = from.split_once('|') {
            if !given.is_empty() && number != default.parse().ok() {
                self.operands.push((operand, given.to_vec()));
            }
            return Some(());
        }
        if let Some(operand) = self.operand(from) {
            // The default of an operand that stands only beside a modifier.
            let is_out = operand.present.is_some() && number == Some(0);
            if !given.is_empty() && !is_out {
                self.operands.push((from, given.to_vec()));
            }
            return Some(());
        }
        match self.instruction.slots.iter().position(|slot| slot.name == from) {
            Some(slot) => self.keep(slot, |token| text.is_none_or(|text| is_word(text, token))),
            None => Some(()),
        }
    }

    /// The calls of the line, as text.
    fn calls(&self, given: &Given) -> Vec<String> {
        let mut mnemonics = vec![vec![self.instruction.family.to_string()]];
        for (at, tokens) in self.tokens.iter().enumerate() {
            // A modifier that no argument asks for is left out.
            let open = self.named[at] || !self.instruction.slots[at].optional;
            let tokens = &tokens[..if open { tokens.len() } else { 1 }];
            let longer = mnemonics.iter().flat_map(|start| {
                tokens.iter().map(|token| {
                    let mut words = start.clone();
                    words.extend((!token.is_empty()).then(|| token.clone()));
                    words
                })
            });
            mnemonics = longer.take(MOST * 8).collect();
        }
        let legal = mnemonics.into_iter().filter(|words| self.is_legal(words));
        // 0.26 converts values, 0.27 wants the dtype of the instruction.
        let calls = legal.flat_map(|words| [false, true].map(|converts| self.call(&words, given, converts)));
        calls.flatten().take(MOST).collect()
    }

    fn is_legal(&self, words: &[String]) -> bool {
        let found = Lookup::mnemonic(&words.join("."));
        found.is_ok_and(|found| {
            let mut candidates = found.candidates.iter();
            candidates.any(|c| {
                is_same(c.instruction, self.instruction) && c.missing().is_none() && c.mistake().is_none()
            })
        })
    }

    fn call(&self, words: &[String], given: &Given, converts: bool) -> Option<String> {
        let mut arguments = Vec::new();
        for operand in &self.instruction.operands {
            if matches!(operand.form, Form::Literal(_)) {
                continue;
            }
            let Some((_, values)) = self.operands.iter().find(|(name, _)| *name == operand.name) else {
                // Its slot is left out, or it is a destination that has no place here.
                operand.present?;
                continue;
            };
            let register = operand.form == Form::Register && operand.ty != "ptr";
            let dtype = (converts && register && operand.direction == Direction::Read)
                .then(|| types::dtypes(operand.ty))
                .and_then(|dtypes| (operand.ty.starts_with('u') && dtypes.len() == 1).then(|| dtypes[0]));
            arguments.extend(values.iter().map(|value| {
                let number = match value.literal {
                    Some(Literal::Int(number)) => Some(number),
                    _ => None,
                };
                match (&value.element, number, dtype) {
                    (Some(element), ..) if register => element.clone(),
                    (_, Some(number), _) if operand.ty == "pred" => match number {
                        0 => "False".into(),
                        _ => "True".into(),
                    },
                    (_, Some(number), _) => number.to_string(),
                    (_, None, Some(dtype)) if value.literal.is_none() => format!("T.{dtype}({})", value.text),
                    _ => match operand.form {
                        // 1.0 is 1.
                        Form::Immediate(_) => value.text.strip_suffix(".0").unwrap_or(&value.text).into(),
                        _ => value.text.clone(),
                    },
                }
            }));
        }
        if let Some((_, pred)) = given.iter().find(|(name, _)| *name == "pred") {
            let pred: Vec<&str> = pred.iter().map(|value| value.text.as_str()).collect();
            arguments.push(format!("pred={}", pred.join(", ")));
        }
        Some(format!("{}({})", spelled(words), arguments.join(", ")))
    }
}

/// Whether two are one instruction of the tables: they are read by families and as a whole. A line stands for several where operands
/// may be left out.
fn is_same(a: &Instruction, b: &Instruction) -> bool {
    let names = |instruction: &Instruction| -> Vec<&'static str> {
        let operands = instruction.operands.iter();
        operands.map(|operand| operand.name).collect()
    };
    a.place == b.place && a.family == b.family && names(a) == names(b)
}

/// A mnemonic as a chain, or as a string where a word is no name of Python.
fn spelled(words: &[String]) -> String {
    // `shfl.sync` is one name, `shfl_sync`.
    let text = words.join(".");
    let joined = JOINED
        .iter()
        .filter(|joined| text.starts_with(&format!("{joined}.")));
    let joined = joined
        .max_by_key(|joined| joined.len())
        .copied()
        .unwrap_or_default();
    let first = joined.split('.').filter(|word| !word.is_empty()).count();
    let name = (first > 0).then(|| joined.replace('.', "_"));
    let words: Vec<String> = name.into_iter().chain(words[first..].iter().cloned()).collect();
    let text = words.join(".");
    let escaped: Vec<String> = words.iter().map(|word| lookup::escape(word)).collect();
    let is_name = |word: &String| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    match escaped.iter().all(is_name) && !text.contains("::") {
        true => format!("T.ptx.{}", escaped.join(".")),
        false => format!("T.ptx[\"{text}\"]"),
    }
}
