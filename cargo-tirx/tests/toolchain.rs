//! `cargo tirx toolchain` and `cargo tirx doctor` on simulated machines, whose programs are shell scripts.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tirx_test_tools::stand_in;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\"]\nptx = \"compute_90\"\n[toolchain]\ncuda = \"13.0\"\n\
    [[kernel]]\nname = \"scale\"\nsource = \"k.py\"\n";

const KERNEL: &str = "from tvm.script import tirx as T\n\n@T.prim_func\ndef scale(A: T.Buffer((64,), \"float32\")):\n    \
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])\n    A[tx] = A[tx] * 2.0\n";

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        fs::create_dir(machine.path("bin")).unwrap();
        fs::write(machine.path("kernels.toml"), MANIFEST).unwrap();
        fs::write(machine.path("k.py"), KERNEL).unwrap();
        machine
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn program(&self, file: &str, body: &str) -> PathBuf {
        stand_in::script(self.path(file), body)
    }

    fn nvcc(&self, file: &str, release: &str) -> PathBuf {
        self.program(
            file,
            &format!("echo 'Cuda compilation tools, release {release}, V{release}.88'"),
        )
    }

    /// Exit code, stdout and stderr; this folder is `HERE` in both.
    fn tirx(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_cargo-tirx"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("TIRX_CACHE_DIR", self.path("cache"))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let here = self.0.path().to_string_lossy().into_owned();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&here, "HERE");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn toolchains_are_listed_and_removed() {
    let machine = Machine::new();
    let said = machine.tirx(&["toolchain", "list"], &[]);
    assert_eq!(
        said,
        (Some(0), "no toolchain was fetched\n".into(), String::new())
    );
    machine.nvcc("cache/toolchains/cuda-13.0/nvidia/cu13/bin/nvcc", "13.0");
    machine.nvcc("cache/toolchains/cuda-13.2/nvidia/cu13/bin/nvcc", "13.2");
    let (_, out, err) = machine.tirx(&["toolchain", "list"], &[]);
    assert_eq!(
        out,
        "13.2 V13.2.88 HERE/cache/toolchains/cuda-13.2/nvidia/cu13/bin/nvcc\n\
         13.0 V13.0.88 HERE/cache/toolchains/cuda-13.0/nvidia/cu13/bin/nvcc (builds here use it)\n",
        "{err}"
    );
    let (_, out, _) = machine.tirx(&["toolchain", "path"], &[]);
    assert_eq!(out, "HERE/cache/toolchains/cuda-13.0/nvidia/cu13/bin/nvcc\n");
    let (_, out, _) = machine.tirx(&["toolchain", "show"], &[]);
    assert!(out.ends_with("(from cargo tirx toolchain)\n"), "{out}");
    let (code, out, _) = machine.tirx(&["toolchain", "remove", "13.0"], &[]);
    assert_eq!((code, out.as_str()), (Some(0), "removed nvcc 13.0\n"));
    assert!(!machine.path("cache/toolchains/cuda-13.0").exists());
    let (code, _, err) = machine.tirx(&["toolchain", "remove", "13.0"], &[]);
    assert!(
        code == Some(1) && err.contains("no toolchain 13.0 was fetched"),
        "{err}"
    );
    let (code, _, err) = machine.tirx(&["toolchain", "remove", "latest"], &[]);
    assert!(
        code == Some(2) && err.contains("`latest` is no CUDA release"),
        "{err}"
    );
    let (code, _, err) = machine.tirx(&["toolchain", "path"], &[("TIRX_NVCC", "none")]);
    assert!(
        code == Some(1) && err.contains("no nvcc is used: TIRX_NVCC is `none`"),
        "{err}"
    );
    let (code, out, _) = machine.tirx(&["toolchain", "show"], &[("TIRX_NVCC", "none")]);
    assert_eq!((code, out.as_str()), (Some(0), "none (TIRX_NVCC is `none`)\n"));
    // The one that is left is of another release than the manifest pins.
    let (code, _, err) = machine.tirx(&["toolchain", "path"], &[]);
    assert!(
        code == Some(1) && err.contains("it is CUDA 13.2, the manifest pins 13.0"),
        "{err}"
    );
}

#[test]
fn offline_nothing_is_installed() {
    let machine = Machine::new();
    machine.program("bin/python3", "touch $0.ran");
    let (code, _, err) = machine.tirx(&["toolchain", "install"], &[("TIRX_OFFLINE", "1")]);
    assert!(
        code == Some(1) && err.contains("cannot install nvcc 13.0: TIRX_OFFLINE forbids fetching it"),
        "{err}"
    );
    assert!(!machine.path("bin/python3.ran").exists());
}

