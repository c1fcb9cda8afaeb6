//! `copy_async` → `tcgen05_cp`: from shared to tensor memory.
//!
//! **Idea.** Tensor memory is filled in units of 16 bytes of a lane. For each unit of the region the layouts say where in shared
//! memory it comes from. An instruction (`tcgen05.cp`) takes the rows of a matrix, as a matrix descriptor describes it, to
//! lanes in one of six patterns; the first pattern is taken whose instructions together fill the region, each unit once. Elements that
//! a layout repeats (a stride of zero on both sides) are copied once.
//!
//! **Conditions.** Scope thread with one thread, or warp, of which one thread issues; elements of the same number of bits; constant
//! extents; the region begins at a multiple of four columns. Copies of each element in other lanes (replica iterators of the
//! layout) are those of the pattern's multicast. `shape` and `multicast` demand a pattern.
//!
//! **Cost.** One instruction for 32 to 128 lanes and four or eight columns. It is complete when a barrier says so:
//! `T.ptx.tcgen05.commit(bar)`, then a wait at `bar`; a product that the same thread issues afterwards sees it without.

use super::super::call::PrimitiveCall;
use super::super::context::Context;
use super::super::decline::Decline;
use super::super::emit::Emit;
use super::super::matrix::{Descriptor, PIECE, SharedMatrix, Walk};
use super::super::multiples::is_multiple;
use super::super::option::{OptionKind, TileOption};
use super::super::places::Places;
use super::super::predicates::memories;
use super::super::variant::{Completion, Emits, Explanation, Plan, Predicate, Variant};
use super::memory::TensorMemory;
use super::product::{elected, issued_once};
use crate::intrin::Op;
use crate::ir::{ExecScope, Expr, Stmt, TileOp};
use crate::layout::axes::MEMORY;

pub(super) const VARIANT: Variant = Variant {
    ops: &[TileOp::CopyAsync],
    name: "tcgen05_cp",
    aliases: &["smem->tmem"],
    arch: super::BLACKWELL,
    options: OPTIONS,
    completion: Completion::TcgenCommit,
    predicates: &[
        Predicate {
            name: "from shared to tensor memory",
            holds: |call, _| memories(call, &[("shared", "tmem")]),
        },
        Predicate {
            name: "one thread, or a warp",
            holds: issued_once,
        },
    ],
    plan,
    doc: "tcgen05.cp: 16 or 32 bytes of each of 4 to 128 rows, to one or several groups of lanes",
    ..Variant::DEFAULT
};

const OPTIONS: &[TileOption] = &[
    TileOption {
        name: "shape",
        kind: OptionKind::Word(&["128x256b", "4x256b", "128x128b", "64x128b", "32x128b"]),
        default: "by the layouts",
        doc: "rows and bits of a row that an instruction copies",
    },
    TileOption {
        name: "multicast",
        kind: OptionKind::Word(&["", "warpx4", "warpx2::02_13", "warpx2::01_23"]),
        default: "by the layouts",
        doc: "the groups of lanes that get copies",
    },
    TileOption {
        name: "cta_group",
        kind: OptionKind::Int,
        default: "1",
        doc: "how many CTAs work together: with 2, each copies to its own tensor memory",
    },
];

/// A pattern of the instruction (PTX ISA, "tcgen05.cp").
struct Pattern {
    shape: &'static str,
    multicast: &'static str,
    rows: i128,
    /// Units of 16 bytes of a row.
    units: i128,
    /// The lane of a row, from the address.
    lane: fn(i128) -> i128,
    /// Copies in other lanes: number and distance.
    copies: &'static [(i128, i128)],
}

/// In the order in which they are tried: the most bytes first.
const PATTERNS: &[Pattern] = &[
    Pattern {
        shape: "128x256b",
        multicast: "",
        rows: 128,
        units: 2,
        lane: |row| row,
        copies: &[],
    },
    Pattern {
        shape: "128x128b",
        multicast: "",
        rows: 128,
        units: 1,
        lane: |row| row,
        copies: &[],
    },
    Pattern {
        shape: "4x256b",
        multicast: "",
        rows: 4,
        units: 2,
        lane: |row| row * 32,
        copies: &[],
    },
    Pattern {
        shape: "64x128b",
        multicast: "warpx2::02_13",
        rows: 64,
        units: 1,
        lane: |row| row,
        copies: &[(2, 64)],
    },
    Pattern {
        shape: "64x128b",
        multicast: "warpx2::01_23",
        rows: 64,
        units: 1,
        lane: |row| row / 32 * 64 + row % 32,
        copies: &[(2, 32)],
    },
    Pattern {
        shape: "32x128b",
        multicast: "warpx4",
        rows: 32,
        units: 1,
        lane: |row| row,
        copies: &[(4, 32)],
    },
];

