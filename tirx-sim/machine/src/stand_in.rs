//! Rust closures in the place of raw CUDA functions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Memory as a stand-in sees it: through the pointers it was given.
pub(crate) trait PointerAccess {
    fn read(&mut self, lane: u32, address: u64, out: &mut [u8]) -> Result<(), String>;
    fn write(&mut self, lane: u32, address: u64, bytes: &[u8]) -> Result<(), String>;
}

/// One thread's call of a raw CUDA function.
pub struct StandInCall<'a> {
    name: &'a str,
    args: &'a [u64],
    block: [u32; 3],
    thread: [u32; 3],
    memory: &'a mut dyn PointerAccess,
    lane: u32,
}

impl<'a> StandInCall<'a> {
    pub(crate) fn new(
        name: &'a str,
        args: &'a [u64],
        block: [u32; 3],
        thread: [u32; 3],
        memory: &'a mut dyn PointerAccess,
        lane: u32,
    ) -> StandInCall<'a> {
        StandInCall {
            name,
            args,
            block,
            thread,
            memory,
            lane,
        }
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        self.name
    }

    /// The arguments: scalars as little-endian bits, pointers as addresses.
    pub fn args(&self) -> &[u64] {
        self.args
    }

    /// The bits of argument `i`; zero where there is none.
    pub fn bits(&self, i: usize) -> u64 {
        self.args.get(i).copied().unwrap_or(0)
    }

    /// Argument `i` as a `float`.
    pub fn f32(&self, i: usize) -> f32 {
        f32::from_bits(self.bits(i) as u32)
    }

    /// Argument `i` as a `double`.
    pub fn f64(&self, i: usize) -> f64 {
        f64::from_bits(self.bits(i))
    }

    /// Argument `i` as an `int`.
    pub fn i32(&self, i: usize) -> i32 {
        self.bits(i) as u32 as i32
    }

    /// `blockIdx` of the calling thread.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// `threadIdx` of the calling thread.
    pub fn thread(&self) -> [u32; 3] {
        self.thread
    }

    /// Reads `N` bytes at an address that was given as an argument, or near it.
    ///
    /// # Errors
    /// Where the address is outside every allocation or array, or what is there was never written.
    pub fn read<const N: usize>(&mut self, address: u64) -> Result<[u8; N], String> {
        let mut out = [0; N];
        self.memory.read(self.lane, address, &mut out)?;
        Ok(out)
    }

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// Where the address is outside every allocation or array.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        self.memory.write(self.lane, address, bytes)
    }
}

/// A stand-in: gives the bits of the function's result.
pub(crate) type StandIn = dyn Fn(&mut StandInCall<'_>) -> Result<u64, String> + Send + Sync;

/// Rust closures that the simulator runs in the place of raw CUDA functions (`T.cuda.func_call`,
/// `T.call_extern`), by name. Clones share the closures.
///
/// ```
/// # use tirx_sim_machine as tirx_sim;
/// let mut stand_ins = tirx_sim::StandIns::new();
/// stand_ins.register("my_relu", |call| Ok(call.f32(0).max(0.0).to_bits() as u64));
/// assert!(stand_ins.contains("my_relu"));
/// ```
#[derive(Clone, Default)]
pub struct StandIns(BTreeMap<String, Arc<StandIn>>);

impl StandIns {
    /// None.
    pub fn new() -> StandIns {
        StandIns::default()
    }

    /// Registers (or replaces) the stand-in of a function. The closure is called once per thread and returns the
    /// result's bits (`f32::to_bits(x) as u64`, `x as u32 as u64`; anything for `void`), or what went wrong.
    pub fn register<F>(&mut self, name: impl Into<String>, function: F) -> &mut StandIns
    where
        F: Fn(&mut StandInCall<'_>) -> Result<u64, String> + Send + Sync + 'static,
    {
        self.0.insert(name.into(), Arc::new(function));
        self
    }

    /// Whether a function has a stand-in.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&StandIn> {
        self.0.get(name).map(|f| &**f)
    }
}

impl fmt::Debug for StandIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
