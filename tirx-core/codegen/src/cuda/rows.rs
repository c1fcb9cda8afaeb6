//! The text of operations that have a row.
//!
//! Each becomes a small function, written once before the kernels that call it, of the operands that its template names.
//! The function's name follows from the row and its modifiers.

use std::rc::Rc;

use super::asm::{self, Slot};
use super::code::{Code, level};
use super::defects;
use super::emitter::Emitter;
use super::helpers::{Header, Helper};
use super::requirements::is_left_out;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::row::{Access, Arg, ArgKind, CudaForm, Machine, Space, Ty, Words};
use crate::intrin::{Op, Operands, Row};
use crate::ir::{DType, ElementType, Expr, ExprKind};

/// A parameter of the function: C++ type and name; for assembly the constraint and what it binds.
pub(super) struct Parameter {
    pub(super) ty: &'static str,
    pub(super) name: String,
    pub(super) access: Access,
    pub(super) letter: &'static str,
    pub(super) bound: String,
}

impl Parameter {
    /// The predicate of an instruction.
    fn guard() -> Parameter {
        Parameter {
            ty: "int",
            name: asm::GUARD.into(),
            access: Access::In,
            letter: "r",
            bound: asm::GUARD.into(),
        }
    }
}

/// What the function of a call depends on: the row, what the call's arguments look like, and the words of the template.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Shape {
    row: *const Row,
    result: DType,
    arguments: Vec<Argument>,
    words: Words,
    /// Whether the instruction has a predicate.
    guarded: bool,
}

#[derive(PartialEq, Eq, Hash)]
enum Argument {
    /// The values that are passed for the next argument of the row follow, so many.
    List(usize),
    /// A value that is passed.
    Passed(DType),
    /// A part of the instruction.
    Modifier(Expr),
}

impl Shape {
    fn from_operands(result: DType, operands: &Operands, words: Words, guarded: bool) -> Shape {
        let mut arguments = Vec::with_capacity(2 * operands.row.args.len());
        for (arg, part) in operands.each() {
            arguments.push(Argument::List(part.len()));
            arguments.extend(part.iter().map(|value| match is_operand(arg) {
                true => Argument::Passed(value.dtype),
                false => Argument::Modifier(value.clone()),
            }));
        }
        Shape {
            row: operands.row,
            result,
            arguments,
            words,
            guarded,
        }
    }
}

/// A function that wraps one instruction.
pub(super) struct RowFunction {
    name: String,
    /// The operands that it takes: the argument of the row, and the position in its list.
    passed: Vec<(usize, usize)>,
    /// Whether its last parameter is the instruction's predicate.
    guarded: bool,
}

