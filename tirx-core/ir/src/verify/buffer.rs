//! Buffers: their descriptions, and accesses to them.

use super::Verifier;
use crate::ir::{Buffer, DType, Expr, print_expr};
use crate::source::Span;

impl Verifier<'_> {
    /// The dtypes of a buffer's description.
    pub(super) fn description(&mut self, buffer: &Buffer) {
        for e in buffer.exprs() {
            self.expr(e);
            let ok = e.dtype.is_integer() && e.dtype.is_scalar();
            self.check(ok, e.span.or(buffer.span), || {
                format!(
                    "`{}` in the description of buffer {} is {}",
                    print_expr(e),
                    buffer.name,
                    e.dtype
                )
            });
        }
        let dimensions = buffer.strides.is_empty() || buffer.strides.len() == buffer.shape.len();
        self.check(dimensions, buffer.span, || {
            format!(
                "buffer {} has {} strides for {} extents",
                buffer.name,
                buffer.strides.len(),
                buffer.shape.len()
            )
        });
        self.check(
            buffer.align.is_power_of_two() && buffer.offset_factor > 0,
            buffer.span,
            || {
                format!(
                    "buffer {} has alignment {} and offset factor {}",
                    buffer.name, buffer.align, buffer.offset_factor
                )
            },
        );
        let pointer = buffer.data.dtype().is_handle();
        self.check(pointer, buffer.span, || {
            format!("the data of buffer {} is {}", buffer.name, buffer.data.dtype())
        });
    }

    /// Checks an access; gives the dtype of the accessed element.
    pub(super) fn access(
        &mut self,
        span: Span,
        buffer: &Buffer,
        indices: &[Expr],
        predicate: Option<&Expr>,
    ) -> DType {
        self.check(self.buffers.contains(buffer), span, || {
            format!("buffer {} is used outside of its scope", buffer.name)
        });
        self.check(indices.len() == buffer.shape.len(), span, || {
            format!(
                "{} indices into the {} dimensions of buffer {}",
                indices.len(),
                buffer.shape.len(),
                buffer.name
            )
        });
        for index in indices {
            self.check(index.dtype.is_integer(), index.span.or(span), || {
                format!(
                    "index `{}` of buffer {} is {}",
                    print_expr(index),
                    buffer.name,
                    index.dtype
                )
            });
        }
        let vectors = indices.iter().filter(|i| i.dtype.is_vector()).count();
        self.check(vectors <= 1, span, || {
            format!("{vectors} vector indices into buffer {}", buffer.name)
        });
        let lanes = indices.iter().fold(1u16, |n, i| n.saturating_mul(i.dtype.lanes));
        if let Some(predicate) = predicate {
            let ok = predicate.dtype == DType::BOOL.with_lanes(lanes);
            self.check(ok, predicate.span.or(span), || {
                format!(
                    "predicate of {lanes} lanes of buffer {} is {}",
                    buffer.name, predicate.dtype
                )
            });
        }
        buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes))
    }
}
