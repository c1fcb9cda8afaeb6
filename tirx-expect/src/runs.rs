//! Runs the kernels of a filetest, on the simulator or another machine, and compares with values computed elsewhere.
//!
//! `kernels/NAME.sim.txt` says for each kernel what it is called with and what it must leave; `TIRX_BLESS` does not
//! write it, for its values come from other programs (Python's `math`, numpy, or by hand).
//!
//! ```text
//! # a remark
//! kernel exp
//! A float32[4] 0 1 -1 0x7f800000
//! B float32[4] 0 -> 1 2.7182817 0.36787945 inf +- 1e-6
//! s = 3.0
//!
//! kernel divides
//! A int32[1] 0
//! fault: division by zero
//! ```
//!
//! Arguments have the names of the kernel's parameters ([`Run::bound_to`]): a tensor with dtype, shape (`[2x16]`) and elements, a scalar after `=`.
//! Fewer values than elements are repeated. `0x` gives the bits of an element; two float4 share a byte, the first in the
//! low half. What follows `->` must be there after
//! the run, to a relative difference of what follows `+-` (none: the same bits, or both NaN); without it the tensor
//! must be as before. `fault:` is a part of the message that the run ends with. `seeds: 8` runs it by eight schedules of the
//! simulator: the values are those of each, the fault that of one at least.

use std::collections::BTreeMap;
use std::sync::Arc;

use tirx_core::ir::{DType, IRModule, Minifloat, PrimFunc, bf16, f16};
use tirx_core::script::ConstValue;
use tirx_core::suggest;
use tirx_sim::{Exploration, Explored, LaunchOptions, host};

use crate::machine::{self, Machine, Simulator};

/// One call of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The kernel.
    pub kernel: String,
    /// The line of the kernel file that describes it, from 1; 0 where it is not described there.
    pub line: usize,
    /// Values of the kernel's compile-time parameters.
    pub values: BTreeMap<String, ConstValue>,
    /// The GPUs that it is run as; without one that of the file.
    pub archs: Vec<String>,
    names: Vec<String>,
    arguments: Vec<Argument>,
    /// The lines of the kernel file that describe the arguments, from 1; empty where they are not described there.
    pub(crate) lines: Vec<usize>,
    fault: Option<String>,
    /// Schedules of the simulator that it is run by, from 0 on; none are said for one.
    seeds: Option<u64>,
}

#[derive(Clone, Debug)]
enum Argument {
    Tensor(Tensor),
    Scalar(host::Argument),
}

/// A tensor of a run.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Its bytes before the run.
    pub before: Vec<u8>,
    /// Its bytes after the run, unless it must be as before.
    pub after: Option<Vec<u8>>,
    tolerance: f64,
}

/// Most elements of a tensor: more would not fit into a text.
const MOST: usize = 1 << 24;

/// Reads the calls of a text.
///
/// # Errors
/// What is wrong with a line.
pub fn read(text: &str) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let failed = |what: String| format!("line {}: {what}", number + 1);
        if let Some(kernel) = line.strip_prefix("kernel ") {
            runs.push(Run {
                kernel: kernel.into(),
                ..Run::default()
            });
            continue;
        }
        let run = runs.last_mut().ok_or(failed("no kernel yet".into()))?;
        if let Some(fault) = line.strip_prefix("fault:") {
            run.fault = Some(fault.trim().into());
        } else if let Some(seeds) = line.strip_prefix("seeds:") {
            let seeds = seeds.trim().parse();
            run.seeds = Some(seeds.map_err(|_| failed(format!("no number: {line}")))?);
        } else if let Some((name, value)) = line.split_once(" = ") {
            run.names.push(name.into());
            run.arguments
                .push(Argument::Scalar(scalar(value).map_err(failed)?));
        } else {
            let (name, rest) = line.split_once(' ').ok_or(failed("a name and a dtype".into()))?;
            run.names.push(name.into());
            run.arguments
                .push(Argument::Tensor(tensor(rest).map_err(failed)?));
        }
    }
    Ok(runs)
}

fn scalar(text: &str) -> Result<host::Argument, String> {
    Ok(match text {
        "True" | "False" => host::Argument::Bool(text == "True"),
        // A pointer that the kernel does not use.
        "None" => host::Argument::Null,
        _ if text.contains(['.', 'e', 'n']) => {
            host::Argument::Float(text.parse().map_err(|_| format!("no number: {text}"))?)
        }
        _ => host::Argument::Int(text.parse().map_err(|_| format!("no integer: {text}"))?),
    })
}

