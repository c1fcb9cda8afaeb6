//! The meaning of `native`, which is known only when a build runs.

use tirx_core::diagnostic::Diagnostic;
use tirx_core::source::{SourceMap, Span};

use super::Manifest;
use crate::error::Error;
use tirx_core::ir::Gpu;

impl Manifest {
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
