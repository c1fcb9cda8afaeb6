//! Buffer descriptions as text: shapes, layouts, and the shortest form that declares each.

use super::Printer;
use super::expr::constructor;
use crate::ir::{AttrValue, Buffer, DEFAULT_ALIGN, DType, Expr, ExprKind, Var, Visitor};
use crate::layout::{Iter, Layout, Swizzle};
use std::sync::Arc;

/// The position of a description in the text, which decides what may be left out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum DescriptionPosition {
    /// A parameter: new variables of the shape are written as strings.
    Signature,
    /// The match of a parameter ahead of the body: new variables are declared before it.
    Match,
    /// The body.
    Body,
}

/// Further arguments besides the description.
#[derive(Default)]
struct Extra<'a> {
    data: Option<&'a str>,
    scope: Option<&'a str>,
    annotations: &'a [(Arc<str>, AttrValue)],
}

impl Printer {
    /// `T.Buffer(...)`. New shape variables are named; their definitions are appended to `definitions`.
    pub(super) fn buffer_type(
        &mut self,
        name: &str,
        buffer: &Buffer,
        place: DescriptionPosition,
        definitions: &mut Vec<String>,
    ) -> String {
        let scope = Some(buffer.scope()).filter(|s| *s != "global");
        let extra = Extra {
            scope,
            ..Extra::default()
        };
        let args = self.description(Some(name), buffer, place, &extra, definitions);
        format!("T.Buffer({args})")
    }

    /// `T.match_buffer(param, ...)`, for a parameter that the body uses as a pointer too.
    pub(super) fn buffer_match(
        &mut self,
        param: &str,
        buffer: &Buffer,
        definitions: &mut Vec<String>,
    ) -> String {
        let scope = Some(buffer.scope()).filter(|s| *s != "global");
        let extra = Extra {
            scope,
            ..Extra::default()
        };
        let args = self.description(None, buffer, DescriptionPosition::Match, &extra, definitions);
        format!("T.match_buffer({param}, {args})")
    }

    /// The right-hand side of an allocation.
    pub(super) fn allocation(&mut self, buffer: &Buffer, annotations: &[(Arc<str>, AttrValue)]) -> String {
        let (function, scope) = match buffer.scope() {
            // A buffer at a given address is declared, not allocated.
            scope if !buffer.allocated_addr.is_empty() => ("decl_buffer", Some(scope)),
            "local" => ("alloc_local", None),
            "shared" => ("alloc_shared", None),
            "global" => ("alloc_buffer", None),
            other => ("alloc_buffer", Some(other)),
        };
        let extra = Extra {
            scope,
            annotations,
            ..Extra::default()
        };
        let args = self.description(None, buffer, DescriptionPosition::Body, &extra, &mut Vec::new());
        format!("T.{function}({args})")
    }

    /// The right-hand side of a declaration: a method of the buffer it is derived from, where that describes it
    /// completely.
    pub(super) fn declaration(&mut self, buffer: &Buffer) -> String {
        if let Some(parent) = self.names.parent(&buffer.data).cloned()
            && let Some(text) = self.derivation(&parent, buffer)
        {
            return text;
        }
        let data = self
            .names
            .knows(&buffer.data)
            .then(|| self.var_text(&buffer.data));
        let scope = Some(buffer.scope()).filter(|s| *s != "global");
        let extra = Extra {
            data: data.as_deref(),
            scope,
            ..Extra::default()
        };
        let args = self.description(None, buffer, DescriptionPosition::Body, &extra, &mut Vec::new());
        format!("T.decl_buffer({args})")
    }

    /// `A.view(...)` or `A.permute(...)`, if `child` differs from `parent` in shape and layout alone.
    fn derivation(&mut self, parent: &Buffer, child: &Buffer) -> Option<String> {
        let zero = |b: &Buffer| b.elem_offset.clone().filter(|e| !e.is_int(0));
        let same = parent.dtype == child.dtype
            && parent.shape != child.shape
            && parent.strides.is_empty()
            && child.strides.is_empty()
            && zero(parent) == zero(child)
            && parent.align == child.align
            && parent.offset_factor == child.offset_factor
            && parent.allocated_addr.is_empty()
            && child.allocated_addr.is_empty()
            && !child.shape.is_empty()
            && match (parent.const_size(), child.const_size()) {
                (Some(a), Some(b)) => a == b || (parent.layout.is_none() && b < a),
                _ => true,
            };
        if !same {
            return None;
        }
        let (name, scalar) = self.buffer_text(parent);
        if scalar {
            return None;
        }
        let default = |b: &Buffer| b.layout.as_ref().is_some_and(|l| l.is_row_major(&b.shape));
        let plain = match (&parent.layout, &child.layout) {
            (None, None) => true,
            (Some(_), Some(_)) if default(parent) => default(child),
            (Some(a), Some(b)) => a == b,
            _ => return None,
        };
        if !plain && let Some(order) = permutation(parent, child) {
            let order: Vec<String> = order.iter().map(usize::to_string).collect();
            return Some(format!("{name}.permute({})", order.join(", ")));
        }
        let mut out = format!("{name}.view(");
        self.list(&mut out, &child.shape.iter().collect::<Vec<_>>());
        if let (false, Some(layout)) = (plain, &child.layout) {
            out.push_str(", layout=");
            self.layout(&mut out, layout);
        }
        out.push(')');
        Some(out)
    }

