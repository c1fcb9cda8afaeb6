//! Expressions of the text to values.

use std::rc::Rc;
use std::sync::Arc;

use tirx_python::{self as ast, BoolOp, CmpOp, UnaryOp};
use tirx_python::{Ranged, TextRange};

use super::frame::EvalFrame;
use super::scope::ScopeKind;
use super::value::{Function, FunctionMode, Slice, Value};
use super::{Args, Interpreter, Mode, dict};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::lang;
use crate::parse::span_of;
use crate::source::Span;

/// Whether a call or a subscript describes a layout.
fn describes_layout(callee: &ast::Expr) -> bool {
    let names_one = |name: &str| {
        let mut parts = name.as_bytes().windows("layout".len());
        matches!(name, "S" | "R") || parts.any(|part| part.eq_ignore_ascii_case(b"layout"))
    };
    match callee {
        ast::Expr::Name(n) => names_one(&n.id),
        ast::Expr::Attribute(a) => names_one(&a.attr) || describes_layout(&a.value),
        _ => false,
    }
}

impl Interpreter {
    /// The span of a node of the current file.
    pub(super) fn span(&self, node: &impl Ranged) -> Span {
        self.span_at(node.range())
    }

    pub(super) fn span_at(&self, range: TextRange) -> Span {
        let span = span_of(self.frame.file, range);
        match self.frame.called {
            (file, called) if file == span.file => Span { file: called, ..span },
            _ => span,
        }
    }

    /// Evaluates an expression.
    pub(super) fn eval(&mut self, expr: &ast::Expr) -> Result<Value> {
        self.eval_for(expr, None)
    }

    /// Evaluates an expression whose value will be bound to `target`: objects that it creates are named after it.
    pub(super) fn eval_for(&mut self, expr: &ast::Expr, target: Option<&ast::Expr>) -> Result<Value> {
        let span = self.span(expr);
        self.step(span)?;
        self.limits.depth += 1;
        if self.limits.depth > super::limits::DEPTH {
            self.limits.depth -= 1;
            return self.limit(span, "evaluation is nested too deep");
        }
        let result = self.eval_kind(expr, target, span);
        self.limits.depth -= 1;
        self.finished(expr, result, span)
    }

    /// The value of an evaluated expression, counted and checked against the limits.
    fn finished(&mut self, expr: &ast::Expr, result: Result<Value>, span: Span) -> Result<Value> {
        let value = match result {
            Ok(value) => value,
            // Outside of kernels, an expression that needs a host value is a host value itself.
            Err(e) => self.inert(&e).map(Value::Unavailable).ok_or(e)?,
        };
        match &value {
            Value::Expr(e) => self.check_expr(e, span)?,
            Value::Tuple(_)
            | Value::List(_)
            | Value::Dict(_)
            | Value::Set(_)
            | Value::Slice(_)
            | Value::Function(_)
            | Value::Builtin(_)
            | Value::Method(_)
            | Value::Instance(_)
            | Value::MetaVar(_)
            | Value::Object(_)
            | Value::Annotation(_)
            | Value::Frame(_) => match expr {
                // The value of a name was counted when it was created, and so was what an object has as an attribute.
                ast::Expr::Name(_) => {}
                ast::Expr::Attribute(_)
                    if matches!(&value, Value::Instance(_) | Value::List(_) | Value::Dict(_)) => {}
                _ => self.count_object(span)?,
            },
            Value::Iterator(it) if !matches!(expr, ast::Expr::Name(_)) => {
                self.session.cycles.iterators.push(Rc::downgrade(it));
                self.count_object(span)?;
            }
            _ => {}
        }
        Ok(value)
    }

    /// Evaluates an operand; a `T.meta_var` is unwrapped.
    pub(super) fn eval_operand(&mut self, expr: &ast::Expr) -> Result<Value> {
        Ok(match self.eval(expr)? {
            Value::MetaVar(v) => (*v).clone(),
            other => other,
        })
    }

