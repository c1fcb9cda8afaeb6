//! Which bytes does `ldmatrix` or `stmatrix` move between which lanes?
//!
//! A matrix has rows of 16 bytes. Lane `8 m + r` gives the address of row `r` of matrix `m`; with fewer than four
//! matrices the other lanes' addresses are ignored.

/// A shape of `ldmatrix` and `stmatrix`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowShape {
    /// 8×8 elements of 16 bits.
    M8n8,
    /// 16×16 elements of 8 bits, transposed (`ldmatrix`); 16×8 ones (`stmatrix`).
    Bytes16,
}

/// A move between rows in shared memory and registers of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMove {
    pub shape: RowShape,
    /// `.x1`, `.x2`, `.x4`.
    pub matrices: usize,
    pub transposed: bool,
    pub store: bool,
}

impl RowMove {
    /// Rows of 16 bytes: each at the address of the lane of its number.
    pub fn rows(&self) -> usize {
        match (self.shape, self.store) {
            (RowShape::M8n8, _) | (RowShape::Bytes16, true) => self.matrices * 8,
            (RowShape::Bytes16, false) => self.matrices * 16,
        }
    }

    /// 32-bit registers a lane.
    pub fn registers(&self) -> usize {
        match (self.shape, self.store) {
            (RowShape::M8n8, _) | (RowShape::Bytes16, true) => self.matrices,
            (RowShape::Bytes16, false) => self.matrices * 2,
        }
    }

    /// The row and the byte in it that a byte of a lane's register is, and goes to.
    pub fn place(&self, lane: usize, register: usize, byte: usize) -> (usize, usize) {
        let (group, member) = (lane / 4, lane % 4);
        match self.shape {
            RowShape::M8n8 if !self.transposed => (register * 8 + group, member * 4 + byte),
            RowShape::M8n8 => (register * 8 + member * 2 + byte / 2, group * 2 + byte % 2),
            // A column of the matrix is a row of the fragment: four neighbours of it in a register.
            RowShape::Bytes16 if !self.store => {
                let (matrix, half) = (register / 2, register % 2);
                (matrix * 16 + member * 4 + byte, group + half * 8)
            }
            // 16×8, transposed: eight columns of 16 bytes.
            RowShape::Bytes16 => (register * 8 + member * 2 + byte % 2, group + byte / 2 * 8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_moves_once() {
        for shape in [RowShape::M8n8, RowShape::Bytes16] {
            for matrices in [1, 2, 4] {
                for transposed in [false, true] {
                    for store in [false, true] {
                        let it = RowMove {
                            shape,
                            matrices,
                            transposed,
                            store,
                        };
                        let mut seen = vec![0; it.rows() * 16];
                        for lane in 0..32 {
                            for r in 0..it.registers() {
                                for b in 0..4 {
                                    let (row, byte) = it.place(lane, r, b);
                                    seen[row * 16 + byte] += 1;
                                }
                            }
                        }
                        assert!(seen.iter().all(|n| *n == 1), "{it:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_lane_holds_two_neighbours_or_two_of_a_column() {
        let mut it = RowMove {
            shape: RowShape::M8n8,
            matrices: 4,
            transposed: false,
            store: false,
        };
        assert_eq!(it.place(9, 2, 0), (16 + 2, 4));
        it.transposed = true;
        assert_eq!(it.place(9, 2, 0), (16 + 2, 4));
        assert_eq!(it.place(9, 2, 2), (16 + 3, 4));
        assert_eq!(it.place(10, 0, 0), (4, 4));
    }
}
