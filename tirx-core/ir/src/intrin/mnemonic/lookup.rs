//! Which instructions do these tokens mean?
//!
//! A mnemonic is read token by token: each fills the first open slot that lists it, in any order, as the PTX ISA's order of
//! modifiers is hard to remember. The lines that cannot take a token drop out; the operands of the call decide between those
//! that are left.

use super::syntax::{Instruction, NewerTokens, Operand, OperandForm, Slot};
use super::{JOINED, checks, family};
use crate::intrin::{GpuSet, Op};
use crate::ir::Gpu;

/// The tokens of an instruction.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The instruction.
    pub instruction: &'static Instruction,
    /// One token for each slot; empty where it is left out.
    filled: Vec<&'static str>,
}

/// An instruction some of whose slots are filled.
pub type Candidate = Tokens;

impl Tokens {
    fn new(instruction: &'static Instruction) -> Tokens {
        Tokens {
            instruction,
            filled: vec![""; instruction.slots.len()],
        }
    }

    /// How many combinations of tokens the slots of an instruction have, those among them that PTX does not have.
    pub fn combinations(instruction: &Instruction) -> usize {
        instruction.slots.iter().map(choices).product()
    }

    /// One of the [combinations](Tokens::combinations); `None` where PTX does not have it.
    pub fn combination(instruction: &'static Instruction, mut number: usize) -> Option<Tokens> {
        let mut tokens = Tokens::new(instruction);
        for (slot, filled) in instruction.slots.iter().zip(&mut tokens.filled) {
            *filled = slot.tokens.get(number % choices(slot)).map_or("", String::as_str);
            number /= choices(slot);
        }
        tokens.mistake().is_none().then_some(tokens)
    }

    /// The operands that a call gives, with the number of registers of each.
    pub fn operands(&self) -> impl Iterator<Item = (&'static Operand, usize)> + '_ {
        let given = self.instruction.operands.iter().filter(|operand| {
            let there = operand
                .present
                .is_none_or(|(slot, token)| match (self.get(slot), token) {
                    ("", "") => self.has(slot),
                    (filled, "") => !filled.is_empty(),
                    (filled, token) => filled == token,
                });
            there && !matches!(operand.form, OperandForm::Literal(_))
        });
        given
            .map(|operand| (operand, operand.count.registers(self)))
            .filter(|(_, count)| *count > 0)
    }

    /// The slots with their tokens.
    pub fn each(&self) -> impl Iterator<Item = (&'static Slot, &'static str)> + '_ {
        self.instruction.slots.iter().zip(self.filled.iter().copied())
    }

    /// The token of a slot; empty where it is left out or there is no such slot.
    pub fn get(&self, slot: &str) -> &'static str {
        self.each()
            .find(|(s, _)| s.name == slot)
            .map_or("", |(_, token)| token)
    }

    /// Whether a token stands in the mnemonic.
    pub fn has(&self, token: &str) -> bool {
        self.filled.contains(&token)
    }

    /// The `nth` number in a slot's token: of `m64n128k16` 64, 128 and 16; 0 where there is none.
    pub fn number(&self, slot: &str, nth: usize) -> usize {
        let token = self.get(slot);
        let mut numbers = token
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty());
        numbers.nth(nth).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// The mnemonic: `ld.acquire.gpu.global.b32`.
    pub fn text(&self) -> String {
        let mut text = self.instruction.family.to_string();
        for token in self.filled.iter().filter(|token| !token.is_empty()) {
            text.push('.');
            text.push_str(token);
        }
        text
    }

    /// The type of an operand: a type of PTX, the token of a slot, or a rule.
    pub fn type_of(&self, name: &'static str) -> &'static str {
        if let Some(inner) = name.strip_prefix("acc(").and_then(|n| n.strip_suffix(')')) {
            return match self.type_of(inner) {
                ty @ ("f32" | "f64") => ty,
                _ => "u32",
            };
        }
        let known = self.instruction.slots.iter().any(|slot| slot.name == name);
        match self.get(name) {
            "" if known => self.get("type"),
            "" => name,
            // A byte in a register of its own width, which `asm` cannot bind.
            token => token,
        }
    }

    /// Fills the first open slot that lists a token.
    fn fill(&self, token: &str) -> Option<Tokens> {
        let open = self
            .instruction
            .slots
            .iter()
            .zip(&self.filled)
            .position(|(slot, filled)| filled.is_empty() && slot.tokens.iter().any(|known| known == token))?;
        let known = self.instruction.slots[open]
            .tokens
            .iter()
            .find(|known| *known == token)?;
        let mut next = self.clone();
        next.filled[open] = known;
        Some(next)
    }

    /// The first slot that must be filled and is not.
    pub fn missing(&self) -> Option<&'static Slot> {
        self.each()
            .find(|(slot, token)| token.is_empty() && !slot.optional)
            .map(|(slot, _)| slot)
    }

    /// The row that is the same operation.
    pub fn row(&self) -> Option<Op> {
        let mut name = self.instruction.row.as_ref()?.name.to_string();
        for (slot, token) in self.each() {
            name = name.replace(&format!("{{{}}}", slot.name), token);
        }
        Op::from_script(&name)
    }

    /// What PTX does not have about the combination.
    pub fn mistake(&self) -> Option<String> {
        let checks = self.instruction.checks.iter();
        checks.filter_map(|name| checks::check(name, self)).next()
    }

    /// The slots that are still open, with their tokens.
    fn open(&self) -> impl Iterator<Item = &'static Slot> + '_ {
        self.each()
            .filter(|(_, token)| token.is_empty())
            .map(|(slot, _)| slot)
    }

    /// The tokens that need more than the line.
    fn newer(&self) -> impl Iterator<Item = &'static NewerTokens> + '_ {
        let stand = move |newer: &&NewerTokens| {
            let enough = |token: &&str| times(&self.filled, token) >= times(&newer.tokens, token);
            newer.tokens.iter().all(enough)
        };
        self.instruction.newer.iter().filter(stand)
    }

    /// The first release of the PTX ISA that has the instruction with these tokens.
    pub fn ptx(&self) -> (u32, u32) {
        let newer = self.newer().map(|newer| newer.ptx);
        newer.fold(self.instruction.ptx, Ord::max)
    }

    /// Lists of GPUs, of each of which a GPU must be that has the instruction with these tokens.
    pub fn gpus(&self) -> impl Iterator<Item = &'static [GpuSet]> + '_ {
        let newer = self.newer().map(|newer| newer.gpus.as_slice());
        std::iter::once(self.instruction.gpus.as_slice())
            .chain(newer)
            .filter(|gpus| !gpus.is_empty())
    }

    /// The list of [`gpus`](Tokens::gpus) that a GPU is missing from, if there is one.
    pub fn lacking(&self, gpu: Gpu) -> Option<&'static [GpuSet]> {
        self.gpus().find(|gpus| !gpus.iter().any(|set| set.holds(gpu)))
    }

    /// `PTX 8.6, sm_100a or sm_110a`.
    pub fn since(&self) -> String {
        let (major, minor) = self.ptx();
        let gpus: Vec<String> = self.gpus().map(either).collect();
        format!("PTX {major}.{minor}, {}", gpus.join(" and "))
    }
}

