//! Lane operations per second on one core: shared-memory tiled float32 matrix products. Times are the best of several
//! runs, in seconds that the thread has run, so that other programs hardly change them.
//!
//! ```text
//! cargo run --release -p tirx-sim --example throughput [repetitions]
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use tirx_core::ir::IRModule;
use tirx_core::script::{ConstValue, KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};

/// Edge of the matrices.
const N: u32 = 256;

/// One sum a thread.
const SIMPLE: &str = r#"
from tvm.script import tirx as T

@T.prim_func
def simple(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32"), C: T.Buffer((256, 256), "float32")):
    T.device_entry()
    bx, by = T.cta_id([16, 16])
    tx, ty = T.thread_id([16, 16])
    As = T.alloc_shared((16, 16), "float32")
    Bs = T.alloc_shared((16, 16), "float32")
    acc: T.float32 = 0.0
    for k in range(16):
        As[ty, tx] = A[by * 16 + ty, k * 16 + tx]
        Bs[ty, tx] = B[k * 16 + ty, bx * 16 + tx]
        T.cuda.cta_sync()
        for kk in range(16):
            acc += As[ty, kk] * Bs[kk, tx]
        T.cuda.cta_sync()
    C[by * 16 + ty, bx * 16 + tx] = acc
"#;

/// The example kernel: 16 sums a thread.
const TILED: &str = include_str!("../../kernels/matrix.py");

fn lowered(text: &str, entry: &str, constexprs: &[&str]) -> Result<IRModule, Box<dyn std::error::Error>> {
    let file = KernelFile::load(&mut SourceMap::new(), "matmul.py", text, &NoImports)?;
    let values: BTreeMap<String, ConstValue> = constexprs
        .iter()
        .map(|name| (name.to_string(), ConstValue::Int(N as i128)))
        .collect();
    let module = file.build(Some(entry), &values)?;
    Ok(lower(module, &mut Lowering::new(Target::SM_90A))?)
}

/// The CPU time of the thread on Linux; elapsed time elsewhere.
struct Clock {
    ran: Option<f64>,
    start: Instant,
}

impl Clock {
    fn start() -> Clock {
        Clock {
            ran: ran(),
            start: Instant::now(),
        }
    }

    fn seconds(&self) -> f64 {
        match (self.ran, ran()) {
            (Some(before), Some(now)) => now - before,
            _ => self.start.elapsed().as_secs_f64(),
        }
    }
}

/// CPU time of this thread in seconds.
fn ran() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds * 1e-9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repetitions: u32 = std::env::args().nth(1).map_or(Ok(5), |a| a.parse())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let cases = [
        (
            "one sum a thread",
            lowered(SIMPLE, "simple", &[])?,
            16,
            [16, 16, 1],
        ),
        (
            "16 sums a thread",
            lowered(TILED, "matmul", &["M", "N", "K"])?,
            64,
            [256, 1, 1],
        ),
    ];
    for (name, module, tile, block) in cases {
        let kernel = module
            .functions
            .iter()
            .map(|(name, _)| name)
            .find(|n| n.ends_with("_kernel"));
        let kernel = kernel.ok_or("no device function")?;
        let program = Program::compile(&module, kernel)?;
        let memory = Memory::new();
        let bytes = (N * N) as usize * 4;
        let tensors = [memory.alloc(bytes), memory.alloc(bytes), memory.alloc(bytes)];
        for (seed, tensor) in tensors[..2].iter().enumerate() {
            for i in 0..(N * N) as usize {
                let value = ((i * 7 + seed * 3) % 11) as f32 - 5.0;
                tensor.write(i * 4, &value.to_le_bytes());
            }
        }
        let args: Vec<u64> = tensors.iter().map(|t| t.address()).collect();
        let launch = Launch {
            grid: [N / tile, N / tile, 1],
            block,
            cluster: [1, 1, 1],
            shared_bytes: 0,
            args: &args,
            peers: &[],
        };
        for check_races in [true, false] {
            let options = LaunchOptions {
                check_races,
                ..LaunchOptions::default()
            };
            let mut best = f64::MAX;
            let mut lane_ops = 0;
            for _ in 0..repetitions {
                let (stats, seconds) = pool.install(|| {
                    let clock = Clock::start();
                    let stats = program.launch_with(&memory, &launch, &StandIns::new(), &options);
                    (stats, clock.seconds())
                });
                best = best.min(seconds);
                lane_ops = stats?.lane_ops;
            }
            println!(
                "{N}x{N} matmul, {name}, race check {}: {:.1} ms, {:.2e} lane operations per second, \
                 {:.2e} multiply-adds per second",
                if check_races { "on" } else { "off" },
                best * 1e3,
                lane_ops as f64 / best,
                (N as f64).powi(3) / best,
            );
        }
    }
    Ok(())
}
