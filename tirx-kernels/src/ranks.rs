//! Kernels that the GPUs of a [`World`] run together, of bfloat16 with float32 accumulators.
//!
//! | type | computes | meanwhile |
//! |---|---|---|
//! | [`AllGatherMatmul`] | A B, from rows of A on every rank | the rows of the other ranks arrive, and their products start as they do |
//! | [`MatmulReduceScatter`] | the sum of A B over all ranks, of which each rank keeps its rows | products for other ranks travel |
//! | [`AllReduceRmsNorm`] | R + the sum of X over all ranks, and its RMSNorm | |
//!
//! A value of these types owns memory that all ranks access, and counts its launches. `run` launches on all ranks. `launch` launches on
//! one rank: call it for each rank within one [`World::launch`], together with other kernels of a step if you want. A step may use a
//! value several times.
//!
//! ```
//! use tirx_kernels::ranks::AllGatherMatmul;
//! use tirx_rt::{Tensor, World, bf16};
//!
//! # fn main() -> tirx_kernels::Result<()> {
//! let world = World::simulated(2)?; // World::cuda(&[0, 1])?
//! let mut gather = AllGatherMatmul::new(&world, 16, 64)?; // each rank has 16 rows of 64 elements
//! let mut c = Vec::new();
//! let mut weights = Vec::new();
//! for rank in 0..world.ranks() {
//!     let stream = world.stream(rank);
//!     let rows = vec![bf16::from_f32(1.0 + rank as f32); 16 * 64];
//!     gather.rows_mut(rank)?.copy_from_slice(stream, &rows)?;
//!     weights.push(Tensor::from_slice(stream, &[bf16::from_f32(0.5); 40 * 64], [40, 64])?);
//!     c.push(Tensor::zeros(stream, [2 * 16, 40])?);
//! }
//! gather.run(&world, &weights, &mut c)?; // C = A times the transpose of the weights
//! assert_eq!(c[0].to_vec()?[16 * 40].to_f32(), 64.0); // row 16 comes from rank 1
//! # Ok(())
//! # }
//! ```
//!
//! The kernels run on Hopper, with peer access between all GPUs. A launch occupies at most one block for each multiprocessor, and blocks
//! of different ranks wait for each other: no other kernel that waits for one of these ranks may run on the GPUs at the same time.
//!
//! `new` loads the kernels. The driver may load other kernels of a step at their first launch, and wait for the device meanwhile, which
//! waits for another rank. So launch each of them once before, or call [`Kernel::load`](tirx_rt::Kernel::load).
//!
//! If a launch fails on one rank, the ranks before it may wait for ever. `run` therefore checks the arguments of all ranks first. After
//! an error of a launch, make a new value.

mod gather;
mod norm;
mod scatter;

use tirx_rt::{Element, Symmetric, Tensor, World, bf16};

use crate::machine::Machine;
use crate::{Error, Result};
pub use gather::AllGatherMatmul;
pub use norm::AllReduceRmsNorm;
pub use scatter::MatmulReduceScatter;

/// Memory on every rank, with the table of its addresses on every rank.
struct Shared<T: Element> {
    memory: Symmetric<T>,
    addresses: Vec<Tensor<u64>>,
}

impl<T: Element> Shared<T> {
    fn zeros(world: &World, shape: &[usize]) -> Result<Shared<T>> {
        let memory = world.zeros(shape)?;
        Ok(Shared {
            addresses: world.addresses_of(&memory)?,
            memory,
        })
    }
}

/// Loads kernels on every rank. A kernel that is loaded at its first launch may wait for a kernel that runs, which waits for another rank.
fn load(world: &World, kernels: &[&tirx_rt::Kernel]) -> Result<()> {
    for rank in 0..world.ranks() {
        for kernel in kernels {
            kernel.load(world.stream(rank))?;
        }
    }
    Ok(())
}

/// Columns of a tile that are built, and the cycles of a step of 64 along K.
const TILES: [(usize, f64); 2] = [(128, 570.0), (256, 1110.0)];

/// The columns of a tile, and the tiles, for `ranks` matrices of `rows` rows: the fewest cycles.
fn tiles(machine: &Machine, ranks: usize, rows: usize, columns: usize) -> (usize, usize) {
    let count = |width: usize| ranks * rows.div_ceil(128) * columns.div_ceil(width);
    let cycles =
        |&(width, step): &(usize, f64)| (count(width) as f64 / machine.multiprocessors).ceil() * step;
    let best = TILES
        .iter()
        .min_by(|one, other| cycles(one).total_cmp(&cycles(other)));
    let width = best.map_or(128, |(width, _)| *width);
    (width, count(width))
}

