//! Every order of a kernel's synchronizing operations that can make a difference (stateless model checking).
//!
//! A run is a sequence of *events*: an actor (lanes of a warp, or an asynchronous operation) acts on objects that others
//! may act on too: mbarriers, words that are accessed strongly, allocations of tensor memory. What lies between two events
//! of an actor (arithmetic, plain loads and stores) depends on nothing that others do, or it is a race, which the order of
//! memory (`exec/order`) reports whichever comes first. So two runs that differ only in the order of events that do not
//! depend on one another are one, and one of them suffices.
//!
//! The search runs the kernel again and again from the same memory. After each event it looks for earlier events that this
//! one depends on and that nothing orders before it; such a pair could also come in the other order, so at the state before
//! the earlier event an actor that leads there is put down for a later run (*source sets*; Abdulla, Aronis, Jonsson and
//! Sagonas, "Optimal Dynamic Partial Order Reduction", 2014). An actor whose event has been explored at a state *sleeps* in
//! the other runs from there until an event that its own depends on (*sleep sets*; Godefroid, 1996).
//!
//! Two operations on one object depend on one another unless they commute in every state. Arrivals of one phase of an
//! mbarrier commute: whichever comes last completes it. `.noComplete` commutes with no arrival, since only a phase that
//! other arrivals leave open permits it; initialization and invalidation commute with nothing. An operation that fails
//! depends on everything at its object. A wait that would not have been over before an arrival cannot have come before that.
//!
//! A loop that polls waits like an mbarrier's wait. If an iteration changes nothing ([`Search::retract`]), the run is left
//! and repeated without the iteration: the loop goes on when an object that it has read changes. So the numbers of failed
//! polls make no orders. These rules keep a correct pipeline at few runs, often one.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who acts: the lanes of a warp that come with this one, or an asynchronous operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    Lanes {
        block: u32,
        warp: u32,
        lane: u32,
        /// The order of the lanes at an atomic: a choice that only this actor makes.
        order: u16,
    },
    Operation {
        block: u32,
        number: u64,
    },
}

impl Actor {
    /// The same actor, its lanes in an order.
    pub(crate) fn in_order(self, order: u16) -> Actor {
        match self {
            Actor::Lanes {
                block, warp, lane, ..
            } => Actor::Lanes {
                block,
                warp,
                lane,
                order,
            },
            operation => operation,
        }
    }

    /// Whether both are one actor, in whatever order of its lanes.
    fn is(self, other: Actor) -> bool {
        self.in_order(0) == other.in_order(0)
    }
}

/// What is acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    /// By block and byte of its shared memory.
    Mbarrier(u32, u32),
    /// A piece of the shared memory of a block.
    Shared(u32, usize),
    /// A word of global memory, by its address.
    Global(u64),
    /// The columns of a block's tensor memory.
    Columns(u32),
    /// The order of `fence.sc`.
    Fence,
    /// Functions of the host, which may do anything.
    Host,
}

/// How an object is acted on. `phase` is that of an mbarrier before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    /// Writes the value that is there: an exchange that finds a lock taken. It orders memory as a write does, but no loop
    /// that polls goes on because of it.
    Same,
    /// Anything else: a write, an initialization, an operation that fails.
    Write,
    /// Bytes that a phase expects, or those that are copied before it knows of all arrivals.
    Count {
        phase: u64,
    },
    /// Arrivals, and nothing else; whether they complete the phase.
    Arrive {
        phase: u64,
        completes: bool,
    },
    /// Waits until the phase of this parity is complete.
    Wait {
        parity: u32,
    },
}

/// What an event did with each object.
pub(crate) type Footprint = Vec<(Object, Touch)>;

/// Whether two touches of one object depend on their order, the first of which came first.
fn depend(first: Touch, second: Touch) -> bool {
    match (first, second) {
        (Touch::Read | Touch::Wait { .. }, Touch::Read | Touch::Wait { .. }) => false,
        (Touch::Arrive { phase: a, completes }, Touch::Arrive { phase: b, .. }) => a != b || completes,
        _ => true,
    }
}

