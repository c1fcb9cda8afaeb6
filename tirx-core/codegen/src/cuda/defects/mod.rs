//! Defects of nvcc and ptxas that the generated text avoids, one entry each, and the code that is needed only because
//! of them.
//!
//! # Two loads become one load from a selected address
//!
//! - *Breaks:* `c ? A[i] : B[j]` (or an `if` with a load in each arm, or in one). The two loads are merged into one load
//!   from a selected address. If the kernel writes `B` and only reads `A`, the merged load is still `ld.global.nc`,
//!   which does not see what the kernel wrote. And the selected address is taken to differ from every `__restrict__`
//!   pointer, so that a store before it is removed as dead: in `B[i] = 1; B[i] = c ? B[j] : A[k]` the first store is
//!   missing where `c` and `i == j`.
//! - *Versions:* nvcc 13.0, sm_90a and sm_100a.
//! - *Written instead:* no `__restrict__` on the pointers of such pairs ([`aliases`]).
//! - *Tests:* `tests/kernels/memory/chosen_loads.py`, those of `aliases.rs`.
//!
//! # A loaded value is kept over a barrier
//!
//! - *Breaks:* in `x = P[0]; __syncthreads(); if (t == 0) P[0] = 10; __syncthreads(); y = P[0]` the threads other than 0 keep
//!   the value of the first load if `P` is `__restrict__`.
//! - *Versions:* nvcc 13.0. The qualifier allows this: the other thread's store is an access by another pointer.
//! - *Written instead:* no `__restrict__` on a pointer that the kernel loads and stores through with a synchronization
//!   between two of the accesses ([`aliases`]).
//! - *Tests:* `tests/kernels/language/one_element_buffers.py` (on a GPU), `tests/kernels/memory/exchanged_in_global.py`.
//!
//! # Constant loads move over `griddepcontrol.wait`
//!
//! - *Breaks:* a load through `const __restrict__` behind `griddepcontrol.wait` becomes `ld.global.nc` and is moved before
//!   the wait, where the kernel that is waited for has not written yet.
//! - *Versions:* nvcc 13.0.
//! - *Written instead:* a kernel that waits, or is launched with programmatic dependent launch, has no `__restrict__`
//!   at all ([`aliases`]).
//!
//! # Constant loads move over a flag of another device
//!
//! - *Breaks:* a load through `const __restrict__` behind an acquire of scope `sys` becomes `ld.global.nc`. The kernel has no store
//!   through the pointer: another device writes the memory, by an address from a table.
//! - *Versions:* nvcc 13.0. The qualifier allows this.
//! - *Written instead:* a kernel that synchronizes with the scope `sys`, or by NVSHMEM, has no `__restrict__` at all ([`aliases`]).
//! - *Tests:* `cuda/tests.rs`.
//!
//! # Minimum of three loses a sign
//!
//! - *Breaks:* `min(min(a, -b), c)` and `max(m, max(b, -b))` of `int` become `VIMNMX3` without the sign of `b`; so does a
//!   64-bit negation that is converted to `int` first, and whatever nvcc finds to be a negation: `b - b * 3`, `y - (b + y)`,
//!   `b * -4`, `b / -2`, `~b + 1`.
//! - *Versions:* ptxas 13.0, 13.1, 13.2 for sm_90a; gone in 13.5.
//! - *Written instead:* in a function that takes a minimum or maximum of `int32`, each negation is a call of
//!   `tirx_negated` or `tirx_negated_wide`, whose inline assembly ptxas does not see through ([`negation`]), and what is one
//!   in another form is written as one ([`as_negation`]). Not found are negations that appear when nvcc puts in
//!   what an earlier statement has stored (`acc[0] = 0`, then `acc[0] - b`), and minima by inline assembly.
//! - *Tests:* `cuda/tests.rs`, `tests/kernels/language/minima_of_negations.py` (on a GPU).
//!
//! # 16-bit integers do not wrap
//!
//! - *Breaks:* the negation of a 16-bit -32768 is 32768 where it is compared, converted, shifted or divided as a signed
//!   number; `a + b == 0` of 16 bits becomes `a == -b`.
//! - *Versions:* ptxas 13.0.
//! - *Written instead:* 16-bit negations are `tirx_negated` ([`negation`]); in functions that add 16-bit integers, what is
//!   compared with zero goes through `tirx_hidden` ([`hides`]).
//! - *Tests:* `tests/kernels/language/wrapped_16_bits.py`.
//!
//! # A conversion between the half types is lost
//!
//! - *Breaks:* `(int)(half)b` of a bfloat16 `b` becomes `F2I.F16` of the bits of `b`; the same from half to bfloat16.
//! - *Versions:* ptxas 13.0 for sm_90a; right with `-Xptxas -O0`.
//! - *Written instead:* conversions between the two go through `float` ([`half_conversion`]).
//!
//! # The retry loop of an atomic operation is merged with the loop around it
//!
//! - *Breaks:* shared memory has no floating-point or 64-bit addition; ptxas writes a loop that retries a compare-and-swap.
//!   If a loop of the kernel begins with the atomic operation (its operands do not change in the loop), ptxas takes the two
//!   loops for one loop and reconverges the lanes only after both. Lanes leave the retries one by one, pass the barriers
//!   of the loop apart, and overwrite each other's uniform registers.
//! - *Versions:* ptxas 13.0 for sm_80, sm_90a, sm_100a and sm_120a; right with `-Xptxas -O1`.
//! - *Written instead:* `__syncwarp(__activemask())` before the atomic operation, one `VOTE`: the retries are a loop of their
//!   own then ([`spins`]). Not found are atomic operations of inline CUDA text.
//! - *Tests:* `tests/kernels/memory/atomic_begins_a_loop.py` (on a GPU), those of `cuda/tests.rs`.
//!
//! # An accumulator is read before the wait for it
//!
//! - *Breaks:* behind a loop with `wgmma`, a conversion of accumulators is moved before `wgmma.wait_group 0`, where the
//!   tensor core still adds to them: one result of 128 in each thread is wrong.
//! - *Versions:* ptxas 13.0, for one of 195 kernels with `wgmma`; the PTX is right.
//! - *Written instead:* behind a wait for all groups, an empty `asm volatile` takes and gives each register of `wgmma`
//!   (`tirx_finished`), as libraries in C++ do. nvcc then keeps each accumulator in one register over the wait.
//! - *Tests:* `cli/accumulators.rs` reads the machine code of `docs/book/src/ladder`; `10-stores` was the kernel.
//!
//! # Some bits of a loop's variable are taken to be the same in all turns
//!
//! - *Breaks:* `(x & 56) >> 3`, and `x % 64 / 8`, of an `x = 2 * s + 25` that changes with a loop's variable `s`: in two of a
//!   hundred loops that load and store vectors at such an index (a swizzled row of shared memory), all turns access the
//!   element of one turn.
//! - *Versions:* nvcc 13.0, 13.2 and 13.5, in the PTX already.
//! - *Written instead:* `x >> 3 & 7` ([`digits`]): none of 2,800 random loops is wrong.
//! - *Tests:* those of `digits.rs`, `tests/kernels/memory/digits_of_a_loop.py` (on a GPU).

