//! Resolution of dotted paths: functions of the tables, dtypes, namespaces, layout names, and rejected names.

use std::rc::Rc;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::super::eval::{Annotation, Value};
use super::call::{Function, MatchedCall};
use super::objects::Metadata;
use super::{
    buffers, calls, composites, cuda, dtypes, launch, layout_scopes, layouts, loops, math, meanings,
    mnemonic, pool, ptx, refused, rows, tiles, waits,
};
use crate::diagnostic::error;
use crate::intrin::Op;
use crate::release::Release;

/// All tables.
static TABLES: &[&[Function]] = &[
    buffers::FUNCTIONS,
    calls::FUNCTIONS,
    composites::FUNCTIONS,
    cuda::FUNCTIONS,
    dtypes::FUNCTIONS,
    launch::FUNCTIONS,
    layout_scopes::FUNCTIONS,
    layouts::FUNCTIONS,
    loops::FUNCTIONS,
    math::FUNCTIONS,
    pool::FUNCTIONS,
    ptx::FUNCTIONS,
    tiles::FUNCTIONS,
    waits::FUNCTIONS,
];

static INDEX: LazyLock<FxHashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    TABLES
        .iter()
        .flat_map(|t| t.iter())
        .map(|f| (f.name, f))
        .collect()
});

/// The function of a table by its full name.
pub(super) fn lookup(full: &str) -> Option<Value> {
    let function: &'static Function = INDEX.get(full)?;
    Some(Value::builtin(function.name, move |interp, args, span| {
        function.call(interp, args, span)
    }))
}

/// Whether there is a function of this full name.
pub(super) fn is_function(full: &str) -> bool {
    INDEX.contains_key(full)
        || full
            .strip_prefix("T.")
            .is_some_and(|script| Op::from_script(script).is_some())
}

/// Operators whose calls are bound according to their rows.
fn generic(script: &str) -> Option<Value> {
    Op::from_script(script).map(rows::lookup)
}

/// The signature of a function and its description.
pub(super) fn described(name: &str) -> Option<(String, String)> {
    let op = name.strip_prefix("T.").and_then(Op::from_script);
    let signature = match (INDEX.get(name), op) {
        (Some(function), _) => function.signature(),
        (None, Some(op)) => rows::signature_text(op).to_string(),
        (None, None) => String::new(),
    };
    if let Some(dtype) = name.strip_prefix("T.").and_then(dtypes::lookup) {
        return Some((
            "(x)".into(),
            format!("The dtype {dtype}; as a function, conversion to it."),
        ));
    }
    let meaning = match (meanings::find(name), op) {
        (Some(meaning), _) => meaning.to_string(),
        (None, Some(op)) => op.info().doc.trim().to_string(),
        (None, None) => return None,
    };
    Some((signature, meaning))
}

const NAMESPACES: [&str; 9] = [
    "T.cuda",
    "T.ptx",
    "T.ptx.griddepcontrol",
    "layout.Axis",
    "T.ptx.bar",
    "T.ptx.barrier",
    "T.ptx.barrier.cluster",
    "T.ptx_legacy",
    "T.s_tir",
];

/// The value of `T.ptx.name` in a file of a release of TVM; `None` for a file that may be of either.
pub fn ptx_attribute(release: Option<Release>, name: &str) -> Option<Value> {
    let old = || attribute("T.ptx", name);
    match release {
        Some(Release::V26) => old(),
        Some(Release::V27) => mnemonic::attribute(name).or_else(|| {
            let why = format!("T.ptx.{name} is of TVM 0.26, and this file is written for 0.27, whose T.ptx is mnemonics of PTX");
            old().map(|_| Value::Unavailable(why.into()))
        }),
        None => mnemonic::either(name, old()),
    }
}

/// Whether TVM 0.26 has a function of this name, or (where it is not called) a namespace.
pub fn is_old_ptx(full: &str, called: bool) -> bool {
    is_function(full)
        || !called && (NAMESPACES.contains(&full) || full.strip_prefix("T.").is_some_and(rows::is_namespace))
}

/// The value of `path.name`.
pub(super) fn attribute(path: &str, name: &str) -> Option<Value> {
    let full = format!("{path}.{name}");
    if NAMESPACES.contains(&full.as_str()) || tiles::is_namespace(&full) {
        return Some(Value::namespace(&full));
    }
    if let Some(value) = tiles::attribute(path, name) {
        return Some(value);
    }
    if let Some(value) = lookup(&full) {
        return Some(value);
    }
    match path {
        "T" => {
            if let Some(dtype) = dtypes::lookup(name) {
                return Some(Value::DType(dtype));
            }
            if let Some(value) = layouts::builder(name) {
                return Some(value);
            }
            let annotation = match name {
                "let" => Some(Annotation::Let(None)),
                "constexpr" => Some(Annotation::Constexpr),
                _ => None,
            };
            if let Some(annotation) = annotation {
                return Some(Value::Annotation(Rc::new(annotation)));
            }
            match name {
                "meta_var" => return Some(meta_var()),
                "static_assert" => return Some(static_assert()),
                "Optional" => return Some(Value::Object(Rc::new(Wrapper::Optional))),
                "Ptr" | "ptr" | "buffer_var" => return Some(Value::Object(Rc::new(Wrapper::Pointer))),
                "Axis" => return Some(Value::namespace("layout.Axis")),
                _ => {}
            }
        }
        "layout" => {
            match name {
                "Iter" => return lookup("T.Iter"),
                "ComposeLayout" | "SwizzleLayout" => return lookup(&format!("T.{name}")),
                "metadata" => return Some(Value::Object(Rc::new(Metadata::Table))),
                // For annotations and `isinstance`.
                "Layout" => {
                    let class = "\"tvm.tirx.layout.Layout\" is the class of all layouts: TileLayout(…) and ComposeLayout(…) make one";
                    return Some(Value::Unavailable(class.into()));
                }
                _ => {}
            }
            if let Some(value) = layouts::builder(name).or_else(|| layouts::axis(name)) {
                return Some(value);
            }
        }
        "layout.Axis" => return layouts::axis(name),
        _ => {}
    }
    if let Some(script) = full.strip_prefix("T.")
        && let Some(value) = generic(script)
    {
        return Some(value);
    }
    if full.strip_prefix("T.").is_some_and(rows::is_namespace) {
        return Some(Value::namespace(&full));
    }
    refused::reason(path, name).map(|reason| Value::Unavailable(reason.into()))
}

