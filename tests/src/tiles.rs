//! Random programs of tile primitives, and their expected results.
//!
//! A program copies a tensor to buffers in shared memory and registers of random layouts, computes with them, and copies
//! them back, with a barrier after each step. Every step is done a second time on plain arrays of numbers, from what
//! the primitive means alone: no layout, no thread and no vector takes part. Values are small integers, which every
//! dtype holds exactly.

mod engines;
mod products;
mod threads;

use half::{bf16, f16};
use tirx_core::ir::{DType, IRModule, Minifloat};

use crate::generator::random::Random;
use crate::machine::{self, Argument, Machine};

/// A program with its arguments and what its tensors must hold in the end.
pub struct TileProgram {
    /// The kernel file.
    pub text: String,
    /// Its arguments, in order.
    pub arguments: Vec<(String, Argument)>,
    /// The tensors afterwards.
    pub expected: Vec<Vec<u8>>,
    /// The architecture that it needs; `None` for any.
    pub arch: Option<&'static str>,
}

impl TileProgram {
    /// Runs the program, lowered, and compares what it leaves in its tensors.
    ///
    /// # Errors
    ///
    /// The machine's, and the first byte that differs.
    pub fn check(&self, machine: &mut dyn Machine, lowered: &IRModule) -> Result<(), String> {
        let found = machine::run(machine, lowered, &self.arguments)?;
        for (index, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            let Argument::Tensor { dtype, .. } = &self.arguments[index].1 else {
                continue;
            };
            let (found, expected) = (plain(*dtype, found), plain(*dtype, expected));
            if found != expected {
                let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
                return Err(format!("tensor {index} differs at byte {at}"));
            }
        }
        Ok(())
    }
}

/// The bytes of a number.
fn bytes(dtype: DType, value: i64) -> Vec<u8> {
    if let Some(small) = Minifloat::from_type_code(dtype.code) {
        return vec![small.encode(value as f32) as u8];
    }
    match dtype {
        DType::FLOAT32 => (value as f32).to_le_bytes().to_vec(),
        DType::FLOAT64 => (value as f64).to_le_bytes().to_vec(),
        DType::FLOAT16 => f16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::BFLOAT16 => bf16::from_f64(value as f64).to_le_bytes().to_vec(),
        DType::INT8 => (value as i8).to_le_bytes().to_vec(),
        DType::INT16 => (value as i16).to_le_bytes().to_vec(),
        DType::INT64 => value.to_le_bytes().to_vec(),
        _ => (value as i32).to_le_bytes().to_vec(),
    }
}

/// A tensor's bytes; elements of four bits lie two in a byte, the first in the lower half.
fn contents(dtype: DType, values: &[i64]) -> Vec<u8> {
    let whole: Vec<u8> = values.iter().flat_map(|v| bytes(dtype, *v)).collect();
    match dtype.bits {
        4 => whole.chunks(2).map(|two| two[0] | two[1] << 4).collect(),
        _ => whole,
    }
}

/// A tensor's bytes with negative zeros replaced by positive ones.
fn plain(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let mut plain = bytes.to_vec();
    if dtype.is_floating() {
        for element in plain.chunks_mut(dtype.bytes()) {
            if let Some((last, rest)) = element.split_last_mut()
                && *last == 0x80
                && rest.iter().all(|b| *b == 0)
            {
                *last = 0;
            }
        }
    }
    plain
}

/// The program of a seed; one of five is of engines and tensor cores.
pub fn generate(seed: u64) -> TileProgram {
    let mut random = Random::new(seed);
    if seed.is_multiple_of(5) {
        return engines::generate(&mut random);
    }
    threads::of_threads(random, None)
}

/// The program of a seed where kinds of programs take turns: every other one is of engines and tensor cores, of each form after
/// the other, and the others begin with each kind of step after the other.
pub fn generate_evenly(seed: u64) -> TileProgram {
    let mut random = Random::new(seed);
    match seed.is_multiple_of(2) {
        true => engines::in_turn(&mut random, seed / 2),
        false => threads::of_threads(random, Some(seed / 2)),
    }
}
