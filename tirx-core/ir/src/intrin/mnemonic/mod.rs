//! Instructions of PTX by their mnemonics: what can stand behind `T.ptx.` in the language of TVM 0.27.
//!
//! `T.ptx.ld.global_.acquire.gpu.b32(value, pointer)` and `T.ptx["ld.global.acquire.gpu.b32"](value, pointer)` are the
//! instruction as the PTX ISA writes it, with its operands in PTX's order, destinations first. The instructions are data: the
//! files of `tables` hold one line for each line of syntax of the PTX ISA. From a line follow the parser of the mnemonic,
//! the messages, the types of the operands, the text in `asm`, the GPUs that have it, and, where the line names one, the
//! row of [`super::rows`] that is the same operation (with its meaning in the simulator and its checks). One more
//! instruction is one more line.
//!
//! | file | what it answers |
//! |---|---|
//! | [`syntax`] | What does a line of the tables say? |
//! | `meaning` | Which operation does an instruction perform? |
//! | [`types`] | Which dtypes may a register operand have, and how does it cross the boundary of `asm`? |
//! | `counts` | How many registers has an operand? |
//! | `checks` | Which combinations of modifiers does PTX not have, beyond what a line says? |
//! | [`lookup`] | Which instructions do these tokens mean? |
//! | [`call`] | Which instruction is this call of the IR, and what are its operands? |

#[cfg(test)]
mod agreement_test;
pub mod call;
mod checks;
mod counts;
pub mod lookup;
mod meaning;
pub mod spelling;
pub mod syntax;
pub mod types;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use rustc_hash::FxHashMap;

use super::{GpuSet, Op};
pub use call::InstructionCall;
pub use lookup::{Candidate, Lookup};
pub use meaning::Meaning;
pub use syntax::{Direction, Instruction, NewerTokens, Operand, OperandForm, Slot};

/// The tables, in the order in which they are searched.
const TABLES: &[(&str, &str)] = &[
    ("arithmetic", include_str!("tables/arithmetic.ptx")),
    ("logic", include_str!("tables/logic.ptx")),
    ("convert", include_str!("tables/convert.ptx")),
    ("memory", include_str!("tables/memory.ptx")),
    ("synchronization", include_str!("tables/synchronization.ptx")),
    ("copies", include_str!("tables/copies.ptx")),
    ("tensor", include_str!("tables/tensor.ptx")),
];

/// Every instruction, in the order of the tables. Compiling a kernel asks for [families](family), which costs less.
pub fn instructions() -> &'static [Instruction] {
    static ALL: LazyLock<Vec<Instruction>> = LazyLock::new(|| {
        let read = TABLES.iter().map(|(name, text)| syntax::read(name, text));
        read.flat_map(well_formed).collect()
    });
    &ALL
}

/// The instructions whose mnemonic begins with a word: `ld`, `tcgen05`. They are read when one of them is first asked for.
pub fn family(name: &str) -> &'static [Instruction] {
    static FAMILIES: LazyLock<FxHashMap<Cow<'static, str>, Family>> = LazyLock::new(|| {
        let mut families: FxHashMap<Cow<'static, str>, Family> = FxHashMap::default();
        for (at, (name, text)) in TABLES.iter().enumerate() {
            for word in well_formed(syntax::families(name, text)) {
                let tables = &mut families.entry(word).or_default().tables;
                if tables.last() != Some(&at) {
                    tables.push(at);
                }
            }
        }
        families
    });
    let Some(family) = FAMILIES.get(name) else {
        return &[];
    };
    family.instructions.get_or_init(|| {
        let tables = family.tables.iter().map(|at| TABLES[*at]);
        let read = tables.map(|(table, text)| syntax::read_family(table, text, name));
        read.flat_map(well_formed).collect()
    })
}

/// The GPUs that have the instruction of an operation: of several lines, those of the line that most GPUs have. `None` if no line
/// names the operation's row.
pub(super) fn gpus(op: Op) -> Option<GpuSet> {
    // The others are functions of CUDA, and of the language: no table is read for a kernel that has no other.
    if !op.info().script.starts_with("ptx.") {
        return None;
    }
    static GPUS: LazyLock<FxHashMap<Op, GpuSet>> = LazyLock::new(|| {
        let mut gpus: FxHashMap<Op, GpuSet> = FxHashMap::default();
        let read = TABLES.iter().map(|(name, text)| syntax::gpus_of_rows(name, text));
        for (row, sets) in read.flat_map(well_formed) {
            let (Some(op), Some(set)) = (Op::from_script(row), GpuSet::union(&sets)) else {
                continue;
            };
            let narrow = |set: &GpuSet| (set.families.len(), set.least, !set.family_suffix);
            let known = gpus.entry(op).or_insert(set);
            *known = std::cmp::min_by_key(*known, set, narrow);
        }
        gpus
    });
    GPUS.get(&op).copied()
}

/// The instructions of a family, and the tables that have them.
#[derive(Default)]
struct Family {
    tables: Vec<usize>,
    instructions: OnceLock<Vec<Instruction>>,
}

fn well_formed<T>(read: Result<T, String>) -> T {
    // The tables are a part of this crate, and a test reads each of them.
    read.expect("the tables of instructions are well-formed")
}

/// Words that TVM 0.27 writes as one name although the PTX ISA separates them with dots: `T.ptx.shfl_sync.idx.b32`.
pub const JOINED: &[&str] = &[
    "cvt.pack",
    "elect.sync",
    "multimem.cp",
    "multimem.ld_reduce",
    "multimem.red",
    "multimem.red.async",
    "multimem.st",
    "multimem.st.async",
    "red.async",
    "redux.sync",
    "shfl.sync",
    "st.async",
    "st.bulk",
    "tensormap.cp_fenceproxy",
    "tensormap.replace",
    "vote.sync",
];

/// The names of all families, as text writes them behind `T.ptx.`: `and_`, `shfl_sync`.
pub fn family_names() -> Vec<String> {
    let mut names: Vec<String> = instructions().iter().map(|i| lookup::escape(i.family)).collect();
    names.extend(JOINED.iter().map(|name| name.replace('.', "_")));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_does_not_repeat_the_gpus_of_its_lines() {
        for op in Op::ALL {
            let (by_row, by_lines) = (op.row().arch, gpus(*op));
            assert!(by_row.is_none() || by_row != by_lines, "{}", op.info().script);
        }
        assert_eq!(Op::PtxMbarrierArrive.gpus(), GpuSet::least(80));
        assert_eq!(Op::PtxTcgen05Ld.gpus(), GpuSet::families(&[100, 110]));
    }
}
