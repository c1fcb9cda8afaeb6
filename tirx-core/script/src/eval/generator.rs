//! Generators: functions with `yield`, and generator expressions.
//!
//! A generator is suspended in the middle of its body, so the body cannot run on the stack of the evaluator: it is
//! converted to [`Step`]s, and the state of execution is a list of [`Frame`]s. Only statements that contain a `yield`
//! are converted; each other statement is one step, which the evaluator runs as usual. A `yield` within an expression
//! becomes a step before the statement, and its value gets a name that no kernel file can contain.

use std::cell::RefCell;
use std::rc::Rc;

use ruff_python_ast::visitor::transformer::{Transformer, walk_expr};
use ruff_python_ast::{self as ast, name::Name};
use ruff_text_size::{Ranged, TextRange};

use super::iter::{Iter, Resume};
use super::stmt::Flow;
use super::value::{Code, Value};
use super::{Args, CallInfo, Interpreter, Mode, Raised, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::{FileId, Span};

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
    body: Steps,
    /// Class, name, body.
    handlers: Vec<(Option<ast::Expr>, Option<Name>, Steps)>,
    orelse: Steps,
    finally: Steps,
}

pub(super) type Steps = Rc<[Step]>;

/// The execution state of a generator: a stack of frames. All but blocks refer to their step as step number `.1` of
/// `.0`.
enum Frame {
    Block(Steps, usize),
    While(Steps, usize),
    For(Steps, usize, Rc<Iter>),
    /// The iterator of a `yield from`.
    From(Steps, usize, Rc<Iter>),
    Try(Steps, usize, Phase),
    /// The context.
    With(Steps, usize, Value),
}

enum Phase {
    Body,
    Else,
    Handler,
    /// How the statement ends after its `finally` block.
    Finally(Result<Flow>, Option<(String, Raised)>),
}

/// A suspended generator.
pub(super) struct Generator {
    name: Rc<str>,
    file: FileId,
    scope: Rc<Scope>,
    /// The call that it belongs to; `None` for a generator expression.
    call: Option<(Option<Rc<super::Class>>, Option<Value>)>,
    frames: Vec<Frame>,
    /// The name that receives the value of the `yield`.
    waiting: Option<Name>,
    /// Exceptions that it handles.
    handling: Vec<Value>,
    returned: Value,
}

impl Generator {
    /// What it returned.
    pub(super) fn take_returned(&mut self) -> Value {
        std::mem::replace(&mut self.returned, Value::None)
    }
}

impl Interpreter {
    /// The generator that the running call of a function with `yield` gives.
    pub(super) fn make_generator(&mut self, code: &Rc<Code>) -> Result<Value> {
        if self.mode == Mode::Kernel {
            return error(
                code.span,
                "a @T.inline cannot be a generator: its \"yield\" has no meaning in a kernel",
            );
        }
        let Some(def) = code.body.def() else {
            return error(code.span, "a generator needs a body");
        };
        let key = (code.file, def.range);
        let steps = match self.generators.get(&key) {
            Some(steps) => steps.clone(),
            None => {
                let steps = Layout::default().block(&def.body);
                self.generators.insert(key, steps.clone());
                steps
            }
        };
        self.close_over();
        let call = self.calls.last().map(|c| (c.class.clone(), c.receiver.clone()));
        let name = def.name.as_str().into();
        Ok(self.start_generator(name, call, vec![Frame::Block(steps, 0)]))
    }

