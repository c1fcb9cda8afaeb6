//! What differs from the reference on purpose, each counted where it is found.

use std::collections::{BTreeMap, HashSet};

use tirx_core::arith::Analyzer;
use tirx_core::intrin::Op;
use tirx_core::ir::{
    AttrValue, Expr, ExprKind, IRModule, Mismatch, Mutator, Stmt, StmtKind, Var, Visitor, structural_equal,
};
use tirx_core::transform::{Options, PassContext, Target, stmt_simplify};

/// How often each difference was found.
pub(super) type Counts = BTreeMap<&'static str, usize>;

/// The machine that the host code would run on: TVM asks LLVM, and our host code is Rust.
const HOST_MACHINE: &str = "`mtriple` of the host target is left out";
/// TVM binds the warp's index, with its shuffle, in every kernel; we bind it in those that ask for it.
const WARP_INDEX: &str = "`warp_id_in_cta` that nothing reads is left out";

/// TVM assumes what we check: that a tensor's address is a multiple of what the kernel's accesses need.
const ALIGNMENT: &str = "addresses are checked (`Misaligned`), not assumed (`storage_alignment`)";
/// What is printed reads back as it was, loops too; StmtSimplify comes soon enough.
const EXTENT: &str = "a loop's extent is as written until StmtSimplify";
/// Here TVM spells math functions as CUDA does; ours keep their meaning up to the CUDA text, for the simulator.
const MATH: &str = "math functions are operators, not `call_pure_extern`";

/// FlattenBuffer leaves simplified indices here; TVM's are sums in the order of its iteration maps until StmtSimplify2.
pub(super) const INDICES: &str = "flattened indices are simplified at once, the same after StmtSimplify2";

/// Differences that no rule above takes out: what both sides begin with where they part, after which passes (all where
/// none is named), and why.
const EXPLANATIONS: &[(&[&str], &str, &str, &str)] = &[
    (
        &[],
        "",
        "T.ptx.fetch_register",
        "the index of a cluster is read once; TVM reads the register at every use",
    ),
    (
        &[],
        "1055",
        "1024",
        "a buffer of a padded layout holds its padding; TVM's allocation is too small for its accesses",
    ),
    (
        &[],
        "pointer to ",
        "pointer to ",
        "TVM prints a shared scalar as `x: T.int32`, which reads back as a local one",
    ),
    (
        &["LowerTIRx", "UnifyThreadBinding"],
        "16",
        "8",
        "strides of a buffer whose layout is the default are honoured",
    ),
    (
        &[],
        "8",
        "32",
        "a grid of clusters keeps its dimensions; TVM's has one, of their product",
    ),
    (
        &[],
        "",
        "T.min(",
        "a minimum that a condition around it decides is dropped",
    ),
    (
        &["LowerIntrin"],
        "T.decl_buffer",
        "T.print_buffer",
        "`print_buffer` becomes loops here, in TVM in the CUDA text",
    ),
    (
        &["LowerIntrin"],
        "T.shift_left(T.Cast(\"int64\"",
        "T.Select(",
        "a shift by nothing needs no choice",
    ),
    (
        &["LowerIntrin"],
        "",
        "T.Select(T.NE(0, 0)",
        "constants of a fixed-point product are folded",
    ),
    (
        &["VectorizeLoop"],
        "for i",
        "T.Ramp",
        "a loop of as many lanes as CUDA has no vector for stays a loop",
    ),
    (
        &["VectorizeLoop"],
        "for i",
        "T.Broadcast",
        "a loop of as many lanes as CUDA has no vector for stays a loop",
    ),
    (
        &["SplitHostDevice"],
        "tirx.use_programtic_dependent_launch",
        "threadIdx.x",
        "an attribute of the launch counts wherever in the region it stands",
    ),
    (
        &["SplitHostDevice"],
        "tirx.use_cooperative_launch",
        "threadIdx.x",
        "an attribute of the launch counts wherever it stands, and a kernel with grid_sync is cooperative",
    ),
    (
        &[],
        "unknown name",
        "",
        "TVM's text of nested `T.Let` does not declare the inner name, and reads back nowhere",
    ),
    (
        &[],
        "(1, 0, 0)",
        "(2, 0, 0)",
        "TVM prints `decl_buffer` with a layout as a view without it",
    ),
    (
        &[],
        "(2, 0, 0)",
        "(3, 0, 0)",
        "TVM prints `rearrange` as a view without its layout",
    ),
    (
        &["CommonSubexprElim"],
        "0",
        "threadIdx_x // 32",
        "`warp_id_in_cta` that nothing reads is left out, with what it shares",
    ),
    (
        &["NarrowDataType"],
        "T.int64(",
        "(int32)",
        "the size of a pool keeps its dtype; SplitHostDevice casts it",
    ),
    (
        &["MakePackedAPI"],
        "_shape = T.handle(",
        ": T.int32",
        "an extent that a later argument gives is read from there; TVM leaves it without a value",
    ),
    (
        &["MakePackedAPI"],
        "T.tvm_struct_get(",
        "T.Cast(\"int64\", T.Cast(\"int32\"",
        "a stride is compared as it is, not narrowed and widened",
    ),
    (
        &["FP8ComputeLegalize"],
        "T.Cast(\"float32\"",
        "float4_e2m1fn",
        "float4 is computed with as float32, as float8 is; TVM leaves it to CUDA's conversions",
    ),
    (
        &["StmtSimplify", "StmtSimplify2", "StmtSimplify3"],
        "if 0 < threadIdx_x and threadIdx_x < 5",
        "if 0 < threadIdx_x and threadIdx_x < 5",
        "branches that do nothing go",
    ),
    (
        &["StmtSimplify"],
        "0 < i[0]",
        "T.bool(True)",
        "what a condition said of memory is not taken to hold after a store to it",
    ),
];

