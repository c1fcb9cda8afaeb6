//! What does `tcgen05.mma` compute, and in which cells?
//!
//! The instruction descriptor (32 bits, PTX ISA "Instruction descriptor") says formats and extents. With
//! `cta_group::2` two blocks each hold half of A's and of B's rows in their shared memory and half of D in their tensor
//! memory. Where D lies (PTX ISA "Data path layout organization"), for each block's own rows:
//!
//! | layout | for | lane | column |
//! |---|---|---|---|
//! | A, D | M = 256 of two blocks, 128 of one | row | column |
//! | B | M = 128 of two blocks | row + 64 in the right half | column % (N / 2) |
//! | C | M = 128 of two blocks, sparse | row / 16 · 32 + row % 16 | column |
//! | E | M = 64, weight stationary | row + 64 in the right half | column % (N / 2) |
//! | F | M = 64 | row / 16 · 32 + row % 16 | column |
//! | G | M = 32, weight stationary | row + 32 · quarter | column % (N / 4) |
//!
//! Of a sparse A the metadata lies in tensor memory, four bits a group, by rows where A has 8 bits or fewer (two columns of
//! a row's lane); with 16 and 32 bits a word holds the two rows `r` and `r + 8` in its halves, for the first half of k in
//! lane `r / 16 · 16 + r % 8`, for the second eight lanes further. The sparsity selector counts instructions: the next one's
//! metadata is in the columns after.
//!
//! Scale factors lie in 32 lanes, repeated in each of the four groups of 32: that of row `r` (of M or N) in lane `r %
//! 32`, column `r / 32`, one byte for each block of k.

use super::Outcome;
use super::descriptor::Operand;
use super::format::Format;
use super::matrix::{Accumulator, Matrix, Number, multiply};
use super::sparse::Sparsity;

/// A kind of `tcgen05.mma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

impl Kind {
    /// The kind whose operands have these dtypes.
    pub fn from_dtypes(d: &str, a: &str, b: &str, scale: Option<&str>) -> Outcome<Kind> {
        let formats = (Format::named(a), Format::named(b));
        let (Some(x), Some(y)) = formats else {
            return Err(format!("tcgen05.mma of {a} and {b}"));
        };
        let small = |f: Format| f.bits() <= 8 && !f.is_integer();
        let four = x == Format::E2m1 && y == Format::E2m1;
        match scale {
            None if x == Format::F16 && y == Format::F16 => Ok(Kind::F16),
            None if x.bits() == 16 && y.bits() == 16 && d != "float16" => Ok(Kind::F16),
            None if x == Format::Tf32 && y == Format::Tf32 => Ok(Kind::Tf32),
            None if x.is_integer() && y.is_integer() && x.bits() == 8 && y.bits() == 8 => Ok(Kind::I8),
            None if small(x) && small(y) => Ok(Kind::F8f6f4),
            Some(scale) if four && Format::named(scale) == Some(Format::Ue8m0) => Ok(Kind::Mxf4),
            Some(_) if four => Ok(Kind::Mxf4nvf4),
            Some(_) if small(x) && small(y) => Ok(Kind::Mxf8f6f4),
            _ => Err(format!("tcgen05.mma has no kind for {a} times {b} to {d}")),
        }
    }

    fn scaled(self) -> bool {
        matches!(self, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4)
    }

    /// Elements of k of a dense instruction.
    pub fn k(self) -> usize {
        match self {
            Kind::Tf32 => 8,
            Kind::F16 => 16,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 => 32,
            Kind::Mxf4 | Kind::Mxf4nvf4 => 64,
        }
    }

    fn format(self, code: u32) -> Option<Format> {
        Some(match (self, code) {
            (Kind::F16, 0) => Format::F16,
            (Kind::F16, 1) => Format::Bf16,
            (Kind::Tf32, 2) => Format::Tf32,
            (Kind::I8, 0) => Format::U8,
            (Kind::I8, 1) => Format::I8,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 0) => Format::E4m3,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 1) => Format::E5m2,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 3) => Format::E2m3,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 4) => Format::E3m2,
            (Kind::F8f6f4 | Kind::Mxf8f6f4, 5) => Format::E2m1,
            (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Format::E2m1,
            _ => return None,
        })
    }
}

