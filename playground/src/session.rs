//! What is asked about a kernel file, and the answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tirx_core::ir::{Buffer, Gpu, IRModule, Stmt, StmtKind, Visitor};
use tirx_core::script::{ConstValue, Entry, Imports, ModuleText, Release};
use tirx_core::transform::pass_names;
use tirx_expect::expressions;
use tirx_services::data::Said;
use tirx_services::editor::{self, Document, Repair, Wanted};
use tirx_services::kernel::{Loaded, Result, gpu_named};
use tirx_services::layout;
use tirx_services::simulation;
pub use tirx_services::simulation::Report;
use tirx_services::texts::{self, Cuda, Pass};
use tirx_services::tiles::{Explained, explained};

/// A file and how it is compiled.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Source {
    /// The file's name in messages.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The GPU: `sm_90a`.
    pub arch: String,
    /// The TVM release, `0.26` or `0.27`; found from the text if it is empty.
    pub release: String,
    /// Other files that it may import, by their names.
    pub files: BTreeMap<String, String>,
    /// The kernel that texts are of; the first without one.
    pub kernel: String,
}

impl Source {
    /// Whether another question is about the same text for the same GPU, whichever kernel it selects.
    fn is_read_as(&self, other: &Source) -> bool {
        (&self.name, &self.text, &self.arch, &self.release, &self.files)
            == (
                &other.name,
                &other.text,
                &other.arch,
                &other.release,
                &other.files,
            )
    }
}

impl Imports for Source {
    fn read(&self, module: &str) -> Option<ModuleText> {
        let path = module.replace('.', "/");
        let found = |file: String, is_package: bool| {
            let text = self.files.get(&file)?.clone();
            Some(ModuleText {
                name: file,
                text,
                is_package,
            })
        };
        found(format!("{path}.py"), false).or_else(|| found(format!("{path}/__init__.py"), true))
    }

    fn release(&self) -> Option<Release> {
        Release::named(&self.release)
    }
}

/// How runs are made.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Runs {
    /// The first schedule.
    pub seed: Option<u64>,
    /// Schedules for each run; 1 if it is 0.
    pub schedules: u64,
    /// Every order of synchronizing operations, in so many runs at most.
    pub all_orders: Option<u64>,
    /// Whether signed overflow is an error.
    pub check_overflow: bool,
    /// Whether races are left unfound, for a faster run.
    pub no_race_check: bool,
    /// Branches and loop iterations of one block.
    pub step_limit: Option<u64>,
    /// Whether instructions and memory transactions are counted.
    pub counters: bool,
    /// The linear index of the block whose timeline is recorded.
    pub timeline: Option<u64>,
    /// The only kernel that is run.
    pub kernel: Option<String>,
    /// Elements of each tensor that are shown.
    pub elements: usize,
}

/// A kernel of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Compile-time parameters that have no value.
    pub missing: Vec<String>,
}

/// The compiler's messages about a file.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// For the editor: messages with notes and helps in their text.
    pub diagnostics: Vec<lsp::Diagnostic>,
    /// Edits that helps ask for.
    pub repairs: Vec<Repair>,
    /// Texts at the ends of lines.
    pub hints: Vec<lsp::InlayHint>,
    /// The same messages in their parts.
    pub messages: Vec<Said>,
    /// The file's kernels.
    pub kernels: Vec<Kernel>,
}

pub use tirx_services::lsp;

/// An answer, or the errors of the kernel.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<T> {
    /// The answer.
    pub value: Option<T>,
    /// Errors.
    pub errors: Vec<Said>,
}

/// A layout of a kernel's buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayoutPicture {
    /// `s: float16[32, 64]`.
    pub label: String,
    /// `shared`, `local`, …
    pub scope: String,
    /// The line of its declaration, from 1.
    pub line: Option<u32>,
    /// The layout as printed IR.
    pub layout: String,
    /// The axes that an element has a place on.
    pub axes: Vec<String>,
    /// Ways of bank conflicts of a warp along a row and along a column, for buffers in memory.
    pub conflicts: Option<[usize; 2]>,
    /// The picture.
    pub svg: String,
    /// Rows that the picture leaves out.
    pub cut: bool,
}

/// One open file.
#[derive(Debug, Default)]
pub struct Session {
    document: Document,
    /// The source that was checked last, and the values that its `# sim:` lines give: the other questions are about it too.
    checked: Option<(Source, Vec<Wanted>)>,
}

