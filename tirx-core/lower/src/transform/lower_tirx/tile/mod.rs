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
//!
//! What variants share is in files of its own:
//!
//! | file | question |
//! |---|---|
//! | `predicates.rs` | which conditions do several variants ask of a call? |
//! | `operands.rs` | the layout of a region, its elements and their bits |
//! | `places.rs`, `registers.rs` | where do elements lie, as numbers; which thread holds which? |
//! | `digits.rs` | the digits of a number of mixed radix |
//! | `multiples.rs` | is an expression a multiple, and what is it divided? |
//! | `swizzle.rs` | addresses through a swizzle |
//! | `build.rs`, `formula.rs` | statements that several variants write; expressions over values that come later |
//! | `synchronization.rs` | the barrier of a scope |

mod active;
mod awaited;
mod build;
mod call;
mod cluster_copy;
mod compose;
mod context;
mod copy;
mod copy_async;
mod decision;
mod decline;
mod digits;
mod elementwise;
mod emit;
mod formula;
mod matrix;
mod mma;
mod multiples;
mod named;
mod operands;
mod option;
mod permute_layout;
mod places;
mod predicates;
mod reduction;
mod registers;
mod swizzle;
mod synchronization;
mod table;
mod tcgen05;
mod tensor_copy;
mod variant;
mod wgmma;

use self::active::Active;
use self::call::{PrimitiveCall, check_options};
use self::context::{Context, Warning};
pub(super) use self::context::{LaunchContext, Threads};
use self::decline::Decline;
use self::emit::{Emit, Outside};
use self::named::Named;
use self::variant::{Explanation, Plan, Variant};
use crate::arith::Analyzer;
use crate::diagnostic::{Diagnostic, Result};
use crate::ir::{Expr, ForKind, ForLoop, Mutator, Stmt, StmtKind, TileArg, TileCall, is_pure};
use crate::source::Span;
use crate::transform::Target;

pub use self::decision::{Decision, NamedWarning, Outcome};
pub use self::option::{OptionKind, TileOption};
pub use self::table::{VariantInfo, variants};
pub use self::variant::Completion;

/// A device region without tile primitives, and what the host does before it is launched.
pub(super) struct Lowered {
    /// The region.
    pub(super) body: Stmt,
    /// Statements before the launch.
    pub(super) host: Vec<Stmt>,
}

/// A device region without tile primitives.
pub(super) fn lower_region(
    body: &Stmt,
    launch: &LaunchContext,
    targets: &[Target],
    decisions: &mut Vec<Decision>,
) -> Result<Lowered> {
    let mut facts = Analyzer::new();
    for (var, extent) in &launch.extents {
        facts.bind(var, &Expr::constant(extent.dtype, 0), extent);
    }
    let count = launch.threads.as_ref().and_then(|t| t.count);
    let first = decisions.len();
    let mut walk = Walk {
        launch,
        targets,
        facts,
        active: count.map(Active::all),
        narrowed_by: None,
        named: Named::from_body(body),
        decisions,
        outside: Outside::default(),
        failed: None,
    };
    let body = walk.stmt(body);
    if let Some(error) = walk.failed {
        return Err(error);
    }
    let body = walk.outside.around(body);
    let host = walk.outside.host;
    awaited::warn(&body, &mut decisions[first..]);
    Ok(Lowered { body, host })
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
    launch: &'a LaunchContext,
    targets: &'a [Target],
    facts: Analyzer,
    active: Option<Active>,
    /// The innermost condition that excluded active threads.
    narrowed_by: Option<Span>,
    named: Named,
    decisions: &'a mut Vec<Decision>,
    outside: Outside,
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
        let place = self.named.enter();
        let new = self.lower_stmt(stmt);
        match &stmt.kind {
            StmtKind::Seq(_) => {}
            StmtKind::BufferStore(store) => self.named.store(store, &self.launch.ids),
            StmtKind::Bind(var, value) => self.named.bind(var, value, &self.launch.ids),
            _ => self.named.leave(place),
        }
        new
    }
}

