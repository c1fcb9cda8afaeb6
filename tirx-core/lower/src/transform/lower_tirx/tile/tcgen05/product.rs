//! `gemm_async` → `tcgen05`: a product by the tensor cores of Blackwell, into tensor memory.
//!
//! **Idea.** The rows, columns and k of the product are cut into instructions, as large as the layouts of C, A and B allow. Each
//! of the three layouts must be the one that an instruction of this size has: C in tensor memory
//! ([`datapath`](super::datapath)), A and B in shared memory as matrix descriptors describe them ([`matrix`](super::super::matrix)), or A
//! in tensor memory. The order of dimensions (`transA`, `transB`) says what rows and k are; which of them is contiguous follows
//! from the layout. Descriptors are formed at the call and advanced by adding.
//!
//! **Conditions.** Scope thread with one thread, or warp, of which one thread issues. A and B of one dtype, or two of the same
//! kind. With `cta_group=2` the regions are a CTA's own: its rows of A and C, half of B's rows, all columns of C; the first of
//! the two CTAs issues. Scale factors `SFA`, `SFB` lie in tensor memory ([`scales`](super::scales)).
//!
//! **Cost.** One instruction for 16 (f16), 8 (tf32), 32 (8 bits) or 64 (4 bits) of k and up to 256 columns. It is complete when
//! a barrier says so: `T.ptx.tcgen05.commit(bar)`, then a wait at `bar`.

use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::matrix::{Descriptor, SharedMatrix, Walk};
use super::super::option::{OptionKind, TileOption};
use super::super::predicates::scope_among;
use super::super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use super::datapath::{Accumulator, DataPath};
use super::memory::TensorMemory;
use super::scales::{Scales, with_bytes};
use crate::intrin::Op;
use crate::intrin::rows::tcgen05::{Instruction, elements_of_k};
use crate::ir::{BinOp, BufferRegion, DType, ExecScope, Expr, Stmt, TileOp};
use crate::source::Span;

pub(super) const VARIANT: Variant = Variant {
    ops: &[TileOp::GemmAsync],
    name: "tcgen05",
    arch: super::BLACKWELL,
    options: OPTIONS,
    completion: Completion::TcgenCommit,
    predicates: &[
        Predicate {
            name: "one thread, or a warp",
            holds: issued_once,
        },
        Predicate {
            name: "C in tensor memory, B in shared memory, A in either",
            holds: spaces,
        },
    ],
    plan,
    doc: "tcgen05.mma: tensor cores, into tensor memory",
    ..Variant::DEFAULT
};

const fn option(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    doc: &'static str,
) -> TileOption {
    TileOption {
        name,
        kind,
        default,
        doc,
    }
}

const OPTIONS: &[TileOption] = &[
    option(
        "cta_group",
        OptionKind::Int,
        "1",
        "how many CTAs work together: 1 or 2",
    ),
    option(
        "mma_m",
        OptionKind::Int,
        "",
        "rows of an instruction, of all its CTAs; with mma_n",
    ),
    option(
        "mma_n",
        OptionKind::Int,
        "",
        "columns of an instruction; with mma_m",
    ),
    option(
        "weight_stationary",
        OptionKind::Flag,
        "by C's layout",
        "the form tcgen05.mma.ws",
    ),
    option(
        "is_AB_tf32",
        OptionKind::Flag,
        "False",
        "float32 operands are read as tf32",
    ),
    option(
        "descI",
        OptionKind::Value,
        "",
        "the instruction descriptor of an MMA with scale factors, if the caller has encoded it",
    ),
    SHARED_DESCRIPTORS,
];

/// An option of every product from shared memory.
pub(in super::super) const SHARED_DESCRIPTORS: TileOption = option(
    "smem_desc",
    OptionKind::Word(&["hoist", "local_hoist", "recompute", "encode"]),
    "hoist",
    "the point at which TVM forms the matrix descriptors; this compiler always forms them at the call",
);

/// The statement, by one thread of a warp.
pub(super) fn elected(body: Stmt, span: Span) -> Stmt {
    let elect = Op::PtxElectSync.call().at(span).dtype(DType::UINT32).build();
    let zero = Expr::constant(elect.dtype, 0);
    let condition = Expr::binary(BinOp::Ne, elect, zero);
    Stmt::if_else(condition, body, None, span)
}

