//! Times the steps of the book's GEMM ladder on the first GPU, checks each against the first step, and prints the table of
//! `docs/book/src/ladder/times.txt`:
//!
//! `cargo bench -p tirx-tests --features ladder --bench ladder > docs/book/src/ladder/times.txt`
//!
//! `python3 vendor.py gemm` of the GPU kit measures the vendor's library at the same size.

use tirx_rt::{Device, Error, Stream, Tensor, bf16};

tirx_rt::include_kernels!();

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type Matrix = Tensor<bf16>;

/// M, N and K.
const SIZE: usize = 4096;
/// A measurement repeats a launch for about this time.
const MICROSECONDS: f64 = 20_000.0;
const SAMPLES: usize = 15;

/// A step of the ladder.
struct Step {
    /// Its file in `docs/book/src/ladder`, without the ending.
    name: &'static str,
    launch: fn(&Stream, &Matrix, &Matrix, &mut Matrix) -> std::result::Result<(), Error>,
}

const STEPS: [Step; 10] = [
    Step {
        name: "01-naive",
        launch: |s, a, b, c| kernels::naive::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "02-shared",
        launch: |s, a, b, c| kernels::shared::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "03-registers",
        launch: |s, a, b, c| kernels::registers::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "04-tensor-cores",
        launch: |s, a, b, c| kernels::tensor_cores::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "05-ring",
        launch: |s, a, b, c| kernels::ring::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "06-wgmma",
        launch: |s, a, b, c| kernels::wgmma::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "07-pipeline",
        launch: |s, a, b, c| kernels::pipeline::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "08-wide",
        launch: |s, a, b, c| kernels::wide::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "09-persistent",
        launch: |s, a, b, c| kernels::persistent::m4096_n4096_k4096(s, a, b, c),
    },
    Step {
        name: "10-stores",
        launch: |s, a, b, c| kernels::stores::m4096_n4096_k4096(s, a, b, c),
    },
];

/// Random normal numbers: a block of them, repeated.
fn normal(stream: &Stream, mut state: u64) -> Result<Matrix> {
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    // A prime, so that rows differ.
    let block: Vec<bf16> = (0..1_000_003)
        .map(|_| bf16::from_f64((-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()))
        .collect();
    let values: Vec<bf16> = (0..SIZE * SIZE).map(|i| block[i % block.len()]).collect();
    Ok(Tensor::from_slice(stream, &values, [SIZE, SIZE])?)
}

/// Microseconds of a launch, from `launches` launches in a row.
fn time(stream: &Stream, launches: usize, mut launch: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = stream.record()?;
    for _ in 0..launches {
        launch()?;
    }
    let end = stream.record()?;
    stream.synchronize()?;
    Ok(end.elapsed_since(&start)?.as_secs_f64() * 1e6 / launches as f64)
}

fn main() -> Result<()> {
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let (a, b) = (normal(&stream, 1)?, normal(&stream, 2)?);
    let mut c = Tensor::zeros(&stream, [SIZE, SIZE])?;
    let mut first: Vec<f32> = Vec::new();
    let mut before = None;
    println!("| step | time | TFLOP/s | faster than the step before |\n|---|---|---|---|");
    for Step { name, launch } in STEPS {
        launch(&stream, &a, &b, &mut c)?;
        let values: Vec<f32> = c.to_vec()?.into_iter().map(|value| value.to_f32()).collect();
        if first.is_empty() {
            first = values;
        } else {
            // The order of the sums differs, and so may the rounding to 16 bits.
            let wrong =
                (0..values.len()).find(|&i| (values[i] - first[i]).abs() > 0.02 * first[i].abs() + 0.5);
            if let Some(i) = wrong {
                return Err(format!("{name}: element {i} is {}, not {}", values[i], first[i]).into());
            }
        }
        let once = time(&stream, 1, || Ok(launch(&stream, &a, &b, &mut c)?))?;
        let launches = (MICROSECONDS / once).clamp(1.0, 100.0) as usize;
        let mut samples = (0..SAMPLES)
            .map(|_| time(&stream, launches, || Ok(launch(&stream, &a, &b, &mut c)?)))
            .collect::<Result<Vec<_>>>()?;
        samples.sort_by(f64::total_cmp);
        let microseconds = samples[SAMPLES / 2];
        let rate = 2.0 * (SIZE as f64).powi(3) / microseconds / 1e6;
        let factor = before.map_or("–".to_string(), |before: f64| {
            format!("{:.2}×", before / microseconds)
        });
        println!("| [{name}](ladder/{name}.py) | {microseconds:.0} µs | {rate:.1} | {factor} |");
        before = Some(microseconds);
    }
    Ok(())
}
