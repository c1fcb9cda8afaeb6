//! The executor of a kernel: the simulator, or another device with memory and launches ([`Machine`]).

use std::sync::Arc;

use tirx_core::ir::{DType, IRModule};
use tirx_sim::{
    Allocation, CompileOptions, Exploration, Fault, LaunchOptions, Memory, Program, ShadowValue, StandIns,
    Stats, Symmetric, host,
};

use crate::values::{Address, Scalar, number};

/// Memory and launches.
pub trait Machine {
    /// New memory that holds `bytes`; its address.
    fn alloc(&mut self, bytes: &[u8]) -> Result<u64, String>;
    /// The first `len` bytes of the memory at an address that [`Machine::alloc`] gave.
    fn read(&mut self, address: u64, len: usize) -> Result<Vec<u8>, String>;
    /// Runs a device function of a lowered module to its end.
    fn launch(&mut self, module: &IRModule, launch: &host::Launch) -> Result<(), String>;
    /// New memory on each of several devices with these bytes; its addresses by rank, and that of its multicast window.
    fn alloc_symmetric(&mut self, bytes: &[&[u8]]) -> Result<(Vec<u64>, u64), String> {
        Err(format!("this machine has one device, not {}", bytes.len()))
    }
    /// Writes the first bytes of the memory at an address that [`Machine::alloc_symmetric`] gave.
    fn write(&mut self, address: u64, _bytes: &[u8]) -> Result<(), String> {
        Err(format!("no symmetric memory at {address:#x}"))
    }
    /// Runs a device function on several devices at once, with the launch of each rank.
    fn launch_ranks(&mut self, _module: &IRModule, launches: &[host::Launch]) -> Result<(), String> {
        Err(format!("this machine has one device, not {}", launches.len()))
    }
}

/// The simulator.
#[derive(Default)]
pub struct Simulator {
    memory: Memory,
    allocations: Vec<Allocation>,
    symmetric: Vec<Symmetric>,
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

    /// The same with a shadow of double precision for each float value.
    pub fn with_accuracy(mut self) -> Simulator {
        self.options.accuracy = true;
        self
    }

    /// The elements of a tensor, by its number among the tensors of a run, that have a shadow of double precision: the rank, the
    /// element's first byte, and the element with its shadow.
    pub fn shadows(&self, tensor: usize) -> impl Iterator<Item = (usize, u64, ShadowValue)> + '_ {
        let own: Vec<&Allocation> = match self.symmetric.get(tensor) {
            Some(symmetric) => symmetric.parts().iter().collect(),
            None => self.allocations.get(tensor).into_iter().collect(),
        };
        let all = self.launches.last().into_iter().flat_map(|last| &last.shadows);
        all.filter_map(move |value| {
            let place = |part: &&Allocation| {
                let byte = value.address.checked_sub(part.address())?;
                (byte < part.len() as u64).then_some(byte)
            };
            let mut parts = own.iter().enumerate();
            let found = parts.find_map(|(rank, part)| Some((rank, place(part)?)));
            found.map(|(rank, byte)| (rank, byte, *value))
        })
    }

    /// The largest relative error of the elements of a tensor, by its number among the tensors of a run. An element without a shadow
    /// is exact, and so is one that is too small for its dtype.
    pub(crate) fn largest_error(&self, tensor: usize, dtype: DType) -> f64 {
        let mut largest = 0.0f64;
        for (.., value) in self.shadows(tensor) {
            let bytes = value.rounded.to_le_bytes();
            let bytes = &bytes[..usize::from(value.bits / 8)];
            let (Some(rounded), shadow) = (number(dtype, bytes), f64::from_bits(value.shadow)) else {
                continue;
            };
            if bytes.len() == dtype.with_lanes(1).bytes() && shadow.abs() > 1e-37 && rounded.is_finite() {
                largest = largest.max(((rounded - shadow) / shadow).abs());
            }
        }
        largest
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
        let parts = self.symmetric.iter().flat_map(Symmetric::parts);
        let allocation = self
            .allocations
            .iter()
            .chain(parts)
            .find(|a| a.address() == address);
        let allocation = allocation.ok_or(format!("no memory at {address:#x}"))?;
        let mut bytes = vec![0; len];
        allocation.read(0, &mut bytes);
        Ok(bytes)
    }

    fn alloc_symmetric(&mut self, bytes: &[&[u8]]) -> Result<(Vec<u64>, u64), String> {
        let most = bytes.iter().map(|bytes| bytes.len()).max().unwrap_or(0);
        let all = self.memory.alloc_symmetric(bytes.len() as u32, most.max(1));
        for (part, bytes) in all.parts().iter().zip(bytes) {
            part.write(0, bytes);
        }
        let addresses = all.parts().iter().map(Allocation::address).collect();
        let window = all.window();
        self.symmetric.push(all);
        Ok((addresses, window))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        let mut parts = self.symmetric.iter().flat_map(Symmetric::parts);
        let part = parts.find(|part| part.address() == address);
        part.ok_or(format!("no symmetric memory at {address:#x}"))?
            .write(0, bytes);
        Ok(())
    }

    fn launch(&mut self, module: &IRModule, launch: &host::Launch) -> Result<(), String> {
        self.launch_ranks(module, std::slice::from_ref(launch))
    }

    fn launch_ranks(&mut self, module: &IRModule, launches: &[host::Launch]) -> Result<(), String> {
        let launch = host::same_shape(launches)?;
        let program = Program::compile_with(module, &launch.symbol, self.compiled)
            .map_err(|e| e.render(&module.sources))?;
        let (mut args, mut kept) = (Vec::new(), Vec::new());
        for launch in launches {
            let (own, maps) = launch.arguments_in(&self.memory);
            args.push(own);
            kept.push(maps);
        }
        let config = tirx_sim::Launch {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            args: &args[0],
            peers: &args[1..],
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
    let ranked = arguments.iter().map(|(name, argument)| {
        let argument = match argument {
            Argument::Scalar(value) => RankArgument::Scalar(vec![Scalar::Value(value.clone())]),
            Argument::Tensor { dtype, shape, bytes } => RankArgument::Tensor {
                dtype: *dtype,
                shape: shape.clone(),
                bytes: bytes.clone(),
                addresses: Vec::new(),
            },
        };
        (name.clone(), argument)
    });
    run_ranks(machine, module, None, &ranked.collect::<Vec<_>>())
}

/// An argument of a kernel that runs on several devices.
#[derive(Clone, Debug)]
pub(crate) enum RankArgument {
    /// A compact tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<i64>,
        /// Its elements on each rank, one rank after the other.
        bytes: Vec<u8>,
        /// Addresses among them, by element.
        addresses: Vec<(usize, Address)>,
    },
    /// A scalar, for each rank.
    Scalar(Vec<Scalar>),
}

