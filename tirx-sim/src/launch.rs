//! Programs: compiled once, launched with checks of the launch.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tirx_ir::{IRModule, Levels, with_stack_for};
use tirx_sim_machine::Stats;
use tirx_sim_machine::bytecode::{Axis, Code};
use tirx_sim_machine::grid::{self, Launch, LaunchOptions};
use tirx_sim_machine::numeric::Kind;
use tirx_sim_machine::{Exploration, Fault, FaultKind, FaultLocation, FaultReport, Memory, StandIns, Window};
use tirx_source::Diagnostics;

use crate::compile::{self, CompileOptions};

/// Most threads of a block.
const MAX_THREADS: u64 = 1024;
/// Most blocks of a grid along x, y, z.
const MAX_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Largest grid, in blocks, that is run: more would take hours.
const MAX_RUN: u64 = 1 << 26;
/// Bytes that a pool of dynamic shared memory is aligned to.
const POOL_ALIGN: u32 = 1024;
/// Most blocks of a cluster.
const MAX_BLOCKS_IN_CLUSTER: u64 = 16;
/// Most devices of a launch.
const MAX_RANKS: usize = 64;

/// A device function, compiled to run on the CPU. Compile once, launch often, from any thread.
#[derive(Debug)]
pub struct Program {
    code: Arc<Code>,
    turn: Arc<AtomicUsize>,
}

/// Where a program is, as seen from another thread; see [`Program::position`].
#[derive(Clone, Debug)]
pub struct Position {
    code: Arc<Code>,
    turn: Arc<AtomicUsize>,
}

impl Position {
    /// The branch or loop that some block reached last, sampled every 65,536 of them; `None` before the first sample.
    pub fn location(&self) -> Option<FaultLocation> {
        match self.turn.load(Ordering::Relaxed) {
            NOWHERE => None,
            pc => self.code.location(pc),
        }
    }
}

/// No position has been sampled yet.
const NOWHERE: usize = usize::MAX;

/// What a kernel parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// An address in [`Memory`].
    Pointer,
    /// A scalar, in the low bits of its argument.
    Scalar {
        /// Its width.
        bits: u8,
    },
}

impl Program {
    /// Compiles a device function of a lowered module (by its name or `global_symbol`).
    ///
    /// # Errors
    /// Where the function is missing or holds what the simulator does not run, with the source line.
    pub fn compile(module: &IRModule, function: &str) -> Result<Program, Diagnostics> {
        Program::compile_with(module, function, CompileOptions::default())
    }

    /// As [`Program::compile`], with optional checks.
    ///
    /// # Errors
    /// As of [`Program::compile`].
    pub fn compile_with(
        module: &IRModule,
        function: &str,
        options: CompileOptions,
    ) -> Result<Program, Diagnostics> {
        let code = with_stack_for(module.levels(), || compile::compile(module, function, options))?;
        Ok(Program {
            code: Arc::new(code),
            turn: Arc::new(AtomicUsize::new(NOWHERE)),
        })
    }

    /// The position of the program's launches, for another thread that watches them.
    pub fn position(&self) -> Position {
        Position {
            code: self.code.clone(),
            turn: self.turn.clone(),
        }
    }

    /// The most bytes of shared memory that a block may use, static and dynamic together, on the GPU that the function is for.
    pub fn most_shared(&self) -> u32 {
        self.code.most_shared
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.code.name
    }

    /// What each argument of a launch is.
    pub fn params(&self) -> Vec<ParamKind> {
        let kind = |kind: &Kind| match kind {
            Kind::Ptr => ParamKind::Pointer,
            kind => ParamKind::Scalar {
                bits: (kind.bytes() * 8) as u8,
            },
        };
        self.code.params.iter().map(|(_, k)| kind(k)).collect()
    }

