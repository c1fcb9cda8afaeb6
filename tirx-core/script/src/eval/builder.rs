//! Statements under construction: the function being built, its open blocks and the regions that will wrap around them.

use std::sync::Arc;

use super::Interpreter;
use super::limits;
use crate::diagnostic::{Result, error};
use crate::ir::{Attrs, Buffer, IterVar, Stmt, StmtKind, Type, Var};
use crate::source::Span;

/// The function being built. Builtins read and change it through [`Interpreter::function_mut`].
#[derive(Default)]
pub struct FunctionBuilder {
    /// The name of its `def`.
    pub name: Arc<str>,
    /// Parameters so far, in order.
    pub params: Vec<Var>,
    /// Tensors behind pointer parameters.
    pub buffer_map: Vec<(Var, Buffer)>,
    /// Attributes (`T.func_attr`).
    pub attrs: Attrs,
    /// What it returns.
    pub ret: Option<Type>,
    /// `private=True`: not callable from outside its module.
    pub is_private: bool,
    /// `s_tir=True`: buffers get no default layout.
    pub is_s_tir: bool,
    /// Whether Python code builds it statement by statement.
    pub is_traced: bool,
    /// Hardware indices that have a variable but no extent yet (`T.env_thread`).
    pub env_threads: Vec<IterVar>,
    /// Whether the following statements run on the device (`T.device_entry`).
    pub on_device: bool,
    /// Where the host function returns unconditionally before the kernel begins.
    pub returned: Option<Span>,
}

/// A region that wraps the statements after a flat marker.
pub type Wrap = Box<dyn FnOnce(Stmt) -> Stmt>;

/// A block of statements under construction.
#[derive(Default)]
pub(super) struct Block {
    stmts: Vec<Stmt>,
    /// The position of each flat marker, and the region that it puts around the rest.
    wraps: Vec<(usize, Wrap)>,
    /// Whether constants say that it never runs.
    pub(super) never_runs: bool,
}

impl Block {
    pub(super) fn finish(mut self) -> Stmt {
        while let Some((at, wrap)) = self.wraps.pop() {
            let body = Stmt::seq(self.stmts.drain(at..));
            self.stmts.push(wrap(body));
        }
        Stmt::seq(self.stmts)
    }
}

impl Interpreter {
    /// Whether a kernel is being built, so that statements may be emitted.
    pub fn is_building(&self) -> bool {
        self.function.is_some() && !self.blocks.is_empty()
    }

    /// The function being built.
    ///
    /// # Errors
    /// Outside a kernel; `what` is the construct that needs one.
    pub fn function_mut(&mut self, what: &str, span: Span) -> Result<&mut FunctionBuilder> {
        match &mut self.function {
            Some(f) => Ok(f),
            None => error(span, format!("{what} is only possible in the body of a kernel")),
        }
    }

    /// The hardware index that a variable stands for, of those that `T.env_thread` made.
    pub fn env_thread(&self, var: &Var) -> Option<&IterVar> {
        let indices = &self.function.as_ref()?.env_threads;
        indices.iter().find(|iter| iter.var == *var)
    }

    /// Appends a statement.
    ///
    /// # Errors
    /// Outside a kernel, or when the kernel grows too large.
    pub fn emit(&mut self, stmt: Stmt) -> Result<()> {
        // A statement of the library has the span of the kernel's call of the library.
        let span = self.kernel_span(stmt.span).or(self.library_call);
        let stmt = match &stmt.kind {
            _ if stmt.span.is_some() && stmt.span == span => stmt,
            StmtKind::Evaluate(e) => Stmt::new(StmtKind::Evaluate(e.clone().or_at(span)), span),
            kind => Stmt::new(kind.clone(), span),
        };
        self.emitted += 1;
        if self.emitted > limits::STATEMENTS {
            return self.limit(
                span,
                format!("the kernel has more than {} statements", limits::STATEMENTS),
            );
        }
        if let StmtKind::AllocBuffer(b, _) | StmtKind::DeclBuffer(b) = &stmt.kind
            && matches!(&b.shape[..], [one] if one.is_int(1))
        {
            // Until it is bound to a name, a load of it denotes the scalar itself: `s = T.local_scalar("int32")`.
            self.fresh_scalars.insert(b.id());
        }
        match self.blocks.last_mut() {
            Some(block) => {
                block.stmts.push(stmt);
                Ok(())
            }
            None => error(span, "a statement of a kernel stands outside of any kernel"),
        }
    }

    /// Makes everything that follows in this block the body of `wrap`: a flat `T.attr`, `T.device_entry`, ….
    pub fn emit_flat(&mut self, span: Span, wrap: Wrap) -> Result<()> {
        match self.blocks.last_mut() {
            Some(block) => {
                if block.wraps.len() >= limits::NESTING {
                    return self.limit(span, "too many nested regions".to_string());
                }
                let at = block.stmts.len();
                block.wraps.push((at, wrap));
                Ok(())
            }
            None => error(span, "a statement of a kernel stands outside of any kernel"),
        }
    }

    /// Opens a block.
    pub fn open_block(&mut self, span: Span) -> Result<()> {
        if self.blocks.len() >= limits::NESTING {
            return self.limit(
                span,
                format!("statements are nested more than {} deep", limits::NESTING),
            );
        }
        self.blocks.push(Block {
            never_runs: !self.is_reached(),
            ..Block::default()
        });
        Ok(())
    }

    /// Closes the innermost block and gives its statements.
    pub fn close_block(&mut self) -> Stmt {
        self.blocks.pop().map_or_else(Stmt::nop, Block::finish)
    }

    /// Gives a buffer or variable created earlier its final name; takes effect when the function is complete.
    pub fn rename_buffer(&mut self, buffer: &Buffer, name: &str) {
        if &*buffer.name != name {
            self.renamed_buffers
                .insert(buffer.id(), (buffer.clone(), name.into()));
        } else {
            self.renamed_buffers.remove(&buffer.id());
        }
    }

    /// See [`Interpreter::rename_buffer`].
    pub fn rename_var(&mut self, var: &Var, name: &str) {
        if var.name() != name {
            self.renamed_vars.insert(var.clone(), name.into());
        } else {
            self.renamed_vars.remove(var);
        }
    }
}
