//! One order for all memory: which accesses happened before which.
//!
//! The source is the memory model of the PTX ISA ("Memory Consistency Model", "Async proxy"). Every access to shared,
//! global or distributed shared memory is a [`Mark`]; two marks of one place *conflict* if one of them writes, unless
//! both are strong and each is in the other's scope. Two that conflict and are not ordered are a race, even if the
//! result is right.
//!
//! **Actors.** Each lane of each warp is an actor; so is each asynchronous operation (a copy, a matrix operation),
//! which is forked where it is issued and performs its accesses later. Program order holds within an actor and orders
//! no two lanes: lockstep is no synchronization.
//!
//! **Clocks.** What an actor is ordered behind is a [`Clock`]. An edge is a *release* (the clock as it is, with what the
//! releasing lane itself has done; its warp enters a new segment) and an *acquire* (the clock joins it).
//!
//! | what | releases | acquires |
//! |---|---|---|
//! | block barrier, warp barrier | who arrives | who waits |
//! | named barrier | who arrives, in the phase | who waits for the phase |
//! | cluster barrier, grid barrier | who arrives; where relaxed, what the lane's last fence of scope `cluster` has released | who waits |
//! | strong write, *release* | its lane, at the place | |
//! | strong write, *relaxed* | what the lane's last fence has released, or the lane itself at the place before ([`patterns`]) | |
//! | read-modify-write | the same, and what was released there before stays | |
//! | strong read, *acquire* | | what was released at the place |
//! | strong read, *relaxed* | | the same, at the lane's next fence, or at its next acquire there |
//! | reduction (`red`) | as a read-modify-write | nothing: its read "does not form an acquire pattern" |
//! | fence | the lane, for its relaxed writes to come | its relaxed reads so far |
//! | `fence.sc` ([`fences`]) | also for relaxed writes of lanes that it meets at a barrier | also relaxed reads of such lanes |
//! | mbarrier arrive | its lane, in the phase; where relaxed, as a relaxed strong write | |
//! | mbarrier arrive of another block's thread | at scope `cluster` its lane; else the operations alone that it has waited for, its reads, its accesses to tensor memory, and for asynchronous operations what it has fenced | |
//! | mbarrier try_wait, test_wait that succeeds | | the phase that completed: of other blocks' threads at scope `cluster` alone |
//! | the same, relaxed | | the same, at the lane's next fence |
//! | `fence.mbarrier_init` | its lane's initializations, at the cluster barrier, also where that is relaxed | |
//! | a copy's complete_tx | the copy, in the phase | |
//! | wait for groups | | the operations of the groups |
//! | `griddepcontrol.wait` | | the grid before this one (`exec::prior`) |
//!
//! Threads that have ended are at no barrier: "waits for all non-exited threads" (PTX ISA, "bar, barrier"). What they have written is
//! ordered by what they released before; their reads are over.
//!
//! Releases and acquires at a place hold within the narrower of the two scopes. A shuffle or vote orders nothing. A
//! loop condition that polls shared memory by plain loads counts as a strong read with *acquire*, and plain writes there as
//! strong ones with *release*, as if they were `volatile`. In global memory it is a plain read, and so a race with who writes
//! the place: nvcc may move the load out of the loop, which then never ends on a GPU.
//!
//! **Sizes.** Strong accesses to one place are only strong for one another if they are of one size. What is read through the
//! read-only path (`ld.global.nc`) must not be written by the grid at all, in whatever order.
//!
//! **Proxies.** A clock comes twice: all that is ordered before, and of it what a proxy fence has made visible to
//! asynchronous operations, by the state space of the fence ([`Known::fenced`]). An operation of the async proxy that reads what threads (or `cp.async`)
//! wrote, or writes over it, needs the write in the second one. The way back needs no fence: waiting for a completion implies
//! it. Neither does a write over what threads have only read. A tensor map that threads have changed is read by a tensor copy
//! whose thread has acquired it (`fence.proxy.tensormap`, of the writers for release and of the readers for acquire).
//!
//! **Tensor memory** is in the order of all memory: "the standard memory consistency model synchronization mechanisms also
//! apply" (PTX ISA, "Specialized Inter-thread Synchronization for tcgen05 instructions"). Besides, the fences of `tcgen05` order
//! it where threads synchronize by relaxed operations, which order nothing else: those pass on what a thread has done before
//! its `tcgen05.fence::before_thread_sync` (a commit does so too, [`Known::told`]), and a thread's later operations are ordered
//! behind that after its `tcgen05.fence::after_thread_sync` ([`Known::met`]). A `tcgen05.ld` reads until its
//! `tcgen05.wait::ld`: a release before the wait does not cover it. A warp loads and stores as a whole ("collectively", PTX ISA,
//! tcgen05.st), and waits as a whole: behind the wait one lane may arrive for all ([`Order::tensor_waited`]).
//!
//! **History.** A place ([`Place`]) holds its last write, its reads since, the strong accesses and what they released.
//! That is enough: a write that is ordered behind all earlier accesses represents them. Kernels whose blocks
//! synchronize by block and warp barriers alone have no clocks, and cells of 24 bytes instead ([`coarse`]): there an
//! epoch, counted by block barriers, and a segment a warp say the same; reads of what was written before the last block
//! barrier are noted together ([`pages`]).

