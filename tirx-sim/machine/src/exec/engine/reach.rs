//! Memory as an asynchronous operation accesses it: bytes at addresses, each access checked.

use crate::accuracy::Sample;
use crate::exec::access::Check;
use crate::exec::address::{Target, decode};
use crate::exec::cells::Cells;
use crate::exec::cluster::Peers;
use crate::exec::early::read_early;
use crate::exec::engine::Operation;
use crate::exec::fills::{FILLED, Filled, Reading};
use crate::exec::order::{Alike, Conflict, Forked, Known, Place, Space};
use crate::exec::prior::early;
use crate::exec::shadow::{Carried, Reduction};
use crate::exec::{Context, Shared, Trap, thread_of};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::granules;
use crate::tensor::descriptor::Descriptor;
use crate::tensor::format::Format;
use crate::tensor_map::TENSOR_MAP_BYTES;

/// What an operation can access.
pub(crate) struct Reach<'m, 'c> {
    pub(crate) ctx: &'m Context<'c>,
    pub(in crate::exec) shared: &'m mut Shared,
    pub(in crate::exec) peers: Peers<'m>,
    pub(crate) operation: &'m Operation,
    /// The shadows of what it has read, if errors of values are asked for.
    pub(in crate::exec) carried: Carried,
    /// The last places of each kind of access ([`Use::number`]), in shared and in global memory.
    pub(in crate::exec) alike: [[Alike; USES]; 2],
}

/// The kinds of accesses that depend on the operation and the place alone.
const USES: usize = 3;

