//! Copies of boxes of tensors, as a tensor map describes them (PTX ISA, "Tensors").
//!
//! A box lies in shared memory row by row, the innermost dimension first, permuted by the map's swizzle. Elements
//! beyond the tensor are filled on the way in and left alone on the way out, except those in the last 16 bytes of a row: GPUs store all of them.

use super::{Reach, Work};
use crate::bytecode::{AtomicOp, Direction};
use crate::exec::Trap;
use crate::exec::access::Check;
use crate::exec::address::{self, Target};
use crate::exec::atomic::update;
use crate::exec::fills::Filled;
use crate::exec::shadow::Reduction;
use crate::fault::FaultKind;
use crate::numeric::Kind;
use crate::tensor_map::{FILLING_NAN, TENSOR_MAP_BYTES, TensorMap, TensorMapSwizzle, TensorMapType};

/// A copy of a box.
pub(crate) struct Tile {
    pub(crate) map: TensorMap,
    /// Where the map is.
    pub(crate) map_at: u64,
    pub(crate) direction: Direction,
    /// Address in shared memory.
    pub(crate) shared: u64,
    /// The first element, innermost dimension first; for a gather the column and four rows.
    pub(crate) at: Vec<i32>,
    pub(crate) gather: bool,
}

/// The elements that are packed together, and their bytes in the tensor and in shared memory.
fn packed_group(dtype: TensorMapType) -> (u64, u64, u64) {
    match dtype {
        TensorMapType::U4Align8 => (2, 1, 1),
        TensorMapType::U4Align16 => (16, 8, 16),
        TensorMapType::U6Align16 => (16, 12, 16),
        other => (1, u64::from(other.bits()) / 8, u64::from(other.bits()) / 8),
    }
}

