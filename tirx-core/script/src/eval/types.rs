//! Python's builtin types: conversions to them, `type` and `isinstance`.

use std::cell::RefCell;
use std::rc::Rc;

use super::format::{parse_int, quote};
use super::ops::as_float;
use super::value::{ClassKind, Frame, Range, Slice, Value};
use super::{Args, Interpreter, args, nodes};
use crate::diagnostic::{Result, error};
use crate::ir::{ExprKind, Type};
use crate::lang;
use crate::layout::Layout;
use crate::source::Span;

/// Makes a value of a type.
type Conversion = fn(&mut Interpreter, Args, Span) -> Result<Value>;

/// The types of Python that can be called.
const TYPES: &[(&str, Conversion)] = &[
    ("object", object),
    ("int", int),
    ("float", float),
    ("bool", bool),
    ("str", str),
    ("list", |interp, args, span| {
        Ok(Value::list(items("list", interp, args, span)?))
    }),
    ("tuple", |interp, args, span| {
        Ok(Value::tuple(items("tuple", interp, args, span)?))
    }),
    ("set", |interp, args, span| {
        let items = items("set", interp, args, span)?;
        interp.make_set(items, span)
    }),
    ("frozenset", |interp, args, span| {
        let items = items("frozenset", interp, args, span)?;
        let made = interp.make_set(items, span)?;
        if let Value::Set(s) = &made {
            s.borrow_mut().0.frozen = true;
        }
        Ok(made)
    }),
    ("dict", dict),
    ("range", range),
    ("slice", slice),
    ("type", |interp, args, span| {
        let [(value, _)] = args.exactly("type", ["object"], span)?;
        Ok(interp.class_of(&value))
    }),
];

fn is_empty(args: &Args) -> bool {
    args.positional.is_empty() && args.keyword.is_empty()
}

fn object(interp: &mut Interpreter, _: Args, _: Span) -> Result<Value> {
    Ok(match interp.session.caches.builtins.get("object") {
        Some(Value::Class(class)) => Value::Instance(Rc::new(super::value::Instance {
            class,
            fields: RefCell::default(),
        })),
        _ => Value::None,
    })
}

fn bool(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    if is_empty(&args) {
        return Ok(Value::Bool(false));
    }
    let [(value, at)] = args.exactly("bool", ["x"], span)?;
    Ok(Value::Bool(interp.truth(&value, at)?))
}

fn str(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    if is_empty(&args) {
        return Ok(Value::str(""));
    }
    let [(value, at)] = args.exactly("str", ["object"], span)?;
    Ok(Value::str(interp.display(&value, at)?))
}

/// The elements that a container is made of.
fn items(name: &'static str, interp: &mut Interpreter, args: Args, span: Span) -> Result<Vec<Value>> {
    if is_empty(&args) {
        return Ok(Vec::new());
    }
    let [(value, at)] = args.exactly(name, ["iterable"], span)?;
    interp.iterate(&value, at)
}

fn int(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    if is_empty(&args) {
        return Ok(Value::Int(0));
    }
    let bound = args.bind("int", &[args::required("x"), args::optional("base")], span)?;
    let Some((value, at)) = &bound[0] else {
        return Ok(Value::Int(0));
    };
    if let (Value::Str(s), base) = (value, &bound[1]) {
        let base = base.as_ref().and_then(|b| b.0.as_int()).unwrap_or(10);
        let parsed = parse_int(s, u32::try_from(base).unwrap_or(1), *at);
        return match parsed {
            Ok(v) => Ok(Value::Int(v)),
            Err(e) => interp.raise("ValueError", *at, e.message),
        };
    }
    Ok(match interp.plain_number(value) {
        Value::Float(v) if v.is_finite() && v.abs() < 1e38 => Value::Int(v.trunc() as i128),
        Value::Float(_) => return interp.raise("OverflowError", *at, "this number is no integer"),
        Value::Expr(e) if e.as_int().is_some() => Value::Int(e.as_int().unwrap_or(0)),
        v => match v.as_int() {
            Some(v) => Value::Int(v),
            None => match interp.by_method(value, &["__int__", "__index__", "__trunc__"], *at)? {
                Some(v) => v,
                None => return interp.not_convertible(value, "int", *at),
            },
        },
    })
}

