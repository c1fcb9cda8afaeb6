//! SplitUnalignedAccess: a vector access that may not lie at a multiple of its width becomes one access per lane.
//!
//! **Idea.** `A[base:base + 4]` is one instruction where `base` is a multiple of four and a fault where it is not. A
//! load stays one where that is proved, as TVM 0.26's CUDA text has it. A store stays one unless it is *refuted*: a
//! parameter of the kernel or a value from memory is trusted to be a multiple, for the author who vectorized it by hand
//! knows that and the compiler cannot; loop variables and block and thread indices are not trusted, because they take
//! every value. (TVM keeps all vector stores, and faults.)
//!
//! Storage begins at a multiple of any width. A pointer into it (`A.ptr_to([i])`) begins where its index says, and is trusted
//! as a store is.
//!
//! An access that is split has the index `T.Broadcast(base, n) + T.Ramp(0, 1, n)`, which no executor takes for
//! consecutive elements.
//!
//! **Invariants.** Runs on flat buffers, after the last simplification, which would put the index together again.
//! **Cost.** One walk.

use rustc_hash::FxHashMap;

use super::PassContext;
use crate::arith::{Analyzer, ModularSet};
use crate::diagnostic::Diagnostics;
use crate::intrin::Op;
use crate::ir::abi::runs_on_device;
use crate::ir::{
    Buffer, BufferStore, Expr, ExprKind, ForLoop, IRModule, Mutator, PrimFunc, Stmt, StmtKind, Var,
};

/// The alignment that trusted values are assumed to have: larger than any number of lanes.
const TRUSTED: i128 = 1 << 12;

/// Splits the accesses of the device functions.
pub fn run(module: IRModule, _context: &PassContext) -> Result<IRModule, Diagnostics> {
    Ok(module.map(|func| if runs_on_device(&func) { split(func) } else { func }))
}

fn split(func: PrimFunc) -> PrimFunc {
    let mut pass = Split {
        proved: Analyzer::new(),
        trusted: Analyzer::new(),
        starts: FxHashMap::default(),
    };
    for param in &func.params {
        if param.dtype().is_integer() {
            pass.trusted.set_modular(param, ModularSet::new(TRUSTED, 0));
        }
    }
    let body = pass.stmt(&func.body);
    PrimFunc { body, ..func }
}

struct Split {
    /// Facts that hold in any case.
    proved: Analyzer,
    /// Facts that hold if parameters and values from memory are aligned.
    trusted: Analyzer,
    /// Offset in bytes of pointers into their storage.
    starts: FxHashMap<Var, ModularSet>,
}

/// Replaces reads of memory in an index by zero.
struct WithoutMemory;

impl Mutator for WithoutMemory {
    fn expr(&mut self, expr: &Expr) -> Expr {
        match &expr.kind {
            ExprKind::BufferLoad { .. } if expr.dtype.is_integer() && expr.dtype.is_scalar() => {
                Expr::constant(expr.dtype, 0).at(expr.span)
            }
            _ => self.walk_expr(expr),
        }
    }
}

impl Split {
    /// The index of a split access, if the access must be split.
    fn index(&self, buffer: &Buffer, indices: &[Expr], store: bool) -> Option<Vec<Expr>> {
        let [index] = indices else { return None };
        let ExprKind::Ramp { base, stride, lanes } = &index.kind else {
            return None;
        };
        // The largest power of two that divides the width: for three elements, one.
        let power = i128::from(*lanes & lanes.wrapping_neg());
        let one_access = stride.is_int(1) && base.dtype.is_scalar() && power > 1;
        if !one_access || !buffer.dtype.is_scalar() || buffer.dtype.bits < 8 {
            return None;
        }
        let first = if store {
            self.trusted.modular_set(&WithoutMemory.expr(base))
        } else {
            self.proved.modular_set(base)
        };
        let bytes = i128::from(buffer.dtype.bits / 8);
        let aligned = match self.starts.get(&buffer.data) {
            None => first.is_multiple_of(power),
            Some(start) => sum(*start, first, bytes).is_multiple_of(power * bytes),
        };
        if aligned {
            return None;
        }
        let count = Expr::ramp(
            Expr::constant(base.dtype, 0),
            Expr::constant(base.dtype, 1),
            *lanes,
        );
        Some(vec![
            (Expr::broadcast(base.clone(), *lanes) + count).at(index.span),
        ])
    }

