//! Kernels that Python code builds statement by statement: `with IRBuilder() as builder:`, `with I.prim_func():`, with the
//! functions of `tvm.tirx.script.builder.ir`. Unlike a decorated `def`, their text runs as Python; only what it calls emits
//! statements.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::builder::FunctionBuilder;
use super::stmt::Flow;
use super::value::{Code, CodeBody, Frame, Kernel, Value};
use super::{Args, Interpreter, args};
use crate::diagnostic::{Result, error};
use crate::ir::{DType, Expr, ExprKind, Type, Var};
use crate::lang;
use crate::source::{FileId, Span};

/// What the module of the builder has beside the names of `T`.
pub(super) fn attribute(name: &str) -> Option<Value> {
    Some(match name {
        "prim_func" => Value::builtin("prim_func", function_frame),
        "func_name" => Value::builtin("func_name", |interp, args, span| {
            let [(name, at)] = args.exactly("func_name", ["name"], span)?;
            let Value::Str(name) = &name else {
                return error(at, "the name of a function is a text");
            };
            interp.function_mut("func_name", span)?.name = (&**name).into();
            Ok(Value::None)
        }),
        "func_ret" => Value::builtin("func_ret", |interp, args, span| {
            let [(ty, at)] = args.exactly("func_ret", ["ret_type"], span)?;
            let ty = interp.annotation_type(&ty, at)?;
            interp.function_mut("func_ret", span)?.ret = Some(ty);
            Ok(Value::None)
        }),
        "arg" => Value::builtin("arg", argument),
        // `IRBuilder.frames`: that of the function, and the regions within it.
        "_frames" => Value::builtin("IRBuilder.frames", |interp, _, _| {
            let function = interp.kernel.function.as_ref().map(|f| {
                Value::Frame(Rc::new(Frame::Function {
                    is_private: f.is_private,
                    is_s_tir: f.is_s_tir,
                    is_persistent: false,
                }))
            });
            let open = interp.kernel.open_frames.iter().cloned().map(Value::Frame);
            Ok(Value::list(function.into_iter().chain(open).collect()))
        }),
        // What `IRBuilder.get` gives.
        "_finished" => Value::builtin("IRBuilder.get", |interp, _, span| {
            match interp.session.kernels.traced.take() {
                Some(kernel) => Ok(kernel),
                None => error(
                    span,
                    "the builder has no finished function: it is made in \"with prim_func():\"",
                ),
            }
        }),
        _ => return None,
    })
}

/// `I.prim_func(is_private=…, s_tir=…, persistent=…)`.
fn function_frame(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::optional("is_private"),
        args::optional("s_tir"),
        args::optional("persistent"),
    ];
    let bound = args.bind("prim_func", &params, span)?;
    let mut flags = [false; 3];
    for (flag, value) in flags.iter_mut().zip(&bound) {
        if let Some((value, at)) = value {
            *flag = interp.truth(value, *at)?;
        }
    }
    let [is_private, is_s_tir, is_persistent] = flags;
    Ok(Value::Frame(Rc::new(Frame::Function {
        is_private,
        is_s_tir,
        is_persistent,
    })))
}

/// `I.arg(name, parameter)`: the next parameter, a buffer or a variable.
fn argument(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(name, at), (value, value_at)] = args.exactly("arg", ["name", "obj"], span)?;
    let Value::Str(name) = &name else {
        return error(at, "the name of a parameter is a text");
    };
    interp.function_mut("arg", span)?;
    if let Value::Buffer(buffer) = &value {
        lang::check_parameter(buffer)?;
        interp.rename_buffer(buffer, name);
        let var = Var::at(format!("{name}_handle"), DType::HANDLE, span);
        interp.kernel.known_vars.insert(var.clone());
        let function = interp.function_mut("arg", span)?;
        function.params.push(var.clone());
        function.buffer_map.push((var, buffer.clone()));
        return Ok(value);
    }
    let ty: Type = match &value {
        Value::Expr(e) => match &e.kind {
            ExprKind::Var(var) => var.ty().clone(),
            _ => {
                return error(
                    value_at,
                    "a parameter is a variable or a buffer, as in T.handle() or T.int32()",
                );
            }
        },
        other => interp.annotation_type(other, value_at)?,
    };
    let var = Var::at(&**name, ty, span);
    interp.kernel.known_vars.insert(var.clone());
    interp.function_mut("arg", span)?.params.push(var.clone());
    Ok(Value::Expr(Expr::var(&var).at(span)))
}

