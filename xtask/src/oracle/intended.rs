//! Intended differences from the reference, each counted where it is found.

use std::collections::{BTreeMap, HashSet};

use tirx_core::arith::Analyzer;
use tirx_core::intrin::Op;
use tirx_core::ir::{
    Assert, Attr, AttrValue, BinOp, Expr, ExprKind, ForLoop, IRModule, Mutator, Stmt, StmtKind, Var, Visitor,
    structural_equal,
};
use tirx_core::script::print_expr;
use tirx_core::source::Span;
use tirx_core::transform::{Options, PassContext, Target, stmt_simplify};

/// Number of occurrences of each difference.
pub(super) type Counts = BTreeMap<&'static str, usize>;

/// The host machine: TVM asks LLVM for it, whereas our host code is Rust.
const HOST_MACHINE: &str = "`mtriple` of the host target is left out";
/// TVM binds the warp index, with its shuffle, in every kernel; we bind it only in kernels that use it.
const WARP_INDEX: &str = "`warp_id_in_cta` that nothing reads is left out";

/// TVM assumes that a tensor's address has the alignment that the kernel's accesses need; we check it.
const ALIGNMENT: &str = "addresses are checked (`Misaligned`), not assumed (`storage_alignment`)";
/// TVM's 32-bit indices wrap for tensors with more elements than they can reach.
const REACH: &str = "how many elements a tensor has is checked where its indices have 32 bits";
/// Printed text parses back exactly, loop extents included; StmtSimplify simplifies them later.
const EXTENT: &str = "a loop's extent is as written until StmtSimplify";
/// TVM replaces math functions by CUDA's here; ours stay operators up to the CUDA text, for the simulator.
const MATH: &str = "math functions are operators, not `call_pure_extern`";

/// Enclosing conditions are used, empty branches are removed, bounds that always hold are dropped.
const SIMPLER: &str = "StmtSimplify knows more here: TVM's module becomes ours by it";
/// TVM sorts the terms of a sum by their constant factors, and misses a term in brackets. A sum here is written so that no part of it leaves its
/// dtype.
const ORDER: &str = "the terms of a sum stand in another order";
/// TVM emits the check of a stride that has no effect, of a dimension of one element.
const VACUOUS: &str = "an assertion that always holds is left out";
/// TVM folds constants except those that its own LowerIntrin produces.
const NO_SHIFT: &str = "a shift by nothing is left out";

/// FlattenBuffer leaves simplified indices here; TVM's are sums in the order of its iteration maps until StmtSimplify2.
pub(super) const INDICES: &str = "flattened indices are simplified at once, the same after StmtSimplify2";

/// Whether modules that are equal so far differ later: a later pass handles another notation differently.
pub(super) fn goes_on(counts: &Counts) -> bool {
    counts.contains_key(SIMPLER) || counts.contains_key(ORDER)
}

/// The reference's module after our StmtSimplify, if that changes it.
fn simplified(module: &IRModule) -> Option<IRModule> {
    let context = PassContext::new(Target::SM_90A, &Options::default());
    let simple = stmt_simplify::run(module.clone(), &context).ok()?;
    structural_equal(&simple, module).is_err().then_some(simple)
}

/// The reason why two modules differ that are the same up to the form of integer expressions.
pub(super) fn same_value(ours: &IRModule, theirs: &IRModule) -> Option<&'static str> {
    let same = |theirs: &IRModule| structural_equal(ours, theirs).is_ok();
    if let Some(simple) = simplified(theirs)
        && (same(&simple) || simplified(&simple).is_some_and(|simple| same(&simple)))
    {
        return Some(SIMPLER);
    }
    structural_equal(&sorted(ours), &sorted(theirs))
        .is_ok()
        .then_some(ORDER)
}

fn sorted(module: &IRModule) -> IRModule {
    module.clone().map(|mut func| {
        func.body = Sorted.stmt(&func.body);
        func
    })
}

/// Puts the terms of sums in order of their text.
struct Sorted;

