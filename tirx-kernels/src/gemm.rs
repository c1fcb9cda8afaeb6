//! Matrix products: C = A B with float32 accumulators, and more in the same launch.
//!
//! | function | computes | elements of A and B |
//! |---|---|---|
//! | [`matmul`], [`Plan`] | A B | `bf16`, `f16` |
//! | [`Matmul::run`] | activation(scales A B + bias) + residual, C of another type | also 8 bits (scales of tensors, rows, blocks), `f32` as tf32 |
//! | [`swiglu`], [`Matmul::run_gated`] | activation(A B) * (A up) | `bf16`, `f16` |
//! | [`grouped`], [`Matmul::run_grouped`] | each group of rows of A times a matrix of its own | `bf16`, `f16`, 8 bits |
//! | [`Matmul::run_grouped_gated`] | groups of rows with gates | `bf16`, `f16` |
//!
//! A is `[M, K]`, B is `[K, N]` and C is `[M, N]`, or all three have a batch dimension in front. Extents are any numbers from 0 on, and
//! every tensor may be a view with any strides: `&w.permute(&[1, 0])?` multiplies by the transpose of `w`, without a copy.
//!
//! | operands of `matmul` and of `Matmul::run` | kernel |
//! |---|---|
//! | on Hopper: rows or columns contiguous, other strides multiples of 8 elements, addresses multiples of 16 bytes | warpgroup MMA with tensor copies |
//! | on Blackwell with compute capability 10.0: A and B as above, C with any strides | `tcgen05` with tensor copies, accumulators in tensor memory |
//! | on other GPUs: contiguous along K, other strides and addresses as above | `mma.sync` with `cp.async` |
//! | any other strides | `mma.sync`, element by element: several times slower |
//!
//! `Matmul::run` takes the first row for A with contiguous rows, and for float32 if B is contiguous along K; it takes the second row for `bf16` and `f16`. Elements of 8 bits, gates and groups run on Hopper with
//! operands of the first row, 8 bits with B contiguous along K. Other operands are refused before the launch.

mod choice;
mod fused;
mod general;
mod grouped;
mod launch;
mod operand;

use std::fmt;

use tirx_rt::{AsTensor, AsTensorMut, Device, Stream, Tensor, bf16, f16};

use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};
use choice::Choice;
pub use fused::{Activation, Matmul};
pub use grouped::{grouped, swiglu};
pub use launch::{GatedInput, GroupedInput, Input};
use operand::{Contiguous, Operand};

mod sealed {
    use super::kernels;

    pub trait Kernels:
        kernels::gemm_tiles::Element
        + kernels::gemm_tiles_narrow::Element
        + kernels::gemm_tiles_turned::Element
        + kernels::gemm_columns::Element
        + kernels::gemm_blocks::Element
        + kernels::gemm_tensor_memory::Element
    {
    }
}

/// An element type of matrix products: `bf16` or `f16`.
pub trait Element: sealed::Kernels {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl Element for bf16 {}
impl Element for f16 {}

/// C = A B. The fastest kernel for these extents, strides and this GPU is chosen by a model; [`Plan`] keeps a choice.
///
/// ```
/// # use tirx_kernels::gemm;
/// # use tirx_rt::{Device, Tensor, f16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// let x = Tensor::from_slice(&stream, &[f16::ONE; 3 * 16], [3, 16])?;
/// let weights = Tensor::from_slice(&stream, &[f16::ONE; 40 * 16], [40, 16])?;
/// let mut y = Tensor::zeros(&stream, [3, 40])?;
/// gemm::matmul(&stream, &x, &weights.permute(&[1, 0])?, &mut y)?;
/// assert_eq!(y.to_vec()?, [f16::from_f32(16.0); 3 * 40]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other; [`Error::Runtime`] for those of the launch.
pub fn matmul<T: Element>(
    stream: &Stream,
    a: &impl AsTensor<T>,
    b: &impl AsTensor<T>,
    c: &mut impl AsTensorMut<T>,
) -> Result<()> {
    Plan::new(&stream.device(), a, b, c)?.run(stream, a, b, c)
}

/// The extents of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extents {
    /// Products.
    pub batch: usize,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A and rows of B.
    pub k: usize,
}

/// The kernel that is chosen for tensors of given extents, strides and alignment.
///
/// A plan may be used for any tensors that are like those that it was made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    extents: Extents,
    /// A and B exchange their places, since C is contiguous along its columns.
    turned: bool,
    constant_b: bool,
    choice: Choice,
}

impl Plan {
    /// The plan for tensors like these on a device.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit each other; [`Error::Runtime`] if the driver does not tell the device's properties.
    pub fn new<T: Element>(
        device: &Device,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        c: &impl AsTensor<T>,
    ) -> Result<Plan> {
        Ok(Plan::candidates(device, a, b, c)?[0])
    }

