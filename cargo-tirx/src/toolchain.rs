//! `cargo tirx toolchain`: the nvcc that builds use, and those that were fetched.

use tirx_build::Environment;
use tirx_build::manifest::Manifest;
use tirx_build::toolchain::{self, Discovered, Nvcc, Pin, Search};

use crate::failure::{Result, usage, user};
use crate::output::{self, Output, out};

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Toolchain {
    /// Fetches the pinned nvcc through pip into the per-user cache.
    Install {
        /// The CUDA release; defaults to the one pinned by `kernels.toml` here, or 13.0.
        #[arg(long, value_name = "RELEASE")]
        cuda: Option<String>,
    },
    /// Fetches nvdisasm, which `cargo tirx asm` uses to show machine code, through pip into the per-user cache.
    Nvdisasm,
    /// Lists the fetched toolchains.
    List,
    /// Removes a fetched toolchain.
    Remove {
        /// The CUDA release, as `toolchain list` prints it.
        #[arg(value_name = "RELEASE")]
        cuda: String,
    },
    /// Prints the nvcc that a build here would use, with the reason.
    Show,
    /// Prints the path of the nvcc that a build here would use.
    Path,
}

pub(crate) fn run(command: &Toolchain, _: &Output) -> Result<()> {
    let environment = Environment::process();
    match command {
        Toolchain::Install { cuda } => {
            let text = cuda.clone().or_else(|| pinned().map(|pin| pin.to_string()));
            let pin = release(&text.unwrap_or_else(|| "13.0".to_string()))?;
            let nvcc = toolchain::install(&environment, pin, &mut |line| output::say(&format!("{line}\n")))?;
            out(&format!("{nvcc}\n"))
        }
        Toolchain::Nvdisasm => {
            let file =
                toolchain::install_disassembler(&environment, &mut |line| output::say(&format!("{line}\n")))?;
            out(&format!("{}\n", file.display()))
        }
        Toolchain::List => {
            let used = used(&environment).ok().flatten();
            let lines: String = toolchain::installed(&environment)
                .iter()
                .map(|nvcc| {
                    let mark = match used.as_ref().is_some_and(|used| used.path == nvcc.path) {
                        true => " (builds here use it)",
                        false => "",
                    };
                    format!("{} {} {}{mark}\n", nvcc.version, nvcc.build, nvcc.path.display())
                })
                .collect();
            match lines.is_empty() {
                true => out("no toolchain was fetched\n"),
                false => out(&lines),
            }
        }
        Toolchain::Remove { cuda } => {
            let pin = release(cuda)?;
            match toolchain::remove(&environment, pin)? {
                true => out(&format!("removed nvcc {pin}\n")),
                false => Err(user(format_args!(
                    "no toolchain {pin} was fetched\n  = help: `cargo tirx toolchain list` prints those that were"
                ))),
            }
        }
        Toolchain::Show => match used(&environment)? {
            Some(nvcc) => out(&format!("{nvcc}\n")),
            None => out("none (TIRX_NVCC is `none`)\n"),
        },
        Toolchain::Path => match used(&environment)? {
            Some(nvcc) => out(&format!("{}\n", nvcc.path.display())),
            None => Err(user(
                "no nvcc is used: TIRX_NVCC is `none`\n  = help: unset TIRX_NVCC",
            )),
        },
    }
}

fn release(text: &str) -> Result<Pin> {
    text.parse().map_err(|_| {
        usage(format_args!(
            "`{text}` is no CUDA release\n  = help: write it as 13.0"
        ))
    })
}

/// The release that the manifest here pins, if it can be read.
pub(crate) fn pinned() -> Option<Pin> {
    let text = std::fs::read_to_string("kernels.toml").ok()?;
    Manifest::parse("kernels.toml", &text).ok()?.toolchain.cuda
}

/// The nvcc that a build here would use; `None` where TIRX_NVCC says that none is to be.
fn used(environment: &Environment) -> Result<Option<Nvcc>> {
    let search = Search {
        environment,
        pin: pinned(),
        needs: None,
        prefixes: None,
    };
    match toolchain::discover(&search)? {
        Discovered::Found(nvcc) => Ok(Some(nvcc)),
        Discovered::Unsuitable(error) => Err(error.into()),
        Discovered::Refused => Ok(None),
        Discovered::Nothing => Err(user(
            "no nvcc was found\n  = help: run `cargo tirx toolchain install`, or set TIRX_NVCC to the nvcc to use",
        )),
    }
}