    /// `(element for target in iterable …)`: the first iterable is evaluated immediately, everything else later.
    pub(super) fn generator_expression(&mut self, e: &ast::ExprGenerator, span: Span) -> Result<Value> {
        let Some(first) = e.generators.first() else {
            return error(span, "a comprehension needs a loop");
        };
        if e.generators.iter().any(|g| g.is_async) {
            return error(span, "\"async for\" is not supported in kernel files");
        }
        let source = self.eval_operand(&first.iter)?;
        let items = self.iterator(&source, self.span(&first.iter))?;
        let key = (self.file, e.range);
        let steps = match self.generators.get(&key) {
            Some(steps) => steps.clone(),
            None => {
                let element: Steps = Rc::new([Step::Yield(Some((*e.elt).clone()), None)]);
                let steps = e.generators.iter().rev().fold(element, |body, g| {
                    let filtered = g.ifs.iter().rev().fold(body, |body, test| {
                        Rc::new([Step::If(test.clone(), body, Rc::new([]))])
                    });
                    Rc::new([Step::For(g.target.clone(), g.iter.clone(), filtered, Rc::new([]))])
                });
                self.generators.insert(key, steps.clone());
                steps
            }
        };
        let scope = Scope::new(ScopeKind::Comprehension, Some(self.scope.clone()));
        let saved = std::mem::replace(&mut self.scope, scope);
        self.close_over();
        let frames = vec![Frame::Block(steps.clone(), 1), Frame::For(steps, 0, items)];
        let value = self.start_generator("<genexpr>".into(), None, frames);
        self.scope = saved;
        Ok(value)
    }

    fn start_generator(
        &mut self,
        name: Rc<str>,
        call: Option<(Option<Rc<super::Class>>, Option<Value>)>,
        frames: Vec<Frame>,
    ) -> Value {
        Iter::generator(Generator {
            name,
            file: self.file,
            scope: self.scope.clone(),
            call,
            frames,
            waiting: None,
            handling: Vec::new(),
            returned: Value::None,
        })
    }

    /// Runs a generator to its next `yield`; `None` at its end.
    pub(super) fn resume(
        &mut self,
        generator: &mut Generator,
        with: Resume,
        span: Span,
    ) -> Result<Option<Value>> {
        if self.calls.len() >= super::limits::CALLS {
            return self.limit(
                span,
                format!("more than {} calls within calls", super::limits::CALLS),
            );
        }
        let is_call = generator.call.is_some();
        if let Some((class, receiver)) = &generator.call {
            self.calls.push(CallInfo {
                class: class.clone(),
                receiver: receiver.clone(),
                blocks: self.blocks.len(),
            });
        }
        let saved_file = std::mem::replace(&mut self.file, generator.file);
        let saved_scope = std::mem::replace(&mut self.scope, generator.scope.clone());
        let saved_mode = std::mem::replace(&mut self.mode, Mode::Meta);
        let saved_loops = std::mem::take(&mut self.loops);
        let saved_match = self.match_names.take();
        let handled = self.handling.len();
        self.handling.append(&mut generator.handling);
        let result = self.run_generator(generator, with, span);
        generator.handling = self.handling.split_off(handled.min(self.handling.len()));
        self.match_names = saved_match;
        self.loops = saved_loops;
        self.mode = saved_mode;
        self.scope = saved_scope;
        self.file = saved_file;
        if is_call {
            self.calls.pop();
        }
        result.map_err(|mut e| {
            if is_call && e.notes.len() < 6 && span.is_some() {
                e.notes.push(crate::diagnostic::Note {
                    message: format!("\"{}\" is resumed from here", generator.name),
                    span,
                });
            }
            e
        })
    }

