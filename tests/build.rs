//! Compiles the example kernels for the tests that launch them.

fn main() -> tirx_build::Result<()> {
    tirx_build::compile_kernels("../kernels.toml")?;
    Ok(())
}
