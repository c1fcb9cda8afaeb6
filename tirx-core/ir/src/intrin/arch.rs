//! Which GPUs have an instruction?
//!
//! PTX ISA: an instruction needs a least architecture (`sm_90`), or one that is named exactly (`sm_90a`), or one of a
//! family (`sm_100f`: 10.0, 10.3 and what else is compatible with it; `sm_100a` includes it).

use std::fmt;

/// The GPUs that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    /// The least architecture, as 90 for `sm_90`.
    pub least: u32,
    /// Families of which the target must name its specific features (`sm_90a`, `sm_100f`); empty for any.
    pub families: &'static [u32],
    /// Whether `sm_100f` is enough where `families` holds 100; else only `sm_100a` is.
    pub family_suffix: bool,
}

impl Arch {
    /// Every GPU that is supported.
    pub const ANY: Arch = Arch::least(0);

    /// This one and later ones.
    pub const fn least(least: u32) -> Arch {
        Arch {
            least,
            families: &[],
            family_suffix: false,
        }
    }

    /// Only `sm_…a` of these.
    pub const fn exact(families: &'static [u32]) -> Arch {
        Arch {
            least: 0,
            families,
            family_suffix: false,
        }
    }

    /// `sm_…a` and `sm_…f` of these families.
    pub const fn families(families: &'static [u32]) -> Arch {
        Arch {
            least: 0,
            families,
            family_suffix: true,
        }
    }

    /// Whether a target (`sm_100a`) has it; true for a target of an unknown form.
    pub fn holds(&self, target: &str) -> bool {
        let Some(rest) = target.strip_prefix("sm_") else {
            return true;
        };
        let digits = rest.trim_end_matches(['a', 'f']);
        let Ok(number) = digits.parse::<u32>() else {
            return true;
        };
        if number < self.least {
            return false;
        }
        if self.families.is_empty() {
            return true;
        }
        let suffix = &rest[digits.len()..];
        let named = suffix == "a" || suffix == "f" && self.family_suffix;
        named && self.families.contains(&(number / 10 * 10))
    }

    /// The lowest architecture that has it.
    pub fn example(&self) -> String {
        match self.families.first() {
            Some(family) => format!("sm_{}a", self.least.max(*family)),
            None => format!("sm_{}", self.least.max(75)),
        }
    }
}

impl fmt::Display for Arch {
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

/// An architecture by its name: the number of `sm_100a`, and its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchName<'a> {
    number: u32,
    suffix: &'a str,
}

impl<'a> ArchName<'a> {
    /// Reads `sm_90`, `sm_100a`, `sm_100f`; `None` for what has another form.
    pub fn parse(name: &'a str) -> Option<ArchName<'a>> {
        let rest = name.strip_prefix("sm_")?;
        let digits = rest.trim_end_matches(['a', 'f']);
        let (number, suffix) = (digits.parse().ok()?, &rest[digits.len()..]);
        matches!(suffix, "" | "a" | "f").then_some(ArchName { number, suffix })
    }

    /// Whether code for `target` may use what this architecture has: `sm_90a` is that one alone, `sm_100f` also later ones of
    /// its family, `sm_90` every later one.
    pub fn includes(self, target: ArchName<'_>) -> bool {
        match self.suffix {
            "" => target.number >= self.number,
            "f" => {
                !target.suffix.is_empty()
                    && target.number / 10 == self.number / 10
                    && target.number >= self.number
            }
            _ => self == target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_includes_what_is_compatible() {
        let includes = |name: &str, target: &str| {
            let parse = |name| ArchName::parse(name).expect("a name of the test");
            parse(name).includes(parse(target))
        };
        assert!(
            includes("sm_90a", "sm_90a") && !includes("sm_90a", "sm_90") && !includes("sm_90a", "sm_100a")
        );
        assert!(includes("sm_90", "sm_90a") && includes("sm_90", "sm_120") && !includes("sm_90", "sm_80"));
        assert!(includes("sm_100f", "sm_103a") && includes("sm_100f", "sm_100f"));
        assert!(!includes("sm_100f", "sm_100") && !includes("sm_100f", "sm_110a"));
        assert_eq!(ArchName::parse("compute_90").or(ArchName::parse("sm_90b")), None);
    }

    #[test]
    fn targets_have_what_their_family_has() {
        let tcgen05 = Arch::families(&[100, 110]);
        for (target, holds) in [
            ("sm_100a", true),
            ("sm_103f", true),
            ("sm_110a", true),
            ("sm_120a", false),
            ("sm_100", false),
        ] {
            assert_eq!(tcgen05.holds(target), holds, "{target}");
        }
        assert!(Arch::exact(&[90]).holds("sm_90a") && !Arch::exact(&[90]).holds("sm_100a"));
        assert!(Arch::least(90).holds("sm_120") && !Arch::least(90).holds("sm_80"));
        assert_eq!(tcgen05.to_string(), "sm_100a or sm_110a or sm_100f or sm_110f");
    }
}
