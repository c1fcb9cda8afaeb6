//! The C interface: launchers in C around the kernels, their header, a static and a shared library, and the files by
//! which CMake and pkg-config find them.
//!
//! ```text
//! include/NAME.h            a function for each kernel
//! include/tirx_c.h          tensors, statuses, the last error, device memory
//! lib/libNAME.a, libNAME.so
//! lib/cmake/NAME/NAMEConfig.cmake, lib/pkgconfig/NAME.pc
//! src/                      the C text, for other compilers
//! ```
//!
//! The text is compiled with `cc`; nothing of CUDA is needed, for the run time opens the driver itself.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_core::codegen::c::{self, CLauncher};

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::GeneratedKernel;
use crate::nvcc::write_if_changed;

const HEADER: &str = include_str!("runtime/tirx_c.h");
const RUNTIME_HEADER: &str = include_str!("runtime/tirx_runtime.h");
const RUNTIME: &str = include_str!("runtime/tirx_runtime.c");

/// Help for errors of the C compiler.
const C_COMPILER: &str = "a C compiler is needed: install one (`gcc` or `clang` of the system's packages), or name it in \
                          the variable CC; `cargo tirx doctor` says which is found";
/// Help for errors of the librarian.
const ARCHIVER: &str =
    "`ar` is needed, which comes with the C compiler's binutils; the variable AR names another";

/// The C interface that [`Builder::c_api`](crate::Builder::c_api) makes.
///
/// ```no_run
/// use tirx_build::{Builder, CApi};
///
/// fn main() -> tirx_build::Result<()> {
///     Builder::new().c_api(CApi::new("my_kernels").shared(true)).compile()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct CApi {
    name: String,
    folder: Option<PathBuf>,
    shared: bool,
    link: bool,
}

impl CApi {
    /// A library and header of this name, in the folder `c_api` of the output.
    pub fn new(name: impl Into<String>) -> CApi {
        CApi {
            name: name.into(),
            folder: None,
            shared: false,
            link: false,
        }
    }

    /// Where to write.
    pub fn folder(mut self, path: impl Into<PathBuf>) -> CApi {
        self.folder = Some(path.into());
        self
    }

    /// Whether a shared library is made beside the static one. It also holds the functions of TVM's FFI.
    pub fn shared(mut self, shared: bool) -> CApi {
        self.shared = shared;
        self
    }

    /// Whether the static library is linked into the package that is built, for bindings in that package (by bindgen,
    /// for example).
    pub fn link(mut self, link: bool) -> CApi {
        self.link = link;
        self
    }

    /// The lines for Cargo about the library.
    pub(crate) fn directives(&self, out_dir: &Path) -> Vec<String> {
        let mut lines = vec!["cargo::rerun-if-env-changed=CC".to_string()];
        if self.link {
            let lib = self.place(out_dir).join("lib");
            lines.push(format!("cargo::rustc-link-search=native={}", lib.display()));
            lines.push(format!("cargo::rustc-link-lib=static={}", self.name));
        }
        lines
    }