/// A picture shows so many elements at most.
const MAX_PICTURED: i64 = 4096;

/// The values of compile-time parameters that the file's `# sim:` lines give, and the GPUs; errors of these lines come with
/// the runs.
fn wanted(source: &Source) -> Vec<Wanted> {
    let selected = expressions::selected(&source.name, &source.text, source).unwrap_or_default();
    let wanted = selected.into_iter().map(|run| Wanted {
        target: match run.archs.is_empty() || run.archs.contains(&source.arch) {
            true => source.arch.clone(),
            false => run.archs[0].clone(),
        },
        entry: run.kernel,
        values: run.values,
    });
    wanted.collect()
}

/// The values of an entry's compile-time parameters.
fn values(wanted: &[Wanted], entry: &Entry) -> BTreeMap<String, ConstValue> {
    let wanted = wanted.iter().find(|wanted| wanted.entry == entry.name);
    let all = wanted.into_iter().flat_map(|wanted| &wanted.values);
    all.map(|(name, value)| (name.clone(), entry.value_of(name, value)))
        .collect()
}

impl Session {
    /// A session without a file.
    pub fn new() -> Session {
        Session::default()
    }

    /// Compiles a file as far as it goes. The positions of other questions are those of this text.
    pub fn check(&mut self, source: &Source) -> Checked {
        self.document.name.clone_from(&source.name);
        self.document.text.clone_from(&source.text);
        let wanted = wanted(source);
        let analysis = editor::analyze(&source.name, &source.text, source, &wanted, Some(&source.arch));
        self.checked = Some((source.clone(), wanted));
        self.document.analyzed(analysis);
        let everywhere = lsp::Range::new(lsp::Position::new(0, 0), lsp::Position::new(u32::MAX, 0));
        let entries = self.document.analysis.entries.iter();
        let kernels = entries.map(|entry| Kernel {
            name: entry.name.clone(),
            missing: entry.missing.clone(),
        });
        let kernels = kernels.collect();
        Checked {
            diagnostics: editor::diagnostics(&self.document),
            repairs: editor::repairs(&self.document, everywhere),
            hints: editor::hints(&self.document, everywhere),
            messages: Said::all(&self.document.analysis.messages, &source.name, &source.text),
            kernels,
        }
    }

    /// What is known of the name at a position.
    pub fn hover(&self, position: lsp::Position) -> Option<lsp::Hover> {
        editor::hover(&self.document, position)
    }

    /// The names that may stand at a position of a text, which may be newer than the one that was checked.
    pub fn completion(&mut self, text: &str, position: lsp::Position) -> Vec<lsp::CompletionItem> {
        self.document.text = text.to_string();
        editor::completion(&self.document, position)
    }

    /// The signature of the call around a position.
    pub fn signature(&mut self, text: &str, position: lsp::Position) -> Option<lsp::SignatureHelp> {
        self.document.text = text.to_string();
        editor::signature(&self.document, position)
    }

    /// The CUDA text of a kernel.
    pub fn cuda(&self, source: &Source) -> Answer<Cuda> {
        self.of_kernel(source, |module, gpu| texts::cuda(module, gpu, &source.name))
    }

    /// The IR of a kernel after each pass.
    pub fn passes(&self, source: &Source) -> Answer<Vec<Pass>> {
        self.of_kernel(source, texts::passes)
    }

    /// How the tile primitives of a kernel are lowered.
    pub fn explain(&self, source: &Source) -> Answer<Vec<Explained>> {
        self.of_kernel(source, |module, gpu| Ok(explained(&module, gpu)))
    }

    /// Pictures of the layouts of a kernel's buffers.
    pub fn layouts(&self, source: &Source) -> Answer<Vec<LayoutPicture>> {
        self.of_kernel(source, |module, _| Ok(pictures(&module, &source.name)))
    }

    /// A picture of a layout in kernel syntax.
    pub fn layout(&self, text: &str, shape: &[i64], bytes: i64) -> Answer<LayoutPicture> {
        let picture = layout::read(text, shape, &Source::default()).and_then(|(layout, shape)| {
            let count: i64 = shape.iter().product();
            if count > MAX_PICTURED {
                return Err(vec![error(format!(
                    "{count} elements are too many for a picture: at most {MAX_PICTURED}"
                ))]);
            }
            let places = layout::places(&layout, &shape)?;
            Ok(picture(
                &places,
                &shape,
                bytes,
                Named {
                    label: text.trim().to_string(),
                    ..Named::default()
                },
            ))
        });
        answer(picture, &Source::default())
    }

