//! Where are the elements of a buffer that is a part of a shared array, and what are they called?

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
const MAX_TRIED: u64 = 1 << 20;

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
        let beyond = self.count().saturating_mul(4).min(MAX_TRIED);
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
    pub(super) fn names(&self, buffer: &str, first: i64, end: i64) -> Option<String> {
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

fn joined(coordinate: &[i64]) -> String {
    let numbers: Vec<String> = coordinate.iter().map(i64::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
