//! Importable modules: Python modules that need no host, and the documented names of TIRx.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::enums::Auto;
use super::value::{Class, ClassKind, DataClass, Value};
use super::{Args, Interpreter, functional};
use crate::diagnostic::Result;
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
    ("tvm.script.ir_builder.tirx", "builder"),
    ("tvm.tirx.script.builder", "builder"),
    ("tvm.tirx.script.builder.ir", "builder"),
];

/// Modules of Python and packages that have a namespace here.
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
    "tvm.ir",
    "numbers",
];

/// Packages of the host: importing them is allowed, using them in a kernel is an error.
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
    "importlib",
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
    if let Some(path) = path.strip_prefix(super::host_values::HOST_PREFIX) {
        return Some(host_only(path));
    }
    if let Some((_, name)) = LANGUAGE.iter().find(|(p, _)| *p == path) {
        return Some(Value::namespace(name));
    }
    if NAMESPACES.contains(&path) {
        return Some(Value::namespace(path));
    }
    let current = super::library::current(path);
    if super::library::is_module(&current) {
        return Some(Value::namespace(&current));
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
        .chain(super::library::modules())
}

/// The error text for a host value, after its quoted path.
const HOST: &str = " belongs to the host program";

/// A value of the host.
pub(super) fn host_only(path: &str) -> Value {
    Value::Unavailable(format!("\"{path}\"{HOST}: it has no value in a kernel file").into())
}

/// A module that is neither a kernel file nor a known package.
pub(super) fn not_found(path: &str, near: Option<&str>) -> Value {
    let near = near.map_or(String::new(), |near| format!(" (did you mean \"{near}\"?)"));
    let file = path.replace('.', "/");
    let library = path.split('.').next().unwrap_or(path);
    Value::Unavailable(
        format!(
            "\"{path}\"{HOST}: there is no kernel file or module \"{path}\"{near}; looked for {file}.py and \
             {file}/__init__.py in the folder around the file's packages, in the crate with `links = \"{library}\"` \
             if this one depends on it, and among TVM's modules"
        )
        .into(),
    )
}

/// The path of a host value; `None` for an unsupported name of the language.
pub(super) fn host_path(why: &str) -> Option<&str> {
    let (path, rest) = why.strip_prefix('"')?.split_once('"')?;
    rest.starts_with(HOST).then_some(path)
}

/// An attribute of a host value: the error names the whole path.
pub(super) fn host_part(why: &Rc<str>, name: &str) -> Value {
    let Some(path) = host_path(why) else {
        return Value::Unavailable(why.clone());
    };
    let full = format!("{path}.{name}");
    if let Some(value) = super::host::tvm_value(&full) {
        return value;
    }
    let rest = &why[path.len() + 2..];
    Value::Unavailable(format!("\"{full}\"{rest}").into())
}

/// Whether a namespace is a module of Python.
pub(super) fn is_python(path: &str) -> bool {
    NAMESPACES.contains(&path) && !path.starts_with("tvm")
}

/// Python functions that access the outside world.
pub(super) const HOST_BUILTINS: &[&str] = &[
    "open",
    "input",
    "exec",
    "eval",
    "compile",
    "locals",
    "dir",
    "breakpoint",
    "exit",
    "quit",
    "bytes",
    "bytearray",
    "memoryview",
    "complex",
    "__file__",
    "__import__",
    "__doc__",
    "__spec__",
    "__package__",
];

const FUNCTOOLS: &[&str] = &[
    "partial",
    "reduce",
    "lru_cache",
    "cache",
    "wraps",
    "cached_property",
];
const ITERTOOLS: &[&str] = &["product", "permutations", "combinations", "chain", "count"];
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
    "abs",
    "itemgetter",
    "attrgetter",
];