/// Predicate: one thread issues. That it is one is the caller's business at scope thread, where a condition chooses it that
/// may be a value computed before; the simulator reports several.
pub(super) fn issued_once(_: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<(), Decline> {
    scope_among(cx, &[ExecScope::Thread, ExecScope::Warp])
}

fn spaces(call: &PrimitiveCall<'_>, _: &mut Context<'_>) -> Result<(), Decline> {
    let (c, a, b) = (call.region("C")?, call.region("A")?, call.region("B")?);
    let scope = |r: &BufferRegion| r.buffer.scope().to_string();
    let fits = scope(c) == "tmem"
        && scope(b).starts_with("shared")
        && (scope(a) == "tmem" || scope(a).starts_with("shared"));
    if fits {
        return Ok(());
    }
    Err(format!(
        "C is in {}, A in {}, B in {} memory",
        scope(c),
        scope(a),
        scope(b)
    )
    .into())
}

/// A in shared or in tensor memory.
enum Left {
    Shared(SharedMatrix),
    Tensor(TensorMemory),
}

/// The operands, as far as they do not depend on the size of an instruction.
struct Operands {
    c: Accumulator,
    a: Left,
    b: SharedMatrix,
    /// Rows of A in each CTA, columns of C, k.
    extents: [i128; 3],
    pair: bool,
}

/// The size of an instruction, for which all layouts fit.
#[derive(Clone, Copy)]
struct Tile {
    /// Rows of each CTA, and columns.
    rows: i128,
    columns: i128,
    k: i128,
    weight_stationary: bool,
    /// The instruction descriptor.
    bits: u32,
    a: Option<Walk>,
    b: Walk,
}

/// One instruction.
struct Step {
    c: Expr,
    /// Address in tensor memory, or units of 16 bytes from the matrix's first element.
    a: Expr,
    b: Expr,
    accumulates: Expr,
    descriptor: Expr,
    /// Addresses of the scale factors of A and B.
    scales: Option<(Expr, Expr)>,
}

struct ProductPlan {
    dtypes: [String; 3],
    scales: Option<(String, String)>,
    tile: Tile,
    pair: bool,
    elect: bool,
    a: Option<(SharedMatrix, Walk, Expr)>,
    b: (SharedMatrix, Walk, Expr),
    steps: Vec<Step>,
    kind: &'static str,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (c, a, b) = (call.region("C")?, call.region("A")?, call.region("B")?);
    let group = call.option_int("cta_group").unwrap_or(1);
    if !matches!(group, 1 | 2) {
        return Err(Decline::mistake(
            format!("gemm_async: cta_group must be 1 or 2, found {group}"),
            "cta_group=2 is a product of two CTAs of a cluster",
        ));
    }
    if [a, b].iter().any(|r| r.buffer.dtype == DType::FLOAT32) && !call.option_flag("is_AB_tf32") {
        return Err(Decline::mistake(
            "gemm_async: A or B is float32, of which tensor cores read the 19 bits of tf32",
            "if this is intended, write is_AB_tf32=True",
        ));
    }
    let dtypes = [c, a, b].map(|r| operand_dtype(r, call));
    let [d_dtype, a_dtype, b_dtype] = [&*dtypes[0], &*dtypes[1], &*dtypes[2]];
    let factors = match (call.optional_region("SFA"), call.optional_region("SFB")) {
        (Some(a), Some(b)) => Some((a, b)),
        (None, None) => None,
        _ => {
            return Err(Decline::mistake(
                "gemm_async: a product has scale factors of A and of B, or none",
                "pass both SFA and SFB",
            ));
        }
    };
    let scales = factors.map(|(a, b)| (a.buffer.dtype.to_string(), b.buffer.dtype.to_string()));
    let of_scales = scales.as_ref().map(|(a, b)| (&**a, &**b));
    let mut instruction = Instruction::dense([d_dtype, a_dtype, b_dtype], 0, 0, 0);
    instruction.scales = of_scales;
    instruction.pair = group == 2;
    let kind = instruction.kind()?;
    if matches!(kind, "f8f6f4" | "mxf8f6f4") && [a, b].iter().any(|r| r.buffer.dtype.bits < 8) {
        return Err(
            "elements of fewer than 8 bits are padded to bytes in products of this kind, which no layout of \
                    packed elements describes"
                .into(),
        );
    }
    instruction.k = elements_of_k(kind);
    let operands = operands(call, [c, a, b], group == 2, cx)?;
    let tile = choose(call, &operands, &mut instruction)?;
    let [rows, columns, k] = operands.extents;
    let steps = k / tile.k;
    let blocks = match kind {
        "mxf4nvf4" => 4,
        "mxf4" => 2,
        _ => 1,
    };
    let scales_of = match factors {
        Some((a, b)) => Some((
            Scales::from_region(a, rows, steps, blocks, cx)?,
            Scales::from_region(b, columns, steps, blocks, cx)?,
        )),
        None => None,
    };
    let descriptor = descriptor_of(call, tile, scales_of.is_some())?;
    let accumulates = match call.scalar("accum") {
        None => Expr::int32(0),
        Some(e) => match e.as_int() {
            Some(value) => Expr::int32((value != 0).into()),
            None => e.clone().cast(DType::INT32),
        },
    };
    let start_of = |matrix: &SharedMatrix, cx: &mut Context<'_>| -> Result<Expr, String> {
        matrix.aligned(cx)?;
        Ok(matrix.start_pieces(cx))
    };
    let b_start = start_of(&operands.b, cx)?;
    let a_start = match &operands.a {
        Left::Shared(matrix) => Some(start_of(matrix, cx)?),
        Left::Tensor(_) => None,
    };
    let b_rows = tile.columns / i128::from(group);
    let mut all = Vec::new();
    for m in 0..rows / tile.rows {
        for n in 0..columns / tile.columns {
            for step in 0..steps {
                let (lane, column) = operands.c.place(m * tile.rows, n * tile.columns);
                let at = |table: &[i128], i: i128| table[i as usize];
                let a = match &operands.a {
                    Left::Shared(x) => {
                        let bits = at(&x.rows, m * tile.rows) + at(&x.k, step * tile.k);
                        Expr::int32((bits / 128) as i32)
                    }
                    Left::Tensor(x) => {
                        let lane = x.lanes[0][(m * tile.rows) as usize];
                        let bits =
                            x.columns[1][(step * tile.k) as usize] + x.columns[0][(m * tile.rows) as usize];
                        x.address(lane, bits / 32, cx)
                    }
                };
                let b_bits = at(&operands.b.rows, n * b_rows) + at(&operands.b.k, step * tile.k);
                let (scales, bytes) = match &scales_of {
                    Some((a, b)) => {
                        let (a, a_byte) = a.at(m * tile.rows, step, cx);
                        let (b, b_byte) = b.at(n * tile.columns, step, cx);
                        (Some((a, b)), Some((a_byte, b_byte)))
                    }
                    None => (None, None),
                };
                all.push(Step {
                    c: operands.c.memory.address(lane, column, cx),
                    a,
                    b: Expr::int32((b_bits / 128) as i32),
                    accumulates: if step == 0 {
                        accumulates.clone()
                    } else {
                        Expr::int32(1)
                    },
                    descriptor: with_bytes(&descriptor, bytes),
                    scales,
                });
            }
        }
    }
    let Operands { a, b, pair, .. } = operands;
    Ok(Box::new(ProductPlan {
        a: match (a, tile.a, a_start) {
            (Left::Shared(matrix), Some(walk), Some(start)) => Some((matrix, walk, start)),
            _ => None,
        },
        b: (b, tile.b, b_start),
        elect: call.scope == ExecScope::Warp,
        steps: all,
        dtypes,
        scales,
        tile,
        pair,
        kind,
    }))
}

