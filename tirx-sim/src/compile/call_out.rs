//! Calls that leave the kernel: raw CUDA functions, `printf`, `print_buffer`.

use tirx_ir::{DType, at};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::bytecode::{ExternCall, Inst, Print};
use tirx_sim_machine::numeric::Kind;

impl Compiler<'_> {
    /// A call of a raw CUDA or C function.
    pub(super) fn call_out(&mut self, call: &Call<'_>) -> Result<Vec<Val>> {
        let dtype = call.dtype;
        let name = self.text(self.argument(call, "func_name")?)?.to_string();
        let mut operands = Vec::new();
        for arg in call.named.list("args") {
            if arg.as_str().is_some() {
                continue;
            }
            for value in self.values(arg)? {
                operands.push((value.kind, self.vector(value)?));
            }
        }
        self.count(1);
        let result = if dtype.is_void() {
            None
        } else if dtype.is_vector() {
            let message = format!("a raw CUDA function that returns {dtype} has no stand-in form");
            return error(self.span, message);
        } else {
            let kind = self.kind(dtype)?;
            Some((kind, self.temp(kind)?))
        };
        let id = self.code.calls.len() as u16;
        self.code.calls.push(ExternCall {
            name,
            args: operands,
            result,
        });
        self.emit(Inst::CallStandIn { id });
        Ok(result.map(|(kind, d)| Val::vector(kind, d)).into_iter().collect())
    }

    pub(super) fn printf(&mut self, call: &Call<'_>) -> Result<()> {
        let mut print = Print {
            format: self.text(&call.args[at!(CudaPrintf.fmt)])?.to_string(),
            args: Vec::new(),
        };
        for arg in &call.args[at!(CudaPrintf.args)..] {
            if let Some(text) = arg.as_str() {
                // A constant string replaces its `%s`.
                print.format = print.format.replacen("%s", &text.replace('%', "%%"), 1);
                continue;
            }
            for value in self.values(arg)? {
                let register = self.vector(value)?;
                print.args.push((value.kind, register));
            }
        }
        self.push_print(print);
        Ok(())
    }

    fn push_print(&mut self, print: Print) {
        let id = self.code.prints.len() as u16;
        self.code.prints.push(print);
        self.emit(Inst::Print { id });
    }

    pub(super) fn print_buffer(&mut self, call: &Call<'_>) -> Result<()> {
        let (data, dtype) = (
            &call.args[at!(PrintBuffer.buffer_var)],
            &call.args[at!(PrintBuffer.dtype)],
        );
        // Is it a string? A scalar? The number of dimensions, and the extents.
        let [_, is_scalar, _, shape @ ..] = call.named.list("rest") else {
            return error(
                self.span,
                "print_buffer takes a pointer, a dtype, two flags and a shape",
            );
        };
        let Ok(dtype) = self.text(dtype)?.parse::<DType>() else {
            return error(self.span, "print_buffer of an unknown dtype");
        };
        let kind = self.kind(dtype)?;
        let count: Option<i128> = shape.iter().map(|e| e.as_int()).product();
        let count = if is_scalar.is_int(1) { Some(1) } else { count };
        let Some(count) = count.filter(|n| (0..=MAX_PRINTED).contains(n)) else {
            let message = format!("print_buffer prints at most {MAX_PRINTED} elements of a constant shape");
            return error(self.span, message);
        };
        let pointer = self.value(data)?;
        let verb = if kind.is_float() { "%g" } else { "%lld" };
        let mut print = Print {
            format: format!("[{}]\n", vec![verb; count as usize].join(", ")),
            args: Vec::new(),
        };
        for i in 0..count {
            let offset = self.integer(Kind::I64, i)?;
            let value = self.load_offset(pointer, offset, kind, "print_buffer")?;
            print.args.push((kind, self.vector(value)?));
        }
        self.push_print(print);
        Ok(())
    }
}

/// Most elements that `print_buffer` prints.
const MAX_PRINTED: i128 = 4096;
