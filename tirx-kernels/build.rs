//! Compiles the kernels of the selected families, or takes them from a package of compiled kernels.

fn main() -> tirx_build::Result<()> {
    let mut builder = tirx_build::Builder::new();
    if cfg!(feature = "sm_90a") {
        builder = builder.targets(["sm_90a"]);
        // The package's build script sets it.
        if let Some(bundle) = std::env::var_os("DEP_TIRX_KERNELS_SM90A_BUNDLE") {
            builder = builder.bundle_dir(bundle);
        }
    }
    builder.compile()
}