/// Why two modules part where they do, if that is known and wanted.
pub(super) fn explanation(pass: &str, mismatch: &Mismatch) -> Option<&'static str> {
    // Numbers are meant as a whole.
    let begins = |text: &str, part: &str| match part.parse::<i64>() {
        Ok(_) => text.trim() == part,
        Err(_) => text.contains(part),
    };
    let known = EXPLANATIONS.iter().find(|(passes, left, right, _)| {
        (passes.is_empty() || passes.contains(&pass))
            && begins(&mismatch.left, left)
            && begins(&mismatch.right, right)
    });
    known.map(|(.., reason)| *reason)
}

/// Whether two modules between FlattenBuffer and StmtSimplify2 differ in how sums are written alone.
pub(super) fn same_indices(pass: &str, ours: &IRModule, theirs: &IRModule) -> bool {
    let between = [
        "FlattenBuffer",
        "BF16ComputeLegalize",
        "NarrowDataType",
        "VectorizeLoop",
        "UnrollLoop",
    ];
    let context = PassContext::new(Target::cuda("sm_90a"), &Options::default());
    let simplified = |module: &IRModule| stmt_simplify::run(module.clone(), &context).ok();
    between.contains(&pass)
        && match (simplified(ours), simplified(theirs)) {
            (Some(ours), Some(theirs)) => structural_equal(&ours, &theirs).is_ok(),
            _ => false,
        }
}

/// Our module without what only ours has.
pub(super) fn ours(module: &IRModule, counts: &mut Counts) -> IRModule {
    let module = without_warp_index(module.clone(), &mut Counts::default());
    module.map(|mut func| {
        func.body = Ours { counts }.stmt(&func.body);
        func
    })
}

/// The reference's module without what only it has.
pub(super) fn theirs(module: &IRModule, counts: &mut Counts) -> IRModule {
    let module = without_machine_of_host(module, counts);
    let module = without_warp_index(module, counts);
    module.map(|mut func| {
        func.body = Theirs { counts }.stmt(&func.body);
        func
    })
}

/// The reference's module in the form that a pass of ours takes.
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

/// A loop with its extent simplified, and whether that changed it.
fn simple_extent(stmt: &Stmt) -> (Stmt, bool) {
    let mut kind = stmt.kind.clone();
    let mut changed = false;
    if let StmtKind::For { extent, .. } = &mut kind {
        let simple = Analyzer::new().simplify(extent);
        changed = structural_equal(extent, &simple).is_err();
        *extent = simple;
    }
    (Stmt::new(kind, stmt.span), changed)
}

struct Ours<'a> {
    counts: &'a mut Counts,
}

impl Mutator for Ours<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::For { .. } => {
                let (stmt, changed) = simple_extent(stmt);
                if changed {
                    *self.counts.entry(EXTENT).or_default() += 1;
                }
                self.walk_stmt(&stmt)
            }
            StmtKind::Assert { message, .. } if message.first().is_some_and(|m| &**m == "Misaligned ") => {
                *self.counts.entry(ALIGNMENT).or_default() += 1;
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
            StmtKind::For { .. } => self.walk_stmt(&simple_extent(stmt).0),
            StmtKind::Attr { key, body, .. } if &**key == "storage_alignment" => self.stmt(body),
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
        self.walk_expr(expr)
    }
}

/// The operator that CUDA spells so.
fn math(name: &str) -> Option<Op> {
    if matches!(name, "hrint" | "rint" | "rintf") {
        return Some(Op::Round);
    }
    let named = |name: &str| Op::ALL.iter().copied().find(|op| op.info().script == name);
    let fast = name.strip_prefix("__").and_then(|name| name.strip_suffix('f'));
    let spellings = [Some(name), name.strip_suffix('f'), name.strip_prefix('h'), fast];
    spellings.into_iter().flatten().find_map(named)
}

/// Takes the machine out of a target or of its host; says whether it was there.
fn without_machine(target: &mut AttrValue) -> bool {
    match target {
        AttrValue::Target(fields) | AttrValue::Dict(fields) => {
            let host = fields.get_mut("host").is_some_and(without_machine);
            fields.remove("mtriple").is_some() || host
        }
        _ => false,
    }
}

/// Takes out what only carries the warp's index to nobody.
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
