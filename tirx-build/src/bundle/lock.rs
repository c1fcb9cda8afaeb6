//! `kernels.lock`, as bundles have it: the format is that of [`tirx_bundle`].

pub use tirx_bundle::lock::{Lock, Locked, Unreadable, VERSION};
