//! Statements and control flow.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::memory::{Access, Array, counter};
use super::program::{Expr, Node, pieces};
use super::{Around, Generator, Scalar, Value};

/// Most iterations that nested loops make together.
const MAX_TURNS: i64 = 48;

impl Generator {
    /// Up to `count` statements in a scope of their own.
    pub(super) fn body(&mut self, count: usize, depth: u32) -> Vec<Node> {
        let marks = (self.values.len(), self.scalars.len(), self.arrays.len());
        let (vectors, functions) = (self.vectors.len(), self.functions.len());
        let mut nodes = Vec::new();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            if let Some(node) = self.statement(depth) {
                nodes.push(node);
            }
        }
        self.values.truncate(marks.0);
        self.scalars.truncate(marks.1);
        self.arrays.truncate(marks.2);
        self.vectors.truncate(vectors);
        self.functions.truncate(functions);
        nodes
    }

    fn inner(&mut self, depth: u32) -> Vec<Node> {
        let count = 1 + self.random.below(3);
        self.body(count, depth.saturating_sub(1))
    }

    /// One statement; `depth` bounds how deep blocks nest.
    pub(super) fn statement(&mut self, depth: u32) -> Option<Node> {
        let n = self.random.below(100);
        match n {
            0..=9 => Some(self.scalar()),
            10..=18 => Some(self.binding()),
            19..=33 => self.assign_scalar(),
            34..=46 => self.store(3),
            47..=48 => self.call().or_else(|| self.store(3)),
            49..=54 => Some(self.local_array()),
            55..=57 => self.alias(),
            58 if depth > 1 && self.random.chance(50) => Some(self.function(depth)),
            58..=61 => self.vectorized(),
            62..=64 => self.vector_store(),
            65 => self.vector_array(),
            66..=68 => self.atomic(),
            69..=73 if self.together => self.shared_update(),
            74..=76 if self.together && self.threads % 32 == 0 => Some(self.across_lanes()),
            77..=80 if !self.loops.is_empty() => self.jump(),
            81..=88 if depth > 0 => Some(self.branch(depth)),
            89..=95 if depth > 0 => Some(self.for_loop(depth)),
            96..=97 if depth > 0 => Some(self.while_loop(depth)),
            98..=99 if self.guard.is_some() => Some(self.guarded(depth)),
            _ => self.store(2),
        }
    }

    /// `x: T.int32 = …`
    pub(super) fn scalar(&mut self) -> Node {
        let dtype = self.any_dtype();
        let name = self.fresh("s");
        let bounds = Bounds::stored(dtype);
        let value = self.expr(dtype, 3);
        let value = self.fit(value, bounds);
        let mut expr = Expr::new(dtype, bounds, pieces![name.clone()]);
        expr.uniform = false;
        self.values.push(Value::new(expr, None));
        self.scalars.push(Scalar {
            name: name.clone(),
            dtype,
            bounds,
        });
        if self.random.chance(15) {
            let declared = match self.random.below(3) {
                0 => format!("{name}: T.{dtype}"),
                1 => format!("{name} = T.alloc_scalar(\"{dtype}\", scope=\"local\")"),
                _ => format!("{name} = T.local_scalar(\"{dtype}\")"),
            };
            return Node::Group(vec![
                Node::Line(pieces![declared]),
                Node::Line(pieces![format!("{name} = "), value]),
            ]);
        }
        Node::Line(pieces![format!("{name}: T.{dtype} = "), value])
    }

    /// `x: T.let = …`
    fn binding(&mut self) -> Node {
        let dtype = self.any_dtype();
        let name = self.fresh("v");
        let value = self.expr(dtype, 3);
        let mut expr = Expr::new(dtype, value.bounds, pieces![name.clone()]);
        expr.uniform = value.uniform;
        self.values.push(Value::new(expr, None));
        let ty = if self.random.chance(40) {
            format!("T.let[T.{dtype}]")
        } else {
            "T.let".to_string()
        };
        Node::Line(pieces![format!("{name}: {ty} = "), value])
    }

    fn assign_scalar(&mut self) -> Option<Node> {
        if self.scalars.is_empty() {
            return Some(self.scalar());
        }
        let scalar = self.random.pick(&self.scalars.clone()).clone();
        let value = self.expr(scalar.dtype, 3);
        let value = self.fit(value, scalar.bounds);
        if scalar.dtype.is_uint() && self.random.chance(50) {
            let op = *self.random.pick(&["+=", "-=", "*=", "^=", "|=", "&="]);
            return Some(Node::Line(pieces![format!("{} {op} ", scalar.name), value]));
        }
        if scalar.dtype.is_float() && scalar.dtype.bits >= 32 && self.random.chance(30) {
            // The number of iterations times a bounded value could exceed the dtype: halve first.
            let half = self.float_literal(scalar.dtype, 0.5);
            let value = self.fit(value, Bounds::Float(500.0));
            return Some(Node::Line(pieces![
                format!("{0} = {0} * ", scalar.name),
                half,
                " + ",
                value
            ]));
        }
        Some(Node::Line(pieces![format!("{} = ", scalar.name), value]))
    }

    fn branch(&mut self, depth: u32) -> Node {
        let uniform = self.random.chance(35);
        let condition = if uniform {
            self.uniform(DType::BOOL, 2)
        } else {
            self.expr(DType::BOOL, 3)
        };
        let before = self.together;
        self.together &= condition.uniform;
        let body = self.inner(depth);
        let otherwise = if self.random.chance(40) {
            self.inner(depth)
        } else {
            Vec::new()
        };
        self.together = before;
        let condition = match self.random.below(10) {
            0 => Expr::new(DType::BOOL, Bounds::Bool, pieces!["T.likely(", condition, ")"]),
            _ => condition,
        };
        Node::Block {
            head: pieces!["if ", condition, ":"],
            body,
            otherwise,
        }
    }

    /// Inside: what the guard protects.
    pub(super) fn guarded(&mut self, depth: u32) -> Node {
        let Some((number, symbol, dtype, arrays)) = self.guard.clone() else {
            return Node::Group(Vec::new());
        };
        let marks = (self.values.len(), self.arrays.len());
        let before = (self.together, self.guard.take());
        self.together = false;
        self.values.push(Value::new(number.clone(), Some(symbol.clone())));
        self.arrays.extend(arrays.clone());
        let mut body = Vec::new();
        for array in &arrays {
            body.push(self.store_to(array, 3));
        }
        body.extend(self.inner(depth));
        self.values.truncate(marks.0);
        self.arrays.truncate(marks.1);
        (self.together, self.guard) = before;
        let number = match dtype == DType::INT32 {
            true => number,
            false => Expr::new(
                dtype,
                number.bounds,
                pieces!["T.cast(", number, format!(", \"{dtype}\")")],
            ),
        };
        Node::Block {
            head: pieces!["if ", number, format!(" < {symbol}:")],
            body,
            otherwise: Vec::new(),
        }
    }

    fn for_loop(&mut self, depth: u32) -> Node {
        let room = (MAX_TURNS / self.turns.max(1)).max(1);
        let extent = self.random.between(1, 5.min(room as i128)) as i64;
        let mark = self.values.len();
        let name = self.fresh("i");
        let mut uniform = true;
        let (head, turns) = match self.random.below(9) {
            0 | 1 => {
                self.values.push(Value::new(counter(&name, extent), None));
                let kind = *self.random.pick(&["range", "T.serial", "T.unroll"]);
                (pieces![format!("for {name} in {kind}({extent}):")], extent)
            }
            2 => {
                self.values.push(Value::new(counter(&name, extent), None));
                (pieces![format!("for {name} in T.unroll({extent}):")], extent)
            }
            3 => {
                let second = self.fresh("j");
                let other = self.random.between(1, 3.min((room / extent).max(1) as i128)) as i64;
                self.values.push(Value::new(counter(&name, extent), None));
                self.values.push(Value::new(counter(&second, other), None));
                (
                    pieces![format!("for {name}, {second} in T.grid({extent}, {other}):")],
                    extent * other,
                )
            }
            4 => {
                let start = self.random.between(-3, 5) as i64;
                let mut e = counter(&name, extent);
                e.bounds = Bounds::Int(start as i128, (start + extent - 1) as i128);
                self.values.push(Value::new(e, None));
                let kind = *self.random.pick(&["range", "T.serial", "T.unroll"]);
                (
                    pieces![format!("for {name} in {kind}({start}, {}):", start + extent)],
                    extent,
                )
            }
            5 => {
                let step = self.random.between(2, 4) as i64;
                let stop = extent * step - self.random.between(0, step as i128 - 1) as i64;
                self.values.push(Value::new(counter(&name, stop), None));
                let head = match self.random.below(2) {
                    0 => format!("for {name} in range(0, {stop}, {step}):"),
                    _ => format!("for {name} in T.serial(0, {stop}, step={step}):"),
                };
                (pieces![head], extent)
            }
            6 => {
                let mut e = counter(&name, extent);
                e.dtype = DType::INT64;
                self.values.push(Value::new(e, None));
                (
                    pieces![format!("for {name} in range(T.int64({extent})):")],
                    extent,
                )
            }
            _ => {
                // A length that is computed.
                let of = if self.random.chance(60) {
                    self.uniform(DType::INT32, 2)
                } else {
                    self.expr(DType::INT32, 2)
                };
                let length = self.fit(of, Bounds::Int(0, extent as i128));
                uniform = length.uniform;
                let mut e = counter(&name, extent);
                e.uniform = uniform;
                self.values.push(Value::new(e, None));
                let kind = *self.random.pick(&["range", "T.serial"]);
                (pieces![format!("for {name} in {kind}("), length, "):"], extent)
            }
        };
        let body = self.looped(uniform, turns, depth);
        self.values.truncate(mark);
        Node::Block {
            head,
            body,
            otherwise: Vec::new(),
        }
    }

    /// The body of a loop.
    fn looped(&mut self, uniform: bool, turns: i64, depth: u32) -> Vec<Node> {
        let before = (self.together, self.turns);
        // Threads that may leave at different times no longer run together.
        let uniform = uniform && self.together && self.random.chance(60);
        self.together = uniform;
        self.turns *= turns.max(1);
        self.loops.push(Around { uniform });
        let body = self.inner(depth);
        self.loops.pop();
        (self.together, self.turns) = before;
        body
    }

    fn while_loop(&mut self, depth: u32) -> Node {
        let room = (MAX_TURNS / self.turns.max(1)).max(1);
        let most = self.random.between(1, 5.min(room as i128)) as i64;
        let name = self.fresh("c");
        let mark = self.values.len();
        let mut e = counter(&name, most + 1);
        e.uniform = false;
        let plain = self.random.chance(40);
        let endless = plain && self.random.chance(30);
        let condition = if endless {
            pieces!["while True:"]
        } else if plain {
            pieces![format!("while {name} < {most}:")]
        } else {
            let c = self.expr(DType::BOOL, 2);
            pieces![format!("while {name} < {most} and "), c, ":"]
        };
        self.values.push(Value::new(e, None));
        let mut body = vec![Node::Line(pieces![format!("{name} = {name} + 1")])];
        if endless {
            body.push(Node::Block {
                head: pieces![format!("if {name} > {most}:")],
                body: vec![Node::Line(pieces!["break"])],
                otherwise: Vec::new(),
            });
        }
        body.extend(self.looped(plain, most, depth));
        self.values.truncate(mark);
        Node::Group(vec![
            Node::Line(pieces![format!("{name}: T.int32 = 0")]),
            Node::Block {
                head: condition,
                body,
                otherwise: Vec::new(),
            },
        ])
    }

    /// `if …: break` or `continue`.
    fn jump(&mut self) -> Option<Node> {
        let around = *self.loops.last()?;
        if around.uniform && !self.together {
            return None;
        }
        let condition = if around.uniform {
            self.uniform(DType::BOOL, 2)
        } else {
            self.expr(DType::BOOL, 2)
        };
        let jump = *self.random.pick(&["break", "continue"]);
        Some(Node::Block {
            head: pieces!["if ", condition, ":"],
            body: vec![Node::Line(pieces![jump])],
            otherwise: Vec::new(),
        })
    }

    fn atomic(&mut self) -> Option<Node> {
        let fitting: Vec<Array> = self
            .arrays
            .iter()
            .filter(|a| matches!(a.access, Access::Count))
            .cloned()
            .collect();
        let array = fitting.get(self.random.below(fitting.len()))?.clone();
        let index = self.index(&array.shape[0], 2);
        // Sums of small whole numbers are exact in floats too, whatever their order.
        let counted = match array.dtype.is_integer() {
            true => array.dtype,
            false => DType::INT32,
        };
        let value = self.expr(counted, 2);
        let most = if array.dtype.is_integer() { 1000 } else { 60 };
        let value = self.fit(value, Bounds::Int(0, most));
        let value = self.cast(value, array.dtype);
        let pointer = match self.random.below(3) {
            0 => pieces![format!("T.address_of({}[", array.name), index, "])"],
            _ => pieces![format!("{}.ptr_to([", array.name), index, "])"],
        };
        let mut line = pieces!["T.cuda.atomic_add("];
        line.extend(pointer);
        line.extend(pieces![", ", value, ")"]);
        Some(Node::Line(line))
    }
}
