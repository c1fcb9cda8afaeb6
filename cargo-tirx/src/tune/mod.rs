//! `cargo tirx tune`: which candidate of a tuned kernel is the fastest, for which sizes?
//!
//! Each candidate runs with equal inputs and must give the outputs of the first. Then a GPU measures them in turns, and the times go into
//! the record of that GPU, beside the manifest. Without a GPU the command verifies the candidates on the simulator and measures
//! nothing.
//!
//! | file | question |
//! |---|---|
//! | `verify` | do all candidates give the same outputs? |
//! | `measure` | how long does each candidate take, compared fairly? |
//! | `clock` | at which clock does the GPU run? |

mod clock;
mod measure;
mod verify;

use std::path::{Path, PathBuf};

use tirx_build::tuning::{FOLDER, KernelTimes, MeasuredPoint, TuningRecord, file_name};
use tirx_build::{CodeForm, KernelCode, TunedKernel};
use tirx_rt::{Device, DeviceProperties, Kernel, Stream};

use crate::bench::arguments::{Given, arguments, open_extents};
use crate::bench::launches::{Launches, image, launches, leak, runs_on};
use crate::bench::repetition::Repetition;
use crate::failure::{Result, choice, user};
use crate::output::{Output, counted, out};
use crate::table::Table;
use verify::Outputs;

#[derive(clap::Args, Debug)]
pub(crate) struct Tune {
    /// A kernel with `[kernel.tune]`; defaults to all of the manifest.
    kernel: Option<String>,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
    /// The number of the GPU.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    device: usize,
    /// Only verifies the candidates, on the simulator; measures nothing.
    #[arg(long)]
    simulator: bool,
    /// A size at which the simulator verifies, instead of the smallest of the manifest.
    #[arg(long = "size", value_name = "NAME=VALUE", requires = "simulator")]
    sizes: Vec<String>,
    /// Measurements of each candidate; the record has the medians.
    #[arg(long, default_value_t = 30, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
}

pub(crate) fn run(command: &Tune, _: &Output) -> Result<()> {
    let (device, no_gpu) = match command.simulator {
        true => (Device::new_simulator(), None),
        false => match Device::cuda(command.device) {
            Ok(device) => (device, None),
            Err(error) => (Device::new_simulator(), Some(error)),
        },
    };
    let gpu = device.properties().map_err(user)?;
    let builder = crate::dependencies::builder(&command.manifest);
    let tuned = builder.tuned()?;
    let chosen: Vec<&TunedKernel> = (tuned.iter())
        .filter(|kernel| command.kernel.as_ref().is_none_or(|name| *name == kernel.name))
        .collect();
    if chosen.is_empty() {
        return Err(no_such(command, &tuned));
    }
    for kernel in chosen {
        let wanted = |name: &str| {
            let candidate = name
                .strip_prefix(&kernel.name)
                .and_then(|rest| rest.strip_prefix("::"));
            candidate.is_some_and(|candidate| kernel.candidates.iter().any(|known| known == candidate))
        };
        let form = if gpu.is_some() {
            CodeForm::Machine
        } else {
            CodeForm::Cuda
        };
        let codes = builder.code(&wanted, form)?;
        let candidates = candidates(kernel, &codes, gpu.as_ref(), &device)?;
        match gpu {
            None => verify_only(command, &device, kernel, &candidates)?,
            Some(gpu) => {
                let times = measured(command, &device, &gpu, kernel, &candidates)?;
                out(&table(&device, &times))?;
                let file = write(&command.manifest, &device.name(), times)?;
                out(&format!("wrote {}\n", file.display()))?;
            }
        }
    }
    match no_gpu {
        None => Ok(()),
        Some(error) => Err(user(format_args!(
            "{error}: only a GPU measures candidates, so there is no record\n  = help: run `cargo tirx tune` on a machine with \
             the GPU; `--simulator` only verifies the candidates"
        ))),
    }
}

/// The error about a kernel that is not tuned.
fn no_such(command: &Tune, tuned: &[TunedKernel]) -> crate::failure::Failure {
    let names: Vec<&str> = tuned.iter().map(|kernel| kernel.name.as_str()).collect();
    match &command.kernel {
        Some(name) if !names.is_empty() => user(format_args!(
            "the manifest has no tuned kernel `{name}`\n  = help: {}",
            choice(name, &names, "it has")
        )),
        _ => user(
            "the manifest has no tuned kernel\n  = help: add `[kernel.tune]` to a kernel, with `values = { TILE = [128, 64] }` and \
             `sizes = [{ n = 1000 }]`",
        ),
    }
}

