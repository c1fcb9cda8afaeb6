//! The text of instructions that are given by their mnemonics.
//!
//! Each becomes a small function of its operands, as the operations that have a row do. The text follows from the
//! instruction's line in the tables ([`crate::intrin::mnemonic`]): destinations are pointers, registers that `asm` cannot
//! bind (predicates, bytes) are declared within the text and moved to or from a register that it can.

use super::code::Code;
use super::emitter::Emitter;
use super::rows::Parameter;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::Op;
use crate::intrin::mnemonic::call::{SINK, space_of};
use crate::intrin::mnemonic::{Direction, InstructionCall, Operand, OperandForm, types};
use crate::intrin::row::Access;
use crate::ir::at;
use crate::ir::{DType, ELEMENT_TYPES, Expr};

/// The parts of the function while it is written.
#[derive(Default)]
struct Body {
    parameters: Vec<Parameter>,
    passed: Vec<Expr>,
    /// Constraints of the registers that are written, and of those that are read.
    outputs: Vec<String>,
    inputs: Vec<String>,
    /// Statements before and after `asm`.
    before: Vec<String>,
    after: Vec<String>,
    /// Declarations and conversions in the text, before and after the instruction. `%o0`, `%i0` are places of outputs and inputs.
    declared: Vec<String>,
    into: Vec<String>,
    back: Vec<String>,
    /// Whether memory is read or written through an address.
    touches_memory: bool,
}

impl Emitter<'_, '_> {
    /// A call of an instruction by its mnemonic.
    pub(super) fn mnemonic(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        let wrong = |message: String| {
            let name = args.get(at!(PtxInstruction.mnemonic)).and_then(Expr::as_str);
            let name = name.unwrap_or("instruction");
            let (message, help) = message.split_once('\n').unwrap_or((&message, ""));
            let error = Diagnostic::new(e.span, format!("T.ptx[\"{name}\"]: {message}"));
            Box::new(if help.is_empty() { error } else { error.help(help) })
        };
        let call = InstructionCall::read(args).map_err(wrong)?;
        let mut body = Body::default();
        let mut texts: Vec<(String, &Operand)> = Vec::new();
        let mut there = call.operands.iter();
        let mut next = there.next();
        for operand in &call.tokens.instruction.operands {
            if let OperandForm::Literal(text) = operand.form {
                texts.push((text.to_string(), operand));
                continue;
            }
            let Some((_, registers)) = next.filter(|(o, _)| std::ptr::eq(*o, operand)) else {
                continue;
            };
            next = there.next();
            let text = body.operand(&call, operand, registers).map_err(wrong)?;
            texts.push((text, operand));
        }
        let name = call.tokens.text();
        let list = joined(&texts);
        let mut instruction = match list.is_empty() {
            true => format!("{name};"),
            false => format!("{name} {list};"),
        };
        if let Some(predicate) = call.predicate {
            body.declared.push(".reg .pred guard;".into());
            let place = body.read("guard_", "unsigned int", "r", "guard_", predicate.clone());
            body.into.push(format!("setp.ne.b32 guard, {place}, 0;"));
            instruction = format!("@guard {instruction}");
        }
        let inner = [&body.declared[..], &body.into, &[instruction], &body.back]
            .concat()
            .join(" ");
        let inner = match body.declared.is_empty() {
            true => inner,
            false => format!("{{ {inner} }}"),
        };
        let text = numbered(&inner, body.outputs.len());
        // Moves are dropped where nothing needs them. Other instructions are kept as they are written, as in TVM's text: a loop
        // without anything volatile is split by nvcc at its conditions, and is then no longer unrolled, so that arrays
        // that it indexes lie in memory.
        let pure = call.tokens.instruction.family == "mov";
        let clobbers = body.touches_memory || call.tokens.instruction.orders;
        let asm = format!(
            "asm{}(\"{text}\" :{} :{}{});",
            if pure { "" } else { " volatile" },
            spaced(&body.outputs),
            spaced(&body.inputs),
            if clobbers { " : \"memory\"" } else { "" },
        );
        let lines = [&body.before[..], &[asm], &body.after].concat();
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        for parameter in &body.parameters {
            let row = ELEMENT_TYPES.iter().find(|row| row.cuda == Some(parameter.ty));
            self.unit
                .needs
                .headers
                .extend(row.and_then(|row| super::types::header(row.dtype())));
        }
        let function = function_name(&name);
        self.row_function(function, "void", &body.parameters, &lines, &body.passed)
    }
}

