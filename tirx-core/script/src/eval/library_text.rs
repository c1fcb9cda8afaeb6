//! What the library's Python texts define, for documentation: public classes with their methods, and functions.

use super::library::TEXTS;

/// A definition.
pub(crate) struct Defined {
    /// `Pipeline`, `MBarrier.arrive`, `mma_shared_layout`.
    pub(crate) name: String,
    /// `(stage, phase)`, without `self`; empty for a property.
    pub(crate) signature: String,
    /// The first paragraph of its documentation.
    pub(crate) documentation: String,
    /// The module of a definition that is no method.
    pub(crate) module: &'static str,
}

/// The public definitions of the modules that kernels use.
pub(crate) fn documented() -> Vec<Defined> {
    let of_kernels = |path: &&(&'static str, &'static str)| {
        path.0.starts_with("tvm.backend") || ["tvm.tirx.bench", "layout"].contains(&path.0)
    };
    let mut all = Vec::new();
    for (path, text) in TEXTS.iter().filter(of_kernels) {
        let module = match *path {
            "layout" => "tvm.tirx.layout",
            path => path,
        };
        read(module, text, &mut all);
    }
    all
}

fn read(module: &'static str, text: &str, all: &mut Vec<Defined>) {
    let lines: Vec<&str> = text.lines().collect();
    // The class that a method belongs to, and where it is among the definitions.
    let mut class: Option<(String, usize)> = None;
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let is_member = line.starts_with("    ") && !line.starts_with("     ");
        if let Some(rest) = line.strip_prefix("class ") {
            let name = rest.split(['(', ':']).next().unwrap_or_default();
            class = None;
            if !name.starts_with('_') {
                class = Some((name.to_string(), all.len()));
                all.push(Defined {
                    name: name.to_string(),
                    signature: String::new(),
                    documentation: documentation(&lines[at + 1..]),
                    module,
                });
            }
        } else if let Some(rest) = body.strip_prefix("def ")
            && (is_member || !line.starts_with(' '))
        {
            let (name, _) = rest.split_once('(').unwrap_or((rest, ""));
            let (signature, end) = signature(&lines[at..]);
            match &class {
                Some((_, place)) if is_member && name == "__init__" => all[*place].signature = signature,
                _ if name.starts_with('_') => {}
                Some((of, _)) if is_member => all.push(Defined {
                    name: format!("{of}.{name}"),
                    signature: match lines[..at].last().is_some_and(|line| line.trim() == "@property") {
                        true => String::new(),
                        false => signature,
                    },
                    documentation: documentation(&lines[at + end..]),
                    module: "",
                }),
                _ if !is_member => {
                    class = None;
                    all.push(Defined {
                        name: name.to_string(),
                        signature,
                        documentation: documentation(&lines[at + end..]),
                        module,
                    });
                }
                _ => {}
            }
        }
    }
}

/// The parameters of the `def` that begins here, without `self`, and the number of its lines.
fn signature(lines: &[&str]) -> (String, usize) {
    let (mut text, mut depth, mut count) = (String::new(), 0i32, 0);
    'lines: for line in lines {
        count += 1;
        for c in line.trim().chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if depth > 0 && !(depth == 1 && c == '(' && text.is_empty()) {
                text.push(c);
            }
            if depth == 0 && c == ')' {
                break 'lines;
            }
        }
        if text.ends_with(',') {
            text.push(' ');
        }
    }
    let parameters = text.trim().trim_end_matches(',');
    let own = parameters.strip_prefix("self").unwrap_or(parameters);
    (format!("({})", own.trim_start_matches(',').trim()), count)
}

/// The first paragraph of the documentation that stands first in these lines, in one line.
fn documentation(lines: &[&str]) -> String {
    let mut lines = lines.iter().map(|line| line.trim());
    let Some(first) = lines.next().and_then(|line| line.strip_prefix("\"\"\"")) else {
        return String::new();
    };
    let mut text = first.to_string();
    while !text.contains("\"\"\"") {
        match lines.next() {
            Some(line) if !line.is_empty() => text = format!("{text} {line}"),
            _ => break,
        }
    }
    text.split("\"\"\"").next().unwrap_or_default().trim().to_string()
}
