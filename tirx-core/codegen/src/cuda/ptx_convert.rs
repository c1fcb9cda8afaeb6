//! The text of `cvt` instructions.

use super::code::Code;
use super::emitter::Emitter;
use super::instructions::Instruction;
use super::ptx_memory::name_of;
use super::rows::register;
use crate::diagnostic::{Result, error};
use crate::intrin::convert::{Conversion, Format};
use crate::ir::{DType, Expr};

/// The dtype of the register that holds a format (there are none of 8 bits), and its constraint letter in `asm`.
fn register_of(format: &Format) -> (DType, &'static str) {
    let dtype = match (format.name, format.carrier) {
        ("s8", _) => DType::INT32,
        ("u8", _) => DType::UINT32,
        (_, DType::UINT8) => DType::UINT16,
        (_, carrier) => carrier,
    };
    (dtype, register(dtype).1)
}

/// Whether it is held in a `.b8` variable.
fn is_byte(format: &Format) -> bool {
    format.name == "e2m1x2"
}

impl Emitter<'_, '_> {
    /// A call of a conversion.
    pub(super) fn convert_instruction(&mut self, e: &Expr, args: &[Expr]) -> Result<Code> {
        match Conversion::from_args(args) {
            Ok(conversion) => {
                let passed: Vec<Expr> = conversion.passed().into_iter().map(|(_, e)| e).collect();
                self.call_instruction(instruction(&conversion), &passed)
            }
            Err(message) => error(e.span, format!("`T.ptx.cvt`: {message}")),
        }
    }
}

/// The function of a conversion, which takes the instruction's operands.
fn instruction(conversion: &Conversion<'_>) -> Instruction {
    let operands = conversion.operands();
    let (result, letter) = register_of(conversion.to);
    let mut params = Vec::new();
    let mut inputs = Vec::new();
    let mut places: Vec<String> = Vec::new();
    for (i, (format, _)) in operands.iter().enumerate() {
        let (dtype, letter) = register_of(format);
        params.push(format!("{} x{i}", name_of(dtype)));
        inputs.push(format!("\"{letter}\"(x{i})"));
        places.push(format!("%{}", i + 1));
    }
    let mut lines = Vec::new();
    if is_byte(conversion.from) {
        lines.push(".reg .b8 from;".to_string());
        lines.push("cvt.u8.u16 from, %1;".to_string());
        places[0] = "from".into();
    }
    let values = conversion.values.len();
    if values == 4 {
        let packed = format!("{{{}}}", places[..values].join(", "));
        places.splice(..values, [packed]);
    }
    let byte = is_byte(conversion.to);
    if byte {
        lines.push(".reg .b8 to;".to_string());
    }
    let to = if byte { "to" } else { "%0" };
    lines.push(format!("{} {to}, {};", conversion.text, places.join(", ")));
    if byte {
        lines.push("cvt.u16.u8 %0, to;".to_string());
    }
    let asm = match &lines[..] {
        [one] => one.clone(),
        many => format!("{{\\n\\t{}\\n\\t}}", many.join("\\n\\t")),
    };
    Instruction {
        name: format!(
            "tirx_ptx_{}",
            conversion.text.replace("::", "_").replace('.', "_")
        ),
        result: name_of(conversion.to.carrier),
        params: params.join(", "),
        body: format!(
            "  {} result;\n  asm(\"{asm}\" : \"={letter}\"(result) : {});\n  return result;\n",
            name_of(result),
            inputs.join(", ")
        ),
    }
}