    /// A plan for each kernel that the model compares for such tensors, at least one. The first is that of [`Plan::new`]; the model takes it for the
    /// fastest one.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn candidates<T: Element>(
        device: &Device,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        c: &impl AsTensor<T>,
    ) -> Result<Vec<Plan>> {
        let extents = extents(a.tensor().shape(), b.tensor().shape(), c.tensor().shape())?;
        let [a, b, c] = [a.tensor(), b.tensor(), c.tensor()].map(Operand::from_tensor);
        let turned = c.contiguous != Contiguous::Columns && c.turned().contiguous == Contiguous::Columns;
        let machine = Machine::of_device(device)?;
        let choices = match turned {
            false => choice::candidates(&machine, extents, a, b.turned(), c),
            true => choice::candidates(&machine, extents.turned(), b.turned(), a, c.turned()),
        };
        let plan = |(_, choice)| Plan {
            extents,
            turned,
            constant_b: false,
            choice,
        };
        Ok(choices.into_iter().map(plan).collect())
    }

    /// Promises that B is constant, such as the weights of a model: no kernel that may still run at a launch of this plan writes it. Then kernels
    /// for few rows of A read B while the kernels before them on the stream end. Without this promise, they begin to read when these have ended. If the
    /// promise is broken, C may be computed with former elements of B.
    #[must_use]
    pub fn constant_b(self) -> Plan {
        Plan {
            constant_b: true,
            ..self
        }
    }

    /// C = A B.
    ///
    /// # Errors
    /// [`Error::Shape`] if the tensors have other extents than those of the plan; [`Error::Runtime`] for those of the launch. Tensors
    /// with other strides than the kernel takes are refused by the launch.
    pub fn run<T: Element>(
        &self,
        stream: &Stream,
        a: &impl AsTensor<T>,
        b: &impl AsTensor<T>,
        c: &mut impl AsTensorMut<T>,
    ) -> Result<()> {
        let (a, b, c) = (a.tensor(), b.tensor(), c.tensor_mut());
        let found = extents(a.shape(), b.shape(), c.shape())?;
        if found != self.extents {
            return Err(Error::Shape(format!(
                "the plan is for {:?}, the tensors have {found:?}",
                self.extents
            )));
        }
        if c.is_empty() {
            return Ok(());
        }
        let (a, b) = match a.shape().len() {
            2 => (&*a.unsqueeze(0)?, &*b.unsqueeze(0)?),
            _ => (a, b),
        };
        if c.shape().len() == 2 {
            return self.launch(stream, a, b, &mut *c.unsqueeze_mut(0)?);
        }
        self.launch(stream, a, b, c)
    }

    /// The launch for tensors with a batch dimension.
    fn launch<T: Element>(
        &self,
        stream: &Stream,
        a: &Tensor<T>,
        b: &Tensor<T>,
        c: &mut Tensor<T>,
    ) -> Result<()> {
        let turn = [0, 2, 1];
        match self.turned {
            // Kernels take B with the dimensions exchanged.
            false => self
                .choice
                .launch(stream, a, &*b.permute(&turn)?, c, self.constant_b),
            true => self
                .choice
                .launch(stream, &*b.permute(&turn)?, a, &mut *c.permute_mut(&turn)?, false),
        }
    }
}

/// The kernel and its tile, such as `tiles 128x256`, `tensor memory 256x256` or `columns 64x16 of 2 parts`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

impl Extents {
    fn turned(self) -> Extents {
        Extents {
            m: self.n,
            n: self.m,
            ..self
        }
    }
}

/// The extents of a product of tensors of two or three dimensions.
fn extents(a: &[usize], b: &[usize], c: &[usize]) -> Result<Extents> {
    let (extents, others) = match (a, b, c) {
        (&[m, k], &[k_of_b, n], &[m_of_c, n_of_c]) => (
            Extents { batch: 1, m, n, k },
            [(k, k_of_b), (m, m_of_c), (n, n_of_c), (1, 1)],
        ),
        (&[batch, m, k], &[batch_of_b, k_of_b, n], &[batch_of_c, m_of_c, n_of_c])
            if batch_of_b == batch_of_c =>
        {
            (
                Extents { batch, m, n, k },
                [(k, k_of_b), (m, m_of_c), (n, n_of_c), (batch, batch_of_b)],
            )
        }
        _ => (
            Extents {
                batch: 0,
                m: 0,
                n: 0,
                k: 0,
            },
            [(0, 1); 4],
        ),
    };
    if others.iter().any(|(one, other)| one != other) {
        return Err(Error::Shape(format!(
            "a product takes A of shape [M, K], B of [K, N] and C of [M, N], or each with a batch dimension in front; \
             A has {a:?}, B {b:?} and C {c:?}"
        )));
    }
    match [extents.batch, extents.m, extents.n, extents.k].iter().max() {
        Some(&most) if most > i32::MAX as usize => {
            Err(Error::Shape(format!("an extent of {most} is above {}", i32::MAX)))
        }
        _ => Ok(extents),
    }
}
