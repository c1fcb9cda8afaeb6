//! The instructions a device function is compiled to.
//!
//! A warp has vector registers of 32 lanes, in two files: 32-bit (`v`) and 64-bit (`w`). Values that are equal in
//! all lanes of a strand live in its scalar registers (`s`, 64-bit, shared by all kinds). A write of a vector register
//! changes the active lanes alone, so a lane's registers are its own whatever its neighbours do; scalar
//! registers belong to a strand and are copied when strands part.
//!
//! Control flow is structured. `If` parts the active lanes, `Arrive` ends each side; `LoopBegin` … `LoopLatch`
//! frame a loop whose lanes may leave at different times. Uniform branches and loops are plain jumps.

use crate::alu::{Bin, Un};
use crate::cvt::Cvt;
use crate::exec::engine::{Class, Direction};
use crate::exec::order::{Scope, Strong};
use crate::fault::FaultLocation;
use crate::numeric::Kind;
use crate::tensor::fragment::Shape;
use crate::tensor::mma::Mma;
use crate::tensor::rows::RowMove;
use crate::tensor::transfer::{Copy, Transfer};
use crate::tensor::wgmma::Wgmma;

/// A register; the instruction says of which file.
pub(crate) type R = u16;
/// A position in the code.
pub(crate) type Pc = u32;

