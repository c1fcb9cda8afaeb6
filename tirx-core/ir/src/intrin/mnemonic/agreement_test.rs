//! Do a row and the lines that name it describe the same operation?
//!
//! A line states operands with types and directions, words, and whether memory is ordered; the row states arguments, words and CUDA
//! text. A row may take less than its lines: a call that it refuses is an instruction of its own. Only a test compares both.

use super::instructions;
use super::syntax::{Direction, Instruction, Operand, OperandForm};
use super::types;
use crate::intrin::Op;
use crate::intrin::row::{Access, Arg, ArgKind, CudaForm, Row, Space, Ty};
use crate::ir::DType;

/// Words of lines that their row refuses, by row and argument.
const REFUSED: &[(&str, &str, &str)] = &[
    ("ptx.ld_mmio", "sem", "acquire"),
    ("ptx.st_mmio", "sem", "release"),
    ("ptx.mbarrier.expect_tx", "space", "shared"),
    ("ptx.mbarrier.complete_tx", "space", "shared"),
];

/// The rows that a line names: a name within braces stands for each token of that slot.
fn rows_of(line: &Instruction) -> Vec<&'static Row> {
    let Some(call) = &line.row else { return Vec::new() };
    let mut names = vec![call.name.to_string()];
    for slot in &line.slots {
        let part = format!("{{{}}}", slot.name);
        let each = |name: String| -> Vec<String> {
            match name.contains(&part) {
                true => slot.tokens.iter().map(|t| name.replace(&part, t)).collect(),
                false => vec![name],
            }
        };
        names = names.into_iter().flat_map(each).collect();
    }
    let row = |name: String| {
        Op::from_script(&name)
            .unwrap_or_else(|| panic!("{}: {name}", line.place))
            .row()
    };
    names.into_iter().map(row).collect()
}

