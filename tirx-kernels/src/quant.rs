//! Weights of few bits: the formats of GGUF files, 4 bits with groups (GPTQ, AWQ), and float8.
//!
//! | format | a block | bits per weight |
//! |---|---|---|
//! | `Q8_0` | 32 weights: a float16 factor, signed bytes | 8.5 |
//! | `Q4_K` | 256 weights: 8 parts with a factor and a minimum of 6 bits each, two float16 factors of those | 4.5 |
//! | `Q6_K` | 256 weights: 16 parts with a signed factor of 8 bits each, a float16 factor of those | 6.5625 |
//!
//! | [`Int4`] | a group: a float16 factor, a zero of 8 bits | 4 and 24 for each group |
//! | float8 | a group: a float32 factor | 8 and 32 for each group |
//! | MXFP4 | 32 weights: a power of two in 8 bits, float4 (e2m1) | 4.25 |
//!
//! A matrix `[outputs, columns]` in a format of GGUF is a tensor of bytes, `[outputs, bytes of a row]`, exactly as in the file. [`matmul`] is for few
//! rows: it reads the weights in few bits. For many rows, [`dequantize`] once and multiply by `gemm`.

mod repack;

pub use repack::{Int4, Layout};

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor, bf16, f4e2m1x2, f8e4m3, f8e8m0, f16};

use crate::generated::kernels;
use crate::machine::Machine;
use crate::{Error, Result};

mod sealed {
    use super::kernels;

    pub trait Kernels:
        kernels::quant_row::Element
        + kernels::quant_dequantize::Element
        + kernels::quant_matmul_few::Element
        + kernels::quant_row_int4::Element
        + kernels::quant_matmul_int4::Element
        + kernels::quant_matmul_few_int4::Element
        + kernels::quant_dequantize_int4::Element
        + kernels::quant_row_fp8::Element
        + kernels::quant_matmul_fp8::Element
        + kernels::quant_matmul_few_fp8::Element
        + kernels::quant_dequantize_fp8::Element
        + kernels::quant_row_mxfp4::Element
        + kernels::quant_matmul_few_mxfp4::Element
        + kernels::quant_dequantize_mxfp4::Element
    {
    }
}

/// An element type of the other operands: `bf16` or `f16`.
pub trait Element: sealed::Kernels {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl Element for bf16 {}
impl Element for f16 {}

/// A form of weights in GGUF files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(non_camel_case_types, reason = "the names that GGUF gives")]
pub enum Format {
    /// 8 bits.
    Q8_0,
    /// 4 bits with minima.
    Q4_K,
    /// 6 bits.
    Q6_K,
}

impl Format {
    /// Weights and bytes of a block.
    fn block(self) -> (usize, usize) {
        match self {
            Format::Q8_0 => (32, 34),
            Format::Q4_K => (256, 144),
            Format::Q6_K => (256, 210),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Format::Q8_0 => "Q8_0",
            Format::Q4_K => "Q4_K",
            Format::Q6_K => "Q6_K",
        }
    }

