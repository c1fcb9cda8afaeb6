//! `kernels.toml`: what it may say, and what is wrong with it where it says something else.
//!
//! Reading is pure: no file but the text given is looked at. Every error points at its line and column.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use tirx_core::codegen::rust::is_keyword;
use tirx_core::diagnostic::{Diagnostic, Diagnostics};
use tirx_core::script::ConstValue;
use tirx_core::source::{FileId, SourceMap, Span};
use toml::Spanned;

use crate::error::Error;
use crate::suggest::nearest;
use crate::target::{Architecture, Targets, UnknownArchitecture};
use crate::toolchain::Pin;

/// A manifest that was read and checked.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The kernels in the order of the file.
    pub kernels: Vec<Kernel>,
    /// What `[toolchain]` says.
    pub toolchain: Toolchain,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// In a file; the path as the manifest gives it, relative to the manifest.
    File(String),
    /// In the manifest itself.
    Inline(String),
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
    /// Whether a build without an nvcc is an error.
    pub require: bool,
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
    kernel: Vec<Spanned<RawKernel>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawDefaults {
    targets: Option<Vec<Spanned<String>>>,
    ptx: Option<Spanned<String>>,
    require: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawToolchain {
    cuda: Option<Spanned<String>>,
    #[serde(default)]
    auto_install: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel {
    name: Spanned<String>,
    source: Option<Spanned<String>>,
    script: Option<Spanned<String>>,
    entry: Option<Spanned<String>>,
    specialize: Option<Spanned<Vec<Spanned<toml::Table>>>>,
    targets: Option<Vec<Spanned<String>>>,
    ptx: Option<Spanned<String>>,
    require: Option<bool>,
}

impl Manifest {
    /// Reads a manifest's text. `name` is what messages call the file.
    pub fn parse(name: &str, text: &str) -> Result<Manifest, Error> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        let raw: RawManifest = toml::from_str(text)
            .map_err(|e| Error::from_diagnostic(&syntax_error(file, &e, text), &sources))?;
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

fn span_of(file: FileId, range: Range<usize>) -> Span {
    Span::new(file, range.start as u32, range.end as u32)
}

/// What the TOML reader refused, with a suggestion for a misspelt key.
fn syntax_error(file: FileId, error: &toml::de::Error, text: &str) -> Diagnostic {
    let mut span = error
        .span()
        .map_or(Span::new(file, 0, 0), |range| span_of(file, range));
    // The message may go on in further lines; the first says it all.
    let message = error
        .message()
        .lines()
        .next()
        .unwrap_or("invalid TOML")
        .to_string();
    let mut names = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let unknown = names.next().unwrap_or_default();
        let known: Vec<&str> = names.collect();
        let diagnostic = Diagnostic::new(span, format!("unknown key `{unknown}`"));
        return match nearest(unknown, known.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("the keys here are {}", list(&known))),
        };
    }
    if message.starts_with("missing field") {
        // The span is the whole table; its first line is enough.
        let end = text[span.start as usize..]
            .find('\n')
            .map_or(span.end, |n| span.start + n as u32);
        span.end = span.end.min(end);
        let missing = names.next().unwrap_or_default();
        return Diagnostic::new(span, format!("missing key `{missing}`"));
    }
    Diagnostic::new(span, message)
}

fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|n| format!("`{n}`"))
        .collect::<Vec<_>>()
        .join(", ")
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
            let native = match &kernel.targets {
                Some(targets) => self.native(targets),
                None => default_targets.clone().unwrap_or_default(),
            };
            let ptx = match &kernel.ptx {
                Some(ptx) => self.ptx(ptx),
                None => default_ptx.clone(),
            };
            if native.is_empty()
                && ptx.is_none()
                && kernel.targets.is_none()
                && raw.defaults.targets.is_none()
            {
                self.error(
                    name_span,
                    format!("kernel `{name}` names no targets"),
                    "add `targets = [\"sm_90a\"]` to it or to [defaults]",
                );
            }
            let (specialize, specialize_spans) = self.specializations(&name, kernel.specialize, header);
            kernels.push(Kernel {
                entry_span: kernel.entry.as_ref().map_or(name_span, |e| self.span(e)),
                entry: kernel.entry.map(Spanned::into_inner),
                name,
                text,
                specialize,
                targets: Targets { native, ptx },
                require: kernel.require.or(raw.defaults.require).unwrap_or(false),
                source_span,
                specialize_spans,
            });
        }
        Manifest {
            kernels,
            toolchain,
            sources: SourceMap::new(),
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(Diagnostic::new(span, message).help(help));
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

    fn native(&mut self, targets: &[Spanned<String>]) -> Vec<Architecture> {
        let mut native: Vec<Architecture> = Vec::new();
        for target in targets {
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
        native
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
"#;

    #[test]
    fn reads_every_field() {
        let manifest = Manifest::parse("kernels.toml", GOOD).unwrap();
        assert_eq!(manifest.toolchain.cuda.unwrap().to_string(), "13.0");
        assert!(manifest.toolchain.auto_install);
        let add = &manifest.kernels[0];
        assert_eq!(add.text, Text::File("kernels/vector.py".into()));
        assert_eq!(add.entry.as_deref(), Some("add"));
        assert_eq!(add.targets.native.len(), 2);
        assert_eq!(add.targets.ptx.as_ref().unwrap().compute(), "compute_90");
        assert_eq!(add.specialize[0]["N"], ConstValue::Int(256));
        assert_eq!(add.specialize[1]["mode"], ConstValue::Str("fast".into()));
        assert!(!add.require);
        let inline = &manifest.kernels[1];
        assert_eq!(inline.targets.primary(), "sm_80");
        assert!(inline.require && matches!(inline.text, Text::Inline(_)));
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
            message.contains("invalid type: integer `13`, expected a string"),
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
}
