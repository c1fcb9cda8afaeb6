//! LowerTVMBuiltin: packed calls of the host function take the form of TVM's C interface.
//!
//! A packed function takes an array of tagged values. `call_packed("f", a, b)` becomes stores into a stack that the
//! function allocates once, one element per argument and an empty one after the last, and the call over its range:
//!
//! ```text
//! stack_ffi_any = tvm_stack_alloca("tvm_ffi_any", 3)      the most that any call needs
//! tvm_struct_set(stack_ffi_any, 0, 13, 1)                 element 0 is an integer
//! tvm_struct_set(stack_ffi_any, 0, 14, 0)                 padding
//! tvm_struct_set(stack_ffi_any, 0, 15, Cast("int64", a))  its value
//! …
//! call_packed_lowered("f", stack_ffi_any, 0, 2)
//! ```
//!
//! Integers and truth values are passed as `int64`, floats as `float64`, a pointer as a pointer or, where it is null,
//! as none; strings as themselves. The attributes that name the device are removed.
//!
//! This form is for callers in C, with [`Options::finalize_host`](super::Options::finalize_host): launchers in Rust are
//! printed from the calls themselves, and device functions have none.
//!
//! **Cost.** One walk of the host functions.

use super::PassContext;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::{Field, arg_type, is_host};
use crate::ir::at;
use crate::ir::{Attr, DType, Expr, ExprKind, IRModule, Mutator, PrimFunc, Stmt, StmtKind, Var};
use crate::source::Span;

/// Lowers the host functions, where the host is to be finalized.
pub fn run(module: IRModule, context: &PassContext) -> Result<IRModule, Diagnostics> {
    if !context.finalize_host {
        return Ok(module);
    }
    Ok(module.map(|func| if is_host(&func) { lower(func) } else { func }))
}

fn lower(func: PrimFunc) -> PrimFunc {
    let mut pass = LowerTVMBuiltin {
        stack: Var::at("stack_ffi_any", DType::HANDLE, func.span),
        elements: 0,
    };
    let body = pass.stmt(&func.body);
    if pass.elements == 0 {
        return PrimFunc { body, ..func };
    }
    let room = vec![Expr::string("tvm_ffi_any"), Expr::int32(pass.elements)];
    let room = Expr::call(Op::TvmStackAlloca, DType::HANDLE, room);
    let body = Stmt::seq([Stmt::bind(&pass.stack, room, func.span), body]);
    PrimFunc { body, ..func }
}

struct LowerTVMBuiltin {
    stack: Var,
    /// The most elements that a call needs.
    elements: i32,
}

impl LowerTVMBuiltin {
    /// Stores `value` in a field of an element.
    fn set(&self, element: i32, field: Field, value: Expr, span: Span) -> Stmt {
        let set = Op::TvmStructSet
            .call()
            .set("arr", Expr::var(&self.stack))
            .set("index", element)
            .set("field", field.number())
            .set("value", value);
        set.at(span).stmt()
    }

    /// Stores an argument and its type.
    fn argument(&self, element: i32, arg: &Expr, into: &mut Vec<Stmt>) {
        let span = arg.span;
        let dtype = arg.dtype;
        let kind = |kind: i128| self.set(element, Field::ArgType, Expr::int32(kind as i32), span);
        let widened = |dtype: DType| match arg.dtype == dtype {
            true => arg.clone(),
            // Not folded: the value stays the constant that was written in the launch.
            false => Expr::new(ExprKind::Cast(arg.clone()), dtype, span),
        };
        let (what, value) = if arg.as_str().is_some() {
            (kind(arg_type::STRING), arg.clone())
        } else if dtype.is_handle() {
            let null = Expr::call(Op::IsNullptr, DType::BOOL, vec![arg.clone()]);
            let choice = Stmt::if_else(null, kind(arg_type::NONE), Some(kind(arg_type::POINTER)), span);
            (choice, arg.clone())
        } else if dtype.is_floating() {
            (kind(arg_type::FLOAT), widened(DType::FLOAT64))
        } else {
            (kind(arg_type::INT), widened(DType::INT64))
        };
        into.push(what);
        into.push(self.set(element, Field::Padding, Expr::int32(0), span));
        into.push(self.set(element, Field::ArgValue, value, span));
    }

    /// The stores and the call.
    fn call(&mut self, args: &[Expr], span: Span) -> Option<Stmt> {
        let (name, args) = (
            &args[at!(TvmCallPacked.func_name)],
            &args[at!(TvmCallPacked.args)..],
        );
        let mut statements = Vec::with_capacity(args.len() * 3 + 4);
        for (element, arg) in args.iter().enumerate() {
            self.argument(element as i32, arg, &mut statements);
        }
        let count = args.len() as i32;
        statements.push(self.set(count, Field::ArgType, Expr::int32(arg_type::NONE as i32), span));
        statements.push(self.set(count, Field::Padding, Expr::int32(0), span));
        statements.push(self.set(count, Field::ArgValue, Expr::int64(0), span));
        let call = Op::TvmCallPackedLowered
            .call()
            .set("func_name", name)
            .set("value_stack", Expr::var(&self.stack))
            .set("begin", 0)
            .set("end", count);
        statements.push(call.at(span).stmt());
        self.elements = self.elements.max(count + 1);
        Some(Stmt::seq(statements))
    }
}

impl Mutator for LowerTVMBuiltin {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Evaluate(call) => {
                let lowered = call
                    .as_call(Op::TvmCallPacked)
                    .and_then(|args| self.call(args, stmt.span));
                lowered.unwrap_or_else(|| stmt.clone())
            }
            StmtKind::Attr(Attr { key, body, .. }) if matches!(&**key, "device_id" | "device_type") => {
                self.stmt(body)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}
