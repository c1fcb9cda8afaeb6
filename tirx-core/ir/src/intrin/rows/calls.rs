//! Calls to functions outside the language, and operations of host functions: arguments in structures, launches,
//! errors.

use super::kinds::*;
use crate::intrin::arch::ArchName;
use crate::intrin::operands::Operands;
use crate::intrin::row::*;
use crate::intrin::{Effect::*, ResultRule};
use crate::ir::DType;

/// The called function may read and write memory.
const FOREIGN: Traits = Traits::PLAIN.memory(Memory::ReadsAndWrites);

/// The conversions of a format of `printf`, each with what it takes.
fn conversions(format: &str) -> Result<Vec<(String, &'static str)>, String> {
    let mut found = Vec::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            continue;
        }
        let mut conversion = String::from("%");
        loop {
            let Some(c) = rest.next() else {
                return Err(format!(
                    "the format ends within \"{conversion}\": a percent sign is written %%"
                ));
            };
            conversion.push(c);
            let takes = match c {
                '-' | '+' | ' ' | '#' | '0'..='9' | '.' | 'l' | 'h' | 'z' | 'j' | 't' | 'L' => continue,
                '%' => break,
                // A width or precision that is an argument; the conversion goes on.
                '*' | 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c' => INTEGER,
                'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => FLOAT,
                's' => TEXT,
                'p' => POINTER,
                _ => {
                    return Err(format!(
                        "printf has no \"{conversion}\": a percent sign is written %%"
                    ));
                }
            };
            found.push((conversion.clone(), takes));
            if c != '*' {
                break;
            }
        }
    }
    Ok(found)
}

const INTEGER: &str = "an integer";
const FLOAT: &str = "a float";
const TEXT: &str = "a text that is known when compiling";
const POINTER: &str = "a pointer";

/// Checks the arguments of `printf` against its format. Widths of integers are not compared: 64 bits print with `%d` as far
/// as they fit.
fn printed(call: &Operands) -> Result<(), String> {
    let (wanted, args) = (conversions(call.text("fmt"))?, call.list("args"));
    for (i, (conversion, takes)) in wanted.iter().enumerate() {
        let Some(arg) = args.get(i) else {
            return Err(format!(
                "\"{conversion}\" of the format has no argument: {} given",
                args.len()
            ));
        };
        let (text, dtype) = (arg.as_str().is_some(), arg.dtype);
        let fits = dtype.is_scalar()
            && match *takes {
                INTEGER => dtype.is_integer() || dtype.is_bool(),
                FLOAT => dtype.is_floating(),
                POINTER => !text && dtype.is_handle() || dtype.is_integer() && dtype.bits == 64,
                _ => text || dtype.is_handle(),
            };
        if !fits {
            let found = if text {
                "a text".to_string()
            } else {
                dtype.to_string()
            };
            return Err(format!(
                "\"{conversion}\" of the format takes {takes}, argument {} is {found}",
                i + 1
            ));
        }
    }
    match args.len() - wanted.len() {
        0 => Ok(()),
        more => Err(format!(
            "the format has {} conversions, and {more} more arguments are given",
            wanted.len()
        )),
    }
}

/// Checks that a text is the name of an architecture.
fn architecture(call: &Operands) -> Result<(), String> {
    let arch = call.text("arch");
    match ArchName::parse(arch) {
        Some(_) => Ok(()),
        None => Err(format!("\"{arch}\" is no architecture: write it as \"sm_90a\"")),
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
    /// Whether the code is for this GPU: `"sm_90a"` is that one alone, `"sm_100f"` those of its family, `"sm_90"` this and later ones.
    /// The compiler answers for each target; of an `if` the branch that holds is left.
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
