//! Whether the Cargo features that kernels name are features of the package.
//!
//! A kernel of a feature that is misspelt is never built, without a word.

use std::path::Path;

use tirx_core::diagnostic::{Diagnostic, Diagnostics};
use tirx_core::suggest;

use super::Manifest;
use crate::document;
use crate::error::Error;

impl Manifest {
    /// Checks the features against the Cargo.toml of the package that the manifest's folder belongs to; there may be none.
    ///
    /// # Errors
    /// A kernel names a feature that the package does not declare.
    pub(crate) fn check_features(&self, folder: &Path) -> Result<(), Error> {
        if self.kernels.iter().all(|kernel| kernel.feature.is_none()) {
            return Ok(());
        }
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let Some(known) = folder.ancestors().find_map(declared) else {
            return Ok(());
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let mut errors = Vec::new();
        for kernel in &self.kernels {
            let Some(feature) = kernel.feature.as_deref().filter(|f| !known.contains(f)) else {
                continue;
            };
            let message = format!(
                "kernel `{}` is of the feature `{feature}`, which the package does not declare",
                kernel.name
            );
            let help = match (suggest(feature, known.iter().copied()), &known[..]) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, []) => format!("declare it in Cargo.toml: `[features]`, `{feature} = []`"),
                (None, known) => format!(
                    "its features are {}: declare it in Cargo.toml, `{feature} = []`",
                    known.join(", ")
                ),
            };
            errors.push(Diagnostic::new(kernel.entry_span, message).help(help));
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Error::from_diagnostics(&Diagnostics(errors), &self.sources)),
        }
    }
}

/// The features of the package in a folder: those of `[features]`, and optional dependencies that no feature names with
/// `dep:`. `None` where there is no package.
fn declared(folder: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let document = document::parse(&text).ok()?;
    let cargo = document.get_ref();
    cargo.get("package")?;
    let table = |key: &str| cargo.get(key).and_then(|value| value.get_ref().as_table());
    let features = table("features");
    let mut known: Vec<String> = features
        .into_iter()
        .flat_map(|f| f.keys())
        .map(|name| name.get_ref().to_string())
        .collect();
    let named: Vec<&str> = features
        .into_iter()
        .flat_map(|f| f.values())
        .filter_map(|list| list.get_ref().as_array())
        .flat_map(|list| list.iter())
        .filter_map(|item| item.get_ref().as_str()?.strip_prefix("dep:"))
        .collect();
    let dependencies = ["dependencies", "build-dependencies"].map(table);
    for (name, dependency) in dependencies.into_iter().flatten().flatten() {
        let optional = dependency.get_ref().get("optional");
        let optional = optional.and_then(|o| o.get_ref().as_bool()) == Some(true);
        if optional && !named.contains(&name.get_ref().as_ref()) {
            known.push(name.get_ref().to_string());
        }
    }
    Some(known)
}
