//! `gemm_async` → `wgmma`: a product by the tensor cores of Hopper, into the registers of a warpgroup.
//!
//! **Idea.** Rows of C are cut into 64, its columns into as many as an instruction takes (up to 256) and the layout of B allows,
//! k into the depth of an instruction. Which thread has which element of C is given by the instruction: element `(i, j)` of 64 rows
//! is in lane `i % 8 * 4 + j % 8 / 2` of warp `i / 16`. The layout of C must say the same; the order of a thread's registers is
//! free. A comes from shared memory or, in the fragments of the instruction, from registers; B from shared memory. Which of rows
//! and k is contiguous there, and the swizzle, follow from the layouts ([`SharedMatrix`]).
//!
//! **Conditions.** Scope warpgroup with all threads active. A and B of one dtype: float16 or bfloat16, float32 (read as tf32), float8 or
//! integers of 8 bits; C of float32 (for float16 and float8 also of float16, two sums of a row in a register), or of int32 for integers. Only matrices of 16 bits may have rows contiguous. `SFA` and `SFB`
//! are for Blackwell.
//!
//! **Cost.** One instruction for 64 rows, up to 256 columns and 32 bytes of k, all issued at once after `wgmma.fence`. The caller
//! commits and waits: `T.ptx.wgmma.commit_group()`, `T.ptx.wgmma.wait_group(n)`. What threads wrote to shared memory needs
//! `T.ptx.fence.proxy_async("shared::cta")` and a barrier before.

use super::build::{address, flat_view};
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::emit::Emit;
use super::matrix::SharedMatrix;
use super::multiples::is_multiple;
use super::option::{OptionKind, TileOption};
use super::places::Places;
use super::predicates::{FULL_SCOPE, scope_among};
use super::tcgen05::SHARED_DESCRIPTORS;
use super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use crate::arith::fold;
use crate::intrin::{GpuSet, Op};
use crate::ir::{Buffer, BufferNode, BufferRegion, DType, ExecScope, Expr, Stmt, StmtKind, TileOp, Var};
use crate::layout::axes::{Level, MEMORY};
use crate::source::Span;

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::GemmAsync],
    name: "wgmma",
    arch: GpuSet::exact(&[90]),
    options: &[
        TileOption {
            name: "is_AB_tf32",
            kind: OptionKind::Flag,
            default: "False",
            doc: "float32 operands are read as tf32, which wgmma always does",
        },
        SHARED_DESCRIPTORS,
    ],
    completion: Completion::WgmmaGroup,
    predicates: &[
        Predicate {
            name: "scope warpgroup",
            holds: |_, cx| scope_among(cx, &[ExecScope::Warpgroup]),
        },
        FULL_SCOPE,
        Predicate {
            name: "C in registers, B in shared memory, A in either",
            holds: spaces,
        },
    ],
    plan,
    doc: "wgmma.mma_async: tensor cores, into registers",
    ..Variant::DEFAULT
}];

/// Rows of an instruction.
const ROWS: i128 = 64;

fn spaces(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    let scope = |name: &str| -> Result<String, Decline> { Ok(call.region(name)?.buffer.scope().to_string()) };
    let (c, a, b) = (scope("C")?, scope("A")?, scope("B")?);
    let fits = c == "local" && b.starts_with("shared") && (a == "local" || a.starts_with("shared"));
    match fits {
        true => Ok(()),
        false => Err(format!("unsupported memory scopes C={c} A={a} B={b}").into()),
    }
}

/// The register operands of a warpgroup: where a thread has what the instruction takes from it.
struct Fragments {
    buffer: Buffer,
    /// The region's offset from the buffer's data, in elements.
    start: Expr,
    rows: Vec<i128>,
    columns: Vec<i128>,
}

