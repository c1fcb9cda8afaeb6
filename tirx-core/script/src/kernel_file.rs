//! Kernel files: loading, their entries, building one.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::eval::{Interpreter, Kernel, ParameterRole, Scope, Value, limits, quoted, suggest};
use super::parse::{ParsedFile, imported_modules, parse_file};
use crate::diagnostic::{Diagnostic, Diagnostics, Result};
use crate::ir::IRModule;
use crate::source::{SourceMap, Span};

/// Where `import helpers` in a kernel file finds other kernel files.
pub trait Imports {
    /// The file name and text of a module (dotted, `pkg.helpers`); `None` where there is none.
    fn read(&self, module: &str) -> Option<(String, String)>;
}

/// No other kernel files.
pub struct NoImports;

impl Imports for NoImports {
    fn read(&self, _module: &str) -> Option<(String, String)> {
        None
    }
}

/// A value for a `T.constexpr` parameter.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum ConstValue {
    None,
    Bool(bool),
    /// What an int64 or a uint64 holds.
    Int(i128),
    Float(f64),
    Str(String),
    List(Vec<ConstValue>),
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// `@T.prim_func`, or a `@T.jit` that the file has specialized.
    PrimFunc,
    /// `@T.jit`.
    Jit,
    /// `@I.ir_module`.
    Module,
}

/// A `T.constexpr` parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstexprParam {
    /// Its name.
    pub name: String,
    /// Its default, where it has one that can be said here.
    pub default: Option<ConstValue>,
    /// Whether a value must be given.
    pub required: bool,
}

/// Something in a kernel file that can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name in the file.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its compile-time parameters.
    pub constexprs: Vec<ConstexprParam>,
    /// Its `T.Optional` parameters: the value `None` leaves one out of what is built, and no other value is possible.
    pub optionals: Vec<String>,
    /// Its definition.
    pub span: Span,
}

impl Entry {
    /// The parameters that a specialization may name, those with `T.constexpr` first.
    pub fn specializable(&self) -> impl Iterator<Item = &str> {
        let constexprs = self.constexprs.iter().map(|p| p.name.as_str());
        constexprs.chain(self.optionals.iter().map(String::as_str))
    }

    /// What a specialization says that gives a string where a value that is no string is meant: `"None"` for a
    /// `T.Optional` parameter, in formats that have no null.
    pub fn value_of(&self, name: &str, value: &ConstValue) -> ConstValue {
        match value {
            ConstValue::Str(text) if text == "None" && self.optionals.iter().any(|o| o == name) => {
                ConstValue::None
            }
            other => other.clone(),
        }
    }
}

/// A loaded kernel file.
///
/// ```
/// use tirx_core::{script::{KernelFile, NoImports}, source::SourceMap};
/// let text = "from tvm.script import tirx as T\n\nN = 4 * 64\n";
/// let file = KernelFile::load(&mut SourceMap::new(), "empty.py", text, &NoImports)?;
/// assert!(file.entries().is_empty());
/// # Ok::<(), tirx_core::Diagnostics>(())
/// ```
pub struct KernelFile {
    sources: SourceMap,
    main: ParsedFile,
    files: BTreeMap<String, ParsedFile>,
    entries: Vec<Entry>,
    /// How many kernels are decorated before each entry that is one.
    numbers: BTreeMap<String, usize>,
}

impl KernelFile {
    /// Parses a kernel file and everything it imports, and runs its module level.
    ///
    /// # Errors
    /// Syntax errors, and whatever the module level raises. Spans point into `sources`, to which the texts are added.
    pub fn load(
        sources: &mut SourceMap,
        name: &str,
        text: &str,
        imports: &dyn Imports,
    ) -> Result<KernelFile, Diagnostics> {
        let file = sources.add(name, text);
        let main = parse_file(file, text)?;
        let mut files: BTreeMap<String, ParsedFile> = BTreeMap::new();
        let mut pending: Vec<String> = imported_modules(&main.module).into_iter().map(|m| m.0).collect();
        while let Some(module) = pending.pop() {
            if files.contains_key(&module) {
                continue;
            }
            if files.len() >= MAX_FILES {
                let d = Diagnostic::new(
                    Span::NONE,
                    format!("{name} imports more than {MAX_FILES} kernel files"),
                );
                return Err(d.into());
            }
            if let Some((file_name, text)) = imports.read(&module) {
                let file = sources.add(file_name, &*text);
                let parsed = parse_file(file, &text)?;
                pending.extend(imported_modules(&parsed.module).into_iter().map(|m| m.0));
                files.insert(module, parsed);
            }
        }
        let mut loaded = KernelFile {
            sources: sources.clone(),
            main,
            files,
            entries: Vec::new(),
            numbers: BTreeMap::new(),
        };
        (loaded.entries, loaded.numbers) = loaded.run(None, |interp, scope| {
            let found = find_entries(&scope);
            let numbers = found.iter().filter_map(|f| Some((f.name.clone(), f.number()?)));
            let numbers = numbers.collect();
            Ok((found.into_iter().map(|f| f.describe(interp)).collect(), numbers))
        })?;
        Ok(loaded)
    }

