//! Runs the files of `kernels/`; see the crate's page for what their first lines mean.

use std::path::Path;
use std::process::Command;

use tirx_core::codegen::cuda;
use tirx_core::ir::IRModule;
use tirx_core::script::print;
use tirx_tests::machine::Simulator;
use tirx_tests::{Case, Test, messages, round_trip, simulate, stages};

fn run(case: &Case) -> Result<(), String> {
    if case.tests.contains(&Test::Messages) {
        return case.expect(
            "messages.txt",
            &messages(&format!("{}.py", case.name()), &case.text)?,
        );
    }
    let modules = match case.build() {
        Ok(modules) => modules,
        Err(message) => return expect_error(case, &message),
    };
    let mut printed = String::new();
    for (entry, module) in &modules {
        printed.push_str(&print(module));
        round_trip(module).map_err(|e| format!("{entry}: {e}"))?;
    }
    for test in &case.tests {
        match test {
            Test::Messages => {}
            Test::Parse => case.expect("parse.txt", &printed)?,
            Test::Lower(pass) => case.expect(&format!("{pass}.txt"), &after(&modules, pass)?)?,
            Test::Sim => {
                let runs = simulate::read(&case.companion("sim.txt")?)?;
                for run in &runs {
                    let named = modules.iter().find(|(entry, _)| *entry == run.kernel);
                    let (entry, module) = named.ok_or(format!("there is no kernel {}", run.kernel))?;
                    let lowered = stages(module, "sm_90a", &mut |_, _| Ok(()))?;
                    run.check(&mut Simulator::default(), &lowered)
                        .map_err(|e| format!("{entry}: {e}"))?;
                }
                if let Some((entry, _)) = modules.iter().find(|(e, _)| !runs.iter().any(|r| r.kernel == *e)) {
                    return Err(format!("{entry} is not run"));
                }
            }
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
    for (entry, module) in modules.iter().filter(|_| case.lowered) {
        let checked = stages(module, "sm_90a", &mut |_, m| round_trip(m));
        if let Err(message) = checked {
            return expect_error(case, &format!("{entry}: {message}"));
        }
    }
    if case.errors.is_empty() {
        Ok(())
    } else {
        Err("no error, but one is expected".into())
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
fn after(modules: &[(String, IRModule)], pass: &str) -> Result<String, String> {
    let mut text = String::new();
    for (entry, module) in modules {
        let mut found = false;
        stages(module, "sm_90a", &mut |name, module| {
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

#[test]
fn kernel_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let only = std::env::var("TIRX_FILTER").unwrap_or_default();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .filter(|path| path.to_string_lossy().contains(&only))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no kernel file");
    let mut failures = Vec::new();
    for file in &files {
        if let Err(message) = Case::read(file).and_then(|case| run(&case)) {
            failures.push(format!("== {}\n{message}", file.display()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} files:\n{}",
        failures.len(),
        files.len(),
        failures.join("\n\n")
    );
}
