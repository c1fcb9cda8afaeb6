//! Names of variables and buffers at the current position of the printer: unique, and released when a scope ends.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Buffer, Var};

/// Names that printed text uses itself, and Python's keywords.
const RESERVED: &[&str] = &[
    "I", "T", "R", "Axis", "Module", "cls", "range", "metadata", "False", "None", "True", "and", "as",
    "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
    "pass", "raise", "return", "try", "while", "with", "yield",
];

/// A buffer's name and form.
#[derive(Clone)]
pub(super) struct BufferName {
    /// What it is called.
    pub(super) text: Rc<str>,
    /// Whether it is printed as a scalar: read and written by name.
    pub(super) scalar: bool,
    /// Whether the function's signature declares it.
    pub(super) parameter: bool,
}

/// A definition of a scope, to be undone at its end.
enum Definition {
    Name {
        text: Rc<str>,
        base: Rc<str>,
        suffix: u32,
    },
    Var(Var),
    Buffer(Buffer),
}

/// The visible names.
pub(super) struct Names {
    vars: FxHashMap<Var, Rc<str>>,
    buffers: FxHashMap<Buffer, BufferName>,
    /// Visible buffers over a data pointer, in order of declaration.
    by_data: FxHashMap<Var, Vec<Buffer>>,
    taken: FxHashSet<Rc<str>>,
    /// For a base name, a suffix below which none is free (0 is the bare name).
    next: FxHashMap<Rc<str>, u32>,
    scopes: Vec<Vec<Definition>>,
}

impl Names {
    pub(super) fn new() -> Names {
        Names {
            vars: FxHashMap::default(),
            buffers: FxHashMap::default(),
            by_data: FxHashMap::default(),
            taken: RESERVED.iter().map(|s| Rc::from(*s)).collect(),
            next: FxHashMap::default(),
            scopes: vec![Vec::new()],
        }
    }

    pub(super) fn enter(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(super) fn leave(&mut self) {
        for definition in self.scopes.pop().unwrap_or_default().into_iter().rev() {
            match definition {
                Definition::Name { text, base, suffix } => {
                    self.taken.remove(&text);
                    let next = self.next.entry(base).or_default();
                    *next = (*next).min(suffix);
                }
                Definition::Var(var) => {
                    self.vars.remove(&var);
                }
                Definition::Buffer(buffer) => {
                    if let Some(list) = self.by_data.get_mut(&buffer.data) {
                        list.retain(|b| *b != buffer);
                    }
                    self.buffers.remove(&buffer);
                }
            }
        }
    }

    fn record(&mut self, definition: Definition) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(definition);
        }
    }

    /// A free name like `hint`, taken until the scope ends: `A`, then `A_1`, `A_2`, …
    pub(super) fn fresh(&mut self, hint: &str) -> Rc<str> {
        let valid = |c: char| c == '_' || c.is_alphanumeric();
        let mut base: String = hint.chars().map(|c| if valid(c) { c } else { '_' }).collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, 'v');
        }
        let base: Rc<str> = base.into();
        let mut suffix = self.next.get(&base).copied().unwrap_or(0);
        let text: Rc<str> = loop {
            let text: Rc<str> = if suffix == 0 {
                base.clone()
            } else {
                format!("{base}_{suffix}").into()
            };
            if !self.taken.contains(&text) {
                break text;
            }
            suffix += 1;
        };
        self.taken.insert(text.clone());
        self.next.insert(base.clone(), suffix);
        self.record(Definition::Name {
            text: text.clone(),
            base,
            suffix,
        });
        text
    }

    /// Names a variable.
    pub(super) fn define_var(&mut self, var: &Var) -> Rc<str> {
        let text = self.fresh(var.name());
        self.define_var_as(var, text.clone());
        text
    }

    /// Lets a variable be printed as an expression such as `A.elem_offset`.
    pub(super) fn define_var_as(&mut self, var: &Var, text: Rc<str>) {
        self.vars.insert(var.clone(), text);
        self.record(Definition::Var(var.clone()));
    }

    /// Names a buffer.
    pub(super) fn define_buffer(&mut self, buffer: &Buffer, scalar: bool, parameter: bool) -> Rc<str> {
        let text = self.fresh(&buffer.name);
        self.buffers.insert(
            buffer.clone(),
            BufferName {
                text: text.clone(),
                scalar,
                parameter,
            },
        );
        self.by_data
            .entry(buffer.data.clone())
            .or_default()
            .push(buffer.clone());
        self.record(Definition::Buffer(buffer.clone()));
        text
    }

    pub(super) fn buffer(&self, buffer: &Buffer) -> Option<&BufferName> {
        self.buffers.get(buffer)
    }

    /// The text of a variable: its name, or `A.data` where it is the pointer of a visible buffer. A flattened view
    /// takes precedence over the pointer's own name, and that over the parameter it was made from.
    pub(super) fn var(&self, var: &Var) -> Option<Rc<str>> {
        if let Some(buffer) = self.view(var) {
            return Some(self.data_of(buffer));
        }
        let root = || Some(self.data_of(self.by_data.get(var)?.first()?));
        self.vars.get(var).cloned().or_else(root)
    }

    /// Whether a variable can be named.
    pub(super) fn knows(&self, var: &Var) -> bool {
        self.vars.contains_key(var) || self.by_data.get(var).is_some_and(|b| !b.is_empty())
    }

    /// The buffer that a view over `data` is derived from in text.
    pub(super) fn parent(&self, data: &Var) -> Option<&Buffer> {
        self.view(data).or_else(|| self.by_data.get(data)?.first())
    }

    fn view(&self, data: &Var) -> Option<&Buffer> {
        let list = self.by_data.get(data)?;
        if list.first()?.layout.is_some() {
            return None;
        }
        list.iter()
            .find(|b| b.layout.is_none() && self.buffers.get(*b).is_some_and(|n| !n.parameter))
    }

    fn data_of(&self, buffer: &Buffer) -> Rc<str> {
        let name = self.buffers.get(buffer).map_or("", |n| &n.text);
        format!("{name}.data").into()
    }
}
