//! Attention to keys and values in pages, for decoding and for prompts in parts, and the caches that hold them.
//!
//! | tensor | shape |
//! |---|---|
//! | Q, O | `[batch, heads, head]`, or `[batch, queries, heads, head]` |
//! | caches of K and V | `[pages, rows of a page, heads of K, head]` |
//! | page table | `[batch, most pages of a sequence]`, `i32`: row j of a sequence is row j mod page size of the page at j / page size |
//! | lengths | `[batch]`, `i32`: the keys of each sequence, those of this call's queries included |
//!
//! Elements are `bf16` or `f16`, those of caches also `f8e4m3`; `head` is 64, 96, 128 or 256, pages have any size. The lengths stay on the device,
//! so a captured call serves growing sequences. Pages outside of the cache are read as zeros. Kernels run on every GPU from `sm_80` on.
//!
//! A number of a float8 cache stands for itself times a factor, the same for all keys and the same for all values ([`Factors`]). Products
//! with it are of float16 with float32 sums.

mod caches;
mod elements;
mod latent;

pub use caches::{
    Heads, Norms, Rope, advance, append, append_queries, append_scaled, copy_pages, copy_pages_within,
};
pub use elements::{CacheElement, Cached, Element, Factors};
pub use latent::{append_latent, decode_latent};

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor, View};

use self::elements::Decode;
use super::rows::{has_shape, number, same_shape};
use crate::machine::Machine;
use crate::{Error, Result};

/// The keys that a query sees, the form of its scores, and the division of the work. [`Options::default`] is attention to all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The factor of scores; 1 / sqrt(`head`) if it is not given.
    pub scale: Option<f32>,
    /// The number of keys that a query sees at most, up to its own position.
    pub window: Option<usize>,
    /// The bound of scores: each becomes `cap * tanh(score / cap)`.
    pub cap: Option<f32>,
    /// The greatest length that the division of the work expects; that of the page table if it is not given. Longer sequences are right, but
    /// slower.
    pub longest: Option<usize>,
    /// The ranges that the keys of a sequence are divided into; chosen by a model of the time if it is not given.
    pub splits: Option<usize>,
    /// The factors of float8 caches.
    pub factors: Factors,
}

impl Options {
    /// With this factor of scores.
    pub fn scale(self, scale: f32) -> Options {
        Options {
            scale: Some(scale),
            ..self
        }
    }

    /// With a window of `keys` keys.
    pub fn window(self, keys: usize) -> Options {
        Options {
            window: Some(keys),
            ..self
        }
    }

    /// With this bound of scores.
    pub fn cap(self, cap: f32) -> Options {
        Options {
            cap: Some(cap),
            ..self
        }
    }

    /// For sequences of at most about this length.
    pub fn longest(self, keys: usize) -> Options {
        Options {
            longest: Some(keys),
            ..self
        }
    }

    /// With this number of ranges of keys.
    pub fn splits(self, splits: usize) -> Options {
        Options {
            splits: Some(splits),
            ..self
        }
    }

    /// With these factors of float8 caches.
    pub fn factors(self, factors: Factors) -> Options {
        Options { factors, ..self }
    }

    /// Refuses scores that the kernels cannot tell from those of keys that a query does not see.
    fn check_scores(&self) -> Result<()> {
        if let Some(scale) = self.scale.filter(|scale| !(-1e20..=1e20).contains(scale)) {
            return Err(Error::Shape(format!(
                "the factor of scores is a number from -1e20 to 1e20, not {scale}"
            )));
        }
        if let Some(cap) = self.cap.filter(|cap| !(1e-20..=1e20).contains(cap)) {
            return Err(Error::Shape(format!(
                "the bound of scores is a number from 1e-20 to 1e20, not {cap}; leave it out for scores without a bound"
            )));
        }
        Ok(())
    }
}

/// Memory for the results of ranges of keys, which [`decode`] combines. One workspace serves all layers of a model, one call at a time.
#[derive(Debug)]
pub struct Workspace {
    partial: Tensor<f32>,
    counters: Tensor<i32>,
}

impl Workspace {
    /// Memory for calls of [`decode`] with these tensors and options. In other calls a small workspace bounds the ranges of keys, which
    /// costs time and changes no result by more than rounding.
    ///
    /// # Errors
    /// As for [`decode`].
    pub fn for_decode<T: Element, C: Cached<T>>(
        stream: &Stream,
        q: &impl AsTensor<T>,
        k_cache: &impl AsTensor<C>,
        page_table: &impl AsTensor<i32>,
        options: Options,
    ) -> Result<Workspace> {
        let q = four(q.tensor())?;
        let division = Division::for_decode(stream, &q, k_cache.tensor(), page_table.tensor(), options)?;
        Workspace::for_division(stream, &division, options)
    }

