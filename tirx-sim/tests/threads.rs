//! Threads that interact: divergence, barriers, shuffles, atomics, waiting.

mod kernel;

use kernel::*;
use tirx_core::intrin::Op;
use tirx_core::ir::{BinOp, DType, Expr, Stmt, Var};

/// Runs `body` over one block with an `int32` output and returns it.
fn output(
    threads: u32,
    size: usize,
    make: impl FnOnce(&Kernel, &tirx_core::ir::Buffer) -> Vec<Stmt>,
) -> Vec<i32> {
    let mut k = kernel(1, threads);
    let b = k.tensor("B", I32, size as i32);
    let body = make(&k, &b);
    let db = zeros(size);
    k.run(body, &[&db]).map_err(|f| f.to_string()).unwrap();
    db.i32()
}

#[test]
fn branches_within_a_warp() {
    let out = output(64, 64, |k, b| {
        let tx = k.tx();
        vec![choose(
            lt(rem(tx.clone(), 3), int(1)),
            [k.store(b, tx.clone(), int(100))],
            [choose(
                lt(tx.clone(), int(20)),
                [k.store(b, tx.clone(), int(1))],
                [k.store(b, tx.clone(), tx.clone())],
            )],
        )]
    });
    for (i, v) in out.into_iter().enumerate() {
        let expected = if i % 3 == 0 {
            100
        } else if i < 20 {
            1
        } else {
            i as i32
        };
        assert_eq!(v, expected);
    }
}

#[test]
fn loops_of_different_lengths_with_break_and_continue() {
    // sum of odd j below tx, stopping at 21.
    let out = output(64, 64, |k, b| {
        let (tx, j) = (k.tx(), Var::new("j", I32));
        let sum = buffer("sum", I32, 1, "local");
        let jv = Expr::var(&j);
        vec![
            alloc(&sum),
            k.store(&sum, int(0), int(0)),
            range(
                &j,
                tx.clone(),
                [
                    when(eq(rem(jv.clone(), 2), int(0)), [jump(Op::ContinueLoop)]),
                    when(op(BinOp::Gt, jv.clone(), int(21)), [jump(Op::BreakLoop)]),
                    k.store(&sum, int(0), load(&sum, int(0)) + jv),
                ],
            ),
            k.store(b, tx, load(&sum, int(0))),
        ]
    });
    for (i, v) in out.into_iter().enumerate() {
        let expected: i32 = (0..i as i32)
            .filter(|j| j % 2 == 1)
            .take_while(|j| *j <= 21)
            .sum();
        assert_eq!(v, expected, "{i}");
    }
}

#[test]
fn while_loops_diverge_and_uniform_loops_break() {
    // Collatz steps.
    let out = output(40, 40, |k, b| {
        let (x, n) = (buffer("x", I32, 1, "local"), buffer("n", I32, 1, "local"));
        let span = k.line("while x != 1");
        let xv = load(&x, int(0));
        vec![
            alloc(&x),
            alloc(&n),
            k.store(&x, int(0), k.tx() + int(1)),
            k.store(&n, int(0), int(0)),
            repeat(
                op(BinOp::Ne, xv.clone(), int(1)),
                [
                    choose(
                        eq(rem(xv.clone(), 2), int(0)),
                        [k.store(&x, int(0), div(xv.clone(), 2))],
                        [k.store(&x, int(0), xv.clone() * int(3) + int(1))],
                    ),
                    k.store(&n, int(0), load(&n, int(0)) + int(1)),
                ],
                span,
            ),
            k.store(b, k.tx(), load(&n, int(0))),
        ]
    });
    for (i, v) in out.into_iter().enumerate() {
        let (mut x, mut n) = (i + 1, 0);
        while x != 1 {
            x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 };
            n += 1;
        }
        assert_eq!(v, n);
    }

    let out = output(32, 32, |k, b| {
        let i = Var::new("i", I32);
        vec![range(
            &i,
            int(100),
            [
                when(eq(Expr::var(&i), int(7)), [jump(Op::BreakLoop)]),
                k.store(b, k.tx(), Expr::var(&i)),
            ],
        )]
    });
    assert_eq!(out, [6; 32]);
}