#[test]
fn the_doctor_says_what_is_used_and_why() {
    let machine = Machine::new();
    machine.nvcc("bin/nvcc", "12.4");
    machine.nvcc("home/bin/nvcc", "13.0");
    machine.program("bin/nvidia-smi", "echo '9.0, NVIDIA H200'");
    machine.program("bin/cc", "echo 'cc 12'");
    machine.program(
        "bin/python3",
        "[ \"$1\" = --version ] && echo 'Python 3.11'; [ \"$2\" = pip ] && echo pip; true",
    );
    let home = machine.path("home");
    let (code, out, err) = machine.tirx(&["doctor"], &[("CUDA_HOME", home.to_str().unwrap())]);
    assert_eq!(code, Some(0), "{out}{err}");
    for line in [
        "tirx        0.1.0\n",
        "manifest    `kernels.toml`: 1 kernel for compute_90, sm_90a; pins CUDA 13.0, a build fetches nothing\n",
        "bundle      none at `kernels.bundle`\n",
        "nvcc        nvcc 13.0 at `HERE/home/bin/nvcc` (from CUDA_HOME): used, as the first that fits\n            \
         nvcc 12.4 at `HERE/bin/nvcc` (from PATH): not used: it is CUDA 12.4, the manifest pins 13.0\n",
        "GPU         NVIDIA H200 (compute capability 9.0)\n",
        "python      `HERE/bin/python3` (Python 3.11), with pip\n",
        "packages    exact versions, their hashes checked, fetched as pip is configured (PIP_INDEX_URL, PIP_FIND_LINKS",
        "            nvcc is NVIDIA's, under the licence that its packages carry; tirx contains nothing of it\n",
        "C compiler  `cc` (cc 12)\n",
        "cache       `HERE/cache`\n",
        "variables   CUDA_HOME=HERE/home\n            TIRX_CACHE_DIR=HERE/cache\n",
        "\nnothing is missing\n",
    ] {
        assert!(out.contains(line), "{line}{out}");
    }
}

#[test]
fn the_doctor_says_what_is_missing() {
    let machine = Machine::new();
    let (code, out, err) = machine.tirx(&["doctor"], &[]);
    // A machine may have a toolkit where one is looked for last.
    if out.contains("none was found") {
        assert_eq!(code, Some(1), "{out}");
        assert!(
            err.contains("no nvcc that a build here can use: kernels run on the simulator only")
                && err.contains("run `cargo tirx toolchain install --cuda 13.0`"),
            "{err}"
        );
    }
    for line in [
        "GPU         none: there is no `nvidia-smi` on PATH, which the driver brings; programs here run kernels on the simulator\n",
        "python      none on PATH; only `cargo tirx toolchain install` and `auto-install` need it\n",
        "C compiler  `cc` does not run; only the C interface (`Builder::c_api`) needs it\n",
    ] {
        assert!(out.contains(line), "{line}{out}");
    }
    let (code, _, err) = machine.tirx(&["toolchain", "path"], &[]);
    if out.contains("none was found") {
        assert_eq!(code, Some(1), "{err}");
        assert!(
            err.contains("error: no nvcc was found")
                && err.contains("run `cargo tirx toolchain install`, or set TIRX_NVCC to the nvcc to use"),
            "{err}"
        );
    }
    machine.program("bin/python3", "[ \"$1\" = --version ] && echo 'Python 3.11'");
    let (_, out, _) = machine.tirx(&["doctor"], &[("TIRX_PYTHON", "/nowhere/python")]);
    let line = "python      `/nowhere/python` does not run; only `cargo tirx toolchain install` and `auto-install` need it\n";
    assert!(out.contains(line), "{out}");
    let mirror = [
        ("PIP_INDEX_URL", "https://me:secret@mirror.example/simple"),
        ("PIP_CERT", "/ca.pem"),
    ];
    let (_, out, _) = machine.tirx(&["doctor"], &mirror);
    let line = "fetched with PIP_INDEX_URL=https://…@mirror.example/simple, PIP_CERT=/ca.pem;\n";
    assert!(out.contains(line), "{out}");
    let (_, out, _) = machine.tirx(&["doctor"], &[("TIRX_CACHE_DIR", "")]);
    for line in [
        "python      `HERE/bin/python3` (Python 3.11), without pip: a virtual environment brings it\n",
        "cache       none: set TIRX_CACHE_DIR or HOME\n",
        "store       none: every package compiles for itself\n",
    ] {
        assert!(out.contains(line), "{line}{out}");
    }
    let (code, out, _) = machine.tirx(&["doctor"], &[("TIRX_NVCC", "none")]);
    assert!(
        code == Some(0)
            && out.contains(
                "nvcc        none, for TIRX_NVCC is `none`: builds make kernels for the simulator\n"
            ),
        "{out}"
    );
    let (code, out, err) = machine.tirx(&["doctor", "--manifest", "no.toml"], &[("TIRX_NVCC", "none")]);
    assert!(
        code == Some(0) && out.contains("manifest    none: `no.toml` cannot be read"),
        "{out}{err}"
    );
    fs::write(machine.path("kernels.toml"), "[[kernel]]\nname = 1\n").unwrap();
    let (code, _, err) = machine.tirx(&["doctor"], &[("TIRX_NVCC", "none")]);
    assert!(
        code == Some(1) && err.contains("`name` is a string, found `1`"),
        "{err}"
    );
    fs::write(
        machine.path("kernels.toml"),
        MANIFEST.replace("[defaults]", "[bundle]\npath = \"b\"\n[defaults]"),
    )
    .unwrap();
    let (_, out, _) = machine.tirx(&["doctor"], &[("TIRX_NVCC", "none")]);
    assert!(out.contains("bundle      there is no bundle at `b`"), "{out}");
}

#[test]
fn native_targets_are_those_of_the_machine() {
    let machine = Machine::new();
    fs::write(
        machine.path("kernels.toml"),
        MANIFEST.replace("\"sm_90a\"", "\"native\""),
    )
    .unwrap();
    let (code, _, err) = machine.tirx(&["check"], &[]);
    assert_eq!(code, Some(1));
    for part in [
        "error: `native` among the targets: there is no `nvidia-smi` on PATH, which the driver brings",
        "--> kernels.toml:2:12",
        "= help: name the GPUs that the kernels are for: `targets = [\"sm_90a\", \"sm_100a\"]`",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
    machine.program("bin/nvidia-smi", "echo '10.0, NVIDIA B200'");
    let (code, _, err) = machine.tirx(&["check"], &[]);
    assert_eq!(code, Some(0), "{err}");
}
