//! Tuned kernels: generated launchers, records, and stale records.

use std::fs;

use tirx_build::tuning::{FOLDER, KernelTimes, MeasuredPoint, TuningRecord, file_name};
use tirx_build::{Environment, Kernel, TunedKernel};

use crate::package::{Package, warnings};

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def scale(a: T.handle, b: T.handle, f: T.float32, rows: T.int32, *, TILE: T.constexpr, DTYPE: T.constexpr = "float32"):
    n = T.int32()
    A = T.match_buffer(a, (n,), DTYPE)
    B = T.match_buffer(b, (n,), DTYPE)
    T.device_entry()
    by, bx = T.cta_id([rows, T.ceildiv(n, TILE)])
    tx = T.thread_id([TILE])
    if bx * TILE + tx < n and by == 0:
        B[bx * TILE + tx] = A[bx * TILE + tx] * T.cast(f, DTYPE)
"#;

const MANIFEST: &str = r#"[defaults]
targets = ["sm_90a"]

[[kernel]]
name = "scale"
source = "kernels.py"

[kernel.tune]
values = { TILE = [256, 64, 128] }
predicate = "TILE != 128"
sizes = [{ n = 1000, rows = 1 }, { n = 1_000_000, rows = 1 }]
"#;

const DEVICE: &str = "NVIDIA H100 80GB HBM3";

fn package() -> Package {
    let package = Package::new();
    package.write("kernels.py", KERNELS);
    package.write("kernels.toml", MANIFEST);
    package
}

fn none() -> Environment {
    Environment::empty().with("TIRX_NVCC", "none")
}

