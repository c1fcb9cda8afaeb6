//! What expressions compute: arithmetic, conversions, rounding, memory of every width.

mod kernel;

use half::{bf16, f16};
use kernel::*;
use tirx_core::intrin::Op;
use tirx_core::ir::{BinOp, DType, Expr, Stmt, Var};
use tirx_core::source::Span;

/// Runs `f(A[tx], B[tx])` over 64 threads.
fn binary_i32(f: impl Fn(Expr, Expr) -> Expr, a: &[i32], b: &[i32]) -> Vec<i32> {
    let mut k = kernel(1, 64);
    let (ba, bb, bc) = (
        k.tensor("A", I32, 64),
        k.tensor("B", I32, 64),
        k.tensor("C", I32, 64),
    );
    let tx = k.tx();
    let value = f(load(&ba, tx.clone()), load(&bb, tx.clone()));
    let (da, db, dc) = (
        i32s(a.iter().copied().cycle().take(64)),
        i32s(b.iter().copied().cycle().take(64)),
        zeros(64),
    );
    let body = [k.store(&bc, tx, value)];
    k.run(body, &[&da, &db, &dc]).unwrap();
    dc.i32()[..a.len()].to_vec()
}

#[test]
fn adds_vectors_over_many_blocks() {
    let mut k = kernel(10, 256);
    let n = 2560;
    let (a, b, c) = (
        k.tensor("A", F32, n),
        k.tensor("B", F32, n),
        k.tensor("C", F32, n),
    );
    let i = k.bx() * int(256) + k.tx();
    let body = [k.store(&c, i.clone(), load(&a, i.clone()) + load(&b, i))];
    let (da, db) = (
        f32s((0..n).map(|i| i as f32)),
        f32s((0..n).map(|i| 0.5 * i as f32)),
    );
    let dc = zeros(n as usize);
    let stats = k.run(body, &[&da, &db, &dc]).unwrap();
    for (i, c) in dc.f32().into_iter().enumerate() {
        assert_eq!(c, i as f32 + 0.5 * i as f32);
    }
    // Index: multiply and add; two loads, an add, a store; and the loads' index additions.
    assert!(stats.lane_ops >= 2560 * 6, "{}", stats.lane_ops);
}

#[test]
fn integer_division_rounds_as_asked() {
    let (a, b) = ([7, -7, 7, -7, i32::MIN], [2, 2, -2, -2, -1]);
    let run = |o| binary_i32(|x, y| op(o, x, y), &a, &b);
    assert_eq!(run(BinOp::Div), [3, -3, -3, 3, i32::MIN]);
    assert_eq!(run(BinOp::Mod), [1, -1, 1, -1, 0]);
    assert_eq!(run(BinOp::FloorDiv), [3, -4, -4, 3, i32::MIN]);
    assert_eq!(run(BinOp::FloorMod), [1, 1, -1, -1, 0]);
    // Powers of two are shifts and masks.
    let by = |o, d| binary_i32(|x, _| op(o, x, int(d)), &a, &b);
    assert_eq!(by(BinOp::FloorDiv, 4), [1, -2, 1, -2, i32::MIN / 4]);
    assert_eq!(by(BinOp::FloorMod, 4), [3, 1, 3, 1, 0]);
    assert_eq!(by(BinOp::Div, 4), [1, -1, 1, -1, i32::MIN / 4]);
}

#[test]
fn bit_operations_and_shifts_follow_ptx() {
    let i = |o| binary_i32(|x, y| call(o, I32, vec![x, y]), &[-8, 1, 6, 5], &[1, 33, 3, 0]);
    assert_eq!(i(Op::ShiftLeft), [-16, 0, 48, 5]);
    assert_eq!(i(Op::ShiftRight), [-4, 0, 0, 5]);
    assert_eq!(i(Op::BitwiseXor), [-7, 32, 5, 5]);
    let unary = |o| binary_i32(|x, _| call(o, I32, vec![x]), &[-1, 1, 0], &[0]);
    assert_eq!(unary(Op::Popcount), [32, 1, 0]);
    assert_eq!(unary(Op::Clz), [0, 31, 32]);
    assert_eq!(unary(Op::BitwiseNot), [0, -2, -1]);
}

