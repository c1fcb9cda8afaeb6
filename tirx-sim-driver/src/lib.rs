//! The simulator as a CUDA driver: a shared library with those functions of the driver that C launchers call.
//!
//! The run time of C launchers opens the driver by name, and `TIRX_DRIVER` may name another library, such as this one.
//! Kernels then run on the CPU, with all checks of the simulator. Device memory is the simulator's; its addresses are
//! those that `cuMemAlloc` gives, and they are no addresses of the process. Images are IR (`tirxSimulatorLoadIr`); a
//! fault is told by `tirxSimulatorError`.
//!
//! `unsafe` here has one reason: the pointers of C callers, which must be what the driver API asks for.

#![warn(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]
#![allow(non_snake_case, reason = "the driver's names")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LazyLock, Mutex, PoisonError};

use tirx_ir::IRModule;
use tirx_ir::abi::tensor_map::Numbers;
use tirx_sim::{
    Allocation, Launch, LaunchOptions, Memory, Program, StandIns, TENSOR_MAP_BYTES, TensorMap,
    TensorMapSwizzle, TensorMapType,
};

/// The `CUresult`s that are returned.
mod status {
    pub(crate) const SUCCESS: i32 = 0;
    pub(crate) const INVALID_VALUE: i32 = 1;
    pub(crate) const OUT_OF_MEMORY: i32 = 2;
    pub(crate) const INVALID_DEVICE: i32 = 101;
    pub(crate) const INVALID_IMAGE: i32 = 200;
    pub(crate) const NOT_FOUND: i32 = 500;
    pub(crate) const LAUNCH_FAILED: i32 = 719;
}

struct Device {
    memory: Memory,
    allocations: Mutex<HashMap<u64, Allocation>>,
}

static DEVICE: LazyLock<Device> = LazyLock::new(|| Device {
    memory: Memory::new(),
    allocations: Mutex::default(),
});

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Records an error.
fn fail(status: i32, message: impl Into<String>) -> c_int {
    let message: String = message.into();
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    ERROR.with(|error| *error.borrow_mut() = text);
    status
}

/// Runs a call; a panic of the simulator becomes an error of the call.
fn guarded(run: impl FnOnce() -> c_int) -> c_int {
    ERROR.with(|error| *error.borrow_mut() = CString::default());
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| fail(status::LAUNCH_FAILED, "the simulator failed"))
}

/// A module: the device functions of an image.
struct Module(IRModule);

/// The kind of a parameter of a function.
#[derive(Clone, Copy)]
enum Param {
    Pointer,
    Scalar { bytes: usize },
    TensorMap,
}

struct Function {
    program: Program,
    params: Vec<Param>,
}

/// `CUlaunchAttribute`.
#[repr(C)]
struct Attribute {
    id: c_int,
    pad: [u8; 4],
    value: [u32; 16],
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: *mut c_void,
    attributes: *const Attribute,
    count: c_uint,
}

const CLUSTER_DIMENSION: c_int = 4;
const PROGRAMMATIC_STREAM_SERIALIZATION: c_int = 6;

/// The error of the last call of this thread, if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn tirxSimulatorError() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// Loads an IR image.
///
/// # Safety
/// `image` points to `bytes` bytes, `module` to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tirxSimulatorLoadIr(
    module: *mut *mut c_void,
    image: *const u8,
    bytes: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let image = unsafe { std::slice::from_raw_parts(image, bytes) };
        match tirx_ir::image::decode(image) {
            Ok(decoded) => {
                let loaded = Box::into_raw(Box::new(Module(decoded)));
                // SAFETY: the caller's promise. Modules are kept for the process.
                unsafe { *module = loaded.cast() };
                status::SUCCESS
            }
            Err(error) => fail(status::INVALID_IMAGE, format!("unusable IR image: {error}")),
        }
    })
}

/// Starts the driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    status::SUCCESS
}

/// The only device is number 0.
///
/// # Safety
/// `device` points to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    guarded(|| {
        if ordinal != 0 {
            return fail(
                status::INVALID_DEVICE,
                format!("the simulator is device 0; there is no device {ordinal}"),
            );
        }
        // SAFETY: the caller's promise.
        unsafe { *device = 0 };
        status::SUCCESS
    })
}

/// The only context.
const CONTEXT: *mut c_void = 8 as *mut c_void;

/// The context.
///
/// # Safety
/// `context` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, _device: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *context = CONTEXT };
    status::SUCCESS
}

/// The context.
///
/// # Safety
/// `context` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *context = CONTEXT };
    status::SUCCESS
}

/// No effect: there is one context.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(_context: *mut c_void) -> c_int {
    status::SUCCESS
}

/// Device 0.
///
/// # Safety
/// `device` points to a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *device = 0 };
    status::SUCCESS
}

/// No effect: launches are complete when they return.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    DEVICE.memory.synchronize();
    status::SUCCESS
}

/// No effect: launches are complete when they return.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_stream: *mut c_void) -> c_int {
    DEVICE.memory.synchronize();
    status::SUCCESS
}

