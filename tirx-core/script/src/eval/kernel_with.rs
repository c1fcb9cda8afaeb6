//! `with`: regions of a kernel, frames in function form, and objects with `__enter__` and `__exit__`.

use std::rc::Rc;

use tirx_python as ast;

use super::stmt::Flow;
use super::value::{Frame, Value};
use super::{Args, Interpreter, Mode, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{Expr, ForLoop, Stmt, StmtKind};
use crate::source::Span;

impl Interpreter {
    /// `with`: regions of the kernel, and objects with `__enter__` and `__exit__`.
    pub(super) fn exec_with(&mut self, s: &ast::StmtWith, span: Span) -> Result<Flow> {
        if s.is_async {
            return error(span, "\"async with\" is not supported in kernel files");
        }
        if self.frame.mode == Mode::Kernel {
            let scope = Scope::new(ScopeKind::Block, Some(self.frame.scope.clone()));
            return self.in_scope(scope, |i| i.with_items(&s.items, &s.body));
        }
        self.with_items(&s.items, &s.body)
    }

    fn with_items(&mut self, items: &[ast::WithItem], body: &[ast::Stmt]) -> Result<Flow> {
        let Some((item, rest)) = items.split_first() else {
            return self.exec_block(body);
        };
        let at = self.span(&item.context_expr);
        let target = item.optional_vars.as_deref();
        let context = self.eval_for(&item.context_expr, target)?;
        match &context {
            Value::Frame(frame) if matches!(**frame, Frame::Function { .. }) => {
                let frame = frame.clone();
                self.with_function(&frame, at, &mut |i| i.with_items(rest, body))
            }
            Value::Frame(frame) => {
                let frame = frame.clone();
                self.with_frame(&frame, target, at, &mut |i| i.with_items(rest, body))
            }
            Value::Unavailable(why) if !self.is_building() && super::modules::host_path(why).is_some() => {
                if let Some(target) = target {
                    self.bind_plain(target, context.clone())?;
                }
                let before = self.session.kernels.made.len();
                let result = self.with_items(rest, body);
                if !why.starts_with("\"pytest.raises\"") {
                    return result;
                }
                // Kernels that a test expects to be rejected are dropped.
                self.session.kernels.made.truncate(before);
                match result {
                    Err(_) if !self.limits.fatal => {
                        self.exceptions.raised = None;
                        Ok(Flow::Normal)
                    }
                    result => result,
                }
            }
            _ => {
                let open = self.kernel.entered.len();
                let value = self.enter_context(&context, at)?;
                if let Some(target) = target {
                    self.bind_plain(target, value)?;
                }
                let result = self.with_items(rest, body);
                let result = self.leave_context(&context, result, at);
                match result {
                    Ok(_)
                        if self.kernel.entered.len() != open
                            && !self.kernel.function.as_ref().is_some_and(|f| f.is_traced) =>
                    {
                        let message = "\"__exit__\" did not leave each region that \"__enter__\" entered";
                        error(at, message)
                    }
                    result => result,
                }
            }
        }
    }

    /// `__enter__` of what a `with` is about.
    pub(super) fn enter_context(&mut self, context: &Value, at: Span) -> Result<Value> {
        match context {
            Value::Instance(i) => {
                let enter = self.class_attribute(&i.class, "__enter__");
                match (enter, self.class_attribute(&i.class, "__exit__")) {
                    (Some(enter), Some(_)) => self.call_method(&enter, context, Args::default(), at),
                    _ => error(
                        at,
                        format!("{} cannot be used with \"with\"", context.type_name()),
                    ),
                }
            }
            Value::Unavailable(why) => self.unavailable(why, at),
            other => error(at, format!("{} cannot be used with \"with\"", other.type_name())),
        }
    }

    /// `__exit__`, which may suppress an exception.
    pub(super) fn leave_context(&mut self, context: &Value, result: Result<Flow>, at: Span) -> Result<Flow> {
        let about = match &result {
            Err(_) if self.limits.fatal => return result,
            Err(e) => {
                let exception = self.caught(e);
                [self.class_of(&exception), exception, Value::None]
            }
            Ok(_) => [Value::None, Value::None, Value::None],
        };
        let raised = self.exceptions.raised.clone();
        let exit = self.get_attribute(context, "__exit__", at)?;
        let swallow = self.call_value(&exit, Args::positional(about, at), at)?;
        if result.is_err() {
            if self.truth(&swallow, at)? {
                self.exceptions.raised = None;
                return Ok(Flow::Normal);
            }
            self.exceptions.raised = raised;
        }
        result
    }

    fn bind_plain(&mut self, target: &ast::Expr, value: Value) -> Result<()> {
        self.as_python(|i| i.bind(target, value))
    }

    fn with_frame(
        &mut self,
        frame: &Rc<Frame>,
        target: Option<&ast::Expr>,
        span: Span,
        body: &mut dyn FnMut(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Flow> {
        if !self.is_building() {
            return error(span, "a region of a kernel stands outside of any kernel");
        }
        let value = frame_value(frame);
        if let Some(target) = target {
            self.know(&value);
            self.bind_plain(target, value)?;
        }
        let mark = self.kernel.mark();
        let (flow, stmt) = match self.frame_body(frame, span, body) {
            Ok(whole) => whole,
            Err(e) => {
                self.kernel.rollback(mark);
                return Err(e);
            }
        };
        self.close_frame(frame, stmt, span)?;
        match flow {
            Flow::Normal => Ok(flow),
            _ => error(
                span,
                "\"return\", \"break\" and \"continue\" of compile time cannot leave a region",
            ),
        }
    }

    /// Runs the body of a frame; gives how it ended and its statements.
    fn frame_body(
        &mut self,
        frame: &Rc<Frame>,
        span: Span,
        body: &mut dyn FnMut(&mut Interpreter) -> Result<Flow>,
    ) -> Result<(Flow, Stmt)> {
        let outer = self.kernel.open_frames.len();
        self.open_frame(frame, span)?;
        let open = self.kernel.entered.len();
        let flow = match &**frame {
            Frame::Many(frames) => self.with_many(frames, span, body),
            _ => body(self),
        }?;
        self.leave_entered(open, span)?;
        let stmt = self.close_block();
        self.kernel.open_frames.truncate(outer);
        Ok((flow, stmt))
    }

    /// Begins the body of a frame.
    pub(super) fn open_frame(&mut self, frame: &Rc<Frame>, span: Span) -> Result<()> {
        self.open_block(span)?;
        if self.never_enters(frame) {
            self.block_never_runs();
        }
        self.kernel.open_frames.push(frame.clone());
        if let Frame::If(_) = **frame {
            self.kernel.branches.push((None, None));
        }
        Ok(())
    }

    /// Ends the body of a frame.
    pub(super) fn close_frame(&mut self, frame: &Frame, stmt: Stmt, span: Span) -> Result<()> {
        let stmt = match frame {
            Frame::Region { wrap, .. } => wrap(stmt),
            Frame::Many(_) | Frame::Function { .. } => stmt,
            Frame::For(loops) => close_loops(loops, stmt, span),
            Frame::While(condition) => Stmt::new(StmtKind::While(condition.clone(), stmt), span),
            Frame::Then | Frame::Else => {
                let Some(branches) = self.kernel.branches.last_mut() else {
                    return error(span, "T.Then and T.Else stand in a T.If");
                };
                if matches!(frame, Frame::Then) {
                    branches.0 = Some(stmt);
                } else {
                    branches.1 = Some(stmt);
                }
                return Ok(());
            }
            Frame::If(condition) => {
                // The body of T.If consists of its branches, which the frames above have collected.
                let (then, otherwise) = self.kernel.branches.pop().unwrap_or_default();
                Stmt::if_else(condition.clone(), then.unwrap_or_else(Stmt::nop), otherwise, span)
            }
        };
        self.emit(stmt)
    }

    /// `frame.__enter__()`: what follows is the body of the frame until its `__exit__`.
    pub(super) fn enter_frame(&mut self, frame: &Rc<Frame>, span: Span) -> Result<Value> {
        if !self.is_building() {
            return error(span, "a region of a kernel stands outside of any kernel");
        }
        let value = frame_value(frame);
        self.know(&value);
        match &**frame {
            Frame::Many(frames) => {
                for inner in frames {
                    self.enter_frame(inner, span)?;
                }
            }
            _ => {
                self.open_frame(frame, span)?;
                self.kernel
                    .entered
                    .push((frame.clone(), self.kernel.blocks.len()));
            }
        }
        Ok(value)
    }

    /// `frame.__exit__(…)`.
    pub(super) fn exit_frame(&mut self, frame: &Rc<Frame>, span: Span) -> Result<()> {
        if let Frame::Many(frames) = &**frame {
            return frames
                .iter()
                .rev()
                .try_for_each(|inner| self.exit_frame(inner, span));
        }
        if let Some(at) = self
            .kernel
            .entered
            .iter()
            .rposition(|(open, _)| Rc::ptr_eq(open, frame))
        {
            self.leave_entered(at + 1, span)?;
        }
        match self.kernel.entered.pop() {
            Some((open, depth)) if Rc::ptr_eq(&open, frame) && depth == self.kernel.blocks.len() => {
                let stmt = self.close_block();
                let of_frame = self
                    .kernel
                    .open_frames
                    .iter()
                    .rposition(|open| Rc::ptr_eq(open, frame));
                self.kernel
                    .open_frames
                    .truncate(of_frame.unwrap_or(self.kernel.open_frames.len()));
                self.close_frame(frame, stmt, span)
            }
            _ => error(
                span,
                "__exit__ of a region that was not the last to be entered: regions end in the reverse order",
            ),
        }
    }

    fn with_many(
        &mut self,
        frames: &[Rc<Frame>],
        span: Span,
        body: &mut dyn FnMut(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Flow> {
        match frames.split_first() {
            None => body(self),
            Some((first, rest)) => self.with_frame(first, None, span, &mut |i| i.with_many(rest, span, body)),
        }
    }

    /// Opens a region for the rest of the block; gives the value that its name is bound to.
    pub(super) fn enter_flat(&mut self, frame: &Rc<Frame>, span: Span) -> Result<Value> {
        match &**frame {
            Frame::Region { value, .. } => {
                let frame = frame.clone();
                self.know(value);
                self.emit_flat(
                    span,
                    Box::new(move |stmt| match &*frame {
                        Frame::Region { wrap, .. } => wrap(stmt),
                        _ => stmt,
                    }),
                )?;
                Ok(value.clone())
            }
            Frame::Many(frames) => {
                let mut value = Value::None;
                for f in frames {
                    value = self.enter_flat(f, span)?;
                }
                Ok(value)
            }
            Frame::For(_) => Err(Box::new(
                Diagnostic::new(span, "a loop needs \"for\"").help("for i in T.serial(n): …"),
            )),
            _ => error(span, "this region needs \"with\""),
        }
    }

    pub(super) fn know(&mut self, value: &Value) {
        match value {
            Value::Expr(e) => {
                if let Some(v) = e.as_var() {
                    self.kernel.known_vars.insert(v.clone());
                }
            }
            Value::Tuple(items) => items.iter().for_each(|v| self.know(v)),
            _ => {}
        }
    }
}

fn frame_value(frame: &Frame) -> Value {
    match frame {
        Frame::Region { value, .. } => value.clone(),
        Frame::For(loops) => match &loops[..] {
            [l] => Value::Expr(Expr::var(&l.var)),
            _ => Value::tuple(loops.iter().map(|l| Value::Expr(Expr::var(&l.var))).collect()),
        },
        _ => Value::None,
    }
}

/// The loops around their body.
pub(super) fn close_loops(loops: &[ForLoop], body: Stmt, span: Span) -> Stmt {
    loops
        .iter()
        .rev()
        .fold(body, |body, l| Stmt::new(ForLoop { body, ..l.clone() }, span))
}
