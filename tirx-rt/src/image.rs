//! Compiled kernels as data.

/// The kind of a parameter of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A device pointer.
    Pointer,
    /// A scalar of this many bits, in the low bytes of a launch argument.
    Scalar {
        /// 8, 16, 32 or 64.
        bits: u8,
    },
    /// A tensor map, by value: the argument is its number among the maps of the launch.
    TensorMap,
}

/// A `__global__` function of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFunction {
    /// Its symbol.
    pub symbol: &'static str,
    /// Its parameters.
    pub params: &'static [ParamKind],
}

/// A compiled kernel: machine code for GPUs and IR for the simulator.
#[derive(Clone, Copy, Debug)]
pub struct KernelImage {
    /// The kernel's path, e.g. `add::n256`.
    pub name: &'static str,
    /// Its device functions.
    pub functions: &'static [DeviceFunction],
    /// The fat binary; `None` where the build had no nvcc.
    pub fatbin: Option<&'static [u8]>,
    /// The lowered device functions as an IR image.
    pub ir: &'static [u8],
    /// Native code in the fat binary, e.g. `sm_90a`.
    pub targets: &'static [&'static str],
    /// PTX in the fat binary, e.g. `compute_90`.
    pub ptx: Option<&'static str>,
    /// Hash over source, specialization, compiler, nvcc, flags and targets, in hexadecimal.
    pub hash: &'static str,
    /// Hash of the launcher's behaviour: arguments, checks and launch dimensions. A kernel of a bundle can replace this
    /// one if its hash is the same.
    pub signature: &'static str,
}

impl KernelImage {
    /// Whether the fat binary has code for a device of this compute capability.
    ///
    /// `sm_90a` runs on 9.0 alone, `sm_100f` on its family (10.x), `sm_90` on 9.0 and later minor versions, PTX on its
    /// own version and every later one (`compute_90a` on 9.0 alone). Source: CUDA C++ Programming Guide, "Compute
    /// Capabilities".
    pub fn runs_on(&self, major: i32, minor: i32) -> bool {
        self.fatbin.is_some()
            && (self.targets.iter().any(|t| native_runs_on(t, major, minor))
                || self.ptx.is_some_and(|p| ptx_runs_on(p, major, minor)))
    }

    /// What the driver takes of the fat binary for a device on which it runs: the machine code for the nearest GPU, else PTX.
    pub(crate) fn taken_on(&self, major: i32, minor: i32) -> String {
        let native = self.targets.iter().filter(|t| native_runs_on(t, major, minor));
        match native.max_by_key(|target| parse(target)) {
            Some(target) => format!("machine code for {target}"),
            None => format!(
                "PTX for {}, which the driver compiles, because there is no machine code for this GPU among {}",
                self.ptx.unwrap_or("no GPU"),
                self.targets.join(", ")
            ),
        }
    }
}

/// `(major, minor, suffix)` of a name such as `sm_90a` or `compute_90`.
pub(crate) fn parse(target: &str) -> Option<(i32, i32, &str)> {
    let number = target
        .strip_prefix("sm_")
        .or_else(|| target.strip_prefix("compute_"))?;
    let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let version: i32 = digits.parse().ok()?;
    Some((version / 10, version % 10, &number[digits.len()..]))
}

pub(crate) fn native_runs_on(target: &str, major: i32, minor: i32) -> bool {
    match parse(target) {
        Some((m, n, "a")) => (m, n) == (major, minor),
        Some((m, n, _)) => m == major && minor >= n,
        None => false,
    }
}

pub(crate) fn ptx_runs_on(target: &str, major: i32, minor: i32) -> bool {
    match parse(target) {
        Some((m, n, "a")) => (m, n) == (major, minor),
        Some((m, n, "f")) => m == major && minor >= n,
        Some((m, n, _)) => (major, minor) >= (m, n),
        None => false,
    }
}

/// How a device function is launched. `Default` is one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster in x, y, z; all ones means no cluster.
    pub cluster: [u32; 3],
    /// Preferred blocks of a cluster; all ones means no preference.
    pub preferred_cluster: [u32; 3],
    /// All blocks resident at once, so that the grid can synchronize.
    pub cooperative: bool,
    /// May start before the previous kernel of the stream has ended (programmatic dependent launch).
    pub programmatic: bool,
}

impl Default for LaunchConfig {
    fn default() -> LaunchConfig {
        LaunchConfig {
            grid: [1; 3],
            block: [1; 3],
            shared_bytes: 0,
            cluster: [1; 3],
            preferred_cluster: [1; 3],
            cooperative: false,
            programmatic: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_runs_where() {
        let image = |targets, ptx| KernelImage {
            name: "k",
            functions: &[],
            fatbin: Some(&[]),
            ir: &[],
            targets,
            ptx,
            hash: "",
            signature: "",
        };
        let hopper = image(&["sm_90a"], None);
        assert!(hopper.runs_on(9, 0) && !hopper.runs_on(10, 0) && !hopper.runs_on(8, 9));
        let ampere = image(&["sm_80"], None);
        assert!(ampere.runs_on(8, 6) && !ampere.runs_on(9, 0));
        let portable = image(&["sm_90a", "sm_100a"], Some("compute_90"));
        assert!(portable.runs_on(12, 0) && portable.runs_on(10, 3) && !portable.runs_on(8, 9));
        assert!(image(&["sm_100f"], None).runs_on(10, 3));
        assert_eq!(portable.taken_on(10, 0), "machine code for sm_100a");
        assert_eq!(
            image(&["sm_80", "sm_86"], None).taken_on(8, 9),
            "machine code for sm_86"
        );
        assert_eq!(
            portable.taken_on(10, 3),
            "PTX for compute_90, which the driver compiles, because there is no machine code for this GPU among sm_90a, sm_100a"
        );
        assert!(
            !KernelImage {
                fatbin: None,
                ..hopper
            }
            .runs_on(9, 0)
        );
    }
}
