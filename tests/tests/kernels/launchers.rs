//! The launch attributes of `launch_attributes.py` and the tensor maps of `tensor_maps.py`, as the
//! generated Rust hands them to the driver.

use tirx_core::codegen::rust;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_tests::files::filetest;
use tirx_tests::nvcc::{self, Source};
use tirx_tests::{Defines, build};

/// The launcher of a kernel of a filetest.
fn launcher(file: &str, entry: &str) -> rust::Launcher {
    let text = std::fs::read_to_string(filetest(file).unwrap()).unwrap();
    let modules = build(&format!("{file}.py"), &text, &[entry], &Defines::new()).unwrap();
    let (_, module) = &modules[0];
    let lowered = lower(module.clone(), &mut Lowering::new(Target::SM_90A)).unwrap();
    rust::launcher(&module.functions[0].1, &lowered).unwrap()
}

/// Fields of the launch configuration of each launch of a kernel, except the extents of grid and block.
fn configurations(entry: &str) -> Vec<String> {
    let launcher = launcher("launch_attributes", entry);
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
                "shared_bytes: ::tirx_rt::host::launch_extent(KERNEL, \"tirx.use_dyn_shared_memory\", \
 ::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(4_i64)), \
 \"T.Cast(\\\"int64\\\", n) * T.int64(4)\", \
 &[(\"n\", ::tirx_rt::host::Wide::from(i64::from(n)))])?",
            ],
        ),
        ("largest_launch", vec![""]),
    ] {
        assert_eq!(configurations(entry), expected, "{entry}");
    }
}

#[test]
fn tensor_maps_are_checked_encoded_and_passed_by_number() {
    let launcher = launcher("tensor_maps", "map_of_arguments");
    let host = &launcher.host.function();
    // Checks that hold at compile time are not repeated.
    for absent in ["boxDim", "elementStrides", "the innermost box"] {
        assert!(!host.contains(absent), "{host}");
    }
    let stride = "!::tirx_rt::host::Wide::from(i64::from(n)).mul(::tirx_rt::host::Wide::from(4_i64))\
                  .floor_mod(::tirx_rt::host::Wide::from(16_i64)).equals(::tirx_rt::host::Wide::from(0_i64))";
    for expected in [
        stride,
        "::tirx_rt::host::tensor_map_rule(KERNEL, \"A_map\", \"globalStrides[0]\", \"a multiple of 16 bytes\", ",
        "let a_map = &if a_map_is_empty { ::tirx_rt::TensorMap::without_elements(\"tensor map `A_map`: its tensor has no elements",
        "{ static CACHE: ::tirx_rt::TensorMapCache = ::tirx_rt::TensorMapCache::new();",
        "data_type: 7, ",
        "box_dims: &[4, 8], element_strides: &[1, 2], interleave: 0, swizzle: 0",
        "data_type: 11, ",
        "::tirx_rt::call_raw!(raw(stream, a_map, b_map, b_ptr))?;",
    ] {
        assert!(host.contains(expected), "{expected}\n{host}");
    }
    let raw = &launcher.raw[0].item;
    assert!(raw.contains("a_map: &::tirx_rt::TensorMap, b_map: &::tirx_rt::TensorMap, b_ptr: u64"));
    assert!(
        raw.contains("LOADED.launch_with_tensor_maps(0, stream, &"),
        "{raw}"
    );
    assert!(raw.contains(", &[0, 1, b_ptr], &[a_map, b_map])"), "{raw}");
    // The kernel puts the maps' addresses into memory: whoever reads them may store through the maps.
    assert_eq!(launcher.types()[0], "&mut impl ::tirx_rt::AsTensorMut<f32>");
}

#[test]
fn a_tensor_map_is_a_parameter() {
    let launcher = launcher("tensor_map_parameter", "map_of_the_caller");
    assert_eq!(launcher.types()[0], "&::tirx_rt::TensorMap");
    assert!(
        launcher
            .call_host("k")
            .contains("::tirx_rt::host::Arg::tensor_map(a_map)")
    );
    assert!(
        launcher
            .host
            .function()
            .contains("let a_map = args[0].as_tensor_map()?;"),
        "{}",
        launcher.host.function()
    );
}

/// A tensor is `&mut` where the kernel may write it, and what a pointer is used for follows from the operations' rows.
#[test]
fn signatures_say_what_is_written() {
    for (entry, expected) in [
        ("copied_by_tiles", "read, written"),
        ("copied_in_the_background", "read, written"),
        ("chosen", "read, read, written, "),
        ("counted", "read, read and written"),
        ("address_as_a_number", "read, read and written"),
        ("address_in_memory", "read, read and written"),
        ("address_tested", "read, written"),
    ] {
        let signature = launcher("pointer_uses", entry).signature;
        let uses: Vec<&str> = signature.params.iter().map(|p| p.access()).collect();
        assert_eq!(uses.join(", "), expected, "{entry}");
    }
}

/// The alignment that a launcher asks of each tensor is that of the widest access through it, whatever makes it.
#[test]
fn launchers_check_the_alignment_that_accesses_need() {
    for (entry, expected) in [
        ("copied_by_tiles", vec!["a 16", "b 16"]),
        ("copied_in_the_background", vec!["a 16", "b 16"]),
        // The kernel chooses its accesses by the address.
        ("by_the_address", vec!["a 4", "b 4"]),
        // A place behind the first that is not aligned itself asks nothing more of the tensor.
        ("behind_the_first", vec!["a 4", "b 8"]),
    ] {
        let host = launcher("pointer_uses", entry).host.function();
        let checks = host.split("if !").filter_map(|check| {
            let (name, rest) = check.split_once("_ptr.is_multiple_of(")?;
            Some(format!("{name} {}", rest.split_once(')')?.0))
        });
        assert_eq!(checks.collect::<Vec<_>>(), expected, "{entry}: {host}");
    }
}

/// A limit of registers holds in the machine code.
#[test]
fn register_limits_hold_in_the_machine_code() {
    let Some(nvcc) = nvcc::nvcc() else { return };
    let text = std::fs::read_to_string(filetest("register_limits").unwrap()).unwrap();
    for entry in ["of_the_region", "beside_bounds"] {
        let cuda =
            tirx_tests::cuda_text("register_limits.py", &text, entry, &Defines::new(), "sm_90a").unwrap();
        let source = Source {
            arch: "sm_90a",
            flags: &["-Xptxas", "-v"],
            text: &cuda,
        };
        let printed = nvcc.compile(&source).unwrap().printed;
        let used = printed
            .split("Used ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let used: u32 = used
            .and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{printed}"));
        assert!(used <= 40, "{entry}: {printed}");
    }
}
