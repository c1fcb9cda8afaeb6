//! Calls of the instructions that mnemonics name: which combinations of their words, and kernels that compute with them.

use std::collections::BTreeSet;

use tirx_core::intrin::mnemonic::lookup::Tokens;
use tirx_core::intrin::mnemonic::{Direction, Instruction, OperandForm, instructions, types};
use tirx_core::ir::DType;

use crate::generator::Random;
use crate::machine::Argument;

/// Combinations that are looked at, those that PTX does not have among them.
const TRIED: usize = 20_000;

/// Which combinations of a line's tokens are called.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    /// Each token is there at least once.
    Tokens,
    /// All of lines that have no more than this many; of the others each two tokens that go together are there.
    All(usize),
}

impl Sample {
    /// All where `TIRX_MNEMONICS` is a number.
    pub fn or_all(self) -> Sample {
        match crate::number("TIRX_MNEMONICS", 0) {
            0 => self,
            most => Sample::All(most as usize),
        }
    }

    /// The combinations.
    pub fn combinations(self, instruction: &'static Instruction) -> Vec<Tokens> {
        let all = Tokens::combinations(instruction);
        // A distance without a common divisor: the first numbers reached are spread over all slots.
        let step = (all / 3..)
            .find(|step| greatest_common_divisor(*step, all) == 1)
            .unwrap_or(1);
        let tried = 0..all.min(TRIED);
        let mut legal: Vec<Tokens> = tried
            .filter_map(|n| Tokens::combination(instruction, n * step % all))
            .collect();
        let mut seen = BTreeSet::new();
        let mut keep = |tokens: &Tokens, distance: usize| {
            let filled: Vec<&str> = tokens.each().map(|(_, token)| token).collect();
            let pairs = (0..filled.len()).flat_map(|a| (a..filled.len()).map(move |b| (a, b)));
            let near = pairs.filter(|(a, b)| b - a <= distance);
            near.fold(false, |new, (a, b)| {
                seen.insert((a, filled[a], b, filled[b])) || new
            })
        };
        match self {
            Sample::Tokens => legal.retain(|tokens| keep(tokens, 0)),
            Sample::All(most) if legal.len() <= most => {}
            Sample::All(_) => legal.retain(|tokens| keep(tokens, usize::MAX)),
        }
        legal
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    match b {
        0 => a,
        b => greatest_common_divisor(b, a % b),
    }
}

/// Threads of a kernel that computes: each has operands of its own.
pub const THREADS: usize = 128;

/// Families whose results are not bits that follow from the operands alone: they are of the hardware, of other threads' progress, or
/// sums in an order that PTX leaves open.
const OPEN: &[&str] = &[
    "bar",
    "barrier",
    "createpolicy",
    "elect",
    "mma",
    "wgmma",
    "tcgen05",
    "mapa",
    "getctarank",
    "isspacep",
    "cvta",
    // States of phases.
    "mbarrier",
];

/// A kernel of one instruction whose operands are registers, and its arguments: inputs, then results.
#[derive(Debug)]
pub struct Computing {
    /// The instruction.
    pub mnemonic: String,
    /// The kernel's text.
    pub text: String,
    /// Its arguments.
    pub arguments: Vec<(String, Argument)>,
    /// How many of them are inputs.
    pub inputs: usize,
    /// The types that PTX gives the results.
    pub results: Vec<String>,
}

impl Computing {
    /// The element type of an argument.
    pub fn dtype(&self, argument: usize) -> DType {
        match &self.arguments[argument].1 {
            Argument::Tensor { dtype, .. } => *dtype,
            Argument::Scalar(_) => DType::BOOL,
        }
    }
}

/// Kernels for all instructions that compute exactly from registers to registers.
pub fn computing(sample: Sample) -> Vec<Computing> {
    let each = instructions().iter();
    each.filter(|instruction| !OPEN.contains(&instruction.family))
        .flat_map(|instruction| sample.combinations(instruction))
        .filter_map(|tokens| kernel_of(&tokens))
        .collect()
}

fn kernel_of(tokens: &Tokens) -> Option<Computing> {
    if tokens.has("approx") || tokens.has("full") {
        return None;
    }
    let mnemonic = tokens.text();
    let mut random = Random::new(
        mnemonic
            .bytes()
            .fold(7_u64, |n, b| n.wrapping_mul(31) + u64::from(b)),
    );
    let family = tokens.instruction.family;
    let (mut inputs, mut outputs, mut operands) = (Vec::new(), Vec::new(), Vec::new());
    let mut results = Vec::new();
    for (operand, count) in tokens.operands() {
        for _ in 0..count {
            let text = match &operand.form {
                OperandForm::Immediate(ranges) => ranges[0].0.to_string(),
                OperandForm::Register if operand.name == "membermask" => "T.uint32(0xffffffff)".into(),
                OperandForm::Register => {
                    let ty = tokens.type_of(operand.ty);
                    let dtype = match ty {
                        "pred" => DType::UINT32,
                        "ptr" => return None,
                        ty => *types::dtypes(ty).first()?,
                    };
                    if dtype.bits > 64 {
                        return None;
                    }
                    if operand.direction == Direction::Read {
                        let name = format!("I{}", inputs.len());
                        inputs.push((
                            name.clone(),
                            values(&mut random, dtype, ty, Allowed::for_operand(family, operand.name)),
                        ));
                        match ty {
                            "pred" => format!("T.ptx.pred({name}[tx] % T.uint32(2))"),
                            _ => format!("{name}[tx]"),
                        }
                    } else {
                        let name = format!("O{}", outputs.len());
                        results.push(ty.to_string());
                        outputs.push((
                            name.clone(),
                            tensor(dtype, vec![0; THREADS * usize::from(dtype.bits) / 8]),
                        ));
                        format!("{name}[tx]")
                    }
                }
                _ => return None,
            };
            operands.push(text);
        }
    }
    if inputs.is_empty() || outputs.is_empty() {
        return None;
    }
    let count = inputs.len();
    let arguments: Vec<(String, Argument)> = inputs.into_iter().chain(outputs).collect();
    let parameters: Vec<String> = arguments
        .iter()
        .map(|(name, argument)| match argument {
            Argument::Tensor { dtype, .. } => format!("{name}: T.Buffer(({THREADS},), \"{dtype}\")"),
            Argument::Scalar(_) => name.clone(),
        })
        .collect();
    let text = format!(
        "@T.prim_func\ndef k({}):\n    T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([{THREADS}])\n    \
         T.ptx[\"{mnemonic}\"]({})\n",
        parameters.join(", "),
        operands.join(", ")
    );
    Some(Computing {
        mnemonic,
        text,
        arguments,
        inputs: count,
        results,
    })
}

fn tensor(dtype: DType, bytes: Vec<u8>) -> Argument {
    Argument::Tensor {
        dtype,
        shape: vec![THREADS as i64],
        bytes,
    }
}

/// Which whole numbers an operand may be: PTX leaves the others open.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    All,
    /// Divisors.
    Odd,
    /// Positions and lengths of fields, lanes.
    Small,
}

