//! The static properties of a function's text: its parameters and its local names.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use tirx_python::Ranged;
use tirx_python::visitor::{Visitor, walk_expr, walk_stmt};
use tirx_python::{self as ast, Name};

use super::Interpreter;
use super::value::{Code, CodeBody, Parameter, ParameterKind};
use crate::parse::span_of;
use crate::source::FileId;

impl Interpreter {
    /// The code of a `def`; the same object each time the definition runs.
    pub(super) fn code_of_def(&mut self, def: &Arc<ast::StmtFunctionDef>) -> Rc<Code> {
        let key = (self.frame.file, def.range.start().to_u32());
        if let Some(code) = self.session.caches.codes.get(&key) {
            return code.clone();
        }
        let mut names = Names::default();
        def.body.iter().for_each(|s| names.visit_stmt(s));
        let code = Rc::new(Code {
            file: self.frame.file,
            parameters: parameters(self.frame.file, Some(&def.parameters)),
            locals: names.finish(Some(&def.parameters)),
            globals: names.globals,
            nonlocals: names.nonlocals,
            is_generator: names.is_generator,
            span: span_of(self.frame.file, def.name.range),
            body: CodeBody::Def(def.clone()),
        });
        self.session.caches.codes.insert(key, code.clone());
        code
    }

    /// The code of a `lambda`.
    pub(super) fn code_of_lambda(&mut self, lambda: &ast::ExprLambda) -> Rc<Code> {
        let key = (self.frame.file, lambda.range.start().to_u32());
        if let Some(code) = self.session.caches.codes.get(&key) {
            return code.clone();
        }
        let mut names = Names::default();
        names.visit_expr(&lambda.body);
        let parameters_node = lambda.parameters.as_deref();
        let code = Rc::new(Code {
            file: self.frame.file,
            parameters: parameters(self.frame.file, parameters_node),
            locals: names.finish(parameters_node),
            globals: Vec::new(),
            nonlocals: Vec::new(),
            is_generator: false,
            span: span_of(self.frame.file, lambda.range),
            body: CodeBody::Lambda(lambda.clone()),
        });
        self.session.caches.codes.insert(key, code.clone());
        code
    }
}

fn parameters(file: FileId, node: Option<&ast::Parameters>) -> Vec<Parameter> {
    let Some(node) = node else { return Vec::new() };
    let with_default = |p: &ast::ParameterWithDefault, kind| Parameter {
        name: p.parameter.name.id.clone(),
        kind,
        has_default: p.default.is_some(),
        span: span_of(file, p.parameter.name.range()),
    };
    let star = |p: &ast::Parameter, kind| Parameter {
        name: p.name.id.clone(),
        kind,
        has_default: false,
        span: span_of(file, p.name.range()),
    };
    let mut list = Vec::new();
    list.extend(
        node.posonlyargs
            .iter()
            .map(|p| with_default(p, ParameterKind::PositionalOnly)),
    );
    list.extend(
        node.args
            .iter()
            .map(|p| with_default(p, ParameterKind::Positional)),
    );
    list.extend(node.vararg.iter().map(|p| star(p, ParameterKind::VarPositional)));
    list.extend(
        node.kwonlyargs
            .iter()
            .map(|p| with_default(p, ParameterKind::KeywordOnly)),
    );
    list.extend(node.kwarg.iter().map(|p| star(p, ParameterKind::VarKeyword)));
    list
}

/// The default expressions of a parameter list with their positions in [`parameters`].
pub(super) fn default_exprs(node: Option<&ast::Parameters>) -> Vec<(usize, &ast::Expr)> {
    let Some(node) = node else { return Vec::new() };
    let mut list: Vec<Option<&ast::Expr>> = Vec::new();
    list.extend(
        node.posonlyargs
            .iter()
            .chain(&node.args)
            .map(|p| p.default.as_deref()),
    );
    list.extend(node.vararg.iter().map(|_| None));
    list.extend(node.kwonlyargs.iter().map(|p| p.default.as_deref()));
    list.into_iter()
        .enumerate()
        .filter_map(|(i, d)| Some((i, d?)))
        .collect()
}

