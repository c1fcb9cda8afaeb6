//! Products with a gate, and products by groups of rows that each have their own matrix B, as in mixtures of experts.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::fused::{Activation, Matmul};
use super::general::{Operands, with_call};
use super::launch::{GatedInput, GroupedInput};
use crate::{Error, Result};

/// `C = silu(A W_gate) * (A W_up)`, the first half of a gated feed-forward layer, in one launch that reads A once.
///
/// ```
/// # use tirx_kernels::gemm;
/// # use tirx_rt::{Device, Tensor, bf16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[bf16::ONE; 3 * 16], [3, 16])?;
/// let gate = Tensor::from_slice(&stream, &[bf16::ONE; 40 * 16], [40, 16])?;
/// let up = Tensor::from_slice(&stream, &[bf16::from_f32(0.25); 40 * 16], [40, 16])?;
/// let mut y = Tensor::zeros(&stream, [3, 40])?;
/// gemm::swiglu(&stream, &x, &gate.permute(&[1, 0])?, &up.permute(&[1, 0])?, &mut y)?;
/// assert_eq!(y.to_vec()?, [bf16::from_f32(64.0); 3 * 40]); // silu(16) is nearly 16
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`Matmul::run_gated`].
pub fn swiglu<T: GatedInput>(
    stream: &Stream,
    a: &impl AsTensor<T>,
    w_gate: &impl AsTensor<T>,
    w_up: &impl AsTensor<T>,
    c: &mut impl AsTensorMut<T>,
) -> Result<()> {
    Matmul::new()
        .activation(Activation::Silu)
        .run_gated(stream, a, w_gate, w_up, c)
}

/// For each group `e`, the rows of C from `offsets[e]` to `offsets[e + 1]` are those rows of A times `b[e]`.
///
/// A `[rows, K]` holds the rows of all groups one after the other, B is `[groups, K, N]`, C `[rows, N]`. `offsets` `[groups + 1]` is in
/// device memory: it may be the result of a kernel before, and nobody waits for it. Groups may be empty. Rows behind
/// the last offset are not written.
///
/// ```
/// # use tirx_kernels::gemm;
/// # use tirx_rt::{Device, Tensor, bf16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let tokens = Tensor::from_slice(&stream, &[bf16::ONE; 5 * 16], [5, 16])?;
/// let mut weights = vec![bf16::ONE; 2 * 40 * 16];
/// weights[40 * 16..].fill(bf16::from_f32(2.0));
/// let experts = Tensor::from_slice(&stream, &weights, [2, 40, 16])?;
/// let offsets = Tensor::from_slice(&stream, &[0, 3, 5], [3])?; // three rows for the first expert, two for the second
/// let mut y = Tensor::zeros(&stream, [5, 40])?;
/// gemm::grouped(&stream, &tokens, &experts.permute(&[0, 2, 1])?, &offsets, &mut y)?;
/// let y = y.to_vec()?;
/// assert_eq!((y[0].to_f32(), y[4 * 40].to_f32()), (16.0, 32.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`Matmul::run_grouped`].
pub fn grouped<T: GroupedInput<O>, O: tirx_rt::Element>(
    stream: &Stream,
    a: &impl AsTensor<T>,
    b: &impl AsTensor<T>,
    offsets: &impl AsTensor<i32>,
    c: &mut impl AsTensorMut<O>,
) -> Result<()> {
    Matmul::new().run_grouped(stream, a, b, offsets, c)
}

