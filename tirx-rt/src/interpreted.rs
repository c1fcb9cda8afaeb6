//! Launches of a host function that was run as IR (`tirx_sim::host`), for programs that have a kernel's IR and no generated
//! launcher: `cargo tirx bench` and the tests on GPUs.

use tirx_ir::PrimFunc;
use tirx_sim::host;

use crate::{DeviceFunction, Kernel, LaunchConfig, ParamKind, Result, Stream, TensorMap, TensorMapSpec};

/// A launch on a stream's device, with its tensor maps encoded.
#[derive(Clone, Debug)]
pub struct Interpreted {
    config: LaunchConfig,
    args: Vec<u64>,
    maps: Vec<TensorMap>,
}

impl Interpreted {
    /// The launch that a host function made.
    ///
    /// # Errors
    /// For a tensor map that the driver refuses.
    pub fn from_launch(stream: &Stream, launch: &host::Launch) -> Result<Interpreted> {
        let mut args = launch.args.clone();
        let mut maps = Vec::new();
        for (argument, map) in &launch.tensor_maps {
            args[*argument] = maps.len() as u64;
            let spec = TensorMapSpec {
                data_type: map.dtype as u32,
                address: map.address,
                dims: &map.dims,
                strides: &map.strides,
                box_dims: &map.box_dims,
                element_strides: &map.element_strides,
                interleave: map.interleave.into(),
                swizzle: map.swizzle as u32,
                l2_promotion: map.l2_promotion.into(),
                oob_fill: map.nan_fill.into(),
            };
            maps.push(TensorMap::encode(stream, &spec)?);
        }
        Ok(Interpreted {
            config: LaunchConfig {
                grid: launch.grid,
                block: launch.block,
                shared_bytes: launch.shared_bytes,
                cluster: launch.cluster,
                preferred_cluster: launch.preferred_cluster,
                cooperative: launch.cooperative,
                programmatic: launch.programmatic,
            },
            args,
            maps,
        })
    }

    /// Launches function number `function` of a kernel.
    ///
    /// # Errors
    /// As [`Kernel::launch`].
    ///
    /// # Safety
    /// As [`Kernel::launch`]: the function is the one that the host function launches, and its tensors live until it is done.
    pub unsafe fn launch(&self, kernel: &Kernel, function: usize, stream: &Stream) -> Result<()> {
        let maps: Vec<&TensorMap> = self.maps.iter().collect();
        // SAFETY: the caller's promise.
        unsafe { kernel.launch_with_tensor_maps(function, stream, &self.config, &self.args, &maps) }
    }
}

/// What an image says of a device function. Images are never freed, and neither is what this one refers to.
pub fn device_function(symbol: &str, function: &PrimFunc) -> DeviceFunction {
    let params = function.params.iter().map(|param| match param.dtype() {
        _ if param.ty().is_tensor_map() => ParamKind::TensorMap,
        dtype if dtype.is_handle() => ParamKind::Pointer,
        dtype => ParamKind::Scalar {
            bits: dtype.bits.next_power_of_two().clamp(8, 64),
        },
    });
    DeviceFunction {
        symbol: Box::leak(symbol.into()),
        params: Box::leak(params.collect()),
    }
}
