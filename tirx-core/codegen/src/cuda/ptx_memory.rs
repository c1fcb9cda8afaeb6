//! How are the loads, stores and atomics of PTX written?

use super::instructions::Instruction;
use crate::diagnostic::{Result, error};
use crate::intrin::Op;
use crate::intrin::memory::{Access, MemoryInstruction, Space};
use crate::ir::{DType, Expr};
use crate::source::Span;

/// CUDA's name of a dtype in a register or in memory.
pub(super) fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::UINT8 => "unsigned char",
        DType::INT8 => "signed char",
        DType::UINT16 => "unsigned short",
        DType::INT16 => "short",
        DType::INT32 => "int",
        DType::UINT64 => "unsigned long long",
        DType::INT64 => "long long",
        DType::FLOAT32 => "float",
        DType::FLOAT64 => "double",
        _ => "unsigned int",
    }
}

fn identifier(text: &str) -> String {
    text.replace("::", "_").replace('.', "_")
}

/// The function of an instruction of this file, and its arguments in the order of its parameters; `pointee` is the
/// dtype behind the first.
pub(super) fn instruction(
    op: Op,
    args: &[Expr],
    pointee: Option<DType>,
    span: Span,
) -> Result<Option<(Instruction, Vec<Expr>)>> {
    match MemoryInstruction::of(op, args) {
        Err(message) => error(span, format!("`T.{}`: {message}", op.info().script)),
        Ok(Some(access)) => match &access.missing {
            Some(message) => error(span, format!("`T.{}`: {message}", op.info().script)),
            None => Ok(Some(memory(&access))),
        },
        Ok(None) => other(op, args, pointee, span),
    }
}

fn memory(access: &MemoryInstruction<'_>) -> (Instruction, Vec<Expr>) {
    let (element, lanes) = (access.element, access.lanes);
    let register = match access.result {
        d if d.is_void() => name_of(element.register),
        d => name_of(d),
    };
    let in_memory = name_of(element.memory);
    let letter = element.letter;
    let each = |one: &dyn Fn(usize) -> String| (0..lanes).map(one).collect::<Vec<_>>().join(", ");
    let braced = |first: usize| match lanes {
        1 => format!("%{first}"),
        _ => format!("{{{}}}", each(&|i| format!("%{}", first + i))),
    };

    let mut name = format!("tirx_ptx_{}", identifier(&access.text));
    let mut params = Vec::new();
    let mut arguments = Vec::new();
    let (address_type, address) = match access.space {
        Space::Global => ("void*", "\"l\"(address)"),
        Space::Shared => ("void*", "\"r\"((unsigned int)__cvta_generic_to_shared(address))"),
        Space::Local => ("void*", "\"l\"(__cvta_generic_to_local(address))"),
        Space::RawShared => ("unsigned int", "\"r\"(address)"),
    };
    if access.space == Space::RawShared {
        name.push_str("_raw");
    }
    params.push(format!("{address_type} address"));
    arguments.push(access.address.clone());
    let pointers = if access.by_pointer {
        access.operands.len()
    } else {
        0
    };
    for (i, operand) in access.operands.iter().enumerate() {
        params.push(if access.by_pointer {
            format!("void* p{i}")
        } else {
            format!("{register} r{i}")
        });
        arguments.push(operand.clone());
    }
    if access.by_pointer && pointers > 0 {
        name.push_str(&format!("_by_{pointers}"));
    }
    let mut inputs = address.to_string();
    let mut body = String::new();
    // Where value `i` is in memory.
    let place = |i: usize| match pointers {
        1 => format!("static_cast<{in_memory}*>(p0)[{i}]"),
        _ => format!("*static_cast<{in_memory}*>(p{i})"),
    };
    let (outputs, operands, next) = match access.access {
        Access::Load => {
            body.push_str(&format!("  {register} {};\n", each(&|i| format!("r{i}"))));
            (
                each(&|i| format!("\"={letter}\"(r{i})")),
                format!("{}, [%{lanes}]", braced(0)),
                lanes + 1,
            )
        }
        Access::Store if element.ptx == "b128" => {
            body.push_str("  const unsigned __int128 value = *static_cast<const unsigned __int128*>(p0);\n");
            inputs.push_str(", \"q\"(value)");
            (String::new(), "[%0], %1".into(), 2)
        }
        Access::Store => {
            if access.by_pointer {
                let loads = each(&|i| format!("r{i} = {}", place(i)));
                body.push_str(&format!("  {register} {loads};\n"));
            }
            inputs.push_str(&format!(", {}", each(&|i| format!("\"{letter}\"(r{i})"))));
            (String::new(), format!("[%0], {}", braced(1)), lanes + 1)
        }
        Access::Update(_) => {
            inputs.push_str(&format!(", \"{letter}\"(r0)"));
            if access.result.is_void() {
                (String::new(), "[%0], %1".into(), 2)
            } else {
                body.push_str(&format!("  {register} old;\n"));
                (format!("\"={letter}\"(old)"), "%0, [%1], %2".into(), 3)
            }
        }
    };
    let mut operands = operands;
    if let Some(policy) = access.policy {
        params.push("unsigned long long policy".into());
        arguments.push(policy.clone());
        inputs.push_str(", \"l\"(policy)");
        operands.push_str(&format!(", %{next}"));
    }
    body.push_str(&format!(
        "  asm volatile(\"{} {operands};\" : {outputs} : {inputs} : \"memory\");\n",
        access.text
    ));
    let result = match access.access {
        _ if access.result.is_void() => "void",
        Access::Load => {
            body.push_str("  return r0;\n");
            register
        }
        _ => {
            body.push_str("  return old;\n");
            register
        }
    };
    if access.access == Access::Load {
        for i in 0..if pointers > 0 { lanes } else { 0 } {
            body.push_str(&format!("  {} = r{i};\n", place(i)));
        }
        if !access.result.is_void() && access.result != element.register {
            name.push_str(&format!("_{}", access.result));
        }
    }
    let instruction = Instruction {
        name,
        result,
        params: params.join(", "),
        body,
        operands: arguments.len(),
    };
    (instruction, arguments)
}

