//! `T.cuda.wait_until`: a thread waits until a word of global memory has a value.

use super::super::eval::{Args, Interpreter, Param, Value, optional, required};
use super::call::{Function, MatchedCall, function};
use super::{condition, convert, local_scalar, mnemonic};
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{Buffer, DType, Expr, ExprKind, Stmt, StmtKind, Type, fold};

const WAIT: &[Param] = &[
    required("dst"),
    required("ptr"),
    required("predicate"),
    optional("scope"),
    optional("space"),
    optional("ptx_type"),
    optional("backoff_ns"),
];

pub(super) static FUNCTIONS: &[Function] = &[function("T.cuda.wait_until", WAIT, wait_until)];

/// The types of words that can be waited for, with their bits.
const WORDS: &[(&str, u8)] = &[
    ("b32", 32),
    ("u32", 32),
    ("s32", 32),
    ("b64", 64),
    ("u64", 64),
    ("s64", 64),
];

/// Loads the word into `dst` until the predicate holds. The loads are relaxed; one acquiring load follows, whose value nobody
/// reads: it makes visible what was written before the word. That is cheaper than acquiring each time.
fn wait_until(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let scope = call.text_or("scope", "gpu")?;
    if !["cta", "cluster", "gpu", "sys"].contains(&&*scope) {
        return call.fail(format!(
            "scope must be cta, cluster, gpu or sys, found \"{scope}\""
        ));
    }
    let space = call.text_or("space", "global")?;
    if &*space != "global" {
        return call.fail_with(
            format!("waits for a word of global memory, found space=\"{space}\""),
            "threads of a block or a cluster wait on an mbarrier: T.cuda.mbarrier_wait".to_string(),
        );
    }
    let dst = destination(call)?;
    let pointer = call.argument("ptr")?;
    let said = call.text_or("ptx_type", "")?;
    let word = word_type(call, &pointer, &said, dst.dtype)?;
    let element = Value::Expr(Expr::load(&dst, vec![Expr::int32(0)]).at(call.span));
    let predicate = match call.get("predicate") {
        Some((value @ (Value::Function(_) | Value::Builtin(_)), at)) => {
            let value = value.clone();
            interp.call_value(&value, Args::positional([element.clone()], at), at)?
        }
        Some((value, _)) => value.clone(),
        None => Value::None,
    };
    let holds = condition(&predicate, call.span)?;
    let backoff = match call.get("backoff_ns") {
        None | Some((Value::None | Value::Int(0), _)) => None,
        Some(_) => Some(call.argument("backoff_ns")?),
    };
    let load = |interp: &mut Interpreter, order: &str, into: Value| {
        let text = format!("ld.{order}.{scope}.{space}.{word}");
        let args = Args::positional([into, Value::Expr(pointer.clone())], call.span);
        let chain = mnemonic::subscript(&Value::Str(text.into()), call.span)?;
        interp.call_value(&chain, args, call.span)
    };
    load(interp, "relaxed", element.clone())?;
    interp.open_block(call.span)?;
    let body = (|| {
        if let Some(time) = backoff {
            let time = fold::cast(time, DType::UINT32);
            let sleep = Expr::call(Op::CudaNanoSleep, DType::VOID, vec![time]).at(call.span);
            interp.emit(Stmt::evaluate(sleep))?;
        }
        load(interp, "relaxed", element)
    })();
    let block = interp.close_block();
    body?;
    let again = Expr::logical_not(holds).at(call.span);
    interp.emit(Stmt::new(StmtKind::While(again, block), call.span))?;
    let seen = local_scalar(interp, "seen", dst.dtype, call.span)?;
    let seen = Value::Expr(Expr::load(&seen, vec![Expr::int32(0)]).at(call.span));
    load(interp, "acquire", seen)?;
    Ok(Value::None)
}

/// The variable that the word is loaded into.
fn destination(call: &MatchedCall) -> Result<Buffer> {
    let buffer = match call.get("dst") {
        Some((Value::Buffer(buffer), _)) => Some(buffer.clone()),
        _ => match &call.argument("dst")?.kind {
            ExprKind::BufferLoad { buffer, .. } => Some(buffer.clone()),
            _ => None,
        },
    };
    match buffer {
        Some(buffer) if buffer.scope() == "local" && buffer.shape.iter().all(|n| n.is_int(1)) => Ok(buffer),
        _ => call.fail_with(
            "dst must be a variable of the thread",
            "declare it before: value: T.uint32",
        ),
    }
}

/// The type of PTX that the word is loaded as: that of the pointer's elements, or the given one.
fn word_type(call: &MatchedCall, pointer: &Expr, said: &str, dst: DType) -> Result<&'static str> {
    let element = match convert::expr_type(pointer) {
        Type::Pointer { element, .. } if element.is_integer() => Some(element),
        _ => None,
    };
    let name = match (said, element) {
        ("", Some(element)) => format!("{}{}", if element.is_int() { 's' } else { 'u' }, element.bits),
        ("", None) => {
            return call.fail_with(
                "the pointer does not show the width of the word",
                "write ptx_type=\"u32\"",
            );
        }
        (said, _) => said.to_string(),
    };
    let Some((word, bits)) = WORDS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
        return call.fail(format!("waits for a word of {}, found {name}", known.join(", ")));
    };
    if dst.bits != *bits || element.is_some_and(|e| e.bits != *bits) {
        let element = element.map_or(String::new(), |e| format!(", the pointer's elements {e}"));
        return call.fail(format!(
            "the word is {word}, dst {dst}{element}: all have as many bits"
        ));
    }
    Ok(word)
}
