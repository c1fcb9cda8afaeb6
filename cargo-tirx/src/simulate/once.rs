//! One run of a kernel, from fresh memory.

use std::collections::HashMap;
use std::path::PathBuf;

use tirx_core::codegen::rust;
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::DType;
use tirx_sim::host::{self, Argument};
use tirx_sim::{
    Allocation, CompileOptions, ContinueAfter, Counts, Excusable, Exploration, LaunchOptions, LineAccuracy,
    LineCounts, LineCoverage, Memory, Observe, Program, Snapshot, StandIns, StopAt, Symmetric, TimelineEvent,
    Work,
};

use tirx_services::counters::merged;

use super::Simulate;
use super::arguments::{AddressOf, Prepared, RankArguments, inferred_shape};
use crate::failure::{Failure, Result, usage, user};
use crate::npy::{self, Array};
use crate::tensor_map::{self, Source};

/// A tensor on the simulator.
pub(super) struct Bound {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    /// Bytes of the tensor; the memory may have more.
    bytes: usize,
    memory: Allocation,
    /// The multicast window, on several ranks.
    window: Option<u64>,
    /// The dtype that the file came with; `None` for a tensor that began as zeros.
    descr: Option<String>,
    out: Option<PathBuf>,
}

/// What a run leaves, also one that ends in a fault.
pub(super) struct Ran {
    /// The fault that ended it; the rest is what was there until then.
    pub(super) fault: Option<Vec<Message>>,
    pub(super) bound: Vec<Option<Bound>>,
    /// What the kernel printed.
    pub(super) printed: String,
    pub(super) events: Vec<TimelineEvent>,
    pub(super) counts: Vec<LineCounts>,
    /// The work of each launch, for a cost model.
    pub(super) work: Vec<(Work, Counts)>,
    /// The lines, branches and barriers that each launch has exercised.
    pub(super) coverage: Vec<LineCoverage>,
    /// Errors of float values by line, of each launch.
    pub(super) accuracy: Vec<LineAccuracy>,
    pub(super) snapshots: Vec<Snapshot>,
    /// What the run went on after.
    pub(super) findings: Vec<Message>,
}

