//! Which branches are predicates of instructions (`pred=`), and the text of those.

use super::emitter::Emitter;
use super::ptx_memory::Guard;
use crate::arith::fold;
use crate::diagnostic::Result;
use crate::intrin::memory::MemoryInstruction;
use crate::intrin::row::CudaForm;
use crate::intrin::{Effect, Op};
use crate::ir::{BinOp, BufferStore, Expr, ExprKind, Stmt, StmtKind, at};
use crate::source::Span;

impl Emitter<'_, '_> {
    /// A branch that stands for a predicate: one call of an instruction that takes it, or a register that a load sets. False where it
    /// must stay a branch, also because an operand reads memory, maybe beyond its end where the predicate does not hold.
    pub(super) fn predicated(&mut self, body: &Stmt) -> Result<bool> {
        let StmtKind::If(condition, then, None) = &body.kind else {
            return Ok(false);
        };
        if condition.as_int().is_some() {
            return Ok(false);
        }
        match &then.kind {
            StmtKind::Evaluate(e) => self.predicated_call(condition, e),
            StmtKind::BufferStore(store) => self.predicated_load(condition, store, then.span),
            _ => Ok(false),
        }
    }

    fn predicated_call(&mut self, condition: &Expr, e: &Expr) -> Result<bool> {
        let ExprKind::Call { op, args } = &e.kind else {
            return Ok(false);
        };
        if !args.iter().all(|e| may_be_computed(e, condition)) {
            return Ok(false);
        }
        let before = self.out.len();
        let code = match op.row().cuda.form {
            CudaForm::Ptx(_) | CudaForm::StatePtx(_) => {
                let mut guard = Some(condition.clone());
                let code = self.row(e, op.row(), args, &mut guard)?;
                guard.is_none().then_some(code)
            }
            CudaForm::Special => match MemoryInstruction::from_call(*op, args) {
                Ok(Some(access)) => {
                    let condition = condition.clone();
                    let mut guard = Some(Guard {
                        condition,
                        kept: None,
                    });
                    let code = self.memory_instruction(&access, &mut guard)?;
                    guard.is_none().then_some(code)
                }
                _ => None,
            },
            _ => None,
        };
        let Some(code) = code else {
            self.out.truncate(before);
            return Ok(false);
        };
        self.line(&format!("{};", code.text));
        Ok(true)
    }

    fn predicated_load(&mut self, condition: &Expr, store: &BufferStore, span: Span) -> Result<bool> {
        let BufferStore {
            buffer,
            indices,
            value,
            predicate: None,
        } = store
        else {
            return Ok(false);
        };
        // Words of the same width are converted without instructions.
        let loaded = match &value.kind {
            ExprKind::Cast(inner) if inner.dtype.is_integer() && inner.dtype.bits == value.dtype.bits => {
                inner
            }
            _ => value,
        };
        let ExprKind::Call { op, args } = &loaded.kind else {
            return Ok(false);
        };
        let place = Expr::load(buffer, indices.clone());
        let is_special = matches!(op.row().cuda.form, CudaForm::Special);
        let computed = |e: &Expr| may_be_computed(e, condition);
        if !is_special || !computed(&place) || !args.iter().all(computed) {
            return Ok(false);
        }
        let Ok(Some(access)) = MemoryInstruction::from_call(*op, args) else {
            return Ok(false);
        };
        let before = self.out.len();
        let mut guard = Some(Guard {
            condition: condition.clone(),
            kept: Some(fold::cast(place, loaded.dtype)),
        });
        let code = self.memory_instruction(&access, &mut guard)?;
        if guard.is_some() {
            self.out.truncate(before);
            return Ok(false);
        }
        if self.is_register(buffer) && !self.is_needed(buffer) {
            self.out.truncate(before);
            return Ok(true);
        }
        let code = self.cast(code, loaded.dtype, value.dtype, span)?;
        let index = self.single_index(buffer, indices, span)?;
        let text = self.store_text(buffer, index, code, span)?;
        self.line(&text);
        Ok(true)
    }
}

/// Whether an operand of an instruction may be computed where the instruction's predicate does not hold: it has no effect, and reads
/// nothing but registers and what the predicate itself reads.
fn may_be_computed(e: &Expr, predicate: &Expr) -> bool {
    let computed = |e: &Expr| may_be_computed(e, predicate);
    match &e.kind {
        ExprKind::Call {
            op: Op::AddressOf,
            args,
        } => args.iter().all(|place| match &place.kind {
            ExprKind::BufferLoad { indices, .. } => indices.iter().all(computed),
            _ => computed(place),
        }),
        ExprKind::BufferLoad {
            buffer,
            indices,
            predicate: None,
        } => {
            let register = matches!(buffer.scope(), "local" | "");
            register && indices.iter().all(|index| index.as_int().is_some()) || reads(predicate, e)
        }
        ExprKind::Call { op, .. } if op.effect() > Effect::Pure => false,
        _ => e.operands().all(computed),
    }
}

/// Whether a predicate reads an element whatever its values are.
fn reads(predicate: &Expr, element: &Expr) -> bool {
    match &predicate.kind {
        _ if predicate == element => true,
        ExprKind::Binary(BinOp::And | BinOp::Or, first, _) | ExprKind::Select(first, ..) => {
            reads(first, element)
        }
        ExprKind::Call {
            op: Op::IfThenElse,
            args,
        } => reads(&args[at!(IfThenElse.cond)], element),
        _ => predicate.operands().any(|e| reads(e, element)),
    }
}
