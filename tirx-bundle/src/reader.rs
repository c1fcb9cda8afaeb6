//! Reads untrusted bytes: no length is used before it is checked.

use crate::problem::Problem;

/// A reader from the front.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// Largest unpacked content: far more than any kernel.
const LARGEST: u64 = 1 << 30;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| Problem::new("is cut off, or a length in it is wrong"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Problem> {
        Ok(self.bytes(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Problem> {
        let bytes = self.bytes(4)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Problem> {
        let bytes = self.bytes(8)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A count of items. Each takes at least `least` bytes, so an impossible count is rejected here.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Problem> {
        let count = self.u32()? as usize;
        match count.checked_mul(least.max(1)) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(Problem::new("is cut off, or a count in it is wrong")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, Problem> {
        let length = self.count(1)?;
        let bytes = self.bytes(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Problem::new("has a text that is no UTF-8"))
    }

    pub(crate) fn content(&mut self) -> Result<&'a [u8], Problem> {
        let length = usize::try_from(self.u64()?).map_err(|_| Problem::new("has an impossible length"))?;
        self.bytes(length)
    }

    /// A compressed content.
    pub(crate) fn packed(&mut self) -> Result<Vec<u8>, Problem> {
        let length = self.u64()?;
        let packed = self.content()?;
        // Deflate packs a thousand to one at best.
        if length > LARGEST || length > (packed.len() as u64 + 64).saturating_mul(1100) {
            return Err(Problem::new("has an impossible length"));
        }
        let unpacked = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, length as usize);
        match unpacked {
            Ok(bytes) if bytes.len() as u64 == length => Ok(bytes),
            _ => Err(Problem::new("has a content that cannot be unpacked")),
        }
    }

    pub(crate) fn end(&self) -> Result<(), Problem> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(Problem::new("is longer than its content")),
        }
    }
}

/// The reverse: writes a value.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) out: Vec<u8>,
}

impl Writer {
    pub(crate) fn u32(&mut self, value: usize) {
        // Counts and lengths of names: the texts of a build, far below 2^32.
        self.out.extend((value as u32).to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.u32(text.len());
        self.out.extend(text.as_bytes());
    }

    pub(crate) fn content(&mut self, bytes: &[u8]) {
        self.out.extend((bytes.len() as u64).to_le_bytes());
        self.out.extend(bytes);
    }

    pub(crate) fn packed(&mut self, bytes: &[u8]) {
        self.out.extend((bytes.len() as u64).to_le_bytes());
        let packed = miniz_oxide::deflate::compress_to_vec(bytes, 9);
        self.content(&packed);
    }
}
