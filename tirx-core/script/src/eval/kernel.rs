//! Kernels to functions of the IR: parameters, body, final names.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tirx_python::{self as ast, Name};

use super::builder::FunctionBuilder;
use super::frame::EvalFrame;
use super::value::{Annotation, Kernel, Parameter, ParameterKind, Value};
use super::{Args, Interpreter, Mode, Scope, ScopeKind, args, suggest};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{
    AttrValue, Attrs, Buffer, DType, Expr, ExprKind, IRModule, IterVar, Mutator, PrimFunc, Stmt, Var, Visitor,
};
use crate::lang;
use crate::source::{SourceMap, Span};

/// The role of a kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterRole {
    /// Passed at run time.
    Runtime,
    /// `T.constexpr`.
    Constexpr,
    /// `T.Optional(…)`: passed at run time, or left out altogether.
    Optional,
}

impl Interpreter {
    /// The parameters of a kernel with their roles and defaults.
    pub(crate) fn kernel_parameters(
        &mut self,
        kernel: &Kernel,
    ) -> Vec<(Rc<str>, ParameterRole, Option<Value>, Span)> {
        let Some(def) = kernel.code.body.def() else {
            return Vec::new();
        };
        let notes = super::code::annotations(&def.parameters);
        let parameters = &kernel.code.parameters;
        (0..parameters.len())
            .map(|i| {
                let role = notes
                    .get(i)
                    .copied()
                    .flatten()
                    .map_or(ParameterRole::Runtime, role);
                let default = kernel.defaults.iter().find(|d| d.0 == i).map(|d| d.1.clone());
                (
                    Rc::from(parameters[i].name.as_str()),
                    role,
                    default,
                    parameters[i].span,
                )
            })
            .collect()
    }

    /// Builds a kernel that was just decorated, if it is the wanted one.
    pub(super) fn build_where_decorated(&mut self, kernel: &Rc<Kernel>) {
        if self.frame.mode == Mode::Meta
            && !kernel.is_jit
            && self.session.kernels.wanted == Some(kernel.number)
        {
            self.session.kernels.built = Some(self.build_kernel(kernel, &[]));
        }
    }

    /// The kernel that was built at its decorator; any other one is built now.
    pub(crate) fn built_kernel(
        &mut self,
        kernel: &Rc<Kernel>,
        given: &[(Rc<str>, Value)],
    ) -> Result<PrimFunc> {
        let func = match self.session.kernels.built.take() {
            Some(built) if given.is_empty() => built,
            _ => self.build_kernel(kernel, given),
        }?;
        Ok(with_attrs(func, kernel))
    }

    /// Builds a kernel with values for its `T.constexpr` parameters.
    pub(crate) fn build_kernel(
        &mut self,
        kernel: &Rc<Kernel>,
        given: &[(Rc<str>, Value)],
    ) -> Result<PrimFunc> {
        if let Some(func) = &kernel.finished {
            if let Some((name, _)) = given.first() {
                let message = format!(
                    "kernel \"{}\" is built already: it has no parameter \"{name}\"",
                    kernel.name
                );
                return error(kernel.code.span, message);
            }
            return Ok(func.clone());
        }
        let Some(def) = kernel.code.body.def() else {
            return error(kernel.code.span, "a kernel is a def");
        };
        let span = kernel.code.span;
        let frame = EvalFrame {
            called: Default::default(),
            mode: Mode::Kernel,
            call: None,
            calls: 0,
            ..self.frame.of_file(
                kernel.code.file,
                Scope::new(ScopeKind::Block, Some(kernel.scope.clone())),
            )
        };
        self.begin_function(FunctionBuilder {
            name: (&*kernel.name).into(),
            is_private: kernel.is_private,
            is_s_tir: kernel.is_s_tir,
            ..FunctionBuilder::default()
        });
        let result = self.enter(frame, |i| {
            i.open_block(span)?;
            i.build_signature(kernel, def, given)?;
            i.exec_block(&def.body)
        });
        let body = self.close_block();
        let function = self.kernel.function.take().unwrap_or_default();
        self.kernel.blocks.clear();
        result?;
        if !std::mem::take(&mut self.kernel.entered).is_empty() {
            return error(
                span,
                "a region was entered with \"__enter__\" and not left with \"__exit__\"",
            );
        }
        self.finish_function(function, body, kernel.is_persistent, span)
    }

