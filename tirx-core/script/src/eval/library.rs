//! Modules of Python's own that are written in Python: they run when a name of theirs is first asked for.

use super::scope::ScopeKind;
use super::value::Value;
use super::{Interpreter, Mode, Scope};
use crate::diagnostic::{Result, error};
use crate::parse::{LIBRARY_FILE, parse_file};
use crate::source::{FileId, Span};

/// Texts by module. Errors in them are shown at the call in the kernel file.
const TEXTS: &[(&str, &str)] = &[
    ("itertools", include_str!("library/itertools.py")),
    ("functools", include_str!("library/functools.py")),
    ("operator", include_str!("library/operator.py")),
    ("collections", include_str!("library/collections.py")),
];

/// The names that the text of a module defines.
pub(super) fn names(path: &str) -> impl Iterator<Item = &'static str> {
    let text = TEXTS
        .iter()
        .find(|(p, _)| *p == path)
        .map_or("", |(_, text)| text);
    let defined = text.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("def ")
            .or_else(|| line.strip_prefix("class "))?;
        rest.split(['(', ':']).next()
    });
    defined.filter(|name| !name.starts_with('_'))
}

impl Interpreter {
    /// `path.name`, where a text of the library defines it.
    pub(super) fn library_name(&mut self, path: &str, name: &str, span: Span) -> Result<Option<Value>> {
        if !names(path).any(|n| n == name) {
            return Ok(None);
        }
        let Some(at) = TEXTS.iter().position(|(p, _)| *p == path) else {
            return Ok(None);
        };
        if let Some(scope) = self.library.get(&at) {
            return Ok(scope.get_own(name));
        }
        let file = FileId(LIBRARY_FILE.0 + at as u32);
        let Ok(parsed) = parse_file(file, TEXTS[at].1) else {
            return error(span, format!("module \"{path}\" is broken"));
        };
        self.modules.insert(file, parsed.module.clone());
        let scope = Scope::new(ScopeKind::Module, None);
        self.library.insert(at, scope.clone());
        let saved_file = std::mem::replace(&mut self.file, file);
        let saved_scope = std::mem::replace(&mut self.scope, scope.clone());
        let saved_mode = std::mem::replace(&mut self.mode, Mode::Meta);
        let saved_match = self.match_names.take();
        self.close_over();
        let result = self.exec_block(&parsed.module.body);
        self.match_names = saved_match;
        self.mode = saved_mode;
        self.scope = saved_scope;
        self.file = saved_file;
        result?;
        Ok(scope.get_own(name))
    }
}
