//! Kernel files: loading, and building their entries.

mod entries;

pub use crate::eval::constant::ConstValue;
pub use entries::{ConstexprParam, Entry, EntryKind};

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use self::entries::{canonical, find_entries, find_functions, makes_kernels};
use crate::alternatives::Alternatives;
use crate::diagnostic::{Diagnostic, Diagnostics, Result};
use crate::eval::constant::{from_value, to_value};
use crate::eval::scope::living;
use crate::eval::{Held, Interpreter, Lint, Scope, Value, held, limits, quoted, suggest};
use crate::ir::{IRModule, with_stack};
use crate::parse::{ParsedFile, imported_modules, parse_file, span_of};
use crate::release::{self, Release};
use crate::source::{SourceMap, Span};

/// Where `import helpers` in a kernel file finds other kernel files.
pub trait Imports {
    /// The file of a module (dotted, `pkg.helpers`); `None` where there is none.
    fn read(&self, module: &str) -> Option<ModuleText>;

    /// Why a module that has a file cannot be read: the file's name and the reason. Asked as the next question after
    /// [`Imports::read`] gave nothing for the module.
    fn unreadable(&self, _module: &str) -> Option<(String, String)> {
        None
    }

    /// The package that the loaded file itself is a module of (`pkg` for `pkg/kernel.py`): where its relative imports
    /// start. Empty for a file that is in none.
    fn package(&self) -> String {
        String::new()
    }

    /// The number of multiprocessors of the GPU that the kernels are built for, where the build names it: what
    /// `torch.cuda.get_device_properties` says in kernel files.
    fn multiprocessors(&self) -> Option<u32> {
        None
    }

    /// The release of TVM that the files are written for, where the build names it; otherwise each file shows it.
    fn release(&self) -> Option<Release> {
        None
    }

    /// How TVM 0.27 writes a call of 0.26, for the message about a file that has calls of both. `function` is the range of the
    /// called function in `text`. Without an answer the message names the mnemonics of the table of instructions.
    fn rewrite_in_v27(&self, _text: &str, _function: Range<usize>) -> Option<Rewrite> {
        None
    }
}

/// The text of an imported module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleText {
    /// What messages call the file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Whether it is a package, `helpers/__init__.py`, not a module, `helpers.py`.
    pub is_package: bool,
}

/// A call, and the call that is the same in another release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The call as it is.
    pub before: String,
    /// The statements of the other release.
    pub after: String,
}

/// No other kernel files.
pub struct NoImports;

impl Imports for NoImports {
    fn read(&self, _module: &str) -> Option<ModuleText> {
        None
    }
}

/// A loaded kernel file.
///
/// ```
/// use tirx_script::{KernelFile, NoImports};
/// use tirx_source::source::SourceMap;
/// let text = "from tvm.script import tirx as T\n\nN = 4 * 64\n";
/// let file = KernelFile::load(&mut SourceMap::new(), "empty.py", text, &NoImports)?;
/// assert!(file.entries().is_empty());
/// # Ok::<(), tirx_source::Diagnostics>(())
/// ```
pub struct KernelFile {
    sources: SourceMap,
    main: ParsedFile,
    files: BTreeMap<String, ParsedFile>,
    multiprocessors: Option<u32>,
    entries: Vec<Entry>,
    /// Functions of the file, any of which may make kernels.
    functions: Vec<Entry>,
    /// How many kernels are decorated before each entry that is one.
    numbers: BTreeMap<String, usize>,
    /// Lints found so far.
    lints: RefCell<Vec<Lint>>,
    /// The names of the language that were looked up; recorded within [`KernelFile::names_looked_up`] only.
    looked_up: RefCell<Option<BTreeSet<String>>>,
    /// Alternatives of statements, tried within [`KernelFile::with_trials`] only.
    trials: RefCell<Option<Arc<dyn Alternatives>>>,
}