/// An operand of rarer instructions: a vector register (32- or 64-bit as the kind says) or a scalar one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    V(R),
    S(R),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Inst {
    // Moves.
    Mov32 {
        d: R,
        a: R,
    },
    Mov64 {
        d: R,
        a: R,
    },
    MovS {
        d: R,
        a: R,
    },
    Splat32 {
        d: R,
        s: R,
    },
    Splat64 {
        d: R,
        s: R,
    },
    /// The first active lane's value.
    First32 {
        d: R,
        a: R,
    },
    First64 {
        d: R,
        a: R,
    },

    // Arithmetic: vector, vector with scalar, scalar.
    Bin32 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin32S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    BinS32 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Bin64S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    BinS64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    /// Comparisons of 64-bit operands give a 32-bit bool.
    Cmp64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Cmp64S {
        op: Bin,
        d: R,
        a: R,
        s: R,
    },
    CmpS64 {
        op: Bin,
        d: R,
        a: R,
        b: R,
    },
    Un32 {
        op: Un,
        d: R,
        a: R,
    },
    UnS32 {
        op: Un,
        d: R,
        a: R,
    },
    Un64 {
        op: Un,
        d: R,
        a: R,
    },
    UnS64 {
        op: Un,
        d: R,
        a: R,
    },
    /// `cvt` of PTX.
    Cvt {
        id: u16,
    },
    /// Addresses of shared memory: from a pointer to 32 bits and back, and to the same place in another block.
    SharedAddress {
        d: R,
        a: R,
    },
    SharedPointer {
        d: R,
        a: R,
    },
    Mapa {
        d: R,
        a: R,
        rank: R,
    },
    /// Rounds or wraps to what a kind can hold.
    Canonical {
        kind: Kind,
        d: R,
        a: R,
    },
    CanonicalS {
        kind: Kind,
        d: R,
        a: R,
    },
    Convert {
        from: Kind,
        to: Kind,
        d: R,
        a: R,
    },
    ConvertS {
        from: Kind,
        to: Kind,
        d: R,
        a: R,
    },
    /// Between a register and the bits that memory would hold.
    ToBits {
        kind: Kind,
        d: R,
        a: R,
    },
    ToBitsS {
        kind: Kind,
        d: R,
        a: R,
    },
    FromBits {
        kind: Kind,
        d: R,
        a: R,
    },
    FromBitsS {
        kind: Kind,
        d: R,
        a: R,
    },
    /// float32 `a * b + c`, rounded after each.
    MulAdd {
        d: R,
        a: R,
        b: R,
        c: R,
    },
    /// `a * b + c`, rounded once; the kind says to what.
    Fma {
        kind: Kind,
        d: R,
        a: R,
        b: R,
        c: R,
    },
    FmaS {
        kind: Kind,
        d: R,
        a: R,
        b: R,
        c: R,
    },
    Select32 {
        d: R,
        c: R,
        a: R,
        b: R,
    },
    Select64 {
        d: R,
        c: R,
        a: R,
        b: R,
    },
    SelectS {
        d: R,
        c: R,
        a: R,
        b: R,
    },

    // Uniform control flow.
    Jump {
        pc: Pc,
    },
    JumpIf {
        s: R,
        pc: Pc,
    },
    JumpIfNot {
        s: R,
        pc: Pc,
    },
    /// `i += step; if i < end jump`.
    ForStep32 {
        i: R,
        step: R,
        end: R,
        pc: Pc,
    },
    ForStep64 {
        i: R,
        step: R,
        end: R,
        pc: Pc,
    },

    // Divergent control flow.
    If {
        c: R,
        other: Pc,
        join: Pc,
    },
    Arrive,
    LoopBegin {
        latch: Pc,
        exit: Pc,
    },
    LoopTest {
        c: R,
    },
    LoopTestS {
        s: R,
    },
    LoopLatch,
    Break,
    Continue,
    Return,
    End,
    /// A turn of a loop that may wait for another thread's writes.
    Spin,
    /// Counts work: so many IR operators follow in this block.
    Step {
        weight: u32,
    },

    // Memory; the access says what and how. `plus` is a scalar added to the index.
    Load {
        d: R,
        index: R,
        plus: R,
        access: u16,
    },
    LoadWide {
        d: R,
        index: R,
        plus: R,
        access: u16,
    },
    /// One address for all lanes: a scalar result.
    LoadS {
        d: R,
        index: R,
        wide: bool,
        access: u16,
    },
    /// One index into a local array for all lanes.
    LoadRow {
        d: R,
        index: R,
        wide: bool,
        access: u16,
    },
    StoreRow {
        v: R,
        index: R,
        wide: bool,
        access: u16,
    },
    Store {
        v: R,
        index: R,
        plus: R,
        access: u16,
    },
    StoreWide {
        v: R,
        index: R,
        plus: R,
        access: u16,
    },
    /// An element of an array in registers, by an index that is the same for all lanes.
    LoadIndexed {
        d: R,
        array: u16,
        index: R,
        wide: bool,
    },
    StoreIndexed {
        v: R,
        array: u16,
        index: R,
        wide: bool,
    },
    Atomic {
        id: u16,
    },
    /// Lanes must have written bit `bit` (a promoted element); `mark` notes that they have.
    CheckInit {
        bit: u16,
    },
    MarkInit {
        bit: u16,
    },
    /// A new turn of the declaration's scope: its contents are undefined again.
    ClearInit {
        bit: u16,
    },
    /// The same for a local array.
    ClearLocal {
        array: u16,
    },

    // Warps and blocks.
    Shuffle {
        id: u16,
    },
    WarpSync,
    /// All lanes of the warp that run must be here.
    Converged,
    ActiveMask {
        d: R,
    },
    CtaSync,
    CtaSyncReduce {
        d: R,
        v: R,
        all: bool,
    },
    /// Barrier `id` of so many threads.
    NamedSync {
        id: R,
        threads: R,
    },
    /// Arrives at barrier `id` of so many threads, and goes on.
    NamedArrive {
        id: R,
        threads: R,
    },
    ClusterSync,
    ClusterArrive {
        relaxed: bool,
    },
    ClusterWait,
    GridSync,
    /// `fence` of threads within a scope.
    Fence {
        scope: Scope,
    },
    /// An asynchronous instruction, or one of mbarriers.
    Async {
        id: u16,
    },
    /// `setmaxnreg`.
    SetRegisters {
        count: u16,
    },
    /// `fence.proxy.async`.
    FenceProxy,
    /// `griddepcontrol.wait`.
    PriorGrid,
    Clock {
        d: R,
    },

    // Checks and output.
    Assert {
        c: R,
        message: u16,
    },
    Extent {
        s: R,
        axis: Axis,
    },
    Print {
        id: u16,
    },
    CallStandIn {
        id: u16,
    },
    /// What a warp does with its tensor core.
    Tensor {
        id: u16,
    },
}

/// A hardware index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Axis {
    Block(u8),
    Thread(u8),
    /// Index of the block in its cluster.
    ClusterCta(u8),
    /// Index of the cluster in the grid.
    Cluster(u8),
}

