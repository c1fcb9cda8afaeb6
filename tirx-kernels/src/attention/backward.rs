//! The backward pass: gradients of Q, K and V.

use std::fmt;

use tirx_rt::{AsTensor, AsTensorMut, Device, Stream, Tensor};

use super::options::{Options, Values};
use super::problem::{Extents, refuse_unaligned};
use super::{Element, Sequences};
use crate::generated::kernels;
use crate::machine::{Generation, Machine};
use crate::{Error, Result};

/// The elements of the workspace of [`backward`] for Q `[batch, heads, queries, head]`, or of [`backward_packed`] for Q `[queries, heads, head]`.
///
/// # Errors
/// [`Error::Shape`] if Q has another number of dimensions.
pub fn backward_workspace<T: Element>(q: &impl AsTensor<T>) -> Result<usize> {
    match *q.tensor().shape() {
        [batch, heads, queries, head] => Ok(workspace(batch * heads, queries, head)),
        [queries, heads, head] => Ok(workspace(heads, queries, head)),
        ref other => Err(Error::Shape(format!(
            "Q has the shape [batch, heads, queries, head], or [queries, heads, head] for sequences; its shape is {other:?}"
        ))),
    }
}

/// Queries of a row of the statistics: its rows begin at multiples of 16 bytes.
fn padded(queries: usize) -> usize {
    queries.next_multiple_of(4)
}

/// Elements of a row of the sums of dQ: `hopper_backward.py` orders 32 elements at a time.
fn width(head: usize) -> usize {
    head.next_multiple_of(32)
}

/// Two numbers for each query, and the sums of dQ.
fn workspace(heads: usize, queries: usize, head: usize) -> usize {
    heads * (2 * padded(queries) + queries * width(head))
}

/// The gradients of Q, K and V for the gradient `d_o` of O = softmax(scale Q Kᵀ) V. `o` and `lse` are the results of
/// [`forward_with_lse`](super::forward_with_lse) with the same options. Gradients of K and V are the sums over the heads that share them.
///
/// Blocks add their parts of dQ in float32 in any order, so that its last bits differ from run to run. dK and dV are the same in each run.
/// The launches allocate nothing: `workspace` has [`backward_workspace`] elements, and any values.
///
/// Heads have up to 128 elements.
///
/// ```
/// use tirx_kernels::attention::{self, Options};
/// # use tirx_rt::{Device, Tensor, f16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let ones = |heads| Tensor::from_slice(&stream, &vec![f16::ONE; heads * 20 * 64], [1, heads, 20, 64]);
/// let zeros = |heads| Tensor::<f16>::zeros(&stream, [1, heads, 20, 64]);
/// let (q, k, v, d_o) = (ones(4)?, ones(2)?, ones(2)?, ones(4)?);
/// let (mut o, mut lse) = (zeros(4)?, Tensor::zeros(&stream, [1, 4, 20])?);
/// attention::forward_with_lse(&stream, &q, &k, &v, &mut o, &mut lse, Options::default())?;
///
/// let (mut dq, mut dk, mut dv) = (zeros(4)?, zeros(2)?, zeros(2)?);
/// let mut workspace = Tensor::zeros(&stream, [attention::backward_workspace(&q)?])?;
/// attention::backward(
///     &stream, &q, &k, &v, &o, &d_o, &lse, &mut dq, &mut dk, &mut dv, &mut workspace, Options::default(),
/// )?;
/// // Two heads share a value, and each weight is 1 / 20: the sum over 20 queries is 2.
/// assert!((dv.to_vec()?[0].to_f32() - 2.0).abs() < 0.01);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or are not supported, or if the workspace is too small; [`Error::Runtime`] for
/// errors of the launches.
#[expect(clippy::too_many_arguments, reason = "the tensors of the backward pass")]
pub fn backward<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    o: &impl AsTensor<T>,
    d_o: &impl AsTensor<T>,
    lse: &impl AsTensor<f32>,
    dq: &mut impl AsTensorMut<T>,
    dk: &mut impl AsTensorMut<T>,
    dv: &mut impl AsTensorMut<T>,
    workspace: &mut Tensor<f32>,
    options: Options,
) -> Result<()> {
    let plan = BackwardPlan::candidates(&stream.device(), q, k, v, o)?[0];
    plan.run(stream, q, k, v, o, d_o, lse, dq, dk, dv, workspace, options)
}

