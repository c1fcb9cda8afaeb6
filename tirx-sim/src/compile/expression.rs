//! Expressions other than calls.
//!
//! A vector value is one register per lane of the *value* (each of 32 lanes of the *warp*): vector code is scalar code
//! repeated, except that consecutive elements are loaded and stored together.

use tirx_ir::{BinOp, DType, Expr, ExprKind};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::registers::Val;
use super::scan::is_harmless;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::{Inst, Operand};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// The kind of a dtype's elements.
    pub(super) fn kind(&self, dtype: DType) -> Result<Kind> {
        match Kind::from_dtype(dtype) {
            Some(kind) if !dtype.is_void() => Ok(kind),
            _ => error(self.span, format!("the simulator has no values of type {dtype}")),
        }
    }

    /// The value of a scalar expression.
    pub(super) fn value(&mut self, e: &Expr) -> Result<Val> {
        let values = self.values(e)?;
        match values[..] {
            [value] => Ok(value),
            _ => error(self.span, format!("expected a scalar, found {}", e.dtype)),
        }
    }

    /// A condition as 0 or 1.
    pub(super) fn condition(&mut self, e: &Expr) -> Result<Val> {
        let value = self.value(e)?;
        self.convert(value, Kind::Bool)
    }

    /// The value, one `Val` per lane of the dtype.
    pub(super) fn values(&mut self, e: &Expr) -> Result<Vec<Val>> {
        let outer = self.span;
        self.span = e.span.or(outer);
        let charged = self.charge(e.span);
        let result = self.values_kind(e);
        let span = self.span;
        self.span = outer;
        self.charged = charged;
        result.map_err(|mut d| {
            d.span = d.span.or(span);
            d
        })
    }

    fn values_kind(&mut self, e: &Expr) -> Result<Vec<Val>> {
        match &e.kind {
            ExprKind::Var(var) => {
                if let Some(values) = self.vars.get(var) {
                    return Ok(values.clone());
                }
                if let Some(home) = self.homes.get(var).cloned() {
                    return Ok(vec![self.pointer_to(&home)?]);
                }
                error(self.span, format!("`{}` is not defined", var.name()))
            }
            ExprKind::Int(value) => {
                let kind = self.kind(e.dtype)?;
                let value = if kind == Kind::U64 {
                    self.bits(kind, *value as u64)?
                } else {
                    self.integer(kind, *value)?
                };
                Ok(vec![value])
            }
            ExprKind::Float(value) => {
                let kind = self.kind(e.dtype)?;
                Ok(vec![self.bits(kind, kind.constant(*value))?])
            }
            ExprKind::Str(_) => error(self.span, "a string is no value in a kernel"),
            ExprKind::Cast(a) => {
                let to = self.kind(e.dtype)?;
                let values = self.values(a)?;
                self.count(values.len() as u32);
                values.into_iter().map(|v| self.convert(v, to)).collect()
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if e.dtype.is_scalar() => {
                Ok(vec![self.logical(*op, a, b)?])
            }
            ExprKind::Binary(op, a, b) => {
                if let Some(value) = self.multiply_add(*op, a, b)? {
                    return Ok(vec![value]);
                }
                let (a, b) = (self.values(a)?, self.values(b)?);
                self.count(a.len() as u32);
                a.into_iter()
                    .zip(b)
                    .map(|(a, b)| self.binary(*op, a, b))
                    .collect()
            }
            ExprKind::Not(a) => {
                let values = self.values(a)?;
                self.count(values.len() as u32);
                values
                    .into_iter()
                    .map(|v| Ok(self.un(Un::Not, Kind::Bool, v)?.with_kind(Kind::Bool)))
                    .collect()
            }
            // CUDA text chooses with `?:`, which evaluates one side; simplification under the condition relies on it.
            ExprKind::Select(c, t, f)
                if c.dtype.is_scalar() && !(self.is_harmless(t) && self.is_harmless(f)) =>
            {
                self.lazy_choice(c, t, f, e.dtype)
            }
            ExprKind::Select(c, t, f) => {
                let c = self.values(c)?;
                let (t, f) = (self.values(t)?, self.values(f)?);
                self.count(t.len() as u32);
                let pick = |i: usize| if c.len() == 1 { c[0] } else { c[i] };
                (0..t.len()).map(|i| self.select(pick(i), t[i], f[i])).collect()
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => self.load(buffer, indices, predicate.as_ref()),
            ExprKind::Ramp { base, stride, lanes } => {
                let (base, stride) = (self.value(base)?, self.value(stride)?);
                let kind = base.kind;
                let mut values = vec![base];
                for _ in 1..*lanes {
                    let last = values[values.len() - 1];
                    values.push(self.binary(BinOp::Add, last.with_kind(kind), stride)?);
                }
                self.count(*lanes as u32);
                Ok(values)
            }
            ExprKind::Broadcast { value, lanes } => {
                let values = self.values(value)?;
                let total = values.len() * *lanes as usize;
                Ok(values.iter().copied().cycle().take(total).collect())
            }
            ExprKind::Shuffle { vectors, indices } => {
                let mut all = Vec::new();
                for vector in vectors {
                    all.extend(self.values(vector)?);
                }
                let pick = |index: &Expr| {
                    let index = index.as_int().and_then(|i| usize::try_from(i).ok());
                    index.and_then(|i| all.get(i).copied())
                };
                match indices.iter().map(pick).collect::<Option<Vec<_>>>() {
                    Some(values) => Ok(values),
                    None => error(
                        self.span,
                        "the indices of a shuffle of vectors must be constants in range",
                    ),
                }
            }
            ExprKind::Let(var, value, body) => {
                let mark = self.registers.mark();
                let values = self.values(value)?;
                let values = self.own(values, mark)?;
                self.vars.insert(var.clone(), values);
                self.values(body)
            }
            ExprKind::Call { op, args } => self.call(*op, args, e.dtype),
        }
    }

    /// The instruction of an operator on operands of `kind`.
    fn operator(&self, op: BinOp, kind: Kind) -> Bin {
        use BinOp as B;
        if kind.is_float() {
            return match op {
                B::Add => Bin::AddF,
                B::Sub => Bin::SubF,
                B::Mul => Bin::MulF,
                B::Div => Bin::DivF,
                B::Mod => Bin::Fmod,
                B::FloorDiv => Bin::FloorDivF,
                B::FloorMod => Bin::FloorModF,
                B::Min => Bin::MinF,
                B::Max => Bin::MaxF,
                B::Eq => Bin::EqF,
                B::Ne => Bin::NeF,
                B::Lt => Bin::LtF,
                B::Le => Bin::LeF,
                B::Gt => Bin::GtF,
                B::Ge => Bin::GeF,
                B::And => Bin::And,
                B::Or => Bin::Or,
            };
        }
        let signed = kind.is_signed();
        let choose = |s, u| if signed { s } else { u };
        match op {
            B::Add => Bin::Add,
            B::Sub => Bin::Sub,
            B::Mul => Bin::Mul,
            B::Div => choose(Bin::DivS, Bin::DivU),
            B::Mod => choose(Bin::ModS, Bin::ModU),
            B::FloorDiv => choose(Bin::FloorDivS, Bin::DivU),
            B::FloorMod => choose(Bin::FloorModS, Bin::ModU),
            B::Min => choose(Bin::MinS, Bin::MinU),
            B::Max => choose(Bin::MaxS, Bin::MaxU),
            B::Eq => Bin::Eq,
            B::Ne => Bin::Ne,
            B::Lt => choose(Bin::LtS, Bin::LtU),
            B::Le => choose(Bin::LeS, Bin::LeU),
            B::Gt => choose(Bin::GtS, Bin::GtU),
            B::Ge => choose(Bin::GeS, Bin::GeU),
            B::And => Bin::And,
            B::Or => Bin::Or,
        }
    }

    pub(super) fn binary(&mut self, op: BinOp, a: Val, b: Val) -> Result<Val> {
        let kind = a.kind;
        let b = self.convert(b, kind)?;
        let inst = self.operator(op, kind);
        if op.is_comparison() {
            return self.bin(inst, kind, Kind::Bool, a, b);
        }
        // Division by a power of two: floor division of any, truncating of what is not negative.
        if let Some(value) = self.power_of_two(inst, a, b)? {
            return Ok(value);
        }
        let checked = self.options.check_overflow && matches!(kind, Kind::I32 | Kind::I64);
        let inst = if checked { inst.checked() } else { inst };
        let value = self.bin(inst, kind, kind, a, b)?;
        let exact = matches!(op, BinOp::Min | BinOp::Max | BinOp::And | BinOp::Or);
        if exact { Ok(value) } else { self.canonical(value) }
    }

    /// Floor division and modulo by a constant power of two as shift and mask: many times quicker.
    fn power_of_two(&mut self, op: Bin, a: Val, b: Val) -> Result<Option<Val>> {
        let Some(divisor) = self.constant_of(b) else {
            return Ok(None);
        };
        let kind = a.kind;
        let positive = if kind.wide() {
            divisor as i64 > 0
        } else {
            divisor as u32 as i32 > 0
        };
        if kind.is_float() || !positive || !divisor.is_power_of_two() {
            return Ok(None);
        }
        let shift = divisor.trailing_zeros() as i128;
        let (op, operand) = match op {
            Bin::FloorDivS => (Bin::ShrS, shift),
            Bin::DivU => (Bin::ShrU, shift),
            Bin::FloorModS | Bin::ModU => (Bin::And, divisor as i128 - 1),
            _ => return Ok(None),
        };
        let operand = self.integer(kind, operand)?;
        self.bin(op, kind, kind, a, operand).map(Some)
    }

    /// float32 `x + y * z` of vectors as one instruction (of the same value: it rounds twice).
    fn multiply_add(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Option<Val>> {
        if op != BinOp::Add || a.dtype != DType::FLOAT32 {
            return Ok(None);
        }
        let (addend, product) = match (a.as_binary(BinOp::Mul), b.as_binary(BinOp::Mul)) {
            (_, Some(product)) => (a, product),
            (Some(product), None) => (b, product),
            (None, None) => return Ok(None),
        };
        let addend = self.value(addend)?;
        let (y, z) = (self.value(product.0)?, self.value(product.1)?);
        self.count(2);
        if let (Operand::V(a), Operand::V(b), Operand::V(c)) = (y.at, z.at, addend.at) {
            let d = self.temp(Kind::F32)?;
            self.emit(Inst::MulAdd { d, a, b, c });
            return Ok(Some(Val::vector(Kind::F32, d)));
        }
        let product = self.binary(BinOp::Mul, y, z)?;
        self.binary(BinOp::Add, addend, product).map(Some)
    }

    /// Whether an expression may be evaluated where its value is not needed.
    fn is_harmless(&self, e: &Expr) -> bool {
        let may_overflow = self.options.check_overflow && e.operands().next().is_some();
        is_harmless(e) && !may_overflow
    }

    pub(super) fn select(&mut self, c: Val, t: Val, f: Val) -> Result<Val> {
        let kind = t.kind;
        if let (Operand::S(c), Operand::S(a), Operand::S(b)) = (c.at, t.at, f.at) {
            let d = self.temp_scalar()?;
            self.emit(Inst::SelectS { d, c, a, b });
            return Ok(Val::scalar(kind, d));
        }
        let (c, a, b) = (self.vector(c)?, self.vector(t)?, self.vector(f)?);
        let d = self.temp(kind)?;
        self.emit(if kind.wide() {
            Inst::Select64 { d, c, a, b }
        } else {
            Inst::Select32 { d, c, a, b }
        });
        Ok(Val::vector(kind, d))
    }

    /// `a && b`, `a || b`: the second operand is evaluated only where the first does not decide.
    fn logical(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Val> {
        self.count(1);
        let left = self.condition(a)?;
        if self.is_harmless(b) {
            let right = self.condition(b)?;
            let op = if op == BinOp::And { Bin::And } else { Bin::Or };
            return self.bin(op, Kind::Bool, Kind::Bool, left, right);
        }
        let and = op == BinOp::And;
        match left.at {
            Operand::S(s) => {
                // Where the second operand turns out to be uniform, so is the result.
                let (uniform, d) = (self.temp_scalar()?, self.temp(Kind::Bool)?);
                let copy = self.code.insts.len();
                self.emit(Inst::Splat32 { d, s });
                let skip = self.jump(if and {
                    Inst::JumpIfNot { s, pc: 0 }
                } else {
                    Inst::JumpIf { s, pc: 0 }
                });
                self.label = self.code.insts.len();
                let right = self.condition(b)?;
                let value = match right.at {
                    Operand::S(r) => {
                        self.code.insts[copy] = Inst::MovS { d: uniform, a: s };
                        self.emit(Inst::MovS { d: uniform, a: r });
                        Val::scalar(Kind::Bool, uniform)
                    }
                    Operand::V(_) => {
                        let mark = self.registers.mark();
                        self.move_to(d, right, mark);
                        Val::vector(Kind::Bool, d)
                    }
                };
                self.land(skip);
                Ok(value)
            }
            Operand::V(l) => {
                let d = self.temp(Kind::Bool)?;
                self.emit(Inst::Mov32 { d, a: l });
                let c = if and {
                    l
                } else {
                    let not = self.un(Un::Not, Kind::Bool, left)?;
                    self.vector(not)?
                };
                let part = self.divide(c);
                let right = self.condition(b)?;
                let mark = self.registers.mark();
                self.move_to(d, right, mark);
                self.meet(part, false);
                Ok(Val::vector(Kind::Bool, d))
            }
        }
    }

    /// `if_then_else`: only the chosen value is evaluated.
    pub(super) fn lazy_choice(&mut self, c: &Expr, t: &Expr, f: &Expr, dtype: DType) -> Result<Vec<Val>> {
        self.count(1);
        let condition = self.condition(c)?;
        if let Some(known) = self.constant_of(condition) {
            return self.values(if known != 0 { t } else { f });
        }
        if self.is_harmless(t) && self.is_harmless(f) {
            let (t, f) = (self.values(t)?, self.values(f)?);
            return t
                .into_iter()
                .zip(f)
                .map(|(t, f)| self.select(condition, t, f))
                .collect();
        }
        let kind = self.kind(dtype)?;
        let lanes = dtype.lanes as usize;
        match condition.at {
            Operand::V(c) => {
                let targets = (0..lanes).map(|_| self.temp(kind)).collect::<Result<Vec<_>>>()?;
                let part = self.divide(c);
                self.side(t, &targets)?;
                self.other_side(part);
                self.side(f, &targets)?;
                self.meet(part, true);
                Ok(targets.into_iter().map(|d| Val::vector(kind, d)).collect())
            }
            Operand::S(s) => {
                let skip = self.jump(Inst::JumpIfNot { s, pc: 0 });
                self.label = self.code.insts.len();
                let first = self.values(t)?;
                // Placeholders for the moves, filled in once it is known whether the other side is uniform too.
                let room = self.code.insts.len();
                for _ in 0..lanes {
                    self.emit(Inst::Step { weight: 0 });
                }
                let end = self.jump(Inst::Jump { pc: 0 });
                self.land(skip);
                let second = self.values(f)?;
                let uniform = first.iter().chain(&second).all(|v| v.is_scalar());
                let mut values = Vec::with_capacity(lanes);
                for i in 0..lanes {
                    let value = if uniform {
                        Val::scalar(kind, self.temp_scalar()?)
                    } else {
                        Val::vector(kind, self.temp(kind)?)
                    };
                    self.code.insts[room + i] = copy(value, first[i]);
                    self.emit(copy(value, second[i]));
                    values.push(value);
                }
                self.land(end);
                Ok(values)
            }
        }
    }

    fn side(&mut self, e: &Expr, targets: &[u16]) -> Result<()> {
        let mark = self.registers.mark();
        let values = self.values(e)?;
        self.move_all(targets, values, mark);
        self.registers.free_to(mark);
        Ok(())
    }

    /// The same operation on each lane of vector operands; scalars serve all lanes.
    pub(super) fn lanewise(
        &mut self,
        args: &[&Expr],
        lanes: u16,
        mut each: impl FnMut(&mut Self, &[Val]) -> Result<Val>,
    ) -> Result<Vec<Val>> {
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            operands.push(self.values(arg)?);
        }
        self.count(lanes as u32);
        (0..lanes as usize)
            .map(|i| {
                let lane: Vec<Val> = operands
                    .iter()
                    .map(|values| values[if values.len() == 1 { 0 } else { i }])
                    .collect();
                each(self, &lane)
            })
            .collect()
    }

    /// The same bits as another dtype.
    pub(super) fn reinterpret(&mut self, a: &Expr, dtype: DType) -> Result<Vec<Val>> {
        let values = self.values(a)?;
        self.reinterpret_values(values, a.dtype, dtype)
    }

    /// The bits of `values`, which are lanes of `from`, reinterpreted as lanes of `dtype`.
    pub(super) fn reinterpret_values(
        &mut self,
        values: Vec<Val>,
        from: DType,
        dtype: DType,
    ) -> Result<Vec<Val>> {
        let to = self.kind(dtype)?;
        let from_bits = self.kind(from)?.bits();
        let to_bits = to.bits();
        let mut bits = Vec::with_capacity(values.len());
        for value in values {
            bits.push(self.bits_in_memory(value)?);
        }
        // CUDA keeps a float4 in a byte of its own, in the lower half.
        if matches!((from_bits, to_bits), (4, 8) | (8, 4)) && bits.len() == dtype.lanes as usize {
            let half = |this: &mut Self, value: Val| {
                let byte = this.convert(value, Kind::U8)?;
                let mask = this.integer(Kind::U8, 15)?;
                let low = this.bin(Bin::And, Kind::U8, Kind::U8, byte, mask)?;
                this.value_of_bits(low, to)
            };
            return bits.into_iter().map(|value| half(self, value)).collect();
        }
        if from_bits as usize * bits.len() != to_bits as usize * dtype.lanes as usize {
            let message = format!("{from} has not as many bits as {dtype}");
            return error(self.span, message);
        }
        let unsigned = |bits: u32| match bits {
            4 | 8 => Kind::U8,
            16 => Kind::U16,
            32 => Kind::U32,
            _ => Kind::U64,
        };
        let mut out = Vec::new();
        if from_bits >= to_bits {
            for value in bits {
                for part in 0..from_bits / to_bits {
                    let shift = self.integer(value.kind, (part * to_bits) as i128)?;
                    let shifted = if part == 0 {
                        value
                    } else {
                        self.bin(Bin::ShrU, value.kind, value.kind, value, shift)?
                    };
                    out.push(self.convert(shifted, unsigned(to_bits))?);
                }
            }
        } else {
            let kind = unsigned(to_bits);
            for group in bits.chunks((to_bits / from_bits) as usize) {
                let mut whole = self.convert(group[0], kind)?;
                for (i, part) in group.iter().enumerate().skip(1) {
                    let part = self.convert(*part, kind)?;
                    let shift = self.integer(kind, (i as u32 * from_bits) as i128)?;
                    let part = self.bin(Bin::Shl, kind, kind, part, shift)?;
                    whole = self.bin(Bin::Or, kind, kind, whole, part)?;
                }
                out.push(whole);
            }
        }
        out.into_iter().map(|v| self.value_of_bits(v, to)).collect()
    }

    /// A string argument.
    pub(super) fn text<'e>(&self, e: &'e Expr) -> Result<&'e str> {
        match e.as_str() {
            Some(text) => Ok(text),
            None => error(self.span, "expected a string"),
        }
    }
}

/// A copy from `value` to the register of `to`.
fn copy(to: Val, value: Val) -> Inst {
    match (to.at, value.at, to.kind.wide()) {
        (Operand::S(d), Operand::S(a), _) => Inst::MovS { d, a },
        (Operand::V(d), Operand::S(s), true) => Inst::Splat64 { d, s },
        (Operand::V(d), Operand::S(s), false) => Inst::Splat32 { d, s },
        (Operand::V(d), Operand::V(a), true) => Inst::Mov64 { d, a },
        (Operand::V(d), Operand::V(a), false) => Inst::Mov32 { d, a },
        (Operand::S(d), Operand::V(a), true) => Inst::First64 { d, a },
        (Operand::S(d), Operand::V(a), false) => Inst::First32 { d, a },
    }
}
