//! Release and acquire patterns of two instructions at one place (PTX ISA, "Release and Acquire Patterns").
//!
//! - "A release operation on M followed by a strong write on M in program order": who acquires what the second one wrote is ordered
//!   behind what came before the *first*, also where another thread has written between the two.
//! - "A strong read on M followed by an acquire operation on M in program order": behind the second, the thread is ordered behind the
//!   release that the *first* has read from.
//!
//! Fences, which are about every place, are in [`super::fences`].

use super::{Known, Order};
use crate::alu::LANES;
use crate::bytecode::Scope;

/// Places of each kind that a lane's patterns are known of: those that it has used last.
const MOST: usize = 16;

/// A place or an mbarrier, which does not move during a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// By the address of its history.
    Place(usize),
    /// By block and byte.
    Mbarrier(u32, u32),
}

/// The first half of a pattern.
#[derive(Clone, Debug)]
struct Half {
    at: At,
    scope: Scope,
    known: Known,
}

/// The first halves of a lane's patterns, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    released: Vec<Half>,
    read: Vec<Half>,
}

fn note(halves: &mut Vec<Half>, at: At, scope: Scope, known: &Known, joins: bool) {
    let before = halves
        .iter()
        .position(|half| half.at == at && half.scope == scope);
    let mut known = known.clone();
    if let Some(before) = before {
        let old = halves.remove(before);
        if joins {
            known.join(&old.known);
        }
    } else if halves.len() >= MOST {
        halves.remove(0);
    }
    halves.push(Half { at, scope, known });
}

impl Order {
    fn patterns(&mut self, warp: usize, lane: u32) -> &mut Patterns {
        let patterns = self.warps[warp].patterns.get_or_insert_default();
        &mut patterns[lane as usize % LANES]
    }

    /// A lane has released at a place.
    pub(crate) fn has_released(&mut self, warp: usize, lane: u32, at: At, scope: Scope, known: &Known) {
        note(&mut self.patterns(warp, lane).released, at, scope, known, false);
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
        let here = patterns[lane as usize % LANES].released.iter();
        here.filter(|half| half.at == at)
            .map(|half| (half.scope.min(scope), half.known.clone()))
            .collect()
    }

    /// A lane's relaxed read has seen what was released as far away as within a scope.
    pub(super) fn has_read(&mut self, warp: usize, lane: u32, at: At, scope: Scope, known: &Known) {
        note(&mut self.patterns(warp, lane).read, at, scope, known, true);
    }

    /// A lane acquires at a place within a scope: also what its relaxed reads have seen there.
    pub(super) fn acquire_read(&mut self, warp: usize, lane: u32, at: At, scope: Scope) {
        if self.warps[warp].patterns.is_none() {
            return;
        }
        let read = &mut self.patterns(warp, lane).read;
        let (here, rest): (Vec<Half>, Vec<Half>) = std::mem::take(read)
            .into_iter()
            .partition(|half| half.at == at && half.scope <= scope);
        *read = rest;
        for half in here {
            self.acquire(warp, 1 << lane, &half.known);
        }
    }
}
