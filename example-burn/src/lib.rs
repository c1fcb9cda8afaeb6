//! Kernels of `tirx-kernels` on tensors of burn, of any backend.
//!
//! The elements pass through the memory of the CPU, as burn's `TensorData`. The stream decides whether a kernel runs on a GPU or on the simulator.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::error::Error;

use burn_tensor::{Device, Element as BurnElement, Tensor as BurnTensor, TensorData};
use tirx_kernels::{attention, gemm, norm};
use tirx_rt::{Element, Stream, Tensor};

/// A result with an error of burn or of tirx.
pub type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The product of two matrices, or of two batches of matrices (`D` = 3), of `bf16` or `f16`.
///
/// # Errors
/// Other elements than those of `T`, shapes that do not fit each other, errors of the launch.
pub fn matmul<T: BurnElement + gemm::Element + Element, const D: usize>(
    stream: &Stream,
    a: &BurnTensor<D>,
    b: &BurnTensor<D>,
) -> Result<BurnTensor<D>> {
    let mut shape = a.dims();
    shape[D - 1] = b.dims()[D - 1];
    let mut c = Tensor::<T>::zeros(stream, shape)?;
    gemm::matmul(stream, &from_burn(stream, a)?, &from_burn(stream, b)?, &mut c)?;
    to_burn(&c, &a.device())
}

/// Attention of Q to K and V, `[batch, heads, rows, head]`, of `bf16` or `f16`. K and V may have fewer heads than Q.
///
/// # Errors
/// As for [`matmul`].
pub fn attention<T: BurnElement + attention::Element + Element>(
    stream: &Stream,
    q: &BurnTensor<4>,
    k: &BurnTensor<4>,
    v: &BurnTensor<4>,
    options: attention::Options,
) -> Result<BurnTensor<4>> {
    let mut shape = q.dims();
    shape[3] = v.dims()[3];
    let mut o = Tensor::<T>::zeros(stream, shape)?;
    let [tirx_q, tirx_k, tirx_v] = [q, k, v].map(|tensor| from_burn(stream, tensor));
    attention::forward(stream, &tirx_q?, &tirx_k?, &tirx_v?, &mut o, options)?;
    to_burn(&o, &q.device())
}

/// RMSNorm of each row of X, times a weight for each column, of `bf16`, `f16` or `f32`.
///
/// # Errors
/// As for [`matmul`].
pub fn rms_norm<T: BurnElement + tirx_kernels::Element + Element, const D: usize>(
    stream: &Stream,
    x: &BurnTensor<D>,
    weight: &BurnTensor<1>,
    options: norm::Options,
) -> Result<BurnTensor<D>> {
    let mut y = Tensor::<T>::zeros(stream, x.dims())?;
    norm::rms_norm(
        stream,
        &from_burn(stream, x)?,
        &from_burn(stream, weight)?,
        &mut y,
        options,
    )?;
    to_burn(&y, &x.device())
}

/// A copy on the stream's device.
fn from_burn<T: BurnElement + Element, const D: usize>(
    stream: &Stream,
    tensor: &BurnTensor<D>,
) -> Result<Tensor<T>> {
    let data = tensor.try_to_data()?;
    Ok(Tensor::from_slice(stream, data.as_slice::<T>()?, tensor.dims())?)
}

/// A copy on burn's device.
fn to_burn<T: BurnElement + Element, const D: usize>(
    tensor: &Tensor<T>,
    device: &Device,
) -> Result<BurnTensor<D>> {
    let data = TensorData::new(tensor.to_vec()?, tensor.shape());
    Ok(BurnTensor::from_data(data, (device, T::dtype())))
}