    fn description(
        &mut self,
        name: Option<&str>,
        buffer: &Buffer,
        place: DescriptionPosition,
        extra: &Extra<'_>,
        definitions: &mut Vec<String>,
    ) -> String {
        let signature = place != DescriptionPosition::Body;
        let mut new_vars: Vec<Var> = Vec::new();
        let mut out = String::new();
        let shape: Vec<String> = buffer
            .shape
            .iter()
            .map(|e| {
                if signature {
                    self.signature_expr(e, place, &mut new_vars)
                } else {
                    self.expr_text(e)
                }
            })
            .collect();
        tuple(&mut out, &shape);
        if signature || buffer.dtype != DType::FLOAT32 {
            out.push_str(&format!(", \"{}\"", buffer.dtype));
        }
        if let Some(data) = extra.data {
            out.push_str(&format!(", data={data}"));
        }
        if !buffer.strides.is_empty() {
            let mut strides = Vec::new();
            for (i, stride) in buffer.strides.iter().enumerate() {
                let text = match (name, stride.as_var()) {
                    (Some(name), Some(var)) if signature && !self.names.knows(var) => {
                        self.names
                            .define_var_as(var, format!("{name}.strides[{i}]").into());
                        format!("\"{}\"", var.name())
                    }
                    _ if signature => self.signature_expr(stride, place, &mut new_vars),
                    _ => self.expr_text(stride),
                };
                strides.push(text);
            }
            out.push_str(", strides=");
            tuple(&mut out, &strides);
        }
        let mut implicit_offset = false;
        match (&buffer.elem_offset, name) {
            (Some(offset), Some(name))
                if signature && offset.as_var().is_some_and(|v| !self.names.knows(v)) =>
            {
                if let Some(var) = offset.as_var() {
                    self.names
                        .define_var_as(var, format!("{name}.elem_offset").into());
                }
                implicit_offset = true;
            }
            (Some(offset), _) if !offset.is_int(0) => {
                let text = if signature {
                    self.signature_expr(offset, place, &mut new_vars)
                } else {
                    self.expr_text(offset)
                };
                out.push_str(&format!(", elem_offset={text}"));
            }
            // `offset_factor` alone would declare a variable offset.
            _ if signature && buffer.offset_factor != 1 => out.push_str(", elem_offset=0"),
            _ => {}
        }
        if let Some(scope) = extra.scope {
            out.push_str(&format!(", scope=\"{scope}\""));
        }
        if buffer.align != DEFAULT_ALIGN {
            out.push_str(&format!(", align={}", buffer.align));
        }
        if buffer.offset_factor != 1 || implicit_offset {
            out.push_str(&format!(", offset_factor={}", buffer.offset_factor));
        }
        match &buffer.layout {
            None => out.push_str(", layout=None"),
            Some(layout) if layout.is_row_major(&buffer.shape) => {}
            Some(layout) => {
                out.push_str(", layout=");
                self.layout(&mut out, layout);
            }
        }
        match buffer.allocated_addr.as_slice() {
            [] => {}
            [one] => {
                out.push_str(", allocated_addr=");
                self.expr(&mut out, one);
            }
            many => {
                out.push_str(", allocated_addr=[");
                self.list(&mut out, &many.iter().collect::<Vec<_>>());
                out.push(']');
            }
        }
        if !extra.annotations.is_empty() {
            out.push_str(", annotations=");
            self.attr_dict(&mut out, extra.annotations.iter().map(|(k, v)| (&**k, v)));
        }
        if !new_vars.is_empty() {
            let names: Vec<String> = new_vars.iter().map(|v| self.var_text(v).to_string()).collect();
            let types: Vec<String> = new_vars.iter().map(constructor).collect();
            definitions.push(format!("{} = {}", names.join(", "), types.join(", ")));
        }
        out
    }

    /// Whether a parameter's strides or offset have variables that an annotation cannot declare: there every variable
    /// gets the dtype of the first extent.
    pub(super) fn declares_its_own(&self, buffer: &Buffer) -> bool {
        let index = buffer.shape.first().map_or(DType::INT32, |e| e.dtype);
        let mut shape = Unknown(self, Vec::new());
        buffer.shape.iter().for_each(|e| shape.visit_expr(e));
        buffer.strides.iter().chain(&buffer.elem_offset).any(|e| {
            let mut own = Unknown(self, Vec::new());
            own.visit_expr(e);
            let mut own = own.1.iter().filter(|v| !shape.1.contains(v));
            own.any(|_| e.dtype != index || e.as_var().is_none())
        })
    }

