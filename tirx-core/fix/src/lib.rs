//! How does a kernel file of TVM 0.26 become one of 0.27?
//!
//! Calls of PTX functions are replaced in the text, by their spans, so that everything else stays as it is. What a call becomes is
//! found from the tables of mnemonics: a line says which row it is and where the row's arguments come from, and
//! `backwards` reads that from right to left. Where several mnemonics are possible, and whether one is right at all, is
//! decided where the kernels are built: each statement is evaluated with every alternative until one builds the same (`trial`). So a
//! file is built three times (with the alternatives, and the new text to compare it whole), once more for each level of calls in calls.
//!
//! An instruction of 0.27 is a statement that writes to a variable. A value within an expression gets one before the statement
//! (`edit`); the normal form in which kernels are compared (`normal`) puts it back.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod absent;
mod backwards;
mod calls;
mod edit;
mod given;
mod library;
mod line;
mod normal;
mod products;
mod registers;
mod trial;
mod values;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tirx_ir::IRModule;
use tirx_python::{TextRange, TextSize};
use tirx_script::Rewrite;
use tirx_script::alternatives::{Alternatives, TrialResult};
use tirx_script::parse::parse_file;
use tirx_script::release::{BOTH, Release};
use tirx_source::diagnostic::Diagnostics;
use tirx_source::source::FileId;

pub use absent::table as without_counterpart;
use calls::OldCall;
use edit::{Change, Edit};
use trial::Candidate;
use trial::Trials;

/// A file in the language of 0.27.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// Its text. While `left` is not empty it has calls of both releases.
    pub text: String,
    /// The calls that were replaced, in the order of the file.
    pub replaced: Vec<Replaced>,
    /// The calls that are still of 0.26, in the order of the file.
    pub left: Vec<Left>,
    /// Whether a kernel of the whole new text is another one than before: the text must not be used.
    pub differs: bool,
}

/// A call that was replaced.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its line in the text as it was given.
    pub line: usize,
    /// What was there.
    pub before: String,
    /// What is there now.
    pub after: String,
    /// Whether a kernel was built with it: code that no build reaches cannot be compared.
    pub compared: bool,
}

/// A call that could not be replaced.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its line in the text as it was given.
    pub line: usize,
    /// The function: `T.ptx.ld`.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// A text whose kernels are to be built.
pub struct Attempt<'a> {
    /// The text.
    pub text: &'a str,
    /// The release that it is written for, where the text alone does not say it.
    pub release: Option<Release>,
    /// For [`KernelFile::with_trials`](tirx_script::KernelFile::with_trials).
    pub trials: Option<Arc<dyn Alternatives>>,
}

