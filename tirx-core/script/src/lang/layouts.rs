//! Layouts in kernel text: `TileLayout(S[(4, 8):(8 @ laneid, 1)] + R[2:4 @ warpid] + 1 @ laneid)`.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use tirx_python::Operator;

use super::super::eval::{Args, Interpreter, Object, Param, Value, optional, required};
use super::super::typing::{self, Arithmetic};
use super::call::{Function, MatchedCall, function, variadic};
use super::convert;
use super::layout_scopes;
use crate::diagnostic::{Result, error};
use crate::ir::{DType, Expr};
use crate::layout::{Axis, Iter, Layout, Swizzle, TileLayout, axes};
use crate::source::Span;

/// The names of all axes, for messages.
fn axis_names() -> String {
    axes::names().collect::<Vec<_>>().join(", ")
}

const ITER: &[Param] = &[required("extent"), required("stride"), required("axis")];
const FROM_ITERS: &[Param] = &[optional("shard"), optional("replica"), optional("offset")];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.Iter", ITER, iter),
    function("layout.Axis.get", const { &[required("name")] }, |_, c| {
        let name = c.text("name")?;
        match axis(&name) {
            Some(value) => Ok(value),
            None => c.fail(format!("unknown axis \"{name}\"; axes are {}", axis_names())),
        }
    }),
    function("T.TileLayout.from_iters", FROM_ITERS, from_iters),
    variadic("T.ComposeLayout", COMPOSE, compose),
    function("T.SwizzleLayout", SWIZZLE, |_, c| {
        Ok(Value::Object(Rc::new(SwizzleValue(swizzle(c)?))))
    }),
];

const COMPOSE: &[Param] = &[
    required("per_element"),
    required("swizzle_len"),
    optional("atom_len"),
    optional("tile_layout"),
    optional("swizzle_inner"),
];
const SWIZZLE: &[Param] = &[
    required("per_element"),
    required("swizzle_len"),
    required("atom_len"),
    optional("swizzle_inner"),
];

/// `SwizzleLayout(per_element, swizzle_len, atom_len)`.
struct SwizzleValue(Swizzle);

