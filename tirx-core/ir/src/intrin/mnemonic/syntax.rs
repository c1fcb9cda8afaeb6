//! What does a line of the tables say?
//!
//! ```text
//! ld.<sem=relaxed acquire>.<scope=@scopes>{.<space=global shared>}{.<vec=v2 v4>}.<type=@element>  {=d:~type*vec}, [addr] ; 6.0 sm_70 check=width
//!     -> ptx.ld_{sem} addr ptx_type=type dst=d scope space vec
//! ```
//!
//! **The mnemonic** is a list of *slots*. `.word` is a slot with one token, `.<name=a b c>` one with several, `.<name>` one whose
//! tokens are the set of that name; braces make a slot optional. `@set name = a b c` defines a set, `@name` among tokens
//! stands for its members. The first word is the family; it may be a slot, too.
//!
//! **The operands** are in PTX's order:
//!
//! | notation | meaning |
//! |---|---|
//! | `a`, `=d`, `+d` | a register that is read, written, or both |
//! | `a:b32`, `a:atype` | of this type, or of the type that a slot names; without it, of the type of the slot `type` |
//! | `a:~type` | the register may be wider than the type |
//! | `acc(dtype)` | the type of accumulators of a matrix: `f32` and `f64` themselves, else words of 32 bits |
//! | `{a*4}`, `{a*vec}`, `{a*name}` | a list of registers; as many as the number, the slot (`v4`), or a function of `counts.rs` |
//! | `{a*4!}` | of which some may be left out: `_`, `T.ptx.SINK` |
//! | `[p]`, `[p@global]` | an address, in the space of the slot `space` or in this one |
//! | `[m@global, {c*dim}]` | an address that has several parts |
//! | `=d\|=p:pred` | a pair of destinations |
//! | `#n:0..7`, `#n:4\|8`, `#n:0..` | an integer in the text of the instruction |
//! | `_`, `128` | a text that is always there |
//! | `x?slot`, `x?slot=token` | there where the slot is filled (with the token) |
//! | `{, x}`, `{\|=q}` | an operand that may be left out: the line stands for two |
//!
//! **Properties** follow `;`: the release of the PTX ISA, the GPUs (`sm_90`, or `sm_90a|sm_100f`), `orders` for instructions that
//! order memory without naming an address, `check=` for a rule of `checks.rs`, `means=` for the [meaning](Meaning) if it is not the
//! longest of the words of `meaning.rs` with which the mnemonic begins. `@since` gives the release and GPUs of the lines
//! that follow, `@flags orders` says it of all of them. `@newer v4&@element64 8.8 sm_100` gives the release and the
//! GPUs that the lines that follow need if these tokens stand in the mnemonic (`bf16&bf16`: twice); `@newer` alone ends all of these.
//!
//! **The row** that is the same operation follows `->`: its name, then its arguments: `name` (the operand or slot of that name),
//! `name=operand`, `name=slot`, `name='text'`, `name=1`, `name=?slot` (whether the slot is filled), `name=#slot` (the number in the
//! token; `#slot.1` the second one; -1 where the slot is empty), `name=@type` (the dtype of a register of that type), `name=slot{token:value,*:value}`
//! (by a table), `a|1` (the operand, or the number where it is not there), `a+b` (the operands of both), `a&b` (the token that both have), and conditions: `&slot` (it must be filled), `&half`, `&small`.

mod operands;

use operands::{row_call, variants};

use std::borrow::Cow;

pub use super::counts::Count;
use super::meaning::Meaning;
use crate::intrin::GpuSet;

/// An instruction: one line of syntax.
#[derive(Debug)]
pub struct Instruction {
    /// The first word of the mnemonic: `ld`.
    pub family: &'static str,
    /// The words behind it, in PTX's order.
    pub slots: Vec<Slot>,
    /// The operands, in PTX's order.
    pub operands: Vec<Operand>,
    /// The operation that it performs.
    pub meaning: Meaning,
    /// The first release of the PTX ISA that has it.
    pub ptx: (u32, u32),
    /// The GPUs that have it.
    pub gpus: Vec<GpuSet>,
    /// Tokens that need more than the line.
    pub newer: Vec<NewerTokens>,
    /// Whether it orders memory without naming an address.
    pub orders: bool,
    /// The rules that a line cannot express, by name.
    pub checks: Vec<&'static str>,
    /// The row that is the same operation.
    pub row: Option<RowCall>,
    /// Where it is: `memory.ptx:12`.
    pub place: String,
}

