//! Tuned kernels: the model chooses, a record chooses, a stale record does not, and Cargo notices records.

use tirx_build::tuning::{FOLDER, KernelTimes, MeasuredPoint, TuningRecord, file_name};

use crate::throw_away::ScratchPackages;

const KERNELS: &str = r#"from tvm.script import tirx as T

@T.jit
def scale(a: T.handle, b: T.handle, *, TILE: T.constexpr):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    T.device_entry()
    row, block = T.cta_id([m, T.ceildiv(n, TILE)])
    tx = T.thread_id([TILE])
    if block * TILE + tx < n:
        B[row, block * TILE + tx] = A[row, block * TILE + tx] + 1.0
"#;

const MANIFEST: &str = "[defaults]\ntargets = [\"sm_90a\"]\n\n[[kernel]]\nname = \"scale\"\nsource = \"kernels.py\"\n\n\
                        [kernel.tune]\nvalues = { TILE = [256, 64, 32] }\npredicate = \"TILE != 32\"\n\
                        sizes = [{ m = 1, n = 1000 }, { m = 1, n = 1_000_000 }]\n";

/// Prints the names of the candidates that run for some sizes, and an element of the result.
const MAIN: &str = r#"#![forbid(unsafe_code)]
tirx_rt::include_kernels!();

fn main() -> tirx_rt::Result<()> {
    let stream = tirx_rt::Device::simulator().new_stream()?;
    let tuning = &kernels::scale::TUNING;
    assert_eq!(tuning.sizes(), ["m", "n"]);
    for sizes in [[1, 1000], [1, 1_000_000], [0, 0]] {
        print!("{} ", tuning.candidates()[tuning.choose(&stream, &sizes)?].name);
    }
    let a = tirx_rt::Tensor::from_slice(&stream, &[41.0_f32; 3 * 70], [3, 70])?;
    let mut b = tirx_rt::Tensor::zeros(&stream, [3, 70])?;
    kernels::scale::tuned(&stream, &a, &mut b)?;
    // Errors are those of the launcher.
    let mut other = tirx_rt::Tensor::zeros(&stream, [3, 71])?;
    let error = kernels::scale::tuned(&stream, &a, &mut other).unwrap_err().to_string();
    assert!(error.contains("scale::tile"), "{error}");
    println!("{:?}", b.to_vec()?[209]);
    Ok(())
}
"#;

/// A record for a device.
fn record(place: &ScratchPackages, device: &str, points: &[([i64; 2], [f64; 2])]) -> TuningRecord {
    let builder = tirx_build::Builder::new().manifest(place.path("tuned/kernels.toml"));
    let kernel = builder.tuned().unwrap().remove(0);
    let points = points.iter().map(|(sizes, times)| MeasuredPoint {
        sizes: sizes.to_vec(),
        times: times.to_vec(),
    });
    TuningRecord {
        device: device.into(),
        kernels: vec![KernelTimes {
            name: kernel.name,
            hash: kernel.hash,
            driver: "13.0".into(),
            nvcc: "13.0 V13.0.88".into(),
            tirx: "0.1.0".into(),
            clock: Some(1755),
            sizes: kernel.sizes,
            candidates: kernel.candidates,
            points: points.collect(),
        }],
    }
}

#[test]
fn a_launcher_chooses_by_a_record_or_a_model() {
    let mut place = ScratchPackages::new();
    place.set("TIRX_NVCC", "none");
    place.package("tuned", MANIFEST, KERNELS, MAIN, "");
    let run = |place: &ScratchPackages, expected: &str| {
        let (success, out, err) = place.cargo("tuned", &["run"]);
        assert!(success, "{err}");
        assert_eq!(out, expected, "{err}");
        err
    };
    // Small tiles for few elements, large tiles for many.
    run(&place, "tile64 tile256 tile256 42.0\n");
    // A record of another device changes nothing; a record of this one does, as soon as it appears.
    let points = [([1, 1000], [2.0, 3.0]), ([1, 1_000_000], [30.0, 20.0])];
    let write = |device: &str| {
        let record = record(&place, device, &points);
        place.write(&format!("tuned/{FOLDER}/{}", file_name(device)), &record.text());
    };
    write("NVIDIA H100 80GB HBM3");
    run(&place, "tile64 tile256 tile256 42.0\n");
    write("simulator");
    run(&place, "tile256 tile64 tile256 42.0\n");
    // A changed kernel: the record is stale, the model chooses, and the warning names the fix.
    place.edit("tuned/kernels.py", "+ 1.0", "+ 2.0");
    let err = run(&place, "tile64 tile256 tile256 43.0\n");
    assert!(
        err.contains("simulator.toml` of kernel `scale` is stale: the kernel has changed")
            && err.contains("run `cargo tirx tune scale` on this GPU (NVIDIA H100 80GB HBM3)"),
        "{err}"
    );
    place.edit("tuned/kernels.py", "+ 2.0", "+ 1.0");
    let err = run(&place, "tile256 tile64 tile256 42.0\n");
    assert!(!err.contains("stale"), "{err}");
}
