//! Python's builtin functions and types.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::class::{Descriptor, DescriptorKind};
use super::value::{ClassKind, Value};
use super::{Args, Interpreter, args, compare, iter_builtins, methods};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

type Function = fn(&mut Interpreter, Args, Span) -> Result<Value>;

const FUNCTIONS: &[(&str, Function)] = &[
    ("len", len),
    ("zip", iter_builtins::zip),
    ("enumerate", iter_builtins::enumerate),
    ("min", |i, a, s| extreme(i, a, s, "min")),
    ("max", |i, a, s| extreme(i, a, s, "max")),
    ("sum", sum),
    ("sorted", sorted),
    ("reversed", reversed),
    ("abs", abs),
    ("round", round),
    ("divmod", divmod),
    ("pow", pow),
    ("all", |i, a, s| iter_builtins::quantify(i, a, s, "all", false)),
    ("any", |i, a, s| iter_builtins::quantify(i, a, s, "any", true)),
    ("map", iter_builtins::map),
    ("filter", iter_builtins::filter),
    ("isinstance", isinstance),
    ("issubclass", issubclass),
    ("callable", callable),
    ("hasattr", hasattr),
    ("getattr", getattr),
    ("setattr", setattr),
    ("print", |i, a, s| {
        if i.is_building() && a.positional.iter().any(|(v, _)| v.is_ir()) {
            let message = "print() runs at compile time and shows nothing of the kernel".to_string();
            let help =
                "to print when the kernel runs, write T.cuda.printf(\"%d\\n\", x) or T.print_buffer(…)";
            i.lint("print-at-compile-time", s, message, help);
        }
        Ok(Value::None)
    }),
    ("repr", |i, a, s| {
        let [(v, at)] = a.exactly("repr", ["object"], s)?;
        i.repr(&v, at).map(Value::str)
    }),
    ("format", format_value),
    ("iter", iter_builtins::iter),
    ("next", iter_builtins::next),
    ("id", |i, a, s| {
        let [(v, _)] = a.exactly("id", ["object"], s)?;
        // Addresses differ from run to run; the order in which objects were asked for does not.
        let known = i
            .session
            .caches
            .numbered
            .iter()
            .position(|object| compare::identical(object, &v));
        let number = known.unwrap_or(i.session.caches.numbered.len());
        if known.is_none() {
            i.session.caches.numbered.push(v);
        }
        Ok(Value::Int(number as i128 + 1))
    }),
    ("hash", |i, a, s| {
        let [(v, at)] = a.exactly("hash", ["object"], s)?;
        match super::key(&v) {
            Ok(super::Key::Int(n)) => Ok(Value::Int(n)),
            _ => i.raise(
                "TypeError",
                at,
                "hash() of other than numbers is not supported in kernel files",
            ),
        }
    }),
    ("bin", |_, a, s| radix(a, s, "bin")),
    ("oct", |_, a, s| radix(a, s, "oct")),
    ("hex", |_, a, s| radix(a, s, "hex")),
    ("ord", |i, a, s| {
        let [(v, at)] = a.exactly("ord", ["character"], s)?;
        match v.as_str().and_then(|t| t.chars().next()) {
            Some(c) => Ok(Value::Int(c as i128)),
            None => i.raise("TypeError", at, "ord() needs one character"),
        }
    }),
    ("chr", |i, a, s| {
        let [(v, at)] = a.exactly("chr", ["code"], s)?;
        match v
            .as_int()
            .and_then(|n| u32::try_from(n).ok())
            .and_then(char::from_u32)
        {
            Some(c) => Ok(Value::str(c.to_string())),
            None => i.raise("ValueError", at, "chr() needs a character code"),
        }
    }),
    ("super", |i, a, s| match &a.positional[..] {
        [] => i.make_super(s),
        [(Value::Class(class), _), (receiver, _)] => Ok(Value::Object(Rc::new(super::construct::Super {
            class: class.clone(),
            receiver: receiver.clone(),
        }))),
        _ => error(s, "super() takes no arguments, or a class and an object"),
    }),
    ("property", |_, a, s| descriptor(a, s, DescriptorKind::Property)),
    ("staticmethod", |_, a, s| descriptor(a, s, DescriptorKind::Static)),
    ("classmethod", |_, a, s| descriptor(a, s, DescriptorKind::Class)),
    ("globals", |i, a, s| {
        let [] = a.exactly("globals", [], s)?;
        i.globals(s)
    }),
    ("vars", |i, a, s| {
        let [(v, at)] = a.exactly("vars", ["object"], s)?;
        i.get_attribute(&v, "__dict__", at)
    }),
];

