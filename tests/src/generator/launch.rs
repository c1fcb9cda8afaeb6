//! The whole kernel: parameters, the shape of grid and block, the buffers, and statements between.

use tirx_core::ir::DType;

use super::bounds::Bounds;
use super::memory::{Access, Array, ElementOrder, Extent, Scope, shape_of};
use super::program::{Argument, Expr, Kernel, Node, pieces};
use super::random::Random;
use super::{FLOAT8, FLOATS, Generator, INTEGERS, Value, functions};

/// A parameter: the line that binds it, where it has one, and its form in the signature.
struct Param {
    signature: String,
    binding: Option<String>,
    argument: Argument,
}

/// See [`super::generate`].
pub(super) fn kernel(seed: u64, exact: bool) -> Kernel {
    let mut random = Random::new(seed);
    let mut dtypes = vec![DType::INT32, DType::FLOAT32];
    for _ in 0..1 + random.below(3) {
        dtypes.push(match random.below(3) {
            0 if random.chance(20) => *random.pick(FLOAT8),
            0 => *random.pick(FLOATS),
            _ => *random.pick(INTEGERS),
        });
    }
    if random.chance(20) {
        dtypes.push(DType::BOOL);
    }
    let mut g = Generator {
        budget: 6 + random.below(16) as u32,
        inline: random.chance(25),
        wild: random.chance(8),
        dynamic: false,
        vectors: Vec::new(),
        functions: Vec::new(),
        plain: false,
        exact,
        random,
        names: 0,
        values: Vec::new(),
        scalars: Vec::new(),
        arrays: Vec::new(),
        uniform_only: false,
        loads: 0,
        unreadable: Vec::new(),
        together: true,
        loops: Vec::new(),
        turns: 1,
        threads: 1,
        dtypes,
        guard: None,
    };
    let mut params = Vec::new();
    let mut symbols = Vec::new();
    let mut body = Vec::new();

    let threads = *g.random.pick(&[1i64, 4, 8, 12, 32, 32, 64, 64, 96, 128]);
    g.threads = threads;
    let guarded = g.random.chance(30);
    g.inputs(&mut params, &mut symbols);
    g.scalar_params(&mut params);

    // The grid: fixed, or as many blocks as a symbolic extent needs.
    let mut count = None;
    if guarded {
        let value = g.random.between(1, 3 * threads as i128) as i64;
        let dtype = g.symbol_dtype();
        symbols.push(("n".to_string(), dtype));
        count = Some(("n".to_string(), value, 4 * threads));
        let n = Expr::new(
            dtype,
            Bounds::Int(1, 4 * threads as i128),
            pieces!["n".to_string()],
        );
        g.values.push(Value::new(n, None));
    }
    let host = g.host_values();
    let (before, grid_lines, blocks, block) = g.grid(symbols.last().filter(|_| guarded), threads);
    let block = block.fixed();
    let (thread_lines, thread) = g.block(threads);
    let thread = thread.fixed();
    let mut lines = host;
    lines.extend(before.into_iter().map(|l| Node::Line(pieces![l])));
    lines.push(Node::Line(pieces!["T.device_entry()"]));
    lines.extend(grid_lines.into_iter().map(|l| Node::Line(pieces![l])));
    lines.extend(thread_lines.into_iter().map(|l| Node::Line(pieces![l])));

    let owners = match &count {
        Some(_) => 0,
        None => blocks * threads,
    };
    let most = match &count {
        Some((_, _, most)) => *most,
        None => owners,
    };
    let mut number = Expr::new(
        DType::INT32,
        Bounds::Int(0, (most + threads) as i128),
        pieces!["(", block, format!(" * {threads} + "), thread.clone(), ")"],
    );
    number.uniform = false;
    number.fixed = true;
    if g.random.chance(60) {
        let mut name = Expr::new(DType::INT32, number.bounds, pieces!["number".to_string()]);
        name.uniform = false;
        name.fixed = true;
        lines.push(Node::Line(pieces!["number: T.let = ", number]));
        number = name;
    }
    g.values.push(Value::new(number.clone(), None));

    // Results.
    let mut behind = Vec::new();
    for _ in 0..1 + g.random.below(2) {
        match &count {
            Some((symbol, value, most)) => {
                let array = g.guarded_output(&mut params, symbol, *value, *most, &number);
                behind.push(array);
            }
            None => {
                let array = g.output(&mut params, owners, &number);
                g.arrays.push(array);
            }
        }
    }
    if let (Some(_), Some((symbol, dtype))) = (&count, symbols.last()) {
        g.guard = Some((number.clone(), symbol.clone(), *dtype, behind));
    }
    if g.random.chance(30) {
        g.counters(&mut params);
    }
    if g.random.chance(55) {
        lines.extend(g.shared_memory(&thread));
    }
    let outputs: Vec<Array> = g
        .arrays
        .iter()
        .filter(|a| matches!(a.access, Access::Own { .. }))
        .cloned()
        .collect();
    let statements = g.top(&outputs);

    // Parameters in any order.
    for i in (1..params.len()).rev() {
        let j = g.random.below(i + 1);
        params.swap(i, j);
    }
    let list: Vec<&str> = params.iter().map(|p| p.signature.as_str()).collect();
    let mut head = vec![
        "from tvm.script import tirx as T".to_string(),
        "from tvm.tirx.layout import TileLayout, S".to_string(),
        String::new(),
    ];
    if g.inline {
        head.extend(functions::AT_TOP.lines().map(ToString::to_string));
        head.push(String::new());
    }
    head.extend(["@T.prim_func".to_string(), format!("def k({}):", list.join(", "))]);
    for (symbol, dtype) in &symbols {
        body.push(Node::Line(pieces![format!("{symbol} = T.{dtype}()")]));
    }
    for param in &params {
        if let Some(line) = &param.binding {
            body.push(Node::Line(pieces![line.clone()]));
        }
    }
    body.extend(lines);
    body.extend(statements);
    Kernel {
        seed,
        head,
        body,
        arguments: params.into_iter().map(|p| p.argument).collect(),
    }
}

