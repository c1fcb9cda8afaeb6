//! Pointers: their regions, arithmetic on them, and accesses and atomics through them.
//!
//! Pointers into shared and local arrays are tagged (`exec::address`), so that arithmetic on them works and each
//! access is still checked against its own array.

use tirx_ir::intrin::Op;
use tirx_ir::{DType, Expr, ExprKind, at};
use tirx_source::diagnostic::{Result, error};

use super::call::Call;
use super::index::Index;
use super::memory::Place;
use super::registers::Val;
use super::{Compiler, Home};
use tirx_sim_machine::address;
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{
    AtomicInst, AtomicOp, Inst, MultimemInst, Operand, Region, Special, UNNAMED_POINTER,
};
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// The region that a data pointer is another name of, without computing anything.
    pub(super) fn alias(&self, e: &Expr) -> Option<Home> {
        match &e.kind {
            ExprKind::Var(v) => self.homes.get(v).cloned(),
            ExprKind::Cast(a) if a.dtype.is_handle() => self.alias(a),
            ExprKind::Call {
                op: Op::Reinterpret,
                args,
            } => {
                let value = args.get(at!(Reinterpret.value))?;
                if value.dtype.is_handle() {
                    self.alias(value)
                } else {
                    None
                }
            }
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

    /// `pointer + index * size` as an index of the pointer region.
    pub(super) fn address_of_index(&mut self, pointer: Val, index: Index, kind: Kind) -> Result<Index> {
        let address = match kind.bits() {
            // By halves of a byte.
            4 => {
                let one = self.integer(Kind::I64, 1)?;
                let halves = pointer.with_kind(Kind::I64);
                let halves = self.bin(Bin::Shl, Kind::I64, Kind::I64, halves, one)?;
                self.displaced(halves, index, 1)?
            }
            bits => self.displaced(pointer, index, bits / 8)?,
        };
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

    /// The address of an element: of the byte it is in.
    pub(super) fn address(&mut self, pointer: Val, index: Index, kind: Kind) -> Result<Val> {
        if kind.bits() >= 8 {
            return self.displaced(pointer, index, kind.bits() / 8);
        }
        let zero = self.integer(Kind::I64, 0)?;
        let half = self.displaced(zero, index, 1)?.with_kind(Kind::I64);
        let one = self.integer(Kind::I64, 1)?;
        let byte = self.bin(Bin::ShrS, Kind::I64, Kind::I64, half, one)?;
        let sum = self.bin(Bin::Add, Kind::I64, Kind::I64, pointer.with_kind(Kind::I64), byte)?;
        Ok(sum.with_kind(Kind::Ptr))
    }

    /// `pointer + index * step`.
    fn displaced(&mut self, pointer: Val, index: Index, step: u32) -> Result<Val> {
        let at = self.convert(index.at, Kind::I64)?;
        let plus = Val::scalar(index.at.kind, index.plus);
        let plus = self.convert(plus, Kind::I64)?;
        let size = self.integer(Kind::I64, step as i128)?;
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

    /// The region and the index that a pointer argument points to, with the buffer's name for messages. The address of an element, and another
    /// name of an array, keep their own region, so that an access is checked against its array. Any other pointer is an address.
    fn pointee_place(&mut self, e: &Expr, kind: Kind) -> Result<(Place, String)> {
        if let Some([target]) = e.as_call(Op::AddressOf)
            && let ExprKind::BufferLoad { buffer, indices, .. } = &target.kind
        {
            let home = self.home(buffer)?;
            let element = self.kind(buffer.dtype.element())?;
            let (contiguous, _) = self.split_index(buffer, indices)?;
            // The index counts elements of the buffer; it is also an index of the access only if both have the same width.
            if element.bits() == kind.bits()
                && let Some((first, _)) = contiguous
            {
                let (home, elements_before) = self.own_array(home, buffer);
                let index = self.flat(buffer, &first, elements_before)?;
                let index = self.scaled(index, buffer.dtype.lanes, 0)?;
                return Ok((self.place(&home, index, kind)?, buffer.name.to_string()));
            }
        }
        if let Some(home) = self.alias(e) {
            let zero = self.integer(Kind::I32, 0)?;
            let index = self.index_of_terms(vec![zero], 0)?;
            let name = e.as_var().map_or(UNNAMED_POINTER, |v| v.name()).to_string();
            return Ok((self.place(&home, index, kind)?, name));
        }
        let pointer = match e.dtype {
            // An integer of 32 bits is an address in shared memory, as PTX takes it.
            DType::UINT32 | DType::INT32 => Val::vector(Kind::Ptr, self.address_value(e)?),
            _ => match self.operand_in_view(e)? {
                Some(address) => address,
                None => self.value(e)?,
            },
        };
        let zero = self.integer(Kind::I64, 0)?;
        let index = self.index_of_terms(vec![zero], 0)?;
        let index = self.address_of_index(pointer, index, kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        Ok((place, UNNAMED_POINTER.to_string()))
    }

    /// A pointer to shared memory as an address of 32 bits.
    pub(super) fn shared_address(&mut self, pointer: Val) -> Result<Val> {
        let pointer = self.convert(pointer, Kind::U64)?;
        let a = self.vector(pointer)?;
        let d = self.temp(Kind::U32)?;
        self.emit(Inst::SharedAddress { d, a });
        Ok(Val::vector(Kind::U32, d))
    }

    /// `mapa`.
    pub(super) fn mapa(&mut self, call: &Call<'_>) -> Result<Val> {
        let a = self.pointer_value(self.argument(call, "ptr")?)?;
        let rank = self.value(self.argument(call, "rank")?)?;
        let rank = self.convert(rank, Kind::U32)?;
        let rank = self.vector(rank)?;
        let d = self.temp(Kind::U64)?;
        self.emit(Inst::Mapa { d, a, rank });
        let mapped = Val::vector(Kind::U64, d);
        if call.named.text("space").is_empty() {
            return Ok(mapped);
        }
        // Not a generic address, but that of shared memory in as many bits.
        let address = self.shared_address(mapped)?;
        let kind = self.kind(call.dtype)?;
        self.convert(address, kind)
    }

    /// A load through a pointer argument.
    pub(super) fn load_pointer(&mut self, pointer: &Expr, kind: Kind, count: u16) -> Result<Vec<Val>> {
        let (place, name) = self.pointee_place(pointer, kind)?;
        self.count(1);
        self.load_at(place, kind, count, &name)
    }

    /// The same through the path for memory that does not change while the kernel runs.
    pub(super) fn load_constant(&mut self, pointer: &Expr, kind: Kind, count: u16) -> Result<Vec<Val>> {
        let before = std::mem::replace(&mut self.constant, true);
        let values = self.load_pointer(pointer, kind, count);
        self.constant = before;
        values
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
        let index = self.index_of_terms(vec![offset], 0)?;
        let index = self.address_of_index(pointer, index, kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        Ok(self.load_at(place, kind, 1, name)?[0])
    }

    pub(super) fn store_offset(&mut self, pointer: Val, offset: Val, value: Val, name: &str) -> Result<()> {
        let offset = self.convert(offset, Kind::I64)?;
        let index = self.index_of_terms(vec![offset], 0)?;
        let index = self.address_of_index(pointer, index, value.kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        self.store_at(place, value.kind, &[value], name, 1)
    }

    /// An atomic of CUDA: relaxed, of the device.
    pub(super) fn atomic(&mut self, op: AtomicOp, pointer: &Expr, operands: &[&Expr]) -> Result<Val> {
        let mut values = Vec::new();
        for operand in operands {
            values.push(self.value(operand)?);
        }
        let strong = Strong::new("relaxed", Scope::Gpu, true, true);
        self.atomic_of(op, strong, pointer, &values)
    }

    /// The same for operands that are already compiled.
    pub(super) fn atomic_of(
        &mut self,
        op: AtomicOp,
        strong: Strong,
        pointer: &Expr,
        values: &[Val],
    ) -> Result<Val> {
        self.multimem_of(op, strong, pointer, values, None)
    }

    /// The same, or a `multimem` instruction.
    pub(super) fn multimem_of(
        &mut self,
        op: AtomicOp,
        strong: Strong,
        pointer: &Expr,
        values: &[Val],
        multimem: Option<MultimemInst>,
    ) -> Result<Val> {
        let Some(value) = values.last().copied() else {
            return error(self.span, "an atomic without a value");
        };
        let kind = value.kind;
        let (place, name) = self.pointee_place(pointer, kind)?;
        self.atomic_in(op, strong, (place, &name), values, value, multimem)
    }

    /// An atomic at the address in a register.
    pub(super) fn atomic_at(
        &mut self,
        op: AtomicOp,
        strong: Strong,
        address: Val,
        value: Val,
        multimem: Option<MultimemInst>,
    ) -> Result<Val> {
        let nothing = self.index_of_terms(Vec::new(), 0)?;
        let index = self.address_of_index(address, nothing, value.kind)?;
        let place = Place {
            region: Region::Pointer,
            index,
        };
        self.atomic_in(op, strong, (place, UNNAMED_POINTER), &[value], value, multimem)
    }

    fn atomic_in(
        &mut self,
        op: AtomicOp,
        strong: Strong,
        (place, name): (Place, &str),
        values: &[Val],
        value: Val,
        multimem: Option<MultimemInst>,
    ) -> Result<Val> {
        let kind = value.kind;
        if matches!(place.region, Region::Local(_)) {
            return error(self.span, format!("an atomic on the local array `{name}`"));
        }
        self.count(1);
        self.window = multimem.is_some();
        let access = self.access(place.region, kind, 1, name);
        self.window = false;
        let access = access?;
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
            strong,
            access,
            index,
            wide,
            plus: place.index.plus,
            value,
            compare,
            d,
            unused: false,
            multimem,
        });
        self.emit(Inst::Atomic { id });
        Ok(Val::vector(kind, d))
    }

    /// `&buffer[indices]`.
    pub(super) fn address_of(&mut self, target: &Expr) -> Result<Val> {
        if let Some(var) = target.as_var()
            && var.ty().is_tensor_map()
        {
            // Launches pass a tensor map by the address of its bytes.
            let address = self.value(target)?;
            return self.convert(address, Kind::U64);
        }
        let ExprKind::BufferLoad { buffer, indices, .. } = &target.kind else {
            return error(self.span, "address_of takes a buffer element");
        };
        let home = self.home(buffer)?;
        let kind = self.kind(buffer.dtype.element())?;
        let (first, _) = self.split_index(buffer, indices)?;
        let Some((first, _)) = first else {
            return error(self.span, "the address of a gather");
        };
        let index = self.flat(buffer, &first, 0)?;
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
