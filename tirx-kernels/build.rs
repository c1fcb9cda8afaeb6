//! Compiles the kernels of the selected families, unless a package of compiled kernels has them.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(compiled)");
    // The packages' build scripts set the variables.
    let package = match (cfg!(feature = "sm_80"), cfg!(feature = "sm_90a")) {
        (true, false) => Some("DEP_TIRX_KERNELS_SM80_MADE"),
        (false, true) => Some("DEP_TIRX_KERNELS_SM90A_MADE"),
        // A package has one or the other: nvcc compiles for both.
        _ => None,
    };
    if package.is_some_and(|variable| std::env::var_os(variable).is_some()) {
        println!("cargo::rustc-cfg=compiled");
        println!("cargo::rerun-if-changed=build.rs");
        return Ok(());
    }
    compile()
}

#[cfg(feature = "compile")]
fn compile() -> Result<(), Box<dyn std::error::Error>> {
    let builder = tirx_build::Builder::new();
    let builder = match (cfg!(feature = "sm_80"), cfg!(feature = "sm_90a")) {
        (true, false) => builder.only_targets(["sm_80", "compute_80"]),
        (false, true) => builder.targets(["sm_90a"]),
        _ => builder,
    };
    Ok(builder.compile()?)
}

#[cfg(not(feature = "compile"))]
fn compile() -> Result<(), Box<dyn std::error::Error>> {
    Err("tirx-kernels has no kernels: enable its feature `sm_80` or `sm_90a`, which bring them compiled, or `compile`".into())
}
