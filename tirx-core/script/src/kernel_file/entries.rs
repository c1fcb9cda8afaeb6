//! Which definitions of a kernel file can be built, and how they are named.

use std::rc::Rc;

use tirx_python as ast;
use tirx_python::visitor::{Visitor, walk_expr, walk_stmt};

use crate::eval::constant::{ConstValue, from_value};
use crate::eval::{FunctionMode, Interpreter, Kernel, ParameterKind, ParameterRole, Scope, Value, held};
use crate::source::{FileId, Span};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// `@T.prim_func`, or a `@T.jit` that the file has specialized.
    PrimFunc,
    /// `@T.jit`.
    Jit,
    /// `@I.ir_module`.
    Module,
    /// A function of the file that makes kernels and returns them.
    Function,
}

/// A `T.constexpr` parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstexprParam {
    /// Its name.
    pub name: String,
    /// Its default, where it has one that can be given as a constant.
    pub default: Option<ConstValue>,
    /// Whether a value must be given.
    pub required: bool,
}

/// A definition of a kernel file that can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name in the file.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Its compile-time parameters.
    pub constexprs: Vec<ConstexprParam>,
    /// Its `T.Optional` parameters: the value `None` leaves a parameter out of the built kernel; no other value is
    /// possible.
    pub optionals: Vec<String>,
    /// Whether it takes values of any other name too, as a function with `**kwargs` does.
    pub open: bool,
    /// Its definition.
    pub span: Span,
}

impl Entry {
    /// The parameters that a specialization may name, those with `T.constexpr` first.
    pub fn specializable(&self) -> impl Iterator<Item = &str> {
        let constexprs = self.constexprs.iter().map(|p| p.name.as_str());
        constexprs.chain(self.optionals.iter().map(String::as_str))
    }

    /// Whether a specialization may give a value of this name.
    pub fn takes(&self, name: &str) -> bool {
        self.open || self.specializable().any(|known| known == name)
    }

    /// The value that a string of a specialization stands for where the parameter takes no strings: `"None"` for a
    /// `T.Optional` parameter, in formats that have no null.
    pub fn value_of(&self, name: &str, value: &ConstValue) -> ConstValue {
        match value {
            ConstValue::Str(text) if text == "None" && self.optionals.iter().any(|o| o == name) => {
                ConstValue::None
            }
            other => other.clone(),
        }
    }
}

/// A kernel or module that a name of the file holds.
pub(super) struct Found {
    pub(super) name: String,
    value: Value,
    span: Span,
}

