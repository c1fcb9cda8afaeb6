//! All-gather with a product.

use tirx_rt::{AsTensor, AsTensorMut, Stream, View, ViewMut, World, bf16};

use super::{
    Shared, blocks, check_contiguous, check_copied, check_extents, check_ranks, check_row, check_shape,
    check_weights, load, of_launch, tiles,
};
use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};

const NAME: &str = "AllGatherMatmul";
/// The blocks that copy: each has up to 192 KB on their way.
const COPIERS: usize = 8;

/// The product of A with matrices of each rank, where each rank has some rows of A.
///
/// C = A times the transpose of B, with A of `[ranks * rows, k]`. B has any number of rows, another matrix on each rank: the columns of
/// a weight that the rank has. Each rank multiplies its own rows first, and the rows of the other ranks in the order of their arrival.
/// Afterwards each rank has all of A.
pub struct AllGatherMatmul {
    /// `[ranks * rows, k]`.
    a: Shared<bf16>,
    flags: Shared<u32>,
    ranks: usize,
    rows: usize,
    k: usize,
    /// The launches of each rank.
    turns: Vec<u32>,
}

impl AllGatherMatmul {
    /// For `rows` rows of `k` elements on each rank; both are zero.
    ///
    /// # Errors
    /// [`Error::Shape`] for no rows, and for a `k` that is not a positive multiple of 8; [`Error::Runtime`] for those of the allocation.
    pub fn new(world: &World, rows: usize, k: usize) -> Result<AllGatherMatmul> {
        let ranks = world.ranks();
        check_extents(
            NAME,
            &[
                ("the number of rows", rows),
                ("k", k),
                ("the number of ranks", ranks),
            ],
        )?;
        check_row(NAME, "k", k)?;
        load(
            world,
            &[
                &kernels::ranks_gather::dtype_bfloat16_bn128::LOADED,
                &kernels::ranks_gather::dtype_bfloat16_bn256::LOADED,
            ],
        )?;
        Ok(AllGatherMatmul {
            a: Shared::zeros(world, &[ranks * rows, k])?,
            flags: Shared::zeros(world, &[2 * ranks + ranks * rows.div_ceil(128)])?,
            ranks,
            rows,
            k,
            turns: vec![0; ranks],
        })
    }

    /// The rows of a rank, `[rows, k]`: write them before a launch.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such rank.
    pub fn rows_mut(&mut self, rank: usize) -> Result<ViewMut<'_, bf16>> {
        self.check_rank(rank)?;
        let rows = rank * self.rows..(rank + 1) * self.rows;
        Ok(self.a.memory[rank].slice_mut(0, rows)?)
    }

    /// A as a rank has it after a launch, `[ranks * rows, k]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such rank.
    pub fn gathered(&self, rank: usize) -> Result<View<'_, bf16>> {
        self.check_rank(rank)?;
        Ok(self.a.memory[rank].slice(0, 0..self.ranks * self.rows)?)
    }

    /// Launches on every rank: `b[rank]` is `[N, k]`, and `c[rank]` becomes `[ranks * rows, N]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a tensor does not fit; [`Error::Runtime`] for those of the launch.
    pub fn run(
        &mut self,
        world: &World,
        b: &[impl AsTensor<bf16>],
        c: &mut [impl AsTensorMut<bf16>],
    ) -> Result<()> {
        check_ranks(NAME, self.ranks, world, &[("B", b.len()), ("C", c.len())])?;
        for (rank, b) in b.iter().enumerate() {
            self.check(b, c[rank].tensor_mut())?;
        }
        world.launch(|rank, stream| {
            self.launch(rank, stream, &b[rank], &mut c[rank])
                .map_err(of_launch)
        })?;
        Ok(())
    }

    /// Launches on one rank, within [`World::launch`].
    ///
    /// # Errors
    /// As for [`AllGatherMatmul::run`].
    pub fn launch(
        &mut self,
        rank: usize,
        stream: &Stream,
        b: &impl AsTensor<bf16>,
        c: &mut impl AsTensorMut<bf16>,
    ) -> Result<()> {
        self.check_rank(rank)?;
        let c = c.tensor_mut();
        let columns = self.check(b, c)?;
        let machine = Machine::of_device(&stream.device())?;
        let (width, tiles) = tiles(&machine, self.ranks, self.rows, columns);
        // With one rank there is nothing to copy.
        let copiers = if self.ranks > 1 { COPIERS } else { 0 };
        let blocks = blocks(&machine, tiles + copiers) - copiers as i32;
        let turn = self.turns[rank].wrapping_add(1);
        let constexpr = kernels::ranks_gather::Constexpr {
            dtype: "bfloat16",
            BN: width as i64,
        };
        kernels::ranks_gather::launch(
            stream,
            constexpr,
            &mut *self.a.memory[rank].reshape_mut([self.ranks, self.rows, self.k])?,
            &*b.tensor().unsqueeze(0)?,
            &mut *c.reshape_mut([self.ranks, self.rows, columns])?,
            &mut self.flags.memory[rank],
            &self.a.addresses[rank],
            &self.flags.addresses[rank],
            rank as i32,
            turn,
            blocks,
            copiers as i32,
        )?;
        self.turns[rank] = turn;
        Ok(())
    }

    fn check_rank(&self, rank: usize) -> Result<()> {
        match rank < self.ranks {
            true => Ok(()),
            false => Err(Error::Shape(format!(
                "{NAME}: there is no rank {rank} of {}",
                self.ranks
            ))),
        }
    }

    /// The columns of C.
    fn check(&self, b: &impl AsTensor<bf16>, c: &tirx_rt::Tensor<bf16>) -> Result<usize> {
        let columns = check_weights(NAME, b.tensor(), self.k)?;
        check_shape(NAME, "C", c.shape(), &[self.ranks * self.rows, columns])?;
        check_row(NAME, "the number of columns of C", columns)?;
        check_copied(NAME, "C", c)?;
        check_contiguous(NAME, "C", c)?;
        Ok(columns)
    }
}
