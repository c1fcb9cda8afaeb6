//! Runs the host function's IR, so that the simulator makes the same argument checks and launch extents as the
//! launchers.
//!
//! A tree walk; host functions are short. Statements, launches and checks are here, expressions in `value.rs`.

mod value;

use std::collections::HashMap;
use std::sync::Arc;

use tirx_ir::abi::host::operators::Scalar;
use tirx_ir::abi::tensor_map::{self, Encode};
use tirx_ir::abi::{self, Check, Field, LaunchParam, What};
use tirx_ir::intrin::{Op, Operands};
use tirx_ir::{
    Assert, Attr, BinOp, DType, Expr, ExprKind, ForKind, ForLoop, IRModule, Stmt, StmtKind, Var, at,
};

use self::value::bits;
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

/// The launches of several ranks that run together: the first of each, then the second of each.
///
/// # Errors
/// Ranks whose host functions launch other kernels, or other numbers of them.
pub fn together(ranks: Vec<Vec<Launch>>) -> Result<Vec<Vec<Launch>>, String> {
    let counts: Vec<usize> = ranks.iter().map(Vec::len).collect();
    if let Some(other) = counts.iter().position(|count| *count != counts[0]) {
        return Err(format!(
            "rank {other} launches {} kernels and rank 0 {}: ranks run one kernel together",
            counts[other], counts[0]
        ));
    }
    let mut ranks: Vec<_> = ranks.into_iter().map(Vec::into_iter).collect();
    let all = (0..counts.first().copied().unwrap_or(0))
        .map(|_| {
            ranks
                .iter_mut()
                .filter_map(Iterator::next)
                .collect::<Vec<Launch>>()
        })
        .collect::<Vec<_>>();
    all.iter()
        .try_for_each(|launches| same_shape(launches).map(|_| ()))?;
    Ok(all)
}

/// The launch of rank 0, if those of the other ranks differ in arguments alone.
///
/// # Errors
/// Ranks that launch another kernel, or another grid.
pub fn same_shape(launches: &[Launch]) -> Result<&Launch, String> {
    let first = launches.first().ok_or("a launch on no device")?;
    let shape = |launch: &Launch| (launch.grid, launch.block, launch.cluster, launch.shared_bytes);
    for (rank, launch) in launches.iter().enumerate() {
        if launch.symbol != first.symbol {
            return Err(format!(
                "rank {rank} launches `{}` and rank 0 `{}`: ranks run one kernel together",
                launch.symbol, first.symbol
            ));
        }
        if shape(launch) != shape(first) {
            return Err(format!(
                "rank {rank} launches `{}` with a grid {:?} of blocks {:?}, and rank 0 with {:?} of {:?}: the launches of all ranks have \
                 one shape",
                launch.symbol, launch.grid, launch.block, first.grid, first.block
            ));
        }
    }
    Ok(first)
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
    let mut machine = Machine::new(module, names, arguments, launch);
    machine.values.insert(args.clone(), Value::Handle(Handle::Args));
    machine
        .values
        .insert(count.clone(), Value::Int(arguments.len() as i128));
    machine.stmt(&func.body).map(|_| ())
}

/// The value of an expression of host code whose variables have these values.
///
/// # Errors
/// A message, for an expression that host code cannot compute and for a division that has no value.
pub fn evaluate(expr: &Expr, variables: &[(Var, Scalar)]) -> Result<Scalar, String> {
    let module = IRModule::default();
    let mut launch = |_: &Launch| Ok(());
    let mut machine = Machine::new(&module, &[], &[], &mut launch);
    for (var, value) in variables {
        machine.values.insert(var.clone(), (*value).into());
    }
    machine.value(expr)?.scalar()
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

/// An integer computed without wrapping; `None` after overflow or a division by zero.
#[derive(Clone, Copy, Debug)]
struct Exact(Option<i64>);

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
    exact: HashMap<Var, Exact>,
    launch: &'a mut dyn FnMut(&Launch) -> Result<(), String>,
    /// The stack of packed arguments, in a host function that builds one.
    stack: Vec<Option<Expr>>,
    /// Tensor maps, the caller's and those encoded so far; for one of a tensor without elements the error of a launch that
    /// takes it.
    maps: Vec<Result<TensorMap>>,
    steps: u64,
}

