//! `cargo tirx sim`: runs a kernel on the simulator, with arrays from and to files.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use tirx_build::compile::{authored, run_and_warn};
use tirx_core::arith::fold::eval_int;
use tirx_core::codegen::rust;
use tirx_core::diagnostic::{Level, Message};
use tirx_core::ir::{DType, Expr, ExprKind, IRModule, PrimFunc, Var};
use tirx_sim::host::{self, Argument};
use tirx_sim::{
    Allocation, CompileOptions, Exploration, LaunchOptions, LineCounts, Memory, Observe, Program, Snapshot,
    StandIns, StopAt, TimelineEvent,
};

use crate::command::out;
use crate::input::{Failure, Input, Result, choice, is_lowered, usage, user};
use crate::literal;
use crate::npy::{self, Array};
use crate::observed;
use crate::output::{Output, say};

#[derive(clap::Args, Debug)]
pub(crate) struct Simulate {
    #[command(flatten)]
    input: Input,
    /// A tensor argument, by the name of its parameter or its buffer.
    #[arg(long = "arg", value_name = "NAME=FILE.npy")]
    args: Vec<String>,
    /// A scalar argument.
    #[arg(long = "scalar", value_name = "NAME=VALUE")]
    scalars: Vec<String>,
    /// A tensor to write when the kernel is done; zero-filled at first unless --arg gives it too.
    #[arg(long = "out", value_name = "NAME=FILE.npy")]
    outs: Vec<String>,
    /// Reports signed overflow and shifts by the width or more, undefined in CUDA C++; without it, integers wrap.
    #[arg(long)]
    check_overflow: bool,
    /// Does not look for races: the run is faster.
    #[arg(long)]
    no_race_check: bool,
    /// The most branches and loop iterations of a block; by default TIRX_SIM_STEP_LIMIT, else 2^28.
    #[arg(long, value_name = "STEPS")]
    step_limit: Option<u64>,
    /// The schedule: each number orders warps and asynchronous operations differently; by default TIRX_SIM_SEED, else 0.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Writes a trace for Perfetto: the operations and waits of the warps of a block.
    #[arg(long, value_name = "FILE.json")]
    timeline: Option<PathBuf>,
    /// The block that --timeline shows, by its linear index.
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    timeline_block: u64,
    /// Runs this many schedules, from --seed on, and reports the first that fails.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    schedules: u64,
    /// Runs every order of synchronizing operations (mbarriers, atomics, flags) that can make a difference, and says whether
    /// one fails; at most so many runs.
    #[arg(
        long,
        value_name = "RUNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20000",
        conflicts_with_all = ["schedules", "timeline", "stop"]
    )]
    all_schedules: Option<u64>,
    /// Prints a table of instructions, memory transactions, conflicts of banks and barriers by line.
    #[arg(long)]
    counters: bool,
    /// Prints the values of the kernel's names each time that this line is reached.
    #[arg(long = "break", value_name = "LINE")]
    stop: Option<u32>,
    /// The thread whose values --break prints, `x,y,z`; without it those of whole warps.
    #[arg(long, value_name = "X,Y,Z", requires = "stop")]
    thread: Option<String>,
    /// The block that --break stops in, `x,y,z`.
    #[arg(long, value_name = "X,Y,Z", requires = "stop", default_value = "0,0,0")]
    block: String,
    /// A name to print at --break, or an element of an array: `s[3]`; all without one.
    #[arg(long, value_name = "NAME", requires = "stop")]
    watch: Vec<String>,
}

/// `NAME=VALUE` options by name.
pub(crate) fn named(option: &str, given: &[String]) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for text in given {
        let bad = |reason: String| usage(format_args!("bad {option}: {reason}"));
        let (name, value) = literal::assignment(text).map_err(bad)?;
        if all.insert(name.clone(), value).is_some() {
            return Err(bad(format!("`{name}` is given twice")));
        }
    }
    Ok(all)
}

/// A tensor on the simulator.
struct Bound {
    name: String,
    dtype: DType,
    shape: Vec<i64>,
    memory: Allocation,
    /// The dtype that the file came with; `None` for a tensor that began as zeros.
    descr: Option<String>,
    out: Option<PathBuf>,
}

/// The number that an environment variable gives.
fn variable(name: &str) -> Result<Option<u64>> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let number = text
        .parse()
        .map_err(|_| usage(format_args!("{name} is `{text}`, which is no number")))?;
    Ok(Some(number))
}