/// Tokens that need a later release of the PTX ISA, or other GPUs, than the line that has them.
#[derive(Clone, Debug)]
pub struct NewerTokens {
    /// The tokens, which must all stand in the mnemonic.
    pub tokens: Vec<&'static str>,
    /// The first release of the PTX ISA that has them.
    pub ptx: (u32, u32),
    /// The GPUs that have them; empty for those of the line.
    pub gpus: Vec<GpuSet>,
}

/// One word of a mnemonic.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its name; of a slot with one token the token.
    pub name: &'static str,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Whether it may be left out.
    pub optional: bool,
}

impl Slot {
    /// Whether each mnemonic has the one token of this slot.
    pub(super) fn is_fixed(&self) -> bool {
        !self.optional && self.tokens == [self.name]
    }
}

/// An operand.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub form: OperandForm,
    /// How a register is used.
    pub direction: Direction,
    /// The type of a register: a type of PTX, or the name of a slot.
    pub ty: &'static str,
    /// Whether the register may be wider than its type.
    pub wider: bool,
    /// How many registers.
    pub count: Count,
    /// Whether it is written within braces.
    pub braces: bool,
    /// Whether single registers may be left out.
    pub sinks: bool,
    /// The slot, and its token, without which the operand is not there.
    pub present: Option<(&'static str, &'static str)>,
    /// Whether it is a further part of the address that the operand before it begins.
    pub continues: bool,
    /// Whether it is the second of a pair with the operand before it.
    pub pipe: bool,
}

/// What an operand is.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandForm {
    /// A register.
    Register,
    /// An address in a space; empty for that of the slot `space`.
    Address(&'static str),
    /// An integer in the text, in these inclusive ranges.
    Immediate(Vec<(i64, i64)>),
    /// A text.
    Literal(&'static str),
}

/// How an instruction uses a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Reads and writes it.
    Update,
}

/// A call of a row.
#[derive(Clone, Debug)]
pub struct RowCall {
    /// The destination that the row's value is written to.
    pub result: Option<&'static str>,
    /// The row's name; `{slot}` within it is the slot's token.
    pub name: &'static str,
    /// Its arguments: the row's name of each and where its value comes from.
    pub args: Vec<(&'static str, &'static str)>,
}

/// Reads a table.
///
/// # Errors
/// What is malformed, and where.
pub fn read(table: &str, text: &'static str) -> Result<Vec<Instruction>, String> {
    let mut out = Vec::new();
    each_line(table, text, ALL, |reader, parts, place| {
        reader.instruction(parts, place, |_| true, &mut out)
    })?;
    Ok(out)
}

/// Reads the instructions of one family from a table.
///
/// # Errors
/// What is malformed, and where.
pub(super) fn read_family(table: &str, text: &'static str, family: &str) -> Result<Vec<Instruction>, String> {
    let mut out = Vec::new();
    each_line(table, text, ALL, |reader, parts, place| {
        if !reader.first_words(parts[0])?.iter().any(|word| word == family) {
            return Ok(());
        }
        reader.instruction(parts, place, |word| word == family, &mut out)
    })?;
    Ok(out)
}