    /// What can be built, in the order of definition.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The texts, for rendering errors.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Builds an entry; `None` is the only one. A kernel becomes a module with one function, `main`.
    ///
    /// # Errors
    /// An unknown entry, missing or unknown constexprs, and everything that is wrong with the kernel.
    pub fn build(
        &self,
        entry: Option<&str>,
        constexprs: &BTreeMap<String, ConstValue>,
    ) -> Result<IRModule, Diagnostics> {
        let name = self.pick(entry)?.name.clone();
        self.run(self.numbers.get(&name).copied(), |interp, scope| {
            let Some(value) = scope.get_own(&name) else {
                return Err(Box::new(Diagnostic::new(
                    Span::NONE,
                    format!("no entry \"{name}\""),
                )));
            };
            let given: Vec<(Rc<str>, Value)> = constexprs
                .iter()
                .map(|(n, v)| (Rc::from(n.as_str()), to_value(v)))
                .collect();
            match &value {
                Value::Kernel(kernel) => {
                    let func = interp.built_kernel(kernel, &given)?;
                    Ok(IRModule::single("main", func, self.sources.clone()))
                }
                other => {
                    if let Some((n, _)) = given.first() {
                        let message = format!("IR module \"{name}\" has no constexpr \"{n}\"");
                        return Err(Box::new(Diagnostic::new(Span::NONE, message)));
                    }
                    match interp.build_module_value(other) {
                        Some(result) => result,
                        None => Err(Box::new(Diagnostic::new(
                            Span::NONE,
                            format!("\"{name}\" is no kernel"),
                        ))),
                    }
                }
            }
        })
    }

    fn pick(&self, entry: Option<&str>) -> Result<&Entry, Diagnostics> {
        let names: Vec<&str> = self.entries.iter().map(|e| e.name.as_str()).collect();
        let start = Span::new(self.main.file, 0, 0);
        let listed = match names.is_empty() {
            true => {
                "it has no kernels: a kernel is a function decorated with @T.prim_func or @T.jit".to_string()
            }
            false => format!("its entries are {}", quoted(&names)),
        };
        match entry {
            Some(name) => self.entries.iter().find(|e| e.name == name).ok_or_else(|| {
                let mut d = Diagnostic::new(
                    Span::NONE,
                    format!("{} has no entry \"{name}\"", self.file_name()),
                );
                d = d.note(Span::NONE, listed);
                match suggest(name, names.iter().copied()) {
                    Some(s) => d.help(format!("did you mean \"{s}\"?")).into(),
                    None => d.into(),
                }
            }),
            None => match &self.entries[..] {
                [one] => Ok(one),
                [] => Err(
                    Diagnostic::new(start, format!("{} has no kernels", self.file_name()))
                        .help("decorate a function with @T.prim_func or @T.jit")
                        .into(),
                ),
                _ => Err(Diagnostic::new(
                    Span::NONE,
                    format!("{} has more than one entry", self.file_name()),
                )
                .note(Span::NONE, listed)
                .help("name the one to build")
                .into()),
            },
        }
    }

    fn file_name(&self) -> &str {
        self.sources.file(self.main.file).map_or("the file", |f| &f.name)
    }

