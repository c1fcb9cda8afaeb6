//! Kernels on a GPU leave in memory what the simulator leaves, bit for bit, and what their filetests say.
//!
//! Ignored without being asked for: they need a GPU and an nvcc (`TIRX_NVCC=path`). `cargo xtask gpu-kit` carries them to
//! one. `TIRX_RANDOM_KERNELS`, `TIRX_RANDOM_SEED` and `TIRX_FILTER` are as for the other tests, and `TIRX_ROOT` is the folder
//! that holds `tests/kernels` where the sources are not there. `TIRX_SIZES=small` launches each asynchronous kernel once, at
//! the size of the simulator, for compute-sanitizer; `TIRX_TRACE` is a file for the trace of the profiled kernel, and
//! `TIRX_BYTES` is how large a tensor the elementwise kernel is measured on (4 GiB). nvcc is told not to contract products and
//! sums into fused operations, for the simulator does not.

mod instructions;
mod profile;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tirx_core::codegen::cuda;
use tirx_core::ir::{DType, IRModule};
use tirx_core::script::ConstValue;
use tirx_rt::interpreted::{Interpreted, device_function};
use tirx_rt::{Device, Kernel, KernelImage, Stream, Tensor};
use tirx_sim::host;
use tirx_tests::asynchronous::{CASES, Scale};
use tirx_tests::differential::{ARCH, Checked, check, compare, run};
use tirx_tests::files::filetests;
use tirx_tests::generator::{self, generate_exact};
use tirx_tests::machine::{self, Argument, Machine};
use tirx_tests::nvcc::{self, Nvcc, Source};
use tirx_tests::unit::{BATCH, unit};
use tirx_tests::{Case, Defines, Test, build, number, profiled, stages, tiles};

const FLAGS: &[&str] = &["-O3", "-fmad=false"];

/// The first GPU, with the machine code of the kernels that are launched next.
struct Gpu {
    stream: Stream,
    cubin: &'static [u8],
    /// The prefix of `_kernel` in the symbols of the machine code, where it differs from the IR's.
    stem: Option<String>,
    tensors: Vec<Tensor<u8>>,
    /// How often each launch is repeated for a measurement, and the time of one in seconds.
    repeats: u32,
    seconds: f64,
}

/// Never freed, and neither are loaded images: a test ends soon.
fn leak<T: ?Sized>(value: Box<T>) -> &'static T {
    Box::leak(value)
}

impl Gpu {
    fn new(stream: &Stream, cubin: &'static [u8]) -> Gpu {
        Gpu {
            stream: stream.clone(),
            cubin,
            stem: None,
            tensors: Vec::new(),
            repeats: 0,
            seconds: 0.0,
        }
    }
}

impl Machine for Gpu {
    fn alloc(&mut self, bytes: &[u8]) -> Result<u64, String> {
        // At least one byte, so that every tensor has an address of its own.
        let bytes = if bytes.is_empty() { &[0][..] } else { bytes };
        let tensor = Tensor::from_slice(&self.stream, bytes, [bytes.len()]).map_err(|e| e.to_string())?;
        let address = tensor.address();
        self.tensors.push(tensor);
        Ok(address)
    }

    fn read(&mut self, address: u64, len: usize) -> Result<Vec<u8>, String> {
        let tensor = self.tensors.iter().find(|t| t.address() == address);
        let tensor = tensor.ok_or(format!("no memory at {address:#x}"))?;
        let mut bytes = tensor.to_vec().map_err(|e| e.to_string())?;
        bytes.truncate(len);
        Ok(bytes)
    }

