//! Scopes: names and their values.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use tirx_python::Name;

use super::Value;
use super::value::Code;

/// The kind of a scope.
pub enum ScopeKind {
    /// A kernel file.
    Module,
    /// A module of the library, by its number: its definitions run when their names are first used.
    Library(usize),
    /// A function that runs as Python.
    Function(Rc<Code>),
    /// A class body: its names are not seen from the methods. It holds them in the order of their assignments.
    Class(RefCell<Vec<Name>>),
    /// The body of a kernel or of a statement in it: its names end with it.
    Block,
    /// A comprehension.
    Comprehension,
}

/// One level of names.
pub struct Scope {
    /// Its names.
    pub vars: RefCell<FxHashMap<Name, Value>>,
    /// The level around it.
    pub parent: Option<Rc<Scope>>,
    /// What it belongs to.
    pub kind: ScopeKind,
}

impl Scope {
    /// A new level.
    pub fn new(kind: ScopeKind, parent: Option<Rc<Scope>>) -> Rc<Scope> {
        #[cfg(test)]
        living::add(1);
        let names = match &kind {
            ScopeKind::Function(code) => code.locals.len(),
            _ => 0,
        };
        Rc::new(Scope {
            vars: RefCell::new(FxHashMap::with_capacity_and_hasher(names, Default::default())),
            parent,
            kind,
        })
    }

    /// The name's value in this level alone.
    pub fn get_own(&self, name: &str) -> Option<Value> {
        self.vars.borrow().get(name).cloned()
    }

    /// Sets the name in this level.
    pub fn set(&self, name: impl Into<Name>, value: Value) {
        self.vars.borrow_mut().insert(name.into(), value);
    }

    /// The name's value here or in an enclosing scope. Enclosing class scopes are skipped, as in Python.
    pub fn lookup(self: &Rc<Scope>, name: &str) -> Option<Value> {
        let mut scope = self;
        let mut first = true;
        loop {
            if (first || !matches!(scope.kind, ScopeKind::Class(_)))
                && let Some(v) = scope.get_own(name)
            {
                return Some(v);
            }
            first = false;
            scope = scope.parent.as_ref()?;
        }
    }

    /// The level of the file.
    pub fn module(self: &Rc<Scope>) -> Rc<Scope> {
        let mut scope = self;
        while let Some(parent) = &scope.parent {
            scope = parent;
        }
        scope.clone()
    }

    /// All names that are visible here, unordered.
    pub fn visible(self: &Rc<Scope>) -> Vec<String> {
        let mut names = Vec::new();
        let mut scope = Some(self);
        while let Some(s) = scope {
            names.extend(s.vars.borrow().keys().map(|n| n.to_string()));
            scope = s.parent.as_ref();
        }
        names
    }

    /// A scope in front of this one that captures the present values of `names`. A name without a value yet is looked
    /// up when it is read.
    pub fn captured(self: &Rc<Scope>, names: impl IntoIterator<Item = Name>) -> Rc<Scope> {
        let captured = Scope::new(ScopeKind::Block, Some(self.clone()));
        for name in names {
            let mut level = Some(self);
            while let Some(scope) = level {
                if !matches!(scope.kind, ScopeKind::Class(_))
                    && let Some(value) = scope.get_own(&name)
                {
                    captured.set(name, value);
                    break;
                }
                level = scope.parent.as_ref();
            }
        }
        captured
    }

    /// A copy of everything visible from here, unaffected by later assignments.
    pub fn snapshot(self: &Rc<Scope>) -> Rc<Scope> {
        let mut levels = Vec::new();
        let mut scope = Some(self);
        while let Some(s) = scope {
            levels.push(s);
            scope = s.parent.as_ref();
        }
        let mut vars = FxHashMap::default();
        for level in levels.into_iter().rev() {
            vars.extend(level.vars.borrow().iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        #[cfg(test)]
        living::add(1);
        Rc::new(Scope {
            vars: RefCell::new(vars),
            parent: None,
            kind: ScopeKind::Module,
        })
    }
}

/// How many scopes are alive, for a test that cycles are freed; only tests count them.
pub(crate) mod living {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<i64> = const { Cell::new(0) };
    }

    pub(crate) fn add(n: i64) {
        COUNT.set(COUNT.get() + n);
    }

    pub(crate) fn count() -> i64 {
        COUNT.get()
    }

    #[cfg(test)]
    impl Drop for super::Scope {
        fn drop(&mut self) {
            add(-1);
        }
    }
}
