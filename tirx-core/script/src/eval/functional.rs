//! Python's `functools`, `itertools` and `operator`.

use std::cell::RefCell;
use std::rc::Rc;

use tirx_python::Operator;

use super::class::{Descriptor, DescriptorKind};
use super::value::{Iter, Value};
use super::{Args, Interpreter, optional, required};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// `functools.name`.
pub(super) fn functools(name: &'static str) -> Option<Value> {
    Some(match name {
        "partial" => Value::builtin("functools.partial", |_, mut args, span| {
            if args.positional.is_empty() {
                return error(span, "functools.partial() needs a function");
            }
            let (function, _) = args.positional.remove(0);
            let first = args;
            Ok(Value::builtin("functools.partial", move |interp, args, span| {
                let mut all = first.clone();
                all.names = args.names.clone();
                all.names_are_tuple = args.names_are_tuple;
                all.positional.extend(args.positional);
                for (name, value, at) in args.keyword {
                    all.keyword.retain(|(n, ..)| *n != name);
                    all.keyword.push((name, value, at));
                }
                interp.call_value(&function, all, span)
            }))
        }),
        "reduce" => Value::builtin("functools.reduce", |interp, args, span| {
            let params = [required("function"), required("iterable"), optional("initial")];
            let bound = args.bind("functools.reduce", &params, span)?;
            let (Some((function, _)), Some((values, at))) = (&bound[0], &bound[1]) else {
                return Ok(Value::None);
            };
            let mut items = interp.iterate(values, *at)?.into_iter();
            let start = bound[2].as_ref().map(|v| v.0.clone()).or_else(|| items.next());
            let Some(mut total) = start else {
                return interp.raise(
                    "TypeError",
                    span,
                    "functools.reduce() of nothing without an initial value",
                );
            };
            for item in items {
                total = interp.call_value(function, Args::positional([total, item], span), span)?;
            }
            Ok(total)
        }),
        "wraps" => Value::builtin("functools.wraps", |_, _, _| {
            Ok(Value::builtin("functools.wraps", super::modules::first_argument))
        }),
        "cached_property" => Value::builtin("functools.cached_property", |_, args, span| {
            let [(function, _)] = args.exactly("functools.cached_property", ["function"], span)?;
            Ok(Value::Object(Rc::new(Descriptor {
                kind: DescriptorKind::CachedProperty,
                function,
                setter: None,
            })))
        }),
        // `lru_cache` and `cache`.
        _ => Value::builtin("functools.lru_cache", |_, mut args, _| {
            args.take_keyword("maxsize");
            match args.positional.first() {
                Some((f @ (Value::Function(_) | Value::Builtin(_)), _)) => Ok(memoized(f.clone())),
                _ => Ok(Value::builtin("functools.lru_cache", |_, args, span| {
                    let [(function, _)] = args.exactly("functools.lru_cache", ["function"], span)?;
                    Ok(memoized(function))
                })),
            }
        }),
    })
}

fn memoized(function: Value) -> Value {
    let memory: RefCell<rustc_hash::FxHashMap<super::Key, Value>> = RefCell::default();
    Value::builtin("cached function", move |interp, args, span| {
        let mut parts: Vec<Value> = args.positional.iter().map(|a| a.0.clone()).collect();
        for (name, value, _) in &args.keyword {
            parts.push(Value::Str(name.clone()));
            parts.push(value.clone());
        }
        let Ok(key) = super::key(&Value::tuple(parts)) else {
            return interp.call_value(&function, args, span);
        };
        if let Some(v) = memory.borrow().get(&key) {
            return Ok(v.clone());
        }
        let value = interp.call_value(&function, args, span)?;
        memory.borrow_mut().insert(key, value.clone());
        Ok(value)
    })
}

/// `itertools.name`.
pub(super) fn itertools(name: &'static str) -> Value {
    Value::builtin(format!("itertools.{name}"), move |interp, args, span| {
        call_itertools(interp, name, args, span)
    })
}

/// The items of the items.
pub(super) fn chain(sources: Rc<Iter>) -> Value {
    let mut current: Option<Rc<Iter>> = None;
    Iter::native(move |interp, span| {
        loop {
            if let Some(it) = &current
                && let Some(item) = interp.next_item(it, span)?
            {
                return Ok(Some(item));
            }
            let Some(next) = interp.next_item(&sources, span)? else {
                return Ok(None);
            };
            current = Some(interp.iterator(&next, span)?);
        }
    })
}