fn float(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    if is_empty(&args) {
        return Ok(Value::Float(0.0));
    }
    let [(value, at)] = args.exactly("float", ["x"], span)?;
    if let Value::Str(s) = &value {
        let text = s.trim().replace('_', "").to_lowercase();
        return match text.parse::<f64>() {
            Ok(v) => Ok(Value::Float(v)),
            Err(_) => interp.raise("ValueError", at, format!("{} is no number", quote(s))),
        };
    }
    Ok(match as_float(&interp.plain_number(&value)) {
        Some(v) => Value::Float(v),
        None => match value.as_expr().and_then(|e| e.as_float()) {
            Some(v) => Value::Float(v),
            None => match interp.by_method(&value, &["__float__", "__index__"], at)? {
                Some(v) => as_float(&v).map_or(v, Value::Float),
                None => return interp.not_convertible(&value, "float", at),
            },
        },
    })
}

fn dict(interp: &mut Interpreter, mut args: Args, _: Span) -> Result<Value> {
    let dict = Rc::new(RefCell::new(super::Dict::default()));
    for (value, at) in std::mem::take(&mut args.positional) {
        interp.update_dict(&dict, &value, at)?;
    }
    for (k, v, _) in args.keyword {
        dict.borrow_mut()
            .insert(super::Key::Str(k.clone()), Value::Str(k), v);
    }
    Ok(Value::Dict(dict))
}

fn range(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let mut bounds = Vec::new();
    for (value, at) in &args.positional {
        match interp.plain_number(value) {
            Value::Expr(_) => {
                return Err(Box::new(
                    crate::diagnostic::Diagnostic::new(*at, "this bound is only known when the kernel runs")
                        .help("in a kernel, write the loop as `for i in range(n):`"),
                ));
            }
            v => match v.as_int() {
                Some(v) if v.abs() < 1 << 62 => bounds.push(v),
                Some(_) => return interp.raise("OverflowError", *at, "this bound is too large"),
                None => {
                    return interp.raise(
                        "TypeError",
                        *at,
                        format!("range() needs int, found {}", v.type_name()),
                    );
                }
            },
        }
    }
    let range = match bounds[..] {
        [stop] => Range {
            start: 0,
            stop,
            step: 1,
        },
        [start, stop] => Range { start, stop, step: 1 },
        [start, stop, step] if step != 0 => Range { start, stop, step },
        [_, _, _] => return interp.raise("ValueError", span, "range() step cannot be zero"),
        _ => {
            return error(
                span,
                format!("range() takes 1 to 3 arguments but {} were given", bounds.len()),
            );
        }
    };
    Ok(Value::Range(range))
}

fn slice(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let v: Vec<Value> = args.positional.into_iter().map(|a| a.0).collect();
    let (start, stop, step) = match &v[..] {
        [stop] => (Value::None, stop.clone(), Value::None),
        [start, stop] => (start.clone(), stop.clone(), Value::None),
        [start, stop, step] => (start.clone(), stop.clone(), step.clone()),
        _ => return error(span, "slice() takes 1 to 3 arguments"),
    };
    Ok(Value::Slice(Rc::new(Slice { start, stop, step })))
}

/// Whether a value is of a class.
type Is = fn(&Value) -> bool;

