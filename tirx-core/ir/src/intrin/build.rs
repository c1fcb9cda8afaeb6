//! Calls built by the names of their arguments: the inverse of [`Operands::read`].
//!
//! ```
//! use tirx_ir::intrin::Op;
//! use tirx_ir::DType;
//!
//! let wait = Op::PtxWgmmaWaitGroup.call().set("n", 0).build();
//! assert_eq!(wait.dtype, DType::VOID);
//! ```

use super::Op;
use super::operands::Operands;
use super::row::{ArgKind, Many, Row};
use crate::ir::{DType, Expr, Stmt};
use crate::source::Span;

/// A value of an argument: an expression, a number, a truth value or a text.
pub struct Value(Expr);

impl From<Expr> for Value {
    fn from(e: Expr) -> Value {
        Value(e)
    }
}

impl From<&Expr> for Value {
    fn from(e: &Expr) -> Value {
        Value(e.clone())
    }
}

impl From<i32> for Value {
    fn from(v: i32) -> Value {
        Value(Expr::int32(v))
    }
}

impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value(Expr::int32(v.into()))
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value(Expr::string(v))
    }
}

impl From<&String> for Value {
    fn from(v: &String) -> Value {
        Value(Expr::string(v.as_str()))
    }
}

/// A call that is being built; see [`Op::call`].
#[derive(Clone, Debug)]
pub struct CallBuilder {
    op: Op,
    row: &'static Row,
    /// The values of each argument of the row; `None` where it is not set.
    parts: Vec<Option<Vec<Expr>>>,
    dtype: Option<DType>,
    span: Span,
}

impl Op {
    /// Begins a call, whose arguments are set by the names of the row.
    pub fn call(self) -> CallBuilder {
        let row = self.row();
        CallBuilder {
            op: self,
            row,
            parts: vec![None; row.args.len()],
            dtype: None,
            span: Span::NONE,
        }
    }
}

impl CallBuilder {
    /// Sets an argument.
    pub fn set(self, name: &str, value: impl Into<Value>) -> CallBuilder {
        self.list(name, [value.into().0])
    }

    /// Sets an argument that takes several values.
    pub fn list(mut self, name: &str, values: impl IntoIterator<Item = Expr>) -> CallBuilder {
        let at = self.row.args.iter().position(|a| a.name == name);
        debug_assert!(at.is_some(), "{} has no argument {name}", self.row.name);
        if let Some(at) = at {
            self.parts[at] = Some(values.into_iter().collect());
        }
        self
    }

    /// Sets an argument if there is a value for it.
    pub fn set_if(self, name: &str, value: Option<impl Into<Value>>) -> CallBuilder {
        match value {
            Some(value) => self.set(name, value),
            None => self,
        }
    }

    /// The dtype of the call's value, where the row says that the call gives it.
    pub fn dtype(mut self, dtype: DType) -> CallBuilder {
        self.dtype = Some(dtype);
        self
    }

    /// The place of the call and of its arguments.
    pub fn at(mut self, span: Span) -> CallBuilder {
        self.span = span;
        self
    }

    /// The call. Arguments that are not set get the default of the row's signature; how many values a list has and
    /// whether an optional argument is present follow from what is set. In debug builds the result is checked against
    /// the row.
    pub fn build(self) -> Expr {
        let args = self.arguments();
        // Values that come from a user's text are checked where every call is; here only the builder's use of the row.
        if cfg!(debug_assertions)
            && let Err(reason) = Operands::read(self.row, &args)
        {
            panic!("{}: {reason}", self.row.name);
        }
        let dtype = self.op.result(&args).or(self.dtype).unwrap_or(DType::VOID);
        Expr::call(self.op, dtype, args).at(self.span)
    }