fn tensor(text: &str) -> Result<Tensor, String> {
    let (head, values) = text.split_once(' ').unwrap_or((text, "0"));
    let (dtype, shape) = head
        .trim_end_matches(']')
        .split_once('[')
        .ok_or("a dtype with a shape")?;
    let dtype: DType = dtype.parse().map_err(|_| format!("no dtype: {dtype}"))?;
    let shape: Vec<i64> = shape
        .split('x')
        .map(|extent| extent.parse().map_err(|_| format!("no extent: {extent}")))
        .collect::<Result<_, _>>()?;
    let count = shape.iter().try_fold(usize::from(dtype.lanes), |count, extent| {
        count.checked_mul(usize::try_from(*extent).ok()?)
    });
    let count = count
        .filter(|count| *count <= MOST)
        .ok_or(format!("no shape: {head}"))?;
    let (before, after) = match values.split_once("->") {
        Some((before, after)) => (before, Some(after)),
        None => (values, None),
    };
    let (after, tolerance) = match after.map(|after| after.split_once("+-").unwrap_or((after, "0"))) {
        None => (None, "0"),
        Some((after, tolerance)) => (Some(after), tolerance.trim()),
    };
    Ok(Tensor {
        dtype,
        shape,
        before: elements(dtype, before, count)?,
        after: after.map(|after| elements(dtype, after, count)).transpose()?,
        tolerance: tolerance
            .parse()
            .map_err(|_| format!("no tolerance: {tolerance}"))?,
    })
}

/// The bytes of `count` scalars, from a repeated list of values.
fn elements(dtype: DType, values: &str, count: usize) -> Result<Vec<u8>, String> {
    let scalars: Vec<Vec<u8>> = values
        .split_whitespace()
        .map(|value| element(dtype, value).ok_or(format!("no {dtype}: {value}")))
        .collect::<Result<_, _>>()?;
    if scalars.is_empty() || !count.is_multiple_of(scalars.len()) {
        return Err(format!("{} values for {count} elements", scalars.len()));
    }
    let bytes = scalars.iter().cycle().take(count).flatten().copied();
    if dtype.is_float4() {
        let codes: Vec<u8> = bytes.collect();
        let pairs = codes.chunks(2);
        return Ok(pairs.map(|p| p[0] & 15 | p.get(1).unwrap_or(&0) << 4).collect());
    }
    Ok(bytes.collect())
}

/// The bytes of each scalar by itself.
fn apart(dtype: DType, bytes: &[u8]) -> Vec<Vec<u8>> {
    if dtype.is_float4() {
        let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        return halves.map(|code| vec![code]).collect();
    }
    bytes
        .chunks(usize::from(dtype.bits).div_ceil(8))
        .map(<[u8]>::to_vec)
        .collect()
}

fn element(dtype: DType, value: &str) -> Option<Vec<u8>> {
    let bytes = usize::from(dtype.bits).div_ceil(8);
    if let Some(bits) = value.strip_prefix("0x") {
        let bits = u64::from_str_radix(bits, 16).ok()?;
        return Some(bits.to_le_bytes()[..bytes].to_vec());
    }
    if dtype.is_bool() {
        return Some(vec![u8::from(value.parse::<i64>().ok()? != 0)]);
    }
    if dtype.is_floating() {
        let value: f64 = value.parse().ok()?;
        return match (dtype.bits, dtype.is_bfloat16()) {
            (16, true) => Some(bf16::from_f64(value).to_le_bytes().to_vec()),
            (16, false) => Some(f16::from_f64(value).to_le_bytes().to_vec()),
            (32, _) => Some((value as f32).to_le_bytes().to_vec()),
            (64, _) => Some(value.to_le_bytes().to_vec()),
            _ => Some(vec![Minifloat::of(dtype.code)?.encode(value as f32) as u8]),
        };
    }
    let value: i128 = value.parse().ok()?;
    Some(value.to_le_bytes()[..bytes].to_vec())
}

