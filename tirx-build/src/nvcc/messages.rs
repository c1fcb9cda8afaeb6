//! Parses the messages of nvcc and the programs that it runs, and maps them to the kernel's lines.
//!
//! ```text
//! kernel.cu(2): error: identifier "x" is undefined          cicc; text and mark follow, indented
//! kernel.cu(2): warning #177-D: variable "x" was declared…
//! kernel.cu:1:10: fatal error: y.h: No such file            the host compiler's preprocessor
//! ptxas /tmp/….ptx, line 9; error   : Not a name of any known instruction: 'bogus'
//! ptxas warning : Registers are spilled to local memory in function 'k', 8 bytes spill stores, 8 bytes spill loads
//! ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to … in the function 'k'
//! nvcc fatal   : Unknown option '-x'
//! ```

use tirx_core::diagnostic::{Level, TextRange};
use tirx_core::source::{FileId, SourceMap, Span};

/// The name of the text in nvcc's command line, the same for every kernel: it may be part of the result.
pub(crate) const FILE: &str = "kernel.cu";

/// A part of the line that ptxas prints, as information, about a kernel whose warpgroup MMAs wait for each other.
pub(super) const SERIALIZED: &str = "wgmma.mma_async instructions are serialized";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Error or warning.
    pub(crate) level: Level,
    /// The program that printed it.
    pub(crate) text: String,
    /// The kernel's line, where it is known.
    pub(crate) place: Option<TextRange>,
    /// The line of the CUDA text, from 1.
    pub(crate) line: Option<usize>,
}

/// A text with the origin of its lines.
pub(crate) struct Origin<'a> {
    /// The CUDA text.
    pub(crate) text: &'a str,
    /// Where each line came from.
    pub(crate) lines: &'a [Span],
    /// What the spans point into.
    pub(crate) sources: &'a SourceMap,
}

impl Origin<'_> {
    fn place(&self, line: usize) -> Option<TextRange> {
        TextRange::from_span(self.sources, *self.lines.get(line.checked_sub(1)?)?)
    }

    /// A line of a file that `#line` named.
    fn named(&self, file: &str, line: usize) -> Option<TextRange> {
        let at = self.sources.files().position(|source| source.name == file)?;
        let text = &self.sources.files().nth(at)?.text;
        let start: usize = text
            .split_inclusive('\n')
            .take(line.checked_sub(1)?)
            .map(str::len)
            .sum();
        let content = text.get(start..)?.lines().next()?;
        let blank = content.len() - content.trim_start().len();
        let span = Span::new(
            FileId(at as u32 + 1),
            (start + blank) as u32,
            (start + content.trim_end().len().max(blank)) as u32,
        );
        TextRange::from_span(self.sources, span)
    }

    /// The only line that contains a word.
    fn with_word(&self, word: &str) -> Option<usize> {
        let mut lines = self
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(word))
            .map(|(at, _)| at + 1);
        let first = lines.next()?;
        lines.next().is_none().then_some(first)
    }
}

/// The messages of a run of nvcc, in order, without duplicates.
pub(crate) fn findings(output: &str, origin: &Origin<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in output.lines() {
        let Some(finding) = finding(line.trim_end(), origin) else {
            continue;
        };
        if !found.contains(&finding) {
            found.push(finding);
        }
    }
    found
}

fn finding(line: &str, origin: &Origin<'_>) -> Option<Finding> {
    if line.starts_with([' ', '\t', '#']) {
        return None;
    }
    for tool in ["ptxas", "nvcc", "nvlink", "fatbinary"] {
        if let Some(rest) = line.strip_prefix(tool).filter(|rest| rest.starts_with(' ')) {
            return tool_finding(tool, rest, origin);
        }
    }
    let (file, number, rest) = located(line)?;
    let (level, text) = leveled(rest)?;
    let own = file.rsplit('/').next() == Some(FILE);
    let place = if own {
        origin.place(number)
    } else {
        origin.named(file, number)
    };
    // An error in a header keeps the header's name.
    let text = if own || place.is_some() {
        format!("nvcc: {text}")
    } else {
        format!("nvcc: {file}:{number}: {text}")
    };
    Some(Finding {
        level,
        text,
        place,
        line: own.then_some(number),
    })
}

