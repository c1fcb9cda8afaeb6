//! The messages of several runs of nvcc, without duplicates, each with the kernels and targets it applies to.

use tirx_core::diagnostic::{Level, Message, TextRange};

use super::Job;
use super::messages::{Finding, SERIALIZED};
use crate::error::{Error, Result};
use crate::toolchain::Nvcc;

/// Most lines that are shown of an output that could not be parsed.
const SHOWN: usize = 30;
/// Most errors that are shown.
const MOST: usize = 20;

struct Item {
    level: Level,
    text: String,
    place: Option<TextRange>,
    /// `kernel `add::n256` for sm_90a, sm_100a`: a kernel, its targets, the file and line of the text.
    said_of: Vec<(String, Vec<String>)>,
    where_in_text: String,
    /// Notes and help of the item itself.
    children: Vec<Message>,
}

/// The collected messages.
#[derive(Default)]
pub(super) struct Report {
    items: Vec<Item>,
}

impl Report {
    fn add(&mut self, item: Item, job: &Job, target: &str) {
        let same = self
            .items
            .iter_mut()
            .find(|known| (known.level, &known.text, &known.place) == (item.level, &item.text, &item.place));
        let item = match same {
            Some(known) => known,
            None => {
                self.items.push(item);
                match self.items.last_mut() {
                    Some(last) => last,
                    None => return,
                }
            }
        };
        match item.said_of.iter_mut().find(|(what, _)| *what == job.what) {
            Some((_, targets)) if !targets.iter().any(|t| t == target) => targets.push(target.to_string()),
            Some(_) => {}
            None => item.said_of.push((job.what.clone(), vec![target.to_string()])),
        }
    }

    /// An error that is not a message of nvcc.
    pub(super) fn other(&mut self, error: Error, job: &Job, target: &str) {
        for message in error.messages() {
            let item = Item {
                level: message.level,
                text: message.text.clone(),
                place: message.place.clone(),
                said_of: Vec::new(),
                where_in_text: String::new(),
                children: message.children.clone(),
            };
            self.add(item, job, target);
        }
    }

    /// Adds the findings in one run's output. If the run failed and no finding is an error, the output becomes one.
    pub(super) fn add_run(
        &mut self,
        findings: &[Finding],
        job: &Job,
        target: &str,
        success: bool,
        output: &str,
    ) {
        let mut failed = false;
        // A summary after the errors themselves is dropped.
        let named = findings
            .iter()
            .filter(|f| f.level == Level::Error && !is_summary(&f.text))
            .count();
        for finding in findings {
            let is_error = finding.level == Level::Error;
            if is_error && named > 0 && is_summary(&finding.text) {
                continue;
            }
            failed |= is_error;
            let (text, spills) = match spill_warning_text(&finding.text) {
                Some(text) => (text, true),
                None => (finding.text.clone(), false),
            };
            // Warnings of nvcc itself point at no code of the user. Warnings are shown for a successful run alone, and with `max-spills` the
            // check of the budget reports spills.
            let unseen = finding.place.is_none() && !spills && finding.text.starts_with("nvcc: ");
            if !is_error
                && (!success
                    || unseen
                    || (spills && (job.options.allow_spills || job.options.max_spills.is_some())))
            {
                continue;
            }
            let mut children = Vec::new();
            if spills {
                let help = "keep fewer values alive at a time, use more threads with fewer values each, or allow it: \
                    `allow-spills = true`";
                children.push(Message::new(Level::Help, help));
            }
            if finding.text.contains(SERIALIZED) {
                let help = "leave accumulators alone until `T.ptx.wgmma.wait_group(0)`, round them in pairs, and keep branches out of the loop of \
                    MMAs: see \"Warpgroup MMAs that wait for each other\" on the book's page about tuning";
                children.push(Message::new(Level::Help, help));
            }
            if is_error && finding.text.contains("cc1plus") {
                children.push(Message::new(
                    Level::Help,
                    "nvcc needs a C++ compiler (g++) on PATH",
                ));
            }
            let line = finding
                .line
                .map_or(String::new(), |line| format!(", line {line}"));
            let item = Item {
                level: finding.level,
                text,
                place: finding.place.clone().or_else(|| job.place.clone()),
                said_of: Vec::new(),
                where_in_text: format!("tirx/{}.cu in the build's OUT_DIR{line}", job.file),
                children,
            };
            self.add(item, job, target);
        }
        if !success && !failed {
            let lines: Vec<&str> = output
                .lines()
                .map(str::trim_end)
                .filter(|l| !l.is_empty())
                .collect();
            let mut children: Vec<Message> = lines
                .iter()
                .take(SHOWN)
                .map(|line| Message::new(Level::Note, *line))
                .collect();
            if lines.len() > SHOWN {
                children.push(Message::new(
                    Level::Note,
                    format!("… {} more lines", lines.len() - SHOWN),
                ));
            }
            if ["cc1plus", "host compiler", "gcc: not found"]
                .iter()
                .any(|word| output.contains(word))
            {
                children.push(Message::new(
                    Level::Help,
                    "nvcc needs a C++ compiler (g++) on PATH",
                ));
            }
            let item = Item {
                level: Level::Error,
                text: format!("nvcc failed on {}", job.what),
                place: job.place.clone(),
                said_of: Vec::new(),
                where_in_text: format!("tirx/{}.cu in the build's OUT_DIR", job.file),
                children,
            };
            self.add(item, job, target);
        }
    }

