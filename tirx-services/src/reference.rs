//! The documentation of a name of the language: signature, meaning, GPUs, an example.
//!
//! Examples are lines of tested kernels, in `examples.txt`: a test of the reference page writes them (`UPDATE_EXPECT=1 cargo test -p
//! tirx-tests --test language coverage`). A name without one is shown as a call of its signature.

use serde::Serialize;
use tirx_core::script::eval::{Value, language_name};
use tirx_core::script::lang::{Member, members};
use tirx_core::suggest;

use crate::language::{Name, below, describe, is_mnemonic, is_namespace, parameters};

/// Lines of kernels: a name, a tab, the line.
const EXAMPLES: &str = include_str!("examples.txt");

/// The documentation of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The whole name: `T.cuda.cta_sync`, `MBarrier.arrive`.
    pub name: String,
    /// Its signature, `(stage, phase)`; empty for what is not called.
    pub signature: String,
    /// What it means.
    pub meaning: String,
    /// The GPUs that have it.
    pub gpus: String,
    /// The section of the manual that describes it; empty for none.
    pub manual: String,
    /// The import that it needs beside that of `T`; empty for none.
    pub import: String,
    /// A line that uses it.
    pub example: String,
    /// The names below it.
    pub below: Vec<String>,
}

/// The roots of the language.
const ROOTS: [&str; 2] = ["T", "Tx"];

/// All names with documentation: those of `T` and `Tx`, and the members of buffers, pools and library classes.
pub fn names() -> Vec<String> {
    fn add(path: &str, all: &mut Vec<String>) {
        for name in below(path) {
            let full = format!("{path}.{name}");
            if is_namespace(&full) {
                add(&full, all);
            }
            all.push(full);
        }
    }
    let mut all = Vec::new();
    for root in ROOTS {
        all.push(root.to_string());
        add(root, &mut all);
    }
    all.extend(members().iter().map(|member| member.name.clone()));
    all.sort();
    all.dedup();
    all
}

/// The entries that a name stands for: the one of this whole name, or all whose last parts it is (`cta_sync`, `cuda.cta_sync`).
///
/// # Errors
/// The nearest name, if there is one.
pub fn find(name: &str) -> Result<Vec<Entry>, Option<String>> {
    let name = name.trim().trim_start_matches('@');
    let name = name.split('(').next().unwrap_or(name);
    if let Some(entry) = entry(name) {
        return Ok(vec![entry]);
    }
    let all = names();
    let behind = format!(".{name}");
    let found = all.iter().filter(|full| full.ends_with(&behind) || *full == name);
    let entries: Vec<Entry> = found.filter_map(|full| entry(full)).collect();
    if !entries.is_empty() {
        return Ok(entries);
    }
    let whole = suggest(name, all.iter().map(String::as_str)).map(str::to_string);
    let last = |full: &str| full.rsplit('.').next().unwrap_or(full).to_string();
    let lasts: Vec<String> = all.iter().map(|full| last(full)).collect();
    let wanted = last(name);
    let by_last = || {
        let near = suggest(&wanted, lasts.iter().map(String::as_str))?;
        let place = lasts.iter().position(|last| last == near)?;
        all.get(place).cloned()
    };
    Err(whole.or_else(by_last))
}

/// The documentation of a whole name.
pub fn entry(full: &str) -> Option<Entry> {
    if let Some(member) = members().iter().find(|member| member.name == full) {
        return Some(of_member(member));
    }
    let below = below(full);
    let known = describe(full).or_else(|| undescribed(full));
    if known.is_none() && below.is_empty() {
        return of_mnemonic(full);
    }
    let known = known.unwrap_or_else(|| Name {
        signature: String::new(),
        meaning: match full {
            "T" => "The language: `from tvm.script import tirx as T`.".to_string(),
            "Tx" => "Tile primitives: `from tvm.script.tirx import tile as Tx`.".to_string(),
            _ => format!("The names of `{full}`."),
        },
        facts: String::new(),
    });
    let (gpus, manual) = match known.facts.split_once("; manual: ") {
        Some((gpus, manual)) => (gpus, manual),
        None => (known.facts.as_str(), ""),
    };
    let is_tile = full.starts_with("Tx.") || full.starts_with("T.tile.");
    let gpus = match gpus.strip_prefix("GPUs: ") {
        Some("any") | None if is_tile => "those of the variant that is chosen (`cargo tirx explain`)",
        Some(gpus) => gpus,
        None => "any",
    };
    Some(Entry {
        example: example(full, &known.signature, !below.is_empty()),
        gpus: gpus.to_string(),
        manual: manual.to_string(),
        import: String::new(),
        name: full.to_string(),
        signature: known.signature,
        meaning: known.meaning,
        below,
    })
}

/// A name that the language has and describes nowhere: one that is refused has its reason.
fn undescribed(full: &str) -> Option<Name> {
    let (parent, last) = full.rsplit_once('.')?;
    let meaning = match language_name(parent, last)? {
        Value::Unavailable(why) => format!("Not supported: {why}."),
        value => format!("A {} of `{parent}`.", value.type_name()),
    };
    Some(Name {
        signature: String::new(),
        meaning,
        facts: String::new(),
    })
}

