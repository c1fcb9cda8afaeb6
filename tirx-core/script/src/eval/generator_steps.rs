//! The steps of a generator: how a body with `yield` is converted.

use std::cell::RefCell;
use std::rc::Rc;

use tirx_python::visitor::transformer::{Transformer, walk_expr};
use tirx_python::{self as ast, Name};
use tirx_python::{Ranged, TextRange};

/// A part of a generator's body.
pub(super) enum Step {
    /// A statement without `yield`.
    Plain(ast::Stmt),
    /// `yield value`, and the name of its own value.
    Yield(Option<ast::Expr>, Option<Name>),
    /// `yield from value`, and the name of its own value.
    From(ast::Expr, Option<Name>),
    If(ast::Expr, Steps, Steps),
    While(ast::Expr, Steps, Steps),
    /// Target, what is looped over, body, `else`.
    For(ast::Expr, ast::Expr, Steps, Steps),
    Try(Box<TryStep>),
    /// Context, target, body.
    With(ast::Expr, Option<ast::Expr>, Steps),
    /// A `yield` in a position that is not supported.
    Refused(TextRange),
}

pub(super) struct TryStep {
    pub(super) body: Steps,
    /// Class, name, body.
    pub(super) handlers: Vec<(Option<ast::Expr>, Option<Name>, Steps)>,
    pub(super) orelse: Steps,
    pub(super) finally: Steps,
}

pub(super) type Steps = Rc<[Step]>;

/// Builds the steps of a body.
#[derive(Default)]
pub(super) struct StepBuilder {
    pub(super) hidden: RefCell<usize>,
    /// The steps of the `yield`s of an expression.
    pub(super) found: RefCell<Vec<Step>>,
}

impl StepBuilder {
    pub(super) fn block(&self, stmts: &[ast::Stmt]) -> Steps {
        let mut steps = Vec::new();
        for stmt in stmts {
            match super::code::has_yield(stmt) {
                true => self.stmt(stmt, &mut steps),
                false => steps.push(Step::Plain(stmt.clone())),
            }
        }
        steps.into()
    }

    /// An expression with its `yield`s moved out into steps.
    pub(super) fn expr(&self, expr: &ast::Expr, steps: &mut Vec<Step>) -> ast::Expr {
        let mut expr = expr.clone();
        self.visit_expr(&mut expr);
        steps.append(&mut self.found.borrow_mut());
        expr
    }

    fn stmt(&self, stmt: &ast::Stmt, steps: &mut Vec<Step>) {
        match stmt {
            ast::Stmt::If(s) => {
                let test = self.expr(&s.test, steps);
                let orelse = self.clauses(&s.elif_else_clauses);
                steps.push(Step::If(test, self.block(&s.body), orelse));
            }
            ast::Stmt::While(s) => {
                let mut before = Vec::new();
                let test = self.expr(&s.test, &mut before);
                if !before.is_empty() {
                    steps.push(Step::Refused(s.test.range()));
                }
                steps.push(Step::While(test, self.block(&s.body), self.block(&s.orelse)));
            }
            ast::Stmt::For(s) => {
                let iter = self.expr(&s.iter, steps);
                let (body, orelse) = (self.block(&s.body), self.block(&s.orelse));
                steps.push(Step::For((*s.target).clone(), iter, body, orelse));
            }
            ast::Stmt::Try(s) => {
                let handlers = s.handlers.iter().map(|handler| {
                    let ast::ExceptHandler::ExceptHandler(h) = handler;
                    let name = h.name.as_ref().map(|n| n.id.clone());
                    (h.type_.as_deref().cloned(), name, self.block(&h.body))
                });
                steps.push(Step::Try(Box::new(TryStep {
                    body: self.block(&s.body),
                    handlers: handlers.collect(),
                    orelse: self.block(&s.orelse),
                    finally: self.block(&s.finalbody),
                })));
            }
            ast::Stmt::With(s) => {
                let body = s.items.iter().rev().fold(self.block(&s.body), |body, item| {
                    let mut inner = Vec::new();
                    let context = self.expr(&item.context_expr, &mut inner);
                    inner.push(Step::With(context, item.optional_vars.as_deref().cloned(), body));
                    inner.into()
                });
                steps.push(Step::If(
                    ast::Expr::BooleanLiteral(ast::ExprBooleanLiteral {
                        range: s.range,
                        value: true,
                    }),
                    body,
                    Rc::new([]),
                ));
            }
            // The value is not used.
            ast::Stmt::Expr(s) if matches!(&*s.value, ast::Expr::Yield(_) | ast::Expr::YieldFrom(_)) => {
                self.expr(&s.value, steps);
            }
            other => {
                let mut stmt = other.clone();
                self.visit_stmt(&mut stmt);
                steps.append(&mut self.found.borrow_mut());
                steps.push(Step::Plain(stmt));
            }
        }
    }

    /// `elif` and `else`.
    fn clauses(&self, clauses: &[ast::ElifElseClause]) -> Steps {
        let Some((first, rest)) = clauses.split_first() else {
            return Rc::new([]);
        };
        match &first.test {
            None => self.block(&first.body),
            Some(test) => {
                let mut steps = Vec::new();
                let test = self.expr(test, &mut steps);
                steps.push(Step::If(test, self.block(&first.body), self.clauses(rest)));
                steps.into()
            }
        }
    }

    /// A part of an expression that is evaluated conditionally must not contain a `yield`.
    fn refuse(&self, expr: &ast::Expr) {
        if super::code::expr_has_yield(expr) {
            self.found.borrow_mut().push(Step::Refused(expr.range()));
        }
    }

    fn name(&self) -> Name {
        *self.hidden.borrow_mut() += 1;
        format!(".yield{}", self.hidden.borrow()).into()
    }
}

impl Transformer for StepBuilder {
    fn visit_expr(&self, expr: &mut ast::Expr) {
        match expr {
            // Nested functions have their own `yield`s.
            ast::Expr::Lambda(_)
            | ast::Expr::ListComp(_)
            | ast::Expr::SetComp(_)
            | ast::Expr::DictComp(_)
            | ast::Expr::Generator(_) => return,
            // Whether these run is decided within the expression.
            ast::Expr::BoolOp(e) => {
                if let Some((first, rest)) = e.values.split_first_mut() {
                    self.visit_expr(first);
                    rest.iter().for_each(|e| self.refuse(e));
                }
                return;
            }
            ast::Expr::If(e) => {
                self.visit_expr(&mut e.test);
                self.refuse(&e.body);
                self.refuse(&e.orelse);
                return;
            }
            _ => walk_expr(self, expr),
        }
        let range = expr.range();
        if !matches!(expr, ast::Expr::Yield(_) | ast::Expr::YieldFrom(_)) {
            return;
        }
        let name = self.name();
        let step = match expr {
            ast::Expr::Yield(e) => Step::Yield(e.value.take().map(|v| *v), Some(name.clone())),
            ast::Expr::YieldFrom(e) => Step::From((*e.value).clone(), Some(name.clone())),
            _ => return,
        };
        self.found.borrow_mut().push(step);
        *expr = ast::Expr::Name(ast::ExprName {
            range,
            id: name,
            ctx: ast::ExprContext::Load,
        });
    }
}