#[test]
fn returned_threads_do_no_more() {
    let out = output(64, 64, |k, b| {
        let i = Var::new("i", I32);
        vec![
            range(
                &i,
                int(10),
                [
                    when(eq(Expr::var(&i) * int(5), k.tx()), [jump(Op::ThreadReturn)]),
                    k.store(b, k.tx(), Expr::var(&i) + int(1)),
                ],
            ),
            k.store(b, k.tx(), int(99)),
        ]
    });
    for (i, v) in out.into_iter().enumerate() {
        let expected = if i % 5 == 0 && i < 50 { i as i32 / 5 } else { 99 };
        assert_eq!(v, expected, "{i}");
    }
}

#[test]
fn a_block_reverses_through_shared_memory() {
    let out = output(256, 256, |k, b| {
        let s = buffer("s", I32, 256, "shared");
        vec![
            alloc(&s),
            k.store(&s, k.tx(), k.tx() * int(3)),
            k.sync(),
            k.store(b, k.tx(), load(&s, int(255) - k.tx())),
        ]
    });
    assert!(out.iter().enumerate().all(|(i, v)| *v == (255 - i as i32) * 3));
}

#[test]
fn tree_reduction_in_shared_memory() {
    let out = output(256, 1, |k, b| {
        let (s, step) = (buffer("s", I32, 256, "shared"), buffer("step", I32, 1, "local"));
        let span = k.line("while step > 0");
        let width = load(&step, int(0));
        vec![
            alloc(&s),
            alloc(&step),
            k.store(&s, k.tx(), k.tx()),
            k.store(&step, int(0), int(128)),
            k.sync(),
            repeat(
                op(BinOp::Gt, width.clone(), int(0)),
                [
                    when(
                        lt(k.tx(), width.clone()),
                        [k.store(&s, k.tx(), load(&s, k.tx()) + load(&s, k.tx() + width.clone()))],
                    ),
                    k.sync(),
                    k.store(&step, int(0), div(width, 2)),
                ],
                span,
            ),
            when(eq(k.tx(), int(0)), [k.store(b, int(0), load(&s, int(0)))]),
        ]
    });
    assert_eq!(out, [255 * 128]);
}

#[test]
fn shuffles_follow_cuda() {
    let shuffle = |o: Op, arg: i32, width: i32| {
        output(32, 32, |k, b| {
            let value = call(
                o,
                I32,
                vec![uint(u32::MAX), k.tx() * int(10), int(arg), int(width)],
            );
            vec![k.store(b, k.tx(), value)]
        })
    };
    let expect = |f: &dyn Fn(i32) -> i32| (0..32).map(|i| f(i) * 10).collect::<Vec<_>>();
    assert_eq!(shuffle(Op::CudaShflSync, 5, 32), expect(&|_| 5));
    assert_eq!(shuffle(Op::CudaShflSync, 5, 8), expect(&|i| i / 8 * 8 + 5));
    assert_eq!(
        shuffle(Op::CudaShflUpSync, 3, 16),
        expect(&|i| if i % 16 >= 3 { i - 3 } else { i })
    );
    assert_eq!(
        shuffle(Op::CudaShflDownSync, 3, 16),
        expect(&|i| if i % 16 < 13 { i + 3 } else { i })
    );
    assert_eq!(shuffle(Op::CudaShflXorSync, 5, 32), expect(&|i| i ^ 5));
    // Higher groups do not give to lower ones.
    assert_eq!(
        shuffle(Op::CudaShflXorSync, 8, 8),
        expect(&|i| if i & 8 == 0 { i } else { i ^ 8 })
    );
}

