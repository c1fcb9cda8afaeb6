//! Machine code of `wgmma` reads no accumulator that the tensor core still adds to.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use super::{Folder, nvcc};

/// The number behind each `R` of an instruction.
fn registers(instruction: &str) -> BTreeSet<u32> {
    let words = instruction.split(|c: char| !c.is_ascii_alphanumeric());
    let numbers = words.filter_map(|word| word.strip_prefix('R')?.parse().ok());
    numbers.collect()
}

/// Instructions that name a register of a `wgmma` before the wait for it, in the order of the text.
fn touched_in_flight(listing: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // The registers of each group in flight, and those of the group that is not committed yet.
    let (mut flight, mut open) = (VecDeque::<BTreeSet<u32>>::new(), BTreeSet::new());
    for line in listing.lines() {
        // `  |     03e0  WARPGROUP.ARRIVE ;`
        let Some((place, instruction)) = line.trim_start_matches([' ', '|']).split_once("  ") else {
            continue;
        };
        if place.len() != 4 || !place.bytes().all(|b| b.is_ascii_hexdigit()) {
            continue;
        }
        if let Some((_, mma)) = instruction.split_once("GMMA.64x") {
            let columns: u32 = mma.split('x').next().unwrap().parse().unwrap();
            let count = if mma.contains(".F16 ") {
                columns / 4
            } else {
                columns / 2
            };
            let first = mma.split(" R").nth(1).unwrap();
            let first: u32 = first.split(',').next().unwrap().parse().unwrap();
            open.extend(first..first + count);
            if mma.contains("gsb0") {
                flight.push_back(std::mem::take(&mut open));
            }
        } else if let Some((_, groups)) = instruction.split_once("WARPGROUP.DEPBAR.LE gsb0, 0x") {
            let groups: usize = groups.trim_end_matches([' ', ';']).parse().unwrap();
            while flight.len() > groups {
                flight.pop_front();
            }
        } else {
            let named = registers(instruction);
            if flight
                .iter()
                .chain([&open])
                .any(|group| !group.is_disjoint(&named))
            {
                found.push(instruction);
            }
        }
    }
    found
}

#[test]
fn reads_before_the_wait_are_found() {
    let listing = "
  |     0500  HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, UP0 ;
  |     05c0  HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, gsb0 ;
  |     05d0  WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        0c10  IADD3 R152, R152, 0x1, RZ ;
        0c20  F2FP.BF16.F32.PACK_AB R11, R151, R150 ;
        0c30  WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        0ce0  F2FP.BF16.F32.PACK_AB R12, R25, R24 ;";
    assert_eq!(
        touched_in_flight(listing),
        ["F2FP.BF16.F32.PACK_AB R11, R151, R150 ;"]
    );
}

#[test]
fn no_accumulator_is_read_before_the_wait() {
    let Some(nvcc) = nvcc() else { return };
    let folder = Folder::new();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/book/src/ladder/kernels.toml");
    let manifest = manifest.to_string_lossy();
    for kernel in ["wgmma", "pipeline", "wide", "persistent", "stores"] {
        let arguments = ["asm", kernel, "--sass", "--manifest", &manifest];
        let outcome = folder.run_with(&arguments, &[("TIRX_NVCC", &nvcc)]);
        if outcome.err.contains("no nvdisasm") {
            tirx_test_tools::skip("there is no nvdisasm (`cargo tirx toolchain nvdisasm`)");
            return;
        }
        assert_eq!(outcome.code, Some(0), "{}", outcome.err);
        assert!(outcome.out.contains("GMMA.64x"), "{kernel}: {}", outcome.out);
        assert_eq!(touched_in_flight(&outcome.out), [""; 0], "{kernel}");
    }
}
