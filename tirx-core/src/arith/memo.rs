//! What was computed of an expression, as long as nothing else is known.
//!
//! A table of a fixed size with one place for each hash: a later result takes the place of an earlier one. A lookup is
//! one comparison, and forgetting everything is counting up: both are frequent, and a build script's compiler is not
//! optimized.

use crate::ir::Expr;

/// Places, a power of two.
const PLACES: usize = 256;

/// Results by expression.
pub(super) struct Memo<V> {
    places: Vec<Option<Entry<V>>>,
    /// Results of earlier generations are forgotten.
    generation: u64,
}

struct Entry<V> {
    generation: u64,
    expr: Expr,
    value: V,
}

impl<V> Default for Memo<V> {
    fn default() -> Memo<V> {
        Memo {
            places: Vec::new(),
            generation: 0,
        }
    }
}

impl<V> Memo<V> {
    /// The result for an expression, if it is still here.
    pub(super) fn get(&self, expr: &Expr) -> Option<&V> {
        let entry = self.places.get(place(expr))?.as_ref()?;
        (entry.generation == self.generation && entry.expr == *expr).then_some(&entry.value)
    }

    pub(super) fn insert(&mut self, expr: &Expr, value: V) {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        self.places[place(expr)] = Some(Entry {
            generation: self.generation,
            expr: expr.clone(),
            value,
        });
    }

    pub(super) fn forget(&mut self) {
        self.generation += 1;
    }
}

fn place(expr: &Expr) -> usize {
    let hash = expr.structural_hash();
    // The high bits are the better ones of a multiplicative hash.
    (hash ^ (hash >> 16)) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_of_equal_expressions_until_forgotten() {
        let mut memo = Memo::default();
        assert_eq!(memo.get(&Expr::int32(7)), None);
        for i in 0..2000 {
            memo.insert(&Expr::int32(i), i);
            assert_eq!(memo.get(&Expr::int32(i)), Some(&i));
        }
        let left = (0..2000).filter(|i| memo.get(&Expr::int32(*i)).is_some()).count();
        assert!((2..=PLACES).contains(&left), "{left}");
        memo.forget();
        assert_eq!(memo.get(&Expr::int32(1999)), None);
    }
}