    fn for_division(stream: &Stream, division: &Division, options: Options) -> Result<Workspace> {
        // Calls with fewer blocks have more ranges, up to about two waves of blocks.
        let blocks = match options.splits {
            Some(_) => 0,
            None => (2.3 * division.resident_blocks) as usize,
        };
        Ok(Workspace {
            partial: Tensor::zeros(
                stream,
                [division
                    .partial()
                    .max(blocks * division.most_rows * (division.of_value + 2))],
            )?,
            counters: Tensor::zeros(stream, [division.counters().max(blocks)])?,
        })
    }
}

/// The most ranges of keys of a sequence.
const MAX_SPLITS: usize = 256;

/// The blocks of a launch.
struct Division {
    batch: usize,
    heads_of_k: usize,
    /// Elements of a value.
    of_value: usize,
    /// Rows of a tile: queries times heads that share a head of K.
    rows: usize,
    /// The largest value of `rows` that later calls of the function with this workspace may have.
    most_rows: usize,
    /// Tiles of each sequence and head of K.
    tiles: usize,
    /// Ranges into which the keys of a sequence are divided; each range of a tile is a block.
    splits: usize,
    /// Blocks that the GPU holds at a time.
    resident_blocks: f64,
}

impl Division {
    fn for_decode<T: Element, C: Cached<T>>(
        stream: &Stream,
        q: &Tensor<T>,
        k_cache: &Tensor<C>,
        page_table: &Tensor<i32>,
        options: Options,
    ) -> Result<Division> {
        let (&[batch, queries, heads, head], &[_, page, heads_of_k, _]) = (q.shape(), k_cache.shape()) else {
            return Err(Error::Shape(format!(
                "Q has the shape [batch, heads, head] or [batch, queries, heads, head], a cache [pages, rows of a page, heads of K, head]; they \
                 have {:?} and {:?}",
                q.shape(),
                k_cache.shape()
            )));
        };
        if heads_of_k == 0 || heads % heads_of_k != 0 {
            return Err(Error::Shape(format!(
                "the heads of Q share the heads of K evenly; there are {heads} and {heads_of_k}"
            )));
        }
        let all_rows = queries * (heads / heads_of_k);
        let rows = if all_rows <= 8 { 8 } else { 16 };
        // Two blocks fit into the shared memory of a multiprocessor.
        Division::from_rows(
            stream,
            [batch, heads_of_k, head],
            [all_rows, rows],
            2.0,
            page,
            page_table,
            options,
        )
    }

    /// Divides the queries of each sequence and head of K, which are `all_rows` rows, into tiles of `rows` rows, and the keys into ranges.
    /// `page` is the number of rows of a page, `blocks_per_multiprocessor` how many blocks of the kernel run on a multiprocessor at a time.
    fn from_rows(
        stream: &Stream,
        [batch, heads_of_k, of_value]: [usize; 3],
        [all_rows, rows]: [usize; 2],
        blocks_per_multiprocessor: f64,
        page: usize,
        page_table: &Tensor<i32>,
        options: Options,
    ) -> Result<Division> {
        let &[_, pages_per_sequence] = page_table.shape() else {
            return Err(Error::Shape(format!(
                "the page table has the shape [batch, most pages of a sequence], not {:?}",
                page_table.shape()
            )));
        };
        let tiles = all_rows.div_ceil(rows);
        let resident_blocks =
            blocks_per_multiprocessor * Machine::of_device(&stream.device())?.multiprocessors;
        let longest_sequence = options
            .longest
            .unwrap_or(usize::MAX)
            .min(pages_per_sequence.saturating_mul(page));
        let splits = match options.splits {
            Some(splits) => splits.clamp(1, MAX_SPLITS),
            None => splits(batch * tiles * heads_of_k, longest_sequence, resident_blocks),
        };
        Ok(Division {
            batch,
            heads_of_k,
            of_value,
            rows,
            // Decoding has tiles of 8 or 16 rows, latent attention tiles of 16 or 64.
            most_rows: rows.max(16),
            tiles,
            splits,
            resident_blocks,
        })
    }

