//! What the compiler says of a kernel file: its messages, the names of its kernels with their types, and the chosen variants of
//! its tile primitives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tirx_build::compile::{FileImports, Loaded, Settings, compile};
use tirx_build::manifest::{Manifest, Text};
use tirx_core::diagnostic::Message;
use tirx_core::ir::{Buffer, IRModule, Stmt, StmtKind, Var, Visitor};
use tirx_core::script::{ConstValue, Entry, Imports, ModuleText, print_stmt};
use tirx_core::transform::lower_tirx::{Outcome, explain};
use tirx_core::transform::{Options, PassContext, Target};

/// A name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The name.
    pub(super) name: String,
    /// Its declaration as printed IR: dtype, shape, scope, layout.
    pub(super) declaration: String,
    /// The kernel, and the line of its definition, from 1.
    pub(super) kernel: String,
    pub(super) line: u32,
}

/// What a tile primitive becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Its line, from 1.
    pub(super) line: u32,
    /// The variant, and the partition.
    pub(super) label: String,
    /// The other variants, each with its reason.
    pub(super) others: String,
}

/// What an allocation or a view comes to: its shape with the specialization's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Its line, from 1.
    pub(super) line: u32,
    /// The extents: `32, 64`.
    pub(super) extents: String,
    /// `s: float16[32, 64]`.
    pub(super) label: String,
}

/// What is known of a file.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    pub(super) messages: Vec<Message>,
    pub(super) names: Vec<Known>,
    pub(super) choices: Vec<Choice>,
    pub(super) shapes: Vec<Shape>,
}

/// Files that are open in the editor before those on disk.
struct Open<'a> {
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

    fn package(&self) -> String {
        self.disk.package()
    }
}

/// How the manifest above a file builds an entry of it: the values of the first specialization, and the target.
struct Wanted {
    entry: String,
    values: BTreeMap<String, ConstValue>,
    target: String,
}

/// Folders above a file that are looked into for a manifest.
const ABOVE: usize = 5;

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
            target: kernel.targets.primary(),
        });
        return of_file.collect();
    }
    Vec::new()
}

/// Compiles a text in memory, as far as it goes.
pub(super) fn analyze(file: &Path, text: &str, open: &BTreeMap<PathBuf, String>) -> Analysis {
    let folder = file.parent().unwrap_or(Path::new(""));
    let imports = Open {
        disk: FileImports::new(folder, "").with_libraries_of(&crate::dependencies::environment()),
        folder,
        open,
    };
    let shown = file.file_name().unwrap_or_default().to_string_lossy();
    let mut analysis = Analysis::default();
    let loaded = match Loaded::new(&shown, text, &imports) {
        Ok(loaded) => loaded,
        Err(error) => {
            analysis.messages = error.messages().to_vec();
            return analysis;
        }
    };
    let wanted = wanted(file);
    for entry in loaded.file().entries() {
        analyze_entry(&loaded, entry, &wanted, &mut analysis);
    }
    for message in loaded.warnings() {
        analysis.add(message);
    }
    analysis
}

fn analyze_entry(loaded: &Loaded, entry: &Entry, wanted: &[Wanted], analysis: &mut Analysis) {
    let wanted = wanted.iter().find(|wanted| wanted.entry == entry.name);
    let values: BTreeMap<String, ConstValue> = wanted
        .map(|wanted| &wanted.values)
        .into_iter()
        .flatten()
        .filter(|(name, _)| entry.specializable().any(|known| known == *name))
        .map(|(name, value)| (name.clone(), entry.value_of(name, value)))
        .collect();
    // Without values for its parameters there is nothing to build.
    if entry
        .constexprs
        .iter()
        .any(|p| p.required && !values.contains_key(&p.name))
    {
        return;
    }
    let target = wanted.map_or("sm_90a", |wanted| wanted.target.as_str());
    let built = match loaded.build_all(Some(&entry.name), &values) {
        Ok(built) => built,
        Err(error) => {
            error
                .messages()
                .iter()
                .for_each(|message| analysis.add(message.clone()));
            return;
        }
    };
    for built in built {
        collect_names(&built.module, &entry.name, analysis);
        let context = PassContext::new(Target::cuda(target), &Options::default());
        for decision in explain(&built.module, &context) {
            let Some(at) = built.module.sources.locate(decision.span) else {
                continue;
            };
            let chosen = decision
                .rows
                .iter()
                .find(|(_, outcome)| matches!(outcome, Outcome::Chosen));
            let (Some((name, _)), 1) = (chosen, at_file(&built.module, decision.span)) else {
                continue;
            };
            let partition = decision
                .partition
                .map_or(String::new(), |[rounds, threads, vector]| {
                    format!(": {rounds} rounds x {threads} threads x {vector} elements")
                });
            let others = decision.rows.iter().filter_map(|(name, outcome)| match outcome {
                Outcome::Declined(reason) => Some(format!("{name} declines: {reason}")),
                _ => None,
            });
            let choice = Choice {
                line: at.line,
                label: format!("{name}{partition}"),
                others: others.collect::<Vec<_>>().join("\n"),
            };
            if !analysis.choices.contains(&choice) {
                analysis.choices.push(choice);
            }
        }
        match compile(built.module, &Settings::new(target)) {
            Ok(compiled) => compiled
                .warnings
                .into_iter()
                .for_each(|message| analysis.add(message)),
            Err(error) => error
                .messages()
                .iter()
                .for_each(|message| analysis.add(message.clone())),
        }
    }
}

