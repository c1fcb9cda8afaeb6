//! A cache of results by expression, valid until the analyzer's knowledge changes.
//!
//! A direct-mapped table: a later result with the same slot overwrites an earlier one. A lookup is one comparison, and
//! invalidating everything increments a generation counter: both are frequent, and build scripts are compiled without
//! optimization.

use crate::ir::Expr;

/// Initial and maximal number of entries; powers of two.
const FEWEST: usize = 16;
const MOST: usize = 256;

/// Results by expression.
pub(super) struct Memo<V> {
    places: Vec<Option<Entry<V>>>,
    /// Results of earlier generations are invalid.
    generation: u64,
    /// Results that were put into this table.
    inserted: usize,
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
            inserted: 0,
        }
    }
}

impl<V> Memo<V> {
    /// The cached result for an expression, if there is one.
    pub(super) fn get(&self, expr: &Expr) -> Option<&V> {
        self.entry(expr).map(|entry| &entry.value)
    }

    /// The cached result for an expression whose operands have the same spans. Which results are in the table depends on where nodes are in
    /// memory, and the spans of a result may not.
    pub(super) fn get_with_spans(&self, expr: &Expr) -> Option<&V> {
        let entry = self.entry(expr)?;
        let mut operands = entry.expr.operands().zip(expr.operands());
        operands.all(|(a, b)| a.has_spans_of(b)).then_some(&entry.value)
    }

    fn entry(&self, expr: &Expr) -> Option<&Entry<V>> {
        let entry = self.places.get(self.place(expr))?.as_ref()?;
        (entry.generation == self.generation && entry.expr == *expr).then_some(entry)
    }

    pub(super) fn insert(&mut self, expr: &Expr, value: V) {
        if self.inserted >= self.places.len() && self.places.len() < MOST {
            self.grow();
        }
        self.inserted += 1;
        let place = self.place(expr);
        self.places[place] = Some(Entry {
            generation: self.generation,
            expr: expr.clone(),
            value,
        });
    }

    fn grow(&mut self) {
        let size = (self.places.len() * 4).clamp(FEWEST, MOST);
        let before = std::mem::take(&mut self.places);
        self.places.resize_with(size, || None);
        self.inserted = 0;
        for entry in before.into_iter().flatten() {
            let place = self.place(&entry.expr);
            self.places[place] = Some(entry);
        }
    }

    /// The slot of an expression. The high bits of a multiplicative hash are mixed best.
    fn place(&self, expr: &Expr) -> usize {
        let hash = expr.structural_hash();
        (hash ^ (hash >> 16)) as usize & self.places.len().wrapping_sub(1)
    }

    pub(super) fn forget(&mut self) {
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{BinOp, DType, Var};
    use tirx_source::source::{FileId, Span};

    #[test]
    fn results_are_of_equal_expressions_until_forgotten() {
        let mut memo = Memo::default();
        assert_eq!(memo.get(&Expr::int32(7)), None);
        for i in 0..2000 {
            memo.insert(&Expr::int32(i), i);
            assert_eq!(memo.get(&Expr::int32(i)), Some(&i));
        }
        let left = (0..2000).filter(|i| memo.get(&Expr::int32(*i)).is_some()).count();
        assert!((2..=MOST).contains(&left), "{left}");
        memo.forget();
        assert_eq!(memo.get(&Expr::int32(1999)), None);
    }

    #[test]
    fn a_result_with_spans_is_of_an_expression_with_the_same_ones() {
        let at = |expr: Expr, start: u32| {
            let (file, end) = (FileId(1), start + 1);
            expr.at(Span { file, start, end })
        };
        let n = Expr::var(&Var::new("n", DType::INT32));
        let sum = |start: u32| Expr::binary(BinOp::Add, n.clone(), at(Expr::int32(1), start));
        let (first, second) = (sum(3), sum(9));
        assert_eq!(first, second);
        let mut memo = Memo::default();
        memo.insert(&first, 1);
        assert_eq!(
            (memo.get(&second), memo.get_with_spans(&second)),
            (Some(&1), None)
        );
        // Its own span is not that of the result.
        assert_eq!(memo.get_with_spans(&at(first.clone(), 20)), Some(&1));
    }
}
