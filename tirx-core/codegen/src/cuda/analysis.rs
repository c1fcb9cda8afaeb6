//! Facts about a function that must be known before its first line is written.

use crate::ir::abi::keys;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{defects, types};
use crate::intrin::row::{Engine, Synchronizes};
use crate::intrin::{Effect, Op};
use crate::ir::{
    Attr, AttrNode, BinOp, Buffer, BufferStore, DType, Expr, ExprKind, Stmt, StmtKind, Var, Visitor,
};

/// The uses of the memory behind a data pointer.
#[derive(Clone, Debug, Default)]
pub(super) struct PointerUse {
    /// Something is loaded through it.
    pub(super) read: bool,
    /// Something is stored through it.
    pub(super) written: bool,
    /// A stored value has a side effect, so that it is computed whether it is read or not.
    pub(super) kept: bool,
    /// The pointer itself is an operand, so that its address is known elsewhere.
    pub(super) escapes: bool,
    /// It is accessed by a constant zero index alone, as its own element type.
    pub(super) only_first: bool,
    /// Bytes of the widest access.
    pub(super) widest: usize,
    /// It is accessed with several element types.
    pub(super) retyped: bool,
    dtype: Option<DType>,
}

/// Facts about one function.
#[derive(Default)]
pub(super) struct Facts {
    /// How often each variable is read, as a value or as the data pointer of an access.
    pub(super) uses: FxHashMap<Var, u32>,
    /// Uses of data pointers.
    pub(super) pointers: FxHashMap<Var, PointerUse>,
    /// Whether some threads skip parts of it: there is a loop, a branch or a choice.
    pub(super) branches: bool,
    /// Whether there is a loop that runs.
    pub(super) loops: bool,
    /// `thread_extent` attributes in order: tag and extent.
    pub(super) threads: Vec<(Arc<str>, Expr)>,
    /// Second and third argument of `__launch_bounds__`.
    pub(super) min_blocks: Option<i128>,
    /// The argument of `__maxnreg__`.
    pub(super) max_registers: Option<i128>,
    pub(super) max_cluster: Option<i128>,
    /// A minimum or maximum of `int32` is taken.
    pub(super) extremes: bool,
    /// Two 16-bit integers are added, neither a constant.
    pub(super) adds_16_bits: bool,
    /// Whether the function waits for the previous kernel.
    pub(super) waits: bool,
    /// Whether the function synchronizes with other devices, by the scope `sys` or by NVSHMEM.
    pub(super) other_devices: bool,
    /// Whether bulk copies or tensor cores access its shared memory.
    pub(super) engines: bool,
    /// The registers that `wgmma` writes or reads, as data pointers.
    pub(super) wgmma_registers: FxHashSet<Var>,
}

impl Facts {
    /// Walks a body.
    pub(super) fn from_body(body: &Stmt) -> Facts {
        let mut facts = Facts::default();
        facts.visit_stmt(body);
        facts
    }

    /// The extent of a hardware index.
    pub(super) fn extent(&self, tag: &str) -> Option<&Expr> {
        self.threads.iter().find(|(t, _)| &**t == tag).map(|(_, e)| e)
    }

    /// Whether nothing is stored through a pointer, here or elsewhere.
    pub(super) fn is_constant(&self, pointer: &Var) -> bool {
        let use_ = self.pointers.get(pointer);
        use_.is_some_and(|u| !u.written && !u.escapes)
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr], dtype: DType) -> &mut PointerUse {
        *self.uses.entry(buffer.data.clone()).or_default() += 1;
        let use_ = self
            .pointers
            .entry(buffer.data.clone())
            .or_insert_with(|| PointerUse {
                only_first: true,
                ..PointerUse::default()
            });
        use_.only_first &= indices.iter().all(|i| i.is_int(0)) && dtype == buffer.dtype;
        use_.widest = use_.widest.max(dtype.bytes());
        use_.retyped |= use_.dtype.is_some_and(|d| d != buffer.dtype);
        use_.dtype.get_or_insert(buffer.dtype);
        use_
    }
}

