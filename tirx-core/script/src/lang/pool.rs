//! `T.SMEMPool`: tiles placed one after the other in dynamic shared memory.
//!
//! The pool is a cursor over one allocation of bytes in scope `shared.dyn` (or over a pointer that is given). `alloc`
//! declares a view at the cursor and moves it behind the view, `move_base_to` sets it (so that tiles whose lives do not
//! overlap can share memory), `commit` says how many bytes the launch must provide.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use super::super::eval::{Args, Interpreter, Object, Param, Value, optional, required};
use super::call::{Function, MatchedCall, function};
use super::convert;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{AttrNode, Buffer, DType, Expr, Stmt, StmtKind, Var};
use crate::source::Span;

const POOL: &[Param] = &[optional("ptr")];
const ALLOC: &[Param] = &[
    required("shape"),
    optional("dtype"),
    optional("strides"),
    optional("scope"),
    optional("align"),
    optional("layout"),
];

const ALLOC_OPERAND: &[Param] = &[
    required("shape"),
    optional("dtype"),
    optional("swizzle_mode"),
    optional("align"),
];

/// What a pool has: names with signatures, which are empty for fields.
pub(super) fn documented() -> Vec<(String, String)> {
    let signature = |params: &[Param]| {
        let param = |param: &Param| format!("{}{}", param.name, if param.required { "" } else { "=…" });
        let params: Vec<String> = params.iter().map(param).collect();
        format!("({})", params.join(", "))
    };
    [
        ("alloc", signature(ALLOC)),
        ("alloc_tcgen05_mma_AB", signature(ALLOC_OPERAND)),
        ("move_base_to", "(offset)".to_string()),
        ("commit", "()".to_string()),
        ("buf", String::new()),
        ("ptr", String::new()),
        ("offset", String::new()),
        ("max_offset", String::new()),
    ]
    .map(|(name, signature)| (format!("SMEMPool.{name}"), signature))
    .into()
}

pub(super) static FUNCTIONS: &[Function] = &[
    function("T.SMEMPool", POOL, new),
    // Names of the library, which take precedence over the namespace's own.
    function("T.TMEMPool", TMEM_POOL, |interp, call| {
        let (pool, _) = call.need("pool", "a pool of shared memory")?;
        let pool = vec![pool.clone()];
        interp.call_library(LIBRARY, "TMEMPool", pool, call.span)
    }),
    function("T.wg_reg_tile", REGISTERS, |interp, call| {
        let (count, _) = call.need("elem_per_thread", "elements of a thread")?;
        let count = vec![count.clone()];
        interp.call_library(LIBRARY, "wg_reg_tile", count, call.span)
    }),
    function("T.alloc_tcgen05_ldst_frag", FRAGMENT, |interp, call| {
        let values = ["instr_shape", "tensor_shape", "dtype"].map(|name| {
            let (value, _) = call.need(name, "a fragment of tcgen05.ld")?;
            Ok(value.clone())
        });
        let values = values.into_iter().collect::<Result<Vec<_>>>()?;
        interp.call_library(LIBRARY, "alloc_tcgen05_ldst_frag", values, call.span)
    }),
    function("T.alloc_cast_frag", CAST, |interp, call| {
        let values = ["src", "dtype"].map(|name| {
            let (value, _) = call.need(name, "a fragment and a dtype")?;
            Ok(value.clone())
        });
        let values = values.into_iter().collect::<Result<Vec<_>>>()?;
        interp.call_library(LIBRARY, "alloc_cast_frag", values, call.span)
    }),
];

/// The module of the library that defines them.
const LIBRARY: &str = "tvm.backend.cuda.lang.alloc_pool";
const REGISTERS: &[Param] = &[required("elem_per_thread"), optional("dtype")];
const FRAGMENT: &[Param] = &[
    required("instr_shape"),
    required("tensor_shape"),
    required("dtype"),
];
const CAST: &[Param] = &[required("src"), required("dtype")];

const TMEM_POOL: &[Param] = &[required("pool")];

