//! Operations of candle that run kernels of `tirx-kernels`: matrix products, attention and RMSNorm of bfloat16 and float16.
//!
//! | operation | call | shapes |
//! |---|---|---|
//! | [`Matmul`] | `a.apply_op2(&b, Matmul)` | `[M, K]`, `[K, N]`, or a batch of both |
//! | [`Attention`] | `q.apply_op3(&k, &v, Attention { options })` | `[batch, heads, rows, head]` |
//! | [`RmsNorm`] | `x.apply_op2(&weight, RmsNorm { options })` | `[…, columns]`, `[columns]` |
//!
//! With the feature `cuda`, tensors of a GPU stay in their memory, and the kernels run on candle's stream. Tensors of the CPU are copied to the simulator,
//! which checks the kernels: slow, for tests.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod run;

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor as CandleTensor, bail};
use run::{Number, Operation};
use tirx_kernels::{attention, gemm, norm};
use tirx_rt::{Stream, Tensor};

/// The product of two matrices or of two batches of matrices, with any strides.
#[derive(Clone, Copy, Debug)]
pub struct Matmul;

/// Attention of Q to K and V. K and V may have fewer heads than Q.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention {
    /// The keys that a query sees, and the form of its scores.
    pub options: attention::Options,
}

/// RMSNorm of each row of X, times a weight for each column.
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm {
    /// The constants of the norm.
    pub options: norm::Options,
}

impl Operation<2> for Matmul {
    fn shape(&self, [a, b]: [&[usize]; 2]) -> Result<Vec<usize>> {
        match (a, b) {
            ([rows @ .., _], [.., _, columns]) => Ok([rows, &[*columns]].concat()),
            _ => bail!("a product needs matrices, not tensors of the shapes {a:?} and {b:?}"),
        }
    }

    fn launch<T: Number>(
        &self,
        stream: &Stream,
        [a, b]: [&Tensor<T>; 2],
        output: &mut Tensor<T>,
    ) -> tirx_kernels::Result<()> {
        gemm::matmul(stream, &a, &b, output)
    }
}

impl Operation<3> for Attention {
    fn shape(&self, [q, _, v]: [&[usize]; 3]) -> Result<Vec<usize>> {
        match (q, v) {
            ([rows @ .., _], [.., head]) => Ok([rows, &[*head]].concat()),
            _ => bail!("attention needs tensors `[batch, heads, rows, head]`, not {q:?} and {v:?}"),
        }
    }

    fn launch<T: Number>(
        &self,
        stream: &Stream,
        [q, k, v]: [&Tensor<T>; 3],
        output: &mut Tensor<T>,
    ) -> tirx_kernels::Result<()> {
        attention::forward(stream, &q, &k, &v, output, self.options)
    }
}

impl Operation<2> for RmsNorm {
    fn shape(&self, [x, _]: [&[usize]; 2]) -> Result<Vec<usize>> {
        Ok(x.to_vec())
    }

    fn launch<T: Number>(
        &self,
        stream: &Stream,
        [x, weight]: [&Tensor<T>; 2],
        output: &mut Tensor<T>,
    ) -> tirx_kernels::Result<()> {
        norm::rms_norm(stream, &x, &weight, output, self.options)
    }
}

impl CustomOp2 for Matmul {
    fn name(&self) -> &'static str {
        "tirx-matmul"
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        a_l: &Layout,
        b: &CpuStorage,
        b_l: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        run::on_simulator(self, [(a, a_l), (b, b_l)])
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        a_l: &Layout,
        b: &CudaStorage,
        b_l: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        run::on_gpu(self, [(a, a_l), (b, b_l)])
    }

    fn bwd(
        &self,
        a: &CandleTensor,
        b: &CandleTensor,
        _: &CandleTensor,
        grad: &CandleTensor,
    ) -> Result<(Option<CandleTensor>, Option<CandleTensor>)> {
        // The transposes are views.
        Ok((
            Some(grad.apply_op2(&b.t()?, Matmul)?),
            Some(a.t()?.apply_op2(grad, Matmul)?),
        ))
    }
}

impl CustomOp3 for Attention {
    fn name(&self) -> &'static str {
        "tirx-attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        q_l: &Layout,
        k: &CpuStorage,
        k_l: &Layout,
        v: &CpuStorage,
        v_l: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        run::on_simulator(self, [(q, q_l), (k, k_l), (v, v_l)])
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        q: &CudaStorage,
        q_l: &Layout,
        k: &CudaStorage,
        k_l: &Layout,
        v: &CudaStorage,
        v_l: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        run::on_gpu(self, [(q, q_l), (k, k_l), (v, v_l)])
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "tirx-rms-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_l: &Layout,
        w: &CpuStorage,
        w_l: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        run::on_simulator(self, [(x, x_l), (w, w_l)])
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_l: &Layout,
        w: &CudaStorage,
        w_l: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        run::on_gpu(self, [(x, x_l), (w, w_l)])
    }
}
