//! Which bytes of shared memory does a matrix descriptor name (`wgmma`, `tcgen05`)?
//!
//! An operand is read in pieces of 16 bytes. For a K-major operand a piece holds consecutive k of one row (of M or N),
//! for an MN-major one consecutive rows of one k. Pieces form atoms of eight lines; a line is as long as the swizzle's
//! span (16, 32, 64 or 128 bytes). With the descriptor's leading (LBO) and stride (SBO) byte offsets a piece is at
//!
//! | major | swizzle | offset of the piece |
//! |---|---|---|
//! | K | none | `row % 8 * 16 + row / 8 * SBO + piece * LBO` |
//! | K | span | `row % 8 * span + row / 8 * SBO + piece * 16` |
//! | MN | none | `k % 8 * 16 + k / 8 * LBO + piece * SBO` |
//! | MN | span | `k % 8 * span + k / 8 * SBO + piece % (span / 16) * 16 + piece / (span / 16) * LBO` |
//!
//! from the start address; then the address's bits from 4 on are exchanged by those from 7 on, as TMA does when it
//! writes. (PTX ISA, "Strides", "Matrix descriptor format"; the same canonical layouts stand in CUTLASS.)

use super::Outcome;
use super::format::Format;
use super::matrix::Matrix;

/// Bytes of a piece.
pub const PIECE: usize = 16;

/// How the pieces of a line are permuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    None,
    Bytes32,
    Bytes64,
    Bytes128,
    /// 128 bytes in units of 32 (sm_100).
    Bytes128Base32,
}

impl Swizzle {
    /// Bytes after which the pattern repeats.
    pub(crate) fn repeat(self) -> u32 {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 256,
            Swizzle::Bytes64 => 512,
            Swizzle::Bytes128 | Swizzle::Bytes128Base32 => 1024,
        }
    }

    /// Bytes of a line.
    pub fn span(self) -> usize {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 | Swizzle::Bytes128Base32 => 128,
        }
    }

    /// Bytes of a line, empty without swizzle: for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Swizzle::None => "",
            Swizzle::Bytes32 => "32",
            Swizzle::Bytes64 => "64",
            Swizzle::Bytes128 => "128",
            Swizzle::Bytes128Base32 => "128 (in units of 32)",
        }
    }

    /// Where the byte of an address is, in a pattern that starts `base` lines of 128 bytes after a multiple of 1024.
    pub fn place(self, address: u32, base: u32) -> u32 {
        let line = (address >> 7).wrapping_sub(base);
        match self {
            Swizzle::None => address,
            Swizzle::Bytes32 => address ^ (line & 1) << 4,
            Swizzle::Bytes64 => address ^ (line & 3) << 4,
            Swizzle::Bytes128 => address ^ (line & 7) << 4,
            Swizzle::Bytes128Base32 => address ^ (line & 3) << 5,
        }
    }
}

/// A matrix in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Byte address in shared memory.
    pub start: u32,
    pub leading: u32,
    pub stride: u32,
    /// Lines of 128 bytes by which the swizzle's pattern is shifted.
    pub base: u32,
    pub swizzle: Swizzle,
}

impl Descriptor {
    /// The alignment that the array must be declared with: where the descriptor shifts the pattern, that of a line.
    pub(crate) fn alignment(&self) -> u32 {
        match self.base {
            0 => self.swizzle.repeat(),
            _ => 128,
        }
    }

    /// Of sm_90 (`wgmma`): 14 bits each of start, leading and stride offset in units of 16 bytes, three of the base
    /// offset, two of the swizzle mode.
    pub fn of_sm90(bits: u64) -> Descriptor {
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        Descriptor::fields(bits, swizzle)
    }

