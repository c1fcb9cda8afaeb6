//! Running nvcc: one fat binary a kernel, several kernels at once, none compiled twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::target::Targets;
use crate::toolchain::Nvcc;

/// What every kernel is compiled with.
const FLAGS: [&str; 3] = ["-std=c++17", "-O3", "--fatbin"];

/// A kernel's CUDA text that is to become a fat binary.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The name of its files in the output folder, without extension: `add-n256`.
    pub(crate) file: String,
    /// What messages call it: "kernel `add::n256`".
    pub(crate) what: String,
    /// Where its source is, as `file:line`.
    pub(crate) place: String,
    /// The CUDA text.
    pub(crate) text: String,
    /// What to compile for.
    pub(crate) targets: Targets,
}

/// What one job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// nvcc ran.
    Compiled,
    /// The fat binary of an earlier build still holds.
    Cached,
}

/// Hexadecimal SHA-256 over parts, each with its length, so that no two lists of parts run together.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What a fat binary depends on.
fn key(job: &Job, nvcc: &Nvcc) -> String {
    let mut parts: Vec<Vec<u8>> = vec![
        job.text.clone().into_bytes(),
        nvcc.version.to_string().into_bytes(),
        nvcc.build.clone().into_bytes(),
    ];
    parts.extend(FLAGS.iter().map(|flag| flag.as_bytes().to_vec()));
    parts.extend(job.targets.gencode().into_iter().map(String::into_bytes));
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    digest(&parts)
}

/// Compiles every job into `folder`, `parallel` at a time: `<file>.cu` becomes `<file>.fatbin`. All failures are
/// reported together.
pub(crate) fn compile_all(
    nvcc: &Nvcc,
    folder: &Path,
    jobs: &[Job],
    parallel: usize,
) -> Result<Vec<Outcome>, Error> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Outcome, Error>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let index = jobs
                .iter()
                .position(|other| std::ptr::eq(other, job))
                .unwrap_or_default();
            let result = compile(nvcc, folder, job);
            if let Ok(mut results) = results.lock() {
                results[index] = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
    });
    let results = results
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut outcomes = Vec::new();
    let mut errors = Vec::new();
    for result in results.into_iter().flatten() {
        match result {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => errors.push(error),
        }
    }
    Error::all(errors)?;
    Ok(outcomes)
}

fn compile(nvcc: &Nvcc, folder: &Path, job: &Job) -> Result<Outcome, Error> {
    let path = |extension: &str| folder.join(format!("{}.{extension}", job.file));
    let (source, fatbin, key_file) = (path("cu"), path("fatbin"), path("key"));
    let key = key(job, nvcc);
    write_if_changed(&source, job.text.as_bytes())?;
    if fatbin.is_file() && fs::read_to_string(&key_file).is_ok_and(|old| old == key) {
        return Ok(Outcome::Cached);
    }
    // The key goes first: a fat binary half written has none.
    remove(&key_file)?;
    let output = Command::new(&nvcc.path)
        // Relative names: the fat binary does not say where it was made.
        .current_dir(folder)
        .args(FLAGS)
        .args(job.targets.gencode())
        .arg("-o")
        .arg(format!("{}.fatbin", job.file))
        .arg(format!("{}.cu", job.file))
        .output()
        .map_err(|error| Error::io("run", &nvcc.path, &error))?;
    if !output.status.success() || !fatbin.is_file() {
        let text = [output.stderr, output.stdout].concat();
        return Err(failure(
            nvcc,
            job,
            &String::from_utf8_lossy(&text),
            &output.status.to_string(),
        ));
    }
    fs::write(&key_file, key).map_err(|error| Error::io("write", &key_file, &error))?;
    Ok(Outcome::Compiled)
}

/// nvcc's words under the kernel's name.
fn failure(nvcc: &Nvcc, job: &Job, output: &str, status: &str) -> Error {
    let lines: Vec<&str> = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let mut text = format!(
        "nvcc {} failed on {}\n  --> {}\n",
        nvcc.version, job.what, job.place
    );
    // The whole of it can be thousands of lines; the first errors say what is wrong.
    const SHOWN: usize = 30;
    for line in lines.iter().take(SHOWN) {
        text.push_str(&format!("   | {line}\n"));
    }
    if lines.is_empty() {
        text.push_str(&format!("   | {status}, without a message\n"));
    } else if lines.len() > SHOWN {
        text.push_str(&format!("   | … {} more lines\n", lines.len() - SHOWN));
    }
    let error = Error::new(text.trim_end());
    let error = error.note(format_args!(
        "the generated text is tirx/{}.cu in the build's OUT_DIR",
        job.file
    ));
    // nvcc preprocesses with the host's C++ compiler.
    if output.contains("cc1plus") || output.contains("host compiler") || output.contains("gcc: not found") {
        error.help("nvcc needs a C++ compiler (g++) on PATH")
    } else {
        error
    }
}

/// Writes a file unless it has that content already, so that its time says when it changed.
pub(crate) fn write_if_changed(path: &Path, content: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::write(path, content).map_err(|error| Error::io("write", path, &error))
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, &error)),
        _ => Ok(()),
    }
}

/// Deletes files of earlier builds that this one has no use for: not in `keep`.
pub(crate) fn sweep(folder: &Path, keep: &[String]) -> Result<(), Error> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io("read", folder, &error))?;
    let mut stale: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            path.is_file() && !keep.contains(&name)
        })
        .collect();
    stale.sort();
    stale.iter().try_for_each(|path| remove(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_tell_lists_of_parts_apart() {
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"a"]).len(), 64);
    }
}
