//! Runs the files of `kernels/`; their directives are documented at the top of `tests/src/lib.rs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use tirx_core::codegen::cuda;
use tirx_core::ir::IRModule;
use tirx_core::script::print;
use tirx_tests::files::filetests;
use tirx_tests::{Case, Test, messages, round_trip, stages};

/// The trials of a file: one per kernel, one for the comparison with texts. A file whose kernels cannot be built is one
/// trial, which reports or expects the error.
fn trials(path: &Path) -> Vec<Trial> {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let whole =
        |case: Result<Case, String>| Trial::test(stem.clone(), move || Ok(whole(&case?)?)).with_kind("file");
    let case = match Case::read(path) {
        Ok(case) if case.errors.is_empty() && !case.tests.contains(&Test::Messages) => case,
        case => return vec![whole(case)],
    };
    let Ok(kernels) = case.entries() else {
        return vec![whole(Ok(case))];
    };
    let case = Arc::new(case);
    let mut trials: Vec<Trial> = kernels
        .into_iter()
        .map(|kernel| {
            let case = case.clone();
            let name = format!("{stem}::{kernel}");
            Trial::test(name, move || Ok(one_kernel(&case, &kernel)?)).with_kind("kernel")
        })
        .collect();
    trials.push(Trial::test(stem, move || Ok(texts(&case)?)).with_kind("texts"));
    trials
}

/// One kernel: verified, printed and parsed back after every pass; run where the file says what it leaves.
fn one_kernel(case: &Case, kernel: &str) -> Result<(), String> {
    let module = case.build_one(kernel)?;
    round_trip(&module)?;
    if case.lowered {
        stages(&module, &case.arch, &mut |_, m| round_trip(m))?;
    }
    let runs = case.runs()?;
    let mut runs = runs.iter().filter(|run| run.kernel == kernel).peekable();
    if runs.peek().is_none() {
        return match case.tests.contains(&Test::Sim) {
            true => Err("it is not run".into()),
            false => Ok(()),
        };
    }
    let mut lowered = BTreeMap::new();
    for run in runs {
        for arch in run.archs(&case.arch) {
            if !lowered.contains_key(arch) {
                lowered.insert(arch, stages(&module, arch, &mut |_, _| Ok(()))?);
            }
            run.simulate(&lowered[arch])
                .map_err(|error| format!("{arch}: {error}"))?;
        }
    }
    Ok(())
}

/// The texts of a file against what is expected.
fn texts(case: &Case) -> Result<(), String> {
    let modules = case.build()?;
    for run in case.runs()? {
        if !modules.iter().any(|(entry, _)| *entry == run.kernel) {
            return Err(format!("there is no kernel {}", run.kernel));
        }
    }
    for test in &case.tests {
        match test {
            Test::Messages | Test::Sim => {}
            Test::Parse => {
                let printed: String = modules.iter().map(|(_, module)| print(module)).collect();
                case.expect("parse.txt", &printed)?;
            }
            Test::Lower(pass) => case.expect(&format!("{pass}.txt"), &after(&modules, pass, &case.arch)?)?,
            Test::Compile(arch) => {
                for (entry, module) in &modules {
                    let lowered = stages(module, arch, &mut |_, _| Ok(()))?;
                    let source = cuda::emit(&lowered).map_err(|e| format!("{entry}: {e}"))?;
                    compile(&source.text, arch)?;
                }
            }
            Test::Cuda(arch) => {
                let mut text = String::new();
                for (entry, module) in &modules {
                    let lowered = stages(module, arch, &mut |_, _| Ok(()))?;
                    let source = cuda::emit(&lowered).map_err(|e| format!("{entry}: {e}"))?;
                    compile(&source.text, arch)?;
                    text.push_str(&source.text);
                }
                case.expect(&format!("{arch}.cu"), &text)?;
            }
        }
    }
    Ok(())
}

/// A file whose kernels are wrong.
fn whole(case: &Case) -> Result<(), String> {
    if case.tests.contains(&Test::Messages) {
        return case.expect(
            "messages.txt",
            &messages(&format!("{}.py", case.name()), &case.text, &case.arch)?,
        );
    }
    let modules = match case.build() {
        Ok(modules) => modules,
        Err(message) => return expect_error(case, &message),
    };
    texts(case)?;
    for (entry, module) in &modules {
        round_trip(module).map_err(|e| format!("{entry}: {e}"))?;
        if case.lowered {
            let checked = stages(module, &case.arch, &mut |_, m| round_trip(m));
            if let Err(message) = checked {
                return expect_error(case, &format!("{entry}: {message}"));
            }
        }
    }
    match case.errors.is_empty() {
        true => Ok(()),
        false => Err("no error, but one is expected".into()),
    }
}

fn expect_error(case: &Case, message: &str) -> Result<(), String> {
    if case.errors.is_empty() {
        return Err(message.into());
    }
    match case.errors.iter().find(|e| !message.contains(*e)) {
        None => Ok(()),
        Some(missing) => Err(format!("the message does not say {missing:?}:\n{message}")),
    }
}

/// The printed modules after a pass.
fn after(modules: &[(String, IRModule)], pass: &str, arch: &str) -> Result<String, String> {
    let mut text = String::new();
    for (entry, module) in modules {
        let mut found = false;
        stages(module, arch, &mut |name, module| {
            if name == pass {
                found = true;
                text.push_str(&print(module));
            }
            Ok(())
        })?;
        if !found {
            return Err(format!("{entry}: there is no pass {pass}"));
        }
    }
    Ok(text)
}

/// Compiles CUDA text where an nvcc is named.
fn compile(text: &str, arch: &str) -> Result<(), String> {
    let Some(nvcc) = tirx_tests::nvcc() else {
        return Ok(());
    };
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let source = dir.path().join("kernel.cu");
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let output = Command::new(nvcc)
        .args(["-std=c++17", "-O3", "-cubin", "-arch", arch, "-o"])
        .arg(dir.path().join("kernel.cubin"))
        .arg(&source)
        .output()
        .map_err(|e| e.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn main() -> ExitCode {
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut files = match filetests() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tests/kernels: {error}");
            return ExitCode::FAILURE;
        }
    };
    files.retain(|path| path.to_string_lossy().contains(&only));
    if files.is_empty() {
        eprintln!("no kernel file in tests/kernels has {only:?} in its path");
        return ExitCode::FAILURE;
    }
    let trials = files.iter().flat_map(|file| trials(file)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
