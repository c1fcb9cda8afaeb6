//! `cargo tirx bench`: how fast a kernel of the manifest is on the GPU at hand.
//!
//! The host function runs once and gives the launches; these are then repeated, timed by events of the device. Bytes are
//! those of the tensors that the launches read and write, each counted once for each of the two.

mod peak;
mod values;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tirx_build::{Builder, CodeForm, KernelCode};
use tirx_core::ir::abi;
use tirx_core::ir::{IRModule, PrimFunc, Var};
use tirx_core::script::{ConstValue, KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_rt::{
    Device, DeviceFunction, DeviceProperties, Kernel, KernelImage, LaunchConfig, ParamKind, Stream, Tensor,
    TensorMap, TensorMapSpec,
};
use tirx_sim::host::{self, Argument};

use crate::input::{Failure, Result, choice, user};
use crate::output::{Output, out};
use crate::simulate::{inferred_shape, named, scalar, shown_name};
use crate::table::Table;
use peak::Unit;

#[derive(clap::Args, Debug)]
pub(crate) struct Bench {
    /// The kernel: its name in the manifest, or that of one specialization (`add::n256`).
    kernel: String,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = "kernels.toml")]
    manifest: PathBuf,
    /// An extent that the kernel leaves open.
    #[arg(long = "size", value_name = "NAME=VALUE")]
    sizes: Vec<String>,
    /// A scalar argument; numbers with a fraction are 1 without it.
    #[arg(long = "scalar", value_name = "NAME=VALUE")]
    scalars: Vec<String>,
    /// The operations of a call, as a Python expression of compile-time values, sizes and scalars: `2*M*N*K`.
    #[arg(long, value_name = "EXPRESSION")]
    operations: Option<String>,
    /// What the operations are compared with; without it what the kernel's matrix products are made of, or float32.
    #[arg(long, value_enum)]
    unit: Option<Unit>,
    /// The number of the GPU.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    device: usize,
    /// Runs it on the simulator instead: whether it runs, not how fast it is.
    #[arg(long)]
    simulator: bool,
    /// Measurements, of which the median is shown.
    #[arg(long, default_value_t = 30, value_name = "COUNT")]
    samples: usize,
    /// A JSON list with an object for each specialization.
    #[arg(long)]
    json: bool,
}

/// A measurement lasts at least so long: events are exact to about half a microsecond.
const LEAST_SAMPLE: Duration = Duration::from_millis(2);
/// Launches before the first measurement: GPUs reach their clock after a while.
const WARM_UP: Duration = Duration::from_millis(200);
/// Most launches of one measurement.
const MOST_LAUNCHES: u32 = 4096;

/// What was measured of a specialization.
struct Measured {
    kernel: String,
    target: String,
    device: String,
    /// Seconds of a call in each measurement, in order.
    seconds: Vec<f64>,
    /// Calls of a measurement.
    calls: u32,
    read: u64,
    written: u64,
    operations: Option<f64>,
    unit: Unit,
    gpu: Option<DeviceProperties>,
}

impl Measured {
    /// The time that this share of the measurements does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.seconds.len().saturating_sub(1);
        let at = (share * last as f64).round() as usize;
        self.seconds.get(at).copied().unwrap_or(f64::NAN)
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    fn bytes_per_second(&self) -> f64 {
        (self.read + self.written) as f64 / self.median()
    }

    fn operations_per_second(&self) -> Option<f64> {
        self.operations.map(|operations| operations / self.median())
    }

    fn peak_bytes(&self) -> Option<f64> {
        self.gpu
            .map(|gpu| gpu.peak_bytes_per_second())
            .filter(|peak| *peak > 0.0)
    }

    fn peak_operations(&self) -> Option<f64> {
        self.gpu.as_ref().and_then(|gpu| self.unit.peak(gpu))
    }
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
    let codes = Builder::new().manifest(&command.manifest).code(&wanted, form)?;
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
            "{error}: only a GPU says how fast a kernel is\n  = help: `--simulator` runs it on the simulator; \
             `cargo tirx sim --counters` counts instructions, memory transactions and conflicts"
        ))
    })
}