impl Fragments {
    /// The fragments of a region of 64-row tiles, whose lanes have `per_lane` neighbours of a row; `lanes * per_lane`
    /// columns repeat.
    ///
    /// # Errors
    /// Where other threads have the elements.
    fn from_region(
        region: &BufferRegion,
        per_lane: i128,
        cx: &mut Context<'_>,
    ) -> Result<Fragments, Decline> {
        let name = &region.buffer.name;
        let places = Places::from_region(region, cx)?;
        if places.swizzle.is_some() {
            return Err(format!("the layout of {name} is a swizzle").into());
        }
        let [rows, columns] = places.extents[..] else {
            return Err(format!(
                "the region of {name} has {} dimensions of more than one coordinate, and a matrix has two",
                places.extents.len()
            )
            .into());
        };
        if rows % ROWS != 0 || columns % (4 * per_lane) != 0 {
            return Err(format!(
                "{name} is {rows} x {columns}: rows are multiples of {ROWS}, columns of {}",
                4 * per_lane
            )
            .into());
        }
        let threads = places.threads(Level::Warpgroup, name)?;
        let memory = places.tables(MEMORY);
        let of_row = |i: usize| (i as i128) % ROWS;
        // The first row, and the first column, of the register that has a given one.
        let row_of = |i: usize| i - i % 16 + i % 16 / 8 * 8 - i % 64 / 16 * 16;
        let lane = 4 * per_lane as usize;
        let column_of = |j: usize| j - j % lane + j % per_lane as usize;
        let fits = (0..rows as usize).all(|i| {
            threads[0][i] == of_row(i) / 16 * 32 + of_row(i) % 8 * 4 && memory[0][i] == memory[0][row_of(i)]
        }) && (0..columns as usize).all(|j| {
            threads[1][j] == (j as i128) % (4 * per_lane) / per_lane
                && memory[1][j] == memory[1][column_of(j)]
        });
        if !fits {
            return Err(format!(
                "the layout of {name} is not that of wgmma: element (i, j) of 64 rows is in lane i % 8 * 4 + j % {} / {per_lane} \
                 of warp i / 16",
                4 * per_lane
            )
            .into());
        }
        Ok(Fragments {
            buffer: region.buffer.clone(),
            start: places.first(MEMORY),
            rows: memory[0].clone(),
            columns: memory[1].clone(),
        })
    }

    /// The place in the thread's memory of the register with a row and a column.
    fn at(&self, row: i128, column: i128) -> Expr {
        let place = self.rows[row as usize] + self.columns[column as usize];
        fold::add(self.start.clone(), Expr::constant(self.start.dtype, place))
    }
}

/// Where A comes from.
enum Left {
    Shared(SharedMatrix, Swizzled),
    Registers(Fragments),
}

/// What the descriptors of a matrix have in common.
#[derive(Clone)]
struct Swizzled {
    /// The region's offset from the buffer's data, in units of 16 bytes.
    start: Expr,
    /// Leading and stride offset, in units of 16 bytes, and the swizzle.
    leading: i128,
    stride: i128,
    swizzle: i128,
    /// Whether rows are contiguous instead of k.
    by_rows: bool,
}

impl Swizzled {
    /// The descriptors of tiles of a matrix.
    fn from_matrix(
        matrix: &SharedMatrix,
        rows: i128,
        k: i128,
        cx: &mut Context<'_>,
    ) -> Result<Swizzled, String> {
        let walk = matrix.walk(rows, k)?;
        matrix.aligned(cx)?;
        Ok(Swizzled {
            start: matrix.start_pieces(cx),
            leading: walk.leading,
            stride: walk.stride,
            swizzle: walk.swizzle,
            by_rows: walk.by_rows,
        })
    }

    /// Statements that give the descriptor of the region's first element a name, and the name.
    fn declare(&self, buffer: &Buffer, span: Span) -> (Vec<Stmt>, Expr) {
        let (flat, declare) = flat_view(buffer, span);
        let (desc, allocate) = super::build::local(&format!("{}_desc", buffer.name), 1, DType::UINT64, span);
        let encode = Op::PtxWgmmaEncodeMatrixDescriptor
            .call()
            .set("desc", address(&desc, vec![Expr::int32(0)], span))
            .set("addr", address(&flat, vec![Expr::int32(0)], span))
            .set("ldo", self.leading as i32)
            .set("sdo", self.stride as i32)
            .set("swizzle", self.swizzle as i32)
            .at(span)
            .stmt();
        let first = Expr::load(&desc, vec![Expr::int32(0)]).at(span);
        let first = match self.start.is_int(0) {
            true => first,
            false => fold::add(first, self.start.clone().cast(DType::UINT64)),
        };
        let var = Var::at(format!("{}_first", buffer.name), DType::UINT64, span);
        let bind = Stmt::bind(&var, first, span);
        (vec![declare, allocate, encode, bind], Expr::var(&var).at(span))
    }
}

