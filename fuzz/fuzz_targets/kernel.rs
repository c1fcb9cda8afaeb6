//! Any text as a kernel file: parser, evaluator, printer, every pass, CUDA text, launcher, simulator's compiler.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};
use tirx_fuzz::{kernel, mutate};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    kernel::run(bytes);
    match std::str::from_utf8(bytes).is_ok_and(kernel::is_python) {
        true => Corpus::Keep,
        false => Corpus::Reject,
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match mutate::kernel_file(&data[..size], max_size, seed) {
        Some(text) => {
            data[..text.len()].copy_from_slice(&text);
            text.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});
