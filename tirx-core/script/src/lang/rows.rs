//! How is a call in text bound to a row of the intrinsics?
//!
//! A call has one of two forms: the user's form, by the row's signature, or the flat form of printed IR, with all
//! arguments of the node by position. Both give the same node.

use std::sync::{LazyLock, OnceLock};

use super::super::eval::{Args, Param, Value, keyword, optional, required};
use super::super::typing::{self, Operand};
use super::call::MatchedCall;
use super::convert;
use super::objects::METADATA_STRING;
use crate::arith::fold;
use crate::diagnostic::{Diagnostic, Result};
use crate::intrin::row::{Arg, ArgKind, Given, Many};
use crate::intrin::{Op, Operands, Row};
use crate::ir::{DType, Expr, ExprKind};
use crate::source::Span;

/// The signature of a row's calls in text.
struct Signature {
    /// `T.ptx.mbarrier.init`.
    name: String,
    params: Vec<Param>,
    /// Defaults; as many as `params`.
    defaults: Vec<Default>,
    /// The name of `*rest`.
    rest: Option<&'static str>,
    /// The signature as text.
    text: String,
}

/// The default of a parameter, a literal.
#[derive(Clone, Copy)]
pub enum Default {
    /// The parameter has no default.
    None,
    /// A number.
    Int(i128),
    /// A string.
    Text(&'static str),
}

/// The signature of an operator; each is read when it is first asked for.
fn signature_of(op: Op) -> &'static Signature {
    static SIGNATURES: LazyLock<Vec<OnceLock<Signature>>> =
        LazyLock::new(|| Op::ALL.iter().map(|_| OnceLock::new()).collect());
    SIGNATURES[op as usize].get_or_init(|| signature(op.row()))
}

fn signature(row: &'static Row) -> Signature {
    let mut out = Signature {
        name: format!("T.{}", row.script),
        params: Vec::new(),
        defaults: Vec::new(),
        rest: None,
        text: String::new(),
    };
    let Some(text) = row.signature else {
        for arg in row.args {
            match arg.many {
                Many::One => out.params.push(required(arg.name)),
                Many::Optional => out.params.push(optional(arg.name)),
                Many::List(_) => out.rest = Some(arg.name),
            }
            out.defaults.push(Default::None);
        }
        let names: Vec<&str> = row.args.iter().map(|a| a.name).collect();
        out.text = format!("{}({})", out.name, names.join(", "));
        return out;
    };
    out.text = format!("{}{text}", out.name);
    let mut named = false;
    for part in text
        .trim_matches(['(', ')'])
        .split(", ")
        .filter(|p| !p.is_empty())
    {
        if let Some(rest) = part.strip_prefix('*') {
            named = true;
            if !rest.is_empty() {
                out.rest = Some(rest);
            }
            continue;
        }
        let (name, default) = part.split_once('=').unwrap_or((part, ""));
        out.defaults.push(match default {
            "" | "None" => Default::None,
            "True" => Default::Int(1),
            "False" => Default::Int(0),
            text if text.starts_with('\'') => Default::Text(text.trim_matches('\'')),
            number => number.parse().map_or(Default::None, Default::Int),
        });
        out.params.push(match (named, default) {
            (true, "") => Param {
                required: true,
                ..keyword(name)
            },
            (true, _) => keyword(name),
            (false, "") => required(name),
            (false, _) => optional(name),
        });
    }
    out
}

/// The function of an operator.
pub(super) fn lookup(op: Op) -> Value {
    let signature = signature_of(op);
    Value::builtin(signature.name.as_str(), move |_, args, span| {
        bind(op, op.row(), signature, args, span)
    })
}

/// The parameters of an operator's function with their defaults, and the name of `*rest`.
pub fn parameters(
    op: Op,
) -> (
    impl ExactSizeIterator<Item = (Param, Default)> + Clone,
    Option<&'static str>,
) {
    let signature = signature_of(op);
    let params = signature.params.iter().copied();
    (params.zip(signature.defaults.iter().copied()), signature.rest)
}