/// One run, from fresh memory.
///
/// # Errors
/// Why there is no run: arguments that do not fit, a kernel that the simulator cannot compile.
pub(super) fn once(
    command: &Simulate,
    prepared: &Prepared,
    seed: u64,
    programs: &mut HashMap<String, Program>,
    exploration: Option<&Exploration>,
) -> Result<Ran> {
    let Prepared {
        func, lowered, names, ..
    } = prepared;
    let step_limit = command
        .step_limit
        .map_or_else(|| variable("TIRX_SIM_STEP_LIMIT"), |v| Ok(Some(v)))?;
    let memory = Memory::new();
    let bound = place(prepared, &memory)?;
    let stand_ins = StandIns::default();
    let options = CompileOptions {
        check_overflow: command.check_overflow,
    };
    let mut refused: Option<Failure> = None;
    let mut fault = None;
    let mut printed = String::new();
    let (mut events, mut counts, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    let (mut accuracy, mut coverage) = (Vec::new(), Vec::new());
    let mut work = Vec::new();
    let mut findings = Vec::new();
    let mut run = |launches: &[host::Launch]| -> std::result::Result<(), String> {
        let launch = host::same_shape(launches)?;
        if !programs.contains_key(&launch.symbol) {
            let program = Program::compile_with(lowered, &launch.symbol, options).map_err(|errors| {
                refused = Some(Failure::User(errors.messages(&lowered.sources)));
                String::new()
            })?;
            programs.insert(launch.symbol.clone(), program);
        }
        let program = &programs[&launch.symbol];
        let (mut args, mut kept) = (Vec::new(), Vec::new());
        for launch in launches {
            let (own, maps) = launch.arguments_in(&memory);
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
        let after: Vec<Excusable> = command.continue_after.iter().map(|kind| (*kind).into()).collect();
        let observe = observe(command, launch.grid, launch.block).map_err(|failure| {
            refused = Some(failure);
            String::new()
        })?;
        let options = LaunchOptions {
            observe,
            accuracy: command.accuracy,
            check_races: !command.no_race_check,
            timeline: command.timeline.as_ref().map(|_| command.timeline_block),
            step_limit: step_limit.or(LaunchOptions::default().step_limit),
            seed,
            continue_after: ContinueAfter::from_findings(&after),
            programmatic: launch.programmatic,
            ..LaunchOptions::default()
        };
        let launched = match exploration {
            None => program.launch_with(&memory, &config, &stand_ins, &options),
            Some(exploration) => {
                program.launch_exploring(&memory, &config, &stand_ins, &options, exploration)
            }
        };
        let (stats, ended) = match launched {
            Ok(stats) => (stats, Ok(())),
            Err(error) => {
                fault = Some(vec![error.to_diagnostic()]);
                (error.stats.clone(), Err(String::new()))
            }
        };
        printed.push_str(&stats.output);
        events.extend(stats.timeline);
        if let Some(done) = stats.work {
            work.push((done, merged(&stats.counts).1));
        }
        counts.extend(stats.counts);
        accuracy.extend(stats.accuracy);
        LineCoverage::merge(&mut coverage, stats.coverage);
        snapshots.extend(stats.snapshots);
        findings.extend(stats.findings.iter().map(|finding| Message {
            level: Level::Warning,
            ..finding.to_diagnostic()
        }));
        ended
    };
    let result = match bound.as_slice() {
        [one] => {
            let arguments = call(prepared, 0, &bound, one)?;
            host::run(lowered, names, &arguments, &mut |launch| {
                run(std::slice::from_ref(launch))
            })
        }
        _ => {
            let mut launches = Vec::new();
            let mut failed = None;
            for (rank, own) in bound.iter().enumerate() {
                let arguments = call(prepared, rank, &bound, own)?;
                let mut all = Vec::new();
                let collected = host::run(lowered, names, &arguments, &mut |launch| {
                    all.push(launch.clone());
                    Ok(())
                });
                failed = failed.or(collected.err().map(|message| format!("rank {rank}: {message}")));
                launches.push(all);
            }
            match failed {
                Some(message) => Err(message),
                None => {
                    host::together(launches).and_then(|all| all.iter().try_for_each(|launches| run(launches)))
                }
            }
        }
    };
    match (result, refused) {
        (_, Some(refused)) => return Err(refused),
        (Err(_), None) if fault.is_some() => {}
        (Err(message), None) => {
            // An error in an expression that no launcher can compute is reported at its line.
            rust::launcher(func, lowered).map_err(|d| Failure::User(d.messages(&lowered.sources)))?;
            let kernel = func.global_symbol().unwrap_or("main");
            return Err(user(format_args!("kernel `{kernel}`: {message}")));
        }
        (Ok(()), None) => {}
    }
    Ok(Ran {
        fault,
        bound: bound.into_iter().flatten().collect(),
        printed,
        events,
        counts,
        coverage,
        work,
        accuracy,
        snapshots,
        findings,
    })
}

/// The arguments of a rank's call with its tensors, `bound`; `all` are those of every rank.
fn call(
    prepared: &Prepared,
    rank: usize,
    all: &[Vec<Option<Bound>>],
    bound: &[Option<Bound>],
) -> Result<Vec<Argument>> {
    let own = &prepared.ranks[rank];
    let mut arguments = Vec::new();
    for (number, (tensor, map)) in bound.iter().zip(&own.maps).enumerate() {
        if let Some(AddressOf::Window(of)) = &own.addresses[number] {
            arguments.push(Argument::Int(named(&all[rank], of)?.window.unwrap_or(0) as i64));
            continue;
        }
        let Some(map) = map else {
            let tensor = tensor.as_ref().map(|tensor| Argument::Tensor {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                address: tensor.memory.address(),
                byte_offset: 0,
            });
            arguments.extend(tensor.or_else(|| own.values[number].clone()));
            continue;
        };
        let name = &prepared.names[number];
        let of_parameter = match &map.source {
            Source::Parameter(other) => {
                let known = bound.iter().flatten().find(|tensor| tensor.name == *other);
                Some(known.ok_or_else(|| {
                    user(format_args!(
                        "tensor map `{name}`: `{other}` is no tensor of the kernel\n  = help: a file ends with .npy, and \
                         new memory is float16[64x128]"
                    ))
                })?)
            }
            _ => None,
        };
        // One that is of no parameter has its own tensor.
        let Some(memory) = of_parameter.or(tensor.as_ref()) else {
            continue;
        };
        let shape: Vec<usize> = memory.shape.iter().map(|extent| *extent as usize).collect();
        let of = tensor_map::Memory {
            address: memory.memory.address(),
            bytes: memory.bytes,
            shape: &shape,
            descr: memory
                .descr
                .as_deref()
                .or(npy::descr(memory.dtype))
                .unwrap_or("|u1"),
            dtype: of_parameter.map(|tensor| tensor.dtype),
        };
        arguments.push(Argument::TensorMap(map.encode(name, &of)?));
    }
    Ok(arguments)
}

/// The tensor of a rank with a name.
fn named<'a>(bound: &'a [Option<Bound>], name: &str) -> Result<&'a Bound> {
    let found = bound.iter().flatten().find(|tensor| tensor.name == name);
    found.ok_or_else(|| user(format_args!("`{name}` is no tensor of the kernel")))
}

