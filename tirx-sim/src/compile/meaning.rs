//! What does the simulator do with each operation? Exhaustive: an operation without a meaning does not compile.
//!
//! An arm names the function that compiles the operation, so that what is listed here as run is run.

use tirx_ir::intrin::Op;
use tirx_ir::{BinOp, DType, at};
use tirx_source::diagnostic::Result;

use super::Compiler;
use super::call::Call;
use super::instructions::{self, F32X2};
use super::ptx_memory::{EIGHT_FLOATS_TO_HALVES, EIGHT_HALVES_TO_FLOATS, TWO_FLOATS_TO_HALVES};
use super::registers::Val;
use super::remote::QUIET;
use super::warp::THREADFENCE;
use tirx_sim_machine::alu::{Bin, Un};
use tirx_sim_machine::bytecode::{
    AsyncInst, AtomicOp, Class, Direction, Inst, MbarrierWhat, RemoteScope, Scope, ShuffleMode, Special,
    TensorInst, TensorMemoryInst,
};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::rounded::Operation;

/// What the simulator does with an operation.
pub(super) enum Meaning {
    /// Computes a value: one `Val` for each lane of the call's dtype.
    Value(fn(&mut Compiler<'_>, &Call<'_>) -> Result<Vec<Val>>),
    /// Acts, and has no value.
    Effect(fn(&mut Compiler<'_>, &Call<'_>) -> Result<()>),
    /// Acts, and has a value that the call need not take: its dtype may be void.
    Either(fn(&mut Compiler<'_>, &Call<'_>) -> Result<Vec<Val>>),
    /// It never occurs in a final device function.
    Lowered,
    /// It belongs to host functions.
    Host,
}

fn one(value: Val) -> Vec<Val> {
    vec![value]
}

