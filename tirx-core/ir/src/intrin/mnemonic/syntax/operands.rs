//! The operands of a line of syntax, and the row behind `->`.

use super::*;

/// The lists of operands that a list with parts in braces stands for: without them and with them.
pub(super) fn variants(parts: &[&'static str]) -> Result<Vec<Vec<Operand>>, String> {
    let mut lists: Vec<Vec<Operand>> = vec![Vec::new()];
    for part in parts {
        let (base, more) = optional_tail(part);
        let base = operands(base)?;
        let more = match more {
            Some(tail) => Some(match tail.strip_prefix('|') {
                Some(second) => piped(operands(second)?),
                None => tail
                    .strip_prefix(',')
                    .map(split_list)
                    .unwrap_or_default()
                    .into_iter()
                    .map(operands)
                    .collect::<Result<Vec<_>, _>>()?
                    .concat(),
            }),
            None => None,
        };
        let alternative = alternative(part)?;
        let mut out = Vec::new();
        for list in &lists {
            if let Some(other) = &alternative {
                for one in other {
                    out.push([list.clone(), one.clone()].concat());
                }
                continue;
            }
            let plain = [list.clone(), base.clone()].concat();
            if let Some(more) = &more {
                out.push([plain.clone(), more.clone()].concat());
            }
            out.push(plain);
        }
        lists = out;
    }
    Ok(lists)
}

/// `=d|_` and `{=d*4}|_`: a destination or none.
pub(super) fn alternative(part: &'static str) -> Result<Option<Vec<Vec<Operand>>>, String> {
    match part.strip_suffix("|_") {
        Some(first) => Ok(Some(vec![operands(first)?, operands("_")?])),
        None => Ok(None),
    }
}

/// A part that ends with an optional one: `p{|=q}`, `a{, b}`.
pub(super) fn optional_tail(part: &'static str) -> (&'static str, Option<&'static str>) {
    let start = part.find("{|").or_else(|| part.find("{, "));
    match start {
        Some(at) if part.ends_with('}') => (part[..at].trim(), Some(&part[at + 1..part.len() - 1])),
        _ => (part.strip_suffix("|_").unwrap_or(part), None),
    }
}

pub(super) fn piped(mut list: Vec<Operand>) -> Vec<Operand> {
    list.iter_mut().for_each(|operand| operand.pipe = true);
    list
}

/// The operands of one part: one, a pair, or an address with its parts.
pub(super) fn operands(part: &'static str) -> Result<Vec<Operand>, String> {
    if let Some((first, second)) = part.split_once("|=").filter(|(first, _)| !first.contains('[')) {
        let at = part.len() - second.len() - 1;
        let second = operands(&part[at..])?;
        return Ok([operands(first)?, piped(second)].concat());
    }
    if part.starts_with('[') {
        let end = part.find(']').ok_or("a [ without a ]")?;
        let inner = split_list(&part[1..end]);
        let mut out = Vec::new();
        for (i, text) in inner.iter().enumerate() {
            let mut operand = if i == 0 && (text.contains('@') || !text.contains(':')) {
                address(text)
            } else {
                let mut one = operands(text)?;
                one.pop().ok_or("an empty operand")?
            };
            operand.continues = i > 0;
            out.push(operand);
        }
        // An address that begins with a register, as those of fabric do, is written in brackets all the same.
        if inner.len() > 1
            && let Some(first) = out.first_mut()
            && first.form == OperandForm::Register
        {
            first.braces = false;
        }
        if let Some(slot) = part[end + 1..].strip_prefix('?') {
            out.iter_mut().for_each(|o| o.present = Some((slot, "")));
        }
        return Ok(out);
    }
    Ok(vec![operand(part)?])
}

pub(super) fn blank(name: &'static str, form: OperandForm) -> Operand {
    Operand {
        name,
        form,
        direction: Direction::Read,
        ty: "type",
        wider: false,
        count: Count::Number(1),
        braces: false,
        sinks: false,
        present: None,
        continues: false,
        pipe: false,
    }
}

pub(super) fn address(text: &'static str) -> Operand {
    let (name, space) = text.split_once('@').unwrap_or((text, ""));
    blank(name, OperandForm::Address(space))
}

pub(super) fn operand(text: &'static str) -> Result<Operand, String> {
    if text == "_" || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(blank("", OperandForm::Literal(text)));
    }
    if let Some(rest) = text.strip_prefix('#') {
        let (name, ranges) = rest.split_once(':').ok_or(format!("{text} has no range"))?;
        let ranges = ranges.split('|').map(range).collect::<Result<_, _>>()?;
        return Ok(blank(name, OperandForm::Immediate(ranges)));
    }
    let (inner, braces) = match text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        Some(inner) => (inner, true),
        None => (text, false),
    };
    let (inner, present) = match inner.split_once('?') {
        Some((inner, slot)) => (inner, Some(slot.split_once('=').unwrap_or((slot, "")))),
        None => (inner, None),
    };
    let (inner, sinks) = match inner.strip_suffix('!') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    let (inner, count) = match inner.split_once('*') {
        Some((inner, count)) => (inner, Count::read(count)?),
        None => (inner, Count::Number(1)),
    };
    let (inner, direction) = match (inner.strip_prefix('='), inner.strip_prefix('+')) {
        (Some(inner), _) => (inner, Direction::Write),
        (_, Some(inner)) => (inner, Direction::Update),
        _ => (inner, Direction::Read),
    };
    let (name, ty) = inner.split_once(':').unwrap_or((inner, "type"));
    let (ty, wider) = match ty.strip_prefix('~') {
        Some(ty) => (ty, true),
        None => (ty, false),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("{text} is no operand"));
    }
    Ok(Operand {
        direction,
        ty,
        wider,
        count,
        braces,
        sinks,
        present,
        ..blank(name, OperandForm::Register)
    })
}

/// `3`, `0..7`, `0..`.
pub(super) fn range(text: &str) -> Result<(i64, i64), String> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("{text} is no number"));
    match text.split_once("..") {
        Some((low, "")) => Ok((number(low)?, i64::from(i32::MAX))),
        Some((low, high)) => Ok((number(low)?, number(high)?)),
        None => Ok((number(text)?, number(text)?)),
    }
}

pub(super) fn row_call(text: &'static str) -> Result<RowCall, String> {
    let (result, rest) = match text.split_once(" = ") {
        Some((result, rest)) => (Some(result.trim()), rest),
        None => (None, text),
    };
    let mut words = rest.split_whitespace();
    let name = words.next().ok_or("a row has a name")?;
    let args = words.map(|word| match word.split_once('=') {
        Some((name, value)) if !word.starts_with('&') => (name, value),
        _ => (word, word),
    });
    Ok(RowCall {
        result,
        name,
        args: args.collect(),
    })
}