fn spaced(list: &[String]) -> String {
    if list.is_empty() {
        String::new()
    } else {
        format!(" {}", list.join(", "))
    }
}

/// `tirx_ptx_ld_global_b32`.
fn function_name(text: &str) -> String {
    let mut out = String::from("tirx_ptx_");
    for c in text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
    {
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    out
}

/// Numbers the places: outputs come first.
fn numbered(text: &str, outputs: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("%o").into_iter().chain(rest.find("%i")).min() {
        let read = rest[at..].starts_with("%i");
        let digits: String = rest[at + 2..].chars().take_while(char::is_ascii_digit).collect();
        let number = digits.parse::<usize>().unwrap_or(0) + if read { outputs } else { 0 };
        out.push_str(&rest[..at]);
        out.push_str(&format!("%{number}"));
        rest = &rest[at + 2 + digits.len()..];
    }
    out.push_str(rest);
    out
}

/// The operands with commas, pairs with `|`, addresses of several parts in brackets.
fn joined(texts: &[(String, &Operand)]) -> String {
    let mut out = String::new();
    for (i, (text, operand)) in texts.iter().enumerate() {
        let opens = !operand.continues && texts.get(i + 1).is_some_and(|(_, next)| next.continues);
        let closes = operand.continues && !texts.get(i + 1).is_some_and(|(_, next)| next.continues);
        match (i, operand.pipe) {
            (0, _) => {}
            (_, true) => out.push('|'),
            _ => out.push_str(", "),
        }
        if opens {
            // The first part is an address of its own elsewhere.
            out.push('[');
            out.push_str(text.trim_start_matches('[').trim_end_matches(']'));
        } else {
            out.push_str(text);
        }
        if closes {
            out.push(']');
        }
    }
    out
}

impl Body {
    /// A parameter that is read; its place.
    fn read(
        &mut self,
        name: &str,
        ty: &'static str,
        letter: &'static str,
        bound: &str,
        value: Expr,
    ) -> String {
        self.parameters.push(Parameter {
            ty,
            name: name.to_string(),
            access: Access::In,
            letter,
            bound: bound.to_string(),
        });
        self.passed.push(value);
        self.inputs.push(format!("\"{letter}\"({bound})"));
        format!("%i{}", self.inputs.len() - 1)
    }

    /// The text of an operand.
    fn operand(
        &mut self,
        call: &InstructionCall,
        operand: &Operand,
        registers: &[Expr],
    ) -> std::result::Result<String, String> {
        match &operand.form {
            OperandForm::Literal(text) => Ok((*text).to_string()),
            OperandForm::Immediate(_) => match registers.first().and_then(Expr::as_int) {
                Some(value) => Ok(value.to_string()),
                None => Err(format!(
                    "\"{}\" stands in the text of the instruction and must be known when compiling\nunroll the loop: T.unroll",
                    operand.name
                )),
            },
            OperandForm::Address(space) => {
                let space = if space.is_empty() {
                    space_of(&call.tokens)
                } else {
                    space
                };
                let Some(value) = registers.first() else {
                    return Err(format!("\"{}\" is missing", operand.name));
                };
                self.address(operand, space, value)
            }
            OperandForm::Register => {
                let dtype = call.dtype(operand, registers);
                let ty = call.tokens.type_of(operand.ty);
                let several = operand.braces && (registers.len() > 1 || !slot_is_empty(call, operand));
                let mut texts = Vec::new();
                for (i, value) in registers.iter().enumerate() {
                    if value.as_str() == Some(SINK) {
                        texts.push("_".to_string());
                        continue;
                    }
                    let name = match registers.len() {
                        1 => operand.name.to_string(),
                        _ => format!("{}{i}", operand.name),
                    };
                    let text = match operand.direction {
                        Direction::Read => self.input(&name, ty, value)?,
                        _ => self.output(
                            &name,
                            ty,
                            dtype,
                            operand.direction == Direction::Update || call.preserves,
                            value,
                        )?,
                    };
                    texts.push(text);
                }
                Ok(match several {
                    true => format!("{{{}}}", texts.join(", ")),
                    false => texts.concat(),
                })
            }
        }
    }

    fn address(
        &mut self,
        operand: &Operand,
        space: &str,
        value: &Expr,
    ) -> std::result::Result<String, String> {
        let (base, offset) = match value.as_call(Op::PtxAddr) {
            Some(args) => match args[at!(PtxAddr.byte_offset)].as_int() {
                Some(offset) => (&args[at!(PtxAddr.base)], offset),
                None => {
                    return Err(
                        "the offset of T.ptx.addr stands in the text of the instruction and must be known when compiling\nunroll the loop: T.unroll"
                            .into(),
                    );
                }
            },
            _ => (value, 0),
        };
        let name = operand.name;
        self.touches_memory |= space != "tmem";
        let handle = base.dtype.is_handle();
        let place = match (space.starts_with("shared"), handle) {
            (true, true) => {
                let bound = format!("(unsigned int)__cvta_generic_to_shared({name})");
                self.read(name, "const void*", "r", &bound, base.clone())
            }
            (true, false) if base.dtype.bits == 64 => {
                let bound = format!("(unsigned int){name}");
                self.read(name, "unsigned long long", "r", &bound, base.clone())
            }
            (_, true) => self.read(name, "const void*", "l", name, base.clone()),
            (_, false) if base.dtype.bits == 64 => {
                self.read(name, "unsigned long long", "l", name, base.clone())
            }
            _ => self.read(name, "unsigned int", "r", name, base.clone()),
        };
        Ok(match offset {
            0 => format!("[{place}]"),
            n if n > 0 => format!("[{place}+{n}]"),
            n => format!("[{place}{n}]"),
        })
    }

    /// A register that is read.
    fn input(&mut self, name: &str, ty: &str, value: &Expr) -> std::result::Result<String, String> {
        let dtype = value.dtype;
        if dtype.is_handle() {
            return Ok(self.read(name, "const void*", "l", name, value.clone()));
        }
        let binding = types::binding(dtype).ok_or_else(|| format!("no register holds {dtype}"))?;
        let bound = match binding.carrier {
            Some(carrier) if dtype.bits == 16 => format!("*reinterpret_cast<{carrier}*>(&{name})"),
            Some(carrier) => format!("({carrier}){name}"),
            None => name.to_string(),
        };
        let place = self.read(name, binding.cpp, binding.letter, &bound, value.clone());
        let Some(bridge) = types::bridge(ty, dtype) else {
            return Ok(place);
        };
        let register = format!("{name}_");
        self.declared.push(format!(".reg {} {register};", bridge.class));
        self.into
            .push(bridge.into.replace("{r}", &register).replace("{o}", &place));
        Ok(register)
    }

    /// A register that is written, by its address.
    fn output(
        &mut self,
        name: &str,
        ty: &str,
        dtype: DType,
        keeps: bool,
        value: &Expr,
    ) -> std::result::Result<String, String> {
        let binding = types::binding(dtype).ok_or_else(|| format!("no register holds {dtype}"))?;
        let sign = if keeps { "+" } else { "=" };
        let mut bound = format!("*static_cast<{}*>({name})", binding.cpp);
        if dtype.is_bool() || dtype.bits == 8 {
            // `asm` writes no byte: it writes a register, whose low byte is stored.
            let (carrier, stored) = match dtype.is_bool() {
                true => ("unsigned int", "bool"),
                false => (binding.carrier.unwrap_or(binding.cpp), binding.cpp),
            };
            let local = format!("{name}_wide");
            let start = match keeps {
                true => format!(" = *static_cast<{stored}*>({name})"),
                false => String::new(),
            };
            self.before.push(format!("{carrier} {local}{start};"));
            self.after
                .push(format!("*static_cast<{stored}*>({name}) = ({stored}){local};"));
            bound = local;
        } else if let Some(carrier) = binding.carrier {
            bound = format!("*static_cast<{carrier}*>({name})");
        }
        self.parameters.push(Parameter {
            ty: "void*",
            name: name.to_string(),
            access: if keeps { Access::InOut } else { Access::Out },
            letter: binding.letter,
            bound: bound.clone(),
        });
        self.passed.push(value.clone());
        self.outputs
            .push(format!("\"{sign}{}\"({bound})", binding.letter));
        let place = format!("%o{}", self.outputs.len() - 1);
        let Some(bridge) = types::bridge(ty, dtype) else {
            return Ok(place);
        };
        let register = format!("{name}_");
        self.declared.push(format!(".reg {} {register};", bridge.class));
        let say = |text: &str| text.replace("{r}", &register).replace("{o}", &place);
        if keeps {
            self.into.push(say(bridge.into));
        }
        self.back.push(say(bridge.back));
        Ok(register)
    }
}

/// Whether an operand's list has one register because its slot is empty: a scalar then.
fn slot_is_empty(call: &InstructionCall, operand: &Operand) -> bool {
    use crate::intrin::mnemonic::syntax::Count;
    match operand.count {
        Count::Slot(slot) => call.tokens.get(slot).is_empty(),
        _ => false,
    }
}