/// The name of a status.
///
/// # Safety
/// `name` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(error: c_int, name: *mut *const c_char) -> c_int {
    let text: &CStr = match error {
        status::SUCCESS => c"CUDA_SUCCESS",
        status::INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        status::OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        status::INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        status::INVALID_IMAGE => c"CUDA_ERROR_INVALID_IMAGE",
        status::NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        _ => c"CUDA_ERROR_LAUNCH_FAILED",
    };
    // SAFETY: the caller's promise.
    unsafe { *name = text.as_ptr() };
    status::SUCCESS
}

/// The description of a status: the message of the last call.
///
/// # Safety
/// `text` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_error: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *text = tirxSimulatorError() };
    status::SUCCESS
}

/// Fat binaries cannot run here.
///
/// # Safety
/// None is asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(_module: *mut *mut c_void, _image: *const c_void) -> c_int {
    guarded(|| {
        fail(
            status::INVALID_IMAGE,
            "the simulator loads IR images, not fat binaries",
        )
    })
}

/// A function of a module.
///
/// # Safety
/// `module` came from `tirxSimulatorLoadIr`, `name` is a C string, `function` points to a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (Module(module), name) = unsafe { (&*module.cast::<Module>(), CStr::from_ptr(name)) };
        let name = name.to_string_lossy();
        let named = (module.functions.iter()).find(|(n, f)| f.global_symbol().unwrap_or(n) == name);
        let Some((_, func)) = named else {
            return fail(status::NOT_FOUND, format!("the image has no function `{name}`"));
        };
        let params = func.params.iter().map(|param| match param.dtype() {
            _ if param.ty().is_tensor_map() => Param::TensorMap,
            dtype if dtype.is_handle() => Param::Pointer,
            dtype => Param::Scalar { bytes: dtype.bytes() },
        });
        let params = params.collect();
        match Program::compile(module, &name) {
            Ok(program) => {
                let made = Box::into_raw(Box::new(Function { program, params }));
                // SAFETY: the caller's promise. Functions are kept for the process.
                unsafe { *function = made.cast() };
                status::SUCCESS
            }
            Err(error) => fail(status::INVALID_IMAGE, error.render(&module.sources)),
        }
    })
}

/// The version of PTX (`CU_FUNC_ATTRIBUTE_PTX_VERSION`) is that with programmatic dependent launches: the simulated code has what older GPUs leave out. All
/// other attributes are 0.
///
/// # Safety
/// `value` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _function: *mut c_void,
) -> c_int {
    let number = if attribute == PTX_VERSION { 90 } else { 0 };
    // SAFETY: the caller's promise.
    unsafe { *value = number };
    status::SUCCESS
}

/// `CU_FUNC_ATTRIBUTE_PTX_VERSION`.
const PTX_VERSION: c_int = 5;

/// Limits are those of the GPU that the function is for.
///
/// # Safety
/// `function` came from `cuModuleGetFunction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncSetAttribute(function: *mut c_void, _attribute: c_int, value: c_int) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let function = unsafe { &*function.cast::<Function>() };
        let most = function.program.most_shared();
        match u32::try_from(value) {
            Ok(bytes) if bytes <= most => status::SUCCESS,
            _ => fail(
                status::INVALID_VALUE,
                format!("{value} bytes of shared memory were asked for, and {most} is the most"),
            ),
        }
    })
}

/// Runs a kernel to its end.
///
/// # Safety
/// As of the driver's function: `config` and what it points to are whole, `function` came from `cuModuleGetFunction`,
/// `params` has a pointer to each parameter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: *mut c_void,
    params: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: the caller's promise.
        let (config, function) = unsafe { (&*config, &*function.cast::<Function>()) };
        let (mut cluster, mut programmatic) = ([1; 3], false);
        for i in 0..config.count as usize {
            // SAFETY: there are `count` attributes.
            let attribute = unsafe { &*config.attributes.add(i) };
            if attribute.id == CLUSTER_DIMENSION {
                cluster.copy_from_slice(&attribute.value[..3]);
            }
            if attribute.id == PROGRAMMATIC_STREAM_SERIALIZATION {
                programmatic = attribute.value[0] != 0;
            }
        }
        let mut args = Vec::with_capacity(function.params.len());
        let mut kept = Vec::new();
        for (i, param) in function.params.iter().enumerate() {
            // SAFETY: there is a pointer to each parameter, which is as large as its kind says.
            let read =
                |bytes: usize| unsafe { std::slice::from_raw_parts((*params.add(i)).cast::<u8>(), bytes) };
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |value, byte| value << 8 | u64::from(*byte))
            };
            args.push(match param {
                Param::Pointer => number(read(8)),
                Param::Scalar { bytes } => number(read(*bytes)),
                Param::TensorMap => {
                    let memory = DEVICE.memory.alloc(TENSOR_MAP_BYTES);
                    memory.write(0, read(TENSOR_MAP_BYTES));
                    let address = memory.address();
                    kept.push(memory);
                    address
                }
            });
        }
        let launch = Launch {
            grid: config.grid,
            block: config.block,
            cluster,
            shared_bytes: config.shared_bytes,
            args: &args,
            peers: &[],
        };
        let options = LaunchOptions {
            programmatic,
            ..LaunchOptions::default()
        };
        let (program, stand_ins) = (&function.program, StandIns::default());
        match program.launch_with(&DEVICE.memory, &launch, &stand_ins, &options) {
            Ok(stats) => {
                print!("{}", stats.output);
                status::SUCCESS
            }
            Err(fault) => {
                print!("{}", fault.output);
                fail(status::LAUNCH_FAILED, fault.to_string())
            }
        }
    })
}

