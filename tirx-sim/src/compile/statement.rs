//! Statements and control flow.
//!
//! A branch or loop whose condition is uniform is made of plain jumps. A divergent branch is
//! `If … Arrive … Arrive`: the first side runs with its lanes, then the other, and both meet behind. A loop
//! whose lanes may leave at different times is framed: `LoopBegin … LoopTest … LoopLatch`.

use tirx_ir::abi::keys;
use tirx_ir::intrin::Op;
use tirx_ir::{
    Assert, Attr, AttrNode, Buffer, BufferStore, DType, Expr, ExprKind, ForKind, ForLoop, Stmt, StmtKind,
    Type, Var,
};
use tirx_source::diagnostic::{Result, error};

use super::registers::Val;
use super::scan::{has_break_or_continue, is_break, may_wait};
use super::{Compiler, Home, Loop};
use tirx_sim_machine::alu::Bin;
use tirx_sim_machine::bytecode::{Axis, Inst, LocalArray, Operand, Pc, RegisterArray, SharedArray, Special};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::{DebugHome, DebugName};

/// Alignment of arrays in shared memory, in bytes (at least TVM's default for buffers).
const ARRAY_ALIGN: u32 = 64;
/// Alignment of dynamic shared memory, in bytes.
const POOL_ALIGN: u32 = 1024;
/// Most bytes of a thread's local array: what CUDA gives a thread in all.
const MAX_LOCAL: u32 = 512 * 1024;
/// Most bytes of a function's local arrays; those of copied loop bodies count again.
const MAX_LOCALS: usize = 16 << 20;
/// Most bytes of a function's shared arrays; a launch may use less.
const MAX_SHARED: u32 = 1 << 20;

