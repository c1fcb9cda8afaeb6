//! Which execution scopes a layout spreads its elements over: `layout.get_scope()`, `axis.get_scope()`, `T.ExecScope`.
//!
//! An axis counts units of one scope within a wider one: `laneid` threads within a warp. The axes of a layout must make
//! one chain, as threads of a warp and warps of a block do.

use std::any::Any;
use std::rc::Rc;

use super::super::eval::{Args, Interpreter, Object, Value, required};
use super::call::{Function, MatchedCall, function};
use crate::diagnostic::{Result, error};
use crate::ir::ExecScope;
use crate::layout::{Axis, Iter, Layout, axes};
use crate::source::Span;

pub(super) static FUNCTIONS: &[Function] = &[function(
    "T.ExecScope",
    const { &[required("name")] },
    |_, call| {
        let name = call.text("name")?;
        match ExecScope::ALL.into_iter().find(|scope| scope.name() == &*name) {
            Some(scope) => Ok(value(scope.name())),
            None => {
                let names = ExecScope::ALL.map(ExecScope::name).join(", ");
                call.fail(format!("unknown scope \"{name}\"; scopes are {names}"))
            }
        }
    },
)];

/// A scope's name: those of [`ExecScope`], and `kernel`, which axes of blocks are counted in.
struct Scope(&'static str);

impl Object for Scope {
    fn type_name(&self) -> &str {
        "execution scope"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok((name == "name").then(|| Value::str(self.0)))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Scope>()
            .is_some_and(|other| other.0 == self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn value(name: &'static str) -> Value {
    Value::Object(Rc::new(Scope(name)))
}

/// What an axis counts, and in what; `None` for memory.
fn scopes(axis: &Axis) -> Option<(&'static str, &'static str)> {
    let (unit, whole) = axes::row(axis)?.levels()?;
    Some((unit.name(), whole.name()))
}

/// `axis.get_scope()` and, with `units`, `axis.get_subscope()`.
pub(super) fn of_axis(axis: &Axis, units: bool) -> Value {
    match scopes(axis) {
        Some((unit, _)) if units => value(unit),
        Some((_, whole)) => value(whole),
        None => Value::None,
    }
}

/// The narrowest and the widest scope that the axes of a layout lead from and to; `None` for memory alone.
fn chain(layout: &Layout) -> Result<Option<(&'static str, &'static str)>, String> {
    let tile = layout.tile();
    let of_iters = |iters: &[Iter]| -> Vec<Axis> { iters.iter().map(|i| i.axis.clone()).collect() };
    let own = of_iters(&tile.shard);
    if !own.iter().any(|axis| scopes(axis).is_some()) {
        return Ok(None);
    }
    let replicas = of_iters(&tile.replica);
    let offsets = tile.offset.iter().map(|(axis, _)| axis.clone());
    let mut steps: Vec<(&str, &str, Axis)> = Vec::new();
    for axis in own.into_iter().chain(replicas).chain(offsets) {
        let Some((unit, whole)) = scopes(&axis) else {
            continue;
        };
        match steps.iter().find(|(known, ..)| *known == unit) {
            Some((_, same, _)) if *same == whole => {}
            Some((_, other, first)) => {
                return Err(format!(
                    "the axes {} and {} count {unit}s, one within the {other} and one within the {whole}",
                    first.0, axis.0
                ));
            }
            None => steps.push((unit, whole, axis)),
        }
    }
    let first = steps
        .iter()
        .find(|(unit, ..)| steps.iter().all(|(_, whole, _)| whole != unit));
    let Some(&(narrowest, mut widest, _)) = first else {
        return Err("the scopes of the axes are parts of each other".to_string());
    };
    let mut count = 1;
    while let Some((_, whole, _)) = steps.iter().find(|(unit, ..)| *unit == widest) {
        widest = whole;
        count += 1;
    }
    if count != steps.len() {
        let names: Vec<&str> = steps.iter().map(|(.., axis)| &*axis.0).collect();
        return Err(format!(
            "the axes {} do not lead from one scope to the next",
            names.join(", ")
        ));
    }
    Ok(Some((narrowest, widest)))
}

/// `layout.get_scope()`: `(thread, warp)` for elements spread over lanes.
pub(super) fn get_scope(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    MatchedCall::new("TileLayout.get_scope", &[], false, args, span)?;
    match chain(layout) {
        Ok(Some((narrowest, widest))) => Ok(Value::tuple(vec![value(narrowest), value(widest)])),
        Ok(None) => Ok(Value::None),
        Err(reason) => error(span, format!("the layout is ill-formed: {reason}")),
    }
}

/// `layout.verify_well_formed()`: true, or an error that says why it is not.
pub(super) fn verify_well_formed(layout: &Layout, args: Args, span: Span) -> Result<Value> {
    MatchedCall::new("TileLayout.verify_well_formed", &[], false, args, span)?;
    match chain(layout) {
        Ok(_) => Ok(Value::Bool(true)),
        Err(reason) => error(span, format!("the layout is ill-formed: {reason}")),
    }
}
