//! Functions that wrap one instruction each, written once before the kernels that call them: for instructions that no
//! row template can express.

use super::code::Code;
use super::emitter::Emitter;
use super::helpers::Header;
use crate::diagnostic::{Result, error};
use crate::ir::Expr;

/// A function that wraps one instruction.
pub(super) struct Instruction {
    /// Its name.
    pub name: String,
    /// Its result, parameters and body.
    pub result: &'static str,
    pub params: String,
    pub body: String,
}

impl Emitter<'_, '_> {
    /// A call of the function of an instruction, which is defined once.
    pub(super) fn call_instruction(&mut self, instruction: Instruction, args: &[Expr]) -> Result<Code> {
        let Instruction {
            name,
            result,
            params,
            body,
        } = instruction;
        let list = self.arguments(args)?;
        if params.contains("int64_t") {
            self.unit.needs.headers.insert(Header::Cstdint);
        }
        let call = Code::primary(format!("{name}({list})"));
        self.unit.generated.entry(name).or_insert_with_key(|name| {
            format!("__device__ __forceinline__ {result} {name}({params}) {{\n{body}}}\n")
        });
        Ok(call)
    }

    /// `T.ptx.fetch_register(bits, name)` for a register without a helper function.
    pub(super) fn any_register(&mut self, e: &Expr, register: &str) -> Result<Code> {
        let legal = !register.is_empty()
            && register
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'_');
        if !legal {
            return error(e.span, format!("`{register}` is no special register"));
        }
        let (result, wide) = if e.dtype.bits == 64 {
            ("int64_t", true)
        } else {
            ("int", false)
        };
        let (ty, letter) = if wide { ("u64", "l") } else { ("u32", "r") };
        // The same register may be read in both widths.
        let width = if wide { "_64" } else { "" };
        let name = format!("tirx_register_{}{width}", register.replace('.', "_"));
        self.call_instruction(
            Instruction {
                name,
                result,
                params: String::new(),
                body: format!(
                    "  {result} value;\n  asm volatile(\"mov.{ty} %0, %%{register};\" : \"={letter}\"(value));\n  \
                     return value;\n"
                ),
            },
            &[],
        )
    }
}
