//! Every instruction of the tables of mnemonics: read, printed, read back, and compiled by nvcc for the lowest GPU that has it.
//!
//! Each line of the tables is called with a sample of its tokens that has each token of a short slot at least once. The calls
//! for one GPU are the statements of one kernel; their destinations are elements of global memory, so that nvcc drops none.

use std::collections::BTreeMap;

use tirx_core::intrin::mnemonic::call::space_of;
use tirx_core::intrin::mnemonic::{Direction, Form, Instruction, Lookup, Operand, instructions, types};
use tirx_core::ir::DType;

/// The release of the PTX ISA that the toolkit of the tests knows.
const KNOWN: (u32, u32) = (9, 0);

/// Words of lines that are older than the word: of a family (any where it is empty), the release of PTX, and whether the word needs
/// Blackwell.
const NEWER: &[(&str, &str, (u32, u32), bool)] = &[
    ("", "layout::v", (9, 3), false),
    ("", "ignore_oob", (9, 2), false),
    ("", "mbarrier::report", (9, 4), false),
    ("", "multicast::cluster::", (9, 4), false),
    ("", "im2col_no_offs::w", (9, 4), false),
    ("cp", ".weak", (9, 2), false),
    ("cp", ".relaxed", (9, 2), false),
    ("cp", ".b128", (9, 2), false),
    ("", "cp_mask", (8, 6), true),
    ("cp", "cta_group", (8, 6), true),
    ("", "im2col::w", (8, 6), true),
];

/// The words of a call that are newer than its line.
fn newer(call: &Call) -> impl Iterator<Item = &'static (&'static str, &'static str, (u32, u32), bool)> + '_ {
    NEWER.iter().filter(|(family, word, ..)| {
        (family.is_empty() || *family == call.instruction.family) && call.mnemonic.contains(word)
    })
}

/// Samples of a line's tokens.
const SAMPLES: usize = 6;

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
struct Call {
    text: String,
    mnemonic: String,
    /// Elements that it writes.
    writes: usize,
    instruction: &'static Instruction,
}

/// Whether two are one instruction of the tables, which are read by families and as a whole.
fn is_same(a: &Instruction, b: &Instruction) -> bool {
    let names = |i: &Instruction| i.operands.iter().map(|o| o.name).collect::<Vec<_>>();
    a.place == b.place && a.family == b.family && names(a) == names(b)
}

/// A mnemonic with one choice of tokens; `None` where PTX does not have it.
fn mnemonic(instruction: &'static Instruction, round: usize, with_optional: bool) -> Option<String> {
    let mut text = instruction.family.to_string();
    for (i, slot) in instruction.slots.iter().enumerate() {
        if slot.optional && (!with_optional || !(round + i).is_multiple_of(2)) {
            continue;
        }
        text.push('.');
        text.push_str(&slot.tokens[(round * 5 + i * round) % slot.tokens.len()]);
    }
    let lookup = Lookup::mnemonic(&text).ok()?;
    let found = lookup
        .candidates
        .iter()
        .find(|c| is_same(c.instruction, instruction))?;
    (found.missing().is_none() && found.mistake().is_none()).then_some(text)
}

