//! Compares each operation with candle's own in float32, on the first GPU or on the CPU.

use candle_core::{D, DType, Device, Result, Tensor, Var, bail};
use example_candle::{Attention, Matmul, RmsNorm};
use tirx_kernels::{attention, norm};

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    for dtype in [DType::BF16, DType::F16] {
        let random = |shape: &[usize]| Tensor::randn(0f32, 1.0, shape, &device)?.to_dtype(dtype);
        let exact = |tensor: &Tensor| tensor.to_dtype(DType::F32);

        // A projection: the weights are `[out, in]`, and their transpose is a view.
        let (x, weights) = (random(&[24, 64])?, random(&[40, 64])?);
        let y = x.apply_op2(&weights.t()?, Matmul)?;
        compare(
            &format!("matmul {dtype:?}"),
            &y,
            &exact(&x)?.matmul(&exact(&weights)?.t()?)?,
        )?;

        // A batch, each time with the same matrix, and a part of the columns.
        let (a, b) = (random(&[3, 20, 48])?, random(&[32, 24])?);
        let (a, b) = (a.narrow(2, 16, 32)?, b.broadcast_as((3, 32, 24))?);
        let expected = exact(&a)?.contiguous()?.matmul(&exact(&b)?.contiguous()?)?;
        compare(
            &format!("matmul of views {dtype:?}"),
            &a.apply_op2(&b, Matmul)?,
            &expected,
        )?;

        // Gradients.
        let (a, b) = (Var::from_tensor(&random(&[16, 24])?)?, random(&[24, 8])?);
        let gradients = a.apply_op2(&b, Matmul)?.sum_all()?.backward()?;
        let Some(gradient) = gradients.get(&a) else {
            bail!("no gradient of A");
        };
        let expected = Tensor::ones((16, 8), DType::F32, &device)?.matmul(&exact(&b)?.t()?)?;
        compare(&format!("gradient of matmul {dtype:?}"), gradient, &expected)?;

        // Tensors `[batch, rows, heads, head]`, four heads of Q for two of K and V.
        let heads = |count| random(&[1, 32, count, 64])?.transpose(1, 2);
        let (q, k, v) = (heads(4)?, heads(2)?, heads(2)?);
        let options = attention::Options::causal();
        let o = q.apply_op3(&k, &v, Attention { options })?;
        compare(
            &format!("causal attention {dtype:?}"),
            &o,
            &causal_attention(&exact(&q)?, &exact(&k)?, &exact(&v)?)?,
        )?;

        let (x, weight) = (random(&[8, 128])?, random(&[128])?);
        let options = norm::Options::eps(1e-5);
        let y = x.apply_op2(&weight, RmsNorm { options })?;
        let mean = (exact(&x)?.sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?;
        let expected = exact(&x)?
            .broadcast_div(&mean.sqrt()?)?
            .broadcast_mul(&exact(&weight)?)?;
        compare(&format!("RMSNorm {dtype:?}"), &y, &expected)?;
    }
    Ok(())
}

/// The definition, with a matrix of scores in memory.
fn causal_attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let (batch, heads, rows, head) = q.dims4()?;
    let group = heads / k.dim(1)?;
    let repeat = |kv: &Tensor| {
        kv.unsqueeze(2)?
            .broadcast_as((batch, heads / group, group, rows, head))?
            .reshape((batch, heads, rows, head))
    };
    let scores = (q.contiguous()?.matmul(&repeat(k)?.t()?)? / (head as f64).sqrt())?;
    let later = Tensor::tril2(rows, DType::F32, q.device())?.affine(1e9, -1e9)?;
    let scores = scores.broadcast_add(&later)?;
    let weights = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
    let weights = weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?;
    weights.matmul(&repeat(v)?)
}

/// Prints the largest difference as a part of the largest number, or refuses it.
fn compare(name: &str, found: &Tensor, expected: &Tensor) -> Result<()> {
    let largest = |tensor: &Tensor| tensor.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>();
    if found.dims() != expected.dims() {
        bail!(
            "{name}: the shape {:?} instead of {:?}",
            found.dims(),
            expected.dims()
        );
    }
    let difference = largest(&(found.to_dtype(DType::F32)? - expected)?)? / largest(expected)?;
    // Half a step of bfloat16's 8 bits, and some for the sums.
    if difference.is_nan() || difference > 0.01 {
        bail!("{name}: a difference of {difference}");
    }
    println!("{name}: differs by {difference:.4}");
    Ok(())
}
