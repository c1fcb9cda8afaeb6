//! `cargo tirx profile`: the records of a kernel's `CudaProfiler`, from a GPU or the simulator, as a timeline and a table.

use std::path::PathBuf;

use tirx_rt::Profile;

use crate::failure::{Result, user};
use crate::npy;
use crate::output::{Output, out};

#[derive(clap::Args, Debug)]
pub(crate) struct ProfileCommand {
    /// The profiler's buffer: a .npy file of uint64, written by `cargo tirx sim --out` or NumPy.
    records: PathBuf,
    /// The names of the events, by number.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    names: Vec<String>,
    /// Writes a timeline for Perfetto to this file.
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
}

pub(crate) fn run(command: &ProfileCommand, _: &Output) -> Result<()> {
    let shown = command.records.display();
    let array = npy::read(&command.records).map_err(user)?;
    if !npy::holds(&array.descr, tirx_core::ir::DType::UINT64) {
        return Err(user(format_args!(
            "`{shown}` holds elements of `{}`, and records are of uint64",
            array.descr
        )));
    }
    let (words, _) = array.bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let names: Vec<&str> = command.names.iter().map(String::as_str).collect();
    let profile =
        Profile::decode(&words, &names).map_err(|error| user(format_args!("`{shown}`: {error}")))?;
    if let Some(path) = &command.out {
        std::fs::write(path, profile.to_perfetto())
            .map_err(|error| user(format_args!("cannot write `{}`: {error}", path.display())))?;
    }
    out(&profile.summary())
}
