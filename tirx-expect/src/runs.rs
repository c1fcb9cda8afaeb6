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
//! simulator: the values are those of each, the fault that of one at least. `ranks: 2`, the first line of a run, makes it on two
//! devices: an argument then has the values of rank 0, and then those of rank 1. `B@1` is the address of `B` on rank 1, `B@*` that of
//! its multicast window.

use std::collections::BTreeMap;
use std::sync::Arc;

use tirx_core::ir::{IRModule, PrimFunc};
use tirx_core::script::ConstValue;
use tirx_core::suggest;
use tirx_sim::{Exploration, Explored, LaunchOptions};

use crate::machine::{self, Machine, Simulator};
use crate::values::{Address, Scalar, scalar, tensor};
pub use crate::values::{MAX_RANKS, Tensor};

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
    /// The largest relative errors of tensors, by name.
    bounds: Vec<(String, f64)>,
    /// Devices, if it is run on several.
    ranks: Option<u32>,
}

#[derive(Clone, Debug)]
enum Argument {
    Tensor(Tensor),
    /// One for each rank.
    Scalar(Vec<Scalar>),
}

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
        } else if let Some(bound) = line.strip_prefix("error:") {
            let bound = bound.trim().split_once(' ');
            let bound = bound.and_then(|(name, bound)| Some((name.to_string(), bound.trim().parse().ok()?)));
            let wrong = || failed(format!("no tensor with a bound of its error: {line}"));
            run.bounds.push(bound.ok_or_else(wrong)?);
        } else if let Some(ranks) = line.strip_prefix("ranks:") {
            let ranks = ranks.trim().parse().ok().filter(|n| (1..=MAX_RANKS).contains(n));
            run.ranks = Some(ranks.ok_or(failed(format!("no number of devices: {line}")))?);
        } else if let Some((name, value)) = line.split_once(" = ") {
            run.names.push(name.into());
            let values: Vec<&str> = match run.ranks {
                None => vec![value],
                Some(_) => value.split_whitespace().collect(),
            };
            if values.len() != run.ranks.unwrap_or(1) as usize {
                return Err(failed(format!("{} values for the ranks", values.len())));
            }
            let values = values.into_iter().map(|value| match Address::read(value) {
                Some(address) => Ok(Scalar::Address(address)),
                None => scalar(value).map(Scalar::Value),
            });
            let values = values.collect::<Result<_, _>>().map_err(failed)?;
            run.arguments.push(Argument::Scalar(values));
        } else {
            let (name, rest) = line.split_once(' ').ok_or(failed("a name and a dtype".into()))?;
            run.names.push(name.into());
            run.arguments.push(Argument::Tensor(
                tensor(rest, run.ranks.unwrap_or(1)).map_err(failed)?,
            ));
        }
    }
    Ok(runs)
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

    /// The devices that it is run on at once, if it says a number.
    pub fn ranks(&self) -> Option<u32> {
        self.ranks
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
            if !self.bounds.is_empty() {
                machine = machine.with_accuracy();
            }
            let contents = machine::run_ranks(&mut machine, lowered, self.ranks, &self.bound());
            let outcome = Outcome {
                schedule,
                verdict: self
                    .compare(&contents)
                    .and_then(|()| self.compare_errors(&machine)),
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
            let contents = machine::run_ranks(&mut machine, lowered, self.ranks, &self.bound());
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
        self.compare(&machine::run_ranks(machine, lowered, self.ranks, &self.bound()))
    }

    /// The arguments by their names.
    fn bound(&self) -> Vec<(String, machine::RankArgument)> {
        let values = self.arguments.iter().map(|argument| match argument {
            Argument::Scalar(value) => machine::RankArgument::Scalar(value.clone()),
            Argument::Tensor(tensor) => machine::RankArgument::Tensor {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                bytes: tensor.before.clone(),
                addresses: tensor.addresses.clone(),
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

    /// The errors of tensors against their bounds.
    fn compare_errors(&self, machine: &Simulator) -> Result<(), String> {
        for (name, bound) in &self.bounds {
            let found = self.tensors().enumerate().find(|(_, (own, _))| own == name);
            let (number, (_, tensor)) = found.ok_or(format!("error: `{name}` is no tensor of the run"))?;
            let error = machine.largest_error(number, tensor.dtype);
            if error > *bound {
                return Err(format!(
                    "the relative error of {name} is {error:.3e}, and the bound is {bound:e}\n  = help: `cargo tirx sim \
                     --accuracy` shows the lines that introduce it"
                ));
            }
        }
        Ok(())
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
            tensor.compare(name, found, self.ranks)?;
        }
        Ok(())
    }
}
