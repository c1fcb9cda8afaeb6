//! Tokens.

use crate::{TextRange, TextSize};

/// Declares the kinds of tokens with their spellings.
macro_rules! tokens {
    ($($(#[$doc:meta])* $kind:ident,)* ; $($word:ident = $text:literal,)* ; $($sign:ident = $spelling:literal,)*) => {
        /// A kind of token.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum TokenKind {
            $($(#[$doc])* $kind,)*
            $($word,)*
            $($sign,)*
        }

        impl TokenKind {
            /// The keyword that a word is.
            pub(crate) fn keyword(word: &[u8]) -> Option<TokenKind> {
                Some(match word {
                    $($text => TokenKind::$word,)*
                    _ => return None,
                })
            }

            /// Whether it is a keyword that cannot be a name.
            pub(crate) fn is_keyword(self) -> bool {
                matches!(self, $(TokenKind::$word)|*)
            }

            /// How an operator or a delimiter is spelled; nothing for other kinds.
            pub(crate) fn spelling(self) -> &'static str {
                match self {
                    $(TokenKind::$sign => $spelling,)*
                    _ => "",
                }
            }
        }
    };
}

tokens! {
    /// Any name, with the words that are keywords in places (`match`, `case`, `type`, `_`).
    Name,
    Int,
    Float,
    /// `1j`
    Imaginary,
    /// A string or bytes, with prefix and quotes.
    String,
    /// The prefix and the opening quotes of an f-string.
    FStringStart,
    /// Text of an f-string, or of the format of a field.
    FStringText,
    /// Its closing quotes.
    FStringEnd,
    /// The end of a logical line.
    Newline,
    Indent,
    Dedent,
    EndOfFile,
    /// What is no token; the lexer holds the message.
    Error,
    ;
    And = b"and",
    As = b"as",
    Assert = b"assert",
    Async = b"async",
    Await = b"await",
    Break = b"break",
    Class = b"class",
    Continue = b"continue",
    Def = b"def",
    Del = b"del",
    Elif = b"elif",
    Else = b"else",
    Except = b"except",
    False = b"False",
    Finally = b"finally",
    For = b"for",
    From = b"from",
    Global = b"global",
    If = b"if",
    Import = b"import",
    In = b"in",
    Is = b"is",
    Lambda = b"lambda",
    None = b"None",
    Nonlocal = b"nonlocal",
    Not = b"not",
    Or = b"or",
    Pass = b"pass",
    Raise = b"raise",
    Return = b"return",
    True = b"True",
    Try = b"try",
    While = b"while",
    With = b"with",
    Yield = b"yield",
    ;
    LeftParenthesis = "(",
    RightParenthesis = ")",
    LeftBracket = "[",
    RightBracket = "]",
    LeftBrace = "{",
    RightBrace = "}",
    Colon = ":",
    ColonEqual = ":=",
    Comma = ",",
    Semicolon = ";",
    Dot = ".",
    Ellipsis = "...",
    Arrow = "->",
    Exclamation = "!",
    Equal = "=",
    EqualEqual = "==",
    NotEqual = "!=",
    Less = "<",
    LessEqual = "<=",
    Greater = ">",
    GreaterEqual = ">=",
    Plus = "+",
    PlusEqual = "+=",
    Minus = "-",
    MinusEqual = "-=",
    Star = "*",
    StarEqual = "*=",
    DoubleStar = "**",
    DoubleStarEqual = "**=",
    Slash = "/",
    SlashEqual = "/=",
    DoubleSlash = "//",
    DoubleSlashEqual = "//=",
    Percent = "%",
    PercentEqual = "%=",
    At = "@",
    AtEqual = "@=",
    Ampersand = "&",
    AmpersandEqual = "&=",
    Bar = "|",
    BarEqual = "|=",
    Caret = "^",
    CaretEqual = "^=",
    LeftShift = "<<",
    LeftShiftEqual = "<<=",
    RightShift = ">>",
    RightShiftEqual = ">>=",
    Tilde = "~",
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Token {
    pub(crate) fn range(self) -> TextRange {
        TextRange::new(TextSize::new(self.start), TextSize::new(self.end))
    }

    pub(crate) fn text(self, source: &str) -> &str {
        &source[self.start as usize..self.end as usize]
    }
}
