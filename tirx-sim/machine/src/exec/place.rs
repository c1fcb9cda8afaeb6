//! One lane's access: its place found and checked, read and written.

use std::sync::Arc;

use super::Trap;
use super::access::Check;
use super::address::{Target, decode};
use super::global::{POLL, TELL};
use super::order::coarse::Finding;
use super::run::Machine;
use crate::bytecode::{Access, Region, SharedArray};
use crate::fault::FaultKind;
use crate::findings::Excusable;
use crate::memory::{Storage, granules, load_bits, store_bits};
use crate::window::Window;

impl Machine<'_, '_> {
    /// Checks an access of a lane, except for the contents of the place.
    pub(super) fn locate(&mut self, access: &Access, lane: u32, index: i64, verb: &str) -> Check<Spot> {
        let size = access.kind.bits() as i64;
        let total = size * access.count as i64;
        let code = self.ctx.code;
        let misaligned = |at: i64| at % access.align as i64 != 0;
        let array_spot = |byte: i64, bit: i64, array: &Bounds<'_>| {
            let offset = byte.checked_mul(8).and_then(|at| at.checked_add(bit));
            let inside = offset.filter(|at| *at >= 0 && *at + total <= array.bytes as i64 * 8);
            let Some(offset) = inside else {
                let at = byte as i128 * 8 + bit as i128;
                let (elements, bytes) = (array.extent)();
                let name = (array.name)(at);
                let message = match array.whole {
                    Some(whole) if at >= 0 && at + total as i128 <= i128::from(bytes) * 8 => format!(
                        "{verb} {} {name}, beyond the end of its allocation `{}`, which has {} bytes",
                        array.place, whole.name, whole.bytes
                    ),
                    _ => format!(
                        "{verb} {} {name}, which has {elements} elements ({bytes} bytes)",
                        array.place
                    ),
                };
                return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
            };
            let from_whole = i64::from(array.start) * 8 + offset;
            if misaligned(from_whole) {
                let elements = (array.name)(offset as i128);
                return Err(misalignment(access, lane, verb, &elements, from_whole));
            }
            Ok(offset as usize)
        };
        let (target, bit) = match access.region {
            Region::Param(p) => return self.locate_param(access, lane, index, verb, p),
            Region::Shared(r) => {
                let (byte, bit) = split(index, size);
                (Target::Shared(r, byte), bit)
            }
            Region::Local(a) => {
                let (byte, bit) = split(index, size);
                (Target::Local(a, byte), bit)
            }
            Region::Pointer => pointed(access, index),
        };
        let mut far = None;
        let target = match target {
            Target::Cluster(rank, r, offset) => {
                if !self.peer(access, lane, rank, verb)? {
                    far = Some(rank);
                }
                Target::Shared(r, offset)
            }
            target => target,
        };
        match target {
            Target::Cluster(..) => Err(wild(access, lane, verb, index as u64)),
            Target::Shared(r, offset) => {
                let Some(array) = code.shared.get(r as usize) else {
                    return Err(wild(access, lane, verb, index as u64));
                };
                // Through a pointer, what an instruction moves may have other elements than the array: messages count the
                // array's.
                let unit = match access.region {
                    Region::Pointer if array.element != 0 => i64::from(array.element),
                    _ => array.unit(size),
                };
                let bounds = Bounds {
                    bytes: array.bytes,
                    extent: &|| array.extent(unit),
                    start: array.view.as_ref().map_or(0, |view| view.start),
                    whole: (array.view.as_ref()).and_then(|view| code.shared.get(view.of as usize)),
                    place: "shared",
                    name: &|at| array.elements_at(at, total as i128, unit),
                };
                let offset = array_spot(offset, bit, &bounds)?;
                let offset = array.offset as usize * 8 + offset;
                Ok(match far {
                    Some(rank) => Spot::Far(rank, offset),
                    None => Spot::Shared(offset),
                })
            }
            Target::Local(a, offset) => {
                let Some(array) = code.locals.get(a as usize) else {
                    return Err(wild(access, lane, verb, index as u64));
                };
                let bounds = Bounds {
                    bytes: array.bytes,
                    extent: &|| (array.bytes as i64 * 8 / size, array.bytes),
                    start: 0,
                    whole: None,
                    place: "local",
                    name: &|at| {
                        let end = (at + total as i128 + size as i128 - 1).div_euclid(size as i128);
                        span(&array.name, at.div_euclid(size as i128) as i64, end as i64)
                    },
                };
                let offset = array_spot(offset, bit, &bounds)?;
                Ok(Spot::Local(array.offset as usize * 32 + offset))
            }
            Target::Global(address) => {
                let inside = |s: &Arc<Storage>| {
                    let byte = address.checked_sub(s.address);
                    let end = byte.and_then(|byte| byte.checked_mul(8)?.checked_add((bit + total) as u64));
                    end.is_some_and(|end| end <= s.bytes as u64 * 8)
                };
                let cached = self.shared.last.clone().filter(inside);
                let storage = match cached {
                    Some(storage) => storage,
                    None => {
                        let found = self.ctx.memory.find(address);
                        match found.filter(inside) {
                            Some(storage) => storage,
                            None => {
                                let place = self.ctx.beside_a_tensor(address, (total as u64).div_ceil(8));
                                if self.ctx.memory.behind_window(address).is_some() {
                                    return Err(window(access, lane, verb, address));
                                }
                                return Err(match place.filter(|_| address >= NULL_PAGE) {
                                    Some(place) => {
                                        let message = format!("{verb} through `{}` {place}", access.name);
                                        Trap::new(FaultKind::OutOfBounds, lane, message)
                                    }
                                    None => wild(access, lane, verb, address),
                                });
                            }
                        }
                    }
                };
                self.shared.last = Some(storage.clone());
                if let Some(owner) = self.ctx.other_owner(storage.owner.get(), self.shared.rank) {
                    let message = format!(
                        "{verb} through `{}` at {address:#x}, which is memory of rank {owner} alone: other ranks may access \
                         symmetric memory only",
                        access.name
                    );
                    return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
                }
                if misaligned(address as i64 * 8 + bit) {
                    let name = &access.name;
                    let message = format!(
                        "{verb} {} bytes through `{name}` at {address:#x}, which is no multiple of {}",
                        total / 8,
                        access.align / 8
                    );
                    return Err(Trap::new(FaultKind::Misaligned, lane, message));
                }
                let at = u128::from(address) * 8 + bit as u128;
                if let Some(window) = self.left(&storage, at, total as u64) {
                    let message = format!(
                        "{verb} {address:#x} through `{}`, outside of the view that was passed ({})",
                        access.name,
                        window.describe()
                    );
                    return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
                }
                let byte = (address - storage.address) as usize;
                Ok(Spot::Global(storage, byte * 8 + bit as usize))
            }
        }
    }

    /// The view that an address in an allocation is outside of: the allocation was passed by views alone, and the
    /// address is in none of them.
    fn left(&self, storage: &Arc<Storage>, at: u128, len: u64) -> Option<&Window> {
        let mut first = None;
        for (param, windows) in self.device.params.iter().zip(&self.device.windows) {
            if !matches!(param, Some((of, _)) if Arc::ptr_eq(of, storage)) {
                continue;
            }
            if windows.is_empty() || windows.iter().any(|w| w.holds(at, len)) {
                return None;
            }
            first = first.or(windows.first());
        }
        first
    }

    fn locate_param(&self, access: &Access, lane: u32, index: i64, verb: &str, param: u16) -> Check<Spot> {
        let size = access.kind.bits() as i64;
        let total = size * access.count as i64;
        let name = &access.name;
        let Some((storage, base)) = &self.device.params[param as usize] else {
            let address = self.device.args[param as usize];
            if self.ctx.memory.behind_window(address).is_some() {
                return Err(window(access, lane, verb, address));
            }
            let message = if address == 0 {
                format!("{verb} `{name}`, whose pointer is null")
            } else {
                format!("{verb} `{name}`, whose pointer {address:#x} points to no living allocation")
            };
            return Err(Trap::new(FaultKind::NullPointer, lane, message));
        };
        let offset = index
            .checked_mul(size)
            .and_then(|o| o.checked_add(*base as i64 * 8))
            .filter(|o| *o >= 0 && *o + total <= storage.bytes as i64 * 8);
        let Some(offset) = offset else {
            let message = format!(
                "{verb} {}, but its allocation has {} elements from `{name}[0]` on",
                range(name, index, access.count),
                (storage.bytes as i64 - *base as i64) * 8 / size,
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        };
        let address = storage.address as i64 * 8 + offset;
        let windows = &self.device.windows[param as usize];
        if let Some(window) = windows.first()
            && !windows.iter().any(|w| w.holds(address as u128, total as u64))
        {
            let message = format!(
                "{verb} {}, which is outside of the view that was passed ({})",
                range(name, index, access.count),
                window.describe()
            );
            return Err(Trap::new(FaultKind::OutOfBounds, lane, message));
        }
        if address % access.align as i64 != 0 {
            return Err(misalignment(
                access,
                lane,
                verb,
                &range(name, index, access.count),
                address,
            ));
        }
        Ok(Spot::Global(storage.clone(), offset as usize))
    }

    /// The bits of element `c` at a located place.
    pub(super) fn read_spot(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        spot: &Spot,
        c: u16,
    ) -> Check<u64> {
        let size = access.kind.bits();
        let step = (c as u32 * size) as usize;
        match spot {
            Spot::Global(storage, offset) => {
                self.read_global(pc, access, lane, index, c, storage, offset + step)
            }
            Spot::Shared(offset) => {
                let offset = offset + step;
                let places = granules(self.ctx.code.granule, offset, size);
                if let Err(finding) = self.shared.read_places(self.id, pc, lane, places, access) {
                    let at = (self.element(access, index, c), offset as u32 / 8);
                    let trap = self.found_shared(access, lane, at, finding, "reads");
                    self.read_early(pc, trap)?;
                }
                Ok(load_bits(&self.shared.words, offset, size))
            }
            Spot::Far(rank, offset) => {
                let at = (lane, *rank, self.element(access, index, c));
                self.far(
                    pc,
                    access,
                    at,
                    offset + step,
                    "reads",
                    access.poll.then_some(POLL),
                    |_| None,
                )
            }
            Spot::Local(offset) => {
                let offset = offset + step;
                let bit = 1u32 << lane;
                self.own_word(offset / 32, bit, false)?;
                let places = granules(self.ctx.code.local_granule, offset, size);
                let written = &self.warp.local_written[places];
                if written.iter().any(|w| w & bit == 0) {
                    let element = self.element(access, index, c);
                    let trap = self.found(access, lane, element, Finding::Uninitialized, "reads");
                    self.excuse(pc, Excusable::UnwrittenRead, trap)?;
                }
                let first = offset / 32;
                let words =
                    [0, (size == 64) as usize].map(|next| self.warp.local[first + next][lane as usize]);
                Ok(load_bits(&words, offset % 32, size))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an access has many properties")]
    pub(super) fn write_spot(
        &mut self,
        pc: usize,
        access: &Access,
        lane: u32,
        index: i64,
        spot: &Spot,
        c: u16,
        bits: u64,
    ) -> Check {
        let size = access.kind.bits();
        let step = (c as u32 * size) as usize;
        match spot {
            Spot::Global(storage, offset) => {
                self.write_global(pc, access, lane, index, c, storage, offset + step, bits)?;
            }
            Spot::Shared(offset) => {
                let offset = offset + step;
                let same = load_bits(&self.shared.words, offset, size) == bits;
                let places = granules(self.ctx.code.granule, offset, size);
                if let Err(finding) = self.shared.write_places(self.id, pc, lane, places, access, same) {
                    let at = (self.element(access, index, c), offset as u32 / 8);
                    return Err(self.found_shared(access, lane, at, finding, "writes"));
                }
                store_bits(&mut self.shared.words, offset, size, bits);
            }
            Spot::Far(rank, offset) => {
                let at = (lane, *rank, self.element(access, index, c));
                self.far(
                    pc,
                    access,
                    at,
                    offset + step,
                    "writes",
                    access.polled.then_some(TELL),
                    |_| Some(bits),
                )?;
            }
            Spot::Local(offset) => {
                let offset = offset + step;
                self.own_word(offset / 32, 1 << lane, true)?;
                let places = granules(self.ctx.code.local_granule, offset, size);
                for written in &mut self.warp.local_written[places] {
                    *written |= 1 << lane;
                }
                let first = offset / 32;
                let word = &mut self.warp.local[first][lane as usize];
                store_bits(std::slice::from_mut(word), offset % 32, size.min(32), bits);
                if size == 64 {
                    self.warp.local[first + 1][lane as usize] = (bits >> 32) as u32;
                }
            }
        }
        Ok(())
    }
}

/// A checked place of one lane's access, counted in bits.
pub(super) enum Spot {
    Global(Arc<Storage>, usize),
    /// In the block's shared memory.
    Shared(usize),
    /// The same of the block of a rank in the cluster.
    Far(u32, usize),
    /// In the lane's local memory.
    Local(usize),
}

/// What an access of an array is checked against, and how messages name it.
struct Bounds<'a> {
    bytes: u32,
    /// Elements and bytes of the declaration.
    extent: &'a dyn Fn() -> (i64, u32),
    /// Bytes from the start of the allocation.
    start: u32,
    /// The allocation, if the array is a part of another.
    whole: Option<&'a SharedArray>,
    place: &'a str,
    /// The elements that are accessed from a bit on.
    name: &'a dyn Fn(i128) -> String,
}

/// Byte and bit of an element. Bytes wrap, as addresses do.
fn split(index: i64, bits: i64) -> (i64, i64) {
    match bits {
        4 => (index >> 1, (index & 1) * 4),
        _ => (index.wrapping_mul(bits / 8), 0),
    }
}

/// The region of a pointer's access, and the bit within its byte: elements of half a byte are addressed by halves.
pub(super) fn pointed(access: &Access, index: i64) -> (Target, i64) {
    match access.kind.bits() {
        4 => (decode(index as u64 >> 1), (index & 1) * 4),
        _ => (decode(index as u64), 0),
    }
}

fn range(name: &str, first: i64, count: u16) -> String {
    span(name, first, first.saturating_add(count.into()))
}

/// Elements from `first` up to `end`.
fn span(name: &str, first: i64, end: i64) -> String {
    match first.saturating_add(1) == end {
        true => format!("`{name}[{first}]`"),
        false => format!("`{name}[{first}:{end}]`"),
    }
}

/// Addresses below are null pointers and elements of these.
const NULL_PAGE: u64 = 4096;

fn wild(access: &Access, lane: u32, verb: &str, address: u64) -> Box<Trap> {
    let name = &access.name;
    if address < NULL_PAGE {
        let message = format!("{verb} through `{name}`, which is null");
        return Trap::new(FaultKind::NullPointer, lane, message);
    }
    let message = format!("{verb} through `{name}` at {address:#x}, which is in no living allocation");
    Trap::new(FaultKind::OutOfBounds, lane, message)
}

/// The error of a plain access through a multicast window.
fn window(access: &Access, lane: u32, verb: &str, address: u64) -> Box<Trap> {
    let message = format!(
        "{verb} through `{}` at {address:#x}, which is an address of a multicast window: only multimem instructions access it",
        access.name
    );
    Trap::new(FaultKind::OutOfBounds, lane, message)
}

/// `address` is in bits.
fn misalignment(access: &Access, lane: u32, verb: &str, place: &str, address: i64) -> Box<Trap> {
    let message = format!(
        "{verb} {} bytes at {place}, whose address ({:#x}) is no multiple of {}",
        access.kind.bits() * access.count as u32 / 8,
        address / 8,
        access.align / 8
    );
    Trap::new(FaultKind::Misaligned, lane, message)
}
