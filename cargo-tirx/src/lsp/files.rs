//! Which other files does a kernel file depend on? Files that it imports, and the manifest above it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tirx_build::compile::FileImports;
use tirx_build::manifest::{Manifest, Text};
use tirx_core::script::{Imports, ModuleText, Rewrite};
use tirx_services::editor::{Analysis, Wanted, analyze};

/// Files that are open in the editor before those on disk.
pub(super) struct Open<'a> {
    disk: FileImports,
    folder: &'a Path,
    open: &'a BTreeMap<PathBuf, String>,
}

impl Imports for Open<'_> {
    fn read(&self, module: &str) -> Option<ModuleText> {
        let on_disk = self.disk.read(module);
        let name = match &on_disk {
            Some(found) => found.name.clone(),
            None => format!("{}.py", module.replace('.', "/")),
        };
        match (self.open.get(&self.folder.join(&name)), on_disk) {
            (Some(text), found) => Some(ModuleText {
                name,
                text: text.clone(),
                is_package: found.is_some_and(|found| found.is_package),
            }),
            (None, found) => found,
        }
    }

    fn unreadable(&self, module: &str) -> Option<(String, String)> {
        self.disk.unreadable(module)
    }

    fn package(&self) -> String {
        self.disk.package()
    }

    fn rewrite_in_v27(&self, text: &str, function: Range<usize>) -> Option<Rewrite> {
        self.disk.rewrite_in_v27(text, function)
    }
}

/// Folders above a file that are looked into for a manifest.
const ABOVE: usize = 5;

/// How the manifest above a file builds its entries: the values of the first specialization, and the target.
fn wanted(file: &Path) -> Vec<Wanted> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own = real(file);
    for folder in file.ancestors().skip(1).take(ABOVE) {
        let Ok(text) = std::fs::read_to_string(folder.join("kernels.toml")) else {
            continue;
        };
        let Ok(manifest) = Manifest::parse("kernels.toml", &text) else {
            return Vec::new();
        };
        let of_file = manifest.kernels.iter().filter(|kernel| match &kernel.text {
            Text::File(source) => real(&folder.join(source)) == own,
            _ => false,
        });
        let of_file = of_file.map(|kernel| Wanted {
            entry: kernel.entry.clone().unwrap_or_else(|| kernel.name.clone()),
            values: kernel.specialize.first().cloned().unwrap_or_default(),
            target: kernel.targets.primary().to_string(),
        });
        return of_file.collect();
    }
    Vec::new()
}

/// Compiles a text in memory, as far as it goes.
pub(super) fn analyzed(file: &Path, text: &str, open: &BTreeMap<PathBuf, String>) -> Analysis {
    let folder = file.parent().unwrap_or(Path::new(""));
    let imports = Open {
        disk: FileImports::new(folder, "")
            .with_libraries_of(&crate::dependencies::environment())
            .with_rewriter(tirx_fix::rewrite),
        folder,
        open,
    };
    let shown = file.file_name().unwrap_or_default().to_string_lossy();
    analyze(&shown, text, &imports, &wanted(file), None)
}
