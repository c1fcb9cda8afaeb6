//! Which calls of one line of the tables have the arguments of a row of TVM 0.26?
//!
//! The line says where each argument of the row comes from: an operand, a slot, a number in a token. Here the tokens and operands are
//! found that give these arguments.

use super::calls::{Argument, Literal, OldCall};
use super::given::{Given, value_of};
use super::{normal, products};
use tirx_ir::DType;
use tirx_ir::intrin::mnemonic::lookup::Tokens;
use tirx_ir::intrin::mnemonic::syntax::RowCall;
use tirx_ir::intrin::mnemonic::{
    Direction, Instruction, JOINED, Lookup, Operand, OperandForm, lookup, types,
};

/// What stands before the slot from which an argument is read as a flag or a number.
const SLOTS: [&str; 2] = ["?", "#"];

/// More alternatives than these are not tried.
pub(super) const MOST: usize = 16;

/// A line of the tables, with what is known of a call of it.
pub(super) struct Line {
    instruction: &'static Instruction,
    /// The tokens that each slot may have; the empty one leaves the slot out.
    tokens: Vec<Vec<String>>,
    /// Whether an argument of the row depends on the slot.
    named: Vec<bool>,
    /// Arguments on which a slot depends and whose values are not known, as they are written.
    unknown: Vec<(usize, String)>,
    operands: Given,
}

