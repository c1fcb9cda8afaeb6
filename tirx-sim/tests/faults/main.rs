//! Each kind of error, with its line, block and thread.

#[path = "../kernel/mod.rs"]
mod kernel;
mod races;
mod stand_ins;

use kernel::*;
use tirx_core::intrin::Op;
use tirx_core::ir::abi::Target;
use tirx_core::ir::{Assert, BinOp, DType, Expr, Stmt, StmtKind, Var};
use tirx_sim::{Fault, FaultKind, LaunchOptions, StandIns};

#[track_caller]
fn expect(fault: Fault, kind: FaultKind, line: u32, block: [u32; 3], thread: [u32; 3], message: &str) {
    assert_eq!(fault.kind, kind, "{fault}");
    assert_eq!(fault.location.as_ref().map(|l| l.line), Some(line), "{fault}");
    assert_eq!((fault.block, fault.thread), (block, thread), "{fault}");
    assert!(fault.message.contains(message), "{fault}");
}

#[test]
fn out_of_bounds_of_a_tensor() {
    let mut k = kernel(4, 64);
    let (a, b) = (k.tensor("A", F32, 256), k.tensor("B", F32, 256));
    let i = k.bx() * int(64) + k.tx();
    k.line("first line");
    let body = [k.store(&b, i.clone(), load(&a, i))];
    let fault = k.run(body, &[&zeros(200), &zeros(256)]).unwrap_err();
    let text = fault.to_string();
    expect(
        fault,
        FaultKind::OutOfBounds,
        2,
        [3, 0, 0],
        [8, 0, 0],
        "reads `A[200]`, but its allocation has 200 elements",
    );
    assert!(
        text.contains("--> kernel.py:2:1") && text.contains("2 | B[..] = .."),
        "{text}"
    );
    assert!(text.contains("in block (3, 0, 0), thread (8, 0, 0)"), "{text}");
}

#[test]
fn negative_index() {
    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let body = [k.store(&b, k.tx() - int(2), float(0.0))];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::OutOfBounds,
        1,
        [0; 3],
        [0, 0, 0],
        "writes `B[-2]`",
    );
}

#[test]
fn out_of_bounds_of_shared_and_local_arrays() {
    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let (first, s) = (buffer("t", F32, 8, "shared"), buffer("s", F32, 40, "shared"));
    let body = [alloc(&first), alloc(&s), k.store(&s, k.tx(), float(0.0))];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::OutOfBounds,
        1,
        [0; 3],
        [40, 0, 0],
        "writes shared `s[40]`, which has 40 elements",
    );

    let mut k2 = kernel(1, 64);
    let b2 = k2.tensor("B", F32, 64);
    let r = buffer("r", F32, 4, "local");
    let body = [
        alloc(&r),
        k2.store(&r, rem(k2.tx(), 5), float(0.0)),
        k2.store(&b2, k2.tx(), float(1.0)),
    ];
    let fault = k2.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::OutOfBounds,
        1,
        [0; 3],
        [4, 0, 0],
        "writes local `r[4]`, which has 4 elements",
    );
    drop(b);
}

#[test]
fn null_and_freed_pointers() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let body = || [k.store(&b, k.tx(), float(0.0))];
    let fault = k.run(body(), &[&Data::Scalar(0)]).unwrap_err();
    expect(
        fault,
        FaultKind::NullPointer,
        1,
        [0; 3],
        [0; 3],
        "writes `B`, whose pointer is null",
    );
    let address = memory_of().alloc(128).address();
    let fault = k.run(body(), &[&Data::Scalar(address)]).unwrap_err();
    assert!(fault.message.contains("no living allocation"), "{fault}");
}

#[test]
fn misaligned_vector_access() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 256);
    let ramp = Expr::ramp(k.tx() * int(4) + int(2), int(1), 4);
    let body = [k.store(&b, ramp, Expr::broadcast(float(0.0), 4))];
    let fault = k.run(body, &[&zeros(256)]).unwrap_err();
    expect(
        fault,
        FaultKind::Misaligned,
        1,
        [0; 3],
        [0; 3],
        "writes 16 bytes at `B[2:6]`",
    );
}

