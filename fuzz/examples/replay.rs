//! Runs files through a target with the real limits and without instrumentation, and prints those that are slow:
//! `cargo run --release --example replay -- kernel FILES`.

use std::time::{Duration, Instant};

fn main() {
    let mut args = std::env::args().skip(1);
    let target = args.next().unwrap_or_default();
    let run: fn(&[u8]) = match target.as_str() {
        "kernel" => tirx_fuzz::kernel::run,
        "manifest" => tirx_fuzz::manifest::run,
        "image" => tirx_fuzz::image::run,
        "bundle" => tirx_fuzz::bundle::run,
        "lock" => tirx_fuzz::lock::run,
        _ => {
            eprintln!("usage: replay kernel|manifest|image|bundle|lock FILES");
            std::process::exit(2);
        }
    };
    let mut slowest = Duration::ZERO;
    let mut count = 0;
    for path in args {
        let Ok(bytes) = std::fs::read(&path) else {
            eprintln!("cannot read {path}");
            continue;
        };
        let start = Instant::now();
        let failed = std::panic::catch_unwind(|| run(&bytes)).is_err();
        let took = start.elapsed();
        if failed || took > Duration::from_millis(500) {
            println!("{path}: {took:.2?}{}", if failed { ", failed" } else { "" });
        }
        slowest = slowest.max(took);
        count += 1;
    }
    println!("{count} files, the slowest took {slowest:.2?}");
}
