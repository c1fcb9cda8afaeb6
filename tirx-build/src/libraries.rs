//! Kernel files of other crates: `from mylib.kernels.vector import f`.
//!
//! A library that names itself with `links = "mylib"` in its Cargo.toml and builds its kernels with this crate tells the
//! build scripts of the packages that depend on it where its sources are (Cargo's metadata of `links` packages). There
//! `mylib` is a Python package whose folder is that of the library's manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::environment::{Environment, FindLibraries};

/// The key of the metadata; Cargo gives it to dependants as `DEP_MYLIB_TIRX_KERNELS`.
const KEY: &str = "TIRX_KERNELS";

/// The folders of the libraries that a package depends on, by the name that kernel files import.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries {
    told: BTreeMap<String, PathBuf>,
    /// Finds those that nobody has told of.
    find: Option<FindLibraries>,
}

impl Libraries {
    /// Those that Cargo has told this build script of.
    pub(crate) fn from_environment(environment: &Environment) -> Libraries {
        let suffix = format!("_{KEY}");
        let variables = environment.variables().keys();
        let named = variables.filter_map(|variable| {
            let name = variable.strip_prefix("DEP_")?.strip_suffix(&suffix)?;
            Some((name.to_lowercase(), environment.path(variable)?))
        });
        Libraries {
            told: named.collect(),
            find: environment.find_libraries(),
        }
    }

    /// The file that `relative`, the path of a module, names in a library, and what messages call it. A file in `folder`
    /// imports it.
    pub(crate) fn find(&self, folder: &Path, relative: &str) -> Option<(PathBuf, String)> {
        let (library, rest) = relative.split_once('/')?;
        let found = match self.told.get(library) {
            Some(told) => told.join(rest),
            None => self.find?(folder).get(library)?.join(rest),
        };
        Some((found, format!("{library}/{rest}")))
    }
}

/// What tells dependants of a package with `links` where its kernel files are. `folder` is that of the manifest.
pub(crate) fn directive(environment: &Environment, folder: &Path) -> Option<String> {
    environment.peek("CARGO_MANIFEST_LINKS")?;
    let package = environment.path_peek("CARGO_MANIFEST_DIR")?;
    Some(format!(
        "cargo::metadata={KEY}={}",
        package.join(folder).display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_cargo_names() {
        let environment = Environment::empty()
            .with("DEP_MY_LIB_TIRX_KERNELS", "/far/my-lib")
            .with("DEP_Z_INCLUDE", "/far/z");
        let libraries = Libraries::from_environment(&environment);
        let here = Path::new("kernels");
        let found = libraries.find(here, "my_lib/kernels/vector.py");
        let expected = (
            PathBuf::from("/far/my-lib/kernels/vector.py"),
            "my_lib/kernels/vector.py".to_string(),
        );
        assert_eq!(found, Some(expected));
        assert_eq!(libraries.find(here, "z/kernels.py"), None);
        assert_eq!(environment.names_read(), ["DEP_MY_LIB_TIRX_KERNELS"]);
    }

    #[test]
    fn libraries_that_nobody_has_told_of_are_looked_for() {
        let find = |folder: &Path| {
            let found = ["my_lib", "z"].map(|name| (name.to_string(), folder.join(name)));
            BTreeMap::from(found)
        };
        let environment = Environment::empty()
            .with("DEP_MY_LIB_TIRX_KERNELS", "/far/my-lib")
            .with_libraries(find);
        let libraries = Libraries::from_environment(&environment);
        let path = |relative| libraries.find(Path::new("/here"), relative).map(|(path, _)| path);
        assert_eq!(path("my_lib/a.py"), Some(PathBuf::from("/far/my-lib/a.py")));
        assert_eq!(path("z/a.py"), Some(PathBuf::from("/here/z/a.py")));
        assert_eq!(path("y/a.py"), None);
    }

    #[test]
    fn a_package_with_links_tells_where_its_kernels_are() {
        let environment = Environment::empty().with("CARGO_MANIFEST_DIR", "/far/my-lib");
        assert_eq!(directive(&environment, Path::new("")), None);
        let environment = environment.with("CARGO_MANIFEST_LINKS", "my-lib");
        let told = directive(&environment, Path::new("gpu"));
        assert_eq!(
            told.as_deref(),
            Some("cargo::metadata=TIRX_KERNELS=/far/my-lib/gpu")
        );
    }
}
