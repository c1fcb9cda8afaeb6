//! Kernels that a build script declares: from text that it writes, from a file, or as IR that it builds.

use std::collections::BTreeMap;

use tirx_core::diagnostic::Diagnostics;
use tirx_core::ir::PrimFunc;
use tirx_core::script::ConstValue;
use tirx_core::source::{FileId, SourceMap, Span};

use crate::error::{Error, Result};
use crate::manifest::{self, Candidate, NATIVE, Reader, Text, TuneParts, TunedSizes, Values};
use crate::nvcc::NvccOptions;
use crate::target::{self, Targets};
use tirx_core::ir::{Gpu, UnknownGpu};

/// The candidates of a tuned kernel, as `[kernel.tune]` of the manifest declares them, for [`Kernel::tune`].
///
/// ```
/// let tune = tirx_build::Tune::new()
///     .values("TILE", [128, 64])
///     .values("STAGES", [2, 3])
///     .predicate("TILE * STAGES <= 256")
///     .sizes([("n", 1000)])
///     .sizes([("n", 1_000_000)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tune {
    values: BTreeMap<String, Vec<ConstValue>>,
    predicate: Option<String>,
    sizes: Vec<BTreeMap<String, i64>>,
}

impl Tune {
    /// No candidates yet.
    pub fn new() -> Tune {
        Tune::default()
    }

    /// The values of a compile-time parameter. Each combination of the parameters' values is a candidate.
    pub fn values<V: Into<ConstValue>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Tune {
        self.values
            .insert(name.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// A Python expression over the parameters that is false for combinations that are no candidates.
    pub fn predicate(mut self, expression: impl Into<String>) -> Tune {
        self.predicate = Some(expression.into());
        self
    }

    /// Adds sizes to measure: values of extents and integer parameters. A kernel whose sizes are all fixed has none.
    pub fn sizes<N: Into<String>>(mut self, sizes: impl IntoIterator<Item = (N, i64)>) -> Tune {
        self.sizes.push(
            sizes
                .into_iter()
                .map(|(name, size)| (name.into(), size))
                .collect(),
        );
        self
    }

    fn resolve(&self, kernel: &str, has_others: bool) -> Result<(Vec<Candidate>, TunedSizes)> {
        let list = |(name, values): (&String, &Vec<ConstValue>)| {
            (name.clone(), Some(ConstValue::List(values.clone())))
        };
        let size = |(name, size): (&String, &i64)| (name.clone(), Some(ConstValue::Int((*size).into())));
        let point = |sizes: &BTreeMap<String, i64>| (Values(sizes.iter().map(size).collect()), Span::NONE);
        let parts = TuneParts {
            values: Values(self.values.iter().map(list).collect()),
            span: Span::NONE,
            predicate: self.predicate.clone().map(|text| (text, Span::NONE)),
            sizes: (!self.sizes.is_empty()).then(|| self.sizes.iter().map(point).collect()),
            sizes_span: Span::NONE,
        };
        let mut reader = Reader {
            file: FileId::default(),
            errors: Vec::new(),
        };
        let tune = reader.tune(kernel, parts, has_others);
        tune.ok_or_else(|| Error::from_diagnostics(&Diagnostics(reader.errors), &SourceMap::new()))
    }
}

/// A kernel declared in a build script, for [`Builder::kernel`](crate::Builder::kernel), with the settings of a
/// `[[kernel]]` of the manifest.
///
/// ```no_run
/// use tirx_build::{Builder, Kernel};
///
/// fn main() -> tirx_build::Result<()> {
///     let text = "
/// from tvm.script import tirx as T
///
/// @T.jit
/// def fill(A: T.Buffer((N,), \"float32\"), *, N: T.constexpr):
///     T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
///     A[tx] = 1.0
/// ";
///     Builder::new()
///         .kernel(Kernel::script("fill", text).targets(["sm_90a"]).specialize([("N", 256)]))
///         .compile()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    text: Text,
    entry: Option<String>,
    specialize: Vec<BTreeMap<String, ConstValue>>,
    tune: Option<Tune>,
    targets: Option<Vec<String>>,
    ptx: Option<String>,
    require: bool,
    options: NvccOptions,
}

impl Kernel {
    fn new(name: impl Into<String>, text: Text) -> Kernel {
        Kernel {
            name: name.into(),
            text,
            entry: None,
            specialize: Vec::new(),
            tune: None,
            targets: None,
            ptx: None,
            require: false,
            options: NvccOptions::default(),
        }
    }

