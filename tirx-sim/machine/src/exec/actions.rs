//! Which instructions others may react to, and what they touch: the events of a search through all orders (`crate::explore`).

use super::Shared;
use crate::bytecode::{AsyncInst, Code, Inst, TensorInst, TensorMemoryInst};
use crate::explore::{Object, Touch};

impl Code {
    /// Whether others may react to the instruction, or it to them, in a way that the order of memory does not forbid.
    pub(crate) fn acts(&self, pc: usize) -> bool {
        let polled = |access: u16| {
            let access = &self.accesses[access as usize];
            access.poll || access.polled
        };
        match &self.insts[pc] {
            Inst::Atomic { .. } | Inst::CallStandIn { .. } => true,
            Inst::Load { access, .. }
            | Inst::Store { access, .. }
            | Inst::LoadWide { access, .. }
            | Inst::StoreWide { access, .. }
            | Inst::LoadS { access, .. }
            | Inst::LoadRow { access, .. }
            | Inst::StoreRow { access, .. } => polled(*access),
            Inst::Fence { sc, .. } => *sc,
            Inst::Async { id } => matches!(
                self.asynchronous[*id as usize],
                AsyncInst::Mbarrier(_) | AsyncInst::ArriveWhenCopied { .. } | AsyncInst::Remote(_)
            ),
            Inst::Tensor { id } => matches!(
                self.tensor[*id as usize],
                TensorInst::Memory(TensorMemoryInst::Alloc { .. } | TensorMemoryInst::Dealloc { .. })
            ),
            _ => false,
        }
    }

    /// What an instruction touches that does not say so when it runs.
    pub(super) fn touches(&self, pc: usize, block: u32) -> Option<(Object, Touch)> {
        let object = match &self.insts[pc] {
            Inst::CallStandIn { .. } => Object::Host,
            Inst::Fence { .. } => Object::Fence,
            Inst::Tensor { .. } => Object::Columns(block),
            Inst::Async { id } if matches!(self.asynchronous[*id as usize], AsyncInst::Remote(_)) => {
                Object::Host
            }
            _ => return None,
        };
        Some((object, Touch::Write))
    }

    /// Why a search cannot cover the kernel.
    pub(super) fn not_explored(&self) -> Option<&'static str> {
        let cancels = |inst: &AsyncInst| matches!(inst, AsyncInst::TryCancel { .. });
        self.asynchronous.iter().any(cancels).then_some(
            "the kernel takes blocks off the grid (clusterlaunchcontrol.try_cancel), and all blocks are under way at once here",
        )
    }
}

impl Shared {
    /// Notes that an object was touched, where every order is explored.
    pub(super) fn touch(&mut self, object: Object, touch: Touch) {
        if self.exploring && !self.touched.contains(&(object, touch)) {
            self.touched.push((object, touch));
        }
    }

    /// The same for a strong access.
    pub(super) fn touched_strongly(&mut self, object: Object, writes: bool) {
        let touch = match writes {
            true => Touch::Write,
            false => Touch::Read,
        };
        self.touch(object, touch);
    }

    /// An atomic whose touches begin at `first` has left what was there: a compare-and-swap that found another value, or (if
    /// it `writes`) an exchange of equal values.
    pub(super) fn left_as_it_was(&mut self, first: usize, writes: bool) {
        for (_, touch) in self.touched.iter_mut().skip(first) {
            *touch = if writes { Touch::Same } else { Touch::Read };
        }
    }
}
