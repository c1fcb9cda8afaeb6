//! Functions that expand to several operations, or that have an older form: registers as a pointer and an offset.

use super::super::eval::{Interpreter, Param, Value, optional, required};
use super::call::{Function, MatchedCall, function, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::intrin::rows::matrix::{dense_registers, register_dtype, sparse_registers};
use crate::ir::{DType, Expr, Type, fold};

const CP_ASYNC: &[Param] = &[];
const ARRIVE: &[Param] = &[required("bar"), optional("space")];
const POINTER: &[Param] = &[required("ptr")];
const EVENT: &[Param] = &[required("event_id"), optional("source_code"), optional("payload")];

pub(super) static FUNCTIONS: &[Function] = &[
    variadic("T.ptx.cp_async.legacy", CP_ASYNC, cp_async),
    variadic("T.ptx.ldmatrix_legacy", CP_ASYNC, ldmatrix),
    variadic("T.ptx.mma.legacy", CP_ASYNC, mma),
    variadic("T.ptx.mma.sp", CP_ASYNC, mma_sp),
    // Where TVM 0.27 has them.
    variadic("T.s_tir.cp_async_raw", CP_ASYNC, cp_async),
    variadic("T.ptx_legacy.ldmatrix", CP_ASYNC, ldmatrix),
    variadic("T.ptx_legacy.mma", CP_ASYNC, mma),
    function("T.ptx.cp_async.mbarrier.arrive.noinc", ARRIVE, arrive_noinc),
    function("T.cuda.sm100_2sm_leader_smem_addr", POINTER, leader_address),
    function("T.cuda.iket.official_event", EVENT, official_event),
];

/// The arguments of a function that takes all of them by position, by their names.
struct Listed {
    names: &'static [&'static str],
    values: Vec<Expr>,
}

impl Listed {
    fn from_values(call: &MatchedCall, names: &'static [&'static str], values: Vec<Expr>) -> Result<Listed> {
        match values.len() == names.len() {
            true => Ok(Listed { names, values }),
            false => call.fail_with(
                format!("takes {} arguments, found {}", names.len(), values.len()),
                format!("they are {}", names.join(", ")),
            ),
        }
    }

    fn get(&self, name: &str) -> &Expr {
        let place = self.names.iter().position(|n| *n == name);
        &self.values[place.expect("the names that are asked for are those of the function's own list")]
    }

    /// A text among them; empty where it is none.
    fn text(&self, name: &str) -> &str {
        self.get(name).as_str().unwrap_or_default()
    }

    fn needed_text(&self, call: &MatchedCall, name: &str) -> Result<&str> {
        match self.get(name).as_str() {
            Some(text) => Ok(text),
            None => call.fail(format!("{name} must be a string")),
        }
    }

    /// Pointers to `count` registers from a pointer and an offset on.
    fn registers(&self, [pointer, offset]: [&str; 2], count: usize, dtype: DType) -> Vec<Expr> {
        registers(self.get(pointer), self.get(offset), count, dtype)
    }
}

/// The arguments by position, after a dtype that may be left out.
fn positional(call: &MatchedCall, names: &'static [&'static str]) -> Result<(Option<DType>, Listed)> {
    let mut values = call.rest_args()?;
    let dtype = match &values[..] {
        [first, ..] if values.len() == names.len() + 1 => first.as_str().map(str::to_string),
        _ => None,
    };
    if dtype.is_some() {
        values.remove(0);
    }
    let dtype = dtype.and_then(|name| name.parse().ok());
    Ok((dtype, Listed::from_values(call, names, values)?))
}

/// The number of bytes of the element that a pointer points to.
fn element_bytes(pointer: &Expr) -> i128 {
    match convert::expr_type(pointer) {
        Type::Pointer { element, .. } if !element.is_void() => {
            (element.bits as i128 * element.lanes as i128 / 8).max(1)
        }
        _ => 1,
    }
}