    fn launch(&mut self, module: &IRModule, launch: &host::Launch) -> Result<(), String> {
        let function = module
            .functions
            .iter()
            .find(|(name, _)| **name == launch.symbol)
            .ok_or("no such function")?;
        let symbol = match &self.stem {
            Some(stem) => format!("{stem}_kernel"),
            None => launch.symbol.clone(),
        };
        let function = device_function(&symbol, &function.1);
        let image = KernelImage {
            name: function.symbol,
            functions: leak(Box::new([function])),
            fatbin: Some(self.cubin),
            ir: &[],
            targets: &[ARCH],
            ptx: None,
            hash: "",
            signature: "",
        };
        let kernel = leak(Box::new(Kernel::new(leak(Box::new(image)))));
        let interpreted = Interpreted::from_launch(&self.stream, launch).map_err(|e| e.to_string())?;
        let launch = || {
            // SAFETY: it is the function that the host function launches, and the tensors stay.
            unsafe { interpreted.launch(kernel, 0, &self.stream) }.map_err(|e| e.to_string())
        };
        launch()?;
        if self.repeats > 0 {
            // The GPU reaches its clock after some launches.
            (0..self.repeats).try_for_each(|_| launch())?;
            self.stream.synchronize().map_err(|e| e.to_string())?;
            let start = Instant::now();
            (0..self.repeats).try_for_each(|_| launch())?;
            self.stream.synchronize().map_err(|e| e.to_string())?;
            self.seconds = start.elapsed().as_secs_f64() / f64::from(self.repeats);
        }
        self.stream.synchronize().map_err(|e| e.to_string())
    }
}

fn stream() -> Stream {
    let device = Device::cuda(0).expect("this test needs a GPU");
    device.new_stream().expect("a stream")
}

fn compiler() -> Nvcc {
    nvcc::search().expect("this test needs TIRX_NVCC")
}

/// The machine code of a text.
fn cubin(nvcc: &Nvcc, text: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let source = Source {
        arch: ARCH,
        flags,
        text,
    };
    Ok(nvcc.compile(&source)?.cubin)
}

/// The architectures that a file names.
fn named(case: &Case) -> Vec<&str> {
    let named = case.tests.iter().filter_map(|test| match test {
        Test::Compile(arch) | Test::Cuda(arch) => Some(arch.as_str()),
        _ => None,
    });
    named.collect()
}

