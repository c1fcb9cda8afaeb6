//! Lane operations per second of the simulator on one thread: the matmul of 256 x 256 x 256.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tirx_core::ir::IRModule;
use tirx_core::script::ConstValue;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};
use tirx_tests::{Defines, build, root};

/// Edge of the matrices.
const N: usize = 256;

fn lowered() -> IRModule {
    let text = std::fs::read_to_string(root().join("kernels/matrix.py")).expect("an example kernel");
    let defines: Defines = ["M", "N", "K"]
        .map(|name| (name.to_string(), ConstValue::Int(N as i128)))
        .into();
    let (_, module) = build("matrix.py", &text, &["matmul"], &defines)
        .expect("the kernel builds")
        .remove(0);
    lower(module, &mut Lowering::new(Target::cuda("sm_90a"))).expect("the kernel lowers")
}

fn simulator(c: &mut Criterion) {
    let module = lowered();
    let mut names = module.functions.iter().map(|(name, _)| name);
    let kernel = names
        .find(|name| name.ends_with("_kernel"))
        .expect("a device function");
    let program = Program::compile(&module, kernel).expect("the kernel is simulated");
    let memory = Memory::new();
    let tensors = [(); 3].map(|()| memory.alloc(N * N * 4));
    for (seed, tensor) in tensors[..2].iter().enumerate() {
        for i in 0..N * N {
            let value = ((i * 7 + seed * 3) % 11) as f32 - 5.0;
            tensor.write(i * 4, &value.to_le_bytes());
        }
    }
    let args: Vec<u64> = tensors.iter().map(|tensor| tensor.address()).collect();
    let blocks = N as u32 / 64;
    let launch = Launch {
        grid: [blocks, blocks, 1],
        block: [256, 1, 1],
        cluster: [1, 1, 1],
        shared_bytes: 0,
        args: &args,
    };
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread");
    let mut group = c.benchmark_group("simulator, one thread, lane operations");
    for check_races in [true, false] {
        let options = LaunchOptions {
            check_races,
            ..LaunchOptions::default()
        };
        let run = || {
            one.install(|| program.launch_with(&memory, &launch, &StandIns::new(), &options))
                .expect("the kernel has no fault")
        };
        group.throughput(Throughput::Elements(run().lane_ops));
        group.bench_function(
            if check_races {
                "matmul, race check on"
            } else {
                "matmul, race check off"
            },
            |b| {
                b.iter_custom(|count| {
                    let start = Instant::now();
                    for _ in 0..count {
                        run();
                    }
                    start.elapsed()
                })
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(5));
    targets = simulator
}
criterion_main!(benches);