const EXCEPTIONS: &[(&str, &str)] = &[
    ("Exception", "BaseException"),
    ("GeneratorExit", "BaseException"),
    ("ArithmeticError", "Exception"),
    ("AssertionError", "Exception"),
    ("AttributeError", "Exception"),
    ("ImportError", "Exception"),
    ("LookupError", "Exception"),
    ("NameError", "Exception"),
    ("RuntimeError", "Exception"),
    ("StopIteration", "Exception"),
    ("TypeError", "Exception"),
    ("ValueError", "Exception"),
    ("OSError", "Exception"),
    ("Warning", "Exception"),
    ("UserWarning", "Warning"),
    ("OverflowError", "ArithmeticError"),
    ("ZeroDivisionError", "ArithmeticError"),
    ("FloatingPointError", "ArithmeticError"),
    ("UnboundLocalError", "NameError"),
    ("EOFError", "Exception"),
    ("ModuleNotFoundError", "ImportError"),
    ("IndexError", "LookupError"),
    ("KeyError", "LookupError"),
    ("NotImplementedError", "RuntimeError"),
    ("RecursionError", "RuntimeError"),
];

const TYPES: &[&str] = &[
    "int",
    "float",
    "str",
    "list",
    "tuple",
    "dict",
    "set",
    "frozenset",
    "range",
    "slice",
    "type",
    "NoneType",
    "function",
    "module",
    "ellipsis",
];

/// Functions that are refused by name, with the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "open",
        "kernel files cannot read files: builds would not be reproducible",
    ),
    ("input", "kernel files cannot read input"),
    ("eval", "eval() is not supported in kernel files"),
    ("exec", "exec() is not supported in kernel files"),
    ("compile", "compile() is not supported in kernel files"),
    ("__import__", "__import__() is not supported in kernel files"),
    ("locals", "locals() is not supported in kernel files"),
    ("bytes", "bytes are not supported in kernel files"),
    ("bytearray", "bytes are not supported in kernel files"),
    ("complex", "complex numbers are not supported in kernel files"),
];

/// The meaning of a builtin name.
#[derive(Clone, Copy)]
enum Meaning {
    /// A class without methods of its own, under another one.
    Class(Option<&'static str>),
    Function(Function),
    Refused(&'static str),
    /// Another name for the same meaning.
    Alias(&'static str),
    NotImplemented,
    Ellipsis,
    FileName,
    True,
}

static MEANINGS: LazyLock<FxHashMap<&'static str, Meaning>> = LazyLock::new(|| {
    let mut all = FxHashMap::default();
    all.reserve(128);
    all.insert("object", Meaning::Class(None));
    all.insert("BaseException", Meaning::Class(Some("object")));
    all.extend(
        EXCEPTIONS
            .iter()
            .map(|(name, parent)| (*name, Meaning::Class(Some(parent)))),
    );
    all.extend(TYPES.iter().map(|name| (*name, Meaning::Class(Some("object")))));
    all.insert("bool", Meaning::Class(Some("int")));
    all.insert("IOError", Meaning::Alias("OSError"));
    all.extend(
        FUNCTIONS
            .iter()
            .map(|(name, function)| (*name, Meaning::Function(*function))),
    );
    all.extend(REFUSED.iter().map(|(name, why)| (*name, Meaning::Refused(why))));
    all.insert("NotImplemented", Meaning::NotImplemented);
    all.insert("Ellipsis", Meaning::Ellipsis);
    all.insert("__name__", Meaning::FileName);
    all.insert("__file__", Meaning::FileName);
    all.insert("__debug__", Meaning::True);
    all
});

/// The builtin names. A value is made when it is first asked for; most files use a handful.
#[derive(Default)]
pub(super) struct Builtins {
    made: RefCell<FxHashMap<&'static str, Value>>,
}

impl Builtins {
    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        if let Some(known) = self.made.borrow().get(name) {
            return Some(known.clone());
        }
        let (name, meaning) = MEANINGS.get_key_value(name)?;
        let value = match *meaning {
            Meaning::Class(parent) => {
                let parent = match parent.and_then(|p| self.get(p)) {
                    Some(Value::Class(class)) => Some(class),
                    _ => None,
                };
                Value::Class(Interpreter::builtin_class(name, &Vec::from_iter(&parent)))
            }
            Meaning::Function(function) => Value::builtin(*name, function),
            Meaning::Refused(why) => Value::builtin(*name, move |_, _, span| error(span, why)),
            Meaning::Alias(other) => self.get(other)?,
            Meaning::NotImplemented => Value::NotImplemented,
            Meaning::Ellipsis => Value::Ellipsis,
            Meaning::FileName => Value::str("kernel_file"),
            Meaning::True => Value::Bool(true),
        };
        self.made.borrow_mut().insert(name, value.clone());
        Some(value)
    }

