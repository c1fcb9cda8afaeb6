//! How does a kernel file of TVM 0.26 become one of 0.27?
//!
//! Calls of PTX functions are replaced in the text, by their spans, so that everything else stays as it is. What a call becomes is
//! found from the tables of mnemonics: a line says which row it is and where the row's arguments come from, and
//! `backwards` reads that from right to left. Where several mnemonics are possible, and whether one is right at all, is
//! decided by the result: a replacement stays only where the file still makes the same IR.

mod backwards;
mod calls;

use std::ops::Range;

use tirx_source::source::FileId;

use super::diagnostic::Diagnostics;
use super::parse::parse_file;
use calls::OldCall;

/// Texts that begin as printed IR does may have calls of both releases: files are such between two replacements.
const BOTH: &str = "# from tvm.script import tirx as T\n";

/// A file in the language of 0.27.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// Its text. While `left` is not empty it has calls of both releases.
    pub text: String,
    /// The calls that were replaced, in the order of the file.
    pub replaced: Vec<Replaced>,
    /// The calls that are still of 0.26, in the order of the file.
    pub left: Vec<Left>,
}

/// A call that was replaced.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its line in the text as it was given.
    pub line: usize,
    /// What was there.
    pub before: String,
    /// What is there now.
    pub after: String,
}

/// A call that could not be replaced.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its line in the text as it was given.
    pub line: usize,
    /// The function: `T.ptx.ld`.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The names of dtypes in 0.26 and those of PTX, which rows take as the same.
const DTYPES: &[(&str, &str)] = &[
    ("float16", "f16"),
    ("bfloat16", "bf16"),
    ("float32", "f32"),
    ("int8", "s8"),
    ("uint8", "u8"),
    ("int32", "s32"),
    ("float8_e4m3fn", "e4m3"),
    ("float8_e5m2", "e5m2"),
];

/// Printed IR in one form: without the conversions of integers to unsigned ones (where 0.27 wants an operand of the instruction's
/// dtype, 0.26 takes any integer and converts it), and with one name for each dtype.
pub fn comparable(printed: &str) -> String {
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
    for (name, ptx) in DTYPES {
        out = out.replace(&format!("\"{ptx}\""), &format!("\"{name}\""));
    }
    out
}

/// Replaces the calls of 0.26. `same` says whether a text makes the IR that the file makes.
///
/// # Errors
/// The text is not Python.
pub fn to_v27(text: &str, same: &mut dyn FnMut(&str) -> bool) -> Result<Fixed, Diagnostics> {
    let mut fixed = Fixed {
        text: text.to_string(),
        replaced: Vec::new(),
        left: Vec::new(),
    };
    // From the last call to the first one: the places of those before it stay valid, and an argument comes before the call
    // that it is in.
    let mut end = text.len() + 1;
    loop {
        let whole = format!("{BOTH}{}", fixed.text);
        let parsed = parse_file(FileId(0), &whole)?;
        let found = parsed.walk(|module| calls::of(module, &whole));
        let Some(call) = found.into_iter().rfind(|call| call.call.start < end + BOTH.len()) else {
            break;
        };
        end = call.call.start - BOTH.len();
        // Before a call's own line nothing has changed yet.
        let line = 1 + text[..end].matches('\n').count();
        match replacement(&call, &whole, same) {
            Outcome::Replaced { range, after } => {
                let changed = changed(&whole, &range, &after);
                fixed.replaced.push(Replaced {
                    line,
                    before: whole[range.clone()].to_string(),
                    after,
                });
                end = end.min(range.start - BOTH.len());
                fixed.text = changed[BOTH.len()..].to_string();
            }
            Outcome::Left(reason) => fixed.left.push(Left {
                line,
                name: call.name,
                reason,
            }),
            Outcome::InBoth => {}
        }
    }
    fixed.replaced.reverse();
    fixed.left.reverse();
    Ok(fixed)
}

/// What becomes of a call.
enum Outcome {
    /// This text is in the place of that range, the call's or that of its whole statement.
    Replaced { range: Range<usize>, after: String },
    /// The call is valid in 0.27 as it is.
    InBoth,
    /// It cannot be replaced, for this reason.
    Left(String),
}

fn replacement(call: &OldCall, text: &str, same: &mut dyn FnMut(&str) -> bool) -> Outcome {
    let found = backwards::alternatives(call);
    for (after, statement) in &found.texts {
        let range = match call.statement.as_ref().filter(|_| *statement) {
            Some(statement) => &statement.range,
            None => &call.call,
        };
        if *after == text[range.clone()] {
            return Outcome::InBoth;
        }
        if same(&changed(text, range, after)) {
            return Outcome::Replaced {
                range: range.clone(),
                after: after.clone(),
            };
        }
    }
    Outcome::Left(match found.texts.first() {
        None => found.reason,
        Some((first, _)) => format!("it would not make the same IR: {first}"),
    })
}

/// The text with another one in the place of a range.
fn changed(text: &str, range: &Range<usize>, after: &str) -> String {
    format!("{}{after}{}", &text[..range.start], &text[range.end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a call of 0.26 after the first alternative is taken.
    fn first(call: &str) -> String {
        let fixed = to_v27(&format!("{call}\n"), &mut |_| true).unwrap();
        assert!(fixed.left.is_empty(), "{:?}", fixed.left);
        fixed.text.trim_end().to_string()
    }

    #[test]
    fn barriers_are_said_to_be_in_shared_memory() {
        assert_eq!(
            first("T.ptx.tcgen05.commit(bar.ptr_to([0]))"),
            "T.ptx[\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64\"](bar.ptr_to([0]))"
        );
        assert_eq!(
            first("T.ptx.mbarrier.init(bar.ptr_to([0]), 1)"),
            "T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)"
        );
    }

    #[test]
    fn sizes_of_prefetches_are_those_of_the_words() {
        assert_eq!(
            first("T.ptx.cp_async(S.ptr_to([0]), A.ptr_to([0]), 8, prefetch_size=128)"),
            "T.ptx[\"cp.async.ca.shared.global.L2::128B\"](S.ptr_to([0]), A.ptr_to([0]), 8)"
        );
    }
}
