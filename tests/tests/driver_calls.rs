//! What programs ask of the driver, on one that counts and does nothing (`stub_driver/driver.c`): a launch allocates no host
//! memory, tensors come from the driver's pool, attributes arrive, errors have CUDA's names.
//!
//! A process opens the driver once, so that the test runs itself again with the stub on the library path.

#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use tirx_rt::{Device, Error, Graph, LaunchAttributes, Pinned, Stream, Tensor, bf16};

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

    /// A handle of a stream.
    fn stream(&self, name: &str) -> usize {
        // SAFETY: as above.
        unsafe { *self.place::<usize>(name) }
    }

    fn set_devices(&self, count: i32) {
        // SAFETY: as above.
        unsafe { *self.place::<i32>("stub_devices") = count };
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

/// The stub's handle of a stream.
fn handle(stream: &Stream) -> usize {
    stream.as_cudarc().unwrap().cu_stream() as usize
}

/// A graph of a launch, a copy between tensors, one from pinned memory and one to it; all that it uses is gone but for the
/// pinned memory.
fn recorded(stream: &Stream, from: &Pinned<f32>, to: &mut Pinned<f32>) -> Graph {
    let mut a = Tensor::<f32>::zeros(stream, [256]).unwrap();
    let mut b = Tensor::<f32>::full(stream, 1.0, [256]).unwrap();
    let mut c = Tensor::<f32>::full(stream, 2.0, [256]).unwrap();
    let work = move |s: &Stream| {
        a.copy_from_pinned(s, from)?;
        kernels::scale(s, &a, &mut b)?;
        c.copy_from(s, &a)?;
        b.fill_zero(s)?;
        c.copy_to_pinned(s, to)
    };
    stream.capture(work).unwrap()
}

#[test]
fn a_graph_keeps_what_it_uses_and_is_a_use_like_others() {
    let name = "a_graph_keeps_what_it_uses_and_is_a_use_like_others";
    if !has_machine_code() || !inside(name) {
        return;
    }
    let kept = Kept::open();
    kept.set_devices(2);
    let device = Device::cuda(0).unwrap();
    let (first, second) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let mut from = Pinned::zeroed(&device, 256).unwrap();
    let mut to = Pinned::zeroed(&device, 256).unwrap();
    let graph = recorded(&first, &from, &mut to);
    assert_eq!((graph.len().unwrap(), kept.count("stub_frees")), (5, 0));
    for step in 1..4 {
        from.as_mut_slice().unwrap().fill(step as f32);
        graph.launch(&second).unwrap();
        assert_eq!(to.as_slice().unwrap(), [step as f32; 256]);
    }
    assert_eq!(kept.stream("stub_graph_stream"), handle(&second));
    assert_eq!(
        (kept.count("stub_launches"), kept.count("stub_graph_kernels")),
        (0, 3)
    );
    // The slices that the program holds and the copies of the graph exclude each other.
    let busy = |outcome: Result<(), Error>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Capture { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("pinned memory that the program looks at"),
            "{error}"
        );
    };
    let slice = to.as_slice().unwrap();
    busy(graph.launch(&first));
    drop(slice);
    let slice = from.as_slice().unwrap();
    graph.launch(&first).unwrap();
    drop(slice);
    let slice = from.as_mut_slice().unwrap();
    busy(graph.launch(&first));
    drop(slice);
    // The memory is freed with the graph, behind its last launch.
    drop((from, to));
    graph.launch(&second).unwrap();
    assert_eq!(
        (kept.count("stub_frees"), kept.count("stub_stray_copies")),
        (0, 0)
    );
    drop(graph);
    assert_eq!(
        (kept.count("stub_frees"), kept.stream("stub_free_stream")),
        (3, handle(&second))
    );

    // Reads and other streams follow the launch; the tensors stay the program's.
    let mut t = Tensor::<f32>::full(&first, 3.0, [256]).unwrap();
    let graph = first.capture(|s| t.fill_zero(s)).unwrap();
    graph.launch(&second).unwrap();
    assert_eq!(
        (t.to_vec().unwrap(), kept.stream("stub_read_stream")),
        (vec![0.0; 256], handle(&second))
    );
    t.copy_from_slice(&first, &[5.0; 256]).unwrap();
    graph.launch(&first).unwrap();
    assert_eq!(t.to_vec().unwrap(), [0.0; 256]);

    // Another device's stream.
    let other = Device::cuda(1).unwrap().default_stream();
    let launches = kept.count("stub_graph_launches");
    let error = graph.launch(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        "the graph was captured on cuda(0), the stream is of cuda(1)"
    );
    assert!(graph.launch(&Device::simulator().default_stream()).is_err());
    assert_eq!(kept.count("stub_graph_launches"), launches);
    let error = other
        .record()
        .unwrap()
        .elapsed_since(&first.record().unwrap())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no time passes between events of two devices: event of cuda(0) and event of cuda(1)"
    );
    assert!(t.fill_zero(&other).is_err());
}

