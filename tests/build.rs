//! Compiles the example kernels for the tests that launch them; with the feature `ladder` the steps of the book's GEMM ladder,
//! which the bench `ladder` alone launches.

fn main() -> tirx_build::Result<()> {
    let manifest = match std::env::var_os("CARGO_FEATURE_LADDER") {
        Some(_) => "../docs/book/src/ladder/kernels.toml",
        None => "../kernels.toml",
    };
    tirx_build::compile_kernels(manifest)
}