/// How bytes are accessed.
enum Use<'b> {
    Read(&'b mut [u8]),
    Write(&'b [u8]),
    /// Each byte becomes a function of the old bytes.
    Update(&'b Reduction<'b>, &'b mut dyn FnMut(&mut [u8])),
    /// The same, and releases what the operation knows.
    Signal(usize, &'b mut dyn FnMut(&mut [u8]), &'b Known),
}

impl<'b> Use<'b> {
    /// How elements are combined, if errors of values are asked for.
    fn reduction(&self, ctx: &Context<'_>) -> Option<&'b Reduction<'b>> {
        match self {
            Use::Update(reduction, _) if ctx.accuracy.is_some() => Some(reduction),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        match self {
            Use::Read(bytes) => bytes.len(),
            Use::Write(bytes) => bytes.len(),
            Use::Update(reduction, _) => reduction.operand.len(),
            Use::Signal(count, ..) => *count,
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Use::Read(_) => "reads",
            Use::Write(_) => "writes",
            Use::Update(..) | Use::Signal(..) => "updates",
        }
    }

    /// The number of its kind; none if each access of the kind differs.
    fn number(&self) -> Option<usize> {
        match self {
            Use::Read(_) => Some(0),
            Use::Write(_) => Some(1),
            Use::Update(..) => Some(2),
            Use::Signal(..) => None,
        }
    }

    fn note(
        &self,
        place: &mut Place,
        forked: &Forked,
        space: Space,
        alike: &mut [Alike; USES],
    ) -> Result<(), Conflict> {
        match self.number().and_then(|number| alike.get_mut(number)) {
            Some(alike) => alike.access(place, |place| self.note_one(place, forked, space)),
            None => self.note_one(place, forked, space),
        }
    }

    fn note_one(&self, place: &mut Place, forked: &Forked, space: Space) -> Result<(), Conflict> {
        match self {
            Use::Read(_) => place.read_by(forked, space),
            Use::Write(_) => place.write_by(forked, space),
            Use::Update(..) => place.update_by(forked, space),
            Use::Signal(.., released) => place.signal_by(forked, space, released),
        }
    }
}

impl Reach<'_, '_> {
    /// Reads bytes at an address (`exec::address`).
    ///
    /// # Errors
    /// Outside of an allocation or array, not written yet, or a race.
    pub(crate) fn read(&mut self, address: u64, out: &mut [u8]) -> Check {
        self.access(address, Use::Read(out))
    }

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// As of [`Reach::read`].
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) -> Check {
        self.access(address, Use::Write(bytes))
    }

    /// Updates bytes at an address in one step.
    ///
    /// # Errors
    /// As of [`Reach::read`].
    pub(in crate::exec) fn update(
        &mut self,
        address: u64,
        reduction: &Reduction<'_>,
        step: &mut dyn FnMut(&mut [u8]),
    ) -> Check {
        self.access(address, Use::Update(reduction, step))
    }

    /// Adds results to the errors of the operation's statement.
    pub(in crate::exec) fn note_samples(&self, samples: &[Sample]) {
        if let Some(accuracy) = &self.ctx.accuracy {
            accuracy.note(self.operation.pc, samples);
        }
    }

    /// Updates bytes strongly, as a signal that releases what the operation knows.
    ///
    /// # Errors
    /// As of [`Reach::read`].
    pub(crate) fn signal(
        &mut self,
        address: u64,
        count: usize,
        step: &mut dyn FnMut(&mut [u8]),
        released: &Known,
    ) -> Check {
        self.access(address, Use::Signal(count, step, released))
    }

    /// The operation, a tensor copy, fills bytes of shared memory from an address on.
    pub(crate) fn fill(&mut self, address: u64, bytes: u32, filled: Filled) {
        let (rank, array, offset) = match decode(address) {
            Target::Shared(array, offset) => (None, array, offset),
            Target::Cluster(rank, array, offset) => (Some(rank), array, offset),
            _ => return,
        };
        let rank = rank.filter(|rank| *rank as usize != self.peers.rank());
        let shared = match rank {
            None => &mut *self.shared,
            Some(rank) => match self.peers.get(rank) {
                Some(block) => &mut block.shared,
                None => return,
            },
        };
        if let Some(array) = self.ctx.code.shared.get(array as usize) {
            let first = array.offset.wrapping_add(offset as u32);
            shared.fills.fill(first, bytes, filled, self.operation.pc);
        }
    }

    /// Why the operation, one of a tensor core, reads a piece of shared memory as something else than what was copied there.
    pub(crate) fn mismatch(
        &mut self,
        rank: usize,
        byte: u32,
        descriptor: &Descriptor,
        format: Option<Format>,
    ) -> Option<Box<Trap>> {
        let shared = match rank == self.peers.rank() {
            true => &*self.shared,
            false => &self.peers.get(rank as u32)?.shared,
        };
        let Cells::Fine(places) = &shared.cells else {
            return None;
        };
        let place = &places[granules(self.ctx.code.granule, byte as usize * 8, 8).start];
        let (why, pc) = shared.fills.mismatch(byte, place, descriptor, format)?;
        let message = format!("{} reads shared memory {why}", self.operation.name);
        let mut trap = self.trap(FaultKind::Asynchronous, message);
        trap.notes.push((FILLED.to_string(), pc));
        Some(trap)
    }

    /// Why the descriptor of an operand contradicts the tile of a block that the operation reads by it.
    pub(crate) fn contradiction(&mut self, rank: usize, reading: &Reading<'_>) -> Option<Box<Trap>> {
        let shared = match rank == self.peers.rank() {
            true => &*self.shared,
            false => &self.peers.get(rank as u32)?.shared,
        };
        let Cells::Fine(places) = &shared.cells else {
            return None;
        };
        let granule = self.ctx.code.granule;
        let writer = |byte: u32| {
            places
                .get(granules(granule, byte as usize * 8, 8).start)?
                .operation()
        };
        let (why, pc) = shared.fills.contradiction(reading, &writer)?;
        let message = format!("{} reads operand {} {why}", self.operation.name, reading.name);
        let mut trap = self.trap(FaultKind::Asynchronous, message);
        trap.notes.extend(pc.map(|pc| (FILLED.to_string(), pc)));
        Some(trap)
    }

    /// An error of the operation, at the lane that issued it.
    pub(crate) fn trap(&self, kind: FaultKind, message: impl Into<String>) -> Box<Trap> {
        Trap::new(kind, self.operation.lane, message)
    }

    /// Goes on after a finding of the operation, if the launch does.
    ///
    /// # Errors
    /// The trap, if it does not.
    pub(crate) fn excuse(&self, finding: Excusable, trap: Box<Trap>) -> Check {
        let by = (self.operation.warp, self.operation.pc);
        crate::exec::excuse(self.ctx, self.shared, by, finding, trap)
    }

    fn access(&mut self, address: u64, how: Use<'_>) -> Check {
        let (rank, array, offset) = match decode(address) {
            Target::Global(address) => return self.global(address, how),
            Target::Shared(array, offset) => (None, array, offset),
            Target::Cluster(rank, array, offset) if rank as usize == self.peers.rank() => {
                (None, array, offset)
            }
            Target::Cluster(rank, array, offset) => (Some(rank), array, offset),
            Target::Local(..) => {
                let message = format!("{} accesses the memory of a thread", self.operation.name);
                return Err(self.trap(FaultKind::OutOfBounds, message));
            }
        };
        let code = self.ctx.code;
        let (name, verb) = (self.operation.name, how.verb());
        let Some(array) = code.shared.get(array as usize) else {
            let message = format!("{name} {verb} shared memory that no array has");
            return Err(self.trap(FaultKind::OutOfBounds, message));
        };
        let inside = offset >= 0 && offset as u64 + how.len() as u64 <= u64::from(array.bytes);
        if !inside {
            let message = format!(
                "{name} {verb} bytes {offset} to {} of shared `{}`, which has {}",
                offset + how.len() as i64,
                array.name,
                array.bytes
            );
            return Err(self.trap(FaultKind::OutOfBounds, message));
        }
        let first = array.offset as usize + offset as usize;
        let places = granules(code.granule, first * 8, how.len() as u32 * 8);
        let shared = match rank {
            None => &mut *self.shared,
            Some(rank) => match self.peers.get(rank) {
                Some(block) if !block.gone() => {
                    block.shared.shared_out = true;
                    &mut block.shared
                }
                _ => {
                    let message = format!(
                        "{name} {verb} shared `{}` of rank {rank} of the cluster, and no block of this rank runs",
                        array.name
                    );
                    return Err(self.trap(FaultKind::OutOfBounds, message));
                }
            },
        };
        let mut found = None;
        let unfenced = self.ctx.findings.after.contains(Excusable::MissingFence);
        match &mut shared.cells {
            Cells::Fine(cells) => {
                for (at, place) in cells[places.clone()].iter_mut().enumerate() {
                    let part = ((places.start + at) << code.granule) / 8;
                    if !matches!(how, Use::Write(_)) && !place.is_written() {
                        found = found.or(Some((part, None)));
                    }
                    if let Err(conflict) =
                        how.note(place, &self.operation.forked, Space::Shared, &mut self.alike[0])
                    {
                        found = Some((part, Some(conflict)));
                        if unfenced && matches!(conflict, Conflict::Unfenced(_)) {
                            continue;
                        }
                        break;
                    }
                }
            }
            Cells::Coarse(pages) => {
                for at in places {
                    if !matches!(how, Use::Read(_)) {
                        pages.touch(at);
                    }
                }
            }
        }
        if let Some((byte, conflict)) = found {
            let element = byte.saturating_sub(array.offset as usize);
            let own = self.peers.rank() as u32;
            let at = rank.unwrap_or(own);
            let whose = match at == own {
                true => String::new(),
                false => format!(" of rank {at} of the cluster"),
            };
            let name = match &array.view {
                Some(_) => {
                    let unit = array.unit(8);
                    format!(
                        "shared {}{whose}",
                        array.elements_at(element as i128 * 8, 1, unit)
                    )
                }
                None => match code.name_of_byte(byte as u32) {
                    Some(name) => format!("{name}{whose}"),
                    None => format!("byte {element} of shared `{}`{whose}", array.name),
                },
            };
            let writer = || {
                let arrays = &code.shared;
                let here = self.shared.engine.writer(own, arrays, at, byte as u32);
                let mut others = self.peers.others();
                here.or_else(|| {
                    others.find_map(|(rank, block)| block.shared.engine.writer(rank, arrays, at, byte as u32))
                })
            };
            if let (None, Some(other)) = (&conflict, writer()) {
                let message = format!(
                    "{} {verb} {name}, which another asynchronous operation is still to write, and nothing orders the two",
                    self.operation.name
                );
                let mut trap = self.trap(FaultKind::Race, message);
                trap.notes
                    .push(("the other operation is issued here".to_string(), other.pc()));
                return Err(trap);
            }
            let trap = self.conflict(&name, verb, conflict);
            match conflict {
                Some(Conflict::Unfenced(_)) => self.excuse(Excusable::MissingFence, trap)?,
                Some(_) => return Err(trap),
                None => {
                    let by = (self.operation.warp, self.operation.pc);
                    read_early(self.ctx, self.shared, by, trap)?;
                }
            }
        }
        let shared = match rank.and_then(|rank| self.peers.get(rank)) {
            Some(block) => &mut block.shared,
            None => &mut *self.shared,
        };
        shared.changes += 1;
        if self.ctx.accuracy.is_some() {
            match &how {
                Use::Read(out) => self
                    .carried
                    .read(&shared.held, first as u64 * 8, out.len() as u64),
                Use::Write(bytes) => {
                    self.carried
                        .write(&mut shared.held, first as u64 * 8, bytes.len() as u64);
                }
                Use::Update(..) | Use::Signal(..) => {}
            }
        }
        let (count, reduction) = (how.len(), how.reduction(self.ctx));
        let mut samples = Vec::new();
        let words = &mut shared.words;
        let byte = |at: usize| (at / 4, at % 4 * 8);
        match how {
            Use::Read(out) if first.is_multiple_of(4) && out.len().is_multiple_of(4) => {
                for (out, word) in out.chunks_exact_mut(4).zip(&words[first / 4..]) {
                    out.copy_from_slice(&word.to_le_bytes());
                }
            }
            Use::Read(out) => {
                for (i, out) in out.iter_mut().enumerate() {
                    let (word, shift) = byte(first + i);
                    *out = (words[word] >> shift) as u8;
                }
            }
            Use::Write(bytes) if first.is_multiple_of(4) && bytes.len().is_multiple_of(4) => {
                for (new, word) in bytes.as_chunks().0.iter().zip(&mut words[first / 4..]) {
                    *word = u32::from_le_bytes(*new);
                }
            }
            Use::Write(bytes) => {
                for (i, new) in bytes.iter().enumerate() {
                    let (word, shift) = byte(first + i);
                    words[word] = words[word] & !(0xff << shift) | u32::from(*new) << shift;
                }
            }
            Use::Update(_, step) | Use::Signal(_, step, _) => {
                let mut bytes: Vec<u8> = (0..count)
                    .map(|i| (words[byte(first + i).0] >> byte(first + i).1) as u8)
                    .collect();
                let before = reduction.map(|_| bytes.clone());
                step(&mut bytes);
                if let (Some(reduction), Some(before)) = (reduction, before) {
                    let memory = (&mut shared.held, first as u64 * 8);
                    samples = self.carried.reduced(memory, reduction, (&before, &bytes));
                }
                for (i, new) in bytes.iter().enumerate() {
                    let (word, shift) = byte(first + i);
                    words[word] = words[word] & !(0xff << shift) | u32::from(*new) << shift;
                }
            }
        }
        self.note_samples(&samples);
        Ok(())
    }

    /// Checks that the operation, a tensor copy, may read its map, which is in global memory.
    pub(super) fn note_map(&self, address: u64) -> Check {
        let Some(ledger) = &self.ctx.ledger else {
            return Ok(());
        };
        let storage = self.ctx.memory.find(address);
        let sheet = storage
            .as_ref()
            .and_then(|storage| Some((storage, ledger.sheet(storage)?)));
        let Some((storage, sheet)) = sheet else {
            return Ok(());
        };
        let first = (address - storage.address) as usize * 8;
        let places = ledger.places(first, TENSOR_MAP_BYTES as u32 * 8);
        let places = places.map(|place| (self.operation.lane, place));
        let done = sheet.each(ledger, places, |place, _| {
            place.read_map_by(&self.operation.forked)
        });
        done.map_err(|(_, conflict)| {
            self.conflict(
                &format!("the tensor map at {address:#x}"),
                "reads",
                Some(conflict),
            )
        })
    }

    fn global(&mut self, address: u64, how: Use<'_>) -> Check {
        let (name, verb) = (self.operation.name, how.verb());
        let inside = self.ctx.memory.find(address).filter(|s| {
            let byte = (address - s.address) as usize;
            byte + how.len() <= s.bytes
        });
        let Some(storage) = inside else {
            let message = match self.ctx.beside_a_tensor(address, how.len() as u64) {
                Some(place) => format!("{name} {verb} {place}"),
                None => format!(
                    "{name} {verb} {} bytes at {address:#x}, which are in no living allocation",
                    how.len()
                ),
            };
            return Err(self.trap(FaultKind::OutOfBounds, message));
        };
        // A thread's own rank issues the operation; NVSHMEM's have addresses of symmetric memory.
        if let Some(owner) = self.ctx.other_owner(storage.owner.get(), self.shared.rank) {
            let message = format!(
                "{name} {verb} global memory at {address:#x}, which is memory of rank {owner} alone: other ranks may access \
                 symmetric memory only"
            );
            return Err(self.trap(FaultKind::OutOfBounds, message));
        }
        let at = (address - storage.address) as usize * 8;
        let writes = !matches!(how, Use::Read(_));
        let waited = !self.ctx.check_races || self.operation.forked.known.prior;
        let before = self.ctx.before.as_ref().filter(|_| !waited);
        if let Some(why) = before.and_then(|b| b.forbids(&storage, at, how.len() as u32 * 8, writes)) {
            let message =
                format!("{name} {verb} global memory, {why}: no griddepcontrol.wait orders the two");
            return Err(self.trap(FaultKind::Race, message));
        }
        if matches!(how, Use::Update(..) | Use::Signal(..)) {
            self.shared.wait_for_turn(self.ctx);
        }
        let early = early(self.ctx, self.shared, &storage);
        let first = (address - storage.address) as usize;
        let mut found = None;
        let mut how = how;
        let sheet = self.ctx.ledger.as_ref().and_then(|l| l.sheet(&storage));
        if let (Some(ledger), Some(sheet)) = (&self.ctx.ledger, &sheet) {
            let places = ledger.places(first * 8, how.len() as u32 * 8);
            let places = places.map(|place| (self.operation.lane, place));
            let (forked, alike) = (&self.operation.forked, &mut self.alike[1]);
            let done = sheet.each(ledger, places, |place, _| {
                how.note(place, forked, Space::Global, alike)
            });
            found = done.err();
        }
        if let Some((_, conflict)) = found {
            let name = format!("global memory at {address:#x}");
            return Err(self.conflict(&name, verb, Some(conflict)));
        }
        if let Some(accuracy) = &self.ctx.accuracy {
            match &how {
                Use::Read(out) => self
                    .carried
                    .read(&accuracy.global(), address * 8, out.len() as u64),
                Use::Write(bytes) => {
                    self.carried
                        .write(&mut accuracy.global(), address * 8, bytes.len() as u64);
                }
                Use::Update(..) | Use::Signal(..) => {}
            }
        }
        let (count, reduction) = (how.len(), how.reduction(self.ctx));
        let mut samples = Vec::new();
        match &mut how {
            Use::Read(out) if first.is_multiple_of(8) && out.len().is_multiple_of(8) => {
                for (i, out) in out.chunks_exact_mut(8).enumerate() {
                    let word = early.unwrap_or(&storage).load((first + i * 8) * 8, 64);
                    out.copy_from_slice(&word.to_le_bytes());
                }
            }
            Use::Read(out) => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = early.unwrap_or(&storage).load((first + i) * 8, 8) as u8;
                }
            }
            Use::Write(bytes) if first.is_multiple_of(8) && bytes.len().is_multiple_of(8) => {
                for (i, new) in bytes.as_chunks().0.iter().enumerate() {
                    storage.store((first + i * 8) * 8, 64, u64::from_le_bytes(*new));
                }
            }
            Use::Write(bytes) => {
                for (i, new) in bytes.iter().enumerate() {
                    storage.store((first + i) * 8, 8, u64::from(*new));
                }
            }
            Use::Update(_, step) | Use::Signal(_, step, _) => {
                let lock = self.ctx.memory.lock(address);
                let _guard = lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let mut bytes: Vec<u8> = (0..count)
                    .map(|i| storage.load((first + i) * 8, 8) as u8)
                    .collect();
                let before = bytes.clone();
                step(&mut bytes);
                if let (Some(reduction), Some(accuracy)) = (reduction, &self.ctx.accuracy) {
                    let mut held = accuracy.global();
                    let memory = (&mut *held, address * 8);
                    samples = self.carried.reduced(memory, reduction, (&before, &bytes));
                }
                for (i, new) in bytes.iter().enumerate() {
                    storage.store((first + i) * 8, 8, u64::from(*new));
                }
            }
        }
        self.note_samples(&samples);
        Ok(())
    }

    /// The error of a place that the operation may not access; with `None`, a place that nobody has written.
    pub(in crate::exec) fn conflict(&self, place: &str, verb: &str, conflict: Option<Conflict>) -> Box<Trap> {
        let name = self.operation.name;
        let Some(conflict) = conflict else {
            let message = format!("{name} {verb} {place} before any thread has written it");
            return self.trap(FaultKind::Uninitialized, message);
        };
        let mark = conflict.mark();
        let past = crate::exec::blame::past(conflict);
        let who = if mark.is_operation() {
            "another asynchronous operation".to_string()
        } else {
            let [x, y, z] = thread_of(self.ctx, mark.thread());
            let rank = match self.shared.order.on_device(mark.block) {
                true => String::new(),
                false => self.ctx.rank_name(mark.block),
            };
            format!("thread ({x}, {y}, {z}){rank}")
        };
        let why = match conflict {
            Conflict::Unfenced(_) => crate::exec::blame::UNFENCED,
            Conflict::Map(_) => crate::exec::blame::UNFENCED_MAP,
            Conflict::Alias(_) => crate::exec::blame::ALIASES,
            Conflict::Unmet(..) => crate::exec::blame::UNMET,
            Conflict::Constant(..) => crate::exec::blame::CONSTANT,
            Conflict::Read(_) if !mark.is_operation() => {
                "nothing orders the two: the thread that issued the operation has not waited until the readers were done (by an \
                 mbarrier at which they arrive after their reads, or a barrier)"
            }
            _ => {
                "nothing orders the two: the access was not done before the operation was issued, and its thread has not waited for the operation"
            }
        };
        let own = mark.block == self.shared.order.block;
        let why = match self.shared.engine.missing_commit(mark).filter(|_| own) {
            Some(commit) => format!(
                "nothing orders the two: the other operation is in no group, since {commit} is missing between it and the wait"
            ),
            None => why.to_string(),
        };
        let mut trap = self.trap(
            FaultKind::Race,
            format!("{name} {verb} {place}, which {who} {past}, and {why}"),
        );
        trap.notes.push((format!("{who} {past} it here"), mark.pc()));
        trap
    }
}
