//! Mbarriers (PTX ISA, "mbarrier"): objects of 8 bytes in shared memory that complete phases.
//!
//! A phase waits for a number of arrivals and for bytes of asynchronous copies. When it has no arrival pending and no
//! bytes outstanding it is complete, and the next one begins with as many arrivals.

use crate::bytecode::{Code, PENDING_BITS};
use crate::exec::order::{Known, Mark};
use crate::explore::Touch;

/// Most arrivals of a phase, and most bytes outstanding.
pub(crate) const MOST: u32 = (1 << PENDING_BITS) - 1;

/// What arrivals have released.
#[derive(Clone, Debug, Default)]
pub(crate) struct Released {
    /// By threads of the block and by operations.
    pub(crate) near: Option<Known>,
    /// By threads of other blocks, for waits at cluster scope.
    pub(crate) far: Option<Known>,
}

fn join(all: &mut Option<Known>, known: &Known) {
    match all {
        Some(all) => all.join(known),
        none => *none = Some(known.clone()),
    }
}

/// The bytes of a phase, for messages: those that were expected, and those of the copies that the block issued in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) expected: u64,
    pub(crate) issued: u64,
}

/// An mbarrier that has been initialized.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    /// Arrivals that each phase waits for.
    pub(crate) count: u32,
    /// Those that the current phase still waits for.
    pub(crate) pending: u32,
    /// Bytes expected and not copied yet; negative where copies came before they were expected.
    pub(crate) bytes: i64,
    /// Phases that are complete.
    pub(crate) phase: u64,
    /// What has been released in the current phase, and in those that are complete.
    arriving: Released,
    pub(crate) complete: Released,
    /// Who initialized it.
    pub(crate) init: Mark,
    /// The initialization as an operation, which `fence.mbarrier_init` publishes by itself.
    pub(crate) published: Mark,
    /// The copies whose bytes count in the current phase: their instructions and how many bytes.
    counted: Vec<(usize, u64)>,
    /// Phases that a thread of the block has seen complete.
    pub(crate) seen: u64,
    /// Arrivals of threads of other blocks, with their phases: of those that nobody has seen complete.
    pub(crate) far: Vec<(u64, Mark)>,
    /// The bytes of the current phase, and of the one before.
    account: Account,
    last: Account,
    /// Who had last written the memory that the mbarrier is in when it was initialized, place by place.
    pub(crate) beneath: Vec<Mark>,
    /// How many operations the block had issued when a fence made the initialization visible to other proxies: to later ones.
    fenced: Option<u64>,
}

impl Mbarrier {
    pub(crate) fn new(count: u32, init: Mark, published: Mark) -> Mbarrier {
        Mbarrier {
            count,
            pending: count,
            bytes: 0,
            phase: 0,
            arriving: Released::default(),
            complete: Released::default(),
            init,
            published,
            counted: Vec::new(),
            seen: 0,
            far: Vec::new(),
            account: Account::default(),
            last: Account::default(),
            beneath: Vec::new(),
            fenced: None,
        }
    }

    /// A thread of another block arrives.
    pub(crate) fn arrives_from_far(&mut self, mark: Mark) {
        let seen = self.seen;
        self.far.retain(|(phase, _)| *phase >= seen);
        self.far.push((self.phase, mark));
    }

    /// The block issues a copy of so many bytes. Gives the phase.
    pub(crate) fn issue(&mut self, bytes: u32) -> u64 {
        self.account.issued += u64::from(bytes);
        self.phase
    }

    /// The bytes of the current phase or of the one before.
    pub(crate) fn account(&self, phase: u64) -> Option<Account> {
        match self.phase.checked_sub(phase)? {
            0 => Some(self.account),
            1 => Some(self.last),
            _ => None,
        }
    }

    /// A fence that comes after so many operations of the block makes the initialization visible to other proxies.
    pub(crate) fn fence(&mut self, issued: u64) {
        self.fenced.get_or_insert(issued);
    }