/// As [`backward`], for the packed sequences of [`forward_packed`](super::forward_packed). Rows of K and V in no sequence keep their
/// gradients, queries in no sequence get 0.
///
/// # Errors
/// As for [`backward`].
#[expect(clippy::too_many_arguments, reason = "the tensors of the backward pass")]
pub fn backward_packed<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    o: &impl AsTensor<T>,
    d_o: &impl AsTensor<T>,
    lse: &impl AsTensor<f32>,
    dq: &mut impl AsTensorMut<T>,
    dk: &mut impl AsTensorMut<T>,
    dv: &mut impl AsTensorMut<T>,
    workspace: &mut Tensor<f32>,
    sequences: Sequences<'_>,
    options: Options,
) -> Result<()> {
    let plan = BackwardPlan::packed_candidates(&stream.device(), q, k, v, o, sequences)?[0];
    plan.run_packed(
        stream, q, k, v, o, d_o, lse, dq, dk, dv, workspace, sequences, options,
    )
}

/// The kernel that computes the gradients for tensors of given extents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackwardPlan {
    extents: Extents,
    kernel: Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kernel {
    /// `hopper_backward.py`: tiles of 128 keys.
    Warpgroups,
    /// `ampere_backward.py`: tiles of 64 keys.
    Warps,
}

/// The kernel and its tile, such as `warpgroups 128x64` with 128 keys and 64 columns.
impl fmt::Display for BackwardPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kernel {
            Kernel::Warpgroups => "warpgroups",
            Kernel::Warps => "warps",
        };
        write!(f, "{name} {}x{}", self.kernel.keys(), columns(&self.extents))
    }
}

impl Kernel {
    fn keys(self) -> usize {
        match self {
            Kernel::Warpgroups => 128,
            Kernel::Warps => 64,
        }
    }
}

/// Columns of the tiles.
fn columns(extents: &Extents) -> i64 {
    match extents.head.max(extents.head_of_v) {
        0..=64 => 64,
        _ => 128,
    }
}

impl BackwardPlan {
    /// A plan for each kernel that takes such tensors, at least one: the fastest one first.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit each other or are not supported; [`Error::Runtime`] if the driver does not tell the
    /// device's properties.
    pub fn candidates<T: Element>(
        device: &Device,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
    ) -> Result<Vec<BackwardPlan>> {
        BackwardPlan::of_extents(
            device,
            Extents::from_tensors(q.tensor(), k.tensor(), v.tensor(), o.tensor())?,
        )
    }

    /// As [`BackwardPlan::candidates`], for the tensors of [`backward_packed`].
    ///
    /// # Errors
    /// As for [`BackwardPlan::candidates`].
    pub fn packed_candidates<T: Element>(
        device: &Device,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        sequences: Sequences<'_>,
    ) -> Result<Vec<BackwardPlan>> {
        let extents =
            Extents::from_packed(q.tensor(), k.tensor(), v.tensor(), o.tensor(), sequences.count()?)?;
        BackwardPlan::of_extents(device, extents)
    }

