//! When do two IRs of a kernel, one of each release, say the same?
//!
//! They are printed in a normal form and compared. It removes what the two languages write differently and the device does not see:
//!
//! - In 0.27 an instruction writes its value to a variable. One that `fix` introduces is read once, by the next statement: the value
//!   stands there again.
//! - A loop whose condition needs such a variable is `while True:` with a `break`: the condition is the loop's again.
//! - `T.ptx.tcgen05.ld(addr, row=r, col=c)` of 0.26 takes the address in parts: it is one, `T.cuda.get_tmem_addr(addr, r, c)`.
//! - `mapa` of a number takes a pointer in 0.26 and the address in shared memory in 0.27; arrivals at a barrier of another block take
//!   that block's number in 0.26, and what `mapa` gives in 0.27.
//! - An instruction under a predicate is a branch around it, which says in 0.27 that it is a predicate.
//! - 0.26 takes any integer where 0.27 wants the instruction's dtype: conversions to unsigned integers are left out. So are
//!   those of conditions to int32, which 0.27 makes of a condition that an instruction takes as a predicate.
//! - A number that stands for a condition is compared with zero in 0.27.
//! - Several registers of a load or store are given by the address of the first in 0.26.
//! - A product has dtypes in 0.26 and a kind in 0.27; a copy that fills with zeros has a source without bytes in 0.27.
//! - Dtypes have names of TVM and of PTX, and the block's own shared memory is `shared` and `shared::cta`.

use std::collections::BTreeSet;

use super::{given, products, registers, values};
use tirx_ir::abi::keys;
use tirx_ir::at;
use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::call::{InstructionCall, SINK};
use tirx_ir::intrin::mnemonic::syntax::Direction;
use tirx_ir::intrin::operands::Operands;
use tirx_ir::intrin::row::ArgKind;
use tirx_ir::{
    Attr, BinOp, Buffer, DType, Expr, ExprKind, IRModule, Mutator, Stmt, StmtKind, Visitor, print_func,
    print_stmt,
};

/// The text of modules by which they are compared. `temporaries` are the names of the variables that were introduced.
pub(super) fn of_modules(modules: &[IRModule], temporaries: &BTreeSet<String>) -> String {
    let mut out = String::new();
    for (name, func) in modules.iter().flat_map(|module| &module.functions) {
        let mut func = func.clone();
        func.body = Normal { temporaries }.stmt(&func.body);
        out.push_str(&comparable(&print_func(name, &func)));
    }
    out
}

/// The text of a statement by which it is compared.
pub(super) fn of_stmt(stmt: &Stmt, temporaries: &BTreeSet<String>) -> String {
    comparable(&print_stmt(&Normal { temporaries }.stmt(stmt)))
}

/// The names of dtypes in 0.26 and those of PTX, which rows take as the same.
pub(super) const DTYPES: &[(&str, &str)] = &[
    ("fp16", "f16"),
    ("fp32", "f32"),
    ("fp64", "f64"),
    ("float64", "f64"),
    ("int4", "s4"),
    ("uint4", "u4"),
    ("b1", "int1"),
    ("float16", "f16"),
    (".b16", "b16"),
    (".b8", "b8"),
    ("bfloat16", "bf16"),
    ("float32", "f32"),
    ("int8", "s8"),
    ("uint8", "u8"),
    ("int32", "s32"),
    ("float8_e4m3fn", "e4m3"),
    ("float8_e5m2", "e5m2"),
    ("float4_e2m1fn", "e2m1"),
    ("float8_e8m0fnu", "e8m0"),
];