/// The operands of a call; `None` where one has no dtype of the language.
fn operands(instruction: &'static Instruction, text: &str, at: &mut usize) -> Option<Vec<String>> {
    let lookup = Lookup::mnemonic(text).ok()?;
    let tokens = lookup
        .candidates
        .iter()
        .find(|c| is_same(c.instruction, instruction))?;
    let mut out = Vec::new();
    for operand in &instruction.operands {
        let there = operand
            .present
            .is_none_or(|(slot, token)| match (tokens.get(slot), token) {
                ("", "") => tokens.has(slot),
                (filled, "") => !filled.is_empty(),
                (filled, token) => filled == token,
            });
        if !there {
            continue;
        }
        let one = |operand: &Operand, at: &mut usize| -> Option<String> {
            Some(match &operand.form {
                Form::Literal(_) => return Some(String::new()),
                Form::Immediate(ranges) => ranges[0].0.to_string(),
                Form::Address(space) => {
                    let space = if space.is_empty() { space_of(tokens) } else { space };
                    match space {
                        "tmem" => "B32[0]".into(),
                        space if space.starts_with("shared") => "S.ptr_to([0])".into(),
                        // Their generic addresses are of shared memory.
                        "" if matches!(instruction.family, "mbarrier" | "ldmatrix" | "stmatrix")
                            || tokens.has("mbarrier") =>
                        {
                            "S.ptr_to([0])".into()
                        }
                        _ => "B64.ptr_to([0])".into(),
                    }
                }
                Form::Register => {
                    let ty = tokens.type_of(operand.ty);
                    let dtype = *types::dtypes(ty).first()?;
                    match (ty, operand.direction) {
                        ("pred", Direction::Read) => "T.ptx.pred(B32[0])".into(),
                        ("ptr", _) => "B64.ptr_to([0])".into(),
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
        for _ in 0..operand.count.of(tokens) {
            let text = one(operand, at)?;
            if !text.is_empty() {
                out.push(text);
            }
        }
    }
    Some(out)
}

/// The sampled calls of all instructions, and the lines of which none has operands of the language's dtypes.
fn calls() -> (Vec<Call>, Vec<&'static str>) {
    let (mut out, mut without) = (Vec::new(), Vec::new());
    for instruction in instructions() {
        let mut seen = Vec::new();
        for round in 0..40 {
            for optional in [true, false] {
                let Some(text) = mnemonic(instruction, round, optional) else {
                    continue;
                };
                if seen.contains(&text) || seen.len() >= SAMPLES {
                    continue;
                }
                let mut writes = 0;
                if let Some(list) = operands(instruction, &text, &mut writes) {
                    out.push(Call {
                        text: format!("T.ptx[\"{text}\"]({})", list.join(", ")),
                        mnemonic: text.clone(),
                        writes,
                        instruction,
                    });
                    seen.push(text);
                }
            }
        }
        if seen.is_empty() {
            without.push(instruction.place.as_str());
        }
    }
    (out, without)
}

/// A kernel of calls.
fn kernel(calls: &[&Call]) -> String {
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
    text.push_str("    S = T.alloc_shared((128,), \"uint64\")\n");
    let (dtype, name) = WIDE;
    if calls.iter().any(|c| c.text.contains(name)) {
        text.push_str(&format!("    {name} = T.alloc_local(({extent},), \"{dtype}\")\n"));
    }
    for call in calls {
        text.push_str(&format!("    {}\n", call.text));
    }
    text
}

#[test]
fn each_instruction_is_read_printed_and_read_back() {
    let (calls, without) = calls();
    assert!(without.is_empty(), "no call of {without:?}");
    assert!(calls.len() > 1500, "{} calls", calls.len());
    for chunk in calls.chunks(200) {
        let chunk: Vec<&Call> = chunk.iter().collect();
        let text = kernel(&chunk);
        let modules =
            tirx_tests::build("k.py", &text, &[], &Default::default()).unwrap_or_else(|e| panic!("{e}"));
        tirx_tests::round_trip(&modules[0].1).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn each_instruction_compiles_for_its_lowest_gpu() {
    let Some(nvcc) = tirx_tests::nvcc() else {
        eprintln!(
            "no nvcc of CUDA 13: the instructions are not compiled (`cargo tirx toolchain install`, or set TIRX_NVCC)"
        );
        return;
    };
    let (calls, _) = calls();
    let mut by_target: BTreeMap<(String, bool), Vec<&Call>> = BTreeMap::new();
    let known = |c: &&Call| c.instruction.ptx <= KNOWN && newer(c).all(|(_, _, ptx, _)| *ptx <= KNOWN);
    for call in calls.iter().filter(known) {
        let gpu = call.instruction.gpus.first().map_or("sm_80".into(), |arch| {
            let least = match arch.families.is_empty() {
                true => format!("sm_{}", arch.least.max(80)),
                false => arch.example(),
            };
            // Few kernels: the GPUs before Hopper are one. Accesses of 256 bits are of Blackwell.
            let words = ["b64", "u64", "s64", "f64"];
            let wide = call.mnemonic.contains(".v8.")
                || call.mnemonic.contains(".v4.") && words.iter().any(|w| call.mnemonic.ends_with(w));
            let blackwell = newer(call).any(|(.., blackwell)| *blackwell);
            match least.as_str() {
                "sm_80" | "sm_90" if blackwell => "sm_100a".to_string(),
                "sm_80" | "sm_86" | "sm_89" | "sm_90" if wide => "sm_100".to_string(),
                "sm_80" | "sm_86" | "sm_89" => "sm_90".to_string(),
                _ => least,
            }
        });
        let pair = call.mnemonic.contains("cta_group::2");
        by_target.entry((gpu, pair)).or_default().push(call);
    }
    let mut wrong = String::new();
    for ((target, _), calls) in &by_target {
        let text = kernel(calls);
        let source = match tirx_tests::cuda_text("k.py", &text, "k", &Default::default(), target) {
            Ok(source) => source,
            Err(message) => {
                wrong.push_str(&format!("{target}: {message}\n"));
                continue;
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k.cu");
        std::fs::write(&path, source).unwrap();
        let run = std::process::Command::new(&nvcc)
            .args(["-std=c++17", "-O1", "-cubin", "-arch", target, "-o"])
            .arg(dir.path().join("k.cubin"))
            .arg(&path)
            .output()
            .unwrap();
        if !run.status.success() {
            wrong.push_str(&format!("{target}:\n{}\n", String::from_utf8_lossy(&run.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let compiled: usize = by_target.values().map(Vec::len).sum();
    assert!(compiled > 1000, "{compiled} calls");
}
