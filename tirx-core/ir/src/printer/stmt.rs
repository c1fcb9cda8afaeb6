//! Statements as text: one line each, bodies indented.

use super::Printer;
use super::buffer::DescriptionPosition;
use super::expr::{end, type_text};
use crate::at;
use crate::intrin::Op;
use crate::ir::abi::keys;
use crate::ir::{
    Assert, Attr, AttrNode, AttrValue, Buffer, BufferStore, DType, Expr, ExprKind, ForKind, ForLoop,
    HINT_MESSAGE, IterVar, ScopeIdDef, Stmt, StmtKind, Type, Var, Visitor,
};
use std::rc::Rc;
use std::sync::Arc;

impl Printer {
    /// The text of a variable; an undeclared one is declared ahead of the line.
    pub(super) fn var_text(&mut self, var: &Var) -> Rc<str> {
        if let Some(text) = self.names.var(var) {
            return text;
        }
        let text = self.names.define_var(var);
        self.declare(&text, var);
        text
    }

    /// The name of a buffer and whether it is a scalar; an undeclared one is declared ahead of the line.
    pub(super) fn buffer_text(&mut self, buffer: &Buffer) -> (Rc<str>, bool) {
        if let Some(name) = self.names.buffer(buffer) {
            return (name.text.clone(), name.scalar);
        }
        let name = self.names.define_buffer(buffer, false, true);
        let mut definitions = Vec::new();
        let ty = self.buffer_type(&name, buffer, DescriptionPosition::Body, &mut definitions);
        self.before.append(&mut definitions);
        self.before.push(format!("{name} = {ty}"));
        (name, false)
    }

    /// One line, after the declarations that it needs.
    pub(super) fn line(&mut self, text: &str) {
        for before in std::mem::take(&mut self.before) {
            self.raw_line(&before);
        }
        self.raw_line(text);
    }

    fn raw_line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// An indented body in a scope of its own; `define` runs inside it first.
    pub(super) fn body(&mut self, body: &Stmt, define: impl FnOnce(&mut Printer)) {
        self.indent += 1;
        self.names.enter();
        define(self);
        self.block(body);
        self.names.leave();
        self.indent -= 1;
    }

    /// The statements of a body.
    pub(super) fn block(&mut self, body: &Stmt) {
        self.env_threads(body);
        match &body.kind {
            StmtKind::Seq(stmts) if stmts.is_empty() => self.line("pass"),
            StmtKind::Seq(stmts) => {
                let mut rest = stmts.iter().peekable();
                while let Some(stmt) = rest.next() {
                    if let StmtKind::AllocBuffer(buffer, _) = &stmt.kind
                        && self.prescan.is_scalar(buffer)
                    {
                        let value = rest.peek().and_then(|next| initial_value(buffer, next));
                        if value.is_some() {
                            rest.next();
                        }
                        self.scalar(buffer, value);
                        continue;
                    }
                    self.stmt(stmt, false);
                }
            }
            _ => self.stmt(body, true),
        }
    }

    fn env_threads(&mut self, body: &Stmt) {
        for iter_var in self.prescan.clone().env_threads(body) {
            if !self.names.knows(&iter_var.var) {
                let name = self.names.define_var(&iter_var.var);
                let dtype = match iter_var.var.dtype() {
                    DType::INT32 => String::new(),
                    other => format!(", dtype=\"{other}\""),
                };
                self.line(&format!(
                    "{name} = T.env_thread(\"{}\"{dtype})",
                    iter_var.thread_tag
                ));
            }
        }
    }

    /// `x: T.int32 = value`.
    fn scalar(&mut self, buffer: &Buffer, value: Option<&Expr>) {
        // The value is read before the name exists.
        let value = value.map(|v| self.expr_text(v));
        let name = self.names.define_buffer(buffer, true, false);
        match value {
            Some(value) => self.line(&format!("{name}: T.{} = {value}", buffer.dtype)),
            None => self.line(&format!("{name}: T.{}", buffer.dtype)),
        }
    }

