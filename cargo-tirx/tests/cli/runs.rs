//! `cargo tirx test`.

use std::fs;

use super::Folder;

const FILE: &str = r#"from __future__ import annotations
from tvm.script import tirx as T


# sim: add(N=64)
#   A: float32[N] = i
#   B: float32[N] = N
#   C: float32[N] = 0 -> A[i] + B[i]
@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]


# sim: double
#   A: int32[32] = i -> 2 * i
@T.prim_func
def double(A: T.Buffer((32,), "int32")):
    T.device_entry(); tx = T.thread_id([32])
    A[tx] = A[tx] + A[tx]
"#;

/// A second file.
const REVERSED: &str = r#"from tvm.script import tirx as T


# sim: last
#   A: int32[64] = 0 -> 63 - i
@T.prim_func
def last(A: T.Buffer((64,), "int32")):
    T.device_entry(); tx = T.thread_id([64])
    A[63 - tx] = tx
"#;

#[test]
fn what_files_describe_is_run() {
    let folder = Folder::new();
    fs::create_dir(folder.path("kernels")).unwrap();
    fs::write(folder.path("kernels/good.py"), FILE).unwrap();
    let outcome = folder.run(&["test", "kernels", "--schedules", "3"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(
        outcome.out,
        "ok      kernels/good.py:5 add\nok      kernels/good.py:16 double\n2 passed, 0 failed\n"
    );
    // The files of a manifest, and a part of their kernels.
    let manifest = "[[kernel]]\nname = \"double\"\nsource = \"kernels/good.py\"\ntargets = [\"sm_90a\"]\n";
    fs::write(folder.path("kernels.toml"), manifest).unwrap();
    let outcome = folder.run(&["test", "--filter", "dou"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(
        outcome.out,
        "ok      kernels/good.py:16 double\n1 passed, 0 failed\n"
    );
    let outcome = folder.run(&["test", "--filter", "none"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("none of 2 runs"), "{}", outcome.err);
}

#[test]
fn what_is_not_as_described_is_shown() {
    let folder = Folder::new();
    let wrong = FILE
        .replace("-> 2 * i", "-> 2 * i + (i == 7)")
        .replace("= N\n", "= N +\n");
    fs::write(folder.path("wrong.py"), &wrong).unwrap();
    let outcome = folder.run(&["test", "wrong.py"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains("wrong.py"), "{}", outcome.err);
    fs::write(folder.path("wrong.py"), wrong.replace("= N +\n", "= N\n")).unwrap();
    fs::write(folder.path("reversed.py"), REVERSED).unwrap();
    let outcome = folder.run(&["test", "wrong.py", "reversed.py"]);
    assert_eq!(outcome.code, Some(1));
    for part in [
        "FAILED  wrong.py:16 double\n        element 7 of A: expected 15, found 14\n",
        "with schedule 0: `cargo tirx test wrong.py --filter double --seed 0` repeats it\n",
        "2 passed, 1 failed",
    ] {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
    // Values that the kernel needs and the comment does not give.
    fs::write(
        folder.path("wrong.py"),
        FILE.replace("add(N=64)", "add")
            .replace("[N]", "[64]")
            .replace("= N\n", "= 1\n"),
    )
    .unwrap();
    let outcome = folder.run(&["test", "wrong.py"]);
    assert!(
        outcome.out.contains("FAILED  wrong.py:5 add") && outcome.out.contains("`# sim: add(N=…)`"),
        "{}",
        outcome.out
    );
}

/// What a failed run says to repeat it with repeats it, by the same schedule.
#[test]
fn a_failed_run_can_be_repeated() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("kernels/more")).unwrap();
    let wrong = FILE.replace("-> 2 * i", "-> 2 * i + (i == 7)");
    fs::write(folder.path("kernels/more/wrong.py"), wrong).unwrap();
    let outcome = folder.run(&["test", "kernels", "--seed", "5", "--arch", "sm_80"]);
    assert_eq!(outcome.code, Some(1));
    let (_, rest) = outcome.out.split_once("with schedule 5: `cargo tirx ").unwrap();
    let (again, _) = rest.split_once('`').unwrap();
    assert_eq!(
        again,
        "test kernels/more/wrong.py --filter double --arch sm_80 --seed 5"
    );
    let repeated = folder.run(&again.split(' ').collect::<Vec<_>>());
    assert!(
        repeated.out.contains("FAILED  kernels/more/wrong.py:16 double")
            && repeated.out.contains("with schedule 5: ")
            && repeated.out.ends_with("0 passed, 1 failed\n"),
        "{}",
        repeated.out
    );
}

/// What a line of the comment gives the kernel is not what it takes.
#[test]
fn another_dtype_is_named() {
    let folder = Folder::new();
    fs::write(
        folder.path("k.py"),
        FILE.replace("A: int32[32] = i", "A: int8[32] = i"),
    )
    .unwrap();
    let outcome = folder.run(&["test", "k.py", "--filter", "double"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome
            .out
            .contains("argument 0 `A`: dtype is int8, expected int32"),
        "{}",
        outcome.out
    );
}
