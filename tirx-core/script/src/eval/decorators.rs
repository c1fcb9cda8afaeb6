//! The names of `T` and `I` that the evaluator itself defines: decorators, `T.constexpr`, `T.let`, `T.meta_var`.

use std::any::Any;
use std::rc::Rc;

use super::frame::EvalFrame;
use super::value::{Annotation, Class, FunctionMode, Kernel, Object, Value};
use super::{Args, Interpreter, args};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::{DType, Expr};
use crate::lang;
use crate::source::Span;

const T_NAMES: &[&str] = &[
    "prim_func",
    "jit",
    "inline",
    "macro",
    "meta_class",
    "meta_var",
    "constexpr",
    "Optional",
    "static_assert",
    "let",
];
const I_NAMES: &[&str] = &["ir_module", "module_attrs", "module_global_infos"];

/// The names of a namespace that are defined here.
pub(super) fn names(path: &str) -> &'static [&'static str] {
    match path {
        "T" => T_NAMES,
        "I" => I_NAMES,
        _ => &[],
    }
}

/// `path.name`, if it is defined here.
pub(super) fn attribute(path: &str, name: &str) -> Option<Value> {
    match (path, name) {
        ("T", "prim_func") => Some(kernel_decorator("T.prim_func", false)),
        ("T", "jit") => Some(kernel_decorator("T.jit", true)),
        ("T", "inline") => Some(Value::builtin("T.inline", |interp, args, span| {
            with_or_without_parentheses("T.inline", args, span, |interp, value, span| {
                interp.inline_function(value, FunctionMode::Inline, false, span)
            })(interp)
        })),
        ("T", "macro") => Some(Value::builtin("T.macro", macro_decorator)),
        ("T", "meta_class") => Some(Value::builtin("T.meta_class", |interp, args, span| {
            with_or_without_parentheses("T.meta_class", args, span, |_, value, span| match value {
                Value::Class(c) => {
                    c.is_meta.set(true);
                    Ok(value.clone())
                }
                other => error(
                    span,
                    format!("T.meta_class needs a class, found {}", other.type_name()),
                ),
            })(interp)
        })),
        ("T", "meta_var") => Some(Value::builtin("T.meta_var", |_, args, span| {
            let [(value, _)] = args.exactly("T.meta_var", ["value"], span)?;
            Ok(Value::MetaVar(Rc::new(value)))
        })),
        ("T", "static_assert") => Some(Value::builtin("T.static_assert", static_assert)),
        ("T", "constexpr") => Some(Value::Annotation(Rc::new(Annotation::Constexpr))),
        ("T", "let") => Some(Value::Annotation(Rc::new(Annotation::Let(None)))),
        ("T", "Optional") => Some(Value::builtin("T.Optional", |_, args, span| {
            let [(value, _)] = args.exactly("T.Optional", ["annotation"], span)?;
            Ok(Value::Annotation(Rc::new(Annotation::Optional(value))))
        })),
        ("I", "ir_module") => Some(Value::builtin("I.ir_module", |interp, args, span| {
            with_or_without_parentheses("I.ir_module", args, span, |interp, value, span| match value {
                Value::Class(c) => interp.make_module(c, span),
                other => error(
                    span,
                    format!("I.ir_module needs a class, found {}", other.type_name()),
                ),
            })(interp)
        })),
        ("I", "module_attrs") => Some(Value::builtin("I.module_attrs", |interp, args, span| {
            let [(value, at)] = args.exactly("I.module_attrs", ["attrs"], span)?;
            match crate::lang::to_attr(&value, at)? {
                crate::ir::AttrValue::Dict(attrs) => interp.session.kernels.module_attrs = attrs,
                _ => return error(at, "module attributes are a dict"),
            }
            Ok(Value::None)
        })),
        ("I", "module_global_infos") => {
            Some(Value::builtin("I.module_global_infos", |_, _, _| Ok(Value::None)))
        }
        _ => None,
    }
}

type Apply = fn(&mut Interpreter, &Value, Span) -> Result<Value>;

