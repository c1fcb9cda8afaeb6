//! Indices: from the coordinates of an access to the elements from its array's start.

use tirx_ir::{BinOp, Buffer, Expr, ExprKind};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{Operand, R};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// The elements from `data` to the one at `indices`, less the `before` that lie before the buffer's own array, as one index;
    /// `indices` are those of scalars.
    pub(super) fn flat(&mut self, buffer: &Buffer, indices: &[Expr], before: i64) -> Result<Index> {
        match indices {
            [] => {
                let zero = self.integer(Kind::I32, 0)?;
                self.index_of_terms(vec![zero], before)
            }
            [index] => {
                let mut terms = Vec::new();
                self.terms(index, &mut terms)?;
                self.index_of_terms(terms, before)
            }
            _ => {
                // Row-major, or by strides.
                let mut total: Option<Val> = None;
                for (i, index) in indices.iter().enumerate() {
                    let value = self.value(index)?;
                    let value = self.convert(value, Kind::I64)?;
                    let step = match (buffer.strides.get(i), buffer.shape.get(i)) {
                        (Some(stride), _) => Some((true, stride.clone())),
                        (None, Some(extent)) => Some((false, extent.clone())),
                        _ => None,
                    };
                    let Some((is_stride, factor)) = step else {
                        return error(
                            self.span,
                            format!("too many indices for buffer `{}`", buffer.name),
                        );
                    };
                    let factor = self.value(&factor)?;
                    let factor = self.convert(factor, Kind::I64)?;
                    total = Some(match (total, is_stride) {
                        (None, true) => self.binary(BinOp::Mul, value, factor)?,
                        (None, false) => value,
                        (Some(total), true) => {
                            let product = self.binary(BinOp::Mul, value, factor)?;
                            self.binary(BinOp::Add, total, product)?
                        }
                        (Some(total), false) => {
                            let product = self.binary(BinOp::Mul, total, factor)?;
                            self.binary(BinOp::Add, product, value)?
                        }
                    });
                }
                let total = match total {
                    Some(total) => total,
                    None => self.integer(Kind::I64, 0)?,
                };
                self.index_of_terms(vec![total], before)
            }
        }
    }

    /// The terms of a sum. Addition wraps, so their order does not matter.
    pub(super) fn terms(&mut self, e: &Expr, out: &mut Vec<Val>) -> Result<()> {
        if let Some((a, b)) = e.as_binary(BinOp::Add)
            && !self.options.check_overflow
            && e.dtype.is_scalar()
            && matches!(self.kind(e.dtype)?, Kind::I32 | Kind::I64)
        {
            self.count(1);
            self.terms(a, out)?;
            return self.terms(b, out);
        }
        let value = self.value(e)?;
        let value = match value.kind {
            Kind::I32 | Kind::I64 => value,
            Kind::U32 | Kind::U64 | Kind::Ptr => self.convert(value, Kind::I64)?,
            _ => self.convert(value, Kind::I32)?,
        };
        out.push(value);
        Ok(())
    }

    /// The sum of the terms, less `before`. Constants are summed here.
    pub(super) fn index_of_terms(&mut self, terms: Vec<Val>, before: i64) -> Result<Index> {
        let kind = if terms.iter().any(|t| t.kind.wide()) {
            Kind::I64
        } else {
            Kind::I32
        };
        let (mut vector, mut scalar): (Option<Val>, Option<Val>) = (None, None);
        let mut constant = before.wrapping_neg();
        for term in terms {
            let term = self.convert(term, kind)?;
            if let Some(bits) = self.constant_of(term) {
                let value = if kind.wide() {
                    bits as i64
                } else {
                    i64::from(bits as u32 as i32)
                };
                constant = constant.wrapping_add(value);
                continue;
            }
            let sum = if term.is_scalar() {
                &mut scalar
            } else {
                &mut vector
            };
            let before = *sum;
            let after = match before {
                Some(before) => self.bin(Bin::Add, kind, kind, before, term)?,
                None => term,
            };
            if term.is_scalar() {
                scalar = Some(after);
            } else {
                vector = Some(after);
            }
        }
        if !kind.wide() {
            constant = i64::from(constant as i32);
        }
        if constant != 0 {
            let constant = self.integer(kind, constant.into())?;
            scalar = Some(match scalar {
                Some(scalar) => self.bin(Bin::Add, kind, kind, scalar, constant)?,
                None => constant,
            });
        }
        let zero = self.integer(kind, 0)?;
        let plus_of = |v: Val| match v.at {
            Operand::S(s) => s,
            Operand::V(_) => 0,
        };
        Ok(match (vector, scalar) {
            (Some(at), scalar) => Index {
                at,
                plus: plus_of(scalar.unwrap_or(zero)),
            },
            (None, scalar) => Index {
                at: scalar.unwrap_or(zero),
                plus: plus_of(zero),
            },
        })
    }

    /// The index times a constant plus a constant.
    pub(super) fn scaled(&mut self, index: Index, factor: u16, plus: u32) -> Result<Index> {
        if factor == 1 && plus == 0 {
            return Ok(index);
        }
        let kind = index.at.kind;
        let rest = Val::scalar(kind, index.plus);
        let mut terms = [index.at, rest];
        if factor != 1 {
            let factor = self.integer(kind, factor as i128)?;
            for term in &mut terms {
                *term = self.bin(Bin::Mul, kind, kind, *term, factor)?;
            }
        }
        let plus = self.integer(kind, plus as i128)?;
        self.index_of_terms(vec![terms[0], terms[1], plus], 0)
    }

    /// The index of the first of consecutive elements and their number, or one index per element.
    pub(super) fn split_index(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
    ) -> Result<(Option<FirstAndCount>, u16)> {
        let lanes: u16 = indices.iter().map(|i| i.dtype.lanes).product();
        if lanes <= 1 {
            return Ok((Some((indices.to_vec(), 1)), 1));
        }
        let Some((last, front)) = indices.split_last() else {
            return Ok((None, lanes));
        };
        // Elements of half a byte are accessed one by one: a group of them has no alignment to rely on.
        let whole = buffer.dtype.storage_bits() * buffer.dtype.lanes as usize >= 8;
        let contiguous = whole && buffer.strides.last().is_none_or(|s| s.is_int(1));
        if let ExprKind::Ramp { base, stride, lanes } = &last.kind
            && stride.is_int(1)
            && contiguous
            && front.iter().all(|i| i.dtype.is_scalar())
        {
            let mut first = front.to_vec();
            first.push(base.clone());
            return Ok((Some((first, *lanes)), *lanes));
        }
        Ok((None, lanes))
    }

    /// The scalar indices of each lane of a vector index.
    pub(super) fn lane_indices(&mut self, indices: &[Expr], lanes: u16, before: i64) -> Result<Vec<Index>> {
        let [index] = indices else {
            return error(
                self.span,
                "a vector index that is no ramp is possible for one dimension alone",
            );
        };
        let values = self.values(index)?;
        if values.len() != lanes as usize {
            return error(self.span, "an index with the wrong number of lanes");
        }
        values
            .into_iter()
            .map(|v| self.index_of_terms(vec![v], before))
            .collect()
    }

    /// The index of an array in registers: one for all lanes, and whether it is 64-bit.
    pub(super) fn uniform_index(&mut self, indices: &[Expr]) -> Result<(R, bool)> {
        let [index] = indices else {
            return error(self.span, "an array in registers has one index");
        };
        let mut terms = Vec::new();
        self.terms(index, &mut terms)?;
        let index = self.index_of_terms(terms, 0)?;
        // The scan has found it uniform; where the compiler cannot tell, every lane holds the same value.
        let at = self.first(index.at)?;
        let rest = Val::scalar(index.at.kind, index.plus);
        let sum = if index.at.is_scalar() {
            at
        } else {
            self.bin(Bin::Add, at.kind, at.kind, at, rest)?
        };
        match sum.at {
            Operand::S(s) => Ok((s, sum.kind.wide())),
            Operand::V(_) => error(self.span, "the index is not uniform"),
        }
    }
}

/// An index (or an address): a vector or scalar part and a scalar added to it.
#[derive(Clone, Copy)]
pub(super) struct Index {
    /// `I32` or `I64`.
    pub(super) at: Val,
    pub(super) plus: R,
}

/// The indices of the first element of consecutive ones, and how many there are.
type FirstAndCount = (Vec<Expr>, u16);
