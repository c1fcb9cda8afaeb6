//! What must be known of a function before it is compiled: which local arrays can live in registers, which of
//! their reads may come before a write, and the extents of the hardware indices.

use rustc_hash::{FxHashMap, FxHashSet};
use tirx_ir::intrin::{Effect, Op};
use tirx_ir::{
    Assert, Attr, AttrNode, BinOp, Buffer, BufferStore, Expr, ExprKind, ForLoop, PrimFunc, Stmt, StmtKind,
    Var, Visitor, at, uses_var,
};

use tirx_sim_machine::bytecode::Axis;
use tirx_sim_machine::numeric::Kind;

/// Largest array, in elements, that is held in registers.
const MAX_ELEMENTS: i128 = 256;

/// Most iterations of loops over constants that the definite-assignment analysis follows one by one.
const MAX_TURNS: i128 = 1024;

/// Values of loop variables.
type Values = FxHashMap<Var, i128>;

/// The elements that an access with constant indices touches: first and count.
pub(super) fn constant_elements(buffer: &Buffer, indices: &[Expr]) -> Option<(usize, usize)> {
    elements_at(buffer, indices, &Values::default())
}

/// The same where some variables have known values.
fn elements_at(buffer: &Buffer, indices: &[Expr], values: &Values) -> Option<(usize, usize)> {
    let lanes = buffer.dtype.lanes as usize;
    let (first, count) = match indices {
        [] => (0, 1),
        [index] => match &index.kind {
            ExprKind::Ramp { base, stride, lanes } if stride.is_int(1) => {
                (usize::try_from(known(base, values)?).ok()?, *lanes as usize)
            }
            _ => (usize::try_from(known(index, values)?).ok()?, 1),
        },
        _ => return None,
    };
    Some((first.checked_mul(lanes)?, count * lanes))
}

