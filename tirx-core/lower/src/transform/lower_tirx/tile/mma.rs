//! `gemm` → `mma.m16n8k*`: a product of matrices in the registers of warps, by `mma.sync`.
//!
//! **Idea.** An instruction multiplies 16 rows, 8 columns and, for elements of `bits` bits, `256 / bits` of k (or half of that). It says
//! which lane has which element, up to the order of rows, columns and k, which does not matter for a product as long as all
//! operands have the same one. So the places of the elements are computed: rows of D that a lane group has in one register
//! make a *register row*, columns a *register column*, k a *word* of 32 bits; two register rows, two register columns and two words
//! make an instruction, if A, B and C have them in the same lanes.
//!
//! **Conditions.** Scope warp, warpgroup or CTA with all threads active, or scope thread with all lanes of a warp; all operands local. `alpha` is 1, `beta` 0 or 1. Rows may be
//! spread over warps; columns and k lie within each. A and B of float16, bfloat16, float32 (read as tf32), float8 or integers of 8
//! bits, D and C of float32 (float16 for products of float16), or int32 for integers.
//!
//! **Cost.** `rows / 16 * columns / 8 * k / (256 / bits)` instructions of a warp, in order.

use super::build::{address, flat_view};
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::emit::Emit;
use super::places::Places;
use super::predicates::{all_in, scope_among};
use super::variant::{Emits, Explanation, Plan, Predicate, Variant};
use crate::arith::fold;
use crate::intrin::{GpuSet, Op};
use crate::ir::{Buffer, BufferRegion, DType, ExecScope, Expr, ExprKind, TileOp};
use crate::layout::axes::{Level, MEMORY};

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::Gemm],
    name: "mma.m16n8k*",
    arch: GpuSet::least(80),
    predicates: &[
        Predicate {
            name: "warps are active as a whole",
            holds: whole_warps,
        },
        Predicate {
            name: "every region in local memory",
            holds: |call, _| all_in("local", call.regions()),
        },
    ],
    plan,
    doc: "mma.sync: tensor cores, between the registers of warps",
    ..Variant::DEFAULT
}];

/// Predicate: every thread of the scope is active; at scope thread, where a call is made by whoever comes to it, every lane of
/// the warps that come.
fn whole_warps(_: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    use ExecScope::{Cta, Thread, Warp, Warpgroup};
    scope_among(cx, &[Thread, Warp, Warpgroup, Cta])?;
    let whole = if cx.scope == Thread { Warp } else { cx.scope };
    Ok(cx.is_full(whole)?)
}

/// Places of a matrix in the registers of threads.
struct Matrix {
    buffer: Buffer,
    /// The region's offset from the buffer's data, in elements.
    start: Expr,
    /// For each row and column: its term of the thread's number, and of the place in the thread's memory.
    rows: Vec<(i128, i128)>,
    columns: Vec<(i128, i128)>,
}

impl Matrix {
    fn from_region(region: &BufferRegion, turned: bool, cx: &mut Context<'_>) -> Result<Matrix, Decline> {
        let name = &region.buffer.name;
        let places = Places::from_region(region, cx)?;
        if places.swizzle.is_some() {
            return Err(format!("the layout of {name} is a swizzle").into());
        }
        if places.extents.len() != 2 {
            return Err(format!("{name} is not a matrix of two dimensions").into());
        }
        let threads = places.threads(Level::Cta, name)?;
        let pairs = |(threads, memory): (Vec<i128>, Vec<i128>)| threads.into_iter().zip(memory).collect();
        let mut both: Vec<Vec<(i128, i128)>> = threads
            .into_iter()
            .zip(places.tables(MEMORY))
            .map(pairs)
            .collect();
        if turned {
            both.reverse();
        }
        let mut both = both.into_iter();
        Ok(Matrix {
            buffer: region.buffer.clone(),
            start: places.first(MEMORY),
            rows: both.next().unwrap_or_default(),
            columns: both.next().unwrap_or_default(),
        })
    }

    /// The place in a thread's memory of a row and a column.
    fn at(&self, row: usize, column: usize) -> Expr {
        let place = self.rows[row].1 + self.columns[column].1;
        fold::add(self.start.clone(), Expr::constant(self.start.dtype, place))
    }
}

