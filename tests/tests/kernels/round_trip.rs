//! Every example kernel prints and parses back as itself, before lowering and after each pass; and its image decodes
//! to itself.

use tirx_core::ir::{image, structural_equal, structural_hash};
use tirx_tests::{RoundTrips, example_kernels, stages};

#[test]
fn example_kernels_print_and_parse_back_at_every_stage() {
    let mut failures = Vec::new();
    for (name, module) in example_kernels().unwrap() {
        let mut trips = RoundTrips::default();
        let checked = stages(&module, "sm_90a", &mut |_, m| trips.check(m));
        if let Err(message) = checked {
            failures.push(format!("== {name}\n{message}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn example_kernels_survive_their_images() {
    for (name, module) in example_kernels().unwrap() {
        stages(&module, "sm_90a", &mut |_, m| {
            let bytes = image::encode(m);
            let back = image::decode(&bytes).map_err(|e| e.to_string())?;
            structural_equal(m, &back).map_err(|e| e.to_string())?;
            assert_eq!(structural_hash(m), structural_hash(&back));
            assert_eq!(image::encode(&back), bytes);
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
