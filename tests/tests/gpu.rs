//! Kernels through their typed launchers, on the simulator or (`TIRX_TEST_DEVICE=cuda`) on the first GPU.

use tirx_rt::{Device, Error, Stream, Tensor};

tirx_rt::include_kernels!();

fn device() -> Device {
    let device = match std::env::var("TIRX_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0).expect("TIRX_TEST_DEVICE=cuda needs a GPU"),
        _ => Device::simulator(),
    };
    device.stand_in("my_relu", |x: f32| if x > 0.0 { x } else { 0.0 });
    device
}

fn stream() -> Stream {
    device().new_stream().unwrap()
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32 * 0.25 - 7.0).collect()
}

#[test]
fn elementwise_kernels_compute_exactly() {
    let stream = stream();
    let x = ramp(256);
    let a = Tensor::from_slice(&stream, &x, [256]).unwrap();
    let mut out = Tensor::zeros(&stream, [256]).unwrap();
    kernels::scale(&stream, &a, &mut out).unwrap();
    assert_eq!(
        out.to_vec().unwrap(),
        x.iter().map(|v| v * 2.0).collect::<Vec<_>>()
    );
    kernels::scal(&stream, &a, &mut out, -0.5).unwrap();
    assert_eq!(
        out.to_vec().unwrap(),
        x.iter().map(|v| v * -0.5).collect::<Vec<_>>()
    );
    kernels::relu(&stream, &a, &mut out).unwrap();
    assert_eq!(
        out.to_vec().unwrap(),
        x.iter().map(|v| v.max(0.0)).collect::<Vec<_>>()
    );
    let b = Tensor::full(&stream, 1.5f32, [256]).unwrap();
    kernels::add::n256(&stream, &a, &b, &mut out).unwrap();
    assert_eq!(
        out.to_vec().unwrap(),
        x.iter().map(|v| v + 1.5).collect::<Vec<_>>()
    );
}

#[test]
fn one_kernel_serves_every_length() {
    let stream = stream();
    for n in [1, 255, 256, 257, 1000] {
        let x = ramp(n);
        let expected: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
        let a = Tensor::from_slice(&stream, &x, [n]).unwrap();
        for kernel in [kernels::scale_blocks, kernels::scale_dyn] {
            let mut out = Tensor::zeros(&stream, [n]).unwrap();
            kernel(&stream, &a, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), expected, "n = {n}");
        }
    }
}

#[test]
fn nothing_is_launched_for_empty_tensors() {
    let stream = stream();
    let a = Tensor::<f32>::zeros(&stream, [0]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [0]).unwrap();
    kernels::scale_blocks(&stream, &a, &mut b).unwrap();
}

#[test]
fn transposes_of_ragged_sizes() {
    let stream = stream();
    for (m, n) in [(1, 1), (32, 32), (33, 31), (5, 100)] {
        let x = ramp(m * n);
        let a = Tensor::from_slice(&stream, &x, [m, n]).unwrap();
        let mut b = Tensor::zeros(&stream, [n, m]).unwrap();
        kernels::transpose(&stream, &a, &mut b).unwrap();
        assert_eq!(
            b.to_vec().unwrap(),
            a.permute(&[1, 0]).unwrap().to_vec().unwrap(),
            "{m} x {n}"
        );
    }
}

#[test]
fn views_are_arguments_like_any_other() {
    let stream = stream();
    let x = ramp(300);
    let a = Tensor::from_slice(&stream, &x, [300]).unwrap();
    let mut out = Tensor::<f32>::zeros(&stream, [600]).unwrap();
    let view = a.slice(0, 44..300).unwrap();
    kernels::scale(&stream, &view, &mut out.slice_mut(0, 100..356).unwrap()).unwrap();
    let out = out.to_vec().unwrap();
    assert_eq!(
        out[100..356],
        x[44..300].iter().map(|v| v * 2.0).collect::<Vec<_>>()
    );
    assert!(out[..100].iter().chain(&out[356..]).all(|v| *v == 0.0));
}

#[test]
fn work_on_two_streams_is_ordered_by_the_tensors() {
    let (first, second) = (stream(), stream());
    let a = Tensor::full(&first, 1.0f32, [1 << 20]).unwrap();
    let mut b = Tensor::zeros(&first, [1 << 20]).unwrap();
    let mut c = Tensor::zeros(&second, [1 << 20]).unwrap();
    kernels::scale_blocks(&first, &a, &mut b).unwrap();
    kernels::scale_blocks(&second, &b, &mut c).unwrap();
    drop(a);
    kernels::scale_blocks(&first, &c, &mut b).unwrap();
    assert!(b.to_vec().unwrap().iter().all(|v| *v == 8.0));
}