fn runs_on(target: &str, gpu: &DeviceProperties) -> bool {
    let targets = leak(vec![leak(target.to_string().into_boxed_str())].into_boxed_slice());
    let image = KernelImage {
        fatbin: Some(&[]),
        targets,
        ..empty_image()
    };
    image.runs_on(gpu.compute_capability.0, gpu.compute_capability.1)
}

/// Images are loaded for good, so what they refer to is never freed; the command ends soon.
fn leak<T: ?Sized>(value: Box<T>) -> &'static T {
    Box::leak(value)
}

fn empty_image() -> KernelImage {
    KernelImage {
        name: "",
        functions: &[],
        fatbin: None,
        ir: &[],
        targets: &[],
        ptx: None,
        hash: "",
        signature: "",
    }
}

/// The image of a kernel.
fn image(code: &KernelCode) -> &'static KernelImage {
    let functions = abi::device_functions(&code.lowered)
        .into_iter()
        .map(|(symbol, function)| {
            let params = function.params.iter().map(|p| match p.dtype() {
                _ if p.ty().is_tensor_map() => ParamKind::TensorMap,
                dtype if dtype.is_handle() => ParamKind::Pointer,
                dtype => ParamKind::Scalar {
                    bits: dtype.bits.next_power_of_two().clamp(8, 64),
                },
            });
            DeviceFunction {
                symbol: leak(symbol.to_string().into_boxed_str()),
                params: leak(params.collect()),
            }
        });
    let target = leak(code.target.clone().into_boxed_str());
    leak(Box::new(KernelImage {
        name: leak(code.kernel.clone().into_boxed_str()),
        functions: leak(functions.collect()),
        fatbin: (!code.code.is_empty()).then(|| leak(code.code.clone().into_boxed_slice())),
        ir: leak(code.ir.clone().into_boxed_slice()),
        targets: leak(Box::new([target])),
        ..empty_image()
    }))
}

/// The arguments of a call.
struct Call {
    arguments: Vec<Argument>,
    names: Vec<String>,
    tensors: Vec<Tensor<u8>>,
    /// What expressions of the command line may name.
    numbers: Vec<(String, String)>,
}

