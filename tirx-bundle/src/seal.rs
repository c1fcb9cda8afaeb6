//! The header of a bundle's files: eight bytes that identify the format, and the SHA-256 of everything after the
//! header.

use hmac_sha256::Hash;

use crate::problem::Problem;

/// Bytes before the content.
pub const HEADER: usize = 40;
/// The first bytes of a bundle that is one file; the last of them is the version of the format.
pub const BUNDLE: &[u8; 8] = b"TIRXBND1";
/// The first bytes of a kernel's file.
pub const KERNEL: &[u8; 8] = b"TIRXKRN1";

/// A content with its header.
pub fn seal(magic: &[u8; 8], content: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + content.len());
    file.extend(magic);
    file.extend(raw_hash(content));
    file.extend(content);
    file
}

/// The content of a file that must begin with `magic`. `foreign` is the message for a file of another kind.
pub(crate) fn unseal<'a>(magic: &[u8; 8], file: &'a [u8], foreign: &str) -> Result<&'a [u8], Problem> {
    let cut = || Problem::new("is cut off, or a length in it is wrong");
    let (found, rest) = file.split_at_checked(magic.len()).ok_or_else(cut)?;
    if found != magic {
        return Err(Problem::new(match found.starts_with(&magic[..7]) {
            true => "is of another version of the format",
            false => foreign,
        }));
    }
    let (hash, content) = rest.split_at_checked(HEADER - magic.len()).ok_or_else(cut)?;
    if raw_hash(content) != hash {
        return Err(Problem::new("is damaged: its content does not match its hash"));
    }
    Ok(content)
}

pub(crate) fn raw_hash(bytes: &[u8]) -> [u8; 32] {
    Hash::hash(bytes)
}
