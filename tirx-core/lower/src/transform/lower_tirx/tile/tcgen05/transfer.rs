//! `copy_async` → `tcgen05_ldst`: between the registers of a warpgroup and tensor memory.
//!
//! **Idea.** The register side's layout says which thread has an element in which register, the other side's which lane
//! and column has it. Instructions (`tcgen05.ld`, `tcgen05.st`) connect registers and cells in the patterns of five shapes; the
//! first shape is taken whose pattern is that of the region, with as many columns at a time as fit.
//!
//! **Conditions.** Scope warpgroup, of which warps as a whole may be left out; elements of 4, 8, 16 or 32 bits of one dtype on both sides;
//! constant extents; a register side whose layout has thread axes. 16-bit elements lie two in a cell, or one in a cell's
//! lower half (`pack::16b`, `unpack::16b`).
//!
//! **Cost.** One instruction for 128 registers of a thread. The caller waits: `T.ptx.tcgen05.wait.ld()` before
//! registers are read, `T.ptx.tcgen05.wait.st()` before other threads are told that the cells are written.

use super::super::active::LANES;
use super::super::build::address;
use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::multiples::divided;
use super::super::places::{Places, Tables};
use super::super::predicates::SAME_ELEMENTS;
use super::super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use super::memory::{CELL, TensorMemory};
use crate::intrin::Op;
use crate::ir::{Buffer, BufferNode, BufferRegion, DType, ExecScope, Expr, Stmt, StmtKind, TileOp};
use crate::layout::axes::{Level, MEMORY};

pub(super) const VARIANT: Variant = Variant {
    ops: &[TileOp::CopyAsync],
    name: "tcgen05_ldst",
    aliases: &["tmem<->local"],
    arch: super::BLACKWELL,
    completion: Completion::TcgenWaitLd,
    predicates: &[
        Predicate {
            name: "between registers and tensor memory",
            holds: |call, _| sides(call).map(drop),
        },
        Predicate {
            name: "scope warpgroup",
            holds: |call, _| match call.scope {
                ExecScope::Warpgroup => Ok(()),
                other => Err(format!(
                    "tensor memory is reached by warpgroups, the scope is {}",
                    other.name()
                )
                .into()),
            },
        },
        // A warp reaches its own lanes alone, so that some warps of the warpgroup may do their part without the others.
        Predicate {
            name: "warps are active as a whole",
            holds: |_, cx| Ok(cx.is_full(ExecScope::Warp)?),
        },
        SAME_ELEMENTS,
    ],
    plan,
    doc: "tcgen05.ld and tcgen05.st: each warp reaches 32 lanes",
    ..Variant::DEFAULT
};

/// The register and the tensor memory side, and whether it is a load.
fn sides<'a>(call: &PrimitiveCall<'a>) -> Result<(&'a BufferRegion, &'a BufferRegion, bool), Decline> {
    let (dst, src) = call.moved()?;
    match (src.buffer.scope(), dst.buffer.scope()) {
        ("tmem", "local") => Ok((dst, src, true)),
        ("local", "tmem") => Ok((src, dst, false)),
        (from, to) => Err(format!("from {from} to {to} memory; one must be tmem, the other local").into()),
    }
}

/// A shape of the instructions (PTX ISA, "Data movement shape").
struct Shape {
    name: &'static str,
    /// Lanes of tensor memory that it covers.
    lanes: i128,
    /// Columns and registers of one repetition.
    columns: i128,
    registers: i128,
    /// The most repetitions.
    most: i128,
    /// Lane and column of a thread's register.
    place: fn(i128, i128) -> (i128, i128),
}

/// In the order in which they are tried.
const SHAPES: &[Shape] = &[
    Shape {
        name: "32x32b",
        lanes: 32,
        columns: 1,
        registers: 1,
        most: 128,
        place: |thread, register| (thread, register),
    },
    Shape {
        name: "16x256b",
        lanes: 16,
        columns: 8,
        registers: 4,
        most: 32,
        place: |thread, register| {
            (
                thread / 4 + register / 2 % 2 * 8,
                thread % 4 * 2 + register % 2 + register / 4 * 8,
            )
        },
    },
    Shape {
        name: "16x128b",
        lanes: 16,
        columns: 4,
        registers: 2,
        most: 64,
        place: |thread, register| (thread / 4 + register % 2 * 8, thread % 4 + register / 2 * 4),
    },
    Shape {
        name: "16x64b",
        lanes: 16,
        columns: 2,
        registers: 1,
        most: 128,
        place: |thread, register| (thread / 4 + thread % 2 * 8, thread / 2 % 2 + register * 2),
    },
];