pub(crate) mod clock;
pub(crate) mod coarse;
mod fences;
pub(crate) mod history;
pub(crate) mod mark;
pub(crate) mod pages;
mod patterns;

pub(crate) use crate::bytecode::{Scope, Strong};
pub(crate) use clock::{Clock, WARPS};
pub(crate) use fences::FenceOrder;
pub(crate) use history::{Alike, Conflict, Forked, Place};
pub(crate) use mark::{Kind, Mark};
pub(crate) use patterns::At;

use crate::alu::LANES;
use fences::Fences;
use patterns::Patterns;

/// The memory that a proxy fence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// That of the blocks of a cluster.
    Shared,
    Global,
    /// Tensor maps, of which `fence.proxy.tensormap` is.
    Maps,
    /// Memory that has two addresses, one of them in a multicast window (`fence.proxy.alias`).
    Aliases,
}

/// How many they are.
const SPACES: usize = 4;

/// What an actor is ordered behind.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// All accesses.
    pub(crate) all: Clock,
    /// Of these, those that asynchronous operations may read, by the space that they are to ([`Space`]).
    pub(crate) fenced: [Clock; SPACES],
    /// Writes that a `fence.proxy.tensormap` of their threads has released, for those that acquire them.
    maps: Clock,
    /// Accesses to tensor memory that their threads have published by a fence or commit: relaxed synchronization passes
    /// on these alone.
    pub(crate) told: Clock,
    /// Accesses to tensor memory that operations on tensor memory are ordered behind, whatever `all` says.
    pub(crate) met: Clock,
    /// Reads that writes are ordered behind, whatever `all` says.
    pub(crate) over: Clock,
    /// Accesses before each `fence.sc` that came before one of its own, in this run: what they wrote is not missed
    /// ([`Place::missed`]). It is no order by which races are judged, since the fences could come in another order.
    sc: Clock,
    /// Whether that includes the previous grid.
    pub(crate) prior: bool,
}

impl Known {
    /// Knows nothing, in a launch of `blocks` blocks.
    pub(crate) fn nothing(blocks: u64) -> Known {
        Known {
            all: Clock::new(blocks),
            fenced: [(); SPACES].map(|()| Clock::new(blocks)),
            maps: Clock::new(blocks),
            told: Clock::new(blocks),
            met: Clock::new(blocks),
            over: Clock::new(blocks),
            sc: Clock::new(blocks),
            prior: false,
        }
    }

    pub(crate) fn join(&mut self, other: &Known) {
        self.all.join(&other.all);
        for (own, other) in self.fenced.iter_mut().zip(&other.fenced) {
            own.join(other);
        }
        self.maps.join(&other.maps);
        self.told.join(&other.told);
        self.met.join(&other.met);
        self.over.join(&other.over);
        self.sc.join(&other.sc);
        self.prior |= other.prior;
    }

