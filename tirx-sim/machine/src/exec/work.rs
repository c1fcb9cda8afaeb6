//! The work of an instruction before it runs, for a cost model (`crate::work`).

use super::run::Machine;
use crate::alu::{Bin, Un};
use crate::bytecode::{Exact, Inst, TensorInst, TensorMemoryInst};
use crate::numeric::Kind;
use crate::observe::Observer;
use crate::tensor::wgmma;
use crate::work::Work;

/// Warps of a warpgroup.
const WARPS: u64 = 4;

/// Whether an operator is float arithmetic of CUDA cores.
fn is_float(op: Bin) -> bool {
    matches!(op, Bin::AddF | Bin::SubF | Bin::RSubF | Bin::MulF)
}

/// Whether an operator needs a special function.
fn is_special(op: Bin) -> bool {
    matches!(op, Bin::DivF | Bin::RDivF | Bin::FloorDivF | Bin::Pow)
}

fn is_function(op: Un) -> bool {
    use Un::{Cos, Exp, Exp2, Exp10, Log, Log1p, Log2, Log10, Rsqrt, Sigmoid, Sin, Sqrt, Tan, Tanh};
    matches!(
        op,
        Exp | Exp2 | Exp10 | Tanh | Sigmoid | Log | Log2 | Log10 | Log1p | Tan | Cos | Sin | Sqrt | Rsqrt
    )
}

impl Machine<'_, '_> {
    /// Adds the work of the instruction at `pc` that lanes of `mask` come to.
    pub(super) fn count_work(&self, observer: &Observer, pc: usize, mask: u32) {
        let code = self.ctx.code;
        let mut floats = 0;
        let mut specials = 0;
        match &code.insts[pc] {
            Inst::Bin32 { op, .. } | Inst::Bin32S { op, .. } => {
                floats = u64::from(is_float(*op));
                specials = u64::from(is_special(*op));
            }
            Inst::MulAdd { .. } => floats = 1,
            Inst::Fma { kind, .. } => floats = u64::from(*kind != Kind::F64),
            Inst::Un32 { op, .. } => specials = u64::from(is_function(*op)),
            Inst::Exact { id } => {
                let inst = &code.exact[*id as usize];
                floats = u64::from(matches!(inst.what, Exact::Rounded(_)) && inst.kind == Kind::F32);
            }
            Inst::CtaSync
            | Inst::CtaSyncReduce(_)
            | Inst::NamedSync { .. }
            | Inst::NamedSyncReduce { .. }
            | Inst::ClusterSync
            | Inst::ClusterWait { .. } => observer.working.add(|work| work.barriers += 1),
            Inst::Tensor { id } => self.count_product(observer, &code.tensor[*id as usize], mask),
            _ => {}
        }
        if floats + specials > 0 {
            observer.working.add(|work| {
                work.float_instructions += floats;
                work.special_instructions += specials;
            });
        }
    }

    fn count_product(&self, observer: &Observer, inst: &TensorInst, mask: u32) {
        let operations = |m: usize, n: usize, k: usize| 2 * (m * n * k) as u64;
        match inst {
            TensorInst::Mma { mma, .. } => {
                let sparse = if mma.sparse.is_some() { 2 } else { 1 };
                let shape = mma.shape;
                observer.working.add(|work| {
                    work.warp_products[Work::kind(mma.a)] += operations(shape.m, shape.n, shape.k) / sparse;
                });
            }
            TensorInst::MmaF64 { shape, .. } => observer.working.add(|work| {
                work.warp_products[0] += operations(shape.m, shape.n, shape.k);
            }),
            TensorInst::Wgmma(inst) => {
                let (n, k, bits) = (inst.wgmma.n, inst.wgmma.k(), inst.wgmma.a.bits() as usize);
                // Each of the four warps issues the instruction.
                let of_left = match inst.left {
                    crate::bytecode::LeftOperand::Shared(_) => wgmma::ROWS,
                    crate::bytecode::LeftOperand::Registers(_) => 0,
                };
                observer.working.add(|work| {
                    work.products[Work::kind(inst.wgmma.a)] += operations(wgmma::ROWS, n, k) / WARPS;
                    work.operand_bytes += ((n + of_left) * k * bits / 8) as u64 / WARPS;
                });
            }
            TensorInst::Memory(TensorMemoryInst::Mma(inst)) => {
                for lane in (0..32).filter(|lane| mask >> lane & 1 != 0) {
                    let on = inst
                        .predicate
                        .is_none_or(|p| self.warp.v32[p as usize][lane as usize] != 0);
                    // What is not allowed is reported when the instruction runs.
                    let Some(mma) = self.matrix_operation(inst, lane).filter(|_| on) else {
                        continue;
                    };
                    let sparse = if mma.sparse.is_some() { 2 } else { 1 };
                    observer.working.add(|work| {
                        work.products[Work::kind(mma.a)] += operations(mma.m, mma.n, mma.k) / sparse;
                        let left = if inst.left_in_memory { 0 } else { mma.m };
                        let bits = mma.a.bits() as usize;
                        work.operand_bytes += ((mma.n + left) * mma.k * bits / 8) as u64;
                    });
                }
            }
            _ => {}
        }
    }
}
