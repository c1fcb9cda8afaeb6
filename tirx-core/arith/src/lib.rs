//! Integer expressions: what is provably true of them, and how to simplify them.
//!
//! | file | question |
//! |---|---|
//! | [`fold`] | constructors that fold constants, as TVM's own operators do |
//! | [`const_int_bound`](ConstIntBound) | between which two numbers does it lie? |
//! | [`modular_set`](ModularSet) | of which form `coeff * k + base` is it? |
//! | `canonical`, `sum` | a sum of terms `(x % upper) // lower * scale`: equal index expressions look equal |
//! | `rewrite`, `rules`, `rule_set`, `pattern`, `rule_text` | one node: the rules of a table |
//! | `overflow` | does a rewriting keep signed arithmetic within its dtype? |
//! | `compare`, `vector` | comparisons and divisions by bounds and constraints; ramps and broadcasts |
//! | [`analyzer`](Analyzer) | what is known here, and the questions a pass asks |
//!
//! **Overflow.** Signed 32- and 64-bit arithmetic is taken not to overflow, as TVM takes it and as C++ has it, and what is
//! shown to stay within its dtype still does when it is rewritten; all other integers wrap, and only rewrites that hold
//! under wrapping are applied to them. Floating expressions are only folded where both operands are constant.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

use crate as arith;
use tirx_ir as ir;
use tirx_ir::intrin;

pub use tirx_ir::fold;

mod analyzer;
mod canonical;
mod compare;
mod const_int_bound;
mod memo;
mod modular_set;
mod overflow;
mod pattern;
mod rewrite;
mod rule_set;
mod rule_text;
mod rules;
mod sum;
mod swizzle;
mod vector;

#[cfg(test)]
mod corpus_test;
#[cfg(test)]
mod properties_test;

pub use analyzer::{Analyzer, Scope};
pub use analyzer::{has_effect, is_pure_and_memory_free};
pub use const_int_bound::ConstIntBound;
pub use modular_set::ModularSet;