/// A tensor of a run that is in no memory yet.
struct Unplaced {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    bytes: Vec<u8>,
    descr: Option<String>,
    out: Option<PathBuf>,
}

/// The tensors of a run in memory, by rank: arrays from files, and zeros for those that are written alone. Those of several ranks
/// are symmetric.
fn place(prepared: &Prepared, memory: &Memory) -> Result<Vec<Vec<Option<Bound>>>> {
    let ranks = prepared.ranks.len();
    let mut unplaced: Vec<_> = Vec::new();
    for rank in &prepared.ranks {
        unplaced.push(bind(prepared, rank)?.into_iter());
    }
    let mut all: Vec<Vec<Option<Bound>>> = (0..ranks).map(|_| Vec::new()).collect();
    for _ in &prepared.names {
        let parts: Vec<Option<Unplaced>> = unplaced.iter_mut().filter_map(Iterator::next).collect();
        let most = parts.iter().flatten().map(|part| part.bytes.len()).max();
        let symmetric = most
            .filter(|_| ranks > 1)
            .map(|most| memory.alloc_symmetric(ranks as u32, most));
        for (rank, part) in parts.into_iter().enumerate() {
            all[rank].push(part.map(|part| {
                let own = match &symmetric {
                    Some(all) => all.part(rank as u32).clone(),
                    None => memory.alloc(part.bytes.len()),
                };
                own.write(0, &part.bytes);
                Bound {
                    name: part.name,
                    dtype: part.dtype,
                    shape: part.shape,
                    bytes: part.bytes.len(),
                    memory: own,
                    window: symmetric.as_ref().map(Symmetric::window),
                    descr: part.descr,
                    out: part.out,
                }
            }));
        }
    }
    for (rank, own) in prepared.ranks.iter().enumerate() {
        for (number, address) in own.addresses.iter().enumerate() {
            let Some(AddressOf::Peers(of)) = address else {
                continue;
            };
            let addresses = all
                .iter()
                .map(|bound| named(bound, of).map(|tensor| tensor.memory.address()));
            let bytes: Vec<u8> = addresses
                .collect::<Result<Vec<u64>>>()?
                .into_iter()
                .flat_map(u64::to_le_bytes)
                .collect();
            if let Some(tensor) = &all[rank][number] {
                tensor.memory.write(0, &bytes);
            }
        }
    }
    Ok(all)
}

/// The tensors of a rank.
fn bind(prepared: &Prepared, rank: &RankArguments) -> Result<Vec<Option<Unplaced>>> {
    let Prepared { func, names, .. } = prepared;
    let mut bound: Vec<Option<Unplaced>> = Vec::new();
    for (number, (param, name)) in func.params.iter().zip(names).enumerate() {
        let (array, out) = (&rank.arrays[number], &rank.out_files[number]);
        let unplaced = |dtype: DType, shape: Vec<i64>, bytes: Vec<u8>| Unplaced {
            name: name.clone(),
            dtype,
            shape,
            bytes,
            descr: array.as_ref().map(|array| array.descr.clone()),
            out: out.clone(),
        };
        match &rank.addresses[number] {
            Some(AddressOf::Peers(_)) => {
                let ranks = prepared.ranks.len();
                bound.push(Some(unplaced(
                    DType::UINT64,
                    vec![ranks as i64],
                    vec![0; ranks * 8],
                )));
                continue;
            }
            Some(AddressOf::Window(_)) => {
                bound.push(None);
                continue;
            }
            None => {}
        }
        let Some(buffer) = func.buffer_of(param) else {
            // The tensor of a tensor map.
            bound.push(array.as_ref().map(|array| {
                let shape = array.shape.iter().map(|extent| *extent as i64).collect();
                unplaced(DType::UINT8, shape, array.bytes.clone())
            }));
            continue;
        };
        let (shape, bytes) = match array {
            Some(array) => (
                array.shape.iter().map(|e| *e as i64).collect(),
                array.bytes.clone(),
            ),
            None if out.is_some() => {
                let shape = inferred_shape(name, &buffer.shape, &rank.extents)?;
                let count = shape
                    .iter()
                    .try_fold(1_usize, |count, e| count.checked_mul(usize::try_from(*e).ok()?));
                let size = count.and_then(|count| buffer.dtype.bytes_of(count));
                // An output of a terabyte is considered a mistake.
                let size = size.filter(|size| *size <= 1 << 34);
                let size =
                    size.ok_or_else(|| user(format_args!("`{name}` of shape {shape:?} is too large")))?;
                (shape, vec![0; size])
            }
            None => {
                return Err(user(format_args!(
                    "tensor `{name}` is missing\n  = help: give --arg {name}=FILE.npy, or --out {name}=FILE.npy to start \
                     from zeros"
                )));
            }
        };
        bound.push(Some(unplaced(buffer.dtype, shape, bytes)));
    }
    Ok(bound)
}