#[test]
fn votes_and_reductions_over_a_mask() {
    let out = output(32, 128, |k, b| {
        let low = lt(k.tx(), int(16));
        let mask = call(Op::CudaActivemask, U32, vec![]);
        let odd = eq(rem(k.tx(), 2), int(1));
        vec![choose(
            low,
            [
                k.store(b, k.tx(), mask.clone().cast(I32)),
                k.store(
                    b,
                    k.tx() + int(32),
                    call(Op::CudaBallotSync, U32, vec![uint(0xffff), odd.clone()]).cast(I32),
                ),
                k.store(
                    b,
                    k.tx() + int(64),
                    call(
                        Op::CudaReduceAddSyncU32,
                        U32,
                        vec![uint(0xffff), k.tx().cast(U32)],
                    )
                    .cast(I32),
                ),
            ],
            [
                k.store(b, k.tx(), mask.cast(I32)),
                k.store(
                    b,
                    k.tx() + int(64),
                    call(
                        Op::CudaReduceMinSyncU32,
                        U32,
                        vec![uint(0xffff_0000), k.tx().cast(U32)],
                    )
                    .cast(I32),
                ),
            ],
        )]
    });
    assert_eq!(out[..32], [[0xffff; 16], [0xffff_0000u32 as i32; 16]].concat());
    assert_eq!(out[32..48], [0xaaaa; 16]);
    assert_eq!(out[64..96], [[120; 16], [16; 16]].concat());
}

#[test]
fn sides_of_a_branch_meet_at_a_shuffle() {
    // Both sides come to the same shuffle through different ways, one of them through a loop.
    let out = output(32, 32, |k, b| {
        let x = buffer("x", I32, 1, "local");
        let i = Var::new("i", I32);
        let shuffled = call(
            Op::CudaShflXorSync,
            I32,
            vec![uint(u32::MAX), load(&x, int(0)), int(16), int(32)],
        );
        vec![
            alloc(&x),
            k.store(&x, int(0), int(0)),
            when(
                lt(k.tx(), int(16)),
                [range(
                    &i,
                    k.tx(),
                    [k.store(&x, int(0), load(&x, int(0)) + int(2))],
                )],
            ),
            k.store(b, k.tx(), shuffled),
        ]
    });
    let expected: Vec<i32> = (0..32).map(|i| if i < 16 { 0 } else { 2 * (i - 16) }).collect();
    assert_eq!(out, expected);
}

#[test]
fn warp_and_block_reductions() {
    let mut k = kernel(1, 128);
    let (a, b, c) = (
        k.tensor("A", F32, 128),
        k.tensor("B", F32, 128),
        k.tensor("C", F32, 128),
    );
    let s = buffer("s", F32, 4, "shared");
    let value = load(&a, k.tx());
    let warp = call(
        Op::CudaWarpReduce,
        F32,
        vec![value.clone(), Expr::string("max"), int(8)],
    );
    let block = call(
        Op::CudaCtaReduce,
        F32,
        vec![value, Expr::string("sum"), int(4), address(&s, int(0))],
    );
    let body = [alloc(&s), k.store(&b, k.tx(), warp), k.store(&c, k.tx(), block)];
    let da = f32s((0..128).map(|i| (i * 37 % 101) as f32));
    let (db, dc) = (zeros(128), zeros(128));
    k.run(body, &[&da, &db, &dc]).map_err(|f| f.to_string()).unwrap();
    let input = da.f32();
    for (i, v) in db.f32().into_iter().enumerate() {
        let group = &input[i / 8 * 8..i / 8 * 8 + 8];
        assert_eq!(v, group.iter().copied().fold(f32::MIN, f32::max));
    }
    assert_eq!(dc.f32(), vec![input.iter().sum::<f32>(); 128]);
}