    fn learn(&mut self, var: &Var, value: &Expr) {
        if let ExprKind::Call {
            op: Op::AddressOf,
            args,
        } = &value.kind
            && let [place] = &args[..]
            && let ExprKind::BufferLoad { buffer, indices, .. } = &place.kind
            && let [index] = &indices[..]
            && index.dtype.is_scalar()
        {
            let within = self.trusted.modular_set(&WithoutMemory.expr(index));
            let none = ModularSet::new(0, 0);
            let start = self.starts.get(&buffer.data).copied().unwrap_or(none);
            let bytes = i128::from(buffer.dtype.bits / 8) * i128::from(buffer.dtype.lanes);
            self.starts.insert(var.clone(), sum(start, within, bytes));
        }
        self.proved.bind_facts_of(var, value);
        self.trusted.bind_facts_of(var, &WithoutMemory.expr(value));
    }

    /// Learns the values of a loop variable.
    fn learn_loop(&mut self, var: &Var, min: &Expr, step: Option<&Expr>) {
        for (analyzer, min) in [
            (&mut self.proved, min.clone()),
            (&mut self.trusted, WithoutMemory.expr(min)),
        ] {
            let first = analyzer.modular_set(&min);
            let by = match step {
                None => ModularSet::new(0, 1),
                Some(step) => analyzer.modular_set(step),
            };
            // first + by * k: as the union of the first value and the one after.
            let next = ModularSet::new(gcd(first.coeff, gcd(by.coeff, by.base)), first.base);
            analyzer.set_modular(var, next);
        }
    }
}

