//! LowerWarpMemory: memory of scope `warp` becomes registers of the lanes and shuffles.
//!
//! **Idea.** A buffer of scope `warp` with `N` elements is spread over the lanes of a warp, `N / 32` registers each.
//! Which lane holds an element follows from how the program writes it: every store's index must be
//! `lane * m + rest` with one constant `m`, and then element `e` lies
//!
//! * in lane `(e / m) % 32`,
//! * there in register `e / (32 * m) * m + e % m`.
//!
//! A store goes to a lane's own register. A load whose element is provably the lane's own reads the register; any other
//! is a shuffle from the lane that holds it, over the lanes that are active.
//!
//! **Phases.** Find `threadIdx.x`; collect the stores of each warp buffer and their coefficient `m`; rewrite.
//!
//! Lanes chosen by their bits (`lane ^ 3`, `lane & 28`): the bits within a warp and those above it are separated, as
//! `(high ^ high) * 32 + (low ^ low)`, and the low ones are a number below 32 of which nothing else is known.
//!
//! **Invariants.** A store reaches its own lane only, and a load's register number is the same in every lane (it may not
//! depend on the lane); what cannot be proved is an error at the access. Afterwards no buffer has scope `warp`.
//!
//! **Cost.** Nothing for functions without warp memory but one walk; else two walks.

use crate::ir::abi::keys;
use crate::ir::at;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{PassContext, Target};
use crate::arith::{Analyzer, ConstIntBound, fold};
use crate::diagnostic::{Diagnostic, Diagnostics, Result};
use crate::intrin::Op;
use crate::ir::{
    Attr, AttrNode, Buffer, BufferStore, DType, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc, Stmt,
    StmtKind, Type, Var, Visitor, substitute,
};
use crate::source::Span;

/// Lowers the warp memory of the device functions.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    module.try_map(|func| {
        if func.attr("calling_conv").and_then(|c| c.as_int()) != Some(2) {
            return Ok(func);
        }
        Ok(lower(func)?)
    })
}

