//! Statements run as Python; those of a kernel body are in [`super::kernel_stmt`].

use std::rc::Rc;
use std::sync::Arc;

use tirx_python as ast;
use tirx_python::Ranged;

use super::frame::EvalFrame;
use super::value::{FunctionMode, Value};
use super::{Args, Interpreter, LoopKind, Mode, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::source::Span;

/// How a statement ended.
#[derive(Clone)]
pub(super) enum Flow {
    /// At its end.
    Normal,
    /// With `break`.
    Break,
    /// With `continue`.
    Continue,
    /// With `return`.
    Return(Value),
}

impl Interpreter {
    /// Runs statements in order.
    pub(super) fn exec_block(&mut self, stmts: &[ast::Stmt]) -> Result<Flow> {
        for stmt in stmts {
            match self.exec(stmt)? {
                Flow::Normal => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Normal)
    }

    /// Runs a statement.
    pub(super) fn exec(&mut self, stmt: &ast::Stmt) -> Result<Flow> {
        let span = self.span(stmt);
        self.step(span)?;
        if self.session.trying.is_some() {
            self.try_alternatives(stmt);
        }
        self.limits.depth += 1;
        let result = if self.limits.depth > super::limits::DEPTH {
            self.limit(span, "evaluation is nested too deep")
        } else if self.frame.mode == Mode::Kernel {
            self.exec_kernel(stmt, span)
        } else {
            match self.exec_meta(stmt, span) {
                Err(e) => self.skip_host(stmt, e),
                done => done,
            }
        };
        self.limits.depth -= 1;
        result
    }

    fn exec_meta(&mut self, stmt: &ast::Stmt, span: Span) -> Result<Flow> {
        match stmt {
            ast::Stmt::Assign(s) => {
                let value = self.eval(&s.value)?;
                for target in &s.targets {
                    self.bind(target, value.clone())?;
                }
                Ok(Flow::Normal)
            }
            ast::Stmt::AnnAssign(s) => {
                if let Some(v) = &s.value {
                    let value = self.eval(v)?;
                    self.bind(&s.target, value)?;
                }
                Ok(Flow::Normal)
            }
            ast::Stmt::AugAssign(s) => {
                let (_, value) = self.augmented(s, span)?;
                self.bind(&s.target, value)?;
                Ok(Flow::Normal)
            }
            ast::Stmt::If(s) => {
                let test = self.eval(&s.test)?;
                if self.truth(&test, self.span(&*s.test))? {
                    return self.exec_block(&s.body);
                }
                for clause in &s.elif_else_clauses {
                    let taken = match &clause.test {
                        Some(t) => {
                            let test = self.eval(t)?;
                            self.truth(&test, self.span(t))?
                        }
                        None => true,
                    };
                    if taken {
                        return self.exec_block(&clause.body);
                    }
                }
                Ok(Flow::Normal)
            }
            ast::Stmt::For(s) => {
                let source = self.eval(&s.iter)?;
                self.exec_meta_for(s, &source, span)
            }
            ast::Stmt::While(s) => {
                let kind = LoopKind::Meta(self.kernel.blocks.len());
                self.in_loop(kind, |i| i.exec_meta_while(s, span))
            }
            ast::Stmt::Expr(s) => {
                self.eval(&s.value)?;
                Ok(Flow::Normal)
            }
            ast::Stmt::Return(s) => {
                let value = match &s.value {
                    Some(v) => self.eval(v)?,
                    None => Value::None,
                };
                Ok(Flow::Return(value))
            }
            ast::Stmt::Break(_) => Ok(Flow::Break),
            ast::Stmt::Continue(_) => Ok(Flow::Continue),
            ast::Stmt::With(s) => self.exec_with(s, span),
            ast::Stmt::Assert(s) => {
                let test = self.eval(&s.test)?;
                if !self.truth(&test, self.span(&*s.test))? {
                    let (message, args) = match &s.msg {
                        Some(m) => {
                            let v = self.eval(m)?;
                            (self.display(&v, span)?, vec![v])
                        }
                        None => (self.text_of(s.test.range()), vec![]),
                    };
                    return self.raise_with(
                        "AssertionError",
                        args,
                        span,
                        format!("assertion failed: {message}"),
                    );
                }
                Ok(Flow::Normal)
            }
            _ => self.exec_common(stmt, span),
        }
    }

    /// Statements with the same meaning in a kernel.
    pub(super) fn exec_common(&mut self, stmt: &ast::Stmt, span: Span) -> Result<Flow> {
        match stmt {
            ast::Stmt::Pass(_) => Ok(Flow::Normal),
            ast::Stmt::FunctionDef(s) => self.exec_def(s, span),
            ast::Stmt::ClassDef(s) => self.exec_class(s, span),
            ast::Stmt::Import(s) => {
                for alias in &s.names {
                    self.import(alias)?;
                }
                Ok(Flow::Normal)
            }
            ast::Stmt::ImportFrom(s) => {
                self.import_from(s)?;
                Ok(Flow::Normal)
            }
            ast::Stmt::Raise(s) => self.exec_raise(s, span),
            ast::Stmt::Try(s) => self.exec_try(s, span),
            ast::Stmt::Delete(s) => {
                for target in &s.targets {
                    self.delete(target)?;
                }
                Ok(Flow::Normal)
            }
            ast::Stmt::Global(_) | ast::Stmt::Nonlocal(_) if self.frame.mode == Mode::Meta => {
                Ok(Flow::Normal)
            }
            ast::Stmt::Global(_) | ast::Stmt::Nonlocal(_) => error(
                span,
                "\"global\" and \"nonlocal\" are not supported in the body of a kernel",
            ),
            ast::Stmt::Match(_) => {
                self.unavailable("\"match\" is not supported in kernel files; use if/elif", span)
            }
            ast::Stmt::TypeAlias(_) => error(span, "\"type\" statements are not supported in kernel files"),
            _ => error(span, "this statement is not supported here"),
        }
    }

    /// A loop over compile-time values.
    pub(super) fn exec_meta_for(&mut self, s: &ast::StmtFor, source: &Value, span: Span) -> Result<Flow> {
        if s.is_async {
            return error(span, "\"async for\" is not supported in kernel files");
        }
        let at = self.span(&*s.iter);
        let kind = LoopKind::Meta(self.kernel.blocks.len());
        self.in_loop(kind, |i| i.run_meta_for(s, source, at))
    }

    fn run_meta_for(&mut self, s: &ast::StmtFor, source: &Value, at: Span) -> Result<Flow> {
        let items = self.iterator(source, at)?;
        while let Some(item) = self.next_item(&items, at)? {
            self.as_python(|i| i.bind(&s.target, item))?;
            match self.exec_block(&s.body)? {
                Flow::Normal | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Normal),
                Flow::Return(v) => return Ok(Flow::Return(v)),
            }
        }
        self.exec_block(&s.orelse)
    }

    fn exec_meta_while(&mut self, s: &ast::StmtWhile, span: Span) -> Result<Flow> {
        loop {
            self.step(span)?;
            let test = self.eval(&s.test)?;
            if !self.truth(&test, self.span(&*s.test))? {
                return self.exec_block(&s.orelse);
            }
            match self.exec_block(&s.body)? {
                Flow::Normal | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Normal),
                Flow::Return(v) => return Ok(Flow::Return(v)),
            }
        }
    }

    /// The value of the target before, and `target op value`; lists are changed in place.
    pub(super) fn augmented(&mut self, s: &ast::StmtAugAssign, span: Span) -> Result<(Value, Value)> {
        let before = match &*s.target {
            ast::Expr::Name(n) => {
                let mut load = n.clone();
                load.ctx = ast::ExprContext::Load;
                self.eval(&ast::Expr::Name(load)).map_err(|mut error| {
                    if error.help.is_none() {
                        let first = format!("give it a first value: `{}: T.float32 = 0.0`", n.id);
                        error.help = Some(first).filter(|_| self.kernel.function.is_some());
                    }
                    error
                })?
            }
            ast::Expr::Attribute(a) => {
                let object = self.eval(&a.value)?;
                self.get_attribute(&object, &a.attr.id, span)?
            }
            ast::Expr::Subscript(sub) => {
                let object = self.eval(&sub.value)?;
                let index = self.eval_index(&sub.slice)?;
                self.subscript(&object, &index, self.span(sub))?
            }
            other => return error(self.span(other), "this cannot be assigned to"),
        };
        let value = self.eval(&s.value)?;
        let after = self.binary_in_place(s.op, &before, &value, span)?;
        Ok((before, after))
    }

    /// Binds a value to a target as Python does.
    pub(super) fn bind(&mut self, target: &ast::Expr, value: Value) -> Result<()> {
        let span = self.span(target);
        let value = match value {
            Value::MetaVar(v) => (*v).clone(),
            other => other,
        };
        match target {
            ast::Expr::Name(n) => {
                self.assign_name(&n.id, value);
                Ok(())
            }
            ast::Expr::Tuple(t) => self.unpack(&t.elts, &value, span, &mut |i, t, v| i.bind(t, v)),
            ast::Expr::List(t) => self.unpack(&t.elts, &value, span, &mut |i, t, v| i.bind(t, v)),
            ast::Expr::Attribute(a) => {
                let object = self.eval(&a.value)?;
                self.set_attribute(&object, &a.attr.id, value, span)
            }
            ast::Expr::Subscript(s) => {
                let object = self.eval(&s.value)?;
                let index = self.eval_index(&s.slice)?;
                self.set_item(&object, &index, value, span)
            }
            ast::Expr::Starred(s) => self.bind(&s.value, value),
            _ => error(span, "this cannot be assigned to"),
        }
    }

    /// Sets a name in the scope it belongs to.
    pub(super) fn assign_name(&mut self, name: &ast::Name, value: Value) {
        if let Value::Buffer(b) = &value {
            self.kernel.fresh_scalars.remove(&b.id());
        }
        match &self.frame.scope.kind {
            ScopeKind::Function(code) if code.globals.contains(name) => {
                self.frame.scope.module().set(name.clone(), value);
            }
            ScopeKind::Function(code) if code.nonlocals.contains(name) => {
                let mut scope = self.frame.scope.parent.clone();
                while let Some(s) = scope {
                    if s.get_own(name).is_some() {
                        s.set(name.clone(), value);
                        return;
                    }
                    scope = s.parent.clone();
                }
                self.frame.scope.set(name.clone(), value);
            }
            ScopeKind::Class(order) => {
                order.borrow_mut().push(name.clone());
                self.frame.scope.set(name.clone(), value);
            }
            _ => self.frame.scope.set(name.clone(), value),
        }
    }

    /// Unpacks a value into the parts of a tuple target.
    pub(super) fn unpack(
        &mut self,
        targets: &[ast::Expr],
        value: &Value,
        span: Span,
        bind: &mut dyn FnMut(&mut Interpreter, &ast::Expr, Value) -> Result<()>,
    ) -> Result<()> {
        let value = match value {
            Value::MetaVar(v) => (**v).clone(),
            other => other.clone(),
        };
        let star = targets.iter().position(|t| matches!(t, ast::Expr::Starred(_)));
        let items = match &value {
            // One item more than needed shows whether there are too many; the iterator may be infinite.
            Value::Iterator(it) if star.is_none() => {
                let mut items = Vec::new();
                while items.len() <= targets.len()
                    && let Some(item) = self.next_item(it, span)?
                {
                    items.push(item);
                }
                items
            }
            other => self.iterate(other, span)?,
        };
        let wrong = |expected: String| {
            let message = format!("{expected} on the left, {} on the right", items.len());
            Diagnostic::new(span, message)
        };
        match star {
            None if items.len() != targets.len() => {
                let d = wrong(super::count(targets.len(), "name"));
                self.raise("ValueError", d.span, d.message)
            }
            None => {
                for (t, v) in targets.iter().zip(items) {
                    bind(self, t, v)?;
                }
                Ok(())
            }
            Some(_) if items.len() + 1 < targets.len() => {
                let d = wrong(format!("at least {}", super::count(targets.len() - 1, "name")));
                self.raise("ValueError", d.span, d.message)
            }
            Some(at) => {
                let after = targets.len() - at - 1;
                let middle = items.len() - after;
                for (t, v) in targets[..at].iter().zip(&items[..at]) {
                    bind(self, t, v.clone())?;
                }
                if let ast::Expr::Starred(s) = &targets[at] {
                    bind(self, &s.value, Value::list(items[at..middle].to_vec()))?;
                }
                for (t, v) in targets[at + 1..].iter().zip(&items[middle..]) {
                    bind(self, t, v.clone())?;
                }
                Ok(())
            }
        }
    }

    fn delete(&mut self, target: &ast::Expr) -> Result<()> {
        let span = self.span(target);
        match target {
            ast::Expr::Name(n) => {
                if self.frame.scope.vars.borrow_mut().remove(&n.id).is_none() {
                    return self.raise("NameError", span, format!("unknown name \"{}\"", n.id));
                }
                Ok(())
            }
            ast::Expr::Subscript(s) => {
                let object = self.eval(&s.value)?;
                let index = self.eval_index(&s.slice)?;
                self.delete_item(&object, &index, span)
            }
            ast::Expr::Attribute(a) => {
                let object = self.eval(&a.value)?;
                let Value::Instance(i) = &object else {
                    return error(span, "this cannot be deleted");
                };
                if let Some(f) = self.class_attribute(&i.class, "__delattr__") {
                    let name = Value::str(a.attr.as_str());
                    self.call_method(&f, &object, Args::positional([name], span), span)?;
                    return Ok(());
                }
                let mut fields = i.fields.borrow_mut();
                match fields.iter().position(|(n, _)| **n == *a.attr.as_str()) {
                    Some(at) => {
                        fields.remove(at);
                        Ok(())
                    }
                    None => {
                        drop(fields);
                        self.raise("AttributeError", span, format!("no attribute \"{}\"", a.attr))
                    }
                }
            }
            ast::Expr::Tuple(t) => t.elts.iter().try_for_each(|e| self.delete(e)),
            _ => error(span, "this cannot be deleted"),
        }
    }

    fn exec_def(&mut self, s: &Arc<ast::StmtFunctionDef>, span: Span) -> Result<Flow> {
        if s.is_async {
            return self.unavailable("\"async def\" is not supported in kernel files", span);
        }
        let value = self.as_python(|i| i.decorated_function(s))?;
        let before = self.frame.scope.get_own(&s.name.id);
        if let (Value::Kernel(_), Some(Value::Kernel(first))) = (&value, before) {
            let at = self.span(&s.name);
            let line = self.session.sources.locate(first.code.span).map_or(0, |l| l.line);
            let message = format!(
                "kernel \"{}\" is defined again: it replaces the kernel of line {line} is lost",
                s.name
            );
            self.lint("redefined-kernel", at, message, "give one of them another name");
        }
        self.assign_name(&s.name.id, value);
        Ok(Flow::Normal)
    }

    fn decorated_function(&mut self, s: &Arc<ast::StmtFunctionDef>) -> Result<Value> {
        let mut decorators = Vec::new();
        for d in &s.decorator_list {
            decorators.push((self.eval(&d.expression)?, self.span(&d.expression)));
        }
        let mut value = Value::Function(self.make_function(s)?);
        for (decorator, span) in decorators.into_iter().rev() {
            // A host decorator (`@pytest.mark.parametrize`) has no effect here.
            if matches!(&decorator, Value::Unavailable(why) if super::modules::host_path(why).is_some()) {
                continue;
            }
            value = self.call_value(&decorator, Args::positional([value], span), span)?;
        }
        Ok(value)
    }

    fn exec_class(&mut self, s: &Arc<ast::StmtClassDef>, _span: Span) -> Result<Flow> {
        let mut decorators = Vec::new();
        for d in &s.decorator_list {
            decorators.push((self.eval(&d.expression)?, self.span(&d.expression)));
        }
        let class = self.make_class(s)?;
        let mut value = Value::Class(class);
        // Decorators find the text of the class here.
        let frame = EvalFrame {
            class_def: Some(s.clone()),
            ..self.frame.clone()
        };
        self.enter(frame, |i| -> Result<()> {
            for (decorator, span) in decorators.into_iter().rev() {
                if matches!(&decorator, Value::Unavailable(why) if super::modules::host_path(why).is_some()) {
                    continue;
                }
                value = i.call_value(&decorator, Args::positional([value.clone()], span), span)?;
            }
            Ok(())
        })?;
        self.assign_name(&s.name.id, value);
        Ok(Flow::Normal)
    }

    /// A scope for the function that captures the present values of the names in it: in a kernel they would otherwise
    /// be looked up when it is called.
    pub(super) fn captured_scope(&mut self, function: &super::value::Function) -> Rc<super::Scope> {
        match function.code.body.def() {
            Some(def) if self.frame.mode == Mode::Meta => {
                let scope = function.scope.captured(super::code::read_names(def));
                self.session.cycles.closed_over.push(Rc::downgrade(&scope));
                scope
            }
            _ => function.scope.clone(),
        }
    }

    /// A function as `@T.inline` or `@T.macro` makes it.
    pub(super) fn inline_function(
        &mut self,
        value: &Value,
        mode: FunctionMode,
        snapshot: bool,
        span: Span,
    ) -> Result<Value> {
        match value {
            Value::Function(f) => {
                let scope = if snapshot {
                    f.scope.snapshot()
                } else {
                    self.captured_scope(f)
                };
                Ok(Value::Function(super::class::with_mode(f, mode, scope)))
            }
            other => error(
                span,
                format!("this decorator needs a function, found {}", other.type_name()),
            ),
        }
    }
}