/// Device memory.
///
/// # Safety
/// `address` points to a place for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    guarded(|| {
        let Some(allocation) = DEVICE.memory.try_alloc(bytes.max(1)) else {
            return fail(
                status::OUT_OF_MEMORY,
                format!("the simulator uses the memory of this machine, which does not have {bytes} bytes"),
            );
        };
        // SAFETY: the caller's promise.
        unsafe { *address = allocation.address() };
        let mut all = DEVICE.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(allocation.address(), allocation);
        status::SUCCESS
    })
}

/// Frees device memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    guarded(|| {
        let mut all = DEVICE.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        match all.remove(&address) {
            Some(_) => status::SUCCESS,
            None => fail(
                status::INVALID_VALUE,
                format!("no device memory begins at {address:#x}"),
            ),
        }
    })
}

/// Runs `access` with the memory that holds `bytes` bytes from an address on, and the offset there.
fn with_memory(address: u64, bytes: usize, access: impl FnOnce(&Allocation, usize)) -> c_int {
    let all = DEVICE.allocations.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.values().find_map(|memory| {
        let offset = usize::try_from(address.checked_sub(memory.address())?).ok()?;
        (offset.checked_add(bytes)? <= memory.len()).then_some((memory, offset))
    });
    match found {
        Some((memory, offset)) => {
            access(memory, offset);
            status::SUCCESS
        }
        None => fail(
            status::INVALID_VALUE,
            format!("no device memory holds {bytes} bytes from {address:#x} on"),
        ),
    }
}

/// Copies to device memory.
///
/// # Safety
/// `source` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(address: u64, source: *const u8, bytes: usize) -> c_int {
    guarded(|| {
        if bytes == 0 {
            return status::SUCCESS;
        }
        // SAFETY: the caller's promise.
        let source = unsafe { std::slice::from_raw_parts(source, bytes) };
        with_memory(address, bytes, |memory, offset| memory.write(offset, source))
    })
}

/// Copies from device memory.
///
/// # Safety
/// `destination` points to room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(destination: *mut u8, address: u64, bytes: usize) -> c_int {
    guarded(|| {
        if bytes == 0 {
            return status::SUCCESS;
        }
        // SAFETY: the caller's promise.
        let destination = unsafe { std::slice::from_raw_parts_mut(destination, bytes) };
        with_memory(address, bytes, |memory, offset| memory.read(offset, destination))
    })
}

/// A tensor map in the simulator's form.
///
/// # Safety
/// As of the driver's function: the arrays are as long as the rank says (the strides one shorter), `map` has room for
/// 128 bytes.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the driver's")]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut u8,
    data_type: c_int,
    rank: u32,
    address: u64,
    dims: *const u64,
    strides: *const u64,
    box_dims: *const u32,
    element_strides: *const u32,
    interleave: c_int,
    swizzle: c_int,
    l2_promotion: c_int,
    oob_fill: c_int,
) -> c_int {
    guarded(|| {
        let rank = rank as usize;
        let modes =
            TensorMapType::from_value(data_type as u32).zip(TensorMapSwizzle::from_value(swizzle as u32));
        let Some((dtype, swizzle)) = modes.filter(|_| (1..=5).contains(&rank)) else {
            return fail(
                status::INVALID_VALUE,
                "a tensor map of an unknown type, swizzle or rank",
            );
        };
        // SAFETY: the caller's promise.
        let (dims, strides, box_dims, element_strides) = unsafe {
            (
                std::slice::from_raw_parts(dims, rank).to_vec(),
                std::slice::from_raw_parts(strides, rank - 1).to_vec(),
                std::slice::from_raw_parts(box_dims, rank).to_vec(),
                std::slice::from_raw_parts(element_strides, rank).to_vec(),
            )
        };
        let checked = Numbers {
            data_type: data_type as u32,
            address,
            dims: &dims,
            strides: &strides,
            box_dims: &box_dims,
            element_strides: &element_strides,
            interleave: interleave as u32,
            swizzle: swizzle as u32,
            l2_promotion: l2_promotion as u32,
            oob_fill: oob_fill as u32,
        }
        .check();
        if let Err(reason) = checked {
            return fail(status::INVALID_VALUE, reason);
        }
        let encoded = TensorMap {
            dtype,
            address,
            dims,
            strides,
            box_dims,
            element_strides,
            interleave: interleave as u8,
            swizzle,
            l2_promotion: l2_promotion as u8,
            nan_fill: oob_fill == 1,
        };
        let bytes = encoded.encode();
        // SAFETY: the caller's promise.
        unsafe { map.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        status::SUCCESS
    })
}
