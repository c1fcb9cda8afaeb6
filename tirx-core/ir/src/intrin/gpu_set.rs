//! Which GPUs have an instruction?
//!
//! PTX ISA: an instruction needs a least architecture (`sm_90`), or one that is named exactly (`sm_90a`), or one of a
//! family (`sm_100f`: 10.0, 10.3 and what else is compatible with it; `sm_100a` includes it).

use std::fmt;

use crate::ir::{Gpu, Variant};

/// The least architecture that is supported.
const OLDEST: u32 = 75;

/// The GPUs that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSet {
    /// The least architecture, as 90 for `sm_90`.
    pub least: u32,
    /// Families of which the target must name its specific features (`sm_90a`, `sm_100f`); empty for any.
    pub families: &'static [u32],
    /// Whether `sm_100f` is enough where `families` holds 100; else only `sm_100a` is.
    pub family_suffix: bool,
}

impl GpuSet {
    /// Every GPU that is supported.
    pub const ANY: GpuSet = GpuSet::least(0);

    /// This one and later ones.
    pub const fn least(least: u32) -> GpuSet {
        GpuSet {
            least,
            families: &[],
            family_suffix: false,
        }
    }

    /// Only `sm_…a` of these.
    pub const fn exact(families: &'static [u32]) -> GpuSet {
        GpuSet {
            least: 0,
            families,
            family_suffix: false,
        }
    }

    /// `sm_…a` and `sm_…f` of these families.
    pub const fn families(families: &'static [u32]) -> GpuSet {
        GpuSet {
            least: 0,
            families,
            family_suffix: true,
        }
    }

    /// The GPUs that one of the sets has; `None` for sets of families that are named in different ways.
    pub(super) fn union(sets: &[GpuSet]) -> Option<GpuSet> {
        let first = *sets.first()?;
        let alike = |set: &GpuSet| (set.least, set.family_suffix) == (0, first.family_suffix);
        match sets {
            [one] if one.families.is_empty() && one.least < OLDEST => Some(GpuSet::ANY),
            [one] => Some(*one),
            // Few lines name several families, and their GPUs live as long as the tables.
            _ if sets.iter().all(alike) => Some(GpuSet {
                families: Vec::leak(sets.iter().flat_map(|set| set.families).copied().collect()),
                ..first
            }),
            _ => None,
        }
    }

    /// Whether a GPU has it.
    pub fn holds(&self, gpu: Gpu) -> bool {
        if gpu.number() < self.least {
            return false;
        }
        let named = match gpu.variant() {
            Variant::Portable => false,
            Variant::Specific => true,
            Variant::Family => self.family_suffix,
        };
        self.families.is_empty() || named && self.families.contains(&gpu.family())
    }

    /// The lowest architecture that has it.
    pub fn example(&self) -> String {
        match self.families.first() {
            Some(family) => format!("sm_{}a", self.least.max(*family)),
            None => format!("sm_{}", self.least.max(OLDEST)),
        }
    }
}

impl fmt::Display for GpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.families.is_empty() {
            return match self.least {
                0 => f.write_str("any"),
                least => write!(f, "sm_{least} or later"),
            };
        }
        let first = |n: &u32| self.least.max(*n);
        let mut names: Vec<String> = self
            .families
            .iter()
            .map(|n| format!("sm_{}a", first(n)))
            .collect();
        if self.family_suffix {
            names.extend(self.families.iter().map(|n| format!("sm_{}f", first(n))));
        }
        f.write_str(&names.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str) -> Gpu {
        name.parse().expect("a name of the test")
    }

    #[test]
    fn targets_have_what_their_family_has() {
        let tcgen05 = GpuSet::families(&[100, 110]);
        for (target, holds) in [
            ("sm_100a", true),
            ("sm_103f", true),
            ("sm_110a", true),
            ("sm_120a", false),
            ("sm_100", false),
        ] {
            assert_eq!(tcgen05.holds(gpu(target)), holds, "{target}");
        }
        assert!(GpuSet::exact(&[90]).holds(gpu("sm_90a")) && !GpuSet::exact(&[90]).holds(gpu("sm_100a")));
        assert!(GpuSet::least(90).holds(gpu("sm_120")) && !GpuSet::least(90).holds(gpu("sm_80")));
        assert_eq!(tcgen05.to_string(), "sm_100a or sm_110a or sm_100f or sm_110f");
    }
}
