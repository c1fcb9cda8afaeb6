//! What programs ask of the driver, on one that counts and does nothing (`stub_driver/driver.c`): a launch allocates no host
//! memory, tensors come from the driver's pool, attributes arrive, errors have CUDA's names.
//!
//! A process opens the driver once, so that the test runs itself again with the stub on the library path.

#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use tirx_rt::{Device, Error, LaunchAttributes, Tensor, bf16};

tirx_rt::include_kernels!();

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while something runs.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

/// Marks the process that has the stub.
const INSIDE: &str = "TIRX_TEST_STUB_DRIVER";

/// Runs the test of this name again, with the stub as its driver. True in that process.
fn inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("stub_driver/driver.c");
    let library = folder.path().join("libcuda.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
    let compiled = compiler.arg(source).arg("-o").arg(&library).status();
    assert!(compiled.unwrap().success(), "the stub compiles");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]);
    again.env(INSIDE, &library).env("LD_LIBRARY_PATH", folder.path());
    if name.contains("deterministic") {
        again.env("TIRX_DETERMINISTIC", "1");
    }
    let output = again.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    false
}

/// A number that the stub keeps.
struct Kept(libloading::Library);

impl Kept {
    fn open() -> Kept {
        let path = std::env::var_os(INSIDE).unwrap();
        // SAFETY: the stub has no initializers.
        Kept(unsafe { libloading::Library::new(path) }.unwrap())
    }

    fn place<T>(&self, name: &str) -> *mut T {
        // SAFETY: the stub has a variable of this name and type.
        let symbol = unsafe { self.0.get::<*mut T>(name.as_bytes()) };
        *symbol.unwrap()
    }

    fn count(&self, name: &str) -> u64 {
        // SAFETY: as above.
        unsafe { *self.place::<u64>(name) }
    }

    /// The identifiers of the last launch's attributes, with the first word of each value.
    fn attributes(&self) -> Vec<(u32, u32)> {
        // SAFETY: as above; the stub keeps 16 at most.
        unsafe {
            let count = *self.place::<u32>("stub_attributes");
            let ids = *self.place::<[u32; 16]>("stub_attribute_ids");
            let values = *self.place::<[[u32; 4]; 16]>("stub_attribute_values");
            let all = ids.into_iter().zip(values.map(|value| value[0]));
            all.take(count as usize).collect()
        }
    }

    fn without_devices(&self) {
        // SAFETY: as above.
        unsafe { *self.place::<i32>("stub_devices") = 0 };
    }

    fn fail_with(&self, result: i32) {
        // SAFETY: as above.
        unsafe { *self.place::<i32>("stub_fails") = result };
    }
}

/// The kernels' machine code is needed.
fn has_machine_code() -> bool {
    let has = kernels::scale::IMAGE.fatbin.is_some();
    if !has {
        println!("skipped: the kernels were built without nvcc");
    }
    has
}

#[test]
fn a_launch_allocates_nothing() {
    if !has_machine_code() || !inside("a_launch_allocates_nothing") {
        return;
    }
    let kept = Kept::open();
    let stream = Device::cuda(0).unwrap().new_stream().unwrap();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).unwrap();
    let b = Tensor::zeros(&stream, [256]).unwrap();
    let mut c = Tensor::zeros(&stream, [256]).unwrap();
    let mut d = Tensor::zeros(&stream, [256]).unwrap();
    let x = Tensor::<bf16>::zeros(&stream, [256, 128]).unwrap();
    let y = Tensor::<bf16>::zeros(&stream, [256, 128]).unwrap();
    let mut z = Tensor::<bf16>::zeros(&stream, [256, 256]).unwrap();
    let wide = Tensor::<f32>::zeros(&stream, [1024, 32]).unwrap();
    let mut other = Tensor::<f32>::zeros(&stream, [1024, 32]).unwrap();
    // With few arguments, with tensor maps, with clusters.
    type Launch<'a> = (&'static str, Box<dyn FnMut() -> tirx_rt::Result<()> + 'a>);
    let mut launches: [Launch<'_>; 4] = [
        ("scale", Box::new(|| kernels::scale(&stream, &a, &mut c))),
        ("add", Box::new(|| kernels::add::n256(&stream, &a, &b, &mut d))),
        (
            "scale_tma",
            Box::new(|| kernels::scale_tma::m1024(&stream, &wide, &mut other, 2.0)),
        ),
        (
            "gemm_clusters",
            Box::new(|| kernels::gemm_clusters::m256_n256_k128_clusters1(&stream, &x, &y, &mut z)),
        ),
    ];
    for (name, launch) in &mut launches {
        // The first launch loads the image and encodes tensor maps.
        launch().unwrap();
        let before = kept.count("stub_launches");
        let allocated = allocations(|| (0..100).for_each(|_| launch().unwrap()));
        assert_eq!(
            (*name, allocated, kept.count("stub_launches") - before),
            (*name, 0, 100)
        );
    }
}

