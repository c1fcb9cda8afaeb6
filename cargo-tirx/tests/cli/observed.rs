//! `cargo tirx sim --counters`, `--break` and `--schedules`.

use std::fs;

use super::Folder;

const KERNELS: &str = r#"from tvm.script import tirx as T


@T.prim_func
def copy(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); tx = T.thread_id([256])
    B[tx] = A[tx]


@T.prim_func
def strided(A: T.Buffer((512,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); tx = T.thread_id([256])
    B[tx] = A[tx * 2]


@T.prim_func
def column(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    T.device_entry(); tx = T.thread_id([32])
    s = T.alloc_shared((32, 32), "float32")
    for i in range(32):
        s[i, tx] = A[i, tx]
    T.cuda.cta_sync()
    for i in range(32):
        B[i, tx] = s[tx, i]


@T.prim_func
def padded(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
    T.device_entry(); tx = T.thread_id([32])
    s = T.alloc_shared((32, 33), "float32")
    for i in range(32):
        s[i, tx] = A[i, tx]
    T.cuda.cta_sync()
    for i in range(32):
        B[i, tx] = s[tx, i]


@T.prim_func
def summed(A: T.Buffer((128,), "float32"), B: T.Buffer((1,), "float32")):
    T.device_entry(); tx = T.thread_id([128])
    s = T.alloc_shared((128,), "float32")
    s[tx] = A[tx]
    T.cuda.cta_sync()
    for k in range(7):
        if tx < T.shift_right(64, k):
            s[tx] = s[tx] + s[tx + T.shift_right(64, k)]
        T.cuda.cta_sync()
    if tx == 0:
        B[0] = s[0]


@T.prim_func
def staged(A: T.Buffer((256,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); tx = T.thread_id([64])
    s = T.alloc_shared((64, 32), "float32", align=128)
    T.ptx.cp_async(s.ptr_to([tx, 0]), A.ptr_to([tx * 4]), 16)
    T.ptx.cp_async.commit_group()
    T.ptx.cp_async.wait_group(0)
    T.cuda.cta_sync()
    B[tx] = s[tx, 0]


@T.prim_func
def bulk(A: T.Buffer((1024,), "float32"), B: T.Buffer((256,), "float32")):
    T.device_entry(); tx = T.thread_id([128])
    s = T.alloc_shared((1024,), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.mbarrier.arrive.expect_tx(bar.ptr_to([0]), 4096)
        T.ptx.cp_async_bulk_g2s_cta(s.ptr_to([0]), A.ptr_to([0]), 4096, bar.ptr_to([0]))
    T.ptx.mbarrier.try_wait(bar.ptr_to([0]), 0)
    B[tx] = s[tx]
    B[128 + tx] = s[896 + tx]


@T.prim_func
def matrices(A: T.Buffer((16, 16), "float16"), B: T.Buffer((32, 4), "uint32")):
    T.device_entry(); tx = T.thread_id([32])
    s = T.alloc_shared((16, 64), "float16", align=128)
    for i in T.unroll(8):
        s[i * 2 + tx // 16, tx % 16] = A[i * 2 + tx // 16, tx % 16]
    T.cuda.cta_sync()
    r = T.alloc_local((4,), "uint32")
    T.ptx.ldmatrix(False, 4, ".b16", s.ptr_to([tx % 16, tx // 16 * 8]), r.ptr_to([0]), r.ptr_to([1]), r.ptr_to([2]), r.ptr_to([3]))
    for i in T.unroll(4):
        B[tx, i] = r[i]


@T.prim_func
def gaps(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); tx = T.thread_id([64])
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init(bar.ptr_to([0]), 64)
    T.cuda.cta_sync()
    if A[tx] > 1.0:
        B[tx] = 1.0
    else:
        B[tx] = 2.0
    T.ptx.mbarrier.arrive(bar.ptr_to([0]))

"#;

/// The numbers of a line of the table: instructions, barriers, global bytes, sectors, uncoalesced, shared bytes, conflicts, local
/// bytes; those of cp.async or TMA where the kernel has such copies.
fn counts(folder: &Folder, kernel: &str, line: &str) -> Vec<u64> {
    let outcome = folder.run(&[
        "sim",
        "kernels.py",
        "--entry",
        kernel,
        "--counters",
        "--out",
        "A=a.npy",
        "--out",
        "B=b.npy",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let found = outcome
        .out
        .lines()
        .find(|row| row.ends_with(line) || row.starts_with(line) || row.contains(&format!("  {line}")));
    let found = found.unwrap_or_else(|| panic!("{line}: {}", outcome.out));
    found
        .split_whitespace()
        .skip(1)
        .map_while(|cell| cell.parse().ok())
        .collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("kernels.py"), KERNELS).unwrap();
    folder
}

/// Derived by hand: a warp of 32 lanes, sectors of 32 bytes, 32 banks of 4 bytes.
#[test]
fn counters_are_those_derived_by_hand() {
    let folder = folder();
    // 8 warps load and store 128 bytes, 4 sectors each.
    let all = counts(&folder, "copy", "all");
    assert_eq!(all[2..], [2048, 64, 0, 0, 0, 0]);
    // A load's 32 words lie in 8 sectors where 4 would do: 8 warps x 4.
    let all = counts(&folder, "strided", "all");
    assert_eq!(all[2..], [2048, 8 * 8 + 8 * 4, 32, 0, 0, 0]);
    // 32 loads of a column: 32 words of one bank, 31 passes too many each.
    let read = counts(&folder, "column", "B[i, tx] = s[tx, i]");
    assert_eq!(read[2..], [32 * 128, 32 * 4, 0, 32 * 128, 32 * 31, 0]);
    let written = counts(&folder, "column", "s[i, tx] = A[i, tx]");
    assert_eq!(written[2..], [32 * 128, 32 * 4, 0, 32 * 128, 0, 0]);
    // A row of 33 words puts the column into 32 banks.
    let read = counts(&folder, "padded", "B[i, tx] = s[tx, i]");
    assert_eq!(read[5..], [32 * 128, 0, 0]);
    // cp.async of 16 bytes by each of 64 threads: 512 bytes a warp, 16 sectors. Rows of 128 bytes begin in the same bank: the 8
    // lanes of a quarter take 8 passes.
    let copied = counts(
        &folder,
        "staged",
        "T.ptx.cp_async(s.ptr_to([tx, 0]), A.ptr_to([tx * 4]), 16)",
    );
    assert_eq!(copied[2..], [1024, 32, 0, 1024, 2 * 4 * 7, 0, 1024]);
    // One bulk copy of 4096 bytes: 128 sectors, of which no lane has any.
    let line = "T.ptx.cp_async_bulk_g2s_cta(s.ptr_to([0]), A.ptr_to([0]), 4096, bar.ptr_to([0]))";
    assert_eq!(counts(&folder, "bulk", line)[2..], [4096, 128, 0, 0, 0, 0, 4096]);
    // ldmatrix of four matrices: 32 rows of 16 bytes. Rows are 128 bytes apart: 8 passes for each matrix.
    let rows = counts(&folder, "matrices", "T.ptx.ldmatrix(");
    // The destinations are given by address: four words of each lane in local memory.
    assert_eq!(rows[2..], [0, 0, 0, 512, 4 * 7, 512]);
    // 4 warps meet 8 times; 64 + 32 + 16 + 8 + 4 + 2 + 1 threads load two words and store one.
    let all = counts(&folder, "summed", "all");
    assert_eq!(all[1], 32);
    assert_eq!(all[5], 128 * 4 + 127 * 3 * 4 + 4);
    assert_eq!((all[2], all[3], all[6]), (128 * 4 + 4, 16 + 1, 0));
}

/// Buffers of a pool have values of their own, under the names and the coordinates that the kernel uses.
#[test]
fn buffers_of_a_pool_are_watched_by_name() {
    let folder = folder();
    let kernel = "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
                  def pooled(B: T.Buffer((32,), \"float32\")):\n    T.device_entry()\n    T.cta_id([1])\n    \
                  tx = T.thread_id([32])\n    pool = T.SMEMPool()\n    \
                  As = pool.alloc((4, 8), \"float32\", layout=T.TileLayout(T.S[(4, 8) : (1, 4)]))\n    \
                  Bs = pool.alloc((2, 2, 8), \"float32\")\n    pool.commit()\n    \
                  As[tx // 8, tx % 8] = T.Cast(\"float32\", tx)\n    \
                  Bs[tx // 16, tx // 8 % 2, tx % 8] = T.Cast(\"float32\", tx + 100)\n    T.cuda.cta_sync()\n    \
                  B[tx] = As[tx // 8, tx % 8] + Bs[1, 0, 0]\n";
    std::fs::write(folder.path("pooled.py"), kernel).unwrap();
    let run = |watched: &[&str]| {
        let all = ["sim", "pooled.py", "--out", "B=b.npy", "--break", "16"];
        let outcome = folder.run(&[&all, watched].concat());
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        outcome.out
    };
    let out = run(&["--watch", "As", "--watch", "Bs[1, 0, 3]"]);
    for value in [
        "As[0, 0] = 0\n",
        "As[1, 2] = 10\n",
        "As[3, 7] = 31\n",
        "Bs[1, 0, 3] = 119\n",
    ] {
        assert!(out.contains(&format!("    {value}")), "{value}: {out}");
    }
    assert!(!out.contains("Bs[0, 0, 0]"), "{out}");
    let out = run(&[]);
    assert!(
        out.contains("    As = 0 1 2 3 4 5 6 7 … (`--watch As` shows more)\n"),
        "{out}"
    );
}

#[test]
fn values_are_shown_at_a_line() {
    let folder = folder();
    let at = KERNELS
        .lines()
        .position(|line| line.contains("s[tx] = s[tx] +"))
        .unwrap()
        + 1;
    let line = at.to_string();
    let line = line.as_str();
    let stop = |arguments: &[&str]| {
        let all = [
            "sim",
            "kernels.py",
            "--entry",
            "summed",
            "--out",
            "A=a.npy",
            "--out",
            "B=b.npy",
        ];
        folder.run(&[&all, arguments].concat())
    };
    let outcome = stop(&[
        "--break", line, "--thread", "3,0,0", "--watch", "k", "--watch", "s[3]",
    ]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    // Thread 3 takes part while 64 >> k is above it.
    let stops = outcome.out.matches("block (0, 0, 0), warp 0, lanes 3\n").count();
    assert_eq!(stops, 5, "{}", outcome.out);
    for k in 0..5 {
        assert!(outcome.out.contains(&format!("    k = {k}\n")), "{}", outcome.out);
    }
    assert!(
        outcome.out.contains("    s[3] = 0\n") && !outcome.out.contains("s[4]"),
        "{}",
        outcome.out
    );
    // Whole warps: those of the first iteration.
    let outcome = stop(&["--break", line, "--watch", "k"]);
    assert!(outcome.out.contains("warp 1, lanes 0-31\n"), "{}", outcome.out);
    for (arguments, told) in [
        (
            ["--break", "1", "--watch", "k"],
            "has run an instruction of line 1",
        ),
        (["--break", line, "--watch", "kk"], "has no value of `kk`"),
        (
            ["--break", line, "--thread", "500"],
            "--thread 500,0,0 is none of the launch",
        ),
        (["--break", line, "--block", "x"], "bad --block: `x`"),
    ] {
        let outcome = stop(&arguments);
        assert!(
            outcome.code != Some(0) && outcome.err.contains(told),
            "{told}: {}",
            outcome.err
        );
    }
}

/// A kernel whose mistake the first schedule does not show: the schedule that does is the smallest, and repeats it.
#[test]
fn the_first_schedule_that_fails_is_named() {
    let folder = Folder::new();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/kernels/asynchronous/named_barriers.py");
    let file = file.to_string_lossy().into_owned();
    let text = fs::read_to_string(&file).unwrap();
    let described = text.split("# sim: barrier_of_the_block\n").nth(1).unwrap();
    let names = described
        .lines()
        .map_while(|line| line.strip_prefix("#   ")?.split_once(": "));
    let outs: Vec<String> = names
        .filter(|(_, kind)| kind.contains('['))
        .map(|(name, _)| format!("{name}={name}.npy"))
        .collect();
    let run = |more: &[&str]| {
        let mut arguments = vec!["sim", &file, "--entry", "barrier_of_the_block"];
        outs.iter().for_each(|out| arguments.extend(["--out", out]));
        arguments.extend(more);
        folder.run(&arguments)
    };
    let none = run(&["--schedules", "0"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.err.contains("invalid value '0' for '--schedules <NUMBER>'"),
        "{}",
        none.err
    );
    let outcome = run(&["--schedules", "64"]);
    assert_eq!(outcome.code, Some(1));
    let found = outcome.err.split("schedule ").nth(1).unwrap();
    let seed: u64 = found.split(' ').next().unwrap().parse().unwrap();
    assert!(
        outcome.err.contains(&format!("`--seed {seed}` repeats it")),
        "{}",
        outcome.err
    );
    assert_eq!(run(&["--seed", &seed.to_string()]).code, Some(1));
    if seed > 0 {
        let before = run(&["--schedules", &seed.to_string()]);
        assert_eq!(before.code, Some(0), "{}", before.err);
    }
}

/// What was observed until a fault is kept.
#[test]
fn a_fault_keeps_what_was_observed() {
    let folder = Folder::new();
    let kernel = "from tvm.script import tirx as T\n\n@T.prim_func\ndef k(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n    \
        T.device_entry(); T.cta_id([1]); tx = T.thread_id([64])\n    s = T.alloc_shared((64,), \"float32\")\n    v: T.float32 = A[tx] * 2.0\n    \
        s[tx] = v\n    T.cuda.printf(\"tx %d v %f\\n\", tx, v)\n    B[tx] = s[63 - tx]\n";
    fs::write(folder.path("k.py"), kernel).unwrap();
    folder.array("a.npy", &(0..64).map(|i| i as f32).collect::<Vec<_>>());
    let run = |more: &[&str]| {
        let all = ["sim", "k.py", "--arg", "A=a.npy", "--out", "B=b.npy"];
        folder.run(&[&all, more].concat())
    };
    let outcome = run(&[
        "--break",
        "10",
        "--watch",
        "v",
        "--timeline",
        "t.json",
        "--counters",
    ]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.err.contains("reads `s[63]`") && !folder.path("b.npy").exists(),
        "{}",
        outcome.err
    );
    let values: Vec<String> = (0..32).map(|i| (2 * i).to_string()).collect();
    for part in [
        "tx 31 v 62.000000\n",
        &format!("    v = {}\n", values.join(" ")),
        "k.py:9 ",
        "s[tx] = v",
    ] {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
    let timeline = fs::read_to_string(folder.path("t.json")).unwrap();
    assert!(
        timeline.contains("\"runs\"") || timeline.contains("runs"),
        "{timeline}"
    );
    // A line that nobody reached does not hide the fault.
    let outcome = run(&["--break", "1"]);
    assert!(
        outcome.err.starts_with("error: data race")
            && outcome.err.contains("has run an instruction of line 1"),
        "{}",
        outcome.err
    );
    // Printed in each order too.
    let outcome = run(&["--all-schedules"]);
    assert!(outcome.out.contains("tx 31 v 62.000000\n"), "{}", outcome.out);
}

const INLINE: &str = r#"from tvm.script import tirx as T

@T.inline
def put(S, i, v):
    S[i] = v

@T.inline
def both(S, i, v):
    put(S, i, v)
    put(S, 0, v)

@T.prim_func
def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); T.cta_id([1]); tx = T.thread_id([64])
    s = T.alloc_shared((64,), "float32")
    put(s, tx, A[tx])
    both(s, tx, A[tx])
    T.cuda.cta_sync()
    B[tx] = s[tx]
"#;

/// An argument that is no variable is computed by each line that uses it.
#[test]
fn arguments_are_charged_to_the_line_that_computes_them() {
    let folder = Folder::new();
    let text = "from tvm.script import tirx as T\n\n@T.inline\ndef f(B, i, v):\n    B[i] = v + v\n\n@T.prim_func\n\
                def k(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n    T.device_entry(); T.cta_id([1]); \
                tx = T.thread_id([64])\n    f(B, tx, A[tx] * A[63 - tx])\n";
    fs::write(folder.path("k.py"), text).unwrap();
    folder.array("a.npy", &(0..64).map(|i| i as f32).collect::<Vec<_>>());
    let counted = folder.run(&[
        "sim",
        "k.py",
        "--arg",
        "A=a.npy",
        "--out",
        "B=b.npy",
        "--counters",
    ]);
    let row = |place: &str| -> Vec<&str> {
        let line = counted
            .out
            .lines()
            .find(|line| line.starts_with(place))
            .unwrap_or_default();
        line.strip_prefix(place)
            .unwrap_or_default()
            .split_whitespace()
            .collect()
    };
    let (inline, all) = (row("k.py:5 from 10"), row("all"));
    assert_eq!(inline[2], all[2], "{}", counted.out);
    assert!(row("k.py:10 ").is_empty(), "{}", counted.out);
}

/// Of a line of an inline function, reports, counters and stops name the calls.
#[test]
fn calls_of_inline_functions_are_named() {
    let folder = Folder::new();
    fs::write(folder.path("k.py"), INLINE).unwrap();
    folder.array("a.npy", &(0..64).map(|i| i as f32).collect::<Vec<_>>());
    let run = |more: &[&str]| {
        let all = ["sim", "k.py", "--arg", "A=a.npy", "--out", "B=b.npy"];
        folder.run(&[&all, more].concat())
    };
    let fault = run(&[]);
    assert_eq!(fault.code, Some(1));
    let places: Vec<&str> = fault
        .err
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--> "))
        .collect();
    assert_eq!(
        places,
        ["k.py:5:5", "k.py:10:5", "k.py:17:5", "k.py:5:5"],
        "{}",
        fault.err
    );
    assert_eq!(
        fault.err.matches("note: called from here\n").count(),
        2,
        "{}",
        fault.err
    );
    let counted = run(&["--no-race-check", "--counters"]);
    // The sum of the line, and each call of it.
    let rows: Vec<Vec<&str>> = counted
        .out
        .lines()
        .skip_while(|line| !line.starts_with("k.py:5 "))
        .take(4)
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    let cells = |at: usize| -> Vec<&str> { rows.iter().map(|row| row[at]).collect() };
    assert_eq!(
        cells(0),
        ["k.py:5", "from 9 from 17", "from 10 from 17", "from 16"],
        "{}",
        counted.out
    );
    let last = rows[0].len() - 1;
    assert_eq!(rows[0][last], "S[i] = v", "{}", counted.out);
    let instructions: Vec<u32> = cells(1).iter().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(
        instructions[0],
        instructions[1..].iter().sum::<u32>(),
        "{}",
        counted.out
    );
    // At the line of a call, and at the line of the function.
    let stops = |line: &str| {
        let stops = run(&[
            "--no-race-check",
            "--break",
            line,
            "--thread",
            "0",
            "--watch",
            "tx",
        ]);
        assert_eq!(stops.code, Some(0), "{}", stops.err);
        let places = stops.out.lines().filter(|line| line.starts_with("k.py:"));
        places.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(stops("16").len(), 1);
    assert_eq!(
        stops("5"),
        [
            "k.py:5 from 16: S[i] = v",
            "k.py:5 from 9 from 17: S[i] = v",
            "k.py:5 from 10 from 17: S[i] = v"
        ]
    );
}

/// Without `--watch` a stop shows the names of the kernel, arrays in one line.
#[test]
fn a_stop_shows_the_names_of_the_kernel() {
    let folder = folder();
    let line = KERNELS
        .lines()
        .position(|line| line.contains("s[tx] = s[tx] +"))
        .unwrap()
        + 1;
    let stop = folder.run(&[
        "sim",
        "kernels.py",
        "--entry",
        "summed",
        "--out",
        "A=a.npy",
        "--out",
        "B=b.npy",
        "--break",
        &line.to_string(),
        "--thread",
        "3",
    ]);
    let first = stop.out.lines().take(5).collect::<Vec<_>>().join("\n");
    assert_eq!(
        first,
        format!(
            "kernels.py:{line}: s[tx] = s[tx] + s[tx + T.shift_right(64, k)]\n  block (0, 0, 0), warp 0, lanes 3\n    tx = 3\n    \
             s = 0 0 0 0 0 0 0 0 … (`--watch s` shows more)\n    k = 0"
        ),
        "{}",
        stop.out
    );
    assert!(!stop.out.contains("threadIdx"), "{}", stop.out);
}

/// What a kernel prints with further options, its tensors from zeros.
fn observed(kernel: &str, options: &[&str]) -> String {
    let arguments = [
        "sim",
        "kernels.py",
        "--entry",
        kernel,
        "--out",
        "A=a.npy",
        "--out",
        "B=b.npy",
    ];
    let outcome = folder().run(
        &arguments
            .into_iter()
            .chain(options.iter().copied())
            .collect::<Vec<_>>(),
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    outcome.out
}

/// The parts of a kernel that a run leaves out have a line each; `--all-schedules` and `--schedules` add up their runs.
#[test]
fn coverage_names_what_was_not_exercised() {
    for options in [
        &["--coverage"][..],
        &["--coverage", "--schedules", "3"],
        &["--coverage", "--all-schedules"],
    ] {
        let out = observed("gaps", options);
        for part in [
            "1 of 2 branches in both directions, 1 of 1 barriers reached, 0 of ",
            "phases of mbarriers waited for",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        let gap = |line: &str| {
            let row = out.lines().find(|row| row.ends_with(line));
            row.unwrap_or_else(|| panic!("{line}: {out}")).to_string()
        };
        assert!(gap("if A[tx] > 1.0:").contains("branch never taken"), "{out}");
        assert!(gap("B[tx] = 1.0").contains("never run"), "{out}");
        let phases = gap("T.ptx.mbarrier.init(bar.ptr_to([0]), 64)");
        assert!(phases.contains("that nobody waited for"), "{out}");
        assert!(!out.contains("if tx == 0:"), "both directions: {out}");
        assert!(!out.contains("B[tx] = 2.0"), "{out}");
    }
    let whole = observed("summed", &["--coverage"]);
    assert_eq!(whole.lines().count(), 1, "no gaps: {whole}");
}

/// The least time follows from bytes, passes and operations; bank conflicts make it longer.
#[test]
fn the_least_time_names_the_resource_that_limits() {
    let least = |kernel: &str| {
        let out = observed(kernel, &["--cost", "H100", "--per-multiprocessor"]);
        let row = out.lines().find(|row| row.starts_with("shared memory"));
        let row = row.unwrap_or_else(|| panic!("{out}")).to_string();
        (
            out,
            row.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap(),
        )
    };
    let (column, slow) = least("column");
    let (_, fast) = least("padded");
    assert!(
        column.contains("on one multiprocessor of H100 (H100 has 132), limited by shared memory"),
        "{column}"
    );
    // 32 stores of a pass each, and 32 loads of 32 passes or of one, at 1.98 GHz.
    assert!((slow - (32.0 + 1024.0) / 1980.0).abs() < 2e-3, "{column}");
    assert!((fast - 64.0 / 1980.0).abs() < 2e-3, "{fast}");
    let refused = folder().run(&["sim", "kernels.py", "--entry", "copy", "--cost", "K80"]);
    assert!(
        refused
            .err
            .contains("there is no model of `K80`; there are A100, H100, H200, B200"),
        "{}",
        refused.err
    );
}

/// The steps of the book's ladder, with the kernels and what else they need.
const LADDER: [(&str, &str, &[&str]); 10] = [
    ("01-naive", "naive", &[]),
    ("02-shared", "shared", &[]),
    ("03-registers", "registers", &[]),
    ("04-tensor-cores", "tensor_cores", &[]),
    ("05-ring", "ring", &[]),
    ("06-wgmma", "wgmma", &[]),
    ("07-pipeline", "pipeline", &[]),
    ("08-wide", "wide", &[]),
    ("09-persistent", "persistent", &["-D", "CTAS=1"]),
    ("10-stores", "stores", &["-D", "CTAS=1"]),
];

/// The bound of a step for a tile of 128 x 256 on one multiprocessor, in microseconds.
fn least_time((file, entry, more): (&str, &str, &[&str]), gpu: &str, k: u32) -> f64 {
    let ladder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/src/ladder/");
    let (path, k) = (format!("{ladder}{file}.py"), format!("K={k}"));
    let arguments = [
        "sim", &path, "--entry", entry, "-D", "M=128", "-D", "N=256", "-D", &k,
    ];
    let outs = ["--out", "A=a.npy", "--out", "B=b.npy", "--out", "C=c.npy"];
    let cost = ["--no-race-check", "--cost", gpu, "--per-multiprocessor"];
    let all = arguments
        .into_iter()
        .chain(outs)
        .chain(cost)
        .chain(more.iter().copied());
    let outcome = Folder::new().run(&all.collect::<Vec<_>>());
    assert_eq!(outcome.code, Some(0), "{file}: {}", outcome.err);
    let mut words = outcome.out.split_whitespace().skip(2);
    let number: f64 = words.next().unwrap().parse().unwrap();
    match words.next() {
        Some("ms") => number * 1e3,
        _ => number,
    }
}

/// No measured time of the ladder is below its bound, which two small values of K give for 4096.
#[test]
fn measured_times_are_above_their_bounds() {
    let times = include_str!("../../../docs/book/src/ladder/times.txt");
    for step in LADDER {
        let row = times.lines().find(|row| row.contains(step.0));
        let measured: f64 = (row.and_then(|row| row.split('|').nth(2)))
            .and_then(|time| time.trim().strip_suffix(" µs")?.parse().ok())
            .unwrap_or_else(|| panic!("no time of {}", step.0));
        let (short, long) = (least_time(step, "H200", 256), least_time(step, "H200", 512));
        let tile = short + (long - short) * f64::from((4096 - 256) / 256);
        let bound = tile * f64::from(4096 / 128 * (4096 / 256)) / 132.0;
        assert!(
            bound < measured && measured < 5.0 * bound,
            "{}: {bound} and {measured}",
            step.0
        );
    }
}

/// The steps of the book's ladder: the bound falls where an edit saves work, and stays where it overlaps more of the same work.
#[test]
fn the_least_time_falls_along_the_ladder() {
    let bounds = LADDER.map(|step| least_time(step, "H100", 256));
    for (number, pair) in bounds.windows(2).enumerate() {
        let saves = ![3, 5, 7, 8].contains(&number);
        assert!(
            if saves {
                pair[1] < pair[0] * 0.95
            } else {
                pair[1] <= pair[0]
            },
            "step {}: {bounds:?}",
            number + 2
        );
    }
}
