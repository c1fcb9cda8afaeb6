//! Compiles the kernels that this application calls.

fn main() -> tirx_build::Result<()> {
    tirx_build::compile_kernels("../kernels.toml")
}