impl Walk<'_> {
    /// Sets the threads that are active in a branch and, if there are fewer than around it, its condition as the cause.
    fn enter_branch(
        &mut self,
        active: Option<Active>,
        outer: (Option<Active>, Option<Span>),
        condition: Span,
    ) {
        self.active = active;
        self.narrowed_by = match active == outer.0 {
            true => outer.1,
            false => Some(condition),
        };
    }

    /// Lowers the tile primitives of a statement, with what its branches and loops tell about threads and variables.
    fn lower_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Tile(call) => match self.dispatch(call, stmt.span) {
                Ok(code) => code,
                Err(error) => {
                    self.failed = Some(error);
                    stmt.clone()
                }
            },
            StmtKind::If(condition, then, otherwise) => {
                let outer = (self.active, self.narrowed_by);
                let known = self.named.expand(condition);
                let under = outer.0.map(|a| a.under(&known, &self.launch.ids));
                self.enter_branch(under, outer, condition.span);
                let scope = self.facts.enter_constraint(condition);
                let new_then = self.stmt(then);
                self.facts.leave(scope);
                let under = outer.0.map(|a| a.under_not(&known, &self.launch.ids));
                self.enter_branch(under, outer, condition.span);
                let new_otherwise = otherwise.as_ref().map(|o| self.stmt(o));
                (self.active, self.narrowed_by) = outer;
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
    /// The call with extents of regions in their simplest form: `(i + 1) * 128 // 4 - i * 128 // 4` is constant.
    fn with_simple_extents(&mut self, tile: &TileCall) -> TileCall {
        let mut tile = tile.clone();
        for arg in &mut tile.args {
            let TileArg::Region(region) = arg else { continue };
            for (_, extent) in &mut region.ranges {
                if extent.as_int().is_none() {
                    let simple = self.facts.simplify(extent);
                    // Others stay as they are written: predicates compare them.
                    if simple.as_int().is_some() {
                        *extent = simple;
                    }
                }
            }
        }
        tile
    }

    fn dispatch(&mut self, tile: &TileCall, span: Span) -> Result<Stmt> {
        let tile = &self.with_simple_extents(tile);
        let mut context = Context {
            targets: self.targets,
            launch: self.launch,
            threads: self.launch.threads.as_ref(),
            active: self.active,
            facts: &mut self.facts,
            scope: tile.scope,
            span,
            separates: false,
        };
        let (rows, result) = choose(&PrimitiveCall::new(tile, span), &mut context);
        let left_out = predicates::full_scope(&context).is_err();
        let condition = self.narrowed_by.filter(|_| left_out);
        let mut decision = Decision {
            call: tile.clone(),
            span,
            rows,
            partition: None,
            lines: Vec::new(),
            completion: None,
            separates: context.separates,
            code: None,
            warning: None,
        };
        let code = match result {
            Choice::Plan(variant, plan) => {
                let Explanation {
                    partition,
                    lines,
                    completion,
                    warning,
                } = plan.explain();
                let mut out = Emit::new(&mut context, &mut self.outside);
                plan.emit(&mut out);
                let code = out.finish();
                decision.partition = partition;
                decision.lines = lines;
                decision.completion = Some(completion.unwrap_or(variant.completion));
                decision.warning = warning.map(|warning| slow(&warning, span, &decision.rows, condition));
                decision.code = Some(code.clone());
                Ok(code)
            }
            Choice::None => Err(Box::new(under(condition, declined(tile, span, &decision.rows)))),
            Choice::Mistake(error) => Err(error),
        };
        self.decisions.push(decision);
        let code = code?;
        if first_call(&code).is_none() {
            return Ok(code);
        }
        // Tile calls that the variant made are dispatched in their turn.
        let code = self.stmt(&code);
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(code),
        }
    }
}

