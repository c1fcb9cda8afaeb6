//! Values of a run as text: tensors, scalars and addresses, and the comparison of what a run has left.

use tirx_core::ir::{DType, Minifloat, bf16, f16};
use tirx_sim::host;

/// A scalar of a run.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    Value(host::Argument),
    Address(Address),
}

/// The address of a tensor of the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    pub(crate) tensor: String,
    /// None for the multicast window.
    pub(crate) rank: Option<u32>,
}

impl Address {
    pub(crate) fn read(text: &str) -> Option<Address> {
        let (tensor, rank) = text.split_once('@')?;
        let rank = match rank {
            "*" => None,
            rank => Some(rank.parse().ok()?),
        };
        Some(Address {
            tensor: tensor.to_string(),
            rank,
        })
    }
}

/// A tensor of a run.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Its bytes before the run.
    pub before: Vec<u8>,
    /// Its bytes after the run, unless it must be as before.
    pub after: Option<Vec<u8>>,
    tolerance: f64,
    /// Addresses among the elements of 8 bytes, by element.
    pub(crate) addresses: Vec<(usize, Address)>,
}

/// Most elements of a tensor: more would not fit into a text.
const MOST: usize = 1 << 24;

/// Most devices of a run.
pub const MAX_RANKS: u32 = 16;

/// A scalar of a text.
pub(crate) fn scalar(text: &str) -> Result<host::Argument, String> {
    Ok(match text {
        "True" | "False" => host::Argument::Bool(text == "True"),
        // A pointer that the kernel does not use.
        "None" => host::Argument::Null,
        _ if text.contains(['.', 'e', 'n']) => {
            host::Argument::Float(text.parse().map_err(|_| format!("no number: {text}"))?)
        }
        _ => host::Argument::Int(text.parse().map_err(|_| format!("no integer: {text}"))?),
    })
}

/// A tensor with its elements on each rank, one rank after the other.
pub(crate) fn tensor(text: &str, ranks: u32) -> Result<Tensor, String> {
    let (head, values) = text.split_once(' ').unwrap_or((text, "0"));
    let (dtype, shape) = head
        .trim_end_matches(']')
        .split_once('[')
        .ok_or("a dtype with a shape")?;
    let dtype: DType = dtype.parse().map_err(|_| format!("no dtype: {dtype}"))?;
    let shape: Vec<i64> = shape
        .split('x')
        .map(|extent| extent.parse().map_err(|_| format!("no extent: {extent}")))
        .collect::<Result<_, _>>()?;
    let all = usize::from(dtype.lanes) * ranks as usize;
    let count = shape.iter().try_fold(all, |count, extent| {
        count.checked_mul(usize::try_from(*extent).ok()?)
    });
    if dtype.bits == 4 && ranks > 1 && count.is_some_and(|count| (count / ranks as usize) % 2 == 1) {
        return Err(format!("an odd number of 4-bit elements on each rank: {head}"));
    }
    let count = count
        .filter(|count| *count <= MOST)
        .ok_or(format!("no shape: {head}"))?;
    let (before, after) = match values.split_once("->") {
        Some((before, after)) => (before, Some(after)),
        None => (values, None),
    };
    let (after, tolerance) = match after.map(|after| after.split_once("+-").unwrap_or((after, "0"))) {
        None => (None, "0"),
        Some((after, tolerance)) => (Some(after), tolerance.trim()),
    };
    let mut addresses = Vec::new();
    let mut numbers = before.to_string();
    if before.contains('@') && dtype.bits == 64 {
        let words: Vec<&str> = before.split_whitespace().collect();
        for element in 0..count {
            let address = words
                .get(element % words.len())
                .and_then(|word| Address::read(word));
            addresses.extend(address.map(|address| (element, address)));
        }
        let words = words
            .iter()
            .map(|word| if word.contains('@') { "0" } else { word });
        numbers = words.collect::<Vec<_>>().join(" ");
    }
    Ok(Tensor {
        dtype,
        shape,
        addresses,
        before: elements(dtype, &numbers, count)?,
        after: after.map(|after| elements(dtype, after, count)).transpose()?,
        tolerance: tolerance
            .parse()
            .map_err(|_| format!("no tolerance: {tolerance}"))?,
    })
}

/// The bytes of `count` scalars, from a repeated list of values.
fn elements(dtype: DType, values: &str, count: usize) -> Result<Vec<u8>, String> {
    let scalars: Vec<Vec<u8>> = values
        .split_whitespace()
        .map(|value| element(dtype, value).ok_or(format!("no {dtype}: {value}")))
        .collect::<Result<_, _>>()?;
    if scalars.is_empty() || !count.is_multiple_of(scalars.len()) {
        return Err(format!("{} values for {count} elements", scalars.len()));
    }
    let bytes = scalars.iter().cycle().take(count).flatten().copied();
    if dtype.is_float4() {
        let codes: Vec<u8> = bytes.collect();
        let pairs = codes.chunks(2);
        return Ok(pairs.map(|p| p[0] & 15 | p.get(1).unwrap_or(&0) << 4).collect());
    }
    Ok(bytes.collect())
}