pub(super) mod aliases;
pub(super) mod digits;
mod signs;

use super::analysis::Facts;
use super::helpers::Helper;
use super::types;
use crate::intrin::Op;
use crate::intrin::mnemonic::InstructionCall;
use crate::intrin::row::Engine;
use crate::ir::{BinOp, DType, Expr, ExprKind, Type};

/// The helper that negates a value of a dtype, where the operator would be miscompiled.
pub(super) fn negation(dtype: DType, facts: &Facts) -> Option<Helper> {
    if types::is_16_bit_integer(dtype) {
        return Some(Helper::Negated);
    }
    loses_its_sign(dtype, facts).then_some(match dtype {
        DType::INT32 => Helper::Negated,
        _ => Helper::NegatedWide,
    })
}

fn loses_its_sign(dtype: DType, facts: &Facts) -> bool {
    dtype.is_integer() && dtype.bits >= 32 && facts.extremes
}

/// The same value written as a negation, where it is one in another form that would be miscompiled.
pub(super) fn as_negation(e: &Expr, facts: &Facts) -> Option<Expr> {
    if !loses_its_sign(e.dtype.element(), facts) {
        return None;
    }
    let zero = Expr::constant(e.dtype, 0);
    Some(Expr::binary(BinOp::Sub, zero, signs::negated(e)?))
}

/// The integer that an expression is, or each lane of it.
fn in_all_lanes(e: &Expr) -> Option<i128> {
    match &e.kind {
        ExprKind::Broadcast { value, .. } => value.as_int(),
        _ => e.as_int(),
    }
}

/// Whether a value that is compared with zero must be hidden from nvcc.
pub(super) fn hides(dtype: DType, facts: &Facts) -> bool {
    facts.adds_16_bits && types::is_16_bit_integer(dtype)
}

/// The type that a conversion between two half types goes through.
pub(super) fn half_conversion(from: DType, to: DType) -> Option<&'static str> {
    (types::is_half(from) && types::is_half(to)).then_some("float")
}

/// Whether `atomicAdd` of a dtype may be a loop of retries that ptxas merges with a loop of the kernel.
pub(super) fn spins(pointer: &Expr, dtype: DType, facts: &Facts) -> bool {
    let native = dtype.is_integer() && dtype.bits == 32;
    facts.loops && !native && may_be_shared(pointer)
}

/// Whether an address may be one of shared memory. Only the address of an element of another memory, and a global pointer, cannot be.
fn may_be_shared(pointer: &Expr) -> bool {
    match &pointer.kind {
        ExprKind::Call {
            op: Op::AddressOf,
            args,
        } => match args.get(tirx_ir::at!(AddressOf.obj)).map(|element| &element.kind) {
            Some(ExprKind::BufferLoad { buffer, .. }) => buffer.scope().starts_with("shared"),
            _ => true,
        },
        ExprKind::Var(var) => !matches!(var.ty(), Type::Pointer { scope, .. } if &**scope == "global"),
        _ => true,
    }
}

