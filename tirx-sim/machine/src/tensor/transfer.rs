//! Which cells does `tcgen05.ld`, `.st` or `.cp` move?
//!
//! `ld` and `st` move between the registers of a warp and 32 lanes of tensor memory, those of the warp's number in its
//! warpgroup. A shape is moved `num` times along the columns (PTX ISA, "Data movement shape"). `cp` copies rows of a
//! matrix in shared memory to lanes, for some shapes to several groups of 32 lanes at once.

use super::Outcome;
use super::descriptor::Descriptor;

/// A shape of `tcgen05.ld` and `.st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// `.32x32b`
    L32x32,
    /// `.16x64b`
    L16x64,
    /// `.16x128b`
    L16x128,
    /// `.16x256b`
    L16x256,
    /// `.16x32bx2`: the second half of the warp reads columns further on.
    L16x32x2,
}

/// A `tcgen05.ld` or `.st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub shape: Lanes,
    pub num: usize,
    /// Two columns' lower halves in one register (`.pack::16b`, `.unpack::16b`).
    pub packed: bool,
    /// Columns from the first half of `.16x32bx2` to the second.
    pub half_offset: usize,
}

impl Transfer {
    pub fn new(shape: &str, num: usize, packed: bool) -> Outcome<Transfer> {
        let (shape, most) = match shape.trim_start_matches('.') {
            "32x32b" => (Lanes::L32x32, 128),
            "16x64b" => (Lanes::L16x64, 128),
            "16x128b" => (Lanes::L16x128, 64),
            "16x256b" => (Lanes::L16x256, 32),
            "16x32bx2" => (Lanes::L16x32x2, 128),
            other => return Err(format!("tcgen05.ld and .st have no shape {other:?}")),
        };
        if !num.is_power_of_two() || num > most {
            return Err(format!(
                "tcgen05.ld and .st are repeated a power of two up to {most} times, not {num} times"
            ));
        }
        Ok(Transfer {
            shape,
            num,
            packed,
            half_offset: num * if packed { 2 } else { 1 },
        })
    }

    /// Registers of a thread.
    pub fn registers(&self) -> usize {
        self.num
            * match self.shape {
                Lanes::L32x32 | Lanes::L16x64 | Lanes::L16x32x2 => 1,
                Lanes::L16x128 => 2,
                Lanes::L16x256 => 4,
            }
    }

    /// Lanes of tensor memory it covers: 32 or 16.
    pub fn lanes(&self) -> u32 {
        if self.shape == Lanes::L32x32 { 32 } else { 16 }
    }

    /// Lane and column of a thread's register, relative to the address. With packing a register is the lower
    /// halves of this column (doubled) and the next.
    pub fn place(&self, lane: usize, register: usize) -> (usize, usize) {
        let (row, column) = match self.shape {
            Lanes::L32x32 => (lane, register),
            Lanes::L16x64 => (lane / 4 + lane % 2 * 8, lane / 2 % 2 + register * 2),
            Lanes::L16x128 => (lane / 4 + register % 2 * 8, lane % 4 + register / 2 * 4),
            Lanes::L16x256 => (
                lane / 4 + register / 2 % 2 * 8,
                lane % 4 * 2 + register % 2 + register / 4 * 8,
            ),
            Lanes::L16x32x2 => {
                let scale = if self.packed { 2 } else { 1 };
                return (lane % 16, register * scale + lane / 16 * self.half_offset);
            }
        };
        (row, if self.packed { column * 2 } else { column })
    }

    /// The first lane that a warp accesses, of an address that names `lane`: one of its own quarter, or one of the first quarter,
    /// which stands for its own. (PTX describes the former; the tensor core takes the quarter from the warp, and kernels
    /// such as those of DeepGEMM and FlashMLA give all warps one address.)
    pub fn first_lane(&self, warp: usize, lane: u32) -> Outcome<u32> {
        let first = (warp % 4) as u32 * 32;
        let own = if lane < 32 { first + lane } else { lane };
        let ends = own + self.lanes();
        if (first..first + 32).contains(&own) && ends <= first + 32 && own.is_multiple_of(16) {
            return Ok(own);
        }
        Err(format!(
            "lanes {lane} to {} of tensor memory, but warp {warp} may access lanes {first} to {} (those of its number \
             in the warpgroup)",
            lane + self.lanes() - 1,
            first + 31
        ))
    }
}

/// How `tcgen05.cp` expands what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expand {
    No,
    /// `.b8x16.b4x16_p64`: sixteen elements of four bits in eight bytes, then eight bytes of padding.
    FourBits,
    /// `.b8x16.b6x16_p32`: sixteen elements of six bits in twelve bytes, then four bytes of padding.
    SixBits,
}

/// A `tcgen05.cp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Rows of the source.
    pub rows: usize,
    /// Bits of a row.
    pub bits: usize,
    /// First lanes of the groups to which the source goes, and how many rows of it: (lane, first row, rows).
    targets: &'static [(usize, usize, usize)],
    pub expand: Expand,
}

/// Shape, multicast qualifier, rows, bits of a row, and targets.
type Row = (
    &'static str,
    &'static str,
    usize,
    usize,
    &'static [(usize, usize, usize)],
);

