//! Runs the host function's IR, so that the simulator makes the same argument checks and launch extents as the
//! launchers.
//!
//! A tree walk; host functions are short. Integers are computed in 128 bits and wrapped to the IR's dtypes.

use std::collections::HashMap;
use std::sync::Arc;

use tirx_ir::abi::tensor_map::{self, Encode};
use tirx_ir::abi::{self, Check, DEVICE_CUDA, Field, LaunchParam, What, arg_type, dlpack_code, float_method};
use tirx_ir::fold::eval_int;
use tirx_ir::intrin::Op;
use tirx_ir::{
    Assert, Attr, BinOp, DType, Expr, ExprKind, ForKind, ForLoop, IRModule, Stmt, StmtKind, TypeCode, Var,
    odd_f32,
};

use tirx_sim_machine::{Allocation, Memory};
use tirx_sim_machine::{TENSOR_MAP_BYTES, TensorMap, TensorMapSwizzle, TensorMapType};

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A compact tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<i64>,
        /// Device address.
        address: u64,
        /// Bytes from the address to the first element.
        byte_offset: u64,
    },
    /// An integer as the 64 bits that a packed call holds it in: a `uint64` above `i64::MAX` is the negative number of
    /// the same bits.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// `None`: a pointer to nothing.
    Null,
    /// A tensor map that the caller has encoded.
    TensorMap(TensorMap),
}

/// A launch by the host function.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The device function.
    pub symbol: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    /// Preferred blocks of a cluster; all ones: no preference.
    pub preferred_cluster: [u32; 3],
    /// May start before the previous kernel of the stream has ended.
    pub programmatic: bool,
    /// All blocks resident at once.
    pub cooperative: bool,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Pointers and scalars as bits; for a tensor map, its number in `tensor_maps`.
    pub args: Vec<u64>,
    /// The tensor maps that the host encoded, each with its argument's position.
    pub tensor_maps: Vec<(usize, TensorMap)>,
}

impl Launch {
    /// The arguments as a kernel in `memory` takes them: tensor maps are put there and passed by address. The
    /// allocations must live as long as the launch.
    pub fn arguments_in(&self, memory: &Memory) -> (Vec<u64>, Vec<Allocation>) {
        let mut args = self.args.clone();
        let mut kept = Vec::new();
        for (argument, map) in &self.tensor_maps {
            let allocation = memory.alloc(TENSOR_MAP_BYTES);
            allocation.write(0, &map.encode());
            args[*argument] = allocation.address();
            kept.push(allocation);
        }
        (args, kept)
    }
}

/// Runs the packed host function of a lowered module. `launch` runs a device function; an error is a message.
pub fn run(
    module: &IRModule,
    names: &[String],
    arguments: &[Argument],
    launch: &mut dyn FnMut(&Launch) -> Result<(), String>,
) -> Result<(), String> {
    let func = abi::host_function(module, None).ok_or("the kernel has no host function after lowering")?;
    let [_, args, count, _] = func.params.as_slice() else {
        return Err("the host function does not have the packed calling convention".to_string());
    };
    let mut machine = Machine {
        module,
        names,
        arguments,
        values: HashMap::new(),
        exact: HashMap::new(),
        launch,
        stack: Vec::new(),
        maps: Vec::new(),
        steps: 0,
    };
    machine.values.insert(args.clone(), Value::Handle(Handle::Args));
    machine
        .values
        .insert(count.clone(), Value::Int(arguments.len() as i128));
    machine.stmt(&func.body).map(|_| ())
}

/// A pointer of the packed calling convention.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Handle {
    Args,
    Tensor(usize),
    Shape(usize),
    /// Compact: null.
    Strides,
    /// A tensor map that the host encoded; one without a number has none yet.
    Map(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    /// An integer, a bool or a device address.
    Int(i128),
    Float(f64),
    Handle(Handle),
}

/// Whether the function continues after a statement.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Return,
}

struct Machine<'a> {
    module: &'a IRModule,
    names: &'a [String],
    arguments: &'a [Argument],
    values: HashMap<Var, Value>,
    /// Integers bound to names, computed without wrapping.
    exact: HashMap<Var, i128>,
    launch: &'a mut dyn FnMut(&Launch) -> Result<(), String>,
    /// The stack of packed arguments, in a host function that builds one.
    stack: Vec<Option<Expr>>,
    /// Tensor maps, the caller's and those encoded so far; for one of a tensor without elements the error of a launch that
    /// takes it.
    maps: Vec<Result<TensorMap>>,
    steps: u64,
}

