//! The part of the interpreter's state that lives as long as a kernel file is evaluated: its texts, the modules that ran, and the
//! kernels that were made.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tirx_python::{self as ast, TextRange};

use super::value::{Class, Code, Iter, Kernel, Module, Value};
use super::{Dict, Lint, Scope, builtins, generator_steps, trial};
use crate::diagnostic::Result;
use crate::ir::{Attrs, PrimFunc};
use crate::parse::ParsedFile;
use crate::release::Release;
use crate::source::{FileId, SourceMap};

/// See the [module](self).
pub(crate) struct Session {
    /// The first field, so that it is dropped before the values are.
    pub(super) cycles: Cycles,
    pub(super) sources: SourceMap,
    /// The files that may be imported, by module.
    pub(super) files: BTreeMap<String, ParsedFile>,
    /// The modules that ran or run.
    pub(super) loaded: FxHashMap<String, Rc<Module>>,
    /// The modules that run, innermost last.
    pub(super) loading: Vec<String>,
    /// The syntax of the files that run or ran: a function's code refers to it.
    pub(super) modules: FxHashMap<FileId, Arc<ast::ModModule>>,
    /// The packages that the relative imports of the files start from.
    pub(super) packages: FxHashMap<FileId, String>,
    /// The release of TVM that each file is written for; files that are valid in both have none.
    pub(super) releases: FxHashMap<FileId, Release>,
    /// Library modules written in Python that have run, by number.
    pub(super) library: FxHashMap<usize, Rc<Scope>>,
    /// The names of the language that were looked up (`T.cuda.cta_sync`), if they are recorded.
    pub(crate) looked_up: Option<BTreeSet<String>>,
    /// Lints found so far.
    pub(crate) lints: Vec<Lint>,
    /// Multiprocessors of the GPU, if the build names it.
    pub(crate) multiprocessors: Option<u32>,
    /// Alternatives that are tried, for `cargo tirx fix`.
    pub(super) trying: Option<trial::Trying>,
    pub(super) caches: Caches,
    pub(crate) kernels: Kernels,
}

/// Values that are made once and are the same whenever the text asks for them.
#[derive(Default)]
pub(super) struct Caches {
    pub(super) codes: FxHashMap<(FileId, u32), Rc<Code>>,
    /// The steps of functions with `yield`.
    pub(super) generators: FxHashMap<(FileId, TextRange), generator_steps::Steps>,
    /// Names of the language that were looked up, by their namespaces; they are the same in every file.
    pub(super) language: FxHashMap<Box<str>, FxHashMap<Box<str>, Value>>,
    pub(super) builtins: builtins::Builtins,
    pub(super) module_classes: FxHashMap<Rc<str>, Rc<Class>>,
    /// The objects that `id` has numbered, in their order.
    pub(super) numbered: Vec<Value>,
    /// `os.environ`, once it is asked for.
    pub(super) environment: Option<Rc<RefCell<Dict>>>,
    /// `sys.modules`.
    pub(super) python_modules: Rc<RefCell<Dict>>,
}

/// The kernels of the file.
#[derive(Default)]
pub(crate) struct Kernels {
    /// Kernels decorated so far.
    pub(super) decorated: usize,
    /// Kernels and modules made so far, for functions that make one and return nothing.
    pub(crate) made: Vec<Value>,
    /// The number of the kernel that is built where it is decorated, because the file may later change what it reads.
    pub(super) wanted: Option<usize>,
    /// The result of building it.
    pub(super) built: Option<Result<PrimFunc>>,
    /// The last function that was built by `with I.prim_func():`.
    pub(super) traced: Option<Value>,
    /// The attributes of the module that is being defined.
    pub(super) module_attrs: Attrs,
    /// The functions of the module that is being built, which may call each other.
    pub(super) module_functions: Vec<Rc<Kernel>>,
}

/// Scopes and classes may form reference cycles with their functions and methods, and iterators with their source, so all are emptied at
/// the end.
#[derive(Default)]
pub(super) struct Cycles {
    pub(super) closed_over: Vec<Weak<Scope>>,
    pub(super) classes: Vec<Weak<Class>>,
    pub(super) iterators: Vec<Weak<Iter>>,
}

impl Drop for Cycles {
    fn drop(&mut self) {
        for scope in self.closed_over.drain(..).filter_map(|s| s.upgrade()) {
            // An enclosing scope may hold functions too: a module holds the kernels of a class in it.
            let mut level = Some(&scope);
            while let Some(scope) = level {
                drop(scope.vars.take());
                level = scope.parent.as_ref();
            }
        }
        for iterator in self.iterators.drain(..).filter_map(|i| i.upgrade()) {
            iterator.stop();
        }
        for class in self.classes.drain(..).filter_map(|c| c.upgrade()) {
            drop(class.dict.take());
        }
    }
}

impl Session {
    /// Texts, and the files that may be imported.
    pub(super) fn new(sources: SourceMap, files: BTreeMap<String, ParsedFile>) -> Session {
        let releases = files.values();
        let releases = releases.filter_map(|f| Some((f.file, f.evidence.release()?)));
        Session {
            releases: releases.collect(),
            sources,
            files,
            loaded: FxHashMap::default(),
            loading: Vec::new(),
            modules: FxHashMap::default(),
            packages: FxHashMap::default(),
            library: FxHashMap::default(),
            looked_up: None,
            lints: Vec::new(),
            multiprocessors: None,
            trying: None,
            caches: Caches::default(),
            kernels: Kernels::default(),
            cycles: Cycles::default(),
        }
    }
}
