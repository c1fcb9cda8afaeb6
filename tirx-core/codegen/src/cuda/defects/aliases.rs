//! Which pointer parameters of a kernel are declared `__restrict__`.
//!
//! Those of a function with the attribute `tirx.noalias`, except where `__restrict__` makes nvcc generate wrong code;
//! see the first four entries of [the list](super).
//!
//! Where loads can be merged, the pointer that is only read is not `__restrict__`, and neither is a pointer that is
//! loaded from after a store where that load is a whole arm. A pointer that the kernel loads and stores through is not
//! `__restrict__` either if threads synchronize between two of its accesses ([`exchanged`]). All other pointers stay
//! `__restrict__`, so that nvcc may reorder loads.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cuda::analysis::Facts;
use crate::intrin::row::{Memory, Synchronizes};
use crate::intrin::{Effect, Op};
use crate::ir::abi::LaunchParam;
use crate::ir::abi::keys::KERNEL_LAUNCH_PARAMS;
use crate::ir::at;
use crate::ir::{BinOp, Buffer, BufferStore, Expr, ExprKind, PrimFunc, Stmt, StmtKind, Type, Var, Visitor};

/// The pointers of a kernel that are declared `__restrict__`.
#[derive(Debug)]
pub(in crate::cuda) struct Promised {
    any: bool,
    except: FxHashSet<Var>,
}

impl Promised {
    /// Those of one function.
    pub(in crate::cuda) fn from_func(func: &PrimFunc, facts: &Facts) -> Promised {
        let noalias = func.attr("tirx.noalias").and_then(|v| v.as_int());
        let tags = func.attr(KERNEL_LAUNCH_PARAMS).and_then(|v| v.as_list());
        let mut tags = tags.into_iter().flatten().filter_map(|tag| tag.as_str());
        let programmatic = tags.any(|tag| LaunchParam::from_tag(tag) == Some(LaunchParam::Programmatic));
        if noalias.is_none_or(|v| v == 0) || programmatic || facts.waits || facts.other_devices {
            return Promised {
                any: false,
                except: FxHashSet::default(),
            };
        }
        let mut except = merged(func, facts);
        except.extend(exchanged(func));
        Promised { any: true, except }
    }

    /// Whether a parameter may be declared `__restrict__`.
    pub(in crate::cuda) fn holds(&self, var: &Var) -> bool {
        self.any && !self.except.contains(var)
    }
}

fn is_global(pointer: &Var) -> bool {
    matches!(pointer.ty(), Type::Pointer { scope, .. } if &**scope == "global")
}

/// Loads of one width through one pointer.
#[derive(Clone, Debug)]
struct Load {
    from: Var,
    bytes: usize,
    count: u32,
    /// Loads that are the whole value of an arm of a choice, or of a store or a binding.
    whole: u32,
    /// Whether one of these comes after a store through the pointer.
    after_store: bool,
}

/// Loads, one entry per pointer and width.
type Loads = Vec<Load>;

fn add(loads: &mut Loads, load: &Load) {
    match loads
        .iter_mut()
        .find(|l| l.from == load.from && l.bytes == load.bytes)
    {
        Some(known) => {
            known.count += load.count;
            known.whole += load.whole;
            known.after_store |= load.after_store;
        }
        None => loads.push(load.clone()),
    }
}

/// The loads of `all` that are in neither of two parts of it.
fn without(all: &Loads, first: &Loads, second: &Loads) -> Loads {
    let mut rest = all.clone();
    for load in first.iter().chain(second) {
        let mut same = rest.iter_mut();
        if let Some(left) = same.find(|l| l.from == load.from && l.bytes == load.bytes) {
            left.count -= load.count;
            left.whole -= load.whole;
        }
    }
    rest.retain(|load| load.count > 0);
    rest
}

/// Parameters through which threads pass values to each other: both loaded and stored, with a synchronization between
/// two of the accesses.
///
/// A `__restrict__` pointer promises that nobody else writes the memory while this thread uses it, so nvcc keeps a loaded
/// value over the synchronization.
fn exchanged(func: &PrimFunc) -> Vec<Var> {
    let mut walk = Exchanges::default();
    walk.visit_stmt(&func.body);
    let exchanges = |uses: &Uses| {
        uses.separated
            && (uses.loaded && (uses.stored || uses.written_elsewhere)
                || uses.stored && (uses.read_elsewhere || uses.written_elsewhere))
    };
    let found = walk.pointers.into_iter().filter(|(_, uses)| exchanges(uses));
    found.map(|(pointer, _)| pointer).collect()
}

