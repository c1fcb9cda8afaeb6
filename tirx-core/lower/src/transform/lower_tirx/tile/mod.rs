//! Lowers tile primitives to code for each thread.
//!
//! **Idea.** A call specifies what the threads of its scope compute together; a *variant* is one implementation. The
//! [`table`] has the variants of each operation with their priorities. The first one whose predicates hold generates
//! the code; if none does, the error lists each variant with its reason. `dispatch="name"` restricts the choice to one
//! variant.
//!
//! **Phases.** The walk through a device region tracks what variants depend on: the active threads ([`active`]), the
//! ranges of variables, the launch. It runs before layouts are applied, so that variants may write accesses by
//! coordinate.
//!
//! **Adding a variant** is a file whose head comment says idea, conditions and cost, and a row of the table.

mod active;
mod build;
mod context;
mod copy;
mod copy_async;
mod elementwise;
mod reduction;
mod registers;
mod swizzle;
mod table;
mod variant;

use rustc_hash::FxHashMap;

use self::active::Active;
pub(super) use self::context::Threads;
use self::context::{Context, Warning};
use self::variant::Variant;
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{Expr, ForKind, ForLoop, Mutator, ScopeIdKind, Stmt, StmtKind, TileCall, Var, is_pure};
use crate::source::Span;
use crate::transform::Target;

pub use self::table::{VariantInfo, variants};

/// The outcome for one variant at a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was chosen.
    Chosen,
    /// It was not tried: an earlier one was chosen, or another one was forced.
    NotAsked,
    /// It declined, for this reason.
    Declined(String),
}

/// How a tile primitive was lowered.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The call.
    pub call: TileCall,
    /// Its place.
    pub span: Span,
    /// The operation's variants and their outcomes, in the order in which they were tried.
    pub rows: Vec<(&'static str, Outcome)>,
    /// The partition: rounds, threads, elements per vector.
    pub partition: Option<[i128; 3]>,
    /// The resulting code.
    pub code: Option<Stmt>,
    /// A warning about the choice.
    pub warning: Option<NamedWarning>,
}

/// A warning that `# tirx: allow(name)` turns off.
#[derive(Clone, Debug)]
pub struct NamedWarning {
    /// Its name.
    pub name: &'static str,
    /// Its message.
    pub diagnostic: Diagnostic,
}

/// The launch, as variants see it.
pub(super) struct Launch {
    /// Its threads; `None` where the kernel binds them itself.
    pub(super) threads: Option<Threads>,
    /// What each scope id counts.
    pub(super) ids: FxHashMap<Var, ScopeIdKind>,
    /// Ranges of scope ids, where they are known.
    pub(super) extents: Vec<(Var, Expr)>,
}

/// A device region without tile primitives.
pub(super) fn lower_region(
    body: &Stmt,
    launch: &Launch,
    targets: &[Target],
    decisions: &mut Vec<Decision>,
) -> Result<Stmt> {
    let mut facts = Analyzer::new();
    for (var, extent) in &launch.extents {
        facts.bind(var, &Expr::constant(extent.dtype, 0), extent);
    }
    let count = launch.threads.as_ref().and_then(|t| t.count);
    let mut walk = Walk {
        launch,
        targets,
        facts,
        active: count.map(Active::all),
        narrowed: None,
        decisions,
        failed: None,
    };
    let body = walk.stmt(body);
    match walk.failed {
        Some(error) => Err(error),
        None => Ok(body),
    }
}

/// The first tile primitive of a statement, with its place.
pub(super) fn first_call(stmt: &Stmt) -> Option<(Box<TileCall>, Span)> {
    struct Find(Option<(Box<TileCall>, Span)>);
    impl crate::ir::Visitor for Find {
        fn visit_expr(&mut self, _: &Expr) {}
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match &stmt.kind {
                StmtKind::Tile(call) if self.0.is_none() => self.0 = Some((call.clone(), stmt.span)),
                _ if self.0.is_none() => self.walk_stmt(stmt),
                _ => {}
            }
        }
    }
    let mut find = Find(None);
    crate::ir::Visitor::visit_stmt(&mut find, stmt);
    find.0
}

struct Walk<'a> {
    launch: &'a Launch,
    targets: &'a [Target],
    facts: Analyzer,
    active: Option<Active>,
    /// The innermost condition that excluded active threads.
    narrowed: Option<Span>,
    decisions: &'a mut Vec<Decision>,
    failed: Option<Box<Diagnostic>>,
}

