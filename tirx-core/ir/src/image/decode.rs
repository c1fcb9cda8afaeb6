//! Bytes to IR. For any input the result is a module or an error, never a panic.

mod stmt;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::variants::{BINARY, CODES, ITERS, LOOPS};
use super::{ImageError, MAGIC, VERSION};
use crate::intrin::Op;
use crate::ir::{
    Assert, Attr, AttrNode, AttrValue, Attrs, Buffer, BufferNode, BufferRegion, BufferStore, DType,
    ExecScope, Expr, ExprKind, ForLoop, IRModule, IterVar, MAX_LEVELS, PrimFunc, ScopeIdDef, ScopeIdKind,
    Stmt, StmtKind, TileArg, TileCall, TileOp, Type, Var, View, with_stack_for,
};
use crate::layout::{Axis, Iter, Layout, Swizzle, TileLayout};
use crate::source::{FileId, SourceMap, Span};

/// Levels of nesting that are read on the caller's stack.
const DEPTH: u32 = 1000;
/// Levels of nesting that an image may have: beyond what the front end and the passes produce.
const MAX_DEPTH: u32 = MAX_LEVELS + 2000;
/// Most lines of all files together, so that a corrupt number does not make a text of gigabytes.
const LINES: u64 = 1 << 22;

/// The module that [`encode`](super::encode) wrote.
///
/// The result is well-formed as a tree; where the bytes are not trusted, check with [`verify`](crate::ir::verify) that
/// it is a valid program.
pub fn decode(bytes: &[u8]) -> Result<IRModule, ImageError> {
    match decode_within(bytes, DEPTH) {
        Err(error) if error.message == TOO_DEEP => {
            with_stack_for(MAX_DEPTH, || decode_within(bytes, MAX_DEPTH))
        }
        done => done,
    }
}

/// The message of an image with too many levels.
const TOO_DEEP: &str = "nesting is too deep";

fn decode_within(bytes: &[u8], most_depth: u32) -> Result<IRModule, ImageError> {
    let mut decoder = Decoder {
        bytes,
        at: 0,
        depth: 0,
        most_depth,
        strings: Vec::new(),
        ops: FxHashMap::default(),
        spans: Vec::new(),
        last_span: 0,
        dtypes: Vec::new(),
        vars: Vec::new(),
        buffers: Vec::new(),
    };
    let sources = decoder.tables()?;
    let module = decoder.module(sources)?;
    if decoder.at != bytes.len() {
        return decoder.fail("bytes after the module");
    }
    Ok(module)
}

fn unzigzag(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

type Outcome<T> = Result<T, ImageError>;

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
    most_depth: u32,
    strings: Vec<Arc<str>>,
    ops: FxHashMap<usize, Op>,
    spans: Vec<Span>,
    /// The number of the last span in the body.
    last_span: i128,
    dtypes: Vec<DType>,
    vars: Vec<Var>,
    buffers: Vec<Option<Buffer>>,
}

