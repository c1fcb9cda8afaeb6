//! Exceptions: `raise`, `try`, and the errors of the compiler that `except` catches.

use std::rc::Rc;

use tirx_python as ast;

use super::stmt::Flow;
use super::value::Value;
use super::{Args, Interpreter, Raised};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

impl Interpreter {
    pub(super) fn exec_raise(&mut self, s: &ast::StmtRaise, span: Span) -> Result<Flow> {
        let Some(exc) = &s.exc else {
            return match self.exceptions.handling.last().cloned() {
                Some(value) => self.raise_value(value, span),
                None => error(span, "nothing to raise again"),
            };
        };
        let value = match self.eval(exc)? {
            Value::Class(c) if self.is_exception(&c) => self.construct(&c, Args::default(), span)?,
            other => other,
        };
        if let Value::Instance(i) = &value
            && self.is_exception(&i.class)
        {
            if let Some(cause) = &s.cause {
                let cause = match self.eval(cause)? {
                    Value::Class(c) if self.is_exception(&c) => self.construct(&c, Args::default(), span)?,
                    other => other,
                };
                i.set("__cause__", cause);
            }
            if let Some(before) = self.exceptions.handling.last() {
                let itself = matches!(before, Value::Instance(b) if Rc::ptr_eq(b, i));
                if !itself {
                    i.set("__context__", before.clone());
                }
            }
        }
        self.raise_value(value, span)
    }

    /// Raises an exception.
    pub(super) fn raise_value<R>(&mut self, value: Value, span: Span) -> Result<R> {
        if let Value::Unavailable(why) = &value {
            return self.unavailable(why, span);
        }
        let Value::Instance(i) = &value else {
            return error(
                span,
                format!("only exceptions can be raised, not {}", value.type_name()),
            );
        };
        if !self.is_exception(&i.class) {
            return error(
                span,
                format!("only exceptions can be raised, not {}", value.type_name()),
            );
        }
        let text = self.display(&value, span)?;
        let message = if text.is_empty() {
            i.class.name.to_string()
        } else {
            format!("{}: {text}", i.class.name)
        };
        self.exceptions.raised = Some((message.clone(), Raised::Exception(value.clone())));
        error(span, message)
    }

    /// An error that `except class` catches.
    pub fn raise<R>(&mut self, class: &str, span: Span, message: impl Into<String>) -> Result<R> {
        let message = message.into();
        let value = self.exception(class, &message);
        self.exceptions.raised = Some((message.clone(), Raised::Exception(value)));
        error(span, message)
    }

    /// An error that `except class` catches, and the arguments that the exception has for the text.
    pub(super) fn raise_with<R>(
        &mut self,
        class: &str,
        args: Vec<Value>,
        span: Span,
        message: impl Into<String>,
    ) -> Result<R> {
        let message = message.into();
        let value = self.exception_of(class, args);
        self.exceptions.raised = Some((message.clone(), Raised::Exception(value)));
        error(span, message)
    }

    /// The error as an exception of a class, where it is none yet.
    pub(super) fn as_exception(&mut self, class: &str, e: Box<Diagnostic>) -> Box<Diagnostic> {
        if !matches!(&self.exceptions.raised, Some((message, _)) if *message == e.message) {
            let value = self.exception(class, &e.message);
            self.exceptions.raised = Some((e.message.clone(), Raised::Exception(value)));
        }
        e
    }

    /// The error for a value of the host.
    pub fn unavailable<R>(&mut self, why: &str, span: Span) -> Result<R> {
        self.exceptions.raised = Some((why.to_string(), Raised::Unavailable));
        error(span, why)
    }

    /// Whether the error is an exception of a class.
    pub(super) fn raised_is(&self, e: &Diagnostic, class: &str) -> bool {
        match &self.exceptions.raised {
            Some((message, Raised::Exception(Value::Instance(i)))) if *message == e.message => {
                std::iter::once(&i.class)
                    .chain(&i.class.mro)
                    .any(|c| &*c.name == class)
            }
            _ => false,
        }
    }

    pub(super) fn exec_try(&mut self, s: &ast::StmtTry, span: Span) -> Result<Flow> {
        let result = self.exec_block(&s.body);
        let result = match result {
            Ok(Flow::Normal) => self.exec_block(&s.orelse),
            Ok(flow) => Ok(flow),
            Err(e) if self.limits.fatal => return Err(e),
            Err(e) => self.handle(s, e, span),
        };
        match self.exec_block(&s.finalbody)? {
            Flow::Normal => result,
            other => Ok(other),
        }
    }

    /// The exception behind an error.
    pub(super) fn caught(&self, e: &Diagnostic) -> Value {
        match &self.exceptions.raised {
            Some((message, Raised::Exception(v))) if *message == e.message => v.clone(),
            _ => self.exception("Exception", &e.message),
        }
    }

    fn handle(&mut self, s: &ast::StmtTry, e: Box<Diagnostic>, span: Span) -> Result<Flow> {
        let exception = self.caught(&e);
        for handler in &s.handlers {
            let ast::ExceptHandler::ExceptHandler(h) = handler;
            let matches = match &h.type_ {
                None => true,
                Some(t) => {
                    let class = self.eval(t)?;
                    self.is_instance(&exception, &class, span)?
                }
            };
            if !matches {
                continue;
            }
            self.exceptions.raised = None;
            if let Some(name) = &h.name {
                self.assign_name(&name.id, exception.clone());
            }
            self.exceptions.handling.push(exception);
            let result = self.exec_block(&h.body);
            self.exceptions.handling.pop();
            // The name ends with the handler.
            if let Some(name) = &h.name {
                self.frame.scope.vars.borrow_mut().remove(&name.id);
            }
            return result;
        }
        Err(e)
    }
}
