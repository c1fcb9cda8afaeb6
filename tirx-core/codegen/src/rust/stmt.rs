//! The host function as a Rust function, statement by statement.

use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::host::checked::is_followed;
use crate::ir::abi::{self, Check, What, tensor_map};
use crate::ir::at;
use crate::ir::{
    Assert, Attr, BinOp, Expr, ExprKind, ForKind, ForLoop, IRModule, PrimFunc, Stmt, StmtKind, Var,
};

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::checked::{checked, failed};
use super::code::{Code, logical};
use super::expr::{Handle, Printer, Value};
use super::host::Host;
use super::line::{Line, LineKind};
use super::names::Names;
use super::{Raw, internal, message_text, rust_scalar, string_literal};
use crate::ir::abi::Signature;

pub(super) type Result<T> = std::result::Result<T, Diagnostics>;

/// The host function being printed.
pub(super) struct HostPrinter<'a> {
    pub(super) module: &'a IRModule,
    pub(super) signature: &'a Signature,
    /// Rust's names for its parameters.
    pub(super) names: &'a [String],
    kernel_names: Vec<String>,
    pub(super) printer: Printer<'a>,
    /// Values of names that are bound to integer arithmetic: launch extents compute them without wrapping.
    pub(super) arithmetic: FxHashMap<Var, Expr>,
    pub(super) lines: Vec<Line>,
    pub(super) raw: Vec<Raw>,
    pub(super) raw_names: Names,
}

/// Prints the function `host` and the raw functions that it calls.
pub(super) fn print(
    func: &PrimFunc,
    module: &IRModule,
    signature: &Signature,
    names: &[String],
) -> Result<(Host, Vec<Raw>)> {
    let mut printer = Printer::new(signature, Names::reserving(&["stream", "args"]));
    // (self_handle, args, num_args, result)
    if let [_, args, count, _] = func.params.as_slice() {
        printer.define(args, Value::Handle(Handle::Args));
        printer.define(count, Value::Int(signature.params.len() as i128));
    } else {
        return Err(internal(
            func.span,
            "the host function does not have the packed calling convention",
        ));
    }
    let mut host = HostPrinter {
        module,
        signature,
        names,
        kernel_names: signature.params.iter().map(|p| p.name.clone()).collect(),
        printer,
        arithmetic: FxHashMap::default(),
        lines: Vec::new(),
        raw: Vec::new(),
        raw_names: Names::reserving(&["host"]),
    };
    host.stmt(&func.body, true)?;
    let lines = live_lines(host.lines);
    Ok((Host::from_lines(signature.params.len(), lines), host.raw))
}

/// The lines without definitions that nothing reads.
fn live_lines(lines: Vec<Line>) -> Vec<Line> {
    let mut read = BTreeSet::new();
    let mut kept = Vec::new();
    for line in lines.into_iter().rev() {
        if line.defines.as_ref().is_none_or(|name| read.contains(name)) {
            read.extend(line.reads.iter().cloned());
            kept.push(line);
        }
    }
    kept.reverse();
    kept
}

