//! Host code in kernel files: torch, NumPy, `tvm.compile`, tests and benchmarks. Host values are opaque here; outside
//! of kernels operations on them are skipped, and an operation that needs their content is an error that names them.

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;

use tirx_python as ast;
use tirx_python::visitor::{Visitor, walk_stmt};

use super::constant::{ConstValue, to_value};
use super::decorators::ModuleValue;
use super::ir_modules::{self, KernelModule, WithSubroutines};
use super::stmt::Flow;
use super::value::{ClassKind, Kernel, Object, ParameterKind, Value};
use super::{Args, Interpreter, Mode, Raised, Scope, ScopeKind, args, modules};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::intrin::Op;
use crate::ir::DType;
use crate::lang;
use crate::source::Span;

impl Interpreter {
    /// The reason why an expression has no value, where that is not an error yet: outside of kernels.
    pub(super) fn inert(&mut self, e: &Diagnostic) -> Option<Rc<str>> {
        if self.limits.fatal || self.frame.mode != Mode::Meta || self.is_building() {
            return None;
        }
        match &self.exceptions.raised {
            Some((message, Raised::Unavailable)) if *message == e.message => {
                let why = message.as_str().into();
                self.exceptions.raised = None;
                Some(why)
            }
            _ => None,
        }
    }

    /// The host value among the arguments of a call that may have failed because of it: a call of a function of Python
    /// or of `T`.
    pub(super) fn host_argument(&self, callee: &Value, args: &Args) -> Option<(Rc<str>, Span)> {
        let native = match callee {
            Value::Builtin(_) | Value::DType(_) | Value::Object(_) | Value::Kernel(_) => true,
            Value::Class(c) => matches!(&*c.kind.borrow(), ClassKind::Builtin),
            _ => false,
        };
        if !native {
            return None;
        }
        let positional = args.positional.iter().map(|(value, at)| (value, *at));
        let keyword = args.keyword.iter().map(|(_, value, at)| (value, *at));
        positional.chain(keyword).find_map(|(value, at)| {
            let items;
            let mut within = match value {
                Value::Tuple(_) | Value::List(_) => {
                    items = value.as_items().unwrap_or_default();
                    items.iter()
                }
                other => std::slice::from_ref(other).iter(),
            };
            within.find_map(|v| match v {
                Value::Unavailable(why) => Some((why.clone(), at)),
                _ => None,
            })
        })
    }

    /// A statement that needs a host value is skipped, and the names that it assigns become host values. Within a
    /// function it is an error where the rest of the function may depend on it.
    pub(super) fn skip_host(&mut self, stmt: &ast::Stmt, mut e: Box<Diagnostic>) -> Result<Flow> {
        let Some(why) = self.inert(&e) else {
            return Err(e);
        };
        let in_function =
            self.frame.call.is_some() || matches!(self.frame.scope.kind, ScopeKind::Function(_));
        let mut written = Written::default();
        written.visit_stmt(stmt);
        // A `raise` under a condition on host values is skipped; an unconditional `raise` is not.
        let leaves = written.leaves || matches!(stmt, ast::Stmt::Raise(_));
        if in_function && leaves {
            self.exceptions.raised = Some((e.message.clone(), Raised::Unavailable));
            if e.help.is_none() {
                e = Box::new(
                    e.help("the result of a function of a kernel file cannot depend on the host program"),
                );
            }
            return Err(e);
        }
        for name in written.names {
            let reason = match modules::host_path(&why) {
                Some(path) => format!(
                    "\"{name}\" belongs to the host program: it comes from \"{path}\" and has no value in a kernel file"
                ),
                None => why.to_string(),
            };
            self.assign_name(&name, Value::Unavailable(reason.into()));
        }
        Ok(Flow::Normal)
    }
}

impl Interpreter {
    /// Calls a function of the file with values for its parameters.
    pub(crate) fn call_entry(
        &mut self,
        scope: &Rc<Scope>,
        name: &str,
        arguments: &BTreeMap<String, ConstValue>,
        span: Span,
    ) -> Result<Value> {
        let Some(Value::Function(function)) = scope.get_own(name) else {
            return error(span, format!("\"{name}\" is no function"));
        };
        let mut args = Args::default();
        let mut rest: BTreeMap<&String, &ConstValue> = arguments.iter().collect();
        for parameter in &function.code.parameters {
            let given = arguments.get(parameter.name.as_str()).map(to_value);
            match (parameter.kind, given) {
                (ParameterKind::PositionalOnly, Some(value)) => args.positional.push((value, span)),
                (_, Some(value)) => args.keyword.push((parameter.name.as_str().into(), value, span)),
                _ => {}
            }
            if !matches!(
                parameter.kind,
                ParameterKind::VarPositional | ParameterKind::VarKeyword
            ) {
                rest.retain(|name, _| *name != parameter.name.as_str());
            }
        }
        // What no parameter is named after goes to `**kwargs`; without it the call says that it is unexpected.
        for (name, value) in rest {
            args.keyword.push((name.as_str().into(), to_value(value), span));
        }
        self.call_function(&function, args, span)
    }
}