    fn fence(&mut self, spaces: &[Space], known: &Clock) {
        for space in spaces {
            self.fenced[*space as usize].join(known);
        }
    }

    /// Lanes of a warp have fenced what they themselves have done up to some segments, by space.
    fn see_fenced(&mut self, block: u32, (warp, lanes, all): (usize, u32, u32), ends: [u32; SPACES]) {
        for (fenced, end) in self.fenced.iter_mut().zip(ends).filter(|(_, end)| *end > 0) {
            fenced.update(block, |b| b.see(warp, lanes, all, end));
        }
    }

    fn is(&self, other: &Known) -> bool {
        let clocks = [
            (&self.all, &other.all),
            (&self.fenced[0], &other.fenced[0]),
            (&self.fenced[1], &other.fenced[1]),
            (&self.fenced[2], &other.fenced[2]),
            (&self.fenced[3], &other.fenced[3]),
            (&self.maps, &other.maps),
            (&self.told, &other.told),
            (&self.met, &other.met),
            (&self.over, &other.over),
            (&self.sc, &other.sc),
        ];
        clocks.iter().all(|(a, b)| a.is(b)) && self.prior == other.prior
    }

    /// What an arrival at scope `cta` tells another block: asynchronous operations, which accesses to tensor memory are too,
    /// reads, which are over, and for asynchronous operations what a proxy fence has made visible. What threads have written
    /// otherwise is left out.
    pub(crate) fn operations(&self) -> Known {
        let (mut met, mut over) = (self.met.clone(), self.over.clone());
        met.join(&self.all);
        over.join(&self.all);
        Known {
            all: self.all.operations(),
            fenced: self.fenced.clone(),
            maps: self.maps.clone(),
            told: self.told.clone(),
            met,
            over,
            sc: self.sc.clone(),
            prior: false,
        }
    }

    /// An asynchronous operation is complete. What it wrote is visible to others of its kind.
    pub(crate) fn learn(&mut self, operation: Mark) {
        self.all.learn(operation);
    }
}

/// The state of a warp in the order.
#[derive(Debug)]
struct Time {
    segment: u32,
    /// Lanes that exist, and those of them that have not ended.
    all: u32,
    exist: u32,
    /// The lanes know each other up to this segment, exclusive.
    own: u32,
    /// Segments up to which, exclusive, each lane has fenced its own accesses for asynchronous operations, by space: they are
    /// added to what it releases. 0 where all lanes know of each other's.
    fenced: [u32; SPACES],
    /// What all lanes know.
    known: Known,
    /// What each lane knows, where lanes differ.
    lanes: Option<Box<[Known]>>,
    fences: Option<Box<[Fences; LANES]>>,
    patterns: Option<Box<Patterns>>,
    /// For each warp of the block a segment up to which, exclusive, all lanes know it.
    floor: [u32; WARPS],
}

/// The order of a block's threads.
#[derive(Debug)]
pub(crate) struct Order {
    /// The block's number in the launch, and the first of its cluster.
    pub(crate) block: u32,
    cluster: (u32, u32),
    /// The first block of its device, and how many that has.
    device: (u32, u32),
    warps: Vec<Time>,
    /// A lane that has read what was released in a scope that does not reach it, and the scope.
    pub(crate) narrow: Option<(usize, u32, Scope)>,
    /// Counts block barriers.
    epoch: u32,
    /// Whether clocks are kept.
    fine: bool,
    /// Whether races are checked.
    pub(crate) check: bool,
    blocks: u64,
}

impl Order {
    /// The order of a block with warps of these lanes, in a launch of `blocks` blocks.
    pub(crate) fn new(check: bool, fine: bool, exist: &[u32], blocks: u64) -> Order {
        let time = |exist: &u32| Time {
            segment: 1,
            all: *exist,
            exist: *exist,
            own: 1,
            fenced: [0; SPACES],
            known: Known::nothing(blocks),
            lanes: None,
            fences: None,
            patterns: None,
            floor: [1; WARPS],
        };
        Order {
            block: 0,
            cluster: (0, 1),
            device: (0, u32::MAX),
            warps: exist.iter().map(time).collect(),
            narrow: None,
            epoch: 1,
            fine: fine && check,
            check,
            blocks,
        }
    }

