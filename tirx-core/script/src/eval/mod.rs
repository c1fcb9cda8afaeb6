//! The meta evaluator: Python semantics over two kinds of value. See [`Value`].
//!
//! Operations on meta values alone are computed here; one that touches an IR value is handed to
//! [`super::lang`], which builds IR. Functions run in one of two ways: as Python (module level, helper functions,
//! classes), or as part of a kernel (bodies of `@T.prim_func`, `@T.jit` and `@T.inline`), where `if`, `for`, `while`,
//! assignment and the like build statements.
//!
//! | file | which question it answers |
//! |---|---|
//! | `value`, `dict`, `scope`, `args`, `constant` | what values, names and arguments are |
//! | `expr`, `name_lookup`, `comprehension`, `ops`, `compare`, `index`, `attribute`, `format`, `percent` | what an expression of the text means |
//! | `stmt`, `exceptions` | what a statement does as Python |
//! | `kernel_stmt`, `kernel_assign`, `kernel_with` | what a statement does in the body of a kernel |
//! | `kernel`, `builder` | how a kernel becomes a function of the IR |
//! | `call`, `code`, `decorators` | functions, and the decorators of `T` and `I` |
//! | `class`, `construct`, `records`, `enums` | classes and their objects, dataclasses and named tuples, enums |
//! | `builtins`, `types`, `methods`, `str_methods`, `number_methods` | Python's own functions and types |
//! | `iter`, `iter_builtins`, `generator`, `generator_steps` | items one by one, functions with `yield` |
//! | `host`, `host_values` | what host code beside kernels means |
//! | `imports`, `modules`, `math`, `functional`, `library` | what `import` finds |
//! | `lints` | what is most likely a mistake |
//! | `limits`, `names` | when a file is refused; which name was meant |

mod args;
mod attribute;
mod builder;
mod builtins;
mod call;
mod class;
mod code;
mod compare;
mod comprehension;
pub(crate) mod constant;
mod construct;
mod decorators;
mod descriptors;
mod dict;
mod enums;
mod exceptions;
mod expr;
mod format;
#[cfg(test)]
mod frame_tests;
mod functional;
mod generator;
mod generator_steps;
mod host;
#[cfg(test)]
mod host_tests;
mod host_values;
mod imports;
mod index;
mod ir_modules;
mod iter;
mod iter_builtins;
mod kernel;
mod kernel_assign;
mod kernel_stmt;
#[cfg(test)]
mod kernel_tests;
mod kernel_with;
mod library;
pub(crate) mod library_text;
pub mod limits;
mod lints;
mod math;
mod methods;
#[cfg(test)]
mod mistake_tests;
mod modules;
mod name_lookup;
mod nodes;
mod number_methods;
mod numerics;
mod ops;
mod percent;
#[cfg(test)]
mod python_tests;
mod reached;
mod records;
pub(crate) mod scope;
mod signature;
mod stmt;
mod str_methods;
mod str_tables;
#[cfg(test)]
mod tests;
mod traced;
mod trial;
mod types;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tirx_python::TextRange;
use tirx_python::{self as ast, Name};

pub use args::{Args, Param, count, keyword, optional, quoted, required};
pub use builder::{FunctionBuilder, Wrap};
pub use dict::{Dict, Key, Set, key};
pub use lints::{LINTS, Lint};
pub use scope::{Scope, ScopeKind};
pub use tirx_source::suggest;
pub use value::*;

/// The value of a name of the language as kernel files see it: `("T", "prim_func")`, `("T.cuda", "cta_sync")`. One that
/// TVM has and this compiler does not is a [`Value::Unavailable`] with the reason.
pub fn language_name(path: &str, name: &str) -> Option<Value> {
    decorators::attribute(path, name).or_else(|| crate::lang::attribute(path, name))
}

pub(crate) use host::{Held, held};
pub(crate) use kernel::ParameterRole;

use super::parse::ParsedFile;
use super::release::Release;
use crate::diagnostic::Result;
use crate::ir::{Attrs, Buffer, DType, IRModule, PrimFunc, Stmt, Var};
use crate::source::{FileId, SourceMap, Span};
use builder::Block;

/// How statements run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As Python, at compile time.
    Meta,
    /// As part of a kernel.
    Kernel,
}