#[test]
fn block_votes() {
    let out = output(96, 3, |k, b| {
        let vote = |o: Op, e: Expr| call(o, I32, vec![e.cast(I32)]);
        vec![
            k.store(b, int(0), vote(Op::CudaSyncthreadsAnd, lt(k.tx(), int(95)))),
            k.store(b, int(1), vote(Op::CudaSyncthreadsOr, eq(k.tx(), int(95)))),
            k.store(b, int(2), vote(Op::CudaSyncthreadsAnd, lt(k.tx(), int(96)))),
        ]
    });
    assert_eq!(out, [0, 1, 1]);
}

#[test]
fn atomics_add_up_across_parallel_blocks() {
    let mut k = kernel(50, 256);
    let (h, t) = (k.tensor("H", I32, 16), k.tensor("T", F32, 1));
    let (d, c) = (k.tensor("D", DType::FLOAT64, 1), k.tensor("C", DType::INT64, 1));
    let f = k.tensor("F", F16, 2);
    let one = |dtype: DType| Expr::constant(dtype, 1);
    let add = |buffer: &tirx_core::ir::Buffer, index: Expr, value: Expr| {
        evaluate(call(
            Op::CudaAtomicAdd,
            value.dtype,
            vec![address(buffer, index), value],
        ))
    };
    let body = [
        add(&h, rem(k.tx(), 16), int(1)),
        add(&t, int(0), one(F32)),
        add(&d, int(0), Expr::float(DType::FLOAT64, 0.5)),
        add(&c, int(0), Expr::int64(1 << 40)),
        when(lt(k.tx(), int(2)), [add(&f, k.tx(), one(F16))]),
    ];
    let (dh, dt, dd, dc) = (zeros(16), zeros(1), f64s([0.0]), i64s([0]));
    let df = u16s([0, 0]);
    k.run(body, &[&dh, &dt, &dd, &dc, &df])
        .map_err(|f| f.to_string())
        .unwrap();
    assert_eq!(dh.i32(), [50 * 16; 16]);
    assert_eq!(dt.f32(), [12800.0]);
    assert_eq!(dd.f64(), [6400.0]);
    assert_eq!(dc.i64(), [12800 << 40]);
    assert_eq!(df.u16(), [half::f16::from_f32(50.0).to_bits(); 2]);
}

#[test]
fn atomics_give_the_old_value() {
    let out = output(64, 65, |k, b| {
        let ticket = call(Op::CudaAtomicAdd, I32, vec![address(b, int(64)), int(1)]);
        let var = Var::new("t", I32);
        vec![bind(&var, ticket), k.store(b, Expr::var(&var), k.tx())]
    });
    let mut seen = out[..64].to_vec();
    seen.sort_unstable();
    assert_eq!(seen, (0..64).collect::<Vec<_>>());
    assert_eq!(out[64], 64);

    let out = output(32, 2, |k, b| {
        let swap = call(
            Op::CudaAtomicCas,
            I32,
            vec![address(b, int(0)), int(0), k.tx() + int(5)],
        );
        let var = Var::new("old", I32);
        vec![
            bind(&var, swap),
            when(eq(Expr::var(&var), int(0)), [k.store(b, int(1), k.tx())]),
        ]
    });
    assert_eq!(out[0], out[1] + 5);
}

#[test]
fn histogram_in_shared_memory() {
    let out = output(256, 8, |k, b| {
        let s = buffer("s", I32, 8, "shared");
        let add = call(
            Op::CudaAtomicAdd,
            I32,
            vec![address(&s, rem(k.tx() * k.tx(), 8)), int(1)],
        );
        vec![
            alloc(&s),
            when(lt(k.tx(), int(8)), [k.store(&s, k.tx(), int(0))]),
            k.sync(),
            evaluate(add),
            k.sync(),
            when(lt(k.tx(), int(8)), [k.store(b, k.tx(), load(&s, k.tx()))]),
        ]
    });
    let mut expected = [0; 8];
    (0..256).for_each(|i| expected[i * i % 8] += 1);
    assert_eq!(out, expected);
}