/// Replaces the calls of 0.26. `build` builds the kernels of a text, those of every text with the same values; `None` where they are
/// wrong.
///
/// # Errors
/// The text is not Python.
pub fn to_v27(
    text: &str,
    build: &mut dyn FnMut(&Attempt) -> Option<Vec<IRModule>>,
) -> Result<Fixed, Diagnostics> {
    // The line that each line had in the text as it was given.
    let (start, mut lines) = library::with_import(text);
    let mut fixed = Fixed {
        text: start,
        replaced: Vec::new(),
        left: Vec::new(),
        differs: false,
    };
    let mut names = Names {
        text,
        given: BTreeSet::new(),
    };
    let mut before = None;
    // Calls that cannot be replaced, by where they begin.
    let mut left: Vec<(usize, Left)> = Vec::new();
    for round in 0.. {
        // Between two rounds a file has calls of both releases.
        let shift = if round == 0 { 0 } else { BOTH.len() };
        let whole = if round == 0 {
            fixed.text.clone()
        } else {
            format!("{BOTH}{}", fixed.text)
        };
        let parsed = parse_file(FileId(0), &whole)?;
        let mut all = parsed.walk(|module| calls::find(module, &whole));
        observe(&mut all, &whole, build)?;
        let open = all
            .iter()
            .filter(|call| !left.iter().any(|(at, _)| at + shift == call.call.start));
        // Calls in calls first.
        let within = |call: &OldCall, other: &OldCall| {
            call.call.start < other.call.start && other.call.end <= call.call.end
        };
        let open: Vec<&OldCall> = open.collect();
        let turn: Vec<&OldCall> = open
            .iter()
            .filter(|call| !open.iter().any(|other| within(call, other)))
            .copied()
            .collect();
        if turn.is_empty() {
            break;
        }
        let tried = Tried::new(&turn, &all, &whole, &mut names)?;
        let attempt = Attempt {
            text: &whole,
            release: None,
            trials: Some(tried.trials.clone()),
        };
        for _ in 0..MAX_BUILDS {
            let built = build(&attempt);
            if round == 0 {
                before = built;
            }
            if !tried.trials.take_undecided() {
                break;
            }
        }
        let line = |at: usize| {
            let number = whole[shift..at].matches('\n').count();
            lines.get(number).copied().unwrap_or(number + 1)
        };
        let outcomes = tried.outcomes();
        for (call, outcome) in turn.iter().zip(&outcomes) {
            match outcome {
                Outcome::Replaced(edit, compared) => fixed.replaced.push(Replaced {
                    line: line(call.call.start),
                    before: whole[call.call.clone()].to_string(),
                    after: edit.shown(),
                    compared: *compared,
                }),
                Outcome::InBoth => {}
                Outcome::Left(_) => {}
            }
        }
        let changes = tried.changes(&whole, &outcomes);
        let moved = |at: usize| {
            let before = changes.iter().filter(|(range, _)| range.end <= at);
            let change: isize = before
                .map(|(range, new)| new.len() as isize - range.len() as isize)
                .sum();
            at.saturating_add_signed(change) - shift
        };
        left = left
            .into_iter()
            .map(|(at, why)| (moved(at + shift), why))
            .collect();
        for (call, outcome) in turn.iter().zip(outcomes) {
            let reason = match outcome {
                Outcome::Left(reason) => reason,
                // Its name says which release it is of, but only in a file of that one. A new call may have the name of an old
                // one, too, with another meaning: `T.ptx.barrier.cluster.arrive()`.
                Outcome::InBoth | Outcome::Replaced(Edit::Call(_), _) => String::new(),
                Outcome::Replaced(..) => continue,
            };
            left.push((
                moved(call.call.start),
                Left {
                    line: line(call.call.start),
                    name: call.name.clone(),
                    reason,
                },
            ));
        }
        let body: Vec<Change> = changes
            .into_iter()
            .map(|(range, new)| (range.start - shift..range.end - shift, new))
            .collect();
        (fixed.text, lines) = edit::with_lines(&whole[shift..], &lines, &body);
    }
    fixed.text = library::without_unused_import(text, &fixed.text);
    fixed.left = left
        .into_iter()
        .map(|(_, left)| left)
        .filter(|left| !left.reason.is_empty())
        .collect();
    fixed.replaced.sort_by_key(|replaced| replaced.line);
    fixed.left.sort_by_key(|left| left.line);
    if fixed.left.is_empty() && fixed.text != text {
        let after = build(&Attempt {
            text: &fixed.text,
            release: Some(Release::V27),
            trials: None,
        });
        let said = |modules: Option<Vec<IRModule>>| Some(normal::of_modules(&modules?, &names.given));
        fixed.differs = said(before) != said(after);
    }
    Ok(fixed)
}

/// Looks at the values of arguments that are no literals: modifiers of a mnemonic are among them.
fn observe(
    calls: &mut [OldCall],
    text: &str,
    build: &mut dyn FnMut(&Attempt) -> Option<Vec<IRModule>>,
) -> Result<(), Diagnostics> {
    let size = |at: usize| TextSize::new(u32::try_from(at).unwrap_or(u32::MAX));
    let values = calls.iter().flat_map(|call| {
        let statement = call.around.as_ref().map(|around| around.range.clone());
        let observable = call.all().filter(|argument| argument.is_observable());
        observable.filter_map(move |argument| {
            let statement = statement.clone()?;
            let statement = TextRange::new(size(statement.start), size(statement.end));
            Some((statement, argument.text.clone()))
        })
    });
    let values: Vec<(TextRange, String)> = values.collect();
    if values.is_empty() {
        return Ok(());
    }
    let trials = Trials::observing(&values)?;
    build(&Attempt {
        text,
        release: None,
        trials: Some(trials.clone()),
    });
    let mut number = 0;
    for call in calls.iter_mut().filter(|call| call.around.is_some()) {
        for argument in call.all_mut().filter(|argument| argument.is_observable()) {
            argument.observed = trials.constant(number);
            number += 1;
        }
    }
    Ok(())
}

/// Builds of one text; more than one is needed where a statement is evaluated several times and only a later evaluation refuses an
/// alternative.
const MAX_BUILDS: usize = 8;

/// Names of variables that the text does not have.
struct Names<'a> {
    text: &'a str,
    given: BTreeSet<String>,
}