/// The name of an operand's dtype for the intrinsic.
fn operand_dtype(region: &BufferRegion, call: &PrimitiveCall<'_>) -> String {
    let dtype = region.buffer.dtype;
    let operand = region.buffer.scope() != "tmem" || !is_accumulator(region, call);
    match operand && call.option_flag("is_AB_tf32") && dtype.bits == 32 {
        true => "tf32".to_string(),
        false => dtype.to_string(),
    }
}

fn is_accumulator(region: &BufferRegion, call: &PrimitiveCall<'_>) -> bool {
    call.region("C").is_ok_and(|c| std::ptr::eq(c, region))
}

fn operands(
    call: &PrimitiveCall<'_>,
    [c, a, b]: [&BufferRegion; 3],
    pair: bool,
    cx: &mut Context<'_>,
) -> Result<Operands, Decline> {
    let (turned_a, turned_b) = (call.flag("transA")?, call.flag("transB")?);
    let left = if a.buffer.scope() == "tmem" {
        if turned_a {
            return Err("A in tensor memory cannot be transposed".into());
        }
        Left::Tensor(unbatched(TensorMemory::from_region(a, cx)?)?)
    } else {
        Left::Shared(SharedMatrix::from_region(a, turned_a, cx)?)
    };
    let (rows, k) = match &left {
        Left::Shared(matrix) => (matrix.rows.len(), matrix.k.len()),
        Left::Tensor(memory) => (memory.extents[0] as usize, memory.extents[1] as usize),
    };
    let right = SharedMatrix::from_region(b, turned_b, cx)?;
    let c = Accumulator::from_memory(TensorMemory::from_region(c, cx)?, rows as i128)?;
    let columns = c.columns();
    let b_rows = right.rows.len() as i128 * if pair { 2 } else { 1 };
    if right.k.len() != k || b_rows != columns {
        let halves = if pair { " (of two CTAs)" } else { "" };
        return Err(format!(
            "C is {rows} x {columns}, A {rows} x {k}, B {b_rows} x {}{halves}; B is N x K, with transB=True K x N",
            right.k.len()
        )
        .into());
    }
    Ok(Operands {
        extents: [rows as i128, columns, k as i128],
        a: left,
        b: right,
        c,
        pair,
    })
}