/// The unit of tensor memory of each lane and four columns: its place in shared memory, in bits from the region's first
/// element.
struct Units {
    /// Four columns each.
    columns: usize,
    from: Vec<Option<i128>>,
}

const LANES: usize = 128;

/// One instruction.
struct Step {
    lane: i128,
    unit: i128,
    /// In bits.
    from: i128,
}

struct FillPlan {
    pattern: &'static Pattern,
    group: i32,
    walk: Walk,
    matrix: SharedMatrix,
    start: Expr,
    /// For each instruction its address and the units of 16 bytes from the region's first.
    steps: Vec<(Expr, i128)>,
    elect: bool,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let group = call.option_int("cta_group").unwrap_or(1);
    if !matches!(group, 1 | 2) {
        return Err(Decline::mistake(
            format!("copy_async: cta_group must be 1 or 2, found {group}"),
            "cta_group=2 is a copy of two CTAs of a cluster",
        ));
    }
    let memory = TensorMemory::from_region(dst, cx)?;
    let places = Places::from_region(src, cx)?;
    if places.extents != memory.extents {
        return Err("the extents of dst and src differ".into());
    }
    let from = places.tables(MEMORY);
    let matrix = SharedMatrix::from_tables(src, &places, vec![0], vec![0])?;
    if matrix.bits != memory.bits {
        return Err(format!(
            "elements of src have {} bits and those of dst {}",
            matrix.bits, memory.bits
        )
        .into());
    }
    matrix.aligned(cx)?;
    let per = PIECE / memory.bits;
    let first = memory.first_element();
    if !is_multiple(first, per, cx.facts) {
        return Err("the region does not begin at a multiple of four columns".into());
    }
    let Some(first_lane) = memory.first_lane().as_int() else {
        return Err("the lane of the region is not known".into());
    };
    let units = units_of(&memory, &from, first_lane)?;
    let (shape, multicast) = (call.option_text("shape"), call.option("multicast"));
    let asked = |p: &&Pattern| {
        (shape.is_empty() || p.shape == shape)
            && (multicast.is_none() || call.option_text("multicast") == p.multicast)
    };
    let found = PATTERNS
        .iter()
        .filter(asked)
        .filter(|p| p.copies == &memory.copies[..])
        .find_map(|p| Some((p, decompose(&units, p, matrix.swizzle)?)));
    let Some((pattern, (walk, steps))) = found else {
        return Err(format!(
            "no shape of tcgen05.cp fills the region of {} from the layout of {}: rows lie in groups of eight as matrix \
             descriptors describe them, and each is 16 or 32 bytes of a lane{}",
            dst.buffer.name,
            src.buffer.name,
            if memory.copies.is_empty() {
                "; scale factors are repeated in four groups of lanes (sf_tmem_layout, sf_smem_layout)"
            } else {
                ""
            }
        )
        .into());
    };
    let (column, _) = memory.first_column(cx);
    let steps = steps
        .iter()
        .map(|s| {
            let at = memory.address_at(column.clone(), s.lane - first_lane, s.unit * 4, cx);
            (at, s.from / PIECE)
        })
        .collect();
    Ok(Box::new(FillPlan {
        start: matrix.start_pieces(cx),
        elect: call.scope == ExecScope::Warp,
        group: group as i32,
        pattern,
        matrix,
        walk,
        steps,
    }))
}

