//! Turns: the order in which what blocks do to one another takes effect, the same on any number of threads.
//!
//! The groups of a launch take turns, in an order that the seed determines. First each group starts, then those that wait
//! for others go on, round by round. No more groups are under way than a GPU holds: the others start when these are done. Threads run several groups at a time, but a group that comes to something that
//! others may see or that others determine (an atomic, a strong access, a poll) waits until all turns before its own are
//! over. So the result is that of one thread which runs one turn after the other.
//!
//! A round in which no group made progress is the last: those that still wait then wait for ever.
//!
//! The unit tests run this file under `loom`, which tries every interleaving of the threads.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
#[cfg(not(test))]
use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(test)]
use loom::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// What a thread is to run.
pub(crate) enum Taken<G> {
    /// A group that has not run yet, by its number in the order of starts.
    Fresh(u64),
    /// One that waited.
    Waiting(G),
}

/// What is left of a group at the end of its turn.
pub(crate) enum Left<G> {
    /// Nothing: it is done.
    Done,
    /// It waits; whether it made progress.
    Waiting(G, bool),
    /// It has failed: no later turn begins.
    Failed,
}

/// The turns of a launch's groups.
pub(crate) struct Turns<G> {
    state: Mutex<State<G>>,
    changed: Condvar,
}

struct State<G> {
    /// Groups that have not started.
    fresh: Range<u64>,
    /// Most groups that are under way at a time.
    room: u64,
    /// Those of this round that have waited and not had their turn.
    round: VecDeque<G>,
    /// Turns that have begun.
    begun: u64,
    /// Turns that are over, with all before them.
    over: u64,
    /// The results of turns that are over before one that began earlier is.
    early: BTreeMap<u64, Left<G>>,
    /// What waits for the next round.
    waiting: Vec<G>,
    /// Whether a group of this round made progress.
    moved: bool,
    /// Rounds so far.
    rounds: u64,
    /// No turn begins any more.
    closed: bool,
}

