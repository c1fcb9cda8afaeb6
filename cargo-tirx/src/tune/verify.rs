//! Do all candidates give the same outputs?
//!
//! Candidates may add in different orders, so floating-point tensors are compared by the largest difference, relative to the largest magnitude of the
//! tensor. Other tensors must be equal.

use tirx_core::ir::{DType, Minifloat};
use tirx_rt::{bf16, f16};
use tirx_sim::host::Argument;

use crate::bench::arguments::BoundArguments;
use crate::failure::{Result, user};

/// The tensors after a call: type and bytes.
pub(super) struct Outputs(Vec<(String, DType, Vec<u8>)>);

impl Outputs {
    pub(super) fn of_call(call: &BoundArguments) -> Result<Outputs> {
        let mut tensors = call.tensors.iter();
        let mut outputs = Vec::new();
        for (name, argument) in call.names.iter().zip(&call.arguments) {
            if let Argument::Tensor { dtype, .. } = argument
                && let Some(tensor) = tensors.next()
            {
                outputs.push((name.clone(), *dtype, tensor.to_vec().map_err(user)?));
            }
        }
        Ok(Outputs(outputs))
    }

    /// Compares with the outputs of another candidate.
    ///
    /// # Errors
    /// The tensor that differs, and how much.
    pub(super) fn compare(&self, other: &Outputs) -> std::result::Result<(), String> {
        for ((name, dtype, expected), (.., actual)) in self.0.iter().zip(&other.0) {
            if expected == actual {
                continue;
            }
            let Some((tolerance, decode)) = decoder(*dtype) else {
                return Err(format!("`{name}` differs between the outputs"));
            };
            let (expected, actual) = (decode(expected), decode(actual));
            let mut largest = 0f64;
            let mut difference = 0f64;
            for (expected, actual) in expected.iter().zip(&actual) {
                if expected.is_finite() && actual.is_finite() {
                    largest = largest.max(expected.abs());
                    difference = difference.max((expected - actual).abs());
                } else if !(expected == actual || expected.is_nan() && actual.is_nan()) {
                    return Err(format!("`{name}` is {expected} and {actual} in the outputs"));
                }
            }
            if difference > tolerance * largest {
                return Err(format!(
                    "`{name}` differs by {difference:.3e} (largest magnitude {largest:.3e}) between the outputs"
                ));
            }
        }
        Ok(())
    }
}

type Decode = Box<dyn Fn(&[u8]) -> Vec<f64>>;

/// The tolerance of a floating-point type, and the function that gives the elements of its bytes; `None` for types without a tolerance.
fn decoder(dtype: DType) -> Option<(f64, Decode)> {
    fn elements<const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|element| decode(*element))
            .collect()
    }
    if !dtype.is_floating() {
        return None;
    }
    Some(match (dtype.bits, dtype.is_bfloat16()) {
        (64, _) => (
            1e-10,
            Box::new(|bytes: &[u8]| elements(bytes, f64::from_le_bytes)),
        ),
        (32, _) => (
            1e-4,
            Box::new(|bytes: &[u8]| elements(bytes, |b| f32::from_le_bytes(b).into())),
        ),
        (16, true) => (
            3e-2,
            Box::new(|bytes: &[u8]| elements(bytes, |b| bf16::from_bits(u16::from_le_bytes(b)).to_f64())),
        ),
        (16, false) => (
            4e-3,
            Box::new(|bytes: &[u8]| elements(bytes, |b| f16::from_bits(u16::from_le_bytes(b)).to_f64())),
        ),
        (8, _) => {
            let format = Minifloat::from_type_code(dtype.code)?;
            (
                0.25,
                Box::new(move |bytes: &[u8]| elements(bytes, |[b]: [u8; 1]| format.decode(b.into()).into())),
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(dtype: &str, bytes: Vec<u8>) -> Outputs {
        Outputs(vec![("C".into(), dtype.parse().unwrap(), bytes)])
    }

    fn floats(values: &[f32]) -> Outputs {
        outputs(
            "float32",
            values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        )
    }

    #[test]
    fn outputs_may_differ_by_rounding_alone() {
        let expected = floats(&[100.0, 1e-3, f32::NAN, f32::INFINITY]);
        assert!(
            expected
                .compare(&floats(&[100.001, 1.1e-3, f32::NAN, f32::INFINITY]))
                .is_ok()
        );
        for (wrong, message) in [
            ([100.1, 1e-3, f32::NAN, f32::INFINITY], "`C` differs by 1.000e-1"),
            ([100.0, 1e-3, 1.0, f32::INFINITY], "`C` is NaN and 1"),
            ([100.0, 1e-3, f32::NAN, f32::NEG_INFINITY], "`C` is inf and -inf"),
        ] {
            let error = expected.compare(&floats(&wrong)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        let integers = |value: i32| outputs("int32", value.to_le_bytes().to_vec());
        assert!(integers(7).compare(&integers(7)).is_ok());
        assert!(
            integers(7)
                .compare(&integers(8))
                .unwrap_err()
                .contains("`C` differs")
        );
        let halves = |value: f32| outputs("float16", f16::from_f32(value).to_bits().to_le_bytes().to_vec());
        assert!(halves(1.0).compare(&halves(1.001)).is_ok() && halves(1.0).compare(&halves(1.01)).is_err());
        // The float8 numbers 1 and 1.125, and 2.
        let narrow = |bits: u8| outputs("float8_e4m3fn", vec![bits]);
        assert!(narrow(0x38).compare(&narrow(0x39)).is_ok() && narrow(0x38).compare(&narrow(0x40)).is_err());
    }
}
