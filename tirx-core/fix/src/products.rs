//! What do the releases say differently about products of matrices and about copies that fill with zeros?
//!
//! 0.26 has the dtypes of a product of `tcgen05`, 0.27 its kind, which several dtypes share; the rest is in the descriptor of the
//! instruction. A copy by `cp.async` under a condition that fills with zeros is in 0.27 one whose source has no bytes.

use super::calls::Literal;
use super::given::{Given, value_of};
use tirx_ir::intrin::Op;
use tirx_ir::intrin::operands::Operands;
use tirx_ir::intrin::rows::tcgen05::mma_kind;
use tirx_ir::{BinOp, DType, Expr, ExprKind, Stmt};

/// The arguments of a product from which its kind follows.
pub(super) const DTYPES: &[&str] = &["d_dtype", "a_dtype", "b_dtype", "sfa_dtype", "sfb_dtype"];

/// Arguments of products that are zeros where 0.26 leaves them out; 0.27 wants them written: the sum that a product adds to, and the
/// lanes of the result that are not written.
pub(super) const ZEROS: &[&str] = &["c_ptrs", "disable_output_lane"];

fn is_tcgen05(script: &str) -> bool {
    script.starts_with("ptx.tcgen05.mma")
}

/// The slots that 0.27 has for the dtypes of a product, with their tokens; none for other operations.
pub(super) fn tokens(script: &str, given: &Given) -> Vec<(&'static str, String)> {
    if !is_tcgen05(script) {
        return Vec::new();
    }
    let text = |name: &str| match value_of(given, name).map(|value| value.known()) {
        Some(Some(Literal::Text(text))) => Some(text.as_str()),
        _ => None,
    };
    let (Some(d), Some(a), Some(b)) = (text("d_dtype"), text("a_dtype"), text("b_dtype")) else {
        return Vec::new();
    };
    let scales = text("sfa_dtype").zip(text("sfb_dtype"));
    let Ok(kind) = mma_kind(d, a, b, scales) else {
        return Vec::new();
    };
    let vector = match kind {
        "mxf8f6f4" => "scale_vec::1X",
        "mxf4" => "scale_vec::2X",
        _ => "scale_vec::4X",
    };
    let mut tokens = vec![("kind", format!("kind::{kind}"))];
    tokens.extend(scales.map(|_| ("vector", vector.to_string())));
    tokens
}

/// A product by its kind, in the place of its dtypes.
pub(super) fn by_kind(op: Op, args: &[Expr]) -> Option<Vec<Expr>> {
    if !is_tcgen05(op.row().script) {
        return None;
    }
    let read = Operands::read(op.row(), args).ok()?;
    let scales = read
        .get("sfa_dtype")
        .map(|_| (read.text("sfa_dtype"), read.text("sfb_dtype")));
    let kind = mma_kind(
        read.text("d_dtype"),
        read.text("a_dtype"),
        read.text("b_dtype"),
        scales,
    )
    .ok()?;
    let mut args = args.to_vec();
    for (at, arg) in op.row().args.iter().enumerate() {
        if DTYPES.contains(&arg.name) {
            *args.get_mut(at)? = Expr::string(kind);
        }
    }
    Some(args)
}

/// A copy of 0.26 that fills with zeros where a condition does not hold, in 0.27: the condition as it is, and compared with zero.
pub(super) fn filled(op: Op, given: &Given) -> Vec<String> {
    let text = |name: &str| value_of(given, name).map(|value| value.text.as_str());
    let literal = |name: &str| value_of(given, name).and_then(|value| value.known().cloned());
    let fills = op == Op::PtxCpAsync && literal("fill_mode") == Some(Literal::Text("zero".into()));
    let (true, Some(Literal::Int(size)), Some(condition)) = (fills, literal("cp_size"), text("predicate"))
    else {
        return Vec::new();
    };
    let (Some(to), Some(from)) = (text("dst_ptr"), text("src_ptr")) else {
        return Vec::new();
    };
    let prefetch = match literal("prefetch_size") {
        Some(Literal::Int(size)) => size,
        _ => -1,
    };
    let policy = text("cache_policy");
    let mnemonic = mnemonic_of_copy(size, prefetch, policy.is_some());
    let policy = policy.map_or(String::new(), |policy| format!(", {policy}"));
    let call = |condition: String| {
        let bytes = format!("T.if_then_else({condition}, T.uint32({size}), T.uint32(0))");
        format!("T.ptx[\"{mnemonic}\"]({to}, {from}, {size}, {bytes}{policy})")
    };
    vec![call(condition.to_string()), call(format!("({condition}) != 0"))]
}

