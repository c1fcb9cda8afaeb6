//! Attributes, statements and functions of an image.

use super::*;

impl Encoder {
    pub(super) fn attr_value(&mut self, value: &AttrValue) {
        let value = if self.structural { &value.plain() } else { value };
        match value {
            AttrValue::None => self.byte(0),
            AttrValue::Bool(v) => {
                self.byte(1);
                self.byte(*v as u8);
            }
            AttrValue::Int(v) => {
                self.byte(2);
                self.int(i128::from(*v));
            }
            AttrValue::Float(v) => {
                self.byte(3);
                self.body.extend(v.to_bits().to_le_bytes());
            }
            AttrValue::Str(s) => {
                self.byte(4);
                self.string(s);
            }
            AttrValue::List(items) => {
                self.byte(5);
                self.uint(items.len() as u64);
                items.iter().for_each(|i| self.attr_value(i));
            }
            AttrValue::Dict(items) => {
                self.byte(6);
                self.attrs(items.iter());
            }
            AttrValue::Expr(e) => {
                self.byte(7);
                self.expr(e);
            }
            AttrValue::Target(items) => {
                self.byte(8);
                self.attrs(items.iter());
            }
        }
    }

    pub(super) fn attrs<'a>(&mut self, items: impl ExactSizeIterator<Item = (&'a Arc<str>, &'a AttrValue)>) {
        self.uint(items.len() as u64);
        let mut items: Vec<_> = items.collect();
        if self.structural {
            items.sort_by_key(|(k, _)| (*k).clone());
        }
        for (key, value) in items {
            self.string(key);
            self.attr_value(value);
        }
    }

    pub(super) fn iter_var(&mut self, iter_var: &IterVar) {
        self.var(&iter_var.var);
        self.string(&iter_var.thread_tag);
        if self.structural {
            return;
        }
        self.byte(number(&ITERS, &iter_var.kind));
        self.byte(iter_var.dom.is_some() as u8);
        if let Some((min, extent)) = &iter_var.dom {
            self.expr(min);
            self.expr(extent);
        }
    }

    pub(super) fn attr_node(&mut self, key: &str, node: &AttrNode) {
        match node {
            AttrNode::None => self.byte(0),
            AttrNode::Str(s) => {
                self.byte(1);
                self.string(s);
            }
            // Printed text names the variable, not the index.
            AttrNode::IterVar(iter_var) if self.structural && key != keys::THREAD_EXTENT => {
                self.byte(4);
                self.expr(&Expr::var(&iter_var.var));
            }
            AttrNode::IterVar(iter_var) => {
                self.byte(2);
                self.iter_var(iter_var);
            }
            AttrNode::Buffer(buffer) => {
                self.byte(3);
                self.buffer(buffer);
            }
            AttrNode::Expr(e) => {
                self.byte(4);
                self.expr(e);
            }
            AttrNode::Dict(items) => {
                self.byte(5);
                self.attrs(items.iter().map(|(k, v)| (k, v)));
            }
        }
    }

    pub(super) fn scope_id(&mut self, def: &ScopeIdDef) {
        let kind = ScopeIdKind::ALL
            .iter()
            .position(|(k, _)| *k == def.kind)
            .unwrap_or(0);
        self.byte(kind as u8);
        for list in [&def.extents, &def.preferred] {
            self.byte(list.is_some() as u8);
            list.iter().for_each(|l| self.exprs(l));
        }
        self.uint(def.vars.len() as u64);
        def.vars.iter().for_each(|v| self.var(v));
    }

    pub(crate) fn stmt(&mut self, s: &Stmt) {
        let tag = match &s.kind {
            StmtKind::Bind(..) => 0,
            StmtKind::Attr(_) => 1,
            StmtKind::BufferStore(_) => 2,
            StmtKind::AllocBuffer(..) => 3,
            StmtKind::DeclBuffer(_) => 4,
            StmtKind::ScopeId(_) => 5,
            StmtKind::Seq(_) => 6,
            StmtKind::Evaluate(_) => 7,
            StmtKind::For(_) => 8,
            StmtKind::While(..) => 9,
            StmtKind::If(..) => 10,
            StmtKind::Assert(_) => 11,
            StmtKind::Tile(_) => 12,
        };
        self.byte(tag);
        self.span(s.span);
        match &s.kind {
            StmtKind::Bind(var, value) => {
                self.expr(value);
                self.var(var);
            }
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                self.string(key);
                self.expr(value);
                self.attr_node(key, node);
                self.stmt(body);
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                self.buffer(buffer);
                self.exprs(indices);
                self.expr(value);
                self.option(predicate.as_ref());
            }
            StmtKind::AllocBuffer(buffer, annotations) => {
                self.buffer(buffer);
                self.attrs(annotations.iter().map(|(k, v)| (k, v)));
            }
            StmtKind::DeclBuffer(buffer) => self.buffer(buffer),
            StmtKind::ScopeId(def) => self.scope_id(def),
            StmtKind::Seq(stmts) => {
                self.uint(stmts.len() as u64);
                stmts.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::Evaluate(e) => self.expr(e),
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                thread,
                annotations,
                step,
                body,
            }) => {
                self.byte(number(&LOOPS, kind));
                self.expr(min);
                self.expr(extent);
                self.option(step.as_ref());
                self.var(var);
                self.byte(thread.is_some() as u8);
                if let Some(thread) = thread {
                    if self.structural {
                        self.string(&thread.thread_tag)
                    } else {
                        self.iter_var(thread)
                    }
                }
                self.attrs(annotations.iter().map(|(k, v)| (k, v)));
                self.stmt(body);
            }
            StmtKind::While(condition, body) => {
                self.expr(condition);
                self.stmt(body);
            }
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition);
                self.byte(otherwise.is_some() as u8);
                self.stmt(then);
                otherwise.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::Assert(Assert {
                condition,
                kind,
                message,
            }) => {
                self.expr(condition);
                self.string(kind);
                self.uint(message.len() as u64);
                message.iter().for_each(|m| self.string(m));
            }
            StmtKind::Tile(call) => self.tile(call),
        }
    }

    pub(super) fn tile(&mut self, call: &TileCall) {
        self.string(&call.op.name().into());
        self.string(&call.scope.name().into());
        self.uint(call.args.len() as u64);
        for arg in &call.args {
            match arg {
                TileArg::None => self.byte(0),
                TileArg::Region(region) => {
                    self.byte(1);
                    self.buffer(&region.buffer);
                    self.exprs(&region.starts());
                    self.exprs(&region.extents());
                }
                TileArg::Expr(e) => {
                    self.byte(2);
                    self.expr(e);
                }
                TileArg::Axes(axes) => {
                    self.byte(3);
                    self.uint(axes.len() as u64);
                    axes.iter().for_each(|a| self.int(i128::from(*a)));
                }
                TileArg::Operation(op) => {
                    self.byte(4);
                    self.string(&op.name().into());
                }
                TileArg::Lambda(vars, body) => {
                    self.byte(5);
                    self.uint(vars.len() as u64);
                    vars.iter().for_each(|v| self.var(v));
                    self.expr(body);
                }
                TileArg::Body(body) => {
                    self.byte(6);
                    self.stmt(body);
                }
            }
        }
        self.uint(call.workspace.len() as u64);
        for (name, buffer) in &call.workspace {
            self.string(name);
            self.buffer(buffer);
        }
        self.attrs(call.config.iter());
        self.byte(call.dispatch.is_some() as u8);
        call.dispatch.iter().for_each(|d| self.string(d));
    }

    pub(crate) fn func(&mut self, func: &PrimFunc) {
        self.uint(func.params.len() as u64);
        for param in &func.params {
            self.var(param);
        }
        // In parameter order, by position, so that a map in another order hashes alike.
        let buffers: Vec<_> = func
            .params
            .iter()
            .enumerate()
            .filter_map(|(i, p)| Some((i, func.buffer_of(p)?)))
            .collect();
        self.uint(buffers.len() as u64);
        for (position, buffer) in buffers {
            self.uint(position as u64);
            self.buffer(buffer);
        }
        self.byte(func.ret.is_some() as u8);
        func.ret.iter().for_each(|ty| self.ty(ty));
        self.attrs(func.attrs.iter());
        self.span(func.span);
        self.stmt(&func.body);
    }

    pub(crate) fn module(&mut self, module: &IRModule) {
        self.attrs(module.attrs.iter());
        let mut functions: Vec<_> = module.functions.iter().collect();
        if self.structural {
            functions.sort_by_key(|(name, _)| name.clone());
        }
        self.uint(functions.len() as u64);
        for (name, func) in functions {
            self.string(name);
            self.func(func);
        }
    }
}
