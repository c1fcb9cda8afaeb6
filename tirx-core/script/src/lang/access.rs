//! Elements and parts of buffers: `A[i, j]`, `A[0:4]`, `A[i] = x`, and the value of a region.

use std::rc::Rc;

use super::super::eval::{Interpreter, Region, Value};
use super::super::typing::{self, Operand};
use super::convert;
use super::linear;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{Buffer, BufferRegion, BufferStore, DType, Expr, ExprKind, Stmt, StmtKind};
use crate::source::Span;

/// One item between the brackets.
enum Index {
    At(Expr),
    Slice { start: Expr, stop: Expr, step: Expr },
}

/// Which constant places an access may have.
#[derive(Clone, Copy)]
struct Places {
    /// Elements behind the last of the first dimension that have an address.
    past: i128,
    /// Whether constants say that the statement never runs: it may have any then.
    never_runs: bool,
}

impl Places {
    /// Those of the elements.
    fn from_interpreter(interp: &Interpreter) -> Places {
        Places {
            past: 0,
            never_runs: !interp.is_reached(),
        }
    }
}

/// Lanes of one value.
const MAX_LANES: u64 = 4096;

fn items(index: &Value) -> Vec<Value> {
    match index {
        Value::Tuple(items) => items.to_vec(),
        Value::List(items) => items.borrow().clone(),
        other => vec![other.clone()],
    }
}

fn parse(buffer: &Buffer, index: &Value, places: Places, span: Span) -> Result<Vec<Index>> {
    let items = items(index);
    let dims = buffer.shape.len();
    if items.len() > dims {
        let message = format!(
            "{} has {} but {} {} given",
            buffer.name,
            plural(dims, "dimension"),
            plural(items.len(), "index"),
            if items.len() == 1 { "was" } else { "were" },
        );
        return Err(Box::new(declared(Diagnostic::new(span, message), buffer)));
    }
    items
        .iter()
        .enumerate()
        .map(|(dim, item)| match item {
            Value::Slice(slice) => {
                let bound = |v: &Value, default: Expr| -> Result<Expr> {
                    match v {
                        Value::None => Ok(default),
                        v => one_index(buffer, dim, v, span),
                    }
                };
                let start = bound(&slice.start, Expr::int32(0).at(span))?;
                let stop = bound(&slice.stop, buffer.shape[dim].clone())?;
                let step = bound(&slice.step, Expr::constant(start.dtype, 1).at(span))?;
                let (first, end) = covered(&start, &stop, &step);
                // Tensor copies fill what a region of global memory has beyond its buffer; `check_region` looks at others.
                let overhangs = buffer.scope() == "global" && step.is_int(1);
                check_slice(buffer, dim, (&first, &end), overhangs, places.never_runs, span)?;
                Ok(Index::Slice { start, stop, step })
            }
            Value::Ellipsis => error(span, format!("`…` is no index of {}", buffer.name)),
            item => {
                let index = one_index(buffer, dim, item, span)?;
                if !places.never_runs {
                    check_range(buffer, dim, &index, if dim == 0 { places.past } else { 0 }, span)?;
                }
                Ok(Index::At(index))
            }
        })
        .collect()
}

fn plural(n: usize, thing: &str) -> String {
    match (n, thing) {
        (1, _) => format!("1 {thing}"),
        (_, "index") => format!("{n} indices"),
        _ => format!("{n} {thing}s"),
    }
}

fn declared(diagnostic: Diagnostic, buffer: &Buffer) -> Diagnostic {
    diagnostic.note(buffer.span, format!("\"{}\" is declared here", buffer.name))
}

pub(super) fn one_index(buffer: &Buffer, dim: usize, value: &Value, span: Span) -> Result<Expr> {
    let Some(operand) = convert::operand(value, span) else {
        let found = convert::describe(value);
        return error(
            span,
            format!("index {dim} of {} must be an integer, found {found}", buffer.name),
        );
    };
    let operand = operand?;
    let dtype = operand.dtype();
    if !dtype.is_integer() {
        let message = format!("index {dim} of {} must be an integer, found {dtype}", buffer.name);
        let help = if dtype.is_floating() {
            "cast it: T.cast(x, \"int32\"), or divide with `//`"
        } else {
            "cast it: T.cast(x, \"int32\")"
        };
        return Err(Box::new(Diagnostic::new(span, message).help(help)));
    }
    // A literal index takes the dtype that the extent has, where that is wider.
    match (operand, buffer.shape[dim].dtype) {
        (Operand::Int(v), _) => typing::literal(Operand::Int(v), span),
        (operand, _) => typing::literal(operand, span),
    }
}

