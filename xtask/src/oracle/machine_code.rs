//! Compares the machine code that one nvcc makes of both CUDA texts.

use std::path::Path;
use std::process::Command;

use tirx_core::codegen::cuda;
use tirx_core::transform::{Lowering, Target, lower};

use super::kernels::Kernel;
use crate::process::{Result, output};

/// Prints the table of one architecture; gives the kernels whose code is longer than the reference's.
pub(super) fn compare(
    root: &Path,
    python: &Path,
    kernels: &[Kernel],
    out: &Path,
    cache: &Path,
    arch: &str,
) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let mut pairs = Vec::new();
    for kernel in kernels {
        let folder = out.join(&kernel.id);
        let theirs = folder.join("kernel.cu");
        // TVM may split a module so that the text it shows has no kernel.
        if !std::fs::read_to_string(&theirs).is_ok_and(|text| text.contains("__global__")) {
            continue;
        }
        let text = kernel.build(root).and_then(|module| {
            let sources = module.sources.clone();
            let lowered = lower(
                module,
                &mut Lowering::new(Target::named(arch).expect("a known GPU")),
            );
            let source = lowered.and_then(|module| cuda::emit(&module));
            Ok(source.map_err(|e| e.render(&sources))?.text)
        });
        match text {
            Ok(text) => {
                let ours = folder.join("ours.cu");
                std::fs::write(&ours, text)?;
                pairs.push((kernel, ours, theirs));
            }
            Err(error) if kernel.faults || is_of_another_gpu(&error) => {}
            Err(error) => failures.push(format!("{} ({arch}): refused by us: {error}", kernel.id)),
        }
    }
    let mut command = Command::new(python);
    command
        .arg(root.join("xtask/python/machine_code.py"))
        .arg(arch)
        .arg(cache);
    for (_, ours, theirs) in &pairs {
        command.args([ours, theirs]);
    }
    let table = output(&mut command)?;
    println!(
        "| kernel ({arch}) | instructions, ours / TVM | registers, ours / TVM | spilled bytes, ours / TVM | opcodes |\n|---|---|---|---|---|"
    );
    let (mut refused, mut longer) = (Vec::new(), Vec::new());
    for ((kernel, ..), row) in pairs.iter().zip(table.lines()) {
        if let Some(error) = row.strip_prefix("theirs: ") {
            refused.push(format!("{}: {error}", kernel.id));
            continue;
        }
        println!(
            "| {}{} | {} |",
            if kernel.example { "" } else { "test: " },
            kernel.name(),
            row.trim()
        );
        let reason = wanted(root, kernel, arch, row);
        if row.ends_with("longer")
            && let Some(reason) = reason
        {
            longer.push(format!("{}: {reason}", kernel.id));
        } else if row.ends_with("longer") || !row.contains(" / ") {
            failures.push(format!("{} ({arch}): {row}", kernel.id));
        }
    }
    if !refused.is_empty() {
        println!(
            "\nnvcc refuses the reference's text, so not compared ({arch}):\n{}",
            refused.join("\n")
        );
    }
    if !longer.is_empty() {
        println!("\nLonger, and why ({arch}):\n{}", longer.join("\n"));
    }
    println!();
    Ok(failures)
}

/// Whether a kernel is refused because it is for another GPU, which TVM leaves to nvcc.
pub(super) fn is_of_another_gpu(error: &str) -> bool {
    error.contains(", and the target is sm_") || error.contains("but the kernel is compiled for")
}

/// Kernels whose code is longer for a reason that their text does not show.
const LONGER: &[(&str, &str)] = &[
    (
        "tile_registers.every_second_lane",
        "a lane that holds no element stores none; TVM's stores beyond the tile",
    ),
    (
        "tile_registers.part_of_the_threads",
        "a thread whose rows are not in the region stores none of them; TVM's stores beyond the region",
    ),
    (
        "tile_dtypes.bfloat16_thread",
        "nvcc unrolls the loop over 32 vectors wholly; that of TVM's text, which asks in each turn whether it is one, by half",
    ),
    (
        "tile_dtypes.float16_thread",
        "nvcc unrolls the loop over 32 vectors wholly; that of TVM's text, which asks in each turn whether it is one, by half",
    ),
    ("tile_operations.silu", "two moves that nvcc chooses"),
    (
        "tile_packed_reductions.sums",
        "three columns are summed in pairs too, with moves into register pairs; TVM adds nine numbers one after the other",
    ),
    (
        "names_of_027.kept",
        "a predicated load that keeps its register is a load under a condition, and nvcc branches",
    ),
    (
        "tile_roundings.float32_registers",
        "operations round as `rounding_mode` says; TVM leaves it out, and computes one value for four",
    ),
    (
        "tile_roundings.float64_shared",
        "operations round as `rounding_mode` says; TVM leaves it out, and its constants are cut to 15 digits",
    ),
    (
        "tile_scopes.narrowed",
        "`wg == 0 and wi == 2` stays two comparisons; TVM makes one of the warp's number",
    ),
    (
        "tile_shared_layouts.small_chunks",
        "nvcc forms the addresses of single elements of a swizzled tile otherwise",
    ),
    (
        "tile_tensor_copies_explicit.beyond_the_edge",
        "`x == x` asks whether x is a number; TVM takes it for true, and leaves the comparison out",
    ),
    (
        "tile_matrix_fragments.transposed",
        "nvcc forms the addresses of three of the unrolled stores anew",
    ),
    (
        "tile_matrix_fragments.words_and_bytes",
        "nvcc forms the addresses of the unrolled stores otherwise",
    ),
    (
        "tile_permute_layout.transposed_in_place",
        "TVM's text computes the addresses in bytes; nvcc moves those of elements once more",
    ),
    (
        "tile_warpgroups.warpgroups_side_by_side",
        "each warpgroup waits at a named barrier of its own; in TVM's text both wait at one",
    ),
    (
        "register_limits.beside_bounds",
        "the limit of 32 registers holds beside the launch bounds; TVM's text has none",
    ),
    (
        "gemm_pairs-K4096-M4096-N4096",
        "nvcc unrolls the loop of tensor copies eight times; that of TVM's text four times",
    ),
    (
        "blackwell_attention-H1-S256",
        "nvcc unrolls the loop over the parts of the result; that of TVM's text it keeps",
    ),
    (
        "library_schedulers.attention",
        "a quotient of a bounded number is one unsigned division; nvcc computes the signed one with less",
    ),
    (
        "tile_shared_layouts.odd_columns",
        "nvcc divides in 16 bits in both texts, with other constants",
    ),
    (
        "swizzled_storage.four_periods",
        "bits of a loop's variable move down before they are masked: nvcc computes TVM's form wrongly",
    ),
    (
        "tile_dtypes.float32_thread",
        "additions round to the nearest, in vectors of four; TVM 0.27 adds pairs and rounds to zero",
    ),
];