#[test]
fn lanes_of_a_warp_take_a_lock_in_turn() {
    // The classic that deadlocks a GPU without independent thread scheduling: spin, critical section, release.
    let out = output(64, 2, |k, b| {
        let lock = || address(b, int(0));
        let take = call(Op::CudaAtomicCas, I32, vec![lock(), int(0), int(1)]);
        let span = k.line("while atomic_cas(lock, 0, 1) != 0: pass");
        vec![
            repeat(op(BinOp::Ne, take, int(0)), [Stmt::nop()], span),
            k.call(Op::CudaThreadFence, vec![]),
            k.store(b, int(1), load(b, int(1)) + k.tx() + int(1)),
            k.call(Op::CudaThreadFence, vec![]),
            evaluate(call(Op::CudaAtomicCas, I32, vec![lock(), int(1), int(0)])),
        ]
    });
    assert_eq!(out, [0, 64 * 65 / 2]);
}

#[test]
fn warps_hand_data_to_each_other_through_a_flag() {
    let out = output(64, 32, |k, b| {
        let (data, flag) = (
            buffer("data", I32, 32, "shared"),
            buffer("flag", I32, 1, "shared"),
        );
        let span = k.line("while flag[0] == 0: pass");
        vec![
            alloc(&data),
            alloc(&flag),
            when(eq(k.tx(), int(0)), [k.store(&flag, int(0), int(0))]),
            k.sync(),
            choose(
                lt(k.tx(), int(32)),
                [
                    // The consumer is the first warp: it must wait.
                    repeat(eq(load(&flag, int(0)), int(0)), [Stmt::nop()], span),
                    k.store(b, k.tx(), load(&data, k.tx())),
                ],
                [
                    k.store(&data, k.tx() - int(32), k.tx() * int(2)),
                    k.call(Op::CudaWarpSync, vec![]),
                    k.call(Op::CudaThreadFence, vec![]),
                    when(eq(k.tx(), int(32)), [k.store(&flag, int(0), int(1))]),
                ],
            ),
        ]
    });
    assert!(out.iter().enumerate().all(|(i, v)| *v == 2 * (i as i32 + 32)));
}

#[test]
fn lanes_hand_data_to_each_other_through_a_flag() {
    let flag = buffer("flag", I32, 1, "shared");
    let begin = |k: &Kernel| {
        let first = eq(k.tx(), int(0));
        [
            alloc(&flag),
            when(first, [k.store(&flag, int(0), int(0))]),
            k.sync(),
        ]
    };
    // Lane 0 waits for what lane 1 does in the other side of the branch.
    let out = output(32, 2, |k, b| {
        let mut body = begin(k).to_vec();
        let span = k.line("while flag[0] == 0: pass");
        body.push(choose(
            eq(k.tx(), int(0)),
            [
                repeat(eq(load(&flag, int(0)), int(0)), [Stmt::nop()], span),
                k.store(b, int(1), int(5)),
            ],
            [when(eq(k.tx(), int(1)), [k.store(&flag, int(0), int(1))])],
        ));
        body
    });
    assert_eq!(out, [0, 5]);
    // And for what lane 1 does after the branch.
    let out = output(32, 2, |k, b| {
        let mut body = begin(k).to_vec();
        let span = k.line("while flag[0] == 0: pass");
        body.push(when(
            eq(k.tx(), int(0)),
            [
                repeat(eq(load(&flag, int(0)), int(0)), [Stmt::nop()], span),
                k.store(b, int(1), int(6)),
            ],
        ));
        body.push(when(eq(k.tx(), int(1)), [k.store(&flag, int(0), int(1))]));
        body
    });
    assert_eq!(out, [0, 6]);
}