/// Runs the host function of a lowered module with named arguments, on each of `ranks` devices if there are several; what its tensors
/// hold in the end, in their order and one rank after the other.
pub(crate) fn run_ranks(
    machine: &mut dyn Machine,
    module: &IRModule,
    ranks: Option<u32>,
    arguments: &[(String, RankArgument)],
) -> Result<Vec<Vec<u8>>, String> {
    let count = ranks.unwrap_or(1) as usize;
    let placed = place(machine, ranks, arguments)?;
    let address = |wanted: &Address| {
        let found = placed.iter().flatten().find(|(name, ..)| *name == wanted.tensor);
        let (_, addresses, window) = found.ok_or(format!("`{}` is no tensor of the run", wanted.tensor))?;
        match wanted.rank {
            None => window.ok_or(format!(
                "`{}` has no multicast window without `ranks:`",
                wanted.tensor
            )),
            Some(rank) => {
                let address = addresses.get(rank as usize).copied();
                address.ok_or(format!("`{}` has no rank {rank}", wanted.tensor))
            }
        }
    };
    for ((_, argument), placed) in arguments.iter().zip(&placed) {
        if let (RankArgument::Tensor { bytes, addresses, .. }, Some((_, parts, _))) = (argument, placed)
            && !addresses.is_empty()
        {
            let mut bytes = bytes.clone();
            for (element, wanted) in addresses {
                bytes[element * 8..element * 8 + 8].copy_from_slice(&address(wanted)?.to_le_bytes());
            }
            for (part, bytes) in parts.iter().zip(bytes.chunks(bytes.len() / count)) {
                machine.write(*part, bytes)?;
            }
        }
    }
    let names: Vec<String> = arguments.iter().map(|(name, _)| name.clone()).collect();
    let mut launches: Vec<Vec<host::Launch>> = Vec::new();
    for rank in 0..count {
        let values = arguments
            .iter()
            .zip(&placed)
            .map(|((_, argument), placed)| match argument {
                RankArgument::Scalar(values) => match &values[rank] {
                    Scalar::Value(value) => Ok(value.clone()),
                    Scalar::Address(wanted) => Ok(host::Argument::Int(address(wanted)? as i64)),
                },
                RankArgument::Tensor { dtype, shape, .. } => Ok(host::Argument::Tensor {
                    dtype: *dtype,
                    shape: shape.clone(),
                    address: placed.as_ref().map_or(0, |(_, addresses, _)| addresses[rank]),
                    byte_offset: 0,
                }),
            });
        let values = values.collect::<Result<Vec<_>, String>>()?;
        let mut own = Vec::new();
        host::run(module, &names, &values, &mut |launch| match ranks {
            None => machine.launch(module, launch),
            Some(_) => {
                own.push(launch.clone());
                Ok(())
            }
        })?;
        launches.push(own);
    }
    if ranks.is_some() {
        for together in host::together(launches)? {
            machine.launch_ranks(module, &together)?;
        }
    }
    let mut contents = Vec::new();
    for ((_, argument), placed) in arguments.iter().zip(&placed) {
        if let (RankArgument::Tensor { bytes, .. }, Some((_, addresses, _))) = (argument, placed) {
            let mut all = Vec::new();
            for address in addresses {
                all.extend(machine.read(*address, bytes.len() / count)?);
            }
            contents.push(all);
        }
    }
    Ok(contents)
}

/// A tensor in memory: its name, its addresses by rank, and its multicast window.
type Placed<'a> = Option<(&'a str, Vec<u64>, Option<u64>)>;

/// Puts the tensors among arguments into memory.
fn place<'a>(
    machine: &mut dyn Machine,
    ranks: Option<u32>,
    arguments: &'a [(String, RankArgument)],
) -> Result<Vec<Placed<'a>>, String> {
    let placed = arguments.iter().map(|(name, argument)| {
        let RankArgument::Tensor { bytes, .. } = argument else {
            return Ok(None);
        };
        Ok(Some(match ranks {
            None => (name.as_str(), vec![machine.alloc(bytes)?], None),
            Some(ranks) => {
                let own = bytes.len() / ranks as usize;
                let parts: Vec<&[u8]> = (0..ranks as usize)
                    .map(|rank| &bytes[rank * own..][..own])
                    .collect();
                let (addresses, window) = machine.alloc_symmetric(&parts)?;
                (name.as_str(), addresses, Some(window))
            }
        }))
    });
    placed.collect()
}