impl Decoder<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(ImageError {
            message: message.into(),
            offset: self.at,
        })
    }

    fn byte(&mut self) -> Outcome<u8> {
        let Some(byte) = self.bytes.get(self.at) else {
            return self.fail("the bytes end early");
        };
        self.at += 1;
        Ok(*byte)
    }

    fn wide(&mut self) -> Outcome<u128> {
        let mut value = 0u128;
        for shift in (0..).step_by(7) {
            let byte = self.byte()?;
            if shift >= 126 && byte > 3 {
                return self.fail("a number is too large");
            }
            value |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    fn uint(&mut self) -> Outcome<u64> {
        let value = self.wide()?;
        u64::try_from(value).or_else(|_| self.fail("a number is too large"))
    }

    fn u32(&mut self) -> Outcome<u32> {
        let value = self.wide()?;
        u32::try_from(value).or_else(|_| self.fail("a number is too large"))
    }

    fn lanes(&mut self) -> Outcome<u16> {
        let value = self.wide()?;
        u16::try_from(value).or_else(|_| self.fail("too many lanes"))
    }

    fn int(&mut self) -> Outcome<i128> {
        Ok(unzigzag(self.wide()?))
    }

    /// A number that is given by its distance from another one.
    fn int_from(&mut self, other: i128) -> Outcome<i128> {
        Ok(other.saturating_add(self.int()?))
    }

    fn f64(&mut self) -> Outcome<f64> {
        let Some(bytes) = self.bytes.get(self.at..self.at + 8) else {
            return self.fail("the bytes end early");
        };
        self.at += 8;
        Ok(f64::from_bits(
            bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)),
        ))
    }

    /// A count of items that take at least one byte each.
    fn count(&mut self) -> Outcome<usize> {
        let count = self.uint()?;
        if count > (self.bytes.len() - self.at) as u64 {
            return self.fail("a count is too large");
        }
        Ok(count as usize)
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let count = self.count()?;
        // No capacity is reserved: a corrupt count could ask for far more memory than the bytes need.
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(item(self)?);
        }
        Ok(list)
    }

    fn flag(&mut self) -> Outcome<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.fail("a flag is neither 0 nor 1"),
        }
    }

    fn text(&mut self) -> Outcome<Arc<str>> {
        let length = self.count()?;
        let bytes = &self.bytes[self.at..self.at + length];
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.fail("a string is not UTF-8");
        };
        self.at += length;
        Ok(text.into())
    }

    fn tables(&mut self) -> Outcome<SourceMap> {
        if self.bytes.get(..4) != Some(MAGIC) {
            return self.fail("the mark is missing");
        }
        self.at = 4;
        let version = self.byte()?;
        if version != VERSION {
            return self.fail(format!("version {version} is not {VERSION}"));
        }
        self.strings = self.list(Self::text)?;
        let mut sources = SourceMap::new();
        // Start of each carried line, by file.
        let mut starts: Vec<BTreeMap<u32, (u32, u32)>> = Vec::new();
        let mut blank = 0u64;
        for _ in 0..self.count()? {
            let name = self.text()?;
            let mut text = String::new();
            let mut lines = BTreeMap::new();
            let mut number = 0u64;
            for i in 0..self.count()? {
                let next = number.saturating_add(self.uint()?);
                blank = blank.saturating_add(next - number);
                if blank > LINES || (i > 0 && next == number) {
                    return self.fail("a line number is out of order");
                }
                let ends = next - number;
                (0..ends).for_each(|_| text.push('\n'));
                number = next;
                let line = self.text()?;
                if line.contains('\n') {
                    return self.fail("a line holds a line end");
                }
                lines.insert(number as u32, (text.len() as u32, line.len() as u32));
                text.push_str(&line);
            }
            sources.add(&*name, text);
            starts.push(lines);
        }
        let mut spans: Vec<Span> = Vec::new();
        let (mut last_line, mut last_call) = (0, 0);
        self.list(|d| {
            let (file, line) = (d.uint()? as usize, d.int_from(last_line)?);
            let (column, length, call) = (d.u32()?, d.u32()?, d.int_from(last_call)?);
            (last_line, last_call) = (line, call);
            let call = match call {
                0 => Span::NONE,
                call => match usize::try_from(call - 1).ok().and_then(|at| spans.get(at)) {
                    Some(call) => *call,
                    None => return d.fail("the call of a span does not stand before it"),
                },
            };
            let line = u32::try_from(line).ok();
            let Some((start, size)) = line.and_then(|line| starts.get(file)?.get(&line)) else {
                return d.fail("a span points at no line");
            };
            if u64::from(column) + u64::from(length) > u64::from(*size) {
                return d.fail("a span leaves its line");
            }
            let start = start + column;
            let file = sources.called(FileId(file as u32 + 1), call);
            spans.push(Span::new(file, start, start + length));
            Ok(())
        })?;
        self.spans = spans;
        self.dtypes = self.list(|d| {
            let code = d.byte()?;
            let Some(code) = CODES.get(code as usize) else {
                return d.fail("an unknown type code");
            };
            let dtype = DType {
                code: *code,
                bits: d.byte()?,
                lanes: d.lanes()?,
            };
            // A dtype is valid if its name parses back to it.
            if dtype.to_string().parse() != Ok(dtype) {
                return d.fail("an unknown dtype");
            }
            Ok(dtype)
        })?;
        Ok(sources)
    }

    fn string(&mut self) -> Outcome<Arc<str>> {
        let id = self.uint()? as usize;
        match self.strings.get(id) {
            Some(text) => Ok(text.clone()),
            None => self.fail("a string is missing"),
        }
    }

    fn op(&mut self) -> Outcome<Op> {
        let at = self.at;
        let id = self.uint()? as usize;
        if let Some(op) = self.ops.get(&id) {
            return Ok(*op);
        }
        self.at = at;
        let name = self.string()?;
        match Op::from_name(&name) {
            Some(op) => {
                self.ops.insert(id, op);
                Ok(op)
            }
            None => self.fail(format!("unknown operator {name}")),
        }
    }

    fn dtype(&mut self) -> Outcome<DType> {
        let id = self.uint()? as usize;
        match self.dtypes.get(id) {
            Some(dtype) => Ok(*dtype),
            None => self.fail("a dtype is missing"),
        }
    }

    fn span(&mut self) -> Outcome<Span> {
        let Some(step) = self.wide()?.checked_sub(1) else {
            return Ok(Span::NONE);
        };
        self.last_span = self.last_span.saturating_add(unzigzag(step));
        let span = usize::try_from(self.last_span - 1)
            .ok()
            .and_then(|at| self.spans.get(at));
        match span {
            Some(span) => Ok(*span),
            None => self.fail("a span is missing"),
        }
    }

    fn ty(&mut self) -> Outcome<Type> {
        match self.byte()? {
            0 => Ok(Type::Prim(self.dtype()?)),
            1 => Ok(Type::Pointer {
                element: self.dtype()?,
                scope: self.string()?,
            }),
            2 => Ok(Type::TensorMap),
            _ => self.fail("an unknown type"),
        }
    }

    fn var(&mut self) -> Outcome<Var> {
        let id = self.uint()? as usize;
        if let Some(var) = self.vars.get(id) {
            return Ok(var.clone());
        }
        if id != self.vars.len() {
            return self.fail("a variable is missing");
        }
        let (name, ty, span) = (self.string()?, self.ty()?, self.span()?);
        let var = Var::at(name, ty, span);
        self.vars.push(var.clone());
        Ok(var)
    }

    fn buffer(&mut self) -> Outcome<Buffer> {
        let id = self.uint()? as usize;
        match self.buffers.get(id) {
            Some(Some(buffer)) => return Ok(buffer.clone()),
            Some(None) => return self.fail("a buffer describes itself"),
            None if id != self.buffers.len() => return self.fail("a buffer is missing"),
            None => self.buffers.push(None),
        }
        let name = self.string()?;
        let data = self.var()?;
        let dtype = self.dtype()?;
        let shape = self.exprs()?;
        let strides = self.exprs()?;
        let elem_offset = self.option()?;
        let layout = match self.byte()? {
            0 => None,
            tag @ (1 | 2) => {
                let swizzle = if tag == 2 { Some(self.swizzle()?) } else { None };
                let (shard, replica) = (self.iters()?, self.iters()?);
                let offset = self.list(|d| Ok((Axis(d.string()?), d.expr()?)))?;
                let tile = Arc::new(TileLayout {
                    shard,
                    replica,
                    offset,
                });
                Some(match swizzle {
                    None => Layout::Tile(tile),
                    Some(swizzle) => Layout::Compose(swizzle, tile),
                })
            }
            _ => return self.fail("an unknown layout"),
        };
        let (align, offset_factor) = (self.u32()?, self.u32()?);
        let allocated_addr = self.exprs()?;
        let span = self.span()?;
        let view = if self.flag()? {
            Some(Arc::new(self.view()?))
        } else {
            None
        };
        let buffer = Buffer::new(BufferNode {
            name,
            data,
            dtype,
            shape,
            strides,
            elem_offset,
            layout,
            align,
            offset_factor,
            allocated_addr,
            view,
            span,
        });
        self.buffers[id] = Some(buffer.clone());
        Ok(buffer)
    }

    fn view(&mut self) -> Outcome<View> {
        let view = View {
            name: self.string()?,
            start: self.uint()?,
            bytes: self.uint()?,
            element: self.u32()?,
            shape: self.list(Self::uint)?,
            steps: self.list(|d| Ok((d.uint()?, d.i64()?)))?,
            first: self.i64()?,
            swizzle: if self.flag()? { Some(self.swizzle()?) } else { None },
        };
        match view.is_small() {
            true => Ok(view),
            false => self.fail("a view of shared memory that no memory holds"),
        }
    }

    fn swizzle(&mut self) -> Outcome<Swizzle> {
        let mut bits = || -> Outcome<u32> {
            match self.u32()? {
                bits @ 0..=30 => Ok(bits),
                _ => self.fail("a swizzle of too many bits"),
            }
        };
        let (per_element, swizzle_len, atom_len) = (bits()?, bits()?, bits()?);
        Ok(Swizzle {
            per_element,
            swizzle_len,
            atom_len,
            inner: self.flag()?,
        })
    }

    fn i64(&mut self) -> Outcome<i64> {
        match i64::try_from(self.int()?) {
            Ok(number) => Ok(number),
            Err(_) => self.fail("a number of more than 64 bits"),
        }
    }

    fn iters(&mut self) -> Outcome<Vec<Iter>> {
        self.list(|d| {
            Ok(Iter {
                extent: d.expr()?,
                stride: d.expr()?,
                axis: Axis(d.string()?),
            })
        })
    }

    fn exprs(&mut self) -> Outcome<Vec<Expr>> {
        self.list(Self::expr)
    }

    fn option(&mut self) -> Outcome<Option<Expr>> {
        Ok(if self.flag()? { Some(self.expr()?) } else { None })
    }

    fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > self.most_depth {
            self.fail(TOO_DEEP)
        } else {
            Ok(())
        }
    }

    // One function per form keeps the frames of this recursion small in unoptimized builds.
    fn expr(&mut self) -> Outcome<Expr> {
        self.deeper()?;
        let tag = self.byte()?;
        let dtype = self.dtype()?;
        let span = self.span()?;
        let e = match tag {
            4..=6 | 12 | 16.. => self.tree(tag, dtype, span),
            _ => self.leaf(tag, dtype, span),
        };
        self.depth -= 1;
        e
    }

    /// Forms whose operands are expressions alone.
    fn tree(&mut self, tag: u8, dtype: DType, span: Span) -> Outcome<Expr> {
        let a = self.expr()?;
        if tag == 4 {
            return Ok(Expr::new(ExprKind::Cast(a), dtype, span));
        }
        if tag == 5 {
            return Ok(Expr::new(ExprKind::Not(a), dtype, span));
        }
        let var = if tag == 12 { Some(self.var()?) } else { None };
        let b = self.expr()?;
        if let Some(var) = var {
            return Ok(Expr::new(ExprKind::Let(var, a, b), dtype, span));
        }
        if tag == 6 {
            let c = self.expr()?;
            return Ok(Expr::new(ExprKind::Select(a, b, c), dtype, span));
        }
        match BINARY.get(tag as usize - 16) {
            Some(op) => Ok(Expr::new(ExprKind::Binary(*op, a, b), dtype, span)),
            None => self.fail("an unknown expression"),
        }
    }

    fn leaf(&mut self, tag: u8, dtype: DType, span: Span) -> Outcome<Expr> {
        let kind = self.leaf_kind(tag)?;
        Ok(Expr::new(kind, dtype, span))
    }

    fn leaf_kind(&mut self, tag: u8) -> Outcome<ExprKind> {
        match tag {
            0 => Ok(ExprKind::Var(self.var()?)),
            1 => Ok(ExprKind::Int(self.int()?)),
            2 => Ok(ExprKind::Float(self.f64()?)),
            3 => Ok(ExprKind::Str(self.string()?)),
            7 => self.load(),
            8..=10 => self.vector(tag),
            11 => self.call(),
            _ => self.fail("an unknown expression"),
        }
    }

    fn load(&mut self) -> Outcome<ExprKind> {
        let buffer = self.buffer()?;
        let indices = self.exprs()?;
        Ok(ExprKind::BufferLoad {
            buffer,
            indices,
            predicate: self.option()?,
        })
    }

    fn call(&mut self) -> Outcome<ExprKind> {
        let op = self.op()?;
        Ok(ExprKind::Call {
            op,
            args: self.exprs()?,
        })
    }

    fn vector(&mut self, tag: u8) -> Outcome<ExprKind> {
        Ok(match tag {
            8 => ExprKind::Ramp {
                base: self.expr()?,
                stride: self.expr()?,
                lanes: self.lanes()?,
            },
            9 => ExprKind::Broadcast {
                value: self.expr()?,
                lanes: self.lanes()?,
            },
            _ => ExprKind::Shuffle {
                vectors: self.exprs()?,
                indices: self.exprs()?,
            },
        })
    }
}