impl Mutator for Sorted {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let expr = self.walk_expr(expr);
        let mut terms = Vec::new();
        if expr.dtype.is_integer() {
            collect(&expr, true, &mut terms);
        }
        if terms.len() < 2 {
            return expr;
        }
        terms.sort_by_cached_key(|(is_added, term)| (!is_added, print_expr(term)));
        let zero = Expr::constant(expr.dtype, 0);
        terms.into_iter().fold(zero, |sum, (is_added, term)| {
            Expr::binary(if is_added { BinOp::Add } else { BinOp::Sub }, sum, term)
        })
    }
}

/// The terms of a sum, and whether each is added or subtracted.
fn collect(expr: &Expr, is_added: bool, terms: &mut Vec<(bool, Expr)>) {
    match &expr.kind {
        ExprKind::Binary(BinOp::Add, a, b) => {
            collect(a, is_added, terms);
            collect(b, is_added, terms);
        }
        ExprKind::Binary(BinOp::Sub, a, b) => {
            collect(a, is_added, terms);
            collect(b, !is_added, terms);
        }
        _ => terms.push((is_added, expr.clone())),
    }
}

/// Whether two modules between FlattenBuffer and StmtSimplify2 differ only in the form of sums.
pub(super) fn same_indices(pass: &str, ours: &IRModule, theirs: &IRModule) -> bool {
    let between = [
        "FlattenBuffer",
        "BF16ComputeLegalize",
        "NarrowDataType",
        "VectorizeLoop",
        "UnrollLoop",
    ];
    let context = PassContext::new(Target::SM_90A, &Options::default());
    let simplified = |module: &IRModule| stmt_simplify::run(module.clone(), &context).ok();
    between.contains(&pass)
        && match (simplified(ours), simplified(theirs)) {
            (Some(ours), Some(theirs)) => structural_equal(&sorted(&ours), &sorted(&theirs)).is_ok(),
            _ => false,
        }
}

/// Our module without the parts that only ours has.
pub(super) fn ours(module: &IRModule, counts: &mut Counts) -> IRModule {
    let module = without_warp_index(module.clone(), &mut Counts::default());
    module.map(|mut func| {
        func.body = Ours { counts }.stmt(&func.body);
        func
    })
}

/// The reference's module without the parts that only it has.
pub(super) fn theirs(module: &IRModule, counts: &mut Counts) -> IRModule {
    let module = without_machine_of_host(module, counts);
    let module = without_warp_index(module, counts);
    module.map(|mut func| {
        func.body = Theirs { counts }.stmt(&func.body);
        func
    })
}

/// The reference's module in the form that one of our passes takes.
pub(super) fn without_machine_of_host(module: &IRModule, counts: &mut Counts) -> IRModule {
    module.clone().map(|mut func| {
        for (key, value) in &mut func.attrs {
            if &**key == "target" && without_machine(value) {
                *counts.entry(HOST_MACHINE).or_default() += 1;
            }
        }
        func
    })
}

/// A loop with its extent simplified, and whether that changed the loop.
fn simple_extent(l: &ForLoop, span: Span) -> (Stmt, bool) {
    let extent = Analyzer::new().simplify(&l.extent);
    let changed = structural_equal(&l.extent, &extent).is_err();
    (Stmt::new(ForLoop { extent, ..l.clone() }, span), changed)
}

struct Ours<'a> {
    counts: &'a mut Counts,
}

impl Mutator for Ours<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::For(l) => {
                let (stmt, changed) = simple_extent(l, stmt.span);
                if changed {
                    *self.counts.entry(EXTENT).or_default() += 1;
                }
                self.walk_stmt(&stmt)
            }
            StmtKind::Assert(Assert { message, .. })
                if message.first().is_some_and(|m| &**m == "Misaligned ") =>
            {
                *self.counts.entry(ALIGNMENT).or_default() += 1;
                Stmt::seq(Vec::new())
            }
            StmtKind::Assert(Assert { message, .. })
                if message
                    .iter()
                    .any(|m| m.ends_with(" elements, which int32 indices reach")) =>
            {
                *self.counts.entry(REACH).or_default() += 1;
                Stmt::seq(Vec::new())
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

struct Theirs<'a> {
    counts: &'a mut Counts,
}

