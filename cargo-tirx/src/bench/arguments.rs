//! With which arguments is a kernel measured? Tensors of made values, sizes and scalars of the command line.

use std::collections::HashMap;

use tirx_build::KernelCode;
use tirx_core::ir::{PrimFunc, Var};
use tirx_core::script::{ConstValue, KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_rt::{Stream, Tensor};
use tirx_sim::TensorMap;
use tirx_sim::host::Argument;

use super::values;
use crate::failure::{Result, user};
use crate::npy;
use crate::simulate::{inferred_shape, named, scalar, shown_name};
use crate::tensor_map::{self, Source, TensorMapOption};

/// The arguments of a call.
pub(crate) struct BoundArguments {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) names: Vec<String>,
    pub(crate) tensors: Vec<Tensor<u8>>,
    /// What expressions of the command line may name.
    pub(super) numbers: Vec<(String, String)>,
}

/// The values of a command line, each `NAME=VALUE`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// Extents.
    pub(crate) sizes: &'a [String],
    pub(crate) scalars: &'a [String],
    pub(crate) tensor_maps: &'a [String],
}

/// The arguments with which a kernel is called.
pub(crate) fn arguments(given: Given<'_>, stream: &Stream, code: &KernelCode) -> Result<BoundArguments> {
    let func = &code.authored;
    let names: Vec<String> = func.params.iter().map(|param| shown_name(func, param)).collect();
    let mut sizes = named("--size", given.sizes)?;
    let mut scalars = named("--scalar", given.scalars)?;
    let mut maps = tensor_map::parse_options(given.tensor_maps)?;
    let mut numbers: Vec<(String, String)> = code
        .values
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), constant(value)?)))
        .chain(sizes.clone())
        .chain(scalars.clone())
        .collect();
    let mut extents: HashMap<Var, i128> = HashMap::new();
    for var in open_extents(func) {
        let Some(text) = sizes.remove(var.name()) else {
            continue;
        };
        let value = crate::literal::integer(&text).filter(|value| (0..1 << 40).contains(value));
        let value = value.ok_or_else(|| user(format_args!("--size {}: `{text}` is no size", var.name())))?;
        extents.insert(var, value);
    }
    let mut values: Vec<Option<Argument>> = Vec::new();
    for (param, name) in func.params.iter().zip(&names) {
        if func.buffer_of(param).is_some() {
            values.push(None);
            continue;
        }
        if param.ty().is_tensor_map() {
            values.push(None);
            continue;
        }
        let dtype = param.dtype();
        let given = scalars.remove(name.as_str());
        let given = given.or_else(|| extents.get(param).map(i128::to_string));
        let value = match given {
            Some(text) => scalar(name, dtype, &text)?,
            None if dtype.is_floating() => Argument::Float(1.0),
            None => {
                return Err(user(format_args!(
                    "scalar `{name}` is missing\n  = help: give --scalar {name}=VALUE"
                )));
            }
        };
        if let Argument::Int(value) = value {
            extents.insert(param.clone(), dtype.wrap(value.into()));
            numbers.push((name.clone(), value.to_string()));
        }
        values.push(Some(value));
    }
    if let Some(unknown) = sizes.keys().next() {
        let known: Vec<String> = open_extents(func)
            .iter()
            .map(|var| var.name().to_string())
            .collect();
        let help = match known.as_slice() {
            [] => "its shapes are all fixed".to_string(),
            known => format!("its extents are {}", known.join(", ")),
        };
        return Err(user(format_args!(
            "--size {unknown}: the kernel has no such extent\n  = help: {help}"
        )));
    }
    if let Some(unknown) = scalars.keys().next() {
        return Err(user(format_args!(
            "--scalar {unknown}: the kernel has no such parameter"
        )));
    }
    let mut tensors = Vec::new();
    let mut arguments = Vec::new();
    let mut of_maps = Vec::new();
    for (number, (param, value)) in func.params.iter().zip(values).enumerate() {
        let (Some(buffer), None) = (func.buffer_of(param), &value) else {
            if param.ty().is_tensor_map() {
                of_maps.push(number);
            }
            // A map is made when all tensors are there.
            arguments.push(value.unwrap_or(Argument::Null));
            continue;
        };
        let missing = |_| {
            let open: Vec<String> = open_extents(func)
                .iter()
                .filter(|var| !extents.contains_key(*var))
                .map(|var| format!("--size {}=…", var.name()))
                .collect();
            user(format_args!(
                "the shape of `{}` is not known\n  = help: give {}",
                names[number],
                open.join(" ")
            ))
        };
        let shape = inferred_shape(&names[number], &buffer.shape, &extents).map_err(missing)?;
        let elements = shape
            .iter()
            .try_fold(1usize, |all, e| all.checked_mul(usize::try_from(*e).ok()?));
        let bits = elements
            .and_then(|n| n.checked_mul(usize::from(buffer.dtype.bits) * usize::from(buffer.dtype.lanes)));
        let bytes = bits
            .map(|bits| bits.div_ceil(8))
            .filter(|bytes| *bytes <= 1 << 38);
        let bytes = bytes.ok_or_else(|| {
            user(format_args!(
                "`{}` of shape {shape:?} is too large",
                names[number]
            ))
        })?;
        let contents = values::normal(buffer.dtype, bytes.max(1), number);
        let tensor = Tensor::from_slice(stream, &contents, [contents.len()]).map_err(user)?;
        arguments.push(Argument::Tensor {
            dtype: buffer.dtype,
            shape,
            address: tensor.address(),
            byte_offset: 0,
        });
        tensors.push(tensor);
    }
    for number in of_maps {
        let name = &names[number];
        let Some(map) = maps.remove(name) else {
            return Err(user(format_args!(
                "tensor map `{name}` is missing\n  = help: give --tensor-map {name}=float16[64x128],box=64x32 (its tensor, and \
                 the part that one copy moves)"
            )));
        };
        let (map, own) = made(stream, &map, name, number, &names, &arguments)?;
        arguments[number] = Argument::TensorMap(map);
        tensors.extend(own);
    }
    if let Some(unknown) = maps.keys().next() {
        return Err(user(format_args!(
            "--tensor-map {unknown}: the kernel takes no such tensor map"
        )));
    }
    Ok(BoundArguments {
        arguments,
        names,
        tensors,
        numbers,
    })
}

