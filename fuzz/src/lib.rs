//! The fuzz targets' treatment of an input. A panic is a finding; an error that the compiler reports is not.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod image;
pub mod kernel;
pub mod lock;
pub mod manifest;
pub mod mutate;
pub mod seeds;