fn arguments(command: &Bench, stream: &Stream, code: &KernelCode) -> Result<Call> {
    let func = &code.authored;
    let names: Vec<String> = func.params.iter().map(|param| shown_name(func, param)).collect();
    let mut sizes = named("--size", &command.sizes)?;
    let mut scalars = named("--scalar", &command.scalars)?;
    let mut numbers: Vec<(String, String)> = code
        .values
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), constant(value)?)))
        .chain(sizes.clone())
        .chain(scalars.clone())
        .collect();
    let mut extents: HashMap<Var, i128> = HashMap::new();
    for var in open_extents(func) {
        let Some(text) = sizes.remove(var.name()) else {
            continue;
        };
        let value = crate::literal::integer(&text).filter(|value| (0..1 << 40).contains(value));
        let value = value.ok_or_else(|| user(format_args!("--size {}: `{text}` is no size", var.name())))?;
        extents.insert(var, value);
    }
    let mut values: Vec<Option<Argument>> = Vec::new();
    for (param, name) in func.params.iter().zip(&names) {
        if func.buffer_of(param).is_some() {
            values.push(None);
            continue;
        }
        if param.ty().is_tensor_map() {
            return Err(user(format_args!(
                "`{name}` is a tensor map, which a program gives: only kernels that make their own are measured here"
            )));
        }
        let dtype = param.dtype();
        let given = scalars.remove(name.as_str());
        let given = given.or_else(|| extents.get(param).map(i128::to_string));
        let value = match given {
            Some(text) => scalar(name, dtype, &text)?,
            None if dtype.is_floating() => Argument::Float(1.0),
            None => {
                return Err(user(format_args!(
                    "scalar `{name}` is missing\n  = help: give --scalar {name}=VALUE"
                )));
            }
        };
        if let Argument::Int(value) = value {
            extents.insert(param.clone(), dtype.wrap(value.into()));
            numbers.push((name.clone(), value.to_string()));
        }
        values.push(Some(value));
    }
    if let Some(unknown) = sizes.keys().next() {
        let known: Vec<String> = open_extents(func)
            .iter()
            .map(|var| var.name().to_string())
            .collect();
        let help = match known.as_slice() {
            [] => "its shapes are all fixed".to_string(),
            known => format!("its extents are {}", known.join(", ")),
        };
        return Err(user(format_args!(
            "--size {unknown}: the kernel has no such extent\n  = help: {help}"
        )));
    }
    if let Some(unknown) = scalars.keys().next() {
        return Err(user(format_args!(
            "--scalar {unknown}: the kernel has no such parameter"
        )));
    }
    let mut tensors = Vec::new();
    let mut arguments = Vec::new();
    for (number, (param, value)) in func.params.iter().zip(values).enumerate() {
        let (Some(buffer), None) = (func.buffer_of(param), &value) else {
            arguments.extend(value);
            continue;
        };
        let missing = |_| {
            let open: Vec<String> = open_extents(func)
                .iter()
                .filter(|var| !extents.contains_key(*var))
                .map(|var| format!("--size {}=…", var.name()))
                .collect();
            user(format_args!(
                "the shape of `{}` is not known\n  = help: give {}",
                names[number],
                open.join(" ")
            ))
        };
        let shape = inferred_shape(&names[number], &buffer.shape, &extents).map_err(missing)?;
        let elements = shape
            .iter()
            .try_fold(1usize, |all, e| all.checked_mul(usize::try_from(*e).ok()?));
        let bits = elements
            .and_then(|n| n.checked_mul(usize::from(buffer.dtype.bits) * usize::from(buffer.dtype.lanes)));
        let bytes = bits
            .map(|bits| bits.div_ceil(8))
            .filter(|bytes| *bytes <= 1 << 38);
        let bytes = bytes.ok_or_else(|| {
            user(format_args!(
                "`{}` of shape {shape:?} is too large",
                names[number]
            ))
        })?;
        let contents = values::normal(buffer.dtype, bytes.max(1), number);
        let tensor = Tensor::from_slice(stream, &contents, [contents.len()]).map_err(user)?;
        arguments.push(Argument::Tensor {
            dtype: buffer.dtype,
            shape,
            address: tensor.address(),
            byte_offset: 0,
        });
        tensors.push(tensor);
    }
    Ok(Call {
        arguments,
        names,
        tensors,
        numbers,
    })
}

/// A value as Python writes it, where it is a number.
fn constant(value: &ConstValue) -> Option<String> {
    match value {
        ConstValue::Int(value) => Some(value.to_string()),
        ConstValue::Float(value) => Some(format!("{value:?}")),
        ConstValue::Bool(value) => Some(if *value { "1" } else { "0" }.to_string()),
        _ => None,
    }
}

/// The names that the shapes of a kernel's tensors leave open, in order.
fn open_extents(func: &PrimFunc) -> Vec<Var> {
    let mut open: Vec<Var> = Vec::new();
    let shapes = func.params.iter().filter_map(|param| func.buffer_of(param));
    for extent in shapes.flat_map(|buffer| buffer.shape.iter()) {
        if let Some(var) = extent.as_var()
            && !open.contains(var)
        {
            open.push(var.clone());
        }
    }
    open
}

/// A launch that is repeated.
struct Repeated {
    function: usize,
    config: LaunchConfig,
    args: Vec<u64>,
    maps: Vec<TensorMap>,
}

