//! Python's builtin functions on iterators: `iter`, `next`, `zip`, `map`, ….

use super::value::{Iter, Value};
use super::{Args, Interpreter, args};
use crate::diagnostic::{Result, error};
use crate::source::Span;

pub(super) fn iter(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    // `iter(function, sentinel)` calls the function until it gives the sentinel.
    if let [(function, _), (sentinel, _)] = &args.positional[..] {
        let (function, sentinel) = (function.clone(), sentinel.clone());
        return Ok(Iter::native(move |interp, span| {
            let item = interp.call_value(&function, Args::default(), span)?;
            Ok((!interp.equals(&item, &sentinel, span)?).then_some(item))
        }));
    }
    let [(value, at)] = args.exactly("iter", ["iterable"], span)?;
    interp.iterator(&value, at).map(Value::Iterator)
}

pub(super) fn zip(interp: &mut Interpreter, mut args: Args, span: Span) -> Result<Value> {
    let strict = match args.take_keyword("strict") {
        Some((v, at)) => interp.truth(&v, at)?,
        None => false,
    };
    let values: Vec<Value> = args.positional.into_iter().map(|a| a.0).collect();
    interp.zip(&values, strict, span)
}

pub(super) fn enumerate(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "enumerate",
        &[args::required("iterable"), args::optional("start")],
        span,
    )?;
    let start = bound[1].as_ref().and_then(|v| v.0.as_int()).unwrap_or(0);
    let Some((source, at)) = &bound[0] else {
        return Ok(Value::None);
    };
    let items = interp.iterator(source, *at)?;
    let mut number = start;
    Ok(Iter::native(move |interp, span| {
        let item = interp.next_item(&items, span)?;
        number = number.saturating_add(1);
        Ok(item.map(|v| Value::tuple(vec![Value::Int(number - 1), v])))
    }))
}

pub(super) fn quantify(
    interp: &mut Interpreter,
    args: Args,
    span: Span,
    name: &'static str,
    stop: bool,
) -> Result<Value> {
    let [(value, at)] = args.exactly(name, ["iterable"], span)?;
    let items = interp.iterator(&value, at)?;
    while let Some(item) = interp.next_item(&items, at)? {
        if interp.truth(&item, at)? == stop {
            return Ok(Value::Bool(stop));
        }
    }
    Ok(Value::Bool(!stop))
}

pub(super) fn map(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let mut values = args.positional.into_iter().map(|a| a.0);
    let Some(function) = values.next() else {
        return error(span, "map() needs a function");
    };
    let values: Vec<Value> = values.collect();
    let Value::Iterator(rows) = interp.zip(&values, false, span)? else {
        return Ok(Value::None);
    };
    Ok(Iter::native(move |interp, span| {
        match interp.next_item(&rows, span)? {
            Some(row) => {
                let row = row.as_items().unwrap_or_default();
                interp
                    .call_value(&function, Args::positional(row, span), span)
                    .map(Some)
            }
            None => Ok(None),
        }
    }))
}

pub(super) fn filter(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(function, _), (value, at)] = args.exactly("filter", ["function", "iterable"], span)?;
    let items = interp.iterator(&value, at)?;
    Ok(Iter::native(move |interp, span| {
        while let Some(item) = interp.next_item(&items, span)? {
            let keep = match &function {
                Value::None => item.clone(),
                f => interp.call_value(f, Args::positional([item.clone()], span), span)?,
            };
            if interp.truth(&keep, span)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }))
}

pub(super) fn next(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "next",
        &[args::required("iterator"), args::optional("default")],
        span,
    )?;
    let Some((value, at)) = &bound[0] else {
        return Ok(Value::None);
    };
    let item = match value {
        Value::Iterator(it) => interp.next_item(&it.clone(), *at)?,
        Value::Instance(i) => match interp.class_attribute(&i.class, "__next__") {
            Some(f) => match (interp.call_method(&f, value, Args::default(), *at), &bound[1]) {
                (Err(e), Some((default, _))) if interp.raised_is(&e, "StopIteration") => {
                    interp.exceptions.raised = None;
                    return Ok(default.clone());
                }
                (result, _) => return result,
            },
            None => return interp.raise("TypeError", *at, format!("{} is no iterator", value.type_name())),
        },
        other => return interp.raise("TypeError", *at, format!("{} is no iterator", other.type_name())),
    };
    match (item, &bound[1]) {
        (Some(v), _) => Ok(v),
        (None, Some((default, _))) => Ok(default.clone()),
        (None, None) => match value {
            Value::Iterator(it) => interp.stop_iteration(it, span),
            _ => interp.raise_with("StopIteration", vec![], span, "the iterator has no more items"),
        },
    }
}