impl Compiler<'_> {
    pub(super) fn statement(&mut self, stmt: &Stmt) -> Result<()> {
        let outer = self.span;
        self.span = stmt.span.or(outer);
        let charged = std::mem::replace(&mut self.charged, self.span);
        let mark = self.registers.mark();
        let named = self.code.names.len();
        let result = self.statement_kind(stmt);
        // Bindings live on to the end of the enclosing sequence, which frees them.
        let stays = matches!(
            stmt.kind,
            StmtKind::Bind(..) | StmtKind::AllocBuffer(..) | StmtKind::DeclBuffer(..)
        );
        if !stays {
            self.registers.free_to(mark);
            let here = self.here();
            for known in self.code.names.iter_mut().skip(named) {
                known.range.1 = known.range.1.min(here);
            }
        }
        let span = self.span;
        self.span = outer;
        self.charged = charged;
        result.map_err(|mut d| {
            d.span = d.span.or(span);
            d
        })
    }

    fn statement_kind(&mut self, stmt: &Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|s| self.statement(s)),
            StmtKind::Bind(var, _) if self.scan.unused(var) => Ok(()),
            StmtKind::Bind(var, value) => self.bind(var, value),
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => self.attr(node, key, value, body),
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => self.store(buffer, indices, value, predicate.as_ref()),
            StmtKind::AllocBuffer(buffer, _) => self.alloc(buffer),
            // As for an allocation in tensor memory: see `alloc`.
            StmtKind::DeclBuffer(buffer) if buffer.scope() == "tmem" => Ok(()),
            StmtKind::DeclBuffer(buffer) => {
                let home = self.home(buffer)?;
                if let Some((view, _)) = self.view_in(&home, buffer) {
                    self.name_array(buffer, &Home::Shared(view));
                }
                Ok(())
            }
            StmtKind::ScopeId(_) => error(stmt.span, "scope ids must be lowered before the simulator runs"),
            StmtKind::Tile(_) => error(
                stmt.span,
                "tile primitives must be lowered before the simulator runs",
            ),
            StmtKind::Evaluate(e) => {
                if e.as_int().is_some() {
                    return Ok(());
                }
                self.evaluate(e)?;
                if let Some(Inst::Atomic { id }) = self.code.insts.last() {
                    self.code.atomics[*id as usize].unused = true;
                }
                Ok(())
            }
            StmtKind::If(condition, then, otherwise) => self.branch(condition, then, otherwise.as_ref()),
            StmtKind::While(condition, body) => self.while_loop(condition, body),
            StmtKind::For(ForLoop {
                kind: ForKind::ThreadBinding,
                ..
            }) => error(
                stmt.span,
                "thread-bound loops must be lowered before the simulator runs",
            ),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                step,
                body,
                ..
            }) => self.for_loop(var, min, extent, step.as_ref(), body),
            StmtKind::Assert(Assert {
                condition,
                kind,
                message,
            }) => {
                let text: String = message.iter().map(|part| &**part).collect();
                self.assertion(condition, format!("{kind}: {text}"))
            }
        }
    }

    pub(super) fn assertion(&mut self, condition: &Expr, message: String) -> Result<()> {
        let condition = self.condition(condition)?;
        let c = self.vector(condition)?;
        let id = u16::try_from(self.code.messages.len()).unwrap_or(u16::MAX);
        if id < u16::MAX {
            self.code.messages.push(message);
        }
        self.emit(Inst::Assert { c, message: id });
        Ok(())
    }

    fn bind(&mut self, var: &Var, value: &Expr) -> Result<()> {
        let is_pointer = matches!(var.ty(), Type::Pointer { .. }) || var.dtype().is_handle();
        if is_pointer && let Some(home) = self.alias(value) {
            self.homes.insert(var.clone(), home);
            return Ok(());
        }
        let mark = self.registers.mark();
        let values = self.values(value)?;
        let values = self.own(values, mark)?;
        if is_pointer {
            self.homes.insert(var.clone(), Home::Pointer(values[0]));
        }
        self.name(var, &values);
        self.vars.insert(var.clone(), values);
        Ok(())
    }

    /// The values of what an operation means, of arguments that are computed once.
    pub(super) fn composed(
        &mut self,
        args: &[Expr],
        meaning: impl FnOnce(&[Expr]) -> Expr,
    ) -> Result<Vec<Val>> {
        let args = args
            .iter()
            .map(|arg| self.computed(arg))
            .collect::<Result<Vec<_>>>()?;
        self.values(&meaning(&args))
    }

    /// A variable with the value of an operand, or the operand itself if it is a variable, a constant or no number. What an operation means may name an
    /// operand several times, or on one side of a choice only: a shuffle there would run several times, or not in all lanes.
    pub(super) fn computed(&mut self, operand: &Expr) -> Result<Expr> {
        let dtype = operand.dtype;
        let is_number =
            dtype.is_int() || dtype.is_uint() || dtype.is_float() || dtype.is_bfloat16() || dtype.is_bool();
        let is_simple = matches!(
            operand.kind,
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_)
        );
        if is_simple || !is_number {
            return Ok(operand.clone());
        }
        let mark = self.registers.mark();
        let values = self.values(operand)?;
        let values = self.own(values, mark)?;
        let variable = Var::new("operand", operand.dtype);
        self.vars.insert(variable.clone(), values);
        Ok(Expr::var(&variable))
    }

    /// Copies values to registers that no later store changes and that outlive the statement.
    pub(super) fn own(&mut self, mut values: Vec<Val>, mark: usize) -> Result<Vec<Val>> {
        for value in &mut values {
            if value.mutable {
                let d = self.temp(value.kind)?;
                let top = self.registers.mark();
                self.move_to(d, *value, top);
                *value = Val::vector(value.kind, d);
            }
        }
        // A single value keeps its register and gives back the rest; vectors keep everything they used.
        if let [value] = values[..] {
            self.registers.free_but(mark, value);
        }
        Ok(values)
    }

    fn attr(&mut self, node: &AttrNode, key: &str, value: &Expr, body: &Stmt) -> Result<()> {
        if key == keys::VIRTUAL_THREAD {
            return error(self.span, "the simulator does not run virtual threads");
        }
        if let (AttrNode::IterVar(iv), keys::THREAD_EXTENT) = (node, key)
            // Scheduling hints change no result.
            && !iv.thread_tag.starts_with("preferredClusterCtaIdx.")
        {
            let Some(axis) = Axis::from_tag(&iv.thread_tag) else {
                let message = format!(
                    "the simulator does not know the hardware index `{}`",
                    iv.thread_tag
                );
                return error(self.span, message);
            };
            let index = match axis {
                Axis::Thread(dim) => self.thread_index(dim)?,
                _ => Val::scalar(Kind::I32, self.special(Special::Index(axis))?),
            };
            let kind = self.kind(iv.var.dtype())?;
            let index = self.convert(index, kind)?;
            self.name(&iv.var, &[index]);
            self.vars.insert(iv.var.clone(), vec![index]);
            let extent = self.value(&widened(value))?;
            let extent = self.convert(extent, Kind::U32)?;
            if let Operand::S(s) = extent.at {
                self.emit(Inst::Extent { s, axis });
            }
        }
        self.statement(body)
    }

    fn alloc(&mut self, buffer: &Buffer) -> Result<()> {
        // Columns of tensor memory have no storage here: instructions name them by number.
        if buffer.scope() == "tmem" {
            return Ok(());
        }
        let bytes = buffer
            .const_size()
            .and_then(|n| usize::try_from(n).ok())
            .and_then(|n| buffer.dtype.bytes_of(n));
        let scope = buffer.scope();
        let most = if scope == "local" { MAX_LOCAL } else { MAX_SHARED };
        let used = match scope {
            "local" => self.code.local_words * 4,
            _ => self.shared_end() as usize,
        };
        let room = if scope == "local" {
            MAX_LOCALS
        } else {
            MAX_SHARED as usize
        };
        let bytes = match bytes {
            Some(bytes) if bytes <= most as usize && used + bytes <= room => bytes as u32,
            Some(bytes) => {
                let whose = if scope == "local" { "a thread" } else { "a block" };
                let message = format!(
                    "`{}` has {bytes} bytes, and {whose} has at most {most} in scope \"{scope}\"",
                    buffer.name
                );
                return error(buffer.span, message);
            }
            // The launch gives its size.
            None if scope == "shared.dyn" => 0,
            None => {
                let message = format!("`{}` in scope \"{scope}\" has no constant size", buffer.name);
                return error(buffer.span, message);
            }
        };
        let name = buffer.name.to_string();
        let home = match scope {
            "shared" | "shared.dyn" => self.alloc_shared(buffer, name, bytes, scope == "shared.dyn"),
            "local" => match self.scan.promoted(&buffer.data) {
                Some(count) => self.alloc_registers(buffer, count)?,
                None => self.alloc_local(buffer, name, bytes),
            },
            _ => {
                let message = format!("the simulator has no memory in scope \"{scope}\"");
                return error(buffer.span, message);
            }
        };
        self.name_array(buffer, &home);
        self.homes.insert(buffer.data.clone(), home);
        Ok(())
    }

    /// Records the place of a variable's value from here on.
    fn name(&mut self, var: &Var, values: &[Val]) {
        if let [value] = values {
            self.code.names.push(DebugName {
                name: var.name().to_string(),
                range: (self.here(), Pc::MAX),
                kind: value.kind,
                home: DebugHome::Register(value.at),
            });
        }
    }

    /// The same of an array.
    fn name_array(&mut self, buffer: &Buffer, home: &Home) {
        let place = match home {
            Home::Registers { elements, .. } => DebugHome::Registers(elements.clone()),
            Home::Shared(array) => DebugHome::Shared(*array),
            _ => return,
        };
        if let Ok(kind) = self.kind(buffer.dtype.element()) {
            let name = buffer.view.as_ref().map_or(&buffer.name, |view| &view.name);
            self.code.names.push(DebugName {
                name: name.to_string(),
                range: (self.here(), Pc::MAX),
                kind,
                home: place,
            });
        }
    }

    /// Bytes up to the end of the shared arrays so far.
    fn shared_end(&self) -> u32 {
        self.code.shared_end()
    }

    fn alloc_shared(&mut self, buffer: &Buffer, name: String, bytes: u32, dynamic: bool) -> Home {
        let declared = buffer.align.max(1).next_power_of_two();
        let declared = if dynamic {
            declared.max(POOL_ALIGN)
        } else {
            declared
        };
        let align = declared.max(ARRAY_ALIGN);
        let offset = self.shared_end().next_multiple_of(align);
        if !dynamic {
            self.code.static_shared = self.code.static_shared.next_multiple_of(align) + bytes;
        }
        let id = self.code.shared.len() as u16;
        self.code.shared.push(SharedArray {
            offset,
            bytes,
            align: declared,
            element: buffer.dtype.storage_bits() as u16 * buffer.dtype.lanes.max(1),
            name,
            dynamic,
            view: None,
        });
        Home::Shared(id)
    }

    fn alloc_registers(&mut self, buffer: &Buffer, count: usize) -> Result<Home> {
        let kind = self.kind(buffer.dtype.element())?;
        let is_indexed = self.scan.indexed(&buffer.data);
        let elements = if is_indexed {
            let first = self.temps(kind, count as u16)?;
            (first..first + count as u16).collect()
        } else {
            (0..count).map(|_| self.temp(kind)).collect::<Result<Vec<_>>>()?
        };
        let init = if self.scan.checked(&buffer.data) {
            let first = self.code.init_bits.len() as u16;
            for i in 0..count {
                let name = if count == 1 {
                    format!("`{}`", buffer.name)
                } else {
                    format!("`{}[{i}]`", buffer.name)
                };
                self.code.init_bits.push(name);
                self.emit(Inst::ClearInit {
                    bit: first + i as u16,
                });
            }
            Some(first)
        } else {
            None
        };
        let indexed = is_indexed.then(|| {
            self.code.register_arrays.push(RegisterArray {
                first: elements.first().copied().unwrap_or(0),
                count: count as u16,
                wide: kind.wide(),
                init,
                name: buffer.name.to_string(),
            });
            (self.code.register_arrays.len() - 1) as u16
        });
        Ok(Home::Registers {
            elements,
            init,
            indexed,
        })
    }

    fn alloc_local(&mut self, buffer: &Buffer, name: String, bytes: u32) -> Home {
        // The same declaration may occur again where a pass has copied a loop body.
        let offset = self.code.local_words as u32;
        self.code.local_words += bytes.div_ceil(8) as usize * 2;
        let array = self.code.locals.len() as u16;
        self.code.locals.push(LocalArray { offset, bytes, name });
        self.span = buffer.span.or(self.span);
        self.emit(Inst::ClearLocal { array });
        Home::Local(array)
    }

    fn branch(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let outside = self.parted;
        let parts = self.scan.parts_threads(condition);
        self.parted |= parts;
        let before = self.code.parted_barriers.len();
        let result = self.sides(condition, then, otherwise);
        self.parted = outside;
        if parts {
            let end = self.code.insts.len();
            let within = &mut self.code.parted_barriers[before..];
            within
                .iter_mut()
                .for_each(|barrier| barrier.end = barrier.end.min(end));
        }
        result
    }

    fn sides(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let leaves = self.loops.last().is_some_and(|l| l.is_while)
            && (is_break(then) || otherwise.is_some_and(is_break));
        let was_polling = self.polling;
        self.polling |= leaves;
        let condition = self.condition(condition);
        self.polling = was_polling;
        let condition = condition?;
        if let Some(known) = self.constant_of(condition) {
            return match (known != 0, otherwise) {
                (true, _) => self.statement(then),
                (false, Some(otherwise)) => self.statement(otherwise),
                (false, None) => Ok(()),
            };
        }
        match condition.at {
            Operand::S(s) => {
                let skip = self.jump(Inst::JumpIfNot { s, pc: 0 });
                self.code.branches.push(skip as Pc);
                self.block_of(then)?;
                if let Some(otherwise) = otherwise {
                    let end = self.jump(Inst::Jump { pc: 0 });
                    self.land(skip);
                    self.block_of(otherwise)?;
                    self.land(end);
                } else {
                    self.land(skip);
                }
            }
            Operand::V(c) => {
                let part = self.divide(c);
                self.code.branches.push(part as Pc);
                self.block_of(then)?;
                if let Some(otherwise) = otherwise {
                    self.other_side(part);
                    self.block_of(otherwise)?;
                }
                self.meet(part, otherwise.is_some());
            }
        }
        Ok(())
    }

    /// Splits the active lanes; `other_side` and `meet` finish the branch.
    pub(super) fn divide(&mut self, c: u16) -> usize {
        self.emit(Inst::If { c, other: 0, join: 0 });
        self.code.insts.len() - 1
    }

    pub(super) fn other_side(&mut self, part: usize) {
        self.emit(Inst::Arrive);
        let here = self.here();
        if let Some(Inst::If { other, .. }) = self.code.insts.get_mut(part) {
            *other = here;
        }
        self.label = self.code.insts.len();
    }

    pub(super) fn meet(&mut self, part: usize, has_other: bool) {
        let here = self.here();
        self.emit(Inst::Arrive);
        if let Some(Inst::If { other, join, .. }) = self.code.insts.get_mut(part) {
            *join = here;
            if !has_other {
                *other = here;
            }
        }
        self.label = self.code.insts.len();
    }

    fn block_of(&mut self, stmt: &Stmt) -> Result<()> {
        self.label = self.code.insts.len();
        let before = self.begin_block();
        let result = self.statement(stmt);
        self.block = before;
        result
    }

    fn loop_body(&mut self, body: &Stmt, is_while: bool) -> Result<()> {
        self.loops.push(Loop { is_while });
        let result = self.block_of(body);
        self.loops.pop();
        result
    }

    fn while_loop(&mut self, condition: &Expr, body: &Stmt) -> Result<()> {
        let waits = may_wait(condition, body);
        let jumps = has_break_or_continue(body);
        // Whether the frame is needed is known once the condition is compiled; an unneeded one becomes a no-op.
        let begin = self.code.insts.len();
        self.emit(Inst::LoopBegin { latch: 0, exit: 0 });
        let head = self.here();
        self.label = self.code.insts.len();
        let poll = waits.then(|| self.begin_poll(condition, body));
        if let Some(id) = poll {
            self.emit(Inst::Turn { id });
        }
        let was_polling = std::mem::replace(&mut self.polling, true);
        let compiled = self.condition(condition);
        self.polling = was_polling;
        let condition = compiled?;
        let forever = self.constant_of(condition).is_some_and(|c| c != 0);
        let framed = jumps || !condition.is_scalar();
        if let (Operand::S(s), false) = (condition.at, framed) {
            self.code.insts[begin] = Inst::Step { weight: 0 };
            let leave = self.jump(Inst::JumpIfNot { s, pc: 0 });
            self.code.branches.push(leave as Pc);
            self.loop_body(body, true)?;
            self.spin(poll, head);
            self.emit(Inst::Jump { pc: head });
            self.land(leave);
            return Ok(());
        }
        match condition.at {
            Operand::S(_) if forever => {}
            Operand::S(s) => self.emit(Inst::LoopTestS { s }),
            Operand::V(c) => self.emit(Inst::LoopTest { c }),
        }
        if !forever {
            self.code.branches.push(self.here() - 1);
        }
        self.loop_body(body, true)?;
        let latch = self.here();
        self.emit(Inst::LoopLatch);
        self.spin(poll, head);
        self.emit(Inst::Jump { pc: head });
        self.close_loop(begin, latch);
        Ok(())
    }

    /// An iteration of a loop that may wait ends.
    fn spin(&mut self, poll: Option<u16>, head: Pc) {
        if let Some(id) = poll {
            self.end_poll(id, head as usize);
            self.emit(Inst::Spin { id });
        }
    }

    /// Iterations for as long as a condition holds, which may wait for another thread.
    pub(super) fn wait_while(&mut self, condition: impl FnOnce(&mut Self) -> Result<Val>) -> Result<()> {
        let begin = self.code.insts.len();
        self.emit(Inst::LoopBegin { latch: 0, exit: 0 });
        let head = self.here();
        self.label = self.code.insts.len();
        let poll = self.begin_poll(&Expr::constant(DType::BOOL, 1), &Stmt::seq(Vec::new()));
        self.emit(Inst::Turn { id: poll });
        let condition = condition(self)?;
        let c = self.vector(condition)?;
        self.emit(Inst::LoopTest { c });
        self.emit(Inst::Step { weight: 0 });
        let latch = self.here();
        self.emit(Inst::LoopLatch);
        self.spin(Some(poll), head);
        self.emit(Inst::Jump { pc: head });
        self.close_loop(begin, latch);
        Ok(())
    }

    fn close_loop(&mut self, begin: usize, latch: u32) {
        let exit = self.here();
        self.code.insts[begin] = Inst::LoopBegin { latch, exit };
        self.label = self.code.insts.len();
    }

    fn for_loop(
        &mut self,
        var: &Var,
        min: &Expr,
        extent: &Expr,
        step: Option<&Expr>,
        body: &Stmt,
    ) -> Result<()> {
        let kind = self.kind(var.dtype())?;
        if kind.is_float() {
            return error(self.span, format!("a loop over {}", var.dtype()));
        }
        let first = self.value(min)?;
        let first = self.convert(first, kind)?;
        let count = self.value(extent)?;
        let count = self.convert(count, kind)?;
        let step = match step {
            Some(step) => {
                let step = self.value(step)?;
                self.convert(step, kind)?
            }
            None => self.integer(kind, 1)?,
        };
        let end = if self.constant_of(first) == Some(0) {
            count
        } else {
            self.bin(Bin::Add, kind, kind, first, count)?
        };
        let less = if kind.is_signed() { Bin::LtS } else { Bin::LtU };
        let jumps = has_break_or_continue(body);
        let uniform = first.is_scalar() && end.is_scalar() && step.is_scalar();
        // Bounds must not change while the loop runs.
        let end = self.fixed(end)?;
        let step = self.fixed(step)?;
        let variable = if uniform {
            let i = self.temp_scalar()?;
            Val::scalar(kind, i)
        } else {
            let i = self.temp(kind)?;
            Val::vector(kind, i)
        };
        self.assign(variable, first);
        self.name(var, &[variable]);
        self.vars.insert(var.clone(), vec![variable]);

        if let (Operand::S(i), Operand::S(e), Operand::S(s), false, true) =
            (variable.at, end.at, step.at, jumps, kind.is_signed())
        {
            let more = self.bin(less, kind, Kind::Bool, variable, end)?;
            let Operand::S(more) = more.at else { return Ok(()) };
            let skip = self.jump(Inst::JumpIfNot { s: more, pc: 0 });
            let pc = self.here();
            self.loop_body(body, false)?;
            self.emit(if kind.wide() {
                Inst::ForStep64 {
                    i,
                    step: s,
                    end: e,
                    pc,
                }
            } else {
                Inst::ForStep32 {
                    i,
                    step: s,
                    end: e,
                    pc,
                }
            });
            self.land(skip);
            return Ok(());
        }

        let begin = self.code.insts.len();
        self.emit(Inst::LoopBegin { latch: 0, exit: 0 });
        let head = self.here();
        self.label = self.code.insts.len();
        let more = self.bin(less, kind, Kind::Bool, variable, end)?;
        match more.at {
            Operand::S(s) => self.emit(Inst::LoopTestS { s }),
            Operand::V(c) => self.emit(Inst::LoopTest { c }),
        }
        self.loop_body(body, false)?;
        let latch = self.here();
        self.emit(Inst::LoopLatch);
        self.label = self.code.insts.len();
        let next = self.bin(Bin::Add, kind, kind, variable, step)?;
        self.assign(variable, next);
        self.emit(Inst::Jump { pc: head });
        self.close_loop(begin, latch);
        Ok(())
    }

    /// The value in a register that no store changes.
    fn fixed(&mut self, val: Val) -> Result<Val> {
        if !val.mutable {
            return Ok(val);
        }
        let d = self.temp(val.kind)?;
        let mark = self.registers.mark();
        self.move_to(d, val, mark);
        Ok(Val::vector(val.kind, d))
    }

    /// Writes a loop variable.
    fn assign(&mut self, variable: Val, value: Val) {
        match (variable.at, value.at) {
            (Operand::S(d), Operand::S(a)) => self.emit(Inst::MovS { d, a }),
            (Operand::V(d), _) => {
                let mark = self.registers.mark();
                self.move_to(d, value, mark);
            }
            // A uniform variable has a uniform value.
            (Operand::S(_), Operand::V(_)) => {}
        }
    }

    /// Where the memory behind a buffer is.
    pub(super) fn home(&mut self, buffer: &Buffer) -> Result<Home> {
        match self.homes.get(&buffer.data) {
            Some(home) => Ok(home.clone()),
            None => error(
                self.span,
                format!("the memory of buffer `{}` is not declared", buffer.name),
            ),
        }
    }
}

/// An extent in 64 bits, as the launcher computes it: the sum of `n + 255` may leave the 32 bits that `n` has.
fn widened(extent: &Expr) -> Expr {
    match &extent.kind {
        ExprKind::Binary(op, a, b)
            if extent.dtype.is_integer() && !op.is_comparison() && !op.is_logical() =>
        {
            Expr::binary(*op, widened(a), widened(b))
        }
        // A division by a power of two.
        ExprKind::Call {
            op: op @ (Op::ShiftRight | Op::ShiftLeft),
            args,
        } if extent.dtype.is_integer() => {
            let args = args.iter().map(widened).collect();
            let call = ExprKind::Call { op: *op, args };
            Expr::new(call, DType::INT64, extent.span)
        }
        ExprKind::Cast(inner) if inner.dtype.is_integer() => widened(inner),
        _ if extent.dtype.is_integer() => extent.clone().cast(DType::INT64),
        _ => extent.clone(),
    }
}
