//! Vector clocks: what a thread is ordered behind, of all threads of a launch and of all asynchronous operations.
//!
//! Time in a warp is counted in *segments*; one ends where a lane of the warp releases what it has done. A clock says
//! for each lane of each warp which segments it is ordered behind, and which asynchronous operations. Most lanes of a
//! warp are known alike, most warps of a block by the block's barriers, and most blocks not at all: a clock is a tree
//! over blocks that shares its parts with the clocks it comes from, so that a copy is a pointer and joining equal parts
//! costs nothing.

use std::sync::Arc;

use super::mark::Mark;
use crate::alu::LANES;

/// Warps of the largest block.
pub(crate) const WARPS: usize = 32;
/// Children per node of the tree.
const FAN: u32 = 32;

/// What is known of one block's threads and operations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlockClock {
    /// For each warp the first segment that is not known for some lane.
    pub(crate) floor: [u32; WARPS],
    /// Warps whose lanes are known up to different segments.
    lanes: Vec<(u8, [u32; LANES])>,
    /// Asynchronous operations, by the instruction that issued them: sorted ranges of their numbers.
    issued: Vec<(u32, Vec<(u32, u32)>)>,
}

impl BlockClock {
    const NOTHING: BlockClock = BlockClock {
        floor: [0; WARPS],
        lanes: Vec::new(),
        issued: Vec::new(),
    };

    /// Lanes of a mark that are not known.
    fn unknown(&self, mark: Mark) -> u32 {
        if mark.is_operation() {
            let known = self.issued.iter().any(|(pc, ranges)| {
                *pc == mark.pc() as u32 && ranges.iter().any(|(a, b)| (*a..*b).contains(&mark.segment))
            });
            return if known { 0 } else { mark.lanes };
        }
        if self.floor[mark.warp()] > mark.segment {
            return 0;
        }
        match self.lanes.iter().find(|(w, _)| *w as usize == mark.warp()) {
            None => mark.lanes,
            Some((_, times)) => (0..LANES as u32)
                .filter(|l| mark.lanes >> l & 1 != 0 && times[*l as usize] <= mark.segment)
                .fold(0, |m, l| m | 1 << l),
        }
    }

    /// Lanes of a warp, which has `all`, are known up to a segment, exclusive.
    pub(crate) fn see(&mut self, warp: usize, lanes: u32, all: u32, end: u32) {
        if lanes == 0 {
            return;
        }
        if lanes & all == all {
            self.floor[warp] = self.floor[warp].max(end);
            let floor = self.floor[warp];
            self.lanes
                .retain(|(w, times)| *w as usize != warp || times.iter().any(|t| *t > floor));
            return;
        }
        let at = match self.lanes.iter().position(|(w, _)| *w as usize == warp) {
            Some(at) => at,
            None => {
                self.lanes.push((warp as u8, [0; LANES]));
                self.lanes.len() - 1
            }
        };
        let times = &mut self.lanes[at].1;
        for (lane, time) in times.iter_mut().enumerate() {
            if lanes >> lane & 1 != 0 {
                *time = (*time).max(end);
            }
        }
        let least = (0..LANES).filter(|l| all >> l & 1 != 0).map(|l| times[l]).min();
        let floor = &mut self.floor[warp];
        *floor = (*floor).max(least.unwrap_or(0));
    }

    /// An operation is known to be complete.
    fn learn(&mut self, pc: u32, number: u32) {
        let ranges = match self.issued.iter().position(|(at, _)| *at == pc) {
            Some(at) => &mut self.issued[at].1,
            None => {
                self.issued.push((pc, Vec::new()));
                let last = self.issued.len() - 1;
                &mut self.issued[last].1
            }
        };
        merge(ranges, (number, number + 1));
    }

    fn covers(&self, other: &BlockClock) -> bool {
        let floors = self.floor.iter().zip(&other.floor).all(|(a, b)| a >= b);
        let lanes = || {
            other.lanes.iter().all(|(warp, times)| {
                let own = self.lanes.iter().find(|(w, _)| w == warp);
                times.iter().enumerate().all(|(l, t)| {
                    *t <= self.floor[*warp as usize] || own.is_some_and(|(_, own)| own[l] >= *t)
                })
            })
        };
        let issued = || {
            other.issued.iter().all(|(pc, ranges)| {
                let own = self.issued.iter().find(|(at, _)| at == pc);
                let within = |r: &(u32, u32)| {
                    own.is_some_and(|(_, own)| own.iter().any(|(a, b)| *a <= r.0 && r.1 <= *b))
                };
                ranges.iter().all(within)
            })
        };
        floors && lanes() && issued()
    }