/// How often a list has a token.
fn times(list: &[&str], token: &str) -> usize {
    list.iter().filter(|t| **t == token).count()
}

/// `sm_100a or sm_110a`.
pub fn either(gpus: &[GpuSet]) -> String {
    let names: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    names.join(" or ")
}

/// How many tokens a slot can have; that it is left out counts as one.
fn choices(slot: &Slot) -> usize {
    slot.tokens.len() + usize::from(slot.optional)
}

/// The instructions that a mnemonic can still become.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The tokens so far, as PTX writes them.
    pub tokens: Vec<String>,
    /// The candidates; never empty.
    pub candidates: Vec<Candidate>,
}

impl Lookup {
    /// All instructions whose mnemonic begins with a word; `None` where there is none. `shfl_sync` is `shfl.sync`.
    pub fn family(name: &str) -> Option<Lookup> {
        let name = unescape(name);
        let joined = JOINED.iter().find(|joined| joined.replace('.', "_") == name);
        let mut words = joined.copied().unwrap_or(&name).split('.');
        let first = words.next()?;
        let candidates: Vec<Candidate> = family(first).iter().map(Tokens::new).collect();
        if candidates.is_empty() {
            return None;
        }
        let start = Lookup {
            tokens: vec![first.to_string()],
            candidates,
        };
        words.try_fold(start, |lookup, word| lookup.token(word).ok())
    }

    /// Reads a mnemonic as PTX writes it: `ld.global.b32`.
    ///
    /// # Errors
    /// The word that is not legal, and what is.
    pub fn mnemonic(text: &str) -> Result<Lookup, String> {
        let mut words = text.split('.');
        let first = words.next().unwrap_or_default();
        let Some(start) = Lookup::family(first) else {
            let known = super::family_names();
            let near = tirx_source::suggest(first, known.iter().map(String::as_str));
            let hint = near.map_or(String::new(), |near| format!("\ndid you mean {near}?"));
            return Err(format!("\"{first}\" is no instruction of PTX{hint}"));
        };
        // A word may be escaped for Python here, too.
        words.try_fold(start, |lookup, word| match word.ends_with('_') {
            true => lookup.token(&unescape(word)),
            false => lookup.token(word),
        })
    }

    /// The candidates that can take one more token, as PTX writes it.
    ///
    /// # Errors
    /// What is legal instead, since which release of PTX and for which GPUs.
    pub fn token(&self, token: &str) -> Result<Lookup, String> {
        let mut candidates: Vec<Candidate> = self.candidates.iter().filter_map(|c| c.fill(token)).collect();
        if candidates.is_empty() {
            return Err(self.illegal(token, str::to_string));
        }
        candidates.dedup_by(|a, b| std::ptr::eq(a.instruction, b.instruction));
        let mut tokens = self.tokens.clone();
        tokens.push(token.to_string());
        Ok(Lookup { tokens, candidates })
    }

