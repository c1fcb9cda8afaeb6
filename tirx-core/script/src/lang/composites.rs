//! Functions that expand to several operations, or that have an older form: registers as a pointer and an offset.

use super::super::eval::{Interpreter, Param, Value, optional, required};
use super::call::{Call, Function, function, variadic};
use super::convert;
use crate::diagnostic::Result;
use crate::intrin::Op;
use crate::intrin::rows::matrix::sparse_registers;
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

/// The arguments by position, without an optional leading dtype.
fn positional(call: &Call, count: usize, names: &str) -> Result<Vec<Expr>> {
    let mut args = call.rest_args()?;
    if args.len() == count + 1 && args[0].as_str().is_some() {
        args.remove(0);
    }
    match args.len() == count {
        true => Ok(args),
        false => call.fail_with(
            format!("takes {count} arguments, found {}", args.len()),
            format!("they are {names}"),
        ),
    }
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
    Expr::call(
        Op::PtrByteOffset,
        DType::HANDLE,
        vec![pointer.clone(), distance, annotation],
    )
}

/// Pointers to `count` consecutive registers.
fn registers(pointer: &Expr, offset: &Expr, count: usize, dtype: DType) -> Vec<Expr> {
    let (element, bytes) = (element_bytes(pointer), i128::from(dtype.bits / 8));
    (0..count)
        .map(|i| moved(pointer, offset, element, bytes * i as i128, dtype))
        .collect()
}

fn node(call: &Call, op: Op, args: Vec<Expr>) -> Result<Value> {
    super::rows::checked(call, op, args)
}

fn cp_async(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let all = call.rest_args()?;
    let said = all
        .first()
        .filter(|_| all.len() == 6)
        .and_then(|e| e.as_str())
        .map(str::to_string);
    let args = positional(call, 5, "dst_ptr, dst_offset, src_ptr, src_offset, cp_size")?;
    // Offsets count elements of the given dtype, or of the pointers' element type.
    let dtype: Option<DType> = said.and_then(|name| name.parse().ok());
    let bytes = |p: &Expr| dtype.map_or(element_bytes(p), |d| i128::from(d.bits) / 8);
    let list = vec![
        moved(&args[0], &args[1], bytes(&args[0]), 0, DType::UINT8),
        moved(&args[2], &args[3], bytes(&args[2]), 0, DType::UINT8),
        args[4].clone(),
        Expr::constant(DType::UINT64, 0),
        Expr::int32(0),
        Expr::int32(-1),
        Expr::int32(-1),
        Expr::string(""),
    ];
    node(call, Op::PtxCpAsync, list)
}

fn ldmatrix(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let names = "trans, num, dtype, local_ptr, local_offset, smem_ptr, smem_offset";
    let all = call.rest_args()?;
    let mut args = all;
    if args.len() == 8 {
        args.remove(0);
    }
    if args.len() != 7 {
        return call.fail_with(
            format!("takes 7 arguments, found {}", args.len()),
            format!("they are {names}"),
        );
    }
    let count = usize::try_from(args[1].as_int().unwrap_or(0)).unwrap_or(0).min(4);
    let set = args[0].as_int().unwrap_or(0) != 0;
    let mut list = vec![Expr::bool(set), args[1].clone(), args[2].clone()];
    list.push(moved(
        &args[5],
        &args[6],
        element_bytes(&args[5]),
        0,
        DType::UINT8,
    ));
    list.extend(registers(&args[3], &args[4], count, DType::UINT32));
    node(call, Op::PtxLdmatrix, list)
}

fn arrive_noinc(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let space = call.text_or("space", "shared::cta")?;
    let list = vec![call.argument("bar")?, Expr::bool(true), Expr::string(space)];
    node(call, Op::PtxCpAsyncMbarrierArrive, list)
}

/// A text among the arguments.
fn text<'a>(call: &Call, args: &'a [Expr], at: usize, name: &str) -> Result<&'a str> {
    match args.get(at).and_then(|e| e.as_str()) {
        Some(text) => Ok(text),
        None => call.fail(format!("{name} must be a string")),
    }
}

