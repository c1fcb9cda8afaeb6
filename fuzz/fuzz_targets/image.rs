//! Any bytes as an IR image; one that decodes encodes to an image of the same module.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tirx_fuzz::image::run(bytes));
