//! The simulator as a device: memory, loading of IR images, launches, stand-ins for raw CUDA functions.

pub(crate) mod ranks;

use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tirx_sim::{
    Allocation, CompileOptions, Launch, LaunchOptions, Memory, Program, StandIns, TensorMapSwizzle,
    TensorMapType, Window,
};

use crate::cuda::{HostUse, PinnedBytes, PinnedLaunch, PinnedUsers};
use crate::device::{Device, DeviceKind};
use crate::image::{KernelImage, LaunchConfig, ParamKind};
use crate::targets::capability_of;
use crate::tensor_map::TensorMapSpec;
use crate::{Error, Result, TensorMap, limits};

thread_local! {
    /// The parts of allocations that the tensors of this thread's launch cover.
    static WINDOWS: RefCell<Vec<(u64, Window)>> = const { RefCell::new(Vec::new()) };
}

/// Sets the parts of allocations that arguments of this thread's launches cover.
pub(crate) fn set_windows(windows: Vec<(u64, Window)>) {
    WINDOWS.set(windows);
}

/// A simulated device.
pub(crate) struct Simulator {
    /// A negative number that identifies the simulator.
    id: i32,
    memory: Memory,
    /// Its number among the devices of a world, with which it shares the memory.
    rank: Option<u32>,
    stand_ins: RwLock<StandIns>,
    settings: Settings,
    /// Write-locked while a graph runs, read-locked by all other uses of memory: only a graph writes what is not borrowed
    /// exclusively meanwhile.
    turn: RwLock<()>,
}

/// How a simulator runs kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Most branches and loop iterations of a block.
    step_limit: Option<u64>,
    /// Whether signed overflow is a fault.
    check_overflow: bool,
    /// The seed of the order of asynchronous operations and warps.
    seed: u64,
    /// How long a launch may take before a message names the kernel that is running.
    patience: Duration,
    /// The compute capability of the GPU that it stands for.
    arch: Option<(i32, i32)>,
    /// An environment variable with an invalid value, and what it should be.
    wrong: Option<(&'static str, &'static str)>,
}

const STEP_LIMIT: &str = "TIRX_SIM_STEP_LIMIT";
const SEED: &str = "TIRX_SIM_SEED";
const ARCH: &str = "TIRX_SIM_ARCH";

impl Settings {
    /// Fails launches where an environment variable has an invalid value.
    fn check(&self, kernel: &'static str) -> Result<()> {
        let Some((variable, what)) = self.wrong else {
            return Ok(());
        };
        let value = std::env::var(variable).unwrap_or_default();
        let message = format!("{variable} is `{value}`, which is {what}");
        Err(Error::Launch { kernel, message })
    }

    pub(crate) fn arch(&self) -> Option<(i32, i32)> {
        self.arch
    }

    pub(crate) fn check_overflow(&self) -> bool {
        self.check_overflow
    }

    /// The settings of the environment variables `TIRX_SIM_STEP_LIMIT` (a number, or `none`), `TIRX_SIM_CHECK_OVERFLOW`
    /// (`1`), `TIRX_SIM_SEED` (a number) and `TIRX_SIM_ARCH` (`sm_100a`). Any other value is an error of every launch.
    fn of_environment() -> Settings {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let mut settings = Settings {
            step_limit: LaunchOptions::default().step_limit,
            check_overflow: variable("TIRX_SIM_CHECK_OVERFLOW").is_some_and(|v| v != "0"),
            seed: 0,
            patience: Duration::from_secs(10),
            arch: None,
            wrong: None,
        };
        match variable(STEP_LIMIT).map(|text| (text == "none", text.parse())) {
            None => {}
            Some((true, _)) => settings.step_limit = None,
            Some((_, Ok(limit))) => settings.step_limit = Some(limit),
            Some(_) => settings.wrong = Some((STEP_LIMIT, "no number and not `none`")),
        }
        match variable(SEED).map(|text| text.parse()) {
            None => {}
            Some(Ok(seed)) => settings.seed = seed,
            Some(_) => settings.wrong = Some((SEED, "no number")),
        }
        if let Some(text) = variable(ARCH) {
            settings.arch = capability_of(&text);
            if settings.arch.is_none() {
                settings.wrong = Some((ARCH, "no architecture such as `sm_100a`"));
            }
        }
        settings
    }
}