impl Generator {
    /// The statements of the kernel; every result is written at the end.
    fn top(&mut self, outputs: &[Array]) -> Vec<Node> {
        let mut nodes = Vec::new();
        while self.budget > 0 {
            self.budget -= 1;
            if let Some(node) = self.statement(3) {
                nodes.push(node);
            }
        }
        nodes.extend(self.counted(outputs));
        if self.random.chance(8) {
            // Some threads leave the original values.
            let condition = self.expr(DType::BOOL, 2);
            nodes.push(Node::Block {
                head: pieces!["if ", condition, ":"],
                body: vec![Node::Line(pieces!["T.thread_return()"])],
                otherwise: Vec::new(),
            });
        }
        for array in outputs {
            nodes.push(self.store_to(array, 3));
        }
        if self.guard.is_some() {
            self.budget = 3;
            nodes.push(self.guarded(1));
        }
        // The final values of the scalars, so that no computation is dead.
        let scalars = self.scalars.clone();
        for array in outputs {
            if let Some(scalar) = scalars.iter().find(|s| s.dtype == array.dtype) {
                let indices = self.own_indices(array, 0);
                let mut value = Expr::new(array.dtype, scalar.bounds, pieces![scalar.name.clone()]);
                value.uniform = false;
                let value = self.fit(value, array.bounds);
                nodes.push(super::memory::assign(
                    super::memory::access(array, indices),
                    value,
                ));
            }
        }
        nodes
    }

    fn tensor(
        &mut self,
        params: &mut Vec<Param>,
        name: &str,
        dtype: DType,
        shape: &[(String, i64)],
        layout: &str,
        bytes: Vec<u8>,
    ) {
        let symbolic = shape.iter().any(|(text, _)| text.parse::<i64>().is_err());
        let texts: Vec<&str> = shape.iter().map(|(t, _)| t.as_str()).collect();
        let text = match texts.len() {
            1 => format!("({},)", texts[0]),
            _ => format!("({})", texts.join(", ")),
        };
        let (signature, binding) = if !symbolic && layout.is_empty() && self.random.chance(40) {
            (format!("{name}: T.Buffer({text}, \"{dtype}\")"), None)
        } else {
            (
                format!("{name}_handle: T.handle"),
                Some(format!(
                    "{name} = T.match_buffer({name}_handle, {text}, \"{dtype}\"{layout})"
                )),
            )
        };
        params.push(Param {
            signature,
            binding,
            argument: Argument::Tensor {
                name: name.to_string(),
                dtype,
                shape: shape.iter().map(|(_, n)| *n).collect(),
                bytes,
            },
        });
    }

    fn symbol_dtype(&mut self) -> DType {
        match self.random.chance(20) {
            true => DType::INT64,
            false => DType::INT32,
        }
    }

