//! The text of a library module in parts: its head (documentation and imports), and each definition with its decorators.
//!
//! A part begins at a line that starts with a definition's first word, with `@`, or with a name that is assigned to. Each is
//! parsed once in a process, when it is first wanted.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use tirx_python as ast;

use super::TEXTS;
use crate::parse::LIBRARY_FILE;
use crate::source::FileId;

/// A module's parts.
pub(super) struct Parts {
    parts: Vec<Part>,
}

/// A part of a module's text.
pub(super) struct Part {
    /// Each part is a file of its own, so that the places in it are those of no other one.
    pub(super) file: FileId,
    /// The name that it defines; none for the head.
    name: &'static str,
    text: &'static str,
    body: OnceLock<Vec<ast::Stmt>>,
}

impl Parts {
    /// The parts of the module with this number in [`TEXTS`].
    pub(super) fn from_module(module: usize) -> &'static Parts {
        static ALL: LazyLock<Vec<OnceLock<Parts>>> =
            LazyLock::new(|| TEXTS.iter().map(|_| OnceLock::new()).collect());
        ALL[module].get_or_init(|| Parts::divided(module))
    }

    fn divided(module: usize) -> Parts {
        let text = TEXTS[module].1;
        let mut parts = Vec::new();
        let mut add = |name: &'static str, range: Range<usize>| {
            parts.push(Part {
                file: FileId(LIBRARY_FILE.0 + module as u32 * MAX_PARTS + parts.len() as u32),
                name,
                text: &text[range],
                body: OnceLock::new(),
            });
        };
        let (mut start, mut name, mut place) = (0, "", 0);
        // Where the decorators of the next definition began.
        let mut decorated = None;
        for line in text.split_inclusive('\n') {
            if line.starts_with('@') {
                decorated = decorated.or(Some(place));
            } else if let Some(defined) = defined_by(line) {
                let from = decorated.take().unwrap_or(place);
                add(name, start..from);
                (start, name) = (from, defined);
            }
            place += line.len();
        }
        add(name, start..text.len());
        Parts { parts }
    }

    /// The part that is before the first definition.
    pub(super) fn head(&'static self) -> &'static Part {
        &self.parts[0]
    }

    /// The definition of a name.
    pub(super) fn defining(&'static self, name: &str) -> Option<&'static Part> {
        self.parts[1..].iter().find(|part| part.name == name)
    }

    /// The names that are defined.
    pub(super) fn names(&'static self) -> impl Iterator<Item = &'static str> {
        self.parts[1..].iter().map(|part| part.name)
    }
}

impl Part {
    /// Its statements.
    pub(super) fn body(&'static self) -> &'static [ast::Stmt] {
        self.body.get_or_init(|| {
            let parsed = ast::parse_module(self.text, ast::Limits::STACK);
            parsed.expect("a test parses every part of the library").body
        })
    }
}

/// The files that each module has for its parts.
const MAX_PARTS: u32 = 256;

/// The name that a line at the outermost level defines.
fn defined_by(line: &'static str) -> Option<&'static str> {
    let definition = line.strip_prefix("def ").or_else(|| line.strip_prefix("class "));
    if let Some(rest) = definition {
        return rest.split(['(', ':']).next();
    }
    let (name, _) = line.split_once(" = ")?;
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of each module are its statements, and each defines its one name.
    #[test]
    fn parts_are_the_whole_text() {
        for (module, (path, text)) in TEXTS.iter().enumerate() {
            let whole = ast::parse_module(text, ast::Limits::STACK).expect("the library has no mistakes");
            let parts = Parts::from_module(module);
            assert!(parts.parts.len() <= MAX_PARTS as usize, "{path}");
            let statements: usize = parts.parts.iter().map(|part| part.body().len()).sum();
            assert_eq!(statements, whole.body.len(), "{path}");
            for part in &parts.parts[1..] {
                let defined = match part.body() {
                    [ast::Stmt::FunctionDef(def)] => def.name.as_str(),
                    [ast::Stmt::ClassDef(def)] => def.name.as_str(),
                    [ast::Stmt::Assign(assign)] => match &assign.targets[..] {
                        [ast::Expr::Name(target)] => target.id.as_str(),
                        _ => panic!("{path}: {}", part.text),
                    },
                    _ => panic!("{path}: {}", part.text),
                };
                assert_eq!(part.name, defined, "{path}");
                let same = parts.names().filter(|name| *name == defined).count();
                assert_eq!(same, 1, "{path} defines {defined} twice");
            }
        }
    }
}