/// A kernel with the arguments of the command line.
struct Prepared {
    func: PrimFunc,
    lowered: IRModule,
    names: Vec<String>,
    extents: HashMap<Var, i128>,
    arrays: Vec<Option<Array>>,
    out_files: Vec<Option<PathBuf>>,
    values: Vec<Option<Argument>>,
}

/// What a run leaves.
struct Ran {
    bound: Vec<Option<Bound>>,
    /// What the kernel printed.
    printed: String,
    events: Vec<TimelineEvent>,
    counts: Vec<LineCounts>,
    snapshots: Vec<Snapshot>,
}

pub(crate) fn run(command: &Simulate, output: &Output) -> Result<()> {
    let first = command
        .seed
        .map_or_else(|| variable("TIRX_SIM_SEED"), |v| Ok(Some(v)))?
        .unwrap_or(0);
    let last = first.saturating_add(command.schedules.max(1) - 1);
    let prepared = prepare(command, output)?;
    let mut programs: HashMap<String, Program> = HashMap::new();
    if let Some(most) = command.all_schedules {
        return every_order(command, &prepared, first, most, &mut programs);
    }
    let mut seed = first;
    let ran = loop {
        let ran = once(command, &prepared, seed, &mut programs, None);
        match ran {
            Err(Failure::User(mut messages)) if command.schedules > 1 => {
                let text = format!("schedule {seed} is the first that fails: `--seed {seed}` repeats it");
                if let Some(message) = messages.last_mut() {
                    message.children.push(Message::new(Level::Note, text));
                }
                return Err(Failure::User(messages));
            }
            ran if seed == last => break ran?,
            ran => drop(ran?),
        }
        seed += 1;
    };
    out(&ran.printed)?;
    if command.schedules > 1 {
        say(&format!(
            "{} schedules, {first} to {last}: none fails\n",
            command.schedules
        ));
    }
    if let Some(path) = &command.timeline {
        std::fs::write(path, tirx_sim::trace(&ran.events))
            .map_err(|e| user(format_args!("cannot write {}: {e}", path.display())))?;
    }
    if let Some(line) = command.stop {
        out(&observed::stops(line, &ran.snapshots, &command.watch)?)?;
    }
    if command.counters {
        out(&observed::table(&ran.counts))?;
    }
    write_outs(&ran.bound)
}

/// Runs the kernel in every order that can make a difference.
fn every_order(
    command: &Simulate,
    prepared: &Prepared,
    seed: u64,
    most: u64,
    programs: &mut HashMap<String, Program>,
) -> Result<()> {
    let exploration = Exploration::new(most);
    let mut first: Option<Ran> = None;
    let mut differs = None;
    while exploration.more() {
        let ran = once(command, prepared, seed, programs, Some(&exploration));
        let ran = match ran {
            Err(Failure::User(mut messages)) => {
                let runs = exploration.explored().runs;
                let text = format!("orders that were run before and do not fail: {runs}");
                if let Some(message) = messages.last_mut() {
                    message.children.push(Message::new(Level::Note, text));
                }
                return Err(Failure::User(messages));
            }
            ran => ran?,
        };
        if exploration.left() {
            continue;
        }
        match &first {
            None => first = Some(ran),
            Some(first) => differs = differs.or(first.first_difference(&ran)),
        }
    }
    let explored = exploration.explored();
    if let Some(ran) = &first {
        out(&ran.printed)?;
        if command.counters {
            out(&observed::table(&ran.counts))?;
        }
        write_outs(&ran.bound)?;
    }
    let orders = match explored.runs {
        1 => "1 order".to_string(),
        runs => format!("{runs} orders"),
    };
    let repeated = match explored.redundant {
        0 => String::new(),
        runs => format!(" ({runs} further runs were left, for they repeat others)"),
    };
    let what = format!(
        "{orders} of at most {} synchronizing operations{repeated}",
        explored.longest
    );
    let results = match differs {
        None => "the results are the same in all of them".to_string(),
        Some(name) => format!("the results differ, the first in `{name}`"),
    };
    say(&match explored.cut {
        None => format!(
            "every order was run that can make a difference, for these arguments: {what}; none has a race, a deadlock or another \
             fault, and {results}\n"
        ),
        Some(why) => format!("not every order was run: {why}; {what} were, none fails, and {results}\n"),
    });
    Ok(())
}