    /// A statement. `whole`: it is all of a body, so that a region may be printed flat.
    fn stmt(&mut self, stmt: &Stmt, whole: bool) {
        match &stmt.kind {
            StmtKind::Seq(_) => self.block(stmt),
            StmtKind::Bind(var, value) => {
                let ty = match value.as_str() {
                    Some(_) => type_text(&Type::Prim(DType::VOID)),
                    None => type_text(var.ty()),
                };
                let value = self.expr_text(value);
                let name = self.names.define_var(var);
                self.line(&format!("{name}: T.let[{ty}] = {value}"));
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => self.attr(stmt, node, key, value, body, whole),
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.store(buffer, indices, value, predicate.as_ref());
            }
            StmtKind::AllocBuffer(buffer, _) if self.prescan.is_scalar(buffer) => self.scalar(buffer, None),
            StmtKind::AllocBuffer(buffer, annotations) => {
                let text = self.allocation(buffer, annotations);
                let name = self.names.define_buffer(buffer, false, false);
                self.line(&format!("{name} = {text}"));
            }
            StmtKind::DeclBuffer(buffer) => {
                let text = self.declaration(buffer);
                let name = self.names.define_buffer(buffer, false, false);
                self.line(&format!("{name} = {text}"));
            }
            StmtKind::ScopeId(def) => self.scope_id(def),
            StmtKind::Evaluate(e) => {
                let text = self.expr_text(e);
                match &e.kind {
                    ExprKind::Call { op: Op::Ret, args } if args.len() == 1 => {
                        let value = self.expr_text(&args[at!(Ret.value)]);
                        self.line(&format!("return {value}"));
                    }
                    ExprKind::Call { .. } => self.line(&text),
                    _ => self.line(&format!("T.evaluate({text})")),
                }
            }
            StmtKind::For(_) => self.for_loop(stmt),
            StmtKind::While(condition, body) => {
                let condition = self.expr_text(condition);
                self.line(&format!("while {condition}:"));
                self.body(body, |_| {});
            }
            StmtKind::If(condition, then, otherwise) => {
                let condition = self.expr_text(condition);
                self.line(&format!("if {condition}:"));
                self.body(then, |_| {});
                if let Some(otherwise) = otherwise {
                    self.line("else:");
                    self.body(otherwise, |_| {});
                }
            }
            StmtKind::Assert(Assert {
                condition,
                kind,
                message,
            }) => {
                let mut text = String::from("assert ");
                self.expr(&mut text, condition);
                text.push_str(", (");
                super::literal::string(&mut text, kind);
                text.push_str(", [");
                for (i, part) in message.iter().enumerate() {
                    if i > 0 {
                        text.push_str(", ");
                    }
                    super::literal::string(&mut text, part);
                }
                text.push_str("])");
                self.line(&text);
            }
            StmtKind::Tile(call) => self.tile(call),
        }
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr, predicate: Option<&Expr>) {
        let (name, scalar) = self.buffer_text(buffer);
        let mut text = name.to_string();
        match predicate {
            None => {
                if !scalar {
                    self.indices(&mut text, indices);
                }
                text.push_str(" = ");
                self.expr(&mut text, value);
            }
            Some(predicate) => {
                text.push_str(".vstore([");
                self.list(&mut text, &indices.iter().collect::<Vec<_>>());
                text.push_str("], ");
                self.expr(&mut text, value);
                text.push_str(", predicate=");
                self.expr(&mut text, predicate);
                text.push(')');
            }
        }
        self.line(&text);
    }

    /// A region: a flat line if it is all of its body, otherwise a `with`.
    fn region(&mut self, text: &str, body: &Stmt, whole: bool) {
        if whole {
            self.line(text);
            self.block(body);
        } else {
            self.line(&format!("with {text}:"));
            self.body(body, |_| {});
        }
    }

