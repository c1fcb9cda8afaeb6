//! Values, registers, constants and jumps.
//!
//! Registers are taken as needed and given back in stack order (`mark`, `free_to`). Vector registers belong to
//! each lane alone, so they may be reused at once; scalar registers too, since a strand that is copied copies them.

use rustc_hash::FxHashMap;
use tirx_source::diagnostic::{Diagnostic, Result};
use tirx_source::source::Span;

use super::Compiler;
use super::redundant::is_narrow;
use tirx_sim_machine::FaultLocation;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::{Inst, Operand, Pc, R};
use tirx_sim_machine::numeric::{Kind, convert};

/// One lane of a value, in a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Val {
    pub(super) kind: Kind,
    pub(super) at: Operand,
    /// The register is a promoted array element that a later store may change.
    pub(super) mutable: bool,
}

impl Val {
    pub(super) fn scalar(kind: Kind, register: R) -> Val {
        Val {
            kind,
            at: Operand::S(register),
            mutable: false,
        }
    }

    pub(super) fn vector(kind: Kind, register: R) -> Val {
        Val {
            kind,
            at: Operand::V(register),
            mutable: false,
        }
    }

    pub(super) fn is_scalar(self) -> bool {
        matches!(self.at, Operand::S(_))
    }

    pub(super) fn with_kind(self, kind: Kind) -> Val {
        Val { kind, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum File {
    V32,
    V64,
    S,
}

impl File {
    pub(super) fn from_kind(kind: Kind) -> File {
        if kind.wide() { File::V64 } else { File::V32 }
    }
}

#[derive(Default)]
pub(super) struct Registers {
    next: [usize; 3],
    free: FxHashMap<(File, u16), Vec<R>>,
    /// Allocated and not yet freed.
    live: Vec<(File, R, u16)>,
    constants: FxHashMap<u64, R>,
    values: FxHashMap<R, u64>,
}

impl Registers {
    fn fresh(&mut self, file: File, count: u16, span: Span) -> Result<R> {
        let next = &mut self.next[file as usize];
        let first = *next;
        *next += count as usize;
        if *next > R::MAX as usize {
            let message = "the kernel needs more registers than the simulator has (65,535 of a kind)";
            return Err(Box::new(Diagnostic::new(span, message)));
        }
        Ok(first as R)
    }

    /// `count` consecutive registers until `free_to`.
    pub(super) fn take(&mut self, file: File, count: u16, span: Span) -> Result<R> {
        let reused = self.free.get_mut(&(file, count)).and_then(Vec::pop);
        let first = match reused {
            Some(first) => first,
            None => self.fresh(file, count, span)?,
        };
        self.live.push((file, first, count));
        Ok(first)
    }

    pub(super) fn permanent_scalar(&mut self, span: Span) -> Result<R> {
        self.fresh(File::S, 1, span)
    }

    pub(super) fn permanent_vector(&mut self, span: Span) -> Result<R> {
        self.fresh(File::V32, 1, span)
    }

    pub(super) fn mark(&self) -> usize {
        self.live.len()
    }

    pub(super) fn free_to(&mut self, mark: usize) {
        while self.live.len() > mark {
            if let Some((file, first, count)) = self.live.pop() {
                self.free.entry((file, count)).or_default().push(first);
            }
        }
    }

    /// Frees what was allocated since `mark` except the register of `keep`. False where `keep` was not among it.
    pub(super) fn free_but(&mut self, mark: usize, keep: Val) -> bool {
        let (file, register) = match keep.at {
            Operand::S(r) => (File::S, r),
            Operand::V(r) => (File::from_kind(keep.kind), r),
        };
        let kept = self.live[mark..]
            .iter()
            .position(|&(f, first, count)| f == file && first == register && count == 1);
        let entry = kept.map(|i| self.live.remove(mark + i));
        self.free_to(mark);
        self.live.extend(entry);
        entry.is_some()
    }

    /// Whether `val` is in a register allocated since `mark`.
    pub(super) fn taken_since(&self, mark: usize, val: Val) -> bool {
        let (file, register) = match val.at {
            Operand::S(r) => (File::S, r),
            Operand::V(r) => (File::from_kind(val.kind), r),
        };
        self.live[mark..]
            .iter()
            .any(|&(f, first, count)| f == file && first == register && count == 1)
    }

    pub(super) fn count32(&self) -> usize {
        self.next[File::V32 as usize]
    }

    pub(super) fn count64(&self) -> usize {
        self.next[File::V64 as usize]
    }

    pub(super) fn initial_scalars(&self) -> Vec<u64> {
        let mut scalars = vec![0; self.next[File::S as usize]];
        for (value, register) in &self.constants {
            scalars[*register as usize] = *value;
        }
        scalars
    }
}

impl Compiler<'_> {
    pub(super) fn emit(&mut self, inst: Inst) {
        let place = self.place_of(self.span);
        let charged = match self.charged.is_some() {
            true => self.place_of(self.charged),
            false => place,
        };
        self.code.insts.push(inst);
        self.code.places.push(place);
        self.code.charged.push(charged);
    }

    /// The number of a span's location.
    fn place_of(&mut self, span: Span) -> u32 {
        if let Some(place) = self.places.get(&span) {
            return *place;
        }
        let place = self.code.locations.len() as u32;
        self.code
            .locations
            .push(FaultLocation::from_span(self.sources, span));
        self.places.insert(span, place);
        place
    }

    /// Charges the work of an expression to its own line, unless the expression is an argument that was written outside of the
    /// function whose line computes it. Returns what was charged before.
    pub(super) fn charge(&mut self, span: Span) -> Span {
        let before = self.charged;
        let within = |span: Span| {
            span.file == before.file
                || self
                    .sources
                    .calls(span)
                    .iter()
                    .any(|call| call.file == before.file)
        };
        if span.is_some() && (!before.is_some() || within(span)) {
            self.charged = span;
        }
        before
    }

    /// A new block: operators counted from here on belong to it. Returns the one before.
    pub(super) fn begin_block(&mut self) -> usize {
        let before = self.block;
        self.block = self.code.insts.len();
        self.emit(Inst::Step { weight: 0 });
        before
    }

    /// Counts operators of the current block.
    pub(super) fn count(&mut self, operators: u32) {
        if let Some(Inst::Step { weight }) = self.code.insts.get_mut(self.block) {
            *weight += operators;
        }
    }

    pub(super) fn temp(&mut self, kind: Kind) -> Result<R> {
        self.registers.take(File::from_kind(kind), 1, self.span)
    }

    pub(super) fn temps(&mut self, kind: Kind, count: u16) -> Result<R> {
        self.registers.take(File::from_kind(kind), count, self.span)
    }

    pub(super) fn temp_scalar(&mut self) -> Result<R> {
        self.registers.take(File::S, 1, self.span)
    }

    /// A constant from the bits a register holds.
    pub(super) fn bits(&mut self, kind: Kind, bits: u64) -> Result<Val> {
        let register = match self.registers.constants.get(&bits) {
            Some(register) => *register,
            None => {
                let register = self.registers.permanent_scalar(self.span)?;
                self.registers.constants.insert(bits, register);
                self.registers.values.insert(register, bits);
                register
            }
        };
        Ok(Val::scalar(kind, register))
    }

    pub(super) fn integer(&mut self, kind: Kind, value: i128) -> Result<Val> {
        let bits = convert(Kind::I64, kind, value as i64 as u64);
        self.bits(kind, bits)
    }

    /// The bits of a constant.
    pub(super) fn constant_of(&self, val: Val) -> Option<u64> {
        match val.at {
            Operand::S(r) => self.registers.values.get(&r).copied(),
            Operand::V(_) => None,
        }
    }

    /// A vector register with the value.
    pub(super) fn vector(&mut self, val: Val) -> Result<R> {
        match val.at {
            Operand::V(r) => Ok(r),
            Operand::S(s) => {
                let d = self.temp(val.kind)?;
                self.splat(val.kind, d, s);
                Ok(d)
            }
        }
    }

    fn splat(&mut self, kind: Kind, d: R, s: R) {
        self.emit(if kind.wide() {
            Inst::Splat64 { d, s }
        } else {
            Inst::Splat32 { d, s }
        });
    }

    /// Copies the value into a vector register; where the last instruction computed it, by changing that instruction's
    /// destination.
    pub(super) fn move_to(&mut self, d: R, val: Val, temporaries: usize) {
        match val.at {
            Operand::S(s) => self.splat(val.kind, d, s),
            Operand::V(a) if a == d => {}
            Operand::V(a) => {
                let is_temporary = self.registers.taken_since(temporaries, val);
                if is_temporary
                    && self.here() as usize > self.label
                    && let Some(last) = self.code.insts.last()
                    && !matches!(last, Inst::Load { access, .. } if !is_narrow(&self.code, *access))
                    && let Some(last) = self.code.insts.last_mut()
                    && let Some(target) = vector_target(last, val.kind.wide())
                    && *target == a
                {
                    *target = d;
                    return;
                }
                self.emit(if val.kind.wide() {
                    Inst::Mov64 { d, a }
                } else {
                    Inst::Mov32 { d, a }
                });
            }
        }
    }

    /// Copies values into registers. Lanes of one vector may share a register, which then has to stay as it is.
    pub(super) fn move_all(&mut self, targets: &[R], values: Vec<Val>, temporaries: usize) {
        let temporaries = match values.len() {
            1 => temporaries,
            _ => self.registers.mark(),
        };
        for (d, value) in targets.iter().zip(values) {
            self.move_to(*d, value, temporaries);
        }
    }

    /// The first active lane's value as a scalar.
    pub(super) fn first(&mut self, val: Val) -> Result<Val> {
        match val.at {
            Operand::S(_) => Ok(val),
            Operand::V(a) => {
                let d = self.temp_scalar()?;
                self.emit(if val.kind.wide() {
                    Inst::First64 { d, a }
                } else {
                    Inst::First32 { d, a }
                });
                Ok(Val::scalar(val.kind, d))
            }
        }
    }

    /// A binary instruction on operands held alike; `kind` is that of the operands, `result` that of the value.
    pub(super) fn bin(&mut self, op: Bin, kind: Kind, result: Kind, a: Val, b: Val) -> Result<Val> {
        let wide = kind.wide();
        let compares = wide && !result.wide();
        if let (Operand::S(a), Operand::S(b)) = (a.at, b.at) {
            let d = self.temp_scalar()?;
            self.emit(match (wide, compares) {
                (false, _) => Inst::BinS32 { op, d, a, b },
                (true, false) => Inst::BinS64 { op, d, a, b },
                (true, true) => Inst::CmpS64 { op, d, a, b },
            });
            return Ok(Val::scalar(result, d));
        }
        let (op, a, b) = match (a.at, b.at, op.swapped()) {
            (Operand::S(_), Operand::V(_), Some(swapped)) => (swapped, b, a),
            _ => (op, a, b),
        };
        let a = self.vector(a)?;
        let d = self.temp(result)?;
        let inst = match b.at {
            Operand::S(s) => match (wide, compares) {
                (false, _) => Inst::Bin32S { op, d, a, s },
                (true, false) => Inst::Bin64S { op, d, a, s },
                (true, true) => Inst::Cmp64S { op, d, a, s },
            },
            Operand::V(b) => match (wide, compares) {
                (false, _) => Inst::Bin32 { op, d, a, b },
                (true, false) => Inst::Bin64 { op, d, a, b },
                (true, true) => Inst::Cmp64 { op, d, a, b },
            },
        };
        self.emit(inst);
        Ok(Val::vector(result, d))
    }

    pub(super) fn un(&mut self, op: Un, kind: Kind, a: Val) -> Result<Val> {
        match a.at {
            Operand::S(a) => {
                let d = self.temp_scalar()?;
                self.emit(if kind.wide() {
                    Inst::UnS64 { op, d, a }
                } else {
                    Inst::UnS32 { op, d, a }
                });
                Ok(Val::scalar(kind, d))
            }
            Operand::V(a) => {
                let d = self.temp(kind)?;
                self.emit(if kind.wide() {
                    Inst::Un64 { op, d, a }
                } else {
                    Inst::Un32 { op, d, a }
                });
                Ok(Val::vector(kind, d))
            }
        }
    }

    /// Rounds or wraps a result to its kind, where registers could hold more.
    pub(super) fn canonical(&mut self, val: Val) -> Result<Val> {
        let kind = val.kind;
        if kind.wide() || matches!(kind, Kind::I32 | Kind::U32 | Kind::F32) {
            return Ok(val);
        }
        match val.at {
            Operand::S(a) => {
                let d = self.temp_scalar()?;
                self.emit(Inst::CanonicalS { kind, d, a });
                Ok(Val::scalar(kind, d))
            }
            Operand::V(a) => {
                let d = self.temp(kind)?;
                self.emit(Inst::Canonical { kind, d, a });
                Ok(Val::vector(kind, d))
            }
        }
    }

    pub(super) fn convert(&mut self, val: Val, to: Kind) -> Result<Val> {
        let from = val.kind;
        if from == to {
            return Ok(val);
        }
        if let Some(bits) = self.constant_of(val) {
            return self.bits(to, convert(from, to, bits));
        }
        // Same bits under another name.
        let alike = matches!(
            (from, to),
            (Kind::I32, Kind::U32)
                | (Kind::U32, Kind::I32)
                | (
                    Kind::I64 | Kind::U64 | Kind::Ptr,
                    Kind::I64 | Kind::U64 | Kind::Ptr
                )
                | (
                    Kind::Bool,
                    Kind::I8 | Kind::U8 | Kind::I16 | Kind::U16 | Kind::I32 | Kind::U32
                )
                | (Kind::F16 | Kind::BF16 | Kind::Mini(_), Kind::F32)
                | (Kind::U8 | Kind::U16, Kind::U32 | Kind::I32)
                | (Kind::I8 | Kind::I16, Kind::I32)
        );
        if alike {
            return Ok(val.with_kind(to));
        }
        match val.at {
            Operand::S(a) => {
                let d = self.temp_scalar()?;
                self.emit(Inst::ConvertS { from, to, d, a });
                Ok(Val::scalar(to, d))
            }
            Operand::V(a) => {
                let d = self.temp(to)?;
                self.emit(Inst::Convert { from, to, d, a });
                Ok(Val::vector(to, d))
            }
        }
    }

    /// The bits that memory holds for a value, as an unsigned integer of its width: the inverse of `value_of_bits`.
    pub(super) fn bits_in_memory(&mut self, val: Val) -> Result<Val> {
        let kind = val.kind;
        let unsigned = match kind.bytes() {
            1 => Kind::U8,
            2 => Kind::U16,
            4 => Kind::U32,
            _ => Kind::U64,
        };
        if kind.is_plain() {
            return Ok(val.with_kind(unsigned));
        }
        match val.at {
            Operand::S(a) => {
                let d = self.temp_scalar()?;
                self.emit(Inst::ToBitsS { kind, d, a });
                Ok(Val::scalar(unsigned, d))
            }
            Operand::V(a) => {
                let d = self.temp(unsigned)?;
                self.emit(Inst::ToBits { kind, d, a });
                Ok(Val::vector(unsigned, d))
            }
        }
    }

    /// The value of `kind` whose bits in memory are `val`. A plain kind has the same bits in a register, and needs no instruction.
    pub(super) fn value_of_bits(&mut self, val: Val, kind: Kind) -> Result<Val> {
        if kind.is_plain() {
            return Ok(val.with_kind(kind));
        }
        match val.at {
            Operand::S(a) => {
                let d = self.temp_scalar()?;
                self.emit(Inst::FromBitsS { kind, d, a });
                Ok(Val::scalar(kind, d))
            }
            Operand::V(a) => {
                let d = self.temp(kind)?;
                self.emit(Inst::FromBits { kind, d, a });
                Ok(Val::vector(kind, d))
            }
        }
    }

    /// A jump whose target is set by `land`.
    pub(super) fn jump(&mut self, inst: Inst) -> usize {
        self.emit(inst);
        self.code.insts.len() - 1
    }

    /// Lets a jump lead here.
    pub(super) fn land(&mut self, at: usize) {
        let here = self.here();
        self.set_target(at, here);
        self.label = self.code.insts.len();
    }

    pub(super) fn set_target(&mut self, at: usize, target: Pc) {
        match self.code.insts.get_mut(at) {
            Some(Inst::Jump { pc } | Inst::JumpIf { pc, .. } | Inst::JumpIfNot { pc, .. }) => *pc = target,
            Some(Inst::ForStep32 { pc, .. } | Inst::ForStep64 { pc, .. }) => *pc = target,
            _ => {}
        }
    }
}

/// The vector register that an instruction writes, if it is in the requested file and writing it is the instruction's
/// only effect.
fn vector_target(inst: &mut Inst, wide: bool) -> Option<&mut R> {
    match inst {
        Inst::Bin32 { d, .. }
        | Inst::Bin32S { d, .. }
        | Inst::Un32 { d, .. }
        | Inst::Canonical { d, .. }
        | Inst::MulAdd { d, .. }
        // Of one element, as the caller ensures.
        | Inst::Load { d, .. }
        | Inst::Select32 { d, .. }
        | Inst::Cmp64 { d, .. }
        | Inst::Cmp64S { d, .. }
            if !wide =>
        {
            Some(d)
        }
        Inst::Bin64 { d, .. } | Inst::Bin64S { d, .. } | Inst::Un64 { d, .. } | Inst::Select64 { d, .. }
            if wide =>
        {
            Some(d)
        }
        Inst::Convert { d, to, .. } if to.wide() == wide => Some(d),
        Inst::Fma { d, kind, .. } if kind.wide() == wide => Some(d),
        _ => None,
    }
}
