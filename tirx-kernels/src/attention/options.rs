//! Which keys a query sees, and the form of its scores.

use crate::{Error, Result};

/// The keys that a query sees, and the form of its scores. [`Options::default`] is attention to all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Whether a query sees no later keys: the last query sees all keys, and each query before one key less.
    pub causal: bool,
    /// The number of keys that a query sees at most, up to its own position.
    pub window: Option<usize>,
    /// The factor of scores; 1 / sqrt(`head`) if it is not given.
    pub scale: Option<f32>,
    /// The bound of scores: each becomes `cap * tanh(score / cap)`.
    pub cap: Option<f32>,
}

impl Options {
    /// Attention to the keys up to the position of the query.
    pub fn causal() -> Options {
        Options {
            causal: true,
            ..Options::default()
        }
    }

    /// With a window of `keys` keys.
    pub fn window(self, keys: usize) -> Options {
        Options {
            window: Some(keys),
            ..self
        }
    }

    /// With this factor of scores.
    pub fn scale(self, scale: f32) -> Options {
        Options {
            scale: Some(scale),
            ..self
        }
    }

    /// With this bound of scores.
    pub fn cap(self, cap: f32) -> Options {
        Options {
            cap: Some(cap),
            ..self
        }
    }
}

/// The options as kernels take them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) scale: f32,
    pub(super) causal: i32,
    /// 0 for none.
    pub(super) window: i32,
    /// 0 for none.
    pub(super) cap: f32,
}

impl Options {
    /// The values for heads with `head` elements.
    pub(super) fn values(self, head: usize) -> Result<Values> {
        let window = match self.window {
            Some(0) => return Err(Error::Shape("a window has at least one key".into())),
            Some(keys) => i32::try_from(keys).unwrap_or(i32::MAX / 2).min(i32::MAX / 2),
            None => 0,
        };
        let scale = self.scale.unwrap_or_else(|| 1.0 / (head as f32).sqrt());
        // Scores of keys that a query does not see are -1e38: their product with the factor must stay far below all others.
        if !(1e-20..=1e20).contains(&scale) {
            return Err(Error::Shape(format!(
                "the factor of scores is a number from 1e-20 to 1e20, not {scale}"
            )));
        }
        let cap = self.cap.unwrap_or(0.0);
        if self.cap.is_some() && !(1e-20..=1e20).contains(&cap) {
            return Err(Error::Shape(format!(
                "the bound of scores is a number from 1e-20 to 1e20, not {cap}; leave it out for scores without a bound"
            )));
        }
        Ok(Values {
            scale,
            causal: i32::from(self.causal),
            window,
            cap,
        })
    }
}