/// Shapes of `tcgen05.cp` with their multicast qualifier.
const COPIES: &[Row] = &[
    ("128x256b", "", 128, 256, &[(0, 0, 128)]),
    (
        "4x256b",
        "",
        4,
        256,
        &[(0, 0, 1), (32, 1, 1), (64, 2, 1), (96, 3, 1)],
    ),
    ("128x128b", "", 128, 128, &[(0, 0, 128)]),
    (
        "64x128b",
        "warpx2::02_13",
        64,
        128,
        &[(0, 0, 32), (64, 0, 32), (32, 32, 32), (96, 32, 32)],
    ),
    (
        "64x128b",
        "warpx2::01_23",
        64,
        128,
        &[(0, 0, 32), (32, 0, 32), (64, 32, 32), (96, 32, 32)],
    ),
    (
        "32x128b",
        "warpx4",
        32,
        128,
        &[(0, 0, 32), (32, 0, 32), (64, 0, 32), (96, 0, 32)],
    ),
];

impl Copy {
    pub fn new(shape: &str, multicast: &str, decompress: &str) -> Outcome<Copy> {
        let (shape, multicast) = (shape.trim_start_matches('.'), multicast.trim_start_matches('.'));
        let found = COPIES.iter().find(|c| c.0 == shape && c.1 == multicast);
        let Some((_, _, rows, bits, targets)) = found else {
            let all: Vec<String> = COPIES
                .iter()
                .map(|c| format!("{}{}{}", c.0, if c.1.is_empty() { "" } else { "." }, c.1))
                .collect();
            return Err(format!(
                "tcgen05.cp has no shape {shape} with multicast {multicast:?}; there are {}",
                all.join(", ")
            ));
        };
        let expand = match decompress.trim_start_matches('.') {
            "" => Expand::No,
            "b8x16.b4x16_p64" => Expand::FourBits,
            "b8x16.b6x16_p32" => Expand::SixBits,
            other => return Err(format!("tcgen05.cp has no decompression {other:?}")),
        };
        Ok(Copy {
            rows: *rows,
            bits: *bits,
            targets,
            expand,
        })
    }

    /// Addresses of the pieces of 16 bytes that it reads: of each row its pieces.
    pub fn pieces(&self, descriptor: &Descriptor) -> Vec<u32> {
        descriptor.pieces_by_k(self.rows, self.bits / 128)
    }

    /// The words of a piece of 16 bytes as tensor memory holds them.
    pub fn expand(&self, piece: &[u8]) -> [u32; 4] {
        let bits = match self.expand {
            Expand::No => 8,
            Expand::SixBits => 6,
            Expand::FourBits => 4,
        };
        let element = |i: usize| {
            let at = i * bits;
            let byte = |n: usize| u32::from(piece.get(at / 8 + n).copied().unwrap_or(0));
            (byte(0) | byte(1) << 8) >> (at % 8) & ((1 << bits) - 1)
        };
        std::array::from_fn(|w| (0..4).map(|i| element(w * 4 + i) << (8 * i)).sum())
    }

    /// The lanes that a row of the source goes to.
    pub fn lanes_of(&self, row: usize) -> impl Iterator<Item = usize> + use<> {
        self.targets
            .iter()
            .filter(move |(_, first, rows)| (*first..first + rows).contains(&row))
            .map(move |(lane, first, _)| lane + row - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_moves_once() {
        for (shape, bits, most) in [
            ("32x32b", 32, 128),
            ("16x64b", 64, 128),
            ("16x128b", 128, 64),
            ("16x256b", 256, 32),
        ] {
            for num in [1, 2, most] {
                let it = Transfer::new(shape, num, false).unwrap();
                let columns = bits / 32 * num;
                let mut seen = vec![0; it.lanes() as usize * columns];
                for lane in 0..32 {
                    for r in 0..it.registers() {
                        let (row, column) = it.place(lane, r);
                        seen[row * columns + column] += 1;
                    }
                }
                assert!(seen.iter().all(|n| *n == 1), "{shape} {num}");
            }
        }
        let it = Transfer::new("16x32bx2", 4, false).unwrap();
        assert_eq!(it.place(3, 2), (3, 2));
        assert_eq!(it.place(19, 2), (3, 6));
        let it = Transfer::new("16x64b", 2, false).unwrap();
        assert_eq!(it.place(5, 1), (9, 2));
        assert_eq!(it.place(6, 1), (1, 3));
        let it = Transfer::new("32x32b", 2, true).unwrap();
        assert_eq!(it.place(7, 1), (7, 2));
        assert!(Transfer::new("16x256b", 64, false).is_err());
    }

    #[test]
    fn a_warp_has_lanes_of_its_own() {
        let it = Transfer::new("16x64b", 1, false).unwrap();
        assert_eq!(it.first_lane(5, 48), Ok(48));
        assert_eq!(it.first_lane(5, 16), Ok(48));
        assert!(it.first_lane(5, 64).unwrap_err().contains("lanes 32 to 63"));
        let it = Transfer::new("32x32b", 1, false).unwrap();
        assert_eq!(it.first_lane(1, 0), Ok(32));
        assert!(it.first_lane(1, 48).is_err());
    }

    #[test]
    fn copies_reach_groups_of_lanes() {
        let it = Copy::new("32x128b", "warpx4", "").unwrap();
        let lanes: Vec<usize> = it.lanes_of(5).collect();
        assert_eq!(lanes, [5, 37, 69, 101]);
        let it = Copy::new("64x128b", "warpx2::02_13", "").unwrap();
        assert_eq!(it.lanes_of(33).collect::<Vec<_>>(), [33, 97]);
        assert!(Copy::new("32x128b", "", "").is_err());
        let it = Copy::new("128x128b", "", "b8x16.b4x16_p64").unwrap();
        let piece = [0x21, 0x43, 0x65, 0x87, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9];
        assert_eq!(it.expand(&piece)[..2], [0x0403_0201, 0x0807_0605]);
        let it = Copy::new("128x128b", "", "").unwrap();
        assert_eq!(it.expand(&piece)[0], 0x8765_4321);
    }
}
