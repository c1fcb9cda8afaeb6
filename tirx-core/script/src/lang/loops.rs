//! Loops and statements in function form: `T.serial`, `T.grid`, `T.evaluate`, `T.bind`, `T.If`, ….

use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Frame, Interpreter, Param, Value, keyword, optional, required};
use super::super::typing::{self, Arithmetic};
use super::buffers::annotations;
use super::call::{Function, MatchedCall, function, variadic};
use super::convert;
use super::launch::{check_tag, thread_iter};
use super::linear;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::ir::{Assert, AttrValue, BinOp, DType, Expr, ForKind, ForLoop, Stmt, StmtKind, Var};
use crate::source::Span;

const LOOP: &[Param] = &[
    required("start"),
    optional("stop"),
    keyword("annotations"),
    keyword("step"),
    keyword("dtype"),
];
const SERIAL: &[Param] = &[
    required("start"),
    optional("stop"),
    keyword("annotations"),
    keyword("step"),
    keyword("unroll"),
    keyword("dtype"),
];
const BINDING: &[Param] = &[
    required("start"),
    optional("stop"),
    optional("thread"),
    keyword("annotations"),
];
const BIND: &[Param] = &[required("value"), optional("type_annotation"), keyword("var")];
const ASSERT: &[Param] = &[required("condition"), required("message"), optional("error_kind")];
const STORE: &[Param] = &[
    required("buffer"),
    required("value"),
    required("indices"),
    optional("predicate"),
];

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.serial", SERIAL, |i, c| one(i, c, ForKind::Serial)),
    function("T.parallel", LOOP, |i, c| one(i, c, ForKind::Parallel)),
    function("T.vectorized", LOOP, |i, c| one(i, c, ForKind::Vectorized)),
    function("T.unroll", LOOP, |i, c| one(i, c, ForKind::Unrolled)),
    function("T.thread_binding", BINDING, thread_binding),
    variadic("T.grid", &[], grid),
    function("T.evaluate", const { &[required("value")] }, evaluate),
    function("T.bind", BIND, bind),
    function("T.Bind", BIND, bind),
    function("T.buffer_store", STORE, buffer_store),
    function("T.Assert", ASSERT, assert),
    function("T.If", const { &[required("condition")] }, |_, c| {
        Ok(frame(Frame::If(condition(c)?)))
    }),
    function("T.Then", &[], |_, _| Ok(frame(Frame::Then))),
    function("T.Else", &[], |_, _| Ok(frame(Frame::Else))),
    function("T.While", const { &[required("condition")] }, |_, c| {
        Ok(frame(Frame::While(condition(c)?)))
    }),
    function("T.Return", const { &[required("value")] }, |i, c| {
        let value = c.argument("value")?;
        i.emit_return(Some(value), c.span)?;
        Ok(Value::None)
    }),
    function("T.Break", &[], |i, c| jump(i, c, Op::BreakLoop)),
    function("T.Continue", &[], |i, c| jump(i, c, Op::ContinueLoop)),
];

fn frame(frame: Frame) -> Value {
    Value::Frame(Rc::new(frame))
}

fn condition(call: &MatchedCall) -> Result<Expr> {
    let (value, span) = call.need("condition", "a condition")?;
    super::condition(value, span.or(call.span))
}

/// `range(start, stop, step)` over expressions: what a `for` of a kernel over `range` builds.
pub fn range_loop(
    names: &super::super::eval::Args,
    start: Option<&Value>,
    stop: &Value,
    step: Option<&Value>,
    span: Span,
) -> Result<Value> {
    let of = |v: &Value| convert::expr(v, span);
    let start = start.map(of).transpose()?;
    let step = step.map(of).transpose()?;
    let made = make(
        names.name_at(0, 1, "i"),
        start,
        of(stop)?,
        ForKind::Serial,
        step,
        Vec::new(),
        span,
    )?;
    Ok(frame(Frame::For(vec![made])))
}