/// The process-wide simulator.
pub(crate) fn shared() -> Arc<Simulator> {
    static SHARED: OnceLock<Arc<Simulator>> = OnceLock::new();
    SHARED
        .get_or_init(|| Simulator::new(Settings::of_environment()))
        .clone()
}

/// Prints the name of the kernel when a launch takes long.
struct Running(#[allow(dead_code, reason = "dropping it ends the wait")] Sender<()>);

impl Running {
    fn start(
        kernel: &'static str,
        patience: Duration,
        place: impl FnOnce() -> Option<String> + Send + 'static,
        say: impl FnOnce(String) + Send + 'static,
    ) -> Running {
        let (done, wait) = channel::<()>();
        // Where no thread can be started, nothing is printed.
        let _ = std::thread::Builder::new().spawn(move || {
            if wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let at = place().map_or(String::new(), |place| format!(", at {place}"));
                say(format!(
                    "note: kernel `{kernel}` is still running on the simulator after {} s{at}\n  = help: a block is stopped at \
                     its step limit, with the loop that used it up; set a lower one with \
                     `Device::new_simulator().step_limit(…)` or TIRX_SIM_STEP_LIMIT, and build `tirx-sim-machine` with optimization\n",
                    patience.as_secs()
                ));
            }
        });
        Running(done)
    }
}

impl Simulator {
    pub(crate) fn new(settings: Settings) -> Arc<Simulator> {
        Simulator::with_memory(settings, Memory::new(), None)
    }

    fn with_memory(settings: Settings, memory: Memory, rank: Option<u32>) -> Arc<Simulator> {
        static NEXT: AtomicI32 = AtomicI32::new(-1);
        let id = NEXT.fetch_sub(1, Ordering::Relaxed);
        Arc::new(Simulator {
            id,
            memory,
            rank,
            stand_ins: RwLock::new(StandIns::default()),
            settings,
            turn: RwLock::new(()),
        })
    }

