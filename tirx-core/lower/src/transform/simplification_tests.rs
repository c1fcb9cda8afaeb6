//! The passes that simplify, vectorize, unroll and eliminate common subexpressions, each on a body built by hand.

use super::*;
use crate::arith::fold;
use crate::intrin::Op;
use crate::ir::print_func;
use crate::ir::{
    AttrNode, Attrs, BinOp, Buffer, BufferNode, DType, Expr, ForKind, ForLoop, IRModule, IterKind, IterVar,
    PrimFunc, Stmt, Type, Var,
};
use crate::source::{SourceMap, Span};

/// Variables and buffers that the bodies use.
struct Parts {
    a: Buffer,
    b: Buffer,
    d: Buffer,
    n: Var,
    wide: Var,
    tx: Var,
}

fn flat(name: &str, dtype: DType) -> Buffer {
    let data = Var::new(format!("{name}_ptr"), Type::pointer(dtype, "global"));
    Buffer::new(BufferNode::flat(
        name,
        data,
        dtype,
        vec![Expr::int32(4096)],
        Span::NONE,
    ))
}

impl Parts {
    fn new() -> Parts {
        Parts {
            a: flat("A", DType::FLOAT32),
            b: flat("B", DType::FLOAT32),
            d: flat("D", DType::INT32),
            n: Var::new("n", DType::INT32),
            wide: Var::new("wide", DType::INT64),
            tx: Var::new("tx", DType::INT32),
        }
    }

    fn tx(&self) -> Expr {
        Expr::var(&self.tx)
    }

    fn n(&self) -> Expr {
        Expr::var(&self.n)
    }

    fn module(&self, body: Stmt) -> IRModule {
        let thread = IterVar {
            var: self.tx.clone(),
            dom: None,
            kind: IterKind::ThreadIndex,
            thread_tag: "threadIdx.x".into(),
        };
        let body = Stmt::attr(
            AttrNode::IterVar(thread),
            "thread_extent",
            int(256),
            body,
            Span::NONE,
        );
        let buffers = [&self.a, &self.b, &self.d]
            .map(|b| (Var::new(format!("{}_handle", b.name), DType::HANDLE), b.clone()));
        let mut params: Vec<Var> = buffers.iter().map(|(v, _)| v.clone()).collect();
        params.extend([self.n.clone(), self.wide.clone()]);
        let func = PrimFunc {
            params,
            buffer_map: buffers.into(),
            ret: None,
            attrs: Attrs::new(),
            body,
            span: Span::NONE,
        };
        IRModule::single("main", func, SourceMap::new())
    }

    /// The body after a pass, as text without the lines around it and without indentation of the launch.
    fn after(&self, run: PassFn, body: Stmt) -> String {
        let module = run(self.module(body), &context()).unwrap();
        let text = print_func("main", &module.functions[0].1);
        let lines = text.lines().skip_while(|l| !l.contains("launch_thread")).skip(1);
        let lines: Vec<&str> = lines.map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
        lines.join("\n").trim_end().to_string()
    }
}

fn context() -> PassContext {
    PassContext::new(Target::SM_90A, &Options::default())
}

fn int(v: i32) -> Expr {
    Expr::int32(v)
}

fn float(v: f64) -> Expr {
    Expr::float(DType::FLOAT32, v)
}

fn load(buffer: &Buffer, index: Expr) -> Expr {
    Expr::load(buffer, vec![index])
}

fn store(buffer: &Buffer, index: Expr, value: Expr) -> Stmt {
    Stmt::store(buffer, vec![index], value, Span::NONE)
}