/// One instruction.
#[derive(Debug, PartialEq)]
struct Step {
    /// The first lane of those that a warp reaches, and the first column, in cells from the region's first.
    lane: i128,
    column: i128,
    repetitions: i128,
    /// The first register, from the region's first.
    register: i128,
}

/// See [`cells_of`].
struct Cells {
    /// Lanes and columns.
    lanes: usize,
    columns: usize,
    /// For each cell the warp, the thread and the register that it goes to, as one number; -1 where the region has none.
    held: Vec<i64>,
    packed: bool,
}

const WARPGROUP: i128 = 4 * LANES;
/// Registers that one thread could have, for numbering.
const REGISTERS: i64 = 1 << 20;

struct TransferPlan {
    loads: bool,
    shape: &'static Shape,
    steps: Vec<Step>,
    packed: bool,
    /// Address of each step.
    addresses: Vec<Expr>,
    registers: Buffer,
    /// The region's first register.
    first: Expr,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (local, memory, loads) = sides(call)?;
    let memory = TensorMemory::from_region(memory, cx)?;
    let bits = memory.bits;
    if !matches!(bits, 4 | 8 | 16 | 32) {
        return Err(
            format!("elements have {bits} bits, and cells of tensor memory take 4, 8, 16 or 32").into(),
        );
    }
    let name = &local.buffer.name;
    let places = Places::from_region(local, cx)?;
    if places.swizzle.is_some() {
        return Err(format!("the layout of {name} is a swizzle").into());
    }
    if places.extents != memory.extents {
        return Err("the extents of dst and src differ".into());
    }
    let fixed = memory.first_lane().as_int();
    let Some(first_lane) = fixed.filter(|lane| *lane % 16 == 0) else {
        return Err("the region does not begin at a lane known to be a multiple of 16".into());
    };
    let (threads, registers) = (places.threads(Level::Warpgroup, name)?, places.tables(MEMORY));
    let direct = cells_of(&memory, &threads, &registers, first_lane);
    let spread = || cells_of(&memory.spread()?, &threads, &registers, 0).ok();
    let found = match direct.map(|cells| (decompose(&cells, 32), cells)) {
        Ok((Some(found), cells)) => Ok((found, cells)),
        Ok((None, _)) => Err(None),
        Err(why) => Err(Some(why)),
    };
    let found = found.or_else(|why| {
        let cells = spread().ok_or(why)?;
        let found = decompose(&cells, 16).ok_or(None)?;
        Ok((found, cells))
    });
    let ((shape, steps), cells) = found.map_err(|why: Option<String>| {
        why.unwrap_or_else(|| {
            format!(
                "no shape of tcgen05.ld and tcgen05.st (32x32b, 16x64b, 16x128b, 16x256b) connects the registers of {name} \
                 with the lanes and columns; tcgen05_atom_layout and wg_local_layout give layouts that one does"
            )
        })
    })?;
    let (column, within) = memory.first_column(cx);
    if !within.is_int(0) {
        return Err("the region does not begin at a column known to be whole".into());
    }
    let first = places.first(MEMORY);
    let per_register = CELL / bits;
    let Some(first) = divided(&first, per_register, cx.facts) else {
        return Err(format!("the region of {name} does not begin at a whole register").into());
    };
    // The lane of the region is in the steps.
    let addresses = steps
        .iter()
        .map(|step| memory.address_at(column.clone(), step.lane - first_lane, step.column, cx))
        .collect();
    Ok(Box::new(TransferPlan {
        loads,
        shape,
        packed: cells.packed,
        addresses,
        registers: words(&local.buffer, bits)?,
        first,
        steps,
    }))
}