/// Printed IR without the conversions of integers to unsigned ones, and with one name for each dtype.
fn comparable(printed: &str) -> String {
    const CONVERSIONS: &[&str] = &[
        "T.uint16(",
        "T.uint32(",
        "T.Cast(\"uint16\", ",
        "T.Cast(\"uint32\", ",
    ];
    let mut out = String::with_capacity(printed.len());
    // Of each open parenthesis, whether it is that of a conversion.
    let mut open = Vec::new();
    let mut rest = printed;
    while let Some(c) = rest.chars().next() {
        if let Some(number) = number_of(rest) {
            out.push_str(number);
            rest = &rest["T.uint64()".len() + number.len()..];
            continue;
        }
        if let Some(conversion) = CONVERSIONS
            .iter()
            .find(|conversion| rest.starts_with(**conversion))
        {
            open.push(true);
            rest = &rest[conversion.len()..];
            continue;
        }
        let dropped = match c {
            '(' => {
                open.push(false);
                false
            }
            ')' => open.pop().unwrap_or(false),
            _ => false,
        };
        if !dropped {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out = out.replace("\"shared::cta\"", "\"shared\"");
    for (name, ptx) in DTYPES {
        out = out.replace(&format!("\"{name}\""), &format!("\"{ptx}\""));
    }
    out
}

/// The number of `T.uint64(64)`.
fn number_of(text: &str) -> Option<&str> {
    let (number, _) = text.strip_prefix("T.uint64(")?.split_once(')')?;
    number.chars().all(|c| c.is_ascii_digit()).then_some(number)
}

/// The rows that take an address of tensor memory in parts, and the name of the address.
const IN_PARTS: &[(Op, &str)] = &[
    (Op::PtxTcgen05Ld, "src_addr"),
    (Op::PtxTcgen05St, "dst_addr"),
    (Op::PtxTcgen05Cp, "taddr"),
];

struct Normal<'a> {
    temporaries: &'a BTreeSet<String>,
}

impl Mutator for Normal<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let expr = self.walk_expr(expr);
        match &expr.kind {
            ExprKind::Call {
                op: Op::PtxMapa,
                args,
            } => as_instruction(args).unwrap_or(expr),
            ExprKind::Call { op, args } if IN_OTHER_BLOCKS.contains(op) => {
                here(*op, args, &expr).unwrap_or(expr)
            }
            ExprKind::Call { op, args } if takes_a_condition(*op) => {
                let args = products::by_kind(*op, args).unwrap_or_else(|| args.clone());
                let args = args.iter().map(number_of_condition).collect();
                Expr::new(ExprKind::Call { op: *op, args }, expr.dtype, expr.span)
            }
            ExprKind::Call { op, args } if given::same_as(*op) != *op => {
                let op = given::same_as(*op);
                let args = args.clone();
                Expr::new(ExprKind::Call { op, args }, expr.dtype, expr.span)
            }
            ExprKind::Call { op, args } if op.row().arg("mbar_is_shared_addr").is_some() => {
                multicast(*op, args, &expr).unwrap_or(expr)
            }
            // An address of another block's memory is a number in 0.26.
            ExprKind::Call {
                op: Op::Reinterpret,
                args,
            } if expr.dtype.is_handle() && args[at!(Reinterpret.value)].dtype == DType::UINT64 => {
                args[at!(Reinterpret.value)].clone()
            }
            ExprKind::Call { op: Op::PtxCvt, args } => {
                let args = args.iter().map(values::as_bits).collect();
                let op = Op::PtxCvt;
                Expr::new(ExprKind::Call { op, args }, expr.dtype, expr.span)
            }
            ExprKind::Call { op, args } => match IN_PARTS.iter().find(|(known, _)| known == op) {
                Some((_, address)) => with_one_address(*op, args, address, &expr).unwrap_or(expr),
                None if expr.dtype.is_void() => registers::one_by_one(*op, args, &expr).unwrap_or(expr),
                None => {
                    let value = values::as_instruction(*op, args, &expr);
                    value
                        .or_else(|| values::of_packed(*op, args, &expr))
                        .unwrap_or(expr)
                }
            },
            ExprKind::Cast(condition) if expr.dtype == DType::INT32 && condition.dtype == DType::BOOL => {
                condition.clone()
            }
            ExprKind::Cast(value) => values::of_dtype(value, expr.dtype).unwrap_or(expr),
            _ => expr,
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let stmt = self.walk_stmt(stmt);
        match &stmt.kind {
            StmtKind::Evaluate(call) => {
                let stored = as_store(call).or_else(|| packed_as_store(call));
                let stored = stored.or_else(|| values::as_halves(call));
                let stored = stored.or_else(|| registers::as_store(call));
                let stored = stored.or_else(|| values::as_acquired(call));
                let stored = stored.or_else(|| products::as_filled(call));
                let stored = stored.or_else(|| products::as_stationary(call));
                stored.or_else(|| guarded(call)).unwrap_or(stmt)
            }
            StmtKind::Attr(Attr { key, body, .. }) if &**key == keys::PREDICATE => body.clone(),
            StmtKind::Seq(list) => Stmt::seq(self.without_temporaries(list.clone())),
            StmtKind::If(condition, then, None) if condition.is_int(1) => then.clone(),
            StmtKind::While(condition, body) if condition.is_int(1) => match with_condition(body) {
                Some((condition, body)) => Stmt::new(StmtKind::While(condition, body), stmt.span),
                None => stmt,
            },
            _ => stmt,
        }
    }
}

