//! Tensor maps of the command line: `--tensor-map NAME=WHAT,box=…`, for kernels that take them from their caller.
//!
//! `WHAT` is a .npy file, the name of a tensor parameter, or a dtype with extents (`float16[64x128]`), for new memory. Lists are
//! in the order of NumPy's shapes, the innermost dimension last.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tirx_core::ir::abi::tensor_map::Numbers;
use tirx_core::ir::{DType, ElementType};
use tirx_sim::{TensorMap, TensorMapSwizzle, TensorMapType};

use crate::failure::{Failure, usage, user};
use crate::literal;
use crate::npy::{self, Array};

/// The option's help.
pub(crate) const HELP: &str = "A tensor map that the kernel takes: of the tensor in a file, of a tensor parameter (its name), \
    or of a new one (`float16[64x128]`). `box` is the part that one copy moves, outermost dimension first; `swizzle`, `l2` and \
    `interleave` are in bytes, `fill` is `zeros` or `nan`; `dtype`, `shape`, `strides` (bytes, without the innermost), \
    `offset` (bytes) and `steps` are for a map with another view of the tensor";

/// Data types of tensor maps that are no dtype of the language.
const OTHER_TYPES: [(&str, u32, DType); 4] = [
    ("float32_ftz", 10, DType::FLOAT32),
    ("tfloat32", 11, DType::FLOAT32),
    ("tfloat32_ftz", 12, DType::FLOAT32),
    ("float4_align8", 13, DType::UINT8),
];

/// Where the memory of a map comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    /// A tensor parameter, by its name.
    Parameter(String),
    New {
        dtype: DType,
        shape: Vec<usize>,
    },
}

/// One `--tensor-map` option, parsed.
#[derive(Clone, Debug)]
pub(crate) struct TensorMapOption {
    pub(crate) source: Source,
    box_shape: Vec<u64>,
    steps: Option<Vec<u64>>,
    shape: Option<Vec<u64>>,
    strides: Option<Vec<u64>>,
    offset: u64,
    /// The driver's number of the data type, and bits of an element.
    element: Option<(u32, u32)>,
    swizzle: u32,
    l2_promotion: u32,
    interleave: u32,
    nan_fill: bool,
}

/// The memory that a map is of.
pub(crate) struct Memory<'a> {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) shape: &'a [usize],
    /// NumPy's name of its elements.
    pub(crate) descr: &'a str,
    /// The dtype of a parameter's elements.
    pub(crate) dtype: Option<DType>,
}

/// Parses the values of all `--tensor-map` options. The key is the name of the kernel's parameter.
///
/// # Errors
/// An option that does not parse, or a second option for a parameter.
pub(crate) fn parse_options(options: &[String]) -> Result<BTreeMap<String, TensorMapOption>, Failure> {
    let mut by_parameter = BTreeMap::new();
    for text in options {
        let bad = |reason: String| usage(format_args!("bad --tensor-map: {reason}"));
        let (name, value) = literal::parameter(text).map_err(bad)?;
        let option = parse(&value).map_err(|reason| bad(format!("`{name}`: {reason}")))?;
        if by_parameter.insert(name.clone(), option).is_some() {
            return Err(bad(format!("`{name}` is given twice")));
        }
    }
    Ok(by_parameter)
}