/// A scalar of a dtype as a number, where Rust or `half` knows the format.
fn number(dtype: DType, bytes: &[u8]) -> Option<f64> {
    if !dtype.is_floating() {
        return None;
    }
    match (bytes, dtype.is_bfloat16()) {
        ([a, b], true) => Some(bf16::from_le_bytes([*a, *b]).to_f64()),
        ([a, b], false) => Some(f16::from_le_bytes([*a, *b]).to_f64()),
        ([a, b, c, d], _) => Some(f32::from_le_bytes([*a, *b, *c, *d]).into()),
        _ => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
    }
}

fn shown(dtype: DType, bytes: &[u8]) -> String {
    match number(dtype, bytes) {
        Some(value) => format!("{value:?}"),
        None if dtype.is_integer() && bytes.len() <= 8 => {
            let bits = bytes
                .iter()
                .rev()
                .fold(0i128, |bits, byte| bits << 8 | i128::from(*byte));
            dtype.with_lanes(1).wrap(bits).to_string()
        }
        None => {
            let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            format!("0x{digits}")
        }
    }
}

impl Tensor {
    /// The first `most` elements of such a tensor as text.
    pub fn elements(&self, bytes: &[u8], most: usize) -> Vec<String> {
        let width = usize::from(self.dtype.bits).div_ceil(8);
        let bytes = &bytes[..bytes.len().min(most * width)];
        let elements = apart(self.dtype, bytes).into_iter().take(most);
        elements.map(|element| shown(self.dtype, &element)).collect()
    }

    /// The first element that is not what it must be.
    fn compare(&self, name: &str, found: &[u8]) -> Result<(), String> {
        let expected = apart(self.dtype, self.after.as_ref().unwrap_or(&self.before));
        let pairs = expected.into_iter().zip(apart(self.dtype, found));
        for (at, (want, have)) in pairs.enumerate() {
            let (want, have) = (&want[..], &have[..]);
            let near = match (number(self.dtype, want), number(self.dtype, have)) {
                (Some(a), Some(b)) => {
                    a.is_nan() && b.is_nan() || a == b || (a - b).abs() <= self.tolerance * a.abs().max(1e-30)
                }
                _ => false,
            };
            let signs = self.tolerance > 0.0 || want == have || number(self.dtype, want) != Some(0.0);
            if want != have && !(near && signs) {
                return Err(format!(
                    "element {at} of {name}: expected {}, found {}",
                    shown(self.dtype, want),
                    shown(self.dtype, have)
                ));
            }
        }
        Ok(())
    }
}

/// A run that was made.
pub struct Outcome {
    /// The schedule of the simulator.
    pub schedule: u64,
    /// The bytes of the tensors after the run; `None` if it ended in a fault.
    pub contents: Option<Vec<Vec<u8>>>,
    /// The first difference from the description.
    pub verdict: Result<(), String>,
    /// The simulator, which has the launches and the fault.
    pub machine: Simulator,
}

/// A run that is not as described.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The schedule of the simulator.
    pub schedule: u64,
    /// What is not as described.
    pub message: String,
}

impl Run {
    /// The GPUs that it is run as, where it names none `other` alone.
    pub fn archs<'a>(&'a self, other: &'a str) -> impl Iterator<Item = &'a str> {
        let alone = self.archs.is_empty().then_some(other);
        self.archs.iter().map(String::as_str).chain(alone)
    }