/// `@decorator` and `@decorator()` alike.
fn with_or_without_parentheses(
    name: &'static str,
    args: Args,
    span: Span,
    apply: Apply,
) -> impl FnOnce(&mut Interpreter) -> Result<Value> {
    move |interp| match args.positional.first() {
        Some((value, at)) if args.positional.len() == 1 && args.keyword.is_empty() => {
            let value = match value {
                Value::MetaVar(v) => (**v).clone(),
                other => other.clone(),
            };
            apply(interp, &value, *at)
        }
        None => Ok(Value::builtin(name, move |interp, args, span| {
            let [(value, _)] = args.exactly(name, ["function"], span)?;
            apply(interp, &value, span)
        })),
        Some(_) => error(span, format!("{name} takes one argument")),
    }
}

/// `@T.prim_func`, `@T.prim_func(private=True)`, `@T.jit`, ….
fn kernel_decorator(name: &'static str, is_jit: bool) -> Value {
    Value::builtin(name, move |interp, args: Args, span| {
        let params = [
            args::optional("func"),
            args::keyword("private"),
            args::keyword("check_well_formed"),
            args::keyword("s_tir"),
            args::keyword("is_stir"),
            args::keyword("persistent"),
        ];
        let bound = args.bind(name, &params, span)?;
        let mut flags = [false; 6];
        for (flag, value) in flags.iter_mut().zip(&bound).skip(1) {
            if let Some((value, at)) = value {
                *flag = interp.truth(value, *at)?;
            }
        }
        let make = move |interp: &mut Interpreter, function: &Value, span: Span| match function {
            Value::Function(f) => {
                let kernel = Rc::new(Kernel {
                    name: f.name.clone(),
                    code: f.code.clone(),
                    scope: interp.captured_scope(f),
                    is_jit,
                    is_private: flags[1],
                    is_s_tir: flags[3] || flags[4],
                    is_persistent: flags[5],
                    constexprs: Vec::new(),
                    defaults: f.defaults.clone(),
                    number: interp.session.kernels.decorated,
                    attrs: Vec::new(),
                    finished: None,
                });
                interp.session.kernels.decorated += 1;
                interp.build_where_decorated(&kernel);
                if !matches!(interp.frame.scope.kind, super::ScopeKind::Class(_)) {
                    interp.session.kernels.made.push(Value::Kernel(kernel.clone()));
                }
                Ok(Value::Kernel(kernel))
            }
            other => error(
                span,
                format!("{name} needs a function, found {}", other.type_name()),
            ),
        };
        match &bound[0] {
            Some((function, at)) => make(interp, function, *at),
            None => Ok(Value::builtin(name, move |interp, args, span| {
                let [(function, _)] = args.exactly(name, ["func"], span)?;
                make(interp, &function, span)
            })),
        }
    })
}

fn macro_decorator(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "T.macro",
        &[args::optional("func"), args::keyword("hygienic")],
        span,
    )?;
    let hygienic = match &bound[1] {
        Some((v, at)) => interp.truth(v, *at)?,
        None => true,
    };
    let mode = if hygienic {
        FunctionMode::Inline
    } else {
        FunctionMode::Dynamic
    };
    match &bound[0] {
        Some((function, at)) => interp.inline_function(function, mode, hygienic, *at),
        None => Ok(Value::builtin("T.macro", move |interp, args, span| {
            let [(function, _)] = args.exactly("T.macro", ["func"], span)?;
            interp.inline_function(&function, mode, hygienic, span)
        })),
    }
}

fn static_assert(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let bound = args.bind(
        "T.static_assert",
        &[args::required("condition"), args::optional("message")],
        span,
    )?;
    let Some((condition, at)) = &bound[0] else {
        return Ok(Value::None);
    };
    let holds = match condition {
        Value::Expr(e) => match e.as_int() {
            Some(v) => v != 0,
            None => {
                return error(
                    *at,
                    "T.static_assert needs a condition that is known at compile time",
                );
            }
        },
        other => interp.truth(other, *at)?,
    };
    if holds {
        return Ok(Value::None);
    }
    let message = match &bound[1] {
        Some((m, at)) => interp.display(m, *at)?,
        None => "the condition does not hold".to_string(),
    };
    interp.raise(
        "AssertionError",
        span,
        format!("static assertion failed: {message}"),
    )
}

