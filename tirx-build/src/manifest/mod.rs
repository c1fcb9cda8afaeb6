//! `kernels.toml`: what it may say, and what is wrong with it where it says something else.
//!
//! Reading is pure: no file but the text given is looked at. Every error points at its line and column.

mod forms;
pub mod keys;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use tirx_core::codegen::rust::is_keyword;
use tirx_core::diagnostic::{Diagnostic, Diagnostics, Place};
use tirx_core::ir::PrimFunc;
use tirx_core::script::ConstValue;
use tirx_core::source::{FileId, SourceMap, Span};
use toml::Spanned;

use crate::error::Error;
use crate::nvcc::NvccOptions;
use crate::target::{Architecture, Targets, UnknownArchitecture};
use crate::toolchain::Pin;

/// A manifest that was read and checked.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The kernels in the order of the file.
    pub kernels: Vec<Kernel>,
    /// What `[defaults]` says of targets.
    pub defaults: Targets,
    /// What `[toolchain]` says.
    pub toolchain: Toolchain,
    /// What `[bundle]` says of where the bundle is, from the manifest's folder.
    pub bundle: Option<String>,
    /// Where `[toolchain]` names the release.
    pub pin_span: Span,
    /// The manifest's text; kernels' spans point into it.
    pub sources: SourceMap,
}

/// `[toolchain]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolchain {
    /// The CUDA release that nvcc must be of.
    pub cuda: Option<Pin>,
    /// Whether a build may fetch the pinned nvcc when there is none.
    pub auto_install: bool,
}

/// Where a kernel's text is.
#[derive(Clone, Debug)]
pub enum Text {
    /// In a file; the path as the manifest gives it, relative to the manifest.
    File(String),
    /// In the manifest itself, or in a build script.
    Inline(String),
    /// No text: a function that a build script made.
    Function(PrimFunc),
}

