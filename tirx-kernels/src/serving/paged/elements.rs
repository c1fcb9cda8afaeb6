//! The element types of queries and caches, and the kernels of each.

use tirx_rt::{Stream, Tensor, bf16, f8e4m3, f16};

use super::Workspace;
use crate::generated::kernels;
use crate::{Error, Result};

mod sealed {
    use tirx_rt::{Stream, Tensor};

    use super::{Append, Decode, kernels};

    pub trait Kernels:
        kernels::paged_decode::Element
        + kernels::paged_append::Element
        + kernels::paged_decode_fp8::Element
        + kernels::paged_append_fp8::Element
        + kernels::paged_latent::Element
        + kernels::paged_latent_rows::Element
        + kernels::paged_append_latent::Element
    {
    }

    pub trait Launches<T: tirx_rt::Element>: tirx_rt::Element {
        fn decode(stream: &Stream, decode: Decode<'_, T, Self>) -> crate::Result<()>;
        fn append(stream: &Stream, append: Append<'_, T, Self>) -> crate::Result<()>;
    }

    pub trait Copies: tirx_rt::Element {
        fn copy(
            stream: &Stream,
            source: Option<&Tensor<Self>>,
            cache: &mut Tensor<Self>,
            pairs: &Tensor<i32>,
        ) -> crate::Result<()>;
    }
}

/// An element type of queries and results: `bf16` or `f16`.
pub trait Element: sealed::Kernels + tirx_rt::Element {}

impl sealed::Kernels for bf16 {}
impl sealed::Kernels for f16 {}
impl Element for bf16 {}
impl Element for f16 {}

/// An element type of caches for queries of the type `T`: `T` itself, or `f8e4m3`.
pub trait Cached<T: Element>: CacheElement + sealed::Launches<T> {}

/// An element type of caches: `bf16`, `f16` or `f8e4m3`.
pub trait CacheElement: sealed::Copies {}

macro_rules! caches {
    ($($ty:ident)*) => {$(
        impl CacheElement for $ty {}
        impl Cached<$ty> for $ty {}
        impl Cached<$ty> for f8e4m3 {}
        impl sealed::Launches<$ty> for $ty {
            fn decode(stream: &Stream, call: Decode<'_, $ty, $ty>) -> Result<()> {
                if call.factors != Factors::default() {
                    return Err(Error::Shape("factors belong to caches of float8".into()));
                }
                let Decode { q, k, v, table, lengths, o, workspace, head, rows, scale, cap, window, tiles, splits, .. } = call;
                let constexpr = kernels::paged_decode::Constexpr { D: head, ROWS: rows };
                Ok(kernels::paged_decode::<$ty>(
                    stream, constexpr, q, k, v, table, lengths, o, &mut workspace.partial, &mut workspace.counters, scale, cap,
                    window, tiles, splits,
                )?)
            }

            fn append(stream: &Stream, call: Append<'_, $ty, $ty>) -> Result<()> {
                if call.factors != Factors::default() {
                    return Err(Error::Shape("factors belong to caches of float8".into()));
                }
                let Append {
                    q, y, k, v, k_cache, v_cache, table, sequences, positions, frequencies, weights, interleaved, eps, vectors, rounds, ..
                } = call;
                Ok(kernels::paged_append::<$ty>(
                    stream, q, y, k, v, k_cache, v_cache, table, sequences, positions, frequencies, weights[0], weights[1], interleaved, eps, vectors, rounds,
                )?)
            }
        }

        impl sealed::Launches<$ty> for f8e4m3 {
            fn decode(stream: &Stream, call: Decode<'_, $ty, f8e4m3>) -> Result<()> {
                let Decode { q, k, v, table, lengths, o, workspace, head, rows, scale, factors, cap, window, tiles, splits } = call;
                let constexpr = kernels::paged_decode_fp8::Constexpr { D: head, ROWS: rows };
                Ok(kernels::paged_decode_fp8::<$ty>(
                    stream, constexpr, q, k, v, table, lengths, o, &mut workspace.partial, &mut workspace.counters,
                    scale * factors.k, factors.v, cap, window, tiles, splits,
                )?)
            }

            fn append(stream: &Stream, call: Append<'_, $ty, f8e4m3>) -> Result<()> {
                let Append {
                    q, y, k, v, k_cache, v_cache, table, sequences, positions, frequencies, weights, interleaved, eps, vectors, rounds, factors,
                } = call;
                Ok(kernels::paged_append_fp8::<$ty>(
                    stream, q, y, k, v, k_cache, v_cache, table, sequences, positions, frequencies, weights[0], weights[1], interleaved, eps, vectors, rounds,
                    factors.k, factors.v,
                )?)
            }
        }
    )*};
}

caches! { bf16 f16 }
impl CacheElement for f8e4m3 {}

macro_rules! copies {
    ($($ty:ident as $bits:ident)*) => {$(
        impl sealed::Copies for $ty {
            fn copy(
                stream: &Stream,
                source: Option<&Tensor<$ty>>,
                cache: &mut Tensor<$ty>,
                pairs: &Tensor<i32>,
            ) -> Result<()> {
                let mut cache = cache.as_bits_mut::<$bits>()?;
                match source {
                    Some(source) => kernels::paged_copy::<$bits>(stream, &*source.as_bits::<$bits>()?, &mut cache, pairs)?,
                    None => kernels::paged_copy_within::<$bits>(stream, &mut cache, pairs)?,
                }
                Ok(())
            }
        }
    )*};
}

copies! { bf16 as u16 f16 as u16 f8e4m3 as u8 }

/// The factors of a float8 cache: a number stands for itself times the factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// That of the keys.
    pub k: f32,
    /// That of the values.
    pub v: f32,
}

impl Default for Factors {
    /// 1 for both.
    fn default() -> Factors {
        Factors { k: 1.0, v: 1.0 }
    }
}

impl Factors {
    pub(super) fn check(self) -> Result<()> {
        if [self.k, self.v]
            .iter()
            .all(|factor| *factor > 0.0 && factor.is_finite())
        {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "the factors of a cache are positive and finite, not {} and {}",
            self.k, self.v
        )))
    }
}