    /// Every name.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        MEANINGS.keys().copied()
    }
}

fn len(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, at)] = args.exactly("len", ["object"], span)?;
    let n = match &value {
        Value::Str(s) => s.chars().count(),
        Value::Tuple(items) => items.len(),
        Value::List(items) => items.borrow().len(),
        Value::Dict(d) => d.borrow().len(),
        Value::Set(s) => s.borrow().0.len(),
        Value::Range(r) => r.len(),
        Value::Buffer(b) => b.shape.len(),
        Value::Instance(i) => {
            if let Some(f) = interp.class_attribute(&i.class, "__len__") {
                return interp.call_method(&f, &value, Args::default(), at);
            }
            if i.class.is_named_tuple() {
                i.fields.borrow().len()
            } else if let Some((_, bits)) = super::enums::bits(&value) {
                bits.count_ones() as usize
            } else if let Some(Value::Str(s)) = value.member_number() {
                s.chars().count()
            } else {
                return interp.raise("TypeError", at, format!("{} has no length", value.type_name()));
            }
        }
        Value::Class(c) if matches!(&*c.kind.borrow(), ClassKind::Enum { .. }) => {
            interp.enum_members(c).len()
        }
        Value::Unavailable(why) => return interp.unavailable(why, at),
        other => return interp.raise("TypeError", at, format!("{} has no length", other.type_name())),
    };
    Ok(Value::Int(n as i128))
}

fn extreme(interp: &mut Interpreter, mut args: Args, span: Span, name: &'static str) -> Result<Value> {
    let key = args
        .take_keyword("key")
        .map(|k| k.0)
        .filter(|k| !matches!(k, Value::None));
    let default = args.take_keyword("default").map(|d| d.0);
    let items = match &args.positional[..] {
        [(one, at)] => interp.iterate(one, *at)?,
        [] => return error(span, format!("{name}() needs arguments")),
        many => many.iter().map(|a| a.0.clone()).collect(),
    };
    let mut best: Option<(Value, Value)> = None;
    for item in items {
        if item.is_ir() || best.as_ref().is_some_and(|b| b.0.is_ir()) {
            return Err(Box::new(
                crate::diagnostic::Diagnostic::new(
                    span,
                    format!("{name}() cannot compare values that are only known when the kernel runs"),
                )
                .help(format!("use T.{name}(a, b)")),
            ));
        }
        let k = match &key {
            Some(f) => interp.call_value(f, Args::positional([item.clone()], span), span)?,
            None => item.clone(),
        };
        let better = match &best {
            None => true,
            Some((_, b)) => match interp.order(&k, b, span)? {
                Some(o) => {
                    if name == "min" {
                        o.is_lt()
                    } else {
                        o.is_gt()
                    }
                }
                None => {
                    return interp.raise(
                        "TypeError",
                        span,
                        format!("{name}() cannot compare {} and {}", k.type_name(), b.type_name()),
                    );
                }
            },
        };
        if better {
            best = Some((item, k));
        }
    }
    match (best, default) {
        (Some((v, _)), _) => Ok(v),
        (None, Some(v)) => Ok(v),
        (None, None) => interp.raise("ValueError", span, format!("{name}() of nothing")),
    }
}

fn sum(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "sum",
        &[args::required("iterable"), args::optional("start")],
        span,
    )?;
    let mut total = bound[1].as_ref().map_or(Value::Int(0), |v| v.0.clone());
    let Some((items, at)) = &bound[0] else {
        return Ok(total);
    };
    for item in interp.iterate(items, *at)? {
        // `0 + x` of a run-time x is x, as in TVM.
        total = match (&total, &item) {
            (Value::Int(0), Value::Expr(_)) => item,
            _ => interp.binary(tirx_python::Operator::Add, &total, &item, span)?,
        };
        if let Value::Expr(e) = &total {
            interp.check_expr(e, span)?;
        }
    }
    Ok(total)
}

