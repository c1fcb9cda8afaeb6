//! Calls: how arguments reach parameters, and how functions, classes and methods run.

use std::rc::Rc;
use std::sync::Arc;

use tirx_python as ast;

use super::frame::{CallInfo, EvalFrame};
use super::stmt::Flow;
use super::value::{Code, CodeBody, Function, FunctionMode, Method, ParameterKind, Value};
use super::{Args, Interpreter, Mode, Scope, ScopeKind, args, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::lang;
use crate::source::Span;

impl Interpreter {
    /// `callee(args)`.
    pub fn call_value(&mut self, callee: &Value, args: Args, span: Span) -> Result<Value> {
        match callee {
            Value::Builtin(f) => {
                let span = self.kernel_span(span);
                (f.clone().call)(self, args, span)
            }
            Value::Function(f) => self.call_function(f, args, span),
            Value::Method(m) => {
                let Method { receiver, function } = &**m;
                self.call_method(function, receiver, args, span)
            }
            Value::Class(c) => self.construct(&c.clone(), args, span),
            Value::DType(d) => {
                self.check_unavailable(&args, span)?;
                lang::call_dtype(self, *d, args, span)
            }
            Value::Object(o) => {
                let span = self.kernel_span(span);
                o.clone().call(self, args, span)
            }
            Value::Instance(i) => match self.class_attribute(&i.class, "__call__") {
                Some(f) => self.call_method(&f, callee, args, span),
                None => self.raise(
                    "TypeError",
                    span,
                    format!("{} cannot be called", callee.type_name()),
                ),
            },
            // `@runtime_checkable`, `NewType`, …: what they return is used as what they were given.
            Value::Namespace(p) if p.starts_with("typing") => Ok(args
                .positional
                .last()
                .map_or(Value::None, |(value, _)| value.clone())),
            Value::Unavailable(why) => self.unavailable(why, span),
            // A call of a kernel outside of kernels is host code that launches it.
            Value::Kernel(k) if !self.is_building() => Ok(super::modules::host_only(&k.name)),
            Value::Kernel(k) => Err(Box::new(
                Diagnostic::new(
                    span,
                    format!("kernel \"{}\" cannot be called in a kernel file", k.name),
                )
                .help("kernels are called from the host program; code shared between kernels is a @T.inline"),
            )),
            other => self.raise(
                "TypeError",
                span,
                format!("{} cannot be called", other.type_name()),
            ),
        }
    }

    fn check_unavailable(&mut self, args: &Args, span: Span) -> Result<()> {
        for (value, _) in &args.positional {
            if let Value::Unavailable(why) = value {
                return self.unavailable(why, span);
            }
        }
        Ok(())
    }

    /// `function(receiver, args)`.
    pub(super) fn call_method(
        &mut self,
        function: &Value,
        receiver: &Value,
        args: Args,
        span: Span,
    ) -> Result<Value> {
        let mut all = args;
        all.positional.insert(0, (receiver.clone(), span));
        self.call_value(function, all, span)
    }

    /// Runs a `def` or `lambda`.
    pub(super) fn call_function(&mut self, function: &Rc<Function>, args: Args, span: Span) -> Result<Value> {
        if self.frame.calls >= super::limits::CALLS {
            return self.limit(
                span,
                format!("more than {} calls within calls", super::limits::CALLS),
            );
        }
        let code = function.code.clone();
        let parent = match function.mode {
            FunctionMode::Dynamic => self.frame.scope.clone(),
            _ => function.scope.clone(),
        };
        let kind = match function.mode {
            FunctionMode::Meta => ScopeKind::Function(code.clone()),
            _ => ScopeKind::Block,
        };
        let scope = Scope::new(kind, Some(parent));
        self.bind_parameters(&function.name, &code, &function.defaults, args, &scope, span)
            .map_err(|e| self.as_exception("TypeError", e))?;
        let mode = match function.mode {
            FunctionMode::Meta => Mode::Meta,
            _ if !self.is_building() => {
                return Err(Box::new(
                    Diagnostic::new(
                        span,
                        format!(
                            "@T.inline function \"{}\" is called outside of a kernel",
                            function.name
                        ),
                    )
                    .note(code.span, "it is defined here"),
                ));
            }
            _ => Mode::Kernel,
        };
        let info = CallInfo {
            class: function.class.borrow().clone(),
            receiver: code.parameters.first().and_then(|p| scope.get_own(&p.name)),
            blocks: self.kernel.blocks.len(),
        };
        let caller = self.outside_of_builder(span).or(self.frame.library_call);
        // What the function adds to a kernel keeps the call.
        let called = match self.is_building() && code.file < crate::parse::LIBRARY_FILE {
            true => (
                code.file,
                self.session
                    .sources
                    .called(code.file, span.or(self.frame.library_call)),
            ),
            false => Default::default(),
        };
        let frame = EvalFrame {
            called,
            library_call: caller,
            ..self.frame.of_call(code.file, scope, mode, info)
        };
        self.limits.depth += 1;
        let result = if self.limits.depth > super::limits::DEPTH {
            self.limit(span, "evaluation is nested too deep")
        } else {
            self.enter(frame, |i| i.run_body(&code))
        };
        self.limits.depth -= 1;
        result.map_err(|mut e| {
            // An error in a library function is reported at its caller.
            e.span = e.span.or(span);
            if e.notes.len() < 6 && span.is_some() {
                e.notes.push(crate::diagnostic::Note {
                    message: match &*function.name {
                        "<lambda>" => "called from here".to_string(),
                        name => format!("\"{name}\" is called from here"),
                    },
                    span,
                });
            }
            e
        })
    }

    fn run_body(&mut self, code: &Rc<Code>) -> Result<Value> {
        match &code.body {
            CodeBody::Lambda(lambda) => self.eval(&lambda.body),
            CodeBody::Built => Ok(Value::None),
            CodeBody::Def(def) => {
                if code.is_generator {
                    return self.make_generator(code);
                }
                match self.exec_block(&def.body)? {
                    Flow::Return(value) => Ok(value),
                    _ => Ok(Value::None),
                }
            }
        }
    }

    /// Matches arguments with parameters and defines them in `scope`.
    pub(super) fn bind_parameters(
        &mut self,
        name: &str,
        code: &Code,
        defaults: &[(usize, Value)],
        args: Args,
        scope: &Rc<Scope>,
        span: Span,
    ) -> Result<()> {
        let parameters = &code.parameters;
        let mut bound: Vec<Option<Value>> = vec![None; parameters.len()];
        let mut rest = Vec::new();
        let mut rest_keywords = super::Dict::default();
        let positional: Vec<usize> = (0..parameters.len())
            .filter(|i| {
                matches!(
                    parameters[*i].kind,
                    ParameterKind::Positional | ParameterKind::PositionalOnly
                )
            })
            .collect();
        let star = parameters
            .iter()
            .position(|p| p.kind == ParameterKind::VarPositional);
        let keywords = parameters
            .iter()
            .position(|p| p.kind == ParameterKind::VarKeyword);
        let given = args.positional.len();
        let fail = |at: Span, message: String| -> Result<()> {
            Err(Box::new(
                Diagnostic::new(at, message).note(code.span, format!("\"{name}\" is defined here")),
            ))
        };
        for (i, (value, at)) in args.positional.into_iter().enumerate() {
            match positional.get(i) {
                Some(p) => bound[*p] = Some(value),
                None if star.is_some() => rest.push(value),
                None => {
                    return fail(
                        at,
                        format!(
                            "{name}() takes {} but {given} were given",
                            args::count(positional.len(), "positional argument")
                        ),
                    );
                }
            }
        }
        for (key, value, at) in args.keyword {
            let found = parameters.iter().position(|p| {
                p.name == *key && matches!(p.kind, ParameterKind::Positional | ParameterKind::KeywordOnly)
            });
            match found {
                Some(p) if bound[p].is_some() => {
                    return fail(at, format!("{name}() got more than one value for \"{key}\""));
                }
                Some(p) => bound[p] = Some(value),
                None if keywords.is_some() => {
                    rest_keywords.insert(super::Key::Str(key.clone()), Value::Str(key), value);
                }
                None => {
                    let mut d = Diagnostic::new(at, format!("{name}() has no parameter \"{key}\""))
                        .note(code.span, format!("\"{name}\" is defined here"));
                    let open = parameters.iter().zip(&bound).filter(|(p, given)| {
                        given.is_none()
                            && matches!(p.kind, ParameterKind::Positional | ParameterKind::KeywordOnly)
                    });
                    if let Some(s) = suggest(&key, open.map(|(p, _)| p.name.as_str())) {
                        d = d.help(format!("did you mean \"{s}\"?"));
                    }
                    return Err(Box::new(d));
                }
            }
        }
        for (i, value) in defaults {
            if bound[*i].is_none() {
                bound[*i] = Some(value.clone());
            }
        }
        if let Some(i) = star {
            bound[i] = Some(Value::tuple(rest));
        }
        if let Some(i) = keywords {
            bound[i] = Some(Value::Dict(Rc::new(std::cell::RefCell::new(rest_keywords))));
        }
        let missing: Vec<&str> = parameters
            .iter()
            .zip(&bound)
            .filter(|(_, b)| b.is_none())
            .map(|(p, _)| p.name.as_str())
            .collect();
        if !missing.is_empty() {
            return fail(span, format!("{name}() misses {}", args::quoted(&missing)));
        }
        for (parameter, value) in parameters.iter().zip(bound) {
            if let Some(value) = value {
                if let Value::Expr(e) = &value
                    && let Some(v) = e.as_var()
                {
                    self.kernel.known_vars.insert(v.clone());
                }
                let value = match value {
                    Value::MetaVar(v) => (*v).clone(),
                    other => other,
                };
                scope.set(parameter.name.clone(), value);
            }
        }
        Ok(())
    }

    /// The value of a `def` statement before its decorators.
    pub(super) fn make_function(&mut self, def: &Arc<ast::StmtFunctionDef>) -> Result<Rc<Function>> {
        let code = self.code_of_def(def);
        for (at, parameter) in code.parameters.iter().enumerate() {
            if let Some(first) = code.parameters[..at].iter().find(|p| p.name == parameter.name) {
                let message = format!(
                    "parameter \"{}\" of \"{}\" is declared twice",
                    parameter.name, def.name
                );
                return Err(Box::new(
                    Diagnostic::new(parameter.span, message).note(first.span, "the first one"),
                ));
            }
        }
        self.count_object(code.span)?;
        self.close_over();
        let mut defaults = Vec::new();
        for (i, d) in super::code::default_exprs(Some(&def.parameters)) {
            defaults.push((i, self.eval(d)?));
        }
        Ok(Rc::new(Function {
            name: def.name.as_str().into(),
            code,
            defaults,
            scope: self.frame.scope.clone(),
            mode: FunctionMode::Meta,
            class: None.into(),
            attributes: std::cell::RefCell::default(),
        }))
    }

    /// Registers a scope that a function holds.
    pub(super) fn close_over(&mut self) {
        let noted = self
            .session
            .cycles
            .closed_over
            .last()
            .is_some_and(|s| s.as_ptr() == Rc::as_ptr(&self.frame.scope));
        if !noted {
            self.session
                .cycles
                .closed_over
                .push(Rc::downgrade(&self.frame.scope));
        }
    }

    /// `super()`.
    pub(super) fn make_super(&mut self, span: Span) -> Result<Value> {
        let Some(call) = &self.frame.call else {
            return error(span, "super() is only possible in a method");
        };
        match (&call.class, &call.receiver) {
            (Some(class), Some(receiver)) => Ok(Value::Object(Rc::new(super::construct::Super {
                class: class.clone(),
                receiver: receiver.clone(),
            }))),
            _ => error(span, "super() is only possible in a method"),
        }
    }
}