/// Number of statements after which a host function is assumed to loop forever.
const MOST_STEPS: u64 = 10_000_000;

type Result<T, E = String> = std::result::Result<T, E>;

impl Machine<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(format!(
                "the host function did not end after {MOST_STEPS} statements"
            ));
        }
        match &stmt.kind {
            StmtKind::Seq(stmts) => {
                for s in stmts {
                    if self.stmt(s)? == Flow::Return {
                        return Ok(Flow::Return);
                    }
                }
            }
            StmtKind::Attr(Attr { body, .. }) => return self.stmt(body),
            StmtKind::DeclBuffer(_) => {}
            StmtKind::Bind(var, value) => {
                if let Some(exact) = matches!(value.kind, ExprKind::Binary(..) | ExprKind::Cast(_))
                    .then(|| self.exact(value, 0))
                    .flatten()
                {
                    self.exact.insert(var.clone(), exact);
                }
                let value = self.value(value)?;
                self.values.insert(var.clone(), value);
            }
            StmtKind::Assert(Assert {
                condition, message, ..
            }) => {
                if !self.holds(condition)? {
                    return Err(self.failed(condition, message));
                }
            }
            StmtKind::Evaluate(expr) => return self.evaluate(expr),
            StmtKind::If(condition, then, otherwise) => {
                if self.int(condition)? != 0 {
                    return self.stmt(then);
                } else if let Some(otherwise) = otherwise {
                    return self.stmt(otherwise);
                }
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind: ForKind::Serial | ForKind::Unrolled,
                step,
                body,
                ..
            }) => {
                let (first, count) = (self.int(min)?, self.int(extent)?);
                let step = step.as_ref().map_or(Ok(1), |s| self.int(s))?.max(1);
                let mut at = first;
                while at < first + count {
                    self.values.insert(var.clone(), Value::Int(at));
                    if self.stmt(body)? == Flow::Return {
                        return Ok(Flow::Return);
                    }
                    at += step;
                }
            }
            StmtKind::While(condition, body) => {
                while self.int(condition)? != 0 {
                    if self.stmt(body)? == Flow::Return {
                        return Ok(Flow::Return);
                    }
                }
            }
            _ => return Err("host code has a statement that cannot be run".to_string()),
        }
        Ok(Flow::Next)
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Flow> {
        match &expr.kind {
            ExprKind::Call { op: Op::Ret, .. } => Ok(Flow::Return),
            ExprKind::Call {
                op: Op::TvmStructSet,
                args,
            } => {
                if let [_, element, field, value] = &args[..]
                    && field.is_int(Field::ArgValue.number().into())
                {
                    let element = usize::try_from(self.int(element)?).map_err(|e| e.to_string())?;
                    if self.stack.len() <= element {
                        self.stack.resize(element + 1, None);
                    }
                    self.stack[element] = Some(value.clone());
                }
                Ok(Flow::Next)
            }
            ExprKind::Call {
                op: Op::TvmCallPackedLowered,
                args,
            } => {
                let [name, _, begin, end] = &args[..] else {
                    return Err("host code calls a packed function in a way that is not known".to_string());
                };
                let range = usize::try_from(self.int(begin)?)
                    .ok()
                    .zip(usize::try_from(self.int(end)?).ok());
                let values = range.and_then(|(begin, end)| self.stack.get(begin..end));
                let values = values.and_then(|values| values.iter().cloned().collect::<Option<Vec<Expr>>>());
                let values = values.ok_or("host code passes values that it has not put on its stack")?;
                let args = [name.clone()].into_iter().chain(values).collect();
                let call = Expr::call(Op::TvmCallPacked, expr.dtype, args);
                self.evaluate(&call)
            }
            ExprKind::Call {
                op: Op::TvmCallPacked,
                args,
            } => {
                if args.first().and_then(|a| a.as_str()) == Some("__tvm_set_device") {
                    return Ok(Flow::Next);
                }
                if let Some(encode) = tensor_map::encode(args, expr.span) {
                    self.encode_tensor_map(&encode.map_err(|error| error.message.clone())?)?;
                    return Ok(Flow::Next);
                }
                let module = self.module;
                let call =
                    abi::launch(module, args).ok_or("host code calls a packed function that is not known")?;
                let symbols = abi::device_functions(module);
                let mut launch = Launch {
                    symbol: symbols[call.function].0.to_string(),
                    grid: [1; 3],
                    block: [1; 3],
                    cluster: [1; 3],
                    preferred_cluster: [1; 3],
                    ..Launch::default()
                };
                let mut empty = None;
                for (param, arg) in call.device.params.iter().zip(call.args) {
                    let value = self.value(arg)?;
                    if let Value::Handle(Handle::Map(number)) = value {
                        match &self.maps[number] {
                            Ok(map) => launch.tensor_maps.push((launch.args.len(), map.clone())),
                            Err(error) => empty = empty.or(Some(error.clone())),
                        }
                        launch.args.push(0);
                        continue;
                    }
                    launch.args.push(bits(value, param.dtype())?);
                }
                for (param, tag, value) in &call.params {
                    let extent = match value {
                        Some(value) => self.number(value)?,
                        None => 1,
                    };
                    let extent = u32::try_from(extent).map_err(|_| format!("{tag} would be {extent}"))?;
                    match param {
                        LaunchParam::Grid(d) => launch.grid[*d] = extent,
                        LaunchParam::Block(d) => launch.block[*d] = extent,
                        LaunchParam::Cluster(d) => launch.cluster[*d] = extent,
                        LaunchParam::PreferredCluster(d) => launch.preferred_cluster[*d] = extent,
                        LaunchParam::SharedBytes => launch.shared_bytes = extent,
                        LaunchParam::Programmatic => launch.programmatic = true,
                        LaunchParam::Cooperative => launch.cooperative = true,
                    }
                }
                // A grid with no blocks does nothing, as in a launcher.
                if !launch.grid.contains(&0) {
                    match empty {
                        Some(error) => return Err(error),
                        None => (self.launch)(&launch)?,
                    }
                }
                Ok(Flow::Next)
            }
            _ => Ok(Flow::Next),
        }
    }

    fn encode_tensor_map(&mut self, encode: &Encode<'_>) -> Result<()> {
        if let Some(empty) = encode.is_empty()
            && self.holds(&empty)?
        {
            let error = tensor_map::without_elements(encode.map.name());
            self.define_map(encode.map, Err(error));
            return Ok(());
        }
        for rule in encode.rules() {
            if !self.holds(&rule.condition)? {
                let (map, value) = (encode.map.name(), self.number(&rule.value)?);
                return Err(format!(
                    "tensor map `{map}`: {} is {value}, expected {}",
                    rule.field, rule.expected
                ));
            }
        }
        let mut list = |values: &[Expr]| {
            let values = values.iter().map(|v| Ok(self.number(v)? as u64));
            values.collect::<Result<Vec<u64>>>()
        };
        let (dims, strides) = (list(&encode.dims)?, list(&encode.strides)?);
        let narrow = |values: Vec<u64>| values.into_iter().map(|v| v as u32).collect::<Vec<u32>>();
        let box_dims = narrow(list(&encode.box_dims)?);
        let element_strides = narrow(list(&encode.element_strides)?);
        let unknown = || "host code encodes a tensor map with a mode that is not known".to_string();
        let map = TensorMap {
            dtype: TensorMapType::from_value(encode.data_type).ok_or_else(unknown)?,
            address: self.int(&encode.address)? as u64,
            dims,
            strides,
            box_dims,
            element_strides,
            interleave: encode.interleave as u8,
            swizzle: TensorMapSwizzle::from_value(encode.swizzle as u32).ok_or_else(unknown)?,
            l2_promotion: encode.l2_promotion as u8,
            nan_fill: encode.oob_fill == 1,
        };
        self.define_map(encode.map, Ok(map));
        Ok(())
    }

    fn define_map(&mut self, var: &Var, map: Result<TensorMap>) {
        let number = self.maps.len();
        self.maps.push(map);
        self.values
            .insert(var.clone(), Value::Handle(Handle::Map(number)));
    }

    /// The message of a failed check, in the form of the launchers' errors.
    fn failed(&mut self, condition: &Expr, message: &[Arc<str>]) -> String {
        let Some(check) = Check::read(message, self.names) else {
            return message.concat();
        };
        let alignment = matches!(check.what, What::Alignment | What::OffsetAlignment);
        let expected = if alignment {
            format!("a multiple of {}", check.expected)
        } else {
            check.expected.clone()
        };
        let mut text = format!("argument {} `{}`: ", check.index, check.argument);
        match self.sides(condition) {
            _ if check.what == What::Data => text.push_str("data is null, expected a pointer"),
            Some((actual, wanted)) if !alignment => {
                text.push_str(&format!("{} is {actual}, expected {wanted}", check.what.field()));
                if !expected.is_empty() && expected != wanted {
                    text.push_str(&format!(" ({expected})"));
                }
            }
            _ => text.push_str(&format!(
                "{} does not fit, expected {expected}",
                check.what.field()
            )),
        }
        text
    }

    /// The actual and the expected value of the first equality that does not hold.
    fn sides(&mut self, condition: &Expr) -> Option<(String, String)> {
        if let ExprKind::Binary(BinOp::And | BinOp::Or, a, b) = &condition.kind {
            for side in [a, b] {
                if self.int(side).ok()? == 0
                    && let Some(found) = self.sides(side)
                {
                    return Some(found);
                }
            }
            return None;
        }
        let (a, b) = condition.as_binary(BinOp::Eq)?;
        let reads = |e: &Expr| {
            fn go(e: &Expr) -> bool {
                e.as_call(Op::TvmStructGet).is_some() || e.operands().into_iter().any(go)
            }
            go(e)
        };
        let (actual, wanted) = if reads(b) && !reads(a) { (b, a) } else { (a, b) };
        Some((
            self.int(actual).ok()?.to_string(),
            self.int(wanted).ok()?.to_string(),
        ))
    }

    fn int(&mut self, expr: &Expr) -> Result<i128> {
        match self.value(expr)? {
            Value::Int(v) => Ok(v),
            _ => Err("host code uses a number or pointer where an integer belongs".to_string()),
        }
    }

    fn float(&mut self, expr: &Expr) -> Result<f64> {
        match self.value(expr)? {
            Value::Float(v) => Ok(v),
            _ => Err("host code uses an integer or pointer where a number belongs".to_string()),
        }
    }

    /// Whether a check holds, its integers compared as the numbers they are.
    fn holds(&mut self, condition: &Expr) -> Result<bool> {
        if let ExprKind::Binary(op, a, b) = &condition.kind {
            match op {
                BinOp::And => return Ok(self.holds(a)? && self.holds(b)?),
                BinOp::Or => return Ok(self.holds(a)? || self.holds(b)?),
                _ => {}
            }
            // Unsigned arithmetic wraps on purpose.
            if op.is_comparison()
                && a.dtype.code == TypeCode::Int
                && let (Some(a), Some(b)) = (self.unbounded(a, 0), self.unbounded(b, 0))
            {
                return Ok(match op {
                    BinOp::Eq => a == b,
                    BinOp::Ne => a != b,
                    BinOp::Lt => a < b,
                    BinOp::Le => a <= b,
                    BinOp::Gt => a > b,
                    _ => a >= b,
                });
            }
        }
        Ok(self.int(condition)? != 0)
    }

    /// An integer expression computed in unlimited width, for launch extents; `None` for anything but arithmetic, and
    /// for what does not fit 64 bits.
    fn exact(&mut self, expr: &Expr, depth: usize) -> Option<i128> {
        self.unbounded(expr, depth)
            .filter(|value| i64::try_from(*value).is_ok())
    }

    /// An integer of a tensor map or a launch, computed without wrapping.
    fn number(&mut self, expr: &Expr) -> Result<i128> {
        match self.exact(expr, 0) {
            Some(value) => Ok(value),
            None => self.int(expr),
        }
    }

    fn unbounded(&mut self, expr: &Expr, depth: usize) -> Option<i128> {
        if depth > 64 || !expr.dtype.is_integer() {
            return None;
        }
        Some(match &expr.kind {
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.unbounded(a, depth + 1)?, self.unbounded(b, depth + 1)?);
                match op {
                    BinOp::Add => a.checked_add(b)?,
                    BinOp::Sub => a.checked_sub(b)?,
                    BinOp::Mul => a.checked_mul(b)?,
                    BinOp::Div => a.checked_div(b)?,
                    BinOp::Mod => a.checked_rem(b)?,
                    BinOp::FloorDiv => a.checked_div(b)? - i128::from(a % b != 0 && (a < 0) != (b < 0)),
                    BinOp::FloorMod => (a.checked_rem(b)? + b) % b,
                    BinOp::Min => a.min(b),
                    BinOp::Max => a.max(b),
                    _ => return None,
                }
            }
            ExprKind::Call {
                op: op @ (Op::ShiftRight | Op::ShiftLeft),
                args,
            } => {
                let [a, count] = &args[..] else {
                    return None;
                };
                let factor = 1i128 << count.as_int().filter(|count| (0..62).contains(count))?;
                let a = self.unbounded(a, depth + 1)?;
                match op {
                    Op::ShiftRight => a.div_euclid(factor),
                    _ => a.checked_mul(factor)?,
                }
            }
            ExprKind::Cast(inner)
                if matches!(inner.kind, ExprKind::Binary(..) | ExprKind::Call { .. })
                    || inner.as_var().is_some_and(|var| self.exact.contains_key(var)) =>
            {
                self.unbounded(inner, depth + 1)?
            }
            ExprKind::Var(var) if self.exact.contains_key(var) => self.exact[var],
            _ => match self.value(expr).ok()? {
                Value::Int(v) => v,
                _ => return None,
            },
        })
    }

    fn value(&mut self, expr: &Expr) -> Result<Value> {
        if let Some(moved) = abi::moved_pointer(expr) {
            return self.value(&moved);
        }
        let dtype = expr.dtype;
        Ok(match &expr.kind {
            ExprKind::Int(v) => Value::Int(*v),
            ExprKind::Float(v) => Value::Float(*v),
            ExprKind::Var(var) => match self.values.get(var) {
                Some(value) => *value,
                None => return Err(format!("host code reads `{}`, which has no value", var.name())),
            },
            ExprKind::Cast(inner) => match self.value(inner)? {
                Value::Int(v) if dtype.is_floating() => Value::Float(round(dtype, v as f64)),
                Value::Int(v) => Value::Int(dtype.wrap(v)),
                Value::Float(v) if dtype.is_floating() => Value::Float(round(dtype, v)),
                Value::Float(v) => Value::Int(dtype.wrap(v as i128)),
                handle => handle,
            },
            ExprKind::Not(inner) => Value::Int((self.int(inner)? == 0) as i128),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let a = self.int(a)? != 0;
                let decided = a != (*op == BinOp::And);
                Value::Int(if decided {
                    a as i128
                } else {
                    (self.int(b)? != 0) as i128
                })
            }
            ExprKind::Binary(op, a, b) => match (self.value(a)?, self.value(b)?) {
                (Value::Int(x), Value::Int(y)) => Value::Int(
                    eval_int(*op, a.dtype, x, y).ok_or_else(|| format!("host code divides {x} by zero"))?,
                ),
                (Value::Float(x), Value::Float(y)) => float_binary(*op, a.dtype, x, y),
                _ => return Err("host code computes with pointers".to_string()),
            },
            ExprKind::Select(c, t, f) => {
                return if self.int(c)? != 0 {
                    self.value(t)
                } else {
                    self.value(f)
                };
            }
            ExprKind::Let(var, value, body) => {
                let value = self.value(value)?;
                self.values.insert(var.clone(), value);
                self.value(body)?
            }
            ExprKind::Call { op, args } => self.call(expr, *op, args)?,
            _ => return Err("host code has an expression that cannot be run".to_string()),
        })
    }

    fn call(&mut self, expr: &Expr, op: Op, args: &[Expr]) -> Result<Value> {
        Ok(match (op, args) {
            (Op::TvmStructGet, [object, index, field]) => {
                self.struct_get(expr.dtype, object, index, field)?
            }
            (Op::IfThenElse, [c, t, f]) => {
                return if self.int(c)? != 0 {
                    self.value(t)
                } else {
                    self.value(f)
                };
            }
            (Op::Likely | Op::Reinterpret, [a]) => self.value(a)?,
            // The stack of packed arguments is the machine's own.
            (Op::TvmStackAlloca, _) => Value::Int(0),
            (Op::HandleAddByteOffset, [pointer, offset]) => match self.value(pointer)? {
                Value::Int(address) => Value::Int(address + self.int(offset)?),
                descriptor => descriptor,
            },
            (Op::IsNullptr, [pointer]) => match self.value(pointer)? {
                Value::Handle(Handle::Strides) => Value::Int(1),
                Value::Int(v) => Value::Int((v == 0) as i128),
                _ => Value::Int(0),
            },
            (Op::BitwiseAnd, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? & self.int(b)?)),
            (Op::BitwiseOr, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? | self.int(b)?)),
            (Op::BitwiseXor, [a, b]) => Value::Int(expr.dtype.wrap(self.int(a)? ^ self.int(b)?)),
            (Op::BitwiseNot, [a]) => Value::Int(expr.dtype.wrap(!self.int(a)?)),
            (Op::ShiftLeft | Op::ShiftRight, [a, b]) => {
                let (value, count) = (self.int(a)?, self.int(b)?.clamp(0, 63));
                Value::Int(expr.dtype.wrap(if op == Op::ShiftLeft {
                    value << count
                } else {
                    value >> count
                }))
            }
            (Op::Popcount | Op::Clz, [a]) => {
                let of = i128::from(a.dtype.bits);
                let bits = self.int(a)? & ((1 << of) - 1);
                Value::Int(match op {
                    Op::Popcount => bits.count_ones().into(),
                    _ => of - i128::from(128 - bits.leading_zeros()),
                })
            }
            (_, [a, rest @ ..]) if float_method(op).is_some() => {
                let x = self.float(a)?;
                let y = rest.first().map_or(Ok(0.0), |b| self.float(b))?;
                let result = match op {
                    Op::Ceil => x.ceil(),
                    Op::Floor => x.floor(),
                    Op::Trunc => x.trunc(),
                    Op::Round | Op::Nearbyint => x.round_ties_even(),
                    Op::Fabs => x.abs(),
                    Op::Sqrt => x.sqrt(),
                    Op::Exp => x.exp(),
                    Op::Exp2 => x.exp2(),
                    Op::Log => x.ln(),
                    Op::Log2 => x.log2(),
                    Op::Log10 => x.log10(),
                    _ => x.powf(y),
                };
                Value::Float(round(expr.dtype, result))
            }
            (Op::LargeUintImm, [low, high]) => Value::Int(self.int(low)? | self.int(high)? << 32),
            _ => {
                return Err(format!(
                    "host code calls `T.{}`, which cannot be run",
                    op.info().script
                ));
            }
        })
    }

    fn struct_get(&mut self, dtype: DType, object: &Expr, index: &Expr, field: &Expr) -> Result<Value> {
        let unknown = || "host code reads a field of an argument that is not known".to_string();
        let Value::Handle(handle) = self.value(object)? else {
            return Err(unknown());
        };
        let position = usize::try_from(self.int(index)?).map_err(|_| unknown())?;
        let field = field.as_int().and_then(Field::from_number).ok_or_else(unknown)?;
        let arguments = self.arguments;
        let tensor = |i: usize| match arguments.get(i) {
            Some(Argument::Tensor {
                dtype,
                shape,
                address,
                byte_offset,
            }) => Ok((*dtype, shape, *address, *byte_offset)),
            _ => Err(unknown()),
        };
        Ok(match (handle, field) {
            (Handle::Args, Field::ArgType) => {
                Value::Int(match arguments.get(position).ok_or_else(unknown)? {
                    Argument::Tensor { .. } => arg_type::TENSOR,
                    Argument::Int(_) => arg_type::INT,
                    Argument::Float(_) => arg_type::FLOAT,
                    Argument::Bool(_) => arg_type::BOOL,
                    Argument::Null => arg_type::NONE,
                    Argument::TensorMap(_) => arg_type::POINTER,
                })
            }
            (Handle::Args, Field::ArgValue) => match arguments.get(position).ok_or_else(unknown)? {
                Argument::Tensor { .. } => Value::Handle(Handle::Tensor(position)),
                Argument::Int(v) => Value::Int((*v).into()),
                Argument::Null => Value::Int(0),
                Argument::TensorMap(map) => {
                    self.maps.push(Ok(map.clone()));
                    Value::Handle(Handle::Map(self.maps.len() - 1))
                }
                Argument::Bool(v) => Value::Int((*v).into()),
                // Only the selected operand is evaluated, for integers too.
                Argument::Float(v) if dtype.is_floating() => Value::Float(*v),
                Argument::Float(v) => Value::Int(*v as i128),
            },
            (Handle::Tensor(i), Field::Data) => Value::Int(tensor(i)?.2.into()),
            (Handle::Tensor(i), Field::Shape) => Value::Handle(Handle::Shape(i)),
            (Handle::Tensor(_), Field::Strides) => Value::Handle(Handle::Strides),
            (Handle::Tensor(i), Field::Ndim) => Value::Int(tensor(i)?.1.len() as i128),
            (Handle::Tensor(i), Field::TypeCode) => Value::Int(dlpack_code(tensor(i)?.0).into()),
            (Handle::Tensor(i), Field::TypeBits) => Value::Int(tensor(i)?.0.bits.into()),
            (Handle::Tensor(i), Field::TypeLanes) => Value::Int(tensor(i)?.0.lanes.into()),
            (Handle::Tensor(i), Field::ByteOffset) => Value::Int(tensor(i)?.3.into()),
            (Handle::Tensor(_), Field::DeviceId) => Value::Int(0),
            (Handle::Tensor(_), Field::DeviceType) => Value::Int(DEVICE_CUDA),
            (Handle::Shape(i), Field::Int64Element) => {
                // The rank was checked before, so this fails only in a host function that reads a dimension it did not check.
                let extent = tensor(i)?.1.get(position).copied();
                Value::Int(
                    extent
                        .ok_or_else(|| format!("`{}` has no dimension {position}", self.names[i]))?
                        .into(),
                )
            }
            _ => return Err(unknown()),
        })
    }
}