/// The value of an index expression.
fn known(e: &Expr, values: &Values) -> Option<i128> {
    match &e.kind {
        ExprKind::Int(v) => Some(*v),
        ExprKind::Var(v) => values.get(v).copied(),
        ExprKind::Binary(op, a, b) if !values.is_empty() => {
            let (a, b) = (known(a, values)?, known(b, values)?);
            match op {
                BinOp::Add => a.checked_add(b),
                BinOp::Sub => a.checked_sub(b),
                BinOp::Mul => a.checked_mul(b),
                BinOp::FloorDiv if b > 0 => Some(a.div_euclid(b)),
                BinOp::FloorMod if b > 0 => Some(a.rem_euclid(b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How many iterations a nest of loops over constants makes, if it contains only stores.
fn simple_turns(extent: &Expr, body: &Stmt) -> Option<i128> {
    let inner = match &body.kind {
        StmtKind::BufferStore(BufferStore { predicate: None, .. }) => 1,
        StmtKind::For(ForLoop {
            extent,
            body,
            step: None,
            ..
        }) => simple_turns(extent, body)?,
        StmtKind::Seq(stmts) => stmts
            .iter()
            .map(|s| match &s.kind {
                StmtKind::BufferStore(BufferStore { predicate: None, .. }) => Some(1),
                StmtKind::For(ForLoop {
                    extent,
                    body,
                    step: None,
                    ..
                }) => simple_turns(extent, body),
                _ => None,
            })
            .sum::<Option<i128>>()?,
        _ => return None,
    };
    let turns = extent.as_int()?.max(0).checked_mul(inner)?;
    (turns <= MAX_TURNS).then_some(turns)
}

#[derive(Default)]
pub(super) struct Scan {
    /// Data pointers of local arrays that live in registers.
    promoted: FxHashMap<Var, usize>,
    /// Of these, those with an index that is not constant but uniform over the lanes.
    indexed: FxHashSet<Var>,
    /// Of these, those with a read that may precede every write.
    checked: FxHashSet<Var>,
    /// Variables computed from a thread's index.
    of_threads: FxHashSet<Var>,
    /// Names of values that nothing uses and whose computation may fault, as that of a division that elimination of common
    /// subexpressions has named outside of the branch that needs it. CUDA text leaves them out.
    unused: FxHashSet<Var>,
    /// Values of loop variables while the definite-assignment analysis follows a loop iteration by iteration.
    values: Values,
    extents: FxHashMap<Axis, Option<i128>>,
}

impl Scan {
    pub(super) fn from_function(func: &PrimFunc) -> Scan {
        let mut uses = Uses::default();
        uses.uniform
            .extend(func.params.iter().filter(|p| !p.dtype().is_handle()).cloned());
        uses.visit_stmt(&func.body);
        let mut scan = Scan {
            extents: uses.extents,
            ..Scan::default()
        };
        for (var, (elements, kind)) in uses.arrays {
            if kind.is_some() && !uses.memory.contains(&var) {
                scan.promoted.insert(var, elements);
            }
        }
        scan.indexed = uses.indexed;
        scan.of_threads = uses.of_threads;
        scan.unused = { uses.quotients }
            .into_iter()
            .filter(|var| !uses.memory.contains(var) && !uses_var(&func.body, |used| used == var))
            .collect();
        let mut written = FxHashSet::default();
        scan.writes(&func.body, &mut written);
        scan
    }

    /// Whether a name is for nothing, and its value must not be computed.
    pub(super) fn unused(&self, var: &Var) -> bool {
        self.unused.contains(var)
    }

    /// The number of elements, if the array lives in registers.
    pub(super) fn promoted(&self, data: &Var) -> Option<usize> {
        self.promoted.get(data).copied()
    }

    /// Whether a condition may differ between the threads of a block.
    pub(super) fn parts_threads(&self, condition: &Expr) -> bool {
        follows(condition, &self.of_threads)
    }

    /// Whether an array in registers has an index that is not constant.
    pub(super) fn indexed(&self, data: &Var) -> bool {
        self.indexed.contains(data)
    }

    /// Whether reads of the array must be checked at run time.
    pub(super) fn checked(&self, data: &Var) -> bool {
        self.checked.contains(data)
    }

    /// The constant extent of a hardware index.
    pub(super) fn extent(&self, axis: Axis) -> Option<i128> {
        self.extents.get(&axis).copied().flatten()
    }

    /// The hardware indices the function uses.
    pub(super) fn has_axis(&self, axis: Axis) -> bool {
        self.extents.contains_key(&axis)
    }

    /// All of them.
    pub(super) fn axes(&self) -> Vec<Axis> {
        self.extents.keys().copied().collect()
    }

    /// Definite assignment: `written` holds the elements that every path to this point has written.
    fn writes(&mut self, stmt: &Stmt, written: &mut FxHashSet<(Var, usize)>) {
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().for_each(|s| self.writes(s, written)),
            StmtKind::Attr(Attr { value, body, .. }) => {
                self.reads(value, written);
                self.writes(body, written);
            }
            StmtKind::AllocBuffer(buffer, _) => {
                if self.promoted.contains_key(&buffer.data) {
                    written.retain(|(var, _)| *var != buffer.data);
                }
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.reads(value, written);
                indices
                    .iter()
                    .chain(predicate)
                    .for_each(|e| self.reads(e, written));
                if predicate.is_none()
                    && self.promoted.contains_key(&buffer.data)
                    && let Some((first, count)) = constant_elements(buffer, indices)
                {
                    written.extend((first..first + count).map(|i| (buffer.data.clone(), i)));
                }
            }
            StmtKind::If(condition, then, otherwise) => {
                self.reads(condition, written);
                let mut other = written.clone();
                self.writes(then, written);
                if let Some(otherwise) = otherwise {
                    self.writes(otherwise, &mut other);
                }
                written.retain(|element| other.contains(element));
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                step,
                body,
                ..
            }) => {
                self.reads(min, written);
                self.reads(extent, written);
                step.iter().for_each(|e| self.reads(e, written));
                let first = known(min, &self.values);
                if let (Some(first), Some(_), Some(count), None) =
                    (first, simple_turns(extent, body), extent.as_int(), step)
                {
                    for value in first..first + count {
                        self.values.insert(var.clone(), value);
                        self.writes(body, written);
                    }
                    self.values.remove(var);
                    return;
                }
                let mut inside = written.clone();
                self.writes(body, &mut inside);
                let surely = extent.as_int().is_some_and(|n| n > 0);
                if surely && !jumps_out(body) {
                    *written = inside;
                }
            }
            StmtKind::While(condition, body) => {
                self.reads(condition, written);
                self.writes(body, &mut written.clone());
            }
            StmtKind::Bind(_, value) | StmtKind::Evaluate(value) => self.reads(value, written),
            StmtKind::Assert(Assert { condition, .. }) => self.reads(condition, written),
            StmtKind::DeclBuffer(_) | StmtKind::ScopeId(_) | StmtKind::Tile(_) => {}
        }
    }

    fn reads(&mut self, expr: &Expr, written: &FxHashSet<(Var, usize)>) {
        if let ExprKind::BufferLoad { buffer, indices, .. } = &expr.kind
            && self.promoted.contains_key(&buffer.data)
        {
            let known = elements_at(buffer, indices, &self.values).is_some_and(|(first, count)| {
                (first..first + count).all(|i| written.contains(&(buffer.data.clone(), i)))
            });
            if !known {
                self.checked.insert(buffer.data.clone());
            }
        }
        for operand in expr.operands() {
            self.reads(operand, written);
        }
    }
}

/// Whether a loop body may leave an iteration early.
fn jumps_out(body: &Stmt) -> bool {
    contains_call(body, |op| {
        matches!(op, Op::BreakLoop | Op::ContinueLoop | Op::ThreadReturn | Op::Ret)
    })
}

/// Whether the loop body itself (inner loops aside) holds `break` or `continue`.
pub(super) fn has_break_or_continue(body: &Stmt) -> bool {
    match &body.kind {
        StmtKind::Seq(stmts) => stmts.iter().any(has_break_or_continue),
        StmtKind::If(_, then, otherwise) => {
            has_break_or_continue(then) || otherwise.as_ref().is_some_and(has_break_or_continue)
        }
        StmtKind::Attr(Attr { body, .. }) => has_break_or_continue(body),
        StmtKind::Evaluate(e) => is_jump(e),
        _ => false,
    }
}

fn is_jump(e: &Expr) -> bool {
    matches!(
        &e.kind,
        ExprKind::Call {
            op: Op::BreakLoop | Op::ContinueLoop,
            ..
        }
    )
}

/// Whether a branch does nothing but leave the loop.
pub(super) fn is_break(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Evaluate(e) if e.as_call(Op::BreakLoop).is_some())
}

/// Whether `stmt` holds a call of an operator that `pred` accepts.
pub(super) fn contains_call(stmt: &Stmt, pred: impl Fn(Op) -> bool) -> bool {
    struct Calls<F>(F, bool);
    impl<F: Fn(Op) -> bool> Visitor for Calls<F> {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::Call { op, .. } = &expr.kind {
                self.1 |= (self.0)(*op);
            }
            self.walk_expr(expr);
        }
    }
    let mut calls = Calls(pred, false);
    calls.visit_stmt(stmt);
    calls.1
}

/// Whether a loop may wait for another thread: it reads memory that others can write, or calls out.
pub(super) fn may_wait(condition: &Expr, body: &Stmt) -> bool {
    struct Waits(bool);
    impl Visitor for Waits {
        fn visit_expr(&mut self, expr: &Expr) {
            self.0 |= match &expr.kind {
                ExprKind::BufferLoad { buffer, .. } => buffer.scope() != "local",
                // `mbarrier.test_wait` reads an mbarrier.
                ExprKind::Call { op, .. } => op.traits().reads() || op.info().family == "mbarrier",
                _ => false,
            };
            self.walk_expr(expr);
        }
    }
    let mut waits = Waits(false);
    waits.visit_expr(condition);
    waits.visit_stmt(body);
    waits.0
}

/// Whether evaluating needs no memory and cannot fault, so that it may run for lanes that do not need it.
pub(super) fn is_harmless(expr: &Expr) -> bool {
    let itself = match &expr.kind {
        ExprKind::BufferLoad { buffer, indices, .. } => {
            buffer.scope() == "local" && constant_elements(buffer, indices).is_some()
        }
        ExprKind::Call { op, .. } => match op.effect() {
            Effect::Annotation => true,
            effect => effect == Effect::Pure && op.traits().elementwise,
        },
        ExprKind::Binary(BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod, _, b) => {
            expr.dtype.is_floating() || b.as_int().is_some_and(|v| v != 0)
        }
        _ => true,
    };
    itself && expr.operands().into_iter().all(is_harmless)
}

/// Whether a value is computed from constants and names alone.
fn is_computed(expr: &Expr) -> bool {
    let itself = match &expr.kind {
        ExprKind::BufferLoad { .. } => false,
        ExprKind::Call { op, .. } => op.effect() == Effect::Pure && op.traits().elementwise,
        _ => true,
    };
    itself && expr.operands().into_iter().all(is_computed)
}

#[derive(Default)]
struct Uses {
    /// Local arrays: elements and kind.
    arrays: FxHashMap<Var, (usize, Option<Kind>)>,
    /// Those that need an address.
    memory: FxHashSet<Var>,
    /// Those with an index that is not constant but uniform over the lanes.
    indexed: FxHashSet<Var>,
    /// Uniform variables.
    uniform: FxHashSet<Var>,
    /// Variables computed from a thread's index.
    of_threads: FxHashSet<Var>,
    /// Names of values that read no memory and may fault.
    quotients: Vec<Var>,
    extents: FxHashMap<Axis, Option<i128>>,
}

impl Uses {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], predicate: &Option<Expr>) {
        if buffer.scope() != "local" {
            return;
        }
        let inside = constant_elements(buffer, indices)
            .zip(self.arrays.get(&buffer.data))
            .is_some_and(|((first, count), (elements, kind))| {
                first + count <= *elements && *kind == Kind::from_dtype(buffer.dtype.element())
            });
        if inside && predicate.is_none() {
            return;
        }
        let alike = buffer.dtype.is_scalar()
            && self
                .arrays
                .get(&buffer.data)
                .is_some_and(|(_, kind)| *kind == Kind::from_dtype(buffer.dtype));
        let is_constant = constant_elements(buffer, indices).is_some();
        match indices {
            [index] if alike && !is_constant && predicate.is_none() && self.is_uniform(index) => {
                self.indexed.insert(buffer.data.clone());
            }
            _ => {
                self.memory.insert(buffer.data.clone());
            }
        }
    }

    /// Whether an index is the same for all lanes: made of constants and uniform variables.
    fn is_uniform(&self, e: &Expr) -> bool {
        e.dtype.is_scalar()
            && match &e.kind {
                ExprKind::Int(_) => true,
                ExprKind::Var(v) => self.uniform.contains(v),
                ExprKind::Binary(_, a, b) => self.is_uniform(a) && self.is_uniform(b),
                ExprKind::Cast(a) => self.is_uniform(a),
                _ => false,
            }
    }
}

