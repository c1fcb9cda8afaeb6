//! Attention: O = softmax(scale Q Kᵀ) V with bfloat16 or float16 elements, in float32, without a matrix of scores in memory.
//!
//! | tensor | shape | of sequences ([`forward_packed`]) |
//! |---|---|---|
//! | Q | `[batch, heads, queries, head]` | `[queries of all, heads, head]` |
//! | K | `[batch, heads of K, keys, head]` | `[keys of all, heads of K, head]` |
//! | V | `[batch, heads of K, keys, head of V]` | `[keys of all, heads of K, head of V]` |
//! | O | `[batch, heads, queries, head of V]` | `[queries of all, heads, head of V]` |
//! | logarithms | `[batch, heads, queries]` | `[heads, queries of all]` |
//!
//! `heads` is a multiple of `heads of K` (grouped queries; one head of K is multi-query attention). `head` is a multiple of 8 up to 256, and so is
//! `head of V`, equal to `head` or, for `head` up to 192, at most 128. The tensors may be views: `q.permute(&[0, 2, 1, 3])?` passes a tensor
//! `[batch, queries, heads, head]` without a copy. Rows are contiguous, other strides are multiples of 8 elements, addresses multiples
//! of 16 bytes.
//!
//! | kernel | GPUs |
//! |---|---|
//! | forward, `warpgroups`: warpgroup MMA with tensor copies | Hopper |
//! | forward, `tensor memory`, heads up to 128: `tcgen05` with tensor copies | Blackwell with compute capability 10.0 |
//! | forward, `warps`: `mma.sync` with `cp.async` | all from `sm_80` on |
//! | backward, `warpgroups`, heads up to 128 | Hopper |
//! | backward, `warps`, heads up to 128 | all from `sm_80` on |

mod backward;
mod choice;
mod options;
mod problem;

use std::fmt;

use tirx_rt::{AsTensor, AsTensorMut, Device, Stream, Tensor, bf16, f16};

use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};
pub use backward::{BackwardPlan, backward, backward_packed, backward_workspace};
use choice::{Choice, Tensors};
pub use options::Options;
use problem::{Extents, refuse_unaligned};

mod sealed {
    use super::kernels;

    pub trait Kernels:
        kernels::attention_forward::Element
        + kernels::attention_forward_wide::Element
        + kernels::attention_forward_three::Element
        + kernels::attention_forward_warps::Element
        + kernels::attention_tensor_memory::Element
        + kernels::attention_backward_prepare::Element
        + kernels::attention_backward::Element
        + kernels::attention_backward_warps::Element
        + kernels::attention_backward_finish::Element
        + kernels::attention_backward_clear::Element
    {
    }
}

/// An element type of attention: `bf16` or `f16`.
pub trait Element: sealed::Kernels {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl Element for bf16 {}
impl Element for f16 {}

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
    Plan::new(&stream.device(), q, k, v, o, options)?.run(stream, q, k, v, o, options)
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
    Plan::new(&stream.device(), q, k, v, o, options)?.run_with_lse(stream, q, k, v, o, lse, options)
}

/// Sequences of different lengths that follow each other in packed tensors: sequence `i` has the rows from the `i`-th offset up to the next one.
///
/// Both lists of offsets have one element more than there are sequences, begin with 0 and never decrease. They stay on the device, so a launch
/// cannot refuse wrong ones: offsets beyond the tensors count as their end, and queries in no sequence keep their output. On Hopper and Blackwell, values
/// that are not finite may reach the sequence before theirs.
#[derive(Clone, Copy)]
pub struct Sequences<'a> {
    queries: &'a Tensor<i32>,
    keys: &'a Tensor<i32>,
}

impl<'a> Sequences<'a> {
    /// Sequences with these offsets of queries and of keys: the same tensor twice for self-attention.
    pub fn from_offsets(queries: &'a impl AsTensor<i32>, keys: &'a impl AsTensor<i32>) -> Sequences<'a> {
        Sequences {
            queries: queries.tensor(),
            keys: keys.tensor(),
        }
    }

    fn count(&self) -> Result<usize> {
        match (self.queries.shape(), self.keys.shape()) {
            (&[queries], &[keys]) if queries == keys && queries >= 1 => Ok(queries - 1),
            (queries, keys) => Err(Error::Shape(format!(
                "the offsets of queries and keys are two lists of one element more than there are sequences; they have the shapes {queries:?} \
                 and {keys:?}"
            ))),
        }
    }
}