/// Coordinates that lie in one register of different lanes, in the order of the threads; registers in the order of their first
/// coordinates. `None` where registers are not in the same threads.
fn registers(table: &[(i128, i128)]) -> Option<Vec<Vec<usize>>> {
    let mut found: Vec<(i128, Vec<usize>)> = Vec::new();
    for (at, (_, memory)) in table.iter().enumerate() {
        match found.iter_mut().find(|(known, _)| known == memory) {
            Some((_, coordinates)) => coordinates.push(at),
            None => found.push((*memory, vec![at])),
        }
    }
    for (_, coordinates) in &mut found {
        coordinates.sort_by_key(|at| table[*at].0);
    }
    let found: Vec<Vec<usize>> = found.into_iter().map(|(_, coordinates)| coordinates).collect();
    let threads = |register: &[usize]| register.iter().map(|at| table[*at].0).collect::<Vec<_>>();
    let first = threads(found.first()?);
    let unique = first.windows(2).all(|pair| pair[0] < pair[1]);
    (unique && found.iter().all(|register| threads(register) == first)).then_some(found)
}

/// Whether coordinates that lie in one register of one matrix do so in another, in the same threads.
fn agrees(table: &[(i128, i128)], like: &[(i128, i128)], registers: &[Vec<usize>]) -> bool {
    table.len() == like.len()
        && table.iter().zip(like).all(|(a, b)| a.0 == b.0)
        && (registers.iter()).all(|register| register.iter().all(|at| table[*at].1 == table[register[0]].1))
}

/// The instructions: registers are given by a coordinate that lies in them.
struct Product {
    d: Matrix,
    a: Matrix,
    b: Matrix,
    /// The addend; `None` for 0.
    c: Option<Matrix>,
    /// Pairs of register rows, of register columns; words of k, one or two of an instruction.
    rows: Vec<[usize; 2]>,
    columns: Vec<[usize; 2]>,
    words: Vec<Vec<usize>>,
    /// Elements of a word of A and B.
    per_word: i128,
}

/// The name of an operand's dtype in instructions.
fn type_name(dtype: DType) -> String {
    match dtype {
        DType::FLOAT32 => "tf32".to_string(),
        other => other.to_string(),
    }
}

/// The value of a constant scalar.
fn constant(e: Option<&Expr>) -> Option<f64> {
    match &e?.kind {
        ExprKind::Float(value) => Some(*value),
        _ => e?.as_int().map(|value| value as f64),
    }
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    if constant(call.scalar("alpha")) != Some(1.0) {
        return Err("mma computes with alpha=1 only".into());
    }
    let adds = match constant(call.scalar("beta")) {
        Some(0.0) => false,
        Some(1.0) => true,
        _ => return Err("mma computes with beta=0 or beta=1 only".into()),
    };
    let (d, a, b, c) = (
        call.region("D")?,
        call.region("A")?,
        call.region("B")?,
        call.region("C")?,
    );
    let (of_a, of_d) = (a.buffer.dtype, d.buffer.dtype);
    let integers = [DType::INT8, DType::UINT8].contains(&of_a);
    let name = type_name(of_a);
    let known = integers || ["float16", "bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2"].contains(&&*name);
    let same = b.buffer.dtype == of_a && c.buffer.dtype == of_d;
    let fits = match of_d {
        DType::INT32 => integers,
        DType::FLOAT32 => !integers,
        DType::FLOAT16 => of_a == DType::FLOAT16,
        _ => false,
    };
    if !known || !same || !fits {
        return Err(format!(
            "mma has no product of {of_a} and {} that is added to {} and gives {of_d}",
            b.buffer.dtype, c.buffer.dtype
        )
        .into());
    }
    let needed = match of_a.bits == 8 && !integers {
        true => GpuSet::least(89),
        false => GpuSet::least(80),
    };
    if let Some(target) = cx.targets.iter().find(|t| !needed.holds(t.gpu)) {
        return Err(format!(
            "mma of {of_a} needs {needed}, but the kernel is compiled for {}",
            target.gpu
        )
        .into());
    }
    let (turned_a, turned_b) = (call.flag("transpose_A")?, call.flag("transpose_B")?);
    let d = Matrix::from_region(d, false, cx)?;
    let a = Matrix::from_region(a, turned_a, cx)?;
    let b = Matrix::from_region(b, turned_b, cx)?;
    let c = Matrix::from_region(c, false, cx)?;
    let ((m, n), k) = ((d.rows.len(), d.columns.len()), a.columns.len());
    if (a.rows.len(), b.rows.len(), b.columns.len()) != (m, k, n) || (c.rows.len(), c.columns.len()) != (m, n)
    {
        return Err(Decline::mistake(
            format!(
                "D is {m} x {n}, A {} x {k}, B {} x {}, C {} x {}",
                a.rows.len(),
                b.rows.len(),
                b.columns.len(),
                c.rows.len(),
                c.columns.len()
            ),
            "A is M x K (transpose_A=True: K x M), B is K x N (transpose_B=True: N x K), C and D are M x N",
        ));
    }
    let per_word = 32 / i128::from(of_a.bits);
    let rows = rows_of(&d, &a, &c).ok_or("the rows of D, A and C do not lie in lanes as mma has them")?;
    let columns =
        columns_of(&d, &b, &c).ok_or("the columns of D, B and C do not lie in lanes as mma has them")?;
    let words = words_of(&a, &b, per_word).ok_or("k of A and B does not lie in lanes as mma has it")?;
    let packed = |matrix: &Matrix| {
        let pairs = columns.iter().all(|[first, second]| {
            let (first, second) = (matrix.columns[*first].1, matrix.columns[*second].1);
            first % 2 == 0 && second == first + 1
        });
        pairs && matrix.rows.iter().all(|(_, place)| place % 2 == 0)
    };
    if of_d == DType::FLOAT16 && !(packed(&d) && packed(&c)) {
        return Err("two neighbours of a row of D or C do not share a register".into());
    }
    Ok(Box::new(Product {
        d,
        a,
        b,
        c: adds.then_some(c),
        rows,
        columns,
        words,
        per_word,
    }))
}

