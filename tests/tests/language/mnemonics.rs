//! Every instruction of the tables of mnemonics: read, printed, read back, and compiled by nvcc for the lowest GPU that has it.
//!
//! Each line of the tables is called with a sample of its tokens that has each at least once; with `TIRX_MNEMONICS=64` all combinations
//! of lines that have no more than 64, and of the others each two tokens that go together. The calls for one GPU are the statements
//! of a few kernels; their destinations are elements of global memory, so that nvcc drops none.

mod requirements;
mod simulated;

use std::collections::BTreeMap;

use rayon::prelude::*;
use tirx_core::intrin::mnemonic::call::space_of;
use tirx_core::intrin::mnemonic::lookup::Tokens;
use tirx_core::intrin::mnemonic::{Direction, Operand, OperandForm, instructions, types};
use tirx_core::ir::DType;
use tirx_tests::instructions::Sample;
use tirx_tests::nvcc::{Nvcc, nvcc};

/// The release of the PTX ISA that the toolkit of the tests knows.
const KNOWN: (u32, u32) = (9, 0);

/// The dtypes that operands have here, with the names of their buffers.
const BUFFERS: &[(&str, &str)] = &[
    ("uint8", "B8"),
    ("int8", "I8"),
    ("uint16", "B16"),
    ("int16", "I16"),
    ("uint32", "B32"),
    ("int32", "I32"),
    ("uint64", "B64"),
    ("int64", "I64"),
    ("float32", "F32"),
    ("float64", "F64"),
];

/// Registers of 128 bits are variables of a thread: no tensor has such elements.
const WIDE: (&str, &str) = ("uint128", "B128");

fn buffer(dtype: DType) -> Option<&'static str> {
    let name = dtype.to_string();
    BUFFERS
        .iter()
        .chain([&WIDE])
        .find(|(known, _)| *known == name)
        .map(|(_, buffer)| *buffer)
}

/// A call of an instruction, in text.
struct TextCall {
    text: String,
    mnemonic: String,
    /// Elements that it writes.
    writes: usize,
    tokens: Tokens,
}

/// The operands of a call; `None` where one has no dtype of the language.
fn operands(tokens: &Tokens, at: &mut usize) -> Option<Vec<String>> {
    let mut one = |operand: &Operand| -> Option<String> {
        Some(match &operand.form {
            OperandForm::Literal(_) => return None,
            // The second half begins behind the first one.
            OperandForm::Immediate(_) if operand.name == "immHalfSplitoff" => {
                let packed = tokens.has("pack::16b") || tokens.has("unpack::16b");
                (tokens.number("num", 0) * if packed { 2 } else { 1 }).to_string()
            }
            OperandForm::Immediate(ranges) => ranges[0].0.to_string(),
            OperandForm::Address(space) => {
                let space = if space.is_empty() { space_of(tokens) } else { space };
                match space {
                    "tmem" => "B32[0]".into(),
                    "local" => "L.ptr_to([0])".into(),
                    space if space.starts_with("shared") => "S.ptr_to([0])".into(),
                    // Their generic addresses are of shared memory.
                    "" if matches!(tokens.instruction.family, "mbarrier" | "ldmatrix" | "stmatrix")
                        || tokens.has("mbarrier") =>
                    {
                        "S.ptr_to([0])".into()
                    }
                    _ => "B64.ptr_to([0])".into(),
                }
            }
            OperandForm::Register => {
                let ty = tokens.type_of(operand.ty);
                let dtype = *types::dtypes(ty).first()?;
                match (ty, operand.direction) {
                    ("pred", Direction::Read) => "T.ptx.pred(B32[0])".into(),
                    ("ptr", _) => "B64.ptr_to([0])".into(),
                    (_, Direction::Read) if operand.name == "membermask" => "T.uint32(0xffffffff)".into(),
                    (_, Direction::Read) => format!("{}[1]", buffer(dtype)?),
                    (ty, _) => {
                        *at += 1;
                        let name = if ty == "pred" { "B32" } else { buffer(dtype)? };
                        format!("{name}[{}]", 1 + *at)
                    }
                }
            }
        })
    };
    let mut out = Vec::new();
    for (operand, count) in tokens.operands() {
        for _ in 0..count {
            out.push(one(operand)?);
        }
    }
    Some(out)
}