/// A loop around the current statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopKind {
    /// A compile-time loop, with the number of blocks that were open where it began.
    Meta(usize),
    /// A run-time loop of the kernel.
    Run,
}

/// How an error was raised.
#[derive(Clone)]
enum Raised {
    /// An exception, which `except` may catch.
    Exception(Value),
    /// The use of a host value.
    Unavailable,
}

/// A call that is running.
struct CallInfo {
    class: Option<Rc<Class>>,
    receiver: Option<Value>,
    blocks: usize,
}

/// The state of one evaluation. Builtins get it to emit statements, call values back and see the function that
/// is being built.
pub struct Interpreter {
    // The text.
    file: FileId,
    /// While a function is called in a kernel: its file, and that file within the call.
    called: (FileId, FileId),
    sources: SourceMap,
    files: BTreeMap<String, ParsedFile>,
    loaded: FxHashMap<String, Rc<Module>>,
    loading: Vec<String>,
    codes: FxHashMap<(FileId, u32), Rc<Code>>,
    /// The syntax of the files that run or ran: a function's code refers to it.
    modules: FxHashMap<FileId, Arc<ast::ModModule>>,
    /// The packages that the relative imports of the files start from.
    packages: FxHashMap<FileId, String>,
    /// The release of TVM that each file is written for; files that are valid in both have none.
    releases: FxHashMap<FileId, Release>,
    /// The names of the language that were looked up (`T.cuda.cta_sync`), if they are recorded.
    pub(crate) looked_up: Option<BTreeSet<String>>,
    // Python.
    scope: Rc<Scope>,
    mode: Mode,
    builtins: builtins::Builtins,
    module_classes: FxHashMap<Rc<str>, Rc<Class>>,
    /// Names of the language that were looked up, by their namespaces; they are the same in every file.
    language: FxHashMap<Box<str>, FxHashMap<Box<str>, Value>>,
    calls: Vec<CallInfo>,
    /// The call in the user's file that entered the library function that is being evaluated.
    library_call: Span,
    /// Of the function that Python code builds: the folder of the library that builds it, where that is another one than the kernel's.
    builder_folder: Option<Rc<str>>,
    loops: Vec<LoopKind>,
    generators: FxHashMap<(FileId, TextRange), generator_steps::Steps>,
    /// Library modules written in Python that have run, by number.
    library: FxHashMap<usize, Rc<Scope>>,
    raised: Option<(String, Raised)>,
    handling: Vec<Value>,
    class_order: Vec<Rc<str>>,
    /// The objects that `id` has numbered, in their order.
    numbered: Vec<Value>,
    class_def: Option<Arc<ast::StmtClassDef>>,
    // The function being built.
    function: Option<FunctionBuilder>,
    blocks: Vec<Block>,
    branches: Vec<(Option<Stmt>, Option<Stmt>)>,
    /// Frames whose `__enter__` was called, with the number of open blocks at that time.
    entered: Vec<(Rc<value::Frame>, usize)>,
    /// The regions whose bodies are open, outermost first.
    open_frames: Vec<Rc<value::Frame>>,
    module_attrs: Attrs,
    /// The functions of the module that is being built, which may call each other.
    module_functions: Vec<Rc<Kernel>>,
    /// Number of enclosing blocks that the kernel may skip.
    choices: usize,
    /// Variables that have a name.
    known_vars: FxHashSet<Var>,
    /// Variables created by shapes of parameters.
    match_vars: FxHashMap<Name, Var>,
    /// While the shape of a parameter is evaluated: dtypes of the names it may create.
    match_names: Option<Rc<FxHashMap<Name, DType>>>,
    /// Whether the text of a string is evaluated, in which such a shape may create any name.
    in_text: bool,
    /// One-element buffers that are not bound to a name yet.
    fresh_scalars: FxHashSet<usize>,
    /// Names of blocks that have ended, for error messages.
    ended_names: FxHashMap<Name, Span>,
    renamed_buffers: FxHashMap<usize, (Buffer, Arc<str>)>,
    renamed_vars: FxHashMap<Var, Arc<str>>,
    /// Lints found so far.
    pub(crate) lints: Vec<Lint>,
    /// Number of enclosing expressions that describe a layout, in which axis names denote axes.
    layouts: usize,
    /// Kernels decorated so far.
    decorated: usize,
    /// Kernels and modules made so far, for functions that make one and return nothing.
    pub(crate) made: Vec<Value>,
    /// The number of the kernel that is built where it is decorated, because the file may later change what it reads.
    wanted: Option<usize>,
    /// The result of building it.
    built: Option<Result<PrimFunc>>,
    /// The last function that was built by `with I.prim_func():`.
    traced: Option<Value>,
    /// `os.environ`, once it is asked for.
    environment: Option<Rc<std::cell::RefCell<Dict>>>,
    /// `sys.modules`.
    python_modules: Rc<std::cell::RefCell<Dict>>,
    /// Multiprocessors of the GPU, if the build names it.
    pub(crate) multiprocessors: Option<u32>,
    // Limits.
    emitted: usize,
    steps: u64,
    objects: usize,
    depth: usize,
    fatal: bool,
    /// Alternatives that are tried, for `cargo tirx fix`.
    trying: Option<trial::Trying>,
    // Scopes and classes may form reference cycles with their functions and methods, so they are emptied at the end.
    closed_over: Vec<Weak<Scope>>,
    classes: Vec<Weak<Class>>,
    /// Iterators may form cycles with what they iterate over.
    iterators: Vec<Weak<Iter>>,
}

