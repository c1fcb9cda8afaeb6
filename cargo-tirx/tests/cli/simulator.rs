//! `cargo tirx sim` as users see it: arrays in and out, faults, arguments.

use std::fs;

use super::{Folder, KERNELS, fails};

/// An array that comes in as ml_dtypes writes it goes out as the same file.
#[test]
fn arrays_of_ml_dtypes_go_out_as_they_came_in() {
    for (dtype, descr, bytes) in [
        ("float8_e5m2", "<f1", 1),
        ("float8_e4m3fn", "<V1", 1),
        ("bfloat16", "<V2", 2),
        ("float4_e2m1fn", "<V1", 1),
    ] {
        let kernel = format!(
            "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
             def back(A: T.Buffer((8,), \"{dtype}\"), B: T.Buffer((8,), \"{dtype}\")):\n    T.device_entry()\n    \
             T.cta_id([1])\n    T.thread_id([1])\n    for i in range(8):\n        B[i] = A[7 - i]\n"
        );
        let folder = Folder::new();
        fs::write(folder.path("b.py"), kernel).unwrap();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (8,), }}");
        header.extend(std::iter::repeat_n(' ', 117 - header.len()));
        let file = |elements: &[u8]| {
            let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
            file.extend(header.as_bytes());
            file.push(b'\n');
            file.extend(elements.iter().flat_map(|e| std::iter::repeat_n(*e, bytes)));
            file
        };
        fs::write(folder.path("a.npy"), file(&[0, 1, 2, 3, 4, 5, 6, 7])).unwrap();
        let outcome = folder.run(&[
            "sim", "b.py", "--arg", "A=a.npy", "--arg", "B=a.npy", "--out", "B=b.npy",
        ]);
        assert_eq!(outcome.code, Some(0), "{dtype}: {}", outcome.err);
        let found = fs::read(folder.path("b.npy")).unwrap();
        assert!(found == file(&[7, 6, 5, 4, 3, 2, 1, 0]), "{dtype}");
    }
}

