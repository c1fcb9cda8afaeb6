//! How are instructions of PTX written by their mnemonics?
//!
//! `T.ptx.ld.global_.acquire.gpu.b32(value, pointer)` and `T.ptx["ld.global.acquire.gpu.b32"](value, pointer)`: a chain of
//! words that narrows the instructions of [`crate::intrin::mnemonic`], then a call with the operands of PTX, destinations
//! first. Where the instruction's line names a row, the call becomes that row's operation ([`rows`]); otherwise it becomes a
//! call of [`Op::PtxInstruction`], whose text follows from the line.

mod rows;

use std::any::Any;
use std::rc::Rc;

use super::super::eval::{Args, Interpreter, Object, Value};
use super::convert;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::intrin::mnemonic::call::{Matched, SINK};
use crate::intrin::mnemonic::{Direction, Lookup, OperandForm, types};
use crate::ir::abi::keys;
use crate::ir::{AttrNode, DType, Expr, ExprKind, Stmt, fold};
use crate::source::Span;

/// A mnemonic that may become longer, or be called.
struct Chain {
    lookup: Option<Lookup>,
    /// What the same path means in the language of TVM 0.26, in a file that may be of either.
    old: Option<Value>,
    /// The path as text writes it: `T.ptx.ld`.
    path: String,
}

/// `T.ptx.name`, by mnemonic.
pub(super) fn attribute(name: &str) -> Option<Value> {
    match name {
        "SINK" => return Some(Value::Object(Rc::new(Operand::Sink))),
        "pred" => return Some(Value::builtin("T.ptx.pred", predicate)),
        "addr" => return Some(Value::builtin("T.ptx.addr", offset)),
        _ => {}
    }
    let lookup = Lookup::family(name)?;
    Some(chain(Some(lookup), None, format!("T.ptx.{name}")))
}

/// `T.ptx.name` in a file that may be of either release: the older function, which a longer chain turns into a mnemonic.
pub(super) fn either(name: &str, old: Option<Value>) -> Option<Value> {
    let new = Lookup::family(name);
    match (old, new) {
        (None, None) => attribute(name),
        (Some(old), None) => Some(old),
        (old, lookup) => Some(chain(lookup, old, format!("T.ptx.{name}"))),
    }
}

fn chain(lookup: Option<Lookup>, old: Option<Value>, path: String) -> Value {
    Value::Object(Rc::new(Chain { lookup, old, path }))
}

/// `T.ptx["ld.global.b32"]`.
pub fn subscript(index: &Value, span: Span) -> Result<Value> {
    let Some(text) = convert::text(index) else {
        return error(
            span,
            format!(
                "T.ptx[…] takes a mnemonic such as \"ld.global.b32\", found {}",
                convert::describe(index)
            ),
        );
    };
    match Lookup::mnemonic(&text) {
        Ok(lookup) => Ok(chain(Some(lookup), None, format!("T.ptx[\"{text}\"]"))),
        Err(message) => Err(wrong(&format!("T.ptx[\"{text}\"]"), &message, span)),
    }
}

/// An error whose second line is the help.
fn wrong(path: &str, message: &str, span: Span) -> Box<Diagnostic> {
    let (message, help) = message.split_once('\n').unwrap_or((message, ""));
    let diagnostic = Diagnostic::new(span, format!("{path}: {message}"));
    Box::new(if help.is_empty() {
        diagnostic
    } else {
        diagnostic.help(help)
    })
}

impl Chain {
    /// Reports a call that both releases have with different meanings, in a file that may be of either.
    fn lint_release(&self, interp: &mut Interpreter, old: &Value, new: &Lookup, args: &Args, span: Span) {
        if !interp.may_be_of_either() {
            return;
        }
        let was = interp.said_by(span, |interp| interp.call_value(old, args.clone(), span));
        let is = interp.said_by(span, |interp| call(interp, new, &self.path, args.clone(), span));
        let (Some(was), Some(is)) = (was, is) else { return };
        if was == is {
            return;
        }
        let message = format!(
            "{} is `{}` in TVM 0.26 and `{}` in 0.27, and nothing in the file shows its release: the compiler takes it as 0.26",
            self.path,
            was.trim(),
            is.trim()
        );
        let help = "write `tvm = \"0.26\"` or `tvm = \"0.27\"` in the manifest, or use `--tvm`";
        interp.lint("release", span, message, help);
    }
}

impl Object for Chain {
    fn type_name(&self) -> &str {
        "instruction of PTX"
    }