/// The descriptor of what begins this many units of 16 bytes after the first element.
fn moved(first: &Expr, pieces: i128) -> Expr {
    fold::add(first.clone(), Expr::constant(DType::UINT64, pieces))
}

/// The instructions of a product.
struct Product {
    c: Fragments,
    a: Left,
    b: SharedMatrix,
    b_walk: Swizzled,
    dtype: DType,
    /// Extents of the product and of an instruction.
    m: i128,
    n: i128,
    k: i128,
    columns: i128,
    depth: i128,
    accumulates: Expr,
}

/// The name of an operand's dtype in instructions.
fn type_name(dtype: DType) -> String {
    match dtype {
        DType::FLOAT32 => "tf32".to_string(),
        other => other.to_string(),
    }
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (c, a, b) = (call.region("C")?, call.region("A")?, call.region("B")?);
    if call.optional_region("SFA").is_some() || call.optional_region("SFB").is_some() {
        return Err("wgmma has no scale factors".into());
    }
    let dtype = a.buffer.dtype;
    let name = type_name(dtype);
    if b.buffer.dtype != dtype {
        return Err(format!("A is {dtype}, B is {}", b.buffer.dtype).into());
    }
    let integers = ["int8", "uint8"].contains(&&*name);
    let known = integers || ["float16", "bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2"].contains(&&*name);
    if !known {
        return Err(format!("wgmma has no matrices of {dtype}").into());
    }
    let sums: &[DType] = match &*name {
        "int8" | "uint8" => &[DType::INT32],
        "bfloat16" | "tf32" => &[DType::FLOAT32],
        _ => &[DType::FLOAT32, DType::FLOAT16],
    };
    let result = c.buffer.dtype;
    if !sums.contains(&result) {
        let known: Vec<String> = sums.iter().map(DType::to_string).collect();
        return Err(format!(
            "the product of {dtype} is {}, but C is {result}",
            known.join(" or ")
        )
        .into());
    }
    let bits = i128::from(dtype.bits);
    let depth = 256 / bits;
    let extents = |region: &BufferRegion, turned: bool| -> Result<(i128, i128), Decline> {
        let name = &region.buffer.name;
        let all = region
            .const_extents()
            .ok_or_else(|| format!("the extents of {name} are not constant"))?;
        match all.iter().copied().filter(|e| *e != 1).collect::<Vec<_>>()[..] {
            [first, second] if turned => Ok((second, first)),
            [first, second] => Ok((first, second)),
            _ => Err(format!("{name} is not a matrix of two dimensions").into()),
        }
    };
    let (turned_a, turned_b) = (call.flag("transA")?, call.flag("transB")?);
    let ((m, n), (a_rows, k), (b_rows, b_k)) =
        (extents(c, false)?, extents(a, turned_a)?, extents(b, turned_b)?);
    if (a_rows, b_rows, b_k) != (m, n, k) {
        return Err(Decline::mistake(
            format!("C is {m} x {n}, A {a_rows} x {k}, B {b_rows} x {b_k}"),
            "A is M x K (transA=True: K x M), B is N x K (transB=True: K x N), C is M x N",
        ));
    }
    if k % depth != 0 {
        return Err(format!("k is {k}, and an instruction takes {depth} of {dtype}").into());
    }
    let (c, c_name) = (Fragments::from_region(c, 2, cx)?, &c.buffer.name);
    if result == DType::FLOAT16 && !c.in_words(2, cx) {
        return Err(
            format!("the layout of {c_name} does not have 2 neighbours of a row in one register").into(),
        );
    }
    let (a, a_by_rows) = if a.buffer.scope() == "local" {
        if turned_a {
            return Err("A in registers is M x K: transA=False".into());
        }
        let per_word = 32 / bits;
        let fragments = Fragments::from_region(a, per_word, cx)?;
        if !fragments.in_words(per_word, cx) {
            return Err(format!(
                "the layout of {} does not have {per_word} neighbours of a row in one register",
                a.buffer.name
            )
            .into());
        }
        (Left::Registers(fragments), false)
    } else {
        let matrix = SharedMatrix::from_region(a, turned_a, cx)?;
        let walk = Swizzled::from_matrix(&matrix, ROWS, depth, cx)?;
        let by_rows = walk.by_rows;
        (Left::Shared(matrix, walk), by_rows)
    };
    let b = SharedMatrix::from_region(b, turned_b, cx)?;
    // The widest instruction that the columns are a multiple of and whose pieces of B a descriptor describes.
    let takes = |columns: &i128| {
        n % columns == 0 && (!integers || matches!(columns, 8 | 16 | 24 | 32) || columns % 16 == 0)
    };
    let mut chosen = Err(format!("{n} columns are no multiple of 8"));
    for columns in (1..=32).rev().map(|eights| eights * 8).filter(takes) {
        chosen = Swizzled::from_matrix(&b, columns, depth, cx).map(|walk| (columns, walk));
        if chosen.is_ok() {
            break;
        }
    }
    let (columns, b_walk) = chosen?;
    if (a_by_rows || b_walk.by_rows) && bits != 16 {
        return Err(format!("wgmma of {dtype} reads matrices whose k is contiguous in shared memory").into());
    }
    let accumulates = match call.scalar("accum") {
        Some(e) => fold::cast(e.clone(), DType::INT32),
        None => Expr::int32(0),
    };
    Ok(Box::new(Product {
        c,
        a,
        b,
        b_walk,
        dtype,
        m,
        n,
        k,
        columns,
        depth,
        accumulates,
    }))
}

