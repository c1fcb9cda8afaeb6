//! Products with more than C = A B: checks of the optional operands and the choice among the kernels for them.

use tirx_rt::{Element, Stream, Tensor, View};

use super::fused::{Activation, Matmul};
use super::launch::ProductLaunch;
use super::operand::{Contiguous, Operand, has_vectors};
use super::{Extents, choice};
use crate::machine::{Generation, Machine};
use crate::{Error, Result};

/// The operands that are multiplied. A has three dimensions, also for groups: `[1, rows, K]`.
pub(super) struct Operands<'a, T: Element> {
    pub(super) a: &'a Tensor<T>,
    /// `[matrices, K, N]`.
    pub(super) b: &'a Tensor<T>,
    /// The second matrix of a gate, with the extents of B.
    pub(super) up: Option<&'a Tensor<T>>,
    /// Whether each matrix of B belongs to a group of rows of A.
    pub(super) grouped: bool,
    pub(super) built: Built,
}

impl<'a, T: Element> Operands<'a, T> {
    /// Those of a product without a gate and groups, by `general` alone; the caller names the other kernels that are built.
    pub(super) fn new(a: &'a Tensor<T>, b: &'a Tensor<T>) -> Operands<'a, T> {
        Operands {
            a,
            b,
            up: None,
            grouped: false,
            built: Built::GENERAL,
        }
    }
}

/// The kernels that are built for the element types and the form of a product.
#[derive(Clone, Copy, Debug)]
pub struct Built {
    /// The columns of the tiles of `general`, and the tiles of a cluster.
    pub(super) general: &'static [(i64, i64)],
    /// The columns of the tiles of `tiles` of `hopper.py`.
    pub(super) tiles: &'static [i64],
    pub(super) blocks: bool,
    pub(super) columns: bool,
    /// `tiles` of `blackwell.py`.
    pub(super) tensor_memory: bool,
    /// `general` with scales of blocks.
    pub(super) scaled: bool,
}

impl Built {
    /// `general` without clusters alone.
    pub(super) const GENERAL: Built = Built {
        general: &[(128, 1), (256, 1)],
        tiles: &[],
        blocks: false,
        columns: false,
        tensor_memory: false,
        scaled: false,
    };
}

/// The kernel for the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// `general`: tiles of 128 x `columns` elements of a product, or of both products of a gate.
    /// `cluster` of them, one above the other, share their columns of B.
    General { columns: i64, cluster: i64 },
    /// `tiles` of `hopper.py`: tiles of 128 x `columns` elements, which the copy engine stores.
    Tiles { columns: i64 },
    /// `general` with scales of blocks: tiles of 64 `warpgroups` x 128 elements.
    Scaled { warpgroups: i64 },
    /// `columns` of `hopper.py` in two parts of K: tiles of `rows` rows and 64 columns.
    Columns { rows: i64 },
    /// `tiles` of `blackwell.py`.
    TensorMemory {
        tile: choice::TensorMemoryTile,
        turned_a: bool,
    },
    /// `blocks` of `ampere.py`, for operands that are aligned and contiguous along K, or have any strides.
    Blocks { aligned: bool },
}

/// Cycles of a step of 128 bytes along K for a column of a tile.
const STEP: f64 = 4.4;

/// The columns of the tiles of `tiles` that are built for a B that is contiguous along its columns.
const TURNED: i64 = 128;