    fn of_extents(device: &Device, extents: Extents) -> Result<Vec<BackwardPlan>> {
        let Extents { head, head_of_v, .. } = extents;
        if head.max(head_of_v) > 128 {
            return Err(Error::Shape(format!(
                "the backward pass takes heads of up to 128 elements; they have {head} and {head_of_v}"
            )));
        }
        let mut kernels = vec![Kernel::Warps];
        if Machine::of_device(device)?.generation == Generation::Hopper {
            kernels.insert(0, Kernel::Warpgroups);
        }
        Ok(kernels
            .into_iter()
            .map(|kernel| BackwardPlan { extents, kernel })
            .collect())
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

    /// [`backward()`] by this plan's kernel.
    ///
    /// # Errors
    /// As for [`backward()`], and [`Error::Shape`] if the tensors have other extents than those of the plan.
    #[expect(clippy::too_many_arguments, reason = "the tensors of the backward pass")]
    pub fn run<T: Element>(
        &self,
        stream: &Stream,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        d_o: &impl AsTensor<T>,
        lse: &impl AsTensor<f32>,
        dq: &mut impl AsTensorMut<T>,
        dk: &mut impl AsTensorMut<T>,
        dv: &mut impl AsTensorMut<T>,
        workspace: &mut Tensor<f32>,
        options: Options,
    ) -> Result<()> {
        let (q, k, v, o) = (q.tensor(), k.tensor(), v.tensor(), o.tensor());
        self.refuse_others(Extents::from_tensors(q, k, v, o)?)?;
        let tensors = Tensors {
            q,
            k,
            v,
            o,
            d_o: d_o.tensor(),
            lse: lse.tensor(),
            dq: dq.tensor_mut(),
            dk: dk.tensor_mut(),
            dv: dv.tensor_mut(),
            sequences: None,
        };
        self.launch(stream, tensors, workspace, options)
    }

    /// [`backward_packed`] by this plan's kernel.
    ///
    /// # Errors
    /// As for [`BackwardPlan::run`].
    #[expect(clippy::too_many_arguments, reason = "the tensors of the backward pass")]
    pub fn run_packed<T: Element>(
        &self,
        stream: &Stream,
        q: &impl AsTensor<T>,
        k: &impl AsTensor<T>,
        v: &impl AsTensor<T>,
        o: &impl AsTensor<T>,
        d_o: &impl AsTensor<T>,
        lse: &impl AsTensor<f32>,
        dq: &mut impl AsTensorMut<T>,
        dk: &mut impl AsTensorMut<T>,
        dv: &mut impl AsTensorMut<T>,
        workspace: &mut Tensor<f32>,
        sequences: Sequences<'_>,
        options: Options,
    ) -> Result<()> {
        let (q, k, v, o) = (q.tensor(), k.tensor(), v.tensor(), o.tensor());
        self.refuse_others(Extents::from_packed(q, k, v, o, sequences.count()?)?)?;
        let (d_o, lse) = (d_o.tensor(), lse.tensor());
        let (dq, dk, dv) = (dq.tensor_mut(), dk.tensor_mut(), dv.tensor_mut());
        for (name, tensor, like) in [("dO", d_o, o), ("dQ", &*dq, q), ("dK", &*dk, k), ("dV", &*dv, v)] {
            refuse_other_shape(name, tensor.shape(), like.shape())?;
        }
        let order = [1, 0, 2];
        self.launch(
            stream,
            Tensors {
                q: &*q.permute(&order)?.unsqueeze(0)?,
                k: &*k.permute(&order)?.unsqueeze(0)?,
                v: &*v.permute(&order)?.unsqueeze(0)?,
                o: &*o.permute(&order)?.unsqueeze(0)?,
                d_o: &*d_o.permute(&order)?.unsqueeze(0)?,
                lse: &*lse.unsqueeze(0)?,
                dq: &mut *dq.permute_mut(&order)?.unsqueeze_mut(0)?,
                dk: &mut *dk.permute_mut(&order)?.unsqueeze_mut(0)?,
                dv: &mut *dv.permute_mut(&order)?.unsqueeze_mut(0)?,
                sequences: Some(sequences),
            },
            workspace,
            options,
        )
    }
}

/// Tensors `[batch, heads, rows, head]`.
struct Tensors<'a, T: Element> {
    q: &'a Tensor<T>,
    k: &'a Tensor<T>,
    v: &'a Tensor<T>,
    o: &'a Tensor<T>,
    d_o: &'a Tensor<T>,
    lse: &'a Tensor<f32>,
    dq: &'a mut Tensor<T>,
    dk: &'a mut Tensor<T>,
    dv: &'a mut Tensor<T>,
    sequences: Option<Sequences<'a>>,
}

fn refuse_other_shape(name: &str, found: &[usize], expected: &[usize]) -> Result<()> {
    match found == expected {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "a gradient has the shape of its tensor, and the logarithms have the first three extents of O: {name} has {found:?} instead of {expected:?}"
        ))),
    }
}

