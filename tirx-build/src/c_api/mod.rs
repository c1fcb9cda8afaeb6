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
//! With the feature `c-api` the text is compiled with `cc` (`libraries`). Nothing of CUDA is needed, for the run time opens the
//! driver itself.

mod dependency;
#[cfg(feature = "c-api")]
mod libraries;
#[cfg(not(feature = "c-api"))]
mod libraries {
    use std::path::{Path, PathBuf};

    use super::CApi;
    use crate::environment::Environment;
    use crate::error::{Error, Result};

    pub(super) fn compile(api: &CApi, folder: &Path, _: &[PathBuf], _: &Environment) -> Result<()> {
        let text = format!(
            "the C interface `{}`: its text is in `{}`, and libraries are made with the feature `c-api` of tirx-build",
            api.name,
            folder.join("src").display()
        );
        Err(Error::new(text)
            .help("turn on the feature `c-api` of the build-dependency `tirx-build` in Cargo.toml"))
    }
}

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tirx_core::codegen::c::{self, CLauncher};

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::generate::{GeneratedKernel, docs};
use crate::nvcc::write_if_changed;

/// Names of headers and libraries that programs have anyway.
const OTHERS: &[&str] = &[
    "assert",
    "c",
    "complex",
    "ctype",
    "cuda",
    "dl",
    "errno",
    "fenv",
    "float",
    "inttypes",
    "iso646",
    "limits",
    "locale",
    "m",
    "math",
    "pthread",
    "rt",
    "setjmp",
    "signal",
    "stdalign",
    "stdarg",
    "stdatomic",
    "stdbool",
    "stddef",
    "stdint",
    "stdio",
    "stdlib",
    "stdnoreturn",
    "string",
    "tgmath",
    "threads",
    "time",
    "tirx_c",
    "uchar",
    "unistd",
    "wchar",
    "wctype",
];

const HEADER: &str = include_str!("runtime/tirx_c.h");
const RUNTIME_HEADER: &str = include_str!("runtime/tirx_runtime.h");
const RUNTIME: &str = include_str!("runtime/tirx_runtime.c");

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
    prefix: String,
    folder: Option<PathBuf>,
    shared: bool,
    link: bool,
}

impl CApi {
    /// A library and header of this name, in the folder `c_api` of the output.
    pub fn new(name: impl Into<String>) -> CApi {
        CApi {
            name: name.into(),
            prefix: String::new(),
            folder: None,
            shared: false,
            link: false,
        }
    }

    /// What the names of the kernels' functions begin with: with `my_` the kernel `scale` is the C function `my_scale`. Without
    /// it, a kernel that is called as a function of C's library, `tanh` say, is the C function `k_tanh`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> CApi {
        self.prefix = prefix.into();
        self
    }

    /// Where to write; a relative path begins at the package's folder. A package that is built as a dependency of another
    /// workspace, or that comes from a registry, keeps its sources as they are: its interface is in the folder `c_api` of the
    /// output.
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
    pub(crate) fn directives(&self, environment: &Environment, out_dir: &Path) -> Vec<String> {
        let mut lines = vec!["cargo::rerun-if-env-changed=CC".to_string()];
        let place = self.place(environment, out_dir);
        // For packages that depend on this one: `DEP_…_TIRX_C_API`.
        if environment.peek("CARGO_MANIFEST_LINKS").is_some() {
            lines.push(format!("cargo::metadata=TIRX_C_API={}", place.display()));
        }
        if self.link {
            let lib = place.join("lib");
            lines.push(format!("cargo::rustc-link-search=native={}", lib.display()));
            lines.push(format!("cargo::rustc-link-lib=static={}", self.name));
        }
        lines
    }

    fn place(&self, environment: &Environment, out_dir: &Path) -> PathBuf {
        let package = environment.path_peek("CARGO_MANIFEST_DIR").unwrap_or_default();
        let own = || out_dir.join("c_api");
        match &self.folder {
            None => own(),
            Some(folder) if folder.is_absolute() => {
                match folder.starts_with(&package) && dependency::is_one(&package) {
                    true => own(),
                    false => folder.clone(),
                }
            }
            Some(_) if dependency::is_one(&package) => own(),
            Some(folder) => package.join(folder),
        }
    }

    fn check_names(&self) -> Result<()> {
        if !c::is_identifier(&self.name) {
            return Err(
                Error::new(format_args!("CApi: `{}` is no name of a C library", self.name))
                    .help("letters, digits and `_`, for example `my_kernels`"),
            );
        }
        // Programs include `NAME.h` and link `-lNAME`.
        if OTHERS.contains(&self.name.as_str()) {
            let text = format!("CApi: `{}` is the name of another header or library", self.name);
            return Err(Error::new(text).help(format_args!("use for example `{}_kernels`", self.name)));
        }
        if !self.prefix.is_empty() && !c::is_identifier(&self.prefix) {
            let text = format!("CApi::prefix: no name of C begins with `{}`", self.prefix);
            return Err(Error::new(text).help("letters, digits and `_`, for example `my_`"));
        }
        Ok(())
    }

    /// Writes and compiles the interface of all kernels.
    pub(crate) fn build(
        &self,
        kernels: &[GeneratedKernel],
        environment: &Environment,
        out_dir: &Path,
    ) -> Result<()> {
        self.check_names()?;
        let folder = self.place(environment, out_dir);
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
                let name = c::c_name(&format!("{}{shown}", self.prefix));
                if let Some((_, other, _)) = launchers
                    .iter()
                    .find(|(known, ..): &&(CLauncher, String, _)| known.name == name)
                {
                    return Err(Error::new(format_args!(
                        "the C interface `{}`: kernels `{other}` and `{shown}` would both be the C function `{name}`",
                        self.name
                    ))
                    .help("give one of the kernels another name in the manifest"));
                }
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
                let docstring = docs::plain_docstring(&compiled.sources, compiled.authored.span);
                launchers.push((launcher, shown, docstring));
            }
        }
        write(
            &folder.join(format!("include/{}.h", self.name)),
            &header(&self.name, &launchers),
        )?;
        libraries::compile(self, &folder, &sources, environment)?;
        write(
            &folder.join(format!("lib/pkgconfig/{}.pc", self.name)),
            &pkg_config(&self.name),
        )?;
        write(
            &folder.join(format!("lib/cmake/{0}/{0}Config.cmake", self.name)),
            &cmake(&self.name, self.shared),
        )
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

