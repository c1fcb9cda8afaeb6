//! `cargo xtask oracle`: compares our output for every kernel with Apache TVM's.
//!
//! Sets up a Python environment with the pinned TVM and the CUDA tools under `target/`, lowers the kernels of
//! `kernels.toml` and of the filetests with both compilers, and compares the IR after each pass and the machine code
//! that one nvcc makes of both CUDA texts. Fails where a pass differs in a way that is not [`intended`], or where our
//! machine code is longer.
//!
//! `cargo xtask oracle [ir] [sass] [--tvm 0.27] [ARCH...] [FILE.py...] [NAME...]`: one of the two halves, the other release of TVM,
//! architectures other than sm_90a and sm_100a, more kernel files, and only the kernels whose name holds a word.
//!
//! `cargo xtask oracle layouts` and `cargo xtask oracle tiles` compare random layouts and random tile primitives, `cargo xtask oracle
//! mnemonics` the instructions behind `T.ptx` in 0.27.

mod explained;
mod intended;
mod kernels;
mod layouts;
mod machine_code;
mod mnemonics;
mod stages;
mod tiles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tirx_core::script::Release;

use self::intended::Counts;
use self::kernels::Kernel;
use self::stages::Outcome;
use crate::process::{Result, run};

/// What the environment of a release of TVM has. The CUDA tools for both are those beside 0.26.
fn packages(release: Release) -> &'static [&'static str] {
    match release {
        Release::V26 => &[
            "apache-tvm==0.26.0",
            "numpy",
            "nvidia-cuda-nvcc==13.0.*",
            "nvidia-cuda-runtime==13.0.*",
            "nvidia-cuda-crt==13.0.*",
            "nvidia-nvvm==13.0.*",
            "nvidia-cuda-cccl==13.0.*",
            "nvidia-cuda-cuobjdump",
            "nvidia-cuda-nvdisasm",
        ],
        Release::V27 => &["apache-tvm==0.27.0.post1", "numpy"],
    }
}

/// The Python with TVM 0.26 and the CUDA tools.
pub(crate) fn python() -> Result<PathBuf> {
    python_of(Release::V26)
}

/// The Python with a release of TVM: `TIRX_TVM_PYTHON` (0.26) or `TIRX_TVM_27_PYTHON`, else an environment under `target/`
/// that is made on first use.
fn python_of(release: Release) -> Result<PathBuf> {
    let (variable, folder) = match release {
        Release::V26 => ("TIRX_TVM_PYTHON", "target/oracle"),
        Release::V27 => ("TIRX_TVM_27_PYTHON", "target/oracle-27"),
    };
    if let Some(python) = std::env::var_os(variable) {
        return Ok(python.into());
    }
    let venv = crate::root().join(folder);
    let python = venv.join("bin/python");
    if !venv.join("complete").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(packages(release)))?;
        std::fs::write(venv.join("complete"), "")?;
    }
    Ok(python)
}

/// The Python with the release of TVM that `--tvm` names; without it 0.26.
fn python_asked_for(args: &[String]) -> Result<PathBuf> {
    let Some(at) = args.iter().position(|arg| arg == "--tvm") else {
        return python();
    };
    let named = args.get(at + 1).and_then(|name| Release::named(name));
    python_of(named.ok_or("--tvm needs 0.26 or 0.27")?)
}

/// The command line's options.
struct Wanted {
    release: Release,
    archs: Vec<String>,
    files: Vec<PathBuf>,
    names: Vec<String>,
    ir: bool,
    machine_code: bool,
}