    /// Makes the runs that the file's `# sim:` lines describe.
    pub fn simulate(&self, source: &Source, runs: &Runs) -> Report {
        let options = simulation::Options {
            arch: source.arch.clone(),
            seed: runs.seed,
            schedules: runs.schedules.max(1),
            all_orders: runs.all_orders,
            check_overflow: runs.check_overflow,
            check_races: !runs.no_race_check,
            step_limit: runs.step_limit,
            counters: runs.counters,
            timeline: runs.timeline,
            kernel: runs.kernel.clone(),
            elements: runs.elements,
        };
        simulation::simulate(&source.name, &source.text, source, &options)
    }

    /// An answer about the selected kernel.
    fn of_kernel<T>(&self, source: &Source, ask: impl FnOnce(IRModule, Gpu) -> Result<T>) -> Answer<T> {
        let known = self.checked.as_ref().filter(|(of, _)| of.is_read_as(source));
        let wanted = known.map_or_else(
            || Cow::Owned(wanted(source)),
            |(_, wanted)| Cow::Borrowed(&wanted[..]),
        );
        let found = Loaded::new(&source.name, &source.text, source).and_then(|loaded| {
            let entries = loaded.file().entries();
            let named = entries.iter().find(|entry| entry.name == source.kernel);
            let Some(entry) = named.or(entries.first()) else {
                return Err(vec![error("the file defines no kernel")]);
            };
            let Kernel { name, missing } = kernel(&wanted, entry);
            if !missing.is_empty() {
                let given: Vec<String> = missing.iter().map(|name| format!("{name}=…")).collect();
                return Err(vec![error(format!(
                    "`{name}` needs compile-time values: write `# sim: {name}({})` above it",
                    given.join(", ")
                ))]);
            }
            let module = loaded.build(&entry.name, &values(&wanted, entry))?;
            let of_entry = wanted.iter().find(|wanted| wanted.entry == entry.name);
            let target = of_entry.map_or(&source.arch, |wanted| &wanted.target);
            ask(module, gpu_named(target)?)
        });
        answer(found, source)
    }
}

/// The names of all passes, in order.
pub fn passes() -> Vec<&'static str> {
    pass_names()
}

fn error(text: impl Into<String>) -> tirx_core::diagnostic::Message {
    tirx_core::diagnostic::Message::new(tirx_core::diagnostic::Level::Error, text)
}

fn answer<T>(found: Result<T>, source: &Source) -> Answer<T> {
    match found {
        Ok(value) => Answer {
            value: Some(value),
            errors: Vec::new(),
        },
        Err(errors) => Answer {
            value: None,
            errors: Said::all(&errors, &source.name, &source.text),
        },
    }
}

fn kernel(wanted: &[Wanted], entry: &Entry) -> Kernel {
    let values = values(wanted, entry);
    let missing = entry.constexprs.iter();
    let missing = missing.filter(|parameter| parameter.required && !values.contains_key(&parameter.name));
    Kernel {
        name: entry.name.clone(),
        missing: missing.map(|parameter| parameter.name.clone()).collect(),
    }
}

/// What a picture is of.
#[derive(Default)]
struct Named {
    label: String,
    scope: String,
    line: Option<u32>,
    layout: String,
    cut: bool,
}

fn picture(places: &[layout::ElementLocation], shape: &[i64], bytes: i64, named: Named) -> LayoutPicture {
    let columns = shape.last().copied().unwrap_or(1).max(1) as usize;
    let axes: Vec<String> = places.first().map_or(Vec::new(), |place| {
        place.0.iter().map(|(name, _)| name.clone()).collect()
    });
    let in_memory = axes == [tirx_core::layout::axes::MEMORY.name];
    let conflicts = in_memory.then(|| {
        let row = places.chunks(columns).next().unwrap_or(&[]);
        let column: Vec<layout::ElementLocation> = places.iter().step_by(columns).cloned().collect();
        [layout::conflicts(row, bytes), layout::conflicts(&column, bytes)]
    });
    let Named {
        label,
        scope,
        line,
        layout,
        cut,
    } = named;
    LayoutPicture {
        label,
        scope,
        line,
        layout,
        axes,
        conflicts,
        svg: layout::svg(places, columns, bytes),
        cut,
    }
}

