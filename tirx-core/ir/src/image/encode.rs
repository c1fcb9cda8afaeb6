//! IR to bytes.

mod stmt;

use crate::ir::abi::keys;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::variants::{BINARY, CODES, ITERS, LOOPS, number};
use super::{MAGIC, VERSION};
use crate::ir::{
    Assert, Attr, AttrNode, AttrValue, Buffer, BufferStore, DType, Expr, ExprKind, ForLoop, IRModule,
    IterVar, Levels, PrimFunc, ScopeIdDef, ScopeIdKind, Stmt, StmtKind, TileArg, TileCall, Type, Var, View,
    with_stack_for,
};
use crate::layout::{Iter, Swizzle};
use crate::source::{FileId, SourceMap, Span};

/// A module as bytes. See the [module](super) for the format.
pub fn encode(module: &IRModule) -> Vec<u8> {
    with_stack_for(module.levels(), || {
        let mut encoder = Encoder::new(false);
        encoder.sources = module.sources.clone();
        encoder.module(module);
        encoder.finish()
    })
}

/// Bytes under construction. Also the input of structural hashes.
pub struct Encoder {
    body: Vec<u8>,
    /// For hashing: no names, no spans, attributes in normal form.
    structural: bool,
    sources: SourceMap,
    strings: FxHashMap<Arc<str>, u64>,
    string_list: Vec<Arc<str>>,
    dtypes: FxHashMap<DType, u64>,
    dtype_list: Vec<DType>,
    spans: FxHashMap<Span, u64>,
    places: FxHashMap<StoredSpan, u64>,
    span_list: Vec<StoredSpan>,
    /// The number of the last span in the body.
    last_span: u64,
    vars: FxHashMap<Var, u64>,
    buffers: FxHashMap<Buffer, u64>,
}

/// A span as it is stored: file, line, first column and length in bytes, all from 0; the number of the span that calls it, from 1,
/// which is smaller than its own, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StoredSpan {
    file: FileId,
    line: u32,
    column: u32,
    length: u32,
    call: u64,
}