/// The products that take a condition, whether to add to what is there: 0.26 takes any number for it.
fn takes_a_condition(op: Op) -> bool {
    let name = op.row().script;
    name.starts_with("ptx.tcgen05.mma") || name.starts_with("ptx.wgmma.mma_async")
}

/// A copy of a tensor without what 0.27 reads off its operands: whether the barrier is an address, and a mask of this block alone.
fn multicast(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let read = Operands::read(op.row(), args).ok()?;
    let is_alone = read.int("multicast") == Some(0);
    let mut args = args.to_vec();
    for (at, arg) in op.row().args.iter().enumerate() {
        let zero = arg.name == "mbar_is_shared_addr" || arg.name == "cta_mask" && is_alone;
        if zero && let Some(value) = args.get_mut(at) {
            *value = Expr::constant(value.dtype, 0);
        }
    }
    Some(Expr::new(ExprKind::Call { op, args }, call.dtype, call.span))
}

/// `x` of `x != 0`.
fn number_of_condition(arg: &Expr) -> Expr {
    match &arg.kind {
        ExprKind::Binary(BinOp::Ne, number, zero) if zero.is_int(0) => number.clone(),
        _ => arg.clone(),
    }
}

/// The rows that take the number of the block whose barrier is meant.
const IN_OTHER_BLOCKS: &[Op] = &[
    Op::PtxMbarrierArrive,
    Op::PtxMbarrierArriveExpectTx,
    Op::PtxMbarrierCompleteTx,
];

/// The instruction of 0.27 for `mapa` of a number, as if it had a value.
fn as_instruction(args: &[Expr]) -> Option<Expr> {
    let call = Operands::read(Op::PtxMapa.row(), args).ok()?;
    if call.text("ptx_type") != "u32" {
        return None;
    }
    Some(mapped(call.get("ptr")?, call.get("rank")?))
}

fn mapped(pointer: &Expr, rank: &Expr) -> Expr {
    let address = Op::CudaCvtaGenericToShared.call().set("ptr", pointer).build();
    let args = vec![
        Expr::string("mapa.shared::cluster.u32"),
        Expr::string(SINK),
        address,
        rank.clone(),
    ];
    Expr::call(Op::PtxInstruction, DType::UINT32, args)
}

fn is_mapped(value: &Expr) -> bool {
    matches!(&value.kind, ExprKind::Call { op: Op::PtxInstruction, args }
        if args[at!(PtxInstruction.mnemonic)].as_str() == Some("mapa.shared::cluster.u32"))
}

/// An arrival at a barrier of another block, by the barrier's address there.
fn here(op: Op, args: &[Expr], call: &Expr) -> Option<Expr> {
    let read = Operands::read(op.row(), args).ok()?;
    let there = mapped(read.get("bar")?, read.get("remote")?);
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match (arg.name, values) {
            ("bar", _) => other.set("bar", &there),
            ("space", _) => other.set("space", "shared::cluster"),
            ("remote", _) => other,
            ("has_remote", _) => other.set("has_remote", 0),
            (name, [one]) => other.set(name, one),
            _ => other,
        };
    }
    Some(other.build().at(call.span))
}

