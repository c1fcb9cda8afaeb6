//! Which pointers of a kernel are promised to alias no other (`__restrict__`)?
//!
//! Those of a function that says so (`tirx.noalias`), but for two promises over which nvcc 13.0 breaks kernels. Both come
//! of loads that it takes for loads of memory that never changes (`ld.global.nc`), because the pointer is promised to have
//! no alias and nothing is stored through it.
//!
//! - Of two loads of which one is done, it makes one load of a chosen address: of `c ? A[i] : B[j]`, of an `if` with or
//!   without `else`. If one load is of what is only read and the other of what the kernel writes, the one load is still
//!   taken for one of memory that never changes, and what the kernel wrote is not seen. Without the promise for what is
//!   only read it is not; all that is written keeps the promise, so that loads stay as free to move as they were.
//! - Such loads move up over `griddepcontrol.wait`, before the kernel that is waited for has written.

use rustc_hash::FxHashSet;

use super::analysis::Facts;
use crate::codegen::host::LaunchParam;
use crate::intrin::Op;
use crate::ir::{BinOp, Expr, ExprKind, PrimFunc, Stmt, StmtKind, Type, Var, Visitor};
use crate::transform::split_host_device::KERNEL_LAUNCH_PARAMS;

/// The pointers of a kernel that are promised to alias no other.
#[derive(Debug)]
pub(super) struct Promised {
    any: bool,
    except: FxHashSet<Var>,
}

impl Promised {
    /// Those of a function.
    pub(super) fn of(func: &PrimFunc, facts: &Facts) -> Promised {
        let noalias = func.attr("tirx.noalias").and_then(|v| v.as_int());
        let tags = func.attr(KERNEL_LAUNCH_PARAMS).and_then(|v| v.as_list());
        let mut tags = tags.into_iter().flatten().filter_map(|tag| tag.as_str());
        let programmatic = tags.any(|tag| LaunchParam::from_tag(tag) == Some(LaunchParam::Programmatic));
        if noalias.is_none_or(|v| v == 0) || programmatic || facts.waits {
            return Promised {
                any: false,
                except: FxHashSet::default(),
            };
        }
        let mut pointers = facts.pointers.iter();
        let except = match pointers.any(|(var, use_)| use_.read && is_global(var) && facts.is_constant(var)) {
            true => merged(func, facts),
            false => FxHashSet::default(),
        };
        Promised { any: true, except }
    }

    /// Whether a parameter is promised to have no alias.
    pub(super) fn holds(&self, var: &Var) -> bool {
        self.any && !self.except.contains(var)
    }
}

fn is_global(pointer: &Var) -> bool {
    matches!(pointer.ty(), Type::Pointer { scope, .. } if &**scope == "global")
}

/// Loads by what they load from (a parameter that is only read, or any memory that is not), and their bytes, counted.
type Loads = Vec<(Option<Var>, usize, u32)>;

fn add(loads: &mut Loads, from: Option<&Var>, bytes: usize, count: u32) {
    match loads
        .iter_mut()
        .find(|(v, b, _)| v.as_ref() == from && *b == bytes)
    {
        Some((_, _, known)) => *known += count,
        None => loads.push((from.cloned(), bytes, count)),
    }
}

/// Parameters that are only read, of which a load can become one with a load of what is written.
fn merged(func: &PrimFunc, facts: &Facts) -> FxHashSet<Var> {
    let mut walk = Branches {
        facts,
        here: Loads::new(),
        choices: Vec::new(),
    };
    walk.visit_stmt(&func.body);
    let all = walk.here;
    let mut found = FxHashSet::default();
    for (first, second) in &walk.choices {
        let elsewhere: Loads = all
            .iter()
            .filter_map(|(var, bytes, count)| {
                let within = |loads: &Loads| {
                    let same = loads.iter().find(|(v, b, _)| v == var && b == bytes);
                    same.map_or(0, |(_, _, count)| *count)
                };
                let rest = count - within(first) - within(second);
                (rest > 0).then(|| (var.clone(), *bytes, rest))
            })
            .collect();
        for (one, other) in [(first, second), (first, &elsewhere), (second, &elsewhere)] {
            for (a, b) in [(one, other), (other, one)] {
                for (var, bytes, _) in a {
                    let written = b.iter().any(|(v, b, _)| v.is_none() && b == bytes);
                    if let (Some(var), true) = (var, written) {
                        found.insert(var.clone());
                    }
                }
            }
        }
    }
    found
}

/// Collects what the branches of each choice load.
struct Branches<'a> {
    facts: &'a Facts,
    /// Loads of what is being walked.
    here: Loads,
    /// Loads of both branches of each choice.
    choices: Vec<(Loads, Loads)>,
}

impl Branches<'_> {
    /// What a part loads.
    fn part(&mut self, walk: impl FnOnce(&mut Self)) -> Loads {
        let around = std::mem::take(&mut self.here);
        walk(self);
        std::mem::replace(&mut self.here, around)
    }

    fn choice(&mut self, first: Loads, second: Loads) {
        for (var, bytes, count) in first.iter().chain(&second) {
            add(&mut self.here, var.as_ref(), *bytes, *count);
        }
        if !(first.is_empty() && second.is_empty()) {
            self.choices.push((first, second));
        }
    }
}

impl Visitor for Branches<'_> {
    fn visit_expr(&mut self, expr: &Expr) {
        let (condition, first, second) = match &expr.kind {
            ExprKind::Select(c, a, b) => (c, a, Some(b)),
            ExprKind::Call {
                op: Op::IfThenElse,
                args,
            } if args.len() == 3 => (&args[0], &args[1], Some(&args[2])),
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => (a, b, None),
            ExprKind::BufferLoad { buffer, .. } => {
                if is_global(&buffer.data) {
                    let constant = self.facts.is_constant(&buffer.data);
                    let from = constant.then_some(&buffer.data);
                    add(&mut self.here, from, expr.dtype.bytes(), 1);
                }
                return self.walk_expr(expr);
            }
            _ => return self.walk_expr(expr),
        };
        self.visit_expr(condition);
        let first = self.part(|walk| walk.visit_expr(first));
        let second = self.part(|walk| second.into_iter().for_each(|e| walk.visit_expr(e)));
        self.choice(first, second);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        let StmtKind::If(condition, then, otherwise) = &stmt.kind else {
            return self.walk_stmt(stmt);
        };
        self.visit_expr(condition);
        let first = self.part(|walk| walk.visit_stmt(then));
        let second = self.part(|walk| otherwise.iter().for_each(|s| walk.visit_stmt(s)));
        self.choice(first, second);
    }
}