type Rows = Vec<(&'static str, Outcome)>;

/// The beginning of the reason for a variant that is tried only when it is named.
const ONLY_FORCED: &str = "only by dispatch=";

/// The result of trying an operation's variants.
enum Choice {
    /// One accepts.
    Plan(&'static Variant, Plan),
    /// None does.
    None,
    /// The call is wrong.
    Mistake(Box<Diagnostic>),
}

/// Tries the variants of an operation in order.
fn choose(call: &PrimitiveCall<'_>, context: &mut Context<'_>) -> (Rows, Choice) {
    let mut rows = Rows::new();
    let mut choice = Choice::None;
    let all = table::variants_for(call.op);
    let options = all.iter().flat_map(|v| v.options);
    if !all.is_empty()
        && let Err(Decline::Mistake { span, message, help }) = check_options(call, options)
    {
        return (rows, mistake(span.or(call.span), message, help));
    }
    for variant in all.iter().copied() {
        let forced = match call.dispatch() {
            None => !variant.only_forced,
            Some(name) => variant.is_named(name),
        };
        if !matches!(choice, Choice::None) || !forced && call.dispatch().is_some() {
            rows.push((variant.name, Outcome::NotAsked));
            continue;
        }
        if !forced {
            let reason = format!("{ONLY_FORCED}\"{}\"", variant.name);
            rows.push((variant.name, Outcome::Declined(reason)));
            continue;
        }
        match ask(variant, &all, call, context) {
            Ok(plan) => {
                rows.push((variant.name, Outcome::Chosen));
                choice = Choice::Plan(variant, plan);
            }
            Err(Decline::NotApplicable(reason)) => rows.push((variant.name, Outcome::Declined(reason))),
            Err(Decline::Mistake { span, message, help }) => {
                rows.push((variant.name, Outcome::Declined(message.clone())));
                choice = mistake(span.or(call.span), message, help);
            }
        }
    }
    (rows, choice)
}

fn mistake(span: Span, message: String, help: Option<String>) -> Choice {
    let diagnostic = Diagnostic::new(span, message);
    Choice::Mistake(Box::new(match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }))
}

/// Asks a variant for its plan. `all` has the variants of the operation.
fn ask(
    variant: &Variant,
    all: &[&Variant],
    call: &PrimitiveCall<'_>,
    context: &mut Context<'_>,
) -> std::result::Result<Plan, Decline> {
    let foreign = foreign_options(variant, all, call);
    let plan = |context: &mut Context<'_>| {
        for predicate in variant.predicates {
            (predicate.holds)(call, context)?;
        }
        match &foreign[..] {
            [] => (variant.plan)(call, context),
            names => Err(format!("it takes no {}", names.join(" and no ")).into()),
        }
    };
    let Some(target) = context.targets.iter().find(|t| !variant.arch.holds(t.gpu)) else {
        return plan(context);
    };
    // GPUs that have it get code of their own, if nothing else keeps it from lowering the call.
    if context.targets.iter().any(|t| variant.arch.holds(t.gpu)) && plan(context).is_ok() {
        context.separates = true;
    }
    let reason = format!(
        "needs {}, but the kernel is compiled for {}",
        variant.arch, target.gpu
    );
    Err(reason.into())
}

/// The options of a call that a variant does not take, although they ask for something.
fn foreign_options<'a>(variant: &Variant, all: &[&Variant], call: &PrimitiveCall<'a>) -> Vec<&'a str> {
    let named = |v: &Variant, name: &str| v.options.iter().find(|o| o.name == name).copied();
    let config = call.tile.config.iter();
    let foreign = config.filter(|(name, value)| {
        let asks = |v: &&Variant| named(v, name).is_some_and(|option| option.asks(value));
        named(variant, name).is_none() && all.iter().any(asks)
    });
    foreign.map(|(name, _)| &**name).collect()
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
