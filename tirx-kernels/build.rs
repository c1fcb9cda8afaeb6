//! Compiles the kernels of the selected families, unless a package of compiled kernels has them.

/// A feature that brings a package of compiled kernels.
struct Package {
    enabled: bool,
    /// The variable that the package's build script sets if the kernels are there.
    made: &'static str,
    /// The targets of its kernels.
    #[cfg_attr(not(feature = "compile"), allow(dead_code))]
    targets: &'static [&'static str],
}

const PACKAGES: [Package; 3] = [
    Package {
        enabled: cfg!(feature = "sm_80"),
        made: "DEP_TIRX_KERNELS_SM80_MADE",
        targets: &["sm_80", "compute_80"],
    },
    Package {
        enabled: cfg!(feature = "sm_90a"),
        made: "DEP_TIRX_KERNELS_SM90A_MADE",
        targets: &["sm_90a"],
    },
    Package {
        enabled: cfg!(feature = "sm_100a"),
        made: "DEP_TIRX_KERNELS_SM100A_MADE",
        targets: &["sm_100a", "compute_80"],
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rustc-check-cfg=cfg(compiled)");
    let mut enabled = PACKAGES.iter().filter(|package| package.enabled);
    // A package has the kernels of one feature: with several, nvcc compiles all kernels.
    let package = enabled.next().filter(|_| enabled.next().is_none());
    if package.is_some_and(|package| std::env::var_os(package.made).is_some()) {
        println!("cargo::rustc-cfg=compiled");
        println!("cargo::rerun-if-changed=build.rs");
        return Ok(());
    }
    compile(package)
}

#[cfg(feature = "compile")]
fn compile(package: Option<&Package>) -> Result<(), Box<dyn std::error::Error>> {
    let builder = tirx_build::Builder::new();
    let builder = match package {
        Some(package) => builder.only_targets(package.targets.iter().copied()),
        None => builder,
    };
    Ok(builder.compile()?)
}

#[cfg(not(feature = "compile"))]
fn compile(_: Option<&Package>) -> Result<(), Box<dyn std::error::Error>> {
    Err("tirx-kernels has no kernels: enable its feature `sm_80`, `sm_90a` or `sm_100a`, which bring them compiled, or `compile`".into())
}
