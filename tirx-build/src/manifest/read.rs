//! Converts the raw manifest to a checked one.

use std::collections::BTreeMap;
use std::ops::Range;

use tirx_core::diagnostic::Diagnostic;
use tirx_core::ir::Gpu;
use tirx_core::script::Release;
use tirx_core::source::{FileId, SourceMap, Span};
use toml::Spanned;

use super::raw::{RawDefaults, RawKernel, RawManifest};
use super::{Declared, Kernel, Manifest, Text, Toolchain};
use crate::nvcc::NvccOptions;
use crate::target::{NO_PTX, Targets};

pub(super) fn span_of(file: FileId, range: Range<usize>) -> Span {
    Span::new(file, range.start as u32, range.end as u32)
}

/// `[defaults]`: the keys, and the values that are read of them.
struct Defaults {
    raw: RawDefaults,
    /// The targets, and the position of `native`.
    targets: Option<(Vec<Gpu>, Option<Span>)>,
    ptx: Option<Gpu>,
    tvm: Option<Release>,
}

/// Checks the values and collects all errors.
pub(super) struct Reader {
    pub(super) file: FileId,
    pub(super) errors: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn span<T>(&self, value: &Spanned<T>) -> Span {
        span_of(self.file, value.span())
    }

    pub(super) fn manifest(&mut self, raw: RawManifest, declared: Vec<Declared>) -> Manifest {
        let (defaults, bundle) = (raw.defaults.0, raw.bundle.0);
        let raw_toolchain = raw.toolchain.0;
        let toolchain = Toolchain {
            cuda: raw_toolchain.cuda.as_ref().and_then(|pin| self.pin(pin)),
            auto_install: raw_toolchain.auto_install,
        };
        if toolchain.auto_install && raw_toolchain.cuda.is_none() {
            let error = Diagnostic::new(
                Span::new(self.file, 0, 0),
                "`auto-install` needs to know which release",
            )
            .help("add `cuda = \"13.0\"` to [toolchain]");
            self.errors.push(error);
        }
        let defaults = self.defaults(defaults);
        let pin_span = raw_toolchain
            .cuda
            .as_ref()
            .map_or(Span::NONE, |pin| self.span(pin));
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let mut kernels = Vec::new();
        for kernel in raw.kernel {
            let header = self.span(&kernel);
            kernels.extend(self.kernel(kernel.into_inner().0, header, &defaults, &mut seen));
        }
        for kernel in declared {
            kernels.extend(self.declared(kernel, &defaults, &mut seen));
        }
        Manifest {
            kernels,
            toolchain,
            bundle: bundle.path,
            bundle_is_optional: bundle.optional,
            pin_span,
            sources: SourceMap::new(),
        }
    }

    /// `[defaults]`, checked once.
    fn defaults(&mut self, raw: RawDefaults) -> Defaults {
        if let Some(flags) = &raw.flags {
            self.check_flags(flags);
        }
        if let Some(registers) = &raw.max_registers {
            self.check_registers(registers);
        }
        if let Some(percent) = &raw.min_occupancy {
            self.check_occupancy(percent);
        }
        Defaults {
            targets: raw.targets.as_deref().map(|targets| self.native(targets)),
            tvm: raw.tvm.as_ref().and_then(|tvm| self.release(tvm)),
            ptx: raw.ptx.as_ref().and_then(|ptx| self.ptx(ptx)),
            raw,
        }
    }

    /// A kernel that a build script declares: read as one of the manifest is, without positions.
    fn declared(
        &mut self,
        declared: Declared,
        defaults: &Defaults,
        seen: &mut BTreeMap<String, Span>,
    ) -> Option<Kernel> {
        let (file, first) = (std::mem::take(&mut self.file), self.errors.len());
        let name = format!("kernel `{}`", declared.raw.name.get_ref());
        let kernel = self.kernel(declared.raw, Span::NONE, defaults, seen);
        if matches!(declared.text, Text::Function(_))
            && kernel
                .as_ref()
                .is_some_and(|kernel| !kernel.specialize.is_empty() || kernel.tune.is_some())
        {
            let message = format!("{name} is IR and has no compile-time parameters");
            self.error(
                Span::NONE,
                message,
                "build the IR with the values, a kernel for each",
            );
        }
        self.file = file;
        for error in &mut self.errors[first..] {
            if !error.message.starts_with(&name) {
                error.message = format!("{name}: {}", error.message);
            }
        }
        kernel.map(|kernel| Kernel {
            text: declared.text,
            ..kernel
        })
    }

