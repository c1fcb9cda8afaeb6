//! Storages and layouts of candle as tensors of tirx.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Error, Layout, Result, Shape, WithDType, bail};
#[cfg(feature = "cuda")]
use candle_core::{
    CudaStorage,
    cuda::CudaDType,
    cuda::cudarc::driver::{DeviceRepr, ValidAsZeroBits},
};
use tirx_kernels::{attention, gemm};
use tirx_rt::{Device, Element, Stream, Tensor, View, bf16, f16};

/// The element types of the operations.
pub(crate) trait Number:
    Element + WithDType + gemm::Element + attention::Element + tirx_kernels::Element
{
}
impl Number for bf16 {}
impl Number for f16 {}

/// An operation on `N` tensors of one element type.
pub(crate) trait Operation<const N: usize> {
    /// The shape of the result, from the shapes of the inputs.
    fn shape(&self, inputs: [&[usize]; N]) -> Result<Vec<usize>>;

    /// Writes the result, or refuses the inputs.
    fn launch<T: Number>(
        &self,
        stream: &Stream,
        inputs: [&Tensor<T>; N],
        output: &mut Tensor<T>,
    ) -> tirx_kernels::Result<()>;
}

/// Launches an operation on inputs whose elements lie in `memory` as the layouts say. No element moves.
fn launch<T: Number, const N: usize>(
    operation: &impl Operation<N>,
    stream: &Stream,
    memory: [&Tensor<T>; N],
    layouts: [&Layout; N],
    output: &mut Tensor<T>,
) -> Result<()> {
    let inputs: Vec<View<'_, T>> = memory
        .into_iter()
        .zip(layouts)
        .map(|(memory, layout)| memory.as_strided(layout.start_offset(), layout.dims(), layout.stride()))
        .collect::<tirx_rt::Result<_>>()
        .map_err(Error::wrap)?;
    operation
        .launch(stream, std::array::from_fn(|number| &*inputs[number]), output)
        .map_err(Error::wrap)
}

/// Copies tensors of the CPU to the simulator and the result back.
pub(crate) fn on_simulator<const N: usize>(
    operation: &impl Operation<N>,
    inputs: [(&CpuStorage, &Layout); N],
) -> Result<(CpuStorage, Shape)> {
    fn run<T: Number, const N: usize>(
        operation: &impl Operation<N>,
        inputs: [(&CpuStorage, &Layout); N],
    ) -> Result<(CpuStorage, Shape)> {
        let stream = Device::simulator().default_stream();
        let layouts = inputs.map(|(_, layout)| layout);
        let shape = operation.shape(layouts.map(Layout::dims))?;
        let copy = |(storage, _): &(&CpuStorage, &Layout)| {
            let values = T::cpu_storage_as_slice(storage)?;
            Tensor::from_slice(&stream, values, [values.len()]).map_err(Error::wrap)
        };
        let memory: Vec<Tensor<T>> = inputs.iter().map(copy).collect::<Result<_>>()?;
        let mut output = Tensor::zeros(&stream, &shape[..]).map_err(Error::wrap)?;
        let memory = std::array::from_fn(|number| &memory[number]);
        launch(operation, &stream, memory, layouts, &mut output)?;
        let values = output.to_vec().map_err(Error::wrap)?;
        Ok((T::to_cpu_storage_owned(values), shape.into()))
    }

    match inputs[0].0.dtype() {
        DType::BF16 => run::<bf16, N>(operation, inputs),
        DType::F16 => run::<f16, N>(operation, inputs),
        other => bail!("kernels for bf16 and f16, not for {other:?}"),
    }
}

/// Launches on candle's stream, in the memory of candle's tensors.
#[cfg(feature = "cuda")]
pub(crate) fn on_gpu<const N: usize>(
    operation: &impl Operation<N>,
    inputs: [(&CudaStorage, &Layout); N],
) -> Result<(CudaStorage, Shape)> {
    fn run<T: Number + CudaDType + DeviceRepr + ValidAsZeroBits, const N: usize>(
        operation: &impl Operation<N>,
        inputs: [(&CudaStorage, &Layout); N],
    ) -> Result<(CudaStorage, Shape)> {
        let device = inputs[0].0.device();
        let stream = Stream::from_cudarc(device.cuda_stream());
        let layouts = inputs.map(|(_, layout)| layout);
        let shape = operation.shape(layouts.map(Layout::dims))?;
        let borrow = |(storage, _)| {
            let slice = CudaStorage::as_cuda_slice::<T>(storage)?;
            Tensor::borrow_cudarc(&stream, slice, [slice.len()]).map_err(Error::wrap)
        };
        let memory: Vec<View<'_, T>> = inputs.into_iter().map(borrow).collect::<Result<_>>()?;
        let memory = std::array::from_fn(|number| &*memory[number]);
        // `unsafe { device.alloc(…) }` saves the zeros: the kernels write all elements.
        let mut result = device.alloc_zeros::<T>(shape.iter().product())?;
        let mut output = Tensor::borrow_cudarc_mut(&stream, &mut result, &shape[..]).map_err(Error::wrap)?;
        launch(operation, &stream, memory, layouts, &mut output)?;
        drop(output);
        Ok((CudaStorage::wrap_cuda_slice(result, device.clone()), shape.into()))
    }

    match inputs[0].0.dtype() {
        DType::BF16 => run::<bf16, N>(operation, inputs),
        DType::F16 => run::<f16, N>(operation, inputs),
        other => bail!("kernels for bf16 and f16, not for {other:?}"),
    }
}