impl BackwardPlan {
    fn launch<T: Element>(
        &self,
        stream: &Stream,
        tensors: Tensors<'_, T>,
        workspace: &mut Tensor<f32>,
        options: Options,
    ) -> Result<()> {
        let Tensors {
            q,
            k,
            v,
            o,
            d_o,
            lse,
            dq,
            dk,
            dv,
            sequences,
        } = tensors;
        for (name, found, expected) in [
            ("dO", d_o.shape(), o.shape()),
            ("dQ", dq.shape(), q.shape()),
            ("dK", dk.shape(), k.shape()),
            ("dV", dv.shape(), v.shape()),
            ("the tensor of logarithms", lse.shape(), &o.shape()[..3]),
        ] {
            refuse_other_shape(name, found, expected)?;
        }
        let Extents {
            batch,
            heads,
            queries,
            keys,
            head,
            ..
        } = self.extents;
        let all = [
            ("Q", q),
            ("K", k),
            ("V", v),
            ("O", o),
            ("dO", d_o),
            ("dQ", &*dq),
            ("dK", &*dk),
            ("dV", &*dv),
        ];
        refuse_unaligned(&all)?;
        let needed = self::workspace(batch * heads, queries, head);
        if workspace.len() < needed || !workspace.is_contiguous() || !workspace.address().is_multiple_of(16) {
            return Err(Error::Shape(format!(
                "the workspace has at least {needed} elements (`backward_workspace`), is contiguous and begins at a multiple of 16 bytes; it has {} elements",
                workspace.len()
            )));
        }
        let values = options.values(head)?;
        let blocks = self.extents.tiles_of_keys(self.kernel.keys())?;
        if q.is_empty() {
            if !dk.is_empty() {
                kernels::attention_backward_clear::<T>(stream, dk)?;
                kernels::attention_backward_clear::<T>(stream, dv)?;
            }
            return Ok(());
        }
        let rows = padded(queries);
        let len = workspace.len();
        let mut flat = workspace.reshape_mut([len])?;
        let (mut stats, mut sums) = flat.split_at_mut(0, 2 * batch * heads * rows)?;
        let mut stats = stats.reshape_mut([2, batch, heads, rows])?;
        let mut stats = stats.slice_mut(3, 0..queries)?;
        // The other kernel keeps the order of the elements.
        let (width, turned) = match self.kernel {
            Kernel::Warpgroups => (width(head), 1),
            Kernel::Warps => (head, 0),
        };
        let mut sums = sums.slice_mut(0, 0..batch * heads * queries * width)?;
        let mut sums = sums.reshape_mut([batch, heads, queries, width])?;
        kernels::attention_backward_prepare::<T>(stream, o, d_o, lse, &mut *stats, &mut *sums)?;
        if keys > 0 && self.extents.sequences != Some(0) {
            // The kernel takes empty offsets for "no sequences".
            let none = q.slice(0, 0..0)?;
            let none = none.reshape([0])?;
            let none = none.as_bits::<i32>()?;
            let (of_q, of_k) = sequences.map_or((&*none, &*none), |s| (s.queries, s.keys));
            let Values {
                scale,
                causal,
                window,
                cap,
            } = values;
            let columns = columns(&self.extents);
            match self.kernel {
                Kernel::Warpgroups => {
                    let constexpr = kernels::attention_backward::Constexpr { D: columns };
                    kernels::attention_backward::<T>(
                        stream, constexpr, q, k, v, d_o, &*stats, &mut *sums, dk, dv, of_q, of_k, scale,
                        causal, window, cap, blocks,
                    )?;
                }
                Kernel::Warps => {
                    let constexpr = kernels::attention_backward_warps::Constexpr { D: columns };
                    kernels::attention_backward_warps::<T>(
                        stream, constexpr, q, k, v, d_o, &*stats, &mut *sums, dk, dv, of_q, of_k, scale,
                        causal, window, cap, blocks,
                    )?;
                }
            }
        }
        kernels::attention_backward_finish::<T>(stream, &*sums, dq, values.scale, turned)?;
        Ok(())
    }
}