/// A candidate as the device runs it.
struct Candidate<'a> {
    name: &'a str,
    code: &'a KernelCode,
    kernel: &'static Kernel,
}

/// The code of each candidate that the device runs, in the kernel's order.
fn candidates<'a>(
    kernel: &'a TunedKernel,
    codes: &'a [KernelCode],
    gpu: Option<&DeviceProperties>,
    device: &Device,
) -> Result<Vec<Candidate<'a>>> {
    let prepared = |candidate: &'a String| {
        let path = format!("{}::{candidate}", kernel.name);
        // A candidate whose code differs by target has the target behind its name.
        let own = |code: &&KernelCode| {
            let rest = code.kernel.strip_prefix(&path);
            rest.is_some_and(|rest| rest.is_empty() || *rest == format!("::{}", code.target))
        };
        let runs = |code: &&KernelCode| gpu.is_none_or(|gpu| runs_on(&code.target, gpu));
        let code = codes.iter().filter(own).find(runs).ok_or_else(|| {
            user(format_args!(
                "`{path}` is not compiled for {}\n  = help: add its architecture to `targets` of the manifest, or `native`",
                device.name()
            ))
        })?;
        Ok(Candidate {
            name: candidate,
            code,
            kernel: leak(Box::new(Kernel::new(image(code)))),
        })
    };
    kernel.candidates.iter().map(prepared).collect()
}

/// The values of `--size` and of `--scalar` (`NAME=VALUE`) that call the kernel at a point of its tuning. `point` has one number for each
/// of `names`: an extent of a tensor's shape is a size, any other name is a scalar parameter.
fn command_line_of_point(code: &KernelCode, names: &[String], point: &[i64]) -> (Vec<String>, Vec<String>) {
    let extents: Vec<String> = (open_extents(&code.authored).iter())
        .map(|var| var.name().to_string())
        .collect();
    let (sizes, scalars): (Vec<_>, Vec<_>) = names
        .iter()
        .zip(point)
        .partition(|(name, _)| extents.contains(name));
    let options = |pairs: Vec<(&String, &i64)>| {
        pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    };
    (options(sizes), options(scalars))
}

