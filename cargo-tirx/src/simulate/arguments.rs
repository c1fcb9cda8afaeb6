//! Which values do a kernel's parameters have? From the options of the command line.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use tirx_build::compile::Judged;
use tirx_core::arith::fold::eval_int;
use tirx_core::ir::{Buffer, DType, Expr, ExprKind, IRModule, PrimFunc, Var, uses_var};
use tirx_sim::host::Argument;

use super::Simulate;
use crate::failure::{Result, choice, usage, user};
use crate::literal;
use crate::npy::{self, Array};
use crate::output::Output;
use crate::tensor_map::{self, TensorMapOption};

/// `NAME=VALUE` options by name.
pub(crate) fn named(option: &str, given: &[String]) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for text in given {
        let bad = |reason: String| usage(format_args!("bad {option}: {reason}"));
        let (name, value) = literal::parameter(text).map_err(bad)?;
        if all.insert(name.clone(), value).is_some() {
            return Err(bad(format!("`{name}` is given twice")));
        }
    }
    Ok(all)
}

/// A kernel with the arguments of the command line.
pub(super) struct Prepared {
    pub(super) func: PrimFunc,
    pub(super) lowered: IRModule,
    pub(super) names: Vec<String>,
    /// The arguments of each rank.
    pub(super) ranks: Vec<RankArguments>,
}

/// An argument that is made of the address of a tensor.
#[derive(Clone)]
pub(super) enum AddressOf {
    /// The tensor's address on every rank, as a tensor of uint64.
    Peers(String),
    /// Its multicast window.
    Window(String),
}

/// The arguments of one rank, by parameter.
pub(super) struct RankArguments {
    pub(super) addresses: Vec<Option<AddressOf>>,
    pub(super) extents: HashMap<Var, i128>,
    pub(super) arrays: Vec<Option<Array>>,
    pub(super) out_files: Vec<Option<PathBuf>>,
    pub(super) values: Vec<Option<Argument>>,
    /// The tensor maps that the command line makes; the tensor of one is in `arrays` unless a parameter has it.
    pub(super) maps: Vec<Option<TensorMapOption>>,
}

/// The arguments of the command line, for the kernel that it names.
pub(super) fn prepare(command: &Simulate, output: &Output) -> Result<Prepared> {
    let Judged {
        authored: func,
        lowered,
        warnings,
        ..
    } = command.input.judged()?;
    output.show(&warnings);

    let names: Vec<String> = func.params.iter().map(|p| shown_name(&func, p)).collect();
    let ranks = (0..command.ranks).map(|rank| of_rank(command, &func, &names, rank));
    Ok(Prepared {
        ranks: ranks.collect::<Result<_>>()?,
        func,
        lowered,
        names,
    })
}

/// The place of the rank in the name of a file.
const RANK: &str = "{rank}";