#[test]
fn uninitialized_shared_memory() {
    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let s = buffer("s", F32, 64, "shared");
    let body = [
        alloc(&s),
        when(lt(k.tx(), int(50)), [k.store(&s, k.tx(), float(1.0))]),
        k.sync(),
        k.store(&b, k.tx(), load(&s, k.tx())),
    ];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::Uninitialized,
        3,
        [0; 3],
        [50, 0, 0],
        "reads `s[50]` before any thread has written it",
    );
}

#[test]
fn uninitialized_local_arrays() {
    // In registers: written on one way only.
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let r = buffer("r", F32, 1, "local");
    let body = [
        alloc(&r),
        when(lt(k.tx(), int(7)), [k.store(&r, int(0), float(1.0))]),
        k.store(&b, k.tx(), load(&r, int(0))),
    ];
    let fault = k.run(body, &[&zeros(32)]).unwrap_err();
    expect(
        fault,
        FaultKind::Uninitialized,
        2,
        [0; 3],
        [7, 0, 0],
        "reads `r` before this thread has written it",
    );

    // In memory: a dynamic index.
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let r = buffer("r", F32, 4, "local");
    let body = [
        alloc(&r),
        k.store(&r, rem(k.tx(), 2), float(1.0)),
        k.store(&b, k.tx(), load(&r, rem(k.tx(), 3))),
    ];
    let fault = k.run(body, &[&zeros(32)]).unwrap_err();
    expect(
        fault,
        FaultKind::Uninitialized,
        2,
        [0; 3],
        [2, 0, 0],
        "reads `r[2]`",
    );
}

#[test]
fn a_loop_body_starts_with_undefined_locals() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let (r, i) = (buffer("r", F32, 1, "local"), Var::new("i", I32));
    let body = [range(
        &i,
        int(2),
        [
            alloc(&r),
            when(eq(Expr::var(&i), int(0)), [k.store(&r, int(0), float(1.0))]),
            k.store(&b, k.tx(), load(&r, int(0))),
        ],
    )];
    let fault = k.run(body, &[&zeros(32)]).unwrap_err();
    expect(fault, FaultKind::Uninitialized, 2, [0; 3], [0; 3], "reads `r`");
}

#[test]
fn division_by_zero() {
    for (dtype, o) in [
        (I32, BinOp::FloorDiv),
        (DType::INT64, BinOp::Mod),
        (U32, BinOp::FloorMod),
    ] {
        let mut k = kernel(1, 32);
        let b = k.tensor("B", I32, 32);
        let divisor = (k.tx() - int(9)).cast(dtype);
        let body = [k.store(&b, k.tx(), op(o, Expr::constant(dtype, 100), divisor).cast(I32))];
        let fault = k.run(body, &[&zeros(32)]).unwrap_err();
        expect(
            fault,
            FaultKind::DivisionByZero,
            1,
            [0; 3],
            [9, 0, 0],
            "divided by zero",
        );
    }
    // Floats divide by zero as IEEE 754 says.
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 32);
    let body = [k.store(&b, k.tx(), op(BinOp::Div, float(1.0), k.tx().cast(F32)))];
    let db = zeros(32);
    k.run(body, &[&db]).unwrap();
    assert_eq!(db.f32()[0], f32::INFINITY);
}

#[test]
fn a_barrier_that_some_threads_pass_by() {
    let mut k = kernel(1, 64);
    k.tensor("B", F32, 64);
    let body = [when(lt(k.tx(), int(40)), [k.sync()])];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::BarrierDivergence,
        1,
        [0; 3],
        [0; 3],
        "24 threads of the block ended without reaching this barrier, thread (40, 0, 0)",
    );
    // Threads that returned are not waited for.
    let mut k = kernel(1, 64);
    let b = k.tensor("B", F32, 64);
    let body = [
        when(op(BinOp::Ge, k.tx(), int(40)), [jump(Op::ThreadReturn)]),
        k.sync(),
        k.store(&b, k.tx(), float(1.0)),
    ];
    let db = zeros(64);
    k.run(body, &[&db]).unwrap();
    assert_eq!(db.f32().iter().sum::<f32>(), 40.0);
}

