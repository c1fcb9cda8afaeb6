//! Why a variant does not lower a call: it does not apply, or the call is wrong.

use crate::source::Span;

/// Why a variant does not lower a call.
#[derive(Debug)]
pub(super) enum Decline {
    /// It does not apply, for this reason; the next variant is tried.
    NotApplicable(String),
    /// The call is wrong whichever variant lowers it; no other one is tried.
    Mistake {
        /// What is wrong; [`Span::NONE`] for the call.
        span: Span,
        /// The cause.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
}

impl Decline {
    /// A mistake in the call.
    pub(super) fn mistake(message: impl Into<String>, help: impl Into<String>) -> Decline {
        Decline::Mistake {
            span: Span::NONE,
            message: message.into(),
            help: Some(help.into()),
        }
    }
}

impl From<String> for Decline {
    fn from(reason: String) -> Decline {
        Decline::NotApplicable(reason)
    }
}

impl From<&str> for Decline {
    fn from(reason: &str) -> Decline {
        Decline::NotApplicable(reason.to_string())
    }
}
