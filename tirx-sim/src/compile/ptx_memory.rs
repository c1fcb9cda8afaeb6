//! Loads, stores and atomics of PTX, and conversions from memory to memory.
//!
//! Weak accesses are plain ones. Strong ones are one step for the whole grid, as atomics are: their values are sequentially
//! consistent here whatever order they ask for, and they order other accesses as far as they do ask for it.

use tirx_ir::intrin::Op;
use tirx_ir::intrin::memory::{Access, MemoryInstruction};
use tirx_ir::{DType, Expr, at};
use tirx_source::diagnostic::{Result, error};

use super::Compiler;
use super::call::Call;
use super::registers::Val;
use tirx_sim_machine::bytecode::AtomicOp;
use tirx_sim_machine::bytecode::{Scope, Strong};
use tirx_sim_machine::numeric::Kind;

/// A pointer, some bytes further.
pub(super) fn moved(pointer: &Expr, bytes: u32) -> Expr {
    if bytes == 0 {
        return pointer.clone();
    }
    if pointer.dtype == DType::UINT32 {
        return pointer.clone() + Expr::constant(DType::UINT32, bytes.into());
    }
    let args = vec![pointer.clone(), Expr::int32(bytes as i32)];
    Expr::call(Op::HandleAddByteOffset, pointer.dtype, args)
}

/// The memory order that an instruction's modifiers ask for.
fn strong(access: &MemoryInstruction<'_>, reads: bool, writes: bool) -> Strong {
    let words = || access.text.split('.');
    let semantics = words().find(|w| matches!(*w, "acquire" | "release" | "acq_rel" | "sc"));
    let scope = words().find(|w| matches!(*w, "cta" | "cluster" | "gpu" | "sys"));
    // "ld.volatile has the same memory synchronization semantics as ld.relaxed.sys" (PTX ISA, ld).
    let own = if words().any(|w| w == "volatile") {
        "sys"
    } else {
        "gpu"
    };
    let scope = Scope::from_modifier(scope.unwrap_or(own));
    let semantics = semantics.unwrap_or("relaxed");
    match words().next() {
        Some("red") => Strong::reduction(semantics, scope),
        _ => Strong::new(semantics, scope, reads, writes),
    }
}

/// A conversion of elements in memory: where the two pointers are among the arguments, how many elements, their dtypes.
pub(super) struct Conversion {
    from: usize,
    to: usize,
    count: u32,
    source: DType,
    target: DType,
}

/// `float22half2`.
pub(super) const TWO_FLOATS_TO_HALVES: Conversion = Conversion {
    from: at!(CudaFloat22half2.src),
    to: at!(CudaFloat22half2.dst),
    count: 2,
    source: DType::FLOAT32,
    target: DType::FLOAT16,
};

/// `half8tofloat8`.
pub(super) const EIGHT_HALVES_TO_FLOATS: Conversion = Conversion {
    from: at!(CudaHalf8tofloat8.src_addr),
    to: at!(CudaHalf8tofloat8.dst_addr),
    count: 8,
    source: DType::FLOAT16,
    target: DType::FLOAT32,
};

/// `float8tohalf8`.
pub(super) const EIGHT_FLOATS_TO_HALVES: Conversion = Conversion {
    from: at!(CudaFloat8tohalf8.src_addr),
    to: at!(CudaFloat8tohalf8.dst_addr),
    count: 8,
    source: DType::FLOAT32,
    target: DType::FLOAT16,
};

impl Compiler<'_> {
    /// A load, a store or an atomic; gives its value, an arbitrary one for a store.
    pub(super) fn memory_instruction(&mut self, call: &Call<'_>) -> Result<Val> {
        let access = match MemoryInstruction::read(&call.named) {
            Ok(access) => access,
            Err(message) => return error(self.span, message),
        };
        let kind = self.kind(access.element.memory)?;
        let register = self.kind(if access.result.is_void() {
            access.element.register
        } else {
            access.result
        })?;
        match access.access {
            Access::Load => {
                let mut values = self.read(&access, kind)?;
                for value in &mut values {
                    *value = self.convert(*value, register)?;
                }
                let first = values[0];
                for value in &mut values {
                    *value = self.convert(*value, kind)?;
                }
                match access.operands {
                    [] => {}
                    [one] => self.store_pointer(one, kind, &values)?,
                    each => {
                        for (to, value) in each.iter().zip(&values) {
                            self.store_pointer(to, kind, &[*value])?;
                        }
                    }
                }
                Ok(first)
            }
            Access::Store => {
                let values = if access.by_pointer {
                    self.load_pointer(&access.operands[0], kind, access.lanes as u16)?
                } else {
                    self.written(&access, register, kind)?
                };
                if access.strong {
                    for (i, value) in values.iter().enumerate() {
                        let pointer = moved(access.address, i as u32 * kind.bytes());
                        self.atomic_of(
                            AtomicOp::Exchange,
                            strong(&access, false, true),
                            &pointer,
                            &[*value],
                        )?;
                    }
                } else {
                    self.store_pointer(access.address, kind, &values)?;
                }
                Ok(values[0])
            }
            Access::Update(operation) => {
                let values = self.written(&access, register, kind)?;
                let op = match operation {
                    "add" => AtomicOp::Add,
                    "and" => AtomicOp::And,
                    "or" => AtomicOp::Or,
                    "xor" => AtomicOp::Xor,
                    "min" => AtomicOp::Min,
                    "max" => AtomicOp::Max,
                    "inc" => AtomicOp::Inc,
                    "dec" => AtomicOp::Dec,
                    _ => AtomicOp::Exchange,
                };
                self.atomic_of(op, strong(&access, true, true), access.address, &values)
            }
        }
    }

    /// The operands of a store, in the order in which the function of the CUDA text takes them.
    fn written(&mut self, access: &MemoryInstruction<'_>, register: Kind, kind: Kind) -> Result<Vec<Val>> {
        let mut values = Vec::new();
        for operand in access.operands {
            let value = self.value(operand)?;
            let value = self.convert(value, register)?;
            values.push(self.convert(value, kind)?);
        }
        Ok(values)
    }

    fn read(&mut self, access: &MemoryInstruction<'_>, kind: Kind) -> Result<Vec<Val>> {
        if access.text.split('.').any(|word| word == "nc") {
            return self.load_constant(access.address, kind, access.lanes as u16);
        }
        if !access.strong {
            return self.load_pointer(access.address, kind, access.lanes as u16);
        }
        let nothing = self.bits(kind, 0)?;
        (0..access.lanes as u32)
            .map(|i| {
                let pointer = moved(access.address, i * kind.bytes());
                self.atomic_of(AtomicOp::Read, strong(access, true, false), &pointer, &[nothing])
            })
            .collect()
    }

    /// `float22half2` and its like.
    pub(super) fn convert_memory(&mut self, args: &[Expr], conversion: &Conversion) -> Result<()> {
        let (from, to) = (&args[conversion.from], &args[conversion.to]);
        let (source, target) = (self.kind(conversion.source)?, self.kind(conversion.target)?);
        // Two at a time, as the CUDA text has it.
        for pair in 0..conversion.count / 2 {
            let mut values = self.load_pointer(&moved(from, pair * 2 * source.bytes()), source, 2)?;
            for value in &mut values {
                *value = self.convert(*value, target)?;
            }
            self.store_pointer(&moved(to, pair * 2 * target.bytes()), target, &values)?;
        }
        Ok(())
    }
}