/// The uses of one global pointer.
#[derive(Default)]
struct Uses {
    /// An element is loaded in the text itself.
    loaded: bool,
    /// An element is stored in the text itself.
    stored: bool,
    /// An address is the operand of an operation that reads.
    read_elsewhere: bool,
    /// An address is the operand of an operation that writes, or may write.
    written_elsewhere: bool,
    /// Synchronizations before the last use.
    synchronizations: u32,
    /// A synchronization stands between two uses.
    separated: bool,
}

/// Collects the uses of global pointers in the order of execution.
#[derive(Default)]
struct Exchanges {
    pointers: FxHashMap<Var, Uses>,
    /// The pointer of each use so far.
    order: Vec<Var>,
    /// Synchronizations so far.
    synchronizations: u32,
}

impl Exchanges {
    fn add(&mut self, pointer: &Var, note: impl FnOnce(&mut Uses)) {
        if !is_global(pointer) {
            return;
        }
        let now = self.synchronizations;
        let uses = self.pointers.entry(pointer.clone()).or_insert_with(|| Uses {
            synchronizations: now,
            ..Uses::default()
        });
        uses.separated |= uses.synchronizations != now;
        uses.synchronizations = now;
        note(uses);
        self.order.push(pointer.clone());
    }

    /// An address as an operand of an operation.
    fn pass(&mut self, pointer: &Var, memory: Memory) {
        self.add(pointer, |uses| {
            uses.read_elsewhere |= memory != Memory::Writes;
            uses.written_elsewhere |= memory != Memory::Reads;
        });
    }

    /// An operand of an operation with an effect on memory.
    fn operand(&mut self, arg: &Expr, memory: Memory) {
        match &arg.kind {
            ExprKind::Var(pointer) => self.pass(pointer, memory),
            ExprKind::Call {
                op: Op::AddressOf,
                args,
            } => {
                for arg in args {
                    match &arg.kind {
                        ExprKind::BufferLoad { buffer, indices, .. } => {
                            indices.iter().for_each(|e| self.visit_expr(e));
                            self.pass(&buffer.data, memory);
                        }
                        _ => self.visit_expr(arg),
                    }
                }
            }
            _ => self.visit_expr(arg),
        }
    }
}

