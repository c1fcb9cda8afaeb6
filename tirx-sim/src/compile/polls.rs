//! Loops that may wait for another thread: what may an iteration leave to the next one?
//!
//! The search through all orders asks whether an iteration has changed anything. Names that the loop binds are of one
//! iteration. A variable is, too, if each iteration writes it first: nothing reads it before, no way out of the loop
//! comes before. The other variables that occur in the loop may carry a value.

use rustc_hash::{FxHashMap, FxHashSet};
use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::{Direction, InstructionCall};
use tirx_ir::{Buffer, DType, Expr, ExprKind, Stmt, StmtKind, Var, Visitor, at};
use tirx_sim_machine::bytecode::{AsyncInst, Inst, MbarrierWhat, PollLoop, Region};
use tirx_sim_machine::numeric::Kind;

use super::scan::has_break_or_continue;
use super::{Compiler, Home};

/// The variables that occur, with the type of their elements if it is known.
#[derive(Default)]
struct Mentioned(FxHashMap<Var, Option<DType>>);

impl Mentioned {
    fn buffer(&mut self, buffer: &Buffer) {
        if buffer.scope() == "local" {
            self.0.insert(buffer.data.clone(), Some(buffer.dtype.element()));
        }
    }
}

impl Visitor for Mentioned {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::BufferStore(store) = &stmt.kind {
            self.buffer(&store.buffer);
        }
        self.walk_stmt(stmt);
    }

    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::BufferLoad { buffer, .. } => self.buffer(buffer),
            ExprKind::Var(var) => {
                self.0.entry(var.clone()).or_default();
            }
            _ => {}
        }
        self.walk_expr(expr);
    }
}

/// The variables of which an iteration may leave a value to the next one.
fn carried(condition: &Expr, body: &Stmt) -> FxHashMap<Var, Option<DType>> {
    let mut mentioned = Mentioned::default();
    mentioned.visit_expr(condition);
    let mut written = FxHashSet::default();
    if condition.as_int().is_some_and(|value| value != 0) {
        written_first(body, &mut mentioned, &mut written);
    }
    mentioned.visit_stmt(body);
    mentioned.0.retain(|var, _| !written.contains(var));
    mentioned.0
}

/// Adds to `written` the variables that a statement writes as a whole before anything reads them; `mentioned` has what occurred before. Returns
/// false if the statement may leave the body of the loop (`break`, `continue`): what follows is not always executed.
fn written_first(stmt: &Stmt, mentioned: &mut Mentioned, written: &mut FxHashSet<Var>) -> bool {
    match &stmt.kind {
        StmtKind::Seq(all) => return all.iter().all(|one| written_first(one, mentioned, written)),
        StmtKind::BufferStore(store) if store.predicate.is_none() => {
            // The value is read before the store writes.
            mentioned.visit_expr(&store.value);
            if is_local_scalar(&store.buffer) && !mentioned.0.contains_key(&store.buffer.data) {
                written.insert(store.buffer.data.clone());
            }
        }
        StmtKind::Evaluate(call) => {
            for register in written_registers(call) {
                let before = mentioned.0.contains_key(&register.data);
                if is_local_scalar(register) && !before && !may_also_read(call, &register.data) {
                    written.insert(register.data.clone());
                }
            }
        }
        _ => {}
    }
    mentioned.visit_stmt(stmt);
    !has_break_or_continue(stmt)
}

fn is_local_scalar(buffer: &Buffer) -> bool {
    buffer.scope() == "local" && buffer.const_size() == Some(1)
}

/// The variables that an instruction by its mnemonic writes.
fn written_registers(call: &Expr) -> Vec<&Buffer> {
    let Some(args) = call.as_call(Op::PtxInstruction) else {
        return Vec::new();
    };
    let Ok(call) = InstructionCall::read(args) else {
        return Vec::new();
    };
    if call.predicate.is_some() {
        return Vec::new();
    }
    let written = call
        .operands
        .iter()
        .filter(|(operand, _)| operand.direction == Direction::Write);
    let places = written.flat_map(|(_, registers)| registers.iter());
    places.filter_map(|place| place_of(place)).collect()
}

fn place_of(place: &Expr) -> Option<&Buffer> {
    let args = place.as_call(Op::AddressOf)?;
    match &args[at!(AddressOf.obj)].kind {
        ExprKind::BufferLoad { buffer, .. } => Some(buffer),
        _ => None,
    }
}

/// Whether a call names a variable more than once: it may read it, too.
fn may_also_read(call: &Expr, var: &Var) -> bool {
    struct Count<'a>(&'a Var, usize);
    impl Visitor for Count<'_> {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::BufferLoad { buffer, .. } = &expr.kind {
                self.1 += usize::from(buffer.data == *self.0);
            }
            self.walk_expr(expr);
        }
    }
    let mut count = Count(var, 0);
    count.visit_expr(call);
    count.1 > 1
}

impl Compiler<'_> {
    /// Notes what an iteration of a loop may leave to the next one, before the loop is compiled. Gives the loop's number.
    pub(super) fn begin_poll(&mut self, condition: &Expr, body: &Stmt) -> u16 {
        let mut poll = PollLoop {
            quiet: true,
            ..PollLoop::default()
        };
        for (var, dtype) in carried(condition, body) {
            match self.homes.get(&var) {
                Some(Home::Registers { elements, .. }) => match dtype.and_then(Kind::from_dtype) {
                    Some(kind) if kind.wide() => poll.v64.extend(elements),
                    Some(_) => poll.v32.extend(elements),
                    None => poll.quiet = false,
                },
                Some(Home::Local(array)) => poll.locals.push(*array),
                _ => {}
            }
        }
        poll.v32.sort_unstable();
        poll.v64.sort_unstable();
        poll.locals.sort_unstable();
        self.code.polls.push(poll);
        (self.code.polls.len() - 1) as u16
    }

    /// The instructions of a loop, from `head` on, are complete.
    pub(super) fn end_poll(&mut self, id: u16, head: usize) {
        let quiet = self.code.insts[head..].iter().all(|inst| self.is_quiet(inst));
        self.code.polls[id as usize].quiet &= quiet;
    }

    /// Whether an instruction only reads, computes, or acts in a way that a search through all orders observes.
    fn is_quiet(&self, inst: &Inst) -> bool {
        let is_local = |access: u16| matches!(self.code.accesses[access as usize].region, Region::Local(_));
        match inst {
            Inst::Store { access, .. } | Inst::StoreWide { access, .. } | Inst::StoreRow { access, .. } => {
                is_local(*access)
            }
            Inst::Async { id } => matches!(
                &self.code.asynchronous[*id as usize],
                AsyncInst::Mbarrier(inst) if inst.what == MbarrierWhat::Test
            ),
            Inst::Shuffle { .. }
            | Inst::WarpSync
            | Inst::Converged
            | Inst::CtaSync
            | Inst::CtaSyncReduce(_)
            | Inst::NamedSync { .. }
            | Inst::NamedSyncReduce { .. }
            | Inst::NamedArrive { .. }
            | Inst::ClusterSync
            | Inst::ClusterArrive { .. }
            | Inst::ClusterWait { .. }
            | Inst::GridSync
            | Inst::FenceProxy { .. }
            | Inst::FenceAliases
            | Inst::PriorGrid
            | Inst::Clock { .. }
            | Inst::Print { .. }
            | Inst::CallStandIn { .. }
            | Inst::Tensor { .. } => false,
            _ => true,
        }
    }
}