impl Emitter<'_, '_> {
    /// A call of an operation that has a row, under a predicate if `guard` has one: it is taken from there where the instruction
    /// can have it.
    pub(super) fn row(
        &mut self,
        e: &Expr,
        row: &'static Row,
        args: &[Expr],
        guard: &mut Option<Expr>,
    ) -> Result<Code> {
        let wrong =
            |message: String| Box::new(Diagnostic::new(e.span, format!("T.{}: {message}", row.script)));
        let operands = row.read_settled(args).map_err(|message| match row.read(args) {
            // An operand that might have become a constant, and did not.
            Ok(_) => Box::new((*wrong(message)).help(
                "it is a part of the instruction: write a number, or compute it from compile-time values and variables of loops \
                 over T.unroll",
            )),
            Err(_) => wrong(message),
        })?;
        let words = match row.cuda.words {
            Some(words) => words(
                &operands,
                Machine {
                    capability: self.gpu.map_or(0, |gpu| gpu.number()),
                },
            )
            .map_err(wrong)?,
            None => Words::default(),
        };
        match row.cuda.form {
            CudaForm::Function(name) => {
                self.needs_of(row);
                let mut list = Vec::new();
                for (arg, value) in values(&operands) {
                    list.push(self.argument(arg, value)?);
                }
                Ok(Code::primary(format!("{name}({})", list.join(", "))))
            }
            CudaForm::Expression(template) => {
                self.needs_of(row);
                let mut text = template.to_string();
                for (arg, value) in values(&operands) {
                    text = text.replace(&format!("${}$", arg.name), &self.argument(arg, value)?);
                }
                // An operation written as a cast has the precedence of a cast.
                let at = if text.starts_with('(') {
                    level::UNARY
                } else {
                    level::PRIMARY
                };
                Ok(Code::new(text, at))
            }
            CudaForm::Ptx(_) | CudaForm::StatePtx(_) | CudaForm::PurePtx(_) | CudaForm::Code(_) => {
                let known = self.function_of(e, &operands, words, guard.is_some())?;
                let mut passed: Vec<Expr> = known
                    .passed
                    .iter()
                    .map(|(arg, item)| operands.at(*arg)[*item].clone())
                    .collect();
                if known.guarded {
                    passed.extend(guard.take());
                }
                let arguments = self.arguments(&passed)?;
                Ok(Code::primary(format!("{}({arguments})", known.name)))
            }
            CudaForm::Special | CudaForm::Lowered | CudaForm::Host => {
                let message = format!("`T.{}` cannot be compiled to CUDA", row.script);
                let mut error = Diagnostic::new(e.span, message);
                if e.as_call(Op::TvmThreadAllreduce).is_some() {
                    // TVM's pipeline for TIRx does not lower it either.
                    error = error
                        .help("reduce with T.cuda.warp_sum(x) or T.cuda.cta_sum(x, …), or with shuffles");
                }
                Err(Box::new(error))
            }
        }
    }

    /// The headers and helpers that a row's text uses.
    fn needs_of(&mut self, row: &Row) {
        for header in row.cuda.headers {
            self.unit.needs.headers.extend(Header::named(header));
        }
        for helper in row.cuda.helpers {
            self.unit.needs.helpers.extend(Helper::named(helper));
        }
    }

    /// The function that a call becomes a call of. It is written once for all calls of one [`Shape`].
    fn function_of(
        &mut self,
        e: &Expr,
        operands: &Operands,
        words: Words,
        guarded: bool,
    ) -> Result<Rc<RowFunction>> {
        let shape = Shape::from_operands(e.dtype, operands, words, guarded);
        if let Some(known) = self.unit.functions.get(&shape) {
            return Ok(known.clone());
        }
        let words = &shape.words;
        self.needs_of(operands.row);
        let made = match operands.row.cuda.form {
            CudaForm::Ptx(template) => self.assembly(e, operands, words, template, (true, true), guarded)?,
            CudaForm::StatePtx(template) => {
                self.assembly(e, operands, words, template, (true, false), guarded)?
            }
            CudaForm::PurePtx(template) => {
                self.assembly(e, operands, words, template, (false, false), false)?
            }
            CudaForm::Code(template) => self.body(e.dtype, operands, words, template),
            CudaForm::Function(_)
            | CudaForm::Expression(_)
            | CudaForm::Special
            | CudaForm::Lowered
            | CudaForm::Host => {
                unreachable!("`row` calls this for rows that become functions of our own")
            }
        };
        let made = Rc::new(made);
        self.unit.functions.insert(shape, made.clone());
        Ok(made)
    }

    /// An argument of a function of CUDA.
    fn argument(&mut self, arg: &Arg, value: &Expr) -> Result<String> {
        match arg.kind {
            ArgKind::Mask => self.mask(value),
            _ => Ok(self.expr(value)?.in_range(value.dtype).text),
        }
    }

