//! The options of a call, and what each takes.

use crate::ir::AttrValue;

/// An option of a call: a keyword that is no parameter of the operation.
#[derive(Clone, Copy, Debug)]
pub struct TileOption {
    /// The keyword.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// The value that it has where it is left out, as text for tables.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl TileOption {
    /// Whether a value asks for something else than what happens without the option.
    pub(super) fn asks(&self, value: &AttrValue) -> bool {
        let default = self.default.trim_matches('"');
        match (value, value.as_int(), value.as_str()) {
            (AttrValue::None, ..) => false,
            (_, Some(number), _) => match default {
                "False" => number != 0,
                text => text.parse() != Ok(number),
            },
            (_, _, Some(text)) => {
                text != default && !(text.is_empty() && default.eq_ignore_ascii_case("none"))
            }
            _ => true,
        }
    }
}

/// What an option takes. `None` stands for an option that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `True` or `False`, known when compiling.
    Flag,
    /// An integer known when compiling.
    Int,
    /// One of these texts.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// An integer, or an expression of one.
    Value,
    /// A pointer, such as `bar.ptr_to([0])`, or a buffer.
    Pointer,
    /// Anything: the variant that reads it says what is wrong with a value.
    Any,
}
