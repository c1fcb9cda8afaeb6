//! Buffers over a part of a shared array: of a pool, or of other storage that is declared once and used under several names.
//!
//! Passes have made their accesses indices of the whole array. Each such buffer becomes an array of its own in the tables of
//! the code, and its accesses get back indices from its own start, so that bounds are checked and elements are named as if it
//! were allocated alone. Pointers that a kernel computes with stay pointers into the whole array: only the address of an
//! element that is an operand of an instruction is checked against the buffer that it names.

use tirx_ir::intrin::Op;
use tirx_ir::{Buffer, Expr, ExprKind};
use tirx_source::diagnostic::Result;

use super::registers::Val;
use super::{Compiler, Home};
use tirx_sim_machine::address;
use tirx_sim_machine::bytecode::{ArrayView, Elements, Permutation, SharedArray};

impl Compiler<'_> {
    /// The array that a buffer is, if it is a view of a shared array, and the number of its elements that lie before it.
    pub(super) fn view_in(&mut self, home: &Home, buffer: &Buffer) -> Option<(u16, i64)> {
        let (Home::Shared(whole), Some(view)) = (home, &buffer.view) else {
            return None;
        };
        let bits = buffer.dtype.storage_bits() as u64 * u64::from(buffer.dtype.lanes.max(1));
        let before = view
            .start
            .checked_mul(8)
            .filter(|start| bits > 0 && start % bits == 0)?
            / bits;
        let before = i64::try_from(before).ok()?;
        if let Some(known) = self.views.get(&(*whole, buffer.clone())) {
            return Some((*known, before));
        }
        let array = self.code.shared.get(*whole as usize)?.clone();
        let (start, bytes) = (u32::try_from(view.start).ok()?, u32::try_from(view.bytes).ok()?);
        let elements = Elements {
            shape: view.shape.clone(),
            steps: view.steps.clone(),
            first: view.first,
            swizzle: view.swizzle.map(|swizzle| Permutation {
                per_element: swizzle.per_element,
                bits: swizzle.swizzle_len,
                distance: swizzle.atom_len,
                lower_change: swizzle.inner,
            }),
        };
        let described = ArrayView {
            of: *whole,
            start,
            bytes,
            elements,
        };
        // Passes declare a buffer anew for each primitive that uses it.
        let same = |a: &SharedArray| {
            a.view.as_ref() == Some(&described)
                && a.name == *view.name
                && u32::from(a.element) == view.element
        };
        let id = match self.code.shared.iter().position(same) {
            Some(id) => id as u16,
            None => {
                let id = u16::try_from(self.code.shared.len()).ok()?;
                self.code.shared.push(SharedArray {
                    element: u16::try_from(view.element).ok()?,
                    name: view.name.to_string(),
                    dynamic: false,
                    ..array.part(described)
                });
                id
            }
        };
        self.views.insert((*whole, buffer.clone()), id);
        Some((id, before))
    }

    /// The address of an element of a view that is an operand of an instruction: one in the view, not in the whole array.
    pub(super) fn operand_in_view(&mut self, operand: &Expr) -> Result<Option<Val>> {
        let Some([target]) = operand.as_call(Op::AddressOf) else {
            return Ok(None);
        };
        let ExprKind::BufferLoad { buffer, indices, .. } = &target.kind else {
            return Ok(None);
        };
        let home = self.home(buffer)?;
        let Some((view, before)) = self.view_in(&home, buffer) else {
            return Ok(None);
        };
        let (Some((first, _)), _) = self.split_index(buffer, indices)? else {
            return Ok(None);
        };
        let kind = self.kind(buffer.dtype.element())?;
        let index = self.flat(buffer, &first, before)?;
        let index = self.scaled(index, buffer.dtype.lanes, 0)?;
        let pointer = self.bits(tirx_sim_machine::numeric::Kind::Ptr, address::shared(view))?;
        self.count(1);
        self.address(pointer, index, kind).map(Some)
    }
}
