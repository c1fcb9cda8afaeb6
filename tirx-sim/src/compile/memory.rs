//! Loads and stores of buffers.
//!
//! An access to a parameter, a shared or a local array is an index into a known region; one through any other
//! pointer is an address.

use tirx_ir::{Buffer, Expr};
use tirx_source::diagnostic::{Result, error};

use super::index::Index;
use super::registers::Val;
use super::scan::constant_elements;
use super::{Compiler, Home};
use tirx_sim_machine::bytecode::{Access, Inst, Operand, R, Region};
use tirx_sim_machine::numeric::Kind;

/// The place of an access, before the index is compiled.
pub(super) struct Place {
    pub(super) region: Region,
    pub(super) index: Index,
}

impl Compiler<'_> {
    pub(super) fn place(&mut self, home: &Home, index: Index, kind: Kind) -> Result<Place> {
        let region = match home {
            Home::Param(i) => Region::Param(*i),
            Home::Shared(i) => Region::Shared(*i),
            Home::Local(i) => Region::Local(*i),
            Home::Pointer(pointer) => {
                let index = self.address_of_index(*pointer, index, kind)?;
                return Ok(Place {
                    region: Region::Pointer,
                    index,
                });
            }
            Home::Registers { .. } => return error(self.span, "an array held in registers has no address"),
        };
        Ok(Place { region, index })
    }

    /// The array that a buffer's accesses are checked against, and how many of the buffer's elements lie before it.
    pub(super) fn own_array(&mut self, home: Home, buffer: &Buffer) -> (Home, i64) {
        match self.view_in(&home, buffer) {
            Some((view, before)) => (Home::Shared(view), before),
            None => (home, 0),
        }
    }

    pub(super) fn access(&mut self, region: Region, kind: Kind, count: u16, name: &str) -> Result<u16> {
        let whole = kind.bits() * count as u32;
        // Wider than 16 bytes is several instructions; three elements are three.
        let align = if whole.is_power_of_two() {
            whole.min(128)
        } else {
            kind.bits()
        };
        let access = Access {
            region,
            kind,
            count,
            align: align.max(kind.bits()),
            poll: self.polling,
            polled: false,
            swapped: false,
            constant: self.constant,
            window: self.window,
            name: name.to_string(),
        };
        let same = |a: &Access| {
            a.region == access.region
                && (a.kind, a.count, a.poll, a.constant, a.window)
                    == (
                        access.kind,
                        access.count,
                        access.poll,
                        access.constant,
                        access.window,
                    )
                && a.name == access.name
        };
        if let Some(found) = self.code.accesses.iter().rposition(same) {
            return Ok(found as u16);
        }
        let Ok(id) = u16::try_from(self.code.accesses.len()) else {
            return error(
                self.span,
                "the kernel has too many kinds of memory access for the simulator",
            );
        };
        self.code.accesses.push(access);
        Ok(id)
    }

    pub(super) fn load(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        predicate: Option<&Expr>,
    ) -> Result<Vec<Val>> {
        let kind = self.kind(buffer.dtype.element())?;
        let home = self.home(buffer)?;
        let lanes = buffer.dtype.lanes;
        self.count(1);
        if let Home::Registers {
            elements,
            init,
            indexed,
        } = &home
        {
            if let (Some(array), None) = (indexed, constant_elements(buffer, indices)) {
                let (index, wide) = self.uniform_index(indices)?;
                let d = self.temp(kind)?;
                let array = *array;
                self.emit(Inst::LoadIndexed {
                    d,
                    array,
                    index,
                    wide,
                });
                return Ok(vec![Val::vector(kind, d)]);
            }
            return self.load_registers(kind, buffer, elements, *init, indices);
        }
        let (home, before) = self.own_array(home, buffer);
        let (first, total) = self.split_index(buffer, indices)?;
        if predicate.is_none()
            && let Some((first, count)) = first
        {
            let index = self.flat(buffer, &first, before)?;
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            return self.load_at(place, kind, count * lanes, &buffer.name);
        }
        // Lane by lane.
        let each = self.lane_indices(indices, total, before)?;
        let guards = match predicate {
            Some(predicate) => Some(self.values(predicate)?),
            None => None,
        };
        let mut out = Vec::new();
        for (i, index) in each.into_iter().enumerate() {
            let targets = (0..lanes).map(|_| self.temp(kind)).collect::<Result<Vec<_>>>()?;
            let guard = match &guards {
                Some(guards) => {
                    let zero = self.bits(kind, 0)?;
                    for d in &targets {
                        let mark = self.registers.mark();
                        self.move_to(*d, zero, mark);
                    }
                    let c = self.vector(guards[i.min(guards.len() - 1)])?;
                    Some(self.divide(c))
                }
                None => None,
            };
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            let values = self.load_at(place, kind, lanes, &buffer.name)?;
            for (d, value) in targets.iter().zip(values) {
                let mark = self.registers.mark();
                self.move_to(*d, value, mark);
            }
            if let Some(part) = guard {
                self.meet(part, false);
            }
            out.extend(targets.into_iter().map(|d| Val::vector(kind, d)));
        }
        Ok(out)
    }

    fn load_registers(
        &mut self,
        kind: Kind,
        buffer: &Buffer,
        elements: &[R],
        init: Option<u16>,
        indices: &[Expr],
    ) -> Result<Vec<Val>> {
        let Some((first, count)) = constant_elements(buffer, indices) else {
            return error(
                self.span,
                format!("an index into `{}` is not constant", buffer.name),
            );
        };
        if let Some(bit) = init {
            for i in first..first + count {
                self.emit(Inst::CheckInit { bit: bit + i as u16 });
            }
        }
        let picked = elements.get(first..first + count).unwrap_or_default();
        Ok(picked
            .iter()
            .map(|register| Val {
                mutable: true,
                ..Val::vector(kind, *register)
            })
            .collect())
    }

    pub(super) fn load_at(&mut self, place: Place, kind: Kind, count: u16, name: &str) -> Result<Vec<Val>> {
        let access = self.access(place.region, kind, count, name)?;
        let Index { at, plus } = place.index;
        let wide = at.kind.wide();
        // A pointer that is the same number in every lane may be to memory of which each lane has its own.
        if let (Operand::S(index), false) = (at.at, matches!(place.region, Region::Pointer)) {
            // A scalar index is the whole index: `plus` is zero.
            if !matches!(place.region, Region::Local(_)) {
                let d = self.registers.take(super::registers::File::S, count, self.span)?;
                self.emit(Inst::LoadS {
                    d,
                    index,
                    wide,
                    access,
                });
                return Ok((0..count).map(|i| Val::scalar(kind, d + i)).collect());
            }
            let d = self.temps(kind, count)?;
            self.emit(Inst::LoadRow {
                d,
                index,
                wide,
                access,
            });
            return Ok((0..count).map(|i| Val::vector(kind, d + i)).collect());
        }
        let index = self.vector(at)?;
        let d = self.temps(kind, count)?;
        self.emit(if wide {
            Inst::LoadWide {
                d,
                index,
                plus,
                access,
            }
        } else {
            Inst::Load {
                d,
                index,
                plus,
                access,
            }
        });
        Ok((0..count).map(|i| Val::vector(kind, d + i)).collect())
    }

    pub(super) fn store(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
        predicate: Option<&Expr>,
    ) -> Result<()> {
        let kind = self.kind(buffer.dtype.element())?;
        let home = self.home(buffer)?;
        let lanes = buffer.dtype.lanes;
        let mark = self.registers.mark();
        let mut values = self.values(value)?;
        self.count(1);
        for value in &mut values {
            *value = self.convert(*value, kind)?;
        }
        if let Home::Registers {
            elements,
            init,
            indexed,
        } = &home
        {
            if let (Some(array), None, [value]) = (indexed, constant_elements(buffer, indices), &values[..]) {
                let v = self.vector(*value)?;
                let (index, wide) = self.uniform_index(indices)?;
                let array = *array;
                self.emit(Inst::StoreIndexed {
                    v,
                    array,
                    index,
                    wide,
                });
                return Ok(());
            }
            return self.store_registers(buffer, elements, *init, indices, values, mark);
        }
        let (home, before) = self.own_array(home, buffer);
        let (first, total) = self.split_index(buffer, indices)?;
        let want = total as usize * lanes as usize;
        if values.len() != want {
            let message = format!("a store of {} values to {want} places", values.len());
            return error(self.span, message);
        }
        if predicate.is_none()
            && let Some((first, count)) = first
        {
            let index = self.flat(buffer, &first, before)?;
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            return self.store_at(place, kind, &values, &buffer.name, count * lanes);
        }
        let each = self.lane_indices(indices, total, before)?;
        let guards = match predicate {
            Some(predicate) => Some(self.values(predicate)?),
            None => None,
        };
        for (i, index) in each.into_iter().enumerate() {
            let guard = match &guards {
                Some(guards) => {
                    let c = self.vector(guards[i.min(guards.len() - 1)])?;
                    Some(self.divide(c))
                }
                None => None,
            };
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            let from = i * lanes as usize;
            self.store_at(
                place,
                kind,
                &values[from..from + lanes as usize],
                &buffer.name,
                lanes,
            )?;
            if let Some(part) = guard {
                self.meet(part, false);
            }
        }
        Ok(())
    }

    fn store_registers(
        &mut self,
        buffer: &Buffer,
        elements: &[R],
        init: Option<u16>,
        indices: &[Expr],
        mut values: Vec<Val>,
        mark: usize,
    ) -> Result<()> {
        let Some((first, count)) = constant_elements(buffer, indices) else {
            return error(
                self.span,
                format!("an index into `{}` is not constant", buffer.name),
            );
        };
        let targets = elements.get(first..first + count).unwrap_or_default();
        if targets.len() != values.len() {
            let message = format!("a store of {} values to {} places", values.len(), targets.len());
            return error(self.span, message);
        }
        if values.len() > 1 {
            // A value may be an element that an earlier move of this store overwrites.
            for value in &mut values {
                if value.mutable {
                    let d = self.temp(value.kind)?;
                    let top = self.registers.mark();
                    self.move_to(d, *value, top);
                    *value = Val::vector(value.kind, d);
                }
            }
        }
        self.move_all(targets, values, mark);
        if let Some(bit) = init {
            for i in first..first + count {
                self.emit(Inst::MarkInit { bit: bit + i as u16 });
            }
        }
        Ok(())
    }

    pub(super) fn store_at(
        &mut self,
        place: Place,
        kind: Kind,
        values: &[Val],
        name: &str,
        count: u16,
    ) -> Result<()> {
        let access = self.access(place.region, kind, count, name)?;
        let v = match values {
            [value] => self.vector(*value)?,
            _ => {
                let block = self.temps(kind, count)?;
                for (i, value) in values.iter().enumerate() {
                    let top = self.registers.mark();
                    self.move_to(block + i as R, *value, top);
                }
                block
            }
        };
        let Index { at, plus } = place.index;
        let wide = at.kind.wide();
        if let (Operand::S(index), Region::Local(_)) = (at.at, place.region) {
            self.emit(Inst::StoreRow {
                v,
                index,
                wide,
                access,
            });
            return Ok(());
        }
        let index = self.vector(at)?;
        self.emit(if wide {
            Inst::StoreWide {
                v,
                index,
                plus,
                access,
            }
        } else {
            Inst::Store {
                v,
                index,
                plus,
                access,
            }
        });
        Ok(())
    }
}
