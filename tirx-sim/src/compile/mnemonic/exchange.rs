//! Exchanges between lanes whose results depend on who takes part: matches, reductions over a mask, shuffles that tell whether
//! their source is in range, and the transposition of a matrix.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{BinOp, DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::simulated::reasons;
use super::{and, as_dtype, binary, lanes, left, or, right, word, xor};
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::ShuffleMode;

impl Compiler<'_> {
    /// The lanes that have the same value; for `.all` those of the mask if they all have.
    pub(super) fn match_lanes(&mut self, call: &InstructionCall) -> Result<()> {
        let mask = self.named_operand(call, "membermask")?;
        let [a] = self.operands(call, ["a"])?;
        let value = self.value(&a)?;
        let same = self.vote(ShuffleMode::Match, mask, value)?;
        let same = self.known(DType::UINT32, vec![same]);
        if call.tokens.has("any") {
            return self.write_one(call, same);
        }
        let yes = Expr::bool(true);
        let here = Expr::call(Op::CudaBallotSync, DType::UINT32, vec![mask.clone(), yes]);
        let here = self.value(&here)?;
        let here = self.known(DType::UINT32, vec![here]);
        let all = binary(BinOp::Eq, same, here.clone());
        let zero = word(0);
        let mut written = vec![("d", vec![Expr::select(all.clone(), here, zero)])];
        if call.get("p").is_some() {
            written.push(("p", vec![all]));
        }
        self.write(call, written)
    }

    /// A reduction over the lanes of a mask.
    pub(super) fn reduce_lanes(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let mask = self.named_operand(call, "membermask")?;
        let [a] = self.operands(call, ["a"])?;
        let dtype = a.dtype;
        let kind = self.kind(dtype)?;
        let op = match (tokens.get("op"), kind.is_float(), kind.is_signed()) {
            ("add", false, _) => Bin::Add,
            ("and", false, _) => Bin::And,
            ("or", false, _) => Bin::Or,
            ("xor", false, _) => Bin::Xor,
            ("min", true, _) => Bin::MinF,
            ("max", true, _) => Bin::MaxF,
            ("min", _, true) => Bin::MinS,
            ("max", _, true) => Bin::MaxS,
            ("min", ..) => Bin::MinU,
            ("max", ..) => Bin::MaxU,
            _ => return self.refuse(call, &reasons::OPERANDS),
        };
        let a = match tokens.has("abs") {
            true => {
                let bits = as_dtype(a, DType::UINT32);
                as_dtype(and(bits, word(0x7fff_ffff)), dtype)
            }
            false => a,
        };
        let value = self.value(&a)?;
        let a = self.known(dtype, vec![value]);
        let reduced = self.vote(ShuffleMode::Reduce(op), mask, value)?;
        let reduced = self.known(DType::UINT32, vec![reduced]);
        let result = as_dtype(reduced, dtype);
        let result = match tokens.has("NaN") {
            true => {
                let is_nan = Expr::call(Op::Isnan, DType::BOOL, vec![a]);
                let any = Expr::call(Op::CudaBallotSync, DType::UINT32, vec![mask.clone(), is_nan]);
                let any = binary(BinOp::Ne, any, word(0));
                let nan = as_dtype(word(0x7fff_ffff), dtype);
                Expr::select(any, nan, result)
            }
            false => result,
        };
        self.write_one(call, result)
    }

    /// A shuffle.
    pub(super) fn shuffle_by_mnemonic(&mut self, call: &InstructionCall) -> Result<()> {
        match lanes::shuffle(call) {
            Some(written) => self.write(call, written),
            None => self.shuffle_in_range(call),
        }
    }

    /// A shuffle that also tells whether its source lane is in range (PTX ISA, "shfl.sync").
    fn shuffle_in_range(&mut self, call: &InstructionCall) -> Result<()> {
        let mask = self.named_operand(call, "membermask")?;
        let [a, b, c] = self.operands(call, ["a", "b", "c"])?;
        let low = |e: Expr| and(e, word(31));
        let rank = self.thread_rank()?;
        let lane = low(self.known(DType::INT32, vec![rank]).cast(DType::UINT32));
        let segment = low(right(c.clone(), word(8)));
        let rest = xor(segment.clone(), word(31));
        let first = and(lane.clone(), segment);
        let last = or(first.clone(), and(low(c), rest.clone()));
        let by = low(b);
        let signed = |e: Expr| e.cast(DType::INT32);
        let (source, in_range) = match call.tokens.get("mode") {
            "up" => {
                let source = binary(BinOp::Sub, signed(lane.clone()), signed(by));
                let in_range = binary(BinOp::Ge, source.clone(), signed(last));
                (source, in_range)
            }
            mode => {
                let source = match mode {
                    "down" => binary(BinOp::Add, lane.clone(), by),
                    "bfly" => xor(lane.clone(), by),
                    _ => or(first, and(by, rest)),
                };
                let in_range = binary(BinOp::Le, source.clone(), last);
                (signed(source), in_range)
            }
        };
        let in_range = self.value(&in_range)?;
        let in_range = self.known(DType::BOOL, vec![in_range]);
        let source = Expr::select(in_range.clone(), source, signed(lane));
        let value = from_lane(mask.clone(), &a, source);
        let mut written = vec![("d", vec![value])];
        if call.get("p").is_some() {
            written.push(("p", vec![in_range]));
        }
        self.write(call, written)
    }

    /// The transposed matrix of 8 x 8 halves: a lane has two of a row, and takes one from each of two lanes.
    pub(super) fn transpose_matrix(&mut self, call: &InstructionCall) -> Result<()> {
        let [a] = self.operands(call, ["a"])?;
        let dtype = DType::UINT32;
        let rank = self.thread_rank()?;
        let lane = and(self.known(DType::INT32, vec![rank]).cast(dtype), word(31));
        let row = right(lane.clone(), word(2));
        let pair = and(lane, word(3));
        let take = |n: i128| {
            let source = or(
                left(or(left(pair.clone(), word(1)), word(n)), word(2)),
                right(row.clone(), word(1)),
            );
            let both = from_lane(word(0xffff_ffff), &a, source.cast(DType::INT32));
            let shift = left(and(row.clone(), word(1)), word(4));
            and(right(both, shift), word(0xffff))
        };
        let value = or(take(0), left(take(1), word(16)));
        self.write_one(call, value)
    }
}

/// The value of another lane.
fn from_lane(mask: Expr, value: &Expr, lane: Expr) -> Expr {
    let shuffle = Op::CudaShflSync.call().set("mask", mask).set("var", value);
    shuffle.set("lane", lane).set("width", 32).build()
}
