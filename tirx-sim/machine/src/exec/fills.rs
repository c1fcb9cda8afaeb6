//! How tiles of shared memory were filled: by which tensor copy, with which swizzle, of which type, and from where.
//!
//! A tensor core reads bytes by a descriptor. If that contradicts the tensor map by which the tile was copied (its swizzle, the
//! type of its elements, its rows), the result is wrong without any access being so. Each block remembers its tiles, and an
//! operand is compared with the copies that have written it last:
//!
//! | rule | what a contradiction is |
//! |---|---|
//! | pattern | a swizzled operand does not begin at a row of its pattern that the base offset names |
//! | distinct | two pieces of an operand are the same bytes, though neither offset is 0 |
//! | lines | the lines of an operand (rows if K is innermost, else k) run along the innermost dimension of the tensor |
//! | across | a step along a line moves in the dimension in which lines follow one another |
//! | gaps | in a box of two dimensions, two neighbouring lines are not neighbouring rows of the box |
//!
//! Where a piece was written by something else than a tensor copy, only the first two rules apply.

use std::cell::Cell;
use std::collections::HashMap;

use super::order::Place;
use crate::tensor::descriptor::{Descriptor, PIECE, Swizzle};
use crate::tensor::format::Format;
use crate::tensor_map::{TensorMapSwizzle, TensorMapType};

/// What is at the place of the copy, in messages.
pub(super) const FILLED: &str = "the tile is filled here";

/// What a tensor copy brings: a box of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Filled {
    pub(crate) swizzle: TensorMapSwizzle,
    pub(crate) dtype: TensorMapType,
    /// The address of the map.
    pub(crate) map_at: u64,
    /// Bytes of a row of the box in shared memory, and of a row of the tensor if it were there.
    pub(crate) row: u32,
    pub(crate) tensor_row: u64,
    /// Rows of the box along each dimension but the innermost.
    pub(crate) rows: Vec<u64>,
    /// The coordinates of its first element, that of the innermost dimension in bytes of shared memory, and the steps of the others.
    pub(crate) at: Vec<i64>,
    pub(crate) steps: Vec<i64>,
    /// The rows are chosen one by one.
    pub(crate) gather: bool,
}

/// A tile that a tensor copy has filled.
#[derive(Clone, Debug)]
struct Fill {
    end: u32,
    /// The instruction that issued the copy.
    pc: usize,
    filled: Filled,
}

/// Most dimensions of a tensor.
const DIMENSIONS: usize = 5;

/// Where a piece of an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Source {
    /// The first byte of the tile.
    tile: u32,
    /// The row of the box, all dimensions but the innermost taken together, and the byte within it.
    row: u64,
    byte: u32,
    /// In the tensor.
    at: [i64; DIMENSIONS],
    map_at: u64,
    pc: usize,
}

/// An operand of a tensor core as its descriptor reads it.
pub(crate) struct Reading<'a> {
    pub(crate) descriptor: &'a Descriptor,
    /// Addresses of its pieces: of each line those along it.
    pub(crate) pieces: &'a [u32],
    pub(crate) along: usize,
    /// MN-major: lines are those of one k.
    pub(crate) by_rows: bool,
    /// `A` or `B`.
    pub(crate) name: &'a str,
    /// It has been read, and every piece is ordered behind the copy that has written it: tiles of several copies belong together.
    pub(crate) done: bool,
}

/// The tiles of a block.
#[derive(Debug, Default)]
pub(super) struct Fills {
    /// By their first bytes in shared memory; they are disjoint.
    tiles: Vec<(u32, Fill)>,
    /// The tile that was looked for last.
    last: Cell<usize>,
    /// Of the operands read last, forms whose pieces are known to be distinct.
    distinct: Cell<[Option<Form>; 2]>,
}

/// What determines whether two pieces of an operand are the same: offsets, swizzle, extents.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form(u32, u32, Swizzle, usize, usize, bool);

impl Fills {
    pub(super) fn clear(&mut self) {
        self.tiles.clear();
    }

    /// A tensor copy of an instruction fills bytes from `first` on.
    pub(super) fn fill(&mut self, first: u32, bytes: u32, filled: Filled, pc: usize) {
        let end = first + bytes;
        let from = self.tiles.partition_point(|(_, fill)| fill.end <= first);
        let to = self.tiles.partition_point(|(at, _)| *at < end).max(from);
        self.tiles.splice(from..to, [(first, Fill { end, pc, filled })]);
    }