    /// Starts a function: nothing of an earlier one is left.
    pub(super) fn begin_function(&mut self, function: FunctionBuilder) {
        self.kernel.function = Some(function);
        self.kernel.blocks.clear();
        self.kernel.entered.clear();
        self.kernel.match_vars.clear();
        self.kernel.ended_names.clear();
        self.kernel.choices = 0;
        self.kernel.emitted = 0;
    }

    /// The function whose body is complete.
    pub(super) fn finish_function(
        &mut self,
        function: FunctionBuilder,
        body: Stmt,
        is_persistent: bool,
        span: Span,
    ) -> Result<PrimFunc> {
        check_launched(&body, &function.env_threads)?;
        let mut attrs = function.attrs;
        if !function.is_private {
            attrs
                .entry("global_symbol".into())
                .or_insert_with(|| AttrValue::Str(function.name.clone()));
        }
        if function.is_s_tir {
            attrs.insert("s_tir".into(), AttrValue::Bool(true));
        }
        if is_persistent {
            attrs.insert("tirx.persistent_kernel".into(), AttrValue::Bool(true));
        }
        // Buffers that the body matches take the position of their parameters.
        let mut buffer_map = function.buffer_map;
        buffer_map.sort_by_key(|(param, _)| function.params.iter().position(|p| p == param));
        let func = PrimFunc {
            params: function.params,
            buffer_map,
            ret: function.ret,
            attrs,
            body,
            span,
        };
        Ok(self.finish_names(func))
    }

    fn build_signature(
        &mut self,
        kernel: &Kernel,
        def: &ast::StmtFunctionDef,
        given: &[(Rc<str>, Value)],
    ) -> Result<()> {
        let parameters = self.kernel_parameters(kernel);
        self.check_given(kernel, &parameters, given)?;
        let find = |name: &str| {
            let all = given.iter().chain(&kernel.constexprs);
            all.rev().find(|(n, _)| &**n == name).map(|(_, v)| v.clone())
        };
        // Constexprs first: annotations of other parameters may use them.
        let mut missing = Vec::new();
        for (name, role, default, at) in &parameters {
            if *role == ParameterRole::Constexpr {
                match find(name).or_else(|| default.clone()) {
                    Some(value) => self.frame.scope.set(&**name, value),
                    None => missing.push((name.clone(), *at)),
                }
            }
        }
        if let Some((_, at)) = missing.first() {
            let names: Vec<&str> = missing.iter().map(|m| &*m.0).collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            let example: Vec<String> = names.iter().map(|n| format!("-D {n}=…")).collect();
            let spec: Vec<String> = names.iter().map(|n| format!("{n} = …")).collect();
            let message = format!(
                "kernel \"{}\" needs a value for constexpr{plural} {}",
                kernel.name,
                args::quoted(&names)
            );
            let help = format!(
                "give it on the command line with {}, or in the manifest with `specialize = [{{ {} }}]`",
                example.join(" "),
                spec.join(", ")
            );
            return Err(Box::new(Diagnostic::new(*at, message).help(help)));
        }
        let notes = super::code::annotations(&def.parameters);
        let dtypes = Rc::new(signature_dtypes(def));
        for (i, parameter) in kernel.code.parameters.iter().enumerate() {
            if matches!(
                parameter.kind,
                ParameterKind::VarPositional | ParameterKind::VarKeyword
            ) {
                return error(parameter.span, "a kernel cannot take * parameters");
            }
            let Some(annotation) = notes.get(i).copied().flatten() else {
                return Err(Box::new(
                    Diagnostic::new(parameter.span, format!("parameter \"{}\" needs a type", parameter.name))
                        .help("T.handle, T.Buffer(shape, dtype), a dtype such as T.int32, or in a @T.jit T.constexpr"),
                ));
            };
            match parameters[i].1 {
                ParameterRole::Constexpr if !kernel.is_jit => {
                    return Err(Box::new(
                        Diagnostic::new(
                            self.span(annotation),
                            "a @T.prim_func has no T.constexpr parameters",
                        )
                        .help("make it a @T.jit"),
                    ));
                }
                ParameterRole::Constexpr => continue,
                ParameterRole::Optional if !kernel.is_jit => {
                    return error(self.span(annotation), "T.Optional is for parameters of a @T.jit");
                }
                ParameterRole::Optional if matches!(find(&parameter.name), Some(Value::None)) => {
                    self.frame.scope.set(parameter.name.clone(), Value::None);
                    continue;
                }
                _ => {}
            }
            self.build_parameter(parameter, annotation, &dtypes)?;
        }
        if let Some(returns) = &def.returns {
            let at = self.span(&**returns);
            let value = self.eval(returns)?;
            if !matches!(value, Value::None) {
                let ty = self.annotation_type(&value, at)?;
                self.function_mut("a return type", at)?.ret = Some(ty);
            }
        }
        Ok(())
    }

