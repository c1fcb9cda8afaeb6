//! Tests that cross crates, and what they share.
//!
//! `kernels/*/*.py` are filetests: kernel files whose first comments say how they are tested.
//!
//! | folder | question |
//! |---|---|
//! | `language` | what does the text of a kernel mean? Expressions, statements, dtypes, metaprograms, printed IR |
//! | `intrinsics` | what does an instruction or a function of CUDA become, and what does it compute? |
//! | `memory` | where do elements lie, and which accesses see which? Buffers, layouts, the memory model, races |
//! | `asynchronous` | copies, barriers, matrix units and clusters: which wait is enough, which is missing? |
//! | `tiles` | which code does a tile primitive become, and what does it leave? |
//! | `launch` | what does the host do? Arguments, checks, tensor maps, attributes, modules |
//! | `errors` | what does a mistake say? |
//!
//! A file's name is unique, and names it in reports.
//!
//! | line | meaning |
//! |---|---|
//! | `# test: parse` | the printed IR is that of `NAME.parse.txt`, beside the file |
//! | `# test: parse only` | the same, and the kernels are not lowered |
//! | `# test: lower PASS` | the IR after `PASS` is that of `NAME.PASS.txt` |
//! | `# test: cuda sm_90a` | the CUDA text is that of `NAME.sm_90a.cu`, and nvcc takes it |
//! | `# test: target sm_100a` | the kernels are lowered and run for this GPU, not for sm_90a |
//! | `# test: compile sm_100a` | nvcc takes the CUDA text |
//! | `# sim: KERNEL` | the simulator leaves what the lines below say, by expressions ([`expressions`]); anywhere in the file; `KERNEL on sm_90a, sm_100a` runs it as each of these GPUs |
//! | `# test: sim` | the simulator leaves what `NAME.sim.txt` says ([`runs`]), for values that no expression gives |
//! | `# variant: NAME of KERNEL` | a kernel like another one, but for the changes in the lines below ([`variants`]); `NAME of KERNEL on sm_100a` runs it as that GPU |
//! | `# error: text` | building or lowering fails, and the rendered message holds the text (one line each) |
//! | `# test: messages` | each kernel of the file is wrong, and the rendered messages are those of `NAME.messages.txt` |
//! | `# entry: name` | the kernel that is meant; all of the file's where there is none |
//! | `# -D N=256` | a compile-time parameter |
//!
//! A file whose name begins with `_` is no filetest: it has functions that the filetests of its folder import
//! (`from _fragments import sums`).
//!
//! A word that is none of these, with a colon behind it, is an error. Whatever a file asks for, each of its kernels is
//! also printed and parsed back after every pass, and verified. Each kernel is a trial of the test runner
//! (`NAME::KERNEL`), and so is the comparison with texts (`NAME`). nvcc gets the texts of many files at once: its trials are
//! `nvcc::GPU::NUMBER`, and name the kernels that it refuses. Without nvcc they fail, or are ignored with `TIRX_NVCC=none`.
//! `TIRX_FILTER=name` runs the files whose path holds the name, `TIRX_SHOW=1` shows the text that failed.
//! `TIRX_BLESS=1` writes the expectations instead of comparing; read the diff before committing it.
//!
//! [`generator`] makes random kernels, and [`differential`] runs them in two ways and compares. [`shapes`] makes large ones.

#![forbid(unsafe_code)]

pub mod asynchronous;
pub mod differential;
pub mod files;
pub mod generator;
pub mod instructions;
pub mod mutants;
pub mod pages;
pub mod profiled;
pub mod shapes;
pub mod tiles;
pub mod tools;
pub mod variants;

pub use tirx_expect::{expressions, machine, runs};
#[cfg(unix)]
pub use tirx_test_tools::stand_in;
pub use tirx_test_tools::{nvcc, skip, skip_test, unit};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tirx_core::codegen::{cuda, rust};
use tirx_core::diagnostic::Diagnostic;
use tirx_core::ir::{IRModule, on_one_stack, structural_equal, verify};
use tirx_core::script::{ConstValue, Imports, KernelFile, print};
use tirx_core::source::{SourceMap, Span};
use tirx_core::transform::{Lowering, Step, Target, lower};

/// The workspace's root; `TIRX_ROOT` names a copy of it for test executables that run on another machine.
pub fn root() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::var_os("TIRX_ROOT").map_or_else(built, PathBuf::from)
}

/// The number that an environment variable gives.
pub fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A kernel's name, and its module or the error as it is rendered for users.
pub type Built = (String, Result<IRModule, String>);

