//! Names of elements of shared memory, as the kernel writes them.
//!
//! A kernel declares several buffers over one allocation (a pool). Each of them is a [`SharedArray`] of its own, with
//! bounds of its own, that is a view of the allocation's. Races and initialization are tracked by bytes, whatever their names.

use super::{ArrayView, Code, SharedArray};

impl SharedArray {
    /// The description of a part of the array, as far as the array determines it.
    pub fn part(&self, view: ArrayView) -> SharedArray {
        SharedArray {
            offset: self.offset.saturating_add(view.start),
            bytes: view.bytes.min(self.bytes.saturating_sub(view.start)),
            view: Some(view),
            ..self.clone()
        }
    }

    /// The elements that some bits of the array belong to, by name: `As[1, 0, 0:4]`. Bits count from the array's start.
    pub fn elements_at(&self, first: i128, bits: i128, unit: i64) -> String {
        let (place, end) = (
            first.div_euclid(unit.into()) as i64,
            (first + bits + i128::from(unit) - 1).div_euclid(unit.into()) as i64,
        );
        let Some(view) = &self.view else {
            return match place.saturating_add(1) == end {
                true => format!("`{}[{place}]`", self.name),
                false => format!("`{}[{place}:{end}]`", self.name),
            };
        };
        (view.elements.names(&self.name, place, end))
            .unwrap_or_else(|| format!("byte {} of `{}`", first.div_euclid(8), self.name))
    }

    /// The bits of the elements in which messages count, for an access of elements of `size` bits.
    pub fn unit(&self, size: i64) -> i64 {
        match (&self.view, self.element) {
            (Some(_), own @ 1..) => i64::from(own),
            _ => size,
        }
    }

    /// How many elements and bytes the array is declared with.
    pub fn extent(&self, unit: i64) -> (i64, u32) {
        let bytes = self.view.as_ref().map_or(self.bytes, |view| view.bytes);
        (i64::from(bytes) * 8 / unit, bytes)
    }
}

impl Code {
    /// Bytes up to the end of the allocations in shared memory. Views have none of their own, and a pool has none before the launch.
    pub fn shared_end(&self) -> u32 {
        let wholes = self.shared.iter().filter(|a| a.view.is_none());
        wholes.map(|a| a.offset + a.bytes).max().unwrap_or(0)
    }

    /// The array that a region's array is a part of: itself, if it is none.
    pub fn whole(&self, array: u16) -> u16 {
        match self.shared.get(array as usize).and_then(|a| a.view.as_ref()) {
            Some(view) => view.of,
            None => array,
        }
    }

    /// The byte of shared memory as an element of the buffer that holds it (`shared As[1, 0, 0]`, as code), or as a byte of its
    /// array where no buffer or several of the same size hold it.
    pub fn name_of_byte(&self, byte: u32) -> Option<String> {
        let holds = |a: &&SharedArray| byte >= a.offset && byte - a.offset < a.bytes;
        let array = self.shared.iter().find(|a| a.view.is_none() && holds(a))?;
        Some(match self.buffer_at(byte) {
            Some(element) => format!("shared {element}"),
            None => format!("byte {} of shared `{}`", byte - array.offset, array.name),
        })
    }

    /// The byte of shared memory as an element of the buffer of a pool that holds it: `As[1, 0, 0]`, as code.
    pub fn buffer_at(&self, byte: u32) -> Option<String> {
        let view = self.view_at(|a| byte >= a.offset && byte - a.offset < a.bytes)?;
        let bit = i128::from(byte - view.offset) * 8;
        Some(view.elements_at(bit, 1, view.unit(8)))
    }

    /// The smallest of some views, if all that are as small have its name and its place.
    pub fn view_at(&self, holds: impl Fn(&SharedArray) -> bool) -> Option<&SharedArray> {
        let views = || self.shared.iter().filter(|a| a.view.is_some() && holds(a));
        let smallest = views().min_by_key(|a| a.bytes)?;
        let alike = |a: &SharedArray| a.name == smallest.name && a.offset == smallest.offset;
        views()
            .filter(|a| a.bytes == smallest.bytes)
            .all(alike)
            .then_some(smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytecode::Elements;

    fn array(elements: Elements) -> SharedArray {
        SharedArray {
            offset: 1024,
            bytes: 512,
            align: 1024,
            element: 32,
            name: "As".to_string(),
            dynamic: false,
            view: Some(ArrayView {
                of: 0,
                start: 1024,
                bytes: 512,
                elements,
            }),
        }
    }

    #[test]
    fn elements_have_their_coordinates() {
        let plain = array(Elements {
            shape: vec![2, 8, 8],
            steps: vec![],
            first: 0,
            swizzle: None,
        });
        let at =
            |array: &SharedArray, element: i128, count: i128| array.elements_at(element * 32, count * 32, 32);
        assert_eq!(at(&plain, 64, 1), "`As[1, 0, 0]`");
        assert_eq!(at(&plain, 68, 4), "`As[1, 0, 4:8]`");
        assert_eq!(at(&plain, 71, 2), "`As[1, 0, 7]` to `As[1, 1, 0]`");
        assert_eq!(at(&plain, 128, 1), "`As[2, 0, 0]`");
        assert_eq!(at(&plain, -1, 1), "`As[-1, 7, 7]`");
        let padded = array(Elements {
            shape: vec![4, 8],
            steps: vec![(4, 9), (8, 1)],
            first: 0,
            swizzle: None,
        });
        assert_eq!(at(&padded, 9, 1), "`As[1, 0]`");
        assert_eq!(at(&padded, 36, 1), "`As[4, 0]`");
        assert_eq!(at(&padded, 8, 1), "byte 32 of `As`");
        let scalar = array(Elements {
            shape: vec![],
            steps: vec![],
            first: 0,
            swizzle: None,
        });
        assert_eq!(
            (at(&scalar, 0, 1), at(&scalar, 1, 1)),
            ("`As`".into(), "`As[1]`".into())
        );
    }
}