/// Checks a product and passes it to `launch`, with the matrices of B as `[N, K]`, or as `[K, N]` if columns are contiguous.
pub(super) fn with_call<T: Element, O: Element>(
    stream: &Stream,
    operands: &Operands<'_, T>,
    matmul: &Matmul<'_, O>,
    c: &mut Tensor<O>,
    launch: impl FnOnce(&ProductLaunch<'_, T, O>, Kernel, &mut Tensor<O>) -> Result<()>,
) -> Result<()> {
    let &Operands {
        a, b, up, grouped, ..
    } = operands;
    let (&[_, rows, k], &[matrices, _, columns]) = (a.shape(), b.shape()) else {
        return Err(Error::Shape("a product has three dimensions here".into()));
    };
    let scaled = matmul.scale != 1.0 || matmul.scale_a.is_some() || matmul.scale_b.is_some();
    if O::NAME == i32::NAME && (scaled || matmul.activation.is_some()) {
        return Err(Error::Shape(
            "a product with integers in C takes no scale and no activation: they give fractions, for which C is of bfloat16 or float32".into(),
        ));
    }
    // A tensor without elements stands for an operand that is not given.
    let nothing = a.slice(0, 0..0)?;
    let nothing = nothing.reshape([0, 0, 0])?;
    let nothing = nothing.as_bits::<O>()?;
    let no_scale = nothing.as_bits::<f32>()?;
    let no_scale = no_scale.reshape([0, 0])?;
    let no_bias = nothing.reshape([0, 0])?;

    let of_columns = Shapes {
        name: "bias",
        matrices,
        extent: columns,
        single: false,
        by_matrix: false,
    };
    let bias = matmul.bias.map(|t| of_columns.view(t)).transpose()?;
    let of_a = if grouped { 1 } else { matrices };
    let scales = match (matmul.by_blocks, matmul.scale_a, matmul.scale_b) {
        (true, Some(one), Some(other)) => {
            let steps = k.div_ceil(128);
            [
                Some(block_scales("A", one, [of_a, rows, steps])?),
                Some(block_scales(
                    "B",
                    other,
                    [matrices, columns.div_ceil(128), steps],
                )?),
            ]
        }
        (_, one, other) => {
            let of_rows = Shapes {
                name: "scale of A",
                matrices: of_a,
                extent: rows,
                single: true,
                by_matrix: false,
            };
            let of_columns = Shapes {
                name: "scale of B",
                single: true,
                by_matrix: grouped,
                ..of_columns
            };
            [
                one.map(|t| of_rows.view(t)).transpose()?,
                other.map(|t| of_columns.view(t)).transpose()?,
            ]
        }
    };
    let residual = match matmul.residual {
        None => None,
        Some(residual) if residual.shape() == c.shape() => Some(residual.slice(0, 0..c.shape()[0])?),
        Some(residual) if residual.shape() == &c.shape()[1..] && c.shape()[0] == 1 => {
            Some(residual.unsqueeze(0)?)
        }
        Some(residual) => {
            return Err(Error::Shape(format!(
                "the residual has the shape of C, {:?}, not {:?}",
                c.shape(),
                residual.shape()
            )));
        }
    };
    let given = [bias.as_deref(), residual.as_deref()];
    let vectors = given.into_iter().flatten().chain([&*c]).all(has_vectors);

    let machine = Machine::of_device(&stream.device())?;
    let extents = match grouped {
        // Rows are in groups of unknown sizes: those of equal ones.
        true => Extents {
            batch: matrices,
            m: rows.div_ceil(matrices),
            n: columns,
            k,
        },
        false => Extents {
            batch: matrices,
            m: rows,
            n: columns,
            k,
        },
    };
    let tensor_stores = vectors
        && Operand::from_tensor(c).contiguous == Contiguous::Columns
        && choice::whole_vectors(columns, size_of::<O>());
    let (kernel, turned_b) = choose(
        &machine,
        extents,
        operands,
        matmul.by_blocks,
        vectors,
        tensor_stores,
    )?;
    let blocks = match kernel {
        Kernel::General {
            columns: of_tile,
            cluster,
        } => {
            let of_tile = if up.is_some() { of_tile / 2 } else { of_tile };
            clusters(&machine, operands, [128, of_tile as usize], cluster as usize)?
        }
        Kernel::Tiles { columns } => clusters(&machine, operands, [128, columns as usize], 1)?,
        Kernel::Scaled { warpgroups } => clusters(&machine, operands, [64 * warpgroups as usize, 128], 1)?,
        Kernel::TensorMemory { tile, .. } => tile.blocks,
        Kernel::Columns { .. } | Kernel::Blocks { .. } => 0,
    };
    let early = match kernel {
        // This form of `columns` always has two parts.
        Kernel::Columns { rows } if matmul.constant_b => choice::early_stages(&machine, extents, rows, 2),
        _ => 0,
    };
    let turn = [0, 2, 1];
    let order = if turned_b { [0, 1, 2] } else { turn };
    let call = ProductLaunch {
        stream,
        a,
        b: b.permute(&order)?,
        up: up.map(|up| up.permute(&order)).transpose()?,
        bias: bias.as_deref().unwrap_or(&no_bias),
        residual: residual.as_deref().unwrap_or(&nothing),
        scale_a: scales[0].as_deref().unwrap_or(&no_scale),
        scale_b: scales[1].as_deref().unwrap_or(&no_scale),
        alpha: matmul.scale,
        activation: Activation::number(matmul.activation),
        vectors: i32::from(vectors),
        turned_b,
        early,
        blocks,
    };
    launch(&call, kernel, c)
}

/// As many clusters of blocks as the GPU has room for, or as there are tiles.
fn clusters<T: Element>(
    machine: &Machine,
    operands: &Operands<'_, T>,
    [of_tile, columns_of_tile]: [usize; 2],
    cluster: usize,
) -> Result<i32> {
    let (rows, matrices, columns) = (
        operands.a.shape()[1],
        operands.b.shape()[0],
        operands.b.shape()[2],
    );
    let across = columns.div_ceil(columns_of_tile);
    let down = match operands.grouped {
        // Each group may end within a tile.
        true => rows.div_ceil(of_tile * cluster) + matrices,
        false => matrices * rows.div_ceil(of_tile * cluster),
    };
    match i32::try_from(down.saturating_mul(across)) {
        Ok(tiles) => Ok(tiles.min(machine.multiprocessors as i32 / cluster as i32)),
        Err(_) => Err(Error::Shape(format!(
            "C has {down} x {across} tiles, above {}",
            i32::MAX
        ))),
    }
}

/// The kernel, and whether B is contiguous along its columns.
fn choose<T: Element>(
    machine: &Machine,
    extents: Extents,
    operands: &Operands<'_, T>,
    by_blocks: bool,
    vectors: bool,
    tensor_stores: bool,
) -> Result<(Kernel, bool)> {
    let a = Operand::from_tensor(operands.a).contiguous;
    let b = Operand::from_tensor(operands.b).turned().contiguous;
    let up = operands
        .up
        .map_or(b, |up| Operand::from_tensor(up).turned().contiguous);
    let turned_b = b == Contiguous::Rows;
    let bulk_copies = a == Contiguous::Columns && b != Contiguous::Neither && up == b && extents.k > 0;
    if by_blocks && !operands.built.scaled {
        return Err(Error::Shape(format!(
            "scales of blocks are for A and B of float8_e4m3fn and C of bfloat16 or, without groups, float32; A and B have elements of {}",
            T::NAME
        )));
    }
    let tensor_copies = a != Contiguous::Neither && b != Contiguous::Neither && extents.k > 0;
    if machine.generation == Generation::Blackwell && operands.built.tensor_memory && tensor_copies {
        let fastest = choice::tensor_memory(machine, extents).into_iter().next();
        if let Some((_, tile)) = fastest {
            let turned_a = a == Contiguous::Rows;
            return Ok((Kernel::TensorMemory { tile, turned_a }, turned_b));
        }
    }
    if machine.generation == Generation::Hopper && bulk_copies && by_blocks && !turned_b {
        let time_of = |warpgroups: i64| choice::time_of_scaled(machine, extents, warpgroups);
        let warpgroups = if time_of(3) < time_of(2) { 3 } else { 2 };
        return Ok((Kernel::Scaled { warpgroups }, false));
    }
    if machine.generation == Generation::Hopper
        && bulk_copies
        && !by_blocks
        && (!turned_b || size_of::<T>() == 2)
    {
        let gated = operands.up.is_some();
        let of_gate = if gated { 2 } else { 1 };
        // The model counts elements of two bytes.
        let extents = Extents {
            n: extents.n * of_gate,
            k: (extents.k * size_of::<T>()).div_ceil(2),
            ..extents
        };
        let rows = choice::rows_of_columns(extents.m);
        let grid = (
            extents.batch.saturating_mul(extents.m.div_ceil(rows)),
            extents.n.div_ceil(64),
        );
        let by_four = extents.n.is_multiple_of(4);
        let few = operands.built.columns && vectors && by_four && grid.0 <= 65535 && grid.1 <= 65535;
        let time_of = |columns: i64, cluster: i64, step: f64| {
            let rounded = Extents {
                m: extents.m.next_multiple_of(128 * cluster as usize),
                ..extents
            };
            choice::time_of_tiles(machine, rounded, columns, step).0
        };
        let general = (operands.built.general.iter())
            .filter(|(columns, _)| (!gated || *columns == 256) && !(few && extents.m <= 64))
            .map(|&(columns, cluster)| {
                let time = time_of(columns, cluster, STEP * columns as f64);
                (time, Kernel::General { columns, cluster })
            });
        let tiles = (operands.built.tiles.iter())
            .filter(|&&columns| {
                tensor_stores && (!turned_b || columns == TURNED) && !(few && extents.m <= 64)
            })
            .map(|&columns| {
                let time = time_of(columns, 1, choice::step_of_tile(columns));
                (time, Kernel::Tiles { columns })
            });
        let rows = rows as i64;
        let columns = (
            choice::time_of_columns(machine, extents, rows, 2),
            Kernel::Columns { rows },
        );
        let candidates = tiles.chain(general).chain(few.then_some(columns));
        if let Some((_, kernel)) = candidates.min_by(|(one, _), (other, _)| one.total_cmp(other)) {
            return Ok((kernel, turned_b));
        }
    }
    if operands.built.blocks && !by_blocks {
        // A copy of 16 bytes must not reach behind the end of a row.
        let aligned = a == Contiguous::Columns
            && b == Contiguous::Columns
            && extents.k.is_multiple_of(16 / size_of::<T>());
        return Ok((Kernel::Blocks { aligned }, false));
    }
    let unit = 16 / size_of::<T>();
    let problem = if machine.generation != Generation::Hopper {
        "its kernels are built for Hopper (sm_90a), and the device is another one".to_string()
    } else if extents.k == 0 {
        "K is at least 1".to_string()
    } else if bulk_copies {
        format!(
            "B of {} is contiguous along K: store it as [N, K] and pass `&b.permute(&[1, 0])?`",
            T::NAME
        )
    } else if a != Contiguous::Columns {
        format!(
            "the rows of A are contiguous, and begin at addresses and strides that are multiples of 16 bytes ({unit} elements)"
        )
    } else if up != b {
        "both matrices of a gate are contiguous along the same dimension".to_string()
    } else {
        format!(
            "B is contiguous along K or N, and its other strides and its address are multiples of 16 bytes ({unit} elements)"
        )
    };
    Err(Error::Shape(format!(
        "no kernel computes this product of {}: {problem}; A has shape {:?} and strides {:?}, B {:?} and {:?}",
        T::NAME,
        operands.a.shape(),
        operands.a.strides(),
        operands.b.shape(),
        operands.b.strides()
    )))
}

/// Scales of blocks with these extents, of which the first may be left out if it is 1.
fn block_scales<'a>(name: &str, tensor: &'a Tensor<f32>, extents: [usize; 3]) -> Result<View<'a, f32>> {
    match tensor.shape() {
        shape if shape == extents => Ok(tensor.slice(0, 0..extents[0])?),
        shape if shape == &extents[1..] && extents[0] == 1 => Ok(tensor.unsqueeze(0)?),
        shape => Err(Error::Shape(format!(
            "the scales of the blocks of {name} have shape {shape:?}; this product takes {extents:?}, the last two being those of the blocks"
        ))),
    }
}