    /// A kernel from the text of a kernel file.
    pub fn script(name: impl Into<String>, text: impl Into<String>) -> Kernel {
        Kernel::new(name, Text::Inline(text.into()))
    }

    /// A kernel from a file; the path is relative to the manifest's folder.
    pub fn source(name: impl Into<String>, path: impl Into<String>) -> Kernel {
        Kernel::new(name, Text::File(path.into()))
    }

    /// A kernel from IR that the build script made, with [`FuncBuilder`](tirx_core::ir::builder::FuncBuilder) say.
    pub fn ir(name: impl Into<String>, func: PrimFunc) -> Kernel {
        Kernel::new(name, Text::Function(func))
    }

    /// Which definition of the text; by default the one of the kernel's name, or the only one.
    pub fn entry(mut self, name: impl Into<String>) -> Kernel {
        self.entry = Some(name.into());
        self
    }

    /// Adds a specialization: values of compile-time parameters.
    pub fn specialize<N: Into<String>, V: Into<ConstValue>>(
        mut self,
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Kernel {
        let values = values
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        self.specialize.push(values.collect());
        self
    }

    /// Candidates instead of specializations: the launcher `tuned` chooses between them.
    pub fn tune(mut self, tune: Tune) -> Kernel {
        self.tune = Some(tune);
        self
    }

    /// GPUs to compile for: `["sm_90a"]`; by default those of `[defaults]` of the manifest.
    pub fn targets<S: Into<String>>(mut self, targets: impl IntoIterator<Item = S>) -> Kernel {
        self.targets = Some(targets.into_iter().map(Into::into).collect());
        self
    }

    /// PTX for newer GPUs: `"compute_90"`; `"none"` for none, whatever `[defaults]` of the manifest says.
    pub fn ptx(mut self, target: impl Into<String>) -> Kernel {
        self.ptx = Some(target.into());
        self
    }

    /// Whether a build that cannot make machine code is an error.
    pub fn require(mut self, require: bool) -> Kernel {
        self.require = require;
        self
    }

    /// How nvcc compiles it.
    pub fn options(mut self, options: NvccOptions) -> Kernel {
        self.options = options;
        self
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same as a manifest entry.
    pub(crate) fn resolve(&self, defaults: &Targets) -> Result<manifest::Kernel> {
        let wrong = |unknown: UnknownGpu| {
            let error = Error::new(format_args!("kernel `{}`: {}", self.name, unknown.message));
            match unknown.suggestion {
                Some(near) => error.help(format_args!("did you mean `{near}`?")),
                None => error.help("write it as `sm_90a`, and PTX as `compute_90`"),
            }
        };
        let mut machine = false;
        let native = match &self.targets {
            None => defaults.native.clone(),
            Some(targets) => {
                machine = targets.iter().any(|target| target == NATIVE);
                let named = targets.iter().filter(|target| *target != NATIVE);
                named
                    .map(|target| target::parse(target))
                    .collect::<Result<Vec<Gpu>, _>>()
                    .map_err(wrong)?
            }
        };
        let ptx = match &self.ptx {
            Some(text) => target::parse_ptx(text).map_err(wrong)?,
            None => defaults.ptx,
        };
        if matches!(self.text, Text::Function(_)) && (!self.specialize.is_empty() || self.tune.is_some()) {
            let error = Error::new(format_args!(
                "kernel `{}` is IR and has no compile-time parameters",
                self.name
            ));
            return Err(error.help("build the IR with the values, a kernel for each"));
        }
        let (specialize, tune) = match &self.tune {
            None => (self.specialize.clone(), None),
            Some(tune) => {
                let (candidates, sizes) = tune.resolve(&self.name, !self.specialize.is_empty())?;
                (candidates, Some(sizes))
            }
        };
        Ok(manifest::Kernel {
            name: self.name.clone(),
            text: self.text.clone(),
            entry: self.entry.clone(),
            specialize,
            tune,
            targets: Targets { native, ptx },
            native_span: machine.then_some(Span::NONE),
            require: self.require,
            multiprocessors: None,
            tvm: None,
            feature: None,
            options: self.options.clone(),
            source_span: Span::NONE,
            entry_span: Span::NONE,
            specialize_spans: Vec::new(),
        })
    }
}