    fn check_given(
        &mut self,
        kernel: &Kernel,
        parameters: &[(Rc<str>, ParameterRole, Option<Value>, Span)],
        given: &[(Rc<str>, Value)],
    ) -> Result<()> {
        for (name, value) in given.iter().chain(&kernel.constexprs) {
            let allowed: Vec<&str> = parameters
                .iter()
                .filter(|p| p.1 != ParameterRole::Runtime)
                .map(|p| &*p.0)
                .collect();
            match parameters.iter().find(|p| p.0 == *name) {
                Some((_, ParameterRole::Constexpr, ..)) => {}
                Some((_, ParameterRole::Optional, ..)) if matches!(value, Value::None) => {}
                Some((_, ParameterRole::Optional, _, at)) => {
                    return error(
                        *at,
                        format!("T.Optional parameter \"{name}\" can only be specialized to None"),
                    );
                }
                found => {
                    let at = found.map_or(kernel.code.span, |p| p.3);
                    let message = match found {
                        Some(_) => format!(
                            "\"{name}\" of kernel \"{}\" is a run-time parameter, no constexpr",
                            kernel.name
                        ),
                        None => format!("kernel \"{}\" has no constexpr \"{name}\"", kernel.name),
                    };
                    let mut d = Diagnostic::new(at, message);
                    d = match suggest(name, allowed.iter().copied()) {
                        Some(s) => d.help(format!("did you mean \"{s}\"?")),
                        None if allowed.is_empty() => d.help("it has no constexpr parameters"),
                        None => d.help(format!("its constexprs are {}", args::quoted(&allowed))),
                    };
                    return Err(Box::new(d));
                }
            }
        }
        Ok(())
    }