/// Scale factors of a block-scaled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scales {
    pub format: Format,
    /// Blocks of k in an instruction (`scale_vec::1X`, `2X`, `4X`).
    pub blocks: usize,
    /// The byte of the first block, in the columns of A's and of B's factors.
    pub a_byte: usize,
    pub b_byte: usize,
}

/// A `tcgen05.mma` instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mma {
    pub kind: Kind,
    /// Of all its blocks together.
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Format,
    pub b: Format,
    pub d: Accumulator,
    pub turned_a: bool,
    pub turned_b: bool,
    pub negate_a: bool,
    pub negate_b: bool,
    /// The sparsity selector where A is sparse.
    pub sparse: Option<u32>,
    pub scales: Option<Scales>,
    /// Blocks that work together: `cta_group`.
    pub group: usize,
    pub weight_stationary: bool,
}

impl Mma {
    /// What an instruction descriptor says. `blocks` is the number of scale factors along k.
    pub fn decode(
        kind: Kind,
        descriptor: u32,
        group: usize,
        weight_stationary: bool,
        sparse: bool,
        blocks: usize,
    ) -> Outcome<Mma> {
        let field = |at: u32, bits: u32| descriptor >> at & ((1 << bits) - 1);
        let wrong = |what: String| {
            Err(format!(
                "the instruction descriptor {descriptor:#010x} of tcgen05.mma kind {kind:?} {what}"
            ))
        };
        if (field(2, 1) == 1) != sparse {
            return wrong(format!(
                "has the sparsity flag {}, and the instruction is {}",
                field(2, 1),
                if sparse { "sparse" } else { "dense" }
            ));
        }
        let formats = (kind.format(field(7, 3)), kind.format(field(10, 3)));
        let (Some(a), Some(b)) = formats else {
            return wrong(format!(
                "names the operand formats {} and {}, which the kind does not have",
                field(7, 3),
                field(10, 3)
            ));
        };
        let m = field(24, 5) as usize * 16;
        let n = field(17, 6) as usize * 8;
        let d = match (kind, field(4, 2)) {
            _ if kind.scaled() => Accumulator::F32,
            (Kind::F16 | Kind::F8f6f4, 0) => Accumulator::F16,
            (Kind::F16 | Kind::Tf32 | Kind::F8f6f4, 1) => Accumulator::F32,
            (Kind::I8, 2) => Accumulator::I32 {
                saturate: field(3, 1) == 1,
            },
            (_, code) => {
                return wrong(format!(
                    "names the accumulator format {code}, which the kind does not have"
                ));
            }
        };
        let rows: &[(usize, usize)] = match (group, weight_stationary, kind.scaled()) {
            (1, true, _) => &[(32, 64), (64, 64), (128, 64)],
            (1, false, true) => &[(128, 8)],
            (1, false, false) => &[(64, 8), (128, 16)],
            (2, _, true) => &[(128, 16), (256, 16)],
            _ => &[(128, 32), (256, 32)],
        };
        match rows.iter().find(|(rows, _)| *rows == m) {
            Some((_, step)) if n > 0 && n <= 256 && n.is_multiple_of(*step) => {}
            Some(_) if kind == Kind::I8 && group == 1 && (n == 8 || n == 24) => {}
            Some((_, step)) => {
                return wrong(format!(
                    "has N = {n}; with M = {m} and cta_group::{group} it is a multiple of {step} up to 256"
                ));
            }
            None => {
                let all: Vec<String> = rows.iter().map(|(m, _)| m.to_string()).collect();
                return wrong(format!(
                    "has M = {m}; with cta_group::{group} it is {}",
                    all.join(" or ")
                ));
            }
        }
        let scales = kind.scaled().then(|| Scales {
            format: if field(23, 1) == 1 {
                Format::Ue8m0
            } else {
                Format::Ue4m3
            },
            blocks,
            a_byte: field(29, 2) as usize,
            b_byte: field(4, 2) as usize,
        });
        if let Some(scales) = scales
            && (scales.a_byte.max(scales.b_byte) + blocks > 4)
        {
            return wrong(format!(
                "names the scale factors {} and {}, from which {blocks} do not fit in the four bytes of a column",
                scales.a_byte, scales.b_byte
            ));
        }
        Ok(Mma {
            kind,
            m,
            n,
            k: kind.k() * if sparse { 2 } else { 1 },
            a,
            b,
            d,
            turned_a: field(15, 1) == 1,
            turned_b: field(16, 1) == 1,
            negate_a: field(13, 1) == 1,
            negate_b: field(14, 1) == 1,
            sparse: sparse.then(|| field(0, 2)),
            scales,
            group,
            weight_stationary,
        })
    }

