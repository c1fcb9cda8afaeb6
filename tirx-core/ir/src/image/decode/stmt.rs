//! Attributes, statements and functions of an image.

use super::*;

impl Decoder<'_> {
    pub(super) fn attr_value(&mut self) -> Outcome<AttrValue> {
        self.deeper()?;
        let value = match self.byte()? {
            0 => AttrValue::None,
            1 => AttrValue::Bool(self.flag()?),
            2 => {
                let value = self.int()?;
                AttrValue::Int(i64::try_from(value).or_else(|_| self.fail("a number is too large"))?)
            }
            3 => AttrValue::Float(self.f64()?),
            4 => AttrValue::Str(self.string()?),
            5 => AttrValue::List(self.list(Self::attr_value)?),
            6 => AttrValue::Dict(self.attrs()?),
            7 => AttrValue::Expr(self.expr()?),
            8 => AttrValue::Target(self.attrs()?),
            _ => return self.fail("an unknown attribute value"),
        };
        self.depth -= 1;
        Ok(value)
    }

    pub(super) fn pairs(&mut self) -> Outcome<Vec<(Arc<str>, AttrValue)>> {
        self.list(|d| Ok((d.string()?, d.attr_value()?)))
    }

    pub(super) fn attrs(&mut self) -> Outcome<Attrs> {
        Ok(self.pairs()?.into_iter().collect())
    }

    pub(super) fn iter_var(&mut self) -> Outcome<IterVar> {
        let var = self.var()?;
        let thread_tag = self.string()?;
        let kind = self.byte()?;
        let Some(kind) = ITERS.get(kind as usize) else {
            return self.fail("an unknown kind of index");
        };
        let dom = if self.flag()? {
            Some((self.expr()?, self.expr()?))
        } else {
            None
        };
        Ok(IterVar {
            var,
            dom,
            kind: *kind,
            thread_tag,
        })
    }

    pub(super) fn attr_node(&mut self) -> Outcome<AttrNode> {
        Ok(match self.byte()? {
            0 => AttrNode::None,
            1 => AttrNode::Str(self.string()?),
            2 => AttrNode::IterVar(self.iter_var()?),
            3 => AttrNode::Buffer(self.buffer()?),
            4 => AttrNode::Expr(self.expr()?),
            5 => AttrNode::Dict(self.pairs()?),
            _ => return self.fail("an unknown attribute node"),
        })
    }

    pub(super) fn scope_id(&mut self) -> Outcome<ScopeIdDef> {
        let kind = self.byte()?;
        let Some((kind, _)) = ScopeIdKind::ALL.get(kind as usize) else {
            return self.fail("an unknown scope id");
        };
        let extents = if self.flag()? { Some(self.exprs()?) } else { None };
        let preferred = if self.flag()? { Some(self.exprs()?) } else { None };
        let vars = self.list(Self::var)?;
        Ok(ScopeIdDef {
            kind: *kind,
            vars,
            extents,
            preferred,
        })
    }

    pub(super) fn stmt(&mut self) -> Outcome<Stmt> {
        self.deeper()?;
        let tag = self.byte()?;
        let span = self.span()?;
        let kind = self.stmt_kind(tag)?;
        self.depth -= 1;
        Ok(Stmt::new(kind, span))
    }

    pub(super) fn stmt_kind(&mut self, tag: u8) -> Outcome<StmtKind> {
        Ok(match tag {
            0 => {
                let value = self.expr()?;
                StmtKind::Bind(self.var()?, value)
            }
            1 => {
                let (key, value) = (self.string()?, self.expr()?);
                StmtKind::Attr(Attr {
                    node: self.attr_node()?,
                    key,
                    value,
                    body: self.stmt()?,
                })
            }
            2 => {
                let (buffer, indices, value) = (self.buffer()?, self.exprs()?, self.expr()?);
                StmtKind::BufferStore(BufferStore {
                    buffer,
                    indices,
                    value,
                    predicate: self.option()?,
                })
            }
            3 => StmtKind::AllocBuffer(self.buffer()?, self.pairs()?),
            4 => StmtKind::DeclBuffer(self.buffer()?),
            5 => StmtKind::ScopeId(self.scope_id()?),
            6 => StmtKind::Seq(self.list(Self::stmt)?),
            7 => StmtKind::Evaluate(self.expr()?),
            8 => self.for_loop()?,
            9 => StmtKind::While(self.expr()?, self.stmt()?),
            10 => {
                let condition = self.expr()?;
                let otherwise = self.flag()?;
                let then = self.stmt()?;
                StmtKind::If(condition, then, if otherwise { Some(self.stmt()?) } else { None })
            }
            11 => {
                let (condition, kind) = (self.expr()?, self.string()?);
                StmtKind::Assert(Assert {
                    condition,
                    kind,
                    message: self.list(Self::string)?,
                })
            }
            12 => StmtKind::Tile(Box::new(self.tile()?)),
            _ => return self.fail("an unknown statement"),
        })
    }

    pub(super) fn operation(&mut self) -> Outcome<TileOp> {
        let name = self.string()?;
        match TileOp::from_name(&name) {
            Some(op) => Ok(op),
            None => self.fail("an unknown tile primitive"),
        }
    }

    pub(super) fn tile(&mut self) -> Outcome<TileCall> {
        let op = self.operation()?;
        let scope = self.string()?;
        let Some(scope) = ExecScope::ALL.into_iter().find(|s| s.name() == &*scope) else {
            return self.fail("an unknown execution scope");
        };
        let args = self.list(|d| {
            Ok(match d.byte()? {
                0 => TileArg::None,
                1 => {
                    let (buffer, starts, extents) = (d.buffer()?, d.exprs()?, d.exprs()?);
                    if starts.len() != extents.len() {
                        return d.fail("a region of two ranks");
                    }
                    TileArg::Region(BufferRegion {
                        buffer,
                        ranges: starts.into_iter().zip(extents).collect(),
                    })
                }
                2 => TileArg::Expr(d.expr()?),
                3 => TileArg::Axes(d.list(|d| match d.int()?.try_into() {
                    Ok(axis) => Ok(axis),
                    Err(_) => d.fail("an axis out of range"),
                })?),
                4 => TileArg::Operation(d.operation()?),
                5 => TileArg::Lambda(d.list(Self::var)?, d.expr()?),
                6 => TileArg::Body(d.stmt()?),
                _ => return d.fail("an unknown argument of a tile primitive"),
            })
        })?;
        let workspace = self.list(|d| Ok((d.string()?, d.buffer()?)))?;
        let config = self.attrs()?;
        let dispatch = if self.flag()? { Some(self.string()?) } else { None };
        Ok(TileCall {
            op,
            scope,
            args,
            workspace,
            config,
            dispatch,
        })
    }

    pub(super) fn for_loop(&mut self) -> Outcome<StmtKind> {
        let kind = self.byte()?;
        let Some(kind) = LOOPS.get(kind as usize) else {
            return self.fail("an unknown kind of loop");
        };
        let (min, extent, step, var) = (self.expr()?, self.expr()?, self.option()?, self.var()?);
        let thread = if self.flag()? {
            Some(self.iter_var()?)
        } else {
            None
        };
        let annotations = self.pairs()?;
        Ok(StmtKind::For(ForLoop {
            var,
            min,
            extent,
            kind: *kind,
            thread,
            annotations,
            step,
            body: self.stmt()?,
        }))
    }

    pub(super) fn func(&mut self) -> Outcome<PrimFunc> {
        let params = self.list(Self::var)?;
        let buffer_map = self.list(|d| {
            let position = d.uint()? as usize;
            match params.get(position) {
                Some(param) => Ok((param.clone(), d.buffer()?)),
                None => d.fail("a parameter is missing"),
            }
        })?;
        let ret = if self.flag()? { Some(self.ty()?) } else { None };
        let attrs = self.attrs()?;
        let span = self.span()?;
        Ok(PrimFunc {
            params,
            buffer_map,
            ret,
            attrs,
            body: self.stmt()?,
            span,
        })
    }

    pub(super) fn module(&mut self, sources: SourceMap) -> Outcome<IRModule> {
        let attrs = self.attrs()?;
        let functions = self.list(|d| Ok((d.string()?, d.func()?)))?;
        Ok(IRModule {
            functions,
            attrs,
            sources,
        })
    }
}
