//! Multi-head latent attention, as in DeepSeek's models: all heads share a cache of keys whose first elements are the values.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::super::rows::{has_shape, number};
use super::caches::{check_tokens, consist_of_vectors, rounds_of_lane};
use super::{Division, Element, Options, Workspace, check_cache, check_table, four, ranges_that_fit};
use crate::generated::kernels;
use crate::{Error, Result};

/// Elements of a key: those that are its value, and those with the position.
const OF_KEY: usize = 576;
/// Elements of a value.
const OF_VALUE: usize = 512;

/// O = softmax(scale Q Kᵀ) V, for a cache of keys whose first 512 elements are the values, in the pages of each sequence.
///
/// | tensor | shape |
/// |---|---|
/// | Q | `[batch, heads, 576]` or `[batch, queries, heads, 576]`: 512 elements for the latent part, 64 with the position |
/// | cache | `[pages, rows of a page, 576]` |
/// | O | that of Q with 512 in place of 576 |
///
/// The page table and the lengths are those of [`decode`](super::decode), several queries see the keys as there. `options.scale` is 1 / sqrt(192) if it is
/// not given, as in DeepSeek's models, whose heads have 128 elements and 64 with the position. Windows, bounded scores and factors are not
/// supported. Make the workspace by [`Workspace::for_latent`].
///
/// # Errors
/// As for [`decode`](super::decode).
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn decode_latent<T: Element>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    cache: &impl AsTensor<T>,
    page_table: &impl AsTensor<i32>,
    lengths: &impl AsTensor<i32>,
    o: &mut impl AsTensorMut<T>,
    workspace: &mut Workspace,
    options: Options,
) -> Result<()> {
    let (cache, table, lengths) = (cache.tensor(), page_table.tensor(), lengths.tensor());
    let (q, o) = (q.tensor(), o.tensor_mut());
    let of_o = match q.shape() {
        [outer @ .., OF_KEY] => [outer, &[OF_VALUE]].concat(),
        shape => {
            return Err(Error::Shape(format!(
                "Q has the shape [batch, heads, {OF_KEY}] or [batch, queries, heads, {OF_KEY}], not {shape:?}"
            )));
        }
    };
    has_shape("O", o.shape(), &of_o, "that of Q with the elements of a value")?;
    let q = four(q)?;
    let division = Division::for_latent(stream, &q, cache, table, options)?;
    let batch = division.batch;
    let (pages, page) = (cache.shape()[0], cache.shape()[1]);
    has_shape("the cache", cache.shape(), &[pages, page, OF_KEY], "rows of keys")?;
    check_table(table, lengths, batch, page)?;
    if options.window.is_some() || options.cap.is_some() || options.factors != Default::default() {
        return Err(Error::Shape(
            "latent attention takes no window, no bound of scores and no factors".into(),
        ));
    }
    options.check_scores()?;
    if q.is_empty() {
        return Ok(());
    }
    if cache.is_empty() || table.is_empty() {
        o.fill_zero(stream)?;
        return Ok(());
    }
    if q.strides()[3] != 1 || o.strides().last() != Some(&1) {
        return Err(Error::Shape("the heads of Q and O are contiguous".into()));
    }
    check_cache("the cache", cache)?;
    division.check_extents()?;
    let splits = ranges_that_fit(&division, workspace, options)?;
    let scale = options.scale.unwrap_or_else(|| 1.0 / 192f32.sqrt());
    let tiles = number(division.tiles, "the number of tiles")?;
    let mut o = match o.shape().len() {
        3 => o.unsqueeze_mut(1)?,
        _ => o.slice_mut(0, 0..batch)?,
    };
    let Workspace { partial, counters } = workspace;
    match division.rows {
        16 => kernels::paged_latent::<T>(
            stream, &q, cache, table, lengths, &mut o, partial, counters, scale, tiles, splits,
        )?,
        _ => kernels::paged_latent_rows::<T>(
            stream, &q, cache, table, lengths, &mut o, partial, counters, scale, tiles, splits,
        )?,
    }
    Ok(())
}