/// `file(12): rest`, `file:12:3: rest`.
fn located(line: &str) -> Option<(&str, usize, &str)> {
    if let Some((head, rest)) = line.split_once("): ")
        && let Some((file, number)) = head.rsplit_once('(')
        && let Ok(number) = number.parse()
    {
        return Some((file, number, rest));
    }
    let (head, rest) = line.split_once(": ")?;
    let (head, last) = head.rsplit_once(':')?;
    match head.rsplit_once(':') {
        // With a column, and without.
        Some((file, number)) if number.parse::<usize>().is_ok() => Some((file, number.parse().ok()?, rest)),
        _ => Some((head, last.parse().ok()?, rest)),
    }
}

/// `error: text`, `warning #177-D: text`, `catastrophic error: text`, `fatal error: text`.
fn leveled(rest: &str) -> Option<(Level, String)> {
    let (head, text) = rest.split_once(": ")?;
    let mut words = head.split_whitespace();
    let level = loop {
        match words.next()? {
            "error" => break Level::Error,
            "warning" => break Level::Warning,
            "fatal" | "catastrophic" | "internal" => {}
            _ => return None,
        }
    };
    Some(match words.next() {
        Some(number) => (level, format!("{text} ({number})")),
        None => (level, text.to_string()),
    })
}

/// ` error   : text`, ` /tmp/x.ptx, line 9; error   : text`.
fn tool_finding(tool: &str, rest: &str, origin: &Origin<'_>) -> Option<Finding> {
    let rest = rest.split_once("; ").map_or(rest, |(_, rest)| rest);
    let (level, text) = rest.split_once(": ")?;
    let level = match level.trim() {
        "error" | "fatal" => Level::Error,
        "warning" => Level::Warning,
        "info" if text.contains(SERIALIZED) => Level::Warning,
        _ => return None,
    };
    // A name that the message quotes often occurs in one line of the text only.
    let word = text.split('\'').nth(1).filter(|word| word.len() > 1);
    let line = word.and_then(|word| origin.with_word(word));
    Some(Finding {
        level,
        text: format!("{tool}: {text}"),
        place: line.and_then(|line| origin.place(line)),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(output: &str) -> Vec<(Level, String, Option<u32>, Option<usize>)> {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", "one\n  two\nthree\n");
        let origin = Origin {
            text: "// head\nasm(\"bogus.x;\");\nvoid k() {\n",
            lines: &[Span::NONE, Span::new(file, 6, 9), Span::new(file, 10, 15)],
            sources: &sources,
        };
        findings(output, &origin)
            .into_iter()
            .map(|f| (f.level, f.text, f.place.map(|p| p.start.0), f.line))
            .collect()
    }

    #[test]
    fn each_tool_s_form_is_read() {
        use Level::{Error, Warning};
        for (output, level, text, place, line) in [
            (
                "kernel.cu(2): error: it is bad\n    text\n    ^\n",
                Error,
                "nvcc: it is bad",
                Some(2),
                Some(2),
            ),
            (
                "kernel.cu(3): warning #177-D: unused",
                Warning,
                "nvcc: unused (#177-D)",
                Some(3),
                Some(3),
            ),
            (
                "kernel.cu:1:10: fatal error: y.h: No such file",
                Error,
                "nvcc: y.h: No such file",
                None,
                Some(1),
            ),
            ("k.py(3): error: a\n", Error, "nvcc: a", Some(3), None),
            (
                "/usr/include/x.h(7): error: b",
                Error,
                "nvcc: /usr/include/x.h:7: b",
                None,
                None,
            ),
            (
                "ptxas /tmp/x.ptx, line 9; error   : Not a name of any known instruction: 'bogus'",
                Error,
                "ptxas: Not a name of any known instruction: 'bogus'",
                Some(2),
                Some(2),
            ),
            (
                "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in the function 'k'",
                Warning,
                "ptxas: (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in the function 'k'",
                None,
                None,
            ),
            (
                "ptxas fatal   : Ptx assembly aborted due to errors",
                Error,
                "ptxas: Ptx assembly aborted due to errors",
                None,
                None,
            ),
            (
                "nvcc fatal   : Unknown option '-x'",
                Error,
                "nvcc: Unknown option '-x'",
                None,
                None,
            ),
        ] {
            assert_eq!(look(output), [(level, text.to_string(), place, line)], "{output}");
        }
        assert!(
            look("1 error detected in the compilation of \"kernel.cu\".\nptxas info    : x\n\n").is_empty()
        );
        let twice = "kernel.cu(2): error: a\nkernel.cu(2): error: a\n";
        assert_eq!(look(twice).len(), 1);
    }
}
