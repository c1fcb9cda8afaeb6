//! The table of intrinsics.
//!
//! Each row says what an operator is called in the IR and in kernel text, how many arguments it takes, what its
//! value's dtype is and what it does besides computing a value. Parser, printer, verifier, passes, CUDA code
//! generation, simulator and documentation read this table; adding an intrinsic is adding a row
//! (and teaching the simulator what it computes).

pub mod convert;
pub mod memory;
mod table;

pub use table::Op;

use crate::ir::{DType, Expr};

/// What evaluating a call does besides giving a value. Ordered: a later one does more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Says something about its argument (`likely`); transparent.
    Annotation,
    /// Nothing: same arguments, same value; may be duplicated, moved or dropped.
    Pure,
    /// Reads memory or machine state: may be dropped or duplicated, not moved across writes.
    ReadState,
    /// Writes memory or state, or synchronizes: runs exactly as often as written, in order.
    UpdateState,
    /// Jumps: `break_loop`, `continue_loop`, `thread_return`.
    ControlJump,
    /// Anything.
    Opaque,
}

/// The dtype of a call's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultRule {
    /// That of argument `n`.
    Arg(u8),
    /// This one, whatever the arguments.
    Is(DType),
    /// bool with the lanes of argument 0.
    BoolOfArg0,
    /// int32 or int64: argument 0 says how many bits.
    IntOfBits,
    /// Said at the call (`dtype=`, `return_type=`).
    Explicit,
}

impl ResultRule {
    /// The dtype of a call with these arguments; `None` where the call says it.
    pub fn dtype(self, args: &[Expr]) -> Option<DType> {
        let first = args.first();
        Some(match self {
            ResultRule::Is(dtype) => dtype,
            ResultRule::Arg(n) => args.get(n as usize).map_or(DType::VOID, |a| a.dtype),
            ResultRule::BoolOfArg0 => DType::BOOL.with_lanes(first.map_or(1, |a| a.dtype.lanes)),
            ResultRule::IntOfBits if first.is_some_and(|bits| bits.is_int(64)) => DType::INT64,
            ResultRule::IntOfBits => DType::INT32,
            ResultRule::Explicit => return None,
        })
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The IR's name: `tirx.exp`, `tirx.cuda.cta_sync`.
    pub name: &'static str,
    /// What follows `T.` in text: `exp`, `cuda.cta_sync`.
    pub script: &'static str,
    /// Fewest and most arguments.
    pub arity: (u8, u8),
    /// What it does.
    pub effect: Effect,
    /// What it gives.
    pub result: ResultRule,
}

impl Op {
    /// Its row.
    pub fn info(self) -> &'static OpInfo {
        &table::INFO[self as usize]
    }

    /// The IR's name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// What it does.
    pub fn effect(self) -> Effect {
        self.info().effect
    }

    /// The operator that text calls `T.<script>`.
    pub fn from_script(script: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.info().script == script)
    }

    /// The operator of this IR name.
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.iter().copied().find(|op| op.info().name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_in_order() {
        for (i, op) in Op::ALL.iter().enumerate() {
            assert_eq!(*op as usize, i);
            assert_eq!(Op::from_name(op.name()), Some(*op), "{}", op.name());
            assert_eq!(
                Op::from_script(op.info().script),
                Some(*op),
                "{}",
                op.info().script
            );
        }
    }
}
