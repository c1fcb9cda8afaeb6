//! Products with scales, bias, activation, residual and other element types: a builder of the call.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::general::{Operands, with_call};
use super::launch::Input;
use crate::Result;

/// A function of each element of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `x Φ(x)` with the distribution function of the normal distribution: `x (1 + erf(x / √2)) / 2`.
    Gelu,
    /// The approximation of GELU `x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2`.
    GeluTanh,
    /// `x / (1 + exp(-x))`, also called swish.
    Silu,
}

impl Activation {
    /// The number by which kernels know it; 0 is none.
    pub(super) fn number(activation: Option<Activation>) -> i32 {
        match activation {
            None => 0,
            Some(Activation::Relu) => 1,
            Some(Activation::Gelu) => 2,
            Some(Activation::GeluTanh) => 3,
            Some(Activation::Silu) => 4,
        }
    }
}

/// A product with more than C = A B, in one launch: `C = activation(scale scale_a scale_b A B + bias) + residual`.
///
/// All parts are optional. They are computed in float32, and C is rounded once. C may have other elements than A and B:
///
/// | A, B | C, bias, residual |
/// |---|---|
/// | [`bf16`](tirx_rt::bf16) | `bf16`, `f32` |
/// | [`f16`](tirx_rt::f16) | `f16`, `f32` |
/// | [`f8e4m3`](tirx_rt::f8e4m3) | `bf16`, `f16`, `f32` |
/// | [`f8e5m2`](tirx_rt::f8e5m2) | `bf16`, `f32` |
/// | `i8` | `i32` (without scales and activation), `bf16` |
/// | `f32`, of which the tensor cores read the upper 19 bits (tf32) | `f32` |
///
/// Elements of 8 bits are multiplied on Hopper. Their A and B are contiguous along K (store B as `[N, K]` and pass a permuted view), and
/// other strides and addresses are multiples of 16 bytes. Other elements may have any strides, on every GPU from `sm_80` on; float32 is fastest if
/// it is contiguous along K.
///
/// The tensor cores of Hopper add products of 8-bit floats with fewer bits than float32 has, as PyTorch's `use_fast_accum`. [`block_scales`](Matmul::block_scales)
/// adds every 128 of them in float32, also with scales of 1.
///
/// ```
/// use tirx_kernels::gemm::{Activation, Matmul};
/// # use tirx_rt::{Device, Tensor, bf16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[bf16::ONE; 3 * 16], [3, 16])?;
/// let weights = Tensor::from_slice(&stream, &[bf16::ONE; 40 * 16], [40, 16])?;
/// let bias = Tensor::from_slice(&stream, &[bf16::from_f32(-20.0); 40], [40])?;
/// let mut y = Tensor::zeros(&stream, [3, 40])?;
/// Matmul::new()
///     .bias(&bias)
///     .activation(Activation::Relu)
///     .residual(&x_of(&stream)?)
///     .run(&stream, &x, &weights.permute(&[1, 0])?, &mut y)?;
/// assert_eq!(y.to_vec()?, [bf16::ONE; 3 * 40]); // max(16 - 20, 0) + 1
/// # fn x_of(stream: &tirx_rt::Stream) -> tirx_kernels::Result<Tensor<bf16>> {
/// #     Ok(Tensor::from_slice(stream, &[bf16::ONE; 3 * 40], [3, 40])?)
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Matmul<'a, O: tirx_rt::Element> {
    pub(super) bias: Option<&'a Tensor<O>>,
    pub(super) activation: Option<Activation>,
    pub(super) residual: Option<&'a Tensor<O>>,
    pub(super) scale: f32,
    pub(super) scale_a: Option<&'a Tensor<f32>>,
    pub(super) scale_b: Option<&'a Tensor<f32>>,
    /// Whether the scales are those of blocks.
    pub(super) by_blocks: bool,
    pub(super) constant_b: bool,
}

impl<O: tirx_rt::Element> Default for Matmul<'_, O> {
    fn default() -> Self {
        Matmul::new()
    }
}