    fn place(&self, out_dir: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| out_dir.join("c_api"))
    }

    /// Writes and compiles the interface of all kernels.
    pub(crate) fn build(
        &self,
        kernels: &[GeneratedKernel],
        environment: &Environment,
        out_dir: &Path,
    ) -> Result<()> {
        let named = !self.name.is_empty() && c::c_name(&self.name) == self.name;
        if !named {
            return Err(
                Error::new(format_args!("CApi: `{}` is no name of a C library", self.name))
                    .help("letters, digits and `_`, for example `my_kernels`"),
            );
        }
        let folder = self.place(out_dir);
        let places = [
            "include",
            "src",
            "lib/pkgconfig",
            &format!("lib/cmake/{}", self.name),
        ];
        for place in places {
            let path = folder.join(place);
            fs::create_dir_all(&path).map_err(|e| Error::io("create", &path, &e))?;
        }
        let mut launchers = Vec::new();
        let mut sources = vec![folder.join("src/tirx_runtime.c")];
        write(&folder.join("include/tirx_c.h"), HEADER)?;
        write(&folder.join("src/tirx_c.h"), HEADER)?;
        write(&folder.join("src/tirx_runtime.h"), RUNTIME_HEADER)?;
        write(&sources[0], RUNTIME)?;
        for kernel in kernels {
            for variant in &kernel.variants {
                let shown = match &variant.name {
                    Some(name) => format!("{}::{name}", kernel.name),
                    None => kernel.name.clone(),
                };
                let name = c::c_name(&shown);
                let compiled = &variant.compiled;
                if !variant.others.is_empty() {
                    let targets: Vec<String> = variant.each().filter_map(|v| v.own.clone()).collect();
                    return Err(Error::new(format_args!(
                        "the C interface has no launcher for kernel `{shown}`, whose code differs between {}",
                        targets.join(" and ")
                    ))
                    .help("make a library for each GPU, with Builder::targets, or give the kernel one of them as `targets`"));
                }
                let launcher = c::launcher(&name, &shown, &compiled.launcher.signature, &compiled.lowered)
                    .map_err(|d| Error::from_diagnostics(&d, &compiled.sources))?;
                let text = source(&launcher, variant.fatbin.as_deref(), &compiled.ir);
                let path = folder.join(format!("src/{name}.c"));
                write(&path, &text)?;
                sources.push(path);
                launchers.push((launcher, shown));
            }
        }
        write(
            &folder.join(format!("include/{}.h", self.name)),
            &header(&self.name, &launchers),
        )?;
        self.compile(&folder, &sources, environment)?;
        write(
            &folder.join(format!("lib/pkgconfig/{}.pc", self.name)),
            &pkg_config(&self.name),
        )?;
        write(
            &folder.join(format!("lib/cmake/{0}/{0}Config.cmake", self.name)),
            &cmake(&self.name, self.shared),
        )
    }

    fn compile(&self, folder: &Path, sources: &[PathBuf], environment: &Environment) -> Result<()> {
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
            let text = format!("the C interface `{}`: {what}: {}", self.name, message.trim_end());
            Error::new(text).help(C_COMPILER)
        };
        let objects = build
            .try_compile_intermediates()
            .map_err(|e| failed("compiling", e.to_string()))?;
        let mut archive = cc::Build::new();
        archive
            .objects(&objects)
            .out_dir(&lib)
            .target(&target)
            .host(&host)
            .opt_level(2)
            .cargo_metadata(false)
            .cargo_warnings(false);
        archive.try_compile(&self.name).map_err(|e| {
            let name = &self.name;
            Error::new(format_args!(
                "the C interface `{name}`: making the static library: {e}"
            ))
            .help(ARCHIVER)
        })?;
        if !self.shared {
            return Ok(());
        }
        let compiler = build
            .try_get_compiler()
            .map_err(|e| failed("finding the compiler", e.to_string()))?;
        let mut link: Command = compiler.to_command();
        let output = lib.join(shared_name(&self.name, &target));
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

fn write(path: &Path, text: &str) -> Result<()> {
    write_if_changed(path, text.as_bytes())
}

/// The C text of a kernel with its images.
fn source(launcher: &CLauncher, fatbin: Option<&[u8]>, ir: &[u8]) -> String {
    let name = &launcher.name;
    let mut text = String::from("/* Generated by tirx. */\n#include \"tirx_runtime.h\"\n\n");
    match fatbin {
        Some(bytes) => {
            text.push_str(&array(&format!("{name}_fatbin"), bytes));
            let _ = writeln!(text, "#define TIRX_FATBIN_{name} {name}_fatbin");
        }
        None => {
            let _ = writeln!(text, "#define TIRX_FATBIN_{name} NULL");
        }
    }
    text.push_str(&array(&format!("{name}_ir"), ir));
    text.push('\n');
    text.push_str(&launcher.text);
    text
}

