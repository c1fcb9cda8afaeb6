//! Annotations of events for NVIDIA's in-kernel event tracer. Without the tracer they do nothing.

use super::kinds::*;
use crate::intrin::row::*;
use crate::ir::DType;

const NAME: ArgKind = ArgKind::DTypeName;

rows! { $ iket {
    /// An event of a name, with a value.
    CudaIketMark = Row::new("tirx.cuda.iket_mark", "cuda.iket.mark", code(""))
        .args(&[arg("name", NAME), optional("payload", ArgKind::Any)]);
    /// A range begins; gives the token that ends it.
    CudaIketRangeStart = Row::new("tirx.cuda.iket_range_start", "cuda.iket.range_start", code("return 0;"))
        .args(&[arg("name", NAME), optional("payload", ArgKind::Any)]).gives(DType::UINT32);
    /// The range of a token ends.
    CudaIketRangeEnd = Row::new("tirx.cuda.iket_range_end", "cuda.iket.range_end", code(""))
        .args(&[arg("token", U32), optional("payload", ArgKind::Any)]);
    /// A range begins that `T.cuda.iket.range_pop` ends.
    CudaIketRangePush = Row::new("tirx.cuda.iket_range_push", "cuda.iket.range_push", code(""))
        .args(&[arg("name", NAME), optional("payload", ArgKind::Any)]);
    /// Ends the range that began last.
    CudaIketRangePop = Row::new("tirx.cuda.iket_range_pop", "cuda.iket.range_pop", code(""));
    /// A token that stands for no range.
    CudaIketSentinelToken = Row::new("tirx.cuda.iket_sentinel_token", "cuda.iket.sentinel_token", code("return 0;"))
        .args(&[arg("name", NAME)]).gives(DType::UINT32);
} }
