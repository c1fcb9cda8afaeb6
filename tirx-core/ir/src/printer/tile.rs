//! Tile primitives as text: `T.cta.copy(A_smem[0:32, 0:32], A[0:32, 0:32])`.

use super::Printer;
use super::expr::end;
use super::literal;
use crate::ir::tile::TileParam;
use crate::ir::{BufferRegion, Expr, ExprKind, TileArg, TileCall};

impl Printer {
    /// One line, or for `compose_op` a `with` block.
    pub(super) fn tile(&mut self, call: &TileCall) {
        let info = call.op.info();
        let mut items: Vec<String> = Vec::new();
        let output = call.args.first();
        let mut body = None;
        for ((_, param), arg) in info.params.iter().zip(&call.args) {
            items.push(match (arg, param) {
                (TileArg::Region(region), TileParam::InputOrOutput)
                    if matches!(output, Some(TileArg::Region(first)) if first == region)
                        && call.args[2..].iter().all(|a| matches!(a, TileArg::None)) =>
                {
                    continue;
                }
                (TileArg::Region(region), _) => self.region_text(region),
                (TileArg::None, TileParam::OptionalInput) => continue,
                (TileArg::None, _) => "None".to_string(),
                (TileArg::Expr(e), TileParam::Flag) if matches!(e.kind, ExprKind::Int(_)) => {
                    if e.is_int(0) { "False" } else { "True" }.to_string()
                }
                (TileArg::Expr(e), _) => self.expr_text(e),
                (TileArg::Axes(axes), _) => {
                    let list: Vec<String> = axes.iter().map(i64::to_string).collect();
                    format!("[{}]", list.join(", "))
                }
                (TileArg::Operation(op), _) => format!("I.Op(\"tirx.tile.{}\")", op.name()),
                (TileArg::Lambda(vars, predicate), _) => {
                    self.names.enter();
                    let names: Vec<_> = vars.iter().map(|v| self.names.define_var(v)).collect();
                    let predicate = self.expr_text(predicate);
                    self.names.leave();
                    format!("lambda {}: {predicate}", names.join(", "))
                }
                (TileArg::Body(stmt), _) => {
                    body = Some(stmt.clone());
                    continue;
                }
            });
        }
        while items.last().is_some_and(|i| i == "None") {
            items.pop();
        }
        if !call.workspace.is_empty() {
            let mut text = String::from("workspace={");
            for (i, (name, buffer)) in call.workspace.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                literal::string(&mut text, name);
                text.push_str(": ");
                text.push_str(&self.buffer_text(buffer).0);
            }
            text.push('}');
            items.push(text);
        }
        if let Some(dispatch) = &call.dispatch {
            let mut text = String::from("dispatch=");
            literal::string(&mut text, dispatch);
            items.push(text);
        }
        for (name, value) in &call.config {
            let mut text = format!("{name}=");
            self.attr_value(&mut text, value);
            items.push(text);
        }
        let text = format!("T.{}.{}({})", call.scope.namespace(), info.name, items.join(", "));
        match body {
            Some(body) => {
                self.line(&format!("with {text}:"));
                self.body(&body, |_| {});
            }
            None => self.line(&text),
        }
    }

    /// `A[0:32, i:i + 4]`; a dimension of extent one is an index, unless all are.
    fn region_text(&mut self, region: &BufferRegion) -> String {
        let (name, _) = self.buffer_text(&region.buffer);
        if region.ranges.is_empty() {
            return name.to_string();
        }
        let all_ones = region.ranges.iter().all(|(_, extent)| extent.is_int(1));
        let mut items = Vec::new();
        for (i, (min, extent)) in region.ranges.iter().enumerate() {
            let last = i + 1 == region.ranges.len();
            if extent.is_int(1) && !(all_ones && last) {
                items.push(self.expr_text(min));
            } else {
                let stop: Expr = end(min, extent);
                let (start, stop) = (self.expr_text(min), self.expr_text(&stop));
                items.push(format!("{start}:{stop}"));
            }
        }
        format!("{name}[{}]", items.join(", "))
    }
}
