//! The language that kernels see: the `T` namespace, and operators, attributes and indices on IR values.
//!
//! The evaluator calls these functions for whatever has an IR operand or lies in a namespace of the language. Functions
//! of `T` stand in tables (`call::Function`: name, parameters, what it does), so that keyword arguments and arity
//! errors work alike for all of them:
//!
//! | file | what it holds |
//! |---|---|
//! | `namespace` | what a dotted path means |
//! | `dtypes` | dtypes as values and annotations |
//! | `math` | arithmetic, mathematics, node constructors |
//! | `buffers`, `methods`, `access`, `views`, `indexers` | buffers, their attributes, elements and views |
//! | `pool` | pooled dynamic shared memory |
//! | `launch`, `loops` | scope ids, regions, loops, statements |
//! | `calls`, `cuda`, `ptx`, `composites`, `waits` | calls whose arguments are converted or that are several operations |
//! | `layouts`, `layout_attributes`, `layout_methods`, `layout_parts` | `TileLayout(S[…] + R[…] + offset)` |
//! | `tiles` | tile primitives: `Tx.cta.copy(…)` |
//! | `cuda_words` | what to write for a name of CUDA C++ |
//! | `meanings` | what the names mean that are no operations |
//! | `rows` | all other operations: calls as their rows say |
//! | `refused` | names that TVM has and this compiler does not |

mod access;
mod buffers;
mod call;
mod calls;
mod composites;
mod convert;
mod cuda;
mod cuda_words;
mod dtypes;
mod indexers;
mod launch;
mod layout_attributes;
mod layout_methods;
mod layout_parts;
mod layout_scopes;
mod layouts;
mod linear;
mod loops;
mod math;
mod meanings;
mod members;
mod methods;
mod mnemonic;
mod namespace;
mod objects;
mod operators;
mod pool;
mod ptx;
mod refused;
mod regions;
mod rows;
mod tiles;
mod views;
mod waits;

#[cfg(test)]
mod tests;

use tirx_python::{BoolOp, CmpOp, Operator, UnaryOp};

pub use buffers::check_parameter;
pub use convert::expr_type;
pub(crate) use convert::{attr as attribute_value, dtype_value, is_single, only_element, printed_element};
pub use cuda_words::cuda_word;
pub use loops::range_loop;
pub use mnemonic::{is_mark as is_ptx_mark, subscript as ptx_subscript};
pub use namespace::{is_old_ptx, ptx_attribute};
pub(crate) use objects::type_of_value;
pub use rows::{Default as RowDefault, parameters as row_parameters};

use super::eval::{Annotation, Args, Interpreter, Value};
use super::typing;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{AttrValue, BinOp, Buffer, DType, Expr, Stmt, StmtKind};
use crate::release::Release;
use crate::source::Span;

/// The value of `path.name`: `("T", "alloc_shared")`, `("T.cuda", "cta_sync")`, `("layout", "TileLayout")`.
/// Roots are `T`, `I`, `Tx` and `layout` (`tvm.tirx.layout`: `TileLayout`, `S`, `R`, axes …). A name that TVM has and
/// this compiler does not is a [`Value::Unavailable`] with the reason.
pub fn attribute(path: &str, name: &str) -> Option<Value> {
    namespace::attribute(path, name)
}

/// The signature of a name in text and its description: `(a, b, *, c=…)`, empty for names that are not called, and a
/// sentence. For the reference page.
pub fn described(name: &str) -> Option<(String, String)> {
    namespace::described(name)
}

pub use members::{Member, members};

/// The names that `path` has, for suggestions; empty for an unknown path.
pub fn names(path: &str) -> Vec<String> {
    namespace::names(path)
}

/// Whether `path` has a name that kernels can use: it is not one that is refused.
pub fn is_offered(path: &str, name: &str) -> bool {
    attribute(path, name).is_some_and(|value| !matches!(value, Value::Unavailable(_)))
}

/// The names that `path` has in a file of a release, for suggestions.
pub fn names_of_release(path: &str, release: Option<Release>) -> Vec<String> {
    let of_ptx = path == "T.ptx" && release != Some(Release::V26);
    let mut names = match of_ptx && release.is_some() {
        true => Vec::new(),
        false => names(path),
    };
    if of_ptx {
        names.extend(crate::intrin::mnemonic::family_names());
    }
    names.sort();
    names.dedup();
    names
}