/// Attention of each of the packed sequences. With [`Options::causal`], the last query of a sequence sees all of its keys. A sequence without
/// queries or without keys is allowed.
///
/// ```
/// use tirx_kernels::attention::{self, Options, Sequences};
/// # use tirx_rt::{Device, Tensor, f16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let ones = |shape: [usize; 3]| Tensor::from_slice(&stream, &vec![f16::ONE; shape.iter().product()], shape);
/// let (q, k, v) = (ones([30, 4, 64])?, ones([30, 2, 64])?, ones([30, 2, 64])?);
/// let mut o = Tensor::zeros(&stream, [30, 4, 64])?;
/// let offsets = Tensor::from_slice(&stream, &[0, 10, 10, 30], [4])?; // 10, 0 and 20 tokens
/// let sequences = Sequences::from_offsets(&offsets, &offsets);
/// attention::forward_packed(&stream, &q, &k, &v, &mut o, None, sequences, Options::causal())?;
/// assert_eq!(o.to_vec()?[0], f16::ONE);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`forward`].
#[expect(
    clippy::too_many_arguments,
    reason = "the tensors of attention and its options"
)]
pub fn forward_packed<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    o: &mut impl AsTensorMut<T>,
    lse: Option<&mut Tensor<f32>>,
    sequences: Sequences<'_>,
    options: Options,
) -> Result<()> {
    let plan = Plan::packed_candidates(&stream.device(), q, k, v, o, sequences, options)?[0];
    plan.run_packed(stream, q, k, v, o, lse, sequences, options)
}

/// The kernel that is chosen for tensors of given extents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    extents: Extents,
    choice: Choice,
}

/// The kernel and its tile, such as `warpgroups 128x176x64` with 128 queries, 176 keys and 64 columns, `tensor memory 256x128x128`, or `warps 128x64`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

impl Plan {
    /// The plan for tensors like these and such options on a device. It may be used with other options, for which another kernel may be faster.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit each other or are not supported; [`Error::Runtime`] if the driver does not tell the
    /// device's properties.
    pub fn new<T: Element>(
        device: &Device,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        options: Options,
    ) -> Result<Plan> {
        Ok(Plan::candidates(device, q, k, v, o, options)?[0])
    }

    /// A plan for each kernel that takes such tensors, at least one. The first is that of [`Plan::new`].
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn candidates<T: Element>(
        device: &Device,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        options: Options,
    ) -> Result<Vec<Plan>> {
        Plan::of_extents(
            device,
            Extents::from_tensors(q.tensor(), k.tensor(), v.tensor(), o.tensor())?,
            options,
        )
    }

    /// As [`Plan::candidates`], for the tensors of [`forward_packed`].
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn packed_candidates<T: Element>(
        device: &Device,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        sequences: Sequences<'_>,
        options: Options,
    ) -> Result<Vec<Plan>> {
        let extents =
            Extents::from_packed(q.tensor(), k.tensor(), v.tensor(), o.tensor(), sequences.count()?)?;
        Plan::of_extents(device, extents, options)
    }

    fn of_extents(device: &Device, extents: Extents, options: Options) -> Result<Vec<Plan>> {
        let choices = choice::candidates(&Machine::of_device(device)?, &extents, options)?;
        Ok(choices
            .into_iter()
            .map(|choice| Plan { extents, choice })
            .collect())
    }

    /// [`forward`] by this plan's kernel.
    ///
    /// # Errors
    /// As for [`forward`], and [`Error::Shape`] if the tensors have other extents than those of the plan.
    pub fn run<T: Element>(
        &self,
        stream: &Stream,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &mut impl AsTensorMut<T>,
        options: Options,
    ) -> Result<()> {
        let (q, k, v, o) = (q.tensor(), k.tensor(), v.tensor(), o.tensor_mut());
        self.refuse_others(Extents::from_tensors(q, k, v, o)?)?;
        self.launch(stream, q, k, v, o, None, None, options)
    }

