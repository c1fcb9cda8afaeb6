//! Which operation with a row is an instruction that is given by its mnemonic?
//!
//! The instruction's line names the row and where each of its arguments comes from (the notation is described in
//! [`crate::intrin::mnemonic::syntax`]). There is no such operation where the row does not accept the arguments, or where a
//! modifier stands in the mnemonic that the row cannot express: the call is then an instruction of its own.

use super::super::rows::from_given;
use crate::intrin::Op;
use crate::intrin::memory::register_of;
use crate::intrin::mnemonic::call::Matched;
use crate::intrin::mnemonic::syntax::{RowCall, Slot};
use crate::intrin::row::{ArgKind, Given};
use crate::ir::at;
use crate::ir::{BinOp, DType, Expr, ExprKind, Stmt};
use crate::source::Span;

/// Tokens that say what holds without them.
const NEUTRAL: &[&str] = &[
    "shared",
    "shared::cta",
    "shared::cluster",
    "cta",
    "tile",
    "weak",
    "acquire",
    "global",
    "relaxed",
];

/// Whether an instruction without a token is the same. Of several orders it has the first one of the slot.
fn is_neutral(slot: &Slot, token: &str) -> bool {
    match slot.name {
        "sem" => slot.tokens.first().is_some_and(|first| first == token),
        _ => NEUTRAL.contains(&token),
    }
}

/// The statement of the operation; `None` where there is none.
pub(super) fn statement(matched: &Matched, exprs: &[Expr], span: Span) -> Option<Stmt> {
    let call = matched.tokens.instruction.row.as_ref()?;
    let mapping = Mapping { matched, exprs, call };
    mapping.statement(span)
}

struct Mapping<'a> {
    matched: &'a Matched,
    exprs: &'a [Expr],
    call: &'a RowCall,
}

