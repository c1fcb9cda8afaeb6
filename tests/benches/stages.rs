//! What compiling costs by stage, for kernels of 100, 1,000, 10,000 and 20,000 statements: a table in microseconds per
//! statement, so that a stage that is linear in the kernel shows the same figure four times. Numbers given as
//! arguments are the sizes instead: `cargo bench -p tirx-tests --bench stages -- 5000 10000 20000`. A second table has
//! kernels that are large in one way each.

use std::time::Instant;

use tirx_core::codegen::cuda;
use tirx_core::ir::verify;
use tirx_core::script::{KernelFile, NoImports};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Step, Target, lower};
use tirx_tests::shapes::SHAPES;
use tirx_tests::{Defines, long_kernel};

const SIZES: &[usize] = &[100, 1_000, 10_000, 20_000];

/// Stages in order with their nanoseconds.
fn once(text: &str) -> Vec<(String, u64)> {
    let start = Instant::now();
    let clock = || start.elapsed().as_nanos() as u64;
    let mut times: Vec<(String, u64)> = Vec::new();
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, "long.py", text, &NoImports).expect("the kernel parses");
    times.push(("parse".into(), clock()));
    let before = clock();
    let module = file.build(None, &Defines::new()).expect("the kernel evaluates");
    times.push(("evaluate".into(), clock() - before));
    let mut observe = |step: &Step<'_>| {
        times.push((step.pass.into(), step.nanoseconds.unwrap_or_default()));
    };
    let mut lowering = Lowering::new(Target::SM_90A);
    lowering.verify = false;
    lowering.timer = Some(&clock);
    lowering.observer = Some(&mut observe);
    let lowered = lower(module, &mut lowering).expect("the kernel lowers");
    let before = clock();
    let source = cuda::emit(&lowered).expect("the kernel has CUDA text");
    times.push(("CUDA text".into(), clock() - before));
    assert!(!source.kernels.is_empty());
    let before = clock();
    verify(&lowered).expect("the lowered module is well formed");
    times.push(("one verification (not in the total)".into(), clock() - before));
    times
}

/// The least of several runs, stage by stage, of a kernel of a size.
fn least(text: &str, size: usize) -> Vec<(String, u64)> {
    let mut best = once(text);
    for _ in 0..(50_000 / size).clamp(4, 20) {
        for (least, time) in best.iter_mut().zip(once(text)) {
            least.1 = least.1.min(time.1);
        }
    }
    best
}

fn main() {
    let mut sizes: Vec<usize> = std::env::args()
        .filter_map(|a| a.parse().ok())
        .filter(|&n| n > 0)
        .collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let columns: Vec<_> = sizes
        .iter()
        .map(|&size| least(&long_kernel(size), size))
        .collect();
    let total = |column: &[(String, u64)]| column[..column.len() - 1].iter().map(|s| s.1).sum::<u64>();
    let totals: Vec<u64> = columns.iter().map(|column| total(column)).collect();
    let headers: String = sizes.iter().map(|size| format!(" {size} |")).collect();
    println!(
        "| stage |{headers} share of the last |\n|---|{}---|",
        "---|".repeat(sizes.len())
    );
    let row = |name: &str, nanoseconds: &[u64]| {
        let per = |(time, size): (&u64, &usize)| format!(" {:.2} |", *time as f64 / 1e3 / *size as f64);
        let figures: String = nanoseconds.iter().zip(&sizes).map(per).collect();
        let last = nanoseconds.len() - 1;
        let share = nanoseconds[last] as f64 / totals[last] as f64 * 100.0;
        println!("| {name} |{figures} {share:.1} % |");
    };
    for (index, (name, _)) in columns[0].iter().enumerate() {
        row(
            name,
            &columns.iter().map(|column| column[index].1).collect::<Vec<_>>(),
        );
    }
    row("total", &totals);
    println!("\nMicroseconds per statement.\n");
    println!("| many | size | each | size | each |\n|---|---|---|---|---|");
    for shape in SHAPES {
        let [small, large] = shape.sizes.map(|size| {
            let column = least(&(shape.text)(size), size);
            format!("{size} | {:.2}", total(&column) as f64 / 1e3 / size as f64)
        });
        println!("| {} | {small} | {large} |", shape.name);
    }
    println!("\nMicroseconds for each; the largest nesting is near the language's limit.");
}