/// The number that an environment variable gives.
pub(super) fn variable(name: &str) -> Result<Option<u64>> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text
        .parse()
        .map_err(|_| usage(format_args!("{name} is `{text}`, which is no number")))?;
    Ok(Some(number))
}

/// What is observed of a launch.
fn observe(command: &Simulate, grid: [u32; 3], block: [u32; 3]) -> Result<Observe> {
    let stop = match command.stop {
        None => None,
        Some(line) => {
            let thread = command
                .thread
                .as_deref()
                .map(|text| index("--thread", text))
                .transpose()?;
            let thread = thread
                .map(|thread| linear("--thread", thread, block))
                .transpose()?;
            Some(StopAt {
                line,
                block: linear("--block", index("--block", &command.block)?, grid)?,
                thread: thread.map(|thread| thread as u32),
            })
        }
    };
    Ok(Observe {
        counters: command.counters,
        coverage: command.coverage,
        work: command.cost.is_some(),
        stop,
    })
}

/// `x,y,z`, or fewer of them.
fn index(option: &str, text: &str) -> Result<[u32; 3]> {
    let parts: Vec<Option<u32>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_slice() {
        [Some(x)] => Ok([*x, 0, 0]),
        [Some(x), Some(y)] => Ok([*x, *y, 0]),
        [Some(x), Some(y), Some(z)] => Ok([*x, *y, *z]),
        _ => Err(usage(format_args!(
            "bad {option}: `{text}` is no index like 3,0,0"
        ))),
    }
}

/// The linear number of an index.
fn linear(option: &str, [x, y, z]: [u32; 3], extents: [u32; 3]) -> Result<u64> {
    let [ex, ey, ez] = extents.map(|extent| extent.max(1));
    if x >= ex || y >= ey || z >= ez {
        return Err(user(format_args!(
            "{option} {x},{y},{z} is none of the launch, which has {ex} x {ey} x {ez}"
        )));
    }
    Ok(u64::from(x) + u64::from(ex) * (u64::from(y) + u64::from(ey) * u64::from(z)))
}

impl Ran {
    /// The name of the first tensor that another run has left with other values.
    pub(super) fn first_difference(&self, other: &Ran) -> Option<String> {
        let contents = |tensor: &Bound| {
            let mut bytes = vec![0; tensor.bytes];
            tensor.memory.read(0, &mut bytes);
            bytes
        };
        let pairs = self.bound.iter().flatten().zip(other.bound.iter().flatten());
        let mut differing = pairs.filter(|(a, b)| contents(a) != contents(b));
        differing.next().map(|(tensor, _)| tensor.name.clone())
    }
}

/// Writes the tensors that are asked for.
pub(super) fn write_outs(bound: &[Option<Bound>]) -> Result<()> {
    for tensor in bound.iter().flatten() {
        let Some(path) = &tensor.out else { continue };
        let mut bytes = vec![0; tensor.bytes];
        tensor.memory.read(0, &mut bytes);
        let shape = tensor
            .shape
            .iter()
            .map(|e| *e as usize)
            .chain(Some(usize::from(tensor.dtype.lanes)).filter(|n| *n > 1));
        let shape: Vec<usize> = shape.collect();
        if tensor.dtype.bits == 4 {
            bytes = npy::unpacked(&bytes, shape.iter().product(), tensor.dtype.is_int());
        }
        let array = Array {
            descr: tensor.descr.clone().unwrap_or_else(|| {
                let own = npy::descr(tensor.dtype.with_lanes(1));
                own.unwrap_or("|u1").to_string()
            }),
            shape,
            bytes,
        };
        npy::write(path, &array).map_err(user)?;
    }
    Ok(())
}
