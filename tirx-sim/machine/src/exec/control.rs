//! Divergence: how strands split, reconverge, and run ahead.

use super::{Frame, Join, PATIENCE, Status, Strand, Warp};

/// The state of a strand after its active lanes have stopped or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Other lanes of the strand continue.
    Running,
    /// It waits within a join for strands that have not arrived; no lane of it runs.
    Parked,
    /// All its lanes have ended.
    Finished,
}

impl Warp {
    /// Ends a side of a branch: the active lanes wait for the others.
    pub(super) fn arrive(&mut self, strand: &mut Strand) -> Settled {
        match strand.frames.last_mut() {
            Some(Frame::If { joined, .. }) => *joined |= strand.mask,
            Some(Frame::Join(id)) => {
                let join = &mut self.joins[*id];
                join.joined |= strand.mask;
                join.scalars.clone_from(&strand.scalars);
            }
            _ => {}
        }
        strand.mask = 0;
        self.settle(strand)
    }

    /// The active lanes leave the innermost loop, or wait for its next iteration.
    pub(super) fn leave(&mut self, strand: &mut Strand, for_good: bool) -> Settled {
        let mask = std::mem::take(&mut strand.mask);
        let note = |frame: &mut Frame| match frame {
            Frame::Loop { next, left, .. } => {
                *(if for_good { left } else { next }) |= mask;
                None
            }
            Frame::Join(id) => Some(Some(*id)),
            Frame::If { .. } => Some(None),
        };
        let mut join = None;
        for frame in strand.frames.iter_mut().rev() {
            match note(frame) {
                None => return self.settle(strand),
                Some(id) => join = id,
            }
        }
        'outer: while let Some(id) = join.take() {
            for frame in self.joins[id].frames.iter_mut().rev() {
                match note(frame) {
                    None => break 'outer,
                    Some(id) => join = id,
                }
            }
        }
        self.settle(strand)
    }

    /// Selects lanes for a strand without active ones: those of the other side, or those that wait.
    pub(super) fn settle(&mut self, strand: &mut Strand) -> Settled {
        while strand.mask == 0 {
            let go_on = match strand.frames.last_mut() {
                None => return Settled::Finished,
                Some(Frame::If {
                    pending,
                    other,
                    joined,
                    join,
                }) => {
                    if *pending != 0 {
                        strand.mask = std::mem::take(pending);
                        strand.pc = *other as usize;
                        return Settled::Running;
                    }
                    (*joined, *join + 1)
                }
                Some(Frame::Loop {
                    next,
                    latch,
                    left,
                    exit,
                }) => {
                    if *next != 0 {
                        strand.mask = std::mem::take(next);
                        strand.pc = *latch as usize;
                        return Settled::Running;
                    }
                    (*left, *exit)
                }
                Some(Frame::Join(id)) => {
                    let join = &mut self.joins[*id];
                    join.open -= 1;
                    if join.open > 0 {
                        return Settled::Parked;
                    }
                    let join = std::mem::take(join);
                    strand.frames = join.frames;
                    strand.mask = join.joined;
                    strand.pc = join.join as usize + 1;
                    continue;
                }
            };
            strand.frames.pop();
            (strand.mask, strand.pc) = (go_on.0, go_on.1 as usize);
        }
        Settled::Running
    }

    /// A strand has to wait: the sides that it has not run yet become strands of their own, which need not wait.
    pub(super) fn part(&mut self, strand: &mut Strand) {
        let mut i = 0;
        while i < strand.frames.len() {
            let Frame::If {
                pending,
                other,
                joined,
                join,
            } = strand.frames[i]
            else {
                i += 1;
                continue;
            };
            if pending == 0 {
                i += 1;
                continue;
            }
            let rest = strand.frames.split_off(i + 1);
            let mut below = std::mem::take(&mut strand.frames);
            below.pop();
            let id = self.new_join(Join {
                frames: below,
                joined,
                join,
                open: 2,
                scalars: strand.scalars.clone(),
            });
            strand.frames.push(Frame::Join(id));
            strand.frames.extend(rest);
            self.strands.push(Strand {
                pc: other as usize,
                mask: pending,
                frames: vec![Frame::Join(id)],
                ..Strand::fresh(strand.scalars.clone())
            });
            i = 1;
        }
    }

    fn new_join(&mut self, join: Join) -> usize {
        // A slot without open strands is free.
        match self.joins.iter().position(|j| j.open == 0) {
            Some(free) => {
                self.joins[free] = join;
                free
            }
            None => {
                self.joins.push(join);
                self.joins.len() - 1
            }
        }
    }

    /// Lets lanes that wait to reconverge continue alone. False where none wait.
    pub(super) fn run_ahead(&mut self) -> bool {
        for s in 0..self.strands.len() {
            for i in (0..self.strands[s].frames.len()).rev() {
                if let Some((mask, pc, keep)) = waiting(&mut self.strands[s].frames[i]) {
                    let below = &self.strands[s].frames[..i + keep];
                    let frames = self.detached(below);
                    let scalars = self.strands[s].scalars.clone();
                    self.start(mask, pc, frames, scalars);
                    return true;
                }
            }
        }
        for j in 0..self.joins.len() {
            if self.joins[j].open == 0 {
                continue;
            }
            let scalars = self.joins[j].scalars.clone();
            let mask = std::mem::take(&mut self.joins[j].joined);
            if mask != 0 {
                let pc = self.joins[j].join + 1;
                let frames = self.detached(&self.joins[j].frames);
                self.start(mask, pc, frames, scalars);
                return true;
            }
            for i in (0..self.joins[j].frames.len()).rev() {
                if let Some((mask, pc, keep)) = waiting(&mut self.joins[j].frames[i]) {
                    let frames = self.detached(&self.joins[j].frames[..i + keep]);
                    self.start(mask, pc, frames, scalars);
                    return true;
                }
            }
        }
        false
    }

    /// Lets those lanes of a sleeping strand continue alone whose wait is over, while the others go on waiting.
    pub(super) fn part_with(&mut self, strand: usize, awake: u32) {
        let Some(sleeping) = self.strands.get_mut(strand) else {
            return;
        };
        sleeping.mask &= !awake;
        let (pc, scalars) = (sleeping.pc as u32, sleeping.scalars.clone());
        let frames = self.detached(&self.strands[strand].frames);
        self.start(awake, pc, frames, scalars);
    }

    /// Merges the strands at a barrier that all lanes have reached into one, so that none waits for others elsewhere.
    pub(super) fn unite(&mut self) {
        let Some((first, rest)) = self.strands.split_first() else {
            return;
        };
        let frames = self.detached(&first.frames);
        let alike = |s: &Strand| s.pc == first.pc && self.detached(&s.frames) == frames;
        if rest.is_empty() || !rest.iter().all(alike) {
            return;
        }
        let mask = self.strands.iter().fold(0, |mask, s| mask | s.mask);
        self.strands.truncate(1);
        self.joins.clear();
        if let [strand] = &mut self.strands[..] {
            strand.mask = mask;
            strand.frames = frames;
        }
    }

    fn start(&mut self, mask: u32, pc: u32, frames: Vec<Frame>, scalars: Vec<u64>) {
        self.strands.push(Strand {
            pc: pc as usize,
            mask,
            frames,
            ..Strand::fresh(scalars)
        });
    }

    /// The frames as those of a strand that waits for nobody.
    fn detached(&self, frames: &[Frame]) -> Vec<Frame> {
        let mut out = Vec::new();
        for frame in frames {
            match *frame {
                Frame::If { join, .. } => out.push(Frame::If {
                    pending: 0,
                    other: 0,
                    joined: 0,
                    join,
                }),
                Frame::Loop { latch, exit, .. } => out.push(Frame::Loop {
                    next: 0,
                    latch,
                    left: 0,
                    exit,
                }),
                Frame::Join(id) => {
                    let join = &self.joins[id];
                    out.extend(self.detached(&join.frames));
                    out.push(Frame::If {
                        pending: 0,
                        other: 0,
                        joined: 0,
                        join: join.join,
                    });
                }
            }
        }
        out
    }
}

/// Removes the lanes that wait in a frame: gives where they continue, and whether the frame stays theirs (1) or not
/// (0).
fn waiting(frame: &mut Frame) -> Option<(u32, u32, usize)> {
    let taken = match frame {
        Frame::If { joined, join, .. } => (std::mem::take(joined), *join + 1, 0),
        Frame::Loop { left, exit, next, .. } if *left != 0 || *next == 0 => (std::mem::take(left), *exit, 0),
        Frame::Loop { next, latch, .. } => (std::mem::take(next), *latch, 1),
        Frame::Join(_) => return None,
    };
    (taken.0 != 0).then_some(taken)
}

impl Strand {
    pub(super) fn fresh(scalars: Vec<u64>) -> Strand {
        Strand {
            pc: 0,
            mask: 0,
            frames: Vec::new(),
            scalars,
            status: Status::Ready,
            turns: 0,
            patience: PATIENCE,
            state: 0,
            spun: false,
            rest: 0,
            waits: None,
            turn: None,
        }
    }
}