/// Whether the second event could have come before the first, as far as this object goes: waits that would not have been
/// over could not.
fn reversible(first: Touch, second: Touch) -> bool {
    match (first, second) {
        (Touch::Count { phase } | Touch::Arrive { phase, .. }, Touch::Wait { parity }) => {
            phase as u32 & 1 != parity & 1
        }
        _ => true,
    }
}

impl Touch {
    /// Whether a loop that has read the object may read something else afterwards.
    pub(crate) fn changes(self) -> bool {
        match self {
            Touch::Read | Touch::Same | Touch::Wait { .. } => false,
            // Tests of an mbarrier ask for its phase.
            Touch::Arrive { completes, .. } => completes,
            Touch::Write | Touch::Count { .. } => true,
        }
    }
}

/// The pairs of touches of a common object.
fn common<'a>(first: &'a Footprint, second: &'a Footprint) -> impl Iterator<Item = (Touch, Touch)> + 'a {
    let pairs = first.iter().flat_map(move |a| second.iter().map(move |b| (a, b)));
    pairs
        .filter(|((a, _), (b, _))| a == b || [*a, *b].contains(&Object::Host))
        .map(|((_, a), (_, b))| (*a, *b))
}

fn dependent(first: &Footprint, second: &Footprint) -> bool {
    common(first, second).any(|(a, b)| depend(a, b))
}

/// A set of events, by their numbers in the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Events(Vec<u64>);

impl Events {
    pub(crate) fn insert(&mut self, event: usize) {
        let word = event / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (event % 64);
    }

    pub(crate) fn contains(&self, event: usize) -> bool {
        self.0
            .get(event / 64)
            .is_some_and(|word| word >> (event % 64) & 1 != 0)
    }

    pub(crate) fn join(&mut self, other: &Events) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// A state of the path that is explored, and the event that leaves it.
#[derive(Debug)]
struct Node {
    enabled: Vec<Actor>,
    /// Actors whose next event need not be explored here, with that event.
    asleep: Vec<(Actor, Footprint)>,
    /// Actors that are to be explored here; those that have been sleep.
    wanted: BTreeSet<Actor>,
    /// Actors in loops that poll, which would change nothing here.
    polling: Vec<Actor>,
    chosen: Actor,
    footprint: Footprint,
    /// The events that happened before it.
    before: Events,
}

/// An iteration of a loop that polls and changes nothing, if it begins at a state of the path.
#[derive(Clone, Debug)]
struct Failing {
    /// Events before the state.
    depth: usize,
    actor: Actor,
    /// What the iteration reads.
    reads: BTreeSet<Object>,
}

#[derive(Debug, Default)]
struct Search {
    /// Every actor is explored at every state, for tests of what may be left out.
    unreduced: bool,
    path: Vec<Node>,
    /// Events of the present run so far.
    depth: usize,
    /// The first event of the present run that differs from the run before.
    fresh: usize,
    /// The first event whose state is new in the present run.
    new: usize,
    /// Iterations that change nothing, in the order of their states.
    failing: Vec<Failing>,
    /// The first event of the iteration for which the present run was left.
    retracted: Option<usize>,
    /// The events of the present run that touched an object.
    touched: BTreeMap<Object, Vec<usize>>,
    /// Whether a run has begun, and whether it was left since it repeats others.
    begun: bool,
    left: bool,
    /// Runs that came to their end, and those that were left.
    whole: u64,
    redundant: u64,
    /// Most events of a run.
    longest: usize,
    /// What was left out, and why.
    cut: Option<String>,
    /// Choices of which only some are explored, and why.
    sampled: Option<String>,
}

/// Most events of a run.
const MAX_EVENTS: usize = 20_000;

/// A search through the orders of a kernel's synchronizing operations. Call [`more`](Exploration::more), and while it says
/// so run the kernel from the same memory with `Program::launch_exploring`.
#[derive(Debug)]
pub struct Exploration {
    search: Mutex<Search>,
    most_runs: u64,
}

/// What a search has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Orders that were run to their end.
    pub runs: u64,
    /// Further runs that were left because they repeated another order.
    pub redundant: u64,
    /// Synchronizing operations of the longest run.
    pub longest: usize,
    /// Why not every order was run; `None` where each was.
    pub cut: Option<String>,
}