    fn assembly(
        &mut self,
        e: &Expr,
        operands: &Operands,
        words: &Words,
        template: &str,
        (volatile, memory): (bool, bool),
        guarded: bool,
    ) -> Result<RowFunction> {
        let pieces = asm::fill(template, operands, words)
            .map_err(|message| Diagnostic::new(e.span, format!("T.{}: {message}", operands.row.script)))?;
        let used = |name: &str, item: usize| {
            pieces.iter().any(
                |piece| matches!(piece, asm::Piece::Slot(Slot::Operand(n, i)) if *n == name && *i == item),
            )
        };
        let (mut parameters, mut passed) = (Vec::new(), Vec::new());
        let mut slots = Vec::new();
        let mut name = function_name(operands);
        for (at, (arg, part)) in operands.each().enumerate() {
            if !is_operand(arg) {
                continue;
            }
            for (i, value) in part.iter().enumerate().filter(|(i, _)| used(arg.name, *i)) {
                let p = parameter(arg, i, part.len(), value, words);
                if let ArgKind::Pointer(Space::Shared) = arg.kind
                    && !value.dtype.is_handle()
                {
                    name.push_str(&format!("_{}", value.dtype));
                }
                slots.push((Slot::Operand(arg.name, i), parameters.len()));
                parameters.push(p);
                passed.push((at, i));
            }
        }
        let (result, declared) = match e.dtype {
            DType::VOID => ("void", None),
            dtype => {
                let (ty, letter) = register(dtype);
                (ty, Some((ty, letter)))
            }
        };
        // Outputs are numbered first.
        let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
        let mut order: Vec<Slot> = Vec::new();
        if let Some((_, letter)) = declared {
            outputs.push(format!("\"={letter}\"(result)"));
            order.push(Slot::Result);
        }
        for (slot, at) in &slots {
            let p = &parameters[*at];
            let sign = match p.access {
                Access::In => continue,
                Access::Out => "=",
                Access::InOut => "+",
            };
            outputs.push(format!("\"{sign}{}\"({})", p.letter, p.bound));
            order.push(*slot);
        }
        for (slot, at) in &slots {
            let p = &parameters[*at];
            if p.access == Access::In {
                inputs.push(format!("\"{}\"({})", p.letter, p.bound));
                order.push(*slot);
            }
        }
        let mut text = asm::text(&pieces, &order);
        // An instruction that writes no register can have a predicate.
        let under_guard = match guarded && outputs.is_empty() {
            true => asm::guarded(&text, inputs.len()),
            false => None,
        };
        let guarded = under_guard.is_some();
        if let Some(under_guard) = under_guard {
            text = under_guard;
            inputs.push(format!("\"r\"({})", asm::GUARD));
            parameters.push(Parameter::guard());
            name.push_str("_if");
        }
        let mut body = String::new();
        if let Some((ty, _)) = declared {
            body.push_str(&format!("  {ty} result;\n"));
        }
        if defects::instruction_spins(&text) {
            body.push_str(&format!("  {}\n", defects::OWN_LOOP));
        }
        let word = if volatile { "asm volatile" } else { "asm" };
        let clobber = if memory { " : \"memory\"" } else { "" };
        let statement = format!(
            "  {word}(\"{text}\" :{} :{}{clobber});\n",
            spaced(&outputs),
            spaced(&inputs)
        );
        match self.left_out_before(e) {
            Some(least) => body.push_str(&format!("#if __CUDA_ARCH__ >= {least}0\n{statement}#endif\n")),
            None => body.push_str(&statement),
        }
        if declared.is_some() {
            body.push_str("  return result;\n");
        }
        let name = self.define_function(name, result, &parameters, &body);
        Ok(RowFunction {
            name,
            passed,
            guarded,
        })
    }

    /// The first architecture that has an operation, where the kernel is for older GPUs too and they do without it.
    fn left_out_before(&self, e: &Expr) -> Option<u32> {
        match (&e.kind, self.gpu) {
            (ExprKind::Call { op, .. }, Some(gpu)) if is_left_out(*op, gpu) => Some(op.gpus().least),
            _ => None,
        }
    }

