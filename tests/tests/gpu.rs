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

#[test]
fn a_graph_runs_what_was_captured() {
    let stream = stream();
    let a = Tensor::from_slice(&stream, &ramp(256), [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    let mut c = Tensor::zeros(&stream, [256]).unwrap();
    let graph = stream
        .capture(|s| {
            kernels::scale(s, &a, &mut b)?;
            kernels::add::n256(s, &a, &b, &mut c)
        })
        .unwrap();
    assert_eq!(graph.len().unwrap(), 2);
    let other = device().new_stream().unwrap();
    graph.launch(&other).unwrap();
    graph.launch(&stream).unwrap();
    // Other tensors and values, in the same graph.
    let a2 = Tensor::full(&stream, 2.0f32, [256]).unwrap();
    let mut b2 = Tensor::zeros(&stream, [256]).unwrap();
    let mut c2 = Tensor::zeros(&stream, [256]).unwrap();
    let graph = graph
        .update(&stream, |s| {
            kernels::scale(s, &a2, &mut b2)?;
            kernels::add::n256(s, &a2, &b2, &mut c2)
        })
        .unwrap();
    graph.launch(&other).unwrap();
    // Other operations: the graph is made anew.
    let mut z = Tensor::full(&stream, 5.0f32, [256]).unwrap();
    let graph = graph.update(&stream, |s| z.fill_zero(s)).unwrap();
    graph.launch(&stream).unwrap();
    let expected: Vec<f32> = ramp(256).iter().map(|v| v * 3.0).collect();
    assert_eq!(c.to_vec().unwrap(), expected);
    assert_eq!(c2.to_vec().unwrap(), [6.0; 256]);
    assert_eq!(z.to_vec().unwrap(), [0.0; 256]);
}

/// A graph and its tensors in one struct; what lies between them is the graph's alone.
struct Doubling {
    input: Tensor<f32>,
    output: Tensor<f32>,
    graph: tirx_rt::Graph,
}

impl Doubling {
    fn record(stream: &Stream) -> Result<Doubling, Error> {
        let input = Tensor::zeros(stream, [256])?;
        let mut output = Tensor::zeros(stream, [256])?;
        let mut between = Tensor::zeros(stream, [512])?;
        let input_of_graph = &input;
        let output_of_graph = &mut output;
        let graph = stream.capture(move |s| {
            kernels::scale(s, input_of_graph, &mut between.slice_mut(0, 256..512)?)?;
            kernels::scale(s, &between.slice(0, 256..512)?, output_of_graph)
        })?;
        Ok(Doubling { input, output, graph })
    }
}

#[test]
fn a_graph_keeps_its_memory_and_the_program_its_tensors() {
    let (first, second) = (stream(), stream());
    let mut doubling = Doubling::record(&first).unwrap();
    // Memory that the graph's would be, had it been freed.
    let others: Vec<Tensor<f32>> = (0..8)
        .map(|i| Tensor::full(&first, 9.0, [256 << (i % 2)]).unwrap())
        .collect();
    for step in 0..4u8 {
        // Any stream: each follows the uses before.
        let (write, launch) = if step % 2 == 0 {
            (&first, &second)
        } else {
            (&second, &first)
        };
        let values = [f32::from(step); 256];
        doubling.input.copy_from_slice(write, &values).unwrap();
        doubling.graph.launch(launch).unwrap();
        assert_eq!(doubling.output.to_vec().unwrap(), values.map(|v| v * 4.0));
    }
    let Doubling { input, output, graph } = doubling;
    drop((input, output));
    graph.launch(&second).unwrap();
    for other in &others {
        assert!(other.to_vec().unwrap().iter().all(|v| *v == 9.0));
    }
    drop(graph);
    // What was freed may be used again at once, on another stream.
    let again: Vec<Tensor<f32>> = (0..8)
        .map(|_| Tensor::full(&first, 1.0, [256]).unwrap())
        .collect();
    assert!(again.iter().all(|t| t.to_vec().unwrap() == [1.0; 256]));
}

#[test]
fn a_graph_copies_tensors_and_pinned_memory() {
    let stream = stream();
    let mut from = tirx_rt::Pinned::<f32>::zeroed(&stream.device(), 256).unwrap();
    let mut to = tirx_rt::Pinned::<f32>::zeroed(&stream.device(), 256).unwrap();
    let mut a = Tensor::zeros(&stream, [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    let mut c = Tensor::zeros(&stream, [2, 256]).unwrap();
    let graph = stream
        .capture(|s| {
            a.copy_from_pinned(s, &from)?;
            kernels::scale(s, &a, &mut b)?;
            c.reshape_mut([512])?.slice_mut(0, 256..512)?.copy_from(s, &b)?;
            c.slice(0, 1..2)?.reshape([256])?.copy_to_pinned(s, &mut to)
        })
        .unwrap();
    assert_eq!(graph.len().unwrap(), 4);
    assert_eq!(to.as_slice().unwrap(), [0.0; 256], "nothing has run");
    for step in 1..5u8 {
        from.as_mut_slice().unwrap().fill(f32::from(step));
        graph.launch(&stream).unwrap();
        assert_eq!(to.as_slice().unwrap(), [f32::from(step) * 2.0; 256]);
    }
    let slice = to.as_slice().unwrap();
    let error = graph.launch(&stream).unwrap_err().to_string();
    assert_eq!(
        error,
        "the graph writes pinned memory that the program looks at: drop the slice before the launch"
    );
    drop(slice);
    drop((from, to, a, b));
    graph.launch(&stream).unwrap();
    assert_eq!(c.slice(0, 1..2).unwrap().to_vec().unwrap(), [8.0; 256]);
}

#[test]
fn a_graph_is_launched_on_its_device_alone() {
    let stream = stream();
    let mut a = Tensor::full(&stream, 1.0f32, [256]).unwrap();
    let graph = stream.capture(|s| a.fill_zero(s)).unwrap();
    let other = Device::new_simulator().default_stream();
    let error = graph.launch(&other).unwrap_err().to_string();
    assert!(error.starts_with("the graph was captured on "), "{error}");
    let (here, there) = (stream.record().unwrap(), other.record().unwrap());
    let error = here.elapsed_since(&there).unwrap_err().to_string();
    assert!(
        error.starts_with("no time passes between events of two devices: "),
        "{error}"
    );
    assert_eq!(a.to_vec().unwrap(), [1.0; 256]);
}

#[test]
fn launches_of_graphs_and_reads_in_other_threads_take_turns() {
    let stream = stream();
    let a = Tensor::full(&stream, 1.0f32, [1 << 16]).unwrap();
    let b = Tensor::full(&stream, 2.0f32, [1 << 16]).unwrap();
    let mut t = Tensor::full(&stream, 1.0f32, [1 << 16]).unwrap();
    let graphs = [&a, &b].map(|from| stream.capture(|s| t.copy_from(s, from)).unwrap());
    std::thread::scope(|scope| {
        for graph in &graphs {
            scope.spawn(|| {
                let stream = device().new_stream().unwrap();
                (0..100).for_each(|_| graph.launch(&stream).unwrap());
            });
        }
        for _ in 0..50 {
            let values = t.to_vec().unwrap();
            assert!(values.iter().all(|v| *v == values[0]), "a part of a copy is seen");
        }
    });
}

#[test]
fn nothing_runs_while_it_is_captured() {
    let stream = stream();
    let a = Tensor::full(&stream, 1.0f32, [256]).unwrap();
    let mut b = Tensor::full(&stream, 7.0f32, [256]).unwrap();
    drop(stream.capture(|s| kernels::scale(s, &a, &mut b)).unwrap());
    assert_eq!(b.to_vec().unwrap(), [7.0; 256]);
    let refused = |work: &mut dyn FnMut(&Stream) -> Result<(), Error>| {
        let error = stream.capture(|s| work(s)).unwrap_err();
        assert!(matches!(error, Error::Capture { .. }), "{error:?}");
        error.to_string()
    };
    let message = refused(&mut |s| Tensor::<f32>::zeros(s, [4]).map(drop));
    assert_eq!(
        message,
        "an allocation cannot be a part of a graph; do it before or after the capture"
    );
    refused(&mut |s| b.copy_from_slice(s, &[0.0; 256]));
    refused(&mut |_| a.to_vec().map(drop));
    refused(&mut |s| s.record().map(drop));
    refused(&mut |s| s.synchronize());
    refused(&mut |s| s.device().synchronize());
    refused(&mut |s| s.is_done().map(drop));
    refused(&mut |s| s.completion().map(drop));
    let event = stream.record().unwrap();
    refused(&mut |s| s.wait(&event));
    let message = refused(&mut |_| kernels::scale(&stream, &a, &mut b));
    assert!(message.contains("this is another stream"), "{message}");
    let panics = || stream.capture(|_| panic!("in a capture")).map(drop);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    // A capture that failed leaves nothing behind.
    kernels::scale(&stream, &a, &mut b).unwrap();
    assert_eq!(b.to_vec().unwrap(), [2.0; 256]);
}

#[test]
fn events_time_work_and_order_streams() {
    let (first, second) = (stream(), device().new_stream_with_priority(1).unwrap());
    let a = Tensor::full(&first, 1.0f32, [256]).unwrap();
    let mut b = Tensor::zeros(&first, [256]).unwrap();
    let start = first.record().unwrap();
    kernels::scale(&first, &a, &mut b).unwrap();
    let end = first.record().unwrap();
    second.wait(&end).unwrap();
    second.synchronize().unwrap();
    assert!(end.is_done().unwrap() && second.is_done().unwrap());
    let time = end.elapsed_since(&start).unwrap();
    assert!(time.as_secs() < 60, "{time:?}");
    end.synchronize().unwrap();
}

#[test]
fn pinned_memory_is_copied_without_waiting() {
    let stream = stream();
    let mut host = tirx_rt::Pinned::<f32>::zeroed(&device(), 256).unwrap();
    host.as_mut_slice().unwrap().copy_from_slice(&ramp(256));
    let mut a = Tensor::zeros(&stream, [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    a.copy_from_pinned(&stream, &host).unwrap();
    kernels::scale(&stream, &a, &mut b).unwrap();
    // The copy back waits for the copy in, on another stream, too.
    b.copy_to_pinned(&device().new_stream().unwrap(), &mut host)
        .unwrap();
    let expected: Vec<f32> = ramp(256).iter().map(|v| v * 2.0).collect();
    assert_eq!(host.as_slice().unwrap(), expected);
    let error = b
        .slice(0, 0..4)
        .unwrap()
        .copy_to_pinned(&stream, &mut host)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "256 pinned values do not fill a tensor of shape [4] and strides [1]"
    );
}

#[test]
fn a_completion_is_a_future_of_any_executor() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let stream = stream();
    let a = Tensor::full(&stream, 1.0f32, [256]).unwrap();
    let mut b = Tensor::zeros(&stream, [256]).unwrap();
    kernels::scale(&stream, &a, &mut b).unwrap();
    // One that is dropped cancels nothing.
    drop(stream.completion().unwrap());
    let mut done = std::pin::pin!(stream.completion().unwrap());
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let outcome = loop {
        match std::future::Future::poll(done.as_mut(), &mut context) {
            std::task::Poll::Ready(outcome) => break outcome,
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    outcome.unwrap();
    assert_eq!(b.to_vec().unwrap(), [2.0; 256]);
}

#[test]
fn parts_of_a_tensor_are_written_at_once_and_tensors_are_copied() {
    let stream = stream();
    let a = Tensor::from_slice(&stream, &ramp(256), [256]).unwrap();
    let mut all = Tensor::<f32>::zeros(&stream, [2, 256]).unwrap();
    let (mut top, mut bottom) = all.split_at_mut(0, 1).unwrap();
    kernels::scale(&stream, &a, &mut top.reshape_mut([256]).unwrap()).unwrap();
    kernels::scal(&stream, &a, &mut bottom.reshape_mut([256]).unwrap(), -1.0).unwrap();
    let x = ramp(256);
    let expected: Vec<f32> = x.iter().map(|v| v * 2.0).chain(x.iter().map(|v| -v)).collect();
    assert_eq!(all.to_vec().unwrap(), expected);
    let rows = all.windows(0, 1).unwrap();
    assert_eq!((rows.len(), rows[1].to_vec().unwrap()[0]), (2, -x[0]));
    assert_eq!(all.windows_mut(1, 100).unwrap()[2].shape(), [2, 56]);
    // To another stream, and to another device where there is one.
    let copy = all.to(&device().new_stream().unwrap()).unwrap();
    assert_eq!(copy.to_vec().unwrap(), expected);
    let elsewhere = match Device::cuda_count() {
        2.. if !device().is_simulator() => Device::cuda(1).unwrap(),
        _ => Device::new_simulator(),
    };
    let far = all.to(&elsewhere.default_stream()).unwrap();
    assert_eq!((far.device(), far.to_vec().unwrap()), (elsewhere, expected));
    let error = all.copy_from(&stream, &a).unwrap_err().to_string();
    assert_eq!(
        error,
        "a tensor of shape [256] and strides [1] cannot be copied to one of shape [2, 256] and strides [256, 1]"
    );
    assert!(all.windows(2, 1).is_err() && all.split_at_mut(0, 3).is_err());
    device().trim_memory(0).unwrap();
    assert_eq!(device().memory().unwrap().is_none(), device().is_simulator());
}

#[test]
fn two_devices_work_from_two_threads_and_exchange_tensors() {
    let second = match Device::cuda_count() {
        2.. if !device().is_simulator() => Device::cuda(1).unwrap(),
        _ => Device::new_simulator(),
    };
    let streams = [device().new_stream().unwrap(), second.new_stream().unwrap()];
    // Small whole numbers: doubled twelve times they are exact.
    let x: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let doubled: Vec<Tensor<f32>> = std::thread::scope(|scope| {
        let threads = streams.each_ref().map(|stream| {
            let x = &x;
            scope.spawn(move || {
                let mut a = Tensor::from_slice(stream, x, [256]).unwrap();
                let mut b = Tensor::zeros(stream, [256]).unwrap();
                for _ in 0..12 {
                    kernels::scale(stream, &a, &mut b).unwrap();
                    std::mem::swap(&mut a, &mut b);
                }
                a
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Nobody has waited: each copy follows the kernels that write its source, on the other device.
    for (stream, there) in [(&streams[0], &doubled[1]), (&streams[1], &doubled[0])] {
        let mut here = there.to(stream).unwrap();
        let mut sum = Tensor::zeros(stream, [256]).unwrap();
        let own = doubled.iter().find(|t| t.device() == stream.device()).unwrap();
        kernels::add::n256(stream, own, &here, &mut sum).unwrap();
        let expected: Vec<f32> = x.iter().map(|v| v * 8192.0).collect();
        assert_eq!(sum.to_vec().unwrap(), expected);
        // Back again, into a tensor that exists.
        here.copy_from(stream, own).unwrap();
        let mut back = Tensor::zeros(&there.device().default_stream(), [256]).unwrap();
        back.copy_from(&there.device().default_stream(), &here).unwrap();
        assert_eq!(back.to_vec().unwrap(), own.to_vec().unwrap());
    }
}