struct State {
    /// The pool's own allocation; `None` where a pointer was given.
    buffer: Option<Buffer>,
    data: Var,
    /// The cursor, in bytes.
    offset: Cell<i128>,
    /// Whether `move_base_to` has put it there.
    set_by_move_base_to: Cell<bool>,
    /// The largest value of the cursor.
    high: Cell<i128>,
}

struct Pool(Rc<State>);

fn new(interp: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let (buffer, data) = match call.get("ptr") {
        Some((value, span)) => match value.as_expr().and_then(|e| e.as_var()) {
            Some(var) if var.dtype().is_handle() => (None, var.clone()),
            _ => {
                let e = convert::expr(value, span)?;
                if !e.dtype.is_handle() {
                    return call.expected("ptr", "a pointer");
                }
                let name = format!("{}_ptr", call.names.name_or("pool"));
                let var = Var::at(name, convert::expr_type(&e), call.span);
                interp.emit(Stmt::bind(&var, e, call.span))?;
                (None, var)
            }
        },
        None => {
            let name = format!("{}_buf", call.names.name_or("pool"));
            let buffer = Buffer::fresh(name, vec![Expr::int32(0)], DType::UINT8, "shared.dyn", call.span);
            interp.emit(Stmt::new(
                StmtKind::AllocBuffer(buffer.clone(), Vec::new()),
                call.span,
            ))?;
            let data = buffer.data.clone();
            (Some(buffer), data)
        }
    };
    Ok(Value::Object(Rc::new(Pool(Rc::new(State {
        buffer,
        data,
        offset: Cell::new(0),
        set_by_move_base_to: Cell::new(false),
        high: Cell::new(0),
    })))))
}

impl State {
    fn move_to(&self, offset: i128) {
        self.offset.set(offset);
        self.high.set(self.high.get().max(offset));
    }
}

impl Object for Pool {
    fn type_name(&self) -> &str {
        "SMEMPool"
    }

