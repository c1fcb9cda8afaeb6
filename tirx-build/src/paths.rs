//! File names in messages: relative to the root of the workspace, as rustc has them, so that editors and terminals find
//! the files.

use std::path::{Component, Path, PathBuf};

use crate::environment::Environment;

/// Names of files in messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileNames {
    /// The manifest's name in messages, and the folder that kernel files are named from.
    manifest: String,
    folder: PathBuf,
    /// The package's folder and the workspace's; `None` outside of a build script.
    roots: Option<(PathBuf, PathBuf)>,
}

impl FileNames {
    /// Those of a build with this manifest.
    pub(crate) fn new(environment: &Environment, manifest: &Path, shown: &str) -> FileNames {
        let package = environment.path_peek("CARGO_MANIFEST_DIR");
        FileNames {
            manifest: shown.to_string(),
            folder: manifest.parent().unwrap_or(Path::new("")).to_path_buf(),
            roots: package.map(|package| (package.clone(), workspace_root(&package))),
        }
    }

    /// The name of a file that a message names from the manifest's folder, or of the manifest itself.
    pub(crate) fn name(&self, file: &str) -> String {
        let Some((package, workspace)) = &self.roots else {
            return file.to_string();
        };
        if file.starts_with('<') {
            return file.to_string();
        }
        let path = match file == self.manifest {
            true => package.join(file),
            false => package.join(&self.folder).join(file),
        };
        let path = without_dots(&path);
        let shown = path.strip_prefix(without_dots(workspace)).unwrap_or(&path);
        shown.to_string_lossy().replace('\\', "/")
    }
}

/// A path in messages of a build: from the root of the workspace, if the path is below it.
pub(crate) fn shown(environment: &Environment, path: &Path) -> PathBuf {
    let Some(package) = environment.path_peek("CARGO_MANIFEST_DIR") else {
        return path.to_path_buf();
    };
    let whole = without_dots(&package.join(path));
    let root = without_dots(&workspace_root(&package));
    match whole.strip_prefix(root) {
        Ok(below) => below.to_path_buf(),
        Err(_) => path.to_path_buf(),
    }
}

/// The nearest folder, from the package's up, whose Cargo.toml has a `[workspace]`; else the package's.
pub(crate) fn workspace_root(package: &Path) -> PathBuf {
    let is_root = |folder: &&Path| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("[workspace]") || line.starts_with("[workspace.")
        })
    };
    let root = package.ancestors().find(is_root);
    root.unwrap_or(package).to_path_buf()
}

/// The path without `.` and `..`, as it reads.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("app");
        std::fs::create_dir(&package).unwrap();
        std::fs::write(
            dir.path().join("Cargo.toml"),
            "[workspace]\nmembers = [\"app\"]\n",
        )
        .unwrap();
        std::fs::write(package.join("Cargo.toml"), "[package]\n").unwrap();
        let environment = Environment::empty().with("CARGO_MANIFEST_DIR", &package);
        let names = FileNames::new(&environment, Path::new("kernels.toml"), "kernels.toml");
        assert_eq!(names.name("kernels.toml"), "app/kernels.toml");
        assert_eq!(names.name("kernels/add.py"), "app/kernels/add.py");
        for (path, expected) in [
            ("kernels.bundle", "app/kernels.bundle"),
            ("../all.bundle", "all.bundle"),
            ("/elsewhere/x", "/elsewhere/x"),
        ] {
            assert_eq!(shown(&environment, Path::new(path)), Path::new(expected));
        }
        assert_eq!(shown(&Environment::empty(), Path::new("x")), Path::new("x"));
        let names = FileNames::new(&environment, Path::new("../kernels.toml"), "../kernels.toml");
        assert_eq!(names.name("../kernels.toml"), "kernels.toml");
        assert_eq!(names.name("kernels/add.py"), "kernels/add.py");
        let names = FileNames::new(
            &Environment::empty(),
            Path::new("/x/kernels.toml"),
            "/x/kernels.toml",
        );
        assert_eq!(names.name("kernels/add.py"), "kernels/add.py");
    }
}
