//! What does a device function do with the memory that its pointer parameters point to?
//!
//! Signatures of launchers follow from it: a tensor that is only read is a shared reference. Loads and stores say it
//! themselves; for an operation that takes pointers its row says which arguments it reads and which it writes
//! ([`Row::access`](crate::intrin::Row::access)). A pointer that goes where it cannot be followed, into an integer, into
//! memory or to a function whose text is unknown, may be read and written.

use rustc_hash::FxHashMap;

use crate::at;
use crate::intrin::row::Access;
use crate::intrin::{Effect, Op, Operands};
use crate::ir::{Buffer, BufferStore, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, Var, Visitor};

/// The widest access of the machine, in bytes.
const WIDEST: u32 = 32;

/// What is done with the memory behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// It may be read.
    pub read: bool,
    /// It may be written.
    pub written: bool,
    /// The alignment that the widest access needs, in bytes.
    pub align: u32,
    /// The kernel looks at the address as a number. It may choose its accesses by that, so that they need not all be
    /// possible at every address.
    pub examined: bool,
}

impl Default for Uses {
    fn default() -> Uses {
        Uses::NONE
    }
}

impl Uses {
    /// Nothing is done with the memory: the pointer is moved or compared.
    const NONE: Uses = Uses {
        read: false,
        written: false,
        align: 1,
        examined: false,
    };
    const READ: Uses = Uses {
        read: true,
        ..Uses::NONE
    };
    const WRITTEN: Uses = Uses {
        written: true,
        ..Uses::NONE
    };
    /// Anything may be done with it.
    const ANY: Uses = Uses {
        read: true,
        ..Uses::WRITTEN
    };

    fn and(self, other: Uses) -> Uses {
        Uses {
            read: self.read || other.read,
            written: self.written || other.written,
            align: self.align.max(other.align),
            examined: self.examined || other.examined,
        }
    }

    fn aligned(self, align: u32) -> Uses {
        Uses { align, ..self }
    }

    /// The same at the address itself, of what is done at a place `offset` bytes behind it.
    fn behind(self, offset: u32) -> Uses {
        self.aligned(self.align.min(offset))
    }
}

/// The largest power of two that divides a size: three floats are read one by one.
fn power_of_two(bytes: i128) -> u32 {
    match bytes {
        0 => WIDEST,
        bytes => (1 << bytes.trailing_zeros().min(5)).min(WIDEST),
    }
}

/// The alignment of the place of an element, of an aligned buffer. Where it depends on variables, the kernel's author
/// answers for them.
fn alignment_of_place(buffer: &Buffer, indices: &[Expr]) -> u32 {
    match indices {
        [index] => match index.as_int() {
            Some(i) => {
                power_of_two(i * (buffer.dtype.storage_bits() * usize::from(buffer.dtype.lanes)) as i128 / 8)
            }
            None => WIDEST,
        },
        _ => WIDEST,
    }
}

/// The bytes of one access: an element, or the lanes of a contiguous vector.
fn alignment_of_access(buffer: &Buffer, indices: &[Expr]) -> u32 {
    let contiguous = match indices.last().map(|i| &i.kind) {
        Some(ExprKind::Ramp { stride, lanes, .. }) if stride.is_int(1) => *lanes,
        _ => 1,
    };
    power_of_two((buffer.dtype.bytes() * usize::from(contiguous)).max(1) as i128)
}

impl From<Access> for Uses {
    fn from(access: Access) -> Uses {
        match access {
            Access::In => Uses::READ,
            Access::Out => Uses::WRITTEN,
            Access::InOut => Uses::ANY,
        }
    }
}

/// What a device function of `module` does with the memory behind each of its parameters. A tensor map stands for the tensor
/// that it describes.
pub fn param_uses(module: &IRModule, func: &PrimFunc) -> Vec<Uses> {
    uses_within(module, func, &[])
}