impl Allowed {
    fn for_operand(family: &str, operand: &str) -> Allowed {
        match (family, operand) {
            ("div" | "rem", _) => Allowed::Odd,
            ("bfe", "b" | "c") | ("bfi", "c" | "d") | ("fns", "base" | "offset") => Allowed::Small,
            _ => Allowed::All,
        }
    }
}

/// Values of a type in which its special ones are frequent.
fn values(random: &mut Random, dtype: DType, ty: &str, allowed: Allowed) -> Argument {
    let width = usize::from(dtype.bits) / 8;
    let halves = ty.contains("f16") || ty.contains("bf16");
    let bytes = (0..THREADS).flat_map(|_| {
        let word = match width {
            _ if halves => [0, 16, 32, 48].map(|at| half(random) << at).iter().sum(),
            _ if allowed == Allowed::Small => random.bits() % 32,
            4 if dtype.is_float() => u64::from(special(random).to_bits()),
            8 if dtype.is_float() => f64::from(special(random)).to_bits(),
            _ => integer(random) | u64::from(allowed == Allowed::Odd),
        };
        word.to_le_bytes().into_iter().take(width)
    });
    tensor(dtype, bytes.collect())
}

fn integer(random: &mut Random) -> u64 {
    const SPECIAL: &[u64] = &[
        0,
        1,
        2,
        u64::MAX,
        0x7fff_ffff,
        0x8000_0000,
        1 << 63,
        (1 << 63) - 1,
        0x7f,
        0x80,
        0xffff,
    ];
    match random.bits() % 4 {
        0 => *random.pick(SPECIAL),
        1 => random.bits() % 70,
        _ => random.bits(),
    }
}

fn half(random: &mut Random) -> u64 {
    const SPECIAL: &[u64] = &[
        0, 0x8000, 0x3c00, 0xbc00, 0x3f80, 0x7bff, 0x7c00, 0xfc00, 0x7f80, 0x0001, 0x03ff, 0x0400,
    ];
    match random.bits() % 4 {
        0 => *random.pick(SPECIAL),
        1 => 0x3800 + random.bits() % 0x800,
        _ => random.bits() & 0xffff,
    }
}

fn special(random: &mut Random) -> f32 {
    const SPECIAL: &[f32] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        1e-40,
        -1e-40,
        3.4e38,
        -3.4e38,
        65504.0,
        65520.0,
        448.0,
        464.0,
        57344.0,
        1e-8,
        2e9,
        -3e9,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    match random.bits() % 4 {
        0 => *random.pick(SPECIAL),
        1 => (random.bits() % 4096) as f32 / 64.0 - 32.0,
        2 => {
            f32::from_bits((random.bits() & 0x8000_0000 | (0x3000_0000 + random.bits() % 0x2000_0000)) as u32)
        }
        _ => f32::from_bits(random.bits() as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_kernels_of_one_instruction_run_on_the_simulator() {
        let kernels = computing(Sample::Tokens);
        assert!(kernels.len() > 400, "{} kernels", kernels.len());
        let run = |kernel: &Computing| -> Result<(), String> {
            let (_, module) = crate::build("k.py", &kernel.text, &[], &Default::default())?.remove(0);
            let lowered = crate::stages(&module, crate::differential::ARCH, &mut |_, _| Ok(()))?;
            let mut simulator = crate::machine::Simulator::default();
            crate::machine::run(&mut simulator, &lowered, &kernel.arguments).map(|_| ())
        };
        let wrong: Vec<String> = kernels
            .iter()
            .step_by(5)
            .filter_map(|kernel| Some(format!("{}: {}", kernel.mnemonic, run(kernel).err()?)))
            .filter(|message| !message.contains("the simulator ") && !message.contains(" needs sm_"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
