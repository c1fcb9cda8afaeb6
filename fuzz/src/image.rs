//! Bytes as an IR image.

use tirx_core::ir::{image, structural_equal, verify};
use tirx_core::script::print;
use tirx_sim::Program;

/// Decodes; a module that is well formed is printed, encoded again and given to the simulator's compiler.
///
/// # Panics
/// Where one of these panics, or the second image holds another module.
pub fn run(bytes: &[u8]) {
    let Ok(module) = image::decode(bytes) else {
        return;
    };
    let again = image::decode(&image::encode(&module)).expect("an image that was written is read");
    structural_equal(&module, &again).expect("an image holds the module");
    if verify(&module).is_err() {
        return;
    }
    print(&module);
    for (name, _) in &module.functions {
        let _ = Program::compile(&module, name);
    }
}