    /// The tile that holds a byte.
    fn holder(&self, byte: u32) -> Option<&(u32, Fill)> {
        let holds = |(first, fill): &&(u32, Fill)| *first <= byte && byte < fill.end;
        let last = self.tiles.get(self.last.get()).filter(holds);
        last.or_else(|| {
            let at = self.tiles.partition_point(|(_, fill)| fill.end <= byte);
            self.last.set(at);
            self.tiles.get(at).filter(holds)
        })
    }

    /// The tile that holds a byte, if the byte was written last by its copy. `writer` gives the instruction of the operation that
    /// has written a byte last.
    fn tile(&self, byte: u32, writer: &dyn Fn(u32) -> Option<usize>) -> Option<(u32, &Fill)> {
        let (first, fill) = self.holder(byte)?;
        (writer(byte) == Some(fill.pc)).then_some((*first, fill))
    }

    fn source(
        &self,
        byte: u32,
        descriptor: &Descriptor,
        writer: &dyn Fn(u32) -> Option<usize>,
    ) -> Option<Source> {
        let (tile, fill) = self.tile(byte, writer)?;
        let filled = &fill.filled;
        // Another swizzle is reported as such.
        if filled.swizzle.apply(byte) != descriptor.swizzle.place(byte, descriptor.base) || filled.row == 0 {
            return None;
        }
        let plain = filled.swizzle.apply(byte).wrapping_sub(tile);
        let (row, byte) = (u64::from(plain / filled.row), plain % filled.row);
        let mut at = [0; DIMENSIONS];
        at[0] = filled.at.first()? + i64::from(byte);
        let mut rest = row;
        for (d, extent) in filled.rows.iter().enumerate() {
            let within = (rest % extent) as i64;
            rest /= extent;
            *at.get_mut(d + 1)? = match filled.gather {
                true => *filled.at.get(1 + within as usize)?,
                false => filled.at.get(d + 1)? + within * filled.steps.get(d)?,
            };
        }
        Some(Source {
            tile,
            row,
            byte,
            at,
            map_at: filled.map_at,
            pc: fill.pc,
        })
    }

    /// Why a descriptor contradicts the tile that it reads, and the instruction of the copy that has filled it, if one has.
    pub(super) fn contradiction(
        &self,
        reading: &Reading<'_>,
        writer: &dyn Fn(u32) -> Option<usize>,
    ) -> Option<(String, Option<usize>)> {
        if let Some(message) = reading.off_the_pattern().filter(|_| !reading.done) {
            let tile = self.tile(reading.descriptor.start, writer);
            return Some((message, tile.map(|(_, fill)| fill.pc)));
        }
        let (form, known) = (reading.form(), self.distinct.get());
        if !known.contains(&Some(form)) {
            if let Some(message) = reading.taken_twice() {
                let tile = self.tile(reading.descriptor.start, writer);
                return Some((message, tile.map(|(_, fill)| fill.pc)));
            }
            self.distinct.set([Some(form), known[0]]);
        }
        let source = |at: usize| self.source(*reading.pieces.get(at)?, reading.descriptor, writer);
        let lines = reading.pieces.len() / reading.along.max(1);
        let related = |one: &Source, other: &Source| {
            one.map_at == other.map_at && (reading.done || one.tile == other.tile)
        };
        let mut line_dimension = None;
        let mut after = source(0);
        for line in 0..lines {
            let first = line * reading.along;
            let here = after;
            after = source(first + reading.along);
            let Some(here) = here else { continue };
            let fill = &self.holder(here.tile)?.1.filled;
            let wide = fill.tensor_row > PIECE as u64;
            let flat = fill.rows.iter().skip(1).all(|extent| *extent == 1);
            if let Some(next) = after.filter(|next| related(&here, next)) {
                let moved = |d: usize| next.at[d] != here.at[d];
                if line == 0 {
                    line_dimension = (0..DIMENSIONS).find(|d| moved(*d));
                }
                let gap = flat
                    && (fill.swizzle != TensorMapSwizzle::None || fill.row > PIECE as u32)
                    && next.tile == here.tile
                    && (next.row != here.row + 1 || next.byte != here.byte);
                if gap || wide && moved(0) {
                    return Some((reading.lines_apart(line, &here, &next, fill), Some(here.pc)));
                }
            }
            for step in 1..reading.along {
                let Some(there) = source(first + step).filter(|there| related(&here, there)) else {
                    continue;
                };
                // A tensor whose rows are single pieces may have them in any order, unless a dimension of the box has the lines.
                let crosses = line_dimension.is_some_and(|d| {
                    let has_lines = !flat && fill.rows.get(d.wrapping_sub(1)) == Some(&(lines as u64));
                    d > 0 && there.at[d] != here.at[d] && (wide || has_lines)
                });
                if crosses {
                    return Some((reading.across((line, step), &here, &there, fill), Some(here.pc)));
                }
            }
        }
        None
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
        let (_, Fill { pc, filled: fill, .. }) = self.tile(byte, &|_| place.operation())?;
        let pc = *pc;
        // The piece of the tile that the copy has put here, and the one that the descriptor looks for.
        if fill.swizzle.apply(byte) != descriptor.swizzle.place(byte, descriptor.base) {
            return Some((other_swizzle(descriptor, fill), pc));
        }
        let format = format.filter(|format| !holds(fill.dtype, *format))?;
        let message = format!(
            "as {format:?}, and the tensor copy has filled the tile with elements of {:?}",
            fill.dtype
        );
        Some((message.to_lowercase(), pc))
    }
}

