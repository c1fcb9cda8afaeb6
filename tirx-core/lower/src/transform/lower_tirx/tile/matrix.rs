//! Descriptors of matrices in shared memory, derived from layouts.
//!
//! Tensor cores, and copies to tensor memory, read an operand in pieces of 16 bytes: pieces of a row (K-major) or of a column
//! (MN-major). A descriptor says where the pieces are: a start address, a swizzle with lines of 16 (none), 32, 64 or 128
//! bytes, a leading and a stride offset (PTX ISA, "Matrix descriptor format"):
//!
//! | major | swizzle | place of a piece |
//! |---|---|---|
//! | K | none | `row % 8 * 16 + row / 8 * stride + piece * leading` |
//! | K | line | `row % 8 * line + row / 8 * stride + piece * 16` |
//! | MN | none | `k % 8 * 16 + k / 8 * leading + piece * stride` |
//! | MN | line | `k % 8 * line + k / 8 * stride + piece % (line / 16) * 16 + piece / (line / 16) * leading` |
//!
//! The swizzle is an exclusive-or of bits of the address, which a layout describes by the same exclusive-or of offsets, so that only
//! offsets before the swizzle have to be compared. Leading and stride offset are read off the layout; then the place of
//! each piece of each tile is compared with the formula. A tile may begin anywhere on 16 bytes.

use super::build::{address, flat_view};
use super::context::Context;
use super::multiples::{is_multiple, quotient};
use super::operands::bits;
use super::places::Places;
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{Buffer, BufferRegion, DType, Expr, Stmt, Var};
use crate::layout::axes::MEMORY;
use crate::source::Span;

/// Bits of a piece.
pub(super) const PIECE: i128 = 128;

/// A matrix in shared memory: rows and k, whichever order they have in the region.
pub(super) struct SharedMatrix {
    pub(super) buffer: Buffer,
    /// Bits of an element.
    pub(super) bits: i128,
    /// 0: no swizzle; 1, 2, 3: lines of 32, 64, 128 bytes.
    pub(super) swizzle: i128,
    /// Places of rows and of k, in bits, from the first element.
    pub(super) rows: Vec<i128>,
    pub(super) k: Vec<i128>,
    /// The first element's offset from the buffer's data, in elements.
    start: Expr,
}

/// How the tiles of a matrix are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// MN-major.
    pub(super) by_rows: bool,
    /// In units of 16 bytes.
    pub(super) leading: i128,
    pub(super) stride: i128,
    pub(super) swizzle: i128,
}

impl SharedMatrix {
    /// The matrix of a region with two dimensions of more than one coordinate: rows and k, or k and rows
    /// (`transposed`).
    pub(super) fn from_region(
        region: &BufferRegion,
        transposed: bool,
        cx: &mut Context<'_>,
    ) -> Result<SharedMatrix, String> {
        let name = &region.buffer.name;
        let places = Places::from_region(region, cx)?;
        let [first, second] = &places.tables(MEMORY)[..] else {
            return Err(format!(
                "the region of {name} has {} dimensions, and a matrix has two",
                places.extents.len()
            ));
        };
        let (rows, k) = if transposed {
            (second, first)
        } else {
            (first, second)
        };
        SharedMatrix::from_tables(region, &places, rows.clone(), k.clone())
    }