impl Wanted {
    fn read(args: &[String]) -> Result<Wanted> {
        let mut wanted = Wanted {
            release: Release::V26,
            archs: Vec::new(),
            files: Vec::new(),
            names: Vec::new(),
            ir: false,
            machine_code: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--tvm" => {
                    let named = args.next().and_then(|name| Release::named(name));
                    wanted.release = named.ok_or("--tvm needs 0.26 or 0.27")?;
                }
                "ir" => wanted.ir = true,
                "sass" => wanted.machine_code = true,
                arch if arch.starts_with("sm_") => wanted.archs.push(arch.into()),
                file if file.ends_with(".py") => wanted.files.push(file.into()),
                name => wanted.names.push(name.into()),
            }
        }
        if wanted.archs.is_empty() {
            wanted.archs = vec!["sm_90a".into(), "sm_100a".into()];
        }
        if !wanted.ir && !wanted.machine_code {
            (wanted.ir, wanted.machine_code) = (true, true);
        }
        Ok(wanted)
    }

    fn kernels(&self, root: &Path) -> Result<Vec<Kernel>> {
        let mut kernels = Vec::new();
        if self.files.is_empty() {
            kernels.extend(kernels::examples(root, self.release)?);
            kernels.extend(kernels::filetests(root, self.release)?);
        }
        for file in &self.files {
            kernels.extend(kernels::of_file(root, file, self.release)?);
        }
        kernels.retain(|k| self.names.is_empty() || self.names.iter().any(|n| k.id.contains(n.as_str())));
        Ok(kernels)
    }
}

/// Compares, prints the tables and fails where our result is worse than the reference's.
pub(crate) fn compare(root: &Path, args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((word, rest)) if word == "layouts" => return layouts::compare(root, rest),
        Some((word, rest)) if word == "tiles" => return tiles::compare(root, rest),
        Some((word, [])) if word == "mnemonics" => return mnemonics::compare(root),
        _ => {}
    }
    let wanted = Wanted::read(args)?;
    let tvm = python_of(wanted.release)?;
    let kernels = wanted.kernels(root)?;
    let out = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let (out, cache) = (out.join("oracle-stages"), out.join("oracle-code"));
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    // One process for everything: importing TVM takes longer than a kernel.
    let mut jobs = Vec::new();
    for (at, arch) in wanted.archs.iter().enumerate() {
        for kernel in &kernels {
            let id = format!("{arch}/{}", kernel.id);
            jobs.push(kernel.job(root, &id, arch, wanted.ir && at == 0));
        }
    }
    let list = out.join("jobs.json");
    std::fs::write(&list, format!("[\n{}\n]\n", jobs.join(",\n")))?;
    run(Command::new(&tvm)
        .arg(root.join("xtask/python/tvm_stages.py"))
        .args([&list, &out])
        .env("TIRX_KERNEL_FOLDERS", kernels::import_path(root)?))?;

    let mut failures = Vec::new();
    if wanted.ir
        && let Some(arch) = wanted.archs.first()
    {
        failures.extend(compare_stages(root, &kernels, &out.join(arch), arch));
    }
    if wanted.machine_code {
        let python = python()?;
        for arch in &wanted.archs {
            failures.extend(machine_code::compare(
                root,
                &python,
                &kernels,
                &out.join(arch),
                &cache,
                arch,
            )?);
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(format!("{} failures:\n{}", failures.len(), failures.join("\n")).into())
    }
}