/// The swizzles of a descriptor and of the copy differ.
fn other_swizzle(descriptor: &Descriptor, fill: &Filled) -> String {
    format!(
        "by a descriptor with {}, and the tensor copy has filled the tile with {}",
        mode(descriptor.swizzle.name()),
        mode(fill.swizzle.name())
    )
}

impl Reading<'_> {
    /// What a line is, and what a step along it.
    fn units(&self) -> [&'static str; 2] {
        match self.by_rows {
            true => ["k", "row"],
            false => ["row", "k"],
        }
    }

    fn form(&self) -> Form {
        let Descriptor {
            leading,
            stride,
            swizzle,
            ..
        } = *self.descriptor;
        Form(
            leading,
            stride,
            swizzle,
            self.pieces.len(),
            self.along,
            self.by_rows,
        )
    }

    fn offsets(&self) -> String {
        let Descriptor { leading, stride, .. } = self.descriptor;
        format!("a leading offset of {leading} bytes and a stride offset of {stride}")
    }

    /// A swizzle permutes a line by its number in the pattern, which is the address's: the first line is that of the base offset.
    fn off_the_pattern(&self) -> Option<String> {
        let Descriptor {
            start, base, swizzle, ..
        } = *self.descriptor;
        let repeat = match swizzle {
            Swizzle::None => return None,
            Swizzle::Bytes128Base32 => 512,
            other => other.repeat(),
        };
        let lines = repeat / 128;
        if (start >> 7).wrapping_sub(base) % lines == 0 {
            return None;
        }
        Some(format!(
            "by a descriptor with {} that begins at {start:#x} of shared memory, {} bytes behind a multiple of {repeat}, with base \
             offset {base}: a tile of this swizzle begins at a multiple of {repeat}",
            mode(swizzle.name()),
            start % repeat
        ))
    }

    /// Two pieces that are the same bytes.
    fn taken_twice(&self) -> Option<String> {
        let Descriptor { leading, stride, .. } = *self.descriptor;
        if leading == 0 || stride == 0 {
            return None;
        }
        let mut seen = HashMap::with_capacity(self.pieces.len());
        for (i, piece) in self.pieces.iter().enumerate() {
            if let Some(before) = seen.insert(*piece, i) {
                let [line, along] = self.units();
                let place = |at: usize| {
                    let (l, a) = (at / self.along, at % self.along);
                    format!("{line} {l} (16 bytes {a} along {along})")
                };
                return Some(format!(
                    "by a descriptor with {}, {}, by which {} and {} are the same bytes",
                    mode(self.descriptor.swizzle.name()),
                    self.offsets(),
                    place(before),
                    place(i)
                ));
            }
        }
        None
    }

    /// Neighbouring lines that are not neighbours in the tile.
    fn lines_apart(&self, line: usize, here: &Source, next: &Source, fill: &Filled) -> String {
        if fill.swizzle.name() != self.descriptor.swizzle.name() {
            return other_swizzle(self.descriptor, fill);
        }
        let [unit, _] = self.units();
        format!(
            "by a descriptor with {}, {}, by which {unit} {line} is at {} and {unit} {} at {}: the tensor copy has filled the tile \
             with rows of {} bytes",
            mode(self.descriptor.swizzle.name()),
            self.offsets(),
            place(here),
            line + 1,
            place(next),
            fill.row
        )
    }

    /// A step along a line that leads to another line of the tile.
    fn across(&self, (line, step): (usize, usize), here: &Source, there: &Source, fill: &Filled) -> String {
        let [unit, along] = self.units();
        format!(
            "by a descriptor with {}, {}, by which the first 16 bytes of {unit} {line} are at {} and those {} along {along} at {}: the \
             tensor copy has filled the tile with rows of {} bytes",
            mode(self.descriptor.swizzle.name()),
            self.offsets(),
            place(here),
            step * PIECE,
            place(there),
            fill.row
        )
    }
}

/// A piece's place in the box, for messages.
fn place(source: &Source) -> String {
    format!("byte {} of row {} of the box", source.byte, source.row)
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
