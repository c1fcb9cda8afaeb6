//! The loops of a function, from its control flow.
//!
//! A loop is a set of blocks from each of which the others can be reached, without what jumps back to its first block: what is left of it
//! that is still such a set is a loop within it. The order of the text decides nothing. ptxas puts rare parts of a loop behind the code, so
//! that a jump back in the text is often none in the flow.

use std::collections::{BTreeMap, BTreeSet};

use super::listing::Item;

/// A loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// Its items, those of loops within it included.
    pub(super) items: BTreeSet<usize>,
    /// The items that are in no loop within it.
    pub(super) own: BTreeSet<usize>,
    /// Loops around it.
    pub(super) depth: usize,
    /// Whether there is a loop within it.
    pub(super) has_inner: bool,
}

/// Loops around each other that are followed.
const MAX_DEPTH: usize = 32;

/// The blocks: where each begins and ends, and which may follow it.
struct Flow {
    ranges: Vec<(usize, usize)>,
    next: Vec<Vec<usize>>,
}

impl Flow {
    fn from_items(items: &[Item]) -> Flow {
        let mut starts = BTreeSet::from([0]);
        for (at, item) in items.iter().enumerate() {
            if item.mnemonic.is_empty() {
                starts.insert(at);
            } else if item.target.is_some() || !item.continues {
                starts.insert(at + 1);
            }
        }
        let starts: Vec<usize> = starts.into_iter().filter(|at| *at < items.len()).collect();
        let ends = starts.iter().skip(1).copied().chain([items.len()]);
        let ranges: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
        let blocks = ranges.iter().enumerate();
        let labels: BTreeMap<&str, usize> = blocks
            .filter_map(|(block, (start, _))| {
                let first = items.get(*start)?;
                first.mnemonic.is_empty().then_some((first.text.as_str(), block))
            })
            .collect();
        let next = ranges.iter().enumerate().map(|(block, (_, end))| {
            let Some(last) = items.get(end - 1) else {
                return Vec::new();
            };
            let target = last
                .target
                .as_ref()
                .and_then(|label| labels.get(label.as_str()).copied());
            let following = Some(block + 1).filter(|next| last.continues && *next < ranges.len());
            target.into_iter().chain(following).collect()
        });
        let next = next.collect();
        Flow { ranges, next }
    }

    /// The sets of blocks within `blocks` that reach each other, without the jumps to `header`. Those of a block alone are there only if it
    /// jumps to itself.
    fn cycles(&self, blocks: &BTreeSet<usize>, header: Option<usize>) -> Vec<BTreeSet<usize>> {
        let next = |block: usize| {
            let next = self.next[block].iter().copied();
            next.filter(move |next| blocks.contains(next) && Some(*next) != header)
        };
        // Kosaraju: the order in which blocks are left, then the blocks that reach each of them, from the last one on.
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        for start in blocks {
            if !seen.insert(*start) {
                continue;
            }
            let mut open = vec![(*start, next(*start).collect::<Vec<_>>())];
            while let Some((block, left)) = open.last_mut() {
                match left.pop() {
                    Some(one) if seen.insert(one) => open.push((one, next(one).collect())),
                    Some(_) => {}
                    None => {
                        order.push(*block);
                        open.pop();
                    }
                }
            }
        }
        let mut before: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for block in blocks {
            for one in next(*block) {
                before.entry(one).or_default().push(*block);
            }
        }
        let (mut cycles, mut taken) = (Vec::new(), BTreeSet::new());
        for start in order.into_iter().rev() {
            if !taken.insert(start) {
                continue;
            }
            let (mut cycle, mut open) = (BTreeSet::from([start]), vec![start]);
            while let Some(block) = open.pop() {
                for one in before.get(&block).into_iter().flatten() {
                    if taken.insert(*one) {
                        cycle.insert(*one);
                        open.push(*one);
                    }
                }
            }
            if cycle.len() > 1 || next(start).any(|one| one == start) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The block through which a loop is entered; the first in the text, if there are several or none.
    fn header(&self, cycle: &BTreeSet<usize>) -> Option<usize> {
        let enters = |block: &&usize| {
            let mut others = (0..self.next.len()).filter(|other| !cycle.contains(other));
            **block == 0 || others.any(|other| self.next[other].contains(*block))
        };
        cycle.iter().find(enters).or(cycle.first()).copied()
    }

    fn items_of(&self, blocks: &BTreeSet<usize>) -> BTreeSet<usize> {
        blocks
            .iter()
            .flat_map(|block| self.ranges[*block].0..self.ranges[*block].1)
            .collect()
    }

    fn add(&self, blocks: &BTreeSet<usize>, header: Option<usize>, depth: usize, loops: &mut Vec<Loop>) {
        if depth > MAX_DEPTH {
            return;
        }
        for cycle in self.cycles(blocks, header) {
            let items = self.items_of(&cycle);
            let at = loops.len();
            loops.push(Loop {
                own: items.clone(),
                items,
                depth,
                has_inner: false,
            });
            self.add(&cycle, self.header(&cycle), depth + 1, loops);
            let inner: BTreeSet<usize> = loops[at + 1..]
                .iter()
                .flat_map(|inner| inner.items.iter().copied())
                .collect();
            loops[at].has_inner = !inner.is_empty();
            loops[at].own.retain(|item| !inner.contains(item));
        }
    }
}

/// The loops of a function's items, in the order of their beginnings.
pub(super) fn find(items: &[Item]) -> Vec<Loop> {
    if items.is_empty() {
        return Vec::new();
    }
    let flow = Flow::from_items(items);
    let all = (0..flow.ranges.len()).collect();
    let mut loops = Vec::new();
    flow.add(&all, None, 0, &mut loops);
    // The jump to itself at a function's end is no loop.
    loops.retain(|one| {
        one.items
            .iter()
            .filter(|at| !items[**at].mnemonic.is_empty())
            .count()
            > 1
    });
    loops.sort_by_key(|one| one.items.first().copied());
    loops
}
