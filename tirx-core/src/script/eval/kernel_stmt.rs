//! Statements of a kernel body: what is known now is decided now, the rest becomes statements of the IR.

use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::Ranged;

use super::expr::target_names;
use super::stmt::Flow;
use super::value::{Annotation, Frame, Loop, Value};
use super::{Args, Interpreter, LoopKind, Mode, Scope, ScopeKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{Buffer, DType, Expr, ExprKind, Stmt, StmtKind, Var};
use crate::script::lang;
use crate::source::Span;

impl Interpreter {
    pub(super) fn exec_kernel(&mut self, stmt: &ast::Stmt, span: Span) -> Result<Flow> {
        match stmt {
            ast::Stmt::Assign(s) => self.kernel_assign(s, span),
            ast::Stmt::AnnAssign(s) => self.kernel_annotated(s, span),
            ast::Stmt::AugAssign(s) => {
                let (before, value) = self.augmented(s, span)?;
                // What was known before and is known now stays known.
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

    // Assignment.

    fn kernel_assign(&mut self, s: &ast::StmtAssign, span: Span) -> Result<Flow> {
        let [target] = &s.targets[..] else {
            return error(
                span,
                "chained assignment is not supported in a kernel; write one assignment a line",
            );
        };
        let value = self.eval_for(&s.value, Some(target))?;
        self.kernel_bind(target, value, Some(&s.value), span)?;
        Ok(Flow::Normal)
    }

    /// Binds or stores the value of an assignment; `source` is the text it came from.
    fn kernel_bind(
        &mut self,
        target: &ast::Expr,
        value: Value,
        source: Option<&ast::Expr>,
        span: Span,
    ) -> Result<()> {
        let at = self.span(target);
        match target {
            ast::Expr::Name(n) => {
                let before = self.lookup(&n.id, at)?;
                if let Some(buffer) = before.as_ref().and_then(scalar_buffer)
                    && self.store_scalar(&buffer, &value, span)?
                {
                    return Ok(());
                }
                // `n = T.int32()` after `T.Buffer(("n",), …)` names the variable that the shape made.
                if let (Some(var), Value::Expr(e)) = (self.match_vars.get(&n.id), &value)
                    && let Some(new) = e.as_var()
                    && !self.known_vars.contains(new)
                    && matches!(source, Some(ast::Expr::Call(_)))
                {
                    if var.ty() != new.ty() {
                        let d = Diagnostic::new(
                            span,
                            format!(
                                "\"{}\" is {} here but {} in the parameter list",
                                n.id,
                                new.dtype(),
                                var.dtype()
                            ),
                        );
                        return Err(Box::new(d.note(var.span(), "its first use")));
                    }
                    return Ok(());
                }
                let bound = self.kernel_value(&n.id, value, source, span)?;
                self.scope.set(n.id.clone(), bound);
                Ok(())
            }
            ast::Expr::Tuple(t) => self.kernel_unpack(&t.elts, value, source, span),
            ast::Expr::List(t) => self.kernel_unpack(&t.elts, value, source, span),
            ast::Expr::Subscript(s) => {
                let object = self.eval(&s.value)?;
                let index = self.eval_index(&s.slice)?;
                self.set_item(&object, &index, value, span)
            }
            ast::Expr::Attribute(a) => {
                let object = self.eval(&a.value)?;
                let before = match &object {
                    Value::Instance(i) => i.get(&a.attr.id),
                    _ => None,
                };
                if let Some(buffer) = before.as_ref().and_then(scalar_buffer)
                    && self.store_scalar(&buffer, &value, span)?
                {
                    return Ok(());
                }
                let value = match value {
                    Value::MetaVar(v) => (*v).clone(),
                    other => other,
                };
                self.set_attribute(&object, &a.attr.id, value, at)
            }
            ast::Expr::Starred(s) => self.kernel_bind(&s.value, value, source, span),
            _ => error(at, "this cannot be assigned to"),
        }
    }

    fn kernel_unpack(
        &mut self,
        targets: &[ast::Expr],
        value: Value,
        source: Option<&ast::Expr>,
        span: Span,
    ) -> Result<()> {
        let sources: Option<&[ast::Expr]> = match source {
            Some(ast::Expr::Tuple(t)) if t.elts.len() == targets.len() => Some(&t.elts),
            Some(ast::Expr::List(t)) if t.elts.len() == targets.len() => Some(&t.elts),
            _ => None,
        };
        // The right side is complete before the first name changes: `a, b = b, a` reads both scalars first.
        let value = match (&value, sources) {
            (Value::Tuple(items), Some(_)) => Value::tuple(self.settle(items, targets, span)?),
            _ => value,
        };
        let mut index = 0;
        self.unpack(targets, &value, span, &mut |interp, target, item| {
            let from = sources.map(|s| &s[index]).or(source);
            index += 1;
            interp.kernel_bind(target, item, from, span)
        })
    }

    /// Reads mutable scalars that a tuple assignment both reads and writes into temporaries.
    fn settle(&mut self, items: &[Value], targets: &[ast::Expr], span: Span) -> Result<Vec<Value>> {
        let mut written = Vec::new();
        for target in targets {
            if let ast::Expr::Name(n) = target
                && let Some(buffer) = self.lookup(&n.id, span)?.as_ref().and_then(scalar_buffer)
            {
                written.push(buffer);
            }
        }
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            // Only stores that come before this one matter.
            let earlier = &written[..i.min(written.len())];
            match item {
                Value::Expr(e) if earlier.iter().any(|b| reads(e, b)) => {
                    out.push(Value::Expr(self.new_scalar("tmp", e.clone(), span)?));
                }
                other => out.push(other.clone()),
            }
        }
        Ok(out)
    }

    /// `x = value` where `x` is a one-element buffer. `false` where the value cannot be stored, so that the
    /// name is bound anew.
    fn store_scalar(&mut self, buffer: &Buffer, value: &Value, span: Span) -> Result<bool> {
        match value {
            Value::Expr(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {}
            Value::Instance(_) if !matches!(self.plain_number(value), Value::Instance(_)) => {}
            _ => return Ok(false),
        }
        let value = self.plain_number(value);
        lang::store(self, &Value::Buffer(buffer.clone()), &Value::Int(0), &value, span)?;
        Ok(true)
    }

    /// What a name is bound to by `name = value` in a kernel: buffers and fresh variables take the name,
    /// other run-time values and numbers become a mutable scalar, everything else is itself.
    fn kernel_value(
        &mut self,
        name: &str,
        value: Value,
        source: Option<&ast::Expr>,
        span: Span,
    ) -> Result<Value> {
        let value = match value {
            Value::Expr(e) => return self.kernel_scalar(name, e, source, span).map(Value::Expr),
            Value::MetaVar(v) => return Ok((*v).clone()),
            other => other,
        };
        match &value {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let e = lang::to_expr(&value, span)?;
                return self.kernel_scalar(name, e, None, span).map(Value::Expr);
            }
            Value::Frame(frame) => return self.enter_flat(&frame.clone(), span),
            Value::Unavailable(why) => return self.unavailable(why, span),
            _ => self.name_value(name, &value),
        }
        Ok(value)
    }

    fn kernel_scalar(&mut self, name: &str, e: Expr, source: Option<&ast::Expr>, span: Span) -> Result<Expr> {
        if e.dtype.is_void() {
            return error(span, "this call has no value");
        }
        if let Some(var) = e.as_var()
            && !self.known_vars.contains(var)
            && matches!(source, Some(ast::Expr::Call(_)))
        {
            // Fresh from its constructor: it is this name's variable.
            self.known_vars.insert(var.clone());
            self.rename_var(&var.clone(), name);
            return Ok(e);
        }
        if let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind
            && indices.len() == 1
            && matches!(source, Some(ast::Expr::Call(_)))
            && self.fresh_scalars.remove(&buffer.id())
        {
            self.rename_buffer(&buffer.clone(), name);
            return Ok(e);
        }
        if e.dtype.is_handle() {
            let var = Var::at(name, lang::expr_type(&e), span);
            self.known_vars.insert(var.clone());
            self.emit(Stmt::bind(&var, e, span))?;
            return Ok(Expr::var(&var).at(span));
        }
        self.new_scalar(name, e, span)
    }

    /// A mutable scalar with a first value.
    fn new_scalar(&mut self, name: &str, e: Expr, span: Span) -> Result<Expr> {
        let buffer = lang::local_scalar(self, name, e.dtype, span)?;
        self.fresh_scalars.remove(&buffer.id());
        self.emit(Stmt::store(&buffer, vec![Expr::int32(0)], e, span))?;
        Ok(Expr::load(&buffer, vec![Expr::int32(0)]).at(span))
    }

    /// Gives buffers within a value the name it is bound to: `pool_buf` for `pool.buf`, `bufs_0` for `bufs[0]`.
    fn name_value(&mut self, name: &str, value: &Value) {
        self.name_nested(name, value, 0);
    }

    fn name_nested(&mut self, name: &str, value: &Value, depth: usize) {
        if depth > 8 {
            return;
        }
        match value {
            Value::Buffer(b) => {
                self.fresh_scalars.remove(&b.id());
                self.rename_buffer(b, name);
            }
            Value::Expr(e) => {
                if let ExprKind::BufferLoad { buffer, .. } = &e.kind
                    && self.fresh_scalars.remove(&buffer.id())
                {
                    self.rename_buffer(&buffer.clone(), name);
                }
            }
            Value::Tuple(_) | Value::List(_) => {
                for (i, item) in value.as_items().unwrap_or_default().iter().enumerate() {
                    self.name_nested(&format!("{name}_{i}"), item, depth + 1);
                }
            }
            Value::Instance(i) if i.class.is_meta.get() => {
                let fields = i.fields.borrow().clone();
                for (field, v) in fields {
                    // A buffer that has a name already keeps it.
                    let is_named = matches!(&v, Value::Buffer(b)
                        if &*b.name != "buffer" || self.renamed_buffers.contains_key(&b.id()));
                    if !is_named {
                        self.name_nested(&format!("{name}_{field}"), &v, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn kernel_annotated(&mut self, s: &ast::StmtAnnAssign, span: Span) -> Result<Flow> {
        let at = self.span(&*s.annotation);
        let value = match &s.value {
            Some(v) => Some(self.eval(v)?),
            None => None,
        };
        let annotation = self.eval(&s.annotation)?;
        let ast::Expr::Name(name) = &*s.target else {
            return error(
                self.span(&*s.target),
                "only a plain name can have an annotation in a kernel",
            );
        };
        let value = match value {
            Some(Value::MetaVar(v)) => Some((*v).clone()),
            other => other,
        };
        let bound = match &annotation {
            Value::Annotation(a) => match &**a {
                Annotation::LocalVector(dtype, shape) => {
                    if s.value.is_some() {
                        return error(
                            span,
                            "a local vector cannot have an initial value; store its elements",
                        );
                    }
                    let buffer = lang::local_vector(self, &name.id, *dtype, shape.clone(), span)?;
                    Value::Buffer(buffer)
                }
                Annotation::Let(ty) => {
                    let Some(value) = value else {
                        return error(span, "T.let needs a value: `x: T.let = value`");
                    };
                    let e = match (ty, &value) {
                        (Some(ty), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                            lang::to_expr_of(&value, ty.dtype(), span)?
                        }
                        (_, Value::Str(text)) => Expr::string(&**text).at(span),
                        _ => lang::to_expr(&value, span)?,
                    };
                    let ty = ty.clone().unwrap_or_else(|| lang::expr_type(&e));
                    if ty.dtype() != e.dtype {
                        return error(
                            span,
                            format!("this T.let has type {} but its value is {}", ty.dtype(), e.dtype),
                        );
                    }
                    let var = Var::at(name.id.as_str(), ty, span);
                    self.known_vars.insert(var.clone());
                    self.emit(Stmt::bind(&var, e, span))?;
                    Value::Expr(Expr::var(&var).at(span))
                }
                Annotation::Constexpr => {
                    return error(
                        at,
                        "T.constexpr is for parameters of a @T.jit; a module-level constant needs none",
                    );
                }
                Annotation::Optional(_) => return error(at, "T.Optional is for parameters of a @T.jit"),
            },
            _ => {
                let dtype = self.scalar_annotation(&annotation, at)?;
                let buffer = lang::local_scalar(self, &name.id, dtype, span)?;
                self.fresh_scalars.remove(&buffer.id());
                let place = Expr::load(&buffer, vec![Expr::int32(0)]).at(span);
                if let Some(value) = value {
                    let value = self.plain_number(&value);
                    lang::store(self, &Value::Buffer(buffer), &Value::Int(0), &value, span)?;
                }
                Value::Expr(place)
            }
        };
        self.scope.set(name.id.clone(), bound);
        Ok(Flow::Normal)
    }

    fn scalar_annotation(&mut self, annotation: &Value, at: Span) -> Result<DType> {
        if let Value::Class(c) = annotation {
            let better = match &*c.name {
                "int" => "T.int32",
                "float" => "T.float32",
                "bool" => "T.bool",
                _ => "T.int32",
            };
            return Err(Box::new(
                Diagnostic::new(at, format!("\"{}\" is no dtype of a kernel", c.name))
                    .help(format!("did you mean \"{better}\"?")),
            ));
        }
        let ty = self.annotation_type(annotation, at)?;
        match ty {
            crate::ir::Type::Prim(d) if !d.is_handle() && !d.is_void() => Ok(d),
            _ => Err(Box::new(
                Diagnostic::new(at, "a pointer cannot be a mutable scalar")
                    .help("bind it once: `p: T.let[T.handle(\"float32\")] = …`"),
            )),
        }
    }

    // Control flow.

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
        let then = self.kernel_block(span, |i| i.exec_block(body))?;
        let otherwise = if clauses.is_empty() {
            None
        } else {
            Some(self.kernel_block(span, |i| i.kernel_else(clauses))?)
        };
        let otherwise = otherwise.filter(|s| !s.is_nop());
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

    /// Runs statements in a block and a scope of their own; gives what they built.
    fn kernel_block(
        &mut self,
        span: Span,
        run: impl FnOnce(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Stmt> {
        self.open_block(span)?;
        let scope = Scope::new(ScopeKind::Block, Some(self.scope.clone()));
        let saved = std::mem::replace(&mut self.scope, scope);
        let result = run(self);
        let ended = std::mem::replace(&mut self.scope, saved);
        let stmt = self.close_block();
        for name in ended.vars.borrow().keys() {
            self.ended_names.insert(name.clone(), span);
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
        match self.loops.last() {
            None => error(span, format!("\"{word}\" outside of a loop")),
            Some(LoopKind::Run) => {
                self.emit(Stmt::evaluate(Expr::call(op, DType::VOID, vec![]).at(span)))?;
                Ok(Flow::Normal)
            }
            Some(LoopKind::Meta(blocks)) if *blocks == self.blocks.len() => Ok(flow),
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
        let call_depth = self.calls.last().map(|c| c.blocks);
        if let Some(blocks) = call_depth {
            // An inline function gives its value to the kernel that calls it.
            let value = match &s.value {
                Some(v) => self.eval(v)?,
                None => Value::None,
            };
            if blocks != self.blocks.len() || self.loops.contains(&LoopKind::Run) {
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
        let e = match &s.value {
            Some(v) => {
                let value = self.eval(v)?;
                let value = match (&value, self.function_ret()) {
                    (Value::Int(_) | Value::Float(_) | Value::Bool(_), Some(d)) => {
                        lang::to_expr_of(&value, d, span)?
                    }
                    (Value::None, _) => return self.emit_thread_return(span),
                    _ => lang::to_expr(&value, span)?,
                };
                Expr::call(Op::Ret, DType::VOID, vec![value]).at(span)
            }
            None => return self.emit_thread_return(span),
        };
        self.emit(Stmt::evaluate(e))?;
        Ok(Flow::Normal)
    }

    fn emit_thread_return(&mut self, span: Span) -> Result<Flow> {
        let e = Expr::call(Op::ThreadReturn, DType::VOID, vec![]).at(span);
        self.emit(Stmt::evaluate(e))?;
        Ok(Flow::Normal)
    }

    fn function_ret(&self) -> Option<DType> {
        self.function.as_ref()?.ret.as_ref().map(|t| t.dtype())
    }

    fn kernel_for(&mut self, s: &ast::StmtFor, span: Span) -> Result<Flow> {
        if s.is_async {
            return error(span, "\"async for\" is not supported in kernel files");
        }
        let source = match &*s.iter {
            // `range` in a kernel is a loop of the kernel, whatever its bounds are.
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

    fn run_loops(&mut self, s: &ast::StmtFor, loops: &[Loop], span: Span) -> Result<Flow> {
        if let Some(first) = s.orelse.first() {
            return error(
                self.span(first),
                "\"else\" of a loop that runs in the kernel is not supported",
            );
        }
        for l in loops {
            self.known_vars.insert(l.var.clone());
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
        // Only the names are the loops' own; nothing is stored.
        let (names, is_tuple) = target_names(&s.target);
        if is_tuple && names.len() == loops.len() {
            for (name, l) in names.iter().zip(loops) {
                self.rename_var(&l.var.clone(), name);
            }
        } else if let ([name], [l]) = (&names[..], loops) {
            self.rename_var(&l.var.clone(), name);
        }
        for _ in 1..loops.len() {
            // Each loop is a level of its own.
            if self.blocks.len() + loops.len() > super::limits::NESTING {
                return self.limit(span, "too many nested loops");
            }
        }
        self.loops.push(LoopKind::Run);
        let body = self.kernel_block(span, |i| {
            let mode = std::mem::replace(&mut i.mode, Mode::Meta);
            let bound = i.bind(&s.target, value);
            i.mode = mode;
            bound?;
            i.exec_block(&s.body)
        });
        self.loops.pop();
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
        self.loops.push(LoopKind::Run);
        let body = self.kernel_block(span, |i| i.exec_block(&s.body));
        self.loops.pop();
        self.emit(Stmt::new(StmtKind::While(condition, body?), at))?;
        Ok(Flow::Normal)
    }

    fn kernel_assert(&mut self, s: &ast::StmtAssert, span: Span) -> Result<Flow> {
        let test = self.eval(&s.test)?;
        let message = match &s.msg {
            Some(m) => self.eval(m)?,
            None => Value::str(format!("{} does not hold", self.text_of(s.test.range()))),
        };
        if !test.is_ir() && !self.truth(&test, span)? {
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
            _ => Expr::bool(true),
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
            StmtKind::Assert {
                condition,
                kind,
                message: message.into_iter().map(Arc::from).collect(),
            },
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
        match value {
            Value::Frame(frame) => {
                self.enter_flat(&frame, span)?;
            }
            // The declaration was emitted; a lone variable is nothing to evaluate.
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

    // Regions.

    /// `with`: regions of the kernel, and objects with `__enter__` and `__exit__`.
    pub(super) fn exec_with(&mut self, s: &ast::StmtWith, span: Span) -> Result<Flow> {
        if s.is_async {
            return error(span, "\"async with\" is not supported in kernel files");
        }
        if self.mode == Mode::Kernel {
            let scope = Scope::new(ScopeKind::Block, Some(self.scope.clone()));
            let saved = std::mem::replace(&mut self.scope, scope);
            let result = self.with_items(&s.items, &s.body);
            self.scope = saved;
            return result;
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
            Value::Frame(frame) => {
                let frame = frame.clone();
                self.with_frame(&frame, target, at, &mut |i| i.with_items(rest, body))
            }
            Value::Instance(i) => {
                let enter = self.class_attribute(&i.class, "__enter__");
                let exit = self.class_attribute(&i.class, "__exit__");
                let (Some(enter), Some(exit)) = (enter, exit) else {
                    return error(
                        at,
                        format!("{} cannot be used with \"with\"", context.type_name()),
                    );
                };
                let value = self.call_method(&enter, &context, Args::default(), at)?;
                if let Some(target) = target {
                    self.bind_plain(target, value)?;
                }
                let flow = self.with_items(rest, body)?;
                let nothing = Args::of([Value::None, Value::None, Value::None], at);
                self.call_method(&exit, &context, nothing, at)?;
                Ok(flow)
            }
            Value::Unavailable(why) => self.unavailable(why, at),
            other => error(at, format!("{} cannot be used with \"with\"", other.type_name())),
        }
    }

    fn bind_plain(&mut self, target: &ast::Expr, value: Value) -> Result<()> {
        let mode = std::mem::replace(&mut self.mode, Mode::Meta);
        let result = self.bind(target, value);
        self.mode = mode;
        result
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
        self.open_block(span)?;
        if let Frame::If(_) = &**frame {
            self.branches.push((None, None));
        }
        let result = match &**frame {
            Frame::Many(frames) => self.with_many(frames, span, body),
            _ => body(self),
        };
        let stmt = self.close_block();
        let flow = result?;
        let stmt = match &**frame {
            Frame::Region { wrap, .. } => wrap(stmt),
            Frame::Many(_) => stmt,
            Frame::For(loops) => close_loops(loops, stmt, span),
            Frame::While(condition) => Stmt::new(StmtKind::While(condition.clone(), stmt), span),
            Frame::Then | Frame::Else => {
                let Some(branches) = self.branches.last_mut() else {
                    return error(span, "T.Then and T.Else stand in a T.If");
                };
                if matches!(**frame, Frame::Then) {
                    branches.0 = Some(stmt);
                } else {
                    branches.1 = Some(stmt);
                }
                return Ok(flow);
            }
            Frame::If(condition) => {
                // The body of T.If is nothing but its branches, which were collected by the frames above.
                let (then, otherwise) = self.branches.pop().unwrap_or_default();
                Stmt::if_else(condition.clone(), then.unwrap_or_else(Stmt::nop), otherwise, span)
            }
        };
        self.emit(stmt)?;
        match flow {
            Flow::Normal => Ok(flow),
            _ => error(
                span,
                "\"return\", \"break\" and \"continue\" of compile time cannot leave a region",
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

    /// Opens a region for the rest of the block; gives what a name for it is bound to.
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

    fn know(&mut self, value: &Value) {
        match value {
            Value::Expr(e) => {
                if let Some(v) = e.as_var() {
                    self.known_vars.insert(v.clone());
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
fn close_loops(loops: &[Loop], body: Stmt, span: Span) -> Stmt {
    loops.iter().rev().fold(body, |body, l| {
        Stmt::new(
            StmtKind::For {
                var: l.var.clone(),
                min: l.min.clone(),
                extent: l.extent.clone(),
                kind: l.kind,
                thread: l.thread.clone(),
                annotations: l.annotations.clone(),
                step: l.step.clone(),
                body,
            },
            span,
        )
    })
}

/// The buffer behind a name that is assigned by storing: a one-element buffer or its element.
fn scalar_buffer(value: &Value) -> Option<Buffer> {
    let buffer = match value {
        Value::Buffer(b) => b,
        Value::Expr(e) => match &e.kind {
            ExprKind::BufferLoad { buffer, .. } => buffer,
            _ => return None,
        },
        _ => return None,
    };
    match &buffer.shape[..] {
        [one] if one.is_int(1) => Some(buffer.clone()),
        _ => None,
    }
}

/// Whether an expression reads a buffer.
fn reads(e: &Expr, buffer: &Buffer) -> bool {
    if let ExprKind::BufferLoad { buffer: b, .. } = &e.kind
        && b == buffer
    {
        return true;
    }
    e.operands().into_iter().any(|o| reads(o, buffer))
}
