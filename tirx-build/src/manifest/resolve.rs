//! Parts of the manifest that are known only when a build runs: the kernels of its build script, and the meaning of
//! `native`.

use tirx_core::diagnostic::{Diagnostic, Diagnostics};
use tirx_core::source::{FileId, SourceMap, Span};

use super::read::Reader;
use super::{Kernel, Manifest};
use crate::error::Error;
use tirx_core::ir::Gpu;

impl Manifest {
    /// Adds a kernel that a build script declares.
    ///
    /// # Errors
    /// Its name is no name of a kernel, or that of another.
    pub(crate) fn declare(&mut self, kernel: Kernel) -> Result<(), Error> {
        let mut reader = Reader {
            file: FileId::default(),
            errors: Vec::new(),
        };
        reader.check_name(&kernel.name, Span::NONE);
        if self.kernels.iter().any(|known| known.name == kernel.name) {
            let help = "the manifest and the build script share one module: rename one of them";
            reader.error(
                Span::NONE,
                format!("kernel `{}` is declared twice", kernel.name),
                help,
            );
        }
        self.kernels.push(kernel);
        match reader.errors.is_empty() {
            true => Ok(()),
            false => Err(Error::from_diagnostics(
                &Diagnostics(reader.errors),
                &self.sources,
            )),
        }
    }

    /// Replaces `native` among the targets by these architectures.
    ///
    /// # Errors
    /// Targets name it, and it cannot be resolved: the reason is given.
    pub(crate) fn resolve_native(
        &mut self,
        gpus: impl FnOnce() -> Result<Vec<Gpu>, String>,
    ) -> Result<(), Error> {
        let Some(span) = self.kernels.iter().find_map(|kernel| kernel.native_span) else {
            return Ok(());
        };
        let gpus = gpus().map_err(|reason| native_refused(span, &reason, &self.sources))?;
        for kernel in self
            .kernels
            .iter_mut()
            .filter(|kernel| kernel.native_span.is_some())
        {
            for arch in &gpus {
                if !kernel.targets.native.contains(arch) {
                    kernel.targets.native.push(*arch);
                }
            }
        }
        Ok(())
    }
}

/// The error where `native` cannot be resolved.
fn native_refused(span: Span, reason: &str, sources: &SourceMap) -> Error {
    let diagnostic = Diagnostic::new(span, format!("`native` among the targets: {reason}")).help(
        "name the GPUs that the kernels are for: `targets = [\"sm_90a\", \"sm_100a\"]`, and `ptx = \"compute_90\"` for \
         those that are newer",
    );
    Error::from_diagnostic(&diagnostic, sources)
}
