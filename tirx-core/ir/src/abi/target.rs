//! The GPU that a module is compiled for, and the form it takes as an attribute.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ir::{AttrValue, Gpu, UnknownGpu};

/// The GPU that a module is lowered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The GPU.
    pub gpu: Gpu,
}

impl Target {
    /// A CUDA GPU.
    pub fn cuda(gpu: Gpu) -> Target {
        Target { gpu }
    }

    /// An H100 or H200 with its own features.
    pub const SM_90A: Target = Target { gpu: Gpu::SM_90A };

    /// A CUDA GPU by its name: `sm_90a`.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn named(name: &str) -> Result<Target, UnknownGpu> {
        name.parse().map(Target::cuda)
    }

    /// Threads of a warp.
    pub const WARP_SIZE: i128 = 32;

    /// The form it takes as a function's `target` attribute.
    pub fn to_attr(&self) -> AttrValue {
        AttrValue::Target(self.fields(Some(Target::host_fields())))
    }

    /// The form it takes on a device function: without its host.
    pub fn device_attr(&self) -> AttrValue {
        AttrValue::Target(self.fields(None))
    }

    /// The target of a host function.
    pub fn host_attr() -> AttrValue {
        AttrValue::Target(Target::host_fields())
    }

    /// Reads a `target` attribute; `None` if it names no CUDA GPU.
    pub fn from_attr(attr: &AttrValue) -> Option<Target> {
        let AttrValue::Target(fields) = attr else {
            return None;
        };
        if fields.get("kind")?.as_str()? != "cuda" {
            return None;
        }
        Target::named(fields.get("arch")?.as_str()?).ok()
    }

    /// Adds the default fields of the target's kind where the description leaves them out.
    pub fn complete(fields: &mut BTreeMap<Arc<str>, AttrValue>) {
        let implied = match fields.get("kind").and_then(AttrValue::as_str) {
            Some("cuda") => Target::cuda_fields(),
            Some("llvm") => Target::host_fields(),
            _ => return,
        };
        for (name, value) in implied {
            fields.entry(name).or_insert(value);
        }
    }

    fn fields(&self, host: Option<BTreeMap<Arc<str>, AttrValue>>) -> BTreeMap<Arc<str>, AttrValue> {
        let mut fields = Target::cuda_fields();
        fields.insert("arch".into(), AttrValue::Str(self.gpu.to_string().into()));
        if let Some(host) = host {
            fields.insert("host".into(), AttrValue::Dict(host));
        }
        fields
    }

    /// The fields that each CUDA target has.
    fn cuda_fields() -> BTreeMap<Arc<str>, AttrValue> {
        let text = |s: &str| AttrValue::Str(s.into());
        BTreeMap::from([
            ("keys".into(), AttrValue::List(vec![text("cuda"), text("gpu")])),
            ("kind".into(), text("cuda")),
            ("max_num_threads".into(), AttrValue::Int(1024)),
            ("tag".into(), text("")),
            (
                "thread_warp_size".into(),
                AttrValue::Int(Target::WARP_SIZE as i64),
            ),
        ])
    }

    /// The fields of a host target.
    pub fn host_fields() -> BTreeMap<Arc<str>, AttrValue> {
        let text = |s: &str| AttrValue::Str(s.into());
        let mut fields: BTreeMap<Arc<str>, AttrValue> = BTreeMap::new();
        fields.insert("keys".into(), AttrValue::List(vec![text("cpu")]));
        fields.insert("kind".into(), text("llvm"));
        fields.insert("tag".into(), text(""));
        fields
    }
}