    fn eval_kind(&mut self, expr: &ast::Expr, target: Option<&ast::Expr>, span: Span) -> Result<Value> {
        match expr {
            ast::Expr::Name(e) => self.eval_name(&e.id, span),
            ast::Expr::NumberLiteral(e) => self.eval_number(&e.value, span),
            ast::Expr::StringLiteral(e) => self.eval_string(e, span),
            ast::Expr::FString(e) => self.eval_fstring(e),
            ast::Expr::BooleanLiteral(e) => Ok(Value::Bool(e.value)),
            ast::Expr::NoneLiteral(_) => Ok(Value::None),
            ast::Expr::EllipsisLiteral(_) => Ok(Value::Ellipsis),
            ast::Expr::Attribute(e) => self.eval_attribute(e, span),
            ast::Expr::Subscript(e) => self.eval_subscript(e, span),
            ast::Expr::Call(e) => self.eval_call(e, target, span),
            ast::Expr::BinOp(e) => self.eval_binary(e, span),
            ast::Expr::UnaryOp(e) => self.eval_unary(e, span),
            ast::Expr::Compare(e) => self.eval_compare(e, span),
            ast::Expr::BoolOp(e) => self.eval_bool_op(e, span),
            ast::Expr::If(e) => self.eval_if(e, target, span),
            ast::Expr::Tuple(e) => Ok(Value::tuple(self.eval_items(&e.elts, target)?)),
            ast::Expr::List(e) => Ok(Value::list(self.eval_items(&e.elts, target)?)),
            ast::Expr::Set(e) => self.eval_set(e),
            ast::Expr::Dict(e) => self.eval_dict(e, span),
            ast::Expr::Slice(e) => self.eval_slice(e),
            ast::Expr::Lambda(e) => self.eval_lambda(e),
            ast::Expr::Named(e) => self.eval_named(e, span),
            ast::Expr::ListComp(e) => {
                let items = self.eval_comprehension(&e.generators, &e.elt, span)?;
                Ok(Value::list(items))
            }
            ast::Expr::Generator(e) => self.generator_expression(e, span),
            ast::Expr::SetComp(e) => {
                let items = self.eval_comprehension(&e.generators, &e.elt, span)?;
                self.make_set(items, span)
            }
            ast::Expr::DictComp(e) => self.eval_dict_comprehension(e, span),
            ast::Expr::Yield(_) | ast::Expr::YieldFrom(_) => {
                error(span, "\"yield\" can only stand in a function's own statements")
            }
            ast::Expr::Starred(_) => error(span, "a starred expression cannot stand here"),
            ast::Expr::Await(_) => self.unavailable("\"await\" is not supported in kernel files", span),
            ast::Expr::BytesLiteral(_) => {
                self.unavailable("bytes literals are not supported in kernel files", span)
            }
        }
    }

    fn eval_number(&mut self, number: &ast::Number, span: Span) -> Result<Value> {
        match number {
            ast::Number::Int(i) => match i.as_i64() {
                Some(v) => Ok(Value::Int(v as i128)),
                None => {
                    let text = i.to_string().replace('_', "").to_lowercase();
                    let parsed = match text.get(..2) {
                        Some("0x") => i128::from_str_radix(&text[2..], 16),
                        Some("0b") => i128::from_str_radix(&text[2..], 2),
                        Some("0o") => i128::from_str_radix(&text[2..], 8),
                        _ => text.parse(),
                    };
                    match parsed {
                        Ok(v) => Ok(Value::Int(v)),
                        Err(_) => error(span, "this integer is larger than 127 bits"),
                    }
                }
            },
            ast::Number::Float(v) => Ok(Value::Float(*v)),
            ast::Number::Complex { .. } => {
                self.unavailable("complex numbers are not supported in kernel files", span)
            }
        }
    }

    fn eval_string(&mut self, e: &ast::ExprStringLiteral, span: Span) -> Result<Value> {
        if self.frame.match_names.is_some() {
            return self.eval_text(e, span);
        }
        Ok(Value::str(e.value.to_str()))
    }

    /// Evaluates the text of a string as an expression: a string annotation, or an extent `"n + 1"`.
    pub(super) fn eval_text(&mut self, e: &ast::ExprStringLiteral, span: Span) -> Result<Value> {
        let Some(file) = self.session.sources.file(self.frame.file) else {
            return error(span, "no source text");
        };
        let text = file.text.clone();
        // The same text between the quotes, so that spans point into the string.
        let source = &text[span.start as usize..span.end as usize];
        let value = e.value.to_str();
        let parsed = match source.find(value) {
            Some(at) => {
                let start = tirx_python::TextSize::new(span.start + at as u32);
                let len = tirx_python::TextSize::new(value.len() as u32);
                ast::parse_expression(&text, TextRange::at(start, len), super::limits::PYTHON)
            }
            None => return error(span, "an expression in a string cannot have escapes"),
        };
        match parsed {
            Ok(parsed) => {
                let frame = EvalFrame {
                    in_text: true,
                    ..self.frame.clone()
                };
                self.enter(frame, |i| i.eval(&parsed))
            }
            Err(e) => error(self.span_at(e.range), format!("syntax error in this string: {e}")),
        }
    }