impl Ran {
    /// The name of the first tensor that another run has left with other values.
    fn first_difference(&self, other: &Ran) -> Option<String> {
        let contents = |tensor: &Bound| {
            let mut bytes = vec![0; tensor.memory.len()];
            tensor.memory.read(0, &mut bytes);
            bytes
        };
        let pairs = self.bound.iter().flatten().zip(other.bound.iter().flatten());
        let mut differing = pairs.filter(|(a, b)| contents(a) != contents(b));
        differing.next().map(|(tensor, _)| tensor.name.clone())
    }
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
        stop,
    })
}

/// The arguments of the command line, for the kernel that it names.
fn prepare(command: &Simulate, output: &Output) -> Result<Prepared> {
    let mut files = named("--arg", &command.args)?;
    let mut scalars = named("--scalar", &command.scalars)?;
    let mut outs = named("--out", &command.outs)?;

    let settings = command.input.settings()?;
    let loaded = command.input.load()?;
    let module = command.input.build(&loaded, &command.input.pick(&loaded)?)?;
    let func = authored(&module)?.clone();
    let mut warnings = loaded.warnings();
    let lowered = match is_lowered(&module) {
        true => module,
        false => run_and_warn(module, &settings, None, &mut |_| {}, &mut warnings)?,
    };
    output.show(&warnings);

    let names: Vec<String> = func.params.iter().map(|p| shown_name(&func, p)).collect();
    let take = |all: &mut BTreeMap<String, String>, param: &Var, name: &str| {
        all.remove(name).or_else(|| all.remove(param.name()))
    };
    // Given arguments first, then those that follow from them.
    let mut extents: HashMap<Var, i128> = HashMap::new();
    let mut arrays: Vec<Option<Array>> = Vec::new();
    let mut out_files: Vec<Option<PathBuf>> = Vec::new();
    let mut values: Vec<Option<Argument>> = Vec::new();
    for (param, name) in func.params.iter().zip(&names) {
        let buffer = func.buffer_of(param);
        out_files.push(
            take(&mut outs, param, name)
                .filter(|_| buffer.is_some())
                .map(PathBuf::from),
        );
        arrays.push(match (buffer, take(&mut files, param, name)) {
            (Some(buffer), Some(file)) => {
                let mut array = npy::read(file.as_ref()).map_err(user)?;
                let element = buffer.dtype.with_lanes(1);
                // The lanes of a vector are an array's last dimension.
                let lanes = usize::from(buffer.dtype.lanes);
                let fits = lanes == 1 || array.shape.pop() == Some(lanes);
                if !fits || !npy::holds(&array.descr, element) {
                    let wanted = npy::descr(element).unwrap_or("none that NumPy has");
                    let wanted = match lanes {
                        1 => wanted.to_string(),
                        _ => format!("{wanted}, {lanes} in the last dimension"),
                    };
                    return Err(user(format_args!(
                        "`{file}` holds elements of `{}`, tensor `{name}` is of {} (`{wanted}`)",
                        array.descr, buffer.dtype
                    )));
                }
                for (extent, actual) in buffer.shape.iter().zip(&array.shape) {
                    if let Some(var) = extent.as_var() {
                        extents.entry(var.clone()).or_insert(*actual as i128);
                    }
                }
                Some(array)
            }
            (None, Some(_)) => {
                let help = "give it with --scalar";
                return Err(user(format_args!(
                    "`{name}` is a scalar of {}\n  = help: {help}",
                    param.dtype()
                )));
            }
            (_, None) => None,
        });
        values.push(match (buffer, take(&mut scalars, param, name)) {
            (None, Some(text)) => {
                let value = scalar(name, param.dtype(), &text)?;
                if let Argument::Int(v) = value {
                    extents.insert(param.clone(), param.dtype().wrap(v.into()));
                }
                Some(value)
            }
            (None, None) if param.ty().is_tensor_map() => {
                return Err(user(format_args!(
                    "`{name}` is a tensor map, which a program gives: no option can\n  = help: make it in the kernel's host part, \
                     with runtime.cuTensorMapEncodeTiled over a tensor that is a parameter"
                )));
            }
            (None, None) => {
                return Err(user(format_args!(
                    "scalar `{name}` is missing\n  = help: give --scalar {name}=VALUE"
                )));
            }
            (Some(_), Some(_)) => {
                return Err(user(format_args!(
                    "`{name}` is a tensor\n  = help: give it with --arg {name}=FILE.npy"
                )));
            }
            (Some(_), None) => None,
        });
    }
    for (option, left) in [("--arg", &files), ("--scalar", &scalars), ("--out", &outs)] {
        if let Some(unknown) = left.keys().next() {
            return Err(user(format_args!(
                "{option} {unknown}: the kernel has no such parameter\n  = help: {}",
                choice(
                    unknown,
                    &names.iter().map(String::as_str).collect::<Vec<_>>(),
                    "its parameters are"
                )
            )));
        }
    }

    Ok(Prepared {
        func,
        lowered,
        names,
        extents,
        arrays,
        out_files,
        values,
    })
}