/// A region `(2, rows, k)` of both halves of the lanes as rows and k with a copy.
fn unbatched(mut a: TensorMemory) -> Result<TensorMemory, String> {
    if a.extents.len() == 3 && a.extents[0] == 2 && a.lanes[0] == [0, 64] && a.columns[0] == [0, 0] {
        a.extents.remove(0);
        a.lanes.remove(0);
        a.columns.remove(0);
        a.copies.push((2, 64));
    }
    if a.extents.len() != 2 {
        return Err(format!("A has the extents {:?}, and a matrix has two", a.extents));
    }
    Ok(a)
}

/// The largest instruction for which all layouts fit, or that of `mma_m` and `mma_n`.
fn choose(
    call: &PrimitiveCall<'_>,
    operands: &Operands,
    instruction: &mut Instruction<'_>,
) -> Result<Tile, Decline> {
    let [rows, columns, k] = operands.extents;
    let group = if operands.pair { 2 } else { 1 };
    let explicit = match (call.option_int("mma_m"), call.option_int("mma_n")) {
        (Some(m), Some(n)) => Some((i128::from(m), i128::from(n))),
        (None, None) => None,
        _ => {
            return Err(Decline::mistake(
                "gemm_async: mma_m and mma_n are given together",
                "both, or none",
            ));
        }
    };
    let mut sizes: Vec<(i128, i128)> = Vec::new();
    match explicit {
        Some((m, n)) => sizes.push((m / group, n)),
        None => {
            for m in [128, 64, 32] {
                let all = (8..=columns.min(256)).rev().step_by(1);
                sizes.extend(all.filter(|n| columns % n == 0 && n % 8 == 0).map(|n| (m, n)));
            }
        }
    }
    sizes.retain(|(m, n)| *m > 0 && *n > 0 && rows % m == 0 && columns % n == 0);
    let stationary: Vec<bool> = match call.option("weight_stationary") {
        Some(_) => vec![call.option_flag("weight_stationary")],
        None => vec![false, true],
    };
    if k % instruction.k != 0 {
        return Err(format!(
            "k is {k}, and an instruction of this kind takes {}",
            instruction.k
        )
        .into());
    }
    let mut reason: Option<String> = None;
    for (m, n) in sizes {
        for ws in &stationary {
            match fits(operands, instruction, m, n, *ws) {
                Ok(tile) => return Ok(tile),
                Err(why) => {
                    reason.get_or_insert(why);
                }
            }
        }
    }
    Err(reason
        .unwrap_or_else(|| format!("no instruction divides {rows} rows and {columns} columns"))
        .into())
}