impl Axis {
    pub(crate) fn of(tag: &str) -> Option<Axis> {
        let (name, dim) = tag.split_once('.')?;
        let dim = match dim {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return None,
        };
        Some(match name {
            "blockIdx" => Axis::Block(dim),
            "threadIdx" => Axis::Thread(dim),
            "clusterCtaIdx" => Axis::ClusterCta(dim),
            "clusterIdx" => Axis::Cluster(dim),
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> String {
        let (name, dim) = match self {
            Axis::Block(d) => ("blockIdx", d),
            Axis::Thread(d) => ("threadIdx", d),
            Axis::ClusterCta(d) => ("clusterCtaIdx", d),
            Axis::Cluster(d) => ("clusterIdx", d),
        };
        format!("{name}.{}", ['x', 'y', 'z'][dim as usize])
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// Relative to a pointer parameter.
    Param(u16),
    /// A shared array.
    Shared(u16),
    /// A per-thread array.
    Local(u16),
    /// The index is an address.
    Pointer,
}

/// What a load or store does.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) region: Region,
    /// Of one element.
    pub(crate) kind: Kind,
    /// Elements, consecutive in memory and registers.
    pub(crate) count: u16,
    /// Bits the place must be a multiple of.
    pub(crate) align: u32,
    /// The loop condition polls this place: reading it synchronizes with who wrote it.
    pub(crate) poll: bool,
    /// Some loop condition polls places of this region.
    pub(crate) polled: bool,
    /// Some compare and swap updates places of this region, whose loop begins with a plain read.
    pub(crate) swapped: bool,
    /// The buffer's name.
    pub(crate) name: String,
}

/// A shared array.
#[derive(Clone, Debug)]
pub(crate) struct SharedArray {
    /// Where it starts in the block's shared memory, in bytes.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) name: String,
    pub(crate) dynamic: bool,
}

/// A per-thread array that is not held in registers.
#[derive(Clone, Debug)]
pub(crate) struct LocalArray {
    /// First word.
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) name: String,
}

/// A per-thread array in consecutive vector registers.
#[derive(Clone, Debug)]
pub(crate) struct RegisterArray {
    pub(crate) first: R,
    pub(crate) count: u16,
    /// 64-bit registers.
    pub(crate) wide: bool,
    /// The bit of the first element, where initialization is tracked.
    pub(crate) init: Option<u16>,
    pub(crate) name: String,
}

/// A `cvt` of PTX; all operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct CvtInst {
    pub(crate) cvt: Cvt,
    pub(crate) operands: Vec<(Kind, R)>,
    /// Of the result.
    pub(crate) kind: Kind,
    pub(crate) d: R,
}

/// How lanes exchange values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ShuffleMode {
    Index,
    Up,
    Down,
    Xor,
    /// Butterfly reduction over groups of `width` lanes.
    Butterfly(Bin),
    /// Mask of lanes whose value is not zero.
    Ballot,
    /// Reduction over the lanes of the mask.
    Reduce(Bin),
}

#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    pub(crate) mode: ShuffleMode,
    /// Of the value.
    pub(crate) kind: Kind,
    /// Vector, or scalar where the result is uniform.
    pub(crate) d: Operand,
    /// A vector register.
    pub(crate) value: R,
    /// 32-bit.
    pub(crate) lane: Operand,
    /// 32-bit.
    pub(crate) width: Operand,
    /// 32-bit.
    pub(crate) mask: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AtomicOp {
    Add,
    /// Compare and swap.
    Cas,
    /// Nothing: the value alone is wanted.
    Read,
    Exchange,
    And,
    Or,
    Xor,
    Min,
    Max,
    /// One more, and 0 after the value.
    Inc,
    /// One less, and the value after 0 and what is beyond it.
    Dec,
}

/// An atomic; all operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct AtomicInst {
    pub(crate) op: AtomicOp,
    pub(crate) strong: Strong,
    pub(crate) access: u16,
    /// The index as `Load` has it, 64-bit where `wide`.
    pub(crate) index: R,
    pub(crate) wide: bool,
    pub(crate) plus: R,
    pub(crate) value: R,
    /// Of compare and swap.
    pub(crate) compare: R,
    pub(crate) d: R,
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MbarrierWhat {
    Init,
    Inval,
    Arrive,
    ArriveExpect,
    ArriveNoComplete,
    Expect,
    Complete,
    /// Waits for a phase.
    Wait,
    /// Asks whether it is complete.
    Test,
}