#[test]
fn deadlocks_say_who_waits_for_what() {
    // One warp waits for a flag that the other sets behind a barrier.
    let mut k = kernel(1, 64);
    let b = k.tensor("B", I32, 64);
    let spin = k.line("while B[0] == 0: pass");
    let body = [
        when(
            lt(k.tx(), int(32)),
            [repeat(eq(load(&b, int(0)), int(0)), [Stmt::nop()], spin)],
        ),
        k.sync(),
        k.store(&b, int(0), int(1)),
    ];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    let text = fault.to_string();
    expect(
        fault,
        FaultKind::Deadlock,
        2,
        [0; 3],
        [32, 0, 0],
        "32 threads wait at a block barrier",
    );
    assert!(text.contains("spin in a loop"), "{text}");
    assert!(text.contains("kernel.py:1:1"), "{text}");

    // A shuffle that names lanes which wait elsewhere.
    let mut k = kernel(1, 32);
    let b = k.tensor("B", I32, 32);
    let shuffle = call(
        Op::CudaShflXorSync,
        I32,
        vec![uint(u32::MAX), k.tx(), int(1), int(32)],
    );
    let body = [choose(
        lt(k.tx(), int(16)),
        [k.store(&b, k.tx(), shuffle)],
        [k.sync(), k.sync()],
    )];
    let fault = k.run(body, &[&zeros(32)]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BarrierDivergence);
    assert!(
        fault
            .message
            .contains("16 of the block's 32 wait at a block barrier"),
        "{fault}"
    );
    assert!(
        fault
            .to_string()
            .contains("wait to exchange values with lanes 16, 17"),
        "{fault}"
    );
}

#[test]
fn shuffles_from_lanes_that_are_not_there() {
    let mut k = kernel(1, 20);
    let b = k.tensor("B", I32, 32);
    let shuffle = call(
        Op::CudaShflXorSync,
        I32,
        vec![uint(u32::MAX), k.tx(), int(16), int(32)],
    );
    let body = [k.store(&b, k.tx(), shuffle)];
    let fault = k.run(body, &[&zeros(32)]).unwrap_err();
    expect(
        fault,
        FaultKind::InvalidLanes,
        1,
        [0; 3],
        [4, 0, 0],
        "lane 20, which does not exist",
    );
}

#[test]
fn launches_must_fit() {
    let mut k = kernel(2, 64);
    let b = k.tensor("B", F32, 64);
    let body = || [k.store(&b, k.tx(), float(1.0))];
    let launch = |grid, block, args: &[u64]| {
        let module = k.module(body());
        let program = tirx_sim::Program::compile(&module, "kernel").unwrap();
        let launch = tirx_sim::Launch {
            grid,
            block,
            cluster: [1; 3],
            shared_bytes: 0,
            args,
            peers: &[],
        };
        program
            .launch(&memory_of(), &launch, &StandIns::new())
            .unwrap_err()
    };
    let a = memory_of().alloc(256);
    let fault = launch([2, 1, 1], [32, 1, 1], &[a.address()]);
    assert_eq!(fault.kind, FaultKind::Launch);
    assert!(
        fault
            .message
            .contains("threadIdx.x has extent 64 in the kernel and 32 in the launch"),
        "{fault}"
    );
    let fault = launch([2, 1, 1], [64, 2, 1], &[a.address()]);
    assert!(fault.message.contains("the kernel has no threadIdx.y"), "{fault}");
    let fault = launch([2, 1, 1], [64, 1, 1], &[]);
    assert!(
        fault.message.contains("it has 1 parameters, and 0 arguments"),
        "{fault}"
    );
    let fault = launch([2, 1, 1], [64, 32, 1], &[a.address()]);
    assert!(fault.message.contains("2048 threads"), "{fault}");

    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 64);
    let s = buffer("s", F32, 100, "shared.dyn");
    let body = [
        alloc(&s),
        k.store(&s, k.tx(), float(0.0)),
        k.store(&b, k.tx(), float(0.0)),
    ];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    assert!(
        fault.message.contains("needs 400 bytes of dynamic shared memory"),
        "{fault}"
    );
}