    /// The matrix of a region whose rows and k have these places, in elements.
    pub(super) fn from_tables(
        region: &BufferRegion,
        places: &Places,
        mut rows: Vec<i128>,
        mut k: Vec<i128>,
    ) -> Result<SharedMatrix, String> {
        let buffer = &region.buffer;
        let name = &buffer.name;
        if !buffer.scope().starts_with("shared") {
            return Err(format!(
                "{name} is in {} memory, not in shared memory",
                buffer.scope()
            ));
        }
        if places.axes().any(|a| !a.is_memory()) {
            return Err(format!("{name} is spread over threads"));
        }
        let bits = bits(buffer.dtype);
        let swizzle = match places.swizzle {
            None => 0,
            Some(s) => {
                let piece = (PIECE / bits).trailing_zeros();
                let known = s.per_element == piece && s.atom_len == 3 && s.inner;
                if !known || s.swizzle_len > 3 {
                    return Err(format!(
                        "the swizzle of {name} is not one of tensor cores: they exchange pieces of 16 bytes \
                         (per_element={piece}, atom_len=3, swizzle_inner=True, swizzle_len up to 3), found \
                         per_element={}, atom_len={}, swizzle_inner={}, swizzle_len={}",
                        s.per_element,
                        s.atom_len,
                        if s.inner { "True" } else { "False" },
                        s.swizzle_len
                    ));
                }
                i128::from(s.swizzle_len)
            }
        };
        rows.iter_mut().chain(&mut k).for_each(|place| *place *= bits);
        Ok(SharedMatrix {
            bits,
            swizzle,
            rows,
            k,
            start: places.first(MEMORY),
            buffer: buffer.clone(),
        })
    }

    /// How tiles of `rows` × `k` elements are described, at each place where one begins.
    pub(super) fn walk(&self, rows: i128, k: i128) -> Result<Walk, String> {
        let name = &self.buffer.name;
        let next = |table: &[i128]| table.get(1).map(|second| second - table[0]);
        let by_rows = match (next(&self.k), next(&self.rows)) {
            (Some(step), _) if step == self.bits => false,
            (_, Some(step)) if step == self.bits => true,
            _ => {
                return Err(format!(
                    "neither rows nor columns of {name} are contiguous in shared memory"
                ));
            }
        };
        let line = PIECE << self.swizzle;
        let piece = PIECE / self.bits;
        // The distances that the descriptor gives, where the tile has elements that far.
        let at = |table: &[i128], i: i128, tile: i128| {
            let i = usize::try_from(i).ok().filter(|_| i < tile);
            i.and_then(|i| table.get(i)).map(|place| place - table[0])
        };
        let (leading, stride) = match (by_rows, self.swizzle) {
            (false, 0) => (at(&self.k, piece, k), at(&self.rows, 8, rows)),
            (false, _) => (Some(PIECE), at(&self.rows, 8, rows)),
            (true, 0) => (at(&self.k, 8, k), at(&self.rows, piece, rows)),
            (true, _) => (at(&self.rows, line / self.bits, rows), at(&self.k, 8, k)),
        };
        let walk = Walk {
            by_rows,
            leading: leading.unwrap_or(0) / PIECE,
            stride: stride.unwrap_or(0) / PIECE,
            swizzle: self.swizzle,
        };
        let (leading, stride) = (walk.leading * PIECE, walk.stride * PIECE);
        let along = |i: i128| {
            let (at, within) = (i / piece, i % piece * self.bits);
            let place = match (by_rows, self.swizzle) {
                (false, 0) => at * leading,
                (true, 0) => at * stride,
                (false, _) => at * PIECE,
                (true, _) => at * PIECE % line + at * PIECE / line * leading,
            };
            place + within
        };
        let across = |i: i128| {
            let outer = if by_rows && self.swizzle == 0 {
                leading
            } else {
                stride
            };
            i % 8 * line + i / 8 * outer
        };
        let (long, long_tile, short, short_tile) = if by_rows {
            (&self.rows, rows, &self.k, k)
        } else {
            (&self.k, k, &self.rows, rows)
        };
        let fits = follows(long, long_tile, &along) && follows(short, short_tile, &across);
        let beyond = !by_rows && self.swizzle != 0 && along(k - 1) >= line;
        let aligned = |table: &[i128], tile: i128| {
            table
                .iter()
                .step_by(tile as usize)
                .all(|place| place % PIECE == 0)
        };
        if !fits || beyond || !aligned(&self.rows, rows) || !aligned(&self.k, k) {
            return Err(format!(
                "the layout of {name} is not one that a matrix descriptor describes, for tiles of {rows} rows and {k} \
                 columns; T.SMEMPool().alloc_tcgen05_mma_AB or mma_shared_layout gives one"
            ));
        }
        Ok(walk)
    }