/// Pairs of register rows. Eight lane groups have a row each.
fn rows_of(d: &Matrix, a: &Matrix, c: &Matrix) -> Option<Vec<[usize; 2]>> {
    let found = registers(&d.rows)?;
    let threads: Vec<i128> = found.first()?.iter().map(|at| d.rows[*at].0).collect();
    let of_lanes = |(i, thread): (usize, &i128)| thread % 32 == i as i128 % 8 * 4;
    let whole = threads.len().is_multiple_of(8) && threads.iter().enumerate().all(of_lanes);
    let same = agrees(&a.rows, &d.rows, &found) && agrees(&c.rows, &d.rows, &found);
    (whole && same && found.len() % 2 == 0)
        .then(|| found.chunks(2).map(|pair| [pair[0][0], pair[1][0]]).collect())
}

/// Pairs of register columns. Four lanes have a column each of D; B has the two columns of lane `t` in the lane groups `2 * t` and
/// `2 * t + 1`.
fn columns_of(d: &Matrix, b: &Matrix, c: &Matrix) -> Option<Vec<[usize; 2]>> {
    let found = registers(&d.columns)?;
    let of_lanes = |register: &[usize]| (0..4).all(|t| d.columns[register[t]].0 == t as i128);
    if found.first()?.len() != 4 || !of_lanes(&found[0]) || !agrees(&c.columns, &d.columns, &found) {
        return None;
    }
    let mut halves: [Vec<(i128, usize)>; 2] = Default::default();
    for register in &found {
        let half = match b.columns[register[0]].0 {
            0 => 0,
            4 => 1,
            _ => return None,
        };
        let place = b.columns[register[0]].1;
        let fits = |t: usize| b.columns[register[t]] == (4 * (2 * t as i128 + half as i128), place);
        if !(0..4).all(fits) {
            return None;
        }
        halves[half].push((place, register[0]));
    }
    // Of several register columns with one place in B, the first goes with the first.
    let [firsts, mut seconds] = halves;
    let mut pairs = Vec::new();
    for (place, first) in firsts {
        let at = seconds.iter().position(|(other, _)| *other == place)?;
        pairs.push([first, seconds.remove(at).1]);
    }
    seconds.is_empty().then_some(pairs)
}