/// The bytes of each scalar by itself.
fn apart(dtype: DType, bytes: &[u8]) -> Vec<Vec<u8>> {
    if dtype.is_float4() {
        let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        return halves.map(|code| vec![code]).collect();
    }
    bytes
        .chunks(usize::from(dtype.bits).div_ceil(8))
        .map(<[u8]>::to_vec)
        .collect()
}

fn element(dtype: DType, value: &str) -> Option<Vec<u8>> {
    let bytes = usize::from(dtype.bits).div_ceil(8);
    if let Some(bits) = value.strip_prefix("0x") {
        let bits = u64::from_str_radix(bits, 16).ok()?;
        return Some(bits.to_le_bytes()[..bytes].to_vec());
    }
    if dtype.is_bool() {
        return Some(vec![u8::from(value.parse::<i64>().ok()? != 0)]);
    }
    if dtype.is_floating() {
        let value: f64 = value.parse().ok()?;
        return match (dtype.bits, dtype.is_bfloat16()) {
            (16, true) => Some(bf16::from_f64(value).to_le_bytes().to_vec()),
            (16, false) => Some(f16::from_f64(value).to_le_bytes().to_vec()),
            (32, _) => Some((value as f32).to_le_bytes().to_vec()),
            (64, _) => Some(value.to_le_bytes().to_vec()),
            _ => Some(vec![
                Minifloat::from_type_code(dtype.code)?.encode(value as f32) as u8
            ]),
        };
    }
    let value: i128 = value.parse().ok()?;
    Some(value.to_le_bytes()[..bytes].to_vec())
}

/// A scalar of a dtype as a number, where Rust or `half` knows the format.
pub(crate) fn number(dtype: DType, bytes: &[u8]) -> Option<f64> {
    if !dtype.is_floating() {
        return None;
    }
    match (bytes, dtype.is_bfloat16()) {
        ([a, b], true) => Some(bf16::from_le_bytes([*a, *b]).to_f64()),
        ([a, b], false) => Some(f16::from_le_bytes([*a, *b]).to_f64()),
        ([a, b, c, d], _) => Some(f32::from_le_bytes([*a, *b, *c, *d]).into()),
        _ => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
    }
}

fn shown(dtype: DType, bytes: &[u8]) -> String {
    match number(dtype, bytes) {
        Some(value) => format!("{value:?}"),
        None if dtype.is_integer() && bytes.len() <= 8 => {
            let bits = bytes
                .iter()
                .rev()
                .fold(0i128, |bits, byte| bits << 8 | i128::from(*byte));
            dtype.with_lanes(1).wrap(bits).to_string()
        }
        None => {
            let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            format!("0x{digits}")
        }
    }
}

impl Tensor {
    /// The first `most` elements of such a tensor as text.
    pub fn elements(&self, bytes: &[u8], most: usize) -> Vec<String> {
        let width = usize::from(self.dtype.bits).div_ceil(8);
        let bytes = &bytes[..bytes.len().min(most * width)];
        let elements = apart(self.dtype, bytes).into_iter().take(most);
        elements.map(|element| shown(self.dtype, &element)).collect()
    }

    /// The first element that is not what it must be.
    pub(crate) fn compare(&self, name: &str, found: &[u8], ranks: Option<u32>) -> Result<(), String> {
        // Addresses are those of this run.
        let found = &mut found.to_vec();
        for (element, _) in &self.addresses {
            found[element * 8..element * 8 + 8].fill(0);
        }
        let of_rank = |at: usize| {
            let lanes = i64::from(self.dtype.lanes);
            let own = (self.shape.iter().product::<i64>() * lanes).max(1) as usize;
            match ranks {
                Some(_) => format!("element {} of {name} of rank {}", at % own, at / own),
                None => format!("element {at} of {name}"),
            }
        };
        let expected = apart(self.dtype, self.after.as_ref().unwrap_or(&self.before));
        let pairs = expected.into_iter().zip(apart(self.dtype, found));
        for (at, (want, have)) in pairs.enumerate() {
            let (want, have) = (&want[..], &have[..]);
            let near = match (number(self.dtype, want), number(self.dtype, have)) {
                (Some(a), Some(b)) => {
                    a.is_nan() && b.is_nan() || a == b || (a - b).abs() <= self.tolerance * a.abs().max(1e-30)
                }
                _ => false,
            };
            let signs = self.tolerance > 0.0 || want == have || number(self.dtype, want) != Some(0.0);
            if want != have && !(near && signs) {
                return Err(format!(
                    "{}: expected {}, found {}",
                    of_rank(at),
                    shown(self.dtype, want),
                    shown(self.dtype, have)
                ));
            }
        }
        Ok(())
    }
}