/// The blocks of a launch: one for each multiprocessor at most, so that all can be resident.
fn blocks(machine: &Machine, work: usize) -> i32 {
    (work as f64).min(machine.multiprocessors) as i32
}

/// Refuses an extent of 0, or one that does not fit the numbers of the kernels.
fn check_extents(what: &str, extents: &[(&str, usize)]) -> Result<()> {
    for (name, extent) in extents {
        if *extent == 0 || *extent > i32::MAX as usize {
            return Err(Error::Shape(format!(
                "{what}: {name} is {extent}, and it is 1 to {}",
                i32::MAX
            )));
        }
    }
    let all = extents
        .iter()
        .try_fold(1usize, |all, (_, extent)| all.checked_mul(*extent));
    match all {
        Some(all) if all <= i32::MAX as usize => Ok(()),
        _ => Err(Error::Shape(format!(
            "{what}: {extents:?} are more than {} elements",
            i32::MAX
        ))),
    }
}

/// Refuses a number of elements in a row that is no multiple of 8.
fn check_row(what: &str, name: &str, extent: usize) -> Result<()> {
    if extent.is_multiple_of(8) {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "{what}: {name} is {extent}, and it is a multiple of 8: rows are copied by 16 bytes"
    )))
}

/// Refuses another shape.
fn check_shape(what: &str, name: &str, found: &[usize], wanted: &[usize]) -> Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "{what}: {name} has the shape {wanted:?}, not {found:?}"
        ))),
    }
}

/// Refuses B, `[columns, k]`, if tensor copies cannot read it.
fn check_weights(what: &str, b: &Tensor<bf16>, k: usize) -> Result<usize> {
    let &[columns, found] = b.shape() else {
        return Err(Error::Shape(format!(
            "{what}: B has the shape [N, K], not {:?}",
            b.shape()
        )));
    };
    if found != k {
        return Err(Error::Shape(format!(
            "{what}: B has the shape [N, {k}], with the columns of A in a row, not {:?}",
            b.shape()
        )));
    }
    check_extents(what, &[("the number of rows of B", columns)])?;
    check_copied(what, "B", b)?;
    Ok(columns)
}

/// Refuses a matrix that tensor copies cannot access.
fn check_copied(what: &str, name: &str, matrix: &Tensor<bf16>) -> Result<()> {
    let strides = matrix.strides();
    let (row, column) = (strides.first().copied(), strides.last().copied());
    let fits = row.is_some_and(|row| row.is_multiple_of(8)) && column == Some(1);
    if fits && matrix.address().is_multiple_of(16) {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "{what}: the rows of {name} are contiguous and begin at multiples of 16 bytes; its shape is {:?}, its strides are {strides:?}",
        matrix.shape()
    )))
}

/// Refuses a matrix with gaps between its rows, which the kernel divides between the ranks.
fn check_contiguous(what: &str, name: &str, matrix: &Tensor<bf16>) -> Result<()> {
    match matrix.is_contiguous() {
        true => Ok(()),
        false => Err(Error::Shape(format!(
            "{what}: {name} is contiguous; its shape is {:?}, its strides are {:?}",
            matrix.shape(),
            matrix.strides()
        ))),
    }
}

/// Refuses a number of tensors that is not the number of ranks.
fn check_ranks(what: &str, ranks: usize, world: &World, counts: &[(&str, usize)]) -> Result<()> {
    if world.ranks() != ranks {
        return Err(Error::Shape(format!(
            "{what}: it was made for {ranks} ranks, and this world has {}",
            world.ranks()
        )));
    }
    for (name, count) in counts {
        if *count != ranks {
            return Err(Error::Shape(format!(
                "{what}: {name} has {count} tensors for {ranks} ranks: one for each"
            )));
        }
    }
    Ok(())
}

/// The errors of a function of this crate within [`World::launch`].
fn of_launch(error: Error) -> tirx_rt::Error {
    match error {
        Error::Runtime(error) => error,
        Error::Shape(message) => tirx_rt::Error::Shape(message),
    }
}
