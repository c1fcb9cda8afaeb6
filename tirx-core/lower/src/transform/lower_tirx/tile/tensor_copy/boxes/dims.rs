//! The dimensions of a tensor map and of its boxes: merged where they continue each other, and whether the hardware takes
//! them.

use super::super::super::multiples::{may_be_multiple, remainder};
use super::{Boxes, Dim, GRANULE, LARGEST_BOX, LONG_ROW, MAX_DIMENSIONS, SHARED_ALIGNMENT};
use super::{divided, scaled};
use crate::arith::Analyzer;
use crate::ir::{BinOp, Expr};
use crate::layout::apply::binary;

impl Boxes {
    fn advances(&self, dim: usize) -> bool {
        self.turns.iter().any(|t| t.dim == dim)
    }

    fn remove(&mut self, dim: usize) {
        self.dims.remove(dim);
        for turn in self.turns.iter_mut().filter(|t| t.dim > dim) {
            turn.dim -= 1;
        }
    }

    /// Removes dimensions of one index, and merges a dimension with the next where the box has all of the first and the
    /// second continues it.
    pub(super) fn merge(&mut self, inner: i128, facts: &mut Analyzer) {
        for dim in (0..self.dims.len()).rev() {
            if self.dims.len() > 1 && dim > 0 && self.dims[dim].extent.is_int(1) && !self.advances(dim) {
                self.remove(dim);
            }
        }
        let mut dim = 0;
        while dim + 1 < self.dims.len() {
            let most = if dim == 0 {
                inner.min(LARGEST_BOX)
            } else {
                LARGEST_BOX
            };
            let here = &self.dims[dim];
            let whole = here.extent.is_int(here.size) && here.at.is_int(0);
            if !whole || self.advances(dim) || !self.join(dim, most, facts) {
                if whole && dim == 0 && !self.advances(0) {
                    self.lengthen(most, facts);
                }
                dim += 1;
            }
        }
        // Dimensions of which a copy takes one index merge as well.
        let mut dim = 1;
        while dim + 1 < self.dims.len() && self.dims.len() > MAX_DIMENSIONS {
            let single = |d: &Dim| d.size == 1;
            if !(single(&self.dims[dim]) && single(&self.dims[dim + 1]) && self.join(dim, 1, facts)) {
                dim += 1;
            }
        }
    }

    /// Short rows that follow each other are counted as fewer longer ones, of at most `most` units.
    fn lengthen(&mut self, most: i128, facts: &mut Analyzer) {
        let (a, b) = (&self.dims[0], &self.dims[1]);
        let (size, rows) = (a.size, b.size);
        let continues = binary(BinOp::Mul, a.stride.clone(), a.extent.clone());
        if size * self.unit.bytes() >= LONG_ROW
            || self.advances(1)
            || !facts.can_prove_equal(&b.stride, &continues)
        {
            return;
        }
        for by in (2..=most / size).rev().filter(|by| rows % by == 0) {
            let (Some(extent), Some(at)) = (divided(&b.extent, by, facts), divided(&b.at, by, facts)) else {
                continue;
            };
            self.dims[1] = Dim {
                extent,
                at,
                stride: scaled(&b.stride, by),
                size: rows / by,
            };
            self.dims[0].size = size * by;
            self.dims[0].extent = Expr::int32((size * by) as i32);
            return;
        }
    }

    /// How many copies there are, and how many rows of a box that are short.
    pub(super) fn effort(&self) -> (i128, i128) {
        let short = self.dims[0].size * self.unit.bytes() < LONG_ROW;
        let rows: i128 = self.dims[1..].iter().map(|d| d.size).product();
        (self.copies(), if short { rows } else { 1 })
    }

    /// Merges a dimension with the next, if the box stays within `most` units.
    fn join(&mut self, dim: usize, most: i128, facts: &mut Analyzer) -> bool {
        let (a, b) = (&self.dims[dim], &self.dims[dim + 1]);
        let times = |x: &Expr, y: &Expr| binary(BinOp::Mul, x.clone(), y.clone());
        let size = a.size * b.size;
        let continues = times(&a.stride, &a.extent);
        if size > most || !facts.can_prove_equal(&b.stride, &continues) {
            return false;
        }
        let at = binary(BinOp::Add, times(&b.at, &a.extent), a.at.clone());
        let Some(per) = a.extent.as_int() else {
            return false;
        };
        let joined = Dim {
            extent: times(&a.extent, &b.extent),
            stride: a.stride.clone(),
            size,
            at: facts.simplify(&at),
        };
        for turn in self.turns.iter_mut().filter(|t| t.dim == dim + 1) {
            turn.dim = dim;
            turn.step *= per;
        }
        self.dims[dim] = joined;
        self.remove(dim + 1);
        true
    }

