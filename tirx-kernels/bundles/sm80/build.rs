//! Tells the build script of `tirx-kernels` where its compiled kernels are.

fn main() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels.bundle");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=kernels.bundle");
    if file.exists() {
        println!("cargo::metadata=bundle={}", file.display());
    }
}
