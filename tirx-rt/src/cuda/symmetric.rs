//! Memory on several GPUs of one process that each of them may access.
//!
//! The driver's virtual memory calls map a piece of each GPU's memory, with access for all GPUs. So an address of one GPU's piece is
//! valid in kernels of the others, and the pool of usual allocations stays private.

use std::collections::BTreeSet;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, sys};

use super::failed;
use super::memory::CudaMemory;
use crate::{Error, Result};

/// Mapped memory: unmapped and freed when it is dropped.
struct Mapped {
    address: u64,
    bytes: usize,
    handle: Option<sys::CUmemGenericAllocationHandle>,
    mapped: bool,
    context: Arc<CudaContext>,
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_err() {
            return;
        }
        // SAFETY: each call undoes one of `map` that succeeded, once. The owner has waited for the work that uses the memory.
        // Errors have nowhere to go from a destructor.
        unsafe {
            if self.mapped {
                let _ = sys::cuMemUnmap(self.address, self.bytes);
            }
            if let Some(handle) = self.handle {
                let _ = sys::cuMemRelease(handle);
            }
            let _ = sys::cuMemAddressFree(self.address, self.bytes);
        }
    }
}

/// Checks that each GPU can access the memory of each other one.
pub(crate) fn check_peers(contexts: &[Arc<CudaContext>]) -> Result<()> {
    for (own, context) in contexts.iter().enumerate() {
        for (other, peer) in contexts.iter().enumerate().filter(|(other, _)| *other != own) {
            if context.ordinal() == peer.ordinal() {
                return Err(Error::Shape(format!(
                    "ranks {own} and {other} are both on CUDA device {}: each rank needs a GPU of its own (`World::on_one_gpu` makes ranks that \
                     share one)",
                    peer.ordinal()
                )));
            }
            let mut can = 0;
            // SAFETY: writes one number; both devices are those of live contexts.
            unsafe { sys::cuDeviceCanAccessPeer(&mut can, context.cu_device(), peer.cu_device()) }
                .result()
                .map_err(failed("asking for access between devices"))?;
            if can == 0 {
                return Err(Error::Shape(format!(
                    "CUDA device {} cannot access the memory of device {}: the two have no peer access (see `nvidia-smi topo -p2p r`)",
                    context.ordinal(),
                    peer.ordinal()
                )));
            }
        }
    }
    Ok(())
}

/// Zeroed memory of `bytes` bytes on the device of each stream, which every one of the devices may access.
pub(crate) fn alloc(streams: &[Arc<CudaStream>], bytes: usize) -> Result<Vec<CudaMemory>> {
    let granules = streams.iter().map(|stream| granularity(stream.context()));
    let granule = granules
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .max()
        .unwrap_or(1);
    let size = bytes.max(1).next_multiple_of(granule);
    // Ranks may share a GPU.
    let gpus: BTreeSet<usize> = streams.iter().map(|stream| stream.context().ordinal()).collect();
    let access: Vec<sys::CUmemAccessDesc> = gpus
        .into_iter()
        .map(|ordinal| sys::CUmemAccessDesc {
            location: location(ordinal),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        })
        .collect();
    let mut all = Vec::with_capacity(streams.len());
    for stream in streams {
        let mapped = map(stream.context(), size, &access)?;
        let memory = CudaMemory::mapped(stream, mapped.address, Box::new(mapped));
        memory.zero(stream, 0, size)?;
        all.push(memory);
    }
    Ok(all)
}

fn location(ordinal: usize) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: ordinal as i32,
    }
}

fn properties(context: &CudaContext) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(context.ordinal()),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn granularity(context: &CudaContext) -> Result<usize> {
    let (mut bytes, wanted) = (0, properties(context));
    let minimum = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: writes one number; the properties are whole.
    unsafe { sys::cuMemGetAllocationGranularity(&mut bytes, &wanted, minimum) }
        .result()
        .map_err(failed("asking for the granularity of memory"))?;
    Ok(bytes.max(1))
}

/// Maps `size` bytes of a GPU's memory, a multiple of the granularity, with `access` for several.
fn map(context: &Arc<CudaContext>, size: usize, access: &[sys::CUmemAccessDesc]) -> Result<Mapped> {
    context.bind_to_thread().map_err(failed("binding the context"))?;
    let attempt = format!("mapping {size} bytes for several devices");
    let mut address = 0;
    // SAFETY: writes one address; the range is freed once, by `Mapped`.
    unsafe { sys::cuMemAddressReserve(&mut address, size, 0, 0, 0) }
        .result()
        .map_err(failed(&attempt))?;
    let mut mapped = Mapped {
        address,
        bytes: size,
        handle: None,
        mapped: false,
        context: context.clone(),
    };
    let (mut handle, wanted) = (0, properties(context));
    // SAFETY: writes one handle; the properties are whole.
    unsafe { sys::cuMemCreate(&mut handle, size, &wanted, 0) }
        .result()
        .map_err(failed(&attempt))?;
    mapped.handle = Some(handle);
    // SAFETY: the range was reserved with this size, and the handle has as many bytes.
    unsafe { sys::cuMemMap(address, size, 0, handle, 0) }
        .result()
        .map_err(failed(&attempt))?;
    mapped.mapped = true;
    // SAFETY: the range is mapped, and there are as many descriptions as the count says.
    unsafe { sys::cuMemSetAccess(address, size, access.as_ptr(), access.len()) }
        .result()
        .map_err(failed(&attempt))?;
    Ok(mapped)
}

/// Puts later work on each stream behind all earlier work on every stream.
pub(crate) fn join_all(streams: &[Arc<CudaStream>]) -> Result<()> {
    for stream in streams {
        super::graph::not_captured_elsewhere(stream)?;
    }
    let mut events = Vec::with_capacity(streams.len());
    for stream in streams {
        stream
            .context()
            .bind_to_thread()
            .map_err(failed("binding the context"))?;
        events.push(stream.record_event(None).map_err(failed("recording an event"))?);
    }
    for (own, stream) in streams.iter().enumerate() {
        for (_, event) in events.iter().enumerate().filter(|(other, _)| *other != own) {
            stream.wait(event).map_err(failed("ordering two streams"))?;
        }
    }
    Ok(())
}