/// The arguments of a rank.
fn of_rank(command: &Simulate, func: &PrimFunc, names: &[String], rank: u32) -> Result<RankArguments> {
    let mut files = named("--arg", &command.args)?;
    let mut scalars = named("--scalar", &command.scalars)?;
    let mut outs = named("--out", &command.outs)?;
    let mut given = tensor_map::parse_options(&command.tensor_maps)?;
    let many = command.ranks > 1;
    if many {
        if let Some((name, file)) = outs.iter().find(|(_, file)| !file.contains(RANK)) {
            return Err(usage(format_args!(
                "bad --out: {} ranks would write `{file}`\n  = help: write the place of the rank: --out {name}=out{RANK}.npy",
                command.ranks
            )));
        }
        for file in files.values_mut().chain(outs.values_mut()) {
            *file = file.replace(RANK, &rank.to_string());
        }
        for value in scalars.values_mut().filter(|value| *value == "rank") {
            *value = rank.to_string();
        }
    }
    // Given arguments first, then those that follow from them.
    let mut extents: HashMap<Var, i128> = HashMap::new();
    let mut arrays: Vec<Option<Array>> = Vec::new();
    let mut out_files: Vec<Option<PathBuf>> = Vec::new();
    let mut values: Vec<Option<Argument>> = Vec::new();
    let mut maps: Vec<Option<TensorMapOption>> = Vec::new();
    let mut addresses: Vec<Option<AddressOf>> = Vec::new();
    for (number, (param, name)) in func.params.iter().zip(names).enumerate() {
        let buffer = func.buffer_of(param);
        let address = address(number, param, name, &mut files, &mut scalars);
        if let Some(AddressOf::Peers(of) | AddressOf::Window(of)) = &address
            && !(many && names.contains(of))
        {
            return Err(user(format_args!(
                "`{name}` is to be the address of `{of}`, which {}",
                match many {
                    true => "is no tensor of the kernel",
                    false => "needs --ranks",
                }
            )));
        }
        let map = match param.ty().is_tensor_map() {
            true => take(&mut given, number, param, name),
            false => None,
        };
        let own = map.as_ref().map(|map| map.array(name)).transpose()?.flatten();
        if buffer.is_some() || own.is_some() {
            out_files.push(take(&mut outs, number, param, name).map(PathBuf::from));
        } else {
            out_files.push(None);
        }
        addresses.push(address.clone());
        if address.is_some() {
            arrays.push(None);
            values.push(None);
            maps.push(None);
            continue;
        }
        if map.is_some() {
            arrays.push(own);
            values.push(None);
            maps.push(map);
            continue;
        }
        maps.push(None);
        let array = array(name, param, buffer, take(&mut files, number, param, name))?;
        for (buffer, array) in buffer.iter().zip(&array) {
            for (extent, actual) in buffer.shape.iter().zip(&array.shape) {
                if let Some(var) = extent.as_var() {
                    extents.entry(var.clone()).or_insert(*actual as i128);
                }
            }
        }
        arrays.push(array);
        let text = take(&mut scalars, number, param, name);
        let unused = || param.dtype().is_handle() && !uses_var(&func.body, |used| used == param);
        let value = match (buffer, &text) {
            (None, None) if unused() => Some(Argument::Null),
            _ => value(name, param, buffer.is_some(), text)?,
        };
        if let Some(Argument::Int(v)) = value {
            extents.insert(param.clone(), param.dtype().wrap(v.into()));
        }
        values.push(value);
    }
    for (option, left) in [("--arg", &files), ("--scalar", &scalars), ("--out", &outs)] {
        nothing_left(option, left, names)?;
    }
    if let Some(name) = given.keys().find(|name| names.contains(name)) {
        return Err(user(format_args!(
            "--tensor-map {name}: `{name}` is no tensor map"
        )));
    }
    nothing_left("--tensor-map", &given, names)?;
    Ok(RankArguments {
        addresses,
        extents,
        arrays,
        out_files,
        values,
        maps,
    })
}

/// The address that the command line gives for a parameter.
fn address(
    number: usize,
    param: &Var,
    name: &str,
    files: &mut BTreeMap<String, String>,
    scalars: &mut BTreeMap<String, String>,
) -> Option<AddressOf> {
    let number = number.to_string();
    let keys = [name, param.name(), number.as_str()];
    let named = |all: &mut BTreeMap<String, String>, prefix: &str| {
        let key = keys
            .iter()
            .find(|key| all.get(**key).is_some_and(|text| text.starts_with(prefix)))?;
        all.remove(*key).map(|text| text[prefix.len()..].to_string())
    };
    match named(files, "peers:") {
        Some(of) => Some(AddressOf::Peers(of)),
        None => named(scalars, "window:").map(AddressOf::Window),
    }
}

/// The value for a parameter, by its buffer's name, its own or its number.
fn take<T>(all: &mut BTreeMap<String, T>, number: usize, param: &Var, name: &str) -> Option<T> {
    all.remove(name)
        .or_else(|| all.remove(param.name()))
        .or_else(|| all.remove(&number.to_string()))
}

/// The array of a tensor parameter; `None` where the command line gives no file for it.
fn array(name: &str, param: &Var, buffer: Option<&Buffer>, file: Option<String>) -> Result<Option<Array>> {
    let Some(file) = file else { return Ok(None) };
    if param.ty().is_tensor_map() {
        return Err(user(format_args!(
            "`{name}` is a tensor map\n  = help: give it with --tensor-map {name}={file},box=64x32 (the part that one copy moves)"
        )));
    }
    let Some(buffer) = buffer else {
        return Err(user(format_args!(
            "`{name}` is a scalar of {}\n  = help: give it with --scalar",
            param.dtype()
        )));
    };
    let mut array = npy::read(file.as_ref()).map_err(user)?;
    let element = buffer.dtype.with_lanes(1);
    // The lanes of a vector are an array's last dimension.
    let lanes = usize::from(buffer.dtype.lanes);
    let fits = lanes == 1 || array.shape.pop() == Some(lanes);
    if fits && npy::holds(&array.descr, element) {
        if element.bits == 4 {
            array.bytes = npy::packed(&array.bytes);
        }
        return Ok(Some(array));
    }
    let wanted = match npy::descr(element) {
        Some(name) => name,
        None if element.bits == 4 => "|u1",
        None => "none that NumPy has",
    };
    let wanted = match lanes {
        1 => wanted.to_string(),
        _ => format!("{wanted}, {lanes} in the last dimension"),
    };
    Err(user(format_args!(
        "`{file}` holds elements of `{}`, tensor `{name}` is of {} (`{wanted}`)",
        array.descr, buffer.dtype
    )))
}