impl Names<'_> {
    /// A name for the value of a call.
    fn name(&mut self, call: &OldCall) -> String {
        let base = match call.around.as_ref().map(|around| &around.form) {
            Some(calls::StatementForm::Declare { target, .. }) => target.clone(),
            _ => call.name["T.ptx.".len()..].replace('.', "_"),
        };
        let is_free = |name: &String| !self.text.contains(name.as_str()) && !self.given.contains(name);
        let numbered = (1..).map(|number| format!("{base}_value_{number}"));
        let mut all = std::iter::once(format!("{base}_value")).chain(numbered);
        let name = all.find(is_free).unwrap_or(base);
        self.given.insert(name.clone());
        name
    }
}

/// How 0.27 writes the call of 0.26 whose function is at `function`, for a message: for
/// [`Imports::rewrite_in_v27`](tirx_script::Imports::rewrite_in_v27).
pub fn rewrite(text: &str, function: Range<usize>) -> Option<Rewrite> {
    let parsed = parse_file(FileId(0), text).ok()?;
    let calls = parsed.walk(|module| calls::find(module, text));
    let call = calls.into_iter().find(|call| call.call.start == function.start)?;
    let found = backwards::alternatives(&call, "value");
    Some(Rewrite {
        before: text[call.call].to_string(),
        after: found.edits.first()?.shown().replace('\n', "; "),
    })
}

/// What becomes of a call.
enum Outcome {
    /// And whether both were evaluated.
    Replaced(Edit, bool),
    /// The call is valid in 0.27 as it is.
    InBoth,
    /// It cannot be replaced, for this reason.
    Left(String),
}

/// Calls that are tried in one build.
struct Tried<'a> {
    calls: Vec<TriedCall<'a>>,
    trials: Arc<Trials>,
}

struct TriedCall<'a> {
    call: &'a OldCall,
    edits: Vec<Edit>,
    reason: String,
    /// An argument whose value decides and is not known.
    undecided: Option<String>,
    text: &'a str,
    /// Its number among those that are tried.
    number: Option<usize>,
}

impl<'a> Tried<'a> {
    fn new(
        turn: &[&'a OldCall],
        all: &[OldCall],
        text: &'a str,
        names: &mut Names,
    ) -> Result<Tried<'a>, Diagnostics> {
        let mut candidates = Vec::new();
        let mut calls = Vec::new();
        for call in turn.iter().copied() {
            let found = backwards::alternatives(call, &names.name(call));
            let mut tried = TriedCall {
                call,
                edits: found.edits,
                reason: found.reason,
                undecided: found.undecided,
                text,
                number: None,
            };
            if let Some(around) = &call.around {
                let one = |edit: &Edit| edit::changes(text, around, &[(call, edit)]);
                tried.edits.retain(|edit| one(edit).is_some());
                let alternatives = tried.edits.iter().filter_map(|edit| {
                    let changes = one(edit)?;
                    Some(edit::on_trial(text, around, &changes))
                });
                let size = |at: usize| TextSize::new(u32::try_from(at).unwrap_or(u32::MAX));
                tried.number = Some(candidates.len());
                candidates.push(Candidate {
                    statement: TextRange::new(size(around.range.start), size(around.range.end)),
                    original: edit::on_trial(text, around, &[]),
                    alone: {
                        let around = |call: &OldCall| call.around.as_ref().map(|around| around.range.clone());
                        all.iter().filter(|other| around(other) == around(call)).count() == 1
                    },
                    alternatives: alternatives.collect(),
                });
            }
            calls.push(tried);
        }
        Ok(Tried {
            calls,
            trials: Trials::new(&candidates, names.given.clone())?,
        })
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.calls.iter().map(|call| call.outcome(&self.trials)).collect()
    }

    /// The changes of the text, by statements.
    fn changes(&self, text: &str, outcomes: &[Outcome]) -> Vec<Change> {
        let mut all: Vec<Change> = Vec::new();
        let mut done: BTreeSet<usize> = BTreeSet::new();
        let edits = || {
            let calls = self.calls.iter().zip(outcomes);
            calls.filter_map(|(tried, outcome)| match outcome {
                Outcome::Replaced(edit, _) => Some((tried.call, edit)),
                _ => None,
            })
        };
        for (call, edit) in edits() {
            let Some(around) = &call.around else {
                if let Edit::Call(new) = edit {
                    all.push((call.call.clone(), new.clone()));
                }
                continue;
            };
            if !done.insert(around.range.start) {
                continue;
            }
            let own: Vec<(&OldCall, &Edit)> = edits()
                .filter(|(other, _)| other.around.as_ref().is_some_and(|a| a.range == around.range))
                .collect();
            all.extend(edit::changes(text, around, &own).unwrap_or_default());
        }
        all.sort_by_key(|(range, _)| range.start);
        all
    }
}

