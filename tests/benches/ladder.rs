//! Times the steps of the book's GEMM ladder on the first GPU, checks each against the first step, and prints the table of
//! `docs/book/src/ladder/times.txt`:
//!
//! `cargo bench -p tirx-tests --features ladder --bench ladder > docs/book/src/ladder/times.txt`
//!
//! `python3 vendor.py gemm` of the GPU kit measures the vendor's library at the same size.

use tirx_rt::{Device, Error, Stream, Tensor, bf16};

#[path = "../../tirx-kernels/benches/numbers/mod.rs"]
mod numbers;

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

/// Files with the modules of their kernels.
macro_rules! steps {
    ($($name:literal: $kernel:ident),* $(,)?) => {
        [$(Step {
            name: $name,
            launch: |stream, a, b, c| kernels::$kernel::m4096_n4096_k4096(stream, a, b, c),
        }),*]
    };
}

const STEPS: [Step; 10] = steps! {
    "01-naive": naive,
    "02-shared": shared,
    "03-registers": registers,
    "04-tensor-cores": tensor_cores,
    "05-ring": ring,
    "06-wgmma": wgmma,
    "07-pipeline": pipeline,
    "08-wide": wide,
    "09-persistent": persistent,
    "10-stores": stores,
};

fn normal(stream: &Stream, seed: u64) -> Result<Matrix> {
    let block: Vec<bf16> = numbers::normal(seed).into_iter().map(bf16::from_f64).collect();
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