/// The same; `callers` are the functions on the way here, whose parameters are not known yet.
fn uses_within(module: &IRModule, func: &PrimFunc, callers: &[&str]) -> Vec<Uses> {
    let mut walk = Walk {
        module,
        callers,
        sources: FxHashMap::default(),
        uses: FxHashMap::default(),
    };
    walk.visit_stmt(&func.body);
    let uses = |p| walk.uses.get(p).copied().unwrap_or_default();
    func.params.iter().map(uses).collect()
}

struct Walk<'a> {
    module: &'a IRModule,
    callers: &'a [&'a str],
    /// Bound pointers, with the pointers that they were derived from, and the alignment of the distance between them.
    sources: FxHashMap<Var, FxHashMap<Var, u32>>,
    uses: FxHashMap<Var, Uses>,
}

/// Whether a value of this expression's dtype can hold a pointer.
fn holds_pointer(expr: &Expr) -> bool {
    let dtype = expr.dtype;
    dtype.is_handle() || dtype.is_integer() && dtype.bits >= 32
}

impl Walk<'_> {
    fn used(&mut self, pointer: &Var, uses: Uses) {
        if uses == Uses::NONE {
            return;
        }
        let mut note = |var: &Var, offset: u32| {
            let entry = self.uses.entry(var.clone()).or_default();
            *entry = entry.and(uses.behind(offset));
        };
        match self.sources.get(pointer) {
            Some(known) => known.iter().for_each(|(var, offset)| note(var, *offset)),
            None => note(pointer, WIDEST),
        }
    }

    /// Walks an expression whose value, where it is a pointer or made of one, is used as `uses` says.
    fn walk(&mut self, expr: &Expr, uses: Uses) {
        let uses = if holds_pointer(expr) {
            uses
        } else {
            Uses {
                examined: uses.examined,
                ..Uses::NONE
            }
        };
        match &expr.kind {
            ExprKind::Var(v) if v.dtype().is_handle() || v.ty().is_tensor_map() => self.used(v, uses),
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate,
            } => {
                let align = alignment_of_access(buffer, indices);
                self.used(&buffer.data, Uses::READ.aligned(align));
                indices.iter().chain(predicate).for_each(|e| self.value(e));
            }
            ExprKind::Call { op, args } => self.call(*op, args, expr, uses),
            ExprKind::Select(condition, a, b) => {
                self.value(condition);
                self.walk(a, uses);
                self.walk(b, uses);
            }
            ExprKind::Let(var, value, body) => {
                self.bind(var, value);
                self.walk(body, uses);
            }
            _ => expr.operands().for_each(|e| self.walk(e, uses)),
        }
    }

    /// Walks an expression whose value goes where nobody follows it.
    fn value(&mut self, expr: &Expr) {
        self.walk(expr, Uses::ANY);
    }

    fn bind(&mut self, var: &Var, value: &Expr) {
        if !var.dtype().is_handle() {
            return self.value(value);
        }
        self.walk(value, Uses::NONE);
        let mut found: FxHashMap<Var, u32> = FxHashMap::default();
        pointers(value, WIDEST, &mut |v, offset| {
            let mut add = |v: &Var, offset: u32| {
                let least = found.entry(v.clone()).or_insert(offset);
                *least = (*least).min(offset);
            };
            match self.sources.get(v) {
                Some(known) => known.iter().for_each(|(v, before)| add(v, offset.min(*before))),
                None => add(v, offset),
            }
        });
        self.sources.insert(var.clone(), found);
    }

    fn call(&mut self, op: Op, args: &[Expr], call: &Expr, uses: Uses) {
        match op {
            Op::AddressOf => match args.get(at!(AddressOf.obj)).map(|a| &a.kind) {
                Some(ExprKind::BufferLoad {
                    buffer,
                    indices,
                    predicate,
                }) => {
                    // The address of an element does not read the element; its indices are read.
                    self.used(&buffer.data, uses.behind(alignment_of_place(buffer, indices)));
                    indices.iter().chain(predicate).for_each(|e| self.value(e));
                }
                _ => args.iter().for_each(|a| self.walk(a, uses)),
            },
            Op::PtrByteOffset | Op::HandleAddByteOffset => {
                let moved = moved_by(args).map_or(WIDEST, power_of_two);
                args.iter().for_each(|a| self.walk(a, uses.behind(moved)));
            }
            Op::CallFunction => self.subroutine(args),
            _ => {
                let pure = op.effect() <= Effect::Pure;
                let row = op.row();
                let as_number = op == Op::Reinterpret && !call.dtype.is_handle();
                let Ok(operands) = Operands::read(row, args) else {
                    return args.iter().for_each(|a| self.value(a));
                };
                for (arg, values) in operands.each() {
                    let own = match row.access(arg) {
                        // A function without side effects may give the pointer back as a number.
                        Some(access) if pure && holds_pointer(call) => Uses::from(access).and(uses),
                        Some(access) => Uses::from(access),
                        // The value is made of the argument: it moves, retypes or computes with a pointer.
                        None if pure && holds_pointer(call) => uses,
                        None if pure => Uses::NONE,
                        None => Uses::ANY,
                    };
                    let own = Uses {
                        align: row
                            .alignment(arg, &operands)
                            .map_or(own.align, |a| a.max(own.align)),
                        examined: own.examined || as_number,
                        ..own
                    };
                    values.iter().for_each(|e| self.walk(e, own));
                }
            }
        }
    }

    /// A call of another function of the module, which does with its parameters what its text says.
    fn subroutine(&mut self, args: &[Expr]) {
        let Some(name) = args.get(at!(CallFunction.func_name)) else {
            return;
        };
        let (name, args) = (name.as_str().unwrap_or_default(), &args[at!(CallFunction.args)..]);
        let callee = self.module.functions.iter().find(|(n, _)| &**n == name);
        let uses = match callee {
            Some((_, callee)) if !self.callers.contains(&name) => {
                let callers: Vec<&str> = self.callers.iter().copied().chain([name]).collect();
                uses_within(self.module, callee, &callers)
            }
            _ => Vec::new(),
        };
        for (i, arg) in args.iter().enumerate() {
            self.walk(arg, uses.get(i).copied().unwrap_or(Uses::ANY));
        }
    }
}