/// The number of a span's file: the kernel file itself is the first.
fn at_file(module: &IRModule, span: tirx_core::source::Span) -> usize {
    let own = module.sources.files().next().map(|file| file.name.clone());
    let at = module.sources.locate(span);
    usize::from(at.is_some_and(|at| own.is_some_and(|own| *own == *at.file)))
}

fn collect_names(module: &IRModule, kernel: &str, analysis: &mut Analysis) {
    struct Names<'a> {
        found: &'a mut Vec<Known>,
        shapes: &'a mut Vec<Shape>,
        module: &'a IRModule,
        kernel: &'a str,
        line: u32,
    }
    impl Names<'_> {
        fn add(&mut self, name: &str, declaration: String) {
            let known = Known {
                name: name.to_string(),
                declaration,
                kernel: self.kernel.to_string(),
                line: self.line,
            };
            if !self.found.contains(&known) {
                self.found.push(known);
            }
        }

        fn buffer(&mut self, buffer: &Buffer, kind: StmtKind) {
            let text = print_stmt(&Stmt::new(kind, tirx_core::source::Span::NONE));
            self.add(&buffer.name, text.trim().to_string());
        }

        /// Where the extents are numbers.
        fn shape(&mut self, buffer: &Buffer, stmt: &Stmt) {
            let extents: Option<Vec<String>> = buffer
                .shape
                .iter()
                .map(|extent| extent.as_int().map(|n| n.to_string()))
                .collect();
            let at = self.module.sources.locate(stmt.span);
            if let (Some(extents), Some(at), 1) = (extents, at, at_file(self.module, stmt.span)) {
                let extents = extents.join(", ");
                let shape = Shape {
                    line: at.line,
                    label: format!("{}: {}[{extents}]", buffer.name, buffer.dtype),
                    extents,
                };
                if !self.shapes.contains(&shape) {
                    self.shapes.push(shape);
                }
            }
        }
    }
    impl Visitor for Names<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => {
                    self.buffer(buffer, stmt.kind.clone());
                    self.shape(buffer, stmt);
                }
                _ => {}
            }
            self.walk_stmt(stmt);
        }

        fn visit_var_def(&mut self, var: &Var) {
            if !var.dtype().is_handle() {
                self.add(var.name(), format!("{}: {}", var.name(), var.dtype()));
            }
        }
    }
    for (_, func) in &module.functions {
        let line = module.sources.locate(func.span).map_or(0, |at| at.line);
        let mut names = Names {
            found: &mut analysis.names,
            shapes: &mut analysis.shapes,
            module,
            kernel,
            line,
        };
        for param in &func.params {
            match func.buffer_of(param) {
                Some(buffer) => names.buffer(buffer, StmtKind::DeclBuffer(buffer.clone())),
                None => names.visit_var_def(param),
            }
        }
        names.visit_stmt(&func.body);
    }
}

impl Analysis {
    fn add(&mut self, message: Message) {
        if !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    /// What is known of a name at a line, from 1: in the kernel whose definition is the last before.
    pub(super) fn known(&self, name: &str, line: u32) -> Vec<&Known> {
        let of_name = || self.names.iter().filter(|known| known.name == name);
        let nearest = of_name()
            .filter(|known| known.line <= line)
            .map(|known| known.line)
            .max();
        of_name().filter(|known| Some(known.line) == nearest).collect()
    }
}