impl Interpreter {
    /// `with I.prim_func():`: what its body emits is a function.
    pub(super) fn with_function(
        &mut self,
        frame: &Frame,
        span: Span,
        body: &mut dyn FnMut(&mut Interpreter) -> Result<Flow>,
    ) -> Result<Flow> {
        let &Frame::Function {
            is_private,
            is_s_tir,
            is_persistent,
        } = frame
        else {
            return error(span, "not the frame of a function");
        };
        if self.is_building() {
            return error(span, "a function cannot be built within another one");
        }
        self.kernel.builder_folder = self.folder_of(self.frame.file).map(Rc::from);
        let place = self.kernel_span(span);
        self.begin_function(FunctionBuilder {
            name: "main".into(),
            is_private,
            is_s_tir,
            is_traced: true,
            ..FunctionBuilder::default()
        });
        let result = self.open_block(span).and_then(|()| body(self));
        let result = result.and_then(|flow| self.leave_entered(0, span).map(|()| flow));
        let stmt = self.close_block();
        let function = self.kernel.function.take().unwrap_or_default();
        self.kernel.blocks.clear();
        self.kernel.entered.clear();
        self.kernel.open_frames.clear();
        self.kernel.branches.clear();
        self.kernel.builder_folder = None;
        if result.is_err() && matches!(self.exceptions.raised, Some((_, super::Raised::Unavailable))) {
            // A kernel that needs a host value is an error, and not a statement of the host to skip.
            self.exceptions.raised = None;
        }
        let flow = result?;
        if !matches!(flow, Flow::Normal) {
            return error(
                span,
                "\"return\", \"break\" and \"continue\" cannot leave a function that is being built",
            );
        }
        let name: Rc<str> = (&*function.name).into();
        let func = self.finish_function(function, stmt, is_persistent, place)?;
        let kernel = Kernel {
            name,
            code: Rc::new(Code {
                file: self.frame.file,
                parameters: Vec::new(),
                body: CodeBody::Built,
                locals: FxHashSet::default(),
                globals: Vec::new(),
                nonlocals: Vec::new(),
                is_generator: false,
                span: place,
            }),
            scope: self.frame.scope.clone(),
            is_jit: false,
            is_private,
            is_s_tir,
            is_persistent,
            constexprs: Vec::new(),
            defaults: Vec::new(),
            number: self.session.kernels.decorated,
            attrs: Vec::new(),
            finished: Some(func),
        };
        self.session.kernels.decorated += 1;
        self.session.kernels.traced = Some(Value::Kernel(Rc::new(kernel)));
        Ok(Flow::Normal)
    }

    fn folder_of(&self, file: FileId) -> Option<&str> {
        let (folder, _) = self.session.sources.file(file)?.name.rsplit_once('/')?;
        Some(folder)
    }

    /// A place, or none where it is in the library that builds the function: its files stand in the folder of `with prim_func():`.
    pub(super) fn outside_of_builder(&self, span: Span) -> Span {
        match &self.kernel.builder_folder {
            Some(folder) if self.folder_of(span.file).is_some_and(|of| *of == **folder) => Span::NONE,
            _ => span,
        }
    }

    /// The place that a statement of a function under construction has: that in the kernel's files, from which its library was called.
    pub(super) fn kernel_span(&self, span: Span) -> Span {
        match &self.kernel.builder_folder {
            Some(_) => self.outside_of_builder(span).or(self.frame.library_call).or(span),
            None => span,
        }
    }

    /// Leaves the regions that were entered by hand, innermost first, until `depth` are left. In a function that Python code builds,
    /// a region may stay open: callbacks of TVM's frames leave it where the one around it ends.
    pub(super) fn leave_entered(&mut self, depth: usize, span: Span) -> Result<()> {
        let is_traced = self.kernel.function.as_ref().is_some_and(|f| f.is_traced);
        while is_traced && self.kernel.entered.len() > depth {
            let Some((frame, _)) = self.kernel.entered.last().cloned() else {
                break;
            };
            self.exit_frame(&frame, span)?;
        }
        Ok(())
    }
}
