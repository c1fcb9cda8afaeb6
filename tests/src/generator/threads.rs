//! Indices of blocks and threads, and values that the host computes before the launch.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::program::{Expr, Node, pieces};
use super::{Generator, Value};

impl Generator {
    /// Values computed before the launch, of the parameters.
    pub(super) fn host_values(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        if !self.random.chance(35) {
            return nodes;
        }
        let before = (self.loads, self.plain);
        // Only integers and bools, and no memory.
        (self.loads, self.plain) = (2, true);
        for _ in 0..1 + self.random.below(2) {
            let dtype = *self.random.pick(&[
                DType::INT32,
                DType::INT32,
                DType::INT64,
                DType::UINT32,
                DType::BOOL,
            ]);
            let value = self.uniform(dtype, 3);
            let name = self.fresh("h");
            let expr = Expr::new(dtype, value.bounds, pieces![name.clone()]);
            self.values.push(Value::new(expr, None));
            let ty = match self.random.below(2) {
                0 => "T.let".to_string(),
                _ => format!("T.let[T.{dtype}]"),
            };
            nodes.push(Node::Line(pieces![format!("{name}: {ty} = "), value]));
        }
        (self.loads, self.plain) = before;
        nodes
    }

    /// The lines before the launch and those that name the block, how many there are, and its number.
    pub(super) fn grid(
        &mut self,
        count: Option<&(String, DType)>,
        threads: i64,
    ) -> (Vec<String>, Vec<String>, i64, Expr) {
        let id = |name: &str, extent: i64| {
            Expr::new(
                DType::INT32,
                Bounds::Int(0, extent as i128 - 1),
                pieces![name.to_string()],
            )
        };
        if let Some((symbol, dtype)) = count {
            let block = id("bx", 5);
            self.values.push(Value::new(block.clone(), None));
            let of = |n: i64| match *dtype == DType::INT32 {
                true => n.to_string(),
                false => format!("T.{dtype}({n})"),
            };
            let extent = match self.random.below(4) {
                0 => format!("({symbol} + {}) // {}", of(threads - 1), of(threads)),
                1 => format!("T.max(T.ceildiv({symbol}, {}), {})", of(threads), of(2)),
                _ => format!("T.ceildiv({symbol}, {})", of(threads)),
            };
            if self.random.chance(30) {
                let before = vec![format!("blocks: T.let = {extent}")];
                return (before, vec!["bx = T.cta_id([blocks])".to_string()], 5, block);
            }
            return (Vec::new(), vec![format!("bx = T.cta_id([{extent}])")], 5, block);
        }
        if self.random.chance(12) {
            return self.clusters();
        }
        let extents: Vec<i64> = (0..1 + self.random.below(3))
            .map(|_| *self.random.pick(&[1i64, 1, 2, 3]))
            .collect();
        let names: Vec<&str> = ["bx", "by", "bz"][..extents.len()].to_vec();
        let list: Vec<String> = extents.iter().map(i64::to_string).collect();
        let mut lines = vec![format!("{} = T.cta_id([{}])", names.join(", "), list.join(", "))];
        for (name, extent) in names.iter().zip(&extents) {
            self.values.push(Value::new(id(name, *extent), None));
        }
        let blocks: i64 = extents.iter().product();
        let linear = match extents.len() {
            1 => "bx".to_string(),
            2 => format!("(by * {} + bx)", extents[0]),
            _ => format!("((bz * {} + by) * {} + bx)", extents[1], extents[0]),
        };
        if extents.len() > 1 && self.random.chance(50) {
            lines.push(format!("block: T.let = {linear}"));
            let block = id("block", blocks);
            self.values.push(Value::new(block.clone(), None));
            return (Vec::new(), lines, blocks, block);
        }
        (Vec::new(), lines, blocks, id(&linear, blocks))
    }

