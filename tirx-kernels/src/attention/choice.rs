//! The kernels that compute attention, and which of them a call takes.

use std::fmt;

use tirx_rt::{Stream, Tensor};

use super::Element;
use super::options::Values;
use super::problem::Extents;
use crate::Result;
use crate::generated::kernels;
use crate::machine::Machine;

/// A kernel and its compile-time values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Choice {
    /// `forward` of `hopper.py`: persistent blocks.
    Warpgroups { columns: i64, blocks: i32, near: i32 },
    /// The same with 192 columns of Q and K, and 128 of V.
    WarpgroupsWide { blocks: i32, near: i32 },
    /// `forward` of `ampere.py`.
    Warps { columns: i64, blocks: i32 },
}

/// The tensors of a launch.
pub(super) struct Tensors<'a, T: Element> {
    pub(super) q: &'a Tensor<T>,
    pub(super) k: &'a Tensor<T>,
    pub(super) v: &'a Tensor<T>,
    pub(super) o: &'a mut Tensor<T>,
    /// Empty if the logarithms are not wanted.
    pub(super) lse: &'a mut Tensor<f32>,
    /// Empty if the tensors hold no sequences.
    pub(super) starts_of_q: &'a Tensor<i32>,
    pub(super) starts_of_k: &'a Tensor<i32>,
}

/// Columns of the smallest tile that holds a head.
fn columns(head: usize) -> i64 {
    match head {
        0..=64 => 64,
        65..=128 => 128,
        _ => 256,
    }
}

/// The kernels that take such tensors, the fastest first.
pub(super) fn candidates(machine: &Machine, extents: &Extents) -> Result<Vec<Choice>> {
    let mut found = Vec::new();
    let Extents {
        batch,
        heads,
        heads_of_k,
        keys,
        head,
        head_of_v,
        ..
    } = *extents;
    // The copy engine takes no empty tensors.
    if machine.hopper && keys > 0 && extents.sequences.is_none() {
        let blocks = extents.tiles(128)?.min(machine.multiprocessors as i32);
        // As many heads at a time as have their keys and values in half of the L2 cache of an H100.
        let of_a_head = keys * (head + head_of_v) * 2;
        let near = (25_000_000 / of_a_head)
            .max(1)
            .saturating_mul(heads / heads_of_k)
            .min(batch * heads) as i32;
        found.push(match head == head_of_v {
            true => Choice::Warpgroups {
                columns: columns(head),
                blocks,
                near,
            },
            false => Choice::WarpgroupsWide { blocks, near },
        });
    }
    let columns = columns(head.max(head_of_v));
    let blocks = extents.tiles(rows_of_warps(columns))?;
    found.push(Choice::Warps { columns, blocks });
    Ok(found)
}

/// Queries of a block of `ampere.py`.
fn rows_of_warps(columns: i64) -> usize {
    if columns > 128 { 64 } else { 128 }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Choice::Warpgroups { columns, .. } => write!(f, "warpgroups 128x{columns}"),
            Choice::WarpgroupsWide { .. } => write!(f, "warpgroups 128x192/128"),
            Choice::Warps { columns, .. } => write!(f, "warps {}x{columns}", rows_of_warps(columns)),
        }
    }
}

impl Choice {
    pub(super) fn launch<T: Element>(
        self,
        stream: &Stream,
        tensors: Tensors<'_, T>,
        values: Values,
    ) -> Result<()> {
        let Tensors {
            q,
            k,
            v,
            o,
            lse,
            starts_of_q,
            starts_of_k,
        } = tensors;
        let Values {
            scale,
            causal,
            window,
            cap,
        } = values;
        match self {
            Choice::Warpgroups {
                columns,
                blocks,
                near,
            } => {
                let constexpr = kernels::attention_forward::Constexpr {
                    DQ: columns,
                    CAP: cap > 0.0,
                };
                kernels::attention_forward::<T>(
                    stream, constexpr, q, k, v, o, lse, scale, causal, window, cap, near, blocks,
                )?;
            }
            Choice::WarpgroupsWide { blocks, near } => {
                let constexpr = kernels::attention_forward_wide::Constexpr { CAP: cap > 0.0 };
                kernels::attention_forward_wide::<T>(
                    stream, constexpr, q, k, v, o, lse, scale, causal, window, cap, near, blocks,
                )?;
            }
            Choice::Warps { columns, blocks } => {
                let constexpr = kernels::attention_forward_warps::Constexpr { D: columns };
                kernels::attention_forward_warps::<T>(
                    stream,
                    constexpr,
                    q,
                    k,
                    v,
                    o,
                    lse,
                    starts_of_q,
                    starts_of_k,
                    scale,
                    causal,
                    window,
                    cap,
                    blocks,
                )?;
            }
        }
        Ok(())
    }
}