fn fits(
    operands: &Operands,
    instruction: &mut Instruction<'_>,
    rows: i128,
    columns: i128,
    weight_stationary: bool,
) -> Result<Tile, String> {
    let group = if operands.pair { 2 } else { 1 };
    let path = DataPath::from_rows(rows, operands.pair, weight_stationary);
    let path = path.ok_or_else(|| format!("no instruction has {rows} rows"))?;
    if weight_stationary
        && (operands.pair || instruction.scales.is_some() || !matches!(columns, 64 | 128 | 256))
    {
        return Err(
            "tcgen05.mma.ws is for one CTA, without scale factors, with 64, 128 or 256 columns".to_string(),
        );
    }
    let k = instruction.k;
    let b = operands.b.walk(columns / group, k)?;
    let a = match &operands.a {
        Left::Shared(matrix) => Some(matrix.walk(rows, k)?),
        Left::Tensor(memory) => {
            if !path.holds_left(memory, rows, k) {
                return Err(format!(
                    "A does not lie in tensor memory as an instruction of {rows} rows reads it: {}; \
                     TMEMPool.alloc_tcgen05_mma_A gives the layout",
                    path.describe()
                ));
            }
            None
        }
    };
    instruction.m = rows * group;
    instruction.n = columns;
    instruction.trans_a = a.is_some_and(|walk| walk.by_rows);
    instruction.trans_b = b.by_rows;
    let bits = instruction.descriptor()?;
    let lane = operands.c.memory.first_lane().as_int();
    if !path.holds(&operands.c, rows, columns) || !lane.is_some_and(|lane| path.may_begin(lane)) {
        return Err(format!(
            "C does not lie as an instruction of {rows} rows and {columns} columns writes it: {}; \
             TMEMPool.alloc_tcgen05_mma_D and tmem_datapath_layout give layouts",
            path.describe()
        ));
    }
    let tf32 = instruction.kind()? == "tf32";
    if tf32 && (instruction.trans_a || instruction.trans_b) {
        return Err("MN-major operands of tf32 need a swizzle in units of 32 bytes".to_string());
    }
    Ok(Tile {
        rows,
        columns,
        k,
        weight_stationary,
        bits,
        a,
        b,
    })
}

/// The instruction descriptor: the caller's, or that of the tile.
fn descriptor_of(call: &PrimitiveCall<'_>, tile: Tile, scaled: bool) -> Result<Expr, Decline> {
    match call.option_expr("descI") {
        Some(_) if !scaled => Err(Decline::mistake(
            "gemm_async: descI is for products with scale factors",
            "leave it out: the compiler encodes the instruction descriptor",
        )),
        Some(e) => Ok(e.cast(DType::UINT32)),
        None => Ok(Expr::constant(DType::UINT32, tile.bits.into())),
    }
}

impl Emits for ProductPlan {
    fn explain(&self) -> Explanation {
        let tile = self.tile;
        let group = if self.pair { 2 } else { 1 };
        let ws = if tile.weight_stationary { ".ws" } else { "" };
        Explanation::default().line(format!(
            "{} × tcgen05.mma{ws}.kind::{} of {}x{}x{}{}",
            self.steps.len(),
            self.kind,
            tile.rows * group,
            tile.columns,
            tile.k,
            if self.pair { ", two CTAs" } else { "" }
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let mut stmts = Vec::new();
        let mut describe = |(matrix, walk, start): &(SharedMatrix, Walk, Expr)| {
            let (descriptor, declare) = Descriptor::new(matrix, *walk, start.clone(), span);
            stmts.extend(declare);
            descriptor
        };
        let a = self.a.as_ref().map(&mut describe);
        let b = describe(&self.b);
        for step in &self.steps {
            let op = match step.scales {
                Some(_) => Op::PtxTcgen05MmaBlockScale,
                None => Op::PtxTcgen05Mma,
            };
            let mut call = op
                .call()
                .set("d_dtype", &self.dtypes[0])
                .set("a_dtype", &self.dtypes[1])
                .set("b_dtype", &self.dtypes[2])
                .set("d_tmem_addr", &step.c)
                .set(
                    "a_operand",
                    a.as_ref().map_or_else(|| step.a.clone(), |a| a.moved(&step.a)),
                )
                .set("b_desc", b.moved(&step.b))
                .set("i_desc", &step.descriptor)
                .set("use_a_tmem", Expr::bool(self.a.is_none()))
                .set("cta_group", if self.pair { 2 } else { 1 })
                .set("enable_input_d", &step.accumulates)
                .at(span);
            if let (Some((sfa, sfb)), Some((a_dtype, b_dtype))) = (&step.scales, &self.scales) {
                call = call
                    .set("sfa_dtype", a_dtype)
                    .set("sfb_dtype", b_dtype)
                    .set("sfa_tmem_addr", sfa)
                    .set("sfb_tmem_addr", sfb);
            } else {
                let masks = if self.pair { 8 } else { 4 };
                call = call
                    .set("weight_stationary", self.tile.weight_stationary)
                    .list("disable_output_lane", vec![Expr::int32(0); masks]);
            }
            stmts.push(call.stmt());
        }
        let body = Stmt::seq(stmts);
        out.push(if self.elect { elected(body, span) } else { body });
    }
}