    fn attr(&mut self, stmt: &Stmt, node: &AttrNode, key: &str, value: &Expr, body: &Stmt, whole: bool) {
        match node {
            AttrNode::None => {
                // Attributes without a subject share a line.
                let mut facts: Vec<(Arc<str>, AttrValue)> = Vec::new();
                let mut inner = stmt;
                while let StmtKind::Attr(Attr {
                    node: AttrNode::None,
                    key,
                    value,
                    body,
                }) = &inner.kind
                {
                    if facts.iter().any(|(k, _)| k == key) {
                        break;
                    }
                    facts.push((key.clone(), AttrValue::Expr(value.clone())));
                    inner = body;
                }
                let mut text = String::from("T.attr(");
                self.attr_dict(&mut text, facts.iter().map(|(k, v)| (&**k, v)));
                text.push(')');
                self.region(&text, inner, whole);
            }
            AttrNode::IterVar(iter_var)
                if key == keys::THREAD_EXTENT
                    || (key == keys::VIRTUAL_THREAD && !self.names.knows(&iter_var.var)) =>
            {
                self.launch(iter_var, value, body, whole);
            }
            AttrNode::Dict(items) => {
                let text = self.hint(items);
                self.region(&text, body, whole);
            }
            _ => {
                let mut text = String::from("T.attr(");
                match node {
                    AttrNode::Str(name) => super::literal::string(&mut text, name),
                    AttrNode::Buffer(buffer) => text.push_str(&self.buffer_text(buffer).0),
                    AttrNode::Expr(e) => self.expr(&mut text, e),
                    AttrNode::IterVar(iter_var) => text.push_str(&self.var_text(&iter_var.var)),
                    AttrNode::None | AttrNode::Dict(_) => {}
                }
                text.push_str(", ");
                super::literal::string(&mut text, key);
                text.push_str(", ");
                self.expr(&mut text, value);
                text.push(')');
                self.region(&text, body, whole);
            }
        }
    }

    /// `T.hint("message", key=value)`.
    fn hint(&mut self, items: &[(Arc<str>, AttrValue)]) -> String {
        let mut text = String::from("T.hint(");
        for (key, value) in items {
            if &**key == HINT_MESSAGE && matches!(value, AttrValue::Str(s) if s.is_empty()) {
                continue;
            }
            if !text.ends_with('(') {
                text.push_str(", ");
            }
            if &**key != HINT_MESSAGE {
                text.push_str(key);
                text.push('=');
            }
            self.attr_value(&mut text, value);
        }
        text.push(')');
        text
    }

    fn launch(&mut self, iter_var: &IterVar, extent: &Expr, body: &Stmt, whole: bool) {
        let extent = self.expr_text(extent);
        if self.names.knows(&iter_var.var) {
            let name = self.var_text(&iter_var.var);
            self.region(&format!("T.launch_thread({name}, {extent})"), body, whole);
            return;
        }
        let call = format!("T.launch_thread(\"{}\", {extent})", iter_var.thread_tag);
        if whole {
            let name = self.names.define_var(&iter_var.var);
            self.line(&format!("{name} = {call}"));
            self.block(body);
        } else {
            self.names.enter();
            let name = self.names.define_var(&iter_var.var);
            self.line(&format!("with {call} as {name}:"));
            self.body(body, |_| {});
            self.names.leave();
        }
    }

    fn scope_id(&mut self, def: &ScopeIdDef) {
        let mut arguments = Vec::new();
        for (name, list) in [("", &def.extents), ("preferred=", &def.preferred)] {
            if let Some(list) = list {
                let mut text = format!("{name}[");
                self.list(&mut text, &list.iter().collect::<Vec<_>>());
                arguments.push(text + "]");
            }
        }
        if let Some(var) = def.vars.first().filter(|var| var.dtype() != DType::INT32) {
            arguments.push(format!("dtype=\"{}\"", var.dtype()));
        }
        let text = format!("T.{}({})", def.kind.name(), arguments.join(", "));
        let names: Vec<Rc<str>> = def.vars.iter().map(|v| self.names.define_var(v)).collect();
        self.line(&format!("{} = {text}", names.join(", ")));
    }

