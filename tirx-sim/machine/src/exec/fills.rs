//! How tiles of shared memory were filled: by which tensor copy, with which swizzle, of which type.
//!
//! A tensor core reads bytes by a descriptor. If that has another swizzle than the tensor map by which the tile was copied, or
//! the instruction another type, the result is wrong without any access being so. Each block remembers its tiles, and an
//! operand is compared with the copy that has written it last.

use std::collections::BTreeMap;

use super::order::Place;
use crate::tensor::descriptor::Descriptor;
use crate::tensor::format::Format;
use crate::tensor_map::{TensorMap, TensorMapSwizzle, TensorMapType};

/// What is at the place of the copy, in messages.
pub(super) const FILLED: &str = "the tile is filled here";

/// A tile that a tensor copy has filled.
#[derive(Clone, Copy, Debug)]
struct Fill {
    end: u32,
    swizzle: TensorMapSwizzle,
    dtype: TensorMapType,
    /// The instruction that issued the copy.
    pc: usize,
}

/// The tiles of a block, by their first bytes in shared memory.
#[derive(Debug, Default)]
pub(super) struct Fills(BTreeMap<u32, Fill>);

impl Fills {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A tensor copy of an instruction fills bytes from `first` on.
    pub(super) fn fill(&mut self, first: u32, bytes: u32, map: &TensorMap, pc: usize) {
        let end = first + bytes;
        let over = self.0.range(..end).filter(|(_, fill)| fill.end > first);
        for at in over.map(|(at, _)| *at).collect::<Vec<_>>() {
            self.0.remove(&at);
        }
        let (swizzle, dtype) = (map.swizzle, map.dtype);
        self.0.insert(
            first,
            Fill {
                end,
                swizzle,
                dtype,
                pc,
            },
        );
    }

    /// Why a tensor core reads a piece at `byte` as something else than what was copied there, and the instruction that did;
    /// `place` is the piece's history. `format` is that of the operand, where it has one.
    pub(super) fn mismatch(
        &self,
        byte: u32,
        place: &Place,
        descriptor: &Descriptor,
        format: Option<Format>,
    ) -> Option<(String, usize)> {
        let (_, fill) = self.0.range(..=byte).next_back()?;
        if byte >= fill.end || place.operation() != Some(fill.pc) {
            return None;
        }
        // The piece of the tile that the copy has put here, and the one that the descriptor looks for.
        if fill.swizzle.apply(byte) != descriptor.swizzle.place(byte, descriptor.base) {
            let message = format!(
                "by a descriptor with {}, and the tensor copy has filled the tile with {}",
                mode(descriptor.swizzle.name()),
                mode(fill.swizzle.name())
            );
            return Some((message, fill.pc));
        }
        let format = format.filter(|format| !holds(fill.dtype, *format))?;
        let message = format!(
            "as {format:?}, and the tensor copy has filled the tile with elements of {:?}",
            fill.dtype
        );
        Some((message.to_lowercase(), fill.pc))
    }
}

fn mode(name: &str) -> String {
    match name {
        "" => "no swizzle".to_string(),
        name => format!("a swizzle of {name} bytes"),
    }
}

/// Whether elements of a tensor map's type may be operands of a format. Integers of a map are any bits.
fn holds(dtype: TensorMapType, format: Format) -> bool {
    use TensorMapType::{
        Bfloat16, Float16, Float32, Float32Ftz, Float64, TFloat32, TFloat32Ftz, U4Align8, U4Align16,
        U6Align16,
    };
    match dtype {
        Float16 => format == Format::F16,
        Bfloat16 => format == Format::Bf16,
        Float32 | Float32Ftz | TFloat32 | TFloat32Ftz => matches!(format, Format::F32 | Format::Tf32),
        Float64 => format == Format::F64,
        U4Align8 => format.bits() == 4,
        U4Align16 | U6Align16 => format.bits() < 8,
        _ => true,
    }
}
