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
//! | `session`, `frame` | the interpreter's state: of the file, and of a position in it |
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
mod frame;
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
mod session;
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

use std::collections::BTreeMap;
use std::rc::Rc;

use tirx_python::TextRange;

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
use crate::ir::{Attrs, IRModule};
use crate::source::{FileId, SourceMap, Span};
use builder::KernelBuilder;
use frame::EvalFrame;
use session::Session;

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

/// The exceptions of Python.
#[derive(Default)]
struct Exceptions {
    /// The message of the last error, and how it was raised.
    raised: Option<(String, Raised)>,
    /// The exceptions that `except` blocks handle, innermost last.
    handling: Vec<Value>,
}

/// The state of one evaluation. Builtins get it to emit statements, call values back and see the function that
/// is being built.
pub struct Interpreter {
    /// The file: texts, modules, kernels made so far.
    pub(crate) session: Session,
    /// How much is used of what a file may use.
    limits: limits::Used,
    /// The position in the text.
    frame: EvalFrame,
    exceptions: Exceptions,
    /// The function being built.
    kernel: KernelBuilder,
}

impl Interpreter {
    /// An evaluation over parsed files; `files` are those that may be imported.
    pub(crate) fn new(sources: SourceMap, files: BTreeMap<String, ParsedFile>) -> Interpreter {
        Interpreter {
            session: Session::new(sources, files),
            limits: limits::Used::default(),
            frame: EvalFrame::new(),
            exceptions: Exceptions::default(),
            kernel: KernelBuilder::default(),
        }
    }

    /// Runs the statements of the main file and gives its names. Where `wanted` is the number of a `@T.prim_func`, that
    /// kernel is built at its decorator.
    pub(crate) fn run_main(&mut self, file: &ParsedFile, wanted: Option<usize>) -> Result<Rc<Scope>> {
        self.session.kernels.wanted = wanted;
        self.frame.file = file.file;
        self.session.modules.insert(file.file, file.module.clone());
        self.session.packages.insert(file.file, file.package.clone());
        self.session
            .releases
            .extend(file.evidence.release().map(|release| (file.file, release)));
        self.agree_on_release(file.file);
        self.run_module(&file.module.body)?;
        Ok(self.frame.scope.clone())
    }

    /// Files without a use that only one release has are of the release of the files beside them, where these agree.
    fn agree_on_release(&mut self, main: FileId) {
        // Not those of alternatives that are tried for statements, which have releases of their own.
        let files = self.session.files.values().map(|f| f.file).chain([main]);
        let files: Vec<FileId> = files.collect();
        let mut shown = files
            .iter()
            .filter_map(|file| self.session.releases.get(file))
            .copied();
        let Some(release) = shown.next().filter(|first| shown.all(|other| other == *first)) else {
            return;
        };
        for file in files {
            let text = self
                .session
                .sources
                .file(file)
                .map_or("", |file| file.text.as_str());
            if !super::release::has_both(text) {
                self.session.releases.entry(file).or_insert(release);
            }
        }
    }

    /// The release of TVM that the code that runs is written for; `None` where it is valid in both.
    pub(crate) fn release(&self) -> Option<Release> {
        // The library's own modules are written for 0.26.
        match self.frame.file >= super::parse::LIBRARY_FILE {
            true => Some(Release::V26),
            false => self.session.releases.get(&self.frame.file).copied(),
        }
    }

    /// Whether nothing says for which release the code that runs is written. Printed IR has operations of both.
    pub(crate) fn may_be_of_either(&self) -> bool {
        let text = self
            .session
            .sources
            .file(self.frame.file)
            .map_or("", |file| file.text.as_str());
        self.release().is_none() && !super::release::has_both(text)
    }

    /// Whether the code that runs is printed IR.
    pub(crate) fn is_printed(&self) -> bool {
        let text = self
            .session
            .sources
            .file(self.frame.file)
            .map_or("", |file| file.text.as_str());
        super::release::is_printed(text)
    }

    /// Whether a statement of a kernel runs, not Python code around it.
    pub(crate) fn is_kernel_code(&self) -> bool {
        self.frame.mode == Mode::Kernel
    }

    /// Builds an `@I.ir_module`; `None` for another value.
    pub(crate) fn build_module_value(&mut self, value: &Value) -> Option<Result<IRModule>> {
        let Value::Object(o) = value else { return None };
        let o = o.clone();
        let sources = self.session.sources.clone();
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
        self.session.sources.text(self.span_at(range)).to_string()
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