    /// The formats of A, B and D.
    pub fn formats(&self) -> [Format; 3] {
        let accumulator = match self.d {
            Accumulator::F32 => Format::F32,
            Accumulator::F16 => Format::F16,
            Accumulator::I32 { .. } => Format::I32,
        };
        [self.a, self.b, accumulator]
    }

    /// Rows of A and D that a block holds.
    pub fn rows(&self) -> usize {
        self.m / self.group
    }

    /// How a block's rows of A lie in its shared memory.
    pub fn left(&self) -> Operand {
        let k = if self.sparse.is_some() { self.k / 2 } else { self.k };
        self.operand(self.rows(), k, self.a, self.turned_a)
    }

    /// How a block's rows of B lie in its shared memory.
    pub fn right(&self) -> Operand {
        self.operand(self.n / self.group, self.k, self.b, self.turned_b)
    }

    fn operand(&self, rows: usize, k: usize, format: Format, by_rows: bool) -> Operand {
        let mut it = Operand::packed(rows, k, format, by_rows);
        if matches!(self.kind, Kind::F8f6f4 | Kind::Mxf8f6f4) {
            // Smaller formats are padded: sixteen elements in sixteen bytes.
            it.per_piece = 16;
        }
        it
    }

    /// The block (of the group), lane and column of an element of D, from its address.
    pub fn place(&self, row: usize, col: usize) -> (usize, usize, usize) {
        let rows = self.rows();
        let (block, row) = (row / rows, row % rows);
        let spread = |row: usize| row / 16 * 32 + row % 16;
        let (lane, column) = match (rows, self.group, self.weight_stationary) {
            (128, ..) => (row, col),
            (32, ..) => (row + col / (self.n / 4) * 32, col % (self.n / 4)),
            (_, 2, _) if self.sparse.is_none() => self.folded(row, col),
            (_, 1, true) => self.folded(row, col),
            _ => (spread(row), col),
        };
        (block, lane, column)
    }

    fn folded(&self, row: usize, col: usize) -> (usize, usize) {
        (row + col / (self.n / 2) * 64, col % (self.n / 2))
    }

    /// Parts of D's columns that lie in lanes of their own (layouts B, E, G): each is the product of the A in these lanes,
    /// where A is in tensor memory.
    pub fn parts(&self) -> usize {
        match (self.rows(), self.group, self.weight_stationary) {
            (32, ..) => 4,
            (64, 2, _) if self.sparse.is_none() => 2,
            (64, 1, true) => 2,
            _ => 1,
        }
    }

    /// Block, lane, column and shift of an element of A in tensor memory, from its address, for a part of D's columns.
    pub fn left_place(&self, row: usize, k: usize, part: usize) -> (usize, usize, usize, u32) {
        let rows = self.rows();
        let (block, row) = (row / rows, row % rows);
        let lane = match self.parts() {
            1 if rows == 64 => row / 16 * 32 + row % 16,
            parts => row + part * (128 / parts),
        };
        let bits = self.a.bits().next_power_of_two().max(8);
        let bits = if self.kind.k() == 64 { 4 } else { bits };
        let per = (32 / bits) as usize;
        (block, lane, k / per, (k % per) as u32 * bits)
    }

    /// What the metadata of a sparse A says.
    pub fn sparsity(&self) -> Sparsity {
        match self.kind {
            Kind::Tf32 => Sparsity::OneOfTwo,
            Kind::Mxf4 | Kind::Mxf4nvf4 => Sparsity::PairsOfFour,
            _ => Sparsity::TwoOfFour,
        }
    }