/// Numbers near 0 of both signs as small numbers.
fn zigzag(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

impl Encoder {
    fn new(structural: bool) -> Encoder {
        Encoder {
            body: Vec::new(),
            structural,
            sources: SourceMap::new(),
            strings: FxHashMap::default(),
            string_list: Vec::new(),
            dtypes: FxHashMap::default(),
            dtype_list: Vec::new(),
            spans: FxHashMap::default(),
            places: FxHashMap::default(),
            span_list: Vec::new(),
            last_span: 0,
            vars: FxHashMap::default(),
            buffers: FxHashMap::default(),
        }
    }

    pub(crate) fn structural() -> Encoder {
        Encoder::new(true)
    }

    /// The encoded body, without tables: strings and dtypes are in place.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.body
    }

    fn finish(mut self) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        // Lines by file, each once, in order.
        let mut lines: BTreeMap<FileId, BTreeMap<u32, Arc<str>>> = BTreeMap::new();
        let mut texts: FxHashMap<FileId, Vec<&str>> = FxHashMap::default();
        for place in &self.span_list {
            let split = || {
                self.sources
                    .file(place.file)
                    .map_or(vec![], |f| f.text.split('\n').collect())
            };
            let text = texts
                .entry(place.file)
                .or_insert_with(split)
                .get(place.line as usize)
                .copied()
                .unwrap_or("");
            let text = text.trim_end_matches('\r');
            lines
                .entry(place.file)
                .or_default()
                .entry(place.line)
                .or_insert_with(|| text.into());
        }
        let names: Vec<Arc<str>> = lines
            .keys()
            .map(|f| self.sources.file(*f).map_or("", |f| f.name.as_str()).into())
            .collect();
        self.body.extend(MAGIC);
        self.body.push(VERSION);
        self.uint(self.string_list.len() as u64);
        for text in std::mem::take(&mut self.string_list) {
            self.text(&text);
        }
        self.uint(lines.len() as u64);
        for (name, file_lines) in names.iter().zip(lines.values()) {
            self.text(name);
            self.uint(file_lines.len() as u64);
            let mut last = 0;
            for (line, text) in file_lines {
                self.uint(u64::from(line - last));
                last = *line;
                self.text(text);
            }
        }
        self.uint(self.span_list.len() as u64);
        let (mut line, mut call) = (0, 0);
        for place in std::mem::take(&mut self.span_list) {
            let file = lines.keys().position(|f| *f == place.file).unwrap_or(0);
            self.uint(file as u64);
            self.int(i128::from(place.line) - line);
            self.uint(u64::from(place.column));
            self.uint(u64::from(place.length));
            self.int(i128::from(place.call) - call);
            (line, call) = (place.line.into(), place.call.into());
        }
        self.uint(self.dtype_list.len() as u64);
        for dtype in std::mem::take(&mut self.dtype_list) {
            self.dtype_inline(dtype);
        }
        self.body.extend(body);
        self.body
    }

    fn byte(&mut self, value: u8) {
        self.body.push(value);
    }

    fn uint(&mut self, value: u64) {
        self.wide(u128::from(value));
    }

    fn wide(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }

    fn int(&mut self, value: i128) {
        self.wide(zigzag(value));
    }

    fn text(&mut self, text: &str) {
        self.uint(text.len() as u64);
        self.body.extend(text.as_bytes());
    }

    fn string(&mut self, text: &Arc<str>) {
        if self.structural {
            return self.text(text);
        }
        let next = self.string_list.len() as u64;
        let id = *self.strings.entry(text.clone()).or_insert(next);
        if id == next {
            self.string_list.push(text.clone());
        }
        self.uint(id);
    }

    fn dtype_inline(&mut self, dtype: DType) {
        self.byte(number(CODES, &dtype.code));
        self.byte(dtype.bits);
        self.uint(u64::from(dtype.lanes));
    }

    fn dtype(&mut self, dtype: DType) {
        if self.structural {
            return self.dtype_inline(dtype);
        }
        let next = self.dtype_list.len() as u64;
        let id = *self.dtypes.entry(dtype).or_insert(next);
        if id == next {
            self.dtype_list.push(dtype);
        }
        self.uint(id);
    }

    /// 0 for none, else its number relative to that of the span before, as a signed number, plus 1.
    fn span(&mut self, span: Span) {
        if self.structural {
            return;
        }
        match self.number_of(span) {
            0 => self.uint(0),
            id => {
                let step = id as i64 - self.last_span as i64;
                self.uint(1 + zigzag(step.into()) as u64);
                self.last_span = id;
            }
        }
    }

    /// The number of a span, which is given one where it is new. Calls have theirs before what is in them.
    fn number_of(&mut self, span: Span) -> u64 {
        if let Some(id) = self.spans.get(&span) {
            return *id;
        }
        // The outermost call first.
        let mut call = 0;
        for around in self.sources.calls(span).into_iter().rev() {
            call = self.number(around, call);
        }
        self.number(span, call)
    }

    /// The same where the number of the call around it is known.
    fn number(&mut self, span: Span, call: u64) -> u64 {
        if let Some(id) = self.spans.get(&span) {
            return *id;
        }
        let id = match self.sources.locate(span) {
            None => 0,
            Some(at) => {
                let before: usize = at
                    .line_text
                    .chars()
                    .take(at.column as usize - 1)
                    .map(char::len_utf8)
                    .sum();
                let length = span
                    .end
                    .saturating_sub(span.start)
                    .min((at.line_text.len() - before) as u32);
                let place = StoredSpan {
                    file: self.sources.written(span.file),
                    line: at.line - 1,
                    column: before as u32,
                    length,
                    call,
                };
                // Spans over several lines may differ in the part that is cut off.
                let next = self.span_list.len() as u64 + 1;
                let id = *self.places.entry(place).or_insert(next);
                if id == next {
                    self.span_list.push(place);
                }
                id
            }
        };
        self.spans.insert(span, id);
        id
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Prim(dtype) => {
                self.byte(0);
                self.dtype(*dtype);
            }
            Type::Pointer { element, scope } => {
                self.byte(1);
                self.dtype(*element);
                self.string(scope);
            }
            Type::TensorMap => self.byte(2),
        }
    }

    fn var(&mut self, var: &Var) {
        let next = self.vars.len() as u64;
        let id = *self.vars.entry(var.clone()).or_insert(next);
        self.uint(id);
        if id == next {
            if !self.structural {
                self.string(&var.name_arc());
            }
            self.ty(var.ty());
            self.span(var.span());
        }
    }

    fn buffer(&mut self, buffer: &Buffer) {
        if let Some(id) = self.buffers.get(buffer) {
            let id = *id;
            return self.uint(id);
        }
        let id = self.buffers.len() as u64;
        self.buffers.insert(buffer.clone(), id);
        self.uint(id);
        if !self.structural {
            self.string(&buffer.name);
        }
        self.var(&buffer.data);
        self.dtype(buffer.dtype);
        self.exprs(&buffer.shape);
        self.exprs(&buffer.strides);
        let zero = self.structural && buffer.elem_offset.as_ref().is_some_and(|e| e.is_int(0));
        self.option(if zero { None } else { buffer.elem_offset.as_ref() });
        match &buffer.layout {
            None => self.byte(0),
            Some(layout) => {
                let tile = layout.tile();
                match layout.swizzle() {
                    None => self.byte(1),
                    Some(swizzle) => {
                        self.byte(2);
                        self.swizzle(&swizzle);
                    }
                }
                self.iters(&tile.shard);
                self.iters(&tile.replica);
                self.uint(tile.offset.len() as u64);
                for (axis, value) in &tile.offset {
                    self.string(&axis.0);
                    self.expr(value);
                }
            }
        }
        self.uint(u64::from(buffer.align));
        self.uint(u64::from(buffer.offset_factor));
        self.exprs(&buffer.allocated_addr);
        self.span(buffer.span);
        if !self.structural {
            self.view(buffer.view.as_deref());
        }
    }

    fn view(&mut self, view: Option<&View>) {
        let Some(view) = view else {
            return self.byte(0);
        };
        self.byte(1);
        self.string(&view.name);
        for number in [view.start, view.bytes, u64::from(view.element)] {
            self.uint(number);
        }
        self.uint(view.shape.len() as u64);
        for extent in &view.shape {
            self.uint(*extent);
        }
        self.uint(view.steps.len() as u64);
        for (extent, step) in &view.steps {
            self.uint(*extent);
            self.int(i128::from(*step));
        }
        self.int(i128::from(view.first));
        match &view.swizzle {
            None => self.byte(0),
            Some(swizzle) => {
                self.byte(1);
                self.swizzle(swizzle);
            }
        }
    }

    fn swizzle(&mut self, swizzle: &Swizzle) {
        for bits in [swizzle.per_element, swizzle.swizzle_len, swizzle.atom_len] {
            self.uint(u64::from(bits));
        }
        self.byte(swizzle.inner as u8);
    }

    fn iters(&mut self, iters: &[Iter]) {
        self.uint(iters.len() as u64);
        for iter in iters {
            self.expr(&iter.extent);
            self.expr(&iter.stride);
            self.string(&iter.axis.0);
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        self.uint(exprs.len() as u64);
        exprs.iter().for_each(|e| self.expr(e));
    }

    fn option(&mut self, expr: Option<&Expr>) {
        self.byte(expr.is_some() as u8);
        expr.into_iter().for_each(|e| self.expr(e));
    }

    pub(crate) fn expr(&mut self, e: &Expr) {
        let tag = match &e.kind {
            ExprKind::Var(_) => 0,
            ExprKind::Int(_) => 1,
            ExprKind::Float(_) => 2,
            ExprKind::Str(_) => 3,
            ExprKind::Cast(_) => 4,
            ExprKind::Not(_) => 5,
            ExprKind::Select(..) => 6,
            ExprKind::BufferLoad { .. } => 7,
            ExprKind::Ramp { .. } => 8,
            ExprKind::Broadcast { .. } => 9,
            ExprKind::Shuffle { .. } => 10,
            ExprKind::Call { .. } => 11,
            ExprKind::Let(..) => 12,
            ExprKind::Binary(op, ..) => 16 + number(&BINARY, op),
        };
        self.byte(tag);
        self.dtype(e.dtype);
        self.span(e.span);
        match &e.kind {
            ExprKind::Var(v) => self.var(v),
            ExprKind::Int(v) => self.int(*v),
            ExprKind::Float(v) => self.body.extend(v.to_bits().to_le_bytes()),
            ExprKind::Str(s) => self.string(s),
            ExprKind::Cast(a) | ExprKind::Not(a) => self.expr(a),
            ExprKind::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Select(c, t, f) => [c, t, f].into_iter().for_each(|e| self.expr(e)),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                self.buffer(buffer);
                self.exprs(indices);
                self.option(predicate.as_ref());
            }
            ExprKind::Ramp { base, stride, lanes } => {
                self.expr(base);
                self.expr(stride);
                self.uint(u64::from(*lanes));
            }
            ExprKind::Broadcast { value, lanes } => {
                self.expr(value);
                self.uint(u64::from(*lanes));
            }
            ExprKind::Shuffle { vectors, indices } => {
                self.exprs(vectors);
                self.exprs(indices);
            }
            ExprKind::Call { op, args } => {
                self.string(&op.name().into());
                self.exprs(args);
            }
            ExprKind::Let(var, value, body) => {
                self.expr(value);
                self.var(var);
                self.expr(body);
            }
        }
    }
}
