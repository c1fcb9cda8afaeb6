//! The functions around matrix products and attention on the simulator, with all its checks, against float64. `TIRX_TEST_DEVICE=cuda`
//! runs them on the first GPU.

#![cfg(feature = "serving")]

mod caches;
mod data;
mod elements;
mod experts;
mod norms;
mod pages;
mod reductions;
mod tokens;
