//! `cargo tirx new`: a crate with a kernel that runs.

mod workspace;

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Result, usage, user};
use crate::output::{Output, say};

#[derive(clap::Args, Debug)]
pub(crate) struct New {
    /// The folder to create; its last part becomes the crate's name.
    path: PathBuf,
    /// The tirx checkout to depend on. Without it, an installed command depends on published versions, and a command
    /// that runs from its checkout depends on that checkout.
    #[arg(long, value_name = "PATH")]
    tirx: Option<PathBuf>,
}

/// The files of a new crate, `Cargo.toml` aside.
const FILES: &[(&str, &str)] = &[
    ("build.rs", include_str!("../template/build.rs.txt")),
    ("kernels.toml", include_str!("../template/kernels.toml")),
    ("kernels/vector.py", include_str!("../template/vector.py")),
    ("src/main.rs", include_str!("../template/main.rs.txt")),
    (".gitignore", "/target\n"),
];

/// Names that Cargo refuses for a program: Rust's keywords, folders that Cargo makes in `target`, and its test crate; and those of the
/// crates that the new one depends on.
const TAKEN: &str = "\
    _ abstract as async await become box break const continue crate do dyn else enum extern false final fn \
    for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct \
    super trait true try type typeof unsafe unsized use virtual where while yield build deps examples \
    incremental test tirx-build tirx-rt tirx_build tirx_rt";

pub(crate) fn run(command: &New, _: &Output) -> Result<()> {
    let folder = &command.path;
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(first)
        || !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    {
        let shown = if name.is_empty() {
            folder.display().to_string()
        } else {
            name.to_string()
        };
        return Err(usage(format_args!(
            "`{shown}` is no name for a crate\n  = help: letters, digits, `-` and `_`, beginning with a letter"
        )));
    }
    if TAKEN.split(' ').any(|taken| taken == name) {
        return Err(usage(format_args!(
            "`{name}` cannot be the name of a crate here: Rust, Cargo or a dependency has it\n  = help: use for example `{name}-kernels`"
        )));
    }
    if folder.exists() {
        return Err(user(format_args!("`{}` is there already", folder.display())));
    }
    let checkout = match &command.tirx {
        Some(path) => {
            Some(fs::canonicalize(path).map_err(|e| user(format_args!("`{}`: {e}", path.display())))?)
        }
        None => own_checkout(),
    };
    let workspace = workspace::around(folder)?;
    let source = |package: &str| match &checkout {
        Some(path) => format!("path = {:?}", path.join(package).to_string_lossy()),
        None => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
    };
    let run_time = format!(
        "{{ {}, default-features = false, features = [\"simulator\"] }}",
        source("tirx-rt")
    );
    let build = format!("{{ {}, default-features = false }}", source("tirx-build"));
    let template = include_str!("../template/Cargo.toml.txt");
    // A member's profiles are those of its workspace.
    let template = match &workspace {
        Some(_) => template.split("\n# Optimized").next().unwrap_or(template),
        None => template,
    };
    let manifest = template
        .replace("@name@", name)
        .replace("@tirx-rt@", &run_time)
        .replace("@tirx-build@", &build);
    // A member shares the folder `target` of its workspace.
    let files = FILES
        .iter()
        .filter(|(file, _)| workspace.is_none() || *file != ".gitignore");
    let all = files.map(|(file, text)| (*file, (*text).to_string()));
    for (file, text) in all.chain([("Cargo.toml", manifest)]) {
        let path = folder.join(file);
        let written =
            fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, text));
        written.map_err(|e| user(format_args!("cannot write `{}`: {e}", path.display())))?;
    }
    if let Some(workspace) = &workspace {
        workspace.join(folder)?;
    }
    say(&format!(
        "created `{name}`: `cd {}` and `cargo run`; the kernel is kernels/vector.py\n\
         book, reference and playground: {}\n",
        folder.display(),
        env!("CARGO_PKG_REPOSITORY")
    ));
    Ok(())
}

/// The checkout that this command was built in and runs from.
fn own_checkout() -> Option<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let real = |path: &Path| fs::canonicalize(path).ok();
    let runs_from_it = real(&std::env::current_exe().ok()?)?.starts_with(real(checkout)?);
    let is_there = checkout.join("tirx-rt/Cargo.toml").is_file();
    (runs_from_it && is_there).then(|| checkout.to_path_buf())
}