    /// [`forward_with_lse`] by this plan's kernel.
    ///
    /// # Errors
    /// As for [`Plan::run`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the tensors of attention and its options"
    )]
    pub fn run_with_lse<T: Element>(
        &self,
        stream: &Stream,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &mut impl AsTensorMut<T>,
        lse: &mut impl AsTensorMut<f32>,
        options: Options,
    ) -> Result<()> {
        let (q, k, v, o, lse) = (
            q.tensor(),
            k.tensor(),
            v.tensor(),
            o.tensor_mut(),
            lse.tensor_mut(),
        );
        self.refuse_others(Extents::from_tensors(q, k, v, o)?)?;
        self.launch(stream, q, k, v, o, Some(lse), None, options)
    }

    /// [`forward_packed`] by this plan's kernel.
    ///
    /// # Errors
    /// As for [`Plan::run`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the tensors of attention and its options"
    )]
    pub fn run_packed<T: Element>(
        &self,
        stream: &Stream,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &mut impl AsTensorMut<T>,
        lse: Option<&mut Tensor<f32>>,
        sequences: Sequences<'_>,
        options: Options,
    ) -> Result<()> {
        let (q, k, v, o) = (q.tensor(), k.tensor(), v.tensor(), o.tensor_mut());
        self.refuse_others(Extents::from_packed(q, k, v, o, sequences.count()?)?)?;
        let order = [1, 0, 2];
        let (q, k, v) = (q.permute(&order)?, k.permute(&order)?, v.permute(&order)?);
        let mut o = o.permute_mut(&order)?;
        let mut lse = lse.map(|lse| lse.unsqueeze_mut(0)).transpose()?;
        self.launch(
            stream,
            &*q.unsqueeze(0)?,
            &*k.unsqueeze(0)?,
            &*v.unsqueeze(0)?,
            &mut *o.unsqueeze_mut(0)?,
            lse.as_deref_mut(),
            Some(sequences),
            options,
        )
    }

    fn refuse_others(&self, found: Extents) -> Result<()> {
        match found == self.extents {
            true => Ok(()),
            false => Err(Error::Shape(format!(
                "the plan is for {:?}, the tensors have {found:?}",
                self.extents
            ))),
        }
    }

    /// The launch for tensors `[batch, heads, rows, head]`.
    #[expect(
        clippy::too_many_arguments,
        reason = "the tensors of attention and its options"
    )]
    fn launch<T: Element>(
        &self,
        stream: &Stream,
        q: &Tensor<T>,
        k: &Tensor<T>,
        v: &Tensor<T>,
        o: &mut Tensor<T>,
        lse: Option<&mut Tensor<f32>>,
        sequences: Option<Sequences<'_>>,
        options: Options,
    ) -> Result<()> {
        if let Some(lse) = &lse
            && (lse.shape() != &o.shape()[..3] || !lse.is_contiguous())
        {
            return Err(Error::Shape(format!(
                "the logarithms of O {:?} have its first three extents and are contiguous; theirs are {:?}, with the strides {:?}",
                o.shape(),
                lse.shape(),
                lse.strides()
            )));
        }
        refuse_unaligned(&[("Q", q), ("K", k), ("V", v), ("O", &*o)])?;
        let values = options.values(self.extents.head)?;
        if o.is_empty() || self.extents.sequences == Some(0) {
            return Ok(());
        }
        // Kernels take empty tensors for "no logarithms" and "no sequences": parts of O and Q without elements.
        let none = q.slice(0, 0..0)?;
        let none = none.reshape([0])?;
        let none = none.as_bits::<i32>()?;
        let (mut no_lse, mut o) = o.split_at_mut(0, 0)?;
        let mut no_lse = no_lse.reshape_mut([0, 0, 0])?;
        let mut no_lse = no_lse.as_bits_mut::<f32>()?;
        let tensors = Tensors {
            q,
            k,
            v,
            o: &mut o,
            lse: lse.unwrap_or(&mut no_lse),
            starts_of_q: sequences.map_or(&none, |sequences| sequences.queries),
            starts_of_k: sequences.map_or(&none, |sequences| sequences.keys),
        };
        self.choice.launch(stream, tensors, values)
    }
}