    /// A new block starts: its number; the first of its cluster and how many that has; the same of its device.
    pub(crate) fn reset(&mut self, block: u32, cluster: (u32, u32), device: (u32, u32)) {
        let exist: Vec<u32> = self.warps.iter().map(|w| w.all).collect();
        *self = Order::new(self.check, self.fine, &exist, self.blocks);
        self.block = block;
        self.cluster = cluster;
        self.device = device;
    }

    /// Lanes have ended: no barrier waits for them.
    pub(crate) fn ended(&mut self, warp: usize, mask: u32) {
        self.warps[warp].exist &= !mask;
    }

    /// An access of a warp, without lanes.
    #[inline(always)]
    pub(crate) fn mark(&self, warp: usize, pc: usize, kind: Kind) -> Mark {
        Mark::new(self.warps[warp].segment, self.block, 0, pc, warp, kind)
    }

    /// The segment that a warp is in.
    #[inline(always)]
    pub(crate) fn segment(&self, warp: usize) -> u32 {
        self.warps[warp].segment
    }

    /// For each warp of the block a segment before which all lanes of `warp` know it.
    #[inline(always)]
    pub(crate) fn floor(&self, warp: usize) -> &[u32; WARPS] {
        &self.warps[warp].floor
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What a lane knows.
    pub(crate) fn known(&self, warp: usize, lane: u32) -> &Known {
        let time = &self.warps[warp];
        time.lanes
            .as_ref()
            .map_or(&time.known, |l| &l[lane as usize % LANES])
    }

    /// Whether a mark is ordered before what a lane does next.
    #[inline]
    pub(crate) fn ordered(&self, mark: Mark, warp: usize, lane: u32) -> bool {
        if mark.is_never() {
            return true;
        }
        let mut lanes = mark.lanes;
        if mark.block == self.block && !mark.is_operation() {
            if self.warps[warp].floor[mark.warp()] > mark.segment {
                return true;
            }
            if mark.warp() == warp {
                lanes &= !(1 << lane);
                if lanes == 0 {
                    return true;
                }
            }
        }
        self.fine && self.known(warp, lane).all.unknown(mark.with_lanes(lanes)) == 0
    }

    /// Whether a lane is ordered behind anything of another block, be it its reads alone; true where no order is kept.
    pub(crate) fn knows_of(&self, block: u32, warp: usize, lane: u32) -> bool {
        let known = self.known(warp, lane);
        let clocks = [&known.all, &known.over, &known.met, &known.told];
        !self.fine || clocks.iter().any(|clock| clock.knows_of(block))
    }

    /// Whether a read is over before what a lane writes next.
    pub(crate) fn over(&self, mark: Mark, warp: usize, lane: u32) -> bool {
        self.ordered(mark, warp, lane) || self.known(warp, lane).over.unknown(mark) == 0
    }

    /// Whether a mark is ordered before an instruction that all lanes of a warp do together: what they did so before comes
    /// before it.
    pub(crate) fn ordered_for_warp(&self, mark: Mark, warp: usize) -> bool {
        mark.of_warp(self.block, warp) || self.ordered(mark, warp, 0)
    }

    /// Whether a block is of this one's cluster.
    pub(crate) fn in_cluster(&self, block: u32) -> bool {
        self.within(Scope::Cluster, block)
    }

    /// Whether a block is of this one's device.
    pub(crate) fn on_device(&self, block: u32) -> bool {
        block.wrapping_sub(self.device.0) < self.device.1
    }

    /// Whether two threads' strong accesses are within each other's scope.
    fn within(&self, scope: Scope, block: u32) -> bool {
        match scope {
            Scope::Cta => block == self.block,
            Scope::Cluster => block.wrapping_sub(self.cluster.0) < self.cluster.1,
            Scope::Gpu => self.on_device(block),
            Scope::Sys => true,
        }
    }

    /// The narrowest scope that has both this block's threads and another's.
    fn distance(&self, block: u32) -> Scope {
        let scopes = [Scope::Cta, Scope::Cluster, Scope::Gpu];
        scopes
            .into_iter()
            .find(|s| self.within(*s, block))
            .unwrap_or(Scope::Sys)
    }

    /// What lanes have done and know, to be acquired elsewhere.
    pub(crate) fn release(&mut self, warp: usize, mask: u32) -> Known {
        let block = self.block;
        let time = &mut self.warps[warp];
        let mut known = match &time.lanes {
            None => time.known.clone(),
            Some(lanes) => {
                let mut all: Option<Known> = None;
                let mut last: Option<&Known> = None;
                for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
                    let known = &lanes[lane];
                    if last.is_some_and(|last| last.is(known)) {
                        continue;
                    }
                    last = Some(known);
                    match &mut all {
                        None => all = Some(known.clone()),
                        Some(all) => all.join(known),
                    }
                }
                all.unwrap_or_else(|| time.known.clone())
            }
        };
        if self.fine {
            let (own, end) = (time.own, time.segment + 1);
            let (exist, all) = (time.exist, time.all);
            known.all.update(block, |b| {
                b.see(warp, exist, all, own);
                b.see(warp, mask, all, end);
            });
            known.see_fenced(block, (warp, mask, all), time.fenced);
            time.segment += 1;
        }
        known
    }