    /// Blocks in clusters.
    fn clusters(&mut self) -> (Vec<String>, Vec<String>, i64, Expr) {
        let mut id = |name: &str, extent: i64| {
            let e = Expr::new(
                DType::INT32,
                Bounds::Int(0, extent as i128 - 1),
                pieces![name.to_string()],
            );
            self.values.push(Value::new(e.clone(), None));
            e
        };
        let (count, size) = (
            self.random.between(1, 3) as i64,
            *self.random.pick(&[1i64, 2, 2, 4]),
        );
        let rank = format!("rank = T.cta_id_in_cluster([{size}])");
        let blocks = count * size;
        id("rank", size);
        if self.random.chance(50) {
            let lines = vec![format!("bx = T.cta_id([{blocks}])"), rank];
            return (Vec::new(), lines, blocks, id("bx", blocks));
        }
        id("cluster", count);
        let linear = Expr::new(
            DType::INT32,
            Bounds::Int(0, blocks as i128 - 1),
            pieces![format!("(cluster * {size} + rank)")],
        );
        let lines = vec![format!("cluster = T.cluster_id([{count}])"), rank];
        (Vec::new(), lines, blocks, linear)
    }

    /// The lines that name the thread, and its number in the block.
    pub(super) fn block(&mut self, threads: i64) -> (Vec<String>, Expr) {
        let id = |name: &str, extent: i64| {
            let mut e = Expr::new(
                DType::INT32,
                Bounds::Int(0, extent as i128 - 1),
                pieces![name.to_string()],
            );
            e.uniform = false;
            e
        };
        let mut lines = Vec::new();
        let warps = threads / 32;
        let whole = threads % 32 == 0;
        match self.random.below(5) {
            0 | 1 => {
                lines.push(format!("tx = T.thread_id([{threads}])"));
                self.values.push(Value::new(id("tx", threads), None));
                if whole && self.random.chance(40) {
                    lines.push(format!("warp = T.warp_id([{warps}])"));
                    lines.push("lane = T.lane_id([32])".to_string());
                    self.values.push(Value::new(id("warp", warps), None));
                    self.values.push(Value::new(id("lane", 32), None));
                }
                (lines, id("tx", threads))
            }
            2 if whole => {
                lines.push(format!("warp = T.warp_id([{warps}])"));
                lines.push("lane = T.lane_id([32])".to_string());
                self.values.push(Value::new(id("warp", warps), None));
                self.values.push(Value::new(id("lane", 32), None));
                (lines, id("(warp * 32 + lane)", threads))
            }
            4 if threads % 128 == 0 => {
                let groups = threads / 128;
                lines.push(format!("group = T.warpgroup_id([{groups}])"));
                lines.push("rest = T.thread_id_in_wg([128])".to_string());
                self.values.push(Value::new(id("group", groups), None));
                self.values.push(Value::new(id("rest", 128), None));
                if self.random.chance(50) {
                    lines.push("warp = T.warp_id_in_wg([4])".to_string());
                    self.values.push(Value::new(id("warp", 4), None));
                }
                (lines, id("(group * 128 + rest)", threads))
            }
            n => {
                let x = *self
                    .random
                    .pick(&[1i64, 2, 4, 8, 16, 32].map(|x| if threads % x == 0 { x } else { threads }));
                let rest = threads / x;
                let y = if n == 4 && rest % 2 == 0 { rest / 2 } else { rest };
                let z = rest / y;
                if z > 1 {
                    lines.push(format!("tx, ty, tz = T.thread_id([{x}, {y}, {z}])"));
                    self.values.push(Value::new(id("tz", z), None));
                } else {
                    lines.push(format!("tx, ty = T.thread_id([{x}, {y}])"));
                }
                self.values.push(Value::new(id("tx", x), None));
                self.values.push(Value::new(id("ty", y), None));
                let linear = if z > 1 {
                    format!("((tz * {y} + ty) * {x} + tx)")
                } else {
                    format!("(ty * {x} + tx)")
                };
                if self.random.chance(50) {
                    lines.push(format!("thread: T.let = {linear}"));
                    self.values.push(Value::new(id("thread", threads), None));
                    return (lines, id("thread", threads));
                }
                (lines, id(&linear, threads))
            }
        }
    }
}
