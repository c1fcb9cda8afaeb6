//! The environment variables that a build reads, as a value: the names read can be reported to Cargo, and tests need
//! not change the process's environment.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of libraries with kernels, by the name that kernel files import, for the package that a folder is in.
pub(crate) type FindLibraries = fn(&Path) -> BTreeMap<String, PathBuf>;

/// Environment variables. Remembers which ones were read.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    read: RefCell<BTreeSet<String>>,
    libraries: Option<FindLibraries>,
}

impl Environment {
    /// No variables.
    pub fn empty() -> Environment {
        Environment::default()
    }

    /// Those of this process (names that are not Unicode are left out).
    pub fn process() -> Environment {
        Environment {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            read: RefCell::default(),
            libraries: None,
        }
    }

    /// The environment of a program that Cargo has not told what a package depends on. `find` is asked when a kernel file
    /// imports what is in no file of its own and in no library of a `DEP_…_TIRX_KERNELS` variable.
    pub fn with_libraries(mut self, find: FindLibraries) -> Environment {
        self.libraries = Some(find);
        self
    }

    pub(crate) fn find_libraries(&self) -> Option<FindLibraries> {
        self.libraries
    }

    /// The environment with a variable set.
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Environment {
        self.variables.insert(name.to_string(), value.into());
        self
    }

    /// The environment with a variable removed.
    pub fn without(mut self, name: &str) -> Environment {
        self.variables.remove(name);
        self
    }

    /// A variable's value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.read.borrow_mut().insert(name.to_string());
        self.variables
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// A variable that changes how a result is produced but not the result: Cargo need not watch it.
    pub fn peek(&self, name: &str) -> Option<OsString> {
        self.variables
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// As [`peek`](Environment::peek), for a variable that names a file or program.
    pub fn path_peek(&self, name: &str) -> Option<PathBuf> {
        self.peek(name).map(PathBuf::from)
    }

    /// A variable that names a file or directory.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The names read so far, sorted.
    pub fn names_read(&self) -> Vec<String> {
        self.read.borrow().iter().cloned().collect()
    }

    /// All variables, for a child process.
    pub fn variables(&self) -> &BTreeMap<String, OsString> {
        &self.variables
    }
}
