//! Kernels that copy and compute asynchronously: their arguments, expected results, and broken variants.
//!
//! Each case is a kernel of `kernels/` with sizes, inputs and a reference in plain Rust. Its broken variants replace a
//! part of the text: a wait, a fence, a byte count. The simulator must refuse each for the reason that stands with it.
//! Sizes come twice: small ones for the simulator, large ones for a GPU.

mod cases;
mod variants;

use std::collections::BTreeMap;

use half::bf16;
use tirx_core::ir::{DType, IRModule};
use tirx_core::script::ConstValue;
use tirx_sim::host;

pub use cases::CASES;
pub use variants::{Variant, variants};

use crate::machine::{self, Machine};
use crate::{Defines, build, stages};

/// Compile-time parameters that are whole numbers.
pub type Sizes = BTreeMap<&'static str, i64>;

/// A tensor of a case, in the kernel's order.
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    /// Of the parameter.
    pub name: &'static str,
    /// On the GPU that is measured, its initial values.
    pub dtype: DType,
    /// Its extents.
    pub shape: fn(&Sizes) -> Vec<i64>,
    /// What it holds before: the value of an element. Zero in what is written.
    pub value: fn(usize) -> f32,
}

/// A row of the result, from sizes, the tensors' values and the row's number.
pub type Row = fn(&Sizes, &[Vec<f32>], usize) -> Vec<f64>;

/// A kernel with what it must do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kernel.
    pub entry: &'static str,
    /// The file in `kernels/`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The architecture it is for.
    pub arch: &'static str,
    /// Its sizes on the simulator, on a GPU to be checked, and on a GPU to be measured.
    pub sizes: [&'static [(&'static str, i64)]; 3],
    /// Its tensors; the last one is written.
    pub tensors: &'static [Tensor],
    /// Its other argument, if it has one, after the tensors.
    pub scalar: Option<(&'static str, f64)>,
    /// A row of the last tensor from the values of the others.
    pub row: Row,
    /// Absolute tolerance per element.
    pub tolerance: f64,
    /// Floating-point operations.
    pub operations: fn(&Sizes) -> f64,
}

/// Selects one of a case's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// For the simulator.
    Small,
    /// To be checked on a GPU.
    Medium,
    /// To be measured on a GPU.
    Large,
}

/// A case, lowered, with its arguments.
#[derive(Debug)]
pub struct Prepared {
    /// The lowered module.
    pub module: IRModule,
    /// Its arguments.
    pub arguments: Vec<(String, machine::Argument)>,
    sizes: Sizes,
    values: Vec<Vec<f32>>,
}

impl Prepared {
    /// A lowered module with arguments, without expected results.
    pub fn from_module(module: IRModule, arguments: Vec<(String, machine::Argument)>) -> Prepared {
        Prepared {
            module,
            arguments,
            sizes: Sizes::new(),
            values: Vec::new(),
        }
    }
}