    /// Block, lane, column and shift of the metadata of a group of a row, from its address.
    pub fn metadata_place(&self, row: usize, group: usize) -> (usize, usize, usize, u32) {
        let rows = self.rows();
        let (block, row) = (row / rows, row % rows);
        let spread = |row: usize| if rows == 64 { row / 16 * 32 + row % 16 } else { row };
        let selector = self.sparse.unwrap_or(0) as usize;
        if matches!(self.kind, Kind::F16 | Kind::Tf32) {
            // Eight groups in an instruction, four in a half.
            let lane = spread(row / 16 * 16 + row % 8 + group / 4 * 8);
            let shift = row / 8 % 2 * 16 + group % 4 * 4;
            return (block, lane, selector, shift as u32);
        }
        (
            block,
            spread(row),
            selector * 2 + group / 8,
            (group % 8 * 4) as u32,
        )
    }

    /// Lane, column and shift of a scale factor, from its address: of a block's row (all of N for B) and a block of k.
    pub fn scale_place(&self, row: usize, block: usize, of_b: bool) -> (usize, usize, u32) {
        let first = self.scales.map_or(0, |s| if of_b { s.b_byte } else { s.a_byte });
        (row % 32, row / 32, (first + block) as u32 * 8)
    }

    /// `A · B` with signs and scale factors: of M×K and N×K, and M×blocks and N×blocks.
    pub fn product<T: Number>(
        &self,
        mut left: Matrix<T>,
        mut right: Matrix<T>,
        scales: Option<(&Matrix<T>, &Matrix<T>)>,
    ) -> Matrix<T> {
        if self.negate_a != self.negate_b {
            left.negate();
        }
        if let Some((of_a, of_b)) = scales {
            for (matrix, factors) in [(&mut left, of_a), (&mut right, of_b)] {
                let span = (matrix.cols / factors.cols.max(1)).max(1);
                for row in 0..matrix.rows {
                    for k in 0..matrix.cols {
                        let scaled = matrix.at(row, k) * factors.at(row, k / span);
                        matrix.set(row, k, scaled);
                    }
                }
            }
        }
        multiply(&left, &right.transposed())
    }