/// Words of k: the first of each, in pairs, and a single one at the end of an odd number.
fn words_of(a: &Matrix, b: &Matrix, per_word: i128) -> Option<Vec<Vec<usize>>> {
    let word = |(thread, place): (i128, i128)| (thread, place.div_euclid(per_word));
    let (of_a, of_b) = (&a.columns, &b.rows);
    // The places of rows and columns add up: a word begins where both are whole words.
    let whole = |table: &[(i128, i128)]| table.iter().all(|(_, place)| place % per_word == 0);
    if !whole(&a.rows) || !whole(&b.columns) {
        return None;
    }
    let starts: Vec<usize> = (0..of_a.len()).filter(|k| of_a[*k].1 % per_word == 0).collect();
    let table: Vec<(i128, i128)> = starts.iter().map(|k| word(of_a[*k])).collect();
    let found = registers(&table)?;
    let threads: Vec<i128> = found.first()?.iter().map(|at| table[*at].0).collect();
    if threads != [0, 1, 2, 3] {
        return None;
    }
    // A and B have the same elements in a word, in the same order.
    let same = of_a
        .iter()
        .zip(of_b)
        .all(|(x, y)| x.0 == y.0 && x.1.rem_euclid(per_word) == y.1.rem_euclid(per_word));
    let together = (0..of_a.len()).all(|k| {
        let all = |other: usize| (word(of_a[k]) == word(of_a[other])) == (word(of_b[k]) == word(of_b[other]));
        (0..of_a.len()).all(all)
    });
    let register = |of: &[usize]| {
        of.iter()
            .all(|at| word(of_b[starts[*at]]).1 == word(of_b[starts[of[0]]]).1)
    };
    let complete = starts.len() * per_word as usize == of_a.len();
    let fits = same && together && complete && found.iter().all(|of| register(of));
    let first: Vec<usize> = found.iter().map(|of| starts[of[0]]).collect();
    fits.then(|| first.chunks(2).map(<[usize]>::to_vec).collect())
}

impl Emits for Product {
    fn explain(&self) -> Explanation {
        let depth = |words: usize| 4 * self.per_word * words as i128;
        let k: Vec<String> = self
            .words
            .iter()
            .map(|w| format!("k{}", depth(w.len())))
            .collect();
        Explanation::default().line(format!(
            "{} x {} instructions m16n8 of {}, each for {}",
            self.rows.len(),
            self.columns.len(),
            type_name(self.a.buffer.dtype),
            k.join(", ")
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let mut flat = |matrix: &Matrix| {
            let (flat, declare) = flat_view(&matrix.buffer, span);
            out.push(declare);
            flat
        };
        let (d_flat, a_flat, b_flat) = (flat(&self.d), flat(&self.a), flat(&self.b));
        let c_flat = self.c.as_ref().map(&mut flat);
        let pointer =
            |flat: &Buffer, matrix: &Matrix, row, column| address(flat, vec![matrix.at(row, column)], span);
        let packed = self.d.buffer.dtype.bits == 16;
        // The registers of an accumulator.
        let sums = |flat: &Buffer, matrix: &Matrix, rows: [usize; 2], columns: [usize; 2]| -> Vec<Expr> {
            let columns = if packed { &columns[..1] } else { &columns[..] };
            let places = rows
                .iter()
                .flat_map(|row| columns.iter().map(move |column| (*row, *column)));
            places
                .map(|(row, column)| pointer(flat, matrix, row, column))
                .collect()
        };
        let (operand, result) = (type_name(self.a.buffer.dtype), self.d.buffer.dtype.to_string());
        for rows in &self.rows {
            for columns in &self.columns {
                for (step, words) in self.words.iter().enumerate() {
                    let of_a = words
                        .iter()
                        .flat_map(|k| rows.map(|row| pointer(&a_flat, &self.a, row, *k)));
                    let of_b = words.iter().map(|k| pointer(&b_flat, &self.b, *k, columns[0]));
                    let call = Op::PtxMma
                        .call()
                        .set(
                            "shape",
                            &format!("m16n8k{}", 4 * self.per_word * words.len() as i128),
                        )
                        .set("a_layout", "row")
                        .set("b_layout", "col")
                        .set("d_type", &result)
                        .set("a_type", &operand)
                        .set("b_type", &operand)
                        .set("c_type", &result)
                        .list("d_ptrs", sums(&d_flat, &self.d, *rows, *columns))
                        .list("a_ptrs", of_a.collect::<Vec<_>>())
                        .list("b_ptrs", of_b.collect::<Vec<_>>());
                    let addend = match (step, &self.c, &c_flat) {
                        (0, Some(c), Some(flat)) => Some(sums(flat, c, *rows, *columns)),
                        (0, ..) => None,
                        _ => Some(sums(&d_flat, &self.d, *rows, *columns)),
                    };
                    let call = call.set("no_c_ptr", addend.is_none());
                    let call = match addend {
                        Some(registers) => call.list("c_ptrs", registers),
                        None => call,
                    };
                    out.push(call.at(span).stmt());
                }
            }
        }
    }
}