/// Addresses, conversions in memory, and accesses without modifiers.
fn other(
    op: Op,
    args: &[Expr],
    pointee: Option<DType>,
    span: Span,
) -> Result<Option<(Instruction, Vec<Expr>)>> {
    let text = |at: usize| args.get(at).and_then(Expr::as_str).unwrap_or_default();
    let make = |name: String, result: &'static str, params: &str, body: String, operands: usize| {
        let instruction = Instruction {
            name,
            result,
            params: params.into(),
            body,
            operands,
        };
        Ok(Some((instruction, args.to_vec())))
    };
    match op {
        Op::PtxMapa => {
            let (space, ptx) = (text(2), text(3));
            let dot = if space.is_empty() { "" } else { "." };
            let (result, letter) = match ptx {
                "u32" => ("unsigned int", "r"),
                _ => ("unsigned long long", "l"),
            };
            let address = match space {
                "" => "\"l\"(pointer)",
                _ if ptx == "u32" => "\"r\"((unsigned int)__cvta_generic_to_shared(pointer))",
                _ => "\"l\"(__cvta_generic_to_shared(pointer))",
            };
            make(
                format!("tirx_ptx_mapa{dot}{space}_{ptx}")
                    .replace("::", "_")
                    .replace('.', "_"),
                result,
                "void* pointer, unsigned int rank",
                format!(
                    "  {result} mapped;\n  asm volatile(\"mapa{dot}{space}.{ptx} %0, %1, %2;\" : \"={letter}\"(mapped) : \
                     {address}, \"r\"(rank));\n  return mapped;\n"
                ),
                2,
            )
        }
        Op::CudaCvtaGenericToShared => make(
            "tirx_cvta_generic_to_shared".into(),
            "unsigned int",
            "const void* pointer",
            "  return (unsigned int)__cvta_generic_to_shared(pointer);\n".into(),
            1,
        ),
        Op::CudaSmemAddrFromUint64 => make(
            "tirx_smem_addr_from_uint64".into(),
            "unsigned int",
            "unsigned long long address",
            "  return (unsigned int)address;\n".into(),
            1,
        ),
        Op::PtxLdGlobalAcquire => {
            let (ty, ptx, letter) = match pointee {
                Some(d @ (DType::INT32 | DType::UINT32)) => (name_of(d), "b32", "r"),
                Some(d @ (DType::INT64 | DType::UINT64)) => (name_of(d), "b64", "l"),
                _ => {
                    return error(
                        span,
                        "`T.ptx.ld_global_acquire` loads integers of 32 or 64 bits",
                    );
                }
            };
            make(
                format!("tirx_ptx_ld_global_acquire_{ptx}"),
                "void",
                "void* to, const void* address",
                format!(
                    "  {ty} value;\n  asm volatile(\"ld.acquire.gpu.global.{ptx} %0, [%1];\" : \"={letter}\"(value) : \
                     \"l\"(address) : \"memory\");\n  *static_cast<{ty}*>(to) = value;\n"
                ),
                2,
            )
        }
        Op::PtxLdg32 => make(
            "tirx_ptx_ldg32".into(),
            "void",
            "float* to, bool guard, const float* from, int index",
            "  asm volatile(\"{\\n\\t.reg .pred p;\\n\\tsetp.ne.b32 p, %2, 0;\\n\\t@!p mov.b32 %0, 0;\\n\\t@p \
             ld.global.nc.f32 %0, [%1];\\n\\t}\" : \"=f\"(to[index]) : \"l\"(from), \"r\"((int)guard));\n"
                .into(),
            4,
        ),
        Op::PtxStBulk => {
            let space = text(3);
            let weak = if args[2].is_int(0) { "" } else { ".weak" };
            let dot = if space.is_empty() { "" } else { "." };
            let address = match space {
                "" => "\"l\"(address)",
                _ => "\"r\"((unsigned int)__cvta_generic_to_shared(address))",
            };
            let what = format!("st.bulk{weak}{dot}{space}");
            make(
                format!("tirx_ptx_{}", identifier(&what)),
                "void",
                "void* address, unsigned int bytes",
                format!(
                    "  asm volatile(\"{what} [%0], %1, 0;\" : : {address}, \"l\"((unsigned long long)bytes) : \
                     \"memory\");\n"
                ),
                2,
            )
        }
        Op::CudaFloat22half2 => make(
            "tirx_float22half2".into(),
            "void",
            "void* to, void* from",
            "  *static_cast<half2*>(to) = __float22half2_rn(*static_cast<float2*>(from));\n".into(),
            2,
        ),
        Op::CudaHalf8tofloat8 => make(
            "tirx_half8tofloat8".into(),
            "void",
            "void* from, void* to",
            "  #pragma unroll\n  for (int i = 0; i < 4; ++i) {\n    static_cast<float2*>(to)[i] = \
             __half22float2(static_cast<half2*>(from)[i]);\n  }\n"
                .into(),
            2,
        ),
        Op::CudaFloat8tohalf8 => make(
            "tirx_float8tohalf8".into(),
            "void",
            "void* from, void* to",
            "  #pragma unroll\n  for (int i = 0; i < 4; ++i) {\n    static_cast<half2*>(to)[i] = \
             __float22half2_rn(static_cast<float2*>(from)[i]);\n  }\n"
                .into(),
            2,
        ),
        _ => Ok(None),
    }
}