impl Exploration {
    /// A search of so many runs at most.
    pub fn new(most_runs: u64) -> Exploration {
        Exploration {
            search: Mutex::default(),
            most_runs: most_runs.max(1),
        }
    }

    /// A search that leaves no order out, of so many runs at most: what [`Exploration::new`] finds must be the same.
    #[doc(hidden)]
    pub fn unreduced(most_runs: u64) -> Exploration {
        let search = Search {
            unreduced: true,
            ..Search::default()
        };
        Exploration {
            search: Mutex::new(search),
            most_runs: most_runs.max(1),
        }
    }

    fn search(&self) -> MutexGuard<'_, Search> {
        self.search.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is another order to run: prepares for it.
    pub fn more(&self) -> bool {
        let search = &mut *self.search();
        if search.cut.is_some() {
            return false;
        }
        if std::mem::take(&mut search.begun) {
            *(if search.left {
                &mut search.redundant
            } else {
                &mut search.whole
            }) += 1;
            search.longest = search.longest.max(search.depth);
            if !search.next() {
                return false;
            }
        }
        let runs = search.whole + search.redundant;
        if runs >= self.most_runs {
            search.cut = Some(format!("{runs} runs were made, which is the limit"));
            return false;
        }
        (search.begun, search.left, search.depth) = (true, false, 0);
        search.touched.clear();
        true
    }

    /// What has been found out so far.
    pub fn explored(&self) -> Explored {
        let search = self.search();
        Explored {
            runs: search.whole,
            redundant: search.redundant,
            longest: search.longest,
            cut: search.cut.clone().or_else(|| search.sampled.clone()),
        }
    }

    /// Something that this search cannot cover.
    pub(crate) fn cut(&self, why: String) {
        self.search().cut.get_or_insert(why);
    }

    /// Choices of which this search explores only some.
    pub(crate) fn sampled(&self, why: String) {
        self.search().sampled.get_or_insert(why);
    }

    /// Actors in loops that poll, of which an earlier run has shown that they change nothing at the present state, each with
    /// what it reads.
    pub(crate) fn failing(&self) -> Vec<(Actor, BTreeSet<Object>)> {
        let search = self.search();
        let here = search.failing.iter().filter(|f| f.depth == search.depth);
        here.map(|f| (f.actor, f.reads.clone())).collect()
    }

    /// Chooses who acts next, while others poll in vain; `None` if all orders from here on repeat others, or if the run is too
    /// long.
    pub(crate) fn choose(&self, enabled: &[Actor], polling: &[Actor]) -> Option<Actor> {
        self.search().choose(enabled, polling)
    }

    /// Events of the present run so far.
    pub(crate) fn depth(&self) -> usize {
        self.search().depth
    }

    /// An iteration that polls, from one event on, has changed nothing: leaves the run, if the next one can do without it.
    pub(crate) fn retract(&self, actor: Actor, first: usize, reads: &BTreeSet<Object>) -> bool {
        self.search().retract(actor, first, reads)
    }

    /// Whether the present run was left for an iteration without which the next one begins.
    pub(crate) fn is_retracted(&self) -> bool {
        self.search().retracted.is_some()
    }

    /// The last event ended in a fault: whoever could have acted instead is explored too, if the search goes on.
    pub(crate) fn failed(&self) {
        let search = &mut *self.search();
        if let Some(last) = search.depth.checked_sub(1)
            && let Some(node) = search.path.get_mut(last)
        {
            node.wanted.extend(node.enabled.iter().copied());
        }
    }

    /// What the chosen actor did; `known` are the events that happened before. Gives the event's number.
    pub(crate) fn acted(&self, footprint: Footprint, known: &mut Events) {
        self.search().acted(footprint, known);
    }

    /// An actor waits at the end of the run for what may have been over earlier: `known` are the events that happened before.
    pub(crate) fn waits(&self, actor: Actor, footprint: &Footprint, known: &Events) {
        let search = &mut *self.search();
        let earlier = search.earlier(footprint);
        search.race(actor, footprint, known, &earlier);
    }