    /// A kernel; `None` if its text is not known. `header` is the position of its table.
    fn kernel(
        &mut self,
        kernel: RawKernel,
        header: Span,
        defaults: &Defaults,
        seen: &mut BTreeMap<String, Span>,
    ) -> Option<Kernel> {
        let name_span = self.span(&kernel.name);
        let name = kernel.name.get_ref().clone();
        self.check_name(&name, name_span);
        match seen.get(&name) {
            Some(first) => {
                let error = Diagnostic::new(name_span, format!("kernel `{name}` is declared twice"));
                self.errors.push(match name_span.is_some() {
                    true => (error.note(*first, "the first is here"))
                        .help("each name becomes one Rust module: rename one of them"),
                    false => {
                        error.help("the manifest and the build script share one module: rename one of them")
                    }
                });
            }
            None => {
                seen.insert(name.clone(), name_span);
            }
        }
        let (text, source_span) = match (&kernel.source, &kernel.script) {
            (Some(source), None) => (Text::File(source.get_ref().clone()), self.span(source)),
            (None, Some(script)) => (Text::Inline(script.get_ref().clone()), self.span(script)),
            (Some(_), Some(script)) => {
                let span = self.span(script);
                self.error(
                    span,
                    format!("kernel `{name}` has both `source` and `script`"),
                    "keep one of them",
                );
                return None;
            }
            (None, None) => {
                self.error(
                    name_span,
                    format!("kernel `{name}` has no text"),
                    "add `source = \"kernels/file.py\"` or `script = \"\"\"…\"\"\"`",
                );
                return None;
            }
        };
        if matches!(&text, Text::File(path) if path.starts_with('/') || path.contains('\\')) {
            self.error(
                source_span,
                "`source` must be a path relative to the manifest, with `/` between its parts",
                "absolute paths would make builds differ between machines",
            );
        }
        let (native, native_span) = match &kernel.targets {
            Some(targets) => self.native(targets),
            None => defaults.targets.clone().unwrap_or_default(),
        };
        let ptx = match &kernel.ptx {
            // Features of some GPUs only, such as wgmma, are not available in PTX for later ones.
            Some(ptx) => self.ptx(ptx),
            None => defaults.ptx,
        };
        let named = kernel.targets.as_ref().or(defaults.raw.targets.as_ref());
        let ptx_named = kernel.ptx.as_ref().or(defaults.raw.ptx.as_ref());
        // A build script may give the targets of its kernels to the builder, which checks that.
        if name_span.is_some()
            && named.is_none_or(Vec::is_empty)
            && ptx_named.is_none_or(|ptx| ptx.get_ref() == NO_PTX)
        {
            self.error(
                name_span,
                format!("kernel `{name}` names no targets"),
                "add `targets = [\"sm_90a\"]` to it or to [defaults]",
            );
        }
        if let Some(flags) = &kernel.flags {
            self.check_flags(flags);
        }
        if let Some(registers) = &kernel.max_registers {
            self.check_registers(registers);
        }
        if let Some(percent) = &kernel.min_occupancy {
            self.check_occupancy(percent);
        }
        let values = |flags: &Vec<Spanned<String>>| -> Vec<String> {
            flags.iter().map(|flag| flag.get_ref().clone()).collect()
        };
        let options = NvccOptions {
            flags: kernel
                .flags
                .as_ref()
                .or(defaults.raw.flags.as_ref())
                .map(values)
                .unwrap_or_default(),
            fast_math: kernel.fast_math.or(defaults.raw.fast_math).unwrap_or(false),
            max_registers: kernel
                .max_registers
                .as_ref()
                .or(defaults.raw.max_registers.as_ref())
                .map(|registers| *registers.get_ref()),
            lineinfo: kernel.lineinfo.or(defaults.raw.lineinfo).unwrap_or(false),
            debug: kernel.debug.or(defaults.raw.debug).unwrap_or(false),
            allow_spills: kernel.allow_spills.or(defaults.raw.allow_spills).unwrap_or(false),
            max_spills: kernel.max_spills.or(defaults.raw.max_spills),
            min_occupancy: kernel
                .min_occupancy
                .as_ref()
                .or(defaults.raw.min_occupancy.as_ref())
                .map(|percent| *percent.get_ref()),
        };
        let (mut specialize, mut specialize_spans) = self.specializations(&name, kernel.specialize, header);
        if let Some(grid) = kernel.specialize_grid {
            self.grid(&name, grid, &mut specialize, &mut specialize_spans);
        }
        let tune = kernel.tune.and_then(|tune| {
            let has_others = !specialize.is_empty();
            let parts = self.tune_parts(tune);
            let (candidates, tune) = self.tune(&name, parts, has_others)?;
            specialize_spans = vec![tune.span; candidates.len()];
            specialize = candidates;
            Some(tune)
        });
        Some(Kernel {
            entry_span: kernel.entry.as_ref().map_or(name_span, |e| self.span(e)),
            entry: kernel.entry.map(Spanned::into_inner),
            name,
            text,
            specialize,
            tune,
            targets: Targets { native, ptx },
            native_span,
            left_out: false,
            require: kernel.require.or(defaults.raw.require).unwrap_or(false),
            multiprocessors: kernel.multiprocessors.or(defaults.raw.multiprocessors),
            tvm: kernel.tvm.as_ref().map_or(defaults.tvm, |tvm| self.release(tvm)),
            feature: kernel.feature,
            options,
            source_span,
            specialize_spans,
        })
    }

    pub(super) fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::new(span, message).help(help));
    }
}