fn sorted(interp: &mut Interpreter, mut args: Args, span: Span) -> Result<Value> {
    if args.positional.len() != 1 {
        return error(span, "sorted() takes one iterable, key= and reverse=");
    }
    let (value, at) = args.positional.remove(0);
    let items = interp.iterate(&value, at)?;
    methods::sort(interp, items, args, span).map(Value::list)
}

fn reversed(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, at)] = args.exactly("reversed", ["sequence"], span)?;
    let mut items = interp.iterate(&value, at)?;
    items.reverse();
    Ok(Value::iterator(items))
}

pub(super) fn abs(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, at)] = args.exactly("abs", ["x"], span)?;
    match interp.plain_number(&value) {
        Value::Float(v) => Ok(Value::Float(v.abs())),
        Value::Expr(_) => match crate::lang::attribute("T", "abs") {
            Some(f) => interp.call_value(&f, Args::positional([value], at), span),
            None => error(at, "abs() needs a value that is known at compile time"),
        },
        v => match v.as_int() {
            Some(v) => Ok(Value::Int(v.saturating_abs())),
            None if matches!(&v, Value::Instance(i) if interp.class_attribute(&i.class, "__abs__").is_some()) => {
                Ok(interp.by_method(&v, &["__abs__"], at)?.unwrap_or(Value::None))
            }
            None => interp.raise(
                "TypeError",
                at,
                format!("abs() needs a number, found {}", v.type_name()),
            ),
        },
    }
}

fn round(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "round",
        &[args::required("number"), args::optional("ndigits")],
        span,
    )?;
    let Some((value, at)) = &bound[0] else {
        return Ok(Value::None);
    };
    let digits = bound[1].as_ref().and_then(|d| d.0.as_int());
    if let Value::Instance(i) = value
        && let Some(f) = interp.class_attribute(&i.class, "__round__")
    {
        let digits = bound[1].iter().map(|d| d.0.clone());
        return interp.call_method(&f, value, Args::positional(digits, span), span);
    }
    match (&interp.plain_number(value), digits) {
        (Value::Float(v), None) if v.is_finite() && v.abs() < 1e38 => {
            Ok(Value::Int(v.round_ties_even() as i128))
        }
        (Value::Float(_), None) => interp.raise("OverflowError", *at, "this number is no integer"),
        (Value::Float(v), Some(d)) if d >= 0 => {
            let d = d.min(300) as usize;
            Ok(Value::Float(format!("{v:.d$}").parse().unwrap_or(*v)))
        }
        (Value::Float(v), Some(d)) => {
            let unit = 10f64.powi((-d).min(400) as i32);
            Ok(Value::Float(match unit.is_finite() && v.is_finite() {
                true => (v / unit).round_ties_even() * unit,
                false => v * 0.0,
            }))
        }
        (v, d) if v.as_int().is_some() => {
            let n = v.as_int().unwrap_or(0);
            Ok(Value::Int(match d {
                Some(d) if d < 0 => round_int(n, (-d).min(40) as u32),
                _ => n,
            }))
        }
        (Value::Expr(_), _) => {
            let d = Diagnostic::new(*at, "round() needs a value that is known at compile time");
            Err(Box::new(d.help("at run time, use T.round(x)")))
        }
        (v, _) => interp.raise(
            "TypeError",
            *at,
            format!("round() needs a number, found {}", v.type_name()),
        ),
    }
}

/// The multiple of `10 ** digits` nearest to an integer, the even one of two.
fn round_int(n: i128, digits: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(digits) else {
        return 0;
    };
    let (down, rest) = (n.div_euclid(unit), n.rem_euclid(unit));
    let up = match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => down % 2 != 0,
        std::cmp::Ordering::Greater => true,
    };
    (down + i128::from(up)).saturating_mul(unit)
}

fn divmod(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(a, _), (b, _)] = args.exactly("divmod", ["a", "b"], span)?;
    let q = interp.binary(tirx_python::Operator::FloorDiv, &a, &b, span)?;
    let r = interp.binary(tirx_python::Operator::Mod, &a, &b, span)?;
    Ok(Value::tuple(vec![q, r]))
}