    /// A new simulator with the settings of the environment.
    pub(crate) fn of_environment() -> Arc<Simulator> {
        Simulator::new(Settings::of_environment())
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Waits until no graph runs; none begins as long as the result lives.
    pub(crate) fn beside_others(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing uses the memory; nothing does as long as the result lives.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program waits for what has been launched.
    pub(crate) fn synchronize(&self) {
        self.memory.synchronize();
    }

    /// Arguments with tensor maps in memory, which lives as long as the result. A GPU takes a tensor map by value, the simulator
    /// by address.
    fn placed(
        &self,
        image: &'static KernelImage,
        function: usize,
        args: &[u64],
        maps: &[&TensorMap],
    ) -> (Vec<u64>, Vec<Allocation>) {
        let mut placed = args.to_vec();
        let mut kept = Vec::new();
        for (arg, kind) in placed.iter_mut().zip(image.functions[function].params) {
            if *kind == ParamKind::TensorMap {
                let bytes: Vec<u8> = (maps[*arg as usize].words().iter())
                    .flat_map(|word| word.to_le_bytes())
                    .collect();
                let memory = self.memory.alloc(bytes.len());
                memory.write(0, &bytes);
                *arg = memory.address();
                kept.push(memory);
            }
        }
        (placed, kept)
    }

    pub(crate) fn launch(
        &self,
        image: &'static KernelImage,
        programs: &Programs,
        function: usize,
        config: &LaunchConfig,
        args: &[u64],
        maps: &[&TensorMap],
    ) -> Result<()> {
        self.settings.check(image.name)?;
        let (args, _kept) = self.placed(image, function, args, maps);
        let most = programs.0[function].most_shared();
        limits::shared_bytes(image.name, config.shared_bytes, most)?;
        let launch = Launch {
            grid: config.grid,
            block: config.block,
            cluster: config.cluster,
            shared_bytes: config.shared_bytes,
            args: &args,
            peers: &[],
        };
        let stand_ins = self.stand_ins.read().unwrap_or_else(PoisonError::into_inner);
        let windows = WINDOWS.with_borrow(Clone::clone);
        let options = LaunchOptions {
            step_limit: self.settings.step_limit,
            seed: self.settings.seed,
            programmatic: config.programmatic,
            rank: self.rank.unwrap_or(0),
            ..LaunchOptions::default()
        };
        let program = &programs.0[function];
        let position = program.position();
        let place = move || {
            let at = position.location()?;
            Some(format!("{}:{}:{}", at.file, at.line, at.column))
        };
        let running = Running::start(image.name, self.settings.patience, place, |note| {
            let _ = std::io::stderr().write_all(note.as_bytes());
        });
        let stats = program.launch_within(&self.memory, &launch, &stand_ins, &options, &windows);
        drop(running);
        // Prints the output of kernels where a GPU's driver would, also of one that ends in a fault. A closed pipe is not an error.
        let printed = match &stats {
            Ok(stats) => &stats.output,
            Err(fault) => &fault.output,
        };
        let _ = std::io::stdout().write_all(printed.as_bytes());
        stats?;
        Ok(())
    }
}

/// Work that a capture recorded.
pub(crate) enum RecordedWork {
    Kernel {
        image: &'static KernelImage,
        programs: Arc<Programs>,
        function: usize,
        config: LaunchConfig,
        args: Vec<u64>,
        maps: Vec<TensorMap>,
        windows: Vec<(u64, Window)>,
    },
    /// Zeros `len` bytes.
    Zero {
        memory: SimulatorMemory,
        offset: usize,
        len: usize,
    },
    /// Copies `len` bytes of the same simulator.
    Copy {
        memory: SimulatorMemory,
        offset: usize,
        from: SimulatorMemory,
        from_offset: usize,
        len: usize,
    },
    /// Copies from pinned memory, or to it.
    Pinned {
        memory: SimulatorMemory,
        offset: usize,
        pinned: Arc<PinnedBytes>,
        how: HostUse,
    },
}

impl RecordedWork {
    /// A launch with the windows of this thread.
    pub(crate) fn kernel(
        image: &'static KernelImage,
        programs: &Arc<Programs>,
        function: usize,
        config: &LaunchConfig,
        args: &[u64],
        maps: &[&TensorMap],
    ) -> RecordedWork {
        RecordedWork::Kernel {
            image,
            programs: programs.clone(),
            function,
            config: *config,
            args: args.to_vec(),
            maps: maps.iter().map(|map| (*map).clone()).collect(),
            windows: WINDOWS.with_borrow(Clone::clone),
        }
    }

    /// Does the work, with the graph's pinned memory.
    pub(crate) fn run(&self, simulator: &Simulator, held: &PinnedLaunch<'_>) -> Result<()> {
        match self {
            RecordedWork::Kernel {
                image,
                programs,
                function,
                config,
                args,
                maps,
                windows,
            } => {
                let maps: Vec<&TensorMap> = maps.iter().collect();
                let before = WINDOWS.replace(windows.clone());
                let outcome = simulator.launch(image, programs, *function, config, args, &maps);
                set_windows(before);
                return outcome;
            }
            RecordedWork::Zero { memory, offset, len } => memory.write(*offset, &vec![0; *len]),
            RecordedWork::Copy {
                memory,
                offset,
                from,
                from_offset,
                len,
            } => memory.write(*offset, &from.read(*from_offset, *len)),
            RecordedWork::Pinned {
                memory,
                offset,
                pinned,
                how,
            } => {
                // The graph holds all that its work names.
                if let Some(users) = held.users(pinned) {
                    memory.copy_pinned(*offset, pinned, users, *how);
                }
            }
        }
        Ok(())
    }
}

/// A tensor map in the simulator's form. The arrays have the lengths that the rank requires.
pub(crate) fn encode_tensor_map(spec: &TensorMapSpec<'_>) -> Result<[u64; 16]> {
    let unknown = |what: &str, number: u32| Error::Shape(format!("{number} is no {what} of a tensor map"));
    let map = tirx_sim::TensorMap {
        dtype: TensorMapType::from_value(spec.data_type)
            .ok_or_else(|| unknown("data type", spec.data_type))?,
        address: spec.address,
        dims: spec.dims.to_vec(),
        strides: spec.strides.to_vec(),
        box_dims: spec.box_dims.to_vec(),
        element_strides: spec.element_strides.to_vec(),
        interleave: spec.interleave as u8,
        swizzle: TensorMapSwizzle::from_value(spec.swizzle)
            .ok_or_else(|| unknown("swizzle", spec.swizzle))?,
        l2_promotion: spec.l2_promotion as u8,
        nan_fill: spec.oob_fill == 1,
    };
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(map.encode().chunks_exact(8)) {
        *word = bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
    }
    Ok(words)
}

/// Memory of a simulated device.
#[derive(Clone)]
pub(crate) struct SimulatorMemory {
    simulator: Arc<Simulator>,
    allocation: Allocation,
}

impl SimulatorMemory {
    pub(crate) fn alloc(simulator: &Arc<Simulator>, bytes: usize) -> Result<SimulatorMemory> {
        let allocation = simulator.memory.try_alloc(bytes);
        let allocation = allocation.ok_or_else(|| no_memory(bytes))?;
        if let Some(rank) = simulator.rank {
            allocation.give_to(rank);
        }
        Ok(SimulatorMemory {
            simulator: simulator.clone(),
            allocation,
        })
    }

    pub(crate) fn simulator(&self) -> &Arc<Simulator> {
        &self.simulator
    }

    pub(crate) fn len(&self) -> usize {
        self.allocation.len()
    }

    pub(crate) fn address(&self) -> u64 {
        self.allocation.address()
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.allocation.write(offset, bytes);
    }

    /// Copies between pinned memory, which is read or written, and the bytes from `offset`.
    pub(crate) fn copy_pinned(
        &self,
        offset: usize,
        pinned: &PinnedBytes,
        users: &MutexGuard<'_, PinnedUsers>,
        how: HostUse,
    ) {
        match how {
            HostUse::Read => pinned.copy_out(users, |bytes| self.write(offset, bytes)),
            HostUse::Write => pinned.copy_in(users, &self.read(offset, pinned.len())),
        }
    }

    pub(crate) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.allocation.read(offset, &mut bytes);
        bytes
    }
}

/// The error of an allocation that this machine has no memory for.
fn no_memory(bytes: usize) -> Error {
    Error::Driver {
        attempt: format!("allocating {bytes} bytes"),
        name: "CUDA_ERROR_OUT_OF_MEMORY".to_string(),
        message: "the simulator uses the memory of this machine, which is not large enough".to_string(),
    }
}

/// Zeroed memory of the host, with the alignment of every element type.
pub(crate) fn pinned_memory(len: usize) -> Result<PinnedBytes> {
    let mut words = Vec::new();
    (words.try_reserve_exact(len.div_ceil(8))).map_err(|_| no_memory(len))?;
    words.resize(len.div_ceil(8), 0);
    Ok(PinnedBytes::of_words(words, len))
}

/// The device functions of an image, compiled for the simulator.
pub(crate) struct Programs(Vec<Program>);

impl Programs {
    pub(crate) fn compile(image: &'static KernelImage, settings: Settings) -> Result<Programs> {
        let options = CompileOptions {
            check_overflow: settings.check_overflow,
        };
        let unusable = |message: String| Error::Image {
            kernel: image.name,
            message,
        };
        if image.ir.is_empty() {
            return Err(unusable(
                "its package has the kernel for other targets only".to_string(),
            ));
        }
        let module = tirx_ir::image::decode(image.ir).map_err(|e| unusable(e.to_string()))?;
        let programs = image.functions.iter().map(|function| {
            Program::compile_with(&module, function.symbol, options)
                .map_err(|e| unusable(e.render(&module.sources)))
        });
        programs.collect::<Result<_>>().map(Programs)
    }
}

/// A scalar argument or result of a stand-in.
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
    crate::f16: b => crate::f16::from_bits(b as u16), v => v.to_bits() as u64;
    crate::bf16: b => crate::bf16::from_bits(b as u16), v => v.to_bits() as u64;
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
    fn with_settings(self, change: impl FnOnce(&mut Settings)) -> Device {
        match &self.0 {
            DeviceKind::Simulator(simulator) => {
                let mut settings = simulator.settings();
                change(&mut settings);
                let changed = Simulator::new(settings);
                let stand_ins = simulator.stand_ins.read().unwrap_or_else(PoisonError::into_inner);
                *changed.stand_ins.write().unwrap_or_else(PoisonError::into_inner) = stand_ins.clone();
                Device(DeviceKind::Simulator(changed))
            }
            DeviceKind::Cuda(_) => self,
        }
    }

