//! The C++ compiler that nvcc runs. Elsewhere than on Windows nvcc finds it on PATH; there it is Visual Studio's `cl.exe`, which is on
//! PATH in a developer's command prompt only. It is found as the crate `cc` finds it: by the prompt's variables, else by the
//! installer's registry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler, and the variables that it needs.
type Found = (PathBuf, Vec<(OsString, OsString)>);

/// Tells nvcc on Windows which compiler to run. `variables` are those that nvcc reads, by which a user chooses one.
pub(super) fn prepare(command: &mut Command, variables: &[(&'static str, Option<OsString>)]) {
    if cfg!(windows) {
        set(command, variables, visual_studio());
    }
}

#[cfg(windows)]
fn visual_studio() -> Option<Found> {
    let tool = find_msvc_tools::find_tool(std::env::consts::ARCH, "cl.exe")?;
    Some((
        tool.path().to_path_buf(),
        tool.env().into_iter().cloned().collect(),
    ))
}

#[cfg(not(windows))]
fn visual_studio() -> Option<Found> {
    None
}

fn set(command: &mut Command, variables: &[(&'static str, Option<OsString>)], found: Option<Found>) {
    // CUDA's headers need the preprocessor of the standard.
    command.args(["-Xcompiler", "/Zc:preprocessor"]);
    let chosen = variables.iter().any(|(name, value)| {
        let value = value.as_ref().map(|value| value.to_string_lossy());
        value.is_some_and(|value| {
            *name == "NVCC_CCBIN" || value.contains("-ccbin") || value.contains("--compiler-bindir")
        })
    });
    if let Some((program, environment)) = found.filter(|_| !chosen) {
        command
            .arg("-ccbin")
            .arg(program.parent().unwrap_or(Path::new(".")))
            .envs(environment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(variables: &[(&'static str, Option<OsString>)], found: Option<Found>) -> Vec<String> {
        let mut command = Command::new("nvcc");
        set(&mut command, variables, found);
        let arguments = command.get_args().map(|a| a.to_string_lossy().into_owned());
        arguments.collect()
    }

    #[test]
    fn nvcc_is_told_of_visual_studio_unless_the_user_has_chosen() {
        let found = || Some((PathBuf::from("vs/bin/cl.exe"), Vec::new()));
        let preprocessor = ["-Xcompiler", "/Zc:preprocessor"];
        assert_eq!(
            arguments(&[("NVCC_CCBIN", None)], found()),
            [&preprocessor[..], &["-ccbin", "vs/bin"]].concat()
        );
        assert_eq!(arguments(&[], None), preprocessor);
        let flags = ("NVCC_APPEND_FLAGS", Some("-ccbin C:/other".into()));
        assert_eq!(arguments(&[flags], found()), preprocessor);
        let variable = ("NVCC_CCBIN", Some("C:/other".into()));
        assert_eq!(arguments(&[variable], found()), preprocessor);
    }
}
