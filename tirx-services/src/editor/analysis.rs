//! What the compiler says of a kernel file: its messages, the names of its kernels with their types, and the chosen variants of
//! its tile primitives.

use std::collections::BTreeMap;

use tirx_core::diagnostic::Message;
use tirx_core::ir::{Buffer, IRModule, Stmt, StmtKind, Var, Visitor};
use tirx_core::script::{ConstValue, Entry, Imports, print_stmt};
use tirx_core::transform::lower_tirx::Outcome;

use crate::kernel::{Loaded, gpu_named, judge_with};

/// A name of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The name.
    pub name: String,
    /// Its declaration as printed IR: dtype, shape, scope, layout.
    pub declaration: String,
    /// The kernel.
    pub kernel: String,
    /// The line of its definition, from 1.
    pub line: u32,
}

/// What a tile primitive becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its line, from 1.
    pub line: u32,
    /// The variant, and the partition.
    pub label: String,
    /// The other variants, each with its reason.
    pub others: String,
}

/// What an allocation or a view comes to: its shape with the specialization's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its line, from 1.
    pub line: u32,
    /// The extents: `32, 64`.
    pub extents: String,
    /// `s: float16[32, 64]`.
    pub label: String,
}

/// An entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryNeeds {
    /// Its name.
    pub name: String,
    /// Its compile-time parameters that have no value: it was not built if there are any.
    pub missing: Vec<String>,
}

/// What is known of a file.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Errors and warnings.
    pub messages: Vec<Message>,
    /// The entries.
    pub entries: Vec<EntryNeeds>,
    /// The names of its kernels.
    pub names: Vec<Known>,
    /// The variants of its tile primitives.
    pub choices: Vec<Choice>,
    /// The shapes of its buffers.
    pub shapes: Vec<Shape>,
}

/// How an entry of a file is built: the values of its compile-time parameters, and the GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The entry.
    pub entry: String,
    /// Values of its compile-time parameters.
    pub values: BTreeMap<String, ConstValue>,
    /// The architecture: `sm_90a`.
    pub target: String,
}

/// Compiles a text in memory, as far as it goes. An entry that `wanted` does not name is built without values for `target`;
/// without a target, for the first GPU that has what it uses.
pub fn analyze(
    name: &str,
    text: &str,
    imports: &dyn Imports,
    wanted: &[Wanted],
    target: Option<&str>,
) -> Analysis {
    let mut analysis = Analysis::default();
    let loaded = match Loaded::new(name, text, imports) {
        Ok(loaded) => loaded,
        Err(messages) => {
            analysis.messages = messages;
            return analysis;
        }
    };
    for entry in loaded.file().entries() {
        analyze_entry(&loaded, entry, wanted, target, &mut analysis);
    }
    for message in loaded.warnings() {
        analysis.add(message);
    }
    analysis
}

fn analyze_entry(
    loaded: &Loaded,
    entry: &Entry,
    wanted: &[Wanted],
    target: Option<&str>,
    analysis: &mut Analysis,
) {
    let wanted = wanted.iter().find(|wanted| wanted.entry == entry.name);
    let values: BTreeMap<String, ConstValue> = wanted
        .map(|wanted| &wanted.values)
        .into_iter()
        .flatten()
        .filter(|(name, _)| entry.specializable().any(|known| known == *name))
        .map(|(name, value)| (name.clone(), entry.value_of(name, value)))
        .collect();
    let missing = entry.constexprs.iter();
    let missing = missing.filter(|p| p.required && !values.contains_key(&p.name));
    let missing: Vec<String> = missing.map(|p| p.name.clone()).collect();
    // Without values for its parameters there is nothing to build.
    let is_built = missing.is_empty();
    analysis.entries.push(EntryNeeds {
        name: entry.name.clone(),
        missing,
    });
    if !is_built {
        return;
    }
    let named = wanted.map(|wanted| wanted.target.as_str()).or(target);
    let built = named
        .map(gpu_named)
        .transpose()
        .and_then(|gpu| Ok((gpu, loaded.build_all(&entry.name, &values)?)));
    let (named, built) = match built {
        Ok(built) => built,
        Err(messages) => {
            messages.into_iter().for_each(|message| analysis.add(message));
            return;
        }
    };
    for built in built {
        collect_names(&built.module, &entry.name, analysis);
        let mut decisions = Vec::new();
        let judged = judge_with(built.module.clone(), named, &mut decisions);
        for decision in decisions {
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
        match judged {
            Ok(judged) => {
                let messages = judged.warnings.into_iter().chain(judged.untyped);
                messages.for_each(|message| analysis.add(message));
            }
            Err(messages) => messages.into_iter().for_each(|message| analysis.add(message)),
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
    pub fn known(&self, name: &str, line: u32) -> Vec<&Known> {
        let of_name = || self.names.iter().filter(|known| known.name == name);
        let nearest = of_name()
            .filter(|known| known.line <= line)
            .map(|known| known.line)
            .max();
        of_name().filter(|known| Some(known.line) == nearest).collect()
    }
}