    fn join(&mut self, other: &BlockClock) {
        for (mine, theirs) in self.floor.iter_mut().zip(&other.floor) {
            *mine = (*mine).max(*theirs);
        }
        for (warp, times) in &other.lanes {
            match self.lanes.iter_mut().find(|(w, _)| w == warp) {
                None => self.lanes.push((*warp, *times)),
                Some((_, own)) => {
                    for (mine, theirs) in own.iter_mut().zip(times) {
                        *mine = (*mine).max(*theirs);
                    }
                }
            }
        }
        let floor = self.floor;
        self.lanes
            .retain(|(w, times)| times.iter().any(|t| *t > floor[*w as usize]));
        for (pc, ranges) in &other.issued {
            match self.issued.iter_mut().find(|(at, _)| at == pc) {
                None => self.issued.push((*pc, ranges.clone())),
                Some((_, own)) => ranges.iter().for_each(|r| merge(own, *r)),
            }
        }
    }
}

/// Adds a range to sorted, disjoint ones.
fn merge(ranges: &mut Vec<(u32, u32)>, (start, end): (u32, u32)) {
    let first = ranges.partition_point(|(_, b)| *b < start);
    let last = ranges.partition_point(|(a, _)| *a <= end);
    if first == last {
        ranges.insert(first, (start, end));
        return;
    }
    let merged = (ranges[first].0.min(start), ranges[last - 1].1.max(end));
    ranges.splice(first..last, [merged]);
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(BlockClock),
    Inner([Option<Arc<Node>>; FAN as usize]),
}

/// What a thread is ordered behind.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    root: Option<Arc<Node>>,
    /// Height of the tree, which follows from the number of blocks.
    levels: u8,
}

impl Clock {
    /// The initial clock of a thread, in a launch of `blocks` blocks.
    pub(crate) fn new(blocks: u64) -> Clock {
        let mut levels = 0;
        while u64::from(FAN).pow(levels) < blocks {
            levels += 1;
        }
        Clock {
            root: None,
            levels: levels as u8,
        }
    }

    /// What is known of a block.
    fn block(&self, block: u32) -> Option<&BlockClock> {
        let mut node = self.root.as_deref()?;
        let mut level = self.levels;
        loop {
            match node {
                Node::Leaf(clock) => return Some(clock),
                Node::Inner(slots) => {
                    level -= 1;
                    node = slots[(block >> (5 * level) & (FAN - 1)) as usize].as_deref()?;
                }
            }
        }
    }

    /// Whether it knows nothing at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether anything is known of a block.
    pub(crate) fn knows_of(&self, block: u32) -> bool {
        self.block(block).is_some()
    }

    /// The first segment of a block's warp that is not known of some lane.
    pub(crate) fn floors(&self, block: u32) -> Option<&[u32; WARPS]> {
        self.block(block).map(|b| &b.floor)
    }

    /// Lanes of a mark that are not known.
    pub(crate) fn unknown(&self, mark: Mark) -> u32 {
        self.block(mark.block).map_or(mark.lanes, |b| b.unknown(mark))
    }

    /// Changes what is known of a block.
    pub(crate) fn update(&mut self, block: u32, change: impl FnOnce(&mut BlockClock)) {
        let fresh = |level: u8| match level {
            0 => Arc::new(Node::Leaf(BlockClock::NOTHING)),
            _ => Arc::new(Node::Inner(Default::default())),
        };
        let mut level = self.levels;
        let mut slot = &mut self.root;
        loop {
            match Arc::make_mut(slot.get_or_insert_with(|| fresh(level))) {
                Node::Leaf(clock) => return change(clock),
                Node::Inner(slots) => {
                    level -= 1;
                    slot = &mut slots[(block >> (5 * level) & (FAN - 1)) as usize];
                }
            }
        }
    }

    /// An asynchronous operation is known to be complete.
    pub(crate) fn learn(&mut self, operation: Mark) {
        self.update(operation.block, |b| {
            b.learn(operation.pc() as u32, operation.segment);
        });
    }

