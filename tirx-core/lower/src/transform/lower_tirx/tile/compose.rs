//! `unary_reduce`, `binary_reduce`, `reduce_negate`, `compose_op` → `steps`: one tile primitive after the other.
//!
//! **Idea.** A composition is the sequence of its operations; each is dispatched by itself, at the same scope.
//! `binary_chain` is not among them: it is elementwise.
//!
//! **Conditions.** Each operation has a variant that accepts it; a `unary_op` is one of `sqrt`, `exp`, `exp2`, `log2`,
//! `reciprocal`, `silu` (the last two without bias and scale), a `reduce_op` is `sum`, `max` or `min`.
//!
//! **Cost.** That of the operations. What the first one gives to the second lies in its output.

use std::sync::Arc;

use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::emit::Emit;
use super::variant::{Emits, Explanation, Plan, Variant};
use crate::ir::typing;
use crate::ir::{Attrs, Expr, Stmt, StmtKind, TileArg, TileCall, TileOp};

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[
        TileOp::UnaryReduce,
        TileOp::BinaryReduce,
        TileOp::ReduceNegate,
        TileOp::ComposeOp,
    ],
    name: "steps",
    plan,
    doc: "the operations one after the other, each by a variant of its own",
    ..Variant::DEFAULT
}];

struct Steps {
    steps: Vec<Stmt>,
}

fn plan(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<Plan, Decline> {
    let step = |op: TileOp, args: Vec<TileArg>| {
        let tile = TileCall {
            op,
            scope: call.scope,
            args,
            workspace: call.tile.workspace.clone(),
            config: Attrs::default(),
            dispatch: None::<Arc<str>>,
        };
        Stmt::new(StmtKind::Tile(Box::new(tile)), call.span)
    };
    let flag = |value: bool| TileArg::Expr(Expr::bool(value).at(call.span));
    let reduction = |to: &str, from: &str| -> Result<Stmt, Decline> {
        let op = call.operation("reduce_op")?;
        if !matches!(op, TileOp::Sum | TileOp::Max | TileOp::Min) {
            return Err(Decline::mistake(
                format!("{} is no reduction", op.name()),
                "reduce_op is \"sum\", \"max\" or \"min\"",
            ));
        }
        let [to, from] = [to, from].map(|name| call.argument(name));
        Ok(step(
            op,
            vec![to, from, call.argument("reduce_axes"), flag(false)],
        ))
    };
    let steps = match call.op {
        TileOp::UnaryReduce => {
            let op = call.operation("unary_op")?;
            let mut args = vec![call.argument("unary_output"), call.argument("unary_input")];
            let scaled = [call.argument("bias"), call.argument("scale")];
            match op {
                TileOp::Sqrt | TileOp::Exp | TileOp::Exp2 | TileOp::Log2 => args.extend(scaled),
                TileOp::Reciprocal | TileOp::Silu if scaled.iter().all(|a| matches!(a, TileArg::None)) => {}
                TileOp::Reciprocal | TileOp::Silu => {
                    return Err(Decline::mistake(
                        format!("{} has no bias and no scale", op.name()),
                        "leave out bias and scale, or apply them by Tx.fma before",
                    ));
                }
                other => {
                    return Err(Decline::mistake(
                        format!("{} is no operation on one operand", other.name()),
                        "unary_op is sqrt, exp, exp2, log2, reciprocal or silu",
                    ));
                }
            }
            vec![step(op, args), reduction("reduce_output", "unary_output")?]
        }
        TileOp::BinaryReduce => {
            let op = call.operation("binary_op")?;
            super::elementwise::arithmetic(op)?;
            let operands = ["binary_output", "binary_input1", "binary_input2"];
            let first = step(op, operands.map(|name| call.argument(name)).to_vec());
            vec![first, reduction("reduce_output", "binary_output")?]
        }
        TileOp::ReduceNegate => {
            if call.flag("accum")? {
                return Err("with accum=True it is ambiguous which part is negated".into());
            }
            let output = call.region("output")?.clone();
            let minus = typing::cast(typing::Operand::Int(-1), output.buffer.dtype, call.span);
            let minus = minus.map_err(|error| error.message)?;
            let negated = vec![
                TileArg::Region(output.clone()),
                TileArg::Region(output),
                TileArg::Expr(minus),
            ];
            vec![reduction("output", "input")?, step(TileOp::Mul, negated)]
        }
        TileOp::ComposeOp => match call.argument("body") {
            TileArg::Body(body) => vec![body],
            _ => Vec::new(),
        },
        other => return Err(format!("{} is no composition", other.name()).into()),
    };
    Ok(Box::new(Steps { steps }))
}

impl Emits for Steps {
    fn explain(&self) -> Explanation {
        Explanation::default().line(format!("{} operations, one after the other", self.steps.len()))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        self.steps.into_iter().for_each(|step| out.push(step));
    }
}
