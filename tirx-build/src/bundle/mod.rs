//! The bundle beside the manifest: compiled kernels that need no nvcc.
//!
//! A build compiles its kernels to CUDA text as always, which needs no other tool, and compares the text with the
//! bundle's hashes. Fitting images are used; the others are stale, and the reason is reported.

pub mod lock;

use std::path::{Path, PathBuf};

use tirx_bundle::{Files, Function, Kernel, LOCK, NOTICE, Param, Problem, hash};

use tirx_core::ir::abi::FunctionParam;

use crate::error::{Error, Result};
use crate::generate::Variant;
use crate::manifest::Manifest;
use crate::nvcc::Job;
use lock::{Lock, Locked, Unreadable, VERSION};

/// The bundle's name beside the manifest.
pub const DEFAULT_NAME: &str = "kernels.bundle";

/// This compiler's version, as locks name it.
const TIRX: &str = env!("CARGO_PKG_VERSION");

/// A bundle that was opened.
#[derive(Debug)]
pub(crate) struct Bundle {
    path: PathBuf,
    /// The path in messages.
    shown: PathBuf,
    files: Files,
    pub(crate) lock: Lock,
}

/// What a bundle has for a kernel.
pub(crate) enum Offer {
    /// Images for the requested targets.
    Images(Vec<Vec<u8>>),
    /// No fitting images; the reason, as it follows the kernel's name in a message.
    Stale(String),
}

/// Where the bundle of a manifest is.
pub(crate) fn place(manifest: &Manifest, manifest_path: &Path) -> PathBuf {
    let folder = manifest_path.parent().unwrap_or(Path::new(""));
    folder.join(manifest.bundle.as_deref().unwrap_or(DEFAULT_NAME))
}

impl Bundle {
    /// Opens a bundle; `None` where there is none. `shown` is its path in messages.
    pub(crate) fn open(path: &Path, shown: &Path) -> Result<Option<Bundle>> {
        if !path.exists() {
            return Ok(None);
        }
        let files = Files::read(path).map_err(|problem| refused(shown, &problem))?;
        let lock = files.get(LOCK).ok_or_else(|| {
            let error = Error::new(format_args!("the bundle `{}` has no {LOCK}", shown.display()));
            error.help("make it again with `cargo tirx bundle`")
        })?;
        let lock = Lock::read(lock).map_err(|why| match why {
            Unreadable::Version(version) => Error::new(format_args!(
                "the bundle `{}` is of version {version}, this compiler reads version {VERSION}",
                shown.display()
            ))
            .help("make it again with `cargo tirx bundle`, or use the compiler that it was made with"),
            Unreadable::Damaged(reason) => Error::new(format_args!(
                "{LOCK} of the bundle `{}` is damaged: {reason}",
                shown.display()
            ))
            .help("restore it from version control, or make it again with `cargo tirx bundle`"),
        })?;
        Ok(Some(Bundle {
            path: path.to_path_buf(),
            shown: shown.to_path_buf(),
            files,
            lock,
        }))
    }

    /// The files and folders whose change may change what a build takes from the bundle.
    pub(crate) fn watched(&self) -> PathBuf {
        self.path.clone()
    }

    /// Its path in messages.
    pub(crate) fn shown(&self) -> &Path {
        &self.shown
    }

    /// The bundle's images for a job. `exact` also compares the lines of the kernel file, which only the simulator's
    /// messages show.
    ///
    /// # Errors
    /// The bundle is damaged.
    pub(crate) fn offer(
        &self,
        manifest: &Manifest,
        job: &Job,
        variant: &Variant,
        exact: bool,
    ) -> Result<Offer> {
        let stale = |reason: String| Ok(Offer::Stale(reason));
        let Some(locked) = self.lock.kernels.iter().find(|kernel| kernel.file == job.file) else {
            return stale("is not in the bundle".into());
        };
        if self.lock.tirx != TIRX {
            return stale(format!("was made by tirx {}, this is {TIRX}", self.lock.tirx));
        }
        if let Some(pin) = manifest.toolchain.cuda {
            let version = crate::toolchain::Version::from_nvcc(&format!("release {}", self.lock.nvcc));
            if !version.is_some_and(|version| pin.accepts(version)) {
                return stale(format!(
                    "was compiled by nvcc {}, the manifest pins {pin}",
                    self.lock.nvcc
                ));
            }
        }
        let wanted = describe(job, variant, &self.lock.nvcc);
        if locked.cuda != wanted.cuda {
            return stale("has changed: its source, a specialization or a file that it imports".into());
        }
        if locked.flags != wanted.flags {
            return stale(format!(
                "was compiled with other flags: `{}`, the manifest says `{}`",
                locked.flags.join(" "),
                wanted.flags.join(" ")
            ));
        }
        if locked.signature != wanted.signature {
            return stale("has another signature than its launcher".into());
        }
        if exact && locked.ir != wanted.ir {
            return stale("has moved: lines of its file, or comments, have changed".into());
        }
        let damaged = |reason: String| {
            let error = Error::new(format_args!(
                "the bundle `{}` is damaged: kernel `{}` {reason}",
                self.shown.display(),
                locked.name
            ));
            error.help("restore it from version control, or make it again with `cargo tirx bundle`")
        };
        let kernel = match self.files.kernel(&job.file) {
            Ok(Some(kernel)) => kernel,
            Ok(None) => {
                return Err(damaged(format!(
                    "has no file `{}.{}`",
                    job.file,
                    tirx_bundle::EXTENSION
                )));
            }
            Err(problem) => return Err(damaged(problem.reason)),
        };
        if kernel.hash_of_images() != locked.images || kernel.hash != locked.hash {
            return Err(damaged(format!("is not the one that {LOCK} names")));
        }
        let mut images = Vec::new();
        for (target, _) in job.targets.each() {
            match kernel.images.iter().find(|(known, _)| *known == target) {
                Some((_, image)) => images.push(image.clone()),
                None => return stale(format!("has no image for {target}")),
            }
        }
        if exact && locked.targets != wanted.targets {
            return stale("was compiled for other targets".into());
        }
        Ok(Offer::Images(images))
    }
}

