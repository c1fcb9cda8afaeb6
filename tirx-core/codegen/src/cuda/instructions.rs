//! How are instructions written that CUDA C++ has no operator for: packed values and PTX?
//!
//! Each is a small function of its own, written once before the kernels that call it.

use super::Emitter;
use super::code::Code;
use super::helpers::{Header, Helper};
use super::{ptx_convert, ptx_memory, ptx_sync};
use crate::diagnostic::{Result, error};
use crate::intrin::Op;
use crate::ir::Expr;
use crate::source::Span;

/// A function that holds one instruction.
pub(super) struct Instruction {
    /// Its name.
    pub name: String,
    /// Its result, parameters and body.
    pub result: &'static str,
    pub params: String,
    pub body: String,
    /// How many arguments of the call are passed on; the others are in the name.
    pub operands: usize,
}

impl Emitter<'_> {
    /// A call of an instruction of this file.
    pub(super) fn instruction(&mut self, op: Op, args: &[Expr], span: Span) -> Result<Option<Code>> {
        let pointee = args.first().and_then(|a| self.pointee(a));
        if let Some((instruction, args)) = ptx_memory::instruction(op, args, pointee, span)? {
            if instruction.body.contains("half2") {
                self.needs.headers.insert(Header::Fp16);
            }
            return self.call_instruction(instruction, &args).map(Some);
        }
        let Some(instruction) = packed(op).or(simple(op)) else {
            let mut found = arithmetic(op, args, span)?;
            if found.is_none() {
                found = ptx_convert::instruction(op, args, span)?;
            }
            if found.is_none() {
                found = ptx_sync::instruction(op, args, span)?;
            }
            return match found {
                Some(instruction) => self.call_instruction(instruction, args).map(Some),
                None => Ok(None),
            };
        };
        if instruction.body.contains("bfloat") {
            self.needs.headers.insert(Header::Bf16);
        }
        if instruction.body.contains("fp8") {
            self.needs.headers.insert(Header::Fp8);
        }
        if instruction.body.contains("tirx_bit_cast") {
            self.needs.helpers.insert(Helper::BitCast);
        }
        self.call_instruction(instruction, args).map(Some)
    }

    fn call_instruction(&mut self, instruction: Instruction, args: &[Expr]) -> Result<Code> {
        let Instruction {
            name,
            result,
            params,
            body,
            operands,
        } = instruction;
        let list = self.arguments(&args[..operands.min(args.len())])?;
        if params.contains("int64_t") {
            self.needs.headers.insert(Header::Cstdint);
        }
        let call = Code::primary(format!("{name}({list})"));
        self.generated.entry(name).or_insert_with_key(|name| {
            format!("__device__ __forceinline__ {result} {name}({params}) {{\n{body}}}\n")
        });
        Ok(call)
    }

    /// `T.ptx.fetch_register(bits, name)` of a register that has no function of its own.
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
                operands: 0,
            },
            &[],
        )
    }
}