fn header(name: &str, launchers: &[(CLauncher, String, Vec<String>)]) -> String {
    let guard = format!("{}_H", name.to_uppercase());
    let mut text = format!(
        "/* Kernels of {name}. Generated by tirx.\n *\n \
         * Each function checks its arguments and enqueues the kernel on `stream` (NULL is the default stream). It gives\n \
         * TIRX_OK or a number of `tirx_status`; `tirx_last_error` then describes the error. Tensors are in the memory of\n \
         * one CUDA device and stay the caller's. */\n\
         #ifndef {guard}\n#define {guard}\n\n#include \"tirx_c.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n"
    );
    for (launcher, shown, docstring) in launchers {
        text.push('\n');
        text.push_str(&comment(docstring));
        let _ = write!(text, "/* Kernel `{shown}`");
        let _ = match launcher.name.strip_prefix("k_") {
            Some(taken) if c::c_name(shown) == launcher.name && taken == shown.replace("::", "_") => {
                writeln!(text, ", under another name than C's own `{taken}`.")
            }
            _ => writeln!(text, "."),
        };
        for param in &launcher.params {
            text.push_str(&comment_line(&format!("- {param}")));
        }
        let _ = write!(text, " */\n{};\n", launcher.prototype);
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

/// A kernel's own documentation as a comment.
fn comment(docstring: &[String]) -> String {
    let lines: Vec<String> = docstring.iter().map(|line| comment_line(line)).collect();
    match lines.concat().strip_prefix(" *") {
        Some(text) => format!("/*{} */\n", text),
        None => String::new(),
    }
}

/// A line of a comment: it neither ends the comment nor begins another one.
fn comment_line(line: &str) -> String {
    let line = line.replace("*/", "* /").replace("/*", "/ *");
    // A backslash would join the next line.
    let line = line.trim_end_matches(|c: char| c == '\\' || c.is_whitespace());
    match line {
        "" => " *\n".to_string(),
        line => format!(" * {line}\n"),
    }
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

    #[cfg(not(feature = "c-api"))]
    #[test]
    fn without_the_feature_the_text_is_written_and_the_feature_named() {
        let folder = tempfile::tempdir().unwrap();
        let api = CApi::new("kernels").folder(folder.path());
        let error = api
            .build(&[], &Environment::process(), folder.path())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("libraries are made with the feature `c-api` of tirx-build"),
            "{error}"
        );
        assert!(error.contains("turn on the feature `c-api`"), "{error}");
        assert!(folder.path().join("src/tirx_runtime.c").exists());
    }
}