    fn run_generator(&mut self, g: &mut Generator, with: Resume, span: Span) -> Result<Option<Value>> {
        let mut outcome: Result<Flow> = match with {
            Resume::Value(value) => {
                if let Some(name) = g.waiting.take() {
                    g.scope.set(name, value);
                }
                Ok(Flow::Normal)
            }
            Resume::Raise(value) => self.raise_anything(value, span),
        };
        loop {
            // The outcome of the innermost frame is passed to the enclosing one.
            let Some(frame) = g.frames.pop() else {
                g.returned = match outcome? {
                    Flow::Return(value) => value,
                    _ => Value::None,
                };
                return Ok(None);
            };
            if self.fatal {
                return outcome.map(|_| None);
            }
            outcome = match frame {
                Frame::Block(steps, at) => match outcome {
                    Ok(Flow::Normal) if at < steps.len() => {
                        g.frames.push(Frame::Block(steps.clone(), at + 1));
                        match self.generator_step(g, &steps, at) {
                            Ok(Went::Yielded(value)) => return Ok(Some(value)),
                            Ok(Went::On(flow)) => Ok(flow),
                            Err(e) => Err(e),
                        }
                    }
                    other => other,
                },
                Frame::While(steps, at) => self.generator_while(g, steps, at, outcome),
                Frame::For(steps, at, items) => self.generator_for(g, steps, at, items, outcome),
                Frame::From(steps, at, items) => match outcome {
                    Ok(Flow::Normal) => match self.next_item(&items, span) {
                        Ok(Some(item)) => {
                            g.frames.push(Frame::From(steps, at, items));
                            return Ok(Some(item));
                        }
                        Ok(None) => {
                            if let Step::From(_, Some(name)) = &steps[at] {
                                g.scope.set(name.clone(), items.returned.borrow().clone());
                            }
                            Ok(Flow::Normal)
                        }
                        Err(e) => Err(e),
                    },
                    other => other,
                },
                Frame::Try(steps, at, phase) => self.generator_try(g, steps, at, phase, outcome),
                Frame::With(steps, at, context) => {
                    let at = match &steps[at] {
                        Step::With(e, ..) => self.span(e),
                        _ => span,
                    };
                    self.leave_context(&context, outcome, at)
                }
            };
        }
    }

    /// Raises an exception object, or one of a class.
    fn raise_anything(&mut self, value: Value, span: Span) -> Result<Flow> {
        let value = match value {
            Value::Class(c) if self.is_exception(&c) => self.construct(&c, Args::default(), span)?,
            other => other,
        };
        self.raise_value(value, span)
    }

    /// Starts a step.
    fn generator_step(&mut self, g: &mut Generator, steps: &Steps, at: usize) -> Result<Went> {
        match &steps[at] {
            Step::Plain(stmt) => self.exec(stmt).map(Went::On),
            Step::Yield(value, into) => {
                let value = match value {
                    Some(v) => self.eval_operand(v)?,
                    None => Value::None,
                };
                g.waiting = into.clone();
                Ok(Went::Yielded(value))
            }
            Step::From(value, _) => {
                let source = self.eval_operand(value)?;
                let items = self.iterator(&source, self.span(value))?;
                g.frames.push(Frame::From(steps.clone(), at, items));
                Ok(Went::On(Flow::Normal))
            }
            Step::If(test, then, orelse) => {
                let value = self.eval_operand(test)?;
                let taken = self.truth(&value, self.span(test))?;
                g.frames
                    .push(Frame::Block(if taken { then } else { orelse }.clone(), 0));
                Ok(Went::On(Flow::Normal))
            }
            Step::While(..) => {
                g.frames.push(Frame::While(steps.clone(), at));
                Ok(Went::On(Flow::Normal))
            }
            Step::For(_, iter, ..) => {
                let source = self.eval_operand(iter)?;
                let items = self.iterator(&source, self.span(iter))?;
                g.frames.push(Frame::For(steps.clone(), at, items));
                Ok(Went::On(Flow::Normal))
            }
            Step::Try(t) => {
                g.frames.push(Frame::Try(steps.clone(), at, Phase::Body));
                g.frames.push(Frame::Block(t.body.clone(), 0));
                Ok(Went::On(Flow::Normal))
            }
            Step::With(context, target, body) => {
                let span = self.span(context);
                let context = self.eval_operand(context)?;
                let value = self.enter_context(&context, span)?;
                g.frames.push(Frame::With(steps.clone(), at, context));
                g.frames.push(Frame::Block(body.clone(), 0));
                if let Some(target) = target {
                    self.bind(target, value)?;
                }
                Ok(Went::On(Flow::Normal))
            }
            Step::Refused(range) => error(
                self.span_at(*range),
                "\"yield\" cannot stand in this expression; assign it to a name before",
            ),
        }
    }

    fn generator_while(
        &mut self,
        g: &mut Generator,
        steps: Steps,
        at: usize,
        outcome: Result<Flow>,
    ) -> Result<Flow> {
        let Step::While(test, body, orelse) = &steps[at] else {
            return outcome;
        };
        match outcome? {
            Flow::Normal | Flow::Continue => {}
            Flow::Break => return Ok(Flow::Normal),
            flow => return Ok(flow),
        }
        let span = self.span(test);
        self.step(span)?;
        let value = self.eval_operand(test)?;
        let next = match self.truth(&value, span)? {
            true => {
                g.frames.push(Frame::While(steps.clone(), at));
                body
            }
            false => orelse,
        };
        g.frames.push(Frame::Block(next.clone(), 0));
        Ok(Flow::Normal)
    }