/// Functions of packed values.
fn packed(op: Op) -> Option<Instruction> {
    let (name, result, params, value) = match op {
        Op::CudaMakeFloat2 => (
            "make_float2",
            "uint64_t",
            "float x, float y",
            "tirx_bit_cast<uint64_t>(make_float2(x, y))",
        ),
        Op::CudaFloat2X => ("float2_x", "float", "uint64_t a", "tirx_bit_cast<float2>(a).x"),
        Op::CudaFloat2Y => ("float2_y", "float", "uint64_t a", "tirx_bit_cast<float2>(a).y"),
        Op::CudaFadd2Rn => (
            "fadd2_rn",
            "uint64_t",
            "uint64_t a, uint64_t b",
            "tirx_bit_cast<uint64_t>(__fadd2_rn(tirx_bit_cast<float2>(a), tirx_bit_cast<float2>(b)))",
        ),
        Op::CudaFmul2Rn => (
            "fmul2_rn",
            "uint64_t",
            "uint64_t a, uint64_t b",
            "tirx_bit_cast<uint64_t>(__fmul2_rn(tirx_bit_cast<float2>(a), tirx_bit_cast<float2>(b)))",
        ),
        Op::CudaFloat22bfloat162Rn => (
            "float22bfloat162_rn",
            "unsigned int",
            "float x, float y",
            "tirx_bit_cast<unsigned int>(__float22bfloat162_rn(make_float2(x, y)))",
        ),
        Op::CudaFloat22bfloat162RnFromFloat2 => (
            "float22bfloat162_rn_from_float2",
            "unsigned int",
            "uint64_t a",
            "tirx_bit_cast<unsigned int>(__float22bfloat162_rn(tirx_bit_cast<float2>(a)))",
        ),
        Op::CudaBfloat1622float2 => (
            "bfloat1622float2",
            "uint64_t",
            "unsigned int a",
            "tirx_bit_cast<uint64_t>(__bfloat1622float2(tirx_bit_cast<__nv_bfloat162>(a)))",
        ),
        Op::CudaHmin2 => (
            "hmin2",
            "unsigned int",
            "unsigned int a, unsigned int b",
            "tirx_bit_cast<unsigned int>(__hmin2(tirx_bit_cast<__nv_bfloat162>(a), tirx_bit_cast<__nv_bfloat162>(b)))",
        ),
        Op::CudaHmax2 => (
            "hmax2",
            "unsigned int",
            "unsigned int a, unsigned int b",
            "tirx_bit_cast<unsigned int>(__hmax2(tirx_bit_cast<__nv_bfloat162>(a), tirx_bit_cast<__nv_bfloat162>(b)))",
        ),
        Op::CudaFp8x4E4m3FromFloat4 => (
            "fp8x4_e4m3_from_float4",
            "unsigned int",
            "float x, float y, float z, float w",
            "tirx_bit_cast<unsigned int>(__nv_fp8x4_e4m3(make_float4(x, y, z, w)))",
        ),
        _ => return None,
    };
    Some(Instruction {
        name: format!("tirx_{name}"),
        result,
        params: params.into(),
        body: format!("  return {value};\n"),
        operands: op.info().arity.1.into(),
    })
}

/// Instructions without modifiers.
fn simple(op: Op) -> Option<Instruction> {
    let float = |name: &str, asm: &str, params: &str, inputs: &str, operands| Instruction {
        name: format!("tirx_ptx_{name}"),
        result: "float",
        params: params.into(),
        body: format!("  float result;\n  asm(\"{asm}\" : \"=f\"(result) : {inputs});\n  return result;\n"),
        operands,
    };
    let statement = |name: &str, asm: &str| Instruction {
        name: format!("tirx_{name}"),
        result: "void",
        params: String::new(),
        body: format!("  asm volatile(\"{asm}\" : : : \"memory\");\n"),
        operands: 0,
    };
    const THREE: &str = "\"f\"(a), \"f\"(b), \"f\"(c)";
    Some(match op {
        Op::PtxExp2 => float("exp2", "ex2.approx.ftz.f32 %0, %1;", "float x", "\"f\"(x)", 1),
        Op::PtxRcp => float("rcp", "rcp.approx.ftz.f32 %0, %1;", "float x", "\"f\"(x)", 1),
        Op::PtxReduce3MaxF32 => float(
            "reduce3_max_f32",
            "max.f32 %0, %1, %2, %3;",
            "float a, float b, float c",
            THREE,
            3,
        ),
        Op::PtxReduce3MinF32 => float(
            "reduce3_min_f32",
            "min.f32 %0, %1, %2, %3;",
            "float a, float b, float c",
            THREE,
            3,
        ),
        Op::PtxAddRnF32Bf16 => float(
            "add_rn_f32_bf16",
            "add.rn.f32.bf16 %0, %1, %2;",
            "float a, unsigned short x",
            "\"h\"(x), \"f\"(a)",
            2,
        ),
        Op::PtxFnsB32 => Instruction {
            name: "tirx_ptx_fns_b32".into(),
            result: "unsigned int",
            params: "unsigned int mask, unsigned int base, int offset".into(),
            body:
                "  unsigned int result;\n  asm(\"fns.b32 %0, %1, %2, %3;\" : \"=r\"(result) : \"r\"(mask), \
                   \"r\"(base), \"r\"(offset));\n  return result;\n"
                    .into(),
            operands: 3,
        },
        Op::PtxGriddepcontrolWait => statement("griddepcontrol_wait", "griddepcontrol.wait;"),
        Op::PtxGriddepcontrolLaunchDependents => statement(
            "griddepcontrol_launch_dependents",
            "griddepcontrol.launch_dependents;",
        ),
        _ => return None,
    })
}

