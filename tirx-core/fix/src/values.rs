//! Rows of 0.26 that give a value, where 0.27 has an instruction that writes it.

use super::calls::{Literal, OldCall, StatementForm};
use super::edit::Edit;
use super::given::{Given, value_of};
use super::registers;
use tirx_ir::at;
use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::call::SINK;
use tirx_ir::intrin::operands::Operands;
use tirx_ir::intrin::row::ArgKind;
use tirx_ir::{DType, Expr, ExprKind, Stmt};

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
    fn from_op(op: Op) -> Option<&'static SameValue> {
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
    let same = SameValue::from_op(op)?;
    let is_set =
        |flag: &str| value_of(given, flag).is_some_and(|value| value.known() != Some(&Literal::Int(0)));
    let mnemonic = same.mnemonic(is_set);
    let mut arguments = vec![target];
    for name in same.operands {
        arguments.push(&value_of(given, name)?.text);
    }
    Some(format!("T.ptx.{mnemonic}({})", arguments.join(", ")))
}

/// The instruction of 0.27 in the place of a call, as if it had a value.
pub(super) fn as_instruction(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let same = SameValue::from_op(op)?;
    let read = Operands::read(op.row(), args).ok()?;
    let mnemonic = same.mnemonic(|flag| read.int(flag) != Some(0));
    let mut args = vec![Expr::string(mnemonic), Expr::string(SINK)];
    for name in same.operands {
        args.push(read.get(name)?.clone());
    }
    let op = Op::PtxInstruction;
    Some(Expr::new(ExprKind::Call { op, args }, call.dtype, call.span))
}

/// The calls in 0.27 that are a load to an element with its order in the name.
pub(super) fn acquiring(op: Op, given: &Given) -> Vec<String> {
    if op != Op::PtxLdGlobalAcquire {
        return Vec::new();
    }
    let (Some(to), Some(from)) = (value_of(given, "res"), value_of(given, "addr")) else {
        return Vec::new();
    };
    let call = |ty| format!("T.ptx.ld.acquire.gpu.global_.{ty}({}, {})", to.text, from.text);
    ["b32", "b64"].map(call).to_vec()
}

/// Such a load as the assignment of its value.
pub(super) fn as_acquired(call: &Expr) -> Option<Stmt> {
    let args = call.as_call(Op::PtxLdGlobalAcquire)?;
    let read = Operands::read(Op::PtxLdGlobalAcquire.row(), args).ok()?;
    let element = &read.get("res")?.as_call(Op::AddressOf)?[at!(AddressOf.obj)];
    let ExprKind::BufferLoad { buffer, indices, .. } = &element.kind else {
        return None;
    };
    let load = Op::PtxLdAcquire
        .call()
        .set("addr", read.get("addr")?)
        .set("return_type", &*buffer.dtype.to_string())
        .set("ptx_type", if buffer.dtype.bits == 64 { "b64" } else { "b32" })
        .set("scope", "gpu")
        .set("space", "global");
    Some(Stmt::store(
        buffer,
        indices.clone(),
        load.build().at(call.span),
        call.span,
    ))
}

/// A load of an integer that is converted to the other signedness, as the load of that one: 0.27 writes either to a variable.
pub(super) fn of_dtype(value: &Expr, dtype: DType) -> Option<Expr> {
    let ExprKind::Call { op, args } = &value.kind else {
        return None;
    };
    let is_same = value.dtype.is_uint() && dtype.is_int() && value.dtype.bits == dtype.bits;
    if !is_same || op.info().family != "memory" || op.row().arg("return_type").is_none() {
        return None;
    }
    let read = Operands::read(op.row(), args).ok()?;
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match (arg.kind, values) {
            (ArgKind::Has(_) | ArgKind::Count(_), _) | (_, []) => other,
            _ if arg.name == "return_type" => other.set("return_type", &*dtype.to_string()),
            _ => other.list(arg.name, values.to_vec()),
        };
    }
    Some(other.build().at(value.span))
}

/// An operand of which 0.27 takes the bits: the value whose bits they are.
pub(super) fn as_bits(arg: &Expr) -> Expr {
    match &arg.kind {
        ExprKind::Call {
            op: Op::Reinterpret,
            args,
        } if arg.dtype.is_uint() => args[at!(Reinterpret.value)].clone(),
        _ => arg.clone(),
    }
}

/// Sums and products of two float32 in one register.
const PACKED: &[(Op, &str)] = &[
    (Op::PtxAddF32x2, "add"),
    (Op::PtxSubF32x2, "sub"),
    (Op::PtxMulF32x2, "mul"),
    (Op::PtxFmaF32x2, "fma"),
];

/// A sum or product that 0.26 writes over two float32, given by the address of the first: in 0.27 a variable and its two halves.
pub(super) fn in_pair(call: &OldCall, op: Op, given: &Given, temporary: &str) -> Vec<Edit> {
    let (Some((_, family)), Some(around)) = (PACKED.iter().find(|(packed, _)| *packed == op), &call.around)
    else {
        return Vec::new();
    };
    let halves = value_of(given, "d_addr").and_then(|to| to.consecutive(2));
    let (StatementForm::Call, Some(halves), false) = (&around.form, halves, around.is_plain) else {
        return Vec::new();
    };
    let mut mnemonic = family.to_string();
    match value_of(given, "rounding").map(|value| value.known()) {
        Some(Some(Literal::Text(rounding))) if !rounding.is_empty() => mnemonic.extend([".", rounding]),
        _ => {}
    }
    if value_of(given, "ftz").is_some_and(|value| value.known() == Some(&Literal::Int(1))) {
        mnemonic.push_str(".ftz");
    }
    let operands = ["a", "b", "c"].iter().filter_map(|name| value_of(given, name));
    let operands: Vec<String> = operands
        .map(|value| format!("T.reinterpret(\"uint64\", {})", value.text))
        .collect();
    vec![Edit::Statement(vec![
        format!("{temporary}: T.uint64"),
        format!("T.ptx.{mnemonic}.f32x2({temporary}, {})", operands.join(", ")),
        format!(
            "T.ptx.mov.b64({}, {}, {temporary})",
            halves[0].text, halves[1].text
        ),
    ])]
}

/// Such a sum or product over two float32 as the instruction that takes a register apart.
pub(super) fn as_halves(call: &Expr) -> Option<Stmt> {
    let ExprKind::Call { op, args } = &call.kind else {
        return None;
    };
    let value = of_packed(*op, args, call)?;
    let read = Operands::read(op.row(), args).ok()?;
    let to = read.get("d_addr")?;
    let element = &to.as_call(Op::AddressOf)?[at!(AddressOf.obj)];
    let ExprKind::BufferLoad { buffer, .. } = &element.kind else {
        return None;
    };
    if buffer.dtype != DType::FLOAT32 {
        return None;
    }
    let mut args = vec![Expr::string("mov.b64")];
    args.extend(registers::consecutive(to, 2)?);
    args.push(value);
    Some(Stmt::evaluate(
        Expr::call(Op::PtxInstruction, DType::VOID, args).at(call.span),
    ))
}

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
    let operands = ["a", "b", "c"].iter().filter_map(|name| read.get(name));
    args.extend(operands.map(as_bits));
    let op = Op::PtxInstruction;
    Some(Expr::new(ExprKind::Call { op, args }, DType::UINT64, call.span))
}