/// Runs work on all processors; gives the results in order.
fn parallel<T: Sync, R: Send>(work: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            let run = || {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    work.get(at).map(|item| (at, item))
                } {
                    let result = f(item);
                    done.lock().expect("no thread panics").push((at, result));
                }
            };
            // As much stack as a main thread has.
            std::thread::Builder::new()
                .stack_size(8 << 20)
                .spawn_scoped(scope, run)
                .expect("a thread");
        }
    });
    let mut done = done.into_inner().expect("no thread panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn random_kernels_leave_what_the_simulator_leaves() {
    let (stream, nvcc) = (stream(), compiler());
    let (first, count) = (number("TIRX_RANDOM_SEED", 1), number("TIRX_RANDOM_KERNELS", 200));
    let seeds: Vec<u64> = (first..first + count).collect();
    let mut failures = Vec::new();
    let mut checked = Vec::new();
    let simulated = parallel(&seeds, |seed| {
        let kernel = generate_exact(*seed);
        let simulated = check(&kernel);
        (kernel, simulated)
    });
    for (kernel, simulated) in simulated {
        match simulated {
            Ok(simulated) => checked.push((kernel, simulated)),
            Err(problem) => {
                println!("==== seed {}: {problem}\n{}", kernel.seed, kernel.text());
                failures.push(format!("seed {}: {problem}", kernel.seed));
            }
        }
    }
    let batches: Vec<&[(generator::Kernel, Checked)]> = checked.chunks(BATCH).collect();
    let cubins = parallel(&batches, |batch| {
        let texts: Vec<(u64, &str)> = batch.iter().map(|(k, c)| (k.seed, c.cuda.as_str())).collect();
        cubin(&nvcc, &unit(&texts), FLAGS)
    });
    for (batch, cubin) in batches.iter().zip(cubins) {
        let cubin = leak(cubin.unwrap_or_else(|e| panic!("{e}")).into_boxed_slice());
        for (kernel, checked) in *batch {
            let mut gpu = Gpu::new(&stream, cubin);
            gpu.stem = Some(format!("k_{}", kernel.seed));
            let compared = run(&mut gpu, &checked.lowered, kernel).and_then(|contents| {
                compare(kernel, ["simulated", "on the GPU"], &checked.contents, &contents)
            });
            if let Err(message) = compared {
                println!("==== seed {}: {message}\n{}", kernel.seed, kernel.text());
                failures.push(format!("seed {}: {message}", kernel.seed));
            }
        }
    }
    println!(
        "{count} random kernels from seed {first}: {} fail",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Programs of tile primitives, those for tensor copies and `wgmma` too: `TIRX_RANDOM_TILES` of them.
#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn random_tile_programs_leave_what_they_mean() {
    let (stream, nvcc) = (stream(), compiler());
    let (first, count) = (number("TIRX_RANDOM_SEED", 1), number("TIRX_RANDOM_TILES", 500));
    let seeds: Vec<u64> = (first..first + count).collect();
    // What a variant declines is a matter of the test on the simulator.
    let lowered: Vec<(u64, tiles::TileProgram, IRModule, String)> = parallel(&seeds, |seed| {
        let program = tiles::generate(*seed);
        if program.arch.is_some_and(|arch| arch != ARCH) {
            return None;
        }
        let text = program.text.replace("def program(", "def k(");
        let (_, module) = build("tiles.py", &text, &["k"], &Defines::new()).ok()?.pop()?;
        let lowered = stages(&module, ARCH, &mut |_, _| Ok(())).ok()?;
        let source = cuda::emit(&lowered).expect("what is lowered has a text");
        Some((*seed, program, lowered, source.text))
    })
    .into_iter()
    .flatten()
    .collect();
    let batches: Vec<_> = lowered.chunks(BATCH).collect();
    let cubins = parallel(&batches, |batch| {
        let texts: Vec<(u64, &str)> = batch
            .iter()
            .map(|(seed, _, _, text)| (*seed, text.as_str()))
            .collect();
        cubin(&nvcc, &unit(&texts), FLAGS)
    });
    let mut failures = Vec::new();
    for (batch, cubin) in batches.iter().zip(cubins) {
        let cubin = leak(cubin.unwrap_or_else(|e| panic!("{e}")).into_boxed_slice());
        for (seed, program, lowered, _) in *batch {
            let mut gpu = Gpu::new(&stream, cubin);
            gpu.stem = Some(format!("k_{seed}"));
            if let Err(message) = program.check(&mut gpu, lowered) {
                println!("==== seed {seed}: {message}\n{}", program.text);
                failures.push(format!("seed {seed}: {message}"));
            }
        }
    }
    println!(
        "{} of {count} random programs of tiles from seed {first} ran: {} fail",
        lowered.len(),
        failures.len()
    );
    assert!(lowered.len() as u64 * 2 > count, "too few programs ran");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn filetests_leave_what_they_say() {
    let (stream, nvcc) = (stream(), compiler());
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut work = Vec::new();
    for path in filetests().unwrap() {
        let case = Case::read(&path).unwrap();
        let named = named(&case);
        // Files of errors have no runs.
        if !case.errors.is_empty()
            || !case.name().contains(&only)
            || !(named.is_empty() || named.contains(&ARCH))
        {
            continue;
        }
        // The kernels of a file that names no architecture may need another one, or headers that are missing here.
        let must_compile = !named.is_empty();
        if case.runs().unwrap().is_empty() {
            continue;
        }
        let modules = case.build().unwrap();
        let bound = |(entry, module): &(String, IRModule)| {
            let runs = case.runs_of(entry, module).unwrap().into_iter();
            runs.map(|run| (module.clone(), run)).collect::<Vec<_>>()
        };
        for (module, run) in modules.iter().flat_map(bound) {
            // A GPU does not report the faults that the simulator finds, and here is one GPU.
            let for_this = run.archs.is_empty() || run.archs.iter().any(|arch| arch == ARCH);
            if for_this && !run.faults() && run.ranks().is_none() {
                let name = format!("{}.{}", case.name(), run.kernel);
                work.push((name, module.clone(), run, must_compile));
            }
        }
    }
    work.sort_by(|a, b| a.0.cmp(&b.0));
    let compiled = parallel(&work, |(_, module, ..)| -> Result<_, String> {
        let lowered = stages(module, ARCH, &mut |_, _| Ok(()))?;
        let source = cuda::emit(&lowered).map_err(|e| e.to_string())?;
        let cubin = cubin(&nvcc, &source.text, FLAGS);
        Ok((lowered, cubin.map_err(|e| e.to_string())?))
    });
    let mut failures = Vec::new();
    for ((name, _, run, must_compile), compiled) in work.iter().zip(compiled) {
        let (lowered, cubin) = match compiled {
            Ok(compiled) => compiled,
            Err(message) => {
                let first = message.lines().next().unwrap_or_default();
                println!("{name}: left out: {first}");
                if *must_compile {
                    failures.push(format!("{name}: {message}"));
                }
                continue;
            }
        };
        let mut gpu = Gpu::new(&stream, leak(cubin.into_boxed_slice()));
        if let Err(message) = run.check(&mut gpu, &lowered) {
            println!("==== {name}: {message}");
            failures.push(format!("{name}: {message}"));
            if let Err(error) = stream.synchronize() {
                // Every later launch would fail with the same error.
                failures.push(format!("the kernels behind {name} were not run: {error}"));
                break;
            }
        }
    }
    println!(
        "{} runs of filetests' kernels: {} fail",
        work.len(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Copies, tensor cores and clusters: right, and how fast.
#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn asynchronous_kernels_leave_what_plain_rust_leaves() {
    let (stream, nvcc) = (stream(), compiler());
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let small = std::env::var("TIRX_SIZES").is_ok_and(|sizes| sizes == "small");
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|c| c.arch == ARCH && c.entry.contains(&only)) {
        let compiled = |scale| {
            let text = tirx_tests::only(case.text, case.entry).ok_or("no such kernel")?;
            let prepared = case.prepare(&text, scale)?;
            let source = cuda::emit(&prepared.module).map_err(|e| e.to_string())?;
            let cubin = cubin(&nvcc, &source.text, &["-O3"]);
            Ok((
                prepared,
                leak(cubin.map_err(|e| e.to_string())?.into_boxed_slice()),
            ))
        };
        let checked = compiled(if small { Scale::Small } else { Scale::Medium }).and_then(
            |(prepared, cubin): (_, &'static [u8])| {
                let mut gpu = Gpu::new(&stream, cubin);
                let contents = machine::run(&mut gpu, &prepared.module, &prepared.arguments)?;
                case.compare(&prepared, &contents)
            },
        );
        if let Err(message) = checked {
            println!("==== {}: {message}", case.entry);
            failures.push(format!("{}: {message}", case.entry));
            continue;
        }
        if small {
            println!("{}: right", case.entry);
            continue;
        }
        let measured = compiled(Scale::Large).and_then(|(prepared, cubin): (_, &'static [u8])| {
            let mut gpu = Gpu::new(&stream, cubin);
            gpu.repeats = 20;
            machine::run(&mut gpu, &prepared.module, &prepared.arguments)?;
            Ok(gpu.seconds)
        });
        match measured {
            Ok(seconds) => println!(
                "{}: right; {:.3} ms, {:.1} TFLOP/s",
                case.entry,
                seconds * 1e3,
                case.operations_at(Scale::Large) / seconds / 1e12
            ),
            Err(message) => failures.push(format!("{} (large): {message}", case.entry)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Bytes of a row of `tile_through_shared.py`.
const ROW: u64 = 1024 * 4;

/// Elementwise operations through shared memory move at least 97 % of the bytes per second of a copy on the device.
#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn elementwise_through_shared_memory_is_as_fast_as_a_copy() {
    let (stream, nvcc) = (stream(), compiler());
    let rows = number("TIRX_BYTES", 4 << 30) / ROW;
    let bytes = (rows * ROW) as usize;
    let text = include_str!("../kernels/tiles/tile_through_shared.py");
    let defines = [("ROWS".to_string(), ConstValue::Int(rows.into()))].into();
    let mut built = build("tile_through_shared.py", text, &["roots"], &defines).unwrap();
    let (_, module) = built.pop().expect("the kernel is there");
    let lowered = stages(&module, ARCH, &mut |_, _| Ok(())).unwrap();
    let source = cuda::emit(&lowered).unwrap();
    let cubin = cubin(&nvcc, &source.text, &["-O3"]).unwrap();

    let period: Vec<u8> = (0..8191).flat_map(|i| (i as f32 * 0.25).to_le_bytes()).collect();
    let mut values = period.repeat(bytes / period.len() + 1);
    values.truncate(bytes);
    let tensor = |bytes| Argument::Tensor {
        dtype: DType::FLOAT32,
        shape: vec![rows as i64, 1024],
        bytes,
    };
    let arguments = [("A", values), ("B", vec![0; bytes])].map(|(name, v)| (name.to_string(), tensor(v)));
    let mut gpu = Gpu::new(&stream, leak(cubin.into_boxed_slice()));
    gpu.repeats = 20;
    let before = seconds_of_a_copy(&stream, bytes, gpu.repeats);
    let contents = machine::run(&mut gpu, &lowered, &arguments).unwrap();
    let after = seconds_of_a_copy(&stream, bytes, gpu.repeats);
    let (elements, _) = contents[1].as_chunks::<4>();
    for (i, element) in elements.iter().enumerate() {
        let expected = ((i % 8191) as f32 * 0.25).sqrt();
        assert_eq!(f32::from_le_bytes(*element), expected, "element {i}");
    }
    let rate = |seconds: f64| 2.0 * bytes as f64 / seconds / 1e9;
    let share = before.min(after) / gpu.seconds;
    println!(
        "elementwise through shared memory, {:.2} GB: right; {:.0} GB/s, a copy on the device {:.0} before and {:.0} after: \
         {:.1} %",
        bytes as f64 / 1e9,
        rate(gpu.seconds),
        rate(before),
        rate(after),
        share * 100.0
    );
    assert!(share >= 0.98);
}

/// The time of the driver for a copy of this many bytes on the device.
fn seconds_of_a_copy(stream: &Stream, bytes: usize, repeats: u32) -> f64 {
    let cuda = stream.as_cudarc().expect("a CUDA stream");
    let from = cuda.alloc_zeros::<u8>(bytes).expect("memory");
    let mut to = cuda.alloc_zeros::<u8>(bytes).expect("memory");
    let mut copies = || {
        for _ in 0..repeats {
            cuda.memcpy_dtod(&from, &mut to).expect("a copy");
        }
        stream.synchronize().expect("the copies end");
    };
    copies();
    let start = Instant::now();
    copies();
    start.elapsed().as_secs_f64() / f64::from(repeats)
}

/// Records of a profiler, with the GPU's clock.
#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn a_profiled_kernel_is_a_trace_and_a_table() {
    let (stream, nvcc) = (stream(), compiler());
    let prepared = profiled::prepare(ARCH).unwrap();
    let source = cuda::emit(&prepared.module).unwrap();
    let cubin = cubin(&nvcc, &source.text, &["-O3"]).unwrap();
    let mut gpu = Gpu::new(&stream, leak(cubin.into_boxed_slice()));
    let contents = machine::run(&mut gpu, &prepared.module, &prepared.arguments).unwrap();
    let profile = profile::decoded(&profiled::records(&contents).unwrap());
    println!("{}", profile.summary());
    if let Some(path) = std::env::var_os("TIRX_TRACE") {
        std::fs::write(path, profile.to_perfetto()).unwrap();
    }
}
