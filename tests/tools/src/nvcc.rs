//! The nvcc of the tests: found in one way, asked about many kernels at a time, its answers kept.
//!
//! A test that needs nvcc fails if there is none. `TIRX_NVCC=none` asks for skipping: such tests are noted as skipped
//! ([`skip`]) and pass.
//!
//! Answers are kept in `nvcc-answers` of the target directory, under a hash of the text, the flags and the compiler: nvcc is asked again
//! only about what has changed. Refusals are not kept.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tirx_build::Environment;
use tirx_build::toolchain::{Discovered, Search, discover};

use crate::unit::{BATCH, unit};
use crate::{skip, target};

/// The nvcc that `TIRX_NVCC` names, else one of CUDA 13.0.
#[derive(Clone, Debug)]
pub struct Nvcc {
    /// The program.
    pub path: PathBuf,
    /// The identifier of its build, as `nvcc --version` prints it.
    build: String,
}

/// The reason for skipping a test that needs nvcc.
pub const UNWANTED: &str = "TIRX_NVCC is `none`";

/// The nvcc of the tests; `None` if `TIRX_NVCC` is `none`, and then the running test is noted as skipped.
///
/// # Panics
/// If there is none: a test that compiles nothing must not pass.
pub fn nvcc() -> Option<Nvcc> {
    let found = search();
    if found.is_none() {
        skip(UNWANTED);
    }
    found
}

/// The same, without a note for the list of skipped tests.
///
/// # Panics
/// As [`nvcc`].
pub fn search() -> Option<Nvcc> {
    static FOUND: OnceLock<Option<Nvcc>> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> Option<Nvcc> {
    let environment = Environment::process();
    // An nvcc that is named may be of a later release.
    let named = environment.get("TIRX_NVCC").is_some();
    let search = Search {
        environment: &environment,
        pin: "13.0".parse().ok().filter(|_| !named),
        needs: None,
        prefixes: None,
    };
    let why = match discover(&search) {
        Ok(Discovered::Found(nvcc)) => {
            return Some(Nvcc {
                path: nvcc.path,
                build: nvcc.build,
            });
        }
        Ok(Discovered::Refused) => return None,
        Ok(Discovered::Nothing) => "there is none".to_string(),
        Ok(Discovered::Unsuitable(error)) | Err(error) => error.to_string(),
    };
    panic!(
        "this test needs nvcc of CUDA 13.0 (`cargo tirx toolchain install`, or set TIRX_NVCC; `TIRX_NVCC=none` skips such tests): {why}"
    );
}

/// A text to compile.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The GPU.
    pub arch: &'a str,
    /// Flags of nvcc, besides those that every compilation has.
    pub flags: &'a [&'a str],
    /// CUDA C++.
    pub text: &'a str,
}

/// Optimization off: most texts are accepted or refused without.
pub const UNOPTIMIZED: &[&str] = &["-Xcicc", "-O0", "-Xptxas", "-O0"];

/// What nvcc made of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// What nvcc printed: warnings, and what `-Xptxas -v` asks for.
    pub printed: String,
}

impl Nvcc {
    /// Machine code, and what nvcc printed; nvcc's messages if it refuses the text.
    ///
    /// # Errors
    /// Those messages, or why nvcc could not be run.
    pub fn compile(&self, source: &Source<'_>) -> Result<Answer, String> {
        let kept = self.place(source);
        let cubin = kept.with_extension("cubin");
        // The printed text is written last.
        if let (Ok(printed), Ok(cubin)) = (
            std::fs::read_to_string(kept.with_extension("txt")),
            std::fs::read(&cubin),
        ) {
            return Ok(Answer { cubin, printed });
        }
        let answer = self.ask(source)?;
        keep(&cubin, &answer.cubin)?;
        keep(&kept.with_extension("txt"), answer.printed.as_bytes())?;
        Ok(answer)
    }

    /// Which of these texts nvcc refuses, by number, with its messages. It is asked about as many at a time as [`BATCH`], and about those
    /// of a refused batch one at a time.
    ///
    /// # Errors
    /// The message if nvcc could not be run.
    pub fn refused(
        &self,
        arch: &str,
        flags: &[&str],
        texts: &[(u64, &str)],
    ) -> Result<Vec<(u64, String)>, String> {
        let ask = |text: &str| self.ask(&Source { arch, flags, text });
        let place = |text: &str| {
            self.place(&Source { arch, flags, text })
                .with_extension("accepted")
        };
        let unknown: Vec<(u64, &str)> = texts
            .iter()
            .filter(|(_, text)| !place(text).is_file())
            .copied()
            .collect();
        let mut refused = Vec::new();
        for batch in unknown.chunks(BATCH) {
            let together = batch.len() > 1 && ask(&unit(batch)).is_ok();
            for (number, text) in batch {
                let alone = match together {
                    true => Ok(()),
                    false => ask(text).map(drop),
                };
                match alone {
                    Ok(()) => keep(&place(text), b"")?,
                    Err(message) => refused.push((*number, message)),
                }
            }
        }
        Ok(refused)
    }

    /// Runs nvcc.
    fn ask(&self, source: &Source<'_>) -> Result<Answer, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (text, cubin) = (
            folder.path().join("kernel.cu"),
            folder.path().join("kernel.cubin"),
        );
        std::fs::write(&text, source.text).map_err(|e| e.to_string())?;
        let output = Command::new(&self.path)
            .args(["-std=c++17", "-cubin"])
            .args(source.flags)
            .args(["-arch", source.arch, "-o"])
            .args([&cubin, &text])
            .output()
            .map_err(|e| format!("{}: {e}", self.path.display()))?;
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(Answer {
                cubin: std::fs::read(&cubin).map_err(|e| e.to_string())?,
                printed,
            }),
            false => Err(printed),
        }
    }

    /// The path of an answer, without its ending.
    fn place(&self, source: &Source<'_>) -> PathBuf {
        let mut hash = hmac_sha256::Hash::new();
        let words = [source.arch, &self.build, source.text];
        for word in words.iter().chain(source.flags) {
            hash.update((word.len() as u64).to_le_bytes());
            hash.update(word);
        }
        let digest = hash.finalize();
        let name: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        target().join("nvcc-answers").join(name)
    }
}

/// Writes a file that other test programs may be reading or writing.
fn keep(path: &Path, contents: &[u8]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    std::fs::write(new.path(), contents).map_err(failed)?;
    new.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}
