//! What does the simulator do with each operation? Exhaustive: an operation without a meaning does not compile.

use tirx_ir::intrin::Op;

/// What the simulator does with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is compiled, by `call` and the files that it names.
    Compiled,
    /// It never occurs in a final device function.
    Lowered,
    /// It belongs to host functions.
    Host,
}

/// What an operation means to the simulator.
#[rustfmt::skip]
pub(super) fn meaning(op: Op) -> Meaning {
    use Meaning::{Compiled, Host, Lowered};
    match op {
        // The table of operations without a row of their own.
        Op::Exp |
        Op::Exp2 |
        Op::Exp10 |
        Op::Erf |
        Op::Tanh |
        Op::Sigmoid |
        Op::Log |
        Op::Log2 |
        Op::Log10 |
        Op::Log1p |
        Op::Tan |
        Op::Cos |
        Op::Cosh |
        Op::Sin |
        Op::Sinh |
        Op::Asin |
        Op::Acos |
        Op::Atan |
        Op::Acosh |
        Op::Asinh |
        Op::Atanh |
        Op::Sqrt |
        Op::Rsqrt |
        Op::Floor |
        Op::Ceil |
        Op::Trunc |
        Op::Round |
        Op::Nearbyint |
        Op::Fabs |
        Op::Atan2 |
        Op::Pow |
        Op::Fmod |
        Op::Hypot |
        Op::Copysign |
        Op::Nextafter |
        Op::Ldexp |
        Op::Fma |
        Op::Isnan |
        Op::Isinf |
        Op::Isfinite |
        Op::BitwiseAnd |
        Op::BitwiseOr |
        Op::BitwiseXor |
        Op::ShiftLeft |
        Op::ShiftRight |
        Op::BitwiseNot |
        Op::Popcount |
        Op::Clz |
        Op::LargeUintImm |
        Op::QMultiplyShift |
        Op::Dp4a |
        Op::IfThenElse |
        Op::Likely |
        Op::Assume |
        Op::Undef |
        Op::BreakLoop |
        Op::ContinueLoop |
        Op::ThreadReturn |
        Op::Reinterpret |
        Op::IsNullptr |
        Op::Vectorlow |
        Op::Vectorhigh |
        Op::Vectorcombine |
        Op::AddressOf |
        Op::PtrByteOffset |
        Op::HandleAddByteOffset |
        Op::TvmAccessPtr |
        Op::AtomicAdd |
        Op::Prefetch |
        Op::PrintBuffer |
        Op::CallExtern |
        Op::CallPureExtern |
        Op::TvmWarpShuffle |
        Op::TvmWarpShuffleUp |
        Op::TvmWarpShuffleDown |
        Op::TvmWarpShuffleXor |
        Op::TvmWarpActivemask |
        Op::TvmStorageSync |
        Op::PtxFetchRegister |
        Op::CudaFuncCall |
        Op::CudaCtaSync |
        Op::CudaWarpSync |
        Op::CudaWarpgroupSync |
        Op::CudaClusterSync |
        Op::CudaGridSync |
        Op::CudaSyncthreadsAnd |
        Op::CudaSyncthreadsOr |
        Op::CudaThreadFence |
        Op::CudaAtomicAdd |
        Op::CudaAtomicCas |
        Op::CudaBallotSync |
        Op::CudaShflSync |
        Op::CudaShflUpSync |
        Op::CudaShflDownSync |
        Op::CudaShflXorSync |
        Op::CudaActivemask |
        Op::CudaReduceAddSyncU32 |
        Op::CudaReduceMinSyncU32 |
        Op::CudaFfsU32 |
        Op::CudaLdg |
        Op::CudaFdividef |
        Op::CudaFloatAsUint |
        Op::CudaUintAsFloat |
        Op::CudaHalf2float |
        Op::CudaBfloat162float |
        Op::CudaClock64 |
        Op::CudaNanoSleep |
        Op::CudaThreadRank |
        Op::CudaPrintf |
        Op::CudaTrapWhenAssertFailed |
        Op::CudaWarpReduce |
        Op::CudaCtaReduce |
        Op::CudaMakeFloat2 |
        Op::CudaFloat2X |
        Op::CudaFloat2Y |
        Op::CudaFadd2Rn |
        Op::CudaFmul2Rn |
        Op::CudaFloat22bfloat162Rn |
        Op::CudaFloat22bfloat162RnFromFloat2 |
        Op::CudaBfloat1622float2 |
        Op::CudaHmin2 |
        Op::CudaHmax2 |
        Op::CudaFp8x4E4m3FromFloat4 |
        Op::PtxInstruction |
        Op::PtxExp2 |
        Op::PtxRcp |
        Op::PtxMaxF32 |
        Op::PtxReduce3MaxF32 |
        Op::PtxReduce3MinF32 |
        Op::PtxAddRnF32Bf16 |
        Op::PtxAnySync |
        Op::PtxFnsB32 |
        Op::PtxLop3B32 |
        Op::PtxGriddepcontrolWait |
        Op::PtxGriddepcontrolLaunchDependents |
        Op::PtxAddF32 |
        Op::PtxAddF64 |
        Op::PtxAddF32x2 |
        Op::PtxSubF32 |
        Op::PtxSubF64 |
        Op::PtxSubF32x2 |
        Op::PtxMulF32 |
        Op::PtxMulF64 |
        Op::PtxMulF32x2 |
        Op::PtxFmaF32 |
        Op::PtxFmaF64 |
        Op::PtxFmaF32x2 |
        Op::PtxLd |
        Op::PtxLdGlobalNc |
        Op::PtxLdRelaxed |
        Op::PtxLdAcquire |
        Op::PtxLdVolatile |
        Op::PtxLdMmio |
        Op::PtxSt |
        Op::PtxStRelaxed |
        Op::PtxStRelease |
        Op::PtxStVolatile |
        Op::PtxStMmio |
        Op::PtxAtomScalar |
        Op::PtxRedScalar |
        Op::PtxBarSync |
        Op::PtxBarArrive |
        Op::PtxBarrierSync |
        Op::PtxFence |
        Op::PtxMapa |
        Op::CudaFloat22half2 |
        Op::CudaHalf8tofloat8 |
        Op::CudaFloat8tohalf8 |
        Op::CudaCvtaGenericToShared |
        Op::CudaSmemAddrFromUint64 |
        Op::PtxCvt |
        Op::PtxLdGlobalAcquire |
        Op::PtxLdg32 |
        Op::PtxStBulk |
        Op::PtxElectSync |
        Op::PtxSetmaxnreg |
        Op::PtxBarrierClusterArrive |
        Op::PtxBarrierClusterWait |
        Op::PtxFenceMbarrierInit |
        Op::PtxFenceProxyAsync |
        Op::CudaTimerInit |
        Op::CudaTimerStart |
        Op::CudaTimerEnd |
        Op::CudaTimerFinalize => Compiled,
        Op::TvmCallPacked |
        Op::TvmCallPackedLowered |
        Op::TvmStructGet |
        Op::TvmStructSet |
        Op::TvmStackAlloca |
        Op::TvmThrowLastError => Host,
        Op::QMultiplyShiftPerAxis |
        Op::TypeAnnotation |
        Op::TvmTuple |
        Op::Filter |
        Op::BufferOffset |
        Op::CallFunction |
        Op::Ret |
        Op::PtxAddr |
        Op::TvmThreadAllreduce => Lowered,

        // mbarrier
        Op::PtxMbarrierInit |
        Op::PtxMbarrierInval |
        Op::PtxMbarrierArrive |
        Op::PtxMbarrierArriveExpectTx |
        Op::PtxMbarrierArriveNoComplete |
        Op::PtxMbarrierExpectTx |
        Op::PtxMbarrierCompleteTx |
        Op::PtxMbarrierTryWait |
        Op::PtxMbarrierTryWaitAcquireCluster |
        Op::PtxMbarrierTryWaitOnce |
        Op::PtxMbarrierTestWaitParity => Compiled,

        // copies
        Op::PtxCpAsync => Compiled,
        Op::PtxCpAsyncCommitGroup => Compiled,
        Op::PtxCpAsyncWaitGroup => Compiled,
        Op::PtxCpAsyncMbarrierArrive => Compiled,
        Op::PtxCpAsyncBulkG2sCta => Compiled,
        Op::PtxCpAsyncBulkG2sCluster => Compiled,
        Op::PtxCpAsyncBulkS2sCluster => Compiled,
        Op::PtxCpAsyncBulkSharedToCluster => Compiled,
        Op::PtxCpAsyncBulkS2g => Compiled,
        Op::PtxCpAsyncBulkCommitGroup => Compiled,
        Op::PtxCpAsyncBulkWaitGroup => Compiled,
        Op::PtxCpAsyncBulkTensorG2sCta => Compiled,
        Op::PtxCpAsyncBulkTensorG2sCluster => Compiled,
        Op::PtxCpAsyncBulkTensorS2g => Compiled,
        Op::PtxCpAsyncBulkTensorS2gReduce => Compiled,
        Op::PtxCpAsyncBulkTensorPrefetch => Compiled,
        Op::PtxPrefetchTensormap => Compiled,
        Op::PtxClcTryCancel => Compiled,
        Op::PtxClcQueryCancel => Compiled,

        // matrix
        Op::PtxLdmatrix => Compiled,
        Op::PtxStmatrix => Compiled,
        Op::PtxMma => Compiled,

        // wgmma
        Op::PtxWgmmaFence => Compiled,
        Op::PtxWgmmaCommitGroup => Compiled,
        Op::PtxWgmmaWaitGroup => Compiled,
        Op::PtxWgmmaNoopBarrier => Compiled,
        Op::PtxWgmmaEncodeMatrixDescriptor => Compiled,
        Op::PtxWgmmaMmaAsyncSs => Compiled,
        Op::PtxWgmmaMmaAsyncRs => Compiled,

        // tcgen05
        Op::PtxTcgen05FenceBeforeThreadSync => Compiled,
        Op::PtxTcgen05FenceAfterThreadSync => Compiled,
        Op::PtxTcgen05WaitLd => Compiled,
        Op::PtxTcgen05WaitSt => Compiled,
        Op::PtxTcgen05Alloc => Compiled,
        Op::PtxTcgen05Dealloc => Compiled,
        Op::PtxTcgen05RelinquishAllocPermit => Compiled,
        Op::PtxTcgen05Shift => Compiled,
        Op::PtxTcgen05Ld => Compiled,
        Op::PtxTcgen05St => Compiled,
        Op::PtxTcgen05Cp => Compiled,
        Op::PtxTcgen05Commit => Compiled,
        Op::PtxTcgen05EncodeMatrixDescriptor => Compiled,
        Op::PtxTcgen05EncodeInstrDescriptor => Compiled,
        Op::PtxTcgen05EncodeInstrDescriptorBlockScaled => Compiled,
        Op::PtxTcgen05Mma => Compiled,
        Op::PtxTcgen05MmaSp => Compiled,
        Op::PtxTcgen05MmaBlockScale => Compiled,
        Op::PtxTcgen05MmaSpBlockScale => Compiled,
        Op::CudaGetTmemAddr => Compiled,
        Op::CudaRuntimeInstrDesc => Compiled,

        // nvshmem
        Op::NvshmemMyPe => Compiled,
        Op::NvshmemNPes => Compiled,
        Op::NvshmemQuiet => Compiled,
        Op::NvshmemFence => Compiled,
        Op::NvshmemBarrierAll => Compiled,
        Op::NvshmemGetmemNbi => Compiled,
        Op::NvshmemGetmemNbiWarp => Compiled,
        Op::NvshmemGetmemNbiBlock => Compiled,
        Op::NvshmemPutmemNbi => Compiled,
        Op::NvshmemPutmemNbiWarp => Compiled,
        Op::NvshmemPutmemNbiBlock => Compiled,
        Op::NvshmemPutmemSignalNbi => Compiled,
        Op::NvshmemPutmemSignalNbiWarp => Compiled,
        Op::NvshmemPutmemSignalNbiBlock => Compiled,
        Op::NvshmemSignalOp => Compiled,
        Op::NvshmemWaitUntil => Compiled,
        Op::PtxMmaSp => Compiled,

        // iket
        Op::CudaIketMark | Op::CudaIketRangeStart | Op::CudaIketRangeEnd | Op::CudaIketRangePush | Op::CudaIketRangePop
        | Op::CudaIketSentinelToken => Compiled,
    }
}