/// The GPUs that the operations of a library class need.
fn gpus_of(member: &str) -> &'static str {
    let class = member.split('.').next().unwrap_or(member);
    match class {
        "TMEMPool"
        | "TCGen05Bar"
        | "tmem_datapath_layout"
        | "tmem_mma_operand_layout"
        | "sf_tmem_layout"
        | "sf_smem_layout"
        | "tcgen05_atom_layout"
        | "alloc_tcgen05_ldst_frag" => "sm_100a, sm_103a, sm_107a, sm_110a",
        "MBarrier" | "TMABar" | "Pipeline" | "WarpgroupRole" | "WarpRole" | "SmemDescriptor" => {
            "sm_90 or later"
        }
        _ => "any",
    }
}

fn of_member(member: &Member) -> Entry {
    let prefix = format!("{}.", member.name);
    let below = members()
        .iter()
        .filter_map(|other| other.name.strip_prefix(&prefix));
    let below: Vec<String> = below.map(str::to_string).collect();
    Entry {
        gpus: gpus_of(&member.name).to_string(),
        manual: String::new(),
        import: match member.module {
            "" => String::new(),
            module => format!("from {module} import {}", member.name),
        },
        example: example(&member.name, &member.signature, false),
        name: member.name.clone(),
        signature: member.signature.clone(),
        meaning: member.meaning.clone(),
        below,
    }
}

/// An instruction of PTX by its mnemonic.
fn of_mnemonic(full: &str) -> Option<Entry> {
    let words = full.strip_prefix("T.ptx.")?;
    is_mnemonic(words).then(|| Entry {
        name: full.to_string(),
        signature: "(*operands, pred=…)".to_string(),
        meaning: format!("The PTX instruction `{words}`, with its operands in the order of the PTX ISA."),
        gpus: "those of the PTX ISA's section".to_string(),
        manual: format!("PTX ISA, \"{}\"", words.split('.').next().unwrap_or(words)),
        import: String::new(),
        example: format!("{full}(…)"),
        below: Vec::new(),
    })
}

/// A tested line that uses a name, else a call with the parameters that it needs.
fn example(full: &str, signature: &str, is_namespace: bool) -> String {
    let lines = EXAMPLES.lines().filter_map(|line| line.split_once('\t'));
    let mut of_name = lines.filter(|(name, _)| *name == full);
    if let Some((_, line)) = of_name.next() {
        return line.to_string();
    }
    // A vector's dtype is used as its scalar's.
    let shown = match full.split_once('.') {
        Some((class, rest)) if !ROOTS.contains(&class) => format!("{}.{rest}", class.to_lowercase()),
        _ => full.to_string(),
    };
    if signature.is_empty() {
        return match is_namespace {
            true => format!("{shown}.…"),
            false => shown,
        };
    }
    let required = parameters(signature).into_iter();
    let required: Vec<String> = required
        .take_while(|parameter| parameter != "*")
        .filter(|parameter| !parameter.contains('='))
        .map(|parameter| parameter.trim_start_matches('*').to_string())
        .collect();
    format!("{shown}({})", required.join(", "))
}

/// The entry as text for a terminal.
pub fn shown(entry: &Entry) -> String {
    let mut text = format!(
        "{}{}\n\n    {}\n\n",
        entry.name,
        entry.signature,
        entry.meaning.trim()
    );
    text += &format!("GPUs:     {}\n", entry.gpus);
    if !entry.manual.is_empty() {
        text += &format!("manual:   {}\n", entry.manual);
    }
    if !entry.import.is_empty() {
        text += &format!("import:   {}\n", entry.import);
    }
    text += &format!("example:  {}\n", entry.example);
    if !entry.below.is_empty() {
        text += &format!("has:      {}\n", entry.below.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_meaning_and_an_example() {
        let all = names();
        assert!(all.len() > 700, "{}", all.len());
        for name in &all {
            let entry = entry(name).unwrap_or_else(|| panic!("{name} has no entry"));
            for part in [&entry.meaning, &entry.gpus, &entry.example] {
                assert!(!part.trim().is_empty(), "{entry:?}");
            }
        }
    }

    #[test]
    fn names_are_found_by_their_last_parts() {
        let one = |name: &str| {
            find(name)
                .unwrap()
                .into_iter()
                .map(|entry| entry.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(one("T.cuda.cta_sync"), ["T.cuda.cta_sync"]);
        assert_eq!(one("cta_sync"), ["T.cuda.cta_sync"]);
        assert_eq!(one("T.cuda.cta_sync()"), ["T.cuda.cta_sync"]);
        assert_eq!(one("ptr_to"), ["Buffer.ptr_to", "MBarrier.ptr_to"]);
        assert_eq!(one("Pipeline"), ["Pipeline"]);
        assert_eq!(one("T.ptx.ld.global_.acquire.gpu.b32").len(), 1);
        assert_eq!(find("cta_snyc"), Err(Some("T.cuda.cta_sync".to_string())));
        assert_eq!(find("quxquxqux"), Err(None));
    }
}
