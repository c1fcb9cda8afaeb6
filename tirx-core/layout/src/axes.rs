//! What does an axis of a layout count, and how do axes relate?
//!
//! An axis of threads numbers units of one level within a wider one: `laneid` threads within a warp, `warpid` warps within
//! a block. Where one axis numbers the parts of what the other numbers, the two together are a third axis: `warpid` and
//! `laneid` are `tx`. All of that follows from the rows below.

use tirx_ir::layout::Axis;

/// A level of the machine, from one thread to all of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// One thread.
    Thread,
    /// 32 threads.
    Warp,
    /// Four warps.
    Warpgroup,
    /// A block.
    Cta,
    /// The blocks of a cluster.
    Cluster,
    /// All blocks of a launch.
    Kernel,
}

impl Level {
    /// The name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Thread => "thread",
            Level::Warp => "warp",
            Level::Warpgroup => "warpgroup",
            Level::Cta => "cta",
            Level::Cluster => "cluster",
            Level::Kernel => "kernel",
        }
    }

    /// How many threads make one, for levels below the block.
    pub const fn threads(self) -> Option<i128> {
        match self {
            Level::Thread => Some(1),
            Level::Warp => Some(32),
            Level::Warpgroup => Some(128),
            Level::Cta | Level::Cluster | Level::Kernel => None,
        }
    }
}

/// A memory, whose axes together give a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Elements one after the other.
    Linear,
    /// Lanes and columns of tensor memory.
    Tensor,
    /// Partitions and their elements, of scratchpads.
    Partitioned,
    /// Banks.
    Banked,
}

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Elements of memory, or rows and columns of it.
    Memory(Memory),
    /// Units of one level within one of another.
    Units {
        /// What a step is.
        unit: Level,
        /// What the steps are parts of.
        whole: Level,
    },
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisRow {
    /// Its name in text.
    pub name: &'static str,
    /// What it counts.
    pub counts: Counts,
}

const fn units(name: &'static str, unit: Level, whole: Level) -> AxisRow {
    let counts = Counts::Units { unit, whole };
    AxisRow { name, counts }
}

const fn memory(name: &'static str, memory: Memory) -> AxisRow {
    let counts = Counts::Memory(memory);
    AxisRow { name, counts }
}

/// Elements of memory, one after the other.
pub const MEMORY: AxisRow = memory(tirx_ir::layout::MEMORY, Memory::Linear);

/// Columns of tensor memory.
pub const TENSOR_COLUMN: AxisRow = memory("TCol", Memory::Tensor);

/// Lanes of tensor memory.
pub const TENSOR_LANE: AxisRow = memory("TLane", Memory::Tensor);

/// Every axis: hardware axes, then those of memory.
pub static AXES: &[AxisRow] = &[
    units("bx", Level::Cta, Level::Kernel),
    units("by", Level::Cta, Level::Kernel),
    units("bz", Level::Cta, Level::Kernel),
    units("cbx", Level::Cta, Level::Cluster),
    units("cby", Level::Cta, Level::Cluster),
    units("cbz", Level::Cta, Level::Cluster),
    units("tx", Level::Thread, Level::Cta),
    units("warpid", Level::Warp, Level::Cta),
    units("laneid", Level::Thread, Level::Warp),
    units("wgid", Level::Warpgroup, Level::Cta),
    units("tid_in_wg", Level::Thread, Level::Warpgroup),
    units("wid_in_wg", Level::Warp, Level::Warpgroup),
    MEMORY,
    memory("P", Memory::Partitioned),
    memory("F", Memory::Partitioned),
    memory("Bank", Memory::Banked),
    TENSOR_COLUMN,
    TENSOR_LANE,
];

/// The row of an axis.
pub fn row(axis: &Axis) -> Option<&'static AxisRow> {
    named(&axis.0)
}

/// The row of this name.
pub fn named(name: &str) -> Option<&'static AxisRow> {
    AXES.iter().find(|row| row.name == name)
}

/// The axis that numbers units of one level within another.
pub fn numbering(unit: Level, whole: Level) -> Option<&'static AxisRow> {
    AXES.iter()
        .find(|row| row.counts == Counts::Units { unit, whole })
}

/// Whether an axis spreads elements over threads or blocks.
pub fn is_hardware(axis: &Axis) -> bool {
    row(axis).is_none_or(|row| row.memory().is_none())
}