/// `@I.ir_module class Module`.
pub(super) struct ModuleValue {
    pub(super) class: Rc<Class>,
    pub(super) functions: Vec<(Rc<str>, Rc<Kernel>)>,
    pub(super) attrs: crate::ir::Attrs,
}

impl Object for ModuleValue {
    fn type_name(&self) -> &str {
        "IR module"
    }
    fn attribute(&self, interp: &mut Interpreter, name: &str, span: Span) -> Result<Option<Value>> {
        if let Some((_, function)) = self.functions.iter().find(|(n, _)| &**n == name) {
            if interp.kernel.function.is_none() {
                return error(
                    span,
                    format!("\"{name}\" can only be called in a function of the module"),
                );
            }
            let function = function.clone();
            return Ok(Some(Value::builtin(name, move |interp, args, span| {
                interp.call_of_module(&function, args, span)
            })));
        }
        Ok(interp.class_attribute(&self.class, name))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Interpreter {
    /// `Module.g(x)` in a function of the module: a call of `g` in the IR.
    fn call_of_module(&mut self, callee: &Rc<Kernel>, args: Args, span: Span) -> Result<Value> {
        let name = &callee.name;
        if !self
            .session
            .kernels
            .module_functions
            .iter()
            .any(|f| Rc::ptr_eq(f, callee))
        {
            let message = format!("\"{name}\" is a function of another module");
            let help = "functions of one @I.ir_module call each other: write the caller there too";
            return Err(Box::new(
                Diagnostic::new(span, message)
                    .note(callee.code.span, "it is declared here")
                    .help(help),
            ));
        }
        if let Some((_, _, at)) = args.keyword.first() {
            return error(*at, format!("arguments of \"{name}\" are given by position"));
        }
        let (given, wanted) = (args.positional.len(), callee.code.parameters.len());
        if given != wanted {
            let message = format!("\"{name}\" takes {wanted} arguments, {given} were given");
            return Err(Box::new(
                Diagnostic::new(span, message).note(callee.code.span, "it is declared here"),
            ));
        }
        let mut operands = vec![Expr::string(&**name).at(span)];
        for (value, at) in &args.positional {
            if let Value::Buffer(buffer) = value {
                let message = format!(
                    "\"{name}\" takes pointers and scalars, not the buffer \"{}\"",
                    buffer.name
                );
                return Err(Box::new(
                    Diagnostic::new(*at, message).help(format!("pass its pointer: {}.data", buffer.name)),
                ));
            }
            operands.push(lang::to_expr(value, *at)?);
        }
        let returns = callee.code.body.def().and_then(|def| def.returns.as_deref());
        let dtype = match returns {
            Some(returns) => {
                let frame = EvalFrame {
                    file: callee.code.file,
                    called: Default::default(),
                    scope: callee.scope.clone(),
                    ..self.frame.clone()
                };
                let (at, value) = self.enter(frame, |i| (i.span(returns), i.eval(returns)));
                match value? {
                    Value::None => DType::VOID,
                    value => self.annotation_type(&value, at)?.dtype(),
                }
            }
            None => DType::VOID,
        };
        Ok(Value::Expr(
            Expr::call(Op::CallFunction, dtype, operands).at(span),
        ))
    }

    fn make_module(&mut self, class: &Rc<Class>, span: Span) -> Result<Value> {
        let mut functions: Vec<(Rc<str>, Rc<Kernel>)> = Vec::new();
        for name in class.order.borrow().iter() {
            if let Some(Value::Kernel(k)) = class.dict.borrow().get(name) {
                functions.retain(|(n, _)| n != name);
                functions.push((name.clone(), k.clone()));
            }
        }
        if let Some((name, _)) = functions.iter().find(|(_, k)| k.is_jit) {
            return error(
                span,
                format!("\"{name}\" is a @T.jit: an IR module holds @T.prim_func only"),
            );
        }
        let attrs = std::mem::take(&mut self.session.kernels.module_attrs);
        let module = Value::Object(Rc::new(ModuleValue {
            class: class.clone(),
            functions,
            attrs,
        }));
        self.session.kernels.made.push(module.clone());
        Ok(module)
    }
}
