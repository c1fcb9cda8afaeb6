//! Every order of synchronizing operations: what random schedules miss is found, and what is right is shown to be.

use std::fs;

use super::{Folder, Outcome};

const KERNELS: &str = r#"from tvm.script import tirx as T


# A ring of one slot: bulk copies fill it, a warp empties it.
@T.prim_func
def ring(A: T.Buffer((4, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    S = T.alloc_shared((1, 32), "float32", align=128)
    full = T.alloc_shared((1,), "uint64")
    empty = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.mbarrier.init(empty.ptr_to([0]), 32)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(4):
                T.ptx.mbarrier.try_wait(empty.ptr_to([0]), k % 2 ^ 1)
                T.ptx.mbarrier.arrive.expect_tx(full.ptr_to([0]), 128)
                T.ptx.cp_async_bulk_g2s_cta(S.ptr_to([0, 0]), A.ptr_to([k, 0]), 128, full.ptr_to([0]))
    else:
        sum: T.float32 = 0.0
        for k in range(4):
            T.ptx.mbarrier.try_wait(full.ptr_to([0]), k % 2)
            sum += S[0, tx - 32]
            T.ptx.mbarrier.arrive(empty.ptr_to([0]))
        B[tx - 32] = sum


# A third role waits for the first phase alone. If it comes late, the phases that are complete have the parity of none.
@T.prim_func
def onlooker(B: T.Buffer((32,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([96])
    full = T.alloc_shared((1,), "uint64")
    empty = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(full.ptr_to([0]), 1)
        T.ptx.mbarrier.init(empty.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx < 32:
        if tx == 0:
            for k in range(60):
                T.ptx.mbarrier.try_wait(empty.ptr_to([0]), k % 2 ^ 1)
                T.ptx.mbarrier.arrive(full.ptr_to([0]))
    else:
        if tx < 64:
            if tx == 32:
                for k in range(60):
                    T.ptx.mbarrier.try_wait(full.ptr_to([0]), k % 2)
                    T.ptx.mbarrier.arrive(empty.ptr_to([0]))
        else:
            if tx == 64:
                T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)
            B[tx - 64] = 1.0


# Three roles draw three tickets each. By one of the 1,680 orders the first two wait for one another.
@T.prim_func
def tickets(B: T.Buffer((96,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([96])
    next = T.alloc_shared((1,), "int32")
    first = T.alloc_shared((1,), "uint64")
    second = T.alloc_shared((1,), "uint64")
    if tx == 0:
        next[0] = 0
        T.ptx.mbarrier.init(first.ptr_to([0]), 1)
        T.ptx.mbarrier.init(second.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if tx % 32 == 0:
        a: T.int32 = T.cuda.atomic_add(next.ptr_to([0]), 1)
        b: T.int32 = T.cuda.atomic_add(next.ptr_to([0]), 1)
        c: T.int32 = T.cuda.atomic_add(next.ptr_to([0]), 1)
        drawn: T.int32 = a * 100 + b * 10 + c
        if tx == 0:
            if drawn == 48:
                T.ptx.mbarrier.try_wait(second.ptr_to([0]), 0)
            T.ptx.mbarrier.arrive(first.ptr_to([0]))
        if tx == 32:
            if drawn == 157:
                T.ptx.mbarrier.try_wait(first.ptr_to([0]), 0)
            T.ptx.mbarrier.arrive(second.ptr_to([0]))
    B[tx] = 1


# Three roles take two of three locks each, in a circle.
@T.prim_func
def locks(B: T.Buffer((3,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([96])
    lock = T.alloc_shared((3,), "int32")
    if tx < 3:
        lock[tx] = 0
    T.cuda.cta_sync()
    if tx % 32 == 0:
        role: T.int32 = tx // 32
        while T.cuda.atomic_cas(lock.ptr_to([role]), 0, 1) != 0:
            T.cuda.nano_sleep(T.uint64(20))
        while T.cuda.atomic_cas(lock.ptr_to([(role + 1) % 3]), 0, 1) != 0:
            T.cuda.nano_sleep(T.uint64(20))
        B[role] = 1


# Blocks take two of three locks each, in a circle, by exchanges.
@T.prim_func
def exchanged_locks(L: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    T.device_entry(); bx = T.cta_id([3]); tx = T.thread_id([32])
    if tx == 0:
        while T.ptx.atom_scalar(L.ptr_to([bx]), 1, op="exch", ptx_type="b32", scope="gpu", sem="acquire") != 0:
            T.cuda.nano_sleep(T.uint64(20))
        while T.ptx.atom_scalar(L.ptr_to([(bx + 1) % 3]), 1, op="exch", ptx_type="b32", scope="gpu", sem="acquire") != 0:
            T.cuda.nano_sleep(T.uint64(20))
        B[bx] = 1
        T.ptx.atom_scalar(L.ptr_to([(bx + 1) % 3]), 0, op="exch", ptx_type="b32", scope="gpu", sem="release")
        T.ptx.atom_scalar(L.ptr_to([bx]), 0, op="exch", ptx_type="b32", scope="gpu", sem="release")


# The blocks of a ring have their turns one after the other, twice.
@T.prim_func
def turns(F: T.Buffer((3,), "uint32"), B: T.Buffer((1,), "float32")):
    T.device_entry(); bx = T.cta_id([3]); tx = T.thread_id([32])
    if tx == 0:
        for r in range(2):
            if bx != 0 or r > 0:
                v: T.uint32 = 0
                while True:
                    v = T.ptx.ld_acquire(F.ptr_to([(bx + 2) % 3]), "uint32", "u32", scope="gpu")
                    if v >= T.cast(r + T.if_then_else(bx == 0, 0, 1), "uint32"):
                        break
            B[0] = B[0] + 1.0
            T.ptx.st_release(F.ptr_to([bx]), T.cast(r + 1, "uint32"), ptx_type="u32", scope="gpu")


# If the second arrival comes late, the first one may complete the phase, which it must not.
@T.prim_func
def no_complete(B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 2)
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.no_complete(bar.ptr_to([0]), 1)
    if tx == 32:
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = 1


# One warp may invalidate the mbarrier before another one has waited.
@T.prim_func
def invalidated(B: T.Buffer((96,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([96])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    if tx // 32 == 1:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    if tx == 64:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
        T.ptx.mbarrier.inval(bar.ptr_to([0]))
    B[tx] = 1


# If the third role comes late, no further phase of that parity completes.
@T.prim_func
def late(B: T.Buffer((64,), "int32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive(bar.ptr_to([0]))
    if tx == 32:
        T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 1)
    B[tx] = 1


# A flag between blocks.
@T.prim_func
def hand_over(A: T.Buffer((32,), "float32"), W: T.Buffer((32,), "float32"), F: T.Buffer((1,), "uint32"),
              B: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if bx == 0:
        W[tx] = A[tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
    else:
        if tx == 0:
            while T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                T.cuda.nano_sleep(T.uint64(20))
        T.cuda.cta_sync()
        B[tx] = W[tx] * T.float32(2)


# The result depends on who is last.
@T.prim_func
def last_wins(B: T.Buffer((1,), "int32")):
    T.device_entry(); bx = T.cta_id([2]); tx = T.thread_id([32])
    if tx == 0:
        T.ptx.st_relaxed(B.ptr_to([0]), bx + 1, ptx_type="s32", scope="gpu")


# A pair that only some orders leave without one: the second role reads what the first may not have written.
@T.prim_func
def sometimes_a_race(F: T.Buffer((1,), "uint32"), B: T.Buffer((2,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    if tx == 0:
        if bx == 0:
            B[0] = 1.0
            T.ptx.st_release(F.ptr_to([0]), T.uint32(1), ptx_type="u32", scope="gpu")
        else:
            if T.ptx.ld_acquire(F.ptr_to([0]), "uint32", "u32", scope="gpu") == T.uint32(0):
                B[1] = B[0]


@T.jit
def lanes(C: T.Buffer((1,), "int32"), B: T.Buffer((32,), "int32"), *, LANES: T.constexpr):
    T.device_entry(); tx = T.thread_id([32])
    if tx < LANES:
        B[tx] = T.cuda.atomic_add(C.ptr_to([0]), 1)


@T.prim_func
def sums(C: T.Buffer((1,), "int32"), B: T.Buffer((1,), "float32")):
    T.device_entry(); tx = T.thread_id([32])
    T.cuda.atomic_add(C.ptr_to([0]), tx)
    if tx < 3:
        T.cuda.atomic_add(B.ptr_to([0]), T.cast(tx, "float32") * T.float32(16777216))
"#;

/// The kernel's runs from zeros, but for `A` of some kernels.
fn sim(kernel: &str, tensors: &[&str], options: &[&str]) -> Outcome {
    let folder = Folder::new();
    fs::write(folder.path("orders.py"), KERNELS).unwrap();
    let outs: Vec<String> = tensors.iter().map(|name| format!("{name}={name}.npy")).collect();
    let outs = outs.iter().flat_map(|out| ["--out", out.as_str()]);
    let arguments = ["sim", "orders.py", "--entry", kernel].into_iter().chain(outs);
    folder.run(&arguments.chain(options.iter().copied()).collect::<Vec<_>>())
}

fn passes(outcome: &Outcome, parts: &[&str]) {
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    for part in parts {
        assert!(outcome.err.contains(part), "{part}: {}", outcome.err);
    }
}

#[test]
fn deadlocks_of_three_roles_that_random_schedules_miss_are_found() {
    for (kernel, line) in [
        ("onlooker", "T.ptx.mbarrier.try_wait(full.ptr_to([0]), 0)"),
        ("tickets", "T.ptx.mbarrier.try_wait(second.ptr_to([0]), 0)"),
    ] {
        passes(
            &sim(kernel, &["B"], &["--schedules", "1000"]),
            &["1000 schedules, 0 to 999: none fails"],
        );
        let found = sim(kernel, &["B"], &["--all-schedules"]);
        assert_eq!(found.code, Some(1), "{}", found.err);
        for part in [
            "deadlock",
            line,
            "wait for parity 0 of the mbarrier",
            "acts here",
            "orders that were run before",
        ] {
            let part = part.replace("wait for", "waits for");
            assert!(found.err.contains(&part), "{part}: {}", found.err);
        }
    }
    let circle = sim("locks", &["B"], &["--all-schedules"]);
    assert!(
        circle.err.contains("deadlock in kernel `locks_kernel`"),
        "{}",
        circle.err
    );
}

#[test]
fn a_spin_that_takes_no_lock_waits() {
    let circle = sim("exchanged_locks", &["L", "B"], &["--all-schedules"]);
    assert_eq!(circle.code, Some(1), "{}", circle.err);
    for part in [
        "deadlock in kernel",
        "1 thread spins in a loop that waits for memory that nobody writes",
    ] {
        assert!(circle.err.contains(part), "{part}: {}", circle.err);
    }
}

#[test]
fn operations_on_an_mbarrier_that_do_not_commute_come_in_each_order() {
    for (kernel, message) in [
        (
            "no_complete",
            "with .noComplete, and the phase waits for 1 arrivals only",
        ),
        ("invalidated", "asynchronous operation misused"),
        ("late", "deadlock in kernel"),
    ] {
        let found = sim(kernel, &["B"], &["--all-schedules"]);
        assert_eq!(found.code, Some(1), "{kernel}: {}", found.err);
        assert!(found.err.contains(message), "{kernel}: {}", found.err);
    }
}

#[test]
fn polls_that_read_the_same_value_again_make_no_orders() {
    passes(
        &sim("turns", &["F", "B"], &["--all-schedules"]),
        &["ran every order", ": 1 order of at most"],
    );
}

#[test]
fn what_is_right_is_shown_to_be_so() {
    // Everything in a ring waits for everything else: there is one order.
    passes(
        &sim("ring", &["A", "B"], &["--all-schedules"]),
        &["ran every order", "1 order of at most"],
    );
    let flags = sim("hand_over", &["A", "W", "F", "B"], &["--all-schedules"]);
    passes(
        &flags,
        &[
            "ran every order",
            "no order has a race, a deadlock",
            "the results are the same",
        ],
    );
}

#[test]
fn all_orders_are_counted() {
    // Three times three tickets: 9! / (3! 3! 3!) orders, of which one is stuck.
    let folder = Folder::new();
    fs::write(
        folder.path("orders.py"),
        KERNELS.replace("drawn == 48", "drawn == 999"),
    )
    .unwrap();
    let sim = |limit: &str| {
        folder.run(&[
            "sim",
            "orders.py",
            "--entry",
            "tickets",
            "--out",
            "B=b.npy",
            limit,
        ])
    };
    passes(&sim("--all-schedules"), &["ran every order", " 1680 orders of"]);
    passes(
        &sim("--all-schedules=100"),
        &[
            "did not run every order: 100 runs were made, which is the limit",
            "100 orders of",
        ],
    );
}

#[test]
fn races_and_results_that_depend_on_the_order_are_told() {
    passes(
        &sim("last_wins", &["B"], &["--all-schedules"]),
        &["2 orders", "the results differ, the first in `B`"],
    );
    let race = sim("sometimes_a_race", &["F", "B"], &["--all-schedules"]);
    assert_eq!(race.code, Some(1));
    assert!(
        race.err.contains("data race") && race.err.contains("do not fail: 1"),
        "{}",
        race.err
    );
}

#[test]
fn kernel_files_are_tested_in_every_order() {
    let folder = Folder::new();
    let described = "# sim: ring\n#   A: float32[4x32] = i * 32 + j\n#   B: float32[32] = 0 -> 192 + i * 4\n@T.prim_func\ndef ring";
    fs::write(
        folder.path("orders.py"),
        KERNELS.replacen("@T.prim_func\ndef ring", described, 1),
    )
    .unwrap();
    let outcome = folder.run(&["test", "orders.py", "--all-schedules"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert!(
        outcome.out.contains("ring, every order: 1 order\n"),
        "{}",
        outcome.out
    );
}

/// CUDA does not say in which order the lanes of a warp take their turns at an atomic.
#[test]
fn lanes_of_an_atomic_come_in_each_order() {
    let lanes = |count: &str| sim("lanes", &["C", "B"], &["-D", count, "--all-schedules"]);
    passes(&lanes("LANES=1"), &["ran every order", ": 1 order of"]);
    passes(
        &lanes("LANES=2"),
        &[
            "ran every order",
            ": 2 orders of",
            "the results differ, the first in `B`",
        ],
    );
    passes(&lanes("LANES=4"), &["ran every order", ": 24 orders of"]);
    passes(
        &lanes("LANES=32"),
        &[
            "did not run every order: 32 lanes of a warp update one location by one instruction, and 4 of their orders are tried",
            "ran 4 orders of",
        ],
    );
    // A sum of integers that nobody reads is the same in each order; one of floats need not be.
    passes(
        &sim("sums", &["C", "B"], &["--all-schedules"]),
        &["ran every order", ": 6 orders of"],
    );
}
