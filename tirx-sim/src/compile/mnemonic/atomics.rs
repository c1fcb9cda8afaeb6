//! Atomics that have no row: compare-and-swap, sums of narrow floats, vectors; memory of several GPUs, of which here is one.
//!
//! A vector, or a pair in one register, is as many atomics: PTX has each element updated atomically, not all of them together.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::InstructionCall;
use tirx_ir::{DType, Expr};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::simulated::reasons;
use super::{as_dtype, natural, update_of};
use tirx_sim_machine::bytecode::{AtomicOp, MultimemInst, Scope, Strong};

/// A pointer, some bytes further.
fn moved(pointer: &Expr, bytes: u32) -> Expr {
    match bytes {
        0 => pointer.clone(),
        _ if pointer.dtype == DType::UINT32 => pointer.clone() + Expr::constant(DType::UINT32, bytes.into()),
        _ => {
            let args = vec![pointer.clone(), Expr::int32(bytes as i32)];
            Expr::call(Op::HandleAddByteOffset, pointer.dtype, args)
        }
    }
}

impl Compiler<'_> {
    /// `atom` and `red`.
    pub(super) fn atomic_of_elements(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let family = tokens.instruction.family;
        let op = match () {
            () if tokens.has("cas") => AtomicOp::Cas,
            () if tokens.has("add") => AtomicOp::Add,
            () => match update_of(tokens.get("op")) {
                Some(op) => op,
                // An exchange of words of up to 64 bits has a row.
                None => return self.refuse(call, &reasons::WIDE),
            },
        };
        // Without a slot named `type` the type is the one that stands in the mnemonic.
        let ty = match tokens.get("type") {
            "" if tokens.has("f32") => "f32",
            ty => ty,
        };
        let Some(dtype) = natural(ty) else {
            return self.refuse(call, &reasons::WIDE);
        };
        let addr = self.named_operand(call, "addr")?;
        let semantics = match tokens.get("sem") {
            "" => "relaxed",
            sem => sem,
        };
        let scope = match tokens.get("scope") {
            "" => "gpu",
            scope => scope,
        };
        let strong = match family {
            "red" => Strong::reduction(semantics, Scope::from_modifier(scope)),
            _ => Strong::new(semantics, Scope::from_modifier(scope), true, true),
        };
        let kind = self.kind(dtype.element())?;
        let compare = match call.get("compare") {
            Some(compare) => Some(self.value(&as_dtype(compare.clone(), dtype))?),
            None => None,
        };
        let mut olds = Vec::new();
        for (i, register) in call.list("value").iter().enumerate() {
            let mut old = Vec::new();
            for (j, value) in self
                .values(&as_dtype(register.clone(), dtype))?
                .into_iter()
                .enumerate()
            {
                let at = i as u32 * u32::from(dtype.lanes.max(1)) + j as u32;
                let value = self.convert(value, kind)?;
                let values: Vec<_> = compare.into_iter().chain([value]).collect();
                let address = moved(addr, at * kind.bytes());
                old.push(self.atomic_of(op, strong, &address, &values)?);
            }
            olds.push(self.known(dtype, old));
        }
        if !call.list("d").is_empty() {
            self.write(call, vec![("d", olds)])?;
        }
        Ok(())
    }

    /// `multimem`: every element is an instruction over the parts of its window.
    pub(super) fn multimem(&mut self, call: &InstructionCall) -> Result<()> {
        let tokens = &call.tokens;
        let Some(dtype) = natural(tokens.get("type")) else {
            return self.refuse(call, &reasons::OPERANDS);
        };
        let addr = self.named_operand(call, "addr")?;
        let kind = self.kind(dtype.element())?;
        let lanes = usize::from(dtype.lanes.max(1));
        // Without a word for the order loads and stores are weak, reductions relaxed.
        let reduces = tokens.has("red");
        let weak = tokens.has("weak") || tokens.get("sem").is_empty() && !reduces;
        let semantics = match tokens.get("sem") {
            "" | "weak" => "relaxed",
            sem => sem,
        };
        let scope = match tokens.get("scope") {
            "" => Scope::Sys,
            scope => Scope::from_modifier(scope),
        };
        let operator = match tokens.has("add") {
            true => Some(AtomicOp::Add),
            false => update_of(tokens.get("op")),
        };
        let multimem = MultimemInst {
            weak,
            combine: operator.unwrap_or(AtomicOp::Exchange),
            in_float32: tokens.has("acc::f32"),
        };
        let place = |i: usize| moved(addr, i as u32 * kind.bytes());
        if tokens.has("ld_reduce") {
            let registers = call.list("d").len();
            let mut elements = Vec::new();
            let nothing = self.bits(kind, 0)?;
            let strong = Strong::new(semantics, scope, true, false);
            for i in 0..registers * lanes {
                elements.push(self.multimem_of(
                    AtomicOp::Read,
                    strong,
                    &place(i),
                    &[nothing],
                    Some(multimem),
                )?);
            }
            let values = elements
                .chunks(lanes)
                .map(|register| self.known(dtype, register.to_vec()));
            let values = values.collect();
            return self.write(call, vec![("d", values)]);
        }
        let op = match (reduces, operator) {
            (false, _) if tokens.has("st") => AtomicOp::Exchange,
            (true, Some(op)) => op,
            _ => return self.refuse(call, &reasons::OPERANDS),
        };
        let strong = match reduces {
            true => Strong::reduction(semantics, scope),
            false => Strong::new(semantics, scope, false, true),
        };
        let mut elements = Vec::new();
        for register in call.list("b") {
            for value in self.values(&as_dtype(register.clone(), dtype))? {
                elements.push(self.convert(value, kind)?);
            }
        }
        for (i, value) in elements.into_iter().enumerate() {
            self.multimem_of(op, strong, &place(i), &[value], Some(multimem))?;
        }
        Ok(())
    }
}
