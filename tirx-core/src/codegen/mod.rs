//! Final IR to CUDA C++ and launcher code.

pub mod host;
pub mod rust;