#[test]
fn loops_may_not_poll_global_memory_by_plain_loads() {
    let mut k = kernel(20, 32);
    let b = k.tensor("B", I32, 2);
    let span = k.line("while B[0] == 0: pass");
    let body = [choose(
        eq(k.bx(), int(0)),
        [
            repeat(eq(load(&b, int(0)), int(0)), [Stmt::nop()], span),
            k.store(&b, int(1), int(7)),
        ],
        [when(eq(k.bx(), int(19)), [k.store(&b, int(0), int(1))])],
    )];
    let fault = k.run(body, &[&zeros(2)]).unwrap_err().to_string();
    assert!(
        fault.contains("a plain load in the condition of a loop that waits")
            && fault.contains("T.ptx.ld_acquire"),
        "{fault}"
    );
}

#[test]
fn grid_and_cluster_barriers() {
    let mut k = kernel(8, 64);
    let (a, b) = (k.tensor("A", I32, 8), k.tensor("B", I32, 8));
    let first = eq(k.tx(), int(0));
    let body = [
        when(first.clone(), [k.store(&a, k.bx(), k.bx() * int(10))]),
        k.call(Op::CudaGridSync, vec![]),
        when(first, [k.store(&b, k.bx(), load(&a, int(7) - k.bx()))]),
    ];
    let (da, db) = (zeros(8), zeros(8));
    k.run(body, &[&da, &db]).map_err(|f| f.to_string()).unwrap();
    assert_eq!(db.i32(), (0..8).map(|i| (7 - i) * 10).collect::<Vec<_>>());

    let mut k = kernel(8, 32);
    k.cluster = [2, 1, 1];
    let (a, b) = (k.tensor("A", I32, 8), k.tensor("B", I32, 8));
    let rank = k.axis("clusterCtaIdx.x", 2);
    let first = eq(k.tx(), int(0));
    let partner = k.bx() + int(1) - rank.clone() * int(2);
    let body = [
        when(first.clone(), [k.store(&a, k.bx(), k.bx() * int(10) + rank)]),
        k.call(Op::CudaClusterSync, vec![]),
        when(first, [k.store(&b, k.bx(), load(&a, partner))]),
    ];
    let (da, db) = (zeros(8), zeros(8));
    k.run(body, &[&da, &db]).map_err(|f| f.to_string()).unwrap();
    assert_eq!(db.i32(), [11, 0, 31, 20, 51, 40, 71, 60]);
}

#[test]
fn warpgroups_have_barriers_of_their_own() {
    let out = output(256, 256, |k, b| {
        let s = buffer("s", I32, 256, "shared");
        let group = div(k.tx(), 128);
        let mirrored = group.clone() * int(128) + (int(127) - rem(k.tx(), 128));
        vec![
            alloc(&s),
            k.store(&s, k.tx(), k.tx()),
            k.call(Op::CudaWarpgroupSync, vec![group + int(1)]),
            k.store(b, k.tx(), load(&s, mirrored)),
        ]
    });
    for (i, v) in out.into_iter().enumerate() {
        assert_eq!(v as usize, i / 128 * 128 + 127 - i % 128);
    }
}

#[test]
fn two_dimensional_blocks_have_warps_in_linear_order() {
    let mut k = kernel(1, 16);
    let ty = k.axis("threadIdx.y", 8);
    k.block = [16, 8, 1];
    let b = k.tensor("B", I32, 128);
    let body = [k.store(&b, ty.clone() * int(16) + k.tx(), ty * int(100) + k.tx())];
    let db = zeros(128);
    k.run(body, &[&db]).unwrap();
    assert!(
        db.i32()
            .iter()
            .enumerate()
            .all(|(i, v)| *v as usize == i / 16 * 100 + i % 16)
    );
}

#[test]
fn output_is_in_the_order_of_blocks() {
    let k = kernel(4, 32);
    let format = Expr::string("block %d says %.1f\n");
    let body = [when(
        eq(k.tx(), int(3)),
        [k.call(Op::CudaPrintf, vec![format, k.bx(), k.bx().cast(F32)])],
    )];
    let stats = k.run(body, &[]).unwrap();
    let expected: String = (0..4).map(|i| format!("block {i} says {i}.0\n")).collect();
    assert_eq!(stats.output, expected);
}