    fn eval_attribute(&mut self, e: &ast::ExprAttribute, span: Span) -> Result<Value> {
        let value = self.eval_operand(&e.value)?;
        self.get_attribute(&value, &e.attr.id, self.span(&e.attr).or(span))
            .map(|v| match v {
                Value::Expr(x) => Value::Expr(x.at(span)),
                other => other,
            })
    }

    fn eval_subscript(&mut self, e: &ast::ExprSubscript, span: Span) -> Result<Value> {
        let value = self.eval_operand(&e.value)?;
        let index = self.in_layout(describes_layout(&e.value), |i| i.eval_index(&e.slice))?;
        // Printed IR writes a load of such a buffer by its name: brackets behind `.source` or `.buffer` are a region.
        let index = match (&value, &*e.value) {
            (Value::Buffer(b), ast::Expr::Attribute(a))
                if lang::is_single(b)
                    && matches!(a.attr.as_str(), "source" | "buffer")
                    && self.is_printed() =>
            {
                let (start, stop, step) = (Value::Int(0), Value::Int(1), Value::None);
                Value::Slice(Rc::new(Slice { start, stop, step }))
            }
            _ => index,
        };
        self.subscript(&value, &index, span)
    }

    /// An index: a tuple may hold slices and starred parts.
    pub(super) fn eval_index(&mut self, e: &ast::Expr) -> Result<Value> {
        match e {
            ast::Expr::Tuple(t) => Ok(Value::tuple(self.eval_items(&t.elts, None)?)),
            ast::Expr::Starred(s) => {
                let value = self.eval_operand(&s.value)?;
                let items = self.iterate(&value, self.span(s))?;
                Ok(Value::tuple(items))
            }
            _ => self.eval_operand(e),
        }
    }

    /// Items of a list or tuple expression, stars expanded.
    pub(super) fn eval_items(
        &mut self,
        elts: &[ast::Expr],
        target: Option<&ast::Expr>,
    ) -> Result<Vec<Value>> {
        let targets = match target {
            Some(ast::Expr::Tuple(t)) if t.elts.len() == elts.len() => Some(&t.elts),
            Some(ast::Expr::List(t)) if t.elts.len() == elts.len() => Some(&t.elts),
            _ => None,
        };
        let mut items = Vec::with_capacity(elts.len());
        for (i, elt) in elts.iter().enumerate() {
            match elt {
                ast::Expr::Starred(s) => {
                    let value = self.eval_operand(&s.value)?;
                    let span = self.span(s);
                    items.extend(self.iterate(&value, span)?);
                }
                _ => items.push(self.eval_for(elt, targets.map(|t| &t[i]))?),
            }
        }
        Ok(items)
    }

    fn eval_set(&mut self, e: &ast::ExprSet) -> Result<Value> {
        let items = self.eval_items(&e.elts, None)?;
        self.make_set(items, self.span(e))
    }

    /// A set of items.
    pub(super) fn make_set(&mut self, items: Vec<Value>, span: Span) -> Result<Value> {
        let mut set = dict::Set::default();
        for item in items {
            let key = self.key_of(&item, span)?;
            set.insert(key, item);
        }
        Ok(Value::Set(Rc::new(std::cell::RefCell::new(set))))
    }

    /// The key of a value that is looked for.
    pub(super) fn sought_key(&mut self, value: &Value, span: Span) -> Result<dict::Key> {
        match (value, dict::key(value)) {
            (Value::Unavailable(why), Ok(dict::Key::Identity(_))) => self.unavailable(why, span),
            _ => self.key_of(value, span),
        }
    }

    /// The key of a value.
    pub(super) fn key_of(&mut self, value: &Value, span: Span) -> Result<dict::Key> {
        match dict::key(value) {
            Ok(key) => Ok(key),
            Err(ty) => self.raise(
                "TypeError",
                span,
                format!("{ty} cannot be a key: it is not hashable"),
            ),
        }
    }