impl Fragments {
    /// Whether neighbours of a row that make up a register of 32 bits lie in one word.
    fn in_words(&self, per_word: i128, cx: &mut Context<'_>) -> bool {
        let first = |table: &[i128]| table.iter().all(|place| place % per_word == 0);
        let runs = self.columns.chunks(per_word as usize);
        let neighbours = |run: &[i128]| {
            let expected = (0..).map(|i| run[0] + i);
            run[0] % per_word == 0 && run.iter().copied().zip(expected).all(|(a, b)| a == b)
        };
        is_multiple(&self.start, per_word, cx.facts)
            && first(&self.rows)
            && runs.into_iter().all(neighbours)
            && self.buffer.elem_offset.is_none()
    }

    /// The same memory as words of 32 bits, and its declaration.
    fn words(&self, per_word: i128, span: Span) -> (Buffer, Stmt) {
        let buffer = &self.buffer;
        let elements =
            crate::layout::Layout::from_buffer(buffer).map_or_else(|| Expr::int32(1), |l| l.memory_span());
        let per = Expr::constant(elements.dtype, per_word);
        let size = fold::floordiv(elements, per);
        let name = format!("{}_words", buffer.name);
        let flat = BufferNode::flat(name, buffer.data.clone(), DType::UINT32, vec![size], span);
        let words = Buffer::new(flat);
        let declare = Stmt::new(StmtKind::DeclBuffer(words.clone()), span);
        (words, declare)
    }
}

