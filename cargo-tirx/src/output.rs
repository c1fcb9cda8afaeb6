//! Output of diagnostics: for people, with or without colours, in one line each, or as JSON for editors.

use std::io::IsTerminal;

use serde::Serialize;
use tirx_core::diagnostic::{Message, TextRange};

use crate::failure::{Result, user};

/// Options of every subcommand.
#[derive(clap::Args, Debug)]
pub(crate) struct Output {
    /// When to colour diagnostics; `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", global = true)]
    color: Colour,
    /// How diagnostics are printed to stderr: for people, one line each, or one JSON object per line.
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "human",
        global = true
    )]
    message_format: Format,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Human,
    Short,
    Json,
}

impl Output {
    fn coloured(&self) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => std::io::stderr().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }

    /// Writes messages to stderr.
    pub(crate) fn show(&self, messages: &[Message]) {
        for (index, message) in messages.iter().enumerate() {
            match self.message_format {
                Format::Human => {
                    let gap = if index > 0 { "\n" } else { "" };
                    say(&format!("{gap}{}", message.render(self.coloured())));
                }
                Format::Short => say(&format!("{}\n", message.short())),
                Format::Json => say(&format!("{}\n", json(message))),
            }
        }
    }
}

/// `1 kernel`, `2 kernels`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Writes to stdout; a closed pipe (`| head`) is not an error.
pub(crate) fn out(text: &str) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(user(format_args!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes to stderr; a closed pipe (`2>&1 | true`) is not an error.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One message in rustc's schema; `docs/reference/diagnostics.md` documents the part that is used.
#[derive(Serialize)]
struct JsonMessage<'a> {
    message: &'a str,
    code: Option<()>,
    level: &'static str,
    spans: Vec<JsonSpan<'a>>,
    children: Vec<JsonMessage<'a>>,
    rendered: Option<String>,
}

#[derive(Serialize)]
struct JsonSpan<'a> {
    file_name: &'a str,
    byte_start: u32,
    byte_end: u32,
    line_start: u32,
    line_end: u32,
    column_start: u32,
    column_end: u32,
    is_primary: bool,
    text: &'a str,
    label: Option<&'a str>,
}

fn json(message: &Message) -> String {
    fn span(place: &TextRange) -> JsonSpan<'_> {
        JsonSpan {
            file_name: &place.file,
            byte_start: place.bytes.0,
            byte_end: place.bytes.1,
            line_start: place.start.0,
            line_end: place.end.0,
            column_start: place.start.1,
            column_end: place.end.1,
            is_primary: true,
            text: &place.text,
            label: (!place.label.is_empty()).then_some(&place.label),
        }
    }
    fn convert(message: &Message, rendered: bool) -> JsonMessage<'_> {
        JsonMessage {
            message: &message.text,
            code: None,
            level: message.level.name(),
            spans: message.place.iter().map(span).collect(),
            children: message.children.iter().map(|c| convert(c, false)).collect(),
            rendered: rendered.then(|| message.render(false)),
        }
    }
    serde_json::to_string(&convert(message, true)).unwrap_or_default()
}