/// The kernels and modules among the names of a file, in order of definition; of several names of one kernel the
/// one it was defined with.
pub(super) fn find_entries(scope: &Rc<Scope>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (name, value) in scope.vars.borrow().iter() {
        for h in held(value) {
            let span = match &h.value {
                Value::Kernel(k) => k.code.span,
                other => Interpreter::module_span(other).unwrap_or(Span::NONE),
            };
            found.push(Found {
                name: h.key.map_or(name.to_string(), |key| format!("{name}[{key}]")),
                value: h.value,
                span,
            });
        }
    }
    let own_name = |f: &Found| matches!(&f.value, Value::Kernel(k) if *k.name == *f.name);
    found.sort_by(|a, b| {
        let key = |f: &Found| (f.span.file, f.span.start, !own_name(f), f.name.contains('['));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    let mut unique: Vec<Found> = Vec::new();
    for f in found {
        let known = unique.iter().any(|u| match (&u.value, &f.value) {
            (Value::Kernel(a), Value::Kernel(b)) => Rc::ptr_eq(a, b),
            (Value::Object(a), Value::Object(b)) => Rc::ptr_eq(a, b),
            _ => false,
        });
        if !known {
            unique.push(f);
        }
    }
    unique
}

impl Found {
    /// How many kernels are decorated before it.
    pub(super) fn number(&self) -> Option<usize> {
        match &self.value {
            Value::Kernel(k) => Some(k.number),
            _ => None,
        }
    }

    pub(super) fn describe(self, interp: &mut Interpreter) -> Entry {
        let mut entry = Entry {
            name: self.name,
            kind: EntryKind::Module,
            constexprs: Vec::new(),
            optionals: Vec::new(),
            open: false,
            span: self.span,
        };
        if let Value::Kernel(kernel) = &self.value {
            describe_kernel(interp, kernel, &mut entry);
        }
        entry
    }
}

fn describe_kernel(interp: &mut Interpreter, kernel: &Rc<Kernel>, entry: &mut Entry) {
    let (mut constexprs, mut optionals) = (Vec::new(), Vec::new());
    for (name, role, default, _) in interp.kernel_parameters(kernel) {
        let given = kernel
            .constexprs
            .iter()
            .find(|c| c.0 == name)
            .map(|c| c.1.clone());
        if role == ParameterRole::Constexpr {
            let default = given.or(default);
            constexprs.push(ConstexprParam {
                name: name.to_string(),
                required: default.is_none(),
                default: default.as_ref().and_then(from_value),
            });
        } else if role == ParameterRole::Optional && given.is_none() {
            optionals.push(name.to_string());
        }
    }
    let specialized = !kernel.constexprs.is_empty() && constexprs.iter().all(|c| !c.required);
    entry.kind = EntryKind::PrimFunc;
    if kernel.is_jit && !specialized {
        entry.kind = EntryKind::Jit;
        entry.constexprs = constexprs;
        entry.optionals = optionals;
    }
}

/// Another spelling of an entry, `make["forward"]` or `make.forward`, as `make[forward]`.
pub(super) fn canonical(name: &str) -> String {
    let bare = |key: &str| key.trim().trim_matches(['"', '\'']).to_string();
    if let Some((base, rest)) = name.split_once('[') {
        let keys: Vec<String> = rest
            .split('[')
            .flat_map(|key| key.trim_end_matches(']').split(','))
            .map(bare)
            .filter(|key| !key.is_empty())
            .collect();
        return format!("{}[{}]", base.trim(), keys.join("_"));
    }
    match name.split_once('.') {
        Some((base, key)) => format!("{base}[{}]", bare(key)),
        None => name.to_string(),
    }
}

/// The functions of the file, in order of definition.
pub(super) fn find_functions(scope: &Rc<Scope>, file: FileId) -> Vec<Entry> {
    let mut functions: Vec<Entry> = Vec::new();
    for (name, value) in scope.vars.borrow().iter() {
        let Value::Function(f) = value else { continue };
        if f.mode != FunctionMode::Meta || f.code.body.def().is_none() {
            continue;
        }
        let constexprs = f.code.parameters.iter().enumerate().filter_map(|(at, p)| {
            if matches!(p.kind, ParameterKind::VarPositional | ParameterKind::VarKeyword) {
                return None;
            }
            let default = f.defaults.iter().find(|(i, _)| *i == at).map(|(_, v)| v);
            Some(ConstexprParam {
                name: p.name.to_string(),
                required: default.is_none(),
                default: default.and_then(from_value),
            })
        });
        functions.push(Entry {
            name: name.to_string(),
            kind: EntryKind::Function,
            constexprs: constexprs.collect(),
            optionals: Vec::new(),
            open: f
                .code
                .parameters
                .iter()
                .any(|p| p.kind == ParameterKind::VarKeyword),
            span: f.code.span,
        });
    }
    functions.sort_by_key(|f| (f.span.file != file, f.span.file, f.span.start));
    functions
}

/// Whether the text of a function decorates or specializes a kernel, or calls one of `known`.
pub(super) fn makes_kernels(def: &ast::StmtFunctionDef, known: &[&str]) -> bool {
    struct Search<'a>(&'a [&'a str], bool);
    fn last_name(e: &ast::Expr) -> &str {
        match e {
            ast::Expr::Name(n) => n.id.as_str(),
            ast::Expr::Attribute(a) => a.attr.as_str(),
            ast::Expr::Call(c) => last_name(&c.func),
            _ => "",
        }
    }
    impl<'a> Visitor<'a> for Search<'_> {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            let decorators = match stmt {
                ast::Stmt::FunctionDef(s) => &s.decorator_list[..],
                ast::Stmt::ClassDef(s) => &s.decorator_list[..],
                _ => &[],
            };
            self.1 |= decorators
                .iter()
                .any(|d| matches!(last_name(&d.expression), "prim_func" | "jit" | "ir_module"));
            walk_stmt(self, stmt);
        }
        fn visit_expr(&mut self, expr: &'a ast::Expr) {
            if let ast::Expr::Call(call) = expr {
                self.1 |= match &*call.func {
                    ast::Expr::Attribute(a) => a.attr.as_str() == "specialize",
                    ast::Expr::Name(n) => self.0.contains(&n.id.as_str()),
                    _ => false,
                };
            }
            walk_expr(self, expr);
        }
    }
    let mut search = Search(known, false);
    def.body.iter().for_each(|s| search.visit_stmt(s));
    search.1
}
