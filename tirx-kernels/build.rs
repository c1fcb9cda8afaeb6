//! Compiles the kernels of the selected families.

fn main() -> tirx_build::Result<()> {
    tirx_build::compile_kernels("kernels.toml")
}