fn call_itertools(interp: &mut Interpreter, name: &'static str, mut args: Args, span: Span) -> Result<Value> {
    let keyword = |args: &mut Args, name: &str| args.take_keyword(name).map(|v| v.0);
    let repeat = keyword(&mut args, "repeat");
    let start = keyword(&mut args, "start");
    let step = keyword(&mut args, "step");
    let r = keyword(&mut args, "r");
    if let Some((key, _, at)) = args.keyword.first() {
        return error(*at, format!("itertools.{name}() has no parameter \"{key}\""));
    }
    let v: Vec<Value> = args.positional.into_iter().map(|a| a.0).collect();
    let int = |v: Option<&Value>| v.and_then(Value::as_int);
    let out: Vec<Value>;
    match (name, &v[..]) {
        ("product", sources) => {
            let mut pools = Vec::new();
            for s in sources {
                pools.push(interp.iterate(s, span)?);
            }
            let times = int(repeat.as_ref()).unwrap_or(1).clamp(0, 64) as usize;
            let pools: Vec<Vec<Value>> = std::iter::repeat_n(&pools, times).flatten().cloned().collect();
            let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
            for pool in &pools {
                interp.check_items(rows.len().saturating_mul(pool.len()), span)?;
                rows = rows
                    .iter()
                    .flat_map(|row| {
                        pool.iter()
                            .map(move |v| row.iter().cloned().chain([v.clone()]).collect())
                    })
                    .collect();
            }
            out = rows.into_iter().map(Value::tuple).collect();
        }
        ("permutations" | "combinations", [source, rest @ ..]) => {
            let pool = interp.iterate(source, span)?;
            let n = pool.len();
            let r = int(rest.first().or(r.as_ref())).map_or(n, |r| r.max(0) as usize);
            let mut picks: Vec<Vec<usize>> = vec![Vec::new()];
            for _ in 0..r {
                let mut next = Vec::new();
                for pick in &picks {
                    let first = if name == "combinations" {
                        pick.last().map_or(0, |l| l + 1)
                    } else {
                        0
                    };
                    for i in (first..n).filter(|i| name == "combinations" || !pick.contains(i)) {
                        next.push(pick.iter().copied().chain([i]).collect());
                    }
                    interp.check_items(next.len(), span)?;
                }
                picks = next;
            }
            out = picks
                .into_iter()
                .map(|p| Value::tuple(p.into_iter().map(|i| pool[i].clone()).collect()))
                .collect();
        }
        ("chain", _) => {
            let sources = interp.iterator(&Value::tuple(v), span)?;
            return Ok(chain(sources));
        }
        ("count", rest) => {
            let start = rest.first().cloned().or(start).unwrap_or(Value::Int(0));
            let step = rest.get(1).cloned().or(step).unwrap_or(Value::Int(1));
            return Ok(Iter::count(start, step));
        }
        _ => return error(span, format!("wrong arguments for itertools.{name}()")),
    }
    Ok(Value::iterator(out))
}

/// `operator.name`.
pub(super) fn operator(name: &'static str) -> Value {
    use tirx_python::{CmpOp, UnaryOp};
    if matches!(name, "itemgetter" | "attrgetter") {
        return Value::builtin(format!("operator.{name}"), move |_, args, _| {
            let keys: Vec<Value> = args.positional.into_iter().map(|a| a.0).collect();
            Ok(Value::builtin(
                format!("operator.{name}"),
                move |interp, args, span| {
                    let [(object, _)] = args.exactly(name, ["object"], span)?;
                    let mut out = Vec::new();
                    for k in &keys {
                        out.push(match (name, k) {
                            ("attrgetter", Value::Str(path)) => {
                                let mut v = object.clone();
                                for part in path.split('.') {
                                    v = interp.get_attribute(&v, part, span)?;
                                }
                                v
                            }
                            _ => interp.subscript(&object, k, span)?,
                        });
                    }
                    Ok(if out.len() == 1 {
                        out.remove(0)
                    } else {
                        Value::tuple(out)
                    })
                },
            ))
        });
    }
    Value::builtin(format!("operator.{name}"), move |interp, args, span| {
        if matches!(name, "neg" | "not_") {
            let [(a, _)] = args.exactly(name, ["a"], span)?;
            let op = if name == "neg" {
                UnaryOp::USub
            } else {
                UnaryOp::Not
            };
            return match (op, a.is_ir()) {
                (_, true) => crate::lang::unary(interp, op, &a, span),
                (UnaryOp::Not, _) => Ok(Value::Bool(!interp.truth(&a, span)?)),
                _ => interp.meta_unary(op, &a, span),
            };
        }
        let [(a, _), (b, _)] = args.exactly(name, ["a", "b"], span)?;
        let compare = match name {
            "eq" => Some(CmpOp::Eq),
            "ne" => Some(CmpOp::NotEq),
            "lt" => Some(CmpOp::Lt),
            "le" => Some(CmpOp::LtE),
            "gt" => Some(CmpOp::Gt),
            "ge" => Some(CmpOp::GtE),
            _ => None,
        };
        if let Some(op) = compare {
            return interp.compare(op, &a, &b, span);
        }
        let op = match name {
            "add" => Operator::Add,
            "sub" => Operator::Sub,
            "mul" => Operator::Mult,
            "truediv" => Operator::Div,
            "floordiv" => Operator::FloorDiv,
            "mod" => Operator::Mod,
            "pow" => Operator::Pow,
            "and_" => Operator::BitAnd,
            "or_" => Operator::BitOr,
            "xor" => Operator::BitXor,
            "lshift" => Operator::LShift,
            _ => Operator::RShift,
        };
        interp.binary(op, &a, &b, span)
    })
}