impl Object for SwizzleValue {
    fn type_name(&self) -> &str {
        "swizzle"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn swizzle(call: &MatchedCall) -> Result<Swizzle> {
    let bits = |name: &str| -> Result<u32> {
        match call.int(name)? {
            bits @ 0..=20 => Ok(bits as u32),
            other => call.fail(format!("{name} is a number of bits, 0 to 20, found {other}")),
        }
    };
    let swizzle = Swizzle {
        per_element: bits("per_element")?,
        swizzle_len: bits("swizzle_len")?,
        atom_len: bits("atom_len")?,
        inner: call.flag("swizzle_inner", true)?,
    };
    if swizzle.atom_len < swizzle.swizzle_len {
        return call.fail(format!(
            "atom_len {} is less than swizzle_len {}: the two groups of bits would overlap",
            swizzle.atom_len, swizzle.swizzle_len
        ));
    }
    Ok(swizzle)
}

/// `ComposeLayout(per_element, swizzle_len, atom_len, tile_layout)`, or of a swizzle and a tile layout.
fn compose(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    const EXPECTED: &str = "a TileLayout";
    let (swizzle, tile) = match call.get("per_element") {
        Some((Value::Object(o), _)) if o.as_any().is::<SwizzleValue>() => {
            let swizzle = o.as_any().downcast_ref::<SwizzleValue>().map(|s| s.0);
            (swizzle, "swizzle_len")
        }
        _ => (Some(swizzle(call)?), "tile_layout"),
    };
    let (value, at) = call.need(tile, EXPECTED)?;
    let layout = match value {
        Value::Layout(layout) => Some(layout.clone()),
        value => from_spec(value, at)?,
    };
    match (swizzle, layout) {
        (Some(swizzle), Some(Layout::Tile(tile))) => Ok(Value::Layout(Layout::Compose(swizzle, tile))),
        _ => call.expected(tile, EXPECTED),
    }
}

/// The axis of this name.
pub(super) fn axis(name: &str) -> Option<Value> {
    axes::named(name)
        .is_some()
        .then(|| Value::Object(Rc::new(AxisValue(Axis(name.into())))))
}

/// `S`, `R`, `TileLayout`.
pub(super) fn builder(name: &str) -> Option<Value> {
    Some(Value::Object(match name {
        "S" => Rc::new(SpecBuilder { replica: false }),
        "R" => Rc::new(SpecBuilder { replica: true }),
        "TileLayout" => Rc::new(TileLayoutClass),
        _ => return None,
    }))
}

/// `laneid`.
pub(super) struct AxisValue(pub(super) Axis);

impl Object for AxisValue {
    fn type_name(&self) -> &str {
        "layout axis"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, _span: Span) -> Result<Option<Value>> {
        let hardware = axes::is_hardware(&self.0);
        Ok(match name {
            "name" => Some(Value::str(&*self.0.0)),
            "is_thread" => Some(Value::builtin("Axis.is_thread", move |_, _, _| {
                Ok(Value::Bool(hardware))
            })),
            "get_scope" | "get_subscope" => {
                let (axis, units) = (self.0.clone(), name == "get_subscope");
                Some(Value::builtin(format!("Axis.{name}"), move |_, _, _| {
                    Ok(layout_scopes::of_axis(&axis, units))
                }))
            }
            "is_memory" => Some(Value::builtin("Axis.is_memory", move |_, _, _| {
                Ok(Value::Bool(!hardware))
            })),
            _ => None,
        })
    }

    fn binary(
        &self,
        _interp: &mut Interpreter,
        op: Operator,
        other: &Value,
        reflected: bool,
        span: Span,
    ) -> Result<Option<Value>> {
        if op != Operator::MatMult || !reflected {
            return Ok(None);
        }
        let value = integer(other, span)?;
        Ok(Some(Value::Object(Rc::new(Offset(vec![(
            self.0.clone(),
            value,
        )])))))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<AxisValue>()
            .is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `4 @ laneid`, and sums of such.
struct Offset(Vec<(Axis, Expr)>);

impl Object for Offset {
    fn type_name(&self) -> &str {
        "layout offset"
    }

    fn binary(
        &self,
        _interp: &mut Interpreter,
        op: Operator,
        other: &Value,
        reflected: bool,
        span: Span,
    ) -> Result<Option<Value>> {
        if op != Operator::Add {
            return Ok(None);
        }
        // A layout specification handles its own addition.
        let Some(other) = offset(other, span)? else {
            return Ok(None);
        };
        let sum = if reflected {
            merge(&other, &self.0, span)?
        } else {
            merge(&self.0, &other, span)?
        };
        Ok(Some(Value::Object(Rc::new(Offset(sum)))))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `S[…] + R[…] + offset`.
#[derive(Clone, Default)]
struct Spec {
    shard: Vec<Iter>,
    replica: Vec<Iter>,
    offset: Vec<(Axis, Expr)>,
}

impl Object for Spec {
    fn type_name(&self) -> &str {
        "layout specification"
    }

    fn binary(
        &self,
        _interp: &mut Interpreter,
        op: Operator,
        other: &Value,
        reflected: bool,
        span: Span,
    ) -> Result<Option<Value>> {
        if op != Operator::Add {
            return Ok(None);
        }
        let mut sum = self.clone();
        if let Value::Object(o) = other
            && let Some(spec) = o.as_any().downcast_ref::<Spec>()
        {
            let (first, second) = if reflected { (spec, self) } else { (self, spec) };
            sum.shard = if first.shard.is_empty() {
                second.shard.clone()
            } else {
                first.shard.clone()
            };
            sum.replica = if second.replica.is_empty() {
                first.replica.clone()
            } else {
                second.replica.clone()
            };
            sum.offset = merge(&first.offset, &second.offset, span)?;
        } else if let Some(offset) = offset(other, span)? {
            sum.offset = if reflected {
                merge(&offset, &self.offset, span)?
            } else {
                merge(&self.offset, &offset, span)?
            };
        } else {
            return Ok(None);
        }
        Ok(Some(Value::Object(Rc::new(sum))))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An offset: on axes, or a plain number on the memory axis.
fn offset(value: &Value, span: Span) -> Result<Option<Vec<(Axis, Expr)>>> {
    if let Value::Object(o) = value
        && let Some(offset) = o.as_any().downcast_ref::<Offset>()
    {
        return Ok(Some(offset.0.clone()));
    }
    match convert::operand(value, span) {
        Some(Ok(operand)) if operand.dtype().is_integer() => {
            Ok(Some(vec![(Axis::memory(), typing::literal(operand, span)?)]))
        }
        Some(Err(e)) => Err(e),
        _ => Ok(None),
    }
}

fn merge(a: &[(Axis, Expr)], b: &[(Axis, Expr)], span: Span) -> Result<Vec<(Axis, Expr)>> {
    let mut sum = a.to_vec();
    for (axis, value) in b {
        match sum.iter_mut().find(|(other, _)| other == axis) {
            Some((_, total)) => *total = plus(total, value, span)?,
            None => sum.push((axis.clone(), value.clone())),
        }
    }
    Ok(sum)
}

fn plus(a: &Expr, b: &Expr, span: Span) -> Result<Expr> {
    typing::binary(Arithmetic::Add, a.clone().into(), b.clone().into(), span)
}

pub(super) fn integer(value: &Value, span: Span) -> Result<Expr> {
    match convert::operand(value, span) {
        Some(operand) => match operand? {
            operand if operand.dtype().is_integer() => typing::literal(operand, span),
            operand => error(
                span,
                format!("a layout needs integers, found {}", operand.dtype()),
            ),
        },
        None => error(
            span,
            format!("a layout needs integers, found {}", convert::describe(value)),
        ),
    }
}

/// `S` and `R`.
struct SpecBuilder {
    replica: bool,
}

impl Object for SpecBuilder {
    fn type_name(&self) -> &str {
        "layout specification"
    }

    fn subscript(&self, _interp: &mut Interpreter, index: &Value, span: Span) -> Result<Value> {
        let items = |v: &Value| v.as_items().unwrap_or_else(|| vec![v.clone()]);
        let (extents, strides) = match index {
            Value::Slice(slice) => {
                if !matches!(slice.step, Value::None) {
                    return error(span, "a layout is written extents : strides");
                }
                (items(&slice.start), Some(items(&slice.stop)))
            }
            other => (items(other), None),
        };
        let extents = extents
            .iter()
            .map(|e| integer(e, span))
            .collect::<Result<Vec<_>>>()?;
        if let Some(bad) = extents.iter().filter_map(Expr::as_int).find(|v| *v < 1) {
            return error(span, format!("extents of a layout must be positive, found {bad}"));
        }
        let iters = match strides {
            None => Layout::row_major(&extents).tile().shard.clone(),
            Some(strides) if strides.len() != extents.len() => {
                let message = format!("{} strides for {} extents", strides.len(), extents.len());
                return error(span, message);
            }
            Some(strides) => extents
                .into_iter()
                .zip(&strides)
                .map(|(extent, stride)| {
                    let (axis, stride) = on_axis(stride, span)?;
                    Ok(Iter { extent, stride, axis })
                })
                .collect::<Result<Vec<_>>>()?,
        };
        let mut spec = Spec::default();
        if self.replica {
            spec.replica = iters;
        } else {
            spec.shard = iters;
        }
        Ok(Value::Object(Rc::new(spec)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A stride with its axis: `8`, `8 @ laneid`, `"laneid"`, `(8, laneid)`.
fn on_axis(value: &Value, span: Span) -> Result<(Axis, Expr)> {
    let named = |value: &Value| -> Option<Axis> {
        match value {
            Value::Str(name) => axes::named(name).map(|_| Axis((&**name).into())),
            Value::Object(o) => o.as_any().downcast_ref::<AxisValue>().map(|a| a.0.clone()),
            _ => None,
        }
    };
    if let Value::Object(o) = value
        && let Some(Offset(terms)) = o.as_any().downcast_ref::<Offset>()
        && let [(axis, stride)] = &terms[..]
    {
        return Ok((axis.clone(), stride.clone()));
    }
    if let Some(axis) = named(value) {
        return Ok((axis, Expr::int32(1).at(span)));
    }
    if let Some([stride, axis]) = value.as_items().as_deref()
        && let Some(axis) = named(axis)
    {
        return Ok((axis, integer(stride, span)?));
    }
    match value {
        Value::Str(name) => error(
            span,
            format!("unknown axis \"{name}\"; axes are {}", axis_names()),
        ),
        value => Ok((Axis::memory(), integer(value, span)?)),
    }
}

/// A specification as a layout.
pub(super) fn from_spec(value: &Value, _span: Span) -> Result<Option<Layout>> {
    let Value::Object(o) = value else { return Ok(None) };
    Ok(o.as_any().downcast_ref::<Spec>().map(|spec| {
        Layout::Tile(Arc::new(TileLayout {
            shard: spec.shard.clone(),
            replica: spec.replica.clone(),
            offset: spec.offset.clone(),
        }))
    }))
}

/// `TileLayout`: called, it makes a layout of a specification.
struct TileLayoutClass;

impl Object for TileLayoutClass {
    fn type_name(&self) -> &str {
        "class TileLayout"
    }

    fn call(&self, _interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
        let call = MatchedCall::new("T.TileLayout", const { &[required("spec")] }, false, args, span)?;
        let (value, at) = call.need("spec", "a specification such as S[(4, 8):(8, 1)]")?;
        match value {
            Value::Layout(_) => Ok(value.clone()),
            value => match from_spec(value, at)? {
                Some(layout) => Ok(Value::Layout(layout)),
                None => call.expected("spec", "a specification such as S[(4, 8):(8, 1)]"),
            },
        }
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        match name {
            "from_iters" => Ok(super::namespace::lookup("T.TileLayout.from_iters")),
            "trainium" => error(
                span,
                "layouts of Trainium are not supported: this compiler targets CUDA",
            ),
            _ => Ok(None),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `T.Iter(extent, stride, axis)`.
pub(super) struct IterValue(pub(super) Iter);

impl Object for IterValue {
    fn type_name(&self) -> &str {
        "layout iterator"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, _span: Span) -> Result<Option<Value>> {
        Ok(match name {
            "extent" => Some(number(&self.0.extent)),
            "stride" => Some(number(&self.0.stride)),
            "axis" => Some(Value::Object(Rc::new(AxisValue(self.0.axis.clone())))),
            _ => None,
        })
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<IterValue>()
            .is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An integer expression: a plain int where it is an `int32` constant.
pub(super) fn number(e: &Expr) -> Value {
    match e.as_int() {
        Some(v) if e.dtype == DType::INT32 => Value::Int(v),
        _ => Value::Expr(e.clone()),
    }
}

fn iter(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (axis, _) = call.need("axis", "an axis")?;
    let (axis, _) = on_axis(axis, call.span)?;
    let iter = Iter {
        extent: call.expr("extent")?,
        stride: call.expr("stride")?,
        axis,
    };
    Ok(Value::Object(Rc::new(IterValue(iter))))
}

fn from_iters(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let iters = |name: &str| -> Result<Vec<Iter>> {
        if call.get(name).is_none() {
            return Ok(Vec::new());
        }
        let items = call.items(name, "a list of iterators")?;
        let of = |v: &Value| match v {
            Value::Object(o) => o.as_any().downcast_ref::<IterValue>().map(|i| i.0.clone()),
            _ => None,
        };
        match items.iter().map(of).collect::<Option<Vec<_>>>() {
            Some(iters) => Ok(iters),
            None => call.expected(name, "a list of iterators"),
        }
    };
    let (shard, replica) = (iters("shard")?, iters("replica")?);
    let mut offset = Vec::new();
    if let Some((value, span)) = call.get("offset") {
        let Value::Dict(dict) = value else {
            return call.expected("offset", "a dictionary from axes to integers");
        };
        for (axis, value) in dict.borrow().iter() {
            offset.push((on_axis(axis, span)?.0, integer(value, span)?));
        }
    }
    Ok(Value::Layout(Layout::Tile(Arc::new(TileLayout {
        shard,
        replica,
        offset,
    }))))
}

/// The axis that a value is or names.
pub(super) fn axis_of(value: &Value) -> Option<Axis> {
    if let Value::Object(o) = value {
        return o.as_any().downcast_ref::<AxisValue>().map(|a| a.0.clone());
    }
    let name = value.as_str()?;
    axes::named(name).map(|_| Axis(name.into()))
}
