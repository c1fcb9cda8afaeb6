//! Values exchanged between threads without memory: shuffles, votes, reductions.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::program::{Expr, Node, pieces};
use super::{Generator, Value};

impl Generator {
    /// A value that the lanes of a warp, or the threads of a block, compute together.
    pub(super) fn across_lanes(&mut self) -> Node {
        match self.random.below(8) {
            0 => {
                let p = self.expr(DType::BOOL, 2);
                let call = pieces!["T.cuda.ballot_sync(T.uint32(4294967295), ", p, ")"];
                self.named(DType::UINT32, Bounds::from_dtype(DType::UINT32), call)
            }
            1 => {
                let name = *self.random.pick(&["add", "min"]);
                let value = self.expr(DType::UINT32, 2);
                let call = pieces![
                    format!("T.cuda.reduce_{name}_sync_u32(T.uint32(4294967295), "),
                    value,
                    ")"
                ];
                self.named(DType::UINT32, Bounds::from_dtype(DType::UINT32), call)
            }
            2 => {
                let name = *self.random.pick(&["and", "or"]);
                let p = self.expr(DType::BOOL, 2);
                let call = pieces![format!("T.cuda.syncthreads_{name}(T.cast("), p, ", \"int32\"))"];
                self.named(DType::INT64, Bounds::Int(0, 1), call)
            }
            _ => self.shuffle(),
        }
    }

    fn named(&mut self, dtype: DType, bounds: Bounds, call: Vec<super::Piece>) -> Node {
        let name = self.fresh("w");
        let mut e = Expr::new(dtype, bounds, pieces![name.clone()]);
        e.uniform = false;
        self.values.push(Value::new(e, None));
        let mut line = pieces![format!("{name}: T.{dtype} = ")];
        line.extend(call);
        Node::Line(line)
    }

    fn shuffle(&mut self) -> Node {
        let dtype = *self.random.pick(&[
            DType::INT32,
            DType::FLOAT32,
            DType::UINT32,
            DType::FLOAT64,
            DType::INT64,
            DType::FLOAT16,
        ]);
        let value = self.expr(dtype, 2);
        let width = *self.random.pick(&[32i128, 32, 16, 8]);
        let (kind, argument) = match self.random.below(4) {
            0 => ("xor", self.random.between(1, width - 1).to_string()),
            1 => ("up", self.random.between(1, width - 1).to_string()),
            2 => ("down", self.random.between(1, width - 1).to_string()),
            _ => ("", self.random.between(0, width - 1).to_string()),
        };
        let kind = if kind.is_empty() {
            String::new()
        } else {
            format!("_{kind}")
        };
        let bounds = value.bounds;
        let call = match self.random.below(3) {
            0 => pieces![
                format!("T.cuda.__shfl{kind}_sync(T.uint32(4294967295), "),
                value,
                format!(", {argument}, {width})")
            ],
            _ => pieces![
                format!("T.tvm_warp_shuffle{kind}(T.uint32(4294967295), "),
                value,
                format!(", {argument}, {width}, 32)")
            ],
        };
        let name = self.fresh("w");
        let mut e = Expr::new(dtype, bounds, pieces![name.clone()]);
        e.uniform = false;
        let declared = if self.random.chance(50) {
            format!("{name}: T.let = ")
        } else {
            format!("{name}: T.{dtype} = ")
        };
        self.values.push(Value::new(e, None));
        let mut line = pieces![declared];
        line.extend(call);
        Node::Line(line)
    }
}
