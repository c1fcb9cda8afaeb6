//! The barrier of a scope, behind a call whose result other threads of the scope read.

use super::emit::Emit;
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::{ExecScope, Expr};

/// The first of the named barriers used for warpgroups, one each: a block has up to eight warpgroups.
const WARPGROUP_BARRIER: i32 = 8;

/// The barrier of the call's scope.
pub(super) fn barrier(out: &mut Emit<'_, '_>) {
    let call = match out.cx.scope {
        ExecScope::Cta => Op::CudaCtaSync.call(),
        ExecScope::Warpgroup => {
            let number = fold::add(out.cx.warpgroup(), Expr::int32(WARPGROUP_BARRIER));
            Op::CudaWarpgroupSync.call().set("bar_no", number)
        }
        ExecScope::Warp => Op::CudaWarpSync.call(),
        ExecScope::Thread | ExecScope::Cluster => return,
    };
    out.push(call.at(out.span()).stmt());
}