    /// That a launch can have these blocks.
    fn check_extents(&self) -> Result<()> {
        for (extent, name) in [
            (self.tiles * self.heads_of_k, "tiles of queries times heads of K"),
            (self.batch, "sequences"),
        ] {
            if extent > 65535 {
                return Err(Error::Shape(format!(
                    "a launch has at most 65535 {name}, not {extent}: divide the call"
                )));
            }
        }
        Ok(())
    }

    /// The float32 numbers of all ranges.
    fn partial(&self) -> usize {
        match self.splits {
            1 => 0,
            splits => self.counters() * splits * self.rows * (self.of_value + 2),
        }
    }

    fn counters(&self) -> usize {
        self.batch * self.tiles * self.heads_of_k
    }
}

/// The ranges with the least time for `blocks` blocks per range: waves of blocks, each with its share of the keys and the time that 64 keys
/// take to fill the pipeline; ranges add the time of their combination.
fn splits(blocks: usize, longest: usize, resident_blocks: f64) -> usize {
    let time = |splits: usize| {
        let waves = ((blocks * splits) as f64 / resident_blocks).ceil();
        let combination = if splits > 1 { 64.0 + splits as f64 } else { 0.0 };
        waves * (longest as f64 / splits as f64 + 64.0) + combination
    };
    let counts = 1..=longest.div_ceil(128).clamp(1, MAX_SPLITS);
    let least = counts.clone().map(time).fold(f64::INFINITY, f64::min);
    // The fewest that are nearly the best: each range writes its results and reads them again.
    counts
        .into_iter()
        .find(|splits| time(*splits) <= least * 1.03)
        .unwrap_or(1)
}

fn four<T: Element>(q: &Tensor<T>) -> Result<View<'_, T>> {
    Ok(match *q.shape() {
        [_, _, _] => q.unsqueeze(1)?,
        [batch, ..] => q.slice(0, 0..batch)?,
        [] => return Err(Error::Shape("Q has at least three dimensions".into())),
    })
}

fn check_cache<C: tirx_rt::Element>(name: &str, cache: &Tensor<C>) -> Result<()> {
    let of_16_bytes = 16 / size_of::<C>();
    let aligned = cache.address().is_multiple_of(16)
        && cache.strides().last() == Some(&1)
        && cache
            .strides()
            .iter()
            .rev()
            .skip(1)
            .all(|stride| stride % of_16_bytes == 0);
    if aligned || cache.is_empty() {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "{name} has heads that are not contiguous, strides {:?} that are not multiples of {of_16_bytes} elements, or an address that is not a multiple of 16",
        cache.strides()
    )))
}

/// Checks the page table and the lengths of `batch` sequences.
fn check_table(table: &Tensor<i32>, lengths: &Tensor<i32>, batch: usize, page: usize) -> Result<()> {
    has_shape(
        "the page table",
        table.shape(),
        &[batch, table.shape()[1]],
        "a row for each sequence",
    )?;
    has_shape("the lengths", lengths.shape(), &[batch], "one for each sequence")?;
    check_rows_of_table(table, page)
}

/// Checks the rows of a page table `[batch, most pages]`.
fn check_rows_of_table(table: &Tensor<i32>, page: usize) -> Result<()> {
    let width = table.shape()[1];
    if width > 1 && !table.is_empty() && table.strides()[1] != 1 {
        return Err(Error::Shape("the rows of the page table are contiguous".into()));
    }
    number(width.saturating_mul(page), "the most keys of a sequence")?;
    Ok(())
}

/// The ranges of keys: those of the division, or fewer if the workspace is small and the caller has not chosen them.
fn ranges_that_fit(division: &Division, workspace: &Workspace, options: Options) -> Result<i32> {
    let splits = match options.splits {
        Some(_) => division.splits,
        None if workspace.counters.len() < division.counters() => 1,
        None => {
            let of_a_range = division.counters() * division.rows * (division.of_value + 2);
            division
                .splits
                .min((workspace.partial.len() / of_a_range.max(1)).max(1))
        }
    };
    if splits > 1
        && (workspace.partial.len() < division.partial() || workspace.counters.len() < division.counters())
    {
        return Err(Error::Shape(format!(
            "the workspace has {} numbers and {} counters; this call needs {} and {}: make it by `Workspace::for_decode` or \
             `Workspace::for_latent` for the largest call",
            workspace.partial.len(),
            workspace.counters.len(),
            division.partial(),
            division.counters()
        )));
    }
    Ok(splits as i32)
}

