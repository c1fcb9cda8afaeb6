//! The command line as users see it: output, messages and exit codes.

mod accumulators;
mod bench;
mod editors;
mod fix;
mod lsp;
mod machine_code;
mod observed;
mod options;
mod orders;
#[cfg(unix)]
mod programs;
mod runs;
mod simulator;
mod tensor_maps;
mod tune;
mod workspaces;

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
            // Cargo sets it for tests, not for its subcommands.
            .env_remove("CARGO_MANIFEST_DIR")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        Outcome {
            code: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Writes a one-dimensional array of float32.
    fn array(&self, file: &str, values: &[f32]) {
        let header = format!(
            "{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
            values.len()
        );
        let header = format!("{header:<117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        fs::write(self.path(file), bytes).unwrap();
    }

    fn floats(&self, file: &str) -> Vec<f32> {
        let bytes = fs::read(self.path(file)).unwrap();
        let data = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
        bytes[data..]
            .chunks_exact(4)
            .map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]))
            .collect()
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
fn check_refuses_what_no_launcher_computes() {
    let folder = Folder::new();
    let kernel = "from tvm.script import tirx as T\n\n@T.prim_func\n\
        def f(A: T.Buffer((64,), \"int32\"), n: T.int32):\n    half: T.int32 = n // 2\n    T.device_entry()\n    \
        tx = T.thread_id([64])\n    A[tx] = half\n";
    fs::write(folder.path("host.py"), kernel).unwrap();
    let parts = ["cannot be used in host code", "--> host.py:5:5", "`x: T.let = …`"];
    fails(&folder.run(&["check", "host.py"]), 1, &parts);
    fails(
        &folder.run(&["sim", "host.py", "--scalar", "n=4", "--out", "A=a.npy"]),
        1,
        &parts,
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
    fails(
        &all,
        1,
        &[
            "error: `add` was not checked: it needs N",
            "give -D N=…, or check the manifest",
        ],
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

const WRONG: &str = "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
    def wrong(A: T.Buffer((4,), \"float32\")):\n    T.device_entry()\n    tx = T.thread_id([4])\n    A[tz] = 1.0\n";

#[test]
fn diagnostics_as_json_have_places_children_and_text() {
    let folder = Folder::new();
    fs::write(folder.path("w.py"), WRONG).unwrap();
    let outcome = folder.run(&["check", "w.py", "--message-format", "json"]);
    assert_eq!(outcome.code, Some(1));
    let message: serde_json::Value = serde_json::from_str(outcome.err.trim()).unwrap();
    assert_eq!(message["level"], "error");
    assert_eq!(message["message"], "unknown name \"tz\"");
    let span = &message["spans"][0];
    let start = WRONG.find("tz").unwrap();
    assert_eq!(
        (&span["file_name"], &span["is_primary"]),
        (&"w.py".into(), &true.into())
    );
    assert_eq!(
        (&span["byte_start"], &span["byte_end"]),
        (&start.into(), &(start + 2).into())
    );
    assert_eq!((&span["line_start"], &span["line_end"]), (&8.into(), &8.into()));
    assert_eq!(
        (&span["column_start"], &span["column_end"]),
        (&7.into(), &9.into())
    );
    assert_eq!(span["text"], "    A[tz] = 1.0");
    assert_eq!(message["children"][0]["level"], "help");
    assert!(
        message["rendered"]
            .as_str()
            .unwrap()
            .starts_with("error: unknown name")
    );
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let folder = Folder::new();
    fs::write(folder.path("w.py"), WRONG).unwrap();
    let escape = '\u{1b}';
    assert!(!folder.run(&["check", "w.py"]).err.contains(escape));
    let always = folder.run_with(&["check", "w.py", "--color", "always"], &[("NO_COLOR", "1")]);
    assert!(
        always.err.contains("\u{1b}[1;31merror\u{1b}[0m"),
        "{}",
        always.err
    );
    let short = folder.run(&["--message-format", "short", "check", "w.py"]);
    assert!(
        short
            .err
            .starts_with("w.py:8:7: error: unknown name \"tz\" (help: "),
        "{}",
        short.err
    );
    assert_eq!(short.err.lines().count(), 1);
}

#[test]
fn slips_get_a_suggestion() {
    let folder = Folder::new();
    fails(
        &folder.run(&["check", "k.py", "--entry", "scael"]),
        1,
        &["did you mean `scale`?"],
    );
    let args = ["cuda", "k.py", "--entry", "add", "-D", "NN=4"];
    fails(
        &folder.run(&args),
        1,
        &[
            "no compile-time parameter `NN`",
            "did you mean `N`?",
            "`add` is defined here",
        ],
    );
    let args = ["cuda", "k.py", "--entry", "add"];
    fails(
        &folder.run(&args),
        1,
        &["give -D N=…", "note: `add` is defined here\n --> k.py:6:5"],
    );
    let args = [
        "lower",
        "k.py",
        "--entry",
        "scale",
        "--stop-after",
        "FlatenBuffer",
    ];
    fails(&folder.run(&args), 2, &["did you mean `FlattenBuffer`?"]);
}

#[test]
fn optional_parameters_can_be_left_out() {
    let folder = Folder::new();
    let text = "from __future__ import annotations\nfrom tvm.script import tirx as T\n\n\n@T.jit\n\
                def f(A: T.Buffer((N,), \"float32\"), Bias: T.Optional(T.Buffer((N,), \"float32\")), *, N: T.constexpr):\n    \
                T.device_entry()\n    tx = T.thread_id([N])\n    \
                if Bias is not None:\n        A[tx] = Bias[tx]\n    else:\n        A[tx] = 7.0\n";
    fs::write(folder.path("o.py"), text).unwrap();
    let parsed = |defines: &[&str]| {
        folder.run(&[&["lower", "o.py", "--stop-after", "parse", "-D", "N=4"], defines].concat())
    };
    let absent = parsed(&["-D", "Bias=None"]);
    assert_eq!(absent.code, Some(0), "{}", absent.err);
    assert!(
        absent.out.contains("main(A: T.Buffer((4,), \"float32\")):"),
        "{}",
        absent.out
    );
    assert!(parsed(&[]).out.contains("Bias: T.Buffer((4,)"));
    fails(
        &parsed(&["-D", "Bias=1"]),
        1,
        &["T.Optional parameter \"Bias\" can only be specialized to None"],
    );
    fails(&parsed(&["-D", "Bia=None"]), 1, &["did you mean `Bias`?"]);
    let args = ["sim", "o.py", "-D", "N=4", "-D", "Bias=None", "--out", "A=a.npy"];
    let outcome = folder.run(&args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert_eq!(folder.floats("a.npy"), [7.0; 4]);
}

#[test]
fn the_cache_is_shown_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let cache = |args: &[&str], store: &std::path::Path| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(["tirx", "cache"])
            .args(args)
            .env("TIRX_STORE", store)
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = cache(&[], dir.path());
    assert_eq!(code, Some(0));
    assert!(out.ends_with(": 0 images, 0 bytes, at most 2.0 GiB\n"), "{out}");
    let folder = dir.path().join("v1/ab");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("ab.tirx"), [0; 3000]).unwrap();
    let (_, out, _) = cache(&["size"], dir.path());
    assert!(out.contains("1 image, 2.9 KiB"), "{out}");
    let (_, out, _) = cache(&["path"], dir.path());
    assert_eq!(out.trim_end(), dir.path().to_string_lossy());
    let (_, out, _) = cache(&["prune", "--keep", "1K"], dir.path());
    assert_eq!(out, "removed 1 image, 2.9 KiB; 0 images, 0 bytes left\n");
    let (code, _, err) = cache(&["prune", "--keep", "much"], dir.path());
    assert!(code == Some(2) && err.contains("`much` is no size"), "{err}");
    let (code, _, err) = cache(&[], std::path::Path::new("none"));
    assert!(
        code == Some(1) && err.contains("there is no shared store"),
        "{err}"
    );
}

#[test]
fn a_manifest_is_checked_with_all_its_specializations() {
    let folder = Folder::new();
    let text = "from tvm.script import tirx as T\n\ndef make(n, step=1.0):\n    @T.prim_func\n    \
        def k(A: T.Buffer((n,), \"float32\")):\n        T.device_entry()\n        tx = T.thread_id([n])\n        \
        A[tx]\n        A[tx] = step\n    return k\n";
    fs::write(folder.path("make.py"), text).unwrap();
    let manifest = |values: &str| {
        format!(
            "[defaults]\ntargets = [\"sm_90a\"]\n[[kernel]]\nname = \"make\"\nsource = \"make.py\"\nspecialize = [{values}]\n"
        )
    };
    fs::write(
        folder.path("kernels.toml"),
        manifest("{ n = 32 }, { n = 64, step = 2.0 }"),
    )
    .unwrap();
    let checked = folder.run(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    for part in [
        "warning: `A[tx]` computes a value that nothing uses",
        "--> make.py:8:9",
        "# tirx: allow(unused-value)",
    ] {
        assert!(checked.err.contains(part), "{part} is not in {}", checked.err);
    }
    fs::write(
        folder.path("kernels.toml"),
        manifest("{ n = 32 }, { n = 4294967328 }"),
    )
    .unwrap();
    fails(
        &folder.run(&["check"]),
        1,
        &["an extent must fit 32 bits, found 4294967328", "n4294967328"],
    );
    fails(
        &folder.run(&["check", "make.py", "--entry", "make"]),
        1,
        &["needs compile-time values", "give -D n=…"],
    );
    let cuda = folder.run(&["cuda", "make.py", "--entry", "make", "-D", "n=96"]);
    assert!(cuda.out.contains("__launch_bounds__(96)"), "{}", cuda.err);
}

#[test]
fn a_new_crate_has_a_kernel_that_is_well() {
    let folder = Folder::new();
    let new = folder.run(&["new", "first-kernel"]);
    assert_eq!(new.code, Some(0), "{}", new.err);
    let manifest = fs::read_to_string(folder.path("first-kernel/Cargo.toml")).unwrap();
    assert!(
        manifest.contains("name = \"first-kernel\"") && manifest.contains("tirx-sim-machine]\nopt-level = 2")
    );
    let checked = folder.run(&["check", "--manifest", "first-kernel/kernels.toml"]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    fails(&folder.run(&["new", "first-kernel"]), 1, &["is there already"]);
    fails(&folder.run(&["new", "2nd"]), 2, &["no name for a crate"]);
    for taken in ["fn", "test", "tirx-rt"] {
        let why = format!("`{taken}` cannot be the name of a crate here");
        fails(
            &folder.run(&["new", taken]),
            2,
            &[&why, &format!("`{taken}-kernels`")],
        );
    }
    fails(&folder.run(&["new", ".."]), 2, &["`..` is no name for a crate"]);
}

/// An installed command has no checkout to depend on.
#[test]
fn an_installed_command_writes_version_requirements() {
    let folder = Folder::new();
    let installed = folder.path("cargo-tirx");
    fs::copy(env!("CARGO_BIN_EXE_cargo-tirx"), &installed).unwrap();
    let new = |arguments: &[&str]| {
        let run = Command::new(&installed)
            .args(arguments)
            .current_dir(folder.0.path())
            .output();
        let run = run.unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        fs::read_to_string(folder.path(arguments[1]).join("Cargo.toml")).unwrap()
    };
    let manifest = new(&["new", "first"]);
    let version = env!("CARGO_PKG_VERSION");
    for package in ["tirx-rt", "tirx-build"] {
        let wanted = format!("{package} = {{ version = \"{version}\", ");
        assert!(
            manifest.contains(&wanted) && !manifest.contains("path ="),
            "{manifest}"
        );
    }
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let manifest = new(&["new", "second", "--tirx", checkout]);
    assert!(
        manifest.contains("tirx-rt = { path = ") && !manifest.contains("version = \"0.1.0\", "),
        "{manifest}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    fs::write(
        folder.path("bad.py"),
        "from tvm.script import tirx as T\n\n@T.prim_func\ndef k(\n",
    )
    .unwrap();
    // `cargo tirx check bad.py 2>&1 | true`, and the same of a command that writes.
    for (arguments, code) in [
        (&["check", "bad.py"][..], 1),
        (&["cuda", "k.py", "--entry", "add", "-D", "N=64"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(arguments)
            .current_dir(folder.path(""))
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

/// The lines that a program writes to stderr, as they come.
fn lines_of(child: &mut std::process::Child) -> std::sync::mpsc::Receiver<String> {
    use std::io::BufRead;
    let (sender, receiver) = std::sync::mpsc::channel();
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        stderr
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    receiver
}

#[test]
fn watching_reports_each_change() {
    let folder = Folder::new();
    fs::write(
        folder.path("kernels.toml"),
        "[[kernel]]\nname = \"scale\"\nsource = \"k.py\"\ntargets = [\"sm_90a\"]\n",
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
        .args(["check", "--watch"])
        .current_dir(folder.0.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines_of(&mut child);
    let wait_for = |part: &str| {
        let mut seen = Vec::new();
        while let Ok(line) = lines.recv_timeout(std::time::Duration::from_secs(60)) {
            if line.contains(part) {
                return;
            }
            seen.push(line);
        }
        panic!("no line with {part}: {seen:#?}");
    };
    wait_for("`kernels.toml` is well");
    fs::write(folder.path("k.py"), KERNELS.replace("A[i] * s", "Z[i] * s")).unwrap();
    wait_for("error: ");
    wait_for("k.py:21:16");
    fs::write(folder.path("k.py"), KERNELS).unwrap();
    wait_for("`kernels.toml` is well");
    // The manifest is watched as well.
    fs::write(folder.path("kernels.toml"), "[[kernel]]\nname = \"scale\"\n").unwrap();
    wait_for("kernel `scale` has no text");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The nvcc of the tests.
fn nvcc() -> Option<String> {
    let nvcc = tirx_test_tools::nvcc::nvcc()?;
    Some(nvcc.path.to_string_lossy().into_owned())
}

#[test]
fn names_of_the_language_are_explained() {
    let folder = Folder::new();
    let one = folder.run(&["docs", "cta_sync"]);
    assert_eq!(one.code, Some(0), "{}", one.err);
    for part in [
        "T.cuda.cta_sync()\n",
        "Barrier of the block.",
        "GPUs:     any\n",
        "example:  T.cuda.cta_sync()",
    ] {
        assert!(one.out.contains(part), "{part}: {}", one.out);
    }
    let method = folder.run(&["docs", "Buffer.ptr_to"]);
    assert!(
        method.out.contains("Buffer.ptr_to(indices)\n") && method.out.contains(".ptr_to("),
        "{}",
        method.out
    );
    let class = folder.run(&["docs", "Pipeline"]);
    assert!(
        class
            .out
            .contains("import:   from tvm.backend.cuda.lang.pipeline import Pipeline\n"),
        "{}",
        class.out
    );
    fails(
        &folder.run(&["docs", "cta_snyc"]),
        1,
        &[
            "the language has no name `cta_snyc`",
            "did you mean `T.cuda.cta_sync`?",
        ],
    );
    let all = folder.run(&["docs"]);
    assert!(all.out.lines().count() > 700 && all.out.contains("\nTMEMPool.alloc\n"));
    let json = folder.run(&["docs", "T.exp", "--json"]);
    assert!(json.out.contains("\"signature\": \"(x)\""), "{}", json.out);
}

/// A name that a help proposes must be one that is accepted there.
#[test]
fn helps_propose_what_is_accepted() {
    let folder = Folder::new();
    let of = |body: &str| {
        let text = format!(
            "from tvm.script import tirx as T\nfrom tvm.script.tirx import tile as Tx\nimport math\n\ndef f(width, height):\n    return width\n\n\
             @T.prim_func\ndef k(A: T.Buffer((64,), \"uint32\")):\n    T.device_entry(); T.cta_id([1]); tx = T.thread_id([32])\n    {body}\n"
        );
        std::fs::write(folder.path("proposed.py"), text).unwrap();
        folder.run(&["check", "proposed.py"]).err
    };
    let v27 = "T.ptx.ld.global_.u32(A[0], A.ptr_to([1]))";
    for (body, there, absent) in [
        // The argument is given already.
        (
            "r = T.alloc_local((4,), \"float32\", shap=(4,))",
            "no parameter \"shap\"",
            "did you mean",
        ),
        ("A[tx] = f(1, widht=2)", "no parameter \"widht\"", "did you mean"),
        // `T` has no such function.
        ("A[tx] = math.isqrt(tx)", "known at compile time", "T.isqrt"),
        ("Tx.add(A, tx, A)", "", "T.add"),
        // The option has a name of its own.
        (
            "Tx.copy(A, A, dispach=\"reg\")",
            "did you mean \"dispatch\"?",
            "the options",
        ),
        // Words of PTX as Python writes them, in a file that is written with them.
        (
            &format!("{v27}\n    T.ptx.ld.gloabl.u32(A[0], A.ptr_to([1]))"),
            "did you mean .global_?",
            "shared::",
        ),
        (
            &format!("{v27}\n    T.ptx.ld_global_aquire(A.ptr_to([1]))"),
            "unknown name",
            "ld_global_acquire",
        ),
    ] {
        let err = of(body);
        assert!(
            err.starts_with("error") && err.contains(there) && !err.contains(absent),
            "{body}: {err}"
        );
    }
}

#[test]
fn an_imported_file_in_utf_16_is_named() {
    let folder = Folder::new();
    let bytes: Vec<u8> = "\u{feff}def f(x):\n    return x\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    std::fs::write(folder.path("wide.py"), bytes).unwrap();
    let text = "from tvm.script import tirx as T\nfrom wide import f\n\n@T.prim_func\ndef k(A: T.Buffer((4,), \"float32\")):\n    \
                T.device_entry(); T.cta_id([1]); tx = T.thread_id([4])\n    A[tx] = f(1.0)\n";
    std::fs::write(folder.path("imports.py"), text).unwrap();
    fails(
        &folder.run(&["check", "imports.py"]),
        1,
        &[
            "cannot read `wide.py`: it is in UTF-16",
            "save it as UTF-8",
            "imports.py:2:1",
        ],
    );
    std::fs::write(folder.path("wide.py"), b"x = \"\xe4\"\n").unwrap();
    fails(
        &folder.run(&["check", "imports.py"]),
        1,
        &["cannot read `wide.py`: line 1 is no UTF-8", "imports.py:2:1"],
    );
}
