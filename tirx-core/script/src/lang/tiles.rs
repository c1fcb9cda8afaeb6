//! Tile primitives in kernel text: `Tx.cta.copy(A_smem[0:32, 0:32], A[0:32, 0:32], dispatch="gmem_smem")`.
//!
//! The namespaces `Tx`, `T.tile` and the scopes in them and in `T` (`thread`, `warp`, `wg`, `warpgroup`, `cta`,
//! `cluster`) have every operation of [`OPERATIONS`]; arguments follow the operation's row. Text that TVM prints leaves
//! out what may be left out, so that an argument by position goes to the next parameter that can take it.

use std::rc::Rc;
use std::sync::Arc;

use super::super::eval::{Args, Frame, Interpreter, Value, required, suggest};
use super::call::{Function, function};
use super::convert;
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::tile::{OPERATIONS, Operation, TileParam};
use crate::ir::{
    Attrs, BufferRegion, DType, ExecScope, Expr, Stmt, StmtKind, TileArg, TileCall, TileOp, Type, Var,
};
use crate::source::Span;

pub(super) static FUNCTIONS: &[Function] = &[function("I.Op", const { &[required("name")] }, |_, c| {
    let name = c.text("name")?;
    match operation_value(&name) {
        Some(value) => Ok(value),
        None => c.fail(format!("there is no tile primitive \"{name}\"")),
    }
})];

/// Namespaces that contain the operations and the scopes.
const ROOTS: [&str; 2] = ["Tx", "T.tile"];

/// The scope of calls through a namespace; `None` if it is not a namespace of tile primitives.
pub(super) fn scope_of(path: &str) -> Option<ExecScope> {
    if ROOTS.contains(&path) {
        return Some(ExecScope::Thread);
    }
    let (root, name) = path.rsplit_once('.')?;
    if name == "tile" || !(ROOTS.contains(&root) || root == "T") {
        return None;
    }
    ExecScope::from_namespace(name)
}

/// Whether it is a namespace of tile primitives.
pub(super) fn is_namespace(path: &str) -> bool {
    path != "Tx" && (path == "T.tile" || scope_of(path).is_some())
}

/// The operation that `path.name` is.
pub(super) fn attribute(path: &str, name: &str) -> Option<Value> {
    let scope = scope_of(path)?;
    if name == "LambdaExpr" {
        return None;
    }
    let op = TileOp::from_name(name)?;
    let full: Rc<str> = format!("{path}.{name}").into();
    Some(Value::builtin(full.to_string(), move |interp, args, span| {
        call(interp, &full, op, scope, args, span)
    }))
}

/// The names that a namespace of tile primitives has.
pub(super) fn names(path: &str) -> Vec<String> {
    if scope_of(path).is_none() {
        return Vec::new();
    }
    let mut names: Vec<String> = OPERATIONS.iter().map(|o| o.name.to_string()).collect();
    if ROOTS.contains(&path) {
        names.extend(ExecScope::ALL.map(|s| s.name().to_string()));
        names.push("wg".to_string());
    }
    names
}

/// `I.Op("tirx.tile.add")`: a tile primitive by its registered name.
fn operation_value(name: &str) -> Option<Value> {
    let op = TileOp::from_name(name.strip_prefix("tirx.tile.")?)?;
    Some(Value::Object(Rc::new(OperationValue(op))))
}

/// See [`operation_value`].
struct OperationValue(TileOp);

impl super::super::eval::Object for OperationValue {
    fn type_name(&self) -> &str {
        "tile primitive"
    }

