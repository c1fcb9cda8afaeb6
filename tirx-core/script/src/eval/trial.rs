//! Statements evaluated on trial: what they would build, without building it.

use std::rc::Rc;
use std::sync::Arc;

use tirx_python as ast;
use tirx_python::Ranged;

use super::frame::{CallInfo, EvalFrame};
use super::stmt::Flow;
use super::value::Value;
use super::{Interpreter, Scope, ScopeKind};
use crate::alternatives::{Alternatives, LANGUAGES, Language, TextNumber, TrialResult};
use crate::diagnostic::Result;
use crate::ir::{Stmt, print_stmt};
use crate::lang;
use crate::release::Release;
use crate::source::{FileId, Span};

/// The statements of a text.
fn body(trials: &dyn Alternatives, text: TextNumber) -> &[ast::Stmt] {
    match trials.module(text.language).body.get(text.at) {
        Some(ast::Stmt::FunctionDef(function)) => &function.body,
        _ => &[],
    }
}

/// Alternatives of statements of the main file.
pub(super) struct Trying {
    trials: Arc<dyn Alternatives>,
    main: FileId,
    /// The file of each language's texts.
    files: [FileId; 3],
}

impl Interpreter {
    /// Tries alternatives of statements of the file `main`.
    pub(crate) fn set_trials(
        &mut self,
        trials: &Arc<dyn Alternatives>,
        main: FileId,
        release: Option<Release>,
    ) {
        let files = LANGUAGES.map(|language| {
            let file = self.session.sources.add("replacements", trials.text(language));
            self.session.modules.insert(file, trials.module(language).clone());
            let release = match language {
                Language::Same => release,
                Language::New => Some(Release::V27),
                Language::Both => None,
            };
            self.session
                .releases
                .extend(release.map(|release| (file, release)));
            file
        });
        self.session.trying = Some(Trying {
            trials: trials.clone(),
            main,
            files,
        });
    }

    /// Tries the alternatives of a statement that is about to be evaluated.
    pub(super) fn try_alternatives(&mut self, stmt: &ast::Stmt) {
        if !self.is_building()
            || self
                .session
                .trying
                .as_ref()
                .is_none_or(|trying| trying.main != self.frame.file)
        {
            return;
        }
        // What is evaluated on trial is not tried again.
        let Some(trying) = self.session.trying.take() else {
            return;
        };
        let trials = trying.trials.clone();
        for call in trials.calls(stmt.range()).iter().copied() {
            let mut built = |text: TextNumber| {
                let file = trying.files[text.language as usize];
                self.built_on_trial(&*trials, file, body(&*trials, text))
            };
            // A statement that is wrong is reported when it is evaluated.
            if let Ok(original) = built(trials.original(call)) {
                trials.meets(call, &original);
                let original = trials.normal_text(&original);
                trials.decide(call, &mut |text| match built(text) {
                    Ok(stmt) if trials.normal_text(&stmt) == original => TrialResult::Same,
                    Ok(_) => TrialResult::Other,
                    Err(why) => TrialResult::Refused(why),
                });
            }
        }
        self.session.trying = Some(trying);
    }

    /// What a call builds, as text, without building it; `None` where it is wrong.
    pub(crate) fn said_by(
        &mut self,
        span: Span,
        call: impl FnOnce(&mut Interpreter) -> Result<Value>,
    ) -> Option<String> {
        let (value, built) = self.on_trial(self.frame.clone(), span, call);
        let value = lang::to_expr(&value.ok()?, span).ok().map(Stmt::evaluate);
        Some(print_stmt(&Stmt::seq([Some(built), value].into_iter().flatten())))
    }

    /// Evaluates at a position, and takes back everything but the result; gives the statements that were built, too.
    fn on_trial<R>(
        &mut self,
        frame: EvalFrame,
        span: Span,
        run: impl FnOnce(&mut Interpreter) -> Result<R>,
    ) -> (Result<R>, Stmt) {
        let mark = self.kernel.mark();
        let (depth, fatal, lints) = (self.limits.depth, self.limits.fatal, self.session.lints.len());
        let result = self.enter(frame, |i| {
            i.open_block(span)?;
            run(i)
        });
        let built = self.kernel.close_since(&mark);
        self.kernel.rollback(mark);
        (self.limits.depth, self.limits.fatal) = (depth, fatal);
        self.session.lints.truncate(lints);
        self.exceptions.raised = None;
        (result, built)
    }

    /// What statements build here; an error where they are wrong.
    fn built_on_trial(
        &mut self,
        trials: &dyn Alternatives,
        file: FileId,
        body: &[ast::Stmt],
    ) -> std::result::Result<Stmt, String> {
        let first = body.first().ok_or("it has no statement")?;
        let span = self.span_at(first.range());
        let own = Scope::new(ScopeKind::Block, Some(self.frame.scope.clone()));
        // The block around the statements is no block of the function that runs.
        let call = self.frame.call.as_ref().map(|call| {
            let blocks = call.blocks + 1;
            Rc::new(CallInfo {
                blocks,
                ..(**call).clone()
            })
        });
        let frame = EvalFrame {
            file,
            scope: own.clone(),
            call,
            ..self.frame.clone()
        };
        let (flow, built) = self.on_trial(frame, span, |i| i.exec_block(body));
        // The values of names and of `return` are a part of what is said.
        let mut values: Vec<(String, Value)> = Vec::new();
        if let Flow::Return(value) = flow.map_err(|wrong| wrong.message.clone())? {
            values.push((String::new(), value));
        }
        let names = own.vars.borrow();
        let kept = names.iter().filter(|(name, _)| !trials.introduces(name));
        values.extend(kept.map(|(name, value)| (name.to_string(), value.clone())));
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let mut all = vec![built];
        for (_, value) in &values {
            let parts = match value {
                Value::Tuple(parts) => parts.to_vec(),
                Value::Dict(dict) => dict.borrow().iter().map(|(_, value)| value.clone()).collect(),
                one => vec![one.clone()],
            };
            for part in parts {
                if let Ok(e) = lang::to_expr(&part, span) {
                    all.push(Stmt::evaluate(e));
                }
            }
        }
        Ok(Stmt::seq(all))
    }
}