/// The axes that number threads of a block, each with the threads of a step.
pub fn of_threads() -> impl Iterator<Item = (&'static AxisRow, i128)> {
    AXES.iter().filter_map(|row| Some((row, row.threads()?)))
}

/// The axes that number threads of a level, or groups of them within it, each with the threads of a step.
pub fn within(level: Level) -> impl Iterator<Item = (&'static AxisRow, i128)> {
    of_threads().filter(move |(row, _)| row.levels().is_some_and(|(_, whole)| whole <= level))
}

/// The names of all axes.
pub fn names() -> impl Iterator<Item = &'static str> {
    AXES.iter().map(|row| row.name)
}

impl AxisRow {
    /// Whether it is this axis.
    pub fn is(&self, axis: &Axis) -> bool {
        *self.name == *axis.0
    }

    /// Its memory; `None` for axes of threads and blocks.
    pub const fn memory(&self) -> Option<Memory> {
        match self.counts {
            Counts::Memory(memory) => Some(memory),
            Counts::Units { .. } => None,
        }
    }

    /// Unit and whole; `None` for memory.
    pub const fn levels(&self) -> Option<(Level, Level)> {
        match self.counts {
            Counts::Memory(_) => None,
            Counts::Units { unit, whole } => Some((unit, whole)),
        }
    }

    /// How many threads a step of the axis is; `None` for axes that number no threads of a block.
    pub const fn threads(&self) -> Option<i128> {
        match self.counts {
            Counts::Memory(_) => None,
            Counts::Units { unit, .. } => unit.threads(),
        }
    }

    /// How many steps the axis has, where that is the same in every launch.
    pub const fn steps(&self) -> Option<i128> {
        match self.counts {
            Counts::Units { unit, whole } => match (whole.threads(), unit.threads()) {
                (Some(all), Some(one)) => Some(all / one),
                _ => None,
            },
            Counts::Memory(_) => None,
        }
    }
}

/// Two axes that are one together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// Numbers what the other one divides.
    pub(crate) outer: &'static AxisRow,
    /// Numbers parts of a step of the outer one.
    pub(crate) inner: &'static AxisRow,
    /// Steps of the inner axis in one of the outer.
    pub(crate) count: i128,
    /// Numbers the inner one's units in the outer one's whole.
    pub(crate) both: &'static AxisRow,
}

/// All pairs of axes that are one together, narrower wholes first: what two of them make may be one of another pair.
pub(crate) fn pairs() -> impl Iterator<Item = Pair> {
    let threads = || of_threads().map(|(row, _)| row);
    let make = move |outer: &'static AxisRow| {
        threads().filter_map(move |inner| {
            let ((step, whole), (unit, of)) = (outer.levels()?, inner.levels()?);
            let both = numbering(unit, whole).filter(|_| of == step)?;
            let count = inner.steps()?;
            Some(Pair {
                outer,
                inner,
                count,
                both,
            })
        })
    };
    let mut all: Vec<Pair> = threads().flat_map(make).collect();
    all.sort_by_key(|pair| (pair.both.levels().map(|l| l.1), pair.outer.threads()));
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_axes_follow_from_what_they_count() {
        let found: Vec<_> = pairs()
            .map(|p| (p.outer.name, p.inner.name, p.count, p.both.name))
            .collect();
        let expected = [
            ("wid_in_wg", "laneid", 32, "tid_in_wg"),
            ("warpid", "laneid", 32, "tx"),
            ("wgid", "tid_in_wg", 128, "tx"),
            ("wgid", "wid_in_wg", 4, "warpid"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn steps_and_threads_follow_from_levels() {
        let row = |name: &str| named(name).unwrap();
        assert_eq!(
            (row("wid_in_wg").threads(), row("wid_in_wg").steps()),
            (Some(32), Some(4))
        );
        assert_eq!((row("wgid").threads(), row("wgid").steps()), (Some(128), None));
        assert_eq!((row("cbx").threads(), row("m").threads()), (None, None));
        let names: Vec<_> = within(Level::Warpgroup).map(|(row, _)| row.name).collect();
        assert_eq!(names, ["laneid", "tid_in_wg", "wid_in_wg"]);
        assert!(is_hardware(&Axis("cbx".into())) && !is_hardware(&Axis("TCol".into())));
    }
}
