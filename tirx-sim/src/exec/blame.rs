//! What is said of an access that was not allowed.

use super::address::Target;
use super::place::pointed;
use super::run::Machine;
use super::shadow::Finding;
use super::{Trap, thread_of};
use crate::bytecode::{Access, Region};
use crate::fault::FaultKind;

impl Machine<'_, '_> {
    /// The index of an element for messages.
    pub(super) fn element(&self, access: &Access, index: i64, c: u16) -> i64 {
        let first = match access.region {
            Region::Pointer => match pointed(access, index) {
                (Target::Shared(_, byte) | Target::Cluster(_, _, byte) | Target::Local(_, byte), half) => {
                    (byte * 8 + half) / access.kind.bits() as i64
                }
                (Target::Global(_), _) => index,
            },
            _ => index,
        };
        first + c as i64
    }

    /// The error of a finding.
    pub(super) fn found(
        &self,
        access: &Access,
        lane: u32,
        element: i64,
        finding: Finding,
        verb: &str,
    ) -> Box<Trap> {
        let name = format!("`{}[{element}]`", access.name);
        let me = self.thread(self.id as u32 * 32 + lane);
        let (other, past) = match finding {
            Finding::Uninitialized => {
                let place = if matches!(access.region, Region::Local(_)) {
                    "this thread"
                } else {
                    "any thread"
                };
                let message = format!("{verb} {name} before {place} has written it");
                return Trap::new(FaultKind::Uninitialized, lane, message);
            }
            Finding::AfterWrite(stamp) if stamp.is_atomic() => (stamp, "updated atomically"),
            Finding::AfterWrite(stamp) => (stamp, "wrote"),
            Finding::AfterRead(stamp) => (stamp, "read"),
        };
        let mut them = self.thread(other.thread());
        if other.is_remote() {
            them.push_str(" of another block of the cluster");
        }
        let same_warp = other.thread() / 32 == self.id as u32;
        // Of several readers one is known by name: here the thread itself.
        let is_own = !other.is_remote() && other.thread() == self.id as u32 * 32 + lane;
        let missing = if is_own {
            "no barrier orders it behind them"
        } else if other.is_remote() {
            "no cluster barrier orders the two"
        } else if same_warp {
            "no warp or block barrier orders the two"
        } else {
            "no barrier orders the two"
        };
        let them = match is_own {
            true => "other threads".to_string(),
            false => format!("thread {them}"),
        };
        let message = format!("thread {me} {verb} {name}, which {them} {past}, and {missing}");
        let mut trap = Trap::new(FaultKind::Race, lane, message);
        trap.notes.push((format!("{them} {past} it here"), other.pc()));
        trap
    }

    pub(super) fn thread(&self, linear: u32) -> String {
        let [x, y, z] = thread_of(self.ctx, linear);
        format!("({x}, {y}, {z})")
    }
}