    fn generator_for(
        &mut self,
        g: &mut Generator,
        steps: Steps,
        at: usize,
        items: Rc<Iter>,
        outcome: Result<Flow>,
    ) -> Result<Flow> {
        let Step::For(target, iter, body, orelse) = &steps[at] else {
            return outcome;
        };
        match outcome? {
            Flow::Normal | Flow::Continue => {}
            Flow::Break => return Ok(Flow::Normal),
            flow => return Ok(flow),
        }
        let next = match self.next_item(&items, self.span(iter))? {
            Some(item) => {
                self.bind(target, item)?;
                g.frames.push(Frame::For(steps.clone(), at, items));
                body
            }
            None => orelse,
        };
        g.frames.push(Frame::Block(next.clone(), 0));
        Ok(Flow::Normal)
    }

    fn generator_try(
        &mut self,
        g: &mut Generator,
        steps: Steps,
        at: usize,
        phase: Phase,
        outcome: Result<Flow>,
    ) -> Result<Flow> {
        let Step::Try(t) = &steps[at] else {
            return outcome;
        };
        let ended = match (phase, outcome) {
            (Phase::Finally(before, raised), Ok(Flow::Normal)) => {
                if before.is_err() {
                    self.raised = raised;
                }
                return before;
            }
            (Phase::Finally(..), other) => return other,
            (Phase::Body, Ok(Flow::Normal)) => {
                g.frames.push(Frame::Try(steps.clone(), at, Phase::Else));
                g.frames.push(Frame::Block(t.orelse.clone(), 0));
                return Ok(Flow::Normal);
            }
            (Phase::Body, Err(e)) => match self.find_handler(t, &e) {
                Ok(Some((handler, exception))) => {
                    self.raised = None;
                    let (_, name, body) = &t.handlers[handler];
                    if let Some(name) = name {
                        self.assign_name(name, exception.clone());
                    }
                    self.handling.push(exception);
                    g.frames.push(Frame::Try(steps.clone(), at, Phase::Handler));
                    g.frames.push(Frame::Block(body.clone(), 0));
                    return Ok(Flow::Normal);
                }
                Ok(None) => Err(e),
                Err(other) => Err(other),
            },
            (Phase::Handler, other) => {
                self.handling.pop();
                other
            }
            (_, other) => other,
        };
        g.frames.push(Frame::Try(
            steps.clone(),
            at,
            Phase::Finally(ended, self.raised.clone()),
        ));
        g.frames.push(Frame::Block(t.finally.clone(), 0));
        Ok(Flow::Normal)
    }

    fn find_handler(&mut self, t: &TryStep, e: &Diagnostic) -> Result<Option<(usize, Value)>> {
        let exception = self.caught(e);
        for (i, (class, ..)) in t.handlers.iter().enumerate() {
            let matches = match class {
                None => true,
                Some(class) => {
                    let span = self.span(class);
                    let class = self.eval(class)?;
                    self.is_instance(&exception, &class, span)?
                }
            };
            if matches {
                return Ok(Some((i, exception)));
            }
        }
        Ok(None)
    }
}

/// The outcome of a step.
enum Went {
    Yielded(Value),
    On(Flow),
}

/// Converts a body to steps.
#[derive(Default)]
struct Layout {
    hidden: RefCell<usize>,
    /// The steps of the `yield`s of an expression.
    found: RefCell<Vec<Step>>,
}

impl Layout {
    fn block(&self, stmts: &[ast::Stmt]) -> Steps {
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
    fn expr(&self, expr: &ast::Expr, steps: &mut Vec<Step>) -> ast::Expr {
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
                        node_index: Default::default(),
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

impl Transformer for Layout {
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
            node_index: Default::default(),
        });
    }
}
