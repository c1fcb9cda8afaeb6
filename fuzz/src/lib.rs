//! What the fuzz targets do with an input. A panic here is a finding; an error that the compiler reports is none.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod image;
pub mod kernel;
pub mod lock;
pub mod manifest;
pub mod mutate;
pub mod seeds;
