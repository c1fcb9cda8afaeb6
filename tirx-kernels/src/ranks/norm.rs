//! All-reduce with RMSNorm.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor, World, bf16};

use super::{Shared, blocks, check_extents, check_ranks, check_shape, load, of_launch};
use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};

const NAME: &str = "AllReduceRmsNorm";
/// The blocks that have flags.
const MAX_BLOCKS: usize = 256;

/// The sum of rows over all ranks, added to a residual, and the RMSNorm of the result.
///
/// On every rank, R = R + the sum of X over all ranks, and Y = R / sqrt(mean(R²) + eps) · W. The sum is float32, in the order of the
/// ranks, so every rank has the same bits if the residuals are equal. Each rank reads the rows of all: this is the fastest way for few
/// tokens, as in decoding. For thousands of tokens, [`MatmulReduceScatter`](super::MatmulReduceScatter) moves fewer bytes.
pub struct AllReduceRmsNorm {
    /// `[2, most, columns]`.
    x: Shared<bf16>,
    flags: Shared<u32>,
    ranks: usize,
    most: usize,
    columns: usize,
    /// The blocks of a launch at most, the same on every rank: a block waits for that of the others with its number.
    most_blocks: usize,
    turns: Vec<u32>,
}

/// The tensors of one rank.
struct Rows<'a> {
    x: &'a Tensor<bf16>,
    residual: &'a Tensor<bf16>,
    weight: &'a Tensor<bf16>,
    y: &'a Tensor<bf16>,
}

impl AllReduceRmsNorm {
    /// For up to `most` rows of `columns` elements.
    ///
    /// # Errors
    /// [`Error::Shape`] for no rows and no columns; [`Error::Runtime`] for those of the allocation.
    pub fn new(world: &World, most: usize, columns: usize) -> Result<AllReduceRmsNorm> {
        let ranks = world.ranks();
        check_extents(
            NAME,
            &[
                ("the number of rows", most),
                ("the number of columns", columns),
                ("the number of halves", 2),
            ],
        )?;
        let mut most_blocks = MAX_BLOCKS;
        for rank in 0..ranks {
            let machine = Machine::of_device(&world.device(rank))?;
            most_blocks = most_blocks.min(blocks(&machine, MAX_BLOCKS) as usize);
        }
        load(world, &[&kernels::ranks_norm::dtype_bfloat16::LOADED])?;
        Ok(AllReduceRmsNorm {
            x: Shared::zeros(world, &[2, most, columns])?,
            flags: Shared::zeros(world, &[MAX_BLOCKS, ranks])?,
            ranks,
            most,
            columns,
            most_blocks,
            turns: vec![0; ranks],
        })
    }

    /// Launches on every rank, for as many rows on each: all tensors but `weight`, `[columns]`, are `[rows, columns]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a tensor does not fit; [`Error::Runtime`] for those of the launch.
    pub fn run(
        &mut self,
        world: &World,
        x: &[impl AsTensor<bf16>],
        residual: &mut [impl AsTensorMut<bf16>],
        weight: &[impl AsTensor<bf16>],
        y: &mut [impl AsTensorMut<bf16>],
        eps: f32,
    ) -> Result<()> {
        let counts = [
            ("X", x.len()),
            ("the residual", residual.len()),
            ("the weight", weight.len()),
            ("Y", y.len()),
        ];
        check_ranks(NAME, self.ranks, world, &counts)?;
        let rows = x.first().map(|x| x.tensor().shape().to_vec());
        for rank in 0..self.ranks {
            self.check(&Rows {
                x: x[rank].tensor(),
                residual: residual[rank].tensor_mut(),
                weight: weight[rank].tensor(),
                y: y[rank].tensor_mut(),
            })?;
            if let Some(rows) = &rows {
                check_shape(NAME, "X of each rank", x[rank].tensor().shape(), rows)?;
            }
        }
        world.launch(|rank, stream| {
            self.launch(
                rank,
                stream,
                &x[rank],
                &mut residual[rank],
                &weight[rank],
                &mut y[rank],
                eps,
            )
            .map_err(of_launch)
        })?;
        Ok(())
    }

    /// Launches on one rank, within [`World::launch`]; every rank launches with the same number of rows.
    ///
    /// # Errors
    /// As for [`AllReduceRmsNorm::run`].
    #[allow(clippy::too_many_arguments, reason = "the operands of the formula")]
    pub fn launch(
        &mut self,
        rank: usize,
        stream: &Stream,
        x: &impl AsTensor<bf16>,
        residual: &mut impl AsTensorMut<bf16>,
        weight: &impl AsTensor<bf16>,
        y: &mut impl AsTensorMut<bf16>,
        eps: f32,
    ) -> Result<()> {
        if rank >= self.ranks {
            return Err(Error::Shape(format!(
                "{NAME}: there is no rank {rank} of {}",
                self.ranks
            )));
        }
        let (x, residual, weight, y) = (x.tensor(), residual.tensor_mut(), weight.tensor(), y.tensor_mut());
        self.check(&Rows {
            x,
            residual,
            weight,
            y,
        })?;
        if x.is_empty() {
            return Ok(());
        }
        let turn = self.turns[rank].wrapping_add(1);
        kernels::ranks_norm::launch(
            stream,
            kernels::ranks_norm::Constexpr { dtype: "bfloat16" },
            x,
            residual,
            weight,
            y,
            &mut self.x.memory[rank],
            &self.flags.memory[rank],
            &self.x.addresses[rank],
            &self.flags.addresses[rank],
            rank as i32,
            turn,
            eps,
            x.shape()[0].min(self.most_blocks) as i32,
        )?;
        self.turns[rank] = turn;
        Ok(())
    }

    fn check(&self, rows: &Rows<'_>) -> Result<()> {
        let shape = rows.x.shape();
        match *shape {
            [count, columns] if columns == self.columns && count <= self.most => {}
            _ => {
                return Err(Error::Shape(format!(
                    "{NAME}: X has the shape [rows, {}] with at most {} rows, not {shape:?}",
                    self.columns, self.most
                )));
            }
        }
        check_shape(NAME, "the residual", rows.residual.shape(), shape)?;
        check_shape(NAME, "Y", rows.y.shape(), shape)?;
        check_shape(NAME, "the weight", rows.weight.shape(), &[self.columns])?;
        for (name, tensor) in [
            ("X", rows.x),
            ("the residual", rows.residual),
            ("Y", rows.y),
            ("the weight", rows.weight),
        ] {
            if self.columns > 1 && tensor.strides().last() != Some(&1) {
                return Err(Error::Shape(format!(
                    "{NAME}: the rows of {name} are contiguous; its strides are {:?}",
                    tensor.strides()
                )));
            }
        }
        Ok(())
    }
}
