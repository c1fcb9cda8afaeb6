//! Bundles opened at run time: kernels are replaced without rebuilding the application.

use std::path::Path;
use std::sync::Arc;

use tirx_bundle::{Files, Function, Param, fatbin};

use crate::image::{DeviceFunction, KernelImage, ParamKind};
use crate::{Error, Kernel, Result};

/// A bundle that `cargo tirx bundle` wrote, a folder or a file. Cheap to clone.
///
/// ```no_run
/// # static LOADED: tirx_rt::Kernel = { static I: tirx_rt::KernelImage = tirx_rt::KernelImage { name: "", functions: &[], fatbin: None, ir: &[], targets: &[], ptx: None, hash: "", signature: "" }; tirx_rt::Kernel::new(&I) };
/// let bundle = tirx_rt::Bundle::open("kernels.bundle")?;
/// // Before the kernel's first launch: `kernels::add::n256::LOADED`.
/// LOADED.replace_from(&bundle)?;
/// # Ok::<(), tirx_rt::Error>(())
/// ```
///
/// A bundle is untrusted input: every length in it is checked, every content has a hash, and nothing in it runs on the
/// host. Its machine code does run on the GPU, so open only bundles from a source you trust.
#[derive(Clone, Debug)]
pub struct Bundle {
    kernels: Arc<Vec<tirx_bundle::Kernel>>,
}

impl Bundle {
    /// Opens a bundle and reads all kernels. Each is compared with the hashes that the bundle's `kernels.lock` has of it.
    ///
    /// # Errors
    /// [`Error::Bundle`]: there is none, it is damaged, it has no lock file, or its kernels are not those of the lock file.
    pub fn open(path: impl AsRef<Path>) -> Result<Bundle> {
        let path = path.as_ref();
        let kernels = Files::read(path).and_then(|files| files.locked_kernels());
        let (_, kernels) = kernels.map_err(|problem| Error::Bundle {
            message: format!("{}: {problem}", path.display()),
        })?;
        Ok(Bundle {
            kernels: Arc::new(kernels),
        })
    }

    /// The kernels' names: `add::n256`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// A kernel as an image, with its signature's hash. It stays in memory until the program ends, as all images do.
    ///
    /// # Errors
    /// [`Error::Bundle`]: there is no kernel of this name.
    pub fn image(&self, name: &str) -> Result<&'static KernelImage> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name == name);
        let kernel = kernel.ok_or_else(|| Error::Bundle {
            message: format!("it has no kernel `{name}`"),
        })?;
        let parts: Vec<&[u8]> = kernel.images.iter().map(|(_, image)| image.as_slice()).collect();
        let targets = kernel.images.iter().map(|(target, _)| text(target));
        let (native, ptx): (Vec<_>, Vec<_>) = targets.partition(|target| target.starts_with("sm_"));
        let fatbin = (!parts.is_empty()).then(|| &*fatbin::join(&parts).leak());
        Ok(Box::leak(Box::new(KernelImage {
            name: text(&kernel.name),
            functions: kernel.functions.iter().map(function).collect::<Vec<_>>().leak(),
            fatbin,
            ir: kernel.ir.clone().leak(),
            targets: native.leak(),
            ptx: ptx.first().copied(),
            hash: text(&kernel.hash),
            signature: text(&kernel.signature),
        })))
    }
}

fn text(text: &str) -> &'static str {
    text.to_string().leak()
}

fn function(function: &Function) -> DeviceFunction {
    let params = function.params.iter().map(|param| match param {
        Param::Pointer => ParamKind::Pointer,
        Param::Scalar(bits) => ParamKind::Scalar { bits: *bits },
        Param::TensorMap => ParamKind::TensorMap,
    });
    DeviceFunction {
        symbol: text(&function.symbol),
        params: params.collect::<Vec<_>>().leak(),
    }
}

impl Kernel {
    /// Launches the bundle's kernel of the same name from now on, instead of the one that was built in. The launcher stays
    /// the application's: it checks the arguments and says the launch dimensions, so the kernel must be one that it fits.
    ///
    /// # Errors
    /// [`Error::Bundle`]: the bundle has no such kernel, its signature is another, or this one was launched or replaced
    /// already.
    pub fn replace_from(&self, bundle: &Bundle) -> Result<()> {
        let name = self.built_in().name;
        let image = bundle.image(name)?;
        let refuse = |reason: &str| Error::Bundle {
            message: format!("kernel `{name}` {reason}"),
        };
        if image.signature != self.built_in().signature {
            return Err(refuse(
                "has another signature than the one that this program was built with: its arguments, their checks or its \
                 launch dimensions have changed, so the program must be built again",
            ));
        }
        match self.replace(image) {
            true => Ok(()),
            false => Err(refuse(
                "was launched or replaced already: open the bundle before the first launch",
            )),
        }
    }
}
