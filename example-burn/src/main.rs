//! Compares each function with burn's own operations in float32.

use burn_tensor::{DType, Device, Distribution, Tensor, activation};
use example_burn::{Result, attention, matmul, rms_norm};
use tirx_kernels::{attention::Options, norm};
use tirx_rt::{bf16, f16};

fn main() -> Result<()> {
    let stream = tirx_rt::Device::best()?.default_stream();
    let device = Device::default();

    let (a, b) = (
        random([24, 64], DType::BF16, &device),
        random([64, 40], DType::BF16, &device),
    );
    compare(
        "matmul",
        matmul::<bf16, 2>(&stream, &a, &b)?,
        exact(&a).matmul(exact(&b)),
    )?;

    let [q, k, v] = [(); 3].map(|()| random([1, 2, 32, 64], DType::F16, &device));
    let scores = exact(&q).matmul(exact(&k).transpose()) / 8.0;
    let later = Tensor::<4>::ones([1, 1, 32, 32], &device).triu(1) * -1e9;
    let expected = activation::softmax(scores + later, 3).matmul(exact(&v));
    compare(
        "causal attention",
        attention::<f16>(&stream, &q, &k, &v, Options::causal())?,
        expected,
    )?;

    let (x, weight) = (
        random([8, 128], DType::F32, &device),
        random([128], DType::F32, &device),
    );
    let y = rms_norm::<f32, 2>(&stream, &x, &weight, norm::Options::eps(1e-5))?;
    let mean = x.clone().square().mean_dim(1) + 1e-5;
    compare("RMSNorm", y, x / mean.sqrt() * weight.unsqueeze())
}

fn random<const D: usize>(shape: [usize; D], dtype: DType, device: &Device) -> Tensor<D> {
    Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.0), device).cast(dtype)
}

fn exact<const D: usize>(tensor: &Tensor<D>) -> Tensor<D> {
    tensor.clone().cast(DType::F32)
}

/// Prints the largest difference as a part of the largest number, or refuses it.
fn compare<const D: usize>(name: &str, found: Tensor<D>, expected: Tensor<D>) -> Result<()> {
    let largest = |tensor: Tensor<D>| tensor.abs().max().into_scalar::<f32>();
    let difference = largest(exact(&found) - expected.clone()) / largest(expected);
    // Half a step of bfloat16's 8 bits, and some for the sums.
    if difference.is_nan() || difference > 0.01 {
        return Err(format!("{name}: a difference of {difference}").into());
    }
    println!("{name}: differs by {difference:.4}");
    Ok(())
}
