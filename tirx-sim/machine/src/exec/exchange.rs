//! Shuffles, votes and reductions: lanes of a warp exchange values.

use super::run::Machine;
use super::{Strand, Trap};
use crate::alu::{Bin, LANES, scalar32, scalar64};
use crate::bytecode::{Operand, Shuffle, ShuffleMode};
use crate::fault::FaultKind;
use crate::numeric::Kind;

/// What each lane contributes besides its value.
pub(super) struct Arguments {
    lane: [u32; LANES],
    width: [u32; LANES],
    mask: [u32; LANES],
}

impl Arguments {
    pub(super) fn new() -> Arguments {
        Arguments {
            lane: [0; LANES],
            width: [0; LANES],
            mask: [0; LANES],
        }
    }
}

impl Machine<'_, '_> {
    /// `elect.sync` with the mask of a whole warp: all of its lanes take part in one election.
    pub(super) fn converged(&self, mask: u32) -> Result<(), Box<Trap>> {
        let absent = self.warp.alive & !mask;
        if absent == 0 {
            return Ok(());
        }
        let message = format!(
            "elect.sync by {} of the {} lanes of the warp that run: all of them elect together (its mask is 0xffffffff), and \
             lane {} is not here",
            mask.count_ones(),
            self.warp.alive.count_ones(),
            absent.trailing_zeros()
        );
        Err(Trap::new(
            FaultKind::InvalidLanes,
            mask.trailing_zeros() & 31,
            message,
        ))
    }

    /// Adds the arguments of a strand's lanes.
    pub(super) fn arguments(&self, shuffle: &Shuffle, strand: &Strand, out: &mut Arguments) {
        let fill = |operand: Operand, out: &mut [u32; LANES]| {
            for (i, out) in out.iter_mut().enumerate() {
                if strand.mask >> i & 1 != 0 {
                    *out = match operand {
                        Operand::S(s) => strand.scalars[s as usize] as u32,
                        Operand::V(v) => self.warp.v32[v as usize][i],
                    };
                }
            }
        };
        fill(shuffle.lane, &mut out.lane);
        fill(shuffle.width, &mut out.width);
        fill(shuffle.mask, &mut out.mask);
    }

    /// The lanes that a strand's shuffle needs, of those that are alive.
    pub(super) fn needed(&self, shuffle: &Shuffle, strand: &Strand) -> Result<u32, Box<Trap>> {
        if let Operand::S(s) = shuffle.mask {
            let member_mask = strand.scalars[s as usize] as u32;
            return self.lanes_to_wait_for(member_mask, strand.mask);
        }
        let mut arguments = Arguments::new();
        self.arguments(shuffle, strand, &mut arguments);
        let mut needed = 0;
        for lane in 0..LANES as u32 {
            if strand.mask >> lane & 1 != 0 {
                needed |= self.lanes_to_wait_for(arguments.mask[lane as usize], 1 << lane)?;
            }
        }
        Ok(needed)
    }

    /// The lanes that must arrive before `lanes` can exchange values: those that `member_mask`, the mask operand of the instruction, names
    /// and that have not ended.
    ///
    /// # Errors
    /// A lane of `lanes` that the mask does not name; PTX leaves this undefined.
    fn lanes_to_wait_for(&self, member_mask: u32, lanes: u32) -> Result<u32, Box<Trap>> {
        let missing = lanes & !member_mask;
        if missing != 0 {
            let lane = missing.trailing_zeros();
            let message =
                format!("lane {lane} takes part with mask {member_mask:#010x}, which does not name it");
            return Err(Trap::new(FaultKind::InvalidLanes, lane, message));
        }
        Ok(member_mask & self.warp.alive)
    }

    /// Exchanges the values of `lanes`, all of which have arrived. Gives the result where it is uniform.
    pub(super) fn exchange(
        &mut self,
        pc: usize,
        shuffle: &Shuffle,
        lanes: u32,
        arguments: &Arguments,
    ) -> Result<u64, Box<Trap>> {
        let wide = shuffle.kind.wide();
        let mut values = [0u64; LANES];
        for (i, value) in values.iter_mut().enumerate() {
            *value = if wide {
                self.warp.v64[shuffle.value as usize][i]
            } else {
                self.warp.v32[shuffle.value as usize][i] as u64
            };
        }
        let out = self.results(shuffle, lanes, arguments, &values)?;
        if shuffle.mode == ShuffleMode::Meet {
            self.meet_by_mask(lanes, arguments);
        }
        let sources = match self.warp.shadows.is_some() {
            true => self.sources(shuffle, lanes, arguments)?,
            false => None,
        };
        if let Some(sources) = sources {
            self.shade_exchanged(pc, shuffle, lanes, &sources, (&values, &out));
        }
        match shuffle.d {
            Operand::S(_) => Ok(out[lanes.trailing_zeros() as usize % LANES]),
            Operand::V(d) => {
                for i in (0..LANES).filter(|i| lanes >> i & 1 != 0) {
                    // Votes and reductions over masks are 32-bit whatever the value was.
                    if wide
                        && !matches!(
                            shuffle.mode,
                            ShuffleMode::Ballot
                                | ShuffleMode::Meet
                                | ShuffleMode::Match
                                | ShuffleMode::Reduce(_)
                        )
                    {
                        self.warp.v64[d as usize][i] = out[i];
                    } else {
                        self.warp.v32[d as usize][i] = out[i] as u32;
                    }
                }
                Ok(0)
            }
        }
    }

