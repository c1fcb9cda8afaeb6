//! Statements of a kernel body: values known at compile time are decided here, the rest becomes statements of the IR.

use std::rc::Rc;
use std::sync::Arc;

use tirx_python as ast;
use tirx_python::Ranged;

use super::expr::target_names;
use super::kernel_with::close_loops;
use super::reached::{always_holds, have_no_turn, never_holds};
use super::stmt::Flow;
use super::value::{Frame, Value};
use super::{Args, Interpreter, LoopKind, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{Assert, DType, Expr, ForLoop, Stmt, StmtKind};
use crate::lang;
use crate::source::Span;

impl Interpreter {
    pub(super) fn exec_kernel(&mut self, stmt: &ast::Stmt, span: Span) -> Result<Flow> {
        match stmt {
            ast::Stmt::Assign(s) => self.kernel_assign(s, span),
            ast::Stmt::AnnAssign(s) => self.kernel_annotated(s, span),
            ast::Stmt::AugAssign(s) => {
                let (before, value) = self.augmented(s, span)?;
                // An augmented assignment of compile-time values gives a compile-time value.
                let value = match before.is_ir() || value.is_ir() {
                    true => value,
                    false => Value::MetaVar(Rc::new(value)),
                };
                self.kernel_bind(&s.target, value, None, span)?;
                Ok(Flow::Normal)
            }
            ast::Stmt::If(s) => self.kernel_if(&s.test, &s.body, &s.elif_else_clauses, span),
            ast::Stmt::For(s) => self.kernel_for(s, span),
            ast::Stmt::While(s) => self.kernel_while(s, span),
            ast::Stmt::With(s) => self.exec_with(s, span),
            ast::Stmt::Expr(s) => self.kernel_expression(s, span),
            ast::Stmt::Assert(s) => self.kernel_assert(s, span),
            ast::Stmt::Return(s) => self.kernel_return(s, span),
            ast::Stmt::Break(_) => self.kernel_jump(Op::BreakLoop, Flow::Break, "break", span),
            ast::Stmt::Continue(_) => self.kernel_jump(Op::ContinueLoop, Flow::Continue, "continue", span),
            _ => self.exec_common(stmt, span),
        }
    }

    fn kernel_if(
        &mut self,
        test: &ast::Expr,
        body: &[ast::Stmt],
        clauses: &[ast::ElifElseClause],
        span: Span,
    ) -> Result<Flow> {
        let at = self.span(test);
        let value = self.eval(test)?;
        if !value.is_ir() {
            if self.truth(&value, at)? {
                return self.exec_block(body);
            }
            return self.kernel_else(clauses);
        }
        let condition = lang::condition(&value, at)?;
        let then = self.conditional_block(never_holds(&condition), span, |i| i.exec_block(body))?;
        let otherwise = if clauses.is_empty() {
            None
        } else {
            Some(self.conditional_block(always_holds(&condition), span, |i| i.kernel_else(clauses))?)
        };
        // An `else` that does nothing stays one, as in TVM: simplification drops it.
        self.emit(Stmt::if_else(condition, then, otherwise, at))?;
        Ok(Flow::Normal)
    }

    fn kernel_else(&mut self, clauses: &[ast::ElifElseClause]) -> Result<Flow> {
        match clauses.split_first() {
            None => Ok(Flow::Normal),
            Some((first, rest)) => match &first.test {
                None => self.exec_block(&first.body),
                Some(test) => {
                    let span = self.span_at(first.range());
                    self.nested(span, |i| i.kernel_if(test, &first.body, rest, span))
                }
            },
        }
    }

    /// A block that the kernel may skip, or always does.
    fn conditional_block(
        &mut self,
        never_runs: bool,
        span: Span,
        run: impl FnOnce(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Stmt> {
        let mark = self.kernel.mark();
        self.kernel.choices += 1;
        let block = self.kernel_block(never_runs, span, run);
        match block {
            Ok(_) => self.kernel.choices -= 1,
            Err(_) => self.kernel.rollback(mark),
        }
        block
    }

    /// Runs statements in a block and a scope of their own; gives what they built.
    fn kernel_block(
        &mut self,
        never_runs: bool,
        span: Span,
        run: impl FnOnce(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Stmt> {
        self.open_block(span)?;
        if never_runs {
            self.block_never_runs();
        }
        let scope = Scope::new(ScopeKind::Block, Some(self.frame.scope.clone()));
        let result = self.in_scope(scope.clone(), run);
        let stmt = self.close_block();
        for name in scope.vars.borrow().keys() {
            self.kernel.ended_names.insert(name.clone(), span);
        }
        match result? {
            Flow::Normal => Ok(stmt),
            // Jumps of compile-time control flow are refused where they are written; see `kernel_jump`.
            _ => error(
                span,
                "compile-time control flow cannot leave a block that runs conditionally",
            ),
        }
    }

    fn kernel_jump(&mut self, op: Op, flow: Flow, word: &str, span: Span) -> Result<Flow> {
        match self.frame.loops.last() {
            None => Err(Box::new(
                Diagnostic::new(span, format!("\"{word}\" outside of a loop"))
                    .help("to end the thread, write `return`"),
            )),
            Some(LoopKind::Run) => {
                self.emit(Stmt::evaluate(Expr::call(op, DType::VOID, vec![]).at(span)))?;
                Ok(Flow::Normal)
            }
            Some(LoopKind::Meta(blocks)) if *blocks == self.kernel.blocks.len() => Ok(flow),
            Some(LoopKind::Meta(_)) => Err(Box::new(
                Diagnostic::new(
                    span,
                    format!("\"{word}\" depends on run-time values but its loop runs at compile time"),
                )
                .help("loop with T.serial or range instead"),
            )),
        }
    }

    fn kernel_return(&mut self, s: &ast::StmtReturn, span: Span) -> Result<Flow> {
        let call_depth = self.frame.call.as_ref().map(|c| c.blocks);
        if let Some(blocks) = call_depth {
            // An inline function gives its value to the kernel that calls it.
            let value = match &s.value {
                Some(v) => self.eval(v)?,
                None => Value::None,
            };
            if blocks != self.kernel.blocks.len() || self.frame.loops.contains(&LoopKind::Run) {
                return Err(Box::new(
                    Diagnostic::new(
                        span,
                        "\"return\" of an inline function cannot depend on run-time values",
                    )
                    .help("assign to a scalar in the branches and return it at the end"),
                ));
            }
            return Ok(Flow::Return(value));
        }
        let value = match &s.value {
            Some(v) => {
                let value = self.eval(v)?;
                match (&value, self.function_ret()) {
                    (Value::Int(_) | Value::Float(_) | Value::Bool(_), Some(d)) => {
                        Some(lang::to_expr_of(&value, d, span)?)
                    }
                    (Value::None, _) => None,
                    _ => Some(lang::to_expr(&value, span)?),
                }
            }
            None => None,
        };
        self.emit_return(value, span)?;
        Ok(Flow::Normal)
    }

    /// Ends the function, or the thread, with a value or without.
    pub(crate) fn emit_return(&mut self, value: Option<Expr>, span: Span) -> Result<()> {
        if self.kernel.choices == 0
            && let Some(function) = self.kernel.function.as_mut().filter(|f| !f.on_device)
        {
            function.returned.get_or_insert(span);
        }
        let (op, operands) = match value {
            Some(value) => (Op::Ret, vec![value]),
            None => (Op::ThreadReturn, Vec::new()),
        };
        self.emit(Stmt::evaluate(Expr::call(op, DType::VOID, operands).at(span)))
    }

    fn function_ret(&self) -> Option<DType> {
        self.kernel.function.as_ref()?.ret.as_ref().map(|t| t.dtype())
    }

    fn kernel_for(&mut self, s: &ast::StmtFor, span: Span) -> Result<Flow> {
        if s.is_async {
            return error(span, "\"async for\" is not supported in kernel files");
        }
        let source = match &*s.iter {
            // `range` in a kernel is a run-time loop, whatever its bounds are.
            ast::Expr::Call(c) if matches!(&*c.func, ast::Expr::Name(n) if n.id == "range") => {
                let at = self.span(&*s.iter);
                let args = self.eval_arguments(&c.arguments, Some(&s.target))?;
                self.range_loop(args, at)?
            }
            iter => self.eval_for(iter, Some(&s.target))?,
        };
        match &source {
            Value::Frame(frame) => match &**frame {
                Frame::For(loops) => self.run_loops(s, loops, span),
                _ => error(self.span(&*s.iter), "this region is opened with \"with\", not \"for\""),
            },
            Value::Expr(_) | Value::Buffer(_) | Value::Region(_) => Err(Box::new(
                Diagnostic::new(self.span(&*s.iter), format!("cannot loop over a {}", source.type_name()))
                    .help("loop over range(n), T.serial, T.unroll, T.vectorized, T.parallel, T.thread_binding or T.grid"),
            )),
            _ => self.exec_meta_for(s, &source, span),
        }
    }

    fn range_loop(&mut self, mut args: Args, span: Span) -> Result<Value> {
        let Some(serial) = lang::attribute("T", "serial") else {
            return error(span, "T.serial is missing");
        };
        match args.positional.len() {
            1 | 2 => {}
            3 => {
                if let Some((step, at)) = args.positional.pop() {
                    args.keyword.push(("step".into(), step, at));
                }
            }
            n => return error(span, format!("range() takes 1 to 3 arguments but {n} were given")),
        }
        self.call_value(&serial, args, span)
    }

    fn run_loops(&mut self, s: &ast::StmtFor, loops: &[ForLoop], span: Span) -> Result<Flow> {
        if let Some(first) = s.orelse.first() {
            return error(
                self.span(first),
                "\"else\" of a loop that runs in the kernel is not supported",
            );
        }
        let at = self.span(&*s.target);
        let vars: Vec<Value> = loops
            .iter()
            .map(|l| Value::Expr(Expr::var(&l.var).at(at)))
            .collect();
        let value = match &vars[..] {
            [one] if !matches!(*s.target, ast::Expr::Tuple(_) | ast::Expr::List(_)) => one.clone(),
            _ => Value::tuple(vars),
        };
        // Only the loop variables are new names; nothing is stored.
        let (names, is_tuple) = target_names(&s.target);
        if is_tuple && names.len() == loops.len() {
            for (name, l) in names.iter().zip(loops) {
                self.rename_var(&l.var.clone(), name);
                self.kernel.known_vars.insert(l.var.clone());
            }
        } else if let ([name], [l]) = (&names[..], loops) {
            self.rename_var(&l.var.clone(), name);
            self.kernel.known_vars.insert(l.var.clone());
        }
        for _ in 1..loops.len() {
            // Each loop is a nesting level of its own.
            if self.kernel.blocks.len() + loops.len() > super::limits::NESTING {
                return self.limit(span, "too many nested loops");
            }
        }
        let body = self.in_loop(LoopKind::Run, |i| {
            i.conditional_block(have_no_turn(loops), span, |i| {
                i.as_python(|i| i.bind(&s.target, value))?;
                i.exec_block(&s.body)
            })
        });
        let header = self.span(&*s.target).to(self.span(&*s.iter));
        let stmt = close_loops(loops, body?, header);
        self.emit(stmt)?;
        Ok(Flow::Normal)
    }

    fn kernel_while(&mut self, s: &ast::StmtWhile, span: Span) -> Result<Flow> {
        if let Some(first) = s.orelse.first() {
            return error(
                self.span(first),
                "\"else\" of a loop that runs in the kernel is not supported",
            );
        }
        let at = self.span(&*s.test);
        let value = self.eval(&s.test)?;
        let condition = match &value {
            v if v.is_ir() => lang::condition(v, at)?,
            v => Expr::bool(self.truth(v, at)?).at(at),
        };
        let body = self.in_loop(LoopKind::Run, |i| {
            i.conditional_block(never_holds(&condition), span, |i| i.exec_block(&s.body))
        });
        self.emit(Stmt::new(StmtKind::While(condition, body?), at))?;
        Ok(Flow::Normal)
    }

    fn kernel_assert(&mut self, s: &ast::StmtAssert, span: Span) -> Result<Flow> {
        let test = self.eval(&s.test)?;
        let message = match &s.msg {
            Some(m) => self.eval(m)?,
            None => Value::str(format!("{} does not hold", self.text_of(s.test.range()))),
        };
        let holds = test.is_ir() || self.truth(&test, span)?;
        // An assertion in a block that may be skipped is left to run time.
        if !holds && self.kernel.choices == 0 {
            let text = match &message {
                Value::Tuple(parts) if parts.len() == 2 => {
                    let parts = self.message_parts(&parts[1], span)?;
                    parts.concat()
                }
                other => self.display(other, span)?,
            };
            return self.raise("AssertionError", span, format!("assertion failed: {text}"));
        }
        let condition = match &test {
            v if v.is_ir() => lang::condition(v, self.span(&*s.test))?,
            _ => Expr::bool(holds),
        };
        let (kind, message) = match &message {
            Value::Tuple(parts) if parts.len() == 2 => {
                let kind: Arc<str> = match &parts[0] {
                    Value::Str(s) => (&**s).into(),
                    other => self.display(other, span)?.into(),
                };
                (kind, self.message_parts(&parts[1], span)?)
            }
            other => (Arc::from("RuntimeError"), self.message_parts(other, span)?),
        };
        self.emit(Stmt::new(
            StmtKind::Assert(Assert {
                condition,
                kind,
                message: message.into_iter().map(Arc::from).collect(),
            }),
            span,
        ))?;
        Ok(Flow::Normal)
    }

    fn message_parts(&mut self, value: &Value, span: Span) -> Result<Vec<String>> {
        let items = value.as_items().unwrap_or_else(|| vec![value.clone()]);
        items
            .iter()
            .map(|item| match item {
                Value::Expr(e) if e.as_str().is_some() => Ok(e.as_str().unwrap_or("").to_string()),
                other => self.display(other, span),
            })
            .collect()
    }

    /// An expression as a statement.
    fn kernel_expression(&mut self, s: &ast::StmtExpr, span: Span) -> Result<Flow> {
        let value = self.eval(&s.value)?;
        self.lint_unused(&s.value, &value, span);
        match value {
            Value::Frame(frame) => {
                self.enter_flat(&frame, span)?;
            }
            // The declaration was emitted; a lone variable needs no evaluation.
            Value::Expr(e) if e.as_var().is_some() => {}
            Value::Expr(e) if e.as_str().is_some() => {}
            Value::Expr(e) => self.emit(Stmt::evaluate(e.or_at(span)))?,
            Value::Int(_) | Value::Bool(_) => {
                let e = lang::to_expr(&value, span)?;
                self.emit(Stmt::new(StmtKind::Evaluate(e), span))?;
            }
            Value::Unavailable(why) => return self.unavailable(&why, span),
            _ => {}
        }
        Ok(Flow::Normal)
    }
}