impl Visitor for Exchanges {
    fn visit_expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Call {
                op: Op::AddressOf, ..
            }
            | ExprKind::Var(_) => self.operand(expr, Memory::None),
            ExprKind::Call { op, args } => {
                let traits = op.traits();
                args.iter().for_each(|arg| self.operand(arg, traits.memory));
                let alone = matches!(traits.synchronizes, Synchronizes::Nobody | Synchronizes::Lanes);
                self.synchronizations += u32::from(!alone || op.effect() == Effect::Opaque);
            }
            ExprKind::BufferLoad { buffer, .. } => {
                self.walk_expr(expr);
                self.add(&buffer.data, |uses| uses.loaded = true);
            }
            _ => self.walk_expr(expr),
        }
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        let (uses, synchronizations) = (self.order.len(), self.synchronizations);
        self.walk_stmt(stmt);
        match &stmt.kind {
            StmtKind::BufferStore(BufferStore { buffer, .. }) => {
                self.add(&buffer.data, |uses| uses.stored = true);
            }
            StmtKind::For(_) | StmtKind::While(..) if self.synchronizations != synchronizations => {
                // One iteration's uses are before the synchronization that the next iteration's are after.
                for pointer in &self.order[uses..] {
                    if let Some(uses) = self.pointers.get_mut(pointer) {
                        uses.separated = true;
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_buffer_def(&mut self, _buffer: &Buffer) {}
}

/// Parameters of which a load can be merged with another load, so that a stored value would not be seen.
fn merged(func: &PrimFunc, facts: &Facts) -> FxHashSet<Var> {
    let mut walk = Branches {
        facts,
        here: Loads::new(),
        stored: FxHashSet::default(),
        choices: Vec::new(),
    };
    walk.visit_stmt(&func.body);
    let mut found = FxHashSet::default();
    for (first, second) in &walk.choices {
        let elsewhere = without(&walk.here, first, second);
        for (one, other, chosen) in [
            (first, second, true),
            (first, &elsewhere, false),
            (second, &elsewhere, false),
        ] {
            for (a, b) in [(one, other), (other, one)] {
                for load in a {
                    let lost = match facts.is_constant(&load.from) {
                        // The merged load is treated as a load of constant memory.
                        true => b
                            .iter()
                            .any(|l| l.bytes == load.bytes && !facts.is_constant(&l.from)),
                        // The merged load is treated as one of other memory than was stored to.
                        false => {
                            let merges = |l: &Load| {
                                l.bytes == load.bytes && l.whole > 0 && (chosen || l.from != load.from)
                            };
                            load.after_store && load.whole > 0 && b.iter().any(merges)
                        }
                    };
                    if lost {
                        found.insert(load.from.clone());
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
    /// Loads of the part being walked.
    here: Loads,
    /// Pointers that something was stored through.
    stored: FxHashSet<Var>,
    /// Loads of both branches of each choice.
    choices: Vec<(Loads, Loads)>,
}

impl Branches<'_> {
    /// The loads of a part.
    fn part(&mut self, walk: impl FnOnce(&mut Self)) -> Loads {
        let around = std::mem::take(&mut self.here);
        walk(self);
        std::mem::replace(&mut self.here, around)
    }

    /// A load of global memory; `whole` if it is the whole value.
    fn load(&mut self, expr: &Expr, whole: bool) {
        let ExprKind::BufferLoad { buffer, .. } = &expr.kind else {
            return;
        };
        if !is_global(&buffer.data) {
            return;
        }
        let escapes = self.facts.pointers.get(&buffer.data).is_some_and(|u| u.escapes);
        let load = Load {
            from: buffer.data.clone(),
            bytes: expr.dtype.bytes(),
            count: 1,
            whole: u32::from(whole),
            after_store: whole && (escapes || self.stored.contains(&buffer.data)),
        };
        add(&mut self.here, &load);
    }

    /// A stored or bound value, or an arm of a choice.
    fn value(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::BufferLoad { .. } => {
                self.load(expr, true);
                self.walk_expr(expr);
            }
            _ => self.visit_expr(expr),
        }
    }

    fn choice(&mut self, first: Loads, second: Loads) {
        for load in first.iter().chain(&second) {
            add(&mut self.here, load);
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
            } => (
                &args[at!(IfThenElse.cond)],
                &args[at!(IfThenElse.t)],
                Some(&args[at!(IfThenElse.f)]),
            ),
            ExprKind::Binary(BinOp::And | BinOp::Or, a, b) => (a, b, None),
            ExprKind::BufferLoad { .. } => {
                self.load(expr, false);
                return self.walk_expr(expr);
            }
            _ => return self.walk_expr(expr),
        };
        self.visit_expr(condition);
        let first = self.part(|walk| walk.value(first));
        let second = self.part(|walk| second.into_iter().for_each(|e| walk.value(e)));
        self.choice(first, second);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        let (condition, then, otherwise) = match &stmt.kind {
            StmtKind::If(condition, then, otherwise) => (condition, then, otherwise),
            StmtKind::Bind(_, value) => return self.value(value),
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) => {
                indices.iter().chain(predicate).for_each(|e| self.visit_expr(e));
                self.value(value);
                self.stored.insert(buffer.data.clone());
                return;
            }
            StmtKind::For(_) | StmtKind::While(..) => {
                // A value that one iteration stores may be loaded by the next.
                let mut stores = Stores(&mut self.stored);
                stores.visit_stmt(stmt);
                return self.walk_stmt(stmt);
            }
            _ => return self.walk_stmt(stmt),
        };
        self.visit_expr(condition);
        let first = self.part(|walk| walk.visit_stmt(then));
        let second = self.part(|walk| otherwise.iter().for_each(|s| walk.visit_stmt(s)));
        self.choice(first, second);
    }
}

/// Collects the pointers that something is stored through.
struct Stores<'a>(&'a mut FxHashSet<Var>);

impl Visitor for Stores<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let StmtKind::BufferStore(BufferStore { buffer, .. }) = &stmt.kind {
            self.0.insert(buffer.data.clone());
        }
        self.walk_stmt(stmt);
    }
}
