//! Writes the seeds of the `kernel` target to `corpus/kernel`: `cargo run --example seeds`.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/kernel");
    fs::create_dir_all(&folder)?;
    let seeds = tirx_fuzz::seeds::of("kernel");
    for (name, text) in &seeds {
        fs::write(folder.join(name), text)?;
    }
    println!("{} seeds in {}", seeds.len(), folder.display());
    Ok(())
}
