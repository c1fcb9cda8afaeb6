//! Infers extents of the launch hierarchy from the declared ones, and checks that they agree.
//!
//! A scope id counts the children of one level of the hierarchy in a parent level: `T.warp_id` counts warps in a CTA.
//! The levels are kernel, cluster, CTA, warpgroup, warp, thread, and an extent is known of a pair of levels. Extents
//! multiply: where two of `a → b`, `b → c` and `a → c` are known, the third follows. The table of pairs is closed under
//! that rule; where all three are known they must agree. What the hardware fixes (a warp has 32 lanes, a
//! warpgroup 4 warps) is used only where something would stay unknown without it.

use crate::arith::{Analyzer, fold};
use crate::diagnostic::{Diagnostic, Result, error};
use crate::ir::{BinOp, DType, Expr, ScopeIdDef, ScopeIdKind};
use crate::source::Span;

/// A declaration with its span.
pub(super) struct Declared {
    /// What is declared.
    pub(super) def: ScopeIdDef,
    /// Where.
    pub(super) span: Span,
}

pub(super) const LEVELS: [&str; 6] = ["kernel", "cluster", "CTA", "warpgroup", "warp", "thread"];
pub(super) const CTA: usize = 2;
pub(super) const THREAD: usize = 5;
/// Parent and child level of a kind. A CTA's rank in its pair has no extent of its own.
pub(super) fn levels(kind: ScopeIdKind) -> Option<(usize, usize)> {
    Some(match kind {
        ScopeIdKind::ClusterId => (0, 1),
        ScopeIdKind::CtaId => (0, 2),
        ScopeIdKind::CtaIdInCluster => (1, 2),
        ScopeIdKind::WarpgroupId => (2, 3),
        ScopeIdKind::WarpId => (2, 4),
        ScopeIdKind::WarpIdInWg => (3, 4),
        ScopeIdKind::ThreadId => (2, 5),
        ScopeIdKind::ThreadIdInWg => (3, 5),
        ScopeIdKind::LaneId => (4, 5),
        ScopeIdKind::CtaIdInPair => return None,
    })
}

/// Ratios fixed by the hardware: parent, child, extent.
const HARDWARE: [(ScopeIdKind, i32, &str); 3] = [
    (ScopeIdKind::LaneId, 32, "a warp has 32 lanes"),
    (ScopeIdKind::WarpIdInWg, 4, "a warpgroup has 4 warps"),
    (ScopeIdKind::ThreadIdInWg, 128, "a warpgroup has 128 threads"),
];

/// An extent and the declarations that it is derived from.
#[derive(Clone)]
pub(super) struct Extent {
    pub(super) value: Expr,
    pub(super) from: Vec<usize>,
    /// Whether it also relies on the hardware's ratios, which refute no declaration.
    assumed: bool,
}

impl Extent {
    fn new(value: Expr, from: Vec<usize>, assumed: bool) -> Extent {
        Extent { value, from, assumed }
    }
}

pub(super) type Table = [[Option<Extent>; 6]; 6];

/// The extents known from a launch's declarations.
pub(super) struct Hierarchy<'a> {
    declared: &'a [Declared],
    pub(super) known: Table,
}

