//! The libraries of the C interface: the C text compiled, archived and linked with the compiler that `cc` finds.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::CApi;
use crate::environment::Environment;
use crate::error::{Error, Result};

/// Help for errors of the C compiler.
const C_COMPILER: &str = "a C compiler is needed: install one (`gcc` or `clang` of the system's packages), or name it in \
                          the variable CC; `cargo tirx doctor` shows the compiler that a build finds";
/// Help for errors of the librarian.
const ARCHIVER: &str =
    "`ar` is needed, which comes with the C compiler's binutils; the variable AR names another";

/// Compiles the sources in a folder into the libraries there.
pub(super) fn compile(
    api: &CApi,
    folder: &Path,
    sources: &[PathBuf],
    environment: &Environment,
) -> Result<()> {
    let lib = folder.join("lib");
    let host = environment
        .get("HOST")
        .map_or_else(host_triple, |v| v.to_string_lossy().into_owned());
    let target = environment
        .get("TARGET")
        .map_or_else(|| host.clone(), |v| v.to_string_lossy().into_owned());
    let mut build = cc::Build::new();
    build
        .files(sources)
        .include(folder.join("src"))
        .out_dir(folder.join("src"))
        .target(&target)
        .host(&host)
        .opt_level(2)
        .debug(false)
        .pic(true)
        .warnings(false)
        .cargo_metadata(false)
        .cargo_warnings(false)
        .flag_if_supported("-std=c11")
        // Host expressions wrap, so that signed overflow must not be undefined.
        .flag_if_supported("-fwrapv")
        .flag_if_supported("-fvisibility=hidden");
    let failed = |what: &str, message: String| {
        let text = format!("the C interface `{}`: {what}: {}", api.name, message.trim_end());
        Error::new(text).help(C_COMPILER)
    };
    let objects = build.try_compile_intermediates().map_err(|e| {
        let message = match said_by_compiler(&build, sources, folder) {
            Some(said) => format!("{e}\n{said}"),
            None => e.to_string(),
        };
        failed("compiling", message)
    })?;
    let mut archive = cc::Build::new();
    archive
        .objects(&objects)
        .out_dir(&lib)
        .target(&target)
        .host(&host)
        .opt_level(2)
        .cargo_metadata(false)
        .cargo_warnings(false);
    archive.try_compile(&api.name).map_err(|e| {
        let name = &api.name;
        Error::new(format_args!(
            "the C interface `{name}`: making the static library: {e}"
        ))
        .help(ARCHIVER)
    })?;
    if !api.shared {
        return Ok(());
    }
    let compiler = build
        .try_get_compiler()
        .map_err(|e| failed("finding the compiler", e.to_string()))?;
    let mut link: Command = compiler.to_command();
    let output = lib.join(shared_name(&api.name, &target));
    link.arg("-shared")
        .arg("-o")
        .arg(&output)
        .args(&objects)
        .arg("-lm");
    if target.contains("linux") {
        link.arg("-ldl");
    }
    let done = link
        .output()
        .map_err(|e| failed("making the shared library", e.to_string()))?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(failed("making the shared library", text));
    }
    Ok(())
}

/// The output of the compiler for the first source that it does not compile: `cc` passes it on to whoever reads the build
/// script's output, and its error has the command alone.
fn said_by_compiler(build: &cc::Build, sources: &[PathBuf], folder: &Path) -> Option<String> {
    /// Lines that are shown; what follows the first errors seldom matters.
    const MOST: usize = 30;
    let compiler = build.try_get_compiler().ok()?;
    let object = folder.join("src").join("failed.o");
    let output = sources.iter().find_map(|source| {
        let mut command = compiler.to_command();
        command.arg("-c").arg(source);
        match compiler.is_like_msvc() {
            true => command.arg(format!("-Fo{}", object.display())),
            false => command.arg("-o").arg(&object),
        };
        command.output().ok().filter(|output| !output.status.success())
    });
    let _ = std::fs::remove_file(&object);
    let output = output?;
    let text = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let lines: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    let mut shown: Vec<String> = lines
        .iter()
        .take(MOST)
        .map(|line| format!("    {line}"))
        .collect();
    if lines.len() > MOST {
        shown.push(format!("    … {} more lines", lines.len() - MOST));
    }
    (!shown.is_empty()).then(|| shown.join("\n"))
}