/// An operation with a dtype: `add`, `f32`.
fn operation(op: Op) -> Option<(&'static str, &'static str)> {
    let (name, dtype) = op.info().script.strip_prefix("ptx.")?.split_once('_')?;
    let known = ["add", "sub", "mul", "fma"].contains(&name) && ["f32", "f64", "f32x2"].contains(&dtype)
        || op == Op::PtxMaxF32;
    known.then_some((name, dtype))
}

/// Arithmetic whose rounding and further modifiers are arguments.
fn arithmetic(op: Op, args: &[Expr], span: Span) -> Result<Option<Instruction>> {
    let Some((name, dtype)) = operation(op) else {
        return Ok(None);
    };
    let flag = |e: &Expr| !e.is_int(0);
    let operands = if name == "fma" { 3 } else { 2 };
    if op == Op::PtxMaxF32 {
        let suffix = |at: usize, text: &'static str| if flag(&args[at]) { text } else { "" };
        let (ftz, nan) = (suffix(2, ".ftz"), suffix(3, ".NaN"));
        return Ok(Some(Instruction {
            name: format!(
                "tirx_ptx_max{}{}_f32",
                ftz.replace('.', "_"),
                nan.replace('.', "_")
            ),
            result: "float",
            params: "float a, float b".into(),
            body: format!(
                "  float result;\n  asm(\"max{ftz}{nan}.f32 %0, %1, %2;\" : \"=f\"(result) : \"f\"(a), \"f\"(b));\n  \
                 return result;\n"
            ),
            operands: 2,
        }));
    }
    // Where the modifiers begin: the first string.
    let Some(at) = args.iter().position(|a| a.as_str().is_some()) else {
        return error(span, format!("`T.{}` needs its rounding", op.info().script));
    };
    let mut modifiers = String::new();
    if let Some(rounding @ ("rn" | "rz" | "rm" | "rp")) = args[at].as_str() {
        modifiers = format!(".{rounding}");
    }
    if args.get(at + 1).is_some_and(flag) {
        modifiers.push_str(".ftz");
    }
    if dtype != "f32x2" && args.get(at + 2).is_some_and(flag) {
        modifiers.push_str(".sat");
    }
    let stores = at > operands;
    let (ty, letter) = match dtype {
        "f32" => ("float", "f"),
        "f64" => ("double", "d"),
        _ => ("uint64_t", "l"),
    };
    let names = ["a", "b", "c"];
    let list = |each: &dyn Fn(&str) -> String| -> String {
        let all: Vec<String> = names[..operands].iter().map(|n| each(n)).collect();
        all.join(", ")
    };
    let inputs = list(&|n| format!("\"{letter}\"({n})"));
    let places: String = (1..=operands).map(|i| format!(", %{i}")).collect();
    let mut params = list(&|n| format!("{ty} {n}"));
    if stores {
        params = format!("void* destination, {params}");
    }
    let finish = if stores {
        format!("  *static_cast<{ty}*>(destination) = result;\n")
    } else {
        "  return result;\n".into()
    };
    let tag = if stores { "" } else { "_value" };
    Ok(Some(Instruction {
        name: format!("tirx_ptx_{name}{}_{dtype}{tag}", modifiers.replace('.', "_")),
        result: if stores { "void" } else { "uint64_t" },
        params,
        body: format!(
            "  {ty} result;\n  asm(\"{name}{modifiers}.{dtype} %0{places};\" : \"={letter}\"(result) : {inputs});\n{finish}"
        ),
        operands: operands + usize::from(stores),
    }))
}