/// One run, from fresh memory.
fn once(
    command: &Simulate,
    prepared: &Prepared,
    seed: u64,
    programs: &mut HashMap<String, Program>,
    exploration: Option<&Exploration>,
) -> Result<Ran> {
    let Prepared {
        func,
        lowered,
        names,
        extents,
        arrays,
        out_files,
        values,
    } = prepared;
    let step_limit = command
        .step_limit
        .map_or_else(|| variable("TIRX_SIM_STEP_LIMIT"), |v| Ok(Some(v)))?;
    let memory = Memory::new();
    let mut bound: Vec<Option<Bound>> = Vec::new();
    for ((param, name), (array, out)) in func.params.iter().zip(names).zip(arrays.iter().zip(out_files)) {
        let Some(buffer) = func.buffer_of(param) else {
            bound.push(None);
            continue;
        };
        let element = buffer.dtype.bytes();
        let (shape, bytes) = match array {
            Some(array) => (
                array.shape.iter().map(|e| *e as i64).collect(),
                array.bytes.clone(),
            ),
            None if out.is_some() => {
                let shape = inferred_shape(name, &buffer.shape, extents)?;
                let size = shape
                    .iter()
                    .try_fold(element, |size, e| size.checked_mul(usize::try_from(*e).ok()?));
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
        let allocation = memory.alloc(bytes.len());
        allocation.write(0, &bytes);
        bound.push(Some(Bound {
            name: name.clone(),
            dtype: buffer.dtype,
            shape,
            memory: allocation,
            descr: array.as_ref().map(|array| array.descr.clone()),
            out: out.clone(),
        }));
    }
    let arguments: Vec<Argument> = bound
        .iter()
        .zip(values)
        .filter_map(|(tensor, value)| match tensor {
            Some(tensor) => Some(Argument::Tensor {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                address: tensor.memory.address(),
                byte_offset: 0,
            }),
            None => value.clone(),
        })
        .collect();

    let stand_ins = StandIns::default();
    let options = CompileOptions {
        check_overflow: command.check_overflow,
    };
    let mut fault: Option<Failure> = None;
    let mut printed = String::new();
    let (mut events, mut counts, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    let result = host::run(lowered, names, &arguments, &mut |launch| {
        if !programs.contains_key(&launch.symbol) {
            let program = Program::compile_with(lowered, &launch.symbol, options).map_err(|errors| {
                fault = Some(Failure::User(errors.messages(&lowered.sources)));
                String::new()
            })?;
            programs.insert(launch.symbol.clone(), program);
        }
        let program = &programs[&launch.symbol];
        let (args, _maps) = launch.arguments_in(&memory);
        let config = tirx_sim::Launch {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            shared_bytes: launch.shared_bytes,
            args: &args,
        };
        let observe = observe(command, launch.grid, launch.block).map_err(|failure| {
            fault = Some(failure);
            String::new()
        })?;
        let options = LaunchOptions {
            observe,
            check_races: !command.no_race_check,
            timeline: command.timeline.as_ref().map(|_| command.timeline_block),
            step_limit: step_limit.or(LaunchOptions::default().step_limit),
            seed,
            programmatic: launch.programmatic,
            ..LaunchOptions::default()
        };
        let launched = match exploration {
            None => program.launch_with(&memory, &config, &stand_ins, &options),
            Some(exploration) => {
                program.launch_exploring(&memory, &config, &stand_ins, &options, exploration)
            }
        };
        launched
            .map(|stats| {
                printed.push_str(&stats.output);
                events.extend(stats.timeline);
                counts.extend(stats.counts);
                snapshots.extend(stats.snapshots);
            })
            .map_err(|error| {
                fault = Some(Failure::User(vec![error.to_diagnostic()]));
                String::new()
            })
    });
    match (result, fault) {
        (_, Some(fault)) => return Err(fault),
        (Err(message), None) => {
            // An error in an expression that no launcher can compute is reported at its line.
            rust::launcher(func, lowered).map_err(|d| Failure::User(d.messages(&lowered.sources)))?;
            let kernel = func.global_symbol().unwrap_or("main");
            return Err(user(format_args!("kernel `{kernel}`: {message}")));
        }
        (Ok(()), None) => {}
    }
    Ok(Ran {
        bound,
        printed,
        events,
        counts,
        snapshots,
    })
}

/// Writes the tensors that are asked for.
fn write_outs(bound: &[Option<Bound>]) -> Result<()> {
    for tensor in bound.iter().flatten() {
        let Some(path) = &tensor.out else { continue };
        let mut bytes = vec![0; tensor.memory.len()];
        tensor.memory.read(0, &mut bytes);
        let array = Array {
            descr: tensor.descr.clone().unwrap_or_else(|| {
                let own = npy::descr(tensor.dtype.with_lanes(1));
                own.unwrap_or("|u1").to_string()
            }),
            shape: tensor
                .shape
                .iter()
                .map(|e| *e as usize)
                .chain(Some(usize::from(tensor.dtype.lanes)).filter(|n| *n > 1))
                .collect(),
            bytes,
        };
        npy::write(path, &array).map_err(user)?;
    }
    Ok(())
}

/// The name of a parameter in messages: its buffer's name, otherwise its own.
pub(crate) fn shown_name(func: &PrimFunc, param: &Var) -> String {
    func.buffer_of(param)
        .map_or_else(|| param.name().to_string(), |buffer| buffer.name.to_string())
}

pub(crate) fn scalar(name: &str, dtype: DType, text: &str) -> Result<Argument> {
    use tirx_core::script::ConstValue;
    let bad = || user(format_args!("`{text}` is no {dtype}, which scalar `{name}` is"));
    if dtype.is_integer()
        && let Some(v) = literal::integer(text)
    {
        return match (dtype.min_int(), dtype.max_int()) {
            (Some(min), Some(max)) if (min..=max).contains(&v) => Ok(Argument::Int(v as i64)),
            (Some(min), Some(max)) => Err(user(format_args!(
                "`{text}` does not fit scalar `{name}`, a {dtype}\n  = help: a {dtype} is from {min} to {max}"
            ))),
            _ => Err(bad()),
        };
    }
    let value = literal::value(text).map_err(|_| bad())?;
    match value {
        ConstValue::Bool(v) if dtype.is_bool() => Ok(Argument::Bool(v)),
        ConstValue::Int(v) if dtype.is_bool() && (0..=1).contains(&v) => Ok(Argument::Bool(v == 1)),
        ConstValue::Int(v) if dtype.is_floating() => Ok(Argument::Float(v as f64)),
        ConstValue::Float(v) if dtype.is_floating() => Ok(Argument::Float(v)),
        ConstValue::Str(word) if dtype.is_floating() => match word.as_str() {
            "inf" => Ok(Argument::Float(f64::INFINITY)),
            "nan" => Ok(Argument::Float(f64::NAN)),
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

/// The shape of an output, derived from the other arguments.
pub(crate) fn inferred_shape(name: &str, shape: &[Expr], extents: &HashMap<Var, i128>) -> Result<Vec<i64>> {
    shape
        .iter()
        .map(|extent| {
            evaluate(extent, extents)
                .and_then(|v| i64::try_from(v).ok())
                .filter(|v| *v >= 0)
                .ok_or_else(|| {
                    user(format_args!(
                        "the shape of `{name}` does not follow from the arrays given: extent `{}` is not known\n  \
                         = help: give --arg {name}=FILE.npy too",
                        tirx_core::script::print_expr(extent)
                    ))
                })
        })
        .collect()
}

fn evaluate(expr: &Expr, extents: &HashMap<Var, i128>) -> Option<i128> {
    match &expr.kind {
        ExprKind::Int(v) => Some(*v),
        ExprKind::Var(var) => extents.get(var).copied(),
        ExprKind::Cast(inner) => evaluate(inner, extents).map(|v| expr.dtype.wrap(v)),
        ExprKind::Binary(op, a, b) => eval_int(*op, a.dtype, evaluate(a, extents)?, evaluate(b, extents)?),
        _ => None,
    }
}
