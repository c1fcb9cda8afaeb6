//! The history of one place of memory, and which accesses to it are allowed.

use std::sync::Arc;

use super::mark::{Kind, Mark};
use super::{At, Known, Order, Space};
use crate::bytecode::{Scope, Strong};

/// The mark of an access of this scope.
fn kind(scope: Scope) -> Kind {
    match scope {
        Scope::Cta => Kind::Cta,
        Scope::Cluster => Kind::Cluster,
        Scope::Gpu => Kind::Gpu,
        Scope::Sys => Kind::Sys,
    }
}

/// What was released at a place, and within which scope.
#[derive(Clone, Debug)]
struct Release {
    scope: Scope,
    block: u32,
    known: Known,
}

/// A strong write that other blocks need not see yet.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    /// The bits that it has replaced.
    before: u64,
    by: Mark,
    /// How many more reads may miss it.
    misses: u8,
}

/// Most reads that miss a write: loops that wait for it end.
const MAX_MISSES: u8 = 3;

/// Fields that few places need.
#[derive(Clone, Debug, Default)]
struct Extra {
    /// Reads since the last write, except the last one.
    reads: Vec<Mark>,
    /// Strong writes since the last plain one.
    strong: Vec<Mark>,
    released: Vec<Release>,
    /// A read through the path for memory that does not change.
    constant: Option<Mark>,
    /// The bits of the last strong access; 0 before there is one.
    bits: u8,
    /// The last strong write, as long as reads may miss it.
    unseen: Option<Unseen>,
}

/// The history of a place.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    write: Mark,
    read: Mark,
    /// Neighbours that one operation has accessed share it.
    extra: Option<Arc<Extra>>,
}

/// An access that another one is not ordered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    Write(Mark),
    Read(Mark),
    /// Ordered, but without a proxy fence.
    Unfenced(Mark),
    /// A change of a tensor map, ordered, but not acquired by a proxy fence.
    Map(Mark),
    /// One of the two is a read through the path for memory that does not change; whether that is the earlier one.
    Constant(Mark, bool),
    /// Both are strong, but of different sizes.
    Sizes(Mark),
    /// Ordered, but made by another address of the place, without a fence between aliases.
    Alias(Mark),
    /// In tensor memory, and published to this thread by relaxed synchronization; whether the access was a write.
    Unmet(Mark, bool),
}

impl Conflict {
    /// The access.
    pub(crate) fn mark(self) -> Mark {
        match self {
            Conflict::Write(mark)
            | Conflict::Read(mark)
            | Conflict::Unfenced(mark)
            | Conflict::Map(mark)
            | Conflict::Constant(mark, _)
            | Conflict::Sizes(mark)
            | Conflict::Alias(mark)
            | Conflict::Unmet(mark, _) => mark,
        }
    }

    /// The same in tensor memory, for who knows this.
    pub(crate) fn in_tensor_memory(self, known: &Known) -> Conflict {
        match self {
            Conflict::Write(mark) if known.told.unknown(mark) == 0 => Conflict::Unmet(mark, true),
            Conflict::Read(mark) if known.told.unknown(mark) == 0 => Conflict::Unmet(mark, false),
            other => other,
        }
    }
}

/// The order as an asynchronous operation sees it: the issuing thread's when it was issued, plus the operation itself.
#[derive(Clone, Debug)]
pub(crate) struct Forked {
    /// What the issuing thread knew, including its own accesses.
    pub(crate) known: Known,
    /// The operation.
    pub(crate) mark: Mark,
    /// Other operations that it follows in its queue.
    pub(crate) after: Vec<Mark>,
}

impl Forked {
    /// The mark of the operation's writes; `mark` is that of its reads.
    fn write(&self) -> Mark {
        self.mark.written()
    }

    /// Whether an access came before the operation was issued.
    pub(crate) fn ordered(&self, mark: Mark) -> bool {
        mark.is_never()
            || mark == self.mark
            || mark == self.write()
            || self.known.all.unknown(mark) == 0
            || mark.is_operation() && self.after.contains(&mark)
    }

