//! Checks of names, targets, releases and flags in a manifest.

use tirx_core::codegen::rust::is_keyword;
use tirx_core::script::Release;
use tirx_core::source::Span;
use toml::Spanned;

use super::NATIVE;
use super::read::Reader;
use crate::generate::names;
use crate::target::{self, NO_PTX};
use crate::toolchain::Pin;
use tirx_core::ir::{Gpu, UnknownGpu};

impl Reader {
    /// Flags that would change the output that a build reads from nvcc are not allowed.
    pub(super) fn check_flags(&mut self, flags: &[Spanned<String>]) {
        const OURS: [(&str, &str); 8] = [
            ("-o", "the build names the output"),
            ("--output-file", "the build names the output"),
            ("-gencode", "`targets` and `ptx` choose the GPUs"),
            ("--generate-code", "`targets` and `ptx` choose the GPUs"),
            ("-arch", "`targets` and `ptx` choose the GPUs"),
            ("--dryrun", "nothing would be compiled"),
            ("-dryrun", "nothing would be compiled"),
            ("-keep", "`TIRX_DUMP` keeps the IR and the CUDA text"),
        ];
        for flag in flags {
            let word = flag.get_ref().split('=').next().unwrap_or_default();
            if let Some((_, why)) = OURS.iter().find(|(ours, _)| *ours == word) {
                let span = self.span(flag);
                self.error(span, format!("`{word}` cannot be a flag of a kernel"), *why);
            }
        }
    }

    pub(super) fn check_registers(&mut self, registers: &Spanned<u32>) {
        if !(16..=255).contains(registers.get_ref()) {
            let span = self.span(registers);
            self.error(
                span,
                format!("`max-registers` is from 16 to 255, found {}", registers.get_ref()),
                "a thread has at most 255 registers",
            );
        }
    }

    pub(super) fn check_occupancy(&mut self, percent: &Spanned<u32>) {
        if !(1..=100).contains(percent.get_ref()) {
            let span = self.span(percent);
            self.error(
                span,
                format!("`min-occupancy` is from 1 to 100, found {}", percent.get_ref()),
                "it is a percentage: the warps that a multiprocessor holds of those that it could hold",
            );
        }
    }

    pub(super) fn check_name(&mut self, name: &str, span: Span) {
        let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let snake = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if name.is_empty() || name == "_" || !starts_well || !snake {
            let near: String = name
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() {
                        c.to_ascii_lowercase()
                    } else {
                        '_'
                    }
                })
                .collect();
            let help = if near.starts_with(|c: char| c.is_ascii_lowercase()) && !is_keyword(&near) {
                format!("it becomes a Rust function and module: use for example `{near}`")
            } else {
                "it becomes a Rust function and module: use lower-case letters, digits and `_`".to_string()
            };
            self.error(span, format!("`{name}` cannot be a kernel's name"), help);
        } else if is_keyword(name) {
            self.error(
                span,
                format!("`{name}` cannot be a kernel's name: it is a Rust keyword"),
                format!("use for example `{name}_kernel`"),
            );
        } else if name == names::RUN_TIME {
            self.error(
                span,
                format!("`{name}` cannot be a kernel's name: generated code calls the crate of that name so"),
                format!("use for example `{name}_kernel`"),
            );
        }
    }

    fn architecture(
        &mut self,
        text: &Spanned<String>,
        parse: impl Fn(&str) -> Result<Gpu, UnknownGpu>,
        form: &str,
    ) -> Option<Gpu> {
        match parse(text.get_ref()) {
            Ok(architecture) => Some(architecture),
            Err(unknown) => {
                let help = match unknown.suggestion {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write it as `{form}`"),
                };
                let span = self.span(text);
                self.error(span, unknown.message, help);
                None
            }
        }
    }

    /// The architectures among targets, and the position of `native`.
    pub(super) fn native(&mut self, targets: &[Spanned<String>]) -> (Vec<Gpu>, Option<Span>) {
        let mut native: Vec<Gpu> = Vec::new();
        let mut machine = None;
        for target in targets {
            if target.get_ref() == NATIVE {
                machine = Some(self.span(target));
                continue;
            }
            let Some(arch) = self.architecture(target, target::parse, "sm_90a") else {
                continue;
            };
            if native.contains(&arch) {
                let span = self.span(target);
                self.error(
                    span,
                    format!("target `{arch}` is named twice"),
                    "remove one of them",
                );
            } else {
                native.push(arch);
            }
        }
        (native, machine)
    }

    /// The architecture of PTX; `none` says that there is none.
    pub(super) fn ptx(&mut self, ptx: &Spanned<String>) -> Option<Gpu> {
        match ptx.get_ref() == NO_PTX {
            true => None,
            false => self.architecture(ptx, target::parse_compute, "compute_90"),
        }
    }

    pub(super) fn release(&mut self, release: &Spanned<String>) -> Option<Release> {
        match release.get_ref().as_str() {
            "0.26" => Some(Release::V26),
            "0.27" => Some(Release::V27),
            other => {
                let span = self.span(release);
                self.error(
                    span,
                    format!("`{other}` is no release of TVM whose language is known"),
                    "write `tvm = \"0.26\"` or `tvm = \"0.27\"`",
                );
                None
            }
        }
    }

    pub(super) fn pin(&mut self, pin: &Spanned<String>) -> Option<Pin> {
        let parsed = pin.get_ref().parse();
        if parsed.is_err() {
            let span = self.span(pin);
            self.error(
                span,
                format!("`{}` is no CUDA release", pin.get_ref()),
                "write major and minor version: `cuda = \"13.0\"`",
            );
        }
        parsed.ok()
    }
}
