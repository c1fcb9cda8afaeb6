//! Modules that kernel files may import: those of Python that need no host, and the names TIRx documents.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use ruff_python_ast::Operator;

use super::class::{Auto, Descriptor, DescriptorKind, FieldSpec};
use super::ops::as_float;
use super::value::{Class, ClassKind, DataClass, Field, Value};
use super::{Args, Interpreter, args, keyword, optional, required};
use crate::diagnostic::{Result, error};
use crate::source::Span;

/// Documented paths of the language and the namespace behind each.
const LANGUAGE: &[(&str, &str)] = &[
    ("tvm.script.tirx", "T"),
    ("tvm.script.tir", "T"),
    ("tvm.tirx.script", "T"),
    ("tvm.script.ir", "I"),
    ("tvm.script.tirx.tile", "Tx"),
    ("tvm.tirx.script.tile", "Tx"),
    ("tvm.tirx.layout", "layout"),
    ("tvm.script.T", "T"),
    ("tvm.script.I", "I"),
];

/// Modules of Python and packages with a namespace of their own here.
const NAMESPACES: &[&str] = &[
    "math",
    "functools",
    "itertools",
    "operator",
    "enum",
    "dataclasses",
    "typing",
    "typing_extensions",
    "collections",
    "collections.abc",
    "abc",
    "copy",
    "__future__",
    "tvm",
    "tvm.script",
    "tvm.tirx",
    "numbers",
];

/// Packages of the host: importing them is fine, using them in a kernel file is not.
const HOST_ONLY: &[&str] = &[
    "torch",
    "numpy",
    "np",
    "cupy",
    "triton",
    "jax",
    "ml_dtypes",
    "pytest",
    "os",
    "sys",
    "time",
    "argparse",
    "random",
    "pathlib",
    "logging",
    "warnings",
    "subprocess",
    "tempfile",
    "json",
    "re",
    "string",
    "statistics",
    "contextlib",
    "inspect",
    "textwrap",
    "pprint",
    "unittest",
    "ctypes",
    "threading",
    "io",
    "datetime",
    "types",
    "tabulate",
    "tqdm",
    "matplotlib",
    "scipy",
    "pandas",
    "cuda",
    "flash_attn",
    "flashinfer",
    "deep_gemm",
    "tirx_kernels",
];

/// The module of a dotted name; `None` for an unknown one.
pub(super) fn module(path: &str) -> Option<Value> {
    if let Some((_, name)) = LANGUAGE.iter().find(|(p, _)| *p == path) {
        return Some(Value::namespace(name));
    }
    if NAMESPACES.contains(&path) {
        return Some(Value::namespace(path));
    }
    let first = path.split('.').next().unwrap_or(path);
    if HOST_ONLY.contains(&first) || first == "tvm" {
        return Some(host_only(path));
    }
    None
}

/// Names of modules, for suggestions.
pub(super) fn module_names() -> impl Iterator<Item = &'static str> {
    LANGUAGE
        .iter()
        .map(|(p, _)| *p)
        .chain(NAMESPACES.iter().copied())
        .chain(HOST_ONLY.iter().copied())
}

/// A value of the host.
pub(super) fn host_only(path: &str) -> Value {
    Value::Unavailable(
        format!("\"{path}\" belongs to the host program: it has no value in a kernel file").into(),
    )
}

const MATH: &[&str] = &[
    "sqrt",
    "ceil",
    "floor",
    "trunc",
    "log",
    "log2",
    "log10",
    "log1p",
    "exp",
    "expm1",
    "pow",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "gcd",
    "lcm",
    "prod",
    "isqrt",
    "fabs",
    "factorial",
    "comb",
    "copysign",
    "hypot",
    "fsum",
    "isnan",
    "isinf",
    "isfinite",
    "isclose",
    "degrees",
    "radians",
    "fmod",
    "pi",
    "e",
    "tau",
    "inf",
    "nan",
];
const FUNCTOOLS: &[&str] = &[
    "partial",
    "reduce",
    "lru_cache",
    "cache",
    "wraps",
    "cached_property",
];
const ITERTOOLS: &[&str] = &[
    "product",
    "permutations",
    "combinations",
    "chain",
    "repeat",
    "accumulate",
    "zip_longest",
    "count",
    "islice",
    "pairwise",
    "starmap",
    "takewhile",
    "dropwhile",
];
const OPERATOR: &[&str] = &[
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "neg",
    "not_",
    "itemgetter",
    "attrgetter",
];