/// Number of statements after which a host function is assumed to loop forever.
const MAX_STEPS: u64 = 10_000_000;

type Result<T, E = String> = std::result::Result<T, E>;

impl<'a> Machine<'a> {
    fn new(
        module: &'a IRModule,
        names: &'a [String],
        arguments: &'a [Argument],
        launch: &'a mut dyn FnMut(&Launch) -> Result<(), String>,
    ) -> Machine<'a> {
        Machine {
            module,
            names,
            arguments,
            values: HashMap::new(),
            exact: HashMap::new(),
            launch,
            stack: Vec::new(),
            maps: Vec::new(),
            steps: 0,
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(format!(
                "the host function did not end after {MAX_STEPS} statements"
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
                if matches!(value.kind, ExprKind::Binary(..) | ExprKind::Cast(_))
                    && let Some(exact) = self.exact(value)?
                {
                    self.exact.insert(var.clone(), exact);
                    self.fits(value, exact)?;
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

    /// Checks that an extent that is read as `int32` was not cut, as launchers do.
    fn fits(&mut self, value: &Expr, exact: Exact) -> Result<()> {
        let Some(wide) = abi::descriptor_value(value) else {
            return Ok(());
        };
        let Exact(Some(exact)) = exact else {
            return Ok(());
        };
        match (
            i32::try_from(exact),
            abi::element_position(wide),
            self.array(wide),
        ) {
            (Err(_), Some(position), Some(argument)) => Err(format!(
                "argument {argument} `{}`: shape[{position}] is {exact}, expected at most 2147483647",
                self.names[argument]
            )),
            _ => Ok(()),
        }
    }

    /// The tensor whose extent an expression reads.
    fn array(&mut self, extent: &Expr) -> Option<usize> {
        let args = match &extent.kind {
            ExprKind::Call {
                op: Op::TvmStructGet,
                args,
            } => args,
            _ => return None,
        };
        match self.value(args.get(at!(TvmStructGet.arr))?) {
            Ok(Value::Handle(Handle::Shape(argument))) => Some(argument),
            _ => None,
        }
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<Flow> {
        match &expr.kind {
            ExprKind::Call { op: Op::Ret, .. } => Ok(Flow::Return),
            ExprKind::Call {
                op: Op::TvmStructSet,
                args,
            } => {
                let args = Operands::read(Op::TvmStructSet.row(), args)?;
                if let (Some(element), Some(field), Some(value)) =
                    (args.get("index"), args.get("field"), args.get("value"))
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
                let given = Operands::read(Op::TvmCallPackedLowered.row(), args)?;
                let (Some(name), Some(begin), Some(end)) =
                    (given.get("func_name"), given.get("begin"), given.get("end"))
                else {
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
                if args.get(at!(TvmCallPacked.func_name)).and_then(Expr::as_str) == Some("__tvm_set_device") {
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
                let map = encode.map.name();
                let value = match self.exact(&rule.value)? {
                    Some(Exact(Some(value))) => value.to_string(),
                    // As in the launchers.
                    Some(Exact(None)) => "more than 64 bits hold".to_string(),
                    None => self.int(&rule.value)?.to_string(),
                };
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
        match (self.sides(condition), self.arguments.get(check.index as usize)) {
            _ if check.what == What::Data => text.push_str("data is null, expected a pointer"),
            (_, Some(Argument::Tensor { dtype, .. })) if check.what == What::DType => {
                text.push_str(&format!("dtype is {dtype}, expected {expected}"));
            }
            (Some((actual, wanted)), _) if !alignment => {
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
}
