//! `cargo tirx sanitize`: the application under compute-sanitizer, with findings at the kernels' lines; where there is no GPU, on
//! the simulator by several schedules.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tirx_build::Environment;
use tirx_build::toolchain;

use crate::failure::{Result, user};
use crate::output::{Output, out, say};

#[derive(clap::Args, Debug)]
pub(crate) struct Sanitize {
    /// compute-sanitizer's tool: memcheck, racecheck, initcheck, synccheck.
    #[arg(long, value_name = "TOOL", default_value = "memcheck")]
    tool: String,
    /// Uses the simulator even if there is a GPU.
    #[arg(long)]
    simulator: bool,
    /// Simulator schedules to try.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Runs this program instead of building one with Cargo; build it with `TIRX_LINEINFO=1`.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The Cargo command to run, by default `run`; with --program, the program's arguments.
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// The variable that has builds name the kernels' lines in machine code.
const LINEINFO: (&str, &str) = ("TIRX_LINEINFO", "1");
/// How machine code names the folder of the manifest.
const HERE: &str = "/proc/self/cwd/";

pub(crate) fn run(command: &Sanitize, _: &Output) -> Result<()> {
    let arguments = match command.arguments.as_slice() {
        [] if command.program.is_none() => vec!["run".to_string()],
        given => given.to_vec(),
    };
    let why = match (command.simulator, toolchain::gpus(&Environment::process())) {
        (true, _) => "--simulator".to_string(),
        (_, Err(reason)) => reason,
        (_, Ok(gpus)) if gpus.is_empty() => "there is no GPU".to_string(),
        (_, Ok(_)) => match sanitizer() {
            Some(tool) => return on_gpu(command, &tool, &arguments),
            None => "there is no compute-sanitizer on PATH or in /usr/local/cuda/bin".to_string(),
        },
    };
    say(&format!("on the simulator ({why})\n"));
    on_simulator(command, &arguments)
}

fn sanitizer() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/local/cuda/bin")]);
    folders
        .map(|folder| folder.join("compute-sanitizer"))
        .find(|file| file.is_file())
}

/// Cargo, or the program of `--program`.
fn program(command: &Sanitize) -> Command {
    match &command.program {
        Some(program) => Command::new(program),
        None => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
    }
}

fn cannot_run(command: &Command, error: &std::io::Error) -> crate::failure::Failure {
    user(format_args!(
        "`{}` cannot be run: {error}",
        Path::new(command.get_program()).display()
    ))
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

fn on_gpu(command: &Sanitize, tool: &Path, arguments: &[String]) -> Result<()> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', ""));
    let runner = format!(
        "target.'cfg(all())'.runner = [{}, '--tool', {}, '--error-exitcode', '86']",
        quoted(&tool.to_string_lossy()),
        quoted(&command.tool)
    );
    let mut cargo = match &command.program {
        None => {
            let mut cargo = program(command);
            cargo.args(["--config", &runner]);
            cargo
        }
        Some(program) => {
            let mut sanitizer = Command::new(tool);
            sanitizer
                .args(["--tool", &command.tool, "--error-exitcode", "86"])
                .arg(program);
            sanitizer
        }
    };
    cargo
        .args(arguments)
        .env(LINEINFO.0, LINEINFO.1)
        .stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(|error| cannot_run(&cargo, &error))?;
    let mut findings = 0;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            let line = line.replace(HERE, "");
            findings += usize::from(line.starts_with("========= ") && place(&line).is_some());
            out(&format!("{line}\n"))?;
            if let Some(text) = place(&line).and_then(|(file, number)| source(file, number)) {
                out(&format!("=========         {text}\n"))?;
            }
        }
    }
    let status = child.wait().map_err(|error| cannot_run(&cargo, &error))?;
    match (status.success(), findings) {
        (true, 0) => out("compute-sanitizer has found nothing\n"),
        (true, _) => Ok(()),
        (false, _) => Err(user(format_args!(
            "compute-sanitizer or the program ended with {}",
            ended(status)
        ))),
    }
}

/// The file and line of `… in kernels/vector.py:7:add_kernel` and `… in kernels/vector.py:7`.
fn place(line: &str) -> Option<(&str, usize)> {
    let start = line.find(".py:")?;
    let file = line[..start + 3].rsplit([' ', '(']).next()?;
    let number: String = line[start + 4..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    Some((file, number.parse().ok()?))
}

fn source(file: &str, line: usize) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.lines().nth(line.checked_sub(1)?)?.trim().to_string())
}

fn on_simulator(command: &Sanitize, arguments: &[String]) -> Result<()> {
    for seed in 0..command.schedules {
        let mut cargo = program(command);
        cargo
            .args(arguments)
            .env("TIRX_SIM_SEED", seed.to_string())
            .env("TIRX_SIM_CHECK_OVERFLOW", "1")
            // The driver shows no GPU, so that programs that take the best device take the simulator.
            .env("CUDA_VISIBLE_DEVICES", "");
        // The first run is the user's to see; of the others what fails.
        let (status, said) = match seed {
            0 => (cargo.status(), Vec::new()),
            _ => match cargo.output() {
                Ok(output) => (Ok(output.status), [output.stdout, output.stderr].concat()),
                Err(error) => (Err(error), Vec::new()),
            },
        };
        let status = status.map_err(|error| cannot_run(&cargo, &error))?;
        if !status.success() {
            // A closed pipe is not an error.
            let _ = std::io::stderr().write_all(&said);
            let program = command.program.as_ref();
            let built = match (seed, program) {
                (0, None) => "the output above shows whether the build or the program fails; ",
                _ => "",
            };
            return Err(user(format_args!(
                "schedule {seed} fails ({})\n  = help: {built}`TIRX_SIM_SEED={seed} {} {}` repeats it",
                ended(status),
                program.map_or("cargo".into(), |program| program.display().to_string()),
                arguments.join(" ")
            )));
        }
    }
    out(&format!(
        "{} schedules of the simulator: none fails\n",
        command.schedules
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_findings_are_read() {
        assert_eq!(
            place("=========     at add_kernel+0x110 in kernels/vector.py:7"),
            Some(("kernels/vector.py", 7))
        );
        assert_eq!(
            place("=========     at (kernels/v.py:12:k+0x10)"),
            Some(("kernels/v.py", 12))
        );
        assert_eq!(place("========= ERROR SUMMARY: 1 error"), None);
    }
}
