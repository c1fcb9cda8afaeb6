//! Caches: tokens are stored in their pages, pages are copied.

use tirx_rt::{AsTensor, AsTensorMut, Stream, Tensor};

use super::super::rope::{MAX_PAIRS, Pairs};
use super::super::rows::{has_shape, number, pairs_of_lane, same_shape};
use super::elements::Append;
use super::{CacheElement, Cached, Element, Factors, check_rows_of_table};
use crate::generated::kernels;
use crate::{Error, Result};

/// Rotary embedding of keys before they are stored; see [`rope`](crate::rope).
#[derive(Clone, Copy, Debug)]
pub struct Rope<'a> {
    /// The angle per position of each pair.
    pub frequencies: &'a Tensor<f32>,
    /// The elements of a pair.
    pub pairs: Pairs,
}

/// Stores keys and values, `[tokens, heads of K, head]`, in the pages of their sequences.
///
/// Token t belongs to row `sequences[t]` of the page table and has the position `positions[t]`. A token with a negative position, or with a
/// position that has no page, is left out: padding costs a read. With `rope` the keys are turned by their positions.
///
/// A float8 cache gets the nearest numbers, at most 448 in magnitude; [`append_scaled`] divides by factors first.
///
/// # Errors
/// [`Error::Shape`] if the shapes do not fit each other or heads are not contiguous; [`Error::Runtime`] for those of the launch.
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn append<T: Element, C: Cached<T>>(
    stream: &Stream,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    k_cache: &mut impl AsTensorMut<C>,
    v_cache: &mut impl AsTensorMut<C>,
    page_table: &impl AsTensor<i32>,
    sequences: &impl AsTensor<i32>,
    positions: &impl AsTensor<i32>,
    rope: Option<Rope<'_>>,
) -> Result<()> {
    append_scaled(
        stream,
        k,
        v,
        k_cache,
        v_cache,
        page_table,
        sequences,
        positions,
        rope,
        Factors::default(),
    )
}

/// As [`append`], to float8 caches whose numbers stand for themselves times `factors`.
///
/// # Errors
/// As for [`append`]; [`Error::Shape`] also for factors other than 1 of caches of other types.
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn append_scaled<T: Element, C: Cached<T>>(
    stream: &Stream,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    k_cache: &mut impl AsTensorMut<C>,
    v_cache: &mut impl AsTensorMut<C>,
    page_table: &impl AsTensor<i32>,
    sequences: &impl AsTensor<i32>,
    positions: &impl AsTensor<i32>,
    rope: Option<Rope<'_>>,
    factors: Factors,
) -> Result<()> {
    let tokens = Tokens {
        k: k.tensor(),
        v: v.tensor(),
        table: page_table.tensor(),
        sequences: sequences.tensor(),
        positions: positions.tensor(),
    };
    let heads = Heads {
        rope,
        norms: None,
        factors,
    };
    store(
        stream,
        None,
        &tokens,
        k_cache.tensor_mut(),
        v_cache.tensor_mut(),
        heads,
    )
}

/// What [`append_queries`] does with the heads of queries and keys: first the norm, then the rotary embedding. [`Heads::default`] is neither.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a, T: tirx_rt::Element> {
    /// The rotary embedding.
    pub rope: Option<Rope<'a>>,
    /// The RMSNorm of each head.
    pub norms: Option<Norms<'a, T>>,
    /// The factors of float8 caches.
    pub factors: Factors,
}

impl<T: tirx_rt::Element> Default for Heads<'_, T> {
    fn default() -> Self {
        Heads {
            rope: None,
            norms: None,
            factors: Factors::default(),
        }
    }
}

/// The weights of an RMSNorm of heads, `[head]`.
#[derive(Clone, Copy, Debug)]
pub struct Norms<'a, T: tirx_rt::Element> {
    /// Those of queries.
    pub of_q: &'a Tensor<T>,
    /// Those of keys.
    pub of_k: &'a Tensor<T>,
    /// The number that is added to the mean of squares.
    pub eps: f32,
}

