//! Positions in a text, in bytes.

use std::ops::Range;

/// An offset into a text, or a length, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextSize(u32);

impl TextSize {
    /// So many bytes.
    pub const fn new(bytes: u32) -> TextSize {
        TextSize(bytes)
    }

    /// The number of bytes.
    pub const fn to_u32(self) -> u32 {
        self.0
    }

    /// The number of bytes, to index a text.
    pub const fn to_usize(self) -> usize {
        self.0 as usize
    }
}

/// Where a node is written: from its first byte to the one after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextRange {
    start: TextSize,
    end: TextSize,
}

impl TextRange {
    /// From `start` up to `end`.
    pub const fn new(start: TextSize, end: TextSize) -> TextRange {
        TextRange { start, end }
    }

    /// `len` bytes from `start`.
    pub const fn at(start: TextSize, len: TextSize) -> TextRange {
        TextRange {
            start,
            end: TextSize(start.0 + len.0),
        }
    }

    /// The first byte.
    pub const fn start(self) -> TextSize {
        self.start
    }

    /// The byte after the last one.
    pub const fn end(self) -> TextSize {
        self.end
    }

    /// Bytes.
    pub const fn len(self) -> TextSize {
        TextSize(self.end.0 - self.start.0)
    }

    /// Whether it holds no byte.
    pub const fn is_empty(self) -> bool {
        self.start.0 == self.end.0
    }

    /// To index a text.
    pub const fn to_usize(self) -> Range<usize> {
        self.start.to_usize()..self.end.to_usize()
    }
}

/// What has a position.
pub trait Ranged {
    /// Where it is written.
    fn range(&self) -> TextRange;
}

impl Ranged for TextRange {
    fn range(&self) -> TextRange {
        *self
    }
}

impl<T: Ranged + ?Sized> Ranged for Box<T> {
    fn range(&self) -> TextRange {
        (**self).range()
    }
}

impl<T: Ranged + ?Sized> Ranged for &T {
    fn range(&self) -> TextRange {
        (**self).range()
    }
}
