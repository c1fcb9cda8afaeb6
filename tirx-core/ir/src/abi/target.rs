//! The GPU that a module is compiled for, and the form it takes as an attribute.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ir::AttrValue;

/// The GPU that a module is lowered for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The architecture as nvcc names it: `sm_90a`.
    pub arch: Arc<str>,
}

/// Shared memory of a GPU, in bytes. The source is the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// The most that a block may use, static and dynamic together.
    pub block: u32,
    /// What the system takes for itself beside each block's.
    pub reserved: u32,
}

const fn shared_memory(block_kib: u32, reserved_kib: u32) -> SharedMemory {
    SharedMemory {
        block: block_kib * 1024,
        reserved: reserved_kib * 1024,
    }
}

/// By compute capability.
const SHARED_MEMORY: &[(u32, SharedMemory)] = &[
    (75, shared_memory(64, 0)),
    (80, shared_memory(163, 1)),
    (86, shared_memory(99, 1)),
    (87, shared_memory(163, 1)),
    (89, shared_memory(99, 1)),
    (90, shared_memory(227, 1)),
    (100, shared_memory(227, 1)),
    (103, shared_memory(227, 1)),
    // Rubin: the most that kernels of the package `tirx-kernels` use; not compared with a GPU.
    (107, shared_memory(327, 1)),
    (110, shared_memory(227, 1)),
    (120, shared_memory(99, 1)),
    (121, shared_memory(99, 1)),
];

impl SharedMemory {
    /// That of a GPU whose limits are not known: Hopper's and Blackwell's.
    pub const USUAL: SharedMemory = shared_memory(227, 1);

    /// What a multiprocessor has for all of its blocks.
    pub fn multiprocessor(self) -> u32 {
        self.block + self.reserved
    }
}

impl Target {
    /// A CUDA GPU of an architecture.
    pub fn cuda(arch: impl Into<Arc<str>>) -> Target {
        Target { arch: arch.into() }
    }

    /// Threads of a warp.
    pub const WARP_SIZE: i128 = 32;

    /// Ten times the major compute capability plus the minor one; 0 for an architecture of another form.
    pub fn compute_capability(&self) -> u32 {
        let digits = self.arch.trim_start_matches("sm_");
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().unwrap_or(0)
    }

    /// Its shared memory.
    pub fn shared_memory(&self) -> SharedMemory {
        let capability = self.compute_capability();
        let known = SHARED_MEMORY.iter().find(|(known, _)| *known == capability);
        known.map_or(SharedMemory::USUAL, |(_, memory)| *memory)
    }

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

    /// Reads a `target` attribute; `None` where it names no CUDA architecture.
    pub fn from_attr(attr: &AttrValue) -> Option<Target> {
        let AttrValue::Target(fields) = attr else {
            return None;
        };
        if fields.get("kind")?.as_str()? != "cuda" {
            return None;
        }
        Some(Target::cuda(fields.get("arch")?.as_str()?))
    }

    /// Adds the default fields of the target's kind where the description leaves them out.
    pub fn complete(fields: &mut BTreeMap<Arc<str>, AttrValue>) {
        let implied = match fields.get("kind").and_then(AttrValue::as_str) {
            Some("cuda") => Target::cuda("").fields(None),
            Some("llvm") => Target::host_fields(),
            _ => return,
        };
        for (name, value) in implied.into_iter().filter(|(name, _)| &**name != "arch") {
            fields.entry(name).or_insert(value);
        }
    }

    fn fields(&self, host: Option<BTreeMap<Arc<str>, AttrValue>>) -> BTreeMap<Arc<str>, AttrValue> {
        let text = |s: &str| AttrValue::Str(s.into());
        let mut fields: BTreeMap<Arc<str>, AttrValue> = BTreeMap::new();
        fields.insert("arch".into(), AttrValue::Str(self.arch.clone()));
        fields.insert("keys".into(), AttrValue::List(vec![text("cuda"), text("gpu")]));
        fields.insert("kind".into(), text("cuda"));
        fields.insert("max_num_threads".into(), AttrValue::Int(1024));
        fields.insert("tag".into(), text(""));
        fields.insert(
            "thread_warp_size".into(),
            AttrValue::Int(Target::WARP_SIZE as i64),
        );
        if let Some(host) = host {
            fields.insert("host".into(), AttrValue::Dict(host));
        }
        fields
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_that_of_the_compute_capability() {
        for (arch, block, multiprocessor) in [
            ("sm_75", 64, 64),
            ("sm_80", 163, 164),
            ("sm_86", 99, 100),
            ("sm_90a", 227, 228),
            ("sm_100f", 227, 228),
            ("sm_107a", 327, 328),
            ("sm_120a", 99, 100),
            ("sm_999", 227, 228),
        ] {
            let memory = Target::cuda(arch).shared_memory();
            let found = (memory.block / 1024, memory.multiprocessor() / 1024);
            assert_eq!(found, (block, multiprocessor), "{arch}");
        }
    }
}