/// A function of the same name in another namespace than `path`, in a file of a release: `T.cuda.cta_sync` for `T.cta_sync`.
pub fn elsewhere(path: &str, name: &str, release: Option<Release>) -> Option<String> {
    let others = ["T", "T.cuda", "T.ptx"]
        .into_iter()
        .filter(|other| *other != path);
    let mut with = others.filter(|other| match *other {
        "T.ptx" => names_of_release(other, release).iter().any(|known| known == name),
        other => namespace::is_function(&format!("{other}.{name}")),
    });
    with.next().map(|other| format!("{other}.{name}"))
}

/// `a op b`, at least one an IR value (or both dtypes, layouts, objects).
pub fn binary(interp: &mut Interpreter, op: Operator, a: &Value, b: &Value, span: Span) -> Result<Value> {
    operators::binary(interp, op, a, b, span)
}

/// `a op b`, at least one an IR value. Not for `is`, `in`.
pub fn compare(interp: &mut Interpreter, op: CmpOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
    operators::compare(interp, op, a, b, span)
}

/// `a and b`, `a or b`, at least one an IR value.
pub fn logical(interp: &mut Interpreter, op: BoolOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
    operators::logical(interp, op, a, b, span)
}

/// `-a`, `not a`, `~a`, `+a` of an IR value.
pub fn unary(interp: &mut Interpreter, op: UnaryOp, a: &Value, span: Span) -> Result<Value> {
    operators::unary(interp, op, a, span)
}

/// `value.name` of an expression, buffer, region, layout or dtype.
pub fn value_attribute(interp: &mut Interpreter, value: &Value, name: &str, span: Span) -> Result<Value> {
    let found = match value {
        Value::Buffer(b) => return methods::buffer(b, name, span),
        Value::Expr(e) => return methods::expression(e, name, span),
        Value::DType(d) => return methods::dtype(*d, name, span),
        Value::MetaVar(inner) => return value_attribute(interp, inner, name, span),
        Value::Layout(layout) => layout_attributes::attribute(layout, name)?,
        Value::Object(o) => o.clone().attribute(interp, name, span)?,
        Value::Region(region) => regions::attribute(region, name),
        _ => None,
    };
    match found {
        Some(value) => Ok(value),
        None => error(span, format!("{} has no attribute \"{name}\"", value.type_name())),
    }
}

/// `value[index]` of a buffer (load or region), region, expression, namespace object. A tuple index is a
/// [`Value::Tuple`], slices in it [`Value::Slice`].
pub fn subscript(interp: &mut Interpreter, value: &Value, index: &Value, span: Span) -> Result<Value> {
    match value {
        Value::Buffer(b) => access::load(interp, b, index, span),
        Value::Region(r) => regions::part(r, index, span),
        Value::DType(d) => dtypes::subscript(*d, index, span),
        Value::MetaVar(inner) => subscript(interp, inner, index, span),
        Value::Object(o) => o.clone().subscript(interp, index, span),
        Value::Annotation(a) if matches!(**a, Annotation::Let(None)) => {
            dtypes::let_annotation(interp, index, span)
        }
        // `x[0]` of a scalar: the element that its name denotes.
        Value::Expr(_) => match convert::buffer(value) {
            Some(b) if b.shape.len() == 1 && b.shape[0].is_int(1) => {
                check_scalar_index(&b, index, span)?;
                access::load(interp, &b, index, span)
            }
            _ => not_subscriptable(value, span),
        },
        _ => not_subscriptable(value, span),
    }
}

/// A scalar has one element, which its name denotes.
fn check_scalar_index(scalar: &Buffer, index: &Value, span: Span) -> Result<()> {
    let index = match index {
        Value::Tuple(items) if items.len() == 1 => &items[0],
        other => other,
    };
    let first = match index {
        Value::Int(i) => *i == 0,
        Value::Expr(e) => e.is_int(0),
        other => matches!(other, Value::Slice(_)),
    };
    if first {
        return Ok(());
    }
    let name = &scalar.name;
    let d = Diagnostic::new(span, format!("{name} is a scalar: it has no other elements"));
    Err(Box::new(d.help(format!(
        "assign it by name, {name} = …, or declare memory: {name}: T.{}[n]",
        scalar.dtype
    ))))
}