impl Line {
    /// A line that names the row `script`.
    pub(super) fn from_call(instruction: &'static Instruction, row: &RowCall, script: &str) -> Option<Line> {
        let name = row.name;
        let mut line = Line {
            instruction,
            tokens: Vec::new(),
            named: vec![false; instruction.slots.len()],
            unknown: Vec::new(),
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
        let by_kind = products::tokens(row.name, given);
        for (slot, token) in &by_kind {
            let slot = self.slot(slot)?;
            self.keep(slot, |known| known == token)?;
        }
        for (name, value) in &row.args {
            if products::ZEROS.contains(name) && self.operand(value).is_none() {
                return None;
            }
            if !by_kind.is_empty() && products::DTYPES.contains(name) {
                continue;
            }
            if let Some(condition) = name.strip_prefix('&') {
                if condition == HALF.0 {
                    self.operands.push((HALF.1, vec![distance_of_halves(given)?]));
                }
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
        let before = self.tokens.clone();
        self.read(from, given)?;
        if let [one] = given
            && one.known().is_none()
            && self.operand(from).is_none()
        {
            // Such an argument keeps every token of its slot.
            let slots = SLOTS
                .iter()
                .find_map(|start| from.strip_prefix(*start))
                .unwrap_or(from);
            let slots = slots.split(['.', '{', '&']).filter_map(|slot| self.slot(slot));
            let open: Vec<usize> = slots.filter(|slot| before[*slot].len() > 1).collect();
            self.unknown
                .extend(open.into_iter().map(|slot| (slot, one.text.clone())));
        }
        Some(())
    }

    /// An argument without which it is not known which call of the line this is.
    pub(super) fn undecided(&self) -> Option<&str> {
        let open = |(slot, _): &&(usize, String)| self.tokens[*slot].len() > 1;
        self.unknown.iter().find(open).map(|(_, text)| text.as_str())
    }

    fn read(&mut self, from: &'static str, given: &[Argument]) -> Option<()> {
        let literal = match given {
            [one] => one.known(),
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
            return text.is_none_or(|text| is_word(text, quoted)).then_some(());
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
                value.is_some_and(|value| text.is_none_or(|text| is_word(text, value)))
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

    /// The line with the row's arguments read backwards; `None` where the line is another call.
    pub(super) fn solved(mut self, row: &RowCall, given: &Given) -> Option<Line> {
        self.solve(row, given)?;
        Some(self)
    }

    /// The calls of the line; `result` is the operand of the value, and where it goes.
    pub(super) fn calls(&self, given: &Given, result: Option<(&'static str, &str)>) -> Vec<NewCall> {
        let all = self.calls_with(given, result, false);
        match all.is_empty() {
            true => self.calls_with(given, result, true),
            false => all,
        }
    }

    /// A modifier that no argument asks for is left out, or with `more` may be there if it is the only one of its slot: `.relaxed`.
    fn calls_with(&self, given: &Given, result: Option<(&'static str, &str)>, more: bool) -> Vec<NewCall> {
        let mut mnemonics = vec![vec![self.instruction.family.to_string()]];
        for (at, tokens) in self.tokens.iter().enumerate() {
            let slot = &self.instruction.slots[at];
            let open = self.named[at] || !slot.optional || more && slot.tokens.len() == 1;
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
        let legal = mnemonics
            .into_iter()
            .filter_map(|words| Some((self.legal(&words)?, words)));
        // 0.26 converts values, 0.27 wants the dtype of the instruction.
        let calls = legal.flat_map(|(tokens, words)| {
            Conversions::ALL.map(|converts| self.call(&tokens, &words, given, result, converts))
        });
        calls.flatten().take(MOST).collect()
    }

    /// Whether 0.26 may leave out an operand that is zero then.
    fn is_zero_without(&self, operand: &Operand) -> bool {
        let row = self.instruction.row.iter().flat_map(|row| &row.args);
        row.into_iter()
            .any(|(name, from)| products::ZEROS.contains(name) && *from == operand.name)
    }

    /// The instruction of a mnemonic, if it is this one.
    fn legal(&self, words: &[String]) -> Option<Tokens> {
        let found = Lookup::mnemonic(&words.join(".")).ok()?;
        found.candidates.into_iter().find(|c| {
            is_same(c.instruction, self.instruction) && c.missing().is_none() && c.mistake().is_none()
        })
    }

    fn call(
        &self,
        tokens: &Tokens,
        words: &[String],
        given: &Given,
        result: Option<(&'static str, &str)>,
        converts: Conversions,
    ) -> Option<NewCall> {
        let mut arguments = Vec::new();
        for operand in &self.instruction.operands {
            if matches!(operand.form, OperandForm::Literal(_)) {
                continue;
            }
            if let Some((_, target)) = result.filter(|(name, _)| *name == operand.name) {
                arguments.push(target.to_string());
                continue;
            }
            let Some((_, values)) = self.operands.iter().find(|(name, _)| *name == operand.name) else {
                if self.is_zero_without(operand) {
                    let is_float = types::dtypes(tokens.type_of(operand.ty))[..1]
                        .iter()
                        .all(|d| d.is_float());
                    let zero = if is_float { "0.0" } else { "0" };
                    arguments.extend((0..operand.count.registers(tokens)).map(|_| zero.to_string()));
                    continue;
                }
                // Its slot is left out, or it is a destination that has no place here.
                operand.present?;
                continue;
            };
            let register = operand.form == OperandForm::Register && operand.ty != "ptr";
            let dtype = (converts.of_numbers() && register && operand.direction == Direction::Read)
                .then(|| types::dtypes(operand.ty))
                .and_then(|dtypes| (operand.ty.starts_with('u') && dtypes.len() == 1).then(|| dtypes[0]));
            // So are addresses of tensor memory, which 0.26 takes as any integer.
            let in_tensor_memory = converts.of_numbers() && operand.form == OperandForm::Address("tmem");
            let is_condition = converts == Conversions::AlsoPredicates && operand.ty == "pred";
            let is_bits = converts == Conversions::Bits && self.instruction.family == "cvt";
            let bits = (is_bits && register && operand.direction == Direction::Read)
                .then(|| types::dtypes(tokens.type_of(operand.ty)).first().copied())
                .flatten()
                .filter(|dtype| dtype.is_uint());
            let is_pointer = matches!(operand.form, OperandForm::Address(_));
            let count = operand.count.registers(tokens);
            let values = match &values[..] {
                [one] if register && count > 1 => one.consecutive(count).unwrap_or_else(|| values.clone()),
                _ => values.clone(),
            };
            arguments.extend(values.iter().map(|value| {
                let number = match value.literal {
                    Some(Literal::Int(number)) => Some(number),
                    _ => None,
                };
                match (&value.element, number, dtype) {
                    (Some(element), ..) if register => element.clone(),
                    _ if value.literal.is_none() && bits.is_some() && !value.text.starts_with('*') => {
                        format!(
                            "T.reinterpret(\"{}\", {})",
                            bits.map_or(String::new(), |d| d.to_string()),
                            value.text
                        )
                    }
                    _ if converts == Conversions::Buffers && is_pointer && is_identifier(&value.text) => {
                        format!("{}.ptr_to([0])", value.text)
                    }
                    _ if in_tensor_memory => format!("T.uint32({})", value.text),
                    (_, Some(number), _) if operand.ty == "pred" => match number {
                        0 => "False".into(),
                        _ => "True".into(),
                    },
                    (_, Some(number), _) => number.to_string(),
                    (_, None, _) if is_condition => format!("T.ptx.pred({})", value.text),
                    (_, None, Some(dtype)) if value.literal.is_none() && !value.text.starts_with('*') => {
                        format!("T.{dtype}({})", value.text)
                    }
                    _ => match operand.form {
                        // 1.0 is 1.
                        OperandForm::Immediate(_) => {
                            value.text.strip_suffix(".0").unwrap_or(&value.text).into()
                        }
                        _ => value.text.clone(),
                    },
                }
            }));
        }
        if let Some((_, pred)) = given.iter().find(|(name, _)| *name == "pred") {
            let pred: Vec<&str> = pred.iter().map(|value| value.text.as_str()).collect();
            arguments.push(format!("pred={}", pred.join(", ")));
        }
        let text = format!("{}({})", spelled(words), arguments.join(", "));
        Some(NewCall {
            text,
            tokens: tokens.clone(),
        })
    }
}

fn is_identifier(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_') && !text.starts_with(|c: char| c.is_numeric())
}

/// The condition that the second half of what is loaded from tensor memory stands where the first one ends, and the operand that
/// says where: 0.26 computes it.
const HALF: (&str, &str) = ("half", "immHalfSplitoff");

fn distance_of_halves(given: &Given) -> Option<Argument> {
    let number = |name: &str| match value_of(given, name)?.known() {
        Some(Literal::Int(number)) => Some(*number),
        _ => None,
    };
    let is_packed = [number("pack"), number("unpack")].contains(&Some(1));
    let distance = number("num")? * if is_packed { 2 } else { 1 };
    Some(Argument::from_literal(Literal::Int(distance)))
}

/// Which operands 0.26 converts itself and 0.27 wants in the instruction's dtype.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversions {
    None,
    /// Buffers as the addresses of their first elements.
    Buffers,
    /// Unsigned integers and addresses of tensor memory.
    Numbers,
    /// And numbers that stand for conditions.
    AlsoPredicates,
    /// Values that `cvt` converts, as their bits.
    Bits,
}

impl Conversions {
    fn of_numbers(self) -> bool {
        !matches!(self, Conversions::None | Conversions::Buffers)
    }

    const ALL: [Conversions; 5] = [
        Conversions::None,
        Conversions::Buffers,
        Conversions::Numbers,
        Conversions::AlsoPredicates,
        Conversions::Bits,
    ];
}

/// A call of an instruction.
pub(super) struct NewCall {
    /// The call as text.
    pub(super) text: String,
    tokens: Tokens,
}

impl NewCall {
    /// The dtypes that a variable for the operand `result` may have: those that the call of 0.26 names, and those that the
    /// instruction takes.
    pub(super) fn dtypes(&self, call: &OldCall, result: &str) -> impl Iterator<Item = String> {
        let named = call
            .positional
            .iter()
            .chain(call.keywords.iter().map(|(_, value)| value));
        let named = named.filter_map(|value| match value.known() {
            Some(Literal::Text(text)) => Some(text.clone()),
            _ => None,
        });
        let operand = self
            .tokens
            .instruction
            .operands
            .iter()
            .find(|operand| operand.name == result);
        let dtypes = operand.map_or(&[][..], |operand| types::dtypes(self.tokens.type_of(operand.ty)));
        let scalars = types::scalars();
        let mut all: Vec<String> = named
            .filter(|name| scalars.iter().any(|dtype| dtype.to_string() == *name))
            .collect();
        // A truth value may be written to a word, as which 0.26 gives it.
        let is_truth = operand.is_some_and(|operand| self.tokens.type_of(operand.ty) == "pred");
        for dtype in dtypes.iter().copied().chain(is_truth.then_some(DType::UINT32)) {
            let name = dtype.to_string();
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all.into_iter()
    }
}

/// Whether two are one instruction of the tables: they are read by families and as a whole. A line stands for several where operands
/// may be left out.
pub(super) fn is_same(a: &Instruction, b: &Instruction) -> bool {
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
        .filter(|joined| text == ***joined || text.starts_with(&format!("{joined}.")));
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
    // `T.ptx.st_bulk` alone is the function of 0.26.
    let is_old = first > 0 && words.len() == 1;
    match escaped.iter().all(is_name) && !text.contains("::") && !is_old {
        true => format!("T.ptx.{}", escaped.join(".")),
        false => format!("T.ptx[\"{text}\"]"),
    }
}

/// Whether a word of 0.26 is a token: dtypes have names of TVM beside those of PTX.
fn is_word(word: &str, token: &str) -> bool {
    // `.b16` and `b16`.
    word.trim_start_matches('.') == token.trim_start_matches('.')
        || normal::DTYPES.contains(&(word, token))
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
