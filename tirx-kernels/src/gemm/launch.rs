//! The kernels that are built for each element type, and their launches.

use tirx_rt::{Stream, Tensor, View, bf16, f8e4m3, f8e5m2, f16};

use super::general::{Built, Kernel};
use crate::generated::kernels;
use crate::{Error, Result};

/// An element type of A and B in a product whose C has elements of type `O`; the table of [`Matmul`](super::Matmul) lists them.
pub trait Input<O: tirx_rt::Element>: sealed::LaunchProduct<O> {}

/// An element type of A, B and C in a product with a gate: `bf16` or `f16`.
pub trait GatedInput: sealed::LaunchGated {}

/// An element type of A and B in a product by groups of rows whose C has elements of type `O`: `bf16` with `bf16`, `f16` with `f16`,
/// and `f8e4m3` with `bf16`.
pub trait GroupedInput<O: tirx_rt::Element>: sealed::LaunchGrouped<O> {}

/// The operands of a launch, checked and with all their dimensions. B is `[batch, N, K]`, or `[batch, K, N]` if it is `turned_b`.
pub struct ProductLaunch<'a, T: tirx_rt::Element, O: tirx_rt::Element> {
    pub(super) stream: &'a Stream,
    pub(super) a: &'a Tensor<T>,
    pub(super) b: View<'a, T>,
    pub(super) up: Option<View<'a, T>>,
    pub(super) bias: &'a Tensor<O>,
    pub(super) residual: &'a Tensor<O>,
    pub(super) scale_a: &'a Tensor<f32>,
    pub(super) scale_b: &'a Tensor<f32>,
    pub(super) alpha: f32,
    pub(super) activation: i32,
    pub(super) vectors: i32,
    pub(super) turned_b: bool,
    /// The stages that `columns` has under way early, if B is constant.
    pub(super) early: i32,
    /// Clusters of blocks.
    pub(super) blocks: i32,
}

pub(super) mod sealed {
    use tirx_rt::{Element, Tensor};

    use super::{Built, Kernel, ProductLaunch};
    use crate::Result;

    pub trait LaunchProduct<O: Element>: Element {
        const BUILT: Built;
        fn launch(call: &ProductLaunch<'_, Self, O>, kernel: Kernel, c: &mut Tensor<O>) -> Result<()>;
    }

    pub trait LaunchGated: Element {
        fn launch(call: &ProductLaunch<'_, Self, Self>, c: &mut Tensor<Self>) -> Result<()>;
        fn launch_grouped(
            call: &ProductLaunch<'_, Self, Self>,
            offsets: &Tensor<i32>,
            c: &mut Tensor<Self>,
        ) -> Result<()>;
    }

