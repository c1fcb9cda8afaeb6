//! CommonSubexprElim: binds expressions of variables that are computed more than once to names.
//!
//! **What is eligible.** A scalar number computed by operators and casts from variables and constants. Not eligible:
//! reads of memory (a store in between may change it), calls, conditions, vectors; their operands are considered.
//!
//! **Which are named.** Equal expressions are one *class*; a class knows the classes that contain it. Classes are
//! visited from the largest to the smallest. The uses of a class are its occurrences outside of other classes, plus one
//! for each containing class that was named, plus the uses of each containing class that was not. A class with two or
//! more uses is named. So `n * 9` inside `n * 9 + 1` is not named when only the sum repeats.
//!
//! **Where.** Before the first statement of the innermost body that holds all uses. Being pure, the value may be
//! computed where no use is reached. The exceptions are a division that might be by zero, and a sum, difference or product
//! with a constant near the end of its dtype, which the condition around the uses may keep within: these are only named
//! where they would be computed anyway.
//!
//! **Names.** `cse_v1, cse_v2, …`: small expressions first, then in program order, so that the result does not depend
//! on anything but the program.
//!
//! **Cost.** A node knows its hash, and a known expression is not traversed again: the pass is linear in the program,
//! times the nesting depth of bodies.

use rustc_hash::{FxHashMap, FxHashSet};

use super::PassContext;
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::at;
use crate::ir::{
    Assert, Attr, AttrNode, BinOp, Buffer, BufferStore, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc,
    Stmt, StmtKind, Var,
};

/// See the [module](self).
pub fn run(module: IRModule, ctx: &PassContext) -> Result<IRModule, Diagnostics> {
    if ctx.disable_cse {
        return Ok(module);
    }
    Ok(module.map(eliminate))
}

fn eliminate(mut func: PrimFunc) -> PrimFunc {
    let mut table = Table::default();
    table.scopes.push(Scope::default());
    table.body(&func.body, 0);
    let names = table.choose();
    if names.is_empty() {
        return func;
    }
    let mut rewriter = Rewriter::new(&table, names);
    func.body = rewriter.body(&func.body);
    func
}

/// Before statement `index` of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct InsertionPoint {
    scope: u32,
    index: u32,
}

/// A body: of the function, a loop, a branch, an attribute.
#[derive(Default)]
struct Scope {
    /// The statement that it is the body of. The function's body is its own parent.
    parent: u32,
    index: u32,
    depth: u32,
}

/// The role of an expression in the pass.
#[derive(Clone, Copy)]
enum Seen {
    /// Contains something other than operators on variables.
    Other,
    /// A variable or a constant.
    Leaf,
    /// Its class number.
    Class(u32),
}

/// Whether an expression is an operator that may be part of a class.
fn is_operator(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary(op, ..) => !op.is_logical(),
        ExprKind::Cast(_) | ExprKind::Not(_) | ExprKind::Select(..) => true,
        _ => false,
    }
}

/// Whether an expression is a constant so large that a sum or product with it is likely to leave the dtype.
fn is_near_the_edge(expr: &Expr) -> bool {
    let dtype = expr.dtype;
    let most = dtype
        .max_int()
        .filter(|_| dtype.is_int() && matches!(dtype.bits, 32 | 64));
    expr.as_int()
        .zip(most)
        .is_some_and(|(value, most)| value.saturating_abs() > most >> 7)
}

/// A class of equal expressions.
struct Class {
    expr: Expr,
    depth: u32,
    /// Whether it may get a name.
    nameable: bool,
    /// Whether it contains what may fault where it is not used: a division by a value that may be zero, or a sum that may
    /// leave its dtype.
    risky: bool,
    /// Number of uses outside of other classes.
    uses: u64,
    /// The classes that contain it, one entry per occurrence as an operand.
    parents: Vec<u32>,
    place: Option<InsertionPoint>,
    /// Where it is computed unconditionally, if `risky`.
    computed: Vec<InsertionPoint>,
}

#[derive(Default)]
struct Table {
    classes: Vec<Class>,
    by_expr: FxHashMap<Expr, u32>,
    scopes: Vec<Scope>,
    /// Variables bound within an expression, which are not visible outside of it.
    inner_vars: FxHashSet<Var>,
}

