//! The rows. See [`crate::intrin`] for what the columns mean.
//!
//! Names follow Apache TVM 0.26 (`tvm.ir.Op.list_op_names`, `tvm.script.tirx`); meanings of CUDA rows are those of the
//! CUDA C++ Programming Guide's functions of the same name.

use crate::intrin::Effect::{self, *};
use crate::intrin::OpInfo;
use crate::intrin::ResultRule::{self, *};
use crate::ir::DType;

macro_rules! ops {
    ($d:tt $($(#[doc = $doc:literal])+ $ident:ident = $name:literal, $script:literal, $arity:expr, $effect:expr, $result:expr;)*) => {
        pub(in crate::intrin) static INFO: &[OpInfo] =
            &[$(row($name, $script, $arity, $effect, $result, concat!($($doc),+))),*];
        macro_rules! table {
            (($d($d next:ident)*) $d($d before:tt)*) => {
                chain! { ($d($d next)*) $d($d before)* $( $(#[doc = $doc])+ $ident, )* }
            };
        }
    };
}

const fn row(
    name: &'static str,
    script: &'static str,
    arity: (u8, u8),
    effect: Effect,
    result: ResultRule,
    doc: &'static str,
) -> OpInfo {
    OpInfo {
        name,
        script,
        arity,
        effect,
        result,
        doc,
        row: None,
    }
}

ops! { $

    // Math on floats (and vectors of them).

    /// `exp(x)`.
    Exp = "tirx.exp", "exp", (1, 1), Pure, Arg(0);
    /// `exp2(x)`.
    Exp2 = "tirx.exp2", "exp2", (1, 1), Pure, Arg(0);
    /// `exp10(x)`.
    Exp10 = "tirx.exp10", "exp10", (1, 1), Pure, Arg(0);
    /// `erf(x)`.
    Erf = "tirx.erf", "erf", (1, 1), Pure, Arg(0);
    /// `tanh(x)`.
    Tanh = "tirx.tanh", "tanh", (1, 1), Pure, Arg(0);
    /// `sigmoid(x)`.
    Sigmoid = "tirx.sigmoid", "sigmoid", (1, 1), Pure, Arg(0);
    /// `log(x)`.
    Log = "tirx.log", "log", (1, 1), Pure, Arg(0);
    /// `log2(x)`.
    Log2 = "tirx.log2", "log2", (1, 1), Pure, Arg(0);
    /// `log10(x)`.
    Log10 = "tirx.log10", "log10", (1, 1), Pure, Arg(0);
    /// `log1p(x)`.
    Log1p = "tirx.log1p", "log1p", (1, 1), Pure, Arg(0);
    /// `tan(x)`.
    Tan = "tirx.tan", "tan", (1, 1), Pure, Arg(0);
    /// `cos(x)`.
    Cos = "tirx.cos", "cos", (1, 1), Pure, Arg(0);
    /// `cosh(x)`.
    Cosh = "tirx.cosh", "cosh", (1, 1), Pure, Arg(0);
    /// `sin(x)`.
    Sin = "tirx.sin", "sin", (1, 1), Pure, Arg(0);
    /// `sinh(x)`.
    Sinh = "tirx.sinh", "sinh", (1, 1), Pure, Arg(0);
    /// `asin(x)`.
    Asin = "tirx.asin", "asin", (1, 1), Pure, Arg(0);
    /// `acos(x)`.
    Acos = "tirx.acos", "acos", (1, 1), Pure, Arg(0);
    /// `atan(x)`.
    Atan = "tirx.atan", "atan", (1, 1), Pure, Arg(0);
    /// `acosh(x)`.
    Acosh = "tirx.acosh", "acosh", (1, 1), Pure, Arg(0);
    /// `asinh(x)`.
    Asinh = "tirx.asinh", "asinh", (1, 1), Pure, Arg(0);
    /// `atanh(x)`.
    Atanh = "tirx.atanh", "atanh", (1, 1), Pure, Arg(0);
    /// `sqrt(x)`.
    Sqrt = "tirx.sqrt", "sqrt", (1, 1), Pure, Arg(0);
    /// `rsqrt(x)`.
    Rsqrt = "tirx.rsqrt", "rsqrt", (1, 1), Pure, Arg(0);
    /// `floor(x)`.
    Floor = "tirx.floor", "floor", (1, 1), Pure, Arg(0);
    /// `ceil(x)`.
    Ceil = "tirx.ceil", "ceil", (1, 1), Pure, Arg(0);
    /// `trunc(x)`.
    Trunc = "tirx.trunc", "trunc", (1, 1), Pure, Arg(0);
    /// `round(x)`: to nearest, ties to even (as CUDA's `rint`).
    Round = "tirx.round", "round", (1, 1), Pure, Arg(0);
    /// `nearbyint(x)`.
    Nearbyint = "tirx.nearbyint", "nearbyint", (1, 1), Pure, Arg(0);
    /// `fabs(x)`.
    Fabs = "tirx.fabs", "fabs", (1, 1), Pure, Arg(0);
    /// `atan2(x, y)`.
    Atan2 = "tirx.atan2", "atan2", (2, 2), Pure, Arg(0);
    /// `pow(x, y)`.
    Pow = "tirx.pow", "pow", (2, 2), Pure, Arg(0);
    /// `fmod(x, y)`.
    Fmod = "tirx.fmod", "fmod", (2, 2), Pure, Arg(0);
    /// `hypot(x, y)`.
    Hypot = "tirx.hypot", "hypot", (2, 2), Pure, Arg(0);
    /// `copysign(x, y)`.
    Copysign = "tirx.copysign", "copysign", (2, 2), Pure, Arg(0);
    /// `nextafter(x, y)`.
    Nextafter = "tirx.nextafter", "nextafter", (2, 2), Pure, Arg(0);
    /// `ldexp(x, y)`.
    Ldexp = "tirx.ldexp", "ldexp", (2, 2), Pure, Arg(0);
    /// `x * y + z`, rounded once.
    Fma = "tirx.fma", "fma", (3, 3), Pure, Arg(0);
    /// `isnan(x)`.
    Isnan = "tirx.isnan", "isnan", (1, 1), Pure, BoolOfArg0;
    /// `isinf(x)`.
    Isinf = "tirx.isinf", "isinf", (1, 1), Pure, BoolOfArg0;
    /// `isfinite(x)`.
    Isfinite = "tirx.isfinite", "isfinite", (1, 1), Pure, BoolOfArg0;

    // Bits.

    /// `x & y`.
    BitwiseAnd = "tirx.bitwise_and", "bitwise_and", (2, 2), Pure, Arg(0);
    /// `x | y`.
    BitwiseOr = "tirx.bitwise_or", "bitwise_or", (2, 2), Pure, Arg(0);
    /// `x ^ y`.
    BitwiseXor = "tirx.bitwise_xor", "bitwise_xor", (2, 2), Pure, Arg(0);
    /// `x << y`.
    ShiftLeft = "tirx.shift_left", "shift_left", (2, 2), Pure, Arg(0);
    /// `x >> y`, arithmetic for signed `x`.
    ShiftRight = "tirx.shift_right", "shift_right", (2, 2), Pure, Arg(0);
    /// `~x`.
    BitwiseNot = "tirx.bitwise_not", "bitwise_not", (1, 1), Pure, Arg(0);
    /// Number of one bits.
    Popcount = "tirx.popcount", "popcount", (1, 1), Pure, Arg(0);
    /// Number of leading zero bits.
    Clz = "tirx.clz", "clz", (1, 1), Pure, Is(DType::INT32);
    /// A `uint64` constant from its low and high 32 bits.
    LargeUintImm = "tirx.large_uint_imm", "large_uint_imm", (2, 2), Pure, Explicit;
    /// Fixed-point multiply, round, shift.
    QMultiplyShift = "tirx.q_multiply_shift", "q_multiply_shift", (4, 4), Pure, Is(DType::INT32);
    /// Fixed-point multiply, round, shift, with the shifts of a channel.
    QMultiplyShiftPerAxis = "tirx.q_multiply_shift_per_axis", "q_multiply_shift_per_axis", (7, 7), Pure, Is(DType::INT32);
    /// Dot product of four bytes plus an accumulator.
    Dp4a = "tirx.dp4a", "dp4a", (3, 3), Pure, Explicit;

    // Control and values.

    /// Lazy choice: only the chosen value is evaluated.
    IfThenElse = "tirx.if_then_else", "if_then_else", (3, 3), Pure, Arg(1);
    /// The condition is usually true.
    Likely = "tirx.likely", "likely", (1, 1), Annotation, Arg(0);
    /// The condition holds.
    Assume = "tirx.assume", "assume", (1, 1), Opaque, Is(DType::BOOL);
    /// Any value.
    Undef = "tirx.undef", "undef", (0, 0), ReadState, Explicit;
    /// Leaves the innermost loop.
    BreakLoop = "tirx.break_loop", "break_loop", (0, 0), ControlJump, Is(DType::VOID);
    /// Next turn of the innermost loop.
    ContinueLoop = "tirx.continue_loop", "continue_loop", (0, 0), ControlJump, Is(DType::VOID);
    /// The thread ends.
    ThreadReturn = "tirx.thread_return", "thread_return", (0, 0), ControlJump, Is(DType::VOID);
    /// Returns a value from the function.
    Ret = "tirx.ret", "ret", (1, 1), ControlJump, Is(DType::VOID);
    /// The same bits as another dtype.
    Reinterpret = "tirx.reinterpret", "reinterpret", (1, 1), Pure, Explicit;
    /// Whether a pointer is null.
    IsNullptr = "tirx.isnullptr", "isnullptr", (1, 1), Pure, Is(DType::BOOL);
    /// The lower half of the lanes.
    Vectorlow = "tirx.vectorlow", "vectorlow", (1, 1), Pure, Explicit;
    /// The upper half of the lanes.
    Vectorhigh = "tirx.vectorhigh", "vectorhigh", (1, 1), Pure, Explicit;
    /// Two halves as one vector.
    Vectorcombine = "tirx.vectorcombine", "vectorcombine", (2, 2), Pure, Explicit;
    /// A dtype as an argument (of `tvm_access_ptr`).
    TypeAnnotation = "tirx.type_annotation", "type_annotation", (0, 0), Pure, Explicit;
    /// Several values as one argument.
    TvmTuple = "tirx.tvm_tuple", "tvm_tuple", (0, 255), Pure, Is(DType::HANDLE);

    // Memory.

    /// Pointer to a buffer element (argument: a load), or the address of a tensor map.
    AddressOf = "tirx.address_of", "address_of", (1, 1), Pure, AddressOf;
    /// A pointer moved by bytes and retyped.
    PtrByteOffset = "tirx.ptr_byte_offset", "ptr_byte_offset", (3, 3), Pure, Is(DType::HANDLE);
    /// A pointer moved by bytes.
    HandleAddByteOffset = "tirx.handle_add_byte_offset", "handle_add_byte_offset", (2, 2), Pure, Is(DType::HANDLE);
    /// Element offset of a buffer element.
    BufferOffset = "tirx.buffer_offset", "buffer_offset", (1, 255), Pure, Explicit;
    /// Pointer into a buffer: type annotation, data, offset, extent, mask (1 read, 2 write).
    TvmAccessPtr = "tirx.tvm_access_ptr", "tvm_access_ptr", (5, 5), Pure, Is(DType::HANDLE);
    /// Atomically adds to `*pointer`; gives the old value.
    AtomicAdd = "tirx.atomic_add", "atomic_add", (2, 2), UpdateState, Arg(1);
    /// A hint to load.
    Prefetch = "tirx.prefetch", "prefetch", (4, 4), Opaque, Is(DType::VOID);
    /// Prints a buffer from the device.
    PrintBuffer = "tirx.print_buffer", "print_buffer", (1, 255), UpdateState, Is(DType::VOID);

    // Calls out of the language.

    /// Calls a C function by name (argument 0, a string).
    CallExtern = "tirx.call_extern", "call_extern", (1, 255), Opaque, Explicit;
    /// Calls a C function without side effects.
    CallPureExtern = "tirx.call_pure_extern", "call_pure_extern", (1, 255), Pure, Explicit;
    /// Calls another function of the module by name (argument 0): `Module.g(x)` in text.
    CallFunction = "tirx.call_function", "call_function", (1, 255), Opaque, Explicit;
    /// Calls a packed function by name (argument 0): on the host, launches a device function.
    TvmCallPacked = "tirx.tvm_call_packed", "call_packed", (1, 255), Opaque, Is(DType::INT32);
    /// The same with its arguments on a stack (argument 1), from an element (2) to another (3).
    TvmCallPackedLowered = "tirx.tvm_call_packed_lowered", "call_packed_lowered", (4, 4), Opaque, Is(DType::INT32);

    // Host: the arguments of a packed call.

    /// Field `kind` (argument 2) of element `index` (1) of a structure (0).
    TvmStructGet = "tirx.tvm_struct_get", "tvm_struct_get", (3, 3), ReadState, Explicit;
    /// Sets a field of a structure.
    TvmStructSet = "tirx.tvm_struct_set", "tvm_struct_set", (4, 4), UpdateState, Is(DType::INT32);
    /// Room on the stack.
    TvmStackAlloca = "tirx.tvm_stack_alloca", "tvm_stack_alloca", (2, 2), UpdateState, Is(DType::HANDLE);
    /// Raises the last error.
    TvmThrowLastError = "tirx.tvm_throw_last_error", "tvm_throw_last_error", (0, 0), Opaque, Is(DType::HANDLE);

    // Warps and threads.

    /// Value of lane `arg`: mask, value, arg, width, warp size.
    TvmWarpShuffle = "tirx.tvm_warp_shuffle", "tvm_warp_shuffle", (5, 5), UpdateState, Arg(1);
    /// Value of the lane `arg` below: mask, value, arg, width, warp size.
    TvmWarpShuffleUp = "tirx.tvm_warp_shuffle_up", "tvm_warp_shuffle_up", (5, 5), UpdateState, Arg(1);
    /// Value of the lane `arg` above: mask, value, arg, width, warp size.
    TvmWarpShuffleDown = "tirx.tvm_warp_shuffle_down", "tvm_warp_shuffle_down", (5, 5), UpdateState, Arg(1);
    /// Value of the lane whose number differs by xor: mask, value, lane mask, width, warp size.
    TvmWarpShuffleXor = "tirx.tvm_warp_shuffle_xor", "tvm_warp_shuffle_xor", (5, 5), UpdateState, Arg(1);
    /// Mask of the lanes that are here.
    TvmWarpActivemask = "tirx.tvm_warp_activemask", "tvm_warp_activemask", (0, 0), ReadState, Is(DType::UINT32);
    /// Barrier over a scope (a string).
    TvmStorageSync = "tirx.tvm_storage_sync", "tvm_storage_sync", (1, 255), UpdateState, Is(DType::VOID);
    /// Reduction over threads.
    TvmThreadAllreduce = "tirx.tvm_thread_allreduce", "tvm_thread_allreduce", (4, 255), UpdateState, Explicit;

    // CUDA.

    /// A special register of the machine: width in bits, name (a string).
    PtxFetchRegister = "tirx.ptx.fetch_register", "ptx.fetch_register", (2, 2), ReadState, IntOfBits;
    /// Calls a raw CUDA function: name, source text, arguments.
    CudaFuncCall = "tirx.cuda.func_call", "cuda.func_call", (2, 255), Opaque, Explicit;
    /// Barrier of the block.
    CudaCtaSync = "tirx.cuda.cta_sync", "cuda.cta_sync", (0, 0), UpdateState, Is(DType::VOID);
    /// Barrier of the warp.
    CudaWarpSync = "tirx.cuda.warp_sync", "cuda.warp_sync", (0, 0), UpdateState, Is(DType::VOID);
    /// Named barrier of a warpgroup (barrier id).
    CudaWarpgroupSync = "tirx.cuda.warpgroup_sync", "cuda.warpgroup_sync", (1, 1), UpdateState, Is(DType::VOID);
    /// Barrier of the cluster.
    CudaClusterSync = "tirx.cuda.cluster_sync", "cuda.cluster_sync", (0, 0), UpdateState, Is(DType::VOID);
    /// Barrier of the grid (cooperative launch).
    CudaGridSync = "tirx.cuda.grid_sync", "cuda.grid_sync", (0, 0), UpdateState, Is(DType::VOID);
    /// Block barrier; whether the predicate holds in all threads.
    CudaSyncthreadsAnd = "tirx.cuda.syncthreads_and", "cuda.syncthreads_and", (1, 1), UpdateState, Is(DType::INT64);
    /// Block barrier; whether the predicate holds in any thread.
    CudaSyncthreadsOr = "tirx.cuda.syncthreads_or", "cuda.syncthreads_or", (1, 1), UpdateState, Is(DType::INT64);
    /// Device-wide memory fence.
    CudaThreadFence = "tirx.cuda.thread_fence", "cuda.thread_fence", (0, 0), UpdateState, Is(DType::VOID);
    /// `atomicAdd(pointer, value)`; gives the old value.
    CudaAtomicAdd = "tirx.cuda.atomic_add", "cuda.atomic_add", (2, 2), UpdateState, Arg(1);
    /// `atomicCAS(pointer, compare, value)`; gives the old value.
    CudaAtomicCas = "tirx.cuda.atomic_cas", "cuda.atomic_cas", (3, 3), UpdateState, Arg(1);
    /// Mask of the lanes whose predicate holds.
    CudaBallotSync = "tirx.cuda.ballot_sync", "cuda.ballot_sync", (2, 2), UpdateState, Is(DType::UINT32);
    /// `__shfl_sync(mask, value, arg, width)`.
    CudaShflSync = "tirx.cuda.__shfl_sync", "cuda.__shfl_sync", (4, 4), UpdateState, Arg(1);
    /// `__shfl_up_sync(mask, value, arg, width)`.
    CudaShflUpSync = "tirx.cuda.__shfl_up_sync", "cuda.__shfl_up_sync", (4, 4), UpdateState, Arg(1);
    /// `__shfl_down_sync(mask, value, arg, width)`.
    CudaShflDownSync = "tirx.cuda.__shfl_down_sync", "cuda.__shfl_down_sync", (4, 4), UpdateState, Arg(1);
    /// `__shfl_xor_sync(mask, value, arg, width)`.
    CudaShflXorSync = "tirx.cuda.__shfl_xor_sync", "cuda.__shfl_xor_sync", (4, 4), UpdateState, Arg(1);
    /// `__activemask()`.
    CudaActivemask = "tirx.cuda.__activemask", "cuda.__activemask", (0, 0), ReadState, Is(DType::UINT32);
    /// Sum over the lanes of a mask.
    CudaReduceAddSyncU32 = "tirx.cuda.reduce_add_sync_u32", "cuda.reduce_add_sync_u32", (2, 2), UpdateState, Is(DType::UINT32);
    /// Minimum over the lanes of a mask.
    CudaReduceMinSyncU32 = "tirx.cuda.reduce_min_sync_u32", "cuda.reduce_min_sync_u32", (2, 2), UpdateState, Is(DType::UINT32);
    /// Position of the lowest one bit, from 1; 0 for none.
    CudaFfsU32 = "tirx.cuda.ffs_u32", "cuda.ffs_u32", (1, 1), Pure, Is(DType::INT32);
    /// `__ldg(pointer)`.
    CudaLdg = "tirx.cuda.ldg", "cuda.ldg", (1, 2), ReadState, Explicit;
    /// Fast approximate division.
    CudaFdividef = "tirx.cuda.fdividef", "cuda.fdividef", (2, 2), Pure, Is(DType::FLOAT32);
    /// The bits of a float.
    CudaFloatAsUint = "tirx.cuda.float_as_uint", "cuda.float_as_uint", (1, 1), Pure, Is(DType::UINT32);
    /// A float from its bits.
    CudaUintAsFloat = "tirx.cuda.uint_as_float", "cuda.uint_as_float", (1, 1), Pure, Is(DType::FLOAT32);
    /// float16 to float32.
    CudaHalf2float = "tirx.cuda.half2float", "cuda.half2float", (1, 1), Pure, Is(DType::FLOAT32);
    /// bfloat16 to float32.
    CudaBfloat162float = "tirx.cuda.bfloat162float", "cuda.bfloat162float", (1, 1), Pure, Is(DType::FLOAT32);
    /// The cycle counter.
    CudaClock64 = "tirx.cuda.clock64", "cuda.clock64", (0, 0), ReadState, Is(DType::UINT64);
    /// Sleeps about so many nanoseconds.
    CudaNanoSleep = "tirx.cuda.nano_sleep", "cuda.nano_sleep", (1, 1), UpdateState, Is(DType::VOID);
    /// Linear index of the thread in its block.
    CudaThreadRank = "tirx.cuda.thread_rank", "cuda.thread_rank", (0, 0), Pure, Is(DType::INT32);
    /// `printf(format, …)` from the device.
    CudaPrintf = "tirx.cuda.printf", "cuda.printf", (1, 255), UpdateState, Is(DType::VOID);
    /// Traps unless the condition holds.
    CudaTrapWhenAssertFailed = "tirx.cuda.trap_when_assert_failed", "cuda.trap_when_assert_failed", (1, 1), UpdateState, Is(DType::VOID);
    /// Reduction over lanes: value, operation (a string), width.
    CudaWarpReduce = "tirx.cuda.warp_reduce", "cuda.warp_reduce", (2, 3), UpdateState, Arg(0);
    /// Reduction over the block: value, operation (a string), warps, scratch pointer.
    CudaCtaReduce = "tirx.cuda.cta_reduce", "cuda.cta_reduce", (4, 4), UpdateState, Arg(0);

    // Packed values: two float32 in a uint64, two bfloat16 or four float8 in a uint32.

    /// Two float32 packed.
    CudaMakeFloat2 = "tirx.cuda.make_float2", "cuda.make_float2", (2, 2), Pure, Is(DType::UINT64);
    /// The first of two packed float32.
    CudaFloat2X = "tirx.cuda.float2_x", "cuda.float2_x", (1, 1), Pure, Is(DType::FLOAT32);
    /// The second of two packed float32.
    CudaFloat2Y = "tirx.cuda.float2_y", "cuda.float2_y", (1, 1), Pure, Is(DType::FLOAT32);
    /// Sums of packed float32.
    CudaFadd2Rn = "tirx.cuda.fadd2_rn", "cuda.fadd2_rn", (2, 2), Pure, Is(DType::UINT64);
    /// Products of packed float32.
    CudaFmul2Rn = "tirx.cuda.fmul2_rn", "cuda.fmul2_rn", (2, 2), Pure, Is(DType::UINT64);
    /// Two float32 as packed bfloat16.
    CudaFloat22bfloat162Rn = "tirx.cuda.float22bfloat162_rn", "cuda.float22bfloat162_rn", (2, 2), Pure, Is(DType::UINT32);
    /// Two packed float32 as packed bfloat16.
    CudaFloat22bfloat162RnFromFloat2 = "tirx.cuda.float22bfloat162_rn_from_float2", "cuda.float22bfloat162_rn_from_float2", (1, 1), Pure, Is(DType::UINT32);
    /// Two packed bfloat16 as packed float32.
    CudaBfloat1622float2 = "tirx.cuda.bfloat1622float2", "cuda.bfloat1622float2", (1, 1), Pure, Is(DType::UINT64);
    /// The lesser of packed bfloat16, and the number where one is NaN.
    CudaHmin2 = "tirx.cuda.hmin2", "cuda.hmin2", (2, 2), Pure, Is(DType::UINT32);
    /// The greater of packed bfloat16, and the number where one is NaN.
    CudaHmax2 = "tirx.cuda.hmax2", "cuda.hmax2", (2, 2), Pure, Is(DType::UINT32);
    /// Four float32 as packed float8_e4m3fn, saturating.
    CudaFp8x4E4m3FromFloat4 = "tirx.cuda.fp8x4_e4m3_from_float4", "cuda.fp8x4_e4m3_from_float4", (4, 4), Pure, Is(DType::UINT32);

    // PTX instructions. Those with a destination take its address first; rounding, `.ftz` and `.sat` come last.

    /// `ex2.approx.ftz.f32`.
    PtxExp2 = "tirx.ptx.exp2", "ptx.exp2", (1, 1), Pure, Is(DType::FLOAT32);
    /// `rcp.approx.ftz.f32`.
    PtxRcp = "tirx.ptx.rcp", "ptx.rcp", (1, 1), Pure, Is(DType::FLOAT32);
    /// `max.f32`: a, b, ftz, nan.
    PtxMaxF32 = "tirx.ptx.max_f32", "ptx.max_f32", (4, 4), Pure, Is(DType::FLOAT32);
    /// `max.f32` of three (sm_100).
    PtxReduce3MaxF32 = "tirx.ptx.reduce3_max_f32", "ptx.reduce3_max_f32", (3, 3), Pure, Is(DType::FLOAT32);
    /// `min.f32` of three (sm_100).
    PtxReduce3MinF32 = "tirx.ptx.reduce3_min_f32", "ptx.reduce3_min_f32", (3, 3), Pure, Is(DType::FLOAT32);
    /// `add.rn.f32.bf16` (sm_100): an accumulator and the bits of a bfloat16.
    PtxAddRnF32Bf16 = "tirx.ptx.add_rn_f32_bf16", "ptx.add_rn_f32_bf16", (2, 2), Pure, Is(DType::FLOAT32);
    /// Whether any lane of a mask has a predicate.
    PtxAnySync = "tirx.ptx.any_sync", "ptx.any_sync", (2, 2), UpdateState, Is(DType::INT32);
    /// Position of the n-th set bit from a base: mask, base, offset.
    PtxFnsB32 = "tirx.ptx.fns_b32", "ptx.fns_b32", (3, 3), Pure, Is(DType::UINT32);
    /// Waits for the grids that this one depends on.
    PtxGriddepcontrolWait = "tirx.ptx.griddepcontrol_wait", "ptx.griddepcontrol.wait", (0, 0), UpdateState, Is(DType::VOID);
    /// Lets dependent grids start.
    PtxGriddepcontrolLaunchDependents = "tirx.ptx.griddepcontrol_launch_dependents", "ptx.griddepcontrol.launch_dependents", (0, 0), UpdateState, Is(DType::VOID);
    /// `add.f32`.
    PtxAddF32 = "tirx.ptx.add_f32", "ptx.add_f32", (6, 6), UpdateState, Is(DType::VOID);
    /// `add.f64`.
    PtxAddF64 = "tirx.ptx.add_f64", "ptx.add_f64", (6, 6), UpdateState, Is(DType::VOID);
    /// `add.f32x2` (sm_100) of packed values; rounding, `.ftz`, whether there is a destination, the dtype.
    PtxAddF32x2 = "tirx.ptx.add_f32x2", "ptx.add_f32x2", (6, 7), UpdateState, Explicit;
    /// `sub.f32`.
    PtxSubF32 = "tirx.ptx.sub_f32", "ptx.sub_f32", (6, 6), UpdateState, Is(DType::VOID);
    /// `sub.f64`.
    PtxSubF64 = "tirx.ptx.sub_f64", "ptx.sub_f64", (6, 6), UpdateState, Is(DType::VOID);
    /// `sub.f32x2` (sm_100) of packed values; rounding, `.ftz`, whether there is a destination, the dtype.
    PtxSubF32x2 = "tirx.ptx.sub_f32x2", "ptx.sub_f32x2", (6, 7), UpdateState, Explicit;
    /// `mul.f32`.
    PtxMulF32 = "tirx.ptx.mul_f32", "ptx.mul_f32", (6, 6), UpdateState, Is(DType::VOID);
    /// `mul.f64`.
    PtxMulF64 = "tirx.ptx.mul_f64", "ptx.mul_f64", (6, 6), UpdateState, Is(DType::VOID);
    /// `mul.f32x2` (sm_100) of packed values; rounding, `.ftz`, whether there is a destination, the dtype.
    PtxMulF32x2 = "tirx.ptx.mul_f32x2", "ptx.mul_f32x2", (6, 7), UpdateState, Explicit;
    /// `fma.f32`.
    PtxFmaF32 = "tirx.ptx.fma_f32", "ptx.fma_f32", (7, 7), UpdateState, Is(DType::VOID);
    /// `fma.f64`.
    PtxFmaF64 = "tirx.ptx.fma_f64", "ptx.fma_f64", (7, 7), UpdateState, Is(DType::VOID);
    /// `fma.f32x2` (sm_100) of packed values; rounding, `.ftz`, whether there is a destination, the dtype.
    PtxFmaF32x2 = "tirx.ptx.fma_f32x2", "ptx.fma_f32x2", (7, 8), UpdateState, Explicit;

    // Loads, stores and atomics of PTX: operands, then modifiers; see `memory`.

    /// `ld`, weak unless said.
    PtxLd = "tirx.ptx.ld", "ptx.ld", (2, 32), UpdateState, Explicit;
    /// `ld.global.nc`: of memory that does not change while the kernel runs.
    PtxLdGlobalNc = "tirx.ptx.ld_global_nc", "ptx.ld_global_nc", (2, 32), UpdateState, Explicit;
    /// `ld.relaxed`.
    PtxLdRelaxed = "tirx.ptx.ld_relaxed", "ptx.ld_relaxed", (2, 32), UpdateState, Explicit;
    /// `ld.acquire`.
    PtxLdAcquire = "tirx.ptx.ld_acquire", "ptx.ld_acquire", (2, 32), UpdateState, Explicit;
    /// `ld.volatile`.
    PtxLdVolatile = "tirx.ptx.ld_volatile", "ptx.ld_volatile", (2, 32), UpdateState, Explicit;
    /// `ld.mmio`.
    PtxLdMmio = "tirx.ptx.ld_mmio", "ptx.ld_mmio", (2, 32), UpdateState, Explicit;
    /// `st`.
    PtxSt = "tirx.ptx.st", "ptx.st", (2, 32), UpdateState, Is(DType::VOID);
    /// `st.relaxed`.
    PtxStRelaxed = "tirx.ptx.st_relaxed", "ptx.st_relaxed", (2, 32), UpdateState, Is(DType::VOID);
    /// `st.release`.
    PtxStRelease = "tirx.ptx.st_release", "ptx.st_release", (2, 32), UpdateState, Is(DType::VOID);
    /// `st.volatile`.
    PtxStVolatile = "tirx.ptx.st_volatile", "ptx.st_volatile", (2, 32), UpdateState, Is(DType::VOID);
    /// `st.mmio`.
    PtxStMmio = "tirx.ptx.st_mmio", "ptx.st_mmio", (2, 32), UpdateState, Is(DType::VOID);
    /// `atom`: address, value, cache policy; gives what was there.
    PtxAtomScalar = "tirx.ptx.atom_scalar", "ptx.atom_scalar", (2, 32), UpdateState, Explicit;
    /// `red`: address, value, cache policy.
    PtxRedScalar = "tirx.ptx.red_scalar", "ptx.red_scalar", (2, 32), UpdateState, Is(DType::VOID);
    /// Barrier of a number of threads: barrier id, threads.
    PtxBarSync = "tirx.ptx.bar.sync", "ptx.bar.sync", (2, 2), UpdateState, Is(DType::VOID);
    /// Arrives at a barrier without waiting: barrier id, threads.
    PtxBarArrive = "tirx.ptx.bar.arrive", "ptx.bar.arrive", (2, 2), UpdateState, Is(DType::VOID);
    /// As `ptx.bar.sync`, also where a warp has diverged.
    PtxBarrierSync = "tirx.ptx.barrier.sync", "ptx.barrier.sync", (2, 2), UpdateState, Is(DType::VOID);
    /// `fence`: order and scope (strings).
    PtxFence = "tirx.ptx.fence", "ptx.fence", (2, 2), UpdateState, Is(DType::VOID);
    /// The address of another block's shared memory in the cluster: pointer, rank, space, PTX type, dtype.
    PtxMapa = "tirx.ptx.mapa", "ptx.mapa", (5, 5), Pure, Explicit;
    /// Two float32 in memory to two float16: destination, source.
    CudaFloat22half2 = "tirx.cuda.float22half2", "cuda.float22half2", (2, 2), UpdateState, Is(DType::VOID);
    /// Eight float16 in memory to eight float32: source, destination.
    CudaHalf8tofloat8 = "tirx.cuda.half8tofloat8", "cuda.half8tofloat8", (2, 2), UpdateState, Is(DType::VOID);
    /// Eight float32 in memory to eight float16: source, destination.
    CudaFloat8tohalf8 = "tirx.cuda.float8tohalf8", "cuda.float8tohalf8", (2, 2), UpdateState, Is(DType::VOID);
    /// The address in shared memory of a generic pointer.
    CudaCvtaGenericToShared = "tirx.cuda.cvta_generic_to_shared", "cuda.cvta_generic_to_shared", (1, 1), Pure, Is(DType::UINT32);
    /// The address in shared memory of what `ptx.mapa` gave.
    CudaSmemAddrFromUint64 = "tirx.cuda.smem_addr_from_uint64", "cuda.smem_addr_from_uint64", (1, 1), Pure, Is(DType::UINT32);
    /// `cvt`: operands, then what the instruction says; see `convert`.
    PtxCvt = "tirx.ptx.cvt", "ptx.cvt", (12, 18), Pure, Explicit;
    /// `ld.acquire.gpu.global` to an element: destination, source (pointers; text names the element itself).
    PtxLdGlobalAcquire = "tirx.ptx.ld_global_acquire", "ptx.ld_global_acquire", (2, 2), UpdateState, Is(DType::VOID);
    /// `ld.global.nc.f32` under a condition, else 0: array, condition, source (text names the element), index.
    PtxLdg32 = "tirx.ptx.ldg32", "ptx.ldg32", (4, 4), UpdateState, Is(DType::VOID);
    /// `st.bulk` (sm_100): zeros to shared memory: pointer, bytes, weak, space.
    PtxStBulk = "tirx.ptx.st_bulk", "ptx.st_bulk", (4, 4), UpdateState, Is(DType::VOID);
    /// 1 in one lane of the warp.
    PtxElectSync = "tirx.ptx.elect_sync", "ptx.elect_sync", (0, 0), UpdateState, Is(DType::UINT32);
    /// Registers of a warp: whether more, how many.
    PtxSetmaxnreg = "tirx.ptx.setmaxnreg", "ptx.setmaxnreg", (2, 2), UpdateState, Is(DType::VOID);
    /// Arrives at the cluster's barrier: order (a string), whether the warp does together.
    PtxBarrierClusterArrive = "tirx.ptx.barrier_cluster_arrive", "ptx.barrier.cluster.arrive", (2, 2), UpdateState, Is(DType::VOID);
    /// Waits at the cluster's barrier: whether to acquire, whether the warp does together.
    PtxBarrierClusterWait = "tirx.ptx.barrier_cluster_wait", "ptx.barrier.cluster.wait", (2, 2), UpdateState, Is(DType::VOID);
    /// Makes initialized barriers known to the cluster.
    PtxFenceMbarrierInit = "tirx.ptx.fence_mbarrier_init", "ptx.fence.mbarrier_init", (0, 0), UpdateState, Is(DType::VOID);
    /// Orders accesses of threads and of asynchronous engines: space (a string).
    PtxFenceProxyAsync = "tirx.ptx.fence_proxy_async", "ptx.fence.proxy_async", (1, 1), UpdateState, Is(DType::VOID);
    /// Begins a profile: buffer, tag, offset (pointers), groups, group.
    CudaTimerInit = "tirx.timer_init_cuda", "cuda.timer_init", (5, 5), UpdateState, Is(DType::VOID);
    /// An event begins: event, buffer, tag, offset, stride, whether this thread says so.
    CudaTimerStart = "tirx.timer_start_cuda", "cuda.timer_start", (6, 6), UpdateState, Is(DType::VOID);
    /// An event ends: event, buffer, tag, offset, stride, whether this thread says so.
    CudaTimerEnd = "tirx.timer_end_cuda", "cuda.timer_end", (6, 6), UpdateState, Is(DType::VOID);
    /// A profile ends: buffer, tag, offset, stride, whether this thread says so.
    CudaTimerFinalize = "tirx.timer_finalize_cuda", "cuda.timer_finalize", (5, 5), UpdateState, Is(DType::VOID);
}
