//! Hashes over several parts.

use hmac_sha256::Hash;

/// SHA-256 over parts, each with its length, so that different lists of parts have different inputs.
pub(crate) fn digest<P: AsRef<[u8]>>(parts: &[P]) -> [u8; 32] {
    let mut hasher = Hash::new();
    for part in parts {
        hasher.update((part.as_ref().len() as u64).to_le_bytes());
        hasher.update(part.as_ref());
    }
    hasher.finalize()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_tell_lists_of_parts_apart() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        let text = hex(&digest(&["a"]));
        assert_eq!(text.len(), 64);
    }
}
