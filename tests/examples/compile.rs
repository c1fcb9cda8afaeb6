//! Compiles one kernel to CUDA text some times over, for profilers (`docs/developing/performance.md` has the commands):
//! `compile TIMES FILE ENTRY [NAME=VALUE…]`, or `compile TIMES SHAPE SIZE` for a kernel that is large in one way.

use tirx_core::script::ConstValue;
use tirx_tests::shapes::SHAPES;
use tirx_tests::{Defines, cuda_text, long_kernel, only};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let (times, text, entry, defines) = match args[..] {
        [times, "statements", size] => (times, long_kernel(number(size)), "long", Defines::new()),
        [times, shape, size] if !shape.ends_with(".py") => {
            let shape = SHAPES
                .iter()
                .find(|s| s.name == shape)
                .expect("a shape of shapes.rs");
            (times, (shape.text)(number(size)), "shape", Defines::new())
        }
        [times, file, entry, ref constants @ ..] => {
            let whole = std::fs::read_to_string(file).expect("a kernel file");
            let define = |constant: &&str| {
                let (name, value) = constant.split_once('=').expect("NAME=VALUE");
                (name.to_string(), ConstValue::Int(number(value) as i128))
            };
            let text = only(&whole, entry).expect("the file has the kernel");
            (times, text, entry, constants.iter().map(define).collect())
        }
        _ => panic!("compile TIMES FILE ENTRY [NAME=VALUE…], or compile TIMES SHAPE SIZE"),
    };
    for _ in 0..number(times) {
        let text = cuda_text("kernel.py", &text, entry, &defines, "sm_90a").expect("the kernel compiles");
        std::hint::black_box(text);
    }
}
