//! Many CUDA texts as one translation unit: nvcc takes about as long for dozens of kernels as for one.

use std::collections::BTreeSet;

/// Kernels per translation unit.
pub const BATCH: usize = 50;

/// CUDA texts as one, each with a number: in a namespace of its own, with names of its own for what is known outside of the namespace.
/// These are kernels (`k_kernel` of text 7 is `k_7_kernel`) and dynamic shared memory.
pub fn unit(texts: &[(u64, &str)]) -> String {
    let mut includes = BTreeSet::new();
    let mut unit = String::new();
    for (number, text) in texts {
        let mut body = String::new();
        let mut names = BTreeSet::new();
        for line in text.lines() {
            if line.starts_with("#include") {
                includes.insert(line);
                continue;
            }
            body += line;
            body.push('\n');
            names.extend(dynamic_memory(line).or_else(|| kernel(line)));
        }
        for name in names {
            let (stem, end) = match name.strip_suffix("_kernel") {
                Some(stem) => (stem, "_kernel"),
                None => (name, ""),
            };
            body = renamed(&body, name, &format!("{stem}_{number}{end}"));
        }
        unit += &format!("namespace text_{number} {{\n{body}}}\n");
    }
    let includes: Vec<&str> = includes.into_iter().collect();
    format!("{}\n\n{unit}", includes.join("\n"))
}

/// The name of the dynamic shared memory that a line declares.
fn dynamic_memory(line: &str) -> Option<&str> {
    let declared = line.contains("extern __shared__");
    let name = line.trim_end_matches("[];").rsplit(' ').next();
    name.filter(|_| declared)
}

/// The name of the kernel that a line declares.
fn kernel(line: &str) -> Option<&str> {
    if !line.starts_with("extern \"C\"") {
        return None;
    }
    let end = line.find("_kernel(")? + "_kernel".len();
    line[..end].rsplit(' ').next()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_shared_memory_is_named_apart() {
        let text = "{\n  extern __shared__ __align__(64) int s[];\n  s[0] = s_1 + us[s[1]] + ss;\n}\n";
        assert_eq!(
            unit(&[(7, text)]),
            "\n\nnamespace text_7 {\n{\n  extern __shared__ __align__(64) int s_7[];\n  \
             s_7[0] = s_1 + us[s_7[1]] + ss;\n}\n}\n"
        );
    }

    #[test]
    fn kernels_share_their_includes_and_nothing_else() {
        let text = "#include <cstdint>\n\nextern \"C\" __global__ void __launch_bounds__(32) a_kernel(int* A) {\n}\n";
        assert_eq!(
            unit(&[(1, text), (2, text)]),
            "#include <cstdint>\n\n\
             namespace text_1 {\n\nextern \"C\" __global__ void __launch_bounds__(32) a_1_kernel(int* A) {\n}\n}\n\
             namespace text_2 {\n\nextern \"C\" __global__ void __launch_bounds__(32) a_2_kernel(int* A) {\n}\n}\n"
        );
    }
}