impl Mutator for Walk<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        expr.clone()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if self.failed.is_some() {
            return stmt.clone();
        }
        match &stmt.kind {
            StmtKind::Tile(call) => match self.dispatch(call, stmt.span) {
                Ok(code) => code,
                Err(error) => {
                    self.failed = Some(error);
                    stmt.clone()
                }
            },
            StmtKind::If(condition, then, otherwise) => {
                let outer = (self.active, self.narrowed);
                self.active = outer.0.map(|a| a.under(condition, &self.launch.ids));
                if self.active != outer.0 {
                    self.narrowed = Some(condition.span);
                }
                let scope = self.facts.enter_constraint(condition);
                let new_then = self.stmt(then);
                self.facts.leave(scope);
                self.active = outer.0.map(|a| a.under_not(condition, &self.launch.ids));
                if self.active == outer.0 {
                    self.narrowed = outer.1;
                } else {
                    self.narrowed = Some(condition.span);
                }
                let new_otherwise = otherwise.as_ref().map(|o| self.stmt(o));
                (self.active, self.narrowed) = outer;
                let same = new_then.same_node(then)
                    && new_otherwise.iter().zip(otherwise).all(|(a, b)| a.same_node(b));
                if same {
                    return stmt.clone();
                }
                Stmt::if_else(condition.clone(), new_then, new_otherwise, stmt.span)
            }
            StmtKind::For(ForLoop {
                var,
                min,
                extent,
                kind,
                ..
            }) => {
                let scope = self.facts.scope();
                if *kind != ForKind::ThreadBinding {
                    self.facts.bind(var, min, extent);
                }
                let new = self.walk_stmt(stmt);
                self.facts.leave(scope);
                new
            }
            StmtKind::Bind(var, value) => {
                if is_pure(value) && value.size() < 64 && var.dtype().is_integer() {
                    self.facts.bind_value(var, value);
                }
                stmt.clone()
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

impl Walk<'_> {
    fn dispatch(&mut self, call: &TileCall, span: Span) -> Result<Stmt> {
        let mut context = Context {
            targets: self.targets,
            threads: self.launch.threads.as_ref(),
            active: self.active,
            facts: &mut self.facts,
            scope: call.scope,
            span,
            partition: None,
            warning: None,
        };
        let (rows, code) = choose(call, &mut context);
        let partition = context.partition;
        let left_out = copy::full_scope(&context).is_err();
        let condition = self.narrowed.filter(|_| left_out);
        let warning = context.warning.take().filter(|_| code.is_some());
        let warning = warning.map(|warning| slow(&warning, span, &rows, condition));
        let result = match &code {
            Some(code) => Ok(code.clone()),
            None => Err(Box::new(under(condition, declined(call, span, &rows)))),
        };
        self.decisions.push(Decision {
            call: call.clone(),
            span,
            rows,
            partition,
            code,
            warning,
        });
        result
    }
}

type Rows = Vec<(&'static str, Outcome)>;

/// The beginning of the reason for a variant that is tried only when it is named.
const ONLY_FORCED: &str = "only by dispatch=";

/// Tries the variants of an operation in order.
fn choose(call: &TileCall, context: &mut Context<'_>) -> (Rows, Option<Stmt>) {
    let mut rows = Rows::new();
    let mut code = None;
    for variant in table::of(call.op) {
        let forced = match &call.dispatch {
            None => !variant.only_forced,
            Some(name) => variant.is_named(name),
        };
        if code.is_some() || !forced && call.dispatch.is_some() {
            rows.push((variant.name, Outcome::NotAsked));
            continue;
        }
        if !forced {
            let reason = format!("{ONLY_FORCED}\"{}\"", variant.name);
            rows.push((variant.name, Outcome::Declined(reason)));
            continue;
        }
        match ask(variant, call, context) {
            Ok(stmt) => {
                rows.push((variant.name, Outcome::Chosen));
                code = Some(stmt);
            }
            Err(reason) => rows.push((variant.name, Outcome::Declined(reason))),
        }
    }
    (rows, code)
}

fn ask(variant: &Variant, call: &TileCall, context: &mut Context<'_>) -> Result<Stmt, String> {
    for predicate in variant.predicates {
        (predicate.holds)(call, context)?;
    }
    (variant.lower)(call, context)
}

/// A warning about the chosen variant with the reasons why the others declined, all in its first line, because a build
/// shows only that.
fn slow(
    warning: &Warning,
    span: Span,
    rows: &[(&'static str, Outcome)],
    condition: Option<Span>,
) -> NamedWarning {
    let reasons = rows.iter().filter_map(|(variant, outcome)| match outcome {
        Outcome::Declined(reason) if !reason.starts_with(ONLY_FORCED) => Some(format!("{variant}: {reason}")),
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    let message = format!("{}: {}", warning.message, reasons.join("; "));
    let name = warning.name;
    let help = format!(
        "{} or `# tirx: allow({name})` on the line turns the warning off",
        warning.instead
    );
    NamedWarning {
        name,
        diagnostic: under(condition, Diagnostic::new(span, message)).help(help),
    }
}

/// Names the condition that excludes threads of the call's scope.
fn under(condition: Option<Span>, diagnostic: Diagnostic) -> Diagnostic {
    match condition {
        Some(span) => diagnostic.note(span, "this condition leaves out threads of the scope"),
        None => diagnostic,
    }
}

/// The error for a call that no variant lowers.
fn declined(call: &TileCall, span: Span, rows: &[(&'static str, Outcome)]) -> Diagnostic {
    let name = call.op.name();
    let scope = call.scope.name();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    if rows.is_empty() {
        let message =
            format!("no dispatch for tile primitive {name}: this compiler has no variant of it yet");
        return Diagnostic::new(span, message);
    }
    if let Some(forced) = &call.dispatch
        && rows.iter().all(|(_, outcome)| *outcome == Outcome::NotAsked)
    {
        let message = format!("no dispatch for tile primitive {name}: it has no variant \"{forced}\"");
        let diagnostic = Diagnostic::new(span, message);
        return diagnostic.help(format!("its variants are {}", names.join(", ")));
    }
    let message = format!("no dispatch for tile primitive {name} at scope {scope}: every variant declines");
    let mut diagnostic = Diagnostic::new(span, message);
    for (variant, outcome) in rows {
        if let Outcome::Declined(reason) = outcome {
            diagnostic = diagnostic.note(Span::NONE, format!("{variant}: {reason}"));
        }
    }
    diagnostic
}
