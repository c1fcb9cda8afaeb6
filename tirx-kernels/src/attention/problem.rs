//! The tensors of a call, checked before the launch.

use tirx_rt::Tensor;

use super::Element;
use crate::{Error, Result};

/// The extents of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extents {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) heads_of_k: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) head: usize,
    pub(super) head_of_v: usize,
    /// Sequences that follow each other in the tensors of a batch of 1.
    pub(super) sequences: Option<usize>,
}

impl Extents {
    /// Those of tensors `[batch, heads, rows, head]`.
    pub(super) fn from_tensors<T: Element>(
        q: &Tensor<T>,
        k: &Tensor<T>,
        v: &Tensor<T>,
        o: &Tensor<T>,
    ) -> Result<Extents> {
        let refusal = || {
            Error::Shape(format!(
                "attention takes Q [batch, heads, queries, head], K [batch, heads of K, keys, head], V [batch, heads of K, keys, head of V] \
                 and O [batch, heads, queries, head of V]; Q has {:?}, K {:?}, V {:?} and O {:?}",
                q.shape(),
                k.shape(),
                v.shape(),
                o.shape()
            ))
        };
        let (&[batch, heads, queries, head], &[_, heads_of_k, keys, _], &[_, _, _, head_of_v]) =
            (q.shape(), k.shape(), v.shape())
        else {
            return Err(refusal());
        };
        let fits = k.shape() == [batch, heads_of_k, keys, head]
            && v.shape() == [batch, heads_of_k, keys, head_of_v]
            && o.shape() == [batch, heads, queries, head_of_v];
        if !fits {
            return Err(refusal());
        }
        let extents = Extents {
            batch,
            heads,
            heads_of_k,
            queries,
            keys,
            head,
            head_of_v,
            sequences: None,
        };
        extents.supported()
    }

    /// Those of packed tensors `[rows, heads, head]`.
    pub(super) fn from_packed<T: Element>(
        q: &Tensor<T>,
        k: &Tensor<T>,
        v: &Tensor<T>,
        o: &Tensor<T>,
        sequences: usize,
    ) -> Result<Extents> {
        let refusal = || {
            Error::Shape(format!(
                "attention of sequences takes Q [queries, heads, head], K [keys, heads of K, head], V [keys, heads of K, head of V] \
                 and O [queries, heads, head of V]; Q has {:?}, K {:?}, V {:?} and O {:?}",
                q.shape(),
                k.shape(),
                v.shape(),
                o.shape()
            ))
        };
        let (&[queries, heads, head], &[keys, heads_of_k, _], &[_, _, head_of_v]) =
            (q.shape(), k.shape(), v.shape())
        else {
            return Err(refusal());
        };
        let fits = k.shape() == [keys, heads_of_k, head]
            && v.shape() == [keys, heads_of_k, head_of_v]
            && o.shape() == [queries, heads, head_of_v];
        if !fits {
            return Err(refusal());
        }
        let extents = Extents {
            batch: 1,
            heads,
            heads_of_k,
            queries,
            keys,
            head,
            head_of_v,
            sequences: Some(sequences),
        };
        extents.supported()
    }

    fn supported(self) -> Result<Extents> {
        let Extents {
            heads,
            heads_of_k,
            head,
            head_of_v,
            ..
        } = self;
        if heads > 0 && (heads_of_k == 0 || heads % heads_of_k != 0) {
            return Err(Error::Shape(format!(
                "{heads} heads of Q share the heads of K evenly; K has {heads_of_k} heads"
            )));
        }
        let eights = head % 8 == 0 && head_of_v % 8 == 0;
        let built = (head == head_of_v && (1..=256).contains(&head))
            || ((1..=192).contains(&head) && (1..=128).contains(&head_of_v));
        if !eights || !built {
            return Err(Error::Shape(format!(
                "heads have a multiple of 8 elements: up to 256 if those of Q and V are equal, else up to 192 in Q and 128 in V; they have \
                 {head} and {head_of_v}"
            )));
        }
        let most = [self.queries, self.keys, self.batch.saturating_mul(heads)];
        match most.into_iter().max() {
            Some(most) if most > MAX_EXTENT => Err(Error::Shape(format!(
                "attention takes at most {MAX_EXTENT} queries and keys, and heads in all; an extent is {most}"
            ))),
            _ => Ok(self),
        }
    }

    /// Tiles of `rows` queries in all heads, at most. A sequence begins with a tile of its own.
    pub(super) fn tiles(&self, rows: usize) -> Result<i32> {
        self.tiles_of(self.queries, rows, self.heads)
    }

    /// Tiles of `rows` keys in all heads of K, at most.
    pub(super) fn tiles_of_keys(&self, rows: usize) -> Result<i32> {
        self.tiles_of(self.keys, rows, self.heads_of_k)
    }

    fn tiles_of(&self, extent: usize, rows: usize, heads: usize) -> Result<i32> {
        let of_a_head = match self.sequences {
            Some(sequences) => extent / rows + sequences,
            None => extent.div_ceil(rows),
        };
        let tiles = of_a_head.saturating_mul(self.batch * heads);
        i32::try_from(tiles).map_err(|_| {
            Error::Shape(format!(
                "{tiles} tiles of {rows} rows are more than a launch takes, {}",
                i32::MAX
            ))
        })
    }
}

/// The kernels compute positions of keys and queries, and sums of two of them, in 32 bits.
const MAX_EXTENT: usize = 1 << 29;

/// Refuses tensors that the kernels cannot copy 16 bytes at a time.
pub(super) fn refuse_unaligned<T: Element>(tensors: &[(&str, &Tensor<T>)]) -> Result<()> {
    for (name, tensor) in tensors {
        let (row, others) = tensor.strides().split_last().unwrap_or((&1, &[]));
        if *row != 1 || others.iter().any(|stride| stride % 8 != 0) || !tensor.address().is_multiple_of(16) {
            return Err(Error::Shape(format!(
                "{name} has rows that are not contiguous, strides that are not multiples of 8 elements, or an address that is not a multiple of 16"
            )));
        }
    }
    Ok(())
}
