//! Races: accesses of two threads without an order.

use super::*;

#[test]
fn a_missing_barrier_is_a_race() {
    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let s = buffer("s", F32, 64, "shared");
    let body = [
        alloc(&s),
        k.store(&s, k.tx(), float(1.0)),
        k.store(&b, k.tx(), load(&s, int(63) - k.tx())),
    ];
    let fault = k.run(body.clone(), &[&zeros(64)]).unwrap_err();
    // Thread 0 reads what thread 63 has not written yet in this order; either way it is found.
    assert!(
        matches!(fault.kind, FaultKind::Race | FaultKind::Uninitialized),
        "{fault}"
    );

    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let s = buffer("s", F32, 64, "shared");
    let body = [
        alloc(&s),
        k.store(&s, k.tx(), float(1.0)),
        k.sync(),
        k.store(&b, k.tx(), load(&s, int(63) - k.tx())),
        k.store(&s, k.tx(), float(2.0)),
    ];
    let fault = k.run(body.clone(), &[&zeros(64)]).unwrap_err();
    let text = fault.to_string();
    // Warp 0 ran ahead, so that warp 1 meets its second write.
    expect(
        fault,
        FaultKind::Race,
        3,
        [0; 3],
        [32, 0, 0],
        "thread (32, 0, 0) reads `s[31]`, which thread (31, 0, 0) wrote",
    );
    assert!(
        text.contains("note: thread (31, 0, 0) wrote it here\n --> kernel.py:4:1"),
        "{text}"
    );

    let options = LaunchOptions {
        check_races: false,
        ..LaunchOptions::default()
    };
    let args = [zeros(64)];
    let Data::Tensor(a) = &args[0] else { unreachable!() };
    let quiet = k.run_with(body, &[a.address()], &memory_of(), &StandIns::new(), &options);
    assert!(quiet.is_ok());
}

#[test]
fn lanes_of_a_warp_need_a_warp_barrier() {
    let build = |with_barrier: bool| {
        let mut k = kernel(1, 32);
        let b = k.tensor("B", F32, 32);
        let s = buffer("s", F32, 32, "shared");
        let barrier = if with_barrier {
            vec![k.call(Op::CudaWarpSync, vec![])]
        } else {
            vec![]
        };
        let mut body = vec![alloc(&s), k.store(&s, k.tx(), k.tx().cast(F32))];
        body.extend(barrier);
        body.push(k.store(&b, k.tx(), load(&s, int(31) - k.tx())));
        let db = zeros(32);
        (k.run(body, &[&db]), db)
    };
    let (result, db) = build(true);
    result.unwrap();
    assert_eq!(db.f32()[0], 31.0);
    let (result, _) = build(false);
    let fault = result.unwrap_err();
    expect(
        fault,
        FaultKind::Race,
        2,
        [0; 3],
        [0; 3],
        "no warp or block barrier",
    );
}

#[test]
fn the_same_value_from_many_threads_is_no_race() {
    let mut k = kernel(1, 128);
    let b = k.tensor("B", F32, 128);
    let s = buffer("s", F32, 1, "shared");
    let body = [
        alloc(&s),
        k.store(&s, int(0), float(3.0)),
        k.sync(),
        k.store(&b, k.tx(), load(&s, int(0))),
    ];
    k.run(body, &[&zeros(128)]).unwrap();
    // Different values are one.
    let mut k = kernel(1, 32);
    k.tensor("B", F32, 128);
    let body = [alloc(&s), k.store(&s, int(0), k.tx().cast(F32))];
    let fault = k.run(body, &[&zeros(128)]).unwrap_err();
    expect(
        fault,
        FaultKind::Race,
        1,
        [0; 3],
        [1, 0, 0],
        "writes `s[0]`, which thread (0, 0, 0) wrote",
    );
}