    /// The same of asynchronous operations alone.
    pub(crate) fn operations(&self) -> Clock {
        fn part(node: &Arc<Node>) -> Arc<Node> {
            Arc::new(match &**node {
                Node::Leaf(clock) => Node::Leaf(BlockClock {
                    issued: clock.issued.clone(),
                    ..BlockClock::NOTHING
                }),
                Node::Inner(slots) => Node::Inner(slots.each_ref().map(|slot| slot.as_ref().map(part))),
            })
        }
        Clock {
            root: self.root.as_ref().map(part),
            levels: self.levels,
        }
    }

    /// Joins: what another clock knows is known here too.
    pub(crate) fn join(&mut self, other: &Clock) {
        let Some(theirs) = &other.root else {
            return;
        };
        match &self.root {
            None => self.root = Some(theirs.clone()),
            Some(mine) => {
                if let Some(joined) = join(mine, theirs) {
                    self.root = Some(joined);
                }
            }
        }
    }

    /// Whether two clocks share one node; equal clocks may be two nodes.
    pub(crate) fn is(&self, other: &Clock) -> bool {
        match (&self.root, &other.root) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// The join of both; `None` where the first covers the second.
fn join(a: &Arc<Node>, b: &Arc<Node>) -> Option<Arc<Node>> {
    if Arc::ptr_eq(a, b) {
        return None;
    }
    match (&**a, &**b) {
        (Node::Leaf(x), Node::Leaf(y)) => {
            if x.covers(y) {
                return None;
            }
            if y.covers(x) {
                return Some(b.clone());
            }
            let mut both = x.clone();
            both.join(y);
            Some(Arc::new(Node::Leaf(both)))
        }
        (Node::Inner(x), Node::Inner(y)) => {
            let mut changed: Option<[Option<Arc<Node>>; FAN as usize]> = None;
            let mut theirs = true;
            for (i, (mine, other)) in x.iter().zip(y).enumerate() {
                let new = match (mine, other) {
                    (_, None) => None,
                    (None, Some(other)) => Some(other.clone()),
                    (Some(mine), Some(other)) => join(mine, other),
                };
                let result = new.as_ref().or(mine.as_ref());
                theirs &= match (result, other) {
                    (None, None) => true,
                    (Some(result), Some(other)) => Arc::ptr_eq(result, other),
                    _ => false,
                };
                if let Some(new) = new {
                    changed.get_or_insert_with(|| x.clone())[i] = Some(new);
                }
            }
            let changed = changed?;
            Some(if theirs {
                b.clone()
            } else {
                Arc::new(Node::Inner(changed))
            })
        }
        // Clocks of one launch have the same height.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark::Kind;
    use super::*;

    fn mark(block: u32, warp: usize, lane: u32, segment: u32) -> Mark {
        Mark::new(segment, block, 1 << lane, 7, warp, Kind::Plain)
    }

    #[test]
    fn clocks_know_lanes_of_warps_of_blocks() {
        let mut clock = Clock::new(2000);
        assert_ne!(clock.unknown(mark(1500, 3, 4, 0)), 0);
        clock.update(1500, |b| b.see(3, 1 << 4, u32::MAX, 2));
        assert_eq!(clock.unknown(mark(1500, 3, 4, 1)), 0);
        assert_ne!(clock.unknown(mark(1500, 3, 4, 2)), 0);
        assert_ne!(clock.unknown(mark(1500, 3, 5, 1)), 0);
        let mut other = Clock::new(2000);
        other.update(3, |b| b.see(0, u32::MAX, u32::MAX, 9));
        let before = clock.clone();
        clock.join(&other);
        assert_eq!(clock.unknown(mark(3, 0, 31, 8)), 0);
        assert_eq!(clock.unknown(mark(1500, 3, 4, 1)), 0);
        let joined = clock.clone();
        clock.join(&before);
        assert!(clock.is(&joined), "nothing new: the same clock");
        let mut third = before.clone();
        third.join(&joined);
        assert!(third.is(&joined), "all of it: the other clock");
    }

    #[test]
    fn operations_are_known_one_by_one() {
        let mut clock = Clock::new(1);
        let operation = |n| Mark::new(n, 0, 1, 40, 2, Kind::Copy);
        clock.learn(operation(3));
        clock.learn(operation(5));
        assert_ne!(clock.unknown(operation(4)), 0);
        clock.learn(operation(4));
        for n in 3..6 {
            assert_eq!(clock.unknown(operation(n)), 0);
        }
        assert_ne!(clock.unknown(operation(6)), 0);
    }
}