/// Who holds what is in each cell, from the first one of the region on.
fn cells_of(
    memory: &TensorMemory,
    threads: &Tables,
    registers: &Tables,
    first_lane: i128,
) -> Result<Cells, String> {
    let last = |tables: &[Vec<i128>]| -> i128 {
        let last = |t: &Vec<i128>| t.iter().copied().max().unwrap_or(0);
        tables.iter().map(last).sum()
    };
    let (lanes, columns) = (
        last(&memory.lanes) + first_lane + 1,
        last(&memory.columns) / CELL + 1,
    );
    if !(1..=128).contains(&lanes) || !(1..=512).contains(&columns) {
        return Err("the region leaves tensor memory, which has 128 lanes and 512 columns".into());
    }
    // One 16-bit element in each cell.
    let halves = memory.columns.iter().flatten().all(|place| place % CELL == 0);
    let packed = memory.bits == 16 && halves && columns > 1;
    let (lanes, columns) = (lanes as usize, columns as usize);
    let mut held = vec![-1; lanes * columns];
    // Elements have 4 to 32 bits, powers of two; there are as many elements as cells of tensor memory, and shifts are cheap.
    let (bits, per) = (memory.bits.ilog2(), (CELL / memory.bits).ilog2());
    let hold = &mut |element: Element| {
        let [lane, place, thread, register] = element;
        let mut cell = place / CELL as i64;
        // The element's place in its cell must be that in its register.
        let (mut within, part) = ((place % CELL as i64) >> bits, register & ((1 << per) - 1));
        if packed {
            within = cell % 2;
            cell -= within;
        }
        if within != part || lane < 0 || place < 0 || !(0..WARPGROUP as i64).contains(&thread) {
            return Err("elements that share a register do not share a cell".to_string());
        }
        let holder = thread * REGISTERS + (register >> per);
        let held = &mut held[lane as usize * columns + cell as usize];
        if *held >= 0 && *held != holder {
            return Err("elements that share a cell do not share a register".to_string());
        }
        *held = holder;
        Ok(())
    };
    let tables = [&memory.lanes, &memory.columns, threads, registers];
    let parts = (0..memory.extents.len()).map(|dim| parts_of(tables.map(|t| &t[dim][..])));
    let parts: Vec<Vec<Element>> = parts.collect::<Result<_, String>>()?;
    each_element(&parts, [first_lane as i64, 0, 0, 0], hold)?;
    Ok(Cells {
        lanes,
        columns,
        held,
        packed,
    })
}

/// An element's lane, place along the columns (in bits), thread and register; or what one coordinate adds to them.
type Element = [i64; 4];

/// What each coordinate of a dimension adds. A region may have as many elements as tensor memory has cells, and narrow
/// numbers are several times as fast there.
fn parts_of(tables: [&[i128]; 4]) -> Result<Vec<Element>, String> {
    let count = tables[0].len();
    let mut parts = vec![[0; 4]; count];
    for (which, table) in tables.into_iter().enumerate() {
        for (part, place) in parts.iter_mut().zip(table) {
            part[which] = i32::try_from(*place)
                .map_err(|_| format!("a place of the region, {place}, is beyond any tensor memory"))?
                .into();
        }
    }
    Ok(parts)
}

/// Visits the elements, the last dimension innermost. A build script runs this without optimization, so it is plain.
fn each_element(
    parts: &[Vec<Element>],
    sum: Element,
    visit: &mut impl FnMut(Element) -> Result<(), String>,
) -> Result<(), String> {
    let Some((first, rest)) = parts.split_first() else {
        return visit(sum);
    };
    for part in first {
        let below = [
            sum[0] + part[0],
            sum[1] + part[1],
            sum[2] + part[2],
            sum[3] + part[3],
        ];
        match rest.is_empty() {
            true => visit(below)?,
            false => each_element(rest, below, visit)?,
        }
    }
    Ok(())
}

impl Cells {
    /// The thread and the register of a cell.
    fn at(&self, lane: i128, column: i128) -> Option<(i128, i128)> {
        let (lane, column) = (usize::try_from(lane).ok()?, usize::try_from(column).ok()?);
        if lane >= self.lanes || column >= self.columns {
            return None;
        }
        let held = self.held[lane * self.columns + column];
        (held >= 0).then(|| (i128::from(held / REGISTERS), i128::from(held % REGISTERS)))
    }

    /// How many cells the region has.
    fn count(&self) -> usize {
        self.held.iter().filter(|h| **h >= 0).count()
    }

    /// The first register of the instruction that begins at a lane of each warp and at a column; `None` where its
    /// pattern is not that of the region.
    fn matches(&self, shape: &Shape, lane: i128, column: i128, repetitions: i128) -> Option<i128> {
        let mut first = None;
        for warp in 0..4 {
            for thread in 0..LANES {
                for register in 0..shape.registers * repetitions {
                    let (row, mut across) = (shape.place)(thread, register);
                    if self.packed {
                        across *= 2;
                    }
                    let (holder, held) = self.at(warp * LANES + lane + row, column + across)?;
                    let base = *first.get_or_insert(held - register);
                    if holder != warp * LANES + thread || held != base + register {
                        return None;
                    }
                }
            }
        }
        first.filter(|f| *f >= 0)
    }
}