#[test]
fn attributes_at_the_call_reach_the_driver() {
    const PROGRAMMATIC: u32 = 6;
    const PRIORITY: u32 = 8;
    const SHARED_MEMORY: u32 = 14;
    if !has_machine_code() || !inside("attributes_at_the_call_reach_the_driver") {
        return;
    }
    let kept = Kept::open();
    let stream = Device::cuda(0).unwrap().new_stream().unwrap();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    kernels::scale(&stream, &a, &mut b).unwrap();
    assert_eq!(kept.attributes(), []);
    let attributes = LaunchAttributes::new()
        .programmatic()
        .priority(2)
        .shared_memory(75);
    kernels::scale(&stream.with(attributes).unwrap(), &a, &mut b).unwrap();
    let wanted = [(PROGRAMMATIC, 1), (PRIORITY, -2i32 as u32), (SHARED_MEMORY, 75)];
    assert_eq!(kept.attributes(), wanted);
    // No more than the device has.
    let greatest = stream.with(LaunchAttributes::new().priority(100)).unwrap();
    kernels::scale(&greatest, &a, &mut b).unwrap();
    assert_eq!(kept.attributes(), [(PRIORITY, -5i32 as u32)]);
    kernels::scale(&stream, &a, &mut b).unwrap();
    assert_eq!(kept.attributes(), [], "the stream itself stays as it was");
}

#[test]
fn memory_comes_from_the_pool_and_errors_have_cudas_names() {
    let name = "memory_comes_from_the_pool_and_errors_have_cudas_names";
    if !has_machine_code() || !inside(name) {
        return;
    }
    let kept = Kept::open();
    let device = Device::cuda(0).unwrap();
    let properties = device.properties().unwrap().unwrap();
    assert_eq!(
        (properties.compute_capability, properties.multiprocessors),
        ((9, 0), 132)
    );
    let stream = device.new_stream().unwrap();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [256]).unwrap();
    assert_eq!(
        (
            kept.count("stub_pool_allocations"),
            kept.count("stub_allocations")
        ),
        (2, 0)
    );
    assert_eq!(
        kept.count("stub_synchronizations"),
        0,
        "an allocation waits for nothing"
    );
    device.trim_memory(0).unwrap();
    assert_eq!(kept.count("stub_trims"), 1);

    let named = |error: Error, expected: &str| {
        assert_eq!(error.cuda_name(), Some(expected), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    named(
        Tensor::<u8>::zeros(&stream, [1 << 41]).unwrap_err(),
        "CUDA_ERROR_OUT_OF_MEMORY",
    );
    kept.fail_with(719);
    named(
        kernels::scale(&stream, &a, &mut b).unwrap_err(),
        "CUDA_ERROR_LAUNCH_FAILED",
    );
    kept.fail_with(0);
    assert_eq!(
        kernels::scale(&stream, &a, &mut b).map_err(|error| error.to_string()),
        Ok(())
    );
}

#[test]
fn deterministic_launches_come_one_at_a_time() {
    if !has_machine_code() || !inside("deterministic_launches_come_one_at_a_time") {
        return;
    }
    let kept = Kept::open();
    let stream = Device::cuda(0).unwrap().new_stream().unwrap();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    let early = stream.with(LaunchAttributes::new().programmatic()).unwrap();
    for launches in 1..4 {
        kernels::scale(&early, &a, &mut b).unwrap();
        assert_eq!(
            (kept.attributes(), kept.count("stub_synchronizations")),
            (vec![], launches)
        );
    }
}

#[test]
fn the_log_says_which_image_is_loaded_and_why_there_is_no_gpu() {
    /// Keeps what is logged under the run time's name.
    struct Lines(std::sync::Mutex<Vec<String>>);
    impl log::Log for Lines {
        fn enabled(&self, _: &log::Metadata) -> bool {
            true
        }
        fn log(&self, record: &log::Record) {
            if record.target() == "tirx" {
                let line = format!("{} {}", record.level(), record.args());
                self.0.lock().unwrap().push(line);
            }
        }
        fn flush(&self) {}
    }
    static LINES: Lines = Lines(std::sync::Mutex::new(Vec::new()));
    let name = "the_log_says_which_image_is_loaded_and_why_there_is_no_gpu";
    if !has_machine_code() || !inside(name) {
        return;
    }
    log::set_logger(&LINES).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let kept = Kept::open();
    let stream = Device::cuda(0).unwrap().new_stream().unwrap();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    for _ in 0..2 {
        kernels::scale(&stream, &a, &mut b).unwrap();
    }
    let loaded =
        "DEBUG kernel `scale` is loaded on stub H100 (compute capability 9.0): machine code for sm_90a";
    assert_eq!(*LINES.0.lock().unwrap(), [loaded], "once");
    // A driver without GPUs.
    LINES.0.lock().unwrap().clear();
    kept.without_devices();
    for _ in 0..2 {
        assert!(Device::best().unwrap().is_simulator());
    }
    let why = "WARN kernels run on the simulator: no CUDA device 0: the driver sees 0 GPU(s)";
    assert_eq!(*LINES.0.lock().unwrap(), [why], "once");
}