/// Whether a statement allocates warp memory.
fn has_warp_memory(stmt: &Stmt) -> bool {
    struct Search(bool);
    impl Visitor for Search {
        fn visit_expr(&mut self, _: &Expr) {}
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let StmtKind::AllocBuffer(buffer, _) = &stmt.kind {
                self.0 |= buffer.scope() == "warp";
            } else {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut search = Search(false);
    search.visit_stmt(stmt);
    search.0
}

fn lower(func: PrimFunc) -> Result<PrimFunc> {
    if !has_warp_memory(&func.body) {
        return Ok(func);
    }
    let mut collect = Collect::default();
    collect.visit_stmt(&func.body);
    let Some(thread) = collect.thread else {
        let message = "warp memory needs threads: the kernel has no threadIdx.x";
        return Err(Box::new(Diagnostic::new(func.span, message)));
    };
    let mut lower = Lower {
        lane: Var::new("lane", DType::INT32),
        warp: Var::new("warp", DType::INT32),
        thread,
        analyzer: collect.analyzer,
        parts: FxHashMap::default(),
        buffers: FxHashMap::default(),
        bits: Vec::new(),
        failed: None,
    };
    let lanes = ConstIntBound::new(0, Target::WARP_SIZE - 1);
    lower.analyzer.set_bound(&lower.lane, lanes);
    let threads = collect.threads.unwrap_or(1024).clamp(1, 1024);
    let warps = ConstIntBound::new(0, (threads - 1) / Target::WARP_SIZE);
    lower.analyzer.set_bound(&lower.warp, warps);
    for (buffer, index, span) in &collect.stores {
        lower.learn(buffer, index, *span)?;
    }
    for (data, (buffer, span)) in collect
        .order
        .iter()
        .filter_map(|d| Some((d, collect.sizes.get(d)?)))
    {
        lower.divide(data, buffer, *span)?;
    }
    let body = lower.stmt(&func.body);
    match lower.failed {
        Some(error) => Err(error),
        None => Ok(PrimFunc { body, ..func }),
    }
}

/// Warp buffers, their stores, and the facts known about variables.
#[derive(Default)]
struct Collect {
    thread: Option<Var>,
    /// The extent of `threadIdx.x`, where it is a number.
    threads: Option<i128>,
    order: Vec<Var>,
    sizes: FxHashMap<Var, (Buffer, Span)>,
    stores: Vec<(Buffer, Expr, Span)>,
    analyzer: Analyzer,
}

impl Visitor for Collect {
    fn visit_expr(&mut self, _: &Expr) {}

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Attr(Attr {
                node: AttrNode::IterVar(iter),
                key,
                value,
                ..
            }) if &**key == keys::THREAD_EXTENT => {
                if &*iter.thread_tag == "threadIdx.x" {
                    if self.thread.is_none() {
                        self.thread = Some(iter.var.clone());
                        self.threads = value.as_int();
                    }
                } else {
                    self.analyzer
                        .bind(&iter.var, &Expr::constant(value.dtype, 0), value);
                }
            }
            StmtKind::For(ForLoop { var, min, extent, .. }) => {
                // Only bounds are asked for: they are asked again when the whole function is known.
                self.analyzer.bind_range(var, min, extent);
            }
            StmtKind::Bind(var, value) if var.dtype().is_integer() => {
                if crate::ir::is_pure(value) {
                    self.analyzer.bind_value(var, value);
                } else {
                    self.analyzer.bind_facts_of(var, value);
                }
            }
            StmtKind::AllocBuffer(buffer, _) if buffer.scope() == "warp" => {
                self.order.push(buffer.data.clone());
                self.sizes
                    .insert(buffer.data.clone(), (buffer.clone(), stmt.span));
            }
            StmtKind::BufferStore(BufferStore { buffer, indices, .. }) if buffer.scope() == "warp" => {
                if let [index] = &indices[..] {
                    self.stores.push((buffer.clone(), index.clone(), stmt.span));
                }
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// How a buffer is distributed over the lanes.
struct Part {
    /// Number of neighbouring elements in one lane.
    coefficient: i128,
    span: Span,
    /// Registers per lane; known once the size has been divided.
    registers: Option<(Var, i128)>,
}

struct Lower {
    lane: Var,
    warp: Var,
    thread: Var,
    analyzer: Analyzer,
    parts: FxHashMap<Var, Part>,
    buffers: FxHashMap<Buffer, Buffer>,
    /// Lane expressions with bit operations: a variable, and the expression it stands for.
    bits: Vec<(Var, Expr)>,
    failed: Option<Box<Diagnostic>>,
}

const BITS: [Op; 3] = [Op::BitwiseAnd, Op::BitwiseOr, Op::BitwiseXor];

/// Separates bit operations on integers into the bits within a warp and those above.
struct TakeBits<'a>(&'a mut Lower);

impl Mutator for TakeBits<'_> {
    fn expr(&mut self, expr: &Expr) -> Expr {
        let (op, a, b) = match &expr.kind {
            ExprKind::Call { op, args } if BITS.contains(op) => {
                let x = self.expr(&args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.x)]);
                let y = self.expr(&args[at!(BitwiseAnd | BitwiseOr | BitwiseXor.y)]);
                (*op, x, y)
            }
            _ => return self.walk_expr(expr),
        };
        let lower = &mut *self.0;
        let size = || Expr::constant(expr.dtype, Target::WARP_SIZE);
        let mut both = |take: fn(Expr, Expr) -> Expr| {
            let parts = [&a, &b].map(|e| lower.analyzer.simplify(&take(e.clone(), size())));
            let whole = Expr::call(op, expr.dtype, parts.into());
            lower.analyzer.simplify(&whole)
        };
        let (high, low) = (both(fold::floordiv), both(fold::floormod));
        let low = lower.bits_of(low);
        fold::add(fold::mul(high, size()), low)
    }
}

impl Lower {
    /// A new variable for a value below the warp size; the analyzer knows only its range.
    fn bits_of(&mut self, low: Expr) -> Expr {
        if low.as_int().is_some() || low.as_var().is_some() {
            return low;
        }
        if let Some((var, _)) = self.bits.iter().find(|(_, e)| *e == low) {
            return Expr::var(var);
        }
        let var = Var::new("bits", low.dtype);
        self.analyzer
            .set_bound(&var, ConstIntBound::new(0, Target::WARP_SIZE - 1));
        self.bits.push((var.clone(), low));
        Expr::var(&var)
    }

