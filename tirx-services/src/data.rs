//! Messages and lines as data.

use lsp_types::Range;
use serde::Serialize;
use tirx_core::diagnostic::{Level, Message};

use crate::editor::text::range_of;

/// A message, or a part of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// `error`, `warning`, `note` or `help`.
    pub level: &'static str,
    /// Its text.
    pub text: String,
    /// Its range in the kernel file; none if it is in another file or in none.
    pub range: Option<Range>,
    /// The file, and the line from 1.
    pub file: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// The label under the underlined text.
    pub label: String,
    /// Notes and helps.
    pub children: Vec<Said>,
    /// The whole message as the command line prints it.
    pub rendered: String,
}

impl Said {
    /// A message about the file `name`, whose text is `text`.
    pub fn from_message(message: &Message, name: &str, text: &str) -> Said {
        let place = message.place.as_ref();
        let own = place.filter(|place| place.file == name);
        Said {
            level: message.level.name(),
            text: message.text.clone(),
            range: own.map(|place| range_of(text, place.bytes.0 as usize, place.bytes.1 as usize)),
            file: place.map(|place| place.file.clone()),
            line: place.map(|place| place.start.0),
            label: place.map_or(String::new(), |place| place.label.clone()),
            children: message
                .children
                .iter()
                .map(|child| Said::from_message(child, name, text))
                .collect(),
            rendered: message.render(false),
        }
    }

    /// The same of several.
    pub fn all(messages: &[Message], name: &str, text: &str) -> Vec<Said> {
        messages
            .iter()
            .map(|message| Said::from_message(message, name, text))
            .collect()
    }

    /// An error without a place.
    pub fn error(text: impl Into<String>) -> Said {
        Said::from_message(&Message::new(Level::Error, text), "", "")
    }
}