    fn body(&mut self, dtype: DType, operands: &Operands, words: &Words, template: &str) -> RowFunction {
        let mut body = template.to_string();
        for (name, text) in &words.texts {
            body = body.replace(&format!("${name}$"), text);
        }
        let (mut parameters, mut passed) = (Vec::new(), Vec::new());
        for (at, (arg, part)) in operands.each().enumerate() {
            if !is_operand(arg) {
                let text = part.first().map(modifier).unwrap_or_default();
                body = body.replace(&format!("${}$", arg.name), &text);
                continue;
            }
            for (i, value) in part.iter().enumerate() {
                let p = parameter(arg, i, part.len(), value, words);
                body = body.replace(&format!("${}$", p.name), &p.bound);
                parameters.push(p);
                passed.push((at, i));
            }
        }
        let result = match dtype {
            DType::VOID => "void",
            dtype => register(dtype).0,
        };
        let body: String = body.lines().map(|line| format!("  {line}\n")).collect();
        let name = self.define_function(function_name(operands), result, &parameters, &body);
        RowFunction {
            name,
            passed,
            guarded: false,
        }
    }

    /// A call of a function with this body, which is defined once. Where another function of the same name has another
    /// body, the name gets a number.
    pub(super) fn row_function(
        &mut self,
        name: String,
        result: &str,
        parameters: &[Parameter],
        body: &str,
        passed: &[Expr],
    ) -> Result<Code> {
        let name = self.define_function(name, result, parameters, body);
        let arguments = self.arguments(passed)?;
        Ok(Code::primary(format!("{name}({arguments})")))
    }

    /// Defines a function, and gives its name.
    fn define_function(
        &mut self,
        name: String,
        result: &str,
        parameters: &[Parameter],
        body: &str,
    ) -> String {
        let list: Vec<String> = parameters
            .iter()
            .map(|p| format!("{} {}", p.ty, p.name))
            .collect();
        let text = |name: &str| {
            format!(
                "__device__ __forceinline__ {result} {name}({}) {{\n{body}}}\n",
                list.join(", ")
            )
        };
        let mut free = name.clone();
        let mut number = 2;
        while self
            .unit
            .generated
            .get(&free)
            .is_some_and(|known| *known != text(&free))
        {
            free = format!("{name}_{number}");
            number += 1;
        }
        if body.contains("uint64_t") || list.iter().any(|p| p.contains("uint64_t")) {
            self.unit.needs.headers.insert(Header::Cstdint);
        }
        let generated = &mut self.unit.generated;
        if !generated.contains_key(&free) {
            generated.insert(free.clone(), text(&free));
        }
        free
    }
}

/// The operands of `asm` after their colon.
fn spaced(list: &[String]) -> String {
    if list.is_empty() {
        String::new()
    } else {
        format!(" {}", list.join(", "))
    }
}

/// Whether an argument is passed to the function; the others are part of its name.
pub(super) fn is_operand(arg: &Arg) -> bool {
    matches!(
        arg.kind,
        ArgKind::Value(_)
            | ArgKind::Any
            | ArgKind::Node
            | ArgKind::Condition
            | ArgKind::Mask
            | ArgKind::Array(_)
            | ArgKind::Pointer(_)
            | ArgKind::Register(..)
            | ArgKind::Element(..)
    )
}

/// The arguments that are passed.
fn values<'a>(operands: &Operands<'a>) -> Vec<(&'static Arg, &'a Expr)> {
    let operands = operands.each().filter(|(arg, _)| is_operand(arg));
    operands
        .flat_map(|(arg, part)| part.iter().map(move |value| (arg, value)))
        .collect()
}