    fn build_parameter(
        &mut self,
        parameter: &Parameter,
        annotation: &ast::Expr,
        dtypes: &Rc<FxHashMap<Name, DType>>,
    ) -> Result<()> {
        let at = self.span(annotation);
        let name = parameter.name.as_str();
        let value = self.eval_parameter_annotation(annotation, name, dtypes)?;
        let value = match &value {
            Value::Annotation(a) => match &**a {
                Annotation::Optional(inner) => inner.clone(),
                _ => return error(at, "this annotation is not for a parameter of a kernel"),
            },
            _ => value,
        };
        if let Value::Buffer(buffer) = value {
            lang::check_parameter(&buffer)?;
            // A scalar parameter of TVM's printed form may follow; names of data pointers end in `_ptr`.
            let var = Var::at(format!("{name}_handle"), DType::HANDLE, parameter.span);
            self.kernel.known_vars.insert(var.clone());
            let function = self.function_mut("a parameter", at)?;
            function.params.push(var.clone());
            function.buffer_map.push((var, buffer.clone()));
            self.frame
                .scope
                .set(parameter.name.clone(), Value::Buffer(buffer));
            return Ok(());
        }
        if let Value::Class(c) = &value {
            let better = match &*c.name {
                "int" => "T.int32",
                "float" => "T.float32",
                "bool" => "T.bool",
                _ => "T.handle",
            };
            return Err(Box::new(
                Diagnostic::new(at, format!("\"{}\" is no type of a kernel parameter", c.name))
                    .help(format!("did you mean \"{better}\"?")),
            ));
        }
        let ty = self.annotation_type(&value, at)?;
        let var = match self.kernel.match_vars.get(&parameter.name) {
            Some(var) if *var.ty() == ty => var.clone(),
            Some(var) => {
                let message = format!(
                    "parameter \"{name}\" is {} here but {} in a shape before",
                    ty.dtype(),
                    var.dtype()
                );
                return Err(Box::new(
                    Diagnostic::new(at, message).note(var.span(), "its first use"),
                ));
            }
            None => Var::at(name, ty, parameter.span),
        };
        self.kernel.known_vars.insert(var.clone());
        self.function_mut("a parameter", at)?.params.push(var.clone());
        self.frame.scope.set(
            parameter.name.clone(),
            Value::Expr(Expr::var(&var).at(parameter.span)),
        );
        Ok(())
    }

    /// An annotation of a parameter. In the shape of a `T.Buffer`, strings are expressions whose unknown names
    /// become variables.
    fn eval_parameter_annotation(
        &mut self,
        annotation: &ast::Expr,
        name: &str,
        dtypes: &Rc<FxHashMap<Name, DType>>,
    ) -> Result<Value> {
        let at = self.span(annotation);
        match annotation {
            ast::Expr::StringLiteral(s) => {
                let text = s.value.to_str().to_string();
                match text.parse::<DType>() {
                    Ok(d) => Ok(Value::DType(d)),
                    Err(_) => self.eval_text(s, at),
                }
            }
            ast::Expr::Call(call) if is_called(&call.func, "Buffer") => {
                let callee = self.eval(&call.func)?;
                if matches!(callee, Value::Unavailable(_)) {
                    return Ok(callee);
                }
                let shape_by_name = call
                    .arguments
                    .keywords
                    .iter()
                    .find(|k| k.arg.as_ref().is_some_and(|a| a == "shape"));
                let mut rest = call.arguments.clone();
                let mut args = Args::default();
                let shape = match (call.arguments.args.first(), shape_by_name) {
                    (Some(first), _) => {
                        rest.args = call.arguments.args.iter().skip(1).cloned().collect();
                        Some((first, true))
                    }
                    (None, Some(k)) => {
                        rest.keywords
                            .retain(|k| k.arg.as_ref().is_none_or(|a| a != "shape"));
                        Some((&k.value, false))
                    }
                    (None, None) => None,
                };
                if let Some((shape, by_position)) = shape {
                    let span = self.span(shape);
                    let frame = EvalFrame {
                        match_names: Some(dtypes.clone()),
                        ..self.frame.clone()
                    };
                    let value = self.enter(frame, |i| i.eval(shape));
                    if by_position {
                        args.positional.push((value?, span));
                    } else {
                        args.keyword.push(("shape".into(), value?, span));
                    }
                }
                let more = self.eval_arguments(&rest, None)?;
                args.positional.extend(more.positional);
                args.keyword.extend(more.keyword);
                args.names = vec![name.into()];
                self.call_value(&callee, args, at)
            }
            ast::Expr::Call(call) if is_called(&call.func, "Optional") && call.arguments.args.len() == 1 => {
                self.eval_parameter_annotation(&call.arguments.args[0], name, dtypes)
            }
            // `T.Buffer(...) | None`
            ast::Expr::BinOp(b) if b.op == ast::Operator::BitOr && b.right.is_none_literal_expr() => {
                self.eval_parameter_annotation(&b.left, name, dtypes)
            }
            _ => self.eval(annotation),
        }
    }

