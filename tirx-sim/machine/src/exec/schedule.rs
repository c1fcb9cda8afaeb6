//! The seeded schedule of a block's warps, and of the blocks of a launch.
//!
//! Seed 0 runs the warps in order, seed 1 in reverse order, and each warp until it has to wait. From seed 2 on the order is
//! random in each round, and a strand pauses at random after an instruction that other threads may react to (an atomic, an
//! arrival, an issued operation), so that they run before what follows in its program. Seeds with bit 1 set start the blocks
//! in reverse order. Blocks that wait for one another go on in the order in which they waited (seed 0), in reverse (1), or in a
//! random one, by turns (`crate::turns`): what they do to one another does not depend on how many threads run them.

use super::order::{Scope, Strong};
use super::{Context, Group, Shared};
use crate::turns::Taken;

/// Seeds below this one run each warp until it waits.
const QUIET: u64 = 2;
/// A strand pauses at one in this many opportunities.
const CHANCE: u64 = 4;
/// A pause is shorter than this many rounds.
const REST: u64 = 8;
/// Most pauses of a block.
const MAX_STOPS: u32 = 1000;
/// A block whose loops have waited so many times, though their state changes, lets others run: it may wait for these in a
/// way that is not recognized.
const MAX_TURNS_OF_LOOPS: u32 = 64;
/// Most blocks of a launch in which blocks pause for one another: a paused block stays in memory.
const MAX_BLOCKS: u64 = 64;

/// A pseudorandom number of 31 bits from two numbers.
pub(super) fn mixed(seed: u64, number: u64) -> u64 {
    let mut random = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    random = (random ^ random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    random = (random ^ random >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    random >> 33
}

/// The random numbers of a block.
#[derive(Debug, Default)]
pub(super) struct Draws {
    seed: u64,
    drawn: u64,
    stops: u32,
    /// How often loops that may wait have come to the end of their patience, though their state changed.
    spins: u32,
    /// A strand has paused for other blocks.
    pub(super) yields: bool,
}

impl Draws {
    pub(super) fn from_seed(seed: u64) -> Draws {
        Draws {
            seed,
            ..Draws::default()
        }
    }

    /// A loop that may wait has come to the end of its patience, and its state has changed.
    pub(super) fn spun(&mut self) {
        self.spins = self.spins.saturating_add(1);
        self.yields |= self.spins > MAX_TURNS_OF_LOOPS;
    }

    /// Whether a read misses a write that it may miss.
    pub(super) fn misses(&mut self) -> bool {
        self.draw() & 1 == 0
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mixed(self.seed, self.drawn)
    }
}

impl Context<'_> {
    /// Whether strong reads may miss writes of other blocks.
    pub(super) fn misses_writes(&self) -> bool {
        self.seed >= QUIET && !self.exploring && self.check_races && self.blocks() > 1
    }

    /// Whether a strong access within a cluster may miss writes of its other blocks.
    pub(super) fn misses_in_cluster(&self, shared: &mut Shared, access: Strong) -> bool {
        let blocks: u32 = self.cluster.iter().product();
        if !self.misses_writes() || access.scope == Scope::Cta || access.polled || blocks <= 1 {
            return false;
        }
        shared.wait_for_turn(self);
        true
    }

    /// The number of the group of blocks that starts as so-manieth.
    pub(crate) fn in_order_of_starts(&self, start: u64) -> u64 {
        let backwards = self.seed >= QUIET && self.seed & 2 != 0;
        // Devices start their groups at the same time.
        let ranks = u64::from(self.ranks());
        let group = start % ranks * Group::of_device(self) + start / ranks;
        match backwards {
            true => Group::count(self) - 1 - group,
            false => group,
        }
    }

    /// Begins the next turn.
    pub(crate) fn take_turn(&self) -> Option<(u64, Taken<Group>)> {
        self.turns.take(|round, groups| match self.seed {
            0 => {}
            1 => groups.reverse(),
            seed => {
                let round = mixed(seed, round);
                for i in (1..groups.len()).rev() {
                    groups.swap(i, mixed(round, i as u64) as usize % (i + 1));
                }
            }
        })
    }

    /// Takes the next group of blocks off the grid; gives its number.
    pub(super) fn cancel_group(&self) -> Option<u64> {
        self.turns.cancel().map(|start| self.in_order_of_starts(start))
    }

    /// The order of the warps in a round.
    pub(super) fn warps_in_turn(&self, shared: &mut Shared, warps: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..warps).collect();
        match self.seed {
            0 => {}
            1 => order.reverse(),
            _ => {
                for i in (1..warps).rev() {
                    order.swap(i, shared.draws.draw() as usize % (i + 1));
                }
            }
        }
        order
    }
}

impl Shared {
    /// Waits until all blocks whose turn is earlier have done theirs: what follows depends on other blocks, or they on it.
    #[inline]
    pub(super) fn wait_for_turn(&mut self, ctx: &Context<'_>) {
        if !self.in_turn {
            ctx.turns.wait(self.turn);
            self.in_turn = true;
        }
    }

    /// Whether a strand pauses here, and for how many rounds. `far`: threads outside of the cluster may react too.
    pub(super) fn stops(&mut self, ctx: &Context<'_>, far: bool) -> Option<u32> {
        if ctx.seed < QUIET || self.draws.stops >= MAX_STOPS || !self.draws.draw().is_multiple_of(CHANCE) {
            return None;
        }
        self.draws.stops += 1;
        self.draws.yields |= far && ctx.blocks() <= MAX_BLOCKS;
        Some((self.draws.draw() % REST) as u32)
    }
}