    /// Lanes are ordered behind what was released.
    pub(crate) fn acquire(&mut self, warp: usize, mask: u32, released: &Known) {
        let block = self.block;
        self.change(warp, mask, |known| known.join(released));
        let time = &mut self.warps[warp];
        if time.lanes.is_none() {
            refresh(time, block);
        }
    }

    /// A warp has waited for its loads or stores of tensor memory. It does them together, and all of its lanes have come to the
    /// wait: each is ordered behind those of all.
    pub(crate) fn tensor_waited(&mut self, warp: usize) {
        let exist = self.warps[warp].exist;
        let done = self.release(warp, exist);
        self.change(warp, exist, |known| known.met.join(&done.all));
    }

    /// What relaxed synchronization passes on of lanes: accesses to tensor memory before their last
    /// `tcgen05.fence::before_thread_sync`.
    pub(crate) fn published(&self, warp: usize, mask: u32) -> Known {
        let mut published = Known::nothing(self.blocks);
        for lane in (0..LANES as u32).filter(|l| mask >> l & 1 != 0) {
            published.told.join(&self.known(warp, lane).told);
        }
        published
    }

    /// Lanes have waited, relaxed within a scope, for what was released: a fence may follow, or `tcgen05.fence::after_thread_sync`.
    pub(crate) fn hear(&mut self, warp: usize, mask: u32, scope: Scope, released: &Known) {
        if !self.fine {
            return;
        }
        self.change(warp, mask, |known| known.told.join(&released.told));
        for lane in (0..LANES as u32).filter(|lane| mask >> lane & 1 != 0) {
            self.suspect(warp, lane, scope, released);
        }
    }