/// Whether an expression contains one of the variables, or depends on the thread's index.
fn follows(e: &Expr, of_threads: &FxHashSet<Var>) -> bool {
    struct Follows<'a>(&'a FxHashSet<Var>, bool);
    impl Visitor for Follows<'_> {
        fn visit_expr(&mut self, e: &Expr) {
            self.1 |= match &e.kind {
                ExprKind::Var(v) => self.0.contains(v),
                ExprKind::Call { op, .. } => op.traits().tells_threads_apart,
                _ => false,
            };
            self.walk_expr(e);
        }
    }
    let mut follows = Follows(of_threads, false);
    follows.visit_expr(e);
    follows.1
}

impl Visitor for Uses {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            // A data pointer used as a value: the array may be reached through it.
            ExprKind::Var(v) => {
                self.memory.insert(v.clone());
            }
            ExprKind::Call {
                op: Op::AddressOf | Op::BufferOffset,
                args,
            } => {
                // Of both, the only argument.
                if let [place] = &args[..]
                    && let ExprKind::BufferLoad { buffer, .. } = &place.kind
                {
                    self.memory.insert(buffer.data.clone());
                }
            }
            // An asynchronous product reads its registers later.
            ExprKind::Call {
                op: Op::PtxInstruction,
                args,
            } if args
                .get(at!(PtxInstruction.mnemonic))
                .and_then(Expr::as_str)
                .is_some_and(|name| name.contains("wgmma.mma_async")) =>
            {
                for arg in args {
                    if let ExprKind::BufferLoad { buffer, .. } = &arg.kind {
                        self.memory.insert(buffer.data.clone());
                    }
                }
            }
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => self.access(buffer, indices, predicate),
            _ => {}
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::Bind(var, value) = &stmt.kind
            && !is_harmless(value)
            && is_computed(value)
        {
            self.quotients.push(var.clone());
        }
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, _) if buffer.scope() == "local" => {
                let lanes = buffer.dtype.lanes as i128;
                let elements = buffer.const_size().map_or(i128::MAX, |n| n.saturating_mul(lanes));
                let kind = Kind::from_dtype(buffer.dtype.element());
                if elements > MAX_ELEMENTS {
                    self.memory.insert(buffer.data.clone());
                }
                let elements = usize::try_from(elements).unwrap_or(usize::MAX);
                self.arrays.insert(buffer.data.clone(), (elements, kind));
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                predicate,
                ..
            }) => self.access(buffer, indices, predicate),
            StmtKind::Bind(var, value) if self.is_uniform(value) => {
                self.uniform.insert(var.clone());
            }
            StmtKind::Bind(var, value) if follows(value, &self.of_threads) => {
                self.of_threads.insert(var.clone());
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                step,
                ..
            }) if self.is_uniform(min)
                && self.is_uniform(extent)
                && step.as_ref().is_none_or(|s| self.is_uniform(s)) =>
            {
                self.uniform.insert(var.clone());
            }
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iv),
                value,
                ..
            }) => {
                if let Some(axis) = Axis::from_tag(&iv.thread_tag) {
                    self.extents.insert(axis, value.as_int());
                    if matches!(axis, Axis::Thread(_)) {
                        self.of_threads.insert(iv.var.clone());
                    } else {
                        self.uniform.insert(iv.var.clone());
                    }
                }
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}