impl Case {
    /// The case of an entry.
    pub fn find(entry: &str) -> Option<&'static Case> {
        CASES.iter().find(|case| case.entry == entry)
    }

    fn sizes(&self, scale: Scale) -> Sizes {
        self.sizes[scale as usize].iter().copied().collect()
    }

    /// Operations of a run.
    pub fn operations_at(&self, scale: Scale) -> f64 {
        (self.operations)(&self.sizes(scale))
    }

    /// Compiles a text of the kernel and makes its arguments.
    pub fn prepare(&self, text: &str, scale: Scale) -> Result<Prepared, String> {
        // Measured inputs must cost as much power as users' data: with small integers few bits switch, which lets a
        // GPU run faster.
        let random = |tensor: &Tensor| scale == Scale::Large && tensor.dtype.bits > 8;
        self.made(text, self.sizes(scale), &random)
    }

    /// As [`prepare`](Self::prepare) with small sizes. Products and sums round the values of the inputs; factors of blocks stay powers of two.
    pub fn prepare_for_rounding(&self, text: &str) -> Result<Prepared, String> {
        let random =
            |tensor: &Tensor| tensor.dtype.bits > 8 || tensor.dtype.is_floating() && tensor.name.len() == 1;
        self.made(text, self.sizes(Scale::Small), &random)
    }

    /// The same with other sizes.
    pub fn prepare_with(&self, text: &str, sizes: Sizes) -> Result<Prepared, String> {
        self.made(text, sizes, &|_| false)
    }

    /// `random` says which inputs have values without a pattern.
    fn made(&self, text: &str, sizes: Sizes, random: &dyn Fn(&Tensor) -> bool) -> Result<Prepared, String> {
        let defines: Defines = sizes
            .iter()
            .map(|(name, value)| (name.to_string(), ConstValue::Int((*value).into())))
            .collect();
        let mut built = build(self.file, text, &[self.entry], &defines)?;
        let (_, module) = built.pop().ok_or("no kernel")?;
        let module = stages(&module, self.arch, &mut |_, _| Ok(()))?;
        let (mut arguments, mut values) = (Vec::new(), Vec::new());
        for tensor in self.tensors {
            let shape = (tensor.shape)(&sizes);
            let count = shape.iter().product::<i64>() as usize;
            let random = random(tensor) && !is_written(self, tensor);
            let value = if random { random_value } else { tensor.value };
            let elements: Vec<f32> = (0..count).map(value).collect();
            let bytes = encode(tensor.dtype, &elements);
            values.push(decode(tensor.dtype, &bytes));
            let argument = machine::Argument::Tensor {
                dtype: tensor.dtype,
                shape,
                bytes,
            };
            arguments.push((tensor.name.to_string(), argument));
        }
        if let Some((name, value)) = self.scalar {
            let value = machine::Argument::Scalar(host::Argument::Float(value));
            arguments.push((name.to_string(), value));
        }
        Ok(Prepared {
            module,
            arguments,
            sizes,
            values,
        })
    }

    /// A row of the last tensor in double precision.
    pub fn exact_row(&self, prepared: &Prepared, row: usize) -> Vec<f64> {
        (self.row)(&prepared.sizes, &prepared.values, row)
    }

    /// The elements of the last tensor, as float32, and its rows.
    pub fn result(&self, prepared: &Prepared, contents: &[Vec<u8>]) -> (Vec<f32>, usize) {
        match (self.tensors.last(), contents.last()) {
            (Some(tensor), Some(found)) => (
                decode(tensor.dtype, found),
                (tensor.shape)(&prepared.sizes)[0] as usize,
            ),
            _ => (Vec::new(), 0),
        }
    }

    /// Compares the last tensor; where it has many rows, a sample of them.
    pub fn compare(&self, prepared: &Prepared, contents: &[Vec<u8>]) -> Result<(), String> {
        let (Some(tensor), Some(found)) = (self.tensors.last(), contents.last()) else {
            return Err("no tensor".into());
        };
        let found = decode(tensor.dtype, found);
        let shape = (tensor.shape)(&prepared.sizes);
        let rows = shape[0] as usize;
        let cols = found.len() / rows.max(1);
        let step = (rows / 64).max(1);
        for row in (0..rows).step_by(step).chain([rows - 1]) {
            let expected = (self.row)(&prepared.sizes, &prepared.values, row);
            for (col, want) in expected.iter().enumerate() {
                let have = f64::from(found[row * cols + col]);
                let want = decode(tensor.dtype, &encode(tensor.dtype, &[*want as f32]))[0].into();
                if have != want
                    && (have - want)
                        .abs()
                        .partial_cmp(&self.tolerance)
                        .is_none_or(|o| o.is_gt())
                {
                    return Err(format!("({row}, {col}): expected {want}, found {have}"));
                }
            }
        }
        Ok(())
    }

    /// Runs a text of the kernel and compares.
    pub fn check(&self, machine: &mut dyn Machine, text: &str, scale: Scale) -> Result<(), String> {
        let prepared = self.prepare(text, scale)?;
        let contents = machine::run(machine, &prepared.module, &prepared.arguments)?;
        self.compare(&prepared, &contents)
    }
}

fn is_written(case: &Case, tensor: &Tensor) -> bool {
    case.tensors.last().is_some_and(|last| last.name == tensor.name)
}

/// From -1 to below 1, with full precision.
fn random_value(i: usize) -> f32 {
    let mut x = i as u64 ^ 0x9e37_79b9_7f4a_7c15;
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn encode(dtype: DType, values: &[f32]) -> Vec<u8> {
    if dtype.is_bfloat16() {
        return values
            .iter()
            .flat_map(|v| bf16::from_f32(*v).to_le_bytes())
            .collect();
    }
    if dtype.bits == 8 && dtype.is_floating() {
        let code =
            |v: &f32| tirx_core::ir::Minifloat::from_type_code(dtype.code).map_or(0, |mini| mini.encode(*v));
        return values.iter().map(|v| code(v) as u8).collect();
    }
    if dtype.bits == 8 {
        return values.iter().map(|v| *v as u8).collect();
    }
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    if dtype.is_bfloat16() {
        let pairs = bytes.chunks_exact(2);
        return pairs
            .map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32())
            .collect();
    }
    if dtype.bits == 8 && dtype.is_floating() {
        let value = |b: &u8| {
            tirx_core::ir::Minifloat::from_type_code(dtype.code).map_or(0.0, |mini| mini.decode((*b).into()))
        };
        return bytes.iter().map(value).collect();
    }
    if dtype.bits == 8 {
        return bytes.iter().map(|b| (*b).into()).collect();
    }
    let words = bytes.chunks_exact(4);
    words
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}
