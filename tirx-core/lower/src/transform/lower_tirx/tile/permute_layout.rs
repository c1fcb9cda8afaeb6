//! `permute_layout` → `warp_xor_swizzle`: a warp moves elements from one layout to another, through its registers, so that both
//! layouts may be of the same memory.
//!
//! **Idea.** The elements, numbered row-major, are dealt to the lanes: in turn `r` lane `l` takes number `l + 32 * (r ^ x)`,
//! where `x` are the upper `k` bits of `l`. All lanes read all their elements, the warp synchronizes, and all lanes write them
//! by the same numbers. The exclusive-or spreads a turn over several rows of 32 elements; `k` is the one with the fewest conflicts of
//! shared memory's 32 banks in both phases (none for a transpose of 32 by 2^k elements of 4 bytes).
//!
//! **Conditions.** Scope warp with all lanes active; one dtype; constant extents whose product is a multiple of 32, with up to 32
//! elements of a lane; layouts on the memory axis, that of dst without two elements in one place.
//!
//! **Cost.** One load and one store of each element; two synchronizations of the warp.

use super::build::{flat_view, local};
use super::call::PrimitiveCall;
use super::context::Context;
use super::decline::Decline;
use super::digits::place;
use super::emit::Emit;
use super::operands::{bits, in_memory};
use super::predicates::{FULL_SCOPE, SAME_ELEMENTS, scope_among};
use super::variant::{Emits, Explanation, Plan, Predicate, Variant};
use crate::intrin::Op;
use crate::ir::{BinOp, Buffer, BufferRegion, DType, ExecScope, Expr, Stmt, TileOp, Var};
use crate::layout::apply::binary;
use crate::layout::{Layout, TileAlgebra, TileLayout};

pub(super) static VARIANTS: &[Variant] = &[Variant {
    ops: &[TileOp::PermuteLayout],
    name: "warp_xor_swizzle",
    priority: 20,
    predicates: &[
        Predicate {
            name: "scope warp",
            holds: |_, cx| scope_among(cx, &[ExecScope::Warp]),
        },
        FULL_SCOPE,
        SAME_ELEMENTS,
    ],
    plan,
    doc: "through registers of a warp, without bank conflicts if possible",
    ..Variant::DEFAULT
}];

const LANES: i128 = 32;
/// Banks of shared memory, of four bytes.
const BANKS: i128 = 32;

struct PermutePlan {
    dst: Buffer,
    src: Buffer,
    to: TileLayout,
    from: TileLayout,
    turns: i128,
    /// Bits of the lane's number that are exclusive-ored.
    bits: u32,
    /// Accesses of the banks in both phases, with conflicts, and without any.
    cost: (i128, i128),
    lane: Expr,
}

fn plan(call: &PrimitiveCall<'_>, cx: &mut Context<'_>) -> Result<Plan, Decline> {
    let (dst, src) = call.moved()?;
    let dtype = dst.buffer.dtype;
    let bytes = bits(dtype) / 8;
    if bytes == 0 {
        return Err(format!("{dtype} elements are smaller than a byte").into());
    }
    let (to, to_places) = places(dst, cx)?;
    let (from, from_places) = places(src, cx)?;
    let count = to_places.len() as i128;
    let mut all = to_places.clone();
    all.sort_unstable();
    all.dedup();
    if all.len() != to_places.len() {
        return Err(format!("the layout of {} has elements in one place", dst.buffer.name).into());
    }
    let turns = count / LANES;
    if count % LANES != 0 || !(1..=LANES).contains(&turns) {
        return Err(format!("{count} elements; a warp moves a multiple of 32, up to 1024").into());
    }
    let most = if turns.count_ones() == 1 { turns.ilog2() } else { 0 };
    let costs = (0..=most).map(|bits| {
        let cost = accesses(&to_places, turns, bits, bytes) + accesses(&from_places, turns, bits, bytes);
        (cost, bits)
    });
    let (cost, bits) = costs.min().unwrap_or((0, 0));
    Ok(Box::new(PermutePlan {
        cost: (cost, 2 * turns * ((bytes + 3) / 4)),
        lane: cx.thread_index(),
        dst: dst.buffer.clone(),
        src: src.buffer.clone(),
        to,
        from,
        turns,
        bits,
    }))
}

