//! The lowering pipeline, one pass a file.
