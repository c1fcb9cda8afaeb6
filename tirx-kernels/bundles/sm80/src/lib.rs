//! The kernels of [tirx-kernels](https://docs.rs/tirx-kernels), compiled for GPUs from Ampere on (`sm_80` and PTX): a file, and no code. The feature `sm_80` of
//! `tirx-kernels` takes its kernels from here, so that a build needs no CUDA toolkit.