    /// Substitutes the final names of buffers and variables.
    fn finish_names(&mut self, func: PrimFunc) -> PrimFunc {
        let buffers = std::mem::take(&mut self.kernel.renamed_buffers);
        let vars = std::mem::take(&mut self.kernel.renamed_vars);
        self.kernel.fresh_scalars.clear();
        if buffers.is_empty() && vars.is_empty() {
            return func;
        }
        let mut renamer = Renamer {
            buffers,
            vars: BTreeMap::new(),
            done: FxHashMap::default(),
        };
        for (var, name) in vars {
            renamer.vars.insert(var.clone(), var.renamed(name));
        }
        for (buffer, name) in renamer.buffers.values() {
            // The pointer of new storage is named after its buffer.
            if buffer.data.name() == format!("{}_ptr", buffer.name) {
                let new = buffer.data.renamed(format!("{name}_ptr"));
                renamer.vars.entry(buffer.data.clone()).or_insert(new);
            }
        }
        let params = func.params.iter().map(|p| renamer.var_def(p)).collect();
        let buffer_map = func
            .buffer_map
            .iter()
            .map(|(p, b)| (renamer.var_def(p), renamer.buffer_use(b)))
            .collect();
        let body: Stmt = renamer.stmt(&func.body);
        PrimFunc {
            params,
            buffer_map,
            body,
            ..func
        }
    }

    /// Builds all functions of a module.
    pub(super) fn build_module(
        &mut self,
        kernels: &[(Rc<str>, Rc<Kernel>)],
        attrs: Attrs,
        sources: SourceMap,
    ) -> Result<IRModule> {
        self.session.kernels.module_functions = kernels.iter().map(|(_, kernel)| kernel.clone()).collect();
        let mut functions: Vec<(Arc<str>, PrimFunc)> = Vec::new();
        for (name, kernel) in kernels {
            let func = self.build_kernel(kernel, &[])?;
            functions.push(((&**name).into(), with_attrs(func, kernel)));
        }
        self.session.kernels.module_functions.clear();
        Ok(IRModule {
            functions,
            attrs,
            sources,
        })
    }
}

/// A function with the attributes that `with_attr` gave to its kernel.
fn with_attrs(mut func: PrimFunc, kernel: &Kernel) -> PrimFunc {
    for (name, value) in &kernel.attrs {
        match value {
            Some(value) => func.attrs.insert((&**name).into(), value.clone()),
            None => func.attrs.remove(&**name),
        };
    }
    func
}

/// A declared hardware index must be bound by a launch around its uses.
fn check_launched(body: &Stmt, declared: &[IterVar]) -> Result<()> {
    struct Search<'a>(&'a [IterVar], Vec<Var>, Option<(usize, Span)>);
    impl Visitor for Search<'_> {
        fn visit_expr(&mut self, expr: &Expr) {
            if let ExprKind::Var(v) = &expr.kind
                && let Some(at) = self.0.iter().position(|i| i.var == *v)
                && !self.1.contains(v)
            {
                self.2.get_or_insert((at, expr.span));
            }
            self.walk_expr(expr);
        }
        fn visit_var_def(&mut self, var: &Var) {
            self.1.push(var.clone());
        }
    }
    if declared.is_empty() {
        return Ok(());
    }
    let mut search = Search(declared, Vec::new(), None);
    search.visit_stmt(body);
    let Some((at, span)) = search.2 else {
        return Ok(());
    };
    let index = &declared[at];
    let (name, tag) = (index.var.name(), &index.thread_tag);
    let message = format!("`{name}` is read but never launched: {tag} has no extent");
    let d = Diagnostic::new(span.or(index.var.span()), message).note(index.var.span(), "declared here");
    Err(Box::new(d.help(format!(
        "put the statements that read it into: with T.launch_thread({name}, extent): …"
    ))))
}

