//! Calls of language functions: the table row of a function, its matched arguments, and typed access to them with
//! messages that name the function, the parameter and what it expects.

use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Args, Interpreter, Param, Value};
use super::super::typing::{self, Operand};
use super::convert;
use super::objects::METADATA_STRING;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{DType, Expr};
use crate::source::Span;

/// A function that kernel text can call.
pub(super) struct Function {
    /// Its full name: `T.alloc_buffer`.
    pub name: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether more positional arguments may follow.
    pub rest: bool,
    /// What it does.
    pub run: fn(&mut Interpreter, &mut MatchedCall) -> Result<Value>,
}

impl Function {
    /// Its parameters as text: `(a, b=…, *args, c=…)`.
    pub(super) fn signature(&self) -> String {
        let mut parts = Vec::new();
        let mut named = false;
        for param in self.params {
            if param.keyword_only && !named {
                named = true;
                parts.push(if self.rest { "*args" } else { "*" }.to_string());
            }
            let default = if param.required { "" } else { "=…" };
            parts.push(format!("{}{default}", param.name));
        }
        if self.rest && !named {
            parts.push("*args".into());
        }
        format!("({})", parts.join(", "))
    }
}

/// A row of a table.
pub(super) const fn function(
    name: &'static str,
    params: &'static [Param],
    run: fn(&mut Interpreter, &mut MatchedCall) -> Result<Value>,
) -> Function {
    Function {
        name,
        params,
        rest: false,
        run,
    }
}

/// A row of a function with `*args`.
pub(super) const fn variadic(
    name: &'static str,
    params: &'static [Param],
    run: fn(&mut Interpreter, &mut MatchedCall) -> Result<Value>,
) -> Function {
    Function {
        name,
        params,
        rest: true,
        run,
    }
}

/// A call whose arguments are matched with the parameters.
pub(super) struct MatchedCall {
    /// The function's full name.
    pub function: &'static str,
    params: &'static [Param],
    values: Vec<Option<(Value, Span)>>,
    /// Positional arguments beyond the parameters.
    pub rest: Vec<(Value, Span)>,
    /// Keyword arguments beyond the parameters, for a function that accepts any.
    pub words: Vec<(Rc<str>, Value, Span)>,
    /// The place of the call.
    pub span: Span,
    /// The names of the results; see [`Args::names`].
    pub names: Args,
}

impl Function {
    /// Matches the arguments and runs.
    pub(super) fn call(&self, interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
        let mut call = MatchedCall::new(self.name, self.params, self.rest, args, span)?;
        (self.run)(interp, &mut call)
    }
}

impl MatchedCall {
    /// Matches `args` with `params`.
    pub(super) fn new(
        function: &'static str,
        params: &'static [Param],
        rest: bool,
        mut args: Args,
        span: Span,
    ) -> Result<MatchedCall> {
        let names = Args {
            names: std::mem::take(&mut args.names),
            names_are_tuple: args.names_are_tuple,
            ..Args::default()
        };
        // TVM accepts `span=` nearly everywhere and `dtype=` where the dtype follows from the operands; neither means anything here.
        for ignored in ["span", "dtype"] {
            if !params.iter().any(|p| p.name == ignored) {
                args.take_keyword(ignored);
            }
        }
        // `T.hint` accepts any keywords.
        let mut words = Vec::new();
        if function == "T.hint" {
            let (known, others) = std::mem::take(&mut args.keyword)
                .into_iter()
                .partition(|(name, ..)| params.iter().any(|p| p.name == &**name));
            (args.keyword, words) = (known, others);
        }
        let mut positions = params.iter().filter(|p| !p.keyword_only).count();
        // `T.ptx.cvt(high, low, dtype="ue8m0x2")`: where a list of values follows, TVM takes a parameter that is given by
        // its name out of the positions.
        let named = |p: &Param| args.keyword.iter().any(|(name, ..)| p.name == &**name);
        if rest && params[..positions].iter().all(named) {
            positions = 0;
        }
        let more = if rest && args.positional.len() > positions {
            args.positional.split_off(positions)
        } else {
            Vec::new()
        };
        let values = args.bind(function, params, span)?;
        Ok(MatchedCall {
            function,
            params,
            values,
            rest: more,
            words,
            span,
            names,
        })
    }

    fn index(&self, name: &str) -> usize {
        // Each row's function asks only for its own parameters, so this is unreachable; it counts as absent.
        self.params
            .iter()
            .position(|p| p.name == name)
            .unwrap_or(usize::MAX)
    }

    /// The argument, unless left out or `None`.
    pub(super) fn get(&self, name: &str) -> Option<(&Value, Span)> {
        match self.values.get(self.index(name)) {
            Some(Some((value, span))) if !matches!(value, Value::None) => Some((value, *span)),
            _ => None,
        }
    }

    /// Whether the argument was given, `None` included.
    pub(super) fn given(&self, name: &str) -> bool {
        matches!(self.values.get(self.index(name)), Some(Some(_)))
    }

    /// The argument of a parameter that must be given.
    pub(super) fn need(&self, name: &str, expected: &str) -> Result<(&Value, Span)> {
        match self.get(name) {
            Some(found) => Ok(found),
            None => self.expected(name, expected),
        }
    }

    /// "parameter … must be …, found …".
    pub(super) fn expected<T>(&self, name: &str, expected: &str) -> Result<T> {
        let at = self.values.get(self.index(name)).and_then(|v| v.as_ref());
        let (found, span) = match at {
            Some((value, span)) => (convert::describe(value), *span),
            None => ("nothing".to_string(), self.span),
        };
        let message = format!(
            "{}: parameter \"{name}\" must be {expected}, found {found}",
            self.function
        );
        Err(Box::new(Diagnostic::new(span.or(self.span), message)))
    }

