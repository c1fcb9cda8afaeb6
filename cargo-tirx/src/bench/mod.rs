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
//! | `peak` | what does the GPU compute at most? |
//! | `report` | how is a measurement shown? |

mod arguments;
mod launches;
mod peak;
mod report;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use tirx_build::{CodeForm, KernelCode};
use tirx_rt::{Device, DeviceProperties, Event, Kernel, Stream, Tensor};

use crate::failure::{Failure, Result, choice, user};
use crate::output::{Output, out};
use launches::{Repeated, image, launches, leak, runs_on};
use peak::Unit;
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

/// A measurement lasts at least so long: events are exact to about half a microsecond.
const LEAST_SAMPLE: Duration = Duration::from_millis(2);
/// Launches before the first measurement: GPUs reach their clock after a while.
const WARM_UP: Duration = Duration::from_millis(200);
/// Most calls of one measurement.
const MAX_CALLS: u32 = 4096;
/// Most calls of one measurement that empties the cache before each: that takes longer than short kernels.
const MAX_FLUSHED: u32 = 256;

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

/// The launches of a call, again and again.
struct Repetition<'a> {
    kernel: &'static Kernel,
    stream: &'a Stream,
    launches: &'a [Repeated],
    /// More bytes than the L2 cache holds: writing them leaves nothing else in it.
    flush: Option<Tensor<u8>>,
}

impl Repetition<'_> {
    fn call(&self) -> tirx_rt::Result<()> {
        for (function, launch) in self.launches {
            #[expect(unsafe_code, reason = "the launches are those of the host function")]
            // SAFETY: function, arguments and extents are those that the kernel's host function launches with, of
            // tensors with the shapes that it has checked, which live until the stream is done.
            unsafe { launch.launch(self.kernel, *function, self.stream) }?;
        }
        Ok(())
    }

    /// The time of this many calls.
    fn calls(&mut self, count: u32) -> tirx_rt::Result<Duration> {
        // Calls follow each other between two events, unless something else comes between them.
        let (pairs, each) = match self.flush {
            Some(_) => (count, 1),
            None => (1, count),
        };
        let mut events: Vec<(Event, Event)> = Vec::new();
        for _ in 0..pairs {
            if let Some(memory) = &mut self.flush {
                memory.fill_zero(self.stream)?;
            }
            let start = self.stream.record()?;
            for _ in 0..each {
                self.call()?;
            }
            events.push((start, self.stream.record()?));
        }
        self.stream.synchronize()?;
        events.iter().map(|(start, end)| end.elapsed_since(start)).sum()
    }
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
    let call = arguments::arguments(command, &stream, code)?;
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
    let mut calls = |count: u32| {
        repetition.calls(count).map_err(|error| match error {
            tirx_rt::Error::Fault(fault) => Failure::User(vec![fault.to_diagnostic()]),
            error => user(error),
        })
    };
    // The first call loads the image.
    let mut one = calls(1)?;
    let mut count = 1;
    if gpu.is_some() {
        one = calls(1)?.min(one);
        let least = one.max(Duration::from_nanos(200));
        let wanted = LEAST_SAMPLE.as_secs_f64() / least.as_secs_f64();
        let most = if command.flush_l2 { MAX_FLUSHED } else { MAX_CALLS };
        count = (wanted.ceil() as u32).clamp(1, most);
        let mut spent = Duration::ZERO;
        while spent < WARM_UP {
            spent += calls(count)?.max(Duration::from_micros(1));
        }
    }
    let samples = match gpu {
        Some(_) => command.samples.max(1),
        // A simulator's time says nothing of a GPU's.
        None => 1,
    };
    let mut seconds = Vec::new();
    for _ in 0..samples {
        seconds.push(calls(count)?.as_secs_f64() / f64::from(count));
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
        unit: command.unit.unwrap_or_else(|| Unit::of(&code.cuda)),
        gpu,
    })
}