/// An instruction that writes one register, as the assignment of a value.
fn as_store(call: &Expr) -> Option<Stmt> {
    let ExprKind::Call {
        op: Op::PtxInstruction,
        args,
    } = &call.kind
    else {
        return None;
    };
    let read = InstructionCall::read(args).ok()?;
    let mut written = read
        .operands
        .iter()
        .filter(|(o, _)| o.direction != Direction::Read);
    let (Some((operand, [place])), None, None) = (written.next(), written.next(), read.predicate) else {
        return None;
    };
    let ExprKind::Call {
        op: Op::AddressOf,
        args: element,
    } = &place.kind
    else {
        return None;
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &element.first()?.kind else {
        return None;
    };
    if operand.direction != Direction::Write {
        return None;
    }
    let args = args.iter().map(|arg| match arg.same_node(place) {
        true => Expr::string(SINK),
        false => arg.clone(),
    });
    let value = Expr::call(Op::PtxInstruction, buffer.dtype, args.collect());
    Some(Stmt::store(buffer, indices.clone(), value, call.span))
}

/// A sum or product of two numbers in one register that is written to a variable, as the assignment of its value.
fn packed_as_store(call: &Expr) -> Option<Stmt> {
    let ExprKind::Call { op, args } = &call.kind else {
        return None;
    };
    let value = values::of_packed(*op, args, call)?;
    let read = Operands::read(op.row(), args).ok()?;
    let ExprKind::Call {
        op: Op::AddressOf,
        args: element,
    } = &read.get("d_addr")?.kind
    else {
        return None;
    };
    let ExprKind::BufferLoad { buffer, indices, .. } = &element.first()?.kind else {
        return None;
    };
    (buffer.dtype == value.dtype).then(|| Stmt::store(buffer, indices.clone(), value, call.span))
}

/// A call under a predicate, as a branch.
fn guarded(call: &Expr) -> Option<Stmt> {
    let ExprKind::Call { op, args } = &call.kind else {
        return None;
    };
    let read = Operands::read(op.row(), args).ok()?;
    let is_copy =
        *op == Op::PtxCpAsync && read.text("fill_mode").is_empty() && read.int("predicate") != Some(-1);
    let guard = if is_copy {
        read.get("predicate")?
    } else {
        read.get("pred")?
    };
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match (arg.name, values) {
            ("pred", _) => other,
            ("has_pred", _) => other.set("has_pred", 0),
            ("predicate", _) => other.set("predicate", -1),
            (_, []) => other,
            (_, _) if matches!(arg.kind, ArgKind::Has(_) | ArgKind::Count(_)) => other,
            (name, [one]) => other.set(name, one),
            (name, several) => other.list(name, several.to_vec()),
        };
    }
    if guard.is_int(1) {
        return Some(Stmt::evaluate(other.build().at(call.span)));
    }
    let holds = match guard.dtype.is_bool() {
        true => guard.clone(),
        false => Expr::binary(BinOp::Ne, guard.clone(), Expr::constant(guard.dtype, 0)),
    };
    let call = Stmt::evaluate(other.build().at(call.span));
    Some(Stmt::if_else(holds, call, None, guard.span))
}

/// A call with its row and column added to its address.
fn with_one_address(op: Op, args: &[Expr], address: &str, call: &Expr) -> Option<Expr> {
    let read = Operands::read(op.row(), args).ok()?;
    let (base, row, col) = (read.get(address)?, read.get("row")?, read.get("col")?);
    if row.is_int(0) && col.is_int(0) {
        return None;
    }
    let sum = Op::CudaGetTmemAddr.call().set("addr", base);
    let sum = sum.set("row_offset", row).set("col_offset", col).build();
    let mut other = op.call();
    for (arg, values) in read.each() {
        other = match arg.name {
            name if name == address => other.set(name, &sum),
            name @ ("row" | "col") => other.set(name, 0),
            name => other.list(name, values.to_vec()),
        };
    }
    Some(other.dtype(call.dtype).build().at(call.span))
}

/// The condition and the body of a loop that begins with `if …: break`.
fn with_condition(body: &Stmt) -> Option<(Expr, Stmt)> {
    let all = match &body.kind {
        StmtKind::Seq(all) => all.clone(),
        _ => vec![body.clone()],
    };
    let (first, rest) = all.split_first()?;
    let StmtKind::If(ends, then, None) = &first.kind else {
        return None;
    };
    let StmtKind::Evaluate(jump) = &then.kind else {
        return None;
    };
    let is_break = matches!(
        &jump.kind,
        ExprKind::Call {
            op: Op::BreakLoop,
            ..
        }
    );
    is_break.then(|| (negated(ends), Stmt::seq(rest.iter().cloned())))
}

