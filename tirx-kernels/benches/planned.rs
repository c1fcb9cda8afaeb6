//! The host time of a matrix product on the first GPU: that of `Plan::run`, of `gemm::matmul`, and of the bare driver call.
//!
//! `gemm::matmul` also chooses a kernel. The driver call is `cuLaunchKernelEx` of the plan's kernel with the same arguments. Without a GPU
//! there is nothing to measure.

use std::time::Instant;

use cudarc::driver::sys;
use tirx_kernels::gemm::{self, Plan};
use tirx_rt::{Device, Stream, Tensor, bf16};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Launches in a row before the queue is drained, so that the queue is never full.
const BATCH: usize = 256;
const SAMPLES: usize = 100;

/// The node of the only kernel that `work` launches, and its graph, which owns the arguments.
fn node_of(
    stream: &Stream,
    work: impl FnOnce() -> tirx_kernels::Result<()>,
) -> Result<(sys::CUgraph, sys::CUgraphNode)> {
    let handle = stream.as_cudarc().expect("a CUDA stream").cu_stream();
    let (mut graph, mut nodes, mut count) = (std::ptr::null_mut(), [std::ptr::null_mut(); 1], 1);
    // SAFETY: the stream is captured by this thread alone; `nodes` has room for the node that is asked for.
    unsafe {
        sys::cuStreamBeginCapture_v2(
            handle,
            sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        )
        .result()?;
        let launched = work();
        sys::cuStreamEndCapture(handle, &mut graph).result()?;
        launched?;
        sys::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count).result()?;
    }
    assert_eq!(count, 1, "a product is one kernel");
    Ok((graph, nodes[0]))
}

/// The median of the host's microseconds for one launch.
fn microseconds(stream: &Stream, mut launch: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..BATCH {
            launch()?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / BATCH as f64);
    }
    stream.synchronize()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

fn main() -> Result<()> {
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let Ok(device) = Device::cuda(0) else {
        println!("no GPU: launches are not measured");
        return Ok(());
    };
    let stream = device.new_stream()?;
    for [m, n, k] in [[16, 64, 64], [128, 128, 64]] {
        let a = Tensor::<bf16>::zeros(&stream, [m, k])?;
        let weights = Tensor::<bf16>::zeros(&stream, [n, k])?;
        let b = weights.permute(&[1, 0])?;
        let mut c = Tensor::<bf16>::zeros(&stream, [m, n])?;
        let plan = Plan::new(&device, &a, &b, &c)?;
        plan.run(&stream, &a, &b, &mut c)?;
        let (graph, node) = node_of(&stream, || plan.run(&stream, &a, &b, &mut c))?;
        let mut params = std::mem::MaybeUninit::<sys::CUDA_KERNEL_NODE_PARAMS>::zeroed();
        // SAFETY: the node is that of a kernel, and the graph lives until the end of the loop's body. Zeros are values of all fields.
        let params = unsafe {
            sys::cuGraphKernelNodeGetParams_v2(node, params.as_mut_ptr()).result()?;
            params.assume_init()
        };
        let cuda = stream.as_cudarc().expect("a CUDA stream").clone();
        let mut programmatic = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            // SAFETY: zeros are values of all fields.
            ..unsafe { std::mem::zeroed() }
        };
        programmatic.value.programmaticStreamSerializationAllowed = 1;
        let bare = || -> Result<()> {
            let config = sys::CUlaunchConfig {
                gridDimX: params.gridDimX,
                gridDimY: params.gridDimY,
                gridDimZ: params.gridDimZ,
                blockDimX: params.blockDimX,
                blockDimY: params.blockDimY,
                blockDimZ: params.blockDimZ,
                sharedMemBytes: params.sharedMemBytes,
                hStream: cuda.cu_stream(),
                attrs: &mut programmatic,
                numAttrs: 1,
            };
            // SAFETY: function and arguments are those of the captured launch, whose tensors are alive.
            let status = unsafe {
                sys::cuLaunchKernelEx(&config, params.func, params.kernelParams, std::ptr::null_mut())
            };
            Ok(status.result()?)
        };
        let bare = microseconds(&stream, bare)?;
        let planned = microseconds(&stream, || Ok(plan.run(&stream, &a, &b, &mut c)?))?;
        let chosen = microseconds(&stream, || Ok(gemm::matmul(&stream, &a, &b, &mut c)?))?;
        println!(
            "{m} x {n} x {k}, {plan}: bare cuLaunchKernelEx {bare:.2} us, Plan::run {planned:.2} us ({:.2}), matmul {chosen:.2} us ({:.2})",
            planned / bare,
            chosen / bare
        );
        // SAFETY: nothing uses the graph or its arguments any more.
        unsafe { sys::cuGraphDestroy(graph).result()? };
    }
    Ok(())
}