/// A pointer advanced by elements and bytes, to a dtype.
fn moved(pointer: &Expr, offset: &Expr, element: i128, bytes: i128, dtype: DType) -> Expr {
    let scale = Expr::constant(offset.dtype, element);
    let distance = fold::add(
        fold::mul(offset.clone(), scale),
        Expr::constant(offset.dtype, bytes),
    );
    let annotation = Expr::call(Op::TypeAnnotation, dtype, vec![]);
    let moved = Op::PtrByteOffset.call().set("data", pointer);
    let moved = moved.set("byte_offset", distance).set("dtype", annotation);
    moved.build()
}

/// Pointers to `count` consecutive registers.
fn registers(pointer: &Expr, offset: &Expr, count: usize, dtype: DType) -> Vec<Expr> {
    let (element, bytes) = (element_bytes(pointer), i128::from(dtype.bits / 8));
    (0..count)
        .map(|i| moved(pointer, offset, element, bytes * i as i128, dtype))
        .collect()
}

fn node(call: &MatchedCall, op: Op, args: Vec<Expr>) -> Result<Value> {
    super::rows::checked(call, op, args)
}

fn cp_async(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let names = &["dst_ptr", "dst_offset", "src_ptr", "src_offset", "cp_size"];
    // Offsets count elements of the given dtype, or of the pointers' element type.
    let (dtype, args) = positional(call, names)?;
    let place = |pointer: &str, offset: &str| {
        let pointer = args.get(pointer);
        let bytes = dtype.map_or(element_bytes(pointer), |d| i128::from(d.bits) / 8);
        moved(pointer, args.get(offset), bytes, 0, DType::UINT8)
    };
    let copy = Op::PtxCpAsync
        .call()
        .set("dst_ptr", place("dst_ptr", "dst_offset"))
        .set("src_ptr", place("src_ptr", "src_offset"))
        .set("cp_size", args.get("cp_size"))
        .set("has_cache_policy", 0);
    node(call, Op::PtxCpAsync, copy.arguments())
}

fn ldmatrix(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let names = &[
        "trans",
        "num",
        "dtype",
        "local_ptr",
        "local_offset",
        "smem_ptr",
        "smem_offset",
    ];
    let mut values = call.rest_args()?;
    if values.len() == names.len() + 1 {
        values.remove(0);
    }
    let args = Listed::from_values(call, names, values)?;
    let count = args.get("num").as_int().unwrap_or(0);
    let count = usize::try_from(count).unwrap_or(0).min(4);
    let memory = args.get("smem_ptr");
    let bytes = element_bytes(memory);
    let load = Op::PtxLdmatrix
        .call()
        .set("trans", set(args.get("trans")))
        .set("num", args.get("num"))
        .set("dtype", args.get("dtype"))
        .set(
            "smem_ptr",
            moved(memory, args.get("smem_offset"), bytes, 0, DType::UINT8),
        )
        .list(
            "dst",
            args.registers(["local_ptr", "local_offset"], count, DType::UINT32),
        );
    node(call, Op::PtxLdmatrix, load.arguments())
}

fn arrive_noinc(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let space = call.text_or("space", "shared::cta")?;
    let arrive = Op::PtxCpAsyncMbarrierArrive
        .call()
        .set("bar", call.argument("bar")?)
        .set("noinc", true)
        .set("space", &*space);
    node(call, Op::PtxCpAsyncMbarrierArrive, arrive.arguments())
}

fn set(e: &Expr) -> Expr {
    Expr::bool(e.as_int().is_some_and(|v| v != 0))
}

