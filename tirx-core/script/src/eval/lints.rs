//! Likely mistakes that are not errors: statements without effect, constants that are truncated.
//!
//! Each lint has a name, and `# tirx: allow(name)` on its line, on the line before it or at the head of the file turns
//! it off.

use tirx_python as ast;

use super::value::Value;
use super::{Args, Interpreter, args};
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::tile::COPY_BY_ONE_THREAD;
use crate::ir::{DType, ExprKind};
use crate::source::Span;

/// A likely mistake that does not prevent a kernel from being built.
#[derive(Clone, Debug)]
pub struct Lint {
    /// Its name, for `# tirx: allow(name)`.
    pub name: &'static str,
    /// The message and its place.
    pub diagnostic: Diagnostic,
}

/// The name of each lint and what it reports.
pub const LINTS: &[(&str, &str)] = &[
    (
        LIBRARY_WARNING,
        "Python code of a kernel file, or of a library that it imports, warns",
    ),
    (
        "uncalled-function",
        "a statement names a function and does not call it",
    ),
    ("unused-value", "a statement computes a value that nothing uses"),
    (
        "compared-buffer",
        "a buffer, not an element of it, is compared with a number",
    ),
    (
        "print-at-compile-time",
        "Python's print() of a value that is known when the kernel runs",
    ),
    (
        "cut-constant",
        "an integer variable is assigned a constant with a fraction",
    ),
    (
        "cut-float",
        "an integer variable that was made from an integer constant is assigned a float",
    ),
    (
        "release",
        "a call means one thing in TVM 0.26 and another in 0.27, and nothing shows the file's release",
    ),
    (
        "unread-option",
        "a keyword of a tile primitive that is almost one of its parameters, an attribute that is almost one that is read",
    ),
    (
        "redefined-kernel",
        "a kernel has the name of one before it, which is lost",
    ),
    (
        "unawaited-call",
        "an asynchronous tile primitive is called in a kernel that waits for nothing of its kind",
    ),
    (
        COPY_BY_ONE_THREAD,
        "a copy goes element by element in one thread, because every faster variant declines",
    ),
];

const LIBRARY_WARNING: &str = "library-warning";

/// `warnings.warn(message)`.
pub(super) fn warn(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::required("message"),
        args::optional("category"),
        args::optional("stacklevel"),
        args::optional("source"),
    ];
    let bound = args.bind("warnings.warn", &params, span)?;
    if let Some((message, at)) = &bound[0] {
        let message = interp.display(message, *at)?;
        interp.lint(LIBRARY_WARNING, span, message, "a warning of the library");
    }
    Ok(Value::None)
}

impl Interpreter {
    /// Reports a lint, unless the file allows it.
    pub(crate) fn lint(&mut self, name: &'static str, span: Span, message: String, help: &str) {
        if self.session.sources.allows(name, span) {
            return;
        }
        let known = |l: &Lint| l.diagnostic.span == span && l.diagnostic.message == message;
        if self.session.lints.iter().any(known) {
            return;
        }
        let help = format!("{help}; `# tirx: allow({name})` on the line turns the warning off");
        let diagnostic = Diagnostic::new(span, message).help(help);
        self.session.lints.push(Lint { name, diagnostic });
    }

    /// A statement that is an expression alone.
    pub(super) fn lint_unused(&mut self, expr: &ast::Expr, value: &Value, span: Span) {
        let written = self.session.sources.text(span).to_string();
        match value {
            Value::Builtin(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Kernel(_)
            | Value::Class(_)
                if !matches!(expr, ast::Expr::Call(_)) =>
            {
                let message = format!("`{written}` is not called: the statement does nothing");
                self.lint(
                    "uncalled-function",
                    span,
                    message,
                    &format!("write `{written}()`"),
                );
            }
            Value::Object(o)
                if matches!(expr, ast::Expr::Attribute(_)) && !matches!(o.type_name(), "layout axis") =>
            {
                let message = format!("`{written}` is not called: the statement does nothing");
                self.lint(
                    "uncalled-function",
                    span,
                    message,
                    &format!("write `{written}(…)`"),
                );
            }
            Value::Expr(e)
                if !matches!(expr, ast::Expr::Call(_))
                    && matches!(
                        e.kind,
                        ExprKind::BufferLoad { .. }
                            | ExprKind::Binary(..)
                            | ExprKind::Not(_)
                            | ExprKind::Select(..)
                            | ExprKind::Cast(_)
                    ) =>
            {
                let message = format!("`{written}` computes a value that nothing uses");
                self.lint(
                    "unused-value",
                    span,
                    message,
                    "assign it, or remove the statement",
                );
            }
            Value::Buffer(_) | Value::Region(_) if !matches!(expr, ast::Expr::Call(_)) => {
                let message = format!("`{written}` is a value that nothing uses");
                self.lint(
                    "unused-value",
                    span,
                    message,
                    "assign to it, or remove the statement",
                );
            }
            _ => {}
        }
    }

    /// A constant or a float that is stored to a variable of a dtype.
    pub(super) fn lint_cut(&mut self, name: &str, dtype: DType, value: &Value, span: Span) {
        let constant = match value {
            Value::Float(v) => Some(*v),
            Value::Expr(e) => e.as_float(),
            _ => None,
        };
        if let Some(v) = constant.filter(|v| dtype.is_integer() && v.fract() != 0.0) {
            let message = format!("`{name}` is {dtype}: {v} is stored as {}", v.trunc());
            let help =
                format!("declare it with a fraction, `{name}: T.float32 = …`, or convert: T.{dtype}({v})");
            return self.lint("cut-constant", span, message, &help);
        }
        if let Value::Expr(e) = value
            && constant.is_none()
            && dtype.is_integer()
            && e.dtype.is_floating()
        {
            let message = format!(
                "`{name}` is {dtype}: this {} is stored without its fraction",
                e.dtype
            );
            let help = format!(
                "make it with the dtype of its values, `{name}: T.{} = …`, or convert: T.cast(…, \"{dtype}\")",
                e.dtype
            );
            self.lint("cut-float", span, message, &help);
        }
    }
}
