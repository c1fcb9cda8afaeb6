//! `playground FILE`: the runs of all filetests with `# sim:` lines, natively, for the playground's tests: lines of JSON for each
//! filetest, with the question and the answer. `playground/web/test/same.mjs` asks the WebAssembly module the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use rayon::prelude::*;
use serde_json::json;
use tirx_core::judge::USUAL_GPUS;
use tirx_playground::Session;
use tirx_playground::session::{Report, Runs, Source};
use tirx_tests::Case;
use tirx_tests::files::filetests;

/// The file's questions and answers; `None` for one without `# sim:` lines.
fn line(path: &std::path::Path) -> Result<Option<String>, String> {
    let case = Case::read(path)?;
    if !case.text.contains("# sim:") {
        return Ok(None);
    }
    let source = Source {
        name: format!("{}.py", case.name()),
        text: with_defines(&case.text),
        files: beside(path)?,
        ..Source::default()
    };
    let on = |arch: &str, kernel: Option<&str>| -> (String, Report) {
        let source = Source {
            arch: arch.to_string(),
            ..source.clone()
        };
        let runs = Runs {
            elements: 8,
            kernel: kernel.map(str::to_string),
            ..Runs::default()
        };
        let report = Session::new().simulate(&source, &runs);
        let line = json!({ "source": source, "runs": runs, "report": report });
        (format!("{line}\n"), report)
    };
    let (mut lines, report) = on(&case.arch, None);
    // Kernels that need another GPU run as one that has their instructions: first as that of the kernel before, which most of a file share.
    let refused = report.runs.iter().filter(|run| !run.errors.is_empty());
    let refused: BTreeSet<&str> = refused.map(|run| run.kernel.as_str()).collect();
    let mut architectures: Vec<String> = USUAL_GPUS
        .iter()
        .map(ToString::to_string)
        .filter(|arch| *arch != case.arch)
        .collect();
    for kernel in refused {
        let found = architectures.iter().enumerate().find_map(|(at, arch)| {
            let (line, other) = on(arch, Some(kernel));
            other
                .runs
                .iter()
                .all(|run| run.errors.is_empty())
                .then_some((at, line))
        });
        if let Some((at, line)) = found {
            lines.push_str(&line);
            architectures[..=at].rotate_right(1);
        }
    }
    Ok(Some(lines))
}

/// The text with the values of its `-D` lines in its `# sim:` lines: the playground knows these only.
fn with_defines(text: &str) -> String {
    let defines = text.lines().filter_map(|line| line.strip_prefix("# -D"));
    let defines: Vec<&str> = defines.map(str::trim).collect();
    if defines.is_empty() {
        return text.to_string();
    }
    let line = |line: &str| match line.starts_with("# sim:") && !line.contains('(') {
        true => format!("{line}({})\n", defines.join(", ")),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The files that a filetest may import: those whose names begin with `_`.
fn beside(path: &std::path::Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    let folder = path.parent().unwrap_or(path);
    for entry in std::fs::read_dir(folder)
        .map_err(|error| error.to_string())?
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('_') && name.ends_with(".py") {
            let text = std::fs::read_to_string(entry.path()).map_err(|error| error.to_string())?;
            files.insert(name, text);
        }
    }
    Ok(files)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::env::args().nth(1).ok_or("usage: playground FILE")?;
    let lines: Vec<String> = filetests()?
        .par_iter()
        .filter_map(|path| line(path).transpose())
        .collect::<Result<_, String>>()?;
    let mut file = std::fs::File::create(&out)?;
    for line in &lines {
        file.write_all(line.as_bytes())?;
    }
    println!("{} filetests run natively", lines.len());
    Ok(())
}
