//! A fault of a running kernel is reported at the line that causes it, whatever the passes did to that line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const HEAD: &str = "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
    def k(A: T.Buffer((8,), \"float32\"), I: T.Buffer((8,), \"int32\")):\n\
    \x20   T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([64])\n";

/// What goes wrong, and the kernel's body; `# here` marks the line. The tensors are zero.
const CASES: &[(&str, &str)] = &[
    ("out-of-bounds", "A[tx] = 1.0  # here"),
    ("out-of-bounds", "A[0] = A[tx]  # here"),
    ("out-of-bounds", "for i in range(4):\n    A[i] = A[i * 8]  # here"),
    (
        "out-of-bounds",
        "for i in T.unroll(4):\n    A[i] = A[i + I[0] + 6]  # here",
    ),
    (
        "out-of-bounds",
        "for i in T.vectorized(4):\n    A[i] = A[i + 8 + I[0] * 4]  # here",
    ),
    (
        "out-of-bounds",
        "@T.inline\ndef f(i):\n    A[0] = A[i + 8]  # here\nf(tx)",
    ),
    ("out-of-bounds", "i: T.let = tx + 8\nA[0] = A[i]  # here"),
    ("out-of-bounds", "if tx < 3:\n    A[0] = A[tx + 8]  # here"),
    ("out-of-bounds", "A[0] = T.exp(A[I[0] + 8])  # here"),
    (
        "out-of-bounds",
        "A[0] = T.if_then_else(I[0] == 0, A[tx + 8], 0.0)  # here",
    ),
    ("out-of-bounds", "while I[0] < 1:\n    A[tx] = 1.0  # here"),
    (
        "data race",
        "for i in T.vectorized(4):\n    A[i] = A[i + 1 + I[0] * 2]  # here",
    ),
    ("division by zero", "I[0] = 100 // tx  # here"),
    ("division by zero", "I[0] = 100 % tx  # here"),
    ("division by zero", "d: T.let = I[0]\nI[1] = 100 // d  # here"),
    (
        "division by zero",
        "for i in range(4):\n    I[1] = 100 // i  # here",
    ),
    (
        "division by zero",
        "for i in T.unroll(4):\n    I[1] = 100 // (i + I[0])  # here",
    ),
    (
        "division by zero",
        "for i in T.vectorized(4):\n    I[i] = 100 // (i + I[0])  # here",
    ),
    ("division by zero", "I[1] = (5 // I[0]) + (5 // I[0])  # here"),
    ("division by zero", "if tx < 3:\n    I[1] = 5 // tx  # here"),
    (
        "division by zero",
        "@T.inline\ndef f(i):\n    I[1] = 5 // i  # here\nf(tx)",
    ),
    ("division by zero", "A[8 // tx] = 1.0  # here"),
    (
        "division by zero",
        "x: T.let = 5 // tx  # here\nI[0] = x + 1\nI[1] = x + 2",
    ),
    (
        "division by zero",
        "I[0] = (5 // tx) + 1  # here\nI[1] = (5 // tx) + 2",
    ),
    (
        "division by zero",
        "n: T.let = tx * 2\nm: T.let = n\nI[0] = 7 // m  # here\nI[1] = m",
    ),
    ("division by zero", "I[0] = T.truncdiv(100, tx)  # here"),
    ("division by zero", "I[0] = T.max(T.min(100 // tx, 3), 1)  # here"),
    (
        "division by zero",
        "I[0] = T.cast(T.cast(100, \"int64\") // T.cast(tx, \"int64\"), \"int32\")  # here",
    ),
    (
        "uninitialized",
        "S = T.alloc_shared((64,), \"float32\")\nA[tx % 8] = S[tx]  # here",
    ),
    (
        "uninitialized",
        "L = T.alloc_local((4,), \"float32\")\nfor i in range(4):\n    A[i] = L[i]  # here",
    ),
    (
        "uninitialized",
        "L = T.alloc_local((4,), \"float32\")\nfor i in T.unroll(4):\n    A[i] = L[i]  # here",
    ),
    (
        "uninitialized",
        "L = T.alloc_local((4,), \"float32\")\nfor i in T.vectorized(4):\n    A[i] = L[i]  # here",
    ),
    ("uninitialized", "s: T.float32\nA[0] = s + 1.0  # here"),
    ("race", "S = T.alloc_shared((64,), \"int32\")\nS[0] = tx  # here"),
    (
        "race",
        "S = T.alloc_shared((64,), \"int32\")\nS[tx] = 0\nT.cuda.cta_sync()\nS[tx] = tx  # here\nI[0] = S[63 - tx]",
    ),
    ("race", "if tx < 8:\n    A[tx] = A[0] + 1.0  # here"),
    (
        "race",
        "if tx < 8:\n    x: T.let = A[0]\n    A[0] = x + T.cast(tx, \"float32\") + 1.0  # here",
    ),
    ("barrier", "if tx < 32:\n    T.cuda.cta_sync()  # here"),
    ("assertion", "assert I[0] == 1, \"not one\"  # here"),
    (
        "signed overflow",
        "if tx < 2:\n    x: T.let = I[0] + 2147483647\n    I[tx] = x + tx  # here",
    ),
    (
        "signed overflow",
        "I[tx % 2] = (I[tx % 2] - 4) * 536870913  # here",
    ),
];

/// Runs `k.py`.
fn simulate(folder: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
        .args(["sim", "k.py", "--out", "A=a.npy", "--out", "I=i.npy"])
        .args(options)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn signed_overflow_wraps_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        format!("{HEAD}    if tx < 2:\n        x: T.let = I[tx + 2] + 2147483647\n        I[tx] = x + tx\n");
    fs::write(folder.path().join("k.py"), text).unwrap();
    let wraps = simulate(folder.path(), &[]);
    assert!(
        wraps.status.success(),
        "{}",
        String::from_utf8_lossy(&wraps.stderr)
    );
    let written = fs::read(folder.path().join("i.npy")).unwrap();
    let elements = &written[written.len() - 32..];
    assert_eq!(elements[..8], [255, 255, 255, 127, 0, 0, 0, 128]);
    let fault = simulate(folder.path(), &["--check-overflow"]);
    assert!(!fault.status.success());
    assert!(String::from_utf8_lossy(&fault.stderr).contains("signed overflow in kernel `k_kernel`"));
}

#[test]
fn faults_are_reported_at_the_line_that_causes_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (kind, body) in CASES {
        let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
        let text = format!("{HEAD}{body}");
        let line = text.lines().position(|l| l.contains("# here")).unwrap() + 1;
        fs::write(folder.path().join("k.py"), &text).unwrap();
        let output = simulate(folder.path(), &["--message-format", "json", "--check-overflow"]);
        let text = String::from_utf8(output.stderr).unwrap();
        let Ok(message) = serde_json::from_str::<serde_json::Value>(text.trim()) else {
            wrong.push(format!("no fault, {kind} expected:\n{body}{text}"));
            continue;
        };
        let found = message["message"].as_str().unwrap_or_default();
        if message["spans"][0]["line_start"] != line || !found.contains(kind) {
            wrong.push(format!(
                "{kind} expected:\n{body}{}",
                message["rendered"].as_str().unwrap_or_default()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        CASES.len(),
        wrong.join("\n")
    );
}