/// A product whose weights stay in the tensor core, which 0.26 has as an argument and 0.27 as a mnemonic with a mask of columns.
pub(super) fn stationary(op: Op, given: &Given) -> Vec<String> {
    let is_set = |name: &str| {
        value_of(given, name).is_some_and(|value| !matches!(value.known(), Some(Literal::Int(0))))
    };
    if op != Op::PtxTcgen05Mma || !is_set("weight_stationary") {
        return Vec::new();
    }
    let Some((_, kind)) = tokens(op.row().script, given).into_iter().next() else {
        return Vec::new();
    };
    let text = |name: &str| value_of(given, name).map(|value| value.text.as_str());
    let operands = ["d_tmem_addr", "a_operand", "b_desc", "i_desc"].map(text);
    let [Some(d), Some(a), Some(b), Some(idesc)] = operands else {
        return Vec::new();
    };
    let adds = match value_of(given, "enable_input_d").map(|value| (value.literal.as_ref(), &value.text)) {
        None => vec!["True".into()],
        Some((Some(Literal::Int(number)), _)) => {
            vec![if *number == 0 { "False" } else { "True" }.to_string()]
        }
        Some((_, text)) => vec![text.clone(), format!("T.ptx.pred({text})")],
    };
    let pred = text("pred").map_or(String::new(), |pred| format!(", pred={pred}"));
    let mnemonic = format!("tcgen05.mma.ws.cta_group::1.{kind}");
    let call = |adds| format!("T.ptx[\"{mnemonic}\"]({d}, {a}, {b}, {idesc}, {adds}, T.uint64(0){pred})");
    adds.into_iter().map(call).collect()
}

/// Such a product as the instruction of 0.27.
pub(super) fn as_stationary(call: &Expr) -> Option<Stmt> {
    let args = call.as_call(Op::PtxTcgen05Mma)?;
    let read = Operands::read(Op::PtxTcgen05Mma.row(), args).ok()?;
    let kind = read.text("d_dtype");
    let is_other = read.int("weight_stationary") != Some(1)
        || read.int("scale_input_d") != Some(0)
        || read.int("cta_group") != Some(1)
        || read.get("pred").is_some();
    if is_other {
        return None;
    }
    let mut args = vec![Expr::string(format!("tcgen05.mma.ws.cta_group::1.kind::{kind}"))];
    for name in ["d_tmem_addr", "a_operand", "b_desc", "i_desc", "enable_input_d"] {
        let operand = read.get(name)?.clone();
        args.push(match (name, operand.as_int()) {
            ("enable_input_d", Some(number)) => Expr::bool(number != 0),
            ("enable_input_d", None) if !operand.dtype.is_bool() => {
                let zero = Expr::constant(operand.dtype, 0);
                Expr::binary(BinOp::Ne, operand, zero)
            }
            _ => operand,
        });
    }
    args.push(Expr::constant(DType::UINT64, 0));
    Some(Stmt::evaluate(
        Expr::call(Op::PtxInstruction, DType::VOID, args).at(call.span),
    ))
}

fn mnemonic_of_copy(size: i128, prefetch: i128, has_policy: bool) -> String {
    let level = if size == 16 { "cg" } else { "ca" };
    let mut mnemonic = format!("cp.async.{level}.shared.global");
    if has_policy {
        mnemonic.push_str(".L2::cache_hint");
    }
    if prefetch > 0 {
        mnemonic.push_str(&format!(".L2::{prefetch}B"));
    }
    mnemonic
}

/// Such a copy as the instruction of 0.27.
pub(super) fn as_filled(call: &Expr) -> Option<Stmt> {
    let args = call.as_call(Op::PtxCpAsync)?;
    let read = Operands::read(Op::PtxCpAsync.row(), args).ok()?;
    let condition = read
        .get("predicate")
        .filter(|_| read.text("fill_mode") == "zero")?;
    let holds = match &condition.kind {
        _ if condition.dtype.is_bool() => condition.clone(),
        ExprKind::Cast(inner) if inner.dtype.is_bool() => inner.clone(),
        _ => Expr::binary(BinOp::Ne, condition.clone(), Expr::constant(condition.dtype, 0)),
    };
    let size = read.int("cp_size")?;
    let number = |value| Expr::constant(DType::UINT32, value);
    let bytes = Expr::call(
        Op::IfThenElse,
        DType::UINT32,
        vec![holds, number(size), number(0)],
    );
    let has_policy = read.int("has_cache_policy") == Some(1);
    let mnemonic = mnemonic_of_copy(size, read.int("prefetch_size")?, has_policy);
    let mut args = vec![Expr::string(mnemonic)];
    args.extend(
        ["dst_ptr", "src_ptr", "cp_size"]
            .iter()
            .filter_map(|name| read.get(name).cloned()),
    );
    args.push(bytes);
    args.extend(read.get("cache_policy").filter(|_| has_policy).cloned());
    Some(Stmt::evaluate(
        Expr::call(Op::PtxInstruction, DType::VOID, args).at(call.span),
    ))
}
