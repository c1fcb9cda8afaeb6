//! The command line as a user meets it: output, messages and exit codes.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const KERNELS: &str = r#"from __future__ import annotations
from tvm.script import tirx as T


@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    C[tx] = A[tx] + B[tx]


@T.prim_func
def scale(a: T.handle, b: T.handle, s: T.float32, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)]); tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        B[i] = A[i] * s + T.float32(k)


@T.prim_func
def outside(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (m,), "float32")
    T.device_entry()
    bx = T.cta_id([1]); tx = T.thread_id([n])
    B[tx] = A[tx]
"#;

struct Folder(tempfile::TempDir);

struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("k.py"), KERNELS).unwrap();
        folder
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Outcome {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(args)
            .current_dir(self.0.path())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        Outcome {
            code: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }
}

#[track_caller]
fn fails(outcome: &Outcome, code: i32, parts: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{}", outcome.err);
    assert!(outcome.out.is_empty(), "{}", outcome.out);
    for part in parts {
        assert!(outcome.err.contains(part), "{part}: {}", outcome.err);
    }
}

#[test]
fn both_ways_of_calling_work() {
    let folder = Folder::new();
    for args in [
        &["tirx", "cuda", "k.py", "--entry", "scale"][..],
        &["cuda", "k.py", "--entry", "scale"],
    ] {
        let outcome = folder.run(args);
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        assert!(
            outcome.out.contains("__global__ void") && outcome.err.is_empty(),
            "{}",
            outcome.out
        );
    }
}

#[test]
fn every_stage_prints() {
    let folder = Folder::new();
    let add = ["k.py", "--entry", "add", "-D", "N=128"];
    let stage = |args: &[&str]| {
        let outcome = folder.run(&[args, &add[..]].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        outcome.out
    };
    assert!(stage(&["lower", "--stop-after", "parse"]).contains("T.thread_id([128])"));
    let lowered = stage(&["lower", "--stop-after", "LowerTIRx"]);
    assert!(
        lowered.contains("T.launch_thread(\"threadIdx.x\", 128)"),
        "{lowered}"
    );
    let last = stage(&["lower"]);
    assert!(
        last.contains("def add_kernel") && last.contains("__tvm_ffi_add"),
        "{last}"
    );
    let host = stage(&["host"]);
    assert!(
        host.contains("T.call_packed(\"add_kernel\"") && !host.contains("def add_kernel"),
        "{host}"
    );
}

#[test]
fn printed_ir_is_a_kernel_file() {
    let folder = Folder::new();
    let printed = folder.run(&[
        "lower",
        "k.py",
        "--entry",
        "scale",
        "--stop-after",
        "FlattenBuffer",
    ]);
    fs::write(folder.path("printed.py"), &printed.out).unwrap();
    let again = folder.run(&["lower", "printed.py", "--stop-after", "parse"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(again.out, printed.out);
}

#[test]
fn user_errors_exit_with_1() {
    let folder = Folder::new();
    fails(
        &folder.run(&["cuda", "nothing.py"]),
        1,
        &["error: cannot read `nothing.py`"],
    );
    fails(
        &folder.run(&["cuda", "k.py"]),
        1,
        &["defines several kernels", "add, scale, outside"],
    );
    fails(
        &folder.run(&["cuda", "k.py", "--entry", "ad"]),
        1,
        &["defines no kernel `ad`"],
    );
    fails(
        &folder.run(&["cuda", "k.py", "--entry", "add"]),
        1,
        &["needs compile-time values", "-D N=…"],
    );
    let unknown = folder.run(&["cuda", "k.py", "--entry", "add", "-D", "M=1"]);
    fails(&unknown, 1, &["no compile-time parameter `M`", "are N"]);
    fs::write(folder.path("bad.py"), "def f(:\n").unwrap();
    fails(&folder.run(&["check", "bad.py"]), 1, &["error:", "--> bad.py:1:"]);
    fs::write(folder.path("empty.py"), "x = 1\n").unwrap();
    fails(
        &folder.run(&["check", "empty.py"]),
        1,
        &["defines no kernel", "@T.prim_func"],
    );
}

#[test]
fn usage_errors_exit_with_2() {
    let folder = Folder::new();
    let define = |text: &str| folder.run(&["cuda", "k.py", "--entry", "add", "-D", text]);
    fails(&define("N"), 2, &["bad -D: `N` is not of the form NAME=VALUE"]);
    fails(&define("N=25x6"), 2, &["bad -D: `25x6` is no value"]);
    fails(&define("1=2"), 2, &["bad -D: `1`"]);
    fails(
        &folder.run(&["cuda", "k.py", "--entry", "scale", "--arch", "sm90a"]),
        2,
        &["did you mean `sm_90a`?"],
    );
    let pass = folder.run(&["lower", "k.py", "--entry", "scale", "--stop-after", "Nothing"]);
    fails(&pass, 2, &["there is no pass `Nothing`", "LowerTIRx"]);
    fails(&folder.run(&["frobnicate"]), 2, &["unrecognized subcommand"]);
}

#[test]
fn check_is_silent_or_says_what_it_left_out() {
    let folder = Folder::new();
    let all = folder.run(&["check", "k.py"]);
    assert_eq!((all.code, all.out.as_str()), (Some(0), ""), "{}", all.err);
    assert!(
        all.err.contains("note: `add` was not checked: give -D N=…"),
        "{}",
        all.err
    );
    let one = folder.run(&["check", "k.py", "-D", "N=64"]);
    assert_eq!((one.code, one.err.as_str()), (Some(0), ""), "{}", one.err);
}

#[test]
fn the_dump_and_the_times_go_beside_the_output() {
    let folder = Folder::new();
    let outcome = folder.run_with(
        &["lower", "k.py", "--entry", "scale", "--timing"],
        &[("TIRX_DUMP", "dump")],
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(
        outcome.err.contains("LowerTIRx") && outcome.err.contains("total"),
        "{}",
        outcome.err
    );
    assert!(
        fs::read_to_string(folder.path("dump/00-parsed.py"))
            .unwrap()
            .contains("def main")
    );
}
