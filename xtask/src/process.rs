//! Running other programs.

use std::ffi::OsStr;
use std::process::Command;

/// An error is a message for the developer.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A run of the cargo that runs this task, from the workspace's root.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(crate::root());
    command
}

/// Runs to the end; an error names the command that failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(())
}

/// Runs to the end and gives what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{text}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
