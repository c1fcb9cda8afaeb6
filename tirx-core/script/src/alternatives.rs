//! What may a caller try in place of a statement of a kernel?
//!
//! The evaluator meets each statement with the values of the names that are in scope there. It builds the statement and each
//! alternative, hands over what they build, and throws both away (`eval/trial.rs`). `cargo tirx fix` finds in this way which call of
//! TVM 0.27 is the same as a call of 0.26.

use std::sync::Arc;

use tirx_python as ast;
use tirx_python::TextRange;

use crate::ir::Stmt;

/// For which release a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The release of the file.
    Same,
    /// 0.27.
    New,
    /// Both: the other calls of the statement stay as they are.
    Both,
}

/// Every language, in the order of its number.
pub const LANGUAGES: [Language; 3] = [Language::Same, Language::New, Language::Both];

/// A text that is tried, by its position among the texts of its language.
#[derive(Clone, Copy, Debug)]
pub struct TextNumber {
    /// The language.
    pub language: Language,
    /// The number of texts of the language before it.
    pub at: usize,
}

/// What an alternative builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// The same as the statement.
    Same,
    /// Something else.
    Other,
    /// Nothing: it is wrong, as this message says.
    Refused(String),
}

/// What may stand in place of statements.
pub trait Alternatives: Send + Sync {
    /// All texts of a language.
    fn text(&self, language: Language) -> &str;
    /// The same, parsed: each text is the body of a function.
    fn module(&self, language: Language) -> &Arc<ast::ModModule>;
    /// The numbers of the calls of a statement for which there are alternatives.
    fn calls(&self, statement: TextRange) -> &[usize];
    /// The statement of a call as it is.
    fn original(&self, call: usize) -> TextNumber;
    /// Gets what the statement of a call builds here.
    fn meets(&self, call: usize, original: &Stmt);
    /// Looks for an alternative of a call that builds the same as the statement does here; `result` builds one.
    fn decide(&self, call: usize, result: &mut dyn FnMut(TextNumber) -> TrialResult);
    /// Whether a name is that of a variable that an alternative introduces.
    fn introduces(&self, name: &str) -> bool;
    /// The text of statements by which they are compared.
    fn normal_text(&self, stmt: &Stmt) -> String;
}