/// The names that a statement assigns, and whether it may leave its enclosing body.
#[derive(Default)]
struct Written {
    names: Vec<ast::Name>,
    leaves: bool,
    /// Loops around the visited statement.
    loops: usize,
}

impl<'a> Visitor<'a> for Written {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        match stmt {
            ast::Stmt::FunctionDef(s) => self.names.push(s.name.id.clone()),
            ast::Stmt::ClassDef(s) => self.names.push(s.name.id.clone()),
            ast::Stmt::Return(_) => self.leaves = true,
            ast::Stmt::Break(_) | ast::Stmt::Continue(_) => self.leaves |= self.loops == 0,
            ast::Stmt::For(_) | ast::Stmt::While(_) => {
                self.loops += 1;
                walk_stmt(self, stmt);
                self.loops -= 1;
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        match expr {
            ast::Expr::Name(n) if n.ctx == ast::ExprContext::Store => self.names.push(n.id.clone()),
            ast::Expr::Lambda(_) => {}
            _ => ast::visitor::walk_expr(self, expr),
        }
    }
}

/// The result of `tvm.compile`: for a kernel file, the kernel itself.
struct Executable {
    compiled: Value,
}

impl Object for Executable {
    fn type_name(&self) -> &str {
        "Executable"
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok(Some(modules::host_only(&format!("Executable.{name}"))))
    }