#[test]
fn narrow_integers_wrap() {
    let narrow = |dtype: DType| {
        binary_i32(
            |x, y| (x.cast(dtype) * y.cast(dtype)).cast(I32),
            &[200, -3, 127, 1000],
            &[2, 100, 127, 1000],
        )
    };
    let expect = |f: fn(i32, i32) -> i32| vec![f(200, 2), f(-3, 100), f(127, 127), f(1000, 1000)];
    assert_eq!(
        narrow(DType::INT8),
        expect(|a, b| (a as i8).wrapping_mul(b as i8) as i32)
    );
    assert_eq!(
        narrow(DType::UINT8),
        expect(|a, b| (a as u8).wrapping_mul(b as u8) as i32)
    );
    assert_eq!(
        narrow(DType::INT16),
        expect(|a, b| (a as i16).wrapping_mul(b as i16) as i32)
    );
    assert_eq!(
        narrow(DType::UINT16),
        expect(|a, b| (a as u16).wrapping_mul(b as u16) as i32)
    );
    assert_eq!(narrow(DType::INT64), expect(|a, b| a * b));
}

#[test]
fn float16_and_bfloat16_round_each_operation() {
    for (dtype, bits) in [(DType::FLOAT16, false), (DType::BFLOAT16, true)] {
        let round = |x: f32| {
            if bits {
                bf16::from_f32(x).to_bits()
            } else {
                f16::from_f32(x).to_bits()
            }
        };
        let value = |b: u16| {
            if bits {
                bf16::from_bits(b).to_f32()
            } else {
                f16::from_bits(b).to_f32()
            }
        };
        let mut k = kernel(4, 256);
        let n = 1024;
        let (a, b, c) = (
            k.tensor("A", dtype, n),
            k.tensor("B", dtype, n),
            k.tensor("C", dtype, 3 * n),
        );
        let i = k.bx() * int(256) + k.tx();
        let (x, y) = (load(&a, i.clone()), load(&b, i.clone()));
        let third = Expr::float(dtype, 1.0 / 3.0);
        let body = [
            k.store(&c, i.clone(), x.clone() * y.clone() + x.clone()),
            k.store(
                &c,
                i.clone() + int(n),
                op(BinOp::Div, x.clone(), y.clone()) - third,
            ),
            k.store(&c, i + int(2 * n), call(Op::Fma, dtype, vec![x.clone(), y, x])),
        ];
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            round((state >> 8) as f32 / 65536.0 - 100.0)
        };
        let (va, vb): (Vec<u16>, Vec<u16>) = (0..n).map(|_| (random(), random())).unzip();
        let (da, db) = (u16s(va.iter().copied()), u16s(vb.iter().copied()));
        let dc = u16s(vec![0; 3 * n as usize]);
        k.run(body, &[&da, &db, &dc]).unwrap();
        let out = dc.u16();
        for i in 0..n as usize {
            let (x, y) = (value(va[i]), value(vb[i]));
            let product = value(round(x * y));
            assert_eq!(out[i], round(product + x), "{x} {y}");
            let quotient = value(round(x / y));
            assert_eq!(out[i + n as usize], round(quotient - value(round(1.0 / 3.0))));
            let exact = x as f64 * y as f64 + x as f64;
            let once = if bits {
                bf16::from_f64(exact).to_bits()
            } else {
                f16::from_f64(exact).to_bits()
            };
            assert_eq!(out[i + 2 * n as usize], once);
        }
    }
}

#[test]
fn conversions_saturate_and_round() {
    let mut k = kernel(1, 32);
    let (a, b) = (k.tensor("A", F32, 8), k.tensor("B", I32, 32));
    let tx = k.tx();
    let to = |dtype: DType| load(&a, tx.clone()).cast(dtype).cast(I32);
    let body = when(
        lt(tx.clone(), int(8)),
        [
            k.store(&b, tx.clone(), to(I32)),
            k.store(&b, tx.clone() + int(8), to(DType::UINT8)),
            k.store(&b, tx.clone() + int(16), to(DType::INT64)),
            k.store(&b, tx.clone() + int(24), to(DType::BOOL)),
        ],
    );
    let da = f32s([1.9, -1.9, 3e9, -3e9, f32::NAN, 255.5, 0.0, 300.0]);
    let db = zeros(32);
    k.run([body], &[&da, &db]).unwrap();
    let out = db.i32();
    assert_eq!(out[..8], [1, -1, i32::MAX, i32::MIN, 0, 255, 0, 300]);
    // Through 32 bits, as CUDA C++ does.
    assert_eq!(
        out[8..16],
        [1, 0, 3_000_000_000u32 as u8 as i32, 0, 0, 255, 0, 44]
    );
    assert_eq!(
        out[16..24],
        [
            1,
            -1,
            3_000_000_000u32 as i32,
            -3_000_000_000i64 as i32,
            0,
            255,
            0,
            300
        ]
    );
    assert_eq!(out[24..32], [1, 1, 1, 1, 1, 1, 0, 1]);
}