impl Visitor for Walk<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        self.value(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::BufferStore(BufferStore { buffer, indices, .. }) => {
                let align = alignment_of_access(buffer, indices);
                self.used(&buffer.data, Uses::WRITTEN.aligned(align));
            }
            StmtKind::Bind(var, value) => return self.bind(var, value),
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// By how many bytes a call moves a pointer, if it is constant.
fn moved_by(args: &[Expr]) -> Option<i128> {
    args.get(at!(PtrByteOffset | HandleAddByteOffset.byte_offset))?
        .as_int()
}

/// The pointers that a pointer may be derived from, each with the alignment of the distance to it.
fn pointers(expr: &Expr, offset: u32, found: &mut impl FnMut(&Var, u32)) {
    match &expr.kind {
        ExprKind::Var(v) if v.dtype().is_handle() || v.ty().is_tensor_map() => found(v, offset),
        ExprKind::Call {
            op: Op::AddressOf,
            args,
        } => match args.get(at!(AddressOf.obj)).map(|a| &a.kind) {
            Some(ExprKind::BufferLoad { buffer, indices, .. }) => {
                found(&buffer.data, offset.min(alignment_of_place(buffer, indices)));
            }
            _ => args.iter().for_each(|a| pointers(a, offset, found)),
        },
        ExprKind::Call {
            op: Op::PtrByteOffset | Op::HandleAddByteOffset,
            args,
        } => {
            let moved = moved_by(args).map_or(WIDEST, power_of_two);
            if let Some(data) = args.get(at!(PtrByteOffset | HandleAddByteOffset.data)) {
                pointers(data, offset.min(moved), found);
            }
        }
        // A value read from memory is not a pointer into that memory.
        ExprKind::BufferLoad { .. } => {}
        _ => {
            for operand in expr.operands() {
                pointers(operand, offset, found);
            }
        }
    }
}