impl Mapping<'_> {
    /// The name of the row.
    fn row(&self) -> Option<Op> {
        self.matched.tokens.row()
    }

    /// Whether a modifier is given that no argument passes on.
    fn loses_modifier(&self) -> bool {
        let hinted = self.call.args.iter().any(|(name, _)| *name == "cache_policy");
        let passed = |slot: &str| {
            // The policy says that there is a hint.
            if slot == "L2::cache_hint" {
                return hinted;
            }
            let within = |text: &str| {
                text.split(['{', '}', ':', ',', '&', '#', '?', '.'])
                    .any(|word| word == slot)
                    || text.trim_start_matches(['#', '?', '&']) == slot
            };
            self.call.name.contains(&format!("{{{slot}}}"))
                || self
                    .call
                    .args
                    .iter()
                    .any(|(name, value)| within(value) || *name == slot)
        };
        self.matched.tokens.each().any(|(slot, token)| {
            slot.optional && !token.is_empty() && !passed(slot.name) && !is_neutral(slot, token)
        })
    }

    /// The registers of an operand.
    fn operand(&self, name: &str) -> Option<&[Expr]> {
        let (_, range) = self.matched.parts.iter().find(|(o, _)| o.name == name)?;
        Some(&self.exprs[range.clone()])
    }

    fn has_slot(&self, name: &str) -> bool {
        self.matched.tokens.each().any(|(slot, _)| slot.name == name)
    }

    fn statement(&self, span: Span) -> Option<Stmt> {
        if self.loses_modifier() {
            return None;
        }
        let op = self.row()?;
        let row = op.row();
        let mut given = Given::default();
        for (name, value) in &self.call.args {
            if let Some(condition) = name.strip_prefix('&') {
                if !self.holds(condition) {
                    return None;
                }
                continue;
            }
            let arg = row.args.iter().chain(row.words).find(|arg| arg.name == *name)?;
            let Some(list) = self.value(value)? else { continue };
            // A sum that starts at zero has no registers.
            if *name == "c_ptrs" && list.iter().all(is_zero) {
                continue;
            }
            let list = list
                .into_iter()
                .map(|e| shaped(e, arg.kind))
                .collect::<Option<Vec<_>>>()?;
            let list = match (op, arg.name) {
                (Op::PtxCvt, "values") => list.into_iter().map(carried).collect(),
                _ => list,
            };
            given.values.push((arg.name, list));
        }
        // An instruction without a space takes a generic address; that of another block's memory is 64 bits wide.
        if row.arg("space").is_some() && given.get("space").is_empty() {
            let far = row.args.first().is_some_and(|arg| {
                matches!(arg.kind, ArgKind::Pointer(crate::intrin::row::Space::Shared))
                    && given
                        .get(arg.name)
                        .first()
                        .is_some_and(|e| e.dtype == DType::UINT64)
            });
            if far {
                given.set("space", Expr::string("shared::cluster"));
            } else if matches!(op.info().family, "memory" | "atomics") {
                given.set("space", Expr::string(""));
            }
        }
        let registers = self.call.result.and_then(|name| self.operand(name));
        if let Some(several @ [_, _, ..]) = registers {
            let bits = several.iter().map(|e| place(e).map(|(b, _)| b.dtype.bits));
            let memory = self.matched.tokens.type_of("type");
            let element = crate::intrin::mnemonic::types::dtypes(memory).first()?.bits;
            if row.arg("dst").is_none() || !bits.into_iter().all(|b| b == Some(element)) {
                return None;
            }
            given.values.push(("dst", several.to_vec()));
        }
        let args = from_given(op, given, span)?;
        row.read(&args).ok()?;
        let dtype = op.result(&args)?;
        let value = Expr::call(op, dtype, args).at(span);
        match registers {
            Some([one]) if !dtype.is_void() => {
                let (buffer, indices) = place(one)?;
                Some(Stmt::store(
                    &buffer,
                    indices,
                    converted(value, buffer.dtype)?,
                    span,
                ))
            }
            _ => Some(Stmt::evaluate(value)),
        }
    }

    /// A condition of a row.
    fn holds(&self, name: &str) -> bool {
        let number = |operand: &str| self.operand(operand).and_then(|list| list.first()?.as_int());
        let tokens = &self.matched.tokens;
        match name {
            // The row puts the second half where the first one ends.
            "half" => {
                let packed = tokens.has("pack::16b") || tokens.has("unpack::16b");
                let distance = tokens.number("num", 0) * if packed { 2 } else { 1 };
                number("immHalfSplitoff") == Some(distance as i128)
            }
            // 16 bytes are copied past the first cache.
            "small" => number("cp_size").is_some_and(|n| n < 16),
            slot => tokens.has(slot),
        }
    }

    /// The value that a row's argument gets: the outer `None` where there is none, the inner one where it is left out.
    fn value(&self, text: &str) -> Option<Option<Vec<Expr>>> {
        let tokens = &self.matched.tokens;
        let one = |e: Expr| Some(Some(vec![e]));
        if let Some(quoted) = text.strip_prefix('\'') {
            return one(Expr::string(quoted.trim_end_matches('\'')));
        }
        if let Some(slot) = text.strip_prefix('?') {
            let filled = tokens.has(slot) || !tokens.get(slot).is_empty();
            return one(Expr::int32(filled.into()));
        }
        if let Some(rest) = text.strip_prefix('#') {
            let (slot, nth) = rest.split_once('.').unwrap_or((rest, "0"));
            let filled = !tokens.get(slot).is_empty();
            let number = tokens.number(slot, nth.parse().ok()?);
            return one(Expr::int32(if filled { i32::try_from(number).ok()? } else { -1 }));
        }
        if let Some(slot) = text.strip_prefix('@') {
            return one(Expr::string(register_of(tokens.get(slot))?.to_string()));
        }
        if let Some((slot, table)) = text.split_once('{') {
            let token = tokens.get(slot);
            let mut entries = table.trim_end_matches('}').split(',');
            let value = entries.find_map(|entry| {
                let (key, value) = entry.rsplit_once(':').unwrap_or((entry, ""));
                (key == token || key == "*").then_some(value)
            });
            return one(Expr::string(value?));
        }
        if let Some((a, b)) = text.split_once('+') {
            let list = [self.operand(a)?, self.operand(b)?].concat();
            return Some(Some(list));
        }
        if let Some((a, b)) = text.split_once('&') {
            let same = tokens.get(a) == tokens.get(b);
            return same.then(|| Some(vec![Expr::string(tokens.get(a))]));
        }
        if let Some((operand, default)) = text.split_once('|') {
            return match self.operand(operand) {
                Some(list) => Some(Some(list.to_vec())),
                None => self.value(default),
            };
        }
        if let Ok(number) = text.parse::<i32>() {
            return one(Expr::int32(number));
        }
        if let Some(list) = self.operand(text) {
            return Some(Some(list.iter().cloned().map(plain_address).collect()));
        }
        let known = self.has_slot(text);
        match tokens.get(text) {
            "" if known || tokens.instruction.operands.iter().any(|o| o.name == text) => Some(None),
            "" => {
                // A slot of a sibling line, or an operand that this line does not have.
                Some(None)
            }
            token => one(Expr::string(token)),
        }
    }
}