    /// Leaves the run: it repeats others.
    pub(crate) fn leave(&self) {
        self.search().left = true;
    }

    /// Whether the present run was left before its end, so that what it has computed means nothing.
    pub fn left(&self) -> bool {
        let search = self.search();
        search.left || search.cut.is_some()
    }

    /// All events of the run so far: those of earlier launches happened before what follows.
    pub(crate) fn so_far(&self) -> Events {
        let mut all = Events::default();
        (0..self.search().depth).for_each(|event| all.insert(event));
        all
    }
}

impl Search {
    /// Goes back to the last state at which another actor is to be explored; false if there is none.
    fn next(&mut self) -> bool {
        let mut acted = true;
        if let Some(first) = self.retracted.take() {
            self.path.truncate(first + usize::from(first < self.new));
            if first >= self.new {
                (self.fresh, self.new) = (first, first);
                return true;
            }
            acted = false;
        }
        while let Some(mut node) = self.path.pop() {
            let footprint = std::mem::take(&mut node.footprint);
            if std::mem::replace(&mut acted, true) {
                node.asleep.push((node.chosen, footprint));
            }
            let asleep = |actor: &&Actor| !node.asleep.iter().any(|(other, _)| other == *actor);
            if let Some(actor) = node.wanted.iter().find(asleep) {
                node.chosen = *actor;
                (self.fresh, self.new) = (self.path.len(), self.path.len() + 1);
                self.failing.retain(|failing| failing.depth <= self.path.len());
                self.path.push(node);
                return true;
            }
        }
        false
    }

    fn choose(&mut self, enabled: &[Actor], polling: &[Actor]) -> Option<Actor> {
        if let Some(node) = self.path.get_mut(self.depth) {
            node.polling = polling.to_vec();
            node.enabled = enabled.to_vec();
            return Some(node.chosen);
        }
        if self.depth >= MAX_EVENTS {
            self.cut = Some(format!(
                "a run has more than {MAX_EVENTS} synchronizing operations"
            ));
            return None;
        }
        let asleep: Vec<(Actor, Footprint)> = match self.path.last() {
            Some(node) if !self.unreduced => {
                let still = |(actor, next): &&(Actor, Footprint)| {
                    !actor.is(node.chosen) && !dependent(&node.footprint, next)
                };
                node.asleep.iter().filter(still).cloned().collect()
            }
            _ => Vec::new(),
        };
        let awake = |actor: &&Actor| !asleep.iter().any(|(other, _)| other == *actor);
        // Whoever acted last goes on: what belongs together stays together.
        let last = self.path.last().map(|node| node.chosen);
        let mut first = enabled.iter().filter(awake);
        let chosen = *first
            .clone()
            .find(|actor| last.is_some_and(|last| actor.is(last)))
            .or(first.next())?;
        let wanted = match self.unreduced {
            true => enabled.iter().copied().collect(),
            // Each order of its lanes is a choice of its own.
            false => enabled.iter().filter(|actor| actor.is(chosen)).copied().collect(),
        };
        self.path.push(Node {
            enabled: enabled.to_vec(),
            asleep,
            wanted,
            polling: polling.to_vec(),
            chosen,
            footprint: Footprint::new(),
            before: Events::default(),
        });
        Some(chosen)
    }

    /// An iteration of a loop that polls has only read, and left its thread as it was. A run in which the thread polls later
    /// leaves the same and orders less, so the present one need not go on. The next run knows that the actor waits at the
    /// state before the iteration. False if the iteration belongs to what earlier runs have explored.
    fn retract(&mut self, actor: Actor, first: usize, reads: &BTreeSet<Object>) -> bool {
        if self.unreduced || first < self.fresh || self.cut.is_some() {
            return false;
        }
        if let Some(node) = self.path.get_mut(first).filter(|_| first < self.new) {
            node.wanted.retain(|other| !other.is(actor));
        }
        self.failing.push(Failing {
            depth: first,
            actor,
            reads: reads.clone(),
        });
        (self.retracted, self.left) = (Some(first), true);
        true
    }

