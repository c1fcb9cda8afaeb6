//! The rows, one file a family, and the enumeration of all operators that follows from them.
//!
//! Adding an operation is adding a row to the file of its family; a new file is named below in `families`.

use super::row::{Access, ArgKind, Row, Space, Ty};
use super::{Op, OpInfo};
use crate::ir::DType;

/// Declares the rows of a family: `rows! { $ family { /// What it does. Name = Row::new(…); … } }`.
macro_rules! rows {
    ($d:tt $family:ident { $( $(#[doc = $doc:literal])+ $op:ident = $row:expr; )* }) => {
        pub(in crate::intrin) static INFO: &[$crate::intrin::OpInfo] = &[$({
            static ROW: $crate::intrin::row::Row = $row;
            ROW.info(stringify!($family), concat!($($doc),+))
        }),*];
        macro_rules! $family {
            (($d($d next:ident)*) $d($d before:tt)*) => {
                chain! { ($d($d next)*) $d($d before)* $( $(#[doc = $doc])+ $op, )* }
            };
        }
    };
}

/// Collects the operators of each family in turn and declares the enumeration.
macro_rules! chain {
    (($next:ident $($rest:ident)*) $($names:tt)*) => { $next! { ($($rest)*) $($names)* } };
    (() $($(#[$doc:meta])* $op:ident,)*) => {
        /// An intrinsic operator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op { $($(#[$doc])* $op),* }

        impl Op {
            /// Every operator, in the table's order.
            pub const ALL: &'static [Op] = &[$(Op::$op),*];
        }
    };
}

macro_rules! families {
    ($($family:ident),*) => {
        static FAMILIES: &[&[OpInfo]] = &[$($family::INFO),*];

        pub(super) mod op { chain! { ($($family)*) } }
    };
}

#[macro_use]
mod atomics;
#[macro_use]
mod barrier;
#[macro_use]
mod bits;
#[macro_use]
mod calls;
#[macro_use]
mod control;
#[macro_use]
mod convert;
#[macro_use]
mod copies;
mod dtypes;
#[macro_use]
mod iket;
#[macro_use]
mod instruction;
#[macro_use]
mod math;
#[macro_use]
pub mod matrix;
#[macro_use]
mod mbarrier;
#[macro_use]
mod memory;
#[macro_use]
mod nvshmem;
#[macro_use]
mod packed;
#[macro_use]
mod pointers;
#[macro_use]
mod sync;
#[macro_use]
pub mod tcgen05;
#[macro_use]
mod timers;
#[macro_use]
mod warp;
#[macro_use]
mod wgmma;

pub use copies::cache_policy;

families!(
    math,
    bits,
    control,
    pointers,
    calls,
    warp,
    sync,
    barrier,
    memory,
    atomics,
    convert,
    packed,
    timers,
    mbarrier,
    copies,
    matrix,
    wgmma,
    tcgen05,
    instruction,
    nvshmem,
    iket
);

/// All columns, in the order of [`Op`].
pub(super) static TABLE: std::sync::LazyLock<Vec<&'static OpInfo>> =
    std::sync::LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.iter()).collect());

/// The row of an operator, also in constants.
pub(super) const fn row(op: Op) -> &'static Row {
    let (mut at, mut family) = (op as usize, 0);
    while at >= FAMILIES[family].len() {
        at -= FAMILIES[family].len();
        family += 1;
    }
    FAMILIES[family][at].row
}

/// The family that an operator belongs to.
pub fn family(op: Op) -> &'static str {
    op.info().family
}

// Kinds that many rows use.

mod kinds {
    use super::*;
    use crate::intrin::GpuSet;
    pub(super) const ANY: ArgKind = ArgKind::Any;
    pub(super) const NODE: ArgKind = ArgKind::Node;
    pub(super) const NAME: ArgKind = ArgKind::Name;
    pub(super) const CONDITION: ArgKind = ArgKind::Condition;
    pub(super) const MASK: ArgKind = ArgKind::Mask;
    pub(super) const F64: ArgKind = ArgKind::Value(DType::FLOAT64);
    pub(super) const SM_90: GpuSet = GpuSet::least(90);
    pub(super) const SM_100: GpuSet = GpuSet::least(100);
    pub(super) const U16: ArgKind = ArgKind::Value(DType::UINT16);
    pub(super) const U32: ArgKind = ArgKind::Value(DType::UINT32);
    pub(super) const I32: ArgKind = ArgKind::Value(DType::INT32);
    pub(super) const U64: ArgKind = ArgKind::Value(DType::UINT64);
    pub(super) const F32: ArgKind = ArgKind::Value(DType::FLOAT32);
    pub(super) const SHARED: ArgKind = ArgKind::Pointer(Space::Shared);
    pub(super) const GLOBAL: ArgKind = ArgKind::Pointer(Space::Global);
    pub(super) const GENERIC: ArgKind = ArgKind::Pointer(Space::Generic);
    /// A register that the instruction writes, given by its address.
    pub(super) const OUT32: ArgKind = ArgKind::Register(Access::Out, Ty::B32);
    pub(super) const OUT64: ArgKind = ArgKind::Register(Access::Out, Ty::B64);
    pub(super) const IN32: ArgKind = ArgKind::Register(Access::In, Ty::B32);
}