/// The value of a scalar parameter; `None` for a tensor.
fn value(name: &str, param: &Var, is_tensor: bool, text: Option<String>) -> Result<Option<Argument>> {
    match (is_tensor, text) {
        (false, _) if param.ty().is_tensor_map() => Err(user(format_args!(
            "tensor map `{name}` is missing\n  = help: give --tensor-map {name}=FILE.npy,box=64x32 (the part that one copy moves, and \
             swizzle=128 or other modes)"
        ))),
        (false, Some(text)) => Ok(Some(scalar(name, param.dtype(), &text)?)),
        (false, None) => Err(user(format_args!(
            "scalar `{name}` is missing\n  = help: give --scalar {name}=VALUE"
        ))),
        (true, Some(_)) => Err(user(format_args!(
            "`{name}` is a tensor\n  = help: give it with --arg {name}=FILE.npy"
        ))),
        (true, None) => Ok(None),
    }
}

/// Fails where an option names something that the kernel has not.
fn nothing_left<T>(option: &str, left: &BTreeMap<String, T>, names: &[String]) -> Result<()> {
    let Some(unknown) = left.keys().next() else {
        return Ok(());
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Err(user(format_args!(
        "{option} {unknown}: the kernel has no such parameter\n  = help: {}",
        choice(unknown, &names, "its parameters are")
    )))
}

/// The name of a parameter in messages: its buffer's name, otherwise its own.
pub(crate) fn shown_name(func: &PrimFunc, param: &Var) -> String {
    func.buffer_of(param)
        .map_or_else(|| param.name().to_string(), |buffer| buffer.name.to_string())
}

pub(crate) fn scalar(name: &str, dtype: DType, text: &str) -> Result<Argument> {
    use tirx_core::script::ConstValue;
    let bad = || {
        let help = match dtype.is_bool() {
            true => "\n  = help: a bool is True or False",
            false => "",
        };
        user(format_args!(
            "`{text}` is no {dtype}, which scalar `{name}` is{help}"
        ))
    };
    if dtype.is_integer()
        && let Some(v) = literal::integer(text)
    {
        return match (dtype.min_int(), dtype.max_int()) {
            (Some(min), Some(max)) if (min..=max).contains(&v) => Ok(Argument::Int(v as i64)),
            (Some(min), Some(max)) => Err(user(format_args!(
                "`{text}` does not fit scalar `{name}`, a {dtype}\n  = help: a {dtype} is from {min} to {max}"
            ))),
            _ => Err(bad()),
        };
    }
    if dtype.is_bool()
        && let Ok(v) = text.parse()
    {
        return Ok(Argument::Bool(v));
    }
    let value = literal::value(text).map_err(|_| bad())?;
    match value {
        ConstValue::Bool(v) if dtype.is_bool() => Ok(Argument::Bool(v)),
        ConstValue::Int(v) if dtype.is_bool() && (0..=1).contains(&v) => Ok(Argument::Bool(v == 1)),
        ConstValue::Int(v) if dtype.is_floating() => Ok(Argument::Float(v as f64)),
        ConstValue::Float(v) if dtype.is_floating() => Ok(Argument::Float(v)),
        ConstValue::Str(word) if dtype.is_floating() => match word.as_str() {
            "inf" => Ok(Argument::Float(f64::INFINITY)),
            "nan" => Ok(Argument::Float(f64::NAN)),
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

/// The shape of an output, derived from the other arguments.
pub(crate) fn inferred_shape(name: &str, shape: &[Expr], extents: &HashMap<Var, i128>) -> Result<Vec<i64>> {
    shape
        .iter()
        .map(|extent| {
            evaluate(extent, extents)
                .and_then(|v| i64::try_from(v).ok())
                .filter(|v| *v >= 0)
                .ok_or_else(|| {
                    user(format_args!(
                        "the shape of `{name}` does not follow from the arrays given: extent `{}` is not known\n  \
                         = help: give --arg {name}=FILE.npy too",
                        tirx_core::script::print_expr(extent)
                    ))
                })
        })
        .collect()
}

fn evaluate(expr: &Expr, extents: &HashMap<Var, i128>) -> Option<i128> {
    match &expr.kind {
        ExprKind::Int(v) => Some(*v),
        ExprKind::Var(var) => extents.get(var).copied(),
        ExprKind::Cast(inner) => evaluate(inner, extents).map(|v| expr.dtype.wrap(v)),
        ExprKind::Binary(op, a, b) => eval_int(*op, a.dtype, evaluate(a, extents)?, evaluate(b, extents)?),
        _ => None,
    }
}