fn pow(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "pow",
        &[
            args::required("base"),
            args::required("exp"),
            args::optional("mod"),
        ],
        span,
    )?;
    let (Some((base, _)), Some((exp, _))) = (&bound[0], &bound[1]) else {
        return Ok(Value::None);
    };
    if let Some((modulus, at)) = &bound[2] {
        let (Some(mut b), Some(mut e), Some(m)) = (base.as_int(), exp.as_int(), modulus.as_int()) else {
            return interp.raise("TypeError", *at, "pow() with three arguments needs int");
        };
        if m == 0 || e < 0 || m.abs() > 1 << 62 {
            return interp.raise("ValueError", *at, "pow() modulus or exponent out of range");
        }
        let mut result = 1i128;
        b = b.rem_euclid(m.abs());
        while e > 0 {
            if e & 1 == 1 {
                result = result * b % m.abs();
            }
            b = b * b % m.abs();
            e >>= 1;
        }
        return Ok(Value::Int(super::ops::floor_mod(result, m)));
    }
    interp.binary(tirx_python::Operator::Pow, base, exp, span)
}

fn isinstance(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, _), (classes, at)] = args.exactly("isinstance", ["object", "class"], span)?;
    interp.is_instance(&value, &classes, at).map(Value::Bool)
}

fn issubclass(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(a, at), (b, _)] = args.exactly("issubclass", ["class", "classes"], span)?;
    let Value::Class(class) = &a else {
        return error(at, "issubclass() needs a class");
    };
    let options = b.as_items().unwrap_or_else(|| vec![b.clone()]);
    Ok(Value::Bool(options.iter().any(|o| match o {
        Value::Class(c) if &*c.name == "object" && c.span == Span::NONE => true,
        Value::Class(c) => Rc::ptr_eq(c, class) || class.mro.iter().any(|m| Rc::ptr_eq(m, c)),
        _ => false,
    })))
}

fn callable(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, _)] = args.exactly("callable", ["object"], span)?;
    Ok(Value::Bool(match &value {
        Value::Function(_) | Value::Method(_) | Value::Builtin(_) | Value::Class(_) | Value::DType(_) => true,
        Value::Instance(i) => interp.class_attribute(&i.class, "__call__").is_some(),
        Value::Object(o) => o.as_any().is::<Descriptor>(),
        _ => false,
    }))
}

fn hasattr(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, _), (name, at)] = args.exactly("hasattr", ["object", "name"], span)?;
    let Value::Str(name) = &name else {
        return error(at, "an attribute's name is a str");
    };
    let found = interp.get_attribute(&value, name, at);
    if found.is_err() && interp.limits.fatal {
        return found;
    }
    interp.exceptions.raised = None;
    Ok(Value::Bool(found.is_ok()))
}

fn getattr(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::required("object"),
        args::required("name"),
        args::optional("default"),
    ];
    let bound = args.bind("getattr", &params, span)?;
    let (Some((value, _)), Some((Value::Str(name), at))) = (&bound[0], &bound[1]) else {
        return error(span, "an attribute's name is a str");
    };
    match interp.get_attribute(value, name, *at) {
        Ok(v) => Ok(v),
        Err(e) => match &bound[2] {
            Some((default, _)) if !interp.limits.fatal => {
                interp.exceptions.raised = None;
                Ok(default.clone())
            }
            _ => Err(e),
        },
    }
}

fn setattr(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(target, _), (name, at), (value, _)] = args.exactly("setattr", ["object", "name", "value"], span)?;
    let Value::Str(name) = &name else {
        return error(at, "an attribute's name is a str");
    };
    interp.set_attribute(&target, name, value, at)?;
    Ok(Value::None)
}

fn format_value(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind("format", &[args::required("value"), args::optional("spec")], span)?;
    let spec = bound[1]
        .as_ref()
        .and_then(|s| s.0.as_str().map(String::from))
        .unwrap_or_default();
    match &bound[0] {
        Some((v, at)) => interp.format(v, &spec, *at).map(Value::str),
        None => Ok(Value::str("")),
    }
}

fn radix(args: Args, span: Span, name: &'static str) -> Result<Value> {
    let [(value, at)] = args.exactly(name, ["x"], span)?;
    let Some(v) = value.as_int() else {
        return error(at, format!("{name}() needs int"));
    };
    let sign = if v < 0 { "-" } else { "" };
    let v = v.unsigned_abs();
    Ok(Value::str(match name {
        "bin" => format!("{sign}0b{v:b}"),
        "oct" => format!("{sign}0o{v:o}"),
        _ => format!("{sign}0x{v:x}"),
    }))
}

fn descriptor(args: Args, span: Span, kind: DescriptorKind) -> Result<Value> {
    let [(function, _)] = args.exactly("this decorator", ["function"], span)?;
    Ok(Value::Object(Rc::new(Descriptor {
        kind,
        function,
        setter: None,
    })))
}