    /// An error about the whole call.
    pub(super) fn fail<T>(&self, message: impl std::fmt::Display) -> Result<T> {
        Err(Box::new(Diagnostic::new(
            self.span,
            format!("{}: {message}", self.function),
        )))
    }

    /// An error about the whole call, with what to do.
    pub(super) fn fail_with<T>(&self, message: impl std::fmt::Display, help: impl Into<String>) -> Result<T> {
        let diagnostic = Diagnostic::new(self.span, format!("{}: {message}", self.function));
        Err(Box::new(diagnostic.help(help)))
    }

    /// An operand of arithmetic.
    pub(super) fn operand(&self, name: &str) -> Result<Operand> {
        let (value, span) = self.need(name, "a number or expression")?;
        match convert::operand(value, span) {
            Some(operand) => operand,
            None => self.expected(name, "a number or expression"),
        }
    }

    /// An expression; numbers get their default dtypes.
    pub(super) fn expr(&self, name: &str) -> Result<Expr> {
        let span = self.need(name, "an expression")?.1;
        typing::literal(self.operand(name)?, span.or(self.span))
    }

    /// An expression, if given.
    pub(super) fn opt_expr(&self, name: &str) -> Result<Option<Expr>> {
        match self.get(name) {
            Some(_) => self.expr(name).map(Some),
            None => Ok(None),
        }
    }

    /// A compile-time integer.
    pub(super) fn int(&self, name: &str) -> Result<i128> {
        let (value, _) = self.need(name, "an integer constant")?;
        match convert::const_int(value) {
            Some(v) => Ok(v),
            None => self.expected(name, "an integer constant"),
        }
    }

    /// A compile-time integer, or `default`.
    pub(super) fn int_or(&self, name: &str, default: i128) -> Result<i128> {
        if self.get(name).is_some() {
            self.int(name)
        } else {
            Ok(default)
        }
    }

    /// A compile-time flag: `True`, `T.bool(True)`, 1.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            Some((Value::Bool(set), _)) => Ok(*set),
            Some(_) => Ok(self.int(name)? != 0),
            None => Ok(default),
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<Arc<str>> {
        let (value, _) = self.need(name, "a string")?;
        match convert::text(value) {
            Some(s) if s.starts_with(METADATA_STRING) => self.fail_with(
                "printed IR leaves strings of several lines out: this one is in its metadata",
                "write the string itself",
            ),
            Some(s) => Ok(s),
            None => self.expected(name, "a string"),
        }
    }

    /// A text, or `default`.
    pub(super) fn text_or(&self, name: &str, default: &str) -> Result<Arc<str>> {
        if self.get(name).is_some() {
            self.text(name)
        } else {
            Ok(default.into())
        }
    }

    /// A dtype.
    pub(super) fn dtype(&self, name: &str) -> Result<DType> {
        let (value, span) = self.need(name, "a dtype")?;
        match convert::dtype(value, span.or(self.span))? {
            Some(d) => Ok(d),
            None => self.expected(name, "a dtype such as \"float32\" or T.float32"),
        }
    }

    /// A dtype, or `default`.
    pub(super) fn dtype_or(&self, name: &str, default: DType) -> Result<DType> {
        if self.get(name).is_some() {
            self.dtype(name)
        } else {
            Ok(default)
        }
    }

    /// `dtype=` of an index that the call declares: int32, or uint32 as TVM 0.27 allows.
    pub(super) fn index_dtype(&self) -> Result<Option<DType>> {
        if self.get("dtype").is_none() {
            return Ok(None);
        }
        match self.dtype("dtype")? {
            dtype @ (DType::INT32 | DType::UINT32) => Ok(Some(dtype)),
            _ => self.expected("dtype", "int32 or uint32: indices have 32 bits"),
        }
    }

    /// Items of a tuple or list, or a single value as one item.
    pub(super) fn items(&self, name: &str, expected: &str) -> Result<Vec<Value>> {
        let (value, _) = self.need(name, expected)?;
        match value {
            Value::Str(_) | Value::Dict(_) | Value::Slice(_) => self.expected(name, expected),
            value => Ok(value.as_items().unwrap_or_else(|| vec![value.clone()])),
        }
    }

    /// A shape: extents as expressions; a single extent may be given without a tuple.
    pub(super) fn shape(&self, name: &str) -> Result<Vec<Expr>> {
        const EXPECTED: &str = "an extent or a tuple of extents";
        let (_, span) = self.need(name, EXPECTED)?;
        let items = self.items(name, EXPECTED)?;
        let mut shape = Vec::with_capacity(items.len());
        for item in &items {
            match convert::extent(item, span.or(self.span)) {
                Some(extent) => shape.push(extent?),
                None => return self.expected(name, EXPECTED),
            }
        }
        Ok(shape)
    }

    /// The remaining positional arguments as arguments of a call: expressions, numbers and strings.
    pub(super) fn rest_args(&self) -> Result<Vec<Expr>> {
        self.rest
            .iter()
            .map(|(value, span)| convert::argument(value, span.or(self.span), self.function))
            .collect()
    }

    /// One argument of a call: expression, number, string or pointer of a buffer.
    pub(super) fn argument(&self, name: &str) -> Result<Expr> {
        let (value, span) = self.need(name, "an expression")?;
        convert::argument(value, span.or(self.span), self.function)
    }
}
