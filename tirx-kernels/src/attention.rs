//! Attention: O = softmax(scale Q Kᵀ) V with bfloat16 or float16 elements, in float32, without a matrix of scores in memory.
//!
//! | tensor | shape |
//! |---|---|
//! | Q | `[batch, heads, queries, head]` |
//! | K | `[batch, heads of K, keys, head]` |
//! | V | `[batch, heads of K, keys, head of V]` |
//! | O | `[batch, heads, queries, head of V]` |
//!
//! `heads` is a multiple of `heads of K` (grouped queries; one head of K is multi-query attention). `head` is a multiple of 8 up to 256, and so is
//! `head of V`, equal to `head` or, for `head` up to 192, at most 128. The tensors may be views: `q.permute(&[0, 2, 1, 3])?` passes a tensor
//! `[batch, queries, heads, head]` without a copy. Rows are contiguous, other strides are multiples of 8 elements, addresses multiples
//! of 16 bytes. The kernels run on Hopper (`sm_90a`) and on the simulator.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor, bf16, f16};

use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};

mod sealed {
    use super::kernels;

    pub trait Kernels:
        kernels::attention_forward::Element + kernels::attention_forward_wide::Element
    {
    }
}

/// An element type of attention: `bf16` or `f16`.
pub trait Element: sealed::Kernels {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl Element for bf16 {}
impl Element for f16 {}

/// The keys that a query sees, and the form of its scores. [`Options::default`] is attention to all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Whether a query sees no later keys: the last query sees all keys, and each query before one key less.
    pub causal: bool,
    /// The number of keys that a query sees at most, up to its own position.
    pub window: Option<usize>,
    /// The factor of scores; 1 / sqrt(`head`) if it is not given.
    pub scale: Option<f32>,
    /// The bound of scores: each becomes `cap * tanh(score / cap)`.
    pub cap: Option<f32>,
}

impl Options {
    /// Attention to the keys up to the position of the query.
    pub fn causal() -> Options {
        Options {
            causal: true,
            ..Options::default()
        }
    }

    /// With a window of `keys` keys.
    pub fn window(self, keys: usize) -> Options {
        Options {
            window: Some(keys),
            ..self
        }
    }

    /// With this factor of scores.
    pub fn scale(self, scale: f32) -> Options {
        Options {
            scale: Some(scale),
            ..self
        }
    }

    /// With this bound of scores.
    pub fn cap(self, cap: f32) -> Options {
        Options {
            cap: Some(cap),
            ..self
        }
    }
}

/// O = softmax(scale Q Kᵀ) V. A query that sees no keys gives zeros.
///
/// ```
/// use tirx_kernels::attention::{self, Options};
/// # use tirx_rt::{Device, Tensor, f16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let ones = |shape: [usize; 4]| Tensor::from_slice(&stream, &vec![f16::ONE; shape.iter().product()], shape);
/// let (q, k, v) = (ones([1, 4, 20, 64])?, ones([1, 2, 50, 64])?, ones([1, 2, 50, 64])?);
/// let mut o = Tensor::zeros(&stream, [1, 4, 20, 64])?;
/// attention::forward(&stream, &q, &k, &v, &mut o, Options::causal())?;
/// assert_eq!(o.to_vec()?[0], f16::ONE);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or are not supported; [`Error::Runtime`] for those of the launch.
pub fn forward<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    o: &mut impl AsTensorMut<T>,
    options: Options,
) -> Result<()> {
    // The kernel takes an empty tensor for "no logarithms". This one is a part of O without elements.
    let o = o.tensor_mut();
    if o.shape().len() != 4 {
        return Err(shapes(q.tensor(), k.tensor(), v.tensor(), o));
    }
    let (mut nothing, mut o) = o.split_at_mut(0, 0)?;
    let mut nothing = nothing.reshape_mut([0, 0, 0])?;
    launch(
        stream,
        q.tensor(),
        k.tensor(),
        v.tensor(),
        &mut o,
        &mut *nothing.as_bits_mut::<f32>()?,
        options,
    )
}

/// As [`forward`], and writes the logarithm of the sum of exponentials of each query's scores, `[batch, heads, queries]`: minus infinity
/// for a query that sees no keys. The backward pass and the combination of parts need it.
///
/// # Errors
/// As for [`forward`].
pub fn forward_with_lse<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    o: &mut impl AsTensorMut<T>,
    lse: &mut impl AsTensorMut<f32>,
    options: Options,
) -> Result<()> {
    let (o, lse) = (o.tensor_mut(), lse.tensor_mut());
    if lse.shape() != &o.shape()[..o.shape().len().min(3)] {
        return Err(Error::Shape(format!(
            "the logarithms of O {:?} have its first three extents, not {:?}",
            o.shape(),
            lse.shape()
        )));
    }
    launch(stream, q.tensor(), k.tensor(), v.tensor(), o, lse, options)
}

