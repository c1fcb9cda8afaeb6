//! Expressions of host code, as the printers of launchers and the simulator's runner read them.
//!
//! [`HostExpr::from_expr`] lowers the node of the IR once for all three: it names the fields of arguments, finds the operator's row
//! ([`operators`]) and writes arithmetic of halves as arithmetic of `float64`.

pub mod checked;
pub mod operators;

use operators::{HostOperation, HostOperator};

use super::{Field, moved_pointer, unsupported};
use crate::at;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::{DType, Expr, ExprKind, Var};

/// A node of host code; its operands are expressions of the IR.
#[derive(Debug)]
pub enum HostExpr {
    /// An integer or bool constant.
    Int(i128),
    /// A floating constant.
    Float(f64),
    /// A variable.
    Var(Var),
    /// A conversion.
    Convert(Expr),
    /// The same bits with another dtype: numbers of one width, or an address and an integer.
    Reinterpret(Expr),
    /// An operation of the table.
    Operation(&'static HostOperator, Vec<Expr>),
    /// One of two values; the other one is not computed.
    Choice([Expr; 3]),
    /// A value under a name.
    Let(Var, Expr, Expr),
    /// A field of an argument.
    Field {
        /// The pointer to the arguments, to a descriptor or to one of its arrays.
        object: Expr,
        /// The element.
        index: Expr,
        /// The field.
        field: Field,
    },
    /// A pointer moved by a number of bytes.
    AddBytes(Expr, Expr),
    /// Whether a pointer is null.
    IsNull(Expr),
}

impl HostExpr {
    /// The node of an expression.
    ///
    /// # Errors
    /// For an expression that host code cannot compute.
    pub fn from_expr(expr: &Expr) -> Result<HostExpr, Diagnostics> {
        if let Some(moved) = moved_pointer(expr) {
            return HostExpr::from_expr(&moved);
        }
        Ok(match &expr.kind {
            ExprKind::Int(value) => HostExpr::Int(*value),
            ExprKind::Float(value) => HostExpr::Float(*value),
            ExprKind::Var(var) => HostExpr::Var(var.clone()),
            ExprKind::Cast(inner) => HostExpr::Convert(inner.clone()),
            ExprKind::Not(inner) => operation(expr, HostOperation::Not, std::slice::from_ref(inner))?,
            ExprKind::Binary(op, a, b) => {
                operation(expr, HostOperation::Binary(*op), &[a.clone(), b.clone()])?
            }
            ExprKind::Select(c, t, f) => HostExpr::Choice([c.clone(), t.clone(), f.clone()]),
            ExprKind::Let(var, value, body) => HostExpr::Let(var.clone(), value.clone(), body.clone()),
            ExprKind::Call { op, args } => call(expr, *op, args)?,
            _ => return Err(unsupported(expr, "this expression")),
        })
    }
}

fn call(expr: &Expr, op: Op, args: &[Expr]) -> Result<HostExpr, Diagnostics> {
    let arg = |place: usize| args[place].clone();
    Ok(match op {
        Op::TvmStructGet => HostExpr::Field {
            object: arg(at!(TvmStructGet.arr)),
            index: arg(at!(TvmStructGet.index)),
            field: (args[at!(TvmStructGet.field)]
                .as_int()
                .and_then(Field::from_number))
            .ok_or_else(|| unsupported(expr, "this field of an argument"))?,
        },
        Op::IfThenElse => HostExpr::Choice([
            arg(at!(IfThenElse.cond)),
            arg(at!(IfThenElse.t)),
            arg(at!(IfThenElse.f)),
        ]),
        Op::Likely => HostExpr::from_expr(&arg(0))?,
        Op::HandleAddByteOffset => HostExpr::AddBytes(
            arg(at!(HandleAddByteOffset.data)),
            arg(at!(HandleAddByteOffset.byte_offset)),
        ),
        Op::IsNullptr => HostExpr::IsNull(arg(0)),
        Op::Reinterpret => {
            let (from, to) = (args[at!(Reinterpret.value)].dtype, expr.dtype);
            let address = from.is_handle() || to.is_handle();
            if !address && (from.bits != to.bits || from.is_bool() || to.is_bool()) {
                return Err(unsupported(expr, &format!("`T.reinterpret` of {from} as {to}")));
            }
            HostExpr::Reinterpret(arg(0))
        }
        Op::LargeUintImm => {
            let word = |place: usize| args[place].as_int();
            match (word(at!(LargeUintImm.low)), word(at!(LargeUintImm.high))) {
                (Some(low), Some(high)) => HostExpr::Int(low | high << 32),
                _ => {
                    return Err(unsupported(
                        expr,
                        "`large_uint_imm` of values that are not constant",
                    ));
                }
            }
        }
        _ => operation(expr, HostOperation::Call(op), args)?,
    })
}

/// An operation by its row; of halves, computed in `float64`.
fn operation(expr: &Expr, operation: HostOperation, operands: &[Expr]) -> Result<HostExpr, Diagnostics> {
    let dtype = operands.first().map_or(expr.dtype, |operand| operand.dtype);
    let is_half = dtype.is_scalar() && dtype.is_floating() && dtype.bits == 16;
    let computed = if is_half { DType::FLOAT64 } else { dtype };
    let Some(row) = HostOperator::find(operation, computed) else {
        let name = match operation {
            HostOperation::Call(op) => format!("`T.{}`", op.info().script),
            HostOperation::Not => "`not`".to_string(),
            HostOperation::Binary(op) => format!("{op:?}"),
        };
        return Err(unsupported(expr, &format!("{name} of {dtype}")));
    };
    if !is_half {
        return Ok(HostExpr::Operation(row, operands.to_vec()));
    }
    let wide: Vec<Expr> = (operands.iter())
        .map(|e| e.clone().cast(DType::FLOAT64))
        .collect();
    Ok(match operation {
        _ if !expr.dtype.is_floating() => HostExpr::Operation(row, wide),
        HostOperation::Binary(op) => {
            HostExpr::Convert(Expr::binary(op, wide[0].clone(), wide[1].clone()).at(expr.span))
        }
        HostOperation::Call(op) => HostExpr::Convert(Expr::call(op, DType::FLOAT64, wide).at(expr.span)),
        HostOperation::Not => HostExpr::Operation(row, wide),
    })
}
