//! Compiles the example kernels for the tests that launch them, and looks for the nvcc that the other tests use.

use tirx_build::Environment;
use tirx_build::toolchain::{Discovered, Search, discover};

fn main() -> tirx_build::Result<()> {
    tirx_build::compile_kernels("../kernels.toml")?;
    let search = Search {
        environment: &Environment::process(),
        pin: "13.0".parse().ok(),
        needs: None,
        prefixes: None,
    };
    if let Discovered::Found(nvcc) = discover(&search)? {
        println!("cargo:rustc-env=TIRX_FOUND_NVCC={}", nvcc.path.display());
    }
    Ok(())
}
