//! Kernels whose code differs by GPU: which of several images runs on a device.

use std::sync::{Mutex, OnceLock, PoisonError};

use crate::device::{Stream, StreamKind};
#[cfg(feature = "simulator")]
use crate::image::parse;
use crate::image::{native_runs_on, ptx_runs_on};
use crate::kernel::Kernel;
use crate::{Error, Result, cuda};

/// The code of a kernel for some targets. Generated code lists them.
pub struct ForTargets {
    /// The targets: `sm_90a`, and `compute_90` for PTX.
    pub targets: &'static [&'static str],
    /// The kernel with this code.
    pub kernel: &'static Kernel,
}

impl ForTargets {
    /// Whether there is machine code for a compute capability.
    fn is_native(&self, major: i32, minor: i32) -> bool {
        let mut native = self.targets.iter().filter(|t| t.starts_with("sm_"));
        native.any(|t| native_runs_on(t, major, minor))
    }

    fn has_ptx(&self, major: i32, minor: i32) -> bool {
        let mut ptx = self.targets.iter().filter(|t| t.starts_with("compute_"));
        ptx.any(|t| ptx_runs_on(t, major, minor))
    }
}

/// A kernel whose code differs by GPU. Generated code keeps one in a `static` per such kernel.
pub struct KernelForTargets {
    all: &'static [ForTargets],
    /// The first context that it ran in, and the choice there: found without a lock.
    first: OnceLock<(usize, usize)>,
    others: Mutex<Vec<(usize, usize)>>,
}

impl KernelForTargets {
    /// A kernel of which nothing is loaded yet.
    pub const fn new(all: &'static [ForTargets]) -> KernelForTargets {
        KernelForTargets {
            all,
            first: OnceLock::new(),
            others: Mutex::new(Vec::new()),
        }
    }

    /// The code for each group of targets.
    pub fn all(&self) -> &'static [ForTargets] {
        self.all
    }

    /// The number in [`all`](KernelForTargets::all) of the code that runs on a stream's device: machine code for it, else
    /// PTX. A simulator runs the code for the GPU that it stands for ([`Device::simulated_arch`](crate::Device::simulated_arch)),
    /// or the first.
    ///
    /// # Errors
    /// [`Error::NoCodeForDevice`].
    #[inline]
    pub fn choose(&self, stream: &Stream) -> Result<usize> {
        match &stream.0 {
            StreamKind::Cuda(stream) => {
                let context = stream.context().cu_ctx() as usize;
                match self.first.get() {
                    Some((known, choice)) if *known == context => Ok(*choice),
                    _ => self.choose_slow(context, || cuda::capability(stream.context())),
                }
            }
            #[cfg(feature = "simulator")]
            StreamKind::Simulator(simulator) => match simulator.settings().arch() {
                None => Ok(0),
                Some((major, minor)) => {
                    let device = || format!("the simulator of compute capability {major}.{minor}");
                    self.suits(major, minor, device)
                }
            },
        }
    }

    /// Loads the code for the stream's device ahead of the first launch.
    ///
    /// # Errors
    /// As [`Kernel::load`].
    pub fn load(&self, stream: &Stream) -> Result<()> {
        self.all[self.choose(stream)?].kernel.load(stream)
    }

    #[cold]
    fn choose_slow(&self, context: usize, ask: impl FnOnce() -> Result<(i32, i32, String)>) -> Result<usize> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, choice)) = others.iter().find(|(known, _)| *known == context) {
            return Ok(*choice);
        }
        let (major, minor, name) = ask()?;
        let choice = self.suits(major, minor, || name)?;
        if self.first.set((context, choice)).is_err() {
            others.push((context, choice));
        }
        Ok(choice)
    }

    fn suits(&self, major: i32, minor: i32, device: impl FnOnce() -> String) -> Result<usize> {
        let native = self.all.iter().position(|one| one.is_native(major, minor));
        let found = native.or_else(|| self.all.iter().position(|one| one.has_ptx(major, minor)));
        found.ok_or_else(|| Error::NoCodeForDevice {
            kernel: self.all.first().map_or("", |one| one.kernel.image().name),
            device: device(),
            compute_capability: (major, minor),
            targets: self.all.iter().flat_map(|one| one.targets).copied().collect(),
        })
    }
}

/// The compute capability that a name such as `sm_100a` stands for.
#[cfg(feature = "simulator")]
pub(crate) fn capability_of(target: &str) -> Option<(i32, i32)> {
    parse(target.strip_prefix("sm_").map(|_| target)?).map(|(major, minor, _)| (major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::KernelImage;

    static IMAGE: KernelImage = KernelImage {
        name: "k",
        functions: &[],
        fatbin: None,
        ir: &[],
        targets: &[],
        ptx: None,
        hash: "",
        signature: "",
    };
    static KERNEL: Kernel = Kernel::new(&IMAGE);
    static BOTH: KernelForTargets = KernelForTargets::new(&[
        ForTargets {
            targets: &["sm_80", "compute_80"],
            kernel: &KERNEL,
        },
        ForTargets {
            targets: &["sm_90a"],
            kernel: &KERNEL,
        },
        ForTargets {
            targets: &["sm_100f"],
            kernel: &KERNEL,
        },
    ]);

    #[test]
    fn machine_code_goes_before_ptx() {
        let suits = |major, minor| BOTH.suits(major, minor, || "a GPU".into());
        assert_eq!(suits(8, 6).unwrap(), 0);
        assert_eq!(suits(9, 0).unwrap(), 1);
        assert_eq!(suits(10, 3).unwrap(), 2);
        assert_eq!(suits(12, 0).unwrap(), 0, "by PTX");
        let error = suits(7, 5).unwrap_err().to_string();
        assert!(error.contains("sm_80, compute_80, sm_90a, sm_100f"), "{error}");
    }

    #[test]
    #[cfg(feature = "simulator")]
    fn a_simulator_runs_the_code_for_the_gpu_it_stands_for() {
        let on = |arch: &str| {
            let device = crate::Device::new_simulator().simulated_arch(arch);
            BOTH.choose(&device.default_stream())
        };
        assert_eq!(on("sm_90a").unwrap(), 1);
        assert_eq!(on("sm_100a").unwrap(), 2);
        assert!(on("sm_75").is_err());
        let plain = crate::Device::new_simulator();
        assert_eq!(BOTH.choose(&plain.default_stream()).unwrap(), 0);
    }
}