/// Refuses a constant index outside of the extent and of `past` elements behind it. A buffer without a layout is flattened memory of lowered IR: its
/// indices include offsets that its extent does not.
fn check_range(buffer: &Buffer, dim: usize, index: &Expr, past: i128, span: Span) -> Result<()> {
    if buffer.layout.is_none() {
        return Ok(());
    }
    let (low, high) = match &index.kind {
        ExprKind::Int(v) => (*v, *v),
        ExprKind::Ramp { base, stride, lanes } => match (base.as_int(), stride.as_int()) {
            // A vector may continue from the end of a row into the next one.
            (Some(b), _) if buffer.shape.len() > 1 => (b, b),
            (Some(b), Some(s)) => {
                let last = b + s * (*lanes as i128 - 1);
                (b.min(last), b.max(last))
            }
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let extent = buffer.shape[dim].as_int();
    if low >= 0 && extent.is_none_or(|e| high < e + past) {
        return Ok(());
    }
    let bad = if low < 0 { low } else { high };
    let message = format!(
        "index {bad} is out of range for dimension {dim} of {}",
        buffer.name
    );
    let label = match extent {
        Some(0) => "the extent is 0".to_string(),
        Some(e) => format!("the extent is {e}: valid are 0 to {}", e - 1),
        None => "negative indices do not count from the end".to_string(),
    };
    Err(Box::new(declared(
        Diagnostic::new(span, message).label(label),
        buffer,
    )))
}

/// From the lowest element of a slice to behind its highest, where the bounds are constant and the step is not 1.
fn covered(start: &Expr, stop: &Expr, step: &Expr) -> (Expr, Expr) {
    let as_they_are = (start.clone(), stop.clone());
    let (Some(a), Some(b), Some(s)) = (start.as_int(), stop.as_int(), step.as_int()) else {
        return as_they_are;
    };
    if s == 0 || s == 1 || (b - a) * s.signum() <= 0 {
        return as_they_are;
    }
    let last = a + ((b - a) * s.signum() - 1) / s.abs() * s;
    let at = |v: i128, of: &Expr| Expr::constant(of.dtype, v).at(of.span);
    (at(a.min(last), start), at(a.max(last) + 1, stop))
}

/// Refuses a region with constant bounds that goes beyond its buffer.
pub(super) fn check_region(region: &BufferRegion, span: Span) -> Result<()> {
    for (dim, (min, extent)) in region.ranges.iter().enumerate() {
        let stop = linear::sum(min, extent, span)?;
        check_slice(&region.buffer, dim, (min, &stop), false, false, span)?;
    }
    Ok(())
}

fn check_slice(
    buffer: &Buffer,
    dim: usize,
    (start, stop): (&Expr, &Expr),
    overhangs: bool,
    never_runs: bool,
    span: Span,
) -> Result<()> {
    if buffer.layout.is_none() {
        return Ok(());
    }
    let extent = buffer.shape[dim].as_int();
    let bad = |message: String| {
        let label = extent.map_or(String::new(), |e| format!("the extent is {e}"));
        Err(Box::new(declared(
            Diagnostic::new(span, message).label(label),
            buffer,
        )))
    };
    let (first, last) = (start.as_int(), stop.as_int());
    if let Some(v) = first.filter(|v| *v < 0).or(last.filter(|v| *v < 0))
        && !never_runs
    {
        return bad(format!(
            "slice bound {v} of dimension {dim} of {} is negative",
            buffer.name
        ));
    }
    if let (Some(v), Some(e)) = (last, extent)
        && v > e
        && !overhangs
        && !never_runs
    {
        return bad(format!(
            "slice bound {v} is out of range for dimension {dim} of {}",
            buffer.name
        ));
    }
    if let (Some(a), Some(b)) = (first, last)
        && a > b
    {
        return bad(format!(
            "the slice {a}:{b} of dimension {dim} of {} is empty",
            buffer.name
        ));
    }
    Ok(())
}

/// A slice as an index: a scalar for one element, else a ramp.
fn ramp(buffer: &Buffer, start: Expr, stop: &Expr, step: Expr, span: Span) -> Result<Expr> {
    let lanes = match step.as_int() {
        // Rounded up in the direction of the step: `A[9:5:-1]` is `A[9]` to `A[6]`.
        Some(step) if step != 0 => {
            let count = linear::difference(stop, &start, span)?;
            count
                .as_int()
                .map(|n| -(-n * step.signum()).div_euclid(step.abs()))
        }
        _ => None,
    };
    match lanes {
        Some(1) => Ok(start),
        Some(lanes) if (2..=u16::MAX as i128).contains(&lanes) => {
            let step = typing::cast(step.into(), start.dtype, span)?;
            Ok(Expr::ramp(start, step, lanes as u16).at(span))
        }
        Some(lanes) => error(
            span,
            format!("a slice of {} with {lanes} elements is no value", buffer.name),
        ),
        None => {
            let message = format!(
                "a slice of {} as a value needs a constant number of elements",
                buffer.name
            );
            Err(Box::new(
                Diagnostic::new(span, message).help("copy element by element in a loop"),
            ))
        }
    }
}

/// Only the last index may have lanes: TVM's codegen knows no other vector access.
fn check_vector(buffer: &Buffer, indices: &[Expr], span: Span) -> Result<()> {
    let last = indices.len().saturating_sub(1);
    match indices.iter().take(last).position(|i| !i.dtype.is_scalar()) {
        Some(dim) => {
            let message = format!("only the last index of {} may have several lanes", buffer.name);
            Err(Box::new(
                Diagnostic::new(span, message).label(format!("index {dim} has {}", indices[dim].dtype.lanes)),
            ))
        }
        None => Ok(()),
    }
}

/// `buffer[index]`: an element, a vector (slices with a step), or a region.
pub(super) fn load(interp: &Interpreter, buffer: &Buffer, index: &Value, span: Span) -> Result<Value> {
    load_within(buffer, index, Places::from_interpreter(interp), span)
}

/// As [`load`], for the address of an element: one past the last of the first dimension has one too. In raw bytes any
/// address may be computed: a part that is empty may begin behind the end, aligned up.
pub(super) fn address(interp: &Interpreter, buffer: &Buffer, index: &Value, span: Span) -> Result<Value> {
    let raw = buffer.dtype == DType::UINT8 && buffer.shape.len() == 1;
    let places = Places {
        past: if raw { ALIGNED_UP } else { 1 },
        ..Places::from_interpreter(interp)
    };
    load_within(buffer, index, places, span)
}

/// Bytes behind the end of raw storage at which an aligned empty part may begin.
const ALIGNED_UP: i128 = 1024;

fn load_within(buffer: &Buffer, index: &Value, places: Places, span: Span) -> Result<Value> {
    let parsed = parse(buffer, index, places, span)?;
    let stepped = |i: &Index| matches!(i, Index::Slice { step, .. } if !step.is_int(1));
    let sliced = parsed.iter().any(|i| matches!(i, Index::Slice { .. }));
    if (sliced && !parsed.iter().any(stepped)) || parsed.len() < buffer.shape.len() {
        let written = parsed.len();
        let mut ranges = Vec::with_capacity(buffer.shape.len());
        for item in parsed {
            ranges.push(match item {
                Index::At(i) => {
                    let one = Expr::constant(i.dtype, 1).at(span);
                    (i, one)
                }
                Index::Slice { start, stop, .. } => {
                    let extent = linear::difference(&stop, &start, span)?;
                    (start, extent)
                }
            });
        }
        for extent in &buffer.shape[ranges.len()..] {
            ranges.push((Expr::int32(0).at(span), extent.clone()));
        }
        return Ok(Value::Region(Rc::new(Region {
            buffer: buffer.clone(),
            ranges,
            written,
            never_runs: places.never_runs,
        })));
    }
    let indices = indices(buffer, parsed, span)?;
    Ok(Value::Expr(Expr::load(buffer, indices).at(span)))
}

fn indices(buffer: &Buffer, parsed: Vec<Index>, span: Span) -> Result<Vec<Expr>> {
    let indices = parsed
        .into_iter()
        .map(|item| match item {
            Index::At(i) => Ok(i),
            Index::Slice { start, stop, step } => ramp(buffer, start, &stop, step, span),
        })
        .collect::<Result<Vec<_>>>()?;
    check_vector(buffer, &indices, span)?;
    let lanes = indices
        .iter()
        .fold(1u64, |n, i| n.saturating_mul(u64::from(i.dtype.lanes)));
    if lanes.saturating_mul(u64::from(buffer.dtype.lanes)) > MAX_LANES {
        return error(
            span,
            format!("a value of more than {MAX_LANES} lanes of {}", buffer.name),
        );
    }
    Ok(indices)
}

/// The elements of a region as one value: each dimension has one element, except the last, which has a constant number.
pub(super) fn region_load(region: &Region, span: Span) -> Result<Expr> {
    let buffer = &region.buffer;
    let (dims, written) = (buffer.shape.len(), region.written);
    if written < dims {
        let message = format!(
            "{} has {} but {} {} given",
            buffer.name,
            plural(dims, "dimension"),
            plural(written, "index"),
            if written == 1 { "was" } else { "were" },
        );
        return Err(Box::new(declared(Diagnostic::new(span, message), buffer)));
    }
    let mut indices = Vec::with_capacity(region.ranges.len());
    for (dim, (min, extent)) in region.ranges.iter().enumerate() {
        let stop = linear::sum(min, extent, span)?;
        check_slice(buffer, dim, (min, &stop), false, region.never_runs, span)?;
        let one = Expr::constant(min.dtype, 1).at(span);
        indices.push(match extent.as_int() {
            Some(1) => min.clone(),
            _ => ramp(buffer, min.clone(), &stop, one, span)?,
        });
    }
    let lanes = indices
        .iter()
        .fold(1u64, |n, i| n.saturating_mul(u64::from(i.dtype.lanes)));
    if lanes.saturating_mul(u64::from(buffer.dtype.lanes)) > MAX_LANES {
        return error(
            span,
            format!("a value of more than {MAX_LANES} lanes of {}", buffer.name),
        );
    }
    if let Err(e) = check_vector(buffer, &indices, span) {
        let given = region.ranges.len();
        return Err(Box::new(e.help(format!(
            "{} has {}",
            buffer.name,
            plural(given, "dimension")
        ))));
    }
    Ok(Expr::load(buffer, indices).at(span))
}

/// `buffer[index] = value`.
pub(super) fn store(
    interp: &mut Interpreter,
    buffer: &Buffer,
    index: &Value,
    value: &Value,
    predicate: Option<Expr>,
    span: Span,
) -> Result<()> {
    let stmt = store_stmt(interp, buffer, index, value, predicate, span)?;
    interp.emit(stmt)
}

pub(super) fn store_stmt(
    interp: &Interpreter,
    buffer: &Buffer,
    index: &Value,
    value: &Value,
    predicate: Option<Expr>,
    span: Span,
) -> Result<Stmt> {
    let parsed = parse(buffer, index, Places::from_interpreter(interp), span)?;
    if parsed.len() < buffer.shape.len() {
        let (dims, given) = (buffer.shape.len(), parsed.len());
        let message = format!(
            "{} has {} but {} {} given",
            buffer.name,
            plural(dims, "dimension"),
            plural(given, "index"),
            if given == 1 { "was" } else { "were" },
        );
        return Err(Box::new(declared(Diagnostic::new(span, message), buffer)));
    }
    let indices = indices(buffer, parsed, span)?;
    let lanes: u32 =
        indices.iter().map(|i| i.dtype.lanes as u32).product::<u32>() * buffer.dtype.lanes as u32;
    let place = buffer.dtype.with_lanes(lanes.min(u16::MAX as u32) as u16);
    let value = stored(value, place, &buffer.name, span)?;
    Ok(Stmt::new(
        StmtKind::BufferStore(BufferStore {
            buffer: buffer.clone(),
            indices,
            value,
            predicate,
        }),
        span,
    ))
}

/// A value converted for a store to an element of dtype `place`: cast, but never broadcast.
pub(super) fn stored(value: &Value, place: DType, name: &str, span: Span) -> Result<Expr> {
    let Some(operand) = convert::operand(value, span) else {
        let message = format!("cannot store {} in {name}", convert::describe(value));
        let diagnostic = Diagnostic::new(span, message);
        return Err(Box::new(match value {
            Value::Buffer(b) => diagnostic.help(format!("read an element: {}[…]", b.name)),
            Value::None => diagnostic.help(
                "the call has no value: a tile primitive stores its result itself, and functions of T compute single values, \
                 such as T.max(a, b)",
            ),
            _ => diagnostic,
        }));
    };
    let operand = operand?;
    let dtype = operand.dtype();
    if dtype.is_void() {
        let diagnostic = Diagnostic::new(span, format!("cannot store in {name}: this call has no value"));
        let help = "give T.cuda.func_call the dtype of its result: return_type=\"float32\"";
        return Err(Box::new(diagnostic.help(help)));
    }
    if dtype.lanes != place.lanes {
        let message = format!("cannot store {dtype} in {name}: the place has {place}");
        let diagnostic = Diagnostic::new(span, message);
        return Err(Box::new(if dtype.is_scalar() {
            diagnostic.help(format!("fill all lanes: T.broadcast(x, {})", place.lanes))
        } else {
            diagnostic.label("the number of lanes differs")
        }));
    }
    if place.is_handle() || dtype.is_handle() {
        if place.is_handle() && dtype.is_handle() {
            return typing::literal(operand, span);
        }
        return error(
            span,
            format!("cannot store {dtype} in {name}: the place has {place}"),
        );
    }
    typing::cast(operand, place, span)
}
