//! Instructions of PTX by their mnemonics, which [`crate::intrin::mnemonic`] describes, and the offset of an address.

use super::kinds::*;
use crate::intrin::mnemonic::call;
use crate::intrin::row::*;

rows! { $ instruction {
    /// An instruction of PTX, written as its mnemonic: `T.ptx["ld.global.b32"](value, pointer)`, or
    /// `T.ptx.ld.global_.b32(value, pointer)`. The operands are those of the PTX ISA in its order, destinations first.
    PtxInstruction = Row::new("tirx.ptx.instruction", "ptx.instruction", special())
        .args(&[arg("mnemonic", NAME), rest("operands", NODE)])
        .checked(call::check)
        .traits(Traits::SYNC.synchronizes(Synchronizes::Memory).memory(Memory::ReadsAndWrites));
    /// The address `base` moved by `byte_offset` bytes, a constant: `[base+offset]` in an instruction of PTX. It can
    /// only be an operand of an instruction of PTX.
    PtxAddr = Row::new("tirx.ptx.addr", "ptx.addr", special())
        .args(&[arg("base", NODE), arg("byte_offset", I32)])
        .value(crate::intrin::ResultRule::Arg(0)).effect(crate::intrin::Effect::Pure);
} }
