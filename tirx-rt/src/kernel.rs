//! Kernels: an image, loaded once per context on first use.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::CudaContext;

use crate::cuda::{self, LoadedImage};
use crate::device::{Stream, StreamKind};
use crate::image::{KernelImage, LaunchConfig, ParamKind};
#[cfg(feature = "simulator")]
use crate::simulator::{Programs, RecordedWork, Settings, ranks};
use crate::{Error, Result, TensorMap, graph, limits};

/// An image that is loaded when it is first launched. Generated code keeps one in a `static` per kernel.
pub struct Kernel {
    built_in: &'static KernelImage,
    /// The image that replaces it.
    replacement: OnceLock<&'static KernelImage>,
    /// The image loaded in the first context: found without a lock.
    first: OnceLock<LoadedImage>,
    /// The image loaded in further contexts.
    others: Mutex<Vec<Arc<LoadedImage>>>,
    /// Held while the image is loaded in the first context, so that it is loaded once.
    loading: Mutex<()>,
    #[cfg(feature = "simulator")]
    programs: [OnceLock<Result<Arc<Programs>>>; 2],
}

impl Kernel {
    /// A kernel that is not loaded yet.
    pub const fn new(image: &'static KernelImage) -> Kernel {
        Kernel {
            built_in: image,
            replacement: OnceLock::new(),
            first: OnceLock::new(),
            others: Mutex::new(Vec::new()),
            loading: Mutex::new(()),
            #[cfg(feature = "simulator")]
            programs: [OnceLock::new(), OnceLock::new()],
        }
    }

