//! The launch attributes of `kernels/launch_attributes.py`, as the generated Rust hands them to the driver.

use tirx_core::codegen::rust;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_tests::{Defines, build, root};

/// Fields of the launch configuration of each launch of a kernel, without extents of grid and block.
fn configurations(entry: &str) -> Vec<String> {
    let path = root().join("tests/kernels/launch_attributes.py");
    let text = std::fs::read_to_string(path).unwrap();
    let modules = build("launch_attributes.py", &text, &[entry], &Defines::new()).unwrap();
    let (_, module) = &modules[0];
    let lowered = lower(module.clone(), &mut Lowering::new(Target::cuda("sm_90a"))).unwrap();
    let launcher = rust::launcher(&module.functions[0].1, &lowered).unwrap();
    let configuration = |item: &String| {
        let (_, rest) = item.split_once("LaunchConfig { ").unwrap();
        let (fields, _) = rest.split_once(", ..::tirx_rt").unwrap();
        let (_, after_block) = fields.split_once("block: [").unwrap();
        after_block
            .split_once(']')
            .unwrap()
            .1
            .trim_start_matches(", ")
            .to_string()
    };
    launcher.raw.iter().map(|raw| configuration(&raw.item)).collect()
}

#[test]
fn launch_attributes_reach_the_launcher() {
    for (entry, expected) in [
        ("programmatic_listed", vec!["programmatic: true"]),
        ("both_listed", vec!["cooperative: true, programmatic: true"]),
        ("programmatic_of_the_function", vec!["programmatic: true"]),
        ("cooperative_inside", vec!["cooperative: true"]),
        ("programmatic_around_one_of_two", vec!["programmatic: true", ""]),
        ("grid_sync_is_cooperative", vec!["cooperative: true"]),
        (
            "clusters",
            vec!["cluster: [2, 1, 1], preferred_cluster: [4, 1, 1]"],
        ),
        (
            "clusters_of_two_dimensions",
            vec!["cluster: [2, 2, 1], preferred_cluster: [4, 2, 1]"],
        ),
        ("preferred_of_the_grid", vec!["preferred_cluster: [2, 1, 1]"]),
        ("dynamic_shared", vec!["shared_bytes: 80000"]),
        (
            "dynamic_shared_symbolic",
            vec![
                "shared_bytes: ::tirx_rt::host::extent(KERNEL, \"tirx.use_dyn_shared_memory\", \
 (n as i64).wrapping_mul(4))?",
            ],
        ),
        ("largest_launch", vec![""]),
    ] {
        assert_eq!(configurations(entry), expected, "{entry}");
    }
}