fn make(
    name: Arc<str>,
    start: Option<Expr>,
    stop: Expr,
    kind: ForKind,
    step: Option<Expr>,
    annotations: Vec<(Arc<str>, AttrValue)>,
    span: Span,
) -> Result<ForLoop> {
    for bound in start.iter().chain([&stop]).chain(&step) {
        if !bound.dtype.is_integer() || !bound.dtype.is_scalar() {
            let message = format!("a loop bound must be an integer, found {}", bound.dtype);
            let diagnostic = crate::diagnostic::Diagnostic::new(span, message);
            return Err(Box::new(diagnostic.help("cast it: T.cast(x, \"int32\")")));
        }
    }
    if let Some(v) = step.as_ref().and_then(Expr::as_int)
        && v <= 0
    {
        let message = format!("the step of a loop must be positive, found {v}");
        let diagnostic = crate::diagnostic::Diagnostic::new(span, message);
        let help = match v {
            0 => "leave the step out: it is 1",
            _ => "count up and subtract: `for i in range(n)` with the index `n - 1 - i`",
        };
        return Err(Box::new(diagnostic.help(help)));
    }
    let start = start.unwrap_or_else(|| Expr::constant(stop.dtype, 0).at(span));
    let (min, stop) = typing::promote("a loop", start.into(), stop.into(), span)?;
    let extent = extent(&min, stop, span)?;
    let step = match step {
        Some(s) if s.is_int(1) => None,
        Some(s) => Some(typing::cast(s.into(), min.dtype, span)?),
        None => None,
    };
    Ok(ForLoop {
        var: Var::at(name, min.dtype, span),
        min,
        extent,
        kind,
        thread: None,
        annotations,
        step,
        body: Stmt::nop(),
    })
}

/// `stop - min`, simplified. A range from zero is unchanged, and so is the length of `range(min, min + length)`, so
/// that printed text parses back exactly.
fn extent(min: &Expr, stop: Expr, span: Span) -> Result<Expr> {
    if min.is_int(0) {
        return Ok(stop);
    }
    if let Some((start, length)) = stop.as_binary(BinOp::Add)
        && start == min
    {
        return Ok(length.clone());
    }
    let difference = typing::binary(Arithmetic::Sub, stop.into(), min.clone().into(), span)?;
    Ok(crate::arith::Analyzer::new().simplify(&difference).or_at(span))
}