    /// The run with its arguments in the order of the kernel's parameters. An argument has the name of its parameter, or of the
    /// parameter's buffer.
    ///
    /// # Errors
    /// Names that no parameter has, parameters without an argument, and tensors for scalars.
    pub fn bound_to(&self, kernel: &PrimFunc) -> Result<Run, String> {
        let params: Vec<[&str; 2]> = kernel
            .params
            .iter()
            .map(|param| {
                let own = param.name();
                [kernel.buffer_of(param).map_or(own, |buffer| &buffer.name), own]
            })
            .collect();
        let shown: Vec<&str> = params.iter().map(|[shown, _]| *shown).collect();
        let line = |at: usize| match self.lines.get(at) {
            Some(line) => format!(" in line {line}"),
            None => String::new(),
        };
        let mut places: Vec<Option<usize>> = vec![None; params.len()];
        for (at, name) in self.names.iter().enumerate() {
            // A buffer's name first: a handle may be called as another parameter's buffer.
            let named = |which: usize| params.iter().position(|names| names[which] == *name);
            let Some(place) = named(0).or_else(|| named(1)) else {
                let help = match suggest(name, shown.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its parameters are {}", shown.join(", ")),
                };
                return Err(format!(
                    "`{}` has no parameter `{name}`{}\n  = help: {help}",
                    self.kernel,
                    line(at)
                ));
            };
            if let Some(first) = places[place].replace(at) {
                return Err(format!(
                    "parameter `{}` has two arguments, `{}`{} and `{name}`{}",
                    shown[place],
                    self.names[first],
                    line(first),
                    line(at)
                ));
            }
            let (param, found) = (&kernel.params[place], &self.arguments[at]);
            let wanted = match (kernel.buffer_of(param), found) {
                (Some(buffer), Argument::Scalar(_)) => Some(format!(
                    "`{name}` is a tensor{}\n  = help: write `{name}: {}[{}] = …`",
                    line(at),
                    buffer.dtype,
                    vec!["…"; buffer.shape.len()].join("x")
                )),
                (None, Argument::Tensor(_)) if !param.dtype().is_handle() && !param.ty().is_tensor_map() => {
                    Some(format!(
                        "`{name}` is a scalar of {}{}\n  = help: write `{name} = …`",
                        param.dtype(),
                        line(at)
                    ))
                }
                _ => None,
            };
            if let Some(wrong) = wanted {
                return Err(format!("parameter {wrong}"));
            }
        }
        let missing = places.iter().zip(&kernel.params).zip(&shown);
        let missing: Vec<String> = missing
            .filter(|((place, _), _)| place.is_none())
            .map(|((_, param), name)| match kernel.buffer_of(param) {
                Some(buffer) => format!(
                    "`{name}: {}[{}] = …`",
                    buffer.dtype,
                    vec!["…"; buffer.shape.len()].join("x")
                ),
                None => format!("`{name} = …`"),
            })
            .collect();
        if !missing.is_empty() {
            return Err(format!(
                "no line gives {} of `{}` a value\n  = help: add {} below `# sim: {}`",
                match missing.len() {
                    1 => "a parameter",
                    _ => "some parameters",
                },
                self.kernel,
                missing.join(", "),
                self.kernel
            ));
        }
        let order: Vec<usize> = places.into_iter().flatten().collect();
        Ok(Run {
            names: order.iter().map(|at| self.names[*at].clone()).collect(),
            arguments: order.iter().map(|at| self.arguments[*at].clone()).collect(),
            lines: order
                .iter()
                .filter_map(|at| self.lines.get(*at).copied())
                .collect(),
            ..self.clone()
        })
    }

    /// Whether the run is to end in a fault.
    pub fn faults(&self) -> bool {
        self.fault.is_some()
    }

    /// Runs the kernel of a lowered module on the simulator, by each of its schedules, and compares.
    ///
    /// # Errors
    /// What is not as it is described.
    pub fn simulate(&self, lowered: &IRModule) -> Result<(), String> {
        let failed = |failed: Failed| format!("{} (schedule {})", failed.message, failed.schedule);
        self.simulate_by(lowered, None, 1).map_err(failed)
    }

    /// The same by `schedules` of them, from `first` on. Without a `first` they begin at the one that `TIRX_SIM_SEED` says, and
    /// are at least as many as `seeds:` of the file asks for.
    ///
    /// # Errors
    /// The first schedule that leaves something else, and what that is. A fault that is expected must come with one of
    /// the schedules.
    pub fn simulate_by(&self, lowered: &IRModule, first: Option<u64>, schedules: u64) -> Result<(), Failed> {
        let simulator = |seed| {
            Simulator::with_options(LaunchOptions {
                seed,
                ..LaunchOptions::default()
            })
        };
        let outcome = self.outcome_by(lowered, first, schedules, &simulator);
        outcome.verdict.map_err(|message| Failed {
            schedule: outcome.schedule,
            message,
        })
    }