/// Names of a module, for suggestions.
pub(super) fn names(path: &str) -> Vec<&'static str> {
    match path {
        "math" => MATH.to_vec(),
        "functools" => FUNCTOOLS.to_vec(),
        "itertools" => ITERTOOLS.to_vec(),
        "operator" => OPERATOR.to_vec(),
        "enum" => vec!["Enum", "IntEnum", "auto", "unique"],
        "dataclasses" => vec!["dataclass", "field", "replace", "asdict", "fields"],
        "collections" => vec!["namedtuple", "OrderedDict"],
        "copy" => vec!["copy", "deepcopy"],
        _ => Vec::new(),
    }
}

/// `path.name` of a module of Python.
pub(super) fn attribute(path: &str, name: &str) -> Option<Value> {
    let find = |list: &[&'static str]| list.iter().copied().find(|n| *n == name);
    match path {
        "math" => math(find(MATH)?),
        "functools" => functools(find(FUNCTOOLS)?),
        "itertools" => find(ITERTOOLS).map(itertools),
        "itertools.chain" if name == "from_iterable" => Some(Value::builtin(
            "itertools.chain.from_iterable",
            |interp, args, span| {
                let [(value, at)] = args.exactly("chain.from_iterable", ["iterable"], span)?;
                let mut out = Vec::new();
                for item in interp.iterate(&value, at)? {
                    out.extend(interp.iterate(&item, at)?);
                }
                interp.check_items(out.len(), span)?;
                Ok(Value::iterator(out))
            },
        )),
        "operator" => find(OPERATOR).map(operator),
        "enum" if name == "auto" => Some(Value::builtin("enum.auto", |_, _, _| {
            Ok(Value::Object(Rc::new(Auto)))
        })),
        "enum" if name == "unique" => Some(Value::builtin("enum.unique", first_argument)),
        "dataclasses" => dataclasses(name),
        "collections" if name == "namedtuple" => Some(Value::builtin("collections.namedtuple", namedtuple)),
        "copy" if matches!(name, "copy" | "deepcopy") => {
            let deep = name == "deepcopy";
            Some(Value::builtin("copy", move |interp, args, span| {
                let [(value, _)] = args.exactly("copy", ["object"], span)?;
                copy(interp, &value, deep, span)
            }))
        }
        "abc" if matches!(name, "abstractmethod" | "abstractproperty") => {
            Some(Value::builtin("abc.abstractmethod", first_argument))
        }
        "typing" | "typing_extensions" => Some(match name {
            "TYPE_CHECKING" => Value::Bool(false),
            "cast" => Value::builtin("typing.cast", |_, args, span| {
                let [_, (value, _)] = args.exactly("typing.cast", ["type", "value"], span)?;
                Ok(value)
            }),
            "overload" | "final" => Value::builtin("typing.overload", first_argument),
            "NamedTuple" => return None,
            _ => Value::namespace(&format!("typing.{name}")),
        }),
        "collections.abc" | "numbers" => Some(Value::namespace(&format!("typing.{name}"))),
        "__future__" => Some(Value::None),
        // `tvm.tirx.min`, `tvm.tirx.TileLayout` are those of the language.
        "tvm.tirx" => crate::script::lang::attribute("T", name)
            .or_else(|| crate::script::lang::attribute("layout", name))
            .filter(|_| {
                module(&format!("tvm.tirx.{name}")).is_none_or(|m| matches!(m, Value::Unavailable(_)))
            }),
        _ => None,
    }
}

impl Interpreter {
    /// Classes of modules: there is one of each.
    pub(super) fn builtin_module_class(&mut self, path: &str, name: &str) -> Option<Value> {
        let kind = match (path, name) {
            ("enum", "Enum" | "Flag") => ClassKind::Enum { integer: false },
            ("enum", "IntEnum" | "IntFlag") => ClassKind::Enum { integer: true },
            ("typing", "NamedTuple") => ClassKind::NamedTuple(Rc::new(DataClass {
                fields: vec![],
                frozen: true,
            })),
            ("abc", "ABC" | "ABCMeta") => ClassKind::Plain,
            ("collections", "OrderedDict") => return self.builtins.get("dict").cloned(),
            _ => return None,
        };
        let full: Rc<str> = format!("{path}.{name}").into();
        if let Some(c) = self.module_classes.get(&full) {
            return Some(Value::Class(c.clone()));
        }
        let class = Rc::new(Class {
            name: name.into(),
            mro: Vec::new(),
            dict: RefCell::default(),
            order: RefCell::default(),
            kind: RefCell::new(kind),
            is_meta: Cell::new(false),
            span: Span::NONE,
        });
        self.module_classes.insert(full, class.clone());
        Some(Value::Class(class))
    }
}

fn first_argument(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, _)] = args.exactly("this decorator", ["function"], span)?;
    Ok(value)
}

