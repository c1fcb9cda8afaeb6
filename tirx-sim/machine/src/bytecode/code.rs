//! The code of one device function with its tables, and properties derived from them.

use super::{
    Access, AsyncInst, AtomicInst, AtomicOp, Axis, BulkInst, Direction, ExactInst, ExternCall, Inst,
    LocalArray, Operand, Pc, Print, R, Region, RegisterArray, SharedArray, Shuffle, ShuffleMode, TensorInst,
    TileInst, WgmmaInst,
};
use crate::location::FaultLocation;
use crate::numeric::Kind;
use crate::tensor::format::Format;

/// A launch-time value of a scalar register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Special {
    Param(u16),
    Index(Axis),
    /// Linear index of the warp's first thread along an axis: uniform where the block's shape makes it so.
    WarpThread(u8),
    WarpId,
    GridDim(u8),
    BlockDim(u8),
    ClusterDim(u8),
    ClusterRank,
    /// The rank of the device in the world, and how many devices that has.
    Rank,
    Ranks,
    /// The address of the device's counter of barriers of the world, and that of the window over all of them.
    Arrivals,
    ArrivalsWindow,
}

/// A name of the kernel with the place of its value, for a part of the code.
#[derive(Clone, Debug, PartialEq)]
pub struct DebugName {
    /// The name.
    pub name: String,
    /// The first instruction at which it has a value, and one past the last.
    pub range: (Pc, Pc),
    /// The kind of its elements.
    pub kind: Kind,
    /// Where it is.
    pub home: DebugHome,
}

/// Where a named value is.
#[derive(Clone, Debug, PartialEq)]
pub enum DebugHome {
    /// In a register.
    Register(Operand),
    /// An array in vector registers.
    Registers(Vec<R>),
    /// A shared array, by its number.
    Shared(u16),
}

/// A block barrier within a branch that some threads may not take.
#[derive(Clone, Copy, Debug)]
pub struct PartedBarrier {
    /// The barrier's instruction.
    pub pc: usize,
    /// The first instruction behind the branch.
    pub end: usize,
}

/// A loop that may wait for another thread's writes.
#[derive(Clone, Debug, Default)]
pub struct PollLoop {
    /// The registers of variables whose values an iteration may leave to the next one.
    pub v32: Vec<R>,
    pub v64: Vec<R>,
    /// The same for local arrays.
    pub locals: Vec<u16>,
    /// An iteration does nothing but read, compute, and act on objects that a search through all orders observes.
    pub quiet: bool,
}

/// Code and tables of one device function.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The names of the kernel with the places of their values.
    pub names: Vec<DebugName>,
    /// Block barriers within branches that some threads may not take.
    pub parted_barriers: Vec<PartedBarrier>,
    /// The branches of the kernel's `if` and `while`.
    pub branches: Vec<Pc>,
    /// The loops that wait in barriers of all ranks: first instruction, and one past the last.
    pub barriers_of_ranks: Vec<(usize, usize)>,
    pub name: String,
    pub insts: Vec<Inst>,
    /// For each instruction an index into `locations`.
    pub places: Vec<u32>,
    /// The same for the line that its work is charged to: an argument that is written at a call of an inline function is
    /// computed by the line of the function that uses it.
    pub charged: Vec<u32>,
    pub locations: Vec<Option<FaultLocation>>,
    pub accesses: Vec<Access>,
    pub shared: Vec<SharedArray>,
    pub locals: Vec<LocalArray>,
    pub register_arrays: Vec<RegisterArray>,
    pub shuffles: Vec<Shuffle>,
    pub atomics: Vec<AtomicInst>,
    pub exact: Vec<ExactInst>,
    pub asynchronous: Vec<AsyncInst>,
    pub prints: Vec<Print>,
    pub calls: Vec<ExternCall>,
    pub tensor: Vec<TensorInst>,
    /// Whether registers of local arrays may belong to an asynchronous operation.
    pub wgmma: bool,
    pub messages: Vec<String>,
    pub polls: Vec<PollLoop>,
    /// It asks how many arrivals an mbarrier waits for (`mbarrier.pending_count`).
    pub counts_arrivals: bool,
    /// Name and kind of each parameter: a pointer or a scalar.
    pub params: Vec<(String, Kind)>,
    /// Initial scalar registers of a strand: constants in place, the rest filled in from `specials`.
    pub scalars: Vec<u64>,
    pub specials: Vec<(R, Special)>,
    /// 32-bit vector registers that hold threadIdx.
    pub thread_index: Vec<(R, u8)>,
    pub v32: usize,
    pub v64: usize,
    pub local_words: usize,
    pub init_bits: Vec<String>,
    /// Hardware indices the function names; none for a function without launch attributes.
    pub axes: Vec<Axis>,
    /// Bytes of static shared memory.
    pub static_shared: u32,
    /// log2 of the bits that one history cell of shared memory covers.
    pub granule: u32,
    /// The same for local memory: bytes, or half bytes.
    pub local_granule: u32,
    /// Threads are ordered by more than block and warp barriers.
    pub fine: bool,
    /// Something other than a store may write to any global memory.
    pub writes_anywhere: bool,
    /// It lets the launch after it start early.
    pub launches_dependents: bool,
    /// The instruction descriptors of tcgen05 that the kernel encodes, with the formats of A, B and D that they are encoded for.
    pub descriptors: Vec<(u32, [Format; 3])>,
    /// How many blocks shall fit in a multiprocessor (launch bounds), or 0.
    pub min_blocks: u32,
    /// The most registers of a thread (`__maxnreg__`).
    pub max_registers: Option<u32>,
    /// The most bytes of shared memory of a block, static and dynamic together, on the GPU that the function is for.
    pub most_shared: u32,
    /// That GPU (`sm_90a`); empty if the function names none.
    pub arch: String,
    /// All blocks of the grid run together.
    pub grid_sync: bool,
}

