//! Values that pass between the lanes of a warp.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};

use super::{Written, binary, one, operand, word};

/// The lanes of the mask for which a predicate holds.
fn ballot(call: &InstructionCall, predicate: Expr) -> Option<Expr> {
    let args = vec![operand(call, "membermask")?, predicate];
    Some(Expr::call(Op::CudaBallotSync, DType::UINT32, args))
}

/// A shuffle in groups whose size is known, without telling whether the source is in range.
pub(super) fn shuffle(call: &InstructionCall) -> Option<Written> {
    if call.get("p").is_some() {
        return None;
    }
    let get = |name: &str| operand(call, name);
    let op = match call.tokens.get("mode") {
        "idx" => Op::CudaShflSync,
        "up" => Op::CudaShflUpSync,
        "down" => Op::CudaShflDownSync,
        _ => Op::CudaShflXorSync,
    };
    let width = Expr::int32(segment_of(call)?);
    let args = vec![get("membermask")?, get("a")?, get("b")?.cast(DType::INT32), width];
    one(Expr::call(op, DType::UINT32, args))
}

pub(super) fn vote(call: &InstructionCall) -> Option<Written> {
    let predicate = call.get("a")?.clone();
    let is_empty = |lanes: Expr| binary(BinOp::Eq, lanes, word(0));
    let ballot = |predicate| ballot(call, predicate);
    one(match call.tokens.get("mode") {
        "any" => binary(BinOp::Ne, ballot(predicate)?, word(0)),
        "all" => is_empty(ballot(Expr::logical_not(predicate))?),
        "uni" => {
            let none = is_empty(ballot(predicate.clone())?);
            let all = is_empty(ballot(Expr::logical_not(predicate))?);
            binary(BinOp::Or, none, all)
        }
        _ => ballot(predicate)?,
    })
}

pub(super) fn active_mask(_: &InstructionCall) -> Option<Written> {
    one(Expr::call(Op::CudaActivemask, DType::UINT32, vec![]))
}

/// One lane of the mask, and whether this is it.
pub(super) fn elect(call: &InstructionCall) -> Option<Written> {
    let lanes = ballot(call, Expr::bool(true))?;
    let first = Expr::call(Op::CudaFfsU32, DType::INT32, vec![lanes]).cast(DType::UINT32);
    let leader = binary(BinOp::Sub, first, word(1));
    let elected = match call.get("membermask")?.is_int(0xffff_ffff) {
        true => {
            let elected = Expr::call(Op::PtxElectSync, DType::UINT32, vec![]);
            binary(BinOp::Ne, elected, word(0))
        }
        false => binary(BinOp::Eq, lane_id().cast(DType::UINT32), leader.clone()),
    };
    Some(vec![("d", vec![leader]), ("p", vec![elected])])
}

/// The thread's place in its warp.
pub(super) fn lane_id() -> Expr {
    let register = vec![Expr::int32(32), Expr::string("laneid")];
    Expr::call(Op::PtxFetchRegister, DType::INT32, register)
}

/// The size of the groups where it is known.
fn segment_of(call: &InstructionCall) -> Option<i32> {
    let c = call.get("c")?.as_int()?;
    let clamp = if call.tokens.get("mode") == "up" { 0 } else { 31 };
    let width = 32 - (c >> 8 & 31);
    let whole = c & 31 == clamp && width & (width - 1) == 0;
    i32::try_from(width).ok().filter(|_| whole)
}