    /// A simulator with a limit on the branches and loop iterations of a block; `None` for no limit. The default is
    /// 2²⁸, or the value of `TIRX_SIM_STEP_LIMIT`. It is a new device with its own memory; a GPU is returned unchanged.
    ///
    /// ```
    /// let device = tirx_rt::Device::new_simulator().step_limit(Some(1_000_000));
    /// assert!(device.is_simulator());
    /// ```
    #[must_use]
    pub fn step_limit(self, steps: impl Into<Option<u64>>) -> Device {
        let steps = steps.into();
        self.with_settings(|settings| settings.step_limit = steps)
    }

    /// A simulator that stands for a GPU of an architecture, `"sm_100a"`: of a kernel whose code differs by GPU it runs that code.
    /// By default it is what `TIRX_SIM_ARCH` names, else the first of the kernel's targets. It is a new device with its own
    /// memory; a GPU is returned unchanged. A text that is no architecture is an error of every launch of such a kernel.
    #[must_use]
    pub fn simulated_arch(self, arch: &str) -> Device {
        // A compute capability that no code is for.
        let arch = capability_of(arch).unwrap_or((0, 0));
        self.with_settings(|settings| settings.arch = Some(arch))
    }

    /// A simulator on which signed overflow, which is undefined in CUDA C++, is a fault; by default integers wrap,
    /// unless `TIRX_SIM_CHECK_OVERFLOW` is set. It is a new device with its own memory; a GPU is returned unchanged.
    #[must_use]
    pub fn check_overflow(self, check: bool) -> Device {
        self.with_settings(|settings| settings.check_overflow = check)
    }