    /// The bytes of a row with this number of weights; `None` if it is not a whole number of blocks.
    pub fn bytes_of_row(self, columns: usize) -> Option<usize> {
        let (weights, bytes) = self.block();
        columns.is_multiple_of(weights).then(|| columns / weights * bytes)
    }
}

/// A matrix of weights, `[outputs, columns]`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Weights<'a> {
    /// Rows of blocks, `[outputs, bytes of a row]`.
    Gguf(Format, &'a Tensor<u8>),
    /// 4 bits.
    Int4(&'a Int4),
    /// Float8 `[outputs, columns]`, and the factor of each group of columns `[outputs, groups]`; one group for a factor of each row.
    Fp8(&'a Tensor<f8e4m3>, &'a Tensor<f32>),
    /// Float4 `[outputs, columns / 2]`, the weight with the even column in the low half of a byte, and the factor of each 32 columns
    /// `[outputs, columns / 32]`: MXFP4 of the OCP's specification of microscaling formats.
    Mxfp4(&'a Tensor<f4e2m1x2>, &'a Tensor<f8e8m0>),
}

impl Weights<'_> {
    /// Checks them as a matrix of these extents, and gives the columns of a group.
    fn check(&self, outputs: usize, columns: usize) -> Result<usize> {
        let extents = [outputs, columns];
        match self {
            Weights::Gguf(format, weights) => {
                let Some(bytes) = format.bytes_of_row(columns) else {
                    return Err(Error::Shape(format!(
                        "rows of {format:?} have a multiple of {} weights, not {columns}",
                        format.block().0
                    )));
                };
                let multiple = if *format == Format::Q4_K { 4 } else { 2 };
                check_rows(&format!("{format:?}"), weights, extents, bytes, multiple)?;
                Ok(columns.max(1))
            }
            Weights::Int4(weights) => {
                check_rows("Int4", &weights.bytes, extents, columns / 2, 4)?;
                if weights.zeros.shape() != weights.scales.shape() {
                    return Err(Error::Shape(format!(
                        "scales and zeros have the same shape, not {:?} and {:?}",
                        weights.scales.shape(),
                        weights.zeros.shape()
                    )));
                }
                check_groups(&weights.scales, outputs, columns)
            }
            Weights::Fp8(weights, scales) => {
                check_rows("float8", weights, extents, columns, 4)?;
                check_groups(scales, outputs, columns)
            }
            Weights::Mxfp4(weights, scales) => {
                check_rows("MXFP4", weights, extents, columns / 2, 4)?;
                if !columns.is_multiple_of(32) {
                    return Err(Error::Shape(format!(
                        "rows of MXFP4 have a multiple of 32 weights, not {columns}"
                    )));
                }
                if scales.shape() != [outputs, columns / 32] {
                    return Err(Error::Shape(format!(
                        "scales of MXFP4 have the shape [{outputs}, {}], one for each 32 columns; their shape is {:?}",
                        columns / 32,
                        scales.shape()
                    )));
                }
                if columns == 0 {
                    return Ok(1);
                }
                check_groups(scales, outputs, columns)
            }
        }
    }
}

fn check_rows<T: tirx_rt::Element>(
    name: &str,
    weights: &Tensor<T>,
    [outputs, columns]: [usize; 2],
    bytes: usize,
    multiple: u64,
) -> Result<()> {
    if weights.shape() != [outputs, bytes] {
        return Err(Error::Shape(format!(
            "{outputs} rows of {columns} weights in {name} have the shape [{outputs}, {bytes}] in bytes, not {:?}",
            weights.shape()
        )));
    }
    let aligned =
        weights.address().is_multiple_of(multiple) && weights.strides()[0].is_multiple_of(multiple as usize);
    if !weights.is_empty() && (weights.strides()[1] != 1 || !aligned) {
        return Err(Error::Shape(format!(
            "rows of {name} are contiguous and begin at multiples of {multiple} bytes; the strides are {:?}",
            weights.strides()
        )));
    }
    for extent in [outputs.saturating_mul(8), columns, weights.strides()[0]] {
        if i32::try_from(extent).is_err() {
            return Err(Error::Shape(format!(
                "weights of the shape {:?} are too large for a launch",
                weights.shape()
            )));
        }
    }
    Ok(())
}

fn check_groups<T: tirx_rt::Element>(scales: &Tensor<T>, outputs: usize, columns: usize) -> Result<usize> {
    let groups = match *scales.shape() {
        [rows, groups] if rows == outputs && groups > 0 && columns.is_multiple_of(8 * groups) => groups,
        _ => {
            return Err(Error::Shape(format!(
                "scales have the shape [{outputs}, groups], and a group has a multiple of 8 of {columns} columns; their shape is {:?}",
                scales.shape()
            )));
        }
    };
    if groups > 1 && scales.strides()[1] != 1 {
        return Err(Error::Shape(format!(
            "the rows of scales are contiguous; the strides are {:?}",
            scales.strides()
        )));
    }
    Ok((columns / groups).max(1))
}

/// The kernel of a product.
#[derive(Clone, Copy)]
enum Path {
    /// By `mma.sync` for one row of X.
    Row,
    /// By `mma.sync`, with the name of the format there.
    Few(&'static str),
    /// By the FMA instructions of each lane.
    Scalar,
}

impl Path {
    fn of_weights(weights: Weights<'_>, [rows, outputs, columns]: [usize; 3], group: i32) -> Path {
        // A block of `row` has 16 rows of weights, and all of X in shared memory.
        let row = |most: usize| rows == 1 && outputs >= 16 && columns <= most;
        match weights {
            Weights::Gguf(Format::Q8_0, _) if row(14336) => Path::Row,
            Weights::Gguf(Format::Q4_K, _) if row(12288) => Path::Row,
            Weights::Gguf(format, _) => Path::Few(format.name()),
            Weights::Int4(_) if group % 64 == 0 && row(14336) => Path::Row,
            Weights::Int4(_) if group % 128 == 0 => Path::Few("INT4_128"),
            Weights::Int4(_) if group % 32 == 0 => Path::Few("INT4"),
            Weights::Fp8(..) if group % 32 == 0 && row(14336) => Path::Row,
            Weights::Fp8(..) if group % 64 == 0 => Path::Few("FP8"),
            Weights::Mxfp4(..) if row(14336) => Path::Row,
            Weights::Mxfp4(..) => Path::Few("MXFP4"),
            Weights::Int4(_) | Weights::Fp8(..) => Path::Scalar,
        }
    }
}

/// The bytes of the copies of which rows of weights are a whole number: 16 or 4, otherwise 0.
fn aligned<T: tirx_rt::Element>(bytes: &Tensor<T>) -> i32 {
    let [of_row, gap] = [bytes.shape()[1], bytes.strides()[0]].map(|elements| elements * size_of::<T>());
    let gap = if bytes.shape()[0] == 1 { 0 } else { gap };
    let whole = |copy: usize| {
        [bytes.address() as usize, of_row, gap]
            .iter()
            .all(|n| n.is_multiple_of(copy))
    };
    [16, 4].into_iter().find(|copy| whole(*copy)).unwrap_or(0) as i32
}

/// How a product by `mma.sync` is divided.
struct Division {
    /// Warps that divide the columns of 16 rows of weights.
    warps: i32,
    blocks: i32,
    /// Eights of rows of X that share the weights that a warp loads.
    tiles: i64,
}

impl Division {
    /// For warps that multiply by `step` columns at a time.
    fn new(multiprocessors: f64, [rows, outputs, columns]: [usize; 3], step: usize) -> Division {
        // As many warps as a unit has steps, so that all units end at nearly the same time.
        let of_columns = columns.div_ceil(step);
        let warps = [8, 4, 2].into_iter().find(|w| *w <= of_columns).unwrap_or(1);
        let units = outputs.div_ceil(16).div_ceil(8 / warps);
        let tiles = if rows > 8 { 2 } else { 1 };
        Division {
            warps: warps as i32,
            blocks: units.min(2 * multiprocessors as usize) as i32,
            tiles,
        }
    }
}

/// The warps that divide the columns of a product by FMA: enough to have as many bytes in flight as the memory's latency needs, 48 for each
/// multiprocessor.
fn warps_by_lanes(multiprocessors: f64, [rows, outputs, columns]: [usize; 3]) -> i32 {
    let rows_at_a_time = if rows == 1 { 4 } else { 2 };
    let wanted = 48.0 * multiprocessors / outputs.div_ceil(rows_at_a_time) as f64;
    let most = columns.div_ceil(256);
    let fitting = [8, 4, 2]
        .into_iter()
        .find(|w| f64::from(*w) <= wanted && *w as usize <= most);
    fitting.unwrap_or(1)
}

/// Y = X Wᵀ for X `[rows, columns]`, W `[outputs, columns]` and Y `[rows, outputs]`.
///
/// Every sixteen rows of X read the weights once, so it is meant for up to 16 rows. A float8 weight that is not a number counts as 480 or NaN.
///
/// ```
/// use tirx_kernels::quant::{self, Format, Weights};
/// # use tirx_rt::{Device, Tensor, f16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// // One row of 32 weights: the factor 0.5, and 32 times the number 3.
/// let bytes: Vec<u8> = f16::from_f32(0.5).to_le_bytes().into_iter().chain([3; 32]).collect();
/// let weights = Tensor::from_slice(&stream, &bytes, [1, 34])?;
/// let x = Tensor::full(&stream, f16::ONE, [1, 32])?;
/// let mut y = Tensor::zeros(&stream, [1, 1])?;
/// quant::matmul(&stream, &x, Weights::Gguf(Format::Q8_0, &weights), &mut y)?;
/// assert_eq!(y.to_vec()?[0].to_f32(), 48.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other, rows are not contiguous, or rows of X are not aligned to 16 bytes;
/// [`Error::Runtime`] for those of the launch.
pub fn matmul<T: Element>(
    stream: &Stream,
    x: &impl AsTensor<T>,
    weights: Weights<'_>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    let (x, y) = (x.tensor(), y.tensor_mut());
    let (&[rows, columns], &[of_y, outputs]) = (x.shape(), y.shape()) else {
        return Err(Error::Shape(format!(
            "X has the shape [rows, columns] and Y [rows, outputs]; they have {:?} and {:?}",
            x.shape(),
            y.shape()
        )));
    };
    if rows != of_y {
        return Err(Error::Shape(format!("X has {rows} rows and Y has {of_y}")));
    }
    let group = weights.check(outputs, columns)? as i32;
    if y.is_empty() {
        return Ok(());
    }
    if columns == 0 {
        y.fill_zero(stream)?;
        return Ok(());
    }
    if x.strides()[1] != 1 || !x.strides()[0].is_multiple_of(8) || !x.address().is_multiple_of(16) {
        return Err(Error::Shape(format!(
            "rows of X are contiguous and begin at multiples of 16 bytes; the strides are {:?}",
            x.strides()
        )));
    }
    if outputs > 1 && y.strides()[1] != 1 {
        return Err(Error::Shape(format!(
            "rows of Y are contiguous; the strides are {:?}",
            y.strides()
        )));
    }
    if rows > 8 * 65535 {
        return Err(Error::Shape(format!(
            "X has at most {} rows, not {rows}",
            8 * 65535
        )));
    }
    let machine = Machine::of_device(&stream.device())?;
    let path = Path::of_weights(weights, [rows, outputs, columns], group);
    let step = match (path, weights) {
        (Path::Row, Weights::Int4(_) | Weights::Gguf(Format::Q4_K, _)) => 512,
        _ => 256,
    };
    let division = Division::new(machine.multiprocessors, [rows, outputs, columns], step);
    let Division { warps, blocks, tiles } = division;
    let warps_of_lanes = warps_by_lanes(machine.multiprocessors, [rows, outputs, columns]);
    match (weights, path) {
        (Weights::Gguf(format, w), Path::Row) => {
            let constexpr = kernels::quant_row::Constexpr {
                FORMAT: format.name(),
            };
            let none = w.slice(0, 0..0)?;
            let aligned = aligned(w);
            kernels::quant_row::<T>(
                stream, constexpr, x, w, &none, &none, y, warps, group, blocks, aligned,
            )?;
        }
        (Weights::Gguf(format, w), _) => {
            let constexpr = kernels::quant_matmul_few::Constexpr {
                FORMAT: format.name(),
                TILES: tiles,
            };
            let none = w.slice(0, 0..0)?;
            let aligned = match (aligned(w), format) {
                (0, Format::Q6_K) if w.address().is_multiple_of(4) => 2,
                (copies, _) => copies,
            };
            kernels::quant_matmul_few::<T>(
                stream, constexpr, x, w, &none, &none, y, warps, group, blocks, aligned,
            )?;
        }
        (Weights::Int4(Int4 { bytes, scales, zeros }), path) => {
            let aligned = aligned(bytes);
            match path {
                Path::Row => kernels::quant_row_int4::<T>(
                    stream, x, bytes, scales, zeros, y, warps, group, blocks, aligned,
                )?,
                Path::Few(name) => {
                    let constexpr = kernels::quant_matmul_few_int4::Constexpr {
                        FORMAT: name,
                        TILES: tiles,
                    };
                    kernels::quant_matmul_few_int4::<T>(
                        stream, constexpr, x, bytes, scales, zeros, y, warps, group, blocks, aligned,
                    )?;
                }
                Path::Scalar => kernels::quant_matmul_int4::<T>(
                    stream,
                    x,
                    bytes,
                    scales,
                    zeros,
                    y,
                    warps_of_lanes,
                    group,
                )?,
            }
        }
        (Weights::Mxfp4(w, scales), path) => {
            let (bytes, scales) = (w.as_bits::<u8>()?, scales.as_bits::<u8>()?);
            let none = bytes.slice(0, 0..0)?;
            let none = none.reshape([0, scales.shape()[1]])?;
            let aligned = aligned(&bytes);
            if matches!(path, Path::Row) {
                kernels::quant_row_mxfp4::<T>(
                    stream, x, &bytes, &scales, &none, y, warps, group, blocks, aligned,
                )?;
            } else {
                let constexpr = kernels::quant_matmul_few_mxfp4::Constexpr { TILES: tiles };
                kernels::quant_matmul_few_mxfp4::<T>(
                    stream, constexpr, x, &bytes, &scales, &none, y, warps, group, blocks, aligned,
                )?;
            }
        }
        (Weights::Fp8(w, scales), path) => {
            let bytes = w.as_bits::<u8>()?;
            let none = bytes.slice(0, 0..0)?;
            let none = none.reshape([0, scales.shape()[1]])?;
            let aligned = aligned(&bytes);
            match path {
                Path::Row => kernels::quant_row_fp8::<T>(
                    stream, x, &bytes, scales, &none, y, warps, group, blocks, aligned,
                )?,
                Path::Few(_) => {
                    let constexpr = kernels::quant_matmul_few_fp8::Constexpr { TILES: tiles };
                    kernels::quant_matmul_few_fp8::<T>(
                        stream, constexpr, x, &bytes, scales, &none, y, warps, group, blocks, aligned,
                    )?;
                }
                Path::Scalar => kernels::quant_matmul_fp8::<T>(
                    stream,
                    x,
                    &bytes,
                    scales,
                    &none,
                    y,
                    warps_of_lanes,
                    group,
                )?,
            }
        }
    }
    Ok(())
}

/// Y = W: the numbers of weights, rounded to the element type of Y `[outputs, columns]`.
///
/// # Errors
/// As for [`matmul`], with rows of Y aligned to 16 bytes.
pub fn dequantize<T: Element>(
    stream: &Stream,
    weights: Weights<'_>,
    y: &mut impl AsTensorMut<T>,
) -> Result<()> {
    let y = y.tensor_mut();
    let &[outputs, columns] = y.shape() else {
        return Err(Error::Shape(format!(
            "Y has the shape [outputs, columns], not {:?}",
            y.shape()
        )));
    };
    let group = weights.check(outputs, columns)? as i32;
    if y.is_empty() {
        return Ok(());
    }
    if y.strides()[1] != 1 || !y.strides()[0].is_multiple_of(8) || !y.address().is_multiple_of(16) {
        return Err(Error::Shape(format!(
            "rows of Y are contiguous and begin at multiples of 16 bytes; the strides are {:?}",
            y.strides()
        )));
    }
    match weights {
        Weights::Gguf(format, weights) => {
            let constexpr = kernels::quant_dequantize::Constexpr {
                FORMAT: format.name(),
            };
            let none = weights.slice(0, 0..0)?;
            kernels::quant_dequantize::<T>(stream, constexpr, weights, &none, &none, y, group)?;
        }
        Weights::Int4(w) => {
            kernels::quant_dequantize_int4::<T>(stream, &w.bytes, &w.scales, &w.zeros, y, group)?;
        }
        Weights::Fp8(w, scales) => {
            let bytes = w.as_bits::<u8>()?;
            let none = bytes.slice(0, 0..0)?;
            let none = none.reshape([0, scales.shape()[1]])?;
            kernels::quant_dequantize_fp8::<T>(stream, &bytes, scales, &none, y, group)?;
        }
        Weights::Mxfp4(w, scales) => {
            let (bytes, scales) = (w.as_bits::<u8>()?, scales.as_bits::<u8>()?);
            let none = bytes.slice(0, 0..0)?;
            let none = none.reshape([0, scales.shape()[1]])?;
            kernels::quant_dequantize_mxfp4::<T>(stream, &bytes, &scales, &none, y, group)?;
        }
    }
    Ok(())
}