/// The launches of one call.
fn launches(stream: &Stream, code: &KernelCode, call: &Call) -> Result<(Vec<Repeated>, u64, u64)> {
    let module = &code.lowered;
    let mut all = Vec::new();
    let (mut read, mut written) = (0, 0);
    let result = host::run(module, &call.names, &call.arguments, &mut |launch| {
        let functions = abi::device_functions(module);
        let at = functions
            .iter()
            .position(|(symbol, _)| **symbol == *launch.symbol);
        let at = at.ok_or("the module has no such device function")?;
        let (r, w) = traffic(module, functions[at].1, launch, &call.tensors);
        read += r;
        written += w;
        let mut args = launch.args.clone();
        let mut maps = Vec::new();
        for (argument, map) in &launch.tensor_maps {
            args[*argument] = maps.len() as u64;
            let spec = TensorMapSpec {
                data_type: map.dtype as u32,
                address: map.address,
                dims: &map.dims,
                strides: &map.strides,
                box_dims: &map.box_dims,
                element_strides: &map.element_strides,
                interleave: map.interleave.into(),
                swizzle: map.swizzle as u32,
                l2_promotion: map.l2_promotion.into(),
                oob_fill: map.nan_fill.into(),
            };
            maps.push(TensorMap::tiled(stream, &spec).map_err(|e| e.to_string())?);
        }
        all.push(Repeated {
            function: at,
            config: LaunchConfig {
                grid: launch.grid,
                block: launch.block,
                shared_bytes: launch.shared_bytes,
                cluster: launch.cluster,
                preferred_cluster: launch.preferred_cluster,
                cooperative: launch.cooperative,
                programmatic: launch.programmatic,
            },
            args,
            maps,
        });
        Ok(())
    });
    result.map_err(|message| user(format_args!("kernel `{}`: {message}", code.kernel)))?;
    Ok((all, read, written))
}

/// Bytes of the tensors that a launch reads, and of those that it writes.
fn traffic(
    module: &IRModule,
    function: &PrimFunc,
    launch: &host::Launch,
    tensors: &[Tensor<u8>],
) -> (u64, u64) {
    let (mut read, mut written) = (0, 0);
    let uses = abi::param_uses(module, function);
    for (at, uses) in uses.iter().enumerate() {
        let map = launch.tensor_maps.iter().find(|(argument, _)| *argument == at);
        let address = map.map_or_else(
            || launch.args.get(at).copied().unwrap_or(0),
            |(_, map)| map.address,
        );
        let tensor = tensors.iter().find(|tensor| tensor.address() == address);
        let is_pointer = function.params.get(at).is_some_and(|p| p.dtype().is_handle());
        if let Some(tensor) = tensor.filter(|_| is_pointer) {
            read += u64::from(uses.read) * tensor.len() as u64;
            written += u64::from(uses.written) * tensor.len() as u64;
        }
    }
    (read, written)
}

fn measure(
    command: &Bench,
    device: &Device,
    gpu: Option<DeviceProperties>,
    code: &KernelCode,
) -> Result<Measured> {
    let stream = device.default_stream();
    let call = arguments(command, &stream, code)?;
    let operations = command
        .operations
        .as_ref()
        .map(|text| number(text, &call.numbers))
        .transpose()?;
    let (launches, read, written) = launches(&stream, code, &call)?;
    let kernel = leak(Box::new(Kernel::new(image(code))));
    let failed = |error: tirx_rt::Error| match error {
        tirx_rt::Error::Fault(fault) => Failure::User(vec![fault.to_diagnostic()]),
        error => user(error),
    };
    let calls = |count: u32| -> Result<Duration> {
        let start = stream.record().map_err(failed)?;
        for _ in 0..count {
            for launch in &launches {
                let maps: Vec<&TensorMap> = launch.maps.iter().collect();
                #[expect(unsafe_code, reason = "the launches are those of the host function")]
                // SAFETY: function, arguments and extents are those that the kernel's host function launches with, of
                // tensors with the shapes that it has checked, which live until the stream is done.
                let launched = unsafe {
                    kernel.launch_with_tensor_maps(
                        launch.function,
                        &stream,
                        &launch.config,
                        &launch.args,
                        &maps,
                    )
                };
                launched.map_err(failed)?;
            }
        }
        let end = stream.record().map_err(failed)?;
        stream.synchronize().map_err(failed)?;
        end.elapsed_since(&start).map_err(failed)
    };
    // The first call loads the image.
    let mut one = calls(1)?;
    let mut count = 1;
    if gpu.is_some() {
        one = calls(1)?.min(one);
        let least = one.max(Duration::from_nanos(200));
        let wanted = LEAST_SAMPLE.as_secs_f64() / least.as_secs_f64();
        count = (wanted.ceil() as u32).clamp(1, MOST_LAUNCHES);
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
        read,
        written,
        operations,
        unit: command.unit.unwrap_or_else(|| Unit::of(&code.cuda)),
        gpu,
    })
}