fn shapes<T: Element>(q: &Tensor<T>, k: &Tensor<T>, v: &Tensor<T>, o: &Tensor<T>) -> Error {
    Error::Shape(format!(
        "attention takes Q [batch, heads, queries, head], K [batch, heads of K, keys, head], V [batch, heads of K, keys, head of V] and O \
         [batch, heads, queries, head of V]; Q has {:?}, K {:?}, V {:?} and O {:?}",
        q.shape(),
        k.shape(),
        v.shape(),
        o.shape()
    ))
}

fn launch<T: Element>(
    stream: &Stream,
    q: &Tensor<T>,
    k: &Tensor<T>,
    v: &Tensor<T>,
    o: &mut Tensor<T>,
    lse: &mut Tensor<f32>,
    options: Options,
) -> Result<()> {
    let (&[batch, heads, queries, head], &[batch_of_k, heads_of_k, keys, head_of_k]) = (q.shape(), k.shape())
    else {
        return Err(shapes(q, k, v, o));
    };
    let &[_, _, _, head_of_v] = v.shape() else {
        return Err(shapes(q, k, v, o));
    };
    let fits = batch == batch_of_k
        && head == head_of_k
        && v.shape() == [batch, heads_of_k, keys, head_of_v]
        && o.shape() == [batch, heads, queries, head_of_v];
    if !fits {
        return Err(shapes(q, k, v, o));
    }
    if o.is_empty() {
        return Ok(());
    }
    if heads_of_k == 0 || heads % heads_of_k != 0 || keys == 0 {
        return Err(Error::Shape(format!(
            "{heads} heads of Q share the heads of K evenly, and there is at least one key; K has {heads_of_k} heads and {keys} keys"
        )));
    }
    let wide = match (head, head_of_v) {
        (head, of_v) if head == of_v && head % 8 == 0 && (1..=256).contains(&head) => false,
        (1..=192, 1..=128) if head % 8 == 0 && head_of_v % 8 == 0 => true,
        _ => {
            return Err(Error::Shape(format!(
                "heads have a multiple of 8 elements: up to 256 if those of Q and V are equal, else up to 192 in Q and 128 in V; they have \
                 {head} and {head_of_v}"
            )));
        }
    };
    let aligned = |t: &Tensor<T>| {
        let (row, others) = t.strides().split_last().unwrap_or((&1, &[]));
        *row == 1 && others.iter().all(|s| s % 8 == 0) && t.address().is_multiple_of(16)
    };
    if let Some(i) = [q, k, v, &*o].iter().position(|t| !aligned(t)) {
        return Err(Error::Shape(format!(
            "{} has rows that are not contiguous, strides that are not multiples of 8 elements, or an address that is not a multiple of 16",
            ["Q", "K", "V", "O"][i]
        )));
    }
    let number = |extent: usize| {
        i32::try_from(extent)
            .map_err(|_| Error::Shape(format!("an extent of {extent} is above {}", i32::MAX)))
    };
    // A window of 0 stands for none.
    let window = match options.window {
        Some(0) => return Err(Error::Shape("a window has at least one key".into())),
        Some(keys) => number(keys.min(i32::MAX as usize))?,
        None => 0,
    };
    let scale = options.scale.unwrap_or_else(|| 1.0 / (head as f32).sqrt());
    let capped = options.cap.is_some();
    let (causal, cap) = (i32::from(options.causal), options.cap.unwrap_or(1.0));
    let machine = Machine::of_device(&stream.device())?;
    let tiles = batch * heads * queries.div_ceil(128);
    let blocks = number(tiles.min(machine.multiprocessors as usize))?;
    number(tiles)?;
    // As many heads at a time as have their keys and values in half of the L2 cache of an H100.
    let of_a_head = keys * (head + head_of_v) * size_of::<T>();
    let near = number(
        (25_000_000 / of_a_head)
            .max(1)
            .saturating_mul(heads / heads_of_k)
            .min(batch * heads),
    )?;
    if wide {
        let constexpr = kernels::attention_forward_wide::Constexpr { CAP: capped };
        kernels::attention_forward_wide::<T>(
            stream, constexpr, q, k, v, o, lse, scale, causal, window, cap, near, blocks,
        )?;
    } else {
        let columns = [64, 128, 256]
            .into_iter()
            .find(|&columns| head <= columns as usize)
            .unwrap_or(256);
        let constexpr = kernels::attention_forward::Constexpr {
            DQ: columns,
            CAP: capped,
        };
        kernels::attention_forward::<T>(
            stream, constexpr, q, k, v, o, lse, scale, causal, window, cap, near, blocks,
        )?;
    }
    Ok(())
}
