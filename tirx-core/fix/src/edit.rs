//! What a text becomes where calls are replaced: in their places, or by statements before theirs.

use std::ops::Range;

use super::calls::{Around, OldCall, StatementForm};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Another call in its place.
    Call(String),
    /// Its statement becomes these.
    Statement(Vec<String>),
    /// These statements come before, and its place takes their value.
    Value { before: Vec<String>, value: String },
}

impl Edit {
    /// The variable `temporary`, written by an instruction before the statement, in place of a value.
    pub(super) fn with_variable(around: &Around, temporary: &str, dtype: &str, instruction: String) -> Edit {
        let before = match around.is_plain {
            true => vec![
                format!("{temporary} = T.alloc_local((1,), \"{dtype}\")"),
                format!("T.evaluate({instruction})"),
            ],
            false => vec![format!("{temporary}: T.{dtype}"), instruction],
        };
        Edit::Value {
            before,
            value: around.variable(temporary),
        }
    }

    /// The same with statements before it; `None` where it must stay within another one.
    pub(super) fn after(self, before: &[String], call: &OldCall) -> Option<Edit> {
        if before.is_empty() {
            return Some(self);
        }
        let alone = call
            .around
            .as_ref()
            .is_some_and(|around| matches!(around.form, StatementForm::Call));
        match self {
            Edit::Call(text) if alone => Some(Edit::Statement([before, &[text]].concat())),
            _ => None,
        }
    }

    /// The new text, for the user.
    pub(super) fn shown(&self) -> String {
        match self {
            Edit::Call(text) => text.clone(),
            Edit::Statement(lines) => lines.join("\n"),
            Edit::Value { before, .. } => before.join("\n"),
        }
    }
}

/// A part of a text, and what stands there instead.
pub(super) type Change = (Range<usize>, String);

/// The changes of a statement by edits of calls within it; `None` where lines have no place before it.
pub(super) fn changes(text: &str, around: &Around, edits: &[(&OldCall, &Edit)]) -> Option<Vec<Change>> {
    let separator = match (&around.indent, &around.bodies[..]) {
        (Some(indent), _) => format!("\n{indent}"),
        (None, []) => "; ".into(),
        // `else: if …` is no Python.
        (None, _) => return None,
    };
    let mut out: Vec<Change> = Vec::new();
    let mut before: Vec<&str> = Vec::new();
    for (call, edit) in edits {
        match edit {
            Edit::Call(new) => out.push((call.call.clone(), new.clone())),
            Edit::Statement(lines) => out.push((around.range.clone(), lines.join(&separator))),
            Edit::Value { before: lines, value } => {
                before.extend(lines.iter().map(String::as_str));
                out.push((call.call.clone(), value.clone()));
            }
        }
    }
    if before.is_empty() {
        return Some(out);
    }
    match &around.form {
        StatementForm::While { test } => {
            let body = around.bodies.first()?.clone();
            let condition = applied(text, test.clone(), &out);
            let line = text[..body.start].rfind('\n').map_or(0, |at| at + 1);
            let own_line = text[line..body.start].trim().is_empty();
            let indent = match own_line {
                true => text[line..body.start].to_string(),
                false => format!("{}    ", around.indent.as_deref().unwrap_or_default()),
            };
            let mut lines = before.join(&format!("\n{indent}"));
            if !own_line {
                lines = format!("\n{indent}{lines}");
            }
            lines += &format!(
                "\n{indent}if {}:\n{indent}    break\n{indent}",
                negated(&condition)
            );
            Some(vec![
                (test.clone(), "True".into()),
                (body.start..body.start, lines),
            ])
        }
        _ => {
            let start = around.range.start;
            out.insert(0, (start..start, before.join(&separator) + &separator));
            Some(out)
        }
    }
}