impl HostPrinter<'_> {
    /// Prints a statement; `tail` where it is the last of the function.
    fn stmt(&mut self, stmt: &Stmt, tail: bool) -> Result<()> {
        match &stmt.kind {
            StmtKind::Seq(stmts) => {
                let last = stmts.len().saturating_sub(1);
                for (i, s) in stmts.iter().enumerate() {
                    self.stmt(s, tail && i == last)?;
                }
            }
            // Attributes for passes: no text.
            StmtKind::Attr(Attr { body, .. }) => self.stmt(body, tail)?,
            StmtKind::DeclBuffer(_) => {}
            StmtKind::Bind(var, value) => {
                if is_followed(value) {
                    self.arithmetic.insert(var.clone(), value.clone());
                }
                self.bind(var, value)?;
            }
            StmtKind::Assert(Assert {
                condition, message, ..
            }) => self.check(condition, message)?,
            StmtKind::Evaluate(expr) => self.evaluate(expr, tail)?,
            StmtKind::If(condition, then, otherwise) => self.branch(condition, then, otherwise.as_ref())?,
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind: ForKind::Serial | ForKind::Unrolled,
                step: None,
                body,
                ..
            }) => {
                let name = self.printer.names.name(var);
                let end = crate::arith::fold::binary(BinOp::Add, min.clone(), extent.clone());
                let (first, end) = (self.printer.code(min)?, self.printer.code(&end)?);
                let ty = rust_scalar(var.dtype()).unwrap_or("i32");
                // The type of the range is that of its ends, which may both be untyped literals.
                let first_text = if min.as_int().is_some() {
                    format!("{}_{ty}", first.text)
                } else {
                    first.text.clone()
                };
                let range = format!("for {name} in {first_text}..{} {{", end.text);
                self.lines.push(Line::new(LineKind::Open, range, &[&first, &end]));
                self.printer.define_name(var, &name);
                self.stmt(body, false)?;
                self.lines.push(Line::new(LineKind::Close, "}", &[]));
            }
            StmtKind::While(condition, body) => {
                let code = self.printer.code(condition)?;
                self.lines.push(Line::new(
                    LineKind::Open,
                    format!("while {} {{", code.text),
                    &[&code],
                ));
                self.stmt(body, false)?;
                self.lines.push(Line::new(LineKind::Close, "}", &[]));
            }
            _ => {
                let diagnostic = crate::diagnostic::Diagnostic::new(
                    stmt.span,
                    "this statement cannot be used in host code",
                )
                .help(
                    "before T.device_entry bind values with `x: T.let = …`, and keep values that are known now out of the kernel: \
                     `x = T.meta_var(…)`",
                );
                return Err(diagnostic.into());
            }
        }
        Ok(())
    }

    fn bind(&mut self, var: &Var, value: &Expr) -> Result<()> {
        // Storage for a tensor map: it has a value once it is encoded.
        if var.ty().is_tensor_map() && value.as_call(Op::TvmStackAlloca).is_some() {
            return Ok(());
        }
        match self.printer.value(value)? {
            Value::Code(code) => {
                // A plain name needs no second one.
                if code.reads.first() == Some(&code.text) {
                    self.printer.define(var, Value::Code(code));
                    return Ok(());
                }
                let name = self.printer.names.name(var);
                let ty = match var.dtype().is_handle() {
                    true => Some("u64"),
                    false => rust_scalar(var.dtype()),
                };
                let text = format!("let {name} = {};", code.text);
                let kind = LineKind::Value(ty);
                self.lines.push(Line::defining(kind, &name, text, code.reads));
                self.printer.define_name(var, &name);
                if let Some(wide) = abi::descriptor_value(value) {
                    self.fits(wide, &name)?;
                }
            }
            known => self.printer.define(var, known),
        }
        Ok(())
    }

    /// Checks that an extent or stride read as `int32` was not truncated.
    fn fits(&mut self, wide: &Expr, name: &str) -> Result<()> {
        let Value::Code(code) = self.printer.value(wide)? else {
            return Ok(());
        };
        let (Some(index), Some(position)) = (argument_index(&code.text), abi::element_position(wide)) else {
            return Ok(());
        };
        let argument = self.rust_name(index);
        let field = if code.text.contains(".shape(") {
            "shape"
        } else {
            "strides"
        };
        self.lines.push(Line::new(
            LineKind::Check,
            format!(
                "if i64::from({name}) != {} {{ return Err(::tirx_rt::host::mismatch(KERNEL, {index}, {}, {}, \
                 \"at most 2147483647\", {})); }}",
                code.text,
                string_literal(&argument),
                string_literal(&format!("{field}[{position}]")),
                code.text
            ),
            &[&Code {
                reads: vec![name.to_string()],
                ..code.clone()
            }],
        ));
        Ok(())
    }

    fn branch(&mut self, condition: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<()> {
        let code = match self.printer.value(condition)? {
            Value::Int(0) => return otherwise.map_or(Ok(()), |s| self.stmt(s, false)),
            Value::Int(_) => return self.stmt(then, false),
            _ => self.printer.code(condition)?,
        };
        let at = self.lines.len();
        self.lines.push(Line::new(
            LineKind::Open,
            format!("if {} {{", code.text),
            &[&code],
        ));
        self.stmt(then, false)?;
        let empty = self.lines.len() == at + 1;
        if let Some(otherwise) = otherwise {
            self.lines.push(Line::new(LineKind::Else, "} else {", &[]));
            self.stmt(otherwise, false)?;
        } else if empty {
            // Every check inside folded away.
            self.lines.pop();
            return Ok(());
        } else if self.lines.len() == at + 2
            && let Some((failed, error)) = self.lines[at + 1].check.take()
        {
            // One check under a condition becomes one condition.
            let reads = std::mem::take(&mut self.lines[at + 1].reads);
            self.lines.truncate(at);
            self.lines
                .push(Line::check(logical(BinOp::And, &code, &failed), error, reads));
            return Ok(());
        }
        self.lines.push(Line::new(LineKind::Close, "}", &[]));
        Ok(())
    }

    /// An assertion: each part of a conjunction is a check of its own, with its own actual value.
    fn check(&mut self, condition: &Expr, message: &[std::sync::Arc<str>]) -> Result<()> {
        if let Some((a, b)) = condition.as_binary(BinOp::And) {
            self.check(a, message)?;
            return self.check(b, message);
        }
        match self.printer.value(condition)? {
            Value::Int(0) => {
                let text = format!("this check can never hold: {}", message_text(message));
                return Err(internal(condition.span, text));
            }
            Value::Int(_) => return Ok(()),
            _ => {}
        }
        let arithmetic = &self.arithmetic;
        let failed = match failed(&mut self.printer, condition, &|var| arithmetic.get(var).cloned())? {
            Some(failed) => failed,
            None => self.printer.negated(condition)?,
        };
        let (error, reads) = match Check::read(message, &self.kernel_names) {
            Some(check) => self.mismatch(&check, condition)?,
            None => {
                let text = string_literal(&message_text(message));
                (
                    format!("::tirx_rt::host::check_failed(KERNEL, {text})"),
                    Vec::new(),
                )
            }
        };
        self.lines.push(Line::check(failed, error, reads));
        Ok(())
    }

    /// An argument's name as the launcher's caller knows it.
    fn rust_name(&self, index: usize) -> String {
        self.names
            .get(index)
            .map_or_else(|| "?".to_string(), String::clone)
    }

    /// An expectation in the kernel's words (`A.shape[0] * 2`) with the arguments' names in Rust.
    fn in_rust(&self, words: &str) -> String {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let mut text = String::new();
        let mut rest = words;
        while let Some(start) = rest.find(is_name) {
            let (before, from) = rest.split_at(start);
            let (name, after) = from.split_at(from.find(|c| !is_name(c)).unwrap_or(from.len()));
            text.push_str(before);
            let position = self.kernel_names.iter().position(|known| known == name);
            match position.filter(|_| !before.ends_with('.')) {
                Some(position) => text.push_str(&self.names[position]),
                None => text.push_str(name),
            }
            rest = after;
        }
        text + rest
    }

    /// The error of a failed check, with the differing values.
    fn mismatch(&mut self, check: &Check, condition: &Expr) -> Result<(String, Vec<String>)> {
        let mut field = check.what.field().to_string();
        let (expected, actual, reads) = if check.what == What::Data {
            ("\"a pointer\"".to_string(), "\"null\"".to_string(), Vec::new())
        } else if matches!(check.what, What::Alignment | What::OffsetAlignment) {
            let remainder = |e: &Expr| matches!(e.kind, ExprKind::Binary(BinOp::Mod | BinOp::FloorMod, ..));
            let (value, divisor) = match abi::find(condition, &remainder).map(|e| &e.kind) {
                Some(ExprKind::Binary(_, value, divisor)) => (value, divisor.as_int()),
                _ => (condition, None),
            };
            let is_address = matches!(value.as_call(Op::Reinterpret), Some([a]) if a.dtype.is_handle());
            let address = self.printer.code(value)?;
            let actual = match is_address {
                true => formatted("{:#x}", "", &address),
                false => address.text.clone(),
            };
            let expected = match divisor {
                Some(elements) if !is_address => format!("a multiple of {elements} elements"),
                _ => format!("a multiple of {}", check.expected),
            };
            let expected = string_literal(&expected);
            (expected, actual, address.reads)
        } else if let Some((a, b)) = abi::compared(condition) {
            let (actual, expected) =
                if abi::reads_argument(b) && !abi::reads_argument(a) || a.as_int().is_some() {
                    (b, a)
                } else {
                    (a, b)
                };
            // For "strides" the expression that is read determines which stride.
            if check.what == What::Compact
                && let Some(position) = abi::element_position(actual)
            {
                field = format!("strides[{position}]");
            }
            let actual = abi::descriptor_value(actual).unwrap_or(actual);
            let (actual, known) = (self.number(actual)?, self.printer.value(expected)?);
            let expected = self.number(expected)?;
            let mut reads = actual.reads.clone();
            reads.extend(expected.reads.iter().cloned());
            let plain = check.expected.is_empty()
                || matches!(known, Value::Int(v) if v.to_string() == check.expected);
            let text = if plain || !matches!(known, Value::Code(_)) {
                expected.text
            } else {
                let words = self.in_rust(&check.expected);
                let words = words.replace('{', "{{").replace('}', "}}");
                formatted("{}", &format!(" ({words})"), &expected)
            };
            (text, actual.text, reads)
        } else if let ExprKind::Binary(BinOp::Le, actual, _) = &condition.kind {
            let actual = self.number(actual)?;
            (string_literal(&check.expected), actual.text, actual.reads)
        } else {
            let expected = if check.expected.is_empty() {
                "something else"
            } else {
                &check.expected
            };
            (string_literal(expected), string_literal("not"), Vec::new())
        };
        let text = format!(
            "::tirx_rt::host::mismatch(KERNEL, {}, {}, {}, {expected}, {actual})",
            check.index,
            string_literal(&self.rust_name(check.index as usize)),
            string_literal(&field),
        );
        Ok((text, reads))
    }

    /// A value in a message, computed without wrapping.
    pub(super) fn number(&mut self, expr: &Expr) -> Result<Code> {
        let arithmetic = &self.arithmetic;
        let bound = |var: &Var| arithmetic.get(var).cloned();
        let computed = matches!(
            expr.kind,
            ExprKind::Binary(..)
                | ExprKind::Call {
                    op: Op::IfThenElse,
                    ..
                }
        );
        match computed
            .then(|| checked(&mut self.printer, expr, &bound))
            .flatten()
        {
            Some(checked) => Ok(checked.code()),
            None => self.printer.code(expr),
        }
    }

    fn evaluate(&mut self, expr: &Expr, tail: bool) -> Result<()> {
        match &expr.kind {
            ExprKind::Int(_) => Ok(()),
            ExprKind::Call { op: Op::Ret, .. } if tail => Ok(()),
            ExprKind::Call { op: Op::Ret, .. } => {
                self.lines
                    .push(Line::new(LineKind::Return, "return Ok(());", &[]));
                Ok(())
            }
            ExprKind::Call {
                op: Op::TvmCallPacked,
                args,
            } => {
                if args[at!(TvmCallPacked.func_name)].as_str() == Some("__tvm_set_device") {
                    let names: Vec<String> = self.names.iter().map(|n| string_literal(n)).collect();
                    let names = names.join(", ");
                    let text = format!(
                        "let _launching = ::tirx_rt::host::begin(stream, args, &[{names}], KERNEL)?;"
                    );
                    self.lines.push(Line::new(LineKind::Prepare, text, &[]));
                    return Ok(());
                }
                if let Some(encode) = tensor_map::encode(args, expr.span) {
                    let encode = encode.map_err(|error| *error)?;
                    return self.tensor_map(&encode.exact(&|value| self.written_out(value)));
                }
                match abi::launch(self.module, args) {
                    Some(launch) => self.launch(&launch),
                    None => Err(abi::unsupported(expr, "a call of this packed function")),
                }
            }
            ExprKind::Call { op, .. } => Err(abi::unsupported(expr, &format!("`T.{}`", op.info().script))),
            _ => Ok(()),
        }
    }
}

/// `format_args!` of one value, a plain name inside the braces: `"{n} (A.shape[0])"`.
fn formatted(braces: &str, rest: &str, code: &Code) -> String {
    if code.reads.first() == Some(&code.text) {
        let braces = braces.replacen('{', &format!("{{{}", code.text), 1);
        return format!("format_args!({})", string_literal(&format!("{braces}{rest}")));
    }
    format!(
        "format_args!({}, {})",
        string_literal(&format!("{braces}{rest}")),
        code.text
    )
}

/// The argument that a piece of Rust like `args[1].shape(0)` reads.
fn argument_index(text: &str) -> Option<usize> {
    text.strip_prefix("args[")?.split_once(']')?.0.parse().ok()
}