    /// The candidates that can take one more token, as text writes it: `global_`.
    ///
    /// # Errors
    /// As [`token`](Lookup::token); what is legal instead is written so, too.
    pub fn attribute(&self, name: &str) -> Result<Lookup, String> {
        let token = unescape(name);
        self.token(&token).map_err(|_| self.illegal(&token, escape))
    }

    fn illegal(&self, token: &str, spelled: fn(&str) -> String) -> String {
        let so_far = self.tokens.join(".");
        // Where another spelling of the family has the token, that is what was missing.
        let elsewhere = family(&self.tokens[0]).iter().find_map(|instruction| {
            let with = Tokens::new(instruction).fill(token)?;
            let lacks = self.tokens[1..].iter().find(|t| {
                !instruction
                    .slots
                    .iter()
                    .any(|slot| slot.tokens.iter().any(|known| known == *t))
            })?;
            Some((lacks.clone(), with))
        });
        let legal = self.legal();
        let mut message = format!("\".{token}\" is not legal in {so_far}");
        if let Some((lacks, with)) = elsewhere {
            message.push_str(&format!(
                ": .{token} does not go with .{lacks} (it is of {}, {})",
                with.instruction.family,
                with.since()
            ));
        }
        let near = tirx_source::suggest(token, legal.iter().map(String::as_str));
        message.push('\n');
        if let Some(near) = near {
            message.push_str(&format!("did you mean .{}? ", spelled(near)));
        }
        match legal.is_empty() {
            true => message.push_str(&format!("{so_far} takes no more modifiers")),
            false => {
                let legal: Vec<String> = legal.iter().map(|token| spelled(token)).collect();
                message.push_str(&format!("legal here: {}", legal.join(", ")));
            }
        }
        message.push_str(&format!(" ({})", self.candidates[0].since()));
        message
    }

    /// The tokens that can come next.
    pub fn legal(&self) -> Vec<String> {
        let mut legal: Vec<String> = Vec::new();
        for candidate in &self.candidates {
            for slot in candidate.open() {
                for token in &slot.tokens {
                    if !legal.contains(token) {
                        legal.push(token.clone());
                    }
                }
            }
        }
        legal
    }
}

/// A token as text writes it behind a dot: `global_`, `shared__cta`.
pub fn escape(token: &str) -> String {
    let mut out = token.replace("::", "__").replace(':', "__colon__");
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

/// A token as PTX writes it.
pub fn unescape(name: &str) -> String {
    let out = name.replace("__colon__", ":").replace("__", "::");
    match out.strip_suffix('_') {
        Some(word) => word.to_string(),
        None => out,
    }
}

/// Words of PTX that are keywords of Python.
const KEYWORDS: &[&str] = &["and", "async", "global", "is", "not", "or", "pass", "with"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_in_any_order() {
        let a = Lookup::mnemonic("ld.global.acquire.gpu.b32").unwrap();
        let b = Lookup::mnemonic("ld.acquire.gpu.global.b32").unwrap();
        let text = |l: &Lookup| {
            l.candidates
                .iter()
                .find(|c| c.missing().is_none())
                .unwrap()
                .text()
        };
        assert_eq!(text(&a), "ld.acquire.gpu.global.b32");
        assert_eq!(text(&a), text(&b));
    }

    #[test]
    fn names_of_python_become_words_of_ptx() {
        for (name, word) in [
            ("global_", "global"),
            ("shared__cta", "shared::cta"),
            ("and_", "and"),
            ("b32", "b32"),
        ] {
            assert_eq!(unescape(name), word);
            assert_eq!(escape(word), name);
        }
    }

    #[test]
    fn an_illegal_token_says_what_is_legal() {
        let in_text = Lookup::family("ld").unwrap().attribute("gloabl").unwrap_err();
        assert!(in_text.contains("did you mean .global_?"), "{in_text}");
        assert!(in_text.contains("shared__cta"), "{in_text}");
        let message = Lookup::mnemonic("ld.global.b33").unwrap_err();
        assert!(
            message.contains("\".b33\" is not legal in ld.global"),
            "{message}"
        );
        assert!(message.contains("b32") && message.contains("PTX"), "{message}");
    }

    #[test]
    fn every_rule_of_the_tables_exists() {
        for instruction in super::super::instructions() {
            for name in &instruction.checks {
                assert!(checks::exists(name), "{}: {name}", instruction.place);
            }
        }
    }

    #[test]
    fn every_type_of_the_tables_exists() {
        for instruction in super::super::instructions() {
            for operand in &instruction.operands {
                if operand.form != super::super::OperandForm::Register {
                    continue;
                }
                let slot = instruction.slots.iter().find(|s| s.name == operand.ty);
                let inner = operand.ty.trim_start_matches("acc(").trim_end_matches(')');
                let known = match slot {
                    Some(slot) => slot
                        .tokens
                        .iter()
                        .all(|t| !super::super::types::dtypes(t).is_empty()),
                    None if inner != operand.ty => true,
                    None => !super::super::types::dtypes(operand.ty).is_empty(),
                };
                assert!(
                    known,
                    "{}: type {} of {}",
                    instruction.place, operand.ty, operand.name
                );
            }
        }
    }
}
