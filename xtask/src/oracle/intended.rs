//! What differs from the reference on purpose, each counted where it is found.

use std::collections::{BTreeMap, HashSet};

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
/// Here TVM spells math functions as CUDA does; ours keep their meaning up to the CUDA text, for the simulator.
const MATH: &str = "math functions are operators, not `call_pure_extern`";

/// FlattenBuffer leaves simplified indices here; TVM's are sums in the order of its iteration maps until StmtSimplify2.
pub(super) const INDICES: &str = "flattened indices are simplified at once, the same after StmtSimplify2";

/// Differences that no rule above takes out: what both sides begin with where they part, after which passes (all where
/// none is named), and why.
const EXPLANATIONS: &[(&[&str], &str, &str, &str)] = &[];

/// Why two modules part where they do, if that is known and wanted.
pub(super) fn explanation(pass: &str, mismatch: &Mismatch) -> Option<&'static str> {
    let known = EXPLANATIONS.iter().find(|(passes, left, right, _)| {
        (passes.is_empty() || passes.contains(&pass))
            && mismatch.left.contains(left)
            && mismatch.right.contains(right)
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

struct Ours<'a> {
    counts: &'a mut Counts,
}

impl Mutator for Ours<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
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
    let plain = match name {
        "hexp" | "hlog" | "hsqrt" | "hexp2" | "hlog2" | "hcos" | "hsin" | "hrsqrt" | "htanh" => &name[1..],
        "__expf" => "exp",
        "__logf" => "log",
        "__powf" => "pow",
        "__sinf" => "sin",
        "__cosf" => "cos",
        name => name,
    };
    let named = |name: &str| Op::ALL.iter().copied().find(|op| op.info().script == name);
    named(plain).or_else(|| named(plain.strip_suffix('f')?))
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

fn without_warp_index(module: IRModule, counts: &mut Counts) -> IRModule {
    module.map(|mut func| {
        let mut read = Read(HashSet::new());
        read.visit_stmt(&func.body);
        func.body = WarpIndex { read: read.0, counts }.stmt(&func.body);
        func
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

struct WarpIndex<'a> {
    read: HashSet<Var>,
    counts: &'a mut Counts,
}

impl Mutator for WarpIndex<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let StmtKind::Bind(var, value) = &stmt.kind
            && var.name().starts_with("warp_id_in_cta")
            && (value.as_call(Op::TvmWarpShuffle).is_some() || value.as_call(Op::CudaShflSync).is_some())
            && !self.read.contains(var)
        {
            *self.counts.entry(WARP_INDEX).or_default() += 1;
            return Stmt::seq(Vec::new());
        }
        self.walk_stmt(stmt)
    }
}
