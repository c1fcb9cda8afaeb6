//! Texts that may stand in the place of statements, tried where the statements are evaluated.
//!
//! While the kernels of a file are built, the evaluator meets each statement that has a call of 0.26, with the values of the names
//! that are in scope there. It evaluates the statement and what may replace it, compares what they build and throws both away. So one
//! build decides every call of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tirx_ir::{Expr, ExprKind, Stmt, StmtKind};
use tirx_python as ast;
use tirx_python::TextRange;
use tirx_script::alternatives::{Alternatives, LANGUAGES, Language, TextNumber, TrialResult};
use tirx_script::parse::{ParsedFile, parse_file};
use tirx_script::release::BOTH;
use tirx_source::diagnostic::Diagnostics;
use tirx_source::source::FileId;

use super::calls::Literal;
use super::{calls, normal};

/// The name that a value is given when it is looked at.
const VALUE: &str = "observed_value";

/// Statements, each as the body of a function of its own.
struct Texts {
    /// All of them.
    text: String,
    /// The same, parsed.
    parsed: ParsedFile,
}

/// A call, and the texts of its statement with it replaced.
struct TriedCall {
    /// The statement as it is.
    original: TextNumber,
    /// What may stand there, the best first; `None` for what is no Python.
    alternatives: Vec<Option<TextNumber>>,
    /// The alternatives that did not build the same in some evaluation, and what they built there.
    failed: Mutex<BTreeMap<usize, TrialResult>>,
    /// The alternative that built the same, since the last one failed.
    passed: Mutex<Option<usize>>,
    /// Whether the statement was evaluated.
    reached: AtomicBool,
}

/// What becomes of the calls of a file.
pub(super) struct Trials {
    texts: [Texts; 3],
    calls: Vec<TriedCall>,
    /// The calls of each statement.
    statements: FxHashMap<TextRange, Vec<usize>>,
    /// The variables that the alternatives introduce.
    temporaries: BTreeSet<String>,
    /// Whether an alternative failed after another evaluation had passed it.
    undecided: AtomicBool,
    /// Values that are looked at. Their numbers follow those of the calls.
    observed: Vec<Observed>,
}

/// A value of a statement.
struct Observed {
    /// A statement that gives it to a name.
    place: TextNumber,
    seen: Mutex<Seen>,
}

/// What a value was so far.
#[derive(Clone, Debug, Default, PartialEq)]
enum Seen {
    /// It was not evaluated.
    #[default]
    Nothing,
    /// This constant, each time.
    Constant(Literal),
    /// Several constants, or a value of the kernel.
    More,
}

/// The constant that a statement gives to a name.
fn constant(stmt: &Stmt) -> Option<Literal> {
    let of = |e: &Expr| match &e.kind {
        ExprKind::Int(value) => Some(Literal::Int(*value)),
        ExprKind::Str(text) => Some(Literal::Text(text.to_string())),
        _ => None,
    };
    match &stmt.kind {
        StmtKind::Seq(all) => all.iter().find_map(constant),
        StmtKind::Bind(_, value) | StmtKind::Evaluate(value) => of(value),
        _ => None,
    }
}

/// A call that is to be tried: its statement and the texts of it.
pub(super) struct Candidate {
    pub(super) statement: TextRange,
    pub(super) original: String,
    /// Whether it has no other call of 0.26.
    pub(super) alone: bool,
    pub(super) alternatives: Vec<String>,
}

/// What was found for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This alternative builds the same, wherever the statement is evaluated.
    Same(usize),
    /// None does: what each builds.
    Different(Vec<(usize, TrialResult)>),
    /// The statement is not evaluated by any kernel.
    NotReached,
}

impl Trials {
    pub(super) fn new(
        candidates: &[Candidate],
        temporaries: BTreeSet<String>,
    ) -> Result<Arc<Trials>, Diagnostics> {
        let mut texts = LANGUAGES.map(|_| BOTH.to_string());
        let mut counts = LANGUAGES.map(|_| 0);
        let mut add = |language: Language, statement: &str| {
            let number = language as usize;
            texts[number].push_str(&in_function(statement));
            counts[number] += 1;
            TextNumber {
                language,
                at: counts[number] - 1,
            }
        };
        let mut calls = Vec::new();
        let mut statements: FxHashMap<TextRange, Vec<usize>> = FxHashMap::default();
        for candidate in candidates {
            let alternatives = candidate.alternatives.iter().map(|text| {
                let own = format!("{BOTH}{}", in_function(text));
                let parsed = parse_file(FileId(0), &own).ok()?;
                // Some names are in both releases.
                let language =
                    match candidate.alone || parsed.walk(|module| calls::find(module, &own)).is_empty() {
                        true => Language::New,
                        false => Language::Both,
                    };
                Some(add(language, text))
            });
            let alternatives = alternatives.collect();
            statements
                .entry(candidate.statement)
                .or_default()
                .push(calls.len());
            calls.push(TriedCall {
                original: add(Language::Same, &candidate.original),
                alternatives,
                failed: Mutex::default(),
                passed: Mutex::default(),
                reached: AtomicBool::default(),
            });
        }
        let [same, new, both] = texts.map(|text| -> Result<Texts, Diagnostics> {
            Ok(Texts {
                parsed: parse_file(FileId(0), &text)?,
                text,
            })
        });
        Ok(Arc::new(Trials {
            texts: [same?, new?, both?],
            calls,
            statements,
            temporaries,
            undecided: AtomicBool::default(),
            observed: Vec::new(),
        }))
    }