impl Drop for Interpreter {
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

impl Interpreter {
    /// An evaluation over parsed files; `files` are those that may be imported.
    pub(crate) fn new(sources: SourceMap, files: BTreeMap<String, ParsedFile>) -> Interpreter {
        let releases = files.values();
        let releases = releases.filter_map(|f| Some((f.file, f.evidence.release()?)));
        Interpreter {
            file: FileId::NONE,
            called: (FileId::NONE, FileId::NONE),
            releases: releases.collect(),
            sources,
            files,
            loaded: FxHashMap::default(),
            loading: Vec::new(),
            codes: FxHashMap::default(),
            modules: FxHashMap::default(),
            packages: FxHashMap::default(),
            looked_up: None,
            scope: Scope::new(ScopeKind::Module, None),
            mode: Mode::Meta,
            builtins: builtins::Builtins::default(),
            module_classes: FxHashMap::default(),
            language: FxHashMap::default(),
            calls: Vec::new(),
            library_call: Span::NONE,
            builder_folder: None,
            loops: Vec::new(),
            generators: FxHashMap::default(),
            library: FxHashMap::default(),
            raised: None,
            handling: Vec::new(),
            class_order: Vec::new(),
            numbered: Vec::new(),
            class_def: None,
            function: None,
            blocks: Vec::new(),
            branches: Vec::new(),
            entered: Vec::new(),
            open_frames: Vec::new(),
            module_attrs: Attrs::new(),
            module_functions: Vec::new(),
            choices: 0,
            known_vars: FxHashSet::default(),
            match_vars: FxHashMap::default(),
            match_names: None,
            in_text: false,
            fresh_scalars: FxHashSet::default(),
            ended_names: FxHashMap::default(),
            renamed_buffers: FxHashMap::default(),
            renamed_vars: FxHashMap::default(),
            lints: Vec::new(),
            layouts: 0,
            decorated: 0,
            made: Vec::new(),
            wanted: None,
            built: None,
            traced: None,
            environment: None,
            python_modules: Rc::default(),
            multiprocessors: None,
            emitted: 0,
            steps: 0,
            objects: 0,
            depth: 0,
            fatal: false,
            trying: None,
            closed_over: Vec::new(),
            classes: Vec::new(),
            iterators: Vec::new(),
        }
    }

    /// Runs the statements of the main file and gives its names. Where `wanted` is the number of a `@T.prim_func`, that
    /// kernel is built at its decorator.
    pub(crate) fn run_main(&mut self, file: &ParsedFile, wanted: Option<usize>) -> Result<Rc<Scope>> {
        self.wanted = wanted;
        self.file = file.file;
        self.modules.insert(file.file, file.module.clone());
        self.packages.insert(file.file, file.package.clone());
        self.releases
            .extend(file.evidence.release().map(|release| (file.file, release)));
        self.agree_on_release(file.file);
        self.run_module(&file.module.body)?;
        Ok(self.scope.clone())
    }