/// What an operation means to the simulator.
#[rustfmt::skip]
pub(super) fn meaning(op: Op) -> Meaning {
    use Meaning::{Effect, Either, Host, Lowered, Value};
    match op {
        // Arithmetic, lane by lane.
        Op::Exp => Value(|c, call| c.unary(call, Un::Exp)),
        Op::Exp2 => Value(|c, call| c.unary(call, Un::Exp2)),
        Op::Exp10 => Value(|c, call| c.unary(call, Un::Exp10)),
        Op::Erf => Value(|c, call| c.unary(call, Un::Erf)),
        Op::Tanh => Value(|c, call| c.unary(call, Un::Tanh)),
        Op::Sigmoid => Value(|c, call| c.unary(call, Un::Sigmoid)),
        Op::Log => Value(|c, call| c.unary(call, Un::Log)),
        Op::Log2 => Value(|c, call| c.unary(call, Un::Log2)),
        Op::Log10 => Value(|c, call| c.unary(call, Un::Log10)),
        Op::Log1p => Value(|c, call| c.unary(call, Un::Log1p)),
        Op::Tan => Value(|c, call| c.unary(call, Un::Tan)),
        Op::Cos => Value(|c, call| c.unary(call, Un::Cos)),
        Op::Cosh => Value(|c, call| c.unary(call, Un::Cosh)),
        Op::Sin => Value(|c, call| c.unary(call, Un::Sin)),
        Op::Sinh => Value(|c, call| c.unary(call, Un::Sinh)),
        Op::Asin => Value(|c, call| c.unary(call, Un::Asin)),
        Op::Acos => Value(|c, call| c.unary(call, Un::Acos)),
        Op::Atan => Value(|c, call| c.unary(call, Un::Atan)),
        Op::Acosh => Value(|c, call| c.unary(call, Un::Acosh)),
        Op::Asinh => Value(|c, call| c.unary(call, Un::Asinh)),
        Op::Atanh => Value(|c, call| c.unary(call, Un::Atanh)),
        Op::Sqrt => Value(|c, call| c.unary(call, Un::Sqrt)),
        Op::Rsqrt => Value(|c, call| c.unary(call, Un::Rsqrt)),
        Op::Floor => Value(|c, call| c.unary(call, Un::Floor)),
        Op::Ceil => Value(|c, call| c.unary(call, Un::Ceil)),
        Op::Trunc => Value(|c, call| c.unary(call, Un::Trunc)),
        // To nearest even, as the CUDA text has it.
        Op::Round => Value(|c, call| c.unary(call, Un::Nearbyint)),
        Op::Nearbyint => Value(|c, call| c.unary(call, Un::Nearbyint)),
        Op::Fabs => Value(|c, call| c.unary(call, Un::Abs)),
        Op::Atan2 => Value(|c, call| c.function_of_two(call, Bin::Atan2)),
        Op::Pow => Value(|c, call| c.function_of_two(call, Bin::Pow)),
        Op::Fmod => Value(|c, call| c.function_of_two(call, Bin::Fmod)),
        Op::Hypot => Value(|c, call| c.function_of_two(call, Bin::Hypot)),
        Op::Copysign => Value(|c, call| c.function_of_two(call, Bin::Copysign)),
        Op::Nextafter => Value(|c, call| c.function_of_two(call, Bin::Nextafter)),
        Op::BitwiseAnd => Value(|c, call| c.bitwise(call, Bin::And)),
        Op::BitwiseOr => Value(|c, call| c.bitwise(call, Bin::Or)),
        Op::BitwiseXor => Value(|c, call| c.bitwise(call, Bin::Xor)),
        Op::ShiftLeft => Value(|c, call| c.bitwise(call, Bin::Shl)),
        Op::ShiftRight => Value(|c, call| c.bitwise(call, Bin::ShrS)),
        Op::Ldexp => Value(|c, call| c.each_lane(call, Compiler::ldexp)),
        Op::CudaFdividef => Value(|c, call| c.each_lane(call, |c, v| c.binary(BinOp::Div, v[0], v[1]))),
        Op::Fma => Value(|c, call| c.each_lane(call, |c, v| c.fma(v[0], v[1], v[2]))),
        Op::Isnan => Value(|c, call| c.each_lane(call, |c, v| c.classify(Op::Isnan, v[0]))),
        Op::Isinf => Value(|c, call| c.each_lane(call, |c, v| c.classify(Op::Isinf, v[0]))),
        Op::Isfinite => Value(|c, call| c.each_lane(call, |c, v| c.classify(Op::Isfinite, v[0]))),
        Op::BitwiseNot => Value(|c, call| c.each_lane(call, |c, v| c.bit_not(v[0]))),
        Op::Popcount => Value(|c, call| c.each_lane(call, |c, v| c.popcount(v[0]))),
        Op::Clz => Value(|c, call| c.each_lane(call, |c, v| c.leading_zeros(v[0]))),
        Op::CudaFfsU32 => Value(|c, call| c.each_lane(call, |c, v| c.first_set(v[0]))),
        Op::CudaHalf2float => Value(|c, call| c.each_lane(call, |c, v| c.convert(v[0], Kind::F32))),
        Op::CudaBfloat162float => Value(|c, call| c.each_lane(call, |c, v| c.convert(v[0], Kind::F32))),
        Op::LargeUintImm => Value(|c, call| c.large_constant(call).map(one)),
        Op::QMultiplyShift => Value(|c, call| c.q_multiply_shift(call).map(one)),
        Op::Dp4a => Value(|c, call| c.dp4a(call).map(one)),

        // Choices, bits, vectors, control flow.
        Op::IfThenElse => Value(|c, call| c.lazy_choice(&call.args[at!(IfThenElse.cond)], &call.args[at!(IfThenElse.t)], &call.args[at!(IfThenElse.f)], call.dtype)),
        Op::Likely => Value(|c, call| c.values(&call.args[at!(Likely.cond)])),
        Op::Undef => Value(|c, call| c.undefined(call.dtype)),
        Op::Reinterpret => Value(|c, call| c.reinterpret(&call.args[at!(Reinterpret.value)], call.dtype)),
        Op::CudaFloatAsUint => Value(|c, call| c.reinterpret(&call.args[at!(CudaFloatAsUint.x)], DType::UINT32)),
        Op::CudaUintAsFloat => Value(|c, call| c.reinterpret(&call.args[at!(CudaUintAsFloat.bits)], DType::FLOAT32)),
        Op::Vectorlow => Value(|c, call| c.halves(&call.args[at!(Vectorlow.vec)]).map(|(low, _)| low)),
        Op::Vectorhigh => Value(|c, call| c.halves(&call.args[at!(Vectorhigh.vec)]).map(|(_, high)| high)),
        Op::Vectorcombine => Value(|c, call| c.joined(call.args)),
        Op::Assume => Effect(|c, call| c.assertion(&call.args[at!(Assume.cond)], "T.assume does not hold".to_string())),
        Op::CudaTrapWhenAssertFailed => Effect(|c, call| c.assertion(&call.args[at!(CudaTrapWhenAssertFailed.cond)], "trap_when_assert_failed".to_string())),
        Op::BreakLoop => Effect(|c, _| c.of_loop(Inst::Break)),
        Op::ContinueLoop => Effect(|c, _| c.of_loop(Inst::Continue)),
        // Values that functions return have been bound where they are called; a kernel returns none.
        Op::ThreadReturn | Op::Ret => Effect(|c, _| c.act(Inst::Return)),

        // Pointers, and memory through them.
        Op::IsNullptr => Value(|c, call| c.is_null(&call.args[at!(IsNullptr.x)]).map(one)),
        Op::AddressOf => Value(|c, call| c.address_of(&call.args[at!(AddressOf.obj)]).map(one)),
        Op::PtrByteOffset => Value(|c, call| c.moved(&call.args[at!(PtrByteOffset.data)], &call.args[at!(PtrByteOffset.byte_offset)], 1).map(one)),
        Op::HandleAddByteOffset => Value(|c, call| c.moved(&call.args[at!(HandleAddByteOffset.data)], &call.args[at!(HandleAddByteOffset.byte_offset)], 1).map(one)),
        Op::TvmAccessPtr => Value(|c, call| c.access_ptr(call).map(one)),
        Op::CudaLdg => Value(|c, call| c.load_through_cache(call)),
        Op::AtomicAdd => Value(|c, call| c.atomic(AtomicOp::Add, &call.args[at!(AtomicAdd.pointer)], &[&call.args[at!(AtomicAdd.value)]]).map(one)),
        Op::CudaAtomicAdd => Value(|c, call| c.atomic(AtomicOp::Add, &call.args[at!(CudaAtomicAdd.res_addr)], &[&call.args[at!(CudaAtomicAdd.value)]]).map(one)),
        Op::CudaAtomicCas => Value(|c, call| c.atomic(AtomicOp::Cas, &call.args[at!(CudaAtomicCas.ptr)], &[&call.args[at!(CudaAtomicCas.old_val)], &call.args[at!(CudaAtomicCas.new_val)]]).map(one)),
        Op::PtxMapa => Value(|c, call| c.mapa(call).map(one)),
        Op::CudaCvtaGenericToShared => Value(|c, call| c.raw_shared_address(&call.args[at!(CudaCvtaGenericToShared.ptr)]).map(one)),
        Op::CudaSmemAddrFromUint64 => Value(|c, call| c.raw_shared_address(&call.args[at!(CudaSmemAddrFromUint64.cluster_addr)]).map(one)),
        Op::PtxLd => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxLdGlobalNc => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxLdRelaxed => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxLdAcquire => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxLdVolatile => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxLdMmio => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxAtomScalar => Either(|c, call| c.memory_instruction(call).map(one)),
        Op::PtxSt => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxStRelaxed => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxStRelease => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxStVolatile => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxStMmio => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxRedScalar => Effect(|c, call| c.memory_instruction(call).map(drop)),
        Op::PtxLdGlobalAcquire => Effect(|c, call| c.load_acquire(call)),
        Op::PtxLdg32 => Effect(|c, call| c.load_if(call)),
        Op::PtxStBulk => Effect(|c, call| c.fill_with_zeros(call)),
        Op::Prefetch => Effect(|_, _| Ok(())),

        // Calls that leave the kernel.
        Op::CallExtern => Either(|c, call| c.call_out(call)),
        Op::CallPureExtern => Either(|c, call| c.call_out(call)),
        Op::CudaFuncCall => Either(|c, call| c.call_out(call)),
        Op::CudaPrintf => Effect(|c, call| c.printf(call)),
        Op::PrintBuffer => Effect(|c, call| c.print_buffer(call)),

        // Warps, blocks, clusters, grids.
        Op::TvmWarpShuffle => Value(|c, call| c.warp_shuffle(ShuffleMode::Index, call, "warp_id").map(one)),
        Op::CudaShflSync => Value(|c, call| c.shuffle_of_any(ShuffleMode::Index, call, "lane")),
        Op::TvmWarpShuffleUp => Value(|c, call| c.warp_shuffle(ShuffleMode::Up, call, "offset").map(one)),
        Op::CudaShflUpSync => Value(|c, call| c.shuffle_of_any(ShuffleMode::Up, call, "delta")),
        Op::TvmWarpShuffleDown => Value(|c, call| c.warp_shuffle(ShuffleMode::Down, call, "offset").map(one)),
        Op::CudaShflDownSync => Value(|c, call| c.shuffle_of_any(ShuffleMode::Down, call, "delta")),
        Op::TvmWarpShuffleXor => Value(|c, call| c.warp_shuffle(ShuffleMode::Xor, call, "lane_mask").map(one)),
        Op::CudaShflXorSync => Value(|c, call| c.shuffle_of_any(ShuffleMode::Xor, call, "lane_mask")),
        Op::TvmWarpActivemask => Value(|c, _| c.active_mask().map(one)),
        Op::CudaActivemask => Value(|c, _| c.active_mask().map(one)),
        Op::CudaBallotSync => Value(|c, call| c.ballot(call).map(one)),
        Op::CudaReduceAddSyncU32 => Value(|c, call| c.reduced_over_lanes(call, Bin::Add).map(one)),
        Op::CudaReduceMinSyncU32 => Value(|c, call| c.reduced_over_lanes(call, Bin::MinU).map(one)),
        Op::CudaWarpReduce => Value(|c, call| c.warp_reduce(call).map(one)),
        Op::CudaCtaReduce => Value(|c, call| c.cta_reduce(call).map(one)),
        Op::CudaSyncthreadsAnd => Value(|c, call| c.barrier_with_vote(&call.args[at!(CudaSyncthreadsAnd.cond)], true).map(one)),
        Op::CudaSyncthreadsOr => Value(|c, call| c.barrier_with_vote(&call.args[at!(CudaSyncthreadsOr.cond)], false).map(one)),
        Op::CudaThreadRank => Value(|c, _| c.thread_rank().map(one)),
        Op::PtxFetchRegister => Value(|c, call| c.special_register(call).map(one)),
        Op::CudaClock64 => Value(|c, _| c.clock().map(one)),
        Op::CudaNanoSleep => Effect(|c, call| c.value(&call.args[at!(CudaNanoSleep.time)]).map(drop)),
        Op::CudaCtaSync => Effect(|c, _| c.sync_block()),
        Op::CudaWarpSync => Effect(|c, _| c.act(Inst::WarpSync)),
        Op::CudaWarpgroupSync => Effect(|c, call| c.sync_warpgroup(&call.args[at!(CudaWarpgroupSync.bar_no)])),
        Op::PtxBarSync => Effect(|c, call| c.barrier_of_call(call, true, true)),
        Op::PtxBarrierSync => Effect(|c, call| c.barrier_of_call(call, false, true)),
        Op::PtxBarArrive => Effect(|c, call| c.barrier_of_call(call, true, false)),
        Op::PtxBarrierClusterArrive => Effect(|c, call| c.arrive_at_cluster(call)),
        Op::PtxBarrierClusterWait => Effect(|c, call| c.wait_for_cluster(call)),
        Op::CudaClusterSync => Effect(|c, _| c.act(Inst::ClusterSync)),
        Op::CudaGridSync => Effect(|c, _| c.sync_grid()),
        Op::TvmStorageSync => Effect(|c, call| c.storage_sync(&call.args[at!(TvmStorageSync.storage_scope)])),
        Op::CudaThreadFence => Effect(|c, _| c.act(THREADFENCE)),
        Op::PtxFence => Effect(|c, call| c.fence(call)),
        Op::PtxFenceProxyAsync => Effect(|c, call| c.fence_of_proxies(call)),
        Op::PtxFenceMbarrierInit => Effect(|c, _| c.push_async(AsyncInst::FenceInit)),
        Op::PtxSetmaxnreg => Effect(|c, call| c.set_registers(call)),
        Op::PtxGriddepcontrolWait => Effect(|c, _| c.act(Inst::PriorGrid)),
        Op::PtxGriddepcontrolLaunchDependents => Effect(|c, _| c.launch_dependents()),

        // Packed values and instructions that other operations express (`instructions`).
        Op::CudaMakeFloat2 => Value(|c, call| c.composed(call.args, instructions::float2_of)),
        Op::CudaFloat2X => Value(|c, call| c.composed(call.args, |args| instructions::half_of_float2(args, Op::Vectorlow))),
        Op::CudaFloat2Y => Value(|c, call| c.composed(call.args, |args| instructions::half_of_float2(args, Op::Vectorhigh))),
        Op::CudaFadd2Rn => Value(|c, call| c.composed(call.args, |args| instructions::on_float2(args, BinOp::Add))),
        Op::CudaFmul2Rn => Value(|c, call| c.composed(call.args, |args| instructions::on_float2(args, BinOp::Mul))),
        Op::CudaFloat22bfloat162Rn => Value(|c, call| c.composed(call.args, instructions::bfloat2_of_two)),
        Op::CudaFloat22bfloat162RnFromFloat2 => Value(|c, call| c.composed(call.args, instructions::bfloat2_of_float2)),
        Op::CudaBfloat1622float2 => Value(|c, call| c.composed(call.args, instructions::float2_of_bfloat2)),
        Op::CudaHmin2 => Value(|c, call| c.composed(call.args, |args| instructions::picked_of_bfloat2(args, BinOp::Min))),
        Op::CudaHmax2 => Value(|c, call| c.composed(call.args, |args| instructions::picked_of_bfloat2(args, BinOp::Max))),
        Op::CudaFp8x4E4m3FromFloat4 => Value(|c, call| c.composed(call.args, instructions::four_e4m3)),
        Op::PtxExp2 => Value(|c, call| c.composed(call.args, instructions::exp2)),
        Op::PtxRcp => Value(|c, call| c.composed(call.args, instructions::reciprocal)),
        Op::PtxMaxF32 => Value(|c, call| c.composed(call.args, instructions::maximum)),
        Op::PtxReduce3MaxF32 => Value(|c, call| c.composed(call.args, |args| instructions::picked_of_three(args, BinOp::Max))),
        Op::PtxReduce3MinF32 => Value(|c, call| c.composed(call.args, |args| instructions::picked_of_three(args, BinOp::Min))),
        Op::PtxAddRnF32Bf16 => Value(|c, call| c.composed(call.args, instructions::plus_bfloat16)),
        Op::PtxAnySync => Value(|c, call| c.composed(call.args, instructions::any_lane)),
        Op::PtxFnsB32 => Value(|c, call| c.nth_set(call.args)),
        Op::PtxLop3B32 => Value(|c, call| c.composed(call.args, instructions::logic_of_three)),
        Op::PtxElectSync => Value(|c, _| c.elect()),
        Op::PtxAddF32 => Either(|c, call| c.rounded_arithmetic(call, Operation::Add, DType::FLOAT32)),
        Op::PtxSubF32 => Either(|c, call| c.rounded_arithmetic(call, Operation::Sub, DType::FLOAT32)),
        Op::PtxMulF32 => Either(|c, call| c.rounded_arithmetic(call, Operation::Mul, DType::FLOAT32)),
        Op::PtxFmaF32 => Either(|c, call| c.rounded_arithmetic(call, Operation::Fma, DType::FLOAT32)),
        Op::PtxAddF64 => Either(|c, call| c.rounded_arithmetic(call, Operation::Add, DType::FLOAT64)),
        Op::PtxSubF64 => Either(|c, call| c.rounded_arithmetic(call, Operation::Sub, DType::FLOAT64)),
        Op::PtxMulF64 => Either(|c, call| c.rounded_arithmetic(call, Operation::Mul, DType::FLOAT64)),
        Op::PtxFmaF64 => Either(|c, call| c.rounded_arithmetic(call, Operation::Fma, DType::FLOAT64)),
        Op::PtxAddF32x2 => Either(|c, call| c.rounded_arithmetic(call, Operation::Add, F32X2)),
        Op::PtxSubF32x2 => Either(|c, call| c.rounded_arithmetic(call, Operation::Sub, F32X2)),
        Op::PtxMulF32x2 => Either(|c, call| c.rounded_arithmetic(call, Operation::Mul, F32X2)),
        Op::PtxFmaF32x2 => Either(|c, call| c.rounded_arithmetic(call, Operation::Fma, F32X2)),
        Op::PtxCvt => Value(|c, call| c.ptx_convert(call.args).map(one)),
        Op::CudaCvtE2m1x8F32 => Value(|c, call| c.composed(call.args, instructions::eight_in_a_word)),
        Op::CudaFloat22half2 => Effect(|c, call| c.convert_memory(call.args, &TWO_FLOATS_TO_HALVES)),
        Op::CudaHalf8tofloat8 => Effect(|c, call| c.convert_memory(call.args, &EIGHT_HALVES_TO_FLOATS)),
        Op::CudaFloat8tohalf8 => Effect(|c, call| c.convert_memory(call.args, &EIGHT_FLOATS_TO_HALVES)),
        Op::PtxInstruction => Effect(|c, call| c.mnemonic(call.args)),

        // Events of a profile, or of a tracer that does not exist here: its arguments are evaluated all the same.
        Op::CudaTimerInit => Effect(|c, call| c.timer_init(call)),
        Op::CudaTimerStart => Effect(|c, call| c.timer(call, 0)),
        Op::CudaTimerEnd => Effect(|c, call| c.timer(call, 1)),
        Op::CudaTimerFinalize => Effect(|c, call| c.timer(call, 3)),
        Op::CudaIketMark => Effect(|c, call| c.event(call.args)),
        Op::CudaIketRangeEnd => Effect(|c, call| c.event(call.args)),
        Op::CudaIketRangePush => Effect(|c, call| c.event(call.args)),
        Op::CudaIketRangePop => Effect(|c, call| c.event(call.args)),
        Op::CudaIketRangeStart => Value(|c, call| c.event_token(call.args).map(one)),
        Op::CudaIketSentinelToken => Value(|c, call| c.event_token(call.args).map(one)),

        // mbarriers.
        Op::PtxMbarrierInit => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Init, "thread_count", Scope::Cta).map(drop)),
        Op::PtxMbarrierInval => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Inval, "", Scope::Cta).map(drop)),
        Op::PtxMbarrierArrive => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Arrive, "count", Scope::Cta).map(drop)),
        Op::PtxMbarrierArriveExpectTx => Effect(|c, call| c.mbarrier(call, MbarrierWhat::ArriveExpect, "byte_count", Scope::Cta).map(drop)),
        Op::PtxMbarrierArriveNoComplete => Effect(|c, call| c.mbarrier(call, MbarrierWhat::ArriveNoComplete, "count", Scope::Cta).map(drop)),
        Op::PtxMbarrierExpectTx => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Expect, "tx_count", Scope::Cta).map(drop)),
        Op::PtxMbarrierCompleteTx => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Complete, "tx_count", Scope::Cta).map(drop)),
        Op::PtxMbarrierTryWait => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Wait, "phase", Scope::Cta).map(drop)),
        Op::PtxMbarrierTryWaitAcquireCluster => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Wait, "phase", Scope::Cluster).map(drop)),
        Op::PtxMbarrierTryWaitRelaxed => Effect(|c, call| c.mbarrier(call, MbarrierWhat::Wait, "phase", Scope::Cta).map(drop)),
        Op::PtxMbarrierTryWaitOnce => Either(|c, call| c.test_barrier(call)),
        Op::PtxMbarrierTestWaitParity => Either(|c, call| c.test_barrier(call)),

        // Asynchronous copies. Caches are not simulated.
        Op::PtxCpAsync => Effect(|c, call| c.copy(call)),
        Op::PtxCpAsyncCommitGroup => Effect(|c, _| c.push_async(AsyncInst::Commit(Class::Copy))),
        Op::PtxCpAsyncBulkCommitGroup => Effect(|c, _| c.push_async(AsyncInst::Commit(Class::Bulk))),
        Op::PtxCpAsyncWaitGroup => Effect(|c, call| c.wait_for_group(call, Class::Copy, "num")),
        Op::PtxCpAsyncBulkWaitGroup => Effect(|c, call| c.wait_for_group(call, Class::Bulk, "n")),
        Op::PtxCpAsyncMbarrierArrive => Effect(|c, call| c.arrive_when_copied(call)),
        Op::PtxCpAsyncBulkG2sCta => Effect(|c, call| c.bulk(call, "num_bytes", Some("mbarrier_ptr"))),
        Op::PtxCpAsyncBulkG2sCluster => Effect(|c, call| c.bulk(call, "num_bytes", Some("mbarrier_ptr"))),
        Op::PtxCpAsyncBulkS2sCluster => Effect(|c, call| c.bulk(call, "num_bytes", Some("mbarrier"))),
        Op::PtxCpAsyncBulkSharedToCluster => Effect(|c, call| c.bulk(call, "size", Some("mbar"))),
        Op::PtxCpAsyncBulkS2g => Effect(|c, call| c.bulk(call, "num_bytes", None)),
        Op::PtxCpAsyncBulkTensorG2sCta => Effect(|c, call| c.tile(call, "dst_ptr", Direction::In)),
        Op::PtxCpAsyncBulkTensorG2sCluster => Effect(|c, call| c.tile(call, "dst_ptr", Direction::In)),
        Op::PtxCpAsyncBulkTensorS2g => Effect(|c, call| c.tile(call, "src_ptr", Direction::Out)),
        Op::PtxCpAsyncBulkTensorS2gReduce => Effect(|c, call| c.reducing_tile(call)),
        Op::PtxCpAsyncBulkTensorPrefetch => Effect(|_, _| Ok(())),
        Op::PtxPrefetchTensormap => Effect(|_, _| Ok(())),
        Op::PtxClcTryCancel => Effect(|c, call| c.try_cancel(call)),
        Op::PtxClcQueryCancel => Value(|c, call| c.query_cancel(call).map(one)),

        // Tensor cores whose operands are in registers, and `wgmma`.
        Op::PtxLdmatrix => Effect(|c, call| c.move_rows(call, false)),
        Op::PtxStmatrix => Effect(|c, call| c.move_rows(call, true)),
        Op::PtxMma => Effect(|c, call| c.mma_sync(call)),
        Op::PtxMmaSp => Effect(|c, call| c.mma_sparse(call)),
        Op::PtxWgmmaFence => Effect(|c, _| c.push_tensor(TensorInst::WgmmaFence)),
        Op::PtxWgmmaCommitGroup => Effect(|c, _| c.push_tensor(TensorInst::WgmmaCommit)),
        Op::PtxWgmmaWaitGroup => Effect(|c, call| c.wait_for_wgmma(&call.args[at!(PtxWgmmaWaitGroup.n)])),
        Op::PtxWgmmaNoopBarrier => Effect(|_, _| Ok(())),
        Op::PtxWgmmaEncodeMatrixDescriptor => Effect(|c, call| c.encode_descriptor(call, [0, 3, 2, 1, 0], 62, 0)),
        Op::PtxWgmmaMmaAsyncSs => Effect(|c, call| c.wgmma(call)),
        Op::PtxWgmmaMmaAsyncRs => Effect(|c, call| c.wgmma(call)),

        // Tensor memory.
        Op::PtxTcgen05FenceBeforeThreadSync => Effect(|c, _| c.push_tensor(TensorInst::Memory(TensorMemoryInst::FenceBefore))),
        Op::PtxTcgen05FenceAfterThreadSync => Effect(|c, _| c.push_tensor(TensorInst::Memory(TensorMemoryInst::FenceAfter))),
        Op::PtxTcgen05WaitLd => Effect(|c, _| c.push_tensor(TensorInst::Memory(TensorMemoryInst::WaitLoad))),
        Op::PtxTcgen05WaitSt => Effect(|c, _| c.push_tensor(TensorInst::Memory(TensorMemoryInst::WaitStore))),
        Op::PtxTcgen05RelinquishAllocPermit => Effect(|c, call| c.relinquish_columns(call)),
        Op::PtxTcgen05Alloc => Effect(|c, call| c.alloc_columns(call)),
        Op::PtxTcgen05Dealloc => Effect(|c, call| c.free_columns(call)),
        Op::PtxTcgen05Shift => Effect(|c, call| c.shift_columns(call)),
        Op::PtxTcgen05Ld => Effect(|c, call| c.transfer(call, false)),
        Op::PtxTcgen05St => Effect(|c, call| c.transfer(call, true)),
        Op::PtxTcgen05Cp => Effect(|c, call| c.copy_to_columns(call)),
        Op::PtxTcgen05Commit => Effect(|c, call| c.commit(call)),
        Op::PtxTcgen05EncodeMatrixDescriptor => Effect(|c, call| c.encode_descriptor(call, [0, 6, 4, 2, 1], 61, 1 << 46)),
        Op::PtxTcgen05EncodeInstrDescriptor => Effect(|c, call| c.encode_instruction(call)),
        Op::PtxTcgen05EncodeInstrDescriptorBlockScaled => Effect(|c, call| c.encode_instruction(call)),
        Op::PtxTcgen05Mma => Effect(|c, call| c.tensor_product(call, false)),
        Op::PtxTcgen05MmaSp => Effect(|c, call| c.tensor_product(call, false)),
        Op::PtxTcgen05MmaBlockScale => Effect(|c, call| c.tensor_product(call, true)),
        Op::PtxTcgen05MmaSpBlockScale => Effect(|c, call| c.tensor_product(call, true)),
        Op::CudaGetTmemAddr => Value(|c, call| c.memory_address_within(call).map(one)),
        Op::CudaRuntimeInstrDesc => Effect(|c, call| c.scale_factor_ids(call)),

        // NVSHMEM, where there is one processing element.
        Op::NvshmemMyPe => Value(|c, _| c.rank(Special::Rank).map(one)),
        Op::NvshmemNPes => Value(|c, _| c.rank(Special::Ranks).map(one)),
        Op::NvshmemPtr => Value(|c, call| c.peer_pointer(call).map(one)),
        Op::NvshmemMcPtr => Value(|c, call| c.window_pointer(call).map(one)),
        Op::NvshmemQuiet => Effect(|c, _| c.push_async(QUIET)),
        Op::NvshmemBarrierAll => Effect(|c, _| c.barrier_of_ranks()),
        Op::NvshmemFence => Effect(|c, _| c.push_async(AsyncInst::RemoteFence)),
        Op::NvshmemGetmemNbi => Effect(|c, call| c.put_or_get(call, RemoteScope::Thread, true)),
        Op::NvshmemGetmemNbiWarp => Effect(|c, call| c.put_or_get(call, RemoteScope::Warp, true)),
        Op::NvshmemGetmemNbiBlock => Effect(|c, call| c.put_or_get(call, RemoteScope::Block, true)),
        Op::NvshmemPutmemNbi => Effect(|c, call| c.put_or_get(call, RemoteScope::Thread, false)),
        Op::NvshmemPutmemNbiWarp => Effect(|c, call| c.put_or_get(call, RemoteScope::Warp, false)),
        Op::NvshmemPutmemNbiBlock => Effect(|c, call| c.put_or_get(call, RemoteScope::Block, false)),
        Op::NvshmemPutmemSignalNbi => Effect(|c, call| c.put_or_get(call, RemoteScope::Thread, false)),
        Op::NvshmemPutmemSignalNbiWarp => Effect(|c, call| c.put_or_get(call, RemoteScope::Warp, false)),
        Op::NvshmemPutmemSignalNbiBlock => Effect(|c, call| c.put_or_get(call, RemoteScope::Block, false)),
        Op::NvshmemSignalOp => Effect(|c, call| c.put_or_get(call, RemoteScope::Thread, false)),
        Op::NvshmemWaitUntil => Effect(|c, call| c.wait_for_signal(call)),

        // Of host functions.
        Op::TvmCallPacked | Op::TvmCallPackedLowered | Op::TvmStructGet |
        Op::TvmStructSet | Op::TvmStackAlloca | Op::TvmThrowLastError => Host,

        // Gone from a final device function.
        Op::QMultiplyShiftPerAxis | Op::TypeAnnotation | Op::TvmTuple | Op::Filter | Op::BufferOffset |
        Op::CallFunction | Op::PtxAddr | Op::TvmThreadAllreduce | Op::CudaTargetIs => Lowered,
    }
}