fn math(name: &'static str) -> Option<Value> {
    let constant = match name {
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        "tau" => std::f64::consts::TAU,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            return Some(Value::builtin(format!("math.{name}"), move |i, a, s| {
                call_math(i, name, a, s)
            }));
        }
    };
    Some(Value::Float(constant))
}

fn call_math(interp: &mut Interpreter, name: &'static str, args: Args, span: Span) -> Result<Value> {
    for (value, at) in &args.positional {
        match value {
            Value::Expr(_) => {
                return Err(Box::new(
                    crate::Diagnostic::new(
                        *at,
                        format!("math.{name}() needs values that are known at compile time"),
                    )
                    .help(format!("at run time, use T.{name}(…)")),
                ));
            }
            Value::Unavailable(why) => return interp.unavailable(why, *at),
            _ => {}
        }
    }
    let values: Vec<Value> = args
        .positional
        .iter()
        .map(|a| interp.plain_number(&a.0))
        .collect();
    if matches!(name, "prod" | "fsum") {
        let op = if name == "prod" {
            Operator::Mult
        } else {
            Operator::Add
        };
        let mut total = match args.keyword.iter().find(|k| &*k.0 == "start") {
            Some((_, v, _)) => v.clone(),
            None if name == "prod" => Value::Int(1),
            None => Value::Float(0.0),
        };
        let Some(items) = values.first() else {
            return error(span, format!("math.{name}() needs an iterable"));
        };
        for item in interp.iterate(items, span)? {
            total = match (&total, &item) {
                (Value::Int(1), Value::Expr(_)) if name == "prod" => item,
                _ => interp.binary(op, &total, &item, span)?,
            };
        }
        return Ok(total);
    }
    let expected = match name {
        "gcd" | "lcm" | "hypot" => values.len(),
        "log" => values.len().clamp(1, 2),
        "pow" | "atan2" | "comb" | "copysign" | "isclose" | "fmod" => 2,
        _ => 1,
    };
    if values.len() != expected {
        return interp.raise(
            "TypeError",
            span,
            format!(
                "math.{name}() takes {} but {} were given",
                args::count(expected, "argument"),
                values.len()
            ),
        );
    }
    let ints: Option<Vec<i128>> = values.iter().map(Value::as_int).collect();
    let floats: Option<Vec<f64>> = values.iter().map(as_float).collect();
    let Some(x) = floats else {
        return interp.raise("TypeError", span, format!("math.{name}() needs numbers"));
    };
    if let Some(n) = &ints {
        match (name, &n[..]) {
            ("ceil" | "floor" | "trunc", [v]) => return Ok(Value::Int(*v)),
            ("gcd", n) => return Ok(Value::Int(n.iter().fold(0, |a, b| gcd(a, *b)))),
            ("lcm", n) => {
                let mut out = 1i128;
                for v in n {
                    let g = gcd(out, *v);
                    out = if g == 0 {
                        0
                    } else {
                        (out / g).saturating_mul(*v).abs()
                    };
                }
                return Ok(Value::Int(out));
            }
            ("isqrt", [v]) if *v >= 0 => return Ok(Value::Int(v.unsigned_abs().isqrt() as i128)),
            ("factorial", [v]) if (0..=33).contains(v) => return Ok(Value::Int((1..=*v).product())),
            ("comb", [n, k]) if *n >= 0 && *k >= 0 && *n <= 120 => {
                let mut out = 1i128;
                for i in 0..*k {
                    out = out.saturating_mul((n - i).max(0)) / (i + 1);
                }
                return Ok(Value::Int(out));
            }
            ("isqrt" | "factorial" | "comb", _) => {
                return interp.raise(
                    "ValueError",
                    span,
                    format!("math.{name}() of a value out of range"),
                );
            }
            _ => {}
        }
    }
    let to_int = |interp: &mut Interpreter, v: f64| match v.is_finite() && v.abs() < 1e38 {
        true => Ok(Value::Int(v as i128)),
        false => interp.raise("OverflowError", span, "this number is no integer"),
    };
    let result = match (name, &x[..]) {
        ("ceil", [v]) => return to_int(interp, v.ceil()),
        ("floor", [v]) => return to_int(interp, v.floor()),
        ("trunc", [v]) => return to_int(interp, v.trunc()),
        ("isnan", [v]) => return Ok(Value::Bool(v.is_nan())),
        ("isinf", [v]) => return Ok(Value::Bool(v.is_infinite())),
        ("isfinite", [v]) => return Ok(Value::Bool(v.is_finite())),
        ("isclose", [a, b]) => return Ok(Value::Bool((a - b).abs() <= 1e-9 * a.abs().max(b.abs()))),
        ("sqrt" | "log" | "log2" | "log10", [v, ..]) if *v < 0.0 || (name != "sqrt" && *v == 0.0) => {
            return interp.raise(
                "ValueError",
                span,
                format!("math.{name}() of a value out of range"),
            );
        }
        ("sqrt", [v]) => v.sqrt(),
        ("log", [v]) => v.ln(),
        ("log", [v, base]) => v.ln() / base.ln(),
        ("log2", [v]) => v.log2(),
        ("log10", [v]) => v.log10(),
        ("log1p", [v]) => v.ln_1p(),
        ("exp", [v]) => v.exp(),
        ("expm1", [v]) => v.exp_m1(),
        ("pow", [a, b]) => a.powf(*b),
        ("sin", [v]) => v.sin(),
        ("cos", [v]) => v.cos(),
        ("tan", [v]) => v.tan(),
        ("asin", [v]) => v.asin(),
        ("acos", [v]) => v.acos(),
        ("atan", [v]) => v.atan(),
        ("atan2", [a, b]) => a.atan2(*b),
        ("sinh", [v]) => v.sinh(),
        ("cosh", [v]) => v.cosh(),
        ("tanh", [v]) => v.tanh(),
        ("fabs", [v]) => v.abs(),
        ("copysign", [a, b]) => a.copysign(*b),
        ("fmod", [a, b]) => a % b,
        ("hypot", v) => v.iter().map(|x| x * x).sum::<f64>().sqrt(),
        ("degrees", [v]) => v.to_degrees(),
        ("radians", [v]) => v.to_radians(),
        _ => return interp.raise("TypeError", span, format!("math.{name}() needs int")),
    };
    Ok(Value::Float(result))
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i128
}

