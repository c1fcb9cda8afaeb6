//! Texts that may stand in the place of statements, tried where the statements are evaluated.
//!
//! While the kernels of a file are built, the evaluator meets each statement that has a call of 0.26, with the values of the names
//! that are in scope there. It evaluates the statement and what may replace it, compares what they build and throws both away. So one
//! build decides every call of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tirx_python as ast;
use tirx_python::TextRange;

use super::{calls, normal};
use crate::diagnostic::Diagnostics;
use crate::eval::trial::{Alternatives, Built, LANGUAGES, Language, Place};
use crate::ir::Stmt;
use crate::parse::{ParsedFile, parse_file};
use crate::release::BOTH;
use crate::source::FileId;

/// Statements, each as the body of a function of its own.
struct Texts {
    /// All of them.
    text: String,
    /// The same, parsed.
    parsed: ParsedFile,
}

/// A call, and the texts of its statement with it replaced.
struct Call {
    /// The statement as it is.
    original: Place,
    /// What may stand there, the best first; `None` for what is no Python.
    alternatives: Vec<Option<Place>>,
    /// The alternatives that did not build the same in some evaluation, and what they built there.
    failed: Mutex<BTreeMap<usize, Built>>,
    /// The alternative that built the same, since the last one failed.
    passed: Mutex<Option<usize>>,
    /// Whether the statement was evaluated.
    reached: AtomicBool,
}

/// What becomes of the calls of a file.
pub struct Trials {
    texts: [Texts; 3],
    calls: Vec<Call>,
    /// The calls of each statement.
    statements: FxHashMap<TextRange, Vec<usize>>,
    /// The variables that the alternatives introduce.
    temporaries: BTreeSet<String>,
    /// Whether an alternative failed after another evaluation had passed it.
    undecided: AtomicBool,
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
    Different(Vec<(usize, Built)>),
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
            Place {
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
                    match candidate.alone || parsed.walk(|module| calls::of(module, &own)).is_empty() {
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
            calls.push(Call {
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
        }))
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

    fn original(&self, call: usize) -> Place {
        self.calls[call].original
    }

    fn decide(&self, call: usize, same: &mut dyn FnMut(Place) -> Built) {
        let call = &self.calls[call];
        call.reached.store(true, Ordering::Relaxed);
        let mut failed = locked(&call.failed);
        for (at, place) in call.alternatives.iter().enumerate() {
            if failed.contains_key(&at) {
                continue;
            }
            match place.map_or(Built::Other, &mut *same) {
                Built::Same => {
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

    fn said(&self, stmt: &Stmt) -> String {
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
