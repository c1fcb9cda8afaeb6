//! The kernels of [tirx-kernels](https://docs.rs/tirx-kernels), compiled for Hopper (`sm_90a`): a file, and no code. The feature `sm_90a` of
//! `tirx-kernels` takes its kernels from here, so that a build needs no CUDA toolkit.