    /// The same for an access to tensor memory, which fences of `tcgen05` order as well.
    fn met(&self, mark: Mark) -> bool {
        self.ordered(mark) || self.known.met.unknown(mark) == 0
    }

    /// The same for a read before a write.
    fn over(&self, mark: Mark) -> bool {
        self.ordered(mark) || self.known.over.unknown(mark) == 0
    }

    /// Whether what was written is visible to an operation of the async proxy.
    fn visible(&self, write: Mark, space: Space) -> bool {
        let generic = !write.is_never() && write.kind() != Kind::Engine;
        !generic || self.mark.kind() != Kind::Engine || self.fenced(write, space)
    }

    /// Whether a proxy fence that comes before the operation has made a write visible to it.
    fn fenced(&self, write: Mark, space: Space) -> bool {
        self.known.fenced[space as usize].unknown(write) == 0
    }
}

/// What an access of an operation has made of the last place that it came to. Most neighbours in a tile have one history: what was
/// allowed at one of them is allowed at the next, and leaves the same history there, so that it is checked once.
#[derive(Debug, Default)]
pub(crate) struct Alike(Option<(Place, Place)>);

impl Alike {
    /// The access of a place. It must depend on the operation and on the place's history alone.
    #[inline]
    pub(crate) fn access(
        &mut self,
        place: &mut Place,
        access: impl FnOnce(&mut Place) -> Result<(), Conflict>,
    ) -> Result<(), Conflict> {
        if let Some((before, after)) = &self.0
            && before.is(place)
        {
            place.clone_from(after);
            return Ok(());
        }
        let before = place.clone();
        access(place)?;
        self.0 = Some((before, place.clone()));
        Ok(())
    }
}

impl Place {
    /// What a strong read of another block may see in place of the last write: what was there before. Not where the
    /// reader is ordered behind the write, nor where a `fence.sc` of the reader came behind one that followed the write.
    pub(crate) fn missed(&mut self, order: &Order, warp: usize, lane: u32) -> Option<u64> {
        let unseen = self.extra.as_mut().map(Arc::make_mut)?.unseen.as_mut()?;
        let may_miss = unseen.misses > 0
            && unseen.by.block != order.block
            && !order.ordered(unseen.by, warp, lane)
            && order.known(warp, lane).sc.unknown(unseen.by) != 0;
        if !may_miss {
            return None;
        }
        unseen.misses -= 1;
        Some(unseen.before)
    }

    /// Another block has seen the last write, or an atomic has replaced it: nobody sees what was before any more.
    pub(crate) fn seen(&mut self, block: u32) {
        if let Some(extra) = &mut self.extra
            && extra.unseen.is_some_and(|unseen| unseen.by.block != block)
        {
            Arc::make_mut(extra).unseen = None;
        }
    }

    /// Whether what the place holds was written without a release: who still reads it after the next write acquires
    /// nothing by that.
    pub(crate) fn releases_nothing(&self) -> bool {
        self.extra.as_ref().is_none_or(|extra| extra.released.is_empty())
    }

    /// A strong write replaced `before`, if other blocks may still see that.
    pub(crate) fn replaced(&mut self, before: Option<u64>, by: Mark) {
        self.extra_mut().unseen = before.map(|before| Unseen {
            before,
            by,
            misses: MAX_MISSES,
        });
    }

    pub(crate) const EMPTY: Place = Place {
        write: Mark::NEVER,
        read: Mark::NEVER,
        extra: None,
    };

    fn extra_mut(&mut self) -> &mut Extra {
        Arc::make_mut(self.extra.get_or_insert_default())
    }