/// Bytes as a C array, with the alignment that the driver requires of images.
fn array(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("static _Alignas(8) const unsigned char {name}[] = {{");
    for (i, byte) in bytes.iter().enumerate() {
        if i % 32 == 0 {
            text.push('\n');
        }
        let _ = write!(text, "{byte},");
    }
    text.push_str("\n};\n");
    text
}

fn header(name: &str, launchers: &[(CLauncher, String)]) -> String {
    let guard = format!("{}_H", name.to_uppercase());
    let mut text = format!(
        "/* Kernels of {name}. Generated by tirx.\n *\n \
         * Each function checks its arguments and enqueues the kernel on `stream` (NULL is the default stream). It gives\n \
         * TIRX_OK or a number of `tirx_status`; `tirx_last_error` then says what is wrong. Tensors are in the memory of\n \
         * one CUDA device and stay the caller's. */\n\
         #ifndef {guard}\n#define {guard}\n\n#include \"tirx_c.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n"
    );
    for (launcher, shown) in launchers {
        let _ = write!(text, "\n/* Kernel `{shown}`.\n");
        for param in &launcher.params {
            let _ = writeln!(text, " * - {param}");
        }
        let _ = write!(text, " */\n{};\n", launcher.prototype);
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

fn pkg_config(name: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nincludedir=${{prefix}}/include\nlibdir=${{prefix}}/lib\n\n\
         Name: {name}\nDescription: GPU kernels\nVersion: 0\nCflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -l{name}\nLibs.private: -ldl -lm\n"
    )
}

fn cmake(name: &str, shared: bool) -> String {
    let mut text = format!(
        "# Generated by tirx. find_package({name}) gives the target {name}::{name}.\n\
         get_filename_component(_tirx_root \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
         if(NOT TARGET {name}::{name})\n  \
         add_library({name}::{name} STATIC IMPORTED)\n  \
         set_target_properties({name}::{name} PROPERTIES\n    \
         IMPORTED_LOCATION \"${{_tirx_root}}/lib/${{CMAKE_STATIC_LIBRARY_PREFIX}}{name}${{CMAKE_STATIC_LIBRARY_SUFFIX}}\"\n    \
         INTERFACE_INCLUDE_DIRECTORIES \"${{_tirx_root}}/include\"\n    \
         INTERFACE_LINK_LIBRARIES \"${{CMAKE_DL_LIBS}};m\")\n"
    );
    if shared {
        let _ = write!(
            text,
            "  add_library({name}::{name}_shared SHARED IMPORTED)\n  \
             set_target_properties({name}::{name}_shared PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_tirx_root}}/lib/${{CMAKE_SHARED_LIBRARY_PREFIX}}{name}${{CMAKE_SHARED_LIBRARY_SUFFIX}}\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_tirx_root}}/include\")\n"
        );
    }
    text.push_str("endif()\n");
    text
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_library_can_have_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "my kernels", "1st", "a-b"] {
            let error = CApi::new(name).build(&[], &Environment::process(), folder.path());
            let message = error.unwrap_err().to_string();
            let text = format!("CApi: `{name}` is no name of a C library");
            assert!(message.contains(&text), "{message}");
            assert!(message.contains("letters, digits and `_`"), "{message}");
        }
    }

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
                "c_api::tests::a_compiler_that_does_not_work_is_named",
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
        // A compiler that compiles and does not link.
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("my-cc");
        let body = "#!/bin/sh\nfor word; do [ \"$word\" = -shared ] && { echo no linker >&2; exit 1; }; done\nexec cc \"$@\"\n";
        fs::write(&script, body).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).unwrap();
        let text = said(&[("CC", script.to_str().unwrap())]);
        assert!(
            text.contains("making the shared library: no linker") && text.contains(C_COMPILER),
            "{text}"
        );
    }
}
