//! Compares the IR after each pass with the reference's.
//!
//! Each pass is compared twice: within our pipeline, and alone, applied to the reference's IR before it. The second
//! attributes a difference to a pass; the first shows that nothing is lost between passes. Modules are compared by
//! structure, names aside, after what differs on purpose ([`intended`]) is taken out and counted.

use std::collections::BTreeMap;
use std::path::Path;

use tirx_core::codegen::host::runs_on_device;
use tirx_core::ir::{IRModule, Mismatch, structural_equal};
use tirx_core::script::{KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Options, PIPELINE, PassContext, Step, Target, lower};

use super::explained::{self, Parting};
use super::intended::{self, Counts};

/// Used for the place of a difference where one of the modules cannot be read.
const TEXT: &str = "the reference's text";

/// Used for the place of a difference where one of our passes rejects the reference's module.
const REFUSED: &str = "what the reference had before";

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The same up to names, but for the intended differences counted.
    Equal(Counts),
    /// The first difference is explained; what follows it was not compared. With the difference.
    Explained(Counts, String),
    /// Differs because of an earlier pass: the pass alone gives equal results, or the reference's text cannot be read
    /// here.
    Follows,
    /// The first difference, or the reason why nothing could be compared.
    Differs(String),
}

/// A pass on one kernel.
pub(super) struct Compared {
    pub(super) pass: String,
    /// Our pipeline's module after the pass.
    pub(super) pipeline: Outcome,
    /// The result of the pass on the reference's module before it; `None` where our pass cannot run on that module.
    pub(super) alone: Option<Outcome>,
}

/// Which functions a stage of the reference holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Host,
    Device,
}

impl Part {
    fn select(self, module: &IRModule) -> IRModule {
        let keep = |device: bool| match self {
            Part::All => true,
            Part::Host => !device,
            Part::Device => device,
        };
        let mut module = module.clone();
        module.functions.retain(|(_, func)| keep(runs_on_device(func)));
        module
    }
}

/// The stage of our pipeline that a file of the reference is compared with.
fn stage(name: &str) -> Option<(&str, Part)> {
    Some(match name {
        // The identity on kernels without its events, which none of our kernels has.
        "LowerIket" => return None,
        "LowerTVMBuiltin" => (name, Part::Host),
        "HostLowerIntrin" => ("LowerIntrin", Part::Host),
        "LowerWarpMemory" | "StmtSimplify3" | "LowerIntrin" => (name, Part::Device),
        _ => (name, Part::All),
    })
}