/// Access to the elements behind a pointer.
const OVER_A_POINTER: &str = "match a parameter to a buffer: A = T.match_buffer(a, shape, dtype); declare one over another \
                              pointer: T.decl_buffer(shape, dtype, data=pointer)";

fn not_subscriptable<T>(value: &Value, span: Span) -> Result<T> {
    let diagnostic = Diagnostic::new(span, format!("{} cannot be subscripted", value.type_name()));
    Err(Box::new(match value {
        Value::Expr(e) if e.dtype.is_handle() => diagnostic.help(OVER_A_POINTER),
        _ => diagnostic,
    }))
}

/// `target[index] = value`: emits a store.
pub fn store(
    interp: &mut Interpreter,
    target: &Value,
    index: &Value,
    value: &Value,
    span: Span,
) -> Result<()> {
    match convert::buffer(target) {
        Some(buffer) => {
            if matches!(target, Value::Expr(_)) {
                check_scalar_index(&buffer, index, span)?;
            }
            access::store(interp, &buffer, index, value, None, span)
        }
        None => {
            let message = format!("{} cannot be assigned to by index", target.type_name());
            let diagnostic = Diagnostic::new(span, message);
            Err(Box::new(match target {
                Value::Expr(e) if e.dtype.is_handle() => diagnostic.help(OVER_A_POINTER),
                _ => diagnostic,
            }))
        }
    }
}

/// `dtype(args)`: conversion, or a fresh variable without arguments; `T.handle("float32", "shared")` too.
pub fn call_dtype(_interp: &mut Interpreter, dtype: DType, args: Args, span: Span) -> Result<Value> {
    dtypes::call(dtype, args, span)
}

/// A value as an expression: literals get their default dtypes.
pub fn to_expr(value: &Value, span: Span) -> Result<Expr> {
    match value {
        Value::Str(s) => Ok(Expr::string(&**s).at(span)),
        value => convert::expr(value, span),
    }
}

/// A value converted to `dtype` as a store to a buffer of that dtype does.
pub fn to_expr_of(value: &Value, dtype: DType, span: Span) -> Result<Expr> {
    access::stored(value, dtype, "the place", span)
}

/// A value as the condition of `if`, `while`, `assert`: a scalar bool expression. Numbers are compared with zero.
pub fn condition(value: &Value, span: Span) -> Result<Expr> {
    let e = convert::expr(value, span)?;
    if e.dtype == DType::BOOL {
        return Ok(e);
    }
    if e.dtype.is_scalar() && (e.dtype.is_integer() || e.dtype.is_floating()) {
        return typing::compare(BinOp::Ne, e.into(), typing::Operand::Int(0), span);
    }
    let diagnostic = Diagnostic::new(span, format!("a condition must be a bool, found {}", e.dtype));
    Err(Box::new(if e.dtype.is_handle() {
        diagnostic.help("test a pointer with T.isnullptr(p)")
    } else {
        diagnostic
    }))
}

/// A value as an attribute or annotation value (`T.attr`, `T.func_attr`, `annotations=`).
pub fn to_attr(value: &Value, span: Span) -> Result<AttrValue> {
    convert::attr(value, span)
}

/// The type that an annotation names: a dtype, `T.handle("float32", "shared")`, `x.ty`.
pub fn to_type(value: &Value, span: Span) -> Result<crate::ir::Type> {
    match convert::type_of_value(value, span)? {
        Some(ty) => Ok(ty),
        None => error(
            span,
            format!("expected a type, found {}", convert::describe(value)),
        ),
    }
}

/// A fresh one-element buffer in scope `local` with its allocation emitted: what `x: T.int32` makes.
pub fn local_scalar(interp: &mut Interpreter, name: &str, dtype: DType, span: Span) -> Result<Buffer> {
    local_vector(interp, name, dtype, vec![Expr::int32(1)], span)
}

/// A fresh buffer in scope `local` with its allocation emitted: what `x: T.f32[2]` makes.
pub fn local_vector(
    interp: &mut Interpreter,
    name: &str,
    dtype: DType,
    shape: Vec<Expr>,
    span: Span,
) -> Result<Buffer> {
    let buffer = Buffer::fresh(name, shape, dtype, "local", span);
    interp.emit(Stmt::new(StmtKind::AllocBuffer(buffer.clone(), Vec::new()), span))?;
    Ok(buffer)
}