fn one(interp: &mut Interpreter, call: &mut MatchedCall, kind: ForKind) -> Result<Value> {
    let _ = interp;
    let (mut start, mut stop) = bounds(call)?;
    if let Some(dtype) = call.index_dtype()? {
        start = start
            .map(|e| typing::cast(e.into(), dtype, call.span))
            .transpose()?;
        stop = typing::cast(stop.into(), dtype, call.span)?;
    }
    let mut annotations = annotations(call)?;
    if kind == ForKind::Serial
        && let Some((value, _)) = call.get("unroll")
    {
        let (key, value) = match (value, value.as_int()) {
            (Value::Bool(true), _) => ("pragma_unroll", AttrValue::Bool(true)),
            (Value::Bool(false), _) => ("disable_unroll", AttrValue::Bool(true)),
            // So many iterations at a time.
            (_, Some(n @ 1..=1024)) => ("pragma_unroll_factor", AttrValue::Int(n as i64)),
            _ => return call.expected("unroll", "True, False, None or a number of iterations"),
        };
        annotations.retain(|(k, _)| &**k != key);
        annotations.push((key.into(), value));
        annotations.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let step = call.opt_expr("step")?;
    let name = call.names.name_at(0, 1, "i");
    let made = make(name, start, stop, kind, step, annotations, call.span)?;
    Ok(frame(Frame::For(vec![made])))
}

fn bounds(call: &MatchedCall) -> Result<(Option<Expr>, Expr)> {
    match call.opt_expr("stop")? {
        Some(stop) => Ok((Some(call.expr("start")?), stop)),
        None => Ok((None, call.expr("start")?)),
    }
}

fn thread_binding(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    // `thread_binding(4, "threadIdx.x")` leaves the start out.
    let (tag, start, stop) = match call.get("thread") {
        Some(_) => {
            let (start, stop) = bounds(call)?;
            (call.text("thread")?, start, stop)
        }
        None if call.get("stop").is_none() => {
            return call.fail_with(
                "misses the index that is bound",
                "for i in T.thread_binding(extent, \"threadIdx.x\"): …",
            );
        }
        None => (call.text("stop")?, None, call.expr("start")?),
    };
    check_tag(call, &tag)?;
    let name = call.names.name_at(0, 1, "i");
    let mut made = make(
        name,
        start,
        stop,
        ForKind::ThreadBinding,
        None,
        annotations(call)?,
        call.span,
    )?;
    let var = Var::at("iter", made.var.dtype(), call.span);
    made.thread = Some(thread_iter(var, tag));
    Ok(frame(Frame::For(vec![made])))
}

fn grid(_interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let count = call.rest.len();
    if count == 0 {
        return call.fail("needs at least one extent");
    }
    let mut loops = Vec::with_capacity(count);
    for (i, (value, at)) in call.rest.iter().enumerate() {
        let at = at.or(call.span);
        let name = call.names.name_at(i, count, "i");
        // A pair is the start and the extent.
        let (start, extent) = match value {
            Value::Tuple(pair) if pair.len() == 2 => {
                (Some(convert::expr(&pair[0], at)?), convert::expr(&pair[1], at)?)
            }
            value => (None, convert::expr(value, at)?),
        };
        let stop = match &start {
            Some(start) => linear::sum(start, &extent, at)?,
            None => extent.clone(),
        };
        let made = make(name, start, stop, ForKind::Serial, None, Vec::new(), call.span)?;
        // Unchanged: only ranges are simplified.
        let extent = typing::cast(extent.into(), made.var.dtype(), at)?;
        loops.push(ForLoop { extent, ..made });
    }
    Ok(frame(Frame::For(loops)))
}

fn evaluate(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    // An instruction by its mnemonic is a statement by itself.
    if call.given("value") && call.get("value").is_none() {
        return Ok(Value::None);
    }
    let value = call.argument("value")?;
    interp.emit(Stmt::new(StmtKind::Evaluate(value), call.span))?;
    Ok(Value::None)
}

fn jump(interp: &mut Interpreter, call: &mut MatchedCall, op: Op) -> Result<Value> {
    let jump = Expr::call(op, DType::VOID, vec![]).at(call.span);
    interp.emit(Stmt::evaluate(jump))?;
    Ok(Value::None)
}

fn bind(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let value = call.argument("value")?;
    let var = match call.get("var") {
        Some((value, _)) => match value.as_expr().and_then(|e| e.as_var()) {
            Some(var) => var.clone(),
            None => return call.expected("var", "a variable"),
        },
        None => {
            let ty = match call.get("type_annotation") {
                Some((ty, span)) => match convert::type_of_value(ty, span)? {
                    Some(ty) => ty,
                    None => return call.expected("type_annotation", "a type"),
                },
                None => convert::expr_type(&value),
            };
            Var::at(call.names.name_or("v"), ty, call.span)
        }
    };
    if var.dtype() != value.dtype {
        return call.fail_with(
            format!("the value is {} but the variable is {}", value.dtype, var.dtype()),
            format!("cast it: T.cast(x, \"{}\")", var.dtype()),
        );
    }
    interp.emit(Stmt::bind(&var, value, call.span))?;
    Ok(Value::Expr(Expr::var(&var).at(call.span)))
}

fn buffer_store(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let Some(buffer) = call.get("buffer").and_then(|(v, _)| convert::buffer(v)) else {
        return call.expected("buffer", "a buffer");
    };
    let predicate = call.opt_expr("predicate")?;
    let (index, _) = call.need("indices", "a list of indices")?;
    let index = Value::tuple(index.as_items().unwrap_or_else(|| vec![index.clone()]));
    let (value, _) = call.need("value", "an expression")?;
    super::access::store(interp, &buffer, &index, value, predicate, call.span)?;
    Ok(Value::None)
}

fn assert(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let condition = condition(call)?;
    let kind = call.text_or("error_kind", "RuntimeError")?;
    let (message, _) = call.need("message", "a string or a list of strings")?;
    let parts = message.as_items().unwrap_or_else(|| vec![message.clone()]);
    let Some(message) = parts.iter().map(convert::text).collect::<Option<Vec<_>>>() else {
        return call.expected("message", "a string or a list of strings");
    };
    interp.emit(Stmt::new(
        StmtKind::Assert(Assert {
            condition,
            kind,
            message,
        }),
        call.span,
    ))?;
    // The body of this `with` is the statements in it, without a region.
    Ok(frame(Frame::Many(Vec::new())))
}
