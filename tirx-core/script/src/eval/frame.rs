//! The part of the interpreter's state that belongs to a position in the text: a call, a class body, an import, a block.
//!
//! Only the functions of this file change the position. They restore it on every path, also if an error leaves in the middle.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tirx_python::{self as ast, Name};

use super::value::{Class, Value};
use super::{Interpreter, LoopKind, Mode, Scope, ScopeKind};
use crate::ir::DType;
use crate::source::{FileId, Span};

/// A position of the evaluation.
#[derive(Clone)]
pub(super) struct EvalFrame {
    /// The file whose text runs.
    pub(super) file: FileId,
    /// While a function is called in a kernel: its file, and that file within the call.
    pub(super) called: (FileId, FileId),
    pub(super) scope: Rc<Scope>,
    pub(super) mode: Mode,
    /// The loops around the statement, within the function.
    pub(super) loops: Vec<LoopKind>,
    /// The function that runs; `None` outside of functions.
    pub(super) call: Option<Rc<CallInfo>>,
    /// Number of calls within calls.
    pub(super) calls: usize,
    /// The call in the user's file that entered the library function that is being evaluated.
    pub(super) library_call: Span,
    /// The class whose decorators run.
    pub(super) class_def: Option<Arc<ast::StmtClassDef>>,
    /// While the shape of a parameter is evaluated: dtypes of the names it may create.
    pub(super) match_names: Option<Rc<FxHashMap<Name, DType>>>,
    /// Whether the text of a string is evaluated, in which such a shape may create any name.
    pub(super) in_text: bool,
    /// Number of enclosing expressions that describe a layout, in which axis names denote axes.
    pub(super) layouts: usize,
}

/// A call that is running.
#[derive(Clone)]
pub(super) struct CallInfo {
    pub(super) class: Option<Rc<Class>>,
    pub(super) receiver: Option<Value>,
    /// Blocks of the kernel that were open when the call began.
    pub(super) blocks: usize,
}

impl EvalFrame {
    /// Before any text runs.
    pub(super) fn new() -> EvalFrame {
        EvalFrame {
            file: FileId::NONE,
            called: (FileId::NONE, FileId::NONE),
            scope: Scope::new(ScopeKind::Module, None),
            mode: Mode::Meta,
            loops: Vec::new(),
            call: None,
            calls: 0,
            library_call: Span::NONE,
            class_def: None,
            match_names: None,
            in_text: false,
            layouts: 0,
        }
    }

    /// The text of a file of Python, which no loop of the present text surrounds.
    pub(super) fn of_file(&self, file: FileId, scope: Rc<Scope>) -> EvalFrame {
        EvalFrame {
            file,
            scope,
            mode: Mode::Meta,
            loops: Vec::new(),
            ..self.clone()
        }
    }

    /// The body of a function that is called here.
    pub(super) fn of_call(&self, file: FileId, scope: Rc<Scope>, mode: Mode, call: CallInfo) -> EvalFrame {
        EvalFrame {
            file,
            scope,
            mode,
            loops: Vec::new(),
            call: Some(Rc::new(call)),
            calls: self.calls + 1,
            match_names: None,
            called: self.called,
            library_call: self.library_call,
            class_def: self.class_def.clone(),
            in_text: self.in_text,
            layouts: self.layouts,
        }
    }
}

impl Interpreter {
    /// Runs `run` at another position.
    pub(super) fn enter<R>(&mut self, frame: EvalFrame, run: impl FnOnce(&mut Interpreter) -> R) -> R {
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = run(self);
        self.frame = outer;
        result
    }

    /// Runs `run` with the names of another scope.
    pub(super) fn in_scope<R>(&mut self, scope: Rc<Scope>, run: impl FnOnce(&mut Interpreter) -> R) -> R {
        let outer = std::mem::replace(&mut self.frame.scope, scope);
        let result = run(self);
        self.frame.scope = outer;
        result
    }

    /// Runs `run` as Python: what it assigns is a value of compile time.
    pub(super) fn as_python<R>(&mut self, run: impl FnOnce(&mut Interpreter) -> R) -> R {
        let outer = std::mem::replace(&mut self.frame.mode, Mode::Meta);
        let result = run(self);
        self.frame.mode = outer;
        result
    }

    /// Runs `run` within a loop.
    pub(super) fn in_loop<R>(&mut self, kind: LoopKind, run: impl FnOnce(&mut Interpreter) -> R) -> R {
        self.frame.loops.push(kind);
        let result = run(self);
        self.frame.loops.pop();
        result
    }

    /// Runs `run` within an expression that describes a layout, if it is one.
    pub(super) fn in_layout<R>(
        &mut self,
        describes_layout: bool,
        run: impl FnOnce(&mut Interpreter) -> R,
    ) -> R {
        let outer = self.frame.layouts;
        self.frame.layouts += usize::from(describes_layout);
        let result = run(self);
        self.frame.layouts = outer;
        result
    }
}