    /// Files without a use that only one release has are of the release of the files beside them, where these agree.
    fn agree_on_release(&mut self, main: FileId) {
        // Not those of alternatives that are tried for statements, which have releases of their own.
        let files = self.files.values().map(|f| f.file).chain([main]);
        let files: Vec<FileId> = files.collect();
        let mut shown = files.iter().filter_map(|file| self.releases.get(file)).copied();
        let Some(release) = shown.next().filter(|first| shown.all(|other| other == *first)) else {
            return;
        };
        for file in files {
            let text = self.sources.file(file).map_or("", |file| file.text.as_str());
            if !super::release::has_both(text) {
                self.releases.entry(file).or_insert(release);
            }
        }
    }

    /// The release of TVM that the code that runs is written for; `None` where it is valid in both.
    pub(crate) fn release(&self) -> Option<Release> {
        // The library's own modules are written for 0.26.
        match self.file >= super::parse::LIBRARY_FILE {
            true => Some(Release::V26),
            false => self.releases.get(&self.file).copied(),
        }
    }

    /// Whether nothing says for which release the code that runs is written. Printed IR has operations of both.
    pub(crate) fn may_be_of_either(&self) -> bool {
        let text = self.sources.file(self.file).map_or("", |file| file.text.as_str());
        self.release().is_none() && !super::release::has_both(text)
    }

    /// Whether the code that runs is printed IR.
    pub(crate) fn is_printed(&self) -> bool {
        let text = self.sources.file(self.file).map_or("", |file| file.text.as_str());
        super::release::is_printed(text)
    }

    /// Whether a statement of a kernel runs, not Python code around it.
    pub(crate) fn is_kernel_code(&self) -> bool {
        self.mode == Mode::Kernel
    }

    /// Builds an `@I.ir_module`; `None` for another value.
    pub(crate) fn build_module_value(&mut self, value: &Value) -> Option<Result<IRModule>> {
        let Value::Object(o) = value else { return None };
        let o = o.clone();
        let sources = self.sources.clone();
        if let Some(module) = o.as_any().downcast_ref::<ir_modules::WithSubroutines>() {
            return Some(self.build_module(&module.functions, Attrs::default(), sources));
        }
        let module = o.as_any().downcast_ref::<decorators::ModuleValue>()?;
        Some(self.build_module(&module.functions, module.attrs.clone(), sources))
    }

    /// Whether a value is an `@I.ir_module`, and the span of its class.
    pub(crate) fn module_span(value: &Value) -> Option<Span> {
        match value {
            Value::Object(o) => {
                let with_subroutines = || o.as_any().downcast_ref::<ir_modules::WithSubroutines>();
                o.as_any()
                    .downcast_ref::<decorators::ModuleValue>()
                    .map(|m| m.class.span)
                    .or_else(|| with_subroutines().map(|m| m.kernel.code.span))
            }
            _ => None,
        }
    }

    /// The text under a range of the current file.
    fn text_of(&self, range: TextRange) -> String {
        self.sources.text(self.span_at(range)).to_string()
    }
}

impl Default for Interpreter {
    fn default() -> Interpreter {
        Interpreter::new(SourceMap::new(), BTreeMap::new())
    }
}

impl Class {
    /// Whether it is a builtin class whose values are not objects with fields here.
    fn holds_builtin_values(&self) -> bool {
        const VALUES: [&str; 9] = [
            "list",
            "dict",
            "set",
            "frozenset",
            "tuple",
            "str",
            "int",
            "float",
            "bool",
        ];
        matches!(&*self.kind.borrow(), value::ClassKind::Builtin) && VALUES.contains(&&*self.name)
    }

    /// The fields of a dataclass or named tuple, those of a base included.
    fn data(&self) -> Option<Rc<DataClass>> {
        let own = |class: &Class| match &*class.kind.borrow() {
            ClassKind::DataClass(d) | ClassKind::NamedTuple(d) => Some(d.clone()),
            _ => None,
        };
        own(self).or_else(|| self.mro.iter().find_map(|c| own(c)))
    }

    /// Whether it is the builtin class with this name, or a subclass of it.
    fn is_named(&self, name: &str) -> bool {
        let own = |c: &Class| &*c.name == name && c.span == Span::NONE;
        own(self) || self.mro.iter().any(|c| own(c))
    }

    /// Whether its objects are tuples.
    fn is_named_tuple(&self) -> bool {
        matches!(&*self.kind.borrow(), ClassKind::NamedTuple(_))
    }
}
