//! Functions of TVM's CUDA back end that kernel files of TVM 0.27 import: descriptors of matrices as numbers, and the result
//! of a cancelled launch.

use super::args::{self, Args};
use super::{Interpreter, Value};
use crate::diagnostic::{Result, error};
use crate::intrin::rows::tcgen05::Instruction;
use crate::intrin::{Op, Operands};
use crate::ir::{DType, Expr, ExprKind, Stmt};
use crate::source::Span;

/// The parameters of the encoders, with their defaults as numbers.
const DENSE: &[(&str, Option<i128>)] = &[
    ("M", None),
    ("N", None),
    ("K", None),
    ("d_dtype", None),
    ("a_dtype", None),
    ("b_dtype", None),
    ("trans_a", None),
    ("trans_b", None),
    ("cta_group", Some(1)),
    ("neg_a", Some(0)),
    ("neg_b", Some(0)),
    ("sat_d", Some(0)),
    ("is_sparse", Some(0)),
];
const SCALED: &[(&str, Option<i128>)] = &[
    ("M", None),
    ("N", None),
    ("K", None),
    ("d_dtype", None),
    ("a_dtype", None),
    ("b_dtype", None),
    ("sf_dtype", None),
    ("trans_a", None),
    ("trans_b", None),
    ("cta_group", Some(1)),
    ("neg_a", Some(0)),
    ("neg_b", Some(0)),
    ("is_sparse", Some(0)),
];

/// The function of a path of TVM's modules.
pub(super) fn function(path: &str) -> Option<Value> {
    let name = path.strip_prefix("tvm.backend.cuda.")?;
    Some(match name {
        "cpp.descriptors.encode_smem_descriptor_base_uint64" => Value::builtin(path, shared_descriptor),
        "cpp.descriptors.encode_instr_descriptor_dense_uint32" => Value::builtin(path, |_, args, span| {
            instruction(Op::PtxTcgen05EncodeInstrDescriptor, DENSE, args, span)
        }),
        "cpp.descriptors.encode_instr_descriptor_block_scaled_uint32" => {
            Value::builtin(path, |_, args, span| {
                instruction(Op::PtxTcgen05EncodeInstrDescriptorBlockScaled, SCALED, args, span)
            })
        }
        "lang.clc.query_cancel_first_ctaid_x" => Value::builtin(path, query_cancel),
        _ => return None,
    })
}

/// A number that is known.
fn number_of(value: &Value) -> Option<i128> {
    match value {
        Value::Expr(e) => e.as_int(),
        value => value.as_int(),
    }
}

/// The descriptor of a matrix in shared memory without its address.
fn shared_descriptor(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let names = ["ldo", "sdo", "swizzle"];
    let [ldo, sdo, swizzle] = args.exactly("encode_smem_descriptor_base_uint64", names, span)?;
    let number = |(value, at): &(Value, Span)| match number_of(value) {
        Some(v) => Ok(v),
        None => error(at.or(span), "encode_smem_descriptor_base_uint64 takes integers"),
    };
    let (leading, stride) = (number(&ldo)? & 0x3fff, number(&sdo)? & 0x3fff);
    let layout = match number(&swizzle)? {
        0 => 0,
        4 => 1,
        n @ 1..=3 => 8 - 2 * n,
        n => return error(span, format!("swizzle is 0 to 4, found {n}")),
    };
    Ok(Value::Int(leading << 16 | stride << 32 | 1 << 46 | layout << 61))
}

/// The bits of an instruction descriptor, by the row that writes them in a kernel.
fn instruction(op: Op, parameters: &[(&'static str, Option<i128>)], args: Args, span: Span) -> Result<Value> {
    let params: Vec<_> = parameters
        .iter()
        .map(|(name, default)| match default {
            None => args::required(name),
            Some(_) => args::optional(name),
        })
        .collect();
    let bound = args.bind("encode_instr_descriptor", &params, span)?;
    let get = |name: &str| -> Expr {
        let alias = match name {
            "n_cta_groups" => "cta_group",
            "sfa_dtype" | "sfb_dtype" => "sf_dtype",
            name => name,
        };
        let Some(at) = parameters.iter().position(|(known, _)| *known == alias) else {
            return Expr::int32(0);
        };
        match &bound[at] {
            Some((Value::Str(text), _)) => Expr::string(&**text),
            Some((Value::DType(dtype), _)) => Expr::string(dtype.to_string()),
            Some((Value::Bool(set), _)) => Expr::int32((*set).into()),
            Some((value, _)) => Expr::constant(DType::INT32, number_of(value).unwrap_or(0)),
            None => Expr::constant(DType::INT32, parameters[at].1.unwrap_or(0)),
        }
    };
    let list: Vec<Expr> = op.row().args.iter().map(|arg| get(arg.name)).collect();
    let operands = Operands::read(op.row(), &list);
    match operands.and_then(|operands| Instruction::from_call(&operands).descriptor()) {
        Ok(bits) => Ok(Value::Int(bits.into())),
        Err(message) => error(span, format!("encode_instr_descriptor: {message}")),
    }
}

/// `query_cancel_first_ctaid_x(first, handle)`: writes the index of the first block of the cancelled cluster.
fn query_cancel(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let parameters = [
        args::required("first_ctaid_x"),
        args::required("handle"),
        args::keyword("use_ld_acquire"),
    ];
    let bound = args.bind("query_cancel_first_ctaid_x", &parameters, span)?;
    let acquires = !matches!(&bound[2], Some((Value::Bool(false), _)));
    let (Some((Value::Expr(first), _)), Some((Value::Expr(handle), _))) = (&bound[0], &bound[1]) else {
        return error(
            span,
            "query_cancel_first_ctaid_x takes a uint32 variable and a pointer",
        );
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &first.kind else {
        return error(
            span,
            "query_cancel_first_ctaid_x writes a variable: T.local_scalar(\"uint32\")",
        );
    };
    let list = vec![handle.clone(), Expr::int32(acquires.into())];
    let value = Expr::call(Op::PtxClcQueryCancel, DType::UINT32, list).at(span);
    interp.emit(Stmt::store(
        buffer,
        indices.to_vec(),
        value.cast(buffer.dtype),
        span,
    ))?;
    Ok(Value::None)
}
