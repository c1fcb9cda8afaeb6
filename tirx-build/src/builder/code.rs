//! The code of single kernels, for people to read: CUDA text, PTX or machine code, with the lines of the kernel file.

use std::path::Path;

use tirx_bundle::fatbin;
use tirx_core::ir::{IRModule, PrimFunc};
use tirx_core::script::ConstValue;

use super::Builder;
use crate::error::{Error, Result};
use crate::generate::Variant;
use crate::kernels::{compile_manifest, jobs};
use crate::libraries::Libraries;
use crate::paths::FileNames;
use crate::target::Targets;
use crate::toolchain;
use tirx_core::ir::Gpu;

/// What code is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeForm {
    /// CUDA C++; needs no nvcc.
    Cuda,
    /// PTX.
    Ptx,
    /// Machine code, as an ELF file.
    Machine,
}

/// The code of a kernel for one target.
#[derive(Clone, Debug)]
pub struct KernelCode {
    /// The kernel's path in Rust: `add::n256`.
    pub kernel: String,
    /// The GPU: `sm_90a`.
    pub target: String,
    /// The CUDA text.
    pub cuda: String,
    /// For each line of the CUDA text the file and the line that it came from.
    pub lines: Vec<Option<(String, u32)>>,
    /// PTX or an ELF file; empty where the CUDA text is wanted.
    pub code: Vec<u8>,
    /// The kernel file and those that it imports, with their texts.
    pub files: Vec<(String, String)>,
    /// The compile-time values of the specialization.
    pub values: Vec<(String, ConstValue)>,
    /// The function as written, specialized.
    pub authored: PrimFunc,
    /// The lowered module, including the host function.
    pub lowered: IRModule,
    /// The IR image of the device functions, for the simulator.
    pub ir: Vec<u8>,
    /// Release and build of the nvcc that made the code; empty where the CUDA text is wanted.
    pub nvcc: String,
}

impl Builder {
    /// The code of the kernels that `wanted` selects by their path in Rust, for each target, compiled with the lines of the
    /// kernel file.
    ///
    /// # Errors
    /// As [`build`](Builder::build); there is no nvcc, and the form needs one.
    pub fn code(&self, wanted: &dyn Fn(&str) -> bool, form: CodeForm) -> Result<Vec<KernelCode>> {
        let shown = self.manifest.to_string_lossy().replace('\\', "/");
        let names = FileNames::new(&self.environment, &self.manifest, &shown);
        self.code_in(&shown, wanted, form)
            .map_err(|error| error.with_files_named(&|file| names.name(file)))
    }

    fn code_in(&self, shown: &str, wanted: &dyn Fn(&str) -> bool, form: CodeForm) -> Result<Vec<KernelCode>> {
        let environment = self.own_environment();
        let mut manifest = self.parse_manifest(shown, "name the manifest with --manifest")?;
        manifest.resolve_native(|| toolchain::architectures(&environment))?;
        let inputs = &mut Default::default();
        let mut kernels = compile_manifest(
            &manifest,
            &self.manifest,
            &Libraries::from_environment(&environment),
            None,
            inputs,
            &mut Vec::new(),
        )?;
        for kernel in &mut kernels {
            kernel
                .variants
                .retain(|variant| wanted(&variant.file.replace('-', "::")));
        }
        let variants: Vec<&Variant> = kernels.iter().flat_map(|kernel| kernel.images()).collect();
        let mut jobs = jobs(&manifest, &kernels);
        let natives: Vec<Vec<Gpu>> = jobs.iter().map(|job| job.targets.native.clone()).collect();
        // One job for each target, so that PTX can be asked for as machine code is.
        jobs = jobs
            .into_iter()
            .zip(&natives)
            .flat_map(|(mut job, native)| {
                job.options.lineinfo = true;
                if form == CodeForm::Ptx {
                    job.options.flags.push("--no-compress".to_string());
                }
                native.iter().map(move |arch| {
                    let targets = match form {
                        CodeForm::Ptx => Targets {
                            native: Vec::new(),
                            ptx: Some(*arch),
                        },
                        _ => Targets {
                            native: vec![*arch],
                            ptx: None,
                        },
                    };
                    let mut job = job.clone();
                    job.targets = targets;
                    job
                })
            })
            .collect();
        let made = match form {
            CodeForm::Cuda => None,
            _ => {
                let why = "PTX and machine code need nvcc, and there is no nvcc";
                let (nvcc, made) = self.compile_here(&environment, &manifest, &jobs, true, why)?;
                Some((format!("{} {}", nvcc.version, nvcc.build), made))
            }
        };
        let of_job = variants
            .iter()
            .zip(&natives)
            .flat_map(|(variant, native)| native.iter().map(move |arch| (*variant, arch)));
        let mut all = Vec::new();
        for (at, ((variant, arch), job)) in of_job.zip(&jobs).enumerate() {
            let image = made.as_ref().and_then(|(_, made)| made.images.get(at)?.first());
            let code = match image {
                Some(image) => body(image, form).map_err(|reason| {
                    Error::new(format_args!("the image of {} for {}: {reason}", job.what, arch))
                })?,
                None => Vec::new(),
            };
            let place = |span| {
                let place = job.sources.locate(span)?;
                Some((place.file.to_string(), place.line))
            };
            all.push(KernelCode {
                kernel: variant.file.replace('-', "::"),
                target: arch.to_string(),
                cuda: job.text.clone(),
                lines: job.lines.iter().map(|span| place(*span)).collect(),
                code,
                files: job
                    .sources
                    .files()
                    .map(|file| (file.name.to_string(), file.text.to_string()))
                    .collect(),
                values: variant.values.clone(),
                authored: variant.compiled.authored.clone(),
                lowered: variant.compiled.lowered.clone(),
                ir: variant.compiled.ir.clone(),
                nvcc: made.as_ref().map_or_else(String::new, |(nvcc, _)| nvcc.clone()),
            });
        }
        Ok(all)
    }
}

/// The PTX or the ELF file in a fat binary.
fn body(image: &[u8], form: CodeForm) -> std::result::Result<Vec<u8>, String> {
    let codes = fatbin::codes(image)?;
    let code = codes.iter().find(|code| code.ptx == (form == CodeForm::Ptx));
    let code = code.ok_or("it has no code of this form")?;
    Ok(code.body.ok_or("it is compressed")?.to_vec())
}

/// The nvdisasm that there is: see [`toolchain::disassembler`].
pub fn disassembler(builder: &Builder) -> Option<std::path::PathBuf> {
    let environment = builder.own_environment();
    let search = toolchain::Search {
        environment: &environment,
        pin: None,
        needs: None,
        prefixes: builder.prefixes.clone(),
    };
    let nvcc = match toolchain::discover(&search) {
        Ok(toolchain::Discovered::Found(nvcc)) => Some(nvcc.path),
        _ => None,
    };
    toolchain::disassembler(&environment, nvcc.as_deref().and_then(Path::parent))
}
