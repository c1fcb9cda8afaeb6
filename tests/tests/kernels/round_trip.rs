//! Every example kernel prints and parses back as itself, before lowering and after each pass; and its image decodes
//! to itself.

use tirx_build::manifest::{Manifest, Text};
use tirx_core::ir::{IRModule, image, structural_equal, structural_hash};
use tirx_tests::{Defines, RoundTrips, build, root, stages};

/// The kernels of the workspace's `kernels.toml`: a name, and the module of each specialization.
fn example_kernels() -> Vec<(String, IRModule)> {
    let manifest = std::fs::read_to_string(root().join("kernels.toml")).unwrap();
    let manifest = Manifest::parse("kernels.toml", &manifest).unwrap();
    let mut modules = Vec::new();
    for kernel in &manifest.kernels {
        let Text::File(source) = &kernel.text else {
            continue;
        };
        let code = std::fs::read_to_string(root().join(source)).unwrap();
        let entry = kernel.entry.as_deref().unwrap_or(&kernel.name);
        let none = vec![Defines::new()];
        let all = if kernel.specialize.is_empty() {
            &none
        } else {
            &kernel.specialize
        };
        for defines in all {
            let suffix: String = defines.iter().map(|(k, v)| format!(" {k}={v:?}")).collect();
            for (_, module) in build(source, &code, &[entry], defines).unwrap() {
                modules.push((format!("{}{suffix}", kernel.name), module));
            }
        }
    }
    modules
}

#[test]
fn example_kernels_print_and_parse_back_at_every_stage() {
    let mut failures = Vec::new();
    for (name, module) in example_kernels() {
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
    for (name, module) in example_kernels() {
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
