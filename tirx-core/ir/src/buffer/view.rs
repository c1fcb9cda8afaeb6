//! Where does a buffer lie in shared memory, once its accesses are indices of the whole allocation?
//!
//! Passes make the accesses of a buffer flat: shape, layout and element offset become arithmetic on one index, and the
//! buffers of a pool become names for the same bytes. A [`View`] keeps the description, in constants alone, for the
//! simulator: it checks that each access stays in the buffer that the kernel names, and names elements as the kernel does.
//! No code depends on it, so it is neither printed nor compared.

use std::sync::Arc;

use crate::layout::Swizzle;

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