impl Table {
    /// Records an expression at a place. Where an expression has no class, its operands with classes are counted as
    /// used here. `lazy`: it may not be evaluated here.
    fn see(&mut self, expr: &Expr, place: InsertionPoint, lazy: bool) -> Seen {
        if is_operator(expr)
            && let Some(known) = self.by_expr.get(expr)
        {
            return Seen::Class(*known);
        }
        let operands: [Seen; 3] = match &expr.kind {
            ExprKind::Var(v) if v.dtype().is_handle() || self.inner_vars.contains(v) => return Seen::Other,
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) => return Seen::Leaf,
            ExprKind::Binary(op, a, b) if !op.is_logical() => {
                let Some([x, y]) = self.see_all([a, b], place, lazy) else {
                    return Seen::Other;
                };
                [x, y, Seen::Leaf]
            }
            ExprKind::Cast(a) | ExprKind::Not(a) => match self.see(a, place, lazy) {
                Seen::Other => return Seen::Other,
                x => [x, Seen::Leaf, Seen::Leaf],
            },
            ExprKind::Select(c, t, f) => match self.see_all([c, t, f], place, lazy) {
                Some(operands) => operands,
                None => return Seen::Other,
            },
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } => {
                self.expr(&args[at!(IfThenElse.cond)], place, lazy);
                self.expr(&args[at!(IfThenElse.t)], place, true);
                self.expr(&args[at!(IfThenElse.f)], place, true);
                return Seen::Other;
            }
            ExprKind::Binary(_, a, b) => {
                self.expr(a, place, lazy);
                self.expr(b, place, true);
                return Seen::Other;
            }
            ExprKind::Let(var, value, body) => {
                self.expr(value, place, lazy);
                self.inner_vars.insert(var.clone());
                self.expr(body, place, lazy);
                return Seen::Other;
            }
            _ => {
                expr.operands().for_each(|e| self.expr(e, place, lazy));
                return Seen::Other;
            }
        };
        let id = self.classes.len() as u32;
        let (mut depth, mut risky) = (1, false);
        for operand in operands {
            let Seen::Class(operand) = operand else { continue };
            let class = &mut self.classes[operand as usize];
            depth = depth.max(class.depth + 1);
            risky |= class.risky;
            class.parents.push(id);
        }
        if let ExprKind::Binary(BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod, _, b) =
            &expr.kind
        {
            risky |= !expr.dtype.is_floating() && b.as_int().is_none_or(|v| v == 0);
        }
        if let ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) = &expr.kind {
            risky |= [a, b].into_iter().any(is_near_the_edge);
        }
        self.classes.push(Class {
            expr: expr.clone(),
            depth,
            nameable: expr.dtype.is_scalar() && !expr.dtype.is_bool() && !expr.dtype.is_handle(),
            risky,
            uses: 0,
            parents: Vec::new(),
            place: None,
            computed: Vec::new(),
        });
        self.by_expr.insert(expr.clone(), id);
        Seen::Class(id)
    }

    /// Records the operands of one node: gives `None` where one is not made of operators, and counts the classes of the
    /// others as used.
    fn see_all<const N: usize>(
        &mut self,
        exprs: [&Expr; N],
        place: InsertionPoint,
        lazy: bool,
    ) -> Option<[Seen; N]> {
        let seen = exprs.map(|e| self.see(e, place, lazy));
        if !seen.iter().any(|s| matches!(s, Seen::Other)) {
            return Some(seen);
        }
        for operand in seen {
            if let Seen::Class(class) = operand {
                self.used(class, place, lazy);
            }
        }
        None
    }

    fn expr(&mut self, expr: &Expr, place: InsertionPoint, lazy: bool) {
        if let Seen::Class(class) = self.see(expr, place, lazy) {
            self.used(class, place, lazy);
        }
    }

    fn used(&mut self, id: u32, place: InsertionPoint, lazy: bool) {
        let merged = match self.classes[id as usize].place {
            Some(other) => self.common(other, place),
            None => place,
        };
        let class = &mut self.classes[id as usize];
        class.uses += 1;
        class.place = Some(merged);
        if class.risky && !lazy && class.computed.last() != Some(&place) {
            class.computed.push(place);
        }
    }

    /// The last place that precedes both.
    fn common(&self, mut a: InsertionPoint, mut b: InsertionPoint) -> InsertionPoint {
        let lift = |place: InsertionPoint| {
            let scope = &self.scopes[place.scope as usize];
            InsertionPoint {
                scope: scope.parent,
                index: scope.index,
            }
        };
        while a.scope != b.scope {
            let (x, y) = (
                self.scopes[a.scope as usize].depth,
                self.scopes[b.scope as usize].depth,
            );
            if x >= y {
                a = lift(a);
            }
            if y >= x {
                b = lift(b);
            }
        }
        InsertionPoint {
            scope: a.scope,
            index: a.index.min(b.index),
        }
    }

    fn body(&mut self, body: &Stmt, scope: u32) {
        for (index, stmt) in body.as_slice().iter().enumerate() {
            let index = index as u32;
            self.stmt(stmt, InsertionPoint { scope, index });
        }
    }

    fn inner_body(&mut self, body: &Stmt, at: InsertionPoint) {
        let scope = self.scopes.len() as u32;
        self.scopes.push(Scope {
            parent: at.scope,
            index: at.index,
            depth: self.scopes[at.scope as usize].depth + 1,
        });
        self.body(body, scope);
    }

    fn stmt(&mut self, stmt: &Stmt, at: InsertionPoint) {
        stmt_exprs(stmt, &mut |e| self.expr(e, at, false));
        for body in bodies(stmt) {
            self.inner_body(body, at);
        }
    }

    /// Decides which classes get a name; gives them in the order of their names.
    fn choose(&mut self) -> Vec<u32> {
        // A class is made after its operands, so backwards is largest first.
        let mut counts = vec![0u64; self.classes.len()];
        let mut named = vec![false; self.classes.len()];
        let mut computed_at_place = vec![false; self.classes.len()];
        for id in (0..self.classes.len()).rev() {
            let class = &self.classes[id];
            let (mut count, mut place) = (class.uses, class.place);
            for &parent in &class.parents {
                let parent = parent as usize;
                count = count.saturating_add(if named[parent] { 1 } else { counts[parent] });
                place = match (place, self.classes[parent].place) {
                    (Some(a), Some(b)) => Some(self.common(a, b)),
                    (a, b) => a.or(b),
                };
            }
            let safe = !class.risky
                || place.is_some_and(|p| class.computed.contains(&p))
                || class
                    .parents
                    .iter()
                    .any(|p| computed_at_place[*p as usize] && self.classes[*p as usize].place == place);
            computed_at_place[id] = safe && class.risky;
            counts[id] = count;
            named[id] = class.nameable && count >= 2 && safe && place.is_some();
            self.classes[id].place = place;
        }
        let mut chosen: Vec<u32> = (0..self.classes.len() as u32)
            .filter(|id| named[*id as usize])
            .collect();
        chosen.sort_by_key(|id| (self.classes[*id as usize].depth, *id));
        chosen
    }
}

