//! Compiles the kernels of the selected families, or takes them from a package of compiled kernels.

fn main() -> tirx_build::Result<()> {
    let builder = tirx_build::Builder::new();
    // The packages' build scripts set the variables.
    let with = |builder: tirx_build::Builder, variable: &str| match std::env::var_os(variable) {
        Some(bundle) => builder.bundle_dir(bundle),
        None => builder,
    };
    match (cfg!(feature = "sm_80"), cfg!(feature = "sm_90a")) {
        (true, false) => with(
            builder.only_targets(["sm_80", "compute_80"]),
            "DEP_TIRX_KERNELS_SM80_BUNDLE",
        ),
        (false, true) => with(builder.targets(["sm_90a"]), "DEP_TIRX_KERNELS_SM90A_BUNDLE"),
        // A bundle has one or the other: nvcc compiles for both.
        _ => builder,
    }
    .compile()
}