fn negated(e: &Expr) -> Expr {
    match &e.kind {
        ExprKind::Not(inner) => inner.clone(),
        ExprKind::Binary(BinOp::Ne, a, b) => Expr::binary(BinOp::Eq, a.clone(), b.clone()).at(e.span),
        ExprKind::Binary(BinOp::Eq, a, b) => Expr::binary(BinOp::Ne, a.clone(), b.clone()).at(e.span),
        _ => Expr::logical_not(e.clone()).at(e.span),
    }
}

impl Normal<'_> {
    fn is_temporary(&self, buffer: &Buffer) -> bool {
        // One that a function of plain Python allocates has no name of its own.
        let is_register = || buffer.scope() == "local" && matches!(&buffer.shape[..], [one] if one.is_int(1));
        self.temporaries.contains(&*buffer.name) || &*buffer.name == UNNAMED && is_register()
    }

    /// Statements with the values of temporaries where these are read. One that is read elsewhere than in what the next statement
    /// evaluates first stays.
    fn without_temporaries(&self, mut list: Vec<Stmt>) -> Vec<Stmt> {
        for at in (0..list.len()).rev() {
            let StmtKind::AllocBuffer(buffer, _) = &list[at].kind else {
                continue;
            };
            if !self.is_temporary(buffer) {
                continue;
            }
            let buffer = buffer.clone();
            let stored = list.get(at + 1).and_then(|stmt| match &stmt.kind {
                StmtKind::BufferStore(store) if store.buffer == buffer && store.predicate.is_none() => {
                    Some(store.value.clone())
                }
                _ => None,
            });
            // Between them may be the variable that the reader writes.
            let is_declared = |stmt: &Stmt| matches!(stmt.kind, StmtKind::AllocBuffer(..));
            let next = (at + 2..list.len()).find(|next| !is_declared(&list[*next]));
            let (Some(value), Some(next)) = (stored, next) else {
                continue;
            };
            let reader = &list[next];
            if list[next + 1..].iter().any(|stmt| uses(stmt, &buffer) > 0) || uses(reader, &buffer) != 1 {
                continue;
            }
            let mut reading = Reading {
                buffer: &buffer,
                value: &value,
                done: false,
            };
            let reader = reading.first(reader);
            if reading.done {
                list[next] = reader;
                list.drain(at..at + 2);
            }
        }
        list
    }
}

/// The name of buffers that are not assigned to a variable of a kernel.
const UNNAMED: &str = "buffer";

/// How often a statement reads or writes a buffer.
fn uses(stmt: &Stmt, buffer: &Buffer) -> usize {
    struct Uses<'a>(&'a Buffer, usize);
    impl Visitor for Uses<'_> {
        fn visit_buffer_use(&mut self, buffer: &Buffer) {
            self.1 += usize::from(buffer == self.0);
        }
    }
    let mut uses = Uses(buffer, 0);
    uses.visit_stmt(stmt);
    uses.1
}

/// Puts a value in the place where a variable is read.
struct Reading<'a> {
    buffer: &'a Buffer,
    value: &'a Expr,
    done: bool,
}

impl Reading<'_> {
    /// In what a statement evaluates once, before its bodies.
    fn first(&mut self, stmt: &Stmt) -> Stmt {
        let kind = match &stmt.kind {
            StmtKind::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                // An address that needs nothing but a computation may as well be computed in the branch.
                let then = match !self.done && otherwise.is_none() && is_mapped(self.value) {
                    true => self.first(then),
                    false => then.clone(),
                };
                StmtKind::If(condition, then, otherwise.clone())
            }
            StmtKind::For(l) => {
                let mut l = l.clone();
                l.min = self.expr(&l.min);
                l.extent = self.expr(&l.extent);
                StmtKind::For(l)
            }
            StmtKind::While(..) | StmtKind::Attr(_) | StmtKind::Seq(_) => return stmt.clone(),
            _ => return self.walk_stmt(stmt),
        };
        Stmt::new(kind, stmt.span)
    }
}

impl Mutator for Reading<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::BufferLoad { buffer, .. } if buffer == self.buffer => {
                self.done = true;
                self.value.clone()
            }
            // Computed only where what is before it says so.
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let first = self.expr(a);
                Expr::binary(*op, first, b.clone()).at(expr.span)
            }
            _ => self.walk_expr(expr),
        }
    }
}
