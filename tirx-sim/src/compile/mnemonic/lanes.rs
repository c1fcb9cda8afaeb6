//! Values that pass between the lanes of a warp.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, binary, one, operand};

pub(super) fn values(call: &InstructionCall) -> Option<Written> {
    let tokens = &call.tokens;
    let get = |name: &str| operand(call, name);
    let word = |n: i128| Expr::constant(DType::UINT32, n);
    let ballot = |predicate: Expr| -> Option<Expr> {
        Some(Expr::call(
            Op::CudaBallotSync,
            DType::UINT32,
            vec![get("membermask")?, predicate],
        ))
    };
    match tokens.instruction.family {
        // Others: see `exchange`.
        "shfl" if call.get("p").is_none() => {
            let op = match tokens.get("mode") {
                "idx" => Op::CudaShflSync,
                "up" => Op::CudaShflUpSync,
                "down" => Op::CudaShflDownSync,
                _ => Op::CudaShflXorSync,
            };
            let width = Expr::int32(segment_of(call)?);
            let args = vec![get("membermask")?, get("a")?, get("b")?.cast(DType::INT32), width];
            one(Expr::call(op, DType::UINT32, args))
        }
        "vote" => {
            let predicate = call.get("a")?.clone();
            let zero = word(0);
            one(match tokens.get("mode") {
                "any" => binary(BinOp::Ne, ballot(predicate)?, zero),
                "all" => binary(BinOp::Eq, ballot(Expr::logical_not(predicate))?, zero),
                "uni" => {
                    let none = binary(BinOp::Eq, ballot(predicate.clone())?, zero.clone());
                    let all = binary(BinOp::Eq, ballot(Expr::logical_not(predicate))?, zero);
                    binary(BinOp::Or, none, all)
                }
                _ => ballot(predicate)?,
            })
        }
        "activemask" => one(Expr::call(Op::CudaActivemask, DType::UINT32, vec![])),
        "elect" => {
            if call.get("membermask")?.as_int() != Some(0xffff_ffff) {
                return None;
            }
            let elected = Expr::call(Op::PtxElectSync, DType::UINT32, vec![]);
            let lanes = ballot(Expr::bool(true))?;
            let first = Expr::call(Op::CudaFfsU32, DType::INT32, vec![lanes]).cast(DType::UINT32);
            Some(vec![
                ("d", vec![binary(BinOp::Sub, first, word(1))]),
                ("p", vec![binary(BinOp::Ne, elected, word(0))]),
            ])
        }
        _ => None,
    }
}

/// The size of the groups where it is known.
fn segment_of(call: &InstructionCall) -> Option<i32> {
    let c = call.get("c")?.as_int()?;
    let clamp = if call.tokens.get("mode") == "up" { 0 } else { 31 };
    let width = 32 - (c >> 8 & 31);
    let whole = c & 31 == clamp && width & (width - 1) == 0;
    i32::try_from(width).ok().filter(|_| whole)
}
