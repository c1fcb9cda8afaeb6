//! Documentation of a generated function, from the kernel: its docstring, source, parameters and errors.

use tirx_core::codegen::rust::{self, Launcher};
use tirx_core::ir::abi::{Param, ParamKind};
use tirx_core::source::{SourceMap, Span};

/// The docstring of a definition as its lines read, without their common indentation.
pub(crate) fn plain_docstring(sources: &SourceMap, span: Span) -> Vec<String> {
    let lines = |text| dedented(text).into_iter().map(|line| line.trim_end().to_string());
    literal(sources, span).map(lines).into_iter().flatten().collect()
}

/// Lines of documentation of a typed function, without comment marks.
pub(super) fn typed(docstring: &[String], origin: &str, values: &str, launcher: &Launcher) -> Vec<String> {
    let mut lines: Vec<String> = docstring.to_vec();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(match values {
        "" => format!("{origin}."),
        values => format!("{origin}, for {values}."),
    });
    lines.push(String::new());
    for (name, param) in launcher.params() {
        lines.push(format!("- {}", parameter(name, param)));
    }
    if !launcher.signature.params.is_empty() {
        lines.push(String::new());
    }
    lines.push("Returns when the launch is enqueued on `stream`.".to_string());
    lines.push(String::new());
    lines.push("# Errors".to_string());
    lines.push(String::new());
    let tensors = launcher
        .signature
        .params
        .iter()
        .any(|p| matches!(p.kind, ParamKind::Tensor { .. }));
    if tensors {
        lines.push(
            "`Error::Argument` for a tensor whose rank, shape, strides, alignment or device does not fit;"
                .to_string(),
        );
    }
    lines.push("the errors of the launch itself.".to_string());
    lines
}

/// The line on a parameter that Rust calls `name`.
fn parameter(name: &str, param: &Param) -> String {
    let name = if name == param.name {
        format!("`{name}`")
    } else {
        format!("`{name}` (`{}` in the kernel)", param.name)
    };
    match &param.kind {
        ParamKind::Scalar(dtype) => format!("{name}: {dtype}"),
        ParamKind::TensorMap => format!("{name}: tensor map"),
        ParamKind::Unused => format!("{name}: not used, `()`"),
        ParamKind::Tensor {
            dtype,
            shape,
            strides,
            ..
        } => {
            // A one-dimensional shape is written as Python writes it.
            let tuple = |items: &[String]| match items {
                [one] => format!("`({one},)`"),
                items => format!("`({})`", items.join(", ")),
            };
            let mut text = format!("{name}: tensor of {dtype}, shape {}", tuple(shape));
            if !strides.is_empty() {
                text.push_str(&format!(", strides {}", tuple(strides)));
            }
            if rust::is_bit_pattern(*dtype) {
                text.push_str(", as bit patterns");
            }
            text.push_str(&format!("; {}", param.access()));
            text
        }
    }
}

/// `Kernel `add` of `kernels/vector.py`, line 43`.
pub(super) fn origin(entry: &str, sources: &SourceMap, span: Span) -> String {
    match sources.locate(span) {
        Some(at) => format!("Kernel `{entry}` of `{}`, line {}", at.file, at.line),
        None => format!("Kernel `{entry}`"),
    }
}

/// The docstring of a definition: the string that follows the signature of the definition at `span`.
pub(super) fn docstring(sources: &SourceMap, span: Span) -> Vec<String> {
    literal(sources, span).map(as_markdown).unwrap_or_default()
}

/// The text of the docstring of the definition at `span`.
fn literal(sources: &SourceMap, span: Span) -> Option<&str> {
    let text = sources.file(span.file)?.text.get(span.start as usize..)?;
    after_signature(text).and_then(string_literal)
}

/// The text after the colon of `def name(...):`.
fn after_signature(text: &str) -> Option<&str> {
    // A span of a definition begins at its name, at `def` or at a decorator.
    let start = if text.starts_with('@') || text.starts_with("def ") {
        text.find("def ").unwrap_or(0)
    } else {
        0
    };
    let mut depth = 0usize;
    let mut chars = text[start..].char_indices();
    let mut quote: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => {
                // A comment in a long parameter list.
                chars.by_ref().find(|(_, c)| *c == '\n');
            }
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ':') if depth == 0 => return Some(&text[start + at + 1..]),
            _ => {}
        }
    }
    None
}

/// The content of a string literal at the begin of `text`, after blanks and comments.
fn string_literal(text: &str) -> Option<&str> {
    let mut text = text.trim_start();
    while let Some(comment) = text.strip_prefix('#') {
        text = comment.split_once('\n')?.1.trim_start();
    }
    let text = text.strip_prefix(['r', 'R', 'u', 'U']).unwrap_or(text);
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest.split_once(quote).map(|(content, _)| content);
        }
    }
    None
}