    /// A simulator with another seed: asynchronous copies and matrix operations take effect, and warps run, in another
    /// of the orders that the kernel allows, one for each seed. The default is 0, or the value of `TIRX_SIM_SEED`; a
    /// kernel whose results depend on the seed lacks synchronization. It is a new device with its own memory; a GPU is
    /// returned unchanged.
    ///
    /// ```
    /// for seed in 0..10 {
    ///     let device = tirx_rt::Device::new_simulator().schedule_seed(seed);
    ///     // the kernel's test
    /// }
    /// ```
    #[must_use]
    pub fn schedule_seed(self, seed: u64) -> Device {
        self.with_settings(|settings| settings.seed = seed)
    }

    /// On a simulator: runs `function` wherever a kernel calls the raw CUDA function `name`. On a GPU: no effect.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_takes_long_is_named() {
        let (sender, notes) = channel();
        let say = move |note| drop(sender.send(note));
        let place = || Some("k.py:7:5".to_string());
        let running = Running::start("endless", Duration::from_millis(1), place, say);
        let note: String = notes.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(
            note.starts_with(
                "note: kernel `endless` is still running on the simulator after 0 s, at k.py:7:5\n"
            ) && note.contains("step_limit"),
            "{note}"
        );
        drop(running);
        let (sender, notes) = channel();
        let say = move |note: String| drop(sender.send(note));
        drop(Running::start("short", Duration::from_secs(600), || None, say));
        assert!(
            notes.recv_timeout(Duration::from_secs(60)).is_err(),
            "nothing is said of a short one"
        );
    }

    #[test]
    fn settings_change_and_stay_with_the_device() {
        let device = Device::new_simulator()
            .step_limit(1000)
            .check_overflow(true)
            .schedule_seed(7);
        let DeviceKind::Simulator(simulator) = &device.0 else {
            panic!("it is a simulator");
        };
        let settings = simulator.settings();
        assert_eq!(
            (settings.step_limit, settings.check_overflow, settings.seed),
            (Some(1000), true, 7)
        );
    }
}
