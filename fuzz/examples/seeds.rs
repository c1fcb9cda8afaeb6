//! Writes the seeds that are made and not kept: `corpus/kernel` and `corpus/bundle`. `cargo run --example seeds`.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let kernels = tirx_fuzz::seeds::read("kernel").into_iter();
    write("kernel", kernels.map(|(name, text)| (name, text.into_bytes())).collect())?;
    write("bundle", tirx_fuzz::bundle::seeds())
}

fn write(target: &str, seeds: Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    for (name, content) in &seeds {
        fs::write(folder.join(name), content)?;
    }
    println!("{} seeds in {}", seeds.len(), folder.display());
    Ok(())
}