    fn equals(&self, other: &dyn super::super::eval::Object) -> bool {
        other
            .as_any()
            .downcast_ref::<OperationValue>()
            .is_some_and(|o| o.0 == self.0)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn call(
    interp: &mut Interpreter,
    full: &str,
    op: TileOp,
    scope: ExecScope,
    mut args: Args,
    span: Span,
) -> Result<Value> {
    let info = op.info();
    let mut built = TileCall {
        op,
        scope,
        args: Vec::new(),
        workspace: workspace(full, &mut args, span)?,
        config: Attrs::new(),
        dispatch: None,
    };
    if let Some((value, at)) = args.take_keyword("dispatch") {
        built.dispatch = match &value {
            Value::None => None,
            value => match convert::text(value) {
                Some(text) => Some(text),
                None => {
                    let found = convert::describe(value);
                    return error(
                        at.or(span),
                        format!("{full}: dispatch must be the name of a variant, found {found}"),
                    );
                }
            },
        };
    }
    let values = bind(full, info, &mut args, span)?;
    for (name, value, at) in args.keyword {
        let parameters = info.params.iter().map(|(name, _)| *name);
        if let Some(near) = super::super::eval::suggest(&name, parameters) {
            let message =
                format!("{full} has no parameter \"{name}\": it becomes an option that nothing reads");
            interp.lint(
                "unread-option",
                at.or(span),
                message,
                &format!("did you mean \"{near}\"?"),
            );
        }
        let value = config_value(&value, at.or(span))?;
        built.config.insert((&*name).into(), value);
    }
    let mut output: Option<BufferRegion> = None;
    let mut types: Vec<TileArg> = Vec::with_capacity(info.params.len());
    for ((name, param), value) in info.params.iter().zip(values) {
        let at = Argument {
            full,
            name,
            param: *param,
            op: info.op,
            span: value.as_ref().map_or(span, |(_, at)| at.or(span)),
        };
        let value = value.map(|(value, _)| value).unwrap_or(Value::None);
        let arg = at.convert(interp, &value, output.as_ref())?;
        if output.is_none()
            && let TileArg::Region(region) = &arg
        {
            output = Some(region.clone());
        }
        types.push(arg);
    }
    built.args = types;
    if op == TileOp::ComposeOp {
        return Ok(Value::Frame(Rc::new(Frame::Region {
            value: Value::None,
            wrap: Box::new(move |body| {
                let mut call = built.clone();
                call.args = vec![TileArg::Body(body)];
                Stmt::new(StmtKind::Tile(Box::new(call)), span)
            }),
        })));
    }
    check_copy(&built, full, span)?;
    interp.emit(Stmt::new(StmtKind::Tile(Box::new(built)), span))?;
    Ok(Value::None)
}

/// `workspace={"name": buffer}`.
fn workspace(full: &str, args: &mut Args, span: Span) -> Result<Vec<(Arc<str>, crate::ir::Buffer)>> {
    let Some((value, at)) = args.take_keyword("workspace") else {
        return Ok(Vec::new());
    };
    let Value::Dict(dict) = &value else {
        return match value {
            Value::None => Ok(Vec::new()),
            other => error(
                at.or(span),
                format!(
                    "{full}: workspace must be a dictionary from names to buffers, found {}",
                    convert::describe(&other)
                ),
            ),
        };
    };
    let mut all = Vec::new();
    for (key, value) in dict.borrow().iter() {
        match (convert::text(key), convert::buffer(value)) {
            (Some(name), Some(buffer)) => all.push((name, buffer)),
            _ => return error(at.or(span), format!("{full}: workspace maps names to buffers")),
        }
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

type Bound = Vec<Option<(Value, Span)>>;

/// Matches arguments with parameters: by name, and by position with the next parameter that can take the value. What
/// remains in `args.keyword` is configuration.
fn bind(full: &str, info: &Operation, args: &mut Args, span: Span) -> Result<Bound> {
    let mut values: Bound = vec![None; info.params.len()];
    for (i, (name, _)) in info.params.iter().enumerate() {
        if let Some((value, at)) = args.take_keyword(name) {
            values[i] = Some((value, at));
        }
    }
    if info.op == TileOp::ReduceNegate && args.positional.len() > 2 {
        // The function has the operation as its third argument, printed text as its last.
        if is_operation(&args.positional[2].0) {
            let op = args.positional.remove(2);
            values[4] = Some(op);
        }
    }
    let mut next = 0;
    for (value, at) in std::mem::take(&mut args.positional) {
        let optional = |p: TileParam| matches!(p, TileParam::OptionalInput);
        while next < values.len()
            && (values[next].is_some() || optional(info.params[next].1) && !is_region(&value))
        {
            if matches!(value, Value::None) && values[next].is_none() {
                break;
            }
            next += 1;
        }
        if next >= values.len() {
            let list: Vec<&str> = info.params.iter().map(|(n, _)| *n).collect();
            let diagnostic = Diagnostic::new(at.or(span), format!("{full}: too many arguments"));
            return Err(Box::new(diagnostic.help(format!(
                "the signature is {full}({}, *, dispatch=…, workspace=…, …)",
                list.join(", ")
            ))));
        }
        values[next] = Some((value, at));
        next += 1;
    }
    Ok(values)
}

fn is_region(value: &Value) -> bool {
    matches!(value, Value::Region(_) | Value::Buffer(_))
}

fn is_operation(value: &Value) -> bool {
    match value {
        Value::Str(_) => true,
        Value::Object(o) => o.as_any().downcast_ref::<OperationValue>().is_some(),
        _ => false,
    }
}

/// A configuration value: constants, expressions, lists of them.
fn config_value(value: &Value, span: Span) -> Result<crate::ir::AttrValue> {
    use crate::ir::AttrValue;
    Ok(match value {
        Value::Expr(e) if !crate::ir::is_pure(e) => AttrValue::Expr(e.clone()),
        Value::Buffer(b) => {
            let zero = vec![Expr::int32(0); b.shape.len()];
            let element = Expr::load(b, zero).at(span);
            AttrValue::Expr(Expr::call(
                crate::intrin::Op::AddressOf,
                DType::HANDLE,
                vec![element],
            ))
        }
        Value::Tuple(_) | Value::List(_) => {
            let items = value.as_items().unwrap_or_default();
            AttrValue::List(
                items
                    .iter()
                    .map(|v| config_value(v, span))
                    .collect::<Result<_>>()?,
            )
        }
        value => convert::attr(value, span)?,
    })
}

/// An argument that is being matched with its parameter.
struct Argument<'a> {
    full: &'a str,
    name: &'a str,
    param: TileParam,
    op: TileOp,
    span: Span,
}

/// How text computes with single values what a tile primitive computes with regions.
fn of_single_values(name: &str) -> Option<String> {
    let written = match name {
        "add" => "a + b",
        "sub" => "a - b",
        "mul" => "a * b",
        "fdiv" => "a / b",
        "fma" => "a * b + c",
        "reciprocal" => "1 / a",
        "maximum" | "max" => "T.max(a, b)",
        "minimum" | "min" => "T.min(a, b)",
        "select" => "T.Select(condition, a, b)",
        "cast" => "T.cast(a, dtype)",
        "fill" | "memset" | "zero" | "copy" => "A[i] = a",
        name if super::namespace::is_function(&format!("T.{name}")) => {
            return Some(format!("T.{name} computes with single values"));
        }
        _ => return None,
    };
    Some(format!("for single values, write {written}"))
}

impl Argument<'_> {
    fn expected<T>(&self, expected: &str, value: &Value) -> Result<T> {
        let found = convert::describe(value);
        let message = format!(
            "{}: parameter \"{}\" must be {expected}, found {found}",
            self.full, self.name
        );
        let diagnostic = Diagnostic::new(self.span, message);
        let name = self.full.rsplit('.').next().unwrap_or(self.full);
        Err(Box::new(match value {
            Value::Expr(e) if matches!(e.kind, crate::ir::ExprKind::BufferLoad { .. }) => {
                diagnostic.help("a region has slices: A[i : i + 1, 0:4]")
            }
            Value::Expr(_) | Value::Int(_) | Value::Float(_) | Value::None => match of_single_values(name) {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            },
            _ => diagnostic,
        }))
    }

    /// Whether a region may go beyond its buffer in global memory: tensor copies fill what is outside.
    fn param_overhangs(&self) -> bool {
        self.op == TileOp::CopyAsync
    }

    /// The region of a single element.
    fn element(&self, value: &Value) -> Option<BufferRegion> {
        let Value::Expr(e) = value else { return None };
        let crate::ir::ExprKind::BufferLoad { buffer, indices, .. } = &e.kind else {
            return None;
        };
        indices.iter().all(|i| i.dtype.is_scalar()).then(|| BufferRegion {
            buffer: buffer.clone(),
            ranges: indices
                .iter()
                .map(|i| (i.clone(), Expr::constant(i.dtype, 1).at(self.span)))
                .collect(),
        })
    }

    fn region(&self, value: &Value) -> Option<BufferRegion> {
        match value {
            Value::Buffer(buffer) => Some(BufferRegion::whole(buffer)),
            Value::Region(region) => Some(BufferRegion {
                buffer: region.buffer.clone(),
                ranges: region.ranges.clone(),
            }),
            Value::MetaVar(inner) => self.region(inner),
            _ => None,
        }
    }

    /// A scalar; Python's numbers are `float32` and `int32`.
    fn scalar(&self, value: &Value) -> Result<TileArg> {
        match convert::operand(value, self.span) {
            Some(operand) => Ok(TileArg::Expr(super::super::typing::literal(operand?, self.span)?)),
            None => self.expected("a region or a number", value),
        }
    }

    fn convert(
        &self,
        interp: &mut Interpreter,
        value: &Value,
        output: Option<&BufferRegion>,
    ) -> Result<TileArg> {
        let value = match value {
            Value::MetaVar(inner) => inner,
            other => other,
        };
        let whole = self.region(value);
        if let (Some(region), false) = (&whole, self.param_overhangs()) {
            super::access::check_region(region, self.span)?;
        }
        let region = whole.map(TileArg::Region);
        // One element, `A[tx]` or a scalar, is a region too where no number can stand.
        let element = || self.element(value).map(TileArg::Region);
        let nothing = matches!(value, Value::None);
        match self.param {
            TileParam::Output | TileParam::InOut | TileParam::Input => match region.or_else(element) {
                Some(region) => Ok(region),
                None => self.expected("a buffer or a region of one", value),
            },
            TileParam::InputOrOutput => match (region.or_else(element), output) {
                (Some(region), _) => Ok(region),
                (None, Some(output)) if nothing => Ok(TileArg::Region(output.clone())),
                _ => self.expected("a buffer or a region of one", value),
            },
            TileParam::OptionalInput | TileParam::OptionalOperand | TileParam::OptionalScalar if nothing => {
                Ok(TileArg::None)
            }
            TileParam::OptionalInput => match region {
                Some(region) => Ok(region),
                None => self.expected("a buffer or a region of one", value),
            },
            TileParam::Operand | TileParam::OptionalOperand => match region {
                Some(region) => Ok(region),
                None => self.scalar(value),
            },
            TileParam::Scalar | TileParam::OptionalScalar => match (value, self.name) {
                (Value::None, "alpha") => Ok(TileArg::Expr(Expr::float(DType::FLOAT32, 1.0))),
                (Value::None, "beta") => Ok(TileArg::Expr(Expr::float(DType::FLOAT32, 0.0))),
                _ => self.scalar(value),
            },
            TileParam::Flag => match value {
                Value::None => Ok(TileArg::Expr(Expr::bool(false).at(self.span))),
                Value::Bool(v) => Ok(TileArg::Expr(Expr::bool(*v).at(self.span))),
                value => Ok(TileArg::Expr(super::condition(value, self.span)?)),
            },
            TileParam::Axes => self.axes(value),
            TileParam::Operation => self.operation(value),
            TileParam::Predicate => self.predicate(interp, value, output),
            TileParam::Body => Ok(TileArg::Body(Stmt::nop())),
        }
    }

    fn axes(&self, value: &Value) -> Result<TileArg> {
        let items = match value {
            Value::None => return Ok(TileArg::Axes(vec![-1])),
            value => value.as_items().unwrap_or_else(|| vec![value.clone()]),
        };
        let axis = |v: &Value| convert::const_int(v).and_then(|v| i64::try_from(v).ok());
        match items.iter().map(axis).collect() {
            Some(axes) => Ok(TileArg::Axes(axes)),
            None => self.expected("a dimension or a list of dimensions", value),
        }
    }

    fn operation(&self, value: &Value) -> Result<TileArg> {
        let op = match value {
            Value::Object(o) => o.as_any().downcast_ref::<OperationValue>().map(|o| o.0),
            value => match convert::text(value) {
                Some(name) => match TileOp::from_name(name.strip_prefix("tirx.tile.").unwrap_or(&name)) {
                    Some(op) => Some(op),
                    None => {
                        let known = OPERATIONS.iter().map(|o| o.name);
                        let mut diagnostic = Diagnostic::new(
                            self.span,
                            format!("{}: there is no tile primitive \"{name}\"", self.full),
                        );
                        if let Some(near) = suggest(&name, known) {
                            diagnostic = diagnostic.help(format!("did you mean \"{near}\"?"));
                        }
                        return Err(Box::new(diagnostic));
                    }
                },
                None => None,
            },
        };
        match op {
            Some(op) => Ok(TileArg::Operation(op)),
            None => self.expected("the name of a tile primitive", value),
        }
    }

    /// A lambda over the coordinates of the output.
    fn predicate(
        &self,
        interp: &mut Interpreter,
        value: &Value,
        output: Option<&BufferRegion>,
    ) -> Result<TileArg> {
        let Value::Function(function) = value else {
            return self.expected("a lambda over the coordinates of dst", value);
        };
        let code = function.code.clone();
        let rank = output.map_or(0, |o| o.ranges.len());
        if code.parameters.len() != rank {
            let message = format!(
                "{}: the predicate takes {} coordinates, but dst has {rank} dimensions",
                self.full,
                code.parameters.len()
            );
            return error(self.span, message);
        }
        let ty = Type::from(DType::INT32);
        let vars: Vec<Var> = code
            .parameters
            .iter()
            .map(|p| Var::at(p.name.as_str(), ty.clone(), p.span))
            .collect();
        let args = Args::positional(vars.iter().map(|v| Value::Expr(Expr::var(v))), self.span);
        let result = interp.call_value(value, args, self.span)?;
        let condition = super::condition(&result, self.span)?;
        Ok(TileArg::Lambda(vars, condition))
    }
}

/// Copies are between regions of one shape, up to dimensions of extent one.
fn check_copy(call: &TileCall, full: &str, span: Span) -> Result<()> {
    if !matches!(call.op, TileOp::Copy | TileOp::CopyAsync) {
        return Ok(());
    }
    // TMA operands have the same number of bytes, whatever their shapes.
    if matches!(call.dispatch.as_deref(), Some("tma_auto" | "tma_explicit")) {
        return Ok(());
    }
    let (Some(dst), Some(src)) = (call.region(0), call.region(1)) else {
        return Ok(());
    };
    let squeeze = |r: &BufferRegion| -> Vec<Expr> {
        let extents = r.ranges.iter().map(|(_, e)| e.clone());
        extents.filter(|e| !e.is_int(1)).collect()
    };
    let (d, s) = (squeeze(dst), squeeze(src));
    let mut analyzer = crate::arith::Analyzer::new();
    let same = |a: &Expr, b: &Expr, analyzer: &mut crate::arith::Analyzer| match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b || a.dtype == b.dtype && analyzer.can_prove_equal(a, b),
    };
    if d.len() == s.len() && d.iter().zip(&s).all(|(a, b)| same(a, b, &mut analyzer)) {
        return Ok(());
    }
    let text = |list: &[Expr]| {
        let items: Vec<String> = list.iter().map(crate::ir::print_expr).collect();
        format!("({})", items.join(", "))
    };
    let message = format!(
        "{full}: dst has shape {} but src has shape {}",
        text(&d),
        text(&s)
    );
    let diagnostic = Diagnostic::new(span, message).label("dimensions of extent 1 are left out");
    Err(Box::new(diagnostic.help(
        "copy between regions of one shape; reshape one of them with a view, such as A.view(…)",
    )))
}
