//! `cargo tirx stats`: what each kernel takes of each GPU, and what changed since another state of the package.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tirx_build::stats::{KernelStats, of_bundle};

use crate::failure::{Result, user};
use crate::output::{Output, out};
use crate::table::Table;

#[derive(clap::Args, Debug)]
pub(crate) struct Stats {
    /// Shows only kernels whose name contains this.
    kernel: Option<String>,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
    /// Shows changes since a bundle, or since a commit of the package's repository.
    #[arg(long, value_name = "BUNDLE|COMMIT")]
    against: Option<String>,
    /// Prints a JSON list with one object per kernel and target.
    #[arg(long)]
    json: bool,
}

/// A column: its title, its key in JSON, and its number.
type Column = (&'static str, &'static str, fn(&KernelStats) -> Option<u64>);

/// The columns with numbers.
const COLUMNS: &[Column] = &[
    ("registers", "registers", |s| Some(s.registers)),
    ("spilled", "spill_stores", |s| {
        s.spills.map(|spills| spills.stores)
    }),
    ("reloaded", "spill_loads", |s| s.spills.map(|spills| spills.loads)),
    ("stack", "stack", |s| Some(s.stack)),
    ("shared", "static_shared", |s| Some(s.static_shared)),
    ("dynamic", "dynamic_shared", |s| s.dynamic_shared),
    ("constant", "constant", |s| Some(s.constant)),
    ("code", "code", |s| Some(s.code)),
    ("threads", "threads", |s| s.threads),
    ("occupancy", "occupancy", |s| {
        s.occupancy.map(|found| found.percent())
    }),
];

pub(crate) fn run(command: &Stats, _: &Output) -> Result<()> {
    let chosen = |stats: &KernelStats| {
        let wanted = command.kernel.as_ref();
        wanted.is_none_or(|text| stats.kernel.contains(text.as_str()))
    };
    let mut now = crate::dependencies::builder(&command.manifest).stats()?;
    now.retain(chosen);
    if now.is_empty() {
        return Err(match &command.kernel {
            Some(text) => user(format_args!("no kernel of the manifest has `{text}` in its name")),
            None => user("the manifest has no kernel that is compiled to machine code"),
        });
    }
    let before = match &command.against {
        None => None,
        Some(other) => {
            let mut before = before(command, other)?;
            before.retain(chosen);
            Some(before)
        }
    };
    match command.json {
        true => out(&as_json(&now, before.as_deref())),
        false => out(&as_table(&now, before.as_deref())),
    }
}

/// The same function in the other state.
fn same<'a>(before: Option<&'a [KernelStats]>, stats: &KernelStats) -> Option<&'a KernelStats> {
    let of_it = |other: &&KernelStats| {
        (&other.kernel, &other.symbol, &other.target) == (&stats.kernel, &stats.symbol, &stats.target)
    };
    before?.iter().find(of_it)
}

fn as_json(now: &[KernelStats], before: Option<&[KernelStats]>) -> String {
    let object = |stats: &KernelStats| {
        let mut object = serde_json::Map::new();
        object.insert("kernel".into(), json!(stats.kernel));
        object.insert("function".into(), json!(stats.symbol));
        object.insert("target".into(), json!(stats.target));
        for (_, key, number) in COLUMNS {
            object.insert((*key).into(), json!(number(stats)));
        }
        let limiter = stats.occupancy.map(|found| found.limiter.name());
        object.insert("limiter".into(), json!(limiter));
        object.insert("blocks".into(), json!(stats.occupancy.map(|found| found.blocks)));
        object
    };
    let with_before = |stats: &KernelStats| {
        let mut all = object(stats);
        if before.is_some() {
            let before = same(before, stats).map(object);
            all.insert("before".into(), json!(before));
        }
        Value::Object(all)
    };
    let all: Vec<Value> = now.iter().map(with_before).collect();
    format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default())
}

fn as_table(now: &[KernelStats], before: Option<&[KernelStats]>) -> String {
    let mut table = Table::new(
        ["kernel", "target"]
            .into_iter()
            .chain(COLUMNS.iter().map(|(title, _, _)| *title))
            .chain(["limited by"]),
    );
    let text = |number: Option<u64>, title: &str| match number {
        Some(number) if title == "occupancy" => format!("{number} %"),
        Some(number) => number.to_string(),
        None => "?".to_string(),
    };
    for stats in now {
        let old = same(before, stats);
        let several = now
            .iter()
            .any(|other| (&other.kernel, &other.target) == (&stats.kernel, &stats.target) && other != stats);
        let mut name = match several {
            true => format!("{} ({})", stats.kernel, stats.symbol),
            false => stats.kernel.clone(),
        };
        if before.is_some() && old.is_none() {
            name.push_str(" (new)");
        }
        let mut row = vec![name, stats.target.clone()];
        for (title, _, number) in COLUMNS {
            let (now, old) = (number(stats), old.and_then(number));
            row.push(match old {
                Some(_) if old != now => format!("{} -> {}", text(old, title), text(now, title)),
                _ => text(now, title),
            });
        }
        row.push(
            stats
                .occupancy
                .map_or("?", |found| found.limiter.name())
                .to_string(),
        );
        table.row(row);
    }
    for old in before.unwrap_or_default() {
        if same(Some(now), old).is_none() {
            let name = format!("{} (gone)", old.kernel);
            table.row(vec![name, old.target.clone()]);
        }
    }
    table.text()
}

/// The other state: a bundle, or the package as a commit has it.
fn before(command: &Stats, other: &str) -> Result<Vec<KernelStats>> {
    let path = Path::new(other);
    if path.exists() {
        return Ok(of_bundle(path)?);
    }
    let folder = tempfile::tempdir().map_err(|error| user(format_args!("cannot make a folder: {error}")))?;
    let manifest = checked_out(command, other, folder.path())?;
    Ok(crate::dependencies::builder(manifest).stats()?)
}

/// Writes the files of a commit below a folder; gives the manifest among them. The repository and its index stay as they
/// are.
fn checked_out(command: &Stats, commit: &str, folder: &Path) -> Result<PathBuf> {
    let beside = match command.manifest.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(beside)
            .env("GIT_INDEX_FILE", folder.join("index"))
            .args(arguments)
            .output()
            .map_err(|error| user(format_args!("git cannot be run: {error}")))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
            false => Err(user(format_args!(
                "`{commit}` is no bundle here and no commit: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    };
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    let tree = git(&[
        "rev-parse",
        "--verify",
        "--end-of-options",
        &format!("{commit}^{{tree}}"),
    ])?;
    git(&["read-tree", &tree])?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let files = format!("{}/", folder.join("files").display());
    git(&["-C", &top, "checkout-index", "--all", "--prefix", &files])?;
    let name = command.manifest.file_name().unwrap_or_default();
    Ok(folder.join("files").join(prefix).join(name))
}
