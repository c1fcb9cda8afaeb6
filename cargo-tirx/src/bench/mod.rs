//! `cargo tirx bench`: how fast a kernel of the manifest is on the GPU at hand.
//!
//! The host function runs once and gives the launches; these are then repeated, timed by events of the device. Bytes are
//! those of the tensors that the launches read and write, each counted once for each of the two.
//!
//! | file | question |
//! |---|---|
//! | `arguments` | with which arguments is it called? |
//! | `values` | what do its tensors hold? |
//! | `launches` | what does one call launch, and how many bytes does that move? |
//! | `repetition` | how long do repeated calls take? |
//! | `peak` | what does the GPU compute at most? |
//! | `report` | how is a measurement shown? |

pub(crate) mod arguments;
pub(crate) mod launches;
mod peak;
pub(crate) mod repetition;
mod report;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use tirx_build::{CodeForm, KernelCode};
use tirx_rt::{Device, DeviceProperties, Kernel, Stream, Tensor};

use crate::failure::{Result, choice, user};
use crate::output::{Output, out};
use arguments::Given;
use launches::{image, launches, leak, runs_on};
use peak::Unit;
use repetition::{Repetition, WARM_UP};
use report::{Measured, as_json, as_table};

#[derive(clap::Args, Debug)]
pub(crate) struct Bench {
    /// A kernel of the manifest, or one of its specializations (`add::n256`).
    kernel: String,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
    /// Sets an extent that is a parameter of the kernel.
    #[arg(long = "size", value_name = "NAME=VALUE")]
    sizes: Vec<String>,
    /// A scalar argument; floating-point arguments default to 1.
    #[arg(long = "scalar", value_name = "NAME=VALUE")]
    scalars: Vec<String>,
    #[arg(long = "tensor-map", value_name = "NAME=WHAT,box=…", help = crate::tensor_map::HELP)]
    tensor_maps: Vec<String>,
    /// The number of operations per call, as a Python expression over parameters and sizes: `2*M*N*K`.
    #[arg(long, value_name = "EXPRESSION")]
    operations: Option<String>,
    /// The peak rate to compare with; defaults to the type of the kernel's matrix products, or float32.
    #[arg(long, value_enum)]
    unit: Option<Unit>,
    /// The number of the GPU.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    device: usize,
    /// Only checks, on the simulator, that the kernel runs; measures nothing.
    #[arg(long)]
    simulator: bool,
    /// Empties the L2 cache before each call.
    #[arg(long, conflicts_with = "simulator")]
    flush_l2: bool,
    /// Measurements to take; the median is shown.
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    samples: usize,
    /// Prints a JSON list with one object per specialization.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &Bench, _: &Output) -> Result<()> {
    let device = device(command)?;
    let names = std::cell::RefCell::new(Vec::new());
    let wanted = |name: &str| {
        names.borrow_mut().push(name.to_string());
        let part = name.strip_prefix(&command.kernel);
        part.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let form = match device.is_simulator() {
        true => CodeForm::Cuda,
        false => CodeForm::Machine,
    };
    let codes = crate::dependencies::builder(&command.manifest).code(&wanted, form)?;
    let names = names.borrow();
    let mut kernels: Vec<&str> = codes.iter().map(|code| code.kernel.as_str()).collect();
    kernels.dedup();
    if kernels.is_empty() {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return Err(user(format_args!(
            "the manifest has no kernel `{}`\n  = help: {}",
            command.kernel,
            choice(&command.kernel, &names, "it has")
        )));
    }
    let gpu = device.properties().map_err(user)?;
    let mut all = Vec::new();
    for kernel in kernels {
        let mut of_it = codes.iter().filter(|code| code.kernel == kernel);
        let code = match &gpu {
            None => of_it.next(),
            Some(gpu) => of_it.find(|code| runs_on(&code.target, gpu)),
        };
        let Some(code) = code else {
            let targets = codes.iter().filter(|code| code.kernel == kernel);
            let targets: Vec<&str> = targets.map(|code| code.target.as_str()).collect();
            return Err(user(format_args!(
                "`{kernel}` is compiled for {}, and {} runs none of these\n  = help: add its architecture to `targets` of the \
                 manifest, or `native`",
                targets.join(", "),
                device.name()
            )));
        };
        all.push(measure(command, &device, gpu, code)?);
    }
    match command.json {
        true => out(&as_json(&all)),
        false => out(&as_table(&all)),
    }
}

/// The device of the command line.
fn device(command: &Bench) -> Result<Device> {
    if command.simulator {
        return Ok(Device::new_simulator());
    }
    Device::cuda(command.device).map_err(|error| {
        user(format_args!(
            "{error}: only a GPU shows the speed of a kernel\n  = help: `--simulator` runs it on the simulator; \
             `cargo tirx sim --counters` counts instructions, memory transactions and conflicts"
        ))
    })
}

/// Memory of twice the size of a GPU's L2 cache.
fn flush(command: &Bench, stream: &Stream, gpu: Option<DeviceProperties>) -> Result<Option<Tensor<u8>>> {
    let gpu = gpu.filter(|_| command.flush_l2);
    gpu.map(|gpu| Tensor::zeros(stream, [2 * gpu.l2_bytes as usize]).map_err(user))
        .transpose()
}

fn measure(
    command: &Bench,
    device: &Device,
    gpu: Option<DeviceProperties>,
    code: &KernelCode,
) -> Result<Measured> {
    let stream = device.default_stream();
    let given = Given {
        sizes: &command.sizes,
        scalars: &command.scalars,
        tensor_maps: &command.tensor_maps,
    };
    let call = arguments::arguments(given, &stream, code)?;
    let operations = command.operations.as_ref();
    let operations = operations
        .map(|text| arguments::number(text, &call.numbers))
        .transpose()?;
    let launches = launches(&stream, code, &call)?;
    let mut repetition = Repetition {
        kernel: leak(Box::new(Kernel::new(image(code)))),
        stream: &stream,
        launches: &launches.all,
        flush: flush(command, &stream, gpu)?,
    };
    let count = match gpu {
        Some(_) => repetition.calls_of_a_sample()?,
        None => repetition.calls(1).map(|_| 1)?,
    };
    if gpu.is_some() {
        let mut spent = Duration::ZERO;
        while spent < WARM_UP {
            spent += repetition.calls(count)?.max(Duration::from_micros(1));
        }
    }
    let samples = match gpu {
        Some(_) => command.samples.max(1),
        // A simulator's time says nothing of a GPU's.
        None => 1,
    };
    let mut seconds = Vec::new();
    for _ in 0..samples {
        seconds.push(repetition.calls(count)?.as_secs_f64() / f64::from(count));
    }
    seconds.sort_by(f64::total_cmp);
    Ok(Measured {
        kernel: code.kernel.clone(),
        target: code.target.clone(),
        device: device.name(),
        seconds,
        calls: count,
        flushed: command.flush_l2,
        read: launches.read,
        written: launches.written,
        operations,
        unit: command.unit.unwrap_or_else(|| Unit::from_cuda(&code.cuda)),
        gpu,
    })
}
