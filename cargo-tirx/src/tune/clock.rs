//! At which clock does the GPU run? The driver's `nvidia-smi` tells it; a record notes it, and nothing depends on it.

use std::process::Command;

/// The clock of a GPU's multiprocessors in MHz; `None` if there is no `nvidia-smi`, or if GPUs may have other numbers there.
pub(super) fn now(device: usize) -> Option<u32> {
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return None;
    }
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-i"])
        .arg(device.to_string())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().parse().ok())?
}