fn mma(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let names = &[
        "shape", "a_layout", "b_layout", "a_dtype", "b_dtype", "c_dtype", "a_ptr", "a_offset", "b_ptr",
        "b_offset", "c_ptr", "c_offset", "saturate",
    ];
    let mut values = call.rest_args()?;
    let is_shape = |e: &Expr| e.as_str().is_some_and(|s| s.starts_with('m') && s.contains('n'));
    if values.len() > names.len() && !values.iter().take(1).all(is_shape) {
        values.remove(0);
    }
    let operator = match values.len() > names.len() {
        true => values.pop(),
        false => None,
    };
    let args = Listed::from_values(call, names, values)?;
    let dtypes = ["a_dtype", "b_dtype", "c_dtype"].map(|name| args.text(name));
    let [a_dtype, b_dtype, c_dtype] = dtypes;
    let shape = args.needed_text(call, "shape")?;
    let [c, a, b] = match dense_registers(shape, a_dtype, b_dtype, c_dtype) {
        Ok(count) => count,
        Err(message) => return call.fail(message),
    };
    let (c_type, a_type) = (register_dtype(c_dtype), register_dtype(a_dtype));
    let accumulators = args.registers(["c_ptr", "c_offset"], c, c_type);
    let product = Op::PtxMma
        .call()
        .set("shape", args.get("shape"))
        .set("a_layout", args.get("a_layout"))
        .set("b_layout", args.get("b_layout"))
        .set("d_type", args.get("c_dtype"))
        .set("a_type", args.get("a_dtype"))
        .set("b_type", args.get("b_dtype"))
        .set("c_type", args.get("c_dtype"))
        .list("d_ptrs", accumulators.clone())
        .list("a_ptrs", args.registers(["a_ptr", "a_offset"], a, a_type))
        .list("b_ptrs", args.registers(["b_ptr", "b_offset"], b, a_type))
        .list("c_ptrs", accumulators)
        .set("saturate", set(args.get("saturate")))
        .set_if("bit_op", operator);
    node(call, Op::PtxMma, product.arguments())
}

fn mma_sp(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let names = &[
        "shape",
        "a_layout",
        "b_layout",
        "a_dtype",
        "b_dtype",
        "c_dtype",
        "a_ptr",
        "a_index",
        "b_ptr",
        "b_index",
        "c_ptr",
        "c_index",
        "metadata",
        "meta_index",
        "sparse_selector",
        "saturate",
    ];
    let (_, args) = positional(call, names)?;
    let (shape, a, b, c) = (
        args.needed_text(call, "shape")?,
        args.needed_text(call, "a_dtype")?,
        args.needed_text(call, "b_dtype")?,
        args.needed_text(call, "c_dtype")?,
    );
    let [acc_count, a_count, b_count] = match sparse_registers(shape, a, b, c) {
        Ok(count) => count,
        Err(message) => return call.fail(message),
    };
    let metadata = args.get("metadata");
    let bytes = element_bytes(metadata);
    let metadata = moved(metadata, args.get("meta_index"), bytes, 0, DType::UINT32);
    let product = Op::PtxMmaSp
        .call()
        .set("shape", shape)
        .set("a_type", a)
        .set("b_type", b)
        .set("c_type", c)
        .set("selector", args.get("sparse_selector"))
        .set("saturate", set(args.get("saturate")))
        .set("metadata", metadata)
        .list(
            "acc",
            args.registers(["c_ptr", "c_index"], acc_count, register_dtype(c)),
        )
        .list(
            "a_regs",
            args.registers(["a_ptr", "a_index"], a_count, DType::UINT32),
        )
        .list(
            "b_regs",
            args.registers(["b_ptr", "b_index"], b_count, DType::UINT32),
        );
    node(call, Op::PtxMmaSp, product.arguments())
}

/// The address in shared memory at which the leading block of a pair has the same variable: bit 24 is the rank in the pair.
fn leader_address(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let address = Expr::call(
        Op::CudaCvtaGenericToShared,
        DType::UINT32,
        vec![call.argument("ptr")?],
    );
    let mask = Expr::constant(DType::UINT32, 0xfeff_ffff);
    Ok(Value::Expr(
        Expr::call(Op::BitwiseAnd, DType::UINT32, vec![address, mask]).at(call.span),
    ))
}

fn official_event(_: &mut Interpreter, call: &mut MatchedCall) -> Result<Value> {
    let source = call.text_or("source_code", "")?;
    if source.is_empty() {
        return call.fail_with(
            "the tracer gives the text of its events",
            "pass it: source_code=…, a function tvm_builtin_iket_official_event",
        );
    }
    let mut args = vec![
        Expr::string("tvm_builtin_iket_official_event"),
        Expr::string(source),
        call.argument("event_id")?,
    ];
    if call.get("payload").is_some() {
        args.push(call.argument("payload")?);
    }
    Ok(Value::Expr(
        Expr::call(Op::CudaFuncCall, DType::UINT32, args).at(call.span),
    ))
}
