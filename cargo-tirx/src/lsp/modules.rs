//! Which file does an import mean?

use std::path::{Path, PathBuf};

use tirx_build::compile::FileImports;
use tirx_core::script::Imports;
use tirx_services::editor::text::Imported;

/// The file that an imported name stands for, where it is a module.
pub(super) fn module_of(file: &Path, one: &Imported) -> Option<PathBuf> {
    match &one.name {
        None => resolved(file, &one.module),
        Some((name, ..)) if one.module.ends_with('.') => resolved(file, &format!("{}{name}", one.module)),
        Some((name, ..)) => resolved(file, &format!("{}.{name}", one.module)),
    }
}

/// The file of a module that another file imports, by the rules of the compiler.
pub(super) fn resolved(file: &Path, module: &str) -> Option<PathBuf> {
    let imports = FileImports::new(file.parent()?, "");
    let name = module.trim_start_matches('.');
    let up = module.len() - name.len();
    let package = imports.package();
    let mut parts: Vec<&str> = package.split('.').filter(|part| !part.is_empty()).collect();
    match up {
        0 => parts.clear(),
        // One dot is the file's own package.
        _ => parts.truncate(parts.len().checked_sub(up - 1)?),
    }
    parts.extend(name.split('.').filter(|part| !part.is_empty()));
    imports.read(&parts.join("."))?;
    imports.files().last().map(|path| real(path))
}

pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