    fn for_loop(&mut self, stmt: &Stmt) {
        let (nest, body) = grid(stmt);
        if nest.len() > 1 {
            let mut text = String::new();
            self.list(
                &mut text,
                &nest.iter().map(|(_, extent)| *extent).collect::<Vec<_>>(),
            );
            self.names.enter();
            let names: Vec<Rc<str>> = nest.iter().map(|(var, _)| self.names.define_var(var)).collect();
            self.line(&format!("for {} in T.grid({text}):", names.join(", ")));
            self.body(body, |_| {});
            self.names.leave();
            return;
        }
        let StmtKind::For(ForLoop {
            var,
            min,
            extent,
            kind,
            thread,
            annotations,
            step,
            body,
        }) = &stmt.kind
        else {
            return;
        };
        let python = *kind == ForKind::Serial && annotations.is_empty();
        let mut text = String::from(match kind {
            _ if python => "range(",
            ForKind::Serial => "T.serial(",
            ForKind::Parallel => "T.parallel(",
            ForKind::Vectorized => "T.vectorized(",
            ForKind::Unrolled => "T.unroll(",
            ForKind::ThreadBinding => "T.thread_binding(",
        });
        if min.is_int(0) && step.is_none() {
            self.expr(&mut text, extent);
        } else {
            self.expr(&mut text, min);
            text.push_str(", ");
            self.expr(&mut text, &end(min, extent));
        }
        if let Some(thread) = thread {
            text.push_str(", thread=");
            super::literal::string(&mut text, &thread.thread_tag);
        }
        if !annotations.is_empty() {
            // Sorted by name, as attributes are.
            let mut sorted: Vec<&(Arc<str>, AttrValue)> = annotations.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            text.push_str(", annotations=");
            self.attr_dict(&mut text, sorted.into_iter().map(|(k, v)| (&**k, v)));
        }
        if let Some(step) = step {
            text.push_str(if python { ", " } else { ", step=" });
            self.expr(&mut text, step);
        }
        text.push(')');
        self.names.enter();
        let name = self.names.define_var(var);
        self.line(&format!("for {name} in {text}:"));
        self.body(body, |_| {});
        self.names.leave();
    }
}

/// The value that `next` stores into a newly declared scalar, unless it reads the scalar itself.
fn initial_value<'a>(buffer: &Buffer, next: &'a Stmt) -> Option<&'a Expr> {
    struct Reads<'a>(&'a Buffer, bool);
    impl Visitor for Reads<'_> {
        fn visit_buffer_use(&mut self, buffer: &Buffer) {
            self.1 |= buffer == self.0;
        }
    }
    match &next.kind {
        StmtKind::BufferStore(BufferStore {
            buffer: target,
            value,
            predicate: None,
            ..
        }) if target == buffer => {
            let mut reads = Reads(buffer, false);
            reads.visit_expr(value);
            (!reads.1).then_some(value)
        }
        _ => None,
    }
}

/// The nested loops from `stmt` inwards that one `T.grid` expresses, and their body.
fn grid(stmt: &Stmt) -> (Vec<(&Var, &Expr)>, &Stmt) {
    struct Reads<'a>(&'a [(&'a Var, &'a Expr)], bool);
    impl Visitor for Reads<'_> {
        fn visit_expr(&mut self, expr: &Expr) {
            self.1 |= expr.as_var().is_some_and(|v| self.0.iter().any(|(w, _)| *w == v));
            self.walk_expr(expr);
        }
    }
    let mut nest: Vec<(&Var, &Expr)> = Vec::new();
    let mut inner = stmt;
    while let StmtKind::For(ForLoop {
        var,
        min,
        extent,
        kind: ForKind::Serial,
        annotations,
        step: None,
        body,
        ..
    }) = &inner.kind
    {
        let mut reads = Reads(&nest, false);
        reads.visit_expr(extent);
        if reads.1 || !min.is_int(0) || !annotations.is_empty() {
            break;
        }
        nest.push((var, extent));
        inner = body;
    }
    (nest, inner)
}
