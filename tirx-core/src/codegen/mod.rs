//! Final IR to CUDA C++ and launcher code.

pub mod cuda;
pub mod host;
pub mod rust;