impl<'a> Hierarchy<'a> {
    pub(super) fn new(declared: &'a [Declared]) -> Result<Hierarchy<'a>> {
        let mut this = Hierarchy {
            declared,
            known: Table::default(),
        };
        for (index, one) in declared.iter().enumerate() {
            let (Some((parent, child)), Some(extents)) = (levels(one.def.kind), &one.def.extents) else {
                continue;
            };
            this.check_hardware(one)?;
            let value = product(extents);
            this.learn(parent, child, Extent::new(value, vec![index], false))?;
        }
        this.close()?;
        let deferred = |d: &Declared, known: &Table| {
            d.def.extents.is_none()
                && levels(d.def.kind).is_some_and(|(parent, child)| known[parent][child].is_none())
        };
        for (kind, extent, _) in HARDWARE {
            let incomplete =
                this.known[CTA][THREAD].is_none() || declared.iter().any(|d| deferred(d, &this.known));
            if let (true, Some((parent, child))) = (incomplete, levels(kind))
                && this.known[parent][child].is_none()
            {
                this.learn(parent, child, Extent::new(Expr::int32(extent), vec![], true))?;
                this.close()?;
            }
        }
        Ok(this)
    }

    /// Lanes, and the parts of a warpgroup, cannot exceed the hardware's numbers.
    fn check_hardware(&self, one: &Declared) -> Result<()> {
        let Some((_, most, why)) = HARDWARE.iter().find(|(k, ..)| *k == one.def.kind) else {
            return Ok(());
        };
        let extent = one.def.extents.as_deref().map(product);
        match extent.as_ref().and_then(Expr::as_int) {
            Some(extent) if extent > *most as i128 => {
                let name = one.def.kind.name();
                error(one.span, format!("T.{name} cannot have {extent} values: {why}"))
            }
            _ => Ok(()),
        }
    }

    /// Adds an extent.
    fn learn(&mut self, parent: usize, child: usize, extent: Extent) -> Result<bool> {
        if let Some(known) = &self.known[parent][child] {
            if same(&known.value, &extent.value) || known.assumed || extent.assumed {
                return Ok(false);
            }
            return Err(self.contradiction(parent, child, known, &extent));
        }
        self.known[parent][child] = Some(extent);
        Ok(true)
    }

    /// Applies the rule until nothing new follows. Each round that continues fills a cell, so it terminates.
    fn close(&mut self) -> Result<()> {
        let mut changed = true;
        while changed {
            changed = false;
            // Inner levels first, so that a contradiction is reported close to its cause.
            for a in (0..6).rev() {
                for b in a + 1..6 {
                    for c in b + 1..6 {
                        changed |= self.close_triple(a, b, c)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn close_triple(&mut self, a: usize, b: usize, c: usize) -> Result<bool> {
        let from = |x: &Extent, y: &Extent| {
            let mut all: Vec<usize> = x.from.iter().chain(&y.from).copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let cells = (
            self.known[a][b].clone(),
            self.known[b][c].clone(),
            self.known[a][c].clone(),
        );
        match cells {
            (Some(ab), Some(bc), _) => {
                let value = fold::mul(int32(&ab.value), int32(&bc.value));
                let extent = Extent::new(value, from(&ab, &bc), ab.assumed || bc.assumed);
                self.learn(a, c, extent)
            }
            (Some(ab), None, Some(ac)) => self.learn_quotient(b, c, &ac, &ab, from(&ac, &ab)),
            (None, Some(bc), Some(ac)) => self.learn_quotient(a, b, &ac, &bc, from(&ac, &bc)),
            _ => Ok(false),
        }
    }

    fn learn_quotient(
        &mut self,
        parent: usize,
        child: usize,
        whole: &Extent,
        part: &Extent,
        from: Vec<usize>,
    ) -> Result<bool> {
        let assumed = whole.assumed || part.assumed;
        let value = match (whole.value.as_int(), part.value.as_int()) {
            (Some(w), Some(p)) if p > 0 && w % p == 0 => Expr::int32((w / p) as i32),
            (Some(_), Some(_)) if assumed => return Ok(false),
            (Some(w), Some(p)) => {
                let message =
                    format!("{w} is not a multiple of {p}: the scope ids of this kernel do not fit together");
                let mut diagnostic = Diagnostic::new(self.place(&from), message);
                diagnostic = self.explain(diagnostic, &from);
                return Err(Box::new(diagnostic));
            }
            // `p * x` divided by `p`: the form of CTAs per cluster and threads per warp with symbolic counts.
            _ => match exact_quotient(&whole.value, &part.value) {
                Some(value) => value,
                None => return Ok(false),
            },
        };
        self.learn(parent, child, Extent::new(value, from, assumed))
    }

    fn contradiction(&self, parent: usize, child: usize, one: &Extent, other: &Extent) -> Box<Diagnostic> {
        let text = |e: &Extent| match e.value.as_int() {
            Some(v) => v.to_string(),
            None => "a symbolic extent".to_string(),
        };
        let both_known = one.value.as_int().is_some() && other.value.as_int().is_some();
        let (parent, child) = (LEVELS[parent], LEVELS[child]);
        let message = if both_known {
            format!(
                "contradicting scope ids: {} {child}s in a {parent} here, {} there",
                text(other),
                text(one)
            )
        } else {
            format!("scope ids that cannot be proved to agree on the number of {child}s in a {parent}")
        };
        let diagnostic = Diagnostic::new(self.place(&other.from), message)
            .label(format!("{} {child}s in a {parent}", text(other)));
        let shown = self.place(&other.from);
        let mut all: Vec<usize> = one.from.iter().chain(&other.from).copied().collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|i| self.declared[*i].span != shown);
        Box::new(self.explain(diagnostic, &all))
    }

    pub(super) fn place(&self, from: &[usize]) -> Span {
        from.last().map_or(Span::NONE, |i| self.declared[*i].span)
    }

    fn explain(&self, mut diagnostic: Diagnostic, from: &[usize]) -> Diagnostic {
        for index in from {
            let one = &self.declared[*index];
            let name = one.def.kind.name();
            let extents = one.def.extents.as_deref().unwrap_or_default();
            let list: Vec<String> = extents
                .iter()
                .map(|e| e.as_int().map_or("…".to_string(), |v| v.to_string()))
                .collect();
            diagnostic = diagnostic.note(
                one.span,
                format!("T.{name}([{}]) is declared here", list.join(", ")),
            );
        }
        diagnostic
    }
}

fn product(extents: &[Expr]) -> Expr {
    extents
        .iter()
        .map(int32)
        .reduce(fold::mul)
        .unwrap_or_else(|| Expr::int32(1))
}

pub(super) fn int32(e: &Expr) -> Expr {
    fold::cast(e.clone(), DType::INT32)
}

/// Whether two extents are provably equal.
pub(super) fn same(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => x == y,
        (None, None) => {
            let (a, b) = (int32(a), int32(b));
            a == b || Analyzer::new().can_prove_equal(&a, &b)
        }
        _ => false,
    }
}

/// `whole / part` where `part` is a syntactic factor of `whole`.
fn exact_quotient(whole: &Expr, part: &Expr) -> Option<Expr> {
    if same(whole, part) {
        return Some(Expr::int32(1));
    }
    let (a, b) = whole.as_binary(BinOp::Mul)?;
    if same(a, part) {
        return Some(b.clone());
    }
    if same(b, part) {
        return Some(a.clone());
    }
    let (x, y) = (b.as_int()?, part.as_int()?);
    (y > 0 && x % y == 0).then(|| fold::mul(a.clone(), Expr::constant(a.dtype, x / y)))
}
