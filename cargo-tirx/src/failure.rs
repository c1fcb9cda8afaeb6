//! How a command fails, and with which message.

use tirx_core::diagnostic::{Level, Message};
use tirx_core::suggest;

/// An error of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// In the user's kernel, file or values: exit code 1.
    User(Vec<Message>),
    /// In the command line: exit code 2.
    Usage(Box<Message>),
}

impl From<tirx_build::Error> for Failure {
    fn from(error: tirx_build::Error) -> Failure {
        Failure::User(error.messages().to_vec())
    }
}

/// An error without a place.
pub(crate) fn user(text: impl std::fmt::Display) -> Failure {
    Failure::User(vec![message(&text.to_string())])
}

/// A mistake in the command line.
pub(crate) fn usage(text: impl std::fmt::Display) -> Failure {
    Failure::Usage(Box::new(message(&text.to_string())))
}

/// Help with the closest of several names, or all of them.
pub(crate) fn choice(wanted: &str, names: &[&str], all: &str) -> String {
    match suggest(wanted, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{all} {}", names.join(", ")),
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A message from text: the text after `= help:` on a line of its own is help.
pub(crate) fn message(text: &str) -> Message {
    let mut parts = text.split("\n  = help: ");
    let head = Message::new(Level::Error, parts.next().unwrap_or_default());
    parts.fold(head, |message, help| message.child(Level::Help, help))
}