/// The tables of the IR: kernels by pass, what was intended, and what was not.
fn compare_stages(root: &Path, kernels: &[Kernel], out: &Path, arch: &str) -> Vec<String> {
    /// A pass over all kernels: equal, of these with intended differences, and different; in the pipeline and alone.
    #[derive(Default)]
    struct Row {
        order: usize,
        pipeline: [usize; 5],
        alone: [usize; 5],
    }
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut intended_counts: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    let (mut failures, mut refused, mut explained) = (Vec::new(), Vec::new(), Vec::new());
    let mut table = Vec::new();
    let mut explained_kernel = String::new();
    for kernel in kernels {
        let folder = out.join(&kernel.id);
        let module = kernel.build(root);
        let error = std::fs::read_to_string(folder.join("error.txt")).ok();
        let staged = folder.join("00-BindTarget.py").exists();
        let compared = match (&module, staged) {
            (Ok(module), true) => stages::compare(module, &folder, arch),
            (Err(e), true) => Err(e.clone()),
            (_, false) => {
                refused.push(format!("{}: {}", kernel.id, error.unwrap_or_default()));
                continue;
            }
        };
        let compared = match compared {
            Ok(compared) => compared,
            // TVM checks less.
            Err(error) if machine_code::is_of_another_gpu(&error) => {
                refused.push(format!(
                    "{}: by us: {}",
                    kernel.id,
                    error.lines().next().unwrap_or_default()
                ));
                continue;
            }
            Err(error) => {
                failures.push(format!("{}: refused by us: {error}", kernel.id));
                continue;
            }
        };
        let mut found = Counts::default();
        let mut different = Vec::new();
        for (order, pass) in compared.iter().enumerate() {
            let row = rows.entry(pass.pass.clone()).or_default();
            row.order = order;
            for (outcome, counts, how) in [
                (Some(&pass.pipeline), &mut row.pipeline, "pipeline"),
                (pass.alone.as_ref(), &mut row.alone, "alone"),
            ] {
                match outcome {
                    Some(Outcome::Equal(intended) | Outcome::Explained(intended, _)) => {
                        let part = matches!(outcome, Some(Outcome::Explained(..)));
                        // The first difference of a kernel explains the later ones.
                        let first = explained_kernel != kernel.id;
                        if let Some(Outcome::Explained(_, what)) = outcome
                            && first
                        {
                            explained_kernel.clone_from(&kernel.id);
                            let line = what.lines().next().unwrap_or_default();
                            explained.push(format!("{}: after {} ({how}): {line}", kernel.id, pass.pass));
                        }
                        counts[if part { 2 } else { 0 }] += 1;
                        counts[1] += usize::from(!part && !intended.is_empty());
                        for (what, count) in intended {
                            let most = found.entry(what).or_default();
                            *most = (*most).max(*count);
                        }
                    }
                    Some(Outcome::Follows) => counts[3] += 1,
                    Some(Outcome::Differs(what)) => {
                        counts[4] += 1;
                        different.push(format!("{} ({how})", pass.pass));
                        let what = what.lines().collect::<Vec<_>>().join("\\n");
                        failures.push(format!("{}: after {} ({how}): {what}", kernel.id, pass.pass));
                    }
                    None => {}
                }
            }
        }
        for (what, count) in &found {
            let total = intended_counts.entry(what).or_default();
            total.0 += count;
            total.1 += 1;
        }
        let intended: Vec<&str> = found.keys().copied().collect();
        table.push(format!(
            "| {} | {} of {} | {} | {} |",
            kernel.id,
            compared
                .iter()
                .filter(|c| !matches!(c.pipeline, Outcome::Differs(_)))
                .count(),
            compared.len(),
            different.join(", "),
            intended.join(", ")
        ));
    }
    println!(
        "| kernel | passes equal or as intended | passes that differ | intended differences |\n|---|---|---|---|"
    );
    table.iter().for_each(|row| println!("{row}"));
    println!(
        "\n| pass | equal | intended | explained | follows | different \
         | alone: equal | intended | explained | follows | different |\n{}|",
        "|---".repeat(11)
    );
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| row.order);
    for (pass, row) in rows {
        let cell = |c: [usize; 5]| c.map(|n| n.to_string()).join(" | ");
        println!("| {pass} | {} | {} |", cell(row.pipeline), cell(row.alone));
    }
    println!("\n| intended difference | times | kernels |\n|---|---|---|");
    for (what, (times, kernels)) in intended_counts {
        println!("| {what} | {times} | {kernels} |");
    }
    println!("\nExplained, the first of each kernel:\n{}", explained.join("\n"));
    if !refused.is_empty() {
        println!(
            "\nRefused by the reference, or by us for another GPU, so not compared:\n{}",
            refused.join("\n")
        );
    }
    println!();
    failures
}