/// One `[[kernel]]`.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the generated function and module.
    pub name: String,
    /// Its text.
    pub text: Text,
    /// Which definition of the file; `None` for the one named like the kernel, or the only one.
    pub entry: Option<String>,
    /// Values of its compile-time parameters; empty for a kernel that has none.
    pub specialize: Vec<BTreeMap<String, ConstValue>>,
    /// What it is compiled for.
    pub targets: Targets,
    /// Where its targets name `native`, the GPUs of the machine that builds, which `Manifest::resolve_native` adds.
    pub native_span: Option<Span>,
    /// Whether a build without an nvcc is an error.
    pub require: bool,
    /// The Cargo feature without which it is not built.
    pub feature: Option<String>,
    /// How nvcc compiles it.
    pub options: NvccOptions,
    /// Where the manifest gives the source (or the script).
    pub source_span: Span,
    /// Where the manifest gives the entry, or the name.
    pub entry_span: Span,
    /// Where each specialization stands.
    pub specialize_spans: Vec<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    #[serde(default)]
    defaults: RawDefaults,
    #[serde(default)]
    toolchain: RawToolchain,
    #[serde(default)]
    bundle: RawBundle,
    #[serde(default)]
    kernel: Vec<Spanned<RawKernel>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawBundle {
    path: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawDefaults {
    targets: Option<Vec<Spanned<String>>>,
    ptx: Option<Spanned<String>>,
    require: Option<bool>,
    flags: Option<Vec<Spanned<String>>>,
    fast_math: Option<bool>,
    max_registers: Option<Spanned<u32>>,
    lineinfo: Option<bool>,
    debug: Option<bool>,
    allow_spills: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawToolchain {
    cuda: Option<Spanned<String>>,
    #[serde(default)]
    auto_install: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawKernel {
    name: Spanned<String>,
    source: Option<Spanned<String>>,
    script: Option<Spanned<String>>,
    entry: Option<Spanned<String>>,
    specialize: Option<Spanned<Vec<Spanned<toml::Table>>>>,
    specialize_grid: Option<Spanned<toml::Table>>,
    targets: Option<Vec<Spanned<String>>>,
    ptx: Option<Spanned<String>>,
    require: Option<bool>,
    feature: Option<String>,
    flags: Option<Vec<Spanned<String>>>,
    fast_math: Option<bool>,
    max_registers: Option<Spanned<u32>>,
    lineinfo: Option<bool>,
    debug: Option<bool>,
    allow_spills: Option<bool>,
}

impl Manifest {
    /// Reads a manifest's text. `name` is what messages call the file.
    pub fn parse(name: &str, text: &str) -> Result<Manifest, Error> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        let raw: RawManifest = toml::from_str(text)
            .map_err(|e| Error::from_diagnostic(&forms::syntax_error(file, &e, text), &sources))?;
        let mut reader = Reader {
            file,
            errors: Vec::new(),
        };
        let manifest = reader.manifest(raw);
        if reader.errors.is_empty() {
            Ok(Manifest { sources, ..manifest })
        } else {
            Err(Error::from_diagnostics(&Diagnostics(reader.errors), &sources))
        }
    }
}

impl Manifest {
    /// Where `[toolchain]` names the release, for messages.
    pub(crate) fn pin_place(&self) -> Option<Place> {
        Place::of(&self.sources, self.pin_span)
    }

    /// Adds a kernel that a build script declares.
    ///
    /// # Errors
    /// Its name is no name of a kernel, or that of another.
    pub(crate) fn declare(&mut self, kernel: Kernel) -> Result<(), Error> {
        let mut reader = Reader {
            file: FileId::default(),
            errors: Vec::new(),
        };
        reader.check_name(&kernel.name, Span::NONE);
        if self.kernels.iter().any(|known| known.name == kernel.name) {
            let help = "the manifest and the build script share one module: rename one of them";
            reader.error(
                Span::NONE,
                format!("kernel `{}` is declared twice", kernel.name),
                help,
            );
        }
        self.kernels.push(kernel);
        match reader.errors.is_empty() {
            true => Ok(()),
            false => Err(Error::from_diagnostics(
                &Diagnostics(reader.errors),
                &self.sources,
            )),
        }
    }

    /// Compiles for these where the targets name `native`.
    ///
    /// # Errors
    /// Targets name it, and there is a reason against: why it stands for nothing.
    pub(crate) fn resolve_native(
        &mut self,
        gpus: impl FnOnce() -> Result<Vec<Architecture>, String>,
    ) -> Result<(), Error> {
        let Some(span) = self.kernels.iter().find_map(|kernel| kernel.native_span) else {
            return Ok(());
        };
        let gpus = gpus().map_err(|reason| native_refused(span, &reason, &self.sources))?;
        for kernel in self
            .kernels
            .iter_mut()
            .filter(|kernel| kernel.native_span.is_some())
        {
            for arch in &gpus {
                if !kernel.targets.native.contains(arch) {
                    kernel.targets.native.push(arch.clone());
                }
            }
        }
        Ok(())
    }

    /// The text of an inline script, at the line and column where the manifest has it, so that what is wrong with it is
    /// shown there. `None` where the manifest writes it with escapes.
    pub(crate) fn inline_text(&self, kernel: &Kernel) -> Option<String> {
        let Text::Inline(script) = &kernel.text else {
            return None;
        };
        let literal = self.sources.text(kernel.source_span);
        let inside = literal.find(script.as_str())?;
        let file = self.sources.file(kernel.source_span.file)?;
        let before = file.text.get(..kernel.source_span.start as usize + inside)?;
        let lines = before.matches('\n').count();
        Some(format!("{}{script}", "\n".repeat(lines)))
    }
}

/// What is said where `native` stands for nothing.
pub(crate) fn native_refused(span: Span, reason: &str, sources: &SourceMap) -> Error {
    let diagnostic = Diagnostic::new(span, format!("`native` among the targets: {reason}")).help(
        "name the GPUs that the kernels are for: `targets = [\"sm_90a\", \"sm_100a\"]`, and `ptx = \"compute_90\"` for \
         those that are newer",
    );
    Error::from_diagnostic(&diagnostic, sources)
}

/// The target that stands for the GPUs of the machine that builds.
pub(crate) const NATIVE: &str = "native";

fn span_of(file: FileId, range: Range<usize>) -> Span {
    Span::new(file, range.start as u32, range.end as u32)
}

/// Checks what serde accepted, and gathers everything that is wrong with it.
struct Reader {
    file: FileId,
    errors: Vec<Diagnostic>,
}

impl Reader {
    fn span<T>(&self, value: &Spanned<T>) -> Span {
        span_of(self.file, value.span())
    }

    fn manifest(&mut self, raw: RawManifest) -> Manifest {
        let toolchain = Toolchain {
            cuda: raw.toolchain.cuda.as_ref().and_then(|pin| self.pin(pin)),
            auto_install: raw.toolchain.auto_install,
        };
        if toolchain.auto_install && raw.toolchain.cuda.is_none() {
            let error = Diagnostic::new(
                Span::new(self.file, 0, 0),
                "`auto-install` needs to know which release",
            )
            .help("add `cuda = \"13.0\"` to [toolchain]");
            self.errors.push(error);
        }
        let default_targets = raw.defaults.targets.as_deref().map(|t| self.native(t));
        let default_ptx = raw.defaults.ptx.as_ref().and_then(|p| self.ptx(p));
        if let Some(flags) = &raw.defaults.flags {
            self.check_flags(flags);
        }
        if let Some(registers) = &raw.defaults.max_registers {
            self.check_registers(registers);
        }
        let pin_span = raw
            .toolchain
            .cuda
            .as_ref()
            .map_or(Span::NONE, |pin| self.span(pin));
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let mut kernels = Vec::new();
        for kernel in raw.kernel {
            let header = self.span(&kernel);
            let kernel = kernel.into_inner();
            let name_span = self.span(&kernel.name);
            let name = kernel.name.get_ref().clone();
            self.check_name(&name, name_span);
            match seen.get(&name) {
                Some(first) => {
                    let error = Diagnostic::new(name_span, format!("kernel `{name}` is declared twice"))
                        .note(*first, "the first is here")
                        .help("each name becomes one Rust module: rename one of them");
                    self.errors.push(error);
                }
                None => {
                    seen.insert(name.clone(), name_span);
                }
            }
            let (text, source_span) = match (&kernel.source, &kernel.script) {
                (Some(source), None) => (Text::File(source.get_ref().clone()), self.span(source)),
                (None, Some(script)) => (Text::Inline(script.get_ref().clone()), self.span(script)),
                (Some(_), Some(script)) => {
                    let span = self.span(script);
                    self.error(
                        span,
                        format!("kernel `{name}` has both `source` and `script`"),
                        "keep one of them",
                    );
                    continue;
                }
                (None, None) => {
                    self.error(
                        name_span,
                        format!("kernel `{name}` has no text"),
                        "add `source = \"kernels/file.py\"` or `script = \"\"\"…\"\"\"`",
                    );
                    continue;
                }
            };
            if matches!(&text, Text::File(path) if path.starts_with('/') || path.contains('\\')) {
                self.error(
                    source_span,
                    "`source` must be a path relative to the manifest, with `/` between its parts",
                    "absolute paths would make builds differ between machines",
                );
            }
            let (native, native_span) = match &kernel.targets {
                Some(targets) => self.native(targets),
                None => default_targets.clone().unwrap_or_default(),
            };
            let ptx = match &kernel.ptx {
                // What only some GPUs have, such as wgmma, is in no PTX for later ones.
                Some(ptx) if ptx.get_ref() == "none" => None,
                Some(ptx) => self.ptx(ptx),
                None => default_ptx.clone(),
            };
            let named = kernel.targets.as_ref().or(raw.defaults.targets.as_ref());
            if named.is_none_or(Vec::is_empty) && kernel.ptx.is_none() && raw.defaults.ptx.is_none() {
                self.error(
                    name_span,
                    format!("kernel `{name}` names no targets"),
                    "add `targets = [\"sm_90a\"]` to it or to [defaults]",
                );
            }
            if let Some(flags) = &kernel.flags {
                self.check_flags(flags);
            }
            if let Some(registers) = &kernel.max_registers {
                self.check_registers(registers);
            }
            let values = |flags: &Vec<Spanned<String>>| -> Vec<String> {
                flags.iter().map(|flag| flag.get_ref().clone()).collect()
            };
            let defaults = &raw.defaults;
            let options = NvccOptions {
                flags: kernel
                    .flags
                    .as_ref()
                    .or(defaults.flags.as_ref())
                    .map(values)
                    .unwrap_or_default(),
                fast_math: kernel.fast_math.or(defaults.fast_math).unwrap_or(false),
                max_registers: kernel
                    .max_registers
                    .as_ref()
                    .or(defaults.max_registers.as_ref())
                    .map(|registers| *registers.get_ref()),
                lineinfo: kernel.lineinfo.or(defaults.lineinfo).unwrap_or(false),
                debug: kernel.debug.or(defaults.debug).unwrap_or(false),
                allow_spills: kernel.allow_spills.or(defaults.allow_spills).unwrap_or(false),
            };
            let (mut specialize, mut specialize_spans) =
                self.specializations(&name, kernel.specialize, header);
            if let Some(grid) = kernel.specialize_grid {
                self.grid(&name, grid, &mut specialize, &mut specialize_spans);
            }
            kernels.push(Kernel {
                entry_span: kernel.entry.as_ref().map_or(name_span, |e| self.span(e)),
                entry: kernel.entry.map(Spanned::into_inner),
                name,
                text,
                specialize,
                targets: Targets { native, ptx },
                native_span,
                require: kernel.require.or(raw.defaults.require).unwrap_or(false),
                feature: kernel.feature,
                options,
                source_span,
                specialize_spans,
            });
        }
        Manifest {
            kernels,
            defaults: Targets {
                native: default_targets.map(|(native, _)| native).unwrap_or_default(),
                ptx: default_ptx,
            },
            toolchain,
            bundle: raw.bundle.path,
            pin_span,
            sources: SourceMap::new(),
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::new(span, message).help(help));
    }

    /// Flags that would change what a build reads from nvcc are not for the manifest.
    fn check_flags(&mut self, flags: &[Spanned<String>]) {
        const OURS: [(&str, &str); 8] = [
            ("-o", "the build names the output"),
            ("--output-file", "the build names the output"),
            ("-gencode", "`targets` and `ptx` say what is compiled for"),
            ("--generate-code", "`targets` and `ptx` say what is compiled for"),
            ("-arch", "`targets` and `ptx` say what is compiled for"),
            ("--dryrun", "nothing would be compiled"),
            ("-dryrun", "nothing would be compiled"),
            ("-keep", "`TIRX_DUMP` writes what is between"),
        ];
        for flag in flags {
            let word = flag.get_ref().split('=').next().unwrap_or_default();
            if let Some((_, why)) = OURS.iter().find(|(ours, _)| *ours == word) {
                let span = self.span(flag);
                self.error(span, format!("`{word}` cannot be a flag of a kernel"), *why);
            }
        }
    }

    fn check_registers(&mut self, registers: &Spanned<u32>) {
        if !(16..=255).contains(registers.get_ref()) {
            let span = self.span(registers);
            self.error(
                span,
                format!("`max-registers` is from 16 to 255, found {}", registers.get_ref()),
                "a thread has at most 255 registers",
            );
        }
    }

    /// Every combination of a grid's values, the last key's changing fastest.
    fn grid(
        &mut self,
        kernel: &str,
        grid: Spanned<toml::Table>,
        all: &mut Vec<BTreeMap<String, ConstValue>>,
        spans: &mut Vec<Span>,
    ) {
        /// Specializations of one kernel; more is a slip.
        const MOST: usize = 4096;
        let span = self.span(&grid);
        let mut combinations: Vec<BTreeMap<String, ConstValue>> = vec![BTreeMap::new()];
        for (name, values) in grid.into_inner() {
            let items = match &values {
                toml::Value::Array(items) if !items.is_empty() => items.clone(),
                _ => {
                    self.error(
                        span,
                        format!("`{name}` of `specialize-grid` is no list of values"),
                        format!("write it as `{name} = [256, 512]`"),
                    );
                    return;
                }
            };
            let Some(items) = items.iter().map(const_value).collect::<Option<Vec<_>>>() else {
                self.error(
                    span,
                    format!("`{name}` cannot be a compile-time value"),
                    "use an integer, a number, a bool, a string or a list of these",
                );
                return;
            };
            if combinations.len() * items.len() > MOST {
                self.error(
                    span,
                    format!("`specialize-grid` of kernel `{kernel}` has more than {MOST} combinations"),
                    "each is compiled by itself: give fewer values",
                );
                return;
            }
            combinations = combinations
                .iter()
                .flat_map(|given| {
                    items.iter().map(|item| {
                        let mut given = given.clone();
                        given.insert(name.clone(), item.clone());
                        given
                    })
                })
                .collect();
        }
        for values in combinations.into_iter().filter(|values| !values.is_empty()) {
            if let Some(first) = all.iter().position(|other| *other == values) {
                let error = Diagnostic::new(span, format!("kernel `{kernel}` has a specialization twice"))
                    .note(spans[first], "the first is here");
                self.errors.push(error);
                return;
            }
            all.push(values);
            spans.push(span);
        }
    }

    fn check_name(&mut self, name: &str, span: Span) {
        let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let snake = name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if name.is_empty() || name == "_" || !starts_well || !snake {
            let near: String = name
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() {
                        c.to_ascii_lowercase()
                    } else {
                        '_'
                    }
                })
                .collect();
            let help = if near.starts_with(|c: char| c.is_ascii_lowercase()) && !is_keyword(&near) {
                format!("it becomes a Rust function and module: use for example `{near}`")
            } else {
                "it becomes a Rust function and module: use lower-case letters, digits and `_`".to_string()
            };
            self.error(span, format!("`{name}` cannot be a kernel's name"), help);
        } else if is_keyword(name) {
            self.error(
                span,
                format!("`{name}` cannot be a kernel's name: it is a Rust keyword"),
                format!("use for example `{name}_kernel`"),
            );
        }
    }

    fn architecture(
        &mut self,
        text: &Spanned<String>,
        parse: impl Fn(&str) -> Result<Architecture, UnknownArchitecture>,
        form: &str,
    ) -> Option<Architecture> {
        match parse(text.get_ref()) {
            Ok(architecture) => Some(architecture),
            Err(unknown) => {
                let help = match unknown.suggestion {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("write it as `{form}`"),
                };
                let span = self.span(text);
                self.error(span, unknown.message, help);
                None
            }
        }
    }

    /// The architectures among targets, and where `native` stands.
    fn native(&mut self, targets: &[Spanned<String>]) -> (Vec<Architecture>, Option<Span>) {
        let mut native: Vec<Architecture> = Vec::new();
        let mut machine = None;
        for target in targets {
            if target.get_ref() == NATIVE {
                machine = Some(self.span(target));
                continue;
            }
            let Some(arch) = self.architecture(target, str::parse, "sm_90a") else {
                continue;
            };
            if native.contains(&arch) {
                let span = self.span(target);
                self.error(
                    span,
                    format!("target `{arch}` is named twice"),
                    "remove one of them",
                );
            } else {
                native.push(arch);
            }
        }
        (native, machine)
    }

    fn ptx(&mut self, ptx: &Spanned<String>) -> Option<Architecture> {
        self.architecture(ptx, Architecture::from_compute, "compute_90")
    }

    fn pin(&mut self, pin: &Spanned<String>) -> Option<Pin> {
        let parsed = pin.get_ref().parse();
        if parsed.is_err() {
            let span = self.span(pin);
            self.error(
                span,
                format!("`{}` is no CUDA release", pin.get_ref()),
                "write major and minor version: `cuda = \"13.0\"`",
            );
        }
        parsed.ok()
    }

    fn specializations(
        &mut self,
        kernel: &str,
        raw: Option<Spanned<Vec<Spanned<toml::Table>>>>,
        header: Span,
    ) -> (Vec<BTreeMap<String, ConstValue>>, Vec<Span>) {
        let Some(raw) = raw else {
            return (Vec::new(), Vec::new());
        };
        if raw.get_ref().is_empty() {
            let span = self.span(&raw).or(header);
            self.error(
                span,
                format!("`specialize` of kernel `{kernel}` is empty"),
                "give at least one: `specialize = [{ N = 256 }]`",
            );
        }
        let mut all: Vec<BTreeMap<String, ConstValue>> = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        for table in raw.into_inner() {
            let span = self.span(&table);
            let mut values = BTreeMap::new();
            for (key, value) in table.into_inner() {
                match const_value(&value) {
                    Some(value) => {
                        values.insert(key, value);
                    }
                    None => self.error(
                        span,
                        format!("`{key}` cannot be a compile-time value"),
                        "use an integer, a number, a bool, a string or a list of these",
                    ),
                }
            }
            if let Some(first) = all.iter().position(|other| *other == values) {
                let error = Diagnostic::new(span, format!("kernel `{kernel}` has this specialization twice"))
                    .note(spans[first], "the first is here");
                self.errors.push(error);
                continue;
            }
            all.push(values);
            spans.push(span);
        }
        (all, spans)
    }
}

