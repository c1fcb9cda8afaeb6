//! One file of the store: what nvcc made of one text for one target, and what it said.
//!
//! ```text
//! bytes  0..8     "TIRXSTO1"
//!        8..40    the key: hash over everything that the result depends on
//!       40..72    hash over all that follows
//!       72..76    bytes of the messages, little-endian
//!       76..84    bytes of the image, little-endian
//!       84..      messages, image
//! ```
//!
//! Every field is checked: a file that is truncated, corrupt or of another key counts as missing.

use crate::hash::digest;
use tirx_bundle::fatbin;

/// The key of an entry.
pub(crate) type Key = [u8; 32];

const MAGIC: &[u8; 8] = b"TIRXSTO1";
const HEAD: usize = 84;

/// The result of a run of nvcc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The fat binary for one target.
    pub(crate) image: Vec<u8>,
    /// The messages of nvcc; warnings, as it succeeded.
    pub(crate) messages: String,
}

impl Entry {
    /// The file's bytes.
    pub(crate) fn encode(&self, key: &Key) -> Vec<u8> {
        let mut body = Vec::with_capacity(HEAD + self.messages.len() + self.image.len());
        body.extend((self.messages.len() as u32).to_le_bytes());
        body.extend((self.image.len() as u64).to_le_bytes());
        body.extend(self.messages.as_bytes());
        body.extend(&self.image);
        let mut file = MAGIC.to_vec();
        file.extend(key);
        file.extend(digest(&[&body]));
        file.extend(body);
        file
    }

    /// Reads a file's bytes; `None` where they are not a whole, undamaged entry of this key.
    pub(crate) fn decode(key: &Key, file: &[u8]) -> Option<Entry> {
        let (head, body) = (file.get(..72)?, file.get(72..)?);
        if head[..8] != *MAGIC || head[8..40] != *key || head[40..] != digest(&[body]) {
            return None;
        }
        let messages = u32::from_le_bytes(body.get(..4)?.try_into().ok()?) as usize;
        let image = usize::try_from(u64::from_le_bytes(body.get(4..12)?.try_into().ok()?)).ok()?;
        let (text, bytes) = body[12..].split_at_checked(messages)?;
        if bytes.len() != image || fatbin::check(bytes).is_err() {
            return None;
        }
        Some(Entry {
            image: bytes.to_vec(),
            messages: String::from_utf8(text.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::test_fatbin as fatbin;

    #[test]
    fn only_whole_entries_of_the_key_are_read() {
        let entry = Entry {
            image: fatbin(b"code"),
            messages: "a warning\n".into(),
        };
        let (key, other) = ([1; 32], [2; 32]);
        let file = entry.encode(&key);
        assert_eq!(Entry::decode(&key, &file).as_ref(), Some(&entry));
        assert_eq!(Entry::decode(&other, &file), None);
        for length in 0..file.len() {
            assert_eq!(Entry::decode(&key, &file[..length]), None, "{length}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(Entry::decode(&key, &damaged), None, "{at}");
        }
        let longer = [file, vec![0]].concat();
        assert_eq!(Entry::decode(&key, &longer), None);
    }
}
