//! Errors a user can cause: what is wrong, where, why, and what to do about it.

mod message;

use std::fmt;

pub use message::{CALLED, Level, Message, TextRange};

use crate::source::{SourceMap, Span};

/// A note, with or without a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its text.
    pub message: String,
    /// Where it points; `Span::NONE` for a note without a place.
    pub span: Span,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The text that is wrong.
    pub span: Span,
    /// The label under the underlined text; empty for none.
    pub label: String,
    /// Further places that explain the error.
    pub notes: Vec<Note>,
    /// The suggested fix, where one is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            message: message.into(),
            span,
            label: String::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Sets the label under the underlined text.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a note that points at `span` (`Span::NONE`: at nothing).
    pub fn note(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.notes.push(Note {
            message: message.into(),
            span,
        });
        self
    }

    /// Adds a suggested fix.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the span where there is none yet.
    pub fn or_span(mut self, span: Span) -> Diagnostic {
        self.span = self.span.or(span);
        self
    }

    /// The error as text for people, in the form of rustc's messages. Ends with a newline.
    pub fn render(&self, sources: &SourceMap) -> String {
        Message::from_diagnostic(self, sources).render(false)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

/// One or more errors; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// All errors with their places resolved.
    pub fn messages(&self, sources: &SourceMap) -> Vec<Message> {
        self.0
            .iter()
            .map(|d| Message::from_diagnostic(d, sources))
            .collect()
    }

    /// All errors as text for people.
    pub fn render(&self, sources: &SourceMap) -> String {
        self.0
            .iter()
            .map(|d| d.render(sources))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(d: Diagnostic) -> Diagnostics {
        Diagnostics(vec![d])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// A result whose error is one diagnostic (boxed, so that the result stays small).
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;

impl From<Box<Diagnostic>> for Diagnostics {
    fn from(d: Box<Diagnostic>) -> Diagnostics {
        Diagnostics(vec![*d])
    }
}

/// `Err` with a diagnostic at `span`.
pub fn error<T>(span: Span, message: impl Into<String>) -> Result<T> {
    Err(Box::new(Diagnostic::new(span, message)))
}
