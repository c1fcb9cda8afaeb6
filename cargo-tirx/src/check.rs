//! `cargo tirx check`: diagnostics of a file, or of the manifest's kernels in all specializations.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tirx_build::compile::judge;
use tirx_core::diagnostic::{Level, Message};

use crate::failure::{Failure, Result, usage};
use crate::input::{self, Input};
use crate::output::{self, Output};
use crate::packages::{self, Package, Selection};

#[derive(clap::Args, Debug)]
pub(crate) struct Check {
    /// A kernel file or printed IR; defaults to every kernel of the manifest.
    file: Option<PathBuf>,
    #[command(flatten)]
    options: input::Options,
    /// The manifest to check; defaults to the kernels.toml of this folder or of the nearest folder above.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    manifest: Option<PathBuf>,
    #[command(flatten)]
    packages: Selection,
    /// Checks again whenever a kernel file or a manifest beside it changes.
    #[arg(long)]
    watch: bool,
}

pub(crate) fn run(command: &Check, output: &Output) -> Result<()> {
    let packages = command.packages.packages()?;
    if packages.is_some() && command.file.is_some() {
        return Err(usage(
            "`--workspace` and `-p` check manifests, not a file\n  = help: leave the file out",
        ));
    }
    let packages = packages.as_deref();
    let what = match (&command.file, packages) {
        (Some(file), _) => What::File(file),
        (None, Some(packages)) => What::Packages(packages),
        (None, None) => What::Manifest(packages::manifest(command.manifest.as_deref())?),
    };
    if !command.watch {
        return check_once(command, &what, output);
    }
    let places: Vec<&PathBuf> = match &what {
        What::File(file) => vec![file],
        What::Packages(packages) => packages.iter().map(|package| &package.manifest).collect(),
        What::Manifest(manifest) => vec![manifest],
    };
    let state = || -> Vec<_> { places.iter().map(|place| changed(folder(place), 0)).collect() };
    loop {
        let before = state();
        match check_once(command, &what, output) {
            Ok(()) => places
                .iter()
                .for_each(|place| output::say(&format!("`{}` is well\n", place.display()))),
            Err(Failure::User(messages)) => output.show(&messages),
            Err(failure) => return Err(failure),
        }
        while state() == before {
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

/// What is checked.
enum What<'a> {
    File(&'a PathBuf),
    Packages(&'a [Package]),
    Manifest(PathBuf),
}

/// The folder of a file.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn check_once(command: &Check, what: &What<'_>, output: &Output) -> Result<()> {
    let manifest = |path: &Path| crate::dependencies::builder(path).check();
    match what {
        What::File(file) => check(&command.options.for_file(file), output),
        What::Packages(packages) => packages::each(packages, output, |package| {
            output.show(&package.prefixed(manifest(&package.manifest)?));
            Ok(())
        }),
        What::Manifest(path) => {
            output.show(&manifest(path)?);
            Ok(())
        }
    }
}

/// The kernel files and manifests in a folder, each with the time of its last change.
fn changed(folder: &Path, depth: usize) -> Vec<(PathBuf, Option<SystemTime>)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && depth < 8 && name != "target" && !name.starts_with('.') {
            files.extend(changed(&path, depth + 1));
        } else if name.ends_with(".py") || name.ends_with(".toml") {
            let time = path.metadata().and_then(|m| m.modified()).ok();
            files.push((path, time));
        }
    }
    files.sort();
    files
}

fn check(input: &Input, output: &Output) -> Result<()> {
    let settings = input.settings()?;
    let values = input.values()?;
    let loaded = input.load()?;
    let entries = match input.options.entry {
        Some(_) => vec![input.pick(&loaded)?],
        None => loaded.file().entries().to_vec(),
    };
    if entries.is_empty() {
        input.pick(&loaded)?;
    }
    let several = entries.len() > 1;
    let mut errors: Vec<Message> = Vec::new();
    for entry in &entries {
        let missing: Vec<&str> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !values.contains_key(&p.name))
            .map(|p| p.name.as_str())
            .collect();
        if several && !missing.is_empty() {
            let text = format!(
                "`{}` was not checked: it needs {}",
                entry.name,
                missing.join(", ")
            );
            let help = format!(
                "give -D {}=…, or check the manifest, which has the values: `cargo tirx check` without a file",
                missing.join("=… -D ")
            );
            errors.push(Message::new(Level::Error, text).child(Level::Help, help));
            continue;
        }
        let checked = || -> Result<()> {
            let modules = if several {
                // A value applies to the entries that have the parameter.
                let own = values
                    .iter()
                    .filter(|(name, _)| entry.takes(name))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                loaded.build_all(Some(&entry.name), &own)?
            } else {
                input.build_all(&loaded, entry)?
            };
            for built in modules {
                let judged = judge(built.module, &settings, input.gpu()?)?;
                output.show(&judged.warnings);
                output.show(&judged.untyped);
            }
            Ok(())
        };
        match checked() {
            Ok(()) => {}
            Err(Failure::User(messages)) => errors.extend(messages),
            Err(usage) => return Err(usage),
        }
    }
    output.show(&loaded.warnings());
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Failure::User(errors))
    }
}
