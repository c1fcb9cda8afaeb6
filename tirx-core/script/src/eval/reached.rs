//! Statements that never run, by constants: a branch whose condition is false, a loop without turns. An access in one may have any
//! constant index, as a kernel has that is written for several sizes and decides between them by conditions of the IR.

use super::Interpreter;
use super::value::Frame;
use crate::ir::{BinOp, Expr, ExprKind, ForLoop};

impl Interpreter {
    /// Whether the statement that is being built may run.
    pub(crate) fn is_reached(&self) -> bool {
        self.kernel.blocks.last().is_none_or(|block| !block.never_runs)
    }

    /// Of the block that has just been opened: it never runs.
    pub(super) fn block_never_runs(&mut self) {
        if let Some(block) = self.kernel.blocks.last_mut() {
            block.never_runs = true;
        }
    }

    /// Whether the body of a frame, which the open frames are around, never runs.
    pub(super) fn never_enters(&self, frame: &Frame) -> bool {
        match (frame, self.kernel.open_frames.last().map(|around| &**around)) {
            (Frame::For(loops), _) => have_no_turn(loops),
            (Frame::While(condition), _) | (Frame::Then, Some(Frame::If(condition))) => {
                never_holds(condition)
            }
            (Frame::Else, Some(Frame::If(condition))) => always_holds(condition),
            _ => false,
        }
    }
}

/// Whether one of nested loops has no turn.
pub(super) fn have_no_turn(loops: &[ForLoop]) -> bool {
    loops
        .iter()
        .any(|l| l.extent.as_int().is_some_and(|extent| extent <= 0))
}

/// Whether a condition is false by its constants, whatever else stands in it.
pub(super) fn never_holds(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Int(value) => *value == 0,
        ExprKind::Binary(BinOp::And, a, b) => never_holds(a) || never_holds(b),
        ExprKind::Binary(BinOp::Or, a, b) => never_holds(a) && never_holds(b),
        ExprKind::Not(a) => always_holds(a),
        _ => false,
    }
}

/// Whether a condition is true by its constants.
pub(super) fn always_holds(condition: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Int(value) => *value != 0,
        ExprKind::Binary(BinOp::And, a, b) => always_holds(a) && always_holds(b),
        ExprKind::Binary(BinOp::Or, a, b) => always_holds(a) || always_holds(b),
        ExprKind::Not(a) => never_holds(a),
        _ => false,
    }
}