/// The rows that the lines of a table name, each with the GPUs of the line. A compilation that asks for the GPUs of a row pays for
/// this: nothing else of the table is read.
///
/// # Errors
/// What is malformed, and where.
pub(super) fn gpus_of_rows(
    table: &str,
    text: &'static str,
) -> Result<Vec<(&'static str, Vec<GpuSet>)>, String> {
    let mut out = Vec::new();
    let (mut since, mut mnemonic, mut more) = (Vec::new(), "", "");
    for (line, number) in text.lines().zip(1..) {
        let wrong = |message: String| format!("{}: {message}", TablePosition { table, line: number });
        if let Some(row) = line.strip_prefix("    -> ") {
            let (_, row) = row.split_once(" = ").unwrap_or(("", row));
            let said = more.split_once(';').or_else(|| mnemonic.split_once(';'));
            let mut words = said.map_or("", |(_, said)| said).split(' ');
            let gpus = match words.find(|word| word.starts_with("sm_")) {
                Some(word) => gpus(word).map_err(wrong)?,
                None => since.clone(),
            };
            out.push((row.split(' ').next().unwrap_or(row), gpus));
        } else if line.starts_with(' ') {
            more = line;
        } else if let Some(said) = line.strip_prefix("@since ") {
            since = properties(said).map_err(wrong)?.gpus;
        } else {
            (mnemonic, more) = (line, "");
        }
    }
    Ok(out)
}