/// An address with an offset as pointer arithmetic.
fn plain_address(e: Expr) -> Expr {
    let Some(args) = e.as_call(Op::PtxAddr) else {
        return e;
    };
    let (base, offset) = (&args[at!(PtxAddr.base)], &args[at!(PtxAddr.byte_offset)]);
    if base.dtype.is_handle() {
        let args = vec![base.clone(), offset.clone()];
        return Expr::call(Op::HandleAddByteOffset, DType::HANDLE, args).at(e.span);
    }
    let offset = crate::ir::fold::cast(offset.clone(), base.dtype);
    Expr::binary(BinOp::Add, base.clone(), offset).at(e.span)
}

/// A value in the form of a kind of argument; `None` where it has none.
fn shaped(e: Expr, kind: ArgKind) -> Option<Expr> {
    Some(match kind {
        ArgKind::Register(..) | ArgKind::Element(..) => match &e.kind {
            ExprKind::BufferLoad { .. } => address(&e)?,
            _ if e.dtype.is_handle() => e,
            _ => return None,
        },
        ArgKind::Bool => Expr::bool(e.as_int()? != 0),
        ArgKind::Flag => Expr::int32((e.as_int()? != 0).into()),
        // A variable of a loop that is unrolled later becomes a constant.
        ArgKind::Immediate(..) if e.as_int().is_none() && e.dtype.is_integer() => e,
        ArgKind::Immediate(..) => Expr::int32(i32::try_from(e.as_int()?).ok()?),
        ArgKind::Value(dtype) if dtype.is_integer() && e.dtype.is_bool() => {
            let span = e.span;
            crate::ir::fold::cast(e, dtype).or_at(span)
        }
        _ => e,
    })
}

fn is_zero(e: &Expr) -> bool {
    match e.kind {
        ExprKind::Float(value) => value == 0.0 && value.is_sign_positive(),
        _ => e.is_int(0),
    }
}

/// The address of an element.
fn address(e: &Expr) -> Option<Expr> {
    matches!(e.kind, ExprKind::BufferLoad { .. })
        .then(|| Expr::call(Op::AddressOf, DType::HANDLE, vec![e.clone()]).at(e.span))
}

/// A half as the bits that a conversion takes.
fn carried(e: Expr) -> Expr {
    if !matches!(e.dtype, DType::FLOAT16 | DType::BFLOAT16) {
        return e;
    }
    let span = e.span;
    Expr::call(Op::Reinterpret, DType::UINT16, vec![e]).at(span)
}

/// The element that an address is of.
fn place(e: &Expr) -> Option<(crate::ir::Buffer, Vec<Expr>)> {
    let [element] = e.as_call(Op::AddressOf)? else {
        return None;
    };
    match &element.kind {
        ExprKind::BufferLoad { buffer, indices, .. } => Some((buffer.clone(), indices.to_vec())),
        _ => None,
    }
}

/// A register's value as another dtype: the same bits, or more of them.
fn converted(value: Expr, dtype: DType) -> Option<Expr> {
    let from = value.dtype;
    if from == dtype {
        return Some(value);
    }
    if from.bits == dtype.bits && (from.is_float() != dtype.is_float() || from.is_float()) {
        let span = value.span;
        return Some(Expr::call(Op::Reinterpret, dtype, vec![value]).at(span));
    }
    let integers = from.is_integer() && (dtype.is_integer() || dtype.is_bool());
    integers.then(|| crate::ir::fold::cast(value, dtype))
}