/// The annotation of each parameter, by position in [`parameters`].
pub(super) fn annotations(node: &ast::Parameters) -> Vec<Option<&ast::Expr>> {
    let mut list: Vec<Option<&ast::Expr>> = Vec::new();
    list.extend(
        node.posonlyargs
            .iter()
            .chain(&node.args)
            .map(|p| p.parameter.annotation.as_deref()),
    );
    list.extend(node.vararg.iter().map(|p| p.annotation.as_deref()));
    list.extend(node.kwonlyargs.iter().map(|p| p.parameter.annotation.as_deref()));
    list.extend(node.kwarg.iter().map(|p| p.annotation.as_deref()));
    list
}

/// Names that a kernel of usual size reads, at most.
const USUAL_NAMES: usize = 56;

/// The names that a definition reads, in its signature, its body and its nested functions.
pub(super) fn read_names(def: &ast::StmtFunctionDef) -> FxHashSet<Name> {
    struct Reads(FxHashSet<Name>);
    impl<'a> Visitor<'a> for Reads {
        fn visit_expr(&mut self, expr: &'a ast::Expr) {
            if let ast::Expr::Name(n) = expr
                && !self.0.contains(&n.id)
            {
                self.0.insert(n.id.clone());
            }
            walk_expr(self, expr);
        }
    }
    let mut reads = Reads(FxHashSet::with_capacity_and_hasher(
        USUAL_NAMES,
        Default::default(),
    ));
    annotations(&def.parameters)
        .into_iter()
        .flatten()
        .chain(def.returns.as_deref())
        .for_each(|e| reads.visit_expr(e));
    def.body.iter().for_each(|s| reads.visit_stmt(s));
    reads.0
}

/// Collects the names that a body assigns, without those of nested functions, classes and comprehensions.
#[derive(Default)]
struct Names {
    assigned: FxHashSet<Name>,
    globals: Vec<Name>,
    nonlocals: Vec<Name>,
    is_generator: bool,
}

impl Names {
    fn finish(&mut self, node: Option<&ast::Parameters>) -> FxHashSet<Name> {
        let mut assigned = std::mem::take(&mut self.assigned);
        for name in self.globals.iter().chain(&self.nonlocals) {
            assigned.remove(name);
        }
        if let Some(node) = node {
            assigned.extend(node.iter().map(|p| p.name.id.clone()));
        }
        assigned
    }
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        match stmt {
            ast::Stmt::FunctionDef(s) => {
                self.assigned.insert(s.name.id.clone());
            }
            ast::Stmt::ClassDef(s) => {
                self.assigned.insert(s.name.id.clone());
            }
            ast::Stmt::Import(s) => {
                for alias in &s.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    let first = name.split('.').next().unwrap_or(name);
                    self.assigned.insert(first.into());
                }
            }
            ast::Stmt::ImportFrom(s) => {
                for alias in &s.names {
                    self.assigned
                        .insert(alias.asname.as_ref().unwrap_or(&alias.name).id.clone());
                }
            }
            ast::Stmt::Global(s) => self.globals.extend(s.names.iter().map(|n| n.id.clone())),
            ast::Stmt::Nonlocal(s) => self.nonlocals.extend(s.names.iter().map(|n| n.id.clone())),
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(h) = handler;
        if let Some(name) = &h.name {
            self.assigned.insert(name.id.clone());
        }
        h.body.iter().for_each(|s| self.visit_stmt(s));
    }

    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        match expr {
            ast::Expr::Name(n) if n.ctx == ast::ExprContext::Store => {
                self.assigned.insert(n.id.clone());
            }
            ast::Expr::Lambda(_)
            | ast::Expr::ListComp(_)
            | ast::Expr::SetComp(_)
            | ast::Expr::DictComp(_)
            | ast::Expr::Generator(_) => {}
            ast::Expr::Yield(_) | ast::Expr::YieldFrom(_) => {
                self.is_generator = true;
                walk_expr(self, expr);
            }
            _ => walk_expr(self, expr),
        }
    }
}

/// Whether a statement contains a `yield` that belongs to the enclosing function.
pub(super) fn has_yield(stmt: &ast::Stmt) -> bool {
    let mut names = Names::default();
    names.visit_stmt(stmt);
    names.is_generator
}

/// Whether an expression contains a `yield` that belongs to the enclosing function.
pub(super) fn expr_has_yield(expr: &ast::Expr) -> bool {
    let mut names = Names::default();
    names.visit_expr(expr);
    names.is_generator
}
