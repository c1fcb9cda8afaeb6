//! A text through the whole compiler.

use std::collections::BTreeMap;

use tirx_core::codegen::{cuda, host, rust};
use tirx_core::diagnostic::Diagnostics;
use tirx_core::ir::{IRModule, PrimFunc, image, structural_equal, verify};
use tirx_core::script::{ConstValue, Entry, KernelFile, NoImports, print};
use tirx_core::source::SourceMap;
use tirx_core::transform::{Lowering, Target, lower};
use tirx_sim::Program;

/// Builds, prints, lowers and emits every entry of a kernel file.
///
/// # Panics
/// Where the compiler breaks a promise: it panics, leaves malformed IR, or prints what does not parse back.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    run_text(&text);
}

/// Whether a text has no syntax errors: texts with errors are tested, but not kept in the corpus, which they would soon
/// dominate.
pub fn is_python(text: &str) -> bool {
    tirx_python::parse_module(text, tirx_python::Limits::STACK).is_ok()
}

fn run_text(text: &str) {
    let mut sources = SourceMap::new();
    let file = match KernelFile::load(&mut sources, "fuzz.py", text, &NoImports) {
        Ok(file) => file,
        Err(errors) => return checked(&errors, &sources),
    };
    let defines = directives(text);
    for entry in file.entries().iter().take(8) {
        match file.build(Some(&entry.name), &values(entry, &defines)) {
            Ok(module) => compile(module),
            Err(errors) => checked(&errors, &sources),
        }
    }
}

fn compile(module: IRModule) {
    let sources = module.sources.clone();
    // Printed IR may be written by hand with any content. A well-formed module must stay well-formed; others must not
    // cause a panic.
    let well_formed = verify(&module).is_ok();
    if well_formed {
        round_trip(&module, "as parsed");
    }
    if !host::device_functions(&module).is_empty() {
        return emit(&module, None, well_formed);
    }
    let mut lowering = Lowering {
        verify: well_formed,
        ..Lowering::new(Target::SM_90A)
    };
    let authored = match module.functions.as_slice() {
        [(_, func)] => Some(func.clone()),
        _ => None,
    };
    match lower(module, &mut lowering) {
        Ok(lowered) => {
            if well_formed {
                round_trip(&lowered, "lowered");
            }
            emit(&lowered, authored.as_ref(), well_formed);
        }
        Err(errors) => checked(&errors, &sources),
    }
}

fn emit(lowered: &IRModule, authored: Option<&PrimFunc>, well_formed: bool) {
    match cuda::emit(lowered) {
        Ok(_) => {}
        Err(errors) => checked(&errors, &lowered.sources),
    }
    if let Some(authored) = authored {
        match rust::launcher(authored, lowered) {
            Ok(_) => {}
            Err(errors) => checked(&errors, &lowered.sources),
        }
    }
    let device = host::device_module(lowered);
    let bytes = image::encode(&device);
    let back = image::decode(&bytes).expect("an image that was written is read");
    if well_formed {
        structural_equal(&device, &back).expect("an image holds the module");
    }
    for (name, _) in &device.functions {
        if let Err(errors) = Program::compile(&device, name) {
            checked(&errors, &lowered.sources);
        }
    }
}

/// An error is rendered without a panic, has a message, and does not blame the compiler.
pub fn checked(errors: &Diagnostics, sources: &SourceMap) {
    let text = errors.render(sources);
    assert!(!text.trim().is_empty(), "an error without a message");
    assert!(!text.contains("this is a bug"), "{text}");
    assert!(!text.contains("internal error"), "{text}");
}

/// Printed IR parses back to the same module, unless it exceeds a limit of the parser.
fn round_trip(module: &IRModule, stage: &str) {
    let text = print(module);
    let mut sources = SourceMap::new();
    let back = KernelFile::load(&mut sources, "printed.py", &text, &NoImports)
        .and_then(|file| file.build(None, &BTreeMap::new()));
    match back {
        Ok(back) => {
            if let Err(difference) = structural_equal(module, &back) {
                panic!("{stage}: printed and parsed back it differs: {difference}\n{text}");
            }
        }
        Err(errors) => {
            let message = errors.render(&sources);
            let limited = ["more than", "grew beyond", "larger than", "too large"];
            if !limited.iter().any(|limit| message.contains(limit)) {
                panic!("{stage}: what was printed does not parse:\n{message}\n{text}");
            }
        }
    }
}

/// `# -D N=256` lines, as in filetests.
fn directives(text: &str) -> BTreeMap<String, ConstValue> {
    let lines = text.lines().filter_map(|l| l.strip_prefix("# -D "));
    let pairs = lines.take(8).filter_map(|l| l.split_once('='));
    pairs
        .map(|(n, v)| (n.trim().to_string(), constant(v.trim())))
        .collect()
}

fn constant(text: &str) -> ConstValue {
    match text {
        "None" => ConstValue::None,
        "True" => ConstValue::Bool(true),
        "False" => ConstValue::Bool(false),
        _ => match (text.parse(), text.parse()) {
            (Ok(int), _) => ConstValue::Int(int),
            (_, Ok(float)) => ConstValue::Float(float),
            _ => ConstValue::Str(text.trim_matches(['"', '\'']).into()),
        },
    }
}

/// A value for each compile-time parameter that needs one.
fn values(entry: &Entry, defines: &BTreeMap<String, ConstValue>) -> BTreeMap<String, ConstValue> {
    let needed = entry
        .constexprs
        .iter()
        .filter(|p| p.required || defines.contains_key(&p.name));
    let value = |name: &str| defines.get(name).cloned().unwrap_or(ConstValue::Int(64));
    needed.map(|p| (p.name.clone(), value(&p.name))).collect()
}
