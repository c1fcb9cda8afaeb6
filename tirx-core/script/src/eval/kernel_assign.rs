//! Assignment in a kernel body: stores, bindings, and naming of created objects.

use std::rc::Rc;

use tirx_python as ast;

use super::stmt::Flow;
use super::value::{Annotation, Value};
use super::{FunctionBuilder, Interpreter, LoopKind};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{Buffer, DType, Expr, ExprKind, Stmt, Var};
use crate::lang;
use crate::source::Span;

/// How deep nested lists are searched for objects to name.
const NESTED: usize = 8;

impl Interpreter {
    pub(super) fn kernel_assign(&mut self, s: &ast::StmtAssign, span: Span) -> Result<Flow> {
        let [target] = &s.targets[..] else {
            return error(
                span,
                "chained assignment is not supported in a kernel; write one assignment per line",
            );
        };
        let value = self.eval_for(&s.value, Some(target))?;
        self.kernel_bind(target, value, Some(&s.value), span)?;
        Ok(Flow::Normal)
    }

    /// Binds or stores the value of an assignment; `source` is the text it came from.
    pub(super) fn kernel_bind(
        &mut self,
        target: &ast::Expr,
        value: Value,
        source: Option<&ast::Expr>,
        span: Span,
    ) -> Result<()> {
        let at = self.span(target);
        match target {
            ast::Expr::Name(n) => {
                // An enclosing function may rebind the name later.
                let before = self.lookup(&n.id, at).unwrap_or(None);
                if let Some(buffer) = before.as_ref().and_then(scalar_buffer)
                    && !self.is_fresh_scalar(&value, source)
                {
                    let value = match &value {
                        Value::Buffer(other) if self.means_element(n, before.as_ref(), source) => {
                            lang::only_element(other, span).map_or(value.clone(), Value::Expr)
                        }
                        _ => value.clone(),
                    };
                    if self.store_scalar(&buffer, &value, span)? {
                        self.lint_cut(&n.id, buffer.dtype, &value, span);
                        return Ok(());
                    }
                }
                // `n = T.int32()` after `T.Buffer(("n",), …)` names the variable that the shape made.
                if let (Some(var), Value::Expr(e)) = (self.kernel.match_vars.get(&n.id), &value)
                    && let Some(new) = e.as_var()
                    && !self.kernel.known_vars.contains(new)
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
                self.check_rebound(&n.id, Some(&value), span)?;
                let bound = self.kernel_value(&n.id, value, source, span)?;
                self.frame.scope.set(n.id.clone(), bound);
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
                    && !self.is_fresh_scalar(&value, source)
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

    /// A name of the IR (a binding, an index, a parameter, a buffer) keeps its meaning to the end of its block.
    fn check_rebound(&mut self, name: &ast::Name, value: Option<&Value>, span: Span) -> Result<()> {
        let Some(before) = self.frame.scope.get_own(name) else {
            return Ok(());
        };
        // A printed host function declares a symbol that its attributes mention, and assigns its value later.
        let split = |f: &FunctionBuilder| f.attrs.contains_key("calling_conv");
        let help = match (&before, value) {
            (Value::Expr(e), _)
                if e.as_var().is_some() && self.kernel.function.as_ref().is_some_and(split) =>
            {
                return Ok(());
            }
            (Value::Buffer(x), Some(Value::Buffer(y))) if x == y => return Ok(()),
            (Value::Expr(x), Some(Value::Expr(y))) if x == y => return Ok(()),
            (Value::Buffer(b), Some(Value::Expr(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_))) => {
                let at = vec!["…"; b.shape.len()].join(", ");
                format!("store an element: {name}[{at}] = …")
            }
            (Value::Expr(e), Some(_))
                if matches!(e.kind, ExprKind::BufferLoad { .. }) && scalar_buffer(&before).is_none() =>
            {
                "pass the buffer and the index, and store there: buffer[index] = …".into()
            }
            // The next iteration of a compile-time loop defines its names again.
            _ if self.within_meta_loop() => return Ok(()),
            (Value::Expr(e), _) => match (&e.kind, scalar_buffer(&before)) {
                (_, Some(_)) => format!("assign without an annotation, {name} = …, or take another name"),
                _ if e.dtype.is_handle() => "take another name".into(),
                _ => format!(
                    "take another name, or start it as a scalar: {name}: T.{} = …",
                    e.dtype
                ),
            },
            (Value::Buffer(_), _) => "take another name".into(),
            _ => return Ok(()),
        };
        let (what, at) = match &before {
            Value::Buffer(b) => ("a buffer", b.span),
            Value::Expr(e) => match &e.kind {
                ExprKind::Var(v) => ("an immutable name", v.span()),
                ExprKind::BufferLoad { buffer, .. } if scalar_buffer(&before).is_some() => {
                    ("a scalar", buffer.span)
                }
                ExprKind::BufferLoad { .. } => ("an element of a buffer", e.span),
                _ => ("an expression", e.span),
            },
            _ => return Ok(()),
        };
        let message = format!("\"{name}\" is {what} here: it cannot be defined again in the same block");
        Err(Box::new(
            Diagnostic::new(span, message).note(at, "defined here").help(help),
        ))
    }

    /// Whether the innermost loop runs at compile time, in the block that is being built.
    fn within_meta_loop(&self) -> bool {
        matches!(self.frame.loops.last(), Some(LoopKind::Meta(blocks)) if *blocks == self.kernel.blocks.len())
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
        // The right side is evaluated completely before the first name changes: `a, b = b, a` reads both scalars first.
        let value = match (&value, sources) {
            (Value::Tuple(items), Some(_)) => Value::tuple(self.settle(items, targets, span)?),
            _ => value,
        };
        // An element of a named tuple or list has no source text of its own.
        let source = source.filter(|s| !matches!(s, ast::Expr::Name(_)));
        let mut index = 0;
        // A `T.meta_var` around several values applies to each of them.
        let kept_out = matches!(value, Value::MetaVar(_));
        self.unpack(targets, &value, span, &mut |interp, target, item| {
            let from = sources.map(|s| &s[index]).or(source);
            index += 1;
            let item = match kept_out {
                true => Value::MetaVar(Rc::new(item)),
                false => item,
            };
            match target {
                // As in TVM, several names at once are new ones in a block where they have not been defined.
                ast::Expr::Name(n) if interp.frame.scope.get_own(&n.id).is_none() => {
                    let bound = interp.kernel_value(&n.id, item, from, span)?;
                    interp.frame.scope.set(n.id.clone(), bound);
                    Ok(())
                }
                ast::Expr::Subscript(s) if interp.is_memory(&s.value)? => {
                    let d = Diagnostic::new(span, "several elements cannot be stored at once");
                    Err(Box::new(d.help(
                        "bind the values to names first, then write one store per line",
                    )))
                }
                _ => interp.kernel_bind(target, item, from, span),
            }
        })
    }

    /// Whether what is indexed is memory of the kernel, not a list or dict.
    fn is_memory(&mut self, object: &ast::Expr) -> Result<bool> {
        let value = self.eval(object)?;
        Ok(matches!(
            value,
            Value::Buffer(_) | Value::Region(_) | Value::Expr(_)
        ))
    }

    /// Reads mutable scalars that a tuple assignment both reads and writes into temporaries.
    fn settle(&mut self, items: &[Value], targets: &[ast::Expr], span: Span) -> Result<Vec<Value>> {
        let mut written = Vec::new();
        for target in targets {
            if let ast::Expr::Name(n) = target
                && let Some(buffer) = self.frame.scope.get_own(&n.id).as_ref().and_then(scalar_buffer)
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

    /// Whether a value is a scalar that this statement declares: `x = T.local_scalar("int32")` stores nothing.
    fn is_fresh_scalar(&self, value: &Value, source: Option<&ast::Expr>) -> bool {
        let Value::Expr(e) = value else { return false };
        matches!(&e.kind, ExprKind::BufferLoad { buffer, .. } if self.kernel.fresh_scalars.contains(&buffer.id()))
            && matches!(source, Some(ast::Expr::Call(_)))
    }

    /// Whether `x = y`, where `y` is a buffer, stores the element of `y`. That is how TVM prints `x[0] = y[0]`. A further
    /// name of a buffer, `y = x`, is no place to store, and a compile-time loop gives its names new meanings.
    fn means_element(
        &self,
        target: &ast::ExprName,
        before: Option<&Value>,
        source: Option<&ast::Expr>,
    ) -> bool {
        if !matches!(source, Some(ast::Expr::Name(_))) {
            return false;
        }
        let Some(Value::Buffer(b)) = before else {
            return true;
        };
        let renamed = self.kernel.renamed_buffers.get(&b.id()).map(|(_, name)| &**name);
        let looped = self.within_meta_loop() && self.frame.scope.get_own(&target.id).is_some();
        renamed.unwrap_or(&b.name) == target.id.as_str() && !looped
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
            Value::Tuple(_) | Value::List(_) => {
                self.name_value(name, &value);
                // A scalar of the host has no text.
                let on_device = self.kernel.function.as_ref().is_some_and(|f| f.on_device);
                if on_device && self.are_kernel_values(&value, 0) {
                    self.items_to_scalars(name, &value, span)?;
                }
            }
            _ => self.name_value(name, &value),
        }
        Ok(value)
    }

    /// Whether a list holds only values that kernels compute with, so that TVM treats it as a value of the kernel.
    fn are_kernel_values(&self, value: &Value, depth: usize) -> bool {
        match value {
            Value::Tuple(_) | Value::List(_) if depth <= NESTED => {
                let items = value.as_items().unwrap_or_default();
                items.iter().all(|item| self.are_kernel_values(item, depth + 1))
            }
            Value::Expr(e) => !e.dtype.is_void() && !e.dtype.is_handle() && e.as_str().is_none(),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => true,
            Value::Buffer(_) | Value::Region(_) | Value::MetaVar(_) => true,
            Value::Instance(i) => i.class.is_meta.get(),
            _ => false,
        }
    }

    /// As in TVM, binding a list to a name computes its values immediately, into `xs_0`, `xs_1`. The list keeps its own
    /// items, so nothing reads these scalars.
    fn items_to_scalars(&mut self, name: &str, value: &Value, span: Span) -> Result<()> {
        for (i, item) in value.as_items().unwrap_or_default().iter().enumerate() {
            let name = format!("{name}_{i}");
            match item {
                Value::Tuple(_) | Value::List(_) => self.items_to_scalars(&name, item, span)?,
                // A variable without a name takes this one.
                Value::Expr(e) if e.as_var().is_some_and(|v| !self.kernel.known_vars.contains(v)) => {}
                Value::Expr(e) => {
                    let is_named = matches!(&e.kind, ExprKind::BufferLoad { buffer, .. }
                        if self.kernel.renamed_buffers.get(&buffer.id()).is_some_and(|(_, n)| **n == *name));
                    if !is_named {
                        self.new_scalar(&name, e.clone(), span)?;
                    }
                }
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                    let e = lang::to_expr(item, span)?;
                    self.new_scalar(&name, e, span)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn kernel_scalar(&mut self, name: &str, e: Expr, source: Option<&ast::Expr>, span: Span) -> Result<Expr> {
        if e.dtype.is_void() {
            return error(span, "this call has no value");
        }
        if let Some(var) = e.as_var()
            && !self.kernel.known_vars.contains(var)
            && !matches!(source, Some(ast::Expr::Name(_)))
        {
            // It has no name yet, wherever it was stored: this becomes its name.
            self.kernel.known_vars.insert(var.clone());
            self.rename_var(&var.clone(), name);
            return Ok(e);
        }
        if let ExprKind::BufferLoad { buffer, indices, .. } = &e.kind
            && indices.len() == 1
            && matches!(source, Some(ast::Expr::Call(_)))
            && self.kernel.fresh_scalars.remove(&buffer.id())
        {
            self.rename_buffer(&buffer.clone(), name);
            return Ok(e);
        }
        if e.dtype.is_handle() {
            let var = Var::at(name, lang::expr_type(&e), span);
            self.kernel.known_vars.insert(var.clone());
            self.emit(Stmt::bind(&var, e, span))?;
            return Ok(Expr::var(&var).at(span));
        }
        self.new_scalar(name, e, span)
    }

    /// A mutable scalar with a first value.
    fn new_scalar(&mut self, name: &str, e: Expr, span: Span) -> Result<Expr> {
        let buffer = lang::local_scalar(self, name, e.dtype, span)?;
        self.kernel.fresh_scalars.remove(&buffer.id());
        self.emit(Stmt::store(&buffer, vec![Expr::int32(0)], e, span))?;
        Ok(Expr::load(&buffer, vec![Expr::int32(0)]).at(span))
    }

    /// Gives buffers within a value the name it is bound to: `pool_buf` for `pool.buf`, `bufs_0` for `bufs[0]`.
    fn name_value(&mut self, name: &str, value: &Value) {
        self.name_nested(name, value, 0);
    }

    fn name_nested(&mut self, name: &str, value: &Value, depth: usize) {
        if depth > NESTED {
            return;
        }
        match value {
            Value::Buffer(b) => {
                self.kernel.fresh_scalars.remove(&b.id());
                self.rename_buffer(b, name);
            }
            Value::Expr(e) => {
                if let ExprKind::BufferLoad { buffer, .. } = &e.kind
                    && self.kernel.fresh_scalars.remove(&buffer.id())
                {
                    self.rename_buffer(&buffer.clone(), name);
                } else if let Some(var) = e.as_var()
                    && !self.kernel.known_vars.contains(var)
                {
                    self.rename_var(&var.clone(), name);
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
                        if &*b.name != "buffer" || self.kernel.renamed_buffers.contains_key(&b.id()));
                    if !is_named {
                        self.name_nested(&format!("{name}_{field}"), &v, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn kernel_annotated(&mut self, s: &ast::StmtAnnAssign, span: Span) -> Result<Flow> {
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
        self.check_rebound(&name.id, None, span)?;
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
                    let is_void = ty.as_ref().is_some_and(|t| t.dtype().is_void());
                    if is_void && !matches!(value, Value::Str(_) | Value::Expr(_)) {
                        let d =
                            Diagnostic::new(at, "nothing has the type void: a name cannot be bound to it");
                        return Err(Box::new(
                            d.help("leave the type out, `x: T.let = …`, or name that of the value"),
                        ));
                    }
                    let e = match (ty, &value) {
                        // Binding a float to an integer variable does not convert it.
                        (Some(ty), Value::Float(_)) if !ty.dtype().is_floating() => {
                            lang::to_expr(&value, span)?
                        }
                        (Some(ty), Value::Int(_) | Value::Float(_) | Value::Bool(_)) => {
                            lang::to_expr_of(&value, ty.dtype(), span)?
                        }
                        (_, Value::Str(text)) => Expr::string(&**text).at(span),
                        _ => lang::to_expr(&value, span)?,
                    };
                    // Printed IR calls the type of a string `void`.
                    let said = ty
                        .as_ref()
                        .filter(|t| t.dtype() != DType::VOID || e.as_str().is_none());
                    let ty = said.cloned().unwrap_or_else(|| lang::expr_type(&e));
                    if ty.dtype() != e.dtype {
                        let message =
                            format!("this T.let has type {} but its value is {}", ty.dtype(), e.dtype);
                        let d = Diagnostic::new(span, message);
                        return Err(Box::new(
                            d.help(format!("cast the value: T.cast(x, \"{}\")", ty.dtype())),
                        ));
                    }
                    let var = Var::at(name.id.as_str(), ty, span);
                    self.kernel.known_vars.insert(var.clone());
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
                self.kernel.fresh_scalars.remove(&buffer.id());
                let place = Expr::load(&buffer, vec![Expr::int32(0)]).at(span);
                if let Some(value) = value {
                    let value = self.plain_number(&value);
                    lang::store(self, &Value::Buffer(buffer), &Value::Int(0), &value, span)?;
                }
                Value::Expr(place)
            }
        };
        self.frame.scope.set(name.id.clone(), bound);
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
    e.operands().any(|o| reads(o, buffer))
}