impl<'a, O: tirx_rt::Element> Matmul<'a, O> {
    /// C = A B.
    pub fn new() -> Matmul<'a, O> {
        Matmul {
            bias: None,
            activation: None,
            residual: None,
            scale: 1.0,
            scale_a: None,
            scale_b: None,
            by_blocks: false,
            constant_b: false,
        }
    }

    /// Adds a number to each column of C, before the activation: `[N]`, or `[batch, N]`.
    #[must_use]
    pub fn bias(self, bias: &'a impl AsTensor<O>) -> Matmul<'a, O> {
        Matmul {
            bias: Some(bias.tensor()),
            ..self
        }
    }

    /// Applies a function to each element.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Matmul<'a, O> {
        Matmul {
            activation: Some(activation),
            ..self
        }
    }

    /// Adds a tensor of the shape of C, after the activation.
    #[must_use]
    pub fn residual(self, residual: &'a impl AsTensor<O>) -> Matmul<'a, O> {
        Matmul {
            residual: Some(residual.tensor()),
            ..self
        }
    }

    /// Multiplies A B by a number.
    #[must_use]
    pub fn scale(self, scale: f32) -> Matmul<'a, O> {
        Matmul { scale, ..self }
    }

    /// Multiplies A by scales in device memory: one number `[1]`, one for each row `[M]`, or `[batch, 1]` or `[batch, M]`.
    #[must_use]
    pub fn scale_a(self, scale: &'a impl AsTensor<f32>) -> Matmul<'a, O> {
        Matmul {
            scale_a: Some(scale.tensor()),
            by_blocks: false,
            ..self
        }
    }

    /// Multiplies B by scales in device memory: one number `[1]`, one for each column `[N]`, or `[batch, 1]` or `[batch, N]`.
    #[must_use]
    pub fn scale_b(self, scale: &'a impl AsTensor<f32>) -> Matmul<'a, O> {
        Matmul {
            scale_b: Some(scale.tensor()),
            by_blocks: false,
            ..self
        }
    }

    /// Multiplies A and B, with elements of [`f8e4m3`](tirx_rt::f8e4m3), by the scales of blocks: a scale of A `[M, K / 128]` belongs to 128 neighbors along K in a
    /// row, one of B `[N / 128, K / 128]` to 128 columns and 128 neighbors along K; the extents are rounded up, and a batch dimension
    /// is in front if A and B have one. Products of 128 elements along K are added in float32, which is more exact than the accumulators of the
    /// tensor cores. C has `bf16` or `f32` elements.
    ///
    /// The scales take the place of those of [`scale_a`](Matmul::scale_a) and [`scale_b`](Matmul::scale_b).
    #[must_use]
    pub fn block_scales(self, of_a: &'a impl AsTensor<f32>, of_b: &'a impl AsTensor<f32>) -> Matmul<'a, O> {
        Matmul {
            scale_a: Some(of_a.tensor()),
            scale_b: Some(of_b.tensor()),
            by_blocks: true,
            ..self
        }
    }

    /// Promises that B is constant, as [`Plan::constant_b`](super::Plan::constant_b) does. Scales of B may still change.
    #[must_use]
    pub fn constant_b(self) -> Matmul<'a, O> {
        Matmul {
            constant_b: true,
            ..self
        }
    }

    /// Computes C from A `[M, K]` and B `[K, N]`, or each with a batch dimension in front.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if shapes do not fit each other, or if no kernel takes operands of this element type with these strides;
    /// [`Error::Runtime`](crate::Error::Runtime) for errors of the launch.
    pub fn run<T: Input<O>>(
        &self,
        stream: &Stream,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        c: &mut impl AsTensorMut<O>,
    ) -> Result<()> {
        let (a, b, c) = (a.tensor(), b.tensor(), c.tensor_mut());
        super::extents(a.shape(), b.shape(), c.shape())?;
        if c.is_empty() {
            return Ok(());
        }
        if c.shape().len() == 2 {
            let (a, b) = (a.unsqueeze(0)?, b.unsqueeze(0)?);
            return self.launch(stream, &a, &b, &mut *c.unsqueeze_mut(0)?);
        }
        self.launch(stream, a, b, c)
    }

    fn launch<T: Input<O>>(
        &self,
        stream: &Stream,
        a: &Tensor<T>,
        b: &Tensor<T>,
        c: &mut Tensor<O>,
    ) -> Result<()> {
        let operands = Operands {
            built: T::BUILT,
            ..Operands::new(a, b)
        };
        with_call(stream, &operands, self, c, |call, kernel, c| {
            T::launch(call, kernel, c)
        })
    }
}
