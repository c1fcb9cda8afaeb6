//! Bytes as `kernels.lock`.

use tirx_build::bundle::lock::{Lock, Unreadable};

/// Reads the bytes; what is read is written and read again.
///
/// # Panics
/// Where this panics, or what was read does not come back.
pub fn run(bytes: &[u8]) {
    match Lock::read(bytes) {
        Ok(lock) => {
            let text = lock.text();
            let back = Lock::read(text.as_bytes()).expect("a lock that was written is read");
            assert_eq!(lock, back, "{text}");
        }
        Err(Unreadable::Damaged(reason)) => {
            assert!(!reason.trim().is_empty(), "damaged without a reason");
        }
        Err(Unreadable::Version(_)) => {}
    }
}