    /// Whether a fence has come before an operation of the block, or, of an operation of another block, at all.
    pub(crate) fn is_fenced(&self, operation: Option<u64>) -> bool {
        self.fenced
            .is_some_and(|issued| operation.is_none_or(|number| issued <= number))
    }

    /// What tells how it is touched: phase, arrivals that are pending, bytes that are outstanding.
    pub(crate) fn counts(&self) -> (u64, u32, i64) {
        (self.phase, self.pending, self.bytes)
    }

    /// How it has been touched since these were its counts.
    pub(crate) fn touched_since(&self, (phase, pending, bytes): (u64, u32, i64)) -> Touch {
        let completes = self.phase > phase;
        let now = self.counts();
        // Arrivals and copies of a phase that has all its bytes announced commute with those of their kind. An announcement
        // does not: a phase could be complete before.
        match completes {
            _ if now == (phase, pending, bytes) => Touch::Read,
            true if bytes == 0 => Touch::Arrive { phase, completes },
            false if now.2 == bytes && now.1 < pending => Touch::Arrive { phase, completes },
            _ if pending == 0 && bytes > 0 && now.2 < bytes => Touch::Arrive { phase, completes },
            _ => Touch::Count { phase },
        }
    }

    /// Whether the phase of this parity is complete.
    pub(crate) fn is_complete(&self, parity: u32) -> bool {
        self.phase as u32 & 1 != parity & 1
    }

    /// What is released with the current phase; `far`: by a thread of another block, to waits at cluster scope.
    pub(crate) fn tell(&mut self, known: &Known, far: bool) {
        join(
            match far {
                true => &mut self.arriving.far,
                false => &mut self.arriving.near,
            },
            known,
        );
    }

    /// The state of the current phase, as an arrival gives it to its thread: the phase, and how many arrivals it waits for.
    pub(crate) fn state(&self) -> u64 {
        self.phase << PENDING_BITS | u64::from(self.pending)
    }

    /// Whether the phase of a state is complete. An error says why that cannot be known.
    pub(crate) fn has_completed(&self, state: u64) -> Result<bool, String> {
        let phase = state >> PENDING_BITS;
        match self.phase.checked_sub(phase) {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(format!(
                "tests a state of phase {phase} of an mbarrier in phase {}: a state can be tested in its phase and in the one \
                 after it",
                self.phase
            )),
        }
    }

    /// Lets all later phases wait for as many arrivals less.
    pub(crate) fn drop_arrivals(&mut self, count: u32) {
        self.count = self.count.saturating_sub(count);
    }

    /// Arrivals. An error says which rule forbids them.
    pub(crate) fn arrive(&mut self, count: u32) -> Result<(), String> {
        if count > self.pending {
            let times = match count {
                1 => "once".to_string(),
                count => format!("{count} times"),
            };
            if self.pending == 0 && self.bytes < 0 {
                return Err(format!(
                    "arrives {times} at an mbarrier whose phase {} never completes: it {}. On an H100 such an arrival ends the \
                     launch with a failure",
                    self.phase,
                    self.surplus()
                ));
            }
            // All have arrived, and the copies have not: who arrives again means the next phase.
            let early = match self.pending {
                0 => {
                    " and for bytes of copies: it is too early to arrive for the phase after it, so wait for this one first (who fills a \
                      slot again, until its readers are done with it)"
                }
                _ => "",
            };
            return Err(format!(
                "arrives {times} at an mbarrier whose phase {} waits for {} more of its {} arrivals{early}",
                self.phase, self.pending, self.count
            ));
        }
        if self.seen != self.phase {
            return Err(format!(
                "arrives for phase {} of an mbarrier, and no thread has seen that phase {} is complete: of each phase at least one \
                 wait or test must return true before arrivals of the next (PTX ISA, \"Phase of the mbarrier object\")",
                self.phase,
                self.phase.saturating_sub(1)
            ));
        }
        self.pending -= count;
        self.advance();
        Ok(())
    }