/// Parses `WHAT,box=…,…`, the part of an option after `NAME=`.
fn parse(text: &str) -> Result<TensorMapOption, String> {
    let mut parts = text.split(',').map(str::trim);
    let what = parts.next().unwrap_or_default();
    let mut option = TensorMapOption {
        source: source(what)?,
        box_shape: Vec::new(),
        steps: None,
        shape: None,
        strides: None,
        offset: 0,
        element: None,
        swizzle: 0,
        l2_promotion: 0,
        interleave: 0,
        nan_fill: false,
    };
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not of the form KEY=VALUE"))?;
        let mode = |known: &[u32]| {
            let place = known.iter().position(|bytes| bytes.to_string() == value);
            let number = place.and_then(|place| u32::try_from(place).ok());
            number.ok_or_else(|| format!("{key} is one of {known:?} bytes, found `{value}`"))
        };
        match key {
            "box" => option.box_shape = list(value)?,
            "steps" => option.steps = Some(list(value)?),
            "shape" => option.shape = Some(list(value)?),
            "strides" => option.strides = Some(list(value)?),
            "offset" => {
                option.offset = value
                    .parse()
                    .map_err(|_| format!("`{value}` is no number of bytes"))?
            }
            "dtype" => option.element = Some(element(value)?),
            "swizzle" => option.swizzle = mode(&[0, 32, 64, 128])?,
            "l2" => option.l2_promotion = mode(&[0, 64, 128, 256])?,
            "interleave" => option.interleave = mode(&[0, 16, 32])?,
            "fill" => {
                option.nan_fill = match value {
                    "zeros" => false,
                    "nan" => true,
                    _ => return Err(format!("fill is `zeros` or `nan`, found `{value}`")),
                }
            }
            _ => {
                return Err(format!(
                    "`{key}` is no key of a tensor map; they are box, steps, shape, strides, offset, dtype, swizzle, l2, \
                     interleave, fill"
                ));
            }
        }
    }
    match option.box_shape.is_empty() {
        true => Err("the box (the part that one copy moves) is missing: give box=64x32".to_string()),
        false => Ok(option),
    }
}

fn source(what: &str) -> Result<Source, String> {
    if let Some((dtype, extents)) = what.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        let dtype: DType = dtype.parse().map_err(|_| format!("`{dtype}` is no dtype"))?;
        let bits = ElementType::from_dtype(dtype).filter(|row| dtype.is_scalar() && row.tensor_map.is_some());
        bits.ok_or_else(|| format!("a tensor map has no elements of {dtype}"))?;
        let extents = list(extents)?.into_iter().map(|extent| extent as usize);
        return Ok(Source::New {
            dtype,
            shape: extents.collect(),
        });
    }
    match what.ends_with(".npy") {
        true => Ok(Source::File(what.into())),
        false if what.is_empty() => Err("the tensor of the map is missing".to_string()),
        false => Ok(Source::Parameter(what.to_string())),
    }
}

/// `64x32`.
fn list(text: &str) -> Result<Vec<u64>, String> {
    let numbers = text.split('x').map(|part| part.trim().parse());
    let numbers: Result<Vec<u64>, _> = numbers.collect();
    numbers.map_err(|_| format!("`{text}` is no list of numbers like 64x32"))
}

fn element(name: &str) -> Result<(u32, u32), String> {
    if let Some((_, number, dtype)) = OTHER_TYPES.iter().find(|(other, ..)| *other == name) {
        let bits = if *number == 13 { 4 } else { u32::from(dtype.bits) };
        return Ok((*number, bits));
    }
    let row = ElementType::named(name);
    row.and_then(|row| Some((row.tensor_map?, u32::from(row.bits))))
        .ok_or_else(|| format!("a tensor map has no elements of `{name}`"))
}

impl TensorMapOption {
    /// The tensor of a file, or a new one of zeros; `None` where a parameter has it.
    pub(crate) fn array(&self, name: &str) -> Result<Option<Array>, Failure> {
        match &self.source {
            Source::File(path) => npy::read(path).map(Some).map_err(user),
            Source::Parameter(_) => Ok(None),
            Source::New { dtype, shape } => {
                let elements = shape
                    .iter()
                    .try_fold(1usize, |all, extent| all.checked_mul(*extent));
                let bits = elements.and_then(|elements| elements.checked_mul(dtype.bits.into()));
                let bytes = bits
                    .map(|bits| bits.div_ceil(8))
                    .filter(|bytes| *bytes <= 1 << 36);
                let bytes =
                    bytes.ok_or_else(|| user(format_args!("tensor map `{name}`: {shape:?} is too large")))?;
                let mut shape = shape.clone();
                if dtype.bits == 4
                    && let Some(last) = shape.last_mut()
                {
                    *last = last.div_ceil(2);
                }
                Ok(Some(Array {
                    descr: npy::descr(*dtype).unwrap_or("|u1").to_string(),
                    shape,
                    bytes: vec![0; bytes],
                }))
            }
        }
    }

