//! Does nvcc accept the CUDA text of random kernels? Many go into one translation unit, since nvcc takes about as long
//! for dozens as for one.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Problem;

/// Kernels per translation unit.
pub const BATCH: usize = 50;

/// The texts of kernels named `k`, by seed, as one: each in a namespace of its own, its functions and its dynamic shared
/// memory, which are known outside of it, under names of their own.
pub fn unit(kernels: &[(u64, &str)]) -> String {
    let mut includes = BTreeSet::new();
    let mut text = String::new();
    for (seed, cuda) in kernels {
        text += &format!("namespace kernel_{seed} {{\n");
        let mut body = String::new();
        let mut dynamic = Vec::new();
        for line in cuda.lines() {
            if line.starts_with("#include") {
                includes.insert(line);
            } else {
                body += &line.replace(" k_kernel", &format!(" k{seed}_kernel"));
                body.push('\n');
            }
            if line.contains("extern __shared__") {
                dynamic.extend(line.trim_end_matches("[];").rsplit(' ').next());
            }
        }
        for name in dynamic {
            body = renamed(&body, name, &format!("{name}_of_{seed}"));
        }
        text += &body;
        text += "}\n";
    }
    let includes: Vec<&str> = includes.into_iter().collect();
    format!("{}\n\n{text}", includes.join("\n"))
}

/// The text with a name replaced.
fn renamed(text: &str, name: &str, by: &str) -> String {
    let of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        out.push_str(before);
        let whole = !out.ends_with(of_name) && !after.starts_with(of_name);
        out.push_str(if whole { by } else { name });
        rest = after;
    }
    out + rest
}

/// Compiles kernels together. Optimization does not affect what is accepted, so it is off.
///
/// # Errors
///
/// nvcc's, with the text.
pub fn compile(nvcc: &Path, arch: &str, folder: &Path, kernels: &[(u64, &str)]) -> Result<(), Problem> {
    let text = unit(kernels);
    let flags = ["-Xcicc", "-O0", "-Xptxas", "-O0"];
    cubin(nvcc, arch, folder, &text, &flags).map(|_| ())
}

/// The machine code of a CUDA text.
///
/// # Errors
///
/// nvcc's, with the text.
pub fn cubin(nvcc: &Path, arch: &str, folder: &Path, text: &str, flags: &[&str]) -> Result<Vec<u8>, Problem> {
    static UNITS: AtomicU64 = AtomicU64::new(0);
    let failed = |e: std::io::Error| Problem::Cuda(e.to_string());
    let name = format!("unit{}", UNITS.fetch_add(1, Ordering::Relaxed));
    let source = folder.join(format!("{name}.cu"));
    let out = folder.join(format!("{name}.cubin"));
    std::fs::write(&source, text).map_err(failed)?;
    let output = Command::new(nvcc)
        .args(["-std=c++17", "-cubin"])
        .args(flags)
        .args(["-arch", arch, "-o"])
        .args([&out, &source])
        .output()
        .map_err(failed)?;
    let binary = std::fs::read(&out);
    let _ = std::fs::remove_file(&out);
    let _ = std::fs::remove_file(&source);
    if output.status.success() {
        return binary.map_err(failed);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = message
        .lines()
        .filter(|l| l.contains("error") || l.contains("fatal"))
        .map(|l| l.split_once("): ").map_or(l, |(_, rest)| rest))
        .collect();
    let message = match errors.is_empty() {
        true => message.into_owned(),
        false => errors.join("\n"),
    };
    Err(Problem::Cuda(format!("{message}\n{text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_shared_memory_is_named_apart() {
        let text = "{\n  extern __shared__ __align__(64) int s[];\n  s[0] = s_1 + us[s[1]] + ss;\n}\n";
        assert_eq!(
            unit(&[(7, text)]),
            "\n\nnamespace kernel_7 {\n{\n  extern __shared__ __align__(64) int s_of_7[];\n  \
             s_of_7[0] = s_1 + us[s_of_7[1]] + ss;\n}\n}\n"
        );
    }

    #[test]
    fn kernels_share_their_includes_and_nothing_else() {
        let text = "#include <cstdint>\n\nextern \"C\" __global__ void k_kernel(int* A) {\n}\n";
        assert_eq!(
            unit(&[(1, text), (2, text)]),
            "#include <cstdint>\n\n\
             namespace kernel_1 {\n\nextern \"C\" __global__ void k1_kernel(int* A) {\n}\n}\n\
             namespace kernel_2 {\n\nextern \"C\" __global__ void k2_kernel(int* A) {\n}\n}\n"
        );
    }
}