    /// How many bytes a phase expects, and how many more its copies have brought.
    fn surplus(&self) -> String {
        let expected = self.account.expected as i64;
        format!(
            "expects {expected} bytes (expect_tx), and copies have brought {}",
            expected - self.bytes
        )
    }

    /// Adds expected bytes.
    pub(crate) fn expect(&mut self, bytes: u32) -> Result<(), String> {
        self.account.expected += u64::from(bytes);
        self.bytes += i64::from(bytes);
        self.check()
    }

    /// Subtracts bytes that an instruction has copied.
    pub(crate) fn copied(&mut self, pc: usize, bytes: u32) -> Result<(), String> {
        match self.counted.iter_mut().find(|(at, _)| *at == pc) {
            Some((_, all)) => *all += u64::from(bytes),
            None => self.counted.push((pc, bytes.into())),
        }
        self.bytes -= i64::from(bytes);
        self.check()?;
        self.advance();
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.bytes.unsigned_abs() <= u64::from(MOST) {
            return Ok(());
        }
        Err(format!(
            "leaves {} bytes outstanding at an mbarrier, which counts to {MOST}",
            self.bytes
        ))
    }

    fn advance(&mut self) {
        if self.pending != 0 || self.bytes != 0 {
            return;
        }
        self.phase += 1;
        self.pending = self.count;
        self.counted.clear();
        self.last = std::mem::take(&mut self.account);
        let arriving = std::mem::take(&mut self.arriving);
        arriving
            .near
            .iter()
            .for_each(|known| join(&mut self.complete.near, known));
        arriving
            .far
            .iter()
            .for_each(|known| join(&mut self.complete.far, known));
    }

    /// What the current phase still waits for, for messages, and which copies have counted.
    pub(crate) fn missing(&self, code: &Code) -> String {
        let arrivals = format!("{} of {} arrivals", self.pending, self.count);
        let copy = |(pc, bytes): &(usize, u64)| match code.location(*pc) {
            Some(at) => format!("{bytes} of the copy in line {}", at.line),
            None => format!("{bytes} of a copy"),
        };
        let counted: Vec<String> = self.counted.iter().map(copy).collect();
        let counted = match counted.as_slice() {
            [] => String::new(),
            counted => format!(" (counted so far: {})", counted.join(", ")),
        };
        let missing = match self.bytes {
            0 => arrivals,
            1.. => format!("{arrivals} and {} bytes of copies", self.bytes),
            _ => format!("{arrivals}, and never completes: it {}", self.surplus()),
        };
        match self.bytes {
            0 => missing,
            _ => missing + &counted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_complete_when_arrivals_and_bytes_are_there() {
        let mut barrier = Mbarrier::new(2, Mark::NEVER, Mark::NEVER);
        assert!(barrier.is_complete(1) && !barrier.is_complete(0));
        assert_eq!(
            barrier.copied(7, 64),
            Ok(()),
            "a copy may be faster than who expects it"
        );
        assert_eq!(barrier.arrive(1), Ok(()));
        assert_eq!(barrier.expect(128), Ok(()));
        assert_eq!(barrier.arrive(1), Ok(()));
        assert!(!barrier.is_complete(0), "{}", barrier.missing(&Code::default()));
        assert_eq!(barrier.copied(7, 64), Ok(()));
        assert!(barrier.is_complete(0) && !barrier.is_complete(1));
        assert!(
            barrier
                .arrive(1)
                .is_err_and(|m| m.contains("no thread has seen that phase 0 is complete"))
        );
        barrier.seen = barrier.phase;
        assert!(barrier.arrive(3).is_err());
        assert_eq!(barrier.arrive(2), Ok(()));
        assert!(barrier.is_complete(1));
    }
}