/// The map at an address.
pub(crate) fn read_map(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, String> {
    TensorMap::decode(bytes).ok_or_else(|| "the address of the tensor map has no tensor map".to_string())
}

impl Tile {
    /// Elements of the box along each dimension.
    fn extents(map: &TensorMap, gather: bool) -> Vec<u64> {
        if gather {
            return vec![u64::from(map.box_dims[0]), 4];
        }
        let each = map.box_dims.iter().enumerate();
        each.map(|(d, n)| u64::from(*n).div_ceil(Tile::step(map, d)))
            .collect()
    }

    /// Distance in elements between neighbours along a dimension. Without interleaving the innermost dimension has no
    /// stride.
    fn step(map: &TensorMap, d: usize) -> u64 {
        match d {
            0 => 1,
            _ => map
                .element_strides
                .get(d)
                .map_or(1, |step| u64::from((*step).max(1))),
        }
    }

    /// Bytes of a box in shared memory.
    pub(crate) fn bytes(map: &TensorMap, gather: bool) -> u64 {
        let (elements, _, bytes) = packed_group(map.dtype);
        Tile::extents(map, gather).iter().product::<u64>() / elements * bytes
    }

    /// Bytes of a box that count at an mbarrier: those of its elements, without the gaps that 4 and 6 bits leave in shared memory.
    /// The PTX ISA does not say so; CUTLASS and DeepGEMM expect these bytes.
    pub(crate) fn counted(map: &TensorMap, gather: bool) -> u64 {
        let (elements, global, _) = packed_group(map.dtype);
        Tile::extents(map, gather).iter().product::<u64>() / elements * global
    }

    /// Bytes of a row of the tensor.
    pub(crate) fn tensor_row(map: &TensorMap) -> u64 {
        let (elements, global, _) = packed_group(map.dtype);
        map.dims.first().map_or(0, |n| n / elements * global)
    }

    /// The parts of a box at `at` that lie within the tensor, one for each row: address and bytes. Rows outside are left out. For a gather,
    /// `at` is the first column and then the four rows.
    pub(crate) fn rows(map: &TensorMap, at: &[i32], gather: bool) -> Vec<(u64, u64)> {
        let (elements, global, _) = packed_group(map.dtype);
        let extents = Tile::extents(map, gather);
        let first = i64::from(at.first().copied().unwrap_or(0));
        let end = (first + extents[0] as i64).min(map.dims[0] as i64);
        let begin = first.max(0);
        if end <= begin {
            return Vec::new();
        }
        let bytes = (end - begin) as u64 / elements * global;
        let start = map.address + begin as u64 / elements * global;
        let mut rows = Vec::new();
        for number in 0..extents[1..].iter().product::<u64>() {
            let (mut left, mut address) = (number, Some(start));
            for (d, extent) in extents.iter().enumerate().skip(1) {
                let within = left % extent;
                left /= extent;
                // A gather names its rows one by one.
                let index = match gather {
                    true => at.get(1 + within as usize).copied().map(i64::from),
                    false => at
                        .get(d)
                        .map(|at| i64::from(*at) + (within * Tile::step(map, d)) as i64),
                };
                let inside = index
                    .and_then(|i| u64::try_from(i).ok())
                    .filter(|i| *i < map.dims[d]);
                address = address
                    .zip(inside)
                    .zip(map.strides.get(d - 1))
                    .map(|((a, i), stride)| a + i * stride);
            }
            rows.extend(address.map(|address| (address, bytes)));
        }
        rows
    }

    /// Checks the rules of PTX for tensor copies; an error names the rule that is broken.
    pub(crate) fn check(&self) -> Result<(), String> {
        let rank = self.map.rank();
        if self.gather && (rank != 2 || self.at.len() != 5) {
            return Err(format!(
                "{} takes a tensor map of rank 2, and this one has {rank}",
                match self.direction {
                    Direction::In => "tile::gather4",
                    _ => "tile::scatter4",
                }
            ));
        }
        if !self.gather && self.at.len() != rank {
            return Err(format!(
                "{} coordinates for a tensor map of rank {rank}",
                self.at.len()
            ));
        }
        let before = self.at.iter().position(|at| *at < 0);
        if let (Some(d), false) = (before, matches!(self.direction, Direction::In)) {
            return Err(format!(
                "a tensor copy to global memory begins at {} of dimension {d}: its box may end beyond the tensor, but not \
                 begin before it",
                self.at[d]
            ));
        }
        let step = match packed_group(self.map.dtype) {
            (16, ..) => 128,
            (elements, bytes, _) => (16 * elements / bytes) as i32,
        };
        if self.at[0] % step != 0 {
            return Err(format!(
                "a tensor copy begins at {} of dimension 0, along which it may begin at multiples of {step} elements: GPUs \
                 take another one for an illegal instruction",
                self.at[0]
            ));
        }
        if self.map.interleave != 0 {
            return Err("a tensor map with interleaved layout is not simulated".to_string());
        }
        Ok(())
    }

    /// What the copy brings, as a tensor core may compare it with its descriptor.
    fn filled(&self) -> Filled {
        let (elements, _, bytes) = packed_group(self.map.dtype);
        let extents = Tile::extents(&self.map, self.gather);
        let mut at: Vec<i64> = self.at.iter().map(|at| i64::from(*at)).collect();
        if let Some(first) = at.first_mut() {
            *first = *first / elements as i64 * bytes as i64;
        }
        Filled {
            swizzle: self.map.swizzle,
            dtype: self.map.dtype,
            map_at: self.map_at,
            row: (extents[0] / elements * bytes) as u32,
            tensor_row: self.map.dims[0] / elements * bytes,
            rows: extents[1..].to_vec(),
            at,
            steps: (1..extents.len())
                .map(|d| Tile::step(&self.map, d) as i64)
                .collect(),
            gather: self.gather,
        }
    }

    /// The elements of a row that the copy engine moves: on the way out, all of those in its last 16 bytes.
    fn moved(&self) -> u64 {
        let (elements, global, _) = packed_group(self.map.dtype);
        match self.direction {
            Direction::In => self.map.dims[0],
            _ => (self.map.dims[0] * global).next_multiple_of(16 * elements) / global,
        }
    }

    /// The bytes of one element (or of the elements packed with it) in the tensor; `None` for one that is not moved.
    fn place(&self, index: &[i64]) -> Option<u64> {
        let (elements, global, _) = packed_group(self.map.dtype);
        let mut address = self.map.address;
        for (d, i) in index.iter().enumerate() {
            let end = if d == 0 { self.moved() } else { self.map.dims[d] };
            let i = u64::try_from(*i).ok().filter(|i| *i < end)?;
            address += match d {
                0 => i / elements * global,
                _ => i * self.map.strides.get(d - 1)?,
            };
        }
        Some(address)
    }

    fn row(&mut self, reach: &mut Reach<'_, '_>, index: &[i64], row: u64, count: u64) -> Check {
        let (elements, global, wide) = packed_group(self.map.dtype);
        let step = elements.max(1) as i64;
        let units = count / elements;
        let (global, wide) = (global as usize, wide as usize);
        let first = row * units * wide as u64;
        let mut at = index.to_vec();
        let places: Vec<Option<u64>> = (0..units as i64)
            .map(|i| {
                at[0] = index[0] + i * step;
                self.place(&at)
            })
            .collect();
        // Elements of the tensor's row; behind them, those in its last 16 bytes.
        let inside = (self.map.dims[0] as i64 - index[0]) / step;
        // Consecutive elements are one access.
        let mut runs: Vec<(usize, usize, Option<u64>)> = Vec::new();
        for (i, place) in places.iter().enumerate() {
            match runs.last_mut() {
                Some((start, count, Some(address)))
                    if *start + *count == i
                        && i as i64 != inside
                        && *place == Some(*address + (*count * global) as u64) =>
                {
                    *count += 1;
                }
                Some((_, count, None)) if place.is_none() => *count += 1,
                _ => runs.push((i, 1, *place)),
            }
        }
        let fill = fill(&self.map);
        for (start, count, place) in runs {
            let offset = first + (start * wide) as u64;
            match (self.direction, place) {
                (Direction::In, place) => {
                    let mut narrow: Vec<u8> = fill.iter().copied().cycle().take(count * global).collect();
                    if let Some(address) = place {
                        reach.read(address, &mut narrow)?;
                    }
                    let rounds = matches!(
                        self.map.dtype,
                        TensorMapType::TFloat32 | TensorMapType::TFloat32Ftz
                    );
                    if rounds && place.is_some() {
                        let before = narrow.clone();
                        narrow.chunks_exact_mut(4).for_each(round_tf32);
                        if reach.ctx.accuracy.is_some() {
                            let samples = reach.carried.rounded(&before, &narrow);
                            reach.note_samples(&samples);
                        }
                    }
                    let bytes: Vec<u8> = narrow
                        .chunks(global)
                        .flat_map(|c| c.iter().copied().chain(std::iter::repeat_n(0, wide - global)))
                        .collect();
                    self.pieces(reach, self.shared, offset, bytes.len(), |reach, at, range| {
                        reach.write(at, &bytes[range])
                    })?;
                }
                (_, None) => {}
                (direction, Some(address)) => {
                    let mut bytes = vec![0; count * wide];
                    let len = bytes.len();
                    self.pieces(reach, self.shared, offset, len, |reach, at, range| {
                        reach.read(at, &mut bytes[range])
                    })?;
                    let mut narrow: Vec<u8> =
                        bytes.chunks(wide).flat_map(|c| &c[..global]).copied().collect();
                    let explained = |trap| match start as i64 >= inside {
                        true => behind_the_row(trap, count * elements as usize),
                        false => trap,
                    };
                    let Direction::Reduce(op) = direction else {
                        reach.write(address, &narrow).map_err(explained)?;
                        continue;
                    };
                    let Some(kind) = reduced(self.map.dtype, op) else {
                        let message = format!(
                            "a tensor copy cannot combine elements of {:?} by `{op:?}`: GPUs take it for an illegal \
                             instruction",
                            self.map.dtype
                        )
                        .to_lowercase();
                        return Err(reach.trap(FaultKind::Asynchronous, message));
                    };
                    let flushes = matches!(
                        self.map.dtype,
                        TensorMapType::Float32Ftz | TensorMapType::TFloat32Ftz
                    );
                    if flushes {
                        narrow.chunks_exact_mut(4).for_each(flush);
                    }
                    let operand = &narrow;
                    let update = reach.update(address, &Reduction { op, kind, operand }, &mut |old| {
                        if flushes {
                            old.chunks_exact_mut(4).for_each(flush);
                        }
                        combine(op, kind, old, operand);
                        if flushes {
                            old.chunks_exact_mut(4).for_each(flush);
                        }
                    });
                    update.map_err(explained)?;
                }
            }
        }
        Ok(())
    }

    /// Goes through the pieces of a row in shared memory, in the order in which the swizzle puts them.
    fn pieces(
        &self,
        reach: &mut Reach<'_, '_>,
        base: u64,
        offset: u64,
        count: usize,
        mut step: impl FnMut(&mut Reach<'_, '_>, u64, std::ops::Range<usize>) -> Check,
    ) -> Check {
        if self.map.swizzle == TensorMapSwizzle::None {
            return step(reach, base + offset, 0..count);
        }
        let first = match address::decode(base) {
            Target::Shared(array, at) | Target::Cluster(_, array, at) => {
                let start = reach.ctx.code.shared.get(array as usize).map_or(0, |a| a.offset);
                start.wrapping_add(at as u32)
            }
            _ => 0,
        };
        let mut done = 0;
        while done < count {
            let plain = first + offset as u32 + done as u32;
            let len = (16 - plain as usize % 16).min(count - done);
            let moved = i64::from(self.map.swizzle.apply(plain)) - i64::from(plain);
            let at = (base + offset + done as u64).wrapping_add_signed(moved);
            step(reach, at, done..done + len)?;
            done += len;
        }
        Ok(())
    }
}

/// The error of an access to elements behind a row of the tensor: why the copy stores them.
fn behind_the_row(mut trap: Box<Trap>, elements: usize) -> Box<Trap> {
    if trap.kind == FaultKind::OutOfBounds {
        trap.message = format!(
            "a tensor copy stores {elements} elements behind the end of the tensor's row, outside of the allocation: GPUs store whole 16 bytes; \
             make the row a multiple of 16 bytes, or store its last elements by threads"
        );
    }
    trap
}

/// The bytes that elements beyond the tensor are filled with, over and over.
fn fill(map: &TensorMap) -> Vec<u8> {
    match map.nan_fill {
        true => FILLING_NAN.to_le_bytes().to_vec(),
        false => vec![0],
    }
}

/// How elements are combined by an operation of `cp.reduce.async.bulk.tensor`, where the copy engine has it.
///
/// Source: measured on an H100; every other pair is an illegal instruction there.
fn reduced(dtype: TensorMapType, op: AtomicOp) -> Option<Kind> {
    use AtomicOp::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    let (kind, ops): (Kind, &[AtomicOp]) = match dtype {
        TensorMapType::Uint32 => (Kind::U32, &[Add, Min, Max, Inc, Dec, And, Or, Xor]),
        TensorMapType::Int32 => (Kind::I32, &[Add, Min, Max, And, Or, Xor]),
        TensorMapType::Uint64 => (Kind::U64, &[Add, Min, Max, And, Or, Xor]),
        TensorMapType::Int64 => (Kind::I64, &[Min, Max]),
        TensorMapType::Float16 => (Kind::F16, &[Add, Min, Max]),
        TensorMapType::Bfloat16 => (Kind::BF16, &[Add, Min, Max]),
        TensorMapType::Float64 => (Kind::F64, &[Add]),
        TensorMapType::Float32
        | TensorMapType::Float32Ftz
        | TensorMapType::TFloat32
        | TensorMapType::TFloat32Ftz => (Kind::F32, &[Add]),
        TensorMapType::Uint8
        | TensorMapType::Uint16
        | TensorMapType::U4Align8
        | TensorMapType::U4Align16
        | TensorMapType::U6Align16 => return None,
    };
    ops.contains(&op).then_some(kind)
}

/// Rounds a float32 to tf32, ties to even: what the copy engine does on the way in (measured on an H100).
fn round_tf32(bytes: &mut [u8]) {
    let bits = bytes.iter().rev().fold(0, |v: u32, b| v << 8 | u32::from(*b));
    let rounded = match f32::from_bits(bits).is_nan() {
        true => 0x7fff_e000,
        false => bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff,
    };
    bytes.copy_from_slice(&rounded.to_le_bytes());
}

/// Makes a subnormal float32 a zero of its sign.
fn flush(bytes: &mut [u8]) {
    let bits = bytes.iter().rev().fold(0, |v: u32, b| v << 8 | u32::from(*b));
    if f32::from_bits(bits).is_subnormal() {
        bytes.copy_from_slice(&(bits & 0x8000_0000).to_le_bytes());
    }
}

/// Combines elements in place.
pub(crate) fn combine(op: AtomicOp, kind: Kind, old: &mut [u8], new: &[u8]) {
    let size = kind.bits() as usize / 8;
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |v: u64, b| v << 8 | u64::from(*b));
    for (old, new) in old.chunks_mut(size).zip(new.chunks(size)) {
        let value = kind.load(bits(new));
        if let Some(result) = update(op, kind, bits(old), value, 0) {
            old.copy_from_slice(&result.to_le_bytes()[..size]);
        }
    }
}