fn units_of(memory: &TensorMemory, from: &[Vec<i128>], first_lane: i128) -> Result<Units, String> {
    let last =
        |tables: &[Vec<i128>]| -> i128 { tables.iter().map(|t| t.iter().copied().max().unwrap_or(0)).sum() };
    let columns = last(&memory.columns) / PIECE + 1;
    if last(&memory.lanes) + first_lane >= LANES as i128 || columns > 128 {
        return Err("the region leaves tensor memory, which has 128 lanes and 512 columns".into());
    }
    let columns = columns as usize;
    let mut units = Units {
        columns,
        from: vec![None; LANES * columns],
    };
    let mut filled = vec![0u128; LANES * columns];
    let element = u128::MAX >> (128 - memory.bits.clamp(1, 128));
    let mut coordinate = vec![0usize; memory.extents.len()];
    loop {
        let sum = |tables: &[Vec<i128>]| -> i128 { tables.iter().zip(&coordinate).map(|(t, c)| t[*c]).sum() };
        let (lane, column) = (sum(&memory.lanes) + first_lane, sum(&memory.columns));
        let source = sum(from) * memory.bits - column % PIECE;
        let at = usize::try_from(lane * columns as i128 + column / PIECE);
        let Some(at) = at.ok().filter(|at| *at < filled.len()) else {
            return Err("the region leaves tensor memory".into());
        };
        if units.from[at].is_some_and(|known| known != source) || source % PIECE != 0 {
            return Err("16 bytes of a lane do not come from 16 consecutive bytes of shared memory".into());
        }
        units.from[at] = Some(source);
        filled[at] |= element << (column % PIECE);
        let mut dim = coordinate.len();
        loop {
            if dim == 0 {
                let partial = filled.iter().any(|bits| *bits != 0 && *bits != u128::MAX);
                return match partial {
                    true => Err("the region covers parts of 16 bytes of a lane".into()),
                    false => Ok(units),
                };
            }
            dim -= 1;
            coordinate[dim] += 1;
            if (coordinate[dim] as i128) < memory.extents[dim] {
                break;
            }
            coordinate[dim] = 0;
        }
    }
}

impl Units {
    fn at(&self, lane: i128, unit: i128) -> Option<i128> {
        let (lane, unit) = (usize::try_from(lane).ok()?, usize::try_from(unit).ok()?);
        if lane >= LANES || unit >= self.columns {
            return None;
        }
        self.from[lane * self.columns + unit]
    }
}

/// The instructions of a pattern that fill each unit once, and how the matrix of each is described.
fn decompose(units: &Units, pattern: &Pattern, swizzle: i128) -> Option<(Walk, Vec<Step>)> {
    let line = PIECE << swizzle;
    let mut done = vec![false; units.from.len()];
    let mut walk: Option<Walk> = None;
    let mut steps = Vec::new();
    for lane in 0..LANES as i128 {
        for unit in 0..units.columns as i128 {
            let at = |row: i128, piece: i128| units.at(lane + (pattern.lane)(row), unit + piece);
            let index = lane as usize * units.columns + unit as usize;
            let Some(from) = units.from[index].filter(|_| !done[index]) else {
                continue;
            };
            let eight = if pattern.rows > 8 { at(8, 0)? - from } else { 0 };
            let leading = if pattern.units > 1 { at(0, 1)? - from } else { 0 };
            let own = Walk {
                by_rows: false,
                leading: leading / PIECE,
                stride: eight / PIECE,
                swizzle,
            };
            if leading % PIECE != 0
                || eight % PIECE != 0
                || swizzle > 0 && pattern.units > 1 && leading != PIECE
            {
                return None;
            }
            if *walk.get_or_insert(own) != own {
                return None;
            }
            for row in 0..pattern.rows {
                for piece in 0..pattern.units {
                    let expected = from + row % 8 * line + row / 8 * eight + piece * leading;
                    if at(row, piece)? != expected {
                        return None;
                    }
                    let to = (lane + (pattern.lane)(row)) as usize * units.columns + (unit + piece) as usize;
                    if std::mem::replace(&mut done[to], true) {
                        return None;
                    }
                }
            }
            steps.push(Step { lane, unit, from });
        }
    }
    Some((walk?, steps))
}

impl Emits for FillPlan {
    fn explain(&self) -> Explanation {
        let multicast = match self.pattern.multicast {
            "" => String::new(),
            name => format!(".{name}"),
        };
        Explanation::default().line(format!(
            "{} × tcgen05.cp.{}{multicast}",
            self.steps.len(),
            self.pattern.shape
        ))
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let (descriptor, mut stmts) = Descriptor::new(&self.matrix, self.walk, self.start, span);
        for (place, pieces) in &self.steps {
            let call = Op::PtxTcgen05Cp
                .call()
                .set("taddr", place)
                .set("src_desc", descriptor.moved(&Expr::int32(*pieces as i32)))
                .set("shape", self.pattern.shape)
                .set("cta_group", self.group)
                .set("multicast", self.pattern.multicast)
                .set("decompress", "")
                .set("row", 0)
                .set("col", 0)
                .at(span);
            stmts.push(call.stmt());
        }
        let body = Stmt::seq(stmts);
        out.push(if self.elect { elected(body, span) } else { body });
    }
}