/// The shape, of at most this many lanes, and its instructions, which together move each cell once.
fn decompose(cells: &Cells, lanes: i128) -> Option<(&'static Shape, Vec<Step>)> {
    let shapes = SHAPES.iter().filter(|shape| shape.lanes <= lanes);
    shapes
        .into_iter()
        .find_map(|shape| Some((shape, with_shape(cells, shape)?)))
}

fn with_shape(cells: &Cells, shape: &Shape) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut moved = 0;
    let scale = if cells.packed { 2 } else { 1 };
    for lane in (0..LANES).step_by(shape.lanes as usize) {
        let mut column = 0;
        while column < cells.columns as i128 {
            // A quarter has nothing here, or something that another instruction moved.
            if cells.at(lane, column).is_none() {
                column += 1;
                continue;
            }
            let most = (cells.columns as i128 - column + scale - 1) / (shape.columns * scale);
            let mut repetitions = (1 << most.max(1).ilog2()).min(shape.most);
            let register = loop {
                if repetitions == 0 || most == 0 {
                    return None;
                }
                match cells.matches(shape, lane, column, repetitions) {
                    Some(register) => break register,
                    None => repetitions /= 2,
                }
            };
            moved += (repetitions * shape.columns * shape.lanes * 4) as usize;
            steps.push(Step {
                lane,
                column,
                repetitions,
                register,
            });
            column += repetitions * shape.columns * scale;
        }
    }
    (moved == cells.count() && !steps.is_empty()).then_some(steps)
}

/// The registers of a thread, as words.
fn words(buffer: &Buffer, bits: i128) -> Result<Buffer, String> {
    let layout = crate::layout::Layout::from_buffer(buffer);
    let span = layout.and_then(|l| l.memory_span().as_int());
    let elements = span.ok_or_else(|| format!("the extents of {} are not constant", buffer.name))?;
    if buffer.elem_offset.as_ref().is_some_and(|e| !e.is_int(0)) && bits != CELL {
        return Err(format!("{} begins within other registers", buffer.name));
    }
    let count = (elements * bits + CELL - 1) / CELL;
    let dtype = if bits == CELL { buffer.dtype } else { DType::UINT32 };
    let name = format!("{}_words", buffer.name);
    let size = vec![Expr::int32(count as i32)];
    Ok(Buffer::new(BufferNode {
        elem_offset: buffer.elem_offset.clone(),
        align: buffer.align,
        offset_factor: buffer.offset_factor,
        ..BufferNode::flat(name, buffer.data.clone(), dtype, size, buffer.span)
    }))
}

impl Emits for TransferPlan {
    fn explain(&self) -> Explanation {
        let op = if self.loads { "tcgen05.ld" } else { "tcgen05.st" };
        let list: Vec<String> = self.steps.iter().map(|s| format!("x{}", s.repetitions)).collect();
        Explanation {
            completion: Some(if self.loads {
                Completion::TcgenWaitLd
            } else {
                Completion::TcgenWaitSt
            }),
            ..Explanation::default().line(format!("{op}.{} {}", self.shape.name, list.join(" ")))
        }
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        out.push(Stmt::new(StmtKind::DeclBuffer(self.registers.clone()), span));
        for (step, place) in self.steps.iter().zip(&self.addresses) {
            let registers = (0..self.shape.registers * step.repetitions).map(|r| {
                let at = Expr::constant(self.first.dtype, step.register + r);
                let at = crate::arith::fold::add(self.first.clone(), at);
                address(&self.registers, vec![at], span)
            });
            let (op, pointer, packing) = match self.loads {
                true => (Op::PtxTcgen05Ld, "src_addr", "pack"),
                false => (Op::PtxTcgen05St, "dst_addr", "unpack"),
            };
            let call = op
                .call()
                .set(pointer, place)
                .set("row", 0)
                .set("col", 0)
                .set("shape", self.shape.name)
                .set("num", step.repetitions as i32)
                .set(packing, Expr::bool(self.packed))
                .list("regs", registers)
                .at(span);
            out.push(call.stmt());
        }
    }
}