    /// The arguments of the call, in the order of the row and unchecked: for those that check them and report what is wrong.
    pub fn arguments(&self) -> Vec<Expr> {
        let mut args = Vec::with_capacity(self.row.args.len());
        for (arg, part) in self.row.args.iter().zip(&self.parts) {
            let given = |of: &str| {
                let at = self.row.args.iter().position(|a| a.name == of);
                at.and_then(|at| self.parts[at].as_ref()).map_or(0, Vec::len)
            };
            let count = |n: usize| Expr::int32(i32::try_from(n).unwrap_or(i32::MAX)).at(self.span);
            match (part, arg.kind, arg.many) {
                (Some(values), ..) => args.extend(values.iter().map(|v| {
                    let v = spelled(arg.kind, v.clone());
                    match v.span.is_some() {
                        true => v,
                        false => v.at(self.span),
                    }
                })),
                (None, ArgKind::Has(of), _) => args.push(count(given(of).min(1))),
                (None, ArgKind::Count(of), _) => args.push(count(given(of))),
                (None, _, Many::Optional | Many::List(_)) => {}
                (None, kind, Many::One) => {
                    let value = default_of(self.row, arg.name, kind).or_else(|| neutral(kind));
                    debug_assert!(value.is_some(), "{}: {} is not set", self.row.name, arg.name);
                    args.extend(value.map(|v| spelled(kind, v).at(self.span)));
                }
            }
        }
        args
    }

    /// The call as a statement.
    pub fn stmt(self) -> Stmt {
        Stmt::evaluate(self.build())
    }
}

/// A constant as kernel text gives it: truth values are bools where the row says so.
fn spelled(kind: ArgKind, value: Expr) -> Expr {
    match (kind, value.as_int()) {
        (ArgKind::Bool, Some(v)) if !value.dtype.is_bool() => Expr::bool(v != 0).at(value.span),
        _ => value,
    }
}

/// The default that the signature gives a parameter: `True`, `False`, an integer or a text; `None` of a number, such as a
/// cache policy, is 0.
fn default_of(row: &Row, name: &str, kind: ArgKind) -> Option<Expr> {
    let signature = row.signature?.trim_start_matches('(').trim_end_matches(')');
    let literal = signature.split(',').find_map(|parameter| {
        let (parameter, literal) = parameter.split_once('=')?;
        (parameter.trim() == name).then(|| literal.trim())
    })?;
    let quoted = |q: char| literal.strip_prefix(q).and_then(|l| l.strip_suffix(q));
    match literal {
        "True" => Some(Expr::int32(1)),
        "False" => Some(Expr::int32(0)),
        "None" => match kind {
            ArgKind::Value(dtype) if dtype.is_integer() => Some(Expr::constant(dtype, 0)),
            _ => None,
        },
        _ => match quoted('"').or_else(|| quoted('\'')) {
            Some(text) => Some(Expr::string(text)),
            None => literal.parse().ok().map(Expr::int32),
        },
    }
}

/// The value of an argument that is neither set nor has a default in the signature: a modifier that is left out.
fn neutral(kind: ArgKind) -> Option<Expr> {
    match kind {
        ArgKind::Text(known) if known.contains(&"") => Some(Expr::string("")),
        ArgKind::Flag | ArgKind::Bool => Some(Expr::int32(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_built_by_names_in_any_order() {
        let built = Op::PtxBarSync
            .call()
            .set("thread_count", 64)
            .set("name_bar_id", 3)
            .build();
        let args = built.as_call(Op::PtxBarSync).unwrap();
        assert_eq!((args[0].as_int(), args[1].as_int()), (Some(3), Some(64)));
        assert_eq!(built.dtype, DType::VOID);
    }

    #[test]
    fn defaults_of_signatures_are_read() {
        for op in Op::ALL {
            // Every default of a signature that names an argument is a literal that this reads.
            let Some(signature) = op.row().signature else {
                continue;
            };
            for parameter in signature.trim_matches(['(', ')']).split(',') {
                let Some((name, literal)) = parameter.split_once('=') else {
                    continue;
                };
                let arg = op.row().args.iter().find(|a| a.name == name.trim());
                if let Some(arg) = arg.filter(|_| literal.trim() != "None") {
                    assert!(
                        default_of(op.row(), name.trim(), arg.kind).is_some(),
                        "{}: {parameter}",
                        op.name()
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "takes")]
    #[cfg(debug_assertions)]
    fn a_wrong_argument_is_found() {
        Op::PtxBarSync
            .call()
            .list("name_bar_id", [])
            .set("thread_count", 32)
            .build();
    }
}