/// The layout of a region and the place of each element, in row-major order, without the region's own offset.
fn places(region: &BufferRegion, cx: &mut Context<'_>) -> Result<(TileLayout, Vec<i128>), String> {
    let name = &region.buffer.name;
    let sliced = in_memory(region, cx.facts)?;
    if sliced.swizzle().is_some_and(|s| s.swizzle_len > 0) {
        return Err(format!("the layout of {name} is a swizzle"));
    }
    let tile = sliced.tile().canonical(false);
    let digits: Option<Vec<(i128, i128)>> = tile
        .shard
        .iter()
        .map(|i| i.extent.as_int().zip(i.stride.as_int()))
        .collect();
    let digits = digits.ok_or_else(|| format!("extents or strides of {name} are not constant"))?;
    let count: i128 = digits.iter().map(|(extent, _)| extent).product();
    if count > LANES * LANES {
        return Err(format!("{count} elements; a warp moves up to 1024"));
    }
    let all = (0..count).map(|number| place(number, digits.iter())).collect();
    Ok((tile, all))
}

/// The number of an element that a lane takes in a turn.
fn number(lane: i128, turn: i128, bits: u32) -> i128 {
    lane + LANES * (turn ^ (lane >> (5 - bits)) & ((1 << bits) - 1))
}

/// How often the banks are accessed for all turns.
fn accesses(places: &[i128], turns: i128, bits: u32, bytes: i128) -> i128 {
    let of_turn = |turn: i128| {
        let mut words: Vec<i128> = Vec::new();
        for lane in 0..LANES {
            let first = places[number(lane, turn, bits) as usize] * bytes;
            words.extend(first / 4..(first + bytes + 3) / 4);
        }
        words.sort_unstable();
        words.dedup();
        let mut banks = [0; BANKS as usize];
        words
            .iter()
            .for_each(|word| banks[word.rem_euclid(BANKS) as usize] += 1);
        banks.into_iter().max().unwrap_or(0)
    };
    (0..turns).map(of_turn).sum()
}

impl Emits for PermutePlan {
    fn explain(&self) -> Explanation {
        let line = match self.cost {
            (cost, least) if cost <= least => format!(
                "{} bits of the lane exclusive-ored: no conflicts of banks",
                self.bits
            ),
            (cost, least) => format!("{cost} accesses of the banks instead of {least}"),
        };
        Explanation::partition(self.turns, LANES, 1).line(line)
    }

    fn emit(self: Box<Self>, out: &mut Emit<'_, '_>) {
        let span = out.span();
        let dtype = self.dst.dtype;
        let (registers, allocate) = local("moved", self.turns, dtype, span);
        let (to, declare_to) = flat_view(&self.dst, span);
        let (from, declare_from) = flat_view(&self.src, span);
        for stmt in [allocate, declare_to, declare_from] {
            out.push(stmt);
        }
        let int = |v: i128| Expr::int32(v as i32);
        let lane = Var::at("lane", DType::INT32, span);
        out.push(Stmt::bind(&lane, self.lane.clone().cast(DType::INT32), span));
        let lane = Expr::var(&lane);
        let call = |op: Op, a: Expr, b: Expr| Expr::call(op, DType::INT32, vec![a, b]);
        let mixed = call(Op::ShiftRight, lane.clone(), int(5 - i128::from(self.bits)));
        let number = |turn: i128| {
            let row = match self.bits {
                0 => int(turn),
                bits => {
                    let upper = call(Op::BitwiseAnd, mixed.clone(), int((1 << bits) - 1));
                    call(Op::BitwiseXor, upper, int(turn))
                }
            };
            binary(BinOp::Add, binary(BinOp::Mul, row, int(LANES)), lane.clone())
        };
        let count = [int(self.turns * LANES)];
        let warp_sync = || Op::CudaWarpSync.call().at(span).stmt();
        let place = |layout: &TileLayout, turn: i128| {
            let layout = Layout::Tile(layout.clone().into());
            layout.memory_offset(&[number(turn)], &count)
        };
        for turn in 0..self.turns {
            let at = out.cx.facts.simplify(&place(&self.from, turn));
            let value = Expr::load(&from, vec![at]);
            out.push(Stmt::store(&registers, vec![int(turn)], value, span));
        }
        out.push(warp_sync());
        for turn in 0..self.turns {
            let at = out.cx.facts.simplify(&place(&self.to, turn));
            let value = Expr::load(&registers, vec![int(turn)]);
            out.push(Stmt::store(&to, vec![at], value, span));
        }
        out.push(warp_sync());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_of_32_by_4_has_no_conflicts() {
        let rows: Vec<i128> = (0..128).collect();
        let columns: Vec<i128> = (0..128).map(|n| n % 32 * 4 + n / 32).collect();
        assert_eq!(accesses(&rows, 4, 0, 4), 4);
        assert_eq!(accesses(&columns, 4, 0, 4), 16);
        assert_eq!((accesses(&rows, 4, 2, 4), accesses(&columns, 4, 2, 4)), (4, 4));
        // Each element is taken once.
        let mut taken: Vec<i128> = (0..4)
            .flat_map(|r| (0..32).map(move |l| number(l, r, 2)))
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..128).collect::<Vec<_>>());
    }
}
