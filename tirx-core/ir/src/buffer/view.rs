//! Where does a buffer lie in shared memory, once its accesses are indices of the whole allocation?
//!
//! Passes make the accesses of a buffer flat: shape, layout and element offset become arithmetic on one index, and the
//! buffers of a pool become names for the same bytes. A [`View`] keeps the description, in constants alone, for the
//! simulator: it checks that each access stays in the buffer that the kernel names, and names elements as the kernel does.
//! No code depends on it, so it is neither printed nor compared.

use std::sync::Arc;

use super::Buffer;
use crate::ir::Expr;
use crate::layout::{Layout, Swizzle};

/// The part of an allocation in shared memory that a buffer is declared over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The name the user gave.
    pub name: Arc<str>,
    /// Bytes from the buffer's data pointer to the view.
    pub start: u64,
    /// Bytes that its elements reach.
    pub bytes: u64,
    /// Bits of an element.
    pub element: u32,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
    /// The iterators that split the row-major number of an element, outermost first, each with its step in elements. Empty for
    /// elements in row-major order.
    pub steps: Vec<(u64, i64)>,
    /// Elements from the start to the element at coordinate zero.
    pub first: i64,
    /// The swizzle of the elements' offsets.
    pub swizzle: Option<Swizzle>,
}

impl View {
    /// The view of a declaration over shared memory; `None` if its offset, its extents or its strides are no constants.
    pub fn of(buffer: &Buffer) -> Option<View> {
        if !matches!(buffer.scope(), "shared" | "shared.dyn") {
            return None;
        }
        let number = |e: &Expr| u64::try_from(e.as_int()?).ok();
        let element = buffer.dtype.storage_bits() as u32 * u32::from(buffer.dtype.lanes.max(1));
        let shape = buffer.shape.iter().map(number).collect::<Option<Vec<_>>>()?;
        let elements = shape.iter().try_fold(1u64, |n, extent| n.checked_mul(*extent))?;
        let offset = buffer.elem_offset.as_ref().map_or(Some(0), number)?;
        let mut reach = elements;
        let (mut steps, mut first, mut swizzle) = (Vec::new(), 0, None);
        if let Some(layout) = Layout::of(buffer)
            && !layout.is_row_major(&buffer.shape)
        {
            let tile = layout.tile();
            let step = |iter: &crate::layout::Iter| {
                let stride = i64::try_from(iter.stride.as_int()?).ok()?;
                (iter.axis.is_memory() && stride >= 0).then_some((number(&iter.extent)?, stride))
            };
            steps = tile.shard.iter().map(step).collect::<Option<_>>()?;
            tile.replica.iter().map(step).collect::<Option<Vec<_>>>()?;
            first = i64::try_from(number(&tile.offset_in_memory())?).ok()?;
            swizzle = layout.swizzle();
            reach = number(&layout.memory_span())?;
            // The last row of declared strides is as long as the others.
            if let (Some(stride), Some(extent)) = (buffer.strides.first(), shape.first()) {
                reach = reach.max(number(stride)?.checked_mul(*extent)?);
            }
        }
        let bits = |elements: u64| elements.checked_mul(u64::from(element));
        let start = bits(offset).filter(|bits| bits % 8 == 0)? / 8;
        let bytes = bits(reach)?.div_ceil(8);
        let view = View {
            name: buffer.name.clone(),
            start,
            bytes,
            element,
            shape,
            steps,
            first,
            swizzle,
        };
        view.is_small().then_some(view)
    }

    /// Whether it has elements, and all numbers are so small that arithmetic on offsets and coordinates stays in 64 bits.
    pub(crate) fn is_small(&self) -> bool {
        let small = |n: u64| n <= u64::from(u32::MAX);
        let product = |mut extents: Box<dyn Iterator<Item = u64> + '_>| {
            extents.try_fold(1u64, |n, extent| n.checked_mul(extent).filter(|n| small(*n)))
        };
        let has_elements = |n: Option<u64>| n.is_some_and(|n| n > 0);
        self.bytes > 0
            && self.start.checked_add(self.bytes).is_some_and(small)
            && (1..=u32::from(u16::MAX)).contains(&self.element)
            && has_elements(product(Box::new(self.shape.iter().copied())))
            && has_elements(product(Box::new(self.steps.iter().map(|(extent, _)| *extent))))
            && (self.steps.iter().map(|(_, step)| *step))
                .chain([self.first])
                .all(|n| u64::try_from(n).is_ok_and(small))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{DType, Var};
    use crate::layout::{Axis, Iter, TileLayout};
    use crate::source::Span;

    fn shared(shape: &[i32], change: impl FnOnce(&mut crate::ir::BufferNode)) -> Option<View> {
        let shape = shape.iter().map(|n| Expr::int32(*n)).collect();
        View::of(&Buffer::fresh("A", shape, DType::FLOAT32, "shared.dyn", Span::NONE).with(change))
    }

    #[test]
    fn a_view_reaches_as_far_as_its_elements() {
        let plain = shared(&[4, 8], |n| n.elem_offset = Some(Expr::int32(64))).unwrap();
        assert_eq!((plain.start, plain.bytes, plain.steps.len()), (256, 128, 0));
        let padded = shared(&[4, 8], |n| n.strides = vec![Expr::int32(9), Expr::int32(1)]).unwrap();
        assert_eq!((padded.bytes, padded.steps), (144, vec![(4, 9), (8, 1)]));
        let transposed = |swizzle: Option<Swizzle>| {
            let tile = Arc::new(TileLayout::of(vec![Iter::memory(4, 1), Iter::memory(8, 4)]));
            shared(&[4, 8], |n| {
                n.layout = Some(match swizzle {
                    None => Layout::Tile(tile),
                    Some(swizzle) => Layout::Compose(swizzle, tile),
                });
            })
        };
        assert_eq!(transposed(None).unwrap().bytes, 128);
        let swizzle = Swizzle {
            per_element: 3,
            swizzle_len: 3,
            atom_len: 3,
            inner: true,
        };
        assert_eq!(transposed(Some(swizzle)).unwrap().bytes, 256);
    }

    #[test]
    fn only_constants_in_shared_memory_are_a_view() {
        let at = Var::new("at", DType::INT32);
        assert_eq!(shared(&[4], |n| n.elem_offset = Some(Expr::var(&at))), None);
        assert_eq!(shared(&[0], |_| {}), None);
        let threads = Iter {
            axis: Axis("laneid".into()),
            ..Iter::memory(4, 1)
        };
        let spread = Layout::Tile(TileLayout::of(vec![threads]).into());
        assert_eq!(shared(&[4], |n| n.layout = Some(spread)), None);
        let global = Buffer::fresh("A", vec![Expr::int32(4)], DType::FLOAT32, "global", Span::NONE);
        assert_eq!(View::of(&global), None);
    }
}
