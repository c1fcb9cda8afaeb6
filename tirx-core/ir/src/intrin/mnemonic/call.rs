//! Which instruction is a call of the IR, and what are its operands?
//!
//! A call of [`Op::PtxInstruction`] has the mnemonic as its first argument, then the operands
//! in PTX's order, each register of a list for itself, then the predicate if there is one. A register that is written is
//! given by its address; one that is left out is the string `_`. Before the mnemonic stands `@p` where the call has a
//! predicate, `@p=` where the registers keep their values if it does not hold.

use std::ops::Range;

use super::lookup::{Lookup, Tokens};
use super::syntax::{Direction, Operand, OperandForm};
use super::types;
use crate::at;
use crate::intrin::Op;
use crate::ir::{DType, Expr, ExprKind};

/// Marks a register that is left out.
pub const SINK: &str = "_";

/// A call with its operands by name.
#[derive(Debug)]
pub struct InstructionCall<'a> {
    /// The instruction with its modifiers.
    pub tokens: Tokens,
    /// The operands that are there, with the registers of each.
    pub operands: Vec<(&'static Operand, &'a [Expr])>,
    /// The instruction does nothing where this does not hold.
    pub predicate: Option<&'a Expr>,
    /// Whether the registers that it would write keep their values then.
    pub preserves: bool,
}

impl<'a> InstructionCall<'a> {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// What is wrong, without the name of the instruction.
    pub fn read(args: &'a [Expr]) -> Result<InstructionCall<'a>, String> {
        let text = args.get(at!(PtxInstruction.mnemonic)).and_then(Expr::as_str);
        let text = text.ok_or("takes a mnemonic")?;
        let (guard, mnemonic) = text.split_once(' ').unwrap_or(("", text));
        let lookup = Lookup::mnemonic(mnemonic)?;
        // The predicate of a guarded instruction follows its operands.
        let operands = &args[at!(PtxInstruction.operands)..];
        let (rest, predicate) = match (guard, operands) {
            ("", _) => (operands, None),
            (_, [rest @ .., predicate]) => (rest, Some(predicate)),
            _ => return Err("a guarded instruction has a predicate".into()),
        };
        let matched = Matched::select(&lookup, rest, &|_| false)?;
        let parts = matched.parts.iter();
        Ok(InstructionCall {
            operands: parts.map(|(o, range)| (*o, &rest[range.clone()])).collect(),
            tokens: matched.tokens,
            predicate,
            preserves: guard.ends_with('='),
        })
    }

    /// The registers of an operand; none where it is not there.
    pub fn list(&self, name: &str) -> &'a [Expr] {
        self.operands
            .iter()
            .find(|(o, _)| o.name == name)
            .map_or(&[], |(_, list)| list)
    }

    /// An operand of one register.
    pub fn get(&self, name: &str) -> Option<&'a Expr> {
        self.list(name).first()
    }

    /// The dtypes of the registers of an operand, one for all of them.
    pub fn dtype(&self, operand: &Operand, registers: &[Expr]) -> DType {
        let known = registers
            .iter()
            .filter(|e| e.as_str().is_none())
            .find_map(|e| match operand.direction {
                Direction::Read => Some(e.dtype),
                _ => place_dtype(e),
            });
        known
            .or_else(|| types::dtypes(self.tokens.type_of(operand.ty)).first().copied())
            .unwrap_or(DType::UINT32)
    }
}

