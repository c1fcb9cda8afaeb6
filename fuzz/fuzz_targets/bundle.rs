//! Any bytes as the files of a bundle.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tirx_fuzz::bundle::run(bytes));
