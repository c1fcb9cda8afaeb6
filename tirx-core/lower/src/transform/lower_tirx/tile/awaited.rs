//! Which asynchronous calls does nobody wait for?
//!
//! A call's completion says what the caller does before the result is used. Where a kernel has no such operation at all, the
//! wait was forgotten. Whether one that is there comes at the right place is for the simulator to find.

use rustc_hash::FxHashSet;

use super::decision::{Decision, NamedWarning};
use super::variant::Completion;
use crate::diagnostic::Diagnostic;
use crate::intrin::Op;
use crate::ir::{Expr, ExprKind, Stmt, Visitor};

/// The warning's name; one of the lints that `tirx-script` lists.
const UNAWAITED_CALL: &str = "unawaited-call";

/// Waits at an mbarrier.
const AT_MBARRIERS: &[Op] = &[
    Op::PtxMbarrierTryWait,
    Op::PtxMbarrierTryWaitAcquireCluster,
    Op::PtxMbarrierTryWaitRelaxed,
    Op::PtxMbarrierTryWaitOnce,
    Op::PtxMbarrierTestWaitParity,
];

/// Calls that may wait without showing it: other functions, text of the user's, instructions by their mnemonics.
const UNKNOWN: &[Op] = &[
    Op::CallExtern,
    Op::CallPureExtern,
    Op::CallFunction,
    Op::CudaFuncCall,
    Op::PtxInstruction,
];

impl Completion {
    /// The operations that the caller makes: one of each list.
    fn operations(self) -> &'static [&'static [Op]] {
        match self {
            Completion::Done | Completion::OwnPart => &[],
            Completion::CommitGroup => &[&[Op::PtxCpAsyncWaitGroup, Op::PtxCpAsyncMbarrierArrive]],
            Completion::BulkGroup => &[&[Op::PtxCpAsyncBulkCommitGroup], &[Op::PtxCpAsyncBulkWaitGroup]],
            Completion::Mbarrier { .. } => &[AT_MBARRIERS],
            Completion::TcgenCommit => &[&[Op::PtxTcgen05Commit], AT_MBARRIERS],
            Completion::WgmmaGroup => &[&[Op::PtxWgmmaCommitGroup], &[Op::PtxWgmmaWaitGroup]],
            Completion::TcgenWaitLd => &[&[Op::PtxTcgen05WaitLd]],
            Completion::TcgenWaitSt => &[&[Op::PtxTcgen05WaitSt]],
        }
    }
}

/// The operations of a region.
struct Operations(FxHashSet<Op>);

impl Visitor for Operations {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Call { op, .. } = &expr.kind {
            self.0.insert(*op);
        }
        self.walk_expr(expr);
    }
}

/// Adds a warning to each call of a lowered region that nobody waits for.
pub(super) fn warn(region: &Stmt, decisions: &mut [Decision]) {
    let mut found = Operations(FxHashSet::default());
    found.visit_stmt(region);
    if UNKNOWN.iter().any(|op| found.0.contains(op)) {
        return;
    }
    for decision in decisions.iter_mut().filter(|decision| decision.warning.is_none()) {
        let needed = decision.completion.map_or(&[][..], Completion::operations);
        let missing = needed
            .iter()
            .find(|any| !any.iter().any(|op| found.0.contains(op)));
        let Some(missing) = missing.and_then(|any| any.first()) else {
            continue;
        };
        let call = decision.call.op.name();
        let message = format!(
            "nobody waits for this `{call}`: the kernel has no T.{}",
            missing.row().script
        );
        let help = format!(
            "wait before the result is used, and before the kernel ends; `cargo tirx explain` shows the wait. \
             `# tirx: allow({UNAWAITED_CALL})` on the line turns the warning off"
        );
        decision.warning = Some(NamedWarning {
            name: UNAWAITED_CALL,
            diagnostic: Diagnostic::new(decision.span, message).help(help),
        });
    }
}

#[cfg(test)]
mod tests {
    use tirx_script::{KernelFile, NoImports, eval::LINTS};

    use super::UNAWAITED_CALL;
    use crate::source::SourceMap;
    use crate::transform::{Lowering, Target, lower};

    /// The warnings about a kernel that copies into shared memory and then runs these lines.
    fn warned(line: &str, rest: &str) -> Vec<String> {
        let text = format!(
            "from tvm.script import tirx as T\nfrom tvm.script.tirx import tile as Tx\n\n@T.prim_func\n\
             def kernel(A: T.Buffer((32, 32), 'float32'), B: T.Buffer((32, 32), 'float32')):\n    \
             T.device_entry(); T.cta_id([1]); T.thread_id([64])\n    \
             s = T.alloc_buffer((32, 32), 'float32', scope='shared')\n    Tx.cta.copy_async(s, A){line}\n    {rest}\n    Tx.cta.copy(B, s)\n"
        );
        let mut sources = SourceMap::new();
        let file = KernelFile::load(&mut sources, "k.py", &text, &NoImports).unwrap();
        let module = file.build(Some("kernel"), &Default::default()).unwrap();
        let mut lowering = Lowering::new(Target::SM_90A);
        lower(module, &mut lowering).unwrap();
        lowering.warnings.into_iter().map(|w| w.message).collect()
    }

    #[test]
    fn a_copy_that_nobody_waits_for_is_warned_of() {
        let message = "nobody waits for this `copy_async`: the kernel has no T.ptx.cp_async.wait_group";
        assert_eq!(warned("", "T.cuda.cta_sync()"), [message]);
        assert_eq!(
            warned("", "T.ptx.cp_async.commit_group(); T.cuda.cta_sync()"),
            [message]
        );
        let waits = "T.ptx.cp_async.commit_group(); T.ptx.cp_async.wait_group(0); T.cuda.cta_sync()";
        assert!(warned("", waits).is_empty());
        // A function whose text is not known may wait.
        let foreign = "T.cuda.func_call('w', source_code='__device__ void w() {}'); T.cuda.cta_sync()";
        assert!(warned("", foreign).is_empty());
        assert!(warned(&format!("  # tirx: allow({UNAWAITED_CALL})"), "T.cuda.cta_sync()").is_empty());
        assert!(LINTS.iter().any(|(name, _)| *name == UNAWAITED_CALL));
    }
}