fn float_binary(op: BinOp, dtype: DType, x: f64, y: f64) -> Value {
    let number = |v: f64| Value::Float(round(dtype, v));
    let truth = |v: bool| Value::Int(v as i128);
    match op {
        BinOp::Add => number(x + y),
        BinOp::Sub => number(x - y),
        BinOp::Mul => number(x * y),
        BinOp::Div => number(x / y),
        BinOp::Mod => number(x % y),
        BinOp::FloorDiv => number((x / y).floor()),
        BinOp::FloorMod => number(x - (x / y).floor() * y),
        BinOp::Min => number(x.min(y)),
        BinOp::Max => number(x.max(y)),
        BinOp::Eq => truth(x == y),
        BinOp::Ne => truth(x != y),
        BinOp::Lt => truth(x < y),
        BinOp::Le => truth(x <= y),
        BinOp::Gt => truth(x > y),
        BinOp::Ge => truth(x >= y),
        BinOp::And => truth(x != 0.0 && y != 0.0),
        BinOp::Or => truth(x != 0.0 || y != 0.0),
    }
}

/// A number rounded to a floating dtype.
fn round(dtype: DType, value: f64) -> f64 {
    Expr::float(dtype, value).as_float().unwrap_or(value)
}

/// A value as the 64 bits of a launch argument.
fn bits(value: Value, dtype: DType) -> Result<u64> {
    Ok(match value {
        Value::Int(v) if dtype.is_handle() || dtype.bits == 64 => v as u64,
        Value::Int(v) => (v & ((1i128 << dtype.bits) - 1)) as u64,
        Value::Float(v) => match (dtype.is_bfloat16(), dtype.bits) {
            (_, 64) => v.to_bits(),
            (_, 32) => u64::from((v as f32).to_bits()),
            (true, _) => u64::from(tirx_ir::bf16::from_f32(odd_f32(v)).to_bits()),
            (false, _) => u64::from(tirx_ir::f16::from_f32(odd_f32(v)).to_bits()),
        },
        Value::Handle(_) => return Err("host code hands a descriptor to a kernel".to_string()),
    })
}