/// Compile-time parameters.
pub type Defines = BTreeMap<String, ConstValue>;

/// One way a file is tested.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Printed IR against a text.
    Parse,
    /// IR after a pass against a text.
    Lower(String),
    /// CUDA for an architecture against a text.
    Cuda(String),
    /// Runs on the simulator against values of a text.
    Sim,
    /// The messages about kernels that are wrong against a text.
    Messages,
    /// CUDA for an architecture to nvcc alone.
    Compile(String),
}

/// A filetest.
#[derive(Debug)]
pub struct Case {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The selected kernel.
    pub entry: Option<String>,
    /// Compile-time parameters.
    pub defines: Defines,
    /// Whether the kernels are lowered.
    pub lowered: bool,
    /// The GPU that they are lowered for.
    pub arch: String,
    /// The requested checks.
    pub tests: Vec<Test>,
    /// The expected error message; empty for a file without one.
    pub errors: Vec<String>,
    /// The files that the kernels import.
    pub imports: files::Imported,
    described: OnceLock<Result<Vec<runs::Run>, String>>,
}

impl Case {
    /// Reads a file and its directives.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut case = Case {
            path: path.into(),
            text: String::new(),
            entry: None,
            defines: Defines::new(),
            lowered: true,
            arch: "sm_90a".into(),
            tests: Vec::new(),
            errors: Vec::new(),
            imports: files::Imported::Filetests,
            described: OnceLock::new(),
        };
        for line in text.lines().take_while(|l| l.starts_with('#') || l.is_empty()) {
            let line = line.trim_start_matches('#').trim();
            if let Some(arch) = line.strip_prefix("test: target ") {
                case.arch = arch.trim().into();
            } else if let Some(test) = line.strip_prefix("test:") {
                case.tests
                    .push(match test.split_whitespace().collect::<Vec<_>>()[..] {
                        ["parse"] => Test::Parse,
                        ["parse", "only"] => {
                            case.lowered = false;
                            Test::Parse
                        }
                        ["sim"] => Test::Sim,
                        ["messages"] => Test::Messages,
                        ["lower", pass] => Test::Lower(pass.into()),
                        ["cuda", arch] => Test::Cuda(arch.into()),
                        ["compile", arch] => Test::Compile(arch.into()),
                        _ => return Err(format!("{}: unknown test {test:?}", path.display())),
                    });
            } else if let Some(error) = line.strip_prefix("error:") {
                case.errors.push(error.trim().into());
            } else if let Some(entry) = line.strip_prefix("entry:") {
                case.entry = Some(entry.trim().into());
            } else if let Some(define) = line.strip_prefix("-D") {
                let (name, value) = define
                    .split_once('=')
                    .ok_or(format!("{}: `-D{define}` is not NAME=VALUE", path.display()))?;
                case.defines.insert(name.trim().into(), constant(value.trim()));
            } else if let Some(word) = directive(line).filter(|word| !matches!(*word, "sim" | "variant")) {
                return Err(format!(
                    "{}: unknown directive `{word}:` (there are test, error, entry, sim, variant and -D)",
                    path.display()
                ));
            }
        }
        case.text = variants::expand(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(case)
    }

    /// The file's name without its ending.
    pub fn name(&self) -> String {
        self.path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// The modules of the file's kernels, by kernel name; the error as it is rendered for users.
    pub fn build(&self) -> Result<Vec<(String, IRModule)>, String> {
        let name = format!("{}.py", self.name());
        let entries: Vec<&str> = self.entry.as_deref().into_iter().collect();
        build_with(&self.imports, &name, &self.text, &entries, &self.defines)
    }

    /// The file's kernels, each with its module or the error as it is rendered for users.
    ///
    /// # Errors
    /// The error if the file cannot be loaded.
    pub fn build_each(&self) -> Result<Vec<Built>, String> {
        let name = format!("{}.py", self.name());
        let entries: Vec<&str> = self.entry.as_deref().into_iter().collect();
        build_each(&self.imports, &name, &self.text, &entries, &self.defines)
    }

    /// The same case with another text.
    pub fn with_text(&self, text: String) -> Case {
        Case {
            path: self.path.clone(),
            text,
            entry: self.entry.clone(),
            defines: self.defines.clone(),
            lowered: self.lowered,
            arch: self.arch.clone(),
            tests: self.tests.clone(),
            errors: self.errors.clone(),
            imports: self.imports.clone(),
            described: OnceLock::new(),
        }
    }

    /// The names of the selected kernels.
    pub fn entries(&self) -> Result<Vec<String>, String> {
        if let Some(entry) = &self.entry {
            return Ok(vec![entry.clone()]);
        }
        let mut sources = SourceMap::new();
        let name = format!("{}.py", self.name());
        let file = KernelFile::load(&mut sources, &name, &self.text, &self.imports)
            .map_err(|e| e.render(&sources))?;
        Ok(file.entries().iter().map(|e| e.name.clone()).collect())
    }

    /// The names of the language that building the kernels looks up. For a file that needs parameters, the names looked
    /// up by the kernels that can be built without.
    pub fn names(&self) -> BTreeSet<String> {
        let mut sources = SourceMap::new();
        let name = format!("{}.py", self.name());
        let Ok(file) = KernelFile::load(&mut sources, &name, &self.text, &self.imports) else {
            return BTreeSet::new();
        };
        let (_, names) = file.names_looked_up(|file| {
            for entry in self.entries().unwrap_or_default() {
                // A kernel that fails to build adds the names it looked up before; the failure is reported elsewhere.
                let _ = file.build_all(Some(&entry), &self.defines);
            }
        });
        names
    }

    /// The module of one kernel.
    pub fn build_one(&self, kernel: &str) -> Result<IRModule, String> {
        let name = format!("{}.py", self.name());
        let modules = build_with(&self.imports, &name, &self.text, &[kernel], &self.defines)?;
        let module = modules.into_iter().next().map(|(_, module)| module);
        module.ok_or(format!("there is no kernel {kernel}"))
    }

    /// The runs on the simulator that the file and its `sim.txt` describe; read once.
    pub fn runs(&self) -> Result<&[runs::Run], String> {
        let runs = self.described.get_or_init(|| self.read_runs());
        runs.as_deref().map_err(String::clone)
    }

    /// The same, to keep.
    pub fn read_runs(&self) -> Result<Vec<runs::Run>, String> {
        let mut runs = expressions::read_with(&format!("{}.py", self.name()), &self.text, &self.imports)?;
        if self.tests.contains(&Test::Sim) {
            runs.extend(runs::read(&self.companion("sim.txt")?)?);
        }
        Ok(runs)
    }

    /// The runs of a kernel, with their arguments bound to its parameters by name, as `cargo tirx test` binds them.
    ///
    /// # Errors
    /// Lines that do not fit the kernel, with the line of the run.
    pub fn runs_of(&self, kernel: &str, module: &IRModule) -> Result<Vec<runs::Run>, String> {
        let runs = self.runs()?.iter().filter(|run| run.kernel == kernel);
        runs.map(|run| self.bound(run, module)).collect()
    }

    /// One run of a kernel with bound arguments. See [`Case::runs_of`].
    ///
    /// # Errors
    /// Lines that do not fit the kernel, with the line of the run.
    pub fn bound(&self, run: &runs::Run, module: &IRModule) -> Result<runs::Run, String> {
        let authored = match module.functions.as_slice() {
            [(_, only)] => Some(only),
            _ => module.get("main"),
        };
        let authored = authored.ok_or_else(|| format!("{} is not one function", run.kernel))?;
        run.bound_to(authored)
            .map_err(|error| format!("{}.py:{}: {error}", self.name(), run.line))
    }

    /// The text of `NAME.KIND`.
    pub fn companion(&self, kind: &str) -> Result<String, String> {
        let path = self.path.with_file_name(format!("{}.{kind}", self.name()));
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Compares a text with the expectation of this case, or writes it.
    pub fn expect(&self, kind: &str, text: &str) -> Result<(), String> {
        let path = self.path.with_file_name(format!("{}.{kind}", self.name()));
        if std::env::var_os("TIRX_BLESS").is_some() {
            return std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()));
        }
        let expected = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if expected == text {
            return Ok(());
        }
        let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), text.lines().collect());
        let at = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        let line = |lines: &[&str]| lines.get(at).map_or("the end".to_string(), ToString::to_string);
        Err(format!(
            "{} line {}:\n  expected {}\n  found    {}",
            path.display(),
            at + 1,
            line(&a),
            line(&b)
        ))
    }
}