/// The calls of all instructions, and the lines of which none has operands of the language's dtypes.
fn calls(sample: Sample) -> (Vec<TextCall>, Vec<&'static str>) {
    let (mut out, mut without) = (Vec::new(), Vec::new());
    for instruction in instructions() {
        let before = out.len();
        for tokens in sample.combinations(instruction) {
            let mut writes = 0;
            if let Some(list) = operands(&tokens, &mut writes) {
                let mnemonic = tokens.text();
                out.push(TextCall {
                    text: format!("T.ptx[\"{mnemonic}\"]({})", list.join(", ")),
                    mnemonic,
                    writes,
                    tokens,
                });
            }
        }
        if out.len() == before {
            without.push(instruction.place.as_str());
        }
    }
    (out, without)
}

/// A kernel of calls.
fn kernel(calls: &[&TextCall]) -> String {
    let extent = 8 + calls.iter().map(|c| c.writes).max().unwrap_or(0);
    let mut text = String::from("@T.prim_func\ndef k(");
    let handles: Vec<String> = BUFFERS
        .iter()
        .map(|(_, name)| format!("{name}_: T.handle"))
        .collect();
    text.push_str(&handles.join(", "));
    text.push_str("):\n");
    for (dtype, name) in BUFFERS {
        text.push_str(&format!(
            "    {name} = T.match_buffer({name}_, ({extent},), \"{dtype}\", align=64)\n"
        ));
    }
    text.push_str("    T.device_entry()\n    bx = T.cta_id([2])\n    tx = T.thread_id([128])\n");
    text.push_str("    S = T.alloc_shared((128,), \"uint64\")\n    L = T.alloc_local((4,), \"uint64\")\n");
    let (dtype, name) = WIDE;
    if calls.iter().any(|c| c.text.contains(name)) {
        text.push_str(&format!("    {name} = T.alloc_local(({extent},), \"{dtype}\")\n"));
    }
    for call in calls {
        text.push_str(&format!("    {}\n", call.text));
    }
    text
}

/// A low GPU that has an instruction. Few kernels: the GPUs before Hopper are one.
fn gpu_of(call: &TextCall) -> String {
    let has = |name: &&str| call.tokens.lacking(name.parse().expect("a GPU")).is_none();
    let usual = ["sm_90", "sm_90a", "sm_100", "sm_100a"].into_iter().find(has);
    let example = || call.tokens.gpus().last().map(|gpus| gpus[0].example());
    usual.map(str::to_string).or_else(example).expect("a GPU has it")
}

#[test]
fn each_instruction_is_read_printed_and_read_back() {
    let (calls, without) = calls(Sample::Tokens.or_all());
    assert!(without.is_empty(), "no call of {without:?}");
    assert!(calls.len() > 1500, "{} calls", calls.len());
    for chunk in calls.chunks(200) {
        let chunk: Vec<&TextCall> = chunk.iter().collect();
        let text = kernel(&chunk);
        let modules =
            tirx_tests::build("k.py", &text, &[], &Default::default()).unwrap_or_else(|e| panic!("{e}"));
        tirx_tests::round_trip(&modules[0].1).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn each_instruction_compiles_for_its_lowest_gpu() {
    let Some(nvcc) = nvcc() else { return };
    let (calls, _) = calls(Sample::Tokens.or_all());
    let mut by_target: BTreeMap<(String, bool), Vec<&TextCall>> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.tokens.ptx() <= KNOWN) {
        let pair = call.mnemonic.contains("cta_group::2");
        let gpu = gpu_of(call);
        by_target.entry((gpu, pair)).or_default().push(call);
    }
    let kernels: Vec<(&str, &[&TextCall])> = by_target
        .iter()
        .flat_map(|((target, _), calls)| calls.chunks(500).map(|calls| (target.as_str(), calls)))
        .collect();
    let wrong: Vec<String> = kernels
        .par_iter()
        .filter_map(|(target, calls)| compile(&nvcc, target, calls).err())
        .collect();
    let wrong = wrong.join("\n");
    assert!(wrong.is_empty(), "{wrong}");
    let compiled: usize = by_target.values().map(Vec::len).sum();
    assert!(compiled > 1000, "{compiled} calls");
}

/// Compiles a kernel of calls for a GPU.
fn compile(nvcc: &Nvcc, target: &str, calls: &[&TextCall]) -> Result<(), String> {
    let source = tirx_tests::cuda_text("k.py", &kernel(calls), "k", &Default::default(), target);
    let source = source.map_err(|message| format!("{target}: {message}"))?;
    let refused = nvcc.refused(target, &["-O1"], &[(0, &source)])?;
    match refused.first() {
        None => Ok(()),
        Some((_, message)) => Err(format!("{target}:\n{message}")),
    }
}