    fn inputs(&mut self, params: &mut Vec<Param>, symbols: &mut Vec<(String, DType)>) {
        for _ in 0..1 + self.random.below(3) {
            let name = self.fresh("A");
            let dtype = self.any_dtype();
            let mut shape: Vec<(String, i64)> = Vec::new();
            let mut extents = Vec::new();
            for d in 0..1 + self.random.below(3) {
                if d == 0 && self.random.chance(25) {
                    let symbol = self.fresh("m");
                    let value = self.random.between(1, 20) as i64;
                    let dtype = self.symbol_dtype();
                    let expr = Expr::new(dtype, Bounds::Int(1, 64), pieces![symbol.clone()]);
                    self.values.push(Value::new(expr, None));
                    symbols.push((symbol.clone(), dtype));
                    extents.push(Extent::Symbol(symbol.clone(), 64, dtype));
                    shape.push((symbol, value));
                } else {
                    let n = *self.random.pick(&[1i64, 3, 4, 8, 16, 32, 7]);
                    extents.push(Extent::Const(n));
                    shape.push((n.to_string(), n));
                }
            }
            let count: i64 = shape.iter().map(|(_, n)| *n).product();
            // At times indices and other small numbers.
            let bounds = match Bounds::stored(dtype) {
                Bounds::Int(low, high) if self.random.chance(30) => {
                    Bounds::Int(low.max(-8), high.min(self.random.between(1, 40)))
                }
                Bounds::Float(most) => Bounds::Float(self.random.pick(&[4.0, 100.0, 1000.0f64]).min(most)),
                other => other,
            };
            let bytes = self.content(dtype, bounds, count as usize);
            self.tensor(params, &name, dtype, &shape, "", bytes);
            self.arrays.push(Array {
                name: name.clone(),
                dtype,
                bounds,
                shape: extents,
                access: Access::Read,
                storage: name,
                scope: Scope::Global,
                dense: true,
            });
        }
    }

