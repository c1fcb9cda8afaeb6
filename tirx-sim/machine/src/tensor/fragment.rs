//! Which element of a matrix is in which register of which lane (`mma.sync`)?
//!
//! PTX ISA, "Matrix fragments for mma.m8n8k4" … "mma.m16n8k256". All shapes but one follow a single rule. Four lanes
//! share a row of A (a column of B); a lane holds the elements of one 32-bit word there (one for float64). Registers
//! go on eight rows below, then four words to the right. Accumulators hold two neighbours of a row, then eight rows
//! below. The exception is m8n8k4 of float16, where four groups of eight lanes multiply matrices of their own.

/// Extents of a product: M×K times K×N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl Shape {
    /// Of a text such as `m16n8k16`.
    pub fn parse(text: &str) -> Option<Shape> {
        let (m, rest) = text.trim_start_matches('.').strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape {
            m: m.parse().ok()?,
            n: n.parse().ok()?,
            k: k.parse().ok()?,
        })
    }
}

/// A matrix of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    A,
    B,
    /// C and D.
    C,
}

/// Elements that a lane holds of a matrix of 32 lanes.
pub fn count(shape: Shape, part: Part) -> usize {
    match part {
        Part::A => shape.m * shape.k / 32,
        Part::B => shape.n * shape.k / 32,
        Part::C => shape.m * shape.n / 32,
    }
}

/// Row and column of a lane's element: of A in M×K, of B in K×N, of C in M×N. `bits` is an element's width.
pub fn place(shape: Shape, part: Part, bits: u32, lane: usize, element: usize) -> (usize, usize) {
    let (group, member) = (lane / 4, lane % 4);
    // Elements in a lane's word.
    let word = (32 / bits as usize).max(1);
    let (register, within) = (element / word, element % word);
    match part {
        Part::A => {
            let down = shape.m / 8;
            let row = group + 8 * (register % down);
            (row, member * word + within + 4 * word * (register / down))
        }
        Part::B => (member * word + within + 4 * word * register, group),
        Part::C => (group + 8 * (element / 2), member * 2 + element % 2),
    }
}

/// The groups of m8n8k4 with float16 operands: eight lanes each multiply matrices of their own.
pub mod quads {
    use super::Part;

    /// The lanes of a group: four, and four that are sixteen on.
    pub fn lanes(group: usize) -> [usize; 8] {
        std::array::from_fn(|i| group * 4 + i % 4 + i / 4 * 16)
    }

    /// Row and column of a lane's element in its group's matrices. `turned` is the less natural layout: columns of
    /// A, rows of B. `wide` says that accumulators are float32.
    pub fn place(part: Part, lane: usize, element: usize, turned: bool, wide: bool) -> (usize, usize) {
        let (member, upper) = (lane % 4, if lane < 16 { 0 } else { 4 });
        match part {
            Part::A if !turned => (member + upper, element),
            Part::A => (element + upper, member),
            Part::B if !turned => (element, member + upper),
            Part::B => (member, element + upper),
            Part::C if !wide => (member + upper, element),
            Part::C => {
                let row = (lane & 1) + (element & 2) + upper;
                (row, (element & 4) + (lane & 2) + (element & 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of a matrix is somewhere, once.
    fn covers(rows: usize, cols: usize, places: impl Iterator<Item = (usize, usize)>) {
        let mut seen = vec![0; rows * cols];
        for (r, c) in places {
            assert!(r < rows && c < cols, "({r}, {c}) of {rows}×{cols}");
            seen[r * cols + c] += 1;
        }
        assert!(seen.iter().all(|n| *n == 1));
    }

    #[test]
    fn fragments_cover_their_matrices() {
        for (text, bits) in [
            ("m8n8k4", 64),
            ("m16n8k4", 64),
            ("m16n8k8", 64),
            ("m16n8k16", 64),
            ("m16n8k4", 32),
            ("m16n8k8", 32),
            ("m16n8k8", 16),
            ("m16n8k16", 16),
            ("m8n8k16", 8),
            ("m16n8k16", 8),
            ("m16n8k32", 8),
            ("m8n8k32", 4),
            ("m16n8k32", 4),
            ("m16n8k64", 4),
            ("m8n8k128", 1),
            ("m16n8k128", 1),
            ("m16n8k256", 1),
        ] {
            let shape = Shape::parse(text).unwrap();
            let Shape { m, n, k } = shape;
            for (part, rows, cols) in [(Part::A, m, k), (Part::B, k, n), (Part::C, m, n)] {
                let all = (0..32)
                    .flat_map(|lane| (0..count(shape, part)).map(move |i| place(shape, part, bits, lane, i)));
                covers(rows, cols, all);
            }
        }
        for part in [Part::A, Part::B, Part::C] {
            for turned in [false, true] {
                for wide in [false, true] {
                    let n = if part == Part::C { 8 } else { 4 };
                    let (rows, cols) = match part {
                        Part::A => (8, 4),
                        Part::B => (4, 8),
                        Part::C => (8, 8),
                    };
                    let all = quads::lanes(1)
                        .into_iter()
                        .flat_map(|lane| (0..n).map(move |i| quads::place(part, lane, i, turned, wide)));
                    covers(rows, cols, all);
                }
            }
        }
    }

    #[test]
    fn places_as_the_ptx_isa_has_them() {
        let shape = Shape::parse("m16n8k16").unwrap();
        // a2, a3 are eight rows below, a4, a5 eight columns to the right.
        assert_eq!(place(shape, Part::A, 16, 5, 0), (1, 2));
        assert_eq!(place(shape, Part::A, 16, 5, 3), (9, 3));
        assert_eq!(place(shape, Part::A, 16, 5, 4), (1, 10));
        assert_eq!(place(shape, Part::B, 16, 5, 2), (10, 1));
        assert_eq!(place(shape, Part::C, 32, 5, 2), (9, 2));
        let shape = Shape::parse("m16n8k8").unwrap();
        // tf32: one element a register.
        assert_eq!(place(shape, Part::A, 32, 6, 1), (9, 2));
        assert_eq!(place(shape, Part::A, 32, 6, 2), (1, 6));
        let shape = Shape::parse("m16n8k32").unwrap();
        assert_eq!(place(shape, Part::A, 8, 6, 13), (9, 16 + 8 + 1));
    }
}