/// Compares every stage that the reference wrote to `folder`.
pub(super) fn compare(module: &IRModule, folder: &Path, arch: &str) -> Result<Vec<Compared>, String> {
    let mut ours: BTreeMap<&str, IRModule> = BTreeMap::new();
    let mut observe = |step: &Step<'_>| {
        ours.insert(step.pass, step.module.clone());
    };
    let mut lowering = Lowering::new(Target::named(arch).expect("a known GPU"));
    lowering.options.finalize_host = true;
    lowering.observer = Some(&mut observe);
    let lowered = lower(module.clone(), &mut lowering);
    if let Err(errors) = lowered {
        return Err(errors.render(&module.sources));
    }
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .map_err(|e| e.to_string())?
        .filter_map(|file| file.ok().map(|f| f.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    files.sort();
    let options = Options {
        finalize_host: true,
        ..Options::default()
    };
    let context = PassContext::new(Target::named(arch).expect("a known GPU"), &options);
    let mut compared = Vec::new();
    // The reference's module before the pass: the whole module, or the functions of one kind.
    let mut before: Option<IRModule> = None;
    let mut split: Option<IRModule> = None;
    for path in files {
        let file = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = file.split_once('-').map_or(&*file, |(_, name)| name);
        let mut counts = Counts::default();
        let plain;
        let theirs = match parse(&path) {
            Ok(theirs) => {
                plain = Some(intended::without_machine_of_host(&theirs, &mut Counts::default()));
                intended::theirs(&theirs, &mut counts)
            }
            Err(error) => {
                let mismatch = Mismatch {
                    path: TEXT.into(),
                    left: error,
                    right: String::new(),
                };
                let parting = Parting {
                    pass: name,
                    at: &mismatch,
                    modules: None,
                    written: module,
                };
                compared.push(Compared {
                    pass: name.into(),
                    pipeline: parted(&parting, Counts::default()),
                    alone: None,
                });
                if name == "LowerTVMBuiltin" {
                    split = before.take();
                }
                before = None;
                continue;
            }
        };
        let Some((pass, part)) = stage(name) else {
            if let Some(before) = &before {
                let outcome = outcome(
                    module,
                    &intended::theirs(before, &mut Counts::default()),
                    &theirs,
                    &counts,
                    name,
                );
                compared.push(Compared {
                    pass: name.into(),
                    pipeline: outcome,
                    alone: None,
                });
            }
            before = plain;
            continue;
        };
        if part != Part::All && (name == "LowerTVMBuiltin" || name == "LowerWarpMemory") {
            if name == "LowerTVMBuiltin" {
                split = before.take();
            }
            before = split.as_ref().map(|module| part.select(module));
        }
        let pipeline = match ours.get(pass) {
            Some(ours) => outcome(module, &part.select(ours), &theirs, &counts, name),
            None => Outcome::Differs("there is no such pass".into()),
        };
        let run = PIPELINE.iter().find(|p| p.name == pass).map(|p| p.run);
        let alone = before.zip(run).map(|(before, run)| match run(before, &context) {
            Ok(ran) => outcome(
                module,
                &intended::theirs(&ran, &mut Counts::default()),
                &theirs,
                &counts,
                name,
            ),
            Err(errors) => {
                let mismatch = Mismatch {
                    path: REFUSED.into(),
                    left: errors.to_string(),
                    right: String::new(),
                };
                let parting = Parting {
                    pass: name,
                    at: &mismatch,
                    modules: None,
                    written: module,
                };
                parted(&parting, Counts::default())
            }
        });
        compared.push(Compared {
            pass: name.into(),
            pipeline,
            alone,
        });
        before = plain;
    }
    let mut parted = false;
    let mut unread = false;
    for pass in &mut compared {
        let fine = |o: &Outcome| matches!(o, Outcome::Equal(_) | Outcome::Explained(..));
        let differs = matches!(pass.pipeline, Outcome::Differs(_));
        let text = pass.alone.is_none()
            && matches!(&pass.pipeline, Outcome::Differs(what) if what.starts_with(&format!("at {TEXT}")));
        if text && unread || differs && parted && pass.alone.as_ref().is_some_and(fine) {
            pass.pipeline = Outcome::Follows;
        }
        unread |= text;
        parted |= match &pass.pipeline {
            Outcome::Equal(counts) => intended::goes_on(counts),
            _ => true,
        };
    }
    Ok(compared)
}

fn parse(path: &Path) -> Result<IRModule, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut sources = SourceMap::new();
    let file =
        KernelFile::load(&mut sources, "reference.py", &text, &NoImports).map_err(|e| e.render(&sources))?;
    file.build(None, &BTreeMap::new()).map_err(|e| e.render(&sources))
}

fn outcome(written: &IRModule, ours: &IRModule, theirs: &IRModule, counts: &Counts, pass: &str) -> Outcome {
    let mut counts = counts.clone();
    let ours = intended::ours(ours, &mut counts);
    let mismatch = match structural_equal(&ours, theirs) {
        Ok(()) => return Outcome::Equal(counts),
        Err(mismatch) => mismatch,
    };
    if intended::same_indices(pass, &ours, theirs) {
        *counts.entry(intended::INDICES).or_default() += 1;
        return Outcome::Equal(counts);
    }
    if let Some(reason) = intended::same_value(&ours, theirs) {
        *counts.entry(reason).or_default() += 1;
        return Outcome::Equal(counts);
    }
    let parting = Parting {
        pass,
        at: &mismatch,
        modules: Some((&ours, theirs)),
        written,
    };
    parted(&parting, counts)
}

/// The reason why two modules differ, if it is known.
fn parted(parting: &Parting<'_>, mut counts: Counts) -> Outcome {
    match explained::explanation(parting) {
        Some(reason) => {
            *counts.entry(reason).or_default() += 1;
            Outcome::Explained(counts, parting.at.to_string())
        }
        None => Outcome::Differs(parting.at.to_string()),
    }
}