/// As [`append`], and does the same with queries `q`, `[tokens, heads, head]`: normalized and turned, they are written to `queries`, of the same shape. One
/// launch takes the place of those of the norms, of the rotary embedding and of `append`. All queries are written, also those of tokens that are left out.
///
/// # Errors
/// As for [`append`].
#[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
pub fn append_queries<T: Element, C: Cached<T>>(
    stream: &Stream,
    q: &impl AsTensor<T>,
    k: &impl AsTensor<T>,
    v: &impl AsTensor<T>,
    queries: &mut impl AsTensorMut<T>,
    k_cache: &mut impl AsTensorMut<C>,
    v_cache: &mut impl AsTensorMut<C>,
    page_table: &impl AsTensor<i32>,
    sequences: &impl AsTensor<i32>,
    positions: &impl AsTensor<i32>,
    heads: Heads<'_, T>,
) -> Result<()> {
    let tokens = Tokens {
        k: k.tensor(),
        v: v.tensor(),
        table: page_table.tensor(),
        sequences: sequences.tensor(),
        positions: positions.tensor(),
    };
    let of_queries = Some((q.tensor(), queries.tensor_mut()));
    store(
        stream,
        of_queries,
        &tokens,
        k_cache.tensor_mut(),
        v_cache.tensor_mut(),
        heads,
    )
}

/// Keys and values of tokens, and their places.
struct Tokens<'a, T: tirx_rt::Element> {
    k: &'a Tensor<T>,
    v: &'a Tensor<T>,
    table: &'a Tensor<i32>,
    sequences: &'a Tensor<i32>,
    positions: &'a Tensor<i32>,
}

/// `queries` are the given ones and where they are written.
fn store<T: Element, C: Cached<T>>(
    stream: &Stream,
    queries: Option<(&Tensor<T>, &mut Tensor<T>)>,
    tokens: &Tokens<'_, T>,
    k_cache: &mut Tensor<C>,
    v_cache: &mut Tensor<C>,
    heads: Heads<'_, T>,
) -> Result<()> {
    heads.factors.check()?;
    let &Tokens {
        k,
        v,
        table,
        sequences,
        positions,
    } = tokens;
    let (&[count, of_k, head], &[pages, page, _, _], &[_, _]) = (k.shape(), k_cache.shape(), table.shape())
    else {
        return Err(Error::Shape(format!(
            "append takes K and V [tokens, heads of K, head], caches [pages, rows of a page, heads of K, head] and a page table [batch, most \
             pages]; they have {:?}, {:?} and {:?}",
            k.shape(),
            k_cache.shape(),
            table.shape()
        )));
    };
    same_shape(("K", k.shape()), ("V", v.shape()))?;
    same_shape(
        ("the cache of K", k_cache.shape()),
        ("the cache of V", v_cache.shape()),
    )?;
    has_shape(
        "the cache",
        k_cache.shape(),
        &[pages, page, of_k, head],
        "with the heads of K",
    )?;
    check_tokens(count, sequences, positions, table, page)?;
    let mut tensors = vec![
        (k.address(), k.strides()),
        (v.address(), v.strides()),
        (k_cache.address(), k_cache.strides()),
        (v_cache.address(), v_cache.strides()),
    ];
    let mut of_q = 0;
    if let Some((q, y)) = &queries {
        of_q = match *q.shape() {
            [_, of_q, _] => of_q,
            _ => 0,
        };
        has_shape(
            "Q",
            q.shape(),
            &[count, of_q, head],
            "with the tokens and heads as long as those of K",
        )?;
        same_shape(("Q", q.shape()), ("the result of the queries", y.shape()))?;
        tensors.extend([(q.address(), q.strides()), (y.address(), y.strides())]);
    }
    if count == 0 || queries.is_none() && (k.is_empty() || k_cache.is_empty() || table.is_empty()) {
        return Ok(());
    }
    if k.is_empty() || k_cache.is_empty() || table.is_empty() {
        return Err(Error::Shape(
            "queries are appended with keys, caches and a page table that have elements".into(),
        ));
    }
    if tensors.iter().any(|(_, strides)| strides.last() != Some(&1)) {
        return Err(Error::Shape("heads are contiguous".into()));
    }
    number(
        of_k.max(of_q).saturating_mul(head),
        "the number of elements of a token",
    )?;
    let interleaved = i32::from(heads.rope.is_some_and(|rope| rope.pairs == Pairs::Interleaved));
    // The kernel takes empty tensors for what is not given; a part of a tensor without elements allocates nothing.
    let nothing = positions.slice(0, 0..0)?;
    let (no_frequencies, no_weights) = (nothing.as_bits::<f32>()?, nothing.as_bits::<T>()?);
    let frequencies = heads.rope.map_or(&*no_frequencies, |rope| rope.frequencies);
    let pairs = frequencies.len();
    if frequencies.shape().len() != 1 || !frequencies.is_contiguous() || pairs * 2 > head || pairs > MAX_PAIRS
    {
        return Err(Error::Shape(format!(
            "frequencies are a contiguous row of at most {} numbers, half of a head, and at most {MAX_PAIRS}; they have the shape {:?}",
            head / 2,
            frequencies.shape()
        )));
    }
    let (weights, eps) = match heads.norms {
        None => ([&*no_weights; 2], 0.0),
        Some(Norms { of_q, of_k, eps }) => ([of_q, of_k], eps),
    };
    if heads.norms.is_some() {
        for (name, weights) in [("of queries", weights[0]), ("of keys", weights[1])] {
            has_shape(
                &format!("the weights of the norm {name}"),
                weights.shape(),
                &[head],
                "a number for each element of a head",
            )?;
            if !weights.is_contiguous() {
                return Err(Error::Shape(format!(
                    "the weights of the norm {name} are contiguous"
                )));
            }
        }
    }
    // The lanes that normalize a head are in one warp, and a power of two.
    let lanes = head / 16;
    let with_norms = heads.norms.is_none()
        || (lanes.is_power_of_two() && lanes <= 32 && weights.iter().all(|w| w.address().is_multiple_of(16)));
    let vectors = consist_of_vectors(head, &tensors) && pairs.is_multiple_of(8) && with_norms;
    let rounds = rounds_of_lane(count, of_q + 2 * of_k, head)?;
    let (mut no_pages, mut k_cache) = k_cache.split_at_mut(0, 0)?;
    let mut no_queries = no_pages.as_bits_mut::<T>()?;
    let mut no_queries = no_queries.reshape_mut([count, 0, head])?;
    let without = nothing.as_bits::<T>()?;
    let without = without.reshape([count, 0, head])?;
    let (q, y) = queries.unwrap_or((&*without, &mut *no_queries));
    C::append(
        stream,
        Append {
            q,
            y,
            k,
            v,
            k_cache: &mut k_cache,
            v_cache,
            table,
            sequences,
            positions,
            frequencies,
            weights,
            interleaved,
            eps,
            vectors: i32::from(vectors),
            rounds,
            factors: heads.factors,
        },
    )
}