/// The value of a Python expression of named numbers.
fn number(text: &str, numbers: &[(String, String)]) -> Result<f64> {
    let mut program: String = numbers
        .iter()
        .map(|(name, value)| format!("{name} = {value}\n"))
        .collect();
    program += &format!("__operations = ({text})\n");
    let mut sources = SourceMap::new();
    let known: Vec<&str> = numbers.iter().map(|(name, _)| name.as_str()).collect();
    let bad = |why: String| {
        user(format_args!(
            "bad --operations: {why}\n  = help: it may use {}",
            if known.is_empty() {
                "numbers alone".to_string()
            } else {
                known.join(", ")
            }
        ))
    };
    let file = KernelFile::load(&mut sources, "--operations", &program, &NoImports);
    let value = file.and_then(|file| file.constant("__operations"));
    match value {
        Ok(Some(ConstValue::Int(value))) => Ok(value as f64),
        Ok(Some(ConstValue::Float(value))) => Ok(value),
        Ok(_) => Err(bad(format!("`{text}` is no number"))),
        Err(errors) => {
            let first = errors.messages(&sources).into_iter().next();
            Err(bad(first.map_or_else(
                || format!("`{text}` is no number"),
                |first| first.text,
            )))
        }
    }
}

fn as_json(all: &[Measured]) -> String {
    let object = |m: &Measured| -> Value {
        json!({
            "kernel": m.kernel,
            "target": m.target,
            "device": m.device,
            "seconds": m.median(),
            "fastest": m.quantile(0.0),
            "tenth": m.quantile(0.1),
            "ninetieth": m.quantile(0.9),
            "slowest": m.quantile(1.0),
            "samples": m.seconds.len(),
            "calls": m.calls,
            "bytes_read": m.read,
            "bytes_written": m.written,
            "bytes_per_second": m.bytes_per_second(),
            "peak_bytes_per_second": m.peak_bytes(),
            "operations": m.operations,
            "operations_per_second": m.operations_per_second(),
            "peak_operations_per_second": m.peak_operations(),
            "unit": m.unit.name(),
        })
    };
    let all: Vec<Value> = all.iter().map(object).collect();
    format!("{}\n", serde_json::to_string_pretty(&all).unwrap_or_default())
}

/// A time with a fitting unit.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

fn as_table(all: &[Measured]) -> String {
    let mut text = String::new();
    if let Some(first) = all.first() {
        text += &format!("{}\n", first.device);
    }
    let mut table = Table::new([
        "kernel", "target", "median", "10 %", "90 %", "GB/s", "of peak", "TFLOP/s", "of peak", "peak of",
    ]);
    let share = |value: f64, peak: Option<f64>| match peak {
        Some(peak) => format!("{:.1} %", 100.0 * value / peak),
        None => "?".to_string(),
    };
    for m in all {
        let operations = m.operations_per_second();
        table.row(vec![
            m.kernel.clone(),
            m.target.clone(),
            time(m.median()),
            time(m.quantile(0.1)),
            time(m.quantile(0.9)),
            format!("{:.1}", m.bytes_per_second() / 1e9),
            share(m.bytes_per_second(), m.peak_bytes()),
            operations.map_or("?".to_string(), |value| format!("{:.2}", value / 1e12)),
            operations.map_or("?".to_string(), |value| share(value, m.peak_operations())),
            m.unit.name().to_string(),
        ]);
    }
    text += &table.text();
    if all.iter().any(|m| m.operations.is_none()) {
        text += "operations are not known: give them with --operations, for example \"2*M*N*K\"\n";
    }
    if all.iter().any(|m| m.gpu.is_none()) {
        text += "the simulator's time says nothing of a GPU's\n";
    }
    text
}
