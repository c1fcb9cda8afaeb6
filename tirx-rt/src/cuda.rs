//! The CUDA side: contexts, memory, modules and launches through the driver API.
//!
//! This is the one module that calls the driver. `unsafe` here has one reason: the driver's C functions.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

mod attributes;
mod callback;
mod graph;
pub(crate) mod memory;
mod pinned;
mod refusal;
pub(crate) mod symmetric;
pub(crate) mod tensor_map;

use self::attributes::Attributes;
pub(crate) use self::callback::when_done;
pub(crate) use self::graph::{CudaGraph, while_no_thread_captures};
pub(crate) use self::memory::CudaMemory;
#[cfg(feature = "simulator")]
pub(crate) use self::pinned::Users as PinnedUsers;
pub(crate) use self::pinned::{HostUse, Look, PinnedBytes, PinnedLaunch, elements, elements_mut};
use crate::device::{DeviceProperties, no_device};
use crate::image::{KernelImage, LaunchConfig, ParamKind};
use crate::launch_attributes::Wanted;
use crate::{Error, Result, TensorMap, limits};

/// Converts a driver error.
pub(crate) fn failed(attempt: &str) -> impl Fn(DriverError) -> Error + '_ {
    move |error| {
        let text = |s: std::result::Result<&std::ffi::CStr, DriverError>| {
            s.map_or_else(|_| "unknown".to_string(), |s| s.to_string_lossy().into_owned())
        };
        Error::Driver {
            attempt: attempt.to_string(),
            name: text(error.error_name()),
            message: text(error.error_string()),
        }
    }
}

/// Whether the driver library can be opened. cudarc opens it at its first call, and would panic there, or is linked with it if another
/// crate of the program asks for that, as candle does; it tells neither.
fn driver_present() -> bool {
    const NAMES: &[&str] = match cfg!(windows) {
        true => &["nvcuda.dll"],
        false => &["libcuda.so.1", "libcuda.so"],
    };
    static PRESENT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // SAFETY: opens libcuda and closes it again; its initializers are the driver's own.
    let opens = |name: &&str| unsafe { libloading::Library::new(*name) }.is_ok();
    *PRESENT.get_or_init(|| NAMES.iter().any(opens))
}

pub(crate) fn count() -> usize {
    if !driver_present() {
        return 0;
    }
    CudaContext::device_count().map_or(0, |n| n.max(0) as usize)
}

pub(crate) fn context(ordinal: usize) -> Result<Arc<CudaContext>> {
    let name = format!("CUDA device {ordinal}");
    if !driver_present() {
        return Err(no_device(name, "the NVIDIA driver (libcuda) is not installed"));
    }
    let count = match CudaContext::device_count() {
        Ok(count) => count.max(0) as usize,
        Err(error) => return Err(no_device(name, failed("starting the driver")(error).to_string())),
    };
    if ordinal >= count {
        return Err(no_device(name, format!("the driver sees {count} GPU(s)")));
    }
    CudaContext::new(ordinal).map_err(|e| no_device(name, failed("opening the device")(e).to_string()))
}

/// Free and total bytes of a GPU's memory.
pub(crate) fn memory(context: &Arc<CudaContext>) -> Result<(usize, usize)> {
    context.bind_to_thread().map_err(failed("binding the context"))?;
    result::mem_get_info().map_err(failed("asking for the memory"))
}

/// The CUDA release of the driver.
fn driver_release() -> Result<(u32, u32)> {
    let mut release = 0;
    // SAFETY: the driver is loaded, since there is a context, and writes one integer.
    let result = unsafe { sys::cuDriverGetVersion(&mut release) }.result();
    result.map_err(failed("asking for the driver's release"))?;
    // 1000 * major + 10 * minor.
    let release = release.max(0) as u32;
    Ok((release / 1000, release % 1000 / 10))
}

/// What a GPU is. The driver is asked once for each GPU, because its answer about the clocks takes a millisecond.
pub(crate) fn properties(context: &Arc<CudaContext>) -> Result<DeviceProperties> {
    static KNOWN: Mutex<BTreeMap<usize, DeviceProperties>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(properties) = known.get(&context.ordinal()) {
        return Ok(*properties);
    }
    let properties = ask_for_properties(context)?;
    known.insert(context.ordinal(), properties);
    Ok(properties)
}

