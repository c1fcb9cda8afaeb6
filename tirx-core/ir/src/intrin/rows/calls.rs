//! Calls to functions outside the language, and operations of host functions: arguments in structures, launches,
//! errors.

use super::kinds::*;
use crate::intrin::operands::Operands;
use crate::intrin::printf::printed;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::{DType, Gpu};

/// The called function may read and write memory.
const FOREIGN: Traits = Traits::PLAIN.memory(Memory::ReadsAndWrites);

/// Checks that a text is the name of an architecture.
fn architecture(call: &Operands) -> Result<(), String> {
    let arch = call.text("arch");
    match arch.parse::<Gpu>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("\"{arch}\" is no architecture: write it as \"sm_90a\"")),
    }
}

rows! { $ calls {
    /// Calls a C function by name (argument 0, a string).
    CallExtern = Row::new("tirx.call_extern", "call_extern", special())
        .args(&[arg("func_name", NAME), rest("args", NODE)]).value(ResultRule::Given).effect(Opaque)
        .traits(FOREIGN.whole_vector());
    /// Calls a C function without side effects.
    CallPureExtern = Row::new("tirx.call_pure_extern", "call_pure_extern", special())
        .args(&[arg("func_name", NAME), rest("args", NODE)]).value(ResultRule::Given).effect(Pure)
        .traits(Traits::PLAIN.whole_vector()).sources(&["args"]);
    /// Calls another function of the module by name (argument 0): `Module.g(x)` in text.
    CallFunction = Row::new("tirx.call_function", "call_function", special())
        .args(&[arg("func_name", NAME), rest("args", NODE)]).value(ResultRule::Given).effect(Opaque)
        .traits(Traits::PLAIN.whole_vector());
    /// Calls a CUDA function whose text is given.
    CudaFuncCall = Row::new("tirx.cuda.func_call", "cuda.func_call", special())
        .args(&[arg("func_name", NAME), arg("source_code", NAME), rest("args", NODE)]).value(ResultRule::Given)
        .effect(Opaque).traits(FOREIGN.whole_vector());
    /// `printf(format, …)` from the device.
    CudaPrintf = Row::new("tirx.cuda.printf", "cuda.printf", special()).args(&[arg("fmt", NAME), rest("args", NODE)]).checked(printed);
    /// Whether the code is for this GPU: `"sm_90a"` is this GPU alone, `"sm_100f"` every GPU of its family,
    /// `"sm_90"` this GPU and all later GPUs. The compiler answers for each target and keeps one branch of an `if`.
    CudaTargetIs = Row::new("tirx.cuda.target_is", "cuda.target_is", lowered()).args(&[arg("arch", NAME)])
        .gives(DType::BOOL).effect(Pure).checked(architecture);
    /// Calls a packed function by name (argument 0): on the host, launches a device function.
    TvmCallPacked = Row::new("tirx.tvm_call_packed", "call_packed", host())
        .args(&[arg("func_name", NAME), rest("args", NODE)]).gives(DType::INT32).effect(Opaque);
    /// The same with its arguments on a stack (argument 1), from an element (2) to another (3).
    TvmCallPackedLowered = Row::new("tirx.tvm_call_packed_lowered", "call_packed_lowered", host())
        .args(&[arg("func_name", NAME), arg("value_stack", NODE), arg("begin", NODE), arg("end", NODE)])
        .gives(DType::INT32).effect(Opaque);
    /// Field `kind` (argument 2) of element `index` (1) of a structure (0).
    TvmStructGet = Row::new("tirx.tvm_struct_get", "tvm_struct_get", host())
        .args(&[arg("arr", NODE), arg("index", NODE), arg("field", NODE)]).value(ResultRule::GivenLast)
        .effect(ReadState);
    /// Sets a field of a structure.
    TvmStructSet = Row::new("tirx.tvm_struct_set", "tvm_struct_set", host())
        .args(&[arg("arr", NODE), arg("index", NODE), arg("field", NODE), arg("value", NODE)]).gives(DType::INT32);
    /// Allocates on the stack.
    TvmStackAlloca = Row::new("tirx.tvm_stack_alloca", "tvm_stack_alloca", host())
        .args(&[arg("dtype", NODE), arg("num", NODE)]).gives(DType::HANDLE);
    /// Raises the last error.
    TvmThrowLastError = Row::new("tirx.tvm_throw_last_error", "tvm_throw_last_error", host()).gives(DType::HANDLE)
        .effect(Opaque);
} }