/// Whether heads of these tensors, given by addresses and strides, consist of pairs of vectors of eight elements, at multiples of 16 bytes, or of 8
/// in a float8 cache.
pub(super) fn consist_of_vectors(head: usize, tensors: &[(u64, &[usize])]) -> bool {
    let aligned = |(address, strides): &(u64, &[usize])| {
        address.is_multiple_of(16)
            && strides
                .iter()
                .rev()
                .skip(1)
                .all(|stride| stride.is_multiple_of(8))
    };
    head.is_multiple_of(16) && tensors.iter().all(aligned)
}

/// The rounds in which a lane appends two pairs of vectors, for tokens with `heads` heads of queries, keys and values: two, or one if tokens are
/// too few to occupy a GPU.
pub(super) fn rounds_of_lane(tokens: usize, heads: usize, head: usize) -> Result<i32> {
    let pairs = heads * head.div_ceil(16);
    Ok((pairs_of_lane(tokens, pairs)? / 2).max(1))
}

/// Checks the sequence and the position of each token, and the page table `[batch, most pages]`.
pub(super) fn check_tokens(
    tokens: usize,
    sequences: &Tensor<i32>,
    positions: &Tensor<i32>,
    table: &Tensor<i32>,
    page: usize,
) -> Result<()> {
    for (name, numbers) in [("the sequences", sequences), ("the positions", positions)] {
        has_shape(name, numbers.shape(), &[tokens], "one for each token")?;
    }
    number(tokens, "the number of tokens")?;
    check_rows_of_table(table, page)
}