/// The families that a table has instructions of, in its order.
///
/// # Errors
/// What is malformed, and where.
pub(super) fn families(table: &str, text: &'static str) -> Result<Vec<Cow<'static, str>>, String> {
    let mut out: Vec<Cow<'static, str>> = Vec::new();
    each_line(table, text, SETS, |reader, parts, _| {
        for word in reader.first_words(parts[0])? {
            if out.last() != Some(&word) {
                out.push(word);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// Every directive.
const ALL: fn(&str) -> bool = |_| true;
/// Those that the first words of lines need.
const SETS: fn(&str) -> bool = |directive| directive.starts_with("set ");

/// Calls a function with each line of syntax, the lines that continue it, and its number. Of the directives it reads those that
/// `is_needed` names.
fn each_line(
    table: &str,
    text: &'static str,
    is_needed: fn(&str) -> bool,
    mut line_of_syntax: impl FnMut(&Reader, &[&'static str], TablePosition) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = Reader::default();
    let mut lines = text.lines().zip(1..).peekable();
    let mut parts = Vec::new();
    while let Some((line, number)) = lines.next() {
        let place = TablePosition { table, line: number };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |message: String| format!("{place}: {message}");
        if let Some(rest) = line.strip_prefix('@') {
            if is_needed(rest) {
                reader.directive(rest).map_err(wrong)?;
            }
            continue;
        }
        // A row, or more operands, on the lines that follow.
        parts.clear();
        parts.push(line);
        while let Some((more, _)) = lines.next_if(|(more, _)| more.starts_with("    ")) {
            parts.push(more.trim());
        }
        line_of_syntax(&reader, &parts, place).map_err(wrong)?;
    }
    Ok(())
}

/// Where a line is, as text: `memory.ptx:12`.
#[derive(Clone, Copy)]
struct TablePosition<'a> {
    table: &'a str,
    line: usize,
}

impl std::fmt::Display for TablePosition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.ptx:{}", self.table, self.line)
    }
}

/// What the lines so far have defined.
#[derive(Default)]
struct Reader {
    sets: Vec<(&'static str, Vec<&'static str>)>,
    ptx: (u32, u32),
    gpus: Vec<GpuSet>,
    newer: Vec<NewerTokens>,
    orders: bool,
}

/// A text at its first space outside of brackets.
fn split_mnemonic(line: &str) -> (&str, &str) {
    let mut depth = 0;
    for (i, c) in line.char_indices() {
        match c {
            '<' | '{' => depth += 1,
            '>' | '}' => depth -= 1,
            ' ' if depth == 0 => return (&line[..i], line[i..].trim()),
            _ => {}
        }
    }
    (line, "")
}

/// The parts of a list that commas outside of brackets separate.
fn split_list(text: &'static str) -> Vec<&'static str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|part| !part.is_empty());
    out
}

impl Reader {
    fn directive(&mut self, text: &'static str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "set" => {
                let (name, tokens) = rest.split_once('=').ok_or("a set is name = tokens")?;
                let tokens = self.tokens(tokens);
                self.sets.retain(|(known, _)| *known != name.trim());
                self.sets.push((name.trim(), tokens?));
            }
            "since" => {
                let since = properties(rest)?;
                self.ptx = since.ptx.ok_or("the release is missing")?;
                self.gpus = since.gpus;
            }
            "newer" if rest.is_empty() => self.newer.clear(),
            "newer" => {
                let (tokens, needs) = rest.split_once(' ').ok_or("the release is missing")?;
                let needs = properties(needs)?;
                let mut all: Vec<Vec<&'static str>> = vec![Vec::new()];
                for part in tokens.split('&') {
                    let each = self.tokens(part)?;
                    let with = |known: &Vec<_>| -> Vec<Vec<_>> {
                        let one = |token: &&'static str| [known.as_slice(), &[*token]].concat();
                        each.iter().map(one).collect()
                    };
                    all = all.iter().flat_map(with).collect();
                }
                let ptx = needs.ptx.ok_or("the release is missing")?;
                let newer = |tokens| NewerTokens {
                    tokens,
                    ptx,
                    gpus: needs.gpus.clone(),
                };
                self.newer.extend(all.into_iter().map(newer));
            }
            "flags" => {
                self.orders = rest.contains("orders");
            }
            _ => return Err(format!("@{word} is unknown")),
        }
        Ok(())
    }

    fn set(&self, name: &str) -> Result<&[&'static str], String> {
        let found = self.sets.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, tokens)| tokens.as_slice())
            .ok_or_else(|| format!("there is no set {name}"))
    }

    fn tokens(&self, text: &'static str) -> Result<Vec<&'static str>, String> {
        let mut out = Vec::new();
        for word in text.split_whitespace() {
            match word.strip_prefix('@') {
                Some(name) => out.extend(self.set(name)?),
                None => out.push(word),
            }
        }
        Ok(out)
    }

    /// The families that a line is of: its first word, or the words that a first slot has.
    fn first_words(&self, line: &'static str) -> Result<Vec<Cow<'static, str>>, String> {
        if !line.starts_with('<') {
            return Ok(line.split(['.', ' ', '{']).take(1).map(Cow::Borrowed).collect());
        }
        let end = line.find('>').ok_or("`>` is missing")?;
        let slots = self.slots(&line[..=end])?;
        let words = slots.into_iter().flat_map(|slot| slot.tokens);
        Ok(words.map(Cow::Owned).collect())
    }

    /// The instructions of a line, those of the families that are wanted.
    fn instruction(
        &self,
        lines: &[&'static str],
        place: TablePosition,
        wanted: impl Fn(&str) -> bool,
        out: &mut Vec<Instruction>,
    ) -> Result<(), String> {
        let (mnemonic, first) = split_mnemonic(lines[0]);
        // The lines' texts are parts of a static text, so that pieces of them live as long.
        let mut operands: Vec<&'static str> = Vec::new();
        let mut said = "";
        let mut row = None;
        for text in std::iter::once(first).chain(lines[1..].iter().copied()) {
            if let Some(call) = text.strip_prefix("-> ") {
                row = Some(row_call(call)?);
                continue;
            }
            let (list, rest) = text.split_once(';').unwrap_or((text, ""));
            operands.extend(split_list(list));
            if !rest.is_empty() {
                said = rest;
            }
        }
        let said = properties(said)?;
        let slots = self.slots(mnemonic)?;
        for operands in variants(&operands)? {
            let Some((family, slots)) = slots.split_first() else {
                return Err("a mnemonic has a first word".into());
            };
            for word in family.tokens.iter().filter(|word| wanted(word)) {
                // The words of a family are few, and live as long as the table.
                let family: &'static str = Box::leak(word.clone().into_boxed_str());
                let possible = |newer: &&NewerTokens| {
                    let listed =
                        |token: &&str| slots.iter().any(|slot| slot.tokens.iter().any(|t| t == token));
                    newer.tokens.iter().all(listed)
                };
                let fixed = slots.iter().take_while(|slot| slot.is_fixed());
                let words: Vec<&str> = std::iter::once(family)
                    .chain(fixed.map(|slot| slot.name))
                    .collect();
                out.push(Instruction {
                    family,
                    slots: slots.to_vec(),
                    operands: operands.clone(),
                    meaning: match said.meaning {
                        Some(name) => Meaning::named(name),
                        None => Meaning::from_words(&words),
                    }
                    .ok_or("the meaning is missing: add a word to meaning.rs, or name one with means=")?,
                    ptx: said.ptx.unwrap_or(self.ptx),
                    gpus: match said.gpus.is_empty() {
                        true => self.gpus.clone(),
                        false => said.gpus.clone(),
                    },
                    newer: self.newer.iter().filter(possible).cloned().collect(),
                    orders: self.orders || said.orders,
                    checks: said.checks.clone(),
                    row: row.clone(),
                    place: place.to_string(),
                });
            }
        }
        Ok(())
    }

    fn slots(&self, mnemonic: &'static str) -> Result<Vec<Slot>, String> {
        let mut out = Vec::new();
        let mut rest = mnemonic;
        let mut optional = false;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('{') {
                optional = true;
                rest = inner;
                continue;
            }
            if let Some(outer) = rest.strip_prefix('}') {
                optional = false;
                rest = outer;
                continue;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let (name, tokens): (&'static str, Vec<&'static str>);
            if let Some(inner) = rest.strip_prefix('<') {
                let end = inner.find('>').ok_or("a < without a >")?;
                let (inner, after) = (&inner[..end], &inner[end + 1..]);
                rest = after;
                match inner.split_once('=') {
                    Some((slot, list)) => (name, tokens) = (slot, self.tokens(list)?),
                    None => (name, tokens) = (inner, self.set(inner)?.to_vec()),
                }
            } else {
                let end = rest.find(['.', '{', '}']).unwrap_or(rest.len());
                (name, tokens) = (&rest[..end], vec![&rest[..end]]);
                rest = &rest[end..];
            }
            if name.is_empty() || tokens.is_empty() {
                return Err(format!("a slot without tokens in {mnemonic}"));
            }
            out.push(Slot {
                name,
                tokens: tokens.iter().flat_map(|t| shapes(t)).collect(),
                optional,
            });
        }
        Ok(out)
    }
}

/// The shapes of `wgmma` that a token stands for: `N` is every multiple of 8 up to 256, `S` and `B` are those of integers and bits.
fn shapes(token: &str) -> Vec<String> {
    let Some((head, tail)) = ['N', 'S', 'B'].iter().find_map(|c| {
        token
            .strip_prefix("m64n")?
            .split_once(*c)
            .map(|(_, tail)| (*c, tail))
    }) else {
        return vec![token.to_string()];
    };
    let integers = |n: &u32| *n == 8 || *n == 24 || n.is_multiple_of(16) && *n <= 224;
    let all = (1..=32).map(|i| 8 * i);
    let columns: Vec<u32> = match head {
        'N' => all.collect(),
        'S' => all.filter(integers).collect(),
        _ => all.filter(|n| integers(n) || *n == 240 || *n == 256).collect(),
    };
    columns.iter().map(|n| format!("m64n{n}{tail}")).collect()
}

/// What follows `;`.
#[derive(Default)]
struct Properties {
    ptx: Option<(u32, u32)>,
    gpus: Vec<GpuSet>,
    orders: bool,
    checks: Vec<&'static str>,
    meaning: Option<&'static str>,
}

fn properties(text: &'static str) -> Result<Properties, String> {
    let mut out = Properties::default();
    for word in text.split_whitespace() {
        if word.starts_with("sm_") {
            out.gpus = gpus(word)?;
        } else if let Some(name) = word.strip_prefix("check=") {
            out.checks.push(name);
        } else if let Some(word) = word.strip_prefix("means=") {
            out.meaning = Some(word);
        } else if word == "orders" {
            out.orders = true;
        } else {
            let (major, minor) = word.split_once('.').ok_or(format!("{word} is no property"))?;
            let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{word} is no release"));
            out.ptx = Some((number(major)?, number(minor)?));
        }
    }
    Ok(out)
}

/// `sm_90a|sm_100f`.
fn gpus(text: &str) -> Result<Vec<GpuSet>, String> {
    text.split('|').map(gpu).collect()
}

/// `sm_90`: this one and later ones; `sm_90a`: this one; `sm_100f`: this one's family.
fn gpu(text: &str) -> Result<GpuSet, String> {
    let rest = text.strip_prefix("sm_").ok_or(format!("{text} is no GPU"))?;
    let digits = rest.trim_end_matches(['a', 'f']);
    let number: u32 = digits.parse().map_err(|_| format!("{text} is no GPU"))?;
    let families = |n: u32| -> &'static [u32] {
        match n / 10 {
            9 => &[90],
            10 => &[100],
            11 => &[110],
            _ => &[120],
        }
    };
    // The first GPU of a family has no features that others of it lack.
    let least = if number.is_multiple_of(10) { 0 } else { number };
    Ok(match &rest[digits.len()..] {
        "" => GpuSet::least(number),
        "a" => GpuSet {
            least,
            ..GpuSet::exact(families(number))
        },
        _ => GpuSet {
            least,
            ..GpuSet::families(families(number))
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_well_formed() {
        for (name, text) in super::super::TABLES {
            let table = read(name, text).unwrap_or_else(|message| panic!("{message}"));
            assert!(!table.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_family_read_alone_is_that_of_the_tables() {
        let key = |i: &Instruction| format!("{i:?}");
        let all = super::super::instructions();
        for name in all
            .iter()
            .map(|i| i.family)
            .collect::<std::collections::BTreeSet<_>>()
        {
            let of_all: Vec<String> = all.iter().filter(|i| i.family == name).map(key).collect();
            let alone: Vec<String> = super::super::family(name).iter().map(key).collect();
            assert_eq!(alone, of_all, "{name}");
        }
        assert!(super::super::family("nothing").is_empty());
    }

    #[test]
    fn a_line_gives_slots_and_operands() {
        let text = "ld{.weak}.<type=b8 b32>  {=d:~type*vec!}, [addr@global], policy:u64?weak ; 7.4 sm_70";
        let table = read("test", text).unwrap();
        let [ld] = table.as_slice() else {
            panic!("one instruction")
        };
        assert_eq!((ld.family, ld.slots.len(), ld.ptx), ("ld", 2, (7, 4)));
        assert!(ld.slots[0].optional && !ld.slots[1].optional);
        let d = &ld.operands[0];
        assert!(d.wider && d.sinks && d.braces && d.direction == Direction::Write);
        assert_eq!(ld.operands[1].form, OperandForm::Address("global"));
        assert_eq!(ld.operands[2].present, Some(("weak", "")));
    }

    #[test]
    fn newer_tokens_are_those_that_a_line_can_have() {
        let text = "@set wide = b64 f64\n@since 1.0 sm_70\n@newer v4&@wide 8.8 sm_100\n@newer new 9.3\n\
                    ld{.<vec=v2 v4>}.<type=b32 b64>  =d, [addr]\n@newer\nld{.new}.b8  =d, [addr]";
        let table = read("test", text).unwrap();
        let [ld, after] = table.as_slice() else {
            panic!("two instructions")
        };
        assert_eq!(ld.newer.len(), 1, "no f64, and no `new`");
        assert_eq!(
            (ld.newer[0].tokens.as_slice(), ld.newer[0].ptx),
            (&["v4", "b64"][..], (8, 8))
        );
        assert!(after.newer.is_empty());
    }

    #[test]
    fn optional_operands_make_several_instructions() {
        let table = read("test", "vote.<op=a b>  =d:u32|=p:pred, a:u32{, b:u32}").unwrap();
        let counts: Vec<usize> = table.iter().map(|i| i.operands.len()).collect();
        assert_eq!(counts, [4, 3]);
        assert!(table[0].operands[1].pipe);
    }
}
