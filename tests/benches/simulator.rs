//! The simulator on one thread: lane operations per second of the float32 matmul of 256 x 256 x 256, and the time of a
//! Hopper GEMM of 256 x 256 x 256 (tensor copies, mbarriers, `wgmma`), each with the race check and without. Times are those
//! that the thread has run, where Linux tells, so that other programs hardly change them.

use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tirx_core::ir::IRModule;
use tirx_core::script::ConstValue;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::{Launch, LaunchOptions, Memory, Program, StandIns};
use tirx_tests::asynchronous::Case;
use tirx_tests::machine::{self, Simulator};
use tirx_tests::{Defines, build, only, root};

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
    lower(module, &mut Lowering::new(Target::SM_90A)).expect("the kernel lowers")
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
        peers: &[],
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
            program
                .launch_with(&memory, &launch, &StandIns::new(), &options)
                .expect("the kernel has no fault")
        };
        group.throughput(Throughput::Elements(one.install(run).lane_ops));
        group.bench_function(
            if check_races {
                "matmul, race check on"
            } else {
                "matmul, race check off"
            },
            |b| b.iter_custom(|count| one.install(|| timed(|| (0..count).for_each(|_| drop(run()))))),
        );
    }
    group.finish();
}

/// The time that this thread runs while it does something.
fn timed(work: impl FnOnce()) -> Duration {
    let (before, start) = (ran(), Instant::now());
    work();
    match (before, ran()) {
        (Some(before), Some(now)) => now - before,
        _ => start.elapsed(),
    }
}

/// How long this thread has run.
fn ran() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// A tile of a GEMM by tensor copies and `wgmma`.
fn hopper(c: &mut Criterion) {
    let case = Case::find("gemm_wgmma").expect("a kernel of `kernels/`");
    let text = only(case.text, case.entry).expect("the file has its kernel");
    let sizes = [("M", 256), ("N", 256), ("K", 256), ("CTAS", 1)];
    let prepared = case
        .prepare_with(&text, sizes.into_iter().collect())
        .expect("the kernel builds");
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread");
    let mut group = c.benchmark_group("simulator, one thread, Hopper GEMM of 256 x 256 x 256");
    for check_races in [true, false] {
        let run = || {
            let mut machine = Simulator::with_options(LaunchOptions {
                check_races,
                ..LaunchOptions::default()
            });
            machine::run(&mut machine, &prepared.module, &prepared.arguments).expect("no fault");
        };
        let name = if check_races {
            "race check on"
        } else {
            "race check off"
        };
        group.bench_function(name, |b| {
            b.iter_custom(|count| one.install(|| timed(|| (0..count).for_each(|_| run()))))
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(5));
    targets = simulator, hopper
}
criterion_main!(benches);