/// Names of a module, for suggestions.
pub(super) fn names(path: &str) -> Vec<&'static str> {
    let mut list = match path {
        "math" => super::math::names().collect(),
        "functools" => FUNCTOOLS.to_vec(),
        "itertools" => ITERTOOLS.to_vec(),
        "operator" => OPERATOR.to_vec(),
        "enum" => vec!["Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "auto", "unique"],
        "dataclasses" => vec![
            "dataclass",
            "field",
            "replace",
            "asdict",
            "astuple",
            "fields",
            "is_dataclass",
        ],
        "collections" => vec!["namedtuple", "OrderedDict", "defaultdict"],
        "copy" => vec!["copy", "deepcopy"],
        _ => Vec::new(),
    };
    list.extend(super::library::names(path));
    list
}

/// `path.name` of a module of Python.
pub(super) fn attribute(path: &str, name: &str) -> Option<Value> {
    let find = |list: &[&'static str]| list.iter().copied().find(|n| *n == name);
    match path {
        "math" => super::math::math(name),
        "functools" => functional::functools(find(FUNCTOOLS)?),
        "itertools" => find(ITERTOOLS).map(functional::itertools),
        "itertools.chain" if name == "from_iterable" => Some(Value::builtin(
            "itertools.chain.from_iterable",
            |interp, args, span| {
                let [(value, at)] = args.exactly("chain.from_iterable", ["iterable"], span)?;
                Ok(functional::chain(interp.iterator(&value, at)?))
            },
        )),
        "operator" if name == "abs" => Some(Value::builtin("operator.abs", super::builtins::abs)),
        "operator" => find(OPERATOR).map(functional::operator),
        "enum" if name == "auto" => Some(Value::builtin("enum.auto", |_, _, _| {
            Ok(Value::Object(Rc::new(Auto)))
        })),
        "enum" if name == "unique" => Some(Value::builtin("enum.unique", first_argument)),
        "dataclasses" => super::records::dataclasses(name),
        "collections" if name == "defaultdict" => Some(Value::builtin(
            "collections.defaultdict",
            |interp, mut args, span| {
                let factory = match args.positional.is_empty() {
                    true => Value::None,
                    false => args.positional.remove(0).0,
                };
                let made = interp.call_type("dict", args, span)?;
                if let (Value::Dict(dict), false) = (&made, matches!(factory, Value::None)) {
                    dict.borrow_mut().factory = Some(factory);
                }
                Ok(made)
            },
        )),
        "collections" if name == "namedtuple" => Some(Value::builtin(
            "collections.namedtuple",
            super::records::namedtuple,
        )),
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
        "tvm.tirx" => crate::lang::attribute("T", name)
            .or_else(|| crate::lang::attribute("layout", name))
            .filter(|_| {
                module(&format!("tvm.tirx.{name}")).is_none_or(|m| matches!(m, Value::Unavailable(_)))
            }),
        _ => None,
    }
}

impl Interpreter {
    /// Classes of modules: one object each.
    pub(super) fn builtin_module_class(&mut self, path: &str, name: &str) -> Option<Value> {
        let kind = match (path, name) {
            ("enum", "Enum" | "Flag") => ClassKind::Enum { integer: false },
            ("enum", "IntEnum" | "IntFlag" | "StrEnum") => ClassKind::Enum { integer: true },
            ("typing", "NamedTuple") => ClassKind::NamedTuple(Rc::new(DataClass::tuple(vec![]))),
            ("abc", "ABC" | "ABCMeta") => ClassKind::Plain,
            ("collections", "OrderedDict") => return self.session.caches.builtins.get("dict"),
            _ => return None,
        };
        let full: Rc<str> = format!("{path}.{name}").into();
        if let Some(c) = self.session.caches.module_classes.get(&full) {
            return Some(Value::Class(c.clone()));
        }
        let class = Rc::new(Class {
            bases: Vec::new(),
            name: name.into(),
            mro: Vec::new(),
            dict: RefCell::default(),
            order: RefCell::default(),
            kind: RefCell::new(kind),
            is_meta: Cell::new(false),
            span: Span::NONE,
        });
        self.session.caches.module_classes.insert(full, class.clone());
        Some(Value::Class(class))
    }
}

/// A decorator that changes nothing.
pub(super) fn first_argument(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(value, _)] = args.exactly("this decorator", ["function"], span)?;
    Ok(value)
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
