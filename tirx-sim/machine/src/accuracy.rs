//! Errors of float values by statement, against a computation in double precision.

use std::collections::BTreeMap;

use crate::bytecode::Code;
use crate::location::FaultLocation;

/// The errors of a statement, over all lanes and runs of it. Errors are relative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementAccuracy {
    /// Results.
    pub results: u64,
    /// The largest error that the statement introduces: of a result, against the exact result for its rounded operands.
    introduced: Bits,
    /// The largest error that results have from the errors of operands.
    carried: Bits,
    /// The largest error of a result, against the result without any rounding.
    total: Bits,
    /// Most leading bits that cancelled in a sum.
    pub cancelled: u32,
    /// Results that are infinite and would be finite without rounding.
    pub overflows: u64,
    /// Results that are zero or subnormal, although the exact result is not zero.
    pub underflows: u64,
}

/// A number of double precision that compares by its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bits(u64);

impl Bits {
    fn raise(&mut self, error: f64) {
        if error > f64::from_bits(self.0) {
            *self = Bits(error.to_bits());
        }
    }
}

/// One result.
pub(crate) struct Sample {
    pub(crate) rounded: f64,
    /// In double precision, of the rounded operands.
    pub(crate) exact: f64,
    /// In double precision, of the operands without rounding.
    pub(crate) shadow: f64,
    /// The magnitude of the larger term, if it is a sum.
    pub(crate) term: f64,
    /// The smallest normal number of its kind.
    pub(crate) least: f64,
}

/// The difference of a number from the exact one, relative to the exact one; 0 where there is no error to speak of.
fn relative(found: f64, exact: f64) -> f64 {
    match found == exact || !found.is_finite() || !exact.is_finite() {
        true => 0.0,
        false if exact == 0.0 => 1.0,
        false => ((found - exact) / exact).abs(),
    }
}

impl StatementAccuracy {
    pub(crate) fn note(&mut self, sample: &Sample) {
        let Sample {
            rounded,
            exact,
            shadow,
            term,
            least,
        } = *sample;
        self.results += 1;
        if rounded.is_infinite() && shadow.is_finite() {
            self.overflows += 1;
        }
        if exact != 0.0 && exact.abs() < least && rounded.abs() < least {
            self.underflows += u64::from(rounded != exact);
            return;
        }
        self.introduced.raise(relative(rounded, exact));
        if shadow.abs() >= least || exact.abs() >= least {
            self.carried.raise(relative(exact, shadow));
            self.total.raise(relative(rounded, shadow));
        }
        if term > 0.0 && term.is_finite() && exact.abs() < term {
            let bits = match exact == 0.0 {
                // All bits of float32, or of a wider sum, at least.
                true => 24.0,
                false => (term / exact.abs()).log2().floor(),
            };
            self.cancelled = self.cancelled.max(bits as u32);
        }
    }

    /// The same with another statement's, of the same line.
    pub(crate) fn join(&mut self, other: &StatementAccuracy) {
        self.results += other.results;
        self.introduced.raise(other.introduced());
        self.carried.raise(other.carried());
        self.total.raise(other.total());
        self.cancelled = self.cancelled.max(other.cancelled);
        self.overflows += other.overflows;
        self.underflows += other.underflows;
    }

    /// The largest error that the statement introduces.
    pub fn introduced(&self) -> f64 {
        f64::from_bits(self.introduced.0)
    }

    /// The largest error that results have from the errors of operands.
    pub fn carried(&self) -> f64 {
        f64::from_bits(self.carried.0)
    }

    /// The largest error of a result.
    pub fn total(&self) -> f64 {
        f64::from_bits(self.total.0)
    }
}

/// The errors of a line of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineAccuracy {
    /// The line.
    pub location: Option<FaultLocation>,
    /// Its errors.
    pub errors: StatementAccuracy,
}

/// An element of global memory with its shadow, at the end of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowValue {
    /// The address of its first byte.
    pub address: u64,
    /// Bits of the element.
    pub bits: u8,
    /// The element in memory.
    pub rounded: u64,
    /// The bits of its shadow, a float64.
    pub shadow: u64,
}

/// Statements by line, in the order of the kernel's lines.
pub(crate) fn by_line(code: &Code, rows: BTreeMap<usize, StatementAccuracy>) -> Vec<LineAccuracy> {
    let mut lines: BTreeMap<(String, u32), LineAccuracy> = BTreeMap::new();
    for (pc, errors) in rows {
        let location = code.charged_location(pc).or_else(|| code.location(pc));
        let key = location
            .as_ref()
            .map_or((String::new(), 0), |at| (at.file.to_string(), at.line));
        match lines.get_mut(&key) {
            Some(line) => line.errors.join(&errors),
            None => {
                lines.insert(key, LineAccuracy { location, errors });
            }
        }
    }
    lines.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_tells_introduced_from_carried_errors() {
        let mut row = StatementAccuracy::default();
        // 1 + 2^-30 in float32, with an operand that had lost 2^-20.
        row.note(&Sample {
            rounded: 1.0,
            exact: 1.0 + 2.0f64.powi(-30),
            shadow: 1.0 + 2.0f64.powi(-20),
            term: 1.0,
            least: f64::from(f32::MIN_POSITIVE),
        });
        assert!((row.introduced() - 2.0f64.powi(-30)).abs() < 1e-15);
        assert!((row.carried() - 2.0f64.powi(-20)).abs() < 1e-8);
        assert_eq!(
            (row.results, row.cancelled, row.overflows, row.underflows),
            (1, 0, 0, 0)
        );
        row.note(&Sample {
            rounded: 0.0,
            exact: 1e-60,
            shadow: 1e-60,
            term: 0.0,
            least: f64::from(f32::MIN_POSITIVE),
        });
        row.note(&Sample {
            rounded: f64::INFINITY,
            exact: 1e40,
            shadow: 1e40,
            term: 0.0,
            least: f64::from(f32::MIN_POSITIVE),
        });
        row.note(&Sample {
            rounded: 2.0f64.powi(-10),
            exact: 2.0f64.powi(-10),
            shadow: 2.0f64.powi(-10),
            term: 1.0,
            least: f64::from(f32::MIN_POSITIVE),
        });
        assert_eq!((row.cancelled, row.overflows, row.underflows), (10, 1, 1));
        assert!(row.introduced() < 1e-8, "an underflow is no relative error");
    }
}