fn functools(name: &'static str) -> Option<Value> {
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
                total = interp.call_value(function, Args::of([total, item], span), span)?;
            }
            Ok(total)
        }),
        "wraps" => Value::builtin("functools.wraps", |_, _, _| {
            Ok(Value::builtin("functools.wraps", first_argument))
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

fn itertools(name: &'static str) -> Value {
    Value::builtin(format!("itertools.{name}"), move |interp, args, span| {
        call_itertools(interp, name, args, span)
    })
}

fn call_itertools(interp: &mut Interpreter, name: &'static str, mut args: Args, span: Span) -> Result<Value> {
    let keyword = |args: &mut Args, name: &str| args.take_keyword(name).map(|v| v.0);
    let repeat = keyword(&mut args, "repeat");
    let fill = keyword(&mut args, "fillvalue").unwrap_or(Value::None);
    let initial = keyword(&mut args, "initial");
    let times = keyword(&mut args, "times");
    let start = keyword(&mut args, "start");
    let step = keyword(&mut args, "step");
    if let Some((key, _, at)) = args.keyword.first() {
        return error(*at, format!("itertools.{name}() has no parameter \"{key}\""));
    }
    let v: Vec<Value> = args.positional.into_iter().map(|a| a.0).collect();
    let int = |v: Option<&Value>| v.and_then(Value::as_int);
    let mut out: Vec<Value> = Vec::new();
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
            let r = int(rest.first()).map_or(n, |r| r.max(0) as usize);
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
        ("chain", sources) => {
            for s in sources {
                out.extend(interp.iterate(s, span)?);
                interp.check_items(out.len(), span)?;
            }
        }
        ("repeat", [value, rest @ ..]) => {
            let Some(n) = int(rest.first().or(times.as_ref())) else {
                return error(span, "itertools.repeat() needs a count in kernel files");
            };
            let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
            interp.check_items(n, span)?;
            out = vec![value.clone(); n];
        }
        ("count", rest) => {
            let start = rest.first().cloned().or(start).unwrap_or(Value::Int(0));
            let step = rest.get(1).cloned().or(step).unwrap_or(Value::Int(1));
            return Ok(Interpreter::counter(start, step));
        }
        ("accumulate", [source, rest @ ..]) => {
            let mut total: Option<Value> = initial;
            out.extend(total.clone());
            for item in interp.iterate(source, span)? {
                let next = match (&total, rest.first()) {
                    (None, _) => item,
                    (Some(t), None | Some(Value::None)) => interp.binary(Operator::Add, t, &item, span)?,
                    (Some(t), Some(f)) => interp.call_value(f, Args::of([t.clone(), item], span), span)?,
                };
                out.push(next.clone());
                total = Some(next);
            }
        }
        ("zip_longest", sources) => {
            let mut columns = Vec::new();
            for s in sources {
                columns.push(interp.iterate(s, span)?);
            }
            let n = columns.iter().map(Vec::len).max().unwrap_or(0);
            out = (0..n)
                .map(|i| {
                    let row = columns
                        .iter()
                        .map(|c| c.get(i).cloned().unwrap_or_else(|| fill.clone()));
                    Value::tuple(row.collect())
                })
                .collect();
        }
        ("islice", [source, bounds @ ..]) => {
            let bound = |i: usize| int(bounds.get(i));
            let (start, stop, step) = match bounds.len() {
                1 => (0, bound(0), 1),
                _ => (bound(0).unwrap_or(0), bound(1), bound(2).unwrap_or(1)),
            };
            if step < 1 || start < 0 {
                return error(span, "itertools.islice() bounds must not be negative");
            }
            let items = match source {
                Value::Iterator(it) if it.count.is_some() => {
                    let Some(stop) = stop else {
                        return error(span, "this iterator is endless");
                    };
                    interp.check_items(stop.max(0) as usize, span)?;
                    let mut items = Vec::new();
                    for _ in 0..stop {
                        items.extend(interp.next_item(it, span)?);
                    }
                    items
                }
                _ => interp.iterate(source, span)?,
            };
            let stop = stop.map_or(items.len(), |s| (s.max(0) as usize).min(items.len()));
            let start = (start as usize).min(stop);
            out = items[start..stop]
                .iter()
                .step_by(step as usize)
                .cloned()
                .collect();
        }
        ("pairwise", [source]) => {
            let items = interp.iterate(source, span)?;
            out = items.windows(2).map(|w| Value::tuple(w.to_vec())).collect();
        }
        ("starmap", [function, source]) => {
            for item in interp.iterate(source, span)? {
                let row = interp.iterate(&item, span)?;
                out.push(interp.call_value(function, Args::of(row, span), span)?);
            }
        }
        ("takewhile" | "dropwhile", [function, source]) => {
            let mut dropping = true;
            for item in interp.iterate(source, span)? {
                let test = interp.call_value(function, Args::of([item.clone()], span), span)?;
                let holds = interp.truth(&test, span)?;
                if name == "takewhile" {
                    if !holds {
                        break;
                    }
                    out.push(item);
                } else {
                    dropping &= holds;
                    if !dropping {
                        out.push(item);
                    }
                }
            }
        }
        _ => return error(span, format!("wrong arguments for itertools.{name}()")),
    }
    Ok(Value::iterator(out))
}

fn operator(name: &'static str) -> Value {
    use ruff_python_ast::{CmpOp, UnaryOp};
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
                (_, true) => crate::script::lang::unary(interp, op, &a, span),
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

fn dataclasses(name: &str) -> Option<Value> {
    Some(match name {
        "dataclass" => Value::builtin("dataclasses.dataclass", |interp, mut args, span| {
            let mut frozen = false;
            for (name, value, at) in std::mem::take(&mut args.keyword) {
                let on = interp.truth(&value, at)?;
                if &*name == "frozen" {
                    frozen = on;
                }
            }
            let apply = move |interp: &mut Interpreter, value: &Value, span: Span| {
                let (Value::Class(class), Some(def)) = (value, interp.class_def.clone()) else {
                    return error(span, "dataclass decorates a class");
                };
                interp.make_data_class(class, &def, frozen)?;
                Ok(value.clone())
            };
            match args.positional.first() {
                Some((value, at)) => apply(interp, value, *at),
                None => Ok(Value::builtin(
                    "dataclasses.dataclass",
                    move |interp, args, span| {
                        let [(value, _)] = args.exactly("dataclass", ["class"], span)?;
                        apply(interp, &value, span)
                    },
                )),
            }
            .map_err(|e| Box::new(e.or_span(span)))
        }),
        "field" => Value::builtin("dataclasses.field", |interp, args, span| {
            let params = [
                keyword("default"),
                keyword("default_factory"),
                keyword("init"),
                keyword("repr"),
                keyword("compare"),
                keyword("hash"),
                keyword("kw_only"),
                keyword("metadata"),
            ];
            let bound = args.bind("dataclasses.field", &params, span)?;
            let init = match &bound[2] {
                Some((v, at)) => interp.truth(v, *at)?,
                None => true,
            };
            Ok(Value::Object(Rc::new(FieldSpec(Field {
                name: "".into(),
                default: bound[0].as_ref().map(|v| v.0.clone()),
                factory: bound[1].as_ref().map(|v| v.0.clone()),
                init,
            }))))
        }),
        "replace" => Value::builtin("dataclasses.replace", |interp, mut args, span| {
            if args.positional.len() != 1 {
                return error(span, "dataclasses.replace() takes one object");
            }
            let (object, at) = args.positional.remove(0);
            let Value::Instance(i) = &object else {
                return error(at, "dataclasses.replace() needs a dataclass");
            };
            for (name, value) in i.fields.borrow().iter() {
                if !args.keyword.iter().any(|(n, ..)| n == name) {
                    args.keyword.push((name.clone(), value.clone(), at));
                }
            }
            interp.construct(&i.class, args, span)
        }),
        "asdict" => Value::builtin("dataclasses.asdict", |interp, args, span| {
            let [(object, at)] = args.exactly("dataclasses.asdict", ["object"], span)?;
            interp.get_attribute(&object, "__dict__", at)
        }),
        "fields" => Value::builtin("dataclasses.fields", |_, args, span| {
            let [(object, at)] = args.exactly("dataclasses.fields", ["class"], span)?;
            let class = match &object {
                Value::Class(c) => c.clone(),
                Value::Instance(i) => i.class.clone(),
                _ => return error(at, "dataclasses.fields() needs a dataclass"),
            };
            let ClassKind::DataClass(d) = &*class.kind.borrow() else {
                return error(at, "dataclasses.fields() needs a dataclass");
            };
            let names = d.fields.iter().map(|f| {
                Value::Instance(Rc::new(super::value::Instance {
                    class: Interpreter::builtin_class("Field", &[]),
                    fields: RefCell::new(vec![("name".into(), Value::Str(f.name.clone()))]),
                }))
            });
            Ok(Value::tuple(names.collect()))
        }),
        _ => return None,
    })
}

fn namedtuple(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [required("typename"), required("field_names"), keyword("defaults")];
    let bound = args.bind("collections.namedtuple", &params, span)?;
    let (Some((Value::Str(name), _)), Some((fields, at))) = (&bound[0], &bound[1]) else {
        return error(span, "a named tuple's name is a str");
    };
    let names: Vec<String> = match fields {
        Value::Str(s) => s.replace(',', " ").split_whitespace().map(String::from).collect(),
        other => {
            let items = interp.iterate(other, *at)?;
            items
                .iter()
                .filter_map(|v| v.as_str().map(String::from))
                .collect()
        }
    };
    let defaults = match &bound[2] {
        Some((v, at)) => interp.iterate(v, *at)?,
        None => Vec::new(),
    };
    let without = names.len().saturating_sub(defaults.len());
    let fields = names.iter().enumerate().map(|(i, n)| Field {
        name: n.as_str().into(),
        default: i.checked_sub(without).and_then(|j| defaults.get(j).cloned()),
        factory: None,
        init: true,
    });
    let data = DataClass {
        fields: fields.collect(),
        frozen: true,
    };
    Ok(Value::Class(Rc::new(Class {
        name: name.clone(),
        mro: Vec::new(),
        dict: RefCell::default(),
        order: RefCell::default(),
        kind: RefCell::new(ClassKind::NamedTuple(Rc::new(data))),
        is_meta: Cell::new(false),
        span,
    })))
}

fn copy(interp: &mut Interpreter, value: &Value, deep: bool, span: Span) -> Result<Value> {
    let item = |interp: &mut Interpreter, v: &Value| match deep {
        true => interp.nested(span, |i| copy(i, v, true, span)),
        false => Ok(v.clone()),
    };
    Ok(match value {
        Value::List(items) => {
            let items = items.borrow().clone();
            Value::list(items.iter().map(|v| item(interp, v)).collect::<Result<_>>()?)
        }
        Value::Tuple(items) if deep => {
            Value::tuple(items.iter().map(|v| item(interp, v)).collect::<Result<_>>()?)
        }
        Value::Dict(d) => {
            let mut dict = super::Dict::default();
            for (k, v) in d.borrow().clone().iter() {
                let key = interp.key_of(k, span)?;
                dict.insert(key, k.clone(), item(interp, v)?);
            }
            Value::Dict(Rc::new(RefCell::new(dict)))
        }
        Value::Set(s) => Value::Set(Rc::new(RefCell::new(s.borrow().clone()))),
        Value::Instance(i) => {
            let mut fields = i.fields.borrow().clone();
            for (_, v) in &mut fields {
                *v = item(interp, v)?;
            }
            Value::Instance(Rc::new(super::value::Instance {
                class: i.class.clone(),
                fields: RefCell::new(fields),
            }))
        }
        other => other.clone(),
    })
}
