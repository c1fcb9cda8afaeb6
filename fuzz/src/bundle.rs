//! Bytes as a bundle: the one file, a kernel's file, a fat binary.
//!
//! Every content of a bundle carries its hash, which a fuzzer never guesses. The input is therefore read twice: as it
//! is, and as what stands behind a header whose hash fits, the way somebody who means harm would write it.

use tirx_bundle::seal::{self, seal};
use tirx_bundle::{Files, Function, Kernel, Param, fatbin};

/// Reads the bytes as every file of a bundle. What is read is written and read again.
///
/// # Panics
/// Where this panics, or what was read does not come back.
pub fn run(bytes: &[u8]) {
    for file in [bytes.to_vec(), seal(seal::BUNDLE, bytes)] {
        match Files::decode(&file) {
            Ok(files) => whole(&files),
            Err(problem) => said(&problem),
        }
    }
    kernel_file(bytes);
    kernel_file(&seal(seal::KERNEL, bytes));
    if let Err(reason) = fatbin::check(bytes) {
        assert!(!reason.is_empty(), "a reason without a text");
    }
}

fn whole(files: &Files) {
    assert_eq!(Files::decode(&files.encode()).as_ref(), Ok(files));
    for (_, content) in files.iter() {
        kernel_file(content);
        // The kernel's own hash does not fit as a rule.
        kernel_file(&seal(seal::KERNEL, content.get(seal::HEADER..).unwrap_or_default()));
    }
    if let Err(problem) = files.kernels() {
        said(&problem);
    }
}

fn kernel_file(file: &[u8]) {
    let kernel = match Kernel::decode(file) {
        Ok(kernel) => kernel,
        Err(problem) => return said(&problem),
    };
    assert_eq!(Kernel::decode(&kernel.encode()).as_ref(), Ok(&kernel));
    let parts: Vec<&[u8]> = kernel.images.iter().map(|(_, image)| image.as_slice()).collect();
    if !parts.is_empty() {
        assert_eq!(fatbin::check(&fatbin::join(&parts)), Ok(()));
    }
    // The handling of a bundle's IR in a program that opens it.
    crate::image::run(&kernel.ir);
}

fn said(problem: &tirx_bundle::Problem) {
    assert!(!problem.reason.trim().is_empty(), "a problem without a reason");
}

/// A bundle, its kernel and a fat binary, each unchanged and as the content behind a valid header.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let images = [
        ("sm_90a".to_string(), fat_binary(2, b"\x7fELF machine code")),
        ("compute_90".to_string(), fat_binary(1, &[b'p'; 90])),
    ];
    let kernel = Kernel {
        name: "add::n256".into(),
        signature: "5f".into(),
        hash: "e1".into(),
        functions: vec![Function {
            symbol: "add_kernel".into(),
            params: vec![Param::Pointer, Param::Scalar(32), Param::TensorMap],
        }],
        images: images.to_vec(),
        ir: include_bytes!("../seeds/image/scale.ir").to_vec(),
    };
    let mut files = Files::new();
    files.add(tirx_bundle::LOCK, b"version = 1\n".to_vec());
    files.add(tirx_bundle::NOTICE, b"license\n".to_vec());
    files.add("add-n256.tirxk", kernel.encode());
    let (kernel, files) = (kernel.encode(), files.encode());
    let named = [
        ("kernel-content", kernel[seal::HEADER..].to_vec()),
        ("bundle-content", files[seal::HEADER..].to_vec()),
        ("kernel", kernel),
        ("bundle", files),
        ("fatbin", fat_binary(2, b"\x7fELF")),
    ];
    named.map(|(name, bytes)| (name.to_string(), bytes)).to_vec()
}

/// A fat binary with one entry.
fn fat_binary(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut entry = vec![kind, 0, 1, 1, 64, 0, 0, 0];
    entry.extend((payload.len() as u64).to_le_bytes());
    entry.resize(64, 0);
    entry.extend(payload);
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((entry.len() as u64).to_le_bytes());
    bytes.extend(entry);
    bytes
}
