//! What does the simulator do with each meaning of the tables? Exhaustive: a meaning without an arm does not compile.
//!
//! An arm names the function that compiles the instruction, or says why none does. A function that compiles some of a meaning's
//! calls refuses the others with a reason of this file, too. A call that its line's row expresses is that operation by now, so an
//! arm is for the other calls of a line.

use tirx_ir::BinOp;
use tirx_ir::intrin::Op;
use tirx_ir::intrin::mnemonic::{InstructionCall, Meaning};
use tirx_source::diagnostic::Result;

use super::super::Compiler;
use super::{Written, and, arithmetic, bits, compare, lanes, or, parts, xor};
use tirx_sim_machine::bytecode::{Inst, MbarrierWhat};
use tirx_sim_machine::rounded::Operation;

/// What the simulator does with an instruction.
pub(super) enum Simulated {
    /// Writes registers whose values are expressions of the operands.
    Values(fn(&InstructionCall) -> Option<Written>),
    /// Compiles it by a function.
    Acts(fn(&mut Compiler<'_>, &InstructionCall) -> Result<()>),
    /// It changes where data is cached, and nothing that a kernel observes.
    Hint,
    /// Each of its calls is the operation of a row.
    Row,
    /// The simulator does not run it.
    Not(&'static NotSimulated),
}

/// Why an instruction is not simulated.
pub(crate) struct NotSimulated {
    /// The reason.
    pub(super) why: &'static str,
    /// What to write in its place.
    pub(super) instead: &'static str,
}

const fn not(why: &'static str, instead: &'static str) -> NotSimulated {
    NotSimulated { why, instead }
}

/// The reasons, each with what to write in place of the instruction.
#[rustfmt::skip]
pub(crate) mod reasons {
    use super::{NotSimulated, not};

    pub(crate) const OPERANDS: NotSimulated = not("operands of these types are not simulated", "use another type of the same instruction");
    pub(crate) const MODIFIERS: NotSimulated = not("these modifiers are not simulated", "leave out the optional modifiers");
    pub(crate) const NEW: NotSimulated = not("instructions that are newer than PTX 9.0 are not simulated", "use instructions of PTX 9.0");
    pub(crate) const WIDE: NotSimulated =
        not("these accesses of 128 bits are not simulated", "use two accesses of 64 bits if the kernel allows it");
    pub(crate) const NARROW_MMIO: NotSimulated = not("memory-mapped accesses of this width are not simulated", "leave out .mmio");
    pub(crate) const VOLATILE_LOCAL: NotSimulated = not("volatile accesses of local memory are not simulated", "leave out .volatile");
    pub(crate) const ORDERED_COPY: NotSimulated = not("bulk copies with a memory order are not simulated", "leave out .relaxed, its scope and .b128");
    pub(crate) const UNKNOWN_NUMBER: NotSimulated = not("the number of bytes is not a constant", "write the number of bytes as a constant");
    pub(crate) const UNAWAITED: NotSimulated =
        not("asynchronous stores without an mbarrier are not simulated", "use st.release or red.release");
    pub(crate) const MULTIMEM: NotSimulated =
        not("asynchronous stores and copies to multimem addresses are not simulated", "use multimem.st or multimem.red");
    pub(crate) const FABRIC: NotSimulated = not("copies over the fabric between GPUs are not simulated", "use T.nvshmem");
    pub(crate) const IM2COL: NotSimulated = not("tensors of the mode im2col are not simulated", "use the mode tile");
    pub(crate) const READ_ONLY: NotSimulated = not("loads by ldu and through the read-only proxy are not simulated", "use ld.global.nc");
    pub(crate) const ADDRESSES: NotSimulated =
        not("addresses in the simulator do not tell their state space and their block", "use pointers of the buffers");
    pub(crate) const PACKED: NotSimulated = not("conversions that saturate and pack are not simulated", "use min, max, shl and or");
    pub(crate) const REPORTS: NotSimulated = not("reports of mbarriers are not simulated", "wait without the destinations of the report");
    pub(crate) const CONDITIONAL_PHASES: NotSimulated =
        not("conditional phases of mbarriers are not simulated", "wait for .phase_type::primary");
    pub(crate) const UNPACKED: NotSimulated =
        not("loads of matrices of elements of 8 bits or fewer are not simulated", "load the elements with .m8n8.b16");
    pub(crate) const ROUNDED_PRODUCTS: NotSimulated =
        not("products of float64 matrices have the shape m8n8k4 and no rounding modifier in the simulator", "use m8n8k4 without a rounding modifier");
    pub(crate) const BITS: NotSimulated = not("products of single bits by wgmma are not simulated", "use mma.sync of .b1");
    pub(crate) const SPARSE_WARP: NotSimulated =
        not("sparse products of a warp are simulated as the function of TVM 0.26 only", "call T.ptx.mma_sp");
    pub(crate) const SPARSE: NotSimulated =
        not("sparse products in tensor memory are simulated as the function of TVM 0.26 only", "call T.ptx.tcgen05.mma.sp");
    pub(crate) const MASKED_COLUMNS: NotSimulated = not("masks of columns that are zero are not simulated", "leave out the mask, or give 0");
    pub(crate) const SHIFTED: NotSimulated = not("the shift of the rows of A is not simulated", "leave out .ashift");
    pub(crate) const REDUCED: NotSimulated = not("reductions in loads from tensor memory are not simulated", "use tcgen05.ld, and min and max");
}

/// Whether the simulator has code for the calls of a meaning that are no operation of a row; `None` if no line has such calls.
/// Public for the test that compares this answer with the lines of the tables (`tests/tests/language/mnemonics/simulated.rs`).
#[doc(hidden)]
#[must_use]
pub fn simulates(meaning: Meaning) -> Option<bool> {
    match simulated(meaning) {
        Simulated::Values(_) | Simulated::Acts(_) | Simulated::Hint => Some(true),
        Simulated::Not(_) => Some(false),
        Simulated::Row => None,
    }
}

/// What the simulator does with a meaning.
#[rustfmt::skip]
pub(super) fn simulated(meaning: Meaning) -> Simulated {
    use Simulated::{Acts, Hint, Not, Row, Values};
    match meaning {
        // Arithmetic.
        Meaning::Add => Values(|call| arithmetic::sum(call, BinOp::Add)),
        Meaning::Sub => Values(|call| arithmetic::sum(call, BinOp::Sub)),
        Meaning::Mul => Values(arithmetic::product),
        Meaning::Mad | Meaning::Fma => Values(arithmetic::product_and_sum),
        Meaning::MixedAdd => Acts(|c, call| c.mixed(call, Operation::Add)),
        Meaning::MixedSub => Acts(|c, call| c.mixed(call, Operation::Sub)),
        Meaning::MixedFma => Acts(|c, call| c.mixed(call, Operation::Fma)),
        Meaning::MixedPairs => Not(&reasons::NEW),
        Meaning::Mul24 | Meaning::Mad24 => Values(parts::product_24),
        Meaning::Clmad => Not(&reasons::NEW),
        Meaning::Sad => Values(arithmetic::distance),
        Meaning::Div => Acts(|c, call| c.quotient(call)),
        Meaning::Rem => Values(arithmetic::remainder),
        Meaning::Abs => Values(arithmetic::absolute),
        Meaning::Neg => Values(arithmetic::negative),
        Meaning::Min => Values(|call| arithmetic::extreme_of(call, BinOp::Min)),
        Meaning::Max => Values(|call| arithmetic::extreme_of(call, BinOp::Max)),
        Meaning::Dp4a => Values(|call| parts::dot(call, 4, 8)),
        Meaning::Dp2a => Values(|call| parts::dot(call, 2, 16)),
        Meaning::Rcp => Acts(|c, call| c.reciprocal(call)),
        Meaning::Sqrt => Acts(|c, call| c.root(call)),
        Meaning::Rsqrt => Values(|call| arithmetic::function(call, Op::Rsqrt)),
        Meaning::Sin => Values(|call| arithmetic::function(call, Op::Sin)),
        Meaning::Cos => Values(|call| arithmetic::function(call, Op::Cos)),
        Meaning::Lg2 => Values(|call| arithmetic::function(call, Op::Log2)),
        Meaning::Ex2 => Values(|call| arithmetic::function(call, Op::Exp2)),
        Meaning::Tanh => Values(|call| arithmetic::function(call, Op::Tanh)),
        Meaning::Copysign => Values(arithmetic::copysign),

        // Comparisons and choices.
        Meaning::Set => Values(compare::compare_as_number),
        Meaning::SetWord => Not(&reasons::NEW),
        Meaning::Setp => Values(compare::compare),
        Meaning::Selp => Values(compare::choose),
        Meaning::Slct => Values(compare::choose_by_sign),
        Meaning::Testp => Values(compare::test),

        // Bits, and moves of registers.
        Meaning::And => Values(|call| bits::logic(call, BinOp::And, and)),
        Meaning::Or => Values(|call| bits::logic(call, BinOp::Or, or)),
        Meaning::Xor => Values(|call| bits::logic(call, BinOp::Ne, xor)),
        Meaning::Not => Values(bits::not),
        Meaning::Cnot => Values(bits::is_zero),
        Meaning::Lop3 => Values(bits::lop3),
        Meaning::Shf => Values(bits::funnel),
        Meaning::Shl => Values(bits::shift_left),
        Meaning::Shr => Values(bits::shift_right),
        Meaning::Prmt => Values(bits::permute),
        Meaning::Popc => Values(bits::count_ones),
        Meaning::Clz => Values(bits::leading_zeros),
        Meaning::Bfind => Values(bits::highest_set),
        Meaning::Fns => Row,
        Meaning::Brev => Values(bits::reversed),
        Meaning::Bfe => Values(bits::field),
        Meaning::Bfi => Values(bits::insert),
        Meaning::Szext => Values(parts::extended),
        Meaning::Bmsk => Values(parts::mask),
        Meaning::Mov => Values(bits::moved),
        Meaning::MovWide => Acts(|c, call| c.wide_move(call)),

        // Conversions of formats and addresses.
        Meaning::Cvt => Not(&reasons::NEW),
        Meaning::CvtPack => Not(&reasons::PACKED),
        Meaning::Cvta | Meaning::Isspacep | Meaning::Getctarank => Not(&reasons::ADDRESSES),
        Meaning::Mapa => Acts(|c, call| c.mapa_of_number(call)),

        // Memory.
        Meaning::Ld => Acts(|c, call| c.wide_load(call)),
        Meaning::Ldu => Not(&reasons::READ_ONLY),
        Meaning::St => Acts(|c, call| c.wide_store(call)),
        Meaning::StBulk => Row,
        Meaning::StAsync | Meaning::RedAsync => Acts(|c, call| c.store_to_mbarrier(call)),
        Meaning::AsyncRelease => Not(&reasons::UNAWAITED),
        Meaning::Atom | Meaning::Red => Acts(|c, call| c.atomic_of_elements(call)),
        Meaning::Multimem => Acts(|c, call| c.multimem(call)),
        Meaning::MultimemAsync | Meaning::MultimemCp => Not(&reasons::MULTIMEM),
        Meaning::Prefetch | Meaning::Prefetchu | Meaning::Applypriority | Meaning::Discard => Hint,
        Meaning::Createpolicy => Values(bits::policy),

        // Threads that wait for each other, and fences.
        Meaning::BarrierSync => Acts(|c, call| c.sync_threads(call)),
        Meaning::BarrierArrive => Acts(|c, call| c.arrive_at_barrier(call)),
        Meaning::BarrierRed => Acts(|c, call| c.vote_at_barrier(call)),
        Meaning::BarrierCluster => Row,
        Meaning::WarpSync => Acts(|c, call| c.sync_warp(call)),
        Meaning::Griddepcontrol | Meaning::Setmaxnreg => Row,
        Meaning::Fence => Acts(|c, call| c.fence_by_mnemonic(call)),
        Meaning::FenceMbarrierInit | Meaning::FenceAsync => Row,
        Meaning::FenceAlias => Acts(|c, _| c.act(Inst::FenceAliases)),
        Meaning::FenceTensorMap => Acts(|c, call| c.fence_maps(call)),

        // Lanes of a warp.
        Meaning::Shfl => Acts(|c, call| c.shuffle_by_mnemonic(call)),
        Meaning::Vote => Values(lanes::vote),
        Meaning::Match => Acts(|c, call| c.match_lanes(call)),
        Meaning::Activemask => Values(lanes::active_mask),
        Meaning::Elect => Values(lanes::elect),
        Meaning::Redux => Acts(|c, call| c.reduce_lanes(call)),

        // mbarriers.
        Meaning::Mbarrier => Row,
        Meaning::MbarrierInit | Meaning::MbarrierCheckLayout => Not(&reasons::NEW),
        Meaning::MbarrierArrive => Acts(|c, call| c.arrive_at_mbarrier(call)),
        Meaning::MbarrierExpectTx => Acts(|c, call| c.mbarrier_of(call, MbarrierWhat::Expect)),
        Meaning::MbarrierCompleteTx => Acts(|c, call| c.mbarrier_of(call, MbarrierWhat::Complete)),
        Meaning::MbarrierMulticast => Not(&reasons::NEW),
        Meaning::MbarrierWait => Acts(|c, call| c.test_mbarrier(call)),
        Meaning::MbarrierPendingCount => Acts(|c, call| c.pending_count(call)),

        // Asynchronous copies.
        Meaning::CpAsync => Acts(|c, call| c.copy_of_a_part(call)),
        Meaning::CpBulk | Meaning::CpReduceBulk => Acts(|c, call| c.bulk_copy(call)),
        Meaning::CpBulkMulticast | Meaning::CpBulkReport | Meaning::CpTensorOverride => Not(&reasons::NEW),
        Meaning::CpBulkPrefetch => Hint,
        Meaning::CpTensor => Acts(|c, call| c.scatter(call)),
        Meaning::CpReduceTensor => Row,
        Meaning::CpTensorIm2col => Not(&reasons::IM2COL),
        Meaning::TensormapReplace => Acts(|c, call| c.replace_field(call)),
        Meaning::TensormapCopy => Acts(|c, call| c.publish_map(call)),
        Meaning::TryCancel => Acts(|c, call| c.try_cancel_by_mnemonic(call)),
        Meaning::QueryCancel => Acts(|c, call| c.queried(call)),
        Meaning::Fabric => Not(&reasons::FABRIC),

        // Matrices.
        Meaning::Ldmatrix | Meaning::Stmatrix => Row,
        Meaning::LdmatrixNarrow => Not(&reasons::UNPACKED),
        Meaning::Movmatrix => Acts(|c, call| c.transpose_matrix(call)),
        Meaning::Mma => Not(&reasons::ROUNDED_PRODUCTS),
        Meaning::MmaSp => Not(&reasons::SPARSE_WARP),
        Meaning::Wgmma => Row,
        Meaning::WgmmaMma => Acts(|c, call| c.wgmma_of_formats(call)),
        Meaning::WgmmaMmaBits => Not(&reasons::BITS),
        Meaning::Tcgen05 => Row,
        Meaning::Tcgen05Mma => Acts(|c, call| c.tensor_product_by_mnemonic(call)),
        Meaning::Tcgen05LdRed => Not(&reasons::REDUCED),
        Meaning::Tcgen05Exclusive | Meaning::Tcgen05LdCompress | Meaning::Tcgen05CommitMulticast | Meaning::Tcgen05MmaInt16 |
        Meaning::Tcgen05MmaTable | Meaning::Spcompress | Meaning::Spdecompress => Not(&reasons::NEW),
    }
}
