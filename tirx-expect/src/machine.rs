//! The executor of a kernel: the simulator, or another device with memory and launches ([`Machine`]).

use std::sync::Arc;

use tirx_core::ir::{DType, IRModule};
use tirx_sim::{
    Allocation, CompileOptions, Exploration, Fault, LaunchOptions, Memory, Program, StandIns, Stats, host,
};

/// Memory and launches.
pub trait Machine {
    /// New memory that holds `bytes`; its address.
    fn alloc(&mut self, bytes: &[u8]) -> Result<u64, String>;
    /// The first `len` bytes of the memory at an address that [`Machine::alloc`] gave.
    fn read(&mut self, address: u64, len: usize) -> Result<Vec<u8>, String>;
    /// Runs a device function of a lowered module to its end.
    fn launch(&mut self, module: &IRModule, launch: &host::Launch) -> Result<(), String>;
}

/// The simulator.
#[derive(Default)]
pub struct Simulator {
    memory: Memory,
    allocations: Vec<Allocation>,
    compiled: CompileOptions,
    options: LaunchOptions,
    exploration: Option<Arc<Exploration>>,
    launches: Vec<Stats>,
    fault: Option<Fault>,
}

/// The schedule that `TIRX_SIM_SEED` says.
pub fn first_seed() -> u64 {
    let text = std::env::var("TIRX_SIM_SEED").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl Simulator {
    /// A simulator that stops a block after `limit` branches and loop iterations.
    pub fn with_step_limit(limit: u64) -> Simulator {
        Simulator {
            options: LaunchOptions {
                step_limit: Some(limit),
                seed: first_seed(),
                ..LaunchOptions::default()
            },
            ..Simulator::default()
        }
    }

    /// The same with other options.
    pub fn with_options(options: LaunchOptions) -> Simulator {
        Simulator {
            options,
            ..Simulator::default()
        }
    }

    /// A simulator that runs in the order that a search asks for.
    pub fn exploring(exploration: &Arc<Exploration>) -> Simulator {
        Simulator {
            exploration: Some(exploration.clone()),
            ..Simulator::default()
        }
    }

    /// The same in the order that a search asks for.
    pub fn in_orders_of(self, exploration: &Arc<Exploration>) -> Simulator {
        Simulator {
            exploration: Some(exploration.clone()),
            ..self
        }
    }

    /// What its launches did, in order; without the one that [`Simulator::fault`] ended.
    pub fn launches(&self) -> &[Stats] {
        &self.launches
    }

    /// The fault that ended the last launch.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// The same with signed overflow as a fault.
    pub fn checks_overflow(self) -> Simulator {
        let compiled = CompileOptions { check_overflow: true };
        Simulator { compiled, ..self }
    }
}

impl Machine for Simulator {
    fn alloc(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let allocation = self.memory.alloc(bytes.len().max(1));
        allocation.write(0, bytes);
        let address = allocation.address();
        self.allocations.push(allocation);
        Ok(address)
    }

    fn read(&mut self, address: u64, len: usize) -> Result<Vec<u8>, String> {
        let allocation = self.allocations.iter().find(|a| a.address() == address);
        let allocation = allocation.ok_or(format!("no memory at {address:#x}"))?;
        let mut bytes = vec![0; len];
        allocation.read(0, &mut bytes);
        Ok(bytes)
    }

    fn launch(&mut self, module: &IRModule, launch: &host::Launch) -> Result<(), String> {
        let program = Program::compile_with(module, &launch.symbol, self.compiled)
            .map_err(|e| e.render(&module.sources))?;
        let (args, _maps) = launch.arguments_in(&self.memory);
        let config = tirx_sim::Launch {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            args: &args,
        };
        let options = LaunchOptions {
            programmatic: launch.programmatic,
            ..self.options
        };
        let (memory, none) = (&self.memory, StandIns::new());
        let stats = match &self.exploration {
            None => program.launch_with(memory, &config, &none, &options),
            Some(search) => program.launch_exploring(memory, &config, &none, &options, search),
        };
        match stats {
            Ok(stats) => {
                self.launches.push(stats);
                Ok(())
            }
            Err(fault) => {
                let text = fault.to_string();
                self.fault = Some(fault);
                Err(text)
            }
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A compact tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<i64>,
        /// Its elements.
        bytes: Vec<u8>,
    },
    /// A scalar.
    Scalar(host::Argument),
}

/// Runs the host function of a lowered module with named arguments; what its tensors hold in the end, in their order.
pub fn run(
    machine: &mut dyn Machine,
    module: &IRModule,
    arguments: &[(String, Argument)],
) -> Result<Vec<Vec<u8>>, String> {
    let (mut tensors, mut values) = (Vec::new(), Vec::new());
    for (_, argument) in arguments {
        values.push(match argument {
            Argument::Scalar(value) => value.clone(),
            Argument::Tensor { dtype, shape, bytes } => {
                let address = machine.alloc(bytes)?;
                tensors.push((address, bytes.len()));
                host::Argument::Tensor {
                    dtype: *dtype,
                    shape: shape.clone(),
                    address,
                    byte_offset: 0,
                }
            }
        });
    }
    let names: Vec<String> = arguments.iter().map(|(name, _)| name.clone()).collect();
    host::run(module, &names, &values, &mut |launch| {
        machine.launch(module, launch)
    })?;
    let contents = tensors.iter().map(|(address, len)| machine.read(*address, *len));
    contents.collect()
}