    /// An expression of a signature. One with variables that are not defined yet becomes a string.
    fn signature_expr(&mut self, e: &Expr, place: DescriptionPosition, new_vars: &mut Vec<Var>) -> String {
        let mut free = Unknown(self, Vec::new());
        free.visit_expr(e);
        let free = free.1;
        let quoted = !free.is_empty() && place == DescriptionPosition::Signature;
        for var in &free {
            self.names.define_var(var);
            if !self.params.contains(var) {
                new_vars.push(var.clone());
            }
        }
        let text = self.expr_text(e);
        if quoted {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        } else {
            text
        }
    }

    /// `T.TileLayout(T.S[(32, 8):(1 @ Axis.laneid, 1)] + T.R[4:1 @ Axis.warpid] + 3)`.
    pub(super) fn layout(&mut self, out: &mut String, layout: &Layout) {
        if let Layout::Compose(swizzle, tile) = layout {
            let Swizzle {
                per_element,
                swizzle_len,
                atom_len,
                inner,
            } = swizzle;
            out.push_str(&format!(
                "T.ComposeLayout({per_element}, {swizzle_len}, {atom_len}, "
            ));
            self.layout(out, &Layout::Tile(tile.clone()));
            out.push_str(if *inner { ")" } else { ", swizzle_inner=False)" });
            return;
        }
        let tile = layout.tile();
        out.push_str("T.TileLayout(T.S");
        self.iters(out, &tile.shard);
        if !tile.replica.is_empty() {
            out.push_str(" + T.R");
            self.iters(out, &tile.replica);
        }
        if !tile.offset.is_empty() {
            out.push_str(" + ");
            let many = tile.offset.len() > 1;
            if many {
                out.push('(');
            }
            for (i, (axis, value)) in tile.offset.iter().enumerate() {
                if i > 0 {
                    out.push_str(" + ");
                }
                let text = self.on_axis(value, axis.is_memory(), &axis.0);
                out.push_str(&text);
            }
            if many {
                out.push(')');
            }
        }
        out.push(')');
    }

    fn iters(&mut self, out: &mut String, iters: &[Iter]) {
        let extents: Vec<String> = iters.iter().map(|i| self.expr_text(&i.extent)).collect();
        let strides: Vec<String> = iters
            .iter()
            .map(|i| self.on_axis(&i.stride, i.axis.is_memory(), &i.axis.0))
            .collect();
        match (extents.as_slice(), strides.as_slice()) {
            ([extent], [stride]) => out.push_str(&format!("[{extent}:{stride}]")),
            _ => out.push_str(&format!("[({}):({})]", extents.join(", "), strides.join(", "))),
        }
    }

    fn on_axis(&mut self, value: &Expr, memory: bool, axis: &str) -> String {
        let text = self.expr_text(value);
        match (memory, &value.kind) {
            (true, _) => text,
            (false, ExprKind::Binary(..)) => format!("({text}) @ Axis.{axis}"),
            (false, _) => format!("{text} @ Axis.{axis}"),
        }
    }
}

/// A Python tuple.
fn tuple(out: &mut String, items: &[String]) {
    out.push('(');
    out.push_str(&items.join(", "));
    if items.len() == 1 {
        out.push(',');
    }
    out.push(')');
}

/// The order of `parent`'s axes that gives `child`'s shape and layout, where each axis has one iterator.
fn permutation(parent: &Buffer, child: &Buffer) -> Option<Vec<usize>> {
    let (Some(Layout::Tile(from)), Some(Layout::Tile(to))) = (&parent.layout, &child.layout) else {
        return None;
    };
    let axes = parent.shape.len();
    let one_each = |b: &Buffer, shard: &[Iter]| {
        shard.len() == axes && b.shape.len() == axes && b.shape.iter().zip(shard).all(|(e, i)| *e == i.extent)
    };
    if !one_each(parent, &from.shard) || !one_each(child, &to.shard) {
        return None;
    }
    if from.replica != to.replica || from.offset != to.offset {
        return None;
    }
    let mut order = Vec::with_capacity(axes);
    for iter in &to.shard {
        order.push((0..axes).find(|j| !order.contains(j) && from.shard[*j] == *iter)?);
    }
    Some(order)
}

/// Collects the variables that have no name yet.
struct Unknown<'a>(&'a Printer, Vec<Var>);

impl Visitor for Unknown<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Var(v) = &expr.kind
            && !self.0.names.knows(v)
            && !self.1.contains(v)
        {
            self.1.push(v.clone());
        }
        self.walk_expr(expr);
    }
}