/// The expressions of a statement itself, in program order.
fn stmt_exprs<'a>(stmt: &'a Stmt, see: &mut dyn FnMut(&'a Expr)) {
    match &stmt.kind {
        StmtKind::Bind(_, e) | StmtKind::Evaluate(e) | StmtKind::While(e, _) | StmtKind::If(e, ..) => see(e),
        StmtKind::Attr(Attr { value, .. }) => see(value),
        StmtKind::BufferStore(BufferStore {
            indices,
            value,
            predicate,
            ..
        }) => {
            see(value);
            indices.iter().chain(predicate).for_each(see);
        }
        StmtKind::For(ForLoop {
            min, extent, step, ..
        }) => [Some(min), Some(extent), step.as_ref()]
            .into_iter()
            .flatten()
            .for_each(see),
        StmtKind::Assert(Assert { condition, .. }) => see(condition),
        StmtKind::AllocBuffer(buffer, _) | StmtKind::DeclBuffer(buffer) => buffer.for_each_expr(see),
        StmtKind::Tile(call) => call.for_each_expr(see),
        StmtKind::ScopeId(_) | StmtKind::Seq(_) => {}
    }
}

/// The bodies of a statement.
fn bodies(stmt: &Stmt) -> Vec<&Stmt> {
    match &stmt.kind {
        StmtKind::Attr(Attr { body, .. })
        | StmtKind::For(ForLoop { body, .. })
        | StmtKind::While(_, body) => vec![body],
        StmtKind::If(_, then, otherwise) => std::iter::once(then).chain(otherwise).collect(),
        _ => vec![],
    }
}