/// The error of a bundle that cannot be read.
pub(crate) fn refused(path: &Path, problem: &Problem) -> Error {
    let error = match problem.file.is_empty() {
        true => Error::new(format_args!("the bundle `{}` {}", path.display(), problem.reason)),
        false => Error::new(format_args!(
            "`{}` of the bundle `{}` {}",
            problem.file,
            path.display(),
            problem.reason
        )),
    };
    error.help("restore it from version control, or make it again with `cargo tirx bundle`")
}

/// A kernel's entry in the lock; `make` adds the hash of the images.
fn describe(job: &Job, variant: &Variant, nvcc: &str) -> Locked {
    let mut locked = Locked {
        name: variant.file.replace('-', "::"),
        file: job.file.clone(),
        hash: String::new(),
        cuda: hash(job.text_for_nvcc(false).as_bytes()),
        ir: hash(&variant.compiled.ir),
        signature: variant.signature(),
        flags: job.options.arguments(false),
        targets: job.targets.each().into_iter().map(|(target, _)| target).collect(),
        images: String::new(),
    };
    locked.hash = locked.hash_of_inputs(TIRX, nvcc);
    locked
}

/// The bundle of kernels that were compiled: the images of each job, in the order of its targets.
pub(crate) fn make(
    jobs: &[Job],
    variants: &[&Variant],
    images: &[Vec<Vec<u8>>],
    nvcc: &str,
    license: &str,
) -> Files {
    let mut files = Files::new();
    let mut lock = Lock {
        version: VERSION,
        tirx: TIRX.to_string(),
        nvcc: nvcc.to_string(),
        kernels: Vec::new(),
    };
    for ((job, variant), images) in jobs.iter().zip(variants).zip(images) {
        let targets = job.targets.each().into_iter().map(|(target, _)| target);
        let images: Vec<(String, Vec<u8>)> = targets.zip(images.iter().cloned()).collect();
        let mut locked = describe(job, variant, nvcc);
        let functions = variant
            .compiled
            .launcher
            .functions
            .iter()
            .map(|function| Function {
                symbol: function.symbol.clone(),
                params: function
                    .params
                    .iter()
                    .map(|param| match param {
                        FunctionParam::Pointer => Param::Pointer,
                        FunctionParam::Scalar(bits) => Param::Scalar(*bits),
                        FunctionParam::TensorMap => Param::TensorMap,
                    })
                    .collect(),
            });
        let kernel = Kernel {
            name: locked.name.clone(),
            signature: locked.signature.clone(),
            hash: locked.hash.clone(),
            functions: functions.collect(),
            images,
            ir: variant.compiled.ir.clone(),
        };
        locked.images = kernel.hash_of_images();
        files.add(
            format!("{}.{}", job.file, tirx_bundle::EXTENSION),
            kernel.encode(),
        );
        lock.kernels.push(locked);
    }
    files.add(LOCK, lock.text().into_bytes());
    files.add(NOTICE, notice(nvcc, license).into_bytes());
    files
}

fn notice(nvcc: &str, license: &str) -> String {
    format!(
        "Kernels compiled from this package's sources.\n\nThe package's license: {license}\n\n\
         Machine code and PTX were made by NVIDIA's CUDA compiler (nvcc {nvcc}) and may contain code of the CUDA\n\
         Toolkit's headers and device libraries, which NVIDIA licenses under the CUDA Toolkit End User License\n\
         Agreement (docs.nvidia.com/cuda/eula); it allows their distribution as parts of an application.\n"
    )
}