/// Copies pages: page `pairs[p, 1]` of `to` becomes page `pairs[p, 0]` of `from`, for pairs `[count, 2]` that stay on the device. Pairs with a
/// page outside of its cache are left out. No two pairs may write the same page.
///
/// To swap pages out to the host, copy them to a small contiguous cache and that to a [`Pinned`](tirx_rt::Pinned); swap them in the same way.
///
/// # Errors
/// [`Error::Shape`] if the pages do not fit each other or heads are not contiguous; [`Error::Runtime`] for those of the launch.
pub fn copy_pages<C: CacheElement>(
    stream: &Stream,
    from: &impl AsTensor<C>,
    to: &mut impl AsTensorMut<C>,
    pairs: &impl AsTensor<i32>,
) -> Result<()> {
    let (from, to, pairs) = (from.tensor(), to.tensor_mut(), pairs.tensor());
    if from.shape().len() != 4 || to.shape().len() != 4 || from.shape()[1..] != to.shape()[1..] {
        return Err(Error::Shape(format!(
            "caches have the shape [pages, rows of a page, heads of K, head], with the same pages; they have {:?} and {:?}",
            from.shape(),
            to.shape()
        )));
    }
    if check_copy(to, pairs)? && !from.is_empty() {
        check_heads(from)?;
        C::copy(stream, Some(from), to, pairs)?;
    }
    Ok(())
}

/// Copies pages of a cache to other pages of it, as [`copy_pages`] does between two caches: the pages of a sequence that forks.
/// No pair may write a page that another pair reads, since the order of the copies is not defined. The pairs are on the device, so this is not
/// checked.
///
/// # Errors
/// As for [`copy_pages`].
pub fn copy_pages_within<C: CacheElement>(
    stream: &Stream,
    cache: &mut impl AsTensorMut<C>,
    pairs: &impl AsTensor<i32>,
) -> Result<()> {
    let (cache, pairs) = (cache.tensor_mut(), pairs.tensor());
    if cache.shape().len() != 4 {
        return Err(Error::Shape(format!(
            "a cache has the shape [pages, rows of a page, heads of K, head], not {:?}",
            cache.shape()
        )));
    }
    if check_copy(cache, pairs)? {
        let source = None; // the same cache
        C::copy(stream, source, cache, pairs)?;
    }
    Ok(())
}

fn check_heads<C: CacheElement>(cache: &Tensor<C>) -> Result<()> {
    if cache.strides()[3] == 1 || cache.shape()[3] == 1 {
        return Ok(());
    }
    Err(Error::Shape(format!(
        "the heads of a cache are contiguous; its strides are {:?}",
        cache.strides()
    )))
}

/// Checks the cache and the pairs of a copy; false if there is nothing to copy.
fn check_copy<C: CacheElement>(cache: &Tensor<C>, pairs: &Tensor<i32>) -> Result<bool> {
    let &[count, 2] = pairs.shape() else {
        return Err(Error::Shape(format!(
            "pairs of pages have the shape [count, 2], not {:?}",
            pairs.shape()
        )));
    };
    if count == 0 || cache.is_empty() {
        return Ok(false);
    }
    if pairs.strides()[1] != 1 {
        return Err(Error::Shape("the rows of the pairs are contiguous".into()));
    }
    if count > 65535 {
        return Err(Error::Shape(format!(
            "a launch copies at most 65535 pages, not {count}: divide the call"
        )));
    }
    check_heads(cache)?;
    number(cache.shape()[1], "the number of rows of a page")?;
    number(
        cache.shape()[2].saturating_mul(cache.shape()[3]),
        "the number of elements of a row",
    )?;
    Ok(true)
}

/// Adds 1 to each number that is not negative: the lengths and positions of a batch after a step. A negative number marks a row without a
/// sequence, and stays.
///
/// # Errors
/// [`Error::Shape`] if there is more than one dimension; [`Error::Runtime`] for those of the launch.
pub fn advance(stream: &Stream, numbers: &mut impl AsTensorMut<i32>) -> Result<()> {
    let numbers = numbers.tensor_mut();
    let &[count] = numbers.shape() else {
        return Err(Error::Shape(format!(
            "numbers have one dimension, not {:?}",
            numbers.shape()
        )));
    };
    number(count, "the number of sequences")?;
    if count > 0 {
        kernels::paged_advance(stream, numbers)?;
    }
    Ok(())
}