/// The file name of a shared library.
fn shared_name(name: &str, target: &str) -> String {
    match target {
        t if t.contains("windows") => format!("{name}.dll"),
        t if t.contains("apple") => format!("lib{name}.dylib"),
        _ => format!("lib{name}.so"),
    }
}

/// The host triple, where no build script gives one.
fn host_triple() -> String {
    let arch = std::env::consts::ARCH;
    match std::env::consts::OS {
        "macos" => format!("{arch}-apple-darwin"),
        "windows" => format!("{arch}-pc-windows-msvc"),
        os => format!("{arch}-unknown-{os}-gnu"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use tirx_test_tools::stand_in;

    use super::*;

    /// The output of a build of the C interface in a process with these variables: `cc` reads the process's
    /// environment.
    fn said(variables: &[(&str, &str)]) -> String {
        const FOLDER: &str = "TIRX_TEST_C_API_FOLDER";
        if let Some(folder) = std::env::var_os(FOLDER) {
            let api = CApi::new("kernels").shared(true).folder(folder);
            let result = api.build(&[], &Environment::process(), Path::new(""));
            let text = result
                .err()
                .map_or("built".to_string(), |error| error.to_string());
            println!("said: {text}\n.");
            std::process::exit(0);
        }
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "c_api::libraries::tests::a_compiler_that_does_not_work_is_named",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = out
            .split_once("said: ")
            .and_then(|(_, text)| text.split_once("\n.\n"));
        said.unwrap_or_else(|| panic!("{out}")).0.to_string()
    }

    #[test]
    fn a_compiler_that_does_not_work_is_named() {
        assert_eq!(said(&[]), "built");
        for (variables, what, help) in [
            (
                &[("CC", "/nowhere/my-cc")][..],
                &["compiling: ", "/nowhere/my-cc"][..],
                C_COMPILER,
            ),
            (&[("PATH", "/nowhere")], &["compiling: ", "cc"], C_COMPILER),
            (&[("CC", "false")], &["compiling: "], C_COMPILER),
            (
                &[("AR", "/nowhere/my-ar")],
                &["making the static library: ", "/nowhere/my-ar"],
                ARCHIVER,
            ),
        ] {
            let text = said(variables);
            assert!(text.starts_with("error: the C interface `kernels`: "), "{text}");
            assert!(text.ends_with(&format!("= help: {help}")), "{text}");
            for part in what {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        // A compiler that refuses a text says why.
        let folder = tempfile::tempdir().unwrap();
        let body = "case $* in *tirx_runtime.c*) echo \"k.c:7:1: error: conflicting types for 'tanh'\" >&2; exit 1;; esac\nexec cc \"$@\"";
        let script = stand_in::script(folder.path().join("my-cc"), body);
        let text = said(&[("CC", script.to_str().unwrap())]);
        assert!(
            text.contains("compiling: ")
                && text.contains("\n    k.c:7:1: error: conflicting types for 'tanh'\n"),
            "{text}"
        );
        // A compiler that compiles and does not link.
        let folder = tempfile::tempdir().unwrap();
        let body =
            "for word; do [ \"$word\" = -shared ] && { echo no linker >&2; exit 1; }; done\nexec cc \"$@\"";
        let script = stand_in::script(folder.path().join("my-cc"), body);
        let text = said(&[("CC", script.to_str().unwrap())]);
        assert!(
            text.contains("making the shared library: no linker") && text.contains(C_COMPILER),
            "{text}"
        );
    }
}