    fn attribute(&self, interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        let path = format!("{}.{name}", self.path);
        let old = match &self.old {
            Some(Value::Namespace(within)) => super::attribute(within, name),
            // A function may have functions within: `T.ptx.mbarrier.arrive` and `T.ptx.mbarrier.arrive.expect_tx`.
            Some(Value::Builtin(_)) => super::attribute(&self.path, name),
            Some(Value::Object(object)) => object.attribute(interp, name, span)?,
            _ => None,
        };
        let next = self.lookup.as_ref().map(|lookup| lookup.attribute(name));
        match (next, old) {
            (Some(Ok(lookup)), old) => Ok(Some(chain(Some(lookup), old, path))),
            (_, Some(old @ (Value::Namespace(_) | Value::Builtin(_)))) => {
                Ok(Some(chain(None, Some(old), path)))
            }
            (_, Some(old)) => Ok(Some(old)),
            (Some(Err(message)), None) => Err(wrong(&self.path, &message, span)),
            (None, None) => Ok(None),
        }
    }

    fn call(&self, interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
        match (&self.old, &self.lookup) {
            (Some(Value::Builtin(_)), _) => {
                let old = self.old.clone().unwrap_or(Value::None);
                // Some names are in both releases with other operands: `T.ptx.lop3.b32(d, a, b, c, 0x80)`.
                let new = self.lookup.as_ref().filter(|_| interp.is_building());
                let Some(lookup) = new else {
                    return interp.call_value(&old, args, span);
                };
                self.lint_release(interp, &old, lookup, &args, span);
                match interp.call_value(&old, args.clone(), span) {
                    Err(message) => call(interp, lookup, &self.path, args, span).map_err(|_| message),
                    done => done,
                }
            }
            (_, Some(lookup)) => call(interp, lookup, &self.path, args, span),
            _ => error(span, format!("{} is not an instruction of PTX", self.path)),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An operand that is more than a value.
enum Operand {
    /// `T.ptx.SINK`: the register is left out.
    Sink,
    /// `T.ptx.pred(x)`: a predicate.
    Predicate(Expr),
    /// `T.ptx.addr(base, offset)`.
    Address(Value, Expr),
}

impl Object for Operand {
    fn type_name(&self) -> &str {
        match self {
            Operand::Sink => "T.ptx.SINK",
            Operand::Predicate(_) => "T.ptx.pred",
            Operand::Address(..) => "T.ptx.addr",
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn truth(e: Expr) -> Expr {
    match e.as_int() {
        _ if e.dtype.is_bool() => e,
        Some(v) => Expr::bool(v != 0).at(e.span),
        None => {
            let (zero, span) = (Expr::constant(e.dtype, 0), e.span);
            Expr::binary(crate::ir::BinOp::Ne, e, zero).at(span)
        }
    }
}

fn predicate(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, at)] = args.exactly("T.ptx.pred", ["value"], span)?;
    let e = convert::expr(&value, at.or(span))?;
    if !e.dtype.is_bool() && !e.dtype.is_integer() {
        return error(
            at.or(span),
            format!("T.ptx.pred takes a bool or an integer, found {}", e.dtype),
        );
    }
    Ok(Value::Object(Rc::new(Operand::Predicate(truth(e)))))
}

fn offset(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(base, _), (offset, at)] = args.exactly("T.ptx.addr", ["base", "byte_offset"], span)?;
    let e = convert::expr(&offset, at.or(span))?;
    if !e.dtype.is_integer() {
        return error(
            at.or(span),
            format!("T.ptx.addr takes an offset in bytes, found {}", e.dtype),
        );
    }
    Ok(Value::Object(Rc::new(Operand::Address(base, e))))
}

/// An argument as an expression, and whether it is a number without a dtype.
fn argument(value: &Value, span: Span, path: &str) -> Result<(Expr, bool)> {
    if let Value::Object(object) = value
        && let Some(operand) = object.as_any().downcast_ref::<Operand>()
    {
        return match operand {
            Operand::Sink => Ok((Expr::string(SINK).at(span), false)),
            Operand::Predicate(e) => Ok((e.clone().or_at(span), false)),
            Operand::Address(base, offset) => {
                let (base, _) = argument(base, span, path)?;
                let dtype = base.dtype;
                let offset = match offset.as_int() {
                    Some(0) => return Ok((base, false)),
                    _ => offset.clone(),
                };
                Ok((Expr::call(Op::PtxAddr, dtype, vec![base, offset]).at(span), false))
            }
        };
    }
    match value {
        Value::MetaVar(inner) => argument(inner, span, path),
        Value::Bool(set) => Ok((Expr::bool(*set).at(span), false)),
        Value::Int(_) | Value::Float(_) => {
            let e = match value.as_int() {
                Some(v) if i32::try_from(v).is_err() => Expr::constant(DType::INT64, v),
                _ => convert::argument(value, span, path)?,
            };
            Ok((e.or_at(span), true))
        }
        // A variable of one element stands for its value, another buffer for its address.
        Value::Buffer(b) if b.shape.iter().all(|n| n.is_int(1)) && b.scope() == "local" => {
            let zeros = b.shape.iter().map(|_| Expr::int32(0)).collect();
            Ok((Expr::load(b, zeros).at(span), false))
        }
        value => {
            let e = convert::argument(value, span, path)?;
            if e.as_str().is_some() {
                return error(span, format!("{path}: a string is not an operand"));
            }
            Ok((e.or_at(span), false))
        }
    }
}

/// The form in which TVM prints a call: behind the operands the token of each slot as a string, then a mark that says whether
/// the last operand is a predicate (`pred`), which operands are predicates (`p2`) and which are left out (`s0`).
struct Printed {
    lookup: Lookup,
    predicate: Option<(Value, Span)>,
    preserves: bool,
}

/// Whether a string is such a mark.
pub fn is_mark(text: &str) -> bool {
    let numbered =
        |flag: &str| flag.len() > 1 && flag.starts_with(['p', 's']) && flag[1..].parse::<usize>().is_ok();
    text.is_empty()
        || text
            .split(',')
            .all(|flag| matches!(flag, "pred" | "keep") || numbered(flag))
}

impl Printed {
    fn take(lookup: &Lookup, args: &mut Args) -> std::result::Result<Printed, String> {
        let mut out = Printed {
            lookup: lookup.clone(),
            predicate: None,
            preserves: false,
        };
        let mut words = Vec::new();
        while let Some((Value::Str(text), _)) = args.positional.last() {
            words.push(text.to_string());
            args.positional.pop();
        }
        let Some((mark, tokens)) = words.split_first() else {
            return Ok(out);
        };
        if !is_mark(mark) {
            return Err(format!("\"{mark}\" is not an operand"));
        }
        for token in tokens.iter().rev().filter(|token| !token.is_empty()) {
            out.lookup = out.lookup.token(token)?;
        }
        let mut flags: Vec<&str> = mark.split(',').filter(|flag| !flag.is_empty()).collect();
        if flags.contains(&"pred") {
            out.predicate = args.positional.pop();
        }
        out.preserves = flags.contains(&"keep");
        // Registers that are left out have no argument: they are put back first, in order.
        flags.sort_by_key(|flag| !flag.starts_with('s'));
        for flag in flags {
            let Ok(at) = flag[1..].parse::<usize>() else {
                continue;
            };
            if flag.starts_with('s') && at <= args.positional.len() {
                let sink = Value::Object(Rc::new(Operand::Sink));
                args.positional.insert(at, (sink, Span::NONE));
            } else if let Some((value, span)) = args.positional.get_mut(at) {
                let e = convert::expr(value, *span).map_err(|d| d.message.clone())?;
                *value = Value::Object(Rc::new(Operand::Predicate(truth(e))));
            }
        }
        Ok(out)
    }
}

/// A call of an instruction.
fn call(interp: &mut Interpreter, lookup: &Lookup, path: &str, mut args: Args, span: Span) -> Result<Value> {
    args.take_keyword("span");
    let predicate = match args.take_keyword("pred") {
        Some((Value::None, _)) | None => None,
        Some((value, at)) => Some(truth(argument(&value, at.or(span), path)?.0)),
    };
    let preserves = match args.take_keyword("preserve_dst") {
        Some((Value::Bool(set), _)) => set,
        Some((value, _)) => convert::const_int(&value).is_some_and(|v| v != 0),
        None => false,
    };
    if let Some((name, ..)) = args.keyword.first() {
        let message = format!("unexpected keyword argument \"{name}\"");
        return Err(wrong(
            path,
            &format!("{message}\npred= and preserve_dst= are possible"),
            span,
        ));
    }
    let printed = Printed::take(lookup, &mut args).map_err(|message| wrong(path, &message, span))?;
    let lookup = &printed.lookup;
    let predicate = match (predicate, printed.predicate) {
        (None, Some((value, at))) => Some(truth(argument(&value, at.or(span), path)?.0)),
        (predicate, _) => predicate,
    };
    let preserves = preserves || printed.preserves;
    if preserves && predicate.is_none() {
        return Err(wrong(path, "preserve_dst needs a predicate: pred=…", span));
    }
    let mut exprs = Vec::new();
    let mut literal = Vec::new();
    let mut elements = Vec::new();
    for (value, at) in &args.positional {
        // The registers of a vector may be given as a list.
        let items = match value {
            Value::Tuple(_) | Value::List(_) => value.as_items().unwrap_or_default(),
            value => vec![value.clone()],
        };
        for item in &items {
            let at = at.or(span);
            let (e, number) = argument(item, at, path)?;
            exprs.push(e);
            literal.push(number);
            elements.push(match item {
                Value::Buffer(b) => convert::only_element(b, at),
                _ => None,
            });
        }
    }
    let select = |exprs: &[Expr]| Matched::select(lookup, exprs, &|i| literal[i]);
    let matched = select(&exprs).or_else(|message| {
        // A buffer with one element stands for its value where no address can be.
        let has_element = |i: &usize| elements[*i].is_some();
        let places: Vec<usize> = (0..exprs.len()).filter(has_element).collect();
        let mut choices = places.iter().map(|place| vec![*place]).chain([places.clone()]);
        choices
            .find_map(|choice| {
                let mut tried = exprs.clone();
                for i in choice {
                    tried[i] = elements[i].clone()?;
                }
                let matched = select(&tried).ok()?;
                exprs = tried;
                Some(matched)
            })
            .ok_or_else(|| wrong(path, &message, span))
    })?;
    finish(&matched, &mut exprs, &literal, path)?;
    if preserves && !matched.parts.iter().any(|(o, _)| o.direction != Direction::Read) {
        return Err(wrong(
            path,
            "preserve_dst is for instructions that write a register",
            span,
        ));
    }
    if !interp.is_building() {
        return error(span, format!("{path} is only possible in the body of a kernel"));
    }
    if let Some(stmt) = rows::statement(&matched, &exprs, span) {
        let stmt = match predicate {
            Some(predicate) => predicated(predicate, stmt, span),
            None => stmt,
        };
        interp.emit(stmt)?;
        return Ok(Value::None);
    }
    let guard = match (&predicate, preserves) {
        (None, _) => "",
        (Some(_), false) => "@p ",
        (Some(_), true) => "@p= ",
    };
    let mut list = vec![Expr::string(format!("{guard}{}", matched.tokens.text())).at(span)];
    list.extend(exprs);
    list.extend(predicate);
    interp.emit(Stmt::evaluate(
        Expr::call(Op::PtxInstruction, DType::VOID, list).at(span),
    ))?;
    Ok(Value::None)
}

/// An operation under a predicate: a branch, which says that it stands for a predicate of the instruction.
fn predicated(predicate: Expr, stmt: Stmt, span: Span) -> Stmt {
    let branch = Stmt::if_else(predicate, stmt, None, span);
    Stmt::attr(AttrNode::None, keys::PREDICATE, Expr::int32(1), branch, span)
}

/// Gives numbers their dtypes, and the registers that are written their addresses.
fn finish(matched: &Matched, exprs: &mut [Expr], literal: &[bool], path: &str) -> Result<()> {
    for (operand, range) in &matched.parts {
        let ty = matched.tokens.type_of(operand.ty);
        let named = range
            .clone()
            .find(|i| !literal[*i] && exprs[*i].as_str().is_none());
        let dtype = match named {
            Some(i) if operand.form == OperandForm::Register => Some(exprs[i].dtype),
            _ => types::dtypes(ty).first().copied(),
        };
        for i in range.clone() {
            let e = &exprs[i];
            exprs[i] = match (&operand.form, operand.direction) {
                (OperandForm::Register, Direction::Read) if literal[i] => {
                    let Some(dtype) = dtype else { continue };
                    if !dtype.is_float() && matches!(e.kind, ExprKind::Float(_)) {
                        let message = format!(
                            "\"{}\" is {ty}, and the number has a fraction\nwrite its dtype: T.float32(…)",
                            operand.name
                        );
                        return Err(wrong(path, &message, e.span));
                    }
                    fold::cast(e.clone(), dtype).or_at(e.span)
                }
                (OperandForm::Register, Direction::Write | Direction::Update) => match e.kind {
                    ExprKind::BufferLoad { .. } => {
                        Expr::call(Op::AddressOf, DType::HANDLE, vec![e.clone()]).at(e.span)
                    }
                    _ => continue,
                },
                _ => continue,
            };
        }
    }
    Ok(())
}