/// A condition that holds where another one does not.
fn negated(condition: &str) -> String {
    // The one comparison at the top, if there is no other operator.
    let (mut depth, mut found) = (0, None);
    let bytes = condition.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'"' | b'\'' => return format!("not ({condition})"),
            b'=' | b'!' if depth == 0 && bytes.get(at + 1) == Some(&b'=') && found.is_none() => {
                found = Some(at)
            }
            b'<' | b'>' if depth == 0 => return format!("not ({condition})"),
            _ => {}
        }
    }
    let joins = [" and ", " or ", " if ", " is ", " in ", "not "];
    match found {
        Some(at) if !joins.iter().any(|word| condition.contains(word)) => {
            let other = if bytes[at] == b'=' { "!=" } else { "==" };
            format!("{}{other}{}", &condition[..at], &condition[at + 2..])
        }
        _ => format!("not ({condition})"),
    }
}

/// A part of a text with changes.
pub(super) fn applied(text: &str, range: Range<usize>, changes: &[Change]) -> String {
    let mut own: Vec<&Change> = changes
        .iter()
        .filter(|(at, _)| range.start <= at.start && at.end <= range.end)
        .collect();
    own.sort_by_key(|(at, _)| at.start);
    let mut out = String::new();
    let mut done = range.start;
    for (at, new) in own {
        if at.start < done {
            continue;
        }
        out += &text[done..at.start];
        out += new;
        done = at.end;
    }
    out + &text[done..range.end]
}

/// A statement as it is tried: on lines of its own, with nothing in the statements within it.
pub(super) fn on_trial(text: &str, around: &Around, changes: &[Change]) -> String {
    let indent = around.indent.as_deref().filter(|indent| !indent.is_empty());
    let mut all = changes.to_vec();
    // A change at the beginning of a body stays.
    all.extend(around.bodies.iter().map(|body| {
        let at_start = |(at, _): &&Change| *at == (body.start..body.start);
        let kept = changes.iter().find(at_start).map_or("", |(_, new)| new.as_str());
        (body.clone(), format!("{kept}pass"))
    }));
    all.retain(|(at, _)| at.start != at.end || !around.bodies.iter().any(|body| body.start == at.start));
    format!(
        "{}{}",
        indent.unwrap_or("    "),
        applied(text, around.range.clone(), &all)
    )
}

/// A text with changes, and the line that each of its lines had: `lines` are those of the lines before.
pub(super) fn with_lines(text: &str, lines: &[usize], changes: &[Change]) -> (String, Vec<usize>) {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_by_key(|(at, _)| at.start);
    let line_at = |at: usize| {
        let number = text[..at].matches('\n').count();
        lines.get(number).copied().unwrap_or(number + 1)
    };
    let (mut out, mut from, mut done) = (String::new(), vec![line_at(0)], 0);
    for (at, new) in sorted {
        if at.start < done {
            continue;
        }
        let kept = &text[done..at.start];
        from.extend(kept.match_indices('\n').map(|(i, _)| line_at(done + i + 1)));
        from.extend(new.matches('\n').map(|_| line_at(at.start)));
        out += kept;
        out += new;
        done = at.end;
    }
    from.extend(
        text[done..]
            .match_indices('\n')
            .map(|(i, _)| line_at(done + i + 1)),
    );
    out += &text[done..];
    (out, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_negated_as_one_writes_it() {
        assert_eq!(negated("v == T.uint32(0)"), "v != T.uint32(0)");
        assert_eq!(negated("v != A[i == 0]"), "v == A[i == 0]");
        assert_eq!(negated("v < 3"), "not (v < 3)");
        assert_eq!(negated("v == 0 and w == 1"), "not (v == 0 and w == 1)");
        assert_eq!(negated("v"), "not (v)");
    }

    #[test]
    fn lines_are_those_of_the_first_text() {
        let (text, lines) = with_lines("a\nb\nc\n", &[1, 2, 3, 4], &[(2..3, "x\ny".into())]);
        assert_eq!(text, "a\nx\ny\nc\n");
        assert_eq!(lines, [1, 2, 2, 3, 4]);
    }
}