#[test]
fn a_specialization_is_chosen_at_run_time() {
    let stream = stream();
    let x = ramp(1024);
    let a = Tensor::from_slice(&stream, &x, [1024]).unwrap();
    let mut out = Tensor::zeros(&stream, [1024]).unwrap();
    kernels::add::launch(&stream, kernels::add::Constexpr { N: 1024 }, &a, &a, &mut out).unwrap();
    assert_eq!(out.to_vec().unwrap(), x.iter().map(|v| v + v).collect::<Vec<_>>());
    let error =
        kernels::add::launch(&stream, kernels::add::Constexpr { N: 512 }, &a, &a, &mut out).unwrap_err();
    assert!(matches!(error, Error::NotBuilt { kernel: "add", .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "kernel `add` was not built for N = 512; built: N = 256; N = 1024. Add the specialization to kernels.toml"
    );
}

/// Kernel, argument, field, expected and actual of a refused launch.
fn refused(result: tirx_rt::Result<()>) -> (&'static str, &'static str, &'static str, String, String) {
    match result.unwrap_err() {
        Error::Argument {
            kernel,
            argument,
            field,
            expected,
            actual,
            ..
        } => (kernel, argument, field, expected, actual),
        other => panic!("not about an argument: {other}"),
    }
}

#[test]
fn a_tensor_of_wrong_rank_is_refused() {
    let stream = stream();
    let a = Tensor::<f32>::zeros(&stream, [16, 16]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [256]).unwrap();
    let error = refused(kernels::scale(&stream, &a, &mut b));
    assert_eq!(error, ("scale", "a", "ndim", "1".to_string(), "2".to_string()));
}

#[test]
fn a_tensor_of_wrong_shape_is_refused() {
    let stream = stream();
    let a = Tensor::<f32>::zeros(&stream, [255]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [256]).unwrap();
    let error = refused(kernels::scale(&stream, &a, &mut b));
    assert_eq!(
        error,
        ("scale", "a", "shape[0]", "256".to_string(), "255".to_string())
    );
}

#[test]
fn an_inconsistent_symbolic_extent_is_refused() {
    let stream = stream();
    let a = Tensor::<f32>::zeros(&stream, [10]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [11]).unwrap();
    let error = refused(kernels::scale_blocks(&stream, &a, &mut b));
    assert_eq!(
        error,
        (
            "scale_blocks",
            "b",
            "shape[0]",
            "10 (a.shape[0])".to_string(),
            "11".to_string()
        )
    );
}

#[test]
fn strides_that_the_kernel_does_not_expect_are_refused() {
    let stream = stream();
    let a = Tensor::<f32>::zeros(&stream, [20, 30]).unwrap();
    let mut b = Tensor::<f32>::zeros(&stream, [20, 30]).unwrap();
    let transposed = a.permute(&[1, 0]).unwrap();
    let error = refused(kernels::transpose(&stream, &transposed, &mut b));
    assert_eq!((error.0, error.1, error.2), ("transpose", "a", "strides[1]"));
}

#[test]
fn a_misaligned_view_is_refused() {
    let stream = stream();
    let half = tirx_rt::f16::from_f32(1.0);
    let x = Tensor::full(&stream, half, [64 * 2048 + 1]).unwrap();
    let w = Tensor::full(&stream, half, [2048]).unwrap();
    let mut y = Tensor::zeros(&stream, [64, 2048]).unwrap();
    let shifted = x.slice(0, 1..64 * 2048 + 1).unwrap();
    let shifted = shifted.reshape([64, 2048]).unwrap();
    let error = refused(kernels::rmsnorm::rows64_d2048(
        &stream, &shifted, &w, &mut y, 1e-5,
    ));
    assert_eq!(
        (error.0, error.1, error.2),
        ("rmsnorm::rows64_d2048", "x", "data")
    );
    assert!(error.3.contains("8"), "expected: {}", error.3);
}

#[test]
fn a_tensor_on_another_device_is_refused() {
    let stream = stream();
    let elsewhere = Device::new_simulator().default_stream();
    let here = Tensor::<f32>::zeros(&stream, [256]).unwrap();
    let mut there = Tensor::<f32>::zeros(&elsewhere, [256]).unwrap();
    let other = Tensor::<f32>::zeros(&elsewhere, [256]).unwrap();
    // Two tensors apart, and two together but not where the stream is.
    let error = refused(kernels::scale(&stream, &here, &mut there));
    assert_eq!((error.0, error.1, error.2), ("scale", "b", "device_id"));
    let error = refused(kernels::scale(&stream, &other, &mut there));
    assert_eq!((error.0, error.1, error.2), ("scale", "a", "device"));
    assert_eq!(error.3, format!("{:?}", stream.device()));
}

#[test]
fn the_raw_layer_takes_addresses() {
    let stream = stream();
    let x = ramp(256);
    let a = Tensor::from_slice(&stream, &x, [256]).unwrap();
    let b = Tensor::<f32>::zeros(&stream, [256]).unwrap();
    // SAFETY: both addresses are those of 256 floats on the stream's device, alive until the read below.
    unsafe { kernels::scal::raw(&stream, a.address(), b.address(), 3.0) }.unwrap();
    assert_eq!(b.to_vec().unwrap(), x.iter().map(|v| v * 3.0).collect::<Vec<_>>());
}

#[test]
fn a_callers_own_cudarc_memory_is_an_argument() {
    let stream = stream();
    let Some(cuda) = stream.as_cudarc().cloned() else {
        return;
    };
    let x = ramp(256);
    let theirs = cuda.clone_htod(&x).unwrap();
    let mut out = cuda.alloc_zeros::<f32>(256).unwrap();
    let a = Tensor::borrow_cudarc(&stream, &theirs, [256]).unwrap();
    let mut b = Tensor::borrow_cudarc_mut(&stream, &mut out, [256]).unwrap();
    kernels::scale(&stream, &a, &mut b).unwrap();
    drop(b);
    let expected: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
    assert_eq!(cuda.clone_dtoh(&out).unwrap(), expected);
    let owned = Tensor::from_cudarc(out, [16, 16]).unwrap();
    assert_eq!(owned.to_vec().unwrap(), expected);
    assert_eq!(
        cuda.clone_dtoh(&owned.into_cudarc().ok().unwrap()).unwrap(),
        expected
    );
}