/// The number of instructions by which our code is longer, as in a table row.
fn longer_by(row: &str) -> Option<i64> {
    let (ours, theirs) = row.split('|').next()?.split_once('/')?;
    Some(ours.trim().parse::<i64>().ok()? - theirs.trim().parse::<i64>().ok()?)
}

/// The reason why our code may be longer: the reference's does less than the kernel asks for, or nvcc chooses another
/// instruction.
fn wanted(root: &Path, kernel: &Kernel, arch: &str, row: &str) -> Option<&'static str> {
    let text = |skip: &[&str]| {
        let mut lowering = Lowering::new(Target::named(arch).expect("a known GPU"));
        lowering.options.skip = skip.iter().map(|pass| pass.to_string()).collect();
        let lowered = lower(kernel.build(root).ok()?, &mut lowering).ok()?;
        Some(cuda::emit(&lowered).ok()?.text)
    };
    if let Some((_, reason)) = LONGER.iter().find(|(id, _)| kernel.id == *id) {
        return Some(*reason);
    }
    let ours = text(&[])?;
    if ours.contains("tirx_fp4_store") {
        return Some(
            "an element of half a byte is stored without its neighbour; TVM's store takes the whole byte",
        );
    }
    if ours.contains("tirx_fp4_load") && longer_by(row).is_some_and(|more| more <= 1) {
        return Some(
            "half a byte is loaded by a function, whose address nvcc forms otherwise: one instruction more here, fewer on \
             other GPUs",
        );
    }
    if ours.contains("tirx_hidden") || ours.contains("tirx_negated") {
        return Some(
            "what nvcc 13.0 computes wrongly is written so that it does not: see docs/developing/testing.md",
        );
    }
    if ours.contains("(nv_bfloat16)(float)(half)") || ours.contains("(half)(float)(nv_bfloat16)") {
        return Some(
            "halves are converted by way of float: ptxas 13.0 loses a direct conversion, see docs/developing/testing.md",
        );
    }
    let narrow = ["(uint8_t)(", "(int8_t)(", "(uint16_t)(", "(int16_t)("];
    if narrow.iter().any(|cast| ours.contains(cast)) {
        return Some("arithmetic of 8 and 16 bits wraps; TVM's text computes it as int");
    }
    if ours.contains("(bool)(") {
        return Some("arithmetic of bools gives a bool again; TVM's text stores the sum of them as it is");
    }
    let instructions = row.split('/').next().and_then(|n| n.trim().parse::<i64>().ok());
    if longer_by(row)
        .zip(instructions)
        .is_some_and(|(more, all)| more * 200 < all)
    {
        return Some("less than one instruction in two hundred, which nvcc chooses");
    }
    if takes_back_a_promise(&ours) {
        return Some(
            "nvcc drops a store of TVM's text, which promises what does not hold: see docs/developing/testing.md",
        );
    }
    if text(&["SplitUnalignedAccess"]).is_some_and(|whole| whole != ours) {
        return Some("an access that may be unaligned is made element by element; TVM's faults");
    }
    None
}

/// Whether a kernel writes through a pointer that is not `__restrict__`.
fn takes_back_a_promise(text: &str) -> bool {
    let parameters = text
        .lines()
        .filter(|line| line.contains("__global__"))
        .filter_map(|line| line.split_once("_kernel(").or_else(|| line.rsplit_once('(')))
        .flat_map(|(_, list)| list.split(", "));
    let pointers = parameters.filter(|p| p.contains('*') && !p.starts_with("const "));
    pointers.into_iter().any(|p| !p.contains("__restrict__"))
}