impl TriedCall<'_> {
    fn outcome(&self, trials: &Trials) -> Outcome {
        let verdict = self
            .number
            .map_or(trial::Verdict::NotReached, |number| trials.verdict(number));
        let chosen = match &verdict {
            trial::Verdict::Same(at) => self.edits.get(*at),
            trial::Verdict::NotReached if self.undecided.is_some() => None,
            trial::Verdict::NotReached => self.edits.first(),
            trial::Verdict::Different(..) => None,
        };
        match chosen {
            Some(Edit::Call(new)) if *new == self.text[self.call.call.clone()] => Outcome::InBoth,
            Some(edit) => Outcome::Replaced(edit.clone(), !matches!(verdict, trial::Verdict::NotReached)),
            None => Outcome::Left(self.left(verdict)),
        }
    }

    /// Why none of the alternatives is right, by the one that comes closest: one that is valid, or the last one, whose operands are
    /// converted most.
    fn left(&self, verdict: trial::Verdict) -> String {
        let failed = match (verdict, &self.undecided) {
            (trial::Verdict::Different(failed), _) => failed,
            (trial::Verdict::NotReached, Some(argument)) => {
                return format!(
                    "the instruction depends on `{argument}`, and no kernel that is built evaluates it: name one with --entry, \
                     and its compile-time values with -D"
                );
            }
            _ => return self.reason.clone(),
        };
        let is_new = |at: usize| {
            let same =
                |edit: &Edit| matches!(edit, Edit::Call(new) if *new == self.text[self.call.call.clone()]);
            self.edits.get(at).is_some_and(|edit| !same(edit))
        };
        let new: Vec<_> = failed.into_iter().filter(|(at, _)| is_new(*at)).collect();
        let valid = new.iter().find(|(_, built)| *built == TrialResult::Other);
        // What is no buffer has no first element.
        let no_buffer = |built: &TrialResult| matches!(built, TrialResult::Refused(why) if why.contains("no attribute \"ptr_to\""));
        let refused = new.iter().rev().find(|(_, built)| !no_buffer(built));
        let Some((at, built)) = valid.or(refused).or(new.last()) else {
            return self.reason.clone();
        };
        let shown = self.edits[*at].shown().replace('\n', "; ");
        match built {
            TrialResult::Refused(why) => format!("0.27 does not take `{shown}`: {why}"),
            _ => format!("it would not make the same IR: {shown}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a call of 0.26 after the first alternative is taken.
    fn first(call: &str) -> String {
        let fixed = to_v27(&format!("{call}\n"), &mut |_| Some(Vec::new())).unwrap();
        assert!(fixed.left.is_empty(), "{:?}", fixed.left);
        fixed.text.trim_end().to_string()
    }

    #[test]
    fn barriers_are_said_to_be_in_shared_memory() {
        assert_eq!(
            first("T.ptx.tcgen05.commit(bar.ptr_to([0]))"),
            "T.ptx[\"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64\"](bar.ptr_to([0]))"
        );
        assert_eq!(
            first("T.ptx.mbarrier.init(bar.ptr_to([0]), 1)"),
            "T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)"
        );
    }

    #[test]
    fn sizes_of_prefetches_are_those_of_the_words() {
        assert_eq!(
            first("T.ptx.cp_async(S.ptr_to([0]), A.ptr_to([0]), 8, prefetch_size=128)"),
            "T.ptx[\"cp.async.ca.shared.global.L2::128B\"](S.ptr_to([0]), A.ptr_to([0]), 8)"
        );
    }

    #[test]
    fn a_message_gets_the_whole_call_and_no_answer_without_a_call_of_the_older_release() {
        let text = "x = 1\nT.ptx.mbarrier.init(A.ptr_to([0]), 1)\n";
        let found = rewrite(text, 6..26).expect("the call begins at byte 6");
        assert_eq!(found.before, "T.ptx.mbarrier.init(A.ptr_to([0]), 1)");
        assert_eq!(found.after, "T.ptx.mbarrier.init.shared.b64(A.ptr_to([0]), 1)");
        assert_eq!(rewrite(text, 0..1), None);
        assert_eq!(rewrite("T.ptx.mbarrier.init(", 0..19), None);
    }
}