/// An instruction of mbarriers; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct MbarrierInst {
    pub(crate) what: MbarrierWhat,
    /// A 64-bit address.
    pub(crate) barrier: R,
    /// Arrivals, bytes or parity.
    pub(crate) count: Option<R>,
    /// The rank of the block meant.
    pub(crate) remote: Option<R>,
    pub(crate) predicate: Option<R>,
    pub(crate) relaxed: bool,
    pub(crate) d: Option<R>,
}

/// A bulk copy of bytes; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct BulkInst {
    /// 64-bit addresses.
    pub(crate) to: R,
    pub(crate) from: R,
    pub(crate) bytes: R,
    /// The address of the mbarrier that counts them.
    pub(crate) barrier: Option<R>,
    /// A mask of ranks.
    pub(crate) ranks: Option<R>,
    /// Of each 16 bytes those that are written.
    pub(crate) mask: Option<R>,
    /// Bytes at the beginning and at the end that are neither read nor written.
    pub(crate) ignored: [Option<R>; 2],
}

/// A tensor copy; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct TileInst {
    pub(crate) direction: Direction,
    pub(crate) gather: bool,
    /// 64-bit addresses.
    pub(crate) map: R,
    pub(crate) shared: R,
    pub(crate) barrier: Option<R>,
    pub(crate) ranks: Option<R>,
    /// Coordinates.
    pub(crate) at: Vec<R>,
}

/// An asynchronous instruction, or one of mbarriers.
#[derive(Clone, Debug)]
pub(crate) enum AsyncInst {
    Mbarrier(MbarrierInst),
    /// `fence.mbarrier_init`.
    FenceInit,
    /// `cp.async`.
    Copy {
        to: R,
        from: R,
        bytes: u8,
        predicate: Option<R>,
        /// Zeros are written where the predicate is 0.
        zeros: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    ArriveWhenCopied {
        barrier: R,
        noinc: bool,
    },
    Bulk(BulkInst),
    Tile(TileInst),
    Commit(Class),
    /// Until at most so many groups are under way; none: nothing at all.
    Wait {
        class: Class,
        left: Option<u32>,
        read: bool,
    },
    /// `clusterlaunchcontrol.try_cancel`: 64-bit addresses.
    TryCancel {
        handle: R,
        barrier: R,
    },
    /// A thread has seen whether a cancellation was granted.
    Queried {
        found: R,
    },
    Remote(RemoteInst),
    /// `nvshmem_fence`.
    RemoteFence,
}

/// Who does an operation of NVSHMEM together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteScope {
    Thread,
    Warp,
    /// The first warp does it, after all have met.
    Block,
}

/// A copy to or from a processing element, a signal, or both; operands are vector registers.
#[derive(Clone, Debug)]
pub(crate) struct RemoteInst {
    pub(crate) scope: RemoteScope,
    /// The element meant (32-bit).
    pub(crate) pe: R,
    /// 64-bit: destination, source, bytes.
    pub(crate) copy: Option<(R, R, R)>,
    pub(crate) signal: Option<SignalInst>,
}

/// A signal: a word of 64 bits that is set or added to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalInst {
    pub(crate) address: R,
    pub(crate) value: R,
    pub(crate) adds: bool,
}

/// A `printf` or `print_buffer`: text with values between.
#[derive(Clone, Debug)]
pub(crate) struct Print {
    pub(crate) format: String,
    pub(crate) args: Vec<(Kind, R)>,
}

/// A call of a raw CUDA function.
#[derive(Clone, Debug)]
pub(crate) struct ExternCall {
    pub(crate) name: String,
    /// Vector registers.
    pub(crate) args: Vec<(Kind, R)>,
    /// Vector register of the result.
    pub(crate) result: Option<(Kind, R)>,
}

/// An instruction of the tensor core; operands are consecutive vector registers.
#[derive(Clone, Debug)]
pub(crate) enum TensorInst {
    /// `ldmatrix`, `stmatrix`: rows of 16 bytes at addresses (64-bit), through four registers at `temp`.
    Rows {
        rows: RowMove,
        address: R,
        access: u16,
        temp: R,
        registers: R,
    },
    /// `mma.sync`.
    Mma {
        mma: Mma,
        a: R,
        b: R,
        c: Option<R>,
        d: R,
        /// Of a sparse A.
        metadata: Option<R>,
    },
    /// `mma.sync` of float64.
    MmaF64 {
        shape: Shape,
        a: R,
        b: R,
        c: Option<R>,
        d: R,
    },
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait {
        n: usize,
    },
    Wgmma(WgmmaInst),
    Memory(TensorMemoryInst),
}