    fn call(&self, _: &mut Interpreter, _: Args, _: Span) -> Result<Value> {
        Ok(modules::host_only("Executable()"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Functions of TVM that host code passes kernels to, and names of the language under the paths of TVM's modules.
pub(super) fn tvm_value(path: &str) -> Option<Value> {
    // `tvm.backend.cuda.op.cuda_func_call` is what `T.cuda.func_call` calls.
    if let Some(name) = path.strip_prefix("tvm.backend.cuda.op.") {
        let (family, short) = name.split_once('_')?;
        if !matches!(family, "cuda" | "ptx") {
            return None;
        }
        // `ptx_bar_arrive` is `T.ptx.bar.arrive`: the operation of that name knows how it is written.
        let script =
            Op::from_name(&format!("tirx.{family}.{short}")).map(|op| format!("T.{}", op.info().script));
        let (path, last) = script.as_deref().and_then(|s| s.rsplit_once('.')).unzip();
        return lang::attribute(path.unwrap_or(&format!("T.{family}")), last.unwrap_or(short));
    }
    let known = super::descriptors::function(path).or_else(|| super::nodes::value(path));
    if let Some(value) = known.or_else(|| ir_modules::value(path)) {
        return Some(value);
    }
    match path {
        "tvm.backend.cuda.lang.SMEMPool" | "tvm.backend.cuda.lang.alloc_pool.SMEMPool" => {
            lang::attribute("T", "SMEMPool")
        }
        "tvm.ir.PrimType" | "tvm.ir.type.PrimType" => Some(Value::builtin(path, |_, args: Args, span| {
            let [(dtype, at)] = args.exactly("PrimType", ["dtype"], span)?;
            lang::dtype_value(&dtype, at)
        })),
        // Pointers to different elements have one dtype here.
        "tvm.ir.PointerType" | "tvm.ir.type.PointerType" => {
            Some(Value::builtin(path, |_, args: Args, span| {
                let parameters = [args::required("element_type"), args::optional("storage_scope")];
                args.bind("PointerType", &parameters, span)?;
                Ok(Value::DType(DType::HANDLE))
            }))
        }
        "tvm.compile" | "tvm.build" | "tvm.tirx.build" | "tvm.tir.build" | "tvm.driver.build" => {
            Some(Value::builtin(path, |_, mut args: Args, _| {
                let module = args.take_keyword("mod").or_else(|| args.take_keyword("func"));
                let compiled = args.positional.into_iter().next().or(module);
                let compiled = compiled.map_or(Value::None, |c| c.0);
                Ok(Value::Object(Rc::new(Executable { compiled })))
            }))
        }
        _ => None,
    }
}

/// A kernel, or an `@I.ir_module`, in a value of a kernel file, with its name there.
pub(crate) struct Held {
    /// Its key, where it has one (`{"forward": f}`), else its own name.
    pub(crate) name: String,
    /// The key or position that selects it from its container; `None` for the value itself.
    pub(crate) key: Option<String>,
    /// The kernel or the module.
    pub(crate) value: Value,
}

/// The kernels and modules in a value: a kernel, a compiled kernel, a module, or a tuple, list or dict of these.
pub(crate) fn held(value: &Value) -> Vec<Held> {
    let mut found = Vec::new();
    hold(value, None, 0, &mut found);
    // Several of one name are distinguished by their position.
    let names: Vec<String> = found.iter().map(|h| h.name.clone()).collect();
    for h in &mut found {
        if names.iter().filter(|n| **n == h.name).count() > 1
            && let Some(key) = &h.key
        {
            h.name = format!("{}_{key}", h.name);
        }
    }
    found
}

/// Position of a value in its container: its key, and whether the key names it.
type ContainerKey = Option<(String, bool)>;

fn hold(value: &Value, place: ContainerKey, depth: usize, found: &mut Vec<Held>) {
    if depth > 8 {
        return;
    }
    let inner = |at: String, named: bool, value: &Value, found: &mut Vec<Held>| {
        let place = match &place {
            Some((outer, outer_named)) => (format!("{outer}_{at}"), named || *outer_named),
            None => (at, named),
        };
        hold(value, Some(place), depth + 1, found);
    };
    let own = |name: &str| {
        let name = match &place {
            Some((key, true)) => key,
            _ => name,
        };
        Held {
            name: name.to_string(),
            key: place.as_ref().map(|p| p.0.clone()),
            value: value.clone(),
        }
    };
    match value {
        Value::Kernel(k) => found.push(own(&k.name)),
        Value::Tuple(items) => {
            for (i, v) in items.iter().enumerate() {
                inner(i.to_string(), false, v, found);
            }
        }
        Value::List(items) => {
            for (i, v) in items.borrow().iter().enumerate() {
                inner(i.to_string(), false, v, found);
            }
        }
        Value::Dict(dict) => {
            for (k, v) in dict.borrow().iter() {
                inner(key_text(k), matches!(k, Value::Str(_)), v, found);
            }
        }
        Value::Object(o) => {
            let any = o.as_any();
            if let Some(module) = any.downcast_ref::<ModuleValue>() {
                found.push(own(&module.class.name));
            } else if let Some(module) = any.downcast_ref::<KernelModule>() {
                match &module.parts()[..] {
                    [(_, only)] => hold(only, place, depth + 1, found),
                    functions => {
                        for (name, v) in functions {
                            inner(name.to_string(), true, v, found);
                        }
                    }
                }
            } else if let Some(module) = any.downcast_ref::<WithSubroutines>() {
                found.push(own(&module.kernel.name));
            } else if let Some(executable) = any.downcast_ref::<Executable>() {
                hold(&executable.compiled, place, depth + 1, found);
            }
        }
        _ => {}
    }
}

/// A key as names and manifests write it: `128`, `fwd`, `128_64` of a tuple.
fn key_text(key: &Value) -> String {
    match key {
        Value::Str(s) => s.to_string(),
        Value::Int(v) => v.to_string(),
        Value::Bool(v) => if *v { "True" } else { "False" }.to_string(),
        Value::Float(v) => format!("{v:?}"),
        Value::DType(d) => d.to_string(),
        Value::Tuple(items) => items.iter().map(key_text).collect::<Vec<_>>().join("_"),
        other => other.type_name(),
    }
}

/// `kernel.name` in host code.
pub(super) fn kernel_attribute(kernel: &Rc<Kernel>, name: &str) -> Option<Value> {
    match name {
        "with_attr" => {
            let kernel = kernel.clone();
            Some(Value::builtin("with_attr", move |_, args: Args, span| {
                // One name and its value, or a dict of several.
                let given = match &args.positional[..] {
                    [(Value::Dict(dict), at)] if args.keyword.is_empty() => {
                        let dict = dict.borrow();
                        dict.iter()
                            .map(|(k, v)| (k.clone(), *at, v.clone(), *at))
                            .collect()
                    }
                    _ => {
                        let [(name, at), (value, value_at)] =
                            args.exactly("with_attr", ["name", "value"], span)?;
                        vec![(name, at, value, value_at)]
                    }
                };
                let mut changed = kernel.copy();
                for (name, at, value, value_at) in given {
                    let Some(name) = name.as_str() else {
                        return error(
                            at,
                            format!("an attribute's name is a string, found {}", name.type_name()),
                        );
                    };
                    if name == "global_symbol" {
                        match value.as_str() {
                            Some(symbol) => changed.name = symbol.into(),
                            None => return error(value_at, "a global symbol is a string"),
                        }
                    }
                    let value = lang::attribute_value(&value, value_at)?;
                    changed.attrs.push((name.into(), Some(value)));
                }
                Ok(Value::Kernel(Rc::new(changed)))
            }))
        }
        "without_attr" => {
            let kernel = kernel.clone();
            Some(Value::builtin("without_attr", move |_, args: Args, span| {
                let [(name, at)] = args.exactly("without_attr", ["name"], span)?;
                let Some(name) = name.as_str() else {
                    return error(
                        at,
                        format!("an attribute's name is a string, found {}", name.type_name()),
                    );
                };
                let mut changed = kernel.copy();
                changed.attrs.push((name.into(), None));
                Ok(Value::Kernel(Rc::new(changed)))
            }))
        }
        "script" | "show" | "attrs" | "params" | "body" | "buffer_map" | "ret_type" | "struct_info" => {
            Some(modules::host_only(&format!("{}.{name}", kernel.name)))
        }
        _ => None,
    }
}
