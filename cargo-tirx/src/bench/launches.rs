//! What is repeated: the launches of one call of a kernel, on its image.

use tirx_build::KernelCode;
use tirx_core::ir::abi;
use tirx_core::ir::{IRModule, PrimFunc};
use tirx_rt::interpreted::{Interpreted, device_function};
use tirx_rt::{DeviceProperties, KernelImage, Stream, Tensor};
use tirx_sim::host;

use super::arguments::BoundArguments;
use crate::failure::{Result, user};

/// Whether machine code for a target runs on a GPU.
pub(crate) fn runs_on(target: &str, gpu: &DeviceProperties) -> bool {
    let targets = leak(vec![leak(target.to_string().into_boxed_str())].into_boxed_slice());
    let image = KernelImage {
        fatbin: Some(&[]),
        targets,
        ..empty_image()
    };
    image.runs_on(gpu.compute_capability.0, gpu.compute_capability.1)
}

/// Images are loaded for good, so what they refer to is never freed; the command ends soon.
pub(crate) fn leak<T: ?Sized>(value: Box<T>) -> &'static T {
    Box::leak(value)
}

fn empty_image() -> KernelImage {
    KernelImage {
        name: "",
        functions: &[],
        fatbin: None,
        ir: &[],
        targets: &[],
        ptx: None,
        hash: "",
        signature: "",
    }
}

/// The image of a kernel.
pub(crate) fn image(code: &KernelCode) -> &'static KernelImage {
    let functions = abi::device_functions(&code.lowered)
        .into_iter()
        .map(|(symbol, function)| device_function(symbol, function));
    let target = leak(code.target.clone().into_boxed_str());
    leak(Box::new(KernelImage {
        name: leak(code.kernel.clone().into_boxed_str()),
        functions: leak(functions.collect()),
        fatbin: (!code.code.is_empty()).then(|| leak(code.code.clone().into_boxed_slice())),
        ir: leak(code.ir.clone().into_boxed_slice()),
        targets: leak(Box::new([target])),
        ..empty_image()
    }))
}

/// A launch that is repeated, with the number of its function.
pub(crate) type Repeated = (usize, Interpreted);

/// What one call does.
pub(crate) struct Launches {
    pub(crate) all: Vec<Repeated>,
    /// Bytes of the tensors that the launches read.
    pub(super) read: u64,
    /// Bytes of those that they write.
    pub(super) written: u64,
}

/// The launches of one call, by its host function.
pub(crate) fn launches(stream: &Stream, code: &KernelCode, call: &BoundArguments) -> Result<Launches> {
    let module = &code.lowered;
    let mut all = Vec::new();
    let (mut read, mut written) = (0, 0);
    let result = host::run(module, &call.names, &call.arguments, &mut |launch| {
        let functions = abi::device_functions(module);
        let at = functions
            .iter()
            .position(|(symbol, _)| **symbol == *launch.symbol);
        let at = at.ok_or("the module has no such device function")?;
        let (r, w) = traffic(module, functions[at].1, launch, &call.tensors);
        read += r;
        written += w;
        all.push((
            at,
            Interpreted::from_launch(stream, launch).map_err(|e| e.to_string())?,
        ));
        Ok(())
    });
    result.map_err(|message| user(format_args!("kernel `{}`: {message}", code.kernel)))?;
    Ok(Launches { all, read, written })
}

/// Bytes of the tensors that a launch reads, and of those that it writes.
fn traffic(
    module: &IRModule,
    function: &PrimFunc,
    launch: &host::Launch,
    tensors: &[Tensor<u8>],
) -> (u64, u64) {
    let (mut read, mut written) = (0, 0);
    let uses = abi::param_uses(module, function);
    for (at, uses) in uses.iter().enumerate() {
        let map = launch.tensor_maps.iter().find(|(argument, _)| *argument == at);
        let address = map.map_or_else(
            || launch.args.get(at).copied().unwrap_or(0),
            |(_, map)| map.address,
        );
        let tensor = tensors.iter().find(|tensor| tensor.address() == address);
        let is_pointer = function.params.get(at).is_some_and(|p| p.dtype().is_handle());
        if let Some(tensor) = tensor.filter(|_| is_pointer) {
            read += u64::from(uses.read) * tensor.len() as u64;
            written += u64::from(uses.written) * tensor.len() as u64;
        }
    }
    (read, written)
}