impl Mutator for Theirs<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::For(l) => self.walk_stmt(&simple_extent(l, stmt.span).0),
            StmtKind::Attr(Attr { key, body, .. }) if &**key == "storage_alignment" => self.stmt(body),
            StmtKind::Assert(Assert { condition, .. }) if condition.is_int(1) => {
                *self.counts.entry(VACUOUS).or_default() += 1;
                Stmt::seq(Vec::new())
            }
            StmtKind::If(_, then, None) if !then.is_nop() => {
                let then = self.stmt(then);
                if then.is_nop() { then } else { self.walk_stmt(stmt) }
            }
            _ => self.walk_stmt(stmt),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Expr {
        if let Some([name, args @ ..]) = expr.as_call(Op::CallPureExtern)
            && let Some(op) = name.as_str().and_then(math)
        {
            *self.counts.entry(MATH).or_default() += 1;
            let args = self.exprs(args);
            return Expr::new(ExprKind::Call { op, args }, expr.dtype, expr.span);
        }
        for shift in [Op::ShiftLeft, Op::ShiftRight] {
            if let Some([value, by]) = expr.as_call(shift)
                && by.is_int(0)
            {
                *self.counts.entry(NO_SHIFT).or_default() += 1;
                return self.expr(value);
            }
        }
        self.walk_expr(expr)
    }
}

/// The operator with this CUDA name.
fn math(name: &str) -> Option<Op> {
    if matches!(name, "hrint" | "rint" | "rintf") {
        return Some(Op::Round);
    }
    if name == "__habs" {
        return Some(Op::Fabs);
    }
    let named = |name: &str| Op::ALL.iter().copied().find(|op| op.info().script == name);
    let fast = name.strip_prefix("__").and_then(|name| name.strip_suffix('f'));
    let spellings = [
        Some(name),
        name.strip_suffix('f'),
        name.strip_prefix('h'),
        name.strip_prefix("__"),
        fast,
    ];
    spellings.into_iter().flatten().find_map(named)
}

/// Removes the machine from a target or its host; gives whether there was one.
fn without_machine(target: &mut AttrValue) -> bool {
    match target {
        AttrValue::Target(fields) | AttrValue::Dict(fields) => {
            let host = fields.get_mut("host").is_some_and(without_machine);
            fields.remove("mtriple").is_some() || host
        }
        _ => false,
    }
}

/// Removes bindings of the warp index that nothing reads.
fn without_warp_index(module: IRModule, counts: &mut Counts) -> IRModule {
    module.map(|mut func| {
        loop {
            let mut read = Read(HashSet::new());
            read.visit_stmt(&func.body);
            let mut pass = WarpIndex {
                read: read.0,
                found: 0,
            };
            func.body = pass.stmt(&func.body);
            if pass.found == 0 {
                return func;
            }
            *counts.entry(WARP_INDEX).or_default() += pass.found;
        }
    })
}

/// The variables that are read.
struct Read(HashSet<Var>);

impl Visitor for Read {
    fn visit_expr(&mut self, expr: &Expr) {
        if let ExprKind::Var(var) = &expr.kind {
            self.0.insert(var.clone());
        }
        self.walk_expr(expr);
    }
}

struct WarpIndex {
    read: HashSet<Var>,
    found: usize,
}

fn reads_warp_index(value: &Expr) -> bool {
    let named = |e: &Expr| e.as_var().is_some_and(|v| v.name().starts_with("warp_id_in_cta"));
    named(value) || value.operands().any(reads_warp_index)
}

impl Mutator for WarpIndex {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let StmtKind::Bind(var, value) = &stmt.kind
            && !self.read.contains(var)
        {
            let shuffle =
                value.as_call(Op::TvmWarpShuffle).is_some() || value.as_call(Op::CudaShflSync).is_some();
            if shuffle && var.name().starts_with("warp_id_in_cta") || reads_warp_index(value) {
                self.found += 1;
                return Stmt::seq(Vec::new());
            }
        }
        self.walk_stmt(stmt)
    }
}
