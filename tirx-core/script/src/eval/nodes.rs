//! Statements of finished functions as values: programs that build functions rewrite them with
//! `tvm.tirx.stmt_functor.ir_transform`. Sequences and conditions have their parts; other statements are moved as a whole.

use std::any::Any;
use std::rc::Rc;

use super::value::{Frame, Kernel, Object, Value};
use super::{Args, Interpreter, args};
use crate::diagnostic::{Result, error};
use crate::ir::{Buffer, Expr, ExprKind, Mutator, Stmt, StmtKind, Var, Visitor};
use crate::source::Span;

/// A statement.
pub(super) struct Node(Stmt);

impl Object for Node {
    fn type_name(&self) -> &str {
        match &self.0.kind {
            StmtKind::Seq(_) => "SeqStmt",
            StmtKind::If(..) => "IfThenElse",
            _ => "Stmt",
        }
    }

    fn attribute(&self, _: &mut Interpreter, name: &str, _: Span) -> Result<Option<Value>> {
        Ok(match (&self.0.kind, name) {
            (_, "span") => Some(Value::None),
            (StmtKind::Seq(stmts), "seq") => Some(Value::list(stmts.iter().map(node).collect())),
            (StmtKind::If(condition, ..), "condition") => Some(Value::Expr(condition.clone())),
            (StmtKind::If(_, then, _), "then_case") => Some(node(then)),
            (StmtKind::If(_, _, otherwise), "else_case") => {
                Some(otherwise.as_ref().map_or(Value::None, node))
            }
            _ => None,
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn node(stmt: &Stmt) -> Value {
    Value::Object(Rc::new(Node(stmt.clone())))
}

fn stmt_of(value: &Value, span: Span) -> Result<Stmt> {
    if let Value::Object(object) = value
        && let Some(node) = object.as_any().downcast_ref::<Node>()
    {
        return Ok(node.0.clone());
    }
    error(span, format!("expected a statement, found {}", value.type_name()))
}

/// Whether `value` is a statement of the class `name`: `Stmt`, `SeqStmt` or `IfThenElse`.
pub(super) fn is_statement(value: &Value, name: &str) -> bool {
    let Value::Object(object) = value else {
        return false;
    };
    let node = object.as_any().downcast_ref::<Node>();
    node.is_some_and(|node| name == "Stmt" || node.type_name() == name)
}

/// The classes of statements, and the function that rewrites one.
pub(super) fn value(path: &str) -> Option<Value> {
    Some(match path {
        "tvm.tirx.SeqStmt" => Value::builtin(path, |interp, args, span| {
            let params = [args::required("seq"), args::optional("span")];
            let bound = args.bind("SeqStmt", &params, span)?;
            let Some((seq, at)) = &bound[0] else {
                return error(span, "SeqStmt needs a list of statements");
            };
            let items = interp.iterate(seq, *at)?;
            let stmts = items.iter().map(|item| stmt_of(item, *at));
            Ok(node(&Stmt::seq(stmts.collect::<Result<Vec<_>>>()?)))
        }),
        "tvm.tirx.IfThenElse" => Value::builtin(path, |_, args, span| {
            let params = [
                args::required("condition"),
                args::required("then_case"),
                args::optional("else_case"),
                args::optional("span"),
            ];
            let bound = args.bind("IfThenElse", &params, span)?;
            let (Some((Value::Expr(condition), _)), Some((then, at))) = (&bound[0], &bound[1]) else {
                return error(span, "IfThenElse needs a condition and a statement");
            };
            let otherwise = match &bound[2] {
                None | Some((Value::None, _)) => None,
                Some((otherwise, at)) => Some(stmt_of(otherwise, *at)?),
            };
            let then = stmt_of(then, *at)?;
            Ok(node(&Stmt::if_else(condition.clone(), then, otherwise, span)))
        }),
        "tvm.tirx.stmt_functor.ir_transform" => Value::builtin(path, transform),
        "tvm.tirx.analysis.undefined_vars" => Value::builtin(path, undefined_vars),
        _ => return None,
    })
}

/// `ir_transform(stmt, preorder, postorder)`: `postorder` gives a statement for each one whose parts are done, or `None` to keep
/// it; where `preorder` gives one, its parts are left alone.
fn transform(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    let params = [
        args::required("stmt"),
        args::required("preorder"),
        args::required("postorder"),
        args::optional("only_enable"),
    ];
    let bound = args.bind("ir_transform", &params, span)?;
    let [Some((stmt, at)), Some((before, _)), Some((after, _)), only] = &bound[..] else {
        return error(span, "ir_transform needs a statement and two functions");
    };
    if let Some((only, at)) = only
        && !matches!(only, Value::None)
    {
        return error(
            *at,
            "ir_transform: only_enable is not supported: let the functions give None",
        );
    }
    let mut walk = Transform {
        interp,
        before: before.clone(),
        after: after.clone(),
        span,
        failed: None,
    };
    let done = walk.stmt(&stmt_of(stmt, *at)?);
    match walk.failed {
        Some(failed) => Err(failed),
        None => Ok(node(&done)),
    }
}

/// `undefined_vars(node, defined)`: the variables, pointers of buffers among them, that an expression or a statement uses and does not
/// define, in the order of their first uses.
fn undefined_vars(interp: &mut Interpreter, args: Args, span: Span) -> Result<Value> {
    #[derive(Default)]
    struct Undefined {
        defined: Vec<Var>,
        found: Vec<Var>,
    }
    impl Undefined {
        fn used(&mut self, var: &Var) {
            if !self.defined.contains(var) && !self.found.contains(var) {
                self.found.push(var.clone());
            }
        }
    }
    impl Visitor for Undefined {
        fn visit_expr(&mut self, expr: &Expr) {
            match &expr.kind {
                ExprKind::Var(var) => self.used(var),
                _ => self.walk_expr(expr),
            }
        }

        fn visit_var_def(&mut self, var: &Var) {
            self.defined.push(var.clone());
        }

        fn visit_buffer_def(&mut self, buffer: &Buffer) {
            self.defined.push(buffer.data.clone());
            buffer.for_each_expr(|e| self.visit_expr(e));
        }

        fn visit_buffer_use(&mut self, buffer: &Buffer) {
            self.used(&buffer.data);
        }
    }
    let params = [args::required("node"), args::optional("defs")];
    let bound = args.bind("undefined_vars", &params, span)?;
    let mut walk = Undefined::default();
    if let Some((defined, at)) = &bound[1]
        && !matches!(defined, Value::None)
    {
        let defined = interp.iterate(defined, *at)?;
        walk.defined = defined
            .iter()
            .filter_map(|v| v.as_expr()?.as_var().cloned())
            .collect();
    }
    match &bound[0] {
        Some((Value::Expr(expr), _)) => walk.visit_expr(expr),
        Some((stmt, at)) => walk.visit_stmt(&stmt_of(stmt, *at)?),
        None => {}
    }
    let found = walk.found.iter().map(|var| Value::Expr(Expr::var(var)));
    Ok(Value::list(found.collect()))
}

struct Transform<'a> {
    interp: &'a mut Interpreter,
    before: Value,
    after: Value,
    span: Span,
    failed: Option<Box<crate::diagnostic::Diagnostic>>,
}

impl Transform<'_> {
    /// What a function makes of a statement.
    fn ask(&mut self, function: &Value, stmt: &Stmt) -> Option<Stmt> {
        if matches!(function, Value::None) || self.failed.is_some() {
            return None;
        }
        let args = Args::positional([node(stmt)], self.span);
        let answer = self.interp.call_value(function, args, self.span);
        let answer = answer.and_then(|answer| match &answer {
            Value::None => Ok(None),
            other => stmt_of(other, self.span).map(Some),
        });
        answer.unwrap_or_else(|failed| {
            self.failed = Some(failed);
            None
        })
    }
}

impl Mutator for Transform<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let (before, after) = (self.before.clone(), self.after.clone());
        if let Some(new) = self.ask(&before, stmt) {
            return new;
        }
        let stmt = self.walk_stmt(stmt);
        self.ask(&after, &stmt).unwrap_or(stmt)
    }
}

/// `function.body` and `function.with_body(…)` of a function that was built statement by statement.
pub(super) fn of_kernel(kernel: &Rc<Kernel>, name: &str) -> Option<Value> {
    let func = kernel.finished.as_ref()?;
    match name {
        "body" => Some(node(&func.body)),
        "with_body" => {
            let kernel = kernel.clone();
            Some(Value::builtin("with_body", move |_, args, span| {
                let params = [args::required("new_body"), args::optional("span")];
                let bound = args.bind("with_body", &params, span)?;
                let mut new = kernel.copy();
                if let (Some(func), Some((body, at))) = (&mut new.finished, &bound[0]) {
                    func.body = stmt_of(body, *at)?;
                }
                Ok(Value::Kernel(Rc::new(new)))
            }))
        }
        _ => None,
    }
}

/// `frame.condition` of `T.If(condition)`.
pub(super) fn of_frame(frame: &Frame, name: &str) -> Option<Value> {
    match (frame, name) {
        (Frame::If(condition), "condition") => Some(Value::Expr(condition.clone())),
        _ => None,
    }
}