/// An instruction of tensor memory; registers are vector ones unless said.
#[derive(Clone, Debug)]
pub(crate) enum TensorMemoryInst {
    /// Columns (32-bit) whose address goes to shared memory at `to` (64-bit) through `temp`.
    Alloc {
        to: R,
        access: u16,
        columns: R,
        temp: R,
    },
    Dealloc {
        address: R,
        columns: R,
    },
    Relinquish,
    /// From an address to registers given by pointers.
    Load {
        transfer: Transfer,
        address: R,
        registers: Vec<Operand>,
    },
    WaitLoad,
    Store {
        transfer: Transfer,
        address: R,
        registers: Vec<Operand>,
    },
    WaitStore,
    /// Tells an mbarrier (64-bit), or those of a mask of ranks.
    Commit {
        barrier: R,
        ranks: Option<R>,
        predicate: Option<R>,
    },
    Mma(MmaInst),
    Copy {
        copy: Copy,
        group: usize,
        address: R,
        descriptor: R,
    },
    /// Rows of 32 bytes move to the next lane.
    Shift {
        group: usize,
        address: R,
    },
}

/// A `tcgen05.mma`.
#[derive(Clone, Debug)]
pub(crate) struct MmaInst {
    pub(crate) kind: crate::tensor::tcgen05::Kind,
    /// Blocks that work together.
    pub(crate) group: usize,
    pub(crate) weight_stationary: bool,
    /// Scale factors along k.
    pub(crate) blocks: usize,
    /// log2 of what the accumulators are divided by.
    pub(crate) scale: u32,
    /// The address of a sparse A's metadata (32-bit).
    pub(crate) metadata: Option<R>,
    /// A is in tensor memory: `left` (64-bit) is its address.
    pub(crate) left_in_memory: bool,
    pub(crate) left: R,
    pub(crate) right: R,
    pub(crate) d: R,
    pub(crate) descriptor: R,
    pub(crate) keep: R,
    pub(crate) off: Vec<R>,
    pub(crate) factors: Option<[R; 2]>,
    pub(crate) predicate: Option<R>,
}

/// Matrix A of a `wgmma`.
#[derive(Clone, Debug)]
pub(crate) enum LeftOperand {
    /// A 64-bit register with its descriptor.
    Shared(R),
    /// Pointers to registers.
    Registers(Vec<Operand>),
}

/// A `wgmma.mma_async`.
#[derive(Clone, Debug)]
pub(crate) struct WgmmaInst {
    pub(crate) wgmma: Wgmma,
    pub(crate) left: LeftOperand,
    /// A 64-bit register with the descriptor of B.
    pub(crate) right: R,
    /// A 32-bit register: whether what is in the accumulators is added.
    pub(crate) keep: R,
    /// Pointers to the accumulators.
    pub(crate) sums: Vec<Operand>,
}

/// What a scalar register holds when a strand starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Special {
    Param(u16),
    Index(Axis),
    /// Linear index of the warp's first thread, by axis: uniform where the block's shape makes it so.
    WarpThread(u8),
    WarpId,
    GridDim(u8),
    BlockDim(u8),
    ClusterDim(u8),
    ClusterRank,
}

