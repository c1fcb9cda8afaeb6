//! Several registers of a load or a store: 0.26 takes the address of the first, 0.27 each of them.

use super::calls::Literal;
use super::given::{Given, value_of};
use tirx_ir::at;
use tirx_ir::intrin::Op;
use tirx_ir::intrin::operands::Operands;
use tirx_ir::intrin::row::ArgKind;
use tirx_ir::{BinOp, DType, Expr, ExprKind, Stmt};

/// How many elements a modifier of vectors names: 4 of `v4`.
fn count_of(vec: &str) -> Option<usize> {
    vec.strip_prefix('v')?.parse().ok().filter(|count| *count > 1)
}

/// The arguments with each value of a store, where one address is given.
pub(super) fn of_elements(given: &Given) -> Option<Given> {
    let source = value_of(given, "src")?;
    let count = match value_of(given, "vec").and_then(|vec| vec.known()) {
        Some(Literal::Text(vec)) => count_of(vec).unwrap_or(1),
        _ => 1,
    };
    let values = source.consecutive(count)?;
    let mut other: Given = given.iter().filter(|(name, _)| *name != "src").cloned().collect();
    other.push(("values", values));
    Some(other)
}

/// A load or a store of several registers by each of them.
pub(super) fn one_by_one(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let row = op.row();
    if !matches!(op.info().family, "memory") || row.arg("vec").is_none() {
        return None;
    }
    let read = Operands::read(row, args).ok()?;
    let (name, new) = [("dst", "dst"), ("src", "values")]
        .into_iter()
        .find(|(name, new)| {
            row.arg(new).is_some() && matches!(read.get(name), Some(e) if e.dtype.is_handle())
        })?;
    // A load of one register gives its value.
    let count = count_of(read.text("vec")).or((name == "src").then_some(1))?;
    let (_, [first]) = read.each().find(|(arg, _)| arg.name == name)? else {
        return None;
    };
    let all = consecutive(first, count)?;
    let all: Vec<Expr> = match new {
        "values" => all
            .iter()
            .filter_map(|e| e.as_call(Op::AddressOf)?.get(at!(AddressOf.obj)).cloned())
            .collect(),
        _ => all,
    };
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match (arg.kind, values) {
            (ArgKind::Has(_) | ArgKind::Count(_), _) | (_, []) => other,
            _ if arg.name == name => other.list(new, all.clone()),
            _ => other.list(arg.name, values.to_vec()),
        };
    }
    Some(other.dtype(call.dtype).build().at(call.span))
}

/// A load whose value goes to one element, given by its address, as the assignment of the value.
pub(super) fn as_store(call: &Expr) -> Option<Stmt> {
    let ExprKind::Call { op, args } = &call.kind else {
        return None;
    };
    let row = op.row();
    if !matches!(op.info().family, "memory") || row.arg("vec").is_none() {
        return None;
    }
    let read = Operands::read(row, args).ok()?;
    let (_, [to]) = read.each().find(|(arg, _)| arg.name == "dst")? else {
        return None;
    };
    let element = &to.as_call(Op::AddressOf)?[at!(AddressOf.obj)];
    let ExprKind::BufferLoad { buffer, indices, .. } = &element.kind else {
        return None;
    };
    if count_of(read.text("vec")).is_some() {
        return None;
    }
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match (arg.kind, values) {
            (ArgKind::Has(_) | ArgKind::Count(_), _) | (_, []) => other,
            _ if arg.name == "dst" => other,
            _ => other.list(arg.name, values.to_vec()),
        };
    }
    let value = other.dtype(buffer.dtype).build().at(call.span);
    Some(Stmt::store(buffer, indices.clone(), value, call.span))
}

/// The addresses of an element and of those behind it.
pub(super) fn consecutive(first: &Expr, count: usize) -> Option<Vec<Expr>> {
    let [element] = first.as_call(Op::AddressOf)? else {
        return None;
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &element.kind else {
        return None;
    };
    let is_plain = match &buffer.layout {
        Some(layout) => layout.is_row_major(&buffer.shape),
        None => true,
    };
    if !is_plain || !buffer.strides.is_empty() {
        return None;
    }
    let (last, outer) = indices.split_last()?;
    let element = |at: usize| {
        let last = match (last.as_int(), at) {
            (_, 0) => last.clone(),
            (Some(number), _) => Expr::constant(last.dtype, number + at as i128),
            (None, _) => Expr::binary(BinOp::Add, last.clone(), Expr::constant(last.dtype, at as i128)),
        };
        Expr::load(buffer, [outer, &[last]].concat())
    };
    Some(
        (0..count)
            .map(|at| Expr::call(Op::AddressOf, DType::HANDLE, vec![element(at)]))
            .collect(),
    )
}