    /// Runs the module level, then `then`, on a stack that holds the deepest allowed evaluation. (Address space, not
    /// memory: pages that are not touched cost nothing. The parser's own dependency `stacker` switches stacks.)
    fn run<R>(
        &self,
        wanted: Option<usize>,
        then: impl FnOnce(&mut Interpreter, Rc<Scope>) -> Result<R>,
    ) -> Result<R, Diagnostics> {
        stacker::grow(limits::STACK, || {
            let mut interp = Interpreter::new(self.sources.clone(), self.files.clone());
            let scope = interp.run_main(&self.main, wanted)?;
            then(&mut interp, scope).map_err(Diagnostics::from)
        })
    }
}

/// Kernel files that one may import, directly or not.
const MAX_FILES: usize = 256;

struct Found {
    name: String,
    value: Value,
    span: Span,
}

/// The kernels and modules among the names of a file, in order of definition; of several names of one kernel the
/// one it was defined with.
fn find_entries(scope: &Rc<Scope>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (name, value) in scope.vars.borrow().iter() {
        let span = match value {
            Value::Kernel(k) => k.code.span,
            other => match Interpreter::module_span(other) {
                Some(span) => span,
                None => continue,
            },
        };
        found.push(Found {
            name: name.to_string(),
            value: value.clone(),
            span,
        });
    }
    let own_name = |f: &Found| matches!(&f.value, Value::Kernel(k) if *k.name == *f.name);
    found.sort_by(|a, b| {
        let key = |f: &Found| (f.span.file, f.span.start, !own_name(f));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let mut unique: Vec<Found> = Vec::new();
    for f in found {
        let known = unique.iter().any(|u| match (&u.value, &f.value) {
            (Value::Kernel(a), Value::Kernel(b)) => Rc::ptr_eq(a, b),
            (Value::Object(a), Value::Object(b)) => Rc::ptr_eq(a, b),
            _ => false,
        });
        if !known {
            unique.push(f);
        }
    }
    unique
}

impl Found {
    fn number(&self) -> Option<usize> {
        match &self.value {
            Value::Kernel(k) => Some(k.number),
            _ => None,
        }
    }

    fn describe(self, interp: &mut Interpreter) -> Entry {
        let mut entry = Entry {
            name: self.name,
            kind: EntryKind::Module,
            constexprs: Vec::new(),
            optionals: Vec::new(),
            span: self.span,
        };
        if let Value::Kernel(kernel) = &self.value {
            describe_kernel(interp, kernel, &mut entry);
        }
        entry
    }
}

fn describe_kernel(interp: &mut Interpreter, kernel: &Rc<Kernel>, entry: &mut Entry) {
    let (mut constexprs, mut optionals) = (Vec::new(), Vec::new());
    for (name, role, default, _) in interp.kernel_parameters(kernel) {
        let given = kernel
            .constexprs
            .iter()
            .find(|c| c.0 == name)
            .map(|c| c.1.clone());
        if role == ParameterRole::Constexpr {
            let default = given.or(default);
            constexprs.push(ConstexprParam {
                name: name.to_string(),
                required: default.is_none(),
                default: default.as_ref().and_then(from_value),
            });
        } else if role == ParameterRole::Optional && given.is_none() {
            optionals.push(name.to_string());
        }
    }
    let specialized = !kernel.constexprs.is_empty() && constexprs.iter().all(|c| !c.required);
    entry.kind = EntryKind::PrimFunc;
    if kernel.is_jit && !specialized {
        entry.kind = EntryKind::Jit;
        entry.constexprs = constexprs;
        entry.optionals = optionals;
    }
}

fn to_value(value: &ConstValue) -> Value {
    match value {
        ConstValue::None => Value::None,
        ConstValue::Bool(v) => Value::Bool(*v),
        ConstValue::Int(v) => Value::Int(*v),
        ConstValue::Float(v) => Value::Float(*v),
        ConstValue::Str(v) => Value::str(v.as_str()),
        ConstValue::List(items) => Value::tuple(items.iter().map(to_value).collect()),
    }
}

fn from_value(value: &Value) -> Option<ConstValue> {
    Some(match value {
        Value::None => ConstValue::None,
        Value::Bool(v) => ConstValue::Bool(*v),
        Value::Int(v) => ConstValue::Int(*v),
        Value::Float(v) => ConstValue::Float(*v),
        Value::Str(v) => ConstValue::Str(v.to_string()),
        Value::DType(d) => ConstValue::Str(d.to_string()),
        other => ConstValue::List(other.as_items()?.iter().map(from_value).collect::<Option<_>>()?),
    })
}
