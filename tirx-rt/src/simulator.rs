//! The simulator as a device: memory, loading of IR images, launches, stand-ins for raw CUDA functions.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tirx_sim::{Allocation, Launch, Memory, Program, StandIns};

use crate::device::{Device, DeviceKind};
use crate::image::{KernelImage, LaunchConfig};
use crate::{Error, Result, limits};

/// A simulated device.
pub(crate) struct Simulator {
    /// Negative: tells simulators apart.
    id: i32,
    memory: Memory,
    stand_ins: RwLock<StandIns>,
}

/// The process's own.
pub(crate) fn shared() -> Arc<Simulator> {
    static SHARED: OnceLock<Arc<Simulator>> = OnceLock::new();
    SHARED.get_or_init(Simulator::new).clone()
}

impl Simulator {
    pub(crate) fn new() -> Arc<Simulator> {
        static NEXT: AtomicI32 = AtomicI32::new(-1);
        let id = NEXT.fetch_sub(1, Ordering::Relaxed);
        Arc::new(Simulator {
            id,
            memory: Memory::new(),
            stand_ins: RwLock::new(StandIns::default()),
        })
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    pub(crate) fn launch(
        &self,
        kernel: &'static str,
        programs: &Programs,
        function: usize,
        config: &LaunchConfig,
        args: &[u64],
    ) -> Result<()> {
        limits::shared_bytes(kernel, config.shared_bytes, tirx_sim::MOST_SHARED as u32)?;
        let launch = Launch {
            grid: config.grid,
            block: config.block,
            cluster: config.cluster,
            shared_bytes: config.shared_bytes,
            args,
        };
        let stand_ins = self.stand_ins.read().unwrap_or_else(PoisonError::into_inner);
        let stats = programs.0[function].launch(&self.memory, &launch, &stand_ins)?;
        // What kernels print goes where a GPU's driver would write it.
        print!("{}", stats.output);
        Ok(())
    }
}

/// Memory of a simulated device.
pub(crate) struct SimulatorMemory {
    simulator: Arc<Simulator>,
    allocation: Allocation,
}

impl SimulatorMemory {
    pub(crate) fn alloc(simulator: &Arc<Simulator>, bytes: usize) -> SimulatorMemory {
        SimulatorMemory {
            simulator: simulator.clone(),
            allocation: simulator.memory.alloc(bytes),
        }
    }

    pub(crate) fn simulator(&self) -> &Arc<Simulator> {
        &self.simulator
    }

    pub(crate) fn address(&self) -> u64 {
        self.allocation.address()
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.allocation.write(offset, bytes);
    }

    pub(crate) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.allocation.read(offset, &mut bytes);
        bytes
    }
}

/// The device functions of an image, ready to run.
pub(crate) struct Programs(Vec<Program>);

impl Programs {
    pub(crate) fn compile(image: &'static KernelImage) -> Result<Programs> {
        let unusable = |message: String| Error::Image {
            kernel: image.name,
            message,
        };
        let module = tirx_ir::image::decode(image.ir).map_err(|e| unusable(e.to_string()))?;
        let programs = image.functions.iter().map(|function| {
            Program::compile(&module, function.symbol).map_err(|e| unusable(e.render(&module.sources)))
        });
        programs.collect::<Result<_>>().map(Programs)
    }
}

/// A scalar that stand-ins take and give.
pub trait StandInScalar: Copy + 'static {
    /// From the low bits of an argument.
    fn from_bits(bits: u64) -> Self;
    /// To the low bits of a result.
    fn to_bits(self) -> u64;
}

macro_rules! scalars {
    ($($ty:ty: $bits:ident => $from:expr, $value:ident => $to:expr;)*) => {$(
        impl StandInScalar for $ty {
            fn from_bits($bits: u64) -> $ty {
                $from
            }
            fn to_bits(self) -> u64 {
                let $value = self;
                $to
            }
        }
    )*};
}

scalars! {
    f32: b => f32::from_bits(b as u32), v => v.to_bits() as u64;
    f64: b => f64::from_bits(b), v => v.to_bits();
    half::f16: b => half::f16::from_bits(b as u16), v => v.to_bits() as u64;
    half::bf16: b => half::bf16::from_bits(b as u16), v => v.to_bits() as u64;
    i8: b => b as i8, v => v as u8 as u64;
    i16: b => b as i16, v => v as u16 as u64;
    i32: b => b as i32, v => v as u32 as u64;
    i64: b => b as i64, v => v as u64;
    u8: b => b as u8, v => v as u64;
    u16: b => b as u16, v => v as u64;
    u32: b => b as u32, v => v as u64;
    u64: b => b, v => v;
    bool: b => b & 0xff != 0, v => v as u64;
}

/// A Rust function that the simulator runs in place of a raw CUDA function (`T.cuda.func_call`): closures over up to
/// four scalars.
pub trait StandIn<Args>: Send + Sync + 'static {
    /// Calls it with the arguments' bits.
    ///
    /// # Errors
    /// A message, for a wrong number of arguments.
    fn call(&self, args: &[u64]) -> std::result::Result<u64, String>;
}

macro_rules! stand_in {
    ($count:literal: $($name:ident),*) => {
        impl<F, R: StandInScalar, $($name: StandInScalar),*> StandIn<($($name,)*)> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
        {
            #[allow(non_snake_case, reason = "the arguments take their types' names")]
            fn call(&self, args: &[u64]) -> std::result::Result<u64, String> {
                let [$($name),*] = args else {
                    return Err(format!("the stand-in takes {} arguments, the kernel passes {}", $count, args.len()));
                };
                Ok(self($($name::from_bits(*$name)),*).to_bits())
            }
        }
    };
}
stand_in!(1: A);
stand_in!(2: A, B);
stand_in!(3: A, B, C);
stand_in!(4: A, B, C, D);

impl Device {
    /// On a simulator: runs `function` wherever a kernel calls the raw CUDA function `name`. On a GPU: nothing.
    ///
    /// ```
    /// let device = tirx_rt::Device::simulator();
    /// device.stand_in("my_relu", |x: f32| x.max(0.0));
    /// ```
    pub fn stand_in<Args>(&self, name: &str, function: impl StandIn<Args>) {
        if let DeviceKind::Simulator(simulator) = &self.0 {
            let mut stand_ins = simulator
                .stand_ins
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            stand_ins.register(name, move |call| function.call(call.args()));
        }
    }
}
