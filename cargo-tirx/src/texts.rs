//! `cargo tirx lower`, `cuda` and `host`: the texts that a kernel becomes.

use std::mem::ManuallyDrop;
use std::time::Instant;

use tirx_build::compile::judge;
use tirx_core::codegen::host as host_ir;
use tirx_core::ir::on_one_stack;
use tirx_core::judge::gpu_of;
use tirx_core::script::print;
use tirx_core::transform::pass_names;

use crate::failure::{Result, choice, usage, user};
use crate::input::Input;
use crate::output::{self, Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct Lower {
    #[command(flatten)]
    input: Input,
    /// The last pass to run; `parse` prints the kernel as written. Without it, a kernel that cannot be built prints its IR, then the error.
    #[arg(long, value_name = "PASS")]
    stop_after: Option<String>,
    /// Prints a table of the time of each pass to stderr.
    #[arg(long)]
    timing: bool,
}

pub(crate) fn lower(command: &Lower, _: &Output) -> Result<()> {
    let input = &command.input;
    let mut settings = input.settings()?;
    settings.options.finalize_host = true;
    let parse_only = command.stop_after.as_deref() == Some("parse");
    settings.stop_after = command.stop_after.clone();
    if let Some(pass) = &command.stop_after
        && !parse_only
        && !pass_names().contains(&pass.as_str())
    {
        return Err(usage(format_args!(
            "there is no pass `{pass}`\n  = help: {}",
            choice(pass, &pass_names(), "the passes are parse,")
        )));
    }
    let loaded = input.load()?;
    let module = input.build(&loaded, &input.pick(&loaded)?)?;
    if parse_only {
        return out(&print(&module));
    }
    let named = input.gpu()?;
    if named.is_none() {
        settings.gpu = gpu_of(&module);
    }
    // The IR of a kernel that cannot be built is printed all the same.
    let judged = match command.stop_after {
        None => judge(module.clone(), &input.settings()?.without_dump(), named).map(|_| ()),
        Some(_) => Ok(()),
    };
    let start = Instant::now();
    let clock = move || start.elapsed().as_nanos() as u64;
    let mut times: Vec<(&str, u64)> = Vec::new();
    let lowered = input.lower(module, &settings, Some(&clock), &mut |step| {
        times.push((step.pass, step.nanoseconds.unwrap_or_default()));
    })?;
    if command.timing {
        let total: u64 = times.iter().map(|(_, time)| time).sum();
        for (pass, time) in times.iter().chain([&("total", total)]) {
            let share = *time as f64 / total.max(1) as f64 * 100.0;
            output::say(&format!(
                "{pass:<24} {:>10.1} µs {share:>5.1} %\n",
                *time as f64 / 1000.0
            ));
        }
    }
    out(&print(&lowered))?;
    Ok(judged?)
}

pub(crate) fn cuda(input: &Input, _: &Output) -> Result<()> {
    // The process ends with this text; taking the module apart before would be for nothing.
    let judged = on_one_stack(|| -> Result<_> { Ok(ManuallyDrop::new(input.judged()?)) })?;
    let source = &judged.cuda;
    if source.kernels.is_empty() {
        return Err(user("the module has no device function"));
    }
    out(&source.text)
}

pub(crate) fn host(input: &Input, _: &Output) -> Result<()> {
    let mut lowered = input.judged()?.lowered;
    lowered.functions.retain(|(_, func)| host_ir::is_host(func));
    if lowered.functions.is_empty() {
        return Err(user("the module has no host function"));
    }
    out(&print(&lowered))
}
