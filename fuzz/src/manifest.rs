//! A text as a manifest.

use std::thread_local;

use tirx_build::compile::Loaded;
use tirx_build::manifest::{Manifest, Text};
use tirx_build::specialize;
use tirx_core::script::{Entry, NoImports};

/// What every `source` names here.
const FILE: &str = r#"
from tvm.script import tirx as T

@T.jit
def add(A: T.Buffer((N,), "float32"), *, N: T.constexpr, mode: T.constexpr = "fast", eps: T.constexpr = 1e-5):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])
    A[tx] = A[tx] + 1.0

@T.jit
def tile(A: T.Buffer((64,), "float32"), *, shape: T.constexpr = (8, 8), relu: T.constexpr = True, k1: T.constexpr = 2):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A[tx] = 1.0

@T.prim_func
def scale(A: T.Buffer((64,), "float32")):
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([64])
    A[tx] = A[tx] * 2.0
"#;

thread_local! {
    static ENTRIES: Vec<Entry> = Loaded::new("kernels.py", FILE, &NoImports).expect("it is correct").file().entries().to_vec();
}

/// Reads, checks and expands; no file is looked at.
///
/// # Panics
/// Where this panics, or an error has no message.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let manifest = match Manifest::parse("kernels.toml", &text) {
        Ok(manifest) => manifest,
        Err(error) => return said(&error),
    };
    for kernel in &manifest.kernels {
        let entries = match &kernel.text {
            Text::File(_) | Text::Function(_) => ENTRIES.with(Clone::clone),
            Text::Inline(text) => match Loaded::new("<script>", text, &NoImports) {
                Ok(loaded) => loaded.file().entries().to_vec(),
                Err(error) => {
                    said(&error);
                    continue;
                }
            },
        };
        let entry = match specialize::entry(&manifest, kernel, &entries) {
            Ok(entry) => entry,
            Err(error) => {
                said(&error);
                continue;
            }
        };
        let (variants, errors) = specialize::expand(&manifest, kernel, entry);
        errors.iter().for_each(said);
        for variant in variants {
            assert!(
                variant.name.is_none_or(|name| !name.is_empty()),
                "a variant without a name"
            );
        }
        kernel.targets.each();
    }
}

fn said(error: &tirx_build::Error) {
    assert!(error.to_string().starts_with("error: "), "{error}");
}