/// A tensor map of the command line, and its tensor where no parameter has it.
fn made(
    stream: &Stream,
    map: &TensorMapOption,
    name: &str,
    number: usize,
    names: &[String],
    arguments: &[Argument],
) -> Result<(TensorMap, Option<Tensor<u8>>)> {
    if let Source::Parameter(other) = &map.source {
        let place = names.iter().position(|known| known == other);
        let Some(Argument::Tensor {
            dtype,
            shape,
            address,
            ..
        }) = place.and_then(|place| arguments.get(place))
        else {
            return Err(user(format_args!(
                "tensor map `{name}`: `{other}` is no tensor of the kernel"
            )));
        };
        let extents: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
        let bits = extents.iter().product::<usize>() * usize::from(dtype.bits);
        let memory = tensor_map::Memory {
            address: *address,
            bytes: bits.div_ceil(8),
            shape: &extents,
            descr: npy::descr(*dtype).unwrap_or("|u1"),
            dtype: Some(*dtype),
        };
        return Ok((map.encode(name, &memory)?, None));
    }
    let Some(mut array) = map.array(name)? else {
        return Err(user(format_args!("tensor map `{name}`: it has no tensor")));
    };
    if let Source::New { dtype, .. } = &map.source {
        array.bytes = values::normal(*dtype, array.bytes.len().max(1), number);
    }
    let tensor = Tensor::from_slice(stream, &array.bytes, [array.bytes.len()]).map_err(user)?;
    let memory = tensor_map::Memory {
        address: tensor.address(),
        bytes: array.bytes.len(),
        shape: &array.shape,
        descr: &array.descr,
        dtype: None,
    };
    Ok((map.encode(name, &memory)?, Some(tensor)))
}

/// A value as Python writes it, where it is a number.
fn constant(value: &ConstValue) -> Option<String> {
    match value {
        ConstValue::Int(value) => Some(value.to_string()),
        ConstValue::Float(value) => Some(format!("{value:?}")),
        ConstValue::Bool(value) => Some(if *value { "1" } else { "0" }.to_string()),
        _ => None,
    }
}

/// The names that the shapes of a kernel's tensors leave open, in order.
pub(crate) fn open_extents(func: &PrimFunc) -> Vec<Var> {
    let mut open: Vec<Var> = Vec::new();
    let shapes = func.params.iter().filter_map(|param| func.buffer_of(param));
    for extent in shapes.flat_map(|buffer| buffer.shape.iter()) {
        if let Some(var) = extent.as_var()
            && !open.contains(var)
        {
            open.push(var.clone());
        }
    }
    open
}

/// The value of a Python expression of named numbers.
pub(super) fn number(text: &str, numbers: &[(String, String)]) -> Result<f64> {
    let mut program: String = numbers
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    program += &format!("__operations = ({text})\n");
    let mut sources = SourceMap::new();
    let known: Vec<&str> = numbers.iter().map(|(name, _)| name.as_str()).collect();
    let bad = |why: String| {
        user(format_args!(
            "bad --operations: {why}\n  = help: it may use {}",
            if known.is_empty() {
                "numbers alone".to_string()
            } else {
                known.join(", ")
            }
        ))
    };
    let file = KernelFile::load(&mut sources, "--operations", &program, &NoImports);
    let value = file.and_then(|file| file.constant("__operations"));
    match value {
        Ok(Some(ConstValue::Int(value))) => Ok(value as f64),
        Ok(Some(ConstValue::Float(value))) => Ok(value),
        Ok(_) => Err(bad(format!("`{text}` is no number"))),
        Err(errors) => {
            let first = errors.messages(&sources).into_iter().next();
            Err(bad(first.map_or_else(
                || format!("`{text}` is no number"),
                |first| first.text,
            )))
        }
    }
}