impl<T: GatedInput> Matmul<'_, T> {
    /// Computes `C = activation(scale scale_a A B) * (scale scale_a A up) + residual` on Hopper. B and `up` have the same shape and order in memory.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes do not fit each other, if no kernel takes operands with these strides, or if there is a bias or a scale of
    /// B; [`Error::Runtime`] for errors of the launch.
    pub fn run_gated(
        &self,
        stream: &Stream,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        up: &impl AsTensor<T>,
        c: &mut impl AsTensorMut<T>,
    ) -> Result<()> {
        let (a, b, up, c) = (a.tensor(), b.tensor(), up.tensor(), c.tensor_mut());
        super::extents(a.shape(), b.shape(), c.shape())?;
        self.check_gate(b, up)?;
        if c.is_empty() {
            return Ok(());
        }
        if c.shape().len() == 2 {
            let (a, b, up) = (a.unsqueeze(0)?, b.unsqueeze(0)?, up.unsqueeze(0)?);
            return self.launch_gated(stream, &a, &b, &up, &mut *c.unsqueeze_mut(0)?);
        }
        self.launch_gated(stream, a, b, up, c)
    }

    fn launch_gated(
        &self,
        stream: &Stream,
        a: &Tensor<T>,
        b: &Tensor<T>,
        up: &Tensor<T>,
        c: &mut Tensor<T>,
    ) -> Result<()> {
        let operands = Operands {
            up: Some(up),
            ..Operands::new(a, b)
        };
        with_call(stream, &operands, self, c, |call, _, c| T::launch(call, c))
    }

    /// As [`run_gated`](Matmul::run_gated), for groups of rows as in [`grouped`].
    ///
    /// # Errors
    /// As for [`run_gated`](Matmul::run_gated) and [`run_grouped`](Matmul::run_grouped).
    pub fn run_grouped_gated(
        &self,
        stream: &Stream,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        up: &impl AsTensor<T>,
        offsets: &impl AsTensor<i32>,
        c: &mut impl AsTensorMut<T>,
    ) -> Result<()> {
        let (a, b, up, offsets, c) = (
            a.tensor(),
            b.tensor(),
            up.tensor(),
            offsets.tensor(),
            c.tensor_mut(),
        );
        check_groups(a.shape(), b.shape(), offsets.shape(), c.shape())?;
        self.check_gate(b, up)?;
        if c.is_empty() {
            return Ok(());
        }
        let a = a.unsqueeze(0)?;
        let operands = Operands {
            up: Some(up),
            grouped: true,
            ..Operands::new(&a, b)
        };
        with_call(
            stream,
            &operands,
            self,
            &mut *c.unsqueeze_mut(0)?,
            |call, _, c| T::launch_grouped(call, offsets, c),
        )
    }

    fn check_gate(&self, b: &Tensor<T>, up: &Tensor<T>) -> Result<()> {
        if b.shape() != up.shape() {
            return Err(Error::Shape(format!(
                "both matrices of a gate have one shape, not {:?} and {:?}",
                b.shape(),
                up.shape()
            )));
        }
        if self.bias.is_some() || self.scale_b.is_some() {
            return Err(Error::Shape(
                "a product with a gate takes no bias and no scale of B, which would be those of one of its two matrices".into(),
            ));
        }
        Ok(())
    }
}

impl<O: tirx_rt::Element> Matmul<'_, O> {
    /// As [`run`](Matmul::run), for groups of rows as in [`grouped`], on Hopper. A bias and scales of B are `[groups, N]`, and scales of B also
    /// `[groups]`; scales of A are `[rows]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if shapes do not fit each other or if no kernel takes operands with these strides; [`Error::Runtime`] for errors of the
    /// launch.
    pub fn run_grouped<T: GroupedInput<O>>(
        &self,
        stream: &Stream,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        offsets: &impl AsTensor<i32>,
        c: &mut impl AsTensorMut<O>,
    ) -> Result<()> {
        let (a, b, offsets, c) = (a.tensor(), b.tensor(), offsets.tensor(), c.tensor_mut());
        check_groups(a.shape(), b.shape(), offsets.shape(), c.shape())?;
        if c.is_empty() {
            return Ok(());
        }
        let a = a.unsqueeze(0)?;
        let operands = Operands {
            grouped: true,
            built: T::BUILT,
            ..Operands::new(&a, b)
        };
        with_call(
            stream,
            &operands,
            self,
            &mut *c.unsqueeze_mut(0)?,
            |call, kernel, c| T::launch(call, kernel, offsets, c),
        )
    }
}

fn check_groups(a: &[usize], b: &[usize], offsets: &[usize], c: &[usize]) -> Result<()> {
    let fits = match (a, b, offsets, c) {
        (&[rows, k], &[groups, k_of_b, n], &[ends], &[rows_of_c, n_of_c]) => {
            (k, n, groups + 1, rows) == (k_of_b, n_of_c, ends, rows_of_c) && groups > 0
        }
        _ => false,
    };
    let most = a.iter().chain(b).max();
    if let Some(most) = most.filter(|most| **most > i32::MAX as usize) {
        return Err(Error::Shape(format!("an extent of {most} is above {}", i32::MAX)));
    }
    match fits {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "a product by groups takes A of shape [rows, K], B of [groups, K, N] with at least one group, offsets of [groups + 1] and C of \
             [rows, N]; A has {a:?}, B {b:?}, the offsets {offsets:?} and C {c:?}"
        ))),
    }
}