/// Converts lines so that rustdoc shows them as they read: no accidental code blocks, links or tags.
fn as_markdown(docstring: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // The number of backticks that opened the current fence.
    let mut fence: Option<usize> = None;
    for line in dedented(docstring) {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        let info = line.trim_start()[ticks..].trim();
        match fence {
            Some(open) if ticks >= open && info.is_empty() => {
                fence = None;
                lines.push(line.trim().to_string());
            }
            Some(_) => lines.push(line.to_string()),
            // A Rust block would become a doctest of the user's crate, and so would one without a language.
            None if ticks >= 3 && !info.contains('`') => {
                fence = Some(ticks);
                let language = match info {
                    "" => "text",
                    "rust" => "rust,ignore",
                    other => other,
                };
                lines.push(format!("{}{language}", "`".repeat(ticks)));
            }
            None => {
                // Four blanks would begin a code block.
                let indent = (line.len() - line.trim_start().len()).min(2);
                lines.push(format!("{}{}", " ".repeat(indent), prose(line.trim())));
            }
        }
    }
    lines.extend(fence.map(|open| "`".repeat(open)));
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// Removes the indentation that all lines but the first have in common.
fn dedented(docstring: &str) -> Vec<&str> {
    let trimmed = docstring.trim();
    let blank = |line: &&str| line.trim().is_empty();
    let rest = trimmed.lines().skip(1).filter(|line| !blank(line));
    let common = rest
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let cut = |(at, line)| match at {
        0 => line,
        _ if blank(&line) => "",
        _ => line.get(common..).unwrap_or(line.trim_start()),
    };
    trimmed.lines().enumerate().map(cut).collect()
}

/// A line of prose: code spans and links are kept, other brackets are escaped, an address becomes a link.
fn prose(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '`' => code_span(rest),
            '[' => link(rest),
            '<' => rest
                .find('>')
                .filter(|_| rest[1..].starts_with("http"))
                .map(|end| end + 1),
            _ => None,
        };
        if let Some(length) = taken {
            text.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        if rest.starts_with("https://") || rest.starts_with("http://") {
            let end = rest.find([' ', ')', '>', ',']).unwrap_or(rest.len());
            let address = rest[..end].trim_end_matches(['.', ';', ':']);
            text.push_str(&format!("<{address}>"));
            rest = &rest[address.len()..];
            continue;
        }
        if "[]<".contains(c) {
            text.push('\\');
        }
        text.push(c);
        rest = &rest[c.len_utf8()..];
    }
    text
}

/// The length of the code span that a text begins with.
fn code_span(text: &str) -> Option<usize> {
    let ticks = text.chars().take_while(|c| *c == '`').count();
    let mut at = ticks;
    while let Some(next) = text[at..].find('`') {
        at += next;
        let count = text[at..].chars().take_while(|c| *c == '`').count();
        at += count;
        if count == ticks {
            return Some(at);
        }
    }
    None
}

/// The length of the link `[text](address)` that a text begins with.
fn link(text: &str) -> Option<usize> {
    let (name, after) = text.split_once("](")?;
    let length = after.find(')')?;
    let plain = !name[1..].contains(['[', ']']) && !after[..length].contains([' ', '(']);
    plain.then_some(name.len() + 2 + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(text: &str) -> Vec<String> {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", text);
        docstring(&sources, Span::new(file, 0, 1))
    }

    #[test]
    fn docstrings_are_found_behind_any_signature() {
        assert_eq!(
            doc("def f(A: T.Buffer((N,), \"float32\"), *, N):\n    \"\"\"C = A.\"\"\"\n    pass\n"),
            ["C = A."]
        );
        assert_eq!(
            doc("@T.jit\ndef f(a,  # the (first:\n      b) -> T.int32:\n    'one'\n"),
            ["one"]
        );
        assert!(doc("def f(a):\n    x = 1\n    \"\"\"not a docstring\"\"\"\n").is_empty());
        assert!(doc("").is_empty());
    }

    #[test]
    fn docstrings_become_markdown_that_says_the_same() {
        let text = "def f():\n    r'''Adds A[i].\n\n        indented <T>\n    '''\n";
        assert_eq!(doc(text), ["Adds A\\[i\\].", "", "indented \\<T>"]);
        let text = "def f():\n    \"\"\"Adds `A[i]` to [the sum](https://a.b/c), see https://d.e.\n\n    - one\n      \
                    two ``x`y[0]`` ` [1]\n\n    ```\n    for i:\n        A[i] <T>\n    ```\n    ```rust\n    x\n    \
                    ```\n    \"\"\"\n";
        let expected = [
            "Adds `A[i]` to [the sum](https://a.b/c), see <https://d.e>.",
            "",
            "- one",
            "  two ``x`y[0]`` ` \\[1\\]",
            "",
            "```text",
            "for i:",
            "    A[i] <T>",
            "```",
            "```rust,ignore",
            "x",
            "```",
        ];
        assert_eq!(doc(text), expected);
        // An unclosed fence ends with the text.
        assert_eq!(
            doc("def f():\n    '''a\n    ```c\n    b'''\n"),
            ["a", "```c", "b", "```"]
        );
    }
}
