//! Compiles one kernel to CUDA text some times over, for profilers (`docs/developing/performance.md` has the commands):
//! `compile TIMES FILE ENTRY [NAME=VALUE…] [on ARCH]`, or `compile TIMES SHAPE SIZE` for a kernel that is large in one way.

use std::path::Path;

use tirx_build::compile::FileImports;
use tirx_core::ir::on_one_stack;
use tirx_core::script::ConstValue;
use tirx_tests::shapes::SHAPES;
use tirx_tests::{Defines, cuda_text_with, long_kernel, only};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let (args, arch) = match &args[..] {
        [args @ .., "on", arch] => (args, *arch),
        args => (args, "sm_90a"),
    };
    let mut folder = Path::new("");
    let (times, text, entry, defines) = match *args {
        [times, "statements", size] => (times, long_kernel(number(size)), "long", Defines::new()),
        [times, shape, size] if !shape.ends_with(".py") => {
            let shape = SHAPES
                .iter()
                .find(|s| s.name == shape)
                .expect("a shape of shapes.rs");
            (times, (shape.text)(number(size)), "shape", Defines::new())
        }
        [times, file, entry, ref constants @ ..] => {
            folder = Path::new(file).parent().unwrap_or(folder);
            let whole = std::fs::read_to_string(file).expect("a kernel file");
            let define = |constant: &&str| {
                let (name, value) = constant.split_once('=').expect("NAME=VALUE");
                (name.to_string(), read(value))
            };
            // Of a file of kernels the one, of a library's module all.
            let text = only(&whole, entry).unwrap_or(whole);
            (times, text, entry, constants.iter().map(define).collect())
        }
        _ => panic!("compile TIMES FILE ENTRY [NAME=VALUE…] [on ARCH], or compile TIMES SHAPE SIZE"),
    };
    for _ in 0..number(times) {
        let compile = || {
            let imports = FileImports::new(folder, "");
            cuda_text_with(&imports, "kernel.py", &text, entry, &defines, arch)
        };
        std::hint::black_box(on_one_stack(compile).expect("the kernel compiles"));
    }
}

/// A constant as Python writes it; what is none of Python's is a text.
fn read(value: &str) -> ConstValue {
    match (value, value.parse()) {
        (_, Ok(number)) => ConstValue::Int(number),
        ("True" | "False", _) => ConstValue::Bool(value == "True"),
        _ => ConstValue::Str(value.into()),
    }
}