struct Rewriter {
    /// The variable that names an expression.
    vars: FxHashMap<Expr, Var>,
    /// The definitions to insert at a place, in order.
    definitions: FxHashMap<InsertionPoint, Vec<(Var, Expr)>>,
    /// Declared buffers whose description changed.
    buffers: FxHashMap<Buffer, Buffer>,
    next_scope: u32,
}

impl Rewriter {
    fn new(table: &Table, names: Vec<u32>) -> Rewriter {
        let mut vars = FxHashMap::default();
        let mut definitions: FxHashMap<InsertionPoint, Vec<(Var, Expr)>> = FxHashMap::default();
        for (i, id) in names.into_iter().enumerate() {
            let class = &table.classes[id as usize];
            let var = Var::at(format!("cse_v{}", i + 1), class.expr.dtype, class.expr.span);
            vars.insert(class.expr.clone(), var.clone());
            if let Some(place) = class.place {
                let definition = (var, class.expr.clone());
                definitions.entry(place).or_default().push(definition);
            }
        }
        Rewriter {
            vars,
            definitions,
            buffers: FxHashMap::default(),
            next_scope: 0,
        }
    }

    /// A body with its definitions. Scopes are numbered as the table numbered them.
    fn scoped(&mut self, body: &Stmt) -> Stmt {
        let scope = self.next_scope;
        self.next_scope += 1;
        let mut out = Vec::new();
        let mut changed = false;
        for (index, stmt) in body.as_slice().iter().enumerate() {
            let index = index as u32;
            for (var, expr) in self
                .definitions
                .remove(&InsertionPoint { scope, index })
                .into_iter()
                .flatten()
            {
                // The expression's own name is not defined yet; those of its operands are.
                let value = self.walk_expr(&expr);
                out.push(Stmt::bind(&var, value, stmt.span));
                changed = true;
            }
            let new = self.stmt(stmt);
            changed |= !new.same_node(stmt);
            out.push(new);
        }
        if !changed {
            return body.clone();
        }
        match out.len() {
            1 => out.remove(0),
            _ => Stmt::new(StmtKind::Seq(out), body.span),
        }
    }
}

impl Mutator for Rewriter {
    fn expr(&mut self, expr: &Expr) -> Expr {
        if is_operator(expr)
            && let Some(var) = self.vars.get(expr)
        {
            return Expr::var(var).at(expr.span);
        }
        match &expr.kind {
            ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) => expr.clone(),
            _ => self.walk_expr(expr),
        }
    }

    fn buffer_use(&mut self, buffer: &Buffer) -> Buffer {
        self.buffers.get(buffer).unwrap_or(buffer).clone()
    }

    fn buffer_def(&mut self, buffer: &Buffer) -> Buffer {
        let new = buffer.map_exprs(buffer.data.clone(), |e| self.expr(e));
        if new == *buffer {
            return new;
        }
        self.buffers.insert(buffer.clone(), new.clone());
        new
    }

    fn body(&mut self, body: &Stmt) -> Stmt {
        self.scoped(body)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Attr(Attr {
                node,
                key,
                value,
                body,
            }) => {
                let node2 = match node {
                    AttrNode::Buffer(buffer) => AttrNode::Buffer(self.buffer_use(buffer)),
                    other => other.clone(),
                };
                let (v, b) = (self.expr(value), self.body(body));
                if v.same_node(value) && b.same_node(body) && node2 == *node {
                    return stmt.clone();
                }
                Stmt::attr(node2, key.clone(), v, b, stmt.span)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}