/// A block may use as much shared memory as the GPU that the function is for has.
#[test]
fn shared_memory_is_limited_by_the_gpu() {
    let mut k = kernel(1, 32);
    let b = k.tensor("B", F32, 64);
    let launch = |arch: Option<&str>, shared_bytes: u32| {
        let mut module = k.module([k.store(&b, k.tx(), float(1.0))]);
        let attrs = &mut module.functions[0].1.attrs;
        if let Some(arch) = arch {
            attrs.insert(
                "target".into(),
                Target::named(arch).expect("a known GPU").device_attr(),
            );
        }
        let program = tirx_sim::Program::compile(&module, "kernel").unwrap();
        let memory = memory_of();
        let a = memory.alloc(256);
        let launch = tirx_sim::Launch {
            grid: [1; 3],
            block: [32, 1, 1],
            cluster: [1; 3],
            shared_bytes,
            args: &[a.address()],
            peers: &[],
        };
        let outcome = program.launch(&memory, &launch, &StandIns::new());
        (
            program.most_shared(),
            outcome.err().map(|fault| fault.message.clone()),
        )
    };
    for (arch, most) in [
        (Some("sm_107a"), 334_848),
        (Some("sm_100a"), 232_448),
        (Some("sm_90a"), 232_448),
        (Some("sm_89"), 101_376),
        (Some("sm_80"), 166_912),
        (None, 232_448),
    ] {
        assert_eq!(launch(arch, most), (most, None), "{arch:?}");
        let on = arch.map_or(String::new(), |arch| format!(" on {arch}"));
        let message = format!(
            "a block needs {} bytes of shared memory, and {most} is the most{on}",
            most + 16
        );
        assert_eq!(launch(arch, most + 16), (most, Some(message)));
    }
}

#[test]
fn assertions_and_endless_loops() {
    let mut k = kernel(1, 32);
    k.tensor("B", F32, 64);
    let span = k.line("assert tx < 5");
    let body = [Stmt::new(
        StmtKind::Assert(Assert {
            condition: lt(k.tx(), int(5)),
            kind: "ValueError".into(),
            message: vec!["too ".into(), "large".into()],
        }),
        span,
    )];
    let fault = k.run(body, &[&zeros(64)]).unwrap_err();
    expect(
        fault,
        FaultKind::Assertion,
        1,
        [0; 3],
        [5, 0, 0],
        "ValueError: too large",
    );

    let mut k = kernel(1, 32);
    k.tensor("B", F32, 64);
    let span = k.line("while True: pass");
    let body = [repeat(Expr::bool(true), [Stmt::nop()], span)];
    let options = LaunchOptions {
        step_limit: Some(1000),
        ..LaunchOptions::default()
    };
    let fault = k
        .run_with(
            body,
            &[memory_of().alloc(4).address()],
            &memory_of(),
            &StandIns::new(),
            &options,
        )
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::StepLimit);
    let text = fault.to_string();
    assert!(
        [
            "while True: pass",
            "`cargo tirx sim --step-limit`",
            "TIRX_SIM_STEP_LIMIT"
        ]
        .iter()
        .all(|part| text.contains(part)),
        "{text}"
    );
}

#[test]
fn the_first_block_with_an_error_is_reported() {
    let mut k = kernel(200, 32);
    let b = k.tensor("B", I32, 32);
    let index = Expr::select(op(BinOp::Ge, k.bx(), int(17)), int(1000) + k.bx(), k.tx());
    let body = [k.store(&b, index, int(1))];
    for _ in 0..5 {
        let fault = k.run(body.clone(), &[&zeros(32)]).unwrap_err();
        assert_eq!(fault.block, [17, 0, 0]);
    }
}
