//! The alignment that each tensor's address must have.
//!
//! A kernel that loads four floats at once faults on an address that is not a multiple of 16. The host can see the
//! data pointer alone, so this is the widest access through a parameter in the device code: an element, the
//! lanes of a contiguous vector access, what an instruction moves at once (`cp.async`, bulk copies, `ld` and `st` of
//! vectors, which tile copies become); and what the program asks for with `align=`. A kernel that looks at an address as
//! a number may choose its accesses by it, so they ask for nothing.

use rustc_hash::FxHashMap;

use crate::intrin::Op;
use crate::ir::abi;
use crate::ir::at;
use crate::ir::{Buffer, DEFAULT_ALIGN, Expr, IRModule, PrimFunc, Var, Visitor};

/// The widest access through each parameter of each device function, in bytes.
pub(super) type Widths = FxHashMap<String, Vec<u32>>;

/// Looks at every device function.
pub(super) fn access_widths(module: &IRModule) -> Widths {
    let device = |f: &PrimFunc| f.attr("calling_conv").and_then(|c| c.as_int()) == Some(2);
    module
        .functions
        .iter()
        .filter(|(_, f)| device(f))
        .map(|(name, func)| {
            let aligned = |uses: abi::Uses| if uses.examined { 1 } else { uses.align };
            let widths = abi::param_uses(module, func).into_iter().map(aligned);
            (name.to_string(), widths.collect())
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
    // The largest power of two that divides the size; no access is wider than 32 bytes.
    1 << buffer.dtype.bytes().max(1).trailing_zeros().min(5)
}

/// Calls of kernels: their arguments are the parameters' data pointers.
struct Calls<'a> {
    widths: &'a Widths,
    required: FxHashMap<Var, u32>,
}

impl Visitor for Calls<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        if let Some(args) = expr.as_call(Op::TvmCallPacked)
            && let Some(name) = args[at!(TvmCallPacked.func_name)].as_str()
            && let Some(widths) = self.widths.get(name)
        {
            for (arg, width) in args[at!(TvmCallPacked.args)..].iter().zip(widths) {
                if let Some(var) = arg.as_var() {
                    let required = self.required.entry(var.clone()).or_insert(1);
                    *required = (*required).max(*width);
                }
            }
        }
        self.walk_expr(expr);
    }
}
