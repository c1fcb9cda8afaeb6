//! Kernels lowered, simulated and compared: with plain Rust, with other passes, with broken variants.

mod accuracy;
mod asynchronous;
mod chains;
mod gallery;
mod launchers;
mod mutants;
mod pages;
#[path = "../profile/mod.rs"]
mod profile;
mod profiler;
mod random_kernels;
mod random_tiles;
mod rank_mutants;
mod round_trip;
mod tensor_maps;