impl Work for Tile {
    fn destinations(&self) -> Vec<(u64, u64)> {
        if self.direction != Direction::In {
            return Vec::new();
        }
        let bytes = Tile::bytes(&self.map, self.gather);
        vec![(self.shared, bytes)]
    }

    fn run(&mut self, reach: &mut Reach<'_, '_>) -> Check {
        reach.note_map(self.map_at)?;
        self.check().map_err(|m| reach.trap(FaultKind::Asynchronous, m))?;
        if self.direction == Direction::In {
            reach.fill(
                self.shared,
                Tile::bytes(&self.map, self.gather) as u32,
                self.filled(),
            );
        }
        let extents = Tile::extents(&self.map, self.gather);
        let rows: u64 = extents[1..].iter().product();
        for row in 0..rows {
            let mut index: Vec<i64> = Vec::with_capacity(extents.len());
            index.push(self.at[0].into());
            let mut rest = row;
            for (d, extent) in extents.iter().enumerate().skip(1) {
                let i = (rest % extent) as i64;
                rest /= extent;
                index.push(if self.gather {
                    self.at[1 + i as usize].into()
                } else {
                    i64::from(self.at[d]) + i * Tile::step(&self.map, d) as i64
                });
            }
            self.row(reach, &index, row, extents[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined(op: AtomicOp, dtype: TensorMapType, old: u64, new: u64) -> Option<u64> {
        let kind = reduced(dtype, op)?;
        let bytes = dtype.bits() as usize / 8;
        let mut result = old.to_le_bytes();
        combine(op, kind, &mut result[..bytes], &new.to_le_bytes()[..bytes]);
        Some(u64::from_le_bytes(result))
    }

    /// Values that an H100 leaves, but for the bits of NaN.
    #[test]
    fn reductions_leave_what_a_gpu_leaves() {
        use AtomicOp::{Add, And, Dec, Inc, Max, Min};
        use TensorMapType::*;
        let cases = [
            (Add, Uint8, 1, 1, None),
            (Max, Uint16, 1, 1, None),
            (Inc, Uint32, 0x7fff_ffff, 1, Some(0)),
            (Inc, Uint32, 0x8000_0000, 0xffff_ffff, Some(0x8000_0001)),
            (Dec, Uint32, 0, 7, Some(7)),
            (Dec, Uint32, 5, 3, Some(3)),
            (Inc, Int32, 1, 1, None),
            (Min, Int32, 0x8000_0000, 0xffff_ffff, Some(0x8000_0000)),
            (Max, Uint64, 1 << 63, u64::MAX, Some(u64::MAX)),
            (Add, Int64, 1, 1, None),
            (And, Int64, 1, 1, None),
            (Add, Float16, 0x7bff, 0x7bff, Some(0x7c00)),
            (Add, Float16, 1, 1, Some(2)),
            (Min, Float16, 0xbc00, 0xc000, Some(0xc000)),
            (Max, Float16, 0xbc00, 0x3c00, Some(0x3c00)),
            (Min, Float16, 0x7e00, 0x3c00, Some(0x3c00)),
            (Min, Float16, 0, 0x8000, Some(0x8000)),
            (Max, Float16, 0x8000, 0, Some(0)),
            (Max, Bfloat16, 0x8000, 0, Some(0)),
            (Add, Float32, 1, 1, Some(2)),
            (Max, Float32, 0, 0, None),
            (Min, Float64, 0, 0, None),
        ];
        for (op, dtype, old, new, expected) in cases {
            assert_eq!(
                combined(op, dtype, old, new),
                expected,
                "{op:?} {dtype:?} {old:x} {new:x}"
            );
        }
    }

    #[test]
    fn tf32_is_rounded_as_on_a_gpu() {
        let cases = [
            (0x3f80_1000_u32, 0x3f80_0000_u32),
            (0x3f80_1001, 0x3f80_2000),
            (0x3f80_3000, 0x3f80_4000),
            (1, 0),
            (0x7fc0_0001, 0x7fff_e000),
            (0x7f80_1fff, 0x7fff_e000),
            (0xbf80_1000, 0xbf80_0000),
            (0x807f_ffff, 0x8080_0000),
            (0x7f7f_ffff, 0x7f80_0000_u32),
        ];
        for (from, to) in cases {
            let mut bytes = from.to_le_bytes();
            round_tf32(&mut bytes);
            assert_eq!(u32::from_le_bytes(bytes), to, "{from:x}");
        }
    }
}
