//! Runs every example kernel on the best device, checks each result against plain Rust and prints a table.
//!
//! ```text
//! example-app INPUT.png OUTPUT.png
//! ```
//!
//! Without an input the program renders a Mandelbrot test card and works on that. The output picture (edges of the
//! blurred, equalized input) goes to `example-out.png`. Exit code 1 if a check fails.

mod picture;
mod pictures;
mod reference;
mod report;
mod tensor_cores;
mod vectors;

use std::path::PathBuf;
use std::process::ExitCode;

use picture::Picture;
use report::Report;
use tirx_rt::Device;

tirx_rt::include_kernels!();

type Error = Box<dyn std::error::Error>;

fn run() -> Result<bool, Error> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (input, output) = (args.next(), args.next());
    if args.next().is_some()
        || input
            .as_ref()
            .is_some_and(|i| i.to_string_lossy().starts_with('-'))
    {
        return Err("usage: example-app [INPUT.png [OUTPUT.png]]".into());
    }
    let device = Device::best()?;
    // The simulator has no CUDA compiler: it runs a Rust function in place of the kernel's raw CUDA source.
    device.stand_in("my_relu", |x: f32| if x > 0.0 { x } else { 0.0 });
    let stream = device.default_stream();
    let mut report = Report::new(&device);

    vectors::run(&stream, &mut report)?;
    tensor_cores::run(&stream, &mut report)?;
    let card = pictures::mandelbrot(&stream, &mut report)?;
    let source = match &input {
        Some(path) => Picture::read(path)?,
        None => card,
    };
    let result = pictures::process(&stream, &mut report, &source)?;
    let output = output.unwrap_or_else(|| "example-out.png".into());
    result.write(&output)?;

    println!("{report}");
    println!(
        "wrote {} ({} x {})",
        output.display(),
        result.width,
        result.height
    );
    Ok(report.passed())
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("error: a result is wrong");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