    fn messages(&self, level: Level, nvcc: Option<&Nvcc>) -> Vec<Message> {
        let items = self.items.iter().filter(|item| item.level == level);
        items
            .map(|item| {
                let mut message = Message::new(level, item.text.as_str());
                message.place = item.place.clone();
                let mut shown: Vec<String> = item
                    .said_of
                    .iter()
                    .take(3)
                    .map(|(what, targets)| format!("{what} for {}", targets.join(", ")))
                    .collect();
                if item.said_of.len() > 3 {
                    shown.push(format!("{} more", item.said_of.len() - 3));
                }
                let by = nvcc.map_or(String::new(), |nvcc| format!("nvcc {}, ", nvcc.version));
                message = message.child(Level::Note, format!("{by}compiling {}", shown.join("; ")));
                if !item.where_in_text.is_empty() {
                    message = message.child(
                        Level::Note,
                        format!("the generated text is {}", item.where_in_text),
                    );
                }
                message.children.extend(item.children.iter().cloned());
                message
            })
            .collect()
    }

    /// The errors, if there are any.
    pub(super) fn errors(&self, nvcc: &Nvcc) -> Result<()> {
        let mut messages = self.messages(Level::Error, Some(nvcc));
        if messages.len() > MOST {
            let more = messages.len() - MOST;
            messages.truncate(MOST);
            messages.push(Message::new(Level::Error, format!("nvcc: {more} more errors")));
        }
        Error::from_messages(messages)
    }

    /// The warnings.
    pub(super) fn warnings(&self) -> Vec<Message> {
        let name = |item: &&Item| item.level == Level::Warning;
        let messages = self.messages(Level::Warning, None).into_iter();
        messages
            .zip(self.items.iter().filter(name))
            .map(|(mut message, item)| {
                let what: Vec<String> = item
                    .said_of
                    .iter()
                    .take(3)
                    .map(|(what, targets)| format!("{what}, {}", targets.join(", ")))
                    .collect();
                message.text = format!("{} ({})", message.text, what.join("; "));
                message
            })
            .collect()
    }
}

/// Summary lines: "1 error detected", "aborted due to errors".
fn is_summary(text: &str) -> bool {
    text.contains("aborted due to errors") || text.contains("errors detected")
}

/// ptxas's message about spilled registers, in our words.
fn spill_warning_text(text: &str) -> Option<String> {
    let rest = text.strip_prefix("ptxas: Registers are spilled to local memory in function '")?;
    let (_, amounts) = rest.split_once("', ")?;
    Some(format!("registers are spilled to local memory: {amounts}"))
}