/// TVM's classes by their own names, and which values are theirs.
const CLASSES: &[(&str, Is)] = &[
    ("Buffer", |v| matches!(v, Value::Buffer(_))),
    ("BufferRegion", |v| matches!(v, Value::Region(_))),
    ("PrimFunc", |v| matches!(v, Value::Kernel(_))),
    ("Expr", |v| matches!(v, Value::Expr(_))),
    ("PrimExpr", |v| matches!(v, Value::Expr(_))),
    ("Var", |v| v.as_expr().is_some_and(|e| e.as_var().is_some())),
    ("BufferLoad", |v| {
        v.as_expr()
            .is_some_and(|e| matches!(e.kind, ExprKind::BufferLoad { .. }))
    }),
    ("Call", |v| {
        v.as_expr()
            .is_some_and(|e| matches!(e.kind, ExprKind::Call { .. }))
    }),
    ("IntImm", |v| v.as_expr().is_some_and(|e| e.as_int().is_some())),
    ("FloatImm", |v| {
        v.as_expr().is_some_and(|e| e.as_float().is_some())
    }),
    ("StringImm", |v| v.as_expr().is_some_and(|e| e.as_str().is_some())),
    ("Layout", |v| matches!(v, Value::Layout(_))),
    ("TileLayout", |v| matches!(v, Value::Layout(Layout::Tile(_)))),
    ("ComposeLayout", |v| {
        matches!(v, Value::Layout(Layout::Compose(..)))
    }),
    ("SwizzleLayout", |v| is_object(v, "swizzle")),
    ("DataType", |v| matches!(v, Value::DType(_))),
    ("PrimType", |v| {
        lang::type_of_value(v).is_some_and(|ty| matches!(ty, Type::Prim(d) if !d.is_handle()))
    }),
    ("PointerType", |v| {
        lang::type_of_value(v).is_some_and(|ty| !matches!(ty, Type::Prim(d) if !d.is_handle()))
    }),
    ("IRModule", |v| is_object(v, "IRModule")),
    ("GlobalVar", |v| is_object(v, "GlobalVar")),
    ("PrimFuncFrame", |v| {
        is_frame(v, |f| matches!(f, Frame::Function { .. }))
    }),
    ("ForFrame", |v| is_frame(v, |f| matches!(f, Frame::For(_)))),
    ("WhileFrame", |v| is_frame(v, |f| matches!(f, Frame::While(_)))),
    ("IfFrame", |v| is_frame(v, |f| matches!(f, Frame::If(_)))),
    ("ThenFrame", |v| is_frame(v, |f| matches!(f, Frame::Then))),
    ("ElseFrame", |v| is_frame(v, |f| matches!(f, Frame::Else))),
    ("Stmt", |v| nodes::is_statement(v, "Stmt")),
    ("SeqStmt", |v| nodes::is_statement(v, "SeqStmt")),
    ("IfThenElse", |v| nodes::is_statement(v, "IfThenElse")),
];

/// Whether a value is of the class at a path (`tvm.tirx.IntImm`); `None` for a path that is no class.
fn is_of_class(value: &Value, path: &str) -> Option<bool> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let (_, is) = CLASSES.iter().find(|(known, _)| *known == name)?;
    Some(is(value))
}

fn is_object(value: &Value, type_name: &str) -> bool {
    matches!(value, Value::Object(object) if object.type_name() == type_name)
}

fn is_frame(value: &Value, is: impl Fn(&Frame) -> bool) -> bool {
    matches!(value, Value::Frame(frame) if is(frame))
}

impl Interpreter {
    /// `int(…)`, `list(…)` and the other types of Python.
    pub(super) fn call_type(&mut self, name: &str, args: Args, span: Span) -> Result<Value> {
        match TYPES.iter().find(|(known, _)| *known == name) {
            Some((_, make)) => make(self, args, span),
            None => error(span, format!("{name} cannot be called")),
        }
    }

    /// The result of the first of these methods that an object's class has.
    pub(super) fn by_method(&mut self, value: &Value, names: &[&str], span: Span) -> Result<Option<Value>> {
        let Value::Instance(i) = value else {
            return Ok(None);
        };
        match names.iter().find_map(|n| self.class_attribute(&i.class, n)) {
            Some(f) => self.call_method(&f, value, Args::default(), span).map(Some),
            None => Ok(None),
        }
    }

