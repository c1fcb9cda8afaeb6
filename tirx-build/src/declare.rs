//! Kernels that a build script declares: from text that it writes, from a file, or as IR that it builds.

use std::collections::BTreeMap;

use tirx_core::ir::PrimFunc;
use tirx_core::script::ConstValue;
use toml::Spanned;

use crate::document::Record;
use crate::manifest::{Declared, RawKernel, RawTune, Text, Values};
use crate::nvcc::NvccOptions;

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

    fn as_raw(&self) -> RawTune {
        let list =
            |(name, values): (&String, &Vec<ConstValue>)| (name.clone(), ConstValue::List(values.clone()));
        let point = |sizes: &BTreeMap<String, i64>| {
            let sizes = sizes
                .iter()
                .map(|(name, size)| (name.clone(), ConstValue::Int((*size).into())));
            placeless(Values::from(sizes.collect::<BTreeMap<_, _>>()))
        };
        RawTune {
            values: placeless(Values::from(
                self.values.iter().map(list).collect::<BTreeMap<_, _>>(),
            )),
            predicate: self.predicate.clone().map(placeless),
            sizes: (!self.sizes.is_empty()).then(|| placeless(self.sizes.iter().map(point).collect())),
        }
    }
}

/// A value without a position in the manifest.
fn placeless<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
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
    require: Option<bool>,
    multiprocessors: Option<u32>,
    tvm: Option<String>,
    feature: Option<String>,
    options: Option<NvccOptions>,
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
            require: None,
            multiprocessors: None,
            tvm: None,
            feature: None,
            options: None,
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
        self.require = Some(require);
        self
    }

    /// Multiprocessors of the GPU that it is built for, for kernel files that ask: `multiprocessors` of the manifest.
    pub fn multiprocessors(mut self, count: u32) -> Kernel {
        self.multiprocessors = Some(count);
        self
    }

    /// The release of TVM that its text is written for, if the text does not show it: `"0.26"` or `"0.27"`.
    pub fn tvm(mut self, release: impl Into<String>) -> Kernel {
        self.tvm = Some(release.into());
        self
    }

    /// The package's Cargo feature that it belongs to: without the feature it is not built.
    pub fn feature(mut self, name: impl Into<String>) -> Kernel {
        self.feature = Some(name.into());
        self
    }

    /// How nvcc compiles it; by default as `[defaults]` of the manifest says.
    pub fn options(mut self, options: NvccOptions) -> Kernel {
        self.options = Some(options);
        self
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same as a manifest's table, so that the manifest's reader checks it. A function has an empty script there.
    pub(crate) fn declared(&self) -> Declared {
        let list = |values: &Vec<String>| values.iter().cloned().map(placeless).collect();
        let (source, script) = match &self.text {
            Text::File(path) => (Some(path.clone()), None),
            Text::Inline(text) => (None, Some(text.clone())),
            Text::Function(_) => (None, Some(String::new())),
        };
        let specialize = self.specialize.iter().cloned();
        let specialize: Vec<_> = specialize.map(|values| placeless(Values::from(values))).collect();
        let options = self.options.as_ref();
        let raw = RawKernel {
            name: placeless(self.name.clone()),
            source: source.map(placeless),
            script: script.map(placeless),
            entry: self.entry.clone().map(placeless),
            specialize: (!specialize.is_empty()).then(|| placeless(specialize)),
            specialize_grid: None,
            tune: self.tune.as_ref().map(|tune| placeless(Record(tune.as_raw()))),
            targets: self.targets.as_ref().map(list),
            ptx: self.ptx.clone().map(placeless),
            require: self.require,
            feature: self.feature.clone(),
            flags: options.map(|options| list(&options.flags)),
            fast_math: options.map(|options| options.fast_math),
            max_registers: options.and_then(|options| options.max_registers).map(placeless),
            lineinfo: options.map(|options| options.lineinfo),
            debug: options.map(|options| options.debug),
            allow_spills: options.map(|options| options.allow_spills),
            max_spills: options.and_then(|options| options.max_spills),
            min_occupancy: options.and_then(|options| options.min_occupancy).map(placeless),
            multiprocessors: self.multiprocessors,
            tvm: self.tvm.clone().map(placeless),
        };
        Declared {
            raw,
            text: self.text.clone(),
        }
    }
}
