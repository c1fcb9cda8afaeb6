//! Activations, alone and gated: Y = f(gate) · up.
//!
//! `gate` and `up` may be the two halves of one tensor: `x.slice(1, 0..n)?` and `x.slice(1, n..2 * n)?` are views without a copy.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::Element;
use super::rows::{same_shape, segments_of_row, three, three_mut, vectors_of_thread};
use crate::Result;
use crate::generated::kernels;

/// A function of single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Function {
    /// x / (1 + exp(−x)), also called swish.
    Silu,
    /// GELU in the form with tanh.
    GeluTanh,
    /// GELU in the form with erf.
    Gelu,
    /// max(x, 0).
    Relu,
}

/// Y = SiLU(gate) · up.
///
/// ```
/// use tirx_kernels::activation;
/// # use tirx_rt::{Device, Tensor};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[0.0f32, 2.0, 5.0, 3.0], [1, 4])?;
/// let mut y = Tensor::zeros(&stream, [1, 2])?;
/// activation::swiglu(&stream, &x.slice(1, 0..2)?, &x.slice(1, 2..4)?, &mut y)?;
/// assert!((y.to_vec()?[1] - 6.0 / (1.0 + (-2.0f32).exp())).abs() < 1e-5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes differ or rows are not contiguous;
/// [`Error::Runtime`](crate::Error::Runtime) for those of the launch.
pub fn swiglu<T: Element>(
    stream: &Stream,
    gate: &impl AsTensor<T>,
    up: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    gated(stream, Function::Silu, gate, up, y)
}

/// Y = GELU(gate) · up, with GELU in the form with tanh.
///
/// # Errors
/// As for [`swiglu`].
pub fn geglu<T: Element>(
    stream: &Stream,
    gate: &impl AsTensor<T>,
    up: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    gated(stream, Function::GeluTanh, gate, up, y)
}

/// Y = f(gate) · up.
///
/// # Errors
/// As for [`swiglu`].
pub fn gated<T: Element>(
    stream: &Stream,
    function: Function,
    gate: &impl AsTensor<T>,
    up: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    same_shape(("gate", gate.tensor().shape()), ("up", up.tensor().shape()))?;
    launch(stream, function, gate.tensor(), Some(up.tensor()), y.tensor_mut())
}

/// Y = f(X).
///
/// # Errors
/// As for [`swiglu`].
pub fn apply<T: Element>(
    stream: &Stream,
    function: Function,
    x: &impl AsTensor<T>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    launch(stream, function, x.tensor(), None, y.tensor_mut())
}

fn launch<T: Element>(
    stream: &Stream,
    function: Function,
    gate: &Tensor<T>,
    up: Option<&Tensor<T>>,
    y: &mut Tensor<T>,
) -> Result<()> {
    same_shape(("the input", gate.shape()), ("Y", y.shape()))?;
    let kind = match function {
        Function::Silu => 0,
        Function::GeluTanh => 1,
        Function::Gelu => 2,
        Function::Relu => 3,
    };
    let gate = three(gate, "the input")?;
    let mut y = three_mut(y, "Y")?;
    if gate.is_empty() {
        return Ok(());
    }
    let columns = gate.shape()[2];
    let vectors = vectors_of_thread(gate.len() * size_of::<T>());
    let (warps, segments) = segments_of_row(columns, size_of::<T>(), gate.len() / columns, vectors)?;
    // The kernel takes an empty tensor for "not gated".
    let up = match up {
        Some(up) => three(up, "up")?,
        None => gate.slice(0, 0..0)?,
    };
    kernels::activation::<T>(stream, &gate, &up, &mut y, kind, warps, segments)?;
    Ok(())
}