/// A kernel of an entry.
pub struct Built {
    /// Its name among the kernels of its entry: its key, or the name of its `def`.
    pub name: String,
    /// The kernel, as a module.
    pub module: IRModule,
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
        let release = imports.release();
        let mut main = parse_file(file, text)?;
        of_one_release(&main, text, imports)?;
        if let Some(other) = release.and_then(|release| main.name_release(release)) {
            return Err(other.into());
        }
        main.package = imports.package();
        let mut files: BTreeMap<String, ParsedFile> = BTreeMap::new();
        let imported = |parsed: &ParsedFile| -> Vec<(String, Span)> {
            let modules = imported_modules(&parsed.module, &parsed.package).into_iter();
            modules
                .map(|(module, at)| (module, span_of(parsed.file, at)))
                .collect()
        };
        let mut pending = imported(&main);
        while let Some((module, at)) = pending.pop() {
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
            if let Some(found) = imports.read(&module) {
                let file = sources.add(found.name, &*found.text);
                let mut parsed = parse_file(file, &found.text)?;
                of_one_release(&parsed, &found.text, imports)?;
                // A library of another release stays what it is.
                if let Some(release) = release {
                    parsed.name_release(release);
                }
                parsed.package = match module.rsplit_once('.') {
                    _ if found.is_package => module.clone(),
                    Some((package, _)) => package.to_string(),
                    None => String::new(),
                };
                pending.extend(imported(&parsed));
                files.insert(module, parsed);
            } else if let Some((file, why)) = imports.unreadable(&module) {
                return Err(Diagnostic::new(at, format!("cannot read `{file}`: {why}")).into());
            }
        }
        let mut loaded = KernelFile {
            sources: sources.clone(),
            main,
            files,
            multiprocessors: imports.multiprocessors(),
            entries: Vec::new(),
            functions: Vec::new(),
            numbers: BTreeMap::new(),
            lints: RefCell::default(),
            looked_up: RefCell::default(),
            trials: RefCell::default(),
        };
        let main = loaded.main.file;
        (loaded.entries, loaded.functions, loaded.numbers) = loaded.run(None, |interp, scope| {
            let found = find_entries(&scope);
            let numbers = found.iter().filter_map(|f| Some((f.name.clone(), f.number()?)));
            let numbers = numbers.collect();
            let entries: Vec<Entry> = found.into_iter().map(|f| f.describe(interp)).collect();
            Ok((entries, find_functions(&scope, main), numbers))
        })?;
        if loaded.entries.is_empty() {
            loaded.entries = loaded.makers();
        }
        Ok(loaded)
    }

    /// The entries in the order of definition: kernels, modules, and those that tuples, lists and dicts hold
    /// (`kernels[128]`). In a file without any, the functions that seem to make kernels.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The value of a module-level name of the file: `None` where there is no such name, or its value cannot be
    /// expressed as a constant.
    ///
    /// # Errors
    /// Errors of the module level.
    pub fn constant(&self, name: &str) -> Result<Option<ConstValue>, Diagnostics> {
        self.run(None, |_, scope| {
            Ok(scope.get_own(name).as_ref().and_then(from_value))
        })
    }

    /// The lints that loading and building have found so far.
    pub fn lints(&self) -> Vec<Lint> {
        self.lints.borrow().clone()
    }

    /// The names of the language (`T.cuda.cta_sync`) that what is built within `build` looks up, in this file or in those
    /// that it imports.
    pub fn names_looked_up<R>(&self, build: impl FnOnce(&KernelFile) -> R) -> (R, BTreeSet<String>) {
        *self.looked_up.borrow_mut() = Some(BTreeSet::new());
        let result = build(self);
        (result, self.looked_up.take().unwrap_or_default())
    }

    /// Tries alternatives of statements while kernels are built within `build`.
    pub fn with_trials<R>(
        &self,
        trials: Option<&Arc<dyn Alternatives>>,
        build: impl FnOnce(&KernelFile) -> R,
    ) -> R {
        *self.trials.borrow_mut() = trials.cloned();
        let result = build(self);
        self.trials.take();
        result
    }

    /// The texts, for rendering errors.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The entry of a name: one of [`KernelFile::entries`], any function of the file, or one of several kernels that a
    /// function returns, `make[forward]`.
    pub fn entry(&self, name: &str) -> Option<Entry> {
        let all = || self.entries.iter().chain(&self.functions);
        if let Some(entry) = all().find(|e| e.name == name) {
            return Some(entry.clone());
        }
        let canonical = canonical(name);
        if let Some(entry) = all().find(|e| e.name == canonical) {
            return Some(entry.clone());
        }
        let (base, _) = canonical.split_once('[')?;
        let function = self.functions.iter().find(|e| e.name == base)?;
        let mut entry = function.clone();
        entry.name = canonical;
        Some(entry)
    }

    /// Builds an entry; `None` is the only one. A kernel becomes a module with one function, `main`.
    ///
    /// # Errors
    /// An unknown entry, missing or unknown constexprs, and everything that is wrong with the kernel; an entry that
    /// gives several kernels, see [`KernelFile::build_all`].
    pub fn build(
        &self,
        entry: Option<&str>,
        constexprs: &BTreeMap<String, ConstValue>,
    ) -> Result<IRModule, Diagnostics> {
        let entry = self.pick(entry)?;
        let mut all = self.build_all(Some(&entry.name), constexprs)?;
        if all.len() > 1 {
            let names: Vec<String> = all
                .iter()
                .map(|b| format!("{}[{}]", entry.name, b.name))
                .collect();
            let message = format!("\"{}\" gives several kernels", entry.name);
            return Err(Diagnostic::new(Span::NONE, message)
                .note(entry.span, "it is defined here")
                .help(format!("name the one to build: {}", names.join(", ")))
                .into());
        }
        match all.pop() {
            Some(built) => Ok(built.module),
            None => Err(Diagnostic::new(entry.span, format!("\"{}\" gives no kernel", entry.name)).into()),
        }
    }

    /// Builds every kernel that an entry gives: one, unless it is a function that returns several. `constexprs` are the
    /// arguments of such a function.
    ///
    /// # Errors
    /// As [`KernelFile::build`].
    pub fn build_all(
        &self,
        entry: Option<&str>,
        constexprs: &BTreeMap<String, ConstValue>,
    ) -> Result<Vec<Built>, Diagnostics> {
        let entry = self.pick(entry)?;
        let (base, key) = match entry.name.split_once('[') {
            Some((base, key)) => (base, Some(key.trim_end_matches(']'))),
            None => (entry.name.as_str(), None),
        };
        if entry.kind == EntryKind::Function {
            return self.build_of_function(&entry, base, key, constexprs);
        }
        let sources = &self.sources;
        let module = self.run(self.numbers.get(&entry.name).copied(), |interp, scope| {
            let held = scope.get_own(base).map(|value| held(&value)).unwrap_or_default();
            let chosen = held.into_iter().find(|h| h.key.as_deref() == key);
            let Some(chosen) = chosen else {
                let message = format!("no entry \"{}\"", entry.name);
                return Err(Box::new(Diagnostic::new(Span::NONE, message)));
            };
            build_value(interp, sources, &entry.name, &chosen.value, constexprs)
        })?;
        let name = entry.name.clone();
        Ok(vec![Built { name, module }])
    }

    /// The kernels that a function returns; where it returns none, those that it makes.
    fn build_of_function(
        &self,
        entry: &Entry,
        function: &str,
        key: Option<&str>,
        arguments: &BTreeMap<String, ConstValue>,
    ) -> Result<Vec<Built>, Diagnostics> {
        let sources = &self.sources;
        let results = |interp: &mut Interpreter, scope: &Rc<Scope>| -> Result<Vec<Held>> {
            let before = interp.session.kernels.made.len();
            let value = interp.call_entry(scope, function, arguments, entry.span)?;
            let mut all = held(&value);
            if all.is_empty() {
                all = held(&Value::tuple(interp.session.kernels.made.split_off(before)));
            }
            if all.is_empty() {
                let why = match &value {
                    Value::Unavailable(why) => format!(": {why}"),
                    other => format!(", it returns {}", other.type_name()),
                };
                let message = format!("\"{function}\" makes no kernel{why}");
                return Err(Box::new(Diagnostic::new(entry.span, message).help(
                    "an entry is a kernel, or a function that returns one, or several in a tuple, list or dict",
                )));
            }
            Ok(all)
        };
        // A @T.prim_func is built where it is decorated, so the wanted ones must be known before.
        let wanted: Vec<(String, Option<usize>)> = self.run(None, |interp, scope| {
            let all = results(interp, &scope)?;
            let names: Vec<String> = all.iter().map(|h| h.name.clone()).collect();
            let chosen: Vec<(String, Option<usize>)> = all
                .into_iter()
                .filter(|h| key.is_none_or(|key| h.name == key || h.key.as_deref() == Some(key)))
                .map(|h| {
                    let number = match &h.value {
                        Value::Kernel(k) if !k.is_jit => Some(k.number),
                        _ => None,
                    };
                    (h.name, number)
                })
                .collect();
            if chosen.is_empty() {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let message = format!("\"{function}\" gives no kernel \"{}\"", key.unwrap_or_default());
                let help = format!("it gives {}", quoted(&names));
                return Err(Box::new(Diagnostic::new(entry.span, message).help(help)));
            }
            Ok(chosen)
        })?;
        let mut all = Vec::new();
        for (name, number) in wanted {
            let module = self.run(number, |interp, scope| {
                let chosen = results(interp, &scope)?.into_iter().find(|h| h.name == name);
                match chosen {
                    Some(h) => build_value(interp, sources, &name, &h.value, &BTreeMap::new()),
                    None => Err(Box::new(Diagnostic::new(
                        entry.span,
                        format!("\"{function}\" gives \"{name}\" in one call and not in the next"),
                    ))),
                }
            })?;
            all.push(Built { name, module });
        }
        Ok(all)
    }

    /// The functions that seem to make kernels: they decorate or specialize one, or call such a function.
    fn makers(&self) -> Vec<Entry> {
        let mut makers: Vec<&Entry> = Vec::new();
        loop {
            let known: Vec<&str> = makers.iter().map(|m| m.name.as_str()).collect();
            let defs = self
                .main
                .module
                .body
                .iter()
                .filter_map(|s| s.as_function_def_stmt());
            let more: Vec<&Entry> = defs
                .filter(|def| !known.contains(&def.name.as_str()) && makes_kernels(def, &known))
                .filter_map(|def| self.functions.iter().find(|f| f.name == def.name.as_str()))
                .collect();
            if more.is_empty() {
                break;
            }
            makers.extend(more);
        }
        let mut makers: Vec<Entry> = makers.into_iter().cloned().collect();
        makers.sort_by_key(|m| m.span.start);
        makers
    }

    fn pick(&self, entry: Option<&str>) -> Result<Entry, Diagnostics> {
        let names: Vec<&str> = self.entries.iter().map(|e| e.name.as_str()).collect();
        let start = Span::new(self.main.file, 0, 0);
        let listed = match names.is_empty() {
            true => {
                "it has no kernels: a kernel is a function decorated with @T.prim_func or @T.jit".to_string()
            }
            false => format!("its entries are {}", quoted(&names)),
        };
        match entry {
            Some(name) => self.entry(name).ok_or_else(|| {
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
                [one] => Ok(one.clone()),
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

    /// Runs the module level, then `then`, on a stack that holds the deepest allowed evaluation.
    fn run<R: Send>(
        &self,
        wanted: Option<usize>,
        then: impl FnOnce(&mut Interpreter, Rc<Scope>) -> Result<R> + Send,
    ) -> Result<R, Diagnostics> {
        let (sources, files, main) = (self.sources.clone(), self.files.clone(), &self.main);
        let multiprocessors = self.multiprocessors;
        let looked_up = self.looked_up.borrow().as_ref().map(|_| BTreeSet::new());
        let trials = self.trials.borrow().clone();
        let (result, more, found, left) = with_stack(limits::STACK, move || {
            let before = living::count();
            let mut interp = Interpreter::new(sources, files);
            interp.session.multiprocessors = multiprocessors;
            interp.session.looked_up = looked_up;
            if let Some(trials) = trials {
                interp.set_trials(&trials, main.file, main.evidence.release());
            }
            let result = interp
                .run_main(main, wanted)
                .and_then(|scope| then(&mut interp, scope))
                .map_err(Diagnostics::from);
            let (more, found) = (
                interp.session.looked_up.take(),
                std::mem::take(&mut interp.session.lints),
            );
            drop(interp);
            // What this run leaves is counted where the file is, which may be another thread.
            let left = living::count() - before;
            living::add(-left);
            (result, more, found, left)
        });
        living::add(left);
        if let (Some(all), Some(mut more)) = (&mut *self.looked_up.borrow_mut(), more) {
            all.append(&mut more);
        }
        let mut lints = self.lints.borrow_mut();
        for lint in found {
            let same = |l: &Lint| {
                l.diagnostic.span == lint.diagnostic.span && l.diagnostic.message == lint.diagnostic.message
            };
            if !lints.iter().any(same) {
                lints.push(lint);
            }
        }
        result
    }
}

/// Kernel files that one may import, directly or not.
const MAX_FILES: usize = 256;

/// The error of a file that is written for two releases of TVM, with what each of the two uses is in the other one.
fn of_one_release(parsed: &ParsedFile, text: &str, imports: &dyn Imports) -> Result<(), Diagnostics> {
    let Some((old, new)) = parsed.evidence.both() else {
        return Ok(());
    };
    let exact = imports.rewrite_in_v27(text, old.clone());
    let exact = exact.map(|call| format!("0.27 has `{}` for `{}`", call.after, call.before));
    let in_v27 = exact.or_else(|| release::names_in_v27(&text[old]));
    let in_v26 = release::name_in_v26(&text[new]);
    let advice: Vec<String> = in_v27.into_iter().chain(in_v26).collect();
    match parsed.evidence.mixed(parsed.file, &advice) {
        Some(mixed) => Err(mixed.into()),
        None => Ok(()),
    }
}

/// Builds a kernel or a module.
fn build_value(
    interp: &mut Interpreter,
    sources: &SourceMap,
    name: &str,
    value: &Value,
    constexprs: &BTreeMap<String, ConstValue>,
) -> Result<IRModule> {
    let given: Vec<(Rc<str>, Value)> = constexprs
        .iter()
        .map(|(n, v)| (Rc::from(n.as_str()), to_value(v)))
        .collect();
    match value {
        Value::Kernel(kernel) => {
            let func = interp.built_kernel(kernel, &given)?;
            Ok(IRModule::single("main", func, sources.clone()))
        }
        other => {
            if let Some((n, _)) = given.first() {
                let message = format!("IR module \"{name}\" has no constexpr \"{n}\"");
                return Err(Box::new(Diagnostic::new(Span::NONE, message)));
            }
            interp.build_module_value(other).unwrap_or_else(|| {
                let message = format!("\"{name}\" is no kernel");
                Err(Box::new(Diagnostic::new(Span::NONE, message)))
            })
        }
    }
}