fn set(e: &Expr) -> Expr {
    Expr::bool(e.as_int().is_some_and(|v| v != 0))
}

fn mma(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let names = "shape, a_layout, b_layout, a_dtype, b_dtype, c_dtype, a_ptr, a_offset, b_ptr, b_offset, c_ptr, c_offset, saturate";
    let mut args = call.rest_args()?;
    let is_shape = |e: &Expr| e.as_str().is_some_and(|s| s.starts_with('m') && s.contains('n'));
    if args.len() > 13 && !args.first().is_some_and(is_shape) {
        args.remove(0);
    }
    let operator = if args.len() == 14 { args.pop() } else { None };
    if args.len() != 13 {
        return call.fail_with(
            format!("takes 13 arguments, found {}", args.len()),
            format!("they are {names}"),
        );
    }
    let shape = text(call, &args, 0, "shape")?;
    let count = |dtypes: [usize; 3]| {
        crate::intrin::rows::matrix::dense_registers(
            shape,
            args[dtypes[0]].as_str().unwrap_or_default(),
            args[dtypes[1]].as_str().unwrap_or_default(),
            args[dtypes[2]].as_str().unwrap_or_default(),
        )
    };
    let [c, a, b] = match count([3, 4, 5]) {
        Ok(count) => count,
        Err(message) => return call.fail(message),
    };
    let c_type = crate::intrin::rows::matrix::register_dtype(args[5].as_str().unwrap_or_default());
    let a_type = crate::intrin::rows::matrix::register_dtype(args[3].as_str().unwrap_or_default());
    let int = |n: usize| Expr::int32(n as i32);
    let mut list = vec![
        args[0].clone(),
        args[1].clone(),
        args[2].clone(),
        args[5].clone(),
        args[3].clone(),
        args[4].clone(),
        args[5].clone(),
        int(c),
        int(a),
        int(b),
        int(c),
        Expr::bool(false),
    ];
    list.extend(registers(&args[10], &args[11], c, c_type));
    list.extend(registers(&args[6], &args[7], a, a_type));
    list.extend(registers(&args[8], &args[9], b, a_type));
    list.extend(registers(&args[10], &args[11], c, c_type));
    list.push(set(&args[12]));
    list.extend(operator);
    node(call, Op::PtxMma, list)
}

fn mma_sp(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
    let args = positional(
        call,
        16,
        "shape, a_layout, b_layout, a_dtype, b_dtype, c_dtype, a_ptr, a_index, b_ptr, b_index, c_ptr, c_index, metadata, \
         meta_index, sparse_selector, saturate",
    )?;
    let (shape, a, b, c) = (
        text(call, &args, 0, "shape")?,
        text(call, &args, 3, "a_dtype")?,
        text(call, &args, 4, "b_dtype")?,
        text(call, &args, 5, "c_dtype")?,
    );
    let [acc_count, a_count, b_count] = match sparse_registers(shape, a, b, c) {
        Ok(count) => count,
        Err(message) => return call.fail(message),
    };
    let c_type = crate::intrin::rows::matrix::register_dtype(c);
    let mut list = vec![
        args[0].clone(),
        args[3].clone(),
        args[4].clone(),
        args[5].clone(),
        args[14].clone(),
        set(&args[15]),
        moved(&args[12], &args[13], element_bytes(&args[12]), 0, DType::UINT32),
    ];
    list.extend(registers(&args[10], &args[11], acc_count, c_type));
    list.extend(registers(&args[6], &args[7], a_count, DType::UINT32));
    list.extend(registers(&args[8], &args[9], b_count, DType::UINT32));
    node(call, Op::PtxMmaSp, list)
}

/// The address in shared memory at which the leading block of a pair has the same variable: bit 24 is the rank in the pair.
fn leader_address(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
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

fn official_event(_: &mut Interpreter, call: &mut Call) -> Result<Value> {
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