/// Code and tables of one device function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    /// Block barriers within branches that some threads may not take.
    pub(crate) parted_barriers: Vec<usize>,
    pub(crate) name: String,
    pub(crate) insts: Vec<Inst>,
    /// For each instruction an index into `locations`.
    pub(crate) places: Vec<u32>,
    pub(crate) locations: Vec<Option<FaultLocation>>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) shared: Vec<SharedArray>,
    pub(crate) locals: Vec<LocalArray>,
    pub(crate) register_arrays: Vec<RegisterArray>,
    pub(crate) shuffles: Vec<Shuffle>,
    pub(crate) atomics: Vec<AtomicInst>,
    pub(crate) conversions: Vec<CvtInst>,
    pub(crate) asynchronous: Vec<AsyncInst>,
    pub(crate) prints: Vec<Print>,
    pub(crate) calls: Vec<ExternCall>,
    pub(crate) tensor: Vec<TensorInst>,
    /// Registers of local arrays may belong to an asynchronous operation.
    pub(crate) wgmma: bool,
    pub(crate) messages: Vec<String>,
    /// Pointer or kind of scalar.
    pub(crate) params: Vec<(String, Kind)>,
    /// Scalars when a strand starts: constants in place, the rest from `specials`.
    pub(crate) scalars: Vec<u64>,
    pub(crate) specials: Vec<(R, Special)>,
    /// 32-bit vector registers that hold threadIdx.
    pub(crate) thread_index: Vec<(R, u8)>,
    pub(crate) v32: usize,
    pub(crate) v64: usize,
    pub(crate) local_words: usize,
    pub(crate) init_bits: Vec<String>,
    /// Hardware indices the function names; none for a function without launch attributes.
    pub(crate) axes: Vec<Axis>,
    /// Bytes of static shared memory.
    pub(crate) static_shared: u32,
    /// log2 of the bits that shared memory is tracked by.
    pub(crate) granule: u32,
    /// The same of local memory: bytes, or halves of them.
    pub(crate) local_granule: u32,
    /// More orders the threads than block and warp barriers.
    pub(crate) fine: bool,
    /// Something else than a store may write to any global memory.
    pub(crate) writes_anywhere: bool,
    /// Blocks of the whole grid run together.
    pub(crate) grid_sync: bool,
}

/// log2 of the bits of a word, the coarsest that accesses are tracked by.
pub(crate) const WORD: u32 = 5;
/// log2 of the bits of a byte.
pub(crate) const BYTE: u32 = 3;

impl Code {
    /// The `wgmma` of a number.
    pub(crate) fn wgmma_inst(&self, id: u16) -> Option<&WgmmaInst> {
        match self.tensor.get(id as usize) {
            Some(TensorInst::Wgmma(inst)) => Some(inst),
            _ => None,
        }
    }

    /// log2 of the bits that tell apart the accesses to some regions, but at most `coarsest`.
    pub(crate) fn finest(&self, coarsest: u32, regions: impl Fn(Region) -> bool) -> u32 {
        let accesses = self.accesses.iter().filter(|a| regions(a.region));
        let smallest = accesses.map(|a| a.kind.bits().ilog2()).min();
        smallest.unwrap_or(coarsest).min(coarsest)
    }

    /// Finds out what orders the kernel's threads.
    pub(crate) fn settle_order(&mut self) {
        let same = |a: &Access, b: &Access| {
            a.region == b.region && (a.region != Region::Pointer || a.name == b.name)
        };
        let polls: Vec<Access> = self.accesses.iter().filter(|a| a.poll).cloned().collect();
        let swaps = self.atomics.iter().filter(|a| a.op == AtomicOp::Cas);
        let swaps: Vec<Access> = swaps.map(|a| self.accesses[a.access as usize].clone()).collect();
        for access in &mut self.accesses {
            access.polled = polls.iter().any(|a| same(a, access));
            access.swapped = swaps.iter().any(|a| same(a, access));
        }
        self.writes_anywhere = self.asynchronous.iter().any(|inst| {
            matches!(inst, AsyncInst::Remote(_))
                || matches!(inst, AsyncInst::Bulk(BulkInst { barrier: None, .. }))
                || matches!(inst, AsyncInst::Tile(TileInst { direction, .. }) if *direction != Direction::In)
        });
        self.wgmma = self
            .tensor
            .iter()
            .any(|t| matches!(t, TensorInst::Wgmma(_) | TensorInst::Memory(_)));
        self.fine = !polls.is_empty()
            || self.wgmma
            || self.insts.iter().any(|inst| {
                matches!(
                    inst,
                    Inst::Atomic { .. }
                        | Inst::Async { .. }
                        | Inst::NamedSync { .. }
                        | Inst::NamedArrive { .. }
                        | Inst::Mapa { .. }
                        | Inst::ClusterSync
                        | Inst::ClusterArrive { .. }
                        | Inst::ClusterWait
                        | Inst::GridSync
                        | Inst::Fence { .. }
                        | Inst::FenceProxy
                        | Inst::PriorGrid
                        | Inst::CallStandIn { .. }
                )
            });
    }

    pub(crate) fn location(&self, pc: usize) -> Option<FaultLocation> {
        let place = *self.places.get(pc)?;
        self.locations.get(place as usize)?.clone()
    }
}
