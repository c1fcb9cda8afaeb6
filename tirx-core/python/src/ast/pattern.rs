//! Patterns of `match` statements.

use super::*;

variants! {
    /// A pattern.
    Pattern {
        /// `1`, `a.b`
        MatchValue(PatternMatchValue),
        /// `None`
        MatchSingleton(PatternMatchSingleton),
        /// `[a, b]`
        MatchSequence(PatternMatchSequence),
        /// `{"a": b}`
        MatchMapping(PatternMatchMapping),
        /// `Class(a, b=c)`
        MatchClass(PatternMatchClass),
        /// `*a`
        MatchStar(PatternMatchStar),
        /// `pattern as a`, `a`, `_`
        MatchAs(PatternMatchAs),
        /// `a | b`
        MatchOr(PatternMatchOr),
    }
}

/// A constant of which there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Singleton {
    /// `None`
    None,
    /// `True`
    True,
    /// `False`
    False,
}

nodes! {
    /// What equals a value.
    PatternMatchValue {
        /// A literal or `a.b`.
        value: Box<Expr>,
    }
    /// What is a constant.
    PatternMatchSingleton {
        /// Which.
        value: Singleton,
    }
    /// `[a, b]`, `(a, b)`, `a, b`
    PatternMatchSequence {
        /// In order.
        patterns: Vec<Pattern>,
    }
    /// `{key: pattern, **rest}`
    PatternMatchMapping {
        /// Literals and `a.b`.
        keys: Vec<Expr>,
        /// One for each key.
        patterns: Vec<Pattern>,
        /// `**rest`
        rest: Option<Identifier>,
    }
    /// `cls(arguments)`
    PatternMatchClass {
        /// The class.
        cls: Box<Expr>,
        /// Patterns of its attributes.
        arguments: PatternArguments,
    }
    /// `(a, b=c)`
    PatternArguments {
        /// Positional ones.
        patterns: Vec<Pattern>,
        /// Named ones.
        keywords: Vec<PatternKeyword>,
    }
    /// `attr=pattern`
    PatternKeyword {
        /// The attribute.
        attr: Identifier,
        /// Its pattern.
        pattern: Pattern,
    }
    /// `*name`
    PatternMatchStar {
        /// `None` for `*_`.
        name: Option<Identifier>,
    }
    /// `pattern as name`, `name`, `_`
    PatternMatchAs {
        /// `None` where everything matches.
        pattern: Option<Box<Pattern>>,
        /// `None` for `_`.
        name: Option<Identifier>,
    }
    /// `a | b`
    PatternMatchOr {
        /// In order.
        patterns: Vec<Pattern>,
    }
}