/// O = softmax(scale Q Kᵀ) V, with keys and values from the pages of each sequence. A sequence without keys gives zeros.
///
/// With several queries per sequence, the last one sees all keys and each one before sees one key less: a part of a prompt, whose keys are
/// in the cache already.
///
/// ```
/// use tirx_kernels::paged::{self, Options, Workspace};
/// # use tirx_rt::{Device, Tensor, bf16};
/// # fn main() -> tirx_kernels::Result<()> {
/// # let stream = Device::simulator().default_stream();
/// # let ones = |shape: [usize; 4]| Tensor::from_slice(&stream, &vec![bf16::ONE; shape.iter().product()], shape);
/// let (k, v) = (ones([5, 16, 1, 64])?, ones([5, 16, 1, 64])?); // five pages of 16 rows
/// let q = Tensor::from_slice(&stream, &[bf16::ONE; 2 * 4 * 64], [2, 4, 64])?;
/// let table = Tensor::from_slice(&stream, &[4, 0, 2, 1], [2, 2])?;
/// let lengths = Tensor::from_slice(&stream, &[20, 3], [2])?;
/// let mut o = Tensor::zeros(&stream, [2, 4, 64])?;
/// let mut workspace = Workspace::for_decode(&stream, &q, &k, &table, Options::default())?;
/// paged::decode(&stream, &q, &k, &v, &table, &lengths, &mut o, &mut workspace, Options::default())?;
/// assert_eq!(o.to_vec()?[0], bf16::ONE);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or are not supported, or the workspace is too small; [`Error::Runtime`] for those
/// of the launch.
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn decode<T: Element, C: Cached<T>>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k_cache: &impl AsTensor<C>,
    v_cache: &impl AsTensor<C>,
    page_table: &impl AsTensor<i32>,
    lengths: &impl AsTensor<i32>,
    o: &mut impl AsTensorMut<T>,
    workspace: &mut Workspace,
    options: Options,
) -> Result<()> {
    let (k, v, table, lengths) = (
        k_cache.tensor(),
        v_cache.tensor(),
        page_table.tensor(),
        lengths.tensor(),
    );
    let (q, o) = (q.tensor(), o.tensor_mut());
    same_shape(("Q", q.shape()), ("O", o.shape()))?;
    same_shape(("the cache of K", k.shape()), ("the cache of V", v.shape()))?;
    let q = four(q)?;
    let division = Division::for_decode(stream, &q, k, table, options)?;
    let (batch, head, heads_of_k) = (division.batch, division.of_value, division.heads_of_k);
    let (pages, page) = (k.shape()[0], k.shape()[1]);
    has_shape(
        "the cache",
        k.shape(),
        &[pages, page, heads_of_k, head],
        "with the heads of Q",
    )?;
    check_table(table, lengths, batch, page)?;
    if q.is_empty() {
        return Ok(());
    }
    if ![64, 96, 128, 256].contains(&head) {
        return Err(Error::Shape(format!(
            "heads have 64, 96, 128 or 256 elements; they have {head}"
        )));
    }
    options.factors.check()?;
    options.check_scores()?;
    if k.is_empty() || table.is_empty() {
        o.fill_zero(stream)?;
        return Ok(());
    }
    if q.strides()[3] != 1 || o.strides().last() != Some(&1) {
        return Err(Error::Shape("the heads of Q and O are contiguous".into()));
    }
    check_cache("the cache of K", k)?;
    check_cache("the cache of V", v)?;
    division.check_extents()?;
    let splits = ranges_that_fit(&division, workspace, options)?;
    let window = match options.window {
        Some(0) => return Err(Error::Shape("a window has at least one key".into())),
        Some(keys) => i32::try_from(keys).unwrap_or(i32::MAX),
        None => 0,
    };
    let scale = options.scale.unwrap_or_else(|| 1.0 / (head as f32).sqrt());
    let cap = options.cap.unwrap_or(0.0);
    let mut o = match o.shape().len() {
        3 => o.unsqueeze_mut(1)?,
        _ => o.slice_mut(0, 0..batch)?,
    };
    C::decode(
        stream,
        Decode {
            q: &q,
            k,
            v,
            table,
            lengths,
            o: &mut o,
            workspace,
            head: head as i64,
            rows: division.rows as i64,
            scale,
            factors: options.factors,
            cap,
            window,
            tiles: number(division.tiles, "the number of tiles")?,
            splits,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::splits;

    #[test]
    fn few_sequences_are_divided_and_many_are_not() {
        assert!((25..=33).contains(&splits(8, 32768, 264.0)));
        assert_eq!(splits(256, 2048, 264.0), 1);
        assert_eq!(splits(1024, 32768, 264.0), 1);
        assert_eq!(splits(8, 100, 264.0), 1);
    }
}
