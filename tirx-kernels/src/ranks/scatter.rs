//! A product with reduce-scatter.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor, World, bf16};

use super::{
    Shared, blocks, check_contiguous, check_copied, check_extents, check_ranks, check_row, check_shape,
    check_weights, load, of_launch, tiles,
};
use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};

const NAME: &str = "MatmulReduceScatter";

/// The sum over all ranks of a product, of which each rank keeps some rows.
///
/// C = rows `rank * rows` to `(rank + 1) * rows` of the sum of A times the transpose of B, over the A `[ranks * rows, K]` and B `[N, K]`
/// of all ranks. K is the part of the rank, and may differ between GPUs. Each rank multiplies for the other ranks first. The products of
/// other ranks are rounded to bfloat16 once; the sum is float32, the rank's own product first and then those of the next ranks in turn.
pub struct MatmulReduceScatter {
    /// `[ranks, rows, columns]`: products of the other ranks.
    products: Shared<bf16>,
    flags: Shared<u32>,
    ranks: usize,
    rows: usize,
    columns: usize,
    /// Columns of a tile and tiles, the same on every rank.
    tiles: (usize, usize),
    turns: Vec<u32>,
}

impl MatmulReduceScatter {
    /// For `rows` rows and `columns` columns of C on each rank.
    ///
    /// # Errors
    /// [`Error::Shape`] for no rows, and for `columns` that are not a positive multiple of 8; [`Error::Runtime`] for those of the
    /// allocation.
    pub fn new(world: &World, rows: usize, columns: usize) -> Result<MatmulReduceScatter> {
        let ranks = world.ranks();
        check_extents(
            NAME,
            &[
                ("the number of rows", rows),
                ("the number of columns", columns),
                ("the number of ranks", ranks),
            ],
        )?;
        check_row(NAME, "the number of columns", columns)?;
        let machine = Machine::of_device(&world.device(0))?;
        let tiles = tiles(&machine, ranks, rows, columns);
        load(
            world,
            &[
                &kernels::ranks_scatter::dtype_bfloat16_bn128::LOADED,
                &kernels::ranks_scatter::dtype_bfloat16_bn256::LOADED,
            ],
        )?;
        Ok(MatmulReduceScatter {
            products: Shared::zeros(world, &[ranks, rows, columns])?,
            flags: Shared::zeros(world, &[ranks + 2 * tiles.1])?,
            ranks,
            rows,
            columns,
            tiles,
            turns: vec![0; ranks],
        })
    }

    /// Launches on every rank: `a[rank]` is `[ranks * rows, K]`, `b[rank]` is `[columns, K]`, and `c[rank]` becomes `[rows, columns]`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a tensor does not fit; [`Error::Runtime`] for those of the launch.
    pub fn run(
        &mut self,
        world: &World,
        a: &[impl AsTensor<bf16>],
        b: &[impl AsTensor<bf16>],
        c: &mut [impl AsTensorMut<bf16>],
    ) -> Result<()> {
        check_ranks(
            NAME,
            self.ranks,
            world,
            &[("A", a.len()), ("B", b.len()), ("C", c.len())],
        )?;
        for (rank, (a, b)) in a.iter().zip(b).enumerate() {
            self.check(a.tensor(), b.tensor(), c[rank].tensor_mut())?;
        }
        world.launch(|rank, stream| {
            self.launch(rank, stream, &a[rank], &b[rank], &mut c[rank])
                .map_err(of_launch)
        })?;
        Ok(())
    }

    /// Launches on one rank, within [`World::launch`].
    ///
    /// # Errors
    /// As for [`MatmulReduceScatter::run`].
    pub fn launch(
        &mut self,
        rank: usize,
        stream: &Stream,
        a: &impl AsTensor<bf16>,
        b: &impl AsTensor<bf16>,
        c: &mut impl AsTensorMut<bf16>,
    ) -> Result<()> {
        if rank >= self.ranks {
            return Err(Error::Shape(format!(
                "{NAME}: there is no rank {rank} of {}",
                self.ranks
            )));
        }
        let (a, b, c) = (a.tensor(), b.tensor(), c.tensor_mut());
        let k = self.check(a, b, c)?;
        let machine = Machine::of_device(&stream.device())?;
        let (width, tiles) = self.tiles;
        let turn = self.turns[rank].wrapping_add(1);
        let constexpr = kernels::ranks_scatter::Constexpr {
            dtype: "bfloat16",
            BN: width as i64,
        };
        kernels::ranks_scatter::launch(
            stream,
            constexpr,
            &*a.reshape([self.ranks, self.rows, k])?,
            &*b.unsqueeze(0)?,
            c,
            &self.products.memory[rank],
            &self.flags.memory[rank],
            &self.products.addresses[rank],
            &self.flags.addresses[rank],
            rank as i32,
            turn,
            blocks(&machine, tiles),
        )?;
        self.turns[rank] = turn;
        Ok(())
    }

    /// K.
    fn check(&self, a: &Tensor<bf16>, b: &Tensor<bf16>, c: &Tensor<bf16>) -> Result<usize> {
        let (rows, columns) = (self.ranks * self.rows, self.columns);
        let k = match *a.shape() {
            [found, k] if found == rows => k,
            _ => {
                return Err(Error::Shape(format!(
                    "{NAME}: A has the shape [{rows}, K], not {:?}",
                    a.shape()
                )));
            }
        };
        check_extents(NAME, &[("K", k)])?;
        check_row(NAME, "K", k)?;
        check_copied(NAME, "A", a)?;
        check_weights(NAME, b, k)?;
        check_shape(NAME, "B", b.shape(), &[columns, k])?;
        check_shape(NAME, "C", c.shape(), &[self.rows, columns])?;
        check_copied(NAME, "C", c)?;
        check_contiguous(NAME, "A", a)?;
        Ok(k)
    }
}
