//! The text of the loads, stores and atomics of PTX.

use super::code::Code;
use super::emitter::Emitter;
use super::instructions::Instruction;
use super::{asm, defects};
use crate::diagnostic::Result;
use crate::intrin::memory::{Access, MemoryInstruction, Space};
use crate::ir::{DType, ElementType, Expr};

/// CUDA's name of a dtype in a register or in memory.
pub(super) fn name_of(dtype: DType) -> &'static str {
    let row = ElementType::from_dtype(dtype).and_then(|row| row.asm);
    row.map_or("unsigned int", |asm| asm.cpp)
}

fn identifier(text: &str) -> String {
    text.replace("::", "_").replace('.', "_")
}

impl Emitter<'_, '_> {
    /// A call of a load, a store or an atomic. A load, a store, and an atomic without result take their predicate from `guard`; a load
    /// with one result whose predicate does not hold gives the last of `guard`'s values.
    pub(super) fn memory_instruction(
        &mut self,
        access: &MemoryInstruction<'_>,
        guard: &mut Option<Guard>,
    ) -> Result<Code> {
        let takes = |guard: &Guard| match access.access {
            Access::Load if access.by_pointer => true,
            Access::Load => guard.kept.is_some(),
            Access::Store | Access::Update(_) => access.result.is_void(),
        };
        let (instruction, args) = memory(access, guard.take_if(|guard| takes(guard)));
        self.call_instruction(instruction, &args)
    }
}

/// The predicate of an instruction.
pub(super) struct Guard {
    pub(super) condition: Expr,
    /// What the register that the instruction writes holds where the condition does not.
    pub(super) kept: Option<Expr>,
}

/// The function of an instruction, and its arguments in the order of its parameters.
fn memory(access: &MemoryInstruction<'_>, guard: Option<Guard>) -> (Instruction, Vec<Expr>) {
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
    // The location of value `i` in memory.
    let place = |i: usize| match pointers {
        1 => format!("static_cast<{in_memory}*>(p0)[{i}]"),
        _ => format!("*static_cast<{in_memory}*>(p{i})"),
    };
    let (outputs, operands, next) = match access.access {
        Access::Load => {
            // Registers that a predicate may leave as they are begin with what they held.
            let (first, sign) = match (&guard, pointers) {
                (None, _) => (each(&|i| format!("r{i}")), "="),
                (Some(_), 0) => ("r0 = kept".to_string(), "+"),
                (Some(_), _) => (each(&|i| format!("r{i} = {}", place(i))), "+"),
            };
            body.push_str(&format!("  {register} {first};\n"));
            (
                each(&|i| format!("\"{sign}{letter}\"(r{i})")),
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
    let instruction = format!("{} {operands}", access.text);
    let mut text = format!("{instruction};");
    if let Some(guard) = guard {
        let at = next + usize::from(access.policy.is_some());
        text = asm::under_guard("", &instruction, at);
        params.push(format!("int {}", asm::GUARD));
        arguments.push(guard.condition);
        if let Some(kept) = guard
            .kept
            .filter(|_| access.access == Access::Load && pointers == 0)
        {
            params.push(format!("{register} kept"));
            arguments.push(kept);
        }
        inputs.push_str(&format!(", \"r\"({})", asm::GUARD));
        name.push_str("_if");
    }
    if defects::instruction_spins(&access.text) {
        body.push_str(&format!("  {}\n", defects::OWN_LOOP));
    }
    body.push_str(&format!(
        "  asm volatile(\"{text}\" : {outputs} : {inputs} : \"memory\");\n"
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
    };
    (instruction, arguments)
}