    /// A cell of D after the instruction: the element is in the lower half where it has 16 bits.
    pub fn sum(&self, product: f32, before: Option<u32>, scale_exponent: u32) -> u32 {
        let before = before.unwrap_or(0);
        let before = match self.d {
            Accumulator::F32 if scale_exponent > 0 => {
                (f32::from_bits(before) * (-(scale_exponent as f32)).exp2()).to_bits()
            }
            Accumulator::F16 => before & 0xffff,
            _ => before,
        };
        self.d.add(product, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(d: u32, a: u32, b: u32, m: u32, n: u32) -> u32 {
        d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    }

    #[test]
    fn descriptors_are_decoded() {
        let bits = descriptor(1, 1, 1, 128, 256) | 1 << 16;
        let it = Mma::decode(Kind::F16, bits, 1, false, false, 0).unwrap();
        assert_eq!((it.m, it.n, it.k), (128, 256, 16));
        assert_eq!((it.a, it.d), (Format::Bf16, Accumulator::F32));
        assert!(it.turned_b && !it.turned_a);
        let error = Mma::decode(Kind::F16, descriptor(1, 1, 1, 96, 64), 1, false, false, 0).unwrap_err();
        assert!(error.contains("M = 96"), "{error}");
        let error = Mma::decode(Kind::F16, descriptor(1, 1, 1, 128, 24), 1, false, false, 0).unwrap_err();
        assert!(error.contains("N = 24"), "{error}");
        let error = Mma::decode(Kind::F16, descriptor(1, 5, 1, 128, 32), 1, false, false, 0).unwrap_err();
        assert!(error.contains("operand formats"), "{error}");
        // Block scaled: the byte of a factor, its format.
        let bits = descriptor(2, 0, 0, 128, 128) | 1 << 23 | 3 << 29;
        let it = Mma::decode(Kind::Mxf8f6f4, bits, 1, false, false, 1).unwrap();
        let scales = it.scales.unwrap();
        assert_eq!(
            (scales.a_byte, scales.b_byte, scales.format),
            (3, 2, Format::Ue8m0)
        );
        assert!(
            Mma::decode(
                Kind::Mxf4,
                descriptor(2, 1, 1, 128, 128) | 3 << 29,
                1,
                false,
                false,
                2
            )
            .is_err()
        );
    }

    #[test]
    fn kinds_follow_dtypes() {
        assert_eq!(
            Kind::from_dtypes("float32", "bfloat16", "bfloat16", None),
            Ok(Kind::F16)
        );
        assert_eq!(Kind::from_dtypes("int32", "int8", "uint8", None), Ok(Kind::I8));
        assert_eq!(
            Kind::from_dtypes("float32", "float8_e4m3fn", "float4_e2m1fn", None),
            Ok(Kind::F8f6f4)
        );
        assert_eq!(
            Kind::from_dtypes("float32", "float4_e2m1fn", "float4_e2m1fn", Some("float8_e4m3fn")),
            Ok(Kind::Mxf4nvf4)
        );
        assert!(Kind::from_dtypes("float16", "bfloat16", "bfloat16", None).is_err());
    }

    #[test]
    fn accumulators_have_cells_of_their_own() {
        for (m, n, group, ws) in [
            (128, 64, 1, false),
            (64, 64, 1, false),
            (64, 64, 1, true),
            (32, 64, 1, true),
            (256, 64, 2, false),
            (128, 64, 2, false),
        ] {
            let bits = descriptor(1, 1, 1, m, n);
            let it = Mma::decode(Kind::F16, bits, group, ws, false, 0).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for row in 0..m as usize {
                for col in 0..n as usize {
                    let (block, lane, column) = it.place(row, col);
                    assert!(block < group && lane < 128 && column < 256);
                    assert!(seen.insert((block, lane, column)), "{m} {group} {ws}");
                }
            }
        }
        let it = Mma::decode(Kind::F16, descriptor(1, 1, 1, 64, 32), 1, false, false, 0).unwrap();
        assert_eq!(it.place(17, 3), (0, 33, 3));
        let it = Mma::decode(Kind::F16, descriptor(1, 1, 1, 128, 64), 2, false, false, 0).unwrap();
        assert_eq!(it.place(65, 40), (1, 65, 8));
    }

    #[test]
    fn metadata_has_words_of_its_own() {
        for (kind, code, m) in [(Kind::F16, 1, 128), (Kind::Tf32, 2, 64), (Kind::I8, 1, 128)] {
            let d = if kind == Kind::I8 { 2 } else { 1 };
            let bits = descriptor(d, code, code, m, 32) | 1 << 2 | 1;
            let it = Mma::decode(kind, bits, 1, false, true, 0).unwrap();
            let groups = it.k / it.sparsity().span();
            let mut seen = std::collections::BTreeSet::new();
            for row in 0..m as usize {
                for group in 0..groups {
                    let (_, lane, column, shift) = it.metadata_place(row, group);
                    assert!(lane < 128 && column < 4 && shift < 32);
                    assert!(seen.insert((lane, column, shift)), "{kind:?}");
                }
            }
        }
        let bits = descriptor(1, 1, 1, 128, 32) | 1 << 2;
        let it = Mma::decode(Kind::F16, bits, 1, false, true, 0).unwrap();
        assert_eq!(it.metadata_place(27, 6), (0, 27, 0, 24));
        assert_eq!(it.metadata_place(19, 1), (0, 19, 0, 4));
    }

    #[test]
    fn scale_factors_multiply_blocks() {
        let bits = descriptor(0, 1, 1, 128, 8);
        let it = Mma::decode(Kind::Mxf4nvf4, bits, 1, false, false, 4).unwrap();
        let ones = |rows| Matrix {
            rows,
            cols: 64,
            values: vec![1.0; rows * 64],
        };
        let factors = |rows| Matrix {
            rows,
            cols: 4,
            values: (0..rows * 4).map(|i| (i % 4) as f32).collect(),
        };
        let product = it.product(ones(128), ones(8), Some((&factors(128), &factors(8))));
        assert_eq!(product.at(100, 5), 16.0 * (1.0 + 4.0 + 9.0));
        assert_eq!(it.scale_place(37, 2, false), (5, 1, 16));
    }

    #[test]
    fn accumulators_are_scaled_and_kept() {
        let bits = descriptor(1, 1, 1, 128, 16);
        let it = Mma::decode(Kind::F16, bits, 1, false, false, 0).unwrap();
        assert_eq!(f32::from_bits(it.sum(2.0, Some(8.0f32.to_bits()), 2)), 4.0);
        assert_eq!(f32::from_bits(it.sum(2.0, None, 0)), 2.0);
    }
}