#[test]
fn doubles_and_long_integers_are_64_bit() {
    let mut k = kernel(1, 32);
    let (a, b) = (k.tensor("A", DType::FLOAT64, 32), k.tensor("B", DType::INT64, 32));
    let tx = k.tx();
    let long = |e: Expr| e.cast(DType::INT64);
    let body = [
        k.store(
            &a,
            tx.clone(),
            call(Op::Sqrt, DType::FLOAT64, vec![load(&a, tx.clone())]),
        ),
        k.store(
            &b,
            tx.clone(),
            long(tx.clone()) * Expr::int64(1 << 33) - Expr::int64(5),
        ),
    ];
    let da = f64s((0..32).map(|i| i as f64));
    let db = i64s([0; 32]);
    k.run(body, &[&da, &db]).unwrap();
    for i in 0..32 {
        assert_eq!(da.f64()[i], (i as f64).sqrt());
        assert_eq!(db.i64()[i], i as i64 * (1 << 33) - 5);
    }
}

#[test]
fn small_elements_share_words() {
    let mut k = kernel(2, 100);
    let (a, b) = (k.tensor("A", DType::UINT8, 200), k.tensor("B", DType::INT8, 200));
    let i = k.bx() * int(100) + k.tx();
    let body = [
        k.store(&a, i.clone(), i.clone().cast(DType::UINT8)),
        k.store(&b, i.clone(), (int(0) - i).cast(DType::INT8)),
    ];
    let (da, db) = (bytes(&[0; 200]), bytes(&[0; 200]));
    k.run(body, &[&da, &db]).unwrap();
    assert!(da.bytes().iter().enumerate().all(|(i, v)| *v == i as u8));
    assert!(
        db.bytes()
            .iter()
            .enumerate()
            .all(|(i, v)| *v as i8 == -(i as i32) as i8)
    );
}

#[test]
fn vector_accesses_move_consecutive_elements() {
    let mut k = kernel(1, 32);
    let (a, b) = (k.tensor("A", F32, 128), k.tensor("B", F32, 128));
    let ramp = |base: Expr| Expr::ramp(base, int(1), 4);
    let v = buffer("v", F32, 4, "local");
    let i = k.tx() * int(4);
    let reversed = Expr::ramp(int(3), int(-1), 4);
    let body = [
        alloc(&v),
        k.store(
            &v,
            ramp(int(0)),
            load(&a, ramp(i.clone())) * Expr::broadcast(float(2.0), 4),
        ),
        k.store(&b, ramp(i), load(&v, reversed)),
    ];
    let (da, db) = (f32s((0..128).map(|i| i as f32)), zeros(128));
    k.run(body, &[&da, &db]).unwrap();
    for (i, b) in db.f32().into_iter().enumerate() {
        assert_eq!(b, 2.0 * (i / 4 * 4 + 3 - i % 4) as f32);
    }
}

#[test]
fn views_reinterpret_local_and_shared_memory() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", U32, 64);
    let (words, shared) = (buffer("w", U32, 1, "local"), buffer("s", U32, 32, "shared"));
    let halves = view("h", F16, 2, &words);
    let shared_halves = view("sh", F16, 64, &shared);
    let tx = k.tx();
    let body = [
        alloc(&words),
        alloc(&shared),
        k.store(&halves, int(0), tx.clone().cast(F16)),
        k.store(&halves, int(1), Expr::float(F16, -1.0)),
        k.store(&b, tx.clone(), load(&words, int(0))),
        k.store(&shared_halves, tx.clone() * int(2), Expr::float(F16, 0.5)),
        k.store(&shared_halves, tx.clone() * int(2) + int(1), tx.clone().cast(F16)),
        k.store(&b, tx.clone() + int(32), load(&shared, tx)),
    ];
    let db = zeros(64);
    k.run(body, &[&db]).unwrap();
    let out = db.i32();
    for i in 0..32 {
        let half = |x: f32| f16::from_f32(x).to_bits() as u32;
        assert_eq!(out[i] as u32, half(i as f32) | half(-1.0) << 16);
        assert_eq!(out[i + 32] as u32, half(0.5) | half(i as f32) << 16);
    }
}