    /// Runs a grid to its end, blocks in parallel on rayon's threads.
    ///
    /// # Errors
    /// The first error in the order in which the seed lets blocks act. Memory holds what was written until then.
    pub fn launch(&self, memory: &Memory, launch: &Launch<'_>, stand_ins: &StandIns) -> Result<Stats, Fault> {
        self.launch_with(memory, launch, stand_ins, &LaunchOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As for [`Program::launch`].
    pub fn launch_with(
        &self,
        memory: &Memory,
        launch: &Launch<'_>,
        stand_ins: &StandIns,
        options: &LaunchOptions,
    ) -> Result<Stats, Fault> {
        self.launch_within(memory, launch, stand_ins, options, &[])
    }

    /// The same, with arguments that are parts of allocations: what has the address of one of `windows` among the
    /// arguments may not be left.
    ///
    /// # Errors
    /// As for [`Program::launch`].
    pub fn launch_within(
        &self,
        memory: &Memory,
        launch: &Launch<'_>,
        stand_ins: &StandIns,
        options: &LaunchOptions,
        windows: &[(u64, Window)],
    ) -> Result<Stats, Fault> {
        self.check(launch)
            .and_then(|()| self.check_owners(memory, launch, options.rank))
            .map_err(|message| self.refusal(message))?;
        self.turn.store(NOWHERE, Ordering::Relaxed);
        let code = self.code_for(launch);
        grid::run(&code, &self.turn, memory, launch, stand_ins, options, windows)
    }

    /// Runs a grid in the order that a search asks for, from the memory that each run of the search begins with:
    /// [`Exploration`].
    ///
    /// # Errors
    /// As for [`Program::launch`]; the notes end with what acted last.
    pub fn launch_exploring(
        &self,
        memory: &Memory,
        launch: &Launch<'_>,
        stand_ins: &StandIns,
        options: &LaunchOptions,
        exploration: &Exploration,
    ) -> Result<Stats, Fault> {
        self.check(launch)
            .and_then(|()| self.check_owners(memory, launch, options.rank))
            .map_err(|message| self.refusal(message))?;
        let code = self.code_for(launch);
        let windows = &[];
        grid::explore(
            &code,
            &self.turn,
            memory,
            launch,
            stand_ins,
            options,
            windows,
            exploration,
        )
    }

    /// The code, with a pool of dynamic shared memory (an array without extent) as large as the launch says.
    fn code_for(&self, launch: &Launch<'_>) -> Cow<'_, Code> {
        let shared = &self.code.shared;
        let Some(pool) = shared.iter().position(|a| a.dynamic && a.bytes == 0) else {
            return Cow::Borrowed(&self.code);
        };
        let end = self.code.shared_end();
        let mut code = Code::clone(&self.code);
        code.shared[pool].offset = end.next_multiple_of(POOL_ALIGN);
        code.shared[pool].bytes = launch.shared_bytes;
        let whole = code.shared[pool].clone();
        for array in &mut code.shared {
            if let Some(view) = array.view.take_if(|view| usize::from(view.of) == pool) {
                let part = whole.part(view);
                (array.offset, array.bytes, array.view) = (part.offset, part.bytes, part.view);
            }
        }
        Cow::Owned(code)
    }

    fn refusal(&self, message: String) -> Fault {
        FaultReport {
            kind: FaultKind::Launch,
            message,
            kernel: self.code.name.clone(),
            location: None,
            rank: None,
            block: [0; 3],
            thread: [0; 3],
            notes: Vec::new(),
            output: String::new(),
            stats: Stats::default(),
        }
        .into()
    }

    /// Checks that each rank gets memory that it may access.
    fn check_owners(&self, memory: &Memory, launch: &Launch<'_>, first: u32) -> Result<(), String> {
        let ranks = [launch.args]
            .into_iter()
            .chain(launch.peers.iter().map(Vec::as_slice));
        for (rank, args) in (first..).zip(ranks) {
            for ((name, kind), address) in self.code.params.iter().zip(args) {
                let owner = (*kind == Kind::Ptr).then(|| memory.owner(*address)).flatten();
                if let Some(owner) = owner.filter(|owner| *owner != rank) {
                    return Err(format!(
                        "`{}` of rank {rank} is memory of rank {owner} alone: other ranks may access symmetric memory only",
                        name.strip_suffix("_ptr").unwrap_or(name)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks the launch before anything runs. (Extents of indices are checked by the kernel itself.)
    fn check(&self, launch: &Launch<'_>) -> Result<(), String> {
        let code = &self.code;
        if launch.args.len() != code.params.len() {
            return Err(format!(
                "it has {} parameters, and {} arguments were given",
                code.params.len(),
                launch.args.len()
            ));
        }
        if launch.peers.len() >= MAX_RANKS {
            return Err(format!(
                "it is to run on {} devices, and {MAX_RANKS} is the most",
                launch.peers.len() + 1
            ));
        }
        let wrong = launch
            .peers
            .iter()
            .position(|args| args.len() != code.params.len());
        if let Some(rank) = wrong {
            return Err(format!(
                "it has {} parameters, and rank {} was given {} arguments",
                code.params.len(),
                rank + 1,
                launch.peers[rank].len()
            ));
        }
        let dims = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        for (name, value) in [
            ("grid", launch.grid),
            ("block", launch.block),
            ("cluster", launch.cluster),
        ] {
            if value.contains(&0) {
                return Err(format!("the {name} dimensions are {}", dims(value)));
            }
        }
        let threads: u64 = launch.block.iter().map(|d| *d as u64).product();
        if threads > MAX_THREADS {
            return Err(format!(
                "a block of {} has {threads} threads, and {MAX_THREADS} is the most",
                dims(launch.block)
            ));
        }
        if let Some(d) = (0..3).find(|d| launch.grid[*d] > MAX_BLOCKS[*d]) {
            return Err(format!(
                "the grid {} has {} blocks along {}, and {} is the most",
                dims(launch.grid),
                launch.grid[d],
                ["x", "y", "z"][d],
                MAX_BLOCKS[d]
            ));
        }
        let blocks = launch.grid.iter().map(|d| u64::from(*d));
        let blocks = blocks.fold(1, u64::saturating_mul);
        let blocks = blocks.saturating_mul(launch.peers.len() as u64 + 1);
        if blocks > MAX_RUN {
            return Err(format!(
                "the grid {} has {blocks} blocks, and the simulator runs at most {MAX_RUN}",
                dims(launch.grid)
            ));
        }
        let in_cluster: u64 = launch.cluster.iter().map(|d| u64::from(*d)).product();
        if in_cluster > MAX_BLOCKS_IN_CLUSTER {
            return Err(format!(
                "a cluster of {} has {in_cluster} blocks, and {MAX_BLOCKS_IN_CLUSTER} is the most",
                dims(launch.cluster)
            ));
        }
        if (0..3).any(|d| !launch.grid[d].is_multiple_of(launch.cluster[d])) {
            return Err(format!(
                "the grid {} is not made of whole clusters {}",
                dims(launch.grid),
                dims(launch.cluster)
            ));
        }
        let dynamic: u64 = code
            .shared
            .iter()
            .filter(|a| a.dynamic)
            .map(|a| a.bytes as u64)
            .sum();
        if dynamic > launch.shared_bytes as u64 {
            return Err(format!(
                "it needs {dynamic} bytes of dynamic shared memory, and the launch gives {}",
                launch.shared_bytes
            ));
        }
        let shared = code.static_shared as u64 + launch.shared_bytes as u64;
        let most = code.most_shared;
        if shared > u64::from(most) {
            return Err(format!(
                "a block needs {shared} bytes of shared memory, and {most} is the most{}",
                match code.arch.as_str() {
                    "" => String::new(),
                    arch => format!(" on {arch}"),
                }
            ));
        }
        if !code.axes.is_empty() {
            for d in 0..3u8 {
                for (axis, extent) in [
                    (Axis::Block(d), launch.grid[d as usize]),
                    (Axis::Thread(d), launch.block[d as usize]),
                ] {
                    if extent != 1 && !code.axes.contains(&axis) {
                        let name = axis.name();
                        return Err(format!(
                            "{name} has extent {extent} in the launch, and the kernel has no {name}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