    /// Changes what lanes know.
    fn change(&mut self, warp: usize, mask: u32, change: impl Fn(&mut Known)) {
        if !self.fine {
            return;
        }
        let time = &mut self.warps[warp];
        if time.lanes.is_none() && mask & time.exist == time.exist {
            change(&mut time.known);
            return;
        }
        let lanes = match &mut time.lanes {
            Some(lanes) => lanes,
            none => none.insert(vec![time.known.clone(); LANES].into()),
        };
        // Lanes that knew the same still do afterwards.
        let mut last: Option<(Known, Known)> = None;
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            match &last {
                Some((before, after)) if before.is(&lanes[lane]) => lanes[lane] = after.clone(),
                _ => {
                    let before = lanes[lane].clone();
                    change(&mut lanes[lane]);
                    last = Some((before, lanes[lane].clone()));
                }
            }
        }
        if mask & time.exist == time.exist {
            let (first, rest) = lanes.split_at(1);
            let exist = time.exist;
            if rest
                .iter()
                .enumerate()
                .all(|(l, k)| exist >> (l + 1) & 1 == 0 || first[0].is(k))
            {
                time.known = first[0].clone();
                time.lanes = None;
            }
        }
    }

    /// All live lanes of a warp meet.
    pub(crate) fn warp_sync(&mut self, warp: usize) {
        let block = self.block;
        self.hand_on(&[(warp, self.warps[warp].exist)]);
        let time = &mut self.warps[warp];
        if time.lanes.is_none() && (time.exist == time.all || !self.fine) {
            time.segment += 1;
            time.own = time.segment;
            time.floor[warp] = time.segment;
            let fenced = std::mem::take(&mut time.fenced);
            time.known.see_fenced(block, (warp, time.exist, time.all), fenced);
            return;
        }
        let exist = time.exist;
        let mut known = self.release(warp, exist);
        self.reads_of_ended(&mut known);
        let time = &mut self.warps[warp];
        time.known = known;
        time.lanes = None;
        time.own = time.segment;
        time.fenced = [0; SPACES];
        refresh(time, block);
    }

    /// The reads of threads that have ended are over.
    fn reads_of_ended(&self, known: &mut Known) {
        let gone = |time: &Time| time.all & !time.exist;
        if self.warps.iter().all(|time| gone(time) == 0) {
            return;
        }
        known.over.update(self.block, |b| {
            for (warp, time) in self.warps.iter().enumerate() {
                b.see(warp, gone(time), time.all, time.segment + 1);
            }
        });
    }

    /// All threads of the block meet.
    pub(crate) fn barrier(&mut self) {
        self.epoch += 1;
        if self.fine {
            let lanes: Vec<(usize, u32)> = self.warps.iter().map(|w| w.exist).enumerate().collect();
            self.hand_on(&lanes);
            let mut all = self.release_all();
            self.reads_of_ended(&mut all);
            self.acquire_all(&all);
            for time in &mut self.warps {
                time.fenced = [0; SPACES];
            }
            return;
        }
        let mut floor = [1; WARPS];
        for (time, floor) in self.warps.iter_mut().zip(&mut floor) {
            time.segment += 1;
            *floor = time.segment;
        }
        for (warp, time) in self.warps.iter_mut().enumerate() {
            time.floor = floor;
            time.own = floor[warp];
        }
    }

    /// What any thread of the block knows.
    pub(crate) fn everything(&self) -> Known {
        let mut all = Known::nothing(self.blocks);
        for time in &self.warps {
            all.join(&time.known);
            time.lanes.iter().flatten().for_each(|l| all.join(l));
        }
        all
    }

    /// What all threads of the block have done and know.
    pub(crate) fn release_all(&mut self) -> Known {
        let block = self.block;
        let alike = self
            .warps
            .iter()
            .all(|t| t.lanes.is_none() && t.known.is(&self.warps[0].known));
        let mut all = Known::nothing(self.blocks);
        if alike {
            all = self.warps[0].known.clone();
            let warps = &mut self.warps;
            all.all.update(block, |b| {
                for (warp, time) in warps.iter_mut().enumerate() {
                    time.segment += 1;
                    b.see(warp, time.exist, time.all, time.segment);
                }
            });
            for (warp, time) in self.warps.iter().enumerate() {
                all.see_fenced(block, (warp, time.exist, time.all), time.fenced);
            }
            return all;
        }
        for warp in 0..self.warps.len() {
            let exist = self.warps[warp].exist;
            let known = self.release(warp, exist);
            all.join(&known);
        }
        all
    }

    /// All threads of the block are ordered behind what was released.
    pub(crate) fn acquire_all(&mut self, released: &Known) {
        if !self.fine {
            return;
        }
        let block = self.block;
        for time in &mut self.warps {
            match time.lanes.take() {
                None => time.known.join(released),
                Some(lanes) => {
                    lanes.iter().for_each(|l| time.known.join(l));
                    time.known.join(released);
                }
            }
            refresh(time, block);
        }
    }

    /// `fence.proxy.async` of some spaces: asynchronous operations may read what a lane knows and has done there.
    pub(crate) fn fence_proxy(&mut self, warp: usize, mask: u32, spaces: &[Space]) {
        if !self.fine {
            return;
        }
        let exist = self.warps[warp].exist;
        if mask & exist == exist {
            // Each lane fences what it has done and knows, not what others have done.
            let time = &mut self.warps[warp];
            time.segment += 1;
            for space in spaces {
                time.fenced[*space as usize] = time.segment;
            }
            let (block, met, all) = (self.block, time.own, time.all);
            self.change(warp, mask, |own| {
                let mut known = own.all.clone();
                known.update(block, |b| b.see(warp, exist, all, met));
                own.fence(spaces, &known);
            });
            return;
        }
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            let known = self.release(warp, 1 << lane);
            self.change(warp, 1 << lane, |own| own.fence(spaces, &known.all));
        }
    }

    /// Whether a write by one address of a place is visible to a lane's access by another one: a `fence.proxy.alias` comes between
    /// the two.
    pub(super) fn sees_alias(&self, write: Mark, warp: usize, lane: u32) -> bool {
        let time = &self.warps[warp];
        let own = write.of_warp(self.block, warp) && write.lanes == 1 << lane;
        own && time.fenced[Space::Aliases as usize] > write.segment
            || self.known(warp, lane).fenced[Space::Aliases as usize].unknown(write) == 0
    }

    /// `fence.proxy.tensormap::generic.release`: what lanes have done to tensor maps may be acquired.
    pub(crate) fn release_maps(&mut self, warp: usize, mask: u32) {
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            let known = self.release(warp, 1 << lane);
            self.change(warp, 1 << lane, |own| own.maps.join(&known.all));
        }
    }

    /// `fence.proxy.tensormap::generic.acquire`: tensor copies that lanes issue later read maps as they have been released.
    pub(crate) fn acquire_maps(&mut self, warp: usize, mask: u32) {
        self.change(warp, mask, |known| {
            let maps = known.maps.clone();
            known.fence(&[Space::Maps], &maps);
        });
    }

    /// `tcgen05.fence::before_thread_sync`: publishes what lanes have done in tensor memory.
    pub(crate) fn tensor_fence_before(&mut self, warp: usize, mask: u32) {
        if !self.fine {
            return;
        }
        self.release(warp, mask);
        let (block, time) = (self.block, &self.warps[warp]);
        let (all, end) = (time.all, time.segment);
        self.change(warp, mask, |known| {
            known.told.update(block, |b| b.see(warp, mask, all, end));
        });
    }

    /// `tcgen05.fence::after_thread_sync`: lanes' later accesses to tensor memory are ordered behind what they have
    /// been told.
    pub(crate) fn tensor_fence_after(&mut self, warp: usize, mask: u32) {
        self.change(warp, mask, |known| {
            let told = known.told.clone();
            known.met.join(&told);
        });
    }

    /// Whether an access to tensor memory is ordered before what a warp does there next: as accesses of all memory are, or by
    /// the fences of `tcgen05`. An access that is not `asynchronous` needs no `tcgen05.fence::after_thread_sync`.
    pub(crate) fn tensor_ordered(&self, mark: Mark, warp: usize, asynchronous: bool) -> bool {
        let known = self.known(warp, 0);
        self.ordered_for_warp(mark, warp)
            || known.met.unknown(mark) == 0
            || !asynchronous && known.told.unknown(mark) == 0
    }

    /// Lanes know that operations are complete.
    pub(crate) fn learn(&mut self, warp: usize, mask: u32, operations: &[Mark]) {
        self.change(warp, mask, |known| {
            operations.iter().for_each(|o| known.learn(*o))
        });
    }

    /// Lanes are ordered behind the previous grid.
    pub(crate) fn behind_prior_grid(&mut self, warp: usize, mask: u32) {
        self.change(warp, mask, |known| known.prior = true);
    }
}

/// The floors that a warp's clock gives. Lanes that differ know at least what they had in common.
fn refresh(time: &mut Time, block: u32) {
    if let Some(floors) = time.known.all.floors(block) {
        for (floor, known) in time.floor.iter_mut().zip(floors) {
            *floor = (*floor).max(*known);
        }
    }
}

#[cfg(test)]
mod tests;