#[test]
fn reinterpret_keeps_bits() {
    let got = binary_i32(
        |x, _| {
            let f = call(Op::Reinterpret, F32, vec![x]);
            call(Op::Reinterpret, I32, vec![f * float(2.0)])
        },
        &[1.5f32.to_bits() as i32],
        &[0],
    );
    assert_eq!(got, [3f32.to_bits() as i32]);
    let got = binary_i32(
        |x, _| {
            let halves = call(Op::Reinterpret, F16.with_lanes(2), vec![x]);
            let swapped = Expr::new(
                tirx_core::ir::ExprKind::Shuffle {
                    vectors: vec![halves],
                    indices: vec![int(1), int(0)],
                },
                F16.with_lanes(2),
                Span::NONE,
            );
            call(Op::Reinterpret, I32, vec![swapped])
        },
        &[0x3c00_4000],
        &[0],
    );
    assert_eq!(got, [0x4000_3c00]);
}

#[test]
fn choices_are_lazy_where_they_must_be() {
    // Only lanes in range may load.
    let mut k = kernel(1, 64);
    let (a, b) = (k.tensor("A", I32, 40), k.tensor("B", I32, 64));
    let tx = k.tx();
    let inside = lt(tx.clone(), int(40));
    let value = call(
        Op::IfThenElse,
        I32,
        vec![inside.clone(), load(&a, tx.clone()), int(-1)],
    );
    let positive = op(
        BinOp::And,
        inside.clone(),
        op(BinOp::Gt, load(&a, tx.clone()), int(10)),
    );
    // As CUDA's `?:`, which a Select becomes.
    let chosen = Expr::select(inside, load(&a, tx.clone()), int(-1));
    let positive = op(BinOp::And, positive, eq(chosen, load(&b, tx.clone())));
    let body = [
        k.store(&b, tx.clone(), value),
        when(positive, [k.store(&b, tx.clone(), int(1000))]),
        k.store(
            &b,
            tx.clone(),
            Expr::select(eq(tx.clone(), int(3)), int(7), load(&b, tx)),
        ),
    ];
    let (da, db) = (i32s(0..40), zeros(64));
    k.run(body, &[&da, &db]).unwrap();
    for (i, v) in db.i32().into_iter().enumerate() {
        let expected = match i {
            3 => 7,
            11..40 => 1000,
            0..40 => i as i32,
            _ => -1,
        };
        assert_eq!(v, expected, "{i}");
    }
}

#[test]
fn float8_goes_through_its_code() {
    let dtype: DType = "float8_e4m3fn".parse().unwrap();
    let mut k = kernel(1, 32);
    let (a, b, c) = (
        k.tensor("A", F32, 32),
        k.tensor("B", dtype, 32),
        k.tensor("C", F32, 32),
    );
    let tx = k.tx();
    let body = [
        k.store(&b, tx.clone(), load(&a, tx.clone()).cast(dtype)),
        k.store(&c, tx.clone(), load(&b, tx).cast(F32)),
    ];
    let da = f32s((0..32).map(|i| match i {
        0 => 1.0,
        1 => 1.06,
        2 => 1e6,
        3 => -0.001,
        _ => i as f32,
    }));
    let (db, dc) = (bytes(&[0; 32]), zeros(32));
    k.run(body, &[&da, &db, &dc]).unwrap();
    assert_eq!(db.bytes()[0], 0x38);
    assert_eq!(dc.f32()[..5], [1.0, 1.0, 448.0, -0.001953125, 4.0]);
}

#[test]
fn let_and_bind_name_values() {
    let (x, y) = (Var::new("x", I32), Var::new("y", I32));
    let mut k = kernel(1, 32);
    let b = k.tensor("B", I32, 32);
    let cell = buffer("c", I32, 1, "local");
    let tx = k.tx();
    let body = [
        alloc(&cell),
        k.store(&cell, int(0), tx.clone()),
        // A binding keeps the value it was made with.
        bind(&x, load(&cell, int(0))),
        k.store(&cell, int(0), int(100)),
        k.store(
            &b,
            tx,
            Expr::let_in(
                &y,
                Expr::var(&x) * int(2),
                Expr::var(&y) + Expr::var(&y) + load(&cell, int(0)),
            ),
        ),
    ];
    let db = zeros(32);
    k.run(body, &[&db]).unwrap();
    assert!(db.i32().iter().enumerate().all(|(i, v)| *v == 4 * i as i32 + 100));
}

