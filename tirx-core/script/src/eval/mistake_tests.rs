//! Mistakes that could silently give a wrong program: each is an error or a warning.

use std::collections::BTreeMap;

use crate::eval::LINTS;
use crate::source::SourceMap;
use crate::{KernelFile, NoImports};

const HEAD: &str = "from tvm.script import tirx as T\n";

/// The outcome of building the only kernel of a file: an error, or the names of the lints.
fn outcome(text: &str) -> Result<Vec<&'static str>, String> {
    let mut sources = SourceMap::new();
    let text = format!("{HEAD}{text}");
    let file = KernelFile::load(&mut sources, "k.py", &text, &NoImports).map_err(|e| e.render(&sources))?;
    for entry in file.entries() {
        file.build(Some(&entry.name), &BTreeMap::new())
            .map_err(|e| e.render(file.sources()))?;
    }
    Ok(file.lints().iter().map(|l| l.name).collect())
}

fn kernel(body: &str) -> String {
    let lines: Vec<String> = body.lines().map(|l| format!("    {l}\n")).collect();
    format!(
        "@T.prim_func\ndef k(A: T.Buffer((32,), \"float32\")):\n{}",
        lines.concat()
    )
}

fn refused(text: &str, parts: &[&str]) {
    let error = outcome(text).expect_err(text);
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in\n{error}");
    }
}

#[test]
fn extents_that_do_not_fit_32_bits_are_refused() {
    let thread = kernel("T.device_entry()\ntx = T.thread_id([4294967328])\nA[tx] = 0.0");
    refused(
        &thread,
        &["an extent must fit 32 bits, found 4294967328", "k.py:5"],
    );
    let block = kernel("T.device_entry()\nbx = T.cta_id([2**32 + 1])\ntx = T.thread_id([32])\nA[tx] = 0.0");
    refused(&block, &["an extent must fit 32 bits, found 4294967297"]);
    let launched =
        kernel("with T.launch_thread(\"blockIdx.x\", T.int64(4294967297)) as bx:\n    A[bx] = 0.0");
    refused(&launched, &["an extent must fit 32 bits, found 4294967297"]);
    refused(
        &kernel("T.device_entry()\ntx = T.thread_id([-4])\nA[tx] = 0.0"),
        &["must not be negative, found -4"],
    );
}

#[test]
fn a_return_before_the_kernel_is_refused() {
    for value in ["", " 1"] {
        let text = kernel(&format!(
            "return{value}\nT.device_entry()\ntx = T.thread_id([32])\nA[tx] = 0.0"
        ));
        refused(
            &text,
            &[
                "\"return\" before T.device_entry()",
                "nothing would be launched",
                "k.py:4",
            ],
        );
    }
    assert_eq!(
        outcome(&kernel(
            "T.device_entry()\ntx = T.thread_id([32])\nif tx > 3:\n    return\nA[tx] = 0.0"
        )),
        Ok(vec![])
    );
}

#[test]
fn a_parameter_that_is_there_twice_is_refused() {
    refused(
        "@T.prim_func\ndef scale(a: T.handle, a: T.handle):\n    T.device_entry()\n    tx = T.thread_id([32])\n",
        &["\"a\"", "k.py:3"],
    );
}