/// The buffers of a module that have a layout and constant extents.
fn pictures(module: &IRModule, file: &str) -> Vec<LayoutPicture> {
    struct Find<'a>(Vec<(Buffer, Option<u32>)>, &'a IRModule, &'a str);
    impl Visitor for Find<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) = &stmt.kind {
                let at = self.1.sources.locate(stmt.span).filter(|at| *at.file == *self.2);
                self.0.push((buffer.clone(), at.map(|at| at.line)));
            }
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find(Vec::new(), module, file);
    for (_, func) in &module.functions {
        find.visit_stmt(&func.body);
    }
    let mut pictures: Vec<LayoutPicture> = Vec::new();
    for (buffer, line) in find.0 {
        let shape: Option<Vec<i64>> = buffer
            .shape
            .iter()
            .map(|extent| extent.as_int().and_then(|extent| i64::try_from(extent).ok()))
            .collect();
        let (Some(layout), Some(mut shape)) = (buffer.layout.clone(), shape) else {
            continue;
        };
        if shape.is_empty() || shape.iter().any(|extent| *extent < 1) {
            continue;
        }
        let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
        let label = format!("{}: {}[{}]", buffer.name, buffer.dtype, extents.join(", "));
        // The first rows of a large buffer: their places do not depend on the others.
        let mut cut = false;
        for dim in 0..shape.len() {
            let count: i64 = shape.iter().product();
            if count > MAX_PICTURED {
                let others = (count / shape[dim]).max(1);
                shape[dim] = (MAX_PICTURED / others).clamp(1, shape[dim]);
                cut = true;
            }
        }
        let Ok(places) = layout::places_within(&layout, &buffer.shape, &shape) else {
            continue;
        };
        let bytes = i64::from(buffer.dtype.bits).div_euclid(8).max(1);
        let printed = tirx_core::script::print_stmt(&Stmt::new(
            StmtKind::DeclBuffer(buffer.clone()),
            tirx_core::source::Span::NONE,
        ));
        let named = Named {
            label,
            scope: buffer.scope().to_string(),
            line,
            layout: printed.trim().to_string(),
            cut,
        };
        let one = picture(&places, &shape, bytes, named);
        if !pictures
            .iter()
            .any(|other| other.label == one.label && other.svg == one.svg)
        {
            pictures.push(one);
        }
    }
    pictures
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVERSE: &str = include_str!("../web/examples/reverse.py");
    const TILES: &str = include_str!("../web/examples/tiles.py");
    const TYPO: &str = include_str!("../web/examples/typo.py");

    fn source(text: &str) -> Source {
        Source {
            name: "kernel.py".into(),
            text: text.into(),
            arch: "sm_90a".into(),
            ..Source::default()
        }
    }

    /// The kernel's line that contains a text, from 1.
    fn line_of(text: &str, part: &str) -> u32 {
        text.lines().position(|line| line.contains(part)).unwrap() as u32 + 1
    }

    #[test]
    fn a_kernel_is_built_with_the_values_of_its_run_and_a_help_is_an_edit() {
        let mut session = Session::new();
        let checked = session.check(&source(TYPO));
        assert_eq!(checked.kernels.len(), 1);
        assert_eq!(checked.kernels[0].missing, [""; 0]);
        let [repair] = checked.repairs.as_slice() else {
            panic!("{checked:?}")
        };
        assert_eq!(repair.edit.new_text, "tx");
        let repaired = TYPO.replace("A[tz]", "A[tx]");
        let checked = session.check(&source(&repaired));
        assert!(checked.messages.is_empty() && checked.repairs.is_empty());
        let at = lsp::Position::new(line_of(TYPO, "B[tx]") - 1, 4);
        let hover = serde_json::to_string(&session.hover(at)).unwrap();
        assert!(hover.contains("B = T.decl_buffer((128,))"), "{hover}");
    }

    #[test]
    fn lines_of_cuda_text_have_their_lines_of_the_kernel() {
        let cuda = Session::new().cuda(&source(REVERSE)).value.unwrap();
        let at = cuda.text.lines().position(|line| line.contains("63 -")).unwrap();
        assert_eq!(cuda.lines[at], line_of(REVERSE, "S[63"));
        assert_eq!(cuda.kernels, ["reverse_kernel"]);
    }

    #[test]
    fn passes_begin_with_the_kernel_as_written_and_leave_out_what_they_do_not_change() {
        let all = Session::new().passes(&source(REVERSE)).value.unwrap();
        assert_eq!(all[0].name, "parse");
        assert!(all.iter().skip(1).map(|pass| &*pass.name).eq(super::passes()));
        assert!(all.iter().any(|pass| pass.text.is_none()));
        let last = all.iter().rev().find_map(|pass| pass.text.as_ref()).unwrap();
        assert!(last.contains("reverse_kernel"), "{last}");
    }

    #[test]
    fn tiles_and_layouts_are_explained() {
        let session = Session::new();
        let calls = session.explain(&source(TILES)).value.unwrap();
        assert_eq!(calls.len(), 4);
        assert!(
            calls
                .iter()
                .all(|call| call.variants.iter().any(|v| v.outcome == "chosen"))
        );
        let pictures = session.layouts(&source(TILES)).value.unwrap();
        assert_eq!(pictures[0].label, "S: float32[32, 64]");
        assert_eq!(pictures[0].conflicts, Some([1, 32]));
        let drawn = session.layout("S[(8, 32):(1, 8)]", &[], 4).value.unwrap();
        assert_eq!(drawn.conflicts, Some([8, 1]));
        assert!(session.layout("S[(8, 32)", &[], 4).value.is_none());
    }

    #[test]
    fn a_race_is_data_and_every_order_is_run() {
        let session = Session::new();
        let report = session.simulate(&source(REVERSE), &Runs::default());
        let fault = report.runs[0].fault.as_ref().unwrap();
        assert!(fault.text.starts_with("data race"), "{fault:?}");
        assert_eq!(fault.line, Some(line_of(REVERSE, "S[63")));
        assert!(
            fault
                .children
                .iter()
                .any(|note| note.line == Some(line_of(REVERSE, "S[tx] =")))
        );
        let barrier = REVERSE.replace("    B[tx] =", "    T.cuda.cta_sync()\n    B[tx] =");
        let runs = Runs {
            all_orders: Some(100),
            counters: true,
            timeline: Some(0),
            ..Runs::default()
        };
        let report = session.simulate(&source(&barrier), &runs);
        assert!(report.runs[0].passed, "{report:?}");
        assert_eq!(report.runs[0].orders.as_ref().unwrap().cut, None);
        let report = session.simulate(
            &source(&barrier),
            &Runs {
                all_orders: None,
                ..runs
            },
        );
        let run = &report.runs[0];
        assert_eq!(run.counters.last().unwrap().barriers, 2);
        assert!(run.timeline.iter().any(|event| event.name == "block barrier"));
    }

    /// `types.ts` is written by hand: each key of an answer stands there.
    #[test]
    fn types_have_the_keys_of_answers() {
        fn keys(value: &serde_json::Value, all: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(map) => {
                    for (key, value) in map {
                        all.push(key.clone());
                        keys(value, all);
                    }
                }
                serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, all)),
                _ => {}
            }
        }
        let mut session = Session::new();
        let runs = Runs {
            counters: true,
            timeline: Some(0),
            ..Runs::default()
        };
        let answers = [
            serde_json::to_value(session.check(&source(TYPO))),
            serde_json::to_value(session.check(&source(TILES))),
            serde_json::to_value(session.cuda(&source(TILES))),
            serde_json::to_value(session.passes(&source(TILES))),
            serde_json::to_value(session.explain(&source(TILES))),
            serde_json::to_value(session.layouts(&source(TILES))),
            serde_json::to_value(session.simulate(&source(TILES), &runs)),
            serde_json::to_value(session.simulate(&source(REVERSE), &runs)),
            serde_json::to_value(source(TILES)),
            serde_json::to_value(&runs),
        ];
        let types = include_str!("types.ts");
        let mut all = Vec::new();
        answers
            .iter()
            .for_each(|answer| keys(answer.as_ref().unwrap(), &mut all));
        let declared = |key: &str| types.contains(&format!("{key}:")) || types.contains(&format!("{key}?:"));
        // Parts of the protocol that the page does not read.
        let unread = ["paddingLeft"];
        all.retain(|key| !declared(key) && !unread.contains(&key.as_str()));
        all.dedup();
        assert!(all.is_empty(), "{all:?}");
    }
}