/// The shapes that a bias or scales may have.
struct Shapes {
    name: &'static str,
    matrices: usize,
    /// Rows of A or columns of B.
    extent: usize,
    /// Whether one number for all of them, or for all of a matrix, is possible.
    single: bool,
    /// Whether a vector with one number for each matrix is possible.
    by_matrix: bool,
}

impl Shapes {
    /// A bias or scales as `[matrices or 1, extent or 1]`.
    fn view<'a, E: Element>(&self, tensor: &'a Tensor<E>) -> Result<View<'a, E>> {
        let &Shapes { matrices, extent, .. } = self;
        let fits = |count: usize| count == extent || count == 1 && self.single;
        match *tensor.shape() {
            [count] if count == matrices && self.by_matrix => Ok(tensor.unsqueeze(1)?),
            [count] if fits(count) => Ok(tensor.unsqueeze(0)?),
            [batch, count] if (batch == matrices || batch == 1) && fits(count) => {
                Ok(tensor.slice(0, 0..batch)?)
            }
            _ => {
                let mut others = String::new();
                if self.single {
                    others.push_str("[1], ");
                }
                if self.by_matrix {
                    others.push_str(&format!("[{matrices}], "));
                }
                Err(Error::Shape(format!(
                    "the {} has shape {:?}; it fits this product as {others}[{extent}] or [{matrices}, {extent}]",
                    self.name,
                    tensor.shape()
                )))
            }
        }
    }
}