/// The values that a line of the tables allows for an argument of its row.
#[derive(Debug)]
enum Given<'a> {
    Operand(&'a Operand),
    Words(Vec<&'a str>),
    Numbers(Vec<i64>),
    /// The dtype of a register, or an operand that another form of the line has.
    Other,
}

fn given<'a>(line: &'a Instruction, text: &'a str) -> Given<'a> {
    if let Some(quoted) = text.strip_prefix('\'') {
        return Given::Words(vec![quoted.trim_end_matches('\'')]);
    }
    if let Some((_, table)) = text.split_once('{') {
        let entries = table.trim_end_matches('}').split(',');
        return Given::Words(
            entries
                .filter_map(|entry| Some(entry.rsplit_once(':')?.1))
                .collect(),
        );
    }
    if text.starts_with('?') {
        return Given::Numbers(vec![0, 1]);
    }
    if let Ok(number) = text.parse() {
        return Given::Numbers(vec![number]);
    }
    let first = text.split(['+', '&', '|', '.']).next().unwrap_or(text);
    let slot = line
        .slots
        .iter()
        .find(|slot| slot.name == first.trim_start_matches('#'));
    if let Some(operand) = line.operands.iter().find(|operand| operand.name == first) {
        return Given::Operand(operand);
    }
    match (slot, text.strip_prefix('#')) {
        (Some(slot), None) => Given::Words(slot.tokens.iter().map(String::as_str).collect()),
        (Some(slot), Some(rest)) => {
            let nth = rest
                .split_once('.')
                .map_or(0, |(_, nth)| nth.parse().expect("a number"));
            let number = |token: &String| {
                let mut parts = token
                    .split(|c: char| !c.is_ascii_digit())
                    .filter(|part| !part.is_empty());
                parts.nth(nth)?.parse().ok()
            };
            Given::Numbers(slot.tokens.iter().filter_map(number).collect())
        }
        (None, _) => Given::Other,
    }
}

/// The dtypes that a register of a line may have.
fn dtypes(line: &Instruction, operand: &Operand) -> Vec<DType> {
    match line.slots.iter().find(|slot| slot.name == operand.ty) {
        Some(slot) => slot
            .tokens
            .iter()
            .flat_map(|token| types::dtypes(token))
            .copied()
            .collect(),
        None => types::dtypes(operand.ty).to_vec(),
    }
}

/// Whether an argument can be what the line gives to it.
fn fits(line: &Instruction, row: &Row, arg: &Arg, given: &Given) -> bool {
    match (arg.kind, given) {
        (ArgKind::Text(words), Given::Words(words_of_line)) => words_of_line.iter().all(|word| {
            let refused = REFUSED.contains(&(row.script, arg.name, word));
            word.is_empty() || words.contains(word) != refused
        }),
        (ArgKind::Immediate(low, high), Given::Numbers(numbers)) => {
            numbers.iter().all(|n| (low..=high).contains(n))
        }
        (ArgKind::Immediate(low, high), Given::Operand(operand)) => match &operand.form {
            OperandForm::Immediate(ranges) => ranges.iter().all(|range| range.0 <= high && range.1 >= low),
            _ => false,
        },
        (ArgKind::Bool, Given::Operand(operand)) => {
            operand.form == OperandForm::Immediate(vec![(0, 0), (1, 1)])
        }
        (ArgKind::Flag | ArgKind::Bool, Given::Numbers(numbers)) => {
            numbers.iter().all(|n| (0..=1).contains(n))
        }
        (ArgKind::Pointer(space), Given::Operand(operand)) => match (&operand.form, space) {
            (OperandForm::Address(named), Space::Shared) => named.is_empty() || named.starts_with("shared"),
            (OperandForm::Address(named), Space::Global) => named.is_empty() || *named == "global",
            (OperandForm::Address(_), Space::Generic | Space::FromModifiers) => true,
            _ => operand.ty == "ptr",
        },
        (ArgKind::Register(access, ty) | ArgKind::Element(access, ty), Given::Operand(operand)) => {
            let direction = match access {
                Access::In => Direction::Read,
                Access::Out => Direction::Write,
                Access::InOut => Direction::Update,
            };
            let bits = match ty {
                Ty::B16 => 16,
                Ty::B32 | Ty::F32 => 32,
                Ty::B64 | Ty::F64 => 64,
                // The types of accumulators and of words follow from modifiers.
                Ty::FromWords => return operand.direction == direction,
            };
            operand.direction == direction && dtypes(line, operand).iter().any(|dtype| dtype.bits == bits)
        }
        (ArgKind::Value(dtype), Given::Operand(operand)) => match operand.form {
            // Integers of another sign, or a condition, are converted.
            OperandForm::Register => {
                let integer = |d: &DType| (d.is_integer() || d.is_bool()) && dtype.is_integer();
                dtypes(line, operand)
                    .iter()
                    .any(|d| *d == dtype || integer(d) && (d.bits == dtype.bits || d.is_bool()))
            }
            _ => operand.form == OperandForm::Address("tmem") && dtype == DType::UINT32,
        },
        (ArgKind::Value(dtype), Given::Numbers(_)) => dtype.is_integer(),
        (ArgKind::Any | ArgKind::Node | ArgKind::DTypeName | ArgKind::DType | ArgKind::Name, _) => true,
        (_, Given::Other) => true,
        _ => false,
    }
}

#[test]
fn a_row_takes_what_its_lines_give_to_it() {
    let mut wrong = Vec::new();
    for line in instructions() {
        for row in rows_of(line) {
            let args = &line.row.as_ref().expect("the line names rows").args;
            for (name, text) in args.iter().filter(|(name, _)| !name.starts_with('&')) {
                let arg = row.args.iter().chain(row.words).find(|arg| arg.name == *name);
                let given = given(line, text);
                if !arg.is_some_and(|arg| fits(line, row, arg, &given)) {
                    wrong.push(format!(
                        "{} {}: {name}: {arg:?}, {given:?}",
                        line.place, row.script
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Memory is ordered by the text of a row if it is by the text of its line.
#[test]
fn a_row_orders_memory_as_its_lines_do() {
    for line in instructions() {
        let addresses = line
            .operands
            .iter()
            .filter(|o| matches!(o.form, OperandForm::Address(space) if space != "tmem"));
        if !line.orders && addresses.count() == 0 {
            continue;
        }
        for row in rows_of(line) {
            let orders = !matches!(row.cuda.form, CudaForm::StatePtx(_) | CudaForm::PurePtx(_));
            assert!(orders, "{} {}", line.place, row.script);
        }
    }
}
