//! How many registers has an operand?

use super::lookup::Tokens;

/// How many registers an operand has.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Always this many.
    Number(usize),
    /// As its slot says: `v4` is 4; one where the slot is empty.
    Slot(&'static str),
    /// As a function of the modifiers says.
    Function(fn(&Tokens) -> usize),
}

/// The number of registers of an operand, by an instruction's tokens.
type Function = fn(&Tokens) -> usize;

/// The functions by their names in the tables.
const FUNCTIONS: &[(&str, Function)] = &[
    ("coords", coordinates),
    ("lower", |t| t.number("dim", 0).saturating_sub(1) * strided(t)),
    ("offsets", |t| match t.get("mode") {
        "im2col" => t.number("dim", 0).saturating_sub(2),
        _ => 2,
    }),
    ("num2", |t| 2 * t.number("num", 0)),
    ("masks", |t| 4 * t.number("cta_group", 0)),
    ("tmem", tensor_memory),
    ("wgmma", |t| {
        t.number("shape", 1) / if t.get("dtype") == "f16" { 4 } else { 2 }
    }),
    ("mma.a", |t| fragment(t, "atype", 0, 2, 1)),
    ("mma.half_a", |t| fragment(t, "atype", 0, 2, 2)),
    ("mma.b", |t| fragment(t, "btype", 2, 1, 1)),
    ("mma.c", |t| fragment(t, "ctype", 0, 1, 1)),
    ("mma.d", |t| fragment(t, "dtype", 0, 1, 1)),
    ("sp.tm", |t| t.number("num", 0).div_ceil(32)),
    ("sp.tc", |t| t.number("num", 0) / 2),
    ("sp.data", |t| 2 * t.number("num", 0)),
    ("sp.packed", |t| t.number("num", 0)),
    ("sp.meta", |t| {
        (t.number("num", 0) * t.number("idxsize", 0)).div_ceil(t.number("elemsize", 0).max(1))
    }),
    ("sp.dense", |t| {
        (t.number("factor", 1) * t.number("elemsize", 0) * t.number("num", 0)).div_ceil(32)
    }),
    ("sp.dmeta", |t| {
        (t.number("factor", 0) * t.number("idxsize", 0) * t.number("num", 0)).div_ceil(32)
    }),
    ("sp.dpacked", |t| {
        (t.number("factor", 0) * t.number("elemsize", 0) * t.number("num", 0)).div_ceil(32)
    }),
];

impl Count {
    /// The count that a text of the tables names.
    pub(super) fn read(text: &'static str) -> Result<Count, String> {
        if let Ok(number) = text.parse() {
            return Ok(Count::Number(number));
        }
        match FUNCTIONS.iter().find(|(name, _)| *name == text) {
            Some((_, function)) => Ok(Count::Function(*function)),
            None => Ok(Count::Slot(text)),
        }
    }

    /// The number of registers under these modifiers.
    pub fn registers(self, tokens: &Tokens) -> usize {
        match self {
            Count::Number(number) => number,
            Count::Slot(slot) => match tokens.get(slot) {
                "" => 1,
                _ => tokens.number(slot, 0),
            },
            Count::Function(function) => function(tokens),
        }
    }
}

/// Coordinates of a box: one for each dimension; a gather or scatter has the column and four rows.
fn coordinates(tokens: &Tokens) -> usize {
    match tokens.get("mode") {
        "tile::gather4" | "tile::scatter4" => 5,
        _ => tokens.number("dim", 0),
    }
}

fn strided(tokens: &Tokens) -> usize {
    usize::from(tokens.get("attribute") == "override::global_dim_stride")
}

/// Registers of a load or store of tensor memory.
fn tensor_memory(tokens: &Tokens) -> usize {
    let of_one = match tokens.get("shape") {
        "16x128b" => 2,
        "16x256b" => 4,
        _ => 1,
    };
    of_one * tokens.number("num", 0)
}

/// Registers of a matrix of `mma` that a thread has: `rows` and `columns` are dimensions of the shape (M, N, K).
fn fragment(tokens: &Tokens, ty: &str, rows: usize, columns: usize, stored: usize) -> usize {
    let text = tokens.get(ty);
    let ty = match text {
        // A type that the line fixes is a slot named after the token.
        "" if tokens.has("f16") => "f16",
        text => text,
    };
    let eighth = tokens.has("m8n8k4") || tokens.get("shape") == "m8n8k4";
    let shape = |i: usize| match tokens.get("shape") {
        "" => [8, 8, 4][i],
        _ => tokens.number("shape", i),
    };
    // Only the products of halves of this shape are four in a warp, of eight threads each.
    let halves = matches!(ty, "f16") || tokens.has("f16");
    let threads = if eighth && halves { 8 } else { 32 };
    let register = if tokens.get("atype") == "f64" { 64 } else { 32 };
    (shape(rows) * shape(columns) / stored * super::types::element_bits(ty) / threads / register).max(1)
}