    /// Looks at values: the statement that each is a part of, and its text.
    pub(super) fn observing(values: &[(TextRange, String)]) -> Result<Arc<Trials>, Diagnostics> {
        let mut text = BOTH.to_string();
        let mut statements: FxHashMap<TextRange, Vec<usize>> = FxHashMap::default();
        let mut observed = Vec::new();
        for (at, (statement, value)) in values.iter().enumerate() {
            text.push_str(&in_function(&format!(" {VALUE}: T.let = ({value})")));
            statements.entry(*statement).or_default().push(at);
            let language = Language::Same;
            observed.push(Observed {
                place: TextNumber { language, at },
                seen: Mutex::default(),
            });
        }
        let [none, nothing] = [BOTH, BOTH].map(|text| -> Result<Texts, Diagnostics> {
            Ok(Texts {
                parsed: parse_file(FileId(0), text)?,
                text: text.to_string(),
            })
        });
        let same = Texts {
            parsed: parse_file(FileId(0), &text)?,
            text,
        };
        Ok(Arc::new(Trials {
            texts: [same, none?, nothing?],
            calls: Vec::new(),
            statements,
            temporaries: BTreeSet::new(),
            undecided: AtomicBool::default(),
            observed,
        }))
    }

    /// The constant that a value was in every evaluation.
    pub(super) fn constant(&self, number: usize) -> Option<Literal> {
        match &*locked(&self.observed[number].seen) {
            Seen::Constant(value) => Some(value.clone()),
            Seen::Nothing | Seen::More => None,
        }
    }

    /// Whether the kernels must be built again: what passes now was not tried in every evaluation.
    pub(super) fn take_undecided(&self) -> bool {
        self.undecided.swap(false, Ordering::Relaxed)
    }

    pub(super) fn verdict(&self, number: usize) -> Verdict {
        let call = &self.calls[number];
        match *locked(&call.passed) {
            Some(at) => Verdict::Same(at),
            None if call.reached.load(Ordering::Relaxed) => {
                let failed = locked(&call.failed);
                Verdict::Different(failed.iter().map(|(at, built)| (*at, built.clone())).collect())
            }
            None => Verdict::NotReached,
        }
    }
}

impl Alternatives for Trials {
    fn text(&self, language: Language) -> &str {
        &self.texts[language as usize].text
    }

    fn module(&self, language: Language) -> &Arc<ast::ModModule> {
        &self.texts[language as usize].parsed.module
    }

    fn calls(&self, statement: TextRange) -> &[usize] {
        self.statements.get(&statement).map_or(&[], Vec::as_slice)
    }

    fn original(&self, call: usize) -> TextNumber {
        match self.calls.get(call) {
            Some(call) => call.original,
            None => self.observed[call - self.calls.len()].place,
        }
    }

    fn meets(&self, call: usize, original: &Stmt) {
        let Some(observed) = call
            .checked_sub(self.calls.len())
            .and_then(|at| self.observed.get(at))
        else {
            return;
        };
        let mut seen = locked(&observed.seen);
        *seen = match (constant(original), &*seen) {
            (Some(value), Seen::Nothing) => Seen::Constant(value),
            (Some(value), Seen::Constant(before)) if value == *before => Seen::Constant(value),
            _ => Seen::More,
        };
    }

    fn decide(&self, call: usize, result: &mut dyn FnMut(TextNumber) -> TrialResult) {
        let Some(call) = self.calls.get(call) else { return };
        call.reached.store(true, Ordering::Relaxed);
        let mut failed = locked(&call.failed);
        for (at, place) in call.alternatives.iter().enumerate() {
            if failed.contains_key(&at) {
                continue;
            }
            match place.map_or(TrialResult::Other, &mut *result) {
                TrialResult::Same => {
                    *locked(&call.passed) = Some(at);
                    return;
                }
                other => failed.insert(at, other),
            };
            if locked(&call.passed).take().is_some() {
                self.undecided.store(true, Ordering::Relaxed);
            }
        }
    }

    fn introduces(&self, name: &str) -> bool {
        self.temporaries.contains(name)
    }

    fn normal_text(&self, stmt: &Stmt) -> String {
        normal::of_stmt(stmt, &self.temporaries)
    }
}

/// Evaluations run one after the other, each on a thread of its own.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_function(statement: &str) -> String {
    format!("def f():\n{statement}\n")
}
