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
fn what_files_of_tirx_kernels_describe_is_run() {
    let folder = Folder::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let kernels = root.join("tirx-kernels/kernels");
    let outcome = folder.run(&["test", &kernels.to_string_lossy()]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert!(outcome.out.contains(" passed, 0 failed"), "{}", outcome.out);
}

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

/// Arguments have names, in any order; a name that the kernel has not, a missing one and one of another kind are errors.
#[test]
fn arguments_are_bound_by_name() {
    let folder = Folder::new();
    let file = |lines: &str| {
        format!(
            "from tvm.script import tirx as T\n\n# sim: k\n{lines}@T.prim_func\ndef k(a: T.handle, B: T.Buffer((32,), \"float32\"), s: T.float32):\n    \
             A = T.match_buffer(a, (32,), \"float32\")\n    T.device_entry(); tx = T.thread_id([32])\n    B[tx] = A[tx] * s\n"
        )
    };
    let run = |lines: &str| {
        fs::write(folder.path("k.py"), file(lines)).unwrap();
        folder.run(&["test", "k.py"])
    };
    let (a, b, s) = (
        "#   A: float32[32] = i\n",
        "#   B: float32[32] = 0 -> 2 * i\n",
        "#   s = 2.0\n",
    );
    for lines in [[a, b, s], [s, b, a], [b, a, s]] {
        let outcome = run(&lines.concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.out);
    }
    // The parameter's own name.
    assert_eq!(run(&[&a.replace('A', "a"), s, b].concat()).code, Some(0));
    for (lines, parts) in [
        (
            [a, &b.replace('B', "C"), s],
            ["`k` has no parameter `C` in line 5", "its parameters are A, B, s"],
        ),
        (
            [a, &b.replace('B', "BB"), s],
            ["`k` has no parameter `BB` in line 5", "did you mean `B`?"],
        ),
        (
            [a, b, ""],
            [
                "no line gives a parameter of `k` a value",
                "add `s = …` below `# sim: k`",
            ],
        ),
        (
            [a, "", ""],
            [
                "no line gives some parameters of `k` a value",
                "add `B: float32[…] = …`, `s = …`",
            ],
        ),
        (
            [a, b, "#   s: float32[4] = 2.0\n"],
            ["parameter `s` is a scalar of float32 in line 6", "write `s = …`"],
        ),
        (
            [a, "#   B = 3.0\n", s],
            ["parameter `B` is a tensor in line 5", "write `B: float32[…] = …`"],
        ),
        (
            [a, &[b, &a.replace('A', "a")].concat(), s],
            [
                "parameter `A` has two arguments",
                "`A` in line 4 and `a` in line 6",
            ],
        ),
    ] {
        let outcome = run(&lines.concat());
        assert_eq!(outcome.code, Some(1), "{}", outcome.out);
        for part in parts {
            assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
        }
    }
}

#[test]
fn another_fault_than_the_expected_one_is_shown_with_it() {
    let folder = Folder::new();
    let faulty = FILE.replace(
        "A: int32[32] = i -> 2 * i",
        "A: int32[33] = i\n#   fault: data race",
    );
    fs::write(folder.path("k.py"), &faulty).unwrap();
    let outcome = folder.run(&["test", "k.py", "--filter", "double"]);
    for part in [
        "expected a fault with the text: data race\n",
        "found: argument 0 `A`: shape[0] is 33, expected 32\n",
    ] {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
    fs::write(folder.path("k.py"), faulty.replace("[33]", "[32]")).unwrap();
    let outcome = folder.run(&["test", "k.py", "--filter", "double"]);
    assert!(
        outcome
            .out
            .contains("the run ends without a fault\n        expected a fault with the text: data race\n"),
        "{}",
        outcome.out
    );
}

/// Warnings of a kernel are shown once, and are errors where they are denied.
#[test]
fn warnings_are_shown_and_can_be_denied() {
    let folder = Folder::new();
    fs::write(folder.path("k.py"), FILE).unwrap();
    let well = folder.run(&["test", "k.py", "--deny", "warnings"]);
    assert_eq!((well.code, well.err.as_str()), (Some(0), ""));
    // A value that nothing uses.
    let warned = format!(
        "{FILE}\n\n# sim: noted\n#   A: int32[32] = i -> 1\n# sim: noted\n#   A: int32[32] = 0 -> 1\n@T.prim_func\ndef noted(A: T.Buffer((32,), \"int32\")):\n    \
         T.device_entry(); tx = T.thread_id([32])\n    A[tx] + 1\n    A[tx] = 1\n"
    );
    fs::write(folder.path("k.py"), &warned).unwrap();
    let outcome = folder.run(&["test", "k.py"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert_eq!(outcome.err.matches("warning: ").count(), 1, "{}", outcome.err);
    let denied = folder.run(&["test", "k.py", "--deny", "warnings"]);
    assert_eq!(denied.code, Some(1));
    assert!(
        denied.err.contains("1 warning, denied by `--deny warnings`"),
        "{}",
        denied.err
    );
    assert!(denied.out.ends_with("4 passed, 0 failed\n"), "{}", denied.out);
}

/// A kernel that cannot be built is refused by every command, and one for another GPU is accepted by every command unless that GPU is
/// excluded by name.
#[test]
fn all_commands_judge_alike() {
    let folder = Folder::new();
    let refused = "from tvm.script import tirx as T\n\n# sim: k\n#   A: float32[64] = i\n#   B: float32[64] = 0 -> i\n@T.prim_func\n\
        def k(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n    T.device_entry(); T.cta_id([1]); tx = T.thread_id([64])\n    \
        T.ptx.st(B.ptr_to([tx]), A[tx], space=\"shared\", ptx_type=\"f32\")\n";
    let blackwell = "from tvm.script import tirx as T\n\n# sim: k\n#   A: float32[32] = i\n#   B: float32[32] = 0 -> i\n@T.prim_func\n\
        def k(A: T.Buffer((32,), \"float32\"), B: T.Buffer((32,), \"float32\")):\n    T.device_entry(); T.cta_id([1]); tx = T.thread_id([32])\n    \
        s = T.alloc_shared((1,), \"uint32\")\n    T.ptx.tcgen05.alloc(T.address_of(s), n_cols=32, cta_group=1)\n    \
        T.cuda.cta_sync()\n    T.ptx.tcgen05.dealloc(s[0], n_cols=32, cta_group=1)\n    B[tx] = A[tx]\n";
    fs::write(folder.path("refused.py"), refused).unwrap();
    fs::write(folder.path("blackwell.py"), blackwell).unwrap();
    let zeros = [0.0; 64];
    folder.array("a64.npy", &zeros);
    folder.array("a32.npy", &zeros[..32]);
    let all = |file: &str, array: &str, more: &[&str]| -> Vec<(String, super::Outcome)> {
        let array = format!("A={array}");
        let commands: [&[&str]; 6] = [
            &["check", file],
            &["cuda", file],
            &["host", file],
            &["lower", file],
            &["sim", file, "--arg", &array, "--out", "B=b.npy"],
            &["test", file],
        ];
        let run = |command: &&[&str]| (command[0].to_string(), folder.run(&[*command, more].concat()));
        commands.iter().map(run).collect()
    };
    for (command, outcome) in all("refused.py", "a64.npy", &[]) {
        assert_eq!(outcome.code, Some(1), "{command}");
        let said = format!("{}{}", outcome.out, outcome.err);
        assert!(
            said.contains("\"address\" must point to shared memory, and `B` is in global memory"),
            "{command}: {said}"
        );
    }
    for more in [&[][..], &["--arch", "sm_100a"]] {
        for (command, outcome) in all("blackwell.py", "a32.npy", more) {
            assert_eq!(outcome.code, Some(0), "{command}: {}{}", outcome.out, outcome.err);
        }
    }
    for (command, outcome) in all("blackwell.py", "a32.npy", &["--arch", "sm_90a"]) {
        assert_eq!(outcome.code, Some(1), "{command}");
        let said = format!("{}{}", outcome.out, outcome.err);
        assert!(
            said.contains("needs sm_100a") && said.contains("the target is sm_90a"),
            "{command}: {said}"
        );
    }
}