    fn eval_dict(&mut self, e: &ast::ExprDict, span: Span) -> Result<Value> {
        let mut dict = dict::Dict::default();
        for item in &e.items {
            match &item.key {
                Some(k) => {
                    let name = self.eval(k)?;
                    let value = self.eval(&item.value)?;
                    let key = self.key_of(&name, self.span(k))?;
                    dict.insert(key, name, value);
                }
                None => match &self.eval_operand(&item.value)? {
                    Value::Dict(other) => {
                        for (k, v) in other.borrow().iter() {
                            let key = self.key_of(k, span)?;
                            dict.insert(key, k.clone(), v.clone());
                        }
                    }
                    other => return error(span, format!("** needs a dict, found {}", other.type_name())),
                },
            }
        }
        Ok(Value::Dict(Rc::new(std::cell::RefCell::new(dict))))
    }

    fn eval_slice(&mut self, e: &ast::ExprSlice) -> Result<Value> {
        let mut part = |p: &Option<Box<ast::Expr>>| match p {
            Some(p) => self.eval(p),
            None => Ok(Value::None),
        };
        let (start, stop, step) = (part(&e.lower)?, part(&e.upper)?, part(&e.step)?);
        Ok(Value::Slice(Rc::new(Slice { start, stop, step })))
    }

    fn eval_lambda(&mut self, e: &ast::ExprLambda) -> Result<Value> {
        let code = self.code_of_lambda(e);
        self.close_over();
        let mut defaults = Vec::new();
        for (i, d) in super::code::default_exprs(e.parameters.as_deref()) {
            defaults.push((i, self.eval(d)?));
        }
        Ok(Value::Function(Rc::new(Function {
            name: "<lambda>".into(),
            code,
            defaults,
            scope: self.frame.scope.clone(),
            mode: FunctionMode::Meta,
            class: None.into(),
            attributes: std::cell::RefCell::default(),
        })))
    }

    fn eval_named(&mut self, e: &ast::ExprNamed, span: Span) -> Result<Value> {
        let value = self.eval(&e.value)?;
        if self.frame.mode == Mode::Kernel && value.is_ir() {
            return Err(Box::new(
                Diagnostic::new(
                    span,
                    "\":=\" cannot bind a value that is only known when the kernel runs",
                )
                .help("assign it in a statement of its own"),
            ));
        }
        // In a comprehension the name belongs to the enclosing function.
        let mut scope = self.frame.scope.clone();
        while let (ScopeKind::Comprehension, Some(parent)) = (&scope.kind, &scope.parent) {
            scope = parent.clone();
        }
        self.in_scope(scope, |i| i.bind(&e.target, value.clone()))?;
        Ok(value)
    }

    /// A chain like `a + b + c` is evaluated from its first operand on, without recursion: generated kernels have
    /// chains of thousands of operators.
    fn eval_binary(&mut self, e: &ast::ExprBinOp, span: Span) -> Result<Value> {
        let mut inner: Vec<&ast::Expr> = Vec::new();
        let mut first = &*e.left;
        while let ast::Expr::BinOp(next) = first {
            inner.push(first);
            first = &next.left;
        }
        let mut a = self.eval_operand(first)?;
        for expr in inner.into_iter().rev() {
            let ast::Expr::BinOp(link) = expr else { continue };
            let span = self.span(expr);
            self.step(span)?;
            let value = self.eval_link(link, &a, span);
            a = match self.finished(expr, value, span)? {
                Value::MetaVar(v) => (*v).clone(),
                other => other,
            };
        }
        self.eval_link(e, &a, span)
    }

    /// An operator of a chain, whose left operand is `a`.
    fn eval_link(&mut self, e: &ast::ExprBinOp, a: &Value, span: Span) -> Result<Value> {
        let describes_layout = e.op == ast::Operator::MatMult;
        let b = self.in_layout(describes_layout, |i| i.eval_operand(&e.right))?;
        self.binary(e.op, a, &b, span)
    }

    fn eval_unary(&mut self, e: &ast::ExprUnaryOp, span: Span) -> Result<Value> {
        let a = self.eval_operand(&e.operand)?;
        if a.is_ir() {
            return lang::unary(self, e.op, &a, span).map(|v| at(v, span));
        }
        match e.op {
            UnaryOp::Not => Ok(Value::Bool(!self.truth(&a, span)?)),
            op => self.meta_unary(op, &a, span),
        }
    }

