//! Kernel files of other crates: `from mylib.kernels.vector import f`.
//!
//! A library that names itself with `links = "mylib"` in its Cargo.toml and builds its kernels with this crate tells the
//! build scripts of the packages that depend on it where its sources are (Cargo's metadata of `links` packages). There
//! `mylib` is a Python package whose folder is that of the library's manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// The key of the metadata; Cargo gives it to dependants as `DEP_MYLIB_TIRX_KERNELS`.
const KEY: &str = "TIRX_KERNELS";

/// The folders of the libraries that a package depends on, by the name that kernel files import.
#[derive(Clone, Debug, Default)]
pub(crate) struct Libraries(BTreeMap<String, PathBuf>);

impl Libraries {
    /// Those that Cargo has told this build script of.
    pub(crate) fn of(environment: &Environment) -> Libraries {
        let suffix = format!("_{KEY}");
        let variables = environment.variables().keys();
        let named = variables.filter_map(|variable| {
            let name = variable.strip_prefix("DEP_")?.strip_suffix(&suffix)?;
            Some((name.to_lowercase(), environment.path(variable)?))
        });
        Libraries(named.collect())
    }

    /// The file that `relative`, the path of a module, names in a library, and what messages call it.
    pub(crate) fn find(&self, relative: &str) -> Option<(PathBuf, String)> {
        let (library, rest) = relative.split_once('/')?;
        let folder = self.0.get(library)?;
        Some((folder.join(rest), format!("{library}/{rest}")))
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
        let libraries = Libraries::of(&environment);
        let found = libraries.find("my_lib/kernels/vector.py");
        let expected = (
            PathBuf::from("/far/my-lib/kernels/vector.py"),
            "my_lib/kernels/vector.py".to_string(),
        );
        assert_eq!(found, Some(expected));
        assert_eq!(libraries.find("z/kernels.py"), None);
        assert_eq!(environment.names_read(), ["DEP_MY_LIB_TIRX_KERNELS"]);
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
