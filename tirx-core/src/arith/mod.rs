//! What is provably true of integer expressions, and how to make them simpler.
//!
//! [`fold`] has constructors that fold constants, as TVM's own operators do.

pub mod fold;