#[test]
fn what_does_nothing_is_told() {
    let lints = |body: &str| {
        outcome(&kernel(&format!(
            "T.device_entry()\ntx = T.thread_id([32])\n{body}\nA[tx] = 0.0"
        )))
        .unwrap_or_else(|e| panic!("{e}"))
    };
    assert_eq!(lints("T.cuda.cta_sync"), ["uncalled-function"]);
    assert_eq!(lints("T.cuda.cta_sync()"), [""; 0]);
    assert_eq!(lints("A[tx]"), ["unused-value"]);
    assert_eq!(lints("A[tx] + 1.0"), ["unused-value"]);
    assert_eq!(lints("A"), ["unused-value"]);
    assert_eq!(lints("print(A[tx])"), ["print-at-compile-time"]);
    assert_eq!(lints("if A == 3.0:\n    T.cuda.cta_sync()"), ["compared-buffer"]);
    assert_eq!(lints("if tx != A:\n    T.cuda.cta_sync()"), ["compared-buffer"]);
    assert_eq!(
        lints("if A[tx] == 3.0 and A != None:\n    T.cuda.cta_sync()"),
        [""; 0]
    );
    assert_eq!(lints("print(32)"), [""; 0]);
    assert_eq!(lints("x = 1\nx = 2.5"), ["cut-constant"]);
    assert_eq!(lints("x = 0\nx = x + A[tx]"), ["cut-float"]);
    assert_eq!(lints("x = 0\nx += A[tx]"), ["cut-float"]);
    assert_eq!(lints("x = 0\nx = x + T.cast(A[tx], \"int32\")"), [""; 0]);
    assert_eq!(lints("x = 0.0\nx = x + A[tx]"), [""; 0]);
    assert_eq!(
        lints("T.attr({\"tirx.launch_bounds_min_blocks\": 2})"),
        ["unread-option"]
    );
    assert_eq!(
        lints("T.attr({\"tirx.launch_bounds_min_blocks_per_sm\": 2})"),
        [""; 0]
    );
    assert_eq!(lints("x = 1\nx = 2.0"), [""; 0]);
    let warned = "import warnings\nwarnings.warn(f\"the last of {3}\", stacklevel=2)\n";
    assert_eq!(
        outcome(&format!("{warned}{}", kernel("T.evaluate(0)"))),
        Ok(vec!["library-warning"])
    );
    let reduced =
        "r = T.alloc_local((4,), \"float32\")\nm = T.alloc_local((1,), \"float32\")\nT.thread.max(m, r, ";
    assert_eq!(lints(&format!("{reduced}axis=0)")), ["unread-option"]);
    assert_eq!(lints(&format!("{reduced}axes=0, thread_reduce=True)")), [""; 0]);
    assert_eq!(lints("\"\"\"A comment.\"\"\"\n..."), [""; 0]);
    assert_eq!(lints("x = 1\nx = 2.5  # tirx: allow(cut-constant)"), [""; 0]);
    assert_eq!(lints("# tirx: allow(unused-value, cut-constant)\nA[tx]"), [""; 0]);
    let twice = format!(
        "{}{}",
        kernel("T.device_entry()\ntx = T.thread_id([32])\nA[tx] = 0.0"),
        kernel("T.device_entry()\ntx = T.thread_id([32])\nA[tx] = 1.0")
    );
    assert_eq!(outcome(&twice), Ok(vec!["redefined-kernel"]));
    assert_eq!(
        outcome(&format!("# tirx: allow(redefined-kernel)\n{twice}")).map(|l| l.len()),
        Ok(1)
    );
}

/// A value of the host that a kernel needs is named, wherever it stands.
#[test]
fn host_values_in_kernels_are_named() {
    for line in [
        "A[tx] = pi",
        "A[pi] = 0.0",
        "A[tx] = A[pi]",
        "x: T.let = pi",
        "x: T.float32 = pi",
        "if tx == pi:\n    A[tx] = 0.0",
        "if pi != A[tx]:\n    A[tx] = 0.0",
        "if tx < pi:\n    A[tx] = 0.0",
        "for i in range(pi):\n    A[i] = 0.0",
        "A[tx] = T.if_then_else(tx == pi, 1.0, 2.0)",
    ] {
        let body = kernel(&format!("T.device_entry()\ntx = T.thread_id([32])\n{line}"));
        let error = outcome(&format!("from numpy import pi\n{body}")).expect_err(line);
        let named = "\"numpy.pi\" belongs to the host program: it has no value in a kernel file";
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn every_lint_is_listed() {
    for name in [
        "uncalled-function",
        "unused-value",
        "compared-buffer",
        "print-at-compile-time",
        "cut-constant",
        "cut-float",
        "redefined-kernel",
    ] {
        assert!(LINTS.iter().any(|(n, _)| *n == name), "{name}");
    }
}

#[test]
fn indices_that_nothing_declares_are_not_defined() {
    let with = |line: &str| kernel(&format!("T.device_entry()\nt = T.thread_id([32])\n{line}"));
    for (name, declaration) in [
        ("tx", "tx = T.thread_id([128])"),
        ("bx", "bx = T.cta_id([1])"),
        ("laneid", "laneid = T.lane_id([32])"),
        ("warpid", "warpid = T.warp_id([4])"),
        ("tid", "tid = T.thread_id([128])"),
    ] {
        for line in [
            format!("A[{name}] = 0.0"),
            format!("A[t] = A[{name} + 1]"),
            format!("if {name} < 4:\n    A[t] = 0.0"),
        ] {
            refused(
                &with(&line),
                &[&format!("\"{name}\" is not defined"), declaration],
            );
        }
    }
    refused(&with("A[m] = 0.0"), &["\"m\" is not defined", "axis of layouts"]);
    // In a layout they mean themselves.
    let layout = with(
        "R = T.alloc_buffer((32, 8), \"float32\", scope=\"local\", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))\nA[t] = 0.0",
    );
    assert_eq!(outcome(&layout), Ok(vec![]));
}