    /// The dimensions of a buffer of elements of fewer than 8 bits in bytes.
    pub(in super::super) fn in_units(&mut self, facts: &mut Analyzer) -> Result<(), String> {
        let per = self.unit.elements;
        let whole = || "the innermost dimension does not consist of whole bytes".to_string();
        for (i, dim) in self.dims.iter_mut().enumerate().filter(|_| per > 1) {
            if i > 0 {
                dim.stride = divided(&dim.stride, per, facts).ok_or_else(whole)?;
                continue;
            }
            dim.extent = divided(&dim.extent, per, facts).ok_or_else(whole)?;
            dim.at = divided(&dim.at, per, facts).ok_or_else(whole)?;
            if dim.size % per != 0 {
                return Err(whole());
            }
            dim.size /= per;
        }
        Ok(())
    }

    /// Bytes of one copy.
    pub(in super::super) fn bytes(&self) -> i128 {
        let units: i128 = self.dims.iter().map(|d| d.size).product();
        units * self.unit.bytes()
    }

    /// How many copies there are.
    pub(in super::super) fn copies(&self) -> i128 {
        self.turns.iter().map(|t| t.count).product()
    }

    /// Whether the hardware takes the map and its boxes, as far as it is known here: the host checks the rest.
    pub(in super::super) fn legal(&self, facts: &mut Analyzer) -> Result<(), String> {
        let bytes = self.unit.bytes();
        if self.dims.len() > MAX_DIMENSIONS {
            return Err(format!(
                "a tensor map of {} dimensions would be needed, at most {MAX_DIMENSIONS} exist",
                self.dims.len()
            ));
        }
        let Some(first) = self.dims.first() else {
            return Err("a tensor map has at least one dimension".to_string());
        };
        for dim in &self.dims {
            if !(1..=LARGEST_BOX).contains(&dim.size) {
                let size = dim.size;
                return Err(format!(
                    "a box has 1 to {LARGEST_BOX} elements in a dimension, found {size}"
                ));
            }
        }
        let inner = first.size * bytes;
        if inner % GRANULE != 0 {
            return Err(format!(
                "the rows of the boxes have {inner} contiguous bytes, tensor copies move multiples of {GRANULE}"
            ));
        }
        // Measured on an H200: any other start is an illegal instruction, whatever the dtype.
        let step = GRANULE / bytes.min(GRANULE);
        if !may_be_multiple(&first.at, step, facts) {
            let behind = remainder(&first.at, step, facts).as_int().unwrap_or(0) * bytes;
            return Err(format!(
                "the copy begins {behind} bytes behind a multiple of {GRANULE} bytes in the tensor's rows, and tensor copies \
                 begin at one"
            ));
        }
        if self.swizzle > 0 && inner > GRANULE << self.swizzle {
            return Err(format!(
                "rows of {inner} bytes are longer than the swizzle's {}",
                GRANULE << self.swizzle
            ));
        }
        for dim in &self.dims[1..] {
            if !may_be_multiple(&dim.stride, GRANULE / bytes.min(GRANULE), facts) {
                return Err(format!(
                    "strides of the global tensor must be multiples of {GRANULE} bytes, found {} bytes",
                    dim.stride
                        .as_int()
                        .map_or_else(|| "another".into(), |s| (s * bytes).to_string())
                ));
            }
        }
        let steps = self.turns.iter().map(|t| t.shared * bytes);
        if let Some(step) = steps.into_iter().find(|s| s % SHARED_ALIGNMENT != 0) {
            return Err(format!(
                "shared memory of a tensor copy is aligned to {SHARED_ALIGNMENT} bytes, but the boxes lie {step} bytes apart"
            ));
        }
        let elements = SHARED_ALIGNMENT * self.unit.elements / bytes;
        if !may_be_multiple(&self.shared_at, elements, facts) {
            return Err(format!(
                "the region begins in shared memory at a place that is not aligned to {SHARED_ALIGNMENT} bytes"
            ));
        }
        Ok(())
    }
}