#[test]
fn a_capture_refuses_what_no_graph_has() {
    if !has_machine_code() || !inside("a_capture_refuses_what_no_graph_has") {
        return;
    }
    let kept = Kept::open();
    kept.set_devices(2);
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let far = Device::cuda(1).unwrap().new_stream().unwrap();
    let a = Tensor::<f32>::full(&stream, 1.0, [256]).unwrap();
    let b = Tensor::<f32>::full(&far, 1.0, [256]).unwrap();
    let slice = stream.as_cudarc().unwrap().alloc_zeros::<f32>(256).unwrap();
    let borrowed = Tensor::borrow_cudarc(&stream, &slice, [256]).unwrap();
    let c = || Tensor::<f32>::zeros(&stream, [256]).unwrap();
    type Work<'a> = Box<dyn FnOnce(&Stream) -> Result<(), Error> + 'a>;
    let (mut d, mut e, mut f, mut g) = (c(), c(), c(), c());
    let event = stream.record().unwrap();
    let refused: [(&str, Work<'_>); 15] = [
        ("synchronize", Box::new(|s| s.synchronize())),
        ("device", Box::new(|s| s.device().synchronize())),
        ("is_done", Box::new(|s| s.is_done().map(drop))),
        ("completion", Box::new(|s| s.completion().map(drop))),
        ("record", Box::new(|s| s.record().map(drop))),
        ("wait", Box::new(|s| s.wait(&event))),
        ("nested", Box::new(|s| s.capture(|_| Ok(())).map(drop))),
        ("alloc", Box::new(|s| Tensor::<f32>::zeros(s, [4]).map(drop))),
        ("to_vec", Box::new(|_| a.to_vec().map(drop))),
        ("slice", Box::new(|s| d.copy_from_slice(s, &[0.0; 256]))),
        ("devices", Box::new(|s| e.copy_from(s, &b))),
        ("other stream", Box::new(|_| kernels::scale(&other, &a, &mut f))),
        ("borrowed", Box::new(|s| kernels::scale(s, &borrowed, &mut g))),
        (
            "slices",
            Box::new(|s| Tensor::borrow_cudarc(s, &slice, [256]).map(drop)),
        ),
        (
            "pinned",
            Box::new(|s| Pinned::<f32>::zeroed(&s.device(), 4).map(drop)),
        ),
    ];
    for (name, work) in refused {
        let error = stream.capture(work).unwrap_err();
        assert!(matches!(error, Error::Capture { .. }), "{name}: {error}");
    }
    let panics = || stream.capture(|_| panic!("in a capture")).map(drop);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    // A stream that leaves its closure, also by way of cudarc, and a stream that other threads use.
    let mut left = None;
    let (mut h, mut i) = (c(), c());
    let work = |s: &Stream| {
        left = Some(s.clone());
        let again = Stream::from_cudarc(s.as_cudarc().unwrap().clone());
        let used = std::thread::scope(|scope| {
            let threads = [(s.clone(), &mut h), (again, &mut i)].map(|(stream, to)| {
                let a = &a;
                scope.spawn(move || kernels::scale(&stream, a, to))
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(
            used.iter()
                .all(|outcome| matches!(outcome, Err(Error::Capture { .. }))),
            "{used:?}"
        );
        Ok(())
    };
    stream.capture(work).unwrap();
    let error = kernels::scale(&left.unwrap(), &a, &mut c())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the stream of a capture is used outside of its closure, or by another thread"
    );
    // Nothing is left behind.
    kernels::scale(&stream, &a, &mut h).unwrap();
    assert_eq!(
        stream
            .capture(|s| kernels::scale(s, &a, &mut h))
            .unwrap()
            .len()
            .unwrap(),
        1
    );
    assert_eq!(
        (kept.count("stub_launches"), kept.count("stub_graph_kernels")),
        (1, 0)
    );
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
    kept.set_devices(0);
    for _ in 0..2 {
        assert!(Device::best().unwrap().is_simulator());
    }
    let why = "WARN kernels run on the simulator: no CUDA device 0: the driver sees 0 GPU(s)";
    assert_eq!(*LINES.0.lock().unwrap(), [why], "once");
}
