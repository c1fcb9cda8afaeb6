//! Loads, stores, atomics and pointers.
//!
//! An access to a parameter, a shared or a local array is an index into a known region; one through any other
//! pointer is an address. Pointers into shared and local arrays are tagged (`exec::address`), so that arithmetic
//! on them works and each access is still checked against its own array.

use tirx_core::diagnostic::{Result, error};
use tirx_core::intrin::Op;
use tirx_core::ir::{BinOp, Buffer, Expr, ExprKind};

use super::registers::Val;
use super::scan::constant_elements;
use super::{Compiler, Home};
use crate::alu::Bin;
use crate::bytecode::{Access, AtomicInst, AtomicOp, Inst, Operand, R, Region, Special};
use crate::exec::address;
use crate::numeric::Kind;

/// An index (or an address): a vector or scalar part and a scalar added to it.
#[derive(Clone, Copy)]
pub(super) struct Index {
    /// `I32` or `I64`.
    at: Val,
    plus: R,
}

/// The indices of the first element of consecutive ones, and how many there are.
type FirstAndCount = (Vec<Expr>, u16);

/// Where an access goes, before the index is compiled.
struct Place {
    region: Region,
    index: Index,
}

impl Compiler<'_> {
    /// What a data pointer stands for without computing anything: another name of a region.
    pub(super) fn alias(&self, e: &Expr) -> Option<Home> {
        match &e.kind {
            ExprKind::Var(v) => self.homes.get(v).cloned(),
            ExprKind::Cast(a) if a.dtype.is_handle() => self.alias(a),
            ExprKind::Call {
                op: Op::Reinterpret,
                args,
            } if args.first().is_some_and(|a| a.dtype.is_handle()) => self.alias(&args[0]),
            _ => None,
        }
    }

    /// The address of a region's first byte.
    pub(super) fn pointer_to(&mut self, home: &Home) -> Result<Val> {
        match home {
            Home::Param(i) => {
                let register = self.special(Special::Param(*i))?;
                Ok(Val::scalar(Kind::Ptr, register))
            }
            Home::Shared(array) => self.bits(Kind::Ptr, address::shared(*array)),
            Home::Local(array) => self.bits(Kind::Ptr, address::local(*array)),
            Home::Pointer(value) => Ok(*value),
            Home::Registers { .. } => error(self.span, "an array held in registers has no address"),
        }
    }

    /// The elements from `data` to the one at `indices`, as one index; `indices` are those of scalars.
    fn flat(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Index> {
        match indices {
            [] => {
                let zero = self.integer(Kind::I32, 0)?;
                self.index_of_terms(vec![zero])
            }
            [index] => {
                let mut terms = Vec::new();
                self.terms(index, &mut terms)?;
                self.index_of_terms(terms)
            }
            _ => {
                // Row-major, or by strides.
                let mut total: Option<Val> = None;
                for (i, index) in indices.iter().enumerate() {
                    let value = self.value(index)?;
                    let value = self.convert(value, Kind::I64)?;
                    let step = match (buffer.strides.get(i), buffer.shape.get(i)) {
                        (Some(stride), _) => Some((true, stride.clone())),
                        (None, Some(extent)) => Some((false, extent.clone())),
                        _ => None,
                    };
                    let Some((is_stride, factor)) = step else {
                        return error(
                            self.span,
                            format!("too many indices for buffer `{}`", buffer.name),
                        );
                    };
                    let factor = self.value(&factor)?;
                    let factor = self.convert(factor, Kind::I64)?;
                    total = Some(match (total, is_stride) {
                        (None, true) => self.binary(BinOp::Mul, value, factor)?,
                        (None, false) => value,
                        (Some(total), true) => {
                            let product = self.binary(BinOp::Mul, value, factor)?;
                            self.binary(BinOp::Add, total, product)?
                        }
                        (Some(total), false) => {
                            let product = self.binary(BinOp::Mul, total, factor)?;
                            self.binary(BinOp::Add, product, value)?
                        }
                    });
                }
                let total = match total {
                    Some(total) => total,
                    None => self.integer(Kind::I64, 0)?,
                };
                self.index_of_terms(vec![total])
            }
        }
    }

    /// The terms of a sum. Addition wraps, so their order does not matter.
    fn terms(&mut self, e: &Expr, out: &mut Vec<Val>) -> Result<()> {
        if let Some((a, b)) = e.as_binary(BinOp::Add)
            && e.dtype.is_scalar()
            && matches!(self.kind(e.dtype)?, Kind::I32 | Kind::I64)
        {
            self.count(1);
            self.terms(a, out)?;
            return self.terms(b, out);
        }
        let value = self.value(e)?;
        let value = match value.kind {
            Kind::I32 | Kind::I64 => value,
            Kind::U32 | Kind::U64 | Kind::Ptr => self.convert(value, Kind::I64)?,
            _ => self.convert(value, Kind::I32)?,
        };
        out.push(value);
        Ok(())
    }

    fn index_of_terms(&mut self, terms: Vec<Val>) -> Result<Index> {
        let kind = if terms.iter().any(|t| t.kind.wide()) {
            Kind::I64
        } else {
            Kind::I32
        };
        let (mut vector, mut scalar): (Option<Val>, Option<Val>) = (None, None);
        for term in terms {
            let term = self.convert(term, kind)?;
            if self.constant_of(term) == Some(0) && scalar.is_some() {
                continue;
            }
            let sum = if term.is_scalar() {
                &mut scalar
            } else {
                &mut vector
            };
            let before = *sum;
            let after = match before {
                Some(before) => self.bin(Bin::Add, kind, kind, before, term)?,
                None => term,
            };
            if term.is_scalar() {
                scalar = Some(after);
            } else {
                vector = Some(after);
            }
        }
        let zero = self.integer(kind, 0)?;
        let plus_of = |v: Val| match v.at {
            Operand::S(s) => s,
            Operand::V(_) => 0,
        };
        Ok(match (vector, scalar) {
            (Some(at), scalar) => Index {
                at,
                plus: plus_of(scalar.unwrap_or(zero)),
            },
            (None, scalar) => Index {
                at: scalar.unwrap_or(zero),
                plus: plus_of(zero),
            },
        })
    }

    /// The index times a constant plus a constant.
    fn scaled(&mut self, index: Index, factor: u16, plus: u32) -> Result<Index> {
        if factor == 1 && plus == 0 {
            return Ok(index);
        }
        let kind = index.at.kind;
        let rest = Val::scalar(kind, index.plus);
        let mut terms = [index.at, rest];
        if factor != 1 {
            let factor = self.integer(kind, factor as i128)?;
            for term in &mut terms {
                *term = self.bin(Bin::Mul, kind, kind, *term, factor)?;
            }
        }
        let plus = self.integer(kind, plus as i128)?;
        self.index_of_terms(vec![terms[0], terms[1], plus])
    }

    fn place(&mut self, home: &Home, index: Index, kind: Kind) -> Result<Place> {
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

    /// `pointer + index * size` as an index of the pointer region.
    fn address_of_index(&mut self, pointer: Val, index: Index, kind: Kind) -> Result<Index> {
        let address = self.address(pointer, index, kind)?;
        let zero = self.integer(Kind::I64, 0)?;
        let plus = match zero.at {
            Operand::S(s) => s,
            Operand::V(_) => 0,
        };
        Ok(Index {
            at: address.with_kind(Kind::I64),
            plus,
        })
    }

    fn address(&mut self, pointer: Val, index: Index, kind: Kind) -> Result<Val> {
        let at = self.convert(index.at, Kind::I64)?;
        let plus = Val::scalar(index.at.kind, index.plus);
        let plus = self.convert(plus, Kind::I64)?;
        let size = self.integer(Kind::I64, kind.bytes() as i128)?;
        let mut total = pointer.with_kind(Kind::I64);
        for term in [at, plus] {
            if self.constant_of(term) == Some(0) {
                continue;
            }
            let bytes = self.bin(Bin::Mul, Kind::I64, Kind::I64, term, size)?;
            total = self.bin(Bin::Add, Kind::I64, Kind::I64, total, bytes)?;
        }
        Ok(total.with_kind(Kind::Ptr))
    }

    fn access(&mut self, region: Region, kind: Kind, count: u16, name: &str) -> Result<u16> {
        let whole = kind.bytes() * count as u32;
        // Wider than 16 bytes is several instructions; three elements are three.
        let align = if whole.is_power_of_two() {
            whole.min(16)
        } else {
            kind.bytes()
        };
        let access = Access {
            region,
            kind,
            count,
            align: align.max(kind.bytes()),
            poll: self.polling,
            name: name.to_string(),
        };
        let same = |a: &Access| {
            a.region == access.region
                && (a.kind, a.count, a.poll) == (access.kind, access.count, access.poll)
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

    /// The index of the first element and how many follow it, or one index an element.
    fn split_index(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<(Option<FirstAndCount>, u16)> {
        let lanes: u16 = indices.iter().map(|i| i.dtype.lanes).product();
        if lanes <= 1 {
            return Ok((Some((indices.to_vec(), 1)), 1));
        }
        let Some((last, front)) = indices.split_last() else {
            return Ok((None, lanes));
        };
        let contiguous = buffer.strides.last().is_none_or(|s| s.is_int(1));
        if let ExprKind::Ramp { base, stride, lanes } = &last.kind
            && stride.is_int(1)
            && contiguous
            && front.iter().all(|i| i.dtype.is_scalar())
        {
            let mut first = front.to_vec();
            first.push(base.clone());
            return Ok((Some((first, *lanes)), *lanes));
        }
        Ok((None, lanes))
    }

    /// The scalar indices of each lane of a vector index.
    fn lane_indices(&mut self, indices: &[Expr], lanes: u16) -> Result<Vec<Index>> {
        let [index] = indices else {
            return error(
                self.span,
                "a vector index that is no ramp is possible for one dimension alone",
            );
        };
        let values = self.values(index)?;
        if values.len() != lanes as usize {
            return error(self.span, "an index with the wrong number of lanes");
        }
        values.into_iter().map(|v| self.index_of_terms(vec![v])).collect()
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
        let (first, total) = self.split_index(buffer, indices)?;
        if predicate.is_none()
            && let Some((first, count)) = first
        {
            let index = self.flat(buffer, &first)?;
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            return self.load_at(place, kind, count * lanes, &buffer.name);
        }
        // Lane by lane.
        let each = self.lane_indices(indices, total)?;
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

    /// The index of an array in registers: one for all lanes, and whether it is 64-bit.
    fn uniform_index(&mut self, indices: &[Expr]) -> Result<(R, bool)> {
        let [index] = indices else {
            return error(self.span, "an array in registers has one index");
        };
        let mut terms = Vec::new();
        self.terms(index, &mut terms)?;
        let index = self.index_of_terms(terms)?;
        // The scan has found it uniform; where the compiler cannot tell, all lanes hold it all the same.
        let at = self.first(index.at)?;
        let rest = Val::scalar(index.at.kind, index.plus);
        let sum = if index.at.is_scalar() {
            at
        } else {
            self.bin(Bin::Add, at.kind, at.kind, at, rest)?
        };
        match sum.at {
            Operand::S(s) => Ok((s, sum.kind.wide())),
            Operand::V(_) => error(self.span, "the index is not uniform"),
        }
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

    fn load_at(&mut self, place: Place, kind: Kind, count: u16, name: &str) -> Result<Vec<Val>> {
        let access = self.access(place.region, kind, count, name)?;
        let Index { at, plus } = place.index;
        let wide = at.kind.wide();
        if let Operand::S(index) = at.at {
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
        let (first, total) = self.split_index(buffer, indices)?;
        let want = total as usize * lanes as usize;
        if values.len() != want {
            let message = format!("a store of {} values to {want} places", values.len());
            return error(self.span, message);
        }
        if predicate.is_none()
            && let Some((first, count)) = first
        {
            let index = self.flat(buffer, &first)?;
            let index = self.scaled(index, lanes, 0)?;
            let place = self.place(&home, index, kind)?;
            return self.store_at(place, kind, &values, &buffer.name, count * lanes);
        }
        let each = self.lane_indices(indices, total)?;
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

    fn store_at(&mut self, place: Place, kind: Kind, values: &[Val], name: &str, count: u16) -> Result<()> {
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

    /// The place a pointer argument names, with the buffer's name.
    fn pointee_place(&mut self, e: &Expr, kind: Kind) -> Result<(Place, String)> {
        if let Some([target]) = e.as_call(Op::AddressOf)
            && let ExprKind::BufferLoad { buffer, indices, .. } = &target.kind
        {
            let home = self.home(buffer)?;
            let element = self.kind(buffer.dtype.element())?;
            let (first, _) = self.split_index(buffer, indices)?;
            if let (Some((first, _)), true) = (first, element.bytes() == kind.bytes()) {
                let index = self.flat(buffer, &first)?;
                let index = self.scaled(index, buffer.dtype.lanes, 0)?;
                return Ok((self.place(&home, index, kind)?, buffer.name.to_string()));
            }
        }
        if let Some(home) = self.alias(e) {
            let zero = self.integer(Kind::I32, 0)?;
            let index = self.index_of_terms(vec![zero])?;
            let name = e.as_var().map_or("*pointer", |v| v.name()).to_string();
            return Ok((self.place(&home, index, kind)?, name));
        }
        let pointer = self.value(e)?;
        let zero = self.integer(Kind::I64, 0)?;
        let index = self.index_of_terms(vec![zero])?;
        let index = self.address_of_index(pointer, index, kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        Ok((place, "*pointer".to_string()))
    }

    /// A load through a pointer argument.
    pub(super) fn load_pointer(&mut self, pointer: &Expr, kind: Kind, count: u16) -> Result<Vec<Val>> {
        let (place, name) = self.pointee_place(pointer, kind)?;
        self.count(1);
        self.load_at(place, kind, count, &name)
    }

    /// A store through a pointer argument.
    pub(super) fn store_pointer(&mut self, pointer: &Expr, kind: Kind, values: &[Val]) -> Result<()> {
        let (place, name) = self.pointee_place(pointer, kind)?;
        self.count(1);
        self.store_at(place, kind, values, &name, values.len() as u16)
    }

    /// A load and a store through a pointer value at an element offset.
    pub(super) fn load_offset(&mut self, pointer: Val, offset: Val, kind: Kind, name: &str) -> Result<Val> {
        let offset = self.convert(offset, Kind::I64)?;
        let index = self.index_of_terms(vec![offset])?;
        let index = self.address_of_index(pointer, index, kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        Ok(self.load_at(place, kind, 1, name)?[0])
    }

    pub(super) fn store_offset(&mut self, pointer: Val, offset: Val, value: Val, name: &str) -> Result<()> {
        let offset = self.convert(offset, Kind::I64)?;
        let index = self.index_of_terms(vec![offset])?;
        let index = self.address_of_index(pointer, index, value.kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        self.store_at(place, value.kind, &[value], name, 1)
    }

    pub(super) fn atomic(&mut self, op: AtomicOp, pointer: &Expr, operands: &[Expr]) -> Result<Val> {
        let mut values = Vec::new();
        for operand in operands {
            values.push(self.value(operand)?);
        }
        self.atomic_of(op, pointer, &values)
    }

    /// The same of values that are at hand.
    pub(super) fn atomic_of(&mut self, op: AtomicOp, pointer: &Expr, values: &[Val]) -> Result<Val> {
        let Some(value) = values.last().copied() else {
            return error(self.span, "an atomic without a value");
        };
        let kind = value.kind;
        let (place, name) = self.pointee_place(pointer, kind)?;
        if matches!(place.region, Region::Local(_)) {
            return error(self.span, format!("an atomic on the local array `{name}`"));
        }
        self.count(1);
        let access = self.access(place.region, kind, 1, &name)?;
        let value = self.vector(value)?;
        let compare = match *values {
            [compare, _] => {
                let compare = self.convert(compare, kind)?;
                self.vector(compare)?
            }
            _ => value,
        };
        let wide = place.index.at.kind.wide();
        let index = self.vector(place.index.at)?;
        let d = self.temp(kind)?;
        let id = u16::try_from(self.code.atomics.len()).unwrap_or(u16::MAX);
        if id == u16::MAX {
            return error(self.span, "the kernel has too many atomics for the simulator");
        }
        self.code.atomics.push(AtomicInst {
            op,
            access,
            index,
            wide,
            plus: place.index.plus,
            value,
            compare,
            d,
        });
        self.emit(Inst::Atomic { id });
        Ok(Val::vector(kind, d))
    }

    /// `&buffer[indices]`.
    pub(super) fn address_of(&mut self, target: &Expr) -> Result<Val> {
        let ExprKind::BufferLoad { buffer, indices, .. } = &target.kind else {
            return error(self.span, "address_of takes a buffer element");
        };
        let home = self.home(buffer)?;
        let kind = self.kind(buffer.dtype.element())?;
        let (first, _) = self.split_index(buffer, indices)?;
        let Some((first, _)) = first else {
            return error(self.span, "the address of a gather");
        };
        let index = self.flat(buffer, &first)?;
        let index = self.scaled(index, buffer.dtype.lanes, 0)?;
        let pointer = self.pointer_to(&home)?;
        self.count(1);
        self.address(pointer, index, kind)
    }

    /// A pointer moved by an expression times a number of bytes.
    pub(super) fn moved(&mut self, pointer: &Expr, offset: &Expr, scale: u32) -> Result<Val> {
        let pointer = self.value(pointer)?;
        let offset = self.value(offset)?;
        let offset = self.convert(offset, Kind::I64)?;
        let scale = self.integer(Kind::I64, scale as i128)?;
        let bytes = self.bin(Bin::Mul, Kind::I64, Kind::I64, offset, scale)?;
        let sum = self.bin(
            Bin::Add,
            Kind::I64,
            Kind::I64,
            pointer.with_kind(Kind::I64),
            bytes,
        )?;
        Ok(sum.with_kind(Kind::Ptr))
    }
}
