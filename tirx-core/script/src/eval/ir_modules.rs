//! IR modules that a file makes by hand: `tvm.IRModule({"main": kernel})`, whose functions call each other by `tvm.ir.GlobalVar`
//! and `tvm.ir.Call`.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::value::{Kernel, Object, Value};
use super::{Args, Interpreter, args, modules};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::Expr;
use crate::lang;
use crate::source::Span;

/// `tvm.ir.GlobalVar("f")`: the name of a function of a module.
struct GlobalVar {
    name: Rc<str>,
}

impl Object for GlobalVar {
    fn type_name(&self) -> &str {
        "GlobalVar"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok((name == "name_hint").then(|| Value::Str(self.name.clone())))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The name that a string or a `GlobalVar` is.
fn function_name(value: &Value) -> Option<Rc<str>> {
    match value {
        Value::Str(name) => Some(name.clone()),
        Value::Object(object) => Some(object.as_any().downcast_ref::<GlobalVar>()?.name.clone()),
        _ => None,
    }
}

/// A module: kernels by name.
pub(super) struct KernelModule {
    functions: RefCell<Vec<(Rc<str>, Value)>>,
}

impl KernelModule {
    pub(super) fn value(functions: Vec<(Rc<str>, Value)>) -> Value {
        Value::Object(Rc::new(KernelModule {
            functions: RefCell::new(functions),
        }))
    }

    /// `tvm.IRModule(functions)`.
    pub(super) fn make(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
        let bound = args.bind("tvm.IRModule", &PARAMETERS.map(args::optional), span)?;
        let functions = match &bound[0] {
            Some((Value::Dict(functions), _)) => functions
                .borrow()
                .iter()
                .map(|(name, kernel)| {
                    let name = function_name(name).unwrap_or_else(|| "main".into());
                    (name, kernel.clone())
                })
                .collect(),
            Some((Value::Unavailable(why), at)) => return interp.unavailable(why, *at),
            Some((other, at)) => {
                let found = other.type_name();
                return error(
                    *at,
                    format!("tvm.IRModule needs a dict of kernels, found {found}"),
                );
            }
            None => Vec::new(),
        };
        Ok(KernelModule::value(functions))
    }

    /// What can be compiled of the module, by name: each function that is not private, together with the private ones, which it
    /// may call.
    pub(super) fn parts(&self) -> Vec<(Rc<str>, Value)> {
        let functions = self.functions.borrow();
        let private = |value: &Value| matches!(value, Value::Kernel(k) if k.is_private);
        let subroutines: Vec<(Rc<str>, Rc<Kernel>)> = functions
            .iter()
            .filter_map(|(name, value)| match value {
                Value::Kernel(k) if k.is_private => Some((name.clone(), k.clone())),
                _ => None,
            })
            .collect();
        // A module of private functions alone is what it is.
        if subroutines.is_empty() || functions.iter().all(|(_, value)| private(value)) {
            return functions.clone();
        }
        // Compilation starts at "main", whatever the function's name in the module is.
        let with_subroutines = |value: &Value| match value {
            Value::Kernel(kernel) => {
                let mut all = subroutines.clone();
                all.push(("main".into(), kernel.clone()));
                Value::Object(Rc::new(WithSubroutines {
                    kernel: kernel.clone(),
                    functions: all,
                }))
            }
            other => other.clone(),
        };
        functions
            .iter()
            .filter(|(_, value)| !private(value))
            .map(|(name, value)| (name.clone(), with_subroutines(value)))
            .collect()
    }
}

const PARAMETERS: [&str; 3] = ["functions", "attrs", "global_infos"];

impl Object for KernelModule {
    fn type_name(&self) -> &str {
        "IRModule"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok(Some(match name {
            "get_global_var" => Value::builtin("IRModule.get_global_var", global_var),
            name => modules::host_only(&format!("IRModule.{name}")),
        }))
    }

    fn subscript(&self, interp: &mut Interpreter, index: &Value, span: Span) -> Result<Value> {
        let name = function_name(index).unwrap_or_else(|| "".into());
        let found = self.functions.borrow().iter().find(|(n, _)| *n == name).cloned();
        match found {
            Some((_, kernel)) => Ok(kernel),
            None => interp.raise("KeyError", span, format!("the module has no function \"{name}\"")),
        }
    }

    fn set_item(&self, _: &mut Interpreter, index: &Value, kernel: Value, span: Span) -> Result<()> {
        let Some(name) = function_name(index) else {
            let found = index.type_name();
            return error(
                span,
                format!("a function of an IRModule is named by a string or a GlobalVar, found {found}"),
            );
        };
        let mut functions = self.functions.borrow_mut();
        match functions.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = kernel,
            None => functions.push((name, kernel)),
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A kernel with the private functions of its module.
pub(super) struct WithSubroutines {
    pub(super) kernel: Rc<Kernel>,
    /// The private functions by their names in the module, then the kernel as "main".
    pub(super) functions: Vec<(Rc<str>, Rc<Kernel>)>,
}

impl Object for WithSubroutines {
    fn type_name(&self) -> &str {
        "IRModule"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `tvm.ir.GlobalVar("f")`, and `module.get_global_var("f")`.
fn global_var(_: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let [(name, at)] = args.exactly("tvm.ir.GlobalVar", ["name_hint"], span)?;
    match function_name(&name) {
        Some(name) => Ok(Value::Object(Rc::new(GlobalVar { name }))),
        None => error(
            at.or(span),
            format!("a GlobalVar has a name, found {}", name.type_name()),
        ),
    }
}

/// `tvm.ir.Call(f, [x, y], ret_ty="int32")`: a call of another function of the module.
fn call(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let parameters = [
        args::required("op"),
        args::required("args"),
        args::optional("attrs"),
        args::optional("ty_args"),
        args::optional("span"),
        args::optional("ret_ty"),
    ];
    let bound = args.bind("tvm.ir.Call", &parameters, span)?;
    let mut bound = bound.into_iter();
    let (callee, at) = bound.next().flatten().unwrap_or((Value::None, span));
    let Some(name) = function_name(&callee).filter(|_| !matches!(callee, Value::Str(_))) else {
        let message = format!("tvm.ir.Call calls a GlobalVar, found {}", callee.type_name());
        return Err(Box::new(
            Diagnostic::new(at, message).help("operations are called by their functions in T"),
        ));
    };
    let (given, at) = bound.next().flatten().unwrap_or((Value::None, span));
    let mut operands = vec![Expr::string(&*name).at(span)];
    for value in interp.iterate(&given, at)? {
        operands.push(lang::to_expr(&value, at)?);
    }
    let Some((returns, at)) = bound.nth(3).flatten() else {
        return error(
            span,
            "tvm.ir.Call needs the dtype that the function returns: ret_ty=",
        );
    };
    let Value::DType(dtype) = lang::dtype_value(&returns, at)? else {
        return error(at, "ret_ty is a dtype");
    };
    if !interp.is_building() {
        return error(span, "a function is called in the body of a kernel");
    }
    Ok(Value::Expr(
        Expr::call(Op::CallFunction, dtype, operands).at(span),
    ))
}

/// The names of this file under TVM's paths.
pub(super) fn value(path: &str) -> Option<Value> {
    Some(match path {
        "tvm.IRModule" | "tvm.ir.IRModule" | "tvm.ir.module.IRModule" => {
            Value::builtin("tvm.IRModule", KernelModule::make)
        }
        "tvm.IRModule.from_expr" => Value::builtin(path, |_, args, span| {
            let [(kernel, _)] = args.exactly("tvm.IRModule.from_expr", ["expr"], span)?;
            Ok(KernelModule::value(vec![("main".into(), kernel)]))
        }),
        "tvm.ir.GlobalVar" | "tvm.ir.expr.GlobalVar" => Value::builtin("tvm.ir.GlobalVar", global_var),
        "tvm.ir.Call" | "tvm.ir.expr.Call" => Value::builtin("tvm.ir.Call", call),
        _ => return None,
    })
}