/// The word of a line that looks like a directive: lower case, followed by a colon.
fn directive(line: &str) -> Option<&str> {
    let (word, rest) = line.split_once(':')?;
    let lower = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    (lower && (rest.is_empty() || rest.starts_with(' '))).then_some(word)
}

/// Builds kernels of a text: those named, or all.
pub fn build(
    name: &str,
    text: &str,
    entries: &[&str],
    defines: &Defines,
) -> Result<Vec<(String, IRModule)>, String> {
    build_with(&files::Imported::Filetests, name, text, entries, defines)
}

/// The same, of a text that imports other files than those of the filetests.
pub fn build_with(
    imports: &dyn Imports,
    name: &str,
    text: &str,
    entries: &[&str],
    defines: &Defines,
) -> Result<Vec<(String, IRModule)>, String> {
    let built = build_each(imports, name, text, entries, defines)?;
    let module = |(entry, module): (_, Result<_, _>)| Ok((entry, module?));
    built.into_iter().map(module).collect()
}

/// The same, with each kernel's own error.
fn build_each(
    imports: &dyn Imports,
    name: &str,
    text: &str,
    entries: &[&str],
    defines: &Defines,
) -> Result<Vec<Built>, String> {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, name, text, imports).map_err(|e| e.render(&sources))?;
    let all: Vec<String> = match entries {
        [] => file.entries().iter().map(|e| e.name.clone()).collect(),
        some => some.iter().map(ToString::to_string).collect(),
    };
    let build = |entry: String| {
        let module = file.build(Some(&entry), defines);
        (entry, module.map_err(|e| e.render(&sources)))
    };
    Ok(all.into_iter().map(build).collect())
}

