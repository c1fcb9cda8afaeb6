//! Operators, and how they are spelled.

use std::fmt;

/// Declares an enumeration of operators with their spellings.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl $name {
            /// How it is spelled.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

operators! {
    /// An operator of a [`BoolOp`](super::ExprBoolOp).
    BoolOp {
        And = "and",
        Or = "or",
    }
}

operators! {
    /// An arithmetic operator.
    Operator {
        Add = "+",
        Sub = "-",
        Mult = "*",
        MatMult = "@",
        Div = "/",
        Mod = "%",
        Pow = "**",
        LShift = "<<",
        RShift = ">>",
        BitOr = "|",
        BitXor = "^",
        BitAnd = "&",
        FloorDiv = "//",
    }
}

operators! {
    /// An operator before its operand.
    UnaryOp {
        Invert = "~",
        Not = "not",
        UAdd = "+",
        USub = "-",
    }
}

operators! {
    /// A comparison.
    CmpOp {
        Eq = "==",
        NotEq = "!=",
        Lt = "<",
        LtE = "<=",
        Gt = ">",
        GtE = ">=",
        Is = "is",
        IsNot = "is not",
        In = "in",
        NotIn = "not in",
    }
}
