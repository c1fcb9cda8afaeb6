//! Which file does an import mean?

use std::path::{Path, PathBuf};

use tirx_build::compile::FileImports;
use tirx_core::script::Imports;
use tirx_services::editor::text::Imported;

/// Which files an import may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of the package itself, which a user may change.
    Package,
    /// Those of the libraries that it depends on too.
    Libraries,
}

/// The file that an imported name stands for, where it is a module.
pub(super) fn module_of(file: &Path, one: &Imported, reach: Reach) -> Option<PathBuf> {
    match &one.name {
        None => resolved(file, &one.module, reach),
        Some((name, ..)) if one.module.ends_with('.') => {
            resolved(file, &format!("{}{name}", one.module), reach)
        }
        Some((name, ..)) => resolved(file, &format!("{}.{name}", one.module), reach),
    }
}

/// The file of a module that another file imports, by the rules of the compiler.
pub(super) fn resolved(file: &Path, module: &str, reach: Reach) -> Option<PathBuf> {
    let own = FileImports::new(file.parent()?, "");
    let imports = match reach {
        Reach::Package => own,
        Reach::Libraries => own.with_libraries_of(&crate::dependencies::environment()),
    };
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