/// A modifier as text.
pub(super) fn modifier(e: &Expr) -> String {
    match (e.as_str(), e.as_int()) {
        (Some(text), _) => text.to_string(),
        (None, Some(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The C++ type of a value and its letter in the constraints of `asm`.
pub(super) fn register(dtype: DType) -> (&'static str, &'static str) {
    match ElementType::from_dtype(dtype).and_then(|row| row.asm) {
        Some(asm) if dtype.bits > 8 => (asm.cpp, asm.letter),
        _ if dtype.is_handle() => ("long long", "l"),
        // `asm` has no registers of a byte.
        _ if dtype.is_uint() => ("unsigned int", "r"),
        _ => ("int", "r"),
    }
}

fn parameter(arg: &Arg, item: usize, of: usize, value: &Expr, words: &Words) -> Parameter {
    let many = !matches!(
        arg.many,
        crate::intrin::row::Many::One | crate::intrin::row::Many::Optional
    ) && of > 0;
    let name = if many {
        format!("{}{item}", arg.name)
    } else {
        arg.name.to_string()
    };
    let plain = |ty, letter, bound: String, name: String| Parameter {
        ty,
        name,
        access: Access::In,
        letter,
        bound,
    };
    match arg.kind {
        ArgKind::Pointer(space) => match (space, value.dtype.is_handle()) {
            (Space::Shared, true) => {
                let bound = format!("(unsigned int)__cvta_generic_to_shared({name})");
                plain("const void*", "r", bound, name)
            }
            (Space::Shared, false) if value.dtype.bits == 64 => {
                plain("unsigned long long", "r", format!("(unsigned int){name}"), name)
            }
            (Space::Shared, false) => plain("unsigned int", "r", name.clone(), name),
            (_, true) => plain("const void*", "l", name.clone(), name),
            (_, false) => plain("unsigned long long", "l", name.clone(), name),
        },
        ArgKind::Register(access, ty) | ArgKind::Element(access, ty) => {
            let said = words
                .types
                .iter()
                .find(|(n, _)| *n == arg.name)
                .map(|(_, ty)| *ty);
            let ty = if ty == Ty::FromWords {
                said.unwrap_or(Ty::B32)
            } else {
                ty
            };
            let (c, letter) = ty.spelling();
            let (pointer, constant) = match access {
                Access::In => ("const void*", "const "),
                _ => ("void*", ""),
            };
            let bound = format!("*static_cast<{constant}{c}*>({name})");
            Parameter {
                ty: pointer,
                name,
                access,
                letter,
                bound,
            }
        }
        ArgKind::Value(dtype) => {
            let (ty, letter) = register(dtype);
            plain(ty, letter, name.clone(), name)
        }
        ArgKind::Condition => plain("bool", "r", name.clone(), name),
        ArgKind::Mask => plain("unsigned int", "r", name.clone(), name),
        ArgKind::Array(element) => {
            let ty = match (element.is_float(), element.bits) {
                (true, 64) => "double*",
                (true, _) => "float*",
                (_, 64) => "uint64_t*",
                _ => "unsigned int*",
            };
            plain(ty, "l", name.clone(), name)
        }
        _ => {
            let said = words.types.iter().find(|(n, _)| *n == arg.name);
            let (ty, letter) = said.map_or(register(value.dtype), |(_, ty)| ty.spelling());
            plain(ty, letter, name.clone(), name)
        }
    }
}

/// `tirx_ptx_mbarrier_arrive_shared_remote`.
fn function_name(operands: &Operands) -> String {
    let mut name = format!("tirx_{}", operands.row.script);
    for (arg, part) in operands.each().filter(|(arg, _)| !is_operand(arg)) {
        let Some(value) = part.first() else { continue };
        let text = match arg.kind {
            ArgKind::Flag | ArgKind::Bool if !value.is_int(0) => arg.name.to_string(),
            ArgKind::Has(of) if !value.is_int(0) => of.to_string(),
            ArgKind::Flag | ArgKind::Bool | ArgKind::Has(_) | ArgKind::Count(_) => continue,
            _ => modifier(value),
        };
        if !text.is_empty() {
            name.push('_');
            name.push_str(&text);
        }
    }
    let mut out = String::new();
    for c in name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
    {
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    out
}