    /// The run that decides: as of [`Run::simulate_by`] the first that leaves something else, or the first that has the expected
    /// fault, on simulators that `simulator` makes for each schedule.
    pub fn outcome_by(
        &self,
        lowered: &IRModule,
        first: Option<u64>,
        schedules: u64,
        simulator: &dyn Fn(u64) -> Simulator,
    ) -> Outcome {
        let (first, count) = match first {
            Some(first) => (first, schedules),
            None => (machine::first_seed(), self.seeds.unwrap_or(1).max(schedules)),
        };
        let last = first.saturating_add(count.saturating_sub(1));
        let mut missed = None;
        let mut schedule = first;
        loop {
            let mut machine = simulator(schedule);
            let contents = machine::run(&mut machine, lowered, &self.bound());
            let outcome = Outcome {
                schedule,
                verdict: self.compare(&contents),
                contents: contents.ok(),
                machine,
            };
            let decides = outcome.verdict.is_ok() == self.faults();
            if decides {
                return outcome;
            }
            if schedule == last {
                return missed.unwrap_or(outcome);
            }
            if self.faults() {
                missed = missed.or(Some(outcome));
            }
            schedule += 1;
        }
    }

    /// Runs it in every order of synchronizing operations that can make a difference, in `most` runs at most, and compares
    /// after each. Gives what was explored; a fault that is expected must come in one of the orders.
    ///
    /// # Errors
    /// What the first order leaves that is not as it is described.
    pub fn explore(&self, lowered: &IRModule, most: u64) -> Result<Explored, String> {
        let exploration = Arc::new(Exploration::new(most));
        let simulator = || Simulator::exploring(&exploration);
        let outcome = self.outcome_of_orders(lowered, &exploration, &simulator);
        outcome.verdict.map(|()| exploration.explored())
    }

    /// The run that decides: the first order that leaves something else, or the first that has the expected fault. `simulator`
    /// makes one that runs in the orders of `exploration`.
    pub fn outcome_of_orders(
        &self,
        lowered: &IRModule,
        exploration: &Exploration,
        simulator: &dyn Fn() -> Simulator,
    ) -> Outcome {
        let mut kept: Option<Outcome> = None;
        while exploration.more() {
            let mut machine = simulator();
            let contents = machine::run(&mut machine, lowered, &self.bound());
            let left = contents.is_ok() && exploration.left();
            let outcome = Outcome {
                schedule: 0,
                verdict: self.compare(&contents),
                contents: contents.ok(),
                machine,
            };
            // One that repeats another order is left before its end.
            if left {
                continue;
            }
            if outcome.verdict.is_ok() == self.faults() {
                return outcome;
            }
            kept = kept.or(Some(outcome));
        }
        kept.unwrap_or_else(|| Outcome {
            schedule: 0,
            verdict: Ok(()),
            contents: None,
            machine: simulator(),
        })
    }

    /// Runs the kernel of a lowered module and compares.
    pub fn check(&self, machine: &mut dyn Machine, lowered: &IRModule) -> Result<(), String> {
        self.compare(&machine::run(machine, lowered, &self.bound()))
    }

    /// The arguments by their names.
    fn bound(&self) -> Vec<(String, machine::Argument)> {
        let values = self.arguments.iter().map(|argument| match argument {
            Argument::Scalar(value) => machine::Argument::Scalar(value.clone()),
            Argument::Tensor(tensor) => machine::Argument::Tensor {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                bytes: tensor.before.clone(),
            },
        });
        self.names.iter().cloned().zip(values).collect()
    }

    /// The tensors by their names, in the kernel's order.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let all = self.names.iter().zip(&self.arguments);
        all.filter_map(|(name, argument)| match argument {
            Argument::Tensor(tensor) => Some((name.as_str(), tensor)),
            Argument::Scalar(_) => None,
        })
    }

    /// What a run has left, or its fault, against what it must be.
    fn compare(&self, result: &Result<Vec<Vec<u8>>, String>) -> Result<(), String> {
        let contents = match (result, &self.fault) {
            (Ok(contents), None) => contents,
            (Err(message), Some(fault)) if message.contains(fault) => return Ok(()),
            (Err(message), None) => return Err(message.clone()),
            (Err(message), Some(fault)) => {
                return Err(format!(
                    "the run ends in another fault than expected\nexpected a fault with the text: {fault}\nfound: {message}"
                ));
            }
            (Ok(_), Some(fault)) => {
                return Err(format!(
                    "the run ends without a fault\nexpected a fault with the text: {fault}"
                ));
            }
        };
        let tensors = self
            .names
            .iter()
            .zip(&self.arguments)
            .filter_map(|(n, a)| match a {
                Argument::Tensor(tensor) => Some((n, tensor)),
                Argument::Scalar(_) => None,
            });
        for ((name, tensor), found) in tensors.zip(contents) {
            tensor.compare(name, found)?;
        }
        Ok(())
    }
}