    /// The events so far on which another one depends.
    fn earlier(&self, footprint: &Footprint) -> BTreeSet<usize> {
        let mut earlier: BTreeSet<usize> = BTreeSet::new();
        for (object, _) in footprint {
            let all = match object {
                Object::Host => (0..self.depth).collect(),
                object => self.touched.get(object).cloned().unwrap_or_default(),
            };
            earlier.extend(all);
            earlier.extend(self.touched.get(&Object::Host).into_iter().flatten());
        }
        earlier.retain(|at| dependent(&self.path[*at].footprint, footprint));
        earlier
    }

    /// The events that happened before one that depends on some, by those that its actor knows.
    fn before(&self, known: &Events, earlier: &BTreeSet<usize>) -> Events {
        let mut before = known.clone();
        for at in earlier {
            before.join(&self.path[*at].before);
            before.insert(*at);
        }
        before
    }

    /// Puts down what leads to runs in which the next event of an actor, behind all so far, comes before one of `earlier`.
    fn race(&mut self, actor: Actor, footprint: &Footprint, known: &Events, earlier: &BTreeSet<usize>) {
        if self.depth < self.fresh || self.unreduced {
            return;
        }
        let before = self.before(known, earlier);
        for at in earlier.iter().rev().filter(|at| !known.contains(**at)) {
            let mut pairs = common(&self.path[*at].footprint, footprint);
            let turns = pairs.any(|(a, b)| depend(a, b) && reversible(a, b));
            drop(pairs);
            if turns && !self.polled_in_vain(*at, actor) {
                self.reverse(*at, actor, &before);
            }
        }
    }

    fn acted(&mut self, footprint: Footprint, known: &mut Events) {
        let event = self.depth;
        let earlier = self.earlier(&footprint);
        let mut before = self.before(known, &earlier);
        self.race(self.path[event].chosen, &footprint, known, &earlier);
        self.depth += 1;
        for (object, _) in &footprint {
            let of_it = self.touched.entry(*object).or_default();
            if of_it.last() != Some(&event) {
                of_it.push(event);
            }
        }
        let node = &mut self.path[event];
        (node.footprint, node.before) = (footprint, before.clone());
        before.insert(event);
        *known = before;
    }

    /// Whether the next event of an actor would have changed nothing at the state before an earlier one: its loop waited there.
    fn polled_in_vain(&self, earlier: usize, actor: Actor) -> bool {
        let since = &self.path[earlier..self.depth];
        self.path[earlier].polling.iter().any(|other| other.is(actor))
            && since.iter().all(|node| !node.chosen.is(actor))
    }

    /// Puts an actor down, at the state before an earlier event, that leads to a run in which the next event of `actor` comes
    /// before it.
    fn reverse(&mut self, earlier: usize, actor: Actor, before: &Events) {
        // What comes between and does not depend on the earlier event, and then the later one.
        let mut between: Vec<usize> = Vec::new();
        let mut first: Vec<Actor> = Vec::new();
        for at in earlier + 1..self.depth {
            let node = &self.path[at];
            if node.before.contains(earlier) {
                continue;
            }
            if !between.iter().any(|other| node.before.contains(*other)) {
                first.push(node.chosen);
            }
            between.push(at);
        }
        if !between.iter().any(|other| before.contains(*other)) {
            first.push(actor);
        }
        let node = &mut self.path[earlier];
        // Explored here, or in a run that is as this one would be.
        let covered = |actor: &Actor| {
            let asleep = node.asleep.iter().map(|(other, _)| other);
            node.wanted.iter().chain(asleep).any(|other| other.is(*actor))
        };
        if first.iter().any(covered) {
            return;
        }
        let enabled = |actor: &&Actor| node.enabled.iter().any(|other| other.is(**actor));
        match first.iter().find(enabled) {
            Some(actor) => {
                let orders = node.enabled.iter().filter(|other| other.is(*actor));
                node.wanted.extend(orders);
            }
            // A loop waits, and what it reads comes after the earlier event: there is no such run.
            None if first
                .iter()
                .any(|actor| node.polling.iter().any(|other| other.is(*actor))) => {}
            // The order between is not known as a whole: all are tried.
            None => node.wanted.extend(node.enabled.iter().copied()),
        }
    }
}
