//! Which arguments does a call of 0.26 give to its row?

use tirx_ir::intrin::Op;
use tirx_script::lang;

use super::calls::{Argument, Literal, OldCall};

/// The arguments of a row that a call gives, by name.
pub(super) type Given = Vec<(&'static str, Vec<Argument>)>;

pub(super) fn value_of<'a>(given: &'a Given, name: &str) -> Option<&'a Argument> {
    let found = given.iter().find(|(known, _)| *known == name)?;
    found.1.first()
}

/// The argument of packed sums and products that is left out if the call gives the value.
pub(super) const DESTINATION: &str = "d_addr";

/// Rows of 0.26 that are another row by other names of the same arguments.
const SAME_AS: &[(Op, Op)] = &[(Op::PtxCpAsyncBulkSharedToCluster, Op::PtxCpAsyncBulkS2sCluster)];

/// The row that an operation is compared as.
pub(super) fn same_as(op: Op) -> Op {
    let same = SAME_AS.iter().find(|(old, _)| *old == op);
    same.map_or(op, |(_, row)| *row)
}

/// The arguments of a call by the names of the row's signature; `None` where they cannot be told apart.
pub(super) fn bound(op: Op, call: &OldCall) -> Option<Given> {
    let (params, rest) = lang::row_parameters(op);
    let row = same_as(op).row();
    let renamed = |name: &'static str| {
        let at = op.row().args.iter().position(|arg| arg.name == name);
        at.map_or(name, |at| row.args[at].name)
    };
    let is_zero = |value: &Argument| value.known() == Some(&Literal::Int(0));
    let gives = call
        .keywords
        .iter()
        .any(|(name, value)| name == "dps" && is_zero(value));
    let params = params.filter(|(param, _)| !(gives && param.name == DESTINATION));
    let mut given: Given = Vec::new();
    let mut positional = call.positional.iter();
    for (param, default) in params.clone() {
        let by_name = call.keywords.iter().find(|(name, _)| name == param.name);
        // `T.ptx.cvt(x, dtype=…)`: what a keyword gives has no place.
        let by_position = match param.keyword_only || by_name.is_some() {
            true => None,
            false => positional.next(),
        };
        if by_position.is_some_and(|arg| arg.text.starts_with('*')) {
            return None;
        }
        let value = by_position.or(by_name.map(|(_, value)| value)).cloned();
        let value = value.or_else(|| {
            Some(match default {
                lang::RowDefault::Int(value) => Argument::from_literal(Literal::Int(value)),
                lang::RowDefault::Text(text) => Argument::from_literal(Literal::Text(text.into())),
                lang::RowDefault::None => return None,
            })
        });
        match value {
            Some(value) if value.known() == Some(&Literal::None) => {}
            Some(value) => {
                let list = value.items.clone().unwrap_or_else(|| vec![value]);
                given.push((renamed(param.name), list));
            }
            None => {}
        }
    }
    let more: Vec<Argument> = positional.cloned().collect();
    match rest {
        Some(rest) if !more.is_empty() => given.push((rest, more)),
        None if !more.is_empty() => return None,
        _ => {}
    }
    let known = |name: &str| params.clone().any(|(param, _)| param.name == name);
    call.keywords.iter().all(|(name, _)| known(name)).then_some(given)
}