/// The full names of operations beside those that are printed: `T.cuda.mbarrier_wait`, as TVM 0.27 spells
/// `T.ptx.mbarrier.try_wait`. Those that begin with `_` are TVM's own and not for kernel files.
fn other_spellings() -> impl Iterator<Item = String> {
    let also = Op::ALL.iter().flat_map(|op| op.row().also.iter());
    also.filter(|name| !name.contains("._"))
        .map(|name| format!("T.{name}"))
}

/// The names that `path` has: for suggestions, completion and stubs.
pub(super) fn names(path: &str) -> Vec<String> {
    let prefix = format!("{path}.");
    let direct = |full: &str| -> Option<String> {
        let rest = full.strip_prefix(&prefix)?;
        // For a function within a nested namespace, the name of that namespace.
        rest.split('.').next().map(str::to_string)
    };
    let mut names: Vec<String> = TABLES
        .iter()
        .flat_map(|t| t.iter())
        .filter_map(|f| direct(f.name))
        .chain(Op::ALL.iter().filter_map(|op| direct(rows::name(*op))))
        .chain(other_spellings().filter_map(|full| direct(&full)))
        .collect();
    match path {
        "T" => {
            names.extend(dtypes::all_names());
            names.extend(dtypes::short_names().map(String::from));
            let own = [
                "let",
                "constexpr",
                "meta_var",
                "static_assert",
                "Optional",
                "S",
                "R",
                "TileLayout",
                "ComposeLayout",
                "tile",
                "cuda",
                "prim_func",
                "jit",
                "inline",
                "macro",
                "meta_class",
            ];
            names.extend(own.map(String::from));
        }
        "layout" => {
            names.extend(["TileLayout", "ComposeLayout", "S", "R", "Axis", "Iter"].map(String::from));
            names.extend(crate::layout::axes::names().map(String::from));
        }
        "layout.Axis" => names.extend(crate::layout::axes::names().map(String::from)),
        path => names.extend(tiles::names(path)),
    }
    names.sort();
    names.dedup();
    names
}

fn meta_var() -> Value {
    Value::builtin("T.meta_var", |_, args, span| {
        let [(value, _)] = args.exactly("T.meta_var", ["value"], span)?;
        Ok(Value::MetaVar(Rc::new(value)))
    })
}

fn static_assert() -> Value {
    use super::super::eval::{optional, required};
    Value::builtin("T.static_assert", |_, args, span| {
        let call = MatchedCall::new(
            "T.static_assert",
            const { &[required("x"), optional("message")] },
            false,
            args,
            span,
        )?;
        let Some((value, _)) = call.get("x") else {
            return error(span, "T.static_assert failed: None");
        };
        let holds = match value {
            Value::Bool(v) => *v,
            Value::Expr(e) if e.as_int().is_some() => !e.is_int(0),
            Value::Expr(e) => {
                return error(
                    span,
                    format!(
                        "T.static_assert needs a condition known now, found an expression of dtype {}",
                        e.dtype
                    ),
                );
            }
            Value::Str(s) => !s.is_empty(),
            other => other.as_int() != Some(0),
        };
        if holds {
            return Ok(Value::None);
        }
        let message = call.text_or("message", "")?;
        match &*message {
            "" => error(span, "T.static_assert failed"),
            message => error(span, format!("T.static_assert failed: {message}")),
        }
    })
}

/// Names that are called or subscripted within an annotation.
enum Wrapper {
    /// `T.Optional[annotation]`
    Optional,
    /// `T.Ptr("float32")`
    Pointer,
}

impl super::super::eval::Object for Wrapper {
    fn type_name(&self) -> &str {
        match self {
            Wrapper::Optional => "T.Optional",
            Wrapper::Pointer => "T.Ptr",
        }
    }

    fn call(
        &self,
        interp: &mut super::super::eval::Interpreter,
        args: super::super::eval::Args,
        span: crate::source::Span,
    ) -> crate::diagnostic::Result<Value> {
        match self {
            Wrapper::Optional => {
                let [(value, _)] = args.exactly("T.Optional", ["annotation"], span)?;
                Ok(Value::Annotation(Rc::new(Annotation::Optional(value))))
            }
            Wrapper::Pointer => super::call_dtype(interp, crate::ir::DType::HANDLE, args, span),
        }
    }

    fn subscript(
        &self,
        interp: &mut super::super::eval::Interpreter,
        index: &Value,
        span: crate::source::Span,
    ) -> crate::diagnostic::Result<Value> {
        let items = match self {
            Wrapper::Optional => vec![index.clone()],
            Wrapper::Pointer => index.as_items().unwrap_or_else(|| vec![index.clone()]),
        };
        self.call(interp, super::super::eval::Args::positional(items, span), span)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