#[test]
fn a_kernel_runs_on_arrays() {
    let folder = Folder::new();
    let input: Vec<f32> = (0..300).map(|i| i as f32).collect();
    folder.array("a.npy", &input);
    let scale = [
        "sim", "k.py", "--entry", "scale", "--scalar", "s=3.0", "--scalar", "k=1",
    ];
    // By the buffer's name and by the parameter's.
    for (a, b) in [("A", "B"), ("a", "b")] {
        let (arg, out) = (format!("{a}=a.npy"), format!("{b}=b.npy"));
        let outcome = folder.run(&[&scale[..], &["--arg", &arg, "--out", &out]].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        let expected: Vec<f32> = input.iter().map(|v| v * 3.0 + 1.0).collect();
        assert_eq!(folder.floats("b.npy"), expected);
        fs::remove_file(folder.path("b.npy")).unwrap();
    }
}

#[test]
fn an_output_with_an_input_starts_from_it() {
    let folder = Folder::new();
    folder.array("a.npy", &[1.0, 2.0]);
    folder.array("b.npy", &[5.0, 6.0, 7.0]);
    let outcome = folder.run(&[
        "sim", "k.py", "--entry", "outside", "--arg", "A=a.npy", "--arg", "B=b.npy", "--out", "B=c.npy",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(folder.floats("c.npy"), [1.0, 2.0, 7.0]);
}

#[test]
fn lanes_are_the_last_dimension_of_an_array() {
    let folder = Folder::new();
    let vectors = "from tvm.script import tirx as T\n@T.prim_func\ndef k(A: T.Buffer((8,), \"float32\"), B: T.Buffer((2,), \"float32x4\")):\n    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([2])\n    B[tx] = A[T.ramp(tx * 4, 1, 4)] + B[tx]\n";
    fs::write(folder.path("v.py"), vectors).unwrap();
    folder.array("a.npy", &[1.0; 8]);
    let sim = |b: &str| folder.run(&["sim", "v.py", "--arg", "A=a.npy", "--arg", b, "--out", "B=b.npy"]);
    let first = folder.run(&["sim", "v.py", "--arg", "A=a.npy", "--out", "B=b.npy"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(folder.floats("b.npy"), [1.0; 8]);
    assert_eq!(sim("B=b.npy").code, Some(0));
    assert_eq!(folder.floats("b.npy"), [2.0; 8]);
    fails(&sim("B=a.npy"), 1, &["`<f4, 4 in the last dimension`"]);
}

#[test]
fn a_fault_names_the_line() {
    let folder = Folder::new();
    folder.array("a.npy", &[1.0, 2.0, 3.0]);
    folder.array("b.npy", &[0.0, 0.0]);
    let outcome = folder.run(&[
        "sim", "k.py", "--entry", "outside", "--arg", "A=a.npy", "--arg", "B=b.npy",
    ]);
    fails(&outcome, 1, &["k.py:32", "B[tx] = A[tx]"]);
}

#[test]
fn arguments_are_checked_as_a_launcher_checks_them() {
    let folder = Folder::new();
    folder.array("a.npy", &[1.0; 4]);
    folder.array("b.npy", &[1.0; 5]);
    let scale = |rest: &[&str]| {
        let head = ["sim", "k.py", "--entry", "scale", "--arg", "A=a.npy"];
        folder.run(&[&head[..], rest].concat())
    };
    let scalars = ["--scalar", "s=3.0", "--scalar", "k=1"];
    let shape = scale(&[&scalars[..], &["--arg", "B=b.npy"]].concat());
    fails(
        &shape,
        1,
        &["kernel `scale`: argument 1 `B`: shape[0] is 5, expected 4 (A.shape[0])"],
    );
    fails(
        &scale(&["--arg", "B=b.npy", "--scalar", "k=1"]),
        1,
        &["scalar `s` is missing", "--scalar s=VALUE"],
    );
    fails(&scale(&scalars), 1, &["tensor `B` is missing"]);
    let fraction = scale(&["--out", "B=c.npy", "--scalar", "s=1", "--scalar", "k=1.5"]);
    fails(&fraction, 1, &["`1.5` is no int32, which scalar `k` is"]);
    let other = scale(&[&scalars[..], &["--out", "B=c.npy", "--out", "C=d.npy"]].concat());
    fails(
        &other,
        1,
        &["--out C: the kernel has no such parameter", "A, B, s, k"],
    );
    fails(&scale(&["--scalar", "s"]), 2, &["bad --scalar"]);
    fs::write(folder.path("b.npy"), "no array").unwrap();
    fails(
        &scale(&[&scalars[..], &["--arg", "B=b.npy"]].concat()),
        1,
        &["`b.npy` is no .npy file"],
    );
    let unknown = [
        "sim", "k.py", "--entry", "outside", "--arg", "A=a.npy", "--out", "B=c.npy",
    ];
    fails(
        &folder.run(&unknown),
        1,
        &["the shape of `B` does not follow", "extent `m` is not known"],
    );
}

/// Python's words for a bool, a number, or those of Rust and JSON.
#[test]
fn a_bool_is_given_by_word_or_number() {
    let folder = Folder::new();
    let kernel = "from tvm.script import tirx as T\n\n\n@T.prim_func\ndef choose(A: T.Buffer((32,), \"float32\"), up: T.bool):\n    \
                  T.device_entry()\n    tx = T.thread_id([32])\n    A[tx] = T.Select(up, 1.0, -1.0)\n";
    fs::write(folder.path("choose.py"), kernel).unwrap();
    for (word, value) in [
        ("True", 1.0),
        ("true", 1.0),
        ("1", 1.0),
        ("False", -1.0),
        ("false", -1.0),
    ] {
        let scalar = format!("up={word}");
        let outcome = folder.run(&["sim", "choose.py", "--scalar", &scalar, "--out", "A=a.npy"]);
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        assert_eq!(folder.floats("a.npy"), [value; 32]);
    }
    fails(
        &folder.run(&["sim", "choose.py", "--scalar", "up=yes", "--out", "A=a.npy"]),
        1,
        &[
            "`yes` is no bool, which scalar `up` is",
            "help: a bool is True or False",
        ],
    );
}

/// Each kind of fault: message, line, block and thread.
#[test]
fn every_fault_says_what_where_and_who() {
    let folder = Folder::new();
    let cases = [
        (
            "A[tx + 32 * bx + 5] = 1.0",
            "out-of-bounds access",
            "writes `A[64]`",
            "in block (1, 0, 0), thread (27, 0, 0)",
        ),
        (
            "S = T.alloc_shared((32,), \"float32\"); S[31 - tx] = 0.0; T.cuda.cta_sync(); S[tx] = 1.0; A[tx] = S[0]",
            "data race",
            "barrier orders the two",
            "in block (0, 0, 0), thread (",
        ),
        (
            "S = T.alloc_shared((32,), \"float32\"); S[tx // 2] = 1.0; T.cuda.cta_sync(); A[tx] = S[tx]",
            "uninitialized read",
            "reads `S[16]` before any thread has written it",
            "in block (0, 0, 0), thread (16, 0, 0)",
        ),
        (
            "L = T.alloc_local((2,), \"float32\"); L[tx // 20] = 1.0; A[tx] = L[0]",
            "uninitialized read",
            "reads `L[0]` before this thread has written it",
            "in block (0, 0, 0), thread (20, 0, 0)",
        ),
    ];
    for (statement, kind, message, place) in cases {
        faults(&folder, &format!("    {statement}\n"), [kind, message, place]);
    }
    faults(
        &folder,
        "    if bx == 0 or tx < 20: T.cuda.cta_sync()\n    A[tx] = 1.0\n",
        [
            "barrier not reached by all threads",
            "12 threads of the block ended without reaching this barrier, thread (20, 0, 0) the first",
            "in block (1, 0, 0), thread (0, 0, 0)",
        ],
    );
}

/// Runs a kernel whose first line of work, the seventh, faults.
#[track_caller]
fn faults(folder: &Folder, body: &str, parts: [&str; 3]) {
    let head = "@T.prim_func\ndef k(A: T.Buffer((64,), \"float32\")):\n    T.device_entry()\n    \
                # work\n    bx = T.cta_id([2])\n    tx = T.thread_id([32])\n";
    fs::write(folder.path("fault.py"), format!("{head}{body}")).unwrap();
    let outcome = folder.run(&["sim", "fault.py", "--out", "A=fault.npy"]);
    fails(&outcome, 1, &parts);
    fails(&outcome, 1, &["--> fault.py:7:", "in kernel `k_kernel`"]);
    assert!(
        !folder.path("fault.npy").exists(),
        "a kernel that failed has no result"
    );
}

#[test]
fn races_are_faults_unless_they_are_not_looked_for() {
    let folder = Folder::new();
    let kernel = "@T.prim_func\ndef k(A: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
                  tx = T.thread_id([32])\n    S = T.alloc_shared((32,), \"float32\")\n    S[tx] = 1.0\n    A[tx] = S[31 - tx]\n";
    fs::write(folder.path("race.py"), kernel).unwrap();
    let checked = ["sim", "race.py", "--out", "A=a.npy"];
    fails(
        &folder.run(&checked),
        1,
        &["data race in kernel `k_kernel`", "--> race.py:8:"],
    );
    assert!(!folder.path("a.npy").exists());
    let unchecked = folder.run(&["sim", "race.py", "--out", "A=a.npy", "--no-race-check"]);
    assert_eq!(unchecked.code, Some(0), "{}", unchecked.err);
    let written = fs::read(folder.path("a.npy")).unwrap();
    assert_eq!(written[written.len() - 128..], 1f32.to_le_bytes().repeat(32)[..]);
}

/// A kernel fails by its finding, and leaves its values where the launch goes on after that.
#[track_caller]
fn goes_on(folder: &Folder, kind: &str, body: &str, finding: &str, expected: &[f32]) {
    let head = format!(
        "@T.prim_func\ndef k(A: T.Buffer(({},), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
         tx = T.thread_id([64])\n",
        expected.len()
    );
    fs::write(folder.path("finding.py"), format!("{head}{body}")).unwrap();
    let plain = ["sim", "finding.py", "--out", "A=finding.npy"];
    fails(&folder.run(&plain), 1, &["error: ", finding]);
    let after = format!("--continue-after={kind}");
    let outcome = folder.run(&[&plain[..], &[&after]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(
        outcome.err.starts_with("warning: ") && outcome.err.contains(finding),
        "{}",
        outcome.err
    );
    let written = fs::read(folder.path("finding.npy")).unwrap();
    let bytes: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(written[written.len() - bytes.len()..], bytes);
    // Of another kind it is still an error.
    let other = if kind == "unwritten-reads" {
        "freed-columns"
    } else {
        "unwritten-reads"
    };
    let outcome = folder.run(&[&plain[..], &["--continue-after", other]].concat());
    fails(&outcome, 1, &["error: ", finding]);
}

#[test]
fn a_launch_goes_on_after_findings_that_it_is_told_to_report() {
    let folder = Folder::new();
    let half: Vec<f32> = (0..64).map(|i| if i < 32 { 3.0 } else { 0.0 }).collect();
    goes_on(
        &folder,
        "unwritten-reads",
        "    S = T.alloc_shared((64,), \"float32\")\n    if tx < 32:\n        S[tx] = 3.0\n    T.cuda.cta_sync()\n    \
         A[tx] = S[tx]\n",
        "uninitialized read in kernel `k_kernel`: reads `S[32]` before any thread has written it",
        &half,
    );
    goes_on(
        &folder,
        "double-arrivals",
        "    if tx < 32:\n        T.ptx.bar.arrive(1, 96)\n    T.ptx.bar.sync(1, 96)\n    A[tx] = 5.0\n",
        "warp 0 arrives twice in one phase of named barrier 1",
        &[5.0; 64],
    );
    goes_on(
        &folder,
        "unfinished-reads",
        "    S = T.alloc_shared((64,), \"float32\", align=128)\n    S[tx] = 7.0\n    \
         T.ptx.fence.proxy_async(\"shared::cta\")\n    T.cuda.cta_sync()\n    if tx == 0:\n        \
         T.ptx.cp_async_bulk_s2g(A.ptr_to([0]), S.ptr_to([0]), 256)\n        T.ptx.cp_async.bulk.commit_group()\n",
        "the block ends while an asynchronous operation reads its shared memory",
        &[7.0; 64],
    );
    goes_on(
        &folder,
        "missing-fences",
        "    S = T.alloc_shared((64,), \"float32\", align=128)\n    S[tx] = 8.0\n    T.cuda.cta_sync()\n    if tx == 0:\n        \
         T.ptx.cp_async_bulk_s2g(A.ptr_to([0]), S.ptr_to([0]), 256)\n        T.ptx.cp_async.bulk.commit_group()\n        \
         T.ptx.cp_async.bulk.wait_group(0)\n",
        "no fence.proxy.async makes it visible to the async proxy",
        &[8.0; 64],
    );
}

#[test]
fn a_launch_goes_on_where_loads_of_tensor_memory_are_not_waited_for() {
    let folder = Folder::new();
    let kernel = "@T.prim_func\ndef k(A: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    bx = T.cta_id([1])\n    \
                  tx = T.thread_id([32])\n    slot = T.alloc_shared((1,), \"uint32\")\n    r = T.alloc_local((1,), \"float32\")\n    \
                  T.ptx.tcgen05.alloc(T.address_of(slot[0]), n_cols=32, cta_group=1)\n    T.cuda.cta_sync()\n    r[0] = 9.0\n    \
                  T.ptx.tcgen05.st(slot[0], r[0], shape=\"32x32b\", num=1)\n    T.ptx.tcgen05.wait.st()\n    \
                  T.ptx.tcgen05.ld(slot[0], r[0], shape=\"32x32b\", num=1)\n    A[tx] = r[0]\n    \
                  T.ptx.tcgen05.dealloc(slot[0], n_cols=32, cta_group=1)\n";
    fs::write(folder.path("loads.py"), kernel).unwrap();
    let run = |after: &str| {
        let after = format!("--continue-after={after}");
        folder.run(&["sim", "loads.py", "--arch", "sm_100a", "--out", "A=a.npy", &after])
    };
    let unwaited = "the warp ends before this tcgen05.ld is waited for: tcgen05.wait::ld is missing";
    fails(&run("freed-columns"), 1, &["error: ", unwaited]);
    let outcome = run("freed-columns,unwaited-loads");
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(
        outcome.err.contains("warning: ") && outcome.err.contains(unwaited),
        "{}",
        outcome.err
    );
    let written = fs::read(folder.path("a.npy")).unwrap();
    assert_eq!(written[written.len() - 128..], 9f32.to_le_bytes().repeat(32)[..]);
}

#[test]
fn allocations_of_tensor_memory_that_grow_are_a_warning() {
    let folder = Folder::new();
    let run = |first: u32, second: u32| {
        let kernel = format!(
            "@T.prim_func\ndef k(A: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    T.cta_id([1])\n    tx = T.thread_id([32])\n    \
             slots = T.alloc_shared((2,), \"uint32\")\n    T.ptx.tcgen05.alloc(slots.ptr_to([0]), n_cols={first}, cta_group=1)\n    \
             T.ptx.tcgen05.alloc(slots.ptr_to([1]), n_cols={second}, cta_group=1)\n    T.cuda.cta_sync()\n    \
             T.ptx.tcgen05.dealloc(slots[0], n_cols={first}, cta_group=1)\n    \
             T.ptx.tcgen05.dealloc(slots[1], n_cols={second}, cta_group=1)\n    A[tx] = 1.0\n"
        );
        fs::write(folder.path("columns.py"), kernel).unwrap();
        folder.run(&["sim", "columns.py", "--arch", "sm_100a", "--out", "A=a.npy"])
    };
    let outcome = run(32, 64);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let warning = "tcgen05.alloc of 64 columns after one of 32: the allocations of a block should not grow";
    assert!(
        outcome.err.contains("warning: ") && outcome.err.contains(warning),
        "{}",
        outcome.err
    );
    let outcome = run(64, 32);
    assert_eq!(
        (outcome.code, outcome.err.contains("warning")),
        (Some(0), false),
        "{}",
        outcome.err
    );
}

#[test]
fn a_fault_of_the_simulator_is_json_too() {
    let folder = Folder::new();
    folder.array("a.npy", &[1.0; 8]);
    folder.array("b.npy", &[1.0; 4]);
    let args = [
        "sim", "k.py", "--entry", "outside", "--arg", "A=a.npy", "--arg", "B=b.npy",
    ];
    let outcome = folder.run(&[&args[..], &["--message-format=json"]].concat());
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    let message: serde_json::Value = serde_json::from_str(outcome.err.trim()).unwrap();
    let line = KERNELS.lines().position(|l| l.contains("B[tx] = A[tx]")).unwrap() + 1;
    assert_eq!(message["spans"][0]["line_start"], line, "{message}");
    let note = message["children"][0]["message"].as_str().unwrap();
    assert!(note.starts_with("in block (0, 0, 0), thread (4, 0, 0)"), "{note}");
}

#[test]
fn scalars_have_the_range_of_their_dtype() {
    let folder = Folder::new();
    let limits = [
        ("int8", "-128", "127", "-129", "128"),
        ("uint8", "0", "255", "-1", "256"),
        ("int16", "-32768", "32767", "-32769", "32768"),
        ("uint16", "0", "65535", "-1", "65536"),
        ("int32", "-2147483648", "2147483647", "-2147483649", "2147483648"),
        ("uint32", "0", "4294967295", "-1", "4294967296"),
        (
            "int64",
            "-9223372036854775808",
            "9223372036854775807",
            "-9223372036854775809",
            "9223372036854775808",
        ),
        (
            "uint64",
            "0",
            "0xffff_ffff_ffff_ffff",
            "-1",
            "18446744073709551616",
        ),
    ];
    for (dtype, low, high, below, above) in limits {
        // The kernel writes `i` as bytes.
        let text = format!(
            "@T.prim_func\ndef f(B: T.Buffer((8,), \"uint8\"), i: T.{dtype}):\n    T.device_entry()\n    \
             tx = T.thread_id([8])\n    wide: T.let = T.cast(i, \"uint64\")\n    \
             B[tx] = T.cast(wide >> T.cast(tx * 8, \"uint64\"), \"uint8\")\n"
        );
        fs::write(folder.path("i.py"), text).unwrap();
        let run = |value: &str| {
            let scalar = format!("i={value}");
            folder.run(&["sim", "i.py", "--scalar", &scalar, "--out", "B=b.npy"])
        };
        for value in [low, high] {
            let outcome = run(value);
            assert_eq!(outcome.code, Some(0), "{dtype} {value}: {}", outcome.err);
            let bytes = fs::read(folder.path("b.npy")).unwrap();
            let bytes: [u8; 8] = bytes[bytes.len() - 8..].try_into().unwrap();
            let written = u64::from_le_bytes(bytes);
            let expected = match value.strip_prefix("0x") {
                Some(_) => u64::MAX,
                None => value.parse::<i128>().unwrap() as u64,
            };
            assert_eq!(written, expected, "{dtype} {value}");
        }
        for value in [below, above] {
            let outcome = run(value);
            let message = format!("`{value}` does not fit scalar `i`, a {dtype}");
            fails(&outcome, 1, &[&message, &format!("a {dtype} is from {low} to ")]);
        }
    }
}

#[test]
fn what_a_kernel_prints_and_the_warnings_about_it_are_shown() {
    let folder = Folder::new();
    let text = "from tvm.script import tirx as T\n@T.prim_func\ndef k(A: T.Buffer((2,), \"float32\"), B: T.Buffer((2,), \"int32\")):\n    \
                T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([2])\n    total = 0\n    total = total + A[tx]\n    \
                T.cuda.printf(\"%d of %s: %.1f\\n\", tx, \"two\", A[tx])\n    B[tx] = total\n";
    fs::write(folder.path("p.py"), text).unwrap();
    folder.array("a.npy", &[1.5, 2.5]);
    let sim = ["sim", "p.py", "--arg", "A=a.npy", "--out", "B=b.npy"];
    let outcome = folder.run(&sim);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(outcome.out, "0 of two: 1.5\n1 of two: 2.5\n");
    assert!(
        outcome
            .err
            .contains("warning: `total` is int32: this float32 is stored without its fraction"),
        "{}",
        outcome.err
    );
    for (call, message) in [
        ("\"%d %s\", tx", "\"%s\" of the format has no argument: 1 given"),
        (
            "\"%d\", A[tx]",
            "\"%d\" of the format takes an integer, argument 1 is float32",
        ),
        (
            "\"%d\", tx, tx",
            "the format has 1 conversions, and 1 more arguments are given",
        ),
        ("\"%*d%%\", tx", "\"%*d\" of the format has no argument: 1 given"),
        ("\"%q\", tx", "printf has no \"%q\": a percent sign is written %%"),
    ] {
        let wrong = text.replace("\"%d of %s: %.1f\\n\", tx, \"two\", A[tx]", call);
        fs::write(folder.path("p.py"), wrong).unwrap();
        fails(&folder.run(&sim), 1, &[message]);
    }
}

#[test]
fn shifts_by_the_width_are_found_where_overflow_is() {
    let folder = Folder::new();
    let text = "from tvm.script import tirx as T\n@T.prim_func\ndef k(B: T.Buffer((34,), \"int32\"), n: T.int32):\n    \
                T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([34])\n    B[tx] = T.shift_right(n, tx - 1)\n";
    fs::write(folder.path("s.py"), text).unwrap();
    let sim = ["sim", "s.py", "--scalar", "n=7", "--out", "B=b.npy"];
    assert_eq!(folder.run(&sim).code, Some(0));
    let message = "an integer is shifted by a negative amount, or by its width or more";
    fails(
        &folder.run(&[&sim[..], &["--check-overflow"]].concat()),
        1,
        &["shift out of range", message],
    );
}

#[test]
fn a_tensor_map_is_not_asked_for_as_a_scalar() {
    let folder = Folder::new();
    let text = "from tvm.script import tirx as T\n@T.prim_func\ndef k(A_map: T.TensorMap(), B: T.Buffer((1,), \"uint64\")):\n    \
                T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([1])\n    B[0] = T.address_of(A_map)\n";
    fs::write(folder.path("m.py"), text).unwrap();
    let outcome = folder.run(&["sim", "m.py", "--out", "B=b.npy"]);
    fails(
        &outcome,
        1,
        &[
            "tensor map `A_map` is missing",
            "--tensor-map A_map=FILE.npy,box=64x32",
        ],
    );
}

/// A launch extent of 64 bits is checked as it is, not its lower half.
#[test]
fn launch_extents_are_not_cut() {
    let kernel = "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
                  def k(A: T.Buffer((32,), \"float32\"), g: T.int64, threads: T.int64):\n    T.device_entry()\n    \
                  bx = T.cta_id([T.ceildiv(g, 4)])\n    tx = T.thread_id([threads])\n    \
                  A[tx] = T.float32(1)\n";
    let folder = Folder::new();
    fs::write(folder.path("k.py"), kernel).unwrap();
    let run = |g: i64, threads: i64| {
        let (g, threads) = (format!("g={g}"), format!("threads={threads}"));
        folder.run(&[
            "sim", "k.py", "--scalar", &g, "--scalar", &threads, "--out", "A=a.npy",
        ])
    };
    assert_eq!(run(4, 32).code, Some(0));
    for (g, threads, expected) in [
        (1 << 50, 32, "blockIdx.x would be 281474976710656"),
        (4, (1 << 32) + 1, "threadIdx.x would be 4294967297"),
        // As in launchers: the extent itself fits, the sum within it does not.
        (i64::MAX, 32, "does not fit 64 bits"),
    ] {
        fails(&run(g, threads), 1, &[expected]);
    }
}
