//! Tile primitives have the arguments that their rows say.

use super::Verifier;
use crate::ir::tile::TileParam;
use crate::ir::{TileArg, TileCall};
use crate::source::Span;

impl Verifier<'_> {
    /// A tile primitive has the arguments that its row says.
    pub(super) fn tile(&mut self, call: &TileCall, span: Span) {
        let info = call.op.info();
        let count = info.params.len();
        self.check(call.args.len() == count, span, || {
            format!(
                "{} takes {count} arguments and has {}",
                info.name,
                call.args.len()
            )
        });
        for ((name, param), arg) in info.params.iter().zip(&call.args) {
            let fits = match arg {
                TileArg::None => matches!(
                    param,
                    TileParam::OptionalInput | TileParam::OptionalOperand | TileParam::OptionalScalar
                ),
                TileArg::Region(_) => matches!(
                    param,
                    TileParam::Output
                        | TileParam::InOut
                        | TileParam::Input
                        | TileParam::InputOrOutput
                        | TileParam::OptionalInput
                        | TileParam::Operand
                        | TileParam::OptionalOperand
                ),
                TileArg::Expr(_) => matches!(
                    param,
                    TileParam::Operand
                        | TileParam::OptionalOperand
                        | TileParam::Scalar
                        | TileParam::OptionalScalar
                        | TileParam::Flag
                ),
                TileArg::Axes(_) => *param == TileParam::Axes,
                TileArg::Operation(_) => *param == TileParam::Operation,
                TileArg::Lambda(..) => *param == TileParam::Predicate,
                TileArg::Body(_) => *param == TileParam::Body,
            };
            self.check(fits, span, || {
                format!("argument \"{name}\" of {} is {arg:?}", info.name)
            });
            match arg {
                TileArg::Region(region) => {
                    region.exprs().for_each(|e| self.expr(e));
                    self.access(span, &region.buffer, &region.starts(), None);
                }
                TileArg::Expr(e) => self.expr(e),
                TileArg::Lambda(vars, body) => self.scope(|s| {
                    vars.iter().for_each(|v| s.define(v, span));
                    s.condition(body);
                }),
                TileArg::Body(body) => self.body(body),
                TileArg::None | TileArg::Axes(_) | TileArg::Operation(_) => {}
            }
        }
        for value in call.config.values() {
            value.for_each_expr(&mut |e| self.expr(e));
        }
        for (_, buffer) in &call.workspace {
            self.check(self.buffers.contains(buffer), span, || {
                format!("buffer {} is used outside of its scope", buffer.name)
            });
        }
    }
}