    fn eval_compare(&mut self, e: &ast::ExprCompare, span: Span) -> Result<Value> {
        let mut left = self.eval_operand(&e.left)?;
        let mut result: Option<Value> = None;
        for (op, right) in e.ops.iter().zip(&e.comparators) {
            let right_value = self.eval_operand(right)?;
            let pair = self.span(&*e.left).to(self.span(right));
            // TVM prints `(a < b) == c` without the brackets. A chain would have no meaning here, because `b` is not a
            // bool.
            if let (CmpOp::Eq | CmpOp::NotEq, Some(before)) = (*op, &result)
                && is_bool(before)
                && is_bool(&right_value)
                && (left.as_expr().is_some_and(|l| !l.dtype.is_bool())
                    || matches!(left, Value::Int(_) | Value::Float(_)))
            {
                left = self.compare(*op, before, &right_value, pair)?;
                result = Some(left.clone());
                continue;
            }
            let link = self.compare(*op, &left, &right_value, pair)?;
            result = Some(match result {
                None => link,
                Some(Value::Bool(true)) => link,
                Some(before) => {
                    lang::logical(self, BoolOp::And, &before, &link, span).map(|v| at(v, span))?
                }
            });
            if let Some(Value::Bool(false)) = result {
                break;
            }
            left = right_value;
        }
        Ok(result.unwrap_or(Value::Bool(true)))
    }