/// The arguments of a launch of `decode`.
pub struct Decode<'a, T: tirx_rt::Element, C: tirx_rt::Element> {
    pub(super) q: &'a Tensor<T>,
    pub(super) k: &'a Tensor<C>,
    pub(super) v: &'a Tensor<C>,
    pub(super) table: &'a Tensor<i32>,
    pub(super) lengths: &'a Tensor<i32>,
    pub(super) o: &'a mut Tensor<T>,
    pub(super) workspace: &'a mut Workspace,
    pub(super) head: i64,
    pub(super) rows: i64,
    pub(super) scale: f32,
    pub(super) factors: Factors,
    pub(super) cap: f32,
    pub(super) window: i32,
    pub(super) tiles: i32,
    pub(super) splits: i32,
}

/// The arguments of a launch of `append`.
pub struct Append<'a, T: tirx_rt::Element, C: tirx_rt::Element> {
    pub(super) q: &'a Tensor<T>,
    pub(super) y: &'a mut Tensor<T>,
    pub(super) k: &'a Tensor<T>,
    pub(super) v: &'a Tensor<T>,
    pub(super) k_cache: &'a mut Tensor<C>,
    pub(super) v_cache: &'a mut Tensor<C>,
    pub(super) table: &'a Tensor<i32>,
    pub(super) sequences: &'a Tensor<i32>,
    pub(super) positions: &'a Tensor<i32>,
    pub(super) frequencies: &'a Tensor<f32>,
    pub(super) weights: [&'a Tensor<T>; 2],
    pub(super) interleaved: i32,
    pub(super) eps: f32,
    pub(super) vectors: i32,
    pub(super) rounds: i32,
    pub(super) factors: Factors,
}