fn bin(op: BinOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

fn lt(a: Expr, b: Expr) -> Expr {
    bin(BinOp::Lt, a, b)
}

fn when(condition: Expr, then: Stmt) -> Stmt {
    Stmt::if_else(condition, then, None, Span::NONE)
}

fn looped(var: &Var, extent: Expr, kind: ForKind, body: Stmt) -> Stmt {
    Stmt::new(ForLoop::new(kind, var, extent, body), Span::NONE)
}

#[test]
fn bindings_bounds_and_conditions_simplify() {
    let p = Parts::new();
    let x = Var::new("x", DType::INT32);
    let body = Stmt::seq([
        Stmt::bind(&x, p.tx() * int(2) + int(1), Span::NONE),
        store(&p.b, Expr::var(&x) + Expr::var(&x), float(1.0)),
        store(
            &p.b,
            fold::add(
                fold::floordiv(p.tx(), int(32)) * int(32),
                fold::floormod(p.tx(), int(32)),
            ),
            float(2.0),
        ),
        when(lt(p.tx(), int(256)), store(&p.b, p.tx(), float(3.0))),
        when(lt(p.tx(), int(0)), store(&p.b, p.tx(), float(4.0))),
        when(
            bin(BinOp::Gt, p.tx(), int(5)),
            Stmt::if_else(
                bin(BinOp::Ge, p.tx(), int(5)),
                store(&p.b, p.tx(), float(5.0)),
                Some(store(&p.b, p.tx(), float(6.0))),
                Span::NONE,
            ),
        ),
        store(&p.b, p.tx(), load(&p.b, p.tx())),
    ]);
    assert_eq!(
        p.after(stmt_simplify::run, body),
        "x: T.let[T.int32] = tx * 2 + 1\n\
         B[tx * 4 + 2] = T.float32(1.0)\n\
         B[tx] = T.float32(2.0)\n\
         B[tx] = T.float32(3.0)\n\
         if 5 < tx:\n    B[tx] = T.float32(5.0)"
    );
}

/// Facts about memory do not survive a store.
#[test]
fn conditions_on_memory_are_not_remembered() {
    let p = Parts::new();
    let small = || lt(load(&p.d, int(0)), int(5));
    let body = when(
        small(),
        Stmt::seq([
            store(&p.d, int(0), int(7)),
            when(small(), store(&p.d, int(1), int(2))),
        ]),
    );
    let text = p.after(stmt_simplify::run, body);
    assert_eq!(text.matches("if D[0] < 5:").count(), 2, "{text}");
}

/// A chain of bindings that doubles its value at each step stays small.
#[test]
fn doubling_bindings_stay_linear() {
    let p = Parts::new();
    let mut last = p.n();
    let mut body = Vec::new();
    for i in 0..64 {
        let var = Var::new(format!("x{i}"), DType::INT32);
        body.push(Stmt::bind(&var, last.clone() * last, Span::NONE));
        last = Expr::var(&var);
    }
    body.push(store(&p.d, int(0), last));
    let text = p.after(stmt_simplify::run, Stmt::seq(body));
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn wide_indices_narrow_where_they_fit() {
    let p = Parts::new();
    let (i, j) = (Var::new("i", DType::INT64), Var::new("j", DType::INT64));
    let tx = p.tx().cast(DType::INT64);
    let body = Stmt::seq([
        looped(
            &i,
            Expr::int64(8),
            ForKind::Serial,
            store(
                &p.b,
                Expr::var(&i) * Expr::int64(8) + tx.clone(),
                Expr::var(&i).cast(DType::FLOAT32),
            ),
        ),
        looped(
            &j,
            Expr::var(&p.wide),
            ForKind::Serial,
            store(&p.b, Expr::var(&j), float(1.0)),
        ),
        when(lt(tx.clone(), Expr::var(&p.wide)), store(&p.b, tx, float(2.0))),
    ]);
    assert_eq!(
        p.after(narrow_data_type::run, body),
        "for i in range(8):\n    B[i * 8 + tx] = T.Cast(\"float32\", i)\n\
         for j in range(wide):\n    B[j] = T.float32(1.0)\n\
         if T.Cast(\"int64\", tx) < wide:\n    B[tx] = T.float32(2.0)"
    );
}

#[test]
fn bits_of_wide_indices_narrow_where_the_shift_is_one_of_int32() {
    let p = Parts::new();
    let i = Var::new("i", DType::INT64);
    let bits = |op, amount| Expr::call(op, DType::INT64, vec![Expr::var(&i), Expr::int64(amount)]);
    let at = |index: Expr| {
        let body = looped(
            &i,
            Expr::int64(8),
            ForKind::Serial,
            store(&p.b, index, float(1.0)),
        );
        p.after(narrow_data_type::run, body)
    };
    let (doubled, masked) = (bits(Op::ShiftLeft, 1), bits(Op::BitwiseAnd, 3));
    let narrow = "for i in range(8):\n    B[T.shift_left(i, 1) + T.bitwise_and(i, 3)] = T.float32(1.0)";
    assert_eq!(at(doubled + masked), narrow);
    let wide = "for i in range(8):\n    B[T.shift_right(T.Cast(\"int64\", i), T.int64(40))] = T.float32(1.0)";
    assert_eq!(at(bits(Op::ShiftRight, 40)), wide);
}

#[test]
fn wide_vectors_narrow_lane_by_lane() {
    let p = Parts::new();
    let pair = Var::new("pair", DType::INT64.with_lanes(2));
    let body = Stmt::seq([
        Stmt::bind(&pair, Expr::broadcast(Expr::int64(-2), 2), Span::NONE),
        store(
            &p.a,
            Expr::ramp(int(0), int(1), 2),
            Expr::var(&pair).cast(DType::FLOAT32.with_lanes(2)),
        ),
    ]);
    assert_eq!(
        p.after(narrow_data_type::run, body),
        "pair: T.let[T.int32x2] = T.Broadcast(-2, 2)\nA[0:2] = T.Cast(\"float32x2\", pair)"
    );
}

#[test]
fn contiguous_loops_become_vectors() {
    let p = Parts::new();
    let (v, x) = (Var::new("v", DType::INT32), Var::new("x", DType::FLOAT32));
    let at = || p.tx() * int(4) + Expr::var(&v);
    let body = looped(
        &v,
        int(4),
        ForKind::Vectorized,
        Stmt::seq([
            Stmt::bind(&x, load(&p.a, at()) * float(2.0), Span::NONE),
            store(
                &p.b,
                at(),
                Expr::call(Op::Exp, DType::FLOAT32, vec![Expr::var(&x)]),
            ),
        ]),
    );
    assert_eq!(
        p.after(vectorize_loop::run, body),
        "x: T.let[T.float32x4] = A[tx * 4:tx * 4 + 4] * T.Broadcast(T.float32(2.0), 4)\n\
         B[tx * 4:tx * 4 + 4] = T.exp(x)"
    );
}

#[test]
fn lanes_of_a_select_are_computed_whatever_its_condition() {
    let simplified = |kind| {
        let p = Parts::new();
        let v = Var::new("v", DType::INT32);
        let near = Expr::binary(BinOp::Min, p.tx(), int(15));
        let chosen = Expr::select(lt(p.tx(), int(9)), load(&p.a, near), float(0.0));
        let body = store(&p.b, p.tx() * int(4) + Expr::var(&v), chosen);
        p.after(stmt_simplify::run, looped(&v, int(4), kind, body))
    };
    let select = |loop_, index| {
        format!("for v in {loop_}(4):\n    B[tx * 4 + v] = T.Select(tx < 9, A[{index}], T.float32(0.0))")
    };
    assert_eq!(simplified(ForKind::Serial), select("range", "tx"));
    assert_eq!(
        simplified(ForKind::Vectorized),
        select("T.vectorized", "T.min(tx, 15)")
    );
}

#[test]
fn what_has_no_vector_form_is_serial() {
    let p = Parts::new();
    let v = Var::new("v", DType::INT32);
    let at = || p.tx() * int(4) + Expr::var(&v);
    let guarded = looped(
        &v,
        int(4),
        ForKind::Vectorized,
        when(lt(at(), p.n()), store(&p.b, at(), load(&p.a, at()))),
    );
    assert_eq!(
        p.after(vectorize_loop::run, guarded),
        "for v_s in range(4):\n    if tx * 4 + v_s < n:\n        B[tx * 4 + v_s] = A[tx * 4 + v_s]"
    );
    let w = Var::new("w", DType::INT32);
    let sum = looped(
        &w,
        int(4),
        ForKind::Vectorized,
        store(&p.b, int(0), load(&p.b, int(0)) + load(&p.a, Expr::var(&w))),
    );
    assert_eq!(
        p.after(vectorize_loop::run, sum),
        "for w in range(4):\n    B[0] = B[0] + A[w]"
    );
    let u = Var::new("u", DType::INT32);
    let endless = looped(
        &u,
        p.n(),
        ForKind::Vectorized,
        store(&p.b, Expr::var(&u), float(0.0)),
    );
    let error = vectorize_loop::run(p.module(endless), &context()).unwrap_err();
    assert!(error.to_string().contains("must be constant"), "{error}");
}

#[test]
fn long_vectors_are_split() {
    let p = Parts::new();
    let v = Var::new("v", DType::INT32);
    let body = looped(
        &v,
        int(32),
        ForKind::Vectorized,
        store(&p.b, Expr::var(&v), float(0.0)),
    );
    assert_eq!(
        p.after(vectorize_loop::run, body),
        "for v_o in range(4):\n    B[v_o * 8:v_o * 8 + 8] = T.Broadcast(T.float32(0.0), 8)"
    );
}

#[test]
fn unrolled_turns_declare_their_own() {
    let p = Parts::new();
    let (i, x) = (Var::new("i", DType::INT32), Var::new("x", DType::FLOAT32));
    let body = looped(
        &i,
        int(2),
        ForKind::Unrolled,
        Stmt::seq([
            Stmt::bind(&x, load(&p.a, Expr::var(&i)), Span::NONE),
            store(&p.b, Expr::var(&i), Expr::var(&x) * Expr::var(&x)),
        ]),
    );
    assert_eq!(
        p.after(unroll_loop::run, body),
        "x: T.let[T.float32] = A[0]\nB[0] = x * x\nx_1: T.let[T.float32] = A[1]\nB[1] = x_1 * x_1"
    );
    let j = Var::new("j", DType::INT32);
    let leave = Stmt::evaluate(Expr::call(Op::BreakLoop, DType::VOID, vec![]));
    let body = looped(
        &j,
        int(4),
        ForKind::Unrolled,
        when(lt(p.n(), Expr::var(&j)), leave),
    );
    assert!(
        p.after(unroll_loop::run, body)
            .starts_with("for j in T.unroll(4):")
    );
    let k = Var::new("k", DType::INT32);
    let huge = looped(
        &k,
        int(1 << 30),
        ForKind::Unrolled,
        store(&p.b, Expr::var(&k), float(0.0)),
    );
    let error = unroll_loop::run(p.module(huge), &context()).unwrap_err();
    assert!(error.to_string().contains("unrolling"), "{error}");
}

#[test]
fn repeated_arithmetic_gets_names() {
    let p = Parts::new();
    let row = || p.tx() * p.n();
    let body = Stmt::seq([
        store(
            &p.b,
            row() + int(5),
            load(&p.a, row() + int(5)) + load(&p.a, row() + int(5)),
        ),
        when(lt(p.n(), int(3)), store(&p.b, row() + int(6), float(1.0))),
        // Memory is read again each time.
        store(&p.d, int(0), load(&p.d, int(1)) * load(&p.d, int(1))),
        store(&p.d, int(2), load(&p.d, int(1)) * load(&p.d, int(1))),
        // A division by a value that may be zero stays under its guard.
        when(
            lt(int(0), p.n()),
            store(&p.d, fold::floordiv(p.tx(), p.n()), fold::floordiv(p.tx(), p.n())),
        ),
        when(
            lt(int(1), p.n()),
            store(&p.d, int(3), fold::floordiv(p.tx(), p.n())),
        ),
    ]);
    assert_eq!(
        p.after(common_subexpr_elim::run, body),
        "cse_v1: T.let[T.int32] = tx * n\n\
         cse_v2: T.let[T.int32] = cse_v1 + 5\n\
         B[cse_v2] = A[cse_v2] + A[cse_v2]\n\
         if n < 3:\n    B[cse_v1 + 6] = T.float32(1.0)\n\
         D[0] = D[1] * D[1]\n\
         D[2] = D[1] * D[1]\n\
         if 0 < n:\n    D[tx // n] = tx // n\n\
         if 1 < n:\n    D[3] = tx // n"
    );
}

#[test]
fn sums_near_the_end_of_the_dtype_stay_under_their_condition() {
    let p = Parts::new();
    let large = || p.n() + int(i32::MAX - 10);
    let body = Stmt::seq([
        when(lt(p.n(), int(3)), store(&p.d, int(0), large())),
        when(lt(p.n(), int(5)), store(&p.d, int(1), large())),
        when(lt(p.n(), int(7)), store(&p.d, int(2), large() * large())),
    ]);
    assert_eq!(
        p.after(common_subexpr_elim::run, body),
        "if n < 3:\n    D[0] = n + 2147483637\n\
         if n < 5:\n    D[1] = n + 2147483637\n\
         if n < 7:\n    D[2] = (n + 2147483637) * (n + 2147483637)"
    );
}