/// The name of an operator's function: `T.ptx.mbarrier.init`.
pub(super) fn name(op: Op) -> &'static str {
    &signature_of(op).name
}

/// The parameters of an operator's function as text: `(bar, count)`.
pub(super) fn signature_text(op: Op) -> &'static str {
    let signature = signature_of(op);
    &signature.text[signature.name.len()..]
}

/// A call of an operator with these arguments, checked by its row.
pub(super) fn checked(call: &MatchedCall, op: Op, args: Vec<Expr>) -> Result<Value> {
    if let Err(message) = op.row().read(&args) {
        return match message.split_once('\n') {
            Some((message, help)) => call.fail_with(message, help),
            None => call.fail(message),
        };
    }
    let dtype = op.result(&args).unwrap_or(DType::VOID);
    Ok(Value::Expr(Expr::call(op, dtype, args).at(call.span)))
}

/// The names of rows and of the namespaces that they are in, without `T.`.
pub(super) fn is_namespace(path: &str) -> bool {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let rows = Op::ALL.iter().map(|op| op.row());
        rows.flat_map(|row| row.also.iter().copied().chain([row.script]))
            .collect()
    });
    NAMES
        .iter()
        .any(|name| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

fn bind(
    op: Op,
    row: &'static Row,
    signature: &'static Signature,
    mut args: Args,
    span: Span,
) -> Result<Value> {
    args.take_keyword("span");
    let list = match flat(row, signature, &args, span) {
        Some(list) => list?,
        None => written(row, signature, args, span)?,
    };
    let wrong = |message: String| {
        let (message, help) = message.split_once('\n').unwrap_or((&message, ""));
        let diagnostic = Diagnostic::new(span, format!("{}: {message}", signature.name));
        Box::new(match help {
            "" => diagnostic.help(format!("the signature is {}", signature.text)),
            help => diagnostic.help(help),
        })
    };
    row.read(&list).map_err(wrong)?;
    match op.result(&list) {
        Some(dtype) => Ok(Value::Expr(Expr::call(op, dtype, list).at(span))),
        None => Err(wrong("needs its dtype: T.call_intrin(dtype, name, …)".into())),
    }
}

/// The arguments of a call in the form of printed IR; `None` where it is not in that form.
fn flat(row: &'static Row, signature: &Signature, args: &Args, span: Span) -> Option<Result<Vec<Expr>>> {
    row.signature?;
    if !args.keyword.is_empty() {
        return None;
    }
    let plain = |(value, at): &(Value, Span)| convert::argument(value, at.or(span), "").ok();
    let exprs: Vec<Expr> = args.positional.iter().map(plain).collect::<Option<_>>()?;
    let mut out = Vec::new();
    let mut values = args.positional.iter();
    for (arg, part) in Operands::read(row, &exprs).ok()?.each() {
        for (value, at) in values.by_ref().take(part.len()) {
            match convert(&signature.name, arg, value, at.or(span)) {
                Ok(e) if arg.accepts(&e).is_ok() => out.push(e),
                _ => return None,
            }
        }
    }
    Some(Ok(out))
}

/// The arguments of a call as users write it.
fn written(row: &'static Row, signature: &'static Signature, args: Args, span: Span) -> Result<Vec<Expr>> {
    let call = MatchedCall::new(
        &signature.name,
        &signature.params,
        signature.rest.is_some(),
        args,
        span,
    )?;
    let mut given = Given::default();
    for (param, default) in signature.params.iter().zip(&signature.defaults) {
        let described = row.args.iter().chain(row.words).find(|a| a.name == param.name);
        let Some(arg) = described else {
            continue;
        };
        let list = match (call.get(param.name), default) {
            (Some((value, at)), _) => items(&signature.name, arg, value, at.or(span))?,
            (None, Default::None) => Vec::new(),
            (None, Default::Int(v)) => vec![convert(&signature.name, arg, &Value::Int(*v), span)?],
            (None, Default::Text(text)) => vec![Expr::string(*text).at(span)],
        };
        given.values.push((param.name, list));
    }
    if let Some(name) = signature.rest {
        let described = row.args.iter().chain(row.words).find(|a| a.name == name);
        let mut list = Vec::new();
        for (value, at) in &call.rest {
            if let Some(arg) = described {
                list.extend(items(&signature.name, arg, value, at.or(span))?);
            }
        }
        given.values.push((name, list));
    }
    let help = || format!("the signature is {}", signature.text);
    if let Some(complete) = row.complete {
        complete(&mut given).or_else(|message| call.fail_with(message, help()))?;
    }
    let mut out = Vec::new();
    for arg in row.args {
        match arg.kind {
            ArgKind::Has(of) => out.push(Expr::int32((!given.get(of).is_empty()).into()).at(span)),
            ArgKind::Count(of) => out.push(Expr::int32(given.get(of).len() as i32).at(span)),
            _ => {
                let list = given.get(arg.name);
                if list.is_empty() && matches!(arg.many, Many::One) {
                    return call.fail_with(format!("parameter \"{}\" must be given", arg.name), help());
                }
                out.extend(list.iter().cloned().map(|e| e.or_at(span)));
            }
        }
    }
    Ok(out)
}

/// The arguments of a node from those of a signature; `None` where one is missing.
pub(super) fn from_given(op: Op, mut given: Given, span: Span) -> Option<Vec<Expr>> {
    let (row, signature) = (op.row(), signature_of(op));
    for (param, default) in signature.params.iter().zip(&signature.defaults) {
        if !given.get(param.name).is_empty() {
            continue;
        }
        let described = row.args.iter().chain(row.words).find(|a| a.name == param.name);
        let value = match (default, described) {
            (Default::Int(v), Some(arg)) => convert(&signature.name, arg, &Value::Int(*v), span).ok()?,
            (Default::Text(text), Some(_)) => Expr::string(*text).at(span),
            _ => continue,
        };
        given.values.push((param.name, vec![value]));
    }
    if let Some(complete) = row.complete {
        complete(&mut given).ok()?;
    }
    let mut out = Vec::new();
    for arg in row.args {
        match arg.kind {
            ArgKind::Has(of) => out.push(Expr::int32((!given.get(of).is_empty()).into()).at(span)),
            ArgKind::Count(of) => out.push(Expr::int32(given.get(of).len() as i32).at(span)),
            _ => {
                let list = given.get(arg.name);
                if list.is_empty() && matches!(arg.many, Many::One) {
                    return None;
                }
                out.extend(list.iter().cloned().map(|e| e.or_at(span)));
            }
        }
    }
    Some(out)
}

/// The expressions that a value provides for an argument: the items of a tuple or list for an argument that takes
/// several.
fn items(function: &str, arg: &Arg, value: &Value, span: Span) -> Result<Vec<Expr>> {
    match value.as_items() {
        Some(items) if matches!(arg.many, Many::List(_)) => items
            .iter()
            .map(|item| convert(function, arg, item, span))
            .collect(),
        _ => Ok(vec![convert(function, arg, value, span)?]),
    }
}

/// A value as an argument of a kind. Validity is checked by [`Arg::accepts`].
fn convert(function: &str, arg: &Arg, value: &Value, span: Span) -> Result<Expr> {
    let plain = || convert::argument(value, span, function);
    // A member of an enumeration stands for its number.
    let member = match value {
        Value::Instance(member) => member.get("value").and_then(|v| v.as_int()),
        _ => None,
    };
    let constant = || match value {
        Value::Instance(_) => member,
        Value::Bool(set) => Some(i128::from(*set)),
        Value::Float(v) if v.fract() == 0.0 && v.abs() < 1e15 => Some(*v as i128),
        Value::Expr(e) => e
            .as_int()
            .or_else(|| e.as_float().filter(|v| v.fract() == 0.0).map(|v| v as i128)),
        other => convert::const_int(other),
    };
    let e = match arg.kind {
        ArgKind::DTypeName | ArgKind::DType if matches!(value, Value::DType(_)) => {
            match convert::dtype(value, span)? {
                Some(dtype) => Expr::string(dtype.to_string()),
                None => plain()?,
            }
        }
        ArgKind::Text(_) | ArgKind::DTypeName | ArgKind::DType | ArgKind::Name => {
            match convert::text(value) {
                Some(text) if text.starts_with(METADATA_STRING) => {
                    let message = format!(
                        "{function}: printed IR leaves strings of several lines out: this one is in its metadata"
                    );
                    return Err(Box::new(
                        Diagnostic::new(span, message).help("write the string itself"),
                    ));
                }
                Some(text) => Expr::string(text),
                None => plain()?,
            }
        }
        ArgKind::Flag | ArgKind::Has(_) => match constant() {
            Some(v) => Expr::int32((v != 0).into()),
            None => plain()?,
        },
        ArgKind::Bool => match constant() {
            Some(v) => Expr::bool(v != 0),
            None => plain()?,
        },
        ArgKind::Immediate(..) | ArgKind::Count(_) => match constant().and_then(|v| i32::try_from(v).ok()) {
            Some(v) => Expr::int32(v),
            None => plain()?,
        },
        // A buffer of one element stands for that element.
        ArgKind::Value(_) if matches!(value, Value::Buffer(b) if b.shape.iter().all(|n| n.is_int(1))) => {
            first_element(value).unwrap_or(plain()?)
        }
        ArgKind::Value(_) if member.is_some_and(|n| i32::try_from(n).is_ok()) => {
            Expr::int32(member.unwrap_or_default() as i32)
        }
        ArgKind::Value(dtype) => match convert::operand(value, span) {
            Some(operand) => number(operand?, dtype, span)?,
            None => plain()?,
        },
        ArgKind::Condition | ArgKind::Mask => match convert::operand(value, span) {
            Some(operand) => typing::literal(operand?, span)?,
            None => plain()?,
        },
        ArgKind::Any | ArgKind::Node | ArgKind::Array(_) => plain()?,
        // A buffer stands for its first element.
        ArgKind::Pointer(_) => match first_element(value) {
            Some(element) => Expr::call(Op::AddressOf, DType::HANDLE, vec![element]),
            None => plain()?,
        },
        ArgKind::Register(..) | ArgKind::Element(..) => {
            let e = plain()?;
            match e.kind {
                ExprKind::BufferLoad { .. } => Expr::call(Op::AddressOf, DType::HANDLE, vec![e]),
                _ => e,
            }
        }
    };
    Ok(e.or_at(span))
}

/// The first element of a buffer.
fn first_element(value: &Value) -> Option<Expr> {
    let Value::Buffer(buffer) = value else {
        return None;
    };
    Some(Expr::load(
        buffer,
        buffer.shape.iter().map(|_| Expr::int32(0)).collect(),
    ))
}

/// A number as a register of a dtype: literals take the dtype where int32 cannot hold them.
fn number(operand: Operand, dtype: DType, span: Span) -> Result<Expr> {
    match operand {
        Operand::Expr(e) if dtype.is_float() && matches!(e.kind, ExprKind::Float(_) | ExprKind::Int(_)) => {
            Ok(fold::cast(e, dtype))
        }
        Operand::Expr(e) => Ok(e),
        Operand::Int(v) if dtype.is_integer() && dtype.bits <= 32 && i32::try_from(v).is_ok() => {
            Ok(Expr::int32(v as i32).at(span))
        }
        literal => typing::cast(literal, dtype, span),
    }
}