    fn attribute(&self, _interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        let state = self.0.clone();
        Ok(match name {
            "buf" => Some(state.buffer.clone().map_or(Value::None, Value::Buffer)),
            "ptr" => Some(Value::Expr(Expr::var(&state.data).at(span))),
            "offset" => Some(Value::Int(state.offset.get())),
            "max_offset" => Some(Value::Int(state.high.get())),
            "alloc" => Some(Value::builtin("SMEMPool.alloc", move |interp, args, span| {
                alloc(interp, &state, args, span)
            })),
            "move_base_to" => Some(Value::builtin("SMEMPool.move_base_to", move |_, args, span| {
                let call = MatchedCall::new(
                    "SMEMPool.move_base_to",
                    const { &[required("offset")] },
                    false,
                    args,
                    span,
                )?;
                match call.int("offset")? {
                    v if (0..=i64::from(i32::MAX) as i128).contains(&v) => {
                        state.move_to(v);
                        state.set_by_move_base_to.set(true);
                    }
                    v => return call.fail(format!("the offset must be a number of bytes, found {v}")),
                }
                Ok(Value::None)
            })),
            "commit" => Some(Value::builtin("SMEMPool.commit", move |interp, args, span| {
                commit(interp, &state, args, span)
            })),
            "alloc_tcgen05_mma_AB" => Some(Value::builtin(
                "SMEMPool.alloc_tcgen05_mma_AB",
                move |interp, args, span| alloc_operand(interp, &state, args, span),
            )),
            _ => None,
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Declares a tile at the cursor, and moves the cursor behind it.
fn alloc(interp: &mut Interpreter, state: &State, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new("SMEMPool.alloc", ALLOC, false, args.clone(), span)?;
    let align = call.int_or("align", 0)?;
    if align > 1 << 20 {
        return call.fail(format!("align must be at most {} bytes, found {align}", 1 << 20));
    }
    let dtype = call.dtype_or("dtype", DType::FLOAT32)?;
    // Without `align`, the cursor is rounded up to the size of an element; TVM rounds down, into the tile before. A cursor that `move_base_to`
    // has set is not rounded: `T.decl_buffer` refuses it if it is no multiple of that size.
    let align = match align {
        0 if !state.set_by_move_base_to.get() => i128::from(dtype.bits / 8).max(1),
        align => align,
    };
    state.set_by_move_base_to.set(false);
    if align > 0 {
        let at = state.offset.get();
        state.move_to((at + align - 1) / align * align);
    }
    let mut elements: i128 = 1;
    for extent in call.shape("shape")? {
        match extent.as_int() {
            Some(v) => elements = elements.saturating_mul(v),
            None => return call.fail("the shape must be constant"),
        }
    }
    let bits = elements.saturating_mul(dtype.bits as i128 * dtype.lanes as i128);
    if bits > i64::from(i32::MAX) as i128 {
        return call.fail("the tile is larger than any shared memory");
    }
    // The arguments of a declaration at the cursor.
    let mut args = Args {
        names: args.names,
        names_are_tuple: args.names_are_tuple,
        ..Args::default()
    };
    for name in ["shape", "dtype", "strides", "align", "layout"] {
        if call.given(name) {
            let value = call.get(name).map_or(Value::None, |(v, _)| v.clone());
            args.keyword.push((name.into(), value, span));
        }
    }
    let pointer = Value::Expr(Expr::var(&state.data).at(span));
    args.keyword.push(("data".into(), pointer, span));
    args.keyword
        .push(("byte_offset".into(), Value::Int(state.offset.get()), span));
    let Some(Value::Builtin(declare)) = super::namespace::lookup("T.decl_buffer") else {
        return call.fail("T.decl_buffer is missing");
    };
    let buffer = (declare.call)(interp, args, span)?;
    state.move_to(state.offset.get().saturating_add((bits + 7) / 8));
    Ok(buffer)
}

/// An operand of tensor cores: `alloc` with the layout that the swizzle and the shape determine.
fn alloc_operand(interp: &mut Interpreter, state: &State, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "SMEMPool.alloc_tcgen05_mma_AB",
        ALLOC_OPERAND,
        false,
        args.clone(),
        span,
    )?;
    let (shape, _) = call.need("shape", "a tuple of extents")?;
    let value = |name: &str, default: Value| call.get(name).map_or(default, |(v, _)| v.clone());
    let dtype = value("dtype", Value::str("float16"));
    let swizzle = value("swizzle_mode", Value::str("auto"));
    let alignment = value("align", Value::Int(1024));
    let layout = interp.call_library(
        "tvm.backend.cuda.lang.alloc_pool",
        "mma_operand_layout",
        vec![shape.clone(), dtype.clone(), swizzle],
        span,
    )?;
    let mut args = Args {
        names: args.names,
        names_are_tuple: args.names_are_tuple,
        ..Args::default()
    };
    for (name, value) in [
        ("shape", shape.clone()),
        ("dtype", dtype),
        ("align", alignment),
        ("layout", layout),
    ] {
        args.keyword.push((name.into(), value, span));
    }
    alloc(interp, state, args, span)
}

fn commit(interp: &mut Interpreter, state: &State, args: Args, span: Span) -> Result<Value> {
    let call = MatchedCall::new(
        "SMEMPool.commit",
        const { &[optional("size")] },
        false,
        args,
        span,
    )?;
    if state.buffer.is_none() {
        return Ok(Value::None);
    }
    let high = state.high.get();
    let size = call.int_or("size", high)?;
    if size < high {
        let message =
            format!("SMEMPool.commit: size {size} is smaller than the {high} bytes that were allocated");
        return Err(Box::new(Diagnostic::new(span, message)));
    }
    let bytes = Expr::constant(DType::INT64, size).at(span);
    interp.emit(Stmt::attr(
        AttrNode::None,
        "tirx.dyn_smem_bytes",
        bytes,
        Stmt::nop(),
        span,
    ))?;
    Ok(Value::None)
}
