//! Regions of buffers as values: their ranges, and parts of them.

use std::any::Any;
use std::rc::Rc;

use super::super::eval::{Interpreter, Object, Region, Value};
use super::{access, layouts, linear};
use crate::diagnostic::{Result, error};
use crate::ir::Expr;
use crate::source::Span;

/// `region.region[i]`: the begin and the length of a dimension.
struct Range {
    min: Expr,
    extent: Expr,
}

impl Object for Range {
    fn type_name(&self) -> &str {
        "range of a region"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        Ok(match name {
            "min" => Some(layouts::number(&self.min)),
            "extent" => Some(layouts::number(&self.extent)),
            "end" => Some(layouts::number(&linear::sum(&self.min, &self.extent, span)?)),
            _ => None,
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `region.name`.
pub(super) fn attribute(region: &Region, name: &str) -> Option<Value> {
    match name {
        "buffer" => Some(Value::Buffer(region.buffer.clone())),
        "region" => {
            let range = |(min, extent): &(Expr, Expr)| {
                let (min, extent) = (min.clone(), extent.clone());
                Value::Object(Rc::new(Range { min, extent }))
            };
            Some(Value::list(region.ranges.iter().map(range).collect()))
        }
        "dtype" => Some(Value::DType(region.buffer.dtype)),
        "shape" => Some(Value::tuple(
            region.ranges.iter().map(|(_, e)| layouts::number(e)).collect(),
        )),
        _ => None,
    }
}

/// `region[…]`: a part relative to its first element; a dimension that is not given is whole.
pub(super) fn part(region: &Region, index: &Value, span: Span) -> Result<Value> {
    let items = index.as_items().unwrap_or_else(|| vec![index.clone()]);
    if items.len() > region.ranges.len() {
        let message = format!(
            "a region of {} dimensions has no {} indices",
            region.ranges.len(),
            items.len()
        );
        return error(span, message);
    }
    let mut ranges = region.ranges.clone();
    for (dim, item) in items.iter().enumerate() {
        let (min, extent) = &region.ranges[dim];
        let at = |value: &Value| access::one_index(&region.buffer, dim, value, span);
        let bound = |value: &Value, default: Expr| match value {
            Value::None => Ok(default),
            value => at(value),
        };
        let (start, extent) = match item {
            Value::Slice(slice) => {
                let step = bound(&slice.step, Expr::constant(min.dtype, 1))?;
                if !step.is_int(1) {
                    return error(span, "a region of a region has no step");
                }
                let start = bound(&slice.start, Expr::constant(min.dtype, 0))?;
                let stop = bound(&slice.stop, extent.clone())?;
                let extent = linear::difference(&stop, &start, span)?;
                (start, extent)
            }
            item => {
                let start = at(item)?;
                let one = Expr::constant(start.dtype, 1).at(span);
                (start, one)
            }
        };
        ranges[dim] = (linear::sum(min, &start, span)?, extent);
    }
    Ok(Value::Region(Rc::new(Region {
        buffer: region.buffer.clone(),
        ranges,
        written: region.written.max(items.len()),
        never_runs: region.never_runs,
    })))
}