    /// `a op b`.
    pub(super) fn compare(&mut self, op: CmpOp, a: &Value, b: &Value, span: Span) -> Result<Value> {
        let is_identity = matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn);
        let with_none = matches!(a, Value::None) || matches!(b, Value::None);
        if !is_identity && !with_none && (a.is_ir() || b.is_ir()) {
            return lang::compare(self, op, a, b, span).map(|v| at(v, span));
        }
        self.meta_compare(op, a, b, span)
    }

    fn eval_bool_op(&mut self, e: &ast::ExprBoolOp, span: Span) -> Result<Value> {
        let mut so_far: Option<Value> = None;
        let is_and = e.op == BoolOp::And;
        for part in &e.values {
            let value = self.eval_operand(part)?;
            let combined = match &so_far {
                None => value,
                Some(before) if before.is_ir() || (value.is_ir() && matches!(before, Value::Bool(_))) => {
                    lang::logical(self, e.op, before, &value, span).map(|v| at(v, span))?
                }
                Some(_) => value,
            };
            // A value known at compile time decides immediately, as in Python; `0 and f()` does not call `f`.
            if !combined.is_ir() && self.truth(&combined, self.span(part))? != is_and {
                return Ok(combined);
            }
            so_far = Some(combined);
        }
        Ok(so_far.unwrap_or(Value::None))
    }

    fn eval_if(&mut self, e: &ast::ExprIf, target: Option<&ast::Expr>, span: Span) -> Result<Value> {
        let test = self.eval_operand(&e.test)?;
        if test.is_ir() {
            let (a, b) = (self.eval_operand(&e.body)?, self.eval_operand(&e.orelse)?);
            let Some(function) = lang::attribute("T", "if_then_else") else {
                return error(span, "a choice at run time needs T.if_then_else");
            };
            return self
                .call_value(&function, Args::positional([test, a, b], span), span)
                .map(|v| at(v, span));
        }
        if self.truth(&test, self.span(&*e.test))? {
            self.eval_for(&e.body, target)
        } else {
            self.eval_for(&e.orelse, target)
        }
    }

    fn eval_call(&mut self, e: &ast::ExprCall, target: Option<&ast::Expr>, span: Span) -> Result<Value> {
        let callee = self.eval(&e.func)?;
        let mut args = self.in_layout(describes_layout(&e.func), |i| {
            i.eval_arguments(&e.arguments, target)
        })?;
        self.replace_buffer_names_by_elements(&callee, &e.arguments, &mut args);
        let host = self.host_argument(&callee, &args);
        match self.call_value(&callee, args, span) {
            Ok(Value::Expr(x)) => Ok(Value::Expr(x.or_at(span))),
            Ok(other) => Ok(other),
            // A failure caused by a host value names that value.
            Err(e) => match host {
                Some((why, at)) if !self.limits.fatal => self.unavailable(&why, at),
                _ => Err(e),
            },
        }
    }

    /// In printed IR the bare name of a buffer with one element, as an argument, means the element: such arguments are replaced. Those of
    /// `T.attr` stay, for its node is the buffer.
    fn replace_buffer_names_by_elements(&self, callee: &Value, written: &ast::Arguments, args: &mut Args) {
        let is_attr = matches!(callee, Value::Builtin(f) if &*f.name == "T.attr");
        let is_name = |e: &ast::Expr| matches!(e, ast::Expr::Name(_));
        if is_attr || !self.is_kernel_code() || !self.is_printed() {
            return;
        }
        // With starred arguments it is not known which text a value has: they stay.
        if written.args.len() == args.positional.len() {
            for (e, (value, span)) in written.args.iter().zip(&mut args.positional) {
                if let Some(element) = lang::printed_element(value, *span).filter(|_| is_name(e)) {
                    *value = element;
                }
            }
        }
        let keywords = || written.keywords.iter().filter(|k| is_name(&k.value));
        for (name, value, span) in &mut args.keyword {
            let named = keywords().any(|k| k.arg.as_ref().is_some_and(|n| n.as_str() == &**name));
            if let Some(element) = lang::printed_element(value, *span).filter(|_| named) {
                *value = element;
            }
        }
    }

    /// Arguments of a call.
    pub(super) fn eval_arguments(
        &mut self,
        arguments: &ast::Arguments,
        target: Option<&ast::Expr>,
    ) -> Result<Args> {
        let mut args = Args::default();
        for arg in &arguments.args {
            let span = self.span(arg);
            match arg {
                ast::Expr::Starred(s) => {
                    let value = self.eval_operand(&s.value)?;
                    args.positional
                        .extend(self.iterate(&value, span)?.into_iter().map(|v| (v, span)));
                }
                _ => args.positional.push((self.eval_operand(arg)?, span)),
            }
        }
        for keyword in &arguments.keywords {
            let span = self.span(&keyword.value);
            let name = keyword.arg.as_ref().map_or("", |n| n.as_str());
            let describes_layout = name.contains("layout") || name.contains("axis");
            let value = self.in_layout(describes_layout, |i| i.eval_operand(&keyword.value))?;
            match &keyword.arg {
                Some(name) => {
                    if args.keyword.iter().any(|(n, ..)| **n == *name.as_str()) {
                        return error(span, format!("keyword argument \"{name}\" is given twice"));
                    }
                    args.keyword.push((name.as_str().into(), value, span));
                }
                None => match value {
                    Value::Dict(d) => {
                        for (k, v) in d.borrow().iter() {
                            match k {
                                Value::Str(k) => args.keyword.push((k.clone(), v.clone(), span)),
                                _ => return error(span, "keys of ** arguments must be strings"),
                            }
                        }
                    }
                    other => return error(span, format!("** needs a dict, found {}", other.type_name())),
                },
            }
        }
        if self.frame.mode == Mode::Kernel
            && let Some(target) = target
        {
            (args.names, args.names_are_tuple) = target_names(target);
        }
        Ok(args)
    }
}

/// The names in an assignment target, and whether it is a tuple. Targets that are not plain names have none.
pub(super) fn target_names(target: &ast::Expr) -> (Vec<Arc<str>>, bool) {
    let list = |elts: &[ast::Expr]| {
        let names: Option<Vec<Arc<str>>> = elts
            .iter()
            .map(|e| match e {
                ast::Expr::Name(n) => Some(n.id.as_str().into()),
                _ => None,
            })
            .collect();
        (names.unwrap_or_default(), true)
    };
    match target {
        ast::Expr::Name(n) => (vec![n.id.as_str().into()], false),
        ast::Expr::Tuple(t) => list(&t.elts),
        ast::Expr::List(t) => list(&t.elts),
        _ => (Vec::new(), false),
    }
}

/// A value with the span of the text it came from.
pub(super) fn at(value: Value, span: Span) -> Value {
    match value {
        Value::Expr(e) => Value::Expr(e.or_at(span)),
        other => other,
    }
}

/// Whether a run-time value is a bool.
fn is_bool(value: &Value) -> bool {
    value.as_expr().is_some_and(|e| e.dtype.is_bool())
}