    /// Whether the buffer and the region lie as a descriptor needs them: the buffer at the period of its swizzle, the
    /// region on 16 bytes.
    pub(super) fn aligned(&self, cx: &mut Context<'_>) -> Result<(), String> {
        let name = &self.buffer.name;
        let period = (8 * PIECE) << self.swizzle;
        let mut divides = |e: &Expr, bits: i128| is_multiple(e, (bits / self.bits).max(1), cx.facts);
        if let Some(offset) = &self.buffer.elem_offset
            && !divides(offset, if self.swizzle == 0 { PIECE } else { period })
        {
            return Err(format!(
                "{name} is not known to begin at a multiple of {} bytes, the period of its swizzle",
                period / 8
            ));
        }
        if !divides(&self.start, PIECE) {
            return Err(format!("the region of {name} is not known to begin on 16 bytes"));
        }
        Ok(())
    }

    /// The region's offset from the buffer's data, in units of 16 bytes.
    pub(super) fn start_pieces(&self, cx: &mut Context<'_>) -> Expr {
        quotient(&self.start, PIECE / self.bits, cx.facts)
    }
}

/// Whether each tile of a table follows `place`, relative to its first element.
fn follows(table: &[i128], tile: i128, place: &impl Fn(i128) -> i128) -> bool {
    let Ok(tile) = usize::try_from(tile) else {
        return false;
    };
    if tile == 0 || !table.len().is_multiple_of(tile) {
        return false;
    }
    let expected: Vec<i128> = (0..tile as i128).map(place).collect();
    table.chunks(tile).all(|chunk| {
        let mut pairs = chunk.iter().zip(&expected);
        pairs.all(|(actual, expected)| actual - chunk[0] == *expected)
    })
}

/// A descriptor in a variable of 32 bits, its lower half, with the upper half a constant.
pub(super) struct Descriptor {
    low: Var,
    high: i128,
}

impl Descriptor {
    /// The descriptor of a buffer's data; the statements that declare the variable.
    pub(super) fn new(matrix: &SharedMatrix, walk: Walk, start: Expr, span: Span) -> (Descriptor, Vec<Stmt>) {
        let buffer = &matrix.buffer;
        let (flat, declare) = flat_view(buffer, span);
        let pointer = address(&flat, vec![Expr::int32(0)], span);
        let place = Expr::call(Op::CudaCvtaGenericToShared, DType::UINT32, vec![pointer]).at(span);
        let word = |v: i128| Expr::constant(DType::UINT32, v);
        let pieces = Expr::call(Op::ShiftRight, DType::UINT32, vec![place, word(4)]);
        let pieces = Expr::call(Op::BitwiseAnd, DType::UINT32, vec![pieces, word(0x3fff)]);
        let mut low = fold::add(pieces, word((walk.leading & 0x3fff) << 16));
        if !start.is_int(0) {
            low = fold::add(low, unsigned(start));
        }
        let var = Var::at(format!("{}_desc", buffer.name), DType::UINT32, span);
        // The layout type of tcgen05: 6, 4, 2 for lines of 32, 64, 128 bytes.
        let layout = [0, 6, 4, 2][walk.swizzle.clamp(0, 3) as usize];
        let descriptor = Descriptor {
            low: var.clone(),
            high: (walk.stride & 0x3fff) | 1 << 14 | layout << 29,
        };
        (descriptor, vec![declare, Stmt::bind(&var, low.at(span), span)])
    }

    /// The descriptor of what begins `pieces` units of 16 bytes further on.
    pub(super) fn moved(&self, pieces: &Expr) -> Expr {
        let wide = |v: i128| Expr::constant(DType::UINT64, v);
        let mut low = Expr::var(&self.low);
        if !pieces.is_int(0) {
            low = fold::add(low, unsigned(pieces.clone()));
        }
        let low = low.cast(DType::UINT64);
        Expr::call(Op::BitwiseOr, DType::UINT64, vec![low, wide(self.high << 32)])
    }
}

fn unsigned(e: Expr) -> Expr {
    match e.as_int() {
        Some(value) => Expr::constant(DType::UINT32, value),
        None => e.cast(DType::UINT32),
    }
}
