//! The orders in which lanes of a warp take their turns at an atomic instruction.
//!
//! CUDA leaves this order unspecified. Where every order is explored (`crate::explore`), the orders of lanes that update one
//! location are choices if they can make a difference: if the lanes use what was there before, or if their updates do not
//! commute.

use super::{Strand, Warp};
use crate::alu::LANES;
use crate::bytecode::{AtomicInst, AtomicOp, Code, Inst};

/// Lanes of one location up to which each of their orders is a choice.
const MAX_LANES: usize = 4;
/// The orders of more lanes that are choices.
const SAMPLES: u16 = 4;

/// The orders that are choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneOrders {
    /// How many they are: 1 if the order makes no difference.
    pub(super) count: u16,
    /// The lanes of the location with the most lanes, if they have further orders.
    pub(super) crowd: Option<usize>,
}

impl LaneOrders {
    /// The order makes no difference.
    const ONE: LaneOrders = LaneOrders {
        count: 1,
        crowd: None,
    };

    /// The orders of a strand at its next instruction.
    pub(super) fn at_instruction(code: &Code, warp: &Warp, strand: &Strand) -> LaneOrders {
        let Inst::Atomic { id } = code.insts[strand.pc] else {
            return LaneOrders::ONE;
        };
        let inst = &code.atomics[id as usize];
        if inst.multimem.is_some() {
            return LaneOrders::ONE;
        }
        let all = groups(inst, warp, strand.scalars[inst.plus as usize], strand.mask);
        let most = all
            .iter()
            .filter(|lanes| differs(code, inst, warp, lanes))
            .map(Vec::len)
            .max();
        match most {
            None => LaneOrders::ONE,
            Some(most) if most <= MAX_LANES => LaneOrders {
                count: (1..=most as u16).product(),
                crowd: None,
            },
            Some(most) => LaneOrders {
                count: SAMPLES,
                crowd: Some(most),
            },
        }
    }
}

/// The lanes of a mask by the locations that they update.
fn groups(inst: &AtomicInst, warp: &Warp, plus: u64, mask: u32) -> Vec<Vec<usize>> {
    let mut all: Vec<(u64, Vec<usize>)> = Vec::new();
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let index = match inst.wide {
            true => warp.v64[inst.index as usize][lane].wrapping_add(plus),
            false => warp.v32[inst.index as usize][lane]
                .wrapping_add(plus as u32)
                .into(),
        };
        match all.iter_mut().find(|(at, _)| *at == index) {
            Some((_, lanes)) => lanes.push(lane),
            None => all.push((index, vec![lane])),
        }
    }
    all.into_iter().map(|(_, lanes)| lanes).collect()
}

/// Whether the order of lanes at one location can make a difference.
fn differs(code: &Code, inst: &AtomicInst, warp: &Warp, lanes: &[usize]) -> bool {
    if lanes.len() < 2 || inst.op == AtomicOp::Read {
        return false;
    }
    let kind = code.accesses[inst.access as usize].kind;
    if !inst.unused {
        return true;
    }
    let operands = |lane: usize| {
        [inst.value, inst.compare].map(|register| match kind.wide() {
            true => warp.v64[register as usize][lane],
            false => warp.v32[register as usize][lane].into(),
        })
    };
    let commutes = match inst.op {
        AtomicOp::Add => !kind.is_float(),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Min | AtomicOp::Max => true,
        _ => false,
    };
    !commutes && lanes.iter().any(|lane| operands(*lane) != operands(lanes[0]))
}

/// The lanes of a mask in an order: 0 is that of their numbers. Each location's lanes have their own order of this number.
pub(super) fn arranged(inst: &AtomicInst, warp: &Warp, plus: u64, mask: u32, order: u16) -> Vec<usize> {
    let all = groups(inst, warp, plus, mask);
    all.into_iter().flat_map(|lanes| permuted(lanes, order)).collect()
}

/// A permutation by its number.
fn permuted(mut lanes: Vec<usize>, order: u16) -> Vec<usize> {
    let count = lanes.len();
    if count > MAX_LANES {
        match order % SAMPLES {
            0 => {}
            1 => lanes.reverse(),
            2 => lanes.rotate_left(count / 2),
            _ => {
                lanes = [1, 0]
                    .iter()
                    .flat_map(|first| lanes.iter().skip(*first).step_by(2))
                    .copied()
                    .collect()
            }
        }
        return lanes;
    }
    let mut number = usize::from(order);
    let mut out = Vec::with_capacity(count);
    while !lanes.is_empty() {
        let at = number % lanes.len();
        number /= lanes.len();
        out.push(lanes.remove(at));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn few_lanes_have_all_their_orders_and_many_have_samples() {
        for (lanes, orders) in [(1, 1), (2, 2), (3, 6), (4, 24), (5, 4), (32, 4)] {
            let start: Vec<usize> = (0..lanes).collect();
            let all: BTreeSet<Vec<usize>> = (0..24).map(|order| permuted(start.clone(), order)).collect();
            assert_eq!(all.len(), orders, "{lanes} lanes");
            assert!(all.contains(&start), "the order of their numbers");
            for one in all {
                assert_eq!(one.iter().copied().collect::<BTreeSet<_>>().len(), lanes);
            }
        }
    }
}
