//! Generators: functions with `yield`, and generator expressions.
//!
//! A generator is suspended in the middle of its body, so the body cannot run on the stack of the evaluator: it is
//! converted to [`Step`]s, and the state of execution is a list of [`Frame`]s. Only statements that contain a `yield`
//! are converted; each other statement is one step, which the evaluator runs as usual. A `yield` within an expression
//! becomes a step before the statement, and its value gets a name that no kernel file can contain.

use std::rc::Rc;

use tirx_python::{self as ast, Name};

use super::frame::{CallInfo, EvalFrame};
use super::generator_steps::{Step, StepBuilder, Steps, TryStep};
use super::iter::{Iter, Resume};
use super::stmt::Flow;
use super::value::{Code, Value};
use super::{Args, Interpreter, Mode, Raised, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::{FileId, Span};

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
    called: (FileId, FileId),
    scope: Rc<Scope>,
    /// The call that it belongs to; `None` for a generator expression.
    call: Option<Rc<CallInfo>>,
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
        if self.frame.mode == Mode::Kernel {
            return error(
                code.span,
                "a @T.inline cannot be a generator: its \"yield\" has no meaning in a kernel",
            );
        }
        let Some(def) = code.body.def() else {
            return error(code.span, "a generator needs a body");
        };
        let key = (code.file, def.range);
        let steps = match self.session.caches.generators.get(&key) {
            Some(steps) => steps.clone(),
            None => {
                let steps = StepBuilder::default().block(&def.body);
                self.session.caches.generators.insert(key, steps.clone());
                steps
            }
        };
        self.close_over();
        let call = self.frame.call.clone();
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
        let key = (self.frame.file, e.range);
        let steps = match self.session.caches.generators.get(&key) {
            Some(steps) => steps.clone(),
            None => {
                let element: Steps = Rc::new([Step::Yield(Some((*e.elt).clone()), None)]);
                let steps = e.generators.iter().rev().fold(element, |body, g| {
                    let filtered = g.ifs.iter().rev().fold(body, |body, test| {
                        Rc::new([Step::If(test.clone(), body, Rc::new([]))])
                    });
                    Rc::new([Step::For(g.target.clone(), g.iter.clone(), filtered, Rc::new([]))])
                });
                self.session.caches.generators.insert(key, steps.clone());
                steps
            }
        };
        let scope = Scope::new(ScopeKind::Comprehension, Some(self.frame.scope.clone()));
        let frames = vec![Frame::Block(steps.clone(), 1), Frame::For(steps, 0, items)];
        Ok(self.in_scope(scope, |i| {
            i.close_over();
            i.start_generator("<genexpr>".into(), None, frames)
        }))
    }

    fn start_generator(&mut self, name: Rc<str>, call: Option<Rc<CallInfo>>, frames: Vec<Frame>) -> Value {
        Iter::generator(Generator {
            name,
            file: self.frame.file,
            called: self.frame.called,
            scope: self.frame.scope.clone(),
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
        if self.frame.calls >= super::limits::CALLS {
            return self.limit(
                span,
                format!("more than {} calls within calls", super::limits::CALLS),
            );
        }
        let is_call = generator.call.is_some();
        let mut frame = EvalFrame {
            called: generator.called,
            match_names: None,
            ..self.frame.of_file(generator.file, generator.scope.clone())
        };
        if let Some(call) = &generator.call {
            frame.calls += 1;
            frame.call = Some(Rc::new(CallInfo {
                blocks: self.kernel.blocks.len(),
                ..(**call).clone()
            }));
        }
        let handled = self.exceptions.handling.len();
        self.exceptions.handling.append(&mut generator.handling);
        let result = self.enter(frame, |i| i.run_generator(generator, with, span));
        generator.handling = self
            .exceptions
            .handling
            .split_off(handled.min(self.exceptions.handling.len()));
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
            if self.limits.fatal {
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
                    self.exceptions.raised = raised;
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
                    self.exceptions.raised = None;
                    let (_, name, body) = &t.handlers[handler];
                    if let Some(name) = name {
                        self.assign_name(name, exception.clone());
                    }
                    self.exceptions.handling.push(exception);
                    g.frames.push(Frame::Try(steps.clone(), at, Phase::Handler));
                    g.frames.push(Frame::Block(body.clone(), 0));
                    return Ok(Flow::Normal);
                }
                Ok(None) => Err(e),
                Err(other) => Err(other),
            },
            (Phase::Handler, other) => {
                self.exceptions.handling.pop();
                other
            }
            (_, other) => other,
        };
        g.frames.push(Frame::Try(
            steps.clone(),
            at,
            Phase::Finally(ended, self.exceptions.raised.clone()),
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