impl Emits for Product {
    fn explain(&self) -> Explanation {
        let (rows, columns, steps) = (self.m / ROWS, self.n / self.columns, self.k / self.depth);
        let from = match self.a {
            Left::Shared(..) => "shared memory",
            Left::Registers(_) => "registers",
        };
        Explanation::default().line(format!(
            "{rows} x {columns} x {steps} instructions m{ROWS}n{}k{} of {}, A from {from}",
            self.columns,
            self.depth,
            type_name(self.dtype)
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let per_word = 32 / i128::from(self.dtype.bits);
        // Two sums of float16 are one register.
        let sums = self.c.buffer.dtype;
        let per_sum = if sums == DType::FLOAT16 { 2 } else { 1 };
        let (c_flat, c_declare) = match per_sum {
            1 => flat_view(&self.c.buffer, span),
            _ => self.c.words(per_sum, span),
        };
        out.push(c_declare);
        let mut describe = |matrix: &SharedMatrix, walk: &Swizzled| {
            let (stmts, first) = walk.declare(&matrix.buffer, span);
            stmts.into_iter().for_each(|stmt| out.push(stmt));
            first
        };
        let b_first = describe(&self.b, &self.b_walk);
        let a_first = match &self.a {
            Left::Shared(matrix, walk) => describe(matrix, walk),
            Left::Registers(_) => Expr::int32(0),
        };
        let words = match &self.a {
            Left::Shared(..) => None,
            Left::Registers(fragments) => {
                let (words, declare) = fragments.words(per_word, span);
                out.push(declare);
                Some(words)
            }
        };
        out.push(Op::PtxWgmmaFence.call().at(span).stmt());
        let by_rows = |walk: &Swizzled| i32::from(walk.by_rows);
        let output = sums.to_string();
        // Row by row of tiles, each with all of k, so that an accumulator's instructions follow each other.
        let tiles = (0..self.m / ROWS).flat_map(|i| (0..self.n / self.columns).map(move |j| (i, j)));
        for (i, j) in tiles {
            for step in 0..self.k / self.depth {
                let accumulators = (0..self.columns / 8).flat_map(|eight| {
                    let column = j * self.columns + eight * 8;
                    [(0, 0), (0, 1), (8, 0), (8, 1)].map(|(row, e)| (i * ROWS + row, column + e))
                });
                let accumulators: Vec<Expr> = accumulators
                    .filter(|(_, column)| column % per_sum == 0)
                    .map(|(row, column)| {
                        let at = self.c.at(row, column);
                        let per = Expr::constant(at.dtype, per_sum);
                        address(&c_flat, vec![fold::floordiv(at, per)], span)
                    })
                    .collect();
                let b_place =
                    self.b.rows[(j * self.columns) as usize] + self.b.k[(step * self.depth) as usize];
                let first = step == 0;
                let call = match self.a {
                    Left::Shared(..) => Op::PtxWgmmaMmaAsyncSs,
                    Left::Registers(_) => Op::PtxWgmmaMmaAsyncRs,
                }
                .call()
                .set("M", ROWS as i32)
                .set("N", self.columns as i32)
                .set("K", self.depth as i32)
                .set("in_dtype", &type_name(self.dtype))
                .set("out_dtype", &output)
                .set("transB", by_rows(&self.b_walk))
                .set("scaleA", 1)
                .set("scaleB", 1)
                .set(
                    "scaleD",
                    if first {
                        self.accumulates.clone()
                    } else {
                        Expr::int32(1)
                    },
                )
                .set("descB", moved(&b_first, b_place / 128))
                .list("accums", accumulators)
                .at(span);
                out.push(match (&self.a, &words) {
                    (Left::Shared(matrix, walk), _) => {
                        let place = matrix.rows[(i * ROWS) as usize] + matrix.k[(step * self.depth) as usize];
                        call.set("transA", by_rows(walk))
                            .set("descA", moved(&a_first, place / 128))
                            .stmt()
                    }
                    (Left::Registers(fragments), Some(words)) => {
                        let half = self.depth / 2;
                        let word = |(row, column): (i128, i128)| {
                            let at = fragments.at(i * ROWS + row, step * self.depth + column);
                            let per = Expr::constant(at.dtype, per_word);
                            address(words, vec![fold::floordiv(at, per)], span)
                        };
                        let registers = [(0, 0), (8, 0), (0, half), (8, half)].map(word);
                        call.set("transA", 0).list("a_regs", registers).stmt()
                    }
                    // `words` was made above for registers.
                    (Left::Registers(_), None) => Stmt::nop(),
                });
            }
        }
    }
}
