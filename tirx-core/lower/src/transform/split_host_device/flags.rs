//! Launch flags: programmatic dependent and cooperative launches.
//!
//! TVM 0.26 reads both from the function's `tirx.kernel_launch_params`, a list that it otherwise makes itself:
//! `T.func_attr({"tirx.kernel_launch_params": ["tirx.use_programtic_dependent_launch"]})`. Here an attribute with the
//! flag's name counts too, on the function (`T.func_attr`), around the launch or inside it (`T.attr`), and a kernel
//! that calls `T.cuda.grid_sync()` is cooperative without an attribute: no other launch of it can succeed.

use crate::ir::{AttrValue, Attrs, Expr};

use super::{COOPERATIVE_LAUNCH, KERNEL_LAUNCH_PARAMS, PROGRAMMATIC_LAUNCH};

/// Launch flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) programmatic: bool,
    pub(super) cooperative: bool,
}

impl Flags {
    /// The flag of a name; its right spelling is accepted too.
    fn named(name: &str) -> Option<Flags> {
        let mut flags = Flags::default();
        match name {
            PROGRAMMATIC_LAUNCH | "tirx.use_programmatic_dependent_launch" => flags.programmatic = true,
            COOPERATIVE_LAUNCH => flags.cooperative = true,
            _ => return None,
        }
        Some(flags)
    }

    /// The flag of an attribute statement; `None` for other attributes.
    pub(super) fn of_attribute(key: &str, value: &Expr) -> Option<Flags> {
        let flags = Flags::named(key)?;
        Some(if value.is_int(0) { Flags::default() } else { flags })
    }

    /// The launch flags of a function's attributes.
    pub(super) fn of_function(attrs: &Attrs) -> Flags {
        let listed = attrs.get(KERNEL_LAUNCH_PARAMS).and_then(AttrValue::as_list);
        let listed = listed.into_iter().flatten().filter_map(AttrValue::as_str);
        let set = attrs.iter().filter(|(_, value)| match value {
            AttrValue::Bool(set) => *set,
            value => value.as_int().is_some_and(|set| set != 0),
        });
        listed
            .chain(set.map(|(key, _)| &**key))
            .filter_map(Flags::named)
            .fold(Flags::default(), Flags::or)
    }

    /// The union of both.
    pub(super) fn or(self, other: Flags) -> Flags {
        Flags {
            programmatic: self.programmatic || other.programmatic,
            cooperative: self.cooperative || other.cooperative,
        }
    }

    /// The launch parameters, in TVM's order.
    pub(super) fn tags(self) -> impl Iterator<Item = &'static str> {
        let programmatic = self.programmatic.then_some(PROGRAMMATIC_LAUNCH);
        let cooperative = self.cooperative.then_some(COOPERATIVE_LAUNCH);
        programmatic.into_iter().chain(cooperative)
    }
}
