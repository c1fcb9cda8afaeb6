//! Final IR to CUDA C++ and launcher code.
