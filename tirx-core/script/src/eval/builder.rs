//! Statements under construction: the function being built, its open blocks and the regions that will wrap around them.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tirx_python::Name;

use super::Interpreter;
use super::limits;
use super::value::Frame;
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

/// The function being built and everything that its statements need.
#[derive(Default)]
pub(super) struct KernelBuilder {
    /// The function; `None` outside of kernels.
    pub(super) function: Option<FunctionBuilder>,
    /// The blocks that are open, outermost first.
    pub(super) blocks: Vec<Block>,
    /// The branches of each open `T.If`.
    pub(super) branches: Vec<(Option<Stmt>, Option<Stmt>)>,
    /// Frames whose `__enter__` was called, with the number of open blocks at that time.
    pub(super) entered: Vec<(Rc<Frame>, usize)>,
    /// The regions whose bodies are open, outermost first.
    pub(super) open_frames: Vec<Rc<Frame>>,
    /// Number of enclosing blocks that the kernel may skip.
    pub(super) choices: usize,
    /// Statements so far.
    pub(super) emitted: usize,
    /// Variables that have a name.
    pub(super) known_vars: FxHashSet<Var>,
    /// Variables created by shapes of parameters.
    pub(super) match_vars: FxHashMap<Name, Var>,
    /// One-element buffers that are not bound to a name yet.
    pub(super) fresh_scalars: FxHashSet<usize>,
    /// Names of blocks that have ended, for error messages.
    pub(super) ended_names: FxHashMap<Name, Span>,
    pub(super) renamed_buffers: FxHashMap<usize, (Buffer, Arc<str>)>,
    pub(super) renamed_vars: FxHashMap<Var, Arc<str>>,
    /// Of the function that Python code builds: the folder of the library that builds it, if that is another folder than the kernel's.
    pub(super) builder_folder: Option<Rc<str>>,
}

/// A state of the statements under construction, to return to.
pub(super) struct KernelMark {
    blocks: usize,
    branches: usize,
    entered: usize,
    open_frames: usize,
    choices: usize,
    emitted: usize,
    fresh_scalars: FxHashSet<usize>,
}

impl KernelBuilder {
    /// The present state.
    pub(super) fn mark(&self) -> KernelMark {
        KernelMark {
            blocks: self.blocks.len(),
            branches: self.branches.len(),
            entered: self.entered.len(),
            open_frames: self.open_frames.len(),
            choices: self.choices,
            emitted: self.emitted,
            fresh_scalars: self.fresh_scalars.clone(),
        }
    }

    /// Closes the first block that was opened since a mark, and drops the blocks within it.
    pub(super) fn close_since(&mut self, mark: &KernelMark) -> Stmt {
        match self.blocks.len() > mark.blocks {
            true => {
                self.blocks.truncate(mark.blocks + 1);
                self.close_block()
            }
            false => Stmt::nop(),
        }
    }

    /// Drops the blocks and regions that were opened since a mark. Statements in the blocks that were open at the mark stay.
    pub(super) fn rollback(&mut self, mark: KernelMark) {
        self.blocks.truncate(mark.blocks);
        self.branches.truncate(mark.branches);
        self.entered.truncate(mark.entered);
        self.open_frames.truncate(mark.open_frames);
        self.choices = mark.choices;
        self.emitted = mark.emitted;
        self.fresh_scalars = mark.fresh_scalars;
    }

    /// Closes the innermost block and gives its statements.
    pub(super) fn close_block(&mut self) -> Stmt {
        self.blocks.pop().map_or_else(Stmt::nop, Block::finish)
    }
}

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
        self.kernel.function.is_some() && !self.kernel.blocks.is_empty()
    }

    /// The function being built.
    ///
    /// # Errors
    /// Outside a kernel; `what` is the construct that needs one.
    pub fn function_mut(&mut self, what: &str, span: Span) -> Result<&mut FunctionBuilder> {
        match &mut self.kernel.function {
            Some(f) => Ok(f),
            None => error(span, format!("{what} is only possible in the body of a kernel")),
        }
    }

    /// The hardware index that a variable stands for, of those that `T.env_thread` made.
    pub fn env_thread(&self, var: &Var) -> Option<&IterVar> {
        let indices = &self.kernel.function.as_ref()?.env_threads;
        indices.iter().find(|iter| iter.var == *var)
    }

    /// Appends a statement.
    ///
    /// # Errors
    /// Outside a kernel, or when the kernel grows too large.
    pub fn emit(&mut self, stmt: Stmt) -> Result<()> {
        // A statement of the library has the span of the kernel's call of the library.
        let span = self.kernel_span(stmt.span).or(self.frame.library_call);
        let stmt = match &stmt.kind {
            _ if stmt.span.is_some() && stmt.span == span => stmt,
            StmtKind::Evaluate(e) => Stmt::new(StmtKind::Evaluate(e.clone().or_at(span)), span),
            kind => Stmt::new(kind.clone(), span),
        };
        self.kernel.emitted += 1;
        if self.kernel.emitted > limits::STATEMENTS {
            return self.limit(
                span,
                format!("the kernel has more than {} statements", limits::STATEMENTS),
            );
        }
        if let StmtKind::AllocBuffer(b, _) | StmtKind::DeclBuffer(b) = &stmt.kind
            && matches!(&b.shape[..], [one] if one.is_int(1))
        {
            // Until it is bound to a name, a load of it denotes the scalar itself: `s = T.local_scalar("int32")`.
            self.kernel.fresh_scalars.insert(b.id());
        }
        match self.kernel.blocks.last_mut() {
            Some(block) => {
                block.stmts.push(stmt);
                Ok(())
            }
            None => error(span, "a statement of a kernel stands outside of any kernel"),
        }
    }

    /// Makes everything that follows in this block the body of `wrap`: a flat `T.attr`, `T.device_entry`, ….
    pub fn emit_flat(&mut self, span: Span, wrap: Wrap) -> Result<()> {
        match self.kernel.blocks.last_mut() {
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
        if self.kernel.blocks.len() >= limits::NESTING {
            return self.limit(
                span,
                format!("statements are nested more than {} deep", limits::NESTING),
            );
        }
        self.kernel.blocks.push(Block {
            never_runs: !self.is_reached(),
            ..Block::default()
        });
        Ok(())
    }

    /// Closes the innermost block and gives its statements.
    pub fn close_block(&mut self) -> Stmt {
        self.kernel.close_block()
    }

    /// Gives a buffer or variable created earlier its final name; takes effect when the function is complete.
    pub fn rename_buffer(&mut self, buffer: &Buffer, name: &str) {
        if &*buffer.name != name {
            self.kernel
                .renamed_buffers
                .insert(buffer.id(), (buffer.clone(), name.into()));
        } else {
            self.kernel.renamed_buffers.remove(&buffer.id());
        }
    }

    /// See [`Interpreter::rename_buffer`].
    pub fn rename_var(&mut self, var: &Var, name: &str) {
        if var.name() != name {
            self.kernel.renamed_vars.insert(var.clone(), name.into());
        } else {
            self.kernel.renamed_vars.remove(var);
        }
    }
}