/// The messages about each kernel of a file in which all are wrong: by the front end, a pass, code generation or the
/// launcher's generator, whichever comes first.
pub fn messages(name: &str, text: &str, arch: &str) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, name, text, &files::Imported::Filetests)
        .map_err(|e| e.render(&sources))?;
    let (mut all, mut unexpected) = (String::new(), Vec::new());
    for entry in file.entries() {
        let checked = file.build(Some(&entry.name), &Defines::new()).and_then(|module| {
            // As in a build, without the verifier, which finds mistakes of the compiler.
            let mut lowering = Lowering::new(Target::named(arch).expect("a known GPU"));
            lowering.verify = false;
            let lowered = lower(module.clone(), &mut lowering)?;
            cuda::emit(&lowered)?;
            let (_, authored) = module
                .functions
                .last()
                .ok_or(Diagnostic::new(Span::NONE, "no function"))?;
            rust::launcher(authored, &lowered)
        });
        match checked {
            Ok(_) => unexpected.push(entry.name.clone()),
            Err(error) => all += &format!("{}\n", error.render(&sources)),
        }
    }
    if !unexpected.is_empty() {
        return Err(format!(
            "no error, but one is expected: {}",
            unexpected.join(", ")
        ));
    }
    Ok(all)
}

/// One kernel from text to CUDA text: what a build does for it before nvcc, without checks between passes.
pub fn cuda_text(
    name: &str,
    text: &str,
    entry: &str,
    defines: &Defines,
    arch: &str,
) -> Result<String, String> {
    on_one_stack(|| cuda_text_with(&files::Imported::Filetests, name, text, entry, defines, arch))
}

/// The same, of a file that imports others.
pub fn cuda_text_with(
    imports: &dyn Imports,
    name: &str,
    text: &str,
    entry: &str,
    defines: &Defines,
    arch: &str,
) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let file = KernelFile::load(&mut sources, name, text, imports).map_err(|e| e.render(&sources))?;
    let module = file.build(Some(entry), defines).map_err(|e| e.render(&sources))?;
    let mut lowering = Lowering::new(Target::named(arch).expect("a known GPU"));
    lowering.verify = false;
    let lowered = lower(module, &mut lowering).map_err(|e| e.render(&sources))?;
    Ok(cuda::emit(&lowered).map_err(|e| e.render(&sources))?.text)
}

/// The text of one kernel of a file, with the functions that it may call and without other kernels.
pub fn only(text: &str, entry: &str) -> Option<String> {
    let mut parts = text.split("\n\n\n@");
    let mut out = parts.next()?.to_string();
    let mut found = false;
    for part in parts {
        let own = part.contains(&format!("def {entry}("));
        found |= own;
        if own || !(part.starts_with("T.jit") || part.starts_with("T.prim_func")) {
            out += "\n\n\n@";
            out += part;
        }
    }
    found.then(|| out + "\n")
}

