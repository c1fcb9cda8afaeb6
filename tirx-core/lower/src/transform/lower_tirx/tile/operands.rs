//! The operands of a call as layouts: what each variant asks of a region before it looks closer.

use crate::arith::Analyzer;
use crate::ir::{BufferRegion, DType, Expr};
use crate::layout::{Layout, LayoutAlgebra};

/// The layout of a region's buffer.
///
/// # Errors
/// It has none.
pub(super) fn layout(region: &BufferRegion) -> Result<Layout, String> {
    let buffer = &region.buffer;
    Layout::from_buffer(buffer).ok_or_else(|| format!("{} has no layout", buffer.name))
}

/// The layout of a region.
///
/// # Errors
/// The buffer has no layout, or one that does not have the region as a part.
pub(super) fn sliced(region: &BufferRegion, facts: &mut Analyzer) -> Result<Layout, String> {
    sliced_to(region, &region.ranges, facts)
}

/// The same of these ranges of its buffer.
pub(super) fn sliced_to(
    region: &BufferRegion,
    ranges: &[(Expr, Expr)],
    facts: &mut Analyzer,
) -> Result<Layout, String> {
    layout_sliced(layout(region)?, region, ranges, facts)
}

/// The same without the swizzle of the buffer's layout.
pub(super) fn sliced_tile(region: &BufferRegion, facts: &mut Analyzer) -> Result<Layout, String> {
    let tile = Layout::Tile(layout(region)?.tile().clone().into());
    layout_sliced(tile, region, &region.ranges, facts)
}

fn layout_sliced(
    layout: Layout,
    region: &BufferRegion,
    ranges: &[(Expr, Expr)],
    facts: &mut Analyzer,
) -> Result<Layout, String> {
    let buffer = &region.buffer;
    layout
        .slice(&buffer.shape, ranges, facts)
        .ok_or_else(|| format!("the layout of {} cannot be sliced to the region", buffer.name))
}

/// The layout of a region that lies in memory, not over threads.
///
/// # Errors
/// As for [`sliced`], or it is spread over threads.
pub(super) fn in_memory(region: &BufferRegion, facts: &mut Analyzer) -> Result<Layout, String> {
    let sliced = sliced(region, facts)?;
    match sliced.has_hardware_axis() {
        true => Err(format!("{} is spread over threads", region.buffer.name)),
        false => Ok(sliced),
    }
}

/// Bits of an element.
pub(super) fn bits(dtype: DType) -> i128 {
    i128::from(dtype.bits) * i128::from(dtype.lanes)
}

/// The product of a region's extents, where they are constants.
pub(super) fn elements(region: &BufferRegion) -> Option<i128> {
    region.ranges.iter().map(|(_, extent)| extent.as_int()).product()
}
