//! Rows of 0.26 that give a value, where 0.27 has an instruction that writes it.

use super::backwards::{Given, value_of};
use super::calls::Literal;
use crate::intrin::Op;
use crate::intrin::mnemonic::call::SINK;
use crate::intrin::operands::Operands;
use crate::ir::{DType, Expr, ExprKind};

/// A row and the instruction that is the same.
struct SameValue {
    op: Op,
    /// The mnemonic in parts: each with the flag without which it is left out, or none.
    mnemonic: &'static [(&'static str, &'static str)],
    /// The row's arguments that are its operands, in their order.
    operands: &'static [&'static str],
}

const SAME: &[SameValue] = &[
    SameValue {
        op: Op::PtxExp2,
        mnemonic: &[("ex2.approx.ftz.f32", "")],
        operands: &["x"],
    },
    SameValue {
        op: Op::PtxRcp,
        mnemonic: &[("rcp.approx.ftz.f32", "")],
        operands: &["x"],
    },
    SameValue {
        op: Op::PtxMaxF32,
        mnemonic: &[("max", ""), (".ftz", "ftz"), (".NaN", "nan"), (".f32", "")],
        operands: &["a", "b"],
    },
    SameValue {
        op: Op::PtxReduce3MaxF32,
        mnemonic: &[("max.f32", "")],
        operands: &["a", "b", "c"],
    },
    SameValue {
        op: Op::PtxReduce3MinF32,
        mnemonic: &[("min.f32", "")],
        operands: &["a", "b", "c"],
    },
    SameValue {
        op: Op::PtxAddRnF32Bf16,
        mnemonic: &[("add.rn.f32.bf16", "")],
        operands: &["x", "acc"],
    },
];

impl SameValue {
    fn of(op: Op) -> Option<&'static SameValue> {
        SAME.iter().find(|same| same.op == op)
    }

    fn mnemonic(&self, is_set: impl Fn(&str) -> bool) -> String {
        let parts = self.mnemonic.iter();
        let parts = parts.filter(|(_, flag)| flag.is_empty() || is_set(flag));
        parts.map(|(part, _)| *part).collect()
    }
}

/// The call in 0.27 that writes to `target` what a call with these arguments gives.
pub(super) fn written(op: Op, given: &Given, target: &str) -> Option<String> {
    let same = SameValue::of(op)?;
    let is_set =
        |flag: &str| value_of(given, flag).is_some_and(|value| value.literal != Some(Literal::Int(0)));
    let mnemonic = same.mnemonic(is_set);
    let mut arguments = vec![target];
    for name in same.operands {
        arguments.push(&value_of(given, name)?.text);
    }
    Some(format!("T.ptx.{mnemonic}({})", arguments.join(", ")))
}

/// The instruction of 0.27 in the place of a call, as if it had a value.
pub(super) fn as_instruction(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let same = SameValue::of(op)?;
    let read = Operands::read(op.row(), args).ok()?;
    let mnemonic = same.mnemonic(|flag| read.int(flag) != Some(0));
    let mut args = vec![Expr::string(mnemonic), Expr::string(SINK)];
    for name in same.operands {
        args.push(read.get(name)?.clone());
    }
    let op = Op::PtxInstruction;
    Some(Expr::new(ExprKind::Call { op, args }, call.dtype, call.span))
}

/// Sums and products of two float32 in one register.
const PACKED: &[(Op, &str)] = &[
    (Op::PtxAddF32x2, "add"),
    (Op::PtxSubF32x2, "sub"),
    (Op::PtxMulF32x2, "mul"),
    (Op::PtxFmaF32x2, "fma"),
];

/// The value of such a call, also of one that is written to a variable, as the instruction of 0.27.
pub(super) fn of_packed(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let (_, family) = PACKED.iter().find(|(packed, _)| *packed == op)?;
    let read = Operands::read(op.row(), args).ok()?;
    let mut mnemonic = family.to_string();
    match read.text("rounding") {
        "" => {}
        rounding => mnemonic.extend([".", rounding]),
    }
    if read.int("ftz") == Some(1) {
        mnemonic.push_str(".ftz");
    }
    let mut args = vec![Expr::string(mnemonic + ".f32x2"), Expr::string(SINK)];
    args.extend(["a", "b", "c"].iter().filter_map(|name| read.get(name).cloned()));
    let op = Op::PtxInstruction;
    Some(Expr::new(ExprKind::Call { op, args }, DType::UINT64, call.span))
}