    /// Of each lane the lanes whose values its result is made of, a bit each; none for an exchange whose results are no values.
    fn sources(
        &self,
        shuffle: &Shuffle,
        lanes: u32,
        arguments: &Arguments,
    ) -> Result<Option<[u64; LANES]>, Box<Trap>> {
        let mode = match shuffle.mode {
            ShuffleMode::Ballot | ShuffleMode::Meet | ShuffleMode::Match => return Ok(None),
            ShuffleMode::Reduce(_) => ShuffleMode::Reduce(Bin::Or),
            ShuffleMode::Butterfly(_) => ShuffleMode::Butterfly(Bin::Or),
            mode => mode,
        };
        let traced = Shuffle {
            mode,
            kind: Kind::U32,
            ..shuffle.clone()
        };
        let own = std::array::from_fn(|lane| 1 << lane);
        self.results(&traced, lanes, arguments, &own).map(Some)
    }

    /// Orders the memory accesses of lanes that have met, of each mask by itself.
    fn meet_by_mask(&mut self, lanes: u32, arguments: &Arguments) {
        let mut rest = lanes;
        while rest != 0 {
            let named = arguments.mask[rest.trailing_zeros() as usize % LANES];
            let group = (0..LANES).filter(|l| rest >> l & 1 != 0 && arguments.mask[*l] == named);
            let group = group.fold(0, |group, lane| group | 1 << lane);
            rest &= !group;
            let order = &mut self.shared.order;
            let known = order.release(self.id, group);
            order.acquire(self.id, group, &known);
        }
    }

    fn results(
        &self,
        shuffle: &Shuffle,
        lanes: u32,
        arguments: &Arguments,
        values: &[u64; LANES],
    ) -> Result<[u64; LANES], Box<Trap>> {
        let kind = shuffle.kind;
        let combine = |op: Bin, a: u64, b: u64| {
            if kind.wide() {
                scalar64(op, a, b)
            } else {
                kind.canonical(scalar32(op, a as u32, b as u32)) as u64
            }
        };
        let absent = |lane: u32, source: u32| {
            let why = if self.warp.exist >> source & 1 == 0 {
                "does not exist"
            } else if self.warp.alive >> source & 1 == 0 {
                "has ended"
            } else {
                "takes no part"
            };
            let message = format!("lane {lane} reads the value of lane {source}, which {why}");
            Trap::new(FaultKind::InvalidLanes, lane, message)
        };
        let mut out = *values;
        let members = || (0..LANES as u32).filter(|l| lanes >> l & 1 != 0);
        match shuffle.mode {
            ShuffleMode::Ballot | ShuffleMode::Meet => {
                for lane in members() {
                    let named = arguments.mask[lane as usize];
                    out[lane as usize] = members()
                        .filter(|l| named >> l & 1 != 0 && values[*l as usize] != 0)
                        .fold(0, |bits, l| bits | 1 << l);
                }
            }
            ShuffleMode::Match => {
                for lane in members() {
                    let named = arguments.mask[lane as usize];
                    out[lane as usize] = members()
                        .filter(|l| named >> l & 1 != 0 && values[*l as usize] == values[lane as usize])
                        .fold(0, |bits, l| bits | 1 << l);
                }
            }
            ShuffleMode::Reduce(op) => {
                for lane in members() {
                    let named = arguments.mask[lane as usize];
                    let all = members()
                        .filter(|l| named >> l & 1 != 0)
                        .map(|l| values[l as usize]);
                    out[lane as usize] = all.reduce(|a, b| combine(op, a, b)).unwrap_or(0);
                }
            }
            ShuffleMode::Butterfly(op) => {
                let width = arguments.width[lanes.trailing_zeros() as usize % LANES];
                let mut step = width / 2;
                while step > 0 {
                    let before = out;
                    for lane in members() {
                        let source = lane ^ step;
                        if lanes >> source & 1 == 0 {
                            return Err(absent(lane, source));
                        }
                        out[lane as usize] = combine(op, before[lane as usize], before[source as usize]);
                    }
                    step /= 2;
                }
            }
            ShuffleMode::Index | ShuffleMode::Up | ShuffleMode::Down | ShuffleMode::Xor => {
                for lane in members() {
                    let argument = arguments.lane[lane as usize];
                    // A width that is no power of two up to 32 is undefined; take the next one.
                    let width = arguments.width[lane as usize].clamp(1, 32).next_power_of_two();
                    let first = lane & !(width - 1);
                    let own = lane - first;
                    let source = match shuffle.mode {
                        ShuffleMode::Index => first + (argument & (width - 1)),
                        ShuffleMode::Up => own.checked_sub(argument).map_or(lane, |l| first + l),
                        ShuffleMode::Down => {
                            let to = own.saturating_add(argument);
                            if to < width { first + to } else { lane }
                        }
                        _ => {
                            let to = lane ^ (argument & 31);
                            if to < first + width { to } else { lane }
                        }
                    };
                    if lanes >> source & 1 == 0 {
                        return Err(absent(lane, source));
                    }
                    out[lane as usize] = values[source as usize];
                }
            }
        }
        Ok(out)
    }
}