    fn not_convertible<R>(&mut self, value: &Value, to: &str, span: Span) -> Result<R> {
        match value {
            Value::Expr(_) => {
                let message = format!("{to}() needs a value that is known at compile time");
                let raised = self.raise("TypeError", span, message);
                raised.map_err(|d| Box::new(d.help(format!("to convert at run time, use T.{to}32(…)"))))
            }
            Value::Unavailable(why) => self.unavailable(why, span),
            _ => self.raise(
                "TypeError",
                span,
                format!("{} cannot become {to}", value.type_name()),
            ),
        }
    }

    /// Python's `type(value)`.
    pub(super) fn class_of(&self, value: &Value) -> Value {
        let name = match value {
            Value::Instance(i) => return Value::Class(i.class.clone()),
            Value::None => "NoneType",
            Value::Ellipsis => "ellipsis",
            Value::Class(_) => "type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Tuple(_) => "tuple",
            Value::List(_) => "list",
            Value::Dict(_) => "dict",
            Value::Set(s) if s.borrow().0.frozen => "frozenset",
            Value::Set(_) => "set",
            Value::Slice(_) => "slice",
            Value::Range(_) => "range",
            Value::Function(_) | Value::Builtin(_) | Value::Method(_) => "function",
            Value::Namespace(_) | Value::Module(_) => "module",
            _ => "object",
        };
        self.session.caches.builtins.get(name).unwrap_or(Value::None)
    }

    /// Python's `isinstance(value, classes)`.
    pub(super) fn is_instance(&mut self, value: &Value, classes: &Value, span: Span) -> Result<bool> {
        match classes {
            Value::Tuple(items) => {
                for c in items.iter() {
                    if self.is_instance(value, c, span)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Class(class) => {
                let own = match self.class_of(value) {
                    Value::Class(c) => c,
                    _ => return Ok(false),
                };
                if let (Value::Class(_), ClassKind::Builtin) = (value, &*class.kind.borrow()) {
                    return Ok(matches!(&*class.name, "type" | "object"));
                }
                if &*class.name == "object" && class.span == Span::NONE {
                    return Ok(true);
                }
                // `IntEnum` members are integers.
                if let (Some(number), ClassKind::Builtin) = (value.member_number(), &*class.kind.borrow()) {
                    return self.is_instance(&number, classes, span);
                }
                if own.is_named_tuple() && &*class.name == "tuple" {
                    return Ok(true);
                }
                Ok(Rc::ptr_eq(&own, class) || own.mro.iter().any(|c| Rc::ptr_eq(c, class)))
            }
            Value::None => Ok(matches!(value, Value::None)),
            // The classes of the language are its constructors.
            Value::Builtin(f) => match is_of_class(value, &f.name) {
                Some(is) => Ok(is),
                None => self.raise(
                    "TypeError",
                    span,
                    format!("isinstance() does not know the class \"{}\"", f.name),
                ),
            },
            Value::Object(o) => {
                let name = match o.type_name() {
                    "buffer constructor" => "Buffer",
                    name => name.strip_prefix("class ").unwrap_or(name),
                };
                Ok(is_of_class(value, name).unwrap_or(false))
            }
            Value::DType(d) => Ok(value.as_expr().is_some_and(|e| e.dtype == *d)),
            // Host names (`torch.Tensor`) are no types here.
            Value::Unavailable(why) if why.contains("\"tvm") => {
                match is_of_class(value, why.split('"').nth(1).unwrap_or("")) {
                    Some(is) => Ok(is),
                    None => self.unavailable(why, span),
                }
            }
            Value::Unavailable(_) => Ok(false),
            other => error(
                span,
                format!("isinstance() needs a class, found {}", other.type_name()),
            ),
        }
    }
}
