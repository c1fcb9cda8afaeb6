//! Random programs of tile primitives compute what the primitives mean.
//!
//! `TIRX_RANDOM_TILES=2000` sets how many, `TIRX_RANDOM_SEED=1` the first seed.

use tirx_core::transform::lower_tirx::{VariantInfo, variants};
use tirx_core::transform::{Lowering, Target, lower};
use tirx_tests::machine::{self, Simulator};
use tirx_tests::{Defines, build, number, round_trip, stages, tiles};

#[test]
fn random_tile_programs_compute_what_they_mean() {
    let count = number("TIRX_RANDOM_TILES", 100);
    let first = number("TIRX_RANDOM_SEED", 1);
    let (mut ran, mut declined) = (0, 0);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let program = tiles::generate(seed);
        // On sm_100 sums and products of float32 in registers are made by pairs.
        let arch = if seed % 3 == 0 { "sm_100a" } else { "sm_90a" };
        let outcome = run(&program, arch, seed % 10 == 0);
        match outcome {
            Ok(()) => ran += 1,
            Err(message)
                if message.contains("no dispatch for tile primitive") && message.contains("note: ") =>
            {
                declined += 1;
            }
            Err(message) => failures.push(format!("seed {seed}: {message}\n{}", program.text)),
        }
        if failures.len() > 3 {
            break;
        }
    }
    println!("{ran} programs ran, {declined} were declined with reasons");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(ran * 10 > count * 6, "only {ran} of {count} programs ran");
}

/// Lowers and runs a program; with `thorough`, it is also printed and parsed back after every pass, and verified.
fn run(program: &tiles::TileProgram, arch: &str, thorough: bool) -> Result<(), String> {
    let mut built = build("tiles.py", &program.text, &["program"], &Defines::new())?;
    let (_, module) = built.pop().ok_or("no kernel")?;
    let lowered = if thorough {
        stages(&module, arch, &mut |_, m| round_trip(m))?
    } else {
        let sources = module.sources.clone();
        lower(module, &mut Lowering::new(Target::cuda(arch))).map_err(|e| e.render(&sources))?
    };
    let found = machine::run(
        &mut Simulator::with_step_limit(20_000_000),
        &lowered,
        &program.arguments,
    )?;
    for (index, (found, expected)) in found.iter().zip(&program.expected).enumerate() {
        let machine::Argument::Tensor { dtype, .. } = &program.arguments[index].1 else {
            continue;
        };
        let (found, expected) = (tiles::plain(*dtype, found), tiles::plain(*dtype, expected));
        if found != expected {
            let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
            return Err(format!("tensor {index} differs at byte {at}"));
        }
    }
    Ok(())
}

/// The table of variants in the guide is that of the compiler; `UPDATE_EXPECT=1` writes it.
#[test]
fn the_guide_has_the_table_of_variants() {
    const BEGIN: &str = "tests --test random_tiles variants -->\n";
    const END: &str = "<!-- end -->";
    let path = tirx_tests::root().join("docs/guide/tile-primitives.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark");
    let (found, after) = rest.split_once(END).expect("the page has the end");
    let expected = table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, expected, "UPDATE_EXPECT=1 writes the table anew");
}

/// A row a variant, with all its operations.
fn table() -> String {
    let mut rows: Vec<(VariantInfo, Vec<String>)> = Vec::new();
    for variant in variants() {
        let same = rows.iter_mut().find(|(known, _)| {
            known.name == variant.name && known.doc == variant.doc && known.predicates == variant.predicates
        });
        let op = format!("`{}`", variant.op);
        match same {
            Some((_, ops)) => ops.push(op),
            None => rows.push((variant, vec![op])),
        }
    }
    let mut table = String::from(
        "| operations | variant | priority | conditions | what it does |\n|---|---|---|---|---|\n",
    );
    for (variant, ops) in rows {
        let forced = if variant.only_forced {
            "only by `dispatch=`; "
        } else {
            ""
        };
        table += &format!(
            "| {} | `{}` | {} | {forced}{} | {} |\n",
            ops.join(", "),
            variant.name,
            variant.priority,
            variant.predicates.join("; "),
            variant.doc
        );
    }
    table
}
