//! The timelines of the gallery's pages show the runs of their kernels.
//!
//! A picture `NAME.KERNEL.svg` of a page in `docs/book/src/gallery` is the timeline of the first run of KERNEL that the next code block
//! describes, for the first block of the grid. `UPDATE_EXPECT=1` writes the pictures.
//!
//! The gallery has every kernel of the example application and of `tirx-kernels`, with a run.

use std::fs;
use std::path::{Path, PathBuf};

use tirx_services::timeline;
use tirx_sim::LaunchOptions;
use tirx_tests::machine::Simulator;
use tirx_tests::pages::{Block, case, read};
use tirx_tests::{build_with, root, stages};

/// The file and the kernel of a line `![…](NAME.KERNEL.svg)`.
fn picture(line: &str) -> Option<(&str, &str)> {
    let (_, file) = line.trim().strip_prefix("![")?.split_once("](")?;
    let file = file.strip_suffix(')').filter(|file| !file.contains('/'))?;
    let (_, kernel) = file.strip_suffix(".svg")?.rsplit_once('.')?;
    Some((file, kernel))
}

/// The timeline of the first run of a kernel of a code block.
fn drawn(block: &Block, kernel: &str, folder: &Path) -> Result<String, String> {
    let case = case(block, folder)?;
    let run = case.runs()?.iter().find(|run| run.kernel == kernel);
    let run = run.ok_or_else(|| format!("the block has no run of {kernel}"))?;
    let name = format!("{}.py", case.name());
    let modules = build_with(&case.imports, &name, &case.text, &[kernel], &run.values)?;
    let (_, module) = &modules[0];
    let run = case.bound(run, module)?;
    let arch = run.archs(&case.arch).next().unwrap_or(&case.arch);
    let lowered = stages(module, arch, &mut |_, _| Ok(()))?;
    let simulator = |seed| {
        Simulator::with_options(LaunchOptions {
            seed,
            timeline: Some(0),
            ..LaunchOptions::default()
        })
    };
    let outcome = run.outcome_by(&lowered, Some(0), 1, &simulator);
    outcome.verdict?;
    let events: Vec<_> = outcome
        .machine
        .launches()
        .iter()
        .flat_map(|launch| launch.timeline.clone())
        .collect();
    Ok(timeline::svg(&events))
}

#[test]
fn the_timelines_of_the_gallery_are_those_of_its_runs() {
    let pages = root().join("docs/book/src/gallery");
    let folder = tempfile::tempdir().unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in tirx_tests::pages::book() {
        if page.parent() != Some(pages.as_path()) {
            continue;
        }
        let blocks = read(&page).unwrap();
        let text = fs::read_to_string(&page).unwrap();
        for (at, line) in text.lines().enumerate() {
            let Some((file, kernel)) = picture(line) else {
                continue;
            };
            count += 1;
            let next = blocks.iter().find(|block| block.line > at + 1);
            let next = next.unwrap_or_else(|| panic!("{file}: no code block follows"));
            let made = match drawn(next, kernel, folder.path()) {
                Ok(made) => made,
                Err(message) => {
                    wrong.push(format!("{file}: {message}"));
                    continue;
                }
            };
            let committed = pages.join(file);
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                fs::write(&committed, &made).unwrap();
            }
            if fs::read_to_string(&committed).unwrap_or_default() != made {
                wrong.push(format!("{file} is old: UPDATE_EXPECT=1 makes it anew"));
            }
        }
    }
    assert!(count > 10, "the pictures were not found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Kernels without a run, and the reason.
const WITHOUT_RUN: [(&str, &str); 2] = [
    ("relu", "the simulator does not run CUDA C++"),
    ("scale_profiled", "it writes times"),
];

/// The Python files of a folder and of those in it.
fn kernel_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(kernel_files(&path)),
            false if path.extension().is_some_and(|end| end == "py") => found.push(path),
            false => {}
        }
    }
    found
}

/// The kernels that a file defines.
fn kernels(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines
        .windows(2)
        .filter(|pair| ["@T.jit", "@T.prim_func"].contains(&pair[0]));
    pairs
        .filter_map(|pair| pair[1].strip_prefix("def ")?.split('(').next())
        .collect()
}

#[test]
fn the_gallery_has_a_run_of_every_kernel() {
    let pages = tirx_tests::pages::book().into_iter();
    let pages = pages.filter(|page| page.parent().is_some_and(|folder| folder.ends_with("gallery")));
    let blocks: Vec<Block> = pages.flat_map(|page| read(&page).unwrap()).collect();
    let (mut missing, mut count) = (Vec::new(), 0);
    for folder in ["kernels", "tirx-kernels/kernels"] {
        for file in kernel_files(&root().join(folder)) {
            let text = fs::read_to_string(&file).unwrap();
            let shown: Vec<&Block> = blocks.iter().filter(|block| block.text.contains(&text)).collect();
            for kernel in kernels(&text) {
                count += 1;
                let run = |block: &&Block| {
                    let mut runs = block.text.lines().filter_map(|line| line.strip_prefix("# sim: "));
                    runs.any(|run| run.split('(').next() == Some(kernel))
                };
                let excused = WITHOUT_RUN.iter().any(|(name, _)| *name == kernel);
                if shown.is_empty() || !excused && !shown.iter().any(run) {
                    missing.push(format!("{}: {kernel}", file.display()));
                }
            }
        }
    }
    assert!(count > 50, "the kernels were not found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