    /// Of sm_100 (`tcgen05`): the same with a version and a mode of three bits.
    pub fn of_sm100(bits: u64) -> Outcome<Descriptor> {
        let swizzle = match bits >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128Base32,
            2 => Swizzle::Bytes128,
            4 => Swizzle::Bytes64,
            6 => Swizzle::Bytes32,
            mode => {
                return Err(format!(
                    "the matrix descriptor {bits:#018x} has the layout type {mode}; 0 is no swizzle, 1 128B with 32B \
                     atomicity, 2 128B, 4 64B, 6 32B"
                ));
            }
        };
        if bits >> 46 & 7 != 1 {
            return Err(format!(
                "the matrix descriptor {bits:#018x} has {:#05b} in bits 46 to 48, but tcgen05 expects 0b001: it was \
                 not made by tcgen05.encode_matrix_descriptor",
                bits >> 46 & 7
            ));
        }
        if bits >> 52 & 1 != 0 {
            return Err(format!(
                "the matrix descriptor {bits:#018x} has an absolute leading dimension address (bit 52), which the \
                 simulator does not follow"
            ));
        }
        Ok(Descriptor::fields(bits, swizzle))
    }

    fn fields(bits: u64, swizzle: Swizzle) -> Descriptor {
        let field = |at: u32| (bits >> at & 0x3fff) as u32 * 16;
        Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: (bits >> 49 & 7) as u32,
            swizzle,
        }
    }

    /// Addresses of the pieces of a K-major operand: of each row its pieces, in ascending k.
    pub fn pieces_by_k(&self, rows: usize, pieces: usize) -> Vec<u32> {
        let span = self.swizzle.span() as u32;
        let mut out = Vec::with_capacity(rows * pieces);
        for row in 0..rows as u32 {
            for piece in 0..pieces as u32 {
                let along = if self.swizzle == Swizzle::None {
                    piece * self.leading
                } else {
                    // Beyond a line the next atom goes on, one leading offset on.
                    piece % (span / 16) * 16 + piece / (span / 16) * self.leading
                };
                out.push(self.place(row % 8 * span + row / 8 * self.stride + along));
            }
        }
        out
    }

    /// Addresses of the pieces of an MN-major operand: of each k its pieces, in ascending row.
    pub fn pieces_by_row(&self, k: usize, pieces: usize) -> Vec<u32> {
        let span = self.swizzle.span() as u32;
        let per = span / 16;
        let lines = if self.swizzle == Swizzle::Bytes128Base32 {
            4
        } else {
            8
        };
        let mut out = Vec::with_capacity(k * pieces);
        for k in 0..k as u32 {
            for piece in 0..pieces as u32 {
                let offset = if self.swizzle == Swizzle::None {
                    k % 8 * 16 + k / 8 * self.leading + piece * self.stride
                } else {
                    k % lines * span + k / lines * self.stride + piece % per * 16 + piece / per * self.leading
                };
                out.push(self.place(offset));
            }
        }
        out
    }

    fn place(&self, offset: u32) -> u32 {
        self.swizzle.place(self.start.wrapping_add(offset), self.base)
    }
}

/// The layout of an operand in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Of M for A, of N for B.
    pub rows: usize,
    pub k: usize,
    pub format: Format,
    /// Elements in a piece, and bits from one to the next: 16 elements of eight bits or less also where formats of
    /// six or four bits are padded (`f8f6f4`).
    pub per_piece: usize,
    pub pitch: u32,
    /// MN-major.
    pub by_rows: bool,
}

impl Operand {
    /// An operand whose elements fill their pieces.
    pub fn packed(rows: usize, k: usize, format: Format, by_rows: bool) -> Operand {
        Operand {
            rows,
            k,
            format,
            per_piece: 128 / format.bits() as usize,
            pitch: format.bits(),
            by_rows,
        }
    }

    /// Pieces along a line.
    pub fn along(&self) -> usize {
        match self.by_rows {
            true => self.rows.div_ceil(self.per_piece),
            false => self.k.div_ceil(self.per_piece),
        }
    }

    /// Addresses of its pieces, in the order in which `matrix` takes their bytes.
    pub fn pieces(&self, descriptor: &Descriptor) -> Vec<u32> {
        if self.by_rows {
            descriptor.pieces_by_row(self.k, self.along())
        } else {
            descriptor.pieces_by_k(self.rows, self.along())
        }
    }

    /// Row, column of k, piece and bit of the piece of each element.
    pub fn elements(&self) -> impl Iterator<Item = (usize, usize, usize, u64)> + use<> {
        let it = *self;
        let (lines, long) = match it.by_rows {
            true => (it.k, it.rows),
            false => (it.rows, it.k),
        };
        let along = it.along();
        (0..lines).flat_map(move |line| {
            (0..long).map(move |at| {
                let (row, k) = if it.by_rows { (at, line) } else { (line, at) };
                let piece = line * along + at / it.per_piece;
                (row, k, piece, (at % it.per_piece) as u64 * u64::from(it.pitch))
            })
        })
    }