    /// The map of its memory.
    pub(crate) fn encode(&self, name: &str, memory: &Memory<'_>) -> Result<TensorMap, Failure> {
        self.numbers(memory)
            .map_err(|reason| user(format_args!("tensor map `{name}`: {reason}")))
    }

    fn numbers(&self, memory: &Memory<'_>) -> Result<TensorMap, String> {
        let stored = npy::element_bytes(memory.descr)
            .ok_or_else(|| format!("a tensor map has no elements of `{}`", memory.descr))?
            as u32
            * 8;
        let made = match &self.source {
            Source::New { dtype, .. } => Some(*dtype),
            _ => memory.dtype,
        };
        let (data_type, bits) = match (self.element, made) {
            (Some(element), _) => element,
            (None, Some(dtype)) => element(&dtype.to_string())?,
            (None, None) => of_numpy(memory.descr)?,
        };
        let mut shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => memory.shape.iter().map(|extent| *extent as u64).collect(),
        };
        // Two elements of 4 bits are one of the file.
        let packed = bits == 4 && stored == 8;
        if packed
            && self.shape.is_none()
            && let Some(last) = shape.last_mut()
        {
            *last *= 2;
        }
        if self.shape.is_none() && !packed && stored != bits {
            return Err(format!(
                "its elements have {bits} bits, those of the tensor {stored}: give the extents by shape="
            ));
        }
        let mut dims = shape;
        dims.reverse();
        let strides: Vec<u64> = match &self.strides {
            Some(strides) => strides.iter().rev().copied().collect(),
            None => {
                let compact = dims.iter().scan(u64::from(bits), |all, extent| {
                    *all = all.saturating_mul(*extent);
                    Some(*all / 8)
                });
                compact.take(dims.len().saturating_sub(1)).collect()
            }
        };
        let narrow = |values: &[u64]| -> Result<Vec<u32>, String> {
            let values = values.iter().rev().map(|value| {
                u32::try_from(*value).map_err(|_| format!("{value} is too large for a box or a step"))
            });
            values.collect()
        };
        let box_dims = narrow(&self.box_shape)?;
        let element_strides = match &self.steps {
            Some(steps) => narrow(steps)?,
            None => vec![1; dims.len()],
        };
        let address = memory.address.saturating_add(self.offset);
        Numbers {
            data_type,
            address,
            dims: &dims,
            strides: &strides,
            box_dims: &box_dims,
            element_strides: &element_strides,
            interleave: self.interleave,
            swizzle: self.swizzle,
            l2_promotion: self.l2_promotion,
            oob_fill: self.nan_fill.into(),
        }
        .check()?;
        let last = dims
            .iter()
            .skip(1)
            .zip(&strides)
            .map(|(extent, stride)| (extent - 1) * stride);
        let reach = self.offset + last.sum::<u64>() + (dims[0] * u64::from(bits)).div_ceil(8);
        if reach > memory.bytes as u64 {
            return Err(format!(
                "it reaches {reach} bytes far, its tensor has {}",
                memory.bytes
            ));
        }
        let unknown = || "a mode is not known".to_string();
        Ok(TensorMap {
            dtype: TensorMapType::from_value(data_type).ok_or_else(unknown)?,
            address,
            dims,
            strides,
            box_dims,
            element_strides,
            interleave: self.interleave as u8,
            swizzle: TensorMapSwizzle::from_value(self.swizzle).ok_or_else(unknown)?,
            l2_promotion: self.l2_promotion as u8,
            nan_fill: self.nan_fill,
        })
    }
}

/// The data type of NumPy's elements, and their bits.
fn of_numpy(descr: &str) -> Result<(u32, u32), String> {
    let name = match descr.trim_start_matches(['<', '|', '=']) {
        "V2" => "bfloat16",
        "V1" | "f1" => "uint8",
        _ => {
            let rows = tirx_core::ir::ELEMENT_TYPES.iter();
            let mut rows = rows.filter(|row| row.tensor_map.is_some() && npy::holds(descr, row.dtype()));
            rows.next().map_or(descr, |row| row.name)
        }
    };
    element(name)
}
