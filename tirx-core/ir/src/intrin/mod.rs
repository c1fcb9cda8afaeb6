//! Intrinsics: the operations of the IR that are calls rather than nodes of their own.
//!
//! Each has a row in the file of its family in [`rows`], which says what the operation is called in the IR and in kernel
//! text, what its arguments are, the dtype of its value, what it does besides computing a value, the GPUs that have it and
//! the CUDA it becomes. Parser, printer, verifier, passes, CUDA code generation, simulator and documentation read the
//! rows; adding an intrinsic is adding a row (and saying what the simulator does with it).

pub mod build;
pub mod convert;
pub mod gpu_set;
pub mod memory;
pub mod mnemonic;
pub mod operands;
mod place;
pub mod printf;
pub mod row;
pub mod rows;

pub use build::CallBuilder;
pub use gpu_set::GpuSet;
pub use operands::Operands;
pub use place::place;
pub use row::{Row, Traits};
pub use rows::cache_policy;
pub use rows::op::Op;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::ir::{DType, Expr};

/// The effect of evaluating a call besides its value. Ordered: a later one is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// A hint about its argument (`likely`); transparent.
    Annotation,
    /// None: the same arguments give the same value; may be duplicated, moved or dropped.
    Pure,
    /// Reads memory or machine state: may be dropped or duplicated, not moved across writes.
    ReadState,
    /// Writes memory or state, or synchronizes: runs exactly as often as written, in order.
    UpdateState,
    /// Jumps: `break_loop`, `continue_loop`, `thread_return`.
    ControlJump,
    /// Unknown.
    Opaque,
}

/// The dtype of a call's value.
#[derive(Clone, Copy, Debug)]
pub enum ResultRule {
    /// The dtype of argument `n`.
    Arg(u8),
    /// A fixed dtype.
    Is(DType),
    /// bool with the lanes of argument 0.
    BoolOfArg0,
    /// int32 or int64: argument 0 says how many bits.
    IntOfBits,
    /// A pointer; of a tensor map, its address as `uint64`.
    AddressOf,
    /// Given at the call; printed before the arguments.
    Given,
    /// Given at the call; printed after the arguments.
    GivenLast,
    /// Computed from the arguments.
    Of(fn(&Operands) -> DType),
}

impl Op {
    /// The dtype of a call with these arguments; `None` where the call itself gives it.
    pub fn result(self, args: &[Expr]) -> Option<DType> {
        let first = args.first();
        Some(match self.row().result {
            ResultRule::Is(dtype) => dtype,
            ResultRule::Arg(n) => args.get(n as usize).map_or(DType::VOID, |a| a.dtype),
            ResultRule::BoolOfArg0 => DType::BOOL.with_lanes(first.map_or(1, |a| a.dtype.lanes)),
            ResultRule::IntOfBits if first.is_some_and(|bits| bits.is_int(64)) => DType::INT64,
            ResultRule::IntOfBits => DType::INT32,
            ResultRule::AddressOf => match first.and_then(|a| a.as_var()) {
                Some(var) if var.ty().is_tensor_map() => DType::UINT64,
                _ => DType::HANDLE,
            },
            ResultRule::Of(rule) => match Operands::read(self.row(), args) {
                Ok(operands) => rule(&operands),
                Err(_) => DType::VOID,
            },
            ResultRule::Given | ResultRule::GivenLast => return None,
        })
    }
}

/// A row with its family and documentation.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Its name after `T.` in text: `exp`, `cuda.cta_sync`.
    pub script: &'static str,
    /// The family: the name of its file.
    pub family: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// The row.
    pub row: &'static Row,
}

/// Operators by their names in text: the spelling that is printed, other spellings, and the IR's name without `tirx.`.
static BY_SCRIPT: LazyLock<FxHashMap<&'static str, Op>> = LazyLock::new(|| {
    let mut names = FxHashMap::default();
    for op in Op::ALL {
        let row = op.row();
        let flat = row.name.strip_prefix("tirx.");
        for name in row.also.iter().copied().chain(flat) {
            names.entry(name).or_insert(*op);
        }
    }
    names.extend(Op::ALL.iter().map(|op| (op.info().script, *op)));
    names
});

static BY_NAME: LazyLock<FxHashMap<&'static str, Op>> =
    LazyLock::new(|| Op::ALL.iter().map(|op| (op.name(), *op)).collect());

impl Op {
    /// Its row, with family and description.
    pub fn info(self) -> &'static OpInfo {
        rows::TABLE[self as usize]
    }

    /// Its row.
    pub fn row(self) -> &'static Row {
        self.info().row
    }

    /// The IR's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The GPUs that have it: those of its row or, if the row names none, those of the PTX instructions that are the operation.
    pub fn gpus(self) -> GpuSet {
        let named = self.row().arch;
        named.or_else(|| mnemonic::gpus(self)).unwrap_or(GpuSet::ANY)
    }

    /// Its effect besides giving a value.
    pub fn effect(self) -> Effect {
        self.row().effect
    }

    /// Its effect on vector lanes, memory, other threads and asynchronous engines.
    pub fn traits(self) -> &'static Traits {
        &self.row().traits
    }

    /// The operator that text calls `T.<script>`, in any of its spellings.
    pub fn from_script(script: &str) -> Option<Op> {
        BY_SCRIPT.get(script).copied()
    }

    /// The operator of this IR name.
    pub fn from_name(name: &str) -> Option<Op> {
        if let Some(op) = BY_NAME.get(name) {
            return Some(*op);
        }
        // `tirx.ptx_mbarrier_init`, as TVM's own functions spell it, is `tirx.ptx.mbarrier_init`.
        let (family, name) = name.strip_prefix("tirx.")?.split_once('_')?;
        BY_NAME.get(format!("tirx.{family}.{name}").as_str()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_in_order() {
        for (i, op) in Op::ALL.iter().enumerate() {
            assert_eq!(*op as usize, i);
            assert_eq!(Op::from_name(op.name()), Some(*op), "{}", op.name());
            assert_eq!(
                Op::from_script(op.info().script),
                Some(*op),
                "{}",
                op.info().script
            );
        }
    }
}
