//! An expression over values that are only known when code is written: computed, with its dtypes and its errors, when a
//! call is planned, applied when it is emitted.

use crate::ir::{DType, Expr, Var, substitute};

/// See the [module](self).
pub(super) struct Formula {
    params: Vec<Var>,
    value: Expr,
}

impl Formula {
    /// The expression that `make` builds of values of these dtypes.
    ///
    /// # Errors
    /// That of `make`.
    pub(super) fn build<E>(
        dtypes: &[DType],
        make: impl FnOnce(&[Expr]) -> Result<Expr, E>,
    ) -> Result<Formula, E> {
        let params: Vec<Var> = dtypes.iter().map(|dtype| Var::new("value", *dtype)).collect();
        let values: Vec<Expr> = params.iter().map(Expr::var).collect();
        let value = make(&values)?;
        Ok(Formula { params, value })
    }

    /// The expression 0, of no values.
    pub(super) fn none() -> Formula {
        Formula {
            params: Vec::new(),
            value: Expr::int32(0),
        }
    }

    /// The expression of these values, one for each dtype.
    pub(super) fn apply(&self, values: &[Expr]) -> Expr {
        self.apply_with(values, &|_| None)
    }

    /// The same where further variables have values.
    pub(super) fn apply_with(&self, values: &[Expr], further: &dyn Fn(&Var) -> Option<Expr>) -> Expr {
        substitute(&self.value, &|v| match self.params.iter().position(|p| p == v) {
            Some(at) => values.get(at).cloned(),
            None => further(v),
        })
    }
}