impl Workspace {
    /// As [`Workspace::for_decode`], for calls of [`decode_latent`].
    ///
    /// # Errors
    /// As for [`decode_latent`].
    pub fn for_latent<T: Element>(
        stream: &Stream,
        q: &impl AsTensor<T>,
        cache: &impl AsTensor<T>,
        page_table: &impl AsTensor<i32>,
        options: Options,
    ) -> Result<Workspace> {
        let q = four(q.tensor())?;
        let division = Division::for_latent(stream, &q, cache.tensor(), page_table.tensor(), options)?;
        Workspace::for_division(stream, &division, options)
    }
}

impl Division {
    fn for_latent<T: Element>(
        stream: &Stream,
        q: &Tensor<T>,
        cache: &Tensor<T>,
        page_table: &Tensor<i32>,
        options: Options,
    ) -> Result<Division> {
        let (&[batch, queries, heads, _], &[_, page, _]) = (q.shape(), cache.shape()) else {
            return Err(Error::Shape(format!(
                "Q has the shape [batch, heads, {OF_KEY}] or [batch, queries, heads, {OF_KEY}], the cache [pages, rows of a page, {OF_KEY}]; they \
                 have {:?} and {:?}",
                q.shape(),
                cache.shape()
            )));
        };
        let all_rows = queries * heads;
        let rows = if all_rows <= 16 { 16 } else { 64 };
        // A block takes most of the shared memory of a multiprocessor.
        Division::from_rows(
            stream,
            [batch, 1, OF_VALUE],
            [all_rows, rows],
            1.0,
            page,
            page_table,
            options,
        )
    }
}

/// Stores rows of keys, `[tokens, 576]`, in the pages of their sequences, as [`append`](super::append) does for keys and values. Their elements with the
/// position have been turned before ([`rope`](crate::rope) takes a part of a row).
///
/// # Errors
/// As for [`append`](super::append).
pub fn append_latent<T: Element>(
    stream: &Stream,
    keys: &impl AsTensor<T>,
    cache: &mut impl AsTensorMut<T>,
    page_table: &impl AsTensor<i32>,
    sequences: &impl AsTensor<i32>,
    positions: &impl AsTensor<i32>,
) -> Result<()> {
    let (keys, cache, table) = (keys.tensor(), cache.tensor_mut(), page_table.tensor());
    let (sequences, positions) = (sequences.tensor(), positions.tensor());
    let (&[tokens, OF_KEY], &[_, page, OF_KEY], &[_, _]) = (keys.shape(), cache.shape(), table.shape())
    else {
        return Err(Error::Shape(format!(
            "append_latent takes keys [tokens, {OF_KEY}], a cache [pages, rows of a page, {OF_KEY}] and a page table [batch, most pages]; they have \
             {:?}, {:?} and {:?}",
            keys.shape(),
            cache.shape(),
            table.shape()
        )));
    };
    check_tokens(tokens, sequences, positions, table, page)?;
    if keys.is_empty() || cache.is_empty() || table.is_empty() {
        return Ok(());
    }
    let contiguous = [keys.strides(), cache.strides()]
        .iter()
        .all(|strides| strides.last() == Some(&1));
    if !contiguous {
        return Err(Error::Shape("rows of keys are contiguous".into()));
    }
    let keys = keys.unsqueeze(1)?;
    let mut cache = cache.unsqueeze_mut(2)?;
    let vectors = consist_of_vectors(
        OF_KEY,
        &[
            (keys.address(), keys.strides()),
            (cache.address(), cache.strides()),
        ],
    );
    // No queries, no rotary embedding, no norm.
    let (mut no_pages, mut cache) = cache.split_at_mut(0, 0)?;
    let mut no_queries = no_pages.reshape_mut([tokens, 0, OF_KEY])?;
    let nothing = positions.slice(0, 0..0)?;
    let (no_frequencies, no_weights) = (nothing.as_bits::<f32>()?, nothing.as_bits::<T>()?);
    kernels::paged_append_latent::<T>(
        stream,
        &*no_weights.reshape([tokens, 0, OF_KEY])?,
        &mut no_queries,
        &keys,
        &mut cache,
        table,
        sequences,
        positions,
        &no_frequencies,
        &no_weights,
        &no_weights,
        0,
        0.0,
        i32::from(vectors),
        rounds_of_lane(tokens, 1, OF_KEY)?,
    )?;
    Ok(())
}
