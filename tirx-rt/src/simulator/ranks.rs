//! The simulated devices of a world: one memory, and launches of all ranks that run together.

use std::cell::RefCell;
use std::io::Write;
use std::sync::{Arc, PoisonError};

use tirx_sim::{Allocation, Launch, LaunchOptions, Memory, Window};

use super::{Programs, Settings, Simulator, SimulatorMemory, WINDOWS};
use crate::image::{KernelImage, LaunchConfig};
use crate::{Error, Result, TensorMap, limits};

thread_local! {
    /// The launches of this thread's `World::launch`, while its closure runs.
    static HELD: RefCell<Option<Vec<HeldLaunch>>> = const { RefCell::new(None) };
}

/// A launch of one rank, which waits for those of the others.
pub(crate) struct HeldLaunch {
    simulator: Arc<Simulator>,
    image: &'static KernelImage,
    programs: Arc<Programs>,
    function: usize,
    config: LaunchConfig,
    args: Vec<u64>,
    /// Memory of its arguments.
    #[allow(dead_code, reason = "held, not looked at")]
    kept: Vec<Allocation>,
    windows: Vec<(u64, Window)>,
}

/// The simulators of `ranks` devices that share one memory, in which each has its own part.
pub(crate) fn simulators(ranks: u32) -> Vec<Arc<Simulator>> {
    let (memory, settings) = (Memory::new(), Settings::of_environment());
    (0..ranks)
        .map(|rank| Simulator::with_memory(settings, memory.clone(), Some(rank)))
        .collect()
}

/// Symmetric memory of `bytes` zero bytes on each simulator, and the address of its multicast window.
pub(crate) fn alloc(simulators: &[Arc<Simulator>], bytes: usize) -> (Vec<SimulatorMemory>, u64) {
    let memory = &simulators[0].memory;
    let all = memory.alloc_symmetric(simulators.len() as u32, bytes);
    let parts = simulators.iter().zip(all.parts());
    let parts = parts.map(|(simulator, allocation)| SimulatorMemory {
        simulator: simulator.clone(),
        allocation: allocation.clone(),
    });
    (parts.collect(), all.window())
}

/// Runs `each` and gives the launches on ranks that it has made, instead of running them.
pub(crate) fn held(each: impl FnOnce() -> Result<()>) -> Result<Vec<HeldLaunch>> {
    /// Ends the collection, also where `each` panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            HELD.take();
        }
    }
    if HELD.with_borrow(Option::is_some) {
        return Err(Error::Shape(
            "World::launch within World::launch: a launch of a world waits for all of its ranks".to_string(),
        ));
    }
    HELD.set(Some(Vec::new()));
    let end = End;
    each()?;
    let launches = HELD.take().unwrap_or_default();
    drop(end);
    Ok(launches)
}

/// Keeps a launch for later if it is one of a rank; gives whether it does.
pub(crate) fn hold(
    simulator: &Arc<Simulator>,
    image: &'static KernelImage,
    programs: &Arc<Programs>,
    function: usize,
    config: &LaunchConfig,
    args: &[u64],
    maps: &[&TensorMap],
) -> Result<bool> {
    if simulator.rank.is_none() || HELD.with_borrow(Option::is_none) {
        return Ok(false);
    }
    let (args, mut kept) = simulator.placed(image, function, args, maps);
    let kinds = image.functions[function].params.iter().zip(&args);
    kept.extend(kinds.filter_map(|(_, arg)| simulator.memory.allocation_at(*arg)));
    let launch = HeldLaunch {
        simulator: simulator.clone(),
        image,
        programs: programs.clone(),
        function,
        config: *config,
        args,
        kept,
        windows: WINDOWS.with_borrow(Clone::clone),
    };
    HELD.with_borrow_mut(|held| {
        if let Some(held) = held {
            held.push(launch);
        }
    });
    Ok(true)
}

/// Runs the launches of each rank, those of one number together.
pub(crate) fn run(ranks: Vec<Vec<HeldLaunch>>) -> Result<()> {
    let first = ranks.first().map_or(0, Vec::len);
    let other = ranks.iter().position(|launches| launches.len() != first);
    if let Some(rank) = other {
        let kernel = ranks
            .iter()
            .flatten()
            .next()
            .map_or("", |launch| launch.image.name);
        let message = format!(
            "rank {rank} launches {} kernels and rank 0 launches {first}: each rank must launch the kernel",
            ranks[rank].len()
        );
        return Err(Error::Launch { kernel, message });
    }
    let mut ranks: Vec<_> = ranks.into_iter().map(Vec::into_iter).collect();
    for _ in 0..first {
        let together: Vec<HeldLaunch> = ranks.iter_mut().filter_map(Iterator::next).collect();
        run_together(&together)?;
    }
    Ok(())
}

fn run_together(launches: &[HeldLaunch]) -> Result<()> {
    let [first, ..] = launches else { return Ok(()) };
    let kernel = first.image.name;
    for (rank, launch) in launches.iter().enumerate() {
        if (launch.image.hash, launch.function) != (first.image.hash, first.function) {
            let message = format!(
                "rank {rank} launches `{}` beside it: the simulator runs one kernel on all ranks at a time",
                launch.image.name
            );
            return Err(Error::Launch { kernel, message });
        }
        if launch.config != first.config {
            let message = format!(
                "rank {rank} launches a grid {:?} of blocks {:?}, and rank 0 {:?} of {:?}: the launches of all ranks have one shape",
                launch.config.grid, launch.config.block, first.config.grid, first.config.block
            );
            return Err(Error::Launch { kernel, message });
        }
    }
    let (simulator, config) = (&first.simulator, &first.config);
    simulator.settings.check(kernel)?;
    let program = &first.programs.0[first.function];
    limits::shared_bytes(kernel, config.shared_bytes, program.most_shared())?;
    let peers: Vec<Vec<u64>> = launches[1..].iter().map(|launch| launch.args.clone()).collect();
    let launch = Launch {
        grid: config.grid,
        block: config.block,
        cluster: config.cluster,
        shared_bytes: config.shared_bytes,
        args: &first.args,
        peers: &peers,
    };
    let windows: Vec<(u64, Window)> = launches
        .iter()
        .flat_map(|launch| launch.windows.iter().cloned())
        .collect();
    let options = LaunchOptions {
        step_limit: simulator.settings.step_limit,
        seed: simulator.settings.seed,
        programmatic: config.programmatic,
        ..LaunchOptions::default()
    };
    let stand_ins = simulator.stand_ins.read().unwrap_or_else(PoisonError::into_inner);
    let stats = program.launch_within(&simulator.memory, &launch, &stand_ins, &options, &windows);
    let printed = match &stats {
        Ok(stats) => &stats.output,
        Err(fault) => &fault.output,
    };
    // A closed pipe is not an error.
    let _ = std::io::stdout().write_all(printed.as_bytes());
    stats?;
    Ok(())
}