/// Calls each candidate once with equal inputs, and compares its outputs with those of the first.
fn verify(stream: &Stream, kernel: &TunedKernel, candidates: &[Candidate<'_>], point: &[i64]) -> Result<()> {
    let mut expected: Option<Outputs> = None;
    for Candidate {
        name,
        code,
        kernel: loaded,
    } in candidates
    {
        let (sizes, scalars) = command_line_of_point(code, &kernel.sizes, point);
        let given = Given {
            sizes: &sizes,
            scalars: &scalars,
            tensor_maps: &[],
        };
        let call = arguments(given, stream, code)?;
        let launches = launches(stream, code, &call)?;
        let mut once = Repetition {
            kernel: loaded,
            stream,
            launches: &launches.all,
            flush: None,
        };
        once.calls(1)?;
        let outputs = Outputs::of_call(&call)?;
        match &expected {
            None => expected = Some(outputs),
            Some(expected) => expected.compare(&outputs).map_err(|difference| {
                user(format_args!(
                    "candidates of `{}` give different results{}: {difference} of `{}` and `{name}`\n  = help: a tuned \
                     parameter may change the speed of a kernel, not its results",
                    kernel.name,
                    shown(&kernel.sizes, point),
                    kernel.candidates[0]
                ))
            })?,
        }
    }
    Ok(())
}

/// ` at m = 4096, n = 128`; empty if all sizes are fixed.
fn shown(names: &[String], point: &[i64]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> = names
        .iter()
        .zip(point)
        .map(|(name, size)| format!("{name} = {size}"))
        .collect();
    format!(" at {}", pairs.join(", "))
}

fn verify_only(
    command: &Tune,
    device: &Device,
    kernel: &TunedKernel,
    candidates: &[Candidate<'_>],
) -> Result<()> {
    let least = kernel.points.iter().min_by_key(|point| {
        point
            .iter()
            .fold(1i128, |all, size| all.saturating_mul(i128::from(*size).max(1)))
    });
    let mut point = least.cloned().unwrap_or_default();
    for (name, value) in crate::simulate::named("--size", &command.sizes)? {
        let at = kernel.sizes.iter().position(|known| *known == name);
        let names: Vec<&str> = kernel.sizes.iter().map(String::as_str).collect();
        let at = at.ok_or_else(|| {
            user(format_args!(
                "--size {name}: `{}` has no such size\n  = help: {}",
                kernel.name,
                choice(&name, &names, "its sizes are")
            ))
        })?;
        let size = crate::literal::integer(&value).and_then(|value| i64::try_from(value).ok());
        point[at] = size.ok_or_else(|| user(format_args!("--size {name}: `{value}` is no size")))?;
    }
    verify(&device.default_stream(), kernel, candidates, &point)?;
    out(&format!(
        "{}: {} verified on the simulator{}\n",
        kernel.name,
        counted(candidates.len(), "candidate"),
        shown(&kernel.sizes, &point)
    ))
}

/// The times of a kernel's candidates at each point.
fn measured(
    command: &Tune,
    device: &Device,
    gpu: &DeviceProperties,
    kernel: &TunedKernel,
    candidates: &[Candidate<'_>],
) -> Result<KernelTimes> {
    let stream = device.default_stream();
    let mut points = Vec::new();
    for point in &kernel.points {
        verify(&stream, kernel, candidates, point)?;
        let (sizes, scalars) = command_line_of_point(candidates[0].code, &kernel.sizes, point);
        let given = Given {
            sizes: &sizes,
            scalars: &scalars,
            tensor_maps: &[],
        };
        // All candidates work on the same tensors.
        let call = arguments(given, &stream, candidates[0].code)?;
        let launches: Vec<Launches> = (candidates.iter())
            .map(|candidate| launches(&stream, candidate.code, &call))
            .collect::<Result<_>>()?;
        let mut repetitions: Vec<Repetition<'_>> = (candidates.iter().zip(&launches))
            .map(|(candidate, launches)| Repetition {
                kernel: candidate.kernel,
                stream: &stream,
                launches: &launches.all,
                flush: None,
            })
            .collect();
        let counts: Vec<u32> = repetitions
            .iter_mut()
            .map(Repetition::calls_of_a_sample)
            .collect::<Result<_>>()?;
        let mut time = |candidate: usize| {
            let count = counts[candidate];
            let time = repetitions[candidate].calls(count)?;
            Ok(time.as_secs_f64() / f64::from(count))
        };
        let seconds = measure::compared(candidates.len(), command.samples as usize, &mut time)?;
        points.push(MeasuredPoint {
            sizes: point.clone(),
            times: seconds.iter().map(|seconds| seconds * 1e6).collect(),
        });
    }
    Ok(KernelTimes {
        name: kernel.name.clone(),
        hash: kernel.hash.clone(),
        driver: format!("{}.{}", gpu.driver.0, gpu.driver.1),
        nvcc: candidates[0].code.nvcc.clone(),
        tirx: env!("CARGO_PKG_VERSION").to_string(),
        clock: clock::now(command.device),
        sizes: kernel.sizes.clone(),
        candidates: kernel.candidates.clone(),
        points,
    })
}

fn table(device: &Device, kernel: &KernelTimes) -> String {
    let mut table = Table::new(
        (kernel.sizes.iter().map(String::as_str))
            .chain(["fastest", "us", "default", "us"])
            .collect::<Vec<_>>(),
    );
    for point in &kernel.points {
        let best = measure::fastest(&point.times);
        let mut row: Vec<String> = point.sizes.iter().map(i64::to_string).collect();
        row.extend([
            kernel.candidates[best].clone(),
            format!("{:.2}", point.times[best]),
            kernel.candidates[0].clone(),
            format!("{:.2}", point.times[0]),
        ]);
        table.row(row);
    }
    format!("{} on {}\n{}", kernel.name, device.name(), table.text())
}

/// Puts a kernel's times into the record of a GPU, and gives the record's file.
fn write(manifest: &Path, device: &str, times: KernelTimes) -> Result<PathBuf> {
    let folder = manifest.parent().unwrap_or(Path::new("")).join(FOLDER);
    let file = folder.join(file_name(device));
    let mut record = match std::fs::read_to_string(&file) {
        Ok(text) => TuningRecord::read(&text).map_err(|reason| {
            user(format_args!(
                "the tuning record `{}` is damaged: {reason}\n  = help: restore it from version control, or delete it",
                file.display()
            ))
        })?,
        Err(_) => TuningRecord {
            device: device.to_string(),
            kernels: Vec::new(),
        },
    };
    match record.kernels.iter_mut().find(|known| known.name == times.name) {
        Some(known) => *known = times,
        None => record.kernels.push(times),
    }
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, record.text()));
    written.map_err(|error| user(format_args!("cannot write `{}`: {error}", file.display())))?;
    Ok(file)
}