    /// The matrix of the bytes of its pieces, one row of `rows` after the other.
    pub fn matrix(&self, bytes: &[u8]) -> Matrix {
        let decoder = self.format.decoder();
        let lines = if self.by_rows { self.k } else { self.rows };
        let long = if self.by_rows { self.rows } else { self.k };
        let pieces = long.div_ceil(self.per_piece);
        let mut values = Vec::with_capacity(lines * long);
        for line in bytes.chunks(pieces * PIECE) {
            let mut left = long;
            for piece in line.chunks(PIECE) {
                let count = left.min(self.per_piece);
                decoder.unpack(piece, self.pitch, count, &mut values);
                left -= count;
            }
        }
        values.resize(lines * long, 0.0);
        let matrix = Matrix {
            rows: lines,
            cols: long,
            values,
        };
        if self.by_rows { matrix.transposed() } else { matrix }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sm90(start: u64, leading: u64, stride: u64, mode: u64) -> Descriptor {
        Descriptor::of_sm90(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62)
    }

    #[test]
    fn fields_of_descriptors() {
        let it = sm90(0x2400, 256, 1024, 1);
        assert_eq!((it.start, it.leading, it.stride, it.base), (0x2400, 256, 1024, 0));
        assert_eq!(it.swizzle, Swizzle::Bytes128);
        let bits = 0x240u64 | 1 << 16 | 64 << 32 | 1 << 46 | 3 << 49 | 2 << 61;
        let it = Descriptor::of_sm100(bits).unwrap();
        assert_eq!((it.start, it.leading, it.stride, it.base), (0x2400, 16, 1024, 3));
        assert_eq!(it.swizzle, Swizzle::Bytes128);
        assert!(
            Descriptor::of_sm100(bits & !(7 << 46))
                .unwrap_err()
                .contains("0b001")
        );
        assert!(Descriptor::of_sm100(bits | 1 << 61).is_err());
    }

    /// A tile of 128-byte rows that TMA wrote with swizzle: logical (row, byte) is at this address.
    fn tma_place(row: u32, byte: u32) -> u32 {
        let line = row * 128 + byte / 16 * 16;
        line ^ (row & 7) << 4
    }

    #[test]
    fn swizzled_rows_are_where_tma_puts_them() {
        // The second k step of 32 bytes starts 32 bytes further in the same tile.
        for step in 0..4 {
            let it = sm90(4096 + step * 32, 16, 1024, 1);
            let pieces = it.pieces_by_k(64, 2);
            for row in 0..64 {
                for piece in 0..2 {
                    let expected = 4096 + tma_place(row, step as u32 * 32 + piece * 16);
                    assert_eq!(pieces[(row * 2 + piece) as usize], expected);
                }
            }
        }
    }

    #[test]
    fn pieces_of_all_layouts_are_different() {
        for (mode, span) in [(0, 16), (3, 32), (2, 64), (1, 128)] {
            // K-major, 64 rows of 32 bytes.
            let (leading, stride) = if mode == 0 { (128, 256) } else { (16, span * 8) };
            let it = sm90(1024, leading, stride, mode);
            let mut pieces = it.pieces_by_k(64, 2);
            pieces.sort_unstable();
            pieces.dedup();
            assert_eq!(pieces.len(), 128);
            // MN-major, 64 rows of 16 bits (eight pieces) and 16 k.
            let per = span / 16;
            let (leading, stride) = if mode == 0 {
                (8 * 128, 128)
            } else {
                (span * 16, span * 8)
            };
            let it = sm90(1024, leading, stride, mode);
            let mut pieces = it.pieces_by_row(16, 8);
            pieces.sort_unstable();
            pieces.dedup();
            assert_eq!(pieces.len(), 128, "{mode} {per}");
            assert_eq!(pieces[0], 1024);
            assert_eq!(pieces[127], 1024 + 127 * 16);
        }
    }

    #[test]
    fn both_majors_give_the_same_matrix() {
        let value = |row: usize, k: usize| ((row * 5 + k * 3) % 11) as f32;
        for by_rows in [false, true] {
            let operand = Operand::packed(64, 16, Format::Bf16, by_rows);
            let it = if by_rows {
                sm90(0, 2048, 1024, 1)
            } else {
                sm90(0, 16, 256, 3)
            };
            let mut memory = vec![0u8; 4096];
            let pieces = operand.pieces(&it);
            for (i, address) in pieces.iter().enumerate() {
                for e in 0..8 {
                    let (line, along) = (i * 8 / 16, i * 8 % 16 + e);
                    let bits = if by_rows {
                        Format::Bf16.encode(value(i % 8 * 8 + e, i / 8))
                    } else {
                        Format::Bf16.encode(value(line, along))
                    };
                    let at = *address as usize + e * 2;
                    memory[at..at + 2].copy_from_slice(&(bits as u16).to_le_bytes());
                }
            }
            let bytes: Vec<u8> = pieces
                .iter()
                .flat_map(|a| memory[*a as usize..*a as usize + 16].to_vec())
                .collect();
            let matrix = operand.matrix(&bytes);
            for row in 0..64 {
                for k in 0..16 {
                    assert_eq!(matrix.at(row, k), value(row, k));
                }
            }
        }
    }
}