/// Whether an operation orders memory for the scope `sys`, or is a wait of NVSHMEM.
fn synchronizes_devices(call: &Expr) -> bool {
    let ExprKind::Call { op, args } = &call.kind else {
        return false;
    };
    let to_system = || args.iter().any(|arg| arg.as_str() == Some("sys"));
    op.traits().synchronizes != Synchronizes::Nobody
        && (to_system() || op.name().starts_with("tirx.nvshmem."))
}

impl Visitor for Facts {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Call { op, .. } = &expr.kind {
            let engine = op.traits().engine;
            self.engines |= matches!(engine, Engine::BulkCopy | Engine::Wgmma | Engine::Tcgen05);
            self.other_devices |= synchronizes_devices(expr);
            if defects::is_wgmma(expr) {
                let mut registers = Registers(&mut self.wgmma_registers);
                registers.walk_expr(expr);
            }
        }
        match &expr.kind {
            ExprKind::Var(var) => {
                *self.uses.entry(var.clone()).or_default() += 1;
                if var.dtype().is_handle() {
                    self.pointers.entry(var.clone()).or_default().escapes = true;
                }
            }
            ExprKind::BufferLoad { buffer, indices, .. } => {
                self.access(buffer, indices, expr.dtype).read = true;
            }
            ExprKind::Select(..)
            | ExprKind::Binary(BinOp::And | BinOp::Or, ..)
            | ExprKind::Call {
                op: Op::IfThenElse, ..
            } => self.branches = true,
            ExprKind::Binary(BinOp::Min | BinOp::Max, ..) => {
                self.extremes |= expr.dtype.element() == DType::INT32;
            }
            ExprKind::Binary(BinOp::Add, a, b) => {
                let variable = a.as_int().is_none() && b.as_int().is_none();
                self.adds_16_bits |= variable && types::is_16_bit_integer(expr.dtype.element());
            }
            ExprKind::Call { op, .. }
                if op.traits().waits && op.traits().synchronizes == Synchronizes::Grids =>
            {
                self.waits = true
            }
            ExprKind::Call {
                op: Op::AddressOf,
                args,
            } => {
                for arg in args {
                    if let ExprKind::BufferLoad { buffer, .. } = &arg.kind {
                        self.pointers.entry(buffer.data.clone()).or_default().escapes = true;
                    }
                }
            }
            _ => {}
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                ..
            }) => {
                let kept = effect(value) > Effect::ReadState;
                let use_ = self.access(buffer, indices, value.dtype);
                use_.written = true;
                use_.kept |= kept;
            }
            StmtKind::If(..) => self.branches = true,
            StmtKind::For(_) | StmtKind::While(..) => (self.branches, self.loops) = (true, true),
            StmtKind::Attr(Attr { node, key, value, .. }) => match (&**key, node) {
                (keys::THREAD_EXTENT, AttrNode::IterVar(iv)) => {
                    self.threads.push((iv.thread_tag.clone(), value.clone()));
                }
                ("tirx.launch_bounds_min_blocks_per_sm", _) => self.min_blocks = value.as_int(),
                ("tirx.launch_bounds_max_blocks_per_cluster", _) => self.max_cluster = value.as_int(),
                (keys::MAX_REGISTERS, _) => self.max_registers = value.as_int(),
                _ => {}
            },
            _ => {}
        }
        self.walk_stmt(stmt);
    }

    // Shapes and strides of a declaration generate no code.
    fn visit_buffer_def(&mut self, _buffer: &Buffer) {}
}

/// Finds arrays in registers with elements of 32 bits.
struct Registers<'a>(&'a mut FxHashSet<Var>);

impl Visitor for Registers<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::BufferLoad { buffer, .. } = &expr.kind
            && buffer.scope() == "local"
            && buffer.dtype.is_scalar()
            && buffer.dtype.bits == 32
        {
            self.0.insert(buffer.data.clone());
        }
        self.walk_expr(expr);
    }
}

/// The combined effect of evaluating `e`.
pub(super) fn effect(e: &Expr) -> Effect {
    if e.is_pure() && !e.has_call() {
        return Effect::Pure;
    }
    let own = match &e.kind {
        ExprKind::Call { op, .. } => op.effect(),
        ExprKind::BufferLoad { .. } => Effect::ReadState,
        _ => Effect::Pure,
    };
    e.operands().map(effect).fold(own, Effect::max)
}
