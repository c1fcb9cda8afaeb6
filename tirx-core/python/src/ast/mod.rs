//! The syntax tree. Node and field names are those of Python's own `ast` module, and of ruff's syntax tree where that
//! is more precise (literals, parameters).
//!
//! A range holds what belongs to the node: not the parentheses around an expression, but those of a tuple; the decorators
//! of a definition; the brackets of arguments.

mod expr;
mod literal;
mod name;
mod operator;
mod pattern;
mod stmt;

pub use expr::*;
pub use literal::*;
pub use name::{Identifier, Name};
pub use operator::{BoolOp, CmpOp, Operator, UnaryOp};
pub use pattern::*;
pub use stmt::*;

/// Declares node types, each with the place where it is written.
macro_rules! nodes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $name {
                /// Where it is written.
                pub range: crate::TextRange,
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl crate::Ranged for $name {
                fn range(&self) -> crate::TextRange {
                    self.range
                }
            }
        )*
    };
}

/// Declares an enumeration of node types.
macro_rules! variants {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident($node:ty),)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub enum $name {
            $($(#[$variant_doc])* $variant($node),)*
        }

        impl crate::Ranged for $name {
            fn range(&self) -> crate::TextRange {
                match self {
                    $($name::$variant(node) => node.range,)*
                }
            }
        }

        $(
            impl From<$node> for $name {
                fn from(node: $node) -> $name {
                    $name::$variant(node)
                }
            }
        )*
    };
}

use {nodes, variants};