    pub trait LaunchGrouped<O: Element>: Element {
        const BUILT: Built;
        fn launch(
            call: &ProductLaunch<'_, Self, O>,
            kernel: Kernel,
            offsets: &Tensor<i32>,
            c: &mut Tensor<O>,
        ) -> Result<()>;
    }
}

fn not_built(kernel: Kernel) -> Result<()> {
    Err(Error::Shape(format!(
        "{kernel:?} is not built for these element types"
    )))
}

/// Calls a form of `general`: its operands in front of C and behind the scales, and its compile-time values.
macro_rules! general {
    ($name:ident($call:ident, [$($up:expr)?], $c:ident, [$($offsets:expr)?]) $({ $($field:ident: $value:expr),* })?) => {{
        kernels::$name::launch(
            $call.stream,
            $(kernels::$name::Constexpr { $($field: $value),* },)?
            $call.a,
            &$call.b,
            $($up,)?
            $c,
            $call.bias,
            $call.residual,
            $call.scale_a,
            $call.scale_b,
            $($offsets,)?
            $call.alpha,
            $call.activation,
            $call.vectors,
            $call.blocks,
        )?;
        Ok(())
    }};
}

/// Calls `columns`, `blocks` or `tiles` of `hopper.py`, with a last argument and compile-time values.
macro_rules! fused {
    ($name:ident($call:ident, $c:ident $(, $last:expr)?) $({ $($field:ident: $value:expr),* })?) => {{
        kernels::$name::launch(
            $call.stream,
            $(kernels::$name::Constexpr { $($field: $value),* },)?
            $call.a,
            &$call.b,
            $c,
            $call.bias,
            $call.residual,
            $call.scale_a,
            $call.scale_b,
            $call.alpha,
            $call.activation,
            $($last,)?
        )?;
        Ok(())
    }};
}

/// Calls `tiles` of `blackwell.py`.
macro_rules! tensor_memory {
    ($name:ident($call:ident, $c:ident) $tile:ident, $turned_a:ident) => {{
        let order = if $turned_a { [0, 2, 1] } else { [0, 1, 2] };
        kernels::$name::launch(
            $call.stream,
            kernels::$name::Constexpr {
                CTAS: i64::from($tile.ctas),
            },
            &$call.a.permute(&order)?,
            &$call.b,
            $c,
            $call.bias,
            $call.residual,
            $call.scale_a,
            $call.scale_b,
            $call.alpha,
            $call.activation,
            i32::from($turned_a),
            i32::from($call.turned_b),
            $tile.columns,
            $call.vectors,
            $call.blocks,
        )?;
        Ok(())
    }};
}

/// The kernels of products of `$ty` with C of `$out`.
macro_rules! products {
    ($ty:ty => $out:ty, $built:expr, |$call:ident, $c:ident| { $($pattern:pat => $launch:expr,)* }) => {
        impl sealed::LaunchProduct<$out> for $ty {
            const BUILT: Built = $built;

            fn launch($call: &ProductLaunch<'_, $ty, $out>, kernel: Kernel, $c: &mut Tensor<$out>) -> Result<()> {
                match kernel {
                    $($pattern => $launch,)*
                    other => not_built(other),
                }
            }
        }

        impl Input<$out> for $ty {}
    };
}

/// The kernels of products of `$ty` by groups of rows with C of `$out`.
macro_rules! groups {
    ($ty:ty => $out:ty, $built:expr, |$call:ident, $offsets:ident, $c:ident| { $($pattern:pat => $launch:expr,)* }) => {
        impl sealed::LaunchGrouped<$out> for $ty {
            const BUILT: Built = $built;

            fn launch($call: &ProductLaunch<'_, $ty, $out>, kernel: Kernel, $offsets: &Tensor<i32>, $c: &mut Tensor<$out>) -> Result<()> {
                match kernel {
                    $($pattern => $launch,)*
                    other => not_built(other),
                }
            }
        }

        impl GroupedInput<$out> for $ty {}
    };
}

/// The columns of the tiles of `tiles` with more than C = A B.
const TILES: [i64; 5] = [48, 64, 128, 192, 256];

/// All products of an element type of 16 bits, which have kernels for B in both orders.
macro_rules! sixteen_bits {
    ($ty:ty, $blocks:ident) => {
        products!($ty => $ty, Built { general: &[], tiles: &TILES, blocks: true, columns: true, tensor_memory: true, ..Built::GENERAL }, |call, c| {
            Kernel::Tiles { columns } => match call.turned_b {
                true => fused!(gemm_tiles_fused_turned(call, c, call.blocks)),
                false => fused!(gemm_tiles_fused(call, c, call.blocks) { BN: columns }),
            },
            Kernel::Columns { rows } => fused!(gemm_columns_fused(call, c, call.early) { BN: rows, TRANS_B: call.turned_b }),
            Kernel::TensorMemory { tile, turned_a } => tensor_memory!(gemm_tensor_memory(call, c) tile, turned_a),
            Kernel::Blocks { aligned } => fused!($blocks(call, c) { ALIGNED: aligned }),
        });
        products!($ty => f32, Built { blocks: true, tensor_memory: true, ..Built::GENERAL }, |call, c| {
            Kernel::General { columns, .. } => general!(gemm_general_to_f32(call, [], c, []) { BN: columns, TRANS_B: call.turned_b }),
            Kernel::TensorMemory { tile, turned_a } => tensor_memory!(gemm_tensor_memory_f32(call, c) tile, turned_a),
            Kernel::Blocks { aligned } => fused!($blocks(call, c) { ALIGNED: aligned }),
        });
        groups!($ty => $ty, Built::GENERAL, |call, offsets, c| {
            Kernel::General { columns, .. } => general!(gemm_grouped(call, [], c, [offsets]) { BN: columns, TRANS_B: call.turned_b }),
        });

        impl sealed::LaunchGated for $ty {
            fn launch(call: &ProductLaunch<'_, $ty, $ty>, c: &mut Tensor<$ty>) -> Result<()> {
                let up = call.up.as_deref().unwrap_or(&call.b);
                general!(gemm_gated(call, [up], c, []) { TRANS_B: call.turned_b })
            }

            fn launch_grouped(call: &ProductLaunch<'_, $ty, $ty>, offsets: &Tensor<i32>, c: &mut Tensor<$ty>) -> Result<()> {
                let up = call.up.as_deref().unwrap_or(&call.b);
                general!(gemm_grouped_gated(call, [up], c, [offsets]) { TRANS_B: call.turned_b })
            }
        }

        impl GatedInput for $ty {}
    };
}

sixteen_bits!(bf16, gemm_blocks_bf16);
sixteen_bits!(f16, gemm_blocks_f16);

const E4M3: Built = Built {
    general: &[(128, 1), (256, 2)],
    ..Built::GENERAL
};

products!(f8e4m3 => bf16, Built { general: &[(128, 1)], tiles: &TILES, columns: true, scaled: true, ..E4M3 }, |call, c| {
    Kernel::General { .. } => general!(gemm_general_fp8(call, [], c, [])),
    Kernel::Tiles { columns } => fused!(gemm_tiles_fp8(call, c, call.blocks) { dtype: "float8_e4m3fn", out: "bfloat16", BN: columns }),
    Kernel::Columns { rows } => fused!(gemm_columns_fp8(call, c, call.early) { dtype: "float8_e4m3fn", out: "bfloat16", BN: rows }),
    Kernel::Scaled { warpgroups } => general!(gemm_scaled(call, [], c, []) { WARPGROUPS: warpgroups }),
});
products!(f8e4m3 => f32, Built { scaled: true, ..E4M3 }, |call, c| {
    Kernel::General { columns: 128, .. } => general!(gemm_general_fp8(call, [], c, [])),
    Kernel::General { .. } => general!(gemm_general_fp8_wide(call, [], c, [])),
    Kernel::Scaled { warpgroups } => general!(gemm_scaled(call, [], c, []) { WARPGROUPS: warpgroups }),
});
products!(f8e4m3 => f16, E4M3, |call, c| {
    Kernel::General { columns: 128, .. } => general!(gemm_general_fp8(call, [], c, [])),
    Kernel::General { .. } => general!(gemm_general_fp8_wide(call, [], c, [])),
});
groups!(f8e4m3 => bf16, Built { scaled: true, ..Built::GENERAL }, |call, offsets, c| {
    Kernel::General { columns, .. } => general!(gemm_grouped_fp8(call, [], c, [offsets]) {
        dtype: "float8_e4m3fn", out: "bfloat16", BN: columns
    }),
    Kernel::Scaled { warpgroups } => general!(gemm_grouped_scaled(call, [], c, [offsets]) {
        dtype: "float8_e4m3fn", out: "bfloat16", SCALED: true, WARPGROUPS: warpgroups
    }),
});

const E5M2: Built = Built {
    general: &[(128, 1)],
    ..Built::GENERAL
};

products!(f8e5m2 => bf16, E5M2, |call, c| {
    Kernel::General { .. } => general!(gemm_general_e5m2(call, [], c, [])),
});
products!(f8e5m2 => f32, E5M2, |call, c| {
    Kernel::General { .. } => general!(gemm_general_e5m2(call, [], c, [])),
});
products!(i8 => i32, Built::GENERAL, |call, c| {
    Kernel::General { columns, .. } => general!(gemm_general_int8(call, [], c, []) { BN: columns }),
});
products!(i8 => bf16, Built::GENERAL, |call, c| {
    Kernel::General { columns, .. } => general!(gemm_general_int8(call, [], c, []) { BN: columns }),
});
products!(f32 => f32, Built { blocks: true, ..Built::GENERAL }, |call, c| {
    Kernel::General { columns, .. } => general!(gemm_general_f32(call, [], c, []) { dtype: "float32", BN: columns }),
    Kernel::Blocks { aligned } => fused!(gemm_blocks_f32(call, c) { dtype: "float32", ALIGNED: aligned, BM: 64 }),
});