    /// An index by lane: `threadIdx.x` is written as `warp * 32 + lane`.
    fn by_lane(&mut self, index: &Expr) -> Expr {
        let thread = fold::add(
            fold::mul(Expr::var(&self.warp), Expr::int32(Target::WARP_SIZE as i32)),
            Expr::var(&self.lane),
        );
        let known = substitute(index, &|v| self.analyzer.value_of(v).cloned());
        let known = substitute(&known, &|v| (*v == self.thread).then(|| thread.clone()));
        let known = TakeBits(self).expr(&known);
        self.analyzer.simplify(&known)
    }

    /// Derives the coefficient of a store's index.
    fn learn(&mut self, buffer: &Buffer, index: &Expr, span: Span) -> Result<()> {
        let here = self.by_lane(index);
        let next = Expr::var(&self.lane) + Expr::int32(1);
        let there = substitute(&here, &|v| (*v == self.lane).then(|| next.clone()));
        let step = self.analyzer.simplify(&fold::sub(there, here)).as_int();
        let Some(step) = step.filter(|s| *s > 0) else {
            let message = format!(
                "a store to warp memory \"{}\" whose index is not lane * constant + rest",
                buffer.name
            );
            let error =
                Diagnostic::new(span, message).help("index it by the lane, as in w[lane] or w[lane * 4 + i]");
            return Err(Box::new(error));
        };
        match self.parts.get(&buffer.data) {
            Some(part) if part.coefficient != step => {
                let message = format!(
                    "stores to warp memory \"{}\" give lanes {step} elements here and {} there",
                    buffer.name, part.coefficient
                );
                Err(Box::new(
                    Diagnostic::new(span, message).note(part.span, "the other store"),
                ))
            }
            Some(_) => Ok(()),
            None => {
                let part = Part {
                    coefficient: step,
                    span,
                    registers: None,
                };
                self.parts.insert(buffer.data.clone(), part);
                Ok(())
            }
        }
    }

    fn divide(&mut self, data: &Var, buffer: &Buffer, span: Span) -> Result<()> {
        let part = self.parts.entry(data.clone()).or_insert(Part {
            coefficient: 1,
            span,
            registers: None,
        });
        let whole = Target::WARP_SIZE * part.coefficient;
        let Some(size) = buffer.const_size().filter(|s| *s % whole == 0) else {
            let message = format!(
                "the size of warp memory \"{}\" must be a multiple of {whole}",
                buffer.name
            );
            return Err(Box::new(Diagnostic::new(span.or(buffer.span), message)));
        };
        let ty = match data.ty() {
            Type::Pointer { element, .. } => Type::pointer(*element, "local"),
            other => other.clone(),
        };
        part.registers = Some((data.retyped(ty), size / Target::WARP_SIZE));
        Ok(())
    }

    /// The lane and the register of an element, both expressed by lane.
    fn place(&mut self, buffer: &Buffer, index: &Expr) -> Option<(Expr, Expr)> {
        let m = self.parts.get(&buffer.data)?.coefficient;
        let here = self.by_lane(index);
        let constant = |v: i128| Expr::constant(here.dtype, v);
        let lane = fold::floormod(
            fold::floordiv(here.clone(), constant(m)),
            constant(Target::WARP_SIZE),
        );
        let block = fold::floordiv(here.clone(), constant(m * Target::WARP_SIZE));
        let register = fold::add(
            fold::mul(block, constant(m)),
            fold::floormod(here.clone(), constant(m)),
        );
        Some((self.analyzer.simplify(&lane), self.analyzer.simplify(&register)))
    }

    /// Converts an expression by lane back to the program's variables.
    fn back(&self, expr: &Expr) -> Expr {
        let size = || Expr::int32(Target::WARP_SIZE as i32);
        let thread = || Expr::var(&self.thread);
        // A later entry may use the variables of earlier ones, so they are replaced in reverse order.
        let mut expr = expr.clone();
        for (var, low) in self.bits.iter().rev() {
            expr = substitute(&expr, &|v| (v == var).then(|| low.clone()));
        }
        substitute(&expr, &|v| match v {
            v if *v == self.lane => Some(fold::floormod(thread(), size())),
            v if *v == self.warp => Some(fold::floordiv(thread(), size())),
            _ => None,
        })
    }

    fn fail(&mut self, span: Span, message: String) {
        self.failed
            .get_or_insert_with(|| Box::new(Diagnostic::new(span, message)));
    }