    /// Whether both have one history.
    #[inline]
    fn is(&self, other: &Place) -> bool {
        let shared = match (&self.extra, &other.extra) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            _ => false,
        };
        shared && self.write == other.write && self.read == other.read
    }

    /// Whether the place has been written.
    pub(crate) fn is_written(&self) -> bool {
        !self.write.is_never() || self.extra.as_ref().is_some_and(|e| !e.strong.is_empty())
    }

    /// The last write.
    pub(crate) fn last_write(&self) -> Mark {
        self.write
    }

    /// The instruction of the asynchronous operation that has written last.
    pub(crate) fn operation(&self) -> Option<usize> {
        let by_operation = !self.write.is_never() && self.write.is_operation();
        by_operation.then(|| self.write.pc())
    }

    /// Whether anybody has read since the last write.
    pub(crate) fn is_read(&self) -> bool {
        !self.read.is_never() || self.extra.as_ref().is_some_and(|e| !e.reads.is_empty())
    }

    /// An access by another block, or by an operation of one, that is not known; and whether it wrote.
    pub(crate) fn left_behind(&self, block: u32, known: &super::Clock) -> Option<(Mark, bool)> {
        let far = |m: &Mark| {
            let of_others = m.block != block || m.kind() == Kind::Engine;
            !m.is_never() && of_others && known.unknown(*m) != 0
        };
        let reads = self.extra.iter().flat_map(|e| &e.reads).chain([&self.read]);
        let writes = self.extra.iter().flat_map(|e| &e.strong).chain([&self.write]);
        let read = reads.copied().find(|m| far(m)).map(|m| (m, false));
        read.or_else(|| writes.copied().find(|m| far(m)).map(|m| (m, true)))
    }

    /// A read by one lane. A `lenient` read does not race with strong writes: a compare-and-swap loop begins with one.
    pub(crate) fn read(&mut self, order: &Order, me: Mark, lane: u32, lenient: bool) -> Result<(), Conflict> {
        let warp = me.warp();
        self.read_if(me, lenient, |mark| order.ordered(mark, warp, lane))?;
        self.check_aliases(order, me, lane)
    }

    /// A write by another address of the place must be visible to this one.
    #[inline]
    fn check_aliases(&self, order: &Order, me: Mark, lane: u32) -> Result<(), Conflict> {
        if self.extra.is_none() && !self.write.is_alias_of(me) {
            return Ok(());
        }
        let strong = self.extra.iter().flat_map(|extra| &extra.strong);
        let mut aliases = strong.chain([&self.write]).filter(|mark| mark.is_alias_of(me));
        match aliases.find(|mark| !order.sees_alias(**mark, me.warp(), lane)) {
            Some(mark) => Err(Conflict::Alias(*mark)),
            None => Ok(()),
        }
    }

    /// A read by one lane through the path for memory that does not change.
    pub(crate) fn read_constant(&mut self, order: &Order, me: Mark, lane: u32) -> Result<(), Conflict> {
        if order.check && self.is_written() {
            let strong = self.extra.iter().flat_map(|e| &e.strong).next();
            return Err(Conflict::Constant(*strong.unwrap_or(&self.write), false));
        }
        self.read(order, me, lane, false)?;
        self.extra_mut().constant = Some(me);
        Ok(())
    }

    /// A write over what has been read through that path.
    fn check_constant(&self) -> Result<(), Conflict> {
        let read = self.extra.as_ref().and_then(|extra| extra.constant);
        read.map_or(Ok(()), |mark| Err(Conflict::Constant(mark, true)))
    }

    /// All lanes of `me` read tensor memory by one instruction.
    pub(crate) fn read_together(&mut self, order: &Order, me: Mark) -> Result<(), Conflict> {
        let read = self.read_if(me, false, |mark| order.tensor_ordered(mark, me.warp(), true));
        read.map_err(|conflict| conflict.in_tensor_memory(order.known(me.warp(), 0)))
    }

    fn read_if(&mut self, me: Mark, lenient: bool, ordered: impl Fn(Mark) -> bool) -> Result<(), Conflict> {
        if !ordered(self.write) {
            return Err(Conflict::Write(self.write));
        }
        if let Some(extra) = &self.extra
            && !lenient
            && let Some(mark) = extra.strong.iter().find(|m| !ordered(**m))
        {
            return Err(Conflict::Write(*mark));
        }
        self.note_read(me, ordered);
        Ok(())
    }

    /// Records a read; reads that are ordered before it are dropped.
    fn note_read(&mut self, me: Mark, ordered: impl Fn(Mark) -> bool) {
        if self.read.together(me) {
            self.read.lanes |= me.lanes;
            return;
        }
        let last = std::mem::replace(&mut self.read, me);
        if last.is_never() || ordered(last) {
            return;
        }
        let reads = &mut self.extra_mut().reads;
        if let Some(same) = reads.iter_mut().find(|m| m.together(last)) {
            same.lanes |= last.lanes;
            return;
        }
        if reads.len() >= 4 && reads.len().is_power_of_two() {
            reads.retain(|m| !ordered(*m));
        }
        reads.push(last);
    }

    /// A read that is not `over` or a strong write that is not `ordered`, which `me` may not overwrite.
    fn blocked(&self, ordered: &impl Fn(Mark) -> bool, over: &impl Fn(Mark) -> bool) -> Option<Conflict> {
        if !over(self.read) {
            return Some(Conflict::Read(self.read));
        }
        let extra = self.extra.as_ref()?;
        if let Some(mark) = extra.strong.iter().find(|m| !ordered(**m)) {
            return Some(Conflict::Write(*mark));
        }
        extra
            .reads
            .iter()
            .find(|m| !over(**m))
            .map(|m| Conflict::Read(*m))
    }

    /// A write by one lane; `same` says that the place holds the value already.
    pub(crate) fn write(&mut self, order: &Order, me: Mark, lane: u32, same: bool) -> Result<(), Conflict> {
        if !same {
            self.check_constant()?;
            let ordered = |mark| order.ordered(mark, me.warp(), lane);
            self.write_if(ordered, |mark| order.over(mark, me.warp(), lane))?;
        }
        self.check_aliases(order, me, lane)?;
        self.written(me);
        Ok(())
    }

    /// All lanes of `me` write tensor memory by one instruction, or free it, which is not `asynchronous`.
    pub(crate) fn write_together(
        &mut self,
        order: &Order,
        me: Mark,
        asynchronous: bool,
    ) -> Result<(), Conflict> {
        let ordered = |mark| order.tensor_ordered(mark, me.warp(), asynchronous);
        let write = self.write_if(ordered, ordered);
        write.map_err(|conflict| conflict.in_tensor_memory(order.known(me.warp(), 0)))?;
        self.written(me);
        Ok(())
    }

    fn write_if(&self, ordered: impl Fn(Mark) -> bool, over: impl Fn(Mark) -> bool) -> Result<(), Conflict> {
        if !ordered(self.write) {
            return Err(Conflict::Write(self.write));
        }
        self.blocked(&ordered, &over).map_or(Ok(()), Err)
    }

    fn written(&mut self, me: Mark) {
        self.write = me;
        self.read = Mark::NEVER;
        self.extra = None;
    }

    /// A strong access by one lane.
    pub(crate) fn strong(
        &mut self,
        order: &mut Order,
        me: Mark,
        lane: u32,
        access: Strong,
    ) -> Result<(), Conflict> {
        let warp = me.warp();
        let me = me.with_kind(kind(access.scope));
        if access.writes && !access.same {
            self.check_constant()?;
        }
        let before = self.extra.as_ref().map_or(0, |extra| extra.bits);
        let sizes = before != 0 && access.bits != 0 && before != access.bits;
        let allowed = |order: &Order, mark: Mark| {
            // Two strong accesses need no order if each is within the other's scope.
            !mark.is_never()
                && !sizes
                && mark
                    .scope()
                    .is_some_and(|s| order.within(s.min(access.scope), mark.block))
                || order.ordered(mark, warp, lane)
        };
        let polls = access.polled && !access.writes;
        let checked = !polls && !access.same;
        let told = |conflict: Conflict| match conflict.mark().is_strong() && sizes {
            true => Conflict::Sizes(conflict.mark()),
            false => conflict,
        };
        if checked && !allowed(order, self.write) {
            return Err(Conflict::Write(self.write));
        }
        if access.writes {
            let over = |mark: Mark| allowed(order, mark) || order.over(mark, warp, lane);
            if let Some(conflict) = self.blocked(&|mark| allowed(order, mark), &over)
                && checked
            {
                return Err(told(conflict));
            }
        } else if let Some(extra) = &self.extra
            && let Some(mark) = extra.strong.iter().find(|m| !allowed(order, **m))
        {
            return Err(told(Conflict::Write(*mark)));
        }
        if access.bits != 0 && !access.polled {
            self.extra_mut().bits = access.bits;
        }
        if access.reads && !access.reduces {
            self.acquire(order, warp, lane, access);
        }
        if !access.writes {
            let order = &*order;
            self.note_read(me, |mark| order.ordered(mark, warp, lane));
            return Ok(());
        }
        let at = At::Place(std::ptr::from_ref(self).addr());
        let released = match access.releases {
            true => {
                let known = order.release(warp, 1 << lane);
                if !access.polled {
                    order.has_released(warp, 1 << lane, at, access.scope, &known);
                }
                vec![(access.scope, known)]
            }
            false => {
                let mut released = order.released(warp, lane, access.scope);
                released.extend(order.released_before(warp, lane, at, access.scope));
                released
            }
        };
        if access.polled && !(access.same && self.is_written()) {
            self.written(me.with_kind(Kind::Plain));
        }
        let extra = self.extra_mut();
        if !access.reads && !access.same {
            extra.released.clear();
        }
        for (scope, known) in released {
            let same = |r: &&mut Release| {
                let whole = scope == Scope::Gpu && order.on_device(r.block) || scope == Scope::Sys;
                r.scope == scope && (whole || r.block == me.block)
            };
            match extra.released.iter_mut().find(same) {
                Some(release) => release.known.join(&known),
                None => extra.released.push(Release {
                    scope,
                    block: me.block,
                    known,
                }),
            }
        }
        if access.polled {
            return Ok(());
        }
        match extra.strong.iter_mut().find(|m| m.together(me)) {
            Some(same) => same.lanes |= me.lanes,
            None => {
                if extra.strong.len() >= 4 && extra.strong.len().is_power_of_two() {
                    let order = &*order;
                    extra.strong.retain(|m| !order.ordered(*m, warp, lane));
                }
                extra.strong.push(me);
            }
        }
        Ok(())
    }

    /// A strong read acquires what was released here.
    fn acquire(&self, order: &mut Order, warp: usize, lane: u32, access: Strong) {
        let at = At::Place(std::ptr::from_ref(self).addr());
        if access.acquires {
            order.acquire_read(warp, lane, at, access.scope);
        }
        let Some(extra) = &self.extra else {
            return;
        };
        for release in &extra.released {
            if !order.within(release.scope.min(access.scope), release.block) {
                order.narrow = Some((warp, lane, release.scope.min(access.scope)));
                continue;
            }
            if access.acquires {
                order.acquire(warp, 1 << lane, &release.known);
            } else {
                let distance = order.distance(release.block);
                order.hear(warp, 1 << lane, distance, &release.known);
                order.has_read(warp, lane, at, distance, &release.known);
            }
        }
    }

    /// An asynchronous operation reads tensor memory, to which proxy fences do not apply.
    pub(crate) fn tensor_read_by(&mut self, operation: &Forked) -> Result<(), Conflict> {
        if !operation.met(self.write) {
            return Err(Conflict::Write(self.write).in_tensor_memory(&operation.known));
        }
        if self.read != operation.mark {
            self.note_read(operation.mark, |mark| operation.met(mark));
        }
        Ok(())
    }

    /// An asynchronous operation writes tensor memory.
    pub(crate) fn tensor_write_by(&mut self, operation: &Forked) -> Result<(), Conflict> {
        let write = self.write_if(|mark| operation.met(mark), |mark| operation.met(mark));
        write.map_err(|conflict| conflict.in_tensor_memory(&operation.known))?;
        self.written(operation.write());
        Ok(())
    }

    /// An asynchronous operation reads.
    pub(crate) fn read_by(&mut self, operation: &Forked, space: Space) -> Result<(), Conflict> {
        let writes = || {
            self.extra
                .iter()
                .flat_map(|e| &e.strong)
                .chain([&self.write])
                .copied()
        };
        if let Some(write) = writes().find(|m| !operation.ordered(*m) && !operation.fenced(*m, space)) {
            return Err(Conflict::Write(write));
        }
        if let Some(write) = self.unseen(operation, space) {
            return Err(Conflict::Unfenced(write));
        }
        let by_window =
            writes().find(|m| m.is_alias_of(operation.mark) && !operation.fenced(*m, Space::Aliases));
        if let Some(write) = by_window {
            return Err(Conflict::Alias(write));
        }
        if self.read != operation.mark {
            self.note_read(operation.mark, |mark| operation.ordered(mark));
        }
        Ok(())
    }

    /// A tensor copy reads its map.
    pub(crate) fn read_map_by(&mut self, operation: &Forked) -> Result<(), Conflict> {
        let strong = self.extra.iter().flat_map(|e| &e.strong);
        for write in strong.chain([&self.write]).filter(|write| !write.is_never()) {
            if !operation.ordered(*write) {
                return Err(Conflict::Write(*write));
            }
            if !operation.fenced(*write, Space::Maps) {
                return Err(Conflict::Map(*write));
            }
        }
        if self.read != operation.mark {
            self.note_read(operation.mark, |mark| operation.ordered(mark));
        }
        Ok(())
    }

    /// An asynchronous operation writes: what it writes over must be visible to it, or may come after it.
    pub(crate) fn write_by(&mut self, operation: &Forked, space: Space) -> Result<(), Conflict> {
        self.check_constant()?;
        let unseen = self.unseen(operation, space);
        let ordered = |mark| operation.ordered(mark) || operation.fenced(mark, space);
        self.write_if(ordered, |mark| operation.over(mark))?;
        self.written(operation.write());
        unseen.map_or(Ok(()), |mark| Err(Conflict::Unfenced(mark)))
    }

    /// A write that is not visible to an operation.
    fn unseen(&self, operation: &Forked, space: Space) -> Option<Mark> {
        let strong = self.extra.iter().flat_map(|e| &e.strong);
        strong
            .chain([&self.write])
            .copied()
            .find(|m| !operation.visible(*m, space))
    }

    /// An asynchronous operation updates strongly and releases what it knows: a signal.
    pub(crate) fn signal_by(
        &mut self,
        operation: &Forked,
        space: Space,
        released: &Known,
    ) -> Result<(), Conflict> {
        self.update_by(operation, space)?;
        let extra = self.extra_mut();
        let mark = operation.write();
        extra.strong.retain(|m| *m != mark);
        extra.strong.push(mark.as_signal());
        extra.released.push(Release {
            scope: Scope::Sys,
            block: mark.block,
            known: released.clone(),
        });
        Ok(())
    }

    /// An asynchronous operation updates atomically: it does not conflict with others that do.
    pub(crate) fn update_by(&mut self, operation: &Forked, space: Space) -> Result<(), Conflict> {
        let allowed =
            |mark: Mark| mark.is_strong() || operation.ordered(mark) || operation.fenced(mark, space);
        if !allowed(self.write) {
            return Err(Conflict::Write(self.write));
        }
        let strong_or_reduced = |mark: Mark| allowed(mark) || mark.is_operation();
        let over = |mark: Mark| strong_or_reduced(mark) || operation.over(mark);
        if let Some(conflict) = self.blocked(&strong_or_reduced, &over) {
            return Err(conflict);
        }
        if let Some(mark) = self.unseen(operation, space) {
            return Err(Conflict::Unfenced(mark));
        }
        let strong = &mut self.extra_mut().strong;
        if !strong.contains(&operation.write()) {
            strong.push(operation.write());
        }
        Ok(())
    }
}
