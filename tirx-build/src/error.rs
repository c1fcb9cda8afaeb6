//! Errors of a build, as text for the reader of the build's output.

use std::fmt;
use std::io;
use std::path::Path;

use tirx_core::diagnostic::{Diagnostic, Diagnostics, Level, Message, TextRange};
use tirx_core::source::SourceMap;

/// A build that could not be done: one or more rendered messages, plain text, each beginning with `error:`.
///
/// `Debug` prints what `Display` prints without the first `error: `, so that `fn main() -> tirx_build::Result<()>` in a build script shows the
/// message as it was written and not as a Rust structure.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    messages: Vec<Message>,
}

/// A result whose error is a build's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without a place in a file.
    pub fn new(message: impl fmt::Display) -> Error {
        Error {
            messages: vec![Message::new(Level::Error, message.to_string())],
        }
    }

    /// A diagnostic, rendered over the texts it points into.
    pub fn from_diagnostic(diagnostic: &Diagnostic, sources: &SourceMap) -> Error {
        Error {
            messages: vec![Message::from_diagnostic(diagnostic, sources)],
        }
    }

    /// Diagnostics, rendered over the texts they point into.
    pub fn from_diagnostics(diagnostics: &Diagnostics, sources: &SourceMap) -> Error {
        Error {
            messages: diagnostics.messages(sources),
        }
    }

    /// A file operation that failed. `action` is a verb phrase: `read`, `write`.
    pub fn io(action: &str, path: &Path, error: &io::Error) -> Error {
        Error::new(format_args!("cannot {action} `{}`: {error}", path.display()))
    }

    /// The error with a `= help:` line at the end.
    pub fn help(mut self, help: impl fmt::Display) -> Error {
        if let Some(last) = self.messages.last_mut() {
            last.children.push(Message::new(Level::Help, help.to_string()));
        }
        self
    }

    /// The error with a `= note:` line at the end.
    pub fn note(mut self, note: impl fmt::Display) -> Error {
        if let Some(last) = self.messages.last_mut() {
            last.children.push(Message::new(Level::Note, note.to_string()));
        }
        self
    }

    /// Messages as one error; `Ok` where there is none.
    pub(crate) fn from_messages(messages: Vec<Message>) -> Result<()> {
        if messages.is_empty() {
            Ok(())
        } else {
            Err(Error { messages })
        }
    }

    /// The error with other names for the files that its messages point into.
    pub(crate) fn with_files_named(mut self, name: &dyn Fn(&str) -> String) -> Error {
        self.messages
            .iter_mut()
            .for_each(|message| rename_files(message, name));
        self
    }

    /// The error with a place, where it has none.
    pub(crate) fn at(mut self, place: TextRange) -> Error {
        if let Some(first) = self
            .messages
            .first_mut()
            .filter(|message| message.place.is_none())
        {
            first.place = Some(place);
        }
        self
    }

    /// The messages, for other forms of output than `Display`'s.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// All messages of several errors as one error; `Ok` where there is none.
    pub fn all(errors: impl IntoIterator<Item = Error>) -> Result<()> {
        let mut messages = Vec::new();
        for message in errors.into_iter().flat_map(|e| e.messages) {
            // The same mistake in two specializations of one kernel is reported once.
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        Error::from_messages(messages)
    }
}

/// Renames the files that a message points into.
pub(crate) fn rename_files(message: &mut Message, name: &dyn Fn(&str) -> String) {
    if let Some(place) = &mut message.place {
        place.file = name(&place.file);
    }
    message
        .children
        .iter_mut()
        .for_each(|child| rename_files(child, name));
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.messages.iter().map(|m| m.render(false)).collect();
        f.write_str(messages.join("\n").trim_end())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `main` prints "Error: " before it, so the first `error: ` is omitted.
        let text = self.to_string();
        f.write_str(text.strip_prefix("error: ").unwrap_or(&text))
    }
}

impl std::error::Error for Error {}