/// Operands that fit an instruction: which arguments each takes.
#[derive(Debug)]
pub struct Matched {
    /// The instruction with its modifiers.
    pub tokens: Tokens,
    /// The operands that are there, in order, with their arguments.
    pub parts: Vec<(&'static Operand, Range<usize>)>,
}

impl Matched {
    /// The instruction that a mnemonic and these arguments mean. `literal` tells which arguments are numbers without a dtype.
    ///
    /// # Errors
    /// What does not fit.
    pub fn select(
        lookup: &Lookup,
        args: &[Expr],
        literal: &dyn Fn(usize) -> bool,
    ) -> Result<Matched, String> {
        let mut mistakes: Vec<String> = Vec::new();
        let mut missing = Vec::new();
        let mut counts: Vec<String> = Vec::new();
        let mut misfits: Vec<String> = Vec::new();
        for tokens in &lookup.candidates {
            if let Some(slot) = tokens.missing() {
                missing.push(slot);
                continue;
            }
            if let Some(mistake) = tokens.mistake() {
                if !mistakes.contains(&mistake) {
                    mistakes.push(mistake);
                }
                continue;
            }
            let parts = layout(tokens);
            let wanted: usize = parts.last().map_or(0, |(_, range)| range.end);
            if wanted != args.len() {
                let text = signature(&parts);
                if !counts.contains(&text) {
                    counts.push(text);
                }
                continue;
            }
            let misfit = parts.iter().find_map(|(operand, range)| {
                range
                    .clone()
                    .find_map(|i| fits(operand, tokens, &args[i], literal(i)).err())
            });
            let agree = || {
                parts
                    .iter()
                    .find_map(|(operand, range)| agree(operand, &args[range.clone()], range.start, literal))
            };
            match misfit.or_else(agree) {
                None => {
                    return Ok(Matched {
                        tokens: tokens.clone(),
                        parts,
                    });
                }
                Some(misfit) if misfits.contains(&misfit) => {}
                Some(misfit) => misfits.push(misfit),
            }
        }
        if !misfits.is_empty() {
            misfits.truncate(4);
            return Err(misfits.join("; or "));
        }
        if !counts.is_empty() {
            return Err(format!(
                "takes {}, found {} operands",
                counts.join(" or "),
                args.len()
            ));
        }
        if !mistakes.is_empty() {
            return Err(mistakes.join("; "));
        }
        let mut words: Vec<&str> = missing
            .iter()
            .flat_map(|s| s.tokens.iter().map(String::as_str))
            .collect();
        words.sort_unstable();
        words.dedup();
        Err(format!(
            "is not complete: one of {} must be added",
            words.join(", ")
        ))
    }
}

/// `(d, addr)`; of a list its first and its last element, as in `(r0, …, r3, p)`.
fn signature(parts: &[(&'static Operand, Range<usize>)]) -> String {
    let names = parts.iter().map(|(operand, range)| match range.len() {
        1 => operand.name.to_string(),
        2 => format!("{0}0, {0}1", operand.name),
        n => format!("{0}0, …, {0}{1}", operand.name, n - 1),
    });
    format!("({})", names.collect::<Vec<_>>().join(", "))
}

/// The operands that take arguments under these modifiers, with those that each takes.
fn layout(tokens: &Tokens) -> Vec<(&'static Operand, Range<usize>)> {
    let mut at = 0;
    let ranges = tokens.operands().map(|(operand, count)| {
        at += count;
        (operand, at - count..at)
    });
    ranges.collect()
}

/// The dtype of the element that a register operand names: `x[i]`, or its address.
pub fn place_dtype(e: &Expr) -> Option<DType> {
    match &e.kind {
        ExprKind::BufferLoad { buffer, .. } => Some(buffer.dtype),
        _ => e
            .as_call(Op::AddressOf)
            .and_then(|args| place_dtype(args.get(at!(AddressOf.obj))?)),
    }
}

fn describe(e: &Expr) -> String {
    match e.as_str() {
        Some(text) => format!("\"{text}\""),
        None => e.dtype.to_string(),
    }
}

/// Whether an argument fits an operand.
fn fits(operand: &Operand, tokens: &Tokens, e: &Expr, literal: bool) -> Result<(), String> {
    let name = operand.name;
    match &operand.form {
        OperandForm::Literal(_) => Ok(()),
        OperandForm::Immediate(ranges) => match e.as_int().map(i64::try_from) {
            Some(Ok(v)) if ranges.iter().any(|(low, high)| (*low..=*high).contains(&v)) => Ok(()),
            // A variable of a loop that is unrolled later becomes a constant.
            None if e.dtype.is_integer() && !matches!(e.kind, ExprKind::Str(_)) => Ok(()),
            _ => {
                let text = ranges.iter().map(|(low, high)| match low == high {
                    true => low.to_string(),
                    false if *high == i64::from(i32::MAX) => format!("{low} or more"),
                    false => format!("{low} to {high}"),
                });
                let text: Vec<String> = text.collect();
                Err(format!(
                    "\"{name}\" must be an integer constant, {}, found {}",
                    text.join(" or "),
                    describe_value(e)
                ))
            }
        },
        OperandForm::Address(space) => {
            let space = match *space {
                "" => space_of(tokens),
                space => space,
            };
            let moved = e.as_call(Op::PtxAddr);
            let base = moved.and_then(|args| args.get(at!(PtxAddr.base))).unwrap_or(e);
            let what = match () {
                () if space == "tmem" => (
                    base.dtype == DType::UINT32,
                    "an address of tensor memory (uint32)",
                ),
                () if space.starts_with("shared") => (
                    base.dtype.is_handle() || matches!(base.dtype, DType::UINT32 | DType::UINT64),
                    "a pointer such as A.ptr_to([i]), or an address in shared memory (uint32)",
                ),
                () => (
                    base.dtype.is_handle() || base.dtype == DType::UINT64,
                    "a pointer such as A.ptr_to([i])",
                ),
            };
            match what.0 && base.as_str().is_none() {
                true => Ok(()),
                false => Err(format!("\"{name}\" must be {}, found {}", what.1, describe(base))),
            }
        }
        OperandForm::Register => {
            if e.as_str() == Some(SINK) {
                return match operand.sinks {
                    true => Ok(()),
                    false => Err(format!(
                        "\"{name}\" must be given: T.ptx.SINK is not possible here"
                    )),
                };
            }
            if e.as_call(Op::PtxAddr).is_some() {
                return Err(format!("\"{name}\" is a register, and T.ptx.addr is an address"));
            }
            let ty = tokens.type_of(operand.ty);
            let dtypes = types::dtypes(ty);
            let named = || {
                let names: Vec<String> = dtypes.iter().map(ToString::to_string).collect();
                names.join(", ")
            };
            if operand.direction != Direction::Read {
                let predicate = |d: DType| ty == "pred" && (d.is_bool() || d.is_integer() && d.bits == 32);
                return match place_dtype(e) {
                    Some(dtype) if types::accepts(ty, dtype, operand.wider) || predicate(dtype) => Ok(()),
                    None if e.dtype.is_handle() => Ok(()),
                    Some(dtype) => Err(format!(
                        "\"{name}\" is written as {ty}: a variable of dtype {} is needed, found {dtype}",
                        if ty == "pred" { "uint32".into() } else { named() }
                    )),
                    None => Err(format!(
                        "\"{name}\" is written: it must be a variable or an element of a buffer, found {}",
                        describe(e)
                    )),
                };
            }
            if ty == "pred" {
                return match e.dtype.is_bool() {
                    true => Ok(()),
                    false => Err(format!(
                        "\"{name}\" is a predicate: a bool is needed, or T.ptx.pred(x), found {}",
                        describe(e)
                    )),
                };
            }
            let number = literal && (e.dtype.is_integer() || dtypes.iter().any(|d| d.is_float()));
            if number || types::accepts(ty, e.dtype, operand.wider) {
                return Ok(());
            }
            Err(format!(
                "\"{name}\" is {ty}: dtype {} is needed, found {}",
                named(),
                describe(e)
            ))
        }
    }
}

fn describe_value(e: &Expr) -> String {
    e.as_int().map_or_else(|| describe(e), |v| v.to_string())
}

/// The space of an address: the token of the slot `space`, or a space that stands in the mnemonic.
pub fn space_of(tokens: &Tokens) -> &'static str {
    match tokens.get("space") {
        "" => ["global", "shared", "shared::cta", "shared::cluster", "local"]
            .into_iter()
            .find(|space| tokens.has(space))
            .unwrap_or(""),
        space => space,
    }
}

/// The registers of a list have one dtype.
fn agree(operand: &Operand, args: &[Expr], start: usize, literal: &dyn Fn(usize) -> bool) -> Option<String> {
    let dtypes = args
        .iter()
        .enumerate()
        .filter(|(i, e)| !literal(start + i) && e.as_str() != Some(SINK));
    let mut dtypes = dtypes.filter_map(|(_, e)| match operand.direction {
        Direction::Read => Some(e.dtype),
        _ => place_dtype(e),
    });
    let first = dtypes.next()?;
    let other = dtypes.find(|d| *d != first)?;
    Some(format!(
        "the registers of \"{}\" have one dtype, found {first} and {other}",
        operand.name
    ))
}

/// Checks a call for the verifier.
///
/// # Errors
/// What is wrong.
pub fn check(call: &crate::intrin::Operands) -> Result<(), String> {
    let mut args: Vec<Expr> = Vec::new();
    for (_, part) in call.each() {
        args.extend(part.iter().cloned());
    }
    InstructionCall::read(&args).map(drop)
}