    /// Random bytes of values within bounds.
    fn content(&mut self, dtype: DType, bounds: Bounds, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count * dtype.bytes());
        for _ in 0..count {
            match bounds {
                Bounds::Bool => bytes.push(self.random.below(2) as u8),
                Bounds::Int(low, high) => {
                    let value = if self.random.chance(60) {
                        self.random.between(low.max(-50), high.min(50))
                    } else {
                        self.random.between(low, high)
                    };
                    bytes.extend(&value.to_le_bytes()[..dtype.bytes()]);
                }
                Bounds::Float(_) if dtype.is_float8() => {
                    let value = (self.random.unit() * 2.0 - 1.0) * 3.0;
                    bytes.push(float8(dtype, value));
                }
                Bounds::Float(_) if self.wild && self.random.chance(20) => {
                    let value = *self.random.pick(&[f64::NAN, -0.0]);
                    match (dtype.bits, dtype.is_bfloat16()) {
                        (16, false) => bytes.extend(half::f16::from_f64(value).to_le_bytes()),
                        (16, true) => bytes.extend(half::bf16::from_f64(value).to_le_bytes()),
                        (32, _) => bytes.extend((value as f32).to_le_bytes()),
                        _ => bytes.extend(value.to_le_bytes()),
                    }
                }
                Bounds::Float(most) => {
                    // Halves and whole numbers, and any.
                    let value = (self.random.unit() * 2.0 - 1.0) * most;
                    let value = if self.random.chance(30) {
                        value.round()
                    } else {
                        value
                    };
                    match (dtype.bits, dtype.is_bfloat16()) {
                        (16, false) => bytes.extend(half::f16::from_f64(value).to_le_bytes()),
                        (16, true) => bytes.extend(half::bf16::from_f64(value * 0.99).to_le_bytes()),
                        (32, _) => bytes.extend((value as f32).to_le_bytes()),
                        _ => bytes.extend(value.to_le_bytes()),
                    }
                }
            }
        }
        bytes
    }

    fn scalar_params(&mut self, params: &mut Vec<Param>) {
        for _ in 0..self.random.below(3) {
            let name = self.fresh("p");
            let dtype = *self.random.pick(&[
                DType::INT32,
                DType::FLOAT32,
                DType::INT64,
                DType::UINT32,
                DType::INT8,
                DType::UINT8,
                DType::FLOAT64,
                DType::FLOAT16,
                DType::BOOL,
            ]);
            let (argument, bounds) = if dtype.is_floating() {
                let value = self.random.between(-16, 16) as f64 * 0.25;
                (Argument::Float { value }, Bounds::Float(4.0))
            } else if dtype.is_bool() {
                let value = self.random.below(2) as i64;
                (Argument::Int { dtype, value }, Bounds::Bool)
            } else {
                let whole = Bounds::from_dtype(dtype).ints();
                let (low, high) = if self.random.chance(50) {
                    (whole.0.max(-20), whole.1.min(100))
                } else {
                    (whole.0, whole.1)
                };
                let value = self.random.between(low, high) as i64;
                (Argument::Int { dtype, value }, Bounds::Int(low, high))
            };
            let expr = Expr::new(dtype, bounds, pieces![name.clone()]);
            self.values.push(Value::new(expr, None));
            params.push(Param {
                signature: format!("{name}: T.{dtype}"),
                binding: None,
                argument,
            });
        }
    }

    /// The arrangement of elements that belong to threads.
    pub(super) fn form(&mut self) -> ElementOrder {
        self.random
            .pick(&[
                ElementOrder::Flat,
                ElementOrder::Flat,
                ElementOrder::Interleaved,
                ElementOrder::Rows,
                ElementOrder::Columns,
            ])
            .clone()
    }

    fn output(&mut self, params: &mut Vec<Param>, owners: i64, number: &Expr) -> Array {
        let name = self.fresh("B");
        let dtype = self.any_dtype();
        let form = self.form();
        let each = *self.random.pick(&[1i64, 2, 4, 4, 8, 3, 5, 16]);
        let extents = shape_of(&form, owners, each);
        let shape: Vec<(String, i64)> = extents.iter().map(|n| (n.to_string(), *n)).collect();
        let count: i64 = extents.iter().product();
        let bytes = self.content(dtype, Bounds::stored(dtype), count as usize);
        self.tensor(params, &name, dtype, &shape, "", bytes);
        Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::stored(dtype),
            shape: extents.into_iter().map(Extent::Const).collect(),
            access: Access::Own {
                form,
                owner: number.clone(),
                owners,
                each,
            },
            storage: name,
            scope: Scope::Global,
            dense: true,
        }
    }

    /// A result of symbolic length; only its first extent is the symbol.
    fn guarded_output(
        &mut self,
        params: &mut Vec<Param>,
        symbol: &str,
        value: i64,
        most: i64,
        number: &Expr,
    ) -> Array {
        let name = self.fresh("B");
        let dtype = self.any_dtype();
        let each = *self.random.pick(&[1i64, 2, 4, 3]);
        let (form, shape) = if each == 1 && self.random.chance(60) {
            (ElementOrder::Flat, vec![(symbol.to_string(), value)])
        } else if self.random.chance(70) {
            (
                ElementOrder::Rows,
                vec![(symbol.to_string(), value), (each.to_string(), each)],
            )
        } else {
            (
                ElementOrder::Columns,
                vec![(each.to_string(), each), (symbol.to_string(), value)],
            )
        };
        let count: i64 = shape.iter().map(|(_, n)| *n).product();
        let bytes = self.content(dtype, Bounds::stored(dtype), count as usize);
        self.tensor(params, &name, dtype, &shape, "", bytes);
        let shape = shape
            .iter()
            .map(|(text, n)| match text.parse::<i64>() {
                Ok(n) => Extent::Const(n),
                Err(_) => Extent::Symbol(text.clone(), (*n).max(most), DType::INT32),
            })
            .collect();
        Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::stored(dtype),
            shape,
            access: Access::Own {
                form,
                owner: number.clone(),
                owners: most,
                each,
            },
            storage: name,
            scope: Scope::Global,
            dense: true,
        }
    }

    fn counters(&mut self, params: &mut Vec<Param>) {
        let name = self.fresh("C");
        let dtype = *self
            .random
            .pick(&[DType::INT32, DType::UINT32, DType::UINT64, DType::FLOAT32]);
        let n = *self.random.pick(&[1i64, 4, 16]);
        let bytes = vec![0; n as usize * dtype.bytes()];
        self.tensor(params, &name, dtype, &[(n.to_string(), n)], "", bytes);
        self.arrays.push(Array {
            name: name.clone(),
            dtype,
            bounds: Bounds::from_dtype(dtype),
            shape: vec![Extent::Const(n)],
            access: Access::Count,
            storage: name,
            scope: Scope::Global,
            dense: true,
        });
    }
}

/// A float8 of a value: its bits, rounded towards zero.
fn float8(dtype: DType, value: f64) -> u8 {
    let (mantissa, bias) = match dtype == FLOAT8[0] {
        true => (3, 7),
        false => (2, 15),
    };
    let sign = if value < 0.0 { 0x80 } else { 0 };
    let value = value.abs();
    if value < 0.25 {
        return sign;
    }
    let exponent = value.log2().floor();
    let fraction = (value / exponent.exp2() - 1.0) * f64::from(1 << mantissa);
    sign | ((exponent as i32 + bias) as u8) << mantissa | fraction as u8
}
