//! What a launch costs on the host: the typed function, a bare `cuLaunchKernelEx` loop, and cudarc's builder, in one
//! run on the first GPU. Without a GPU there is nothing to measure.

use std::ffi::c_void;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use cudarc::driver::{LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use tirx_rt::{Device, Stream, Tensor};

tirx_rt::include_kernels!();

/// Launches in a row before the queue is drained, so that the queue is never full.
const BATCH: u64 = 512;

/// Time of `iterations` launches on the host; draining the queue is not counted.
fn launches(stream: &Stream, iterations: u64, mut launch: impl FnMut()) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let batch = left.min(BATCH);
        stream.synchronize().expect("the stream works");
        let start = Instant::now();
        (0..batch).for_each(|_| launch());
        spent += start.elapsed();
        left -= batch;
    }
    stream.synchronize().expect("the stream works");
    spent
}

fn launch(c: &mut Criterion) {
    let Ok(device) = Device::cuda(0) else {
        println!("no GPU: launches are not measured");
        return;
    };
    let stream = device.new_stream().expect("a stream");
    let cuda = stream.as_cudarc().expect("a CUDA stream").clone();
    let context = cuda.context().clone();
    let a = Tensor::from_slice(&stream, &[1.0f32; 256], [256]).expect("memory");
    let mut b = Tensor::<f32>::zeros(&stream, [256]).expect("memory");

    let fatbin = kernels::scale::IMAGE.fatbin.expect("built with nvcc");
    let module = context
        .load_module(Ptx::from_binary(fatbin.to_vec()))
        .expect("the image loads");
    let function = module
        .load_function(kernels::scale::IMAGE.functions[0].symbol)
        .expect("the kernel is there");

    let mut group = c.benchmark_group("launch");
    group.bench_function("bare cuLaunchKernelEx", |bencher| {
        let (pa, pb) = (a.address(), b.address());
        bencher.iter_custom(|iterations| {
            context.bind_to_thread().expect("the context works");
            launches(&stream, iterations, || {
                let config = sys::CUlaunchConfig {
                    gridDimX: 1,
                    gridDimY: 1,
                    gridDimZ: 1,
                    blockDimX: 256,
                    blockDimY: 1,
                    blockDimZ: 1,
                    sharedMemBytes: 0,
                    hStream: cuda.cu_stream(),
                    attrs: std::ptr::null_mut(),
                    numAttrs: 0,
                };
                let mut params = [
                    (&raw const pa).cast_mut().cast::<c_void>(),
                    (&raw const pb).cast_mut().cast(),
                ];
                // SAFETY: the kernel takes two pointers to 256 floats, which these are.
                let status = unsafe {
                    sys::cuLaunchKernelEx(
                        &config,
                        function.cu_function(),
                        params.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                };
                black_box(status.result()).expect("the launch works");
            })
        });
    });
    group.bench_function("typed launcher", |bencher| {
        bencher.iter_custom(|iterations| {
            launches(&stream, iterations, || {
                kernels::scale(&stream, &a, &mut b).expect("the launch works")
            })
        });
    });
    group.bench_function("cudarc builder", |bencher| {
        let a = cuda.clone_htod(&[1.0f32; 256]).expect("memory");
        let mut b = cuda.alloc_zeros::<f32>(256).expect("memory");
        let config = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        bencher.iter_custom(|iterations| {
            launches(&stream, iterations, || {
                let mut builder = cuda.launch_builder(&function);
                builder.arg(&a).arg(&mut b);
                // SAFETY: the kernel takes two pointers to 256 floats, which these are.
                unsafe { builder.launch(config) }.expect("the launch works");
            })
        });
    });
    group.finish();
}

criterion_group!(benches, launch);
criterion_main!(benches);