#[test]
fn scalars_and_bounds_come_from_parameters() {
    let mut k = kernel(2, 64);
    let b = k.tensor("B", F32, 100);
    let (n, s) = (k.scalar("n", I32), k.scalar("s", F32));
    let i = Var::new("i", I32);
    let bind_i = bind(&i, k.bx() * int(64) + k.tx());
    let i = Expr::var(&i);
    let body = [
        bind_i,
        when(lt(i.clone(), n), [k.store(&b, i.clone(), i.cast(F32) * s)]),
    ];
    let db = zeros(100);
    let (n, s) = (Data::Scalar(100), Data::Scalar(0.25f32.to_bits() as u64));
    k.run(body, &[&db, &n, &s]).unwrap();
    assert!(db.f32().iter().enumerate().all(|(i, v)| *v == i as f32 * 0.25));
}

#[test]
fn unsupported_operators_are_diagnosed_with_their_line() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let span = k.line("B[tx] = T.tvm_thread_allreduce(..)");
    let value = call(Op::TvmThreadAllreduce, F32, vec![float(1.0); 4]).at(span);
    let module = k.module([Stmt::store(&b, vec![k.tx()], value, span)]);
    let error = tirx_sim::Program::compile(&module, "kernel").unwrap_err();
    let text = error.render(&module.sources);
    assert!(text.contains("does not run T.tvm_thread_allreduce"), "{text}");
    assert!(text.contains("kernel.py:1:1"), "{text}");
    let missing = tirx_sim::Program::compile(&module, "other").unwrap_err();
    assert!(missing.to_string().contains("no function `other`"));
}

#[test]
fn local_arrays_with_uniform_indices() {
    // Written iteration by iteration, read in another order, with an index that is the same for all lanes.
    let (i, j) = (Var::new("i", I32), Var::new("j", I32));
    let mut k = kernel(1, 40);
    let (b, c) = (k.tensor("B", I32, 40), k.tensor("C", DType::INT64, 40));
    let n = k.scalar("n", I32);
    let (r, sum) = (buffer("r", I32, 12, "local"), buffer("sum", I32, 1, "local"));
    let wide = buffer("w", DType::INT64, 3, "local");
    let (iv, jv) = (Expr::var(&i), Expr::var(&j));
    let at = iv.clone() * int(4) + jv.clone();
    let body = [
        alloc(&r),
        alloc(&sum),
        alloc(&wide),
        range(
            &i,
            int(3),
            [range(&j, int(4), [k.store(&r, at.clone(), k.tx() + at)])],
        ),
        range(
            &i,
            int(3),
            [k.store(&wide, iv.clone(), iv.clone().cast(DType::INT64))],
        ),
        k.store(&sum, int(0), int(0)),
        range(
            &i,
            n.clone(),
            [k.store(&sum, int(0), load(&sum, int(0)) + load(&r, int(11) - iv.clone()))],
        ),
        k.store(&b, k.tx(), load(&sum, int(0)) + load(&r, int(2))),
        k.store(&c, k.tx(), load(&wide, n - int(1))),
    ];
    let run = |n: u64| {
        let (db, dc) = (zeros(40), i64s([0; 40]));
        k.run(body.clone(), &[&db, &dc, &Data::Scalar(n)])
            .map(|_| (db.i32(), dc.i64()))
    };
    let (b, c) = run(3).unwrap();
    for i in 0..40 {
        assert_eq!(b[i], 3 * i as i32 + 11 + 10 + 9 + i as i32 + 2);
        assert_eq!(c[i], 2);
    }
    let fault = run(13).unwrap_err();
    assert_eq!(fault.kind, tirx_sim::FaultKind::OutOfBounds, "{fault}");
    assert!(
        fault
            .message
            .contains("reads local `r[-1]`, which has 12 elements"),
        "{fault}"
    );
}

#[test]
fn a_local_array_that_is_written_in_part() {
    let i = Var::new("i", I32);
    let mut k = kernel(1, 32);
    let b = k.tensor("B", I32, 32);
    let n = k.scalar("n", I32);
    let r = buffer("r", I32, 4, "local");
    let body = [
        alloc(&r),
        range(&i, n, [k.store(&r, Expr::var(&i), k.tx())]),
        k.store(&b, k.tx(), load(&r, int(2))),
    ];
    let db = zeros(32);
    k.run(body.clone(), &[&db, &Data::Scalar(3)]).unwrap();
    assert_eq!(db.i32()[5], 5);
    let fault = k.run(body, &[&db, &Data::Scalar(2)]).unwrap_err();
    assert_eq!(fault.kind, tirx_sim::FaultKind::Uninitialized, "{fault}");
    assert!(fault.message.contains("`r[2]`"), "{fault}");
}
