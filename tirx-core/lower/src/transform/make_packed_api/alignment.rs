//! The alignment that each tensor's address must have.
//!
//! A kernel that loads four floats at once faults on an address that is not a multiple of 16. The host can see the
//! data pointer alone, so this is the widest access through a parameter in the device code: an element, or the
//! lanes of a contiguous vector access; and what the program asks for with `align=`.

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::{
    Buffer, BufferStore, DEFAULT_ALIGN, Expr, ExprKind, IRModule, PrimFunc, Stmt, StmtKind, Var, Visitor,
};

/// The widest access through each parameter of each device function, in bytes.
pub(super) type Widths = FxHashMap<String, Vec<u32>>;

/// The widest vector access of the machine, in bytes.
const WIDEST: u32 = 32;

/// Looks at every device function.
pub(super) fn access_widths(module: &IRModule) -> Widths {
    let device = |f: &PrimFunc| f.attr("calling_conv").and_then(|c| c.as_int()) == Some(2);
    module
        .functions
        .iter()
        .filter(|(_, f)| device(f))
        .map(|(name, func)| {
            let mut accesses = Accesses::default();
            accesses.visit_stmt(&func.body);
            let width = |p: &Var| accesses.widest.get(p).copied().unwrap_or(1);
            (name.to_string(), func.params.iter().map(width).collect())
        })
        .collect()
}

/// The required alignment of each tensor parameter's data pointer, in bytes.
pub(super) fn of_parameters(func: &PrimFunc, widths: &Widths) -> FxHashMap<Var, u32> {
    let mut calls = Calls {
        widths,
        required: FxHashMap::default(),
    };
    calls.visit_stmt(&func.body);
    for (_, buffer) in &func.buffer_map {
        let declared = if buffer.align == DEFAULT_ALIGN {
            1
        } else {
            buffer.align
        };
        let required = calls.required.entry(buffer.data.clone()).or_insert(1);
        *required = (*required).max(element_width(buffer)).max(declared);
    }
    calls.required
}

fn element_width(buffer: &Buffer) -> u32 {
    power_of_two(buffer.dtype.bytes())
}

/// The largest power of two that divides a size: three floats are read one by one.
fn power_of_two(bytes: usize) -> u32 {
    match bytes {
        0 => 1,
        bytes => (1 << bytes.trailing_zeros()).min(WIDEST),
    }
}

/// Calls of kernels: their arguments are the parameters' data pointers.
struct Calls<'a> {
    widths: &'a Widths,
    required: FxHashMap<Var, u32>,
}

impl Visitor for Calls<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let Some([name, args @ ..]) = expr.as_call(Op::TvmCallPacked)
            && let Some(widths) = name.as_str().and_then(|name| self.widths.get(name))
        {
            for (arg, width) in args.iter().zip(widths) {
                if let Some(var) = arg.as_var() {
                    let required = self.required.entry(var.clone()).or_insert(1);
                    *required = (*required).max(*width);
                }
            }
        }
        self.walk_expr(expr);
    }
}

/// The widest access through each pointer.
#[derive(Default)]
struct Accesses {
    widest: FxHashMap<Var, u32>,
}

impl Accesses {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) {
        let contiguous = match indices.last().map(|i| &i.kind) {
            Some(ExprKind::Ramp { stride, lanes, .. }) if stride.is_int(1) => *lanes,
            _ => 1,
        };
        let width = power_of_two(buffer.dtype.bytes() * contiguous as usize);
        let widest = self.widest.entry(buffer.data.clone()).or_insert(1);
        *widest = (*widest).max(width);
    }
}

impl Visitor for Accesses {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::BufferLoad { buffer, indices, .. } = &expr.kind {
            self.access(buffer, indices);
        }
        self.walk_expr(expr);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::BufferStore(BufferStore { buffer, indices, .. }) = &stmt.kind {
            self.access(buffer, indices);
        }
        self.walk_stmt(stmt);
    }
}
