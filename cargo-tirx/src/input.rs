//! Options that all commands share: file, entry, compile-time values, architecture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tirx_build::compile::{FileImports, Judged, Loaded, Settings, judge, run_passes};
use tirx_build::target;
use tirx_core::diagnostic::{Diagnostic, Message};
use tirx_core::ir::Gpu;
use tirx_core::ir::IRModule;
use tirx_core::judge::{USUAL_GPUS, is_lowered};
use tirx_core::script::{Built, ConstValue, Entry, Release};
use tirx_core::source::Span;
use tirx_core::transform::Step;

use crate::failure::{Failure, Result, choice, usage, user};
use crate::literal;

#[derive(clap::Args, Debug)]
pub(crate) struct Input {
    /// A kernel file, or printed IR.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) options: Options,
}

impl Options {
    /// These for a file.
    pub(crate) fn for_file(&self, file: &Path) -> Input {
        Input {
            file: file.to_path_buf(),
            options: self.clone(),
        }
    }
}

/// What to build from a file, and how.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// The kernel to use, if the file defines several.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Sets a compile-time parameter to a Python literal or a word; `None` omits a T.Optional parameter.
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,
    /// The GPU architecture; without it sm_90a, or the first GPU that has the kernel's instructions.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Turns vectorized loops into serial ones.
    #[arg(long)]
    pub(crate) disable_vectorize: bool,
    /// The GPU's number of multiprocessors, for files that query it: 132 on an H100 SXM, 148 on a B200.
    #[arg(long, value_name = "COUNT")]
    pub(crate) multiprocessors: Option<u32>,
    /// The TVM release that the file is written for, 0.26 or 0.27; needed only if the file does not show it.
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    pub(crate) tvm: Option<Release>,
    /// Turns common-subexpression elimination off.
    #[arg(long)]
    pub(crate) disable_cse: bool,
}

/// The release of TVM of `--tvm`.
fn release(text: &str) -> std::result::Result<Release, String> {
    Release::named(text).ok_or_else(|| "known are 0.26 and 0.27".into())
}

/// What a kernel file may import: files beside it, and those of other crates.
pub(crate) fn imports(file: &Path) -> FileImports {
    let folder = file.parent().unwrap_or(Path::new(""));
    let shown = file.to_string_lossy();
    let shown_folder = shown
        .rsplit_once('/')
        .map_or(String::new(), |(folder, _)| format!("{folder}/"));
    FileImports::new(folder, shown_folder)
        .with_libraries_of(&crate::dependencies::environment())
        .with_rewriter(tirx_fix::rewrite)
}

impl Input {
    /// The values of `-D`.
    pub(crate) fn values(&self) -> Result<BTreeMap<String, ConstValue>> {
        let mut values = BTreeMap::new();
        for text in &self.options.define {
            let bad = |reason: String| usage(format_args!("bad -D: {reason}"));
            let (name, value) = literal::assignment(text).map_err(bad)?;
            let value = literal::value(&value).map_err(bad)?;
            if values.insert(name.clone(), value).is_some() {
                return Err(bad(format!("`{name}` is given twice")));
            }
        }
        Ok(values)
    }

    /// The file, read and evaluated.
    pub(crate) fn load(&self) -> Result<Loaded> {
        // An invalid command line is reported before an invalid file.
        self.values()?;
        let text = tirx_build::source::read(&self.file)
            .map_err(|error| user(format_args!("cannot read `{}`: {error}", self.file.display())))?;
        let shown = self.file.to_string_lossy().into_owned();
        let imports = imports(&self.file)
            .with_multiprocessors(self.options.multiprocessors)
            .with_release(self.options.tvm);
        Ok(Loaded::new(&shown, &text, &imports)?)
    }

    /// The selected entry.
    pub(crate) fn pick(&self, loaded: &Loaded) -> Result<Entry> {
        let entries = loaded.file().entries();
        let names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
        if let Some(entry) = self
            .options
            .entry
            .as_deref()
            .and_then(|name| loaded.file().entry(name))
        {
            return Ok(entry);
        }
        match (&self.options.entry, entries) {
            (_, []) => Err(user(format_args!(
                "`{}` defines no kernel\n  = help: decorate a function with @T.prim_func or @T.jit",
                self.file.display()
            ))),
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(user(format_args!(
                "`{}` defines several kernels\n  = help: choose one with --entry: {}",
                self.file.display(),
                names.join(", ")
            ))),
            (Some(wanted), _) => Err(user(format_args!(
                "`{}` defines no kernel `{wanted}`\n  = help: {}",
                self.file.display(),
                choice(wanted, &names, "it defines")
            ))),
        }
    }