/// Whether a PTX instruction may be a loop of retries that ptxas merges with a loop of the kernel.
pub(super) fn instruction_spins(text: &str) -> bool {
    let instruction = text
        .split_whitespace()
        .find(|w| w.starts_with("atom.") || w.starts_with("red."));
    instruction.is_some_and(|instruction| {
        let words: Vec<&str> = instruction.split('.').collect();
        let has = |choice: &[&str]| choice.iter().any(|w| words.contains(w));
        let shared = words.iter().any(|w| w.starts_with("shared"));
        let one_instruction = has(&["cas", "exch", "async"]) || has(&["u32", "s32", "b32"]);
        shared && !one_instruction
    })
}

/// Whether a call is a `wgmma`.
pub(super) fn is_wgmma(call: &Expr) -> bool {
    match &call.kind {
        ExprKind::Call {
            op: Op::PtxInstruction,
            args,
        } => mnemonic(args).starts_with("wgmma.mma_async"),
        ExprKind::Call { op, .. } => op.traits().engine == Engine::Wgmma,
        _ => false,
    }
}

/// Whether no `wgmma` is in flight behind a call.
pub(super) fn waits_for_all_wgmma(call: &Expr) -> bool {
    match &call.kind {
        ExprKind::Call {
            op: Op::PtxInstruction,
            args,
        } if mnemonic(args).starts_with("wgmma.wait_group") => {
            let call = InstructionCall::read(args);
            let groups = call.as_ref().ok().and_then(|call| call.operands.first());
            groups.is_some_and(|(_, groups)| groups.first().is_some_and(|groups| groups.is_int(0)))
        }
        ExprKind::Call {
            op: Op::PtxWgmmaWaitGroup,
            args,
        } => {
            let groups = args.get(tirx_ir::at!(PtxWgmmaWaitGroup.n));
            groups.is_some_and(|groups| groups.is_int(0))
        }
        _ => false,
    }
}

fn mnemonic(args: &[Expr]) -> &str {
    let mnemonic = args.get(tirx_ir::at!(PtxInstruction.mnemonic));
    mnemonic.and_then(Expr::as_str).unwrap_or_default()
}

/// A statement that makes the retries after it a loop of their own.
pub(super) const OWN_LOOP: &str = "__syncwarp(__activemask());";

/// The definition of `tirx_atomic_add`.
pub(super) const ATOMIC_ADD: &str = "\
// ptxas 13.0 merges the retries of an `atomicAdd` to shared memory with a loop that begins with it, and lanes pass the
// barriers of that loop apart. After a vote the retries are a loop of their own.
template <typename T, typename V>
__device__ __forceinline__ T tirx_atomic_add(T* pointer, V value) {
  __syncwarp(__activemask());
  return atomicAdd(pointer, (T)value);
}
";

/// The definition of `tirx_finished`.
pub(super) const FINISHED: &str = "\
// ptxas 13.0 can move the read of an accumulator before the wait for it. The empty assembly keeps it in its register.
__device__ __forceinline__ void tirx_finished_register(float& value) { asm volatile(\"\" : \"+f\"(value) : : \"memory\"); }
__device__ __forceinline__ void tirx_finished_register(int& value) { asm volatile(\"\" : \"+r\"(value) : : \"memory\"); }
__device__ __forceinline__ void tirx_finished_register(unsigned int& value) { asm volatile(\"\" : \"+r\"(value) : : \"memory\"); }
template <typename T, int N>
__device__ __forceinline__ void tirx_finished(T (&registers)[N]) {
  #pragma unroll
  for (int i = 0; i < N; ++i) tirx_finished_register(registers[i]);
}
";

/// The definition of `tirx_negated`.
pub(super) const NEGATED: &str = "\
// A negation that ptxas 13.0 cannot spoil: of `min(min(a, -b), c)` it makes one instruction, without the sign of b, and
// the negation of a 16-bit -32768 is 32768 to it.
__device__ __forceinline__ int tirx_negated(int value) {
  int result;
  asm(\"{\\n  .reg .s32 t;\\n  not.b32 t, %1;\\n  add.s32 %0, t, 1;\\n}\" : \"=r\"(result) : \"r\"(value));
  return result;
}
";

/// The definition of `tirx_negated_wide`.
pub(super) const NEGATED_WIDE: &str = "\
// The same for unsigned and 64-bit values: ptxas 13.0 sees the negation through a conversion to `int`.
__device__ __forceinline__ uint64_t tirx_negated_wide(uint64_t value) {
  uint64_t result;
  asm(\"{\\n  .reg .s64 t;\\n  not.b64 t, %1;\\n  add.s64 %0, t, 1;\\n}\" : \"=l\"(result) : \"l\"(value));
  return result;
}
";

/// The definition of `tirx_hidden`.
pub(super) const HIDDEN: &str = "\
// A 16-bit value that nvcc 13.0 cannot see through: of `a + b == 0` it makes `a == -b`, and the negation of a 16-bit
// -32768 is 32768 to it.
__device__ __forceinline__ int tirx_hidden(int value) {
  asm(\"\" : \"+r\"(value));
  return value;
}
";
