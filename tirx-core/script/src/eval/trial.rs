//! Statements evaluated on trial: what they would build, without building it.

use std::sync::Arc;

use tirx_python as ast;
use tirx_python::Ranged;

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
            let file = self.sources.add("replacements", trials.text(language));
            self.modules.insert(file, trials.module(language).clone());
            let release = match language {
                Language::Same => release,
                Language::New => Some(Release::V27),
                Language::Both => None,
            };
            self.releases.extend(release.map(|release| (file, release)));
            file
        });
        self.trying = Some(Trying {
            trials: trials.clone(),
            main,
            files,
        });
    }

    /// Tries the alternatives of a statement that is about to be evaluated.
    pub(super) fn try_alternatives(&mut self, stmt: &ast::Stmt) {
        if !self.is_building() || self.trying.as_ref().is_none_or(|trying| trying.main != self.file) {
            return;
        }
        // What is evaluated on trial is not tried again.
        let Some(trying) = self.trying.take() else { return };
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
        self.trying = Some(trying);
    }

    /// What a call builds, as text, without building it; `None` where it is wrong.
    pub(crate) fn said_by(
        &mut self,
        span: Span,
        call: impl FnOnce(&mut Interpreter) -> Result<Value>,
    ) -> Option<String> {
        let (blocks, emitted, lints) = (self.blocks.len(), self.emitted, self.lints.len());
        let value = self.open_block(span).and_then(|()| call(self));
        self.blocks.truncate(blocks + 1);
        let built = self.close_block();
        self.emitted = emitted;
        self.lints.truncate(lints);
        self.raised = None;
        let value = lang::to_expr(&value.ok()?, span).ok().map(Stmt::evaluate);
        Some(print_stmt(&Stmt::seq([Some(built), value].into_iter().flatten())))
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
        let scope = Scope::new(ScopeKind::Block, Some(self.scope.clone()));
        let scope = std::mem::replace(&mut self.scope, scope);
        let saved_file = std::mem::replace(&mut self.file, file);
        let (blocks, loops, calls, entered) = (
            self.blocks.len(),
            self.loops.len(),
            self.calls.len(),
            self.entered.len(),
        );
        let saved = (
            self.choices,
            self.emitted,
            self.depth,
            self.fatal,
            self.mode,
            self.lints.len(),
        );
        let fresh = self.fresh_scalars.clone();
        if let Some(call) = self.calls.last_mut() {
            call.blocks += 1;
        }
        let flow = self.open_block(span).and_then(|()| self.exec_block(body));
        self.blocks.truncate(blocks + 1);
        let built = self.close_block();
        self.loops.truncate(loops);
        self.calls.truncate(calls);
        self.entered.truncate(entered);
        if let Some(call) = self.calls.last_mut() {
            call.blocks -= 1;
        }
        self.fresh_scalars = fresh;
        self.file = saved_file;
        let lints;
        (
            self.choices,
            self.emitted,
            self.depth,
            self.fatal,
            self.mode,
            lints,
        ) = saved;
        self.lints.truncate(lints);
        self.raised = None;
        let own = std::mem::replace(&mut self.scope, scope);
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