    fn registers(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let Some(Part {
            registers: Some((data, count)),
            ..
        }) = self.parts.get(&buffer.data)
        else {
            return buffer.clone();
        };
        let registers = buffer.with(|n| {
            n.data = data.clone();
            n.shape = vec![Expr::int32(*count as i32)];
            n.layout = None;
        });
        self.buffers.insert(buffer.clone(), registers.clone());
        registers
    }

    fn load(&mut self, buffer: &Buffer, index: &Expr, span: Span) -> Option<Expr> {
        let (lane, register) = self.place(buffer, index)?;
        let flat = self.registers(buffer);
        let own = self.analyzer.can_prove_equal(&lane, &Expr::var(&self.lane));
        let (lane, register_here) = (self.back(&lane), self.back(&register));
        let value = Expr::load(&flat, vec![register_here]).at(span);
        if own {
            return Some(value);
        }
        let mut lanes = FxHashSet::default();
        vars_of(&register, &mut lanes);
        // Bits of the lane number count as the lane, unless they contain none of it.
        for (var, low) in self.bits.iter().rev() {
            if lanes.contains(var) {
                vars_of(low, &mut lanes);
            }
        }
        if lanes.contains(&self.lane) {
            let message = format!(
                "a load from warp memory \"{}\" of an element whose register depends on the lane",
                buffer.name
            );
            self.fail(span, message);
        }
        let mask = Expr::call(Op::TvmWarpActivemask, DType::UINT32, vec![]);
        let shuffle = Op::TvmWarpShuffle.call().set("mask", mask).set("value", value);
        let shuffle = shuffle
            .set("warp_id", lane)
            .set("width", Target::WARP_SIZE as i32);
        let shuffle = shuffle.set("warp_size", Target::WARP_SIZE as i32);
        Some(shuffle.at(span).build())
    }
}

fn vars_of(expr: &Expr, out: &mut FxHashSet<Var>) {
    if let ExprKind::Var(v) = &expr.kind {
        out.insert(v.clone());
    }
    expr.operands().for_each(|e| vars_of(e, out));
}

