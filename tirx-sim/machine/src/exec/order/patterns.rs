//! Release and acquire patterns of two instructions at one place (PTX ISA, "Release and Acquire Patterns").
//!
//! - "A release operation on M followed by a strong write on M in program order": who acquires what the second one wrote is ordered
//!   behind what came before the *first*, also where another thread has written between the two.
//! - "A strong read on M followed by an acquire operation on M in program order": behind the second, the thread is ordered behind the
//!   release that the *first* has read from.
//!
//! Fences, which are about every place, are in [`super::fences`].

use super::{Known, Order};
use crate::bytecode::Scope;

/// Most first halves that a warp's patterns are known of: the latest.
const MOST: usize = 128;

/// A place or an mbarrier, which does not move during a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// By the address of its history.
    Place(usize),
    /// By block and byte.
    Mbarrier(u32, u32),
}

/// The first half of a pattern, of some lanes.
#[derive(Clone, Debug)]
struct Half {
    at: At,
    scope: Scope,
    lanes: u32,
    known: Known,
}

/// The first halves of a warp's patterns, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    released: Vec<Half>,
    read: Vec<Half>,
}

fn push(halves: &mut Vec<Half>, half: Half) {
    if halves.len() >= MOST {
        halves.remove(0);
    }
    halves.push(half);
}

impl Order {
    /// Lanes have released at a place.
    pub(crate) fn has_released(&mut self, warp: usize, lanes: u32, at: At, scope: Scope, known: &Known) {
        let released = &mut self.warps[warp].patterns.get_or_insert_default().released;
        for half in released
            .iter_mut()
            .filter(|half| half.at == at && half.scope == scope)
        {
            half.lanes &= !lanes;
        }
        released.retain(|half| half.lanes != 0);
        let known = known.clone();
        push(
            released,
            Half {
                at,
                scope,
                lanes,
                known,
            },
        );
    }

    /// What a lane's strong write at a place releases since the lane has released there before.
    pub(crate) fn released_before(
        &self,
        warp: usize,
        lane: u32,
        at: At,
        scope: Scope,
    ) -> Vec<(Scope, Known)> {
        let Some(patterns) = &self.warps[warp].patterns else {
            return Vec::new();
        };
        let here = patterns.released.iter();
        here.filter(|half| half.at == at && half.lanes >> lane & 1 != 0)
            .map(|half| (half.scope.min(scope), half.known.clone()))
            .collect()
    }

    /// A lane's relaxed read has seen what was released as far away as within a scope.
    pub(super) fn has_read(&mut self, warp: usize, lane: u32, at: At, scope: Scope, known: &Known) {
        let read = &mut self.warps[warp].patterns.get_or_insert_default().read;
        let lanes = 1 << lane;
        let same = |half: &&mut Half| (half.at, half.scope, half.lanes) == (at, scope, lanes);
        match read.iter_mut().find(same) {
            Some(half) => half.known.join(known),
            None => {
                let known = known.clone();
                push(
                    read,
                    Half {
                        at,
                        scope,
                        lanes,
                        known,
                    },
                );
            }
        }
    }

    /// A lane acquires at a place within a scope: also what its relaxed reads have seen there.
    pub(super) fn acquire_read(&mut self, warp: usize, lane: u32, at: At, scope: Scope) {
        let Some(patterns) = &mut self.warps[warp].patterns else {
            return;
        };
        let seen = |half: &mut Half| half.at == at && half.lanes >> lane & 1 != 0 && half.scope <= scope;
        let here: Vec<Half> = patterns.read.extract_if(.., seen).collect();
        for half in here {
            self.acquire(warp, 1 << lane, &half.known);
        }
    }
}
