//! Shadows of values that lanes of a warp exchange.

use super::{Shade, Slot, least, number};
use crate::accuracy::Sample;
use crate::alu::{Bin, LANES};
use crate::bytecode::{Operand, R, Shuffle, ShuffleMode};
use crate::exec::run::Machine;

impl Machine<'_, '_> {
    /// Shadows of values that lanes have exchanged: of the lane that a result comes from, or of the reduction of the lanes in `sources`.
    pub(in crate::exec) fn shade_exchanged(
        &mut self,
        pc: usize,
        shuffle: &Shuffle,
        lanes: u32,
        sources: &[u64; LANES],
        (before, after): (&[u64; LANES], &[u64; LANES]),
    ) {
        let kind = shuffle.kind;
        let slot = |r: R| if kind.wide() { Slot::V64(r) } else { Slot::V32(r) };
        let from = slot(shuffle.value);
        let reduces = match shuffle.mode {
            ShuffleMode::Reduce(op) | ShuffleMode::Butterfly(op) => Some(op),
            _ => None,
        };
        if reduces.is_some() && !kind.is_float() {
            return;
        }
        let value = |lane: usize| {
            let rounded = number(kind, before[lane]);
            let shadow = self.shade_of(from, lane).value(before[lane]);
            (rounded, shadow.unwrap_or(rounded))
        };
        let (mut shades, mut samples) = (Vec::new(), Vec::new());
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
            let bits = after[lane];
            let mut members = (0..LANES).filter(|other| sources[lane] >> other & 1 != 0);
            let shade = match reduces {
                None => (members.next()).map_or(Shade::NONE, |source| self.shade_of(from, source)),
                Some(Bin::AddF) => {
                    let (exact, shadow) = members
                        .map(value)
                        .fold((0.0, 0.0), |(x, y), v| (x + v.0, y + v.1));
                    samples.push(Sample {
                        rounded: number(kind, bits),
                        exact,
                        shadow,
                        term: 0.0,
                        least: least(kind),
                    });
                    Shade::of_value(bits, shadow)
                }
                Some(_) => {
                    let same = members.find(|other| before[*other] == bits);
                    same.map_or(Shade::NONE, |source| Shade::of_value(bits, value(source).1))
                }
            };
            shades.push((lane, shade));
        }
        self.note_samples(pc, &samples);
        match shuffle.d {
            Operand::V(d) => {
                for (lane, shade) in shades {
                    self.set_shade(slot(d), lane, shade);
                }
            }
            Operand::S(d) => {
                if let Some((_, shade)) = shades.first() {
                    self.set_shade(Slot::S(d), 0, *shade);
                }
            }
        }
    }
}