impl Mutator for Lower {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::BufferLoad { buffer, indices, .. } if buffer.scope() == "warp" => match &indices[..] {
                [index] => {
                    let index = self.expr(index);
                    let load = self.load(buffer, &index, expr.span);
                    load.unwrap_or_else(|| expr.clone())
                }
                _ => expr.clone(),
            },
            ExprKind::Var(v) if self.parts.contains_key(v) => {
                let message = format!("the address of warp memory \"{}\" cannot be taken", v.name());
                self.fail(expr.span, message);
                expr.clone()
            }
            _ => self.walk_expr(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::AllocBuffer(buffer, annotations) if buffer.scope() == "warp" => {
                let flat = self.registers(buffer);
                Stmt::new(StmtKind::AllocBuffer(flat, annotations.clone()), stmt.span)
            }
            StmtKind::DeclBuffer(buffer) if buffer.scope() == "warp" => {
                self.fail(
                    stmt.span,
                    format!("no view over warp memory: \"{}\"", buffer.name),
                );
                stmt.clone()
            }
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate,
            }) if buffer.scope() == "warp" => {
                let value = self.expr(value);
                let Some((lane, register)) = indices.first().and_then(|i| self.place(buffer, i)) else {
                    return stmt.clone();
                };
                if !self.analyzer.can_prove_equal(&lane, &Expr::var(&self.lane)) {
                    let message = format!(
                        "a store to warp memory \"{}\" that may reach another lane",
                        buffer.name
                    );
                    self.fail(stmt.span, message);
                }
                let new = BufferStore {
                    buffer: self.registers(buffer),
                    indices: vec![self.back(&register)],
                    value,
                    predicate: predicate.clone(),
                };
                Stmt::new(new, stmt.span)
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::print_stmt;
    use crate::ir::{Attrs, IterKind, IterVar};

    /// `w[store] = 1; out[0] = w[load]` by the thread's number, over `size` elements.
    fn program(size: i32, store: impl Fn(Expr) -> Expr, load: impl Fn(Expr) -> Expr) -> Result<String> {
        let w = Buffer::fresh("w", vec![Expr::int32(size)], DType::FLOAT32, "warp", Span::NONE);
        let out = Buffer::fresh("out", vec![Expr::int32(1)], DType::FLOAT32, "local", Span::NONE);
        let thread = Var::new("tx", DType::INT32);
        let tx = || Expr::var(&thread);
        let body = Stmt::seq([
            Stmt::new(StmtKind::AllocBuffer(w.clone(), vec![]), Span::NONE),
            Stmt::new(StmtKind::AllocBuffer(out.clone(), vec![]), Span::NONE),
            Stmt::store(
                &w,
                vec![store(tx())],
                Expr::float(DType::FLOAT32, 1.0),
                Span::NONE,
            ),
            Stmt::store(
                &out,
                vec![Expr::int32(0)],
                Expr::load(&w, vec![load(tx())]),
                Span::NONE,
            ),
        ]);
        let iter = IterVar {
            var: thread.clone(),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: "threadIdx.x".into(),
        };
        let func = PrimFunc {
            params: vec![],
            buffer_map: vec![],
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::attr(
                AttrNode::IterVar(iter),
                "thread_extent",
                Expr::int32(64),
                body,
                Span::NONE,
            ),
            span: Span::NONE,
        };
        lower(func).map(|f| print_stmt(&f.body))
    }

    fn modulo(e: Expr, m: i32) -> Expr {
        fold::floormod(e, Expr::int32(m))
    }

    #[test]
    fn a_neighbour_is_read_by_shuffle() {
        let text = program(32, |x| modulo(x, 32), |x| modulo(x + Expr::int32(1), 32)).unwrap();
        assert!(text.contains("w = T.alloc_local((1,)"), "{text}");
        assert!(
            text.contains("T.tvm_warp_shuffle(T.tvm_warp_activemask(), w"),
            "{text}"
        );
        let own = program(32, |x| modulo(x, 32), |x| modulo(x, 32)).unwrap();
        assert!(!own.contains("shuffle"), "{own}");
    }

    #[test]
    fn neighbours_of_one_lane_are_its_registers() {
        let text = program(
            128,
            |x| modulo(x, 32) * Expr::int32(4) + Expr::int32(3),
            |x| modulo(x * Expr::int32(4) + Expr::int32(17), 128),
        )
        .unwrap();
        assert!(text.contains("w[3] = T.float32(1.0)"), "{text}");
        assert!(
            text.contains("T.tvm_warp_shuffle(T.tvm_warp_activemask(), w[1]"),
            "{text}"
        );
    }

    #[test]
    fn lanes_are_chosen_by_their_bits() {
        let bits = |op, a, b: i32| Expr::call(op, DType::INT32, vec![a, Expr::int32(b)]);
        let text = program(32, |x| modulo(x, 32), |x| bits(Op::BitwiseXor, modulo(x, 32), 3)).unwrap();
        let shuffle = "T.tvm_warp_shuffle(T.tvm_warp_activemask(), w[0], T.bitwise_xor(tx % 32, 3), 32, 32)";
        assert!(text.contains(shuffle), "{text}");
        // Two warps: the bit above the lane's is the warp's.
        let text = program(64, |x| x, |x| bits(Op::BitwiseXor, x, 1)).unwrap();
        assert!(
            text.contains("w[tx // 32], T.bitwise_xor(tx % 32, 1), 32, 32)"),
            "{text}"
        );
        let text = program(64, |x| x, |x| bits(Op::BitwiseXor, x, 33)).unwrap();
        assert!(text.contains("w[T.bitwise_xor(tx // 32, 1)]"), "{text}");
        // A register chosen by the lane's bits differs between lanes.
        let chosen = |x: Expr| bits(Op::BitwiseAnd, x, 1) * Expr::int32(32) + Expr::int32(3);
        let error = program(64, |x| x, chosen).unwrap_err().message;
        assert!(error.contains("register depends on the lane"), "{error}");
    }

    #[test]
    fn what_cannot_be_spread_is_refused() {
        let error = |r: Result<String>| r.unwrap_err().message;
        assert_eq!(
            error(program(32, |_| Expr::int32(5), |x| modulo(x, 32))),
            "a store to warp memory \"w\" whose index is not lane * constant + rest"
        );
        assert_eq!(
            error(program(33, |x| modulo(x, 32), |x| modulo(x, 32))),
            "the size of warp memory \"w\" must be a multiple of 32"
        );
    }
}
