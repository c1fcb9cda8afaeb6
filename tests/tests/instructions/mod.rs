//! Do instructions that compute from registers give on the GPU what they give on the simulator? Each mnemonic that neither refuses is
//! run with 128 values for each operand. `TIRX_MNEMONICS=64` takes more combinations, `TIRX_FILTER=cvt` those that hold the word.

use tirx_core::codegen::cuda;
use tirx_tests::differential::ARCH;
use tirx_tests::instructions::{Computing, Sample, computing};
use tirx_tests::machine::{self, Argument, Simulator};
use tirx_tests::{build, stages};

use super::{FLAGS, Gpu, compiler, cubin, leak, parallel, stream};

/// What the simulator leaves, and the machine code.
struct Prepared {
    lowered: tirx_core::ir::IRModule,
    contents: Vec<Vec<u8>>,
    cubin: Vec<u8>,
}

#[test]
#[ignore = "needs a GPU and TIRX_NVCC"]
fn instructions_give_what_the_simulator_gives() {
    let (stream, nvcc) = (stream(), compiler());
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut kernels = computing(Sample::Tokens.or_all());
    kernels.retain(|kernel| kernel.mnemonic.contains(&only));
    let prepared = parallel(&kernels, |kernel| -> Result<Prepared, String> {
        let (_, module) = build("k.py", &kernel.text, &[], &Default::default())?.remove(0);
        let lowered = stages(&module, ARCH, &mut |_, _| Ok(()))?;
        let contents = machine::run(&mut Simulator::default(), &lowered, &kernel.arguments)?;
        let source = cuda::emit(&lowered).map_err(|e| e.to_string())?;
        Ok(Prepared {
            lowered,
            contents,
            cubin: cubin(&nvcc, &source.text, FLAGS)?,
        })
    });
    let (mut failures, mut compared) = (Vec::new(), 0);
    for (kernel, prepared) in kernels.iter().zip(prepared) {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(message) => {
                let first = message.lines().next().unwrap_or_default();
                println!("{}: left out: {first}", kernel.mnemonic);
                continue;
            }
        };
        compared += 1;
        let mut gpu = Gpu::new(&stream, leak(prepared.cubin.into_boxed_slice()));
        let found = machine::run(&mut gpu, &prepared.lowered, &kernel.arguments)
            .and_then(|contents| compare(kernel, &prepared.contents, &contents));
        if let Err(message) = found {
            println!("==== {}: {message}", kernel.mnemonic);
            failures.push(format!("{}: {message}", kernel.mnemonic));
        }
    }
    println!(
        "{compared} of {} instructions ran: {} differ",
        kernels.len(),
        failures.len()
    );
    assert!(compared * 2 > kernels.len(), "too few instructions ran");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Where results differ: how often, and the first one with its operands. Two NaNs are the same.
fn compare(kernel: &Computing, simulated: &[Vec<u8>], on_gpu: &[Vec<u8>]) -> Result<(), String> {
    let mut different = Vec::new();
    for (k, (name, argument)) in kernel.arguments.iter().enumerate().skip(kernel.inputs) {
        let Argument::Tensor { dtype, .. } = argument else {
            continue;
        };
        let width = dtype.bytes();
        let elements = simulated[k].chunks(width).zip(on_gpu[k].chunks(width));
        for (i, (a, b)) in elements.enumerate() {
            if !same(&kernel.results[k - kernel.inputs], a, b) {
                let operands: Vec<String> = (0..kernel.inputs)
                    .map(|input| hexadecimal(&simulated[input], kernel.dtype(input).bytes(), i))
                    .collect();
                different.push(format!(
                    "{name} of ({}) is {} simulated, {} on the GPU",
                    operands.join(", "),
                    hexadecimal(&simulated[k], width, i),
                    hexadecimal(&on_gpu[k], width, i)
                ));
            }
        }
    }
    match different.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} results differ: {first}", different.len())),
    }
}

fn hexadecimal(bytes: &[u8], width: usize, element: usize) -> String {
    let digits = bytes[element * width..][..width].iter().rev();
    digits.fold("0x".to_string(), |text, byte| format!("{text}{byte:02x}"))
}

/// Whether two results are the same, or both NaN, in each of their parts.
fn same(ty: &str, a: &[u8], b: &[u8]) -> bool {
    let (width, infinity): (usize, u64) = match ty {
        "f16" | "f16x2" => (2, 0x7c00),
        "bf16" | "bf16x2" => (2, 0x7f80),
        "f32" | "tf32" => (4, 0x7f80_0000),
        "f64" => (8, 0x7ff0 << 48),
        _ => return a == b,
    };
    let sign = 1_u64 << (8 * width - 1);
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    let is_nan = |bytes: &[u8]| word(bytes) & !sign > infinity;
    let parts = a.chunks(width).zip(b.chunks(width));
    parts.into_iter().all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}