/// The role that a parameter's annotation declares, by its text alone: its value may need constexprs.
fn role(annotation: &ast::Expr) -> ParameterRole {
    match annotation {
        ast::Expr::StringLiteral(s) => match s.value.to_str().trim() {
            "T.constexpr" | "constexpr" => ParameterRole::Constexpr,
            t if t.starts_with("T.Optional(") => ParameterRole::Optional,
            _ => ParameterRole::Runtime,
        },
        ast::Expr::BinOp(b) if b.op == ast::Operator::BitOr => match (role(&b.left), role(&b.right)) {
            (ParameterRole::Constexpr, _) | (_, ParameterRole::Constexpr) => ParameterRole::Constexpr,
            (left, _) => left,
        },
        ast::Expr::Call(c) if is_called(&c.func, "Optional") => ParameterRole::Optional,
        e if is_called(e, "constexpr") => ParameterRole::Constexpr,
        _ => ParameterRole::Runtime,
    }
}

/// Whether an expression is `name` or `something.name`.
fn is_called(e: &ast::Expr, name: &str) -> bool {
    match e {
        ast::Expr::Name(n) => n.id == name,
        ast::Expr::Attribute(a) => a.attr.as_str() == name,
        _ => false,
    }
}

/// The dtypes of names that shapes of parameters introduce: those of scalar parameters (`n: T.int64`) and of
/// declarations that open the body (`n, m = T.int32(), T.int64()`).
fn signature_dtypes(def: &ast::StmtFunctionDef) -> FxHashMap<Name, DType> {
    let mut dtypes = FxHashMap::default();
    let of_dtype = |e: &ast::Expr| match e {
        ast::Expr::Attribute(a) if matches!(&*a.value, ast::Expr::Name(n) if n.id == "T") => {
            a.attr.as_str().parse::<DType>().ok().filter(|d| d.is_integer())
        }
        _ => None,
    };
    let declared = |e: &ast::Expr| match e {
        ast::Expr::Call(c) if c.arguments.args.is_empty() && c.arguments.keywords.is_empty() => {
            of_dtype(&c.func)
        }
        _ => None,
    };
    for parameter in def.parameters.iter_non_variadic_params() {
        if let Some(d) = parameter.parameter.annotation.as_deref().and_then(of_dtype) {
            dtypes.insert(parameter.parameter.name.id.clone(), d);
        }
    }
    for stmt in &def.body {
        let ast::Stmt::Assign(s) = stmt else { continue };
        match (&s.targets[..], &*s.value) {
            ([ast::Expr::Name(n)], value) => {
                if let Some(d) = declared(value) {
                    dtypes.entry(n.id.clone()).or_insert(d);
                }
            }
            ([ast::Expr::Tuple(t)], ast::Expr::Tuple(v)) if t.elts.len() == v.elts.len() => {
                for (target, value) in t.elts.iter().zip(&v.elts) {
                    if let (ast::Expr::Name(n), Some(d)) = (target, declared(value)) {
                        dtypes.entry(n.id.clone()).or_insert(d);
                    }
                }
            }
            _ => {}
        }
    }
    dtypes
}

/// Replaces buffers and variables by those with their final names.
struct Renamer {
    buffers: FxHashMap<usize, (Buffer, Arc<str>)>,
    vars: BTreeMap<Var, Var>,
    done: FxHashMap<Buffer, Buffer>,
}

impl Mutator for Renamer {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::Var(v) => match self.vars.get(v) {
                Some(new) => Expr::var(new).at(expr.span),
                None => expr.clone(),
            },
            _ => self.walk_expr(expr),
        }
    }

    fn var_def(&mut self, var: &Var) -> Var {
        self.vars.get(var).unwrap_or(var).clone()
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.done.get(buffer) {
            return known.clone();
        }
        let name = self
            .buffers
            .get(&buffer.id())
            .map_or_else(|| buffer.name.clone(), |(_, n)| n.clone());
        let data = self.var_def(&buffer.data);
        let mut new = buffer.map_exprs(data, |e| self.expr(e));
        if name != buffer.name {
            new = new.with(|n| n.name = name);
        }
        self.done.insert(buffer.clone(), new.clone());
        new
    }
}