fn ask_for_properties(context: &Arc<CudaContext>) -> Result<DeviceProperties> {
    use sys::CUdevice_attribute_enum as Attribute;
    let number = |attribute| {
        let value = context.attribute(attribute);
        value.map_err(failed("asking for an attribute of the device"))
    };
    let size = |attribute| number(attribute).map(|value| value.max(0) as u32);
    Ok(DeviceProperties {
        compute_capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: size(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: size(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_clock_khz: size(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        memory_bus_bits: size(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?,
        l2_bytes: size(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        driver: driver_release()?,
    })
}

/// Gives the memory back that freed tensors left in the driver's pool, but for `keep` bytes.
pub(crate) fn trim(context: &Arc<CudaContext>, keep: usize) -> Result<()> {
    context.bind_to_thread().map_err(failed("binding the context"))?;
    // SAFETY: the device is that of a live context; the pool lives as long as the device.
    unsafe {
        let pool = result::device::get_mem_pool(context.cu_device());
        pool.and_then(|pool| sys::cuMemPoolTrimTo(pool, keep).result())
    }
    .map_err(failed("trimming the memory pool"))
}

/// A priority as the driver counts it: 0 is its least, and smaller numbers are preferred, down to its greatest.
pub(crate) fn priority_of_driver(context: &Arc<CudaContext>, priority: u32) -> Result<i32> {
    context.bind_to_thread().map_err(failed("binding the context"))?;
    let (least, greatest) =
        result::stream::get_priority_range().map_err(failed("asking for the priorities of streams"))?;
    Ok((i64::from(least) - i64::from(priority)).max(i64::from(greatest)) as i32)
}

/// Whether everything that is queued on a stream is done.
pub(crate) fn is_done(stream: &CudaStream) -> Result<bool> {
    stream
        .context()
        .bind_to_thread()
        .map_err(failed("binding the context"))?;
    // SAFETY: the stream lives.
    match unsafe { sys::cuStreamQuery(stream.cu_stream()) } {
        sys::CUresult::CUDA_SUCCESS => Ok(true),
        sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        error => Err(failed("asking for the stream")(DriverError(error))),
    }
}

/// Whether every launch is waited for, so that an error is that of its own launch: `TIRX_SYNCHRONOUS=1`.
pub(crate) fn synchronous() -> bool {
    static SYNCHRONOUS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SYNCHRONOUS.get_or_init(|| is_set("TIRX_SYNCHRONOUS") || deterministic())
}

/// Whether launches are made one at a time, none before the one before it has ended: `TIRX_DETERMINISTIC=1`.
fn deterministic() -> bool {
    static DETERMINISTIC: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *DETERMINISTIC.get_or_init(|| is_set("TIRX_DETERMINISTIC"))
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// A device function that is loaded into a context.
struct Function {
    handle: sys::CUfunction,
    /// Dynamic shared memory that launches may use without raising the function's limit.
    shared_limit: AtomicU32,
    non_portable_cluster: AtomicBool,
    /// Whether launches may start before the previous kernel has ended. Code for older GPUs than Hopper, which newer ones may run too, does not wait
    /// for that one.
    waits: bool,
}

/// The first PTX with `griddepcontrol`, as the driver counts it.
const LEAST_PROGRAMMATIC: i32 = 90;

/// The largest cluster that every device with clusters accepts.
const PORTABLE_CLUSTER: u32 = 8;

/// An image loaded into a context. Never unloaded: it lives as long as the process, as the image does.
pub(crate) struct LoadedImage {
    pub(crate) context: Arc<CudaContext>,
    functions: Vec<Function>,
}

// SAFETY: a CUfunction is a handle that any thread may use while its context lives; `context` keeps that alive.
unsafe impl Send for LoadedImage {}
// SAFETY: as above; the rest is atomic.
unsafe impl Sync for LoadedImage {}

/// A device's compute capability and name.
pub(crate) fn capability(context: &Arc<CudaContext>) -> Result<(i32, i32, String)> {
    let (major, minor) = context
        .compute_capability()
        .map_err(failed("asking for the compute capability"))?;
    let name = context.name().unwrap_or_else(|_| "the device".to_string());
    Ok((major, minor, name))
}

pub(crate) fn load(image: &'static KernelImage, context: &Arc<CudaContext>) -> Result<LoadedImage> {
    let (major, minor) = context
        .compute_capability()
        .map_err(failed("asking for the compute capability"))?;
    let no_code = || Error::NoCodeForDevice {
        kernel: image.name,
        device: context.name().unwrap_or_else(|_| "the device".to_string()),
        compute_capability: (major, minor),
        targets: image.targets.iter().copied().chain(image.ptx).collect(),
    };
    let Some(fatbin) = image.fatbin.filter(|_| image.runs_on(major, minor)) else {
        return Err(no_code());
    };
    context.bind_to_thread().map_err(failed("binding the context"))?;
    // The driver takes a zero-terminated text or a binary with its own length; fat binaries are the latter but must be
    // 8-byte aligned, which static bytes need not be.
    let mut aligned = vec![0u64; fatbin.len().div_ceil(8)];
    for (word, chunk) in aligned.iter_mut().zip(fatbin.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(bytes);
    }
    log::debug!(
        target: "tirx",
        "kernel `{}` is loaded on {} (compute capability {major}.{minor}): {}",
        image.name,
        context.name().unwrap_or_else(|_| "the device".to_string()),
        image.taken_on(major, minor)
    );
    // SAFETY: `aligned` holds a whole fat binary as nvcc wrote it and outlives the call, which copies it.
    let module = match unsafe { result::module::load_data(aligned.as_ptr().cast::<c_void>()) } {
        Ok(module) => module,
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => return Err(no_code()),
        Err(error) => return Err(failed(&format!("loading kernel `{}`", image.name))(error)),
    };
    let functions = image.functions.iter().map(|function| {
        let symbol = CString::new(function.symbol).map_err(|_| Error::Image {
            kernel: image.name,
            message: "a symbol holds a zero byte".to_string(),
        })?;
        // SAFETY: the module was loaded just now.
        let handle = unsafe { result::module::get_function(module, symbol) }.map_err(failed(&format!(
            "finding function `{}` of kernel `{}`",
            function.symbol, image.name
        )))?;
        // 48 KiB less its static shared memory; where the driver does not report it, each launch sets the limit.
        let limit = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was loaded just now, into the current context.
        let limit = unsafe { result::function::get_function_attribute(handle, limit) };
        let version = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        // SAFETY: as above.
        let version = unsafe { result::function::get_function_attribute(handle, version) };
        Ok(Function {
            handle,
            shared_limit: AtomicU32::new(limit.unwrap_or(0).unsigned_abs()),
            non_portable_cluster: false.into(),
            waits: version.is_ok_and(|version| version >= LEAST_PROGRAMMATIC),
        })
    });
    Ok(LoadedImage {
        context: context.clone(),
        functions: functions.collect::<Result<_>>()?,
    })
}

/// Launches `function` on `stream`, with what the caller wants beyond the configuration; a capture may record the launch.
///
/// # Safety
/// `args` are as many as the function has parameters and fit them; pointers are valid on the device for what the
/// kernel does with them until it is done.
#[inline]
#[expect(clippy::too_many_arguments, reason = "a launch has many properties")]
pub(crate) unsafe fn launch(
    image: &'static KernelImage,
    loaded: &LoadedImage,
    function: usize,
    stream: &CudaStream,
    recorded: bool,
    wanted: &Wanted,
    config: &LaunchConfig,
    args: &[u64],
    maps: &[&TensorMap],
) -> Result<()> {
    /// Enough for almost every kernel; more parameters are put on the heap.
    const ON_STACK: usize = 32;
    let state = &loaded.functions[function];
    loaded
        .context
        .bind_to_thread()
        .map_err(failed("binding the context"))?;
    if config.shared_bytes > state.shared_limit.load(Ordering::Relaxed) {
        raise_shared_limit(image, loaded, state, config.shared_bytes)?;
    }
    if config.cluster != [1; 3]
        && config.cluster.iter().product::<u32>() > PORTABLE_CLUSTER
        && !state.non_portable_cluster.swap(true, Ordering::Relaxed)
    {
        allow_non_portable_cluster(image, state)?;
    }
    let config = &LaunchConfig {
        programmatic: config.programmatic && state.waits && !deterministic(),
        ..*config
    };
    let mut attributes = Attributes::from_config(config, wanted);
    let attributes = attributes.as_mut_slice();
    let driver_config = sys::CUlaunchConfig {
        gridDimX: config.grid[0],
        gridDimY: config.grid[1],
        gridDimZ: config.grid[2],
        blockDimX: config.block[0],
        blockDimY: config.block[1],
        blockDimZ: config.block[2],
        sharedMemBytes: config.shared_bytes,
        hStream: stream.cu_stream(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    };
    // A parameter is read from the low bytes of its slot (little-endian machines, as all with CUDA are).
    let kinds = image.functions[function].params;
    let pointer = |(arg, kind): (&u64, &ParamKind)| match kind {
        // Numbers of maps were checked.
        ParamKind::TensorMap => std::ptr::from_ref(maps[*arg as usize].words())
            .cast_mut()
            .cast::<c_void>(),
        _ => std::ptr::from_ref(arg).cast_mut().cast::<c_void>(),
    };
    let arguments = args.iter().zip(kinds);
    let mut on_stack = [std::ptr::null_mut::<c_void>(); ON_STACK];
    let mut on_heap;
    let params = if args.len() <= ON_STACK {
        for (slot, arg) in on_stack.iter_mut().zip(arguments) {
            *slot = pointer(arg);
        }
        on_stack.as_mut_ptr()
    } else {
        on_heap = arguments.map(pointer).collect::<Vec<_>>();
        on_heap.as_mut_ptr()
    };
    // SAFETY: `driver_config` and what it points to live across the call; `params` has as many entries as the function
    // has parameters (the caller's promise).
    let status = unsafe { sys::cuLaunchKernelEx(&driver_config, state.handle, params, std::ptr::null_mut()) };
    status.result().map_err(|error| {
        // SAFETY: the context is current and has the function; `driver_config` is whole.
        let limit =
            unsafe { refusal::explain(image.name, &loaded.context, state.handle, config, &driver_config) };
        limit.unwrap_or_else(|| launch_failed(image, config, error))
    })?;
    if synchronous() && !recorded {
        return stream
            .synchronize()
            .map_err(|error| launch_failed(image, config, error));
    }
    Ok(())
}

#[cold]
fn launch_failed(image: &KernelImage, config: &LaunchConfig, error: DriverError) -> Error {
    let attempt = format!(
        "launching kernel `{}` (grid {:?}, block {:?}, {} bytes of dynamic shared memory)",
        image.name, config.grid, config.block, config.shared_bytes
    );
    failed(&attempt)(error)
}

#[cold]
fn raise_shared_limit(
    image: &KernelImage,
    loaded: &LoadedImage,
    function: &Function,
    bytes: u32,
) -> Result<()> {
    use sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as MOST;
    use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as LIMIT;
    use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as STATIC;
    let most = loaded.context.attribute(MOST);
    // SAFETY: the handle's context is current and keeps it alive.
    let fixed = unsafe { result::function::get_function_attribute(function.handle, STATIC) };
    if let (Ok(most), Ok(fixed)) = (most, fixed) {
        limits::shared_bytes(image.name, bytes, most.saturating_sub(fixed).max(0) as u32)?;
    }
    // SAFETY: the handle's context is current and keeps it alive.
    unsafe { result::function::set_function_attribute(function.handle, LIMIT, bytes as i32) }.map_err(
        failed(&format!(
            "asking for {bytes} bytes of dynamic shared memory for kernel `{}`",
            image.name
        )),
    )?;
    function.shared_limit.fetch_max(bytes, Ordering::Relaxed);
    Ok(())
}

#[cold]
fn allow_non_portable_cluster(image: &KernelImage, function: &Function) -> Result<()> {
    use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as ALLOWED;
    // SAFETY: the handle's context is current and keeps it alive.
    unsafe { result::function::set_function_attribute(function.handle, ALLOWED, 1) }.map_err(failed(
        &format!(
            "allowing a cluster of more than 8 blocks for kernel `{}`",
            image.name
        ),
    ))
}