    /// The module of an entry, as written.
    pub(crate) fn build(&self, loaded: &Loaded, entry: &Entry) -> Result<IRModule> {
        let values = self.checked_values(loaded, entry)?;
        Ok(loaded.build(Some(&entry.name), &values)?)
    }

    /// The modules of all kernels that an entry gives.
    pub(crate) fn build_all(&self, loaded: &Loaded, entry: &Entry) -> Result<Vec<Built>> {
        let values = self.checked_values(loaded, entry)?;
        Ok(loaded.build_all(Some(&entry.name), &values)?)
    }

    /// The values of `-D` for an entry, which must have exactly these.
    fn checked_values(&self, loaded: &Loaded, entry: &Entry) -> Result<BTreeMap<String, ConstValue>> {
        let values = self.values()?;
        if let Some(unknown) = values.keys().find(|name| !entry.takes(name)) {
            let known: Vec<&str> = entry.specializable().collect();
            let help = match known.as_slice() {
                [] => "it has none: leave out -D".to_string(),
                known => choice(unknown, known, "its compile-time parameters are"),
            };
            let text = format!("`{}` has no compile-time parameter `{unknown}`", entry.name);
            return Err(at_entry(loaded, entry, text, help));
        }
        let missing: Vec<String> = entry
            .constexprs
            .iter()
            .filter(|p| p.required && !values.contains_key(&p.name))
            .map(|p| format!("-D {}=…", p.name))
            .collect();
        if !missing.is_empty() {
            let text = format!("`{}` needs compile-time values", entry.name);
            return Err(at_entry(
                loaded,
                entry,
                text,
                format!("give {}", missing.join(" ")),
            ));
        }
        Ok(values)
    }

    /// How to lower; the architecture is the one that is named, or the first that is tried.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::new(self.gpu()?.unwrap_or(USUAL_GPUS[0]));
        settings.options.disable_vectorize = self.options.disable_vectorize;
        settings.options.disable_cse = self.options.disable_cse;
        settings.dump = std::env::var_os("TIRX_DUMP")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from);
        Ok(settings)
    }

    /// The GPU of `--arch`.
    pub(crate) fn gpu(&self) -> Result<Option<Gpu>> {
        self.options.arch.as_deref().map(gpu_named).transpose()
    }

    /// Lowers a module. One that is lowered already (printed IR with device functions) is unchanged.
    pub(crate) fn lower(
        &self,
        module: IRModule,
        settings: &Settings,
        timer: Option<&(dyn Fn() -> u64 + Sync)>,
        on_pass: &mut (dyn FnMut(&Step<'_>) + Send),
    ) -> Result<IRModule> {
        if settings.stop_after.is_none() && is_lowered(&module) {
            return Ok(module);
        }
        Ok(run_passes(module, settings, timer, on_pass)?)
    }

    /// The kernel of the entry, if it can be built. The lints of its file are among the warnings.
    pub(crate) fn judged(&self) -> Result<Judged> {
        let settings = self.settings()?;
        let loaded = self.load()?;
        let module = self.build(&loaded, &self.pick(&loaded)?)?;
        let mut judged = judge(module, &settings, self.gpu()?)?;
        judged.warnings.splice(0..0, loaded.warnings());
        Ok(judged)
    }
}

/// The GPU of `--arch`.
pub(crate) fn gpu_named(name: &str) -> Result<Gpu> {
    target::parse(name).map_err(|unknown: tirx_core::ir::UnknownGpu| {
        let help = match unknown.suggestion {
            Some(near) => format!("\n  = help: did you mean `{near}`?"),
            None => "\n  = help: name one architecture, for example `sm_90a`".to_string(),
        };
        usage(format_args!("{}{help}", unknown.message))
    })
}

/// An error in the use of an entry, with a note at its definition.
fn at_entry(loaded: &Loaded, entry: &Entry, text: String, help: String) -> Failure {
    let diagnostic = Diagnostic::new(Span::NONE, text)
        .note(entry.span, format!("`{}` is defined here", entry.name))
        .help(help);
    Failure::User(vec![Message::from_diagnostic(&diagnostic, loaded.sources())])
}