impl Code {
    /// The `wgmma` of a number.
    pub fn wgmma_inst(&self, id: u16) -> Option<&WgmmaInst> {
        match self.tensor.get(id as usize) {
            Some(TensorInst::Wgmma(inst)) => Some(inst),
            _ => None,
        }
    }

    /// log2 of the bits that separate accesses to some regions, but at most `coarsest`.
    pub fn finest(&self, coarsest: u32, regions: impl Fn(Region) -> bool) -> u32 {
        let accesses = self.accesses.iter().filter(|a| regions(a.region));
        let smallest = accesses.map(|a| a.kind.bits().ilog2()).min();
        smallest.unwrap_or(coarsest).min(coarsest)
    }

    /// Determines which instructions order the kernel's threads.
    pub fn settle_order(&mut self) {
        // Buffers over one allocation may share bytes.
        let wholes: Vec<u16> = (0..self.shared.len() as u16)
            .map(|array| self.whole(array))
            .collect();
        let whole = |region: Region| match region {
            Region::Shared(array) => Region::Shared(wholes.get(array as usize).copied().unwrap_or(array)),
            region => region,
        };
        let same = |a: &Access, b: &Access| {
            whole(a.region) == whole(b.region) && (a.region != Region::Pointer || a.name == b.name)
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
        let has = |is: fn(&Inst) -> bool| self.insts.iter().any(is);
        // Threads that return are at no barrier behind that.
        let leaves = has(|inst| matches!(inst, Inst::Return))
            && has(|inst| matches!(inst, Inst::CtaSync | Inst::CtaSyncReduce(_) | Inst::WarpSync));
        self.fine = !polls.is_empty()
            || leaves
            || self.shuffles.iter().any(|s| s.mode == ShuffleMode::Meet)
            || self.wgmma
            || self.insts.iter().any(|inst| {
                matches!(
                    inst,
                    Inst::Atomic { .. }
                        | Inst::Async { .. }
                        | Inst::NamedSync { .. }
                        | Inst::NamedSyncReduce { .. }
                        | Inst::NamedArrive { .. }
                        | Inst::Mapa { .. }
                        | Inst::ClusterSync
                        | Inst::ClusterArrive { .. }
                        | Inst::ClusterWait { .. }
                        | Inst::GridSync
                        | Inst::Fence { .. }
                        | Inst::FenceProxy { .. }
                        | Inst::FenceAliases
                        | Inst::PriorGrid
                        | Inst::CallStandIn { .. }
                )
            });
    }

    /// The block barrier at an instruction, if some threads may not come to it.
    pub fn parted_barrier(&self, pc: usize) -> Option<&PartedBarrier> {
        self.parted_barriers.iter().find(|barrier| barrier.pc == pc)
    }

    /// Whether an instruction waits in a barrier of all ranks.
    pub fn is_barrier_of_ranks(&self, pc: usize) -> bool {
        self.barriers_of_ranks
            .iter()
            .any(|(first, end)| (*first..*end).contains(&pc))
    }

    pub fn location(&self, pc: usize) -> Option<FaultLocation> {
        let place = *self.places.get(pc)?;
        self.locations.get(place as usize)?.clone()
    }

    /// The line that the work of an instruction is charged to.
    pub fn charged_location(&self, pc: usize) -> Option<FaultLocation> {
        let place = *self.charged.get(pc)?;
        self.locations.get(place as usize)?.clone()
    }
}
