//! A package outside of the workspace, built by Cargo as a user's is: without network and without nvcc.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    B[tx] = A[tx] + 1.0
"#;

const MANIFEST: &str = r#"[[kernel]]
name = "add"
source = "kernels.py"
targets = ["sm_90a"]
specialize = [{ N = 64 }]
"#;

const BUILD: &str =
    "fn main() -> tirx_build::Result<()> {\n    tirx_build::compile_kernels(\"kernels.toml\")\n}\n";

const MAIN: &str = r#"tirx_rt::include_kernels!();

use tirx_rt::{Device, Tensor};

fn main() -> tirx_rt::Result<()> {
    let stream = Device::simulator().new_stream()?;
    let a = Tensor::from_slice(&stream, &[41.0_f32; 64], [64])?;
    let mut b = Tensor::zeros(&stream, [64])?;
    kernels::add::n64(&stream, &a, &mut b)?;
    println!("{:?}", b.to_vec()?[63]);
    println!("{}", kernels::add::launch(&stream, kernels::add::Constexpr { N: 128 }, &a, &mut b).unwrap_err());
    Ok(())
}
"#;

/// The package's folder, and where Cargo builds.
struct Package {
    folder: tempfile::TempDir,
    target: PathBuf,
}

impl Package {
    /// What the workspace's tests have compiled is used again: the same lock file, profile and target directory.
    fn new() -> Package {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()
            .unwrap();
        let program = std::env::current_exe().unwrap();
        let package = Package {
            folder: tempfile::tempdir().unwrap(),
            target: program.ancestors().nth(3).unwrap().into(),
        };
        let root_text = root.display();
        let manifest = format!(
            "[package]\nname = \"throw-away\"\nedition = \"2024\"\n\
             [dependencies]\ntirx-rt = {{ path = \"{root_text}/tirx-rt\" }}\n\
             [build-dependencies]\ntirx-build = {{ path = \"{root_text}/tirx-build\" }}\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n[workspace]\n"
        );
        fs::create_dir(package.folder.path().join("src")).unwrap();
        package.write("Cargo.toml", &manifest);
        fs::copy(root.join("Cargo.lock"), package.folder.path().join("Cargo.lock")).unwrap();
        for (file, text) in [
            ("kernels.py", KERNELS),
            ("kernels.toml", MANIFEST),
            ("build.rs", BUILD),
            ("src/main.rs", MAIN),
        ] {
            package.write(file, text);
        }
        package
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    /// Runs Cargo: whether it succeeded, stdout and stderr.
    fn cargo(&self, command: &str) -> (bool, String, String) {
        let output = Command::new(env!("CARGO"))
            .args([command, "--offline"])
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("TIRX_NVCC", "none")
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn a_package_without_nvcc_and_network() {
    let package = Package::new();
    let (success, out, err) = package.cargo("run");
    assert!(success, "{err}");
    assert_eq!(
        out,
        "42.0\nkernel `add` was not built for N = 128; built: N = 64. Add the specialization to kernels.toml\n"
    );
    let warnings: Vec<&str> = err.lines().filter(|line| line.starts_with("warning:")).collect();
    let [warning] = warnings[..] else {
        panic!("{err}");
    };
    assert!(
        warning.contains("TIRX_NVCC is `none`: the kernels run on the simulator only"),
        "{warning}"
    );

    // A specialization that is not in the manifest is no function.
    package.write("src/main.rs", &MAIN.replace("add::n64", "add::n65"));
    let (success, _, err) = package.cargo("build");
    assert!(
        !success && err.contains("error[E0425]: cannot find function `n65` in module `kernels::add`"),
        "{err}"
    );

    // A kernel that must have machine code.
    package.write("kernels.toml", &format!("{MANIFEST}require = true\n"));
    let (success, _, err) = package.cargo("build");
    assert!(!success, "{err}");
    for part in [
        "error: TIRX_NVCC is `none`; the manifest requires machine code for `add`",
        "= help: ",
    ] {
        assert!(err.contains(part), "{part}: {err}");
    }
}