fn const_value(value: &toml::Value) -> Option<ConstValue> {
    Some(match value {
        toml::Value::String(s) => ConstValue::Str(s.clone()),
        toml::Value::Integer(i) => ConstValue::Int(i128::from(*i)),
        toml::Value::Float(f) => ConstValue::Float(*f),
        toml::Value::Boolean(b) => ConstValue::Bool(*b),
        toml::Value::Array(items) => ConstValue::List(items.iter().map(const_value).collect::<Option<_>>()?),
        toml::Value::Datetime(_) | toml::Value::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match Manifest::parse("kernels.toml", text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => error.to_string(),
        }
    }

    const GOOD: &str = r#"
[defaults]
targets = ["sm_90a", "sm_100a"]
ptx = "compute_90"

[toolchain]
cuda = "13.0"
auto-install = true

[[kernel]]
name = "add"
source = "kernels/vector.py"
entry = "add"
specialize = [{ N = 256 }, { N = 1024, mode = "fast", eps = 1e-5, relu = true, tile = [8, 16] }]

[[kernel]]
name = "inline"
script = "pass"
targets = ["sm_80"]
require = true

[[kernel]]
name = "tensor_cores"
script = "pass"
targets = ["sm_90a"]
ptx = "none"
"#;

    #[test]
    fn reads_every_field() {
        let manifest = Manifest::parse("kernels.toml", GOOD).unwrap();
        assert_eq!(manifest.toolchain.cuda.unwrap().to_string(), "13.0");
        assert!(manifest.toolchain.auto_install);
        let add = &manifest.kernels[0];
        assert!(matches!(&add.text, Text::File(path) if path == "kernels/vector.py"));
        assert_eq!(add.entry.as_deref(), Some("add"));
        assert_eq!(add.targets.native.len(), 2);
        assert_eq!(add.targets.ptx.as_ref().unwrap().compute(), "compute_90");
        assert_eq!(add.specialize[0]["N"], ConstValue::Int(256));
        assert_eq!(add.specialize[1]["mode"], ConstValue::Str("fast".into()));
        assert!(!add.require);
        let inline = &manifest.kernels[1];
        assert_eq!(inline.targets.primary(), "sm_80");
        assert!(inline.require && matches!(inline.text, Text::Inline(_)));
        assert!(inline.targets.ptx.is_some() && manifest.kernels[2].targets.ptx.is_none());
    }

    #[test]
    fn unknown_keys_are_refused_with_their_place() {
        let message = refused("[[kernel]]\nname = \"add\"\nsorce = \"a.py\"\n");
        assert!(message.contains("unknown key `sorce`"), "{message}");
        assert!(message.contains("--> kernels.toml:3:1"), "{message}");
        assert!(message.contains("did you mean `source`?"), "{message}");
        let message = refused("[toolchain]\nbanana = 1\n");
        assert!(
            message.contains("the keys here are `cuda`, `auto-install`"),
            "{message}"
        );
        let message = refused("[default]\n");
        assert!(
            message.contains("did you mean `defaults`?") && message.contains(":1:2"),
            "{message}"
        );
    }

    #[test]
    fn syntax_and_type_errors_have_their_place() {
        let message = refused("[defaults\n");
        assert!(message.contains("kernels.toml:1:"), "{message}");
        let message = refused("[toolchain]\ncuda = 13\n");
        assert!(
            message.contains("`cuda` is a string, found `13`")
                && message.contains("write it as `cuda = \"13.0\"`"),
            "{message}"
        );
        assert!(message.contains("kernels.toml:2:8"), "{message}");
        let message = refused("[[kernel]]\nsource = \"a.py\"\n");
        assert!(
            message.contains("missing key `name`") && message.contains(":1:1"),
            "{message}"
        );
    }

    #[test]
    fn duplicate_names_point_at_both() {
        let kernel = "[[kernel]]\nname = \"add\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
        let message = refused(&format!("{kernel}{kernel}"));
        assert!(message.contains("kernel `add` is declared twice"), "{message}");
        assert!(message.contains("kernels.toml:6:8"), "{message}");
        assert!(
            message.contains("note: the first is here") && message.contains("kernels.toml:2:8"),
            "{message}"
        );
    }

    #[test]
    fn names_must_be_rust_identifiers() {
        for (name, expected) in [
            ("my-add", "use for example `my_add`"),
            ("Add", "use for example `add`"),
            ("2d", "lower-case letters"),
            ("match", "it is a Rust keyword"),
            ("", "lower-case letters"),
        ] {
            let message = refused(&format!(
                "[[kernel]]\nname = \"{name}\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n"
            ));
            assert!(
                message.contains("cannot be a kernel's name") && message.contains(expected),
                "{message}"
            );
        }
    }

    #[test]
    fn targets_are_checked_and_all_errors_reported_at_once() {
        let message = refused(
            "[defaults]\ntargets = [\"sm90a\", \"gpu\"]\nptx = \"sm_90\"\n[toolchain]\ncuda = \"latest\"\n\
             [[kernel]]\nname = \"a\"\nsource = \"a.py\"\nscript = \"\"\n",
        );
        for part in [
            "unknown architecture `sm90a`",
            "did you mean `sm_90a`?",
            "unknown architecture `gpu`",
            "unknown architecture `sm_90`",
            "`latest` is no CUDA release",
            "both `source` and `script`",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(refused("[[kernel]]\nname = \"a\"\nsource = \"a.py\"\n").contains("names no targets"));
        assert!(refused("[[kernel]]\nname = \"a\"\ntargets = [\"sm_90a\"]\n").contains("has no text"));
        assert!(
            refused("[[kernel]]\nname=\"a\"\nsource=\"/a.py\"\ntargets=[\"sm_90a\"]\n").contains("relative")
        );
    }

    #[test]
    fn specializations_are_checked() {
        let head = "[[kernel]]\nname = \"a\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
        assert!(refused(&format!("{head}specialize = []\n")).contains("is empty"));
        let twice = refused(&format!("{head}specialize = [{{ N = 1 }}, {{ N = 1 }}]\n"));
        assert!(
            twice.contains("this specialization twice") && twice.contains(":5:26"),
            "{twice}"
        );
        assert!(
            refused(&format!("{head}specialize = [{{ N = {{}} }}]\n")).contains("cannot be a compile-time")
        );
    }

    #[test]
    fn the_table_of_keys_is_what_is_read() {
        // What the reader says it knows, by section.
        for (section, head) in [
            ("", ""),
            ("defaults", "[defaults]\n"),
            ("toolchain", "[toolchain]\n"),
            ("bundle", "[bundle]\n"),
            ("kernel", "[[kernel]]\n"),
        ] {
            let message = toml::from_str::<RawManifest>(&format!("{head}zzzzzzzzzzzz = 1\n"))
                .err()
                .unwrap();
            let mut known: Vec<&str> = message.message().split('`').skip(3).step_by(2).collect();
            let mut listed: Vec<&str> = keys::KEYS
                .iter()
                .filter(|key| key.section == section)
                .map(|key| key.name)
                .collect();
            known.sort_unstable();
            listed.sort_unstable();
            assert_eq!(known, listed, "[{section}]");
        }
    }

    /// `UPDATE_EXPECT=1` writes the page anew.
    #[test]
    fn the_reference_page_is_the_table() {
        let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kernels-toml.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&page, keys::reference()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&page).unwrap_or_default(),
            keys::reference()
        );
    }

    #[test]
    fn grids_are_every_combination() {
        let head = "[[kernel]]\nname = \"a\"\nsource = \"a.py\"\ntargets = [\"sm_90a\"]\n";
        let manifest = Manifest::parse(
            "kernels.toml",
            &format!("{head}specialize-grid = {{ N = [1, 2], dtype = [\"float16\", \"float32\"] }}\n"),
        )
        .unwrap();
        assert_eq!(manifest.kernels[0].specialize.len(), 4);
        assert_eq!(
            manifest.kernels[0].specialize[1]["dtype"],
            ConstValue::Str("float32".into())
        );
        for (grid, said) in [
            ("{ N = 4 }", "`N` of `specialize-grid` is no list of values"),
            ("{ N = [] }", "`N` of `specialize-grid` is no list of values"),
            ("{ N = [{}] }", "`N` cannot be a compile-time value"),
            ("{ N = [1, 1] }", "has a specialization twice"),
        ] {
            let message = refused(&format!("{head}specialize-grid = {grid}\n"));
            assert!(message.contains(said), "{message}");
        }
    }
}