#[test]
fn blocks_that_write_one_place_race() {
    // Every block counts, and no atomic does it.
    let mut k = kernel(8, 1);
    let b = k.tensor("B", I32, 4);
    let body = [k.store(&b, int(2), load(&b, int(2)) + int(1))];
    let fault = k.run(body.clone(), &[&zeros(4)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Race, "{fault}");
    assert!(
        fault
            .message
            .contains("s `B[2]`, which thread (0, 0, 0) of block (")
            && fault.message.ends_with("and nothing orders the two blocks"),
        "{fault}"
    );
    assert_eq!(
        fault.notes[0].location.as_ref().map(|l| l.line),
        Some(1),
        "{fault}"
    );
    let options = LaunchOptions {
        check_races: false,
        ..LaunchOptions::default()
    };
    let args = [zeros(4)];
    let Data::Tensor(a) = &args[0] else { unreachable!() };
    let quiet = k.run_with(body, &[a.address()], &memory_of(), &StandIns::new(), &options);
    assert!(quiet.is_ok());
}

#[test]
fn threads_of_a_block_race_in_global_memory_too() {
    let build = |with_barrier: bool, dtype: DType| {
        let mut k = kernel(2, 64);
        let b = k.tensor("B", dtype, 128);
        let i = k.bx() * int(64) + k.tx();
        let other = k.bx() * int(64) + int(63) - k.tx();
        let mut body = vec![k.store(&b, i.clone(), k.tx().cast(dtype))];
        body.extend(with_barrier.then(|| k.sync()));
        let read = Var::new("read", dtype);
        body.extend([
            bind(&read, load(&b, other)),
            k.sync(),
            k.store(&b, i, Expr::var(&read)),
        ]);
        k.run(body, &[&zeros(256)])
    };
    for dtype in [I32, F16, DType::UINT8, DType::INT64] {
        build(true, dtype).map_err(|f| f.to_string()).unwrap();
        let fault = build(false, dtype).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Race, "{fault}");
        assert!(fault.message.contains("no barrier orders the two"), "{fault}");
    }
}

#[test]
fn neighbouring_bytes_of_different_blocks_do_not_race() {
    let mut k = kernel(64, 2);
    let b = k.tensor("B", DType::UINT8, 128);
    let i = k.bx() * int(2) + k.tx();
    let body = [k.store(&b, i.clone(), load(&b, i) + int(7).cast(DType::UINT8))];
    k.run(body, &[&zeros(128)]).map_err(|f| f.to_string()).unwrap();
}

#[test]
fn the_last_block_may_read_what_all_have_written() {
    // Each block writes its part and counts itself; who counts last adds up.
    let build = |with_counter: bool, fences: usize| {
        let mut k = kernel(16, 32);
        let (part, count, out) = (
            k.tensor("P", I32, 16),
            k.tensor("C", I32, 1),
            k.tensor("B", I32, 1),
        );
        let old = Var::new("old", I32);
        let i = Var::new("i", I32);
        let sum = k.store(&out, int(0), load(&out, int(0)) + load(&part, Expr::var(&i)));
        let last = when(eq(Expr::var(&old), int(15)), [range(&i, int(16), [sum])]);
        let counted = if with_counter {
            call(Op::CudaAtomicAdd, I32, vec![address(&count, int(0)), int(1)])
        } else {
            k.bx()
        };
        let body = [when(
            eq(k.tx(), int(0)),
            [
                vec![k.store(&part, k.bx(), k.bx() + int(1))],
                vec![k.call(Op::CudaThreadFence, vec![]); fences.min(1)],
                vec![bind(&old, counted)],
                vec![k.call(Op::CudaThreadFence, vec![]); fences / 2],
                vec![last],
            ]
            .concat(),
        )];
        let out = zeros(1);
        k.run(body, &[&zeros(16), &zeros(1), &out]).map(|_| out.i32()[0])
    };
    assert_eq!(build(true, 2).map_err(|f| f.to_string()), Ok(136));
    // Without the count, and with one that nothing makes release or acquire.
    for (counts, fences) in [(false, 2), (true, 0), (true, 1)] {
        let fault = build(counts, fences).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Race, "{fault}");
    }
}
