//! Lines of the function `host`.

use super::code::Code;

/// A line of output with the Rust variables that it reads; a `let` is dropped where nothing reads its variable.
pub(super) struct Line {
    pub(super) text: String,
    pub(super) kind: LineKind,
    pub(super) defines: Option<String>,
    pub(super) reads: Vec<String>,
    /// If the line is a check: the condition under which it fails, and the error.
    pub(super) check: Option<(Code, String)>,
}

/// The effect of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// Defines a variable by a value without effects. Has the variable's type, if it is a number, a bool or an address.
    Value(Option<&'static str>),
    /// Returns an error if something does not hold.
    Check,
    /// Begins a block.
    Open,
    /// Ends one block of an `if` and begins the other.
    Else,
    /// Ends a block.
    Close,
    /// Returns.
    Return,
    /// Begins the launches, or makes a tensor map for them.
    Prepare,
    /// Launches.
    Launch,
}

impl Line {
    pub(super) fn new(kind: LineKind, text: impl Into<String>, codes: &[&Code]) -> Line {
        Line {
            text: text.into(),
            kind,
            defines: None,
            reads: codes.iter().flat_map(|c| c.reads.iter().cloned()).collect(),
            check: None,
        }
    }

    /// `if failed { return Err(error); }`; the error reads `reads`.
    pub(super) fn check(failed: Code, error: String, reads: Vec<String>) -> Line {
        let text = format!("if {} {{ return Err({error}); }}", failed.text);
        let mut line = Line::new(LineKind::Check, text, &[&failed]);
        line.reads.extend(reads);
        line.check = Some((failed, error));
        line
    }

    /// A `let` of `name`.
    pub(super) fn defining(kind: LineKind, name: &str, text: String, reads: Vec<String>) -> Line {
        Line {
            defines: Some(name.to_string()),
            reads,
            ..Line::new(kind, text, &[])
        }
    }
}