impl<G> Turns<G> {
    /// The turns of a number of groups, of which so many at most are under way at a time.
    pub(crate) fn new(groups: u64, room: u64) -> Turns<G> {
        Turns {
            state: Mutex::new(State {
                fresh: 0..groups,
                room: room.max(1),
                round: VecDeque::new(),
                begun: 0,
                over: 0,
                early: BTreeMap::new(),
                waiting: Vec::new(),
                moved: false,
                rounds: 0,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<G>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next turn; `None` where none is left. `sort` puts the groups of a new round, whose number it gets, into
    /// their order.
    pub(crate) fn take(&self, sort: impl Fn(u64, &mut Vec<G>)) -> Option<(u64, Taken<G>)> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            let again = state.round.pop_front().map(Taken::Waiting);
            // Those that are running may all have to wait: whether a group may start must not depend on how fast they are.
            let under_way = state.begun - state.over + state.waiting.len() as u64;
            let start = again.is_none() && under_way < state.room;
            let fresh = if start { state.fresh.next() } else { None };
            if let Some(taken) = again.or(fresh.map(Taken::Fresh)) {
                state.begun += 1;
                return Some((state.begun - 1, taken));
            }
            if state.over == state.begun {
                if state.waiting.is_empty() && state.fresh.is_empty() || !state.moved {
                    state.closed = true;
                    self.changed.notify_all();
                    return None;
                }
                let mut round = std::mem::take(&mut state.waiting);
                state.rounds += 1;
                sort(state.rounds, &mut round);
                state.round = round.into();
                state.moved = false;
                // Others may sleep while there are turns now.
                self.changed.notify_all();
                continue;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a group that has not started out of the launch, for whose turn it is.
    pub(crate) fn cancel(&self) -> Option<u64> {
        self.state().fresh.next()
    }

    /// Waits until all turns before one are over.
    pub(crate) fn wait(&self, turn: u64) {
        let mut state = self.state();
        while state.over < turn {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends a turn. Later ones may have ended before.
    pub(crate) fn end(&self, turn: u64, left: Left<G>) {
        let mut state = self.state();
        let state = &mut *state;
        state.closed |= matches!(left, Left::Failed);
        state.early.insert(turn, left);
        while let Some(left) = state.early.remove(&state.over) {
            state.over += 1;
            match left {
                Left::Done => state.moved = true,
                Left::Waiting(group, moved) => {
                    state.moved |= moved;
                    state.waiting.push(group);
                }
                Left::Failed => {}
            }
        }
        self.changed.notify_all();
    }

    /// The groups that wait for ever, in the order of their last turns, and how many have not started.
    pub(crate) fn into_stuck(self) -> (Vec<G>, u64) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.waiting, state.fresh.end - state.fresh.start)
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::thread;

    use super::*;

    /// What a group does in its turns: waits for that many values of a shared counter, and then adds one to it.
    struct Group {
        number: u32,
        waits_for: u32,
    }

    struct Launch {
        turns: Turns<Group>,
        waits: Vec<u32>,
        counter: AtomicU32,
        /// The groups in the order in which they were done.
        log: Mutex<Vec<(u64, u32)>>,
    }

    impl Launch {
        fn work(&self) {
            let reverse = |_: u64, groups: &mut Vec<Group>| groups.reverse();
            while let Some((turn, taken)) = self.turns.take(reverse) {
                let group = match taken {
                    Taken::Fresh(number) => Group {
                        number: number as u32,
                        waits_for: self.waits[number as usize],
                    },
                    Taken::Waiting(group) => group,
                };
                self.turns.wait(turn);
                let seen = self.counter.load(Ordering::Relaxed);
                let left = if seen < group.waits_for {
                    Left::Waiting(group, false)
                } else {
                    // Others would overwrite it, were it not this group's turn alone.
                    self.counter.store(seen + 1, Ordering::Relaxed);
                    self.log.lock().unwrap().push((turn, group.number));
                    Left::Done
                };
                self.turns.end(turn, left);
            }
        }
    }

    /// Runs groups that wait for so many others each, in every interleaving of two threads.
    fn every_interleaving(
        room: u64,
        waits: &'static [u32],
        done: &'static [(u64, u32)],
        stuck: &'static [u32],
    ) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let launch = Arc::new(Launch {
                turns: Turns::new(waits.len() as u64, room),
                waits: waits.to_vec(),
                counter: AtomicU32::new(0),
                log: Mutex::new(Vec::new()),
            });
            let other = launch.clone();
            let thread = thread::spawn(move || other.work());
            launch.work();
            thread.join().unwrap();
            let launch = Arc::try_unwrap(launch).ok().expect("the other thread has ended");
            assert_eq!(*launch.log.lock().unwrap(), done);
            let left: Vec<u32> = launch.turns.into_stuck().0.iter().map(|g| g.number).collect();
            assert_eq!(left, stuck);
        });
    }

    #[test]
    fn a_group_that_waits_for_a_later_one_goes_on() {
        // In the second round the third group comes first, and has to wait for a third one.
        every_interleaving(9, &[1, 0, 2], &[(1, 1), (4, 0), (5, 2)], &[]);
    }

    #[test]
    fn groups_that_wait_for_nobody_are_stuck() {
        every_interleaving(9, &[3, 0], &[(1, 1)], &[0]);
    }

    #[test]
    fn groups_start_where_there_is_room() {
        every_interleaving(1, &[0, 1], &[(0, 0), (1, 1)], &[]);
        // The first group has the only room and waits for the second.
        every_interleaving(1, &[1, 0], &[], &[0]);
    }

    #[test]
    fn no_turn_begins_after_a_failure() {
        loom::model(|| {
            let turns = Arc::new(Turns::<()>::new(3, 3));
            let work = |turns: &Turns<()>| {
                let mut taken = Vec::new();
                while let Some((turn, _)) = turns.take(|_, _| {}) {
                    taken.push(turn);
                    turns.wait(turn);
                    turns.end(turn, if turn == 0 { Left::Failed } else { Left::Done });
                }
                taken
            };
            let other = turns.clone();
            let thread = thread::spawn(move || work(&other));
            let mut taken = work(&turns);
            taken.extend(thread.join().unwrap());
            taken.sort_unstable();
            assert!(
                taken == [0] || taken == [0, 1],
                "one turn was under way at most: {taken:?}"
            );
            assert!(turns.take(|_, _| {}).is_none());
        });
    }
}