fn tuned(package: &Package) -> TunedKernel {
    let mut all = package.builder(none()).tuned().unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A record of the package's kernel.
fn record(package: &Package) -> TuningRecord {
    let kernel = tuned(package);
    TuningRecord {
        device: DEVICE.into(),
        kernels: vec![KernelTimes {
            name: kernel.name,
            hash: kernel.hash,
            driver: "13.0".into(),
            nvcc: "13.0 V13.0.88".into(),
            tirx: "0.1.0".into(),
            clock: None,
            sizes: kernel.sizes,
            candidates: kernel.candidates,
            points: vec![MeasuredPoint {
                sizes: vec![1000, 1],
                times: vec![2.5, 1.25],
            }],
        }],
    }
}

fn write(package: &Package, record: &TuningRecord) {
    fs::create_dir_all(package.path(FOLDER)).unwrap();
    package.write(&format!("{FOLDER}/{}", file_name(&record.device)), &record.text());
}

/// The warnings about tuning; without nvcc there is another one.
fn told(package: &Package) -> Vec<String> {
    let report = package.build(none()).unwrap();
    let about = |line: &&&String| line.contains("tuning record");
    warnings(&report)
        .iter()
        .filter(about)
        .map(|line| (*line).clone())
        .collect()
}

#[test]
fn a_tuned_kernel_has_a_launcher_that_chooses() {
    let package = package();
    let kernel = tuned(&package);
    assert_eq!(kernel.candidates, ["tile256", "tile64"]);
    assert_eq!(kernel.sizes, ["n", "rows"]);
    assert_eq!(kernel.points, [[1000, 1], [1_000_000, 1]]);
    assert!(told(&package).is_empty());
    let text = package.text("out/tirx_kernels.rs");
    for part in [
        "There is no record: a model of the grids chooses.",
        "pub fn tuned(",
        // The grid of each candidate, over the sizes.
        "tirx_rt::host::Wide::from(sizes[1])",
        "tirx_rt::host::Wide::from(255_i64)",
        "tirx_rt::host::Wide::from(63_i64)",
        "TUNING.choose(stream, &[tirx_rt::host::Arg::tensor(a).shape(0), i64::from(rows)])?",
        "0 => tile256(stream, a, b, f, rows)",
        "_ => tile64(stream, a, b, f, rows)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_record_is_embedded() {
    let package = package();
    write(&package, &record(&package));
    assert!(told(&package).is_empty());
    let text = package.text("out/tirx_kernels.rs");
    assert!(text.contains("device: \"NVIDIA H100 80GB HBM3\""), "{text}");
    assert!(text.contains("(&[1000, 1], &[2.5, 1.25])"), "{text}");
    assert!(text.contains("Measured on `NVIDIA H100 80GB HBM3`"), "{text}");
    // A comment in the kernel file changes nothing.
    package.edit("kernels.py", "@T.jit", "# A comment.\n@T.jit");
    assert!(told(&package).is_empty());
}

#[test]
fn a_stale_record_is_not_used() {
    let package = package();
    let record = record(&package);
    write(&package, &record);
    let stale = |reason: &str| {
        let told = told(&package);
        let [warning] = told.as_slice() else {
            panic!("{told:?}")
        };
        for part in [
            "NVIDIA-H100-80GB-HBM3.toml` of kernel `scale` is stale: ",
            reason,
            "the model chooses (run `cargo tirx tune scale` on this GPU (NVIDIA H100 80GB HBM3)",
        ] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        assert!(!package.text("out/tirx_kernels.rs").contains(DEVICE));
    };
    package.edit("kernels.py", "A[bx * TILE + tx] *", "2.0 * A[bx * TILE + tx] *");
    stale("the kernel has changed, its hash is ");
    // The grid is not in the code of the device.
    package.edit("kernels.py", "2.0 * A[bx", "A[bx");
    assert!(told(&package).is_empty());
    package.edit(
        "kernels.py",
        "[rows, T.ceildiv(n, TILE)]",
        "[rows, T.ceildiv(n, TILE) + 1]",
    );
    stale("the kernel has changed");
    package.edit("kernels.py", "T.ceildiv(n, TILE) + 1]", "T.ceildiv(n, TILE)]");
    package.edit("kernels.toml", "source", "fast-math = true\nsource");
    stale("the kernel has changed");
    package.edit("kernels.toml", "fast-math = true\n", "");
    package.edit("kernels.toml", "[256, 64, 128]", "[64, 256]");
    stale("the candidates are others");
    package.edit("kernels.toml", "[64, 256]", "[256, 64, 128]");
    assert!(told(&package).is_empty());
}

#[test]
fn locked_builds_refuse_a_stale_record() {
    let package = package();
    let environment = Environment::empty().with("TIRX_NVCC", package.nvcc("13.0"));
    let bundle = package
        .builder(environment)
        .bundle(tirx_build::BundleAction::Write, false, "MIT");
    bundle.unwrap();
    let locked = || package.build(none().with("TIRX_LOCKED", "1"));
    let record = record(&package);
    write(&package, &record);
    locked().unwrap();
    let mut other = record;
    other.kernels[0].hash = "00".into();
    write(&package, &other);
    let error = locked().unwrap_err().to_string();
    assert!(error.starts_with("error: the tuning record `"), "{error}");
    assert!(
        error.contains("is stale") && error.contains("= help: run `cargo tirx tune scale`"),
        "{error}"
    );
}

#[test]
fn damaged_records_are_errors() {
    let package = package();
    let record = record(&package);
    write(&package, &record);
    let file = format!("{FOLDER}/{}", file_name(DEVICE));
    package.edit(&file, "times = ", "tines = ");
    let error = package.build(none()).unwrap_err().to_string();
    assert!(
        error.contains("is damaged: line ") && error.contains("unknown key `tines`"),
        "{error}"
    );
    assert!(
        error.contains("= help: restore it from version control"),
        "{error}"
    );
    write(&package, &record);
    package.write(&format!("{FOLDER}/copy.toml"), &record.text());
    let error = package.build(none()).unwrap_err().to_string();
    assert!(
        error.contains("two tuning records are of `NVIDIA H100") && error.contains("delete one"),
        "{error}"
    );
}

#[test]
fn candidates_and_sizes_are_those_of_the_kernel() {
    let package = package();
    let refused = |from: &str, to: &str, parts: &[&str]| {
        package.write("kernels.toml", &MANIFEST.replace(from, to));
        let error = package.build(none()).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert_eq!(error.matches("error: ").count(), 1, "{error}");
    };
    refused(
        "TILE",
        "TILES",
        &[
            "no compile-time parameter `TILES`",
            "kernels.toml:9:10",
            "did you mean `TILE`?",
        ],
    );
    refused(
        "n = 1",
        "m = 1",
        &[
            "no extent or integer parameter `m`",
            "kernels.toml:11:9",
            "its sizes are rows, n",
        ],
    );
    refused(
        ", rows = 1",
        "",
        &["`sizes` of kernel `scale` does not give `rows`", "add `rows = …`"],
    );
    refused(
        "TILE = [256, 64, 128] }",
        "TILE = [256, 64], DTYPE = [\"float32\", \"float16\"] }",
        &[
            "have different signatures",
            "AsTensor<f32>",
            "declare a kernel for each signature",
        ],
    );
    refused("TILE = [256, 64, 128]", "DTYPE = [\"float32\"]", &["predicate"]);
    refused(
        "TILE = [256, 64, 128]",
        "TILE = [256, 64, 256]",
        &[
            "would both be named `tile256`",
            "equal values: remove one of them",
        ],
    );
    refused(
        "sizes = [{ n = 1000, rows = 1 }, { n = 1_000_000, rows = 1 }]",
        "sizes = [{ n = -5, rows = 1 }]",
        &["`n` of `sizes` is no size: an integer from 0"],
    );
}

#[test]
fn build_scripts_declare_tuned_kernels() {
    let package = package();
    package.write("kernels.toml", "[defaults]\ntargets = [\"sm_90a\"]\n");
    let tune = |predicate: &str| {
        tirx_build::Tune::new()
            .values("TILE", [256, 64, 128])
            .predicate(predicate)
            .sizes([("n", 1000), ("rows", 1)])
            .sizes([("n", 1_000_000), ("rows", 1)])
    };
    let kernel = Kernel::source("scale", "kernels.py");
    let declared = |tune| package.builder(none()).kernel(kernel.clone().tune(tune));
    let all = declared(tune("TILE != 128")).tuned().unwrap();
    package.write("kernels.toml", MANIFEST);
    assert_eq!(all, [tuned(&package)]);
    package.write("kernels.toml", "[defaults]\ntargets = [\"sm_90a\"]\n");
    let error = declared(tune("TILE < 0")).build().unwrap_err().to_string();
    assert!(
        error.contains("`predicate` of kernel `scale` excludes all 3 combinations"),
        "{error}"
    );
    let error = declared(tune("True").sizes([("n", 7)]))
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("name different sizes"), "{error}");
}

#[test]
fn a_kernel_of_fixed_sizes_is_tuned_by_device_alone() {
    let package = package();
    package.write(
        "kernels.py",
        "from tvm.script import tirx as T\n\n@T.jit\ndef scale(A: T.Buffer((1000,), \"float32\"), *, TILE: T.constexpr):\n    \
         T.device_entry(); bx = T.cta_id([T.ceildiv(1000, TILE)]); tx = T.thread_id([TILE])\n    \
         if bx * TILE + tx < 1000:\n        A[bx * TILE + tx] = A[bx * TILE + tx] * 2.0\n",
    );
    let sizes = MANIFEST.find("sizes").unwrap();
    package.write("kernels.toml", &MANIFEST[..sizes]);
    assert_eq!(tuned(&package).points, [Vec::<i64>::new()]);
    let mut record = record(&package);
    record.kernels[0].points[0].sizes.clear();
    write(&package, &record);
    assert!(told(&package).is_empty());
    let text = package.text("out/tirx_kernels.rs");
    for part in ["TUNING.choose(stream, &[])?", "(&[], &[2.5, 1.25])", "by device."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    package.write("kernels.toml", MANIFEST);
    let error = package.build(none()).unwrap_err().to_string();
    assert!(
        error.contains("its sizes are all fixed: leave `sizes` out"),
        "{error}"
    );
    package.write("kernels.py", KERNELS);
    package.write("kernels.toml", &MANIFEST[..sizes]);
    let error = package.build(none()).unwrap_err().to_string();
    assert!(
        error.contains("does not give `rows`") && error.contains("`sizes = [{ rows = 1000 }]`"),
        "{error}"
    );
}
