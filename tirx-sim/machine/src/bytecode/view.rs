//! Names of elements of shared memory, as the kernel writes them.
//!
//! A kernel declares several buffers over one allocation (a pool). Each of them is a [`SharedArray`] of its own, with
//! bounds of its own, that is a view of the allocation's. Races and initialization are tracked by bytes, whatever their names.

use super::{Code, SharedArray};

/// The buffer that a shared array is, where it is a part of another array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayView {
    /// The number of the array that it is a part of.
    pub of: u16,
    /// Bytes from the start of that array.
    pub start: u32,
    /// Its own bytes. The allocation may have fewer.
    pub bytes: u32,
    pub elements: Elements,
}

/// Where the elements of a buffer are, in elements from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    pub shape: Vec<u64>,
    /// The iterators that split the row-major number of an element, outermost first, each with its step. None: the elements are in
    /// row-major order.
    pub steps: Vec<(u64, i64)>,
    /// The place of the element at coordinate zero.
    pub first: i64,
    pub swizzle: Option<Permutation>,
}

/// The swizzle of a layout: an exclusive-or of bits of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    pub per_element: u32,
    pub bits: u32,
    pub distance: u32,
    pub lower_change: bool,
}

/// Most elements that are tried for the name of a place. It is only sought for a message.
const MOST_TRIED: u64 = 1 << 20;

impl Permutation {
    fn apply(self, place: i64) -> i64 {
        let chunk = place >> self.per_element;
        let low = (1i64 << self.bits) - 1;
        let mixed = match self.lower_change {
            true => chunk ^ (chunk & low << self.distance) >> self.distance,
            false => chunk ^ (chunk & low) << self.distance,
        };
        mixed << self.per_element | place & ((1 << self.per_element) - 1)
    }
}

impl Elements {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The place of the element of a row-major number.
    pub fn place(&self, number: u64) -> i64 {
        let mut rest = number;
        let mut place = self.first;
        for (i, (extent, step)) in self.steps.iter().enumerate().rev() {
            // The outermost iterator goes on beyond the buffer.
            let digit = if i == 0 { rest } else { rest % extent };
            rest /= extent;
            place = place.saturating_add((digit as i64).saturating_mul(*step));
        }
        if self.steps.is_empty() {
            place = place.saturating_add(number as i64);
        }
        self.swizzle.map_or(place, |swizzle| swizzle.apply(place))
    }

    /// The row-major number of the element at a place. Outside of the buffer, numbers go on along the first dimension.
    fn number(&self, place: i64) -> Option<i64> {
        if self.steps.is_empty() && self.swizzle.is_none() {
            return Some(place - self.first);
        }
        let beyond = self.count().saturating_mul(4).min(MOST_TRIED);
        (0..beyond)
            .find(|number| self.place(*number) == place)
            .map(|number| number as i64)
    }

    /// The coordinate of an element by its row-major number.
    fn coordinate(&self, number: i64) -> Vec<i64> {
        let mut rest = number;
        let mut coordinate: Vec<i64> = Vec::new();
        for (i, extent) in self.shape.iter().enumerate().rev() {
            let extent = *extent as i64;
            coordinate.push(if i == 0 { rest } else { rest.rem_euclid(extent) });
            rest = rest.div_euclid(extent);
        }
        coordinate.reverse();
        coordinate
    }

    /// The name of the element of a row-major number: `As[1, 0, 0]`.
    pub fn name(&self, buffer: &str, number: i64) -> String {
        match (self.shape.is_empty(), number) {
            (true, 0) => buffer.to_string(),
            (true, _) => format!("{buffer}[{number}]"),
            (false, _) => format!("{buffer}[{}]", joined(&self.coordinate(number))),
        }
    }

    /// The names of the elements at consecutive places.
    fn names(&self, buffer: &str, first: i64, end: i64) -> Option<String> {
        let one = |number: i64| format!("`{}`", self.name(buffer, number));
        let start = self.number(first)?;
        if first.saturating_add(1) >= end {
            return Some(one(start));
        }
        let last = self.number(end - 1)?;
        let (mut at, there) = (self.coordinate(start), self.coordinate(last));
        Some(match (at.pop(), there.split_last()) {
            (Some(from), Some((to, front))) if at == front && to - from == end - 1 - first => {
                let front = at.iter().map(|n| format!("{n}, ")).collect::<String>();
                format!("`{buffer}[{front}{from}:{}]`", to + 1)
            }
            _ => format!("{} to {}", one(start), one(last)),
        })
    }
}

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

fn joined(coordinate: &[i64]) -> String {
    let numbers: Vec<String> = coordinate.iter().map(i64::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn every_element_of_a_swizzled_buffer_is_found_at_its_place() {
        let swizzled = Elements {
            shape: vec![16, 64],
            steps: vec![(16, 64), (64, 1)],
            first: 0,
            swizzle: Some(Permutation {
                per_element: 3,
                bits: 3,
                distance: 3,
                lower_change: true,
            }),
        };
        assert_eq!(swizzled.place(64 + 8), 64);
        for number in 0..swizzled.count() {
            assert_eq!(swizzled.number(swizzled.place(number)), Some(number as i64));
        }
    }
}