/// The text of a kernel of `statements` statements, one in five of them a condition or a loop around others.
pub fn long_kernel(statements: usize) -> String {
    let mut text = String::from(
        "from tvm.script import tirx as T\n\n\n@T.prim_func\n\
         def long(A: T.Buffer((65536,), \"float32\"), B: T.Buffer((65536,), \"float32\")):\n\
         \x20   T.device_entry()\n    bx = T.cta_id([256])\n    tx = T.thread_id([256])\n",
    );
    for group in 0..statements.div_ceil(10) {
        let k = group * 10;
        text += &format!(
            "    x{k}: T.let = A[(bx * 256 + tx + {k}) % 65536] * T.float32({k}.5)\n\
             \x20   B[bx * 256 + tx] = x{k} + A[bx * 256 + tx] * T.float32(2.0)\n\
             \x20   if tx + {k} < 128:\n\
             \x20       B[(bx * 256 + tx * 2 + {k}) % 65536] = T.max(x{k}, T.float32(0.0)) - A[tx]\n\
             \x20       B[tx] = A[tx] + x{k}\n\
             \x20   for i in range({trips}):\n\
             \x20       B[tx * 8 + i] = B[tx * 8 + i] + A[(tx * 8 + i + {k}) // 2]\n\
             \x20       B[tx * 8 + i] = T.exp(B[tx * 8 + i]) * x{k}\n\
             \x20   B[bx] = A[bx] + A[tx] * x{k}\n\
             \x20   B[tx + {shift}] = A[bx * 256 + tx] - A[tx * 4 + bx]\n",
            trips = 2 + group % 7,
            shift = k % 1024,
        );
    }
    text
}

/// A Python literal.
pub fn constant(text: &str) -> ConstValue {
    match text {
        "None" => ConstValue::None,
        "True" => ConstValue::Bool(true),
        "False" => ConstValue::Bool(false),
        _ => {
            if let Ok(v) = text.parse() {
                ConstValue::Int(v)
            } else if let Ok(v) = text.parse() {
                ConstValue::Float(v)
            } else {
                ConstValue::Str(text.trim_matches(['"', '\'']).into())
            }
        }
    }
}

/// Prints a module, parses the text and compares.
pub fn round_trip(module: &IRModule) -> Result<(), String> {
    round_trip_of(module, &print(module))
}

fn round_trip_of(module: &IRModule, text: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let failed = |what: String| match std::env::var_os("TIRX_SHOW") {
        Some(_) => format!("{what}\n--- in:\n{text}"),
        None => what,
    };
    let file = KernelFile::load(&mut sources, "printed.py", text, &files::Imported::Filetests)
        .map_err(|e| failed(e.render(&sources)))?;
    let back = file
        .build(None, &Defines::new())
        .map_err(|e| failed(e.render(&sources)))?;
    structural_equal(module, &back).map_err(|m| failed(m.to_string()))?;
    let again = print(&back);
    if again != text {
        let line = text.lines().zip(again.lines()).find(|(a, b)| a != b);
        return Err(failed(format!("printed again it differs: {line:?}")));
    }
    Ok(())
}

/// Round trips of what the stages of a lowering leave; of a module that a pass left as it was, there is one.
#[derive(Default)]
pub struct RoundTrips {
    last: Option<(String, IRModule)>,
}

impl RoundTrips {
    /// [`round_trip`] of the next stage.
    ///
    /// # Errors
    /// Those of [`round_trip`].
    pub fn check(&mut self, module: &IRModule) -> Result<(), String> {
        let text = print(module);
        // An equal text parses to a module that equals the last one, and the last one equals this one.
        if let Some((last, of)) = &self.last
            && *last == text
            && structural_equal(of, module).is_ok()
        {
            return Ok(());
        }
        round_trip_of(module, &text)?;
        self.last = Some((text, module.clone()));
        Ok(())
    }
}

/// Checks a module before lowering and after each pass; gives what each stage left.
pub fn stages(
    module: &IRModule,
    arch: &str,
    check: &mut (dyn FnMut(&str, &IRModule) -> Result<(), String> + Send),
) -> Result<IRModule, String> {
    let sources = module.sources.clone();
    verify(module).map_err(|e| e.render(&sources))?;
    check("parsing", module)?;
    let mut result = Ok(());
    let mut observe = |step: &Step<'_>| {
        if result.is_ok() {
            result = check(step.pass, step.module).map_err(|e| format!("after {}: {e}", step.pass));
        }
    };
    let mut lowering = Lowering::new(Target::named(arch).expect("a known GPU"));
    lowering.verify = true;
    lowering.options.finalize_host = true;
    lowering.observer = Some(&mut observe);
    let lowered = lower(module.clone(), &mut lowering).map_err(|e| e.render(&sources));
    result?;
    lowered
}