/// `start + index * bytes`.
fn sum(start: ModularSet, index: ModularSet, bytes: i128) -> ModularSet {
    ModularSet::new(
        gcd(start.coeff, index.coeff * bytes),
        start.base + index.base * bytes,
    )
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

impl Mutator for Split {
    fn expr(&mut self, expr: &Expr) -> Expr {
        if let ExprKind::Let(var, value, _) = &expr.kind {
            self.learn(var, value);
        }
        let new = self.walk_expr(expr);
        match &new.kind {
            ExprKind::BufferLoad {
                buffer,
                indices,
                predicate: None,
            } => match self.index(buffer, indices, false) {
                Some(indices) => Expr::load(buffer, indices).at(new.span),
                None => new,
            },
            _ => new,
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Bind(var, value) => self.learn(var, value),
            StmtKind::For(ForLoop { var, min, step, .. }) => self.learn_loop(var, min, step.as_ref()),
            _ => {}
        }
        let new = self.walk_stmt(stmt);
        match &new.kind {
            StmtKind::BufferStore(BufferStore {
                buffer,
                indices,
                value,
                predicate: None,
            }) => match self.index(buffer, indices, true) {
                Some(indices) => Stmt::store(buffer, indices, value.clone(), new.span),
                None => new,
            },
            _ => new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::print_stmt;
    use crate::ir::{Attrs, DType};
    use crate::source::Span;

    fn text(params: &[&Var], stmts: Vec<Stmt>) -> String {
        let func = PrimFunc {
            params: params.iter().map(|v| (*v).clone()).collect(),
            buffer_map: Vec::new(),
            ret: None,
            attrs: Attrs::new(),
            body: Stmt::seq(stmts),
            span: Span::NONE,
        };
        print_stmt(&split(func).body)
            .lines()
            .filter(|l| l.trim().starts_with("A["))
            .map(|l| format!("{}\n", l.trim()))
            .collect()
    }

    #[test]
    fn accesses_are_split_where_they_may_be_unaligned() {
        let c = |v: i32| Expr::int32(v);
        let buffer = Buffer::fresh("A", vec![c(1024)], DType::FLOAT32, "global", Span::NONE);
        let (n, i, t) = (
            Var::new("n", DType::INT32),
            Var::new("i", DType::INT32),
            Var::new("t", DType::INT32),
        );
        let e = Expr::var;
        let at = |base: Expr| vec![Expr::ramp(base, c(1), 4)];
        let copy =
            |to: Expr, from: Expr| Stmt::store(&buffer, at(to), Expr::load(&buffer, at(from)), Span::NONE);
        let stmts = vec![
            Stmt::bind(&t, e(&i) * c(4), Span::NONE),
            copy(e(&i) * c(4), e(&i) * c(8) + c(4)),
            copy(e(&t) + c(4), e(&i) * c(2)),
            // A store may trust a parameter.
            copy(e(&i) * e(&n), e(&i) * e(&n)),
            copy(e(&i) * c(4) + c(1), e(&t)),
            copy(e(&i) * c(3) + e(&n), c(8)),
        ];
        assert_eq!(
            text(&[&n], stmts),
            "\
A[i * 4:i * 4 + 4] = A[i * 8 + 4:i * 8 + 4 + 4]
A[t + 4:t + 4 + 4] = A[T.Broadcast(i * 2, 4) + T.Ramp(0, 1, 4)]
A[i * n:i * n + 4] = A[T.Broadcast(i * n, 4) + T.Ramp(0, 1, 4)]
A[T.Broadcast(i * 4 + 1, 4) + T.Ramp(0, 1, 4)] = A[t:t + 4]
A[T.Broadcast(i * 3 + n, 4) + T.Ramp(0, 1, 4)] = A[8:12]
"
        );
    }

    #[test]
    fn a_pointer_begins_where_its_index_says() {
        let c = |v: i32| Expr::int32(v);
        let bytes = Buffer::fresh("S", vec![c(1024)], DType::INT8, "global", Span::NONE);
        let access = |start: i32, base: i32| {
            let pointer = Var::new("p", crate::ir::Type::pointer(DType::FLOAT32, "global"));
            let place = Expr::load(&bytes, vec![c(start)]);
            let address = Expr::call(Op::AddressOf, DType::HANDLE, vec![place]);
            let shape = vec![c(64)];
            let view = Buffer::fresh("A", shape, DType::FLOAT32, "global", Span::NONE);
            let view = view.with(|n| n.data = pointer.clone());
            let to = vec![Expr::ramp(c(base), c(1), 4)];
            let value = Expr::broadcast(Expr::float(DType::FLOAT32, 1.0), 4);
            let store = Stmt::store(&view, to, value, Span::NONE);
            text(&[], vec![Stmt::bind(&pointer, address, Span::NONE), store])
        };
        assert_eq!(access(16, 4), "A[4:8] = T.Broadcast(T.float32(1.0), 4)\n");
        assert_eq!(access(4, 3), "A[3:7] = T.Broadcast(T.float32(1.0), 4)\n");
        for split in [access(4, 4), access(1, 0)] {
            assert!(split.contains("T.Ramp(0, 1, 4)"), "{split}");
        }
    }

    #[test]
    fn a_step_tells_what_a_loop_counts() {
        let c = |v: i32| Expr::int32(v);
        let buffer = Buffer::fresh("A", vec![c(1024)], DType::FLOAT32, "global", Span::NONE);
        let mut pass = Split {
            proved: Analyzer::new(),
            trusted: Analyzer::new(),
            starts: FxHashMap::default(),
        };
        let i = Var::new("i", DType::INT32);
        let at = |lanes| vec![Expr::ramp(Expr::var(&i), c(1), lanes)];
        pass.learn_loop(&i, &c(8), Some(&c(4)));
        assert!(pass.index(&buffer, &at(4), true).is_none());
        assert!(pass.index(&buffer, &at(8), true).is_some());
        pass.learn_loop(&i, &c(8), None);
        assert!(pass.index(&buffer, &at(2), true).is_some());
    }
}
