//! The part of an allocation that an argument covers: a kernel may not access memory outside a view of a tensor,
//! whatever is allocated around it.

/// Elements of an allocation: those of a tensor or of a view of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First element's address.
    address: u64,
    /// Bits of an element.
    bits: u64,
    /// Extent and stride in elements of each dimension, the largest stride first, without dimensions of extent one.
    dims: Vec<(u64, u64)>,
    /// As the caller gave them.
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Window {
    /// The elements of `bits` bits each from `address` on, with these extents and steps in elements.
    pub fn new(address: u64, bits: u32, shape: &[usize], strides: &[usize]) -> Window {
        let pairs = shape.iter().zip(strides).filter(|(extent, _)| **extent != 1);
        let mut dims: Vec<(u64, u64)> = pairs.map(|(e, s)| (*e as u64, *s as u64)).collect();
        dims.sort_by_key(|(_, step)| std::cmp::Reverse(*step));
        Window {
            address,
            bits: u64::from(bits.max(1)),
            dims,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        }
    }

    /// Whether all of `len` bits from bit `at`, counted from address 0, belong to it.
    pub(crate) fn holds(&self, at: u128, len: u64) -> bool {
        let Some(from) = at.checked_sub(u128::from(self.address) * 8) else {
            return false;
        };
        let bits = u128::from(self.bits);
        let (first, last) = (from / bits, (from + u128::from(len.max(1)) - 1) / bits);
        (first..=last).all(|element| self.has(element))
    }

    fn has(&self, element: u128) -> bool {
        let mut rest = element;
        for (extent, step) in &self.dims {
            if *extent == 0 {
                return false;
            }
            if *step == 0 {
                continue;
            }
            let index = (rest / u128::from(*step)).min(u128::from(*extent) - 1);
            rest -= index * u128::from(*step);
        }
        rest == 0
    }

    /// Its name in messages.
    pub(crate) fn describe(&self) -> String {
        format!("shape {:?}, strides {:?}", self.shape, self.strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_matrix_do_not_hold_what_is_between_them() {
        // Columns 2..5 of a matrix of 4 rows and 10 columns of 32 bits.
        let window = Window::new(1000 + 8, 32, &[4, 3], &[10, 1]);
        let at = |row: u128, column: u128| (1000 + (row * 10 + column) * 4) * 8;
        assert!(window.holds(at(0, 2), 32) && window.holds(at(3, 4), 32));
        assert!(window.holds(at(1, 2), 96) && !window.holds(at(1, 2), 128));
        for outside in [at(0, 1), at(0, 5), at(2, 9), at(4, 2)] {
            assert!(!window.holds(outside, 32));
        }
        assert!(!window.holds(0, 32));
        assert!(!Window::new(0, 32, &[0], &[1]).holds(0, 32));
        assert!(Window::new(0, 4, &[3], &[1]).holds(8, 4) && !Window::new(0, 4, &[3], &[1]).holds(12, 4));
    }
}