    /// The image that is launched.
    #[inline]
    pub fn image(&self) -> &'static KernelImage {
        self.replacement.get().copied().unwrap_or(self.built_in)
    }

    /// The image that the program was built with.
    #[cfg(feature = "bundle")]
    pub(crate) fn built_in(&self) -> &'static KernelImage {
        self.built_in
    }

    /// Launches another image from now on; `false` where the kernel was already loaded or replaced.
    #[cfg(feature = "bundle")]
    pub(crate) fn replace(&self, image: &'static KernelImage) -> bool {
        // Prevents loading while it is held.
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(feature = "simulator")]
        if self.programs.iter().any(|programs| programs.get().is_some()) {
            return false;
        }
        self.first.get().is_none() && self.replacement.set(image).is_ok()
    }

    /// Loads the image for the stream's device ahead of the first launch.
    ///
    /// # Errors
    /// [`Error::NoCodeForDevice`], or the driver's.
    pub fn load(&self, stream: &Stream) -> Result<()> {
        match &stream.0 {
            StreamKind::Cuda(stream) => self.with_loaded(stream.context(), |_| Ok(())),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => self.programs(simulator.settings()).map(|_| ()),
        }
    }

    /// Launches device function number `function` with `args`: pointers as addresses, scalars as bits in the low
    /// bytes. A grid with no blocks does nothing.
    ///
    /// # Errors
    /// Where the image has no code for the device, the configuration is impossible, the driver refuses, or (on the
    /// simulator) the kernel faults.
    ///
    /// # Safety
    /// On a GPU: `args` fit the function's parameters, and its pointers are valid on the stream's device for all that
    /// the kernel reads and writes, until it is done. In a capture: at every launch of the graph, which does not keep or order
    /// the memory of such pointers.
    #[inline]
    pub unsafe fn launch(
        &self,
        function: usize,
        stream: &Stream,
        config: &LaunchConfig,
        args: &[u64],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with_tensor_maps(function, stream, config, args, &[]) }
    }

    /// As [`Kernel::launch`], of a function that takes tensor maps: the argument of each is its number in `maps`.
    ///
    /// # Errors
    /// As [`Kernel::launch`]; for a number that no map has.
    ///
    /// # Safety
    /// As [`Kernel::launch`]; the tensors of the maps are valid as the pointers are.
    #[inline]
    pub unsafe fn launch_with_tensor_maps(
        &self,
        function: usize,
        stream: &Stream,
        config: &LaunchConfig,
        args: &[u64],
        maps: &[&TensorMap],
    ) -> Result<()> {
        match self.image().functions.get(function) {
            Some(f) if f.params.len() == args.len() => {
                let mut params = f.params.iter().zip(args);
                if params.any(|(p, arg)| *p == ParamKind::TensorMap && *arg >= maps.len() as u64) {
                    return Err(self.missing_map(maps.len()));
                }
            }
            _ => return Err(self.wrong_call(function, args.len())),
        }
        if config.grid.contains(&0) {
            return Ok(());
        }
        if let Some(missing) = maps.iter().find_map(|map| map.missing()) {
            return Err(Error::Check {
                kernel: self.image().name,
                message: missing.to_string(),
            });
        }
        limits::check(self.image().name, config)?;
        let recorded = graph::is_recorded(stream)?;
        let Stream(kind, wanted, _) = stream;
        let config = &wanted.applied(config);
        match kind {
            StreamKind::Cuda(stream) => self.with_loaded(stream.context(), |loaded| {
                // SAFETY: the caller's promise; the number of arguments was checked.
                unsafe {
                    cuda::launch(
                        self.image(),
                        loaded,
                        function,
                        stream,
                        recorded,
                        wanted,
                        config,
                        args,
                        maps,
                    )
                }
            }),
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => {
                let programs = self.programs(simulator.settings())?;
                if recorded {
                    let work = RecordedWork::kernel(self.image(), programs, function, config, args, maps);
                    graph::record(work);
                    return Ok(());
                }
                if ranks::hold(simulator, self.image(), programs, function, config, args, maps)? {
                    return Ok(());
                }
                simulator.launch(self.image(), programs, function, config, args, maps)
            }
        }
    }

    #[inline]
    fn with_loaded(
        &self,
        context: &Arc<CudaContext>,
        run: impl FnOnce(&LoadedImage) -> Result<()>,
    ) -> Result<()> {
        match self.first.get() {
            Some(loaded) if loaded.context.cu_ctx() == context.cu_ctx() => run(loaded),
            _ => self.with_loaded_slow(context, run),
        }
    }

    #[cold]
    fn with_loaded_slow(
        &self,
        context: &Arc<CudaContext>,
        run: impl FnOnce(&LoadedImage) -> Result<()>,
    ) -> Result<()> {
        let guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = self.first.get() else {
            let loaded = cuda::load(self.image(), context)?;
            let loaded = self.first.get_or_init(|| loaded);
            drop(guard);
            return run(loaded);
        };
        if first.context.cu_ctx() == context.cu_ctx() {
            drop(guard);
            return run(first);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let known = others
            .iter()
            .find(|l| l.context.cu_ctx() == context.cu_ctx())
            .cloned();
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let loaded = Arc::new(cuda::load(self.image(), context)?);
                others.push(loaded.clone());
                loaded
            }
        };
        drop((others, guard));
        run(&loaded)
    }

    #[cfg(feature = "simulator")]
    fn programs(&self, settings: Settings) -> Result<&Arc<Programs>> {
        self.programs[usize::from(settings.check_overflow())]
            .get_or_init(|| Programs::compile(self.image(), settings).map(Arc::new))
            .as_ref()
            .map_err(Error::clone)
    }

    #[cold]
    fn missing_map(&self, maps: usize) -> Error {
        Error::Launch {
            kernel: self.image().name,
            message: format!("an argument names a tensor map that is not among the {maps} given"),
        }
    }

    #[cold]
    fn wrong_call(&self, function: usize, args: usize) -> Error {
        let message = match self.image().functions.get(function) {
            Some(f) => format!(
                "function `{}` has {} parameters, not {args}",
                f.symbol,
                f.params.len()
            ),
            None => format!(
                "the image has {} device functions, not {}",
                self.image().functions.len(),
                function + 1
            ),
        };
        Error::Launch {
            kernel: self.image().name,
            message,
        }
    }
}
